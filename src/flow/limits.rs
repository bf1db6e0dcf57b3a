//! `wire-limits.toml`: what wire formats cannot carry.

use std::sync::LazyLock;

use crate::conversation::{ContentKind, KindSet};
use crate::provider::{ClientApi, WireFormat};
use crate::toml::{self, Kind, Table};

/// Something that a wire format, or what some client APIs make of it, has no place for.
#[derive(Debug)]
pub(crate) struct Limit {
    /// The wire formats.
    pub(crate) wires: Vec<WireFormat>,
    /// The client APIs of which it is known; empty for all.
    pub(crate) apis: Vec<ClientApi>,
    /// What they cannot carry.
    pub(crate) kinds: Vec<ContentKind>,
    /// Why, as a sentence.
    pub(crate) reason: String,
    /// Where that was found.
    pub(crate) source: String,
}

static FILE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/wire-limits.toml"));

static LIMITS: LazyLock<Vec<Limit>> = LazyLock::new(|| {
    let table = toml::parse(FILE).expect("`wire-limits.toml` is TOML");
    let Some(Kind::Array(entries)) = table.get("limit").map(|node| &node.kind) else { return Vec::new() };
    let tables = entries.iter().filter_map(|entry| match &entry.kind {
        Kind::Table(table) => Some(table),
        _ => None,
    });
    tables.map(Limit::read).collect()
});

/// Returns all limits, in the order of the file.
pub(crate) fn all() -> &'static [Limit] {
    &LIMITS
}

/// Returns the kinds of content that requests of a client API have no place for.
pub(crate) fn of(wire: WireFormat, api: ClientApi) -> KindSet {
    let mut kinds = KindSet::default();
    all()
        .iter()
        .filter(|limit| limit.holds(wire, api))
        .flat_map(|limit| &limit.kinds)
        .for_each(|kind| kinds.add(*kind));
    kinds
}

impl Limit {
    /// Returns `true` if it is one of requests of a client API.
    pub(crate) fn holds(&self, wire: WireFormat, api: ClientApi) -> bool {
        self.wires.contains(&wire) && (self.apis.is_empty() || self.apis.contains(&api))
    }

    fn read(table: &Table) -> Limit {
        let named = |key: &str, name: &str| format!("`{name}` in `{key}` of `wire-limits.toml`");
        let wire = |name: &String| WireFormat::from_name(name).unwrap_or_else(|| panic!("{}", named("wires", name)));
        let api =
            |name: &String| ClientApi::from_name(name).unwrap_or_else(|| panic!("{}", named("client_apis", name)));
        let kind = |name: &String| ContentKind::from_name(name).unwrap_or_else(|| panic!("{}", named("kinds", name)));
        Limit {
            wires: texts(table, "wires").iter().map(wire).collect(),
            apis: texts(table, "client_apis").iter().map(api).collect(),
            kinds: texts(table, "kinds").iter().map(kind).collect(),
            reason: texts(table, "reason").concat(),
            source: texts(table, "source").concat(),
        }
    }
}

/// Returns the texts of a key: one, or a list of them.
fn texts(table: &Table, key: &str) -> Vec<String> {
    match table.get(key).map(|node| &node.kind) {
        Some(Kind::String(text)) => vec![text.clone()],
        Some(Kind::Array(elements)) => {
            let texts = elements.iter().filter_map(|element| match &element.kind {
                Kind::String(text) => Some(text.clone()),
                _ => None,
            });
            texts.collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_has_a_reason_and_a_source() {
        assert!(all().len() > 5);
        for limit in all() {
            assert!(!limit.wires.is_empty() && !limit.kinds.is_empty(), "{limit:?}");
            assert!(!limit.reason.is_empty() && !limit.source.is_empty(), "{limit:?}");
        }
    }
}
