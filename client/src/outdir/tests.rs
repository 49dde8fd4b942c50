#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use super::*;
use std::collections::BTreeMap;
use std::io::BufRead as _;
use std::process::{Command, Stdio};

fn set(word: &str) -> Vec<OutFile> {
    // Different names too, so that a mix would show in the listing as well as in the contents.
    [
        "src_score.txt",
        "oracle_integrity.txt",
        "flake_lease.txt",
        "report.json",
    ]
    .into_iter()
    .map(str::to_owned)
    .chain([format!("src_score.{word}.json")])
    .map(|name| OutFile {
        name,
        content: word.repeat(5000).into_bytes(),
    })
    .collect()
}

fn read(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap())
        .map(|e| {
            (
                e.file_name().into_string().unwrap(),
                fs::read(e.path()).unwrap(),
            )
        })
        .collect()
}

fn is_whole(folder: &Path, word: &str) -> bool {
    read(folder) == set(word).into_iter().map(|f| (f.name, f.content)).collect()
}

/// Files in hidden siblings; the folder itself is not hidden.
fn files_beside(parent: &Path) -> usize {
    fs::read_dir(parent)
        .unwrap()
        .flatten()
        .filter(|e| e.file_name().to_string_lossy().starts_with('.'))
        .map(|e| fs::read_dir(e.path()).map_or(0, Iterator::count))
        .sum()
}

fn siblings(parent: &Path) -> usize {
    fs::read_dir(parent).unwrap().count()
}

#[test]
fn first_and_second_score_leave_exactly_their_files() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("deep/ci_out");
    publish(&out, &set("one")).unwrap();
    assert!(is_whole(&out, "one"));
    publish(&out, &set("two")).unwrap();
    assert!(is_whole(&out, "two"));
    assert_eq!(
        siblings(&dir.path().join("deep")),
        1,
        "nothing stays beside it"
    );
}

#[test]
fn two_steps_serve_where_the_file_system_cannot_exchange() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("ci_out");
    publish(&out, &set("one")).unwrap();
    let fresh = tempfile::tempdir_in(dir.path()).unwrap();
    for file in set("two") {
        fs::write(fresh.path().join(file.name), file.content).unwrap();
    }
    replace_in_two_steps(fresh, &out).unwrap();
    assert!(is_whole(&out, "two"));
    assert_eq!(siblings(dir.path()), 1);
}

#[test]
fn a_folder_with_other_things_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("main.py"), "x").unwrap();
    assert!(matches!(
        publish(dir.path(), &set("one")),
        Err(OutError::Foreign { .. })
    ));
    assert!(dir.path().join("main.py").exists());
    let with_folder = tempfile::tempdir().unwrap();
    fs::create_dir(with_folder.path().join("src_score.d")).unwrap();
    assert!(publish(with_folder.path(), &set("one")).is_err());
    let file = dir.path().join("main.py");
    assert!(matches!(
        publish(&file, &set("one")),
        Err(OutError::NotAFolder(_))
    ));
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["../x", "a/b", "", ".hidden", "..", "a\nb", "/etc/passwd"] {
        let file = OutFile {
            name: name.to_owned(),
            content: Vec::new(),
        };
        assert!(matches!(
            publish(&dir.path().join("o"), &[file]),
            Err(OutError::Name(_))
        ));
    }
    assert_eq!(siblings(dir.path()), 0);
}

#[test]
fn a_symlink_to_a_folder_is_followed_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("real")).unwrap();
    std::os::unix::fs::symlink("real", dir.path().join("ci_out")).unwrap();
    publish(&dir.path().join("ci_out"), &set("one")).unwrap();
    assert!(dir.path().join("ci_out").is_symlink());
    assert!(is_whole(&dir.path().join("real"), "one"));
}

#[test]
fn a_kill_in_the_middle_leaves_the_old_or_the_new_never_a_mix() {
    const CHILD: &str = "TRIBUNAL_TEST_PUBLISH_FOR_EVER";
    if let Ok(out) = std::env::var(CHILD) {
        // The child's part: this same test, started again below.
        loop {
            for word in ["two", "one"] {
                publish(Path::new(&out), &set(word)).unwrap();
                io::stdout().write_all(b"published\n").unwrap();
            }
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("ci_out");
    publish(&out, &set("one")).unwrap();
    let mut seen = [0, 0];
    for round in 0..40 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture"])
            .arg("outdir::tests::a_kill_in_the_middle_leaves_the_old_or_the_new_never_a_mix")
            .env(CHILD, &out)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = io::BufReader::new(child.stdout.take().unwrap())
            .lines()
            .map(Result::unwrap)
            .filter(|line| line.ends_with("published"));
        assert!(lines.by_ref().take(1 + round % 3).count() > 0);
        // Kill it at ever another point: when the hidden sibling holds 0, 1, … files, or is being removed.
        for _ in 0..2_000 {
            if files_beside(dir.path()) >= round % 7 {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let (one, two) = (is_whole(&out, "one"), is_whole(&out, "two"));
        assert!(one != two, "round {round}: {:?}", read(&out).keys());
        seen[usize::from(two)] += 1;
    }
    assert!(seen[0] > 0 && seen[1] > 0, "both were seen: {seen:?}");
    publish(&out, &set("one")).unwrap();
    assert_eq!(
        siblings(dir.path()),
        1,
        "what the killed ones left is swept"
    );
}
