//! Locations in templates.

use std::ops::Range;

/// A location in a template's own text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Place {
    /// The template's number in its engine.
    pub(super) template: u32,
    start: u32,
    end: u32,
}

impl Place {
    /// Returns the location of a range of bytes. Templates are shorter than 2^32 bytes.
    pub(super) fn new(template: u32, range: &Range<usize>) -> Place {
        Place {
            template,
            start: offset(range.start),
            end: offset(range.end),
        }
    }

    /// Returns the range of bytes.
    pub(super) fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Returns the part of the location at `range`, relative to its start.
    pub(super) fn part(self, range: &Range<usize>) -> Place {
        let start = self.start as usize;
        Place::new(self.template, &(start + range.start..start + range.end))
    }

    /// Returns the location without its first and last byte: a literal without its quotes.
    pub(super) fn inside(self) -> Place {
        Place {
            start: self.start + 1,
            end: self.end.saturating_sub(1),
            ..self
        }
    }

    /// Returns `true` if another location is within this one.
    pub(super) fn contains(self, other: Place) -> bool {
        self.template == other.template && self.start <= other.start && other.end <= self.end
    }

    /// Returns the number of bytes.
    pub(super) fn len(self) -> usize {
        self.end.saturating_sub(self.start) as usize
    }
}

fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
