//! Where something wrong in a bundled file reaches an agent: nobody can edit the bundled file.
//!
//! A problem with the model is told at the model's name, any other at the tag that includes the
//! bundled file or at the `extends` that brings it. The bundled place comes second.

use crate::diag::Diagnostic;
use crate::resolve::ResolvedProfile;
use crate::source::{Sources, Span};

/// A place of the repository by which something wrong in a bundled file reaches an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::compile) struct Entrance {
    /// The place of the repository.
    pub(in crate::compile) span: Span,
    /// The place of the mistake in the bundled file.
    bundled: Span,
}

/// A place and the steps that led there, the innermost first.
#[derive(Clone, Copy)]
pub(in crate::compile) struct Trail<'t> {
    pub(in crate::compile) span: Span,
    pub(in crate::compile) steps: &'t [(Span, &'static str)],
}

impl Entrance {
    /// Returns the place of the repository to which a finding belongs, if that is in a bundled
    /// file. What is wrong because of the model belongs to the model's name, anything else to what
    /// includes the file: a template's tag, or the profile's `extends`.
    pub(in crate::compile) fn of(
        sources: &Sources,
        trail: Trail<'_>,
        model: Option<Span>,
        profile: &ResolvedProfile<'_>,
    ) -> Option<Entrance> {
        if !is_bundled(sources, trail.span) {
            return None;
        }
        let steps = trail.steps.iter().map(|(span, _)| *span);
        let own = model
            .into_iter()
            .chain(steps)
            .find(|span| !is_bundled(sources, *span));
        Some(Entrance {
            span: own.or_else(|| profile.bundled_parent())?,
            bundled: trail.span,
        })
    }

    /// Returns what tells a problem apart from others that come in by the same place.
    pub(in crate::compile) fn sense(&self, sense: Option<&str>) -> String {
        let Span { file, start, end } = self.bundled;
        format!("{} {file:?} {start} {end}", sense.unwrap_or_default())
    }

    /// Reports a finding of the bundled place at the place of the repository.
    pub(in crate::compile) fn tell(&self, finding: Diagnostic) -> Diagnostic {
        let sense = self.sense(finding.sense.as_deref());
        finding
            .told_at(self.span, "this is taken over")
            .in_sense(Some(sense))
    }
}

/// Reports a finding at the entrance, if its own place is in a bundled file.
pub(in crate::compile) fn at_entrance(
    sources: &Sources,
    finding: Diagnostic,
    profile: &ResolvedProfile<'_>,
) -> Diagnostic {
    let steps: Vec<(Span, &'static str)> = finding
        .related
        .iter()
        .map(|label| (label.span, ""))
        .collect();
    let trail = Trail {
        span: finding.primary.span,
        steps: &steps,
    };
    match Entrance::of(sources, trail, None, profile) {
        Some(entrance) => entrance.tell(finding),
        None => finding,
    }
}

/// Returns `true` if a place is in a bundled file, while the repository is another one.
pub(in crate::compile) fn is_bundled(sources: &Sources, span: Span) -> bool {
    sources.get(span.file).path().starts_with("bundled:")
}
