//! The functions that the hooks stand in front of: looked up once with `RTLD_NEXT`.
//!
//! `start` resolves all of them before `main`; a hook that some other library's initialiser calls
//! earlier resolves its own. A lookup that succeeds does not allocate in glibc, and one that fails
//! leaves the hook to answer `ENOSYS`.

use crate::sys::{self, c_char, c_int, c_long, c_uint, c_void};
use core::ffi::CStr;
use core::sync::atomic::{AtomicPtr, Ordering};

const RTLD_NEXT: *mut c_void = -1_isize as *mut c_void;

pub(crate) struct Symbol {
    name: &'static CStr,
    /// A symbol with an older, incompatible definition beside the current one names the version.
    version: Option<&'static CStr>,
    address: AtomicPtr<c_void>,
}

impl Symbol {
    const fn new(name: &'static CStr) -> Self {
        Self {
            name,
            version: None,
            address: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    const fn versioned(name: &'static CStr, version: &'static CStr) -> Self {
        Self {
            name,
            version: Some(version),
            address: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    pub(crate) fn address(&self) -> *mut c_void {
        let known = self.address.load(Ordering::Acquire);
        if !known.is_null() {
            return known;
        }
        let errno = sys::errno();
        let mut found = core::ptr::null_mut();
        if let Some(version) = self.version {
            // SAFETY: both strings are static and NUL-terminated, RTLD_NEXT is a valid handle.
            found = unsafe { sys::dlvsym(RTLD_NEXT, self.name.as_ptr(), version.as_ptr()) };
        }
        if found.is_null() {
            // SAFETY: as above.
            found = unsafe { sys::dlsym(RTLD_NEXT, self.name.as_ptr()) };
        }
        self.address.store(found, Ordering::Release);
        sys::set_errno(errno);
        found
    }
}

/// Declares each real function once: a static symbol and a caller of that type, which gives `None`
/// when the C library does not have it.
macro_rules! real {
    ($($(#[version($version:literal)])? $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        #[allow(non_upper_case_globals, reason = "named like the function")]
        mod symbols {
            use super::{CStr, Symbol};
            $(pub(super) static $name: Symbol = real!(@symbol $name $($version)?);)*
        }
        pub(crate) fn resolve_all() {
            $(symbols::$name.address();)*
        }
        $(
            #[allow(clippy::too_many_arguments, reason = "C's signature")]
            pub(crate) unsafe fn $name($($argument: $type),*) -> Option<$result> {
                let address = symbols::$name.address();
                if address.is_null() {
                    return None;
                }
                // SAFETY: the address is that of the C function of this name, whose signature is
                // the one declared; the caller vouches for the arguments.
                Some(unsafe {
                    core::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> $result>(address)(
                        $($argument),*
                    )
                })
            }
        )*
    };
    (@symbol $name:ident) => { Symbol::new(real!(@text $name)) };
    (@symbol $name:ident $version:literal) => {
        Symbol::versioned(real!(@text $name), $version)
    };
    (@text $name:ident) => {
        match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
            Ok(text) => text,
            Err(_) => c"",
        }
    };
}

use crate::sys::{Clock, Dirent, Itimerspec, Timeb, Timespec, Timeval};
type Text = *const c_char;
type Texts = *const *const c_char;

real! {
    clock_gettime(clock: Clock, out: *mut Timespec) -> c_int;
    gettimeofday(out: *mut Timeval, zone: *mut c_void) -> c_int;
    time(out: *mut i64) -> i64;
    timespec_get(out: *mut Timespec, base: c_int) -> c_int;
    ftime(out: *mut Timeb) -> c_int;

    clock_nanosleep(clock: Clock, flags: c_int, request: *const Timespec, left: *mut Timespec) -> c_int;
    sem_wait(semaphore: *mut c_void) -> c_int;
    sem_trywait(semaphore: *mut c_void) -> c_int;
    sem_timedwait(semaphore: *mut c_void, until: *const Timespec) -> c_int;
    sem_clockwait(semaphore: *mut c_void, clock: Clock, until: *const Timespec) -> c_int;
    #[version(c"GLIBC_2.3.2")]
    pthread_cond_timedwait(condition: *mut c_void, mutex: *mut c_void, until: *const Timespec) -> c_int;
    pthread_cond_clockwait(condition: *mut c_void, mutex: *mut c_void, clock: Clock, until: *const Timespec) -> c_int;
    pthread_mutex_timedlock(mutex: *mut c_void, until: *const Timespec) -> c_int;
    pthread_mutex_clocklock(mutex: *mut c_void, clock: Clock, until: *const Timespec) -> c_int;
    pthread_rwlock_timedrdlock(lock: *mut c_void, until: *const Timespec) -> c_int;
    pthread_rwlock_timedwrlock(lock: *mut c_void, until: *const Timespec) -> c_int;
    pthread_rwlock_clockrdlock(lock: *mut c_void, clock: Clock, until: *const Timespec) -> c_int;
    pthread_rwlock_clockwrlock(lock: *mut c_void, clock: Clock, until: *const Timespec) -> c_int;
    pthread_timedjoin_np(thread: usize, result: *mut *mut c_void, until: *const Timespec) -> c_int;
    pthread_clockjoin_np(thread: usize, result: *mut *mut c_void, clock: Clock, until: *const Timespec) -> c_int;
    cnd_timedwait(condition: *mut c_void, mutex: *mut c_void, until: *const Timespec) -> c_int;
    mtx_timedlock(mutex: *mut c_void, until: *const Timespec) -> c_int;
    mq_timedreceive(queue: c_int, message: *mut c_char, length: usize, priority: *mut c_uint, until: *const Timespec) -> isize;
    mq_timedsend(queue: c_int, message: *const c_char, length: usize, priority: c_uint, until: *const Timespec) -> c_int;

    timerfd_settime(fd: c_int, flags: c_int, new: *const Itimerspec, old: *mut Itimerspec) -> c_int;
    #[version(c"GLIBC_2.34")]
    timer_create(clock: Clock, event: *mut c_void, timer: *mut usize) -> c_int;
    #[version(c"GLIBC_2.34")]
    timer_settime(timer: usize, flags: c_int, new: *const Itimerspec, old: *mut Itimerspec) -> c_int;
    #[version(c"GLIBC_2.34")]
    timer_delete(timer: usize) -> c_int;

    getrandom(buffer: *mut c_void, length: usize, flags: c_uint) -> isize;
    getentropy(buffer: *mut c_void, length: usize) -> c_int;
    arc4random() -> u32;
    arc4random_buf(buffer: *mut c_void, length: usize) -> ();
    arc4random_uniform(bound: u32) -> u32;

    execve(path: Text, argv: Texts, envp: Texts) -> c_int;
    execvpe(file: Text, argv: Texts, envp: Texts) -> c_int;
    fexecve(fd: c_int, argv: Texts, envp: Texts) -> c_int;
    execveat(fd: c_int, path: Text, argv: Texts, envp: Texts, flags: c_int) -> c_int;
    #[version(c"GLIBC_2.15")]
    posix_spawn(pid: *mut c_int, path: Text, actions: *const c_void, attributes: *const c_void, argv: Texts, envp: Texts) -> c_int;
    #[version(c"GLIBC_2.15")]
    posix_spawnp(pid: *mut c_int, file: Text, actions: *const c_void, attributes: *const c_void, argv: Texts, envp: Texts) -> c_int;

    #[version(c"GLIBC_2.3.4")]
    sched_getaffinity(pid: c_int, size: usize, set: *mut u8) -> c_int;
    pthread_getaffinity_np(thread: usize, size: usize, set: *mut u8) -> c_int;
    sysconf(name: c_int) -> c_long;
    get_nprocs() -> c_int;
    get_nprocs_conf() -> c_int;

    opendir(path: Text) -> *mut c_void;
    fdopendir(fd: c_int) -> *mut c_void;
    readdir(directory: *mut c_void) -> *mut Dirent;
    readdir64(directory: *mut c_void) -> *mut Dirent;
    closedir(directory: *mut c_void) -> c_int;
    rewinddir(directory: *mut c_void) -> ();
    telldir(directory: *mut c_void) -> c_long;
    seekdir(directory: *mut c_void, position: c_long) -> ();

    open(path: Text, flags: c_int, mode: c_uint) -> c_int;
    open64(path: Text, flags: c_int, mode: c_uint) -> c_int;
    openat(directory: c_int, path: Text, flags: c_int, mode: c_uint) -> c_int;
    openat64(directory: c_int, path: Text, flags: c_int, mode: c_uint) -> c_int;
    __open_2(path: Text, flags: c_int) -> c_int;
    __open64_2(path: Text, flags: c_int) -> c_int;
    __openat_2(directory: c_int, path: Text, flags: c_int) -> c_int;
    __openat64_2(directory: c_int, path: Text, flags: c_int) -> c_int;
    fopen(path: Text, mode: Text) -> *mut c_void;
    fopen64(path: Text, mode: Text) -> *mut c_void;

    connect(fd: c_int, address: *const c_void, length: c_uint) -> c_int;
    listen(fd: c_int, backlog: c_int) -> c_int;
    sendto(fd: c_int, data: *const c_void, length: usize, flags: c_int, address: *const c_void, size: c_uint) -> isize;
    sendmsg(fd: c_int, message: *const c_void, flags: c_int) -> isize;
    getaddrinfo(node: Text, service: Text, hints: *const c_void, out: *mut c_void) -> c_int;
    gethostbyname_r(name: Text, out: *mut c_void, buffer: *mut c_char, size: usize, result: *mut c_void, error: *mut c_int) -> c_int;

    nanosleep(request: *const Timespec, left: *mut Timespec) -> c_int;
    usleep(microseconds: c_uint) -> c_int;
    sleep(seconds: c_uint) -> c_uint;
    poll(fds: *mut c_void, count: usize, timeout: c_int) -> c_int;
    ppoll(fds: *mut c_void, count: usize, timeout: *const Timespec, mask: *const c_void) -> c_int;
    select(most: c_int, read: *mut c_void, write: *mut c_void, other: *mut c_void, timeout: *mut Timeval) -> c_int;
    pselect(most: c_int, read: *mut c_void, write: *mut c_void, other: *mut c_void, timeout: *const Timespec, mask: *const c_void) -> c_int;
    epoll_wait(fd: c_int, events: *mut c_void, most: c_int, timeout: c_int) -> c_int;
    epoll_pwait(fd: c_int, events: *mut c_void, most: c_int, timeout: c_int, mask: *const c_void) -> c_int;

    pthread_create(thread: *mut usize, attribute: *const c_void, start: *mut c_void, argument: *mut c_void) -> c_int;

    syscall(number: c_long, a: c_long, b: c_long, c: c_long, d: c_long, e: c_long, f: c_long) -> c_long;
}
