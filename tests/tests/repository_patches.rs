//! What a patch changes, what it is compared with, and what would merge: against definitions written out here.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails loudly, where it stands"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use tribunal_core::git::{Change, GitPath, Mode, Relation};
use tribunal_core::id::CommitId;
use tribunal_core::plan::Plan;
use tribunal_core::request::Role;
use tribunal_server::repository::RepositoryError;
use tribunal_server::repository::diff::DiffLimits;
use tribunal_server::repository::resolve::{Resolved, resolve};
use tribunal_tests::repo::Leaf;
use tribunal_tests::scored::Outcome;
use tribunal_tests::world::{code, id};
use tribunal_tests::{Repo, Scored, World};

type Leaves = BTreeMap<Vec<u8>, Leaf>;

fn leaves(all: &[(&str, &str)]) -> Leaves {
    let leaf = |(path, content): &(&str, &str)| {
        let leaf = ("100644", content.as_bytes().to_vec());
        (path.as_bytes().to_vec(), leaf)
    };
    all.iter().map(leaf).collect()
}

fn resolved(world: &World, head: &str, base: Option<&str>) -> Result<Resolved, RepositoryError> {
    let base: Option<CommitId> = base.map(id);
    let agent = world.agent("a");
    resolve(
        &*world.repository,
        &world.name,
        &agent,
        &id(head),
        base.as_ref(),
    )
}

fn changed(world: &World, repo: &Repo, base: &str, head: &str) -> Vec<Change> {
    world.publish(repo, base);
    world.send("a", &repo.bundle(head, &[])).unwrap_or_default();
    let resolved = resolved(world, head, None).unwrap();
    let patch = resolved.patch(&DiffLimits::default());
    patch.unwrap().changes
}

fn shown(changes: &[Change]) -> Vec<String> {
    let mode = |entry: &Option<tribunal_core::git::Entry>| match entry.as_ref().map(|e| e.mode) {
        None => '-',
        Some(Mode::File) => 'f',
        Some(Mode::Executable) => 'x',
        Some(Mode::Symlink) => 'l',
        Some(Mode::Gitlink) => 'g',
        Some(Mode::Tree) => 't',
    };
    let one = |c: &Change| format!("{}{} {}", mode(&c.base), mode(&c.head), c.path);
    changes.iter().map(one).collect()
}

#[test]
fn leaves_of_every_kind_are_compared_by_name_mode_and_id() {
    let repo = Repo::empty();
    let mut base = leaves(&[
        ("a", "1"),
        ("a-b", "1"),
        ("dir/x", "1"),
        ("dir/y", "1"),
        ("file", "1"),
        ("mode", "1"),
        ("kind", "1"),
        ("same/deep/er", "1"),
        ("moved/from", "moved"),
    ]);
    let mut head = base.clone();
    head.remove(&b"dir/x"[..]);
    head.remove(&b"dir/y"[..]);
    head.insert(b"dir".to_vec(), ("100644", b"1".to_vec()));
    head.remove(&b"file"[..]);
    head.insert(b"file/in/it".to_vec(), ("100644", b"1".to_vec()));
    head.insert(b"mode".to_vec(), ("100755", b"1".to_vec()));
    head.insert(b"kind".to_vec(), ("120000", b"1".to_vec()));
    head.remove(&b"moved/from"[..]);
    head.insert(b"moved/to".to_vec(), ("100644", b"moved".to_vec()));
    head.insert(b"tab\tand\"quote".to_vec(), ("100644", b"1".to_vec()));
    head.insert(b"raw\xff".to_vec(), ("100644", b"1".to_vec()));
    let module = "2".repeat(40).into_bytes();
    head.insert(b"module".to_vec(), ("160000", module));
    base.insert(b"a/b".to_vec(), ("100644", b"gone".to_vec()));
    base.remove(&b"a"[..]);
    let first = repo.commit_of(&[], &base);
    let second = repo.commit_of(&[&first], &head);
    let seen = shown(&changed(&World::on_disk(), &repo, &first, &second));
    assert_eq!(
        seen,
        [
            "-f a",
            "f- a/b",
            "-f dir",
            "f- dir/x",
            "f- dir/y",
            "f- file",
            "-f file/in/it",
            "fl kind",
            "fx mode",
            "-g module",
            "f- moved/from",
            "-f moved/to",
            "-f raw\\xff",
            "-f tab\\tand\"quote",
        ]
    );
    let back = shown(&changed(&World::in_memory(), &repo, &first, &second));
    assert_eq!(back, seen);
}

/// Criss-cross histories of random trees, against protocol.md word by word.
#[test]
fn changes_are_those_of_the_definition_in_any_history() {
    let mut state = 3u64;
    let mut draw = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(11);
        (state >> 33) as usize % below
    };
    let repo = Repo::empty();
    let mut trees: Vec<Leaves> = Vec::new();
    let mut commits: Vec<String> = Vec::new();
    let mut parents: Vec<Vec<usize>> = Vec::new();
    let shape: [&[usize]; 14] = [
        &[],
        &[0],
        &[0],
        &[1, 2],
        &[2, 1],
        &[3],
        &[4],
        &[5, 6],
        &[6, 5],
        &[7],
        &[8, 2],
        &[7, 8],
        &[9, 10],
        &[10, 9],
    ];
    for mine in shape {
        let mut tree = mine.first().map(|p| trees[*p].clone()).unwrap_or_default();
        for _ in 0..3 {
            let path = ["a", "b", "c/d", "c/e", "e"][draw(5)];
            if draw(3) == 0 {
                tree.remove(path.as_bytes());
            } else {
                tree.extend(leaves(&[(path, ["1", "2", "3"][draw(3)])]));
            }
        }
        let names: Vec<_> = mine.iter().map(|p| commits[*p].as_str()).collect();
        commits.push(repo.commit_of(&names, &tree));
        trees.push(tree);
        parents.push(mine.to_vec());
    }
    fn ancestors(parents: &[Vec<usize>], n: usize) -> BTreeSet<usize> {
        let mut all = BTreeSet::from([n]);
        for parent in &parents[n] {
            all.extend(ancestors(parents, *parent));
        }
        all
    }
    let histories: Vec<_> = (0..14).map(|n| ancestors(&parents, n)).collect();
    let bases_of = |base: usize, head: usize| -> Vec<usize> {
        let common: BTreeSet<_> = histories[base]
            .intersection(&histories[head])
            .copied()
            .collect();
        let behind = |c: &usize| common.iter().any(|d| d != c && histories[*d].contains(c));
        common.iter().copied().filter(|c| !behind(c)).collect()
    };
    let mut pairs: Vec<_> = (0..14).flat_map(|a| (0..14).map(move |b| (a, b))).collect();
    // Criss-cross ones first.
    pairs.sort_by_key(|(a, b)| (std::cmp::Reverse(bases_of(*a, *b).len()), a * b % 5));
    assert!(bases_of(pairs[5].0, pairs[5].1).len() > 1);
    pairs.truncate(16);
    for (base, head) in pairs {
        let bases = bases_of(base, head);
        let (b, h) = (&trees[base], &trees[head]);
        let names: BTreeSet<_> = b.keys().chain(h.keys()).collect();
        let differs = |path: &&&Vec<u8>| {
            b.get(**path) != h.get(**path)
                && bases.iter().any(|m| trees[*m].get(**path) != h.get(**path))
        };
        let wanted: Vec<_> = names
            .iter()
            .filter(differs)
            .map(|p| GitPath::new(&p[..]))
            .collect();
        let seen = changed(&World::on_disk(), &repo, &commits[base], &commits[head]);
        let seen: Vec<_> = seen.into_iter().map(|c| c.path).collect();
        assert_eq!(seen, wanted, "{base} {head} {bases:?}");
    }
}

#[test]
fn tables_come_with_both_contents() {
    let repo = Repo::empty();
    let first = repo.commit_of(&[], &leaves(&[("pyproject.toml", "a = 1\n"), ("x", "1")]));
    let head = leaves(&[
        ("pyproject.toml", "a = 2\n"),
        ("sub/tox.ini", "b\n"),
        ("x", "2"),
    ]);
    let second = repo.commit_of(&[&first], &head);
    let changes = changed(&World::on_disk(), &repo, &first, &second);
    let contents = |path: &str| {
        let change = changes.iter().find(|c| c.path == GitPath::from(path));
        change.and_then(|c| c.contents.clone())
    };
    let pyproject = contents("pyproject.toml").map(|c| (c.base, c.head));
    assert_eq!(pyproject, Some((b"a = 1\n".to_vec(), b"a = 2\n".to_vec())));
    let tox = contents("sub/tox.ini").map(|c| (c.base, c.head));
    assert_eq!(tox, Some((Vec::new(), b"b\n".to_vec())));
    assert_eq!(contents("x"), None);
}

#[test]
fn a_base_is_of_the_protected_history_and_of_no_other() {
    for world in [World::on_disk(), World::in_memory()] {
        let repo = Repo::small();
        let first = repo.head();
        repo.write("src/calc.py", "x = 1\n");
        let second = repo.commit("second");
        world.publish(&repo, &second);
        repo.write("src/calc.py", "x = 2\n");
        let head = repo.commit("head");
        repo.write("src/calc.py", "x = 3\n");
        let next = repo.commit("next");
        world
            .send("a", &repo.bundle(&next, &[&second]))
            .unwrap_or_default();

        let fine = resolved(&world, &next, None).unwrap();
        let commits = fine.commits();
        assert_eq!(commits.base.id, id(&second));
        assert_eq!(commits.base_tip, id(&second));
        assert_eq!(commits.merge_bases, vec![id(&second)]);
        assert_eq!(commits.relation, Relation::Contains);
        assert_eq!(commits.protected_ref, "refs/heads/main");
        let stale = resolved(&world, &next, Some(&first)).unwrap();
        assert_eq!(stale.commits().base.id, id(&first));
        assert_eq!(stale.commits().base_tip, id(&second));

        // What the agent sent is no base, not even for a descendant of it.
        assert_eq!(
            code(resolved(&world, &next, Some(&head))),
            "base-not-protected"
        );
        assert_eq!(
            code(resolved(&world, &next, Some(&next))),
            "base-not-protected"
        );
        assert_eq!(
            code(resolved(&world, &next, Some(&"1".repeat(40)))),
            "unknown-commit"
        );
        assert_eq!(
            code(resolved(&world, &"1".repeat(40), None)),
            "unknown-commit"
        );
        assert_eq!(
            code(resolved(&world, &format!("{next}{}", "0".repeat(24)), None)),
            "short-sha"
        );
        // Nor is what the branch forgot.
        repo.git(&["checkout", "-q", "--detach", &first]);
        repo.write("src/calc.py", "x = 4\n");
        let forced = repo.commit("forced");
        world.publish(&repo, &forced);
        assert_eq!(
            code(resolved(&world, &next, Some(&second))),
            "base-not-protected"
        );
        let behind = resolved(&world, &next, None).unwrap();
        assert_eq!(behind.commits().relation, Relation::Behind);
        assert_eq!(behind.commits().merge_bases, vec![id(&first)]);
        // A commit without any patch is scored like any other.
        let none = resolved(&world, &forced, None).unwrap();
        let patch = none.patch(&DiffLimits::default());
        assert!(patch.is_ok_and(|patch| patch.changes.is_empty()));
    }
}

/// Base and head of a branch that is behind: what base did since, and what head did.
fn behind(base: &[(&str, &str)], head: &[(&str, &str)], role: Role) -> Scored {
    let lines = "1\n2\n3\n4\n5\n6\n";
    let fork = leaves(&[
        ("src/calc.py", lines),
        ("docs/text", lines),
        ("tests/sealed/MANIFEST.txt", "tests/sealed/test_a.py\n"),
        ("tests/sealed/test_a.py", lines),
    ]);
    let with = |all: &[(&str, &str)]| {
        let mut tree = fork.clone();
        tree.extend(leaves(all));
        tree
    };
    let repo = Repo::empty();
    let first = repo.commit_of(&[], &fork);
    let ours = repo.commit_of(&[&first], &with(base));
    let theirs = repo.commit_of(&[&first], &with(head));
    Scored::of_commits(&repo, &ours, &theirs, role)
}

#[test]
fn what_would_merge_is_what_is_scored() {
    let scored = behind(
        &[
            ("src/calc.py", "one\n2\n3\n4\n5\n6\n"),
            ("src/new.py", "b\n"),
        ],
        &[
            ("src/calc.py", "1\n2\n3\n4\n5\nsix\n"),
            ("src/mine.py", "h\n"),
        ],
        Role::Agent,
    );
    let src = scored.src_tar();
    let merged = &b"one\n2\n3\n4\n5\nsix\n"[..];
    assert_eq!(src.get("src/calc.py"), Some(("file", merged)));
    assert!(src.has("src/new.py") && src.has("src/mine.py"));
    let paths: Vec<_> = scored.changes.iter().map(|c| c.path.to_string()).collect();
    assert_eq!(paths, ["src/calc.py", "src/mine.py"]);
}

#[test]
fn conflicts_matter_where_something_is_read() {
    let refused = |scored: &Scored, path: &str| match &scored.outcome {
        Outcome::Refused(text) => {
            assert!(
                text.starts_with("merge-conflict: ") && text.contains(path),
                "{text}"
            );
        }
        Outcome::Planned(plan) => panic!("{plan:?}"),
    };
    let scored = behind(
        &[("src/calc.py", "one\n2\n3\n4\n5\n6\n")],
        &[("src/calc.py", "uno\n2\n3\n4\n5\n6\n")],
        Role::Agent,
    );
    refused(&scored, "src/calc.py");
    // What is not scored may conflict.
    let scored = behind(
        &[("docs/text", "one\n2\n3\n4\n5\n6\n"), ("src/b.py", "b\n")],
        &[("docs/text", "uno\n2\n3\n4\n5\n6\n"), ("src/h.py", "h\n")],
        Role::Agent,
    );
    assert!(scored.src_tar().has("src/b.py") && scored.src_tar().has("src/h.py"));
    let tree = scored.tree_tar();
    assert_eq!(
        tree.get("docs/text"),
        Some(("file", &b"one\n2\n3\n4\n5\n6\n"[..]))
    );
    // A maintainer's change of the oracle merges with base's; src may not conflict, it has none.
    let scored = behind(
        &[
            ("tests/sealed/test_a.py", "one\n2\n3\n4\n5\n6\n"),
            ("src/b.py", "b\n"),
        ],
        &[("tests/sealed/test_a.py", "1\n2\n3\n4\n5\nsix\n")],
        Role::Maintainer,
    );
    let tree = scored.tree_tar();
    let merged = &b"one\n2\n3\n4\n5\nsix\n"[..];
    assert_eq!(tree.get("tests/sealed/test_a.py"), Some(("file", merged)));
    assert!(scored.src_tar().has("src/b.py"));
    let scored = behind(
        &[("tests/sealed/test_a.py", "one\n2\n3\n4\n5\n6\n")],
        &[("tests/sealed/test_a.py", "uno\n2\n3\n4\n5\n6\n")],
        Role::Maintainer,
    );
    refused(&scored, "tests/sealed/test_a.py");
}

#[test]
fn facts_of_src_and_oracle_are_read_as_they_are() {
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
    let mut base = leaves(&[
        ("src/calc.py", "x = 1\n"),
        ("src/conftest.py", "# the oracle's, wherever it is\n"),
        ("ci/flake_leases.json", "{\"leases\": []}\n"),
        ("tests/sealed/MANIFEST.txt", "tests/sealed/test_a.py\n"),
        ("tests/sealed/test_a.py", "def test_a():\n    pass\n"),
        ("tests/sealed/data/d.txt", "d\n"),
        ("docs/big", pointer),
    ]);
    let repo = Repo::empty();
    let first = repo.commit_of(&[], &base);
    base.insert(b"src/link".to_vec(), ("120000", b"calc.py".to_vec()));
    base.extend(leaves(&[("src/model.bin", pointer)]));
    let second = repo.commit_of(&[&first], &base);
    let scored = Scored::of_commits(&repo, &first, &second, Role::Agent);
    let Outcome::Planned(Plan::Run(plan)) = &scored.outcome else {
        panic!("{:?}", scored.outcome);
    };
    let oracle = plan.patch().oracle();
    assert_eq!(
        oracle.manifest.as_deref(),
        Some(&b"tests/sealed/test_a.py\n"[..])
    );
    assert_eq!(oracle.leases.as_deref(), Some(&b"{\"leases\": []}\n"[..]));
    assert_eq!(oracle.ledger, None);
    let sealed: Vec<_> = oracle.sealed_paths.iter().map(GitPath::to_string).collect();
    assert_eq!(
        sealed,
        [
            "tests/sealed/MANIFEST.txt",
            "tests/sealed/data/d.txt",
            "tests/sealed/test_a.py"
        ]
    );
    assert!(oracle.lfs_pointers.is_empty());
    let src = plan.src();
    let seen: Vec<_> = src
        .entries
        .iter()
        .map(|e| {
            (
                e.path.to_string(),
                e.size,
                e.link_target.clone(),
                e.lfs_pointer,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("src/calc.py".to_owned(), 6, None, false),
            ("src/link".to_owned(), 7, Some(b"calc.py".to_vec()), false),
            ("src/model.bin".to_owned(), pointer.len() as u64, None, true),
        ]
    );
    let tree = repo.git(&["rev-parse", &format!("{second}:src")]);
    let trees: Vec<_> = src
        .trees
        .iter()
        .map(|(root, id)| (root.as_str(), id.as_str()))
        .collect();
    assert_eq!(trees, [("src/", tree.as_str())]);
    assert_eq!(src.base.len(), 1);
}

#[test]
fn a_sealed_pointer_is_found_and_barred() {
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
    let mut base = leaves(&[
        ("src/calc.py", "x = 1\n"),
        ("tests/sealed/MANIFEST.txt", "tests/sealed/test_a.py\n"),
        ("tests/sealed/test_a.py", "def test_a():\n    pass\n"),
        ("fixtures/sealed/big.bin", pointer),
        ("cassettes/a.json", pointer),
    ]);
    let repo = Repo::empty();
    let first = repo.commit_of(&[], &base);
    base.extend(leaves(&[("src/calc.py", "x = 2\n")]));
    let second = repo.commit_of(&[&first], &base);
    let scored = Scored::of_commits(&repo, &first, &second, Role::Agent);
    let Outcome::Planned(Plan::Decided(decided)) = &scored.outcome else {
        panic!("{:?}", scored.outcome);
    };
    let subjects: Vec<_> = decided
        .findings()
        .iter()
        .filter_map(|f| f.subject.as_deref())
        .collect();
    assert_eq!(subjects, ["cassettes/a.json", "fixtures/sealed/big.bin"]);
}

#[test]
fn a_hundred_thousand_files_are_refused_by_the_policy() {
    let repo = Repo::small();
    let base = repo.head();
    let blob = repo.git(&["rev-parse", "HEAD:src/calc.py"]);
    let mut tree = String::new();
    for folder in 0..100 {
        let files: String = (0..1000).fold(String::new(), |mut all, n| {
            all.push_str(&format!("100644 blob {blob}\tf{folder}_{n}.py\n"));
            all
        });
        let id = tribunal_tests::world::feed(&repo, &["mktree"], files.as_bytes());
        tree.push_str(&format!("040000 tree {id}\td{folder}\n"));
    }
    let src = tribunal_tests::world::feed(&repo, &["mktree"], tree.as_bytes());
    let root = repo
        .git(&["ls-tree", "HEAD"])
        .replace(&repo.git(&["rev-parse", "HEAD:src"]), &src);
    let root = tribunal_tests::world::feed(&repo, &["mktree"], root.as_bytes());
    let head = repo.git(&["commit-tree", "-p", &base, "-m", "many", &root]);
    let begun = Instant::now();
    let scored = Scored::of_commits(&repo, &base, &head, Role::Agent);
    let Outcome::Refused(text) = &scored.outcome else {
        panic!("{:?}", scored.outcome);
    };
    assert!(text.starts_with("too-large: "), "{text}");
    assert!(begun.elapsed() < Duration::from_secs(60));
}

/// Trees without a single file spell as many paths as others.
#[test]
fn a_bomb_of_empty_directories_is_refused() {
    let repo = Repo::small();
    let base = repo.head();
    let mut tree = tribunal_tests::world::feed(&repo, &["mktree"], b"");
    for _ in 0..10 {
        let level: String = (0..10)
            .map(|n| format!("040000 tree {tree}\td{n}\n"))
            .collect();
        tree = tribunal_tests::world::feed(&repo, &["mktree"], level.as_bytes());
    }
    for place in ["src", "docs"] {
        let mut root = repo.git(&["ls-tree", "HEAD"]);
        if place == "src" {
            root = root.replace(&repo.git(&["rev-parse", "HEAD:src"]), &tree);
        } else {
            root.push_str(&format!("\n040000 tree {tree}\tdocs\n"));
        }
        let root = tribunal_tests::world::feed(&repo, &["mktree"], root.as_bytes());
        let head = repo.git(&["commit-tree", "-p", &base, "-m", "bomb", &root]);
        let begun = Instant::now();
        let scored = Scored::of_commits(&repo, &base, &head, Role::Agent);
        let Outcome::Refused(text) = &scored.outcome else {
            panic!("{:?}", scored.outcome);
        };
        assert!(text.starts_with("too-large: "), "{text}");
        assert!(begun.elapsed() < Duration::from_secs(60));
    }
}

#[test]
fn a_shaft_of_directories_is_refused() {
    let repo = Repo::empty();
    // Git's own limit would keep the agent from sending the deepest of them.
    repo.git(&["config", "core.maxTreeDepth", "1000000"]);
    let base = repo.commit_of(&[], &leaves(&[("src/calc.py", "x = 1\n")]));
    for depth in [300, 3000, 30_000] {
        let path = format!("src/{}f.py", "d/".repeat(depth));
        let head = repo.commit_of(&[&base], &leaves(&[("src/calc.py", ""), (&path, "")]));
        let scored = Scored::of_commits(&repo, &base, &head, Role::Agent);
        let Outcome::Refused(text) = &scored.outcome else {
            panic!("{:?}", scored.outcome);
        };
        assert!(text.starts_with("too-large: "), "{text}");
    }
}
