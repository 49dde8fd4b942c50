//! `init`: lay the files, and say of each path what became of it.

use crate::cli;
use crate::console::{Console, Tone};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::init::{Laid, agents, lay, skill};
use crate::workspace::Workspace;
use serde_json::{Value, json};
use std::path::Path;

/// Run it.
pub(super) fn run(args: &cli::Init, console: &mut Console) -> Result<Exit, Failure> {
    let workspace = Workspace::require(Path::new("."))?;
    let laid = lay(&workspace, &args.src, args.ci)?;
    let mut told: Vec<(String, Laid)> = laid
        .iter()
        .map(|(path, what)| ((*path).to_owned(), *what))
        .collect();
    if args.agents {
        told.push(agents(&workspace, &args.src)?);
    }
    if let Some(folder) = &args.skill {
        told.push(skill(&workspace, folder, &args.src)?);
    }
    let mut documents: Vec<Value> = Vec::new();
    for (path, what) in &told {
        let (word, tone) = match what {
            Laid::New => ("new", Tone::Good),
            Laid::Added => ("added", Tone::Good),
            Laid::Renewed => ("renewed", Tone::Good),
            Laid::LeftAlone => ("left alone", Tone::Faint),
        };
        let mark = console.for_out(tone, &format!("{word:10}"));
        console.say(&format!("{mark} {path}"));
        documents.push(json!({"path": path, "result": word}));
    }
    console.json(&json!({"files": documents}));
    if laid.contains(&(".gitignore", Laid::LeftAlone)) {
        console.note(
            "note: /ci_out/ belongs into .gitignore, or verdicts get committed with the next patch",
        );
    }
    console.note(
        "next: move the tests that judge into tests/sealed/, run `tribunal manifest --write`,",
    );
    console.note("      check `src` in ci/tribunal.toml, and land it all on the protected branch");
    Ok(Exit::MergeOk)
}
