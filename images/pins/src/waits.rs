//! Waits for a time to pass, counted: sleeps, and polls that give up after a while. `deadline` counts those that it moves.
//! A poll that does not wait, or waits for ever, depends on no time.

use crate::counts::{self, Source};
use crate::real;
use crate::sys::{self, Timespec, Timeval, c_int, c_uint, c_void};

fn waits(yes: bool) {
    if yes {
        counts::count(Source::Sleeps);
    }
}

/// # Safety
/// `time` is null or readable.
unsafe fn some(time: *const Timespec) -> bool {
    // SAFETY: the caller's promise.
    unsafe { time.as_ref() }.is_some_and(|time| (time.sec, time.nsec) != (0, 0))
}

/// A lock that Python takes: the clock was read for it, and tells the program nothing.
macro_rules! taken {
    ($($name:ident)*) => {$(
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub(crate) unsafe extern "C" fn $name(semaphore: *mut c_void) -> c_int {
            counts::uncount(Source::Monotonic);
            // SAFETY: the caller's own argument.
            unsafe { real::$name(semaphore) }.unwrap_or_else(|| sys::fail(sys::ENOSYS))
        }
    )*};
}

taken! { sem_wait sem_trywait }

macro_rules! counted {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty, $waits:expr, $missing:expr;)*) => {$(
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            // SAFETY: the caller's own arguments.
            unsafe {
                waits($waits);
                real::$name($($argument),*).unwrap_or_else(|| $missing)
            }
        }
    )*};
}

counted! {
    nanosleep(request: *const Timespec, left: *mut Timespec) -> c_int, some(request), sys::fail(sys::ENOSYS);
    usleep(microseconds: c_uint) -> c_int, microseconds > 0, sys::fail(sys::ENOSYS);
    sleep(seconds: c_uint) -> c_uint, seconds > 0, seconds;
    poll(fds: *mut c_void, count: usize, timeout: c_int) -> c_int, timeout > 0, sys::fail(sys::ENOSYS);
    ppoll(fds: *mut c_void, count: usize, timeout: *const Timespec, mask: *const c_void) -> c_int,
        some(timeout), sys::fail(sys::ENOSYS);
    select(most: c_int, read: *mut c_void, write: *mut c_void, other: *mut c_void, timeout: *mut Timeval) -> c_int,
        timeout.as_ref().is_some_and(|time| (time.sec, time.usec) != (0, 0)), sys::fail(sys::ENOSYS);
    pselect(most: c_int, read: *mut c_void, write: *mut c_void, other: *mut c_void, timeout: *const Timespec,
        mask: *const c_void) -> c_int, some(timeout), sys::fail(sys::ENOSYS);
    epoll_wait(fd: c_int, events: *mut c_void, most: c_int, timeout: c_int) -> c_int,
        timeout > 0, sys::fail(sys::ENOSYS);
    epoll_pwait(fd: c_int, events: *mut c_void, most: c_int, timeout: c_int, mask: *const c_void) -> c_int,
        timeout > 0, sys::fail(sys::ENOSYS);
}
