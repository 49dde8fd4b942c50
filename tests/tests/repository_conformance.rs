//! One suite for the repository seam: the room on disk and the room in memory must both pass it, fed by real git.

#![expect(clippy::unwrap_used, reason = "a test fails loudly, where it stands")]

use std::fmt::Write as _;
use std::io::Read;
use tribunal_core::git::{GitPath, Mode, Relation};
use tribunal_core::id::{CommitId, Digest};
use tribunal_server::repository::UploadLimits;
use tribunal_tests::Repo;
use tribunal_tests::world::{World, code, feed, id};

macro_rules! both {
    ($($test:ident)+) => {
        mod on_disk {
            $(#[test] fn $test() { super::$test(&super::World::on_disk()); })+
        }
        mod in_memory {
            $(#[test] fn $test() { super::$test(&super::World::in_memory()); })+
        }
    };
}

both! {
    a_name_nobody_registered_is_unknown
    the_tip_follows_the_branch_wherever_it_goes
    commits_are_what_git_says
    only_commits_are_commits
    entries_keep_their_raw_names_and_modes
    uploads_are_seen_by_whom_they_concern
    a_bundle_needs_what_it_builds_on
    a_bundle_names_commits_only
    limits_hold_and_nothing_is_kept
    a_stream_cut_anywhere_keeps_nothing
    malformed_trees_are_refused_by_name
    merge_bases_are_all_of_them
    merges_are_what_git_would_make
}

fn a_name_nobody_registered_is_unknown(world: &World) {
    assert!(world.repository.list().unwrap().is_empty());
    let name = "nobody".parse().unwrap();
    let agent = world.agent("a");
    let room = &world.repository;
    assert_eq!(code(room.refresh(&name)), "unknown-repository");
    assert_eq!(code(room.last_tip(&name)), "unknown-repository");
    assert_eq!(code(room.open(&name, &agent)), "unknown-repository");
    let mut none: &[u8] = b"";
    let taken = room.ingest(&name, &agent, &mut none, &UploadLimits::default());
    assert_eq!(code(taken), "unknown-repository");
}

fn the_tip_follows_the_branch_wherever_it_goes(world: &World) {
    let repo = Repo::small();
    let first = repo.head();
    world.publish(&repo, &first);
    assert_eq!(world.repository.list().unwrap(), vec![world.name.clone()]);
    let tip = world.repository.refresh(&world.name).unwrap();
    assert_eq!(tip.name, "refs/heads/main");
    assert_eq!(tip.commit, id(&first));
    repo.write("src/calc.py", "x = 1\n");
    let second = repo.commit("second");
    world.publish(&repo, &second);
    assert_eq!(world.tip(), second);
    // A force push.
    repo.git(&["checkout", "-q", "--detach", &first]);
    repo.write("src/calc.py", "x = 2\n");
    let other = repo.commit("other");
    world.publish(&repo, &other);
    assert_eq!(world.tip(), other);
    assert_eq!(world.tip(), other);
    let last = world.repository.last_tip(&world.name).unwrap();
    assert_eq!(last.commit.as_str(), other);
    assert_eq!(last.name, "refs/heads/main");
}

fn commits_are_what_git_says(world: &World) {
    let repo = Repo::small();
    let base = repo.head();
    world.publish(&repo, &base);
    repo.git(&["checkout", "-q", "-b", "side"]);
    repo.write("a", "a");
    let side = repo.commit("side\u{e9}\n\nbody");
    repo.git(&["checkout", "-q", "main"]);
    repo.write("b", "b");
    repo.commit("main");
    repo.git(&["merge", "-q", "-m", "both", "side"]);
    let head = repo.head();
    world.send("a", &repo.bundle(&head, &[&base])).unwrap();
    let objects = world.open("a");
    for commit in [&base, &side, &head] {
        let (read, parents) = objects.commit(&id(commit)).unwrap();
        assert_eq!(read.id.as_str(), commit);
        assert_eq!(
            read.tree.as_str(),
            repo.git(&["rev-parse", &format!("{commit}^{{tree}}")])
        );
        let raw = repo.try_git(&["cat-file", "commit", commit]).stdout;
        assert_eq!(read.sha256, Digest::of(&raw));
        let said = repo.git(&["log", "-1", "--format=%P", commit]);
        let said: Vec<_> = said.split_whitespace().map(id).collect();
        assert_eq!(parents, said);
        let said = repo.try_git(&["log", "-1", "--format=%B", commit]).stdout;
        let message = objects.message(&id(commit)).unwrap();
        assert_eq!(message.trim_ascii_end(), said.trim_ascii_end());
    }
}

fn only_commits_are_commits(world: &World) {
    let repo = Repo::small();
    let base = repo.head();
    repo.git(&["tag", "-a", "v1", "-m", "v1"]);
    // The tag object reaches the mirror as little as any ref but the protected one; here it is not even needed.
    world.publish(&repo, &base);
    let objects = world.open("a");
    let tree = repo.git(&["rev-parse", "HEAD^{tree}"]);
    let blob = repo.git(&["rev-parse", "HEAD:src/calc.py"]);
    let tag = repo.git(&["rev-parse", "v1"]);
    assert_eq!(code(objects.commit(&id(&tree))), "not-a-commit");
    assert_eq!(code(objects.message(&id(&tree))), "not-a-commit");
    assert_eq!(code(objects.commit(&id(&blob))), "not-a-commit");
    assert_eq!(code(objects.commit(&id(&tag))), "unknown-commit");
    assert_eq!(code(objects.commit(&id(&"0".repeat(40)))), "unknown-commit");
    assert_eq!(
        code(objects.commit(&id(&format!("{base}{}", "0".repeat(24))))),
        "unknown-commit"
    );
}

fn entries_keep_their_raw_names_and_modes(world: &World) {
    let repo = Repo::small();
    let blob = repo.git(&["rev-parse", "HEAD:src/calc.py"]);
    let empty = repo.git(&["hash-object", "-w", "-t", "blob", "/dev/null"]);
    let mut lines = Vec::new();
    for (mode, kind, object, name) in [
        ("100644", "blob", &blob, &b"caf\xc3\xa9"[..]),
        ("100755", "blob", &blob, b"run\xff\"\\\t"),
        ("120000", "blob", &empty, b"link"),
        ("160000", "commit", &repo.head(), b"module"),
        ("100644", "blob", &blob, b"line\nbreak"),
    ] {
        lines.extend_from_slice(format!("{mode} {kind} {object}\t").as_bytes());
        lines.extend_from_slice(name);
        lines.push(0);
    }
    let tree = feed(&repo, &["mktree", "-z", "--missing"], &lines);
    let commit = repo.git(&["commit-tree", "-m", "odd", &tree]);
    world.publish(&repo, &commit);
    let objects = world.open("a");
    let (read, _) = objects.commit(&id(&commit)).unwrap();
    let mut entries = objects.tree(&read.tree).unwrap();
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    let seen: Vec<_> = entries.iter().map(|e| (&e.name[..], e.mode)).collect();
    assert_eq!(
        seen,
        [
            (&b"caf\xc3\xa9"[..], Mode::File),
            (b"line\nbreak", Mode::File),
            (b"link", Mode::Symlink),
            (b"module", Mode::Gitlink),
            (b"run\xff\"\\\t", Mode::Executable),
        ]
    );
    let file = &entries[0].id;
    let content = repo.try_git(&["cat-file", "blob", &blob]).stdout;
    let size = content.len() as u64;
    assert_eq!(objects.blob_size(file).unwrap(), size);
    assert_eq!(objects.blob(file, size).unwrap(), content);
    assert_eq!(code(objects.blob(file, size - 1)), "too-large");
    assert_eq!(objects.blob(&entries[2].id, 0).unwrap(), b"");
}

fn uploads_are_seen_by_whom_they_concern(world: &World) {
    let repo = Repo::small();
    let base = repo.head();
    world.publish(&repo, &base);
    repo.write("src/calc.py", "x = 1\n");
    let head = repo.commit("head");
    let named = world.send("a", &repo.bundle(&head, &[&base])).unwrap();
    assert_eq!(named, [id(&head)]);
    assert!(world.open("a").commit(&id(&head)).is_ok());
    assert_eq!(code(world.open("b").commit(&id(&head))), "unknown-commit");
    assert!(
        world
            .open_as(world.maintainer("c"))
            .commit(&id(&head))
            .is_ok()
    );
    assert!(world.open_as(world.ci("d")).commit(&id(&head)).is_ok());
    // The branch stays where it was.
    assert_eq!(world.tip(), base);
    // Another token's upload is no ground to build on.
    repo.write("src/calc.py", "x = 2\n");
    let next = repo.commit("next");
    let bundle = repo.bundle(&next, &[&head]);
    assert_eq!(code(world.send("b", &bundle)), "missing-prerequisite");
    assert_eq!(code(world.open("b").commit(&id(&next))), "unknown-commit");
    assert!(world.send("a", &bundle).is_ok());
    assert!(world.open("a").commit(&id(&next)).is_ok());
    // The same once more is nothing new.
    assert!(world.send("a", &bundle).is_ok());
}

fn a_bundle_needs_what_it_builds_on(world: &World) {
    let repo = Repo::small();
    let base = repo.head();
    world.publish(&repo, &base);
    repo.write("src/calc.py", "x = 1\n");
    let middle = repo.commit("middle");
    repo.write("src/calc.py", "x = 2\n");
    let head = repo.commit("head");
    let bundle = repo.bundle(&head, &[&middle]);
    assert_eq!(code(world.send("a", &bundle)), "missing-prerequisite");
    // The same pack under a head that conceals it.
    let line = bundle.iter().position(|b| *b == b'-').unwrap();
    let end = line + bundle[line..].iter().position(|b| *b == b'\n').unwrap();
    let concealed = [&bundle[..line], &bundle[end + 1..]].concat();
    assert_eq!(code(world.send("a", &concealed)), "missing-prerequisite");
    assert_eq!(code(world.open("a").commit(&id(&head))), "unknown-commit");
    // A tree or blob is no commit to build on.
    let tree = repo.git(&["rev-parse", &format!("{base}^{{tree}}")]);
    let lied = replace(
        &repo.bundle(&head, &[&base]),
        base.as_bytes(),
        tree.as_bytes(),
    );
    assert_eq!(code(world.send("a", &lied)), "missing-prerequisite");
    assert!(world.send("a", &repo.bundle(&head, &[&base])).is_ok());
}

fn a_bundle_names_commits_only(world: &World) {
    let repo = Repo::small();
    let base = repo.head();
    world.publish(&repo, &base);
    repo.write("src/calc.py", "x = 1\n");
    let head = repo.commit("head");
    repo.git(&["tag", "-a", "v1", "-m", "v1"]);
    let tag = repo.git(&["rev-parse", "v1"]);
    assert_eq!(
        code(world.send("a", &repo.bundle(&tag, &[&base]))),
        "not-a-commit"
    );
    let bundle = repo.bundle(&head, &[&base]);
    let absent = "1".repeat(40);
    let lied = replace(
        &bundle,
        format!("{head} refs").as_bytes(),
        format!("{absent} refs").as_bytes(),
    );
    assert_eq!(code(world.send("a", &lied)), "bad-object");
    assert_eq!(code(world.open("a").commit(&id(&head))), "unknown-commit");
    let mut short: &[u8] = b"PACK";
    assert_eq!(
        code(world.send_from("a", &mut short, &UploadLimits::default())),
        "upload-incomplete"
    );
    assert_eq!(code(world.send("a", b"#!/bin/sh\n")), "invalid-argument");
    assert!(world.send("a", &bundle).is_ok());
}

fn limits_hold_and_nothing_is_kept(world: &World) {
    let repo = Repo::small();
    let base = repo.head();
    world.publish(&repo, &base);
    repo.write("src/big.txt", "0123456789abcdef\n".repeat(70_000));
    let head = repo.commit("head");
    let bundle = repo.bundle(&head, &[&base]);
    let fine = UploadLimits::default();
    for limits in [
        UploadLimits {
            bytes: bundle.len() as u64 - 1,
            ..fine.clone()
        },
        UploadLimits {
            bytes: 10,
            ..fine.clone()
        },
        UploadLimits {
            objects: 2,
            ..fine.clone()
        },
        UploadLimits {
            object_bytes: 1 << 20,
            ..fine.clone()
        },
    ] {
        let taken = world.send_from("a", &mut &bundle[..], &limits);
        assert_eq!(code(taken), "too-large", "{limits:?}");
        assert_eq!(code(world.open("a").commit(&id(&head))), "unknown-commit");
    }
    assert!(world.send_from("a", &mut &bundle[..], &fine).is_ok());
}

fn a_stream_cut_anywhere_keeps_nothing(world: &World) {
    struct Breaks<'a>(&'a [u8]);
    impl Read for Breaks<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            match self.0.read(buffer)? {
                0 => Err(std::io::ErrorKind::ConnectionReset.into()),
                count => Ok(count),
            }
        }
    }
    let repo = Repo::small();
    let base = repo.head();
    world.publish(&repo, &base);
    repo.write("src/calc.py", "x = 1\n");
    let head = repo.commit("head");
    let bundle = repo.bundle(&head, &[&base]);
    let step = bundle.len() / 12;
    for end in (0..bundle.len()).step_by(step) {
        let cut = &bundle[..end];
        assert_eq!(code(world.send("a", cut)), "upload-incomplete", "{end}");
        let limits = UploadLimits::default();
        let broken = world.send_from("a", &mut Breaks(cut), &limits);
        assert_eq!(code(broken), "upload-incomplete", "{end}");
    }
    assert_eq!(code(world.open("a").commit(&id(&head))), "unknown-commit");
    let mut flipped = bundle.clone();
    let middle = bundle.len() - 30;
    flipped[middle] ^= 0x55;
    assert!(world.send("a", &flipped).is_err());
}

fn malformed_trees_are_refused_by_name(world: &World) {
    let repo = Repo::small();
    let base = repo.head();
    world.publish(&repo, &base);
    let blob = repo.git(&["rev-parse", "HEAD:src/calc.py"]);
    let raw: Vec<u8> = hex(&blob);
    let entry = |mode: &str, name: &str| [format!("{mode} {name}\0").as_bytes(), &raw].concat();
    for (entries, message) in [
        (
            [entry("100644", "a"), entry("100644", "a")],
            "duplicateEntries",
        ),
        ([entry("100644", "a"), entry("100644", ".git")], "hasDotgit"),
        ([entry("100644", "a"), entry("100644", ".GIT")], "hasDotgit"),
        ([entry("100644", ".."), entry("100644", "a")], "hasDotdot"),
        ([entry("100644", "."), entry("100644", "a")], "hasDot"),
        (
            [entry("100644", "a/b"), entry("100644", "c")],
            "fullPathname",
        ),
    ] {
        let tree = feed(
            &repo,
            &["hash-object", "-t", "tree", "-w", "--literally", "--stdin"],
            &entries.concat(),
        );
        let commit = repo.git(&["commit-tree", "-p", &base, "-m", "x", &tree]);
        let taken = world
            .send("a", &repo.bundle(&commit, &[&base]))
            .unwrap_err();
        let text = taken.to_string();
        assert!(
            text.starts_with("bad-object: ") && text.contains(message),
            "{message}: {text}"
        );
        assert_eq!(code(world.open("a").commit(&id(&commit))), "unknown-commit");
    }
}

fn merge_bases_are_all_of_them(world: &World) {
    let repo = Repo::empty();
    let tree = feed(&repo, &["mktree"], b"");
    let mut state = 7u64;
    let mut draw = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % below
    };
    let mut commits: Vec<String> = Vec::new();
    for n in 0..16 {
        let mut parents = Vec::new();
        for _ in 0..draw(3) {
            if let Some(parent) = commits.get(draw(n.max(1))) {
                parents.extend(["-p".to_owned(), parent.clone()]);
            }
        }
        // Dates that go anywhere.
        let date = format!("{} +0000", 1_700_000_000 + draw(100_000));
        let mut command = tribunal_tests::repo::git(repo.path());
        command.env("GIT_COMMITTER_DATE", date);
        command
            .args(["commit-tree", &tree, "-m", &n.to_string()])
            .args(parents);
        let output = command.output().unwrap();
        commits.push(String::from_utf8(output.stdout).unwrap().trim().to_owned());
    }
    // Everything in one history.
    let all = commits.iter().fold(String::new(), |mut all, commit| {
        let _ = writeln!(all, "parent {commit}");
        all
    });
    let who = "x <x@example.invalid> 1 +0000";
    let text = format!("tree {tree}\n{all}author {who}\ncommitter {who}\n\nall\n");
    let everything = feed(
        &repo,
        &["hash-object", "-t", "commit", "-w", "--stdin"],
        text.as_bytes(),
    );
    world.publish(&repo, &everything);
    let objects = world.open("a");
    for a in &commits {
        for b in &commits {
            let said = repo.try_git(&["merge-base", "--all", a, b]).stdout;
            let mut said: Vec<CommitId> =
                String::from_utf8(said).unwrap().lines().map(id).collect();
            said.sort();
            assert_eq!(
                objects.merge_bases(&id(a), &id(b)).unwrap(),
                said,
                "{a} {b}"
            );
            let contains = said == [id(a)];
            let relation = objects.relation(&id(a), &id(b)).unwrap();
            assert_eq!(relation == Relation::Contains, contains, "{a} {b}");
        }
    }
}

fn merges_are_what_git_would_make(world: &World) {
    let repo = Repo::empty();
    let lines = |first: &str, last: &str| format!("{first}\n2\n3\n4\n5\n{last}\n");
    repo.write("src/both", lines("1", "6"));
    repo.write("src/gone", "gone\n");
    repo.write("src/.gitattributes", "");
    let fork = repo.commit("fork");
    repo.write("src/both", lines("one", "6"));
    repo.write("src/new", "new\n");
    let base = repo.commit("base");
    world.publish(&repo, &base);
    let branch = |files: &[(&str, Option<&str>)]| {
        repo.git(&["checkout", "-q", "--detach", &fork]);
        for (path, content) in files {
            match content {
                Some(content) => repo.write(path, content),
                None => std::fs::remove_file(repo.path().join(path)).unwrap(),
            }
        }
        let head = repo.commit("head");
        world.send("a", &repo.bundle(&head, &[&fork])).unwrap();
        head
    };
    let clean = branch(&[("src/both", Some(&lines("1", "six"))), ("src/gone", None)]);
    let objects = world.open("a");
    let merged = objects.merge(&id(&base), &id(&clean)).unwrap();
    assert!(merged.conflicts.is_empty());
    let said = repo.git(&["merge-tree", "--write-tree", &base, &clean]);
    assert_eq!(merged.tree.as_str(), said);
    // What the merge made can be read.
    let src = objects.tree(&merged.tree).unwrap().remove(0);
    let src = objects.tree(&src.id.as_str().parse().unwrap()).unwrap();
    let names: Vec<_> = src.iter().map(|e| e.name.clone()).collect();
    assert_eq!(names, [&b".gitattributes"[..], b"both", b"new"]);
    let both = objects.blob(&src[1].id, 1000).unwrap();
    assert_eq!(both, lines("one", "six").as_bytes());

    let clash = branch(&[("src/both", Some(&lines("uno", "6"))), ("src/gone", None)]);
    let merged = world.open("a").merge(&id(&base), &id(&clash)).unwrap();
    assert_eq!(merged.conflicts, [GitPath::from("src/both")]);

    // An attribute of the candidate's would settle the conflict its own way.
    for driver in ["merge=union", "merge=ours", "-merge", "merge=binary"] {
        let steered = branch(&[
            ("src/both", Some(&lines("uno", "6"))),
            ("src/.gitattributes", Some(&format!("both {driver}\n"))),
            (".gitattributes", Some(&format!("* {driver}\n"))),
        ]);
        let merged = world.open("a").merge(&id(&base), &id(&steered)).unwrap();
        assert_eq!(merged.conflicts, [GitPath::from("src/both")], "{driver}");
        let split = branch(&[
            ("src/both", Some(&lines("1", "six"))),
            (".gitattributes", Some(&format!("* {driver}\n"))),
        ]);
        let merged = world.open("a").merge(&id(&base), &id(&split)).unwrap();
        assert!(merged.conflicts.is_empty(), "{driver}");
    }
}

fn replace(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let at = bytes.windows(from.len()).position(|w| w == from).unwrap();
    [&bytes[..at], to, &bytes[at + from.len()..]].concat()
}

fn hex(text: &str) -> Vec<u8> {
    hex::decode(text).unwrap()
}
