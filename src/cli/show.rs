//! `reqc show`: a merged profile, each value with its origin.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::args::Format;
use super::options::{Opened, Options};
use super::{Failure, Outcome, Status, Terminal};
use crate::resolve::{Merged, MergedTable};
use crate::toml::{Kind, Node};

pub(super) fn run(options: &Options, agent: &str, terminal: &mut Terminal) -> Outcome {
    let opened = options.open()?;
    let id = opened.profile(agent)?;
    let resolved = opened.compiler.resolve(id).ok_or_else(|| {
        Failure::new(format!("`{agent}` cannot be resolved"))
            .help("`reqc check` shows what is wrong with it or its ancestors")
    })?;
    if options.format == Format::Json {
        let value = Value::Object(table_json(&opened, &resolved.merged));
        terminal.text(&format!("{value:#}\n"));
        return Ok(Status::Clean);
    }
    let names: Vec<&str> = resolved.chain.iter().map(|profile| profile.name.value.as_ref()).collect();
    let mut text = format!("# {}\n", names.join(" ← "));
    write_table(&opened, &resolved.merged, "", &mut text);
    terminal.text(&text);
    Ok(Status::Clean)
}

/// Plain values first, tables under headers after them, as TOML wants it.
fn write_table(opened: &Opened, table: &MergedTable<'_>, path: &str, text: &mut String) {
    for (key, merged) in table.iter().filter(|(_, merged)| merged.table().is_none()) {
        let _ = writeln!(text, "{} = {}\n    # {}", quote_key(key), inline(merged.node), origin(opened, merged));
    }
    for (key, merged) in table.iter() {
        let Some(inner) = merged.table() else { continue };
        let path = if path.is_empty() { quote_key(key) } else { format!("{path}.{}", quote_key(key)) };
        let _ = writeln!(text, "\n[{path}]");
        write_table(opened, inner, &path, text);
    }
}

fn origin(opened: &Opened, merged: &Merged<'_>) -> String {
    let sources = opened.compiler.sources();
    let mut text = sources.describe(merged.span());
    for level in &merged.overrode {
        let place = sources.describe(crate::source::Span::new(level.file, level.node.span.clone()));
        let _ = write!(text, "; was {} at {place}", shorten(&inline(level.node), 40));
    }
    text
}

fn table_json(opened: &Opened, table: &MergedTable<'_>) -> Map<String, Value> {
    let members = table.iter().map(|(key, merged)| {
        let value = match merged.table() {
            Some(inner) => Value::Object(table_json(opened, inner)),
            None => json!({"value": inline(merged.node), "origin": origin(opened, merged)}),
        };
        (key.to_owned(), value)
    });
    members.collect()
}

/// A value on one line; long strings are cut.
pub(super) fn inline(node: &Node) -> String {
    match &node.kind {
        Kind::String(text) => Value::String(shorten(text.trim(), 200)).to_string(),
        Kind::Integer(value) => value.to_string(),
        Kind::Float(value) => format!("{value:?}"),
        Kind::Boolean(value) => value.to_string(),
        Kind::Datetime(text) => text.clone(),
        Kind::Array(elements) => format!("[{}]", elements.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Kind::Table(table) => {
            let members: Vec<String> = table
                .entries
                .iter()
                .map(|(key, node)| format!("{} = {}", quote_key(&key.name), inline(node)))
                .collect();
            format!("{{ {} }}", members.join(", "))
        }
    }
}

fn quote_key(key: &str) -> String {
    let bare = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if bare { key.to_owned() } else { Value::from(key).to_string() }
}

fn shorten(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
