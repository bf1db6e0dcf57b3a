//! The normal form of a history: what compiler and runtime both render.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{Block, Message, Role};

/// What the target of a request needs of a history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// The client API that the request goes to; thinking of another origin is dropped. `None`: any origin.
    pub origin: Option<Arc<str>>,
    /// Whether thinking without a signature is refused by the API and therefore dropped.
    pub needs_signature: bool,
    /// The first message whose thinking is bound to what stands before it now; thinking in earlier ones is dropped.
    pub bound_from: usize,
}

/// A history in normal form, and what was changed on the way.
#[derive(Debug, Clone, PartialEq)]
pub struct Normal {
    /// The history.
    pub history: Vec<Message>,
    /// What was dropped, in order.
    pub changes: Vec<Change>,
}

/// Something that was dropped. Indices count the messages of the original history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A tool call that is never answered.
    CallWithoutResult {
        /// The message's index.
        message: usize,
        /// The call's id.
        id: Arc<str>,
    },
    /// A tool result that answers no call of the message before.
    ResultWithoutCall {
        /// The message's index.
        message: usize,
        /// The id that the result names.
        id: Arc<str>,
    },
    /// Thinking that another client API produced.
    ForeignThinking {
        /// The message's index.
        message: usize,
    },
    /// Thinking from before system prompt and tools were renewed.
    UnboundThinking {
        /// The message's index.
        message: usize,
    },
    /// Thinking without a signature where one is needed.
    UnsignedThinking {
        /// The message's index.
        message: usize,
    },
    /// A message with nothing in it, or nothing left.
    EmptyMessage {
        /// The message's index.
        message: usize,
    },
}

impl Change {
    /// The index of the message in the original history.
    pub fn message(&self) -> usize {
        match self {
            Change::CallWithoutResult { message, .. }
            | Change::ResultWithoutCall { message, .. }
            | Change::ForeignThinking { message }
            | Change::UnboundThinking { message }
            | Change::UnsignedThinking { message }
            | Change::EmptyMessage { message } => *message,
        }
    }

    /// One lower-case phrase.
    pub fn describe(&self) -> String {
        match self {
            Change::CallWithoutResult { id, .. } => format!("the tool call `{id}` has no result"),
            Change::ResultWithoutCall { id, .. } => format!("the tool result for `{id}` answers no call before it"),
            Change::ForeignThinking { .. } => "thinking of another client API".into(),
            Change::UnboundThinking { .. } => "thinking from before system prompt and tools were renewed".into(),
            Change::UnsignedThinking { .. } => "thinking without a signature".into(),
            Change::EmptyMessage { .. } => "a message without content".into(),
        }
    }
}

/// Brings a history into normal form. Idempotent.
///
/// Dropped are: tool calls without results and results without calls (the calls of an unfinished last round
/// stay), thinking of another origin or without a signature where one is needed, and messages left empty. A
/// call's result is looked for in the run of non-assistant messages that follows it.
pub fn normalise(history: &[Message], rules: &Rules) -> Normal {
    let mut normal = pass(history, rules);
    // A dropped message may have parted or joined a round: look again until nothing changes.
    let mut again = normal.changes.iter().any(Change::moves_rounds);
    while again {
        let next = pass(&normal.history, rules);
        again = next.changes.iter().any(Change::moves_rounds);
        normal.history = next.history;
    }
    normal
}

/// One look at each message.
fn pass(history: &[Message], rules: &Rules) -> Normal {
    let rounds = Rounds::of(history);
    let mut changes = Vec::new();
    let mut normal = Vec::with_capacity(history.len());
    for (index, message) in history.iter().enumerate() {
        let mut blocks = Vec::with_capacity(message.blocks.len());
        for block in &message.blocks {
            match refusal(block, index, &rounds, rules) {
                Some(change) => changes.push(change),
                None => blocks.push(block.clone()),
            }
        }
        if blocks.is_empty() {
            changes.push(Change::EmptyMessage { message: index });
        } else {
            normal.push(Message { blocks, ..message.clone() });
        }
    }
    Normal { history: normal, changes }
}

impl Change {
    /// Whether calls and results may belong together in another way after it.
    fn moves_rounds(&self) -> bool {
        !matches!(
            self,
            Change::UnsignedThinking { .. } | Change::ForeignThinking { .. } | Change::UnboundThinking { .. }
        )
    }
}

fn refusal(block: &Block, message: usize, rounds: &Rounds<'_>, rules: &Rules) -> Option<Change> {
    let foreign =
        |origin: &Option<Arc<str>>| origin.as_ref().zip(rules.origin.as_ref()).is_some_and(|(from, to)| from != to);
    match block {
        Block::ToolUse { id, .. } if !rounds.may_answer(message, id) => {
            Some(Change::CallWithoutResult { message, id: Arc::clone(id) })
        }
        Block::ToolResult { id, .. } if !rounds.has_called(message, id) => {
            Some(Change::ResultWithoutCall { message, id: Arc::clone(id) })
        }
        Block::Thinking { origin, .. } | Block::RedactedThinking { origin, .. } if foreign(origin) => {
            Some(Change::ForeignThinking { message })
        }
        Block::Thinking { signature, .. } if rules.needs_signature && signature.is_empty() => {
            Some(Change::UnsignedThinking { message })
        }
        Block::Thinking { .. } | Block::RedactedThinking { .. } if message < rules.bound_from => {
            Some(Change::UnboundThinking { message })
        }
        _ => None,
    }
}

/// A history in rounds: an assistant message, and the others up to the next one. The first round may lack its assistant.
struct Rounds<'a> {
    list: Vec<Round<'a>>,
    /// For each message the index of its round.
    round_of: Vec<usize>,
    is_assistant: Vec<bool>,
}

#[derive(Default)]
struct Round<'a> {
    /// Ids of the assistant's calls.
    calls: HashSet<&'a str>,
    /// Ids of results, with the last message that has one.
    results: HashMap<&'a str, usize>,
}

impl<'a> Rounds<'a> {
    fn of(history: &'a [Message]) -> Rounds<'a> {
        let mut found = Rounds { list: vec![Round::default()], round_of: Vec::new(), is_assistant: Vec::new() };
        for (index, message) in history.iter().enumerate() {
            let is_assistant = message.role == Role::Assistant;
            if is_assistant {
                let calls = message.blocks.iter().filter_map(Block::call_id).collect();
                found.list.push(Round { calls, ..Round::default() });
            } else {
                let results = message.blocks.iter().filter_map(Block::result_id).map(|id| (id, index));
                found.list.last_mut().expect("there is one").results.extend(results);
            }
            found.round_of.push(found.list.len() - 1);
            found.is_assistant.push(is_assistant);
        }
        found
    }

    /// Whether a call in a message has a result behind it in its round, or may still get one: nothing follows.
    fn may_answer(&self, message: usize, id: &str) -> bool {
        let is_last = message + 1 == self.round_of.len();
        is_last || self.list[self.round_of[message]].results.get(id).is_some_and(|&last| last > message)
    }

    /// Whether the last assistant message before a message has a call.
    fn has_called(&self, message: usize, id: &str) -> bool {
        let round = self.round_of[message].checked_sub(usize::from(self.is_assistant[message]));
        round.is_some_and(|round| self.list[round].calls.contains(id))
    }
}

impl Block {
    /// Whether it is thinking, readable or not.
    pub(crate) fn is_thinking(&self) -> bool {
        matches!(self, Block::Thinking { .. } | Block::RedactedThinking { .. })
    }

    fn call_id(&self) -> Option<&str> {
        match self {
            Block::ToolUse { id, .. } => Some(id),
            _ => None,
        }
    }

    fn result_id(&self) -> Option<&str> {
        match self {
            Block::ToolResult { id, .. } => Some(id),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn call(id: &str) -> Block {
        Block::ToolUse { id: id.into(), name: "t".into(), input: serde_json::json!({}) }
    }

    fn result(id: &str) -> Block {
        Block::ToolResult { id: id.into(), content: "".into(), is_error: false, images: vec![] }
    }

    fn message(role: Role, blocks: Vec<Block>) -> Message {
        Message { role, blocks, item: None }
    }

    #[test]
    fn unpaired_halves_go_and_the_last_round_stays() {
        let history = [
            message(Role::User, vec![Block::Text("q".into()), result("none")]),
            message(Role::Assistant, vec![call("a"), call("b")]),
            message(Role::User, vec![result("a")]),
            message(Role::Assistant, vec![call("c")]),
        ];
        let normal = normalise(&history, &Rules::default());
        let dropped: Vec<String> = normal.changes.iter().map(Change::describe).collect();
        assert_eq!(
            dropped,
            ["the tool result for `none` answers no call before it", "the tool call `b` has no result"]
        );
        assert_eq!(normal.history.len(), 4);
    }

    #[test]
    fn thinking_must_be_signed_and_of_the_same_origin() {
        let thinking = |signature: &str, origin: Option<&str>| Block::Thinking {
            text: "t".into(),
            signature: signature.into(),
            origin: origin.map(Into::into),
        };
        let history = [message(
            Role::Assistant,
            vec![
                thinking("s", Some("Claude")),
                thinking("s", Some("Google AI")),
                thinking("", None),
                thinking("s", None),
            ],
        )];
        let rules = Rules { origin: Some("Claude".into()), needs_signature: true, bound_from: 0 };
        let normal = normalise(&history, &rules);
        assert_eq!(normal.history[0].blocks.len(), 2);
        assert_eq!(normalise(&history, &Rules::default()).changes, []);
    }

    /// Twice the messages take about twice the time; the square would take minutes.
    #[test]
    fn long_runs_are_linear() {
        let mut history = vec![message(Role::Assistant, (0..50_000).map(|id| call(&id.to_string())).collect())];
        history.extend((0..50_000).map(|id| message(Role::User, vec![result(&id.to_string())])));
        history.extend((0..50_000).map(|_| message(Role::User, vec![Block::Text("x".into())])));
        let normal = normalise(&history, &Rules::default());
        assert_eq!((normal.history.len(), normal.changes.len()), (history.len(), 0));
    }

    proptest! {
        #[test]
        fn normal_form_is_a_fixed_point(shape in prop::collection::vec((0..3u8, prop::collection::vec((0..3u8, 0..3u8), 0..3)), 0..6)) {
            let history: Vec<Message> = shape
                .into_iter()
                .map(|(role, blocks)| {
                    let role = [Role::User, Role::Assistant, Role::System][role as usize];
                    let blocks = blocks.into_iter().map(|(kind, id)| match kind {
                        0 => Block::Text("x".into()),
                        1 => call(&id.to_string()),
                        _ => result(&id.to_string()),
                    });
                    message(role, blocks.collect())
                })
                .collect();
            let once = normalise(&history, &Rules::default());
            let twice = normalise(&once.history, &Rules::default());
            prop_assert_eq!(&twice.history, &once.history);
            prop_assert_eq!(twice.changes, vec![]);
        }
    }
}
