//! N outcomes of one case to one class.

use super::Outcome;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a case is over all attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Class {
    /// Passed every time.
    #[serde(rename = "stable pass")]
    StablePass,
    /// Skipped or xfailed every time: neutral to `src_score`, judged by `flake_lease`.
    #[serde(rename = "silenced")]
    Silenced,
    /// Failed every time in the same way.
    #[serde(rename = "stable red")]
    StableRed,
    /// Anything else: never frozen, never a pass.
    #[serde(rename = "mixed")]
    Mixed,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StablePass => "stable pass",
            Self::Silenced => "silenced",
            Self::StableRed => "stable red",
            Self::Mixed => "mixed",
        })
    }
}

/// Whether a lease names the case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leased {
    /// One does; whether it holds is `flake_lease`'s question.
    Yes,
    /// None does: then an xfail that passes now and then is a flake like any other.
    No,
}

/// The class of a case with these outcomes. No outcome at all is mixed: nothing was seen.
#[must_use]
pub fn class_of(outcomes: &[Outcome], leased: Leased) -> Class {
    let Some(first) = outcomes.first() else {
        return Class::Mixed;
    };
    if outcomes.iter().all(|o| *o == Outcome::Passed) {
        return Class::StablePass;
    }
    if outcomes.iter().all(Outcome::is_silent) {
        let passing = outcomes.iter().filter(|o| **o == Outcome::Xpassed).count();
        let steady = passing == 0 || passing == outcomes.len();
        return match (leased, steady) {
            (Leased::Yes, _) | (Leased::No, true) => Class::Silenced,
            (Leased::No, false) => Class::Mixed,
        };
    }
    if first.red().is_some() && outcomes.iter().all(|o| o == first) {
        return Class::StableRed;
    }
    Class::Mixed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Signature;
    use crate::reason::Reason;

    #[test]
    fn the_table_of_the_protocol() {
        let red = |code, text: &str| Outcome::Red(code, vec![Signature::written(text)]);
        let pass = || Outcome::Passed;
        let fail = || red(Reason::CaseFailed, "E: x");
        let skip = || Outcome::Skipped(Signature::written("Skipped: r"));
        let xfail = || Outcome::Xfailed(Signature::written("E: x"));
        let xpass = || Outcome::Xpassed;
        for (outcomes, leased, unleased) in [
            (vec![pass(), pass()], Class::StablePass, Class::StablePass),
            (vec![skip(), skip()], Class::Silenced, Class::Silenced),
            (vec![skip(), xfail()], Class::Silenced, Class::Silenced),
            (vec![xpass(), xpass()], Class::Silenced, Class::Silenced),
            (vec![xfail(), xpass()], Class::Silenced, Class::Mixed),
            (vec![fail(), fail()], Class::StableRed, Class::StableRed),
            (
                vec![Outcome::Missing, Outcome::Missing],
                Class::StableRed,
                Class::StableRed,
            ),
            (
                vec![fail(), red(Reason::CaseFailed, "E: y")],
                Class::Mixed,
                Class::Mixed,
            ),
            (
                vec![fail(), red(Reason::CaseError, "E: x")],
                Class::Mixed,
                Class::Mixed,
            ),
            (vec![pass(), fail()], Class::Mixed, Class::Mixed),
            (vec![pass(), skip()], Class::Mixed, Class::Mixed),
            (vec![pass(), xpass()], Class::Mixed, Class::Mixed),
            (vec![pass(), Outcome::Missing], Class::Mixed, Class::Mixed),
            (vec![skip(), fail()], Class::Mixed, Class::Mixed),
            (vec![], Class::Mixed, Class::Mixed),
        ] {
            assert_eq!(class_of(&outcomes, Leased::Yes), leased, "{outcomes:?}");
            assert_eq!(class_of(&outcomes, Leased::No), unleased, "{outcomes:?}");
        }
    }
}
