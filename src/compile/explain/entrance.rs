//! Finds the location in the repository through which a bundled file reaches an agent. A mistake in
//! the bundled file is reported there, because users cannot edit bundled files.
//!
//! A problem with the model is reported at the model's name. Any other problem is reported at the
//! tag that includes the bundled file, or at the `extends` that inherits it. The location in the
//! bundled file comes second.

use crate::diag::Diagnostic;
use crate::resolve::ResolvedProfile;
use crate::source::{Sources, Span};

/// A location in the repository through which a mistake in a bundled file reaches an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::compile) struct Entrance {
    /// The location in the repository.
    pub(in crate::compile) span: Span,
    /// The location of the mistake in the bundled file.
    bundled: Span,
}

/// A location, and the steps that led to it, innermost first.
#[derive(Clone, Copy)]
pub(in crate::compile) struct Trail<'t> {
    pub(in crate::compile) span: Span,
    pub(in crate::compile) steps: &'t [(Span, &'static str)],
}

impl Entrance {
    /// Returns the location in the repository for a finding in a bundled file. A mistake caused by
    /// the model is reported at the model's name, any other mistake at the tag or `extends` that
    /// includes the file.
    pub(in crate::compile) fn of(
        sources: &Sources,
        trail: Trail<'_>,
        model: Option<Span>,
        profile: &ResolvedProfile<'_>,
    ) -> Option<Entrance> {
        if !sources.get(trail.span.file).is_bundled() {
            return None;
        }
        let steps = trail.steps.iter().map(|(span, _)| *span);
        let own = model
            .into_iter()
            .chain(steps)
            .find(|span| !sources.get(span.file).is_bundled());
        Some(Entrance {
            span: own.or_else(|| profile.bundled_parent())?,
            bundled: trail.span,
        })
    }

    /// Returns a key that distinguishes a problem from other problems with the same entrance.
    pub(in crate::compile) fn sense(&self, sense: Option<&str>) -> String {
        let Span { file, start, end } = self.bundled;
        format!("{} {file:?} {start} {end}", sense.unwrap_or_default())
    }

    /// Moves a finding from the bundled location to the location in the repository.
    pub(in crate::compile) fn tell(&self, finding: Diagnostic) -> Diagnostic {
        let sense = self.sense(finding.sense.as_deref());
        finding
            .told_at(self.span, "this is inherited")
            .in_sense(Some(sense))
    }
}

/// Moves a finding to its entrance, if its own location is in a bundled file.
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
