//! `selftest`: ways of gaming a grader that the server carries inside itself, each as a real repository, asked of two judges
//! on this machine: a plain gate, and this server's own rooms. What comes out is a table; one attack that merges, or one
//! honest change that does not, and the machine is not in order.
//!
//! It serves no port and touches no data directory but for the images in it: key, mirrors, store and work trees live in a
//! folder of its own that goes with it, and so does everything it left in the engine. Candidate code runs in containers
//! only. Fails with `AdminError` where it could not ask; an answer that is wrong is not a failure but `NotInOrder`.

mod corpus;
mod court;
mod gate;
mod glob;
mod table;

use corpus::Case;
pub use table::Row;
use table::State;

use super::{AdminError, Answer, Data, init, provide_default};
use crate::config::Config;
use crate::image::{self, Step};
use crate::serve;
use corpus::Corpus;
use court::Court;
use futures::StreamExt as _;
use gate::Gate;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// What is to be tried.
#[derive(Debug, Clone)]
pub struct SelftestOptions {
    /// Patterns on the cases' names; none is all.
    pub only: Vec<String>,
    /// For one case at each judge.
    pub deadline: Duration,
}

/// Told as it goes on.
pub struct SelftestWatch<'a> {
    /// Steps of the image's build, where it is not there yet.
    pub image: &'a (dyn Fn(Step) + Send + Sync),
    /// A case is over: how many are, of how many, and this one.
    pub case: &'a (dyn Fn(usize, usize, &Row) + Send + Sync),
}

/// Try them. `data` is a data directory whose images are used and kept; without one the image is made for this once.
///
/// # Errors
/// `NotInOrder` with the table where an answer is wrong; otherwise what kept it from asking.
pub async fn selftest(
    data: Option<&Path>,
    config: &Config,
    options: &SelftestOptions,
    watch: &SelftestWatch<'_>,
    cancel: CancellationToken,
) -> Result<Answer, AdminError> {
    let cases = corpus::cases(&options.only)?;
    let folder = tempfile::Builder::new()
        .prefix("tribunal-selftest-")
        .tempdir()
        .map_err(AdminError::file("make a folder for the selftest"))?;
    let corpus = Corpus::unpack(&folder.path().join("corpus"))?;
    let own = data_of_its_own(&folder.path().join("data"), data)?;
    let engine = serve::engine_host(config);
    let image = tokio::select! {
        image = provide_default(&own, engine.as_deref(), watch.image) => image?,
        () = cancel.cancelled() => return Err(left()),
    };
    let docker = image::connect(engine.as_deref()).await?;
    let began = Instant::now();
    let court = Court::open(own, config, cases.len(), options.deadline).await?;
    let instance = court.instance().to_owned();
    let gate = Gate::new(docker, image.engine_id, court.instance(), options.deadline);
    let total = cases.len();
    let tried = async {
        let each = cases
            .into_iter()
            .enumerate()
            .map(|(number, case)| one(&corpus, &court, &gate, folder.path(), number, case));
        let mut running = futures::stream::iter(each).buffer_unordered(config.queue.workers);
        let mut rows = Vec::new();
        while let Some(row) = running.next().await {
            let row = row?;
            (watch.case)(rows.len() + 1, total, &row);
            rows.push(row);
        }
        Ok(rows)
    };
    let rows = tokio::select! {
        rows = tried => rows,
        () = cancel.cancelled() => Err(left()),
    };
    // Whatever it came to: nothing stays in the engine.
    let closed = court.close().await;
    let mut rows = rows?;
    closed?;
    rows.sort_by_key(|row| row.number);
    table::answer(&rows, &instance, began.elapsed())
}

fn left() -> AdminError {
    AdminError::Aborted {
        what: "finish the selftest",
        source: tribunal_core::reason::Aborted::new(
            tribunal_core::reason::AbortedCode::Cancelled,
            "it was asked to end",
        ),
    }
}

/// A fresh data directory that shares nothing with the operator's but its images.
fn data_of_its_own(path: &Path, of: Option<&Path>) -> Result<Data, AdminError> {
    init(path)?;
    if let Some(of) = of {
        let images = Data::open(of)?.path().join("images");
        let what = "share the images";
        std::fs::create_dir_all(&images).map_err(AdminError::file(what))?;
        std::os::unix::fs::symlink(&images, path.join("images")).map_err(AdminError::file(what))?;
    }
    Data::open(path)
}

/// One case before both judges.
async fn one(
    corpus: &Corpus,
    court: &Court,
    gate: &Gate,
    folder: &Path,
    number: usize,
    case: Case,
) -> Result<Row, AdminError> {
    let begun = Instant::now();
    let place = folder.join(format!("case-{number}"));
    let built = corpus.build(&case, &place).await?;
    let plain = gate.ask(&built, number).await?;
    let tribunal = court.ask(&built, number).await?;
    let removed = tokio::fs::remove_dir_all(&place).await;
    removed.map_err(AdminError::file("remove a case's repository"))?;
    Ok(Row {
        number,
        state: State::of(&case, &tribunal),
        case,
        plain,
        tribunal,
        took: begun.elapsed(),
    })
}
