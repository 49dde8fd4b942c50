//! Sockets, counted: connects, datagrams and name look-ups of the internet families, and sockets of those that listen.
//! Local ones are the machine's own, and nothing is changed in any. Where an address leads out of the machine is told.

use crate::counts::{self, Source};
use crate::real;
use crate::sys::{self, c_char, c_int, c_uint, c_void};

/// # Safety
/// `address` is null or readable for `length` bytes.
unsafe fn outside(address: *const c_void, length: usize) -> bool {
    // SAFETY: the caller's promise; a socket address begins with its family.
    length >= 2 && !address.is_null() && internet(unsafe { address.cast::<u16>().read_unaligned() })
}

/// Counts a connect or a datagram to an address of the internet families.
///
/// # Safety
/// As for [`outside`].
unsafe fn ask(address: *const c_void, length: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if outside(address, length) {
            counts::count(Source::Sockets);
            let bytes = core::slice::from_raw_parts(address.cast(), length);
            if let Some((address, port)) = place(bytes)
                && !of_this_machine(address)
            {
                counts::seek(address, port);
            }
        }
    }
}

/// Address and port of a socket address of the internet families; IPv4 as IPv6 has it.
fn place(bytes: &[u8]) -> Option<([u8; 16], u16)> {
    let (family, rest) = bytes.split_first_chunk()?;
    let (port, rest) = rest.split_first_chunk()?;
    let mut address = [0; 16];
    match u16::from_ne_bytes(*family) {
        sys::AF_INET => {
            let four: &[u8; 4] = rest.first_chunk()?;
            address.get_mut(10..12)?.fill(0xff);
            address.get_mut(12..)?.copy_from_slice(four);
        }
        sys::AF_INET6 => address.copy_from_slice(rest.get(4..20)?),
        _ => return None,
    }
    Some((address, u16::from_be_bytes(*port)))
}

/// Loopback, or no address at all, which means the same.
fn of_this_machine(address: [u8; 16]) -> bool {
    matches!(
        address,
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, ..]
            | [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0]
            | [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 | 1]
    )
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
        ask(address, length as usize);
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
        ask(address, size as usize);
        real::sendto(fd, data, length, flags, address, size)
    }
    .unwrap_or_else(|| sys::fail(sys::ENOSYS) as isize)
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn sendmsg(fd: c_int, message: *const c_void, flags: c_int) -> isize {
    // SAFETY: the caller's own arguments; a message begins with the address and its length.
    unsafe {
        if let Some(head) = message.cast::<Message>().as_ref() {
            ask(head.name, head.length as usize);
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

#[cfg(test)]
mod tests {
    use super::{of_this_machine, place};
    use std::net::{IpAddr, Ipv6Addr};

    fn v4(port: u16, address: [u8; 4]) -> Vec<u8> {
        let family = crate::sys::AF_INET.to_ne_bytes();
        [&family[..], &port.to_be_bytes(), &address, &[0; 8]].concat()
    }

    fn v6(port: u16, address: &str) -> Vec<u8> {
        let family = crate::sys::AF_INET6.to_ne_bytes();
        let address = address.parse().unwrap_or(Ipv6Addr::UNSPECIFIED).octets();
        [&family[..], &port.to_be_bytes(), &[9; 4], &address, &[0; 4]].concat()
    }

    #[test]
    fn an_address_is_read_as_it_stands() {
        let told = |bytes: &[u8]| {
            place(bytes).map(|(address, port)| {
                let address = IpAddr::V6(address.into()).to_canonical();
                format!("{address} {port}")
            })
        };
        let (four, six) = (v4(443, [192, 0, 2, 7]), v6(8080, "2001:db8::7"));
        assert_eq!(told(&four).as_deref(), Some("192.0.2.7 443"));
        assert_eq!(told(&six).as_deref(), Some("2001:db8::7 8080"));
        for short in (0..8).filter_map(|end| four.get(..end)) {
            assert_eq!(told(short), None);
        }
        for short in (0..24).filter_map(|end| six.get(..end)) {
            assert_eq!(told(short), None);
        }
        assert_eq!(told(&[1, 0, 0, 0, 0, 0, 0, 0]), None);
    }

    #[test]
    fn what_is_this_machine() {
        let here = |bytes: &[u8]| place(bytes).map(|(address, _)| of_this_machine(address));
        for address in [[127, 0, 0, 1], [127, 9, 9, 9], [0, 0, 0, 0]] {
            assert_eq!(here(&v4(1, address)), Some(true), "{address:?}");
        }
        for address in [
            [0, 0, 0, 1],
            [10, 0, 0, 1],
            [126, 0, 0, 1],
            [255, 255, 255, 255],
        ] {
            assert_eq!(here(&v4(1, address)), Some(false), "{address:?}");
        }
        for (address, local) in [
            ("::1", true),
            ("::", true),
            ("::ffff:127.0.0.1", true),
            ("::2", false),
            ("fe80::1", false),
            ("::ffff:10.0.0.1", false),
        ] {
            assert_eq!(here(&v6(1, address)), Some(local), "{address}");
        }
    }
}
