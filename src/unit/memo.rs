//! What many agents share, made once per conversation: what inherited templates and system prompts give, tools, and what wrote
//! a place of what a template gave.
//!
//! A fragment depends on its template, on the conversation in the normal form of the client API, on the wire format's
//! rule for ids and, if the template reads it, on the system prompt: that is the key, so a hit is what rendering again
//! would give. Only templates that several agents use are kept, and of those that read the system prompt only the ones of a
//! prompt that several agents use: what nobody will ask for is not kept. A template that only writes the prompt is kept once, with
//! holes where prompts stand. All memos of a run have [`Room`] for so much together;
//! what does not fit is made again.

use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, Mutex, PoisonError};

use foldhash::HashMap;
use foldhash::fast::RandomState;
use serde_json::Value;

use super::body::Body;
use super::excerpt::Excerpt;
use super::fragment::Measured;
use super::members::Shared;
use super::plan::KeyOrValue;
use super::prompt::SystemPrompt;
use super::recipe::{ProofKey, Proofs};
use super::record::Provenance;
use crate::diag::Diagnostic;
use crate::json::{self, JsonError, Pointer};
use crate::provider::{ClientApi, Tools, WireFormat};
use crate::render::{IdRule, Space, TemplateId};
use crate::repo::LayerKind;

/// A result, and the units of work that it costs whoever uses it: also those that find it made already, so that no
/// account depends on which thread came first.
#[derive(Debug, Clone)]
pub(crate) struct Costed<T> {
    pub(crate) result: T,
    pub(crate) cost: u64,
}

impl<T> Costed<T> {
    pub(super) fn map<U>(self, change: impl FnOnce(T) -> U) -> Costed<U> {
        Costed { result: change(self.result), cost: self.cost }
    }
}

/// A system prompt; `None` if it is blank.
pub(crate) type Prompt = Costed<Result<Option<SystemPrompt>, Box<Diagnostic>>>;

/// A fragment that several bodies hold.
pub(super) type SharedFragment = Costed<Result<Option<Arc<Shared>>, Box<Diagnostic>>>;

/// Tools that several bodies hold.
pub(super) type SharedTools = Tools<Arc<Shared>>;

/// The shared results of one conversation.
#[derive(Default)]
pub struct Memo {
    fragments: Mutex<HashMap<FragmentKey, SharedFragment>>,
    /// What templates give for any system prompt.
    hollow: Mutex<HashMap<FragmentKey, Costed<Measured>>>,
    /// By the profile's own part, and the layer whose files it sees.
    prompts: Mutex<HashMap<(Option<TemplateId>, LayerKind), Prompt>>,
    /// By the wire format, and the text of the tools that the body has of its own.
    tools: Mutex<HashMap<(WireFormat, Option<String>), SharedTools>>,
    traces: Mutex<HashMap<TraceKey, Option<Provenance>>>,
    values: Mutex<Values>,
    proofs: Proofs,
    room: Room,
}

/// A text, and its value.
type KnownText = (Box<str>, Arc<Shared>);

/// The values of texts that templates wrote.
#[derive(Default)]
struct Values {
    state: RandomState,
    /// By the text's hash; `None` if it was seen once.
    by_hash: HashMap<u64, Option<KnownText>>,
}

impl Values {
    fn hash(&self, text: &str) -> u64 {
        self.state.hash_one(text)
    }
}

/// What holds that a text was seen, in bytes.
const SEEN: usize = 48;

/// What the memos of a run share: how much they may still keep, and values that most conversations have in common.
#[derive(Debug, Clone)]
pub struct Room {
    space: Space,
    /// Tool definitions, what templates write that look at no conversation, and constants that agents take over from others, by
    /// their text: the order of members counts.
    values: Arc<Mutex<HashMap<String, Arc<Shared>>>>,
}

/// What all memos of a run may keep, in bytes of text and of what holds it.
const MOST_BYTES: usize = 256 * 1024 * 1024;

impl Default for Room {
    fn default() -> Room {
        Room { space: Space::new(MOST_BYTES), values: Arc::default() }
    }
}

impl Room {
    /// A value: the one that is there already, if it is the same.
    pub(super) fn share(&self, made: Value) -> Arc<Shared> {
        let text = made.to_string();
        match self.known(&text) {
            Some(same) => same,
            None => self.keep(text, share(made)),
        }
    }

    fn known(&self, text: &str) -> Option<Arc<Shared>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner).get(text).map(Arc::clone)
    }

    /// Keeps a value, unless there is no room for it or another thread kept it first.
    fn keep(&self, text: String, value: Arc<Shared>) -> Arc<Shared> {
        match self.space.take(text.len()) {
            true => Arc::clone(self.values.lock().unwrap_or_else(PoisonError::into_inner).entry(text).or_insert(value)),
            false => value,
        }
    }
}

/// About how many bytes a kept value holds.
pub(super) trait Weight {
    fn weight(&self) -> usize;
}

/// What holds a value, a list or an object of a few members, in bytes.
const HOLDER: usize = 64;

impl Weight for Value {
    fn weight(&self) -> usize {
        HOLDER
            + match self {
                Value::String(text) => text.len(),
                Value::Array(elements) => elements.iter().map(Weight::weight).sum(),
                Value::Object(members) => members.iter().map(|(key, value)| key.len() + value.weight()).sum(),
                _ => 0,
            }
    }
}

impl Weight for SharedFragment {
    /// Without the value, which is kept by its text.
    fn weight(&self) -> usize {
        HOLDER
    }
}

impl Weight for Costed<Measured> {
    /// As of a fragment.
    fn weight(&self) -> usize {
        HOLDER
    }
}

impl Weight for Prompt {
    fn weight(&self) -> usize {
        self.result.iter().flatten().map(|prompt| prompt.as_str().len()).sum()
    }
}

impl Weight for Option<Provenance> {
    fn weight(&self) -> usize {
        HOLDER * 4 + self.iter().flat_map(|place| &place.excerpt).map(Excerpt::len).sum::<usize>()
    }
}

impl Weight for SharedTools {
    fn weight(&self) -> usize {
        match self {
            Tools::All(shared) => 2 * shared.value().weight(),
            Tools::None | Tools::Twice { .. } => HOLDER,
        }
    }
}

/// A place in what a template gave.
type TraceKey = (FragmentKey, Pointer, KeyOrValue);

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
    /// How many templates were rendered for all prompts, and how many for one.
    #[cfg(test)]
    pub(crate) fn rendered(&self) -> (usize, usize) {
        let len = |known: &Mutex<HashMap<FragmentKey, SharedFragment>>| known.lock().expect("not poisoned").len();
        (self.hollow.lock().expect("not poisoned").len(), len(&self.fragments))
    }

    /// How many requests are known to be good.
    #[cfg(test)]
    pub(crate) fn proofs(&self) -> usize {
        self.proofs.len()
    }

    /// A memo for another conversation, beside this one.
    pub(crate) fn beside(&self) -> Memo {
        Memo::sharing(&self.room)
    }

    /// A memo beside others.
    pub(crate) fn sharing(room: &Room) -> Memo {
        Memo { room: room.clone(), ..Memo::default() }
    }

    /// What all memos of the run may still keep.
    pub(super) fn space(&self) -> &Space {
        &self.room.space
    }

    pub(super) fn fragment(&self, key: FragmentKey, render: impl FnOnce() -> SharedFragment) -> SharedFragment {
        self.remember(&self.fragments, key, render)
    }

    /// Whether a template wrote this before. Of what is seen first, no more is kept than that it was there.
    pub(super) fn is_seen_again(&self, text: &str) -> bool {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let hash = values.hash(text);
        match values.by_hash.get(&hash) {
            Some(_) => true,
            None => {
                if self.room.space.take(SEEN) {
                    values.by_hash.insert(hash, None);
                }
                false
            }
        }
    }

    /// The value of a text: the one that other templates gave, if they wrote the same.
    pub(super) fn value(&self, text: &str, share: fn(Value) -> Shared) -> Result<Arc<Shared>, JsonError> {
        let lock = || self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let hash = lock().hash(text);
        if let Some(Some((known, value))) = lock().by_hash.get(&hash)
            && **known == *text
        {
            return Ok(Arc::clone(value));
        }
        let value = Arc::new(share(json::parse(text)?));
        if self.room.space.take(text.len() + 2 * value.value().weight()) {
            lock().by_hash.entry(hash).or_default().get_or_insert_with(|| (text.into(), Arc::clone(&value)));
        }
        Ok(value)
    }

    /// The value of a text that a template wrote without a look at the conversation: the same for all.
    pub(super) fn value_for_all(&self, text: &str) -> Result<Arc<Shared>, JsonError> {
        match self.room.known(text) {
            Some(known) => Ok(known),
            None => Ok(self.room.keep(text.to_owned(), share(json::parse(text)?))),
        }
    }

    /// What a template gives for any system prompt; the key names the placeholder.
    pub(super) fn hollow(&self, key: FragmentKey, render: impl FnOnce() -> Costed<Measured>) -> Costed<Measured> {
        self.remember(&self.hollow, key, render)
    }

    pub(super) fn prompt(
        &self,
        template: Option<TemplateId>,
        layer: LayerKind,
        render: impl FnOnce() -> Prompt,
    ) -> Prompt {
        self.remember(&self.prompts, (template, layer), render)
    }

    /// What a request of this conversation costs of which it is known that later ones only add to it.
    pub(crate) fn proven(&self, key: &ProofKey, prompt: Option<&SystemPrompt>) -> Option<u64> {
        self.proofs.cost(key, prompt)
    }

    /// Notes that later requests only add to one.
    pub(crate) fn prove(&self, key: ProofKey, made: (&Body, u64), prompt: Option<&SystemPrompt>) {
        self.proofs.note(key, made, prompt, self.space());
    }

    /// What wrote a place, if that can be told for all: a mistake in a shared template is found in the bodies of all its agents.
    pub(super) fn trace(&self, key: TraceKey, trace: impl FnOnce() -> Option<Provenance>) -> Option<Provenance> {
        self.remember(&self.traces, key, trace)
    }

    /// The tools of a body in a wire format, behind those of its own.
    pub(super) fn tools(
        &self,
        wire: WireFormat,
        own: Option<&Value>,
        make: impl FnOnce() -> Tools<Value>,
    ) -> SharedTools {
        self.remember(&self.tools, (wire, own.map(Value::to_string)), || make().map(|made| self.room.share(made)))
    }

    /// The known result, or the one that `make` gives. Making happens outside of the lock: at worst two threads make the
    /// same, and the results are equal.
    fn remember<K: Eq + Hash, V: Clone + Weight>(
        &self,
        known: &Mutex<HashMap<K, V>>,
        key: K,
        make: impl FnOnce() -> V,
    ) -> V {
        let lock = || known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = lock().get(&key) {
            return found.clone();
        }
        let result = make();
        match self.room.space.take(result.weight()) {
            true => lock().entry(key).or_insert(result).clone(),
            false => result,
        }
    }
}

fn share(value: Value) -> Arc<Shared> {
    Arc::new(Shared::new(value))
}
