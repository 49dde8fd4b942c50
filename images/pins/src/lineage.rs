//! The name of a process: which entropy stream is its own, told by where the process comes from and
//! never by its pid.
//!
//! The root of an attempt has the all-zero name. A child's name is the hash of its parent's name, of
//! the word `fork` or `exec`, of the page's key and of a number that counts the parent's forks and
//! execs under that key. So a child never repeats its parent, two siblings differ by the order they
//! were made in, and none of it depends on a pid, an address or the time.
//!
//! Exec loses a process's memory, so the new name is handed over in one environment variable that
//! `exec` adds, also to an empty environment, and that `start` takes out again before `main` sees it.
//! A program started without it (by a static program, `system`, `popen` or the `execl` family, which
//! build the call inside glibc) is named by its command line: still repeatable, but the same command
//! run twice draws the same bytes.
//!
//! Processes of root are the harness's own. An attempt is forked from one of them, and must not be
//! told from the attempt before it: a child that is still root when it is forked has the root's name.

use crate::lock::SpinLock;
use crate::page;
use crate::sha256::Sha256;
use crate::sys::{self, c_char, c_int};
use core::ffi::CStr;
use core::sync::atomic::{AtomicU64, Ordering};

pub(crate) type Name = [u8; 32];
const VARIABLE: &[u8; 17] = b"TRIBUNAL_LINEAGE=";
/// `NAME=`, the name in hexadecimal, NUL.
pub(crate) type Handover = [u8; VARIABLE.len() + 64 + 1];

static NAME: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];
/// Blocks of the stream drawn, and children made, since the key was `KEY`.
static DRAWN: AtomicU64 = AtomicU64::new(0);
static CHILDREN: AtomicU64 = AtomicU64::new(0);
/// The first words of the key that the two counts belong to; PID 1 writes a new key to begin anew.
static KEY: AtomicU64 = AtomicU64::new(0);
/// Held from before a fork until after it, on both sides: a fork counts once, and the directory
/// listings are whole in the child.
pub(crate) static FORK: SpinLock = SpinLock::new();

/// # Safety
/// The arrays are this process's own, null-terminated, and nobody else uses them yet.
pub(crate) unsafe fn start(argc: c_int, argv: *const *const c_char, envp: *mut *mut c_char) {
    // SAFETY: the caller's promise about envp.
    let handed = unsafe { take(envp) };
    let name = handed.unwrap_or_else(|| {
        if harness() {
            Name::default()
        } else {
            // SAFETY: the caller's promise about argv.
            unsafe { by_command_line(argc, argv) }
        }
    });
    set_name(name);
    // SAFETY: the three handlers live as long as the library, which is never unloaded.
    unsafe { sys::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child)) };
}

/// This process's name, and the number of the first of `blocks` blocks that are now drawn.
pub(crate) fn draw(key: &[u8; 32], blocks: u64) -> (Name, u64) {
    follow(key);
    (name(), DRAWN.fetch_add(blocks, Ordering::Relaxed))
}

/// The variable that names the program this process is about to become or to spawn.
pub(crate) fn hand_over() -> Option<Handover> {
    let pins = page::pins(page::ENTROPY)?;
    if harness() {
        return None;
    }
    follow(&pins.key);
    let child = child(
        &name(),
        b"exec",
        &pins.key,
        CHILDREN.fetch_add(1, Ordering::Relaxed),
    );
    Some(written(&child))
}

extern "C" fn before_fork() {
    FORK.acquire();
    if let Some(pins) = page::pins(page::ENTROPY) {
        follow(&pins.key);
    }
    CHILDREN.fetch_add(1, Ordering::Relaxed);
}

extern "C" fn after_fork() {
    FORK.release();
}

extern "C" fn in_child() {
    page::forked();
    let number = CHILDREN.load(Ordering::Relaxed).wrapping_sub(1);
    let key = page::pins(page::ENTROPY).map_or([0; 32], |pins| pins.key);
    set_name(if harness() {
        Name::default()
    } else {
        child(&name(), b"fork", &key, number)
    });
    DRAWN.store(0, Ordering::Relaxed);
    CHILDREN.store(0, Ordering::Relaxed);
    FORK.release();
}

/// Root's processes; in test builds there are none, so that tests may run as root.
fn harness() -> bool {
    // SAFETY: geteuid has no preconditions.
    !cfg!(pins_test_page) && unsafe { sys::geteuid() } == 0
}

/// A new key begins a new stream, from its first block. Two threads that cross that moment may see
/// either: which one is first is not repeatable anyhow.
fn follow(key: &[u8; 32]) {
    let word = key
        .chunks_exact(8)
        .filter_map(|bytes| bytes.first_chunk())
        .fold(0_u64, |word, bytes| {
            word.rotate_left(1) ^ u64::from_le_bytes(*bytes)
        });
    if KEY.swap(word, Ordering::Relaxed) != word {
        DRAWN.store(0, Ordering::Relaxed);
        CHILDREN.store(0, Ordering::Relaxed);
    }
}

fn child(parent: &Name, how: &[u8; 4], key: &[u8; 32], number: u64) -> Name {
    Sha256::new()
        .update(how)
        .update(parent)
        .update(key)
        .update(&number.to_le_bytes())
        .finish()
}

/// # Safety
/// `argv` holds `argc` NUL-terminated strings.
unsafe fn by_command_line(argc: c_int, argv: *const *const c_char) -> Name {
    let mut hash = Sha256::new().update(b"argv");
    for index in 0..usize::try_from(argc).unwrap_or(0) {
        // SAFETY: the caller's promise.
        let argument = unsafe { *argv.add(index) };
        if argument.is_null() {
            break;
        }
        // SAFETY: the caller's promise.
        hash = hash.update(unsafe { CStr::from_ptr(argument) }.to_bytes_with_nul());
    }
    hash.finish()
}

/// Takes the variable out of the environment, in place, and gives the name it carried.
///
/// # Safety
/// `envp` is null or a null-terminated array of NUL-terminated strings that may be rewritten.
unsafe fn take(envp: *mut *mut c_char) -> Option<Name> {
    if envp.is_null() {
        return None;
    }
    let mut found = None;
    let (mut from, mut to) = (envp, envp);
    // SAFETY: both pointers stay within the array, up to and including its terminator.
    unsafe {
        while !(*from).is_null() {
            match CStr::from_ptr(*from)
                .to_bytes()
                .strip_prefix(VARIABLE.as_slice())
            {
                Some(value) => found = found.or(parsed(value)),
                None => {
                    *to = *from;
                    to = to.add(1);
                }
            }
            from = from.add(1);
        }
        *to = core::ptr::null_mut();
    }
    found
}

fn parsed(text: &[u8]) -> Option<Name> {
    let mut name = Name::default();
    if text.len() != 2 * name.len() {
        return None;
    }
    for (byte, digits) in name.iter_mut().zip(text.chunks_exact(2)) {
        *byte = u8::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(name)
}

fn written(name: &Name) -> Handover {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [0; VARIABLE.len() + 64 + 1];
    let digits = name
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| DIGITS.get(usize::from(digit)));
    for (slot, byte) in text.iter_mut().zip(VARIABLE.iter().chain(digits)) {
        *slot = *byte;
    }
    text
}

fn name() -> Name {
    let mut name = Name::default();
    for (bytes, word) in name.chunks_exact_mut(8).zip(&NAME) {
        bytes.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
    }
    name
}

/// Only before `main` and in the child of a fork, where there is one thread.
fn set_name(name: Name) {
    for (bytes, word) in name.chunks_exact(8).zip(&NAME) {
        if let Some(bytes) = bytes.first_chunk() {
            word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Name, child, parsed, take, written};
    use core::ffi::CStr;

    #[test]
    fn children_differ_from_their_parent_and_from_each_other() {
        let (root, key) = (Name::default(), [7; 32]);
        let names = [
            root,
            child(&root, b"fork", &key, 0),
            child(&root, b"fork", &key, 1),
            child(&root, b"exec", &key, 0),
            child(&root, b"fork", &[8; 32], 0),
            child(&child(&root, b"fork", &key, 0), b"fork", &key, 0),
        ];
        for (index, name) in names.iter().enumerate() {
            assert!(
                !names.iter().skip(index + 1).any(|other| other == name),
                "{index}"
            );
        }
    }

    #[test]
    fn a_name_survives_being_handed_over() {
        let name = child(&Name::default(), b"exec", &[7; 32], 3);
        let text = written(&name);
        assert_eq!(text.last(), Some(&0));
        assert_eq!(
            parsed(&text[super::VARIABLE.len()..text.len() - 1]),
            Some(name)
        );
        assert_eq!(parsed(b"00"), None);
        assert_eq!(parsed(&[b'g'; 64]), None);
    }

    #[test]
    fn the_variable_is_taken_out_and_the_others_keep_their_order() {
        let mut handed = written(&[5; 32]);
        let mut environment = [
            c"A=1".as_ptr().cast_mut(),
            handed.as_mut_ptr().cast(),
            c"TRIBUNAL_LINEAGEX=2".as_ptr().cast_mut(),
            core::ptr::null_mut(),
        ];
        // SAFETY: a null-terminated array of C strings.
        assert_eq!(unsafe { take(environment.as_mut_ptr()) }, Some([5; 32]));
        // SAFETY: the first two are still C strings.
        let left = [environment[0], environment[1]].map(|text| unsafe { CStr::from_ptr(text) });
        assert_eq!(left, [c"A=1", c"TRIBUNAL_LINEAGEX=2"]);
        assert!(environment[2].is_null());
    }
}
