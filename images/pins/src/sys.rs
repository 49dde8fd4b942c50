//! The C types, constants and functions this library names, declared by hand for 64-bit Linux with
//! glibc. Nothing here is a hook.

pub(crate) use core::ffi::{c_char, c_int, c_long, c_uint, c_void};

pub(crate) type Clock = c_int;

pub(crate) const CLOCK_REALTIME: Clock = 0;
pub(crate) const CLOCK_MONOTONIC: Clock = 1;
pub(crate) const CLOCK_REALTIME_COARSE: Clock = 5;
pub(crate) const CLOCK_REALTIME_ALARM: Clock = 8;
pub(crate) const CLOCK_TAI: Clock = 11;

pub(crate) const TIME_UTC: c_int = 1;
/// `TIMER_ABSTIME` and `TFD_TIMER_ABSTIME` alike.
pub(crate) const TIMER_ABSTIME: c_int = 1;

pub(crate) const ENOENT: c_int = 2;
pub(crate) const ENOTDIR: c_int = 20;
pub(crate) const EFAULT: c_int = 14;
pub(crate) const EINVAL: c_int = 22;
pub(crate) const ENOSYS: c_int = 38;
pub(crate) const EIO: c_int = 5;
/// `thrd_error` of C11 threads.
pub(crate) const THRD_ERROR: c_int = 2;

pub(crate) const O_RDONLY: c_int = 0;
pub(crate) const O_RDWR: c_int = 2;
pub(crate) const O_CLOEXEC: c_int = 0o2_000_000;
pub(crate) const SEEK_END: c_int = 2;
pub(crate) const PROT_READ: c_int = 1;
pub(crate) const PROT_WRITE: c_int = 2;
pub(crate) const MAP_SHARED: c_int = 1;

pub(crate) const AF_INET: u16 = 2;
pub(crate) const AF_INET6: u16 = 10;
pub(crate) const SO_DOMAIN: c_int = 39;
pub(crate) const SOL_SOCKET: c_int = 1;
/// `DT_REG`.
pub(crate) const REGULAR: u8 = 8;

pub(crate) const SC_NPROCESSORS_CONF: c_int = 83;
pub(crate) const SC_NPROCESSORS_ONLN: c_int = 84;

#[cfg(target_arch = "x86_64")]
pub(crate) mod number {
    use super::c_long;
    pub(crate) const FUTEX: c_long = 202;
    pub(crate) const GETTIMEOFDAY: c_long = 96;
    pub(crate) const TIME: c_long = 201;
    pub(crate) const CLOCK_GETTIME: c_long = 228;
    pub(crate) const CLOCK_NANOSLEEP: c_long = 230;
    pub(crate) const GETRANDOM: c_long = 318;
}

#[cfg(target_arch = "aarch64")]
pub(crate) mod number {
    use super::c_long;
    pub(crate) const FUTEX: c_long = 98;
    pub(crate) const GETTIMEOFDAY: c_long = 169;
    /// This architecture has no such call.
    pub(crate) const TIME: c_long = -1;
    pub(crate) const CLOCK_GETTIME: c_long = 113;
    pub(crate) const CLOCK_NANOSLEEP: c_long = 115;
    pub(crate) const GETRANDOM: c_long = 278;
}

#[cfg(not(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
compile_error!("the pin library knows x86-64 and AArch64 Linux with glibc only");

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Timespec {
    pub(crate) sec: i64,
    pub(crate) nsec: i64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Timeval {
    pub(crate) sec: i64,
    pub(crate) usec: i64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Itimerspec {
    pub(crate) interval: Timespec,
    pub(crate) value: Timespec,
}

/// `struct timeb` of the long deprecated `ftime`.
#[repr(C)]
pub(crate) struct Timeb {
    pub(crate) time: i64,
    pub(crate) millitm: u16,
    pub(crate) timezone: i16,
    pub(crate) dstflag: i16,
}

/// The fixed part of `struct dirent`; the name runs on to `reclen`.
#[repr(C)]
pub(crate) struct Dirent {
    pub(crate) ino: u64,
    pub(crate) off: i64,
    pub(crate) reclen: u16,
    pub(crate) kind: u8,
    pub(crate) name: [c_char; 256],
}

unsafe extern "C" {
    pub(crate) fn __errno_location() -> *mut c_int;
    pub(crate) fn dlsym(handle: *mut c_void, symbol: *const c_char) -> *mut c_void;
    pub(crate) fn dlvsym(
        handle: *mut c_void,
        symbol: *const c_char,
        version: *const c_char,
    ) -> *mut c_void;
    pub(crate) fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    pub(crate) fn close(fd: c_int) -> c_int;
    pub(crate) fn lseek(fd: c_int, offset: i64, whence: c_int) -> i64;
    pub(crate) fn read(fd: c_int, buffer: *mut c_void, length: usize) -> isize;
    pub(crate) fn mmap(
        address: *mut c_void,
        length: usize,
        protection: c_int,
        flags: c_int,
        fd: c_int,
        offset: i64,
    ) -> *mut c_void;
    pub(crate) fn dirfd(directory: *mut c_void) -> c_int;
    pub(crate) fn readlink(path: *const c_char, buffer: *mut c_char, size: usize) -> isize;
    pub(crate) fn getcwd(buffer: *mut c_char, size: usize) -> *mut c_char;
    pub(crate) fn getsockopt(
        fd: c_int,
        level: c_int,
        name: c_int,
        value: *mut c_void,
        length: *mut c_uint,
    ) -> c_int;
    pub(crate) fn munmap(address: *mut c_void, length: usize) -> c_int;
    pub(crate) fn getpid() -> c_int;
    pub(crate) fn geteuid() -> c_uint;
    pub(crate) fn sched_yield() -> c_int;
    pub(crate) fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> c_int;
    pub(crate) fn pthread_condattr_init(attribute: *mut u64) -> c_int;
    pub(crate) fn pthread_condattr_setclock(attribute: *mut u64, clock: Clock) -> c_int;
    pub(crate) fn pthread_cond_init(condition: *mut c_void, attribute: *const u64) -> c_int;
}

pub(crate) fn errno() -> c_int {
    // SAFETY: glibc gives every thread a valid errno slot for its whole life.
    unsafe { *__errno_location() }
}

pub(crate) fn set_errno(value: c_int) {
    // SAFETY: as in `errno`.
    unsafe { *__errno_location() = value }
}

/// Sets errno and gives the -1 that goes with it.
pub(crate) fn fail(code: c_int) -> c_int {
    set_errno(code);
    -1
}

/// What may be done to a mapping.
#[derive(Clone, Copy)]
pub(crate) enum Access {
    Read,
    Write,
}

/// A file that is mapped whole, or no more than this of it, for the life of the process: where, and how much. `None` where
/// it is not there or shorter than `least`, because what is missing of it would be answered with SIGBUS.
///
/// # Safety
///
/// `path` is NUL-terminated.
pub(crate) unsafe fn mapped(
    path: *const c_char,
    access: Access,
    least: usize,
    most: usize,
) -> Option<(*mut c_void, usize)> {
    let (open, protection) = match access {
        Access::Read => (O_RDONLY, PROT_READ),
        Access::Write => (O_RDWR, PROT_READ | PROT_WRITE),
    };
    // SAFETY: the caller's path; no mode is needed without O_CREAT.
    let fd = unsafe { self::open(path, open | O_CLOEXEC) };
    if fd < 0 {
        return None;
    }
    // SAFETY: the descriptor is open.
    let length = usize::try_from(unsafe { lseek(fd, 0, SEEK_END) }).unwrap_or(0);
    let length = length.min(most);
    let address = if length < least.max(1) {
        core::ptr::without_provenance_mut(usize::MAX)
    } else {
        // SAFETY: a fresh shared mapping of the open file, at an address the kernel chooses.
        unsafe { mmap(core::ptr::null_mut(), length, protection, MAP_SHARED, fd, 0) }
    };
    // SAFETY: the descriptor is ours and used no more; a mapping outlives it.
    unsafe { close(fd) };
    (address.addr() != usize::MAX).then_some((address, length))
}
