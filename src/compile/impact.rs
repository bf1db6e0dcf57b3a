//! The bodies that a place of a file reaches: the other way round from explaining a value.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::touched::Named;
use super::unfollowed::is_comment;
use super::{Compiler, Explanation, Reach};
use crate::diag::did_you_mean;
use crate::json::Pointer;
use crate::provider::MODEL_PLACEHOLDER;
use crate::resolve::ProfileId;
use crate::source::{FileId, Span};
use crate::unit::Plan;

/// A place of which somebody asks what it reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImpactQuery {
    /// The file, as reports show it.
    pub path: String,
    /// The line, from 1; `None`: the whole file.
    pub line: Option<usize>,
    /// The column in characters, from 1; `None`: the whole line.
    pub column: Option<usize>,
}

/// The bodies of one agent that a place reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reached {
    /// The agent.
    pub agent: Arc<str>,
    /// By context: the values of its body that the place wrote. Without any, the place only decides what is written.
    pub contexts: BTreeMap<Arc<str>, BTreeSet<Pointer>>,
    /// `true` if it reaches the request beside the body: URL, headers, key.
    pub request: bool,
    /// The effect of a place that is not followed; then it reaches nothing that can be named.
    pub unfollowed: Option<&'static str>,
}

/// Why a place reaches nothing that could be told.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImpactError {
    /// No agent is made from the file.
    UnknownFile {
        /// The file that was asked for.
        path: String,
        /// A suggestion of something similar, as a phrase.
        help: Option<String>,
    },
    /// The file is a context that is left out, since something is wrong with it.
    LeftOut {
        /// The file.
        path: String,
    },
    /// The file has no such line, or the line no such column.
    NoSuchPlace {
        /// The file.
        path: String,
    },
}

impl fmt::Display for ImpactError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImpactError::UnknownFile { path, .. } => write!(f, "no agent is made from `{path}`"),
            ImpactError::LeftOut { path } => write!(f, "`{path}` is left out: something is wrong with it"),
            ImpactError::NoSuchPlace { path } => write!(f, "`{path}` has no such place"),
        }
    }
}

impl std::error::Error for ImpactError {}

impl ImpactQuery {
    /// Reads `FILE`, `FILE:LINE` or `FILE:LINE:COLUMN`; a file name may hold colons.
    pub fn parse(text: &str) -> ImpactQuery {
        let number = |part: &str| part.parse::<usize>().ok().filter(|&number| number > 0);
        let last = |text: &str| text.rsplit_once(':').and_then(|(rest, part)| Some((rest.to_owned(), number(part)?)));
        match last(text) {
            None => ImpactQuery { path: text.to_owned(), line: None, column: None },
            Some((rest, one)) => match last(&rest) {
                None => ImpactQuery { path: rest, line: Some(one), column: None },
                Some((path, line)) => ImpactQuery { path, line: Some(line), column: Some(one) },
            },
        }
    }

    /// The bytes of a file's text that are asked for; `None` if there is no such line.
    fn range(&self, text: &str) -> Option<Range<usize>> {
        let Some(line) = self.line else { return Some(0..text.len()) };
        let found = text.split('\n').nth(line - 1)?;
        let start = found.as_ptr() as usize - text.as_ptr() as usize;
        // The line end stands for an empty line; the last one has none.
        let Some(column) = self.column else { return Some(start..(start + found.len().max(1)).min(text.len())) };
        let (at, c) = found.char_indices().nth(column - 1)?;
        Some(start + at..start + at + c.len_utf8())
    }
}

/// A place that is looked for in what wrote a body: what was asked for, or what it belongs to.
struct Asked<'q> {
    query: &'q ImpactQuery,
    /// The bytes that are looked for instead of the place itself.
    instead: Option<Vec<Range<usize>>>,
}

impl Asked<'_> {
    /// The bytes of the file's text that are looked for.
    fn ranges(&self, text: &str) -> Vec<Range<usize>> {
        self.instead.clone().unwrap_or_else(|| self.query.range(text).into_iter().collect())
    }
}

/// Why nothing can be named.
const UNMADE: &str = "its bodies cannot be made";

/// The knowledge of one agent.
enum Found {
    Reached(Reached),
    /// Some of its bodies cannot be made, and those that can are not reached.
    Unmade(ProfileId),
    Nothing,
}

impl Reached {
    fn nothing(agent: &Arc<str>) -> Reached {
        Reached { agent: Arc::clone(agent), contexts: BTreeMap::new(), request: false, unfollowed: None }
    }
}

impl Compiler {
    /// Returns what a place reaches, sorted by agent.
    ///
    /// # Errors
    ///
    /// There is no such file among those that agents are made from, or no such line or column in it.
    pub fn impact(&self, asked: &ImpactQuery, agents: Option<&[ProfileId]>) -> Result<Vec<Reached>, ImpactError> {
        let chosen = self.agents().iter().filter(|(id, _)| agents.is_none_or(|ids| ids.contains(id)));
        let chosen: Vec<(ProfileId, bool)> = chosen.copied().collect();
        let found: Vec<Found> = chosen
            .into_par_iter()
            .map(|(id, is_usable)| match is_usable {
                true => self.reached_or_held(asked, id),
                false => Found::Unmade(id),
            })
            .collect();
        let unmade = found.iter().any(|it| matches!(it, Found::Unmade(_)));
        // What cannot be made is followed by the files that it is made of.
        let may_reach = if unmade { self.reach(&Named(vec![asked.path.clone()]), false) } else { Reach::default() };
        // Files that prompts read are sources once they were read.
        let is_comment = self.check_asked(asked, &may_reach)?;
        let lost = |id| {
            let agent = &self.hierarchy().get(id).name.value;
            let may = may_reach.agents.contains(agent) || !may_reach.contexts.is_empty();
            (may && !is_comment).then(|| Reached { unfollowed: Some(UNMADE), ..Reached::nothing(agent) })
        };
        let reached = found.into_iter().filter_map(|it| match it {
            Found::Reached(reached) => Some(reached),
            Found::Unmade(id) => lost(id),
            Found::Nothing => None,
        });
        Ok(reached.collect())
    }

    /// Returns whether the place is a comment; an error if there is no such place.
    fn check_asked(&self, asked: &ImpactQuery, may_reach: &Reach) -> Result<bool, ImpactError> {
        let path = &*asked.path;
        let mut files = self.sources().iter();
        let Some((id, file)) = files.find(|(_, file)| **file.path() == *path) else {
            if may_reach.files.iter().flatten().any(|file| **file == *path) {
                return Ok(false);
            }
            let paths: Vec<&str> = self.sources().iter().map(|(_, file)| &**file.path()).collect();
            let help = near_path(&asked.path, &paths);
            return Err(ImpactError::UnknownFile { path: asked.path.clone(), help });
        };
        let Some(range) = asked.range(file.text()) else {
            return Err(ImpactError::NoSuchPlace { path: asked.path.clone() });
        };
        let is_loaded = self.contexts().iter().any(|loaded| loaded.context.file == id);
        if self.repo().contexts.iter().any(|context| context.file == id) && !is_loaded {
            return Err(ImpactError::LeftOut { path: asked.path.clone() });
        }
        Ok(is_comment(path, file.text(), &range))
    }

    /// Returns what a place reaches of an agent; of one that wrote nothing itself, what it belongs to.
    fn reached_or_held(&self, query: &ImpactQuery, id: ProfileId) -> Found {
        let found = self.reached(&Asked { query, instead: None }, id);
        let is_told = |found: &Found| matches!(found, Found::Reached(Reached { unfollowed: None, .. }));
        let (Some(plan), Some((file, range))) = (self.plan(id), self.place(query)) else { return found };
        if is_told(&found) || !self.takes_part(&plan, file, &range) {
            return found;
        }
        let around = self.belongs_to(&plan, file, &range);
        if !around.is_empty() {
            let held = self.reached(&Asked { query, instead: Some(around) }, id);
            if is_told(&held) {
                return held;
            }
        }
        match self.held_together(&Asked { query, instead: None }, id) {
            contexts if contexts.is_empty() => found,
            contexts => Found::Reached(Reached { contexts, ..Reached::nothing(plan.name()) }),
        }
    }

    /// The lists and objects of bodies whose brackets and commas stand at a place.
    fn held_together(&self, asked: &Asked<'_>, id: ProfileId) -> BTreeMap<Arc<str>, BTreeSet<Pointer>> {
        let mut contexts = BTreeMap::new();
        let Some(plan) = self.plan(id) else { return contexts };
        for loaded in self.contexts().iter().filter(|loaded| loaded.context.kind() == plan.kind) {
            let name = &loaded.context.name;
            let structure = self.structure(id, name, self.client_model(&plan, None));
            let held = structure.into_iter().filter(|(_, span)| self.hits(asked, *span)).map(|(pointer, _)| pointer);
            let held: BTreeSet<Pointer> = held.collect();
            if !held.is_empty() {
                contexts.insert(Arc::clone(name), held);
            }
        }
        contexts
    }

    fn reached(&self, asked: &Asked<'_>, id: ProfileId) -> Found {
        let Some(plan) = self.plan(id) else { return Found::Unmade(id) };
        let hits = |span: &Span| self.hits(asked, *span);
        let (brought, removed) = (self.brought(&plan, asked), self.removed(&plan, asked));
        let is_reached = |it: &Explanation| {
            writers(it).any(|span| hits(&span)) || said_at(it).is_some_and(|span| brought.contains(&span.file))
        };
        let mut contexts: BTreeMap<Arc<str>, BTreeSet<Pointer>> = BTreeMap::new();
        let (mut unknown, mut is_unmade) = (None, false);
        for loaded in self.contexts().iter().filter(|loaded| loaded.context.kind() == plan.kind) {
            let name = &loaded.context.name;
            let model = self.client_model(&plan, None);
            let Some(Ok(explained)) = self.explain_with_branches(id, name, model) else {
                (unknown, is_unmade) = (Some(UNMADE), true);
                continue;
            };
            let values = explained.values.iter().filter(|it| is_reached(it));
            let keys = explained.keys.iter().filter(|(_, key)| hits(key)).map(|(pointer, _)| pointer.clone());
            let pointers = values.map(|it| it.pointer.clone()).chain(keys).chain(removed.iter().cloned());
            let pointers: BTreeSet<Pointer> = pointers.collect();
            if !pointers.is_empty() || explained.branches.iter().any(hits) {
                contexts.insert(Arc::clone(name), pointers);
            }
        }
        let request = self.request_places(&plan).iter().any(|span| hits(span) || brought.contains(&span.file))
            || self.removes_header(&plan, asked);
        let is_reached = request || !contexts.is_empty();
        let unfollowed = || {
            let (file, range) = self.place(asked.query)?;
            self.unfollowed(&plan, (file, &range), unknown)
        };
        let unfollowed = if is_reached { None } else { unfollowed() };
        match (is_reached || unfollowed.is_some(), is_unmade) {
            (true, _) => Found::Reached(Reached { agent: Arc::clone(plan.name()), contexts, request, unfollowed }),
            (false, true) if !self.is_surely_nothing(id, &plan, asked.query) => Found::Unmade(id),
            (false, _) => Found::Nothing,
        }
    }

    /// Returns `true` if a place does nothing to an agent, also where its bodies cannot be made: of provider instances all is known.
    fn is_surely_nothing(&self, id: ProfileId, plan: &Plan<'_>, asked: &ImpactQuery) -> bool {
        let is_nothing = |file, range| self.files_of_instance(id).contains(&file) || self.is_aside(plan, file, &range);
        self.place(asked).is_some_and(|(file, range)| is_nothing(file, range))
    }

    /// The profiles that come in by the `extends` that is asked for.
    fn brought(&self, plan: &Plan<'_>, asked: &Asked<'_>) -> BTreeSet<FileId> {
        let at = plan
            .profile
            .chain
            .iter()
            .position(|profile| profile.extends.as_ref().is_some_and(|name| self.hits(asked, name.span)))
            .map_or(plan.profile.chain.len(), |at| at + 1);
        plan.profile.chain[at..].iter().map(|profile| profile.file).collect()
    }

    /// The members of the body that the entries of `unset` which are asked for keep out of it.
    fn removed(&self, plan: &Plan<'_>, asked: &Asked<'_>) -> Vec<Pointer> {
        let entries = plan.profile.chain.iter().flat_map(|profile| &profile.unset);
        let asked = entries.filter(|entry| self.hits(asked, entry.span));
        let member = |path: &Vec<String>| path.iter().fold(Pointer::root(), |at, name| at.member(name));
        let removed = asked.map(|entry| (member(&entry.value), entry.span));
        removed.filter(|(at, span)| plan.unset_at(at) == Some(*span)).map(|(at, _)| at).collect()
    }

    /// Returns `true` if an entry of `unset` that is asked for keeps a header out of the request.
    fn removes_header(&self, plan: &Plan<'_>, asked: &Asked<'_>) -> bool {
        let entries = plan.profile.chain.iter().flat_map(|profile| &profile.unset);
        let mut asked = entries.filter(|entry| self.hits(asked, entry.span));
        asked.any(|entry| match entry.value.as_slice() {
            [table, name] if table == "headers" => !plan.profile.headers().any(|(it, _)| it.eq_ignore_ascii_case(name)),
            _ => false,
        })
    }

    /// The file that is asked for, and the bytes of it.
    fn place(&self, asked: &ImpactQuery) -> Option<(FileId, Range<usize>)> {
        let (id, file) = self.sources().iter().find(|(_, file)| **file.path() == *asked.path)?;
        Some((id, asked.range(file.text())?))
    }

    /// Every place that takes part in the request beside the body.
    fn request_places(&self, plan: &Plan<'_>) -> Vec<Span> {
        let setting = |key| Some(plan.profile.string(key)?.span);
        let headers = plan.profile.headers().map(|(_, value)| value.span);
        let model = self.repo().models.get(plan.name()).map(|model| model.span).or_else(|| setting("model"));
        let instance = plan.instance;
        let key = instance.api_key_ref.as_ref().map(|key| key.span);
        let of_instance = [instance.name.span, instance.client_api.span, instance.url.span].into_iter().chain(key);
        let mut places: Vec<Span> = ["provider_instance", "endpoint"].into_iter().filter_map(setting).collect();
        places.extend(of_instance.chain(instance.header_spans.iter().copied()).chain(headers));
        places.extend(model.filter(|_| plan.endpoint().contains(MODEL_PLACEHOLDER)));
        places
    }

    fn hits(&self, asked: &Asked<'_>, span: Span) -> bool {
        let file = self.sources().get(span.file);
        if **file.path() != *asked.query.path {
            return false;
        }
        let (start, end) = (span.start as usize, (span.end as usize).max(span.start as usize + 1));
        asked.ranges(file.text()).iter().any(|range| start < range.end && range.start < end)
    }
}

/// The file whose name is near: the same name in another folder, or a name that is spelt much the same.
fn near_path(wanted: &str, paths: &[&str]) -> Option<String> {
    let (named, stem) = (file_name(wanted), stem(wanted));
    let same: Vec<&str> = paths.iter().copied().filter(|path| file_name(path) == named).collect();
    if let [one] = same.as_slice() {
        return Some(format!("did you mean `{one}`?"));
    }
    let is_near = |path: &str| did_you_mean(stem, std::iter::once(self::stem(path))).is_some();
    did_you_mean(wanted, paths.iter().copied().filter(|path| is_near(path)))
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The name without its ending, which many files share.
fn stem(path: &str) -> &str {
    let name = file_name(path);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// Where the profile says a value, or switches on the step that writes it.
fn said_at(explanation: &Explanation) -> Option<Span> {
    explanation.literal.or_else(|| explanation.step?.1)
}

/// Every place that takes part in a value.
fn writers(explanation: &Explanation) -> impl Iterator<Item = Span> + '_ {
    let literal = explanation.literal.filter(|_| explanation.sources.is_empty());
    let step = explanation.step.and_then(|(_, setting)| setting).into_iter().chain(explanation.placed_by);
    let sources = explanation.sources.iter().flat_map(|source| {
        let steps = source.steps.iter().map(|step| step.span);
        [source.span, source.tag].into_iter().flatten().chain(source.made_of.iter().copied()).chain(steps)
    });
    literal.into_iter().chain(step).chain(sources)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_near_names_are_suggested() {
        let paths = ["agents/a.toml", "agents/helper.toml", "bundled:agents/claude/claude_base.toml"];
        assert_eq!(near_path("agents/nope.toml", &paths), None);
        assert_eq!(near_path("agents/b.toml", &paths), None);
        assert_eq!(near_path("agents/helpr.toml", &paths).as_deref(), Some("did you mean `agents/helper.toml`?"));
        let bundled = "did you mean `bundled:agents/claude/claude_base.toml`?";
        assert_eq!(near_path("agents/claude_base.toml", &paths).as_deref(), Some(bundled));
    }

    #[test]
    fn places_are_read_from_the_right() {
        let asked = |text: &str| {
            let ImpactQuery { path, line, column } = ImpactQuery::parse(text);
            (path, line, column)
        };
        assert_eq!(asked("a.toml"), ("a.toml".to_owned(), None, None));
        assert_eq!(asked("a.toml:3"), ("a.toml".to_owned(), Some(3), None));
        assert_eq!(asked("a.toml:3:4"), ("a.toml".to_owned(), Some(3), Some(4)));
        assert_eq!(asked("bundled:a.toml:3"), ("bundled:a.toml".to_owned(), Some(3), None));
        assert_eq!(asked("a:b"), ("a:b".to_owned(), None, None));
    }

    #[test]
    fn lines_and_columns_are_characters() {
        let place = |line, column| ImpactQuery { path: String::new(), line, column };
        assert_eq!(place(None, None).range("é\nab"), Some(0..5));
        assert_eq!(place(Some(2), None).range("é\nab"), Some(3..5));
        assert_eq!(place(Some(1), Some(1)).range("é\nab"), Some(0..2));
        assert_eq!(place(Some(2), Some(3)).range("é\nab"), None);
        assert_eq!(place(Some(3), None).range("é\nab"), None);
        assert_eq!(place(Some(2), None).range("é\n\nab"), Some(3..4));
        assert_eq!(place(Some(2), None).range("é\n"), Some(3..3));
    }
}
