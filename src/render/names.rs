//! The names in templates: functions, filters and tests, which must exist, and variables, some of
//! which are reserved.

use std::sync::Arc;

use foldhash::HashSet;

use super::analyse::{Analysis, Callable, Called, full_name};
use super::builtins::{self, FUNCTIONS, filter_names, test_names};
use super::functions::BODY_FUNCTIONS;
use super::inja;
use super::inja::INDEX_FROM_0;
use super::prompt::PROMPT_FUNCTIONS;
use super::slips_of_data::is_usual_name;
use super::{Engine, TemplateKind, errors, rules};
use crate::diag::{Diagnostic, Suggestions, did_you_mean};
use crate::repo::{Dialect, Repo};
use crate::source::Sources;

/// The variables in bodies that no template sets.
const SET_BY_THE_ENGINE: [&str; 2] = ["ctx", "loop"];

/// The maximum number of templates that are searched for imported names, in total.
const MAX_IMPORTED: usize = 100_000;

/// The methods of the engine's own objects that templates must not use.
const REFUSED_METHODS: [&str; 2] = ["changed", "cycle"];

impl Engine {
    /// Checks the functions, filters and tests that a profile's template calls.
    pub(super) fn check_functions(
        &mut self,
        repo: &Repo,
        name: &Arc<str>,
        kind: TemplateKind,
        findings: &mut Vec<Diagnostic>,
    ) {
        self.check_calls(repo, name, super::function_names(kind), findings);
    }

    /// Checks the calls in a template that may use the given functions and those of all templates.
    pub(super) fn check_calls(
        &mut self,
        repo: &Repo,
        name: &Arc<str>,
        functions: &[&str],
        findings: &mut Vec<Diagnostic>,
    ) {
        let Some(analysis) = self.analyses.get(name) else {
            return;
        };
        let before = findings.len();
        for called in &analysis.calls {
            if let Some((message, help)) = self.unknown(called, functions) {
                let span = self.span(&repo.sources, name, called.range.clone());
                findings.push(Diagnostic::new(&rules::UNKNOWN_NAME, span, message).help(help));
            }
        }
        if findings.len() > before {
            self.broken.insert(Arc::clone(name));
        }
    }

    /// Records variables in bodies that no template sets, but whose names resemble variables that a
    /// template sets. An included template may set a variable that another one reads, so all
    /// templates must be known.
    pub(super) fn note_misspelt_variables(&mut self, sources: &Sources) {
        let optional: HashSet<&str> = self
            .analyses
            .values()
            .flat_map(|analysis| analysis.optional.iter().map(String::as_str))
            .collect();
        let mut suggestions = Suggestions::default();
        let mut slips = Vec::new();
        for (name, analysis) in &self.analyses {
            if self.prompts.contains(name) || self.broken.contains(name) {
                continue;
            }
            for (read, range) in &analysis.variables {
                if self.assigned.contains(read)
                    || SET_BY_THE_ENGINE.contains(&read.as_str())
                    || optional.contains(read.as_str())
                    || is_usual_name(read)
                {
                    continue;
                }
                let set = self.assigned.iter().map(String::as_str);
                if let Some(near) = suggestions.did_you_mean(read, set.chain(SET_BY_THE_ENGINE)) {
                    let span = self.span(sources, name, range.clone());
                    let slip = errors::no_variable(sources, span, TemplateKind::Body);
                    slips.push(slip.help(near));
                }
            }
        }
        self.slips.extend(slips);
    }

    /// Records imported names that their templates do not assign anywhere.
    pub(super) fn note_missing_imports(&mut self, sources: &Sources) {
        let mut slips = Vec::new();
        let mut left = MAX_IMPORTED;
        for (name, analysis) in &self.analyses {
            for it in &analysis.imported {
                let is_optional = analysis.optional.contains(&it.target);
                if !is_optional && !self.may_assign(&it.template, &it.name, &mut left) {
                    let span = self.span(sources, name, it.range.clone());
                    slips.push(errors::no_import(span, &it.name));
                }
            }
        }
        self.slips.extend(slips);
    }

    /// Returns `true` if a template, or one that it includes, may assign a name. This is assumed if
    /// one of these templates is unknown, or if the limit on templates to follow is reached.
    fn may_assign(&self, template: &str, wanted: &str, left: &mut usize) -> bool {
        let mut seen: HashSet<&str> = HashSet::default();
        let mut pending = vec![full_name(template)];
        while let Some(template) = pending.pop() {
            let known = self.analyses.get_key_value(&*template);
            let (Some((template, analysis)), Some(rest)) = (known, left.checked_sub(1)) else {
                return true;
            };
            *left = rest;
            if !seen.insert(template) {
                continue;
            }
            let includes = &analysis.includes;
            if analysis.assigned.contains(wanted) || includes.iter().any(|it| !it.is_literal) {
                return true;
            }
            let names = includes.iter().flat_map(|include| &include.names);
            pending.extend(names.map(|name| full_name(name)));
        }
        false
    }

    /// Returns the message and the help for an unknown name.
    fn unknown(&self, called: &Called, functions: &[&str]) -> Option<(String, String)> {
        let wanted = called.name.as_str();
        let (what, known): (&str, Vec<&str>) = match called.what {
            Callable::Function
                if self.assigned.contains(wanted)
                    || matches!(wanted, "loop" | "caller" | "super" | INDEX_FROM_0) =>
            {
                return None;
            }
            Callable::Function => {
                let of_inja = inja::FUNCTIONS
                    .iter()
                    .filter(|_| self.dialect == Dialect::Inja);
                (
                    "function",
                    functions
                        .iter()
                        .copied()
                        .chain(FUNCTIONS.map(|(name, _)| name))
                        .chain(of_inja.copied())
                        .collect(),
                )
            }
            Callable::Filter => ("filter", filter_names().collect()),
            Callable::Test => ("test", test_names().collect()),
            Callable::Method if REFUSED_METHODS.contains(&wanted) => ("method", Vec::new()),
            // A member of an object may be a macro. This is known only when the member is called.
            Callable::Method => return None,
        };
        if known.contains(&wanted) {
            return None;
        }
        let help = builtins::instead(wanted, called.what)
            .map(str::to_owned)
            .or_else(|| elsewhere(wanted, called.what))
            .or_else(|| did_you_mean(wanted, known.iter().copied()))
            .unwrap_or_else(|| format!("known {what}s: {}", known.join(", ")));
        Some((format!("there is no {what} `{wanted}`"), help))
    }

    /// Reports statements at locations where the engine cannot run them, before the engine compiles
    /// them; returns `true` if there are none.
    pub(super) fn check_places(
        &mut self,
        sources: &Sources,
        name: &Arc<str>,
        analysis: &Analysis,
        findings: &mut Vec<Diagnostic>,
    ) -> bool {
        for misplaced in &analysis.misplaced {
            let span = self.span(sources, name, misplaced.range.clone());
            findings.push(
                Diagnostic::new(&rules::SYNTAX, span, misplaced.message).help(misplaced.help),
            );
            self.broken.insert(Arc::clone(name));
        }
        analysis.misplaced.is_empty()
    }
}

/// Returns where else a name exists: as a filter instead of a function, or in the other kind of
/// template.
fn elsewhere(name: &str, what: Callable) -> Option<String> {
    match what {
        Callable::Function if inja::FUNCTIONS.contains(&name) => inja::instead(name),
        Callable::Function if filter_names().any(|filter| filter == name) => {
            Some(format!("`{name}` is a filter: write `value | {name}`"))
        }
        Callable::Filter if BODY_FUNCTIONS.contains(&name) => {
            Some(format!("`{name}` is a function: write `{name}(value)`"))
        }
        Callable::Function if PROMPT_FUNCTIONS.contains(&name) => {
            Some(format!("`{name}` is available only in system prompts"))
        }
        Callable::Function if BODY_FUNCTIONS.contains(&name) => {
            Some(format!("`{name}` is available only in bodies"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted() {
        assert!(filter_names().is_sorted() && test_names().is_sorted());
    }

    #[test]
    fn what_is_gone_has_advice() {
        for name in [
            "safe", "escape", "pprint", "batch", "slice", "format", "groupby", "dictsort", "chain",
            "zip", "sum",
        ] {
            assert!(filter_names().all(|filter| filter != name));
            assert!(
                builtins::instead(name, Callable::Filter).is_some(),
                "{name}"
            );
        }
    }
}
