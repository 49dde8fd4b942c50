//! Where words go: results to stdout, everything else to stderr, colour only where a person looks.
//!
//! In JSON mode stdout carries JSON and nothing else, one document or one event a line. Never fails: a reader that
//! went away is no reason to change an exit code.

use crate::failure::Failure;
use serde_json::Value;
use std::io::{IsTerminal as _, Write};

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// Whether a person looks at this stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// A terminal.
    Person,
    /// A pipe or file.
    Program,
}

/// What a text means; the console decides how that looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// It holds.
    Good,
    /// It does not.
    Bad,
    /// Worth knowing.
    Warning,
    /// Beside the point.
    Faint,
    /// A name.
    Strong,
}

/// Both streams and what is known about who reads them.
pub struct Console {
    format: Format,
    out: Box<dyn Write + Send>,
    err: Box<dyn Write + Send>,
    out_audience: Audience,
    err_audience: Audience,
    colour: Colour,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Colour {
    Never,
    OnTerminals,
}

impl Console {
    /// The process's own streams.
    #[must_use]
    pub fn of_process(format: Format) -> Self {
        let audience = |terminal| {
            if terminal {
                Audience::Person
            } else {
                Audience::Program
            }
        };
        // https://no-color.org: set and not empty.
        let plain = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty())
            || std::env::var_os("TERM").is_some_and(|v| v == "dumb");
        Self {
            format,
            out_audience: audience(std::io::stdout().is_terminal()),
            err_audience: audience(std::io::stderr().is_terminal()),
            out: Box::new(std::io::stdout()),
            err: Box::new(std::io::stderr()),
            colour: if plain {
                Colour::Never
            } else {
                Colour::OnTerminals
            },
        }
    }

    /// Streams of a test's own.
    #[must_use]
    pub fn over(format: Format, out: Box<dyn Write + Send>, err: Box<dyn Write + Send>) -> Self {
        Self {
            format,
            out,
            err,
            out_audience: Audience::Program,
            err_audience: Audience::Program,
            colour: Colour::Never,
        }
    }

    /// How results are printed.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Who reads stderr.
    #[must_use]
    pub fn err_audience(&self) -> Audience {
        self.err_audience
    }

    /// Who reads stdout.
    #[must_use]
    pub fn out_audience(&self) -> Audience {
        self.out_audience
    }

    /// A line of the result, in text mode.
    pub fn say(&mut self, line: &str) {
        match self.format {
            Format::Text => write_line(&mut self.out, line),
            Format::Json => {}
        }
    }

    /// A document or event of the result, in JSON mode.
    pub fn json(&mut self, value: &Value) {
        match self.format {
            Format::Json => write_line(&mut self.out, &value.to_string()),
            Format::Text => {}
        }
    }

    /// A message beside the result.
    pub fn note(&mut self, line: &str) {
        write_line(&mut self.err, line);
    }

    /// A message that somebody should not miss.
    pub fn warn(&mut self, line: &str) {
        let head = self.for_err(Tone::Warning, "warning:");
        write_line(&mut self.err, &format!("{head} {line}"));
    }

    /// The end of a command that failed.
    pub fn fail(&mut self, failure: &Failure) {
        self.json(&failure.json());
        let head = self.for_err(Tone::Bad, "error:");
        write_line(&mut self.err, &format!("{head} {failure}"));
    }

    /// A text as stdout should show it.
    #[must_use]
    pub fn for_out(&self, tone: Tone, text: &str) -> String {
        paint(self.colour, self.out_audience, tone, text)
    }

    /// A text as stderr should show it.
    #[must_use]
    pub fn for_err(&self, tone: Tone, text: &str) -> String {
        paint(self.colour, self.err_audience, tone, text)
    }
}

fn paint(colour: Colour, audience: Audience, tone: Tone, text: &str) -> String {
    let code = match tone {
        Tone::Good => "32",
        Tone::Bad => "31;1",
        Tone::Warning => "33",
        Tone::Faint => "2",
        Tone::Strong => "1",
    };
    match (colour, audience) {
        (Colour::OnTerminals, Audience::Person) => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        (Colour::Never, _) | (_, Audience::Program) => text.to_owned(),
    }
}

fn write_line(stream: &mut dyn Write, line: &str) {
    // A closed pipe is the reader's choice.
    let _ = stream
        .write_all(format!("{line}\n").as_bytes())
        .and_then(|()| stream.flush());
}

#[cfg(test)]
pub(crate) mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

    use super::*;
    use crate::exit::Exit;
    use std::sync::{Arc, Mutex};

    /// A stream that a test reads back.
    #[derive(Clone, Default)]
    pub(crate) struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Kept {
        pub(crate) fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }
    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    pub(crate) fn kept(format: Format) -> (Console, Kept, Kept) {
        let (out, err) = (Kept::default(), Kept::default());
        (
            Console::over(format, Box::new(out.clone()), Box::new(err.clone())),
            out,
            err,
        )
    }

    #[test]
    fn json_mode_keeps_prose_off_stdout() {
        let (mut console, out, err) = kept(Format::Json);
        console.say("prose");
        console.note("beside");
        console.warn("careful");
        console.fail(&Failure::new(Exit::Refused, "x", "y", "z"));
        let lines: Vec<Value> = out
            .text()
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect();
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0]["exit"], 65);
        assert!(err.text().contains("beside") && err.text().contains("warning: careful"));
    }

    #[test]
    fn text_mode_keeps_json_off_stdout() {
        let (mut console, out, err) = kept(Format::Text);
        console.say("prose");
        console.fail(&Failure::new(Exit::Refused, "x", "y", "z"));
        assert_eq!(out.text(), "prose\n");
        assert_eq!(err.text(), "error: failed to x: y\nnext: z\n");
    }

    #[test]
    fn colour_only_for_a_person_who_did_not_object() {
        let painted = paint(Colour::OnTerminals, Audience::Person, Tone::Good, "ok");
        assert_eq!(painted, "\u{1b}[32mok\u{1b}[0m");
        assert_eq!(
            paint(Colour::Never, Audience::Person, Tone::Good, "ok"),
            "ok"
        );
        assert_eq!(
            paint(Colour::OnTerminals, Audience::Program, Tone::Good, "ok"),
            "ok"
        );
    }
}
