//! Field cases that are tables over their inputs, or that need what the lease tool gives.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends at the first surprise"
)]

use serde_json::Value;
use std::collections::BTreeSet;
use tribunal_core::id::UnixTime;
use tribunal_core::lease::{Functions, LeaseFile, ShortDigest, standing};
use tribunal_core::outcome::FunctionDigest;
use tribunal_core::reason::Reason;
use tribunal_tests::client::{report, words};
use tribunal_tests::expect::score_again;
use tribunal_tests::{Case, Materialized, Ran, Repo, Server, Stage, Wire};

/// What the server's interpreter makes of this one function, as `lease new` writes it.
const DIGEST: &str = "v2:cp313:0000000000000000000000000000000000000000000000000000000000000000";
const NET: &str = "tests/sealed/test_net.py::test_net";

fn lease_file(expires_at: &Value) -> String {
    serde_json::json!({ "leases": [{
        "qualname": "test_net.test_net",
        "bytecode_hash": DIGEST,
        "failure_signature": "AssertionError: assert 1 == 2",
        "expires_at": expires_at,
        "owner": "maintainer@example.invalid",
        "reason": "upstream flake",
    }] })
    .to_string()
}

/// The whole table at its own time, which a real gate's clock will not show again.
#[test]
fn f34_every_spelling_at_the_tables_own_time() {
    let case = Case::named("field", "34");
    let forms = std::fs::read(case.folder().join("forms.json")).unwrap();
    let forms: Vec<Value> = serde_json::from_slice(&forms).unwrap();
    assert_eq!(forms.len(), 12);
    let gate = UnixTime(1_796_083_200);
    assert_eq!(gate.rfc3339(), "2026-12-01T00:00:00Z");
    for form in forms {
        let (value, right) = (&form["expires_at"], form["right"].as_str().unwrap());
        let read = match LeaseFile::parse(Some(lease_file(value).as_bytes())) {
            Ok(file) => {
                let lease = &file.leases()[0];
                let digests = [FunctionDigest {
                    file: "tests/sealed/test_net.py".parse().unwrap(),
                    qualname: "test_net".to_owned(),
                    v2: DIGEST.to_owned(),
                    short: String::new(),
                }];
                let functions = Functions {
                    digests: &digests,
                    tag: "cp313",
                };
                let file = &digests[0].file;
                let short = ShortDigest::Warned;
                let (faults, _) = standing(lease, file, "test_net", functions, short, gate);
                let reasons: Vec<Reason> = faults.iter().map(|fault| fault.reason).collect();
                match reasons.as_slice() {
                    [] => "valid",
                    [Reason::LeaseExpired] => "expired",
                    other => panic!("{value}: {other:?}"),
                }
            }
            Err(error) => {
                let told = error.to_string();
                assert!(
                    told.contains("expires_at") && told.contains("test_net.test_net"),
                    "{told}"
                );
                "error"
            }
        };
        // "error or valid", "lease file error", "valid", "expired": the first words say it.
        let fits = match right.split([' ', ',', ':', '(']).next().unwrap() {
            "error" => read == "error" || read == "valid",
            "lease" => read == "error",
            word => read == word,
        };
        assert!(fits, "{value} was read as {read}, right is {right}");
    }
}

/// A stage whose protected branch is this case's base, its head ignored.
fn stage_of(case: &Case) -> Stage<'static> {
    let made = case.materialize();
    made.workspace
        .git(&["checkout", "-q", "-B", "base", &made.base]);
    Stage::of(Server::shared(), &made.workspace)
}

/// Commit these files on top of the protected tip and score that as the maintainer.
fn proposed(stage: &Stage<'_>, name: &str, files: &[(&str, &str)]) -> Ran {
    stage
        .workspace
        .git(&["checkout", "-q", "--detach", "origin/main"]);
    for (path, content) in files {
        stage.workspace.write(path, content);
    }
    stage.workspace.commit(name);
    let args = ["score", "--change-set", "human", "--out"];
    let out = stage.out(name);
    stage
        .maintainer()
        .run(&[&args[..], &[out.to_str().unwrap()]].concat())
}

fn flake_lease(stage: &Stage<'_>, name: &str) -> (String, String) {
    let out = stage.out(name);
    let [src, oracle, lease] = words(&out);
    assert_eq!([src, oracle], ["PASS", "PASS"]);
    (lease, report(&out)["verdicts"].to_string())
}

/// The same kinds of spelling through the real thing, around the real time.
#[test]
fn f34_spellings_before_a_real_gate() {
    let stage = stage_of(&Case::named("field", "34"));
    stage
        .maintainer()
        .run(&[
            "lease",
            "new",
            NET,
            "--owner",
            "m@example.invalid",
            "--expires",
            "2d",
            "--reason",
            "upstream flake",
        ])
        .expect_code(0);
    let leases = std::fs::read(stage.workspace.path().join("ci/flake_leases.json")).unwrap();
    let leases: Value = serde_json::from_slice(&leases).unwrap();
    let now = std::time::UNIX_EPOCH
        .elapsed()
        .unwrap()
        .as_secs()
        .cast_signed();
    // In a zone two hours ahead an hour to come reads like three hours to come; an hour ago like one to come.
    let ahead = |seconds: i64| {
        let local = UnixTime(now + seconds + 7200).rfc3339();
        Value::from(local.replace('Z', "+02:00"))
    };
    for (name, value, word, reason) in [
        ("in an hour", ahead(3600), "PASS", ""),
        ("an hour ago", ahead(-3600), "FAIL", "lease-expired"),
        ("this second", Value::from(now), "FAIL", "lease-expired"),
        ("null", Value::Null, "FAIL", "lease-file-invalid"),
        (
            "a date",
            Value::from("2999-01-01"),
            "FAIL",
            "lease-file-invalid",
        ),
    ] {
        let mut leases = leases.clone();
        leases["leases"][0]["expires_at"] = value;
        let text = leases.to_string();
        proposed(&stage, name, &[("ci/flake_leases.json", &text)]);
        let (said, why) = flake_lease(&stage, name);
        assert_eq!(said, word, "{name}: {why}");
        assert!(why.contains(reason), "{name}: {why}");
        assert!(
            word == "PASS" || why.contains("expires_at"),
            "{name}: {why}"
        );
    }
}

/// With a skip, so that there is something to lease.
fn skipped(source: &str) -> String {
    let marked = source.replace(
        "\ndef test_",
        "\n@pytest.mark.skip(reason=\"x\")\ndef test_",
    );
    let marked = if marked == source {
        format!("@pytest.mark.skip(reason=\"x\")\n{source}")
    } else {
        marked
    };
    format!("import pytest\n{marked}")
}

/// The repository of a case, with this sealed file in its protected branch.
fn with_sealed(case: &Case, path: &str, source: &str) -> Stage<'static> {
    let made = case.materialize();
    let repo: Repo = made.workspace;
    repo.git(&["checkout", "-q", "-B", "base", &made.base]);
    repo.write(path, source);
    repo.write(
        "tests/sealed/MANIFEST.txt",
        format!("tests/sealed/test_core.py\n{path}\n"),
    );
    repo.commit("one more sealed file");
    Stage::of(Server::shared(), &repo)
}

fn digest(stage: &Stage<'_>, commit: &str, qualname: &str) -> String {
    let token = &stage.registered.maintainer;
    let cases = Wire::new(stage.server, &stage.registered, token)
        .cases(commit)
        .unwrap();
    let case = cases
        .into_iter()
        .find(|case| case.qualname == qualname)
        .unwrap();
    assert!(case.bytecode_digest.starts_with("v2:cp313:"), "{case:?}");
    case.bytecode_digest
}

/// For a case that passes when it is made to speak: then any signature will do.
const ANY: [&str; 8] = [
    "--owner",
    "m@example.invalid",
    "--expires",
    "9d",
    "--reason",
    "upstream flake",
    "--signature",
    "AssertionError: assert 3 == 4",
];

#[test]
fn f35_whatever_changes_what_a_test_says_voids_its_lease() {
    const PATH: &str = "tests/sealed/test_sum.py";
    let case = Case::named("field", "35");
    let source = |n: u8| {
        let path = case.folder().join(format!("v{n}.py"));
        skipped(&std::fs::read_to_string(path).unwrap())
    };
    let stage = with_sealed(&case, PATH, &source(1));
    let node = format!("{PATH}::test_sum");
    let lease = [&["lease", "new", &node], &ANY[..]].concat();
    stage.maintainer().run(&lease).expect_code(0);
    stage.workspace.commit("a lease for v1");
    stage.land();
    let mut digests = BTreeSet::from([digest(&stage, "", "test_sum.test_sum")]);
    for n in [2, 3, 4] {
        let name = format!("v{n}");
        proposed(&stage, &name, &[(PATH, &source(n))]).expect_code(1);
        let (word, why) = flake_lease(&stage, &name);
        assert_eq!(word, "FAIL", "{why}");
        assert!(why.contains("lease-digest-mismatch"), "{why}");
        digests.insert(digest(&stage, &stage.workspace.head(), "test_sum.test_sum"));
    }
    assert_eq!(digests.len(), 4, "{digests:?}");
    // And on v1 it holds, whatever else changes in the file.
    let other = format!("{}\n\ndef test_other():\n    pass\n", source(1));
    proposed(&stage, "v1", &[(PATH, &other)]).expect_code(0);
    assert_eq!(flake_lease(&stage, "v1").0, "PASS");
}

#[test]
fn f37_a_digest_is_the_same_in_every_process() {
    const PATH: &str = "tests/sealed/test_nested.py";
    let case = Case::named("field", "37");
    let source = std::fs::read_to_string(case.folder().join("nested.py")).unwrap();
    let stage = with_sealed(&case, PATH, &skipped(&source));
    let node = format!("{PATH}::test_nested");
    let lease = [&["lease", "new", &node], &ANY[..6]].concat();
    stage.maintainer().run(&lease).expect_code(0);
    let leased = stage.workspace.commit("a lease");
    stage.land();
    let mut digests = BTreeSet::from([digest(&stage, "", "test_nested.test_nested")]);
    // Another sealed tree is another room, so another process; nothing of the answer is remembered.
    for n in 1..7 {
        stage
            .workspace
            .git(&["checkout", "-q", "--detach", &leased]);
        stage
            .workspace
            .write("fixtures/sealed/n.txt", n.to_string());
        let commit = stage.workspace.commit("another tree");
        stage.send(&stage.registered.maintainer, &commit);
        digests.insert(digest(&stage, &commit, "test_nested.test_nested"));
    }
    assert_eq!(digests.len(), 1, "{digests:?}");
    stage
        .workspace
        .git(&["checkout", "-q", "--detach", &leased]);
    stage.honest_patch("the lease keeps matching");
    stage.score(&stage.agent(), "x").expect_code(0);
    stage.expect("x", ["PASS", "PASS", "PASS"]);
}

#[test]
fn f39_a_signature_without_what_changes_every_time() {
    let case = Case::named("field", "39");
    let made = case.materialize();
    let repo = made.workspace;
    let src = std::fs::read_to_string(case.folder().join("head/src/calc.py")).unwrap();
    // `@compute` stands for what the tool gives; so the tool is asked for it.
    repo.git(&["checkout", "-q", "-B", "base", &made.base]);
    repo.write("ci/flake_leases.json", "{\"leases\": []}\n");
    repo.commit("before the lease");
    let stage = Stage::of(Server::shared(), &repo);
    let lease = ["lease", "new", NET, "--owner", "maintainer@example.org"];
    let more = [
        "--expires",
        "2030-01-01T00:00:00Z",
        "--reason",
        "upstream flake",
    ];
    let ran = stage.maintainer().run(&[&lease[..], &more].concat());
    ran.expect_code(0);
    assert!(
        !ran.stderr.contains("lease-signature-missing"),
        "{}",
        ran.stderr
    );
    let path = stage.workspace.path().join("ci/flake_leases.json");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("TimeoutError: "), "{text}");
    let scored = |name: &str, text: &str, wanted: &Value| {
        stage
            .workspace
            .git(&["checkout", "-q", "--detach", "origin/main"]);
        stage.workspace.write("ci/flake_leases.json", text);
        let base = stage.workspace.commit(name);
        stage.land();
        stage.workspace.write("src/calc.py", &src);
        let head = stage.workspace.commit("head");
        let made = Materialized {
            workspace: stage.workspace.cloned(),
            origin: stage.workspace.origin_at(&base),
            base,
            head,
        };
        score_again(stage.server, &stage.registered, &made).meets(wanted);
    };
    scored("leased", &text, case.expect());
    // So loose that another failure of the same test would do, it is not.
    let other = text.replace("TimeoutError: ", "AssertionError: ");
    let mut wanted = case.expect().clone();
    wanted["flake_lease"] = "FAIL".into();
    wanted["reason_contains"] = "lease-signature-mismatch".into();
    scored("another failure", &other, &wanted);
}
