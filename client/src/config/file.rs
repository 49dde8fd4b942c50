//! The configuration file. One that is not there says nothing, unless it was named.

use super::{Environment, Flags};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use tribunal_core::text::shown;

/// `config.toml`. Paths in it are relative to its own folder.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) server: Option<String>,
    pub(super) repo: Option<String>,
    pub(super) token: Option<String>,
    pub(super) token_file: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
    pub(super) ca: Option<PathBuf>,
    pub(super) client_cert: Option<PathBuf>,
    pub(super) client_key: Option<PathBuf>,
    pub(super) insecure: Option<bool>,
}

/// The file and its folder.
pub(super) fn read(
    flags: &Flags,
    env: &Environment,
    mistakes: &mut Vec<String>,
) -> (File, PathBuf) {
    let named = flags.config.clone();
    let Some(path) = named.clone().or_else(|| default_file(env)) else {
        return (File::default(), PathBuf::new());
    };
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && named.is_none() => {
            return (File::default(), folder);
        }
        Err(e) => {
            mistakes.push(format!("{}: {e}", path.display()));
            return (File::default(), folder);
        }
    };
    match toml::from_str(&text) {
        Ok(file) => (file, folder),
        Err(e) => {
            // The message names line and key; the excerpt under it could hold the token, so it is left out.
            let line = e
                .span()
                .map_or(0, |span| text[..span.start.min(text.len())].lines().count());
            mistakes.push(format!(
                "{}: near line {line}: {}",
                path.display(),
                shown(e.message(), 300)
            ));
            (File::default(), folder)
        }
    }
}

fn default_file(env: &Environment) -> Option<PathBuf> {
    let home = match env.get("XDG_CONFIG_HOME").filter(|v| v.starts_with('/')) {
        Some(dir) => PathBuf::from(dir),
        None => PathBuf::from(env.get("HOME").filter(|v| !v.is_empty())?).join(".config"),
    };
    Some(home.join("tribunal/config.toml"))
}
