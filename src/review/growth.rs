//! The effect of a change on the number of tokens in bodies.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use crate::compile::{Compiler, Selection};
use crate::diff::ChangedFile;
use crate::lint::WireFormat;
use crate::tokens::TokenEstimate;

/// The change in the number of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Growth {
    /// The sum over all bodies that exist on both sides; negative if they shrink.
    pub tokens: i64,
    /// The number of bodies whose token count changes.
    pub bodies: usize,
    /// `true` if all counts come from the models' tokenizers; otherwise, some are estimates.
    pub is_tokenized: bool,
}

/// The wire format and the model of an agent's bodies.
type Spoken = Option<(WireFormat, String)>;

/// Returns the change in the token counts of differing bodies.
pub(super) fn of(
    changes: &[ChangedFile],
    newer: &Compiler,
    selection: &Selection,
) -> Option<Growth> {
    let mut spoken: HashMap<&Arc<str>, Spoken> = HashMap::new();
    let mut growth = Growth {
        tokens: 0,
        bodies: 0,
        is_tokenized: true,
    };
    for file in changes.iter().filter(|file| file.subject.context.is_some()) {
        let agent = &file.subject.agent;
        let known = spoken
            .entry(agent)
            .or_insert_with(|| spoken_by(agent, newer, selection));
        let (Some((wire, model)), Some(old), Some(new)) = (
            known,
            value(file.old.as_deref()),
            value(file.new.as_deref()),
        ) else {
            continue;
        };
        let (before, after) = (
            TokenEstimate::of(&old, *wire, model),
            TokenEstimate::of(&new, *wire, model),
        );
        let more = i64::try_from(after.total()).unwrap_or(i64::MAX)
            - i64::try_from(before.total()).unwrap_or(i64::MAX);
        growth.tokens += more;
        growth.bodies += usize::from(more != 0);
        growth.is_tokenized &= after.is_tokenized || more == 0;
    }
    (growth.bodies > 0).then_some(growth)
}

fn spoken_by(agent: &Arc<str>, newer: &Compiler, selection: &Selection) -> Spoken {
    let plan = newer.plan(newer.hierarchy().by_name(agent)?)?;
    let model = newer
        .repo()
        .client_model(plan.name(), selection.model.as_deref());
    Some((plan.wire, plan.model(model).to_owned()))
}

fn value(text: Option<&str>) -> Option<Value> {
    serde_json::from_str(text?).ok()
}
