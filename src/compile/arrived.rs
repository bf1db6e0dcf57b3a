//! Who wrote a message that came with a turn: what an agent says of its surroundings, or an attached file. No context file has such a
//! message, but a template, or the file's text in it, wrote what it says.

use std::ops::Range;
use std::sync::Arc;

use super::{Compiler, ReadyContext};
use crate::conversation::{Block, Item, Task};
use crate::json::Pointer;
use crate::render::{PromptScope, Renderer, Written};
use crate::unit::{Plan, normal_form};

/// What a text that came with a turn was made of.
pub(super) enum Arrived {
    /// What a template wrote in a turn, run by run. Turn 0 is the one that a context begins with.
    Rendered(usize, Vec<Written>),
    /// A text of the context: its place in the template data of agents without surroundings.
    Attached(Pointer),
}

impl Compiler {
    /// What wrote some bytes of a text of the history that came with a turn; `None` for any other value.
    pub(super) fn arrived(
        &self,
        path: &Pointer,
        bytes: Range<usize>,
        plan: &Plan<'_>,
        ready: &ReadyContext,
    ) -> Option<Arrived> {
        let text = self.text_of_item(path, plan, ready)?;
        let files = &ready.context.conversation.files;
        if let Some(index) = files.iter().position(|file| Item::attached(file).text() == &text) {
            let member = if files[index].content.is_empty() { "file_path" } else { "content" };
            return Some(Arrived::Attached(Pointer::root().member("files_metadata").element(index).member(member)));
        }
        let renderer = self.engine.renderer(1);
        let layer = plan.profile.profile.layer;
        let mut scopes = ready.turns.iter().chain([&ready.scopes]).map(|scopes| &scopes[&layer]).enumerate();
        scopes.find_map(|(turn, scope)| {
            let runs = self.rendered(&text, bytes.clone(), plan, scope, &renderer)?;
            Some(Arrived::Rendered(turn, runs))
        })
    }

    /// The whole text of a typed item that templates see at a place.
    fn text_of_item(&self, path: &Pointer, plan: &Plan<'_>, ready: &ReadyContext) -> Option<Arc<str>> {
        let mut tokens = path.tokens();
        let index: usize = (tokens.next()? == "history").then(|| tokens.next()?.parse().ok())??;
        let renderer = self.engine.renderer(1);
        let version = self.version(plan, ready, &renderer).result.ok()?;
        let conversation = &version.prepared.conversation;
        let Task::Chat(history) = &conversation.task else { return None };
        let normal = normal_form(history, conversation.bound_from, plan.api).history;
        let message = normal.get(index).filter(|message| message.item.is_some())?;
        match message.blocks.as_slice() {
            [Block::Text(text)] => Some(Arc::clone(text)),
            _ => None,
        }
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
        let recording = renderer.record_prompt(template, scope, &whole);
        Some(recording.written(&self.engine, self.sources(), lead + bytes.start..lead + bytes.end.min(text.len())))
    }
}
