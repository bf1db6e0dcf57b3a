//! Parses a structured answer as a value of a Rust type, or reports where it does not conform.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::tools::{mistakes, schema_of, validator};
use super::{Category, Error};
use crate::secret::masked;

/// The number of characters shown on each side of a location.
const AROUND: usize = 30;

/// Parses the text of an answer.
pub(super) fn parse<T: DeserializeOwned + JsonSchema>(text: &str) -> Result<T, Error> {
    let value: Value = serde_json::from_str(text).map_err(|error| no_json(text, &error))?;
    let name = T::schema_name();
    let schema = Value::Object(schema_of::<T>());
    let validator = validator(&schema).map_err(|problem| {
        Error::new(
            Category::Config,
            format!("the schema of `{name}` cannot be used"),
        )
        .detail(problem.to_string())
    })?;
    match mistakes(&validator, &value) {
        Some(problem) => Err(misfit(&name, &problem)),
        // The type may be stricter than its schema.
        None => serde_json::from_value(value).map_err(|error| misfit(&name, &error.to_string())),
    }
}

fn misfit(name: &str, problem: &str) -> Error {
    Error::new(
        Category::Provider,
        format!("the answer does not match `{name}`: {problem}"),
    )
}

fn no_json(text: &str, error: &serde_json::Error) -> Error {
    let line = text
        .lines()
        .nth(error.line().saturating_sub(1))
        .unwrap_or_default();
    let before = line
        .char_indices()
        .take_while(|(at, _)| at + 1 < error.column())
        .count();
    let near: String = masked(line)
        .chars()
        .skip(before.saturating_sub(AROUND))
        .take(2 * AROUND)
        .collect();
    let told = Error::new(
        Category::Provider,
        format!("the answer is not JSON: {error}"),
    );
    if near.is_empty() {
        told
    } else {
        told.detail(format!("near `{near}`"))
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Invoice {
        total: u32,
        items: Vec<Item>,
    }

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Item {
        /// The name.
        name: String,
        #[serde(default)]
        kind: Option<Kind>,
    }

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Kind {
        Tea,
        Coffee,
    }

    /// A name that must not be blank. The schema does not contain this condition.
    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(try_from = "String")]
    #[schemars(with = "String")]
    struct Filled(String);

    impl TryFrom<String> for Filled {
        type Error = &'static str;

        fn try_from(text: String) -> Result<Filled, &'static str> {
            if text.trim().is_empty() {
                Err("it is blank")
            } else {
                Ok(Filled(text))
            }
        }
    }

    fn message<T: DeserializeOwned + JsonSchema + std::fmt::Debug>(text: &str) -> String {
        parse::<T>(text).expect_err(text).message
    }

    #[test]
    fn an_answer_that_fits_is_a_value() {
        let text = " {\"total\": 4, \"items\": [{\"name\": \"Assam\", \"kind\": \"tea\"}, {\"name\": \"x\"}]}\n";
        let item = |name: &str, kind| Item {
            name: name.into(),
            kind,
        };
        let invoice = Invoice {
            total: 4,
            items: vec![item("Assam", Some(Kind::Tea)), item("x", None)],
        };
        assert_eq!(parse::<Invoice>(text), Ok(invoice));
    }

    #[test]
    fn what_does_not_fit_is_told_with_its_place_and_what_was_expected() {
        assert_eq!(
            message::<Invoice>(r#"{"total": "4", "items": [{"kind": "tea"}]}"#),
            "the answer does not match `Invoice`: at `/total`, \"4\" is not of type \"integer\"; at `/items/0`, \
             \"name\" is a required property"
        );
        assert!(
            message::<Invoice>(r#"{"total": -1, "items": []}"#)
                .contains("at `/total`, -1 is less than the minimum of 0")
        );
        assert_eq!(
            message::<Filled>("\" \""),
            "the answer does not match `Filled`: it is blank"
        );
    }

    #[test]
    fn what_is_no_json_is_told_with_its_place() {
        let error = parse::<Invoice>("{\n\"total\": four}").expect_err("no JSON");
        assert_eq!(
            error.message,
            "the answer is not JSON: expected ident at line 2 column 11"
        );
        assert_eq!(error.detail.as_deref(), Some("near `\"total\": four}`"));
        assert!(message::<Invoice>("").starts_with("the answer is not JSON: EOF"));
        assert!(
            message::<Invoice>("Sure! Here it is: {}")
                .starts_with("the answer is not JSON: expected value at line 1")
        );
    }

    #[test]
    fn schemas_are_whole_and_say_nothing_that_only_rust_knows() {
        let schema = Value::Object(schema_of::<Invoice>()).to_string();
        assert!(
            !["$ref", "$defs", "$schema", "uint32", "\"title\""]
                .iter()
                .any(|it| schema.contains(it)),
            "{schema}"
        );
        assert!(schema.contains("The name."), "{schema}");
    }
}
