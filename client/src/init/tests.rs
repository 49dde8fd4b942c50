#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use super::*;
use crate::workspace::Git;

fn repository() -> (tempfile::TempDir, Workspace) {
    let dir = tempfile::tempdir().unwrap();
    let init = Git::in_folder(dir.path()).output(&["init", "-q"]).unwrap();
    assert!(init.status.success());
    let workspace = Workspace::require(dir.path()).unwrap();
    (dir, workspace)
}

fn write(dir: &Path, path: &str, text: &str) {
    let path = dir.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn an_empty_repository_gets_everything() {
    let (dir, workspace) = repository();
    write(dir.path(), "tests/sealed/test_b.py", "");
    write(dir.path(), "tests/sealed/test_a.py", "");
    write(dir.path(), "src/app.py", "");
    let laid = lay(&workspace, &[], Ci::Both).unwrap();
    assert_eq!(laid.len(), 8);
    assert!(laid.iter().all(|(_, what)| *what == Laid::New));
    let read = |path: &str| fs::read_to_string(dir.path().join(path)).unwrap();
    assert_eq!(
        read("tests/sealed/MANIFEST.txt"),
        "tests/sealed/test_a.py\ntests/sealed/test_b.py\n"
    );
    assert_eq!(read(".github/workflows/tribunal.yml"), Gate::Github.text());
    assert_eq!(read(".gitlab-ci.yml"), Gate::Gitlab.text());
    assert!(
        !read("ci/tribunal.toml").contains('@'),
        "every placeholder is filled in"
    );
}

#[test]
fn the_policy_that_is_laid_is_the_default_one() {
    let defaults = policy_text(&["src/".to_owned()], &[]);
    assert_eq!(
        Policy::parse(defaults.as_bytes()).unwrap(),
        Policy::default()
    );

    let other = policy_text(
        &["a \"b\"/".to_owned(), "parse.py".to_owned()],
        &[Gate::Github],
    );
    let other = Policy::parse(other.as_bytes()).unwrap();
    assert_eq!(other.paths.src, ["a \"b\"/", "parse.py"]);
    assert_eq!(other.paths.protect, [Gate::Github.path()]);
    assert_eq!(other.runner.pythonpath, ["."]);
}

#[test]
fn nothing_that_exists_is_written() {
    let (dir, workspace) = repository();
    let mine = [
        "ci/tribunal.toml",
        "tests/sealed/MANIFEST.txt",
        ".github/workflows/tribunal.yml",
    ];
    for path in mine {
        write(dir.path(), path, "mine\n");
    }
    // A dangling link is something that exists, too: writing through it would land elsewhere.
    std::os::unix::fs::symlink("nowhere", dir.path().join("ci/flake_leases.json")).unwrap();
    let laid = lay(&workspace, &[], Ci::Github).unwrap();
    for (path, what) in laid {
        let was_there = mine.contains(&path) || path == "ci/flake_leases.json";
        assert_eq!(what == Laid::LeftAlone, was_there, "{path}");
    }
    for path in mine {
        assert_eq!(fs::read_to_string(dir.path().join(path)).unwrap(), "mine\n");
    }
    assert!(!dir.path().join("ci/nowhere").exists());

    let again = lay(&workspace, &[], Ci::Github).unwrap();
    assert!(again.iter().all(|(_, what)| *what == Laid::LeftAlone));
}

#[test]
fn src_is_found_or_named() {
    let (dir, _) = repository();
    assert_eq!(src_roots(dir.path(), &[]).unwrap(), ["src/"]);
    write(dir.path(), "toolz/__init__.py", "");
    write(dir.path(), "tests/__init__.py", "");
    write(dir.path(), "parse.py", "");
    assert_eq!(src_roots(dir.path(), &[]).unwrap(), ["toolz/"]);
    let named = ["lib/".to_owned(), "lib2".to_owned(), "parse.py".to_owned()];
    assert_eq!(
        src_roots(dir.path(), &named).unwrap(),
        ["lib/", "lib2/", "parse.py"]
    );
    assert!(src_roots(dir.path(), &["../x".to_owned()]).is_err());
}

#[test]
fn the_ci_is_guessed_from_remotes_and_files() {
    let (dir, workspace) = repository();
    let guess = || wanted_gates(&workspace, dir.path(), Ci::Auto).unwrap();
    assert_eq!(guess(), [Gate::Github]);
    let git = Git::in_folder(dir.path());
    git.bytes(&["remote", "add", "origin", "git@gitlab.example:a/b.git"])
        .unwrap();
    assert_eq!(guess(), [Gate::Gitlab]);
    fs::create_dir(dir.path().join(".github")).unwrap();
    assert_eq!(guess(), [Gate::Github]);
}
