//! How a case may be named to a reader: head names what base does not have, and could put there whatever it saw.

use crate::id::NodeId;
use crate::judge::Origin;
use crate::outcome::Lane;
use crate::policy::FeedbackLevel;

/// The case's name as a reader at this level may hear it; `None` where it may not.
#[must_use]
pub fn told_name(
    node: &NodeId,
    origin: Origin,
    lane: Lane,
    level: FeedbackLevel,
) -> Option<NodeId> {
    match level {
        FeedbackLevel::Full => Some(node.clone()),
        FeedbackLevel::Verdict => None,
        FeedbackLevel::Names => match (lane, origin) {
            // These tests are the patch's own, but they ran where the sealed ones lie.
            (Lane::Merge | Lane::Proposed, _) => Some(node.without_parameters()),
            (
                Lane::Property
                | Lane::HeldOut
                | Lane::Liveness
                | Lane::MustFail
                | Lane::LeaseSide
                | Lane::Perturbed
                | Lane::BaseCollection,
                origin,
            ) => match origin {
                Origin::Base => Some(node.clone()),
                Origin::Extra => Some(node.without_parameters()),
                Origin::Foreign => None,
            },
        },
    }
}
