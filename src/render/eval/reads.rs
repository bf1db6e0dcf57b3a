//! Notes the values that a template reads from the data's objects and lists, with the places of the
//! reads.

use std::sync::Arc;

use super::super::place::Place;
use super::super::tracked::{Origin, Tracked};
use super::watch::Watch;
use crate::json::Pointer;

/// The maximum number of reads to note.
const MAX_READS: usize = 1 << 18;

/// The values that were read, in order.
#[derive(Debug, Default)]
pub(in super::super) struct Reads(pub(in super::super) Vec<(Arc<Pointer>, Place)>);

impl Watch for Reads {
    const FOLLOWS: bool = true;

    fn read(&mut self, value: &Tracked, at: Place) {
        if let (Origin::Data(path), true) = (&value.origin, self.0.len() < MAX_READS) {
            self.0.push((Arc::clone(path), at));
        }
    }
}
