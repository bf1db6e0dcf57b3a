//! Checks arguments against the JSON Schema of their tool.

use std::sync::OnceLock;

use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;

use crate::check::schema::Measured;
use crate::conversation::Tool;
use crate::text::cut;

/// The maximum number of mistakes reported at once.
const MOST: usize = 5;

/// The maximum number of characters in the description of a mistake.
const LENGTH: usize = 300;

/// The checker for the arguments of one tool. The schema is compiled when the tool is first called.
#[derive(Default)]
pub(super) struct Arguments(OnceLock<Option<(Validator, Measured)>>);

impl Arguments {
    /// Returns the mistakes in the arguments; `None` if there are none.
    pub(super) fn mistake(&self, tool: &Tool, input: &Value) -> Option<String> {
        let (validator, measured) = self.0.get_or_init(|| compiled(tool)).as_ref()?;
        let problems = Some(input)
            .filter(|input| measured.is_cheap(input))
            .and_then(|input| mistakes(validator, input))?;
        Some(format!(
            "the arguments do not match the schema of `{}`: {problems}",
            tool.name
        ))
    }
}

/// Compiles a tool schema; `None` if the schema cannot be compiled, or if validation could take too
/// long, as is possible with a schema from an external server. Such a schema is not enforced: the
/// model has seen it, and the tool must check its arguments itself.
fn compiled(tool: &Tool) -> Option<(Validator, Measured)> {
    let schema = Value::Object(tool.schema.clone());
    let measured = Measured::of(&schema)?;
    let built = validator(&schema).map(|validator| (validator, measured));
    built
        .map_err(|problem| {
            tracing::warn!(
                tool = &*tool.name,
                problem = problem.to_string(),
                "a tool schema is not a valid JSON Schema"
            );
        })
        .ok()
}

/// Compiles a schema. Nothing is fetched, and patterns are matched in linear time.
pub(in crate::runtime) fn validator(schema: &Value) -> Result<Validator, ValidationError<'static>> {
    let options = jsonschema::options()
        .offline()
        .with_pattern_options(PatternOptions::regex());
    options.build(schema)
}

/// Returns the first mistakes in a value, each with its location; `None` if there are none.
pub(in crate::runtime) fn mistakes(validator: &Validator, value: &Value) -> Option<String> {
    let mut errors = validator.iter_errors(value);
    let told: Vec<String> = errors
        .by_ref()
        .take(MOST)
        .map(|error| told(&error))
        .collect();
    let more = if errors.next().is_some() {
        "; and more"
    } else {
        ""
    };
    (!told.is_empty()).then(|| format!("{}{more}", told.join("; ")))
}

fn told(error: &ValidationError<'_>) -> String {
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
        Tool {
            name: "add".into(),
            description: "adds".into(),
            schema,
        }
    }

    #[test]
    fn a_schema_that_could_take_forever_is_not_asked() {
        let mut levels: serde_json::Map<String, Value> = (0..30)
            .map(|level| {
                let next = json!({"$ref": format!("#/$defs/{}", level + 1)});
                (level.to_string(), json!({"allOf": [next, next, next]}))
            })
            .collect();
        levels.insert("30".to_owned(), json!({"type": "string"}));
        let schema =
            json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/0"}}, "$defs": levels});
        assert_eq!(mistake(&schema, &json!({"a": 1})), None);
        // The time doubles with each level of the value.
        let both = json!([{"$ref": "#"}, {"$ref": "#"}]);
        let schema = json!({"type": "object", "properties": {"a": {"allOf": both}}});
        let deep = (0..60).fold(json!(1), |inner, _| json!({"a": inner}));
        assert_eq!(mistake(&schema, &deep), None);
        assert!(mistake(&schema, &json!({"a": 1})).is_some());
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
                "the arguments do not match the schema of `add`: \"b\" is a required property; \
                 at `/a/1`, \"x\" is not of type \"integer\""
            )
        );
    }

    #[test]
    fn many_and_long_mistakes_are_cut() {
        let schema = json!({"additionalProperties": {"type": "integer"}});
        let input: serde_json::Map<String, Value> = (0..50)
            .map(|at| (at.to_string(), "x".repeat(9_999).into()))
            .collect();
        let told = mistake(&schema, &Value::Object(input)).expect("all of it is wrong");
        assert!(
            told.len() < MOST * 2 * LENGTH && told.ends_with("; and more"),
            "{told}"
        );
    }

    #[test]
    fn a_schema_that_is_none_or_leads_elsewhere_refuses_nothing() {
        for schema in [
            json!({"type": 7}),
            json!({"$ref": "https://example.com/schema.json"}),
        ] {
            assert_eq!(mistake(&schema, &json!({})), None, "{schema}");
        }
    }

    #[test]
    fn older_drafts_are_read_as_they_say() {
        let schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"n": {"type": "integer"}},
            "properties": {"a": {"$ref": "#/definitions/n", "minimum": 5}},
        });
        assert_eq!(
            mistake(&schema, &json!({"a": 1})),
            None,
            "beside `$ref`, draft 7 reads nothing"
        );
        assert!(mistake(&schema, &json!({"a": "x"})).is_some());
    }
}
