//! A server that is told to read its configuration again (SIGHUP): certificates and what can change under way are taken up,
//! what cannot is named. A configuration that does not hold is one error, and everything stays as it was.

use crate::admin::AdminError;
use crate::config::{self, Changes, Config};
use crate::serve;
use crate::supervisor;
use crate::wire::Certificates;
use tokio::sync::{mpsc, watch};

/// How a running server comes by its configuration.
pub struct Reloads<'a> {
    /// Somebody wants it read.
    pub asked: mpsc::Receiver<()>,
    /// Reads it as the start did: file, environment, flags.
    pub read: &'a (dyn Fn() -> Result<Config, AdminError> + Send + Sync),
    /// Logs by this filter from now on.
    pub log: &'a (dyn Fn(&str) + Send + Sync),
}

impl Reloads<'_> {
    /// As long as there is somebody who could ask.
    pub(crate) async fn run(mut self, holds: &watch::Sender<Config>, certificates: &Certificates) {
        while self.asked.recv().await.is_some() {
            supervisor::reloading();
            match self.once(holds, certificates) {
                Ok(changes) => {
                    tracing::info!(
                        taken_up = changes.taken_up.join(", "),
                        at_restart = changes.at_restart.join(", "),
                        "configuration and certificates were read again"
                    );
                    supervisor::ready("the configuration was read again");
                }
                Err(error) => {
                    let error = one_line(&error.to_string());
                    tracing::error!(error, "nothing was reloaded; what held still holds");
                    supervisor::ready("nothing was reloaded; the log says why");
                }
            }
        }
    }

    fn once(
        &self,
        holds: &watch::Sender<Config>,
        certificates: &Certificates,
    ) -> Result<Changes, AdminError> {
        let new = (self.read)()?;
        config::check(&new)?;
        let (taken, changes) = holds.borrow().taking_up(&new);
        // What can fail comes first.
        if let Some(tls) = serve::tls(&taken)? {
            certificates.exchange(&tls)?;
        }
        (self.log)(&taken.log);
        holds.send_replace(taken);
        Ok(changes)
    }
}

/// Mistakes come one a line; the log has one line for all of them.
fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines.join(" ")
}
