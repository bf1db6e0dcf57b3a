//! Tool names in calls. Models may invent names that no request can contain.

use std::sync::Arc;

use super::{NormalFormChange, NormalFormRules};
use crate::conversation::Block;
use crate::text::stable_id;

/// The tool names that a wire format accepts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameRule {
    /// Any name that is not empty.
    #[default]
    Any,
    /// Between one and this many characters of `[A-Za-z0-9_-]`.
    Word(usize),
    /// At most this many characters of `[A-Za-z0-9_.:-]`, beginning with a letter or `_`.
    Dotted(usize),
}

/// The smallest length limit of all formats, in characters.
const SHORTEST_LIMIT: usize = 64;

impl NameRule {
    /// Returns the replacement for a name that the format rejects; `None` if the format accepts the
    /// name. The replacement ends with letters and digits computed from the name, so it is always
    /// the same, and differs from the names of real tools.
    fn instead_of(self, name: &str) -> Option<Arc<str>> {
        let limit = match self {
            NameRule::Any if !name.is_empty() => return None,
            NameRule::Any => SHORTEST_LIMIT,
            NameRule::Word(limit) | NameRule::Dotted(limit) => limit,
        };
        if !name.is_empty()
            && name.len() <= limit
            && name.chars().enumerate().all(|(at, c)| self.takes(at, c))
        {
            return None;
        }
        let id = stable_id(name);
        let kept = name
            .chars()
            .take(limit.saturating_sub(id.len() + 1))
            .enumerate();
        let kept: String = kept
            .map(|(at, c)| if self.takes(at, c) { c } else { '_' })
            .collect();
        Some(format!("{kept}_{id}").into())
    }

    fn takes(self, at: usize, c: char) -> bool {
        match self {
            NameRule::Any => true,
            NameRule::Word(_) => c.is_ascii_alphanumeric() || matches!(c, '_' | '-'),
            NameRule::Dotted(_) if at == 0 => c.is_ascii_alphabetic() || c == '_',
            NameRule::Dotted(_) => c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '-'),
        }
    }
}

/// Returns `true` if every format accepts the name.
pub(super) fn is_plain(name: &str) -> bool {
    [
        NameRule::Word(SHORTEST_LIMIT),
        NameRule::Dotted(SHORTEST_LIMIT),
    ]
    .into_iter()
    .all(|rule| rule.instead_of(name).is_none())
}

impl NormalFormRules {
    /// Returns a block, renaming its call if the target rejects the tool's name.
    pub(super) fn named(
        &self,
        block: &Block,
        message: usize,
        changes: &mut Vec<NormalFormChange>,
    ) -> Block {
        let mut block = block.clone();
        if let Block::ToolUse { name, .. } = &mut block
            && let Some(other) = self.names.instead_of(name)
        {
            changes.push(NormalFormChange::RefusedName {
                message,
                name: std::mem::replace(name, other),
            });
        }
        block
    }
}
