//! `syscall(2)`, the C function: programs that call the kernel by number through it get the same
//! answers. Those that use the instruction itself (Go, musl, static binaries) do not.

use crate::clock::{self, is_wall};
use crate::deadline::Deadline;
use crate::entropy;
use crate::real;
use crate::sys::{self, Clock, c_int, c_long, c_uint, c_void, number};

const FUTEX_CLOCK_REALTIME: c_long = 256;
const FUTEX_PRIVATE: c_long = 128;
const FUTEX_LOCK_PI: c_long = 6;
const FUTEX_WAIT_BITSET: c_long = 9;
const FUTEX_WAIT_REQUEUE_PI: c_long = 11;
const FUTEX_LOCK_PI2: c_long = 13;

/// Whether a futex operation waits until an absolute moment of the wall clock.
fn waits_on_wall(operation: c_long) -> bool {
    let wall = operation & FUTEX_CLOCK_REALTIME != 0;
    match operation & !(FUTEX_CLOCK_REALTIME | FUTEX_PRIVATE) {
        FUTEX_LOCK_PI => true,
        FUTEX_WAIT_BITSET | FUTEX_WAIT_REQUEUE_PI | FUTEX_LOCK_PI2 => wall,
        _ => false,
    }
}

fn pointer<T>(argument: c_long) -> *mut T {
    core::ptr::with_exposed_provenance_mut(argument.cast_unsigned() as usize)
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "the kernel takes the low half of these too"
)]
fn int(argument: c_long) -> c_int {
    argument as c_int
}

/// In C this is variadic; both calling conventions this library knows pass integers alike either
/// way, and an argument that was not given is passed on without being looked at.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn syscall(
    call: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    // SAFETY: the caller's own arguments, understood as the kernel would for that number.
    unsafe {
        match call {
            number::CLOCK_GETTIME => c_long::from(clock::clock_gettime(int(a), pointer(b))),
            number::GETTIMEOFDAY => {
                c_long::from(clock::gettimeofday(pointer(a), pointer::<c_void>(b)))
            }
            number::TIME => clock::time(pointer(a)),
            number::GETRANDOM => {
                let length = b.cast_unsigned() as usize;
                entropy::getrandom(pointer(a), length, int(c) as c_uint) as c_long
            }
            number::CLOCK_NANOSLEEP => {
                let absolute = b & c_long::from(sys::TIMER_ABSTIME) != 0;
                let clock: Clock = int(a);
                let moved = absolute && is_wall(clock);
                let clock = if moved { clock } else { sys::CLOCK_MONOTONIC };
                let deadline = Deadline::on(clock, pointer(c));
                pass(
                    call,
                    a,
                    b,
                    deadline.as_ptr().expose_provenance() as c_long,
                    d,
                    e,
                    f,
                )
            }
            number::FUTEX if waits_on_wall(b) => {
                let deadline = Deadline::wall(pointer(d));
                pass(
                    call,
                    a,
                    b,
                    c,
                    deadline.as_ptr().expose_provenance() as c_long,
                    e,
                    f,
                )
            }
            _ => pass(call, a, b, c, d, e, f),
        }
    }
}

/// # Safety
/// As `syscall(2)`.
unsafe fn pass(
    call: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    // SAFETY: the caller's promise.
    unsafe { real::syscall(call, a, b, c, d, e, f) }
        .unwrap_or_else(|| c_long::from(sys::fail(sys::ENOSYS)))
}

#[cfg(test)]
mod tests {
    use super::waits_on_wall;

    #[test]
    fn only_absolute_waits_on_the_wall_clock_are_moved() {
        for (operation, wall) in [
            (0, false),
            // A plain wait is relative, with or without the flag.
            (256, false),
            (9, false),
            (9 | 128, false),
            (9 | 256, true),
            (9 | 128 | 256, true),
            (11 | 256, true),
            (6, true),
            (6 | 128, true),
            (13, false),
            (13 | 256, true),
        ] {
            assert_eq!(waits_on_wall(operation), wall, "{operation}");
        }
    }
}
