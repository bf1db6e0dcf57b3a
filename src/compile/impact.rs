//! Finds the bodies that a location in a file reaches: the inverse of explaining a value.

mod spot;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use self::spot::{Spot, is_comment};
use super::compiler::Compiler;
use super::explain::{Explainer, Explanation};
use super::reach::users::files_of_instance;
use super::reach::{FileReach, Named};
use super::selection::Reach;
use crate::diag::{count, did_you_mean};
use crate::json::Pointer;
use crate::provider::MODEL_PLACEHOLDER;
use crate::resolve::ProfileId;
use crate::source::{BUNDLED, FileId, Sources, Span};
use crate::unit::Plan;

/// A location, given by file, line and column, whose impact is requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImpactQuery {
    /// The path of the file, as in reports.
    pub path: String,
    /// The line, from 1; `None` for the whole file.
    pub line: Option<usize>,
    /// The column in characters, from 1; `None` for the whole line.
    pub column: Option<usize>,
}

/// One agent's bodies that a location reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reached {
    /// The name of the agent.
    pub agent: Arc<str>,
    /// The values that the location wrote, by context. If a context has no values, the location
    /// only controls what is written in that context.
    pub contexts: BTreeMap<Arc<str>, BTreeSet<Pointer>>,
    /// `true` if the location affects the request outside the body (URL, headers or key).
    pub request: bool,
    /// The effect of a location that cannot be traced. If there is such an effect, no values are
    /// listed.
    pub unfollowed: Option<&'static str>,
}

/// The reason a location's reach cannot be reported.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImpactError {
    /// No agent uses the file.
    UnknownFile {
        /// The path from the query.
        path: String,
        /// A suggestion of something similar, as a phrase.
        help: Option<String>,
    },
    /// The file is a context with errors, which is left out.
    LeftOut {
        /// The path of the file.
        path: String,
    },
    /// The file does not contain the queried line.
    NoSuchLine {
        /// The path of the file.
        path: String,
        /// The line from the query.
        line: usize,
        /// The last line that a query may specify.
        lines: usize,
    },
    /// The line does not contain the queried column.
    NoSuchColumn {
        /// The path of the file.
        path: String,
        /// The line from the query.
        line: usize,
        /// The column from the query.
        column: usize,
        /// The last column that a query may specify.
        columns: usize,
    },
}

impl fmt::Display for ImpactError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImpactError::UnknownFile { path, .. } => write!(f, "no agent uses `{path}`"),
            ImpactError::LeftOut { path } => {
                write!(f, "`{path}` is left out because it has errors")
            }
            ImpactError::NoSuchLine { path, line, lines } => {
                let lines = count(*lines, "line");
                write!(f, "`{path}` has no line {line}: it has {lines}")
            }
            ImpactError::NoSuchColumn {
                path,
                line,
                column,
                columns,
            } => {
                let columns = count(*columns, "column");
                write!(
                    f,
                    "line {line} of `{path}` has no column {column}: it has {columns}"
                )
            }
        }
    }
}

impl std::error::Error for ImpactError {}

impl ImpactQuery {
    /// Parses `FILE`, `FILE:LINE` or `FILE:LINE:COLUMN`; a file name may contain colons.
    pub fn parse(text: &str) -> ImpactQuery {
        let Some((rest, one)) = last_number(text) else {
            return ImpactQuery {
                path: text.to_owned(),
                line: None,
                column: None,
            };
        };
        match last_number(rest) {
            None => ImpactQuery {
                path: rest.to_owned(),
                line: Some(one),
                column: None,
            },
            Some((path, line)) => ImpactQuery {
                path: path.to_owned(),
                line: Some(line),
                column: Some(one),
            },
        }
    }

    /// Returns the queried range of a file's text, in bytes.
    fn range(&self, text: &str) -> Result<Range<usize>, ImpactError> {
        let Some(line) = self.line else {
            return Ok(0..text.len());
        };
        let lines = text.split('\n');
        let Some(found) = lines.clone().nth(line - 1) else {
            return Err(ImpactError::NoSuchLine {
                path: self.path.clone(),
                line,
                lines: lines.count(),
            });
        };
        let start = found.as_ptr() as usize - text.as_ptr() as usize;
        // The range of an empty line is its line break; the last line has none.
        let Some(column) = self.column else {
            return Ok(start..(start + found.len().max(1)).min(text.len()));
        };
        match found.char_indices().nth(column - 1) {
            Some((at, c)) => Ok(start + at..start + at + c.len_utf8()),
            None => Err(ImpactError::NoSuchColumn {
                path: self.path.clone(),
                line,
                column,
                columns: found.chars().count(),
            }),
        }
    }
}

/// Splits a positive number off the end of `FILE:NUMBER`.
fn last_number(text: &str) -> Option<(&str, usize)> {
    let (rest, part) = text.rsplit_once(':')?;
    Some((rest, part.parse().ok().filter(|&number| number > 0)?))
}

/// The reason that is reported if no values can be listed.
const UNMADE: &str = "its bodies cannot be compiled";

/// The result for one agent.
enum Found {
    Reached(Reached),
    /// Some of the agent's bodies cannot be compiled, and the location does not reach the other
    /// bodies.
    Unmade(ProfileId),
    Nothing,
}

impl Found {
    fn is_told(&self) -> bool {
        matches!(
            self,
            Found::Reached(Reached {
                unfollowed: None,
                ..
            })
        )
    }
}

impl Reached {
    fn nothing(agent: &Arc<str>) -> Reached {
        Reached {
            agent: Arc::clone(agent),
            contexts: BTreeMap::new(),
            request: false,
            unfollowed: None,
        }
    }
}

/// Returns the bodies that a location reaches, sorted by agent.
///
/// # Errors
///
/// Returns an error if no agent uses the file, or if the file does not contain the queried line or
/// column.
pub fn impact(
    compiler: &Compiler,
    asked: &ImpactQuery,
    agents: Option<&[ProfileId]>,
) -> Result<Vec<Reached>, ImpactError> {
    let chosen = compiler
        .agents()
        .iter()
        .filter(|(id, _)| agents.is_none_or(|ids| ids.contains(id)));
    let chosen: Vec<(ProfileId, bool)> = chosen.copied().collect();
    let tracer = Tracer {
        compiler,
        query: asked,
    };
    let found = chosen
        .into_par_iter()
        .map(|(id, is_usable)| match is_usable {
            true => tracer.reached_or_held(id),
            false => Found::Unmade(id),
        });
    let found: Vec<Found> = found.collect();
    let unmade = found.iter().any(|it| matches!(it, Found::Unmade(_)));
    // Agents whose bodies cannot be compiled are traced through their files.
    let may_reach = match unmade {
        true => FileReach::new(compiler).of(&Named(vec![asked.path.clone()]), false),
        false => Reach::default(),
    };
    // Files that prompts read become sources when they are read.
    let is_comment = tracer.check(&may_reach)?;
    let mut reached = Vec::new();
    for found in found {
        match found {
            Found::Reached(it) => reached.push(it),
            Found::Unmade(id) if !is_comment => {
                let agent = &compiler.hierarchy().get(id).name.value;
                if may_reach.agents.contains(agent) || !may_reach.contexts.is_empty() {
                    reached.push(Reached {
                        unfollowed: Some(UNMADE),
                        ..Reached::nothing(agent)
                    });
                }
            }
            Found::Unmade(_) | Found::Nothing => {}
        }
    }
    Ok(reached)
}

/// Traces the reach of a location, agent by agent.
#[derive(Clone, Copy)]
struct Tracer<'a> {
    compiler: &'a Compiler,
    query: &'a ImpactQuery,
}

impl<'a> Tracer<'a> {
    /// Returns `true` if the location is a comment, and an error if the location does not exist.
    fn check(&self, may_reach: &Reach) -> Result<bool, ImpactError> {
        let (compiler, path) = (self.compiler, &self.query.path);
        let mut files = compiler.sources().iter();
        let Some((id, file)) = files.find(|(_, file)| **file.path() == **path) else {
            if may_reach
                .files
                .iter()
                .flatten()
                .any(|file| **file == **path)
            {
                return Ok(false);
            }
            let paths: Vec<&str> = compiler
                .sources()
                .iter()
                .map(|(_, file)| &**file.path())
                .collect();
            return Err(ImpactError::UnknownFile {
                path: path.clone(),
                help: near_path(path, &paths),
            });
        };
        let range = self.query.range(file.text())?;
        let is_loaded = compiler
            .contexts()
            .iter()
            .any(|loaded| loaded.context.file == id);
        if compiler
            .repo()
            .contexts
            .iter()
            .any(|context| context.file == id)
            && !is_loaded
        {
            return Err(ImpactError::LeftOut { path: path.clone() });
        }
        Ok(is_comment(path, file.text(), &range))
    }

    /// Returns the effect of the location on an agent or, if the location wrote nothing, the effect
    /// of the construct around the location.
    fn reached_or_held(&self, id: ProfileId) -> Found {
        let found = self.reached(id, None);
        let (Some(plan), Some((file, range))) = (self.compiler.plan(id), self.place()) else {
            return found;
        };
        let spot = Spot {
            compiler: self.compiler,
            plan: &plan,
            file,
            range: &range,
        };
        if found.is_told() || !spot.takes_part() {
            return found;
        }
        let around = spot.belongs_to();
        if !around.is_empty() {
            let held = self.reached(id, Some(around));
            if held.is_told() {
                return held;
            }
        }
        match self.held_together(id, &plan) {
            contexts if contexts.is_empty() => found,
            contexts => Found::Reached(Reached {
                contexts,
                ..Reached::nothing(plan.name())
            }),
        }
    }

    /// Returns the lists and objects in bodies whose brackets and commas the location writes.
    fn held_together(
        &self,
        id: ProfileId,
        plan: &Plan<'_>,
    ) -> BTreeMap<Arc<str>, BTreeSet<Pointer>> {
        let (asked, model) = (
            self.asked(None),
            self.compiler.repo.client_model(plan.name(), None),
        );
        let mut contexts = BTreeMap::new();
        for loaded in self
            .compiler
            .contexts()
            .iter()
            .filter(|loaded| loaded.context.kind() == plan.kind)
        {
            let name = &loaded.context.name;
            let structure = Explainer::new(self.compiler).structure(id, name, model);
            let held = structure
                .into_iter()
                .filter(|(_, span)| asked.hits(*span))
                .map(|(pointer, _)| pointer);
            let held: BTreeSet<Pointer> = held.collect();
            if !held.is_empty() {
                contexts.insert(Arc::clone(name), held);
            }
        }
        contexts
    }

    /// Returns the effect of the location, or of the ranges in `instead`, on an agent.
    fn reached(&self, id: ProfileId, instead: Option<Vec<Range<usize>>>) -> Found {
        let Some(plan) = self.compiler.plan(id) else {
            return Found::Unmade(id);
        };
        let asked = self.asked(instead);
        let (brought, removed) = (brought(&plan, &asked), removed(&plan, &asked));
        let model = self.compiler.repo.client_model(plan.name(), None);
        let mut contexts: BTreeMap<Arc<str>, BTreeSet<Pointer>> = BTreeMap::new();
        let mut unknown = None;
        for loaded in self
            .compiler
            .contexts()
            .iter()
            .filter(|loaded| loaded.context.kind() == plan.kind)
        {
            let name = &loaded.context.name;
            let explained = Explainer::new(self.compiler).explain_with_branches(id, name, model);
            let Some(Ok(explained)) = explained else {
                unknown = Some(UNMADE);
                continue;
            };
            let values = explained
                .values
                .iter()
                .filter(|it| asked.reaches(it, &brought));
            let keys = explained
                .keys
                .iter()
                .filter(|(_, key)| asked.hits(*key))
                .map(|(pointer, _)| pointer.clone());
            let pointers = values
                .map(|it| it.pointer.clone())
                .chain(keys)
                .chain(removed.iter().cloned());
            let pointers: BTreeSet<Pointer> = pointers.collect();
            if !pointers.is_empty() || explained.branches.iter().any(|span| asked.hits(*span)) {
                contexts.insert(Arc::clone(name), pointers);
            }
        }
        let places = request_places(self.compiler, &plan);
        let request = places
            .iter()
            .any(|span| asked.hits(*span) || brought.contains(&span.file))
            || removes_header(&plan, &asked);
        let is_reached = request || !contexts.is_empty();
        let unfollowed = if is_reached {
            None
        } else {
            self.unfollowed(&plan, unknown)
        };
        if is_reached || unfollowed.is_some() {
            return Found::Reached(Reached {
                agent: Arc::clone(plan.name()),
                contexts,
                request,
                unfollowed,
            });
        }
        match unknown.is_some() && !self.is_surely_nothing(id, &plan) {
            true => Found::Unmade(id),
            false => Found::Nothing,
        }
    }

    fn unfollowed(&self, plan: &Plan<'_>, unknown: Option<&'static str>) -> Option<&'static str> {
        let (file, range) = self.place()?;
        Spot {
            compiler: self.compiler,
            plan,
            file,
            range: &range,
        }
        .unfollowed(unknown)
    }

    /// Returns `true` if the location certainly has no effect on an agent, even if its bodies
    /// cannot be compiled. This includes locations in the files of provider instances, whose
    /// effects are fully known.
    fn is_surely_nothing(&self, id: ProfileId, plan: &Plan<'_>) -> bool {
        let Some((file, range)) = self.place() else {
            return false;
        };
        files_of_instance(self.compiler, id).contains(&file)
            || Spot {
                compiler: self.compiler,
                plan,
                file,
                range: &range,
            }
            .is_aside()
    }

    /// Returns the queried file, and the range in its text.
    fn place(&self) -> Option<(FileId, Range<usize>)> {
        let (id, file) = self
            .compiler
            .sources()
            .iter()
            .find(|(_, file)| **file.path() == *self.query.path)?;
        Some((id, self.query.range(file.text()).ok()?))
    }

    fn asked(&self, instead: Option<Vec<Range<usize>>>) -> Asked<'a> {
        Asked {
            sources: self.compiler.sources(),
            query: self.query,
            instead,
        }
    }
}

/// A location to find among the origins of a body: the queried location, or the construct that
/// contains it.
struct Asked<'a> {
    sources: &'a Sources,
    query: &'a ImpactQuery,
    /// The ranges to find instead of the queried location.
    instead: Option<Vec<Range<usize>>>,
}

impl Asked<'_> {
    fn hits(&self, span: Span) -> bool {
        let file = self.sources.get(span.file);
        if **file.path() != *self.query.path {
            return false;
        }
        let (start, end) = (
            span.start as usize,
            (span.end as usize).max(span.start as usize + 1),
        );
        self.ranges(file.text())
            .iter()
            .any(|range| start < range.end && range.start < end)
    }

    /// Returns the ranges to find in the file's text.
    fn ranges(&self, text: &str) -> Vec<Range<usize>> {
        self.instead
            .clone()
            .unwrap_or_else(|| self.query.range(text).into_iter().collect())
    }

    /// Returns `true` if the location contributes to a value, or adds the profile that sets it.
    fn reaches(&self, value: &Explanation, brought: &BTreeSet<FileId>) -> bool {
        writers(value).any(|span| self.hits(span))
            || said_at(value).is_some_and(|span| brought.contains(&span.file))
    }
}

/// Returns the profiles that the queried `extends` adds.
fn brought(plan: &Plan<'_>, asked: &Asked<'_>) -> BTreeSet<FileId> {
    let chain = &plan.profile.chain;
    let at = chain.iter().position(|profile| {
        profile
            .extends
            .as_ref()
            .is_some_and(|name| asked.hits(name.span))
    });
    chain[at.map_or(chain.len(), |at| at + 1)..]
        .iter()
        .map(|profile| profile.file)
        .collect()
}

/// Returns the members that queried `unset` entries remove from the body.
fn removed(plan: &Plan<'_>, asked: &Asked<'_>) -> Vec<Pointer> {
    let mut removed = Vec::new();
    for entry in plan.profile.chain.iter().flat_map(|profile| &profile.unset) {
        let at = entry
            .value
            .iter()
            .fold(Pointer::root(), |at, name| at.member(name));
        if asked.hits(entry.span) && plan.unset_at(&at) == Some(entry.span) {
            removed.push(at);
        }
    }
    removed
}

/// Returns `true` if a queried `unset` entry removes a header from the request.
fn removes_header(plan: &Plan<'_>, asked: &Asked<'_>) -> bool {
    let entries = plan.profile.chain.iter().flat_map(|profile| &profile.unset);
    let mut asked = entries.filter(|entry| asked.hits(entry.span));
    asked.any(|entry| match entry.value.as_slice() {
        [table, name] if table == "headers" => !plan
            .profile
            .headers()
            .any(|(it, _)| it.eq_ignore_ascii_case(name)),
        _ => false,
    })
}

/// Returns every location that contributes to the request outside the body.
fn request_places(compiler: &Compiler, plan: &Plan<'_>) -> Vec<Span> {
    let (profile, instance) = (&plan.profile, plan.instance);
    let mut places = vec![
        instance.name.span,
        instance.client_api.span,
        instance.url.span,
    ];
    places.extend(instance.api_key_ref.as_ref().map(|key| key.span));
    places.extend(instance.header_spans.iter().copied());
    let settings = ["provider_instance", "endpoint"]
        .into_iter()
        .filter_map(|key| profile.string(key));
    places.extend(settings.map(|setting| setting.span));
    places.extend(profile.headers().map(|(_, value)| value.span));
    if plan.endpoint().contains(MODEL_PLACEHOLDER) {
        let named = compiler
            .repo()
            .models
            .get(plan.name())
            .map(|model| model.span);
        places.extend(named.or_else(|| Some(profile.string("model")?.span)));
    }
    places
}

/// Suggests a file with a similar path: the same name in a different folder, or a similar name.
fn near_path(wanted: &str, paths: &[&str]) -> Option<String> {
    let mut numbered = wanted.match_indices(':').map(|(at, _)| &wanted[..at]);
    if let Some(path) = numbered.find(|path| paths.contains(path)) {
        return Some(format!(
            "write line and column as numbers, starting at 1: `{path}:3:7`"
        ));
    }
    let bundled = format!("{BUNDLED}{wanted}");
    if paths.contains(&bundled.as_str()) {
        return Some(format!("did you mean `{bundled}`?"));
    }
    let (named, stem) = (file_name(wanted), stem(wanted));
    let same: Vec<&str> = paths
        .iter()
        .copied()
        .filter(|path| file_name(path) == named)
        .collect();
    if let [one] = same.as_slice() {
        return Some(format!("did you mean `{one}`?"));
    }
    let is_near = |path: &str| did_you_mean(stem, std::iter::once(self::stem(path))).is_some();
    did_you_mean(wanted, paths.iter().copied().filter(|path| is_near(path)))
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns the name without its extension, because many files have the same extension.
fn stem(path: &str) -> &str {
    let name = file_name(path);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// Returns the location where the profile sets a value, or enables the step that writes it.
fn said_at(explanation: &Explanation) -> Option<Span> {
    explanation.literal.or_else(|| explanation.step?.1)
}

/// Returns every location that contributes to a value.
fn writers(explanation: &Explanation) -> impl Iterator<Item = Span> + '_ {
    let literal = explanation
        .literal
        .filter(|_| explanation.sources.is_empty());
    let step = explanation
        .step
        .and_then(|(_, setting)| setting)
        .into_iter()
        .chain(explanation.placed_by);
    let sources = explanation.sources.iter().flat_map(|source| {
        let steps = source.steps.iter().map(|step| step.span);
        [source.span, source.tag]
            .into_iter()
            .flatten()
            .chain(source.made_of.iter().copied())
            .chain(steps)
    });
    literal.into_iter().chain(step).chain(sources)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_near_names_are_suggested() {
        let paths = [
            "agents/a.toml",
            "agents/helper.toml",
            "bundled:agents/claude/claude_base.toml",
        ];
        assert_eq!(near_path("agents/nope.toml", &paths), None);
        assert_eq!(near_path("agents/b.toml", &paths), None);
        assert_eq!(
            near_path("agents/helpr.toml", &paths).as_deref(),
            Some("did you mean `agents/helper.toml`?")
        );
        assert_eq!(
            near_path("agents/a.toml:0", &paths).as_deref(),
            Some("write line and column as numbers, starting at 1: `agents/a.toml:3:7`")
        );
        let bundled = "did you mean `bundled:agents/claude/claude_base.toml`?";
        assert_eq!(
            near_path("agents/claude_base.toml", &paths).as_deref(),
            Some(bundled)
        );
        assert_eq!(
            near_path("agents/claude/claude_base.toml", &paths).as_deref(),
            Some(bundled)
        );
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
        assert_eq!(
            asked("bundled:a.toml:3"),
            ("bundled:a.toml".to_owned(), Some(3), None)
        );
        assert_eq!(asked("a:b"), ("a:b".to_owned(), None, None));
    }

    #[test]
    fn lines_and_columns_are_characters() {
        let place = |line, column| ImpactQuery {
            path: "a.toml".to_owned(),
            line,
            column,
        };
        assert_eq!(place(None, None).range("é\nab"), Ok(0..5));
        assert_eq!(place(Some(2), None).range("é\nab"), Ok(3..5));
        assert_eq!(place(Some(1), Some(1)).range("é\nab"), Ok(0..2));
        for (line, column, told) in [
            (
                2,
                Some(3),
                "line 2 of `a.toml` has no column 3: it has 2 columns",
            ),
            (3, None, "`a.toml` has no line 3: it has 2 lines"),
            (3, Some(1), "`a.toml` has no line 3: it has 2 lines"),
        ] {
            let error = place(Some(line), column).range("é\nab").expect_err(told);
            assert_eq!(error.to_string(), told);
        }
        // The number of lines includes the empty line at the end.
        let error = place(Some(3), None).range("é\n").expect_err("two lines");
        assert_eq!(error.to_string(), "`a.toml` has no line 3: it has 2 lines");
        assert_eq!(place(Some(2), None).range("é\n\nab"), Ok(3..4));
        assert_eq!(place(Some(2), None).range("é\n"), Ok(3..3));
    }
}
