//! From a validator's errors to problems that a person can act on.

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use super::super::Problem;
use super::rules;
use crate::diag::{Rule, did_you_mean};
use crate::json::Pointer;

/// The keyword that names the member which decides between the branches of a schema.
const DISCRIMINATOR: &str = "x-reqc-discriminator";

/// What is wrong with a body, in document order.
pub(super) fn problems(schema: &Value, validator: &Validator, body: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    for error in validator.iter_errors(body) {
        explain(schema, body, &error, &mut problems);
    }
    problems
}

fn explain(schema: &Value, body: &Value, error: &ValidationError<'_>, problems: &mut Vec<Problem>) {
    let at = Pointer::parse(error.instance_path().as_str());
    let Some(found) = body.pointer(at.as_str()) else { return };
    let node = keyword_owner(schema, error.schema_path().as_str());
    let mut push = |rule: &'static Rule, pointer: Pointer, message: String, help: Option<String>| {
        problems.push(Problem { rule, pointer, message, help });
    };
    match error.kind() {
        Kind::OneOfNotValid { context } | Kind::AnyOf { context } => {
            let choice = Choice::of(schema, node, error.kind().keyword());
            match choice.pick(found) {
                Pick::Branch(index) => context[index].iter().for_each(|inner| explain(schema, body, inner, problems)),
                Pick::Nearest => match nearest_branch(context) {
                    Some(index) => context[index].iter().for_each(|inner| explain(schema, body, inner, problems)),
                    None => push(
                        &rules::INVALID_VALUE,
                        at.clone(),
                        format!("`{at}` fits no form that the API takes"),
                        describe(node),
                    ),
                },
                Pick::Unknown { member, value, known } => {
                    let help = did_you_mean(&value, known.iter().map(String::as_str));
                    let list = || Some(format!("known: {}", known.join(", ")));
                    push(
                        &rules::INVALID_VALUE,
                        at.member(&member),
                        format!("`{}` cannot be `{value}`", at.member(&member)),
                        help.or_else(list),
                    );
                }
                Pick::Missing { member, known } => {
                    let message = format!("`{at}` lacks `{member}`, which says what it is");
                    push(&rules::MISSING_FIELD, at.clone(), message, Some(format!("one of: {}", known.join(", "))));
                }
            }
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let known = known_fields(schema, node);
            for name in unexpected {
                let help = did_you_mean(name, known.iter().map(String::as_str));
                let list = || (!known.is_empty()).then(|| format!("known fields: {}", known.join(", ")));
                let place = at.member(name);
                push(
                    &rules::UNKNOWN_FIELD,
                    place.clone(),
                    format!("the API knows no field `{place}`"),
                    help.or_else(list),
                );
            }
        }
        Kind::FalseSchema => {
            push(&rules::UNKNOWN_FIELD, at.clone(), format!("`{at}` is not allowed here"), describe(node));
        }
        Kind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            push(
                &rules::MISSING_FIELD,
                at.clone(),
                format!("`{}` is missing", at.member(name)),
                describe(property_schema(node, name)),
            );
        }
        Kind::Type { kind } => {
            let message = format!("`{at}` must be {}, not {}", wanted(kind), kind_of(found));
            push(&rules::WRONG_TYPE, at.clone(), message, describe(node));
        }
        Kind::Enum { options } => {
            let known: Vec<String> = options.as_array().into_iter().flatten().map(plain).collect();
            let help = did_you_mean(&plain(found), known.iter().map(String::as_str));
            let list = Some(format!("known: {}", known.join(", ")));
            push(&rules::INVALID_VALUE, at.clone(), format!("`{at}` cannot be `{}`", shown(found)), help.or(list));
        }
        Kind::Constant { expected_value } => {
            push(
                &rules::INVALID_VALUE,
                at.clone(),
                format!("`{at}` must be `{}`, not `{}`", plain(expected_value), shown(found)),
                None,
            );
        }
        Kind::PropertyNames { error: inner } => explain(schema, body, inner, problems),
        kind => push(&rules::INVALID_VALUE, at.clone(), format!("`{at}` {}", limit(kind, found)), describe(node)),
    }
}

/// What the limit that a value breaks says.
fn limit(kind: &Kind, found: &Value) -> String {
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
        Kind::Pattern { pattern } => format!("is `{value}`, which does not match `{pattern}`"),
        Kind::Not { .. } => format!("is `{value}`, which is not allowed here"),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}, not {value}"),
        Kind::UniqueItems => "must not have equal elements".to_owned(),
        Kind::MinProperties { limit } => format!("must have at least {limit} fields"),
        Kind::MaxProperties { limit } => format!("must have at most {limit} fields"),
        kind => format!("breaks the schema's `{}`", kind.keyword()),
    }
}

/// The alternatives of a schema and what tells them apart.
struct Choice<'s> {
    member: Option<&'s str>,
    /// Per branch the values of the member that pick it.
    branches: Vec<Vec<String>>,
}

enum Pick {
    Branch(usize),
    /// Nothing tells the branches apart: the one with the fewest mistakes.
    Nearest,
    Unknown {
        member: String,
        value: String,
        known: Vec<String>,
    },
    Missing {
        member: String,
        known: Vec<String>,
    },
}

impl<'s> Choice<'s> {
    fn of(schema: &'s Value, node: Option<&'s Value>, keyword: &str) -> Choice<'s> {
        let member = node.and_then(|node| node.get(DISCRIMINATOR)).and_then(Value::as_str);
        let branches = node.and_then(|node| node.get(keyword)).and_then(Value::as_array);
        let values = |branch: &Value| -> Vec<String> {
            let Some(member) = member else { return Vec::new() };
            let property =
                property_schema(Some(follow(schema, branch)), member).map(|property| follow(schema, property));
            let constant = property.and_then(|property| property.get("const")).into_iter();
            let listed =
                property.and_then(|property| property.get("enum")).and_then(Value::as_array).into_iter().flatten();
            constant.chain(listed).map(plain).collect()
        };
        Choice { member, branches: branches.into_iter().flatten().map(values).collect() }
    }

    fn pick(&self, found: &Value) -> Pick {
        let (Some(member), Value::Object(members)) = (self.member, found) else { return Pick::Nearest };
        let known: Vec<String> = self.branches.iter().flatten().cloned().collect();
        match members.get(member) {
            Some(value) => match self.branches.iter().position(|values| values.contains(&plain(value))) {
                Some(index) => Pick::Branch(index),
                None => Pick::Unknown { member: member.to_owned(), value: shown(value), known },
            },
            // A branch that leaves the member out is the one for values without it.
            None => match self.branches.iter().position(Vec::is_empty) {
                Some(index) => Pick::Branch(index),
                None => Pick::Missing { member: member.to_owned(), known },
            },
        }
    }
}

/// The branch whose errors lie deepest: the one that was most likely meant. Type errors at the top rule a branch out.
fn nearest_branch(context: &[Vec<ValidationError<'_>>]) -> Option<usize> {
    let depth = |errors: &Vec<ValidationError<'_>>| {
        let deepest = errors.iter().map(|error| error.instance_path().as_str().matches('/').count()).min().unwrap_or(0);
        let is_type = errors.iter().any(|error| matches!(error.kind(), Kind::Type { .. }));
        (deepest, !is_type, std::cmp::Reverse(errors.len()))
    };
    (0..context.len()).max_by_key(|&index| (depth(&context[index]), std::cmp::Reverse(index)))
}

/// The schema object that holds the keyword at a path.
fn keyword_owner<'s>(schema: &'s Value, path: &str) -> Option<&'s Value> {
    let owner = path.rfind('/').map_or("", |at| &path[..at]);
    schema.pointer(owner)
}

/// A schema with its `$ref`s within the document followed.
fn follow<'s>(schema: &'s Value, mut node: &'s Value) -> &'s Value {
    for _ in 0..16 {
        let target =
            node.get("$ref").and_then(Value::as_str).and_then(|target| schema.pointer(target.strip_prefix('#')?));
        match target {
            Some(target) => node = target,
            None => break,
        }
    }
    node
}

fn property_schema<'s>(node: Option<&'s Value>, name: &str) -> Option<&'s Value> {
    node?.get("properties")?.get(name)
}

/// The fields that a schema object lists, also through `allOf` and `$ref`.
fn known_fields(schema: &Value, node: Option<&Value>) -> Vec<String> {
    let Some(node) = node.map(|node| follow(schema, node)) else { return Vec::new() };
    let own = node.get("properties").and_then(Value::as_object).into_iter().flat_map(|fields| fields.keys().cloned());
    let parts = node.get("allOf").and_then(Value::as_array).into_iter().flatten();
    let mut known: Vec<String> = own.chain(parts.flat_map(|part| known_fields(schema, Some(part)))).collect();
    known.sort();
    known.dedup();
    known
}

/// What a schema says of itself.
fn describe(node: Option<&Value>) -> Option<String> {
    let text = node?.get("description").or_else(|| node?.get("title"))?.as_str()?;
    Some(text.to_owned())
}

fn wanted(kind: &TypeKind) -> String {
    let names: Vec<&str> = match kind {
        TypeKind::Single(one) => vec![with_article(&one.to_string())],
        TypeKind::Multiple(many) => many.iter().map(|one| with_article(&one.to_string())).collect(),
    };
    names.join(" or ")
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

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A value as it reads in a sentence: strings without quotes.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The same, cut to 40 characters.
fn shown(value: &Value) -> String {
    let text = plain(value);
    match text.char_indices().nth(40) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}
