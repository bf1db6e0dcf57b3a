//! The values in a body that templates rendered, and an index of their locations, which avoids a
//! linear search.

use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use foldhash::{HashMap, HashSet};

use crate::json::Pointer;
use crate::render::{Recording, TemplateId, is_template};
use crate::source::{FileId, Span};
use crate::toml::{Kind, Node};

/// A value in a body that a template rendered.
#[derive(Debug, Clone)]
pub struct Splice {
    /// The location in the body.
    pub pointer: Pointer,
    /// The template's literal in its TOML file.
    pub literal: Span,
    /// The template that rendered the value.
    pub template: TemplateId,
    /// The cost in units of work.
    pub(super) cost: u64,
    /// The output of the template, with its writers.
    pub(super) recording: Arc<Recording>,
    /// `true` if the output contains the placeholder in place of the system prompt.
    pub(super) is_hollow: bool,
}

impl PartialEq for Splice {
    /// Compares the locations and templates, because the same template writes the same value in the
    /// same way.
    fn eq(&self, other: &Splice) -> bool {
        (&self.pointer, self.literal, self.template)
            == (&other.pointer, other.literal, other.template)
    }
}

/// The splices of one body.
pub(super) struct SpliceIndex<'b> {
    splices: &'b [Splice],
    by_pointer: HashMap<&'b str, usize>,
    literals: HashSet<Span>,
    /// For each list in the profile, the indices of the elements that are in the body.
    elements: RefCell<HashMap<Span, Vec<usize>>>,
}

impl<'b> SpliceIndex<'b> {
    pub(super) fn new(splices: &'b [Splice]) -> SpliceIndex<'b> {
        let by_pointer = splices
            .iter()
            .enumerate()
            .map(|(index, splice)| (splice.pointer.as_str(), index));
        let literals = splices.iter().map(|splice| splice.literal);
        SpliceIndex {
            splices,
            by_pointer: by_pointer.collect(),
            literals: literals.collect(),
            elements: RefCell::default(),
        }
    }

    /// Finds the splice that contains a pointer, with its index and the location in its output.
    pub(super) fn around(&self, pointer: &Pointer) -> Option<(usize, &'b Splice, Pointer)> {
        let mut around = Some(pointer.as_str());
        while let Some(at) = around {
            if let Some(&index) = self.by_pointer.get(at) {
                let splice = &self.splices[index];
                return Some((index, splice, pointer.below(&splice.pointer)?));
            }
            around = at.rfind('/').map(|end| &at[..end]);
        }
        None
    }

    /// Returns the element of a profile's list that produced an element of the body. Templates
    /// without output produced no element.
    pub(super) fn element<'n>(
        &self,
        file: FileId,
        list: &'n Node,
        index: usize,
    ) -> Option<&'n Node> {
        let Kind::Array(elements) = &list.kind else {
            return None;
        };
        let is_there = |node: &Node| {
            let is_template = matches!(&node.kind, Kind::String(text) if is_template(text));
            !is_template || self.literals.contains(&Span::new(file, node.span.clone()))
        };
        let mut known = self.elements.borrow_mut();
        let there = match known.entry(Span::new(file, list.span.clone())) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(free) => {
                let there = elements
                    .iter()
                    .enumerate()
                    .filter(|(_, node)| is_there(node));
                free.insert(there.map(|(at, _)| at).collect())
            }
        };
        elements.get(*there.get(index)?)
    }
}
