//! Converts `model-families.toml` to JSON, which the program parses in a fraction of the time.

use serde_json::{Value, json};
use toml_edit::{Document, Item};

/// Returns the file as JSON, in which dates are strings.
pub(crate) fn json(text: &str) -> String {
    let document = Document::parse(text);
    let document = document.unwrap_or_else(|error| panic!("model-families.toml: {error}"));
    of_item(document.as_item()).to_string()
}

fn of_item(item: &Item) -> Value {
    match item {
        Item::None => Value::Null,
        Item::Value(value) => of_value(value),
        Item::Table(table) => table
            .iter()
            .map(|(key, item)| (key.to_owned(), of_item(item)))
            .collect(),
        Item::ArrayOfTables(tables) => tables
            .iter()
            .map(|table| of_item(&Item::Table(table.clone())))
            .collect(),
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
        Toml::InlineTable(table) => table
            .iter()
            .map(|(key, value)| (key.to_owned(), of_value(value)))
            .collect(),
    }
}
