//! Lists whose elements are one of several things: `oneOf` with a discriminator.
//!
//! The discriminator picks the only alternative that can take an element. So each alternative is compiled when an element
//! first picks it, and an extended schema compiles only those whose elements the plain one refuses.

use std::collections::HashMap;
use std::sync::OnceLock;

use jsonschema::Validator;
use serde_json::{Map, Value};

use super::explain::follow;

/// The schema of such a list, taken apart.
pub(super) struct Elements {
    key: String,
    len: std::ops::RangeInclusive<u64>,
    alternatives: Vec<Alternative>,
    /// Which alternative each value of the discriminator picks.
    by_value: HashMap<String, usize>,
    /// What an element without the discriminator picks.
    default: Option<usize>,
}

struct Alternative {
    /// Where in the document.
    pointer: String,
    /// `None` if it cannot be compiled.
    validator: OnceLock<Option<Validator>>,
}

/// Keywords of a list that can be asked without a validator, or say nothing of it.
const OF_LISTS: [&str; 5] = ["type", "items", "minItems", "maxItems", "description"];
/// Keywords of its elements' schema.
const OF_ELEMENTS: [&str; 3] = ["oneOf", "x-reqc-discriminator", "x-reqc-discriminator-default"];

impl Elements {
    /// The parts of the schema at a pointer of a document; `None` if they would not keep its meaning.
    pub(super) fn of(document: &Value, pointer: &str) -> Option<Elements> {
        let list = document.pointer(pointer)?.as_object()?;
        let items = list.get("items")?.as_object()?;
        let may_hold_array = match list.get("type")? {
            Value::Array(types) => types.iter().any(|name| name == "array"),
            name => name == "array",
        };
        if !may_hold_array || !has_only(list, &OF_LISTS) || !has_only(items, &OF_ELEMENTS) {
            return None;
        }
        let bound = |name: &str, otherwise: u64| list.get(name).map_or(Some(otherwise), Value::as_u64);
        let key = items.get("x-reqc-discriminator")?.as_str()?;
        let (mut alternatives, mut by_value, mut without_key) = (Vec::new(), HashMap::new(), Vec::new());
        for (index, schema) in items.get("oneOf")?.as_array()?.iter().enumerate() {
            let schema = follow(document, schema);
            for value in values(schema, key)? {
                if by_value.insert(value, index).is_some() {
                    return None;
                }
            }
            let required = schema.get("required").and_then(Value::as_array);
            if !required.is_some_and(|names| names.iter().any(|name| name == key)) {
                without_key.push(index);
            }
            let pointer = format!("{pointer}/items/oneOf/{index}");
            alternatives.push(Alternative { pointer, validator: OnceLock::new() });
        }
        let default = without_key.first().copied().filter(|_| without_key.len() == 1);
        let len = bound("minItems", 0)?..=bound("maxItems", u64::MAX)?;
        Some(Elements { key: key.to_owned(), len, alternatives, by_value, default })
    }

    /// Whether the schema takes a list. What `narrower` takes, which this one only widens, is not looked at again.
    /// `compile` makes the validator of a pointer.
    pub(super) fn accept(
        &self,
        list: &[Value],
        narrower: Option<&Elements>,
        compile: impl Fn(&str) -> Option<Validator>,
    ) -> bool {
        let known = |element: &Value| {
            let alternative = narrower.and_then(|narrower| narrower.alternative(element));
            let validator = alternative.and_then(|alternative| alternative.validator.get()?.as_ref());
            validator.is_some_and(|validator| validator.is_valid(element))
        };
        let takes = |element: &Value| {
            let Some(alternative) = self.alternative(element) else { return false };
            let validator = alternative.validator.get_or_init(|| compile(&alternative.pointer));
            validator.as_ref().is_some_and(|validator| validator.is_valid(element))
        };
        self.len.contains(&(list.len() as u64)) && list.iter().all(|element| known(element) || takes(element))
    }

    /// The only alternative that can take an element.
    fn alternative(&self, element: &Value) -> Option<&Alternative> {
        let index = match element.as_object()?.get(&self.key) {
            Some(value) => *self.by_value.get(value.as_str()?)?,
            None => self.default?,
        };
        self.alternatives.get(index)
    }
}

fn has_only(schema: &Map<String, Value>, keywords: &[&str]) -> bool {
    schema.keys().all(|key| keywords.contains(&key.as_str()))
}

/// The values of the discriminator that an alternative takes; `None` if it may take others.
fn values(alternative: &Value, key: &str) -> Option<Vec<String>> {
    if alternative.get("type")? != "object" {
        return None;
    }
    let property = alternative.get("properties")?.get(key)?;
    let listed = match (property.get("const"), property.get("enum")) {
        (Some(value), _) => std::slice::from_ref(value),
        (None, values) => values?.as_array()?.as_slice(),
    };
    listed.iter().map(|value| value.as_str().map(str::to_owned)).collect()
}
