//! Run orders for tests: everything defaults, a test says only what it is about.

use super::Subject;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;
use tribunal_core::id::{Digest, NodeId, RepoPath};
use tribunal_core::outcome::{Lane, Pins};
use tribunal_core::policy::Policy;
use tribunal_server::sandbox::{AttemptOrder, RunOrder, SandboxError, SealedTree, TreeToSeal};

/// The group that reads sealed tests; the runner's `layout.py` has the same.
const ORACLE_GROUP: u64 = 990;

/// The text of a sealed file of the suite.
#[must_use]
pub fn source(name: &str) -> &'static str {
    match name {
        "test_dies.py" => include_str!("sealed/test_dies.py"),
        "test_eats.py" => include_str!("sealed/test_eats.py"),
        "test_exits.py" => include_str!("sealed/test_exits.py"),
        "test_exits_zero.py" => include_str!("sealed/test_exits_zero.py"),
        "test_floods.py" => include_str!("sealed/test_floods.py"),
        "test_hangs.py" => include_str!("sealed/test_hangs.py"),
        "test_hash_seed.py" => include_str!("sealed/test_hash_seed.py"),
        "test_leaves_early.py" => include_str!("sealed/test_leaves_early.py"),
        "test_leftovers.py" => include_str!("sealed/test_leftovers.py"),
        "test_limits.py" => include_str!("sealed/test_limits.py"),
        "test_outcomes.py" => include_str!("sealed/test_outcomes.py"),
        "test_silent.py" => include_str!("sealed/test_silent.py"),
        "test_slow.py" => include_str!("sealed/test_slow.py"),
        "test_src.py" => include_str!("sealed/test_src.py"),
        "test_unimportable.py" => include_str!("sealed/test_unimportable.py"),
        // Text of a test's own making.
        _ => "",
    }
}

/// A tree of these files, `src/` and `tests/` directories included.
///
/// # Panics
///
/// When a path is too long for a tar.
#[must_use]
pub(super) fn tar_of(files: &BTreeMap<String, String>) -> Bytes {
    let mut builder = tar::Builder::new(Vec::new());
    // As the overlay has it: what is sealed is the oracle's alone.
    let access = |path: &str, everyones: u32| {
        let mut header = tar::Header::new_gnu();
        let sealed = path.starts_with("tests/sealed/");
        header.set_mode(if sealed {
            everyones & !0o007
        } else {
            everyones
        });
        header.set_gid(if sealed { ORACLE_GROUP } else { 0 });
        header
    };
    for directory in ["src/", "tests/", "tests/sealed/"] {
        let mut header = access(directory, 0o755);
        header.set_entry_type(tar::EntryType::Directory);
        header.set_size(0);
        builder
            .append_data(&mut header, directory, std::io::empty())
            .unwrap();
    }
    for (path, text) in files {
        let mut header = access(path, 0o644);
        header.set_size(text.len() as u64);
        builder
            .append_data(&mut header, path, text.as_bytes())
            .unwrap();
    }
    Bytes::from(builder.into_inner().unwrap())
}

/// A tree to seal, by its content.
#[must_use]
pub fn tree(image: String, files: &BTreeMap<String, String>) -> TreeToSeal {
    let tar = tar_of(files);
    TreeToSeal {
        digest: Digest::of(&tar),
        image,
        tar: Box::new(move || Ok(Box::new(std::io::Cursor::new(tar)) as Box<dyn Read + Send>)),
    }
}

/// A run order in the making.
#[derive(Clone)]
pub struct Order {
    subject: Arc<dyn Subject>,
    /// Sealed files, by path.
    pub sealed: BTreeMap<String, String>,
    /// Product files, by path.
    pub src: BTreeMap<String, String>,
    /// The policy.
    pub policy: Policy,
    /// Hash seeds of the starts.
    pub starts: Vec<u32>,
    /// How many of them, the last ones, may be others.
    pub free_starts: usize,
    /// The attempts.
    pub attempts: Vec<AttemptOrder>,
    /// Files to take digests of.
    pub digests: Vec<RepoPath>,
    /// How many changes to draw.
    pub plant: Option<u32>,
}

impl Order {
    /// One attempt on one start over the named files of the suite, with a product whose answer is 42.
    #[must_use]
    pub fn of(subject: &Arc<dyn Subject>, names: &[&str]) -> Self {
        let sealed = names
            .iter()
            .map(|name| (format!("tests/sealed/{name}"), source(name).to_owned()))
            .collect();
        let mut policy = Policy::default();
        policy.limits.memory = 256 << 20;
        policy.limits.tmp = 16 << 20;
        policy.runs.case_timeout_ms = 20_000;
        policy.runs.attempt_timeout_ms = 60_000;
        let mut order = Self {
            subject: Arc::clone(subject),
            sealed,
            src: BTreeMap::from([("src/app.py".to_owned(), "ANSWER = 42\n".to_owned())]),
            policy,
            starts: vec![0],
            free_starts: 0,
            attempts: Vec::new(),
            digests: Vec::new(),
            plant: None,
        };
        order.attempts = vec![order.attempt(0)];
        order
    }

    /// An attempt with the policy's pins on the first start.
    #[must_use]
    pub fn attempt(&self, index: u32) -> AttemptOrder {
        let pins = &self.policy.pins;
        let pins = Pins {
            seed: pins.seed,
            hash_seed: self.starts[0],
            clock: pins.clock.clone(),
            source_date_epoch: pins.source_date_epoch,
        };
        AttemptOrder::of(index, 0, pins)
    }

    /// This many attempts, taking turns on the starts.
    #[must_use]
    pub fn times(mut self, attempts: u32) -> Self {
        self.attempts = (0..attempts)
            .map(|index| {
                let start = index % u32::try_from(self.starts.len()).unwrap();
                let mut attempt = self.attempt(index);
                attempt.start = start;
                attempt.start_in_score = start;
                attempt.pins.hash_seed = self.starts[start as usize];
                attempt
            })
            .collect();
        self
    }

    /// Only these cases of one file, in every attempt.
    #[must_use]
    pub fn only(mut self, nodes: &[&str]) -> Self {
        let nodes: Vec<NodeId> = nodes.iter().map(|node| node.parse().unwrap()).collect();
        for attempt in &mut self.attempts {
            attempt.only = Some(nodes.clone());
        }
        self
    }

    /// Seal the tree and say what is to run in it.
    ///
    /// # Errors
    ///
    /// When sealing fails.
    pub async fn sealed(&self) -> Result<RunOrder, SandboxError> {
        let sandbox = self.subject.sandbox();
        let sealed = sandbox
            .seal(tree(self.subject.image(), &self.sealed))
            .await?;
        Ok(self.on(sealed))
    }

    /// Those of the src that it has: here base's is the same.
    fn own_names(&self) -> Vec<String> {
        let below = self.src.keys().map(|path| path.trim_start_matches("src/"));
        below
            .filter_map(|path| path.split(['/', '.']).next())
            .map(str::to_owned)
            .collect()
    }

    /// The order, on a tree that is sealed already.
    #[must_use]
    pub fn on(&self, tree: SealedTree) -> RunOrder {
        let mut src = tar::Builder::new(Vec::new());
        for (path, text) in &self.src {
            let mut header = tar::Header::new_gnu();
            header.set_mode(0o644);
            header.set_size(text.len() as u64);
            src.append_data(&mut header, path, text.as_bytes()).unwrap();
        }
        RunOrder {
            score: "0123456789abcdef0123456789abcdef".to_owned(),
            lane: Lane::Property,
            image: self.subject.image(),
            tree,
            src_tar: Bytes::from(src.into_inner().unwrap()),
            files: self
                .sealed
                .keys()
                .map(|path| path.parse().unwrap())
                .collect(),
            own_names: self.own_names(),
            policy: self.policy.clone(),
            starts: self.starts.clone(),
            free_starts: self.free_starts,
            attempts: self.attempts.clone(),
            sequel: None,
            digests: self.digests.clone(),
            cassettes: Vec::new(),
            outside: None,
            plant: self.plant,
            marks: Vec::new(),
        }
    }
}
