//! `reqc show`: a merged profile, with the origin of each value.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::args::Format;
use super::options::{Opened, Options};
use super::{Failure, Outcome, Status, Terminal};
use crate::resolve::{Merged, MergedTable};
use crate::text::{Text, cut, text};
use crate::toml::{Kind, Node};

pub(super) fn run(options: &Options, agent: &str, terminal: &mut Terminal) -> Outcome {
    let opened = options.open_one(agent)?;
    let id = opened.profile(agent)?;
    let resolved = opened.compiler.resolve(id).ok_or_else(|| {
        Failure::new(format!("`{agent}` cannot be resolved"))
            .help("`reqc check` shows what is wrong with it or its ancestors")
    })?;
    if options.format == Format::Json {
        terminal.json(&Value::Object(table_json(&opened, &resolved.merged)));
        return Ok(Status::Clean);
    }
    let names: Vec<&str> = resolved
        .chain
        .iter()
        .map(|profile| profile.name.value.as_ref())
        .collect();
    let mut shown = text!("# {}\n", names.join(" ← "));
    write_table(&opened, &resolved.merged, &Text::new(), &mut shown);
    terminal.text(&shown);
    Ok(Status::Clean)
}

/// Writes plain values first, then tables under headers, as TOML requires.
fn write_table(opened: &Opened, table: &MergedTable<'_>, path: &Text, shown: &mut Text) {
    for (key, merged) in table.iter().filter(|(_, merged)| merged.table().is_none()) {
        let origin = origin(opened, merged);
        shown.push(&text!(
            "{} = {}\n    # {}\n",
            quote_key(key),
            inline(merged.node),
            origin
        ));
    }
    for (key, merged) in table.iter() {
        let Some(inner) = merged.table() else {
            continue;
        };
        let path = if path.is_empty() {
            quote_key(key)
        } else {
            text!("{}.{}", path, quote_key(key))
        };
        shown.push(&text!("\n[{}]\n", path));
        write_table(opened, inner, &path, shown);
    }
}

fn origin(opened: &Opened, merged: &Merged<'_>) -> String {
    let sources = opened.compiler.sources();
    let mut origin = sources.describe(merged.span());
    for level in &merged.overrode {
        let place = sources.describe(crate::source::Span::new(
            level.file,
            level.node.span.clone(),
        ));
        let _ = write!(origin, "; was {} at {place}", cut(&inline(level.node), 41));
    }
    origin
}

fn table_json(opened: &Opened, table: &MergedTable<'_>) -> Map<String, Value> {
    let members = table.iter().map(|(key, merged)| {
        let value = match merged.table() {
            Some(inner) => Value::Object(table_json(opened, inner)),
            None => {
                json!({"value": inline(merged.node).as_str(), "origin": origin(opened, merged)})
            }
        };
        (key.to_owned(), value)
    });
    members.collect()
}

/// Returns a value on one line; long strings are shortened.
pub(super) fn inline(node: &Node) -> Text {
    match &node.kind {
        Kind::String(string) => Text::quoted(&cut(string.trim(), 201)),
        Kind::Integer(value) => text!("{}", value.to_string()),
        Kind::Float(value) => text!("{}", format!("{value:?}")),
        Kind::Boolean(value) => text!("{}", value.to_string()),
        Kind::Datetime(written) => text!("{}", written),
        Kind::Array(elements) => text!(
            "[{}]",
            Text::join(&elements.iter().map(inline).collect::<Vec<_>>(), ", ")
        ),
        Kind::Table(table) => {
            text!(
                "{{ {} }}",
                Text::join(
                    &table
                        .entries
                        .iter()
                        .map(|(key, node)| text!("{} = {}", quote_key(&key.name), inline(node)))
                        .collect::<Vec<_>>(),
                    ", "
                )
            )
        }
    }
}

fn quote_key(key: &str) -> Text {
    let bare = !key.is_empty()
        && key
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if bare {
        Text::line(key)
    } else {
        Text::quoted(&cut(key, 201))
    }
}
