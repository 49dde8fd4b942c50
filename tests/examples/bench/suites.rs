//! What is scored: small projects with a sealed suite each, and heads of them that nobody has scored before.

use serde_json::Value;
use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::time::Duration;
use tribunal_tests::{Case, Client, Registered, Repo, Server};

const POLICY: &str = include_str!("policy.toml");

/// One suite: a workspace whose first commit is the protected base.
pub(super) struct Suite {
    /// Sealed cases.
    pub(super) cases: usize,
    pub(super) work: Repo,
    pub(super) base: String,
    /// The runner image that its policy names.
    pub(super) image: String,
    /// The product's file that heads change.
    product: &'static str,
    heads: Cell<u32>,
}

impl Suite {
    fn of(work: Repo, product: &'static str, cases: usize) -> Self {
        Self {
            cases,
            base: work.head(),
            work,
            image: DEFAULT.to_owned(),
            product,
            heads: Cell::new(0),
        }
    }

    /// A few properties of one function, over announced seeds: 41 cases.
    pub(super) fn small() -> Self {
        let work = made(
            "src/intervals.py",
            include_str!("suites/intervals.py"),
            include_str!("suites/test_intervals.py"),
        );
        Self::of(work, "src/intervals.py", 41)
    }

    /// The sealed tests that the corpus of exploits is judged by, over a src that is right: 27 cases, some 3700 calls.
    pub(super) fn corpus() -> Self {
        let case = Case::named("exploits", "00").materialize();
        let work = case.workspace;
        work.git(&["checkout", "-q", &case.head]);
        Self::of(work, "src/money.py", 27)
    }

    /// One call and one comparison, so many times.
    pub(super) fn many(cases: usize) -> Self {
        Self::busy(cases, 0)
    }

    /// The same, and before it a body that computes for so many rounds.
    pub(super) fn busy(cases: usize, rounds: u32) -> Self {
        let sealed = format!(
            "import pytest\nfrom intervals import merge\n\n\n@pytest.mark.parametrize(\"n\", range({cases}))\ndef test_one(n):\n    for _ in range({rounds}):\n        pass\n    assert merge([(n, n + 2), (n + 1, n + 3)]) == [(n, n + 3)]\n"
        );
        let work = made(
            "src/intervals.py",
            include_str!("suites/intervals.py"),
            &sealed,
        );
        Self::of(work, "src/intervals.py", cases)
    }

    /// Arrays, frames and properties: dependencies that take their time to import, out of an image that has them.
    pub(super) fn arrays(image: &str) -> Self {
        let work = made(
            "src/columns.py",
            include_str!("suites/columns.py"),
            include_str!("suites/test_columns.py"),
        );
        let policy = POLICY.replace(DEFAULT, image);
        work.write("ci/tribunal.toml", policy);
        work.commit("dependencies");
        Self {
            image: image.to_owned(),
            ..Self::of(work, "src/columns.py", 12)
        }
    }

    /// The same with files beside it that no test reads.
    pub(super) fn with_files(self, folder: &str, files: usize, bytes: usize) -> Self {
        let line = "# nothing to see here, and a little more of it\n";
        for n in 0..files {
            let text = line.repeat(bytes.div_ceil(line.len()));
            self.work
                .write(&format!("{folder}/ballast_{n}.py"), &text[..bytes]);
        }
        self.work.commit("ballast");
        Self {
            base: self.work.head(),
            ..self
        }
    }

    /// The same under another number of attempts.
    pub(super) fn with_attempts(self, attempts: usize) -> Self {
        let policy = POLICY.replace("reruns = 7", &format!("reruns = {attempts}"));
        self.work.write("ci/tribunal.toml", policy);
        self.work.commit("attempts");
        Self {
            base: self.work.head(),
            ..self
        }
    }

    /// The same with every sealed file in one process with the product.
    pub(super) fn in_one_process(self) -> Self {
        let policy = POLICY.replace("shared = []", "shared = [\"tests/sealed/test_sealed.py\"]");
        self.work.write("ci/tribunal.toml", policy);
        self.work.commit("one process");
        Self {
            base: self.work.head(),
            ..self
        }
    }

    /// A head whose src nobody has seen.
    pub(super) fn head(&self) -> String {
        let number = self.heads.get() + 1;
        self.heads.set(number);
        let text = fs::read_to_string(self.work.path().join(self.product)).unwrap();
        let text = text
            .split("\n# head ")
            .next()
            .unwrap()
            .trim_end()
            .to_owned();
        self.work
            .write(self.product, format!("{text}\n# head {number}\n"));
        self.work.commit("a head")
    }

    /// The tree as an agent has it, without git.
    pub(super) fn lay(&self, at: &Path) {
        let archive = self.work.git(&["rev-parse", "HEAD"]);
        let tar = at.join("tree.tar");
        self.work
            .git(&["archive", "-o", tar.to_str().unwrap(), &archive]);
        super::run(
            std::process::Command::new("tar")
                .args(["-xf", tar.to_str().unwrap(), "-C"])
                .arg(at),
        );
        fs::remove_file(tar).unwrap();
    }

    /// Registered with this server, its base protected.
    pub(super) fn on<'a>(&'a self, server: &'a Server) -> Registration {
        let origin = self.work.origin_at(&self.base);
        let registered = server.register(origin.path());
        let client = Client::agent(server, &registered, self.work.path());
        Registration {
            client,
            registered,
            _origin: origin,
        }
    }
}

/// The image that has no dependencies.
const DEFAULT: &str = "tribunal/python:3.13";

/// A suite that a server knows.
pub(super) struct Registration {
    pub(super) client: Client,
    pub(super) registered: Registered,
    _origin: Repo,
}

impl Registration {
    /// `tribunal score` of this head, which must merge.
    pub(super) fn score(&self, head: &str) {
        self.report(head);
    }

    /// The same: how long the client took, and the report that it wrote.
    pub(super) fn report(&self, head: &str) -> (Duration, Value) {
        let out = tempfile::tempdir().unwrap();
        let out = out.path().join("ci_out");
        let args = ["score", "--head", head, "--out", out.to_str().unwrap()];
        let took = super::timed(|| {
            self.client.run(&args).expect_code(0);
        });
        let report = fs::read(out.join("report.json")).unwrap();
        (took, serde_json::from_slice(&report).unwrap())
    }
}

fn made(product: &str, src: &str, sealed: &str) -> Repo {
    let work = Repo::empty();
    work.write(product, src);
    work.write("tests/sealed/test_sealed.py", sealed);
    work.write("tests/sealed/MANIFEST.txt", "tests/sealed/test_sealed.py\n");
    work.write("ci/flake_leases.json", "{\n  \"leases\": []\n}\n");
    work.write("ci/tribunal.toml", POLICY);
    work.commit("base");
    work
}
