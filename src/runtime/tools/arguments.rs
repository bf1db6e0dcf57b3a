//! Arguments against the JSON Schema of their tool.

use std::sync::OnceLock;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use crate::conversation::Tool;
use crate::text::cut;

/// How many mistakes the model is told of at once.
const MOST: usize = 5;

/// How many characters the words about one of them have.
const LENGTH: usize = 300;

/// What one tool takes. Its schema is compiled when the tool is first called.
#[derive(Default)]
pub(super) struct Arguments(OnceLock<Option<Validator>>);

impl Arguments {
    /// What is wrong with the arguments, if anything is.
    pub(super) fn mistake(&self, tool: &Tool, input: &Value) -> Option<String> {
        let validator = self.0.get_or_init(|| compiled(tool)).as_ref()?;
        let problems = mistakes(validator, input)?;
        Some(format!("the arguments do not fit the schema of `{}`: {problems}", tool.name))
    }
}

/// A schema that cannot be compiled says nothing about arguments: the model was told of it all the same, and the tool has to look
/// for itself.
fn compiled(tool: &Tool) -> Option<Validator> {
    let built = validator(&Value::Object(tool.schema.clone()));
    built.map_err(|problem| tracing::warn!(tool = &*tool.name, problem, "the schema of a tool is none")).ok()
}

/// A schema, compiled. Nothing is fetched, and patterns take a time that is linear.
pub(super) fn validator(schema: &Value) -> Result<Validator, String> {
    let options = jsonschema::options().offline().with_pattern_options(PatternOptions::regex());
    options.build(schema).map_err(|error| error.to_string())
}

/// The first mistakes of a value, each with its place; `None` if there are none.
pub(super) fn mistakes(validator: &Validator, value: &Value) -> Option<String> {
    let mut errors = validator.iter_errors(value);
    let told: Vec<String> = errors.by_ref().take(MOST).map(|error| told(&error)).collect();
    let more = if errors.next().is_some() { "; and more" } else { "" };
    (!told.is_empty()).then(|| format!("{}{more}", told.join("; ")))
}

fn told(error: &jsonschema::ValidationError<'_>) -> String {
    let problem = error.to_string();
    let problem = cut(&problem, LENGTH);
    match error.instance_path().as_str() {
        "" => problem.into(),
        at => format!("at `{}`, {problem}", cut(at, LENGTH)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(schema: &Value) -> Tool {
        let schema = schema.as_object().cloned().expect("an object");
        Tool { name: "add".into(), description: "adds".into(), schema }
    }

    fn mistake(schema: &Value, input: &Value) -> Option<String> {
        Arguments::default().mistake(&tool(schema), input)
    }

    #[test]
    fn what_does_not_fit_is_told_with_its_place() {
        let schema = json!({
            "type": "object", "required": ["b"], "properties": {"a": {"items": {"type": "integer"}}, "b": {}},
        });
        assert_eq!(mistake(&schema, &json!({"a": [1], "b": null})), None);
        assert_eq!(
            mistake(&schema, &json!({"a": [1, "x"]})).as_deref(),
            Some(
                "the arguments do not fit the schema of `add`: at `/a/1`, \"x\" is not of type \"integer\"; \
                 \"b\" is a required property"
            )
        );
    }

    #[test]
    fn many_and_long_mistakes_are_cut() {
        let schema = json!({"additionalProperties": {"type": "integer"}});
        let input: serde_json::Map<String, Value> =
            (0..50).map(|at| (at.to_string(), "x".repeat(9_999).into())).collect();
        let told = mistake(&schema, &Value::Object(input)).expect("all of it is wrong");
        assert!(told.len() < MOST * 2 * LENGTH && told.ends_with("; and more"), "{told}");
    }

    #[test]
    fn a_schema_that_is_none_or_leads_elsewhere_refuses_nothing() {
        for schema in [json!({"type": 7}), json!({"$ref": "https://example.com/schema.json"})] {
            assert_eq!(mistake(&schema, &json!({})), None, "{schema}");
        }
    }

    #[test]
    fn older_drafts_are_read_as_they_say() {
        let schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"n": {"type": "integer"}},
            "properties": {"a": {"$ref": "#/definitions/n", "minimum": 5}},
        });
        assert_eq!(mistake(&schema, &json!({"a": 1})), None, "beside `$ref`, draft 7 reads nothing");
        assert!(mistake(&schema, &json!({"a": "x"})).is_some());
    }
}
