//! Names of called tools: models make up some that no request may hold.

use std::sync::Arc;

use super::{NormalFormChange, NormalFormRules};
use crate::conversation::Block;
use crate::text::stable_id;

/// The names of tools that a wire format takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameRule {
    /// Any but none at all.
    #[default]
    Any,
    /// `[A-Za-z0-9_-]`, at least one and at most this many.
    Word(usize),
    /// `[A-Za-z0-9_.:-]`, at most this many; a letter or `_` comes first.
    Dotted(usize),
}

/// The fewest characters that every format takes.
const SHORTEST_LIMIT: usize = 64;

impl NameRule {
    /// Another name for one that the format refuses. It ends in letters and digits computed from
    /// the name: always the same, and no tool is called so.
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

/// Returns `true` if every format takes a name.
pub(super) fn is_plain(name: &str) -> bool {
    [
        NameRule::Word(SHORTEST_LIMIT),
        NameRule::Dotted(SHORTEST_LIMIT),
    ]
    .into_iter()
    .all(|rule| rule.instead_of(name).is_none())
}

impl NormalFormRules {
    /// A block as the target takes it: calls have names that it takes.
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
