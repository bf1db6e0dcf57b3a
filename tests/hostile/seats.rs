//! Limits the number of attacks that work at the same time, independently of the number of threads.

use std::sync::{Condvar, Mutex, PoisonError};

/// A number of seats; a test waits until one is free.
pub(crate) struct Seats {
    free: Mutex<usize>,
    left: Condvar,
}

/// A seat that becomes free when this is dropped, also during a panic.
pub(crate) struct Seat<'s>(&'s Seats);

impl Seats {
    pub(crate) fn new(free: usize) -> Seats {
        Seats {
            free: Mutex::new(free),
            left: Condvar::new(),
        }
    }

    pub(crate) fn take(&self) -> Seat<'_> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = self
            .left
            .wait_while(free, |free| *free == 0)
            .unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        Seat(self)
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.left.notify_one();
    }
}
