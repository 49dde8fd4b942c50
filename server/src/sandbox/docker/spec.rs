//! Every limit of a room, in one place: a run order goes in, the engine's create request comes out. Calls nothing.

use super::super::{RunOrder, parts};
use super::engine::Shield;
use bollard::models::{
    ContainerCreateBody, HealthConfig, HostConfig, HostConfigLogConfig, Mount, MountType,
    MountVolumeOptions, ResourcesUlimits, RestartPolicy, RestartPolicyNameEnum,
};
use bytes::Bytes;
use std::collections::HashMap;
use tribunal_core::reason::{Aborted, AbortedCode};

/// The system calls an attempt may make.
const SECCOMP: &str = include_str!("../seccomp.json");
/// What PID 1 keeps; an attempt has none of them.
const CAPABILITIES: [&str; 7] = [
    "SETUID",
    "SETGID",
    "SETPCAP",
    "KILL",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
];
const ENTRY_POINT: [&str; 6] = [
    "/usr/bin/python3",
    "-I",
    "-S",
    "-B",
    "/opt/tribunal/harness",
    "supervise",
];
/// Where the base tree is.
pub(super) const TREE: &str = "/tree";

const MIB: u64 = 1 << 20;
const SHM: u64 = 64 * MIB;
const HOME: u64 = 64 * MIB;
const RUN: u64 = 8 * MIB;
/// What the harness itself needs, beside each interpreter start (an oracle's and a product's) and the src tar, which it
/// keeps.
const HARNESS: u64 = 64 * MIB;
const PER_START: u64 = 96 * MIB;
/// And each attempt that waits for its order: what its two processes do not share with their starts, and their threads.
const PER_CREW: u64 = 16 * MIB;
const CREW_PIDS: i64 = 4;
/// Processes and threads of the harness, beside two per interpreter start.
const HARNESS_PIDS: i64 = 16;
/// PID 1 reads records and forks beside an attempt, which would be made to wait for it until the next tenth of a second.
const HARNESS_NANO_CPUS: i64 = 500_000_000;
const PAGE: u64 = 4096;
/// What the transport needs beside the bodies of its cassettes, which PID 1 holds too; and its threads.
const TRANSPORT: u64 = 64 * MIB;
const TRANSPORT_PIDS: i64 = 2;
/// The room's only name server is the transport.
const NAME_SERVER: &str = "127.0.0.1";

/// What src takes in a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SrcSpace {
    /// Its files, on a tmpfs.
    files: u64,
    /// The tar they come in.
    tar: u64,
}

impl SrcSpace {
    /// What this tar needs.
    pub(super) fn of(tar: &Bytes) -> Result<Self, Aborted> {
        Ok(Self {
            files: size_on_tmpfs(tar)?,
            tar: tar.len() as u64,
        })
    }

    /// With room to grow: for a src that is not known yet, and like this one.
    pub(super) fn ample(self) -> Self {
        Self {
            files: self.files.saturating_mul(2).saturating_add(4 * MIB),
            tar: self.tar.saturating_mul(2).saturating_add(4 * MIB),
        }
    }

    /// Whether a src that needs this has its place here.
    pub(super) fn holds(self, need: Self) -> bool {
        need.files <= self.files && need.tar <= self.tar
    }
}

/// What a room's request is made of.
pub(super) struct RoomSpec<'a> {
    pub(super) order: &'a RunOrder,
    pub(super) src: SrcSpace,
    /// The volume of the base tree.
    pub(super) volume: &'a str,
    pub(super) labels: HashMap<String, String>,
    /// The engine's CPUs: it refuses more.
    pub(super) cores: u32,
    pub(super) shield: Shield,
}

impl RoomSpec<'_> {
    /// The create request.
    pub(super) fn request(&self) -> Result<ContainerCreateBody, Aborted> {
        let order = self.order;
        let limits = &order.policy.limits;
        let src = self.src.files;
        let tmpfs = self.tmpfs(src);
        let network = Network::of(order);
        let ahead = parts::ahead(order).len();
        let memory = limits
            .memory
            .saturating_add(limits.tmp)
            .saturating_add(src)
            .saturating_add(SHM + HOME + RUN + HARNESS)
            .saturating_add(PER_START.saturating_mul(order.starts.len() as u64))
            .saturating_add(PER_CREW.saturating_mul(ahead as u64))
            .saturating_add(self.src.tar)
            .saturating_add(network.memory);
        let memory = i64::try_from(memory).unwrap_or(i64::MAX);
        let starts = i64::try_from(order.starts.len()).unwrap_or(i64::MAX);
        let crews = CREW_PIDS * i64::try_from(ahead).unwrap_or(i64::MAX);
        let host = HostConfig {
            network_mode: Some("none".to_owned()),
            readonly_rootfs: Some(true),
            ipc_mode: Some("private".to_owned()),
            log_config: Some(HostConfigLogConfig {
                typ: Some("none".to_owned()),
                config: None,
            }),
            security_opt: Some(vec![
                "no-new-privileges".to_owned(),
                format!("seccomp={SECCOMP}"),
            ]),
            cap_drop: Some(vec!["ALL".to_owned()]),
            cap_add: Some(CAPABILITIES.map(str::to_owned).to_vec()),
            privileged: Some(false),
            mounts: Some(vec![tree_mount(self.volume, Access::Read)]),
            tmpfs: Some(tmpfs),
            shm_size: Some(i64::try_from(SHM).unwrap_or(i64::MAX)),
            memory: Some(memory),
            // Equal: no swap.
            memory_swap: Some(memory),
            pids_limit: Some(
                i64::from(limits.pids) + HARNESS_PIDS + 2 * starts + crews + network.pids,
            ),
            dns: network.dns,
            dns_search: network.dns_search,
            sysctls: network.sysctls,
            nano_cpus: Some(
                i64::from(limits.cpus.clamp(1, self.cores)) * 1_000_000_000 + HARNESS_NANO_CPUS,
            ),
            oom_score_adj: Some(match self.shield {
                Shield::Lowered => -500,
                Shield::Plain => 0,
            }),
            oom_kill_disable: Some(false),
            ulimits: Some(ulimits()),
            init: Some(false),
            auto_remove: Some(false),
            restart_policy: Some(RestartPolicy {
                name: Some(RestartPolicyNameEnum::NO),
                maximum_retry_count: None,
            }),
            ..HostConfig::default()
        };
        Ok(ContainerCreateBody {
            image: Some(order.image.clone()),
            hostname: Some("tribunal".to_owned()),
            user: Some("0:0".to_owned()),
            working_dir: Some("/".to_owned()),
            entrypoint: Some(
                ENTRY_POINT
                    .iter()
                    .filter(|part| !part.is_empty())
                    .map(|part| (*part).to_owned())
                    .collect(),
            ),
            cmd: Some(Vec::new()),
            env: Some(Vec::new()),
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            open_stdin: Some(true),
            stdin_once: Some(true),
            tty: Some(false),
            healthcheck: Some(HealthConfig {
                test: Some(vec!["NONE".to_owned()]),
                ..HealthConfig::default()
            }),
            labels: Some(self.labels.clone()),
            host_config: Some(host),
            ..ContainerCreateBody::default()
        })
    }

    /// The writable places, each with its size and mode.
    fn tmpfs(&self, src: u64) -> HashMap<String, String> {
        const SAFE: &str = "rw,noexec,nosuid,nodev";
        let limits = &self.order.policy.limits;
        let tmp = if limits.tmp_exec {
            "rw,exec,nosuid,nodev"
        } else {
            SAFE
        };
        let mut mounts = HashMap::from([
            (
                "/tmp".to_owned(),
                format!("{tmp},size={},mode=1777", limits.tmp),
            ),
            (
                "/home/attempt".to_owned(),
                format!("{SAFE},size={HOME},mode=0700"),
            ),
            (
                "/run/tribunal".to_owned(),
                format!("{SAFE},size={RUN},mode=0711"),
            ),
            (
                "/srcfiles".to_owned(),
                format!("{SAFE},size={src},mode=0755"),
            ),
        ]);
        for root in src_directories(&self.order.policy.paths.src) {
            mounts.insert(
                format!("{TREE}/{root}"),
                format!("{SAFE},size={src},mode=0755"),
            );
        }
        mounts
    }
}

/// What a room with cassettes has besides: the transport's share of memory and processes, itself as the only name server,
/// and low ports for a user that has no capability. Any other room has none of it.
#[derive(Default)]
struct Network {
    memory: u64,
    pids: i64,
    dns: Option<Vec<String>>,
    dns_search: Option<Vec<String>>,
    sysctls: Option<HashMap<String, String>>,
}

impl Network {
    fn of(order: &RunOrder) -> Self {
        if order.cassettes.is_empty() {
            return Self::default();
        }
        let bodies = order.cassettes.iter().flat_map(|each| each.bodies.values());
        let bodies: usize = bodies.map(Vec::len).sum();
        Self {
            memory: TRANSPORT.saturating_add(4 * bodies as u64),
            pids: TRANSPORT_PIDS,
            dns: Some(vec![NAME_SERVER.to_owned()]),
            // None: a name is looked up as it is written.
            dns_search: Some(vec![".".to_owned()]),
            sysctls: Some(HashMap::from([(
                "net.ipv4.ip_unprivileged_port_start".to_owned(),
                "0".to_owned(),
            )])),
        }
    }
}

/// Whether the tree may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// The volume of a tree, at its place.
pub(super) fn tree_mount(volume: &str, access: Access) -> Mount {
    Mount {
        typ: Some(MountType::VOLUME),
        source: Some(volume.to_owned()),
        target: Some(TREE.to_owned()),
        read_only: Some(match access {
            Access::Read => true,
            Access::Write => false,
        }),
        volume_options: Some(MountVolumeOptions {
            // Else the engine fills a new volume with what the image has there.
            no_copy: Some(true),
            ..MountVolumeOptions::default()
        }),
        ..Mount::default()
    }
}

/// The request of the helper through which a tree is written. It is never started.
pub(super) fn sealer(
    image: &str,
    volume: &str,
    labels: HashMap<String, String>,
) -> ContainerCreateBody {
    ContainerCreateBody {
        image: Some(image.to_owned()),
        entrypoint: Some(vec!["/nonexistent".to_owned()]),
        cmd: Some(Vec::new()),
        labels: Some(labels),
        host_config: Some(HostConfig {
            network_mode: Some("none".to_owned()),
            log_config: Some(HostConfigLogConfig {
                typ: Some("none".to_owned()),
                config: None,
            }),
            mounts: Some(vec![tree_mount(volume, Access::Write)]),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    }
}

/// The src roots that are directories, without those that stand under another.
fn src_directories(roots: &[String]) -> Vec<&str> {
    roots
        .iter()
        .filter(|root| root.ends_with('/'))
        .filter(|root| {
            !roots.iter().any(|other| {
                other != *root && other.ends_with('/') && root.starts_with(other.as_str())
            })
        })
        .map(|root| root.trim_end_matches('/'))
        .collect()
}

/// Bytes that the tar's entries take on a tmpfs: whole pages, and some room.
fn size_on_tmpfs(tar: &Bytes) -> Result<u64, Aborted> {
    let broken = |error: std::io::Error| {
        Aborted::new(
            AbortedCode::Internal,
            format!("the src tar cannot be read: {error}"),
        )
    };
    let mut archive = tar::Archive::new(std::io::Cursor::new(tar));
    let mut size = MIB;
    for entry in archive.entries_with_seek().map_err(broken)? {
        let bytes = entry.map_err(broken)?.size();
        size = size.saturating_add(bytes.div_ceil(PAGE).saturating_mul(PAGE) + PAGE);
    }
    Ok(size)
}

fn ulimits() -> Vec<ResourcesUlimits> {
    let limit = |name: &str, soft: i64, hard: i64| ResourcesUlimits {
        name: Some(name.to_owned()),
        soft: Some(soft),
        hard: Some(hard),
    };
    vec![
        limit("core", 0, 0),
        limit("nofile", 1024, 4096),
        limit("memlock", 64 << 10, 64 << 10),
        limit("msgqueue", 0, 0),
        limit("rtprio", 0, 0),
        limit("stack", 8 << 20, 64 << 20),
    ]
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    #[test]
    fn a_tar_is_counted_in_pages() {
        let mut builder = tar::Builder::new(Vec::new());
        for (name, size) in [("src/a.py", 1u64), ("src/b.py", 4096), ("src/c.py", 4097)] {
            let mut header = tar::Header::new_gnu();
            header.set_size(size);
            header.set_mode(0o644);
            let content = vec![b'x'; usize::try_from(size).unwrap()];
            builder
                .append_data(&mut header, name, content.as_slice())
                .unwrap();
        }
        let tar = Bytes::from(builder.into_inner().unwrap());
        assert_eq!(size_on_tmpfs(&tar).unwrap(), MIB + 3 * PAGE + 4 * PAGE);
        assert!(size_on_tmpfs(&Bytes::from_static(&[1; 700])).is_err());
    }

    #[test]
    fn nested_and_single_file_roots_get_no_mount_of_their_own() {
        let roots = ["src/", "src/vendored/", "parse.py", "lib/"].map(str::to_owned);
        assert_eq!(src_directories(&roots), ["src", "lib"]);
    }
}
