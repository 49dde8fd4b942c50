//! `leases`: who may be silent, until when: as a checkout's file says, or as a score's gate judged it.

use super::Sources;
use super::arguments::LeasesArguments;
use super::budget::Answer;
use super::errors::ErrorAnswer;
use super::reports::Reports;
use super::scores::workspace;
use crate::checkout::{policy_in, read};
use crate::config::Needs;
use crate::failure::Failure;
use crate::gate;
use crate::remote::score_name;
use rmcp::schemars::{self, JsonSchema};
use serde::Serialize;
use tribunal_core::id::UnixTime;
use tribunal_core::lease::{Lease, LeaseFile};
use tribunal_core::report::LeasePart;
use tribunal_core::text::shown;

/// Longest text of one field.
const TEXT: usize = 300;

/// One lease
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct LeaseAnswer {
    /// The case, as the file spells it
    case: String,
    /// in-date or expired by this machine's clock; of a score: holds, or the reason codes why it does not
    standing: String,
    /// When it ends, RFC 3339
    expires_at: String,
    /// Who answers for it
    owner: String,
    /// Why
    reason: String,
}

/// Leases, the next to expire first
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct LeasesAnswer {
    /// The file, or the score's name
    source: Option<String>,
    /// The leases
    leases: Vec<LeaseAnswer>,
    /// How many had no room here
    more: usize,
    /// Why the call came to nothing
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorAnswer>,
}

/// List them.
pub(super) async fn leases(
    arguments: &LeasesArguments,
    sources: &Sources,
    reports: &Reports,
) -> LeasesAnswer {
    let listed = match arguments.score.as_deref() {
        Some(score) => of_score(score, sources, reports).await,
        None => of_checkout(arguments.workspace.as_deref()),
    };
    match listed {
        Ok((source, mut leases)) => {
            leases.sort_by(|one, next| one.expires_at.cmp(&next.expires_at));
            LeasesAnswer {
                source: Some(source),
                leases,
                more: 0,
                error: None,
            }
        }
        Err(failure) => LeasesAnswer::failed(&failure),
    }
}

async fn of_score(
    score: &str,
    sources: &Sources,
    reports: &Reports,
) -> Result<(String, Vec<LeaseAnswer>), Failure> {
    let settings = sources.settings(Needs::Server)?;
    let name = score_name(score, settings.known_repo())?;
    let report = reports.of(&name, sources).await?;
    Ok((
        name,
        report.leases.iter().map(LeaseAnswer::judged).collect(),
    ))
}

fn of_checkout(named: Option<&str>) -> Result<(String, Vec<LeaseAnswer>), Failure> {
    let workspace = workspace(named)?;
    let top = workspace.top().ok_or_else(|| {
        let why = "a bare repository has no work tree";
        Failure::usage("find the lease file", why, "name a checkout").coded("bad-workspace")
    })?;
    let path = policy_in(top)?.paths.leases;
    let bytes = read(&top.join(path.as_str()))?;
    let file = LeaseFile::parse(bytes.as_deref()).map_err(|e| {
        let next = "a maintainer mends the place that is named";
        Failure::usage(format!("read {path}"), e, next).coded("lease-file-invalid")
    })?;
    let now = gate::now();
    let leases = file.leases().iter();
    let leases = leases.map(|lease| LeaseAnswer::written(lease, now));
    Ok((shown(path.as_str(), TEXT), leases.collect()))
}

impl LeaseAnswer {
    fn written(lease: &Lease, now: UnixTime) -> Self {
        let standing = if now < lease.expires_at {
            "in-date"
        } else {
            "expired"
        };
        Self {
            case: shown(&lease.qualname, TEXT),
            standing: standing.to_owned(),
            expires_at: lease.expires_at.rfc3339(),
            owner: shown(&lease.owner, TEXT),
            reason: shown(&lease.reason, TEXT),
        }
    }

    fn judged(lease: &LeasePart) -> Self {
        let refused: Vec<&str> = lease.refused.iter().map(|reason| reason.code()).collect();
        Self {
            case: shown(&lease.qualname, TEXT),
            standing: match refused.is_empty() {
                true => "holds".to_owned(),
                false => refused.join(", "),
            },
            expires_at: shown(&lease.expires_at, TEXT),
            owner: shown(&lease.owner, TEXT),
            reason: shown(&lease.reason, TEXT),
        }
    }
}

impl LeasesAnswer {
    pub(super) fn failed(failure: &Failure) -> Self {
        Self {
            source: None,
            leases: Vec::new(),
            more: 0,
            error: Some(failure.into()),
        }
    }
}

impl Answer for LeasesAnswer {
    fn text(&self) -> String {
        if let Some(error) = &self.error {
            return error.text();
        }
        let source = self.source.as_deref().unwrap_or_default();
        let mut lines = vec![format!(
            "{} leases in {source}",
            self.leases.len() + self.more
        )];
        lines.extend(self.leases.iter().map(|lease| {
            format!(
                "- {}: {}, until {} ({}): {}",
                lease.case, lease.standing, lease.expires_at, lease.owner, lease.reason
            )
        }));
        if self.more > 0 {
            lines.push(format!("… {} more", self.more));
        }
        lines.join("\n")
    }

    fn shrink(&mut self) -> bool {
        if self.leases.pop().is_some() {
            self.more += 1;
            return true;
        }
        self.error.as_mut().is_some_and(ErrorAnswer::shrink)
    }

    fn failed(&self) -> bool {
        self.error.is_some()
    }
}
