//! Opens of `/dev/urandom` and `/dev/random`, counted: what is read from them is real, and no pin reaches it.
//!
//! In C these are variadic; both calling conventions this library knows pass integers alike either way, and a mode that
//! was not given is passed on without being looked at.

use crate::counts::{self, Source};
use crate::real;
use crate::sys::{self, c_char, c_int, c_uint, c_void};
use core::ffi::CStr;

/// # Safety
/// `path` is null or NUL-terminated.
unsafe fn seen(path: *const c_char) {
    // Most paths are told apart by their second character, without a look at the rest.
    // SAFETY: the caller's promise; the second byte is read only where the first is not the terminator.
    unsafe {
        if path.is_null() || *path != b'/'.cast_signed() || *path.add(1) != b'd'.cast_signed() {
            return;
        }
        if matches!(
            CStr::from_ptr(path).to_bytes(),
            b"/dev/urandom" | b"/dev/random"
        ) {
            counts::count(Source::Urandom);
        }
    }
}

macro_rules! opens {
    ($($name:ident($($before:ident: $before_type:ty)?; $($after:ident: $type:ty),*) -> $result:ty, $missing:expr;)*) => {$(
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[allow(non_snake_case, reason = "C's name")]
        pub(crate) unsafe extern "C" fn $name($($before: $before_type,)? path: *const c_char, $($after: $type),*) -> $result {
            // SAFETY: the caller's own arguments.
            unsafe {
                seen(path);
                real::$name($($before,)? path, $($after),*).unwrap_or_else(|| $missing)
            }
        }
    )*};
}

opens! {
    open(; flags: c_int, mode: c_uint) -> c_int, sys::fail(sys::ENOSYS);
    open64(; flags: c_int, mode: c_uint) -> c_int, sys::fail(sys::ENOSYS);
    openat(directory: c_int; flags: c_int, mode: c_uint) -> c_int, sys::fail(sys::ENOSYS);
    openat64(directory: c_int; flags: c_int, mode: c_uint) -> c_int, sys::fail(sys::ENOSYS);
    __open_2(; flags: c_int) -> c_int, sys::fail(sys::ENOSYS);
    __open64_2(; flags: c_int) -> c_int, sys::fail(sys::ENOSYS);
    __openat_2(directory: c_int; flags: c_int) -> c_int, sys::fail(sys::ENOSYS);
    __openat64_2(directory: c_int; flags: c_int) -> c_int, sys::fail(sys::ENOSYS);
    fopen(; mode: *const c_char) -> *mut c_void, { sys::set_errno(sys::ENOSYS); core::ptr::null_mut() };
    fopen64(; mode: *const c_char) -> *mut c_void, { sys::set_errno(sys::ENOSYS); core::ptr::null_mut() };
}
