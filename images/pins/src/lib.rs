//! The pin library: preloaded into every process of a scoring container, it turns the questions
//! "what time is it", "give me random bytes", "how many CPUs" and "what is in this folder" into
//! answers that are the same in every attempt. The answers come from one read-only page that PID 1
//! owns (`images/python/PROTOCOL.md`, "The pin page").
//!
//! It never pins the monotonic clocks, never changes how long anything waits, never writes the
//! pin page, and never answers for PID 1. It is about repeatability, not about integrity: a program that
//! asks the kernel itself (static binaries, the vDSO, `/dev/urandom`, `/proc/uptime`) gets the truth.
//!
//! It fails open: without the page, without the flag, or without something to fall through to, the
//! real function answers, or `ENOSYS` does. It must not panic, allocate outside directory
//! listings and `lasting`, or depend on any crate: it is inside processes that have just forked.
//!
//! | room | pins |
//! | --- | --- |
//! | `clock` | the wall clock, frozen: `CLOCK_REALTIME`, its coarse and alarm kin, `CLOCK_TAI` |
//! | `deadline` | nothing: it moves absolute wall-clock deadlines so that waits last as long as asked |
//! | `timers` | the same for POSIX timers and timerfds |
//! | `entropy` | `getrandom` and its kin, a stream of its own for every process |
//! | `lineage`, `exec` | the name of that stream, carried over fork and exec |
//! | `cpus` | the CPU count |
//! | `listing` | the order of directory listings |
//! | `recorded` | the listings that a cassette has on record |
//! | `raw` | the same answers for `syscall(2)` |
//! | `counts` | nothing: it counts what was asked for, on a page of the attempt's own |
//! | `lasting` | nothing: it makes objects of an interpreter immortal, for the harness |
//! | `devices`, `sockets`, `threads`, `waits` | nothing: hooks that only count |
//!
//! Real, and documented as such: file times, `/dev/urandom` and `/dev/random` as files, `/proc`,
//! `adjtimex`, and programs that `vfork` without `exec`. Names that glibc makes inside itself
//! (`mkstemp`) use its own entropy; Python's `tempfile` does not.

#![cfg_attr(test, allow(dead_code, reason = "a test binary exports no hooks"))]

mod clock;
mod counts;
mod cpus;
mod deadline;
mod devices;
mod entropy;
mod exec;
mod lasting;
mod lineage;
mod listing;
mod lock;
mod page;
mod raw;
mod real;
mod recorded;
mod sha256;
mod sockets;
mod sys;
mod threads;
mod timers;
mod waits;

use sys::{c_char, c_int};

/// Runs before `main`: everything that could allocate or take a linker's lock is done here, so that
/// the hooks can be called from a child between `vfork` and `exec`.
extern "C" fn start(argc: c_int, argv: *const *const c_char, envp: *mut *mut c_char) {
    real::resolve_all();
    // SAFETY: glibc hands every initialiser the process's own argument and environment arrays,
    // both terminated by a null pointer, before any other thread exists.
    unsafe { lineage::start(argc, argv, envp) };
}

#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn(c_int, *const *const c_char, *mut *mut c_char) = start;

/// A test binary must not have its own clock replaced, so only mention the initialiser there.
#[cfg(test)]
const _: extern "C" fn(c_int, *const *const c_char, *mut *mut c_char) = start;
