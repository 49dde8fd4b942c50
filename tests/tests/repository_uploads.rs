//! Uploads that mean harm, against the room on disk: each is one refusal within its limits, and nothing stays behind.

#![expect(clippy::unwrap_used, reason = "a test fails loudly, where it stands")]

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use tribunal_server::repository::UploadLimits;
use tribunal_tests::Repo;
use tribunal_tests::pack::{Pack, bundle};
use tribunal_tests::world::{World, code, feed, id};

/// Limits small enough for a test to reach.
fn tight() -> UploadLimits {
    UploadLimits {
        bytes: 8 << 20,
        object_bytes: 16 << 20,
        objects: 50_000,
        seconds: 20,
        memory: 256 << 20,
        kept_bytes: 64 << 20,
    }
}

/// Everything below a directory.
fn files(directory: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else {
                all.push(path.display().to_string());
            }
        }
    }
    all.sort();
    all
}

/// A world with one commit, and its data directory as it was then.
fn begun() -> (World, Repo, String, Vec<String>) {
    let world = World::on_disk();
    let repo = Repo::small();
    let base = repo.head();
    world.publish(&repo, &base);
    let before = files(world.disk().1);
    (world, repo, base, before)
}

fn nothing_stayed(world: &World, before: &[String]) {
    let after = files(world.disk().1);
    let new: Vec<_> = after.iter().filter(|f| !before.contains(f)).collect();
    let only_the_gate = new.iter().all(|file| file.ends_with("/.gate"));
    assert!(only_the_gate, "left behind: {new:?}");
}

/// The most memory that this process, which is the server here, ever had; git's own is limited by the kernel.
fn peak_memory() -> u64 {
    let usage = fs::read_to_string("/proc/self/status").unwrap();
    let line = usage.lines().find(|line| line.starts_with("VmHWM"));
    let kilobytes = line.unwrap().split_whitespace().nth(1).unwrap();
    kilobytes.parse::<u64>().unwrap() << 10
}

#[test]
fn a_delta_bomb_is_refused_within_its_limits() {
    let (world, _repo, base, before) = begun();
    // Each object doubles the one before: a few hundred bytes that mean gigabytes.
    let mut pack = Pack::new();
    let mut size = 1 << 16;
    let mut last = pack.blob(&vec![b'x'; size]);
    for _ in 0..15 {
        last = pack.delta(last, size, &[(0, size), (0, size)]);
        size *= 2;
    }
    let bytes = bundle(&base, &[], &pack.finish());
    assert!(bytes.len() < 16 << 10, "{}", bytes.len());
    let begun = Instant::now();
    let taken = world.send_from("a", &mut &bytes[..], &tight());
    assert_eq!(code(taken), "too-large");
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert!(peak_memory() < 1 << 30);
    nothing_stayed(&world, &before);
}

#[test]
fn a_bomb_of_zeros_is_refused_within_its_limits() {
    let (world, _repo, base, before) = begun();
    let mut pack = Pack::new();
    pack.blob(&vec![0; 200 << 20]);
    let bytes = bundle(&base, &[], &pack.finish());
    assert!(bytes.len() < 1 << 20);
    let taken = world.send_from("a", &mut &bytes[..], &tight());
    assert_eq!(code(taken), "too-large");
    nothing_stayed(&world, &before);
}

#[test]
fn a_long_chain_is_refused() {
    let (world, _repo, base, before) = begun();
    let mut pack = Pack::new();
    let size = 4096;
    let content: Vec<u8> = (0..size)
        .map(|n| u8::try_from(n * n % 251).unwrap())
        .collect();
    let mut last = pack.blob(&content);
    for _ in 0..2000 {
        last = pack.delta(last, size, &[(1, size - 1), (0, 1)]);
    }
    let bytes = bundle(&base, &[], &pack.finish());
    let taken = world.send_from("a", &mut &bytes[..], &tight());
    assert_eq!(code(taken), "too-large");
    nothing_stayed(&world, &before);
}

#[test]
fn more_objects_than_it_says_or_fewer_are_refused() {
    let (world, _repo, base, before) = begun();
    for (claimed, expected) in [(5, "upload-incomplete"), (u32::MAX, "too-large")] {
        let mut pack = Pack::new();
        pack.blob(b"one");
        let bytes = bundle(&base, &[], &pack.finish_claiming(claimed));
        let taken = world.send_from("a", &mut &bytes[..], &tight());
        assert_eq!(code(taken), expected, "{claimed}");
    }
    nothing_stayed(&world, &before);
}

#[test]
fn a_stream_that_never_ends_is_cut_at_the_limit() {
    let (world, _repo, base, before) = begun();
    struct Endless(u64);
    impl std::io::Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            buffer.fill(0x55);
            self.0 += buffer.len() as u64;
            Ok(buffer.len())
        }
    }
    let head = bundle(&base, &[], b"PACK\0\0\0\x02\0\0\0\x05");
    let mut endless = std::io::Read::chain(&head[..], Endless(0));
    let taken = world.send_from("a", &mut endless, &tight());
    // Git sees that it is no pack before the limit is reached, or the limit comes first: both end it.
    assert!(["too-large", "bad-object"].contains(&code(taken).as_str()));
    assert!(endless.get_ref().1.0 <= tight().bytes + (1 << 20));
    nothing_stayed(&world, &before);
}

#[test]
fn a_stream_that_dawdles_is_cut_at_its_time() {
    let (world, _repo, base, before) = begun();
    /// Never says more than one byte in a while, as a client would that holds the line.
    struct Slow(Vec<u8>, Instant);
    impl std::io::Read for Slow {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            if self.1.elapsed() > Duration::from_secs(20) {
                return Ok(0);
            }
            buffer[0] = self.0.pop().unwrap_or(0x55);
            Ok(1)
        }
    }
    let mut pack = Pack::new();
    pack.blob(&vec![0x11; 1 << 20]);
    let bytes = bundle(&base, &[], &pack.finish());
    let limits = UploadLimits {
        seconds: 1,
        bytes: 1 << 40,
        ..tight()
    };
    let begun = Instant::now();
    // What follows the pack is not read for ever either.
    let mut backwards = bytes[..bytes.len() - 30].to_vec();
    backwards.reverse();
    let mut slow = Slow(backwards, begun);
    assert!(world.send_from("a", &mut slow, &limits).is_err());
    assert!(begun.elapsed() < Duration::from_secs(10));
    nothing_stayed(&world, &before);
}

#[test]
fn no_ref_and_no_option_of_a_bundle_means_anything() {
    let (world, repo, base, _) = begun();
    repo.write("src/calc.py", "x = 1\n");
    let head = repo.commit("head");
    let honest = repo.bundle(&head, &[&base]);
    let blank = honest.windows(2).position(|w| w == b"\n\n").unwrap();
    for name in [
        "refs/heads/main",
        "HEAD",
        "--upload-pack=touch /tmp/x",
        "../../../etc/passwd",
        "refs/replace/x",
        "\u{1b}[31m",
    ] {
        let text = format!("# v2 git bundle\n-{base}\n{head} {name}");
        let bytes = [text.as_bytes(), &honest[blank..]].concat();
        assert_eq!(world.send("a", &bytes).unwrap(), [id(&head)], "{name}");
    }
    assert_eq!(world.tip(), base);
    let mirror = world.disk().1.join("repos/product.git");
    let refs = files(&mirror.join("refs"));
    assert_eq!(refs.len(), 1, "{refs:?}");
    assert!(refs[0].ends_with("refs/heads/main"));
    assert!(!mirror.join("packed-refs").exists());
}

#[test]
fn replacements_and_grafts_of_an_upload_do_nothing() {
    let (world, repo, base, _) = begun();
    let calc = repo.git(&["rev-parse", "HEAD:src/calc.py"]);
    repo.write("src/calc.py", "evil\n");
    let head = repo.commit("head");
    let evil = repo.git(&["rev-parse", "HEAD:src/calc.py"]);
    repo.git(&["replace", &calc, &evil]);
    repo.git(&["replace", &base, &head]);
    // Even where the mirror itself holds them, as after a restored backup.
    world.send("a", &repo.bundle(&head, &[])).unwrap();
    let mirror = world.disk().1.join("repos/product.git");
    fs::create_dir_all(mirror.join("refs/replace")).unwrap();
    fs::write(mirror.join("refs/replace").join(&calc), format!("{evil}\n")).unwrap();
    fs::write(mirror.join("info/grafts"), format!("{head}\n")).unwrap();
    let objects = world.open("a");
    let blob = objects.blob(&calc.parse().unwrap(), 1000).unwrap();
    assert_ne!(blob, b"evil\n");
    assert_eq!(
        objects.merge_bases(&id(&base), &id(&head)).unwrap(),
        [id(&base)]
    );
    let merged = objects.merge(&id(&base), &id(&head)).unwrap();
    let tree = repo.git(&[
        "--no-replace-objects",
        "rev-parse",
        &format!("{head}^{{tree}}"),
    ]);
    assert_eq!(merged.tree.as_str(), tree);
}

#[test]
fn a_shallow_or_partial_clone_cannot_send_half_a_history() {
    let (world, repo, base, before) = begun();
    repo.write("src/a", "a\n");
    let middle = repo.commit("middle");
    repo.write("src/b", "b\n");
    let head = repo.commit("head");
    // A pack that lacks a tree of the history it claims: only the last commit's own objects.
    let tree = repo.git(&["rev-parse", &format!("{head}^{{tree}}")]);
    let pack = tribunal_tests::repo::git(repo.path())
        .args(["pack-objects", "-q", "--stdout"])
        .stdin(fs::File::open(list(&repo, &[&head, &tree])).unwrap())
        .output()
        .unwrap();
    assert!(pack.status.success());
    for prerequisites in [&[][..], &[base.as_str()], &[middle.as_str()]] {
        let bytes = bundle(&head, prerequisites, &pack.stdout);
        assert_eq!(code(world.send("a", &bytes)), "missing-prerequisite");
    }
    nothing_stayed(&world, &before);
}

fn list(repo: &Repo, ids: &[&str]) -> std::path::PathBuf {
    let path = repo.path().join(".git/list");
    fs::write(&path, ids.join("\n") + "\n").unwrap();
    path
}

#[test]
fn a_history_that_stays_is_kept_with_what_it_builds_on() {
    let (world, repo, base, _) = begun();
    let (room, _) = world.disk();
    repo.write("src/a", "a\n");
    let first = repo.commit("first");
    world.send("a", &repo.bundle(&first, &[&base])).unwrap();
    repo.git(&["checkout", "-q", "--detach", &base]);
    repo.write("src/c", "c\n");
    let alone = repo.commit("alone");
    world.send("b", &repo.bundle(&alone, &[&base])).unwrap();
    let old = std::time::SystemTime::now() - Duration::from_secs(7200);
    for file in files(&world.disk().1.join("uploads")) {
        let times = fs::FileTimes::new().set_modified(old);
        fs::File::open(file).unwrap().set_times(times).unwrap();
    }
    repo.git(&["checkout", "-q", "--detach", &first]);
    repo.write("src/b", "b\n");
    let second = repo.commit("second");
    world.send("a", &repo.bundle(&second, &[&first])).unwrap();
    assert_eq!(room.gc(Duration::from_secs(9000)).unwrap().uploads, 0);
    let removed = room.gc(Duration::from_secs(3600)).unwrap();
    assert_eq!(removed.uploads, 1);
    assert!(removed.bytes > 0);
    assert_eq!(code(world.open("b").commit(&id(&alone))), "unknown-commit");
    let objects = world.open("a");
    assert!(objects.commit(&id(&first)).is_ok());
    assert!(objects.commit(&id(&second)).is_ok());
    // A long age is no reason to panic.
    assert_eq!(room.gc(Duration::MAX).unwrap().uploads, 0);
    assert_eq!(room.gc(Duration::ZERO).unwrap().uploads, 2);
}

#[test]
fn one_token_keeps_so_much_and_no_more() {
    let (world, repo, base, _) = begun();
    let limits = UploadLimits {
        kept_bytes: 1,
        ..tight()
    };
    repo.write("src/a", "a\n");
    let first = repo.commit("first");
    let bytes = repo.bundle(&first, &[&base]);
    assert!(world.send_from("a", &mut &bytes[..], &limits).is_ok());
    repo.write("src/a", "b\n");
    let second = repo.commit("second");
    let bytes = repo.bundle(&second, &[&base]);
    assert_eq!(
        code(world.send_from("a", &mut &bytes[..], &limits)),
        "quota"
    );
    assert!(world.send_from("b", &mut &bytes[..], &limits).is_ok());
    assert_eq!(world.disk().0.gc(Duration::ZERO).unwrap().uploads, 2);
    assert!(world.send_from("a", &mut &bytes[..], &limits).is_ok());
}

/// Everything at once: uploads, views, merges, and a branch that moves under them.
#[test]
fn many_at_once_do_not_meet() {
    let (world, repo, base, before) = begun();
    let mut work = Vec::new();
    for n in 0..8 {
        repo.git(&["checkout", "-q", "--detach", &base]);
        repo.write(&format!("src/mine_{n}"), format!("{n}\n"));
        let head = repo.commit("head");
        work.push((format!("{n}"), head.clone(), repo.bundle(&head, &[&base])));
    }
    let mut tips = Vec::new();
    repo.git(&["checkout", "-q", "--detach", &base]);
    for n in 0..4 {
        repo.write("src/calc.py", format!("x = {n}\n"));
        tips.push(repo.commit("tip"));
    }
    std::thread::scope(|scope| {
        for (token, head, bundle) in &work {
            let world = &world;
            let base = &base;
            scope.spawn(move || {
                for _ in 0..3 {
                    world.send(token, bundle).unwrap();
                    let tip = world.tip();
                    let objects = world.open(token);
                    let merged = objects.merge(&id(&tip), &id(head)).unwrap();
                    assert!(merged.conflicts.is_empty());
                    assert!(objects.tree(&merged.tree).is_ok());
                    assert_eq!(
                        objects.merge_bases(&id(&tip), &id(head)).unwrap(),
                        [id(base)]
                    );
                }
            });
        }
        for tip in &tips {
            world.publish(&repo, tip);
        }
    });
    assert_eq!(world.tip(), tips[3]);
    world.disk().0.gc(Duration::ZERO).unwrap();
    let left = files(&world.disk().1.join("scratch"));
    assert!(
        left.iter()
            .all(|file| before.contains(file) || file.ends_with("/.gate")),
        "{left:?}"
    );
}

#[test]
fn what_a_killed_server_left_is_swept() {
    let (world, _repo, _base, _) = begun();
    let (room, data) = world.disk();
    let open = world.open("a");
    fs::create_dir_all(data.join("scratch/quarantine-left/objects/pack")).unwrap();
    fs::write(data.join("scratch/quarantine-left/.lock"), "").unwrap();
    assert_eq!(room.sweep().unwrap(), 1);
    assert!(!data.join("scratch/quarantine-left").exists());
    // What is in use stays.
    assert!(open.commit(&id(&world.tip())).is_ok());
    assert_eq!(fs::read_dir(data.join("scratch")).unwrap().count(), 2);
    drop(open);
    assert_eq!(fs::read_dir(data.join("scratch")).unwrap().count(), 1);
}

#[test]
fn sha256_repositories_work_the_same() {
    let world = World::on_disk();
    let (room, _) = world.disk();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("repo");
    let at = path.to_str().unwrap().to_owned();
    let repo = Repo::empty();
    repo.git(&["init", "-q", "-b", "main", "--object-format=sha256", &at]);
    let repo = Repo::made(path, folder);
    repo.write("src/a", "a\n");
    let base = repo.commit("base");
    assert_eq!(base.len(), 64);
    let tip = room.add(&world.name, &at, "main").unwrap();
    assert_eq!(tip.commit, id(&base));
    repo.git(&["checkout", "-q", "-b", "work"]);
    repo.write("src/a", "b\n");
    let head = repo.commit("head");
    let bytes = repo.bundle(&head, &[&base]);
    assert!(bytes.starts_with(b"# v3 git bundle\n@object-format=sha256\n"));
    world.send("a", &bytes).unwrap();
    let objects = world.open("a");
    let (commit, parents) = objects.commit(&id(&head)).unwrap();
    assert_eq!(parents, [id(&base)]);
    assert_eq!(objects.tree(&commit.tree).unwrap().len(), 1);
    assert_eq!(code(objects.commit(&id(&head[..40]))), "unknown-commit");
    let other = Repo::small();
    assert_eq!(
        code(world.send("a", &other.bundle(&other.head(), &[]))),
        "invalid-argument"
    );
}

#[test]
fn a_pack_with_a_huge_tree_is_read_no_further() {
    let (world, repo, base, _) = begun();
    let blob = repo.git(&["rev-parse", "HEAD:src/calc.py"]);
    let mut lines = Vec::new();
    for n in 0..600_000 {
        lines.extend_from_slice(format!("100644 blob {blob}\tf{n:07}\n").as_bytes());
    }
    let tree = feed(&repo, &["mktree"], &lines);
    let commit = repo.git(&["commit-tree", "-p", &base, "-m", "wide", &tree]);
    world.send("a", &repo.bundle(&commit, &[&base])).unwrap();
    let objects = world.open("a");
    let (commit, _) = objects.commit(&id(&commit)).unwrap();
    assert_eq!(code(objects.tree(&commit.tree)), "too-large");
}
