//! Merges tables deeply, and records which values were overridden.

use foldhash::fast::RandomState;
use indexmap::IndexMap;

use super::rules;
use crate::diag::Diagnostic;
use crate::source::{FileId, Span};
use crate::toml::{Key, Kind, Node, Table};

/// A table merged from several levels. The parent's keys come first, followed by those that the
/// child adds.
#[derive(Debug, Clone, Default)]
pub struct MergedTable<'r> {
    entries: IndexMap<&'r str, Merged<'r>, RandomState>,
    /// The inherited keys that were removed, each with the location of its `unset`.
    unset: Vec<(String, Span)>,
}

/// A merged value.
#[derive(Debug, Clone)]
pub struct Merged<'r> {
    /// The file of the last level that sets the value.
    pub file: FileId,
    /// The key as written in that file.
    pub key: &'r Key,
    /// The value as written in that file; for a merged table, only that level's part.
    pub node: &'r Node,
    /// The merged members, if the value is a table.
    children: Option<MergedTable<'r>>,
    /// The overridden values, nearest level first.
    pub overrode: Vec<Level<'r>>,
    /// `true` if the value was removed, but not yet [swept](MergedTable::sweep).
    is_removed: bool,
}

/// A value at one level of a profile chain.
#[derive(Debug, Clone, Copy)]
pub struct Level<'r> {
    /// The file of the profile at this level.
    pub file: FileId,
    /// The key as written at this level.
    pub key: &'r Key,
    /// The value as written at this level.
    pub node: &'r Node,
}

impl<'r> Merged<'r> {
    /// Returns the location of the value.
    pub fn span(&self) -> Span {
        Span::new(self.file, self.node.span.clone())
    }

    /// Returns the location of the key.
    pub fn key_span(&self) -> Span {
        Span::new(self.file, self.key.span.clone())
    }

    /// Returns the level at which a merged table begins. Starting at the nearest level, this is the
    /// last level that can be reached through levels accepted by `takes`. For any other value,
    /// returns the nearest level.
    pub fn beginning(&self, takes: impl Fn(FileId) -> bool) -> Level<'r> {
        let nearest = Level {
            file: self.file,
            key: self.key,
            node: self.node,
        };
        let farther = self
            .overrode
            .iter()
            .take_while(|level| matches!(level.node.kind, Kind::Table(_)) && takes(level.file))
            .filter(|_| self.children.is_some());
        farther.last().copied().unwrap_or(nearest)
    }

    /// Returns the locations of the strings in the value, as they are after merging.
    pub(crate) fn strings(&self, found: &mut Vec<Span>) {
        match &self.children {
            Some(children) => children
                .iter()
                .for_each(|(_, member)| member.strings(found)),
            None => strings_of(self.node, self.file, found),
        }
    }

    /// Returns the merged members, if the value is a table.
    pub fn table(&self) -> Option<&MergedTable<'r>> {
        self.children.as_ref()
    }
}

fn strings_of(node: &Node, file: FileId, found: &mut Vec<Span>) {
    match &node.kind {
        Kind::String(_) => found.push(Span::new(file, node.span.clone())),
        Kind::Array(elements) => elements
            .iter()
            .for_each(|element| strings_of(element, file, found)),
        Kind::Table(table) => table
            .entries
            .iter()
            .for_each(|(_, member)| strings_of(member, file, found)),
        Kind::Integer(_) | Kind::Float(_) | Kind::Boolean(_) | Kind::Datetime(_) => {}
    }
}

impl<'r> MergedTable<'r> {
    /// Returns a member.
    pub fn get(&self, key: &str) -> Option<&Merged<'r>> {
        self.entries.get(key).filter(|merged| !merged.is_removed)
    }

    /// Returns the members in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'r str, &Merged<'r>)> {
        self.entries
            .iter()
            .filter(|(_, merged)| !merged.is_removed)
            .map(|(key, merged)| (*key, merged))
    }

    /// Returns `true` if the table has no members.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Merges a level into this table. The values of the new level override the existing ones.
    ///
    /// Tables are merged key by key at any depth. All other values, including arrays, are replaced
    /// as a whole. Merging an empty table changes nothing, and merging is associative.
    pub fn merge(&mut self, file: FileId, table: &'r Table, findings: &mut Vec<Diagnostic>) {
        for (key, node) in &table.entries {
            match self.entries.get_mut(key.name.as_str()) {
                Some(known) => known.override_with(file, key, node, findings),
                None => drop(self.entries.insert(&key.name, Merged::new(file, key, node))),
            }
        }
    }

    /// Removes the value at `path` inside the member `root`, because of the `unset` at `by`.
    /// Returns `false` if there is no such value. A single call to [`sweep`](MergedTable::sweep)
    /// frees the memory of all removed values.
    pub fn remove(&mut self, root: &str, path: &[String], by: Span) -> bool {
        let Some(children) = self.there(root).and_then(|merged| merged.children.as_mut()) else {
            return false;
        };
        match path {
            [] => false,
            [last] => children.take_out(last, by),
            [first, rest @ ..] => children.remove(first, rest, by),
        }
    }

    fn take_out(&mut self, key: &str, by: Span) -> bool {
        let Some(merged) = self.there(key) else {
            return false;
        };
        merged.is_removed = true;
        self.unset.push((key.to_owned(), by));
        true
    }

    /// Returns the location of the `unset` that removed a member; `None` if it was not removed, or
    /// if a later level set it again.
    pub fn unset_at(&self, key: &str) -> Option<Span> {
        if self.get(key).is_some() {
            return None;
        }
        self.unset
            .iter()
            .rev()
            .find(|(name, _)| name == key)
            .map(|(_, by)| *by)
    }

    fn there(&mut self, key: &str) -> Option<&mut Merged<'r>> {
        self.entries
            .get_mut(key)
            .filter(|merged| !merged.is_removed)
    }

    /// Frees the memory of removed values.
    pub fn sweep(&mut self) {
        self.entries.retain(|_, merged| !merged.is_removed);
        self.entries
            .values_mut()
            .filter_map(|merged| merged.children.as_mut())
            .for_each(MergedTable::sweep);
    }
}

impl<'r> Merged<'r> {
    fn new(file: FileId, key: &'r Key, node: &'r Node) -> Merged<'r> {
        let children = match &node.kind {
            Kind::Table(table) => {
                let entries = table.entries.iter();
                let entries =
                    entries.map(|(key, node)| (key.name.as_str(), Merged::new(file, key, node)));
                Some(MergedTable {
                    entries: entries.collect(),
                    unset: Vec::new(),
                })
            }
            _ => None,
        };
        Merged {
            file,
            key,
            node,
            children,
            overrode: Vec::new(),
            is_removed: false,
        }
    }

    fn override_with(
        &mut self,
        file: FileId,
        key: &'r Key,
        node: &'r Node,
        findings: &mut Vec<Diagnostic>,
    ) {
        let before = Level {
            file: self.file,
            key: self.key,
            node: self.node,
        };
        match (&mut self.children, &node.kind) {
            (Some(children), Kind::Table(table)) => children.merge(file, table, findings),
            (None, kind) if !matches!(kind, Kind::Table(_)) => {
                if before.node.says_the_same(node) {
                    findings.push(repeated(file, key, before));
                }
            }
            (children, _) => {
                let (was, becomes) = if children.is_some() {
                    ("a table", node.describe())
                } else {
                    (before.node.describe(), "a table")
                };
                let message = format!("`{}` changes from {was} to {becomes}", key.name);
                let finding = Diagnostic::new(
                    &rules::KIND_CHANGE,
                    Span::new(file, node.span.clone()),
                    message,
                );
                let finding = finding.related(
                    Span::new(before.file, before.node.span.clone()),
                    "inherited from here",
                );
                findings.push(finding.help("if this is intended, list the path in `unset`"));
                *children = Merged::new(file, key, node).children;
            }
        }
        self.overrode.insert(0, before);
        (self.file, self.key, self.node) = (file, key, node);
    }
}

/// Returns the finding about a value that equals the inherited value.
fn repeated(file: FileId, key: &Key, inherited: Level<'_>) -> Diagnostic {
    let message = format!(
        "`{}` repeats an inherited value",
        crate::text::cut(&key.name, 60)
    );
    Diagnostic::new(&rules::REPEATED, Span::new(file, key.span.clone()), message)
        .related(
            Span::new(inherited.file, inherited.node.span.clone()),
            "inherited from here",
        )
        .help("remove it: the value stays the same")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{SourceText, Sources};
    use proptest::prelude::*;

    fn merge(levels: &[&Table]) -> (serde_json::Value, usize) {
        let file = Sources::default().add("x", SourceText::from_bytes(b"").expect("empty"));
        let mut findings = Vec::new();
        let mut merged = MergedTable::default();
        levels
            .iter()
            .for_each(|level| merged.merge(file, level, &mut findings));
        (to_json(&merged), findings.len())
    }

    fn to_json(table: &MergedTable<'_>) -> serde_json::Value {
        let members = table.iter().map(|(key, merged)| {
            let value = match (merged.table(), &merged.node.kind) {
                (Some(children), _) => to_json(children),
                (None, kind) => format!("{kind:?}").into(),
            };
            (key.to_owned(), value)
        });
        serde_json::Value::Object(members.collect())
    }

    fn parse(text: &str) -> Table {
        crate::toml::parse(text).expect("valid")
    }

    #[test]
    fn tables_merge_and_the_rest_is_replaced() {
        let parent = parse("a = 1\nlist = [1, 2]\n[t]\nx = 1\ny = 2\n");
        let child = parse("new = 0\nlist = [3]\n[t]\ny = 9\n");
        let (merged, findings) = merge(&[&parent, &child]);
        assert_eq!(
            merged
                .as_object()
                .expect("a table")
                .keys()
                .collect::<Vec<_>>(),
            ["a", "list", "t", "new"]
        );
        assert_eq!(merged["t"]["y"], "Integer(9)");
        assert_eq!(merged["t"]["x"], "Integer(1)");
        assert_eq!(findings, 0);
        assert_eq!(merge(&[&parent, &parse("t = 1")]).1, 1);
        assert_eq!(merge(&[&parent, &parse("a.b = 1")]).1, 1);
    }

    fn table() -> impl Strategy<Value = Table> {
        let leaf = (0..4i64).prop_map(|value| Node {
            kind: Kind::Integer(value),
            span: 0..0,
        });
        let node = leaf.prop_recursive(3, 16, 3, |inner| {
            prop::collection::btree_map("[a-c]", inner, 0..3).prop_map(|entries| Node {
                kind: Kind::Table(of(entries)),
                span: 0..0,
            })
        });
        prop::collection::btree_map("[a-c]", node, 0..3).prop_map(of)
    }

    fn of(entries: std::collections::BTreeMap<String, Node>) -> Table {
        Table {
            entries: entries
                .into_iter()
                .map(|(name, node)| (Key { name, span: 0..0 }, node))
                .collect(),
        }
    }

    proptest! {
        #[test]
        fn the_empty_table_is_the_identity(table in table()) {
            let empty = Table::default();
            let alone = merge(&[&table]).0;
            prop_assert_eq!(&merge(&[&empty, &table]).0, &alone);
            prop_assert_eq!(&merge(&[&table, &empty]).0, &alone);
            prop_assert_eq!(&merge(&[&table, &table]).0, &alone);
        }

        #[test]
        fn the_last_level_wins_at_every_leaf(a in table(), b in table()) {
            fn holds(level: &serde_json::Value, merged: &serde_json::Value) -> bool {
                match level {
                    serde_json::Value::Object(members) => members.iter().all(|(key, value)| holds(value, &merged[key])),
                    leaf => leaf == merged,
                }
            }
            let merged = merge(&[&a, &b]).0;
            prop_assert!(holds(&merge(&[&b]).0, &merged));
        }
    }
}
