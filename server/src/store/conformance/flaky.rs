//! Mixed cases over time: counted once per content, seen by whom they may be, gone with their scores.

use super::*;
use tribunal_core::id::NodeId;
use tribunal_core::judge::{Moved, Owed, Source};

fn blame(source: Source) -> Blame {
    Blame {
        source: Some(source),
        moved: None,
        owed: Owed::Neither,
    }
}

/// A sighting of one case in one content.
fn mixed(node: &str, digest: &str, content: &str, attempts: u32, failures: u32) -> MixedCase {
    let node: NodeId = node.parse().unwrap();
    MixedCase {
        evidence: AttemptKey {
            content: Digest::of(content.as_bytes()),
            lane: Lane::Property,
        },
        for_agent: Some(node.without_parameters()),
        node,
        digest: digest.to_owned(),
        attempts,
        failures,
        blame: blame(Source::Threads),
    }
}

fn complete(store: &dyn Store, n: u8, token: u8, mixed: Vec<MixedCase>) -> ScoreId {
    let id = make(store, n, token);
    let completion = Completion {
        mixed,
        ..completion()
    };
    store
        .complete_score(&id, at(i64::from(n) * 10), &completion)
        .unwrap();
    id
}

fn whole() -> FlakyFilter {
    FlakyFilter {
        repository: "demo".parse().unwrap(),
        sight: Sight::Whole,
        before: None,
        limit: 10,
    }
}

fn of_agent(token: u8) -> FlakyFilter {
    FlakyFilter {
        sight: Sight::Agent(token_id(token)),
        ..whole()
    }
}

/// Node, digest, failures, attempts, first and last as seconds after T.
type Row = (String, String, u64, u64, i64, i64);

fn rows(store: &dyn Store, filter: &FlakyFilter) -> Vec<Row> {
    let cases = store.flaky_cases(filter).unwrap();
    let seconds = |time: UnixTime| time.0 - T.0;
    cases
        .iter()
        .map(|case| {
            (
                case.node.to_string(),
                case.digest.clone(),
                case.failures,
                case.attempts,
                seconds(case.first),
                seconds(case.last),
            )
        })
        .collect()
}

fn row(node: &str, digest: &str, counts: (u64, u64), span: (i64, i64)) -> Row {
    let (failures, attempts) = counts;
    (
        node.into(),
        digest.into(),
        failures,
        attempts,
        span.0,
        span.1,
    )
}

const A: &str = "t.py::test_a";
const B: &str = "t.py::test_b[x]";
const C: &str = "t.py::test_b[y]";

pub(super) fn mixed_cases_add_up_by_case_digest(store: &dyn Store) {
    let one = complete(store, 1, 1, vec![mixed(A, "d1", "o1", 7, 3)]);
    // The same content again, with the attempts from before and seven more.
    let two = complete(store, 2, 1, vec![mixed(A, "d1", "o1", 14, 5)]);
    let last = MixedCase {
        blame: blame(Source::Sleep),
        ..mixed(A, "d1", "o2", 7, 1)
    };
    let three = complete(store, 3, 2, vec![mixed(B, "", "o2", 7, 2), last]);
    complete(store, 4, 1, vec![mixed(A, "d2", "o3", 7, 7)]);
    assert_eq!(
        rows(store, &whole()),
        [
            row(A, "d2", (7, 7), (40, 40)),
            row(A, "d1", (6, 21), (10, 30)),
            row(B, "", (2, 7), (30, 30)),
        ]
    );
    let cases = store.flaky_cases(&whole()).unwrap();
    assert_eq!(cases[1].scores, [three, two, one], "the newest first");
    assert_eq!(cases[1].score_count, 3);
    assert_eq!(cases[1].blame, blame(Source::Sleep), "the last word counts");
    assert_eq!(cases[1].lane, Lane::Property);
    let elsewhere = FlakyFilter {
        repository: "other".parse().unwrap(),
        ..whole()
    };
    assert!(rows(store, &elsewhere).is_empty());
    // What is old goes with its score, and what it counted with it.
    store.gc(at(25)).unwrap();
    let d1 = row(A, "d1", (1, 7), (30, 30));
    assert_eq!(rows(store, &whole())[1], d1);
}

pub(super) fn an_agent_sees_its_own_as_it_may_hear_them(store: &dyn Store) {
    let silent = MixedCase {
        for_agent: None,
        ..mixed(A, "d1", "o1", 7, 3)
    };
    let both = vec![
        silent,
        mixed(B, "d2", "o1", 7, 2),
        mixed(C, "d2", "o1", 7, 1),
    ];
    let own = complete(store, 1, 1, both);
    complete(store, 2, 2, vec![mixed(C, "d2", "o2", 7, 4)]);
    let name = "t.py::test_b";
    assert_eq!(
        rows(store, &of_agent(1)),
        [row(name, "d2", (3, 14), (10, 10))],
        "two cases of one function, and nothing of the other token"
    );
    assert_eq!(store.flaky_cases(&of_agent(1)).unwrap()[0].scores, [own]);
    assert_eq!(
        rows(store, &of_agent(2)),
        [row(name, "d2", (4, 7), (20, 20))]
    );
    assert!(rows(store, &of_agent(3)).is_empty());
    assert_eq!(rows(store, &whole()).len(), 3);
}

pub(super) fn mixed_cases_come_in_pages_that_hold_each_once(store: &dyn Store) {
    for n in 1..=3 {
        let cases = (0..3).map(|k| mixed(&format!("t.py::test_{k}"), "d", "o", 7, 1));
        complete(store, n, 1, cases.collect());
    }
    let many = u8::try_from(FLAKY_SCORES).unwrap() + 5;
    for n in 10..10 + many {
        complete(store, n, 1, vec![mixed(A, "d", &format!("o{n}"), 1, 1)]);
    }
    let (mut nodes, mut before) = (Vec::new(), None);
    loop {
        let page = store
            .flaky_cases(&FlakyFilter {
                before,
                limit: 1,
                ..whole()
            })
            .unwrap();
        let Some(case) = page.first() else { break };
        assert_eq!(page.len(), 1);
        before = Some(case.number);
        nodes.push(case.node.to_string());
    }
    assert_eq!(
        nodes,
        [A, "t.py::test_2", "t.py::test_1", "t.py::test_0"],
        "what was seen last comes first"
    );
    let cases = store.flaky_cases(&whole()).unwrap();
    assert_eq!(cases[0].scores.len(), FLAKY_SCORES);
    assert_eq!(cases[0].score_count, u64::from(many));
    let moved = Blame {
        source: None,
        moved: Some(Moved::Order),
        owed: Owed::Property,
    };
    let merge = MixedCase {
        evidence: AttemptKey {
            content: Digest::of(b"o"),
            lane: Lane::Merge,
        },
        blame: moved,
        ..mixed(A, "d", "o", 2, 1)
    };
    complete(store, 99, 1, vec![merge]);
    let cases = store.flaky_cases(&whole()).unwrap();
    let newest = (&cases[0].lane, cases[0].attempts, cases[0].blame);
    assert_eq!(newest, (&Lane::Merge, 2, moved), "a lane of its own");
    assert_eq!(cases[1].lane, Lane::Property);
}

#[test]
fn an_older_database_gets_the_tables() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    let id = make(&store, 1, 1);
    store.complete_score(&id, at(1), &completion()).unwrap();
    store.raw(|c| {
        let younger = "DROP TABLE mixed_cases; DROP TABLE untold; DROP TABLE deliveries;";
        c.execute_batch(&format!("{younger} PRAGMA user_version = 2;"))
            .unwrap();
    });
    drop(store);
    let store = SqliteStore::open(dir.path()).unwrap();
    assert!(rows(&store, &whole()).is_empty());
    // Nobody is told of what ended before there was anybody to tell.
    assert!(store.untold(9).unwrap().is_empty());
    complete(&store, 2, 1, vec![mixed(A, "d", "o", 7, 1)]);
    assert_eq!(rows(&store, &whole()), [row(A, "d", (1, 7), (20, 20))]);
    let rewrite = "UPDATE mixed_cases SET failures = 1";
    assert!(store.raw(|c| c.execute(rewrite, [])).is_err());
}
