//! Converts template data to values of the engine.

use std::sync::Arc;

use minijinja::Value;
use serde_json::{Number, Value as Json};

use crate::conversation::{Conversation, DataValues};
use crate::memory::Identity;

/// The members of `ctx` for one conversation, built once and shared by all agents and threads.
#[derive(Debug, Clone)]
pub struct ContextData {
    members: Vec<(Arc<str>, Value)>,
    ctx: Value,
    id: Identity,
}

impl ContextData {
    /// Converts a conversation's template data.
    pub fn new(conversation: &Conversation) -> ContextData {
        let data = conversation.template_data_in::<EngineValues>();
        let members: Vec<(Arc<str>, Value)> = data
            .into_iter()
            .map(|(key, value)| (Arc::from(key), value))
            .collect();
        let ctx = Value::from_pairs(members.iter().cloned());
        ContextData {
            members,
            ctx,
            id: Identity::new(),
        }
    }

    /// Returns the identity of the data, for cache keys.
    pub(crate) fn id(&self) -> Identity {
        self.id
    }

    /// Returns `ctx` with a system prompt.
    pub(super) fn with_system_prompt(&self, text: Option<&str>) -> Value {
        match text {
            None => self.ctx.clone(),
            Some(text) => {
                let prompt = (
                    Arc::from("system_prompt"),
                    Value::from(Arc::<str>::from(text)),
                );
                Value::from_pairs(std::iter::once(prompt).chain(self.members.iter().cloned()))
            }
        }
    }
}

/// Template data as values of the engine.
struct EngineValues;

impl DataValues for EngineValues {
    type Value = Value;

    fn text(text: &str) -> Value {
        Value::from(Arc::<str>::from(text))
    }

    fn flag(flag: bool) -> Value {
        Value::from(flag)
    }

    fn json(json: &Json) -> Value {
        to_value(json)
    }

    fn list(elements: Vec<Value>) -> Value {
        Value::from(elements)
    }

    fn object(members: Vec<(&'static str, Value)>) -> Value {
        Value::from_pairs(members)
    }
}

/// Returns a JSON value as a template value.
pub(super) fn to_value(json: &Json) -> Value {
    match json {
        Json::Null => Value::from(()),
        Json::Bool(flag) => Value::from(*flag),
        Json::Number(number) => number_value(number),
        Json::String(text) => Value::from(Arc::<str>::from(text.as_str())),
        Json::Array(elements) => elements.iter().map(to_value).collect(),
        Json::Object(members) => Value::from_pairs(
            members
                .iter()
                .map(|(key, value)| (Arc::<str>::from(key.as_str()), to_value(value))),
        ),
    }
}

fn number_value(number: &Number) -> Value {
    match (number.as_i64(), number.as_u64(), number.as_f64()) {
        (Some(integer), ..) => Value::from(integer),
        (_, Some(integer), _) => Value::from(integer),
        (.., float) => Value::from(float.unwrap_or(f64::NAN)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_order_survive() {
        let json: Json = serde_json::from_str(
            r#"{"z":[9007199254740993,18446744073709551615,-1,1.0,null],"a":""}"#,
        )
        .expect("valid");
        let value = to_value(&json);
        assert_eq!(
            super::super::writing::to_json(&value).expect("serialises"),
            json.to_string()
        );
    }
}
