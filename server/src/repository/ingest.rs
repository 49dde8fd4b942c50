//! A bundle from outside becomes objects of the token that sent it, or one clear refusal and nothing at all.
//!
//! The bundle's head is read here, its pack by `git index-pack` under limits and in quarantine; then every object is
//! looked at, and every commit it names has to be there with all that it reaches. Never makes a ref, never writes into
//! the mirror, never lets one token's upload build on another's.

use super::bundle::{BundleHead, Flow, Metered, read_head};
use super::command::{Git, ProcessLimits};
use super::git::GitRepository;
use super::mirror::Mirror;
use super::objects::{ours, reader, too_large};
use super::quarantine::{Quarantine, ends_with, files_in, touch};
use super::{RepositoryError, UploadLimits, complaint, disk, internal, refused};
use gix::ObjectId;
use gix::hash::Kind as Format;
use gix::odb::find::Header;
use gix::odb::{HandleArc, Header as _};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tribunal_core::id::{CommitId, RepoName, TokenId};
use tribunal_core::reason::RefusedCode::{
    BadObject, InvalidArgument, MissingPrerequisite, NotACommit, Quota, TooLarge, UploadIncomplete,
};

/// Git makes chains of 50 differences at most; reading the end of a long one costs all of it, every time.
const CHAIN: u32 = 100;
/// What `--fix-thin` may add to the pack that came: copies of the mirror's objects that differences build on.
const BORROWED_BYTES: u64 = 256 << 20;

/// Take one bundle in. Returns the commits it names, sorted.
pub(super) fn ingest(
    room: &GitRepository,
    mirror: &Mirror<'_>,
    name: &RepoName,
    token: &TokenId,
    bundle: &mut dyn Read,
    limits: &UploadLimits,
) -> Result<Vec<CommitId>, RepositoryError> {
    let format = mirror.format()?;
    let mut metered = Metered::new(bundle, limits.bytes);
    let head = match read_head(&mut metered) {
        Ok(head) => head,
        Err(_) if metered.state() == Flow::OverLimit => return Err(over_limit(limits)),
        Err(error) => return Err(error),
    };
    check_head(&head, format, limits)?;
    let kept = room.layout.sent(name, token);
    let own: Vec<_> = Some(kept.clone())
        .filter(|path| path.is_dir())
        .into_iter()
        .collect();
    check_kept(&kept, limits)?;
    let borrowed = [&[mirror.objects()], own.as_slice()].concat();
    let quarantine = Quarantine::new(room.new_scratch("quarantine")?, &borrowed)?;
    let upload = Upload {
        mirror: mirror.directory(),
        quarantine: &quarantine,
        format,
        limits,
        until: Instant::now() + Duration::from_secs(limits.seconds),
        index_bytes: index_bytes(&borrowed)?,
    };
    upload.check_prerequisites(&head.prerequisites)?;
    upload.index(&head, &mut metered)?;
    upload.check_objects()?;
    upload.check_tips(&head.tips)?;
    quarantine.borrow(&[mirror.objects()])?;
    if upload.check_reachable(&head.tips).is_err() {
        // It builds on what this token sent before: then that has to stay as long as this does.
        quarantine.borrow(&borrowed)?;
        upload.check_reachable(&head.tips)?;
        for pack in files_in(&kept.join("pack"))? {
            touch(&pack).map_err(|error| disk("keep an upload", &error))?;
        }
    }
    if upload.quarantine.index()?.is_some() {
        quarantine.release(&kept)?;
    }
    head.tips.into_iter().map(ours).collect()
}

struct Upload<'a> {
    mirror: &'a Path,
    quarantine: &'a Quarantine,
    format: Format,
    limits: &'a UploadLimits,
    until: Instant,
    /// Indexes of the packs it borrows from are mapped whole: they are not the candidate's doing.
    index_bytes: u64,
}

impl Upload<'_> {
    fn reader(&self) -> Result<HandleArc, RepositoryError> {
        reader(&self.quarantine.objects(), self.format)
    }

    fn check_prerequisites(&self, prerequisites: &[ObjectId]) -> Result<(), RepositoryError> {
        let reader = self.reader()?;
        for id in prerequisites {
            if kind(&reader, id)? != Some(gix::objs::Kind::Commit) {
                return Err(refused(
                    MissingPrerequisite,
                    format!("the bundle builds on {id}, which is not here"),
                ));
            }
        }
        Ok(())
    }

    /// Let git unpack, name and check what came, while it comes.
    fn index(&self, head: &BundleHead, source: &mut Metered<'_>) -> Result<(), RepositoryError> {
        let git = self
            .git("index-pack")
            .args(["--stdin", "--fix-thin", "--strict", "--threads=1"])
            .arg(format!("--max-input-size={}", self.limits.bytes));
        let (sent, finished) = git.run_fed(|stdin| {
            stdin.write_all(&head.pack_start)?;
            copy(source, stdin, self.until)
        })?;
        match (source.state(), sent) {
            (Flow::OverLimit, _) => Err(over_limit(self.limits)),
            (Flow::Broken, _) => Err(refused(UploadIncomplete, "the upload broke off")),
            (Flow::Fine, Ok(Copied::OutOfTime)) => Err(refused(
                UploadIncomplete,
                format!("the upload took longer than {} s", self.limits.seconds),
            )),
            // A write that failed says only that git has ended; why, it says itself.
            (Flow::Fine, Ok(Copied::All) | Err(_)) if finished.succeeded() => Ok(()),
            (Flow::Fine, Ok(Copied::All) | Err(_)) => Err(complaint::of_index_pack(&finished)),
        }
    }

    /// Sizes and chains of everything that came: what is kept is read again later, without limits on the process.
    fn check_objects(&self) -> Result<(), RepositoryError> {
        let Some(index) = self.quarantine.index()? else {
            return Ok(());
        };
        let unreadable = |error: &dyn std::fmt::Display| {
            internal(format!("the index of an upload cannot be read: {error}"))
        };
        let index = gix::odb::pack::index::File::at(index, self.format)
            .map_err(|error| unreadable(&error))?;
        let reader = self.reader()?;
        for entry in index.iter() {
            let header = reader
                .try_header(&entry.oid)
                .map_err(|error| unreadable(&error))?;
            let chain = match &header {
                Some(Header::Packed(packed)) => packed.num_deltas,
                Some(Header::Loose { .. }) | None => 0,
            };
            let size = header.as_ref().map_or(0, Header::size);
            if size > self.limits.object_bytes {
                return Err(too_large(&entry.oid, size, self.limits.object_bytes));
            }
            if chain > CHAIN {
                return Err(refused(
                    TooLarge,
                    format!("object {} ends a chain of {chain} differences", entry.oid),
                ));
            }
        }
        Ok(())
    }

    fn check_tips(&self, tips: &[ObjectId]) -> Result<(), RepositoryError> {
        let reader = self.reader()?;
        for id in tips {
            match kind(&reader, id)? {
                Some(gix::objs::Kind::Commit) => {}
                Some(other) => {
                    return Err(refused(
                        NotACommit,
                        format!("the bundle names {id}, a {other}"),
                    ));
                }
                None => {
                    return Err(refused(
                        BadObject,
                        format!("the bundle names {id} but does not hold it"),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Everything the named commits reach is here, as far as it is not the mirror's own.
    fn check_reachable(&self, tips: &[ObjectId]) -> Result<(), RepositoryError> {
        // Git 2.39 takes no option on its standard input.
        let git = self
            .git("rev-list")
            .args(["--objects", "--quiet", "--stdin", "--not", "--all"]);
        let (sent, finished) = git.run_fed(|stdin| -> std::io::Result<()> {
            for id in tips {
                writeln!(stdin, "{id}")?;
            }
            Ok(())
        })?;
        match (finished.succeeded(), sent) {
            (true, Ok(())) => Ok(()),
            (true, Err(error)) => Err(disk("ask git what is reachable", &error)),
            (false, Ok(()) | Err(_)) => Err(complaint::of_rev_list(&finished)),
        }
    }

    fn git(&self, verb: &str) -> Git {
        Git::new(self.mirror, verb)
            .objects(&self.quarantine.objects())
            .env("TMPDIR", self.quarantine.temporary())
            .limits(ProcessLimits {
                memory: self.limits.memory.saturating_add(self.index_bytes),
                cpu_seconds: self.limits.seconds.max(1),
                file_bytes: self.limits.bytes.saturating_add(BORROWED_BYTES),
            })
            .deadline(self.until.saturating_duration_since(Instant::now()))
    }
}

fn check_head(
    head: &BundleHead,
    format: Format,
    limits: &UploadLimits,
) -> Result<(), RepositoryError> {
    if head.format != format {
        return Err(refused(
            InvalidArgument,
            format!(
                "the bundle's ids are {}, those of the repository {format}",
                head.format
            ),
        ));
    }
    if u64::from(head.objects) > limits.objects {
        return Err(refused(
            TooLarge,
            format!(
                "the bundle holds {} objects, more than {}",
                head.objects, limits.objects
            ),
        ));
    }
    Ok(())
}

/// What one token keeps is bounded: uploads go only when they are old.
fn check_kept(kept: &Path, limits: &UploadLimits) -> Result<(), RepositoryError> {
    let mut bytes = 0;
    for file in files_in(&kept.join("pack"))? {
        bytes += file.metadata().map_or(0, |data| data.len());
    }
    if bytes < limits.kept_bytes {
        return Ok(());
    }
    Err(refused(
        Quota,
        format!("the uploads of this token have {bytes} bytes already; they go when they are old"),
    ))
}

fn over_limit(limits: &UploadLimits) -> RepositoryError {
    refused(
        TooLarge,
        format!("the bundle is longer than {} bytes", limits.bytes),
    )
}

fn kind(reader: &HandleArc, id: &ObjectId) -> Result<Option<gix::objs::Kind>, RepositoryError> {
    let header = reader.try_header(id);
    let header = header.map_err(|error| internal(format!("{id} cannot be read: {error}")))?;
    Ok(header.map(|header| header.kind()))
}

enum Copied {
    All,
    OutOfTime,
}

fn copy(source: &mut dyn Read, sink: &mut dyn Write, until: Instant) -> std::io::Result<Copied> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        if Instant::now() >= until {
            return Ok(Copied::OutOfTime);
        }
        match source.read(&mut buffer) {
            Ok(0) => return Ok(Copied::All),
            Ok(count) => sink.write_all(&buffer[..count])?,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Bytes of the pack indexes in these object directories.
pub(super) fn index_bytes(directories: &[PathBuf]) -> Result<u64, RepositoryError> {
    let mut bytes = 0;
    for directory in directories {
        for file in files_in(&directory.join("pack"))? {
            if ends_with(&file, "idx") || ends_with(&file, "rev") {
                bytes += file.metadata().map_or(0, |data| data.len());
            }
        }
    }
    Ok(bytes)
}
