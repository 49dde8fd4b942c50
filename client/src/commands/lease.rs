//! `lease new`: the digest comes from the server, the rest from the maintainer, the file stays in shape.

use crate::checkout::{policy_in, read, write};
use crate::cli;
use crate::config::Settings;
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::gate::now;
use crate::lease_file::{Entry, Placed, with_lease};
use crate::progress::Progress;
use crate::remote::Remote;
use crate::scoring::{is, send_missing};
use crate::workspace::Workspace;
use serde_json::{Value, json};
use std::path::Path;
use tribunal_core::reason::RefusedCode;
use tribunal_core::text::shown;
use tribunal_proto::v1::{SealedCase, UncollectedFile};

/// Run it.
pub(super) async fn run(
    args: &cli::LeaseNew,
    settings: &Settings,
    console: &mut Console,
) -> Result<Exit, Failure> {
    let workspace = Workspace::require(Path::new("."))?;
    let top = workspace.top().ok_or_else(|| {
        Failure::usage(
            "find the lease file",
            "a bare repository has no work tree",
            "run this in a checkout",
        )
    })?;
    let path = policy_in(top)?.paths.leases;
    let expires_at = expiry(&args.expires)?;
    let remote = Remote::connect(settings).await?;
    let (cases, uncollected) = cases(args, settings, &remote, &workspace, console).await?;
    let case = named(&args.node, &cases, &uncollected)?;
    if case.bytecode_digest.is_empty() {
        return Err(Failure::usage(
            "take the case's digest",
            format!("{} has no code of its own", shown(&args.node, 300)),
            "no lease is possible for it; mend the test",
        ));
    }
    let entry = Entry {
        qualname: name_for(&args.node, case, &cases),
        bytecode_hash: case.bytecode_digest.clone(),
        failure_signature: args
            .signature
            .clone()
            .unwrap_or_else(|| case.failure_signature.clone()),
        expires_at,
        owner: args.owner.clone(),
        reason: args.reason.clone(),
    };
    let there = read(&top.join(path.as_str()))?;
    let there = there
        .map(String::from_utf8)
        .transpose()
        .map_err(|e| Failure::usage(format!("read {path}"), e, "make it UTF-8"))?;
    let (text, placed) = with_lease(there.as_deref(), &entry)
        .map_err(|e| Failure::usage(format!("add a lease to {path}"), e, "mend what is named"))?;
    if entry.failure_signature.is_empty() {
        console.warn(
            "the case passes when it is run, so its failure is not known: without --signature \"Type: first line of the failure\" the lease covers nothing (lease-signature-missing)",
        );
    }
    let result = match (args.dry_run, placed) {
        (true, _) => {
            console.say(text.trim_end());
            "not written"
        }
        (false, placed) => {
            write(top, path.as_str(), text.as_bytes())?;
            let word = match placed {
                Placed::Added => "added",
                Placed::Replaced => "renewed",
            };
            console.say(&format!("{word} {} in {path}", shown(&entry.qualname, 300)));
            console.note(
                "next: land it on the protected branch by itself, without src in the same patch",
            );
            word
        }
    };
    console.json(&json!({
        "path": path.as_str(), "qualname": entry.qualname, "bytecode_hash": entry.bytecode_hash,
        "result": result, "text": text,
    }));
    Ok(Exit::MergeOk)
}

/// The sealed cases of the commit that is meant, sent first where only this workspace has it.
async fn cases(
    args: &cli::LeaseNew,
    settings: &Settings,
    remote: &Remote,
    workspace: &Workspace,
    console: &mut Console,
) -> Result<(Vec<SealedCase>, Vec<UncollectedFile>), Failure> {
    let repo = settings.repo()?;
    let listed = remote.cases(repo, args.commit.as_ref()).await;
    match (listed, &args.commit) {
        (Err(failure), Some(commit)) if is(&failure, RefusedCode::UnknownCommit) => {
            let about = remote.repository(repo).await?;
            let progress = Progress::on(console);
            let sent =
                send_missing(remote, repo, &about, workspace, commit, &progress, console).await;
            progress.finish();
            sent?;
            remote.cases(repo, Some(commit)).await
        }
        (listed, _) => listed,
    }
}

/// The case, or the first of a function's cases where the name is the function's.
fn named<'a>(
    node: &str,
    cases: &'a [SealedCase],
    uncollected: &[UncollectedFile],
) -> Result<&'a SealedCase, Failure> {
    let parametrized = format!("{node}[");
    let found = cases
        .iter()
        .find(|case| case.node_id == node || case.qualname == node)
        .or_else(|| {
            cases
                .iter()
                .find(|case| case.node_id.starts_with(&parametrized))
        });
    if let Some(case) = found {
        return Ok(case);
    }
    if let Some(file) = uncollected.iter().find(|file| node.starts_with(&file.path)) {
        return Err(Failure::usage(
            "find the case",
            format!(
                "{} does not import: {}",
                shown(&file.path, 200),
                shown(&file.message, 300)
            ),
            "mend the file first",
        ));
    }
    let last = node.rsplit("::").next().unwrap_or(node);
    let alike: Vec<String> = cases
        .iter()
        .filter(|case| case.node_id.contains(last))
        .take(3)
        .map(|case| shown(&case.node_id, 200))
        .collect();
    let next = if alike.is_empty() {
        "name it as the report does, as in tests/sealed/test_a.py::test_b".to_owned()
    } else {
        format!("is it one of {}?", alike.join(", "))
    };
    Err(Failure::usage(
        "find the case",
        format!("there is no sealed case {}", shown(node, 300)),
        next,
    ))
}

/// The short name where it is enough, with the brackets that were asked for; the node id where two files share a stem.
fn name_for(node: &str, case: &SealedCase, cases: &[SealedCase]) -> String {
    let ambiguous = cases
        .iter()
        .any(|other| other.qualname == case.qualname && other.file != case.file)
        || stems_shared(case, cases);
    if ambiguous {
        return if node == case.qualname {
            case.node_id.clone()
        } else {
            node.to_owned()
        };
    }
    // Node ids are not split: what a parameter added is what remains after the function's own id.
    let dotted = case.qualname.split_once('.').map_or("", |(_, rest)| rest);
    let function = format!("{}::{}", case.file, dotted.replace('.', "::"));
    match node.strip_prefix(&function) {
        Some(brackets) => format!("{}{brackets}", case.qualname),
        None => case.qualname.clone(),
    }
}

fn stems_shared(case: &SealedCase, cases: &[SealedCase]) -> bool {
    let stem = |file: &str| file.rsplit('/').next().unwrap_or_default().to_owned();
    cases
        .iter()
        .any(|other| other.file != case.file && stem(&other.file) == stem(&case.file))
}

/// Seconds as a number, a time from now as seconds, anything else as it is spelled; the lease parser judges it.
fn expiry(text: &str) -> Result<Value, Failure> {
    let value = if let Ok(seconds) = text.parse::<i64>() {
        json!(seconds)
    } else if let Ok(ahead) = cli::duration(text) {
        json!(
            now()
                .0
                .saturating_add(i64::try_from(ahead.as_secs()).unwrap_or(i64::MAX))
        )
    } else {
        json!(text)
    };
    if value.as_i64().is_some_and(|at| at <= now().0) {
        return Err(Failure::usage(
            "read --expires",
            format!("{} is over already", shown(text, 60)),
            "name a time to come, as in 14d",
        ));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

    use super::*;

    fn case(file: &str, dotted: &str, brackets: &str) -> SealedCase {
        let stem = file.rsplit('/').next().unwrap().trim_end_matches(".py");
        SealedCase {
            node_id: format!("{file}::{}{brackets}", dotted.replace('.', "::")),
            file: file.to_owned(),
            qualname: format!("{stem}.{dotted}"),
            bytecode_digest: "v2:cp313:x".to_owned(),
            short_digest: String::new(),
            marks: Vec::new(),
            failure_signature: String::new(),
        }
    }

    #[test]
    fn a_case_is_named_as_shortly_as_is_clear() {
        let cases = [
            case("tests/sealed/test_p.py", "TestX.test_a", "[a::b]"),
            case("tests/sealed/test_p.py", "TestX.test_a", "[c]"),
            case("tests/sealed/test_p.py", "test_b", ""),
            case("tests/sealed/a/test_x.py", "test_c", ""),
            case("tests/sealed/b/test_x.py", "test_d", ""),
        ];
        for (node, name) in [
            (
                "tests/sealed/test_p.py::TestX::test_a[a::b]",
                "test_p.TestX.test_a[a::b]",
            ),
            (
                "tests/sealed/test_p.py::TestX::test_a",
                "test_p.TestX.test_a",
            ),
            ("tests/sealed/test_p.py::test_b", "test_p.test_b"),
            ("test_p.test_b", "test_p.test_b"),
            (
                "tests/sealed/a/test_x.py::test_c",
                "tests/sealed/a/test_x.py::test_c",
            ),
            ("test_x.test_d", "tests/sealed/b/test_x.py::test_d"),
        ] {
            let found = named(node, &cases, &[]).unwrap();
            assert_eq!(name_for(node, found, &cases), name, "{node}");
        }
    }

    #[test]
    fn what_is_not_there_is_told_with_what_is_alike() {
        let cases = [case("tests/sealed/test_p.py", "test_b", "")];
        let failure = named("tests/test_p.py::test_b", &cases, &[]).unwrap_err();
        assert!(
            failure.next.contains("tests/sealed/test_p.py::test_b"),
            "{failure}"
        );
        let broken = UncollectedFile {
            path: "tests/sealed/test_q.py".to_owned(),
            message: "SyntaxError".to_owned(),
        };
        let failure = named("tests/sealed/test_q.py::test_x", &cases, &[broken]).unwrap_err();
        assert!(failure.why.contains("SyntaxError"), "{failure}");
    }

    #[test]
    fn expiries() {
        assert!(expiry("14d").unwrap().as_i64().unwrap() > now().0);
        assert_eq!(expiry("4102444800").unwrap(), json!(4_102_444_800_i64));
        assert_eq!(
            expiry("2090-01-01T00:00:00Z").unwrap(),
            json!("2090-01-01T00:00:00Z")
        );
        assert!(expiry("1000000000").is_err());
    }
}
