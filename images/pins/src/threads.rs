//! Threads that are started, counted.

use crate::counts::{self, Source};
use crate::real;
use crate::sys::{self, c_int, c_void};

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn pthread_create(
    thread: *mut usize,
    attribute: *const c_void,
    start: *mut c_void,
    argument: *mut c_void,
) -> c_int {
    counts::count(Source::Threads);
    // SAFETY: the caller's own arguments.
    unsafe { real::pthread_create(thread, attribute, start, argument) }.unwrap_or(sys::ENOSYS)
}
