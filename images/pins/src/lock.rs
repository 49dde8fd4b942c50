//! A lock that a fork can hold across itself: no owner, no poisoning, no allocation.

use crate::sys;
use core::sync::atomic::{AtomicBool, Ordering};

pub(crate) struct SpinLock(AtomicBool);

impl SpinLock {
    pub(crate) const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    pub(crate) fn acquire(&self) {
        while self
            .0
            .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            // SAFETY: sched_yield has no preconditions.
            unsafe { sys::sched_yield() };
        }
    }

    pub(crate) fn release(&self) {
        self.0.store(false, Ordering::Release);
    }
}
