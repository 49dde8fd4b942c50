//! The head of a git bundle, read by ourselves: what it builds on, what it names, and how many objects follow.
//!
//! Versions 2 and 3, no capability but the object format. The names of refs are not kept: nothing here follows one. Never
//! looks at an object.

use super::{RepositoryError, refused};
use gix::ObjectId;
use gix::hash::Kind as Format;
use std::io::{self, Read};
use tribunal_core::reason::RefusedCode::{InvalidArgument, TooLarge, UploadIncomplete};
use tribunal_core::text::shown_bytes;

/// Bytes of one line: an id and the longest of subjects or ref names.
const LINE_BYTES: usize = 8 << 10;
/// Prerequisites and refs, together.
const LINES: usize = 4096;

/// What stands before the pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BundleHead {
    pub(super) format: Format,
    pub(super) prerequisites: Vec<ObjectId>,
    /// What its refs point to, sorted, each once.
    pub(super) tips: Vec<ObjectId>,
    /// Objects that the pack says it has.
    pub(super) objects: u32,
    /// The pack's first bytes, to be handed on with the rest.
    pub(super) pack_start: [u8; 12],
}

/// Counts what is read, and stops at a limit.
pub(super) struct Metered<'a> {
    source: &'a mut dyn Read,
    left: u64,
    state: Flow,
}

/// How reading went so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    /// All was well.
    Fine,
    /// More came than may come.
    OverLimit,
    /// The source broke.
    Broken,
}

impl<'a> Metered<'a> {
    pub(super) fn new(source: &'a mut dyn Read, bytes: u64) -> Self {
        Self {
            source,
            left: bytes,
            state: Flow::Fine,
        }
    }
    pub(super) fn state(&self) -> Flow {
        self.state
    }
}

impl Read for Metered<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.state != Flow::Fine {
            return Err(io::Error::other("the stream has ended"));
        }
        let count = match self.source.read(buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
            Err(error) => {
                self.state = Flow::Broken;
                return Err(error);
            }
        };
        match self.left.checked_sub(count as u64) {
            Some(left) => {
                self.left = left;
                Ok(count)
            }
            None => {
                self.state = Flow::OverLimit;
                Err(io::Error::other("the stream is too long"))
            }
        }
    }
}

/// Read up to the pack, and its first twelve bytes.
pub(super) fn read_head(source: &mut dyn Read) -> Result<BundleHead, RepositoryError> {
    let version = line(source)?;
    let mut head = BundleHead {
        format: Format::Sha1,
        prerequisites: Vec::new(),
        tips: Vec::new(),
        objects: 0,
        pack_start: [0; 12],
    };
    let capabilities = match version.as_slice() {
        b"# v2 git bundle" => Capabilities::None,
        b"# v3 git bundle" => Capabilities::First,
        other => return Err(malformed("its first line is not that of a bundle", other)),
    };
    let mut capabilities = capabilities;
    for _ in 0..LINES {
        let text = line(source)?;
        match (text.first(), capabilities) {
            (None, _) => return start_of_pack(source, head),
            (Some(b'@'), Capabilities::First) => head.format = capability(&text)?,
            (Some(b'-'), _) => {
                capabilities = Capabilities::None;
                head.prerequisites.push(id_of(&text[1..], head.format)?);
            }
            (Some(_), _) => {
                capabilities = Capabilities::None;
                head.tips.push(id_of(&text, head.format)?);
            }
        }
    }
    Err(refused(
        TooLarge,
        format!("the bundle's head has more than {LINES} lines"),
    ))
}

#[derive(Clone, Copy)]
enum Capabilities {
    First,
    None,
}

fn capability(text: &[u8]) -> Result<Format, RepositoryError> {
    match text {
        b"@object-format=sha1" => Ok(Format::Sha1),
        b"@object-format=sha256" => Ok(Format::Sha256),
        other => Err(malformed(
            "it asks for a capability that is not taken",
            other,
        )),
    }
}

/// An id, and after a blank something that is for people only.
fn id_of(text: &[u8], format: Format) -> Result<ObjectId, RepositoryError> {
    let digits = text.split(|b| *b == b' ').next().unwrap_or_default();
    let lower = digits.iter().all(|b| !b.is_ascii_uppercase());
    let id = ObjectId::from_hex(digits).ok();
    id.filter(|id| lower && id.kind() == format)
        .ok_or_else(|| malformed("a line does not begin with a full object id", text))
}

fn start_of_pack(
    source: &mut dyn Read,
    mut head: BundleHead,
) -> Result<BundleHead, RepositoryError> {
    if head.tips.is_empty() {
        return Err(malformed("it names no commit", b""));
    }
    head.tips.sort();
    head.tips.dedup();
    source.read_exact(&mut head.pack_start).map_err(cut)?;
    let [p, a, c, k, v0, v1, v2, v3, n0, n1, n2, n3] = head.pack_start;
    let version = u32::from_be_bytes([v0, v1, v2, v3]);
    if [p, a, c, k] != *b"PACK" || ![2, 3].contains(&version) {
        return Err(malformed("no pack follows its head", &head.pack_start));
    }
    head.objects = u32::from_be_bytes([n0, n1, n2, n3]);
    Ok(head)
}

/// One line without its end.
fn line(source: &mut dyn Read) -> Result<Vec<u8>, RepositoryError> {
    let mut line = Vec::new();
    let mut byte = [0];
    while line.len() <= LINE_BYTES {
        source.read_exact(&mut byte).map_err(cut)?;
        if byte == *b"\n" {
            return Ok(line);
        }
        line.push(byte[0]);
    }
    Err(malformed("a line of its head does not end", &line))
}

fn cut(_error: io::Error) -> RepositoryError {
    refused(
        UploadIncomplete,
        "the upload ended inside the bundle's head",
    )
}

fn malformed(why: &str, what: &[u8]) -> RepositoryError {
    let shown = shown_bytes(what, 80);
    refused(
        InvalidArgument,
        format!("this is not a git bundle: {why} ({shown})"),
    )
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    const A: &str = "1111111111111111111111111111111111111111";
    const B: &str = "2222222222222222222222222222222222222222";

    fn read(text: &str) -> Result<BundleHead, RepositoryError> {
        read_head(
            &mut [text.as_bytes(), b"PACK\0\0\0\x02\0\0\0\x07rest"]
                .concat()
                .as_slice(),
        )
    }

    fn code(text: &str) -> String {
        match read(text).unwrap_err() {
            RepositoryError::Refused(refused) => refused.code.to_string(),
            RepositoryError::Aborted(aborted) => aborted.code.to_string(),
        }
    }

    #[test]
    fn both_versions_are_read() {
        let head = read(&format!(
            "# v2 git bundle\n-{A} subject\n{B} refs/heads/x\n{B} HEAD\n\n"
        ));
        let head = head.unwrap();
        assert_eq!(
            head.prerequisites,
            [ObjectId::from_hex(A.as_bytes()).unwrap()]
        );
        assert_eq!(head.tips, [ObjectId::from_hex(B.as_bytes()).unwrap()]);
        assert_eq!((head.objects, head.format), (7, Format::Sha1));
        let long = "3".repeat(64);
        let head = read(&format!(
            "# v3 git bundle\n@object-format=sha256\n{long} r\n\n"
        ))
        .unwrap();
        assert_eq!(head.format, Format::Sha256);
    }

    #[test]
    fn everything_else_is_refused() {
        for text in [
            "# v1 git bundle\n".to_owned(),
            format!("# v3 git bundle\n@filter=blob:none\n{A} r\n\n"),
            format!("# v2 git bundle\n@object-format=sha1\n{A} r\n\n"),
            format!("# v3 git bundle\n{A} r\n@object-format=sha1\n\n"),
            format!("# v3 git bundle\n@object-format=sha256\n{A} r\n\n"),
            "# v2 git bundle\n--all r\n\n".to_owned(),
            "# v2 git bundle\nmain r\n\n".to_owned(),
            format!("# v2 git bundle\n{} r\n\n", A.replace('1', "A")),
            "# v2 git bundle\n\n".to_owned(),
            format!("# v2 git bundle\n{A} {}\n\n", "x".repeat(9000)),
        ] {
            assert_eq!(code(&text), "invalid-argument", "{text}");
        }
        let many = format!("{A} r\n").repeat(5000);
        assert_eq!(code(&format!("# v2 git bundle\n{many}\n")), "too-large");
        let no_pack = read_head(&mut format!("# v2 git bundle\n{A} r\n\nPACKxxxxxxxx").as_bytes());
        assert!(matches!(no_pack, Err(RepositoryError::Refused(r)) if r.code == InvalidArgument));
    }

    #[test]
    fn a_cut_anywhere_is_incomplete() {
        let whole = format!("# v2 git bundle\n{A} r\n\nPACK\0\0\0\x02\0\0\0\x01");
        for end in 0..whole.len() {
            let cut = read_head(&mut &whole.as_bytes()[..end]).unwrap_err();
            assert!(
                matches!(&cut, RepositoryError::Refused(r) if r.code == UploadIncomplete),
                "{end} {cut}"
            );
        }
    }

    #[test]
    fn a_meter_tells_a_limit_from_a_broken_source() {
        let mut source: &[u8] = &[0; 100];
        let mut metered = Metered::new(&mut source, 99);
        assert!(io::copy(&mut metered, &mut io::sink()).is_err());
        assert_eq!(metered.state(), Flow::OverLimit);
        let mut source: &[u8] = &[0; 100];
        let mut metered = Metered::new(&mut source, 100);
        assert_eq!(io::copy(&mut metered, &mut io::sink()).unwrap(), 100);
        assert_eq!(metered.state(), Flow::Fine);
    }
}
