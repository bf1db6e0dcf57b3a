//! The checks that a repository and the command line lower. Every report lists these checks for
//! reviewers, and the diff lists the lowered checks that a change adds.

use std::sync::Arc;

use super::levels::{Policy, matches};
use crate::check::schema::is_built_in;
use crate::compile::compiler::Compiler;
use crate::compile::rules::all_rules;
use crate::provider::WireFormat;
use crate::repo::{Allow, Extension, LayerFile, LayerKind, Level, Repo};
use crate::source::{SourceText, Span};

/// A setting that allows what would otherwise be an error.
#[derive(Debug, Clone)]
pub struct Lowered {
    /// The kind of setting.
    pub kind: LoweredKind,
    /// A rule's code or family, a provider instance, the path of a schema, or the name of an agent
    /// or context.
    pub what: Arc<str>,
    /// The level to which the setting lowers findings.
    pub to: Option<LoweredTo>,
    /// The value of a setting.
    pub value: Option<Arc<str>>,
    /// The agents that the setting applies to, as a pattern; `None` for all agents.
    pub agent: Option<String>,
    /// The files that the setting applies to, as a pattern; `None` for all files.
    pub path: Option<String>,
    /// The affected body fields, as JSON pointers.
    pub fields: Vec<Arc<str>>,
    /// The reason that the entry gives.
    pub reason: Option<Arc<str>>,
    /// The last day on which the setting applies, as `YYYY-MM-DD`.
    pub expires: Option<String>,
    /// The location of the setting, as a path and a line number from 1; `None` for the command
    /// line.
    pub place: Option<(Arc<str>, usize)>,
    /// The text of a schema file.
    pub(super) text: Option<Arc<SourceText>>,
}

/// The kinds of settings that lower findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LoweredKind {
    /// An entry in `[rules]`.
    Rule,
    /// An `[[allow]]` entry.
    Allow,
    /// An `[[extension]]` entry.
    Extension,
    /// A wire schema in the repository.
    Schema,
    /// `layer = "bundled"`: the bundled files of `reqc` are not used.
    Layer,
    /// The `--allow` option.
    Argument,
    /// A context marked `golden` that `golden.contexts` leaves out; in a comparison, any context
    /// that no longer has golden files.
    Golden,
    /// A context that a change removed.
    Context,
    /// An agent that a change removed, or made abstract.
    Agent,
    /// An entry in `models.toml` that a change added, altered or removed.
    Model,
    /// The `dialect` setting, which a change altered.
    Dialect,
}

impl LoweredKind {
    /// Returns the kind's name in reports.
    pub fn name(self) -> &'static str {
        match self {
            LoweredKind::Rule => "rule",
            LoweredKind::Allow => "allow",
            LoweredKind::Extension => "extension",
            LoweredKind::Schema => "schema",
            LoweredKind::Layer => "layer",
            LoweredKind::Argument => "argument",
            LoweredKind::Golden => "golden",
            LoweredKind::Context => "context",
            LoweredKind::Agent => "agent",
            LoweredKind::Model => "model",
            LoweredKind::Dialect => "dialect",
        }
    }
}

/// The level that a check was lowered to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoweredTo {
    /// The rule's findings are dropped.
    Off,
    /// The rule's findings do not fail the run.
    Warning,
    /// On the older side, the findings were errors; now they have their default level.
    Default,
    /// The item existed on the older side only. For a bundled layer, this means that the layer
    /// lacks schemas.
    Removed,
    /// The older side compiled the agent; now it can only be extended.
    Abstract,
}

impl LoweredTo {
    /// Returns the level's name in reports.
    pub fn name(self) -> &'static str {
        match self {
            LoweredTo::Off => "off",
            LoweredTo::Warning => "warning",
            LoweredTo::Default => "default",
            LoweredTo::Removed => "removed",
            LoweredTo::Abstract => "abstract",
        }
    }
}

impl Lowered {
    /// Returns a lowered check without further details.
    pub(crate) fn new(kind: LoweredKind, what: &str) -> Lowered {
        Lowered {
            kind,
            what: Arc::from(what),
            to: None,
            value: None,
            agent: None,
            path: None,
            fields: Vec::new(),
            reason: None,
            expires: None,
            place: None,
            text: None,
        }
    }

    pub(super) fn at(mut self, repo: &Repo, span: Span) -> Lowered {
        let file = repo.sources.get(span.file);
        self.place = Some((
            Arc::clone(file.path()),
            file.position(span.start as usize).line,
        ));
        self
    }

    /// Returns a key that identifies the lowered check, independent of the setting's location.
    pub(super) fn key(&self) -> String {
        let Lowered {
            kind,
            what,
            to,
            value,
            agent,
            path,
            fields,
            reason,
            expires,
            place: _,
            text,
        } = self;
        let text = text.as_ref().map(|text| text.as_str());
        format!(
            "{:?}",
            (
                kind, what, to, value, agent, path, fields, reason, expires, text
            )
        )
    }
}

impl Policy<'_> {
    /// Returns all checks that are lowered in this run, in file order.
    pub(in crate::compile) fn lowered(&self, compiler: &Compiler) -> Vec<Lowered> {
        let repo = &compiler.repo;
        let rules = self.config.levels.iter().filter_map(|(code, level)| {
            let lowered = Lowered::new(LoweredKind::Rule, &code.value).at(repo, code.span);
            Some(Lowered {
                to: Some(lowers(&code.value, *level)?),
                ..lowered
            })
        });
        let allows = self
            .config
            .allows
            .iter()
            .filter(|entry| !self.is_expired(entry))
            .map(|entry| allow(repo, entry));
        let extensions = self.config.extensions.iter().map(|entry| Lowered {
            fields: extended(entry),
            reason: entry.reason.clone(),
            ..Lowered::new(LoweredKind::Extension, &entry.instance).at(repo, entry.span)
        });
        let layer = self.config.is_bundled_layer.then(|| layer(repo));
        let arguments = self
            .options
            .allow
            .iter()
            .map(|code| Lowered::new(LoweredKind::Argument, code));
        let settings = rules.chain(allows).chain(extensions).chain(schemas(repo));
        settings
            .chain(without_golden(compiler))
            .chain(layer)
            .chain(arguments)
            .collect()
    }
}

/// Returns the fields that an entry allows. A field may include a value; a field that may be
/// missing is marked with `?`.
fn extended(entry: &Extension) -> Vec<Arc<str>> {
    let optional = entry
        .optional
        .iter()
        .map(|field| Arc::from(format!("{field}?")));
    entry
        .fields
        .iter()
        .chain(&entry.values)
        .cloned()
        .chain(optional)
        .collect()
}

/// Returns contexts that are marked `golden` but that `golden.contexts` leaves out.
fn without_golden(compiler: &Compiler) -> Vec<Lowered> {
    let Some(globs) = &compiler.repo.config.golden_contexts else {
        return Vec::new();
    };
    let left_out = compiler
        .contexts
        .iter()
        .filter(|loaded| loaded.context.golden && !loaded.golden);
    let lowered = left_out.map(|loaded| Lowered::new(LoweredKind::Golden, &loaded.context.name));
    lowered
        .map(|lowered| lowered.at(&compiler.repo, globs.span))
        .collect()
}

/// Returns the level to which a pattern lowers rules; `None` if it does not lower any.
fn lowers(pattern: &str, level: Level) -> Option<LoweredTo> {
    let rules = all_rules()
        .into_iter()
        .filter(|rule| matches(pattern, rule.code) && rule.can_be_lowered);
    match level {
        Level::Off => (rules.count() > 0).then_some(LoweredTo::Off),
        Level::On(level) => rules
            .map(|rule| rule.severity)
            .any(|usual| usual > level)
            .then_some(LoweredTo::Warning),
    }
}

fn allow(repo: &Repo, entry: &Allow) -> Lowered {
    Lowered {
        agent: entry.agent.as_ref().map(|glob| glob.text().to_owned()),
        path: entry.file.as_ref().map(|glob| glob.text().to_owned()),
        reason: entry.reason.clone(),
        expires: entry
            .expires
            .map(|date| format!("{:04}-{:02}-{:02}", date.year, date.month, date.day)),
        ..Lowered::new(LoweredKind::Allow, &entry.code).at(repo, entry.span)
    }
}

/// Reports that the root is the bundled layer itself. Bodies are not checked if the layer lacks the
/// schema of their wire format.
fn layer(repo: &Repo) -> Lowered {
    let lacks = WireFormat::ALL
        .iter()
        .any(|wire| !repo.schemas.contains_key(wire.name()));
    Lowered {
        to: lacks.then_some(LoweredTo::Removed),
        ..Lowered::new(LoweredKind::Layer, "bundled")
    }
}

pub(super) fn schemas(repo: &Repo) -> impl Iterator<Item = Lowered> + '_ {
    // In a root that is the bundled layer, a schema that differs from the program's own may have
    // been written by anyone.
    let own = repo.schemas.values().flatten().filter(|source| {
        source.layer == LayerKind::Own
            || repo.is_bundled_root
                && !is_built_in(repo.sources.get(source.file).source_text().as_str())
    });
    own.map(|LayerFile { file, .. }| {
        let source = repo.sources.get(*file);
        let text = Arc::clone(source.source_text());
        let place = Some((Arc::clone(source.path()), 1));
        Lowered {
            text: Some(text),
            place,
            ..Lowered::new(LoweredKind::Schema, source.path())
        }
    })
}
