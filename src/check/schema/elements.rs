//! Lists whose elements are distinguished by one of their members, such as the role of a message.
//! Each element is validated only against the alternative that this member selects.

use std::ops::RangeInclusive;
use std::sync::OnceLock;

use jsonschema::Validator;
use serde_json::{Map, Value};

use super::cost::cost_of;
use super::explain::{
    Alternatives, Choice, Explaining, Found, KnownSchema, MAX_PROBLEMS, branches,
};
use super::graph::{Graph, SchemaId};
use super::mistake::Mistake;
use super::node::follow;
use crate::json::Pointer;

/// The alternatives for the elements of a list that is a member of a body.
pub(super) struct Elements {
    /// The location of the alternatives in the schema.
    place: String,
    choice: Choice,
    alternatives: Vec<Alternative>,
    lengths: RangeInclusive<u64>,
}

struct Alternative {
    /// The reference to the schema of the alternative.
    reference: String,
    id: SchemaId,
    validator: OnceLock<Validator>,
}

impl Elements {
    /// Returns the alternatives for the elements of a member; `None` if several alternatives may
    /// apply to an element, or if the list has other constraints.
    pub(super) fn of(schema: &Value, graph: &Graph, name: &str) -> Option<Elements> {
        let list = schema.get("properties")?.get(name)?;
        let items = list.get("items")?;
        if !asks_only(list, &["type", "items", "minItems", "maxItems"])
            || !asks_only(items, &["oneOf"])
        {
            return None;
        }
        let choice = Choice::of(schema, Some(items), "oneOf");
        let is_apart = choice.is_exclusive(|index| {
            let branch = follow(schema, branches(Some(items), "oneOf").nth(index)?);
            branch.get("required")?.as_array()
        });
        Some(Elements {
            place: Pointer::root()
                .member("properties")
                .member(name)
                .member("items")
                .member("oneOf")
                .to_string(),
            alternatives: branches(Some(items), "oneOf")
                .map(|it| Alternative::of(graph, it))
                .collect::<Option<_>>()?,
            lengths: length("minItems", list).unwrap_or(0)
                ..=length("maxItems", list).unwrap_or(u64::MAX),
            choice,
        })
        .filter(|_| is_apart)
    }

    /// Returns the mistakes in a list; `None` if they cannot be found element by element, or if
    /// that takes more work than `limit`.
    pub(super) fn mistakes(
        &self,
        schema: KnownSchema<'_>,
        graph: &Graph,
        list: &Found<'_>,
        limit: u64,
    ) -> Option<Vec<Mistake>> {
        let at = &list.at;
        let list = list
            .value
            .as_array()
            .filter(|list| self.lengths.contains(&(list.len() as u64)))?;
        let (mut mistakes, mut left) = (Vec::new(), limit);
        for (index, element) in list.iter().enumerate() {
            let found = Found {
                at: at.element(index),
                value: element,
            };
            let mut explaining = Explaining::part(schema, found.clone(), mistakes);
            let mut work = |index: usize| {
                let cost = cost_of(graph, self.alternatives[index].id, element);
                left = left.checked_sub(cost?)?;
                Some(())
            };
            let mut is_told = Some(());
            let alternatives = Alternatives {
                path: &self.place,
                choice: &self.choice,
            };
            let is_picked = explaining.picked(alternatives, &found, |explaining, index| {
                let validator = self.alternatives[index].validator(schema.value);
                if validator.is_valid(element) {
                    return;
                }
                is_told = work(index);
                if is_told.is_some() {
                    validator
                        .iter_errors(element)
                        .for_each(|error| explaining.error(&error));
                }
            });
            is_told.filter(|()| is_picked)?;
            mistakes = explaining.mistakes;
            if mistakes.len() > MAX_PROBLEMS {
                break;
            }
        }
        Some(mistakes)
    }
}

fn length(keyword: &str, list: &Value) -> Option<u64> {
    list.get(keyword).and_then(Value::as_u64)
}

fn asks_only(node: &Value, keywords: &[&str]) -> bool {
    let is_note =
        |keyword: &str| keyword.starts_with("x-reqc-discriminator") || keyword == "description";
    let mut asked = node.as_object().into_iter().flat_map(Map::keys);
    asked.all(|keyword| keywords.contains(&keyword.as_str()) || is_note(keyword))
}

impl Alternative {
    /// Returns the alternative if `branch` is a reference to a definition.
    fn of(graph: &Graph, branch: &Value) -> Option<Alternative> {
        let keywords = branch.as_object().filter(|keywords| keywords.len() == 1)?;
        let reference = keywords
            .get("$ref")?
            .as_str()
            .filter(|reference| reference.starts_with("#/$defs/"))?;
        let id = graph.find(reference.strip_prefix('#')?)?;
        Some(Alternative {
            reference: reference.to_owned(),
            id,
            validator: OnceLock::new(),
        })
    }

    fn validator(&self, schema: &Value) -> &Validator {
        self.validator.get_or_init(|| {
            let alone = serde_json::json!({"$ref": self.reference, "$defs": schema.get("$defs")});
            super::validator::validator(&alone).expect("a part of a schema that was compiled")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::explain;
    use super::super::validator::validator;
    use super::*;
    use crate::check::schema::explain::Known;
    use serde_json::json;

    /// Returns the mistakes that are found element by element, and those that the whole schema
    /// finds.
    fn both(file: &str, name: &str, list: &Value) -> (Option<Vec<Mistake>>, Vec<Mistake>) {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("schemas/wire")
            .join(file);
        #[expect(clippy::disallowed_methods, reason = "a test reads the bundled schema")]
        let schema: Value = std::fs::read_to_string(path)
            .expect("a file")
            .parse()
            .expect("JSON");
        let schema = json!({"properties": schema["properties"], "$defs": schema["$defs"]});
        let (graph, known) = (Graph::of(&schema).expect("usable"), Known::default());
        let at = Pointer::root().member(name);
        let elements = Elements::of(&schema, &graph, name).expect("a list of alternatives");
        let known = KnownSchema {
            value: &schema,
            known: &known,
        };
        let found = Found { at, value: list };
        let of_elements = elements.mistakes(known, &graph, &found, 1_000_000);
        let (validator, body) = (validator(&schema).expect("usable"), json!({name: list}));
        (
            of_elements,
            explain::mistakes(known, &validator, &body, &body),
        )
    }

    #[test]
    fn elements_are_told_as_by_the_whole_schema() {
        let messages = json!([
            {"role": "user", "content": "right"},
            {"role": "usr", "content": "x"},
            {"content": "x"},
            {"role": "user", "contents": "x"},
            {"role": "assistant", "content": [{"type": "txt", "text": "x"}, {"type": "text"}]},
            {"role": "tool", "content": 7, "tool_call_id": 8, "name": {}},
            {"role": "assistant", "content": null, "tool_calls": [{"id": "", "type": "function", "function": {}}]},
        ]);
        for file in [
            "openai-chat",
            "mistral-chat",
            "ollama-chat",
            "anthropic-messages",
        ] {
            let (of_elements, of_all) = both(&format!("{file}.schema.json"), "messages", &messages);
            assert!(of_all.len() > 4, "{file}: {of_all:?}");
            assert_eq!(of_elements.as_ref(), Some(&of_all), "{file}");
        }
        let items = json!([
            {"role": "user", "content": "right"},
            {"type": "mesage", "role": "user", "content": "x"},
            {"role": "usr", "content": "x"},
            {"type": "function_call", "name": 7},
            {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_txt"}]},
        ]);
        let (of_elements, of_all) = both("openai-responses.schema.json", "input", &items);
        assert!(of_all.len() > 3 && of_elements == Some(of_all));
    }

    #[test]
    fn what_is_no_list_of_objects_is_told_by_the_whole_schema() {
        for list in [json!([]), json!("x"), json!([7])] {
            assert_eq!(
                both("openai-chat.schema.json", "messages", &list).0,
                None,
                "{list}"
            );
        }
    }
}
