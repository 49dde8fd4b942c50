//! TLS as configured: whose certificate is believed, and with which one the client answers.

use crate::score::Work;
use crate::scripted::{Script, Scripted};
use crate::signed::Ran;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tonic::transport::server::ServerTlsConfig;
use tonic::transport::{Certificate, Identity, Server};

/// An authority and two certificates that it made: the server's for 127.0.0.1, and a client's.
struct Pki {
    dir: tempfile::TempDir,
}

impl Pki {
    fn new() -> Self {
        let pki = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        pki.openssl(&[
            "req",
            "-x509",
            "-newkey",
            "ed25519",
            "-nodes",
            "-keyout",
            "ca.key",
            "-out",
            "ca.pem",
            "-subj",
            "/CN=authority",
            "-days",
            "2",
        ]);
        for name in ["server", "client"] {
            let (key, csr, pem) = (
                format!("{name}.key"),
                format!("{name}.csr"),
                format!("{name}.pem"),
            );
            pki.openssl(&[
                "req",
                "-newkey",
                "ed25519",
                "-nodes",
                "-keyout",
                &key,
                "-out",
                &csr,
                "-subj",
                &format!("/CN={name}"),
            ]);
            fs::write(pki.path("ext"), "subjectAltName=IP:127.0.0.1\n").unwrap();
            pki.openssl(&[
                "x509",
                "-req",
                "-in",
                &csr,
                "-CA",
                "ca.pem",
                "-CAkey",
                "ca.key",
                "-CAcreateserial",
                "-days",
                "2",
                "-extfile",
                "ext",
                "-out",
                &pem,
            ]);
        }
        pki
    }
    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }
    fn openssl(&self, args: &[&str]) {
        let output = Command::new("openssl")
            .args(args)
            .current_dir(self.dir.path())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    fn server_tls(&self) -> ServerTlsConfig {
        ServerTlsConfig::new().identity(Identity::from_pem(
            self.text("server.pem"),
            self.text("server.key"),
        ))
    }
}

fn list(work: &Work, server: &Scripted, more: &[(&str, &Path)]) -> Ran {
    let url = server.url().replace("http://", "https://");
    let mut args = vec!["list".to_owned(), "--server".to_owned(), url];
    for (flag, path) in more {
        args.extend([(*flag).to_owned(), path.to_str().unwrap().to_owned()]);
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    work.run(server, &args)
}

#[test]
fn a_certificate_is_believed_only_from_a_known_authority() {
    let (work, pki) = (Work::new(), Pki::new());
    let builder = Server::builder().tls_config(pki.server_tls()).unwrap();
    let server = Scripted::start_on(builder, Script::new(&work.signed));
    let ca = pki.path("ca.pem");
    let good = list(&work, &server, &[("--ca", &ca)]);
    assert_eq!(good.code, 0, "{}", good.stderr);
    let stranger = list(&work, &server, &[]);
    assert_eq!(stranger.code, 69, "{}", stranger.stderr);
    let not_an_authority = list(&work, &server, &[("--ca", &pki.path("client.key"))]);
    assert!(
        [64, 69].contains(&not_an_authority.code),
        "{}",
        not_an_authority.stderr
    );
    let absent = list(&work, &server, &[("--ca", Path::new("/nowhere.pem"))]);
    assert_eq!(absent.code, 64, "{}", absent.stderr);
    // Plain text to a server that speaks TLS is no way around it.
    let plain = work.run(&server, &["list"]);
    assert_eq!(plain.code, 69, "{}", plain.stderr);
    server.stop();
}

#[test]
fn a_server_that_wants_a_certificate_gets_the_configured_one() {
    let (work, pki) = (Work::new(), Pki::new());
    let tls = pki
        .server_tls()
        .client_ca_root(Certificate::from_pem(pki.text("ca.pem")));
    let builder = Server::builder().tls_config(tls).unwrap();
    let server = Scripted::start_on(builder, Script::new(&work.signed));
    let (ca, cert, key) = (
        pki.path("ca.pem"),
        pki.path("client.pem"),
        pki.path("client.key"),
    );
    let known = list(
        &work,
        &server,
        &[
            ("--ca", &ca),
            ("--client-cert", &cert),
            ("--client-key", &key),
        ],
    );
    assert_eq!(known.code, 0, "{}", known.stderr);
    let nobody = list(&work, &server, &[("--ca", &ca)]);
    assert_eq!(nobody.code, 69, "{}", nobody.stderr);
    assert!(nobody.stderr.contains("next: "), "{}", nobody.stderr);
    let half = list(&work, &server, &[("--ca", &ca), ("--client-cert", &cert)]);
    assert_eq!(half.code, 64, "{}", half.stderr);
    server.stop();
}
