#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use super::*;
use crate::store::{NewScore, ScoreRecord, ScoreState, Words};
use tribunal_core::judge::Word as Says;
use tribunal_core::plan::ChangeSet;
use tribunal_core::reason::{Aborted, AbortedCode};
use tribunal_core::request::{Freshness, Role};

fn record(state: ScoreState) -> ScoreRecord {
    let commit = |n: u8| format!("{n:040x}").parse().unwrap();
    ScoreRecord {
        number: 1,
        asked: NewScore {
            id: format!("{:032x}", 7).parse().unwrap(),
            repository: "app".parse().unwrap(),
            head: commit(1),
            base: commit(2),
            base_tip: commit(2),
            change_set: ChangeSet::Agent,
            request_id: "r1".parse().unwrap(),
            token: format!("{:016x}", 1).parse().unwrap(),
            role: Role::Agent,
            freshness: Freshness::Stored,
            created: UnixTime(1_790_000_000),
        },
        state,
        started: None,
        ended: Some(UnixTime(1_790_000_009)),
    }
}

fn completed() -> ScoreRecord {
    record(ScoreState::Completed(Words {
        src_score: Says::NotRun,
        oracle_integrity: Says::Fail,
        flake_lease: Says::Pass,
    }))
}

fn target(api: Api) -> StatusTarget {
    StatusTarget {
        repository: "app".parse().unwrap(),
        api,
        url: "https://git.example/".parse().unwrap(),
        project: "group/sub/app".parse().unwrap(),
        token: "/nonexistent".into(),
    }
}

fn told(record: &ScoreRecord, statuses: Vec<StatusTarget>) -> Vec<crate::store::Message> {
    let hook = Webhook {
        name: "ci".to_owned(),
        repositories: vec!["other".parse().unwrap()],
        url: "https://hooks.example/".parse().unwrap(),
        secret: "/nonexistent".into(),
    };
    let all = Webhook {
        name: "all".to_owned(),
        repositories: Vec::new(),
        ..hook.clone()
    };
    let notify = Notify {
        webhooks: vec![hook, all],
        statuses,
        ..Notify::default()
    };
    compose::messages(record, &notify)
}

#[test]
fn one_status_a_verdict_and_nothing_but_pass_is_green() {
    for (api, states) in [
        (Api::GitHub, ["failure", "failure", "success"]),
        (Api::Gitea, ["failure", "failure", "success"]),
        (Api::GitLab, ["failed", "failed", "success"]),
    ] {
        let messages = told(&completed(), vec![target(api)]);
        assert_eq!(messages.len(), 4);
        assert_eq!(messages[0].target, "webhook all");
        let bodies: Vec<serde_json::Value> = messages[1..]
            .iter()
            .map(|m| serde_json::from_str(&m.body).unwrap())
            .collect();
        let named: Vec<_> = bodies
            .iter()
            .map(|b| b["state"].as_str().unwrap())
            .collect();
        assert_eq!(named, states);
        let context = match api {
            Api::GitLab => "name",
            Api::GitHub | Api::Gitea => "context",
        };
        assert_eq!(bodies[1][context], "tribunal/oracle_integrity");
        let description = bodies[0]["description"].as_str().unwrap();
        assert!(description.starts_with("NOT_RUN against 000000000000"));
        assert!(description.chars().count() <= 140);
    }
    let aborted = Aborted::new(AbortedCode::EngineUnavailable, "secret words");
    let messages = told(
        &record(ScoreState::Aborted(aborted)),
        vec![target(Api::GitHub)],
    );
    for message in &messages {
        assert!(!message.body.contains("secret"), "{}", message.body);
    }
    assert!(messages[3].body.contains("\"state\":\"error\""));
    assert!(
        messages[0]
            .body
            .contains("\"abort\":\"engine-unavailable\"")
    );
}

#[test]
fn an_older_base_gets_no_status_and_names_of_messages_stay() {
    let mut older = completed();
    older.asked.base = format!("{:040x}", 3).parse().unwrap();
    let messages = told(&older, vec![target(Api::GitHub)]);
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0].target, "webhook all");
    let (one, again) = (completed(), completed());
    assert_eq!(
        told(&one, vec![target(Api::GitHub)]),
        told(&again, vec![target(Api::GitHub)])
    );
    let mut ids: Vec<_> = told(&one, vec![target(Api::GitHub)])
        .into_iter()
        .map(|m| m.id)
        .collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 4);
}

#[test]
fn places_are_each_interfaces_own() {
    for (api, path) in [
        (Api::GitHub, "/repos/group/sub/app/statuses/abc"),
        (
            Api::GitLab,
            "/api/v4/projects/group%2Fsub%2Fapp/statuses/abc",
        ),
        (Api::Gitea, "/api/v1/repos/group/sub/app/statuses/abc"),
    ] {
        assert_eq!(place(&target(api), "abc").target(), path);
    }
    for bad in ["", "a/../b", "a//b", "a/b?c", "a/b#c", "a b", "/a"] {
        assert!(bad.parse::<Project>().is_err(), "{bad}");
    }
}

#[test]
fn pauses_double_up_to_an_hour_and_answers_are_told_apart() {
    let five = Duration::from_secs(5);
    assert_eq!(pause(five, 0, 1.0), five);
    assert_eq!(pause(five, 3, 1.0), five * 8);
    assert_eq!(pause(five, 3, 0.0), five * 4);
    assert_eq!(pause(five, 99, 1.0), LONGEST);
    assert_eq!(seconds(Duration::from_millis(1200)), 2);
    let answer = |status| Answer {
        status,
        retry_after: None,
    };
    for (status, webhook, commit_status) in [
        (204, Heard::Yes, Heard::Yes),
        (
            302,
            Heard::Later(Duration::ZERO),
            Heard::Later(Duration::ZERO),
        ),
        (
            401,
            Heard::Later(Duration::ZERO),
            Heard::Later(Duration::ZERO),
        ),
        (410, Heard::Never, Heard::Never),
        (422, Heard::Later(Duration::ZERO), Heard::Never),
        (
            503,
            Heard::Later(Duration::ZERO),
            Heard::Later(Duration::ZERO),
        ),
    ] {
        assert_eq!(heard(answer(status), false), webhook, "{status}");
        assert_eq!(heard(answer(status), true), commit_status, "{status}");
    }
    let slow = Answer {
        status: 429,
        retry_after: Some(Duration::from_secs(90)),
    };
    assert_eq!(heard(slow, true), Heard::Later(Duration::from_secs(90)));
}
