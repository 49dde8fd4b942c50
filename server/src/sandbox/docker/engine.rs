//! The engine, reached when it is first needed, with a deadline around every call.
//!
//! Turns whatever the client library reports into `Aborted`: unreachable or silent is `engine-unavailable`, a missing
//! image `image-missing`, a full disk `disk-full`, the rest `internal` with a capped message.

use super::super::turns::Turns;
use bollard::Docker;
use bollard::errors::Error;
use bollard::models::SystemInfo;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::OnceCell;
use tribunal_core::reason::{Aborted, AbortedCode};
use tribunal_core::text::shown;

/// For calls that only ask.
pub(super) const QUICK: Duration = Duration::from_secs(20);
/// For calls that make or end something; an engine under load takes seconds for either.
pub(super) const SLOW: Duration = Duration::from_secs(60);
/// The client's own limit, which we never want to meet: a tree takes as long as it takes to be written.
const CLIENT_SECONDS: u64 = 24 * 3600;
const DEFAULT_HOST: &str = "unix:///var/run/docker.sock";

/// A call that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failed {
    /// The engine's answer, where it answered.
    pub(super) status: Option<u16>,
    /// What the score is told.
    pub(super) aborted: Aborted,
}

impl From<Failed> for Aborted {
    fn from(failed: Failed) -> Self {
        failed.aborted
    }
}

/// The engine as it was met first.
pub(super) struct Connected {
    pub(super) docker: Docker,
    /// Its CPUs.
    pub(super) cores: u32,
    /// Turns on them.
    pub(super) turns: Turns,
    shield: AtomicBool,
}

/// Whether PID 1 may be kept from the out-of-memory killer by a lowered score. An engine without the privilege (a
/// rootless one) refuses that; then only the attempts' raised score tells the killer whom to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shield {
    Lowered,
    Plain,
}

impl Connected {
    /// What rooms are to be made with.
    pub(super) fn shield(&self) -> Shield {
        if self.shield.load(Ordering::Relaxed) {
            Shield::Lowered
        } else {
            Shield::Plain
        }
    }

    /// The engine refuses a lowered score.
    pub(super) fn forgo_shield(&self) {
        if self.shield.swap(false, Ordering::Relaxed) {
            tracing::warn!("the engine may not lower oom_score_adj; rooms go without");
        }
    }
}

/// Where the engine is; connected to once.
pub(super) struct Engine {
    host: String,
    connected: OnceCell<Connected>,
}

impl Engine {
    /// `host` as in `unix:///var/run/docker.sock` or `tcp://127.0.0.1:2375`; nothing is called yet.
    pub(super) fn at(host: Option<String>) -> Self {
        Self {
            host: host.unwrap_or_else(|| DEFAULT_HOST.to_owned()),
            connected: OnceCell::new(),
        }
    }

    /// The engine. Tried anew at each call until it was reached once.
    pub(super) async fn get(&self) -> Result<&Connected, Failed> {
        self.connected
            .get_or_try_init(|| async {
                let docker = self.client()?;
                let docker = call(
                    "negotiate with the engine",
                    QUICK,
                    docker.negotiate_version(),
                )
                .await?;
                let info = call("ask what the engine is", QUICK, docker.info()).await?;
                let cores = cores(&info);
                Ok(Connected {
                    docker,
                    cores,
                    turns: Turns::on(cores),
                    shield: AtomicBool::new(true),
                })
            })
            .await
    }

    fn client(&self) -> Result<Docker, Failed> {
        let client = match self.host.strip_prefix("unix://") {
            Some(path) => {
                Docker::connect_with_unix(path, CLIENT_SECONDS, bollard::API_DEFAULT_VERSION)
            }
            None => {
                Docker::connect_with_http(&self.host, CLIENT_SECONDS, bollard::API_DEFAULT_VERSION)
            }
        };
        client.map_err(|error| failed("reach the engine", &error))
    }
}

/// The engine's CPUs.
pub(super) fn cores(info: &SystemInfo) -> u32 {
    info.ncpu
        .and_then(|n| u32::try_from(n).ok())
        .unwrap_or(1)
        .max(1)
}

/// One call, within `limit`. `doing` completes "failed to …".
pub(super) async fn call<T>(
    doing: &str,
    limit: Duration,
    future: impl Future<Output = Result<T, Error>>,
) -> Result<T, Failed> {
    match tokio::time::timeout(limit, future).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(failed(doing, &error)),
        Err(_) => Err(silent(doing)),
    }
}

/// The engine did not answer in time.
pub(super) fn silent(doing: &str) -> Failed {
    Failed {
        status: None,
        aborted: Aborted::new(
            AbortedCode::EngineUnavailable,
            format!("failed to {doing}: the engine does not answer"),
        ),
    }
}

/// What an error of the client library means.
pub(super) fn failed(doing: &str, error: &Error) -> Failed {
    let (status, code) = match error {
        Error::DockerResponseServerError {
            status_code,
            message,
        } => (Some(*status_code), code_of(*status_code, message)),
        Error::DockerStreamError { error } => (None, code_of(500, error)),
        Error::DockerContainerWaitError { .. }
        | Error::JsonDataError { .. }
        | Error::APIVersionParseError {}
        | Error::MissingSessionBuildkitError {}
        | Error::MissingVersionBuildkitError {}
        | Error::JsonSerdeError { .. }
        | Error::StrParseError { .. }
        | Error::StrFmtError { .. }
        | Error::HttpClientError { .. }
        | Error::URLEncodedError { .. }
        | Error::URLParseError { .. }
        | Error::InvalidURIError { .. }
        | Error::InvalidURIPartsError { .. }
        | Error::UnsupportedURISchemeError { .. }
        | Error::HttpHeaderNotFoundError(_)
        | Error::HttpHeaderToStrError { .. }
        | Error::Base64DecodeError { .. } => (None, AbortedCode::Internal),
        Error::RequestTimeoutError
        | Error::IOError { .. }
        | Error::HyperResponseError { .. }
        | Error::HyperLegacyError { .. }
        | Error::SocketNotFoundError(_) => (None, AbortedCode::EngineUnavailable),
    };
    Failed {
        status,
        aborted: Aborted::new(
            code,
            format!("failed to {doing}: {}", shown(&chain(error), 400)),
        ),
    }
}

fn code_of(status: u16, message: &str) -> AbortedCode {
    let message = message.to_ascii_lowercase();
    if message.contains("no space left on device") || message.contains("disk quota exceeded") {
        AbortedCode::DiskFull
    } else if status == 404 && message.contains("no such image") {
        AbortedCode::ImageMissing
    } else if matches!(status, 502..=504) {
        AbortedCode::EngineUnavailable
    } else {
        AbortedCode::Internal
    }
}

/// The error with its causes: "client error" alone says nothing.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status_code: u16, message: &str) -> AbortedCode {
        let error = Error::DockerResponseServerError {
            status_code,
            message: message.to_owned(),
        };
        failed("do it", &error).aborted.code
    }

    #[test]
    fn errors_map_to_codes() {
        assert_eq!(
            answer(404, "No such image: tribunal/python:3.13"),
            AbortedCode::ImageMissing
        );
        assert_eq!(answer(404, "No such container: x"), AbortedCode::Internal);
        assert_eq!(
            answer(500, "write /x: no space left on device"),
            AbortedCode::DiskFull
        );
        assert_eq!(answer(503, "shutting down"), AbortedCode::EngineUnavailable);
        assert_eq!(
            failed("do it", &Error::RequestTimeoutError).aborted.code,
            AbortedCode::EngineUnavailable
        );
        let long = "x".repeat(5000);
        let error = Error::DockerResponseServerError {
            status_code: 500,
            message: long,
        };
        assert!(failed("do it", &error).aborted.message.len() < 500);
    }

    #[tokio::test]
    async fn no_engine_is_said_and_tried_again() {
        let engine = Engine::at(Some("unix:///nonexistent/engine.sock".to_owned()));
        for _ in 0..2 {
            let code = engine.get().await.map(|_| ()).map_err(|f| f.aborted.code);
            assert_eq!(code, Err(AbortedCode::EngineUnavailable));
        }
    }
}
