//! A repository that a server knows, its protected branch, and a workspace in which somebody works.

use crate::client::{report, words};
use crate::{Client, Ran, Registered, Repo, Server, Wire};
use std::path::PathBuf;
use tempfile::TempDir;

/// All of it.
pub struct Stage<'a> {
    /// The server.
    pub server: &'a Server,
    /// The remote, as the operator registered it.
    pub origin: Repo,
    /// Its name and tokens.
    pub registered: Registered,
    /// A clone of the remote.
    pub workspace: Repo,
    out: TempDir,
}

impl<'a> Stage<'a> {
    /// Register this repository's HEAD as the protected branch, and clone it.
    #[must_use]
    pub fn of(server: &'a Server, base: &Repo) -> Self {
        let origin = base.origin_at(&base.head());
        let registered = server.register(origin.path());
        Self::around(server, origin, registered)
    }

    /// The same under this name.
    #[must_use]
    pub fn called(server: &'a Server, name: &str, base: &Repo) -> Self {
        let origin = base.origin_at(&base.head());
        let registered = server.register_as(name, origin.path());
        Self::around(server, origin, registered)
    }

    fn around(server: &'a Server, origin: Repo, registered: Registered) -> Self {
        Self {
            server,
            workspace: origin.cloned(),
            origin,
            registered,
            out: tempfile::tempdir().unwrap(),
        }
    }

    /// With the small repository.
    #[must_use]
    pub fn small(server: &'a Server) -> Self {
        Self::of(server, &Repo::small())
    }

    /// A folder for verdict files that nobody made yet.
    #[must_use]
    pub fn out(&self, name: &str) -> PathBuf {
        self.out.path().join(name)
    }

    /// The client as the repository's agent.
    #[must_use]
    pub fn agent(&self) -> Client {
        Client::agent(self.server, &self.registered, self.workspace.path())
    }

    /// The client as its CI.
    #[must_use]
    pub fn ci(&self) -> Client {
        Client::ci(self.server, &self.registered, self.workspace.path())
    }

    /// The client as its maintainer.
    #[must_use]
    pub fn maintainer(&self) -> Client {
        Client::maintainer(self.server, &self.registered, self.workspace.path())
    }

    /// Score the workspace's HEAD into the folder of that name.
    pub fn score(&self, client: &Client, out: &str) -> Ran {
        client.run(&["score", "--out", self.out(out).to_str().unwrap()])
    }

    /// Join that folder with what the server shows as its keys, offline.
    pub fn join(&self, out: &str, extra: &[&str]) -> Ran {
        let (key, out) = (self.server.key_file(), self.out(out));
        let mut args = vec![
            "join",
            out.to_str().unwrap(),
            "--key",
            key.to_str().unwrap(),
        ];
        args.extend_from_slice(extra);
        Client::offline(self.workspace.path()).run(&args)
    }

    /// A commit that only src has changed in, and that is right; the same text always makes the same tree.
    pub fn honest_patch(&self, note: &str) -> String {
        self.workspace.write(
            "src/calc.py",
            format!("# {note}\ndef total(xs):\n    s = 0\n    for x in xs:\n        s += x\n    return s\n"),
        );
        self.workspace.commit(note)
    }

    /// A commit that is wrong.
    pub fn wrong_patch(&self, note: &str) -> String {
        self.workspace.write(
            "src/calc.py",
            format!("# {note}\ndef total(xs):\n    return len(xs)\n"),
        );
        self.workspace.commit(note)
    }

    /// Send a commit as this token, without asking for a score.
    pub fn send(&self, token: &str, commit: &str) {
        let bundle = self.out("bundle");
        let path = bundle.to_str().unwrap();
        self.workspace.git(&["branch", "-f", "sent", commit]);
        self.workspace
            .git(&["bundle", "create", "-q", path, "sent", "^origin/main"]);
        let file = std::fs::File::open(&bundle).unwrap();
        let size = file.metadata().unwrap().len();
        let wire = Wire::new(self.server, &self.registered, token);
        assert_eq!(wire.upload(size, file).unwrap(), [commit]);
    }

    /// All that a token gets of the score in that folder, by every call that there is.
    #[must_use]
    pub fn everything(&self, client: &Client, out: &str, ran: &Ran) -> String {
        let mut all = format!("{}\n{}\n", ran.stdout, ran.stderr);
        for file in std::fs::read_dir(self.out(out)).unwrap() {
            let bytes = std::fs::read(file.unwrap().path()).unwrap();
            all.push_str(&String::from_utf8_lossy(&bytes));
        }
        let report = report(&self.out(out));
        let score = report["score"].as_str().unwrap();
        for args in [
            &["explain", score][..],
            &["--json", "explain", score],
            &["--json", "watch", score],
            &["--json", "list"],
            &["--json", "list", "--flaky"],
        ] {
            let ran = client.run(args);
            all.push_str(&ran.stdout);
            all.push_str(&ran.stderr);
        }
        all
    }

    /// Land the workspace's HEAD on the protected branch.
    pub fn land(&self) {
        let origin = self.origin.path().to_str().unwrap();
        self.workspace
            .git(&["push", "-q", origin, "HEAD:refs/heads/main"]);
        self.workspace.git(&["fetch", "-q", "origin"]);
    }

    /// The three words in that folder are these; the report's verdicts are in the panic.
    #[track_caller]
    pub fn expect(&self, out: &str, wanted: [&str; 3]) {
        let out = self.out(out);
        assert_eq!(words(&out), wanted, "{:#}", report(&out)["verdicts"]);
    }
}
