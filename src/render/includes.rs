//! Include names: what they may say, what they resolve to, and cycles.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use super::analyse::Include;
use super::functions::BODY_FUNCTIONS;
use super::prompt::PROMPT_FUNCTIONS;
use super::{Engine, rules};
use crate::diag::{Diagnostic, nearest, one_of};
use crate::repo::{PartialState, Repo};

/// The name under which a partial is registered: with the `partials/` prefix.
pub(super) fn full_name(name: &str) -> Cow<'_, str> {
    match name.starts_with("partials/") || name.starts_with('\u{1}') {
        true => Cow::Borrowed(name),
        false => Cow::Owned(format!("partials/{name}")),
    }
}

/// Why a name is refused, whatever stands behind it.
fn refusal(name: &str) -> Option<&'static str> {
    let drive = matches!(name.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic());
    match name {
        "" => Some("it is empty"),
        _ if name.split(['/', '\\']).any(|part| part == "..") => Some("it holds `..`"),
        _ if name.starts_with('/') => Some("it starts with `/`"),
        _ if name.contains('\\') => Some("it holds a backslash"),
        _ if drive => Some("it names a drive"),
        _ if name.contains(':') => Some("it holds a scheme"),
        _ if name.contains('\0') => Some("it holds a NUL"),
        _ => None,
    }
}

impl Engine {
    /// Checks what needs all partials to be known: includes, cycles, names of functions.
    pub(super) fn check_partials(&mut self, repo: &Repo, findings: &mut Vec<Diagnostic>) {
        let names: Vec<Arc<str>> = self.partial_names.iter().cloned().collect();
        for name in &names {
            self.check_includes(repo, name, findings);
            // A partial may serve bodies or prompts: what either knows is accepted here.
            let functions: Vec<&str> = BODY_FUNCTIONS.into_iter().chain(PROMPT_FUNCTIONS).collect();
            self.check_calls(repo, name, &functions, findings);
        }
        self.check_cycles(repo, &names, findings);
        self.spread_breakage(&names);
    }

    /// Checks the includes of one template, in every branch.
    pub(super) fn check_includes(&mut self, repo: &Repo, name: &Arc<str>, findings: &mut Vec<Diagnostic>) {
        let Some(analysis) = self.analyses.get(name) else { return };
        let before = findings.len();
        let mut silent = false;
        for include in &analysis.includes {
            match self.check_include(repo, name, include) {
                Verdict::Fine => {}
                Verdict::Broken => silent = true,
                Verdict::Refused(finding) => findings.push(*finding),
            }
        }
        if silent || findings.len() > before {
            self.broken.insert(Arc::clone(name));
        }
    }

    fn check_include(&self, repo: &Repo, name: &str, include: &Include) -> Verdict {
        let span = self.span(&repo.sources, name, include.range.clone());
        if !include.is_literal {
            let finding = Diagnostic::new(&rules::INCLUDE_DYNAMIC, span, "an include name must be a string literal");
            return Verdict::refused(finding.help("write an `{% if %}` with one include per branch"));
        }
        let mut missing = None;
        for target in &include.names {
            if let Some(why) = refusal(target) {
                let finding = Diagnostic::new(
                    &rules::INCLUDE_NAME,
                    span,
                    format!("the include name `{target}` is not allowed: {why}"),
                );
                return Verdict::refused(
                    finding.help("partials are named relative to `partials/`, for instance `openai/messages.jinja`"),
                );
            }
            let full = full_name(target);
            match repo.partial_state(&full) {
                PartialState::Found if self.broken.contains(full.as_ref()) => return Verdict::Broken,
                PartialState::Found => return Verdict::Fine,
                PartialState::Broken => return Verdict::Broken,
                PartialState::Outside => {
                    let message = format!("the partial `{target}` leads out of the repository through a link");
                    let finding = Diagnostic::new(&rules::INCLUDE_OUTSIDE, span, message);
                    return Verdict::refused(finding.help("copy the file into `partials/`"));
                }
                PartialState::Missing => missing = missing.or(Some(target)),
            }
        }
        match missing {
            Some(target) if !include.ignore_missing => {
                let message = format!("there is no partial `{target}`");
                let help = near_partials(target, self.partial_names.iter().map(AsRef::as_ref))
                    .unwrap_or_else(|| "partials are files below `partials/`, with the ending `.jinja`".to_owned());
                Verdict::refused(Diagnostic::new(&rules::INCLUDE_MISSING, span, message).help(help))
            }
            _ => Verdict::Fine,
        }
    }

    /// Reports each circle of includes once, at the include that closes it.
    fn check_cycles(&mut self, repo: &Repo, names: &[Arc<str>], findings: &mut Vec<Diagnostic>) {
        let mut done: HashSet<&str> = HashSet::new();
        let mut circles: Vec<Vec<Link>> = Vec::new();
        for name in names {
            let mut path: Vec<(&Arc<str>, usize)> = vec![(name, 0)];
            if done.contains(name.as_ref()) {
                continue;
            }
            while let Some((at, next)) = path.pop() {
                let edges = self.edges(at);
                let Some((target, _)) = edges.get(next) else {
                    done.insert(at);
                    continue;
                };
                path.push((at, next + 1));
                if let Some(first) = path.iter().position(|(seen, _)| seen == target) {
                    circles.push(path[first..].iter().map(|&(member, next)| self.link(member, next - 1)).collect());
                } else if !done.contains(target.as_ref()) {
                    path.push((target, 0));
                }
            }
        }
        for circle in circles {
            findings.push(self.circle(repo, &circle));
            self.broken.extend(circle.into_iter().map(|(name, _)| name));
        }
    }

    /// A partial and the place of its `index`-th include.
    fn link(&self, name: &Arc<str>, index: usize) -> Link {
        (Arc::clone(name), self.edges(name)[index].1.range.clone())
    }

    fn circle(&self, repo: &Repo, circle: &[Link]) -> Diagnostic {
        let names: Vec<String> = circle.iter().chain(&circle[..1]).map(|(name, _)| format!("`{name}`")).collect();
        let (message, help) = match circle {
            [(only, _)] => (format!("`{only}` includes itself"), "remove this include"),
            _ => (
                format!("partials include each other in a circle: {}", names.join(" → ")),
                "remove one of these includes",
            ),
        };
        let place = |(name, range): &Link| self.span(&repo.sources, name, range.clone());
        let finding = Diagnostic::new(&rules::INCLUDE_CYCLE, place(&circle[0]), message);
        let others = circle[1..].iter();
        others.fold(finding, |finding, link| finding.related(place(link), "which includes this")).help(help)
    }

    fn edges(&self, name: &str) -> Vec<(&Arc<str>, &Include)> {
        let includes = self.analyses.get(name).into_iter().flat_map(|analysis| &analysis.includes);
        let edges = includes.flat_map(|include| include.names.iter().map(move |target| (target, include)));
        edges
            .filter_map(|(target, include)| Some((self.partial_names.get(full_name(target).as_ref())?, include)))
            .collect()
    }

    /// Whoever includes something broken is broken too, silently: the finding stands where the mistake is.
    fn spread_breakage(&mut self, names: &[Arc<str>]) {
        loop {
            let includes_broken = |name: &&Arc<str>| {
                !self.broken.contains(*name) && self.edges(name).iter().any(|(target, _)| self.broken.contains(*target))
            };
            let newly: Vec<Arc<str>> = names.iter().filter(includes_broken).cloned().collect();
            if newly.is_empty() {
                return;
            }
            self.broken.extend(newly);
        }
    }
}

/// A partial and the range of one of its includes.
type Link = (Arc<str>, Range<usize>);

enum Verdict {
    Fine,
    /// What it includes has a finding of its own.
    Broken,
    Refused(Box<Diagnostic>),
}

impl Verdict {
    fn refused(finding: Diagnostic) -> Verdict {
        Verdict::Refused(Box::new(finding))
    }
}

/// Partials of the same file name in other folders, else those with a similar name. What all names share is left out:
/// it would make them all alike.
fn near_partials<'a>(wanted: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    fn stem(name: &str) -> &str {
        let name = name.strip_prefix("partials/").unwrap_or(name);
        name.strip_suffix(".jinja").unwrap_or(name)
    }
    fn file(name: &str) -> &str {
        name.rsplit('/').next().unwrap_or(name)
    }
    let known: Vec<&str> = known.map(|name| name.strip_prefix("partials/").unwrap_or(name)).collect();
    let wanted = stem(wanted);
    let in_place = known.iter().copied().filter(|name| stem(name) == wanted);
    let elsewhere = known.iter().copied().filter(|name| file(stem(name)) == file(wanted));
    let near = nearest(wanted, known.iter().map(|name| stem(name)));
    let similar = near.iter().filter_map(|near| known.iter().copied().find(|name| stem(name) == *near));
    let candidates = [in_place.collect(), elsewhere.take(3).collect(), similar.collect::<Vec<&str>>()];
    one_of(candidates.iter().find(|names| !names.is_empty())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_leave_the_folder_are_refused() {
        for name in ["../x", "a/../x", "/x", "a\\b", "C:x", "C:/x", "file:x", "http://x", ""] {
            assert!(refusal(name).is_some(), "{name}");
        }
        assert_eq!(refusal("a/b..c.jinja"), None);
        assert_eq!(full_name("x.jinja"), "partials/x.jinja");
        assert_eq!(full_name("partials/x.jinja"), "partials/x.jinja");
    }
}
