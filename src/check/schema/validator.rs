//! Compiles schemas to validators.

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use super::graph::QUOTED;
use super::pattern;
use super::refusal::Refusal;
use crate::text::cut;

/// Compiles the validator of a schema.
///
/// # Errors
///
/// Returns an error if the value is not a valid JSON Schema.
pub(super) fn validator(schema: &Value) -> Result<Validator, Refusal> {
    let patterns = PatternOptions::regex()
        .size_limit(pattern::COMPILED_BYTES)
        .dfa_size_limit(pattern::COMPILED_BYTES);
    let options = jsonschema::draft202012::options()
        .offline()
        .with_pattern_options(patterns);
    options.build(schema).map_err(|error| {
        let at = error.instance_path().as_str().to_owned();
        let mut keywords = at.rsplit('/');
        let is_pattern =
            keywords.next() == Some("pattern") || keywords.next() == Some("patternProperties");
        let message = match is_pattern {
            _ if at.is_empty() => "this schema is not valid".to_owned(),
            true => format!("the pattern at `{}` cannot be used", cut(&at, QUOTED)),
            false => format!(
                "JSON Schema does not allow this value at `{}`",
                cut(&at, QUOTED)
            ),
        };
        let help = match is_pattern {
            true => PATTERN_HELP.to_owned(),
            false => error.to_string().chars().take(LONGEST_HELP).collect(),
        };
        Refusal {
            at,
            message,
            help: Some(help),
        }
    })
}

/// The maximum number of characters that are shown from a validation library's message.
const LONGEST_HELP: usize = 300;
const PATTERN_HELP: &str = "patterns must be regular expressions of moderate size without look-around and back references, so that they run in linear time";
