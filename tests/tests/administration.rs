//! The operator's commands, as processes: what they print, how they end, and that a running server takes notice.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends at the first surprise, and tells it"
)]

use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};
use tonic::transport::Endpoint;
use tonic::{Request, Status};
use tonic_types::StatusExt as _;
use tribunal_proto::v1;
use tribunal_proto::v1::key_service_client::KeyServiceClient;
use tribunal_proto::v1::repository_service_client::RepositoryServiceClient;
use tribunal_tests::{Client, Repo, Role, Server, binaries};

/// The server's binary with a clean environment.
fn run(args: &[&str]) -> Output {
    Command::new(binaries::server())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .args(args)
        .output()
        .unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// `--data DIR` in front of a command.
fn on(data: &Path, args: &[&str]) -> Output {
    let mut all = vec!["--data", data.to_str().unwrap()];
    all.extend(args);
    run(&all)
}

fn document(data: &Path, args: &[&str]) -> Value {
    let mut all = args.to_vec();
    all.push("--json");
    let output = on(data, &all);
    assert_eq!(code(&output), 0, "{args:?}: {}", stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap()
}

#[test]
fn init_makes_a_private_folder_once_and_shows_one_token() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("deep/data");
    let made = on(&data, &["init"]);
    assert_eq!(code(&made), 0, "{}", stderr(&made));
    let text = stdout(&made);
    let token = text.lines().last().unwrap();
    assert!(token.starts_with("tbl_"), "{text}");
    assert_eq!(text.matches("tbl_").count(), 1);
    let mode = |path: &str| data.join(path).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(""), 0o700);
    assert_eq!(mode("keys"), 0o700);
    for file in std::fs::read_dir(data.join("keys")).unwrap() {
        let file = file.unwrap();
        if file.file_type().unwrap().is_file() {
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
    let secret = token.rsplit('_').next().unwrap();
    let database = std::fs::read(data.join("tribunal.db")).unwrap();
    let found = database.windows(64).any(|w| w == secret.as_bytes());
    assert!(!found, "only a hash is stored");

    let again = on(&data, &["init"]);
    assert_eq!(code(&again), 73);
    assert!(stdout(&again).is_empty());
    let full = folder.path().join("full");
    std::fs::create_dir(&full).unwrap();
    std::fs::write(full.join("somebody's"), "").unwrap();
    assert_eq!(code(&on(&full, &["init"])), 73);
    assert_eq!(std::fs::read_dir(&full).unwrap().count(), 1);
    let prepared = folder.path().join("prepared");
    std::fs::create_dir(&prepared).unwrap();
    assert_eq!(code(&on(&prepared, &["init"])), 0);
}

#[test]
fn every_mistake_has_its_exit_code_and_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    assert_eq!(code(&on(&data, &["init"])), 0);
    let none = folder.path().join("none");
    for (output, expected, says) in [
        (run(&["token", "list"]), 64, "--data"),
        (run(&["nonsense"]), 64, "nonsense"),
        (on(&none, &["token", "list"]), 66, "init"),
        (
            on(&data, &["token", "revoke", "0123456789abcdef"]),
            66,
            "0123456789abcdef",
        ),
        (
            on(&data, &["token", "revoke", "x"]),
            64,
            "16 lower-case hex",
        ),
        (on(&data, &["token", "new", "--role", "king"]), 64, "agent"),
        (
            on(&data, &["token", "new", "--role", "ci", "--repo", "no"]),
            66,
            "no",
        ),
        (on(&data, &["repo", "sync", "no"]), 66, "no"),
        (on(&data, &["repo", "remove", "no"]), 66, "no"),
        (
            on(
                &data,
                &[
                    "repo",
                    "add",
                    "a",
                    "--remote",
                    "/nowhere",
                    "--protect",
                    "main",
                ],
            ),
            69,
            "unreachable",
        ),
        (on(&data, &["gc", "--older-than", "soon"]), 64, "30d"),
        (
            on(&data, &["serve", "--listen", "0.0.0.0:0"]),
            64,
            "listen.certificate",
        ),
        (
            on(&data, &["image", "build", "--python", "3.9"]),
            64,
            "3.13",
        ),
    ] {
        let told = stderr(&output);
        assert_eq!(code(&output), expected, "{told}");
        assert!(told.contains(says), "{told}");
        assert!(stdout(&output).is_empty());
    }
    let help = stdout(&run(&["--help"]));
    for exit in ["0 ", "1 ", "64 ", "66 ", "69 ", "73 "] {
        assert!(help.contains(&format!(" {exit}")), "{help}");
    }
}

#[test]
fn a_configuration_is_shown_whole_or_refused_whole() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("server.toml");
    std::fs::write(&file, "[queue]\nworkers = 3\n").unwrap();
    let shown = run(&["check-config", "--config", file.to_str().unwrap()]);
    assert_eq!(code(&shown), 0, "{}", stderr(&shown));
    let table: toml::Table = stdout(&shown).parse().unwrap();
    assert_eq!(table["queue"]["workers"].as_integer(), Some(3));

    std::fs::write(
        &file,
        "[queue]\nworkers = 0\nline = 1\n[listen]\nkey = \"k\"\n",
    )
    .unwrap();
    let refused = run(&["check-config", "--config", file.to_str().unwrap()]);
    assert_eq!(code(&refused), 64);
    let told = stderr(&refused);
    for key in ["queue.workers", "queue.line", "listen.certificate"] {
        assert!(told.contains(key), "{told}");
    }
}

#[test]
fn tokens_and_keys_are_listed_without_their_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    on(&data, &["init"]);
    let new = document(&data, &["token", "new", "--role", "ci", "--expires", "1h"]);
    let token = new["token"].as_str().unwrap();
    let id = new["id"].as_str().unwrap();
    assert!(token.contains(id));
    let listed = document(&data, &["token", "list"]);
    let told = listed.to_string();
    assert!(!told.contains(token.rsplit('_').next().unwrap()));
    let of = |listed: &Value, id: &str| {
        let all = listed["tokens"].as_array().unwrap().clone();
        all.into_iter().find(|t| t["id"] == id).unwrap()
    };
    assert_eq!(of(&listed, id)["state"], "valid");
    assert_eq!(of(&listed, id)["role"], "ci");
    assert_eq!(code(&on(&data, &["token", "revoke", id])), 0);
    let listed = document(&data, &["token", "list"]);
    assert_eq!(of(&listed, id)["state"], "revoked");

    let first = document(&data, &["key", "show"])["keys"][0]["key_id"].clone();
    let first = first.as_str().unwrap();
    let since = ["--since", "2026-01-01T00:00:00Z"];
    let revoke = on(&data, &["key", "revoke", first, since[0], since[1]]);
    assert_eq!(code(&revoke), 64, "the key that signs is rotated first");
    assert!(stderr(&revoke).contains("key rotate"));
    assert_eq!(code(&on(&data, &["key", "rotate"])), 0);
    assert_eq!(
        code(&on(&data, &["key", "revoke", first, since[0], since[1]])),
        0
    );
    let keys = document(&data, &["key", "show"]);
    let keys = keys["keys"].as_array().unwrap();
    assert_eq!(keys.len(), 2);
    assert_eq!(keys[0]["signs"], true);
    assert_eq!(keys[1]["key_id"], first);
    assert_eq!(keys[1]["revoked_since"], "2026-01-01T00:00:00Z");
    assert!(keys[1]["valid_before"].is_string());
    let pem = stdout(&on(&data, &["key", "show", "--format", "pem"]));
    // What it says without a format is a file that may be pinned as it is.
    let said = stdout(&on(&data, &["key", "show"]));
    let signers = stdout(&on(&data, &["key", "show", "--format", "allowed-signers"]));
    let lines = |text: &str| -> Vec<String> {
        let kept = text.lines().filter(|line| !line.starts_with('#'));
        kept.map(str::to_owned).collect()
    };
    assert_eq!(lines(&said), lines(&signers));
    assert!(
        said.lines().next().unwrap().starts_with("# SHA256:"),
        "{said}"
    );
    assert!(pem.starts_with("-----BEGIN PUBLIC KEY-----"));
    assert_eq!(pem.matches("BEGIN").count(), 1);
    assert!(!pem.contains("PRIVATE"));
}

#[test]
fn what_base_has_that_cannot_be_scored_is_told_by_add() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    on(&data, &["init"]);
    let good = Repo::small();
    let remote = good.path().to_str().unwrap();
    let add = |name: &str, remote: &str| {
        document(
            &data,
            &["repo", "add", name, "--remote", remote, "--protect", "main"],
        )
    };
    let told = add("good", remote);
    assert_eq!(told["tip"], good.head().as_str());
    assert_eq!(told["sealed_files"], 1);
    assert_eq!(told["notes"].as_array().unwrap().len(), 0, "{told}");

    let odd = Repo::small();
    odd.write("src/fast.so", b"\x7fELF");
    odd.write("tests/sealed/test_more.py", "def test_it():\n    pass\n");
    odd.commit("odd");
    let told = add("odd", odd.path().to_str().unwrap());
    let notes = told["notes"].to_string();
    assert!(notes.contains("overlay-compiled-artifact"), "{notes}");
    assert!(notes.contains("manifest-drift"), "{notes}");

    let broken = Repo::small();
    broken.write("ci/tribunal.toml", "version = 9\nnonsense = 1\n");
    broken.commit("broken");
    let told = add("broken", broken.path().to_str().unwrap());
    assert!(
        told["notes"].to_string().contains("policy-invalid"),
        "{told}"
    );

    let twice = on(
        &data,
        &[
            "repo",
            "add",
            "good",
            "--remote",
            remote,
            "--protect",
            "main",
        ],
    );
    assert_ne!(code(&twice), 0);
    let listed = document(&data, &["repo", "list"]);
    let names: Vec<_> = listed["repositories"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["broken", "good", "odd"]);
    assert_eq!(code(&on(&data, &["repo", "remove", "odd"])), 0);
    assert_eq!(code(&on(&data, &["repo", "sync", "odd"])), 66);
}

/// One call to a running server.
fn call<T>(
    server: &Server,
    token: &str,
    work: impl AsyncFnOnce(
        tonic::transport::Channel,
        tonic::metadata::MetadataValue<tonic::metadata::Ascii>,
    ) -> T,
) -> T {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let channel = Endpoint::from_shared(server.url()).unwrap();
        let channel = channel.connect().await.unwrap();
        work(channel, format!("Bearer {token}").parse().unwrap()).await
    })
}

fn keys(server: &Server, token: &str) -> Result<Vec<v1::Key>, Status> {
    call(server, token, async |channel, bearer| {
        let mut request = Request::new(v1::ListKeysRequest::default());
        request.metadata_mut().insert("authorization", bearer);
        let answer = KeyServiceClient::new(channel).list_keys(request).await?;
        Ok(answer.into_inner().keys)
    })
}

fn repositories(server: &Server, token: &str) -> Vec<String> {
    call(server, token, async |channel, bearer| {
        let mut request = Request::new(v1::ListRepositoriesRequest::default());
        request.metadata_mut().insert("authorization", bearer);
        let mut client = RepositoryServiceClient::new(channel);
        let answer = client.list_repositories(request).await.unwrap();
        let listed = answer.into_inner().repositories;
        listed.into_iter().map(|r| r.name).collect()
    })
}

#[test]
fn a_running_server_takes_notice_of_what_is_administered() {
    let server = Server::own();
    let operator = server.token(Role::Operator, None);
    assert_eq!(repositories(&server, &operator), Vec::<String>::new());
    let repo = Repo::small();
    let registered = server.register(repo.path());
    let name = format!("repositories/{}", registered.name);
    assert_eq!(repositories(&server, &operator), [name]);

    // A second server on the same data would tear the first one's rooms down.
    let second = server.try_admin(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(code(&second), 73, "{}", stderr(&second));

    let id = registered.ci.split('_').nth(1).unwrap();
    assert!(keys(&server, &registered.ci).is_ok());
    server.admin(&["token", "revoke", id]);
    let status = keys(&server, &registered.ci).unwrap_err();
    let info = status.get_details_error_info().unwrap();
    assert_eq!(info.reason, "UNAUTHENTICATED");

    let agent = Client::agent(&server, &registered, repo.path());
    let before = keys(&server, &operator).unwrap();
    let old_key = server.key_file();
    let old_pem = std::fs::read_to_string(&old_key).unwrap();
    agent.run(&["score", "--out", "first"]).expect_code(0);
    server.admin(&["key", "rotate"]);
    let after = keys(&server, &operator).unwrap();
    assert_eq!((before.len(), after.len()), (1, 2));
    assert_eq!(after[1].key_id, before[0].key_id);
    assert!(after[1].retire_time.is_some());
    agent.run(&["score", "--out", "second"]).expect_code(0);
    let new_key = server.key_file();
    let new = new_key.to_str().unwrap();
    agent.run(&["join", "second", "--key", new]).expect_code(0);
    agent.run(&["join", "first", "--key", new]).expect_code(5);
    let old = repo.path().join("old.pem");
    std::fs::write(&old, old_pem).unwrap();
    let old = old.to_str().unwrap();
    agent.run(&["join", "first", "--key", old]).expect_code(0);

    // Nothing of a token ever reaches the log.
    let log = server.log();
    for token in [&operator, &registered.agent, &registered.ci] {
        assert!(!log.contains(token.rsplit('_').next().unwrap()));
    }

    // A backup, unpacked elsewhere, is the same server: same key, same tokens, same verdicts.
    let folder = tempfile::tempdir().unwrap();
    let tar = folder.path().join("backup.tar");
    server.admin(&["backup", tar.to_str().unwrap()]);
    let restored = folder.path().join("data");
    std::fs::create_dir(&restored).unwrap();
    let unpacked = Command::new("tar")
        .arg("-xf")
        .arg(&tar)
        .arg("-C")
        .arg(&restored)
        .status()
        .unwrap();
    assert!(unpacked.success());
    let key = stdout(&on(&restored, &["key", "show", "--format", "pem"]));
    assert_eq!(key, std::fs::read_to_string(&new_key).unwrap());
    let tokens = document(&restored, &["token", "list"]);
    assert_eq!(
        tokens,
        serde_json::from_str::<Value>(&server.admin(&["token", "list", "--json"])).unwrap()
    );

    server.shutdown();
    // With no server running, old trees go too.
    let gone = server.admin(&["gc", "--older-than", "0s", "--json"]);
    let gone: Value = serde_json::from_str(&gone).unwrap();
    assert_eq!(gone["scores"], 2);
    assert_eq!(gone["trees"], "1 sealed trees, 0 rooms", "{gone}");
}
