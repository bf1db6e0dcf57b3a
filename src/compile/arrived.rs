//! Who wrote a text that templates see, but no context file has: what an agent says of its surroundings, an attached file, the
//! texts of several blocks in one.

use std::ops::Range;
use std::sync::Arc;

use super::{Compiler, LoadedContext};
use crate::conversation::{Block, Item, Message};
use crate::json::Pointer;
use crate::render::{PromptScope, Renderer, Written};
use crate::source::Span;
use crate::unit::Plan;

/// The origin of a text.
pub(super) enum Arrived {
    /// Output of a template in a turn, run by run. Turn 0 is the one that a context begins with.
    Rendered(usize, Vec<Written>),
    /// Texts of the context, one behind the other.
    Joined(Vec<Piece>),
}

/// A part of a text that was joined.
pub(super) struct Piece {
    /// Its bytes.
    pub(super) len: usize,
    /// Where it is written; `None` for the program's own words.
    pub(super) span: Option<Span>,
}

impl Piece {
    /// The parts of a text that are in a range of it.
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

impl Compiler {
    /// Returns what wrote some bytes of a text of the history that is not in the file as it is; `None` for any other value.
    pub(super) fn arrived(
        &self,
        path: &Pointer,
        bytes: Range<usize>,
        plan: &Plan<'_>,
        loaded: &LoadedContext,
    ) -> Option<Arrived> {
        let tokens: Vec<String> = path.tokens().collect();
        let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
        let message = match tokens.as_slice() {
            ["history", _, "content_blocks", _, "content"] => {
                let pieces = self.texts_of_result(path, plan, loaded)?;
                return Some(Arrived::Joined(Piece::within(pieces, &bytes)));
            }
            ["history", _, "content"] | ["history", _, "content_blocks", "0", "text"] => {
                self.message(path, plan, loaded)?
            }
            _ => return None,
        };
        if let Some(pieces) = self.texts_of_blocks(&message, path, plan, loaded).filter(|_| tokens.len() == 3) {
            return Some(Arrived::Joined(Piece::within(pieces, &bytes)));
        }
        let text = text_of_item(&message)?;
        if let Some(pieces) = self.attached(text, loaded) {
            return Some(Arrived::Joined(Piece::within(pieces, &bytes)));
        }
        let renderer = self.engine.renderer(1);
        let layer = plan.profile.profile.layer;
        let mut scopes = loaded.turns.iter().chain([&loaded.scopes]).map(|scopes| &scopes[&layer]).enumerate();
        scopes.find_map(|(turn, scope)| {
            let runs = self.rendered(text, bytes.clone(), plan, scope, &renderer)?;
            Some(Arrived::Rendered(turn, runs))
        })
    }

    /// Returns `true` if a value is the role of a typed item.
    pub(super) fn is_role_of_item(&self, path: &Pointer, plan: &Plan<'_>, loaded: &LoadedContext) -> bool {
        let is_role = path.tokens().nth(2).as_deref() == Some("role");
        is_role && self.message(path, plan, loaded).is_some_and(|message| message.item.is_some())
    }

    /// The message of the history that a place is in, as templates see it.
    fn message(&self, path: &Pointer, plan: &Plan<'_>, loaded: &LoadedContext) -> Option<Message> {
        let mut tokens = path.tokens();
        let index: usize = (tokens.next()? == "history").then(|| tokens.next()?.parse().ok())??;
        self.in_context(plan, loaded, |source, normal| normal(source.history()).get(index).cloned())
    }

    /// The texts of several blocks, which are one text as the message's content.
    fn texts_of_blocks(
        &self,
        message: &Message,
        path: &Pointer,
        plan: &Plan<'_>,
        loaded: &LoadedContext,
    ) -> Option<Vec<Piece>> {
        let blocks = path.parent()?.member("content_blocks");
        let texts = message.blocks.iter().enumerate().filter_map(|(index, block)| match block {
            Block::Text(text) => Some((blocks.element(index).member("text"), text.len())),
            _ => None,
        });
        let pieces = texts.map(|(at, len)| Piece { len, span: self.data_span(&at, plan, loaded) });
        let pieces: Vec<Piece> = pieces.collect();
        (pieces.len() > 1).then_some(pieces)
    }

    /// The texts of a tool result that the file has as a list of blocks.
    fn texts_of_result(&self, path: &Pointer, plan: &Plan<'_>, loaded: &LoadedContext) -> Option<Vec<Piece>> {
        let texts = self.in_context(plan, loaded, |source, normal| source.texts_in(path, normal))?;
        texts
            .into_iter()
            .map(|span| {
                let text: String = serde_json::from_str(self.sources().slice(span)).ok()?;
                Some(Piece { len: text.len(), span: Some(span) })
            })
            .collect()
    }

    /// The parts of what is said of an attached file, with which the file's path and content come.
    fn attached(&self, text: &str, loaded: &LoadedContext) -> Option<Vec<Piece>> {
        let states =
            loaded.context.earlier.iter().map(|state| &state.conversation).chain([&loaded.context.conversation]);
        let mut files = states.enumerate().flat_map(|(turn, conversation)| {
            conversation.files.iter().enumerate().map(move |(index, file)| (turn, index, file))
        });
        let (turn, index, file) = files.find(|(.., file)| &**Item::attached(file).text() == text)?;
        let source = loaded.source(self)?;
        Some(
            file.said()
                .map(|(member, part)| {
                    let span = member.and_then(|member| source.file_span(turn, index, member));
                    Piece { len: part.len(), span }
                })
                .into(),
        )
    }

    /// The runs of a text that surroundings wrote, if they did in this scope.
    fn rendered(
        &self,
        text: &str,
        bytes: Range<usize>,
        plan: &Plan<'_>,
        scope: &Arc<PromptScope>,
        renderer: &Renderer<'_>,
    ) -> Option<Vec<Written>> {
        let template = plan.surroundings?;
        let whole = renderer.prompt(self.sources(), template, scope).text.ok().filter(|whole| whole.trim() == text)?;
        let lead = whole.len() - whole.trim_start().len();
        let recording = renderer.record_prompt(template, scope);
        Some(recording.written(&self.engine, self.sources(), lead + bytes.start..lead + bytes.end.min(text.len())))
    }
}

/// The whole text of a typed item.
fn text_of_item(message: &Message) -> Option<&Arc<str>> {
    match message.blocks.as_slice() {
        [Block::Text(text)] if message.item.is_some() => Some(text),
        _ => None,
    }
}
