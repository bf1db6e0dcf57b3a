//! Which agents and contexts take part in a run.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::{Compiler, LoadedContext};
use crate::diag::Diagnostic;
use crate::resolve::ProfileId;

/// Which agents and contexts take part, and with which model.
#[derive(Default)]
pub struct Selection {
    /// Only agents with one of these ids; `None`: all.
    pub agents: Option<Vec<ProfileId>>,
    /// Only contexts with one of these names; `None`: all.
    pub contexts: Option<Vec<Arc<str>>>,
    /// Only what some files reach; `None`: all. It may be nothing.
    pub reached: Option<Reach>,
    /// Only a part of the agents; `None`: all. It may be empty.
    pub shard: Option<Shard>,
    /// The client's model.
    pub model: Option<String>,
    /// Render everything anew instead of sharing what agents have in common: the result is the same.
    pub without_memo: bool,
}

/// The bodies that some files reach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reach {
    /// Names of agents: every body of theirs.
    pub agents: BTreeSet<Arc<str>>,
    /// Names of contexts: the bodies of all agents.
    pub contexts: BTreeSet<Arc<str>>,
    /// Files as reports show them: of findings that reach no agent, only those in these. `None`: all.
    pub files: Option<BTreeSet<Arc<str>>>,
}

/// One of some parts that the agents are divided into by their names: a new agent moves no other into another part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// From 1.
    index: u64,
    count: u64,
}

impl Reach {
    /// Returns what either of two reaches.
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
    /// Returns `true` if an agent is in it.
    pub fn takes(self, agent: &str) -> bool {
        let hash = Sha256::digest(agent.as_bytes());
        let number = hash.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        number % self.count == self.index - 1
    }

    /// Returns `true` if findings that reach no agent are told in it: in one part only.
    fn tells_of_repository(self) -> bool {
        self.index == 1
    }
}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Shard, ShardError> {
        let number = |part: &str| part.parse::<u64>().ok().filter(|number| *number > 0);
        let parts = text.split_once('/').and_then(|(index, count)| Some((number(index)?, number(count)?)));
        match parts.filter(|(index, count)| index <= count) {
            Some((index, count)) => Ok(Shard { index, count }),
            None => Err(ShardError),
        }
    }
}

/// A text names no part: it is not `INDEX/COUNT` with an index from 1 to the count.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShardError;

impl fmt::Display for ShardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("write which part of how many: `1/4` to `4/4`")
    }
}

impl std::error::Error for ShardError {}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl Selection {
    /// Returns `true` if every agent and context takes part.
    pub fn is_everything(&self) -> bool {
        self.agents.is_none() && self.contexts.is_none() && !self.may_be_empty()
    }

    /// Returns `true` if it is no mistake that nothing takes part.
    pub(super) fn may_be_empty(&self) -> bool {
        self.reached.is_some() || self.shard.is_some()
    }

    /// Returns `true` if a context takes part with an agent.
    fn takes(&self, agent: &str, context: &str) -> bool {
        self.reached.as_ref().is_none_or(|it| it.agents.contains(agent) || it.contexts.contains(context))
    }

    fn takes_context(&self, name: &Arc<str>) -> bool {
        self.contexts.as_ref().is_none_or(|names| names.contains(name))
            && self.reached.as_ref().is_none_or(|it| !it.agents.is_empty() || it.contexts.contains(name))
    }

    fn takes_agent(&self, id: ProfileId, name: &Arc<str>) -> bool {
        self.agents.as_ref().is_none_or(|ids| ids.contains(&id))
            && self.shard.is_none_or(|shard| shard.takes(name))
            && self.reached.as_ref().is_none_or(|it| !it.contexts.is_empty() || it.agents.contains(name))
    }
}

impl Compiler {
    /// Returns `true` if an agent takes part.
    pub(super) fn chosen_agent(&self, selection: &Selection, id: ProfileId) -> bool {
        selection.takes_agent(id, &self.hierarchy.get(id).name.value)
    }

    /// The contexts that take part.
    pub(super) fn chosen_contexts<'c>(&'c self, selection: &Selection) -> impl Iterator<Item = &'c LoadedContext> {
        self.contexts.iter().filter(|loaded| selection.takes_context(&loaded.context.name))
    }

    /// The contexts that take part with an agent.
    pub(super) fn chosen_contexts_of<'c>(
        &'c self,
        selection: &Selection,
        agent: &str,
    ) -> impl Iterator<Item = &'c LoadedContext> {
        self.chosen_contexts(selection).filter(move |loaded| selection.takes(agent, &loaded.context.name))
    }

    /// Returns `true` if a finding of loading concerns what was selected: if it names no agents, the repository does.
    pub(super) fn is_about(&self, finding: &Diagnostic, selection: &Selection) -> bool {
        if finding.agents.is_empty() {
            let path = self.sources().get(finding.primary.span.file).path();
            let files = selection.reached.as_ref().and_then(|reached| reached.files.as_ref());
            let in_shard = selection.shard.is_none_or(Shard::tells_of_repository);
            return in_shard && files.is_none_or(|files| files.contains(path));
        }
        finding.agents.iter().any(|name| {
            let id = self.hierarchy.by_name(name);
            let is_reached = selection.reached.as_ref().is_none_or(|it| it.agents.contains(name));
            is_reached && id.is_none_or(|id| selection.takes_agent(id, name))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_shard_is_one_of_several() {
        assert_eq!("2/3".parse::<Shard>().map(|shard| shard.to_string()).as_deref(), Ok("2/3"));
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
