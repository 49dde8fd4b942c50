//! Timers armed for an absolute moment of the wall clock: the moment is moved as a wait's deadline is.
//!
//! A timerfd tells its clock in /proc; a POSIX timer does not, so the few that are made on a wall
//! clock are remembered. Relative timers, and the time left that both kinds report, are real already.

use crate::clock::is_wall;
use crate::deadline::moved;
use crate::real;
use crate::sys::{self, Clock, Itimerspec, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

/// More wall-clock timers than this in one process at one time are armed unmoved.
const TIMERS: usize = 64;
const FREE: usize = usize::MAX;
static WALL_TIMERS: [AtomicUsize; TIMERS] = [const { AtomicUsize::new(FREE) }; TIMERS];

fn swap_timer(from: usize, to: usize) {
    for slot in &WALL_TIMERS {
        if slot
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
        {
            return;
        }
    }
}

fn is_wall_timer(timer: usize) -> bool {
    WALL_TIMERS
        .iter()
        .any(|slot| slot.load(Ordering::Acquire) == timer)
}

/// # Safety
/// `new` is null or points to a readable itimerspec.
unsafe fn armed(new: *const Itimerspec, wall: bool, flags: c_int) -> Option<Itimerspec> {
    // SAFETY: the caller's promise.
    let given = unsafe { new.as_ref() }?;
    // Zero disarms.
    let disarms = given.value == sys::Timespec::default();
    if !wall || disarms || flags & sys::TIMER_ABSTIME == 0 {
        return None;
    }
    Some(Itimerspec {
        interval: given.interval,
        value: moved(given.value)?,
    })
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn timer_create(
    clock: Clock,
    event: *mut c_void,
    timer: *mut usize,
) -> c_int {
    // SAFETY: the caller's own arguments; on success the real function has written the timer.
    unsafe {
        let result =
            real::timer_create(clock, event, timer).unwrap_or_else(|| sys::fail(sys::ENOSYS));
        if result == 0 && is_wall(clock) {
            swap_timer(FREE, *timer);
        }
        result
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn timer_delete(timer: usize) -> c_int {
    swap_timer(timer, FREE);
    // SAFETY: the caller's own argument.
    unsafe { real::timer_delete(timer) }.unwrap_or_else(|| sys::fail(sys::ENOSYS))
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn timer_settime(
    timer: usize,
    flags: c_int,
    new: *const Itimerspec,
    old: *mut Itimerspec,
) -> c_int {
    // SAFETY: the caller's own arguments, with a time that outlives the call.
    unsafe {
        let moved = armed(new, is_wall_timer(timer), flags);
        let new = moved.as_ref().map_or(new, core::ptr::from_ref);
        real::timer_settime(timer, flags, new, old).unwrap_or_else(|| sys::fail(sys::ENOSYS))
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn timerfd_settime(
    fd: c_int,
    flags: c_int,
    new: *const Itimerspec,
    old: *mut Itimerspec,
) -> c_int {
    // SAFETY: the caller's own arguments, with a time that outlives the call.
    unsafe {
        let absolute = flags & sys::TIMER_ABSTIME != 0;
        let moved = armed(new, absolute && is_wall(timerfd_clock(fd)), flags);
        let new = moved.as_ref().map_or(new, core::ptr::from_ref);
        real::timerfd_settime(fd, flags, new, old).unwrap_or_else(|| sys::fail(sys::ENOSYS))
    }
}

/// The clock of a timerfd, from the line `clockid: N` that the kernel shows for it. Without /proc it
/// counts as monotonic, which is what nearly all of them are.
fn timerfd_clock(fd: c_int) -> Clock {
    let errno = sys::errno();
    let mut text = [0_u8; 512];
    let length = read_info(fd, &mut text).unwrap_or(0);
    sys::set_errno(errno);
    clock_in(text.get(..length).unwrap_or_default()).unwrap_or(sys::CLOCK_MONOTONIC)
}

fn read_info(fd: c_int, text: &mut [u8]) -> Option<usize> {
    let path = info_path(u32::try_from(fd).ok()?);
    // SAFETY: the path is NUL-terminated; no mode is needed without O_CREAT.
    let info = unsafe { sys::open(path.as_ptr().cast(), sys::O_RDONLY | sys::O_CLOEXEC) };
    if info < 0 {
        return None;
    }
    // SAFETY: the buffer is writable for its whole length.
    let read = unsafe { sys::read(info, text.as_mut_ptr().cast(), text.len()) };
    // SAFETY: the descriptor is ours and used no more.
    unsafe { sys::close(info) };
    usize::try_from(read).ok()
}

fn info_path(fd: u32) -> [u8; 32] {
    let mut path = [0; 32];
    let mut digits = [0; 10];
    let mut rest = fd;
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    let text = b"/proc/self/fdinfo/"
        .iter()
        .chain(digits.iter().skip(first));
    for (slot, byte) in path.iter_mut().zip(text) {
        *slot = *byte;
    }
    path
}

fn clock_in(text: &[u8]) -> Option<Clock> {
    text.split(|&byte| byte == b'\n')
        .find_map(|line| line.strip_prefix(b"clockid: "))
        .and_then(|number| core::str::from_utf8(number).ok()?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::{clock_in, info_path};

    #[test]
    fn the_clock_is_read_from_the_kernels_text() {
        assert_eq!(
            clock_in(b"pos:\t0\nflags:\t02\nclockid: 1\nticks: 0\n"),
            Some(1)
        );
        assert_eq!(clock_in(b"clockid: 0\n"), Some(0));
        assert_eq!(clock_in(b"pos:\t0\n"), None);
    }

    #[test]
    fn the_path_names_the_descriptor() {
        assert!(info_path(0).starts_with(b"/proc/self/fdinfo/0\0"));
        assert!(info_path(4_294_967_295).starts_with(b"/proc/self/fdinfo/4294967295\0"));
    }
}
