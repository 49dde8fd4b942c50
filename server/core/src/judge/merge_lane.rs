//! The merge lane: attempts of the tests that a patch touched become grounds of `flake_lease`. Its flake budget is zero.
//!
//! The cases there are come from head's own collection, for these tests are the patch's; base's run of the same files only
//! tells which skips are old and which cases are gone. What the tests do to their runner is not judged: they may do as they
//! like, and get nothing for it but this lane's silence.

use super::docket::{self, Entry, Fit};
use super::expected::{self, Case};
use super::held_out::HeldOutCase;
use super::judged::{About, CaseSummary, Confidence, Ground, OnBase, Origin};
use super::observed::Observed;
use super::src_score::{self, Cause};
use super::{Incomplete, Moved, Owed, bench, prose};
use crate::id::{NodeId, RepoPath};
use crate::outcome::{
    AttemptFacts, Class, CollectedCase, End, GainedKind, Leased, MarksFound, Outcome, class_of,
    death,
};
use crate::plan::{Text, TextKind, TouchedFacts};
use crate::reason::Reason;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Marks that no touched test may gain, whatever a policy says.
pub const FORBIDDEN: [&str; 6] = [
    "flaky",
    "quarantine",
    "xfail_flake",
    "skip",
    "skipif",
    "xfail",
];

/// What was seen of touched tests; empty where the patch touches none.
#[derive(Debug, Clone, Copy, Default)]
pub struct MergeEvidence<'a> {
    /// Base's versions of the files, once; `None` where base has none of them.
    pub base: Option<&'a AttemptFacts>,
    /// The attempts, by how often their files run.
    pub runs: &'a [MergeRun],
    /// What the files gained.
    pub marks: &'a [MarksFound],
}

/// Files that run equally often, and their attempts.
#[derive(Debug, Clone, PartialEq)]
pub struct MergeRun {
    /// The files.
    pub files: Vec<RepoPath>,
    /// How often they are to run.
    pub reruns: u32,
    /// Their attempts, oldest first.
    pub attempts: Vec<AttemptFacts>,
}

/// What the lane came to, for the report.
#[derive(Debug, Clone, PartialEq)]
pub struct MergeSummary {
    /// Every case.
    pub cases: Vec<CaseSummary>,
    /// Files with what their attempts are worth.
    pub files: Vec<(RepoPath, Confidence)>,
}

/// What the lane says.
#[derive(Default)]
pub(super) struct Heard {
    pub(super) flake: Vec<Ground>,
    pub(super) warnings: Vec<Ground>,
    pub(super) summary: Option<MergeSummary>,
}

/// Everything that the lane has to say. `more_forbidden` is what the policy adds to [`FORBIDDEN`].
pub(super) fn hear(
    touched: &TouchedFacts,
    more_forbidden: &[String],
    evidence: &MergeEvidence<'_>,
    moved: &BTreeMap<NodeId, Moved>,
) -> Result<Heard, Incomplete> {
    if touched.changes.is_empty() {
        return Ok(Heard::default());
    }
    complete(touched, evidence)?;
    let base = Base::of(evidence.base);
    let mut heard = Heard::default();
    let mut summary = MergeSummary {
        cases: Vec::new(),
        files: Vec::new(),
    };
    let written = heard.texts(touched, evidence.marks);
    for run in evidence.runs {
        let observed: Vec<Observed<'_>> = run.attempts.iter().map(Observed::of).collect();
        let mut entries = entries(run, &observed, &base);
        for entry in &mut entries {
            entry.moved = moved.get(&entry.case.node).copied();
        }
        heard.marks(run, &base, more_forbidden, &written);
        heard.deaths(&entries, &observed);
        let mut codes = heard.outcomes(&entries, &observed, &base);
        let seen = bench::confidence(run.attempts.len());
        summary
            .files
            .extend(run.files.iter().map(|file| (file.clone(), seen)));
        for entry in entries {
            let code = codes.remove(&entry.case.node);
            let none = HeldOutCase::default();
            summary
                .cases
                .push(docket::summary(entry, Vec::new(), code, none, &observed));
        }
    }
    heard.removed(evidence, &base);
    heard.summary = Some(summary);
    Ok(heard)
}

/// What attempts of proposed tests came to. Advice: no ground, no word.
#[must_use]
pub fn advice(runs: &[MergeRun]) -> MergeSummary {
    let mut summary = MergeSummary {
        cases: Vec::new(),
        files: Vec::new(),
    };
    for run in runs {
        let observed: Vec<Observed<'_>> = run.attempts.iter().map(Observed::of).collect();
        let seen = bench::confidence(run.attempts.len());
        let files = run.files.iter().map(|file| (file.clone(), seen));
        summary.files.extend(files);
        let entries = entries(run, &observed, &Base::of(None)).into_iter();
        summary.cases.extend(entries.map(|entry| {
            let none = HeldOutCase::default();
            docket::summary(entry, Vec::new(), None, none, &observed)
        }));
    }
    summary
}

fn complete(touched: &TouchedFacts, evidence: &MergeEvidence<'_>) -> Result<(), Incomplete> {
    let ran: HashSet<&RepoPath> = evidence.runs.iter().flat_map(|run| &run.files).collect();
    if let Some(file) = touched.files.iter().find(|file| !ran.contains(file)) {
        return Err(Incomplete::MergeLane(file.clone()));
    }
    for run in evidence.runs {
        let died = run
            .attempts
            .iter()
            .any(|facts| facts.end.end != End::Finished);
        let (seen, planned) = (run.attempts.len(), run.reruns as usize);
        if seen == 0 || (seen < planned && !died) {
            return Err(Incomplete::Attempts { seen, planned });
        }
    }
    let read: HashSet<&RepoPath> = evidence.marks.iter().map(|found| &found.file).collect();
    let unread = touched.texts.iter().find(|text| match text.now {
        Text::Blob(_) => !read.contains(&text.file),
        Text::None(_) => false,
    });
    match unread {
        Some(text) => Err(Incomplete::MergeLane(text.file.clone())),
        None if evidence.base.is_none() && !touched.base_files.is_empty() => {
            Err(Incomplete::MergeLane(touched.base_files[0].clone()))
        }
        None => Ok(()),
    }
}

/// Base's run of the same files.
struct Base<'a> {
    observed: Option<Observed<'a>>,
    /// Marks by case, and by function for cases that base does not have.
    cases: HashMap<&'a NodeId, &'a CollectedCase>,
    functions: HashMap<(&'a RepoPath, &'a str), BTreeSet<&'a str>>,
}

impl<'a> Base<'a> {
    fn of(facts: Option<&'a AttemptFacts>) -> Self {
        let mut base = Self {
            observed: facts.map(Observed::of),
            cases: HashMap::new(),
            functions: HashMap::new(),
        };
        for case in facts.iter().flat_map(|facts| &facts.collected) {
            base.cases.insert(&case.node, case);
            let marks = base
                .functions
                .entry((&case.file, &case.qualname))
                .or_default();
            marks.extend(case.marks.iter().map(String::as_str));
        }
        base
    }

    fn outcome(&self, case: &Case) -> Option<Outcome> {
        let observed = self.observed.as_ref()?;
        observed.shows(&case.node).then(|| observed.outcome(case))?
    }

    fn marked(&self, case: &CollectedCase, mark: &str) -> bool {
        match self.cases.get(&case.node) {
            Some(before) => before.marks.iter().any(|m| m == mark),
            None => self
                .functions
                .get(&(&case.file, case.qualname.as_str()))
                .is_some_and(|marks| marks.contains(mark)),
        }
    }
}

/// Every case that the attempts show.
fn entries(run: &MergeRun, observed: &[Observed<'_>], base: &Base<'_>) -> Vec<Entry<'static>> {
    let finished = run
        .attempts
        .iter()
        .find(|facts| facts.end.end == End::Finished);
    let Some(first) = finished.or_else(|| run.attempts.first()) else {
        return Vec::new();
    };
    expected::cases(first, &run.files, run.attempts.iter())
        .into_iter()
        .filter_map(|case| {
            let outcomes = docket::over(&case, observed)?;
            let on_base = base.outcome(&case).map(|outcome| {
                if silent(&outcome) {
                    OnBase::Silenced
                } else if outcome == Outcome::Passed {
                    OnBase::Green
                } else {
                    OnBase::Red
                }
            });
            Some(Entry {
                class: class(&outcomes),
                case: Case {
                    origin: Origin::Base,
                    ..case
                },
                outcomes,
                on_base,
                lease: None,
                fit: Fit::Split,
                moved: None,
            })
        })
        .collect()
}

/// A skip is a silence here whoever raised it.
fn silent(outcome: &Outcome) -> bool {
    outcome.is_silent() || outcome.red() == Some(Reason::SkipFromProduct)
}

fn class(outcomes: &[Outcome]) -> Class {
    if !outcomes.is_empty() && outcomes.iter().all(silent) {
        return Class::Silenced;
    }
    class_of(outcomes, Leased::No)
}

impl Heard {
    /// What the texts gained; gives back the marks told, so that they are not told again as collected ones.
    fn texts(
        &mut self,
        touched: &TouchedFacts,
        found: &[MarksFound],
    ) -> HashSet<(RepoPath, String)> {
        let mut told = HashSet::new();
        for text in &touched.texts {
            let found = found.iter().find(|found| found.file == text.file);
            let unread = match (&text.now, found) {
                (Text::None(why), _) => Some((*why).to_owned()),
                (Text::Blob(_), Some(found)) => found.unread.clone(),
                (Text::Blob(_), None) => None,
            };
            if let Some(why) = unread.filter(|_| text.kind == TextKind::Test) {
                self.flake.push(patch(
                    Reason::ForbiddenMark,
                    &text.file,
                    format!(
                        "its marks cannot be read ({}), so they count as gained",
                        crate::text::shown(&why, 200)
                    ),
                ));
            }
            for gained in found.iter().flat_map(|found| &found.gained) {
                let scope = match gained.scope.as_str() {
                    "" => "the module".to_owned(),
                    scope => format!("`{}`", crate::text::shown(scope, 120)),
                };
                let what = crate::text::shown(&gained.what, 120);
                let line = gained.line;
                match gained.kind {
                    GainedKind::Silence => {
                        let mark = gained.what.rsplit('.').next().unwrap_or_default();
                        told.insert((text.file.clone(), mark.to_owned()));
                        self.flake.push(patch(
                            Reason::ForbiddenMark,
                            &text.file,
                            format!("line {line}: {scope} gained `{what}`"),
                        ));
                    }
                    GainedKind::EarlyReturn => self.warnings.push(patch(
                        Reason::UnleasedSkip,
                        &text.file,
                        format!("line {line}: {scope} returns early under `{what}`: where that holds nothing is tested"),
                    )),
                }
            }
        }
        told
    }

    /// What the run collects: marks that base's collection lacks, however they came there.
    fn marks(
        &mut self,
        run: &MergeRun,
        base: &Base<'_>,
        more: &[String],
        written: &HashSet<(RepoPath, String)>,
    ) {
        let forbidden = |mark: &str| FORBIDDEN.contains(&mark) || more.iter().any(|m| m == mark);
        let mut gained: BTreeMap<(&RepoPath, &str), BTreeSet<&NodeId>> = BTreeMap::new();
        for case in run.attempts.iter().flat_map(|facts| &facts.collected) {
            for mark in case.marks.iter().filter(|mark| forbidden(mark)) {
                if !base.marked(case, mark) {
                    gained
                        .entry((&case.file, mark))
                        .or_default()
                        .insert(&case.node);
                }
            }
        }
        for ((file, mark), nodes) in gained {
            if !written.contains(&(file.clone(), mark.to_owned())) {
                let nodes: Vec<&NodeId> = nodes.into_iter().collect();
                self.flake.push(Ground {
                    reason: Reason::ForbiddenMark,
                    about: About::Case,
                    subject: Some(match nodes.as_slice() {
                        [node] => node.to_string(),
                        _ => file.to_string(),
                    }),
                    detail: format!(
                        "collected with the mark `{}`, which base's collection lacks: {}",
                        crate::text::shown(mark, 60),
                        prose::cases(&nodes)
                    ),
                    seen: None,
                });
            }
        }
    }

    fn deaths(&mut self, entries: &[Entry<'_>], observed: &[Observed<'_>]) {
        let died = src_score::deaths(entries, observed)
            .into_iter()
            .chain(src_score::killed_children(entries, observed));
        self.flake.extend(died.map(|ground| Ground {
            reason: own_death(ground.reason),
            ..ground
        }));
    }

    /// What the outcomes say, and the code of every case that is held against the patch.
    fn outcomes(
        &mut self,
        entries: &[Entry<'_>],
        observed: &[Observed<'_>],
        base: &Base<'_>,
    ) -> HashMap<NodeId, Reason> {
        let mut codes = HashMap::new();
        let mut groups: BTreeMap<(Reason, Reason, String), Vec<&Entry<'_>>> = BTreeMap::new();
        for entry in entries {
            let (code, as_seen) = match entry.class {
                Class::StablePass => continue,
                Class::Silenced => {
                    if base
                        .outcome(&entry.case)
                        .is_some_and(|outcome| silent(&outcome))
                    {
                        self.warnings
                            .push(skipped(entry, Reason::UnleasedSkip, "on base too"));
                        continue;
                    }
                    let told = skipped(entry, Reason::ForbiddenMark, "and not on base");
                    self.flake.push(told);
                    codes.insert(entry.case.node.clone(), Reason::ForbiddenMark);
                    continue;
                }
                Class::StableRed => {
                    let seen = entry.outcomes.first().and_then(Outcome::red);
                    (Reason::MergeLaneRed, seen.unwrap_or(Reason::CaseFailed))
                }
                Class::Mixed => {
                    let code = mixed(entry, observed);
                    (code, code)
                }
            };
            match src_score::cause(entry, as_seen, observed) {
                Cause::Death => {
                    let died = observed.iter().find_map(|o| death(o.facts.end.end));
                    let died = died.map(own_death);
                    codes.insert(entry.case.node.clone(), died.unwrap_or(code));
                    continue;
                }
                Cause::Shared(what) => {
                    groups.entry((code, as_seen, what)).or_default().push(entry);
                }
                Cause::Own => {
                    let ground = src_score::own(entry, as_seen);
                    let ground = src_score::diagnosed(ground, entry, observed);
                    self.flake.push(Ground {
                        reason: code,
                        ..ground
                    });
                }
            }
            codes.insert(entry.case.node.clone(), code);
        }
        for ((code, as_seen, what), entries) in groups {
            let ground = src_score::shared(as_seen, what, &entries, observed);
            self.flake.push(Ground {
                reason: code,
                ..ground
            });
        }
        codes
    }

    /// Base's ids that head's files do not have any more.
    fn removed(&mut self, evidence: &MergeEvidence<'_>, base: &Base<'_>) {
        let attempts = || evidence.runs.iter().flat_map(|run| &run.attempts);
        let there: HashSet<&NodeId> = attempts()
            .flat_map(|facts| {
                let cases = facts.collected.iter().map(|case| &case.node);
                cases.chain(facts.silences.iter().map(|silence| &silence.node))
            })
            .collect();
        // A file that cannot be imported is red already.
        let unread: HashSet<&RepoPath> = attempts()
            .flat_map(|facts| facts.collection_errors.iter().map(|error| &error.file))
            .collect();
        let untold =
            attempts().any(|facts| facts.end.end != End::Finished && facts.collected.is_empty());
        let mut gone: BTreeMap<&RepoPath, BTreeSet<&NodeId>> = BTreeMap::new();
        for case in base.cases.values() {
            if !there.contains(&case.node) && !unread.contains(&case.file) && !untold {
                gone.entry(&case.file).or_default().insert(&case.node);
            }
        }
        for (file, nodes) in gone {
            let nodes: Vec<&NodeId> = nodes.into_iter().collect();
            self.warnings.push(Ground {
                reason: Reason::TestRemoved,
                about: About::Case,
                subject: Some(file.to_string()),
                detail: format!("base has {}, head has not", prose::cases(&nodes)),
                seen: None,
            });
        }
    }
}

/// Why a case that differs between attempts is held against the patch. What no record can hold still does not belong here.
fn mixed(entry: &Entry<'_>, observed: &[Observed<'_>]) -> Reason {
    match docket::diagnosed(entry, observed).map(|diagnosis| diagnosis.owed) {
        Some(Owed::Neither) => Reason::UnpinnableSource,
        Some(Owed::CassettePin | Owed::Property) | None => Reason::CassetteGap,
    }
}

/// Who wrote what is no record was a test of the patch's own: it ended its process's work, no more.
fn own_death(code: Reason) -> Reason {
    if code == Reason::TamperResultChannel {
        Reason::ProcessExit
    } else {
        code
    }
}

fn patch(reason: Reason, file: &RepoPath, detail: String) -> Ground {
    Ground {
        reason,
        about: About::Patch,
        subject: Some(file.to_string()),
        detail,
        seen: None,
    }
}

fn skipped(entry: &Entry<'_>, reason: Reason, base: &str) -> Ground {
    let total = entry.outcomes.len();
    let all: Vec<usize> = (1..=total).collect();
    let word = entry.outcomes.first().map_or("skipped", Outcome::word);
    Ground {
        reason,
        about: About::Case,
        subject: Some(entry.case.node.to_string()),
        detail: format!(
            "{word} at run time in {}, {base}",
            prose::attempts(&all, total)
        ),
        seen: prose::seen(&entry.outcomes),
    }
}
