//! Sockets, counted: connects, datagrams and name look-ups of the internet families, and sockets of those that listen.
//! Local ones are the machine's own, and nothing is changed in any.

use crate::counts::{self, Source};
use crate::real;
use crate::sys::{self, c_char, c_int, c_uint, c_void};

/// # Safety
/// `address` is null or readable for `length` bytes.
unsafe fn outside(address: *const c_void, length: usize) -> bool {
    // SAFETY: the caller's promise; a socket address begins with its family.
    length >= 2 && !address.is_null() && internet(unsafe { address.cast::<u16>().read_unaligned() })
}

fn internet(family: u16) -> bool {
    matches!(family, sys::AF_INET | sys::AF_INET6)
}

/// The head of `struct msghdr`.
#[repr(C)]
struct Message {
    name: *const c_void,
    length: c_uint,
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn connect(
    fd: c_int,
    address: *const c_void,
    length: c_uint,
) -> c_int {
    // SAFETY: the caller's own arguments.
    unsafe {
        if outside(address, length as usize) {
            counts::count(Source::Sockets);
        }
        real::connect(fd, address, length)
    }
    .unwrap_or_else(|| sys::fail(sys::ENOSYS))
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn listen(fd: c_int, backlog: c_int) -> c_int {
    let mut family: c_int = 0;
    let mut length = 4;
    let errno = sys::errno();
    // SAFETY: four writable bytes, as the length says.
    let known = unsafe {
        sys::getsockopt(
            fd,
            sys::SOL_SOCKET,
            sys::SO_DOMAIN,
            (&raw mut family).cast(),
            &raw mut length,
        )
    } == 0;
    sys::set_errno(errno);
    if known && u16::try_from(family).is_ok_and(internet) {
        counts::count(Source::Servers);
    }
    // SAFETY: the caller's own arguments.
    unsafe { real::listen(fd, backlog) }.unwrap_or_else(|| sys::fail(sys::ENOSYS))
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn sendto(
    fd: c_int,
    data: *const c_void,
    length: usize,
    flags: c_int,
    address: *const c_void,
    size: c_uint,
) -> isize {
    // SAFETY: the caller's own arguments.
    unsafe {
        if outside(address, size as usize) {
            counts::count(Source::Sockets);
        }
        real::sendto(fd, data, length, flags, address, size)
    }
    .unwrap_or_else(|| sys::fail(sys::ENOSYS) as isize)
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn sendmsg(fd: c_int, message: *const c_void, flags: c_int) -> isize {
    // SAFETY: the caller's own arguments; a message begins with the address and its length.
    unsafe {
        if let Some(head) = message.cast::<Message>().as_ref()
            && outside(head.name, head.length as usize)
        {
            counts::count(Source::Sockets);
        }
        real::sendmsg(fd, message, flags)
    }
    .unwrap_or_else(|| sys::fail(sys::ENOSYS) as isize)
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn getaddrinfo(
    node: *const c_char,
    service: *const c_char,
    hints: *const c_void,
    out: *mut c_void,
) -> c_int {
    /// `EAI_SYSTEM`.
    const SYSTEM: c_int = -11;
    if !node.is_null() {
        counts::count(Source::Sockets);
    }
    // SAFETY: the caller's own arguments.
    unsafe { real::getaddrinfo(node, service, hints, out) }.unwrap_or_else(|| {
        sys::set_errno(sys::ENOSYS);
        SYSTEM
    })
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn gethostbyname_r(
    name: *const c_char,
    out: *mut c_void,
    buffer: *mut c_char,
    size: usize,
    result: *mut c_void,
    error: *mut c_int,
) -> c_int {
    counts::count(Source::Sockets);
    // SAFETY: the caller's own arguments.
    unsafe { real::gethostbyname_r(name, out, buffer, size, result, error) }.unwrap_or(sys::ENOSYS)
}
