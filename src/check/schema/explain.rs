//! From a validator's errors to problems that a person can act on.

use std::collections::HashSet;

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use super::super::Problem;
use super::node::follow;
use super::rules;
use crate::diag::{Rule, did_you_mean, listed};
use crate::json::{Pointer, kind_of};
use crate::text::cut;

/// The keyword that names the member which decides between the branches of a schema.
const DISCRIMINATOR: &str = "x-reqc-discriminator";
/// The value that counts if that member is absent.
const DEFAULT: &str = "x-reqc-discriminator-default";
/// What to say if a part of a schema fails as a whole.
const MESSAGE: &str = "x-reqc-message";

/// How the help begins if no better is known.
const KNOWN_FIELDS: &str = "known fields: ";

/// The most problems of one body that are told. One more is looked for, so that it can be said that there are more.
pub(super) const MAX_PROBLEMS: usize = 1_000;

/// What is wrong with a body, in the order of the schema, until there are more than [`MAX_PROBLEMS`].
pub(super) fn problems(schema: &Value, validator: &Validator, body: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    for error in validator.iter_errors(body) {
        explain(schema, body, &error, &mut problems);
        if problems.len() > MAX_PROBLEMS {
            break;
        }
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
                Pick::Branch(index) => {
                    let before = problems.len();
                    context[index].iter().for_each(|inner| explain(schema, body, inner, problems));
                    problems[before..].iter_mut().for_each(|problem| choice.point_elsewhere(schema, &at, problem));
                }
                Pick::Nearest => nearest(schema, body, error, context, problems),
                Pick::None(problem) => problems.push(problem(&at)),
            }
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let room = (MAX_PROBLEMS + 1).saturating_sub(problems.len());
            problems.extend(unexpected.iter().take(room).map(|name| unknown_field(schema, node, &at, name)));
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
            let message = own.map_or_else(
                || format!("`{at}` matches none of the forms that the API accepts"),
                |said| format!("`{at}`: {said}"),
            );
            problems.push(Problem { rule: &rules::INVALID_VALUE, pointer: at, message, help: None, place: None });
        }
    }
}

fn unknown_field(schema: &Value, node: Option<&Value>, at: &Pointer, name: &str) -> Problem {
    let known = known_fields(schema, node);
    let near = did_you_mean(name, known.iter().map(String::as_str));
    let list = || (!known.is_empty()).then(|| format!("{KNOWN_FIELDS}{}", listed(known.iter().map(String::as_str))));
    let (pointer, help) = (at.member(name), near.or_else(|| elsewhere(schema, node, at, name)).or_else(list));
    Problem {
        rule: &rules::UNKNOWN_FIELD,
        message: format!("the API knows no field `{pointer}`"),
        pointer,
        help,
        place: None,
    }
}

/// Where a field of that name belongs, if it stands one level too high, or too deep.
fn elsewhere(schema: &Value, node: Option<&Value>, at: &Pointer, name: &str) -> Option<String> {
    let has = |node: &Value| known_fields(schema, Some(node)).iter().any(|known| known == name);
    let members = node?.get("properties")?.as_object()?;
    let below = members.iter().find(|(_, member)| has(member)).map(|(member, _)| format!("in `{}`", at.member(member)));
    let above = || (at.parent().is_some() && has(schema)).then(|| "at the top of the body".to_owned());
    Some(format!("`{name}` belongs {}", below.or_else(above)?))
}

fn missing(at: &Pointer, name: &str) -> String {
    format!("`{}` is missing", at.member(name))
}

/// For each problem whether a field is missing only because it is misspelt: then its key tells so.
pub(super) fn told_at_keys(problems: &[Problem]) -> Vec<bool> {
    let misspelt = |problem: &Problem| {
        let meant = problem.help.as_deref()?.strip_prefix("did you mean `")?.strip_suffix("`?")?;
        let parent = problem.pointer.parent()?;
        Some((missing(&parent, meant), parent.to_string()))
    };
    let unknown = problems.iter().filter(|problem| problem.rule == &rules::UNKNOWN_FIELD);
    let misspelt: HashSet<(String, String)> = unknown.filter_map(misspelt).collect();
    let is_told = |problem: &Problem| {
        problem.rule == &rules::MISSING_FIELD
            && misspelt.contains(&(problem.message.clone(), problem.pointer.to_string()))
    };
    problems.iter().map(is_told).collect()
}

/// Puts a problem into the one before it, if one finding says both: fields that one object lacks, or the same again.
pub(super) fn absorb(kept: &mut Problem, next: &Problem) -> bool {
    let is_same = kept.rule == next.rule && kept.pointer == next.pointer;
    let names = |problem: &Problem| {
        let message = problem.message.strip_suffix(" is missing").or(problem.message.strip_suffix(" are missing"));
        message.map(str::to_owned)
    };
    if let (true, Some(known), Some(more)) = (is_same && kept.message != next.message, names(kept), names(next)) {
        kept.message = format!("{known} and {more} are missing");
        kept.help = None;
    }
    is_same
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
            (&rules::MISSING_FIELD, missing(&at, name), describe(property_schema(node, name)))
        }
        Kind::Type { kind } => {
            let message = format!("`{at}` must be {}, not {}", wanted(kind), kind_of(found));
            (&rules::WRONG_TYPE, message, json_in_string(kind, found).or_else(|| describe(node)))
        }
        Kind::Enum { options } => {
            let known: Vec<String> = options.as_array().into_iter().flatten().map(plain).collect();
            let near = did_you_mean(&plain(found), known.iter().map(String::as_str));
            let list = Some(format!("known: {}", listed(known.iter().map(String::as_str))));
            (&rules::INVALID_VALUE, format!("`{at}` cannot be `{}`", shown(found)), near.or(list))
        }
        Kind::Constant { expected_value } => {
            (&rules::INVALID_VALUE, format!("`{at}` must be `{}`, not `{}`", plain(expected_value), shown(found)), None)
        }
        kind => (&rules::INVALID_VALUE, format!("`{at}` {}", limit(kind, found)), describe(node)),
    };
    Problem { rule, pointer: at, message, help, place: None }
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
    /// The branches, each with the values of the member that pick it.
    branches: Vec<(&'s Value, Vec<String>)>,
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
        let branches = branches.into_iter().flatten().map(|branch| (branch, values(branch))).collect();
        Choice { member, default: text(DEFAULT), branches }
    }

    fn pick(&self, found: &Value) -> Pick {
        let (Some(member), Value::Object(members)) = (self.member, found) else { return Pick::Nearest };
        let branch =
            |value: &str| self.branches.iter().position(|(_, values)| values.iter().any(|known| known == value));
        match members.get(member) {
            Some(value) => branch(&plain(value)).map_or_else(|| self.unknown(member, shown(value)), Pick::Branch),
            None => self.default.and_then(branch).map_or_else(|| self.missing(member), Pick::Branch),
        }
    }

    fn known(&self) -> Vec<String> {
        self.branches.iter().flat_map(|(_, values)| values).cloned().collect()
    }

    /// Tells of an unknown field which alternatives have it, unless a similar name was found.
    fn point_elsewhere(&self, schema: &Value, at: &Pointer, problem: &mut Problem) {
        let name = problem.pointer.tokens().last().filter(|_| problem.pointer.parent().as_ref() == Some(at));
        let is_listed = problem.help.as_ref().is_some_and(|help| help.starts_with(KNOWN_FIELDS));
        let (Some(member), Some(name), true) = (self.member, name, is_listed) else { return };
        let has = |branch: &Value| known_fields(schema, Some(branch)).contains(&name);
        let having = self.branches.iter().filter(|(branch, _)| has(branch)).flat_map(|(_, values)| values);
        let values: Vec<String> = having.map(|value| format!("`{value}`")).collect();
        if problem.rule == &rules::UNKNOWN_FIELD && !values.is_empty() {
            problem.help = Some(format!("`{name}` goes with the {member} {}", values.join(" or ")));
        }
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
                help: near.or_else(|| Some(format!("known: {}", listed(known.iter().map(String::as_str))))),
                place: None,
            }
        }))
    }

    fn missing(&self, member: &str) -> Pick {
        let (member, known) = (member.to_owned(), self.known());
        Pick::None(Box::new(move |at| Problem {
            rule: &rules::MISSING_FIELD,
            message: missing(at, &member),
            pointer: at.clone(),
            help: Some(format!("it says what this is: {}", listed(known.iter().map(String::as_str)))),
            place: None,
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

/// What a schema says of itself: its description, or its title and what it needs.
fn describe(node: Option<&Value>) -> Option<String> {
    let text = |key: &str| node?.get(key)?.as_str().map(str::to_owned);
    text("description").or_else(|| {
        let required: Vec<String> = node?.get("required")?.as_array()?.iter().map(plain).collect();
        Some(format!("{}, an object with `{}`", text("title")?, required.join("` and `")))
    })
}

fn wanted(kind: &TypeKind) -> String {
    let mut names: Vec<&str> = type_names(kind).iter().map(|name| with_article(name)).collect();
    names.sort_by_key(|name| *name == "null");
    names.join(" or ")
}

fn type_names(kind: &TypeKind) -> Vec<String> {
    match kind {
        TypeKind::Single(one) => vec![one.to_string()],
        TypeKind::Multiple(many) => many.iter().map(|one| one.to_string()).collect(),
    }
}

/// What to do about a string that holds what is wanted as JSON: it was encoded twice, or was meant as a template.
fn json_in_string(kind: &TypeKind, found: &Value) -> Option<String> {
    let held: Value = serde_json::from_str(found.as_str()?).ok()?;
    let name = match held {
        Value::Object(_) => "object",
        Value::Array(_) => "array",
        _ => return None,
    };
    type_names(kind).iter().any(|wanted| wanted == name).then(|| {
        format!("the string holds {}: encoded twice, or a template without `{{{{` and `{{%`", with_article(name))
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

/// A value as it reads in a sentence: strings without quotes.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The same, cut to 40 characters.
fn shown(value: &Value) -> String {
    let text = plain(value).replace('\n', "\\n");
    cut(&text, 41).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Messages and helps of what is wrong with a body, one a line.
    fn told(schema: &Value, body: &Value) -> Vec<String> {
        let validator = jsonschema::draft202012::options().offline().build(schema).expect("a schema");
        let line = |problem: Problem| match problem.help {
            Some(help) => format!("{} ({help})", problem.message),
            None => problem.message,
        };
        problems(schema, &validator, body).into_iter().map(line).collect()
    }

    fn object(properties: &Value, required: &[&str]) -> Value {
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
    }

    /// Items of a list: messages (also without `type`), whose content is parts, and calls.
    fn items() -> Value {
        let text = object(&json!({"type": {"const": "text"}, "text": {"type": "string"}}), &["type", "text"]);
        let image =
            object(&json!({"type": {"const": "image"}, "url": {"type": "string", "minLength": 1}}), &["type", "url"]);
        let parts = json!({"x-reqc-discriminator": "type", "oneOf": [text, image]});
        let message = object(&json!({"type": {"const": "message"}, "content": {"items": parts}}), &["content"]);
        let call = object(&json!({"type": {"enum": ["call"]}, "call_id": {"type": "string"}}), &["type", "call_id"]);
        let items = json!({
            "x-reqc-discriminator": "type", "x-reqc-discriminator-default": "message",
            "oneOf": [{"$ref": "#/$defs/message"}, {"$ref": "#/$defs/call"}]
        });
        json!({"properties": {"input": {"items": items}}, "$defs": {"message": message, "call": call}})
    }

    #[test]
    fn without_its_discriminator_an_object_is_the_default_alternative() {
        assert_eq!(
            told(&items(), &json!({"input": [{"content": [], "kontent": 1}]})),
            ["the API knows no field `/input/0/kontent` (did you mean `content`?)"]
        );
        assert_eq!(told(&items(), &json!({"input": [{}]})), ["`/input/0/content` is missing"]);
    }

    #[test]
    fn without_a_default_the_discriminator_is_missing() {
        assert_eq!(
            told(&items(), &json!({"input": [{"content": [{"text": "a"}]}]})),
            ["`/input/0/content/0/type` is missing (it says what this is: text, image)"]
        );
    }

    #[test]
    fn an_unknown_discriminator_is_told_with_what_is_near_or_known() {
        assert_eq!(
            told(&items(), &json!({"input": [{"type": "mesage"}]})),
            ["`/input/0/type` cannot be `mesage` (did you mean `message`?)"]
        );
        assert_eq!(
            told(&items(), &json!({"input": [{"type": 7}]})),
            ["`/input/0/type` cannot be `7` (known: message, call)"]
        );
    }

    #[test]
    fn alternatives_in_alternatives_are_told_by_the_picked_ones_alone() {
        let body = json!({"input": [{"content": [{"type": "image", "url": ""}, {"type": "text", "url": "a"}]}]});
        assert_eq!(
            told(&items(), &body),
            [
                "`/input/0/content/0/url` must not be empty",
                "`/input/0/content/1/text` is missing",
                "the API knows no field `/input/0/content/1/url` (`url` goes with the type `image`)",
            ]
        );
        let body = json!({"input": [{"type": "call", "call_id": 7}]});
        assert_eq!(told(&items(), &body), ["`/input/0/call_id` must be a string, not a number"]);
    }

    #[test]
    fn what_fails_as_a_whole_is_told_in_the_schemas_own_words() {
        let needs = json!({
            "x-reqc-message": "a file needs data or id",
            "anyOf": [{"required": ["data"]}, {"required": ["id"]}]
        });
        assert_eq!(told(&needs, &json!({})), ["`(the whole body)`: a file needs data or id"]);
        let excludes = json!({"properties": {"file": {
            "x-reqc-message": "data and id exclude each other", "not": {"required": ["data", "id"]}
        }}});
        let body = json!({"file": {"data": "", "id": ""}});
        assert_eq!(told(&excludes, &body), ["`/file`: data and id exclude each other"]);
    }

    #[test]
    fn fields_are_pointed_to_where_they_belong() {
        let options = object(&json!({"top_k": {}}), &[]);
        let schema = object(&json!({"options": options, "keep_alive": {}}), &[]);
        assert_eq!(
            told(&schema, &json!({"top_k": 1})),
            ["the API knows no field `/top_k` (`top_k` belongs in `/options`)"]
        );
        assert_eq!(
            told(&schema, &json!({"options": {"keep_alive": 1}})),
            ["the API knows no field `/options/keep_alive` (`keep_alive` belongs at the top of the body)"]
        );
    }

    #[test]
    fn null_comes_last_and_strings_that_hold_json_say_so() {
        let schema = json!({"properties": {"stop": {"type": ["null", "array"]}}});
        assert_eq!(told(&schema, &json!({"stop": 1})), ["`/stop` must be a list or null, not a number"]);
        assert_eq!(
            told(&schema, &json!({"stop": "[1]"})),
            [
                "`/stop` must be a list or null, not a string (the string holds a list: encoded twice, or a template without \
             `{{` and `{%`)"
            ]
        );
    }

    #[test]
    fn what_one_object_lacks_is_one_problem() {
        let schema = object(&json!({"a": {}, "b": {}, "c": {"required": ["d"]}}), &["a", "b"]);
        let validator = jsonschema::draft202012::options().offline().build(&schema).expect("a schema");
        let mut problems = problems(&schema, &validator, &json!({"c": {}}));
        problems.dedup_by(|next, kept| absorb(kept, next));
        let mut messages: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
        messages.sort_unstable();
        assert_eq!(messages, ["`/a` and `/b` are missing", "`/c/d` is missing"]);
    }

    #[test]
    fn only_what_is_misspelt_is_told_instead_of_what_is_missing() {
        let schema = object(&json!({"max_tokens": {}, "model": {}}), &["max_tokens", "model"]);
        let validator = jsonschema::draft202012::options().offline().build(&schema).expect("a schema");
        let problems = problems(&schema, &validator, &json!({"max_token": 1}));
        let told = told_at_keys(&problems);
        let left = problems.iter().zip(told).filter(|(_, told)| !told);
        let messages: Vec<&str> = left.map(|(problem, _)| problem.message.as_str()).collect();
        assert_eq!(messages, ["`/model` is missing", "the API knows no field `/max_token`"]);
    }
}
