//! Real clients against a replay server of this process: curl and Python's urllib, over http and https, on ports of this
//! machine's loopback. The room's own clients (requests, httpx, aiohttp) are tested in its containers.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test ends at the first surprise"
)]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::net::Ipv4Addr;
use std::process::Output;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};
use tokio::process::Command;
use tribunal_transport::{Config, serve};

const NODE: &str = "tests/sealed/test_rates.py::test_usd";

/// PID 1's side.
struct Pid1 {
    orders: DuplexStream,
    answers: Lines<BufReader<DuplexStream>>,
    ports: Vec<u16>,
    names: u16,
    authority: tempfile::NamedTempFile,
}

impl Pid1 {
    async fn start() -> Self {
        let (orders, theirs) = tokio::io::duplex(1 << 16);
        let (said, answers) = tokio::io::duplex(1 << 16);
        let config = Config {
            address: Ipv4Addr::LOCALHOST,
            ports: vec![0, 0],
            names: 0,
            own_name: "tribunal".to_owned(),
        };
        tokio::spawn(async move { serve(config, theirs, said).await.unwrap() });
        let mut pid1 = Self {
            orders,
            answers: BufReader::new(answers).lines(),
            ports: Vec::new(),
            names: 0,
            authority: tempfile::NamedTempFile::new().unwrap(),
        };
        let ready = pid1.heard().await["ready"].take();
        pid1.ports = serde_json::from_value(ready["ports"].clone()).unwrap();
        pid1.names = serde_json::from_value(ready["names"].clone()).unwrap();
        std::fs::write(pid1.authority.path(), ready["authority"].as_str().unwrap()).unwrap();
        pid1
    }

    async fn tell(&mut self, order: Value) {
        let line = format!("{order}\n");
        self.orders.write_all(line.as_bytes()).await.unwrap();
    }

    async fn heard(&mut self) -> Value {
        let line = self.answers.next_line().await.unwrap().expect("it ended");
        serde_json::from_str(&line).unwrap()
    }

    async fn body(&mut self, text: &[u8]) -> String {
        let sha256: String = Sha256::digest(text)
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        self.tell(json!({"body": {"sha256": sha256, "data": STANDARD.encode(text)}}))
            .await;
        sha256
    }

    async fn on(&mut self, http: Value) {
        self.tell(json!({"cassette": {"node": NODE, "http": http}}))
            .await;
        self.tell(json!({"on": {"node": NODE}})).await;
        assert_eq!(self.heard().await, json!({"on": {"known": true}}));
    }

    async fn off(&mut self) -> (Vec<String>, Vec<String>) {
        self.tell(json!({"off": {}})).await;
        let off = self.heard().await["off"].take();
        let list = |key: &str| serde_json::from_value(off[key].clone()).unwrap();
        (list("used"), list("misses"))
    }

    async fn curl(&self, arguments: &[&str]) -> Output {
        let [plain, tls] = self.ports[..] else {
            unreachable!()
        };
        Command::new("curl")
            .args([
                "--silent",
                "--show-error",
                "--max-time",
                "10",
                "--noproxy",
                "*",
            ])
            .args(["--connect-to", &format!(":80:127.0.0.1:{plain}")])
            .args(["--connect-to", &format!(":443:127.0.0.1:{tls}")])
            .arg("--cacert")
            .arg(self.authority.path())
            .args(arguments)
            .output()
            .await
            .unwrap()
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[tokio::test]
async fn curl_is_answered_from_the_record_over_http_and_https() {
    let mut pid1 = Pid1::start().await;
    let body = pid1.body(b"{\"usd\": 1.08}").await;
    pid1.on(json!([
        {"method": "GET", "path": "/rates/usd", "host": "api.example.org", "query": "day=1", "status": 200,
         "headers": {"content-type": "application/json"}, "body_sha256": body},
        {"method": "GET", "path": "/old", "status": 302, "headers": {"location": "/rates/usd?day=1"}},
        {"method": "GET", "path": "/rates/usd", "host": "api.example.org", "query": "day=1", "status": 503},
        {"method": "HEAD", "path": "/rates/usd", "status": 200, "headers": {"content-length": "13", "etag": "\"x\""}},
        {"method": "POST", "path": "/notes", "request_sha256": hex("hello"), "status": 201},
        {"method": "GET", "path": "/stream", "status": 200, "headers": {"transfer-encoding": "chunked"},
         "body_sha256": body},
    ]))
    .await;
    let first = pid1
        .curl(&["--include", "--location", "https://api.example.org/old"])
        .await;
    let shown = text(&first);
    assert!(
        shown.contains("HTTP/1.1 302 ") && shown.contains("HTTP/1.1 200 "),
        "{shown} {first:?}"
    );
    assert!(shown.ends_with("{\"usd\": 1.08}"), "{shown}");
    assert!(
        !shown.to_lowercase().contains("\ndate:"),
        "no header of our own: {shown}"
    );
    let second = pid1
        .curl(&["--include", "http://api.example.org/rates/usd?day=1"])
        .await;
    assert!(text(&second).starts_with("HTTP/1.1 503 "), "{second:?}");
    let head = pid1
        .curl(&["--head", "https://other.example.org/rates/usd"])
        .await;
    assert!(text(&head).contains("content-length: 13"), "{head:?}");
    let posted = pid1
        .curl(&[
            "--include",
            "--header",
            "transfer-encoding: chunked",
            "--data",
            "hello",
            "http://a.example/notes",
        ])
        .await;
    assert!(text(&posted).starts_with("HTTP/1.1 201 "), "{posted:?}");
    let stream = pid1.curl(&["--include", "http://a.example/stream"]).await;
    assert!(
        text(&stream).contains("transfer-encoding: chunked"),
        "{stream:?}"
    );
    assert!(text(&stream).ends_with("{\"usd\": 1.08}"), "{stream:?}");
    let (used, misses) = pid1.off().await;
    assert_eq!(misses, Vec::<String>::new());
    assert_eq!(
        used,
        [
            "http:GET /rates/usd",
            "http:GET /old",
            "http:GET /rates/usd",
            "http:HEAD /rates/usd",
            "http:POST /notes",
            "http:GET /stream"
        ]
    );
}

#[tokio::test]
async fn what_is_not_recorded_is_a_miss_and_says_so() {
    let mut pid1 = Pid1::start().await;
    pid1.on(json!([{"method": "GET", "path": "/a", "host": "api.example.org", "status": 200}]))
        .await;
    let miss = pid1
        .curl(&["--include", "https://api.example.org/b?token=1"])
        .await;
    assert!(text(&miss).starts_with("HTTP/1.1 599 "), "{miss:?}");
    assert!(
        text(&miss).ends_with("cassette-miss: http:GET api.example.org/b?token=1\n"),
        "{miss:?}"
    );
    // A client that trusts somebody else, one that speaks something else, and one that leaves at once.
    let stranger = pid1
        .curl(&["--cacert", "/dev/null", "https://api.example.org/a"])
        .await;
    assert!(!stranger.status.success());
    let mut raw = tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, pid1.ports[0]))
        .await
        .unwrap();
    raw.write_all(b"\x00\x00\x00\x08SELECT 1\r\n\r\n")
        .await
        .unwrap();
    let mut told = String::new();
    let _ = BufReader::new(&mut raw).read_line(&mut told).await;
    drop(
        tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, pid1.ports[0]))
            .await
            .unwrap(),
    );
    let (used, misses) = pid1.off().await;
    assert_eq!(used, Vec::<String>::new());
    assert_eq!(misses.len(), 3, "{misses:?}");
    assert_eq!(misses[0], "http:GET api.example.org/b?token=1");
    assert!(
        misses
            .iter()
            .any(|miss| miss.starts_with("https:api.example.org (port ")),
        "{misses:?}"
    );
    assert!(
        misses.contains(&format!("tcp:{} (not HTTP)", pid1.ports[0])),
        "{misses:?}"
    );
}

#[tokio::test]
async fn between_cases_ports_refuse_connections_end_and_nobody_else_can_have_them() {
    let mut pid1 = Pid1::start().await;
    let address = (Ipv4Addr::LOCALHOST, pid1.ports[0]);
    for _ in 0..3 {
        let refused = tokio::net::TcpStream::connect(address).await.unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
        assert!(tokio::net::TcpListener::bind(address).await.is_err());
        assert!(
            tokio::net::TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.1))
                .await
                .is_err()
        );
        pid1.on(json!([{"method": "GET", "path": "/a", "status": 204}]))
            .await;
        let mut kept = tokio::net::TcpStream::connect(address).await.unwrap();
        kept.write_all(b"GET /a HTTP/1.1\r\nhost: h\r\n\r\n")
            .await
            .unwrap();
        let mut lines = BufReader::new(kept).lines();
        assert_eq!(
            lines.next_line().await.unwrap().unwrap(),
            "HTTP/1.1 204 No Content"
        );
        assert_eq!(lines.next_line().await.unwrap().unwrap(), "");
        assert_eq!(pid1.off().await.0, ["http:GET /a"]);
        assert!(
            !matches!(lines.next_line().await, Ok(Some(_))),
            "the connection outlived its case"
        );
    }
}

#[tokio::test]
async fn names_resolve_while_a_case_runs() {
    let mut pid1 = Pid1::start().await;
    let socket = tokio::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .unwrap();
    socket
        .connect((Ipv4Addr::LOCALHOST, pid1.names))
        .await
        .unwrap();
    let ask = async |label: &str| {
        let mut packet = vec![
            7,
            7,
            1,
            0,
            0,
            1,
            0,
            0,
            0,
            0,
            0,
            0,
            u8::try_from(label.len()).unwrap(),
        ];
        packet.extend_from_slice(label.as_bytes());
        packet.extend_from_slice(&[0, 0, 1, 0, 1]);
        socket.send(&packet).await.unwrap();
        let mut reply = [0; 512];
        let length = socket.recv(&mut reply).await.unwrap();
        (reply[3] & 15, reply[..length].ends_with(&[127, 0, 0, 1]))
    };
    assert_eq!(ask("db").await, (2, false));
    pid1.on(json!([])).await;
    assert_eq!(ask("db").await, (0, true));
    assert_eq!(ask("tribunal").await, (2, false), "the room's own name");
    assert_eq!(pid1.off().await.1, ["name:db"]);
    assert_eq!(ask("db").await, (2, false));
}

#[tokio::test]
async fn a_relayed_request_waits_for_what_comes_back() {
    let mut pid1 = Pid1::start().await;
    pid1.tell(json!({"on": {"node": NODE, "mode": "relay"}}))
        .await;
    pid1.heard().await;
    let big = "x".repeat(600_000);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &big).unwrap();
    let data = format!("@{}", file.path().display());
    let asking = async {
        let mut body = Vec::new();
        let mut head = Value::Null;
        loop {
            let line = pid1.answers.next_line().await.unwrap().unwrap();
            let mut ask: Value = serde_json::from_str(&line).unwrap();
            let ask = ask["ask"].take();
            if !ask["request"].is_null() {
                head = ask["request"].clone();
            }
            body.extend(STANDARD.decode(ask["data"].as_str().unwrap()).unwrap());
            if ask["more"] == json!(false) {
                break (head, body, ask["id"].clone());
            }
        }
    };
    let [plain, _] = pid1.ports[..] else {
        unreachable!()
    };
    let client = Command::new("curl")
        .args([
            "-sS",
            "--max-time",
            "20",
            "--data-binary",
            &data,
            "-H",
            "expect:",
        ])
        .args([
            "--connect-to",
            &format!(":80:127.0.0.1:{plain}"),
            "http://api.example.org:80/up?x=%20",
        ])
        .output();
    let client = tokio::spawn(client);
    let (head, body, id) = asking.await;
    assert_eq!(body.len(), big.len());
    assert_eq!(
        [
            &head["scheme"],
            &head["method"],
            &head["host"],
            &head["path"],
            &head["query"]
        ],
        ["http", "POST", "api.example.org", "/up", "x=%20"]
    );
    for (part, more) in [("first ", true), ("second", false)] {
        let answer = json!({"answer": {"id": id, "status": 200, "headers": [["x-a", "1"]],
                            "data": STANDARD.encode(part), "more": more}});
        pid1.tell(answer).await;
    }
    assert_eq!(text(&client.await.unwrap().unwrap()), "first second");
    assert_eq!(pid1.off().await, (Vec::new(), Vec::new()));
}

/// `create_default_context` checks certificates strictly since Python 3.13, and so does OpenSSL with this flag.
#[tokio::test]
async fn a_strict_client_takes_the_certificates_at_any_pinned_time() {
    let mut pid1 = Pid1::start().await;
    let body = pid1.body(b"strictly").await;
    let one = json!({"method": "GET", "path": "/a", "host": format!("localhost:{}", pid1.ports[1]), "status": 200,
                     "body_sha256": body});
    pid1.on(json!([one])).await;
    let script = "import ssl, sys, urllib.request\n\
        context = ssl.create_default_context(cafile=sys.argv[1])\n\
        context.verify_flags |= ssl.VERIFY_X509_STRICT\n\
        print(urllib.request.urlopen(sys.argv[2], context=context, timeout=10).read().decode())";
    let output = Command::new("python3")
        .args(["-c", script])
        .arg(pid1.authority.path())
        .arg(format!("https://localhost:{}/a", pid1.ports[1]))
        .output()
        .await
        .unwrap();
    assert_eq!(text(&output), "strictly\n", "{output:?}");
    let shown = Command::new("openssl")
        .args(["x509", "-noout", "-subject", "-dates", "-in"])
        .arg(pid1.authority.path())
        .output()
        .await
        .unwrap();
    let shown = text(&shown);
    assert!(shown.contains("Tribunal room authority"), "{shown}");
    assert!(
        shown.contains("1975 GMT") && shown.contains("4096 GMT"),
        "{shown}"
    );
}

fn hex(text: &str) -> String {
    Sha256::digest(text)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect()
}
