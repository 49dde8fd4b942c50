#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

use super::*;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;

struct Repo {
    dir: tempfile::TempDir,
}

impl Repo {
    fn new() -> Self {
        let repo = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        repo.git(&["init", "-q", "-b", "main"]);
        repo
    }
    fn path(&self) -> &Path {
        self.dir.path()
    }
    fn git(&self, args: &[&str]) -> String {
        let output = Git::in_folder(self.path())
            .command(["-c", "user.name=t", "-c", "user.email=t@example.invalid"])
            .args(args)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "git {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
    fn write(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fn commit(&self, path: &str, text: &str) -> CommitId {
        self.write(path, text);
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", path]);
        self.git(&["rev-parse", "HEAD"]).parse().unwrap()
    }
    fn workspace(&self) -> Workspace {
        Workspace::require(self.path()).unwrap()
    }
    /// Every file of the repository itself, by content.
    fn everything(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        fn walk(dir: &Path, into: &mut BTreeMap<PathBuf, Vec<u8>>) {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, into);
                } else {
                    into.insert(path.clone(), fs::read(&path).unwrap());
                }
            }
        }
        let mut all = BTreeMap::new();
        walk(self.path(), &mut all);
        all
    }
}

fn bytes(bundle: &Bundle) -> Vec<u8> {
    let mut bytes = Vec::new();
    bundle.reader().unwrap().read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes.len() as u64, bundle.size());
    bytes
}

/// Real git takes the bundle into a clone of the first repository and finds `head` whole.
fn taken_by_git(server: &Repo, bundle: &Bundle, head: &CommitId) {
    let file = server.path().join("incoming.bundle");
    fs::write(&file, bytes(bundle)).unwrap();
    let file = file.to_str().unwrap();
    server.git(&["bundle", "verify", "-q", file]);
    server.git(&[
        "fetch",
        "-q",
        file,
        "refs/tribunal/head:refs/heads/incoming",
    ]);
    assert_eq!(server.git(&["rev-parse", "incoming"]), head.as_str());
    server.git(&["fsck", "--strict", "--no-dangling"]);
}

fn clone_of(server: &Repo, more: &[&str]) -> Repo {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("file://{}", server.path().display());
    let target = dir.path().to_str().unwrap().to_owned();
    let mut args = vec!["clone", "-q"];
    args.extend(more);
    args.extend([url.as_str(), target.as_str()]);
    server.git(&args);
    Repo { dir }
}

#[test]
fn outside_is_told_from_inside() {
    let nowhere = tempfile::tempdir().unwrap();
    assert!(Workspace::discover(nowhere.path()).unwrap().is_none());
    let repo = Repo::new();
    repo.commit("src/a/b.py", "x = 1\n");
    let inner = Workspace::require(&repo.path().join("src/a")).unwrap();
    assert_eq!(
        inner.top().unwrap().canonicalize().unwrap(),
        repo.path().canonicalize().unwrap()
    );
}

#[test]
fn revisions_become_full_commit_ids() {
    let repo = Repo::new();
    let first = repo.commit("a", "1");
    repo.git(&["tag", "-a", "v1", "-m", "v1"]);
    let workspace = repo.workspace();
    assert_eq!(workspace.commit("HEAD").unwrap(), first);
    assert_eq!(workspace.commit("v1").unwrap(), first);
    assert_eq!(workspace.commit(&first.as_str()[..9]).unwrap(), first);
    for bad in ["nope", "HEAD^{tree}", "--all", "HEAD~5", ""] {
        assert!(workspace.commit(bad).is_err(), "{bad}");
    }
    // A branch whose name looks like an option is a revision, not an option.
    repo.git(&["update-ref", "refs/heads/--all", "HEAD"]);
    assert_eq!(workspace.commit("--all").unwrap(), first);
}

#[test]
fn uncommitted_work_is_listed_without_the_output_folder() {
    let repo = Repo::new();
    repo.commit("src/a.py", "x = 1\n");
    let workspace = repo.workspace();
    let out = repo.path().join("ci_out");
    repo.write("ci_out/report.json", "{}");
    assert!(workspace.uncommitted(&out).unwrap().is_empty());
    repo.write("src/a.py", "x = 2\n");
    repo.write("src/café\tb.py", "y = 1\n");
    let found = workspace.uncommitted(&out).unwrap();
    assert_eq!(found.changed, ["src/a.py"]);
    assert_eq!(found.untracked, ["src/café\tb.py"]);
}

#[test]
fn a_worktree_commit_leaves_the_repository_untouched() {
    let repo = Repo::new();
    repo.write(".gitignore", "*.log\n");
    let head = repo.commit("src/a.py", "x = 1\n");
    repo.write("src/a.py", "x = 2\n");
    repo.write("src/staged.py", "s = 1\n");
    repo.git(&["add", "src/staged.py"]);
    repo.write("src/new.py", "n = 1\n");
    repo.write("noise.log", "ignored");
    repo.write("ci_out/report.json", "{}");
    let workspace = repo.workspace();
    let before = repo.everything();

    let out = repo.path().join("ci_out");
    let worktree = Worktree::commit(&workspace, &head, &out).unwrap();
    let view = worktree.view(&workspace);
    let names = view
        .git
        .text(&[
            "diff-tree",
            "-r",
            "--name-status",
            head.as_str(),
            worktree.id().as_str(),
        ])
        .unwrap();
    assert_eq!(names, "M\tsrc/a.py\nA\tsrc/new.py\nA\tsrc/staged.py");
    let again = Worktree::commit(&workspace, &head, &out).unwrap();
    assert_eq!(
        again.id(),
        worktree.id(),
        "the same content is the same commit"
    );
    assert_eq!(worktree.uncommitted().untracked, ["src/new.py"]);

    let bundle = Bundle::make(&view, worktree.id(), &Exclude::History(vec![head.clone()]))
        .unwrap()
        .unwrap();
    assert_eq!(bundle.commits(), 1);
    assert_eq!(repo.everything(), before);
    assert_eq!(workspace.has(worktree.id()).unwrap(), Presence::Absent);
    let other = clone_of(&repo, &[]);
    taken_by_git(&other, &bundle, worktree.id());
}

#[test]
fn an_unfinished_merge_is_not_committed() {
    let repo = Repo::new();
    repo.commit("a", "1\n");
    repo.git(&["checkout", "-q", "-b", "other"]);
    repo.commit("a", "2\n");
    repo.git(&["checkout", "-q", "main"]);
    let head = repo.commit("a", "3\n");
    let merged = Git::in_folder(repo.path())
        .output(&["merge", "-q", "other"])
        .unwrap();
    assert!(!merged.status.success());
    match Worktree::commit(&repo.workspace(), &head, Path::new("ci_out")) {
        Err(WorkspaceError::Unmerged(path)) => assert_eq!(path, "a"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_bundle_holds_what_the_server_lacks() {
    let server = Repo::new();
    let big: String = (0..20_000).map(|n| format!("line {n}\n")).collect();
    server.commit("big.txt", &big);
    let tip = server.commit("a", "1");
    let agent = clone_of(&server, &[]);
    let head = agent.commit("big.txt", &big.replace("line 7\n", "line seven\n"));
    let workspace = agent.workspace();
    let exclude = Exclude::of_known(&workspace, std::slice::from_ref(&tip)).unwrap();
    assert_eq!(exclude, Exclude::History(vec![tip.clone()]));
    let bundle = Bundle::make(&workspace, &head, &exclude).unwrap().unwrap();
    assert_eq!(bundle.commits(), 1);
    assert!(bundle.size() < 3000, "thin, but {} bytes", bundle.size());
    taken_by_git(&server, &bundle, &head);
    assert!(Bundle::make(&workspace, &tip, &exclude).unwrap().is_none());
}

#[test]
fn without_the_tip_the_guess_or_the_whole_history_serves() {
    let server = Repo::new();
    let old_tip = server.commit("a", "1");
    let agent = clone_of(&server, &[]);
    let new_tip = server.commit("a", "2");
    let head = agent.commit("src/b", "1");
    let workspace = agent.workspace();
    assert_eq!(
        Exclude::of_known(&workspace, &[new_tip]).unwrap(),
        Exclude::Nothing
    );
    let guess = Exclude::guessed(&workspace, "main").unwrap();
    assert_eq!(guess, Exclude::History(vec![old_tip]));
    taken_by_git(
        &server,
        &Bundle::make(&workspace, &head, &guess).unwrap().unwrap(),
        &head,
    );
    let whole = Bundle::make(&workspace, &head, &Exclude::Nothing)
        .unwrap()
        .unwrap();
    assert_eq!(whole.commits(), 2);
    assert!(bytes(&whole).starts_with(format!("# v2 git bundle\n{head} ").as_bytes()));
    let empty = Repo::new();
    taken_by_git(&empty, &whole, &head);
}

#[test]
fn a_shallow_cut_is_told_as_a_prerequisite() {
    let server = Repo::new();
    let first = server.commit("a", "1");
    server.commit("a", "2");
    let agent = clone_of(&server, &["--depth", "1"]);
    let head = agent.commit("src/b", "1");
    let bundle = Bundle::make(&agent.workspace(), &head, &Exclude::Nothing)
        .unwrap()
        .unwrap();
    let text = String::from_utf8_lossy(&bytes(&bundle)).into_owned();
    assert!(
        text.starts_with(&format!("# v2 git bundle\n-{first} \n{head} ")),
        "{text}"
    );
    taken_by_git(&server, &bundle, &head);
}

#[test]
fn grafts_and_replace_refs_do_not_bend_history() {
    let repo = Repo::new();
    let base = repo.commit("a", "1");
    repo.git(&["checkout", "-q", "--orphan", "loner"]);
    let loner = repo.commit("a", "2");
    fs::create_dir_all(repo.path().join(".git/info")).unwrap();
    fs::write(
        repo.path().join(".git/info/grafts"),
        format!("{loner} {base}\n"),
    )
    .unwrap();
    let bundle = Bundle::make(&repo.workspace(), &loner, &Exclude::History(vec![base]))
        .unwrap()
        .unwrap();
    let text = String::from_utf8_lossy(&bytes(&bundle)).into_owned();
    assert!(
        text.starts_with(&format!("# v2 git bundle\n{loner} ")),
        "no prerequisite: {text}"
    );
}

#[test]
fn hooks_and_monitors_of_the_workspace_do_not_run() {
    let repo = Repo::new();
    let head = repo.commit("a", "1");
    let mark = repo.path().join("ran");
    let script = format!("#!/bin/sh\ntouch '{}'\n", mark.display());
    for name in [
        "pre-commit",
        "post-checkout",
        "reference-transaction",
        "monitor",
    ] {
        repo.write(&format!(".git/hooks/{name}"), &script);
        let path = repo.path().join(".git/hooks").join(name);
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    repo.git(&["config", "core.fsmonitor", ".git/hooks/monitor"]);
    repo.write("a", "2");
    let workspace = repo.workspace();
    workspace.uncommitted(Path::new("ci_out")).unwrap();
    Worktree::commit(&workspace, &head, Path::new("ci_out")).unwrap();
    assert!(!mark.exists());
}

#[test]
fn sha256_repositories_are_bundled_too() {
    let dir = tempfile::tempdir().unwrap();
    let repo = Repo { dir };
    repo.git(&["init", "-q", "--object-format=sha256"]);
    let head = repo.commit("a", "1");
    assert_eq!(head.as_str().len(), 64);
    let bundle = Bundle::make(&repo.workspace(), &head, &Exclude::Nothing)
        .unwrap()
        .unwrap();
    let other = Repo {
        dir: tempfile::tempdir().unwrap(),
    };
    other.git(&["init", "-q", "--object-format=sha256"]);
    taken_by_git(&other, &bundle, &head);
}

#[test]
fn those_of_some_commits_that_are_here_are_told_in_one_look() {
    let repo = Repo::new();
    let first = repo.commit("a", "1");
    let second = repo.commit("a", "2");
    let tree = repo.git(&["rev-parse", "HEAD^{tree}"]).parse().unwrap();
    let nowhere = "1".repeat(40).parse().unwrap();
    let workspace = repo.workspace();
    assert_eq!(
        workspace
            .known(&[second.clone(), nowhere, tree, first.clone()])
            .unwrap(),
        [second, first.clone()]
    );
    assert_eq!(workspace.known(&[]).unwrap(), []);
    assert_eq!(workspace.has(&first).unwrap(), Presence::Here);
}

#[test]
fn a_bare_repository_has_no_work_tree_and_all_else() {
    let repo = Repo::new();
    let head = repo.commit("a", "1");
    let bare = clone_of(&repo, &["--bare"]);
    let workspace = Workspace::require(bare.path()).unwrap();
    assert!(workspace.top().is_none());
    assert_eq!(workspace.commit("HEAD").unwrap(), head);
    let bundle = Bundle::make(&workspace, &head, &Exclude::Nothing).unwrap();
    taken_by_git(&Repo::new(), &bundle.unwrap(), &head);
}
