//! `reqc tree`: the hierarchy, with each level's delta.

use serde_json::{Value, json};

use super::args::Format;
use super::list::WIDEST_CELL;
use super::options::{Opened, Options};
use super::show::inline;
use super::{Outcome, Status, Terminal};
use crate::profile::Profile;
use crate::repo::LayerKind;
use crate::resolve::{MergedTable, ProfileId};
use crate::text::{Text, text};
use crate::toml::{Kind, Table};

pub(super) fn run(options: &Options, terminal: &mut Terminal) -> Outcome {
    let opened = options.open()?;
    let shown = shown(&opened)?;
    let roots: Vec<ProfileId> = shown.iter().copied().filter(|&id| parent(&opened, id).is_none()).collect();
    if options.format == Format::Json {
        let values: Vec<Value> = roots.iter().map(|&id| to_json(&opened, &shown, id)).collect();
        terminal.json(&Value::Array(values));
        return Ok(Status::Clean);
    }
    let mut drawing = Text::new();
    for &root in &roots {
        draw(&opened, &shown, root, ["", ""], terminal.width(), &mut drawing);
    }
    terminal.text(&drawing);
    Ok(Status::Clean)
}

/// The selected agents and all their ancestors, sorted by name.
fn shown(opened: &Opened) -> Result<Vec<ProfileId>, super::Failure> {
    let (compiler, hierarchy) = (&opened.compiler, opened.compiler.hierarchy());
    let own = |id: &ProfileId| compiler.repo().is_compiled(hierarchy.get(*id).layer);
    let chosen: Vec<ProfileId> = match &opened.selection()?.agents {
        Some(ids) => ids.clone(),
        None => hierarchy.ids().filter(own).collect(),
    };
    let mut ids: Vec<ProfileId> = Vec::new();
    for id in chosen {
        for ancestor in std::iter::successors(Some(id), |&at| hierarchy.parent(at)).take(crate::resolve::MAX_CHAIN + 1)
        {
            if !ids.contains(&ancestor) {
                ids.push(ancestor);
            }
        }
    }
    ids.sort_by(|a, b| hierarchy.get(*a).name.value.cmp(&hierarchy.get(*b).name.value));
    Ok(ids)
}

fn parent(opened: &Opened, id: ProfileId) -> Option<ProfileId> {
    opened.compiler.hierarchy().parent(id)
}

fn children(opened: &Opened, shown: &[ProfileId], id: ProfileId) -> Vec<ProfileId> {
    shown.iter().copied().filter(|&child| parent(opened, child) == Some(id)).collect()
}

/// `stems` stand before the first line and before the others.
fn draw(opened: &Opened, shown: &[ProfileId], id: ProfileId, stems: [&str; 2], width: usize, drawing: &mut Text) {
    let [first, rest] = stems;
    let profile = opened.compiler.hierarchy().get(id);
    drawing.push(&text!("{}{}\n", first, title(opened, profile)));
    let children = children(opened, shown, id);
    let stem = if children.is_empty() { "    " } else { "│   " };
    for line in delta(opened, id) {
        drawing.push(&text!("{}\n", text!("{}{}{}", rest, stem, line).cut(width)));
    }
    for (index, child) in children.iter().enumerate() {
        let (branch, stem) = if index + 1 < children.len() { ("├── ", "│   ") } else { ("└── ", "    ") };
        let stems = [&*format!("{rest}{branch}"), &*format!("{rest}{stem}")];
        draw(opened, shown, *child, stems, width, drawing);
    }
}

fn title(opened: &Opened, profile: &Profile) -> Text {
    let mut marks = Vec::new();
    if profile.is_abstract() {
        marks.push("abstract");
    }
    if profile.layer == LayerKind::Bundled && !opened.compiler.repo().is_bundled_root {
        marks.push("bundled");
    }
    let name = Text::line(&profile.name.value).cut(WIDEST_CELL);
    match marks.is_empty() {
        true => text!("{}", name),
        false => text!("{} ({})", name, marks.join(", ")),
    }
}

/// What one level says: `+` new, `~` overridden, `-` unset.
fn delta(opened: &Opened, id: ProfileId) -> Vec<Text> {
    let profile = opened.compiler.hierarchy().get(id);
    let inherited = parent(opened, id).and_then(|parent| opened.compiler.resolve(parent));
    let mut lines: Vec<Text> = profile.unset.iter().map(|path| text!("- body.{}", path.value.join("."))).collect();
    let own = profile.settings.entries.iter().filter(|(key, _)| key.name != "description" && key.name != "tags");
    let own = Table { entries: own.cloned().collect() };
    table_delta(&own, inherited.as_ref().map(|it| &it.merged), "", &mut lines);
    lines
}

fn table_delta(table: &Table, inherited: Option<&MergedTable<'_>>, path: &str, lines: &mut Vec<Text>) {
    for (key, node) in &table.entries {
        let before = inherited.and_then(|inherited| inherited.get(&key.name));
        let path = if path.is_empty() { key.name.clone() } else { format!("{path}.{}", key.name) };
        match (&node.kind, before) {
            (Kind::Table(inner), _) => table_delta(inner, before.and_then(|merged| merged.table()), &path, lines),
            (_, Some(before)) => lines.push(text!("~ {} = {} (was {})", path, inline(node), inline(before.node))),
            (_, None) => lines.push(text!("+ {} = {}", path, inline(node))),
        }
    }
}

fn to_json(opened: &Opened, shown: &[ProfileId], id: ProfileId) -> Value {
    let profile = opened.compiler.hierarchy().get(id);
    let children: Vec<Value> =
        children(opened, shown, id).into_iter().map(|child| to_json(opened, shown, child)).collect();
    json!({
        "name": &*profile.name.value,
        "file": &**opened.compiler.sources().get(profile.file).path(),
        "abstract": profile.is_abstract(),
        "delta": delta(opened, id).iter().map(Text::as_str).collect::<Vec<_>>(),
        "children": children,
    })
}
