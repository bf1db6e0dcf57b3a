//! `reqc list` and `reqc contexts`.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::args::Format;
use super::options::{Opened, Options};
use super::{Failure, Outcome, Status, Terminal};
use crate::provider::{ClientApi, WireFormat};
use crate::repo::LayerKind;
use crate::report::{fill, words};
use crate::resolve::{ProfileId, ResolvedProfile};
use crate::text::{Text, text};

pub(super) fn agents(
    options: &Options,
    all: bool,
    tag: Option<&str>,
    terminal: &mut Terminal,
) -> Outcome {
    let opened = options.open()?;
    options.selection(&opened, terminal)?;
    let unusable = opened
        .compiler
        .agents()
        .iter()
        .filter(|(_, usable)| !usable)
        .map(|(id, _)| *id);
    let unusable: HashSet<ProfileId> = unusable.collect();
    let rows: Vec<Row> = listed(&opened, all)?
        .into_iter()
        .map(|id| Row::of(&opened, id, &unusable))
        .collect();
    let rows: Vec<Row> = rows
        .into_iter()
        .filter(|row| tag.is_none_or(|tag| row.tags.iter().any(|it| it == tag)))
        .collect();
    if options.format == Format::Json {
        terminal.json(&rows.iter().map(Row::json).collect());
        return Ok(Status::Clean);
    }
    let table: Vec<[&str; 4]> = rows
        .iter()
        .map(|row| [row.name.as_str(), &row.wire, &row.instance, &row.state])
        .collect();
    terminal.text(&columns(["AGENT", "WIRE FORMAT", "PROVIDER", ""], &table));
    if rows.is_empty() {
        let none = tag.map_or(text!("no agents"), |tag| {
            text!("no agent has the tag `{}`", tag)
        });
        terminal.say(&text!(
            "{}; `--bundled` includes the bundled ones, `--all` also abstract and hidden ones",
            none
        ));
    }
    Ok(Status::Clean)
}

/// Returns the profiles to list, sorted by name.
fn listed(opened: &Opened, all: bool) -> Result<Vec<ProfileId>, Failure> {
    let compiler = &opened.compiler;
    let hierarchy = compiler.hierarchy();
    let chosen = &opened.selection()?.agents;
    let mut ids: Vec<ProfileId> = match all {
        true => hierarchy.ids().collect(),
        false => compiler
            .agents()
            .iter()
            .map(|(id, _)| *id)
            .filter(|id| !hierarchy.get(*id).hidden)
            .collect(),
    };
    let chosen: Option<HashSet<&ProfileId>> = chosen.as_ref().map(|chosen| chosen.iter().collect());
    ids.retain(|id| chosen.as_ref().is_none_or(|chosen| chosen.contains(id)));
    ids.sort_by(|a, b| {
        hierarchy
            .get(*a)
            .name
            .value
            .cmp(&hierarchy.get(*b).name.value)
    });
    Ok(ids)
}

/// Returns a profile's wire format, even if the profile is not compiled; `None` if the profile is
/// not complete enough to determine it.
fn wire(opened: &Opened, profile: &ResolvedProfile<'_>) -> Option<WireFormat> {
    let instance = opened
        .compiler
        .repo()
        .instances
        .get(profile.string("provider_instance")?.value)?;
    let api = ClientApi::from_name(&instance.client_api.value)?;
    Some(api.wire(profile.string("endpoint")?.value))
}

struct Row {
    name: String,
    wire: String,
    instance: String,
    state: String,
    description: String,
    tags: Vec<String>,
    file: String,
    extends: Option<String>,
}

impl Row {
    fn of(opened: &Opened, id: ProfileId, unusable: &HashSet<ProfileId>) -> Row {
        let compiler = &opened.compiler;
        let profile = compiler.hierarchy().get(id);
        let resolved = compiler.resolve(id);
        let plan = compiler.plan(id);
        let text = |key: &str| {
            resolved
                .as_ref()
                .and_then(|it: &ResolvedProfile<'_>| it.string(key))
                .map_or("", |it| it.value)
                .to_owned()
        };
        let broken = plan.is_none() && unusable.contains(&id);
        let marks = [
            (profile.is_abstract(), "abstract"),
            (profile.hidden, "hidden"),
            (broken, "broken"),
            (
                profile.layer == LayerKind::Bundled && !compiler.repo().is_bundled_root,
                "bundled",
            ),
        ];
        let marks: Vec<&str> = marks
            .into_iter()
            .filter(|(is, _)| *is)
            .map(|(_, mark)| mark)
            .collect();
        Row {
            name: profile.name.value.to_string(),
            wire: resolved
                .as_ref()
                .and_then(|it| wire(opened, it))
                .map_or("", WireFormat::name)
                .to_owned(),
            instance: text("provider_instance"),
            state: marks.join(", "),
            description: text("description"),
            tags: resolved
                .as_ref()
                .map(|it| it.strings("tags").into_iter().map(str::to_owned).collect())
                .unwrap_or_default(),
            file: compiler.sources().get(profile.file).path().to_string(),
            extends: profile.extends.as_ref().map(|it| it.value.to_string()),
        }
    }

    fn json(&self) -> Value {
        json!({
            "name": self.name, "wire": self.wire, "provider_instance": self.instance, "description": self.description,
            "tags": self.tags, "extends": self.extends, "file": self.file, "state": self.state,
        })
    }
}

pub(super) fn contexts(options: &Options, terminal: &mut Terminal) -> Outcome {
    let opened = options.open()?;
    options.selection(&opened, terminal)?;
    let names = &opened.selection()?.contexts;
    let all = opened.compiler.contexts().iter();
    let chosen = all.filter(|loaded| {
        names
            .as_ref()
            .is_none_or(|names| names.contains(&loaded.context.name))
    });
    if options.format == Format::Json {
        let values = chosen.map(|loaded| {
            let context = &loaded.context;
            let file = opened.compiler.sources().get(context.file).path();
            json!({"name": &*context.name, "kind": context.kind().name(), "golden": loaded.golden, "why": &*context.why, "file": &**file})
        });
        terminal.json(&values.collect());
        return Ok(Status::Clean);
    }
    for loaded in chosen {
        let golden = if loaded.golden { ", golden" } else { "" };
        let why = Text::join(&wrap(&loaded.context.why, terminal.width() - 4), "\n    ");
        let name = Text::line(&loaded.context.name).cut(WIDEST_CELL);
        terminal.text(&text!(
            "{} ({}{})\n    {}\n",
            name,
            loaded.context.kind().name(),
            golden,
            why
        ));
    }
    Ok(Status::Clean)
}

/// Breaks text at spaces into lines of at most `width` characters. Text in backticks is kept
/// together if it is short.
pub(super) fn wrap(foreign: &str, width: usize) -> Vec<Text> {
    let line = foreign.split_whitespace().collect::<Vec<_>>().join(" ");
    let words: Vec<Text> = words(&line, width).into_iter().map(Text::line).collect();
    let lines = fill(words.iter().map(Text::width), width);
    lines
        .into_iter()
        .map(|line| Text::join(&words[line], " "))
        .collect()
}

/// The maximum length of a name in a table, in characters.
pub(super) const WIDEST_CELL: usize = 80;

/// Formats rows as a table whose columns are as wide as their widest cells.
pub(super) fn columns<const N: usize>(head: [&str; N], rows: &[[&str; N]]) -> Text {
    let rows: Vec<[Text; N]> = std::iter::once(&head)
        .chain(rows)
        .filter(|_| !rows.is_empty())
        .map(cells)
        .collect();
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].width())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    rows.iter()
        .map(|row| {
            let cells: Vec<Text> = row
                .iter()
                .zip(&widths)
                .map(|(cell, width)| cell.clone().padded(*width))
                .collect();
            text!("{}\n", Text::join(&cells, "  ").trimmed_end())
        })
        .collect()
}

fn cells<const N: usize>(row: &[&str; N]) -> [Text; N] {
    row.map(|cell| Text::line(cell).cut(WIDEST_CELL))
}
