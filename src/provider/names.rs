//! The names that different APIs use for the same thing, from `api-names.toml`.

use std::sync::LazyLock;

use super::WireFormat;
use crate::toml::{self, Kind, Table};

/// The names for one setting, other field, or value.
#[derive(Debug)]
pub(crate) struct Synonyms {
    /// The names that APIs use.
    pub(crate) names: Vec<String>,
    /// These names, and others that are recognised but never suggested, in the form that [`plain`]
    /// returns.
    recognised: Vec<String>,
    /// A name for the setting, if its values mean the same in all APIs.
    pub(crate) meaning: Option<String>,
    /// Advice that replaces the names, for some wire formats.
    instead: Vec<(WireFormat, String)>,
    /// Advice for wire formats that have none of the names.
    pub(crate) otherwise: Option<String>,
}

/// The names for settings, other fields, and values.
#[derive(Debug)]
struct Names {
    settings: Vec<Synonyms>,
    fields: Vec<Synonyms>,
    values: Vec<Synonyms>,
}

static FILE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/api-names.toml"));

static NAMES: LazyLock<Names> = LazyLock::new(|| {
    let table = toml::parse(FILE).expect("`api-names.toml` is TOML");
    Names {
        settings: read(&table, "setting"),
        fields: read(&table, "field"),
        values: read(&table, "value"),
    }
});

/// Returns the entries for a setting: a top-level field, or a field of an object that groups
/// settings.
pub(crate) fn of_setting(name: &str) -> impl Iterator<Item = &'static Synonyms> {
    having(&NAMES.settings, name)
}

/// Returns the entries for a field of a message, a part, a call or a tool.
pub(crate) fn of_field(name: &str) -> impl Iterator<Item = &'static Synonyms> {
    having(&NAMES.fields, name)
}

/// Returns the entries for a value, such as a role or a type.
pub(crate) fn of_value(value: &str) -> impl Iterator<Item = &'static Synonyms> {
    having(&NAMES.values, value)
}

fn having(all: &'static [Synonyms], name: &str) -> impl Iterator<Item = &'static Synonyms> {
    let name = plain(name);
    all.iter().filter(move |one| one.recognised.contains(&name))
}

/// Converts a name to a form that does not depend on its spelling: lower case, without underscores.
pub(crate) fn plain(name: &str) -> String {
    name.chars()
        .filter(|c| *c != '_')
        .flat_map(char::to_lowercase)
        .collect()
}

/// Returns all advice for individual wire formats.
#[cfg(test)]
pub(crate) fn all_advice() -> impl Iterator<Item = &'static (WireFormat, String)> {
    let Names {
        settings,
        fields,
        values,
    } = &*NAMES;
    let all = settings.iter().chain(fields).chain(values);
    all.flat_map(|synonyms| &synonyms.instead)
}

impl Synonyms {
    /// Returns the advice that replaces the names for a wire format, if there is any.
    pub(crate) fn instead(&self, wire: WireFormat) -> Option<&str> {
        let mut instead = self.instead.iter();
        instead
            .find(|(of, _)| *of == wire)
            .map(|(_, advice)| &**advice)
    }

    fn read(table: &Table) -> Synonyms {
        let text = |key: &str| table.text(key).map(str::to_owned);
        let (names, also) = (table.texts("names"), table.texts("also"));
        let recognised = names.iter().chain(&also).map(|name| plain(name));
        Synonyms {
            recognised: recognised.collect(),
            names,
            meaning: text("meaning"),
            instead: instead(table),
            otherwise: text("otherwise"),
        }
    }
}

fn read(table: &Table, key: &str) -> Vec<Synonyms> {
    table.tables(key).map(Synonyms::read).collect()
}

fn instead(table: &Table) -> Vec<(WireFormat, String)> {
    let Some(Kind::Table(advice)) = table.get("instead").map(|node| &node.kind) else {
        return Vec::new();
    };
    let names = advice.entries.iter().map(|(key, _)| &*key.name);
    let of_format = |name| {
        let wire = WireFormat::from_name(name);
        let wire = wire.unwrap_or_else(|| panic!("`{name}` in `api-names.toml`"));
        (wire, advice.text(name).unwrap_or_default().to_owned())
    };
    names.map(of_format).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_has_names_and_advice_has_words() {
        let Names {
            settings,
            fields,
            values,
        } = &*NAMES;
        for kind in [settings, fields, values] {
            assert!(kind.len() > 5);
            for entry in kind {
                assert!(!entry.recognised.is_empty(), "{entry:?}");
                let advice = entry.instead.iter().map(|(_, advice)| advice);
                let mut advice = advice.chain(&entry.otherwise);
                assert!(advice.all(|advice| !advice.is_empty()), "{entry:?}");
            }
        }
    }

    #[test]
    fn spelling_does_not_matter() {
        let meanings: Vec<&str> = ["max_tokens", "maxOutputTokens", "maxoutputtokens"]
            .into_iter()
            .filter_map(|name| of_setting(name).find_map(|one| one.meaning.as_deref()))
            .collect();
        assert_eq!(meanings, ["max-tokens"; 3]);
    }
}
