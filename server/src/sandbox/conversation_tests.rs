//! The conversation against harnesses that misbehave, each scripted byte by byte.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first surprise"
)]

use super::autopsy::{Autopsy, Death, Life};
use super::conversation::{Begun, Stage, converse, farewell};
use super::frames::{self, Decoder, Frame};
use super::line::{Line, Patience};
use super::turns::Turns;
use super::uids::UidRange;
use super::{AttemptOrder, Deserved, RunEvent, RunFacts, RunOrder, SealedTree, Sequel};
use bytes::Bytes;
use futures::StreamExt as _;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, DuplexStream};
use tokio::sync::mpsc;
use tribunal_core::id::Digest;
use tribunal_core::outcome::{End, Lane, Pins};
use tribunal_core::policy::Policy;
use tribunal_core::reason::{Aborted, AbortedCode};

const SOON: Duration = Duration::from_millis(300);

fn impatient() -> Patience {
    Patience {
        ready: SOON,
        configure: SOON,
        digests: SOON,
        marks: SOON,
        margin: SOON,
        piece: SOON,
    }
}

/// The harness's side.
struct Harness {
    orders: DuplexStream,
    decoder: Decoder,
    said: mpsc::Sender<Result<Bytes, String>>,
    base: u32,
    next: u32,
}

impl Harness {
    async fn say(&self, message: Value) {
        let frame = frames::json(&message).unwrap();
        let _gone = self.said.send(Ok(frame)).await;
    }

    /// The next JSON order; tar frames are passed over.
    async fn order(&mut self) -> Option<Value> {
        loop {
            match self.decoder.next().unwrap() {
                Some(Frame::Json(body)) => return Some(serde_json::from_slice(&body).unwrap()),
                Some(Frame::Tar(_)) => continue,
                None => {}
            }
            let mut chunk = [0u8; 4096];
            let length = self.orders.read(&mut chunk).await.ok()?;
            if length == 0 {
                return None;
            }
            self.decoder.push(&chunk[..length]);
        }
    }

    /// Greet, and take the configuration and the src.
    async fn configured(&mut self) {
        self.say(ready()).await;
        let configure = self.order().await.unwrap();
        self.base = u32::try_from(configure["uid_base"].as_u64().unwrap()).unwrap();
        assert_eq!(self.order().await.unwrap()["type"], "src");
        assert_eq!(self.order().await.unwrap()["type"], "src-end");
        self.say(json!({ "type": "configured", "starts": 1 })).await;
    }

    /// Take an attempt order; its number.
    async fn attempt(&mut self) -> u64 {
        let order = self.order().await.unwrap();
        assert_eq!(order["type"], "attempt");
        order["attempt"].as_u64().unwrap()
    }

    async fn collected(&self, attempt: u64, names: &[&str]) {
        let cases: Vec<Value> = names
            .iter()
            .map(|name| json!({ "node": name, "file": "tests/sealed/test_a.py", "qualname": name, "marks": [] }))
            .collect();
        self.say(json!({ "type": "collected", "attempt": attempt, "cases": cases, "errors": [], "skips": [], "more": false }))
            .await;
    }

    async fn case(&self, attempt: u64, name: &str) {
        self.say(
            json!({ "type": "case", "attempt": attempt, "node": name, "phases": [
            { "when": "setup", "outcome": "passed" }, { "when": "call", "outcome": "passed" },
            { "when": "teardown", "outcome": "passed" }] }),
        )
        .await;
    }

    async fn ended(&mut self, attempt: u64, change: Value) {
        let mut end = json!({
            "type": "attempt-end", "attempt": attempt, "end": "finished", "exit_code": 0, "signal": null, "running": null,
            "phase": null, "wall_ms": 100.5, "cpu_ms": 90, "run_delay_ms": 0, "oom_kills": 0, "output_bytes": 0,
            "start": 0, "uid": self.base + self.next
        });
        self.next += 1;
        for (key, value) in change.as_object().unwrap() {
            end[key] = value.clone();
        }
        self.say(end).await;
    }

    /// Its end of the line is closed.
    fn hung_up(mut self) -> Self {
        self.said = mpsc::channel(1).0;
        self
    }

    /// A whole attempt that is as it should be.
    async fn passes(&mut self) {
        let attempt = self.attempt().await;
        self.collected(attempt, &["a"]).await;
        self.case(attempt, "a").await;
        self.ended(attempt, json!({})).await;
    }
}

fn ready() -> Value {
    json!({ "type": "ready", "protocol": 1, "python": "3.13.5", "tag": "cp313", "pytest": "9", "hypothesis": null })
}

/// What the room would say.
struct Room {
    death: Result<Death, Aborted>,
    life: Life,
}

#[async_trait::async_trait]
impl Autopsy for Room {
    async fn examine(&mut self) -> Result<Death, Aborted> {
        self.death.clone()
    }
    async fn is_alive(&mut self) -> Result<Life, Aborted> {
        Ok(self.life)
    }
}

fn oom() -> Death {
    Death {
        end: End::OutOfMemory,
        exit_code: Some(137),
        signal: Some(9),
        note: "the room died: out of memory, exit code 137".to_owned(),
    }
}

fn order(attempts: u32, src: usize) -> RunOrder {
    let mut policy = Policy::default();
    policy.runs.attempt_timeout_ms = 200;
    let pins = Pins {
        seed: policy.pins.seed,
        hash_seed: 0,
        clock: policy.pins.clock.clone(),
        source_date_epoch: 0,
    };
    RunOrder {
        score: "0".repeat(32),
        lane: Lane::Property,
        image: String::new(),
        tree: SealedTree {
            digest: Digest::of(b""),
        },
        src_tar: Bytes::from(vec![0; src]),
        files: Vec::new(),
        own_names: Vec::new(),
        policy,
        starts: vec![0],
        free_starts: 0,
        attempts: (0..attempts)
            .map(|index| AttemptOrder::of(index + 10, 0, pins.clone()))
            .collect(),
        sequel: None,
        digests: Vec::new(),
        cassettes: Vec::new(),
        outside: None,
        plant: None,
        marks: Vec::new(),
    }
}

/// Hold a conversation with a harness that does what `script` does.
async fn against<F>(
    order: RunOrder,
    mut room: Room,
    script: impl FnOnce(Harness) -> F,
) -> Result<RunFacts, Aborted>
where
    F: Future<Output = Harness> + Send + 'static,
{
    let (outgoing, orders) = tokio::io::duplex(4096);
    let (said, chunks) = mpsc::channel(64);
    let harness = tokio::spawn(script(Harness {
        orders,
        decoder: Decoder::default(),
        said,
        base: 0,
        next: 0,
    }));
    let chunks = tokio_stream::wrappers::ReceiverStream::new(chunks).boxed();
    let uids = UidRange::take(64).unwrap();
    let turns = Turns::on(2);
    let (events, mut heard) = mpsc::channel::<RunEvent>(64);
    let listening = tokio::spawn(async move { while heard.recv().await.is_some() {} });
    let facts = async {
        let mut line = Line::open(chunks, Box::new(outgoing), impatient(), &mut room).await?;
        let stage = Stage {
            order: &order,
            uids: &uids,
            turns: &turns,
            events: &events,
            starts: Begun::No,
        };
        let facts = converse(&mut line, stage, &mut room).await;
        farewell(&mut line).await;
        facts
    };
    let facts = tokio::time::timeout(Duration::from_secs(120), facts)
        .await
        .unwrap_or_else(|_| panic!("the conversation hangs"));
    drop(events);
    listening.await.unwrap();
    // The harness's ends live until here: nothing above ended because they were dropped, unless the script did it.
    harness.abort();
    facts
}

fn alive() -> Room {
    Room {
        death: Ok(oom()),
        life: Life::Running,
    }
}

/// Stay on the line and say nothing.
async fn quiet(harness: Harness) -> Harness {
    std::future::pending::<()>().await;
    harness
}

#[tokio::test]
async fn a_whole_run() {
    let facts = against(order(3, 50_000), alive(), |mut harness| async move {
        harness.configured().await;
        for _ in 0..3 {
            harness.passes().await;
        }
        assert_eq!(harness.order().await.unwrap()["type"], "bye");
        assert_eq!(harness.order().await, None);
        harness
    })
    .await
    .unwrap();
    let indices: Vec<u32> = facts.attempts.iter().map(|attempt| attempt.index).collect();
    assert_eq!(indices, [10, 11, 12]);
    assert!(facts.attempts.iter().all(|a| a.end.end == End::Finished));
    assert_eq!(facts.attempts[0].end.wall_ms, 101);
    assert_eq!(facts.python_tag, "cp313");
}

#[tokio::test]
async fn digests_of_one_file_come_in_as_many_frames_as_they_need() {
    let mut order = order(1, 0);
    let files = ["tests/sealed/test_a.py", "tests/sealed/test_b.py"];
    order.digests = files.iter().map(|file| file.parse().unwrap()).collect();
    let facts = against(order, alive(), move |mut harness| async move {
        harness.configured().await;
        let frame = |file: &str, name: &str, errors: Value, more: bool| {
            let forms = json!({ "v2": format!("v2:cp313:{}", "a".repeat(64)), "short": "b".repeat(16) });
            let functions = json!({ format!("{file}::{name}"): forms });
            json!({ "type": "digests", "tag": "cp313", "functions": functions, "errors": errors, "more": more })
        };
        for (file, last) in files.iter().zip([true, false]) {
            let asked = harness.order().await.unwrap();
            assert_eq!(asked["files"], json!([file]));
            harness.say(frame(file, "test_one", json!({}), last)).await;
            if last {
                harness.say(frame(file, "test_two", json!({}), true)).await;
                harness.say(frame(file, "test_three", json!({}), false)).await;
            }
        }
        harness.passes().await;
        harness
    })
    .await
    .unwrap();
    let names: Vec<String> = facts
        .digests
        .iter()
        .map(|digest| format!("{}::{}", digest.file, digest.qualname))
        .collect();
    let [a, b] = files;
    let of = |file: &str, name: &str| format!("{file}::test_{name}");
    assert_eq!(
        names,
        [of(a, "one"), of(a, "two"), of(a, "three"), of(b, "one")]
    );
}

#[tokio::test]
async fn a_sequel_is_ordered_only_when_it_is_deserved() {
    for (deserved, wanted) in [(Deserved::Yes, 3), (Deserved::No, 2)] {
        let mut order = order(2, 0);
        order.sequel = Some(Sequel {
            lane: Lane::HeldOut,
            attempts: vec![order.attempts[0].clone()],
            deserved: crate::sandbox::deserving(move |seen| {
                assert_eq!(seen.len(), 2);
                deserved
            }),
        });
        let facts = against(order, alive(), |mut harness| async move {
            harness.configured().await;
            for _ in 0..wanted {
                harness.passes().await;
            }
            assert_eq!(harness.order().await.unwrap()["type"], "bye");
            harness
        })
        .await
        .unwrap();
        let lanes: Vec<Lane> = facts.attempts.iter().map(|a| a.lane).collect();
        let all = [Lane::Property, Lane::Property, Lane::HeldOut];
        assert_eq!(lanes, all[..wanted]);
    }
}

#[tokio::test]
async fn what_pid_1_gets_wrong_is_ours() {
    let wrongs: [(&str, Value); 6] = [
        (
            "out of step",
            json!({ "type": "case", "attempt": 7, "node": "a", "phases": [] }),
        ),
        (
            "does not belong",
            json!({ "type": "configured", "starts": 1 }),
        ),
        ("cannot be read", json!({ "type": "surprise" })),
        ("cannot be read", json!([1, 2])),
        (
            "cannot be read",
            json!({ "type": "attempt-end", "attempt": 0 }),
        ),
        (
            "zygote-failed: it \\u{1b}[31m broke",
            json!({ "type": "trouble", "code": "zygote-failed", "message": "it \u{1b}[31m broke" }),
        ),
    ];
    for (text, wrong) in wrongs {
        let aborted = against(order(2, 0), alive(), |mut harness| async move {
            harness.configured().await;
            harness.attempt().await;
            harness.say(wrong).await;
            quiet(harness).await
        })
        .await
        .unwrap_err();
        assert_eq!(aborted.code, AbortedCode::Internal, "{aborted}");
        assert!(aborted.message.contains(text), "{aborted}");
    }
}

#[tokio::test]
async fn bytes_that_are_no_frames_are_ours() {
    for bytes in [
        &b"\xff\xff\xff\xff"[..],
        b"\0\0\0\0",
        b"\0\0\0\x05X",
        b"\0\0\0\x04Tarx",
    ] {
        let aborted = against(order(1, 0), alive(), |mut harness| async move {
            harness.configured().await;
            harness.attempt().await;
            let _sent = harness.said.send(Ok(Bytes::from_static(bytes))).await;
            quiet(harness).await
        })
        .await
        .unwrap_err();
        assert_eq!(aborted.code, AbortedCode::Internal, "{aborted}");
    }
}

#[tokio::test]
async fn records_that_cannot_be_are_the_attempts() {
    let case = |node: &str| json!({ "type": "case", "attempt": 0, "node": node, "phases": [] });
    let collected = |cases: Value| json!({ "type": "collected", "attempt": 0, "cases": cases, "errors": [], "skips": [], "more": false });
    let one = |node: &str, file: &str| json!({ "node": node, "file": file, "qualname": "q", "marks": [] });
    let scripts: Vec<Vec<Value>> = vec![
        vec![case("a")],
        vec![collected(json!([])), collected(json!([]))],
        vec![collected(json!([one("a", "f.py"), one("a", "f.py")]))],
        vec![collected(json!([one("", "f.py")]))],
        vec![collected(json!([one("a", "../etc/passwd")]))],
        vec![collected(json!([])), case("a"), case("a")],
        vec![collected(json!([])), case("a\0b")],
        vec![
            collected(json!([])),
            json!({ "type": "case", "attempt": 0, "node": "a", "phases": "all fine" }),
        ],
        vec![
            collected(json!([])),
            json!({ "type": "case", "attempt": 0, "node": "a", "phases": [
            { "when": "call", "outcome": "passed" }, { "when": "setup", "outcome": "passed" }] }),
        ],
        vec![],
    ];
    for script in scripts {
        let told = format!("{script:?}");
        let facts = against(order(2, 0), alive(), |mut harness| async move {
            harness.configured().await;
            let attempt = harness.attempt().await;
            for message in script {
                harness.say(message).await;
            }
            harness.ended(attempt, json!({})).await;
            harness.passes().await;
            quiet(harness).await
        })
        .await
        .unwrap();
        assert_eq!(facts.attempts[0].end.end, End::Protocol, "{told}");
        assert!(facts.attempts[0].end.note.is_some());
        assert_eq!(facts.attempts[1].end.end, End::Finished, "{told}");
    }
}

#[tokio::test]
async fn trouble_while_the_src_goes_out_is_heard_at_once() {
    let began = Instant::now();
    let aborted = against(order(1, 4 << 20), alive(), |mut harness| async move {
        harness.say(ready()).await;
        assert_eq!(harness.order().await.unwrap()["type"], "configure");
        // It reads no more: the pipe is full by now.
        harness
            .say(json!({ "type": "trouble", "code": "bad-order", "message": "no room" }))
            .await;
        quiet(harness).await
    })
    .await
    .unwrap_err();
    assert!(aborted.message.contains("bad-order: no room"), "{aborted}");
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_harness_that_does_not_read_is_not_waited_for() {
    let aborted = against(order(1, 4 << 20), alive(), |mut harness| async move {
        harness.say(ready()).await;
        harness.order().await;
        quiet(harness).await
    })
    .await
    .unwrap_err();
    assert_eq!(aborted.code, AbortedCode::Deadline, "{aborted}");
}

#[tokio::test]
async fn silence_is_ours_before_the_first_attempt_and_the_candidates_after() {
    let aborted = against(order(2, 0), alive(), quiet).await.unwrap_err();
    assert_eq!(aborted.code, AbortedCode::Deadline, "{aborted}");
    let facts = against(order(3, 0), alive(), |mut harness| async move {
        harness.configured().await;
        harness.passes().await;
        let attempt = harness.attempt().await;
        harness.collected(attempt, &["a", "b"]).await;
        harness.case(attempt, "a").await;
        quiet(harness).await
    })
    .await
    .unwrap();
    let ends: Vec<End> = facts.attempts.iter().map(|a| a.end.end).collect();
    assert_eq!(
        ends,
        [End::Finished, End::AttemptTimeout, End::AttemptTimeout]
    );
    assert_eq!(facts.attempts[1].cases.len(), 1);
    assert!(
        facts.attempts[2]
            .end
            .note
            .as_deref()
            .unwrap()
            .starts_with("not run: ")
    );
}

#[tokio::test]
async fn death_is_ours_before_the_first_attempt_and_the_candidates_after() {
    let aborted = against(order(2, 0), alive(), |mut harness| async move {
        harness.say(ready()).await;
        harness.order().await;
        quiet(harness.hung_up()).await
    })
    .await
    .unwrap_err();
    assert_eq!(aborted.code, AbortedCode::Internal);
    assert!(aborted.message.contains("out of memory"), "{aborted}");
    let facts = against(order(2, 0), alive(), |mut harness| async move {
        harness.configured().await;
        harness.attempt().await;
        quiet(harness.hung_up()).await
    })
    .await
    .unwrap();
    assert!(facts.attempts.iter().all(|a| a.end.end == End::OutOfMemory));
    assert_eq!(facts.attempts[0].end.signal, Some(9));
    let gone = Room {
        death: Err(Aborted::new(AbortedCode::EngineUnavailable, "no engine")),
        life: Life::Gone,
    };
    let aborted = against(order(2, 0), gone, |mut harness| async move {
        harness.configured().await;
        harness.attempt().await;
        quiet(harness.hung_up()).await
    })
    .await
    .unwrap_err();
    assert_eq!(aborted.code, AbortedCode::EngineUnavailable);
}

#[tokio::test]
async fn a_starved_attempt_is_repeated_once_under_another_number() {
    let starved = json!({ "end": "attempt-timeout", "exit_code": null, "wall_ms": 1000, "cpu_ms": 100, "run_delay_ms": 800 });
    let again = starved.clone();
    let facts = against(order(2, 0), alive(), |mut harness| async move {
        harness.configured().await;
        assert_eq!(harness.attempt().await, 0);
        harness.collected(0, &["a"]).await;
        harness.ended(0, starved).await;
        assert_eq!(harness.attempt().await, 1);
        harness.collected(1, &["a"]).await;
        harness.case(1, "a").await;
        harness.ended(1, json!({})).await;
        harness.passes().await;
        quiet(harness).await
    })
    .await
    .unwrap();
    assert!(facts.attempts.iter().all(|a| a.end.end == End::Finished));
    assert_eq!(facts.attempts.len(), 2);
    let aborted = against(order(2, 0), alive(), |mut harness| async move {
        harness.configured().await;
        for _ in 0..2 {
            let attempt = harness.attempt().await;
            harness.ended(attempt, again.clone()).await;
        }
        quiet(harness).await
    })
    .await
    .unwrap_err();
    assert_eq!(aborted.code, AbortedCode::Deadline, "{aborted}");
}

#[tokio::test]
async fn threads_that_crowd_each_other_are_not_starved() {
    let facts = against(order(1, 0), alive(), |mut harness| async move {
        harness.configured().await;
        let attempt = harness.attempt().await;
        harness.collected(attempt, &["a"]).await;
        let crowded =
            json!({ "end": "case-timeout", "wall_ms": 1000, "cpu_ms": 990, "run_delay_ms": 9000 });
        harness.ended(attempt, crowded).await;
        quiet(harness).await
    })
    .await
    .unwrap();
    assert_eq!(facts.attempts[0].end.end, End::CaseTimeout);
}

#[tokio::test]
async fn no_uid_serves_twice() {
    for uid in [0u32, 5] {
        let aborted = against(order(2, 0), alive(), |mut harness| async move {
            harness.configured().await;
            for _ in 0..2 {
                let attempt = harness.attempt().await;
                harness.collected(attempt, &[]).await;
                let wanted = if uid == 0 { 0 } else { harness.base + uid };
                harness.ended(attempt, json!({ "uid": wanted })).await;
            }
            quiet(harness).await
        })
        .await
        .unwrap_err();
        assert!(aborted.message.contains("as uid"), "{aborted}");
    }
}

#[tokio::test]
async fn long_texts_of_many_cases_stay_within_a_share() {
    let names: Vec<String> = (0..1000).map(|n| format!("case {n}")).collect();
    let mut order = order(7, 0);
    order.policy.runs.attempt_timeout_ms = 60_000;
    let facts = against(order, alive(), |mut harness| async move {
        harness.configured().await;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        for _ in 0..7 {
            let attempt = harness.attempt().await;
            harness.collected(attempt, &names).await;
            for name in &names {
                harness
                    .say(json!({ "type": "case", "attempt": attempt, "node": name, "phases": [
                        { "when": "setup", "outcome": "passed", "output": "o".repeat(5000) },
                        { "when": "call", "outcome": "failed", "output": "é".repeat(4500), "exception":
                            { "type": "E", "message": "m".repeat(2100), "traceback": "t".repeat(6500) } }] }))
                    .await;
            }
            harness.ended(attempt, json!({})).await;
        }
        quiet(harness).await
    })
    .await
    .unwrap();
    let mut kept = 0;
    for attempt in &facts.attempts {
        assert_eq!(attempt.cases.len(), 1000);
        for case in &attempt.cases {
            for phase in &case.phases {
                kept += phase.output.len();
                if let Some(exception) = &phase.exception {
                    kept += exception.traceback.len();
                    // What the judge compares is never left out.
                    assert_eq!(exception.message.len(), 2000);
                }
            }
        }
        assert!(attempt.cases[0].phases[1].output.starts_with('é'));
    }
    assert!(kept < 80 << 20, "{kept}");
}
