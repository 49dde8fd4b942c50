//! What a sealed file does, read from its `#:` comments instead of run.
//!
//! A file for both kinds of room is real Python whose every test says in comments above its `def` what it does; the
//! suite that both rooms pass holds the two together. A test without such a comment, or a comment that is not
//! understood, is an error: a misspelt one must not pass.
//!
//! ```text
//! #: passes                                   the default, but it must be said
//! #: fails TYPE: MESSAGE                      in its call; `setup fails …`, `teardown fails …`
//! #: skips REASON                             by pytest.skip() in its body
//! #: marked skip REASON                       `marked xfail REASON`
//! #: prints TEXT
//! #: parameters A B C                         ids [A] [B] [C]; `parameters` alone is an empty set
//! #: needs hash seed N else TYPE: MESSAGE
//! #: needs PATH to hold TEXT else TYPE: MESSAGE
//! #: takes N ms                               `never ends`
//! #: exits N                                  `dies of signal N`, `eats memory`, `floods output`
//! #: module skips REASON                      anywhere: the file; `module fails TYPE: MESSAGE`
//! #: module prints TEXT and exits N
//! ```

use tribunal_core::outcome::{ExceptionText, When};

/// A whole file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Script {
    pub(super) import: Import,
    pub(super) tests: Vec<Test>,
}

/// What importing the file does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Import {
    Works,
    Skips(String),
    Fails(ExceptionText),
    Exits(String, i32),
}

/// One test function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Test {
    /// `TestX.test_y` or `test_y`.
    pub(super) qualname: String,
    /// `None` where it is not parametrized.
    pub(super) parameters: Option<Vec<String>>,
    pub(super) mark: Option<Mark>,
    pub(super) acts: Vec<Act>,
    /// From its `def` to the next: what its digest is taken over.
    pub(super) body: String,
}

/// A mark that silences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mark {
    Skip(String),
    Xfail(String),
}

/// One thing a test does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    Pass,
    Fail(When, ExceptionText),
    Skip(String),
    Print(String),
    NeedHashSeed(u32, ExceptionText),
    NeedText(String, String, ExceptionText),
    Take(u64),
    NeverEnd,
    Exit(i32),
    Signal(i32),
    EatMemory,
    Flood,
}

/// Read a file.
pub(super) fn read(text: &str) -> Result<Script, String> {
    let mut script = Script {
        import: Import::Works,
        tests: Vec::new(),
    };
    let mut pending: Vec<&str> = Vec::new();
    let mut class: Option<String> = None;
    for line in text.lines() {
        let code = line.trim_start();
        if let Some(said) = code.strip_prefix("#:") {
            let said = said.trim();
            if let Some(reason) = said.strip_prefix("module skips ") {
                script.import = Import::Skips(reason.to_owned());
            } else if let Some(wrong) = said.strip_prefix("module fails ") {
                script.import = Import::Fails(exception(wrong)?);
            } else if let Some(rest) = said.strip_prefix("module prints ") {
                let parts = rest.rsplit_once(" and exits ");
                let parts = parts.and_then(|(text, code)| Some((text, code.parse().ok()?)));
                let (text, code) = parts.ok_or_else(|| format!("`{said}` is not understood"))?;
                script.import = Import::Exits(text.to_owned(), code);
            } else {
                pending.push(said);
            }
        } else if let Some(name) = definition(code, "class ") {
            class = Some(name.to_owned());
        } else if let Some(name) =
            definition(code, "def test").or_else(|| definition(code, "async def test"))
        {
            let name = format!("test{name}");
            let qualname = match &class {
                Some(class) if code.len() < line.len() => format!("{class}.{name}"),
                Some(_) | None => {
                    class = None;
                    name
                }
            };
            script
                .tests
                .push(test(qualname, &std::mem::take(&mut pending))?);
        }
        if let Some(test) = script.tests.last_mut().filter(|_| pending.is_empty()) {
            test.body.push_str(line);
            test.body.push('\n');
        }
    }
    if pending.is_empty() {
        Ok(script)
    } else {
        Err(format!("`{}` stands above no test", pending.join("`, `")))
    }
}

/// The rest of a name after `start`, up to what ends it.
fn definition<'a>(code: &'a str, start: &str) -> Option<&'a str> {
    let rest = code.strip_prefix(start)?;
    rest.split(['(', ':']).next()
}

fn test(qualname: String, said: &[&str]) -> Result<Test, String> {
    if said.is_empty() {
        return Err(format!("{qualname} does not say what it does"));
    }
    let mut test = Test {
        qualname,
        parameters: None,
        mark: None,
        acts: Vec::new(),
        body: String::new(),
    };
    for line in said {
        if let Some(reason) = line.strip_prefix("marked skip ") {
            test.mark = Some(Mark::Skip(reason.to_owned()));
        } else if let Some(reason) = line.strip_prefix("marked xfail ") {
            test.mark = Some(Mark::Xfail(reason.to_owned()));
        } else if let Some(ids) = line.strip_prefix("parameters") {
            test.parameters = Some(ids.split_whitespace().map(str::to_owned).collect());
        } else {
            test.acts.push(act(line)?);
        }
    }
    Ok(test)
}

fn act(line: &str) -> Result<Act, String> {
    let unknown = || format!("`{line}` is not understood");
    let number = |text: &str| text.parse::<i32>().map_err(|_| unknown());
    Ok(match line {
        "passes" => Act::Pass,
        "never ends" => Act::NeverEnd,
        "eats memory" => Act::EatMemory,
        "floods output" => Act::Flood,
        _ => {
            if let Some(wrong) = line.strip_prefix("fails ") {
                Act::Fail(When::Call, exception(wrong)?)
            } else if let Some(wrong) = line.strip_prefix("setup fails ") {
                Act::Fail(When::Setup, exception(wrong)?)
            } else if let Some(wrong) = line.strip_prefix("teardown fails ") {
                Act::Fail(When::Teardown, exception(wrong)?)
            } else if let Some(reason) = line.strip_prefix("skips ") {
                Act::Skip(reason.to_owned())
            } else if let Some(text) = line.strip_prefix("prints ") {
                Act::Print(text.to_owned())
            } else if let Some(rest) = line.strip_prefix("needs hash seed ") {
                let (seed, wrong) = rest.split_once(" else ").ok_or_else(unknown)?;
                Act::NeedHashSeed(seed.parse().map_err(|_| unknown())?, exception(wrong)?)
            } else if let Some(rest) = line.strip_prefix("needs ") {
                let (path, rest) = rest.split_once(" to hold ").ok_or_else(unknown)?;
                let (text, wrong) = rest.split_once(" else ").ok_or_else(unknown)?;
                Act::NeedText(path.to_owned(), text.to_owned(), exception(wrong)?)
            } else if let Some(time) = line.strip_prefix("takes ") {
                let ms = time.strip_suffix(" ms").ok_or_else(unknown)?;
                Act::Take(ms.parse().map_err(|_| unknown())?)
            } else if let Some(code) = line.strip_prefix("exits ") {
                Act::Exit(number(code)?)
            } else if let Some(signal) = line.strip_prefix("dies of signal ") {
                Act::Signal(number(signal)?)
            } else {
                return Err(unknown());
            }
        }
    })
}

fn exception(text: &str) -> Result<ExceptionText, String> {
    let (kind, message) = text
        .split_once(": ")
        .ok_or_else(|| format!("`{text}` is not TYPE: MESSAGE"))?;
    Ok(ExceptionText {
        kind: kind.to_owned(),
        message: message.to_owned(),
        traceback: format!("E   {kind}: {message}"),
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    #[test]
    fn reads_tests_classes_and_marks() {
        let text = "import pytest\n\n#: passes\ndef test_a():\n    pass\n\nclass TestB:\n    #: marked xfail later\n    \
                    #: fails ValueError: no\n    def test_c(self):\n        raise ValueError('no')\n\n\
                    #: parameters x y\n#: passes\ndef test_d(p):\n    pass\n";
        let script = read(text).unwrap();
        let names: Vec<&str> = script.tests.iter().map(|t| t.qualname.as_str()).collect();
        assert_eq!(names, ["test_a", "TestB.test_c", "test_d"]);
        assert_eq!(script.tests[1].mark, Some(Mark::Xfail("later".to_owned())));
        assert_eq!(
            script.tests[2].parameters,
            Some(vec!["x".to_owned(), "y".to_owned()])
        );
    }

    #[test]
    fn what_is_not_said_or_not_understood_is_an_error() {
        assert!(read("def test_a():\n    pass\n").is_err());
        assert!(read("#: passses\ndef test_a():\n    pass\n").is_err());
        assert!(read("#: passes\n").is_err());
        assert!(read("#: fails boom\ndef test_a():\n    pass\n").is_err());
    }
}
