//! The other end of the conversation, played from scripts: orders come in, messages go out, as a harness would send them.

use super::super::frames::{self, Decoder, Frame};
use super::dialect::{self, Import, Mark, Script};
use super::played::{Cut, Node, Played, nodes, passed, unreported};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::Read as _;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, DuplexStream};
use tokio::sync::mpsc;
use tribunal_core::outcome::When;
use tribunal_core::statement::Isolation;

/// The files of a tree, by path.
pub(super) type Files = HashMap<String, Vec<u8>>;
/// What the harness says, in chunks.
pub(super) type Said = mpsc::Sender<Result<Bytes, String>>;

const TAG: &str = "cp313";

/// The other side is gone, or has asked for something that is not in the protocol.
pub(super) enum Over {
    Left,
    Trouble(String),
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
enum Order {
    Configure(Configure),
    Warm {},
    Src {
        size: usize,
    },
    SrcEnd,
    Attempt(Attempt),
    Digests {
        files: Vec<String>,
    },
    Plant {
        of: usize,
    },
    /// Nothing here reads a clock, so a record changes nothing.
    Cassette {},
    Body {},
    Marks {
        file: String,
        sizes: Vec<usize>,
    },
    Bye,
}

#[derive(Deserialize)]
pub(super) struct Configure {
    pub(super) policy: Policy,
    files: Vec<String>,
    pub(super) starts: Vec<Start>,
    uid_base: u32,
    uid_count: u32,
}

#[derive(Deserialize)]
pub(super) struct Policy {
    shared: Vec<String>,
    attempt_timeout_ms: u64,
    pub(super) case_timeout_ms: u64,
}

#[derive(Deserialize)]
pub(super) struct Start {
    pub(super) hash_seed: u32,
}

#[derive(Deserialize)]
pub(super) struct Attempt {
    attempt: u32,
    pub(super) start: usize,
    isolation: Isolation,
    pub(super) mode: String,
    pub(super) product: Product,
    only: Option<Vec<String>>,
    collect_only: bool,
    stop_on_failure: bool,
}

/// What is made of src: words, or a mutant.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Product {
    Word(String),
    Mutant { mutant: usize },
}

/// Play a harness over the sealed tree until the server says bye or goes away.
pub(super) async fn play(tree: Arc<Files>, orders: DuplexStream, said: Said) {
    let mut harness = Harness {
        tree,
        src: Files::new(),
        orders,
        decoder: Decoder::default(),
        said,
        configured: None,
    };
    if let Err(Over::Trouble(message)) = harness.serve().await {
        let trouble = json!({ "type": "trouble", "code": "bad-order", "message": message });
        let _gone = harness.say(&trouble).await;
    }
}

pub(super) struct Harness {
    pub(super) tree: Arc<Files>,
    pub(super) src: Files,
    orders: DuplexStream,
    decoder: Decoder,
    said: Said,
    pub(super) configured: Option<Configure>,
}

impl Harness {
    async fn serve(&mut self) -> Result<(), Over> {
        let ready = json!({ "type": "ready", "protocol": 1, "python": "3.13.0", "tag": TAG, "pytest": "9", "hypothesis": "6" });
        self.say(&ready).await?;
        loop {
            match self.hear().await? {
                Order::Configure(configure) => self.configured = Some(configure),
                Order::Warm {} => self.starts("warmed").await?,
                Order::Src { size } => self.lay(size).await?,
                Order::Attempt(attempt) => self.attempt(&attempt).await?,
                Order::Digests { files } => self.digests(&files).await?,
                Order::Plant { of } => self.plan(of).await?,
                Order::Cassette {} | Order::Body {} => {}
                Order::Marks { file, sizes } => self.marks(&file, &sizes).await?,
                Order::SrcEnd => return Err(Over::Trouble("src-end without src".to_owned())),
                Order::Bye => return Ok(()),
            }
        }
    }

    async fn lay(&mut self, size: usize) -> Result<(), Over> {
        let mut tar = Vec::with_capacity(size);
        loop {
            match self.frame().await? {
                Frame::Tar(piece) => tar.extend_from_slice(&piece),
                Frame::Json(body) => match order(&body)? {
                    Order::SrcEnd => break,
                    Order::Configure(_)
                    | Order::Warm {}
                    | Order::Src { .. }
                    | Order::Attempt(_)
                    | Order::Digests { .. }
                    | Order::Plant { .. }
                    | Order::Cassette {}
                    | Order::Body {}
                    | Order::Marks { .. }
                    | Order::Bye => {
                        return Err(Over::Trouble("an order inside the src tar".to_owned()));
                    }
                },
            }
        }
        if tar.len() != size {
            return Err(Over::Trouble("the src tar is not as announced".to_owned()));
        }
        self.src = files_of(tar.as_slice()).map_err(|error| Over::Trouble(error.to_string()))?;
        self.starts("configured").await
    }

    async fn starts(&mut self, said: &str) -> Result<(), Over> {
        let Some(configured) = &self.configured else {
            return Err(Over::Trouble(format!("{said} before configure")));
        };
        let starts = configured.starts.len();
        self.say(&json!({ "type": said, "starts": starts })).await
    }

    async fn digests(&mut self, files: &[String]) -> Result<(), Over> {
        let mut functions = serde_json::Map::new();
        let mut errors = serde_json::Map::new();
        for file in files {
            match self.script(file) {
                Ok(script) => {
                    for test in script.tests {
                        let digest = tribunal_core::id::Digest::of(test.body.as_bytes());
                        let forms = json!({ "v2": format!("v2:{TAG}:{}", digest.hex()), "short": &digest.hex()[..16] });
                        functions.insert(format!("{file}::{}", test.qualname), forms);
                    }
                }
                Err(Over::Trouble(message)) => {
                    errors.insert(file.clone(), Value::String(message));
                }
                Err(left) => return Err(left),
            }
        }
        self.say(
            &json!({ "type": "digests", "tag": TAG, "functions": functions, "errors": errors }),
        )
        .await
    }

    /// One change a Python file of src, in the order of their names.
    async fn plan(&mut self, of: usize) -> Result<(), Over> {
        let mutants: Vec<Value> = self
            .modules()
            .into_iter()
            .take(of)
            .map(|path| json!({ "path": path, "line": 1, "function": "<module>", "what": "text shorter" }))
            .collect();
        let functions = !mutants.is_empty();
        self.say(&json!({ "type": "planted", "functions": functions, "mutants": mutants }))
            .await
    }

    /// A line that begins with `@skip` is what silences in this dialect.
    async fn marks(&mut self, file: &str, sizes: &[usize]) -> Result<(), Over> {
        let (mut texts, whole) = (Vec::new(), sizes.iter().sum());
        while texts.len() < whole {
            match self.frame().await? {
                Frame::Tar(piece) => texts.extend_from_slice(&piece),
                Frame::Json(_) => return Err(Over::Trouble("an order inside texts".to_owned())),
            }
        }
        let mut rest = texts.as_slice();
        let mut counts = Vec::new();
        for size in sizes {
            let (text, after) = rest.split_at_checked(*size).unwrap_or((rest, &[]));
            let text = String::from_utf8_lossy(text);
            let silencing = |line: &&str| line.trim_start().starts_with("@skip");
            counts.push(text.lines().filter(silencing).count());
            rest = after;
        }
        let before = counts.iter().skip(1).max().copied().unwrap_or(0);
        let gained: Vec<Value> = (before..counts.first().copied().unwrap_or(0))
            .map(|_| json!({ "what": "skip", "scope": "", "line": 1, "kind": "silence" }))
            .collect();
        self.say(&json!({ "type": "marks", "file": file, "gained": gained, "unread": null }))
            .await
    }

    fn modules(&self) -> Vec<&String> {
        let mut paths: Vec<&String> = self.src.keys().filter(|p| p.ends_with(".py")).collect();
        paths.sort();
        paths
    }

    /// A file as the product of this attempt has it: a null product and a planted change hold nothing of what it held.
    pub(super) fn text(&self, attempt: &Attempt, path: &str) -> Option<&[u8]> {
        if self.src.contains_key(path) {
            let wrong = match &attempt.product {
                Product::Word(word) => word == "null",
                Product::Mutant { mutant } => {
                    self.modules().get(*mutant).is_some_and(|p| *p == path)
                }
            };
            if wrong {
                return None;
            }
        }
        let found = self.src.get(path).or_else(|| self.tree.get(path));
        found.map(Vec::as_slice)
    }

    async fn attempt(&mut self, attempt: &Attempt) -> Result<(), Over> {
        let configured = self
            .configured
            .as_ref()
            .ok_or_else(|| Over::Trouble("an attempt before configure".to_owned()))?;
        let shared = |file: &&String| configured.policy.shared.contains(file);
        let files: Vec<String> = match attempt.isolation {
            Isolation::Split => configured
                .files
                .iter()
                .filter(|f| !shared(f))
                .cloned()
                .collect(),
            Isolation::Shared => configured.files.iter().filter(shared).cloned().collect(),
        };
        let limit = Duration::from_millis(configured.policy.attempt_timeout_ms);
        let began = Instant::now();
        let mut plan = Vec::new();
        let (mut cases, mut errors, mut skips) = (Vec::new(), Vec::new(), Vec::new());
        for file in &files {
            let script = self.script(file)?;
            match script.import {
                Import::Works => {}
                Import::Exits(text, code) => {
                    let cut = Cut {
                        end: "exited",
                        exit_code: Some(code),
                        signal: None,
                    };
                    return self.ended(attempt, cut, None, &text, began).await;
                }
                Import::Skips(reason) => {
                    skips.push(
                        json!({ "node": file, "file": file, "reason": reason, "by": "sealed" }),
                    );
                    continue;
                }
                Import::Fails(exception) => {
                    errors.push(json!({ "file": file, "exception": exception }));
                    continue;
                }
            }
            for test in script.tests {
                for node in nodes(file, &test) {
                    match node {
                        Node::Case(node) if wanted(attempt, &node) => {
                            let marks: Vec<&str> = match test.mark {
                                Some(Mark::Skip(_)) => vec!["skip"],
                                Some(Mark::Xfail(_)) => vec!["xfail"],
                                None => Vec::new(),
                            };
                            cases.push(json!({ "node": node, "file": file, "qualname": test.qualname, "marks": marks }));
                            plan.push((node, test.clone()));
                        }
                        Node::Case(_) => {}
                        Node::EmptySet(node) => skips.push(json!({
                            "node": node, "file": file, "reason": "got empty parameter set", "by": "sealed"
                        })),
                    }
                }
            }
        }
        self.say(&json!({
            "type": "collected", "attempt": attempt.attempt, "cases": cases, "errors": errors, "skips": skips, "more": false
        }))
        .await?;
        let mut cut = None;
        let mut running = None;
        if !attempt.collect_only {
            for (node, test) in plan {
                let left = limit.saturating_sub(began.elapsed());
                let played = match tokio::time::timeout(left, self.play(attempt, &test)).await {
                    Ok(played) => played,
                    Err(_) => Played {
                        phases: vec![passed(When::Setup), unreported(When::Call)],
                        cut: Some(Cut {
                            end: "attempt-timeout",
                            exit_code: None,
                            signal: None,
                        }),
                    },
                };
                self.say(&json!({ "type": "case", "attempt": attempt.attempt, "node": node, "phases": played.phases }))
                    .await?;
                if let Some(how) = played.cut {
                    running = Some(node);
                    cut = Some(how);
                    break;
                }
                let failed = |phase: &Value| phase["outcome"] == "failed";
                if attempt.stop_on_failure && played.phases.iter().any(failed) {
                    break;
                }
            }
        }
        let cut = cut.unwrap_or(Cut {
            end: "finished",
            exit_code: Some(0),
            signal: None,
        });
        self.ended(attempt, cut, running, "", began).await
    }

    async fn ended(
        &self,
        attempt: &Attempt,
        cut: Cut,
        running: Option<String>,
        output: &str,
        began: Instant,
    ) -> Result<(), Over> {
        let configured = self.configured.as_ref();
        let uid = configured.map_or(0, |c| c.uid_base + attempt.attempt % c.uid_count);
        let phase = running.as_ref().map(|_| When::Call);
        let wall = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.say(&json!({
            "type": "attempt-end", "attempt": attempt.attempt, "end": cut.end, "exit_code": cut.exit_code,
            "signal": cut.signal, "running": running, "phase": phase, "wall_ms": wall, "cpu_ms": wall,
            "run_delay_ms": 0, "oom_kills": u32::from(cut.end == "out-of-memory"), "output_bytes": output.len(),
            "output": output, "start": attempt.start, "uid": uid
        }))
        .await
    }

    fn script(&self, file: &str) -> Result<Script, Over> {
        let bytes = self
            .tree
            .get(file)
            .ok_or_else(|| Over::Trouble(format!("{file} is not in the tree")))?;
        dialect::read(&String::from_utf8_lossy(bytes))
            .map_err(|error| Over::Trouble(format!("{file}: {error}")))
    }

    async fn hear(&mut self) -> Result<Order, Over> {
        match self.frame().await? {
            Frame::Json(body) => order(&body),
            Frame::Tar(_) => Err(Over::Trouble("a tar frame outside the src".to_owned())),
        }
    }

    async fn frame(&mut self) -> Result<Frame, Over> {
        loop {
            match self.decoder.next() {
                Ok(Some(frame)) => return Ok(frame),
                Ok(None) => {}
                Err(error) => return Err(Over::Trouble(error.to_string())),
            }
            let mut chunk = [0u8; 16 << 10];
            match self.orders.read(&mut chunk).await {
                Ok(0) | Err(_) => return Err(Over::Left),
                Ok(length) => self.decoder.push(&chunk[..length]),
            }
        }
    }

    async fn say(&self, message: &Value) -> Result<(), Over> {
        let frame = frames::json(message).map_err(|error| Over::Trouble(error.to_string()))?;
        self.said.send(Ok(frame)).await.map_err(|_| Over::Left)
    }
}

fn wanted(attempt: &Attempt, node: &str) -> bool {
    attempt
        .only
        .as_ref()
        .is_none_or(|only| only.iter().any(|wanted| wanted == node))
}

fn order(body: &[u8]) -> Result<Order, Over> {
    serde_json::from_slice(body).map_err(|error| Over::Trouble(error.to_string()))
}

/// The regular files of a tar.
pub(super) fn files_of(tar: impl std::io::Read) -> std::io::Result<Files> {
    let mut files = Files::new();
    for entry in tar::Archive::new(tar).entries()? {
        let mut entry = entry?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let path = entry.path()?.to_string_lossy().into_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes)?;
        files.insert(path, bytes);
    }
    Ok(files)
}
