//! A provider's own blocks: which go back, and which need each other.

use std::collections::HashMap;

use serde_json::Value;

use super::{Change, NormalForm, Rules};
use crate::conversation::{Block, Message, ProviderBlock, Role};

/// What a wire format says of its own blocks. The default takes every block, and pairs none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProviderBlockKinds {
    /// The kinds that are known, by the block's `type`, or else by the name of its first member.
    pub known: &'static [(&'static str, ProviderBlockKind)],
    /// Whether blocks of other kinds stay with the host.
    pub keeps_unknown: bool,
}

/// What becomes of a provider's own block in the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProviderBlockKind {
    /// It goes back.
    Sent,
    /// It stays with the host: requests have no place for it.
    Kept,
    /// It is a call with its id under this name: it goes back together with its result.
    Call(&'static str),
    /// It is the result of a call, whose id stands under this name.
    Result(&'static str),
}

impl ProviderBlockKinds {
    /// What becomes of a block.
    pub(crate) fn of(self, data: &Value) -> ProviderBlockKind {
        let first = || data.as_object().and_then(|members| members.keys().next()).map(String::as_str);
        let name = data.get("type").and_then(Value::as_str).or_else(first).unwrap_or_default();
        let known = self.known.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
        known.unwrap_or(if self.keeps_unknown { ProviderBlockKind::Kept } else { ProviderBlockKind::Sent })
    }
}

impl Rules {
    /// Whether a provider's own block goes to the target. Without a target, all stay.
    pub(super) fn takes(&self, own: &ProviderBlock) -> bool {
        let kept = || self.own_blocks.of(&own.data) == ProviderBlockKind::Kept;
        self.origin.as_ref().is_none_or(|origin| *origin == own.origin && !kept())
    }
}

/// Where the two halves of a pair stand: the index of a message in the list.
#[derive(Default)]
struct Pair {
    call: Option<usize>,
    result: Option<usize>,
}

impl NormalForm {
    /// Drops a provider's own calls without results and results without calls. A call of the last turn stays while nothing
    /// but results follows: the provider goes on with it.
    pub(super) fn pair_own(&mut self, rules: &Rules) {
        let has_own =
            |(_, message): &(usize, Message)| message.blocks.iter().any(|it| matches!(it, Block::Provider(_)));
        if rules.origin.is_none() || !self.messages.iter().any(has_own) {
            return;
        }
        let pairs = self.own_pairs(rules);
        let open_from = self.open_turn();
        let changes = &mut self.changes;
        for (at, (index, message)) in self.messages.iter_mut().enumerate() {
            message.blocks.retain(|block| {
                let stays = match own_half(block, rules) {
                    None => true,
                    Some((id, is_call)) => pairs.get(&id).is_some_and(|pair| match (pair.call, pair.result) {
                        (Some(call), Some(result)) => call <= result,
                        _ => is_call && at >= open_from && waits_for_provider(block),
                    }),
                };
                if !stays {
                    changes.push(Change::OwnHalf { message: *index });
                }
                stays
            });
        }
    }

    fn own_pairs(&self, rules: &Rules) -> HashMap<String, Pair> {
        let mut pairs: HashMap<String, Pair> = HashMap::new();
        for (at, (_, message)) in self.messages.iter().enumerate() {
            for block in &message.blocks {
                if let Some((id, is_call)) = own_half(block, rules) {
                    let pair = pairs.entry(id).or_default();
                    *(if is_call { &mut pair.call } else { &mut pair.result }) = Some(at);
                } else if let Some(pair) = block.result_id().and_then(|id| pairs.get_mut(&**id)) {
                    // A result in the common form may answer a call in the provider's own.
                    pair.result = Some(at);
                }
            }
        }
        pairs
    }

    /// Where the last turn begins, if nothing but results follows it; else behind the end.
    fn open_turn(&self) -> usize {
        let is_results = |message: &Message| message.blocks.iter().all(|block| block.result_id().is_some());
        let end =
            self.messages.iter().rposition(|(_, message)| message.role == Role::Assistant || !is_results(message));
        match end {
            Some(end) if self.messages[end].1.role == Role::Assistant => {
                let before = self.messages[..end].iter().rposition(|(_, message)| message.role != Role::Assistant);
                before.map_or(0, |before| before + 1)
            }
            _ => self.messages.len(),
        }
    }
}

/// The id of a block that needs another one, and whether it is the call.
fn own_half(block: &Block, rules: &Rules) -> Option<(String, bool)> {
    let Block::Provider(own) = block else { return None };
    let (name, is_call) = match rules.own_blocks.of(&own.data) {
        ProviderBlockKind::Call(name) => (name, true),
        ProviderBlockKind::Result(name) => (name, false),
        ProviderBlockKind::Sent | ProviderBlockKind::Kept => return None,
    };
    Some((own.data.get(name)?.as_str()?.to_owned(), is_call))
}

/// Whether the provider itself runs a call; others wait for the host.
fn waits_for_provider(block: &Block) -> bool {
    let Block::Provider(own) = block else { return false };
    matches!(own.data.get("type").and_then(Value::as_str), Some("server_tool_use" | "mcp_tool_use"))
}
