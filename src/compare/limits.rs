//! Reads the limits of wire formats from `wire-limits.toml`.

use std::sync::LazyLock;

use crate::conversation::{ContentKind, KindSet};
use crate::provider::{ClientApi, WireFormat};
use crate::toml::{self, Kind, Table};

/// Content that a wire format cannot express, at all or for some client APIs that use it.
#[derive(Debug)]
pub(crate) struct Limit {
    /// The wire formats.
    pub(crate) wires: Vec<WireFormat>,
    /// The client APIs to which the limit is known to apply; empty for all.
    pub(crate) apis: Vec<ClientApi>,
    /// The kinds of content that the wire formats cannot express.
    pub(crate) kinds: Vec<ContentKind>,
    /// `true` if the wire formats cannot express cache breakpoints, which are not content.
    is_without_cache_marks: bool,
    /// The reason, as a sentence.
    pub(crate) reason: String,
    /// The source of the fact, such as a file in an SDK or an API document.
    pub(crate) source: String,
}

static FILE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/wire-limits.toml"));

static LIMITS: LazyLock<Vec<Limit>> = LazyLock::new(|| {
    let table = toml::parse(FILE).expect("`wire-limits.toml` is TOML");
    table.tables("limit").map(Limit::read).collect()
});

/// Returns all limits, in file order.
pub(crate) fn all() -> &'static [Limit] {
    &LIMITS
}

/// Returns the kinds of content that requests to a client API cannot contain.
pub(crate) fn of(wire: WireFormat, api: ClientApi) -> KindSet {
    let mut kinds = KindSet::default();
    all()
        .iter()
        .filter(|limit| limit.holds(wire, api))
        .flat_map(|limit| &limit.kinds)
        .for_each(|kind| kinds.add(*kind));
    kinds
}

/// Returns why a wire format cannot express a kind of content with any client API; `None` if it
/// can.
pub(crate) fn reason(wire: WireFormat, kind: ContentKind) -> Option<&'static str> {
    let mut limits = of_all_apis(wire);
    limits
        .find(|limit| limit.kinds.contains(&kind))
        .map(|limit| &*limit.reason)
}

/// Returns why a wire format cannot express cache breakpoints; `None` if it can.
pub(crate) fn reason_against_cache_marks(wire: WireFormat) -> Option<&'static str> {
    let mut limits = of_all_apis(wire);
    limits
        .find(|limit| limit.is_without_cache_marks)
        .map(|limit| &*limit.reason)
}

fn of_all_apis(wire: WireFormat) -> impl Iterator<Item = &'static Limit> {
    all()
        .iter()
        .filter(move |limit| limit.apis.is_empty() && limit.wires.contains(&wire))
}

impl Limit {
    /// Returns `true` if the limit applies to requests to a client API.
    pub(crate) fn holds(&self, wire: WireFormat, api: ClientApi) -> bool {
        self.wires.contains(&wire) && (self.apis.is_empty() || self.apis.contains(&api))
    }

    fn read(table: &Table) -> Limit {
        let text = |key: &str| table.text(key).unwrap_or_default().to_owned();
        Limit {
            wires: table
                .texts("wires")
                .iter()
                .map(|name| {
                    WireFormat::from_name(name)
                        .unwrap_or_else(|| panic!("{}", named("wires", name)))
                })
                .collect(),
            apis: table
                .texts("client_apis")
                .iter()
                .map(|name| {
                    ClientApi::from_name(name)
                        .unwrap_or_else(|| panic!("{}", named("client_apis", name)))
                })
                .collect(),
            kinds: table
                .texts("kinds")
                .iter()
                .map(|name| {
                    ContentKind::from_name(name)
                        .unwrap_or_else(|| panic!("{}", named("kinds", name)))
                })
                .collect(),
            is_without_cache_marks: matches!(
                table.get("cache_marks").map(|node| &node.kind),
                Some(Kind::Boolean(false))
            ),
            reason: text("reason"),
            source: text("source"),
        }
    }
}

fn named(key: &str, name: &str) -> String {
    format!("`{name}` in `{key}` of `wire-limits.toml`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_has_a_reason_and_a_source() {
        assert!(all().len() > 5);
        for limit in all() {
            assert!(!limit.wires.is_empty(), "{limit:?}");
            assert!(
                !limit.kinds.is_empty() || limit.is_without_cache_marks,
                "{limit:?}"
            );
            assert!(
                !limit.reason.is_empty() && !limit.source.is_empty(),
                "{limit:?}"
            );
        }
    }
}
