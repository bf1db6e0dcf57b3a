//! Grouped changes, for people and for programs.

use std::fmt::Write as _;

use owo_colors::{OwoColorize, Style};
use serde_json::{Value, json};

use crate::diff::{ChangeKind, FileChange, Group};

/// A group and the place that caused it.
pub struct DiffGroup {
    /// The group.
    pub group: Group,
    /// `path:line` of what caused it, where that is known.
    pub cause: Option<String>,
    /// How many different changes it stands for: more than one if values differ from body to body.
    pub variants: usize,
}

impl DiffGroup {
    /// The same text for groups that are about the same kind of change at the same place, because of the same line.
    pub fn likeness(&self) -> String {
        let kind = std::mem::discriminant(&self.group.change.kind);
        format!("{kind:?}\u{0}{}\u{0}{:?}\u{0}{}", self.group.is_request, self.cause, self.group.pattern())
    }

    /// Takes another group's bodies over.
    pub fn absorb(&mut self, other: DiffGroup) {
        self.group.absorb(other.group);
        self.variants += other.variants;
    }
}

/// How many names a line lists before it counts.
const NAMES: usize = 3;

/// Groups as text: how many bodies of how many agents, where, what, and because of which line.
pub fn diff_text(groups: &[DiffGroup], width: usize, color: bool) -> String {
    let style = |style: Style| if color { style } else { Style::new() };
    let mut text = String::new();
    for DiffGroup { group, cause, variants } in groups {
        let _ = writeln!(text, "{}", subjects(group).style(style(Style::new().bold())));
        let room = width.saturating_sub(8).max(20);
        let shown = group.change.kind.describe(room);
        let pointer = group.pointer.style(style(Style::new().cyan())).to_string();
        let fits = group.pointer.chars().count() + shown.chars().count() + 4 <= width;
        let _ = match &group.change.kind {
            ChangeKind::File(_) => writeln!(text, "  {shown}"),
            _ if fits => writeln!(text, "  {pointer} {shown}"),
            kind => writeln!(text, "  {pointer}\n{}", stacked(kind, room)),
        };
        if *variants > 1 {
            let _ = writeln!(text, "    … and {} more of this kind, with other values", variants - 1);
        }
        if let Some(cause) = cause {
            let _ = writeln!(text, "  {}", cause.style(style(Style::new().dimmed())));
        }
    }
    text
}

/// A change whose values do not fit on the pointer's line: one value a line.
fn stacked(kind: &ChangeKind, room: usize) -> String {
    let shown = kind.describe(room);
    match kind {
        ChangeKind::Replaced(..) => match shown.split_once(" → ") {
            Some((old, new)) => format!("    - {old}\n    + {new}"),
            None => format!("    {shown}"),
        },
        _ => format!("    {shown}"),
    }
}

/// `in 14 bodies of 6 agents`, or the one body's name.
fn subjects(group: &Group) -> String {
    let agents = group.agents();
    let what = if group.is_request { ("request", "requests") } else { ("body", "bodies") };
    if let [only] = group.subjects.as_slice() {
        let name = only.context.as_deref().unwrap_or("request");
        return format!("in {}/{name}", only.agent);
    }
    let names: Vec<&str> = agents.iter().take(NAMES).map(AsRef::as_ref).collect();
    let more = agents.len().saturating_sub(NAMES);
    let more = if more > 0 { format!(", … (+{more})") } else { String::new() };
    let agent = if agents.len() == 1 { "agent" } else { "agents" };
    format!("in {} {} of {} {agent} ({}{more})", group.subjects.len(), what.1, agents.len(), names.join(", "))
}

/// Groups as JSON: an array of `{pointer, change, old, new, cause, variants, bodies: [{agent, context}]}`.
pub fn diff_json(groups: &[DiffGroup]) -> String {
    let values: Vec<Value> = groups.iter().map(group_json).collect();
    format!("{:#}\n", json!({"version": 1, "changes": values}))
}

fn group_json(DiffGroup { group, cause, variants }: &DiffGroup) -> Value {
    let (change, old, new) = match &group.change.kind {
        ChangeKind::File(FileChange::New) => ("added", Value::Null, Value::Null),
        ChangeKind::File(FileChange::Gone) => ("removed", Value::Null, Value::Null),
        ChangeKind::File(FileChange::Reformatted) => ("reformatted", Value::Null, Value::Null),
        ChangeKind::File(FileChange::Broken) => ("broken", Value::Null, Value::Null),
        ChangeKind::Added(value) => ("added", Value::Null, value.clone()),
        ChangeKind::Removed(value) => ("removed", value.clone(), Value::Null),
        ChangeKind::Replaced(old, new) => ("replaced", old.clone(), new.clone()),
        ChangeKind::Reordered(old, new) => ("reordered", json!(old), json!(new)),
    };
    let bodies =
        group.subjects.iter().map(|subject| json!({"agent": &*subject.agent, "context": subject.context.as_deref()}));
    json!({
        "pointer": if matches!(group.change.kind, ChangeKind::File(_)) { "" } else { &group.pointer },
        "change": change,
        "old": old,
        "new": new,
        "cause": cause,
        "variants": variants,
        "bodies": bodies.collect::<Vec<_>>(),
    })
}
