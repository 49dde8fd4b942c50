//! What the engine is, for a person who wants to know whether it will do.

use super::engine::{Engine, QUICK, call};
use tribunal_core::reason::Aborted;

/// Facts about the engine, as far as it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineFacts {
    /// It does not.
    Unreachable(Aborted),
    /// It does.
    Reached(Box<EngineDetails>),
}

/// What a reached engine says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineDetails {
    /// Its version.
    pub version: String,
    /// The version of its API.
    pub api: String,
    /// Of the control groups: `1` or `2`.
    pub cgroups: String,
    /// Limits it says it cannot set, by name: `memory`, `swap`, `pids`, `cpu`.
    pub missing_limits: Vec<&'static str>,
    /// Whether it filters system calls, and what else it says of security.
    pub security: Vec<String>,
    /// How it stores layers.
    pub storage: String,
    /// Its CPUs.
    pub cpus: u32,
    /// Its memory, in bytes.
    pub memory: u64,
}

impl EngineDetails {
    /// Whether system calls can be filtered.
    #[must_use]
    pub fn has_seccomp(&self) -> bool {
        self.security
            .iter()
            .any(|option| option.contains("seccomp"))
    }
}

pub(super) async fn examine(engine: &Engine) -> EngineFacts {
    match look(engine).await {
        Ok(details) => EngineFacts::Reached(Box::new(details)),
        Err(aborted) => EngineFacts::Unreachable(aborted),
    }
}

async fn look(engine: &Engine) -> Result<EngineDetails, Aborted> {
    let connected = engine.get().await?;
    let version = call(
        "ask the engine's version",
        QUICK,
        connected.docker.version(),
    )
    .await?;
    let info = call("ask what the engine is", QUICK, connected.docker.info()).await?;
    let mut missing_limits = Vec::new();
    for (name, there) in [
        ("memory", info.memory_limit),
        ("swap", info.swap_limit),
        ("pids", info.pids_limit),
        ("cpu", info.cpu_cfs_quota),
    ] {
        if there == Some(false) {
            missing_limits.push(name);
        }
    }
    let cpus = super::engine::cores(&info);
    Ok(EngineDetails {
        version: version.version.unwrap_or_default(),
        api: version.api_version.unwrap_or_default(),
        cgroups: info
            .cgroup_version
            .map(|version| version.to_string())
            .unwrap_or_default(),
        missing_limits,
        security: info.security_options.unwrap_or_default(),
        storage: info.driver.unwrap_or_default(),
        cpus,
        memory: info
            .mem_total
            .and_then(|bytes| u64::try_from(bytes).ok())
            .unwrap_or_default(),
    })
}
