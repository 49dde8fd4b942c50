//! The real clock, read here and nowhere else.

use tribunal_core::id::UnixTime;

/// Now, in whole seconds.
#[must_use]
pub fn now() -> UnixTime {
    UnixTime(jiff::Timestamp::now().as_second())
}
