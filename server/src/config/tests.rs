#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use super::*;
use std::path::Path;

fn parse(text: &str) -> Result<Config, Mistakes> {
    from_toml(text, Path::new("/etc/tribunal"))
}

#[test]
fn an_empty_file_is_the_defaults_and_they_hold() {
    let config = parse("").unwrap();
    assert_eq!(config, Config::default());
    check(&config).unwrap();
}

#[test]
fn what_is_shown_says_the_same() {
    let text = r#"
        name = "eu-1"
        log = "info,tribunal_server=debug"
        log_format = "json"
        [listen]
        address = "[::1]:9000"
        certificate = "tls/cert.pem"
        key = "/keys/key.pem"
        client_ca = "ca.pem"
        [signing]
        key = "credential:signing-key"
        [queue]
        workers = 3
        stall = "90s"
        drain = "2m"
        [calls]
        per_second = 7
        heartbeat = "1500ms"
        [uploads]
        bytes = "64MiB"
        time = "30s"
        at_once = 2
        [fetch]
        protocols = ["ssh", "git"]
        git_config = "git.conf"
        environment = ["SSH_AUTH_SOCK"]
        [engine]
        host = "unix:///run/docker.sock"
        [rooms]
        ready = 5
        [oracle]
        plant = "asked"
        [keep]
        uploads = "7d"
        [admin]
        listen = "[::1]:9100"
        page = "off"
        names = ["tribunal.example"]
        [traces]
        collector = "http://127.0.0.1:4317"
        [notify]
        retry = "2s"
        give_up = "2h"
        ca = "ca.pem"
        [[notify.webhook]]
        name = "ci"
        url = "https://hooks.example/x?y=1"
        secret = "hook.secret"
        repositories = ["app", "lib"]
        [[notify.webhook]]
        name = "all"
        url = "http://127.0.0.1:9/"
        secret = "/other.secret"
        [[notify.status]]
        repository = "app"
        api = "gitea"
        url = "https://git.example"
        project = "owner/app"
        token = "credential:forge"
    "#;
    let config = parse(text).unwrap();
    let tls = config.listen.tls.clone().unwrap();
    assert_eq!(tls.certificate, Path::new("/etc/tribunal/tls/cert.pem"));
    assert_eq!(tls.key, SecretFile::Path("/keys/key.pem".into()));
    let credential = config.signing.key.as_ref().unwrap().to_string();
    assert_eq!(credential, "credential:signing-key");
    assert_eq!(config.uploads.limits.seconds, 30);
    assert_eq!(config.calls.heartbeat, Duration::from_millis(1500));
    assert_eq!(parse(&config.to_toml()).unwrap(), config);
    let defaults = Config::default();
    assert_eq!(parse(&defaults.to_toml()).unwrap(), defaults);
}

#[test]
fn every_mistake_is_told_at_once() {
    let text = r#"
        nme = "x"
        log = 5
        [listen]
        address = "localhost"
        key = "k.pem"
        [queue]
        workers = 0
        capacity = "many"
        stall = 30
        [uploads]
        bytes = "1GB"
        [fetch]
        protocols = ["ftp"]
        [keep]
        upload = "7d"
        [nonsense]
    "#;
    let Mistakes(mistakes) = parse(text).unwrap_err();
    let keys: Vec<_> = mistakes.iter().map(|m| m.key.as_str()).collect();
    assert_eq!(
        keys,
        [
            "listen.address",
            "listen.certificate",
            "queue.workers",
            "queue.capacity",
            "queue.stall",
            "uploads.bytes",
            "fetch.protocols",
            "keep.upload",
            "log",
            "nme",
            "nonsense",
        ]
    );
    let told = Mistakes(mistakes).to_string();
    assert!(told.contains("queue.workers: must be a whole number from 1 to 1024, got 0"));
    assert!(told.contains("keep.upload: is not a key; known are trees, uploads"));
}

#[test]
fn who_is_told_is_told_exactly() {
    let text = r#"
        [notify]
        status = 5
        [[notify.webhook]]
        name = "Two Words"
        url = "http://hooks.example/"
        [[notify.webhook]]
        name = "twice"
        url = "https://h.example"
        secret = "s"
        repositories = ["a b"]
        [[notify.webhook]]
        name = "twice"
        url = "https://h.example"
        secret = "s"
        nonsense = 1
    "#;
    let Mistakes(mistakes) = parse(text).unwrap_err();
    let keys: Vec<_> = mistakes.iter().map(|m| m.key.as_str()).collect();
    assert_eq!(
        keys,
        [
            "notify.webhook.name",
            "notify.webhook.url",
            "notify.webhook.secret",
            "notify.webhook.repositories",
            "notify.webhook.nonsense",
            "notify.status",
            "notify.webhook",
        ]
    );
    let Mistakes(mistakes) = parse("[[notify.status]]\napi = \"svn\"").unwrap_err();
    assert_eq!(mistakes.len(), 5, "{mistakes:?}");
    // Files are looked at by the check.
    let there =
        "[[notify.webhook]]\nname = \"n\"\nurl = \"https://h.example\"\nsecret = \"/nonexistent\"";
    let Mistakes(mistakes) = check(&parse(there).unwrap()).unwrap_err();
    assert_eq!(mistakes[0].key, "notify");
    assert!(mistakes[0].what.contains("/nonexistent"));
}

#[test]
fn a_file_that_is_not_toml_names_the_place() {
    let told = parse("[listen\naddress = 1").unwrap_err().to_string();
    assert!(told.contains("line 1"), "{told}");
}

#[test]
fn plain_text_stays_on_this_machine() {
    let mut config = Config::default();
    for (address, fits) in [
        ("127.0.0.1:1", true),
        ("[::1]:1", true),
        ("0.0.0.0:1", false),
        ("192.0.2.1:1", false),
        ("[::]:1", false),
    ] {
        config.listen.address = address.parse().unwrap();
        assert_eq!(check(&config).is_ok(), fits, "{address}");
    }
    config.admin.listen = Some("0.0.0.0:1".parse().unwrap());
    config.admin.names = vec!["https://tribunal.example/".to_owned()];
    let Mistakes(mistakes) = check(&config).unwrap_err();
    assert_eq!(mistakes[0].key, "listen.address");
    assert_eq!(mistakes[1].key, "admin.listen");
    assert_eq!(mistakes[2].key, "admin.names");
    assert!(mistakes[0].what.contains("listen.certificate"));
}

#[test]
fn files_that_are_missing_and_names_that_do_not_fit_are_told() {
    let config = Config {
        name: "a b".to_owned(),
        log: "tribunal_server=loud".to_owned(),
        listen: Listen {
            tls: Some(TlsFiles {
                certificate: "/nonexistent/cert.pem".into(),
                key: SecretFile::Path("/nonexistent/key.pem".into()),
                client_ca: None,
            }),
            ..Config::default().listen
        },
        ..Config::default()
    };
    let Mistakes(mistakes) = check(&config).unwrap_err();
    let keys: Vec<_> = mistakes.iter().map(|m| m.key.as_str()).collect();
    assert_eq!(keys, ["name", "listen.certificate", "listen.key", "log"]);
}

#[test]
fn flags_outrank_the_file() {
    let config = parse("log = \"debug\"\n[queue]\nworkers = 3")
        .unwrap()
        .with(Overrides {
            listen: Some("127.0.0.1:1".parse().unwrap()),
            workers: Some(5),
            log: None,
        });
    assert_eq!(config.queue.workers, 5);
    assert_eq!(config.listen.address.port(), 1);
    assert_eq!(config.log, "debug");
}

#[test]
fn the_example_is_the_defaults() {
    let example = parse(include_str!("../../../deploy/server.toml")).unwrap();
    assert_eq!(example, Config::default());
}

#[test]
fn a_running_server_takes_up_what_it_can_and_names_the_rest() {
    let tls = "[listen]\ncertificate = \"a.pem\"\nkey = \"k.pem\"\n";
    let old = parse(tls).unwrap();
    let new = parse(
        "log = \"debug\"\n[listen]\ncertificate = \"b.pem\"\nkey = \"k.pem\"\n[queue]\nworkers = 63\ndrain = \"1m\"\n[keep]\ntrees = \"1d\"\n[rooms]\nready = 9",
    )
    .unwrap();
    let (taken, changes) = old.taking_up(&new);
    assert_eq!(
        changes.taken_up,
        ["keep.trees", "listen.certificate", "log", "queue.drain"]
    );
    assert_eq!(changes.at_restart, ["queue.workers", "rooms.ready"]);
    // What was taken up is all that is left of the difference.
    let (_, left) = taken.taking_up(&new);
    assert_eq!(left.taken_up, [""; 0]);
    assert_eq!(left.at_restart, changes.at_restart);
    let plain = Config::default();
    let (taken, changes) = plain.taking_up(&old);
    assert_eq!(taken, plain);
    assert_eq!(changes.at_restart, ["listen.certificate", "listen.key"]);
}
