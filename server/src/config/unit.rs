//! Durations and sizes as people write them: `30s`, `10m`, `14d`; `64KiB`, `256MiB`, `1GiB`.

use std::time::Duration;

pub(super) const DURATION_RULE: &str =
    "a duration like \"500ms\", \"30s\", \"10m\", \"2h\" or \"14d\"";
pub(super) const SIZE_RULE: &str = "a size like \"64KiB\", \"256MiB\" or \"1GiB\"";

/// A duration, also for command lines.
#[must_use]
pub fn duration(text: &str) -> Option<Duration> {
    let (count, unit) = split(text)?;
    Some(match unit {
        "ms" => Duration::from_millis(count),
        "s" => Duration::from_secs(count),
        "m" => Duration::from_secs(count.checked_mul(60)?),
        "h" => Duration::from_secs(count.checked_mul(3600)?),
        "d" => Duration::from_secs(count.checked_mul(86_400)?),
        _ => return None,
    })
}

pub(super) fn size(text: &str) -> Option<u64> {
    let (count, unit) = split(text)?;
    let shift = match unit {
        "B" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        _ => return None,
    };
    count.checked_mul(1 << shift)
}

fn split(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (count, unit) = text.split_at(digits);
    Some((count.parse().ok()?, unit))
}

pub(super) fn shown_duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    for (unit, length) in [
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("m", 60_000),
        ("s", 1000),
    ] {
        if millis > 0 && millis.is_multiple_of(length) {
            return format!("{}{unit}", millis / length);
        }
    }
    format!("{millis}ms")
}

pub(super) fn shown_size(bytes: u64) -> String {
    for (unit, shift) in [("GiB", 30), ("MiB", 20), ("KiB", 10)] {
        if bytes > 0 && bytes.is_multiple_of(1 << shift) {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    format!("{bytes}B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_reads_back() {
        for text in ["500ms", "30s", "10m", "2h", "14d", "90s"] {
            let value = duration(text);
            assert_eq!(value.map(shown_duration).as_deref(), Some(text));
        }
        for text in ["64KiB", "256MiB", "1GiB", "1000B"] {
            assert_eq!(size(text).map(shown_size).as_deref(), Some(text));
        }
        for bad in [
            "",
            "5",
            "s",
            "-5s",
            "1.5s",
            "5 s",
            "99999999999999999999s",
            "18446744073709551615d",
        ] {
            assert_eq!(duration(bad), None, "{bad}");
        }
        for bad in ["1GB", "1gib", "KiB", "18446744073709551615KiB"] {
            assert_eq!(size(bad), None, "{bad}");
        }
    }
}
