//! Who may do what, through the whole wire.

use super::*;

/// Every call of the interface, once, and the reason it was refused with.
async fn all_calls(bench: &Bench, token: &str, score: &str) -> Vec<(&'static str, String)> {
    fn told<T: std::fmt::Debug>(result: Result<tonic::Response<T>, Status>) -> String {
        match result {
            Ok(_) => "OK".to_owned(),
            Err(status) => reason::<()>(Err(status)),
        }
    }
    let mut scores = bench.scores(token).await;
    let mut repositories = bench.repositories(token).await;
    let mut keys = bench.keys(token).await;
    let mut cassettes = bench.cassettes(token).await;
    let name = score.to_owned();
    let upload = tokio_stream::iter([v1::UploadCommitsRequest {
        part: Some(v1::upload_commits_request::Part::Header(v1::UploadHeader {
            parent: "repositories/demo".to_owned(),
            size: 1,
        })),
    }]);
    vec![
        ("CreateScore", told(scores.create_score(ask("a")).await)),
        (
            "Score",
            told(
                scores
                    .score(v1::ScoreRequest {
                        parent: "repositories/demo".to_owned(),
                        head: "a".repeat(40),
                        ..v1::ScoreRequest::default()
                    })
                    .await
                    .map(|r| r.map(drop)),
            ),
        ),
        (
            "GetScore",
            told(
                scores
                    .get_score(v1::GetScoreRequest { name: name.clone() })
                    .await,
            ),
        ),
        (
            "WatchScore",
            told(
                scores
                    .watch_score(v1::WatchScoreRequest {
                        name: name.clone(),
                        after_sequence: 0,
                    })
                    .await
                    .map(|r| r.map(drop)),
            ),
        ),
        (
            "ListScores",
            told(
                scores
                    .list_scores(v1::ListScoresRequest {
                        parent: "repositories/demo".to_owned(),
                        ..v1::ListScoresRequest::default()
                    })
                    .await,
            ),
        ),
        (
            "GetVerdicts",
            told(
                scores
                    .get_verdicts(v1::GetVerdictsRequest { name: name.clone() })
                    .await,
            ),
        ),
        (
            "CancelScore",
            told(scores.cancel_score(v1::CancelScoreRequest { name }).await),
        ),
        (
            "GetRepository",
            told(
                repositories
                    .get_repository(v1::GetRepositoryRequest {
                        name: "repositories/demo".to_owned(),
                    })
                    .await,
            ),
        ),
        (
            "ListRepositories",
            told(
                repositories
                    .list_repositories(v1::ListRepositoriesRequest::default())
                    .await,
            ),
        ),
        (
            "UploadCommits",
            told(repositories.upload_commits(upload).await),
        ),
        (
            "ListCases",
            told(
                repositories
                    .list_cases(v1::ListCasesRequest {
                        parent: "repositories/demo".to_owned(),
                        ..v1::ListCasesRequest::default()
                    })
                    .await,
            ),
        ),
        (
            "ListModes",
            told(
                repositories
                    .list_modes(v1::ListModesRequest {
                        parent: "repositories/demo".to_owned(),
                        ..v1::ListModesRequest::default()
                    })
                    .await,
            ),
        ),
        (
            "Record",
            told(
                cassettes
                    .record(tokio_stream::iter([v1::RecordRequest {
                        message: Some(v1::record_request::Message::Order(v1::RecordOrder {
                            parent: "repositories/demo".to_owned(),
                            node_id: "tests/test_a.py::test_b".to_owned(),
                            ..v1::RecordOrder::default()
                        })),
                    }]))
                    .await
                    .map(|r| r.map(drop)),
            ),
        ),
        (
            "ListKeys",
            told(keys.list_keys(v1::ListKeysRequest::default()).await),
        ),
        (
            "ListFlakyCases",
            told(
                scores
                    .list_flaky_cases(v1::ListFlakyCasesRequest {
                        parent: "repositories/demo".to_owned(),
                        ..v1::ListFlakyCasesRequest::default()
                    })
                    .await,
            ),
        ),
    ]
}

#[tokio::test]
async fn nothing_opens_without_a_valid_token() {
    let bench = bench(settings()).await;
    let score = format!("repositories/demo/scores/{}", "0".repeat(32));
    let revoked = bench.token(Role::Operator, None);
    let id = Token::parse(&revoked).unwrap().id().clone();
    bench.behind.store.revoke_token(&id, clock::now()).unwrap();
    let stranger = Token::mint().unwrap().reveal().to_string();
    let mut forged = bench.token(Role::Operator, None);
    let last = if forged.pop() == Some('0') { '1' } else { '0' };
    forged.push(last);
    for token in [revoked.as_str(), &stranger, &forged, "secret", ""] {
        for (call, told) in all_calls(&bench, token, &score).await {
            assert_eq!(told, "UNAUTHENTICATED", "{call}");
        }
    }
    let mut bare = ScoreServiceClient::with_interceptor(bench.channel().await, Bearer(None));
    assert_eq!(reason(bare.create_score(ask("a")).await), "UNAUTHENTICATED");
    assert_eq!(bench.behind.running.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn each_role_reaches_what_the_table_says() {
    let bench = bench(settings()).await;
    bench.behind.go.add_permits(100);
    let agent = bench.token(Role::Agent, Some("demo"));
    let mut api = bench.scores(&agent).await;
    let score = create(&mut api, "a").await;
    ended(&mut api, &score).await;
    let other = bench.token(Role::Agent, Some("demo"));
    let ci = bench.token(Role::Ci, Some("demo"));
    let maintainer = bench.token(Role::Maintainer, Some("demo"));
    let operator = bench.token(Role::Operator, None);
    let elsewhere = bench.token(Role::Maintainer, Some("other"));

    // CreateScore, Score | Get, Watch | List | Verdicts | Cancel | GetRepository, ListRepositories | Upload | Cases, Modes, Record | Keys | Flaky
    let ok = "OK";
    let no = "FORBIDDEN";
    let hidden = "NOT_FOUND";
    let half = "UPLOAD_INCOMPLETE";
    let table = [
        (
            &agent,
            [ok, ok, ok, ok, ok, ok, ok, ok, ok, half, no, no, no, ok, ok],
        ),
        (
            &other,
            [
                ok, ok, hidden, hidden, ok, hidden, hidden, ok, ok, half, no, no, no, ok, ok,
            ],
        ),
        (
            &ci,
            [ok, ok, ok, ok, ok, ok, no, ok, ok, half, no, ok, no, ok, ok],
        ),
        (
            &maintainer,
            [ok, ok, ok, ok, ok, ok, ok, ok, ok, half, ok, ok, ok, ok, ok],
        ),
        (
            &operator,
            [ok, ok, ok, ok, ok, ok, ok, ok, ok, half, ok, ok, ok, ok, ok],
        ),
        (
            &elsewhere,
            [
                no, no, hidden, hidden, no, hidden, hidden, no, ok, no, no, no, no, ok, no,
            ],
        ),
    ];
    for (row, (token, expected)) in table.into_iter().enumerate() {
        for ((call, told), expected) in all_calls(&bench, token, &score)
            .await
            .into_iter()
            .zip(expected)
        {
            assert_eq!(told, expected, "row {row}, {call}");
        }
    }
}

pub(super) async fn ended(api: &mut ScoreServiceClient<Api>, name: &str) {
    let request = v1::WatchScoreRequest {
        name: name.to_owned(),
        after_sequence: 0,
    };
    let mut stream = api.watch_score(request).await.unwrap().into_inner();
    while let Ok(Some(_)) = stream.message().await {}
}

#[tokio::test]
async fn an_agent_lists_its_own_and_sees_only_its_own_report() {
    let bench = bench(settings()).await;
    bench.behind.go.add_permits(100);
    let tokens = [
        (bench.token(Role::Agent, Some("demo")), "agent", 1),
        (bench.token(Role::Agent, Some("demo")), "agent", 1),
        (bench.token(Role::Ci, Some("demo")), "reader", 4),
        (bench.token(Role::Operator, None), "operator", 4),
    ];
    let mut names = Vec::new();
    for (token, ..) in &tokens {
        let mut api = bench.scores(token).await;
        let name = create(&mut api, "a").await;
        ended(&mut api, &name).await;
        names.push(name);
    }
    for ((token, report, count), own) in tokens.iter().zip(&names) {
        let mut api = bench.scores(token).await;
        let mut seen = Vec::new();
        let mut page_token = String::new();
        loop {
            let request = v1::ListScoresRequest {
                parent: "repositories/demo".to_owned(),
                page_size: 3,
                page_token,
                ..v1::ListScoresRequest::default()
            };
            let page = api.list_scores(request).await.unwrap().into_inner();
            seen.extend(page.scores.into_iter().map(|s| s.name));
            page_token = page.next_page_token;
            if page_token.is_empty() {
                break;
            }
        }
        assert_eq!(seen.len(), *count);
        assert!(seen.contains(own));
        let request = v1::GetVerdictsRequest { name: own.clone() };
        let files = api.get_verdicts(request).await.unwrap().into_inner().files;
        let reports: Vec<_> = files
            .iter()
            .filter(|f| f.name == "report.json")
            .map(|f| std::str::from_utf8(&f.content).unwrap())
            .collect();
        assert_eq!(reports, [*report]);
    }
}

#[tokio::test]
async fn a_scoped_token_lists_its_repository_alone() {
    let bench = bench(settings()).await;
    for (scope, expected) in [
        (Some("other"), vec!["repositories/other"]),
        (
            None,
            vec![
                "repositories/demo",
                "repositories/other",
                "repositories/third",
            ],
        ),
    ] {
        let token = bench.token(Role::Ci, scope);
        let mut api = bench.repositories(&token).await;
        let request = v1::ListRepositoriesRequest::default();
        let page = api.list_repositories(request).await.unwrap().into_inner();
        let names: Vec<_> = page.repositories.into_iter().map(|r| r.name).collect();
        assert_eq!(names, expected);
    }
}

#[tokio::test]
async fn health_and_reflection_answer_everyone_and_nothing_else_does() {
    let bench = bench(settings()).await;
    let channel = bench.channel().await;
    let mut health = tonic_health::pb::health_client::HealthClient::new(channel.clone());
    let request = tonic_health::pb::HealthCheckRequest::default();
    let status = health.check(request).await.unwrap().into_inner().status;
    assert_eq!(
        status,
        tonic_health::pb::health_check_response::ServingStatus::Serving as i32
    );
    use tonic_reflection::pb::v1 as reflection;
    let mut client =
        reflection::server_reflection_client::ServerReflectionClient::new(channel.clone());
    let asked = reflection::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(
            reflection::server_reflection_request::MessageRequest::ListServices(String::new()),
        ),
    };
    let answers = client
        .server_reflection_info(tokio_stream::once(asked))
        .await
        .unwrap()
        .into_inner()
        .message()
        .await
        .unwrap()
        .unwrap();
    let told = format!("{answers:?}");
    for service in ["ScoreService", "RepositoryService", "KeyService"] {
        assert!(told.contains(&format!("tribunal.v1.{service}")), "{told}");
    }
    let mut unknown = tonic::client::Grpc::new(channel);
    unknown.ready().await.unwrap();
    let path = tonic::codegen::http::uri::PathAndQuery::from_static("/tribunal.v1.Other/Do");
    let codec = tonic_prost_codec();
    let answer: Result<tonic::Response<v1::Score>, Status> = unknown
        .unary(Request::new(v1::Score::default()), path, codec)
        .await;
    assert_eq!(reason(answer), "UNAUTHENTICATED");
}

fn tonic_prost_codec() -> tonic_prost::ProstCodec<v1::Score, v1::Score> {
    tonic_prost::ProstCodec::default()
}
