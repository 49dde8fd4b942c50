//! From a score's name to its end, shown on the way.

use crate::console::Console;
use crate::failure::Failure;
use crate::outdir::OutFile;
use crate::progress::Progress;
use crate::remote::{End, Next, Remote, Watch};

/// Follow it to its end; the files of a completed score.
///
/// # Errors
/// It was aborted, or the server stays away.
pub(super) async fn follow(
    remote: &Remote,
    name: &str,
    progress: &Progress,
    console: &mut Console,
) -> Result<Vec<OutFile>, Failure> {
    let mut watch = Watch::new(remote, name);
    loop {
        match watch.next().await? {
            Next::Event(event) => progress.event(&event, console),
            Next::End(End::Completed(files)) if files.is_empty() => {
                return remote.verdicts(name).await;
            }
            Next::End(End::Completed(files)) => return Ok(files),
            Next::End(End::Aborted { code, message }) => {
                return Err(End::as_failure(&code, &message));
            }
        }
    }
}
