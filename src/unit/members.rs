//! The members of a body, in order. What several bodies have in common is held once, with its text as golden files have it.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

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
}

/// A value that several bodies hold.
#[derive(Debug)]
pub(super) struct Shared {
    id: SharedId,
    value: Value,
    pretty: OnceLock<Box<str>>,
}

/// Tells the values apart that several bodies hold: whoever looked at one need not look again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SharedId(u64);

impl Shared {
    pub(super) fn new(value: Value) -> Shared {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Shared { id: SharedId(NEXT.fetch_add(1, Ordering::Relaxed)), value, pretty: OnceLock::new() }
    }
}

impl Member {
    pub(super) fn value(&self) -> &Value {
        match self {
            Member::Own(value) => value,
            Member::Shared(shared) => &shared.value,
        }
    }

    pub(super) fn into_value(self) -> Value {
        match self {
            Member::Own(value) => value,
            Member::Shared(shared) => shared.value.clone(),
        }
    }

    pub(super) fn shared_id(&self) -> Option<SharedId> {
        match self {
            Member::Own(_) => None,
            Member::Shared(shared) => Some(shared.id),
        }
    }

    /// The text of the value, indented as a member of a body.
    fn pretty(&self) -> Cow<'_, str> {
        match self {
            Member::Own(value) => Cow::Owned(indented(value)),
            Member::Shared(shared) => Cow::Borrowed(shared.pretty.get_or_init(|| indented(&shared.value).into())),
        }
    }
}

/// A value with two spaces of indentation, one level deep. Strings hold no raw line breaks, so every one is between values.
fn indented(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) => {
            let text = serde_json::to_string_pretty(value).expect("a value serialises into memory");
            text.replace('\n', "\n  ")
        }
        leaf => leaf.to_string(),
    }
}

impl Members {
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Member)> {
        self.0.iter().map(|(name, member)| (&**name, member))
    }

    /// Adds a member at the end, instead of any other with its name.
    pub(super) fn push(&mut self, name: Arc<str>, member: Member) {
        self.0.retain(|(known, _)| *known != name);
        self.0.push((name, member));
    }

    /// Adds a member at the beginning, instead of any other with its name.
    pub(super) fn push_front(&mut self, name: Arc<str>, member: Member) {
        self.0.retain(|(known, _)| *known != name);
        self.0.insert(0, (name, member));
    }

    /// Changes the members as one object. None of them is shared any longer.
    pub(super) fn edit(&mut self, change: impl FnOnce(&mut Map<String, Value>)) {
        let owned = std::mem::take(&mut self.0).into_iter();
        let mut members: Map<String, Value> =
            owned.map(|(name, member)| (name.to_string(), member.into_value())).collect();
        change(&mut members);
        self.0 = members.into_iter().map(|(name, value)| (Arc::from(name), Member::Own(value))).collect();
    }

    pub(super) fn to_value(&self) -> Value {
        self.iter().map(|(name, member)| (name.to_owned(), member.value().clone())).collect()
    }

    /// The object with two spaces of indentation, as `serde_json` writes it.
    pub(super) fn pretty(&self) -> String {
        let texts: Vec<(String, Cow<'_, str>)> =
            self.iter().map(|(name, member)| (Value::from(name).to_string(), member.pretty())).collect();
        if texts.is_empty() {
            return "{}".to_owned();
        }
        let len = texts.iter().map(|(name, text)| name.len() + text.len() + ",\n  : ".len()).sum::<usize>();
        let mut pretty = String::with_capacity(len + "{\n}\n".len());
        let mut before = "{\n  ";
        for (name, text) in texts {
            [before, &name, ": ", &text].into_iter().for_each(|piece| pretty.push_str(piece));
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
        for (name, number) in [("tools", 1), ("model", 2), ("a", 3), ("tools", 4)] {
            members.push(Arc::from(name), own(number));
        }
        members.push_front(Arc::from("model"), own(5));
        assert_eq!(members.to_value().to_string(), r#"{"model":5,"a":3,"tools":4}"#);
    }

    proptest! {
        #[test]
        fn the_text_of_the_members_is_the_text_of_the_object(
            members in prop::collection::btree_map("[a-z\n\"]{1,2}", (value(), any::<bool>()), 0..5)
        ) {
            let mut built = Members::default();
            for (name, (value, is_shared)) in members {
                let member = if is_shared { Member::Shared(Arc::new(Shared::new(value))) } else { Member::Own(value) };
                built.push(Arc::from(name), member);
            }
            prop_assert_eq!(built.pretty(), serde_json::to_string_pretty(&built.to_value()).expect("serialises"));
        }
    }
}
