//! The record pipe's only pen. Each record carries a keyed digest over its number and its text; the key
//! came down a pipe into this memory and is nowhere else in the process.
//!
//! `u32 length | u8 'J' | 32 characters: half an HMAC-SHA256(key, number as u64 big-endian, body) in hex | body`.

use crate::sha256::Sha256;
use core::ffi::{c_int, c_void};

unsafe extern "C" {
    fn read(fd: c_int, into: *mut c_void, count: usize) -> isize;
    fn write(fd: c_int, from: *const c_void, count: usize) -> isize;
    fn getpid() -> c_int;
    fn _exit(code: c_int) -> !;
}

pub(crate) const KEY: usize = 32;
const BLOCK: usize = 64;

pub(crate) struct Line {
    key: [u8; KEY],
    fd: c_int,
    owner: c_int,
    number: u64,
}

impl Line {
    pub(crate) const fn closed() -> Self {
        Self {
            key: [0; KEY],
            fd: -1,
            owner: 0,
            number: 0,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.fd >= 0
    }

    /// Takes the key from one descriptor; records go to the other.
    pub(crate) fn open(&mut self, key: c_int, records: c_int) -> bool {
        let mut got = 0;
        while got < KEY {
            // SAFETY: the rest of the array is ours to write.
            let n = unsafe { read(key, self.key[got..].as_mut_ptr().cast(), KEY - got) };
            let Ok(n @ 1..) = usize::try_from(n) else {
                return false;
            };
            got += n;
        }
        self.fd = records;
        // SAFETY: takes nothing, cannot fail.
        self.owner = unsafe { getpid() };
        true
    }

    /// A key of no use to anyone but this process, from what was given.
    pub(crate) fn secret(&self, name: &[u8]) -> [u8; 32] {
        self.digest(name)
    }

    /// Sends one record. A child of the process that opened the line leaves instead.
    pub(crate) fn send(&mut self, body: &[u8]) -> bool {
        // SAFETY: neither touches memory; a fork that falls back into pytest must not go on.
        unsafe {
            if getpid() != self.owner {
                _exit(70);
            }
        }
        let number = self.number.to_be_bytes();
        self.number += 1;
        let mut signed = Vec::with_capacity(8 + body.len());
        signed.extend_from_slice(&number);
        signed.extend_from_slice(body);
        let mark = hex(&self.digest(&signed)[..16]);
        let Ok(length) = u32::try_from(1 + mark.len() + body.len()) else {
            return false;
        };
        let mut frame = Vec::with_capacity(5 + mark.len() + body.len());
        frame.extend_from_slice(&length.to_be_bytes());
        frame.push(b'J');
        frame.extend_from_slice(&mark);
        frame.extend_from_slice(body);
        let mut rest = frame.as_slice();
        while !rest.is_empty() {
            // SAFETY: the slice is alive.
            let n = unsafe { write(self.fd, rest.as_ptr().cast(), rest.len()) };
            match usize::try_from(n) {
                Ok(n) => rest = rest.get(n..).unwrap_or_default(),
                Err(_) if interrupted() => {}
                Err(_) => return false,
            }
        }
        true
    }

    fn digest(&self, data: &[u8]) -> [u8; 32] {
        let pad = |byte: u8| {
            let mut block = [byte; BLOCK];
            for (b, k) in block.iter_mut().zip(self.key) {
                *b ^= k;
            }
            block
        };
        let inner = Sha256::new().update(&pad(0x36)).update(data).finish();
        Sha256::new().update(&pad(0x5c)).update(&inner).finish()
    }
}

fn interrupted() -> bool {
    std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted
}

fn hex(bytes: &[u8]) -> Vec<u8> {
    let digit = |n: u8| if n < 10 { b'0' + n } else { b'a' + n - 10 };
    bytes
        .iter()
        .flat_map(|b| [digit(b >> 4), digit(b & 15)])
        .collect()
}
