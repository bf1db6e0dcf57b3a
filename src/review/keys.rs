//! Finds the key to which each line of a TOML file belongs.
//!
//! The line of a table header belongs to a key that ends with [`HEADER`]. The elements of an array
//! of tables form one key, because only their index distinguishes them.

use std::ops::Range;
use std::sync::Arc;

use crate::toml::{self, Kind, Node, Table};

/// The character that marks the key of a table header.
const HEADER: char = ']';

/// Returns the key of each line; `None` for lines between keys. `starts` contains the offsets at
/// which lines begin, followed by the end of the last one. Returns `None` if the text is not TOML.
pub(super) fn of_lines(text: &str, starts: &[usize]) -> Option<Vec<Option<Arc<str>>>> {
    // Spans refer to normalised text.
    if text.starts_with('\u{feff}') || text.contains('\r') {
        return None;
    }
    let table = toml::parse(text).ok()?;
    let mut keys = Keys {
        starts,
        found: vec![None; starts.len().saturating_sub(1)],
    };
    keys.add_table("", &table);
    Some(keys.found)
}

struct Keys<'s> {
    starts: &'s [usize],
    found: Vec<Option<Arc<str>>>,
}

impl Keys<'_> {
    fn add_table(&mut self, prefix: &str, table: &Table) {
        for (key, node) in &table.entries {
            let path = if prefix.is_empty() {
                key.name.clone()
            } else {
                format!("{prefix}.{}", key.name)
            };
            match &node.kind {
                // Lines inside a value belong to the value's key.
                Kind::Table(inner) if is_outside(node, inner) => {
                    self.mark(&format!("{path}{HEADER}"), &node.span);
                    self.add_table(&path, inner);
                }
                Kind::Array(elements) if elements.iter().any(is_table_with_header) => {
                    elements
                        .iter()
                        .for_each(|element| self.mark_all(&path, element));
                }
                _ => self.mark(&path, &(key.span.start..node.span.end)),
            }
        }
    }

    fn mark_all(&mut self, path: &str, node: &Node) {
        self.mark(path, &node.span);
        if let Kind::Table(table) = &node.kind {
            for (key, inner) in &table.entries {
                self.mark(path, &(key.span.start..key.span.start));
                self.mark_all(path, inner);
            }
        }
    }

    fn mark(&mut self, path: &str, span: &Range<usize>) {
        let line = |offset: usize| {
            self.starts
                .partition_point(|start| *start <= offset)
                .saturating_sub(1)
        };
        let (first, last) = (line(span.start), line(span.end.max(span.start + 1) - 1));
        let path: Arc<str> = path.into();
        self.found
            .iter_mut()
            .take(last + 1)
            .skip(first)
            .for_each(|key| *key = Some(Arc::clone(&path)));
    }
}

/// Returns `true` if the content of a table is outside the table's own span, because the table has
/// a header or consists of dotted keys.
fn is_outside(node: &Node, table: &Table) -> bool {
    table
        .entries
        .iter()
        .any(|(key, _)| !(node.span.start <= key.span.start && key.span.end <= node.span.end))
}

fn is_table_with_header(node: &Node) -> bool {
    matches!(&node.kind, Kind::Table(table) if is_outside(node, table))
}

/// Returns the key itself if it belongs to a table header; otherwise `None`.
pub(super) fn header(key: &Arc<str>) -> Option<&Arc<str>> {
    key.ends_with(HEADER).then_some(key)
}

/// Returns `true` if a key belongs to the table with this header.
pub(super) fn is_in(key: &str, header: &str) -> bool {
    let table = header.trim_end_matches(HEADER);
    key.strip_prefix(table)
        .is_some_and(|rest| rest.starts_with(['.', HEADER]))
}

/// Returns a key in the notation used in files.
pub(super) fn shown(key: &str) -> &str {
    key.trim_end_matches(HEADER)
}
