//! Converts `model-families.toml` to JSON, which the program parses in a fraction of the time.

use serde_json::{Value, json};
use toml_edit::{Document, Item, TableLike};

/// Returns the file as JSON, in which dates are strings.
pub(crate) fn json(text: &str) -> String {
    let document = Document::parse(text);
    let document = document.unwrap_or_else(|error| panic!("model-families.toml: {error}"));
    of_table(document.as_table()).to_string()
}

fn of_table(table: &dyn TableLike) -> Value {
    table
        .iter()
        .map(|(key, item)| (key.to_owned(), of_item(item)))
        .collect()
}

fn of_item(item: &Item) -> Value {
    match item {
        Item::None => unreachable!("a parsed document has no empty items"),
        Item::Value(value) => of_value(value),
        Item::Table(table) => of_table(table),
        Item::ArrayOfTables(tables) => tables.iter().map(|table| of_table(table)).collect(),
    }
}

fn of_value(value: &toml_edit::Value) -> Value {
    use toml_edit::Value as Toml;
    match value {
        Toml::String(text) => json!(text.value()),
        Toml::Integer(number) => json!(number.value()),
        Toml::Float(number) => json!(number.value()),
        Toml::Boolean(is) => json!(is.value()),
        Toml::Datetime(date) => json!(date.value().to_string()),
        Toml::Array(elements) => elements.iter().map(of_value).collect(),
        Toml::InlineTable(table) => of_table(table),
    }
}
