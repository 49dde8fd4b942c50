//! `modes`: which sealed files need the product in their own process, as the server found by running base both ways.

use crate::checkout::{policy_in, read, write};
use crate::cli;
use crate::config::Settings;
use crate::console::{Console, Tone};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::policy_file::with_shared;
use crate::progress::Progress;
use crate::remote::Remote;
use crate::scoring::{is, send_missing};
use crate::workspace::Workspace;
use serde_json::{Value, json};
use std::path::Path;
use tribunal_core::id::RepoPath;
use tribunal_core::policy::POLICY_PATH;
use tribunal_core::reason::RefusedCode;
use tribunal_core::text::shown;
use tribunal_proto::v1::SealedFile;
use tribunal_proto::v1::sealed_file::Mode;

/// Cases of a file that are printed.
const CASES: usize = 5;

/// Run it: 0 where no file is red for want of being listed, or the list was written; 1 where one is.
pub(super) async fn run(
    args: &cli::Modes,
    settings: &Settings,
    console: &mut Console,
) -> Result<Exit, Failure> {
    let remote = Remote::connect(settings).await?;
    let (commit, files) = files(args, settings, &remote, console).await?;
    for file in &files {
        tell(file, console);
    }
    let proposed = proposed(&files)?;
    let lacking = files.iter().any(|file| file.mode() == Mode::NeedsShared);
    let written = args
        .write
        .then(|| write_list(&proposed, console))
        .transpose()?;
    if written.is_none() && lacking {
        console.say("next: tribunal modes --write");
    }
    console.json(&json!({
        "commit": commit,
        "files": files.iter().map(document).collect::<Vec<_>>(),
        "proposed": proposed,
        "result": written,
    }));
    Ok(if lacking && written.is_none() {
        Exit::Blocked
    } else {
        Exit::MergeOk
    })
}

/// The sealed files of the commit that is meant, sent first where only this workspace has it.
async fn files(
    args: &cli::Modes,
    settings: &Settings,
    remote: &Remote,
    console: &mut Console,
) -> Result<(String, Vec<SealedFile>), Failure> {
    let repo = settings.repo()?;
    let listed = remote.modes(repo, args.commit.as_ref()).await;
    match (listed, &args.commit) {
        (Err(failure), Some(commit)) if is(&failure, RefusedCode::UnknownCommit) => {
            let workspace = Workspace::require(Path::new("."))?;
            let about = remote.repository(repo).await?;
            let progress = Progress::on(console);
            let sent =
                send_missing(remote, repo, &about, &workspace, commit, &progress, console).await;
            progress.finish();
            sent?;
            remote.modes(repo, Some(commit)).await
        }
        (listed, _) => listed,
    }
}

fn tell(file: &SealedFile, console: &mut Console) {
    let word = match file.mode() {
        Mode::NeedsShared => console.for_out(Tone::Bad, word(file.mode())),
        Mode::Unspecified | Mode::Split | Mode::Shared | Mode::SharedWithoutNeed => {
            word(file.mode()).to_owned()
        }
    };
    console.say(&format!("{word}  {}", shown(&file.path, 300)));
    for case in file.needing_case_ids.iter().take(CASES) {
        console.say(&format!("    {}", shown(case, 300)));
    }
    let more = file.needing_case_ids.len().saturating_sub(CASES);
    if more > 0 {
        console.say(&format!("    and {more} more"));
    }
}

const fn word(mode: Mode) -> &'static str {
    match mode {
        Mode::Unspecified => "unknown",
        Mode::Split => "split",
        Mode::Shared => "shared",
        Mode::SharedWithoutNeed => "shared, without need",
        Mode::NeedsShared => "needs-shared",
    }
}

fn document(file: &SealedFile) -> Value {
    json!({ "path": file.path, "mode": word(file.mode()), "needing": file.needing_case_ids })
}

/// The files that need it, listed or not.
fn proposed(files: &[SealedFile]) -> Result<Vec<RepoPath>, Failure> {
    let needing = files.iter().filter(|file| match file.mode() {
        Mode::NeedsShared | Mode::Shared => true,
        Mode::Unspecified | Mode::Split | Mode::SharedWithoutNeed => false,
    });
    let path = |file: &SealedFile| {
        file.path.parse().map_err(|error| {
            Failure::usage(
                "read the server's answer",
                error,
                "use a client and a server of the same version",
            )
        })
    };
    needing.map(path).collect()
}

fn write_list(shared: &[RepoPath], console: &mut Console) -> Result<&'static str, Failure> {
    let workspace = Workspace::require(Path::new("."))?;
    let top = workspace.top().ok_or_else(|| {
        Failure::usage(
            "find the policy",
            "a bare repository has no work tree",
            "run this in a checkout",
        )
    })?;
    if policy_in(top)?.runner.shared == shared {
        console.say(&format!("{POLICY_PATH} lists just these already"));
        return Ok("equal");
    }
    let there = read(&top.join(POLICY_PATH))?
        .map(String::from_utf8)
        .transpose()
        .map_err(|e| Failure::usage(format!("read {POLICY_PATH}"), e, "make it UTF-8"))?;
    let text = with_shared(there.as_deref(), shared)
        .map_err(|e| Failure::usage(format!("change {POLICY_PATH}"), e, "mend what is named"))?;
    write(top, POLICY_PATH, text.as_bytes())?;
    console.say(&format!(
        "wrote {POLICY_PATH}: {} sealed files run shared",
        shared.len()
    ));
    console.note("next: look at each of them, and land it on the protected branch by itself, without src in the same patch");
    Ok("written")
}
