//! `deploy/compose.socket.yaml` is started here with an image made here, and scores; both compose files hold.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tribunal_tests::client::words;
use tribunal_tests::{Client, Repo, Server, binaries, until};

/// Everything that one project of compose needs; it is gone with this.
struct Project {
    name: String,
    tool: &'static [&'static str],
    folder: tempfile::TempDir,
    image: String,
}

fn deploy() -> PathBuf {
    binaries::root().join("deploy")
}

/// Its stdout; it must succeed.
#[track_caller]
fn done(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}:\n{said}");
    String::from_utf8(output.stdout).unwrap()
}

fn succeeds(words: &[&str]) -> bool {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg("version");
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// The plug-in, or the program of old; where neither is there, Debian's package of the latter.
fn compose_tool() -> &'static [&'static str] {
    const TOOLS: [&[&str]; 2] = [&["docker", "compose"], &["docker-compose"]];
    let there = || TOOLS.into_iter().find(|words| succeeds(words));
    there().unwrap_or_else(|| {
        let mut install = Command::new("apt-get");
        install.args(["install", "-y", "--no-install-recommends", "docker-compose"]);
        done(install.env("DEBIAN_FRONTEND", "noninteractive"));
        there().unwrap()
    })
}

impl Project {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let name = format!("tribunal-composed-{}", std::process::id());
        let etc = folder.path().join("etc");
        fs::create_dir_all(etc.join("tls")).unwrap();
        fs::copy(
            deploy().join("compose/server.toml"),
            etc.join("server.toml"),
        )
        .unwrap();
        let mut certificate = Command::new("openssl");
        certificate
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt"])
            .args(["ec_paramgen_curve:P-256", "-nodes", "-days", "2"])
            .args([
                "-subj",
                "/CN=composed",
                "-addext",
                "subjectAltName=IP:127.0.0.1",
                "-addext",
                "basicConstraints=critical,CA:FALSE",
            ])
            .args(["-keyout", "key.pem", "-out", "chain.pem"])
            .current_dir(etc.join("tls"));
        done(&mut certificate);
        // Another user reads them in there.
        for (place, mode) in [
            ("", 0o755),
            ("etc", 0o755),
            ("etc/tls", 0o755),
            ("etc/tls/key.pem", 0o644),
        ] {
            let place = folder.path().join(place);
            fs::set_permissions(place, fs::Permissions::from_mode(mode)).unwrap();
        }
        let image = format!("tribunal/server:{name}");
        let mut build = Command::new(deploy().join("server-image.sh"));
        build
            .arg(binaries::server())
            .env("TRIBUNAL_SERVER_IMAGE", &image);
        done(&mut build);
        Self {
            name,
            tool: compose_tool(),
            folder,
            image,
        }
    }

    fn certificate(&self) -> PathBuf {
        self.folder.path().join("etc/tls/chain.pem")
    }

    fn file(&self, file: &str, args: &[&str]) -> Command {
        let socket = fs::metadata("/var/run/docker.sock").unwrap();
        let mut command = Command::new(self.tool[0]);
        command
            .args(&self.tool[1..])
            .args(["-p", &self.name, "-f"])
            .arg(deploy().join(file))
            .args(args)
            .env("TRIBUNAL_SERVER_IMAGE", &self.image)
            .env("TRIBUNAL_ETC", self.folder.path().join("etc"))
            .env("TRIBUNAL_PUBLISH", "127.0.0.1:0")
            .env("TRIBUNAL_SOCKET_GROUP", socket.gid().to_string())
            .stdin(Stdio::null());
        command
    }

    fn compose(&self, args: &[&str]) -> Command {
        self.file("compose.socket.yaml", args)
    }

    fn admin(&self, args: &[&str]) -> String {
        let all = ["exec", "-T", "server", "tribunal-server"];
        done(&mut self.compose(&[&all, args].concat()))
    }

    /// Before there is a server: this file of ours as stdin of a line of shell in its data directory.
    fn put(&self, file: &Path, line: &str) {
        let line = format!("cd /var/lib/tribunal && {line}");
        let args = [
            "run",
            "--rm",
            "-T",
            "--entrypoint",
            "sh",
            "server",
            "-c",
            &line,
        ];
        done(self.compose(&args).stdin(File::open(file).unwrap()));
    }

    fn container(&self) -> String {
        let id = done(&mut self.compose(&["ps", "-q", "server"]));
        id.trim().to_owned()
    }
}

fn inspected(container: &str) -> Value {
    let text = done(Command::new("docker").args(["inspect", container]));
    let all: Value = serde_json::from_str(&text).unwrap();
    all[0].clone()
}

impl Drop for Project {
    fn drop(&mut self) {
        let _ = self.compose(&["down", "-v", "-t", "60"]).output();
        let _ = Command::new("docker").args(["rmi", &self.image]).output();
    }
}

#[test]
fn a_composed_server_scores_with_few_rights() {
    let project = Project::new();
    // Made on a machine that can, brought to one that cannot.
    let runner = project.folder.path().join("runner.tar");
    let maker = Server::own();
    maker.admin(&["image", "export", runner.to_str().unwrap()]);
    maker.shutdown();
    for file in ["compose.yaml", "compose.socket.yaml"] {
        done(&mut project.file(file, &["config", "-q"]));
    }
    let made = done(&mut project.compose(&["run", "--rm", "-T", "server", "init"]));
    assert!(
        made.contains("/var/lib/tribunal is a data directory"),
        "{made}"
    );
    let args = ["run", "--rm", "-T", "server", "image", "import", "-"];
    done(project.compose(&args).stdin(File::open(&runner).unwrap()));
    let origin = Repo::small();
    let origin = origin.origin_at(&origin.head());
    let tar = project.folder.path().join("origin.tar");
    done(
        Command::new("tar")
            .args(["-cf", tar.to_str().unwrap(), "-C"])
            .arg(origin.path())
            .arg("."),
    );
    project.put(&tar, "mkdir origin && tar -xf - --no-same-owner -C origin");

    done(&mut project.compose(&["up", "-d"]));
    let container = project.container();
    until("its health check says so", || {
        inspected(&container)["State"]["Health"]["Status"] == "healthy"
    });
    let remote = ["--remote", "/var/lib/tribunal/origin", "--protect", "main"];
    project.admin(&[&["repo", "add", "calc", "--quick"], &remote[..]].concat());
    let token = project.admin(&["token", "new", "--role", "agent", "--repo", "calc"]);
    let address = done(&mut project.compose(&["port", "server", "7443"]));
    let key = project.folder.path().join("key.pem");
    fs::write(&key, project.admin(&["key", "show", "--format", "pem"])).unwrap();

    let workspace = origin.cloned();
    let client = Client::offline(workspace.path())
        .env("TRIBUNAL_SERVER", &format!("https://{}", address.trim()))
        .env("TRIBUNAL_REPO", "calc")
        .env("TRIBUNAL_TOKEN", token.trim().lines().last().unwrap())
        .env("SSL_CERT_FILE", project.certificate().to_str().unwrap());
    let out = project.folder.path().join("out");
    let (out_text, key) = (out.to_str().unwrap(), key.to_str().unwrap());
    for (text, code, word) in [("sum(xs)", 0, "PASS"), ("len(xs)", 1, "FAIL")] {
        workspace.write(
            "src/calc.py",
            format!("def total(xs):\n    return {text} # {code}\n"),
        );
        workspace.commit(text);
        client
            .run(&["score", "--out", out_text, "--key", key])
            .expect_code(code);
        assert_eq!(words(&out), [word, "PASS", "PASS"]);
    }

    let found = inspected(&container);
    let host = &found["HostConfig"];
    assert_eq!(found["Config"]["User"], "65532:65532");
    assert_eq!(host["ReadonlyRootfs"], true);
    assert_eq!(host["Privileged"], false);
    assert_eq!(host["CapDrop"], serde_json::json!(["ALL"]));
    assert_eq!(
        host["SecurityOpt"],
        serde_json::json!(["no-new-privileges:true"])
    );
    assert_eq!(host["PidsLimit"], 1024);
    assert_eq!(host["Memory"], 2_u64 << 30);
    let mut written: Vec<&str> = found["Mounts"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|mount| mount["RW"] == true)
        .map(|mount| mount["Destination"].as_str().unwrap())
        .collect();
    written.sort_unstable();
    assert_eq!(
        written[..2],
        ["/run/engine/docker.sock", "/var/lib/tribunal"]
    );
    let inside = |line: &str| {
        let args = ["exec", "-T", "server", "bash", "-c", line];
        project.compose(&args).output().unwrap().status.success()
    };
    assert!(inside(
        "test $(id -u) = 65532 && echo >/tmp/x && test ! -x /tmp/x"
    ));
    for refused in [
        "echo >/usr/bin/x",
        "echo >/etc/tribunal/x",
        "test $(id -u) = 0",
    ] {
        assert!(!inside(refused), "{refused}");
    }
    let holds = inside("! find / -xdev -perm /6000 -type f 2>/dev/null | grep -q .");
    assert!(holds, "the image holds set-uid programs");

    let store = project.admin(&["doctor"]);
    assert!(!store.contains("NOT OK"), "{store}");
    done(&mut project.compose(&["stop", "-t", "60"]));
    let ended = inspected(&container);
    assert_eq!(ended["State"]["ExitCode"], 0, "{}", ended["State"]);
    // Sealed trees outlive a server on purpose.
    let collect = ["run", "--rm", "-T", "server", "gc", "--older-than", "1s"];
    let told = done(&mut project.compose(&collect));
    assert!(told.contains("1 sealed trees"), "{told}");
}
