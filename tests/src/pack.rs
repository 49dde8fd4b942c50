//! Packs and bundles that no honest tool would write.

use std::io::Write;
use std::process::{Command, Stdio};

/// A pack in the making.
#[derive(Debug, Default)]
pub struct Pack {
    entries: Vec<u8>,
    count: u32,
}

/// Where an entry begins.
#[derive(Debug, Clone, Copy)]
pub struct At(usize);

impl Pack {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A blob as it is.
    pub fn blob(&mut self, content: &[u8]) -> At {
        let at = self.begin(3, content.len());
        self.entries.extend(deflated(content));
        at
    }

    /// An object made of pieces `(offset, size)` of the one at `base`.
    pub fn delta(&mut self, base: At, base_size: usize, pieces: &[(usize, usize)]) -> At {
        let to: usize = pieces.iter().map(|(_, size)| size).sum();
        let mut delta = varint(base_size);
        delta.extend(varint(to));
        for (offset, size) in pieces {
            let (mut offset, mut size) = (*offset, *size);
            while size > 0 {
                // One instruction copies at most this much.
                let now = size.min(0xff_ffff);
                delta.push(0xff);
                delta.extend_from_slice(&u32::try_from(offset).unwrap().to_le_bytes());
                delta.extend_from_slice(&u32::try_from(now).unwrap().to_le_bytes()[..3]);
                (offset, size) = (offset + now, size - now);
            }
        }
        let at = self.begin(6, delta.len());
        let back = at.0 - base.0;
        let mut digits = vec![u8::try_from(back & 127).unwrap()];
        let mut rest = back >> 7;
        while rest > 0 {
            rest -= 1;
            digits.push(128 | u8::try_from(rest & 127).unwrap());
            rest >>= 7;
        }
        digits.reverse();
        self.entries.extend(digits);
        self.entries.extend(deflated(&delta));
        at
    }

    fn begin(&mut self, kind: u8, size: usize) -> At {
        let at = At(self.entries.len());
        self.count += 1;
        let mut byte = kind << 4 | u8::try_from(size & 15).unwrap();
        let mut rest = size >> 4;
        while rest > 0 {
            self.entries.push(byte | 128);
            byte = u8::try_from(rest & 127).unwrap();
            rest >>= 7;
        }
        self.entries.push(byte);
        at
    }

    pub fn finish(self) -> Vec<u8> {
        let count = self.count;
        self.finish_claiming(count)
    }

    pub fn finish_claiming(self, count: u32) -> Vec<u8> {
        let mut pack = b"PACK\0\0\0\x02".to_vec();
        pack.extend_from_slice(&count.to_be_bytes());
        pack.extend_from_slice(&self.entries);
        let sum = through("sha1sum", &[], &pack);
        let hex = String::from_utf8(sum).unwrap();
        pack.extend(hex::decode(&hex[..40]).unwrap());
        pack
    }
}

/// A bundle around a pack.
pub fn bundle(tip: &str, prerequisites: &[&str], pack: &[u8]) -> Vec<u8> {
    let mut text = "# v2 git bundle\n".to_owned();
    for id in prerequisites {
        text.push_str(&format!("-{id}\n"));
    }
    text.push_str(&format!("{tip} refs/heads/x\n\n"));
    [text.as_bytes(), pack].concat()
}

fn varint(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 127 {
        bytes.push(128 | u8::try_from(value & 127).unwrap());
        value >>= 7;
    }
    bytes.push(u8::try_from(value).unwrap());
    bytes
}

/// A zlib stream of this content.
fn deflated(content: &[u8]) -> Vec<u8> {
    let Ok(size) = u16::try_from(content.len()) else {
        let script =
            "import sys, zlib; sys.stdout.buffer.write(zlib.compress(sys.stdin.buffer.read(), 9))";
        return through("python3", &["-c", script], content);
    };
    // One stored block is quickly written.
    let mut stream = vec![0x78, 0x01, 1];
    stream.extend_from_slice(&size.to_le_bytes());
    stream.extend_from_slice(&(!size).to_le_bytes());
    stream.extend_from_slice(content);
    let (a, b) = content.iter().fold((1u32, 0u32), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65521;
        (a, (b + a) % 65521)
    });
    stream.extend_from_slice(&(b << 16 | a).to_be_bytes());
    stream
}

fn through(program: &str, args: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input).unwrap());
        child.wait_with_output().unwrap().stdout
    })
}
