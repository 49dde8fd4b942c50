//! The file's own form.

use super::notify;
use super::table::Reader;
use super::{
    Admin, Calls, Config, Engine, Fetch, Keep, Listen, LogFormat, Mistake, Mistakes, Oracle,
    PageShown, Plant, ReadyRooms, SecretFile, Signing, TlsFiles, Traces, Uploads,
};
use crate::queue::QueueLimits;
use crate::repository::Protocol;
use std::path::{Path, PathBuf};
use toml::Table;

const PROTOCOLS: [Protocol; 4] = [
    Protocol::File,
    Protocol::Https,
    Protocol::Ssh,
    Protocol::Git,
];

/// A configuration file's text, over the defaults. Relative paths are relative to `folder`, where the file stands.
///
/// # Errors
/// Every mistake at once.
pub fn from_toml(text: &str, folder: &Path) -> Result<Config, Mistakes> {
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        let what = format!("is not TOML: {error}");
        Mistakes(vec![Mistake {
            key: String::new(),
            what,
        }])
    })?;
    let mut config = Config::default();
    let mut mistakes = Vec::new();
    let mut root = Reader::new("", Some(&table));
    if let Some(name) = root.text("name") {
        config.name = name;
    }
    if let Some(log) = root.text("log") {
        config.log = log;
    }
    match root.text("log_format").as_deref() {
        None => {}
        Some("text") => config.log_format = LogFormat::Text,
        Some("json") => config.log_format = LogFormat::Json,
        Some(_) => root.wrong("log_format", "must be \"text\" or \"json\""),
    }
    let listen_table = root.table("listen");
    listen(listen_table, folder, &mut config.listen, &mut mistakes);
    let signing_table = root.table("signing");
    signing(signing_table, folder, &mut config.signing, &mut mistakes);
    let queue_table = root.table("queue");
    queue(
        queue_table,
        &mut config.queue,
        &mut config.drain,
        &mut mistakes,
    );
    calls(root.table("calls"), &mut config.calls, &mut mistakes);
    uploads(root.table("uploads"), &mut config.uploads, &mut mistakes);
    fetch(
        root.table("fetch"),
        folder,
        &mut config.fetch,
        &mut mistakes,
    );
    engine(root.table("engine"), &mut config.engine, &mut mistakes);
    rooms(root.table("rooms"), &mut config.rooms, &mut mistakes);
    oracle(root.table("oracle"), &mut config.oracle, &mut mistakes);
    keep(root.table("keep"), &mut config.keep, &mut mistakes);
    notify::read(
        root.table("notify"),
        folder,
        &mut config.notify,
        &mut mistakes,
    );
    admin(root.table("admin"), &mut config.admin, &mut mistakes);
    traces(root.table("traces"), &mut config.traces, &mut mistakes);
    root.finish(&mut mistakes);
    if mistakes.is_empty() {
        Ok(config)
    } else {
        Err(Mistakes(mistakes))
    }
}

fn path(reader: &mut Reader<'_>, key: &'static str, folder: &Path) -> Option<PathBuf> {
    reader.text(key).map(|text| folder.join(text))
}

fn secret(reader: &mut Reader<'_>, key: &'static str, folder: &Path) -> Option<SecretFile> {
    match SecretFile::of(&reader.text(key)?, folder) {
        Ok(secret) => Some(secret),
        Err(error) => {
            reader.wrong(key, error.to_string());
            None
        }
    }
}

fn signing(table: Option<&Table>, folder: &Path, signing: &mut Signing, into: &mut Vec<Mistake>) {
    let mut reader = Reader::new("signing", table);
    signing.key = secret(&mut reader, "key", folder);
    reader.finish(into);
}

fn listen(table: Option<&Table>, folder: &Path, listen: &mut Listen, into: &mut Vec<Mistake>) {
    let mut reader = Reader::new("listen", table);
    if let Some(address) = reader.parsed("address", "an address and a port like \"127.0.0.1:7443\"")
    {
        listen.address = address;
    }
    let certificate = path(&mut reader, "certificate", folder);
    let key = secret(&mut reader, "key", folder);
    let client_ca = path(&mut reader, "client_ca", folder);
    match (certificate, key, client_ca) {
        (Some(certificate), Some(key), client_ca) => {
            listen.tls = Some(TlsFiles {
                certificate,
                key,
                client_ca,
            });
        }
        (None, None, None) => {}
        (None, _, _) => reader.wrong("certificate", "is missing: TLS needs certificate and key"),
        (Some(_), None, _) => reader.wrong("key", "is missing: TLS needs certificate and key"),
    }
    reader.finish(into);
}

fn queue(
    table: Option<&Table>,
    queue: &mut QueueLimits,
    drain: &mut std::time::Duration,
    into: &mut Vec<Mistake>,
) {
    let mut reader = Reader::new("queue", table);
    reader.count("workers", 1, 1024, &mut queue.workers);
    reader.count("capacity", 1, 100_000, &mut queue.capacity);
    reader.count("running_per_token", 1, 1024, &mut queue.running_per_token);
    reader.count("open_per_token", 1, 100_000, &mut queue.open_per_token);
    reader.count(
        "hourly_per_token",
        1,
        1_000_000,
        &mut queue.hourly_per_token,
    );
    reader.duration("stall", &mut queue.stall);
    reader.duration("drain", drain);
    reader.finish(into);
}

fn calls(table: Option<&Table>, calls: &mut Calls, into: &mut Vec<Mistake>) {
    let mut reader = Reader::new("calls", table);
    reader.count("per_second", 1, 100_000, &mut calls.per_second);
    reader.count("burst", 1, 100_000, &mut calls.burst);
    reader.count("collections", 1, 1024, &mut calls.collections);
    reader.duration("heartbeat", &mut calls.heartbeat);
    reader.duration("keepalive", &mut calls.keepalive);
    reader.finish(into);
}

fn uploads(table: Option<&Table>, uploads: &mut Uploads, into: &mut Vec<Mistake>) {
    let mut reader = Reader::new("uploads", table);
    let limits = &mut uploads.limits;
    reader.size("bytes", &mut limits.bytes);
    reader.size("object_bytes", &mut limits.object_bytes);
    reader.count("objects", 1, 100_000_000, &mut limits.objects);
    reader.size("memory", &mut limits.memory);
    reader.size("kept_bytes", &mut limits.kept_bytes);
    let mut time = std::time::Duration::from_secs(limits.seconds);
    reader.duration("time", &mut time);
    limits.seconds = time.as_secs().max(1);
    reader.count("at_once", 1, 1024, &mut uploads.at_once);
    reader.finish(into);
}

fn fetch(table: Option<&Table>, folder: &Path, fetch: &mut Fetch, into: &mut Vec<Mistake>) {
    let mut reader = Reader::new("fetch", table);
    if let Some(names) = reader.texts("protocols") {
        let mut protocols = Vec::new();
        for name in names {
            match PROTOCOLS.into_iter().find(|p| p.name() == name) {
                Some(protocol) => protocols.push(protocol),
                None => reader.wrong(
                    "protocols",
                    "may hold \"file\", \"https\", \"ssh\" and \"git\"",
                ),
            }
        }
        fetch.protocols = protocols;
    }
    reader.duration("timeout", &mut fetch.timeout);
    fetch.git_config = path(&mut reader, "git_config", folder);
    if let Some(names) = reader.texts("environment") {
        fetch.environment = names;
    }
    reader.finish(into);
}

fn engine(table: Option<&Table>, engine: &mut Engine, into: &mut Vec<Mistake>) {
    let mut reader = Reader::new("engine", table);
    engine.host = reader.text("host");
    reader.finish(into);
}

fn rooms(table: Option<&Table>, rooms: &mut ReadyRooms, into: &mut Vec<Mistake>) {
    let mut reader = Reader::new("rooms", table);
    reader.count("ready", 0, 64, &mut rooms.ready);
    reader.finish(into);
}

fn oracle(table: Option<&Table>, oracle: &mut Oracle, into: &mut Vec<Mistake>) {
    let mut reader = Reader::new("oracle", table);
    match reader.text("plant").as_deref() {
        None => {}
        Some("idle") => oracle.plant = Plant::Idle,
        Some("asked") => oracle.plant = Plant::Asked,
        Some(_) => reader.wrong("plant", "must be \"idle\" or \"asked\""),
    }
    reader.finish(into);
}

fn admin(table: Option<&Table>, admin: &mut Admin, into: &mut Vec<Mistake>) {
    let mut reader = Reader::new("admin", table);
    admin.listen = reader.parsed("listen", "an address and a port like \"127.0.0.1:7444\"");
    match reader.text("page").as_deref() {
        None => {}
        Some("on") => admin.page = PageShown::On,
        Some("off") => admin.page = PageShown::Off,
        Some(_) => reader.wrong("page", "must be \"on\" or \"off\""),
    }
    if let Some(names) = reader.texts("names") {
        admin.names = names;
    }
    reader.finish(into);
}

fn traces(table: Option<&Table>, traces: &mut Traces, into: &mut Vec<Mistake>) {
    let mut reader = Reader::new("traces", table);
    traces.collector = reader.parsed("collector", notify::URL);
    reader.finish(into);
}

fn keep(table: Option<&Table>, keep: &mut Keep, into: &mut Vec<Mistake>) {
    let mut reader = Reader::new("keep", table);
    reader.duration("uploads", &mut keep.uploads);
    reader.duration("trees", &mut keep.trees);
    reader.finish(into);
}
