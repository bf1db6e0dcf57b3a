//! Checks that an agent's requests only grow as a conversation continues.
//!
//! A context also represents the requests before it: those of its earlier turns, and one after each
//! user message and each result. For each of these requests, the members that belong to the prefix
//! are compiled, and compared with the whole conversation's body.

use super::budget;
use super::explain::places::Places;
use super::finding::{Blamed, Teller};
use super::pairing::Compiled;
use super::turns::Earlier;
use crate::check::prefix::{Broken, is_compared};
use crate::diag::Findings;
use crate::json::Pointer;
use crate::unit::{Body, Costed, KeyOrValue, Provenance, Record, Request};

/// The note for the location where the earlier value was written.
const WRITTEN_BEFORE: &str = "written here in the previous request";

/// Reports the first part of an earlier request that the later body changes.
pub(super) fn prove(later: &Compiled<'_>, cost: &mut u64, findings: &mut Findings) {
    for earlier in later.version.earlier(&later.loaded.turns) {
        if *cost > budget::AGENT_LIMIT {
            return;
        }
        let scope = earlier
            .scopes
            .as_ref()
            .map_or(later.request.scope, |scopes| {
                &scopes[&later.plan.profile.profile.layer]
            });
        let request = Request {
            conversation: &earlier.normalised,
            scope,
            ..*later.request
        };
        let Some(body) = body_of(later, earlier, &request, cost) else {
            continue;
        };
        if let Some(broken) = later
            .checks
            .prefix_problem(&body, later.body, earlier.is_renewed)
        {
            tell(later, &request, &body, broken, findings);
            return;
        }
    }
}

/// Compiles the compared part of an earlier request's body.
fn body_of(
    later: &Compiled<'_>,
    earlier: &Earlier,
    request: &Request<'_>,
    cost: &mut u64,
) -> Option<Body> {
    let sources = later.compiler.sources();
    let prompt = match earlier.is_same_prompt {
        true => Costed {
            result: Ok(later.prompt.cloned()),
            cost: 0,
        },
        false => later.plan.prompt(sources, later.renderer, request),
    };
    let made = later
        .plan
        .made_of(prompt, Some(is_compared), sources, later.renderer, request);
    *cost = cost.saturating_add(made.cost);
    made.body.ok()
}

/// Reports a change at the source of the first difference.
fn tell(
    later: &Compiled<'_>,
    request: &Request<'_>,
    body: &Body,
    broken: Broken,
    findings: &mut Findings,
) {
    let places = Places::new(later.compiler, later.plan, later.loaded);
    let Broken {
        problem,
        from,
        is_in_later,
        is_in_both,
    } = broken;
    let differing = Differing {
        later,
        pointer: &problem.pointer.clone(),
        from,
    };
    let place = match is_in_later {
        true => differing.place_in(later.request, later.body),
        false => differing.place_in(request, body),
    };
    let blamed = Blamed {
        problem,
        place: &place,
        model: None,
    };
    Teller { places }.tell(blamed, findings, |finding, span| {
        if !is_in_both {
            return finding;
        }
        // The earlier value may have been written at a different location, and that location may be
        // the cause.
        let before = differing.place_in(request, body);
        let before = places
            .outside(&before)
            .map_or(before.span, |outside| outside.span);
        if before == span {
            finding
        } else {
            finding.related(before, WRITTEN_BEFORE)
        }
    });
}

/// The first location that differs between two bodies.
struct Differing<'a> {
    later: &'a Compiled<'a>,
    pointer: &'a Pointer,
    /// The offset of the first byte that differs, if both values are strings.
    from: Option<usize>,
}

impl Differing<'_> {
    /// Returns the origin of this location in one of the two bodies.
    fn place_in(&self, request: &Request<'_>, body: &Body) -> Provenance {
        let later = self.later;
        let record = Record::new(
            later.plan,
            later.compiler.sources(),
            later.renderer,
            request,
            body,
        );
        match self.from {
            Some(from) => record.place_in_text(self.pointer, from),
            None => record.place(self.pointer, KeyOrValue::Value),
        }
    }
}
