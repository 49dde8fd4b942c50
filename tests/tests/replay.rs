//! Every way of showing a gate files that are real, and not about what is to be merged. All are what a server really made.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tempfile::TempDir;
use tribunal_tests::client::{report, words};
use tribunal_tests::plain::{STEMS, Says, envelope_payload, openssl, ssh_keygen};
use tribunal_tests::{Case, Client, Repo, Server, Stage, until};

const ENDINGS: [&str; 4] = [".txt", ".json", ".json.sig", ".sigstore.json"];

/// One repository with three scored heads and a human change set, and its twin under another name.
struct World {
    stage: Stage<'static>,
    first: String,
    second: String,
    wrong: String,
    human: String,
    base: String,
    signers: PathBuf,
}

/// Scored once; nobody writes into its folders.
fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| {
        let server = Server::shared();
        let stage = Stage::small(server);
        let base = stage.workspace.head();
        let agent = stage.agent();
        let first = stage.honest_patch("first");
        stage.score(&agent, "first").expect_code(0);
        stage.score(&agent, "first again").expect_code(0);
        let second = stage.honest_patch("second");
        stage.score(&agent, "second").expect_code(0);
        let wrong = stage.wrong_patch("wrong");
        stage.score(&agent, "wrong").expect_code(1);
        stage
            .workspace
            .git(&["checkout", "-q", "-b", "human", &base]);
        stage
            .workspace
            .write("properties/note.txt", "a maintainer's own\n");
        let human = stage.workspace.commit("oracle only");
        stage.score(&stage.maintainer(), "human");
        // The same commits under another name on the same server.
        let origin = stage.workspace.origin_at(&base);
        let twin = server.register(origin.path());
        let out = stage.out("twin");
        let client = Client::agent(server, &twin, stage.workspace.path());
        let args = ["score", "--head", &first, "--out", out.to_str().unwrap()];
        client.run(&args).expect_code(0);
        World {
            signers: server.signers_file(),
            stage,
            first,
            second,
            wrong,
            human,
            base,
        }
    })
}

/// A copy of one score's files, to do harm to.
struct Files(TempDir);

impl Files {
    fn of(out: &str) -> Self {
        Self::copy(&world().stage.out(out))
    }

    fn copy(folder: &Path) -> Self {
        let copy = tempfile::tempdir().unwrap();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, copy.path().join(path.file_name().unwrap())).unwrap();
        }
        Self(copy)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    /// One verdict's files from another folder, under a name that may be another's.
    fn take(&self, from: &Self, stem: &str, into: &str) {
        for ending in ENDINGS {
            self.write(
                &format!("{into}{ending}"),
                from.read(&format!("{stem}{ending}")),
            );
        }
    }

    /// Join it as a gate would: this key file, this repository, this head.
    fn join(&self, head: &str, more: &[&str]) -> (i32, Value) {
        let world = world();
        let repository = &world.stage.registered.name;
        self.joined(
            &world.signers,
            &[&["--repo", repository, "--head", head], more].concat(),
        )
    }

    fn joined(&self, keys: &Path, more: &[&str]) -> (i32, Value) {
        let mut args = vec!["join", self.0.path().to_str().unwrap(), "--json"];
        args.extend(["--key", keys.to_str().unwrap()]);
        args.extend_from_slice(more);
        let ran = Client::offline(self.0.path()).run(&args);
        let mut events = ran.events();
        assert_eq!(events.len(), 1, "{}", ran.stdout);
        let document = events.remove(0);
        assert_eq!(document["exit"], ran.code, "{document}");
        (ran.code, document)
    }
}

/// It is blocked with this exit code, and a check of this name is what failed.
#[track_caller]
fn blocked((code, document): (i32, Value), exit: i32, check: &str) {
    let failed: Vec<&str> = document["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["result"] == "failed")
        .map(|entry| entry["check"].as_str().unwrap())
        .collect();
    assert_eq!(code, exit, "{document:#}");
    assert_eq!(document["decision"], "MERGE_BLOCKED");
    let join = document["join"].as_str().unwrap();
    assert!(join.starts_with("MERGE_BLOCKED: src_score="), "{join}");
    assert!(
        failed.contains(&check),
        "failed were {failed:?}, not {check}"
    );
}

#[track_caller]
fn merged((code, document): (i32, Value)) {
    assert_eq!(code, 0, "{document:#}");
    assert_eq!(document["join"], "MERGE_OK");
}

#[test]
fn what_is_asked_for_is_merged() {
    let world = world();
    let files = Files::of("first");
    merged(files.join(&world.first, &[]));
    merged(files.join(&world.first, &["--base", &world.base]));
}

#[test]
fn another_head() {
    let world = world();
    blocked(Files::of("first").join(&world.second, &[]), 5, "head");
    blocked(Files::of("second").join(&world.first, &[]), 5, "head");
    blocked(Files::of("second").join(&world.wrong, &[]), 5, "head");
}

#[test]
fn another_repository() {
    let world = world();
    // Same head, same base, same oracle, same server, same key: only the name tells them apart.
    blocked(Files::of("twin").join(&world.first, &[]), 5, "repository");
}

#[test]
fn another_base_and_todays_tip() {
    let server = Server::shared();
    let stage = Stage::small(server);
    let old = stage.workspace.head();
    let agent = stage.agent();
    let head = stage.honest_patch("ours");
    stage.score(&agent, "before").expect_code(0);
    // The branch moves on while the files lie about.
    stage
        .workspace
        .git(&["checkout", "-q", "-b", "theirs", &old]);
    stage.workspace.write("src/other.py", "X = 1\n");
    let tip = stage.workspace.commit("theirs");
    stage.land();
    let name = stage.registered.name.clone();
    let (key, subject) = (server.signers_file(), ["--repo", &name, "--head", &head]);
    let join = |out: &str, base: &[&str]| {
        Files::copy(&stage.out(out)).joined(&key, &[&subject[..], base].concat())
    };
    merged(join("before", &[]));
    merged(join("before", &["--base", &old]));
    blocked(join("before", &["--base", &tip]), 1, "base");
    // Whoever names the older, laxer oracle gets it, and its files say so.
    let out = stage.out("old base");
    let args = [
        "score",
        "--head",
        &head,
        "--base",
        &old,
        "--out",
        out.to_str().unwrap(),
    ];
    agent.run(&args).expect_code(1);
    assert_eq!(words(&out), ["PASS", "PASS", "PASS"]);
    blocked(join("old base", &[]), 1, "base");
    blocked(join("old base", &["--base", &tip]), 1, "base");
    // Against today's tip it is scored anew.
    let out = stage.out("new");
    let args = ["score", "--head", &head, "--out", out.to_str().unwrap()];
    agent.run(&args).expect_code(0);
    merged(join("new", &["--base", &tip]));
    blocked(join("new", &["--base", &old]), 1, "base");
}

#[test]
fn kinds_that_changed_their_names() {
    let world = world();
    let wrong = Files::of("wrong");
    blocked(wrong.join(&world.wrong, &[]), 1, "words");
    // A PASS of the same score stands in for its FAIL.
    for stem in ["oracle_integrity", "flake_lease"] {
        let files = Files::of("wrong");
        files.take(&wrong, stem, "src_score");
        blocked(files.join(&world.wrong, &[]), 5, "statement");
    }
    // All three changed places.
    let (files, first) = (Files::of("first"), Files::of("first"));
    for (stem, into) in STEMS.iter().zip(STEMS.iter().cycle().skip(1)) {
        files.take(&first, stem, into);
    }
    blocked(files.join(&world.first, &[]), 5, "statement");
    // The copy for other gates is no verdict.
    let files = Files::of("first");
    let copy = files.read("src_score.test-result.sigstore.json");
    files.write("src_score.sigstore.json", copy);
    blocked(files.join(&world.first, &[]), 5, "payload");
}

#[test]
fn files_of_two_scores() {
    let world = world();
    // Of another head, of the wrong one, of the other repository, and of the same head scored twice.
    for (from, stem) in [
        ("second", "flake_lease"),
        ("wrong", "flake_lease"),
        ("twin", "oracle_integrity"),
        ("first again", "src_score"),
    ] {
        let files = Files::of("first");
        files.take(&Files::of(from), stem, stem);
        blocked(files.join(&world.first, &[]), 5, "one-set");
    }
    // The good score's verdict among the wrong one's.
    let files = Files::of("wrong");
    files.take(&Files::of("first"), "src_score", "src_score");
    for head in [&world.wrong, &world.first] {
        blocked(files.join(head, &[]), 5, "one-set");
    }
    for (name, check) in [
        ("report.json", "report"),
        ("src_score.test-result.sigstore.json", "test-result"),
    ] {
        let files = Files::of("first");
        files.write(name, Files::of("second").read(name));
        blocked(files.join(&world.first, &[]), 5, check);
    }
}

#[test]
fn an_edited_word() {
    let world = world();
    let files = Files::of("wrong");
    files.write("src_score.txt", "PASS\n");
    blocked(files.join(&world.wrong, &[]), 5, "word");
    for stem in STEMS {
        for word in [
            "PASS",
            "PASS\r\n",
            "PASS\n\n",
            "pass\n",
            "\u{feff}PASS\n",
            "",
            "MAYBE\n",
            "FAIL\n",
            "PASS\nPASS\n",
        ] {
            let files = Files::of("first");
            files.write(&format!("{stem}.txt"), word);
            blocked(files.join(&world.first, &[]), 5, "word");
        }
    }
}

#[test]
fn one_byte_of_any_file() {
    let world = world();
    for stem in STEMS {
        for (ending, check) in [
            (".json", "payload"),
            (".json.sig", "ssh-signature"),
            (".sigstore.json", ""),
        ] {
            let name = format!("{stem}{ending}");
            let whole = Files::of("first").read(&name);
            // Spread over the file; the first and the last byte among them.
            for place in (0..8).map(|n| n * (whole.len() - 1) / 7) {
                let files = Files::of("first");
                let mut bytes = whole.clone();
                bytes[place] ^= 1;
                files.write(&name, &bytes);
                let (code, document) = files.join(&world.first, &[]);
                assert_eq!(code, 5, "{name} at {place}: {document:#}");
                if !check.is_empty() {
                    blocked((code, document), 5, check);
                }
            }
        }
    }
    let files = Files::of("first");
    let mut bytes = files.read("report.json");
    let last = bytes.len() - 2;
    bytes[last] ^= 1;
    files.write("report.json", bytes);
    blocked(files.join(&world.first, &[]), 5, "report");
}

#[test]
fn a_missing_file() {
    let world = world();
    for stem in STEMS {
        for ending in ENDINGS {
            let files = Files::of("first");
            fs::remove_file(files.path(&format!("{stem}{ending}"))).unwrap();
            blocked(files.join(&world.first, &[]), 5, "present");
        }
    }
    let nothing = Files(tempfile::tempdir().unwrap());
    blocked(nothing.join(&world.first, &[]), 5, "present");
    // What is not signed by itself may be left out.
    let files = Files::of("first");
    for name in [
        "report.json",
        "junit.xml",
        "src_score.test-result.sigstore.json",
    ] {
        fs::remove_file(files.path(name)).unwrap();
    }
    merged(files.join(&world.first, &[]));
}

#[test]
fn a_human_change_set_that_was_not_asked_for() {
    let world = world();
    let files = Files::of("human");
    assert_eq!(words(&world.stage.out("human")), ["PASS", "PASS", "PASS"]);
    blocked(files.join(&world.human, &[]), 1, "change-set");
    blocked(
        files.join(&world.human, &["--change-set", "agent"]),
        1,
        "change-set",
    );
    merged(files.join(&world.human, &["--change-set", "human"]));
    let files = Files::of("first");
    blocked(
        files.join(&world.first, &["--change-set", "human"]),
        1,
        "change-set",
    );
}

/// A lease that ends soon makes a PASS that ends with it.
#[test]
fn a_verdict_that_has_expired() {
    let server = Server::shared();
    let repo = Repo::small();
    repo.write(
        "tests/sealed/test_old.py",
        "import pytest\n\n\n@pytest.mark.skip(reason=\"not now\")\ndef test_one():\n    assert 1 == 2\n",
    );
    repo.write(
        "tests/sealed/MANIFEST.txt",
        "tests/sealed/test_core.py\ntests/sealed/test_old.py\n",
    );
    repo.commit("a skip");
    let stage = Stage::of(server, &repo);
    let node = "tests/sealed/test_old.py::test_one";
    let lease = [
        "lease",
        "new",
        node,
        "--owner",
        "m@example.invalid",
        "--expires",
        "45s",
    ];
    let more = [
        "--reason",
        "not now",
        "--signature",
        "AssertionError: assert 1 == 2",
    ];
    let lease = [&lease[..], &more].concat();
    stage.maintainer().run(&lease).expect_code(0);
    stage.workspace.commit("lease");
    stage.land();
    let head = stage.honest_patch("quickly");
    stage.score(&stage.agent(), "x").expect_code(0);
    let files = Files::copy(&stage.out("x"));
    let subject = ["--repo", &stage.registered.name, "--head", &head];
    let keys = server.signers_file();
    merged(files.joined(&keys, &subject));
    until("it expires", || files.joined(&keys, &subject).0 != 0);
    blocked(files.joined(&keys, &subject), 5, "age");
}

#[test]
fn a_key_that_was_rotated_and_one_that_was_revoked() {
    let server = Server::own();
    let stage = Stage::small(&server);
    let head = stage.honest_patch("signed");
    stage.score(&stage.agent(), "old").expect_code(0);
    let (old_pem, before) = (fs::read(server.key_file()).unwrap(), server.signers_file());
    let old_signers = fs::read(&before).unwrap();
    let id = key_id(&stage.out("old"));
    let issued = issued_at(&stage.out("old"));
    // The key that signs cannot be revoked: there would be none.
    let refused = server.try_admin(&["key", "revoke", &id, "--since", &issued]);
    assert!(!refused.status.success());
    server.admin(&["key", "rotate"]);
    let keys = tempfile::tempdir().unwrap();
    let kept = |name: &str, content: &[u8]| {
        let path = keys.path().join(name);
        fs::write(&path, content).unwrap();
        path
    };
    let old_pem = kept("old.pem", &old_pem);
    let old_signers = kept("old_signers", &old_signers);
    stage.score(&stage.agent(), "new").expect_code(0);
    assert_ne!(key_id(&stage.out("new")), id);
    let subject = ["--repo", &stage.registered.name, "--head", &head];
    let join = |out: &str, keys: &Path| Files::copy(&stage.out(out)).joined(keys, &subject);
    // Old verdicts hold with the old key's dates, new ones do not hold with the old key.
    let rotated = server.signers_file();
    merged(join("old", &rotated));
    merged(join("new", &rotated));
    merged(join("new", &server.key_file()));
    blocked(join("old", &server.key_file()), 5, "key");
    blocked(join("new", &old_pem), 5, "key");
    blocked(join("new", &old_signers), 5, "key");
    for stem in STEMS {
        assert_eq!(ssh_keygen(&stage.out("old"), stem, &rotated), Says::Good);
        assert_eq!(ssh_keygen(&stage.out("new"), stem, &old_signers), Says::Bad);
        assert_eq!(openssl(&stage.out("new"), stem, &old_pem), Says::Bad);
    }
    // Two scores of one head, signed by two keys, are not one set.
    let mixed = Files::copy(&stage.out("old"));
    mixed.take(
        &Files::copy(&stage.out("new")),
        "flake_lease",
        "flake_lease",
    );
    blocked(mixed.joined(&rotated, &subject), 5, "one-set");
    // Revoked from before it was signed.
    server.admin(&["key", "revoke", &id, "--since", &issued]);
    let revoked = server.signers_file();
    blocked(join("old", &revoked), 5, "key-dates");
    merged(join("new", &revoked));
    server.shutdown();
}

/// A revocation from a later day on leaves alone what was signed before.
#[test]
fn a_key_that_was_revoked_later() {
    let server = Server::own();
    let stage = Stage::small(&server);
    let head = stage.honest_patch("signed");
    stage.score(&stage.agent(), "old").expect_code(0);
    let id = key_id(&stage.out("old"));
    server.admin(&["key", "rotate"]);
    server.admin(&["key", "revoke", &id, "--since", "2999-01-01T00:00:00Z"]);
    let subject = ["--repo", &stage.registered.name, "--head", &head];
    let files = Files::copy(&stage.out("old"));
    merged(files.joined(&server.signers_file(), &subject));
    server.admin(&["key", "revoke", &id, "--since", "2020-01-01T00:00:00Z"]);
    blocked(
        files.joined(&server.signers_file(), &subject),
        5,
        "key-dates",
    );
    server.shutdown();
}

/// The key that a verdict in this folder says it is signed with.
fn key_id(out: &Path) -> String {
    let envelope = tribunal_tests::plain::envelope(out, "src_score");
    envelope["signatures"][0]["keyid"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn issued_at(out: &Path) -> String {
    let payload: Value =
        serde_json::from_slice(&fs::read(out.join("src_score.json")).unwrap()).unwrap();
    payload["predicate"]["issuedAt"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Bytes are signed, not what they mean: independent tools agree, and every other spelling is refused, by them and by us.
#[test]
fn f60_signed_bytes_are_file_bytes() {
    let case = Case::named("field", "60");
    let made = case.materialize();
    // A name that needs an escape, or none, as one likes: the payload says how each sealed file ran.
    let base = &made.base;
    made.workspace.git(&["checkout", "-q", "-b", "cafe", base]);
    made.workspace.write(
        "tests/sealed/test_café.py",
        "def test_é():\n    assert True\n",
    );
    made.workspace.write(
        "tests/sealed/MANIFEST.txt",
        "tests/sealed/test_café.py\ntests/sealed/test_core.py\n",
    );
    made.workspace.commit("a name");
    let server = Server::shared();
    let stage = Stage::of(server, &made.workspace);
    let head = stage.honest_patch("bytes");
    stage.score(&stage.agent(), "x").expect_code(0);
    assert!(report(&stage.out("x")).to_string().contains("test_é"));
    let (signers, pem) = (server.signers_file(), server.key_file());
    let subject = ["--repo", &stage.registered.name, "--head", &head];
    let out = stage.out("x");
    merged(Files::copy(&out).joined(&signers, &subject));
    for stem in STEMS {
        let name = format!("{stem}.json");
        let bytes = fs::read(out.join(&name)).unwrap();
        assert_eq!(
            bytes,
            envelope_payload(&out, stem),
            "the file is not what is signed"
        );
        assert_eq!(ssh_keygen(&out, stem, &signers), Says::Good);
        assert_eq!(openssl(&out, stem, &pem), Says::Good);
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert!(text.contains('é'), "no name to spell otherwise: {text}");
        let mut spellings = vec![
            format!("{text}\n"),
            text.replace('é', "\\u00e9"),
            reordered(&text),
            text.replacen(':', ": ", 1),
            format!("\u{feff}{text}"),
        ];
        match text.strip_suffix('\n') {
            Some(shorter) => {
                spellings.push(shorter.to_owned());
                spellings.push(format!("{shorter}\r\n"));
            }
            None => spellings.push(format!("{text}\r\n")),
        }
        for spelling in spellings {
            assert_ne!(spelling, text, "that is the same spelling");
            let files = Files::copy(&out);
            files.write(&name, &spelling);
            assert_eq!(ssh_keygen(files.0.path(), stem, &signers), Says::Bad);
            assert_eq!(openssl(files.0.path(), stem, &pem), Says::Bad);
            blocked(files.joined(&signers, &subject), 5, "payload");
        }
    }
    // Two of the three signatures change places.
    let files = Files::copy(&out);
    let (one, two) = (
        files.read("src_score.json.sig"),
        files.read("flake_lease.json.sig"),
    );
    files.write("src_score.json.sig", two);
    files.write("flake_lease.json.sig", one);
    assert_eq!(ssh_keygen(files.0.path(), "src_score", &signers), Says::Bad);
    blocked(files.joined(&signers, &subject), 5, "ssh-signature");
    let files = Files::copy(&out);
    let (one, two) = (
        files.read("src_score.sigstore.json"),
        files.read("flake_lease.sigstore.json"),
    );
    files.write("src_score.sigstore.json", two);
    files.write("flake_lease.sigstore.json", one);
    assert_eq!(openssl(files.0.path(), "src_score", &pem), Says::Bad);
    blocked(files.joined(&signers, &subject), 5, "payload");
}

/// The same document with its first two keys the other way round.
fn reordered(text: &str) -> String {
    let document: Value = serde_json::from_str(text).unwrap();
    let object = document.as_object().unwrap();
    let mut keys: Vec<&String> = object.keys().collect();
    keys.reverse();
    let fields = keys
        .iter()
        .map(|key| format!("{}:{}", serde_json::to_string(key).unwrap(), object[*key]));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}
