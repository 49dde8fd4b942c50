//! The CPU count: the page's, so that pool sizes and chunkings do not depend on the machine.
//!
//! Only the count is pinned. `sched_setaffinity` is real, and so are /proc and /sys.

use crate::page;
use crate::real;
use crate::sys::{self, c_int, c_long};

fn pinned() -> Option<u32> {
    page::any().map(|pins| pins.cpus).filter(|&cpus| cpus > 0)
}

/// Fills a CPU set with the first `cpus` CPUs; false when it is too small for them.
///
/// # Safety
/// `set` is writable for `size` bytes.
unsafe fn fill(set: *mut u8, size: usize, cpus: u32) -> bool {
    if set.is_null() || (cpus as usize).div_ceil(8) > size {
        return false;
    }
    // SAFETY: the caller's promise.
    let set = unsafe { core::slice::from_raw_parts_mut(set, size) };
    for (byte, first) in set.iter_mut().zip((0_u32..).step_by(8)) {
        let shown = cpus.saturating_sub(first).min(8);
        *byte = u8::try_from((1_u32 << shown) - 1).unwrap_or(u8::MAX);
    }
    true
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn sched_getaffinity(pid: c_int, size: usize, set: *mut u8) -> c_int {
    // SAFETY: the caller's own arguments. The real call comes first: it knows whether the process
    // exists and whether the set can be written.
    unsafe {
        let result =
            real::sched_getaffinity(pid, size, set).unwrap_or_else(|| sys::fail(sys::ENOSYS));
        match pinned() {
            Some(cpus) if result == 0 && !fill(set, size, cpus) => sys::fail(sys::EINVAL),
            _ => result,
        }
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn pthread_getaffinity_np(
    thread: usize,
    size: usize,
    set: *mut u8,
) -> c_int {
    // SAFETY: as in `sched_getaffinity`; this one returns its error.
    unsafe {
        let result = real::pthread_getaffinity_np(thread, size, set).unwrap_or(sys::ENOSYS);
        match pinned() {
            Some(cpus) if result == 0 && !fill(set, size, cpus) => sys::EINVAL,
            _ => result,
        }
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn sysconf(name: c_int) -> c_long {
    if matches!(name, sys::SC_NPROCESSORS_CONF | sys::SC_NPROCESSORS_ONLN)
        && let Some(cpus) = pinned()
    {
        return c_long::from(cpus);
    }
    // SAFETY: the caller's own argument.
    unsafe { real::sysconf(name) }.unwrap_or_else(|| c_long::from(sys::fail(sys::ENOSYS)))
}

fn count() -> Option<c_int> {
    pinned().and_then(|cpus| c_int::try_from(cpus).ok())
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn get_nprocs() -> c_int {
    // SAFETY: no arguments.
    count()
        .or_else(|| unsafe { real::get_nprocs() })
        .unwrap_or(1)
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn get_nprocs_conf() -> c_int {
    // SAFETY: no arguments.
    count()
        .or_else(|| unsafe { real::get_nprocs_conf() })
        .unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::fill;

    #[test]
    fn the_first_cpus_are_shown_and_no_other() {
        for (cpus, expected) in [
            (1, [1, 0, 0]),
            (3, [7, 0, 0]),
            (8, [255, 0, 0]),
            (9, [255, 1, 0]),
            (24, [255; 3]),
        ] {
            let mut set = [0xAA_u8; 3];
            // SAFETY: the set is three writable bytes.
            assert!(unsafe { fill(set.as_mut_ptr(), 3, cpus) });
            assert_eq!(set, expected, "{cpus}");
        }
    }

    #[test]
    fn a_set_that_is_too_small_is_refused() {
        let mut set = [0_u8; 3];
        // SAFETY: the set is three writable bytes.
        assert!(!unsafe { fill(set.as_mut_ptr(), 3, 25) });
        assert_eq!(set, [0; 3]);
    }
}
