//! Reads contexts, which are synthetic conversations in JSON files.
//!
//! Input: context files. Output: [`Context`]s in a stable order. Each context is a named
//! [`Conversation`] in normal form, with a virtual project. This module does not depend on
//! rendering.

mod media;
mod origins;
pub(crate) mod rules;
mod read;

pub use origins::Origins;
pub use read::{KEYS, TURN_KEYS};

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::Value;

use crate::conversation::{self, Anchor, Conversation, Message, Relation, Task, TaskKind};
use crate::diag::{Diagnostic, Edit};
use crate::json::{self, Pointer, Tree, TreeKind};
use crate::panics::caught;
use crate::repo::{LayerKind, Repo, rules as repo_rules};
use crate::source::{FileId, SourceFile, Span};

/// A named conversation for which agents are compiled.
#[derive(Debug, Clone)]
pub struct Context {
    /// The file that defines the context.
    pub file: FileId,
    /// The layer that contains the file.
    pub layer: LayerKind,
    /// The name, which is also part of the names of golden files.
    pub name: Arc<str>,
    /// The purpose of the context, in the author's words.
    pub why: Arc<str>,
    /// `true` if the file requests golden files for this context.
    pub golden: bool,
    /// The value of `language` in system prompts.
    pub language: Arc<str>,
    /// The project that system prompts refer to.
    pub project: Project,
    /// The conversation in the last turn, in normal form.
    pub conversation: Conversation,
    /// `true` if the host renewed the system prompt and tools with the last turn.
    pub renewed: bool,
    /// The states of the conversation in earlier turns, if the file contains `turns`. All other
    /// fields describe the last turn.
    pub earlier: Vec<State>,
}

/// The state of a conversation at the time of one of its requests.
#[derive(Debug, Clone)]
pub struct State {
    /// The value of `language` in system prompts.
    pub language: Arc<str>,
    /// The project that system prompts refer to.
    pub project: Project,
    /// The conversation, in normal form.
    pub conversation: Conversation,
    /// `true` if the host renewed the system prompt and tools with this turn.
    pub renewed: bool,
}

/// A virtual project, so that golden files never depend on a real one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Project {
    /// The value of `project_name` in system prompts.
    pub name: Arc<str>,
    /// The files, by path relative to the project's root.
    pub files: BTreeMap<String, Arc<str>>,
}

impl Context {
    /// Returns the kind of the conversation's task: chat or completion.
    pub fn kind(&self) -> TaskKind {
        self.conversation.kind()
    }
}

/// Reads all contexts in a repository, sorted by name.
pub fn read_all(repo: &Repo, origins: &Origins) -> (Vec<Context>, Vec<Diagnostic>) {
    let mut findings = Vec::new();
    let mut contexts: Vec<Context> = Vec::new();
    // Golden files are named after contexts, and file systems may ignore case, so names must differ
    // in more than case.
    let mut names: HashMap<String, usize> = HashMap::new();
    for source in &repo.contexts {
        let text = repo.sources.get(source.file).text();
        let context = match caught(|| read(source.file, source.layer, text, origins, &mut findings))
        {
            Ok(Some(context)) => context,
            Ok(None) => continue,
            Err(panic) => {
                findings.push(panic.finding("this file", Span::file_start(source.file)));
                continue;
            }
        };
        match names.entry(context.name.to_ascii_lowercase()) {
            Entry::Occupied(known) => {
                findings.push(name_taken(repo, &contexts[*known.get()], &context));
            }
            Entry::Vacant(free) => {
                free.insert(contexts.len());
                contexts.push(context);
            }
        }
    }
    contexts.sort_by(|a, b| a.name.cmp(&b.name));
    (contexts, findings)
}

/// Returns the context files that were not read because of errors, each with the name given in the
/// file or, if there is none, the file's own name.
pub(crate) fn left_out(repo: &Repo, is_read: impl Fn(FileId) -> bool) -> Vec<(String, FileId)> {
    let left_out = repo.contexts.iter().filter(|source| !is_read(source.file));
    let named = left_out.map(|source| {
        let file = repo.sources.get(source.file);
        (
            said(file).unwrap_or_else(|| {
                file.path()
                    .rsplit('/')
                    .next()
                    .unwrap_or_default()
                    .trim_end_matches(".json")
                    .to_owned()
            }),
            source.file,
        )
    });
    named.collect()
}

fn said(file: &SourceFile) -> Option<String> {
    json::parse(file.text())
        .ok()?
        .get("name")?
        .as_str()
        .map(str::to_owned)
}

/// Reads one context file. If it cannot be used, adds findings and returns `None`.
pub fn read(
    file: FileId,
    layer: LayerKind,
    text: &str,
    origins: &Origins,
    findings: &mut Vec<Diagnostic>,
) -> Option<Context> {
    read_for(Reading::File(origins), file, layer, text, findings).map(|(context, _)| context)
}

/// Reads a conversation that is written like a context, but need not have a name.
pub(crate) fn read_live(
    file: FileId,
    text: &str,
    origins: &Origins,
    findings: &mut Vec<Diagnostic>,
) -> Option<Context> {
    read_for(Reading::Live(origins), file, LayerKind::Own, text, findings)
        .map(|(context, _)| context)
}

/// The purpose for which a context is read.
#[derive(Debug, Clone, Copy)]
enum Reading<'o> {
    /// To use a file in a repository.
    File(&'o Origins),
    /// To locate strings in a file that has already been read.
    Leaves,
    /// To use a conversation without a name.
    Live(&'o Origins),
}

fn read_for(
    reading: Reading<'_>,
    file: FileId,
    layer: LayerKind,
    text: &str,
    findings: &mut Vec<Diagnostic>,
) -> Option<(Context, read::Leaves)> {
    let value = match json::parse(text) {
        Ok(value) => value,
        Err(error) => {
            let finding = Diagnostic::new(
                &rules::SYNTAX,
                Span::new(file, error.range.clone()),
                error.problem.message(),
            );
            let comma = error
                .comma()
                .map(|(range, comma)| Edit::new(Span::new(file, range), comma));
            let finding = finding.maybe_fix(comma);
            findings.push(finding);
            return None;
        }
    };
    let places = read::Places::new(text);
    let reader = read::Reader::new(file, &places, findings);
    let reader = match reading {
        Reading::File(origins) => reader.with_origins(origins),
        Reading::Leaves => reader.with_leaves(),
        Reading::Live(origins) => reader.with_origins(origins).without_name(),
    };
    let (mut context, leaves) = reader.context(layer, &value)?;
    for state in &mut context.earlier {
        state.conversation = std::mem::take(&mut state.conversation).into_normal_form();
    }
    if let Task::Chat(history) = &context.conversation.task {
        let normal = conversation::normalise(history, &conversation::NormalFormRules::default());
        let changes = normal.changes.iter();
        findings.extend(changes.take(read::MOST).map(|change| {
            let at = message_at(&value, change.message());
            not_normal(places.span(file, &at), change)
        }));
        let more = normal.changes.len().saturating_sub(read::MOST);
        if let Some(last) = findings.last_mut().filter(|_| more > 0) {
            last.message
                .push_str(&format!(", and {more} more findings in this file"));
        }
        context.conversation.task = Task::Chat(normal.history);
    }
    Some((context, leaves))
}

/// A context file, read again to find the locations of the values that templates receive.
pub(crate) struct ContextSource {
    file: FileId,
    conversation: Conversation,
    leaves: read::Leaves,
    tree: Tree,
    /// The number of turns in the file after the first.
    turns: usize,
}

impl ContextSource {
    /// Reads a context's file again; returns `None` if that fails.
    pub(crate) fn read(context: &Context, text: &str) -> Option<ContextSource> {
        let (read, leaves) = read_for(
            Reading::Leaves,
            context.file,
            context.layer,
            text,
            &mut Vec::new(),
        )?;
        Some(ContextSource {
            file: context.file,
            turns: read.earlier.len(),
            conversation: read.conversation,
            leaves,
            tree: json::parse_tree(text).ok()?,
        })
    }

    /// Returns the history of a chat as it is in the file, before normalisation; empty for a
    /// completion.
    pub(crate) fn history(&self) -> &[Message] {
        match &self.conversation.task {
            Task::Chat(history) => history,
            Task::Completion { .. } => &[],
        }
    }

    /// Returns a value's location in the file.
    pub(crate) fn span(&self, at: &Pointer) -> Option<Span> {
        self.tree
            .locate(at)
            .map(|tree| Span::new(self.file, tree.span.clone()))
    }

    /// Returns the location of the language or project name that prompts receive in a turn.
    pub(crate) fn setting_span(&self, path: &Pointer, turn: usize) -> Option<Span> {
        match path.tokens().next()?.as_str() {
            "language" => self.span(&self.below_until(turn, "language", &[])),
            "project_name" => self.span(&self.below_until(turn, "project", &["name"])),
            _ => None,
        }
    }

    /// Returns the location of a project file that prompts receive in a turn.
    pub(crate) fn project_file_span(&self, path: &str, turn: usize) -> Option<Span> {
        self.span(&self.below_until(turn, "project", &["files", path]))
    }

    /// Returns the location of an attached file's member in a turn.
    pub(crate) fn file_span(&self, turn: usize, index: usize, member: &str) -> Option<Span> {
        self.span(&self.below_until(turn, "files", &[&index.to_string(), member]))
    }

    /// Returns the location of a template data value. `normal` converts the history in the file to
    /// the normal form that the template received.
    pub(crate) fn data_span(
        &self,
        path: &Pointer,
        normal: &dyn Fn(&[Message]) -> Arc<[Message]>,
    ) -> Option<Span> {
        self.span(&self.at(path, normal)?)
    }

    /// Returns the location of a template data value's key.
    pub(crate) fn key_span(
        &self,
        path: &Pointer,
        normal: &dyn Fn(&[Message]) -> Arc<[Message]>,
    ) -> Option<Span> {
        let at = self.at(path, normal)?;
        let key = self
            .tree
            .locate(&at.parent()?)?
            .key_span(&at.tokens().last()?)?;
        Some(Span::new(self.file, key))
    }

    /// Returns the locations of the strings in a block list that templates receive as one string;
    /// `None` if the file contains no list there.
    pub(crate) fn texts_in(
        &self,
        path: &Pointer,
        normal: &dyn Fn(&[Message]) -> Arc<[Message]>,
    ) -> Option<Vec<Span>> {
        let TreeKind::Array(blocks) = &self.tree.locate(&self.at(path, normal)?)?.kind else {
            return None;
        };
        let text = Pointer::root().member("text");
        let texts = blocks.iter().filter_map(|block| block.locate(&text));
        Some(
            texts
                .map(|tree| Span::new(self.file, tree.span.clone()))
                .collect(),
        )
    }

    fn at(&self, path: &Pointer, normal: &dyn Fn(&[Message]) -> Arc<[Message]>) -> Option<Pointer> {
        let tokens: Vec<String> = path.tokens().collect();
        let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
        Some(match tokens.as_slice() {
            ["history", index, rest @ ..] => {
                let history = normal(self.history());
                let anchor = conversation::anchor(&history, index.parse().ok()?, rest)?;
                self.at_anchor(&anchor)?
            }
            ["files_metadata", rest @ ..] => self.below("files", rest),
            ["project_name"] => self.below("project", &["name"]),
            [
                first @ ("history" | "prefix" | "suffix" | "language" | "system_layers" | "tools"),
                rest @ ..,
            ] => self.below(first, rest),
            _ => return None,
        })
    }

    fn at_anchor(&self, anchor: &Anchor<'_>) -> Option<Pointer> {
        let at = self.leaves.of(anchor.text)?;
        match &anchor.relation {
            Relation::Itself => Some(at.clone()),
            Relation::Beside(rest) => {
                Some(rest.iter().fold(at.parent()?, |at, token| at.member(token)))
            }
            Relation::InMessage(member) => Some(message_of(at).member(member)),
            Relation::Message => Some(message_of(at)),
        }
    }

    /// Returns the pointer to a member in the last turn that sets it.
    fn below(&self, member: &str, rest: &[&str]) -> Pointer {
        self.below_until(self.turns, member, rest)
    }

    /// Searches the first `turn` later turns for the last one that sets a member. Returns the
    /// pointer to the member there, or in the root if there is no such turn.
    fn below_until(&self, turn: usize, member: &str, rest: &[&str]) -> Pointer {
        let turns = Pointer::root().member("turns");
        let turn = (0..turn.min(self.turns))
            .rev()
            .find(|index| {
                self.tree
                    .locate(&turns.element(*index).member(member))
                    .is_some()
            })
            .map(|index| turns.element(index));
        rest.iter().fold(
            turn.unwrap_or_else(Pointer::root).member(member),
            |at, token| at.member(token),
        )
    }
}

/// Returns the pointer to the message that contains a location: `/history/2` or
/// `/turns/0/history/2`.
fn message_of(at: &Pointer) -> Pointer {
    let depth = if at.tokens().next().as_deref() == Some("turns") {
        4
    } else {
        2
    };
    at.tokens()
        .take(depth)
        .fold(Pointer::root(), |at, token| at.member(&token))
}

/// Returns the pointer to a message in a file, given the message's index in the whole history.
fn message_at(file: &Value, index: usize) -> Pointer {
    let (mut index, mut at) = (index, Pointer::root());
    let mut before = length(file);
    for (number, turn) in file
        .get("turns")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .enumerate()
    {
        if index < before {
            break;
        }
        index -= before;
        (before, at) = (
            length(turn),
            Pointer::root().member("turns").element(number),
        );
    }
    at.member("history").element(index)
}

fn length(value: &Value) -> usize {
    value
        .get("history")
        .and_then(Value::as_array)
        .map_or(0, Vec::len)
}

fn not_normal(message: Span, change: &conversation::NormalFormChange) -> Diagnostic {
    let what = format!("not in normal form: {}", change.describe());
    Diagnostic::new(&rules::NOT_NORMAL, message, what).help(change.help())
}

impl Context {
    /// Returns the state of the conversation in the last turn.
    pub(crate) fn last(&self) -> State {
        let Context {
            language,
            project,
            conversation,
            renewed,
            ..
        } = self;
        let (language, project) = (Arc::clone(language), project.clone());
        State {
            language,
            project,
            conversation: conversation.clone(),
            renewed: *renewed,
        }
    }

    /// Returns the history of a chat; empty for a completion.
    pub fn history(&self) -> &[Message] {
        match &self.conversation.task {
            Task::Chat(history) => history,
            Task::Completion { .. } => &[],
        }
    }
}

impl State {
    /// Returns the history of a chat; empty for a completion.
    pub(crate) fn history(&self) -> &[Message] {
        match &self.conversation.task {
            Task::Chat(history) => history,
            Task::Completion { .. } => &[],
        }
    }
}

fn name_taken(repo: &Repo, known: &Context, context: &Context) -> Diagnostic {
    let [span, other] = [context, known].map(|context| {
        let places = read::Places::new(repo.sources.get(context.file).text());
        places.span(context.file, &Pointer::root().member("name"))
    });
    let (rule, message) = match (known.layer == context.layer, known.name == context.name) {
        (true, true) => (
            &repo_rules::DUPLICATE_NAME,
            format!("two contexts are called `{}`", context.name),
        ),
        (true, false) => (
            &repo_rules::DUPLICATE_NAME,
            format!(
                "`{}` and `{}` differ only in case",
                known.name, context.name
            ),
        ),
        (false, true) => (
            &repo_rules::BUNDLED_NAME,
            format!("`{}` is the name of a bundled context", context.name),
        ),
        (false, false) => {
            let message = format!(
                "`{}` differs from the bundled context `{}` only in case",
                context.name, known.name
            );
            (&repo_rules::BUNDLED_NAME, message)
        }
    };
    let finding = Diagnostic::new(rule, span, message);
    finding
        .related(other, "the other one")
        .help("give it a different `name`")
}
