//! What a repository and the command line lowered. A gate that was opened a little must say so: reviewers see it in every
//! report, and what a change adds to it in the diff.

use std::collections::HashSet;
use std::sync::Arc;

use super::Policy;
use super::policy::matches;
use super::rules::all_rules;
use crate::check::schema::is_built_in;
use crate::diag::Severity;
use crate::provider::WireFormat;
use crate::repo::{Allow, LayerFile, LayerKind, Level, Repo};
use crate::source::{SourceText, Span};

/// One thing that lets through what would be refused without it.
#[derive(Debug, Clone)]
pub struct Lowered {
    /// What it is.
    pub kind: LoweredKind,
    /// A rule's code or family, a provider instance, or the path of a schema.
    pub what: Arc<str>,
    /// What became of a rule or a schema.
    pub to: Option<LoweredTo>,
    /// The agents that it is for, as a pattern; `None`: all.
    pub agent: Option<String>,
    /// The files that it is for, as a pattern; `None`: all.
    pub path: Option<String>,
    /// Fields of bodies, as JSON pointers.
    pub fields: Vec<Arc<str>>,
    /// The reason that the entry gives.
    pub reason: Option<Arc<str>>,
    /// The last day it holds, as `YYYY-MM-DD`.
    pub expires: Option<String>,
    /// Where it is said: a path and a one-based line; `None` for the command line.
    pub place: Option<(Arc<str>, usize)>,
    /// What a schema says.
    text: Option<Arc<SourceText>>,
}

/// What lowers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LoweredKind {
    /// An entry of `[rules]`.
    Rule,
    /// An `[[allow]]`.
    Allow,
    /// An `[[extension]]`.
    Extension,
    /// A wire schema of the repository.
    Schema,
    /// `layer = "bundled"`: nothing that comes with `reqc` takes part.
    Layer,
    /// `--allow`.
    Argument,
}

impl LoweredKind {
    /// The word for it in reports.
    pub fn name(self) -> &'static str {
        match self {
            LoweredKind::Rule => "rule",
            LoweredKind::Allow => "allow",
            LoweredKind::Extension => "extension",
            LoweredKind::Schema => "schema",
            LoweredKind::Layer => "layer",
            LoweredKind::Argument => "argument",
        }
    }
}

/// What became of a rule or a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoweredTo {
    /// The rule's findings are dropped.
    Off,
    /// They fail no run.
    Warning,
    /// The older side made them errors, which they are not by themselves.
    Default,
    /// The older side had it; of a bundled layer: it lacks schemas.
    Removed,
}

impl LoweredTo {
    /// The word for it in reports.
    pub fn name(self) -> &'static str {
        match self {
            LoweredTo::Off => "off",
            LoweredTo::Warning => "warning",
            LoweredTo::Default => "default",
            LoweredTo::Removed => "removed",
        }
    }
}

impl Lowered {
    /// A thing with nothing said of it.
    pub(crate) fn new(kind: LoweredKind, what: &str) -> Lowered {
        Lowered {
            kind,
            what: Arc::from(what),
            to: None,
            agent: None,
            path: None,
            fields: Vec::new(),
            reason: None,
            expires: None,
            place: None,
            text: None,
        }
    }

    fn at(mut self, repo: &Repo, span: Span) -> Lowered {
        let file = repo.sources.get(span.file);
        self.place = Some((Arc::clone(file.path()), file.position(span.start as usize).line));
        self
    }

    /// What it lowers, wherever that is said.
    fn key(&self) -> String {
        let Lowered { kind, what, to, agent, path, fields, reason, expires, place: _, text } = self;
        let text = text.as_ref().map(|text| text.as_str());
        format!("{:?}", (kind, what, to, agent, path, fields, reason, expires, text))
    }
}

impl Policy<'_> {
    /// What is lowered in this run, in the order in which it is written.
    pub(super) fn lowered(&self, repo: &Repo) -> Vec<Lowered> {
        let rules = self.config.levels.iter().filter_map(|(code, level)| {
            let lowered = Lowered::new(LoweredKind::Rule, &code.value).at(repo, code.span);
            Some(Lowered { to: Some(lowers(&code.value, *level)?), ..lowered })
        });
        let allows = self.config.allows.iter().filter(|entry| !self.is_expired(entry)).map(|entry| allow(repo, entry));
        let extensions = self.config.extensions.iter().map(|entry| Lowered {
            fields: entry.fields.clone(),
            reason: entry.reason.clone(),
            ..Lowered::new(LoweredKind::Extension, &entry.instance).at(repo, entry.span)
        });
        let layer = self.config.is_bundled_layer.then(|| layer(repo));
        let arguments = self.options.allow.iter().map(|code| Lowered::new(LoweredKind::Argument, code));
        rules.chain(allows).chain(extensions).chain(schemas(repo)).chain(layer).chain(arguments).collect()
    }

    /// What this side, of `repo`, lowers and an older side did not: new entries, rules that it made errors, and
    /// schemas of its own that are gone.
    pub(super) fn newly_lowered(&self, repo: &Repo, older: &Policy<'_>, older_repo: &Repo) -> Vec<Lowered> {
        let known: HashSet<String> = older.lowered(older_repo).iter().map(Lowered::key).collect();
        let new = self.lowered(repo).into_iter().filter(|it| !known.contains(&it.key()));
        let errors: HashSet<&str> = self.raised().collect();
        let raised = older.raised().filter(|code| !errors.contains(code));
        let no_errors =
            raised.map(|code| Lowered { to: Some(LoweredTo::Default), ..Lowered::new(LoweredKind::Rule, code) });
        let kept: HashSet<Arc<str>> = schemas(repo).map(|it| it.what).collect();
        let gone = schemas(older_repo).filter(|it| !kept.contains(&it.what));
        let gone = gone.map(|it| Lowered { to: Some(LoweredTo::Removed), place: None, text: None, ..it });
        new.chain(no_errors).chain(gone).collect()
    }

    /// Codes that `[rules]` makes errors.
    fn raised(&self) -> impl Iterator<Item = &str> {
        let errors = self.config.levels.iter().filter(|(_, level)| *level == Level::On(Severity::Error));
        errors.map(|(code, _)| &*code.value)
    }
}

/// What a level lowers the rules of a pattern to; `None` if none is lowered.
fn lowers(pattern: &str, level: Level) -> Option<LoweredTo> {
    let rules = all_rules().into_iter().filter(|rule| matches(pattern, rule.code) && rule.can_be_lowered);
    match level {
        Level::Off => (rules.count() > 0).then_some(LoweredTo::Off),
        Level::On(level) => rules.map(|rule| rule.severity).any(|usual| usual > level).then_some(LoweredTo::Warning),
    }
}

fn allow(repo: &Repo, entry: &Allow) -> Lowered {
    Lowered {
        agent: entry.agent.as_ref().map(|glob| glob.text().to_owned()),
        path: entry.file.as_ref().map(|glob| glob.text().to_owned()),
        reason: entry.reason.clone(),
        expires: entry.expires.map(|date| format!("{:04}-{:02}-{:02}", date.year, date.month, date.day)),
        ..Lowered::new(LoweredKind::Allow, &entry.code).at(repo, entry.span)
    }
}

/// A root that is the bundled layer: bodies of a format whose schema it lacks are not checked.
fn layer(repo: &Repo) -> Lowered {
    let lacks = WireFormat::ALL.iter().any(|wire| !repo.schemas.contains_key(wire.name()));
    Lowered { to: lacks.then_some(LoweredTo::Removed), ..Lowered::new(LoweredKind::Layer, "bundled") }
}

fn schemas(repo: &Repo) -> impl Iterator<Item = Lowered> + '_ {
    // In a root that is the bundled layer, what differs from the program's own schemas may be anybody's.
    let is_own = |source: &&LayerFile| {
        source.layer == LayerKind::Own
            || repo.is_bundled_root && !is_built_in(repo.sources.get(source.file).source_text().as_str())
    };
    let own = repo.schemas.values().flatten().filter(is_own);
    own.map(|LayerFile { file, .. }| {
        let source = repo.sources.get(*file);
        let text = Arc::clone(source.source_text());
        let place = Some((Arc::clone(source.path()), 1));
        Lowered { text: Some(text), place, ..Lowered::new(LoweredKind::Schema, source.path()) }
    })
}
