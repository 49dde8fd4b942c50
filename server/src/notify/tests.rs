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
        token: SecretFile::Path("/nonexistent".into()),
    }
}

fn told(record: &ScoreRecord, statuses: Vec<StatusTarget>) -> Vec<crate::store::Message> {
    let hook = Webhook {
        name: "ci".to_owned(),
        repositories: vec!["other".parse().unwrap()],
        url: "https://hooks.example/".parse().unwrap(),
        secret: SecretFile::Path("/nonexistent".into()),
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
fn a_start_is_one_open_status_a_verdict_under_names_of_its_own() {
    let ends: Vec<String> = told(&completed(), vec![target(Api::GitHub)])
        .into_iter()
        .map(|m| m.id)
        .collect();
    for (api, state) in [
        (Api::GitHub, "pending"),
        (Api::Gitea, "pending"),
        (Api::GitLab, "running"),
    ] {
        let mut record = record(ScoreState::Running);
        record.ended = None;
        let messages = told(&record, vec![target(api)]);
        assert_eq!(messages.len(), 3, "a webhook hears of ends alone");
        for message in &messages {
            let body: serde_json::Value = serde_json::from_str(&message.body).unwrap();
            assert_eq!(body["state"], state);
            let description = body["description"].as_str().unwrap();
            assert!(description.starts_with("runs against 000000000000"));
            assert!(!ends.contains(&message.id));
        }
    }
    let mut queued = record(ScoreState::Queued);
    queued.ended = None;
    assert_eq!(told(&queued, vec![target(Api::GitHub)]).len(), 0);
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
    let ill = Heard::Later(Ill::Target(Duration::ZERO));
    for (status, webhook, commit_status) in [
        (204, Heard::Yes, Heard::Yes),
        (302, ill, ill),
        (400, ill, Heard::Never),
        (401, ill, ill),
        (404, ill, Heard::Later(Ill::Message)),
        (410, Heard::Never, Heard::Never),
        (422, ill, Heard::Later(Ill::Message)),
        (503, ill, ill),
    ] {
        assert_eq!(heard(answer(status), false), webhook, "{status}");
        assert_eq!(heard(answer(status), true), commit_status, "{status}");
    }
    let slow = Answer {
        status: 429,
        retry_after: Some(Duration::from_secs(90)),
    };
    let told = Heard::Later(Ill::Target(Duration::from_secs(90)));
    assert_eq!(heard(slow, true), told);
}

#[tokio::test]
async fn what_is_heard_of_nobody_is_put_off_and_given_up_at_last() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    // A port that was free a moment ago and is held without anybody listening.
    let held = tokio::net::TcpSocket::new_v4().unwrap();
    held.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}/", held.local_addr().unwrap());
    let hook = Webhook {
        name: "deaf".to_owned(),
        repositories: Vec::new(),
        url: url.parse().unwrap(),
        secret: SecretFile::Path(secret),
    };
    let mut config = Config::default();
    config.notify.webhooks.push(hook);
    let store: Arc<dyn Store> = Arc::new(crate::store::MemoryStore::new());
    let asked = completed().asked;
    let aborted = Aborted::new(AbortedCode::Internal, "it broke");
    store.create_score(&asked).unwrap();
    store
        .abort_score(&asked.id, clock::now(), &aborted)
        .unwrap();
    let (change, watched) = watch::channel(config);
    let notifier = Notifier {
        store: Arc::clone(&store),
        held: watched,
        observer: crate::metrics::nobody(),
    };
    let mut quiet = Quiet::new();
    notifier.round(&mut quiet).await.unwrap();
    assert!(quiet["webhook deaf"] > clock::now());
    let later = UnixTime(clock::now().0 + 60);
    assert_eq!(store.due(later, 9).unwrap()[0].tries, 1);
    assert!(store.untold(9).unwrap().is_empty());
    // The target is left alone, whatever else is due for it.
    store.put_off(1, UnixTime(0)).unwrap();
    notifier.round(&mut quiet).await.unwrap();
    assert_eq!(store.due(later, 9).unwrap()[0].tries, 2);
    change.send_modify(|config| config.notify.give_up = Duration::ZERO);
    notifier.round(&mut Quiet::new()).await.unwrap();
    assert_eq!(store.deliveries().unwrap(), 0);
}

/// An authority, and its certificate for 127.0.0.1.
fn certificate(folder: &std::path::Path, name: &str) {
    let status = std::process::Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt"])
        .args(["ec_paramgen_curve:P-256", "-nodes", "-days", "2"])
        .args([
            "-subj",
            "/CN=receiver",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
        ])
        .args([
            "-keyout",
            &format!("{name}.key"),
            "-out",
            &format!("{name}.pem"),
        ])
        .current_dir(folder)
        .stderr(std::process::Stdio::null())
        .status();
    assert!(status.unwrap().success());
}

#[tokio::test]
async fn a_receiver_is_told_over_tls_only_if_its_authority_is_known() {
    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let folder = tempfile::tempdir().unwrap();
    for name in ["ours", "other"] {
        certificate(folder.path(), name);
    }
    let file = |name: &str| folder.path().join(name);
    let chain = CertificateDer::from_pem_file(file("ours.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(file("ours.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![chain], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            let mut request = vec![0; 4096];
            let length = stream.read(&mut request).await.unwrap();
            let answer = b"HTTP/1.1 202 taken\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(answer).await.unwrap();
            stream.flush().await.unwrap();
            return String::from_utf8(request[..length].to_vec()).unwrap();
        }
    });
    let to: Endpoint = format!("https://{address}/a?b=c").parse().unwrap();
    let header = [("webhook-id", Zeroizing::new("msg_1".to_owned()))];
    for ca in [None, Some(file("other.pem"))] {
        let post = Post::new(ca.as_deref()).unwrap();
        let told = post.send(&to, &header, "{}").await;
        assert!(matches!(told, Err(NotifyError::Unheard(_))), "{told:?}");
    }
    let post = Post::new(Some(&file("ours.pem"))).unwrap();
    let answer = post.send(&to, &header, "{}").await.unwrap();
    let wait = Some(Duration::from_secs(7));
    assert_eq!((answer.status, answer.retry_after), (202, wait));
    let request = serving.await.unwrap();
    assert!(request.starts_with("POST /a?b=c HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("webhook-id: msg_1\r\n"), "{request}");
    assert!(Post::new(Some(&file("none.pem"))).is_err());
}
