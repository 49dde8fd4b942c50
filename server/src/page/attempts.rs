//! Cases by attempts as a grid. A mixed case stands out by its word and its frame, a letter says each outcome, and the word
//! of a letter is its title and in the legend.

use super::{frame, text};
use maud::{Markup, html};
use tribunal_core::outcome::Class;
use tribunal_core::report::{CasePart, MergePart, Report, letter};

/// Rows of a grid; more are counted.
const ROWS: usize = 400;
/// Columns of a grid; more are counted.
const COLUMNS: usize = 300;

/// One grid's cases.
struct Grid<'a> {
    id: &'a str,
    title: &'a str,
    cases: Vec<&'a CasePart>,
    attempts: usize,
}

/// The property lane, and the tests of the patch's own where there are any.
pub(super) fn grids(report: &Report) -> Markup {
    let attempts = report.evidence.attempts;
    let sealed = Grid::of(
        "attempts",
        "Sealed cases by attempts",
        &report.cases,
        attempts,
    );
    let lanes = [
        (
            "merge-lane",
            "Merge lane: touched tests by attempts",
            &report.merge_lane,
        ),
        (
            "proposed",
            "Proposed tests by attempts, for advice",
            &report.proposed,
        ),
    ];
    html! {
        @if !report.cases.is_empty() { (sealed.section()) }
        @for (id, title, part) in lanes {
            @if let Some(part) = part { (Grid::of(id, title, &part.cases, most(part)).section()) }
        }
    }
}

fn most(part: &MergePart) -> usize {
    part.files
        .iter()
        .map(|file| file.attempts)
        .max()
        .unwrap_or(0)
}

impl<'a> Grid<'a> {
    fn of(id: &'a str, title: &'a str, cases: &'a [CasePart], attempts: usize) -> Self {
        let mut cases: Vec<&CasePart> = cases.iter().collect();
        // What needs somebody stands first; the order within is the manifest's.
        cases.sort_by_key(|case| match case.class {
            Class::Mixed => 0,
            Class::StableRed => 1,
            Class::Silenced => 2,
            Class::StablePass => 3,
        });
        Self {
            id,
            title,
            cases,
            attempts,
        }
    }

    fn section(&self) -> Markup {
        let steady = self
            .cases
            .iter()
            .filter(|case| case.class == Class::StablePass);
        let steady = steady.count();
        let (first, rest) = self.cases.split_at(self.cases.len() - steady);
        let lead = if first.is_empty() { "" } else { "other " };
        html! {
            section aria-labelledby=(self.id) {
                h2 id=(self.id) { (self.title) }
                @if !first.is_empty() { (self.table(first, self.title)) }
                @if steady > 0 {
                    details open[first.is_empty() && steady <= 20] {
                        summary { (steady) " " (lead) (if steady == 1 { "case" } else { "cases" }) " passed in every attempt" }
                        (self.table(rest, "Cases that passed in every attempt"))
                    }
                }
                (legend(&self.cases))
            }
        }
    }

    fn table(&self, cases: &[&CasePart], label: &str) -> Markup {
        let columns = cases
            .iter()
            .map(|case| case.outcomes.len())
            .max()
            .unwrap_or(0);
        let columns = columns.max(self.attempts);
        let shown = columns.min(COLUMNS);
        let table = html! {
            table.grid {
                caption.sr { (label) }
                thead { tr {
                    th scope="col" { "Case" }
                    th scope="col" { "Class" }
                    @for number in 1..=shown { th scope="col" { span.sr { "Attempt " } (number) } }
                } }
                tbody { @for case in cases.iter().take(ROWS) { (row(case, shown)) } }
            }
        };
        html! {
            (frame::scrolled(label, &table))
            @if cases.len() > ROWS { p { "And " (cases.len() - ROWS) " more cases." } }
            @if columns > shown { p { "And " (columns - shown) " more attempts." } }
        }
    }
}

fn row(case: &CasePart, columns: usize) -> Markup {
    let class = match case.class {
        Class::Mixed => "mixed",
        Class::StableRed => "red",
        Class::Silenced => "silenced",
        Class::StablePass => "steady",
    };
    html! {
        tr class=(class) {
            th scope="row" {
                (text::said(case.node.as_str()))
                @if let Some(diagnosis) = &case.diagnosis { p { "Owes " (text::sentence(&diagnosis.told_owed())) } }
                @if !case.held_out.is_empty() { p { "Held-out: " (text::sentence(&case.held_out.join(", "))) } }
            }
            td.class {
                (case.class)
                @if let Some(code) = case.code { " " code { (code) } }
            }
            @for number in 0..columns { (cell(case, number)) }
        }
    }
}

fn cell(case: &CasePart, number: usize) -> Markup {
    let outcome = match case.outcomes.get(number) {
        Some(outcome) => outcome.as_str(),
        // Where it passed in all of them the report leaves them out.
        None if case.class == Class::StablePass => "passed",
        None => return html! { td.o {} },
    };
    let letter = letter(outcome);
    html! { td class=(tone(letter)) title=(text_of(outcome)) { (letter) } }
}

const fn tone(letter: char) -> &'static str {
    match letter {
        'P' => "o p",
        'F' | 'E' | 'M' | '!' => "o f",
        _ => "o s",
    }
}

fn text_of(outcome: &str) -> String {
    tribunal_core::text::shown(outcome, 40)
}

fn legend(cases: &[&CasePart]) -> Markup {
    let mut known: Vec<(char, String)> = Vec::new();
    let seen = cases.iter().flat_map(|case| &case.outcomes);
    for outcome in seen.map(String::as_str).chain(["passed"]) {
        let entry = (letter(outcome), text_of(outcome));
        if !known.contains(&entry) && known.len() < 20 {
            known.push(entry);
        }
    }
    known.sort();
    html! {
        p.legend {
            @for (n, (letter, word)) in known.iter().enumerate() {
                @if n > 0 { ", " }
                span class=(tone(*letter)) { (letter) } " " (word)
            }
        }
    }
}
