//! Waits: an absolute wall-clock deadline was computed from the pinned clock, and the kernel compares
//! it with the real one. Each hook here moves the deadline by (real now - pinned now) and lets the
//! real function wait, so that a wait of one second lasts one second.
//!
//! Deadlines on the monotonic clock, and relative ones, pass through untouched. Nothing is moved
//! while the clock is not pinned.

use crate::clock::{is_wall, real_now};
use crate::counts::{self, Source};
use crate::page;
use crate::real;
use crate::sys::{self, Clock, Timespec, c_char, c_int, c_uint, c_void};
use core::sync::atomic::{AtomicU32, Ordering};

const SECOND: i64 = 1_000_000_000;

/// A deadline as the kernel must see it; borrows the caller's when nothing moves.
pub(crate) struct Deadline {
    given: *const Timespec,
    moved: Option<Timespec>,
}

impl Deadline {
    /// # Safety
    /// `given` is null or points to a readable timespec.
    pub(crate) unsafe fn wall(given: *const Timespec) -> Self {
        // SAFETY: the caller's promise.
        let moved = unsafe { given.as_ref() }.and_then(|&until| moved(until));
        Self { given, moved }
    }

    /// # Safety
    /// As `wall`.
    pub(crate) unsafe fn on(clock: Clock, given: *const Timespec) -> Self {
        if is_wall(clock) {
            // SAFETY: the caller's promise.
            unsafe { Self::wall(given) }
        } else {
            Self { given, moved: None }
        }
    }

    pub(crate) fn as_ptr(&self) -> *const Timespec {
        self.moved.as_ref().map_or(self.given, core::ptr::from_ref)
    }
}

/// `None`: not pinned, or not a time at all, which the real function refuses better than we could.
pub(crate) fn moved(until: Timespec) -> Option<Timespec> {
    let pins = page::pins(page::CLOCK)?;
    shift(until, pins.now, real_now()?)
}

fn shift(until: Timespec, pinned: Timespec, real: Timespec) -> Option<Timespec> {
    if !(0..SECOND).contains(&until.nsec) || until.sec < 0 {
        return None;
    }
    let nanoseconds = until.nsec + real.nsec - pinned.nsec;
    let seconds = i128::from(until.sec) + i128::from(real.sec) - i128::from(pinned.sec)
        + i128::from(nanoseconds.div_euclid(SECOND));
    // A deadline before 1970 is one that has passed, and a very late one never comes: the kernel
    // would refuse either as not a time.
    let (sec, nsec) = match i64::try_from(seconds) {
        Ok(sec) if sec < 0 => (0, 0),
        Ok(sec) => (sec, nanoseconds.rem_euclid(SECOND)),
        Err(_) => (i64::MAX, 0),
    };
    Some(Timespec { sec, nsec })
}

/// Where a condition variable keeps the clock it was made for: the word and the bit, found by
/// comparing one of each kind, because the place differs between versions of glibc.
static CONDITION_WORD: AtomicU32 = AtomicU32::new(u32::MAX);
static CONDITION_BIT: AtomicU32 = AtomicU32::new(0);
const CONDITION_WORDS: usize = 12;

pub(crate) fn find_condition_clock() {
    let mut wall = [0_u32; CONDITION_WORDS];
    let mut monotonic = [0_u32; CONDITION_WORDS];
    // Larger and stricter than pthread_condattr_t everywhere.
    let mut attribute = [0_u64; 8];
    // SAFETY: the arrays have the 48 bytes of pthread_cond_t, the attribute is initialised before
    // it is used, and none of them needs to be destroyed in glibc.
    let made = unsafe {
        sys::pthread_condattr_init(attribute.as_mut_ptr()) == 0
            && sys::pthread_cond_init(wall.as_mut_ptr().cast(), attribute.as_ptr()) == 0
            && sys::pthread_condattr_setclock(attribute.as_mut_ptr(), sys::CLOCK_MONOTONIC) == 0
            && sys::pthread_cond_init(monotonic.as_mut_ptr().cast(), attribute.as_ptr()) == 0
    };
    let differing = (0_u32..)
        .zip(wall.iter().zip(&monotonic))
        .find(|(_, (a, b))| a != b);
    if let (true, Some((word, (a, b)))) = (made, differing) {
        CONDITION_BIT.store(a ^ b, Ordering::Relaxed);
        CONDITION_WORD.store(word, Ordering::Release);
    }
}

/// # Safety
/// `condition` points to an initialised `pthread_cond_t`.
unsafe fn condition_clock(condition: *const c_void) -> Clock {
    if CONDITION_WORD.load(Ordering::Acquire) == u32::MAX {
        find_condition_clock();
    }
    let word = CONDITION_WORD.load(Ordering::Acquire) as usize;
    if word >= CONDITION_WORDS || condition.is_null() {
        return sys::CLOCK_REALTIME;
    }
    // SAFETY: the word lies within the variable. The clock is set when it is made; the rest of that
    // word changes while others wait, hence the atomic read.
    let flags = unsafe { &*condition.cast::<AtomicU32>().add(word) }.load(Ordering::Relaxed);
    if flags & CONDITION_BIT.load(Ordering::Relaxed) == 0 {
        sys::CLOCK_REALTIME
    } else {
        sys::CLOCK_MONOTONIC
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn pthread_cond_timedwait(
    condition: *mut c_void,
    mutex: *mut c_void,
    until: *const Timespec,
) -> c_int {
    // SAFETY: the caller's own arguments.
    unsafe {
        let clock = condition_clock(condition);
        if clock == sys::CLOCK_MONOTONIC {
            // So Python's threads take turns: the clock was read for it, and tells the program nothing.
            counts::uncount(Source::Monotonic);
        }
        let deadline = Deadline::on(clock, until);
        real::pthread_cond_timedwait(condition, mutex, deadline.as_ptr()).unwrap_or(sys::ENOSYS)
    }
}

/// A hook whose deadline is its last argument: on the wall clock, or on the clock named `clock`.
/// `$missing` is what the function answers when the C library does not have it.
macro_rules! waits {
    (@deadline $until:ident) => { Deadline::wall($until) };
    (@deadline $until:ident $clock:ident) => { Deadline::on($clock, $until) };
    ($($name:ident($($before:ident: $type:ty),*; $($clock:ident)?) -> $result:ty, $missing:expr;)*) => {$(
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub(crate) unsafe extern "C" fn $name(
            $($before: $type,)* $($clock: Clock,)? until: *const Timespec,
        ) -> $result {
            // SAFETY: the caller's own arguments, with a deadline that outlives the call.
            unsafe {
                // Condition variables are how Python's own lock is waited for.
                if !stringify!($name).starts_with("pthread_cond") {
                    counts::count(Source::Sleeps);
                }
                if stringify!($name) == "sem_clockwait" {
                    counts::uncount(Source::Monotonic);
                }
                let deadline = waits!(@deadline until $($clock)?);
                real::$name($($before,)* $($clock,)? deadline.as_ptr()).unwrap_or_else(|| $missing)
            }
        }
    )*};
}

waits! {
    sem_timedwait(semaphore: *mut c_void;) -> c_int, sys::fail(sys::ENOSYS);
    sem_clockwait(semaphore: *mut c_void; clock) -> c_int, sys::fail(sys::ENOSYS);
    pthread_cond_clockwait(condition: *mut c_void, mutex: *mut c_void; clock) -> c_int, sys::ENOSYS;
    pthread_mutex_timedlock(mutex: *mut c_void;) -> c_int, sys::ENOSYS;
    pthread_mutex_clocklock(mutex: *mut c_void; clock) -> c_int, sys::ENOSYS;
    pthread_rwlock_timedrdlock(lock: *mut c_void;) -> c_int, sys::ENOSYS;
    pthread_rwlock_timedwrlock(lock: *mut c_void;) -> c_int, sys::ENOSYS;
    pthread_rwlock_clockrdlock(lock: *mut c_void; clock) -> c_int, sys::ENOSYS;
    pthread_rwlock_clockwrlock(lock: *mut c_void; clock) -> c_int, sys::ENOSYS;
    pthread_timedjoin_np(thread: usize, result: *mut *mut c_void;) -> c_int, sys::ENOSYS;
    pthread_clockjoin_np(thread: usize, result: *mut *mut c_void; clock) -> c_int, sys::ENOSYS;
    cnd_timedwait(condition: *mut c_void, mutex: *mut c_void;) -> c_int, sys::THRD_ERROR;
    mtx_timedlock(mutex: *mut c_void;) -> c_int, sys::THRD_ERROR;
    mq_timedreceive(queue: c_int, message: *mut c_char, length: usize, priority: *mut c_uint;) -> isize,
        sys::fail(sys::ENOSYS) as isize;
    mq_timedsend(queue: c_int, message: *const c_char, length: usize, priority: c_uint;) -> c_int,
        sys::fail(sys::ENOSYS);
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn clock_nanosleep(
    clock: Clock,
    flags: c_int,
    request: *const Timespec,
    left: *mut Timespec,
) -> c_int {
    counts::count(Source::Sleeps);
    // SAFETY: the caller's own arguments, with a deadline that outlives the call.
    unsafe {
        let absolute = flags & sys::TIMER_ABSTIME != 0;
        let deadline = Deadline::on(
            if absolute {
                clock
            } else {
                sys::CLOCK_MONOTONIC
            },
            request,
        );
        real::clock_nanosleep(clock, flags, deadline.as_ptr(), left).unwrap_or(sys::ENOSYS)
    }
}

#[cfg(test)]
mod tests {
    use super::{SECOND, Timespec, shift};

    fn at(sec: i64, nsec: i64) -> Timespec {
        Timespec { sec, nsec }
    }

    #[test]
    fn a_deadline_keeps_its_distance_from_now() {
        for (until, pinned, real, expected) in [
            (at(101, 0), at(100, 0), at(500, 0), at(501, 0)),
            (
                at(100, 900_000_000),
                at(100, 0),
                at(500, 200_000_000),
                at(501, 100_000_000),
            ),
            (
                at(101, 0),
                at(100, 900_000_000),
                at(500, 0),
                at(500, 100_000_000),
            ),
            (
                at(100, 0),
                at(100, 500_000_000),
                at(500, 0),
                at(499, 500_000_000),
            ),
            // A pin that is ahead of the real clock.
            (at(9_001, 0), at(9_000, 0), at(500, 0), at(501, 0)),
            // Long past by the pinned clock: past, never negative.
            (at(0, 0), at(9_000, 0), at(500, 0), at(0, 0)),
            // "For ever" stays so.
            (at(i64::MAX, 0), at(100, 0), at(500, 0), at(i64::MAX, 0)),
        ] {
            assert_eq!(
                shift(until, pinned, real),
                Some(expected),
                "{until:?} {pinned:?} {real:?}"
            );
        }
    }

    #[test]
    fn what_is_no_time_is_left_to_the_real_function() {
        for until in [at(1, SECOND), at(1, -1), at(-1, 0)] {
            assert_eq!(shift(until, at(100, 0), at(500, 0)), None);
        }
    }

    #[test]
    fn this_c_library_tells_the_clock_of_a_condition_variable() {
        super::find_condition_clock();
        assert_eq!(
            super::CONDITION_BIT
                .load(super::Ordering::Relaxed)
                .count_ones(),
            1
        );
        assert!(
            (super::CONDITION_WORD.load(super::Ordering::Relaxed) as usize)
                < super::CONDITION_WORDS
        );
    }
}
