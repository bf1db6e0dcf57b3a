//! Converts JSON values to a context, with findings at their locations.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Context, Origins, Project, State, media, rules};
use crate::conversation::{
    AttachedFile, Audio, BLOCK_TYPES, Block, Conversation, DEFAULT_PRIORITY, Document,
    DocumentSource, Image, ItemKind, Message, ProviderBlock, Role, SystemLayer, Task, TaskKind,
    Tool, turn_from,
};
use crate::diag::{Diagnostic, Rule, did_you_mean};
use crate::json::{self, Pointer, Tree};
use crate::repo::LayerKind;
use crate::source::{FileId, Span};
use crate::text::cut;

pub(super) struct Reader<'a> {
    file: FileId,
    places: &'a Places<'a>,
    findings: &'a mut Vec<Diagnostic>,
    /// The number of findings so far, including those beyond the limit.
    found: usize,
    failed: bool,
    /// The locations of strings, if they are to be recorded.
    leaves: Option<Leaves>,
    /// `true` if the name, the reason and the kind are required.
    is_named: bool,
    /// The known origins, if origins are to be checked.
    origins: Option<&'a Origins>,
}

/// The locations of a conversation's strings in its file, by the memory address of each text. The
/// address does not change until templates receive the text.
#[derive(Debug, Default)]
pub(super) struct Leaves(HashMap<usize, Pointer>);

impl Leaves {
    fn add(&mut self, text: &str, at: Pointer) {
        self.0.insert(text.as_ptr() as usize, at);
    }

    /// Returns the location of a string; `None` if the text is not from the file.
    pub(super) fn of(&self, text: &str) -> Option<&Pointer> {
        self.0.get(&(text.as_ptr() as usize))
    }
}

/// Returns `true` if an object has one of the members that chat APIs use for messages, and none of
/// the members that identify a context.
fn is_request_body(value: &Value) -> bool {
    has_any(value, &["messages", "contents", "input"])
        && !has_any(value, &["history", "prefix", "suffix", "kind"])
}

fn has_any(value: &Value, names: &[&str]) -> bool {
    names.iter().any(|name| value.get(name).is_some())
}

/// The maximum number of findings that are reported per file.
pub(super) const MOST: usize = 1_000;

/// The maximum number of states of a conversation: the first, and one for each element of `turns`.
const MOST_TURNS: usize = 32;

/// The locations of the values in a file, which is parsed when the first finding needs a location.
pub(super) struct Places<'a> {
    text: &'a str,
    tree: OnceCell<Option<Tree>>,
}

impl<'a> Places<'a> {
    pub(super) fn new(text: &'a str) -> Places<'a> {
        Places {
            text,
            tree: OnceCell::new(),
        }
    }

    pub(super) fn of(&self, at: &Pointer) -> Option<&Tree> {
        self.tree
            .get_or_init(|| json::parse_tree(self.text).ok())
            .as_ref()?
            .locate(at)
    }

    pub(super) fn span(&self, file: FileId, at: &Pointer) -> Span {
        Span::new(file, self.of(at).map_or(0..0, |tree| tree.span.clone()))
    }
}

/// All keys in a context.
pub const KEYS: [&str; 15] = [
    "name",
    "why",
    "kind",
    "golden",
    "language",
    "project",
    "tools",
    "system_layers",
    "system_prompt",
    "history",
    "prefix",
    "suffix",
    "files",
    "turns",
    "$schema",
];

/// All keys in a turn.
pub const TURN_KEYS: [&str; 7] = [
    "history",
    "language",
    "project",
    "files",
    "tools",
    "system_layers",
    "renew",
];

/// An object in the file, with its location.
struct Object<'v> {
    members: &'v Map<String, Value>,
    at: Pointer,
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        file: FileId,
        places: &'a Places<'a>,
        findings: &'a mut Vec<Diagnostic>,
    ) -> Reader<'a> {
        Reader {
            file,
            places,
            findings,
            found: 0,
            failed: false,
            leaves: None,
            is_named: true,
            origins: None,
        }
    }

    /// Makes the reader check origins against the known origins.
    pub(super) fn with_origins(self, origins: &'a Origins) -> Reader<'a> {
        Reader {
            origins: Some(origins),
            ..self
        }
    }

    /// Makes the reader record the locations of strings.
    pub(super) fn with_leaves(self) -> Reader<'a> {
        Reader {
            leaves: Some(Leaves::default()),
            ..self
        }
    }

    /// Makes the name, the reason and the kind optional.
    pub(super) fn without_name(self) -> Reader<'a> {
        Reader {
            is_named: false,
            ..self
        }
    }

    /// Returns the context, and the locations of its text values if they were recorded; `None` if
    /// there are errors.
    pub(super) fn context(mut self, layer: LayerKind, value: &Value) -> Option<(Context, Leaves)> {
        let context = self.whole(layer, value);
        self.tell_the_rest();
        context
            .filter(|_| !self.failed)
            .map(|context| (context, self.leaves.unwrap_or_default()))
    }

    fn whole(&mut self, layer: LayerKind, value: &Value) -> Option<Context> {
        if is_request_body(value) {
            self.report(|reader| {
                let finding = Diagnostic::new(
                    &rules::INVALID,
                    reader.span(&Pointer::root()),
                    "this is a request body, not a context",
                );
                finding.help("`reqc context import FILE` converts a request body to a context")
            });
            return None;
        }
        let root = self.object(value, &Pointer::root(), "a context", &KEYS)?;
        let name = if self.is_named {
            self.filled_text(&root, "name")
        } else {
            Arc::from("")
        };
        self.check_name(&root, &name);
        let why = self.text(&root, "why", self.is_named);
        let kind = self.kind(&root);
        let golden = self.flag(&root, "golden");
        let language = self.text(&root, "language", false);
        let project = self.project(&root);
        let omit_system_prompt = self.omit_system_prompt(&root);
        let conversation = Conversation {
            task: self.task(&root, kind),
            tools: self.list(&root, "tools", Reader::tool),
            files: self.list(&root, "files", Reader::attached_file),
            system_layers: self.list(&root, "system_layers", Reader::system_layer),
            omit_system_prompt,
            bound_from: 0,
            known_prompt: None,
            is_told: false,
            known_items: Vec::new(),
        };
        self.repeated_layers(&root, &conversation.system_layers);
        let first = State {
            language,
            project,
            conversation,
            renewed: false,
        };
        let mut states = self.turns(&root, first);
        let State {
            language,
            project,
            conversation,
            renewed,
        } = states.pop()?;
        let earlier = states;
        Some(Context {
            file: self.file,
            layer,
            name,
            why,
            golden,
            language,
            project,
            conversation,
            renewed,
            earlier,
        })
    }

    /// Returns the first state of a conversation, followed by its state in each later turn.
    fn turns(&mut self, root: &Object<'_>, first: State) -> Vec<State> {
        let mut states = vec![first];
        let at = root.at.member("turns");
        match root.members.get("turns") {
            None => {}
            Some(_) if states[0].conversation.kind() == TaskKind::Completion => {
                self.fail(
                    &at,
                    "a completion context cannot have `turns`: each completion is a separate request".to_owned(),
                );
            }
            Some(Value::Array(turns)) if turns.len() >= MOST_TURNS => {
                self.fail(
                    &at,
                    format!(
                        "a context must have fewer than {MOST_TURNS} turns, not {}",
                        turns.len()
                    ),
                );
            }
            Some(Value::Array(turns)) => {
                for (index, turn) in turns.iter().enumerate() {
                    let next = self.turn(turn, &at.element(index), &states[index]);
                    states.push(next.unwrap_or_else(|| states[index].clone()));
                }
            }
            Some(other) => self.fail(
                &at,
                format!("`turns` must be an array, not {}", json::kind_of(other)),
            ),
        }
        states
    }

    /// Returns the state of a conversation in a later turn, which adds messages, and keeps all
    /// settings that it does not change; `None` if there are errors.
    fn turn(&mut self, value: &Value, at: &Pointer, before: &State) -> Option<State> {
        let turn = self.object(value, at, "a turn", &TURN_KEYS)?;
        let mut state = before.clone();
        if turn.members.contains_key("language") {
            state.language = self.text(&turn, "language", false);
        }
        if turn.members.contains_key("project") {
            state.project = self.project(&turn);
        }
        if turn.members.contains_key("files") {
            state.conversation.files = self.list(&turn, "files", Reader::attached_file);
        }
        if turn.members.contains_key("tools") {
            state.conversation.tools = self.list(&turn, "tools", Reader::tool);
        }
        if turn.members.contains_key("system_layers") {
            state.conversation.system_layers =
                self.list(&turn, "system_layers", Reader::system_layer);
            self.repeated_layers(&turn, &state.conversation.system_layers);
        }
        let more = self.list(&turn, "history", Reader::message);
        if more.is_empty() && !self.failed {
            self.fail(
                &turn.at,
                "a turn needs a `history` with the messages that it adds".to_owned(),
            );
        }
        state.renewed = self.flag(&turn, "renew");
        if let Task::Chat(history) = &mut state.conversation.task {
            let before = history.len();
            history.extend(more);
            if state.renewed {
                // The answer in the previous turn depends on the settings of that turn.
                state.conversation.bound_from = turn_from(history, before);
            }
        }
        Some(state)
    }

    fn span(&self, at: &Pointer) -> Span {
        self.places.span(self.file, at)
    }

    fn fail(&mut self, at: &Pointer, message: String) {
        self.fail_with(at, message, None);
    }

    fn fail_with(&mut self, at: &Pointer, message: String, help: Option<String>) {
        self.report(|reader| {
            Diagnostic::new(&rules::INVALID, reader.span(at), message).maybe_help(help)
        });
        self.failed = true;
    }

    /// Reports a word that is not one of the `known` words. The message lists the known words, and
    /// the help suggests the most similar one.
    fn fail_of(&mut self, at: &Pointer, message: &str, written: &str, known: &[&str]) {
        let message = format!("{message}, not `{}`", cut(written, 60));
        self.fail_with(at, message, did_you_mean(written, known.iter().copied()));
    }

    /// Reports an unknown value, which is used nevertheless.
    fn warn(&mut self, rule: &'static Rule, at: &Pointer, message: String, help: String) {
        self.report(|reader| Diagnostic::new(rule, reader.span(at), message).help(help));
    }

    /// Adds a finding. Beyond the limit, the finding is not even created, because determining its
    /// location is expensive.
    fn report(&mut self, finding: impl FnOnce(&Self) -> Diagnostic) {
        self.found += 1;
        if self.found <= MOST {
            let finding = finding(self);
            self.findings.push(finding);
        }
    }

    /// Appends the number of omitted findings to the last finding.
    fn tell_the_rest(&mut self) {
        let more = self.found.saturating_sub(MOST);
        if let Some(last) = self.findings.last_mut().filter(|_| more > 0) {
            last.message
                .push_str(&format!(", and {more} more findings in this file"));
        }
    }

    fn object<'v>(
        &mut self,
        value: &'v Value,
        at: &Pointer,
        what: &str,
        known: &[&str],
    ) -> Option<Object<'v>> {
        let Value::Object(members) = value else {
            self.fail(
                at,
                format!("{what} must be an object, not {}", json::kind_of(value)),
            );
            return None;
        };
        for key in members.keys().filter(|key| !known.contains(&key.as_str())) {
            self.report(|reader| {
                let span = reader
                    .places
                    .of(at)
                    .and_then(|tree| tree.key_span(key))
                    .unwrap_or(0..0);
                let help = did_you_mean(key, known.iter().copied())
                    .unwrap_or_else(|| format!("known keys: {}", known.join(", ")));
                let message = format!("unknown key `{key}` in {what}");
                Diagnostic::new(&rules::UNKNOWN_KEY, Span::new(reader.file, span), message)
                    .help(help)
            });
        }
        Some(Object {
            members,
            at: at.clone(),
        })
    }

    fn text(&mut self, object: &Object<'_>, key: &str, required: bool) -> Arc<str> {
        match object.members.get(key) {
            Some(Value::String(text)) => self.leaf(text, || object.at.member(key)),
            Some(other) => {
                self.fail(
                    &object.at.member(key),
                    format!("`{key}` must be a string, not {}", json::kind_of(other)),
                );
                Arc::from("")
            }
            None => {
                if required {
                    self.fail(&object.at, format!("`{key}` is missing"));
                }
                Arc::from("")
            }
        }
    }

    fn leaf(&mut self, text: &str, at: impl FnOnce() -> Pointer) -> Arc<str> {
        let text: Arc<str> = Arc::from(text);
        if let Some(leaves) = &mut self.leaves {
            leaves.add(&text, at());
        }
        text
    }

    /// Reads a string that is required and must not be blank.
    fn filled_text(&mut self, object: &Object<'_>, key: &str) -> Arc<str> {
        let text = self.text(object, key, true);
        if object
            .members
            .get(key)
            .is_some_and(|value| value.as_str().is_some_and(|text| text.trim().is_empty()))
        {
            self.fail(&object.at.member(key), format!("`{key}` must not be empty"));
        }
        text
    }

    fn optional_text(&mut self, object: &Object<'_>, key: &str) -> Option<Arc<str>> {
        object
            .members
            .contains_key(key)
            .then(|| self.text(object, key, true))
    }

    fn flag(&mut self, object: &Object<'_>, key: &str) -> bool {
        match object.members.get(key) {
            None => false,
            Some(Value::Bool(flag)) => *flag,
            Some(other) => {
                self.fail(
                    &object.at.member(key),
                    format!(
                        "`{key}` must be true or false, not {}",
                        json::kind_of(other)
                    ),
                );
                false
            }
        }
    }

    fn list<T>(
        &mut self,
        object: &Object<'_>,
        key: &str,
        read: fn(&mut Reader<'a>, &Value, &Pointer) -> Option<T>,
    ) -> Vec<T> {
        let at = object.at.member(key);
        match object.members.get(key) {
            None => Vec::new(),
            Some(Value::Array(elements)) => {
                let elements = elements.iter().enumerate();
                elements
                    .filter_map(|(index, element)| read(self, element, &at.element(index)))
                    .collect()
            }
            Some(other) => {
                self.fail(
                    &at,
                    format!("`{key}` must be an array, not {}", json::kind_of(other)),
                );
                Vec::new()
            }
        }
    }

    fn check_name(&mut self, root: &Object<'_>, name: &str) {
        let legal = name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
            && !name.starts_with('.');
        let why = match crate::world::unusable_name(&format!("{name}.json")) {
            _ if name.is_empty() => return,
            _ if !legal => format!(
                "`{name}` is not a valid context name: use ASCII letters, digits, `-`, `_` and `.`"
            ),
            // File systems may ignore case.
            _ if name.eq_ignore_ascii_case("request") => {
                format!(
                    "`{name}` is not a valid context name: golden folders contain a `request.json`"
                )
            }
            Some(why) => format!("no golden file can be named `{name}.json`: {why}"),
            None => return,
        };
        self.fail(&root.at.member("name"), why);
    }

    fn kind(&mut self, root: &Object<'_>) -> TaskKind {
        let kind = if self.is_named {
            self.filled_text(root, "kind")
        } else {
            self.text(root, "kind", false)
        };
        match &*kind {
            "chat" | "" => TaskKind::Chat,
            "completion" => TaskKind::Completion,
            other => {
                self.fail_of(
                    &root.at.member("kind"),
                    "`kind` must be `chat` or `completion`",
                    other,
                    &["chat", "completion"],
                );
                TaskKind::Chat
            }
        }
    }

    fn omit_system_prompt(&mut self, root: &Object<'_>) -> bool {
        self.text(root, "system_prompt", false);
        match root.members.get("system_prompt").and_then(Value::as_str) {
            None | Some("profile") => false,
            Some("omit") => true,
            Some(other) => {
                let at = root.at.member("system_prompt");
                self.fail_of(
                    &at,
                    "`system_prompt` must be `profile` or `omit`",
                    other,
                    &["profile", "omit"],
                );
                false
            }
        }
    }

    fn project(&mut self, root: &Object<'_>) -> Project {
        let Some(value) = root.members.get("project") else {
            return Project::default();
        };
        let Some(object) = self.object(
            value,
            &root.at.member("project"),
            "a project",
            &["name", "files"],
        ) else {
            return Project::default();
        };
        let name = self.text(&object, "name", false);
        Project {
            name,
            files: self.project_files(&object),
        }
    }

    /// Reads the contents of the project's files, keyed by path.
    fn project_files(&mut self, project: &Object<'_>) -> BTreeMap<String, Arc<str>> {
        let at = project.at.member("files");
        match project.members.get("files") {
            None => BTreeMap::new(),
            Some(Value::Object(members)) => members
                .iter()
                .filter_map(|(path, content)| self.project_file(&at, path, content))
                .collect(),
            Some(other) => {
                let kind = json::kind_of(other);
                self.fail(
                    &at,
                    format!("`files` must be an object that maps paths to contents, not {kind}"),
                );
                BTreeMap::new()
            }
        }
    }

    fn project_file(
        &mut self,
        at: &Pointer,
        path: &str,
        content: &Value,
    ) -> Option<(String, Arc<str>)> {
        let at = at.member(path);
        let Some(normal) = crate::world::normalise_path(path) else {
            self.fail(&at, format!("`{path}` is outside the project"));
            return None;
        };
        match content {
            Value::String(text) => Some((normal, Arc::from(text.as_str()))),
            other => {
                self.fail(
                    &at,
                    format!(
                        "the file's content must be a string, not {}",
                        json::kind_of(other)
                    ),
                );
                None
            }
        }
    }

    fn task(&mut self, root: &Object<'_>, kind: TaskKind) -> Task {
        let foreign: &[&str] = match kind {
            TaskKind::Chat => &["prefix", "suffix"],
            TaskKind::Completion => &["history"],
        };
        for key in foreign
            .iter()
            .filter(|key| root.members.contains_key(**key))
        {
            self.fail(
                &root.at.member(key),
                format!("a {} context cannot have `{key}`", kind.name()),
            );
        }
        match kind {
            TaskKind::Chat => {
                if !root.members.contains_key("history") {
                    self.fail(&root.at, "`history` is missing".to_owned());
                }
                Task::Chat(self.list(root, "history", Reader::message))
            }
            TaskKind::Completion => Task::Completion {
                prefix: self.text(root, "prefix", true).as_ref().into(),
                suffix: self.text(root, "suffix", true).as_ref().into(),
            },
        }
    }

    fn message(&mut self, value: &Value, at: &Pointer) -> Option<Message> {
        if value.get("kind").is_some() {
            return self.system_item(value, at);
        }
        let object = self.object(value, at, "a message", &["role", "content"])?;
        let role = match &*self.text(&object, "role", true) {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "system" => {
                self.fail(
                    &at.member("role"),
                    "a system message must be a typed item: write `kind` and `text` instead of `role` and `content`".into(),
                );
                return None;
            }
            // A role that is missing or not a string is reported elsewhere.
            "" if object
                .members
                .get("role")
                .is_none_or(|role| !role.is_string()) =>
            {
                return None;
            }
            other => {
                let known = ["user", "assistant"];
                self.fail_of(
                    &at.member("role"),
                    "`role` must be `user` or `assistant`",
                    other,
                    &known,
                );
                return None;
            }
        };
        let blocks = match object.members.get("content") {
            Some(Value::String(text)) => {
                vec![Block::Text(self.leaf(text, || at.member("content")))]
            }
            Some(Value::Array(_)) => self.list(&object, "content", Reader::block),
            _ => {
                self.fail(
                    at,
                    "`content` must be a string or an array of blocks".into(),
                );
                return None;
            }
        };
        self.check_role(role, &blocks, at);
        Some(Message {
            role,
            blocks,
            item: None,
        })
    }

    fn check_role(&mut self, role: Role, blocks: &[Block], at: &Pointer) {
        for (index, block) in blocks.iter().enumerate() {
            let (what, owner) = match block {
                Block::ToolUse { .. } => ("a tool call", Role::Assistant),
                Block::Thinking { .. } | Block::RedactedThinking { .. } => {
                    ("thinking", Role::Assistant)
                }
                Block::ToolResult { .. } => ("a tool result", Role::User),
                Block::Image(_) => ("an image", Role::User),
                Block::Document(_) => ("a document", Role::User),
                Block::Audio(_) => ("audio", Role::User),
                Block::Stored(_) => ("stored content", Role::User),
                Block::Text(_) | Block::Provider(_) => continue,
            };
            if role != owner {
                self.fail(
                    &at.member("content").element(index),
                    format!("{what} belongs to role `{}`", owner.name()),
                );
            }
        }
    }

    fn system_item(&mut self, value: &Value, at: &Pointer) -> Option<Message> {
        let object = self.object(value, at, "a system item", &["kind", "text"])?;
        let kind = self.text(&object, "kind", true);
        let text = self.text(&object, "text", true);
        let Some(item) = ItemKind::from_name(&kind) else {
            let known: Vec<&str> = ItemKind::ALL.iter().map(|kind| kind.name()).collect();
            self.fail_of(
                &at.member("kind"),
                &format!("`kind` must be one of {}", known.join(", ")),
                &kind,
                &known,
            );
            return None;
        };
        Some(Message {
            role: Role::System,
            blocks: vec![Block::Text(text)],
            item: Some(item),
        })
    }

    fn block(&mut self, value: &Value, at: &Pointer) -> Option<Block> {
        let kind = value
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let known: &[&str] = match kind {
            "text" => &["type", "text"],
            "thinking" => &["type", "thinking", "signature", "origin"],
            "redacted_thinking" => &["type", "data", "origin"],
            "tool_use" => &["type", "id", "name", "input"],
            "tool_result" => &["type", "tool_use_id", "content", "is_error"],
            "image" => &["type", "data", "media_type", "is_url"],
            "document" => &["type", "source", "data", "media_type", "title"],
            "audio" => &["type", "data", "media_type"],
            "provider_block" => &["type", "origin", "data", "text"],
            _ => {
                self.unknown_block(value, at);
                return None;
            }
        };
        let object = self.object(value, at, &format!("a `{kind}` block"), known)?;
        Some(match kind {
            "text" => Block::Text(self.text(&object, "text", true)),
            "thinking" => Block::Thinking {
                text: self.text(&object, "thinking", true),
                signature: self.text(&object, "signature", false),
                origin: self.optional_origin(&object),
            },
            "redacted_thinking" => Block::RedactedThinking {
                data: self.text(&object, "data", true),
                origin: self.optional_origin(&object),
            },
            "tool_use" => self.tool_use(&object)?,
            "tool_result" => self.tool_result(&object)?,
            "document" => Block::Document(self.document(&object)?),
            "audio" => Block::Audio(Audio {
                data: self.filled_text(&object, "data"),
                media_type: self.media_type(&object),
            }),
            "provider_block" => Block::Provider(self.provider_block(&object)?),
            _ => Block::Image(self.image(&object)),
        })
    }

    /// Reports a block of an unknown kind. Provider-specific blocks must be written as
    /// `provider_block`.
    fn unknown_block(&mut self, value: &Value, at: &Pointer) {
        let message = format!("a block's `type` must be one of {}", BLOCK_TYPES.join(", "));
        let Some(kind) = value.get("type") else {
            return self.fail(at, message);
        };
        let at = at.member("type");
        let Some(kind) = kind.as_str() else {
            return self.fail(&at, message);
        };
        let owner = self.origins.and_then(|origins| origins.with_kind(kind));
        let help = match (owner, did_you_mean(kind, BLOCK_TYPES)) {
            (None, Some(near)) => near,
            (owner, _) => format!(
                "write a block in a provider's own form as `{{\"type\": \"provider_block\", \"origin\": \"{}\", \"data\": …}}`, \
                 with its client API as `origin` and the whole block as `data`",
                owner.unwrap_or("…"),
            ),
        };
        self.fail_with(
            &at,
            format!("{message}, not `{}`", cut(kind, 60)),
            Some(help),
        );
    }

    /// Checks the client API that is specified as a block's origin. A block from an unknown client
    /// API is never sent back.
    fn check_origin(&mut self, object: &Object<'_>, origin: &str) {
        let Some(help) = self.origins.and_then(|origins| origins.help_for(origin)) else {
            return;
        };
        let message = format!(
            "there is no client API `{}`, so no body contains this block",
            cut(origin, 60)
        );
        self.warn(
            &rules::UNKNOWN_ORIGIN,
            &object.at.member("origin"),
            message,
            help,
        );
    }

    fn optional_origin(&mut self, object: &Object<'_>) -> Option<Arc<str>> {
        let origin = self.optional_text(object, "origin");
        if let Some(origin) = &origin {
            self.check_origin(object, origin);
        }
        origin
    }

    fn media_type(&mut self, object: &Object<'_>) -> Arc<str> {
        let written = self.filled_text(object, "media_type");
        if !written.trim().is_empty()
            && let Some(help) = media::help_for(&written)
        {
            let message = format!("`{}` is not a known media type", cut(&written, 60));
            self.warn(
                &rules::MEDIA_TYPE,
                &object.at.member("media_type"),
                message,
                help,
            );
        }
        written
    }

    fn document(&mut self, object: &Object<'_>) -> Option<Document> {
        let name = self.text(object, "source", true);
        let Some(source) = DocumentSource::from_name(&name) else {
            let known = DocumentSource::ALL.map(DocumentSource::name);
            let message = format!("a document's `source` must be one of {}", known.join(", "));
            self.fail_of(&object.at.member("source"), &message, &name, &known);
            return None;
        };
        Some(Document {
            source,
            data: self.filled_text(object, "data"),
            media_type: self.media_type(object),
            title: self.optional_text(object, "title"),
        })
    }

    fn provider_block(&mut self, object: &Object<'_>) -> Option<ProviderBlock> {
        let Some(data @ Value::Object(_)) = object.members.get("data") else {
            self.fail(&object.at, "`data` must be an object".into());
            return None;
        };
        let (origin, text) = (
            self.filled_text(object, "origin"),
            self.optional_text(object, "text"),
        );
        if !origin.trim().is_empty() {
            self.check_origin(object, &origin);
        }
        let own = ProviderBlock {
            origin,
            data: data.clone(),
            text,
        };
        if let Some(help) = self.origins.and_then(|origins| origins.help_for_kind(&own)) {
            let (origin, kind) = (&own.origin, cut(own.kind(), 60));
            let message = format!(
                "requests to `{origin}` cannot contain `{kind}`, so no body has this block"
            );
            self.warn(
                &rules::UNSENT_BLOCK,
                &object.at.member("data"),
                message,
                help,
            );
        }
        Some(own)
    }

    fn tool_use(&mut self, object: &Object<'_>) -> Option<Block> {
        let input = match object.members.get("input") {
            Some(input @ Value::Object(_)) => input.clone(),
            _ => {
                self.fail(&object.at, "`input` must be an object".into());
                return None;
            }
        };
        Some(Block::ToolUse {
            id: self.text(object, "id", true),
            name: self.text(object, "name", true),
            input,
        })
    }

    fn tool_result(&mut self, object: &Object<'_>) -> Option<Block> {
        let (mut content, mut images) = (String::new(), Vec::new());
        match object.members.get("content") {
            Some(Value::String(text)) => content.push_str(text),
            Some(Value::Array(_)) => {
                for block in self.list(object, "content", Reader::block) {
                    match block {
                        Block::Text(text) => content.push_str(&text),
                        Block::Image(image) => images.push(image),
                        _ => self.fail(
                            &object.at.member("content"),
                            "a tool result can contain only text and images".into(),
                        ),
                    }
                }
            }
            _ => {
                self.fail(
                    &object.at,
                    "`content` must be a string or an array of text and image blocks".into(),
                );
                return None;
            }
        }
        let id = self.text(object, "tool_use_id", true);
        let content = self.leaf(&content, || object.at.member("content"));
        Some(Block::ToolResult {
            id,
            content,
            is_error: self.flag(object, "is_error"),
            images,
        })
    }

    fn image(&mut self, object: &Object<'_>) -> Image {
        Image {
            data: self.text(object, "data", true),
            media_type: self.text(object, "media_type", true),
            is_url: self.flag(object, "is_url"),
        }
    }

    fn tool(&mut self, value: &Value, at: &Pointer) -> Option<Tool> {
        let object = self.object(value, at, "a tool", &["name", "description", "schema"])?;
        let Some(Value::Object(schema)) = object.members.get("schema") else {
            self.fail(at, "a tool's `schema` must be an object".into());
            return None;
        };
        let schema = schema.clone();
        Some(Tool {
            name: self.text(&object, "name", true),
            description: self.text(&object, "description", true),
            schema,
        })
    }

    fn attached_file(&mut self, value: &Value, at: &Pointer) -> Option<AttachedFile> {
        let object = self.object(value, at, "a file", &["file_path", "content"])?;
        Some(AttachedFile {
            file_path: self.text(&object, "file_path", true),
            content: self.text(&object, "content", true),
        })
    }

    /// Reports layers with the same name, because a name identifies a layer in a session.
    fn repeated_layers(&mut self, root: &Object<'_>, layers: &[SystemLayer]) {
        let mut known = HashSet::new();
        for (index, layer) in layers
            .iter()
            .enumerate()
            .filter(|(_, layer)| !known.insert(&layer.name))
        {
            let at = root
                .at
                .member("system_layers")
                .element(index)
                .member("name");
            self.report(|reader| {
                let message = format!("another layer is also called `{}`", cut(&layer.name, 60));
                let finding = Diagnostic::new(&rules::REPEATED_LAYER, reader.span(&at), message);
                finding.help("a session keeps only the last one: merge the texts into one layer, or rename one")
            });
        }
    }

    fn system_layer(&mut self, value: &Value, at: &Pointer) -> Option<SystemLayer> {
        let object = self.object(value, at, "a system layer", &["name", "priority", "text"])?;
        let priority = match object.members.get("priority") {
            None => DEFAULT_PRIORITY,
            Some(priority) => priority.as_i64().unwrap_or_else(|| {
                self.fail(
                    &at.member("priority"),
                    "`priority` must be an integer".into(),
                );
                DEFAULT_PRIORITY
            }),
        };
        Some(SystemLayer {
            name: self.text(&object, "name", true),
            priority,
            text: self.text(&object, "text", true),
        })
    }
}
