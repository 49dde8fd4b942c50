//! The three verdicts with their reasons, as the report gives them to this reader.

use super::text;
use crate::store::Words;
use maud::{Markup, html};
use tribunal_core::judge::{VerdictKind, Word};
use tribunal_core::report::{FailurePart, ReasonPart, Report};

/// Reasons of one verdict that are open to see, and that stand on the page at all.
const OPEN: usize = 5;
const REASONS: usize = 100;

const fn question(kind: VerdictKind) -> &'static str {
    match kind {
        VerdictKind::SrcScore => "Does the new product code hold against the old oracle?",
        VerdictKind::OracleIntegrity => "Did the measuring stick stay where it was?",
        VerdictKind::FlakeLease => "Is every silence paid for, and is nothing unstable hidden?",
    }
}

/// The words alone.
pub(super) fn bare(words: &Words) -> Markup {
    html! { p.outcome { (text::merge(words)) } }
}

pub(super) fn all(words: &Words, report: &Report) -> Markup {
    html! {
        (bare(words))
        section aria-labelledby="verdicts" {
            h2 id="verdicts" { "Verdicts" }
            div.verdicts {
                @for verdict in &report.verdicts {
                    @let id = verdict.name.file_stem();
                    article aria-labelledby=(id) class=(card(verdict.word)) {
                        h3 id=(id) { code { (id) } " " (text::word(verdict.word)) }
                        p.faint { (question(verdict.name)) }
                        (reasons(report, &verdict.reasons))
                    }
                }
            }
        }
    }
}

/// What blocks nothing.
pub(super) fn warnings(report: &Report) -> Markup {
    html! {
        @if !report.warnings.is_empty() {
            section aria-labelledby="warnings" {
                h2 id="warnings" { "Warnings" }
                (reasons(report, &report.warnings))
            }
        }
    }
}

const fn card(word: Word) -> &'static str {
    match word {
        Word::Pass => "card passes",
        Word::Fail => "card fails",
        Word::NotRun => "card",
    }
}

fn reasons(report: &Report, reasons: &[ReasonPart]) -> Markup {
    html! {
        @let (open, rest) = reasons.split_at(reasons.len().min(OPEN));
        (listed(report, open))
        @if !rest.is_empty() {
            details {
                summary { (rest.len()) " more reasons" }
                (listed(report, &rest[..rest.len().min(REASONS)]))
            }
        }
        @if rest.len() > REASONS { p { "And " (rest.len() - REASONS) " more." } }
    }
}

fn listed(report: &Report, reasons: &[ReasonPart]) -> Markup {
    html! {
        @if !reasons.is_empty() { ul.reasons { @for reason in reasons { li { (one(report, reason)) } } } }
    }
}

fn one(report: &Report, reason: &ReasonPart) -> Markup {
    let subject = reason.subject.as_deref();
    let touched = report.merge_lane.iter().flat_map(|lane| &lane.cases);
    let mut cases = report.cases.iter().chain(touched);
    let case = cases.find(|case| Some(case.node.as_str()) == subject);
    let failure = case.and_then(|case| case.failure.as_ref());
    html! {
        p {
            strong { code { (reason.code) } }
            @if let Some(subject) = subject { " " (text::said(subject)) }
        }
        @if !reason.detail.is_empty() { p { (text::sentence(&reason.detail)) } }
        @if let Some(seen) = &reason.seen { p { "Said: " (text::said(seen)) } }
        p.advice { "Do: " (reason.advice) }
        @if let Some(failure) = failure { (said_by(failure, "attempt")) }
        @if let Some(failure) = case.and_then(|case| case.held_out_failure.as_ref()) { (said_by(failure, "held-out draw")) }
    }
}

fn said_by(failure: &FailurePart, what: &str) -> Markup {
    let text = if failure.traceback.trim().is_empty() {
        match (failure.kind.as_str(), failure.message.as_str()) {
            ("", text) | (text, "") => text.to_owned(),
            (kind, message) => format!("{kind}: {message}"),
        }
    } else {
        failure.traceback.clone()
    };
    html! {
        @if !text.trim().is_empty() || !failure.output.trim().is_empty() {
            details {
                summary { "What it said in " (what) " " (failure.attempt) }
                @if !text.trim().is_empty() { (text::block(&text, "Failure")) }
                @if !failure.output.trim().is_empty() { p { "Printed:" } (text::block(&failure.output, "Output")) }
            }
        }
    }
}
