//! A report to bytes: first what the reader may see, then what has room.

use super::{AttemptPart, CasePart, Feedback, ReasonPart, Report, told_name};
use crate::id::NodeId;
use crate::judge::{About, Ground, Judged, Origin};
use crate::outcome::{Class, Lane};
use crate::policy::FeedbackLevel;
use crate::reason::Reason;
use std::collections::HashMap;

/// No report is longer: one message of an answer holds it with all other files.
pub const LIMIT: usize = 3 << 20;

/// Who will read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// The operator: everything.
    Operator,
    /// The caller, at this level.
    Caller(FeedbackLevel),
}

impl Report {
    /// The bytes for this reader.
    ///
    /// # Errors
    /// Ours: a value that has no JSON form.
    pub fn render(
        &self,
        judged: &Judged,
        audience: Audience,
    ) -> Result<Vec<u8>, serde_json::Error> {
        let mut report = self.clone();
        match audience {
            Audience::Operator => report.feedback = Feedback::Operator,
            Audience::Caller(level) => {
                report.feedback = level.into();
                // Whoever knew where nobody looks could live there.
                if let Some(planted) = report.oracle.as_mut().and_then(|o| o.planted.as_mut()) {
                    planted.places.clear();
                }
                report.narrow(judged, level);
            }
        }
        let mut cutter = Cutter {
            totals: lists(&report),
            texts: None,
        };
        for caps in CAPS {
            report.fit(caps, &mut cutter);
            if let Some(bytes) = report.written()? {
                return Ok(bytes);
            }
        }
        // What is left now has a fixed number of short fields.
        report.fit(&NOTHING, &mut cutter);
        serde_json::to_vec(&report)
    }

    /// The bytes, if they are within the limit.
    fn written(&self) -> Result<Option<Vec<u8>>, serde_json::Error> {
        let mut out = Bounded(Vec::new());
        match serde_json::to_writer_pretty(&mut out, self) {
            Ok(()) => {
                let Bounded(mut bytes) = out;
                bytes.push(b'\n');
                Ok((bytes.len() <= LIMIT).then_some(bytes))
            }
            Err(error) if error.is_io() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Take away what this level does not show.
    fn narrow(&mut self, judged: &Judged, level: FeedbackLevel) {
        let (texts, names) = match level {
            FeedbackLevel::Full => (Shown::Yes, Shown::Yes),
            FeedbackLevel::Names => (Shown::No, Shown::Yes),
            FeedbackLevel::Verdict => (Shown::No, Shown::No),
        };
        let narrowed = Narrowed {
            texts,
            names,
            made_up: judged
                .cases()
                .iter()
                .filter(|case| case.origin != Origin::Base)
                .map(|case| (case.node.as_str(), case.origin))
                .collect(),
        };
        for (part, verdict) in self.verdicts.iter_mut().zip(judged.verdicts()) {
            part.reasons = narrowed.parts(verdict.grounds());
        }
        self.warnings = narrowed.parts(judged.warnings());
        self.without_held_out();
        if texts == Shown::No {
            let names_of = |cases: &mut Vec<CasePart>, lane| {
                cases.retain_mut(|case| {
                    case.failure = None;
                    let name = told_name(&case.node, case.origin, lane, level);
                    name.map(|name| case.node = name).is_some()
                });
            };
            names_of(&mut self.cases, Lane::Property);
            for (part, lane) in [
                (&mut self.merge_lane, Lane::Merge),
                (&mut self.proposed, Lane::Proposed),
            ] {
                if let Some(part) = part {
                    names_of(&mut part.cases, lane);
                }
            }
            for attempt in &mut self.attempts {
                attempt.output.clear();
                // Whether base knows that name was not looked up here.
                attempt.running = attempt.running.as_ref().map(NodeId::without_parameters);
            }
            for lease in &mut self.leases {
                lease.reason.clear();
            }
        }
        if names == Shown::No {
            self.merge_lane = None;
            self.proposed = None;
            self.cases.clear();
            self.leases.clear();
            self.attempts.clear();
            for failure in &mut self.held_out.failures {
                failure.case.clear();
            }
        }
    }

    /// Of held-out attempts nobody but the operator gets more than a case's id and its code.
    fn without_held_out(&mut self) {
        let held_out = |attempt: &AttemptPart| match attempt.lane {
            Lane::Perturbed
            | Lane::HeldOut
            | Lane::MustFail
            | Lane::BaseCollection
            | Lane::Liveness => true,
            Lane::Property | Lane::LeaseSide | Lane::Merge | Lane::Proposed => false,
        };
        self.attempts.retain(|attempt| !held_out(attempt));
        self.timings.held_out_ms = 0;
        for case in &mut self.cases {
            case.held_out.clear();
            case.held_out_failure = None;
        }
    }

    /// Cut down to these caps; called with ever smaller ones.
    fn fit(&mut self, caps: &Caps, cutter: &mut Cutter) {
        if self.cut_texts(caps.text) > 0 {
            cutter.texts = Some(caps.text);
        }
        let mut cut: Vec<String> = cutter
            .texts
            .iter()
            .map(|cap| format!("texts of cases were cut to {cap} characters each"))
            .collect();
        most_telling(&mut self.cases, caps.entries);
        for lane in [&mut self.merge_lane, &mut self.proposed]
            .into_iter()
            .flatten()
        {
            most_telling(&mut lane.cases, caps.entries);
            lane.files.truncate(caps.entries);
        }
        for verdict in &mut self.verdicts {
            verdict.reasons.truncate(caps.entries);
        }
        self.warnings.truncate(caps.entries);
        self.changes.truncate(caps.entries);
        self.ledger.truncate(caps.entries);
        self.leases.truncate(caps.entries);
        self.attempts.truncate(caps.entries);
        self.held_out.failures.truncate(caps.entries);
        self.src_trees.truncate(caps.entries);
        self.merge_bases.truncate(caps.entries);
        for lease in &mut self.leases {
            lease.cases.truncate(caps.entries);
        }
        for ((name, kept), (_, total)) in lists(self).into_iter().zip(&cutter.totals) {
            if kept < *total {
                cut.push(format!("{name}: {} of {total} are left out", total - kept));
            }
        }
        self.cut = cut;
    }
    /// Cut what is longer; says how many texts were.
    fn cut_texts(&mut self, cap: usize) -> usize {
        let mut count = 0;
        let mut cut = |text: &mut String, end| {
            if text.len() > cap && text.chars().count() > cap {
                *text = shortened(text, cap, end);
                count += 1;
            }
        };
        for attempt in &mut self.attempts {
            cut(&mut attempt.output, End::Tail);
        }
        let lanes = [&mut self.merge_lane, &mut self.proposed].into_iter();
        let lane = lanes.flatten().flat_map(|lane| &mut lane.cases);
        for failure in self
            .cases
            .iter_mut()
            .chain(lane)
            .flat_map(|case| [case.failure.as_mut(), case.held_out_failure.as_mut()])
            .flatten()
        {
            cut(&mut failure.message, End::Start);
            cut(&mut failure.traceback, End::Tail);
            cut(&mut failure.output, End::Tail);
        }
        count
    }
}

/// As many as have room, what is no stable pass first, in their order.
fn most_telling(cases: &mut Vec<CasePart>, room: usize) {
    let (passes, others): (Vec<_>, Vec<_>) = std::mem::take(cases)
        .into_iter()
        .enumerate()
        .partition(|(_, case)| case.class == Class::StablePass);
    let mut kept: Vec<_> = others.into_iter().chain(passes).take(room).collect();
    kept.sort_by_key(|(place, _)| *place);
    *cases = kept.into_iter().map(|(_, case)| case).collect();
}

/// What there was before anything was cut.
struct Cutter {
    totals: Vec<(String, usize)>,
    texts: Option<usize>,
}

/// Every list that may be cut, with its length.
fn lists(report: &Report) -> Vec<(String, usize)> {
    let named = |name: &str, length: usize| (name.to_owned(), length);
    let mut lists = vec![
        named("cases", report.cases.len()),
        named(
            "cases of the merge lane",
            report
                .merge_lane
                .as_ref()
                .map_or(0, |lane| lane.cases.len()),
        ),
        named(
            "files of the merge lane",
            report
                .merge_lane
                .as_ref()
                .map_or(0, |lane| lane.files.len()),
        ),
        named(
            "cases of proposed tests",
            report.proposed.as_ref().map_or(0, |lane| lane.cases.len()),
        ),
        named("warnings", report.warnings.len()),
        named("changes", report.changes.len()),
        named("ledger", report.ledger.len()),
        named("leases", report.leases.len()),
        named("attempts", report.attempts.len()),
        named("held-out failures", report.held_out.failures.len()),
        named("src_trees", report.src_trees.len()),
        named("merge_bases", report.merge_bases.len()),
        named(
            "cases of leases",
            report.leases.iter().map(|lease| lease.cases.len()).sum(),
        ),
    ];
    lists.extend(report.verdicts.iter().map(|verdict| {
        let name = format!("reasons of {}", verdict.name.file_stem());
        (name, verdict.reasons.len())
    }));
    lists
}

/// Bytes up to the limit; what would go beyond it ends the writing.
struct Bounded(Vec<u8>);

impl std::io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0.len() + bytes.len() > LIMIT {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Yes,
    No,
}

/// What one level shows of grounds: without texts; and without names, their distinct codes, those about the patch itself
/// in full.
struct Narrowed<'a> {
    texts: Shown,
    names: Shown,
    /// Cases that base does not know by this name: head may have named them after anything it saw.
    made_up: HashMap<&'a str, Origin>,
}

impl Narrowed<'_> {
    fn parts(&self, grounds: &[Ground]) -> Vec<ReasonPart> {
        let mut told: Vec<Reason> = Vec::new();
        let mut parts = Vec::new();
        for ground in grounds {
            let part = self.part(ground);
            if self.names == Shown::No && ground.about != About::Patch {
                if told.contains(&ground.reason) {
                    continue;
                }
                told.push(ground.reason);
            }
            parts.push(part);
        }
        parts
    }

    fn part(&self, ground: &Ground) -> ReasonPart {
        let mut part = super::build::reason(ground);
        match ground.about {
            About::Patch => {}
            About::Case if self.texts == Shown::Yes => {}
            About::Case => self.without_texts(&mut part),
            About::HeldOut => {
                part.seen = None;
                part.detail.clear();
            }
        }
        if self.texts == Shown::No {
            part.seen = None;
        }
        if self.names == Shown::No && ground.about != About::Patch {
            part.subject = None;
            part.detail.clear();
        }
        part
    }

    fn without_texts(&self, part: &mut ReasonPart) {
        let node = part.subject.as_deref();
        let origin = node.and_then(|node| self.made_up.get(node));
        let function = || {
            let node: Option<NodeId> = node.and_then(|node| node.parse().ok());
            node.map(|node| node.without_parameters().to_string())
        };
        let subject = match origin {
            None | Some(Origin::Base) => node.map(str::to_owned),
            Some(Origin::Extra) => function(),
            Some(Origin::Foreign) => None,
        };
        // A ground of many cases names some of them; what tampered is told in its own words.
        let of_many = !node.is_some_and(|node| node.contains("::"));
        let tampering = part.code.code().starts_with("tamper-");
        if tampering || (of_many && !self.made_up.is_empty()) {
            part.detail.clear();
        }
        part.subject = subject;
    }
}

/// How much of a report has room.
struct Caps {
    /// Characters of one text of a case.
    text: usize,
    /// Entries of one list.
    entries: usize,
}

const CAPS: &[Caps] = &[
    Caps {
        text: usize::MAX,
        entries: usize::MAX,
    },
    Caps {
        text: 2000,
        entries: usize::MAX,
    },
    Caps {
        text: 500,
        entries: 10_000,
    },
    Caps {
        text: 500,
        entries: 2000,
    },
    Caps {
        text: 200,
        entries: 500,
    },
    Caps {
        text: 200,
        entries: 100,
    },
    Caps {
        text: 100,
        entries: 20,
    },
];

const NOTHING: Caps = Caps {
    text: 0,
    entries: 0,
};

/// Which end of a text says more.
#[derive(Clone, Copy)]
enum End {
    Start,
    Tail,
}

fn shortened(text: &str, cap: usize, end: End) -> String {
    let total = text.chars().count();
    match end {
        End::Start => text.chars().take(cap).chain(['…']).collect(),
        End::Tail => ['…']
            .into_iter()
            .chain(text.chars().skip(total.saturating_sub(cap)))
            .collect(),
    }
}
