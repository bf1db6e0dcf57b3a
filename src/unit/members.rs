//! The members of a body, in order. Values that several bodies have in common are stored once,
//! together with their text for golden files.

mod hollow;

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::costed::weight;
use super::prompt::SystemPrompt;
use crate::json::{self, JsonError};
use crate::memory::{Identity, Memory, Question};
use crate::provider::{CacheMark, CachePlace, CachePlan, CacheTtl, Cacheable, add_cache_control};
use hollow::{Holes, Spliced};

/// The members of a body, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Members(Vec<(Arc<str>, Member)>);

/// The value of a member.
#[derive(Debug, Clone)]
pub(super) enum Member {
    /// A value that belongs only to this body.
    Own(Value),
    /// A value shared by several bodies.
    Shared(Arc<Shared>),
    /// A shared value with this body's system prompt spliced in.
    Spliced(Box<Spliced>),
}

/// A value that several bodies share.
#[derive(Debug)]
pub(super) struct Shared {
    id: Identity,
    value: Value,
    /// The approximate size in bytes.
    weight: usize,
    pretty: OnceLock<Box<str>>,
    /// The number of prompt-cache breakpoints that the author set, if the value contains messages.
    authored: OnceLock<usize>,
    /// The locations of the system prompt, which differs between bodies.
    holes: Option<Holes>,
}

/// A member of a body, to be checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemberRef<'b> {
    /// The member's name.
    pub(crate) name: &'b str,
    held: Held<'b>,
    memory: Option<&'b Memory>,
}

#[derive(Debug, Clone, Copy)]
enum Held<'b> {
    Value(&'b Value),
    Member(&'b Member),
}

/// The identity of a value that several bodies may share: values with the same identity are equal,
/// except for the system prompts in them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Sameness {
    /// A shared value.
    Shared(Identity),
    /// A short value, as JSON.
    Leaf(Arc<str>),
}

/// The identity of a check. Equal numbers identify the same check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct CheckId(pub(crate) u16);

/// A check of a value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Check {
    pub(crate) id: CheckId,
    pub(crate) accepts: fn(&Value) -> bool,
}

/// A [`Question`] about the value of a string that a template wrote.
#[derive(PartialEq, Eq, Hash)]
struct ValueOf(Arc<str>);

impl Question for ValueOf {
    type Answer = Arc<Shared>;

    fn weight(&self, answer: &Arc<Shared>) -> usize {
        self.0.len() + 2 * answer.weight
    }
}

/// A [`Question`] about whether a check accepts a value.
#[derive(PartialEq, Eq, Hash)]
struct IsAccepted(Identity, CheckId);

impl Question for IsAccepted {
    type Answer = bool;
}

/// A [`Question`] about a value with one more prompt-cache breakpoint. The answer is `None` if the
/// value cannot have another breakpoint.
#[derive(PartialEq, Eq, Hash)]
struct Marked(Identity, CachePlace, CacheTtl);

impl Question for Marked {
    type Answer = Option<(Arc<Shared>, CacheMark)>;

    fn weight(&self, answer: &Self::Answer) -> usize {
        answer.as_ref().map_or(0, |(marked, _)| 2 * marked.weight)
    }
}

impl Sameness {
    /// Returns the approximate size in bytes.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Sameness::Shared(_) => 16,
            Sameness::Leaf(text) => 16 + text.len(),
        }
    }

    fn of_leaf(value: &Value) -> Option<Sameness> {
        let is_leaf = !value.is_array() && !value.is_object();
        is_leaf.then(|| Sameness::Leaf(compact(value).into()))
    }
}

impl<'b> MemberRef<'b> {
    /// Returns a member whose value is not shared.
    pub(crate) fn new(name: &'b str, value: &'b Value) -> MemberRef<'b> {
        MemberRef {
            name,
            held: Held::Value(value),
            memory: None,
        }
    }

    pub(super) fn of(
        name: &'b str,
        member: &'b Member,
        memory: Option<&'b Memory>,
    ) -> MemberRef<'b> {
        MemberRef {
            name,
            held: Held::Member(member),
            memory,
        }
    }

    /// Returns the value.
    pub(crate) fn value(&self) -> &'b Value {
        match self.held {
            Held::Value(value) => value,
            Held::Member(member) => member.value(),
        }
    }

    /// Returns the value in the form that bodies share, with the placeholder where each body has
    /// its own system prompt.
    pub(crate) fn shared_value(&self) -> &'b Value {
        match self.held {
            Held::Member(Member::Spliced(spliced)) => spliced.shared().value(),
            _ => self.value(),
        }
    }

    /// Returns the system prompt that replaces the placeholder of `shared_value`.
    pub(crate) fn prompt(&self) -> Option<&'b SystemPrompt> {
        match self.held {
            Held::Member(Member::Spliced(spliced)) => Some(spliced.prompt()),
            _ => None,
        }
    }

    /// Returns the identity that the value shares with other bodies' members, apart from system
    /// prompts; `None` if the value belongs only to this body.
    pub(crate) fn sameness(&self) -> Option<Sameness> {
        match self.held {
            Held::Member(member) => member.sameness(),
            Held::Value(value) => Sameness::of_leaf(value),
        }
    }

    /// Returns the identity of a value that other bodies share unchanged, and the cache that
    /// contains it.
    pub(crate) fn shared(&self) -> Option<(Identity, &'b Memory)> {
        match self.held {
            Held::Member(Member::Shared(shared)) => Some((shared.id, self.memory?)),
            _ => None,
        }
    }

    /// Returns `true` if a check accepts the value.
    pub(crate) fn is_accepted(&self, check: &Check) -> bool {
        match (self.held, self.memory) {
            (Held::Member(Member::Shared(shared)), Some(memory)) => memory
                .ask(IsAccepted(shared.id, check.id), || {
                    (check.accepts)(&shared.value)
                }),
            _ => (check.accepts)(self.value()),
        }
    }
}

impl Shared {
    pub(super) fn new(value: Value) -> Shared {
        let (weight, id) = (weight(&value), Identity::new());
        Shared {
            id,
            value,
            weight,
            pretty: OnceLock::new(),
            authored: OnceLock::new(),
            holes: None,
        }
    }

    /// Returns a shared value in which the placeholder marks each body's system prompt.
    pub(super) fn hollow(value: Value) -> Shared {
        let holes = Holes::of(&value);
        Shared {
            holes,
            ..Shared::new(value)
        }
    }

    /// Returns the value of JSON text, reusing the value of equal text that another template wrote.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not JSON.
    pub(super) fn of(
        text: &Arc<str>,
        memory: &Memory,
        share: fn(Value) -> Shared,
    ) -> Result<Arc<Shared>, JsonError> {
        let asked = ValueOf(Arc::clone(text));
        if let Some(known) = memory.recall(&asked) {
            return Ok(known);
        }
        let value = Arc::new(share(json::parse(text)?));
        memory.note(asked, Arc::clone(&value));
        Ok(value)
    }

    /// Returns a shared value, reusing an equal value. The order of members matters.
    pub(super) fn same(value: Value, memory: &Memory) -> Arc<Shared> {
        memory.ask(ValueOf(compact(&value).into()), || {
            Arc::new(Shared::new(value))
        })
    }

    pub(super) fn value(&self) -> &Value {
        &self.value
    }

    /// Returns the approximate size of the value in bytes.
    pub(super) fn weight(&self) -> usize {
        self.weight
    }

    /// Returns how many times the value contains the system prompt.
    pub(super) fn holes(&self) -> usize {
        self.holes.as_ref().map_or(0, |holes| holes.count)
    }

    /// Returns the text, indented as a member of a body.
    fn pretty(&self) -> &str {
        self.pretty.get_or_init(|| indented(&self.value).into())
    }

    fn marked(
        &self,
        place: CachePlace,
        ttl: CacheTtl,
        memory: Option<&Memory>,
    ) -> Option<(Arc<Shared>, CacheMark)> {
        let mark = || {
            let mut value = self.value.clone();
            let again = if self.holes.is_some() {
                Shared::hollow
            } else {
                Shared::new
            };
            value
                .mark(place, ttl)
                .map(|mark| (Arc::new(again(value)), mark))
        };
        match memory {
            Some(memory) => memory.ask(Marked(self.id, place, ttl), mark),
            None => mark(),
        }
    }

    fn authored(&self, name: &str) -> usize {
        match name {
            "messages" => *self.authored.get_or_init(|| self.value.authored(name)),
            _ => self.value.authored(name),
        }
    }
}

/// A member, and the cache of shared values in which prompt-cache breakpoints are already set.
struct Markable<'m> {
    member: Member,
    memory: Option<&'m Memory>,
}

impl Cacheable for Markable<'_> {
    fn authored(&self, name: &str) -> usize {
        match &self.member {
            Member::Own(value) => value.authored(name),
            Member::Shared(shared) => shared.authored(name),
            Member::Spliced(spliced) => spliced.shared().authored(name),
        }
    }

    fn mark(&mut self, place: CachePlace, ttl: CacheTtl) -> Option<CacheMark> {
        match &mut self.member {
            Member::Own(value) => value.mark(place, ttl),
            Member::Shared(shared) => {
                let (marked, mark) = shared.marked(place, ttl, self.memory)?;
                *shared = marked;
                Some(mark)
            }
            Member::Spliced(spliced) => {
                let (marked, mark) = spliced.shared().marked(place, ttl, self.memory)?;
                **spliced = spliced.with(marked);
                Some(mark)
            }
        }
    }
}

impl Member {
    /// Returns a value with an agent's own system prompt in its holes.
    pub(super) fn splice(shared: Arc<Shared>, prompt: &SystemPrompt) -> Member {
        match shared.holes() {
            0 => Member::Shared(shared),
            _ => Member::Spliced(Box::new(Spliced::new(shared, prompt.clone()))),
        }
    }

    pub(super) fn value(&self) -> &Value {
        match self {
            Member::Own(value) => value,
            Member::Shared(shared) => &shared.value,
            Member::Spliced(spliced) => spliced.value(),
        }
    }

    pub(super) fn into_value(self) -> Value {
        match self {
            Member::Own(value) => value,
            Member::Shared(shared) => shared.value.clone(),
            Member::Spliced(spliced) => spliced.value().clone(),
        }
    }

    /// Returns `true` if several bodies share exactly this value.
    pub(super) fn is_shared(&self) -> bool {
        matches!(self, Member::Shared(_))
    }

    /// Returns the identity that the value shares with other bodies' members.
    pub(super) fn sameness(&self) -> Option<Sameness> {
        match self {
            Member::Shared(shared) => Some(Sameness::Shared(shared.id)),
            Member::Spliced(spliced) => Some(Sameness::Shared(spliced.shared().id)),
            Member::Own(value) => Sameness::of_leaf(value),
        }
    }

    /// Returns the identity of a value that several bodies share unchanged.
    pub(super) fn id(&self) -> Option<Identity> {
        match self {
            Member::Shared(shared) => Some(shared.id),
            Member::Own(_) | Member::Spliced(_) => None,
        }
    }

    /// Returns the text of the value, indented as a member of a body.
    fn pretty(&self) -> Cow<'_, str> {
        match self {
            Member::Own(value) => Cow::Owned(indented(value)),
            Member::Shared(shared) => Cow::Borrowed(shared.pretty()),
            Member::Spliced(spliced) => Cow::Owned(spliced.pretty()),
        }
    }
}

/// Returns a value as JSON with two spaces of indentation, as it appears inside an object.
fn indented(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) => {
            // The value is written as the only element of a list, which indents it by one level.
            let mut text =
                serde_json::to_string_pretty(&[value]).expect("a value serialises into memory");
            text.truncate(text.len() - "\n]".len());
            text.drain(.."[\n  ".len());
            text
        }
        leaf => compact(leaf),
    }
}

/// Returns a name as it appears between quotes.
fn escaped(name: &str) -> Cow<'_, str> {
    match name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    {
        true => Cow::Borrowed(name),
        false => {
            let quoted = compact(name);
            Cow::Owned(quoted[1..quoted.len() - 1].to_owned())
        }
    }
}

/// Returns a value on one line; much faster than its `Display`.
fn compact(value: &(impl serde::Serialize + ?Sized)) -> String {
    serde_json::to_string(value).expect("a value serialises into memory")
}

impl Members {
    pub(super) fn named(&self) -> impl Iterator<Item = (&Arc<str>, &Member)> {
        self.0.iter().map(|(name, member)| (name, member))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Member)> {
        self.0.iter().map(|(name, member)| (&**name, member))
    }

    /// Returns the approximate number of bytes that only this body's members use.
    pub(super) fn weight(&self) -> usize {
        self.iter()
            .map(|(_, member)| match member {
                Member::Own(value) => weight(value),
                Member::Shared(_) => 0,
                Member::Spliced(spliced) => spliced.weight(),
            })
            .sum()
    }

    /// Returns an empty list with room for the members of a profile.
    pub(super) fn with_capacity(len: usize) -> Members {
        // The provider steps add the model and the tools.
        Members(Vec::with_capacity(len + 2))
    }

    /// Adds a member without checking that its name is new, because there may be thousands of
    /// members.
    pub(super) fn add(&mut self, name: Arc<str>, member: Member) {
        self.0.push((name, member));
    }

    /// Removes a member.
    pub(super) fn take(&mut self, name: &str) -> Option<Member> {
        let at = self.0.iter().position(|(known, _)| **known == *name)?;
        Some(self.0.remove(at).1)
    }

    /// Puts a member first, replacing any member with that name.
    pub(super) fn push_front(&mut self, name: Arc<str>, member: Member) {
        self.0.retain(|(known, _)| *known != name);
        self.0.insert(0, (name, member));
    }

    /// Adds the prompt-cache breakpoints.
    pub(super) fn add_cache_control(
        &mut self,
        plan: &CachePlan,
        memory: Option<&Memory>,
    ) -> Vec<CacheMark> {
        let members = std::mem::take(&mut self.0).into_iter();
        let mut markable: Vec<_> = members
            .map(|(name, member)| (name, Markable { member, memory }))
            .collect();
        let marks = add_cache_control(&mut markable, plan);
        self.0.extend(
            markable
                .into_iter()
                .map(|(name, markable)| (name, markable.member)),
        );
        marks
    }

    pub(super) fn to_value(&self) -> Value {
        self.iter()
            .map(|(name, member)| (name.to_owned(), member.value().clone()))
            .collect()
    }

    /// Returns the object indented by two spaces, as `serde_json` writes it.
    pub(super) fn pretty(&self) -> String {
        let texts: Vec<(Cow<'_, str>, Cow<'_, str>)> = self
            .iter()
            .map(|(name, member)| (escaped(name), member.pretty()))
            .collect();
        if texts.is_empty() {
            return "{}".to_owned();
        }
        let len = texts
            .iter()
            .map(|(name, text)| name.len() + text.len() + ",\n  \"\": ".len())
            .sum::<usize>();
        let mut pretty = String::with_capacity(len + "{\n}\n".len());
        let mut before = "{\n  ";
        for (name, text) in texts {
            [before, "\"", &name, "\": ", &text]
                .into_iter()
                .for_each(|piece| pretty.push_str(piece));
            before = ",\n  ";
        }
        pretty.push_str("\n}");
        pretty
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(Value::from),
            any::<bool>().prop_map(Value::from),
            "[a\"\n\\\\é ]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-c\n\"]{0,2}", inner, 0..4)
                    .prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    #[test]
    fn a_member_replaces_the_one_with_its_name() {
        let own = |number: i64| Member::Own(number.into());
        let mut members = Members::default();
        for (name, number) in [("tools", 1), ("model", 2), ("a", 3)] {
            members.add(Arc::from(name), own(number));
        }
        members.push_front(Arc::from("model"), own(5));
        let tools = members.take("tools").expect("it is there");
        members.add(Arc::from("tools"), tools);
        assert!(members.take("x").is_none());
        assert_eq!(
            members.to_value().to_string(),
            r#"{"model":5,"a":3,"tools":1}"#
        );
    }

    proptest! {
        #[test]
        fn the_text_of_the_members_is_the_text_of_the_object(
            members in prop::collection::btree_map("[a-z\n\"]{1,2}", (value(), any::<bool>()), 0..5)
        ) {
            let mut built = Members::default();
            for (name, (value, is_shared)) in members {
                let member = if is_shared { Member::Shared(Arc::new(Shared::new(value))) } else { Member::Own(value) };
                built.add(Arc::from(name), member);
            }
            prop_assert_eq!(built.pretty(), serde_json::to_string_pretty(&built.to_value()).expect("serialises"));
        }
    }
}
