//! Selects the agents and contexts of a run.

use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::compiler::Compiler;
use super::contexts::LoadedContext;
use super::rules::ABSTRACT_SELECTED;
use crate::context;
use crate::diag::{Diagnostic, Severity, did_you_mean};
use crate::resolve::ProfileId;
use crate::source::FileId;

/// The agents and contexts of a run, and the model.
#[derive(Default)]
pub struct Selection {
    /// The IDs of the agents; `None` for all.
    pub agents: Option<Vec<ProfileId>>,
    /// The context names; `None` for all.
    pub contexts: Option<Vec<Arc<str>>>,
    /// The agents and contexts that the given files reach (possibly none); `None` for everything.
    pub reached: Option<Reach>,
    /// The shard of the agents, which may be empty; `None` for all agents.
    pub shard: Option<Shard>,
    /// The model that the client requests instead of the profile's own.
    pub model: Option<String>,
    /// `true` to render everything separately for each agent instead of sharing the work between
    /// agents. The result is the same.
    pub without_memo: bool,
}

/// The agents and contexts that the given files reach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reach {
    /// The names of agents. All bodies of these agents are reached.
    pub agents: BTreeSet<Arc<str>>,
    /// The names of contexts. The bodies of all agents in these contexts are reached.
    pub contexts: BTreeSet<Arc<str>>,
    /// The files whose findings are reported even if these findings reach no agent, given by their
    /// paths as shown in reports; `None` for all files.
    pub files: Option<BTreeSet<Arc<str>>>,
}

/// One of the shards into which agents are divided by name. Adding an agent does not move any other
/// agent to a different shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// The index, from 1.
    index: u64,
    count: u64,
}

impl Reach {
    /// Returns the union of this reach and `other`.
    #[must_use]
    pub fn or(mut self, other: Reach) -> Reach {
        self.agents.extend(other.agents);
        self.contexts.extend(other.contexts);
        self.files = self.files.zip(other.files).map(|(mut files, more)| {
            files.extend(more);
            files
        });
        self
    }
}

impl Shard {
    /// Returns `true` if an agent is in the shard.
    pub fn takes(self, agent: &str) -> bool {
        let hash = Sha256::digest(agent.as_bytes());
        let number = hash
            .iter()
            .take(8)
            .fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        number % self.count == self.index - 1
    }

    /// Returns `true` if the shard reports findings that affect no agent. Only the first shard does.
    fn tells_of_repository(self) -> bool {
        self.index == 1
    }
}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Shard, ShardError> {
        let parts = text
            .split_once('/')
            .and_then(|(index, count)| Some((positive(index)?, positive(count)?)));
        match parts.filter(|(index, count)| index <= count) {
            Some((index, count)) => Ok(Shard { index, count }),
            None => Err(ShardError),
        }
    }
}

fn positive(part: &str) -> Option<u64> {
    part.parse::<u64>().ok().filter(|number| *number > 0)
}

/// The error for a string that is not `INDEX/COUNT` with an index from 1 to the count.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShardError;

impl fmt::Display for ShardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "write the number of the shard and the total number of shards, from `1/4` to `4/4`",
        )
    }
}

impl std::error::Error for ShardError {}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl Selection {
    /// Returns `true` if the selection includes every agent and context.
    pub fn is_everything(&self) -> bool {
        self.agents.is_none() && self.contexts.is_none() && !self.may_be_empty()
    }

    /// Returns `true` if an empty selection is not a mistake.
    pub(super) fn may_be_empty(&self) -> bool {
        self.reached.is_some() || self.shard.is_some()
    }

    /// Returns `true` if the selection includes the body of an agent in a context.
    fn takes(&self, agent: &str, context: &str) -> bool {
        self.reached
            .as_ref()
            .is_none_or(|it| it.agents.contains(agent) || it.contexts.contains(context))
    }

    fn takes_context(&self, name: &Arc<str>) -> bool {
        self.contexts
            .as_ref()
            .is_none_or(|names| names.contains(name))
            && self
                .reached
                .as_ref()
                .is_none_or(|it| !it.agents.is_empty() || it.contexts.contains(name))
    }

    fn takes_agent(&self, id: ProfileId, name: &Arc<str>) -> bool {
        self.agents.as_ref().is_none_or(|ids| ids.contains(&id))
            && self.shard.is_none_or(|shard| shard.takes(name))
            && self
                .reached
                .as_ref()
                .is_none_or(|it| !it.contexts.is_empty() || it.agents.contains(name))
    }
}

/// The agents and contexts of a repository that a selection contains.
#[derive(Clone, Copy)]
pub(super) struct Chosen<'a> {
    pub(super) compiler: &'a Compiler,
    pub(super) selection: &'a Selection,
}

impl<'a> Chosen<'a> {
    pub(super) fn new(compiler: &'a Compiler, selection: &'a Selection) -> Chosen<'a> {
        Chosen {
            compiler,
            selection,
        }
    }

    /// Returns `true` if the selection includes an agent.
    pub(super) fn takes_agent(&self, id: ProfileId) -> bool {
        self.selection
            .takes_agent(id, &self.compiler.hierarchy.get(id).name.value)
    }

    /// Returns the selected agents that can be compiled.
    pub(super) fn usable(&self) -> Vec<ProfileId> {
        let usable = self
            .compiler
            .agents
            .iter()
            .filter(|(id, usable)| *usable && self.takes_agent(*id));
        usable.map(|(id, _)| *id).collect()
    }

    /// Returns the selected agents that cannot be compiled.
    pub(super) fn unusable(&self) -> Vec<ProfileId> {
        let unusable = self
            .compiler
            .agents
            .iter()
            .filter(|(id, usable)| !usable && self.takes_agent(*id));
        unusable.map(|(id, _)| *id).collect()
    }

    /// Returns the selected contexts.
    pub(super) fn contexts(&self) -> impl Iterator<Item = &'a LoadedContext> + use<'a> {
        let selection = self.selection;
        self.compiler
            .contexts
            .iter()
            .filter(move |loaded| selection.takes_context(&loaded.context.name))
    }

    /// Returns the contexts that are selected for an agent.
    pub(super) fn contexts_of(&self, agent: &str) -> impl Iterator<Item = &'a LoadedContext> {
        let selection = self.selection;
        self.contexts()
            .filter(move |loaded| selection.takes(agent, &loaded.context.name))
    }

    /// Returns `true` if a finding from loading concerns the selection. A finding that reaches no
    /// agent concerns the repository.
    pub(super) fn is_about(&self, finding: &Diagnostic) -> bool {
        if finding.agents.is_empty() {
            let path = self
                .compiler
                .sources()
                .get(finding.primary.span.file)
                .path();
            let files = self
                .selection
                .reached
                .as_ref()
                .and_then(|reached| reached.files.as_ref());
            let in_shard = self.selection.shard.is_none_or(Shard::tells_of_repository);
            return in_shard && files.is_none_or(|files| files.contains(path));
        }
        finding.agents.iter().any(|name| self.takes_named(name))
    }

    /// Returns `true` if a finding reaches a selected agent, given by its name.
    fn takes_named(&self, name: &Arc<str>) -> bool {
        let id = self.compiler.hierarchy.by_name(name);
        let is_reached = self
            .selection
            .reached
            .as_ref()
            .is_none_or(|it| it.agents.contains(name));
        is_reached && id.is_none_or(|id| self.selection.takes_agent(id, name))
    }
}

/// The agents and contexts of a repository, to be found by name.
pub struct Names<'a> {
    compiler: &'a Compiler,
}

impl<'a> Names<'a> {
    /// Creates `Names` for a repository.
    pub fn of(compiler: &'a Compiler) -> Names<'a> {
        Names { compiler }
    }

    /// Returns the IDs of the agents whose name matches.
    ///
    /// # Errors
    ///
    /// Returns an error with suggestions if no agent matches. If an abstract profile matches, the
    /// error has the profile's location instead.
    pub fn agents(
        &self,
        matches: impl Fn(&str) -> bool,
        wanted: &str,
    ) -> Result<Vec<ProfileId>, Box<SelectError>> {
        let name = |id: ProfileId| self.compiler.hierarchy.get(id).name.value.as_ref();
        let found: Vec<ProfileId> = self
            .compiler
            .agents
            .iter()
            .map(|(id, _)| *id)
            .filter(|&id| matches(name(id)))
            .collect();
        if !found.is_empty() {
            return Ok(found);
        }
        if let Some(id) = self
            .compiler
            .hierarchy
            .ids()
            .find(|&id| matches(name(id)) && self.compiler.hierarchy.get(id).is_abstract())
        {
            let finding = abstract_selected(self.compiler, id);
            return Err(Box::new(SelectError::Abstract(Box::new(finding))));
        }
        let is_bundled = self.compiler.hierarchy.ids().any(|id| {
            let file = self.compiler.hierarchy.get(id).file;
            matches(name(id)) && self.compiler.sources().get(file).is_bundled()
        });
        let help = match is_bundled {
            true => Some("it is bundled: add `--bundled`".to_owned()),
            false => did_you_mean(wanted, self.compiler.agents.iter().map(|(id, _)| name(*id))),
        };
        Err(Box::new(SelectError::Unknown {
            what: "agent",
            wanted: wanted.to_owned(),
            help,
        }))
    }

    /// Returns the names of the contexts that match.
    ///
    /// # Errors
    ///
    /// Returns an error with suggestions if no context matches, or an error that names the file of
    /// a skipped context.
    pub fn contexts(
        &self,
        matches: impl Fn(&str) -> bool,
        wanted: &str,
    ) -> Result<Vec<Arc<str>>, Box<SelectError>> {
        let names = || {
            self.compiler
                .contexts
                .iter()
                .map(|loaded| &loaded.context.name)
        };
        let found: Vec<Arc<str>> = names().filter(|name| matches(name)).cloned().collect();
        if !found.is_empty() {
            return Ok(found);
        }
        let left_out = context::left_out(&self.compiler.repo, |file| {
            self.compiler
                .contexts
                .iter()
                .any(|loaded| loaded.context.file == file)
        });
        if let Some((_, file)) = left_out.into_iter().find(|(name, _)| matches(name)) {
            let path = self.compiler.sources().get(file).path().to_string();
            return Err(Box::new(SelectError::LeftOut {
                wanted: wanted.to_owned(),
                path,
            }));
        }
        let near = did_you_mean(wanted, names().map(AsRef::as_ref));
        Err(Box::new(SelectError::Unknown {
            what: "context",
            wanted: wanted.to_owned(),
            help: near,
        }))
    }

    /// Returns `true` if all definitions of agents and contexts could be read. If not, agents and
    /// contexts with unknown names may exist.
    pub fn are_all_known(&self) -> bool {
        let hierarchy = &self.compiler.hierarchy;
        let profiles: HashSet<FileId> = hierarchy.ids().map(|id| hierarchy.get(id).file).collect();
        let mut errors = self
            .compiler
            .findings
            .iter()
            .filter(|finding| finding.severity == Severity::Error);
        errors.all(|finding| profiles.contains(&finding.primary.span.file))
    }
}

fn abstract_selected(compiler: &Compiler, id: ProfileId) -> Diagnostic {
    let hierarchy = compiler.hierarchy();
    let profile = hierarchy.get(id);
    let place = profile.abstract_at.unwrap_or(profile.name.span);
    let agents: Vec<String> = compiler
        .agents()
        .iter()
        .map(|(agent, _)| *agent)
        .filter(|&agent| {
            std::iter::successors(Some(agent), |&at| hierarchy.parent(at))
                .take(64)
                .any(|at| at == id)
        })
        .take(5)
        .map(|agent| format!("`{}`", hierarchy.get(agent).name.value))
        .collect();
    let help = match agents.is_empty() {
        true => "no agent extends it".to_owned(),
        false => format!("select an agent that extends it: {}", agents.join(", ")),
    };
    let message = format!(
        "`{}` is abstract, so it is not compiled itself",
        profile.name.value
    );
    Diagnostic::new(&ABSTRACT_SELECTED, place, message).help(help)
}

/// The reason nothing was selected.
#[derive(Debug)]
#[non_exhaustive]
pub enum SelectError {
    /// Nothing has this name.
    Unknown {
        /// `agent` or `context`.
        what: &'static str,
        /// The requested name.
        wanted: String,
        /// A suggestion of a similar name.
        help: Option<String>,
    },
    /// An abstract profile has this name.
    Abstract(Box<Diagnostic>),
    /// The context is left out because its file has errors.
    LeftOut {
        /// The requested name.
        wanted: String,
        /// The path of the file, as in reports.
        path: String,
    },
}

impl fmt::Display for SelectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SelectError::Unknown { what, wanted, .. } => write!(f, "there is no {what} `{wanted}`"),
            SelectError::Abstract(finding) => f.write_str(&finding.message),
            SelectError::LeftOut { wanted, path } => {
                write!(
                    f,
                    "the context `{wanted}` is left out because `{path}` has errors"
                )
            }
        }
    }
}

impl std::error::Error for SelectError {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_shard_is_one_of_several() {
        assert_eq!(
            "2/3"
                .parse::<Shard>()
                .map(|shard| shard.to_string())
                .as_deref(),
            Ok("2/3")
        );
        for wrong in ["0/3", "4/3", "1", "1/0", "a/b", "", "-1/2"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn every_agent_is_in_one_shard(name in "\\PC{0,20}", count in 1_u64..20) {
            let shards = (1..=count).map(|index| Shard { index, count });
            prop_assert_eq!(shards.filter(|shard| shard.takes(&name)).count(), 1);
        }
    }
}
