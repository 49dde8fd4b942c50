//! Messages that wait, without SQL.

use super::super::StoreError;
use super::super::delivery::{Delivery, Message};
use super::super::record::{ScoreRecord, StateName};
use super::Shelves;
use std::collections::BTreeMap;
use tribunal_core::id::{ScoreId, UnixTime};

#[derive(Default)]
pub(super) struct Post {
    /// The last state that was told.
    told: BTreeMap<ScoreId, StateName>,
    waiting: Vec<Delivery>,
    numbers: u64,
}

impl Shelves {
    pub(super) fn untold(&self, limit: u32) -> Vec<ScoreRecord> {
        let records = self.scores.iter().map(|shelf| &shelf.record);
        let untold = records.filter(|record| {
            let state = record.state.name();
            state != StateName::Queued && self.post.told.get(&record.asked.id) != Some(&state)
        });
        untold.take(limit as usize).cloned().collect()
    }

    pub(super) fn tell(
        &mut self,
        score: &ScoreId,
        state: StateName,
        at: UnixTime,
        messages: &[Message],
    ) -> Result<(), StoreError> {
        let untold = self.untold(u32::MAX);
        let is_it = |r: &ScoreRecord| r.asked.id == *score && r.state.name() == state;
        if !untold.iter().any(is_it) {
            return Err(StoreError::Missing(format!("{state:?} of {score}, untold")));
        }
        let post = &mut self.post;
        post.told.insert(score.clone(), state);
        for message in messages {
            post.waiting.retain(|other| {
                let (new, old) = (message, &other.message);
                new.subject.is_none() || (&new.target, &new.subject) != (&old.target, &old.subject)
            });
            post.numbers += 1;
            post.waiting.push(Delivery {
                number: post.numbers,
                message: message.clone(),
                score: score.clone(),
                created: at,
                tries: 0,
                due: at,
            });
        }
        Ok(())
    }

    pub(super) fn due(&self, at: UnixTime, limit: u32) -> Vec<Delivery> {
        let mut places: BTreeMap<&str, u32> = BTreeMap::new();
        let due = self.post.waiting.iter().filter(|d| d.due <= at);
        due.filter(|d| {
            let place = places.entry(d.message.target.as_str()).or_default();
            *place += 1;
            *place <= limit
        })
        .cloned()
        .collect()
    }

    pub(super) fn waiting(&self) -> u64 {
        self.post.waiting.len() as u64
    }

    pub(super) fn put_off(&mut self, number: u64, due: UnixTime) {
        for delivery in &mut self.post.waiting {
            if delivery.number == number {
                delivery.tries += 1;
                delivery.due = due;
            }
        }
    }

    pub(super) fn over(&mut self, number: u64) {
        self.post.waiting.retain(|d| d.number != number);
    }
}
