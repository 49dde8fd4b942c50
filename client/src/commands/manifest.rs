//! `manifest`: the sealed test files of this work tree against the list that names them.

use crate::checkout::{policy_in, read, write};
use crate::cli;
use crate::console::{Console, Tone};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::workspace::Workspace;
use serde_json::json;
use std::path::Path;
use tribunal_core::git::GitPath;
use tribunal_core::manifest;
use tribunal_core::plan::Finding;

/// Run it: 0 where they agree or it was written, 1 where they do not.
pub(super) fn run(args: &cli::Manifest, console: &mut Console) -> Result<Exit, Failure> {
    let workspace = Workspace::require(Path::new("."))?;
    let top = workspace.top().ok_or_else(|| {
        Failure::usage(
            "find the sealed files",
            "a bare repository has no work tree",
            "run this in a checkout",
        )
    })?;
    let policy = policy_in(top)?;
    let paths: Vec<GitPath> = workspace.paths()?.into_iter().map(GitPath::new).collect();
    let manifest_path = &policy.paths.manifest;
    let there = read(&top.join(manifest_path.as_str()))?;
    let drift = manifest::check(manifest_path, there.as_deref(), &paths).err();
    let Some(drift) = drift else {
        console.say(&format!("{manifest_path} is what it has to be"));
        console.json(&json!({"path": manifest_path.as_str(), "result": "equal"}));
        return Ok(Exit::MergeOk);
    };
    if args.write {
        let text = manifest::render(manifest_path, &paths).map_err(unnameable)?;
        write(top, manifest_path.as_str(), text.as_bytes())?;
        console.say(&format!(
            "wrote {manifest_path} ({} files)",
            text.lines().count()
        ));
        console.json(&json!({"path": manifest_path.as_str(), "result": "written"}));
        return Ok(Exit::MergeOk);
    }
    let head = console.for_out(Tone::Bad, drift.reason.code());
    console.say(&format!("{head}: {manifest_path}: {}", drift.detail));
    console.say("next: tribunal manifest --write");
    console.json(&json!({
        "path": manifest_path.as_str(), "result": drift.reason.code(), "detail": drift.detail,
    }));
    Ok(Exit::Blocked)
}

fn unnameable(finding: Finding) -> Failure {
    Failure::usage("make the manifest", finding.detail, "rename that file")
}
