//! Compares the bodies in two files, pair by pair.

use std::collections::HashSet;

use super::bodies::{LineColumn, PlacedBody};
use super::{Difference, DifferenceKind, compare};
use crate::check::history::{History, Kind, Role};
use crate::diff::line_operations;
use crate::json::Pointer;
use crate::provider::WireFormat;

/// The result of comparing the bodies in two files.
#[derive(Debug)]
#[non_exhaustive]
pub struct ComparedFiles {
    /// The name of the first file or agent.
    pub first: String,
    /// The name of the second file or agent.
    pub second: String,
    /// The pairs of bodies, in the first file's order.
    pub pairs: Vec<ComparedPair>,
    /// The first line of each body in the first file that has no partner in the second file.
    pub unpaired_first: Vec<usize>,
    /// The first line of each body in the second file that has no partner in the first file.
    pub unpaired_second: Vec<usize>,
}

/// The result of comparing two bodies.
#[derive(Debug)]
#[non_exhaustive]
pub struct ComparedPair {
    /// The line on which the first body begins.
    pub first_line: usize,
    /// The wire format of the first body.
    pub first_wire: WireFormat,
    /// The line on which the second body begins.
    pub second_line: usize,
    /// The wire format of the second body.
    pub second_wire: WireFormat,
    /// The number of pieces of content that are in both bodies.
    pub shared: usize,
    /// The differences between the two bodies.
    pub differences: Vec<PlacedDifference>,
}

/// A difference, with its locations in both files.
#[derive(Debug)]
#[non_exhaustive]
pub struct PlacedDifference {
    /// The content or setting that differs.
    pub difference: Difference,
    /// The location in the first file.
    pub first: Option<LineColumn>,
    /// The location in the second file.
    pub second: Option<LineColumn>,
    /// The wire format of the second body.
    pub second_wire: WireFormat,
    /// `true` if the user allows the difference.
    pub is_allowed: bool,
}

/// The allowed differences: kinds, kinds with a subject, and losses that the second wire format
/// makes unavoidable.
#[derive(Debug, Clone, Default)]
pub struct Allowed {
    kinds: Vec<(DifferenceKind, Option<String>)>,
    is_no_place_allowed: bool,
}

/// The name that allows the loss of values that the second wire format cannot express.
const NO_PLACE: &str = "no-place";

impl Allowed {
    /// Parses names such as `moved`, `lost/image` and `no-place`.
    ///
    /// # Errors
    ///
    /// Returns the first name that is not a kind.
    pub fn parse(names: &[String]) -> Result<Allowed, String> {
        let mut allowed = Allowed::default();
        for name in names {
            if name == NO_PLACE {
                allowed.is_no_place_allowed = true;
                continue;
            }
            let (kind, subject) = match name.split_once('/') {
                Some((kind, subject)) => (kind, Some(subject.to_owned())),
                None => (name.as_str(), None),
            };
            let kind = DifferenceKind::from_name(kind).ok_or_else(|| kind.to_owned())?;
            allowed.kinds.push((kind, subject));
        }
        Ok(allowed)
    }

    /// Returns the names of all kinds, and `no-place`.
    pub fn kinds() -> impl Iterator<Item = &'static str> {
        DifferenceKind::ALL
            .into_iter()
            .map(DifferenceKind::name)
            .chain([NO_PLACE])
    }

    fn has(&self, difference: &Difference) -> bool {
        let fits = |subject: &Option<String>| {
            subject
                .as_deref()
                .is_none_or(|subject| subject == difference.subject)
        };
        let is_named = self
            .kinds
            .iter()
            .any(|(kind, subject)| *kind == difference.kind && fits(subject));
        is_named || (self.is_no_place_allowed && difference.no_place.is_some())
    }
}

/// Bodies, with the name of their file or agent.
#[derive(Debug, Clone)]
pub struct NamedBodies {
    /// The name that comparisons show.
    pub name: String,
    /// The bodies, in file order.
    pub bodies: Vec<PlacedBody>,
}

impl ComparedFiles {
    /// Compares the bodies in two files.
    pub fn of(first: NamedBodies, second: NamedBodies, allowed: &Allowed) -> ComparedFiles {
        let (bodies, others) = (first.bodies, second.bodies);
        let pairing = pairing(&bodies, &others);
        let pairs = pairing
            .iter()
            .map(|&(one, other)| compared(&bodies[one], &others[other], allowed))
            .collect();
        let (firsts, seconds): (HashSet<usize>, HashSet<usize>) = pairing.into_iter().unzip();
        let unpaired_first = unpaired(&bodies, &firsts);
        let unpaired_second = unpaired(&others, &seconds);
        ComparedFiles {
            first: first.name,
            second: second.name,
            pairs,
            unpaired_first,
            unpaired_second,
        }
    }

    /// Returns the number of differences that fail a comparison.
    pub fn losses(&self) -> usize {
        let differences = self.pairs.iter().flat_map(|pair| &pair.differences);
        let lost = differences
            .filter(|it| it.difference.kind.is_loss() && !it.is_allowed)
            .count();
        lost + self.unpaired_first.len()
    }

    /// Returns `true` if a difference fails the comparison.
    pub fn loses(&self) -> bool {
        self.losses() > 0
    }
}

/// Returns the lines of the bodies that have no partner.
fn unpaired(bodies: &[PlacedBody], paired: &HashSet<usize>) -> Vec<usize> {
    (0..bodies.len())
        .filter(|at| !paired.contains(at))
        .map(|at| bodies[at].first_line())
        .collect()
}

fn compared(first: &PlacedBody, second: &PlacedBody, allowed: &Allowed) -> ComparedPair {
    let comparison = compare(first.side(), second.side());
    let (in_first, in_second): (Vec<_>, Vec<_>) = comparison
        .differences
        .iter()
        .map(|it| (it.first.clone(), it.second.clone()))
        .unzip();
    let (firsts, seconds) = (places(first, &in_first), places(second, &in_second));
    let placed = comparison.differences.into_iter().zip(firsts).zip(seconds);
    let second_wire = second.wire;
    let differences = placed.map(|((difference, first), second)| {
        let is_allowed = allowed.has(&difference);
        PlacedDifference {
            difference,
            first,
            second,
            second_wire,
            is_allowed,
        }
    });
    ComparedPair {
        first_line: first.first_line(),
        first_wire: first.wire,
        second_line: second.first_line(),
        second_wire: second.wire,
        shared: comparison.shared,
        differences: differences.collect(),
    }
}

/// Returns the location of each pointer that is not `None`.
fn places(body: &PlacedBody, pointers: &[Option<Pointer>]) -> Vec<Option<LineColumn>> {
    let known: Vec<Pointer> = pointers.iter().flatten().cloned().collect();
    let mut places = body.places(&known).into_iter();
    pointers
        .iter()
        .map(|pointer| pointer.as_ref().and_then(|_| places.next()))
        .collect()
}

/// Returns the pairs of bodies. Bodies are paired in order if both sides have the same number of
/// bodies, otherwise by equal user text.
fn pairing(first: &[PlacedBody], second: &[PlacedBody]) -> Vec<(usize, usize)> {
    if first.len() == second.len() {
        return (0..first.len()).map(|at| (at, at)).collect();
    }
    let questions: [Vec<String>; 2] =
        [first, second].map(|bodies| bodies.iter().map(questions).collect());
    let [first, second] = questions
        .each_ref()
        .map(|texts| texts.iter().map(String::as_str).collect::<Vec<_>>());
    let mut pairs = Vec::new();
    for operation in line_operations(&first, &second) {
        if let similar::DiffOp::Equal { .. } = operation {
            pairs.extend(operation.old_range().zip(operation.new_range()));
        }
    }
    pairs
}

/// Returns all user text in a body, without whitespace.
fn questions(body: &PlacedBody) -> String {
    let history = History::read(body.wire, |name| body.value.get(name));
    let said = history
        .entries
        .iter()
        .filter(|entry| entry.role == Role::User)
        .flat_map(|entry| &entry.parts);
    let texts = said.filter_map(|part| match part.kind {
        Kind::Text(text) => Some(text),
        _ => None,
    });
    texts
        .flat_map(str::chars)
        .filter(|c| !c.is_whitespace())
        .collect()
}
