//! The wall clock, frozen: every C function that reads it answers from the page.
//!
//! The monotonic clocks, CPU clocks and every resolution are the real ones: a frozen monotonic
//! clock hangs threads and asyncio. CLOCK_TAI is answered as CLOCK_REALTIME is, which is what a
//! kernel whose leap-second offset nobody set says.

use crate::counts::{self, Source};
use crate::page;
use crate::real;
use crate::sys::{self, Clock, Timeb, Timespec, Timeval, c_int, c_void};

/// The clocks that tell the date.
pub(crate) fn is_wall(clock: Clock) -> bool {
    matches!(
        clock,
        sys::CLOCK_REALTIME
            | sys::CLOCK_REALTIME_COARSE
            | sys::CLOCK_REALTIME_ALARM
            | sys::CLOCK_TAI
    )
}

/// The real wall clock, for moving deadlines.
pub(crate) fn real_now() -> Option<Timespec> {
    let mut now = Timespec::default();
    // SAFETY: `now` is a valid place for the answer.
    (unsafe { real::clock_gettime(sys::CLOCK_REALTIME, &mut now) } == Some(0)).then_some(now)
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn clock_gettime(clock: Clock, out: *mut Timespec) -> c_int {
    counts::count(if is_wall(clock) {
        Source::WallClock
    } else {
        Source::Monotonic
    });
    if is_wall(clock)
        && let Some(pins) = page::pins(page::CLOCK)
    {
        if out.is_null() {
            return sys::fail(sys::EFAULT);
        }
        // SAFETY: the caller gives a place for the answer, and it is not null.
        unsafe { *out = pins.now };
        return 0;
    }
    // SAFETY: the caller's own arguments.
    unsafe { real::clock_gettime(clock, out) }.unwrap_or_else(|| sys::fail(sys::ENOSYS))
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn gettimeofday(out: *mut Timeval, zone: *mut c_void) -> c_int {
    counts::count(Source::WallClock);
    // The zone is not a clock; only then must the real function fill it.
    if zone.is_null()
        && !out.is_null()
        && let Some(pins) = page::pins(page::CLOCK)
    {
        // SAFETY: the caller gives a place for the answer, and it is not null.
        unsafe {
            *out = Timeval {
                sec: pins.now.sec,
                usec: pins.now.nsec / 1000,
            }
        };
        return 0;
    }
    // SAFETY: the caller's own arguments.
    let result = unsafe { real::gettimeofday(out, zone) }.unwrap_or_else(|| sys::fail(sys::ENOSYS));
    if result == 0
        && !out.is_null()
        && let Some(pins) = page::pins(page::CLOCK)
    {
        // SAFETY: as above; the real function has just written there.
        unsafe {
            *out = Timeval {
                sec: pins.now.sec,
                usec: pins.now.nsec / 1000,
            }
        };
    }
    result
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn time(out: *mut i64) -> i64 {
    counts::count(Source::WallClock);
    if let Some(pins) = page::pins(page::CLOCK) {
        if !out.is_null() {
            // SAFETY: the caller gives a place for the answer, and it is not null.
            unsafe { *out = pins.now.sec };
        }
        return pins.now.sec;
    }
    // SAFETY: the caller's own argument.
    unsafe { real::time(out) }.unwrap_or_else(|| i64::from(sys::fail(sys::ENOSYS)))
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn timespec_get(out: *mut Timespec, base: c_int) -> c_int {
    counts::count(Source::WallClock);
    if base == sys::TIME_UTC
        && !out.is_null()
        && let Some(pins) = page::pins(page::CLOCK)
    {
        // SAFETY: the caller gives a place for the answer, and it is not null.
        unsafe { *out = pins.now };
        return base;
    }
    // SAFETY: the caller's own arguments. Zero is this function's failure.
    unsafe { real::timespec_get(out, base) }.unwrap_or(0)
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn ftime(out: *mut Timeb) -> c_int {
    counts::count(Source::WallClock);
    if !out.is_null()
        && let Some(pins) = page::pins(page::CLOCK)
    {
        let millitm = u16::try_from(pins.now.nsec / 1_000_000).unwrap_or(0);
        // SAFETY: the caller gives a place for the answer, and it is not null.
        unsafe {
            *out = Timeb {
                time: pins.now.sec,
                millitm,
                timezone: 0,
                dstflag: 0,
            }
        };
        return 0;
    }
    // SAFETY: the caller's own argument.
    unsafe { real::ftime(out) }.unwrap_or_else(|| sys::fail(sys::ENOSYS))
}
