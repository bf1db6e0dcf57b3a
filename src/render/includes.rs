//! Include names: their syntax, their resolution, and cycles.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use foldhash::{HashMap, HashSet};

use super::analyse::{Include, full_name};
use super::functions::BODY_FUNCTIONS;
use super::prompt::PROMPT_FUNCTIONS;
use super::{Engine, eval, rules};
use crate::chain;
use crate::diag::{Diagnostic, Suggestions, is_misspelling, one_of};
use crate::repo::folders::ROLES;
use crate::repo::{PartialState, Repo};
use crate::world::EntryKind;

/// Returns the reason why a name is rejected, regardless of what it refers to.
fn refusal(name: &str) -> Option<&'static str> {
    let drive = matches!(name.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic());
    match name {
        "" => Some("it is empty"),
        _ if name.split(['/', '\\']).any(|part| part == "..") => Some("it contains `..`"),
        _ if name.starts_with('/') => Some("it starts with `/`"),
        _ if name.contains('\\') => Some("it contains a backslash"),
        _ if drive => Some("it contains a drive letter"),
        _ if name.contains(':') => Some("it contains a scheme"),
        _ if name.contains('\0') => Some("it contains a NUL character"),
        _ => None,
    }
}

impl eval::Library for Engine {
    fn find(&self, name: &str) -> Option<&eval::Template> {
        self.partial(full_name(name).as_ref())
    }
}

impl Engine {
    /// Runs the checks that require all partials: includes, cycles, and function names.
    pub(super) fn check_partials(&mut self, repo: &Repo, findings: &mut Vec<Diagnostic>) {
        let names: Vec<Arc<str>> = self.partial_names.iter().cloned().collect();
        for name in &names {
            self.check_includes(repo, name, findings);
            // A partial may serve bodies or prompts, so the functions of both are accepted.
            let functions: Vec<&str> = BODY_FUNCTIONS.into_iter().chain(PROMPT_FUNCTIONS).collect();
            self.check_calls(repo, name, &functions, findings);
        }
        let graph = Links::of(self, &names);
        self.reads_of_partials = self.reads_by_partial(&names, &graph);
        self.check_cycles(repo, &names, &graph, findings);
        self.spread_breakage(&names, &graph);
    }

    /// Returns the data that each partial reads, including through its includes. For partials in a
    /// cycle, the result may be incomplete, but such partials never run.
    fn reads_by_partial(
        &self,
        names: &[Arc<str>],
        links: &Links,
    ) -> HashMap<Arc<str>, BTreeSet<String>> {
        let mut reads: Vec<BTreeSet<String>> = vec![BTreeSet::new(); names.len()];
        for at in links.finished() {
            let mut own = self
                .analyses
                .get(&names[at])
                .map_or_else(BTreeSet::new, |analysis| analysis.reads.clone());
            for read in links.targets[at].iter().flat_map(|&target| &reads[target]) {
                if !own.contains(read) {
                    own.insert(read.clone());
                }
            }
            reads[at] = own;
        }
        names.iter().cloned().zip(reads).collect()
    }

    /// Checks the includes of one template, in every branch.
    pub(super) fn check_includes(
        &mut self,
        repo: &Repo,
        name: &Arc<str>,
        findings: &mut Vec<Diagnostic>,
    ) {
        let Some(analysis) = self.analyses.get(name) else {
            return;
        };
        let before = findings.len();
        let (mut silent, mut suggestions) = (false, std::mem::take(&mut self.suggestions));
        let mut warnings = Vec::new();
        for include in &analysis.includes {
            match self.check_include(repo, name, include, &mut suggestions) {
                Verdict::Fine => {}
                Verdict::Broken => silent = true,
                Verdict::Refused(finding) => findings.push(*finding),
                Verdict::WritesNothing(finding) => warnings.push(*finding),
            }
        }
        self.suggestions = suggestions;
        if silent || findings.len() > before {
            self.broken.insert(Arc::clone(name));
        }
        findings.extend(warnings);
    }

    fn check_include(
        &self,
        repo: &Repo,
        name: &str,
        include: &Include,
        suggestions: &mut Suggestions,
    ) -> Verdict {
        let span = || self.span(&repo.sources, name, include.range.clone());
        if !include.is_literal {
            let finding = Diagnostic::new(
                &rules::INCLUDE_DYNAMIC,
                span(),
                "an include name must be a string literal",
            );
            let written = repo.sources.slice(span());
            return Verdict::refused(finding.help(match is_unquoted_name(written) {
                true => format!("write it in quotes: `\"{written}\"`"),
                false => "write an `{% if %}` with one include per branch".to_owned(),
            }));
        }
        let mut missing = None;
        for target in &include.names {
            if let Some(why) = refusal(target) {
                let finding = Diagnostic::new(
                    &rules::INCLUDE_NAME,
                    span(),
                    format!("the include name `{target}` is not allowed: {why}"),
                );
                return Verdict::refused(
                    finding.help("partials are named relative to `partials/`, for example `openai/messages.jinja`"),
                );
            }
            let full = full_name(target);
            match repo.partial_state(&full) {
                PartialState::Found if self.broken.contains(full.as_ref()) => {
                    return Verdict::Broken;
                }
                PartialState::Found => return Verdict::Fine,
                PartialState::Broken => return Verdict::Broken,
                PartialState::Missing => missing = missing.or(Some((target, full))),
            }
        }
        match missing {
            Some((target, full)) if !include.ignore_missing => {
                let message = format!("there is no partial `{target}`");
                let has_other_ending = repo
                    .layers
                    .iter()
                    .any(|layer| layer.world.kind(&full) == Ok(EntryKind::File));
                let rename = format!(
                    "`{full}` exists, but partials end in `.jinja`: rename it, and change the name here"
                );
                let help = has_other_ending
                    .then_some(rename)
                    .or_else(|| role_of(repo, target))
                    .or_else(|| {
                        near_partials(
                            target,
                            self.partial_names.iter().map(AsRef::as_ref),
                            suggestions,
                        )
                    })
                    .unwrap_or_else(|| not_a_partial(repo, target));
                Verdict::refused(
                    Diagnostic::new(&rules::INCLUDE_MISSING, span(), message).help(help),
                )
            }
            Some((target, _)) => {
                let message =
                    format!("there is no partial `{target}`, so this never writes anything");
                let near = near_partials(
                    target,
                    self.partial_names.iter().map(AsRef::as_ref),
                    suggestions,
                );
                let help = near.unwrap_or_else(|| "remove the tag, or add the partial".to_owned());
                Verdict::WritesNothing(Box::new(
                    Diagnostic::new(&rules::INCLUDE_NOWHERE, span(), message).help(help),
                ))
            }
            None => Verdict::Fine,
        }
    }

    /// Reports each group of mutually including partials once, and shows one of its cycles.
    fn check_cycles(
        &mut self,
        repo: &Repo,
        names: &[Arc<str>],
        links: &Links,
        findings: &mut Vec<Diagnostic>,
    ) {
        for group in links.groups() {
            let members: HashSet<usize> = group.iter().copied().collect();
            let circle: Vec<Link> = links
                .circle(&members)
                .into_iter()
                .map(|(from, to)| self.link(names, from, to))
                .collect();
            findings.push(self.circle(repo, &circle, group.len()));
            self.broken
                .extend(group.iter().map(|&member| Arc::clone(&names[member])));
        }
    }

    /// Returns a partial with the location where it includes another.
    fn link(&self, names: &[Arc<str>], from: usize, to: usize) -> Link {
        let include = self.analyses[&names[from]].includes.iter().find(|include| {
            include
                .names
                .iter()
                .any(|name| *full_name(name) == *names[to])
        });
        (
            Arc::clone(&names[from]),
            include.map_or(0..0, |include| include.range.clone()),
        )
    }

    fn circle(&self, repo: &Repo, circle: &[Link], members: usize) -> Diagnostic {
        let names: Vec<&str> = circle.iter().map(|(name, _)| name.as_ref()).collect();
        let (message, help) = match circle {
            [(only, _)] => (format!("`{only}` includes itself"), "remove this include"),
            _ => (
                format!(
                    "partials include each other in a cycle: {}",
                    chain::describe(&names)
                ),
                "remove one of these includes",
            ),
        };
        let place = |(name, range): &Link| self.span(&repo.sources, name, range.clone());
        let finding = Diagnostic::new(&rules::INCLUDE_CYCLE, place(&circle[0]), message);
        let others = circle.iter().take(chain::SHOWN).skip(1);
        let finding = others.fold(finding, |finding, link| {
            finding.related(place(link), "which includes this")
        });
        match members - circle.len() {
            0 => finding.help(help),
            more => finding.help(format!(
                "{help}; the partials are also in cycles with {}",
                crate::diag::count(more, "other partial")
            )),
        }
    }

    /// Marks partials that include a broken one as broken, without another finding.
    fn spread_breakage(&mut self, names: &[Arc<str>], links: &Links) {
        let mut pending: Vec<usize> = (0..names.len())
            .filter(|&at| self.broken.contains(&names[at]))
            .collect();
        while let Some(at) = pending.pop() {
            for &user in &links.users[at] {
                if self.broken.insert(Arc::clone(&names[user])) {
                    pending.push(user);
                }
            }
        }
    }
}

/// The includes between partials, by index.
struct Links {
    /// The partials that each partial includes, in order and without duplicates.
    targets: Vec<Vec<usize>>,
    /// The partials that include each partial.
    users: Vec<Vec<usize>>,
}

impl Links {
    fn of(engine: &Engine, names: &[Arc<str>]) -> Links {
        let index: HashMap<&str, usize> = names
            .iter()
            .enumerate()
            .map(|(at, name)| (name.as_ref(), at))
            .collect();
        let mut links = Links {
            targets: vec![Vec::new(); names.len()],
            users: vec![Vec::new(); names.len()],
        };
        for (at, name) in names.iter().enumerate() {
            let includes = engine
                .analyses
                .get(name)
                .into_iter()
                .flat_map(|analysis| &analysis.includes);
            let found = includes
                .flat_map(|include| &include.names)
                .filter_map(|it| index.get(&*full_name(it)).copied());
            let mut seen = HashSet::default();
            links.targets[at] = found.filter(|target| seen.insert(*target)).collect();
            links.targets[at]
                .iter()
                .for_each(|&target| links.users[target].push(at));
        }
        links
    }

    /// Returns all partials, each after those that it includes, except in cycles.
    fn finished(&self) -> Vec<usize> {
        let mut finished = Vec::new();
        let mut seen = vec![false; self.targets.len()];
        for start in 0..self.targets.len() {
            walk(start, &self.targets, &mut seen, &mut finished);
        }
        finished
    }

    /// Returns the largest sets of partials that all include each other, directly or indirectly, in
    /// the order of their first members. Uses Kosaraju's algorithm without recursion.
    fn groups(&self) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let mut seen = vec![false; self.targets.len()];
        for &start in self.finished().iter().rev() {
            let mut group = Vec::new();
            walk(start, &self.users, &mut seen, &mut group);
            group.sort_unstable();
            groups.push(group);
        }
        groups.retain(|group| {
            group.len() > 1 || group.iter().any(|&only| self.targets[only].contains(&only))
        });
        groups.sort_unstable();
        groups
    }

    /// Returns the shortest cycle, as steps, through the first of several partials that all include
    /// each other.
    fn circle(&self, members: &HashSet<usize>) -> Vec<(usize, usize)> {
        let Some(&first) = members.iter().min() else {
            return Vec::new();
        };
        let mut before: HashMap<usize, usize> = HashMap::default();
        let mut pending = VecDeque::from([first]);
        while let Some(at) = pending.pop_front().filter(|_| !before.contains_key(&first)) {
            for &target in self.targets[at]
                .iter()
                .filter(|target| members.contains(target))
            {
                if let Entry::Vacant(entry) = before.entry(target) {
                    entry.insert(at);
                    pending.push_back(target);
                }
            }
        }
        let mut steps = Vec::new();
        let mut to = first;
        while let Some(&from) = before.get(&to) {
            steps.push((from, to));
            to = from;
            if from == first {
                break;
            }
        }
        steps.reverse();
        steps
    }
}

/// Visits all unseen partials that are reachable from a partial, each after those that it includes.
fn walk(start: usize, edges: &[Vec<usize>], seen: &mut [bool], finished: &mut Vec<usize>) {
    if seen[start] {
        return;
    }
    seen[start] = true;
    let mut path = vec![(start, 0)];
    while let Some((at, next)) = path.pop() {
        match edges[at].get(next) {
            Some(&target) => {
                path.push((at, next + 1));
                if !std::mem::replace(&mut seen[target], true) {
                    path.push((target, 0));
                }
            }
            None => finished.push(at),
        }
    }
}

/// A partial, and the range of an include in it.
type Link = (Arc<str>, Range<usize>);

enum Verdict {
    Fine,
    /// An include refers to a partial that has its own finding.
    Broken,
    Refused(Box<Diagnostic>),
    /// An include is optional, and its partial exists nowhere.
    WritesNothing(Box<Diagnostic>),
}

impl Verdict {
    fn refused(finding: Diagnostic) -> Verdict {
        Verdict::Refused(Box::new(finding))
    }
}

/// The endings of template files, in this and other projects.
const ENDINGS: [&str; 8] = [
    "jinja",
    "jinja2",
    "j2",
    "jinja-html",
    "tmpl",
    "tpl",
    "html",
    "txt",
];

/// Returns the advice for a file that exists outside `partials/`.
fn not_a_partial(repo: &Repo, target: &str) -> String {
    const GENERAL: &str = "partials are files in `partials/` whose names end in `.jinja`";
    let mut layers = repo.layers.iter();
    if layers.any(|layer| layer.world.kind(target) == Ok(EntryKind::File)) {
        return format!(
            "{GENERAL}: move this one there, or read its text in a system prompt, with `read_file('${{CONFIG_DIR}}/{target}')`"
        );
    }
    GENERAL.to_owned()
}

/// Returns `true` if an expression is the name of a partial without its quotes.
fn is_unquoted_name(expression: &str) -> bool {
    let mut letters = expression.bytes();
    expression.ends_with(".jinja")
        && letters.all(|byte| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte))
}

/// Returns the advice for an include that refers to a role.
fn role_of(repo: &Repo, target: &str) -> Option<String> {
    let role = target.strip_prefix(ROLES)?.strip_prefix('/')?;
    let role = role.strip_suffix(".md")?;
    let mut layers = repo.layers.iter();
    let is_there = layers.any(|layer| layer.world.kind(target) == Ok(EntryKind::File));
    is_there.then(|| {
        format!(
            "a role is not a partial: in a system prompt, write `{{{{ agent_role('{role}') }}}}`"
        )
    })
}

/// Suggests partials with the same file name in other folders, or else with a similar name. The
/// prefix that all names share is ignored, since it would make them all similar.
fn near_partials<'a>(
    wanted: &str,
    known: impl Iterator<Item = &'a str>,
    suggestions: &mut Suggestions,
) -> Option<String> {
    fn stem(name: &str) -> &str {
        let name = name.strip_prefix("partials/").unwrap_or(name);
        let (path, ending) = name.rsplit_once('.').unwrap_or((name, ""));
        if ENDINGS.contains(&ending) {
            path
        } else {
            name
        }
    }
    /// Removes the first folder if it resembles `partials`.
    fn below_partials(name: &str) -> &str {
        name.split_once('/')
            .filter(|(folder, _)| is_meant(folder))
            .map_or(name, |(_, rest)| rest)
    }
    fn file(name: &str) -> &str {
        name.rsplit('/').next().unwrap_or(name)
    }
    if suggestions.is_spent() {
        return None;
    }
    let known: Vec<&str> = known
        .map(|name| name.strip_prefix("partials/").unwrap_or(name))
        .collect();
    let wanted = below_partials(stem(wanted));
    let in_place = known.iter().copied().filter(|name| stem(name) == wanted);
    let elsewhere = known
        .iter()
        .copied()
        .filter(|name| file(stem(name)) == file(wanted));
    let near = suggestions.nearest(wanted, known.iter().map(|name| stem(name)));
    let similar = near
        .iter()
        .filter_map(|near| known.iter().copied().find(|name| stem(name) == *near));
    let candidates = [
        in_place.collect(),
        elsewhere.take(3).collect(),
        similar.collect::<Vec<&str>>(),
    ];
    one_of(candidates.iter().find(|names| !names.is_empty())?)
}

fn is_meant(folder: &str) -> bool {
    is_misspelling(folder, "partials") || folder == "templates"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_leave_the_folder_are_refused() {
        for name in [
            "../x", "a/../x", "/x", "a\\b", "C:x", "C:/x", "file:x", "http://x", "",
        ] {
            assert!(refusal(name).is_some(), "{name}");
        }
        assert_eq!(refusal("a/b..c.jinja"), None);
        assert_eq!(full_name("x.jinja"), "partials/x.jinja");
        assert_eq!(full_name("partials/x.jinja"), "partials/x.jinja");
    }
}
