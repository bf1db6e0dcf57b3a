//! `rosters.toml`: ordered lists of agents, one per pipeline.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Known, Reader, rules};
use crate::diag::Diagnostic;
use crate::source::{FileId, Span, Spanned};
use crate::toml::Table;

/// Every key in `rosters.toml`.
pub const ROSTERS_KEYS: [&str; 2] = ["schema_version", "roster"];

/// Every key in a `[[roster]]` entry.
pub const ROSTER_KEYS: [&str; 3] = ["name", "description", "agents"];

/// A list of agents for a pipeline. A file is handled by the first agent whose `match` accepts it.
#[derive(Debug, Clone, PartialEq)]
pub struct Roster {
    /// The name, which is unique in the file.
    pub name: Spanned<Arc<str>>,
    /// The description for users.
    pub description: Option<Arc<str>>,
    /// The agent names in order, without duplicates. An empty list disables the pipeline.
    pub agents: Vec<Spanned<Arc<str>>>,
}

/// Reads `rosters.toml`.
pub(super) fn read(file: FileId, table: &Table, findings: &mut Vec<Diagnostic>) -> Vec<Roster> {
    let mut reader = Reader::new(file, table, findings);
    reader.only(&Known {
        what: "rosters.toml",
        keys: &ROSTERS_KEYS,
        inner: &[("[[roster]]", &ROSTER_KEYS)],
    });
    reader.schema_version(1);
    let mut rosters: Vec<Roster> = Vec::new();
    let mut known: BTreeMap<Arc<str>, Span> = BTreeMap::new();
    for entry in reader.tables("roster") {
        let Some(roster) = Roster::read(file, entry, findings) else {
            continue;
        };
        match known.get(&roster.name.value) {
            Some(first) => {
                let message = format!("the roster `{}` is defined twice", roster.name.value);
                let finding = Diagnostic::new(&rules::REPEATED_ROSTER, roster.name.span, message);
                findings.push(
                    finding
                        .related(*first, "first defined here")
                        .help("rename one of them"),
                );
            }
            None => {
                known.insert(Arc::clone(&roster.name.value), roster.name.span);
                rosters.push(roster);
            }
        }
    }
    rosters
}

impl Roster {
    fn read(
        file: FileId,
        entry: Spanned<&Table>,
        findings: &mut Vec<Diagnostic>,
    ) -> Option<Roster> {
        let mut reader = Reader::new(file, entry.value, findings);
        reader.only(&Known::flat("[[roster]]", &ROSTER_KEYS));
        let (name, description) = (reader.string("name"), reader.string("description"));
        let agents = reader.strings("agents");
        let span = Span::new(file, entry.span.range());
        reader.missing("a [[roster]] entry", span, &["name", "agents"]);
        let agents = each_once(&mut reader, agents?.value);
        Some(Roster {
            name: name?,
            description: description.map(|it| it.value),
            agents,
        })
    }
}

/// Returns the names without duplicates. Reports the duplicates.
fn each_once(
    reader: &mut Reader<'_, '_>,
    agents: Vec<Spanned<Arc<str>>>,
) -> Vec<Spanned<Arc<str>>> {
    let mut first: BTreeMap<Arc<str>, Span> = BTreeMap::new();
    let mut kept = Vec::new();
    for agent in agents {
        match first.get(&agent.value) {
            Some(known) => {
                let message = format!("`{}` is in the roster twice", agent.value);
                let finding = Diagnostic::new(&rules::REPEATED_AGENT, agent.span, message);
                reader.report(
                    finding
                        .related(*known, "first here")
                        .help("remove one of them"),
                );
            }
            None => {
                first.insert(Arc::clone(&agent.value), agent.span);
                kept.push(agent);
            }
        }
    }
    kept
}
