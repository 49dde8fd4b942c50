//! Durations, sizes and the clock as texts: one spelling in, one canonical spelling out.

use jiff::Timestamp;

const DURATIONS: [(&str, u64); 4] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];
const SIZES: [(&str, u64); 4] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];

/// Milliseconds of `120s`, `500ms`, `2m`, `1h`.
pub(super) fn duration(text: &str) -> Option<u64> {
    DURATIONS
        .into_iter()
        .find_map(|(unit, ms)| amount(text, unit, ms))
}

/// Whole seconds where they suffice.
pub(super) fn render_duration(ms: u64) -> String {
    if ms.is_multiple_of(1000) {
        format!("{}s", ms / 1000)
    } else {
        format!("{ms}ms")
    }
}

/// Bytes of `1GiB`, `8MiB`, `512KiB`, `100B`.
pub(super) fn size(text: &str) -> Option<u64> {
    SIZES
        .into_iter()
        .find_map(|(unit, bytes)| amount(text, unit, bytes))
}

/// In the largest unit that leaves no rest.
pub(super) fn render_size(bytes: u64) -> String {
    let fits = |(_, unit): &(&str, u64)| bytes != 0 && bytes.is_multiple_of(*unit);
    let (name, unit) = SIZES.into_iter().find(fits).unwrap_or(("B", 1));
    format!("{}{name}", bytes / unit)
}

fn amount(text: &str, unit: &str, factor: u64) -> Option<u64> {
    let digits = text.strip_suffix(unit)?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

/// A point in time with its offset, told in UTC; 1980 (older ones cannot be put into archives) to 2200.
pub(crate) fn clock(text: &str) -> Option<String> {
    let time: Timestamp = text.parse().ok()?;
    let year = time.strftime("%Y").to_string().parse::<i32>().ok()?;
    (1980..=2200).contains(&year).then(|| time.to_string())
}
