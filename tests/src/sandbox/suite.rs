//! The suite. Each check is a function over a subject; `tests/sandbox_conformance.rs` runs all of them over every kind.

use super::order::tar_of;
use super::{Order, Subject, told, tree};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tribunal_core::id::Digest;
use tribunal_core::outcome::{AttemptFacts, End, Lane};
use tribunal_core::reason::{Aborted, AbortedCode};
use tribunal_server::sandbox::{
    AttemptMode, Extent, RunEvent, RunFacts, RunOrder, SandboxError, TreeToSeal,
};

/// A subject, shared by the tasks of a check.
pub type Shared = Arc<dyn Subject>;

async fn run(subject: &Shared, order: RunOrder) -> Result<RunFacts, SandboxError> {
    let (events, mut heard) = mpsc::channel(16);
    let listening = tokio::spawn(async move { while heard.recv().await.is_some() {} });
    let facts = subject
        .sandbox()
        .run(order, events, CancellationToken::new())
        .await;
    listening.await.unwrap();
    facts
}

/// Run it, and see that nothing but the tree is left.
async fn facts(subject: &Shared, order: &Order) -> RunFacts {
    let facts = run(subject, order.sealed().await.unwrap()).await.unwrap();
    no_room_is_left(subject).await;
    facts
}

/// After a run that went well its room goes while the caller goes on; soon there is none.
async fn no_room_is_left(subject: &Shared) {
    let until = Instant::now() + Duration::from_secs(20);
    while subject.rooms().await.unwrap() > 0 {
        assert!(Instant::now() < until, "a room is left behind");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn code(result: Result<RunFacts, SandboxError>) -> AbortedCode {
    match result {
        Ok(facts) => panic!("no error but {facts:?}"),
        Err(SandboxError::Aborted(aborted)) => aborted.code,
    }
}

/// Every outcome comes out as what it is.
pub async fn outcomes(subject: Shared) {
    let facts = facts(&subject, &Order::of(&subject, &["test_outcomes.py"])).await;
    let attempt = &facts.attempts[0];
    assert_eq!(attempt.end.end, End::Finished, "{:?}", attempt.end);
    assert_eq!(
        told(attempt),
        [
            "test_passes: passed",
            "test_fails: failed case-failed AssertionError: boom",
            "test_raises: failed case-failed ValueError: three words here",
            "test_marked_skip: skipped Skipped: not today",
            "test_skips: skipped Skipped: at run time",
            "test_xfails: xfailed KeyError: 'gone'",
            "test_xpasses: xpassed",
            "test_setup_error: error case-error OSError: no fixture",
            "test_teardown_error: error case-error OSError: left open",
            "test_parameters[one]: passed",
            "test_parameters[two]: passed",
            "TestClass::test_method: passed",
            "TestCase::test_unittest: failed case-failed AssertionError: unequal",
            "test_prints: passed",
        ]
    );
    let nodes: Vec<&str> = attempt.collected.iter().map(|c| c.node.as_str()).collect();
    let reported: Vec<&str> = attempt.cases.iter().map(|c| c.node.as_str()).collect();
    assert_eq!(nodes, reported);
    let method = &attempt.collected[11];
    assert_eq!(method.qualname, "TestClass.test_method");
    assert_eq!(method.file.as_str(), "tests/sealed/test_outcomes.py");
    let silences: Vec<&str> = attempt.silences.iter().map(|s| s.node.as_str()).collect();
    assert_eq!(
        silences,
        ["tests/sealed/test_outcomes.py::test_empty_set[NOTSET]"]
    );
    let printed = attempt.cases[13]
        .phases
        .iter()
        .any(|phase| phase.output.contains("heard"));
    assert!(printed, "{:?}", attempt.cases[13]);
    assert_eq!(facts.python_tag, "cp313");
}

/// A file that skips itself and one that cannot be imported do not hide the others.
pub async fn modules_that_do_not_load(subject: Shared) {
    let order = Order::of(
        &subject,
        &["test_silent.py", "test_src.py", "test_unimportable.py"],
    );
    let facts = facts(&subject, &order).await;
    let attempt = &facts.attempts[0];
    assert_eq!(told(attempt), ["test_answer: passed"]);
    assert_eq!(
        attempt.silences[0].node.as_str(),
        "tests/sealed/test_silent.py"
    );
    assert_eq!(attempt.silences[0].reason, "not on this machine");
    assert_eq!(attempt.silences.len(), 1);
    let error = &attempt.collection_errors[0];
    assert_eq!(error.file.as_str(), "tests/sealed/test_unimportable.py");
    assert_eq!(error.exception.kind, "ZeroDivisionError");
    assert_eq!(error.exception.message, "on import");
    assert_eq!(attempt.collection_errors.len(), 1);
}

/// Each way to end before the session does ends that attempt, and only that one.
async fn ends(subject: Shared, name: &str, end: End, change: impl FnOnce(&mut Order)) -> RunFacts {
    let mut order = Order::of(&subject, &[name]).times(2);
    change(&mut order);
    let facts = facts(&subject, &order).await;
    assert_eq!(facts.attempts.len(), 2);
    for attempt in &facts.attempts {
        assert_eq!(attempt.end.end, end, "{:?}", attempt.end);
        let running = attempt.end.running.as_ref().map(|node| node.as_str());
        assert_eq!(
            running,
            Some(format!("tests/sealed/{name}::test_b_ends").as_str())
        );
        let told = told(attempt);
        assert_eq!(told[0], "test_a_before: passed");
        assert_eq!(told.len(), 2, "{told:?}");
        let last = attempt.cases[1].phases.last().unwrap();
        assert!(!last.reported, "{last:?}");
        // All three were collected: the one that was never reached is known by name.
        assert_eq!(attempt.collected.len(), 3);
        assert_eq!(attempt.end.note, None);
    }
    facts
}

/// `os._exit` with a code.
pub async fn exit_in_mid_run(subject: Shared) {
    let facts = ends(subject, "test_exits.py", End::Exited, |_| {}).await;
    assert_eq!(facts.attempts[0].end.exit_code, Some(3));
}

/// `os._exit(0)`: no less an end.
pub async fn exit_zero_in_mid_run(subject: Shared) {
    let facts = ends(subject, "test_exits_zero.py", End::Exited, |_| {}).await;
    assert_eq!(facts.attempts[0].end.exit_code, Some(0));
}

/// A file that leaves while it is imported: nothing was collected, and what it said last is there.
pub async fn exit_at_import(subject: Shared) {
    let order = Order::of(&subject, &["test_leaves_early.py", "test_src.py"]);
    let facts = facts(&subject, &order).await;
    let attempt = &facts.attempts[0];
    assert_eq!(attempt.end.end, End::Exited, "{:?}", attempt.end);
    assert_eq!(attempt.end.exit_code, Some(5));
    assert_eq!(attempt.end.running, None);
    assert!(
        attempt.end.output.contains("last words"),
        "{:?}",
        attempt.end
    );
    assert!(attempt.collected.is_empty() && attempt.cases.is_empty());
}

/// A signal that the harness did not send.
pub async fn killed_in_mid_run(subject: Shared) {
    let facts = ends(subject, "test_dies.py", End::Killed, |_| {}).await;
    assert_eq!(facts.attempts[0].end.signal, Some(11));
}

/// A case over its time.
pub async fn case_timeout(subject: Shared) {
    let began = Instant::now();
    let facts = ends(subject, "test_hangs.py", End::CaseTimeout, |order| {
        order.policy.runs.case_timeout_ms = 1_000;
    })
    .await;
    assert!(began.elapsed() < Duration::from_secs(30));
    assert!(facts.attempts[0].end.wall_ms >= 900);
}

/// An attempt over its time although none of its cases is.
pub async fn attempt_timeout(subject: Shared) {
    let mut order = Order::of(&subject, &["test_slow.py"]);
    order.policy.runs.attempt_timeout_ms = 2_000;
    let facts = facts(&subject, &order).await;
    let attempt = &facts.attempts[0];
    assert_eq!(attempt.end.end, End::AttemptTimeout, "{:?}", attempt.end);
    let passed = told(attempt)
        .iter()
        .filter(|case| case.ends_with(": passed"))
        .count();
    assert!((1..=7).contains(&passed), "{:?}", told(attempt));
    assert_eq!(attempt.collected.len(), 10);
}

/// All memory.
pub async fn out_of_memory(subject: Shared) {
    let facts = ends(subject, "test_eats.py", End::OutOfMemory, |order| {
        order.policy.limits.memory = 64 << 20;
    })
    .await;
    assert!(facts.attempts[0].end.oom_kills > 0);
}

/// More output than ten times the limit.
pub async fn output_flood(subject: Shared) {
    ends(subject, "test_floods.py", End::OutputLimit, |order| {
        order.policy.limits.output = 256 << 10;
    })
    .await;
}

/// Collect only: every case by name, none run.
pub async fn collect_only(subject: Shared) {
    let mut order = Order::of(&subject, &["test_outcomes.py"]);
    order.attempts[0].extent = Extent::Collect;
    let facts = facts(&subject, &order).await;
    let attempt = &facts.attempts[0];
    assert_eq!(attempt.end.end, End::Finished);
    assert_eq!(attempt.collected.len(), 14);
    assert!(attempt.cases.is_empty());
    assert_eq!(attempt.silences.len(), 1);
}

/// Split files and shared ones, mixed in the manifest: one attempt, its cases in manifest order.
pub async fn parts_become_one(subject: Shared) {
    let names = ["test_outcomes.py", "test_silent.py", "test_src.py"];
    let order = Order::of(&subject, &names).times(2);
    let whole = facts(&subject, &order).await;
    for shared in [
        &[
            "tests/sealed/test_outcomes.py",
            "tests/sealed/test_silent.py",
        ][..],
        &["tests/sealed/test_src.py"],
    ] {
        let mut order = order.clone();
        order.policy.runner.shared = shared.iter().map(|path| path.parse().unwrap()).collect();
        let parts = facts(&subject, &order).await;
        assert_eq!(parts.attempts.len(), 2);
        for (parts, whole) in parts.attempts.iter().zip(&whole.attempts) {
            assert_eq!(parts.end.end, End::Finished);
            assert_eq!(told(parts), told(whole));
            assert_eq!(parts.collected, whole.collected);
            let silent = |attempt: &AttemptFacts| {
                let all = attempt.silences.iter();
                all.map(|silence| silence.node.clone())
                    .collect::<BTreeSet<_>>()
            };
            assert_eq!(silent(parts), silent(whole));
        }
    }
}

/// The first end that is no finish is the attempt's, and what follows is not run; base alone is collected whole.
pub async fn parts_end_as_the_first(subject: Shared) {
    let mut order = Order::of(&subject, &["test_exits.py", "test_src.py"]);
    order.policy.runner.shared = vec!["tests/sealed/test_src.py".parse().unwrap()];
    let alone = facts(&subject, &order).await;
    let attempt = &alone.attempts[0];
    assert_eq!(attempt.end.end, End::Exited);
    let of_shared = |attempt: &AttemptFacts| {
        let files = attempt.collected.iter().map(|case| case.file.as_str());
        files.filter(|file| file.ends_with("test_src.py")).count()
    };
    assert_eq!(of_shared(attempt), 0);
    let mut of_base = order.sealed().await.unwrap();
    of_base.lane = Lane::BaseCollection;
    let base = run(&subject, of_base).await.unwrap();
    assert_eq!(base.attempts[0].end.end, End::Exited);
    assert_eq!(of_shared(&base.attempts[0]), 1);
}

/// Only the named cases; marks off, run-time skips red.
pub async fn unsilenced(subject: Shared) {
    let file = "tests/sealed/test_outcomes.py";
    let nodes = [
        "test_marked_skip",
        "test_skips",
        "test_xfails",
        "test_xpasses",
    ]
    .map(|name| format!("{file}::{name}"));
    let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
    let mut order = Order::of(&subject, &["test_outcomes.py"]).only(&nodes);
    order.attempts[0].mode = AttemptMode::Unsilenced;
    let facts = facts(&subject, &order).await;
    assert_eq!(
        told(&facts.attempts[0]),
        [
            "test_marked_skip: failed case-failed RuntimeError: behind the mark",
            "test_skips: failed case-failed Skipped: at run time",
            "test_xfails: failed case-failed KeyError: 'gone'",
            "test_xpasses: passed",
        ]
    );
}

/// Attempts are forked from the start that is named, each with its own hash seed.
pub async fn two_starts(subject: Shared) {
    let mut order = Order::of(&subject, &["test_hash_seed.py"]);
    order.starts = vec![0, 4242];
    let facts = facts(&subject, &order.times(4)).await;
    let told: Vec<String> = facts.attempts.iter().flat_map(told).collect();
    let red = "test_hash_seed: failed case-failed AssertionError: randomized";
    assert_eq!(
        told,
        ["test_hash_seed: passed", red, "test_hash_seed: passed", red]
    );
    let starts: Vec<u32> = facts.attempts.iter().map(|attempt| attempt.start).collect();
    assert_eq!(starts, [0, 1, 0, 1]);
}

/// The same sealed tree serves run after run, each with its own src.
pub async fn src_differs_between_runs(subject: Shared) {
    let mut order = Order::of(&subject, &["test_src.py"]);
    let sealed = order.sealed().await.unwrap().tree;
    for (answer, expected) in [
        ("42", "test_answer: passed"),
        (
            "41",
            "test_answer: failed case-failed AssertionError: wrong answer",
        ),
        ("42", "test_answer: passed"),
    ] {
        order
            .src
            .insert("src/app.py".to_owned(), format!("ANSWER = {answer}\n"));
        let facts = run(&subject, order.on(sealed.clone())).await.unwrap();
        assert_eq!(told(&facts.attempts[0]), [expected]);
    }
    // A src of several megabytes arrives whole: it is larger than any pipe on the way.
    order.src.insert(
        "src/big.py".to_owned(),
        format!("X = '{}'\n", "x".repeat(9 << 20)),
    );
    let facts = run(&subject, order.on(sealed)).await.unwrap();
    assert_eq!(told(&facts.attempts[0]), ["test_answer: passed"]);
}

/// Events tell the run in its order, and every attempt's facts.
pub async fn events(subject: Shared) {
    let order = Order::of(&subject, &["test_src.py"]).times(2);
    let (events, mut heard) = mpsc::channel(64);
    let facts = subject
        .sandbox()
        .run(
            order.sealed().await.unwrap(),
            events,
            CancellationToken::new(),
        )
        .await
        .unwrap();
    let mut words = Vec::new();
    while let Some(event) = heard.recv().await {
        words.push(match event {
            RunEvent::Ready => "ready".to_owned(),
            RunEvent::SequelBegun => "sequel".to_owned(),
            RunEvent::AttemptStarted(index) => format!("{index} began"),
            RunEvent::CasesDone(index, count) => format!("{index} did {count}"),
            RunEvent::AttemptEnded(ended) => {
                assert_eq!(*ended, facts.attempts[ended.index as usize]);
                format!("{} ended", ended.index)
            }
        });
    }
    let expected = [
        "ready", "0 began", "0 did 1", "0 ended", "1 began", "1 did 1", "1 ended",
    ];
    assert_eq!(words, expected);
}

/// Digests of functions: of the text, not of what it does.
pub async fn digests(subject: Shared) {
    let mut order = Order::of(&subject, &["test_outcomes.py", "test_src.py"]);
    order.digests = vec![
        "tests/sealed/test_outcomes.py".parse().unwrap(),
        "tests/sealed/test_src.py".parse().unwrap(),
    ];
    let first = facts(&subject, &order).await;
    let of = |facts: &RunFacts, name: &str| {
        let found = facts.digests.iter().find(|digest| digest.qualname == name);
        found.map(|digest| {
            (
                digest.file.to_string(),
                digest.v2.clone(),
                digest.short.clone(),
            )
        })
    };
    let names = [
        "test_passes",
        "test_fails",
        "TestClass.test_method",
        "test_answer",
    ];
    let seen: BTreeSet<String> = names
        .iter()
        .map(|name| of(&first, name).unwrap().1)
        .collect();
    assert_eq!(seen.len(), names.len());
    assert_eq!(
        of(&first, "test_answer").unwrap().0,
        "tests/sealed/test_src.py"
    );
    assert!(first.undigested.is_empty());
    let text = order.sealed["tests/sealed/test_outcomes.py"].replace("boom", "doom");
    order
        .sealed
        .insert("tests/sealed/test_outcomes.py".to_owned(), text);
    let second = facts(&subject, &order).await;
    assert_eq!(of(&first, "test_passes"), of(&second, "test_passes"));
    assert_ne!(of(&first, "test_fails"), of(&second, "test_fails"));
}

/// A cancel in the middle ends the room at once.
pub async fn cancel(subject: Shared) {
    let order = Order::of(&subject, &["test_hangs.py"])
        .sealed()
        .await
        .unwrap();
    let cancel = CancellationToken::new();
    let (events, mut heard) = mpsc::channel(16);
    let sandbox = subject.sandbox();
    let token = cancel.clone();
    let running = tokio::spawn(async move { sandbox.run(order, events, token).await });
    while let Some(event) = heard.recv().await {
        if matches!(event, RunEvent::CasesDone(0, 1)) {
            break;
        }
    }
    assert_eq!(subject.rooms().await.unwrap(), 1);
    let began = Instant::now();
    cancel.cancel();
    assert_eq!(code(running.await.unwrap()), AbortedCode::Cancelled);
    let took = began.elapsed();
    assert!(took < Duration::from_secs(3), "it took {took:?}");
    assert_eq!(subject.rooms().await.unwrap(), 0);
}

/// A caller that goes away leaves no room behind either.
pub async fn dropped(subject: Shared) {
    let order = Order::of(&subject, &["test_hangs.py"])
        .sealed()
        .await
        .unwrap();
    let (events, mut heard) = mpsc::channel(16);
    let sandbox = subject.sandbox();
    {
        let running = sandbox.run(order, events, CancellationToken::new());
        tokio::pin!(running);
        loop {
            tokio::select! {
                _ = &mut running => panic!("a hanging run ended"),
                event = heard.recv() => if matches!(event, Some(RunEvent::CasesDone(0, 1))) { break },
            }
        }
    }
    subject.drain().await;
    assert_eq!(subject.rooms().await.unwrap(), 0);
    let order = Order::of(&subject, &["test_src.py"]);
    assert!(matches!(
        order.sealed().await,
        Err(SandboxError::Aborted(Aborted {
            code: AbortedCode::ServerRestarted,
            ..
        }))
    ));
}

/// A room whose first process is killed: the attempt in it ends so, those after it as well, and they say why.
pub async fn room_killed(subject: Shared) {
    let order = Order::of(&subject, &["test_hangs.py"])
        .times(3)
        .sealed()
        .await
        .unwrap();
    let (events, mut heard) = mpsc::channel(16);
    let sandbox = subject.sandbox();
    let running =
        tokio::spawn(async move { sandbox.run(order, events, CancellationToken::new()).await });
    while let Some(event) = heard.recv().await {
        if matches!(event, RunEvent::CasesDone(0, 1)) {
            break;
        }
    }
    subject.kill_rooms().await.unwrap();
    let mut ended = 0;
    while let Some(event) = heard.recv().await {
        ended += u32::from(matches!(event, RunEvent::AttemptEnded(_)));
    }
    assert_eq!(ended, 3);
    let facts = running.await.unwrap().unwrap();
    let ends: Vec<End> = facts
        .attempts
        .iter()
        .map(|attempt| attempt.end.end)
        .collect();
    assert_eq!(ends, [End::Killed; 3]);
    assert_eq!(facts.attempts[0].cases.len(), 1);
    assert!(facts.attempts[1].collected.is_empty());
    for attempt in &facts.attempts[1..] {
        let note = attempt.end.note.as_deref().unwrap();
        assert!(note.starts_with("not run:"), "{note}");
        assert_eq!(attempt.end.wall_ms, 0);
    }
    no_room_is_left(&subject).await;
}

/// Two rooms at once do not get in each other's way.
pub async fn rooms_at_once(subject: Shared) {
    let order = Order::of(&subject, &["test_outcomes.py"])
        .times(2)
        .sealed()
        .await
        .unwrap();
    let tree = order.tree.clone();
    let again = || {
        Order::of(&subject, &["test_outcomes.py"])
            .times(2)
            .on(tree.clone())
    };
    let (a, b, c) = tokio::join!(
        run(&subject, order),
        run(&subject, again()),
        run(&subject, again())
    );
    let (a, b, c) = (a.unwrap(), b.unwrap(), c.unwrap());
    for facts in [&b, &c] {
        for (one, other) in a.attempts.iter().zip(&facts.attempts) {
            assert_eq!(told(one), told(other));
        }
    }
    no_room_is_left(&subject).await;
}

/// The same tree sealed by many at once is written once.
pub async fn seal_once(subject: Shared) {
    let files = BTreeMap::from([("tests/sealed/test_x.py".to_owned(), "# once\n".to_owned())]);
    let made = Arc::new(AtomicUsize::new(0));
    let before = subject.trees().await.unwrap();
    let counted = || {
        let TreeToSeal { digest, image, tar } = tree(subject.image(), &files);
        let made = Arc::clone(&made);
        let tar = Box::new(move || {
            made.fetch_add(1, Ordering::SeqCst);
            tar()
        });
        TreeToSeal { digest, image, tar }
    };
    let sandbox = subject.sandbox();
    let (a, b, c) = tokio::join!(
        sandbox.seal(counted()),
        sandbox.seal(counted()),
        sandbox.seal(counted())
    );
    assert_eq!(a.unwrap(), b.unwrap());
    c.unwrap();
    sandbox.seal(counted()).await.unwrap();
    assert_eq!(made.load(Ordering::SeqCst), 1);
    assert_eq!(subject.trees().await.unwrap(), before + 1);
    assert_eq!(subject.rooms().await.unwrap(), 0);
}

/// A tree that breaks off is not sealed; the next try writes it whole.
pub async fn seal_that_breaks(subject: Shared) {
    let files = BTreeMap::from([(
        "tests/sealed/test_x.py".to_owned(),
        "# broken\n".repeat(100_000),
    )]);
    let whole = tar_of(&files);
    let before = subject.trees().await.unwrap();
    let broken = |after: usize| {
        let head = whole.slice(..after);
        TreeToSeal {
            digest: Digest::of(&whole),
            image: subject.image(),
            tar: Box::new(move || {
                let end = std::io::Error::other("the object is gone");
                Ok(Box::new(std::io::Read::chain(
                    std::io::Cursor::new(head),
                    Broken(Some(end)),
                )))
            }),
        }
    };
    for after in [0, 700_000] {
        let Err(SandboxError::Aborted(aborted)) = subject.sandbox().seal(broken(after)).await
        else {
            panic!("half a tree was sealed");
        };
        assert_eq!(aborted.code, AbortedCode::Internal);
        assert!(aborted.message.contains("the object is gone"), "{aborted}");
        assert_eq!(subject.trees().await.unwrap(), before);
    }
    let refused = TreeToSeal {
        tar: Box::new(|| Err(Aborted::new(AbortedCode::DiskFull, "no room for the tar"))),
        ..broken(0)
    };
    let Err(SandboxError::Aborted(aborted)) = subject.sandbox().seal(refused).await else {
        panic!("no tree was sealed");
    };
    assert_eq!(aborted.code, AbortedCode::DiskFull);
    subject
        .sandbox()
        .seal(tree(subject.image(), &files))
        .await
        .unwrap();
    assert_eq!(subject.trees().await.unwrap(), before + 1);
    assert_eq!(subject.rooms().await.unwrap(), 0);
}

struct Broken(Option<std::io::Error>);

impl std::io::Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        Err(self
            .0
            .take()
            .unwrap_or_else(|| std::io::Error::other("read after an error")))
    }
}

/// A sweep removes trees that are not to be kept, never those that are, and no live room.
pub async fn sweep(subject: Shared) {
    let sandbox = subject.sandbox();
    let kept = Order::of(&subject, &["test_hangs.py"])
        .sealed()
        .await
        .unwrap();
    let other = Order::of(&subject, &["test_slow.py"])
        .sealed()
        .await
        .unwrap();
    let keep = vec![kept.tree.digest.clone()];
    let cancel = CancellationToken::new();
    let (events, mut heard) = mpsc::channel(16);
    let (running, token) = (subject.sandbox(), cancel.clone());
    let running = tokio::spawn(async move { running.run(kept, events, token).await });
    while let Some(event) = heard.recv().await {
        if matches!(event, RunEvent::AttemptStarted(_)) {
            break;
        }
    }
    assert_eq!(sandbox.sweep(None).await.unwrap().trees, 0);
    let swept = sandbox.sweep(Some(&keep)).await.unwrap();
    assert_eq!((swept.rooms, swept.trees), (0, 1));
    assert_eq!(subject.rooms().await.unwrap(), 1);
    cancel.cancel();
    assert_eq!(code(running.await.unwrap()), AbortedCode::Cancelled);
    assert_eq!(sandbox.sweep(Some(&[])).await.unwrap().trees, 1);
    assert_eq!(subject.trees().await.unwrap(), 0);
    // A swept tree is not run in: an empty one would be blamed on the candidate.
    assert_eq!(code(run(&subject, other).await), AbortedCode::Internal);
    assert_eq!(subject.trees().await.unwrap(), 0);
    assert_eq!(subject.rooms().await.unwrap(), 0);
    // What was swept is written again when it is wanted again.
    let facts = facts(&subject, &Order::of(&subject, &["test_src.py"])).await;
    assert_eq!(told(&facts.attempts[0]), ["test_answer: passed"]);
}

/// A file that is not in the tree is our mistake, not the candidate's.
pub async fn order_that_does_not_hold(subject: Shared) {
    let mut order = Order::of(&subject, &["test_src.py"]);
    order.attempts[0].start = 7;
    let ordered = order.sealed().await.unwrap();
    assert_eq!(code(run(&subject, ordered).await), AbortedCode::Internal);
    assert_eq!(subject.rooms().await.unwrap(), 0);
}
