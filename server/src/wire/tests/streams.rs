//! Watching: replay, live, the end, and who goes away.

use super::roles::ended;
use super::*;
use tonic::Code;
use v1::score_event::Kind;

/// What a watch told: the kinds with their numbers, the files of the end, the final status.
#[derive(Debug, PartialEq)]
struct Told {
    events: Vec<(u64, &'static str)>,
    files: Vec<(String, Vec<u8>)>,
    status: Option<(Code, String)>,
}

async fn watch(api: &mut ScoreServiceClient<Api>, name: &str, after_sequence: u64) -> Told {
    let request = v1::WatchScoreRequest {
        name: name.to_owned(),
        after_sequence,
    };
    let mut stream = api.watch_score(request).await.unwrap().into_inner();
    let mut told = Told {
        events: Vec::new(),
        files: Vec::new(),
        status: None,
    };
    loop {
        match stream.message().await {
            Ok(Some(message)) => {
                let event = message.event.unwrap();
                assert!(event.time.is_some());
                let kind = event.kind.unwrap();
                told.events.push((event.sequence, word(&kind)));
                if let Kind::Completed(completed) = kind {
                    let files = completed.files.into_iter();
                    told.files = files.map(|f| (f.name, f.content.to_vec())).collect();
                }
            }
            Ok(None) => return told,
            Err(status) => {
                told.status = Some((status.code(), reason::<()>(Err(status))));
                return told;
            }
        }
    }
}

fn word(kind: &Kind) -> &'static str {
    match kind {
        Kind::Queued(_) => "queued",
        Kind::Preparing(_) => "preparing",
        Kind::AttemptStarted(_) => "attempt-started",
        Kind::CasesDone(_) => "cases-done",
        Kind::AttemptEnded(_) => "attempt-ended",
        Kind::Judged(_) => "judged",
        Kind::Heartbeat(_) => "heartbeat",
        Kind::Completed(_) => "completed",
        Kind::Aborted(_) => "aborted",
    }
}

fn agents_files() -> Vec<(String, Vec<u8>)> {
    vec![
        ("report.json".to_owned(), b"agent".to_vec()),
        ("src_score.txt".to_owned(), b"PASS\n".to_vec()),
    ]
}

#[tokio::test]
async fn a_watch_replays_from_any_number_and_ends_with_the_files() {
    let bench = bench(settings()).await;
    let token = bench.token(Role::Agent, None);
    let mut api = bench.scores(&token).await;
    let name = create(&mut api, "a").await;
    let mut second = api.clone();
    let live = tokio::spawn({
        let name = name.clone();
        async move { watch(&mut second, &name, 0).await }
    });
    bench.behind.go.add_permits(1);
    ended(&mut api, &name).await;
    let id = name.rsplit('/').next().unwrap().parse().unwrap();
    let stored = bench.behind.store.events(&id, 0, 99).unwrap();
    let whole = watch(&mut api, &name, 0).await;
    let numbers: Vec<_> = whole.events.iter().map(|(n, _)| *n).collect();
    assert_eq!(numbers, (1..=stored.len() as u64).collect::<Vec<_>>());
    assert_eq!(whole.events[0].1, "queued");
    assert_eq!(whole.events.last().unwrap().1, "completed");
    assert_eq!(whole.files, agents_files());
    assert_eq!(whole.status, None);
    for after in 1..numbers.len() as u64 {
        let rest = watch(&mut api, &name, after).await;
        let from = usize::try_from(after).unwrap();
        assert_eq!(rest.events, whole.events[from..]);
        assert_eq!(rest.files, whole.files);
    }
    // Who was there all along saw the same, and perhaps its place in the line once more.
    let mut live = live.await.unwrap();
    live.events.dedup_by_key(|(n, _)| *n);
    assert_eq!(live, whole);
    // Who asks beyond the end gets the end.
    for after in [numbers.len() as u64, u64::MAX] {
        let again = watch(&mut api, &name, after).await;
        assert_eq!(again.events, whole.events[numbers.len() - 1..]);
        assert_eq!(again.files, whole.files);
    }
}

#[tokio::test]
async fn score_is_create_and_watch_in_one() {
    let bench = bench(settings()).await;
    bench.behind.go.add_permits(1);
    let token = bench.token(Role::Ci, None);
    let mut api = bench.scores(&token).await;
    let request = v1::ScoreRequest {
        parent: "repositories/demo".to_owned(),
        head: "a".repeat(40),
        ..v1::ScoreRequest::default()
    };
    let mut stream = api.score(request).await.unwrap().into_inner();
    let mut kinds = Vec::new();
    while let Some(message) = stream.message().await.unwrap() {
        kinds.push(message.kind.unwrap());
    }
    let v1::score_response::Kind::Score(score) = &kinds[0] else {
        panic!("the score comes first")
    };
    assert_eq!(score.head, "a".repeat(40));
    let v1::score_response::Kind::Event(last) = kinds.last().unwrap() else {
        panic!("events follow")
    };
    let Some(Kind::Completed(end)) = &last.kind else {
        panic!("the end comes last")
    };
    assert_eq!(end.files.len(), 2);
    assert_eq!(&end.files[0].content[..], b"reader");
    assert_eq!(end.words.unwrap().flake_lease(), v1::VerdictWord::Fail);
}

#[tokio::test]
async fn an_abort_is_an_event_and_then_the_status() {
    let bench = bench(settings()).await;
    bench.behind.go.add_permits(1);
    let token = bench.token(Role::Agent, None);
    let mut api = bench.scores(&token).await;
    let name = create(&mut api, "b").await;
    let told = watch(&mut api, &name, 0).await;
    assert_eq!(told.events.last().unwrap().1, "aborted");
    let expected = (Code::Unavailable, "ENGINE_UNAVAILABLE".to_owned());
    assert_eq!(told.status, Some(expected));
    let request = v1::GetVerdictsRequest { name: name.clone() };
    assert_eq!(
        reason(api.get_verdicts(request).await),
        "ENGINE_UNAVAILABLE"
    );
    let score = api.get_score(v1::GetScoreRequest { name }).await.unwrap();
    let score = score.into_inner().score.unwrap();
    assert_eq!(score.state(), v1::ScoreState::Aborted);
    assert_eq!(score.abort.unwrap().code, "engine-unavailable");
}

#[tokio::test]
async fn a_cancel_ends_the_watch_and_leaves_no_files() {
    let bench = bench(settings()).await;
    let token = bench.token(Role::Agent, None);
    let mut api = bench.scores(&token).await;
    let name = create(&mut api, "a").await;
    let early = v1::GetVerdictsRequest { name: name.clone() };
    assert_eq!(reason(api.get_verdicts(early.clone()).await), "NOT_FOUND");
    let mut second = api.clone();
    let watching = tokio::spawn({
        let name = name.clone();
        async move { watch(&mut second, &name, 0).await }
    });
    let request = v1::CancelScoreRequest { name: name.clone() };
    api.cancel_score(request.clone()).await.unwrap();
    let told = watching.await.unwrap();
    assert_eq!(told.status, Some((Code::Cancelled, "CANCELLED".to_owned())));
    assert_eq!(reason(api.get_verdicts(early).await), "CANCELLED");
    let again = api.cancel_score(request).await.unwrap().into_inner();
    assert_eq!(again.score.unwrap().state(), v1::ScoreState::Aborted);
}

#[tokio::test]
async fn a_watcher_that_goes_away_changes_nothing() {
    let bench = bench(settings()).await;
    let token = bench.token(Role::Agent, None);
    let mut api = bench.scores(&token).await;
    let request = v1::ScoreRequest {
        parent: "repositories/demo".to_owned(),
        head: "a".repeat(40),
        ..v1::ScoreRequest::default()
    };
    let mut stream = api.score(request).await.unwrap().into_inner();
    let first = stream.message().await.unwrap().unwrap().kind.unwrap();
    let v1::score_response::Kind::Score(score) = first else {
        panic!("the score comes first")
    };
    drop(stream);
    drop(api);
    bench.behind.go.add_permits(1);
    let mut other = bench.scores(&token).await;
    let told = watch(&mut other, &score.name, 0).await;
    assert_eq!(told.files, agents_files());
}

#[tokio::test]
async fn a_silent_watch_has_a_heartbeat_that_repeats_the_last_number() {
    let bench = bench(WireSettings {
        heartbeat: Duration::from_millis(50),
        ..settings()
    })
    .await;
    let token = bench.token(Role::Agent, None);
    let mut api = bench.scores(&token).await;
    let name = create(&mut api, "a").await;
    let request = v1::WatchScoreRequest {
        name: name.clone(),
        after_sequence: 0,
    };
    let mut stream = api.watch_score(request).await.unwrap().into_inner();
    let mut last = 0;
    let mut beats = 0;
    while beats < 3 {
        let event = stream.message().await.unwrap().unwrap().event.unwrap();
        match event.kind.unwrap() {
            Kind::Heartbeat(_) => {
                assert_eq!(event.sequence, last);
                beats += 1;
            }
            Kind::Queued(_)
            | Kind::Preparing(_)
            | Kind::AttemptStarted(_)
            | Kind::CasesDone(_)
            | Kind::AttemptEnded(_)
            | Kind::Judged(_)
            | Kind::Completed(_)
            | Kind::Aborted(_) => last = event.sequence,
        }
    }
}

#[tokio::test]
async fn the_place_in_the_line_is_told_as_it_moves() {
    let bench = bench(settings()).await;
    let token = bench.token(Role::Agent, None);
    let mut api = bench.scores(&token).await;
    for _ in 0..3 {
        create(&mut api, "a").await;
    }
    let name = create(&mut api, "a").await;
    let request = v1::WatchScoreRequest {
        name,
        after_sequence: 0,
    };
    let mut stream = api.watch_score(request).await.unwrap().into_inner();
    let mut places = Vec::new();
    while places.last() != Some(&1) {
        let event = stream.message().await.unwrap().unwrap().event.unwrap();
        if let Some(Kind::Queued(queued)) = event.kind {
            // Two run, one waits before it: the end of one brings it to the front.
            if queued.position == 2 && !places.contains(&2) {
                bench.behind.go.add_permits(1);
            }
            places.push(queued.position);
        }
    }
    assert!(places.contains(&2), "{places:?}");
}

#[tokio::test]
async fn leaving_ends_streams_with_a_reason_and_the_server_ends() {
    let bench = bench(settings()).await;
    let token = bench.token(Role::Agent, None);
    let mut api = bench.scores(&token).await;
    let name = create(&mut api, "a").await;
    let mut second = api.clone();
    let watching = tokio::spawn(async move { watch(&mut second, &name, 0).await });
    while bench.behind.running.load(Ordering::SeqCst) < 1 {
        tokio::task::yield_now().await;
    }
    // A health watch never ends by itself.
    let mut health = tonic_health::pb::health_client::HealthClient::new(bench.channel().await);
    let request = tonic_health::pb::HealthCheckRequest::default();
    let mut stream = health.watch(request).await.unwrap().into_inner();
    stream.message().await.unwrap().unwrap();

    bench.stops.leave.cancel();
    let told = stream.message().await.unwrap().unwrap();
    assert_eq!(
        told.status,
        tonic_health::pb::health_check_response::ServingStatus::NotServing as i32
    );
    // Whoever connects now is told the same, and that a new score is worth another try.
    let mut late = tonic_health::pb::health_client::HealthClient::new(bench.channel().await);
    let service = "tribunal.v1.ScoreService".to_owned();
    let asked = late.check(tonic_health::pb::HealthCheckRequest { service });
    assert_eq!(asked.await.unwrap().into_inner().status, told.status);
    bench.queue.drain(Duration::ZERO).await;
    let refused = api.create_score(ask("b")).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
    assert!(refused.get_details_retry_info().is_some());
    let told = watching.await.unwrap();
    let expected = (Code::Unavailable, "SERVER_RESTARTED".to_owned());
    assert_eq!(told.status, Some(expected));
    bench.stops.over.cancel();
    bench.stops.close.cancel();
    assert_eq!(reason(stream.message().await), "SERVER_RESTARTED");
    let patience = Duration::from_secs(10);
    let served = tokio::time::timeout(patience, bench.served).await;
    served.unwrap().unwrap().unwrap();
}
