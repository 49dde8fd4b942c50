//! A coding agent's MCP client, as far as a script needs one: JSON-RPC over the child's stdin and stdout, line by line.
//!
//! Holds every answer against what the server promised: stdout is protocol and nothing else, structured content fits the
//! tool's own output schema, progress grows. Every wait has an end.

use crate::client::Client;
use crate::schema;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Longer than any call of a test takes.
const PATIENCE: Duration = Duration::from_secs(240);

/// The client, and the server that it started.
pub struct Agent {
    child: Child,
    stdin: Option<ChildStdin>,
    heard: Receiver<Value>,
    /// What the server said of itself.
    pub about: Value,
    /// Its tools, as it lists them.
    pub tools: Vec<Value>,
    next: u64,
}

/// What a call came to.
#[derive(Debug)]
pub struct Called {
    /// The result as it came.
    pub result: Value,
    /// The messages of the progress notifications before it, in order.
    pub progress: Vec<String>,
}

impl Called {
    /// Its structured content.
    #[must_use]
    pub fn fields(&self) -> &Value {
        &self.result["structuredContent"]
    }

    /// Its words.
    #[must_use]
    pub fn text(&self) -> &str {
        self.result["content"][0]["text"].as_str().unwrap()
    }

    /// The score's name.
    #[track_caller]
    #[must_use]
    pub fn name(&self) -> String {
        let name = self.fields()["name"].as_str();
        name.unwrap_or_else(|| panic!("no name: {:#}", self.result))
            .to_owned()
    }

    /// It came to nothing, with this code.
    #[track_caller]
    pub fn expect_error(&self, code: &str) -> &Self {
        assert_eq!(self.result["isError"], true, "{:#}", self.result);
        assert_eq!(self.fields()["error"]["code"], code, "{:#}", self.result);
        assert!(
            self.text().starts_with(&format!("{code}: ")),
            "{}",
            self.text()
        );
        self
    }

    /// It did not fail.
    #[track_caller]
    pub fn expect_ok(&self) -> &Self {
        assert_eq!(self.result["isError"], false, "{:#}", self.result);
        assert!(self.fields().get("error").is_none());
        self
    }
}

/// Arguments of a call that was begun.
pub struct Begun {
    id: u64,
    tool: String,
}

impl Agent {
    /// Start `tribunal mcp` as this client would, and shake hands.
    #[must_use]
    pub fn start(client: &Client) -> Self {
        Self::with_capabilities(client, &json!({}))
    }

    /// The same, declaring these capabilities.
    #[must_use]
    pub fn with_capabilities(client: &Client, capabilities: &Value) -> Self {
        let mut child = client
            .command(&["mcp"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, heard) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines() {
                let line = line.unwrap();
                let message: Value = serde_json::from_str(&line)
                    .unwrap_or_else(|e| panic!("stdout carries {line:?}: {e}"));
                assert_eq!(message["jsonrpc"], "2.0", "{line}");
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut agent = Self {
            child,
            stdin,
            heard,
            about: Value::Null,
            tools: Vec::new(),
            next: 0,
        };
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": capabilities,
            "clientInfo": {"name": "script", "version": "1"},
        });
        agent.about = agent.request("initialize", hello)["result"].clone();
        agent.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        let listed = agent.request("tools/list", json!({}))["result"]["tools"].clone();
        agent.tools = listed.as_array().unwrap().clone();
        agent
    }

    /// One of its tools.
    #[must_use]
    pub fn tool(&self, name: &str) -> &Value {
        let found = self.tools.iter().find(|tool| tool["name"] == name);
        found.unwrap_or_else(|| panic!("no tool {name}"))
    }

    /// Call a tool to its end, with a progress token.
    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: Value) -> Called {
        let begun = self.begin(tool, arguments);
        self.end(&begun)
    }

    /// Begin a call.
    pub fn begin(&mut self, tool: &str, arguments: Value) -> Begun {
        let id = self.id();
        self.send(&json!({
            "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments, "_meta": {"progressToken": id}},
        }));
        Begun {
            id,
            tool: tool.to_owned(),
        }
    }

    /// The next progress message of a call that was begun.
    #[track_caller]
    pub fn progress(&mut self, begun: &Begun) -> String {
        let message = self.next_message();
        assert_eq!(message["method"], "notifications/progress", "{message:#}");
        assert_eq!(message["params"]["progressToken"], begun.id);
        message["params"]["message"].as_str().unwrap().to_owned()
    }

    /// Its end, and what progress came before.
    #[track_caller]
    pub fn end(&mut self, begun: &Begun) -> Called {
        let mut progress = Vec::new();
        let mut last = 0.0;
        let answer = loop {
            let message = self.next_message();
            if message["method"] != "notifications/progress" {
                break message;
            }
            let params = &message["params"];
            assert_eq!(params["progressToken"], begun.id);
            let now = params["progress"].as_f64().unwrap();
            assert!(now > last, "progress grows: {message:#}");
            last = now;
            progress.push(params["message"].as_str().unwrap().to_owned());
        };
        assert_eq!(answer["id"], begun.id, "{answer:#}");
        let result = answer["result"].clone();
        self.hold(&begun.tool, &result);
        Called { result, progress }
    }

    /// A result against the schema that its tool promises.
    #[track_caller]
    pub fn hold(&self, tool: &str, result: &Value) {
        let promised = &self.tool(tool)["outputSchema"];
        assert_eq!(promised["type"], "object", "{tool}");
        schema::check(promised, &result["structuredContent"]);
    }

    /// Any request; the whole answer.
    #[track_caller]
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.id();
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let answer = self.next_message();
        assert_eq!(answer["id"], id, "{answer:#}");
        answer
    }

    fn id(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn send(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(format!("{message}\n").as_bytes()).unwrap();
        stdin.flush().unwrap();
    }

    #[track_caller]
    fn next_message(&mut self) -> Value {
        match self.heard.recv_timeout(PATIENCE) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => panic!("the server says nothing"),
            Err(RecvTimeoutError::Disconnected) => panic!("the server is gone"),
        }
    }

    /// Close its stdin; it must end by itself, with status 0.
    pub fn close(mut self) {
        drop(self.stdin.take());
        self.ends();
    }

    /// It ends, with status 0.
    pub fn ends(mut self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "it does not end");
            std::thread::sleep(Duration::from_millis(20));
        };
        assert!(status.success(), "{status}");
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
