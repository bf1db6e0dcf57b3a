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
/// The value that counts if that member is absent.
const DEFAULT: &str = "x-reqc-discriminator-default";
/// What to say if a part of a schema fails as a whole.
const MESSAGE: &str = "x-reqc-message";

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
    match error.kind() {
        Kind::OneOfNotValid { context } | Kind::AnyOf { context } => {
            let choice = Choice::of(schema, node, error.kind().keyword());
            match choice.pick(found) {
                Pick::Branch(index) => context[index].iter().for_each(|inner| explain(schema, body, inner, problems)),
                Pick::Nearest => nearest(schema, body, error, context, problems),
                Pick::None(problem) => problems.push(problem(&at)),
            }
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let known = known_fields(schema, node);
            problems.extend(unexpected.iter().map(|name| unknown_field(&at.member(name), name, &known)));
        }
        Kind::PropertyNames { error: inner } => explain(schema, body, inner, problems),
        kind => problems.push(simple(schema, error.schema_path().as_str(), node, kind, at, found)),
    }
}

/// The errors of the branch that was most likely meant, or what the schema says of the whole.
fn nearest(
    schema: &Value,
    body: &Value,
    error: &ValidationError<'_>,
    context: &[Vec<ValidationError<'static>>],
    problems: &mut Vec<Problem>,
) {
    let at = Pointer::parse(error.instance_path().as_str());
    let own = said(schema, error.schema_path().as_str());
    match nearest_branch(context).filter(|_| own.is_none()) {
        Some(index) => context[index].iter().for_each(|inner| explain(schema, body, inner, problems)),
        None => {
            let message =
                own.map_or_else(|| format!("`{at}` fits no form that the API takes"), |said| format!("`{at}`: {said}"));
            problems.push(Problem { rule: &rules::INVALID_VALUE, pointer: at, message, help: None });
        }
    }
}

fn unknown_field(place: &Pointer, name: &str, known: &[String]) -> Problem {
    let near = did_you_mean(name, known.iter().map(String::as_str));
    let list = || (!known.is_empty()).then(|| format!("known fields: {}", known.join(", ")));
    let message = format!("the API knows no field `{place}`");
    Problem { rule: &rules::UNKNOWN_FIELD, pointer: place.clone(), message, help: near.or_else(list) }
}

/// A problem that one keyword tells on its own.
fn simple(schema: &Value, path: &str, node: Option<&Value>, kind: &Kind, at: Pointer, found: &Value) -> Problem {
    let (rule, message, help): (&'static Rule, String, Option<String>) = match kind {
        Kind::FalseSchema => {
            let message = said(schema, path)
                .map_or_else(|| format!("`{at}` is not allowed here"), |said| format!("`{at}`: {said}"));
            (&rules::UNKNOWN_FIELD, message, describe(node))
        }
        Kind::Not { .. } => {
            let message = said(schema, path)
                .map_or_else(|| format!("`{at}` {}", limit(kind, found)), |said| format!("`{at}`: {said}"));
            (&rules::INVALID_VALUE, message, describe(node))
        }
        Kind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            (&rules::MISSING_FIELD, format!("`{}` is missing", at.member(name)), describe(property_schema(node, name)))
        }
        Kind::Type { kind } => {
            (&rules::WRONG_TYPE, format!("`{at}` must be {}, not {}", wanted(kind), kind_of(found)), describe(node))
        }
        Kind::Enum { options } => {
            let known: Vec<String> = options.as_array().into_iter().flatten().map(plain).collect();
            let near = did_you_mean(&plain(found), known.iter().map(String::as_str));
            let list = Some(format!("known: {}", known.join(", ")));
            (&rules::INVALID_VALUE, format!("`{at}` cannot be `{}`", shown(found)), near.or(list))
        }
        Kind::Constant { expected_value } => {
            (&rules::INVALID_VALUE, format!("`{at}` must be `{}`, not `{}`", plain(expected_value), shown(found)), None)
        }
        kind => (&rules::INVALID_VALUE, format!("`{at}` {}", limit(kind, found)), describe(node)),
    };
    Problem { rule, pointer: at, message, help }
}

/// What the schema itself says of a failing part: at the keyword's owner or a little above.
fn said(schema: &Value, path: &str) -> Option<String> {
    let owners = std::iter::successors(Some(path), |path| path.rfind('/').map(|at| &path[..at]));
    let mut nodes = owners.take(5).filter_map(|path| schema.pointer(path));
    nodes.find_map(|node| node.get(MESSAGE)?.as_str().map(str::to_owned))
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
    default: Option<&'s str>,
    /// Per branch the values of the member that pick it.
    branches: Vec<Vec<String>>,
}

enum Pick {
    Branch(usize),
    /// Nothing tells the branches apart: the one with the fewest mistakes.
    Nearest,
    /// No branch fits; the problem at the place of the value.
    None(Box<dyn Fn(&Pointer) -> Problem>),
}

impl<'s> Choice<'s> {
    fn of(schema: &'s Value, node: Option<&'s Value>, keyword: &str) -> Choice<'s> {
        let text = |key: &str| node.and_then(|node| node.get(key)).and_then(Value::as_str);
        let member = text(DISCRIMINATOR);
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
        Choice { member, default: text(DEFAULT), branches: branches.into_iter().flatten().map(values).collect() }
    }

    fn pick(&self, found: &Value) -> Pick {
        let (Some(member), Value::Object(members)) = (self.member, found) else { return Pick::Nearest };
        let branch = |value: &str| self.branches.iter().position(|values| values.iter().any(|known| known == value));
        match members.get(member) {
            Some(value) => branch(&plain(value)).map_or_else(|| self.unknown(member, shown(value)), Pick::Branch),
            None => self.default.and_then(branch).map_or_else(|| self.missing(member), Pick::Branch),
        }
    }

    fn known(&self) -> Vec<String> {
        self.branches.iter().flatten().cloned().collect()
    }

    fn unknown(&self, member: &str, value: String) -> Pick {
        let (member, known) = (member.to_owned(), self.known());
        Pick::None(Box::new(move |at| {
            let near = did_you_mean(&value, known.iter().map(String::as_str));
            let place = at.member(&member);
            Problem {
                rule: &rules::INVALID_VALUE,
                message: format!("`{place}` cannot be `{value}`"),
                pointer: place,
                help: near.or_else(|| Some(format!("known: {}", known.join(", ")))),
            }
        }))
    }

    fn missing(&self, member: &str) -> Pick {
        let (member, known) = (member.to_owned(), self.known());
        Pick::None(Box::new(move |at| Problem {
            rule: &rules::MISSING_FIELD,
            message: format!("`{}` is missing", at.member(&member)),
            pointer: at.clone(),
            help: Some(format!("it says what this is: {}", known.join(", "))),
        }))
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
pub(super) fn follow<'s>(schema: &'s Value, mut node: &'s Value) -> &'s Value {
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
