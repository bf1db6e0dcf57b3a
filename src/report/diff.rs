//! Grouped changes, as text and as JSON.

use owo_colors::Style;

use super::{LONGEST, Layout, name, thousands};
use crate::diff::{CausedGroup, ChangeKind, Group};
use crate::text::{Text, text};

/// The maximum number of names listed on a line; the others are only counted.
const NAMES: usize = 3;
/// The maximum number of groups shown.
const MOST: usize = 1000;

/// Writes groups of changes, each with the number of bodies and agents, the location, the change,
/// and the line that caused it.
pub fn changes_text(groups: &[CausedGroup], layout: Layout) -> Text {
    let mut text = Text::new();
    groups
        .iter()
        .take(MOST)
        .for_each(|group| text.push(&group_text(group, layout)));
    if groups.len() > MOST {
        let more = thousands(groups.len() - MOST);
        text.push(&text!(
            "… and {} more changes; `--format json` lists all\n",
            more
        ));
    }
    text
}

fn group_text(CausedGroup { group, cause }: &CausedGroup, layout: Layout) -> Text {
    let Layout { width, colour } = layout;
    let mut text = text!("{}\n", subjects(group).styled(Style::new().bold(), colour));
    let room = width.saturating_sub(8).max(20);
    let shown = Text::line(&group.change.kind.describe(room));
    let pointer = Text::line(&group.pointer).cut(LONGEST);
    let fits = pointer.width() + shown.width() + 4 <= width;
    let pointer = pointer.styled(Style::new().cyan(), colour);
    text.push(&match &group.change.kind {
        ChangeKind::File(_) => text!("  {}\n", shown),
        _ if fits => text!("  {} {}\n", pointer, shown),
        kind => text!("  {}\n{}\n", pointer, stacked(kind, room)),
    });
    if group.variants > 1 {
        text.push(&text!(
            "    … and {} more of this kind, with other values\n",
            group.variants - 1
        ));
    }
    if let Some(cause) = cause {
        text.push(&text!(
            "  {}\n",
            Text::line(cause)
                .cut(LONGEST)
                .styled(Style::new().dimmed(), colour)
        ));
    }
    text
}

/// Writes a change whose values do not fit on the pointer's line, with one value per line.
fn stacked(kind: &ChangeKind, room: usize) -> Text {
    let shown = kind.describe(room);
    match kind {
        ChangeKind::Replaced(..) => match shown.split_once(" → ") {
            Some((old, new)) => text!("    - {}\n    + {}", old, new),
            None => text!("    {}", shown),
        },
        _ => text!("    {}", shown),
    }
}

/// Returns `in 14 bodies of 6 agents`, or the name of the only body.
fn subjects(group: &Group) -> Text {
    let agents = group.agents();
    let what = if group.is_request {
        ("request", "requests")
    } else {
        ("body", "bodies")
    };
    if let [only] = group.subjects.as_slice() {
        let context = only.context.as_deref().unwrap_or("request");
        return text!("in {}/{}", name(&only.agent), name(context));
    }
    let names: Vec<Text> = agents.iter().take(NAMES).map(|agent| name(agent)).collect();
    let more = agents.len().saturating_sub(NAMES);
    let more = if more > 0 {
        text!(", … (+{})", more)
    } else {
        Text::new()
    };
    let agent = if agents.len() == 1 { "agent" } else { "agents" };
    let (bodies, names) = (group.subjects.len(), Text::join(&names, ", "));
    text!(
        "in {} {} of {} {} ({}{})",
        bodies,
        what.1,
        agents.len(),
        agent,
        names,
        more
    )
}
