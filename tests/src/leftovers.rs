//! What a server must not leave behind: containers, volumes, processes, files. Asked past the server.

use crate::server::Server;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The names of this server's containers, running or not.
#[must_use]
pub fn containers(server: &Server) -> Vec<String> {
    docker(server, &["ps", "-a", "--format", "{{.Names}}"])
}

/// The names of this server's volumes.
#[must_use]
pub fn volumes(server: &Server) -> Vec<String> {
    docker(server, &["volume", "ls", "--format", "{{.Name}}"])
}

fn docker(server: &Server, args: &[&str]) -> Vec<String> {
    let label = format!("label=tribunal.instance={}", server.instance());
    let output = Command::new("docker")
        .args(args)
        .args(["--filter", &label])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "docker {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

/// The processes that a process started and that still run, and theirs.
#[must_use]
pub fn descendants(pid: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| {
            let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            // The name may hold anything; what follows its last bracket does not.
            let parent = stat.rsplit(") ").next()?.split(' ').nth(1)?;
            Some((pid, parent.parse().ok()?))
        })
        .collect();
    let mut found = BTreeSet::from([pid]);
    loop {
        let more: BTreeSet<u32> = parents
            .iter()
            .filter(|(_, parent)| found.contains(parent))
            .map(|(pid, _)| *pid)
            .collect();
        let before = found.len();
        found.extend(more);
        if found.len() == before {
            found.remove(&pid);
            return found.into_iter().collect();
        }
    }
}

/// Processes of the machine whose command line, folder or environment names this folder, less ourselves.
#[must_use]
pub fn processes_about(folder: &Path) -> Vec<String> {
    let wanted = folder.to_str().unwrap();
    let us = std::process::id().to_string();
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| {
            let process = entry.ok()?.path();
            let pid = process.file_name()?.to_str()?.to_owned();
            if pid == us || !pid.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            let read = |name: &str| {
                let bytes = fs::read(process.join(name)).unwrap_or_default();
                String::from_utf8_lossy(&bytes).replace('\0', " ")
            };
            let line = read("cmdline");
            let at = fs::read_link(process.join("cwd")).unwrap_or_default();
            let about = line.contains(wanted)
                || read("environ").contains(wanted)
                || at.to_string_lossy().starts_with(wanted);
            about.then(|| format!("{pid} {line}"))
        })
        .collect()
}

/// What stands in a folder, files that only lock it left aside.
#[must_use]
pub fn entries(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .map(|entries| {
            entries
                .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
                .filter(|name| name != ".gate")
                .collect()
        })
        .unwrap_or_default();
    names.sort();
    names
}

/// The most memory a process and those it starts have taken, looked at often while this lives.
pub struct Memory {
    pid: u32,
    children: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
    looking: Option<std::thread::JoinHandle<()>>,
}

impl Memory {
    /// Look at the server's processes from now on.
    #[must_use]
    pub fn of(server: &Server) -> Self {
        let pid = server.pid();
        let (children, over) = (
            Arc::new(AtomicU64::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        let (most, done) = (Arc::clone(&children), Arc::clone(&over));
        let looking = std::thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                for child in descendants(pid) {
                    most.fetch_max(high_water(child).unwrap_or(0), Ordering::Relaxed);
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        Self {
            pid,
            children,
            over,
            looking: Some(looking),
        }
    }

    /// Bytes that the server itself held at most, in all its life.
    #[must_use]
    pub fn server(&self) -> u64 {
        high_water(self.pid).unwrap()
    }

    /// Bytes that any one process which it started held at most, as far as it was seen.
    #[must_use]
    pub fn children(&self) -> u64 {
        self.children.load(Ordering::Relaxed)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(looking) = self.looking.take() {
            let _ = looking.join();
        }
    }
}

/// `VmHWM`, the high-water mark of a process's resident memory, in bytes.
fn high_water(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib << 10)
}
