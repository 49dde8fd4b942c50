//! The page for people over plain HTTP: who gets in and sees what, what a browser is told about it, that candidates' text is
//! inert in it, and that scores are followed as they run; and in a real browser, where one can be had.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use tribunal_tests::hostile::{self, CORPUS};
use tribunal_tests::{Browser, Chromium, Repo, Role, Server, Stage, client, until};

const ADMIN: &str = "[admin]\nlisten = \"127.0.0.1:0\"\nnames = [\"tribunal.example\"]\n[calls]\nburst = 10000\nheartbeat = \"1s\"\n";

/// The id of the score whose files lie there.
fn score(stage: &Stage<'_>, out: &str) -> String {
    let report = client::report(&stage.out(out));
    let name = report["score"].as_str().unwrap();
    name.rsplit('/').next().unwrap().to_owned()
}

/// Elements that the page is made of; any other is somebody else's.
const OURS: &str = "html head meta title link script noscript body a header div span form button nav ul li main h1 h2 h3 p \
    section table caption thead tbody tr th td code strong br time bdi pre details summary dl dt dd article svg rect path \
    footer";

/// Nothing of the markup is a candidate's: known elements, no handlers, no addresses but our own, one script.
#[track_caller]
fn ours_alone(path: &str, page: &str) {
    let known: Vec<&str> = OURS.split_whitespace().collect();
    let mut scripts = 0;
    for tag in page.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').unwrap();
        let Some(tag) = tag
            .strip_prefix(|c: char| c.is_ascii_alphabetic())
            .map(|_| tag)
        else {
            assert!(
                tag.starts_with('/') || tag == "!DOCTYPE html",
                "{path}: <{tag}>"
            );
            continue;
        };
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        assert!(known.contains(&name), "{path}: <{tag}>");
        scripts += usize::from(name == "script");
        let mut rest = attributes;
        while let Some((attribute, value)) = rest.split_once("=\"") {
            let attribute = attribute.trim().rsplit(' ').next().unwrap();
            let (value, after) = value.split_once('"').unwrap();
            assert!(
                !attribute.starts_with("on") && attribute != "style",
                "{path}: <{tag}>"
            );
            if ["href", "src", "action"].contains(&attribute) {
                assert!(
                    value.starts_with('/') || value.starts_with('#'),
                    "{path}: <{tag}>"
                );
                assert!(!value.starts_with("//"), "{path}: <{tag}>");
            }
            rest = after;
        }
    }
    assert_eq!(scripts, 1, "{path}");
    assert!(page.contains("<script defer src=\"/static/page.js\"></script>"));
}

/// Every page that there is to a repository and a score of it.
fn pages(name: &str, score: &str) -> Vec<String> {
    let mut pages = vec!["/".to_owned()];
    for rest in ["", "?state=completed", "/leases", "/flaky", "/oracle"] {
        pages.push(format!("/repositories/{name}{rest}"));
    }
    pages.push(format!("/repositories/{name}/scores/{score}"));
    pages
}

#[test]
fn who_gets_in_and_what_a_browser_is_told() {
    let server = Server::with_config(ADMIN);
    let stage = Stage::small(&server);
    let other = Stage::small(&server);
    stage.honest_patch("mine");
    stage.score(&stage.agent(), "mine").expect_code(0);
    other.honest_patch("theirs");
    other.score(&other.agent(), "theirs").expect_code(0);
    let (mine, theirs) = (score(&stage, "mine"), score(&other, "theirs"));
    let (name, others) = (&stage.registered.name, &other.registered.name);
    let operator = server.token(Role::Operator, None);

    // Nobody, nonsense and agents see the form, or are told that they are not let in: nothing of what is there.
    let nobody = Browser::of(&server);
    let forged = format!("tbl_{}_{}", "0".repeat(16), "0".repeat(64));
    let strangers = [
        (nobody.clone(), 401),
        (Browser::bearer(&server, "nonsense"), 401),
        (Browser::bearer(&server, &forged), 401),
        (Browser::bearer(&server, &stage.registered.agent), 403),
        (nobody.clone().with("cookie: tribunal-session=x"), 401),
        (
            nobody
                .clone()
                .with(&format!("cookie: tribunal-session={}", "0".repeat(64))),
            401,
        ),
    ];
    let mut guarded = pages(name, &mine);
    guarded.push("/events".to_owned());
    guarded.push(format!("/repositories/{name}/events"));
    guarded.push(format!("/repositories/{name}/scores/{mine}/events"));
    for (stranger, status) in &strangers {
        for path in &guarded {
            let said = stranger.get(path);
            assert_eq!(said.status, *status, "{path} {stranger:?}");
            assert!(!said.body.contains("MERGE_OK"), "{path}");
        }
    }
    assert_eq!(nobody.get("/").header("www-authenticate"), "Bearer");

    // A repository's token sees its own; the operator sees all.
    for token in [&stage.registered.ci, &stage.registered.maintainer] {
        let own = Browser::bearer(&server, token);
        for path in pages(name, &mine) {
            let said = own.get(&path);
            assert_eq!(said.status, 200, "{path}");
            assert!(!said.body.contains(others.as_str()), "{path}");
        }
        for path in pages(others, &theirs).iter().skip(1) {
            let said = own.get(path);
            assert_eq!(said.status, 404, "{path}");
            assert!(!said.body.contains(&theirs[..12]), "{path}");
        }
        // Not by another repository's name either.
        let crossed = own.get(&format!("/repositories/{name}/scores/{theirs}"));
        assert_eq!(crossed.status, 404);
        let events = format!("/repositories/{others}/scores/{theirs}/events");
        assert_eq!(own.get(&events).status, 404);
        assert_eq!(
            own.get(&format!("/repositories/{others}/events")).status,
            404
        );
    }
    let all = Browser::bearer(&server, &operator);
    for path in pages(others, &theirs) {
        assert_eq!(all.get(&path).status, 200, "{path}");
    }
    // The reports are those of the role: what was held out is the operator's to read.
    let path = format!("/repositories/{name}/scores/{mine}");
    let operators = all.get(&path).body;
    assert!(operators.contains("This is the operator's report"));
    assert!(operators.contains("held-out draws "));
    let readers = Browser::bearer(&server, &stage.registered.maintainer)
        .get(&path)
        .body;
    assert!(!readers.contains("This is the operator") && !readers.contains("held-out draws "));
    let overview = all.get("/").body;
    assert!(overview.contains(name.as_str()) && overview.contains(others.as_str()));

    // A session: a name drawn for it, never the token; sign-out and revocation end it.
    let form = format!("token={operator}&to=%2Frepositories%2F{name}");
    let signed = nobody.post("/sign-in", &form);
    assert_eq!(signed.status, 303);
    assert_eq!(signed.header("location"), format!("/repositories/{name}"));
    let cookie = signed.header("set-cookie");
    for part in [
        "; HttpOnly",
        "; SameSite=Strict",
        "; Path=/",
        "; Max-Age=7200",
    ] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let secret = operator.rsplit('_').next().unwrap();
    assert!(!cookie.contains(secret) && !cookie.contains("tbl_"));
    let session = nobody.clone().with(&format!("cookie: {}", signed.cookie()));
    assert_eq!(session.get("/").status, 200);
    let proxied = nobody.clone().calling("tribunal.example");
    assert!(
        proxied
            .post("/sign-in", &form)
            .header("set-cookie")
            .contains("; Secure")
    );
    assert_eq!(session.post("/sign-out", "").status, 303);
    assert_eq!(session.get("/").status, 401);
    let fleeting = server.token(Role::Maintainer, Some(name));
    let signed = nobody.post("/sign-in", &format!("token={fleeting}&to=//evil.example"));
    assert_eq!(signed.header("location"), "/");
    let session = nobody.clone().with(&format!("cookie: {}", signed.cookie()));
    assert_eq!(session.get(&format!("/repositories/{name}")).status, 200);
    server.admin(&["token", "revoke", fleeting.split('_').nth(1).unwrap()]);
    assert_eq!(session.get(&format!("/repositories/{name}")).status, 401);
    for (token, status) in [(&forged, 401), (&stage.registered.agent, 403)] {
        let refused = nobody.post("/sign-in", &format!("token={token}"));
        assert_eq!(refused.status, status);
        assert_eq!(refused.header("set-cookie"), "");
    }

    // Strangers' names and strangers' forms.
    for host in ["evil.example", "tribunal.example.evil.example", ""] {
        let said = all.clone().calling(host).get("/");
        assert_eq!(said.status, 421, "{host}");
        assert!(said.body.is_empty());
    }
    for line in [
        "origin: http://evil.example",
        "sec-fetch-site: cross-site",
        "origin: null",
    ] {
        let said = nobody.clone().with(line).post("/sign-in", &form);
        assert_eq!(said.status, 403, "{line}");
    }

    // Read-only: every page answers GET alone.
    for path in pages(name, &mine).iter().chain([&"/nowhere".to_owned()]) {
        for method in ["POST", "PUT", "PATCH", "DELETE"] {
            assert_eq!(all.ask(method, path, "").status, 405, "{method} {path}");
        }
    }
    assert_eq!(all.get("/sign-out").status, 405);
    assert_eq!(all.get("/nowhere").status, 404);
    assert_eq!(all.get("/repositories/%3Cscript%3E").status, 404);

    // What every answer says to a browser.
    let asset = all.get("/static/page.css");
    for said in [all.get("/"), nobody.get("/"), all.get("/nowhere"), asset] {
        let policy = said.header("content-security-policy");
        for part in [
            "default-src 'none'",
            "style-src 'self'",
            "script-src 'self'",
            "connect-src 'self'",
            "form-action 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
        ] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe"));
        assert_eq!(said.header("x-content-type-options"), "nosniff");
        assert_eq!(said.header("referrer-policy"), "no-referrer");
    }
    assert_eq!(all.get("/").header("cache-control"), "no-store");
    let asset = nobody.get("/static/page.js");
    assert_eq!(asset.status, 200);
    let tag = asset.header("etag");
    let again = nobody.clone().with(&format!("if-none-match: {tag}"));
    assert_eq!(again.get("/static/page.js").status, 304);
    assert_eq!(nobody.get("/static/..%2fpage.css").status, 404);

    // Sign-ins are counted, whoever tries.
    let mut flood = (0..20).map(|_| nobody.post("/sign-in", "token=x").status);
    assert!(flood.any(|status| status == 429));
    assert_eq!(nobody.post("/sign-in", &form).header("retry-after"), "5");

    server.shutdown();
    let log = server.log();
    assert!(log.contains("signed in to the page"));
    assert!(!log.contains(secret), "the log holds a token");
}

#[test]
fn what_candidates_write_is_text_wherever_it_is_shown() {
    let server = Server::with_config(ADMIN);
    let stage = hostile::stage(&server);
    hostile::scored(&stage);
    let operator = server.token(Role::Operator, None);
    let secrets: Vec<String> = hostile::secrets(&server, &stage, &operator);
    let all = Browser::bearer(&server, &operator);
    let mut shown = String::new();
    for out in hostile::SCORES {
        for path in pages(&stage.registered.name, &score(&stage, out)) {
            let said = all.get(&path);
            assert_eq!(said.status, 200, "{path}");
            ours_alone(&path, &said.body);
            for c in ['\u{202e}', '\u{1b}', '\u{0}', '\u{2066}', '\u{61c}'] {
                assert!(!said.body.contains(c), "{path} holds {c:?}");
            }
            for secret in &secrets {
                assert!(
                    !said.body.contains(secret.as_str()),
                    "{path} holds a secret"
                );
            }
            shown.push_str(&said.body);
        }
    }
    // It is there, as text: the test would not see what is not shown at all.
    for (n, line) in CORPUS.iter().enumerate() {
        let marker = hostile::marker(n);
        assert!(shown.contains(&marker), "{marker} of {line:?} is nowhere");
    }
    assert!(shown.contains("&lt;script&gt;") && shown.contains("\\u{202e}"));
    assert!(
        shown.contains("subject &lt;img"),
        "the commit's subject is nowhere"
    );
    if let Some(chromium) = Chromium::found() {
        let name = &stage.registered.name;
        let mut paths = pages(name, &score(&stage, hostile::SCORES[0]));
        paths.retain(|path| !path.contains('?'));
        let looks = chromium.tries("looks", &server, &operator, &paths);
        let plain = chromium.tries("plain", &server, &operator, &paths[..2]);
        looks.holds();
        plain.holds();
    }
    server.shutdown();
}

#[test]
fn a_score_is_followed_to_its_end_and_streams_end_with_the_server() {
    let server = Server::with_config(ADMIN);
    let stage = Stage::of(&server, &Repo::slow(1.2));
    let name = stage.registered.name.clone();
    let ci = Browser::bearer(&server, &stage.registered.ci);
    let list = ci.clone();
    let of_list = format!("/repositories/{name}/events");
    let mut lists = list.events(&of_list);
    assert_eq!(lists.next().unwrap().1, r#"{"open":{}}"#);
    let mut chromium = Chromium::found().map(|chromium| {
        let (ci, here) = (&stage.registered.ci, format!("/repositories/{name}"));
        let mut trial = chromium.tries("live", &server, ci, &[here]);
        assert_eq!(trial.line(), "watching");
        trial
    });
    stage.honest_patch("slow");
    let told = std::thread::scope(|scope| {
        let scoring = scope.spawn(|| stage.score(&stage.agent(), "slow").code);
        let open = |page: &str| {
            let from = page.find("data-open=\"").map(|at| at + 11)?;
            Some(page[from..from + 32].to_owned())
        };
        let here = format!("/repositories/{name}");
        until("the score is listed", || {
            open(&ci.get(&here).body).is_some()
        });
        let id = open(&ci.get(&here).body).unwrap();
        let page = ci.get(&format!("{here}/scores/{id}")).body;
        // Without a script the page loads itself anew.
        assert!(page.contains("<noscript><meta http-equiv=\"refresh\" content=\"5\">"));
        let mut events = ci.events(&format!("{here}/scores/{id}/events"));
        assert_eq!(events.status, 200);
        let told: Vec<(String, String)> = events.by_ref().collect();
        assert_eq!(scoring.join().unwrap(), 0);
        // Asked again, it is told its end again.
        let again: Vec<_> = ci.events(&format!("{here}/scores/{id}/events")).collect();
        assert_eq!(again.last(), told.last());
        told
    });
    if let Some(trial) = chromium.take() {
        trial.holds();
    }
    assert_eq!(told.last().unwrap().0, "over");
    assert_eq!(told.last().unwrap().1, r#"{"line":"completed"}"#);
    let lines: Vec<&String> = told.iter().map(|(_, data)| data).collect();
    assert!(
        lines
            .iter()
            .any(|line| line.contains("property lane: attempt") && line.contains("\"most\":7")),
        "{lines:?}"
    );
    // The list has seen it come and go.
    let seen: Vec<String> = lists
        .by_ref()
        .map(|(_, data)| data)
        .take_while(|data| data != r#"{"open":{}}"#)
        .collect();
    assert!(
        !seen.is_empty() && seen.iter().all(|data| data.contains("\"line\"")),
        "{seen:?}"
    );
    // A stream that is open when the server leaves ends, and says so.
    let leaving = std::thread::spawn(move || lists.collect::<Vec<_>>());
    server.shutdown();
    let last = leaving.join().unwrap();
    assert_eq!(
        last.last().map(|(kind, _)| kind.as_str()),
        Some("closed"),
        "{last:?}"
    );
}

#[test]
fn the_page_can_be_left_out() {
    let server = Server::with_config("[admin]\nlisten = \"127.0.0.1:0\"\npage = \"off\"\n");
    let operator = server.token(Role::Operator, None);
    let all = Browser::bearer(&server, &operator);
    for path in ["/", "/sign-in", "/static/page.css"] {
        assert_eq!(all.get(path).status, 404, "{path}");
    }
    assert_eq!(all.get("/metrics").status, 200);
    server.shutdown();
}
