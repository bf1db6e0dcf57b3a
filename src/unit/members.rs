//! The members of a body, in order. What several bodies have in common is held once, with its text as golden files have it.

mod hollow;

use std::any::Any;
use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::Value;

use super::memo::Weight;
use super::prompt::SystemPrompt;
use crate::json::Pointer;
use crate::provider::{CacheMark, CachePlace, CachePlan, CacheTtl, Cacheable, add_cache_control};
pub(super) use hollow::Class;
pub(crate) use hollow::Texts;
use hollow::{Holes, Spliced};

/// The members of a body, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Members(Vec<(Arc<str>, Member)>);

/// The value of a member.
#[derive(Debug, Clone)]
pub(super) enum Member {
    /// Of this body alone.
    Own(Value),
    /// Of every body that needs it.
    Shared(Arc<Shared>),
    /// Of every body that needs it, with this body's system prompt in it.
    Spliced(Box<Spliced>),
}

/// A value that several bodies hold.
#[derive(Debug)]
pub(super) struct Shared {
    value: Value,
    pretty: OnceLock<Box<str>>,
    accepted: Accepted,
    followed: Followed,
    /// The breakpoints of the prompt cache that the author set, if these are messages.
    authored: OnceLock<usize>,
    marked: Mutex<Vec<Marked>>,
    /// What is wrong with it, by who says so and the member's name.
    told: Mutex<Vec<(usize, Box<str>, Told)>>,
    /// Where each body has its system prompt.
    holes: Option<Holes>,
}

/// A value with a breakpoint more.
#[derive(Debug)]
struct Marked {
    place: CachePlace,
    ttl: CacheTtl,
    /// `None` if there is no place for it.
    value: Option<(Arc<Shared>, CacheMark)>,
}

/// A member of a body, to be checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemberRef<'b> {
    /// Its name.
    pub(crate) name: &'b str,
    held: Held<'b>,
}

#[derive(Debug, Clone, Copy)]
enum Held<'b> {
    Value(&'b Value),
    Member(&'b Member),
}

/// A member that can be told from others later: what it holds is held by several bodies, or is short.
#[derive(Debug)]
pub(crate) struct Kept {
    name: Box<str>,
    value: KeptValue,
}

#[derive(Debug)]
enum KeptValue {
    Shared(Arc<Shared>),
    Leaf(Value),
}

/// What is wrong with a value, in a form that those who tell it know.
type Told = Arc<dyn Any + Send + Sync>;

/// Tells checks of a value apart: the same number means the same check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CheckId(pub(crate) u16);

/// A check of a value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Check {
    pub(crate) id: CheckId,
    pub(crate) accepts: fn(&Value) -> bool,
    /// What it can tell of texts; `None` if that is not known.
    pub(crate) texts: Option<Texts>,
}

/// The checks that accepted a value last: they need not look at it again. The value never changes, so a mark stands for nothing but
/// itself.
#[derive(Debug, Default)]
pub(crate) struct Accepted([AtomicU64; 4]);

impl Accepted {
    /// As a mark of 16 bits: no check is zero.
    fn mark(check: CheckId) -> u64 {
        u64::from(check.0) + 1
    }

    /// Whether a check is among the last sixteen that accepted the value: agents of several formats, servers and models may hold it.
    pub(crate) fn is_noted(&self, check: CheckId) -> bool {
        let mark = Accepted::mark(check);
        let marks = self.0.iter().map(|marks| marks.load(Ordering::Relaxed)).take_while(|marks| *marks != 0);
        { marks }.any(|marks| (0..4).any(|at| (marks >> (16 * at)) & 0xffff == mark))
    }

    /// Notes that a check accepts the value; not of the last number that there is, whose mark has no place.
    pub(crate) fn note(&self, check: CheckId) {
        let mut mark = Accepted::mark(check);
        if mark > 0xffff {
            return;
        }
        for noted in &self.0 {
            let marks = noted.load(Ordering::Relaxed);
            noted.store((marks << 16) | mark, Ordering::Relaxed);
            mark = marks >> 48;
            if mark == 0 {
                return;
            }
        }
    }

    /// Whether a check accepts a value, which never changes.
    fn by(&self, check: &Check, value: &Value) -> bool {
        if self.is_noted(check.id) {
            return true;
        }
        let is_accepted = (check.accepts)(value);
        if is_accepted {
            self.note(check.id);
        }
        is_accepted
    }
}

/// By which rules a history was followed and found good, or other values that rules look at alone.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    /// By those that look at it alone.
    pub(crate) alone: Accepted,
    /// By those that look at other members too, with these.
    beside: Mutex<Vec<(CheckId, Vec<Kept>)>>,
}

impl Followed {
    /// The most sets of other members that are remembered.
    const MOST: usize = 64;

    /// Whether it was found good beside some members.
    pub(crate) fn is_noted(&self, check: CheckId, members: &[MemberRef<'_>]) -> bool {
        let beside = self.beside.lock().unwrap_or_else(PoisonError::into_inner);
        beside.iter().any(|(known, kept)| *known == check && MemberRef::are_kept(members.iter().copied(), kept))
    }

    /// Notes that it is good beside some members, none of which may be the history.
    pub(crate) fn note(&self, check: CheckId, members: &[MemberRef<'_>]) {
        let kept: Option<Vec<Kept>> = members.iter().map(MemberRef::keep).collect();
        let mut beside = self.beside.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = kept.filter(|_| beside.len() < Followed::MOST) {
            beside.push((check, kept));
        }
    }
}

impl<'b> MemberRef<'b> {
    /// A value that is held nowhere else.
    pub(crate) fn new(name: &'b str, value: &'b Value) -> MemberRef<'b> {
        MemberRef { name, held: Held::Value(value) }
    }

    pub(super) fn of(name: &'b str, member: &'b Member) -> MemberRef<'b> {
        MemberRef { name, held: Held::Member(member) }
    }

    /// Its value.
    pub(crate) fn value(&self) -> &'b Value {
        match self.held {
            Held::Value(value) => value,
            Held::Member(member) => member.value(),
        }
    }

    /// Its value as all bodies hold it that share it: where each has a system prompt of its own, the placeholder stands for
    /// that.
    pub(crate) fn shared_value(&self) -> &'b Value {
        match self.held {
            Held::Member(Member::Spliced(spliced)) => spliced.shared().value(),
            _ => self.value(),
        }
    }

    /// Where the value is held that other bodies hold too; `None` if it is of this body alone.
    pub(crate) fn address(&self) -> Option<usize> {
        match self.held {
            Held::Member(Member::Shared(shared)) => Some(Arc::as_ptr(shared).addr()),
            Held::Member(Member::Spliced(spliced)) => Some(Arc::as_ptr(spliced.shared()).addr()),
            _ => None,
        }
    }

    /// The system prompt that stands where `shared_value` has the placeholder.
    pub(crate) fn prompt(&self) -> Option<&'b SystemPrompt> {
        match self.held {
            Held::Member(Member::Spliced(spliced)) => Some(spliced.prompt()),
            _ => None,
        }
    }

    /// What rules of protocols know of a value that other bodies hold too.
    pub(crate) fn followed(&self) -> Option<&'b Followed> {
        match self.held {
            Held::Member(Member::Shared(shared)) => Some(&shared.followed),
            Held::Member(Member::Spliced(spliced)) => Some(&spliced.shared().followed),
            _ => None,
        }
    }

    /// What tells whether another body has the same member, but for the system prompts of agents; `None` if it has it for itself.
    pub(crate) fn keep(&self) -> Option<Kept> {
        let value = match self.held {
            Held::Member(Member::Shared(shared)) => KeptValue::Shared(Arc::clone(shared)),
            Held::Member(Member::Spliced(spliced)) => KeptValue::Shared(Arc::clone(spliced.shared())),
            Held::Member(Member::Own(leaf)) if !leaf.is_array() && !leaf.is_object() => KeptValue::Leaf(leaf.clone()),
            _ => return None,
        };
        Some(Kept { name: self.name.into(), value })
    }

    /// Whether members are the same, one by one.
    pub(crate) fn are_kept(mut members: impl Iterator<Item = MemberRef<'b>>, kept: &[Kept]) -> bool {
        kept.iter().all(|kept| members.next().is_some_and(|member| member.is_kept(kept))) && members.next().is_none()
    }

    /// Whether it is the same member.
    fn is_kept(&self, kept: &Kept) -> bool {
        *self.name == *kept.name
            && match (self.held, &kept.value) {
                (Held::Member(Member::Shared(shared)), KeptValue::Shared(kept)) => {
                    Arc::ptr_eq(shared, kept) || is_same_leaf(&shared.value, &kept.value)
                }
                (Held::Member(Member::Spliced(spliced)), KeptValue::Shared(kept)) => {
                    Arc::ptr_eq(spliced.shared(), kept)
                }
                (Held::Member(Member::Own(value)), KeptValue::Leaf(kept)) => value == kept,
                _ => false,
            }
    }

    /// What somebody has to tell of the value, worked out once for all bodies that hold it.
    pub(crate) fn told<T: Any + Send + Sync>(&self, teller: usize, tell: impl FnOnce() -> T) -> Arc<T> {
        match self.held {
            Held::Member(Member::Shared(shared)) => shared.told(teller, self.name, tell),
            _ => Arc::new(tell()),
        }
    }

    /// Whether a check accepts the value, which it is not asked again if it did before.
    pub(crate) fn is_accepted(&self, check: &Check) -> bool {
        match self.held {
            Held::Member(Member::Shared(shared)) => shared.accepted.by(check, &shared.value),
            Held::Member(Member::Spliced(spliced)) => spliced.is_accepted(check),
            _ => (check.accepts)(self.value()),
        }
    }
}

/// Whether two values are the same, of which neither is a list or an object.
fn is_same_leaf(one: &Value, other: &Value) -> bool {
    !one.is_array() && !one.is_object() && one == other
}

impl Shared {
    pub(super) fn new(value: Value) -> Shared {
        let (accepted, followed) = (Accepted::default(), Followed::default());
        let (pretty, authored, marked, told) = (OnceLock::new(), OnceLock::new(), Mutex::default(), Mutex::default());
        Shared { value, pretty, accepted, followed, authored, marked, told, holes: None }
    }

    /// A value in which the placeholder stands for the system prompt of each body.
    pub(super) fn hollow(value: Value) -> Shared {
        let holes = Holes::of(&value);
        Shared { holes, ..Shared::new(value) }
    }

    pub(super) fn value(&self) -> &Value {
        &self.value
    }

    /// How often each body has its system prompt in it.
    pub(super) fn holes(&self) -> usize {
        self.holes.as_ref().map_or(0, Holes::count)
    }

    /// Its text, indented as a member of a body.
    fn pretty(&self) -> &str {
        self.pretty.get_or_init(|| indented(&self.value).into())
    }

    fn told<T: Any + Send + Sync>(&self, teller: usize, name: &str, tell: impl FnOnce() -> T) -> Arc<T> {
        let lock = || self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let known =
            lock().iter().find(|known| (known.0, &*known.1) == (teller, name)).map(|known| Arc::clone(&known.2));
        let told = known.unwrap_or_else(|| {
            let told: Told = Arc::new(tell());
            lock().push((teller, name.into(), Arc::clone(&told)));
            told
        });
        told.downcast().unwrap_or_else(|_| unreachable!("each teller has a form of its own"))
    }

    fn marked(&self, place: CachePlace, ttl: CacheTtl) -> Option<(Arc<Shared>, CacheMark)> {
        let mut known = self.marked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.iter().find(|known| (known.place, known.ttl) == (place, ttl)) {
            return found.value.clone();
        }
        let mut value = self.value.clone();
        let again = if self.holes.is_some() { Shared::hollow } else { Shared::new };
        let value = value.mark(place, ttl).map(|mark| (Arc::new(again(value)), mark));
        known.push(Marked { place, ttl, value: value.clone() });
        value
    }

    fn authored(&self, name: &str) -> usize {
        match name {
            "messages" => *self.authored.get_or_init(|| self.value.authored(name)),
            _ => self.value.authored(name),
        }
    }
}

impl Cacheable for Member {
    fn authored(&self, name: &str) -> usize {
        match self {
            Member::Own(value) => value.authored(name),
            Member::Shared(shared) => shared.authored(name),
            Member::Spliced(spliced) => spliced.shared().authored(name),
        }
    }

    fn mark(&mut self, place: CachePlace, ttl: CacheTtl) -> Option<CacheMark> {
        match self {
            Member::Own(value) => value.mark(place, ttl),
            Member::Shared(shared) => {
                let (marked, mark) = shared.marked(place, ttl)?;
                *shared = marked;
                Some(mark)
            }
            Member::Spliced(spliced) => {
                let (marked, mark) = spliced.shared().marked(place, ttl)?;
                **spliced = spliced.with(marked);
                Some(mark)
            }
        }
    }
}

impl Member {
    /// A value with an agent's own system prompt in its holes.
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

    /// Whether several bodies hold just this value.
    pub(super) fn is_shared(&self) -> bool {
        matches!(self, Member::Shared(_))
    }

    /// The text of the value, indented as a member of a body.
    fn pretty(&self) -> Cow<'_, str> {
        match self {
            Member::Own(value) => Cow::Owned(indented(value)),
            Member::Shared(shared) => Cow::Borrowed(shared.pretty()),
            Member::Spliced(spliced) => Cow::Owned(spliced.pretty()),
        }
    }
}

/// A value with two spaces of indentation, one level deep.
fn indented(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) => {
            // As the only element of a list: that is one level deep.
            let mut text = serde_json::to_string_pretty(&[value]).expect("a value serialises into memory");
            text.truncate(text.len() - "\n]".len());
            text.drain(.."[\n  ".len());
            text
        }
        leaf => compact(leaf),
    }
}

/// A name as it stands between quotes.
fn escaped(name: &str) -> Cow<'_, str> {
    match name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        true => Cow::Borrowed(name),
        false => {
            let quoted = compact(name);
            Cow::Owned(quoted[1..quoted.len() - 1].to_owned())
        }
    }
}

/// A value on one line; a good deal faster than its `Display`.
fn compact(value: &(impl serde::Serialize + ?Sized)) -> String {
    serde_json::to_string(value).expect("a value serialises into memory")
}

impl Members {
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Member)> {
        self.0.iter().map(|(name, member)| (&**name, member))
    }

    /// About how many bytes the members of this body alone hold.
    pub(super) fn weight(&self) -> usize {
        let own = |(_, member): (&str, &Member)| match member {
            Member::Own(value) => value.weight(),
            Member::Shared(_) => 0,
            Member::Spliced(spliced) => spliced.weight(),
        };
        self.iter().map(own).sum()
    }

    /// How often the system prompt was put into values that other bodies hold too.
    pub(super) fn holes(&self) -> usize {
        let spliced = |(_, member): (&str, &Member)| match member {
            Member::Spliced(spliced) => spliced.shared().holes(),
            Member::Own(_) | Member::Shared(_) => 0,
        };
        self.iter().map(spliced).sum()
    }

    /// About how many bytes a member holds that other bodies hold too.
    pub(super) fn shared_weight(&self, at: &Pointer) -> usize {
        let is_there = |name: &str| Pointer::root().member(name) == *at;
        let found = self.iter().find(|(name, member)| member.is_shared() && is_there(name));
        found.map_or(0, |(_, member)| member.value().weight())
    }

    /// No members yet, with room for those of a profile.
    pub(super) fn with_capacity(len: usize) -> Members {
        // Beside those of the profile: the model, and the tools.
        Members(Vec::with_capacity(len + 2))
    }

    /// Adds a member whose name no other has. That is not looked up: there may be thousands.
    pub(super) fn add(&mut self, name: Arc<str>, member: Member) {
        self.0.push((name, member));
    }

    /// Takes a member out.
    pub(super) fn take(&mut self, name: &str) -> Option<Member> {
        let at = self.0.iter().position(|(known, _)| **known == *name)?;
        Some(self.0.remove(at).1)
    }

    /// Adds a member at the beginning, instead of any other with its name.
    pub(super) fn push_front(&mut self, name: Arc<str>, member: Member) {
        self.0.retain(|(known, _)| *known != name);
        self.0.insert(0, (name, member));
    }

    /// The prompt-cache step.
    pub(super) fn add_cache_control(&mut self, plan: &CachePlan) -> Vec<CacheMark> {
        add_cache_control(&mut self.0, plan)
    }

    pub(super) fn to_value(&self) -> Value {
        self.iter().map(|(name, member)| (name.to_owned(), member.value().clone())).collect()
    }

    /// The object with two spaces of indentation, as `serde_json` writes it.
    pub(super) fn pretty(&self) -> String {
        let texts: Vec<(Cow<'_, str>, Cow<'_, str>)> =
            self.iter().map(|(name, member)| (escaped(name), member.pretty())).collect();
        if texts.is_empty() {
            return "{}".to_owned();
        }
        let len = texts.iter().map(|(name, text)| name.len() + text.len() + ",\n  \"\": ".len()).sum::<usize>();
        let mut pretty = String::with_capacity(len + "{\n}\n".len());
        let mut before = "{\n  ";
        for (name, text) in texts {
            [before, "\"", &name, "\": ", &text].into_iter().for_each(|piece| pretty.push_str(piece));
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
    fn the_last_sixteen_checks_that_accepted_a_value_are_known() {
        let accepted = Accepted::default();
        (0..=20).for_each(|check| accepted.note(CheckId(check)));
        accepted.note(CheckId(u16::MAX));
        let known: Vec<u16> = (0..=21).filter(|&check| accepted.is_noted(CheckId(check))).collect();
        assert_eq!(known, (5..=20).collect::<Vec<_>>());
        assert!(!accepted.is_noted(CheckId(u16::MAX)));
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
        assert_eq!(members.to_value().to_string(), r#"{"model":5,"a":3,"tools":1}"#);
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
