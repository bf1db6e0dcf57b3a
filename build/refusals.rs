//! Reads the refusal dictionary. `tests/refusals.rs` checks its form in detail.

use toml_edit::{ArrayOfTables, Document, Item, Table};

use crate::columns::{Columns, File};

/// Reads the files of the dictionary: the path and the text of each.
pub(crate) fn read(files: &[(String, String)]) -> Columns {
    let mut columns = Columns::default();
    for (path, content) in files {
        let document = Document::parse(content.as_str());
        let document = document.unwrap_or_else(|error| panic!("{path}: {error}"));
        let file = document.as_table();
        let entries = file.get("refusal").and_then(Item::as_array_of_tables);
        columns.files.push(File {
            provider: required(path, file, "provider"),
            name: required(path, file, "name"),
            hosts: texts(file, "hosts"),
            codes: texts(file, "codes"),
            marks: texts(file, "marks"),
            entries: entries.map_or(0, ArrayOfTables::len),
        });
        for entry in entries.into_iter().flatten() {
            columns.sentence.push(required(path, entry, "sentence"));
            columns.same.push(texts(entry, "same"));
            columns
                .status
                .push(entry.get("status").and_then(Item::as_integer));
            columns.kind.push(text(entry, "type"));
            columns.wraps.push(
                entry
                    .get("wraps")
                    .and_then(Item::as_bool)
                    .unwrap_or_default(),
            );
            columns.rule.push(text(entry, "rule"));
            columns.unruled.push(text(entry, "unruled"));
            columns.meaning.push(required(path, entry, "meaning"));
            columns.remedy.push(required(path, entry, "remedy"));
            columns.seen.push(required(path, entry, "seen"));
            columns.sources.push(texts(entry, "sources"));
        }
    }
    columns
}

fn text(table: &Table, key: &str) -> Option<String> {
    table.get(key).and_then(Item::as_str).map(str::to_owned)
}

fn required(path: &str, table: &Table, key: &str) -> String {
    text(table, key).unwrap_or_else(|| panic!("{path}: an entry has no `{key}`: {table:?}"))
}

fn texts(table: &Table, key: &str) -> Vec<String> {
    let elements = table
        .get(key)
        .and_then(Item::as_array)
        .into_iter()
        .flatten();
    elements
        .filter_map(|element| element.as_str())
        .map(str::to_owned)
        .collect()
}
