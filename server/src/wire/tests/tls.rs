//! TLS and mTLS with certificates that openssl makes on the spot.

use super::*;
use std::path::Path;
use std::process::Command;
use tonic::transport::{Certificate, ClientTlsConfig, Identity};

/// An authority, and what it signed.
struct Authority {
    folder: tempfile::TempDir,
}

impl Authority {
    fn new(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let subject = format!("/CN={name}");
        openssl(
            folder.path(),
            &[
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-days",
                "2",
                "-subj",
                &subject,
                "-keyout",
                "ca.key",
                "-out",
                "ca.pem",
            ],
        );
        Self { folder }
    }

    fn read(&self, file: &str) -> Vec<u8> {
        std::fs::read(self.folder.path().join(file)).unwrap()
    }

    fn certificate(&self) -> Certificate {
        Certificate::from_pem(self.read("ca.pem"))
    }

    /// Certificate and key of a server at 127.0.0.1, or of a client.
    fn sign(&self, name: &str) -> (Vec<u8>, Vec<u8>) {
        let (key, request, signed) = (
            format!("{name}.key"),
            format!("{name}.csr"),
            format!("{name}.pem"),
        );
        let subject = format!("/CN={name}");
        openssl(
            self.folder.path(),
            &[
                "req",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-subj",
                &subject,
                "-keyout",
                &key,
                "-out",
                &request,
            ],
        );
        let extensions = "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n";
        std::fs::write(self.folder.path().join("ext"), extensions).unwrap();
        openssl(
            self.folder.path(),
            &[
                "x509",
                "-req",
                "-in",
                &request,
                "-CA",
                "ca.pem",
                "-CAkey",
                "ca.key",
                "-days",
                "2",
                "-CAcreateserial",
                "-extfile",
                "ext",
                "-out",
                &signed,
            ],
        );
        (self.read(&signed), self.read(&key))
    }
}

fn openssl(folder: &Path, args: &[&str]) {
    let output = Command::new("openssl")
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "openssl {args:?}: {said}");
}

async fn served(tls: Tls) -> Bench {
    serve_on(settings(), Some(tls)).await
}

/// Whether a call of health gets through.
async fn answers(bench: &Bench, tls: ClientTlsConfig) -> Result<(), String> {
    let endpoint = Endpoint::from_shared(format!("https://{}", bench.address))
        .unwrap()
        .tls_config(tls)
        .unwrap();
    let channel = endpoint.connect().await.map_err(|e| e.to_string())?;
    let mut health = tonic_health::pb::health_client::HealthClient::new(channel);
    // A client without its certificate fails only here.
    let request = tonic_health::pb::HealthCheckRequest::default();
    health.check(request).await.map_err(|e| e.to_string())?;
    Ok(())
}

#[tokio::test]
async fn tls_answers_who_trusts_the_authority_and_nobody_in_plain_text() {
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    let (certificate, key) = ours.sign("server");
    let bench = served(Tls {
        certificate,
        key: key.into(),
        client_ca: None,
    })
    .await;
    let trusting =
        |authority: &Authority| ClientTlsConfig::new().ca_certificate(authority.certificate());
    answers(&bench, trusting(&ours)).await.unwrap();
    assert!(answers(&bench, trusting(&other)).await.is_err());

    let plain = Endpoint::from_shared(format!("http://{}", bench.address)).unwrap();
    let told = match plain.connect().await {
        Err(_) => true,
        Ok(channel) => {
            let mut health = tonic_health::pb::health_client::HealthClient::new(channel);
            let request = tonic_health::pb::HealthCheckRequest::default();
            health.check(request).await.is_err()
        }
    };
    assert!(told, "plain text was answered");
}

#[tokio::test]
async fn mtls_answers_only_certificates_of_its_authority() {
    let (servers, clients, other) = (
        Authority::new("servers"),
        Authority::new("clients"),
        Authority::new("other"),
    );
    let (certificate, key) = servers.sign("server");
    let bench = served(Tls {
        certificate,
        key: key.into(),
        client_ca: Some(clients.read("ca.pem")),
    })
    .await;
    let trusting = ClientTlsConfig::new().ca_certificate(servers.certificate());
    let showing = |authority: &Authority| {
        let (certificate, key) = authority.sign("client");
        trusting
            .clone()
            .identity(Identity::from_pem(certificate, key))
    };
    answers(&bench, showing(&clients)).await.unwrap();
    assert!(answers(&bench, trusting.clone()).await.is_err());
    assert!(answers(&bench, showing(&other)).await.is_err());
}

#[tokio::test]
async fn certificates_are_exchanged_under_way_and_bad_ones_change_nothing() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let of = |authority: &Authority, client_ca: Option<&Authority>| {
        let (certificate, key) = authority.sign("server");
        Tls {
            certificate,
            key: key.into(),
            client_ca: client_ca.map(|ca| ca.read("ca.pem")),
        }
    };
    let bench = served(of(&old, None)).await;
    let trusting =
        |authority: &Authority| ClientTlsConfig::new().ca_certificate(authority.certificate());
    answers(&bench, trusting(&old)).await.unwrap();
    let mut broken = of(&new, None);
    broken.key = b"no key".to_vec().into();
    let told = bench.certificates.exchange(&broken).unwrap_err();
    assert!(told.to_string().contains("listen.key"), "{told}");
    answers(&bench, trusting(&old)).await.unwrap();
    bench.certificates.exchange(&of(&new, Some(&new))).unwrap();
    assert!(answers(&bench, trusting(&old)).await.is_err());
    assert!(answers(&bench, trusting(&new)).await.is_err());
    let (certificate, key) = new.sign("client");
    let showing = trusting(&new).identity(Identity::from_pem(certificate, key));
    answers(&bench, showing).await.unwrap();
}

#[tokio::test]
async fn certificates_that_are_none_keep_the_server_from_starting() {
    let tls = Tls {
        certificate: b"no certificate".to_vec(),
        key: b"no key".to_vec().into(),
        client_ca: None,
    };
    let bound = Listener::bind("127.0.0.1:0".parse().unwrap(), Some(tls)).await;
    assert!(matches!(bound, Err(ListenError::Tls(_))));
}
