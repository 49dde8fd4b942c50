//! Rooms that are ready before anybody asks: a score in one is what it is in a new one, and none outlives its use.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first surprise"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tribunal_server::sandbox::{RunFacts, RunOrder};
use tribunal_tests::port::metrics;
use tribunal_tests::sandbox::docker::{Engine, over};
use tribunal_tests::sandbox::{Order, Subject, told};
use tribunal_tests::{Server, Stage};

/// What a module keeps: a counter, a cache, a random number, a set's order. Each attempt must begin with nothing of it.
const KEEPS: &str = r#"
import random
from app import ANSWER

COUNT = []
DRAWN = random.random()

def test_counts():
    COUNT.append(1)
    print("counted", len(COUNT), DRAWN, random.random(), list({"a", "b", "c", "d", "e"}))
    assert len(COUNT) == 1
    assert random.__dict__.setdefault("_kept", ANSWER) == ANSWER
    random._kept = "left by an attempt"
"#;

fn order(engine: &Arc<Engine>, text: &str) -> Order {
    let subject: Arc<dyn Subject> = Arc::clone(engine) as Arc<dyn Subject>;
    let mut order = Order::of(&subject, &[]);
    order.sealed = [("tests/sealed/test_keeps.py".to_owned(), text.to_owned())].into();
    order.starts = vec![0, 0, 11, 12];
    order.free_starts = 2;
    order.times(4)
}

async fn run(engine: &Engine, order: RunOrder) -> RunFacts {
    let (events, mut heard) = mpsc::channel(64);
    let listening = tokio::spawn(async move { while heard.recv().await.is_some() {} });
    let facts = engine
        .sandbox()
        .run(order, events, CancellationToken::new())
        .await;
    listening.await.unwrap();
    facts.unwrap()
}

/// The engine has this many containers of ours, soon, and then still.
async fn until(engine: &Engine, count: usize) -> Vec<String> {
    let limit = Instant::now() + Duration::from_secs(40);
    loop {
        let names = engine.containers().await.unwrap();
        if names.len() == count {
            return names;
        }
        assert!(
            Instant::now() < limit,
            "{} containers, not {count}",
            names.len()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Ready: its container is there, and the pool holds it.
async fn expected(engine: &Engine, order: RunOrder) -> String {
    engine.sandbox().expect(order);
    let limit = Instant::now() + Duration::from_secs(40);
    while engine.sandbox.ready() == 0 {
        assert!(Instant::now() < limit, "no room became ready");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    until(engine, 1).await.remove(0)
}

fn outputs(facts: &RunFacts) -> Vec<String> {
    let phases = facts
        .attempts
        .iter()
        .flat_map(|a| &a.cases)
        .flat_map(|c| &c.phases);
    phases
        .map(|phase| phase.output.clone())
        .filter(|text| !text.is_empty())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ready_room_is_used_once_and_says_what_a_new_one_says() {
    over(Engine::new().await.unwrap(), |engine| async move {
        let order = order(&engine, KEEPS);
        let sealed = order.sealed().await.unwrap();
        let tree = sealed.tree.clone();
        let cold = run(&engine, sealed).await;
        until(&engine, 0).await;
        let ready = expected(&engine, order.on(tree.clone())).await;
        // Another src, which the room has not heard of.
        let mut other = order.clone();
        other
            .src
            .insert("src/app.py".to_owned(), "ANSWER = 43\n".to_owned());
        other
            .src
            .insert("src/more.py".to_owned(), "MORE = 1\n".to_owned());
        let mut ordered = other.on(tree.clone());
        ordered.own_names = order.on(tree.clone()).own_names;
        let warm = run(&engine, ordered).await;
        until(&engine, 0).await;
        for (cold, warm) in cold.attempts.iter().zip(&warm.attempts) {
            assert_eq!(told(cold), ["test_counts: passed"]);
            assert_eq!(told(cold), told(warm));
        }
        let seeds: Vec<u32> = warm.attempts.iter().map(|a| a.pins.hash_seed).collect();
        assert_eq!(seeds[..2], [0, 0]);
        assert!(
            seeds[2] != 11 && seeds[3] != 12,
            "{seeds:?} were drawn before anybody asked"
        );
        // The two pinned starts print the same, cold or warm; nothing of an attempt is left for the next.
        assert_eq!(outputs(&cold)[..2], outputs(&warm)[..2]);
        assert_eq!(outputs(&warm)[0], outputs(&warm)[1]);
        // It is gone for good: the next one is made anew.
        let next = run(&engine, order.on(tree)).await;
        assert_eq!(next.attempts.len(), 4);
        assert!(!engine.containers().await.unwrap().contains(&ready));
        until(&engine, 0).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ready_room_that_does_not_fit_or_died_is_not_used() {
    over(Engine::new().await.unwrap(), |engine| async move {
        let order = order(&engine, KEEPS);
        let sealed = order.sealed().await.unwrap();
        let tree = sealed.tree.clone();
        let name = expected(&engine, sealed).await;
        // Another policy is another room's.
        let mut slow = order.clone();
        slow.policy.runs.case_timeout_ms += 1;
        assert_eq!(run(&engine, slow.on(tree.clone())).await.attempts.len(), 4);
        assert_eq!(until(&engine, 1).await, std::slice::from_ref(&name));
        // So is a base of the same sealed tree that has other names in its src.
        let mut renamed = order.on(tree.clone());
        renamed.own_names.push("more".to_owned());
        assert_eq!(run(&engine, renamed).await.attempts.len(), 4);
        assert_eq!(until(&engine, 1).await, std::slice::from_ref(&name));
        // A src that is too large for it: it goes, and a new one is made.
        let mut large = order.clone();
        large.src.insert(
            "src/app.py".to_owned(),
            format!("ANSWER = 42\n# {}\n", "x".repeat(16 << 20)),
        );
        assert_eq!(
            told(&run(&engine, large.on(tree.clone())).await.attempts[0]),
            ["test_counts: passed"]
        );
        until(&engine, 0).await;
        expected(&engine, order.on(tree.clone())).await;
        engine.kill_rooms().await.unwrap();
        let limit = Instant::now() + Duration::from_secs(20);
        let facts = loop {
            // The engine tells of the death in its own time; before it does, the room may still be taken.
            let (events, _) = mpsc::channel(64);
            let ran = engine
                .sandbox()
                .run(order.on(tree.clone()), events, CancellationToken::new())
                .await;
            match ran {
                Ok(facts) => break facts,
                Err(error) => assert!(Instant::now() < limit, "{error}"),
            }
        };
        assert_eq!(told(&facts.attempts[0]), ["test_counts: passed"]);
        until(&engine, 0).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_rooms_wait_than_may_and_none_outlives_the_sandbox() {
    over(Engine::new().await.unwrap(), |engine| async move {
        let order = order(&engine, KEEPS);
        let sealed = order.sealed().await.unwrap();
        let tree = sealed.tree.clone();
        for _ in 0..5 {
            engine.sandbox().expect(order.on(tree.clone()));
        }
        until(&engine, 2).await;
        // Another base: the oldest room makes place for it.
        let mut other = order.clone();
        other.policy.runs.case_timeout_ms += 1;
        engine.sandbox().expect(other.on(tree.clone()));
        let limit = Instant::now() + Duration::from_secs(60);
        while engine.sandbox.ready() < 2 {
            assert!(Instant::now() < limit, "two rooms do not become ready");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        // Their tree is to go: so do they.
        engine.sandbox().sweep(Some(&[])).await.unwrap();
        until(&engine, 0).await;
        engine
            .sandbox()
            .expect(order.on(order.sealed().await.unwrap().tree));
        until(&engine, 1).await;
        engine.sandbox.drain().await;
        assert!(engine.containers().await.unwrap().is_empty());
    })
    .await;
}

#[test]
fn the_next_score_enters_the_rooms_that_were_made_for_it() {
    let server = Server::with_config(
        "[admin]\nlisten = \"127.0.0.1:0\"\npage = \"off\"\n[oracle]\nplant = \"asked\"\n[rooms]\nready = 4\n",
    );
    let stage = Stage::small(&server);
    let entered = |room: &str| {
        let name = format!("tribunal_rooms_entered_total{{room=\"{room}\"}}");
        let told = metrics(&server);
        told.get(&name)
            .copied()
            .unwrap_or_else(|| panic!("{name}: {told:?}"))
    };
    let made = || server.log().matches("a room is ready").count();
    let mut before = 0;
    let mut new = None;
    for score in 0..6 {
        stage.honest_patch(&format!("score {score}"));
        let out = format!("score-{score}");
        stage.score(&stage.agent(), &out).expect_code(0);
        stage.expect(&out, ["PASS"; 3]);
        // Those of the first score are new; each score after it, whichever of its starts has one attempt more, has its own.
        let first = *new.get_or_insert_with(|| entered("new"));
        assert!(
            (entered("new") - first).abs() < 0.5,
            "score {score} made a room"
        );
        assert!((entered("ready") - 2.0 * f64::from(score)).abs() < 0.5);
        tribunal_tests::until("two rooms are ready", || made() >= before + 2);
        before = made();
    }
    server.shutdown();
}
