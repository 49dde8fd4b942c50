//! `cassette record`: the server runs the case, this machine performs its requests, and what it read is written down as a
//! draft that nobody has accepted.

use super::accept::notes;
use super::draft::{Draft, Taken, draft};
use super::shelves::Shelves;
use crate::checkout::{policy_in, read, write};
use crate::cli;
use crate::config::Settings;
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::outside::{Outside, OutsideError};
use crate::progress::Progress;
use crate::remote::{Heard, Recorder, Remote};
use crate::scoring::{is, send_missing};
use crate::workspace::Workspace;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tribunal_core::cassette::{Cassette, Entry, Kind, Ledger};
use tribunal_core::id::{CommitId, Digest, NodeId, RepoPath};
use tribunal_core::reason::RefusedCode;
use tribunal_core::text::shown;
use tribunal_proto::v1::Recording;

/// What a note says where nobody says more.
const WHY: &str = "recorded from a run of the case";

/// Run it: 0 once the draft is written.
pub(in crate::commands) async fn run(
    args: &cli::CassetteRecord,
    settings: &Settings,
    console: &mut Console,
) -> Result<Exit, Failure> {
    let workspace = Workspace::require(Path::new("."))?;
    let node: NodeId = args.node.parse().map_err(|error| {
        Failure::usage(
            "find the case",
            error,
            "name it as in tests/test_a.py::test_b",
        )
    })?;
    let commit = workspace.commit(&args.commit)?;
    let shelves = Shelves::read(Path::new("."), None)?;
    let listings = listings(&args.fs)?;
    let outside = Outside::new(&args.host, &args.connect, args.ca.as_deref()).map_err(|error| {
        Failure::usage("prepare the network", error, "name a PEM file with --ca")
    })?;
    let remote = Remote::connect(settings).await?;
    let recorder = begin(
        settings, &remote, &workspace, &commit, args, &listings, console,
    )
    .await?;
    let (taken, recording) = listen(recorder, &outside, console).await?;
    sound(&taken, &recording)?;
    let pins: BTreeSet<String> = args.pin.iter().map(|name| name.to_lowercase()).collect();
    let taken: Vec<Taken> = taken.into_iter().filter_map(Result::ok).collect();
    let draft = draft(node, &taken, &recording, &listings, &pins);
    if recording.listings > 0 && draft.cassette.fs.is_empty() {
        console.note(&format!(
            "the case listed directories {} times; their order is pinned for every case, and --fs DIR pins what one outside holds",
            recording.listings
        ));
    }
    for line in &draft.told {
        console.say(line);
    }
    let why = args.why.as_deref().unwrap_or(WHY);
    let path = put(&draft, why, &shelves, args.dry_run, console)?;
    console.json(&json!({
        "path": path.as_str(), "test": draft.cassette.test.as_str(), "commit": recording.commit,
        "pins": draft.cassette.pins().keys().collect::<Vec<_>>(), "told": draft.told,
        "written": !args.dry_run,
    }));
    Ok(Exit::MergeOk)
}

/// The recording begins, on a commit that is sent first where only this workspace has it.
async fn begin(
    settings: &Settings,
    remote: &Remote,
    workspace: &Workspace,
    commit: &CommitId,
    args: &cli::CassetteRecord,
    listings: &BTreeMap<String, Vec<String>>,
    console: &mut Console,
) -> Result<Recorder, Failure> {
    let repo = settings.repo()?;
    let about = remote.repository(repo).await?;
    let progress = Progress::on(console);
    let sent = send_missing(remote, repo, &about, workspace, commit, &progress, console).await;
    progress.finish();
    if let Err(failure) = sent
        && !is(&failure, RefusedCode::MissingPrerequisite)
    {
        return Err(failure);
    }
    console.note(&format!("recording {} at {commit}", shown(&args.node, 300)));
    remote.record(repo, commit, &args.node, listings).await
}

/// Every request of the case is performed, or told why not, until the recording comes.
async fn listen(
    mut recorder: Recorder,
    outside: &Outside,
    console: &mut Console,
) -> Result<(Vec<Result<Taken, OutsideError>>, Recording), Failure> {
    let mut taken = Vec::new();
    loop {
        match recorder.next().await? {
            Heard::Recording(recording) => return Ok((taken, recording)),
            Heard::Ask(id, asked) => {
                let which = format!(
                    "{} {}://{}{}",
                    shown(&asked.method, 20),
                    asked.scheme,
                    shown(&asked.host, 200),
                    shown(&asked.path, 200)
                );
                let answered = outside.perform(&asked).await;
                recorder.answer(id, answered.as_ref().ok()).await;
                let word = match &answered {
                    Ok(answered) => answered.status.to_string(),
                    Err(_) => "not performed".to_owned(),
                };
                console.note(&format!("{which}: {word}"));
                taken.push(answered.map(|answered| Taken { asked, answered }));
            }
        }
    }
}

/// A draft of a run that lacked something would replay that lack.
fn sound(taken: &[Result<Taken, OutsideError>], recording: &Recording) -> Result<(), Failure> {
    let refused: BTreeSet<&str> = taken
        .iter()
        .filter_map(|one| match one {
            Err(OutsideError::Host(host)) => Some(host.as_str()),
            Ok(_) | Err(OutsideError::Silent { .. } | OutsideError::Authorities(_)) => None,
        })
        .collect();
    let what = "record the case";
    if !refused.is_empty() {
        let flags: Vec<String> = refused
            .iter()
            .map(|host| format!("--host {}", shown(host, 200)))
            .collect();
        return Err(Failure::usage(
            what,
            "the case asks hosts that nobody named, and they were not asked",
            format!(
                "if this machine may ask them on its behalf: {}",
                flags.join(" ")
            ),
        ));
    }
    if let Some(Err(error)) = taken.iter().find(|one| one.is_err()) {
        let next = "see that this machine reaches it, or name another place with --connect HOST=ADDRESS:PORT";
        return Err(Failure::usage(what, shown(&error.to_string(), 500), next));
    }
    if let Some(miss) = recording.misses.first() {
        let why = format!(
            "the case asked something that is no HTTP request: {}",
            shown(miss, 300)
        );
        return Err(Failure::usage(
            what,
            why,
            "a cassette cannot answer that; take it out of the case",
        ));
    }
    if !recording.failure.is_empty() {
        let why = format!("the case did not pass: {}", shown(&recording.failure, 1000));
        return Err(Failure::usage(
            what,
            why,
            "a record is made of a case that passes; mend it first",
        ));
    }
    Ok(())
}

/// `DIR` or `DIR=PLACE`: what `DIR` is to list is what `PLACE` on this machine holds, in order of the names' bytes.
fn listings(wanted: &[String]) -> Result<BTreeMap<String, Vec<String>>, Failure> {
    let mut listings = BTreeMap::new();
    for text in wanted {
        let (directory, place) = text.split_once('=').unwrap_or((text, text));
        let bad = |why: String| {
            Failure::usage(
                format!("list {}", shown(place, 200)),
                why,
                "name a directory that can be read, as in --fs /srv/outbox=./outbox",
            )
        };
        if !directory.starts_with('/') {
            return Err(bad(format!("{} is not absolute", shown(directory, 200))));
        }
        let mut names = Vec::new();
        for entry in std::fs::read_dir(place).map_err(|e| bad(e.to_string()))? {
            let name = entry.map_err(|e| bad(e.to_string()))?.file_name();
            names.push(
                name.into_string()
                    .map_err(|_| bad("it holds a name that is not UTF-8".to_owned()))?,
            );
        }
        names.sort();
        listings.insert(directory.to_owned(), names);
    }
    Ok(listings)
}

/// Record, bodies and ledger entry into the checkout, the ledger last.
fn put(
    draft: &Draft,
    why: &str,
    shelves: &Shelves,
    dry_run: bool,
    console: &mut Console,
) -> Result<RepoPath, Failure> {
    let top = &shelves.top;
    let paths = policy_in(top)?.paths;
    let path = place(&draft.cassette.test, shelves)?;
    let text = draft.cassette.to_json();
    if dry_run {
        console.say(text.trim_end());
        return Ok(path);
    }
    let there = read(&top.join(paths.ledger.as_str()))?;
    let mut ledger = match &there {
        None => Ledger::default(),
        Some(bytes) => Ledger::parse(bytes).map_err(|e| {
            Failure::usage(format!("read {}", paths.ledger), e, "mend what is named")
        })?,
    };
    let mut entry = Entry {
        path: path.clone(),
        sha256: Digest::of(text.as_bytes()).hex().to_owned(),
        pins: draft.cassette.pins().into_keys().collect(),
        notes: ledger
            .of(path.as_str())
            .map(|old| old.notes.clone())
            .unwrap_or_default(),
        accepted_by: String::new(),
        signature: String::new(),
    };
    entry.notes = notes(&path, why, &draft.cassette, shelves, &entry);
    match ledger.entries.iter_mut().find(|other| other.path == path) {
        Some(other) => *other = entry,
        None => ledger.entries.push(entry),
    }
    for (sha256, body) in &draft.bodies {
        write(top, &format!("{}bodies/{sha256}", paths.cassettes), body)?;
    }
    write(top, path.as_str(), text.as_bytes())?;
    write(top, paths.ledger.as_str(), ledger.to_json().as_bytes())?;
    for (pin, held) in draft.cassette.pins() {
        console.say(&format!("pinned {} ({})", shown(&pin, 200), held.len()));
    }
    console.say(&format!(
        "wrote {path}, {} bodies, and a draft entry in {}",
        draft.bodies.len(),
        paths.ledger
    ));
    console.note(&format!(
        "next: read them, then tribunal cassette accept {path}"
    ));
    Ok(path)
}

/// The file of this test's record: the one that is there, or a new one named after the test.
fn place(test: &NodeId, shelves: &Shelves) -> Result<RepoPath, Failure> {
    let paths = &shelves.policy.paths;
    let head = &shelves.facts.head.files;
    let of = |bytes: Option<&[u8]>| Some(Cassette::parse(bytes?).ok()?.test);
    let known = head.iter().find(|(path, leaf)| {
        Kind::of(paths, path) == Some(Kind::Record) && of(leaf.bytes()).as_ref() == Some(test)
    });
    let name = match known.and_then(|(path, _)| path.as_utf8()) {
        Some(path) => path.to_owned(),
        None => {
            let taken = |name: &str| head.keys().any(|path| path.as_utf8() == Some(name));
            let plain = format!("{}{}.json", paths.cassettes, slug(test));
            let hash = Digest::of(test.as_str().as_bytes());
            let other = hash.hex().get(..8).unwrap_or_default();
            if taken(&plain) {
                format!("{}{}-{other}.json", paths.cassettes, slug(test))
            } else {
                plain
            }
        }
    };
    name.parse()
        .map_err(|error| Failure::usage("name the cassette", error, "give the test a plainer name"))
}

/// `test_rates__test_usd` of `tests/sealed/test_rates.py::test_usd`.
fn slug(test: &NodeId) -> String {
    let (file, rest) = test
        .as_str()
        .split_once("::")
        .unwrap_or((test.as_str(), ""));
    let stem = file
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .trim_end_matches(".py");
    let name = format!("{stem}__{}", rest.replace("::", "."));
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let name: String = name
        .chars()
        .map(|c| if plain(c) { c } else { '-' })
        .take(120)
        .collect();
    name.trim_end_matches(['-', '.', '_']).to_owned()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may fail loudly")]
    use super::*;

    #[test]
    fn files_are_named_after_their_tests() {
        for (node, name) in [
            (
                "tests/sealed/test_rates.py::test_usd",
                "test_rates__test_usd",
            ),
            (
                "tests/test_a.py::TestX::test_b[a/b c]",
                "test_a__TestX.test_b-a-b-c",
            ),
            ("tests/test_ü.py::test_é", "test_-__test"),
        ] {
            assert_eq!(slug(&node.parse().unwrap()), name, "{node}");
        }
    }

    #[test]
    fn listings_are_read_here_in_byte_order() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b", "a", "C"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let place = folder.path().display();
        let read = listings(&[format!("/srv/outbox={place}")]).unwrap();
        assert_eq!(read["/srv/outbox"], ["C", "a", "b"]);
        assert!(listings(&["relative".to_owned()]).is_err());
        assert!(listings(&[format!("/srv/x={place}/none")]).is_err());
    }

    #[test]
    fn a_run_that_lacked_something_is_no_record() {
        let host = Err(OutsideError::Host("db.example.org".to_owned()));
        let failure = sound(&[host], &Recording::default()).unwrap_err();
        assert!(failure.next.contains("--host db.example.org"), "{failure}");
        let red = Recording {
            failure: "AssertionError: assert 1 == 2".to_owned(),
            ..Recording::default()
        };
        assert!(sound(&[], &red).unwrap_err().why.contains("assert 1 == 2"));
        let raw = Recording {
            misses: vec!["tcp:80 (not HTTP)".to_owned()],
            ..Recording::default()
        };
        assert!(sound(&[], &raw).is_err());
        assert!(sound(&[], &Recording::default()).is_ok());
    }
}
