//! The `leaves_out` entries in profiles, which list the content that an agent drops on purpose.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::conversation::ContentKind;
use crate::diag::Diagnostic;
use crate::flow::rules;
use crate::source::Span;
use crate::toml::Kind;
use crate::unit::Plan;

/// A `leaves_out` entry.
#[derive(Debug, Clone, Copy)]
pub(super) struct Declared {
    pub(super) kind: ContentKind,
    pub(super) span: Span,
}

impl Declared {
    /// Returns an agent's entries.
    pub(super) fn of(plan: &Plan<'_>) -> Vec<Declared> {
        let Some(merged) = plan.profile.merged.get("leaves_out") else {
            return Vec::new();
        };
        let Kind::Array(elements) = &merged.node.kind else {
            return Vec::new();
        };
        let mut declared = Vec::new();
        for element in elements {
            if let Kind::String(name) = &element.kind
                && let Some(kind) = ContentKind::from_name(name)
            {
                declared.push(Declared {
                    kind,
                    span: Span::new(merged.file, element.span.clone()),
                });
            }
        }
        declared
    }
}

/// The `leaves_out` entries by location. An entry is marked as used when it applies.
#[derive(Debug, Default)]
pub(super) struct Declarations(Mutex<BTreeMap<Span, Seen>>);

/// An entry, and whether it has applied.
#[derive(Debug)]
struct Seen {
    kind: ContentKind,
    is_used: bool,
}

impl Declarations {
    pub(super) fn note(&self, declared: &Declared, is_used: bool) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = all.entry(declared.span).or_insert(Seen {
            kind: declared.kind,
            is_used: false,
        });
        seen.is_used |= is_used;
    }

    /// Returns findings about entries that never apply, if the entries are in editable files.
    pub(super) fn unused(&self, is_editable: impl Fn(Span) -> bool) -> Vec<Diagnostic> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let unused = all
            .iter()
            .filter(|(span, seen)| !seen.is_used && is_editable(**span));
        let findings = unused.map(|(span, seen)| {
            let message = format!(
                "no agent leaves out `{}`, or the omission need not be declared",
                seen.kind.name()
            );
            Diagnostic::new(&rules::UNUSED_DECLARATION, *span, message).help("remove the entry")
        });
        findings.collect()
    }
}
