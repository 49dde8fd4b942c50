//! A real browser for the page: Debian's Chromium with its driver, and axe, led by `tests/browser/check.py`.
//!
//! What cannot be installed here is said on stderr, past the test harness, and nothing is claimed of it.

use crate::{Server, binaries, loudly, port};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

/// Where everything is.
pub struct Chromium {
    driver: String,
    browser: String,
    axe: PathBuf,
}

/// A trial that goes on.
pub struct Trial {
    child: Child,
    says: BufReader<ChildStdout>,
}

impl Chromium {
    /// Installed where it was missing, once; `None`, said loudly, where it cannot be.
    #[must_use]
    pub fn found() -> Option<&'static Self> {
        static FOUND: OnceLock<Option<Chromium>> = OnceLock::new();
        FOUND.get_or_init(Self::installed).as_ref()
    }

    fn installed() -> Option<Self> {
        let script = binaries::root().join("deploy/browser.sh");
        let output = Command::new(script).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let (Some((driver, browser)), true) =
            (said.trim().split_once('\n'), output.status.success())
        else {
            let why = String::from_utf8_lossy(&output.stderr);
            loudly(&format!("NOT TESTED IN A BROWSER: {why}"));
            return None;
        };
        Some(Self {
            driver: driver.to_owned(),
            browser: browser.to_owned(),
            axe: axe()?,
        })
    }

    /// Begin a trial of these paths, signed in by this token.
    #[must_use]
    pub fn tries(&self, what: &str, server: &Server, token: &str, paths: &[String]) -> Trial {
        let mut command = Command::new("python3");
        command
            .arg(scripts().join("check.py"))
            .args([what, &self.driver, &self.browser])
            .arg(&self.axe);
        begun(command, server, token, paths)
    }

    /// Begin to draw: a folder, then `NAME=PATH` for each picture.
    #[must_use]
    pub fn draws(&self, server: &Server, token: &str, views: &[String]) -> Trial {
        let mut command = Command::new("python3");
        command
            .arg(scripts().join("pictures.py"))
            .args([&self.driver, &self.browser]);
        begun(command, server, token, views)
    }
}

fn begun(mut command: Command, server: &Server, token: &str, rest: &[String]) -> Trial {
    let mut child = command
        .arg(format!("http://{}", port::address(server)))
        .args(rest)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    writeln!(child.stdin.take().unwrap(), "{token}").unwrap();
    let says = BufReader::new(child.stdout.take().unwrap());
    Trial { child, says }
}

impl Trial {
    /// Its next line.
    #[must_use]
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.says.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// It ends, and has nothing to say against the page.
    #[track_caller]
    pub fn holds(mut self) {
        let mut told = String::new();
        self.says.read_to_string(&mut told).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "in the browser:\n{told}");
    }
}

fn scripts() -> PathBuf {
    binaries::root().join("tests/browser")
}

/// axe, as its lock file has it.
fn axe() -> Option<PathBuf> {
    let folder = binaries::cache().join("axe");
    let file = folder.join("node_modules/axe-core/axe.min.js");
    let lock = fs::read(scripts().join("package-lock.json")).unwrap();
    let stamp = folder.join("installed");
    if fs::read(&stamp).ok().as_ref() == Some(&lock) {
        return Some(file);
    }
    fs::create_dir_all(&folder).unwrap();
    for name in ["package.json", "package-lock.json"] {
        fs::copy(scripts().join(name), folder.join(name)).unwrap();
    }
    let output = Command::new("npm")
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
        .current_dir(&folder)
        .output();
    let trouble = match output {
        Ok(output) if output.status.success() => {
            fs::write(stamp, lock).unwrap();
            return Some(file);
        }
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => format!("npm: {error}"),
    };
    loudly(&format!("NOT TESTED IN A BROWSER: axe: {trouble}"));
    None
}
