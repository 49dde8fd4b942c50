//! Real libraries with their own suites as the oracle: a policy for their folders is all they need.
//!
//! Sources come from PyPI by pip, pinned by hash, and are kept under the target folder. See `tests/libraries/README.md`.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use serde_json::Value;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use tribunal_tests::client::{report, words};
use tribunal_tests::{Repo, Server, Stage, binaries};

fn laid() -> PathBuf {
    binaries::root().join("tests/libraries")
}

/// A library as its source distribution has it.
struct Library {
    name: &'static str,
    version: &'static str,
    sha256: &'static str,
    /// A file of the product, what it says, and what a mistake would make of that.
    bug: (&'static str, &'static str, &'static str),
    /// A case that sees the mistake.
    seen_by: &'static str,
    /// So many cases at least.
    cases: usize,
    /// Cases that are red as released, because of what a sealed tree is; the report has to say so.
    red_on_base: &'static [&'static str],
}

impl Library {
    /// Its unpacked source distribution, fetched once.
    fn source(&self) -> PathBuf {
        let folder = binaries::cache().join("libraries");
        fs::create_dir_all(&folder).unwrap();
        let lock = File::create(folder.join("lock")).unwrap();
        lock.lock().unwrap();
        let unpacked = folder.join(format!("{}-{}", self.name, self.version));
        if unpacked.is_dir() {
            return unpacked;
        }
        let work = tempfile::tempdir_in(&folder).unwrap();
        let wanted = work.path().join("requirement.txt");
        let line = format!(
            "{}=={} --hash=sha256:{}\n",
            self.name, self.version, self.sha256
        );
        fs::write(&wanted, line).unwrap();
        run(Command::new("python3")
            .args(["-m", "pip", "download", "-q", "--disable-pip-version-check"])
            .args([
                "--no-deps",
                "--no-binary",
                ":all:",
                "--require-hashes",
                "-r",
            ])
            .arg(&wanted)
            .arg("-d")
            .arg(work.path()));
        let archive = format!("{}-{}.tar.gz", self.name, self.version);
        run(Command::new("tar")
            .args(["--no-same-owner", "-xzf"])
            .arg(work.path().join(archive))
            .arg("-C")
            .arg(work.path()));
        fs::rename(work.path().join(unpacked.file_name().unwrap()), &unpacked).unwrap();
        unpacked
    }

    /// A repository of it with a policy, a manifest and no lease, known to the server.
    fn stage(&self, image: &str) -> Stage<'static> {
        let repo = Repo::empty();
        copy(&self.source(), repo.path());
        let policy = fs::read_to_string(laid().join(format!("{}.toml", self.name))).unwrap();
        repo.write("ci/tribunal.toml", policy.replace("IMAGE", image));
        repo.write("ci/flake_leases.json", "{\"leases\": []}\n");
        tribunal_tests::Client::offline(repo.path())
            .run(&["manifest", "--write"])
            .expect_code(0);
        repo.commit("as it was released");
        Stage::of(Server::shared(), &repo)
    }

    fn cases(&self, report: &Value) -> usize {
        let cases = report["cases"].as_array().unwrap();
        assert!(cases.len() >= self.cases, "only {} cases", cases.len());
        cases.len()
    }
}

#[track_caller]
fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
}

fn copy(from: &Path, to: &Path) {
    run(Command::new("cp").arg("-a").arg(from.join(".")).arg(to));
}

/// The runner image with what the suites import, built once.
fn image() -> &'static str {
    static IMAGE: OnceLock<String> = OnceLock::new();
    IMAGE.get_or_init(|| {
        let lock = File::create(binaries::cache().join("lock")).unwrap();
        let server = Server::shared();
        lock.lock().unwrap();
        let requirements = laid().join("requirements.txt");
        let requirements = requirements.to_str().unwrap();
        let built = server.admin(&["image", "build", "--requirements", requirements, "--json"]);
        let built: Value = serde_json::from_str(&built).unwrap();
        built["tag"].as_str().unwrap().to_owned()
    })
}

/// The cases of a class, by node id.
fn of_class(report: &Value, class: &str) -> Vec<String> {
    let cases = report["cases"].as_array().unwrap().iter();
    let cases = cases.filter(|case| case["class"] == class);
    cases
        .map(|case| case["node"].as_str().unwrap().to_owned())
        .collect()
}

/// Unchanged but for a comment it is as good as it was; with the mistake it is blocked, and the case is named.
#[track_caller]
fn judged(library: &Library, image: &str) {
    let stage = library.stage(image);
    let agent = stage.agent();
    let (path, right, wrong) = library.bug;
    let text = fs::read_to_string(stage.workspace.path().join(path)).unwrap();
    assert_eq!(text.matches(right).count(), 1, "{path} says {right:?} once");

    stage.workspace.write(path, format!("{text}\n# a note\n"));
    stage.workspace.commit("a comment");
    let ran = stage.score(&agent, "unchanged");
    let unchanged = report(&stage.out("unchanged"));
    let all = library.cases(&unchanged);
    assert_eq!(of_class(&unchanged, "stable red"), library.red_on_base);
    assert_eq!(of_class(&unchanged, "mixed"), [""; 0]);
    if library.red_on_base.is_empty() {
        ran.expect_code(0);
        assert_eq!(words(&stage.out("unchanged")), ["PASS", "PASS", "PASS"]);
        stage.join("unchanged", &[]).expect_code(0);
    } else {
        ran.expect_code(1);
        let told = ran.stdout.matches("also red on base").count();
        assert_eq!(told, library.red_on_base.len(), "{}", ran.stdout);
    }

    stage.workspace.write(path, text.replace(right, wrong));
    stage.workspace.commit("a mistake");
    let ran = stage.score(&agent, "mistaken");
    ran.expect_code(1);
    assert!(ran.stdout.contains(library.seen_by), "{}", ran.stdout);
    assert_eq!(words(&stage.out("mistaken"))[0], "FAIL");
    let mistaken = report(&stage.out("mistaken"));
    assert_eq!(library.cases(&mistaken), all);
    let mut reds = of_class(&mistaken, "stable red");
    reds.retain(|node| !library.red_on_base.contains(&node.as_str()));
    assert!(
        reds.iter().any(|node| node.contains(library.seen_by)),
        "{reds:?}"
    );
    assert!(
        reds.len() < all / 10,
        "it broke nearly everything: {reds:?}"
    );
}

#[test]
fn humanize() {
    let library = Library {
        name: "humanize",
        version: "4.12.3",
        sha256: "8430be3a615106fdfceb0b2c1b41c4c98c6b0fc5cc59663a5539b111dd325fb0",
        bug: ("src/humanize/number.py", "in (11, 12, 13)", "in (11, 12)"),
        seen_by: "test_ordinal",
        cases: 500,
        red_on_base: &[],
    };
    judged(&library, image());
}

#[test]
fn tomlkit() {
    let library = Library {
        name: "tomlkit",
        version: "0.13.3",
        sha256: "430cf247ee57df2b94ee3fbe588e71d362a941ebb545dec29b53961d61add2a1",
        bug: ("tomlkit/_utils.py", "offset = -offset", "offset = +offset"),
        seen_by: "rfc3339",
        cases: 500,
        red_on_base: &["tests/test_toml_file.py::test_toml_file"],
    };
    judged(&library, image());
}

#[test]
fn toolz() {
    let library = Library {
        name: "toolz",
        version: "1.0.0",
        sha256: "2c86e3d9a04798ac556793bced838816296a2f085017664e4995cb40a1047a02",
        bug: (
            "toolz/itertoolz.py",
            "return itertools.islice(seq, n, None)",
            "return itertools.islice(seq, n + 1, None)",
        ),
        seen_by: "test_itertoolz.py::test_drop",
        cases: 150,
        red_on_base: &[],
    };
    judged(&library, "tribunal/python:3.13");
}
