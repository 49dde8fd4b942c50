//! Ends of scores are told outside: signed webhooks and commit statuses, again and again until they are heard, to nobody but
//! whom the operator named.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use std::fmt::Write as _;
use std::path::Path;
use tribunal_tests::client::ended;
use tribunal_tests::port::metrics;
use tribunal_tests::receiver::{Heard, Receiver};
use tribunal_tests::{Repo, Server, Stage, Wire};

const KEY: &[u8] = b"thirty-two bytes of a test's key";
const TOKEN: &str = "glpat-tokenthatnobodymaysee";

fn secrets(folder: &Path) -> (String, String) {
    let secret = folder.join("hook.secret");
    std::fs::write(&secret, format!("whsec_{}\n", STANDARD.encode(KEY))).unwrap();
    let token = folder.join("forge.token");
    std::fs::write(&token, format!("{TOKEN}\n")).unwrap();
    (secret.display().to_string(), token.display().to_string())
}

fn webhook(address: &str, secret: &str) -> String {
    format!(
        "log = \"debug\"\n[admin]\nlisten = \"127.0.0.1:0\"\n[notify]\nretry = \"1s\"\n[[notify.webhook]]\nname = \"gate\"\nurl = \"http://{address}/hooks?for=tribunal\"\nsecret = \"{secret}\"\n"
    )
}

/// As the receiving side of the specification does it.
#[track_caller]
fn is_signed(heard: &Heard) {
    let (id, time) = (
        heard.header("webhook-id"),
        heard.header("webhook-timestamp"),
    );
    let mut mac = Hmac::<Sha256>::new_from_slice(KEY).unwrap();
    mac.update(format!("{id}.{time}.{}", heard.body).as_bytes());
    let tag = heard
        .header("webhook-signature")
        .strip_prefix("v1,")
        .unwrap();
    mac.verify_slice(&STANDARD.decode(tag).unwrap()).unwrap();
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    assert!(now.as_secs().abs_diff(time.parse().unwrap()) < 120);
}

fn says_nothing_of(server: &Server, words: &[&str]) {
    let log = server.log();
    assert!(log.contains("a message was not taken"), "nothing failed");
    for word in words {
        assert!(!log.contains(word), "the log holds {word}");
    }
}

#[test]
fn a_webhook_is_signed_and_tried_again_under_the_same_name_until_it_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let (secret, _) = secrets(folder.path());
    // Ill at first, then it sends elsewhere, then it hears.
    let receiver = Receiver::new(|before, _| match before.len() {
        0 => 503,
        1 => 302,
        _ => 204,
    });
    let server = Server::with_config(&webhook(receiver.address(), &secret));
    let stage = Stage::small(&server);
    let good = stage.honest_patch("good");
    stage.score(&stage.agent(), "good").expect_code(0);
    let heard = receiver.taken(1);
    assert_eq!(heard.len(), 3);
    for each in &heard {
        is_signed(each);
        assert_eq!(each.path, "/hooks?for=tribunal");
        assert_eq!(each.header("webhook-id"), heard[0].header("webhook-id"));
        assert_eq!(each.body, heard[0].body);
        assert_eq!(each.header("host"), receiver.address());
    }
    let times: Vec<u64> = heard
        .iter()
        .map(|h| h.header("webhook-timestamp").parse().unwrap())
        .collect();
    assert!(times[0] < times[1] && times[1] < times[2], "{times:?}");
    let told = heard[0].json();
    assert_eq!(told["type"], "score.completed");
    assert_eq!(told["data"]["head"], good.as_str());
    assert_eq!(told["data"]["repository"], stage.registered.name.as_str());
    assert_eq!(told["data"]["verdicts"]["src_score"], "PASS");
    let wrong = stage.wrong_patch("wrong");
    stage.score(&stage.agent(), "wrong").expect_code(1);
    let last = receiver.taken(2).pop().unwrap();
    is_signed(&last);
    assert_eq!(last.json()["data"]["head"], wrong.as_str());
    assert_eq!(last.json()["data"]["verdicts"]["src_score"], "FAIL");
    assert_ne!(last.header("webhook-id"), heard[0].header("webhook-id"));
    let seen = metrics(&server);
    assert_eq!(seen["tribunal_messages_total{outcome=\"heard\"}"], 2.0);
    assert_eq!(seen["tribunal_messages_total{outcome=\"later\"}"], 2.0);
    assert_eq!(seen["tribunal_messages_waiting"], 0.0);
    server.shutdown();
    says_nothing_of(&server, &[&STANDARD.encode(KEY), "v1,"]);
}

#[test]
fn a_restart_loses_no_message_however_the_server_ended() {
    let folder = tempfile::tempdir().unwrap();
    let (secret, _) = secrets(folder.path());
    let nobody = Receiver::new(|_, _| 503);
    let address = nobody.address().to_owned();
    // One that is never there holds up nobody else.
    let deaf = format!(
        "[[notify.webhook]]\nname = \"deaf\"\nurl = \"http://127.0.0.1:9/\"\nsecret = \"{secret}\"\n"
    );
    let server = Server::with_config(&(webhook(&address, &secret) + &deaf));
    let stage = Stage::small(&server);
    let first = stage.honest_patch("first");
    stage.score(&stage.agent(), "first").expect_code(0);
    server.kill();
    server.start();
    let second = stage.honest_patch("second");
    stage.score(&stage.agent(), "second").expect_code(0);
    server.shutdown();
    drop(nobody);
    let receiver = Receiver::at(&address, |_, _| 200);
    server.start();
    let heard = receiver.taken(2);
    let mut heads: Vec<String> = heard
        .iter()
        .map(|h| h.json()["data"]["head"].as_str().unwrap().to_owned())
        .collect();
    heads.sort();
    let mut wanted = [first, second];
    wanted.sort();
    assert_eq!(heads, wanted);
    heard.iter().for_each(is_signed);
    server.shutdown();
}

/// What one interface is to hear: path, header and value, the name of a context, the words of states.
struct Forge {
    api: &'static str,
    place: fn(&str) -> String,
    header: (&'static str, &'static str),
    context: &'static str,
    bad: &'static str,
}

/// That a score runs, which whoever looks rarely may miss.
fn is_open(heard: &Heard) -> bool {
    let state = &heard.json()["state"];
    state == "pending" || state == "running"
}

const FORGES: [Forge; 3] = [
    Forge {
        api: "github",
        place: |head| format!("/github/repos/owner/app/statuses/{head}"),
        header: ("authorization", "Bearer glpat-tokenthatnobodymaysee"),
        context: "context",
        bad: "failure",
    },
    Forge {
        api: "gitlab",
        place: |head| format!("/gitlab/api/v4/projects/owner%2Fapp/statuses/{head}"),
        header: ("private-token", TOKEN),
        context: "name",
        bad: "failed",
    },
    Forge {
        api: "gitea",
        place: |head| format!("/gitea/api/v1/repos/owner/app/statuses/{head}"),
        header: ("authorization", "token glpat-tokenthatnobodymaysee"),
        context: "context",
        bad: "failure",
    },
];

#[test]
fn commits_get_one_status_a_verdict_in_each_interface_and_only_against_the_tip() {
    let folder = tempfile::tempdir().unwrap();
    let (secret, token) = secrets(folder.path());
    // The first of each interface is sent elsewhere, where nobody may go with a token.
    let receiver = Receiver::new(|before, now| {
        let forge = |heard: &Heard| heard.path.split('/').nth(1).map(str::to_owned);
        let mut ends = before.iter().filter(|h| !is_open(h));
        match is_open(now) || ends.any(|h| forge(h) == forge(now)) {
            true => 201,
            false => 302,
        }
    });
    let mut config = webhook("127.0.0.1:9", &secret);
    config = config
        .split("[[notify.webhook]]")
        .next()
        .unwrap()
        .to_owned();
    let server = Server::with_config(&config);
    let stages = FORGES.each_ref().map(|_| Stage::small(&server));
    for (forge, stage) in FORGES.iter().zip(&stages) {
        write!(
            config,
            "[[notify.status]]\nrepository = \"{}\"\napi = \"{}\"\nurl = \"http://{}/{}\"\nproject = \"owner/app\"\ntoken = \"{token}\"\n",
            stage.registered.name,
            forge.api,
            receiver.address(),
            forge.api
        )
        .unwrap();
    }
    server.reconfigure(&format!(
        "{config}[oracle]\nplant = \"asked\"\n[rooms]\nready = 0\n"
    ));
    let told = server.reload();
    assert!(told.contains("taken_up=\"notify.status\""), "{told}");
    for (number, (forge, stage)) in FORGES.iter().zip(&stages).enumerate() {
        let old_base = stage.origin.head();
        stage.honest_patch("landed");
        stage.land();
        let head = stage.wrong_patch("wrong");
        // Against an older base: a verdict that says nothing about merging now.
        let out = stage.out("older");
        let older = ["score", "--base", &old_base, "--out", out.to_str().unwrap()];
        stage.agent().run(&older).expect_code(1);
        stage.score(&stage.agent(), "wrong").expect_code(1);
        let heard = receiver.taken_of((number + 1) * 3, |h| !is_open(h));
        let own: Vec<&Heard> = heard
            .iter()
            .filter(|h| h.path == (forge.place)(&head))
            .collect();
        assert_eq!(own.len(), 4, "{heard:#?}");
        for each in &own {
            assert_eq!(each.header(forge.header.0), forge.header.1);
            assert_eq!(each.header("content-type"), "application/json");
        }
        let said: Vec<(String, String)> = own[1..]
            .iter()
            .map(|h| {
                let json = h.json();
                let text = |key: &str| json[key].as_str().unwrap().to_owned();
                let tip = stage.origin.head();
                assert!(text("description").contains(&tip[..12]), "{json}");
                (text(forge.context), text("state"))
            })
            .collect();
        let said: Vec<(&str, &str)> = said.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(
            said,
            [
                ("tribunal/src_score", forge.bad),
                ("tribunal/oracle_integrity", "success"),
                ("tribunal/flake_lease", "success"),
            ]
        );
    }
    let heard = receiver.heard();
    let ends = heard.iter().filter(|h| !is_open(h)).count();
    assert_eq!(ends, 12, "{heard:#?}");
    assert!(heard.iter().all(|h| h.path != "/elsewhere"));
    server.shutdown();
    says_nothing_of(&server, &[TOKEN]);
}

#[test]
fn a_commit_whose_score_runs_says_so_until_it_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let (_, token) = secrets(folder.path());
    let receiver = Receiver::new(|_, _| 201);
    let server = Server::with_config("[notify]\nretry = \"1s\"\n");
    let stage = Stage::of(&server, &Repo::slow(0.5));
    server.reconfigure(&format!(
        "[notify]\nretry = \"1s\"\n[[notify.status]]\nrepository = \"{}\"\napi = \"github\"\nurl = \"http://{}\"\nproject = \"owner/app\"\ntoken = \"{token}\"\n[oracle]\nplant = \"asked\"\n[rooms]\nready = 0\n",
        stage.registered.name,
        receiver.address(),
    ));
    assert!(server.reload().contains("taken_up=\"notify.status\""));
    let said = |heard: &[Heard], head: &str| -> Vec<(String, String)> {
        let own = heard.iter().filter(|h| h.path.ends_with(head));
        let text = |h: &Heard, key: &str| h.json()[key].as_str().unwrap().to_owned();
        own.map(|h| (text(h, "context"), text(h, "state")))
            .collect()
    };
    let contexts = [
        "tribunal/src_score",
        "tribunal/oracle_integrity",
        "tribunal/flake_lease",
    ];
    let all = |state: &str| contexts.map(|context| (context.to_owned(), state.to_owned()));
    let head = stage.honest_patch("slow and right");
    let client = stage.agent().spawn(&["score"]);
    let begun = receiver.taken(3);
    assert_eq!(said(&begun, &head), all("pending"));
    assert!(
        begun[0].json()["description"]
            .as_str()
            .unwrap()
            .starts_with("runs against")
    );
    assert_eq!(ended(client).code, 0);
    let heard = receiver.taken(6);
    assert_eq!(said(&heard[3..], &head), all("success"));

    // One that is cancelled does not stay open.
    let wire = Wire::new(&server, &stage.registered, &stage.registered.agent);
    let head = stage.wrong_patch("slow and cancelled");
    stage.send(&stage.registered.agent, &head);
    let score = wire.create(wire.asking(&head, "cancelled")).unwrap();
    let begun = receiver.taken(9);
    assert_eq!(said(&begun, &head), all("pending"));
    wire.cancel(&score.name).unwrap();
    let heard = receiver.taken(12);
    assert_eq!(said(&heard, &head)[3..], all("error"));
    server.shutdown();
    assert_eq!(receiver.heard().len(), 12, "something was said twice");
}
