//! The one witness of a process. Every callback runs under the interpreter's lock, so there is no other; one that
//! comes while another is at work sees nothing, because then the witness itself is the cause.

use crate::audit::Audit;
use crate::facts::Facts;
use crate::line::Line;
use crate::sides::Sides;
use crate::watch::Watch;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) struct Witness {
    pub(crate) sides: Sides,
    pub(crate) watch: Watch,
    pub(crate) audit: Audit,
    pub(crate) facts: Facts,
    pub(crate) line: Line,
    /// The code object of the only function that may send, and the file of those that may call it.
    pub(crate) sender: usize,
    probes: HashMap<usize, u32>,
    /// Every class was looked at once.
    pub(crate) walked: bool,
    /// Classes made since the last record; kept alive until the next.
    pub(crate) young: Vec<usize>,
    random: u64,
}

impl Witness {
    fn new() -> Self {
        Self {
            sides: Sides::default(),
            watch: Watch::new(),
            audit: Audit::default(),
            facts: Facts::new(),
            line: Line::closed(),
            sender: 0,
            probes: HashMap::new(),
            walked: false,
            young: Vec::new(),
            random: 0,
        }
    }

    /// Whether one more probe of this class is wanted.
    pub(crate) fn probe(&mut self, kind: usize, most: u32) -> bool {
        let count = self.probes.entry(kind).or_insert(0);
        *count += 1;
        *count <= most
    }

    pub(crate) fn new_phase(&mut self) {
        self.probes.clear();
    }

    pub(crate) fn seed(&mut self) {
        let secret = self.line.secret(b"probes");
        self.random = secret
            .iter()
            .take(8)
            .fold(0, |all, b| all << 8 | u64::from(*b));
    }
}

static mut WITNESS: Option<Witness> = None;
/// Set while an attempt that shares its process with product code runs.
static ARMED: AtomicBool = AtomicBool::new(false);
static BUSY: AtomicBool = AtomicBool::new(false);

/// The witness, whether it is armed or not; only for calls of the harness.
pub(crate) fn get() -> &'static mut Witness {
    // SAFETY: all callers hold the interpreter's lock, and none keeps the reference over a call that gives it up.
    #[allow(static_mut_refs, reason = "one witness, under the interpreter's lock")]
    unsafe {
        WITNESS.get_or_insert_with(Witness::new)
    }
}

pub(crate) fn arm() {
    ARMED.store(true, Ordering::Relaxed);
}

pub(crate) fn is_armed() -> bool {
    ARMED.load(Ordering::Relaxed)
}

/// The witness, if it is armed and not at work; `leave` must follow.
pub(crate) fn enter() -> Option<&'static mut Witness> {
    // SAFETY: asks only.
    let held = unsafe { crate::py::PyGILState_Check() } != 0;
    if !is_armed() || !held || BUSY.swap(true, Ordering::Relaxed) {
        return None;
    }
    Some(get())
}

pub(crate) fn leave() {
    BUSY.store(false, Ordering::Relaxed);
}

pub(crate) fn tell(kind: &'static str, what: &str) {
    if let Some(witness) = enter() {
        witness.facts.add(kind, what);
        leave();
    }
}

pub(crate) fn random() -> u32 {
    let state = &mut get().random;
    // splitmix64
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    u32::try_from(z >> 33).unwrap_or(1)
}
