//! `init`, `manifest`, `lease new`, `explain`: what a maintainer runs in a checkout.

use crate::score::Work;
use crate::scripted::{Script, Scripted};
use crate::signed::run_in;
use serde_json::Value;
use std::fs;

const LEASE: [&str; 9] = [
    "lease",
    "new",
    "tests/sealed/test_core.py::test_two[a::b]",
    "--owner",
    "o@example.org",
    "--expires",
    "14d",
    "--reason",
    "flaky clock",
];

#[test]
fn init_lays_and_then_leaves_alone() {
    let work = Work::new();
    let first = run_in(work.path(), &["init", "--ci", "github"]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    assert!(
        first.stdout.lines().all(|line| line.starts_with("new")),
        "{}",
        first.stdout
    );
    let before = fs::read(work.path().join("ci/tribunal.toml")).unwrap();
    let again = run_in(work.path(), &["init", "--ci", "github", "--json"]);
    let document: Value = serde_json::from_str(&again.stdout).unwrap();
    let files = document["files"].as_array().unwrap();
    assert!(
        files.iter().all(|f| f["result"] == "left alone"),
        "{document}"
    );
    assert_eq!(
        fs::read(work.path().join("ci/tribunal.toml")).unwrap(),
        before
    );
    // Outside a repository there is nothing to lay it into.
    let nowhere = tempfile::tempdir().unwrap();
    assert_eq!(run_in(nowhere.path(), &["init"]).code, 64);
}

#[test]
fn manifest_tells_drift_and_writes() {
    let work = Work::new();
    let sealed = work.path().join("tests/sealed/deep");
    fs::create_dir_all(&sealed).unwrap();
    fs::write(sealed.join("test_b.py"), "").unwrap();
    fs::write(sealed.join("helper.py"), "").unwrap();
    fs::write(work.path().join("tests/sealed/a_test.py"), "").unwrap();
    let drift = run_in(work.path(), &["manifest"]);
    assert_eq!(drift.code, 1);
    assert!(
        drift.stdout.starts_with("manifest-drift: "),
        "{}",
        drift.stdout
    );
    assert_eq!(run_in(work.path(), &["manifest", "--write"]).code, 0);
    let manifest = work.path().join("tests/sealed/MANIFEST.txt");
    assert_eq!(
        fs::read_to_string(&manifest).unwrap(),
        "tests/sealed/a_test.py\ntests/sealed/deep/test_b.py\n"
    );
    assert_eq!(run_in(work.path(), &["manifest"]).code, 0);
    // From a folder below, the repository's own list is meant.
    assert_eq!(run_in(&sealed, &["manifest"]).code, 0);
    fs::remove_file(sealed.join("test_b.py")).unwrap();
    assert_eq!(run_in(work.path(), &["manifest"]).code, 1);
    // A policy that does not hold is told, not guessed around.
    fs::create_dir_all(work.path().join("ci")).unwrap();
    fs::write(
        work.path().join("ci/tribunal.toml"),
        "version = 1\n[pathz]\n",
    )
    .unwrap();
    let broken = run_in(work.path(), &["manifest"]);
    assert_eq!(broken.code, 64);
    assert!(broken.stderr.contains("pathz"), "{}", broken.stderr);
}

#[test]
fn a_lease_is_written_with_the_servers_digest() {
    let work = Work::new();
    let server = Scripted::start(Script::new(&work.signed));
    let file = work.path().join("ci/flake_leases.json");

    let dry = work.run(&server, &[&LEASE[..], &["--dry-run"]].concat());
    assert_eq!(dry.code, 0, "{}", dry.stderr);
    assert!(!file.exists());
    let shown: Value = serde_json::from_str(&dry.stdout).unwrap();
    assert_eq!(shown["leases"][0]["qualname"], "test_core.test_two[a::b]");
    assert!(
        dry.stderr.contains("lease-signature-missing"),
        "{}",
        dry.stderr
    );

    let signed = [&LEASE[..], &["--signature", "AssertionError: late"]].concat();
    let written = work.run(&server, &signed);
    assert_eq!(written.code, 0, "{}", written.stderr);
    assert!(
        written.stdout.starts_with("added test_core.test_two[a::b]"),
        "{}",
        written.stdout
    );
    assert!(!written.stderr.contains("warning"), "{}", written.stderr);
    let leases: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let lease = &leases["leases"][0];
    assert_eq!(
        lease["bytecode_hash"],
        format!("v2:cp313:{}", "1".repeat(64))
    );
    assert_eq!(lease["failure_signature"], "AssertionError: late");

    let renewed = work.run(&server, &signed);
    assert!(renewed.stdout.starts_with("renewed "), "{}", renewed.stdout);
    let leases: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(leases["leases"].as_array().unwrap().len(), 1);

    let mut unknown = signed.clone();
    unknown[2] = "tests/test_core.py::test_one";
    let told = work.run(&server, &unknown);
    assert_eq!(told.code, 64);
    assert!(
        told.stderr.contains("tests/sealed/test_core.py::test_one"),
        "{}",
        told.stderr
    );
    let mut bare_date = signed.clone();
    bare_date[6] = "2099-01-01";
    let told = work.run(&server, &bare_date);
    assert_eq!(told.code, 64);
    assert!(told.stderr.contains("expires_at"), "{}", told.stderr);
    server.stop();
}

#[test]
fn modes_are_told_and_the_policy_lists_what_needs_it() {
    let work = Work::new();
    let server = Scripted::start(Script::new(&work.signed));
    let policy = work.path().join("ci/tribunal.toml");
    let told = work.run(&server, &["modes"]);
    assert_eq!(told.code, 1, "{}", told.stderr);
    for line in [
        "shared, without need  tests/sealed/test_a.py",
        "split  tests/sealed/test_b.py",
        "needs-shared  tests/sealed/test_c.py",
        "    tests/sealed/test_c.py::test_4",
        "    and 2 more",
        "shared  tests/sealed/test_d.py",
        "next: tribunal modes --write",
    ] {
        assert!(
            told.stdout.lines().any(|l| l == line),
            "{line}: {}",
            told.stdout
        );
    }
    assert!(!policy.exists());

    fs::create_dir_all(work.path().join("ci")).unwrap();
    let before = "version = 1\n\n[runner] # how\nshared = ['tests/sealed/test_a.py'] # few\n";
    fs::write(&policy, before).unwrap();
    let written = work.run(&server, &["modes", "--write", "--json"]);
    assert_eq!(written.code, 0, "{}", written.stderr);
    let document: Value = serde_json::from_str(&written.stdout).unwrap();
    assert_eq!(document["result"], "written");
    assert_eq!(document["files"][2]["mode"], "needs-shared");
    assert_eq!(
        fs::read_to_string(&policy).unwrap(),
        "version = 1\n\n[runner] # how\nshared = [\"tests/sealed/test_c.py\", \"tests/sealed/test_d.py\"] # few\n"
    );
    let again = work.run(&server, &["modes", "--write", "--json"]);
    let document: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(
        (again.code, document["result"].as_str()),
        (0, Some("equal"))
    );
    server.stop();
}

#[test]
fn explain_needs_a_report() {
    let work = Work::new();
    let out = work.signed.out();
    let ran = run_in(work.path(), &["explain", out.to_str().unwrap()]);
    ran.is(5, "");
    assert!(ran.stderr.contains("report.json"), "{}", ran.stderr);
    // What is no folder is a score's name, and that needs a server.
    assert_eq!(run_in(work.path(), &["explain", "nowhere"]).code, 64);
}

#[test]
fn init_tells_agents_between_its_marks_and_lays_a_skill() {
    let work = Work::new();
    let agents = work.path().join("AGENTS.md");
    fs::write(&agents, "# House rules\n\nBe kind.\n").unwrap();
    let init = ["init", "--ci", "none", "--agents", "--skill", "--json"];
    let result = |path: &str| {
        let ran = run_in(work.path(), &init);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let document: Value = serde_json::from_str(&ran.stdout).unwrap();
        let files = document["files"].as_array().unwrap().clone();
        let of_path = files.into_iter().find(|file| file["path"] == path);
        of_path.unwrap()["result"].as_str().unwrap().to_owned()
    };
    assert_eq!(result("AGENTS.md"), "added");
    let text = fs::read_to_string(&agents).unwrap();
    assert!(text.starts_with("# House rules\n\nBe kind.\n\n<!-- tribunal:begin -->\n"));
    assert!(
        text.contains("`src/`") && text.contains("MERGE_OK"),
        "{text}"
    );
    assert_eq!(result("AGENTS.md"), "left alone");
    assert_eq!(
        fs::read_to_string(&agents).unwrap(),
        text,
        "nothing stands there twice"
    );
    // What somebody wrote around the part stays, what stands in it does not.
    fs::write(
        &agents,
        format!("{}After.\n", text.replace("MERGE_OK", "whatever")),
    )
    .unwrap();
    assert_eq!(result("AGENTS.md"), "renewed");
    assert_eq!(
        fs::read_to_string(&agents).unwrap(),
        format!("{text}After.\n")
    );

    let skill = work.path().join(".agents/skills/tribunal/SKILL.md");
    let laid = fs::read_to_string(&skill).unwrap();
    assert!(
        laid.starts_with("---\nname: tribunal\n") && !laid.contains('@'),
        "{laid}"
    );
    fs::write(&skill, "mine\n").unwrap();
    assert_eq!(result(".agents/skills/tribunal/SKILL.md"), "left alone");
    assert_eq!(fs::read_to_string(&skill).unwrap(), "mine\n");
    let elsewhere = run_in(
        work.path(),
        &["init", "--ci", "none", "--skill", ".claude/skills/"],
    );
    assert_eq!(elsewhere.code, 0, "{}", elsewhere.stderr);
    assert!(
        work.path()
            .join(".claude/skills/tribunal/SKILL.md")
            .is_file()
    );
    let outside = run_in(
        work.path(),
        &["init", "--ci", "none", "--skill", "../skills"],
    );
    assert_eq!(outside.code, 64, "{}", outside.stdout);

    // Marks that are no pair are told, and a link is not followed.
    fs::write(&agents, "<!-- tribunal:begin -->\n").unwrap();
    let odd = run_in(work.path(), &init);
    assert_eq!(odd.code, 64, "{}", odd.stdout);
    assert_eq!(
        fs::read_to_string(&agents).unwrap(),
        "<!-- tribunal:begin -->\n"
    );
    fs::remove_file(&agents).unwrap();
    std::os::unix::fs::symlink("nowhere.md", &agents).unwrap();
    assert_eq!(result("AGENTS.md"), "left alone");
    assert!(!work.path().join("nowhere.md").exists());
}
