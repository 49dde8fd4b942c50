//! One server from its data directory to its last connection: inert config, then rooms, then a drain.
//!
//! Holds no rule of its own. Nothing listens before everything that scoring needs is there; everything that was started
//! is ended and awaited, the queue first, then the rooms in the engine, then connections.

mod collector;
mod marks;

use crate::admin::{AdminError, Data};
use crate::clock;
use crate::config::{Config, PageShown, Plant};
use crate::image::Step;
use crate::metrics::{AdminPort, Exporter, Gauges, Happening, Observer, Readiness, nobody};
use crate::notify::Notifier;
use crate::page::{self, Page};
use crate::pipeline::{self, PipelineScorer, Rooms, Vigil};
use crate::queue::Queue;
use crate::reload::Reloads;
use crate::repository::{GitRepository, Repository, RepositorySettings};
use crate::sandbox::Sandbox as _;
use crate::sandbox::docker::{DockerOptions, DockerSandbox};
use crate::store::{self, Store};
use crate::supervisor;
use crate::wire::{CallRate, Listener, Services, Stops, Tls, WireSettings};
use collector::PipelineCollector;
use marks::StoredMarks;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tribunal_core::reason::{Aborted, AbortedCode};
use tribunal_core::statement::Scorer as ScorerName;

/// What happens before the server is ready, for whoever waits.
pub struct Watchers<'a> {
    /// Steps of the image's first build.
    pub image: &'a (dyn Fn(Step) + Send + Sync),
    /// It is ready to score, here.
    pub ready: &'a (dyn Fn(SocketAddr) + Send + Sync),
}

/// Where the engine is: the configuration, or `DOCKER_HOST`.
#[must_use]
pub fn engine_host(config: &Config) -> Option<String> {
    let of_environment = || std::env::var("DOCKER_HOST").ok().filter(|h| !h.is_empty());
    config.engine.host.clone().or_else(of_environment)
}

/// The repository room's settings of a configuration.
#[must_use]
pub fn repository_settings(data: &Data, config: &Config) -> RepositorySettings {
    let named = config.fetch.environment.iter();
    RepositorySettings {
        protocols: config.fetch.protocols.clone(),
        fetch_timeout: config.fetch.timeout,
        fetch_config: config.fetch.git_config.clone(),
        fetch_environment: named
            .filter_map(|name| Some((name.clone(), std::env::var(name).ok()?)))
            .collect(),
        ..RepositorySettings::new(data.path())
    }
}

/// Serve until `leave` is cancelled, then drain. Cancelling `hurry` cuts the drain short.
///
/// # Errors
/// Everything that keeps it from starting; nothing that happens to a score.
pub async fn serve(
    data: &Data,
    config: &Config,
    watchers: &Watchers<'_>,
    reloads: Reloads<'_>,
    leave: CancellationToken,
    hurry: CancellationToken,
) -> Result<(), AdminError> {
    crate::config::check(config)?;
    let _serving = data.serve()?;
    let store: Arc<dyn Store> = Arc::new(data.store()?);
    let listener = Listener::bind(config.listen.address, tls(config)?).await?;
    let exporter = Arc::new(Exporter::new());
    let observer: Arc<dyn Observer> = Arc::clone(&exporter) as Arc<dyn Observer>;
    let page = Page::default();
    let port = match config.admin.listen {
        Some(address) => {
            let beside = match config.admin.page {
                PageShown::On => Some(page.routes(config.admin.names.clone())),
                PageShown::Off => None,
            };
            Some(AdminPort::open(address, Arc::clone(&exporter), beside).await?)
        }
        None => None,
    };
    if let Some(port) = &port {
        tracing::info!(address = %port.address(), "admin port");
    }

    let restarted = Aborted::new(
        AbortedCode::ServerRestarted,
        "the server was restarted while the score was open",
    );
    let aborted = store::off(&store, move |s| {
        s.abort_unfinished(clock::now(), &restarted)
    })
    .await?;
    for _ in &aborted {
        observer.note(Happening::ScoreAborted(AbortedCode::ServerRestarted));
    }
    if !aborted.is_empty() {
        tracing::warn!(
            scores = aborted.len(),
            "ended what a former server left open"
        );
    }
    let key = crate::admin::known_signer(data, &*store)?;
    let repository = Arc::new(data.repository(repository_settings(data, config))?);
    let swept = sweep_scratch(&repository).await?;
    let sandbox = sandbox(
        data,
        engine_host(config),
        config.rooms.ready,
        &store,
        Arc::clone(&observer),
    )?;
    let rooms_swept = sandbox.sweep(None).await.map_err(|error| {
        let crate::sandbox::SandboxError::Aborted(source) = error;
        AdminError::Aborted {
            what: "sweep what a former server left in the engine",
            source,
        }
    })?;
    tracing::info!(scratch = swept, ?rooms_swept, "swept");
    let engine = engine_host(config);
    let step = |step: Step| {
        supervisor::starting(&format!("runner image: {step}"));
        (watchers.image)(step);
    };
    let image = tokio::select! {
        image = crate::admin::provide_default(data, engine.as_deref(), &step) => image?,
        // A first build takes minutes; who ends it does not wait for it.
        () = leave.cancelled() => {
            supervisor::leaving(Duration::ZERO);
            return Ok(());
        }
    };
    tracing::info!(image = %image.digest, %key, instance = config.name, "ready");

    let (vigil, offers) = Vigil::new();
    let rooms = Rooms {
        vigil: match config.oracle.plant {
            Plant::Idle => vigil,
            Plant::Asked => vigil.asked_only(),
        },
        observer: Arc::clone(&observer),
        ..rooms(data, config, &store, &repository, &sandbox)?
    };
    let watcher = pipeline::keep(rooms.clone(), offers, leave.clone());
    let queue = Queue::start(
        Arc::clone(&store),
        Arc::new(PipelineScorer::new(rooms.clone())),
        config.queue.clone(),
        Arc::clone(&observer),
    );
    exporter.watch(gauges(&queue, &sandbox, &store));
    let alive = AbortOnDropHandle::new(tokio::spawn(supervisor::live(
        queue.clone(),
        Arc::clone(&store),
    )));
    let stops = Stops {
        leave: leave.clone(),
        ..Stops::default()
    };
    let scored = rooms.clone();
    let services = Services {
        store: Arc::clone(&store),
        queue: queue.clone(),
        repository: Arc::clone(&repository) as Arc<dyn Repository>,
        collector: Arc::new(PipelineCollector {
            rooms,
            close: stops.close.clone(),
        }),
        observer,
        settings: wire_settings(config),
    };
    page.open(page::Parts {
        rooms: scored,
        queue: queue.clone(),
        rate: services.settings.call_rate,
        heartbeat: services.settings.heartbeat,
        close: stops.close.clone(),
    });
    let (holds, held) = watch::channel(config.clone());
    let upkeep = tokio::spawn(crate::upkeep::run(
        held.clone(),
        Arc::clone(&store),
        repository,
        sandbox.clone(),
        leave.clone(),
    ));
    let notifier = Notifier {
        store: Arc::clone(&store),
        held: held.clone(),
        observer: Arc::clone(&services.observer),
    };
    let telling = AbortOnDropHandle::new(tokio::spawn(notifier.run()));
    let address = listener.address();
    let certificates = listener.certificates();
    let end = async {
        leave.cancelled().await;
        if let Some(port) = &port {
            port.say(Readiness::Leaving);
        }
        let patience = held.borrow().drain;
        supervisor::leaving(patience);
        tracing::info!("leaving: no new scores; running ones have {patience:?}");
        tokio::select! {
            () = queue.drain(patience) => {}
            () = hurry.cancelled() => queue.drain(Duration::ZERO).await,
        }
        sandbox.drain().await;
        stops.over.cancel();
        // Watchers have seen the ends by now; what still streams is ended.
        tokio::time::sleep(Duration::from_millis(100)).await;
        stops.close.cancel();
    };
    let serving = listener.serve(services, stops.clone());
    let announced = async {
        if let Some(port) = &port {
            port.say(Readiness::Ready);
        }
        (watchers.ready)(address);
        supervisor::ready(&format!("scores are taken at {address}"));
        let reloading = async {
            reloads.run(&holds, &certificates).await;
            std::future::pending().await
        };
        tokio::select! {
            served = serving => served,
            never = reloading => never,
        }
    };
    let (served, ()) = tokio::join!(
        async {
            let served = announced.await;
            // A socket that failed ends the rest, too.
            leave.cancel();
            served
        },
        end
    );
    // What is under way is told again after the next start, under the same name.
    drop(telling);
    if let Some(port) = port {
        port.shut().await;
    }
    for (task, what) in [(upkeep, "upkeep"), (watcher, "watch over oracles")] {
        if let Err(error) = task.await {
            tracing::error!(%error, what, "a task broke");
        }
    }
    drop(alive);
    served.map_err(AdminError::from)
}

fn gauges(queue: &Queue, sandbox: &DockerSandbox, store: &Arc<dyn Store>) -> Gauges {
    let store = Arc::clone(store);
    let (waiting, running, rooms) = (queue.clone(), queue.clone(), sandbox.clone());
    Gauges {
        waiting: Box::new(move || waiting.waiting()),
        running: Box::new(move || running.running()),
        ready_rooms: Box::new(move || rooms.ready() as u64),
        // A store that does not answer is told elsewhere.
        messages: Box::new(move || store.deliveries().unwrap_or_default()),
    }
}

pub(crate) fn tls(config: &Config) -> Result<Option<Tls>, AdminError> {
    let Some(files) = &config.listen.tls else {
        return Ok(None);
    };
    let read = |path: &std::path::Path| {
        std::fs::read(path).map_err(AdminError::file(format!("read {}", path.display())))
    };
    let key = files.key.locate().map_err(|error| {
        let what = format!("read {}", files.key);
        AdminError::file(what)(std::io::Error::other(error))
    })?;
    Ok(Some(Tls {
        certificate: read(&files.certificate)?,
        key: read(&key)?.into(),
        client_ca: files.client_ca.as_deref().map(read).transpose()?,
    }))
}

/// What a score of this data directory walks through, with nobody who looks at oracles beside it.
pub(crate) fn rooms(
    data: &Data,
    config: &Config,
    store: &Arc<dyn Store>,
    repository: &Arc<GitRepository>,
    sandbox: &DockerSandbox,
) -> Result<Rooms, AdminError> {
    Ok(Rooms {
        repository: Arc::clone(repository) as Arc<dyn Repository>,
        sandbox: Arc::new(sandbox.clone()),
        signer: Arc::new(data.keys()),
        store: Arc::clone(store),
        draws: Arc::new(data.draws()?),
        data: data.path().to_owned(),
        scorer: ScorerName {
            id: config.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        },
        observer: nobody(),
        vigil: Vigil::none(),
    })
}

/// The rooms of this data directory in the engine.
pub(crate) fn sandbox(
    data: &Data,
    host: Option<String>,
    ready_rooms: usize,
    store: &Arc<dyn Store>,
    observer: Arc<dyn Observer>,
) -> Result<DockerSandbox, AdminError> {
    let options = DockerOptions {
        host,
        instance: data.instance(&**store)?,
        marks: Arc::new(StoredMarks(Arc::clone(store))),
        ready_rooms,
        observer,
    };
    DockerSandbox::new(options).map_err(|source| AdminError::Aborted {
        what: "set up the sandbox",
        source,
    })
}

async fn sweep_scratch(repository: &Arc<GitRepository>) -> Result<u32, AdminError> {
    let room = Arc::clone(repository);
    tokio::task::spawn_blocking(move || room.sweep())
        .await
        .map_err(|_| store::StoreError::Thread)?
        .map_err(AdminError::repository("sweep what uploads left behind"))
}

fn wire_settings(config: &Config) -> WireSettings {
    WireSettings {
        heartbeat: config.calls.heartbeat,
        keepalive: config.calls.keepalive,
        call_rate: CallRate {
            per_second: config.calls.per_second.into(),
            burst: config.calls.burst.into(),
        },
        uploads: config.uploads.limits.clone(),
        uploads_at_once: config.uploads.at_once,
        collections_at_once: config.calls.collections,
    }
}
