//! What many agents share, made once per conversation: what inherited templates and system prompts give, tools, and what wrote
//! a place of what a template gave.
//!
//! A fragment depends on its template, on the conversation in the normal form of the client API, on the wire format's
//! rule for ids and, if the template reads it, on the system prompt: that is the key, so a hit is what rendering again
//! would give. Only templates that several agents use are kept, which bounds the memory by what is shared.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::members::Shared;
use super::plan::Target;
use super::prompt::SystemPrompt;
use crate::diag::Diagnostic;
use crate::json::Pointer;
use crate::provider::{ClientApi, WireFormat};
use crate::render::{IdRule, TemplateId};
use crate::repo::LayerKind;
use crate::source::Span;

/// A result, and the units of work that it costs whoever uses it: also those that find it made already, so that no
/// account depends on which thread came first.
#[derive(Debug, Clone)]
pub(super) struct Costed<T> {
    pub(super) result: T,
    pub(super) cost: u64,
}

impl<T> Costed<T> {
    pub(super) fn map<U>(self, change: impl FnOnce(T) -> U) -> Costed<U> {
        Costed { result: change(self.result), cost: self.cost }
    }
}

/// What one template gave: a value, nothing, or a finding.
pub(super) type Fragment = Costed<Result<Option<Value>, Box<Diagnostic>>>;
/// A system prompt; `None` if it is blank.
pub(super) type Prompt = Costed<Result<Option<SystemPrompt>, Box<Diagnostic>>>;

/// A fragment that several bodies hold.
pub(super) type SharedFragment = Costed<Result<Option<Arc<Shared>>, Box<Diagnostic>>>;

/// The shared results of one conversation.
#[derive(Default)]
pub struct Memo {
    fragments: Mutex<HashMap<FragmentKey, SharedFragment>>,
    /// By the profile's own part, and the layer whose files it sees.
    prompts: Mutex<HashMap<(Option<TemplateId>, LayerKind), Prompt>>,
    tools: Mutex<HashMap<WireFormat, Option<Arc<Shared>>>>,
    traces: Mutex<HashMap<TraceKey, Costed<Option<Span>>>>,
}

/// A place in what a template gave.
type TraceKey = (FragmentKey, Pointer, Target);

/// Everything that a fragment depends on beside the conversation.
#[derive(PartialEq, Eq, Hash, Clone)]
pub(super) struct FragmentKey {
    pub(super) template: TemplateId,
    pub(super) ids: IdRule,
    /// The client API, if its normal form of the conversation is one of its own.
    pub(super) variant: Option<ClientApi>,
    /// The system prompt, if the template can see it.
    pub(super) system_prompt: Option<SystemPrompt>,
}

impl Memo {
    pub(super) fn fragment(&self, key: FragmentKey, render: impl FnOnce() -> Fragment) -> SharedFragment {
        remember(&self.fragments, key, || render().map(|result| result.map(|value| value.map(share))))
    }

    pub(super) fn prompt(
        &self,
        template: Option<TemplateId>,
        layer: LayerKind,
        render: impl FnOnce() -> Prompt,
    ) -> Prompt {
        remember(&self.prompts, (template, layer), render)
    }

    /// What wrote a place: a mistake in a shared template is found in the bodies of all its agents.
    pub(super) fn trace(&self, key: TraceKey, trace: impl FnOnce() -> Costed<Option<Span>>) -> Costed<Option<Span>> {
        remember(&self.traces, key, trace)
    }

    /// The tool definitions in a wire format.
    pub(super) fn tools(&self, wire: WireFormat, make: impl FnOnce() -> Option<Value>) -> Option<Arc<Shared>> {
        remember(&self.tools, wire, || make().map(share))
    }
}

fn share(value: Value) -> Arc<Shared> {
    Arc::new(Shared::new(value))
}

/// The known result, or the one that `make` gives. Making happens outside of the lock: at worst two threads make the
/// same, and the results are equal.
fn remember<K: Eq + Hash, V: Clone>(known: &Mutex<HashMap<K, V>>, key: K, make: impl FnOnce() -> V) -> V {
    let lock = || known.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = lock().get(&key) {
        return found.clone();
    }
    let result = make();
    lock().entry(key).or_insert(result).clone()
}
