//! The page for people, on the admin port: scores as they run and as they ended, leases, flaky cases, oracles.
//!
//! Turns what the store, the queue and the mirrors hold into HTML, behind a token that may read the page. Reads through the
//! same narrow functions as the wire and shows a role what the wire gives it, never more. Never writes, judges, fetches from
//! a remote or starts a room. Text of candidates is capped, made visible and escaped; nothing of it steers the page: no
//! address, no class, no script is made of it. Fails with `Trouble`, which is a page as well.

mod access;
mod assets;
mod attempts;
mod changes;
mod evidence;
mod flaky;
mod frame;
mod headers;
mod leases;
mod live;
mod oracle;
mod overview;
mod progress;
mod repository;
mod score;
mod sessions;
mod sight;
mod text;
mod trouble;
mod verdicts;

use crate::pipeline::Rooms;
use crate::queue::Queue;
use crate::wire::{CallRate, Door};
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware;
use axum::routing::{get, post};
use headers::Names;
use oracle::Oracles;
use sessions::Sessions;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use trouble::Trouble;

/// Streams of events that are open at the same time.
const STREAMS: usize = 64;
/// A sign-in is short.
const FORM_BYTES: usize = 4096;

/// What the page is made of.
pub struct Parts {
    /// Where everything is; no room of them is entered.
    pub rooms: Rooms,
    /// What runs.
    pub queue: Queue,
    /// How many requests a token may make.
    pub rate: CallRate,
    /// A silent stream says that it lives so often.
    pub heartbeat: Duration,
    /// Streams end with it.
    pub close: CancellationToken,
}

/// The page at work.
struct Desk {
    parts: Parts,
    door: Door,
    sessions: Sessions,
    oracles: Oracles,
    streams: Arc<Semaphore>,
}

/// A page that is shown from when on it has its parts; until then it says that the server starts.
#[derive(Clone, Default)]
pub struct Page(Arc<OnceLock<Arc<Desk>>>);

impl Page {
    /// From now on it is shown.
    pub fn open(&self, parts: Parts) {
        let desk = Desk {
            door: Door::new(Arc::clone(&parts.rooms.store), parts.rate),
            sessions: Sessions::default(),
            oracles: Oracles::of(&parts.rooms),
            streams: Arc::new(Semaphore::new(STREAMS)),
            parts,
        };
        // A second opening would change nothing.
        let _opened = self.0.set(Arc::new(desk));
    }

    fn desk(&self) -> Result<Arc<Desk>, Trouble> {
        self.0.get().cloned().ok_or(Trouble::Starting)
    }

    /// Its addresses. It answers to names of this machine's own and to `names`.
    pub fn routes(&self, names: Vec<String>) -> Router {
        let names = Arc::new(Names::new(names));
        Router::new()
            .route("/", get(overview::show))
            .route("/events", get(live::all))
            .route("/repositories/{repository}", get(repository::show))
            .route(
                "/repositories/{repository}/events",
                get(live::of_repository),
            )
            .route("/repositories/{repository}/leases", get(leases::show))
            .route("/repositories/{repository}/flaky", get(flaky::show))
            .route("/repositories/{repository}/oracle", get(oracle::show))
            .route(
                "/repositories/{repository}/scores/{score}",
                get(score::show),
            )
            .route(
                "/repositories/{repository}/scores/{score}/events",
                get(live::of_score),
            )
            .route("/sign-in", get(access::form).post(access::sign_in))
            .route("/sign-out", post(access::sign_out))
            .route("/static/{name}", get(assets::file))
            .fallback(trouble::no_such_page)
            .layer(DefaultBodyLimit::max(FORM_BYTES))
            .layer(middleware::from_fn_with_state(names, headers::guarded))
            .with_state(self.clone())
    }
}
