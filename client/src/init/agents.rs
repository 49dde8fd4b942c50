//! What coding agents are told of a repository: a part of AGENTS.md between marks, and a skill of their own.
//!
//! Of AGENTS.md only what stands between the marks is ever written: the rest is somebody's. A skill that is there is left
//! alone.

use super::{InitError, Laid, lay_one, src_roots, top_of};
use crate::checkout::{read, write};
use crate::failure::Failure;
use crate::workspace::Workspace;
use tribunal_core::id::RepoPath;
use tribunal_core::text::shown;

/// Where agents look for it.
const AGENTS: &str = "AGENTS.md";
const BEGIN: &str = "<!-- tribunal:begin -->";
const END: &str = "<!-- tribunal:end -->";
const PART: &str = include_str!("AGENTS.md");
const SKILL: &str = include_str!("SKILL.md");

/// Write our part of AGENTS.md; with the path, and what became of it.
///
/// # Errors
/// The file cannot be read or written, or its marks are not a pair.
pub fn agents(workspace: &Workspace, src: &[String]) -> Result<(String, Laid), Failure> {
    let top = top_of(workspace)?;
    let path = top.join(AGENTS);
    // What a link leads to is not ours to write.
    if path.is_symlink() {
        return Ok((AGENTS.to_owned(), Laid::LeftAlone));
    }
    let there = read(&path)?.map(String::from_utf8).transpose();
    let there = there.map_err(|e| InitError::Part(e.to_string()))?;
    let part = filled(PART, &src_roots(top, src)?);
    let (text, laid) = with_part(there.as_deref(), &part)?;
    match laid {
        Laid::LeftAlone => {}
        Laid::New | Laid::Added | Laid::Renewed => write(top, AGENTS, text.as_bytes())?,
    }
    Ok((AGENTS.to_owned(), laid))
}

/// Lay the skill below this folder of skills; with the path, and what became of it.
///
/// # Errors
/// The folder is not within the repository, or cannot be written.
pub fn skill(
    workspace: &Workspace,
    folder: &str,
    src: &[String],
) -> Result<(String, Laid), InitError> {
    let top = top_of(workspace)?;
    let plain = folder.trim_end_matches('/');
    let folder: RepoPath = plain
        .parse()
        .map_err(|_| InitError::Src(shown(plain, 200)))?;
    let path = format!("{folder}/tribunal/SKILL.md");
    let laid = lay_one(top, &path, &filled(SKILL, &src_roots(top, src)?))?;
    Ok((path, laid))
}

fn filled(text: &str, src: &[String]) -> String {
    let roots: Vec<String> = src.iter().map(|root| format!("`{root}`")).collect();
    text.replace("@SRC@", &roots.join(", "))
}

/// The file's text with our part in its place: where it was, or at the end.
fn with_part(there: Option<&str>, part: &str) -> Result<(String, Laid), InitError> {
    let part = format!("{BEGIN}\n{part}{END}\n");
    let Some(there) = there else {
        return Ok((part, Laid::New));
    };
    let marks = |mark| there.matches(mark).count();
    match (marks(BEGIN), marks(END)) {
        (0, 0) => {
            let gap = match (there.is_empty(), there.ends_with('\n')) {
                (true, _) => "",
                (false, true) => "\n",
                (false, false) => "\n\n",
            };
            Ok((format!("{there}{gap}{part}"), Laid::Added))
        }
        (1, 1) => replaced(there, &part),
        (begins, ends) => Err(InitError::Part(format!(
            "{begins} of {BEGIN} and {ends} of {END}"
        ))),
    }
}

fn replaced(there: &str, part: &str) -> Result<(String, Laid), InitError> {
    let split = there.split_once(BEGIN).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(END)?;
        Some((before, after))
    });
    let (before, after) = split.ok_or_else(|| InitError::Part(format!("{END} before {BEGIN}")))?;
    let text = format!("{before}{}{after}", part.trim_end_matches('\n'));
    let laid = if text == there {
        Laid::LeftAlone
    } else {
        Laid::Renewed
    };
    Ok((text, laid))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

    use super::*;

    #[test]
    fn our_part_is_added_once_and_renewed_in_its_place() {
        let (text, laid) = with_part(None, "one\n").unwrap();
        assert_eq!(
            (text.as_str(), laid),
            (
                "<!-- tribunal:begin -->\none\n<!-- tribunal:end -->\n",
                Laid::New
            )
        );
        for mine in ["# Mine", "# Mine\n", ""] {
            let (added, laid) = with_part(Some(mine), "one\n").unwrap();
            assert_eq!(laid, Laid::Added);
            assert!(
                added.starts_with(mine) && added.ends_with(&text),
                "{added:?}"
            );
            let again = with_part(Some(&added), "one\n").unwrap();
            assert_eq!(again, (added.clone(), Laid::LeftAlone));
            let (renewed, laid) = with_part(Some(&format!("{added}after\n")), "two\n").unwrap();
            assert_eq!(laid, Laid::Renewed);
            assert_eq!(renewed, format!("{}after\n", added.replace("one", "two")));
        }
    }

    #[test]
    fn marks_that_are_no_pair_are_told_and_nothing_is_guessed() {
        for odd in [
            BEGIN.to_owned(),
            END.to_owned(),
            format!("{END}\n{BEGIN}\n"),
            format!("{BEGIN}{BEGIN}{END}"),
        ] {
            assert!(
                matches!(with_part(Some(&odd), "x\n"), Err(InitError::Part(_))),
                "{odd}"
            );
        }
    }

    #[test]
    fn texts_are_filled_in_and_short() {
        for text in [PART, SKILL] {
            let text = filled(text, &["src/".to_owned(), "lib/".to_owned()]);
            assert!(
                text.contains("`src/`, `lib/`") && !text.contains('@'),
                "{text}"
            );
            assert!(text.lines().count() < 50 && text.ends_with('\n'));
        }
        assert!(SKILL.starts_with("---\nname: tribunal\ndescription: "));
    }
}
