//! What a case says is right, held against what a score came to.

use crate::client::{report, words};
use crate::{Client, Materialized, Ran, Registered, Server};
use serde_json::Value;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// One score of a case.
pub struct Scored {
    /// What the client said.
    pub ran: Ran,
    /// How long it took.
    pub took: Duration,
    out: TempDir,
}

/// Register the case's base as the protected branch and score its head as an agent.
#[must_use]
pub fn score(server: &Server, case: &Materialized) -> (Registered, Scored) {
    let registered = server.register(case.origin.path());
    let scored = score_again(server, &registered, case);
    (registered, scored)
}

/// Score it once more.
#[must_use]
pub fn score_again(server: &Server, registered: &Registered, case: &Materialized) -> Scored {
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().join("ci_out");
    let client = Client::agent(server, registered, case.workspace.path());
    let begun = Instant::now();
    let ran = client.run(&[
        "score",
        "--head",
        &case.head,
        "--base",
        &case.base,
        "--out",
        folder.to_str().unwrap(),
    ]);
    Scored {
        ran,
        took: begun.elapsed(),
        out,
    }
}

impl Scored {
    /// Where the verdict files are, if there are any.
    #[must_use]
    pub fn out(&self) -> PathBuf {
        self.out.path().join("ci_out")
    }

    /// Whether the request was refused: its own exit code, and no file.
    #[must_use]
    pub fn refused(&self) -> bool {
        let refused = self.ran.code == 65;
        assert!(!refused || !self.out().exists(), "a refusal leaves no file");
        refused
    }

    /// Everything that was said: the report, and the client's own words.
    #[must_use]
    pub fn said(&self) -> String {
        let report = std::fs::read_to_string(self.out().join("report.json")).unwrap_or_default();
        format!("{report}\n{}\n{}", self.ran.stdout, self.ran.stderr)
    }

    /// The classes of all cases, by node id.
    #[must_use]
    pub fn classes(&self) -> Vec<(String, String)> {
        let report = report(&self.out());
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let cases = report["cases"].as_array().cloned().unwrap_or_default();
        cases
            .iter()
            .map(|case| (text(&case["node"]), text(&case["class"])))
            .collect()
    }

    /// Hold everything that `expect` says against what came of it.
    #[track_caller]
    pub fn meets(&self, expect: &Value) {
        let said = self.said();
        if let Some(wanted) = expect["reason_contains"].as_str() {
            let (wanted, said) = (wanted.to_lowercase(), said.to_lowercase());
            assert!(said.contains(&wanted), "nothing says {wanted:?}:\n{said}");
        }
        if let Some(limit) = expect["time_limit_s"].as_u64() {
            assert!(
                self.took <= Duration::from_secs(limit),
                "took {:?}",
                self.took
            );
        }
        if expect["refused"] == Value::Bool(true) {
            assert!(self.refused(), "not refused:\n{said}");
            return;
        }
        if self.refused() {
            assert!(
                expect["may_refuse"] == Value::Bool(true),
                "refused:\n{said}"
            );
            return;
        }
        assert!(
            matches!(self.ran.code, 0..=3),
            "no verdict, exit code {}:\n{said}",
            self.ran.code
        );
        match expect["merge"].as_bool() {
            Some(true) => assert_eq!(self.ran.code, 0, "{said}"),
            Some(false) => assert_ne!(self.ran.code, 0, "{said}"),
            None => {}
        }
        let names = ["src_score", "oracle_integrity", "flake_lease"];
        for (name, word) in names.iter().zip(words(&self.out())) {
            if let Some(wanted) = expect[name].as_str().filter(|w| *w != "*") {
                assert_eq!(word, wanted, "{name}:\n{said}");
            }
        }
        self.meets_nodes(expect);
    }

    #[track_caller]
    fn meets_nodes(&self, expect: &Value) {
        let classes = self.classes();
        let class = |node: &str| {
            let found = classes.iter().find(|(n, _)| n == node);
            found.map(|(_, class)| class.as_str())
        };
        let nodes = expect["nodes"].as_object().cloned().unwrap_or_default();
        for (node, wanted) in &nodes {
            assert_eq!(class(node), wanted.as_str(), "{node} in {classes:#?}");
        }
        for node in texts(&expect["nodes_not_passed"]) {
            assert_ne!(class(&node), Some("stable pass"), "{node}");
        }
        for node in texts(&expect["nodes_must_run"]) {
            assert!(class(&node).is_some(), "{node} did not run: {classes:#?}");
        }
        if let Some(others) = expect["others"].as_str() {
            for (node, class) in classes.iter().filter(|(n, _)| !nodes.contains_key(n)) {
                assert_eq!(class, others, "{node}");
            }
        }
        let counts = expect["node_count"]
            .as_object()
            .cloned()
            .unwrap_or_default();
        for (file, wanted) in counts {
            let of_file = |node: &str| {
                node.strip_prefix(file.as_str())
                    .is_some_and(|rest| rest.starts_with("::"))
            };
            let count = classes.iter().filter(|(node, _)| of_file(node)).count();
            assert_eq!(Some(count as u64), wanted.as_u64(), "{file}");
        }
    }
}

fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().cloned().unwrap_or_default();
    list.iter()
        .map(|value| value.as_str().unwrap().to_owned())
        .collect()
}
