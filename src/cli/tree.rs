//! `reqc tree`: the hierarchy, with the changes made at each level.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::args::Format;
use super::list::WIDEST_CELL;
use super::options::{Opened, Options};
use super::show::inline;
use super::{Outcome, Status, Terminal};
use crate::profile::Profile;
use crate::repo::LayerKind;
use crate::resolve::{MAX_CHAIN, MergedTable, ProfileId};
use crate::text::{Text, text};
use crate::toml::{Kind, Table};

pub(super) fn run(options: &Options, terminal: &mut Terminal) -> Outcome {
    let opened = options.open()?;
    options.selection(&opened, terminal)?;
    let shown = shown(&opened)?;
    let roots: Vec<ProfileId> = shown
        .iter()
        .copied()
        .filter(|&id| parent(&opened, id).is_none())
        .collect();
    let tree = Tree::new(&opened, &shown);
    if options.format == Format::Json {
        let values: Vec<Value> = roots.iter().map(|&id| to_json(&tree, id, 1)).collect();
        terminal.json(&Value::Array(values));
        return Ok(Status::Clean);
    }
    let mut drawing = Text::new();
    for &root in &roots {
        let stems = Stems {
            first: String::new(),
            rest: String::new(),
            depth: 1,
        };
        draw(&tree, root, &stems, terminal.width(), &mut drawing);
    }
    terminal.text(&drawing);
    Ok(Status::Clean)
}

/// Returns the selected agents and all their ancestors, sorted by name.
fn shown(opened: &Opened) -> Result<Vec<ProfileId>, super::Failure> {
    let (compiler, hierarchy) = (&opened.compiler, opened.compiler.hierarchy());
    let chosen: Vec<ProfileId> = match &opened.selection()?.agents {
        Some(ids) => ids.clone(),
        None => hierarchy
            .ids()
            .filter(|id| compiler.repo().is_compiled(hierarchy.get(*id).layer))
            .collect(),
    };
    let mut seen: HashSet<ProfileId> = HashSet::new();
    for id in chosen {
        let mut next = Some(id);
        while let Some(at) = next.filter(|at| seen.insert(*at)) {
            next = hierarchy.parent(at);
        }
    }
    let mut ids: Vec<ProfileId> = seen.into_iter().collect();
    ids.sort_by(|a, b| {
        hierarchy
            .get(*a)
            .name
            .value
            .cmp(&hierarchy.get(*b).name.value)
    });
    Ok(ids)
}

fn parent(opened: &Opened, id: ProfileId) -> Option<ProfileId> {
    opened.compiler.hierarchy().parent(id)
}

/// The data for drawing the tree: the profiles that extend each profile, by name.
struct Tree<'o> {
    opened: &'o Opened,
    children: HashMap<ProfileId, Vec<ProfileId>>,
}

impl<'o> Tree<'o> {
    fn new(opened: &'o Opened, shown: &[ProfileId]) -> Tree<'o> {
        let mut children: HashMap<ProfileId, Vec<ProfileId>> = HashMap::new();
        for &id in shown {
            if let Some(parent) = parent(opened, id) {
                children.entry(parent).or_default().push(id);
            }
        }
        Tree { opened, children }
    }

    /// Returns the profiles that extend a profile at this depth of the tree. Nothing is drawn below
    /// the maximum length of a chain.
    fn children(&self, id: ProfileId, depth: usize) -> &[ProfileId] {
        let children = self.children.get(&id).filter(|_| depth <= MAX_CHAIN);
        children.map(Vec::as_slice).unwrap_or_default()
    }
}

/// The prefixes of a profile's lines: for its title, and for the lines below it.
struct Stems {
    first: String,
    rest: String,
    depth: usize,
}

fn draw(tree: &Tree<'_>, id: ProfileId, stems: &Stems, width: usize, drawing: &mut Text) {
    let (opened, Stems { first, rest, depth }) = (tree.opened, stems);
    let profile = opened.compiler.hierarchy().get(id);
    drawing.push(&text!("{}{}\n", first, title(opened, profile)));
    let children = tree.children(id, *depth);
    let stem = if children.is_empty() {
        "    "
    } else {
        "│   "
    };
    for line in delta(opened, id) {
        drawing.push(&text!("{}\n", text!("{}{}{}", rest, stem, line).cut(width)));
    }
    for (index, child) in children.iter().enumerate() {
        let (branch, stem) = if index + 1 < children.len() {
            ("├── ", "│   ")
        } else {
            ("└── ", "    ")
        };
        let stems = Stems {
            first: format!("{rest}{branch}"),
            rest: format!("{rest}{stem}"),
            depth: depth + 1,
        };
        draw(tree, *child, &stems, width, drawing);
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

/// Returns the changes made at one level: `+` new, `~` overridden, `-` unset.
fn delta(opened: &Opened, id: ProfileId) -> Vec<Text> {
    let profile = opened.compiler.hierarchy().get(id);
    let inherited = parent(opened, id).and_then(|parent| opened.compiler.resolve(parent));
    let mut lines: Vec<Text> = profile
        .unset
        .iter()
        .map(|path| text!("- body.{}", path.value.join(".")))
        .collect();
    let own = profile
        .settings
        .entries
        .iter()
        .filter(|(key, _)| key.name != "description" && key.name != "tags");
    let own = Table {
        entries: own.cloned().collect(),
    };
    table_delta(
        &own,
        inherited.as_ref().map(|it| &it.merged),
        "",
        &mut lines,
    );
    lines
}

fn table_delta(
    table: &Table,
    inherited: Option<&MergedTable<'_>>,
    path: &str,
    lines: &mut Vec<Text>,
) {
    for (key, node) in &table.entries {
        let before = inherited.and_then(|inherited| inherited.get(&key.name));
        let path = if path.is_empty() {
            key.name.clone()
        } else {
            format!("{path}.{}", key.name)
        };
        match (&node.kind, before) {
            (Kind::Table(inner), _) => table_delta(
                inner,
                before.and_then(|merged| merged.table()),
                &path,
                lines,
            ),
            (_, Some(before)) => lines.push(text!(
                "~ {} = {} (was {})",
                path,
                inline(node),
                inline(before.node)
            )),
            (_, None) => lines.push(text!("+ {} = {}", path, inline(node))),
        }
    }
}

fn to_json(tree: &Tree<'_>, id: ProfileId, depth: usize) -> Value {
    let opened = tree.opened;
    let profile = opened.compiler.hierarchy().get(id);
    let children: Vec<Value> = tree
        .children(id, depth)
        .iter()
        .map(|child| to_json(tree, *child, depth + 1))
        .collect();
    json!({
        "name": &*profile.name.value,
        "file": &**opened.compiler.sources().get(profile.file).path(),
        "abstract": profile.is_abstract(),
        "delta": delta(opened, id).iter().map(Text::as_str).collect::<Vec<_>>(),
        "children": children,
    })
}
