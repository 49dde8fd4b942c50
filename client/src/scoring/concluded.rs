//! The end of a score: its files are verified and joined, and its report is read.

use crate::config::Settings;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::gate::{self, KeySource};
use crate::outdir::OutFile;
use crate::remote::Remote;
use crate::report;
use tribunal_core::join::{Expected, Join, join};
use tribunal_core::keys::KeyRing;
use tribunal_core::plan::ChangeSet;
use tribunal_core::report::Report;
use tribunal_core::verify::verify;
use tribunal_proto::v1::{self, Score};

/// What a completed score came to.
#[derive(Debug)]
pub struct Concluded {
    /// The join's answer.
    pub join: Join,
    /// Whose keys it was verified with.
    pub source: KeySource,
    /// Its report; without one there are still words, and the join has said what is missing.
    pub report: Option<Report>,
}

impl Concluded {
    /// Verify and join these files as the settings say.
    ///
    /// # Errors
    /// The configured key cannot be read, or the server does not name its own.
    pub async fn of(
        files: &[OutFile],
        expected: &Expected,
        remote: &Remote,
        settings: &Settings,
    ) -> Result<Self, Failure> {
        let (ring, source) = key_ring(remote, settings).await?;
        Ok(Self {
            join: join(verify(&gate::files_of(files), &ring), expected),
            source,
            report: report::among(files).ok(),
        })
    }
}

/// What a join expects of a score that was named instead of asked for here: what the server says it is of.
///
/// # Errors
/// What the server says is no commit.
pub fn expected_of(name: &str, score: &Score) -> Result<Expected, Failure> {
    let head = score.head.parse().map_err(|e| {
        Failure::new(
            Exit::Unreachable,
            "read the score",
            e,
            "check that client and server are of the same version",
        )
    })?;
    Ok(Expected {
        repository: name.split('/').nth(1).and_then(|repo| repo.parse().ok()),
        head,
        base: None,
        change_set: match score.change_set() {
            v1::ChangeSet::Human => ChangeSet::Human,
            v1::ChangeSet::Agent | v1::ChangeSet::Unspecified => ChangeSet::Agent,
        },
        now: gate::now(),
    })
}

/// The caller's own key where one is configured; the server's list otherwise, which is no proof of anything.
///
/// # Errors
/// The key file cannot be read, or the server does not answer.
pub async fn key_ring(
    remote: &Remote,
    settings: &Settings,
) -> Result<(KeyRing, KeySource), Failure> {
    if let Some(path) = settings.key() {
        return Ok((gate::keys_in(path)?, KeySource::File(path.to_owned())));
    }
    let lines: String = remote
        .server_keys()
        .await?
        .iter()
        .map(|key| format!("{}\n", key.allowed_signers_line))
        .collect();
    // A list that does not parse verifies nothing, and the join says so.
    let ring = KeyRing::parse(&lines).unwrap_or_default();
    Ok((ring, KeySource::Server(remote.address().to_owned())))
}
