//! Draws of a score: which it makes on head, and, where a case fails or the product does what base was not seen doing, on
//! base.
//!
//! Nothing of them is told while they run. A failure is on record before it is compared, so that whoever cancels has had
//! it counted all the same.

use super::base::key;
use super::evidence::{Evidence, Ground, Run};
use super::running::Keeping;
use crate::clock;
use crate::sandbox::{AttemptOrder, Deserved, Questions, RunOrder};
use crate::store::{self, AttemptKey, Collected};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use tribunal_core::held_out::{Failures, planned};
use tribunal_core::id::Digest;
use tribunal_core::judge::{self, AskBase, HeldOutEvidence};
use tribunal_core::outcome::{AttemptFacts, Lane, Pins};
use tribunal_core::reason::{Aborted, AbortedCode};
use tribunal_core::report;
use tribunal_core::request::Freshness;

/// Rounds of "draw once more, run base": each may bring a case that the one before did not show.
const ROUNDS: u32 = 8;

/// All held-out attempts that the judge sees.
#[derive(Default)]
pub(super) struct HeldOutRuns {
    /// How many draws the score makes.
    pub(super) planned: u32,
    /// On head, oldest first: what was stored, then what was run.
    pub(super) head: Vec<AttemptFacts>,
    /// How many of them were stored.
    pub(super) stored: usize,
    /// On base.
    pub(super) base: Vec<AttemptFacts>,
    /// How long all of it took.
    pub(super) took: Duration,
}

impl HeldOutRuns {
    pub(super) fn of(&self) -> HeldOutEvidence<'_> {
        HeldOutEvidence {
            planned: self.planned,
            head: &self.head,
            base: &self.base,
        }
    }

    /// Each attempt with where it came from.
    pub(super) fn sources(&self) -> Vec<(report::AttemptSource, &AttemptFacts)> {
        let (stored, fresh) = self.head.split_at(self.stored.min(self.head.len()));
        let stored = stored
            .iter()
            .map(|facts| (report::AttemptSource::Stored, facts));
        let fresh = fresh.iter().chain(&self.base);
        stored
            .chain(fresh.map(|facts| (report::AttemptSource::Fresh, facts)))
            .collect()
    }

    /// Draws that are still to be made.
    pub(super) fn missing(&self, freshness: Freshness) -> Vec<u32> {
        let known: BTreeSet<u32> = match freshness {
            Freshness::Stored => self.head.iter().map(|facts| facts.index).collect(),
            Freshness::Fresh => BTreeSet::new(),
        };
        (0..self.planned).filter(|n| !known.contains(n)).collect()
    }
}

impl Run<'_> {
    /// What the store has, and how many draws this score makes.
    pub(super) async fn held_out_before(
        &self,
        evidence: &AttemptKey,
    ) -> Result<HeldOutRuns, Aborted> {
        let (content, base) = (evidence.content.clone(), self.counted_base());
        let (stored, failures) = store::off(&self.rooms.store, move |s| {
            let lane = Lane::HeldOut;
            Ok((
                s.attempts(&AttemptKey { content, lane })?,
                s.held_out_failures(&base)?,
            ))
        })
        .await?;
        // This overlay's own failures make no difference to it: its draws are what they are.
        let own = self.overlay.digest();
        let others = failures.into_iter().filter(|(_, overlay)| overlay != own);
        let worst = counted(others)
            .first()
            .map_or(0, |failures| failures.overlays);
        let head: Vec<AttemptFacts> = stored.into_iter().map(|a| a.facts).collect();
        Ok(HeldOutRuns {
            planned: planned(&self.plan.patch().policy().runs, worst),
            stored: head.len(),
            head,
            ..HeldOutRuns::default()
        })
    }

    /// Draws that the pinned attempts' room did not make, once more where a case wants it, and base beside them.
    pub(super) async fn held_out_after(
        &self,
        ground: &Ground,
        keep: &AttemptKey,
        evidence: &mut Evidence,
    ) -> Result<(), Aborted> {
        let begun = Instant::now();
        if self.deserving(ground)(&evidence.property.attempts) == Deserved::No {
            // What was stored still speaks; nothing is added.
            evidence.held_out.planned = 0;
        } else {
            let missing = evidence.held_out.missing(Freshness::Stored);
            self.draw_on_head(ground, keep, evidence, &missing).await?;
        }
        for _ in 0..ROUNDS {
            let wants = judge::held_out_wants(self.plan, &evidence.of(ground));
            if wants.is_empty() {
                break;
            }
            self.count(wants.suspects).await?;
            if let Some(number) = wants.again {
                self.draw_on_head(ground, keep, evidence, &[number]).await?;
            }
            for number in wants.base {
                self.ask_base(ground, AskBase::HeldOut(number), evidence)
                    .await?;
            }
        }
        evidence.held_out.took += begun.elapsed();
        Ok(())
    }

    /// Base under each draw in which head's product did what base was not seen doing, until one of them holds it against
    /// the patch.
    pub(super) async fn tampers_after(
        &self,
        ground: &Ground,
        evidence: &mut Evidence,
    ) -> Result<(), Aborted> {
        // Each answer takes one draw off the list.
        while let Some(ask) = judge::ask_base(&evidence.of(ground)) {
            self.tell("asking base what the product was asked").await;
            self.ask_base(ground, ask, evidence).await?;
        }
        Ok(())
    }

    async fn ask_base(
        &self,
        ground: &Ground,
        ask: AskBase,
        evidence: &mut Evidence,
    ) -> Result<(), Aborted> {
        let (lane, number, pins) = match ask {
            AskBase::HeldOut(number) => {
                let pins = self.pins(number, &evidence.held_out.head);
                (Lane::HeldOut, number, pins)
            }
            AskBase::Pinned(number) => {
                let mut pinned = self.plan.attempts().iter();
                let planned = pinned.find(|planned| planned.index == number);
                let planned = planned.ok_or_else(|| {
                    Aborted::new(AbortedCode::Internal, "an attempt that was not planned")
                })?;
                (Lane::Property, number, planned.pins.clone())
            }
        };
        let facts = self.base_under(ground, lane, number, pins).await?;
        match ask {
            AskBase::HeldOut(_) => evidence.held_out.base.push(facts),
            AskBase::Pinned(_) => evidence.base_under.push(facts),
        }
        Ok(())
    }

    /// What the oracle's questions are drawn by in this attempt of this overlay.
    pub(super) fn questions(&self, lane: Lane, number: u32) -> Questions {
        let draws = &self.rooms.draws;
        let runs = &self.plan.patch().policy().runs;
        draws.questions(self.overlay.digest(), lane, number, runs)
    }

    async fn draw_on_head(
        &self,
        ground: &Ground,
        keep: &AttemptKey,
        evidence: &mut Evidence,
        numbers: &[u32],
    ) -> Result<(), Aborted> {
        if numbers.is_empty() {
            return Ok(());
        }
        let mut starts = Vec::new();
        let order = RunOrder {
            lane: Lane::HeldOut,
            attempts: self.drawn(numbers, &evidence.held_out.head, &mut starts),
            starts,
            ..self.order(&ground.image, &ground.tree, self.overlay.src_tar())
        };
        let ran = self.run(order, Keeping::Quietly(keep.clone())).await?;
        evidence.held_out.head.extend(ran.facts.attempts);
        Ok(())
    }

    /// Base's own src under one draw: from the store where it is known.
    async fn base_under(
        &self,
        ground: &Ground,
        lane: Lane,
        number: u32,
        pins: Pins,
    ) -> Result<AttemptFacts, Aborted> {
        let questions = self.questions(lane, number);
        let said = format!(
            "{} {} {} {}",
            pins.seed, pins.hash_seed, pins.clock, pins.source_date_epoch
        );
        let name = key(&[
            "base-under/v2",
            self.base_key(&ground.image).as_str(),
            &said,
            questions.name().as_str(),
        ]);
        let found = store::off(&self.rooms.store, {
            let name = name.clone();
            move |s| s.collected(&name)
        })
        .await?;
        if let Some(facts) = found.and_then(|kept| serde_json::from_str(&kept.0).ok()) {
            return Ok(facts);
        }
        let src = self.overlay.base_src_tar().map_err(Aborted::from)?;
        let order = RunOrder {
            lane: Lane::BaseCollection,
            starts: vec![pins.hash_seed],
            attempts: vec![AttemptOrder::of(number, 0, pins).asked(questions)],
            ..self.order(&ground.image, &ground.tree, src)
        };
        let mut attempts = self
            .run(order, Keeping::Silence)
            .await?
            .facts
            .attempts
            .into_iter();
        let (Some(facts), None) = (attempts.next(), attempts.next()) else {
            return Err(Aborted::new(
                AbortedCode::Internal,
                "base's run under a draw is not one attempt",
            ));
        };
        let text = serde_json::to_string(&facts).map_err(|error| {
            Aborted::new(AbortedCode::Internal, format!("keep base's run: {error}"))
        })?;
        let at = clock::now();
        store::off(&self.rooms.store, move |s| {
            s.keep_collected(&name, at, &Collected(text))
        })
        .await?;
        Ok(facts)
    }

    /// This overlay failed these cases of this base, and no others, under held-out pins.
    pub(super) async fn count(&self, cases: Vec<String>) -> Result<Vec<Failures>, Aborted> {
        let (base, overlay) = (self.counted_base(), self.overlay.digest().clone());
        let at = clock::now();
        let all = store::off(&self.rooms.store, move |s| {
            s.held_out_failed(&base, &overlay, &cases, at)?;
            s.held_out_failures(&base)
        })
        .await?;
        Ok(counted(all.into_iter()))
    }

    /// One attempt per number, each on a start of its own, which is added to these.
    pub(super) fn drawn(
        &self,
        numbers: &[u32],
        seen: &[AttemptFacts],
        starts: &mut Vec<u32>,
    ) -> Vec<AttemptOrder> {
        numbers
            .iter()
            .map(|number| {
                let pins = self.pins(*number, seen);
                starts.push(pins.hash_seed);
                let start = u32::try_from(starts.len() - 1).unwrap_or(u32::MAX);
                let questions = self.questions(Lane::HeldOut, *number);
                AttemptOrder::of(*number, start, pins).asked(questions)
            })
            .collect()
    }

    /// The pins of a draw: those that it was made under, where it was. The hash seed of a start that was up before
    /// anybody asked is not the one that is drawn here.
    fn pins(&self, number: u32, seen: &[AttemptFacts]) -> Pins {
        let made = seen.iter().rev().find(|facts| facts.index == number);
        made.map_or_else(
            || {
                let policy = &self.plan.patch().policy().pins;
                self.rooms.draws.draw(self.overlay.digest(), number, policy)
            },
            |facts| facts.pins.clone(),
        )
    }

    pub(super) fn deserving(
        &self,
        ground: &Ground,
    ) -> impl Fn(&[AttemptFacts]) -> Deserved + use<> {
        let files = self.plan.files().to_vec();
        let leases = self.plan.leases().map(<[u8]>::to_vec);
        let reruns = self.plan.patch().policy().runs.reruns;
        let base = ground.base.attempt.clone();
        move |property| {
            if judge::deserves_held_out(&files, leases.as_deref(), reruns, &base, property) {
                Deserved::Yes
            } else {
                Deserved::No
            }
        }
    }

    /// Whose failures are counted together: those of one commit of one repository.
    fn counted_base(&self) -> Digest {
        let commits = self.plan.patch().commits();
        key(&[
            "held-out/v1",
            commits.repository.as_str(),
            commits.base.id.as_str(),
        ])
    }
}

/// Per case, by overlays; the most frequent first.
fn counted(failures: impl Iterator<Item = (String, Digest)>) -> Vec<Failures> {
    let mut overlays: BTreeMap<String, BTreeSet<Digest>> = BTreeMap::new();
    for (case, overlay) in failures {
        overlays.entry(case).or_default().insert(overlay);
    }
    let mut counted: Vec<Failures> = overlays
        .into_iter()
        .map(|(case, overlays)| Failures {
            case,
            overlays: u32::try_from(overlays.len()).unwrap_or(u32::MAX),
        })
        .collect();
    counted.sort_by(|a, b| (b.overlays, &a.case).cmp(&(a.overlays, &b.case)));
    counted
}
