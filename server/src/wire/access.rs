//! Who may call what, over the wire and on the page, as one table; and which scores a caller sees.

use crate::store::ScoreRecord;
use tribunal_core::id::RepoName;
use tribunal_core::reason::{Refused, RefusedCode};
use tribunal_core::request::{Caller, Role};

/// Everything that can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Act {
    /// CreateScore and Score.
    AskForScore,
    /// GetScore, WatchScore, ListScores, ListFlakyCases, GetVerdicts.
    ReadScores,
    /// CancelScore on a score of the same token.
    CancelOwn,
    /// CancelScore on a score of another token.
    CancelOthers,
    /// UploadCommits.
    Upload,
    /// GetRepository, ListRepositories.
    ReadRepositories,
    /// ListCases.
    ListCases,
    /// ListModes.
    ListModes,
    /// Record.
    Record,
    /// ListKeys.
    ReadKeys,
    /// The page for people.
    ReadPage,
}

impl Act {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::AskForScore,
        Self::ReadScores,
        Self::CancelOwn,
        Self::CancelOthers,
        Self::Upload,
        Self::ReadRepositories,
        Self::ListCases,
        Self::ListModes,
        Self::Record,
        Self::ReadKeys,
        Self::ReadPage,
    ];
}

/// Whether something is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowed {
    /// It is.
    Yes,
    /// It is not.
    No,
}

/// The table.
#[must_use]
pub const fn allowed(role: Role, act: Act) -> Allowed {
    match act {
        Act::AskForScore
        | Act::ReadScores
        | Act::CancelOwn
        | Act::Upload
        | Act::ReadRepositories
        | Act::ReadKeys => match role {
            Role::Agent | Role::Ci | Role::Maintainer | Role::Operator => Allowed::Yes,
        },
        Act::ListModes | Act::ReadPage => match role {
            Role::Ci | Role::Maintainer | Role::Operator => Allowed::Yes,
            Role::Agent => Allowed::No,
        },
        Act::CancelOthers | Act::ListCases | Act::Record => match role {
            Role::Maintainer | Role::Operator => Allowed::Yes,
            Role::Agent | Role::Ci => Allowed::No,
        },
    }
}

/// `forbidden` unless the caller's role allows the act.
pub(super) fn require(caller: &Caller, act: Act) -> Result<(), Refused> {
    match allowed(caller.role, act) {
        Allowed::Yes => Ok(()),
        Allowed::No => Err(Refused::new(
            RefusedCode::Forbidden,
            "this token's role does not allow the call",
        )),
    }
}

/// `forbidden` unless the caller's scope reaches the repository. Whether there is such a repository is not told.
pub(crate) fn reach(caller: &Caller, repository: &RepoName) -> Result<(), Refused> {
    match &caller.scope {
        Some(scope) if scope != repository => Err(Refused::new(
            RefusedCode::Forbidden,
            format!("this token does not reach repository {repository}"),
        )),
        Some(_) | None => Ok(()),
    }
}

/// `not-found` unless the caller sees the score: an agent its own, everyone else those of the repository.
pub(crate) fn see(caller: &Caller, score: &ScoreRecord) -> Result<(), Refused> {
    let own = match caller.role {
        Role::Agent => score.asked.token == caller.token,
        Role::Ci | Role::Maintainer | Role::Operator => true,
    };
    if own && reach(caller, &score.asked.repository).is_ok() {
        Ok(())
    } else {
        Err(no_score())
    }
}

pub(crate) fn no_score() -> Refused {
    Refused::new(
        RefusedCode::NotFound,
        "there is no such score, or this token may not see it",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_roles() {
        let yes_of = |role| -> Vec<Act> {
            Act::ALL
                .into_iter()
                .filter(|act| allowed(role, *act) == Allowed::Yes)
                .collect()
        };
        let everyone = [
            Act::AskForScore,
            Act::ReadScores,
            Act::CancelOwn,
            Act::Upload,
            Act::ReadRepositories,
            Act::ReadKeys,
        ];
        assert_eq!(yes_of(Role::Agent), everyone);
        let mut ci = everyone.to_vec();
        ci.insert(5, Act::ListModes);
        ci.push(Act::ReadPage);
        assert_eq!(yes_of(Role::Ci), ci);
        assert_eq!(yes_of(Role::Maintainer), Act::ALL);
        assert_eq!(yes_of(Role::Operator), Act::ALL);
    }
}
