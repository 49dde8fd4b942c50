//! Directory listings in byte order of their names, whatever the file system's hash order is; those of a cassette as they
//! are on record.
//!
//! The first `readdir` of a stream reads it whole, sorts it, and later calls answer from that copy
//! until `rewinddir` or `closedir`. Positions (`telldir`, `seekdir`, `d_off`) count entries. What
//! glibc reads inside itself (`scandir`, `ftw`, `glob`) is its own, and `readdir_r` is too. A recorded directory that does
//! not exist is listed as it is on record, of regular files; everything else says that it is not there.

use crate::counts::{self, DIFFERED, SEEN, Source};
use crate::lineage::FORK;
use crate::page::{self, Pins};
use crate::real;
use crate::recorded::{self, Directory, Place};
use crate::sys::{self, Dirent, c_char, c_int, c_long, c_void};
use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::mem::offset_of;
use core::sync::atomic::{AtomicUsize, Ordering};

/// One stream's entries. The bytes are copies of what the kernel gave, eight-byte aligned.
struct Listing {
    stream: usize,
    entries: Vec<Box<[u64]>>,
    next: usize,
    /// Reading stopped here with an error, which the reader gets after the entries before it.
    error: c_int,
    /// The directory does not exist.
    made_up: bool,
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
    let pins = page::pins(page::LISTING);
    if pins.is_none() && OPEN.load(Ordering::Acquire) == 0 {
        // SAFETY: the caller's own argument.
        return unsafe { read(stream) }.unwrap_or(core::ptr::null_mut());
    }
    with(|listings| {
        let known = listings
            .iter_mut()
            .position(|listing| listing.stream == stream.addr());
        let index = match known {
            Some(index) => index,
            None => {
                let Some(pins) = &pins else {
                    // SAFETY: the caller's promise.
                    return unsafe { read(stream) }.unwrap_or(core::ptr::null_mut());
                };
                // SAFETY: the caller's promise.
                listings.push(unsafe { listing(stream, read, pins) });
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
unsafe fn listing(stream: *mut c_void, read: Read, pins: &Pins) -> Listing {
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
    if pins.has(page::REVERSED) {
        entries.reverse();
    }
    // SAFETY: the caller's promise.
    if let Some(place) = Place::of_open(unsafe { sys::dirfd(stream) })
        && let Some(directory) = recorded::find(pins, place.bytes())
    {
        as_recorded(&mut entries, &directory);
    }
    number(&mut entries);
    sys::set_errno(errno);
    Listing {
        stream: stream.addr(),
        entries,
        next: 0,
        error,
        made_up: false,
    }
}

fn number(entries: &mut [Box<[u64]>]) {
    for (entry, position) in entries.iter_mut().zip(1_i64..) {
        // SAFETY: an entry's bytes are larger than the fixed fields and aligned as they are.
        unsafe { (*entry.as_mut_ptr().cast::<Dirent>()).off = position };
    }
}

/// The recorded names in their order, then what is not on record; and says whether both are the same names.
fn as_recorded(entries: &mut [Box<[u64]>], directory: &Directory<'_>) {
    let own = |name: &[u8]| matches!(name, b"." | b"..");
    let mut known = 0_usize;
    let mut others = 0_usize;
    entries.sort_by_cached_key(|entry| {
        let name = name(entry);
        match directory.place(name) {
            Some(place) => {
                known += 1;
                (1, place)
            }
            None if own(name) => (0, 0),
            None => {
                others += 1;
                (2, 0)
            }
        }
    });
    let same = others == 0 && known == directory.names().count();
    counts::mark(directory.number, if same { SEEN } else { SEEN | DIFFERED });
}

/// An entry of a directory that does not exist.
fn made_up(name: &[u8]) -> Box<[u64]> {
    let length = (offset_of!(Dirent, name) + name.len() + 1).next_multiple_of(8);
    let mut entry = vec![0_u64; length.max(size_of::<u64>() * 4) / 8].into_boxed_slice();
    let start: *mut u8 = entry.as_mut_ptr().cast();
    // SAFETY: the entry has room for the fixed fields, the name and its terminator, and is aligned as they are.
    unsafe {
        let fields: *mut Dirent = start.cast();
        (*fields).ino = 1;
        (*fields).reclen = u16::try_from(length).unwrap_or(u16::MAX);
        (*fields).kind = sys::REGULAR;
        let place = start.add(offset_of!(Dirent, name));
        core::ptr::copy_nonoverlapping(name.as_ptr(), place, name.len());
    }
    entry
}

/// A stream over what is on record for a directory that is not there.
///
/// # Safety
/// `path` is null or NUL-terminated.
unsafe fn recorded_alone(path: *const c_char) -> Option<*mut c_void> {
    let pins = page::pins(page::LISTING).filter(|pins| pins.has(page::RECORDED))?;
    if path.is_null() || !matches!(sys::errno(), sys::ENOENT | sys::ENOTDIR) {
        return None;
    }
    // SAFETY: the caller's promise.
    let place = Place::by_words(unsafe { CStr::from_ptr(path) }.to_bytes())?;
    let directory = recorded::find(&pins, place.bytes())?;
    // Any stream will do: nothing is read from it.
    // SAFETY: the path is NUL-terminated.
    let stream = unsafe { real::opendir(c"/".as_ptr()) }.filter(|stream| !stream.is_null())?;
    let mut entries: Vec<Box<[u64]>> = [b".".as_slice(), b".."]
        .into_iter()
        .chain(directory.names())
        .map(made_up)
        .collect();
    number(&mut entries);
    counts::mark(directory.number, SEEN);
    forget(stream);
    with(|listings| {
        listings.push(Listing {
            stream: stream.addr(),
            entries,
            next: 0,
            error: 0,
            made_up: true,
        });
    });
    Some(stream)
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
    counts::count(Source::Listings);
    if stream.is_null() {
        // SAFETY: the caller's own argument.
        return unsafe { recorded_alone(path) }.unwrap_or(stream);
    }
    // An address that glibc closed inside itself may come again.
    forget(stream);
    stream
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn fdopendir(fd: c_int) -> *mut c_void {
    // SAFETY: the caller's own argument.
    let stream = unsafe { real::fdopendir(fd) }.unwrap_or(core::ptr::null_mut());
    counts::count(Source::Listings);
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
    // One that is not there has nothing new to say.
    if on(stream, |listing| {
        if listing.made_up {
            listing.next = 0;
        }
        listing.made_up
    }) == Some(true)
    {
        return;
    }
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
