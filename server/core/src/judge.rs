//! Facts to verdicts: a total function over plan, attempts and the gate's time. No I/O, no clock, no wildcard arm.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The word of one verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Word {
    /// It holds.
    #[serde(rename = "PASS")]
    Pass,
    /// It does not.
    #[serde(rename = "FAIL")]
    Fail,
    /// It was not asked.
    #[serde(rename = "NOT_RUN")]
    NotRun,
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::NotRun => "NOT_RUN",
        })
    }
}

/// Which of the three verdicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// Does the new product code hold against the old oracle?
    SrcScore,
    /// Did the measuring stick stay where it was?
    OracleIntegrity,
    /// Is every silence paid for, and is nothing unstable hidden?
    FlakeLease,
}

impl VerdictKind {
    /// All three, in the order of the join.
    pub const ALL: [Self; 3] = [Self::SrcScore, Self::OracleIntegrity, Self::FlakeLease];

    /// The name of its files, without ending.
    #[must_use]
    pub const fn file_stem(self) -> &'static str {
        match self {
            Self::SrcScore => "src_score",
            Self::OracleIntegrity => "oracle_integrity",
            Self::FlakeLease => "flake_lease",
        }
    }
}
