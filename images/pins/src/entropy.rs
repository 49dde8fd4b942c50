//! Random bytes: block `i` of a process's stream is SHA-256("tribunal-entropy" ‖ the page's key ‖ the
//! process's name ‖ `i` as 64 bits, little-endian). A call takes as many whole blocks as it needs.
//!
//! Equal in every attempt, different in every process (`lineage`). Never used for anything that has
//! to be secret. Opening `/dev/urandom` as a file gives the kernel's own bytes.

use crate::counts::{self, Source};
use crate::lineage;
use crate::page;
use crate::real;
use crate::sha256::Sha256;
use crate::sys::{self, c_int, c_uint, c_void};

const BLOCK: usize = 32;
/// `GRND_NONBLOCK | GRND_RANDOM | GRND_INSECURE`; the kernel refuses any other bit.
const KNOWN_FLAGS: c_uint = 7;
const GETENTROPY_MOST: usize = 256;

/// Fills the buffer from the stream; false when the real function is to do it.
///
/// # Safety
/// `buffer` is writable for `length` bytes.
unsafe fn fill(buffer: *mut c_void, length: usize) -> bool {
    counts::count(Source::Entropy);
    let Some(pins) = page::pins(page::ENTROPY) else {
        return false;
    };
    if buffer.is_null() || isize::try_from(length).is_err() {
        return false;
    }
    // SAFETY: the caller's promise; the length fits an isize and the pointer is not null.
    let buffer = unsafe { core::slice::from_raw_parts_mut(buffer.cast::<u8>(), length) };
    let (name, first) = lineage::draw(&pins.key, length.div_ceil(BLOCK) as u64);
    for (bytes, number) in buffer.chunks_mut(BLOCK).zip(first..) {
        let block = block(&pins.key, &name, number);
        for (byte, random) in bytes.iter_mut().zip(block) {
            *byte = random;
        }
    }
    true
}

fn block(key: &[u8; 32], name: &lineage::Name, number: u64) -> [u8; BLOCK] {
    Sha256::new()
        .update(b"tribunal-entropy")
        .update(key)
        .update(name)
        .update(&number.to_le_bytes())
        .finish()
}

fn word() -> Option<u32> {
    let mut bytes = [0_u8; 4];
    // SAFETY: four writable bytes.
    unsafe { fill(bytes.as_mut_ptr().cast(), bytes.len()) }.then(|| u32::from_le_bytes(bytes))
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn getrandom(
    buffer: *mut c_void,
    length: usize,
    flags: c_uint,
) -> isize {
    // SAFETY: the caller's own arguments.
    unsafe {
        if flags & !KNOWN_FLAGS == 0 && fill(buffer, length) {
            return length.cast_signed();
        }
        real::getrandom(buffer, length, flags).unwrap_or_else(|| sys::fail(sys::ENOSYS) as isize)
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn getentropy(buffer: *mut c_void, length: usize) -> c_int {
    if length > GETENTROPY_MOST {
        return sys::fail(sys::EIO);
    }
    // SAFETY: the caller's own arguments.
    unsafe {
        if fill(buffer, length) {
            return 0;
        }
        real::getentropy(buffer, length).unwrap_or_else(|| sys::fail(sys::ENOSYS))
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn arc4random() -> u32 {
    // SAFETY: no arguments. A program that calls it runs on a C library that has it.
    word()
        .or_else(|| unsafe { real::arc4random() })
        .unwrap_or(0)
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn arc4random_buf(buffer: *mut c_void, length: usize) {
    // SAFETY: the caller's own arguments.
    unsafe {
        if !fill(buffer, length) {
            real::arc4random_buf(buffer, length);
        }
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn arc4random_uniform(bound: u32) -> u32 {
    match bounded(bound, word) {
        Some(number) => number,
        // SAFETY: the caller's own argument.
        None => unsafe { real::arc4random_uniform(bound) }.unwrap_or(0),
    }
}

/// An even choice below `bound`: words from the incomplete last round are drawn again.
fn bounded(bound: u32, mut word: impl FnMut() -> Option<u32>) -> Option<u32> {
    if bound < 2 {
        return word().map(|_| 0);
    }
    let rejected = bound.wrapping_neg() % bound;
    loop {
        let number = word()?;
        if number >= rejected {
            return Some(number % bound);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{block, bounded};

    #[test]
    fn a_block_is_what_the_documentation_says() {
        // hashlib.sha256(b"tribunal-entropy" + bytes(range(32)) + bytes(32) + (1).to_bytes(8, "little"))
        let mut key = [0; 32];
        for (byte, value) in key.iter_mut().zip(0..) {
            *byte = value;
        }
        let hex: String = block(&key, &[0; 32], 1)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(
            hex,
            "5b536c9c4a2dba7ca54493c657322af63ea74e96dc5e59000a078f4ebae84335"
        );
    }

    #[test]
    fn a_bounded_choice_draws_again_instead_of_leaning() {
        // 2^32 mod 3 is 1: the word 0 belongs to an incomplete round.
        let mut words = [0, 5].into_iter();
        assert_eq!(bounded(3, || words.next()), Some(2));
        assert_eq!(bounded(0, || Some(9)), Some(0));
        assert_eq!(bounded(1, || Some(9)), Some(0));
        assert_eq!(bounded(3, || None), None);
    }
}
