//! Phrases that describe requirements and values.

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use serde_json::Value;

use super::mistake::few;
use super::node::follow;
use crate::text::cut;

/// Describes the limit that a value exceeds.
pub(super) fn limit(kind: &Kind, found: &Value) -> String {
    let value = shown(found);
    match kind {
        Kind::Minimum { limit } => format!("must be at least {limit}, not {value}"),
        Kind::Maximum { limit } => format!("must be at most {limit}, not {value}"),
        Kind::ExclusiveMinimum { limit } => format!("must be more than {limit}, not {value}"),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}, not {value}"),
        Kind::MinLength { limit: 1 } => "must not be empty".to_owned(),
        Kind::MinLength { limit } => format!("must have at least {limit} characters"),
        Kind::MaxLength { limit } => format!("must have at most {limit} characters"),
        Kind::MinItems { limit: 1 } => "must not be an empty list".to_owned(),
        Kind::MinItems { limit } => format!("must have at least {limit} elements"),
        Kind::MaxItems { limit } => format!("must have at most {limit} elements"),
        Kind::Pattern { pattern } if pattern == r"\S" => match found.as_str() {
            Some("") => "must not be empty".to_owned(),
            _ => "must not consist only of whitespace".to_owned(),
        },
        Kind::Pattern { pattern } if pattern == r"^$|\S" => {
            "must not consist only of whitespace".to_owned()
        }
        Kind::Pattern { pattern } => format!("is `{value}`, which does not match `{pattern}`"),
        Kind::Not { .. } => format!("is `{value}`, which is not allowed here"),
        Kind::MultipleOf { multiple_of } => {
            format!("must be a multiple of {multiple_of}, not {value}")
        }
        Kind::UniqueItems => "must not contain duplicate elements".to_owned(),
        Kind::MinProperties { limit } => format!("must have at least {limit} fields"),
        Kind::MaxProperties { limit } => format!("must have at most {limit} fields"),
        kind => format!("violates the schema's `{}`", kind.keyword()),
    }
}

/// The patterns of the bundled schemas, with advice for values that do not match.
const ADVICE: [(&str, &str); 18] = [
    ("^[a-zA-Z0-9_-]+$", "use only letters, digits, `_` and `-`"),
    ("^[a-zA-Z0-9_-]*$", "use only letters, digits, `_` and `-`"),
    (
        "^[A-Za-z_][A-Za-z0-9_.:-]*$",
        "begin with a letter or `_`, then use only letters, digits, `_`, `.`, `:` and `-`",
    ),
    (
        "^https?://",
        "write a URL that begins with `http://` or `https://`",
    ),
    (
        "^[a-z]+://",
        "write a URL with its scheme, such as `https://…`",
    ),
    (
        "^(https?://|data:)",
        "write a URL that begins with `http://`, `https://` or `data:`",
    ),
    (
        "^(https?://|data:image/(png|jpeg|jpg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}$)",
        "write the image's URL, or `data:image/png;base64,…` with its bytes (PNG, JPEG, GIF or WebP)",
    ),
    (
        "^(https?://|data:image/[A-Za-z0-9.+-]+;base64,[A-Za-z0-9+/]+={0,2}$)",
        "write the image's URL, or `data:image/png;base64,…` with its bytes",
    ),
    (
        "^(https?://|oss://|data:image/[A-Za-z0-9.+-]+;base64,[A-Za-z0-9+/]+={0,2}$)",
        "write the image's URL, or `data:image/png;base64,…` with its bytes",
    ),
    (
        "^(https?://|(data:image/[a-z]+;base64,)?[A-Za-z0-9+/]+={0,2}$)",
        "write the image's URL, or `data:image/png;base64,…` with its bytes",
    ),
    (
        "^(https?://|data:image/(png|jpeg|jpg|webp);base64,[A-Za-z0-9+/]+={0,2}$)",
        "write `data:image/png;base64,…` with the bytes of the image (PNG, JPEG or WebP)",
    ),
    (
        "^data:image/(png|jpeg|jpg|webp);base64,[A-Za-z0-9+/]+={0,2}$",
        "write `data:image/png;base64,…` with the bytes of the image (PNG, JPEG or WebP)",
    ),
    (
        "^[A-Za-z0-9+/]+={0,2}$",
        "write the bytes in base64, without line breaks and without a `data:` prefix",
    ),
    (
        "^[A-Za-z0-9+/_-]+={0,2}$",
        "write the bytes in base64, without line breaks and without a `data:` prefix",
    ),
    (
        "^[a-z]+/[A-Za-z0-9.+_-]+(;.*)?$",
        "write a media type, such as `image/png`",
    ),
    (
        "^[0-9.]+s$",
        "write a number of seconds, such as `\"3.5s\"`",
    ),
    ("^-?[0-9]+$", "write an integer in quotes"),
    (
        "^[-+]?(0|([0-9]+(\\.[0-9]*)?(ns|us|µs|ms|s|m|h))+)$",
        "write a duration with its unit, such as `\"5m\"`",
    ),
];

/// Returns advice for a value that does not match its schema's pattern, if a bundled schema has
/// that pattern. Adds further information from the schema's description.
pub(super) fn advice(node: Option<&Value>) -> Option<String> {
    let node = node?;
    let pattern = node.get("pattern")?.as_str()?;
    let (_, advice) = ADVICE.iter().find(|(known, _)| *known == pattern)?;
    let mut advice = match node.get("maxLength").and_then(Value::as_u64) {
        Some(most) => format!("{advice}, at most {most} characters"),
        None => (*advice).to_owned(),
    };
    let described = node.get("description").and_then(Value::as_str);
    for clause in described.into_iter().flat_map(further_clauses) {
        if says_more(clause, &advice) {
            advice.push_str(&format!("; {clause}"));
        }
    }
    Some(advice)
}

/// Returns the clauses of a description except the first, which only identifies the value.
fn further_clauses(description: &str) -> impl Iterator<Item = &str> {
    let clauses = description.split("; ").flat_map(|part| part.split(": "));
    clauses.skip(1).filter(|clause| *clause != "required")
}

/// The minimum length of a word that is treated as information.
const SHORTEST_WORD: usize = 4;

/// Returns `true` if a clause contains a word that the advice lacks.
fn says_more(clause: &str, advice: &str) -> bool {
    clause
        .split(|c: char| !c.is_alphanumeric())
        .any(|word| word.len() >= SHORTEST_WORD && !advice.contains(word))
}

/// Describes a missing value: the possible values, or the required members of an object.
pub(super) fn form(schema: &Value, node: Option<&Value>) -> Option<String> {
    let node = follow(schema, node?);
    let constant = node
        .get("const")
        .map(|value| format!("it is `{}`", plain(value)));
    let values = || {
        node.get("enum")
            .and_then(Value::as_array)
            .map(|values| values.iter().map(plain).collect::<Vec<_>>())
    };
    constant
        .or_else(|| values().map(|values| format!("it is one of: {}", few(&values))))
        .or_else(|| needs(node))
}

/// Describes the required members of an object.
fn needs(node: &Value) -> Option<String> {
    let required: Vec<String> = node
        .get("required")?
        .as_array()?
        .iter()
        .map(plain)
        .collect();
    (!required.is_empty()).then(|| format!("it is an object with `{}`", required.join("` and `")))
}

/// Describes the form that a value of the wrong type should have. A single element must be put into
/// a list, and an object needs certain members.
pub(super) fn form_of_type(
    schema: &Value,
    node: Option<&Value>,
    kind: &TypeKind,
    found: &Value,
) -> Option<String> {
    let wanted = type_names(kind);
    let node = follow(schema, node?);
    match found {
        Value::Object(_) if wants("string", &wanted) => {
            as_string(node, found, wants("array", &wanted))
        }
        Value::Object(_) | Value::String(_) if wants("array", &wanted) => {
            Some("wrap it in a list: `[…]`".to_owned())
        }
        Value::Number(_) | Value::Bool(_) if wants("string", &wanted) => {
            as_text(node, &found.to_string())
        }
        Value::String(text)
            if !wants("array", &wanted)
                && serde_json::from_str::<Value>(text).is_ok_and(|held| fits(&held, &wanted)) =>
        {
            Some(format!("write `{}` without quotes", cut(text, 41)))
        }
        _ if wants("object", &wanted) => needs(node),
        _ => None,
    }
}

/// Returns advice to write a scalar as a string, unless the schema accepts only other strings.
fn as_text(node: &Value, text: &str) -> Option<String> {
    let listed = node.get("then").unwrap_or(node).get("enum");
    let values = listed.and_then(Value::as_array);
    let is_listed = values.is_none_or(|values| values.iter().any(|value| value == text));
    let is_free = node.get("pattern").is_none();
    (is_listed && is_free).then(|| format!("put it in quotes: `\"{text}\"`"))
}

fn wants(name: &str, wanted: &[String]) -> bool {
    wanted.iter().any(|wanted| wanted == name)
}

/// Describes what to write instead of an object where a string is required: the text of one of its
/// members, a list that contains the object, or JSON text if the schema mentions JSON.
fn as_string(node: &Value, found: &Value, takes_list: bool) -> Option<String> {
    let is_element = takes_list && found.get("type").is_some();
    let is_json = node
        .get("description")
        .and_then(Value::as_str)
        .is_some_and(|text| text.contains("JSON"));
    let alone = ["url", "text", "name"]
        .into_iter()
        .find(|name| found.get(name).is_some_and(Value::is_string));
    match alone {
        _ if is_element => Some("wrap it in a list: `[…]`".to_owned()),
        Some(name) if !is_json => Some(format!("write only the text of its `{name}`")),
        _ if is_json => Some("write it as a string that contains the JSON".to_owned()),
        _ if takes_list => Some("write a string in quotes, or a list: `[…]`".to_owned()),
        _ => None,
    }
}

/// Returns `true` if a number or boolean has one of the wanted types. Returns `false` for any other
/// value.
fn fits(held: &Value, wanted: &[String]) -> bool {
    let wants = |name: &str| wanted.iter().any(|wanted| wanted == name);
    match held {
        Value::Bool(_) => wants("boolean"),
        Value::Number(number) => wants("number") || wants("integer") && !number.is_f64(),
        _ => false,
    }
}

/// Returns a schema's description, or else its title and its required members.
pub(super) fn describe(node: Option<&Value>) -> Option<String> {
    let text = |key: &str| node?.get(key)?.as_str().map(str::to_owned);
    text("description").or_else(|| {
        let required: Vec<String> = node?
            .get("required")?
            .as_array()?
            .iter()
            .map(plain)
            .collect();
        Some(format!(
            "{}, an object with `{}`",
            text("title")?,
            required.join("` and `")
        ))
    })
}

pub(super) fn wanted(kind: &TypeKind) -> String {
    let types = type_names(kind);
    // `null` is only another way to omit a field, so it was not what the author meant.
    let meant = types
        .iter()
        .filter(|name| *name != "null" || types.len() == 1);
    meant
        .map(|name| with_article(name))
        .collect::<Vec<_>>()
        .join(" or ")
}

pub(super) fn type_names(kind: &TypeKind) -> Vec<String> {
    match kind {
        TypeKind::Single(one) => vec![one.to_string()],
        TypeKind::Multiple(many) => many.iter().map(|one| one.to_string()).collect(),
    }
}

/// Returns advice for a string that contains the required value as JSON text. The value was encoded
/// twice, or was meant as a template.
pub(super) fn json_in_string(kind: &TypeKind, found: &Value) -> Option<String> {
    let held: Value = serde_json::from_str(found.as_str()?).ok()?;
    let name = match held {
        Value::Object(_) => "object",
        Value::Array(_) => "array",
        _ => return None,
    };
    type_names(kind)
        .iter()
        .any(|wanted| wanted == name)
        .then(|| {
            format!(
                "the string contains {}: it is encoded twice, or is a template without `{{{{` and `{{%`",
                with_article(name)
            )
        })
}

fn with_article(name: &str) -> &'static str {
    match name {
        "array" => "a list",
        "boolean" => "true or false",
        "integer" => "an integer",
        "null" => "null",
        "number" => "a number",
        "object" => "an object",
        _ => "a string",
    }
}

/// Formats a value for use in a sentence. Strings are written without quotes.
pub(super) fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Formats a value for use in a sentence, on one line and cut to 40 characters.
pub(super) fn shown(value: &Value) -> String {
    let text = plain(value).replace('\n', "\\n");
    cut(&text, 41).into_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;
    use crate::system::Embedded;
    use crate::world::World;

    /// The patterns that need no advice: the description says what is accepted, or another message
    /// explains them.
    const WITHOUT_ADVICE: [&str; 7] = [
        r"\S",
        r"^$|\S",
        r"^\s*$",
        "^(always|never)$",
        "^(json)?$",
        "^(projects/[^/]+/locations/[^/]+/)?cachedContents/",
        "^connector_",
    ];

    /// Adds the patterns of a schema.
    fn add_patterns(schema: &Value, found: &mut BTreeSet<String>) {
        match schema {
            Value::Object(members) => {
                let pattern = members.get("pattern").and_then(Value::as_str);
                found.extend(pattern.map(str::to_owned));
                members
                    .values()
                    .for_each(|inner| add_patterns(inner, found));
            }
            Value::Array(elements) => {
                elements.iter().for_each(|inner| add_patterns(inner, found));
            }
            _ => {}
        }
    }

    #[test]
    fn every_pattern_of_the_schemas_has_advice_or_needs_none() {
        let bundled = Embedded::bundled();
        let mut found = BTreeSet::new();
        for file in bundled.walk("schemas/wire").entries {
            let bytes = bundled.read(&file.path).expect("a bundled file");
            let schema = serde_json::from_slice(&bytes).expect("a schema");
            add_patterns(&schema, &mut found);
        }
        let known: BTreeSet<String> = ADVICE
            .iter()
            .map(|(pattern, _)| *pattern)
            .chain(WITHOUT_ADVICE)
            .map(str::to_owned)
            .collect();
        assert_eq!(found, known);
        assert_eq!(known.len(), ADVICE.len() + WITHOUT_ADVICE.len());
    }

    #[test]
    fn descriptions_that_say_more_are_added() {
        for (description, added) in [
            ("The function's name", ""),
            ("The function's name: letters, digits, _ and -", ""),
            ("The function's name; required", ""),
            (
                "Id of the call; the one that the API gave it",
                "; the one that the API gave it",
            ),
        ] {
            let node = json!({
                "pattern": "^[a-zA-Z0-9_-]+$",
                "maxLength": 64,
                "description": description,
            });
            let usual = "use only letters, digits, `_` and `-`, at most 64 characters";
            assert_eq!(advice(Some(&node)), Some(format!("{usual}{added}")));
        }
        let other = json!({ "pattern": "^x$", "description": "It is x" });
        assert_eq!(advice(Some(&other)), None);
    }
}
