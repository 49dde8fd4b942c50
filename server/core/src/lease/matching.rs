//! Which lease names which case: by file stem and dotted name, or by node id; with the brackets of a parameter, or without.
//!
//! Node ids are never split: parameter ids may hold `::`, brackets and anything else. What collection said of file and
//! qualified name is put together again and compared.

use super::{Lease, LeaseFile};
use crate::id::{NodeId, RepoPath};

/// A case as far as a lease can name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate<'a> {
    /// The runner's id.
    pub node: &'a NodeId,
    /// Its file.
    pub file: &'a RepoPath,
    /// Classes and function, dotted; empty for a whole file.
    pub qualname: &'a str,
}

/// How a lease stands to a case; later is closer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Match {
    /// It names something else.
    No,
    /// It would name it, but two sealed files have this stem: only the node id will do.
    Ambiguous,
    /// It names the function, by stem.
    Function,
    /// It names the function, by path.
    FunctionByPath,
    /// It names this very case, by stem and brackets.
    Case,
    /// It names this very case, by node id.
    CaseByPath,
}

/// The stems of the sealed files, to tell which are ambiguous.
#[derive(Debug, Clone)]
pub struct Names<'a> {
    files: &'a [RepoPath],
}

impl<'a> Names<'a> {
    /// Of these sealed files.
    #[must_use]
    pub const fn of(files: &'a [RepoPath]) -> Self {
        Self { files }
    }

    /// How this lease stands to this case.
    #[must_use]
    pub fn matches(&self, lease: &Lease, case: Candidate<'_>) -> Match {
        let name = lease.qualname.as_str();
        let function = function_id(case);
        if name == case.node.as_str() {
            return Match::CaseByPath;
        }
        if name == function {
            return Match::FunctionByPath;
        }
        let stem = stem(case.file);
        let dotted = match case.qualname {
            "" => stem.to_owned(),
            qualname => format!("{stem}.{qualname}"),
        };
        let Some(brackets) = name.strip_prefix(&dotted) else {
            return Match::No;
        };
        let own = case
            .node
            .as_str()
            .strip_prefix(&function)
            .unwrap_or_default();
        let found = if brackets == own && !own.is_empty() {
            Match::Case
        } else if brackets.is_empty() {
            Match::Function
        } else {
            return Match::No;
        };
        if self
            .files
            .iter()
            .filter(|file| self::stem(file) == stem)
            .count()
            > 1
        {
            Match::Ambiguous
        } else {
            found
        }
    }

    /// The closest lease of the file that names this case, and how. `Ambiguous` is an answer too.
    #[must_use]
    pub fn closest<'l>(
        &self,
        file: &'l LeaseFile,
        case: Candidate<'_>,
    ) -> Option<(&'l Lease, Match)> {
        file.leases()
            .iter()
            .map(|lease| (lease, self.matches(lease, case)))
            .filter(|(_, found)| *found != Match::No)
            .max_by_key(|(_, found)| *found)
    }
}

/// The node id of the function itself: the case's own without what a parameter or a repetition adds.
fn function_id(case: Candidate<'_>) -> String {
    match case.qualname {
        "" => case.file.to_string(),
        qualname => format!("{}::{}", case.file, qualname.replace('.', "::")),
    }
}

fn stem(file: &RepoPath) -> &str {
    let name = file.as_str().rsplit('/').next().unwrap_or_default();
    name.strip_suffix(".py").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;
    use crate::id::UnixTime;
    use crate::lease::LeaseDigest;
    use crate::outcome::Signature;

    fn lease(qualname: &str) -> Lease {
        Lease {
            qualname: qualname.into(),
            digest: LeaseDigest::Short("0".repeat(16)),
            signature: Signature::written("E: x"),
            expires_at: UnixTime(0),
            owner: "o".into(),
            reason: "r".into(),
        }
    }

    #[test]
    fn names_and_what_they_name() {
        let files: Vec<RepoPath> = [
            "tests/sealed/test_parser.py",
            "tests/sealed/a/test_x.py",
            "tests/sealed/b/test_x.py",
        ]
        .map(|f| f.parse().unwrap())
        .to_vec();
        let parser = "tests/sealed/test_parser.py";
        for (name, node, file, qualname, right) in [
            (
                "test_parser.test_a",
                "::test_a",
                0,
                "test_a",
                Match::Function,
            ),
            (
                "test_parser.test_a",
                "::test_a[1]",
                0,
                "test_a",
                Match::Function,
            ),
            ("test_parser.test_a", "::test_ab", 0, "test_ab", Match::No),
            (
                "test_parser.test_a[1]",
                "::test_a[1]",
                0,
                "test_a",
                Match::Case,
            ),
            (
                "test_parser.test_a[1]",
                "::test_a[2]",
                0,
                "test_a",
                Match::No,
            ),
            ("test_parser.test_a[1]", "::test_a", 0, "test_a", Match::No),
            (
                "test_parser.test_a[a::b]",
                "::test_a[a::b]",
                0,
                "test_a",
                Match::Case,
            ),
            (
                "test_parser.test_a[x]y[z]",
                "::test_a[x]y[z]",
                0,
                "test_a",
                Match::Case,
            ),
            (
                "test_parser.TestComma.test_trailing",
                "::TestComma::test_trailing",
                0,
                "TestComma.test_trailing",
                Match::Function,
            ),
            (
                "test_parser.test_trailing",
                "::TestComma::test_trailing",
                0,
                "TestComma.test_trailing",
                Match::No,
            ),
            (
                "tests/sealed/test_parser.py::test_a",
                "::test_a[1]",
                0,
                "test_a",
                Match::FunctionByPath,
            ),
            (
                "tests/sealed/test_parser.py::test_a[1]",
                "::test_a[1]",
                0,
                "test_a",
                Match::CaseByPath,
            ),
            (
                "tests/sealed/test_parser.py::test_a",
                "::test_a",
                0,
                "test_a",
                Match::CaseByPath,
            ),
            ("test_x.test_a", "::test_a", 1, "test_a", Match::Ambiguous),
            (
                "tests/sealed/a/test_x.py::test_a",
                "::test_a",
                1,
                "test_a",
                Match::CaseByPath,
            ),
            (
                "tests/sealed/a/test_x.py::test_a",
                "::test_a",
                2,
                "test_a",
                Match::No,
            ),
            (
                "test_parser.test_a",
                "::test_a[NOTSET]",
                0,
                "test_a",
                Match::Function,
            ),
            ("test_parser", "", 0, "", Match::Function),
            (parser, "", 0, "", Match::CaseByPath),
            ("parser.test_a", "::test_a", 0, "test_a", Match::No),
        ] {
            let path = files.get(file).unwrap();
            let node: NodeId = format!("{path}{node}").parse().unwrap();
            let found = Names::of(&files).matches(
                &lease(name),
                Candidate {
                    node: &node,
                    file: path,
                    qualname,
                },
            );
            assert_eq!(found, right, "{name} for {node}");
        }
    }

    #[test]
    fn the_closest_lease_is_taken() {
        let files: Vec<RepoPath> = vec!["tests/sealed/test_p.py".parse().unwrap()];
        let file = LeaseFile {
            leases: vec![lease("test_p.test_a[1]"), lease("test_p.test_a")],
        };
        let closest = |node: &str| {
            let node: NodeId = node.parse().unwrap();
            let case = Candidate {
                node: &node,
                file: files.first().unwrap(),
                qualname: "test_a",
            };
            Names::of(&files)
                .closest(&file, case)
                .map(|(l, _)| l.qualname.clone())
        };
        assert_eq!(
            closest("tests/sealed/test_p.py::test_a[1]").as_deref(),
            Some("test_p.test_a[1]")
        );
        assert_eq!(
            closest("tests/sealed/test_p.py::test_a[2]").as_deref(),
            Some("test_p.test_a")
        );
    }
}
