//! From the classes of the changed paths to the standing of the whole patch.

use super::{PathClass, Standing};
use crate::git::Change;
use crate::plan::Finding;
use crate::policy::{POLICY_PATH, Paths};
use crate::reason::Reason;
use crate::request::Role;

/// How many edited paths are named one by one.
const NAMED: usize = 50;

/// src plus oracle bars the patch whoever sends it; the oracle alone is a maintainer's to change.
pub(super) fn standing(paths: &Paths, role: Role, changes: &[(Change, PathClass)]) -> Standing {
    let with_src = changes.iter().any(|(_, class)| *class == PathClass::Src);
    let mut edits: Vec<Finding> = changes
        .iter()
        .filter(|(_, class)| *class == PathClass::Oracle)
        .map(|(change, _)| edit(paths, change))
        .collect();
    if edits.is_empty() {
        return Standing::Agent;
    }
    let mut findings = Vec::new();
    match (with_src, role) {
        (false, Role::Maintainer | Role::Operator) => return Standing::Human,
        (false, Role::Agent | Role::Ci) => findings.push(Finding {
            reason: Reason::OracleChangeNeedsMaintainer,
            subject: None,
            detail: format!("oracle paths changed: {}", edits.len()),
        }),
        (true, Role::Agent | Role::Ci | Role::Maintainer | Role::Operator) => {}
    }
    // Policy and leases first, so that no crowd of other edits pushes them out of the list.
    edits.sort_by_key(|finding| finding.reason == Reason::OracleEdit);
    let rest = edits.len().saturating_sub(NAMED);
    edits.truncate(NAMED);
    findings.append(&mut edits);
    if rest > 0 {
        findings.push(Finding {
            reason: Reason::OracleEdit,
            subject: None,
            detail: format!("oracle paths changed beside these: {rest}"),
        });
    }
    Standing::Barred(findings)
}

fn edit(paths: &Paths, change: &Change) -> Finding {
    let path = change.path.as_bytes();
    let reason = if path == POLICY_PATH.as_bytes() {
        Reason::PolicyEdit
    } else if path == paths.leases.as_str().as_bytes() {
        Reason::LeaseEdit
    } else {
        Reason::OracleEdit
    };
    let did = match (&change.base, &change.head) {
        (None, _) => "added",
        (Some(_), None) => "deleted",
        (Some(_), Some(_)) => "changed",
    };
    Finding::at(reason, &change.path, format!("{did} by the patch"))
}
