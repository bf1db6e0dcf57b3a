//! The `[[budget]]` entries, which limit the size of bodies.

use super::super::{Glob, Known, Reader, rules};
use super::glob;
use crate::diag::Diagnostic;
use crate::source::{FileId, Span, Spanned};
use crate::toml::{Kind, Table};

/// Every key in a `[[budget]]` entry.
pub const BUDGET_KEYS: [&str; 6] = [
    "agent",
    "context",
    "tokens",
    "bytes",
    "tools",
    "cached_share",
];

/// A `[[budget]]` entry, which limits the size of bodies.
#[derive(Debug, Clone)]
pub struct Budget {
    /// The location of the entry.
    pub span: Span,
    /// If set, the budget applies only to bodies of matching agents.
    pub agent: Option<Glob>,
    /// If set, the budget applies only to bodies in matching contexts.
    pub context: Option<Glob>,
    /// The maximum number of tokens in a body.
    pub tokens: Option<Spanned<u64>>,
    /// The maximum size of a body in bytes, as it is sent.
    pub bytes: Option<Spanned<u64>>,
    /// The maximum number of tools in a body.
    pub tools: Option<Spanned<u64>>,
    /// The minimum share of a body that can be read from the cache when the conversation continues,
    /// from 0 to 1.
    pub cached_share: Option<Spanned<f64>>,
}

impl Budget {
    pub(super) fn read(
        file: FileId,
        entry: Spanned<&Table>,
        findings: &mut Vec<Diagnostic>,
    ) -> Option<Budget> {
        let before = findings.len();
        let mut reader = Reader::new(file, entry.value, findings);
        reader.only(&Known::flat("[[budget]]", &BUDGET_KEYS));
        let agent = reader
            .string("agent")
            .and_then(|pattern| glob(&mut reader, "agent", &pattern));
        let context = reader
            .string("context")
            .and_then(|pattern| glob(&mut reader, "context", &pattern));
        let limits = ["tokens", "bytes", "tools", "cached_share"];
        if !limits.iter().any(|key| reader.has(key)) {
            let finding = Diagnostic::new(
                &rules::MISSING_KEY,
                entry.span,
                "a [[budget]] entry limits nothing",
            );
            reader.report(finding.help("add `tokens`, `bytes`, `tools` or `cached_share`"));
        }
        let [tokens, bytes, tools] =
            ["tokens", "bytes", "tools"].map(|key| limit(&mut reader, key));
        let cached_share = share(&mut reader, "cached_share");
        let is_usable = !reader.found_more_than(before);
        is_usable.then_some(Budget {
            span: entry.span,
            agent,
            context,
            tokens,
            bytes,
            tools,
            cached_share,
        })
    }

    /// Returns `true` if the budget applies to an agent's body in a context.
    pub fn is_for(&self, agent: &str, context: &str) -> bool {
        self.agent.as_ref().is_none_or(|glob| glob.is_match(agent))
            && self
                .context
                .as_ref()
                .is_none_or(|glob| glob.is_match(context))
    }
}

/// Reads a number that must not be negative; returns `None` if the number is absent or was
/// reported.
fn limit(reader: &mut Reader<'_, '_>, key: &str) -> Option<Spanned<u64>> {
    let number = reader.integer(key)?;
    let value = u64::try_from(number.value).ok();
    if value.is_none() {
        let message = format!("`{key}` must not be negative");
        reader.report(Diagnostic::new(&rules::INVALID_VALUE, number.span, message));
    }
    value.map(|value| Spanned {
        value,
        span: number.span,
    })
}

/// Reads a share from 0 to 1; returns `None` if the share is absent or was reported.
fn share(reader: &mut Reader<'_, '_>, key: &str) -> Option<Spanned<f64>> {
    let node = reader.get(key)?;
    let span = reader.span(node);
    let value = match node.kind {
        Kind::Float(value) => value,
        Kind::Integer(0) => 0.0,
        Kind::Integer(1) => 1.0,
        _ => {
            reader.wrong_type(key, node, "a number from 0 to 1");
            return None;
        }
    };
    if (0.0..=1.0).contains(&value) {
        return Some(Spanned { value, span });
    }
    let message = format!("`{key}` must be from 0 to 1");
    reader.report(
        Diagnostic::new(&rules::INVALID_VALUE, span, message)
            .help("for example, write `0.6` for 60 %"),
    );
    None
}
