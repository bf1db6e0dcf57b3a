//! Provider-specific blocks: which of them are sent back, and which belong together.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::{NormalForm, NormalFormChange, NormalFormRules};
use crate::conversation::{Block, Message, ProviderBlock, Role, kind_of};

/// The treatment of provider-specific blocks in a wire format. By default, every block is sent
/// back, and none belong together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProviderBlockKinds {
    /// The known kinds of blocks, by the block's `type`, or else by the name of its first member.
    pub known: &'static [(&'static str, ProviderBlockKind)],
    /// `true` if blocks of unknown kinds are not sent back.
    pub keeps_unknown: bool,
}

/// The treatment of a provider-specific block in the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProviderBlockKind {
    /// The block is sent back.
    Sent,
    /// The block is kept by the host, because requests cannot contain it.
    Kept,
    /// The block is a call; the member with this name contains its ID. It is sent back only
    /// together with its result.
    Call(&'static str),
    /// The block is the result of a call; the member with this name contains the call's ID.
    Result(&'static str),
}

impl ProviderBlockKinds {
    /// Returns the treatment of a block with this data.
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

    /// Returns the calls in the last answer that wait for the host and have no result. The list is
    /// empty if anything but results follows that answer.
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

    /// Returns `true` if a block is the result of a provider-specific call in this format.
    #[cfg(feature = "runtime")]
    pub(crate) fn is_result(self, block: &Block) -> bool {
        own_half(block, self).is_some_and(|(_, is_call)| !is_call)
    }

    /// Returns `true` if a block is sent back, and is not a call that needs a result.
    #[cfg(feature = "runtime")]
    pub(crate) fn is_done(self, data: &Value) -> bool {
        matches!(
            self.of(data),
            ProviderBlockKind::Sent | ProviderBlockKind::Result(_)
        )
    }
}

impl NormalFormRules {
    /// Returns `true` if a provider-specific block is sent to the target. Without a target, all
    /// blocks are sent.
    pub(super) fn takes(&self, own: &ProviderBlock) -> bool {
        let kept = || self.own_blocks.of(&own.data) == ProviderBlockKind::Kept;
        self.origin
            .as_ref()
            .is_none_or(|origin| *origin == own.origin && !kept())
    }
}

/// The indices of the messages that contain the call and the result of a pair.
#[derive(Default)]
struct Pair {
    call: Option<usize>,
    result: Option<usize>,
}

impl NormalForm {
    /// Drops provider-specific calls without results, and results without calls. A call in the last
    /// turn is kept if only results follow that turn, because the provider then continues it. After
    /// a turn that cannot be continued, such a call is kept as it was sent, and gets an error
    /// result at the end of the turn.
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

    /// Returns the end of each message's turn. A turn consists of the model's messages and of
    /// results. For messages outside a turn, this is the position after the message.
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

    /// Inserts provider-specific error results at the ends of turns, where they do not change
    /// earlier requests: before the last answer, or after the last results.
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
                    // A result in the common form may answer a provider-specific call.
                    pair.result = Some(at);
                }
            }
        }
        pairs
    }

    /// Returns the beginning of the last turn if only results follow that turn; otherwise, the end
    /// of the history.
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

/// Returns the ID of a block that belongs to a pair, and `true` if the block is the call; `None`
/// for other blocks.
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

/// Returns an error result for a call to one of Anthropic's server tools or MCP tools (`anthropic`
/// 2.12, `types/*_tool_result_error_param.py`); `None` if the tool is unknown.
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

/// The tools that Anthropic's servers run, as named in the kinds of their results.
const SERVER_TOOLS: [&str; 7] = [
    "web_search",
    "web_fetch",
    "code_execution",
    "bash_code_execution",
    "text_editor_code_execution",
    "tool_search",
    "advisor",
];

/// Returns `true` if the provider itself runs the call. Other calls wait for the host.
fn waits_for_provider(block: &Block) -> bool {
    let Block::Provider(own) = block else {
        return false;
    };
    matches!(
        own.data.get("type").and_then(Value::as_str),
        Some("server_tool_use" | "mcp_tool_use")
    )
}
