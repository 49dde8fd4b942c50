//! Single calls: what is checked, what is told, what is limited.

use super::*;
use tonic::Code;

#[tokio::test]
async fn a_request_id_is_one_score_over_the_wire_too() {
    let bench = bench(settings()).await;
    let token = bench.token(Role::Agent, None);
    let mut api = bench.scores(&token).await;
    let request = v1::CreateScoreRequest {
        request_id: "job-7".to_owned(),
        ..ask("a")
    };
    let first = api
        .create_score(request.clone())
        .await
        .unwrap()
        .into_inner();
    let again = api
        .create_score(request.clone())
        .await
        .unwrap()
        .into_inner();
    let (first, again) = (first.score.unwrap(), again.score.unwrap());
    assert_eq!(first.name, again.name);
    assert_eq!(first.request_id, "job-7");
    assert_eq!(first.base, "1".repeat(40));
    let changed = v1::CreateScoreRequest {
        head: "ab".to_owned() + &"0".repeat(38),
        ..request
    };
    assert_eq!(reason(api.create_score(changed).await), "INVALID_ARGUMENT");
}

#[tokio::test]
async fn every_field_that_does_not_hold_is_told_at_once() {
    let bench = bench(settings()).await;
    let token = bench.token(Role::Agent, None);
    let mut api = bench.scores(&token).await;
    let request = v1::CreateScoreRequest {
        parent: "demo".to_owned(),
        head: "abc".to_owned(),
        base: "main".to_owned(),
        request_id: "a b".to_owned(),
        fresh: false,
        proposed: false,
    };
    let status = api.create_score(request).await.unwrap_err();
    let violations = status.get_details_bad_request().unwrap().field_violations;
    let fields: Vec<_> = violations.iter().map(|v| v.field.as_str()).collect();
    assert_eq!(fields, ["parent", "head", "base", "request_id"]);
    assert_eq!(status.code(), Code::InvalidArgument);

    let short = v1::CreateScoreRequest {
        head: "abc".to_owned(),
        ..ask("a")
    };
    assert_eq!(reason(api.create_score(short).await), "SHORT_SHA");

    let request = v1::ListScoresRequest {
        parent: "x".to_owned(),
        page_size: -1,
        page_token: "7".to_owned(),
        head: "abc".to_owned(),
        base: "abc".to_owned(),
        state: 99,
    };
    let status = api.list_scores(request).await.unwrap_err();
    let violations = status.get_details_bad_request().unwrap().field_violations;
    let fields: Vec<_> = violations.iter().map(|v| v.field.as_str()).collect();
    assert_eq!(
        fields,
        ["parent", "page_size", "page_token", "head", "base", "state"]
    );
}

#[tokio::test]
async fn refusals_and_aborts_of_admission_are_the_calls_own_status() {
    let bench = bench(settings()).await;
    let token = bench.token(Role::Agent, None);
    let mut api = bench.scores(&token).await;
    let refused = api.create_score(ask("0")).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    assert_eq!(reason::<()>(Err(refused)), "UNKNOWN_COMMIT");
    let aborted = api.create_score(ask("9")).await.unwrap_err();
    assert_eq!(aborted.code(), Code::Unavailable);
    assert!(aborted.get_details_retry_info().is_some());
    assert_eq!(reason::<()>(Err(aborted)), "ENGINE_UNAVAILABLE");
    let fresh = v1::CreateScoreRequest {
        fresh: true,
        proposed: false,
        ..ask("a")
    };
    assert_eq!(reason(api.create_score(fresh).await), "FORBIDDEN");
    let list = v1::ListScoresRequest {
        parent: "repositories/demo".to_owned(),
        ..v1::ListScoresRequest::default()
    };
    let listed = api.list_scores(list).await.unwrap().into_inner();
    assert!(listed.scores.is_empty(), "a refusal leaves no score");
}

#[tokio::test]
async fn a_full_queue_and_a_full_token_are_told_apart() {
    let bench = bench(settings()).await;
    let (one, two) = (
        bench.token(Role::Agent, None),
        bench.token(Role::Agent, None),
    );
    let (mut first, mut second) = (bench.scores(&one).await, bench.scores(&two).await);
    for _ in 0..4 {
        create(&mut first, "a").await;
    }
    let full = first.create_score(ask("a")).await.unwrap_err();
    assert_eq!(full.code(), Code::ResourceExhausted);
    assert!(full.get_details_retry_info().is_some());
    assert_eq!(reason::<()>(Err(full)), "QUOTA");
    // Two run, two wait; four may wait in all.
    while bench.behind.running.load(Ordering::SeqCst) < 2 {
        tokio::task::yield_now().await;
    }
    let mut last = None;
    for _ in 0..2 {
        last = second
            .create_score(ask("a"))
            .await
            .unwrap()
            .into_inner()
            .score;
    }
    let waiting = last.unwrap();
    assert_eq!(waiting.state(), v1::ScoreState::Queued);
    assert_eq!(waiting.queue_position, 4);
    let third = bench.token(Role::Agent, None);
    let mut third = bench.scores(&third).await;
    assert_eq!(reason(third.create_score(ask("a")).await), "QUEUE_FULL");
}

#[tokio::test]
async fn a_flood_of_calls_is_slowed() {
    let bench = bench(WireSettings {
        call_rate: CallRate {
            per_second: 0.001,
            burst: 3.0,
        },
        ..settings()
    })
    .await;
    let (one, two) = (bench.token(Role::Ci, None), bench.token(Role::Ci, None));
    let (mut first, mut second) = (bench.keys(&one).await, bench.keys(&two).await);
    for _ in 0..3 {
        first
            .list_keys(v1::ListKeysRequest::default())
            .await
            .unwrap();
    }
    let flooded = first.list_keys(v1::ListKeysRequest::default()).await;
    assert_eq!(reason(flooded), "QUOTA");
    second
        .list_keys(v1::ListKeysRequest::default())
        .await
        .unwrap();
}

#[tokio::test]
async fn what_the_framework_refuses_carries_a_reason_too() {
    let bench = bench(settings()).await;
    let token = bench.token(Role::Agent, None);
    let mut api = bench.scores(&token).await;
    let large = v1::CreateScoreRequest {
        request_id: "x".repeat(1 << 20),
        ..ask("a")
    };
    let status = api.create_score(large).await.unwrap_err();
    assert_eq!(reason::<()>(Err(status)), "TOO_LARGE");

    let mut raw = tonic::client::Grpc::new(api_channel(&bench, &token).await);
    raw.ready().await.unwrap();
    let path =
        tonic::codegen::http::uri::PathAndQuery::from_static("/tribunal.v1.ScoreService/Nothing");
    let codec = tonic_prost::ProstCodec::<v1::Score, v1::Score>::default();
    let answer = raw
        .unary(Request::new(v1::Score::default()), path, codec)
        .await;
    let status = answer.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented);
    assert_eq!(reason::<()>(Err(status)), "NOT_FOUND");
}

async fn api_channel(bench: &Bench, token: &str) -> Api {
    InterceptedService::new(bench.channel().await, Bearer(Some(token.to_owned())))
}

#[tokio::test]
async fn a_deadline_that_passes_is_told_with_its_reason() {
    let bench = bench(settings()).await;
    let token = bench.token(Role::Agent, None);
    let mut api = bench.scores(&token).await;
    let name = create(&mut api, "a").await;
    let mut request = Request::new(v1::WatchScoreRequest {
        name,
        after_sequence: 0,
    });
    request.set_timeout(Duration::from_millis(500));
    let asked = std::time::Instant::now();
    let mut stream = api.watch_score(request).await.unwrap().into_inner();
    let end = loop {
        match stream.message().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("ended without a status"),
            Err(status) => break status,
        }
    };
    assert!(asked.elapsed() < Duration::from_secs(2));
    assert_eq!(end.code(), Code::DeadlineExceeded);
    assert_eq!(reason::<()>(Err(end)), "DEADLINE");
    assert_eq!(bench.behind.running.load(Ordering::SeqCst), 1, "it goes on");
}

#[tokio::test]
async fn repositories_and_cases_are_told() {
    let bench = bench(settings()).await;
    let token = bench.token(Role::Maintainer, None);
    let mut api = bench.repositories(&token).await;
    let request = |name: &str| v1::GetRepositoryRequest {
        name: name.to_owned(),
    };
    let answer = api.get_repository(request("repositories/demo")).await;
    let repository = answer.unwrap().into_inner().repository.unwrap();
    assert_eq!(repository.tip, "1".repeat(40));
    assert_eq!(repository.prerequisite_commits, ["1".repeat(40)]);
    assert_eq!(repository.protected_ref, "refs/heads/main");
    assert_eq!(repository.object_format, "sha1");
    let gone = api.get_repository(request("repositories/gone")).await;
    assert_eq!(reason(gone), "UNKNOWN_REPOSITORY");

    let mut cases = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = v1::ListCasesRequest {
            parent: "repositories/demo".to_owned(),
            page_size: 2,
            page_token,
            ..v1::ListCasesRequest::default()
        };
        let page = api.list_cases(request).await.unwrap().into_inner();
        assert_eq!(page.uncollected_files[0].message, "\\u{7}no");
        cases.extend(page.cases);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    assert_eq!(cases.len(), 3);
    // A node id is a name and arrives as it is.
    assert_eq!(cases[0].node_id, "tests/sealed/test_a.py::test[0\n]");
    let wrong = v1::ListCasesRequest {
        parent: "repositories/demo".to_owned(),
        commit: "HEAD".to_owned(),
        ..v1::ListCasesRequest::default()
    };
    assert_eq!(reason(api.list_cases(wrong).await), "SHORT_SHA");

    let request = v1::ListModesRequest {
        parent: "repositories/demo".to_owned(),
        page_size: 3,
        ..v1::ListModesRequest::default()
    };
    let page = api.list_modes(request.clone()).await.unwrap().into_inner();
    let rest = v1::ListModesRequest {
        page_token: page.next_page_token.clone(),
        ..request
    };
    let rest = api.list_modes(rest).await.unwrap().into_inner();
    let files = [page.files, rest.files].concat();
    let modes: Vec<&str> = files.iter().map(|f| f.mode().as_str_name()).collect();
    assert_eq!(
        modes,
        [
            "MODE_SPLIT",
            "MODE_SHARED_WITHOUT_NEED",
            "MODE_SHARED",
            "MODE_NEEDS_SHARED"
        ]
    );
    let needing: Vec<usize> = files.iter().map(|f| f.needing_case_ids.len()).collect();
    assert_eq!(needing, [0, 0, 1, 100]);
}

#[tokio::test]
async fn plain_text_beyond_loopback_is_refused_before_it_is_bound() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:7443"] {
        let Err(error) = Listener::bind(address.parse().unwrap(), None).await else {
            panic!("{address} was bound")
        };
        assert!(matches!(error, ListenError::PlainText(_)), "{error}");
        assert!(error.to_string().contains("certificate"), "{error}");
    }
}
