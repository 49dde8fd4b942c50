//! The queue with a memory store and a scorer that does what a test tells it.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first surprise"
)]

use super::*;
use crate::metrics::nobody;
use crate::store::{Completion, Disk, MemoryStore, ScoreState, Words};
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Semaphore;
use tribunal_core::judge::Word;
use tribunal_core::request::{Caller, RawScoreRequest, Role};

const WORDS: Words = Words {
    src_score: Word::Pass,
    oracle_integrity: Word::Pass,
    flake_lease: Word::Pass,
};

/// What the work of a score does once a test lets it go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Conduct {
    Complete,
    ReturnWithoutVerdict,
    Fail,
    Panic,
    WaitForCancel,
    IgnoreCancel,
}

/// Head's first digit chooses the conduct.
fn conduct(head: &CommitId) -> Conduct {
    match head.as_str().as_bytes()[0] {
        b'a' => Conduct::Complete,
        b'b' => Conduct::ReturnWithoutVerdict,
        b'c' => Conduct::Fail,
        b'd' => Conduct::Panic,
        b'e' => Conduct::WaitForCancel,
        _ => Conduct::IgnoreCancel,
    }
}

struct Stage {
    store: Arc<MemoryStore>,
    /// Admissions and works wait here for a test's permit.
    admit: Arc<Semaphore>,
    go: Arc<Semaphore>,
    order: Arc<Mutex<Vec<CommitId>>>,
    most: Arc<AtomicUsize>,
    now: Arc<AtomicUsize>,
}

#[async_trait::async_trait]
impl Scorer for Stage {
    async fn admit(&self, request: ScoreRequest) -> Result<Admission, NoVerdict> {
        self.admit.acquire().await.unwrap().forget();
        let head = request.head().clone();
        if head.as_str().starts_with('0') {
            return Err(Refused::new(RefusedCode::UnknownCommit, "no such commit").into());
        }
        let (store, go, order) = (self.store.clone(), self.go.clone(), self.order.clone());
        let (most, now) = (self.most.clone(), self.now.clone());
        let of = head.clone();
        let work: Work = Box::new(move |id, progress, cancel| {
            Box::pin(async move {
                order.lock().unwrap().push(of.clone());
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                let stage = "trees".to_owned();
                progress.send(EventKind::Preparing { stage }).await.unwrap();
                let result = act(conduct(&of), &*store, &id, &go, cancel).await;
                now.fetch_sub(1, Ordering::SeqCst);
                result
            })
        });
        Ok(Admission {
            base: "1".repeat(40).parse().unwrap(),
            base_tip: "1".repeat(40).parse().unwrap(),
            change_set: ChangeSet::Agent,
            head,
            work,
        })
    }
}

async fn act(
    conduct: Conduct,
    store: &dyn Store,
    id: &ScoreId,
    go: &Semaphore,
    cancel: CancellationToken,
) -> Result<(), Aborted> {
    let completion = Completion {
        words: WORDS,
        files: Vec::new(),
        mixed: Vec::new(),
    };
    match conduct {
        Conduct::WaitForCancel => {
            cancel.cancelled().await;
            Err(Aborted::new(AbortedCode::Internal, "the room was closed"))
        }
        Conduct::IgnoreCancel => {
            go.acquire().await.unwrap().forget();
            store.complete_score(id, clock::now(), &completion)?;
            Ok(())
        }
        Conduct::Complete => {
            tokio::select! {
                permit = go.acquire() => permit.unwrap().forget(),
                () = cancel.cancelled() => return Err(Aborted::new(AbortedCode::Internal, "closed")),
            }
            store.complete_score(id, clock::now(), &completion)?;
            Ok(())
        }
        Conduct::ReturnWithoutVerdict => Ok(()),
        Conduct::Fail => Err(Aborted::new(AbortedCode::EngineUnavailable, "gone")),
        Conduct::Panic => panic!("a bug in the pipeline"),
    }
}

struct Bench {
    queue: Queue,
    stage: Arc<Stage>,
}

fn limits() -> QueueLimits {
    QueueLimits {
        workers: 2,
        capacity: 100,
        running_per_token: 100,
        open_per_token: 100,
        hourly_per_token: 100,
        stall: Duration::from_secs(60),
    }
}

fn bench(limits: QueueLimits) -> Bench {
    let stage = Arc::new(Stage {
        store: Arc::new(MemoryStore::new()),
        admit: Arc::new(Semaphore::new(1000)),
        go: Arc::new(Semaphore::new(0)),
        order: Arc::default(),
        most: Arc::default(),
        now: Arc::default(),
    });
    let queue = Queue::start(stage.store.clone(), stage.clone(), limits, nobody());
    Bench { queue, stage }
}

fn request(token: u8, head: &str, request_id: &str) -> ScoreRequest {
    let caller = Caller {
        token: format!("{token:016x}").parse().unwrap(),
        role: Role::Agent,
        scope: None,
    };
    let raw = RawScoreRequest {
        repository: "demo".to_owned(),
        head: format!("{head:0<40}"),
        base: String::new(),
        request_id: request_id.to_owned(),
        fresh: false,
        proposed: false,
    };
    raw.check(&caller).unwrap()
}

impl Bench {
    async fn submit(&self, token: u8, head: &str) -> ScoreId {
        let record = self.queue.submit(request(token, head, "")).await.unwrap();
        record.asked.id
    }

    async fn refused(&self, token: u8, head: &str) -> RefusedCode {
        match self.queue.submit(request(token, head, "")).await {
            Err(NoVerdict::Refused(refused)) => refused.code,
            other => panic!("{other:?}"),
        }
    }

    fn state(&self, id: &ScoreId) -> ScoreState {
        self.stage.store.score(id).unwrap().unwrap().state
    }

    /// Waits for a state, woken by the feed alone.
    async fn until(&self, id: &ScoreId, wanted: impl Fn(&ScoreState) -> bool) -> ScoreState {
        let mut news = self.queue.subscribe(id);
        let wait = async {
            loop {
                let state = self.state(id);
                if wanted(&state) {
                    return state;
                }
                news.changed().await;
            }
        };
        let patience = Duration::from_secs(10);
        tokio::time::timeout(patience, wait).await.unwrap()
    }

    async fn end(&self, id: &ScoreId) -> ScoreState {
        self.until(id, |s| {
            matches!(s, ScoreState::Completed(_) | ScoreState::Aborted(_))
        })
        .await
    }

    async fn running(&self, id: &ScoreId) {
        self.until(id, |s| *s == ScoreState::Running).await;
    }

    async fn aborted_as(&self, id: &ScoreId) -> AbortedCode {
        let end = self.end(id).await;
        let ScoreState::Aborted(aborted) = end else {
            panic!("{end:?}")
        };
        aborted.code
    }
}

#[tokio::test]
async fn a_score_runs_and_its_events_are_stored_in_order() {
    let bench = bench(limits());
    bench.stage.go.add_permits(1);
    let id = bench.submit(1, "a").await;
    assert_eq!(bench.end(&id).await, ScoreState::Completed(WORDS));
    let events = bench.stage.store.events(&id, 0, 99).unwrap();
    let kinds: Vec<_> = events.into_iter().map(|e| e.kind).collect();
    assert_eq!(kinds.first(), Some(&EventKind::Queued { position: 1 }));
    assert_eq!(kinds.last(), Some(&EventKind::Completed { words: WORDS }));
}

#[tokio::test]
async fn whatever_the_work_does_the_score_ends() {
    let bench = bench(limits());
    for (head, code) in [
        ("b", AbortedCode::Internal),
        ("c", AbortedCode::EngineUnavailable),
        ("d", AbortedCode::Internal),
    ] {
        let id = bench.submit(1, head).await;
        assert_eq!(bench.aborted_as(&id).await, code, "{head}");
    }
    // And the workers are still there.
    bench.stage.go.add_permits(1);
    let id = bench.submit(1, "a").await;
    assert_eq!(bench.end(&id).await, ScoreState::Completed(WORDS));
}

#[tokio::test]
async fn a_refusal_makes_no_score_and_gives_its_place_back() {
    let bench = bench(QueueLimits {
        open_per_token: 1,
        ..limits()
    });
    for _ in 0..3 {
        assert_eq!(bench.refused(1, "0").await, RefusedCode::UnknownCommit);
    }
    bench.stage.go.add_permits(1);
    let id = bench.submit(1, "a").await;
    bench.end(&id).await;
}

#[tokio::test]
async fn a_stalled_score_is_given_up() {
    let bench = bench(QueueLimits {
        stall: Duration::from_millis(50),
        ..limits()
    });
    let id = bench.submit(1, "e").await;
    assert_eq!(bench.aborted_as(&id).await, AbortedCode::Deadline);
}

#[tokio::test]
async fn a_waiting_score_is_cancelled_at_once() {
    let bench = bench(QueueLimits {
        workers: 1,
        ..limits()
    });
    let first = bench.submit(1, "a").await;
    bench.running(&first).await;
    let (second, third) = (bench.submit(1, "a").await, bench.submit(1, "a").await);
    assert_eq!(bench.queue.position(&third), Some(2));
    bench.queue.cancel(&second).await.unwrap();
    assert_eq!(bench.aborted_as(&second).await, AbortedCode::Cancelled);
    assert_eq!(bench.queue.position(&third), Some(1));
    bench.stage.go.add_permits(2);
    bench.end(&third).await;
    assert_eq!(bench.stage.order.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_running_score_is_cancelled_within_three_seconds_even_if_it_does_not_listen() {
    let bench = bench(limits());
    for head in ["e", "f"] {
        let id = bench.submit(1, head).await;
        bench.running(&id).await;
        let asked = Instant::now();
        bench.queue.cancel(&id).await.unwrap();
        assert_eq!(bench.aborted_as(&id).await, AbortedCode::Cancelled);
        assert!(asked.elapsed() < Duration::from_secs(3), "{head}");
    }
    // The deaf one is let go at last: its completion changes nothing.
    bench.stage.go.add_permits(1);
    bench.queue.drain(Duration::from_secs(5)).await;
    assert_eq!(bench.stage.now.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_cancel_after_the_end_changes_nothing() {
    let bench = bench(limits());
    bench.stage.go.add_permits(1);
    let id = bench.submit(1, "a").await;
    let end = bench.end(&id).await;
    bench.queue.cancel(&id).await.unwrap();
    assert_eq!(bench.state(&id), end);
}

#[tokio::test]
async fn a_caller_that_goes_away_loses_nothing() {
    let bench = bench(limits());
    bench.stage.admit.forget_permits(1000);
    {
        let submission = bench.queue.submit(request(1, "a", "gone"));
        tokio::pin!(submission);
        let first_poll = futures::poll!(&mut submission);
        assert!(first_poll.is_pending());
    }
    bench.stage.admit.add_permits(2);
    bench.stage.go.add_permits(1);
    // The same request id finds it, or makes it if it was first: either way there is one, and it ends.
    let again = bench.queue.submit(request(1, "a", "gone")).await.unwrap();
    bench.end(&again.asked.id).await;
    bench.queue.drain(Duration::from_secs(5)).await;
    assert_eq!(bench.stage.order.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_request_id_is_one_score_and_the_same_commits_may_be_two() {
    let bench = bench(limits());
    bench.stage.go.add_permits(9);
    let (one, two) = tokio::join!(
        bench.queue.submit(request(1, "a", "same")),
        bench.queue.submit(request(1, "a", "same"))
    );
    let id = one.unwrap().asked.id;
    assert_eq!(id, two.unwrap().asked.id);
    bench.end(&id).await;
    let later = bench.queue.submit(request(1, "a", "same")).await.unwrap();
    assert_eq!(later.asked.id, id);
    assert_eq!(later.state, ScoreState::Completed(WORDS));

    let other = bench.queue.submit(request(1, "ab", "same")).await;
    assert!(
        matches!(&other, Err(NoVerdict::Refused(r)) if r.code == RefusedCode::InvalidArgument),
        "{other:?}"
    );
    let (third, fourth) = tokio::join!(bench.submit(1, "a"), bench.submit(1, "a"));
    assert_ne!(third, fourth);
    assert_eq!(bench.end(&third).await, bench.end(&fourth).await);
}

#[tokio::test]
async fn the_queue_is_bounded_and_tokens_are_served_in_turn() {
    let bench = bench(QueueLimits {
        workers: 1,
        capacity: 4,
        open_per_token: 4,
        ..limits()
    });
    let first = bench.submit(1, "a").await;
    bench.running(&first).await;
    for head in ["a1", "a2", "a3"] {
        bench.submit(1, head).await;
    }
    assert_eq!(bench.refused(1, "a4").await, RefusedCode::Quota);
    let last = bench.submit(2, "a9").await;
    assert_eq!(bench.queue.position(&last), Some(2));
    assert_eq!(bench.refused(3, "a5").await, RefusedCode::QueueFull);
    bench.stage.go.add_permits(5);
    bench.end(&last).await;
    bench.queue.drain(Duration::from_secs(5)).await;
    let order: Vec<_> = bench.stage.order.lock().unwrap().clone();
    let heads: Vec<_> = order.iter().map(|h| &h.as_str()[..2]).collect();
    assert_eq!(heads[..3], ["a0", "a1", "a9"]);
    assert_eq!(bench.stage.most.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn the_hour_is_counted_without_our_own_trouble() {
    let bench = bench(QueueLimits {
        hourly_per_token: 2,
        ..limits()
    });
    for _ in 0..4 {
        let id = bench.submit(1, "c").await;
        bench.end(&id).await;
    }
    let cancelled = bench.submit(1, "e").await;
    bench.running(&cancelled).await;
    bench.queue.cancel(&cancelled).await.unwrap();
    bench.end(&cancelled).await;
    bench.submit(1, "e").await;
    assert_eq!(bench.refused(1, "a").await, RefusedCode::Quota);
    bench.submit(2, "e").await;
}

#[tokio::test]
async fn a_drain_lets_the_running_end_and_aborts_the_rest() {
    let bench = bench(QueueLimits {
        workers: 2,
        ..limits()
    });
    let (done, stuck) = (bench.submit(1, "a").await, bench.submit(1, "e").await);
    bench.running(&done).await;
    bench.running(&stuck).await;
    let waiting = bench.submit(1, "a").await;
    let release = async {
        bench.aborted_as(&waiting).await;
        bench.stage.go.add_permits(1);
    };
    tokio::join!(bench.queue.drain(Duration::from_millis(300)), release);
    assert_eq!(bench.state(&done), ScoreState::Completed(WORDS));
    for id in [&stuck, &waiting] {
        assert_eq!(bench.aborted_as(id).await, AbortedCode::ServerRestarted);
    }
    let late = bench.queue.submit(request(1, "a", "")).await;
    assert!(
        matches!(&late, Err(NoVerdict::Aborted(a)) if a.code == AbortedCode::ServerRestarted),
        "{late:?}"
    );
}

#[tokio::test]
async fn an_end_that_the_disk_refuses_is_stored_later() {
    let bench = bench(limits());
    let id = bench.submit(1, "a").await;
    bench.running(&id).await;
    bench.stage.store.fill(Disk::Full);
    bench.stage.go.add_permits(1);
    let full = bench.queue.submit(request(1, "a", "")).await;
    assert!(
        matches!(&full, Err(NoVerdict::Aborted(a)) if a.code == AbortedCode::DiskFull),
        "{full:?}"
    );
    while bench.stage.now.load(Ordering::SeqCst) > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(bench.state(&id), ScoreState::Running);
    bench.stage.store.fill(Disk::Roomy);
    let code = bench.aborted_as(&id).await;
    assert_eq!(code, AbortedCode::DiskFull);
}
