//! The pipeline as the queue sees it: admission now, the work later.

use super::{NoVerdict, Rooms, admit, score};
use crate::queue::{Admission, Scorer};
use std::sync::Arc;
use tokio::sync::Semaphore;
use tribunal_core::reason::{Aborted, AbortedCode};
use tribunal_core::request::ScoreRequest;

/// Admissions at the same time: each may fetch, and walks trees that a stranger made.
const ADMISSIONS: usize = 4;

/// The real scorer.
pub struct PipelineScorer {
    rooms: Rooms,
    places: Arc<Semaphore>,
}

impl PipelineScorer {
    /// A scorer over these rooms.
    #[must_use]
    pub fn new(rooms: Rooms) -> Self {
        Self {
            rooms,
            places: Arc::new(Semaphore::new(ADMISSIONS)),
        }
    }
}

#[async_trait::async_trait]
impl Scorer for PipelineScorer {
    async fn admit(&self, request: ScoreRequest) -> Result<Admission, NoVerdict> {
        let broken = |what: String| Aborted::new(AbortedCode::Internal, what);
        let place = Arc::clone(&self.places)
            .acquire_owned()
            .await
            .map_err(|error| broken(error.to_string()))?;
        let repository = Arc::clone(&self.rooms.repository);
        let admitted = tokio::task::spawn_blocking(move || {
            let _place = place;
            admit(&*repository, &request)
        })
        .await
        .map_err(|error| broken(format!("an admission failed: {error}")))??;
        let patch = admitted.patch();
        let commits = patch.commits();
        let (head, base) = (commits.head.id.clone(), commits.base.id.clone());
        let (base_tip, change_set) = (commits.base_tip.clone(), patch.change_set());
        let rooms = self.rooms.clone();
        Ok(Admission {
            head,
            base,
            base_tip,
            change_set,
            work: Box::new(move |id, progress, cancel| {
                Box::pin(async move { score(&rooms, id, admitted, progress, cancel).await })
            }),
        })
    }
}
