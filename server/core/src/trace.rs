//! Where a call belongs in somebody else's trace: W3C Trace Context's `traceparent`, read strictly. What does not fit is no
//! context; nothing is decided by it.

use std::fmt;
use std::str::FromStr;

/// A caller's place in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    trace: [u8; 16],
    span: [u8; 8],
    sampling: Sampling,
}

/// Whether the caller records its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// It does.
    Recorded,
    /// It does not, as far as is known.
    Not,
}

/// It is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("read a traceparent")]
pub struct NoTraceParent;

/// Bytes of version 00.
const LENGTH: usize = 55;

impl TraceParent {
    /// The trace's id.
    #[must_use]
    pub const fn trace(&self) -> [u8; 16] {
        self.trace
    }

    /// The id of the caller's span.
    #[must_use]
    pub const fn span(&self) -> [u8; 8] {
        self.span
    }

    /// Whether it is recorded.
    #[must_use]
    pub const fn sampling(&self) -> Sampling {
        self.sampling
    }

    /// The trace's id as everybody writes it.
    #[must_use]
    pub fn trace_id(&self) -> String {
        hex::encode(self.trace)
    }
}

/// Lowercase digits alone, and not all of them zero.
fn id<const N: usize>(text: &str) -> Option<[u8; N]> {
    let bytes = octets::<N>(text)?;
    (bytes != [0; N]).then_some(bytes)
}

fn octets<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    if !text.bytes().all(digit) {
        return None;
    }
    let mut bytes = [0; N];
    hex::decode_to_slice(text, &mut bytes).ok()?;
    Some(bytes)
}

fn read(text: &str) -> Option<TraceParent> {
    let (first, rest) = text.split_at_checked(LENGTH)?;
    let mut parts = first.split('-');
    let [version] = octets::<1>(parts.next()?)?;
    let trace = id(parts.next()?)?;
    let span = id(parts.next()?)?;
    let [flags] = octets::<1>(parts.next()?)?;
    // A version of later may say more behind another dash; this one may not, and ff is none.
    let whole = match version {
        0x00 => rest.is_empty(),
        0xff => false,
        _ => rest.is_empty() || rest.starts_with('-'),
    };
    let sampling = match flags & 1 {
        1 => Sampling::Recorded,
        _ => Sampling::Not,
    };
    (whole && parts.next().is_none()).then_some(TraceParent {
        trace,
        span,
        sampling,
    })
}

impl FromStr for TraceParent {
    type Err = NoTraceParent;

    fn from_str(text: &str) -> Result<Self, NoTraceParent> {
        read(text).ok_or(NoTraceParent)
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = match self.sampling {
            Sampling::Recorded => "01",
            Sampling::Not => "00",
        };
        let (trace, span) = (self.trace_id(), hex::encode(self.span));
        write!(f, "00-{trace}-{span}-{flags}")
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn what_the_specification_writes_reads_back() {
        let parent: TraceParent = GOOD.parse().unwrap();
        assert_eq!(parent.to_string(), GOOD);
        assert_eq!(parent.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(parent.sampling(), Sampling::Recorded);
        let quiet = GOOD.replace("-01", "-fe").parse::<TraceParent>().unwrap();
        assert_eq!(quiet.sampling(), Sampling::Not);
    }

    #[test]
    fn a_later_version_is_read_as_far_as_this_one_goes() {
        let later = GOOD.replacen("00", "cc", 1);
        for fits in [later.clone(), format!("{later}-more"), format!("{later}-")] {
            let parent: TraceParent = fits.parse().unwrap();
            assert_eq!(parent.to_string(), GOOD);
        }
        assert!(format!("{later}.more").parse::<TraceParent>().is_err());
    }

    #[test]
    fn what_does_not_fit_is_none() {
        for (from, to) in [
            ("00-4", "ff-4"),
            (
                "4bf92f3577b34da6a3ce929d0e0e4736",
                "00000000000000000000000000000000",
            ),
            ("00f067aa0ba902b7", "0000000000000000"),
            ("4bf92f", "4BF92F"),
            ("4bf92f", "4bf92g"),
            ("-01", "-01-"),
            ("-01", "-1"),
            ("-01", "-0x"),
            ("-01", "_01"),
            ("00-4", "0-04"),
            ("00-4", " 00-4"),
            ("00-4", "\u{e9}-4"),
            ("b7-01", "b7-01\n"),
            (GOOD, ""),
        ] {
            let text = GOOD.replacen(from, to, 1);
            assert_ne!(text, GOOD);
            assert_eq!(text.parse::<TraceParent>(), Err(NoTraceParent), "{text:?}");
        }
    }
}
