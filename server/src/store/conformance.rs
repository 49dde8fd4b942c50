//! One suite that every store passes, and what SQLite promises beyond it.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first surprise"
)]

mod deliveries;
mod flaky;

use super::*;
use bytes::Bytes;
use tribunal_core::id::{RequestId, Seed};
use tribunal_core::judge::Word;
use tribunal_core::keys::PublicKey;
use tribunal_core::outcome::{AttemptEnd, End, Lane, Pins};
use tribunal_core::plan::ChangeSet;
use tribunal_core::request::{Freshness, Role};

const T: UnixTime = UnixTime(1_790_000_000);

fn at(seconds: i64) -> UnixTime {
    UnixTime(T.0 + seconds)
}

fn token_id(n: u8) -> TokenId {
    format!("{n:016x}").parse().unwrap()
}

fn score_id(n: u8) -> ScoreId {
    format!("{n:032x}").parse().unwrap()
}

fn new_score(n: u8, token: u8, request: &str) -> NewScore {
    NewScore {
        id: score_id(n),
        repository: "demo".parse().unwrap(),
        head: format!("{n:040x}").parse().unwrap(),
        base: format!("{:040x}", 0xba5e).parse().unwrap(),
        base_tip: format!("{:040x}", 0xba5e).parse().unwrap(),
        change_set: ChangeSet::Agent,
        request_id: request.parse::<RequestId>().unwrap(),
        token: token_id(token),
        role: Role::Agent,
        freshness: Freshness::Stored,
        created: at(i64::from(n)),
    }
}

fn make(store: &dyn Store, n: u8, token: u8) -> ScoreId {
    match store
        .create_score(&new_score(n, token, &format!("r{n}")))
        .unwrap()
    {
        Created::New(record) => record.asked.id,
        Created::Before(record) => panic!("made before: {record:?}"),
    }
}

const WORDS: Words = Words {
    src_score: Word::Fail,
    oracle_integrity: Word::Pass,
    flake_lease: Word::NotRun,
};

fn completion() -> Completion {
    let file = |name: &str, audience, content: &'static str| StoredFile {
        name: name.to_owned(),
        audience,
        content: Bytes::from_static(content.as_bytes()),
    };
    Completion {
        words: WORDS,
        files: vec![
            file("src_score.txt", Audience::Everyone, "FAIL\n"),
            file("report.json", Audience::Agent, "{}"),
            file("report.json", Audience::Reader, "{\"cases\":[]}"),
            file(
                "report.json",
                Audience::Operator,
                "{\"cases\":[],\"held\":1}",
            ),
        ],
        mixed: Vec::new(),
    }
}

fn facts(index: u32, lane: Lane) -> AttemptFacts {
    AttemptFacts {
        index,
        lane,
        pins: Pins {
            seed: Seed(7),
            hash_seed: 0,
            clock: "2026-09-12T00:00:00Z".to_owned(),
            source_date_epoch: 1,
        },
        start: 0,
        collected: Vec::new(),
        collection_errors: Vec::new(),
        silences: Vec::new(),
        cases: Vec::new(),
        tamper: Vec::new(),
        canaries: tribunal_core::outcome::Canaries::default(),
        end: AttemptEnd {
            end: End::Finished,
            exit_code: Some(0),
            signal: None,
            running: Some("t.py::test_\u{1f600}[a\nb]".parse().unwrap()),
            phase: None,
            wall_ms: 1,
            cpu_ms: 1,
            run_delay_ms: 0,
            oom_kills: 0,
            output_bytes: 0,
            note: None,
            output: String::new(),
        },
    }
}

fn aborted(code: AbortedCode) -> Aborted {
    Aborted::new(code, "what happened")
}

fn queued() -> EventKind {
    EventKind::Queued { position: 1 }
}

fn preparing() -> EventKind {
    EventKind::Preparing {
        stage: "reading trees".to_owned(),
    }
}

fn tokens_open_until_revoked(store: &dyn Store) {
    let token = TokenRecord {
        id: token_id(1),
        secret_hash: [0xfe; 32],
        role: Role::Maintainer,
        scope: Some("demo".parse().unwrap()),
        created: T,
        expires: Some(at(60)),
        revoked: None,
    };
    store.add_token(&token).unwrap();
    assert_eq!(store.token(&token_id(1)).unwrap().unwrap(), token);
    assert!(store.token(&token_id(2)).unwrap().is_none());
    assert!(matches!(
        store.add_token(&token),
        Err(StoreError::Exists(_))
    ));
    store.revoke_token(&token_id(1), at(5)).unwrap();
    store.revoke_token(&token_id(1), at(9)).unwrap();
    let revoked = store.token(&token_id(1)).unwrap().unwrap().revoked;
    assert_eq!(revoked, Some(at(5)), "the first date stays");
    assert!(matches!(
        store.revoke_token(&token_id(2), T),
        Err(StoreError::Missing(_))
    ));
    let bare = TokenRecord {
        id: token_id(3),
        scope: None,
        expires: None,
        role: Role::Operator,
        ..token
    };
    store.add_token(&bare).unwrap();
    let ids: Vec<_> = store.tokens().unwrap().into_iter().map(|t| t.id).collect();
    assert_eq!(ids, [token_id(1), token_id(3)]);
}

fn sealed_trees_are_whole_or_absent(store: &dyn Store) {
    let (a, b) = (Digest::of(b"a"), Digest::of(b"b"));
    assert_eq!(store.is_sealed(&a).unwrap(), Sealed::Absent);
    store.mark_sealed(&a, at(1)).unwrap();
    store.mark_sealed(&b, at(2)).unwrap();
    store.mark_sealed(&a, at(3)).unwrap();
    store.mark_sealed(&a, at(0)).unwrap();
    assert_eq!(store.is_sealed(&a).unwrap(), Sealed::Complete);
    assert_eq!(
        store.sealed_trees().unwrap(),
        [(b.clone(), at(2)), (a.clone(), at(3))]
    );
    store.forget_sealed(&a).unwrap();
    store.forget_sealed(&a).unwrap();
    assert_eq!(store.is_sealed(&a).unwrap(), Sealed::Absent);
}

fn a_request_id_makes_one_score_per_token(store: &dyn Store) {
    let first = new_score(1, 1, "same");
    let Created::New(record) = store.create_score(&first).unwrap() else {
        panic!("new")
    };
    assert_eq!(record.asked, first);
    assert_eq!(record.state, ScoreState::Queued);
    let again = store.create_score(&new_score(2, 1, "same")).unwrap();
    assert_eq!(again, Created::Before(record.clone()));
    assert!(store.score(&score_id(2)).unwrap().is_none());
    let other_token = store.create_score(&new_score(3, 2, "same")).unwrap();
    assert!(matches!(other_token, Created::New(_)));
    assert_eq!(
        store
            .score_of_request(&token_id(1), &"same".parse().unwrap())
            .unwrap(),
        Some(record)
    );
}

fn a_score_ends_once(store: &dyn Store) {
    let id = make(store, 1, 1);
    store.start_score(&id, at(2)).unwrap();
    let running = store.score(&id).unwrap().unwrap();
    assert_eq!(
        (running.state, running.started),
        (ScoreState::Running, Some(at(2)))
    );
    assert!(store.files(&id, Audience::Operator).unwrap().is_empty());
    store.complete_score(&id, at(3), &completion()).unwrap();
    let done = store.score(&id).unwrap().unwrap();
    assert_eq!(done.state, ScoreState::Completed(WORDS));
    assert_eq!(done.ended, Some(at(3)));

    let ended = |r: Result<(), StoreError>| assert!(matches!(r, Err(StoreError::Ended(_))));
    ended(store.complete_score(&id, at(4), &completion()));
    ended(store.abort_score(&id, at(4), &aborted(AbortedCode::Cancelled)));
    ended(store.start_score(&id, at(4)));
    ended(store.append_events(&id, at(4), &[queued()]).map(drop));
    assert_eq!(store.score(&id).unwrap().unwrap(), done);

    let other = make(store, 2, 1);
    store
        .abort_score(&other, at(5), &aborted(AbortedCode::EngineUnavailable))
        .unwrap();
    assert_eq!(
        store.score(&other).unwrap().unwrap().state,
        ScoreState::Aborted(aborted(AbortedCode::EngineUnavailable))
    );
    ended(store.complete_score(&other, at(6), &completion()));
    assert!(store.files(&other, Audience::Operator).unwrap().is_empty());
    assert!(matches!(
        store.start_score(&score_id(99), T),
        Err(StoreError::Missing(_))
    ));
}

fn events_replay_from_any_number(store: &dyn Store) {
    let id = make(store, 1, 1);
    let stored = store
        .append_events(&id, at(1), &[queued(), preparing()])
        .unwrap();
    assert_eq!(
        stored.iter().map(|e| e.sequence).collect::<Vec<_>>(),
        [1, 2]
    );
    store
        .append_events(&id, at(2), &[EventKind::Judged { words: WORDS }])
        .unwrap();
    store.complete_score(&id, at(3), &completion()).unwrap();
    let all = store.events(&id, 0, 100).unwrap();
    assert_eq!(all.len(), 4);
    assert_eq!(all[..2], stored[..]);
    assert_eq!(all[3].kind, EventKind::Completed { words: WORDS });
    assert!(all[3].kind.is_last());
    for after in 0..=5_u64 {
        let rest = store.events(&id, after, 100).unwrap();
        assert_eq!(rest, all[usize::try_from(after).unwrap().min(4)..]);
    }
    assert_eq!(store.events(&id, 1, 2).unwrap(), all[1..3]);
    assert!(store.events(&id, u64::MAX, 9).unwrap().is_empty());
    assert!(store.events(&score_id(9), 0, 9).unwrap().is_empty());
}

fn files_go_to_their_audience(store: &dyn Store) {
    let id = make(store, 1, 1);
    store.complete_score(&id, at(1), &completion()).unwrap();
    for (role, report) in [
        (Role::Agent, "{}"),
        (Role::Ci, "{\"cases\":[]}"),
        (Role::Maintainer, "{\"cases\":[]}"),
        (Role::Operator, "{\"cases\":[],\"held\":1}"),
    ] {
        let files = store.files(&id, Audience::of(role)).unwrap();
        let seen: Vec<_> = files
            .iter()
            .map(|f| (f.name.as_str(), std::str::from_utf8(&f.content).unwrap()))
            .collect();
        assert_eq!(seen, [("report.json", report), ("src_score.txt", "FAIL\n")]);
    }
}

fn our_own_trouble_costs_no_quota(store: &dyn Store) {
    let (a, b, c, d) = (
        make(store, 1, 1),
        make(store, 2, 1),
        make(store, 3, 1),
        make(store, 4, 1),
    );
    make(store, 5, 2);
    store
        .abort_score(&a, at(9), &aborted(AbortedCode::DiskFull))
        .unwrap();
    store
        .abort_score(&b, at(9), &aborted(AbortedCode::Cancelled))
        .unwrap();
    store.complete_score(&c, at(9), &completion()).unwrap();
    store.start_score(&d, at(9)).unwrap();
    assert_eq!(store.charged(&token_id(1), T).unwrap(), 3);
    assert_eq!(store.charged(&token_id(1), at(3)).unwrap(), 2);
    assert_eq!(store.charged(&token_id(3), T).unwrap(), 0);
}

fn lists_are_newest_first_and_paged(store: &dyn Store) {
    for n in 1..=5 {
        make(store, n, 1 + n % 2);
    }
    store
        .complete_score(&score_id(2), at(9), &completion())
        .unwrap();
    let filter = ScoreFilter {
        repository: "demo".parse().unwrap(),
        token: None,
        head: None,
        base: None,
        state: None,
        before: None,
        limit: 2,
    };
    let ids = |f: &ScoreFilter| {
        store
            .scores(f)
            .unwrap()
            .into_iter()
            .map(|r| r.asked.id)
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(&filter), [score_id(5), score_id(4)]);
    let last = store.scores(&filter).unwrap()[1].number;
    let next = ScoreFilter {
        before: Some(last),
        ..filter.clone()
    };
    assert_eq!(ids(&next), [score_id(3), score_id(2)]);
    let of_token = ScoreFilter {
        token: Some(token_id(2)),
        limit: 9,
        ..filter.clone()
    };
    assert_eq!(ids(&of_token), [score_id(5), score_id(3), score_id(1)]);
    let of_head = ScoreFilter {
        head: Some(format!("{:040x}", 4).parse().unwrap()),
        ..filter.clone()
    };
    assert_eq!(ids(&of_head), [score_id(4)]);
    let completed = ScoreFilter {
        state: Some(StateName::Completed),
        ..filter.clone()
    };
    assert_eq!(ids(&completed), [score_id(2)]);
    let elsewhere = ScoreFilter {
        repository: "other".parse().unwrap(),
        ..filter
    };
    assert!(ids(&elsewhere).is_empty());
}

fn a_restart_aborts_what_was_open(store: &dyn Store) {
    let (queued_id, running, done) = (make(store, 1, 1), make(store, 2, 1), make(store, 3, 1));
    store
        .append_events(&running, at(1), &[preparing()])
        .unwrap();
    store.start_score(&running, at(1)).unwrap();
    store.complete_score(&done, at(2), &completion()).unwrap();
    let restarted = aborted(AbortedCode::ServerRestarted);
    assert_eq!(
        store.abort_unfinished(at(3), &restarted).unwrap(),
        [queued_id.clone(), running.clone()]
    );
    for id in [&queued_id, &running] {
        let record = store.score(id).unwrap().unwrap();
        assert_eq!(record.state, ScoreState::Aborted(restarted.clone()));
        let events = store.events(id, 0, 9).unwrap();
        assert!(events.last().unwrap().kind.is_last());
    }
    assert_eq!(
        store.score(&done).unwrap().unwrap().state,
        ScoreState::Completed(WORDS)
    );
    assert!(
        store
            .abort_unfinished(at(4), &restarted)
            .unwrap()
            .is_empty()
    );
}

fn attempts_are_only_added(store: &dyn Store) {
    let key = AttemptKey {
        content: Digest::of(b"overlay"),
        lane: Lane::Property,
    };
    let side = AttemptKey {
        lane: Lane::LeaseSide,
        ..key.clone()
    };
    let (first, second) = (make(store, 1, 1), make(store, 2, 1));
    for index in 0..3 {
        store
            .append_attempt(&key, &first, at(1), &facts(index, Lane::Property))
            .unwrap();
    }
    assert!(matches!(
        store.append_attempt(&key, &first, at(2), &facts(1, Lane::Property)),
        Err(StoreError::Exists(_))
    ));
    store
        .append_attempt(&key, &second, at(2), &facts(0, Lane::Property))
        .unwrap();
    store
        .append_attempt(&side, &second, at(2), &facts(0, Lane::LeaseSide))
        .unwrap();
    let stored = store.attempts(&key).unwrap();
    let seen: Vec<_> = stored.iter().map(|a| (&a.run, a.facts.index)).collect();
    assert_eq!(seen, [(&first, 0), (&first, 1), (&first, 2), (&second, 0)]);
    assert_eq!(stored[0].facts, facts(0, Lane::Property));
    assert_eq!(store.attempts(&side).unwrap().len(), 1);
}

fn the_first_collection_stays(store: &dyn Store) {
    let key = Digest::of(b"base");
    assert!(store.collected(&key).unwrap().is_none());
    store
        .keep_collected(&key, T, &Collected("[1]".to_owned()))
        .unwrap();
    store
        .keep_collected(&key, T, &Collected("[2]".to_owned()))
        .unwrap();
    assert_eq!(
        store.collected(&key).unwrap(),
        Some(Collected("[1]".to_owned()))
    );
}

fn keys_keep_their_dates(store: &dyn Store) {
    let key = |n: u8| KeyRecord {
        key: PublicKey::from_bytes(
            ed25519_dalek::SigningKey::from_bytes(&[n; 32])
                .verifying_key()
                .as_bytes(),
        )
        .unwrap(),
        valid_after: Some(at(i64::from(n))),
        valid_before: None,
        revoked_since: None,
    };
    let (first, second, unknown) = (key(1), key(2), key(3));
    store.add_key(&first).unwrap();
    store.add_key(&second).unwrap();
    assert!(matches!(store.add_key(&first), Err(StoreError::Exists(_))));
    let id = first.key.id();
    store.retire_key(id, at(5)).unwrap();
    store.retire_key(id, at(9)).unwrap();
    store.revoke_key(id, at(7)).unwrap();
    store.revoke_key(id, at(4)).unwrap();
    store.revoke_key(id, at(8)).unwrap();
    let expected = KeyRecord {
        valid_before: Some(at(5)),
        revoked_since: Some(at(4)),
        ..first
    };
    assert_eq!(store.keys().unwrap(), [second, expected]);
    assert!(matches!(
        store.retire_key(unknown.key.id(), T),
        Err(StoreError::Missing(_))
    ));
}

fn meta_is_overwritten(store: &dyn Store) {
    assert!(store.meta("instance").unwrap().is_none());
    store.set_meta("instance", "a").unwrap();
    store.set_meta("instance", "b").unwrap();
    assert_eq!(store.meta("instance").unwrap().as_deref(), Some("b"));
}

fn held_out_failures_are_counted_by_base_case_and_overlay(store: &dyn Store) {
    let [base, other, one, two] = ["base", "other", "one", "two"].map(|t| Digest::of(t.as_bytes()));
    let (a, b) = ("t.py::test_a".to_owned(), "t.py::test_b['x']".to_owned());
    let fail = |overlay: &Digest, cases: &[&String], when| {
        let cases: Vec<String> = cases.iter().map(|case| (*case).clone()).collect();
        store
            .held_out_failed(&base, overlay, &cases, at(when))
            .unwrap();
    };
    let seen = || {
        let mut rows = store.held_out_failures(&base).unwrap();
        rows.sort();
        rows
    };
    fail(&one, &[&a, &b], 10);
    fail(&one, &[&a, &b], 90);
    fail(&two, &[&a], 90);
    let mut all = vec![
        (a.clone(), one.clone()),
        (a.clone(), two.clone()),
        (b, one.clone()),
    ];
    all.sort();
    assert_eq!(seen(), all);
    assert!(store.held_out_failures(&other).unwrap().is_empty());
    // What was cleared counts no more, and only for its overlay.
    fail(&one, &[&a], 90);
    assert_eq!(seen().len(), 2);
    fail(&two, &[], 90);
    assert_eq!(seen(), [(a, one)]);
    // The first date stays, and age goes by it.
    store.gc(at(50)).unwrap();
    assert!(seen().is_empty());
}

fn gc_takes_what_is_old_and_ended(store: &dyn Store) {
    let (old, open, young) = (make(store, 1, 1), make(store, 2, 1), make(store, 3, 1));
    store.complete_score(&old, at(10), &completion()).unwrap();
    store.complete_score(&young, at(90), &completion()).unwrap();
    let key = AttemptKey {
        content: Digest::of(b"overlay"),
        lane: Lane::Property,
    };
    store
        .append_attempt(&key, &old, at(10), &facts(0, Lane::Property))
        .unwrap();
    store
        .append_attempt(&key, &young, at(90), &facts(0, Lane::Property))
        .unwrap();
    store
        .keep_collected(&Digest::of(b"k"), at(10), &Collected("[]".to_owned()))
        .unwrap();
    let collection = store.gc(at(50)).unwrap();
    assert_eq!(
        (
            collection.scores,
            collection.attempts,
            collection.collections
        ),
        (1, 1, 1)
    );
    assert!(store.score(&old).unwrap().is_none());
    assert!(store.events(&old, 0, 9).unwrap().is_empty());
    assert!(store.score(&open).unwrap().is_some());
    assert_eq!(store.files(&young, Audience::Agent).unwrap().len(), 2);
    assert_eq!(store.attempts(&key).unwrap().len(), 1);
}

type Check = fn(&dyn Store);
const SUITE: &[Check] = &[
    tokens_open_until_revoked,
    sealed_trees_are_whole_or_absent,
    a_request_id_makes_one_score_per_token,
    a_score_ends_once,
    events_replay_from_any_number,
    files_go_to_their_audience,
    our_own_trouble_costs_no_quota,
    lists_are_newest_first_and_paged,
    a_restart_aborts_what_was_open,
    attempts_are_only_added,
    the_first_collection_stays,
    keys_keep_their_dates,
    meta_is_overwritten,
    held_out_failures_are_counted_by_base_case_and_overlay,
    gc_takes_what_is_old_and_ended,
    deliveries::a_start_is_told_before_its_end_or_not_at_all,
    deliveries::ends_are_told_once_and_messages_wait_until_they_are_over,
    flaky::mixed_cases_add_up_by_case_digest,
    flaky::an_agent_sees_its_own_as_it_may_hear_them,
    flaky::mixed_cases_come_in_pages_that_hold_each_once,
];

#[test]
fn the_memory_store_conforms() {
    for check in SUITE {
        check(&MemoryStore::new());
    }
}

#[test]
fn the_sqlite_store_conforms() {
    for check in SUITE {
        let dir = tempfile::tempdir().unwrap();
        check(&SqliteStore::open(dir.path()).unwrap());
    }
}

#[test]
fn what_sqlite_wrote_another_process_reads() {
    let dir = tempfile::tempdir().unwrap();
    let writer = SqliteStore::open(dir.path()).unwrap();
    let other = SqliteStore::open(dir.path()).unwrap();
    let id = make(&writer, 1, 1);
    writer.complete_score(&id, at(1), &completion()).unwrap();
    assert_eq!(other.score(&id).unwrap(), writer.score(&id).unwrap());
    assert_eq!(other.files(&id, Audience::Agent).unwrap().len(), 2);
    other.set_meta("a", "b").unwrap();
    assert_eq!(writer.meta("a").unwrap().as_deref(), Some("b"));
}

#[test]
fn a_newer_schema_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    SqliteStore::open(dir.path())
        .unwrap()
        .raw(|c| c.pragma_update(None, "user_version", 4711))
        .unwrap();
    let Err(StoreError::Newer { found, .. }) = SqliteStore::open(dir.path()) else {
        panic!("a newer schema was opened")
    };
    assert_eq!(found, 4711);
}

#[test]
fn the_database_itself_refuses_to_rewrite_history() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    let id = make(&store, 1, 1);
    let key = AttemptKey {
        content: Digest::of(b"overlay"),
        lane: Lane::Property,
    };
    store
        .append_attempt(&key, &id, T, &facts(0, Lane::Property))
        .unwrap();
    store.complete_score(&id, at(1), &completion()).unwrap();
    for sql in [
        "UPDATE attempts SET facts = '{}'",
        "UPDATE events SET kind = '{}'",
        "UPDATE scores SET outcome = '{}'",
    ] {
        assert!(store.raw(|c| c.execute(sql, [])).is_err(), "{sql}");
    }
}

#[test]
fn a_full_disk_is_told_as_such_and_leaves_nothing_half_done() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    let id = make(&store, 1, 1);
    store.limit_pages(1).unwrap();
    let events: Vec<_> = (0..20_000).map(|_| preparing()).collect();
    let full = store.append_events(&id, at(1), &events);
    assert!(matches!(full, Err(StoreError::DiskFull)), "{full:?}");
    assert_eq!(
        Aborted::from(StoreError::DiskFull).code,
        AbortedCode::DiskFull
    );
    assert!(store.events(&id, 0, 9).unwrap().is_empty());
    store.limit_pages(1_000_000).unwrap();
    store.append_events(&id, at(2), &[queued()]).unwrap();
    assert_eq!(store.events(&id, 0, 9).unwrap().len(), 1);
}

#[test]
fn a_copy_is_of_one_moment_and_opens() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&dir.path().join("data")).unwrap();
    let id = make(&store, 1, 1);
    let copy = dir.path().join("copy");
    std::fs::create_dir(&copy).unwrap();
    store.copy_to(&copy.join("tribunal.db")).unwrap();
    make(&store, 2, 1);
    let copied = SqliteStore::open(&copy).unwrap();
    assert_eq!(copied.score(&id).unwrap(), store.score(&id).unwrap());
    assert!(copied.score(&score_id(2)).unwrap().is_none());
}

#[test]
fn writers_of_several_threads_take_turns() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    let id = make(&store, 1, 1);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let own = SqliteStore::open(dir.path()).unwrap();
                for _ in 0..10 {
                    own.append_events(&id, at(1), &[queued()]).unwrap();
                    store.append_events(&id, at(1), &[preparing()]).unwrap();
                }
            });
        }
    });
    let sequence: Vec<_> = store
        .events(&id, 0, 1000)
        .unwrap()
        .iter()
        .map(|e| e.sequence)
        .collect();
    assert_eq!(sequence, (1..=80).collect::<Vec<_>>());
}
