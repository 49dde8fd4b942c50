//! Exec and spawn: hands the child its name (`lineage`) in one more environment variable.
//!
//! These run between `vfork` and `exec` too, on the stack of a parent that waits: no allocation, no
//! lock, and nothing is written but the parent's count of children, which is meant to be. An
//! environment too large for the stack's arrays goes through as it is.

use crate::lineage;
use crate::real;
use crate::sys::{self, c_char, c_int, c_void};

type Text = *const c_char;
type Texts = *const *const c_char;

unsafe extern "C" {
    static environ: Texts;
}

const SMALL: usize = 128;
const LARGE: usize = 2048;

/// # Safety
/// `envp` is null or a null-terminated array.
unsafe fn length(envp: Texts) -> usize {
    let mut length = 0;
    // SAFETY: the caller's promise.
    while !envp.is_null() && !unsafe { *envp.add(length) }.is_null() {
        length += 1;
    }
    length
}

/// Calls with the environment and the child's name in it.
///
/// # Safety
/// `envp` is null or a null-terminated array of NUL-terminated strings.
unsafe fn with_name(envp: Texts, call: impl FnOnce(Texts) -> Option<c_int>) -> Option<c_int> {
    let Some(handover) = lineage::hand_over() else {
        return call(envp);
    };
    // SAFETY: the caller's promise.
    unsafe {
        match length(envp) {
            0..SMALL => with_array::<{ SMALL + 1 }>(envp, &handover, call),
            SMALL..LARGE => with_array::<{ LARGE + 1 }>(envp, &handover, call),
            _ => call(envp),
        }
    }
}

/// Its own frame, so that a small environment does not need the large array's stack.
///
/// # Safety
/// As `with_name`, and the array has room for the environment, the name and the terminator.
#[inline(never)]
unsafe fn with_array<const SLOTS: usize>(
    envp: Texts,
    handover: &lineage::Handover,
    call: impl FnOnce(Texts) -> Option<c_int>,
) -> Option<c_int> {
    let mut array = [core::ptr::null::<c_char>(); SLOTS];
    if let Some(first) = array.first_mut() {
        *first = handover.as_ptr().cast();
    }
    let mut from = envp;
    for slot in array.iter_mut().skip(1) {
        // SAFETY: the loop ends at the array's terminator.
        if from.is_null() || unsafe { *from }.is_null() {
            break;
        }
        // SAFETY: as above.
        (*slot, from) = unsafe { (*from, from.add(1)) };
    }
    call(array.as_ptr())
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn execve(path: Text, argv: Texts, envp: Texts) -> c_int {
    // SAFETY: the caller's own arguments.
    unsafe { with_name(envp, |envp| real::execve(path, argv, envp)) }
        .unwrap_or_else(|| sys::fail(sys::ENOSYS))
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn execv(path: Text, argv: Texts) -> c_int {
    // SAFETY: the caller's own arguments and the process's environment.
    unsafe { execve(path, argv, environ) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn execvpe(file: Text, argv: Texts, envp: Texts) -> c_int {
    // SAFETY: the caller's own arguments.
    unsafe { with_name(envp, |envp| real::execvpe(file, argv, envp)) }
        .unwrap_or_else(|| sys::fail(sys::ENOSYS))
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn execvp(file: Text, argv: Texts) -> c_int {
    // SAFETY: the caller's own arguments and the process's environment.
    unsafe { execvpe(file, argv, environ) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn fexecve(fd: c_int, argv: Texts, envp: Texts) -> c_int {
    // SAFETY: the caller's own arguments.
    unsafe { with_name(envp, |envp| real::fexecve(fd, argv, envp)) }
        .unwrap_or_else(|| sys::fail(sys::ENOSYS))
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn execveat(
    fd: c_int,
    path: Text,
    argv: Texts,
    envp: Texts,
    flags: c_int,
) -> c_int {
    // SAFETY: the caller's own arguments.
    unsafe { with_name(envp, |envp| real::execveat(fd, path, argv, envp, flags)) }
        .unwrap_or_else(|| sys::fail(sys::ENOSYS))
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn posix_spawn(
    pid: *mut c_int,
    path: Text,
    actions: *const c_void,
    attributes: *const c_void,
    argv: Texts,
    envp: Texts,
) -> c_int {
    // SAFETY: the caller's own arguments.
    unsafe {
        with_name(envp, |envp| {
            real::posix_spawn(pid, path, actions, attributes, argv, envp)
        })
    }
    .unwrap_or(sys::ENOSYS)
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn posix_spawnp(
    pid: *mut c_int,
    file: Text,
    actions: *const c_void,
    attributes: *const c_void,
    argv: Texts,
    envp: Texts,
) -> c_int {
    // SAFETY: the caller's own arguments.
    unsafe {
        with_name(envp, |envp| {
            real::posix_spawnp(pid, file, actions, attributes, argv, envp)
        })
    }
    .unwrap_or(sys::ENOSYS)
}

#[cfg(test)]
mod tests {
    use super::{SMALL, Texts, length, with_array};
    use core::ffi::CStr;

    #[test]
    fn the_name_comes_first_and_nothing_is_lost() {
        let handover = [0; 82];
        for envp in [
            vec![core::ptr::null()],
            vec![c"A=1".as_ptr(), c"B=2".as_ptr(), core::ptr::null()],
        ] {
            let call = |array: Texts| {
                // SAFETY: what is under test is that this is a null-terminated array of C strings.
                unsafe {
                    assert_eq!(length(array), envp.len());
                    for (index, text) in envp[..envp.len() - 1].iter().enumerate() {
                        assert_eq!(CStr::from_ptr(*array.add(index + 1)), CStr::from_ptr(*text));
                    }
                }
                Some(0)
            };
            // SAFETY: a null-terminated array that fits.
            let called = unsafe { with_array::<{ SMALL + 1 }>(envp.as_ptr(), &handover, call) };
            assert_eq!(called, Some(0));
        }
    }

    #[test]
    fn a_missing_environment_is_an_empty_one() {
        // SAFETY: null is allowed.
        assert_eq!(unsafe { length(core::ptr::null()) }, 0);
    }
}
