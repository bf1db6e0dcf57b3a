//! Content that only the provider understands: parts, items and members that must be sent back to
//! it unchanged.

use std::sync::Arc;

use serde_json::{Value, json};

use super::lost::Lost;
use super::thinking;
use crate::check::history::{Entry, Kind, Part, Role as Speaker, elements, text_of};
use crate::conversation::log::{MAX_INPUT_DEPTH, depth};
use crate::conversation::{Block, ProviderBlock, ProviderBlockKind, Role};
use crate::provider::{ClientApi, OwnPlace, TurnForm, WireFormat};

/// The provider that a history comes from.
pub(super) struct Provider {
    wire: WireFormat,
    origin: Arc<str>,
}

impl Provider {
    /// Returns the owner of the wire format, or `OpenRouter` if messages have members that only
    /// `OpenRouter` writes.
    pub(super) fn of(wire: WireFormat, turns: &[Entry<'_>]) -> Provider {
        let is_router = |turn: &Entry<'_>| {
            let images = turn.role == Speaker::Assistant && turn.value.get("images").is_some();
            wire == ClientApi::OpenRouter.chat_wire()
                && (images || turn.value.get("reasoning_details").is_some())
        };
        let api = if turns.iter().any(is_router) {
            Some(ClientApi::OpenRouter)
        } else {
            own(wire)
        };
        Provider {
            wire,
            origin: api.map_or("", ClientApi::name).into(),
        }
    }

    /// Returns the speaker. Responses API items that are not messages have no speaker, so their
    /// kind decides: results come from the host, and all other items from the model.
    pub(super) fn speaker(&self, turn: &Entry<'_>) -> Speaker {
        let is_item = turn
            .parts
            .iter()
            .any(|part| std::ptr::eq(part.value, turn.value));
        match turn.role {
            Speaker::Other if self.turns() == TurnForm::Items && is_item => {
                match self.kind(turn.value) {
                    ProviderBlockKind::Result(_) => Speaker::Tool,
                    _ if text_of(turn.value, "type") == Some("item_reference") => Speaker::Other,
                    _ => Speaker::Assistant,
                }
            }
            role => role,
        }
    }

    fn turns(&self) -> TurnForm {
        self.wire.facts().turns
    }

    fn kind(&self, data: &Value) -> ProviderBlockKind {
        self.wire.own_blocks().of(data)
    }

    /// Returns `true` if a part is in the provider's own form although its kind is common to all
    /// formats.
    pub(super) fn is_own(&self, role: Role, part: &Part<'_>) -> bool {
        match (self.turns(), part.kind) {
            (TurnForm::Blocks, Kind::Text(_)) => has(part.value, "citations"),
            // An empty string carries the signature of the call before it.
            (TurnForm::Contents, Kind::Text("")) => {
                role == Role::Assistant && thinking::signature(part.value).is_some()
            }
            (TurnForm::Items, Kind::Call(_) | Kind::Result(_)) => {
                text_of(part.value, "type").is_some_and(|kind| kind.starts_with("custom_"))
            }
            (TurnForm::Messages, Kind::Call(_)) => {
                matches!(self.kind(part.value), ProviderBlockKind::Call(_))
                    && has(part.value, "custom")
            }
            (
                TurnForm::Blocks
                | TurnForm::Contents
                | TurnForm::Items
                | TurnForm::Messages
                | TurnForm::None,
                _,
            ) => false,
        }
    }

    /// Returns `true` if the provider accepts its own parts in messages with this role. In other
    /// messages, only items or members are accepted.
    pub(super) fn takes_parts(&self, role: Role, turn: &Entry<'_>, part: &Part<'_>) -> bool {
        match self.wire.facts().own_place {
            OwnPlace::Parts => true,
            OwnPlace::PartsOfAssistant => role == Role::Assistant,
            OwnPlace::Items => std::ptr::eq(part.value, turn.value),
            OwnPlace::Members | OwnPlace::Nowhere => false,
        }
    }

    /// Returns a part or item unchanged; `None` if requests cannot contain it, or if it is nested
    /// too deeply.
    pub(super) fn block<'b>(&self, value: &'b Value, lost: &mut Lost<'b>) -> Option<Block> {
        let mut data = value.clone();
        for (name, why) in self.not_sent(value) {
            if let (Some(members), Some(member)) = (data.as_object_mut(), value.get(name)) {
                members.shift_remove(name);
                lost.tell(member, why);
            }
        }
        self.holding(data)
    }

    /// Returns the members of a part or item that are not sent back with it.
    fn not_sent(&self, value: &Value) -> Vec<(&'static str, &'static str)> {
        const TIED: [&str; 3] = ["message", "web_search_call", "custom_tool_call"];
        match self.turns() {
            TurnForm::Blocks => vec![("cache_control", super::OF_AGENTS)],
            TurnForm::Items if text_of(value, "type").is_none_or(|kind| TIED.contains(&kind)) => {
                vec![(
                    "id",
                    "it links the item to reasoning, whose id a context cannot contain",
                )]
            }
            TurnForm::Items | TurnForm::Messages | TurnForm::Contents | TurnForm::None => {
                Vec::new()
            }
        }
    }

    fn holding(&self, data: Value) -> Option<Block> {
        let is_sent = self.kind(&data) != ProviderBlockKind::Kept;
        let fits =
            data.as_object().is_some_and(|it| !it.is_empty()) && depth(&data) <= MAX_INPUT_DEPTH;
        let text = words(&data);
        (is_sent && fits).then(|| {
            Block::Provider(ProviderBlock {
                origin: Arc::clone(&self.origin),
                data,
                text,
            })
        })
    }

    /// Returns the members of an assistant message that are the provider's own, by name.
    pub(super) fn members<'b>(&self, message: &'b Value) -> Vec<(&'b str, Block)> {
        let place = self.wire.facts().own_place;
        let members = message.as_object().into_iter().flatten();
        let own = members.filter(|(_, value)| place == OwnPlace::Members && !is_nothing(value));
        own.filter_map(|(name, value)| Some((name.as_str(), self.holding(json!({ name: value }))?)))
            .collect()
    }

    /// Returns `true` if an item is an answer with sources or a phase, which is sent back
    /// unchanged.
    pub(super) fn is_own_message(&self, value: &Value) -> bool {
        let is_answer =
            self.turns() == TurnForm::Items && text_of(value, "role") == Some("assistant");
        let cites = || {
            elements(value.get("content"))
                .iter()
                .any(|part| has(part, "annotations"))
        };
        is_answer && (has(value, "phase") || cites())
    }
}

fn has(value: &Value, name: &str) -> bool {
    value.get(name).is_some_and(|it| !is_nothing(it))
}

fn own(wire: WireFormat) -> Option<ClientApi> {
    ClientApi::ALL.into_iter().find(|api| api.speaks(wire))
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(elements) => elements.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Number(_) => false,
    }
}

/// Returns the content as plain text, to replace the content where it cannot be sent.
fn words(data: &Value) -> Option<Arc<str>> {
    let said = match text_of(data, "type") {
        Some("message") | None if data.get("content").is_some() => said(&data["content"]),
        Some("compaction") => text_of(data, "content").unwrap_or_default().to_owned(),
        _ => {
            let spoken = data.pointer("/audio/transcript").and_then(Value::as_str);
            text_of(data, "text")
                .or(spoken)
                .unwrap_or_default()
                .to_owned()
        }
    };
    (!said.is_empty()).then(|| said.into())
}

fn said(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        parts => elements(Some(parts))
            .iter()
            .filter_map(|part| {
                text_of(part, "text")
                    .or_else(|| text_of(part, "refusal"))
                    .map(str::to_owned)
            })
            .collect(),
    }
}
