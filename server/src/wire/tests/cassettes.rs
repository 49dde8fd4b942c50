//! Recordings: requests out, answers in, and what is no recording.

use super::*;
use v1::record_request::Message as Said;
use v1::record_response::Message as Told;

fn order(node: &str) -> v1::RecordRequest {
    v1::RecordRequest {
        message: Some(Said::Order(v1::RecordOrder {
            parent: "repositories/demo".to_owned(),
            commit: String::new(),
            node_id: node.to_owned(),
            listings: vec![v1::RecordedListing {
                directory: "/srv/outbox".to_owned(),
                names: vec!["a".to_owned()],
            }],
        })),
    }
}

fn answer(id: u64, body: &'static [u8], more: bool) -> v1::RecordRequest {
    v1::RecordRequest {
        message: Some(Said::Answer(v1::ExchangeAnswer {
            id,
            status: 200,
            headers: Vec::new(),
            body: Bytes::from_static(body),
            more,
        })),
    }
}

const NODE: &str = "tests/test_a.py::test_b";

#[tokio::test]
async fn a_request_goes_out_in_parts_and_its_answer_comes_in() {
    let bench = bench(settings()).await;
    let token = bench.token(Role::Maintainer, None);
    let mut api = bench.cassettes(&token).await;
    let (say, said) = tokio::sync::mpsc::channel(8);
    say.send(order(NODE)).await.unwrap();
    let said = tokio_stream::wrappers::ReceiverStream::new(said);
    let mut told = api.record(said).await.unwrap().into_inner();
    let mut bytes = 0;
    let recording = loop {
        match told.message().await.unwrap().unwrap().message.unwrap() {
            Told::Ask(ask) => {
                assert_eq!(ask.head.is_some(), bytes == 0 || ask.id == 2);
                bytes += ask.body.len();
                if !ask.more && ask.id == 1 {
                    assert_eq!(bytes, 1_200_000);
                    say.send(answer(1, b"first ", true)).await.unwrap();
                    say.send(answer(1, b"second", false)).await.unwrap();
                } else if !ask.more {
                    // Another request's answer is none.
                    say.send(answer(9, b"", false)).await.unwrap();
                }
            }
            Told::Recording(recording) => break recording,
        }
    };
    assert_eq!(recording.failure, "200 12 0\\u{7}");
    assert_eq!(recording.clock, "2026-09-12T00:00:00Z");
    assert_eq!((recording.rng_seed, recording.listings), (None, 3));
    assert_eq!(recording.listed_directories, ["/srv/outbox"]);
    assert!(told.message().await.unwrap().is_none());
}

#[tokio::test]
async fn what_is_no_recording_is_refused() {
    let bench = bench(settings()).await;
    let maintainer = bench.token(Role::Maintainer, None);
    let refused = async |token: &str, first: v1::RecordRequest| {
        let mut api = bench.cassettes(token).await;
        let answer = api.record(tokio_stream::iter([first])).await;
        reason::<()>(Err(answer.err().unwrap()))
    };
    assert_eq!(
        refused(&maintainer, answer(1, b"", false)).await,
        "INVALID_ARGUMENT"
    );
    assert_eq!(refused(&maintainer, order("")).await, "INVALID_ARGUMENT");
    for role in [Role::Agent, Role::Ci] {
        let token = bench.token(role, None);
        assert_eq!(refused(&token, order(NODE)).await, "FORBIDDEN");
    }
    let elsewhere = bench.token(Role::Maintainer, Some("other"));
    assert_eq!(refused(&elsewhere, order(NODE)).await, "FORBIDDEN");
}
