//! The pin page: what PID 1 wants the processes of an attempt to see, as one consistent copy.
//!
//! Mapped read-only at the first call that finds it and kept for the life of the process (PID 1
//! rewrites it in place, it never replaces the file). A page that is missing, too short or without
//! its magic pins nothing, and is looked for again at the next call.

use crate::sys::{self, c_char};
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

#[cfg(not(pins_test_page))]
const PATH: *const c_char = c"/run/tribunal/pins".as_ptr();
const SIZE: usize = 4096;
const MAGIC: u64 = u64::from_le_bytes(*b"TRBPINS1");
/// PID 1 writes a few dozen bytes; a reader that has yielded this often sees a writer that died.
const RETRIES: u32 = 10_000;

pub(crate) const CLOCK: u32 = 1;
pub(crate) const ENTROPY: u32 = 2;
pub(crate) const LISTING: u32 = 4;
pub(crate) const RECORDED: u32 = 8;
pub(crate) const REVERSED: u32 = 16;

/// The page's layout, byte for byte (PROTOCOL.md, "The pin page").
#[repr(C)]
struct Page {
    magic: AtomicU64,
    sequence: AtomicU32,
    flags: AtomicU32,
    seconds: AtomicU64,
    nanoseconds: AtomicU32,
    cpus: AtomicU32,
    key: [AtomicU64; 4],
    table_at: AtomicU32,
    table_length: AtomicU32,
}

/// One consistent reading.
#[derive(Clone, Copy)]
pub(crate) struct Pins {
    flags: u32,
    pub(crate) now: sys::Timespec,
    pub(crate) cpus: u32,
    pub(crate) key: [u8; 32],
    /// Where the recorded listings are that are on: their place in the file, and their length.
    pub(crate) table: (u32, u32),
}

impl Pins {
    pub(crate) fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }
}

static MAPPED: AtomicPtr<Page> = AtomicPtr::new(core::ptr::null_mut());

const UNKNOWN: u8 = 0;
const EXEMPT: u8 = 1;
const ORDINARY: u8 = 2;
/// Whether this process is PID 1; a fork makes it unknown again.
static STANDING: AtomicU8 = AtomicU8::new(UNKNOWN);

/// The pins when `flag` is on for this process, `None` when the real function is to answer.
pub(crate) fn pins(flag: u32) -> Option<Pins> {
    any().filter(|pins| pins.has(flag))
}

/// The pins when anything at all is pinned for this process.
pub(crate) fn any() -> Option<Pins> {
    if exempt() {
        return None;
    }
    Some(read(mapped()?)).filter(|pins| pins.flags != 0)
}

/// The child of PID 1 is not PID 1.
pub(crate) fn forked() {
    STANDING.store(UNKNOWN, Ordering::Relaxed);
}

fn exempt() -> bool {
    let mut standing = STANDING.load(Ordering::Relaxed);
    if standing == UNKNOWN {
        // SAFETY: getpid has no preconditions.
        standing = if unsafe { sys::getpid() } == 1 {
            EXEMPT
        } else {
            ORDINARY
        };
        STANDING.store(standing, Ordering::Relaxed);
    }
    standing == EXEMPT
}

fn read(page: &Page) -> Pins {
    let mut pins = copy(page);
    for _ in 0..RETRIES {
        let before = page.sequence.load(Ordering::Acquire);
        pins = copy(page);
        fence(Ordering::Acquire);
        if before.is_multiple_of(2) && page.sequence.load(Ordering::Relaxed) == before {
            break;
        }
        // SAFETY: sched_yield has no preconditions.
        unsafe { sys::sched_yield() };
    }
    pins
}

fn copy(page: &Page) -> Pins {
    let mut key = [0; 32];
    for (bytes, word) in key.chunks_exact_mut(8).zip(&page.key) {
        bytes.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
    }
    Pins {
        flags: u32::from_le(page.flags.load(Ordering::Relaxed)),
        now: sys::Timespec {
            sec: u64::from_le(page.seconds.load(Ordering::Relaxed)).cast_signed(),
            nsec: i64::from(u32::from_le(page.nanoseconds.load(Ordering::Relaxed))),
        },
        cpus: u32::from_le(page.cpus.load(Ordering::Relaxed)),
        key,
        table: (
            u32::from_le(page.table_at.load(Ordering::Relaxed)),
            u32::from_le(page.table_length.load(Ordering::Relaxed)),
        ),
    }
}

fn mapped() -> Option<&'static Page> {
    let known = MAPPED.load(Ordering::Acquire);
    if !known.is_null() {
        // SAFETY: only `map` stores here, and what it maps is never unmapped.
        return Some(unsafe { &*known });
    }
    let errno = sys::errno();
    let page = map();
    sys::set_errno(errno);
    // Two threads may both map it: one mapping of a page is lost, once.
    MAPPED.store(page?.cast_mut(), Ordering::Release);
    // SAFETY: `map` gives a mapping of a whole page that is never unmapped.
    page.map(|page| unsafe { &*page })
}

fn map() -> Option<*const Page> {
    // SAFETY: the path is NUL-terminated.
    let (address, length) = unsafe { sys::mapped(path()?, sys::Access::Read, SIZE, SIZE) }?;
    let page = address.cast::<Page>().cast_const();
    // SAFETY: the mapping is page-aligned and larger than `Page`, whose fields may hold any bits.
    let magic = unsafe { &(*page).magic }.load(Ordering::Relaxed);
    if u64::from_le(magic) == MAGIC {
        return Some(page);
    }
    // Not written yet.
    // SAFETY: the mapping was made above, and nothing refers to it any more.
    unsafe { sys::munmap(address, length) };
    None
}

#[cfg(not(pins_test_page))]
fn path() -> Option<*const c_char> {
    Some(PATH)
}

/// Test builds only: in the shipped library nothing that an attempt controls may choose the page.
#[cfg(pins_test_page)]
fn path() -> Option<*const c_char> {
    unsafe extern "C" {
        fn getenv(name: *const c_char) -> *const c_char;
    }
    // SAFETY: the name is NUL-terminated; tests do not change the environment concurrently.
    let path = unsafe { getenv(c"TRIBUNAL_TEST_PAGE".as_ptr()) };
    (!path.is_null()).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::{Page, copy};
    use core::mem::offset_of;
    use core::sync::atomic::{AtomicU32, AtomicU64};

    #[test]
    fn the_layout_is_that_of_the_protocol() {
        assert_eq!(offset_of!(Page, magic), 0);
        assert_eq!(offset_of!(Page, sequence), 8);
        assert_eq!(offset_of!(Page, flags), 12);
        assert_eq!(offset_of!(Page, seconds), 16);
        assert_eq!(offset_of!(Page, nanoseconds), 24);
        assert_eq!(offset_of!(Page, cpus), 28);
        assert_eq!(offset_of!(Page, key), 32);
        assert_eq!(offset_of!(Page, table_at), 64);
        assert_eq!(offset_of!(Page, table_length), 68);
    }

    #[test]
    fn fields_are_read_as_little_endian() {
        let page = Page {
            magic: AtomicU64::new(super::MAGIC),
            sequence: AtomicU32::new(0),
            flags: AtomicU32::new(3_u32.to_le()),
            seconds: AtomicU64::new((-5_i64).cast_unsigned().to_le()),
            nanoseconds: AtomicU32::new(7_u32.to_le()),
            cpus: AtomicU32::new(2_u32.to_le()),
            key: [1, 2, 3, 4].map(|word: u64| AtomicU64::new(word.to_le())),
            table_at: AtomicU32::new(8_u32.to_le()),
            table_length: AtomicU32::new(16_u32.to_le()),
        };
        let pins = copy(&page);
        assert_eq!(
            (pins.now.sec, pins.now.nsec, pins.cpus, pins.flags),
            (-5, 7, 2, 3)
        );
        assert_eq!(pins.table, (8, 16));
        assert_eq!(pins.key[0], 1);
        assert_eq!(pins.key[24], 4);
    }
}
