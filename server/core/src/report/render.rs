//! A report to bytes: first what the reader may see, then what has room.

use super::{Feedback, ReasonPart, Report};
use crate::judge::{About, Ground, Judged};
use crate::outcome::Class;
use crate::policy::FeedbackLevel;
use crate::reason::Reason;

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
                report.narrow(judged, level);
            }
        }
        for caps in CAPS {
            let mut fitted = report.clone();
            fitted.fit(caps);
            let mut bytes = serde_json::to_vec_pretty(&fitted)?;
            bytes.push(b'\n');
            if bytes.len() <= LIMIT {
                return Ok(bytes);
            }
        }
        // The last caps leave at most some hundred short entries.
        report.fit(&NOTHING);
        serde_json::to_vec(&report)
    }

    /// Take away what this level does not show.
    fn narrow(&mut self, judged: &Judged, level: FeedbackLevel) {
        let (texts, names) = match level {
            FeedbackLevel::Full => return,
            FeedbackLevel::Names => (Shown::No, Shown::Yes),
            FeedbackLevel::Verdict => (Shown::No, Shown::No),
        };
        for (part, verdict) in self.verdicts.iter_mut().zip(judged.verdicts()) {
            part.reasons = narrowed(verdict.grounds(), names);
        }
        self.warnings = narrowed(judged.warnings(), names);
        if texts == Shown::No {
            for case in &mut self.cases {
                case.failure = None;
            }
        }
        if names == Shown::No {
            self.cases.clear();
            self.leases.clear();
            self.attempts.clear();
        }
    }

    fn fit(&mut self, caps: &Caps) {
        let mut cut = Vec::new();
        self.cut_texts(caps.text, &mut cut);
        let (passes, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.cases)
            .into_iter()
            .enumerate()
            .partition(|(_, case)| case.class == Class::StablePass);
        let total = passes.len() + others.len();
        let mut kept: Vec<_> = others
            .into_iter()
            .chain(passes)
            .take(caps.entries)
            .collect();
        kept.sort_by_key(|(place, _)| *place);
        self.cases = kept.into_iter().map(|(_, case)| case).collect();
        told(&mut cut, "cases", self.cases.len(), total);
        for verdict in &mut self.verdicts {
            let name = format!("reasons of {}", verdict.name.file_stem());
            shorten(&mut verdict.reasons, caps.entries, &name, &mut cut);
        }
        shorten(&mut self.warnings, caps.entries, "warnings", &mut cut);
        shorten(&mut self.changes, caps.entries, "changes", &mut cut);
        shorten(&mut self.leases, caps.entries, "leases", &mut cut);
        shorten(&mut self.attempts, caps.entries, "attempts", &mut cut);
        shorten(&mut self.src_trees, caps.entries, "src_trees", &mut cut);
        shorten(&mut self.merge_bases, caps.entries, "merge_bases", &mut cut);
        for lease in &mut self.leases {
            let name = "cases of a lease";
            shorten(&mut lease.cases, caps.entries, name, &mut cut);
        }
        self.cut = cut;
    }

    fn cut_texts(&mut self, cap: usize, cut: &mut Vec<String>) {
        let mut shortened = 0_usize;
        for failure in self
            .cases
            .iter_mut()
            .filter_map(|case| case.failure.as_mut())
        {
            for (text, end) in [
                (&mut failure.message, End::Start),
                (&mut failure.traceback, End::Tail),
                (&mut failure.output, End::Tail),
            ] {
                if text.chars().count() > cap {
                    *text = shortened_text(text, cap, end);
                    shortened += 1;
                }
            }
        }
        if shortened > 0 {
            cut.push(format!(
                "{shortened} texts of cases were cut to {cap} characters"
            ));
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Yes,
    No,
}

/// Grounds without texts; and without names, their distinct codes, those about the patch itself in full.
fn narrowed(grounds: &[Ground], names: Shown) -> Vec<ReasonPart> {
    let mut told: Vec<Reason> = Vec::new();
    let mut parts = Vec::new();
    for ground in grounds {
        let mut part = super::build::reason(ground);
        part.seen = None;
        if names == Shown::No && ground.about == About::Case {
            if told.contains(&ground.reason) {
                continue;
            }
            told.push(ground.reason);
            part.subject = None;
            part.detail = String::new();
        }
        parts.push(part);
    }
    parts
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

fn shorten<T>(list: &mut Vec<T>, cap: usize, name: &str, cut: &mut Vec<String>) {
    let total = list.len();
    list.truncate(cap);
    told(cut, name, list.len(), total);
}

fn told(cut: &mut Vec<String>, name: &str, kept: usize, total: usize) {
    if kept < total {
        cut.push(format!("{name}: {} of {total} are left out", total - kept));
    }
}

/// Which end of a text says more.
#[derive(Clone, Copy)]
enum End {
    Start,
    Tail,
}

fn shortened_text(text: &str, cap: usize, end: End) -> String {
    let total = text.chars().count();
    match end {
        End::Start => text.chars().take(cap).chain(['…']).collect(),
        End::Tail => ['…']
            .into_iter()
            .chain(text.chars().skip(total.saturating_sub(cap)))
            .collect(),
    }
}
