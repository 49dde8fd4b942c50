//! The listings that the cassette of the running case has on record: a table in one file that PID 1 wrote before the first
//! attempt, at the place that the pin page names.
//!
//! A table that does not hold (cut short, out of its file) has no directories. Nothing is copied, nothing is written.

use crate::page::{self, Pins};
use crate::sys::{self, c_char};
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

#[cfg(not(pins_test_page))]
const PATH: &core::ffi::CStr = c"/run/tribunal/listings";
const LONGEST: usize = 4096;

static MAPPED: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
static LENGTH: AtomicUsize = AtomicUsize::new(0);

/// A directory of the table: its number, and its names one after the other.
#[derive(Clone, Copy)]
pub(crate) struct Directory<'a> {
    pub(crate) number: usize,
    count: usize,
    names: &'a [u8],
}

impl<'a> Directory<'a> {
    pub(crate) fn names(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut rest = Bytes(self.names);
        (0..self.count).map_while(move |_| rest.text())
    }

    pub(crate) fn place(&self, name: &[u8]) -> Option<usize> {
        self.names().position(|other| other == name)
    }
}

/// What is on record for the directory of this path.
pub(crate) fn find(pins: &Pins, path: &[u8]) -> Option<Directory<'static>> {
    if !pins.has(page::RECORDED) {
        return None;
    }
    in_table(table(pins.table)?, path)
}

fn in_table<'a>(table: &'a [u8], path: &[u8]) -> Option<Directory<'a>> {
    let mut rest = Bytes(table);
    let directories = rest.number()?;
    for number in 0..directories {
        let name = rest.text()?;
        let count = rest.number()?;
        let names = rest.0;
        for _ in 0..count {
            rest.text()?;
        }
        if name == path {
            return Some(Directory {
                number,
                count,
                names,
            });
        }
    }
    None
}

struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn number(&mut self) -> Option<usize> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*first) as usize)
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        let (first, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(first)
    }
}

fn table((at, length): (u32, u32)) -> Option<&'static [u8]> {
    let begin = at as usize;
    whole()?.get(begin..begin.checked_add(length as usize)?)
}

fn whole() -> Option<&'static [u8]> {
    let mut known = MAPPED.load(Ordering::Acquire);
    if known.is_null() {
        let errno = sys::errno();
        let mapped = map();
        sys::set_errno(errno);
        let (address, length) = mapped?;
        // The file is whole before any table of it is on, so whoever maps it has the same length.
        LENGTH.store(length, Ordering::Relaxed);
        MAPPED.store(address, Ordering::Release);
        known = address;
    }
    // SAFETY: a mapping of that length, which is never unmapped, of a file that is written no more.
    Some(unsafe { core::slice::from_raw_parts(known, LENGTH.load(Ordering::Relaxed)) })
}

fn map() -> Option<(*mut u8, usize)> {
    // SAFETY: the path is NUL-terminated.
    let found = unsafe { sys::mapped(path()?, sys::Access::Read, 1, usize::MAX) };
    found.map(|(address, length)| (address.cast(), length))
}

#[cfg(not(pins_test_page))]
fn path() -> Option<*const c_char> {
    Some(PATH.as_ptr())
}

/// Test builds only: as the pin page's.
#[cfg(pins_test_page)]
fn path() -> Option<*const c_char> {
    static NAMED: std::sync::OnceLock<Option<[u8; 256]>> = std::sync::OnceLock::new();
    let named = NAMED.get_or_init(|| crate::counts::named(c"TRIBUNAL_TEST_LISTINGS".as_ptr()));
    named.as_ref().map(|path| path.as_ptr().cast())
}

/// A path that a name was made of, and its length.
pub(crate) struct Place {
    bytes: [u8; LONGEST],
    length: usize,
}

impl Place {
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// Where an open directory is.
    pub(crate) fn of_open(fd: i32) -> Option<Self> {
        let mut link = *b"/proc/self/fd/\0\0\0\0\0\0\0\0\0\0\0";
        let mut left = u32::try_from(fd).ok()?;
        let mut digits = [0_u8; 10];
        let mut begin = digits.len();
        loop {
            begin -= 1;
            *digits.get_mut(begin)? = b'0' + u8::try_from(left % 10).ok()?;
            left /= 10;
            if left == 0 {
                break;
            }
        }
        for (slot, digit) in link.iter_mut().skip(14).zip(digits.get(begin..)?) {
            *slot = *digit;
        }
        let mut bytes = [0; LONGEST];
        // SAFETY: the link is NUL-terminated, and the buffer has the size that is told.
        let length =
            unsafe { sys::readlink(link.as_ptr().cast(), bytes.as_mut_ptr().cast(), LONGEST) };
        let length = usize::try_from(length)
            .ok()
            .filter(|&length| length < LONGEST)?;
        Some(Self { bytes, length })
    }

    /// Where a path leads by its words alone, from the working directory: what it names is not there to be asked.
    pub(crate) fn by_words(path: &[u8]) -> Option<Self> {
        let mut place = Self {
            bytes: [0; LONGEST],
            length: 0,
        };
        if path.first() != Some(&b'/') {
            // SAFETY: the buffer has the size that is told.
            if unsafe { sys::getcwd(place.bytes.as_mut_ptr().cast(), LONGEST) }.is_null() {
                return None;
            }
            place.length = place.bytes.iter().position(|&byte| byte == 0)?;
            if place.length == 1 {
                place.length = 0;
            }
        }
        for word in path.split(|&byte| byte == b'/') {
            match word {
                b"" | b"." => {}
                b".." => {
                    let before = place.bytes().iter().rposition(|&byte| byte == b'/');
                    place.length = before.unwrap_or(0);
                }
                _ => {
                    let room = place.bytes.get_mut(place.length..)?;
                    let (slash, rest) = room.split_first_mut()?;
                    *slash = b'/';
                    rest.get_mut(..word.len())?.copy_from_slice(word);
                    place.length += 1 + word.len();
                }
            }
        }
        if place.length == 0 {
            *place.bytes.first_mut()? = b'/';
            place.length = 1;
        }
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::{Place, in_table};

    fn table(directories: &[(&str, &[&str])]) -> Vec<u8> {
        let number = |n: usize| u32::try_from(n).unwrap_or(0).to_le_bytes();
        let mut out = number(directories.len()).to_vec();
        for (path, names) in directories {
            out.extend(number(path.len()));
            out.extend(path.as_bytes());
            out.extend(number(names.len()));
            for name in *names {
                out.extend(number(name.len()));
                out.extend(name.as_bytes());
            }
        }
        out
    }

    #[test]
    fn a_directory_is_found_by_its_path() {
        let table = table(&[("/a", &["x"]), ("/b", &[]), ("/c", &["z", "y"])]);
        let found = in_table(&table, b"/c").map(|found| (found.number, found.place(b"y")));
        assert_eq!(found, Some((2, Some(1))));
        assert_eq!(
            in_table(&table, b"/b").map(|found| found.names().count()),
            Some(0)
        );
        assert!(in_table(&table, b"/d").is_none());
        // Cut short anywhere, what is whole is still there and the rest is not made up.
        for end in 0..table.len() {
            assert!(in_table(table.get(..end).unwrap_or_default(), b"/c").is_none());
        }
    }

    #[test]
    fn words_lead_to_a_place() {
        for (path, place) in [
            ("/", "/"),
            ("/tmp/invoice/outbox/", "/tmp/invoice/outbox"),
            ("//tmp/./a/../b", "/tmp/b"),
            ("/../../x", "/x"),
        ] {
            let found = Place::by_words(path.as_bytes());
            assert_eq!(
                found.as_ref().map(Place::bytes),
                Some(place.as_bytes()),
                "{path}"
            );
        }
        assert!(Place::by_words(&vec![b'x'; 5000]).is_none());
    }
}
