//! Counts the steps of a render, and stops it at the limit.

use minijinja::{Error, ErrorKind};

use super::watch::Watch;

/// The steps of a render.
#[derive(Debug)]
pub(in super::super) struct Steps {
    taken: u64,
    most: u64,
}

impl Steps {
    /// Returns a counter with the limit `most`.
    pub(in super::super) fn at_most(most: u64) -> Steps {
        Steps { taken: 0, most }
    }

    /// Returns the number of steps taken.
    pub(in super::super) fn taken(&self) -> u64 {
        self.taken
    }

    fn add(&mut self, steps: u64) -> Result<(), Error> {
        self.taken = self.taken.saturating_add(steps);
        match self.taken > self.most {
            true => Err(Error::from(ErrorKind::OutOfFuel)),
            false => Ok(()),
        }
    }
}

impl Watch for Steps {
    fn step(&mut self) -> Result<(), Error> {
        self.add(1)
    }

    fn steps(&mut self, count: u64) -> Result<(), Error> {
        self.add(count)
    }
}
