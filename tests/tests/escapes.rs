//! A hostile product in the real container tries to get out: every way ends in the error that its row names.
//!
//! The ways are in `src/sandbox/escapes/escape/`, the rows in `test_escapes.py` beside it. They are tried from the
//! process of a shared part and from the product process of a split one.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tribunal_core::outcome::End;
use tribunal_server::sandbox::RunFacts;
use tribunal_tests::sandbox::docker::{Engine, over};
use tribunal_tests::sandbox::{Order, Subject, told};

const PRODUCT: [(&str, &str); 8] = [
    (
        "src/escape/__init__.py",
        include_str!("../src/sandbox/escapes/escape/__init__.py"),
    ),
    (
        "src/escape/identity.py",
        include_str!("../src/sandbox/escapes/escape/identity.py"),
    ),
    (
        "src/escape/machine.py",
        include_str!("../src/sandbox/escapes/escape/machine.py"),
    ),
    (
        "src/escape/places.py",
        include_str!("../src/sandbox/escapes/escape/places.py"),
    ),
    (
        "src/escape/processes.py",
        include_str!("../src/sandbox/escapes/escape/processes.py"),
    ),
    (
        "src/escape/sockets.py",
        include_str!("../src/sandbox/escapes/escape/sockets.py"),
    ),
    (
        "src/escape/traces.py",
        include_str!("../src/sandbox/escapes/escape/traces.py"),
    ),
    (
        "src/escape/ways.py",
        include_str!("../src/sandbox/escapes/escape/ways.py"),
    ),
];
const ROWS: &str = include_str!("../src/sandbox/escapes/test_escapes.py");
const FILE: &str = "tests/sealed/test_escapes.py";

/// How the sealed file runs: with the product beside it, or in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    #[expect(dead_code, reason = "no part runs split yet")]
    Split,
    Shared,
}

impl Mode {
    const fn word(self) -> &'static str {
        match self {
            Self::Split => "split",
            Self::Shared => "shared",
        }
    }
}

async fn tried(engine: &Arc<Engine>, mode: Mode) -> RunFacts {
    let subject: Arc<dyn Subject> = Arc::clone(engine) as Arc<dyn Subject>;
    let mut order = Order::of(&subject, &[]).times(2);
    let rows = format!("MODE = \"{}\"\n{ROWS}", mode.word());
    order.sealed.insert(FILE.to_owned(), rows);
    for (path, text) in PRODUCT {
        order.src.insert(path.to_owned(), text.to_owned());
    }
    order.policy.runner.shared = match mode {
        Mode::Split => Vec::new(),
        Mode::Shared => vec![FILE.parse().unwrap()],
    };
    let (events, mut heard) = mpsc::channel(64);
    let listening = tokio::spawn(async move { while heard.recv().await.is_some() {} });
    let facts = engine
        .sandbox()
        .run(
            order.sealed().await.unwrap(),
            events,
            CancellationToken::new(),
        )
        .await;
    listening.await.unwrap();
    facts.unwrap()
}

/// Every row holds in both attempts: the second finds nothing of what the first left.
fn nothing_escaped(facts: &RunFacts) {
    assert_eq!(facts.attempts.len(), 2);
    for attempt in &facts.attempts {
        let red: Vec<String> = told(attempt)
            .into_iter()
            .filter(|told| !told.ends_with(": passed"))
            .collect();
        assert!(
            attempt.collection_errors.is_empty(),
            "{:?}",
            attempt.collection_errors
        );
        assert!(red.is_empty(), "{} red:\n{}", red.len(), red.join("\n"));
        assert_eq!(attempt.end.end, End::Finished, "{:?}", attempt.end);
        assert!(attempt.cases.len() > 250, "{} rows", attempt.cases.len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn from_a_shared_part() {
    over(Engine::new().await.unwrap(), |engine| async move {
        nothing_escaped(&tried(&engine, Mode::Shared).await);
    })
    .await;
}
