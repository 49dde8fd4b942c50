//! What a list over time counts of a mixed case, and the bound beside it.

use super::super::bench::confidence;
use super::super::sighting::{Sighting, sighting, upper_bound_ppm};
use super::*;
use crate::outcome::{Leased, Outcome, Signature, class_of};

fn red(text: &str) -> Outcome {
    Outcome::Red(Reason::CaseFailed, vec![Signature::written(text)])
}

fn seen(outcomes: Vec<Outcome>, attempts: &[&Attempt]) -> Option<Sighting> {
    let case = CaseSummary {
        node: EMPTY.parse().unwrap(),
        file: None,
        origin: Origin::Base,
        class: class_of(&outcomes, Leased::No),
        code: None,
        outcomes,
        unsilenced: vec![],
        held_out: vec![],
        held_out_failure: None,
        on_base: None,
        failure: None,
        diagnosis: None,
        duration_ms: 0.0,
    };
    let attempts: Vec<AttemptFacts> = attempts.iter().map(|one| one.0.clone()).collect();
    sighting(&case, &attempts)
}

fn counted(attempts: u32, failures: u32) -> Option<Sighting> {
    Some(Sighting { attempts, failures })
}

#[test]
fn counts_what_speaks_of_the_case() {
    let whole = attempt().pass(THREE);
    let three = [&whole, &whole, &whole];
    let passed = || Outcome::Passed;
    assert_eq!(seen(vec![passed(); 3], &three), None);
    assert_eq!(seen(vec![red("E: x"); 3], &three), None);
    let mix = vec![passed(), red("E: x"), Outcome::Missing];
    assert_eq!(seen(mix, &three), counted(3, 2));
    // Two ways to fail are a mix without a pass.
    let ways = vec![red("E: x"), red("E: y"), red("E: x")];
    assert_eq!(seen(ways, &three), counted(3, 3));

    let gone = || {
        let died = Outcome::Red(Reason::ProcessExit, vec![]);
        vec![passed(), passed(), died]
    };
    let running = |node: &str| {
        let mut died = attempt().ends(End::Killed);
        died.0.end.running = Some(node.parse().unwrap());
        died
    };
    // Another case took the attempt along.
    assert_eq!(seen(gone(), &[&whole, &whole, &running(THREE)]), None);
    // It did so itself, or had been there before.
    let own = running(EMPTY);
    assert_eq!(seen(gone(), &[&whole, &whole, &own]), counted(3, 1));
    let after = running(THREE).record(EMPTY, vec![phase(When::Setup)]);
    assert_eq!(seen(gone(), &[&whole, &whole, &after]), counted(3, 1));
    // What is left without the attempt that died elsewhere is counted alone.
    let mut four = gone();
    four.push(red("E: x"));
    let died = running(THREE);
    assert_eq!(seen(four, &[&whole, &whole, &died, &whole]), counted(3, 1));
}

#[test]
fn the_bound_is_the_reports_and_goes_on_from_there() {
    for attempts in [1, 2, 7, 14, 100, 300, 2000] {
        let of_report = i64::from(confidence(attempts).upper_bound_ppm);
        let ours = i64::from(upper_bound_ppm(0, attempts as u64));
        assert!(
            (ours - of_report).abs() <= 1,
            "{attempts}: {ours} {of_report}"
        );
    }
    // Quantiles of the beta distribution, percent.
    for (failures, attempts, percent) in [
        (1, 10, 39.416),
        (3, 7, 77.468),
        (5, 10, 77.756),
        (2, 100, 6.162),
        (50, 100, 58.638),
    ] {
        let bound = f64::from(upper_bound_ppm(failures, attempts)) / 1e4;
        assert!(
            (bound - percent).abs() < 0.001,
            "{failures} of {attempts}: {bound}"
        );
    }
    assert_eq!(upper_bound_ppm(7, 7), 1_000_000);
    assert_eq!(upper_bound_ppm(0, 0), 1_000_000);
    let many = upper_bound_ppm(40_000, 100_000);
    assert!((402_000..403_000).contains(&many), "{many}");
}
