//! Maps pointers to locations in a string, including locations inside strings that contain JSON.

use std::collections::HashMap;
use std::ops::Range;

use crate::json::{self, Pointer, Tree, TreeKind};
use crate::source::OffsetMap;

/// The maximum length of a value that a finding covers, in bytes.
const LONGEST: usize = 4096;

/// The locations of the values in a string.
pub(crate) struct Places<'t> {
    text: &'t str,
    tree: Option<Tree>,
    /// The strings that contain JSON, by their locations.
    strings: HashMap<Pointer, Option<(Tree, OffsetMap)>>,
}

impl<'t> Places<'t> {
    pub(crate) fn new(text: &'t str) -> Places<'t> {
        Places {
            text,
            tree: json::parse_tree(text).ok(),
            strings: HashMap::new(),
        }
    }

    /// Returns the location of a value or of its key. If the value is missing, returns the location
    /// of its nearest ancestor. A container is shown by its bracket, and a long string by its
    /// beginning.
    pub(crate) fn of(
        &mut self,
        string: Option<&Pointer>,
        at: &Pointer,
        is_key: bool,
    ) -> Range<usize> {
        let Some(string) = string else {
            return self
                .tree
                .as_ref()
                .map_or(0..0, |tree| place(tree, at, is_key));
        };
        match self.within(string) {
            Some((tree, map)) => map.to_source_range(place(tree, at, is_key)),
            None => self.of(None, string, false),
        }
    }

    /// Returns the location of a mistake in a string that should contain JSON.
    pub(crate) fn of_mistake(&self, string: &Pointer, range: Range<usize>) -> Range<usize> {
        let literal = self
            .tree
            .as_ref()
            .and_then(|tree| tree.locate(string))
            .map_or(0..0, |tree| tree.span.clone());
        let range =
            json::decode_map(&self.text[literal.clone()], literal.start).to_source_range(range);
        range.start..range.end.min(range.start + LONGEST)
    }

    /// Returns the location of a string.
    pub(crate) fn literal(&self, string: &Pointer) -> Option<Range<usize>> {
        Some(self.tree.as_ref()?.locate(string)?.span.clone())
    }

    fn within(&mut self, string: &Pointer) -> Option<&(Tree, OffsetMap)> {
        if !self.strings.contains_key(string) {
            let read = self.literal(string).and_then(|literal| {
                let text: String = serde_json::from_str(&self.text[literal.clone()]).ok()?;
                let tree = json::parse_tree(&text).ok()?;
                Some((
                    tree,
                    json::decode_map(&self.text[literal.clone()], literal.start),
                ))
            });
            self.strings.insert(string.clone(), read);
        }
        self.strings.get(string)?.as_ref()
    }
}

/// Returns the location of a value in a tree or, if the value is missing, of its nearest ancestor.
fn place(tree: &Tree, at: &Pointer, is_key: bool) -> Range<usize> {
    if let Some(key) = is_key.then(|| key(tree, at)).flatten() {
        return key.start..key.end.min(key.start + LONGEST);
    }
    match (tree.locate(at), at.parent()) {
        (Some(found), _) => shown(found),
        (None, Some(parent)) => place(tree, &parent, false),
        (None, None) => shown(tree),
    }
}

fn key(tree: &Tree, at: &Pointer) -> Option<Range<usize>> {
    tree.locate(&at.parent()?)?.key_span(&at.tokens().last()?)
}

fn shown(tree: &Tree) -> Range<usize> {
    let Range { start, end } = tree.span;
    match tree.kind {
        TreeKind::Scalar => start..end.min(start + LONGEST),
        TreeKind::Array(_) | TreeKind::Object(_) => start..start + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pointer(text: &str) -> Pointer {
        Pointer::parse(text)
    }

    #[test]
    fn values_keys_and_what_is_missing() {
        let text = r#"{"a": {"b": 1}, "c": [true]}"#;
        let mut places = Places::new(text);
        assert_eq!(&text[places.of(None, &pointer("/a/b"), false)], "1");
        assert_eq!(&text[places.of(None, &pointer("/a/b"), true)], "\"b\"");
        assert_eq!(places.of(None, &pointer("/a/none/deeper"), false), 6..7);
        assert_eq!(places.of(None, &pointer("/none"), false), 0..1);
    }

    #[test]
    fn places_in_strings_are_those_of_the_file() {
        let text = r#"{"text": "{\"a\":\u0020[\"\u00e9\", 1]}"}"#;
        let mut places = Places::new(text);
        let string = pointer("/text");
        assert_eq!(
            &text[places.of(Some(&string), &pointer("/a/0"), false)],
            r#"\"\u00e9\""#
        );
        assert_eq!(
            &text[places.of(Some(&string), &pointer("/a/1"), false)],
            "1"
        );
        assert_eq!(
            &text[places.of(Some(&string), &pointer("/a"), true)],
            r#"\"a\""#
        );
    }
}
