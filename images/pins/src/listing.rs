//! Directory listings in byte order of their names, whatever the file system's hash order is.
//!
//! The first `readdir` of a stream reads it whole, sorts it, and later calls answer from that copy
//! until `rewinddir` or `closedir`. Positions (`telldir`, `seekdir`, `d_off`) count entries. What
//! glibc reads inside itself (`scandir`, `ftw`, `glob`) is its own, and `readdir_r` is too.

use crate::lineage::FORK;
use crate::page;
use crate::real;
use crate::sys::{self, Dirent, c_char, c_int, c_long, c_void};
use core::cell::UnsafeCell;
use core::mem::offset_of;
use core::sync::atomic::{AtomicUsize, Ordering};

/// One stream's entries. The bytes are copies of what the kernel gave, eight-byte aligned.
struct Listing {
    stream: usize,
    entries: Vec<Box<[u64]>>,
    next: usize,
    /// Reading stopped here with an error, which the reader gets after the entries before it.
    error: c_int,
}

struct Listings(UnsafeCell<Vec<Listing>>);
// SAFETY: only `with` touches the vector, and it holds the lock meanwhile.
unsafe impl Sync for Listings {}

static LISTINGS: Listings = Listings(UnsafeCell::new(Vec::new()));
/// How many listings are open, so that a process that sorts nothing takes no lock.
static OPEN: AtomicUsize = AtomicUsize::new(0);

fn with<R>(act: impl FnOnce(&mut Vec<Listing>) -> R) -> R {
    FORK.acquire();
    // SAFETY: the lock is held, and `act` cannot come back here: it calls no hook of this file.
    let listings = unsafe { &mut *LISTINGS.0.get() };
    let result = act(listings);
    OPEN.store(listings.len(), Ordering::Release);
    FORK.release();
    result
}

fn forget(stream: *mut c_void) {
    if OPEN.load(Ordering::Acquire) > 0 {
        with(|listings| listings.retain(|listing| listing.stream != stream.addr()));
    }
}

type Read = unsafe fn(*mut c_void) -> Option<*mut Dirent>;

/// # Safety
/// `stream` is an open directory stream and `read` a real `readdir`.
unsafe fn next(stream: *mut c_void, read: Read) -> *mut Dirent {
    let pinned = page::pins(page::LISTING).is_some();
    if !pinned && OPEN.load(Ordering::Acquire) == 0 {
        // SAFETY: the caller's own argument.
        return unsafe { read(stream) }.unwrap_or(core::ptr::null_mut());
    }
    with(|listings| {
        let known = listings
            .iter_mut()
            .position(|listing| listing.stream == stream.addr());
        let index = match known {
            Some(index) => index,
            // SAFETY: the caller's promise.
            None if !pinned => return unsafe { read(stream) }.unwrap_or(core::ptr::null_mut()),
            None => {
                // SAFETY: the caller's promise.
                listings.push(unsafe { listing(stream, read) });
                listings.len() - 1
            }
        };
        listings
            .get_mut(index)
            .map_or(core::ptr::null_mut(), advance)
    })
}

fn advance(listing: &mut Listing) -> *mut Dirent {
    match listing.entries.get_mut(listing.next) {
        Some(entry) => {
            listing.next += 1;
            entry.as_mut_ptr().cast()
        }
        None => {
            if listing.error != 0 {
                sys::set_errno(listing.error);
            }
            core::ptr::null_mut()
        }
    }
}

/// # Safety
/// As `next`.
unsafe fn listing(stream: *mut c_void, read: Read) -> Listing {
    let errno = sys::errno();
    let mut entries = Vec::new();
    let error = loop {
        sys::set_errno(0);
        // SAFETY: the caller's promise.
        let entry = unsafe { read(stream) }.unwrap_or(core::ptr::null_mut());
        if entry.is_null() {
            break sys::errno();
        }
        // SAFETY: the entry is whole until the next read of the stream.
        entries.push(unsafe { copied(entry) });
    };
    entries.sort_by(|a, b| name(a).cmp(name(b)));
    for (entry, position) in entries.iter_mut().zip(1_i64..) {
        // SAFETY: an entry's bytes are larger than the fixed fields and aligned as they are.
        unsafe { (*entry.as_mut_ptr().cast::<Dirent>()).off = position };
    }
    sys::set_errno(errno);
    Listing {
        stream: stream.addr(),
        entries,
        next: 0,
        error,
    }
}

/// # Safety
/// `entry` points to a whole entry.
unsafe fn copied(entry: *const Dirent) -> Box<[u64]> {
    // SAFETY: the caller's promise; the record's length says how much of it there is.
    unsafe {
        let length = usize::from((*entry).reclen).max(offset_of!(Dirent, name) + 1);
        let mut copy = vec![0_u64; length.div_ceil(8)].into_boxed_slice();
        core::ptr::copy_nonoverlapping(entry.cast::<u8>(), copy.as_mut_ptr().cast::<u8>(), length);
        copy
    }
}

fn name(entry: &[u64]) -> &[u8] {
    // SAFETY: the same memory, as bytes.
    let bytes =
        unsafe { core::slice::from_raw_parts(entry.as_ptr().cast::<u8>(), size_of_val(entry)) };
    let name = bytes.get(offset_of!(Dirent, name)..).unwrap_or_default();
    name.split(|&byte| byte == 0).next().unwrap_or_default()
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn readdir(stream: *mut c_void) -> *mut Dirent {
    // SAFETY: the caller's own argument. On 64-bit Linux both entries are laid out alike.
    unsafe { next(stream, |stream| real::readdir(stream)) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn readdir64(stream: *mut c_void) -> *mut Dirent {
    // SAFETY: the caller's own argument.
    unsafe { next(stream, |stream| real::readdir64(stream)) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn opendir(path: *const c_char) -> *mut c_void {
    // SAFETY: the caller's own argument.
    let stream = unsafe { real::opendir(path) }.unwrap_or(core::ptr::null_mut());
    // An address that glibc closed inside itself may come again.
    forget(stream);
    stream
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn fdopendir(fd: c_int) -> *mut c_void {
    // SAFETY: the caller's own argument.
    let stream = unsafe { real::fdopendir(fd) }.unwrap_or(core::ptr::null_mut());
    forget(stream);
    stream
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn closedir(stream: *mut c_void) -> c_int {
    forget(stream);
    // SAFETY: the caller's own argument.
    unsafe { real::closedir(stream) }.unwrap_or_else(|| sys::fail(sys::ENOSYS))
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn rewinddir(stream: *mut c_void) {
    forget(stream);
    // SAFETY: the caller's own argument.
    unsafe { real::rewinddir(stream) };
}

/// Acts on the listing of a stream, if it is a sorted one.
fn on<R>(stream: *mut c_void, act: impl FnOnce(&mut Listing) -> R) -> Option<R> {
    if OPEN.load(Ordering::Acquire) == 0 {
        return None;
    }
    with(|listings| {
        listings
            .iter_mut()
            .find(|listing| listing.stream == stream.addr())
            .map(act)
    })
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn telldir(stream: *mut c_void) -> c_long {
    on(stream, |listing| listing.next.cast_signed() as c_long)
        // SAFETY: the caller's own argument.
        .or_else(|| unsafe { real::telldir(stream) })
        .unwrap_or_else(|| c_long::from(sys::fail(sys::ENOSYS)))
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn seekdir(stream: *mut c_void, position: c_long) {
    let sought = on(stream, |listing| {
        listing.next = usize::try_from(position).unwrap_or(0)
    });
    if sought.is_none() {
        // SAFETY: the caller's own arguments.
        unsafe { real::seekdir(stream, position) };
    }
}
