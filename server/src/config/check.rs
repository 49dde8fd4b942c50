//! What a configuration says as a whole: rules across keys, files that must be there, and the text of `check-config`.

use super::notify;
use super::unit::{shown_duration, shown_size};
use super::{Config, LogFormat, Mistake, Mistakes, PageShown, Plant, SecretFile};
use std::fmt::Write as _;
use std::path::Path;

/// Look at what the file alone cannot tell.
///
/// # Errors
/// Every mistake at once.
pub fn check(config: &Config) -> Result<(), Mistakes> {
    let mut mistakes = Vec::new();
    let mut wrong = |key: &str, what: String| {
        mistakes.push(Mistake {
            key: key.to_owned(),
            what,
        });
    };
    let name_fits = (1..=64).contains(&config.name.len())
        && config
            .name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    if !name_fits {
        wrong("name", "must be 1 to 64 of A-Z a-z 0-9 - _ .".to_owned());
    }
    if config.queue.workers == 0 {
        wrong("queue.workers", "must be at least 1".to_owned());
    }
    if config.listen.tls.is_none() && !config.listen.address.ip().is_loopback() {
        let what = format!(
            "{} is not loopback, and tokens never cross a network in plain text: give listen.certificate and \
             listen.key, or listen on 127.0.0.1",
            config.listen.address
        );
        wrong("listen.address", what);
    }
    if let Some(address) = config.admin.listen.filter(|a| !a.ip().is_loopback()) {
        let what = format!(
            "{address} is not loopback, and the admin port asks for no token: listen on 127.0.0.1"
        );
        wrong("admin.listen", what);
    }
    let host = |name: &str| {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-.".contains(&b);
        (1..=253).contains(&name.len()) && name.bytes().all(plain)
    };
    if !config.admin.names.iter().all(|name| host(name)) {
        let what = "must be host names like \"tribunal.example.com\", without a port".to_owned();
        wrong("admin.names", what);
    }
    if let Some(tls) = &config.listen.tls {
        let files = [
            ("listen.certificate", Some(&tls.certificate)),
            ("listen.client_ca", tls.client_ca.as_ref()),
        ];
        for (key, file) in files {
            if let Some(Err(error)) = file.map(std::fs::File::open) {
                wrong(key, format!("{} cannot be read: {error}", shown_path(file)));
            }
        }
    }
    let tls_key = config.listen.tls.as_ref().map(|tls| &tls.key);
    let secrets = [
        ("listen.key", tls_key),
        ("signing.key", config.signing.key.as_ref()),
    ];
    for (key, secret) in secrets {
        if let Some(Err(why)) = secret.map(readable) {
            wrong(key, why);
        }
    }
    if let Some(file) = &config.fetch.git_config
        && let Err(error) = std::fs::File::open(file)
    {
        let what = format!("{} cannot be read: {error}", file.display());
        wrong("fetch.git_config", what);
    }
    if config
        .log
        .parse::<tracing_subscriber::filter::EnvFilter>()
        .is_err()
    {
        let what = "must be like \"info\" or \"info,tribunal_server=debug\"".to_owned();
        wrong("log", what);
    }
    if config.traces.collector.is_some() && !crate::traces::BUILT {
        let what =
            "this server was built without the feature `otel`: take it out, or build one with it";
        wrong("traces.collector", what.to_owned());
    }
    if let Err(Mistakes(more)) = notify::check(&config.notify) {
        mistakes.extend(more);
    }
    if mistakes.is_empty() {
        Ok(())
    } else {
        Err(Mistakes(mistakes))
    }
}

fn readable(secret: &SecretFile) -> Result<(), String> {
    let unread = |error: &dyn std::fmt::Display| format!("{secret} cannot be read: {error}");
    let file = secret.locate().map_err(|error| unread(&error))?;
    match std::fs::File::open(file) {
        Ok(_) => Ok(()),
        Err(error) => Err(unread(&error)),
    }
}

fn shown_path(path: Option<&std::path::PathBuf>) -> String {
    path.map_or_else(String::new, |p| p.display().to_string())
}

impl Config {
    /// The whole of it as a file that says the same. Values of secrets are not in it: it knows none.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        let mut line = |key: &str, value: String| {
            // A String never fails to grow.
            let _ = writeln!(text, "{key} = {value}");
        };
        let quoted = |value: &str| toml::Value::from(value).to_string();
        let path = |value: &Path| quoted(&value.to_string_lossy());
        let list = |values: Vec<&str>| toml::Value::from(values).to_string();
        line("name", quoted(&self.name));
        line("log", quoted(&self.log));
        let log_format = match self.log_format {
            LogFormat::Text => "text",
            LogFormat::Json => "json",
        };
        line("log_format", quoted(log_format));

        line(
            "\n[listen]\naddress",
            quoted(&self.listen.address.to_string()),
        );
        if let Some(tls) = &self.listen.tls {
            line("certificate", path(&tls.certificate));
            line("key", quoted(&tls.key.to_string()));
            if let Some(ca) = &tls.client_ca {
                line("client_ca", path(ca));
            }
        }
        if let Some(key) = &self.signing.key {
            line("\n[signing]\nkey", quoted(&key.to_string()));
        }
        let queue = &self.queue;
        line("\n[queue]\nworkers", queue.workers.to_string());
        line("capacity", queue.capacity.to_string());
        line("running_per_token", queue.running_per_token.to_string());
        line("open_per_token", queue.open_per_token.to_string());
        line("hourly_per_token", queue.hourly_per_token.to_string());
        line("stall", quoted(&shown_duration(queue.stall)));
        line("drain", quoted(&shown_duration(self.drain)));
        let calls = &self.calls;
        line("\n[calls]\nper_second", calls.per_second.to_string());
        line("burst", calls.burst.to_string());
        line("heartbeat", quoted(&shown_duration(calls.heartbeat)));
        line("keepalive", quoted(&shown_duration(calls.keepalive)));
        line("collections", calls.collections.to_string());
        let limits = &self.uploads.limits;
        line("\n[uploads]\nbytes", quoted(&shown_size(limits.bytes)));
        line("object_bytes", quoted(&shown_size(limits.object_bytes)));
        line("objects", limits.objects.to_string());
        line("memory", quoted(&shown_size(limits.memory)));
        line("kept_bytes", quoted(&shown_size(limits.kept_bytes)));
        let time = std::time::Duration::from_secs(limits.seconds);
        line("time", quoted(&shown_duration(time)));
        line("at_once", self.uploads.at_once.to_string());
        let fetch = &self.fetch;
        let protocols = fetch.protocols.iter().map(|p| p.name()).collect();
        line("\n[fetch]\nprotocols", list(protocols));
        line("timeout", quoted(&shown_duration(fetch.timeout)));
        if let Some(file) = &fetch.git_config {
            line("git_config", path(file));
        }
        let names = fetch.environment.iter().map(String::as_str).collect();
        line("environment", list(names));
        if let Some(host) = &self.engine.host {
            line("\n[engine]\nhost", quoted(host));
        }
        let plant = match self.oracle.plant {
            Plant::Idle => "idle",
            Plant::Asked => "asked",
        };
        line("\n[rooms]\nready", self.rooms.ready.to_string());
        line("\n[oracle]\nplant", quoted(plant));
        line(
            "\n[keep]\nuploads",
            quoted(&shown_duration(self.keep.uploads)),
        );
        line("trees", quoted(&shown_duration(self.keep.trees)));
        let page = match self.admin.page {
            PageShown::On => "on",
            PageShown::Off => "off",
        };
        line("\n[admin]\npage", quoted(page));
        let names = self.admin.names.iter().map(String::as_str).collect();
        line("names", list(names));
        if let Some(address) = self.admin.listen {
            line("listen", quoted(&address.to_string()));
        }
        if let Some(collector) = &self.traces.collector {
            line("\n[traces]\ncollector", quoted(&collector.to_string()));
        }
        text.push_str(&notify::shown(&self.notify));
        text
    }
}
