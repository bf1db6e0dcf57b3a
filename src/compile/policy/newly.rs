//! The checks that a change lowers: checks that are lowered now but were not before, and checks
//! that only the older side performed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::levels::{Policy, PolicyOptions, matches};
use super::lowered::{Lowered, LoweredKind, LoweredTo, schemas};
use crate::compile::compiler::Compiler;
use crate::compile::contexts::LoadedContext;
use crate::compile::rules::all_rules;
use crate::diag::{Rule, Severity};
use crate::repo::{Dialect, Level};

/// Returns the checks that are lowered now but are not lowered on an older side.
pub fn newly_lowered(now: &Compiler, older: &Compiler, options: &PolicyOptions) -> Vec<Lowered> {
    Policy::of(now, options, false).newly_lowered(now, &Policy::of(older, options, false), older)
}

impl Policy<'_> {
    /// Returns the checks that this policy lowers in `now` but the older policy does not lower in
    /// `before`.
    fn newly_lowered(&self, now: &Compiler, older: &Policy<'_>, before: &Compiler) -> Vec<Lowered> {
        let known: HashSet<String> = older.lowered(before).iter().map(Lowered::key).collect();
        let mut told: Vec<Lowered> = self
            .lowered(now)
            .into_iter()
            .filter(|it| !known.contains(&it.key()))
            .collect();
        told.extend(self.no_errors(older));
        let rules = self.lower_rules(older, &told);
        told.extend(rules);
        told.extend(schemas_gone(now, before));
        told.extend(contexts(now, before));
        told.extend(agents(now, before));
        told.extend(models(now, before));
        told.extend(dialect(now, before));
        told
    }

    /// Returns the patterns of rules that only the older side raised to errors.
    fn no_errors(&self, older: &Policy<'_>) -> Vec<Lowered> {
        let errors: HashSet<&str> = self.raised().collect();
        let raised = older.raised().filter(|code| !errors.contains(code));
        raised
            .map(|code| Lowered {
                to: Some(LoweredTo::Default),
                ..Lowered::new(LoweredKind::Rule, code)
            })
            .collect()
    }

    /// Returns the codes that `[rules]` raises to errors.
    fn raised(&self) -> impl Iterator<Item = &str> {
        let errors = self
            .config
            .levels
            .iter()
            .filter(|(_, level)| *level == Level::On(Severity::Error));
        errors.map(|(code, _)| &*code.value)
    }

    /// Returns rules with a lower level than before, for any reason, unless an entry already
    /// reports the change. The order of entries also affects levels.
    fn lower_rules(&self, older: &Policy<'_>, told: &[Lowered]) -> Vec<Lowered> {
        let patterns: Vec<&str> = told
            .iter()
            .filter(|it| it.kind == LoweredKind::Rule)
            .map(|it| it.what.as_ref())
            .collect();
        let is_told = |rule: &Rule| patterns.iter().any(|pattern| matches(pattern, rule.code));
        let rules = all_rules()
            .into_iter()
            .filter(|rule| rule.can_be_lowered && !is_told(rule));
        let lowered = rules.filter_map(|rule| {
            let level = self.configured(rule.code, rule.severity);
            let to = match level {
                Level::Off => LoweredTo::Off,
                Level::On(severity) if severity == rule.severity => LoweredTo::Default,
                Level::On(_) => LoweredTo::Warning,
            };
            let is_lower = strength(level) < strength(older.configured(rule.code, rule.severity));
            is_lower.then(|| Lowered {
                to: Some(to),
                ..Lowered::new(LoweredKind::Rule, rule.code)
            })
        });
        lowered.collect()
    }
}

fn strength(level: Level) -> usize {
    match level {
        Level::Off => 0,
        Level::On(Severity::Warning) => 1,
        Level::On(Severity::Error) => 2,
    }
}

fn gone(kind: LoweredKind, what: &str) -> Lowered {
    Lowered {
        to: Some(LoweredTo::Removed),
        ..Lowered::new(kind, what)
    }
}

fn schemas_gone(now: &Compiler, before: &Compiler) -> Vec<Lowered> {
    let kept: HashSet<Arc<str>> = schemas(&now.repo).map(|it| it.what).collect();
    let older = schemas(&before.repo).filter(|it| !kept.contains(&it.what));
    older
        .map(|it| gone(LoweredKind::Schema, &it.what))
        .collect()
}

/// Returns contexts that were removed, and contexts that no longer have golden files.
fn contexts(now: &Compiler, before: &Compiler) -> Vec<Lowered> {
    let kept: HashMap<&str, &LoadedContext> = now
        .contexts
        .iter()
        .map(|loaded| (loaded.context.name.as_ref(), loaded))
        .collect();
    let lowered = before.contexts.iter().filter_map(|older| {
        let name = older.context.name.as_ref();
        match kept.get(name) {
            None => Some(gone(LoweredKind::Context, name)),
            // A mark that `golden.contexts` overrides is already listed as a lowered check.
            Some(loaded) if older.golden && !loaded.golden && !loaded.context.golden => {
                Some(Lowered::new(LoweredKind::Golden, name))
            }
            Some(_) => None,
        }
    });
    lowered.collect()
}

/// Returns the agents that only the older side compiles: agents that were removed or made abstract.
fn agents(now: &Compiler, before: &Compiler) -> Vec<Lowered> {
    let lowered = before.agents.iter().filter_map(|(older, _)| {
        let name = before.hierarchy.get(*older).name.value.as_ref();
        let Some(id) = now.hierarchy.by_name(name) else {
            return Some(gone(LoweredKind::Agent, name));
        };
        let profile = now.hierarchy.get(id);
        let lowered = Lowered {
            to: Some(LoweredTo::Abstract),
            ..Lowered::new(LoweredKind::Agent, name)
        };
        profile
            .abstract_at
            .map(|place| lowered.at(&now.repo, place))
    });
    lowered.collect()
}

fn models(now: &Compiler, before: &Compiler) -> Vec<Lowered> {
    let (models, older) = (&now.repo.models, &before.repo.models);
    let is_new = |agent: &str, model: &str| older.get(agent).is_none_or(|old| &*old.value != model);
    let new = models
        .iter()
        .filter(|(agent, model)| is_new(agent, &model.value))
        .map(|(agent, model)| Lowered {
            value: Some(Arc::clone(&model.value)),
            ..Lowered::new(LoweredKind::Model, agent).at(&now.repo, model.span)
        });
    let removed = older.keys().filter(|agent| !models.contains_key(*agent));
    new.chain(removed.map(|agent| gone(LoweredKind::Model, agent)))
        .collect()
}

fn dialect(now: &Compiler, before: &Compiler) -> Option<Lowered> {
    let dialect = now.repo.config.dialect;
    (dialect != before.repo.config.dialect).then(|| Lowered {
        value: Some(Arc::from(match dialect {
            Dialect::Jinja => "jinja",
            Dialect::Inja => "inja",
        })),
        ..Lowered::new(LoweredKind::Dialect, "dialect")
    })
}
