//! What many agents share, rendered once: inherited templates and system prompts, per conversation.
//!
//! A fragment depends on its template, on the conversation in the normal form of the client API, on the wire format's
//! rule for ids and, if the template reads it, on the system prompt: that is the key, so a hit is what rendering again
//! would give. Only templates that several agents use are kept, which bounds the memory by what is shared.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::diag::Diagnostic;
use crate::provider::ClientApi;
use crate::render::{IdRule, TemplateId};
use crate::repo::LayerKind;

/// What one template gave: a value, nothing, or a finding.
pub(super) type Fragment = Result<Option<Value>, Box<Diagnostic>>;
/// What one system prompt gave.
pub(super) type Prompt = Result<Arc<str>, Box<Diagnostic>>;

/// The shared results of one conversation.
#[derive(Default)]
pub struct Memo {
    fragments: Mutex<HashMap<FragmentKey, Arc<Fragment>>>,
    prompts: Mutex<HashMap<(TemplateId, LayerKind), Arc<Prompt>>>,
}

/// Everything that a fragment depends on beside the conversation.
#[derive(PartialEq, Eq, Hash, Clone)]
pub(super) struct FragmentKey {
    pub(super) template: TemplateId,
    pub(super) ids: IdRule,
    /// The client API, if its normal form of the conversation is one of its own.
    pub(super) variant: Option<ClientApi>,
    /// The system prompt, if the template can see it.
    pub(super) system_prompt: Option<Arc<str>>,
}

impl Memo {
    pub(super) fn fragment(&self, key: FragmentKey, render: impl FnOnce() -> Fragment) -> Arc<Fragment> {
        remember(&self.fragments, key, render)
    }

    pub(super) fn prompt(
        &self,
        template: TemplateId,
        layer: LayerKind,
        render: impl FnOnce() -> Prompt,
    ) -> Arc<Prompt> {
        remember(&self.prompts, (template, layer), render)
    }
}

/// The known result, or the one that `render` gives. Rendering happens outside of the lock: at worst two threads
/// render the same, and the results are equal.
fn remember<K: Eq + std::hash::Hash, V>(
    known: &Mutex<HashMap<K, Arc<V>>>,
    key: K,
    render: impl FnOnce() -> V,
) -> Arc<V> {
    let lock = || known.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = lock().get(&key) {
        return Arc::clone(found);
    }
    let made = Arc::new(render());
    Arc::clone(lock().entry(key).or_insert(made))
}
