//! A provider's own blocks: which are sent back, and which need each other.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::{NormalForm, NormalFormChange, NormalFormRules};
use crate::conversation::{Block, Message, ProviderBlock, Role, kind_of};

/// The facts of a wire format about its own blocks. By default, every block is sent back and none
/// are paired.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProviderBlockKinds {
    /// The known kinds, by the block's `type` or else by the name of its first member.
    pub known: &'static [(&'static str, ProviderBlockKind)],
    /// `true` if blocks of other kinds stay with the host.
    pub keeps_unknown: bool,
}

/// The treatment of a provider's own block in the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProviderBlockKind {
    /// It is sent back.
    Sent,
    /// It stays with the host: requests have no place for it.
    Kept,
    /// It is a call, with its id under this name. It is sent back only with its result.
    Call(&'static str),
    /// It is the result of a call, with the call's id under this name.
    Result(&'static str),
}

impl ProviderBlockKinds {
    /// Returns the treatment of a block.
    pub(crate) fn of(self, data: &Value) -> ProviderBlockKind {
        let name = kind_of(data);
        let known = self
            .known
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, kind)| *kind);
        known.unwrap_or(if self.keeps_unknown {
            ProviderBlockKind::Kept
        } else {
            ProviderBlockKind::Sent
        })
    }

    /// Returns the calls of the last answer that wait for the host and have no result. Only results
    /// may follow that answer.
    #[cfg(feature = "runtime")]
    pub(crate) fn open_calls(self, history: &[Message]) -> Vec<&ProviderBlock> {
        let half = |block: &Block| own_half(block, self);
        let is_results = |message: &Message| {
            message
                .blocks
                .iter()
                .all(|it| it.result_id().is_some() || half(it).is_some_and(|it| !it.1))
        };
        let Some(answer) = history
            .iter()
            .rposition(|message| message.role == Role::Assistant || !is_results(message))
        else {
            return Vec::new();
        };
        let results = history[answer + 1..]
            .iter()
            .flat_map(|message| &message.blocks);
        let answered: Vec<String> = results
            .filter_map(|block| {
                block
                    .result_id()
                    .map(ToString::to_string)
                    .or_else(|| half(block).map(|(id, _)| id))
            })
            .collect();
        let blocks = history[answer]
            .blocks
            .iter()
            .filter(|_| history[answer].role == Role::Assistant);
        blocks
            .filter(|block| {
                half(block).is_some_and(|(id, is_call)| is_call && !answered.contains(&id))
                    && !waits_for_provider(block)
            })
            .filter_map(|block| match block {
                Block::Provider(own) => Some(own),
                _ => None,
            })
            .collect()
    }

    /// Returns `true` if a block is the result of one of the format's own calls.
    #[cfg(feature = "runtime")]
    pub(crate) fn is_result(self, block: &Block) -> bool {
        own_half(block, self).is_some_and(|(_, is_call)| !is_call)
    }

    /// Returns `true` if a block is sent back and needs no result.
    #[cfg(feature = "runtime")]
    pub(crate) fn is_done(self, data: &Value) -> bool {
        matches!(
            self.of(data),
            ProviderBlockKind::Sent | ProviderBlockKind::Result(_)
        )
    }
}

impl NormalFormRules {
    /// Returns `true` if a provider's own block is sent to the target. Without a target, all are.
    pub(super) fn takes(&self, own: &ProviderBlock) -> bool {
        let kept = || self.own_blocks.of(&own.data) == ProviderBlockKind::Kept;
        self.origin
            .as_ref()
            .is_none_or(|origin| *origin == own.origin && !kept())
    }
}

/// The messages with the two halves of a pair, by index.
#[derive(Default)]
struct Pair {
    call: Option<usize>,
    result: Option<usize>,
}

impl NormalForm {
    /// Drops a provider's own calls without results and results without calls. A call of the last
    /// turn is kept while only results follow it, because the provider continues it. After a turn
    /// that cannot be continued, such a call is kept as it was sent, and gets an error at the end
    /// of the turn.
    pub(super) fn pair_own(&mut self, rules: &NormalFormRules) {
        let has_own = self.messages.iter().any(|(_, message)| {
            message
                .blocks
                .iter()
                .any(|it| matches!(it, Block::Provider(_)))
        });
        if rules.origin.is_none() || !has_own {
            return;
        }
        let pairs = self.own_pairs(rules);
        let (open_from, ends) = (self.open_turn(), self.ends_of_turns());
        let mut errors: Vec<(usize, Block)> = Vec::new();
        let changes = &mut self.changes;
        for (at, (index, message)) in self.messages.iter_mut().enumerate() {
            message.blocks.retain(|block| {
                let Some((id, is_call)) = own_half(block, rules.own_blocks) else {
                    return true;
                };
                let stays = pairs
                    .get(&id)
                    .is_some_and(|pair| match (pair.call, pair.result) {
                        (Some(call), Some(result)) => call <= result,
                        _ => is_call && at >= open_from && waits_for_provider(block),
                    });
                if stays {
                    return true;
                }
                changes.push(NormalFormChange::OwnHalf { message: *index });
                let error = unavailable(block).filter(|_| is_call && at + 1 < ends[at]);
                let is_sent = error.is_some();
                errors.extend(error.map(|error| (ends[at], error)));
                is_sent
            });
        }
        self.end_with(errors);
    }

    /// Returns the end of each message's turn, which consists of the model's messages and results.
    /// For other messages, this is the position after the message.
    fn ends_of_turns(&self) -> Vec<usize> {
        let mut ends = vec![0; self.messages.len()];
        let mut end = ends.len();
        for (at, (_, message)) in self.messages.iter().enumerate().rev() {
            if message.role != Role::Assistant && !is_results(message) {
                end = at;
            }
            ends[at] = end.max(at + 1);
        }
        ends
    }

    /// Inserts the provider's own error results at the ends of turns, where they change no earlier
    /// request: before the last answer, or after the last results.
    fn end_with(&mut self, errors: Vec<(usize, Block)>) {
        for (end, error) in errors.into_iter().rev() {
            let (index, last) = &mut self.messages[end - 1];
            if last.role == Role::Assistant {
                last.blocks.insert(0, error);
            } else {
                let message = Message {
                    role: Role::Assistant,
                    blocks: vec![error],
                    item: None,
                };
                let numbered = (*index, message);
                self.messages.insert(end, numbered);
            }
        }
    }

    fn own_pairs(&self, rules: &NormalFormRules) -> HashMap<String, Pair> {
        let mut pairs: HashMap<String, Pair> = HashMap::new();
        for (at, (_, message)) in self.messages.iter().enumerate() {
            for block in &message.blocks {
                if let Some((id, is_call)) = own_half(block, rules.own_blocks) {
                    let pair = pairs.entry(id).or_default();
                    *(if is_call {
                        &mut pair.call
                    } else {
                        &mut pair.result
                    }) = Some(at);
                } else if let Some(pair) = block.result_id().and_then(|id| pairs.get_mut(&**id)) {
                    // A result in the common form may answer a call in the provider's own form.
                    pair.result = Some(at);
                }
            }
        }
        pairs
    }

    /// Returns the beginning of the last turn if only results follow it; otherwise, the end of the
    /// history.
    fn open_turn(&self) -> usize {
        let end = self
            .messages
            .iter()
            .rposition(|(_, message)| message.role == Role::Assistant || !is_results(message));
        match end {
            Some(end) if self.messages[end].1.role == Role::Assistant => {
                let before = self.messages[..end]
                    .iter()
                    .rposition(|(_, message)| message.role != Role::Assistant);
                before.map_or(0, |before| before + 1)
            }
            _ => self.messages.len(),
        }
    }
}

/// Returns the id of a block that needs another one, and `true` if the block is the call.
fn own_half(block: &Block, kinds: ProviderBlockKinds) -> Option<(String, bool)> {
    let Block::Provider(own) = block else {
        return None;
    };
    let (name, is_call) = match kinds.of(&own.data) {
        ProviderBlockKind::Call(name) => (name, true),
        ProviderBlockKind::Result(name) => (name, false),
        ProviderBlockKind::Sent | ProviderBlockKind::Kept => return None,
    };
    Some((own.data.get(name)?.as_str()?.to_owned(), is_call))
}

fn is_results(message: &Message) -> bool {
    message
        .blocks
        .iter()
        .all(|block| block.result_id().is_some())
}

/// Returns an error result for one of Anthropic's own calls (`anthropic` 2.12,
/// `types/*_tool_result_error_param.py`), or `None` if the tool is unknown.
fn unavailable(call: &Block) -> Option<Block> {
    let Block::Provider(own) = call else {
        return None;
    };
    let member = |name: &str| own.data.get(name).and_then(Value::as_str);
    let id = member("id")?;
    let data = match (member("type")?, member("name")?) {
        ("mcp_tool_use", _) => {
            let text = serde_json::json!([{"type": "text", "text": "The tool gave no result."}]);
            serde_json::json!({"type": "mcp_tool_result", "tool_use_id": id, "is_error": true, "content": text})
        }
        ("server_tool_use", name) => {
            let name = if name.starts_with("tool_search_tool") {
                "tool_search"
            } else {
                name
            };
            let is_known = SERVER_TOOLS.contains(&name);
            let error = format!("{name}_tool_result_error");
            let content = serde_json::json!({"type": error, "error_code": "unavailable"});
            let kind = is_known.then(|| format!("{name}_tool_result"))?;
            serde_json::json!({"type": kind, "tool_use_id": id, "content": content})
        }
        _ => return None,
    };
    Some(Block::Provider(ProviderBlock {
        origin: Arc::clone(&own.origin),
        data,
        text: None,
    }))
}

/// Tools of Anthropic's servers, as named in the kinds of their results.
const SERVER_TOOLS: [&str; 7] = [
    "web_search",
    "web_fetch",
    "code_execution",
    "bash_code_execution",
    "text_editor_code_execution",
    "tool_search",
    "advisor",
];

/// Returns `true` if the provider itself runs the call; other calls wait for the host.
fn waits_for_provider(block: &Block) -> bool {
    let Block::Provider(own) = block else {
        return false;
    };
    matches!(
        own.data.get("type").and_then(Value::as_str),
        Some("server_tool_use" | "mcp_tool_use")
    )
}
