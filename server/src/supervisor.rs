//! What the service manager is told (`sd_notify`): starting, ready, reloading, leaving, alive.
//!
//! Without `NOTIFY_SOCKET` nothing is said. Never says that a server lives which does not: each beat of the watchdog has
//! asked the queue and the store first, from the runtime that serves calls. A manager that does not listen, or does not read,
//! is a line of the log, and holds up nothing.

use crate::queue::Queue;
use crate::store::{self, Store};
use sd_notify::NotifyState;
use std::ffi::OsStr;
use std::future::Future;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::time::Duration;

/// What ending takes beyond the drain: rooms, streams, the port.
const AFTER_DRAIN: Duration = Duration::from_secs(30);

/// It does not take scores yet; this is what it does.
pub(crate) fn starting(what: &str) {
    say(&[NotifyState::Status(what)]);
}

/// Scores are taken, from now on or again.
pub(crate) fn ready(what: &str) {
    say(&[NotifyState::Ready, NotifyState::Status(what)]);
}

/// The configuration is read; [`ready`] is the end of that.
pub(crate) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => say(&[NotifyState::Reloading, now]),
        Err(error) => tracing::warn!(%error, "the monotonic clock cannot be read"),
    }
}

/// No new scores; running ones have so long.
pub(crate) fn leaving(patience: Duration) {
    let needed = patience.saturating_add(AFTER_DRAIN).as_micros();
    say(&[
        NotifyState::Stopping,
        NotifyState::Status("leaving: no new scores, running ones are waited for"),
        NotifyState::ExtendTimeoutUsec(u32::try_from(needed).unwrap_or(u32::MAX)),
    ]);
}

/// Until it is dropped: that the server lives, as often as the manager's watchdog wants it. Ends at once where it has none.
pub(crate) async fn live(queue: Queue, store: Arc<dyn Store>) {
    let Some(patience) = sd_notify::watchdog_enabled() else {
        return;
    };
    let pulse = || {
        let queue = queue.clone();
        store::off(&store, move |s| {
            let owed = s.deliveries()?;
            let (running, waiting) = (queue.running(), queue.waiting());
            Ok(format!(
                "{running} scores run, {waiting} wait, {owed} messages are owed"
            ))
        })
    };
    beats(patience, pulse, |status| {
        say(&[NotifyState::Watchdog, NotifyState::Status(status)]);
    })
    .await;
}

/// Twice in each stretch of the watchdog's patience, and only where the pulse was felt within half of it.
async fn beats<F, E>(patience: Duration, pulse: impl Fn() -> F, beat: impl Fn(&str))
where
    F: Future<Output = Result<String, E>>,
    E: std::fmt::Display,
{
    let half = (patience / 2).max(Duration::from_millis(1));
    let mut ticks = tokio::time::interval(half);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match tokio::time::timeout(half, pulse()).await {
            Ok(Ok(status)) => beat(&status),
            Ok(Err(error)) => tracing::error!(%error, "the store does not answer; no sign of life"),
            Err(_) => tracing::error!("the store is silent; no sign of life"),
        }
    }
}

fn say(what: &[NotifyState<'_>]) {
    let Some(manager) = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else {
        return;
    };
    let lines: String = what.iter().map(|state| format!("{state}\n")).collect();
    if let Err(error) = send(&manager, &lines) {
        tracing::warn!(%error, "the service manager was not told");
    }
}

/// Never waits: a manager that has stopped reading loses the message, and nobody else anything.
fn send(manager: &OsStr, lines: &str) -> io::Result<()> {
    let address = match manager.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(manager)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.send_to_addr(lines.as_bytes(), &address)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::beats;
    use std::cell::{Cell, RefCell};
    use std::time::Duration;

    /// Which of ten pulses came out as a beat, by what each of them does.
    async fn beaten(pulse: impl AsyncFn(u32) -> Result<String, &'static str>) -> Vec<String> {
        let (asked, heard) = (Cell::new(0), RefCell::new(Vec::new()));
        let (over, end) = (tokio::sync::Notify::new(), Duration::from_millis(40));
        let pulse = || {
            let number = asked.replace(asked.get() + 1);
            if number == 10 {
                over.notify_one();
            }
            pulse(number)
        };
        let beat = |said: &str| heard.borrow_mut().push(said.to_owned());
        tokio::select! {
            biased;
            () = over.notified() => {}
            () = beats(end, pulse, beat) => {}
        }
        let heard = heard.take();
        heard.into_iter().take_while(|said| said != "10").collect()
    }

    #[tokio::test]
    async fn a_server_whose_store_answers_says_so_each_time() {
        let all = beaten(async |number| Ok(number.to_string())).await;
        assert_eq!(all, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]);
    }

    #[tokio::test]
    async fn one_whose_store_fails_or_hangs_says_nothing_until_it_answers_again() {
        let mended = beaten(async |number| match number {
            2..7 => Err("broken"),
            _ => Ok(number.to_string()),
        });
        assert_eq!(mended.await, ["0", "1", "7", "8", "9"]);
        let hung = beaten(async |number| match number {
            0 | 9 => Ok(number.to_string()),
            _ => std::future::pending().await,
        });
        assert_eq!(hung.await, ["0", "9"]);
    }
}
