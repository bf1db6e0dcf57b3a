//! Records the values that a template reads from the data's objects and lists, with the locations
//! of the reads.

use super::super::data_path::DataPath;
use super::super::place::Place;
use super::super::tracked::{Origin, Tracked};
use super::watch::Watch;

/// The maximum number of recorded reads.
const MAX_READS: usize = 1 << 18;

/// The values that were read, in order.
#[derive(Debug, Default)]
pub(in super::super) struct Reads(pub(in super::super) Vec<(DataPath, Place)>);

impl Watch for Reads {
    fn read(&mut self, value: &Tracked, at: Place) {
        if let (Origin::Data(path), true) = (&value.origin, self.0.len() < MAX_READS) {
            self.0.push((path.clone(), at));
        }
    }
}
