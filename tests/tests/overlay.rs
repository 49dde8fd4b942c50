//! What goes into a room is what git's objects hold, byte for byte, whatever their names, sizes and attributes.

#![expect(clippy::panic, reason = "a test fails loudly, where it stands")]

use std::collections::BTreeMap;
use tribunal_core::plan::Plan;
use tribunal_core::request::Role;
use tribunal_server::overlay;
use tribunal_tests::repo::Leaf;
use tribunal_tests::scored::{File, Outcome, ls_tree};
use tribunal_tests::{Repo, Scored};

type Leaves = BTreeMap<Vec<u8>, Leaf>;

/// Small numbers that look random and are the same in every run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

const CONTENTS: [&[u8]; 8] = [
    b"",
    b"x = 1\n",
    b"one\r\ntwo\r\n",
    b"$Id$ $Format:%H$\n",
    b"\xff\xfe\x00binary\x00",
    b"no newline at the end",
    b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
    &[b'z'; 512],
];

const ATTRIBUTES: &[u8] = b"* export-ignore text eol=crlf ident export-subst working-tree-encoding=UTF-16\n*.py filter=lfs merge=ours -diff\n";

/// Names that are portable, each part once for all cases.
const NAMES: [&str; 9] = [
    "a.py",
    "b c.py",
    "-rf",
    "é.py",
    "日本語",
    "a-b",
    ".hidden",
    "'quoted' & $(sh)",
    "a.py.txt",
];

fn some(draw: &mut Draw, root: &str, leaves: &mut Leaves) {
    let long = "n".repeat(140);
    for _ in 0..2 + draw.below(25) {
        let mut path = root.to_owned();
        for depth in 0..draw.below(4) {
            path.push_str(&format!("d{depth}{}/", draw.below(3)));
        }
        if draw.below(6) == 0 {
            path.push_str(&format!("{long}/{long}/"));
        }
        path.push_str(NAMES[draw.below(NAMES.len())]);
        let leaf = match draw.below(6) {
            0 => ("120000", b"nowhere.txt".to_vec()),
            1 => ("100755", CONTENTS[draw.below(8)].to_vec()),
            _ => ("100644", CONTENTS[draw.below(8)].to_vec()),
        };
        leaves.insert(path.into_bytes(), leaf);
    }
    leaves.insert(
        format!("{root}.gitattributes").into_bytes(),
        ("100644", ATTRIBUTES.to_vec()),
    );
}

fn small_base() -> Leaves {
    let mut leaves = Leaves::new();
    for (path, content) in [
        ("tests/sealed/MANIFEST.txt", "tests/sealed/test_a.py\n"),
        ("tests/sealed/test_a.py", "def test_a():\n    pass\n"),
        ("src/calc.py", "x = 1\n"),
    ] {
        leaves.insert(path.into(), ("100644", content.into()));
    }
    leaves
}

fn file(content: &str) -> Leaf {
    ("100644", content.into())
}

fn score(base: &Leaves, head: &Leaves) -> (Repo, String, String, Scored) {
    let repo = Repo::empty();
    let first = repo.commit_of(&[], base);
    let second = repo.commit_of(&[&first], head);
    let scored = Scored::of_commits(&repo, &first, &second, Role::Agent);
    (repo, first, second, scored)
}

#[test]
fn the_room_gets_what_git_lists_byte_for_byte() {
    for seed in 0..12 {
        let mut draw = Draw(seed);
        let mut base = small_base();
        some(&mut draw, "docs/", &mut base);
        some(&mut draw, "src/", &mut base);
        base.insert(".gitattributes".into(), ("100644", ATTRIBUTES.to_vec()));
        // Names that no patch may bring, but that a base can have.
        base.insert(b"docs/caf\xe9 \xff".to_vec(), file("latin\n"));
        base.insert(b"docs/back\\slash".to_vec(), file("odd\n"));
        let mut head: Leaves = base.clone();
        head.retain(|path, _| !path.starts_with(b"src/") || draw.below(2) == 0);
        some(&mut draw, "src/", &mut head);
        head.insert("other.txt".into(), file("not scored\n"));
        let (repo, first, second, scored) = score(&base, &head);
        // Links of src stay in their folder here, so everything is admitted.
        let mut built: Vec<File> = scored.tree_tar().files();
        built.extend(scored.src_tar().files());
        built.sort();
        let outside = |(path, ..): &File| !path.starts_with(b"src/");
        let mut listed: Vec<File> = ls_tree(repo.path(), &first, "")
            .into_iter()
            .filter(outside)
            .collect();
        listed.extend(ls_tree(repo.path(), &second, "src/"));
        listed.sort();
        let seen: Vec<_> = built.iter().map(|(path, ..)| path).collect();
        let wanted: Vec<_> = listed.iter().map(|(path, ..)| path).collect();
        assert_eq!(seen, wanted, "seed {seed}");
        assert_eq!(built, listed, "seed {seed}");
        // Every entry's folder comes before it.
        for tar in [scored.tree_tar(), scored.src_tar()] {
            for (at, path) in tar.order.iter().enumerate() {
                let slashes = path[..path.len() - 1].iter().enumerate();
                for (end, _) in slashes.filter(|(_, b)| **b == b'/') {
                    let folder = &path[..=end];
                    let above_root = b"src/".starts_with(folder);
                    assert!(above_root || tar.order[..at].iter().any(|p| p == folder));
                }
            }
        }
        // The same objects give the same bytes.
        let again = Scored::of_commits(&repo, &first, &second, Role::Agent);
        assert_eq!(again.overlay().src_tar(), scored.overlay().src_tar());
        assert_eq!(again.overlay().digest(), scored.overlay().digest());
    }
}

fn with_policy(mut leaves: Leaves, policy: &str) -> Leaves {
    let policy = format!("version = 1\n{policy}");
    leaves.insert("ci/tribunal.toml".into(), file(&policy));
    leaves
}

#[test]
fn roots_that_base_lacks_and_roots_that_are_files_are_made() {
    let base = with_policy(
        small_base(),
        "[paths]\nsrc = [\"src/\", \"lib/deep/py/\", \"one.py\", \"pkg/mod.py\"]\n[runner]\npythonpath = [\".\"]\n",
    );
    let mut head = base.clone();
    for path in ["lib/deep/py/new/n.py", "one.py", "pkg/mod.py"] {
        head.insert(path.into(), file("y = 2\n"));
    }
    head.insert("lib/deep/other.py".into(), file("not scored\n"));
    let (.., scored) = score(&base, &head);
    let tree = scored.tree_tar();
    for folder in ["src/", "lib/", "lib/deep/", "lib/deep/py/", "pkg/"] {
        assert_eq!(
            tree.get(folder).map(|(kind, _)| kind),
            Some("directory"),
            "{folder}"
        );
    }
    assert!(!tree.has("src/calc.py") && !tree.has("lib/deep/other.py"));
    assert_eq!(tree.get("one.py"), Some(("link", &b"/srcfiles/one.py"[..])));
    assert_eq!(
        tree.get("pkg/mod.py"),
        Some(("link", &b"/srcfiles/pkg/mod.py"[..]))
    );
    let src = scored.src_tar();
    let order: Vec<_> = src
        .order
        .iter()
        .map(|p| String::from_utf8_lossy(p))
        .collect();
    assert_eq!(
        order,
        [
            "lib/deep/py/new/",
            "lib/deep/py/new/n.py",
            "one.py",
            "pkg/mod.py",
            "src/calc.py"
        ]
    );
}

#[test]
fn sealed_files_inside_a_src_root_come_from_the_oracle() {
    let policy = "[paths]\nsrc = [\"toolz/\"]\nsealed = [\"toolz/tests/\", \"ci/\"]\nmanifest = \"toolz/tests/MANIFEST.txt\"\n[runner]\npythonpath = [\".\"]\n";
    let mut base = with_policy(Leaves::new(), policy);
    for (path, content) in [
        ("toolz/tests/MANIFEST.txt", "toolz/tests/test_a.py\n"),
        ("toolz/tests/test_a.py", "def test_a():\n    pass\n"),
        ("toolz/conftest.py", "# base\n"),
        ("toolz/core.py", "x = 1\n"),
        ("toolz/gone.py", "x = 1\n"),
    ] {
        base.insert(path.into(), file(content));
    }
    let mut head = base.clone();
    head.insert("toolz/core.py".into(), file("x = 2\n"));
    head.remove(&b"toolz/gone.py"[..]);
    let (.., scored) = score(&base, &head);
    let src = scored.src_tar();
    assert_eq!(src.get("toolz/core.py"), Some(("file", &b"x = 2\n"[..])));
    assert_eq!(
        src.get("toolz/conftest.py"),
        Some(("file", &b"# base\n"[..]))
    );
    assert!(src.has("toolz/tests/test_a.py") && src.has("toolz/tests/"));
    assert!(!src.has("toolz/gone.py"));
    // The product reads its own code, and nothing of the oracle's beside it.
    let closed: Vec<_> = src
        .closed
        .iter()
        .map(|(path, mode)| (path.as_str(), *mode))
        .collect();
    assert_eq!(
        closed,
        [
            ("toolz/conftest.py", 0o640),
            ("toolz/tests/", 0o750),
            ("toolz/tests/MANIFEST.txt", 0o640),
            ("toolz/tests/test_a.py", 0o640)
        ]
    );
    let tree = scored.tree_tar();
    assert!(tree.has("toolz/") && !tree.has("toolz/tests/"));
    // To learn which cases there are, base's own src.
    let bytes = scored.overlay().base_src_tar().unwrap_or_default();
    let base_src = tribunal_tests::scored::Tar::read(&bytes);
    assert_eq!(
        base_src.get("toolz/core.py"),
        Some(("file", &b"x = 1\n"[..]))
    );
    assert!(base_src.has("toolz/gone.py") && base_src.has("toolz/tests/test_a.py"));
}

#[test]
fn the_sealed_side_is_closed_to_the_product() {
    let policy = "[paths]\nsrc = [\"ci/tool/\"]\n[runner]\npythonpath = [\"ci\"]\n";
    let mut base = with_policy(small_base(), policy);
    for path in [
        "fixtures/sealed/t.csv",
        "tests/sealed/deep/d.json",
        "tests/help.py",
        "ci/tool/x.py",
    ] {
        base.insert(path.into(), file("1\n"));
    }
    base.insert("tests/sealed/run.sh".into(), ("100755", b"true\n".to_vec()));
    let (.., scored) = score(&base, &base.clone());
    let tree = scored.tree_tar();
    for (path, mode) in [
        ("tests/sealed/", 0o750),
        ("tests/sealed/test_a.py", 0o640),
        ("tests/sealed/run.sh", 0o750),
        ("tests/sealed/deep/", 0o750),
        ("tests/sealed/deep/d.json", 0o640),
        ("ci/tribunal.toml", 0o640),
        // Passed through on the way to the src root in it.
        ("ci/", 0o751),
    ] {
        assert_eq!(tree.closed.get(path), Some(&mode), "{path}");
    }
    for path in [
        "tests/",
        "tests/help.py",
        "fixtures/sealed/",
        "fixtures/sealed/t.csv",
        "ci/tool/",
    ] {
        assert!(tree.has(path) && !tree.closed.contains_key(path), "{path}");
    }
}

#[test]
fn what_cannot_be_built_of_a_base_is_left_out_and_told() {
    let mut base = small_base();
    let module = "1".repeat(40);
    base.insert("vendor/lib".into(), ("160000", module.into_bytes()));
    base.insert("docs/out".into(), ("120000", b"../../etc/passwd".to_vec()));
    base.insert("docs/absolute".into(), ("120000", b"/etc/passwd".to_vec()));
    base.insert("docs/in".into(), ("120000", b"../src/calc.py".to_vec()));
    base.insert("src/out".into(), ("120000", b"/etc/passwd".to_vec()));
    base.insert("src/in".into(), ("120000", b"../docs".to_vec()));
    let mut head = base.clone();
    head.insert("src/calc.py".into(), file("x = 2\n"));
    let (repo, first, _, scored) = score(&base, &head);
    let tree = scored.tree_tar();
    assert_eq!(tree.get("vendor/lib/"), Some(("directory", &b""[..])));
    assert!(!tree.has("docs/out") && !tree.has("docs/absolute"));
    assert_eq!(tree.get("docs/in"), Some(("link", &b"../src/calc.py"[..])));
    // Base's own links under src were reviewed with it.
    let src = scored.src_tar();
    assert!(!src.has("src/out"));
    assert_eq!(src.get("src/in"), Some(("link", &b"../docs"[..])));
    let Outcome::Planned(Plan::Run(plan)) = &scored.outcome else {
        panic!("{:?}", scored.outcome);
    };
    let world = tribunal_tests::World::on_disk();
    world.publish(&repo, &first);
    let told = overlay::left_out(
        &*world.open("a"),
        &plan.patch().oracle().tree,
        plan.patch().policy(),
    );
    let told: Vec<_> = told
        .unwrap_or_default()
        .into_iter()
        .map(|(path, _)| path.to_string())
        .collect();
    assert_eq!(told, ["docs/absolute", "docs/out", "vendor/lib"]);
}

#[test]
fn digests_follow_what_is_scored_and_nothing_else() {
    let base = small_base();
    let mut head = base.clone();
    head.insert("src/calc.py".into(), file("x = 2\n"));
    let digests = |base: &Leaves, head: &Leaves| {
        let (.., scored) = score(base, head);
        let overlay = scored.overlay();
        (overlay.digest().clone(), overlay.tree_digest().clone())
    };
    let (whole, tree) = digests(&base, &head);
    // What is not applied is not in it.
    let mut unscored = head.clone();
    unscored.insert("README.md".into(), file("new\n"));
    assert_eq!(digests(&base, &unscored), (whole.clone(), tree.clone()));
    // A base that only moved its src, with the same src on top, is the same content.
    let mut moved = base.clone();
    moved.insert("src/calc.py".into(), file("x = 0\n"));
    assert_eq!(digests(&moved, &head), (whole.clone(), tree.clone()));
    // Another src is another overlay in the same sealed tree; so is another mode.
    let mut other = head.clone();
    other.insert("src/calc.py".into(), file("x = 3\n"));
    let (other, same) = digests(&base, &other);
    assert!(other != whole && same == tree);
    let mut executable = head.clone();
    executable.insert("src/calc.py".into(), ("100755", b"x = 2\n".to_vec()));
    let (other, same) = digests(&base, &executable);
    assert!(other != whole && same == tree);
    // Another oracle, or any other file that tests can read, is another tree.
    for path in ["tests/sealed/test_a.py", "docs/new.txt"] {
        let (mut base, mut head) = (base.clone(), head.clone());
        for leaves in [&mut base, &mut head] {
            leaves.insert(path.into(), file("# new\n"));
        }
        let (other, another) = digests(&base, &head);
        assert!(other != whole && another != tree, "{path}");
    }
}
