//! What the processes of an attempt ask for, counted on one page for each user.
//!
//! A diagnosis and nothing else: every process of the attempt can write its page. It never counts for root, whose
//! processes are the harness's own, and never maps a page twice; without a page nothing is counted.

use crate::sys;
#[cfg(pins_test_page)]
use crate::sys::c_char;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, Ordering};

const SIZE: usize = 4096;
const CELLS: usize = 256;
/// Directories of a table of recorded listings: a byte each, after the cells.
pub(crate) const DIRECTORIES: usize = 1024;
const DIRECTORY: &[u8; 21] = b"/run/tribunal/counts/";

/// The cells, in the order of the page.
#[derive(Clone, Copy)]
#[repr(usize)]
pub(crate) enum Source {
    WallClock,
    Monotonic,
    Entropy,
    Urandom,
    Listings,
    Sockets,
    Servers,
    Sleeps,
    Threads,
}

/// What is said of a recorded directory.
pub(crate) const SEEN: u8 = 1;
pub(crate) const DIFFERED: u8 = 2;

/// A place is being written, then whole.
const WRITING: u32 = 1;
const WHOLE: u32 = 2;

#[repr(C)]
struct Page {
    cells: [AtomicU32; CELLS],
    directories: [AtomicU8; DIRECTORIES],
    /// The first place outside of this machine that was sought since PID 1 cleared it: whether it is whole, its port, and
    /// its address as one of IPv6, in bytes.
    sought: AtomicU32,
    port: AtomicU32,
    address: [AtomicU8; 16],
}

static MAPPED: AtomicPtr<Page> = AtomicPtr::new(core::ptr::null_mut());
/// There is none for this user.
static NONE: AtomicBool = AtomicBool::new(false);

pub(crate) fn count(source: Source) {
    if let Some(cell) = page().and_then(|page| page.cells.get(source as usize)) {
        cell.fetch_add(1, Ordering::Relaxed);
    }
}

/// Takes a count back: CPython asks the monotonic clock before it takes any of its locks, whether it will wait or not.
pub(crate) fn uncount(source: Source) {
    if let Some(cell) = page().and_then(|page| page.cells.get(source as usize)) {
        cell.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Says of a directory of the table that is on what became of it.
pub(crate) fn mark(directory: usize, bits: u8) {
    if let Some(byte) = page().and_then(|page| page.directories.get(directory)) {
        byte.fetch_or(bits, Ordering::Relaxed);
    }
}

/// Says where an address led that is not of this machine: the first alone, so that no two are mixed.
pub(crate) fn seek(address: [u8; 16], port: u16) {
    let Some(page) = page() else { return };
    let begun = page
        .sought
        .compare_exchange(0, WRITING, Ordering::Relaxed, Ordering::Relaxed);
    if begun.is_err() {
        return;
    }
    page.port.store(u32::from(port).to_le(), Ordering::Relaxed);
    for (slot, byte) in page.address.iter().zip(address) {
        slot.store(byte, Ordering::Relaxed);
    }
    page.sought.store(WHOLE.to_le(), Ordering::Release);
}

fn page() -> Option<&'static Page> {
    let known = MAPPED.load(Ordering::Acquire);
    if !known.is_null() {
        // SAFETY: only this function stores here, and what it maps is never unmapped.
        return Some(unsafe { &*known });
    }
    if NONE.load(Ordering::Relaxed) {
        return None;
    }
    // A process that is still root has yet to become somebody.
    // SAFETY: geteuid has no preconditions.
    let user = unsafe { sys::geteuid() };
    if user == 0 && !cfg!(pins_test_page) {
        return None;
    }
    let errno = sys::errno();
    let page = map(user);
    sys::set_errno(errno);
    match page {
        Some(page) => {
            MAPPED.store(page, Ordering::Release);
            // SAFETY: `map` gives a mapping of a whole page that is never unmapped.
            Some(unsafe { &*page })
        }
        None => {
            NONE.store(true, Ordering::Relaxed);
            None
        }
    }
}

fn map(user: u32) -> Option<*mut Page> {
    let path = path(user)?;
    // SAFETY: the path is NUL-terminated.
    let found = unsafe { sys::mapped(path.as_ptr().cast(), sys::Access::Write, SIZE, SIZE) };
    found.map(|(address, _)| address.cast())
}

type Path = [u8; 256];

#[cfg(not(pins_test_page))]
fn path(user: u32) -> Option<Path> {
    let mut path = [0; 256];
    let mut digits = [0_u8; 10];
    let mut left = user;
    let mut begin = digits.len();
    loop {
        begin -= 1;
        *digits.get_mut(begin)? = b'0' + u8::try_from(left % 10).ok()?;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    let number = digits.get(begin..)?;
    for (slot, byte) in path.iter_mut().zip(DIRECTORY.iter().chain(number)) {
        *slot = *byte;
    }
    Some(path)
}

/// Test builds only: as the pin page's.
#[cfg(pins_test_page)]
fn path(_user: u32) -> Option<Path> {
    named(c"TRIBUNAL_TEST_COUNTS".as_ptr())
}

/// What an environment variable says, where it fits.
#[cfg(pins_test_page)]
pub(crate) fn named(variable: *const c_char) -> Option<Path> {
    unsafe extern "C" {
        fn getenv(name: *const c_char) -> *const c_char;
    }
    // SAFETY: the name is NUL-terminated; tests do not change the environment concurrently.
    let value = unsafe { getenv(variable) };
    if value.is_null() {
        return None;
    }
    let mut path = [0; 256];
    // SAFETY: a value of the environment is NUL-terminated.
    let text = unsafe { core::ffi::CStr::from_ptr(value) }.to_bytes();
    for (slot, byte) in path.iter_mut().zip(text) {
        *slot = *byte;
    }
    (text.len() < path.len()).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::{CELLS, Page, SIZE, Source, path};
    use core::mem::offset_of;

    #[test]
    fn the_layout_is_that_of_the_protocol() {
        assert_eq!(offset_of!(Page, cells), 0);
        assert_eq!(offset_of!(Page, directories), 1024);
        assert_eq!(offset_of!(Page, sought), 2048);
        assert_eq!(offset_of!(Page, address), 2056);
        assert!(size_of::<Page>() <= SIZE);
        assert!((Source::Threads as usize) < CELLS);
        assert_eq!(Source::Servers as usize, 6);
    }

    #[test]
    fn a_page_is_named_by_its_user() {
        for (user, name) in [
            (7, "/run/tribunal/counts/7"),
            (70_001, "/run/tribunal/counts/70001"),
            (u32::MAX, "/run/tribunal/counts/4294967295"),
        ] {
            let path = path(user).unwrap_or([0; 256]);
            let text = path.split(|&byte| byte == 0).next();
            assert_eq!(text, Some(name.as_bytes()));
        }
    }
}
