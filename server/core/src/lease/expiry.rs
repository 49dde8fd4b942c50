//! The two forms of `expires_at`: unix seconds, or RFC 3339 with an offset. Anything else is refused, never guessed.

use crate::id::UnixTime;

/// The last second of the year 9999: RFC 3339 has four digits for the year.
const LAST: i64 = 253_402_300_799;

/// Unix seconds.
pub(super) fn seconds(value: i64) -> Result<UnixTime, &'static str> {
    if (0..=LAST).contains(&value) {
        Ok(UnixTime(value))
    } else {
        Err("is out of range for unix seconds")
    }
}

/// RFC 3339.
pub(super) fn rfc3339(text: &str) -> Result<UnixTime, &'static str> {
    let bytes = text.as_bytes();
    let shaped = |from: usize, shape: &str| {
        bytes.get(from..from + shape.len()).is_some_and(|part| {
            part.iter().zip(shape.bytes()).all(|(b, s)| match s {
                b'd' => b.is_ascii_digit(),
                b'T' => matches!(b, b'T' | b't'),
                other => *b == other,
            })
        })
    };
    if !shaped(0, "dddd-dd-dd") {
        return Err("is neither unix seconds nor an RFC 3339 time");
    }
    if bytes.len() == 10 {
        return Err("has no time of day: a bare date ends at a different instant in every zone");
    }
    if !shaped(10, "Tdd:dd:dd") {
        return Err("is neither unix seconds nor an RFC 3339 time");
    }
    let mut zone = text.get(19..).unwrap_or_default();
    if let Some(fraction) = zone.strip_prefix('.') {
        let tail = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
        if tail.len() == fraction.len() {
            return Err("has a decimal point without a fraction");
        }
        zone = tail;
    }
    if zone.is_empty() {
        return Err("has no offset: write Z or +hh:mm");
    }
    let offset = zone.strip_prefix(['+', '-']).is_some_and(|t| {
        t.len() == 5
            && t.bytes().enumerate().all(|(i, b)| {
                if i == 2 {
                    b == b':'
                } else {
                    b.is_ascii_digit()
                }
            })
    });
    if !matches!(zone, "Z" | "z") && !offset {
        return Err("has an offset that is neither Z nor +hh:mm");
    }
    let time: jiff::Timestamp = text.parse().map_err(|_| "is no time that exists")?;
    seconds(time.as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_and_refusals() {
        let now = 1_796_083_200;
        for (text, right) in [
            ("2026-12-01T00:00:01Z", Some(now + 1)),
            ("2026-12-01t00:00:01z", Some(now + 1)),
            ("2026-12-01T00:00:00.999Z", Some(now)),
            ("2026-12-01T02:00:00+02:00", Some(now)),
            ("2026-11-30T23:30:00-01:00", Some(now + 1800)),
            ("2026-12-02", None),
            ("2026-12-02T00:00:00", None),
            ("2026-12-02 00:00:00Z", None),
            ("2026-12-02T00:00Z", None),
            ("2026-12-02T00:00:00+02", None),
            ("2026-12-02T00:00:00 Z", None),
            ("2026-12-02T00:00:00.Z", None),
            ("2026-12-02T00:00:00Z[Europe/Berlin]", None),
            ("2026-02-30T00:00:00Z", None),
            ("2026-12-02T25:00:00Z", None),
            ("99999-01-01T00:00:00Z", None),
            ("1796083200", None),
            ("tomorrow", None),
            ("", None),
            ("é026-12-02", None),
        ] {
            assert_eq!(rfc3339(text).ok(), right.map(UnixTime), "{text}");
        }
        assert_eq!(seconds(now), Ok(UnixTime(now)));
        assert!(seconds(-1).is_err() && seconds(i64::MAX).is_err());
        // A leap second may be refused or read, but it is never a later day.
        assert!(rfc3339("2026-12-31T23:59:60Z").map_or(true, |t| t.0 <= 1_798_761_600));
    }
}
