//! From a score's name to its end, shown on the way.

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::outdir::OutFile;
use crate::progress::Progress;
use crate::remote::{End, Next, Remote, Watch};

/// Follow it to its end; the files of a completed score.
///
/// # Errors
/// It was aborted, or the server stays away.
pub async fn follow(
    remote: &Remote,
    name: &str,
    progress: &Progress,
    console: &mut Console,
) -> Result<Vec<OutFile>, Failure> {
    let mut watch = Watch::new(remote, name);
    loop {
        let next = tokio::select! {
            next = watch.next() => next?,
            _ = tokio::signal::ctrl_c() => return Err(interrupted(name)),
        };
        match next {
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

/// The score is the server's by now; a watcher that goes away does not end it.
fn interrupted(name: &str) -> Failure {
    Failure::new(
        Exit::NoVerdict,
        format!("follow {name}"),
        "interrupted",
        format!(
            "the score goes on: `tribunal watch {name}` follows it, `tribunal cancel {name}` ends it"
        ),
    )
}
