//! `tribunal-server`: flags in, an exit code out. What a command does stands in `admin` and `serve`.

mod cli;
mod logs;

use clap::Parser as _;
use cli::{Cli, Command, Image, Key, KeyForm, Overrides, Repo, RoleName, Selftest, Token};
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tribunal_core::request::Role;
use tribunal_server::admin::{
    self, AdminError, Answer, Data, Effort, Exit, KeyFormat, Place, SelftestOptions, SelftestWatch,
    Text,
};
use tribunal_server::config::{self, Config};
use tribunal_server::image::{BaseCache, BuildOptions, Step};
use tribunal_server::reload::Reloads;
use tribunal_server::serve::{self, Watchers};
use tribunal_server::traces::Traces;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are answers, everything else is a mistake.
            let _ = error.print();
            let exit = if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Done
            };
            return ExitCode::from(exit.code());
        }
    };
    let json = cli.json;
    match run(cli) {
        Ok(answer) => print(answer.as_ref(), json, Exit::Done),
        Err(AdminError::NotInOrder(answer)) => print(Some(&answer), json, Exit::Failed),
        Err(error) => {
            let _ = writeln!(io::stderr(), "tribunal-server: failed to {error}");
            ExitCode::from(error.exit().code())
        }
    }
}

/// A result that cannot be printed is not a success: a token would be lost.
fn print(answer: Option<&Answer>, json: bool, exit: Exit) -> ExitCode {
    let Some(answer) = answer else {
        return ExitCode::from(exit.code());
    };
    let text = match (&answer.text, json) {
        (_, true) => format!("{:#}\n", answer.json),
        (Text::Lines(text), false) => text.clone(),
        (Text::Rows(table), false) if io::stdout().is_terminal() => table.aligned(),
        (Text::Rows(table), false) => table.plain(),
    };
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => ExitCode::from(exit.code()),
        Err(error) => {
            let _ = writeln!(io::stderr(), "tribunal-server: failed to print: {error}");
            ExitCode::from(Exit::Failed.code())
        }
    }
}

fn run(cli: Cli) -> Result<Option<Answer>, AdminError> {
    let overrides = match &cli.command {
        Command::Serve(serve) => serve.overrides.clone(),
        Command::CheckConfig(overrides) => overrides.clone(),
        Command::Init
        | Command::Repo(_)
        | Command::Token(_)
        | Command::Image(_)
        | Command::Key(_)
        | Command::Gc { .. }
        | Command::Backup { .. }
        | Command::Replay { .. }
        | Command::Doctor
        | Command::Selftest(_) => Overrides {
            listen: None,
            workers: None,
            log: None,
        },
    };
    let config = configuration(cli.config.as_deref(), overrides.clone())?;
    let quiet = !matches!(cli.command, Command::Serve(_));
    let filter = if quiet { "warn" } else { &config.log };
    let runtime = runtime()?;
    let traces = traces(quiet, &config, &runtime)?;
    let spans = traces.as_ref().map(Traces::layer);
    let source = Source {
        refilter: logs::begin(filter, config.log_format, spans),
        file: cli.config.clone(),
        overrides,
    };
    if let Command::CheckConfig(_) = cli.command {
        config::check(&config)?;
        let json = serde_json::json!({ "config": config.to_toml() });
        return Ok(Some(Answer {
            text: Text::Lines(config.to_toml()),
            json,
        }));
    }
    if let Command::Selftest(asked) = &cli.command {
        return runtime
            .block_on(run_selftest(cli.data.as_deref(), &config, asked))
            .map(Some);
    }
    let path = cli.data.ok_or_else(|| {
        AdminError::Usage("no data directory; give --data DIR or TRIBUNAL_DATA".to_owned())
    })?;
    if let Command::Init = cli.command {
        return admin::init(&path).map(Some);
    }
    let data = Data::open(&path)?.signing_with(config.signing.key.clone());
    let answer = runtime.block_on(command(cli.command, &data, &config, &source));
    if let Some(traces) = traces {
        traces.shut();
    }
    answer
}

/// A server's, where its configuration names a collector.
fn traces(
    quiet: bool,
    config: &Config,
    runtime: &tokio::runtime::Runtime,
) -> Result<Option<Traces>, AdminError> {
    let collector = config.traces.collector.as_ref().filter(|_| !quiet);
    let _inside = runtime.enter();
    let opened = collector.map(|to| Traces::open(to, &config.name));
    Ok(opened.transpose()?)
}

fn runtime() -> Result<tokio::runtime::Runtime, AdminError> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|source| AdminError::File {
            what: "start the runtime".to_owned(),
            source,
        })
}

/// A signal ends it, and what it made in the engine with it.
async fn run_selftest(
    data: Option<&Path>,
    config: &Config,
    asked: &Selftest,
) -> Result<Answer, AdminError> {
    let options = SelftestOptions {
        only: asked.only.clone(),
        deadline: asked.deadline,
    };
    let watch = SelftestWatch {
        image: &step,
        case: &|done, total, row| {
            let (name, state, took) = (&row.case.name, row.state, row.took.as_secs_f32());
            let _ = writeln!(io::stderr(), "{done}/{total} {name}: {state}, {took:.1} s");
        },
    };
    let (leave, hurry) = (CancellationToken::new(), CancellationToken::new());
    let signals = tokio::spawn(signals(leave.clone(), hurry));
    let answer = admin::selftest(data, config, &options, &watch, leave).await;
    signals.abort();
    answer
}

async fn command(
    command: Command,
    data: &Data,
    config: &Config,
    source: &Source,
) -> Result<Option<Answer>, AdminError> {
    let settings = serve::repository_settings(data, config);
    let engine = serve::engine_host(config);
    let answer = match command {
        Command::Serve(_) => {
            run_server(data, config, source).await?;
            return Ok(None);
        }
        Command::Repo(Repo::Add {
            name,
            remote,
            protect,
            quick,
        }) => {
            let place = Place {
                data,
                config,
                engine,
                settings,
            };
            admin::add_repo(place, &name, &remote, &protect, effort(quick)).await
        }
        Command::Repo(Repo::List) => admin::list_repos(data, settings),
        Command::Repo(Repo::Sync { name, quick }) => {
            let place = Place {
                data,
                config,
                engine,
                settings,
            };
            admin::sync_repo(place, &name, effort(quick)).await
        }
        Command::Repo(Repo::Remove { name }) => admin::remove_repo(data, settings, &name),
        Command::Token(Token::New {
            role,
            repo,
            expires,
        }) => admin::new_token(data, role_of(role), repo, expires),
        Command::Token(Token::List) => admin::list_tokens(data),
        Command::Token(Token::Revoke { id }) => admin::revoke_token(data, &id),
        Command::Image(Image::Build {
            python,
            requirements,
            mirror,
            renew,
        }) => {
            let options = BuildOptions {
                python,
                requirements,
                mirror,
                base: if renew {
                    BaseCache::Renew
                } else {
                    BaseCache::Reuse
                },
                ..BuildOptions::new(data.path())
            };
            admin::build_image(engine.as_deref(), &options, &step).await
        }
        Command::Image(Image::List) => admin::list_images(data),
        Command::Image(Image::Export { file, tag }) => {
            admin::export_image(data, engine.as_deref(), &tag, &file).await
        }
        Command::Image(Image::Import { file }) => {
            admin::import_image(data, engine.as_deref(), &file).await
        }
        Command::Key(Key::Show { format }) => admin::show_keys(data, form(format)),
        Command::Key(Key::Rotate) => admin::rotate_key(data),
        Command::Key(Key::Revoke { id, since }) => admin::revoke_key(data, &id, since),
        Command::Gc { older_than } => admin::gc(data, settings, engine, older_than).await,
        Command::Backup { file } => admin::backup(data, &file),
        Command::Replay { score } => admin::replay(data, config, &score).await,
        Command::Doctor => admin::doctor(data, config, engine, settings).await,
        // All of these were answered without a data directory.
        Command::Init | Command::CheckConfig(_) | Command::Selftest(_) => return Ok(None),
    };
    answer.map(Some)
}

fn configuration(file: Option<&Path>, overrides: Overrides) -> Result<Config, AdminError> {
    let config = match file {
        None => Config::default(),
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(|source| AdminError::File {
                what: format!("read the configuration {}", path.display()),
                source,
            })?;
            let folder = path.parent().unwrap_or(Path::new("."));
            config::from_toml(&text, folder)?
        }
    };
    Ok(config.with(config::Overrides {
        listen: overrides.listen,
        workers: overrides.workers,
        log: overrides.log,
    }))
}

/// Where the configuration came from, and how to log by another filter.
struct Source {
    file: Option<PathBuf>,
    overrides: Overrides,
    refilter: logs::Refilter,
}

fn step(step: Step) {
    let _ = writeln!(io::stderr(), "runner image: {step}");
}

async fn run_server(data: &Data, config: &Config, source: &Source) -> Result<(), AdminError> {
    let (leave, hurry) = (CancellationToken::new(), CancellationToken::new());
    let ends = tokio::spawn(signals(leave.clone(), hurry.clone()));
    let (ask, asked) = mpsc::channel(1);
    let hangups = tokio::spawn(hangups(ask));
    let watchers = Watchers {
        image: &step,
        ready: &|address| {
            // Whoever started us may have closed its end; we serve all the same.
            let mut out = io::stdout().lock();
            let _ = writeln!(out, "listening on {address}").and_then(|()| out.flush());
        },
    };
    let reloads = Reloads {
        asked,
        read: &|| configuration(source.file.as_deref(), source.overrides.clone()),
        log: &*source.refilter,
    };
    let served = serve::serve(data, config, &watchers, reloads, leave, hurry).await;
    ends.abort();
    hangups.abort();
    served
}

/// Each SIGHUP asks for the configuration to be read again; several in a row are one.
async fn hangups(ask: mpsc::Sender<()>) {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut hangup) = signal(SignalKind::hangup()) else {
        tracing::error!("SIGHUP cannot be caught; the configuration is read at a start only");
        return;
    };
    while hangup.recv().await.is_some() {
        // Full: it was asked for and not begun yet.
        let _ = ask.try_send(());
    }
}

/// The first signal asks it to leave, the second one to hurry.
async fn signals(leave: CancellationToken, hurry: CancellationToken) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut term), Ok(mut int)) = (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    ) else {
        tracing::error!("signals cannot be caught; the server will not drain");
        return;
    };
    for token in [leave, hurry] {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
        token.cancel();
    }
}

const fn effort(quick: bool) -> Effort {
    if quick { Effort::Recall } else { Effort::Run }
}

const fn role_of(role: RoleName) -> Role {
    match role {
        RoleName::Agent => Role::Agent,
        RoleName::Ci => Role::Ci,
        RoleName::Maintainer => Role::Maintainer,
        RoleName::Operator => Role::Operator,
    }
}

const fn form(format: Option<KeyForm>) -> KeyFormat {
    match format {
        None => KeyFormat::Said,
        Some(KeyForm::Pem) => KeyFormat::Pem,
        Some(KeyForm::AllowedSigners) => KeyFormat::AllowedSigners,
    }
}
