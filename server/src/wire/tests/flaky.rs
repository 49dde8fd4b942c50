//! ListFlakyCases through the wire: pages, what is told of a case, and that an agent hears of its own alone.

use super::*;
use crate::store::{AttemptKey, Blame, Created, MixedCase, NewScore, Store};
use tribunal_core::id::{Digest, ScoreId, UnixTime};
use tribunal_core::judge::{Moved, Owed, Source};
use tribunal_core::outcome::Lane;
use tribunal_core::plan::ChangeSet;
use tribunal_core::request::Freshness;

const T: i64 = 1_790_000_000;

/// A completed score of this token that found these cases mixed.
fn scored(bench: &Bench, token: &str, n: i64, mixed: Vec<MixedCase>) -> String {
    let id: ScoreId = format!("{n:032x}").parse().unwrap();
    let asked = NewScore {
        id: id.clone(),
        repository: "demo".parse().unwrap(),
        head: "a".repeat(40).parse().unwrap(),
        base: "1".repeat(40).parse().unwrap(),
        base_tip: "1".repeat(40).parse().unwrap(),
        change_set: ChangeSet::Agent,
        request_id: format!("r{n}").parse().unwrap(),
        token: Token::parse(token).unwrap().id().clone(),
        role: Role::Agent,
        freshness: Freshness::Stored,
        created: UnixTime(T + n),
    };
    let store = &bench.behind.store;
    assert!(matches!(
        store.create_score(&asked).unwrap(),
        Created::New(_)
    ));
    let completion = Completion {
        mixed,
        ..completion()
    };
    store
        .complete_score(&id, UnixTime(T + n), &completion)
        .unwrap();
    format!("repositories/demo/scores/{id}")
}

fn mixed(name: &str, for_agent: Option<&str>) -> MixedCase {
    MixedCase {
        evidence: AttemptKey {
            content: Digest::of(name.as_bytes()),
            lane: Lane::Property,
        },
        node: name.parse().unwrap(),
        for_agent: for_agent.map(|name| name.parse().unwrap()),
        digest: format!("v2:cp313:{}", "0".repeat(64)),
        attempts: 7,
        failures: 3,
        blame: Blame {
            source: Some(Source::WallClock),
            moved: Some(Moved::HashSeed),
            owed: Owed::CassettePin,
        },
    }
}

async fn listed(bench: &Bench, token: &str, page_size: i32) -> Vec<v1::FlakyCase> {
    let mut api = bench.scores(token).await;
    let (mut cases, mut page_token) = (Vec::new(), String::new());
    loop {
        let request = v1::ListFlakyCasesRequest {
            parent: "repositories/demo".to_owned(),
            page_size,
            page_token,
        };
        let page = api.list_flaky_cases(request).await.unwrap().into_inner();
        assert!(page_size == 0 || page.cases.len() == 1, "{page:?}");
        cases.extend(page.cases);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return cases;
        }
    }
}

const MANY: &str = "tests/sealed/test_a.py::test_many[sealed text]";
const ONE: &str = "tests/sealed/test_a.py::test_one";

#[tokio::test]
async fn everybody_hears_what_the_role_may_hear() {
    let bench = bench(settings()).await;
    let agents = [(); 2].map(|()| bench.token(Role::Agent, Some("demo")));
    let [one, two] = &agents;
    let first = scored(
        &bench,
        one,
        1,
        vec![mixed(MANY, None), mixed(ONE, Some(ONE))],
    );
    let plain = MANY.split('[').next();
    let second = scored(&bench, two, 2, vec![mixed(MANY, plain)]);
    for role in [Role::Ci, Role::Maintainer, Role::Operator] {
        let token = bench.token(role, None);
        for page_size in [0, 1] {
            let cases = listed(&bench, &token, page_size).await;
            let names: Vec<&str> = cases.iter().map(|case| case.node_id.as_str()).collect();
            assert_eq!(names, [MANY, ONE]);
            assert_eq!(cases[0].scores, [second.clone(), first.clone()]);
        }
    }
    let own = listed(&bench, one, 0).await;
    assert_eq!(
        own,
        [v1::FlakyCase {
            node_id: ONE.to_owned(),
            case_digest: format!("v2:cp313:{}", "0".repeat(64)),
            lane: "property".to_owned(),
            first_seen_time: Some(prost_types::Timestamp {
                seconds: T + 1,
                nanos: 0
            }),
            last_seen_time: Some(prost_types::Timestamp {
                seconds: T + 1,
                nanos: 0
            }),
            attempts: 7,
            failures: 3,
            upper_bound: own[0].upper_bound,
            source: "wall-clock".to_owned(),
            moved: "hash-seed".to_owned(),
            owed: "cassette-pin".to_owned(),
            scores: vec![first],
            score_count: 1,
        }]
    );
    assert!((own[0].upper_bound - 0.774_68).abs() < 1e-5, "{own:?}");
    let others = listed(&bench, two, 0).await;
    assert_eq!(others[0].node_id, "tests/sealed/test_a.py::test_many");
    assert_eq!(others[0].scores, [second]);
    assert_eq!(others.len(), 1);
}

#[tokio::test]
async fn all_mistakes_of_the_request_are_told_at_once() {
    let bench = bench(settings()).await;
    let token = bench.token(Role::Ci, None);
    let mut api = bench.scores(&token).await;
    let request = v1::ListFlakyCasesRequest {
        parent: "demo".to_owned(),
        page_size: -1,
        page_token: "7".to_owned(),
    };
    let status = api.list_flaky_cases(request).await.unwrap_err();
    let violations = status.get_details_bad_request().unwrap().field_violations;
    let fields: Vec<_> = violations.iter().map(|v| v.field.as_str()).collect();
    assert_eq!(fields, ["parent", "page_size", "page_token"]);
}

#[test]
fn names_of_causes_are_those_of_reports() {
    let written = |value: serde_json::Value| value.as_str().unwrap().to_owned();
    for source in [
        Source::WallClock,
        Source::Monotonic,
        Source::Entropy,
        Source::RandomDevice,
        Source::Listings,
        Source::Network,
        Source::OwnServer,
        Source::Sleep,
        Source::Threads,
    ] {
        assert_eq!(
            written(serde_json::to_value(source).unwrap()),
            source.name()
        );
    }
    for moved in Moved::ALL {
        assert_eq!(written(serde_json::to_value(moved).unwrap()), moved.name());
    }
    for owed in [Owed::CassettePin, Owed::Property, Owed::Neither] {
        assert_eq!(written(serde_json::to_value(owed).unwrap()), owed.name());
    }
}
