//! Files that a roster now routes to a different agent.
//!
//! There is no list of all files that people may open. Instead, names generated from both sides'
//! patterns are routed on both sides. All reported changes are real, and every pattern that was
//! added, removed or moved contributes names.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::router::{Router, match_patterns, matcher};
use crate::compile::compiler::Compiler;
use crate::repo::{FileToRoute, Matcher, Roster, examples};

/// Files that a roster now routes to a different agent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rerouted {
    /// The name of the roster.
    pub roster: Arc<str>,
    /// The agent that received the files before, by its current name; `None` if there was none.
    pub from: Option<Arc<str>>,
    /// The agent that receives the files now; `None` if there is none.
    pub to: Option<Arc<str>>,
    /// Example paths, generated from patterns, each followed by a project's name in brackets if
    /// only that project's files are affected.
    pub files: Vec<String>,
    /// `true` if files that no pattern mentions are also affected.
    pub has_others: bool,
}

/// A path that no pattern mentions.
const OTHER: &str = "file";

/// The maximum number of paths and projects to route. It is lower for rosters with very many
/// agents.
const MOST_ASKED: usize = 1_000;
/// The maximum number of times that an agent is checked against a path.
const MOST_QUESTIONS: usize = 500_000;

/// Returns the files that are routed differently than on an older side, by roster. `older_names`
/// contains the older names of agents, by their current names. Rosters that exist on one side only
/// are left out.
pub fn rerouted(
    now: &Compiler,
    older: &Compiler,
    older_names: &BTreeMap<Arc<str>, Arc<str>>,
) -> Vec<Rerouted> {
    let newer_names: BTreeMap<&Arc<str>, &Arc<str>> =
        older_names.iter().map(|(new, old)| (old, new)).collect();
    let mut all = Vec::new();
    for roster in &now.repo().rosters {
        let before = older
            .repo()
            .rosters
            .iter()
            .find(|it| it.name.value == roster.name.value);
        let Some(before) = before else { continue };
        let now = Table::of(now, roster);
        let mut before = Table::of(older, before);
        for stop in &mut before.0 {
            if let Some(newer) = newer_names.get(&stop.agent) {
                stop.agent = Arc::clone(newer);
            }
        }
        if now
            .0
            .iter()
            .map(Stop::key)
            .ne(before.0.iter().map(Stop::key))
        {
            all.extend(between(&roster.name.value, &before, &now));
        }
    }
    all
}

/// The agents in a roster that can receive files, in order.
struct Table(Vec<Stop>);

struct Stop {
    agent: Arc<str>,
    /// The patterns for files, paths and projects, as written.
    patterns: [Vec<Arc<str>>; 3],
    matcher: Matcher,
}

impl Stop {
    fn of(side: &Compiler, agent: &Arc<str>) -> Option<Stop> {
        let (_, profile) = Router::new(side).candidate(agent)?;
        let patterns =
            match_patterns(&profile).map(|list| list.into_iter().map(Arc::from).collect());
        Some(Stop {
            agent: Arc::clone(agent),
            patterns,
            matcher: matcher(&profile),
        })
    }

    fn key(&self) -> (&Arc<str>, &[Vec<Arc<str>>; 3]) {
        (&self.agent, &self.patterns)
    }
}

impl Table {
    fn of(side: &Compiler, roster: &Roster) -> Table {
        Table(
            roster
                .agents
                .iter()
                .filter_map(|agent| Stop::of(side, &agent.value))
                .collect(),
        )
    }

    fn route(&self, file: &FileToRoute) -> Option<&Arc<str>> {
        self.0
            .iter()
            .find(|stop| stop.matcher.mismatches(file).is_empty())
            .map(|stop| &stop.agent)
    }

    fn patterns(&self, at: usize) -> impl Iterator<Item = &Arc<str>> {
        self.0.iter().flat_map(move |stop| &stop.patterns[at])
    }
}

/// The previous agent and the current agent.
type Move<'t> = (Option<&'t Arc<str>>, Option<&'t Arc<str>>);

/// Returns the differences between two states of a roster, grouped by the previous and current
/// agents.
fn between(roster: &Arc<str>, before: &Table, now: &Table) -> Vec<Rerouted> {
    let most = (MOST_QUESTIONS / (before.0.len() + now.0.len()).max(1)).min(MOST_ASKED);
    let mut moves: BTreeMap<Move<'_>, Vec<String>> = BTreeMap::new();
    let projects: BTreeSet<&Arc<str>> = [before, now]
        .iter()
        .flat_map(|side| side.patterns(2))
        .collect();
    let projects: Vec<Option<&Arc<str>>> = std::iter::once(None)
        .chain(projects.into_iter().map(Some))
        .collect();
    let asked = paths(before, now)
        .into_iter()
        .flat_map(|path| projects.iter().map(move |it| (path.clone(), *it)));
    // A file that is rerouted in every project is reported without a project.
    let mut told: BTreeSet<(String, Move<'_>)> = BTreeSet::new();
    for (path, project) in asked.take(most) {
        let file = FileToRoute::new(&path, project.map(|it| &**it));
        let (from, to) = (before.route(&file), now.route(&file));
        if from != to && told.insert((path.clone(), (from, to))) {
            let shown = project.map_or_else(
                || path.clone(),
                |project| format!("{path} (project {project})"),
            );
            moves.entry((from, to)).or_default().push(shown);
        }
    }
    let rerouted = moves.into_iter().map(|((from, to), mut files)| {
        let has_others = files.first().is_some_and(|file| file == OTHER);
        files.drain(..usize::from(has_others));
        Rerouted {
            roster: Arc::clone(roster),
            from: from.cloned(),
            to: to.cloned(),
            files,
            has_others,
        }
    });
    rerouted.collect()
}

/// Returns paths generated from both sides' patterns: first [`OTHER`], then one path for each
/// pattern, then names that match file patterns, in folders from path patterns.
fn paths(before: &Table, now: &Table) -> Vec<String> {
    let (files, folders) = (made(before, now, 0), made(before, now, 1));
    let both = folders.iter().flat_map(|folder| {
        let folder = folder
            .rsplit_once('/')
            .map_or(String::new(), |(folder, _)| format!("{folder}/"));
        files
            .iter()
            .map(move |file| format!("{folder}{}", file.rsplit('/').next().unwrap_or_default()))
    });
    let mut known = BTreeSet::new();
    let all = std::iter::once(OTHER.to_owned())
        .chain(files.iter().cloned())
        .chain(folders.iter().cloned())
        .chain(both);
    all.filter(|path| known.insert(path.clone())).collect()
}

/// Returns names generated from both sides' file patterns or path patterns.
fn made(before: &Table, now: &Table, at: usize) -> BTreeSet<String> {
    let patterns: BTreeSet<&Arc<str>> = [before, now]
        .iter()
        .flat_map(|side| side.patterns(at))
        .collect();
    patterns
        .into_iter()
        .flat_map(|pattern| examples(pattern))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(stops: &[(&str, [&[&str]; 3])]) -> Table {
        Table(
            stops
                .iter()
                .map(|(agent, patterns)| Stop {
                    agent: (*agent).into(),
                    patterns: patterns.map(|list| list.iter().map(|it| Arc::from(*it)).collect()),
                    matcher: Matcher::new(
                        patterns[0].iter().copied(),
                        patterns[1].iter().copied(),
                        patterns[2].iter().copied(),
                    ),
                })
                .collect(),
        )
    }

    fn told(before: &Table, now: &Table) -> Vec<String> {
        between(&"r".into(), before, now)
            .into_iter()
            .map(|it| {
                let [from, to] =
                    [&it.from, &it.to].map(|agent| agent.as_deref().unwrap_or("nobody").to_owned());
                format!(
                    "{}{}: {from} → {to}",
                    it.files.join(", "),
                    if it.has_others { " and others" } else { "" }
                )
            })
            .collect()
    }

    #[test]
    fn only_what_goes_elsewhere_is_told() {
        let before = table(&[("Rust", [&["*.rs"], &[], &[]]), ("All", [&[], &[], &[]])]);
        let now = table(&[
            ("Rust", [&["*.rs"], &["src/*"], &[]]),
            ("All", [&[], &[], &[]]),
        ]);
        assert_eq!(told(&before, &now), ["x.rs: Rust → All"], "src/x.rs stays");
        let now = table(&[
            ("Py", [&["*.{py,rs}"], &[], &["Core"]]),
            ("Rust", [&["*.rs"], &[], &[]]),
        ]);
        assert_eq!(
            told(&before, &now),
            [
                "x.py and others: All → nobody",
                "x.py (project Core): All → Py",
                "x.rs (project Core): Rust → Py"
            ]
        );
        assert_eq!(
            told(&before, &table(&[])),
            [" and others: All → nobody", "x.rs: Rust → nobody"]
        );
    }
}
