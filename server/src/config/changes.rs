//! What a new configuration changes for a server that runs: what it takes up, and what waits for a restart.

use super::Config;
use std::collections::BTreeMap;
use toml::Table;

/// Keys that a running server takes up. Those of `listen` as long as TLS stays TLS.
const TAKEN_UP: [&str; 8] = [
    "keep.trees",
    "keep.uploads",
    "listen.certificate",
    "listen.client_ca",
    "listen.key",
    "log",
    "notify",
    "queue.drain",
];

/// Keys whose values differ.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// They hold from now on.
    pub taken_up: Vec<String>,
    /// They hold after a restart.
    pub at_restart: Vec<String>,
}

impl Config {
    /// This one with what a running server takes up of the new one, and what that changes.
    #[must_use]
    pub fn taking_up(&self, new: &Self) -> (Self, Changes) {
        let same_kind = self.listen.tls.is_some() == new.listen.tls.is_some();
        let mut taken = self.clone();
        taken.log.clone_from(&new.log);
        taken.drain = new.drain;
        taken.keep = new.keep.clone();
        taken.notify = new.notify.clone();
        if same_kind {
            taken.listen.tls.clone_from(&new.listen.tls);
        }
        let (old, new) = (leaves(self), leaves(new));
        let mut changes = Changes::default();
        let mut keys: Vec<&String> = old.keys().chain(new.keys()).collect();
        keys.sort();
        keys.dedup();
        for key in keys
            .into_iter()
            .filter(|key| old.get(*key) != new.get(*key))
        {
            let live = TAKEN_UP.iter().any(|known| {
                let below = key.strip_prefix(known);
                below.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            });
            if live && (same_kind || !key.starts_with("listen.")) {
                changes.taken_up.push(key.clone());
            } else {
                changes.at_restart.push(key.clone());
            }
        }
        (taken, changes)
    }
}

/// Every value by its whole key.
fn leaves(config: &Config) -> BTreeMap<String, String> {
    fn walk(prefix: &str, table: &Table, into: &mut BTreeMap<String, String>) {
        for (key, value) in table {
            let key = match prefix {
                "" => key.clone(),
                prefix => format!("{prefix}.{key}"),
            };
            match value.as_table() {
                Some(below) => walk(&key, below, into),
                None => {
                    into.insert(key, value.to_string());
                }
            }
        }
    }
    let mut leaves = BTreeMap::new();
    // What we write ourselves is TOML; a test reads it back.
    let table: Table = config.to_toml().parse().unwrap_or_default();
    walk("", &table, &mut leaves);
    leaves
}
