//! Finds the locations in files that a body's values come from: contexts, files that prompts read,
//! and the sources of strings that no context file contains in the same form. Examples of such
//! sources are an agent's surroundings, an attached file, and several joined blocks.

use std::ops::Range;
use std::sync::Arc;

use crate::compile::compiler::Compiler;
use crate::compile::contexts::LoadedContext;
use crate::compile::surroundings;
use crate::context::ContextSource;
use crate::conversation::{AttachedFile, Block, Conversation, Item, Message};
use crate::json::Pointer;
use crate::memory::{Identity, Question};
use crate::provider::ClientApi;
use crate::render::{
    ComputedFrom, PromptScope, ReadFile, ReadPlace, Renderer, TemplateId, Written,
};
use crate::repo::LayerKind;
use crate::source::Span;
use crate::unit::{KeyOrValue, Plan, Provenance};

/// Finds the origins of values in the body of an agent for a context.
#[derive(Clone, Copy)]
pub(in crate::compile) struct Places<'a> {
    pub(in crate::compile) compiler: &'a Compiler,
    pub(in crate::compile) plan: &'a Plan<'a>,
    pub(in crate::compile) loaded: &'a LoadedContext,
}

/// A location outside templates and profiles: in a context, or in a file that a prompt read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::compile) struct Outside {
    pub(in crate::compile) span: Span,
    how: PutBy,
}

impl Outside {
    /// Returns `true` if the location is a value in a context. Findings there are reported once for
    /// all agents.
    pub(in crate::compile) fn is_in_context(self) -> bool {
        self.how == PutBy::Writing
    }
}

/// The way in which a value from a context or another file got into a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PutBy {
    /// A prompt read the value.
    Reading,
    /// A template or a step wrote the value.
    Writing,
}

impl PutBy {
    fn phrase(self) -> &'static str {
        match self {
            PutBy::Reading => "read here",
            PutBy::Writing => "put into the body here",
        }
    }
}

/// The origin of a string that no context file contains in this form.
pub(super) enum Arrived {
    /// A template wrote the string in a turn, as these runs. Turn 0 is the first turn of the
    /// context.
    Rendered(usize, Vec<Written>),
    /// Joined strings from the context.
    Joined(Vec<Piece>),
}

/// A part of a joined string.
pub(super) struct Piece {
    /// The length in bytes.
    pub(super) len: usize,
    /// The location where the part is written; `None` for the program's own text.
    pub(super) span: Option<Span>,
}

impl Piece {
    /// Returns the parts of a string within a range.
    fn within(pieces: Vec<Piece>, bytes: &Range<usize>) -> Vec<Piece> {
        let (mut start, mut inside) = (0, Vec::new());
        for piece in pieces {
            let end = start + piece.len;
            let len = end.min(bytes.end).saturating_sub(start.max(bytes.start));
            if len > 0 {
                inside.push(Piece { len, ..piece });
            }
            start = end;
        }
        inside
    }
}

/// A [`Question`] about the location of a value in its context file. The question consists of the
/// context, the surroundings that an agent adds to the conversation, the layer from which the
/// surroundings read, and the client API whose normal form the conversation has.
#[derive(PartialEq, Eq, Hash)]
struct SpanOf {
    context: Identity,
    surroundings: Option<TemplateId>,
    layer: LayerKind,
    api: ClientApi,
    path: Pointer,
}

impl Question for SpanOf {
    type Answer = Option<Span>;
}

impl<'a> Places<'a> {
    pub(in crate::compile) fn new(
        compiler: &'a Compiler,
        plan: &'a Plan<'a>,
        loaded: &'a LoadedContext,
    ) -> Places<'a> {
        Places {
            compiler,
            plan,
            loaded,
        }
    }

    /// Returns the original location of a value that a template or a step only copied into the
    /// body, and the way it got into the body.
    pub(in crate::compile) fn outside(&self, place: &Provenance) -> Option<Outside> {
        let read = place
            .file
            .as_ref()
            .and_then(|(file, bytes)| self.file_span(file, Some(bytes.clone())));
        if let Some(span) = read {
            return Some(Outside {
                span,
                how: PutBy::Reading,
            });
        }
        Some(Outside {
            span: self.written_outside(place)?,
            how: PutBy::Writing,
        })
    }

    /// Returns the location to edit in a context, for a value that comes from the context.
    fn written_outside(&self, place: &Provenance) -> Option<Span> {
        // Authors of agents do not edit the bundled contexts.
        let is_own =
            self.loaded.context.layer != LayerKind::Bundled || self.layer() == LayerKind::Bundled;
        if place.is_in_data && is_own {
            return self.data_span(place.data.as_ref()?);
        }
        let sources = self.compiler.sources();
        if place.is_in_data || !sources.get(place.span.file).is_bundled() {
            return None;
        }
        let value = place
            .data
            .as_ref()
            .or(place.parts.first())
            .and_then(|path| self.data_span(path));
        let span = value.or_else(|| {
            let (path, target) = place.member.as_ref()?;
            self.member_span(path, *target)
        })?;
        // A bundled template cannot be edited here, so a value that it copies unchanged is fixed at
        // its source.
        (!sources.get(span.file).is_bundled()).then_some(span)
    }

    /// Returns the location at which to edit a value, and the steps that led to it. `outside` takes
    /// precedence over the location of the template or profile.
    pub(in crate::compile) fn in_files(
        &self,
        place: &Provenance,
        outside: Option<Outside>,
    ) -> (Span, Vec<(Span, &'static str)>) {
        let how = outside.map(|outside| (place.span, outside.how.phrase()));
        let mut related: Vec<(Span, &'static str)> =
            how.into_iter().chain(place.steps.iter().copied()).collect();
        if outside.is_none() {
            let data = place.data.as_ref().and_then(|path| self.data_span(path));
            related.extend(data.map(|span| (span, "the value comes from here")));
            let member = place
                .member
                .as_ref()
                .and_then(|(path, target)| self.member_span(path, *target));
            related.extend(member.map(|span| (span, "it comes from here")));
        }
        let parts = place.parts.iter().filter_map(|path| self.data_span(path));
        let parts = parts.filter(|span| outside.is_none_or(|outside| outside.span != *span));
        let parts = parts.chain(place.literals.iter().copied());
        related.extend(parts.map(|span| (span, "part of it comes from here")));
        let made_of = place.made_of.as_ref().and_then(|from| self.span_of(from));
        related.extend(made_of.map(|span| (span, "computed from this")));
        (outside.map_or(place.span, |outside| outside.span), related)
    }

    /// Returns a computed string's source location.
    pub(super) fn span_of(&self, from: &ComputedFrom) -> Option<Span> {
        match from {
            ComputedFrom::Data(path) => self.data_span(path),
            ComputedFrom::File(file) => self.file_span(file, None),
            ComputedFrom::Template(span) => Some(*span),
        }
    }

    /// Returns the location of a file that a prompt read. For a file in a layer, `bytes` selects a
    /// part of the file.
    pub(super) fn file_span(&self, file: &ReadFile, bytes: Option<Range<usize>>) -> Option<Span> {
        match file.place {
            ReadPlace::Project => self.file()?.project_file_span(&file.path, usize::MAX),
            ReadPlace::Layer(index) => {
                let repo = self.compiler.repo();
                let layer = repo.readable_layers(self.layer()).nth(index)?;
                let id = repo.prompt_file(layer, &file.path)?;
                Some(Span::new(
                    id,
                    bytes.unwrap_or_else(|| 0..repo.sources.get(id).text().len()),
                ))
            }
        }
    }

    /// Returns a template data value's location in the context file. The lookup is done once for
    /// all agents that receive the same conversation.
    pub(in crate::compile) fn data_span(&self, path: &Pointer) -> Option<Span> {
        let asked = SpanOf {
            context: self.loaded.id,
            surroundings: self.plan.surroundings,
            layer: self.layer(),
            api: self.plan.api,
            path: path.clone(),
        };
        self.compiler
            .memory
            .ask(asked, || self.find_data_span(path))
    }

    fn find_data_span(&self, path: &Pointer) -> Option<Span> {
        if let Some(span) = self.in_context(|source, normal| source.data_span(path, normal)) {
            return Some(span);
        }
        match self.arrived(path, 0..usize::MAX)? {
            Arrived::Rendered(_, runs) => runs.first().map(|run| run.span),
            Arrived::Joined(pieces) => pieces.iter().rev().find_map(|piece| piece.span),
        }
    }

    /// Returns the location of a nested value in the template data, or of its key.
    fn member_span(&self, path: &Pointer, target: KeyOrValue) -> Option<Span> {
        match target {
            KeyOrValue::Value => self.data_span(path),
            KeyOrValue::Key => self.in_context(|source, normal| source.key_span(path, normal)),
        }
    }

    /// Finds a location in the context file; `normal` converts its history to the form that
    /// templates see.
    fn in_context<T>(
        &self,
        find: impl FnOnce(&ContextSource, &dyn Fn(&[Message]) -> Arc<[Message]>) -> Option<T>,
    ) -> Option<T> {
        let renderer = self.loaded.renderer(&self.compiler.engine);
        let version = surroundings::version(self.compiler, self.plan, self.loaded, &renderer)
            .result
            .ok()?;
        find(self.file()?, &|history: &[Message]| {
            version.normal(history, self.plan.api)
        })
    }

    /// Returns the context file, with the locations of its values.
    pub(super) fn file(&self) -> Option<&'a ContextSource> {
        self.loaded.source(self.compiler.sources())
    }

    fn layer(&self) -> LayerKind {
        self.plan.profile.profile.layer
    }
}

impl Places<'_> {
    /// Returns where a byte range of a history string comes from if the file does not contain the
    /// string in this form; `None` for any other value.
    pub(super) fn arrived(&self, path: &Pointer, bytes: Range<usize>) -> Option<Arrived> {
        let tokens: Vec<String> = path.tokens().collect();
        let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
        let message = match tokens.as_slice() {
            ["history", _, "content_blocks", _, "content"] => {
                return Some(Arrived::Joined(Piece::within(
                    self.texts_of_result(path)?,
                    &bytes,
                )));
            }
            ["history", _, "content"] | ["history", _, "content_blocks", "0", "text"] => {
                self.message(path)?
            }
            _ => return None,
        };
        if tokens.len() == 3
            && let Some(pieces) = self.texts_of_blocks(&message, path)
        {
            return Some(Arrived::Joined(Piece::within(pieces, &bytes)));
        }
        let text = text_of_item(&message)?;
        match self.attached(text) {
            Some(pieces) => Some(Arrived::Joined(Piece::within(pieces, &bytes))),
            None => self.said_of_surroundings(text, &bytes),
        }
    }

    /// Returns `true` if a value is the role of a typed item.
    pub(super) fn is_role_of_item(&self, path: &Pointer) -> bool {
        let is_role = path.tokens().nth(2).as_deref() == Some("role");
        is_role
            && self
                .message(path)
                .is_some_and(|message| message.item.is_some())
    }

    /// Returns the message in the history that contains a location, as templates see it.
    fn message(&self, path: &Pointer) -> Option<Message> {
        let mut tokens = path.tokens();
        let index: usize = (tokens.next()? == "history").then(|| tokens.next()?.parse().ok())??;
        self.in_context(|source, normal| normal(source.history()).get(index).cloned())
    }

    /// Returns the text of several blocks that is joined as the message's content.
    fn texts_of_blocks(&self, message: &Message, path: &Pointer) -> Option<Vec<Piece>> {
        let blocks = path.parent()?.member("content_blocks");
        let mut pieces = Vec::new();
        for (index, block) in message.blocks.iter().enumerate() {
            if let Block::Text(text) = block {
                let at = blocks.element(index).member("text");
                pieces.push(Piece {
                    len: text.len(),
                    span: self.data_span(&at),
                });
            }
        }
        (pieces.len() > 1).then_some(pieces)
    }

    /// Returns the text of a tool result that is a list of blocks in the file.
    fn texts_of_result(&self, path: &Pointer) -> Option<Vec<Piece>> {
        let texts = self.in_context(|source, normal| source.texts_in(path, normal))?;
        texts.into_iter().map(|span| self.literal(span)).collect()
    }

    /// Returns a string in the context file as a piece.
    fn literal(&self, span: Span) -> Option<Piece> {
        let text: String = serde_json::from_str(self.compiler.sources().slice(span)).ok()?;
        Some(Piece {
            len: text.len(),
            span: Some(span),
        })
    }

    /// Returns the parts of an attached file's message, which contains the file's path and content.
    fn attached(&self, text: &str) -> Option<Vec<Piece>> {
        let context = &self.loaded.context;
        let earlier = context.earlier.iter().map(|state| &state.conversation);
        for (turn, conversation) in earlier.chain([&context.conversation]).enumerate() {
            if let Some((index, file)) = attached_as(conversation, text) {
                let source = self.file()?;
                let pieces = file.said().map(|(member, part)| Piece {
                    len: part.len(),
                    span: member.and_then(|member| source.file_span(turn, index, member)),
                });
                return Some(pieces.into());
            }
        }
        None
    }

    /// Returns the runs of a string that the agent's surroundings wrote, and the turn.
    fn said_of_surroundings(&self, text: &str, bytes: &Range<usize>) -> Option<Arrived> {
        let (renderer, layer) = (self.compiler.engine.renderer(1), self.layer());
        let scopes = self
            .loaded
            .turns
            .iter()
            .chain([&self.loaded.scopes])
            .map(|scopes| &scopes[&layer]);
        scopes.enumerate().find_map(|(turn, scope)| {
            let runs = self.rendered(text, bytes, scope, &renderer)?;
            Some(Arrived::Rendered(turn, runs))
        })
    }

    /// Returns the runs of a string, if the surroundings write the string in this scope.
    fn rendered(
        &self,
        text: &str,
        bytes: &Range<usize>,
        scope: &Arc<PromptScope>,
        renderer: &Renderer<'_>,
    ) -> Option<Vec<Written>> {
        let (template, sources) = (self.plan.surroundings?, self.compiler.sources());
        let (prompt, _) = renderer.prompt(sources, template, scope);
        let recording = prompt.output.ok()?;
        let whole = Some(recording.text()).filter(|whole| whole.trim() == text)?;
        let lead = whole.len() - whole.trim_start().len();
        let range = lead + bytes.start..lead + bytes.end.min(text.len());
        Some(recording.written(&self.compiler.engine, sources, range))
    }
}

/// Returns the attached file whose message is this string, and its index.
fn attached_as<'c>(
    conversation: &'c Conversation,
    text: &str,
) -> Option<(usize, &'c AttachedFile)> {
    conversation
        .files
        .iter()
        .enumerate()
        .find(|(_, file)| &**Item::attached(file).text() == text)
}

/// Returns the whole text of a typed item.
fn text_of_item(message: &Message) -> Option<&Arc<str>> {
    match message.blocks.as_slice() {
        [Block::Text(text)] if message.item.is_some() => Some(text),
        _ => None,
    }
}
