//! Converts a validator's errors to problems that a person can act on.

use std::sync::{Arc, Weak};

use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use super::fields::{keyword_owner, known_fields, property_schema};
use super::mistake::{Hint, Mistake, What, few, fold};
use super::node::follow;
use super::unknown::{
    FieldHint, Level, UnknownField, meant_or_known, too_deep, twice, unknown_field,
};
use super::words::{
    advice, describe, form, form_of_type, json_in_string, limit, plain, shown, type_names, wanted,
};
use super::{rules, spelling};
use crate::json::{Pointer, kind_of};
use crate::memory::{Identity, Memory, Question};
use crate::provider::WireFormat;

/// The keyword that specifies the member whose value selects a branch of a schema.
const DISCRIMINATOR: &str = "x-reqc-discriminator";
/// The keyword for the value that is assumed if the discriminator is absent.
const DEFAULT: &str = "x-reqc-discriminator-default";
/// The keyword for the message that is shown if a part of a schema fails as a whole.
const MESSAGE: &str = "x-reqc-message";

/// The maximum number of problems that are reported for one body. The search stops one problem
/// later, to find out whether there are more.
pub(super) const MAX_PROBLEMS: usize = 1_000;

/// Returns the mistakes in a body, in schema order. Stops one mistake beyond [`MAX_PROBLEMS`].
/// `original` is the body in its original spelling, which may be `body` itself.
pub(super) fn mistakes(
    schema: KnownSchema<'_>,
    validator: &Validator,
    body: &Value,
    original: &Value,
) -> Vec<Mistake> {
    let mut explaining = Explaining {
        is_respelt: !std::ptr::eq(body, original),
        ..Explaining::part(schema, Found::whole(original), Vec::new())
    };
    for error in validator.iter_errors(body) {
        explaining.error(&error);
        if explaining.mistakes.len() > MAX_PROBLEMS {
            break;
        }
    }
    fold(&mut explaining.mistakes);
    explaining.mistakes
}

/// The identity of a schema, and the cache for findings about it. Caching helps because bodies of
/// the same agent repeat the same mistakes.
#[derive(Default)]
pub(super) struct Known {
    pub(super) schema: Identity,
    pub(super) memory: Weak<Memory>,
    /// The wire format that the schema describes.
    pub(super) wire: Option<WireFormat>,
}

impl Known {
    /// Returns the cached answer, or else the answer that `work_out` computes.
    pub(super) fn ask<Q: Question>(
        &self,
        question: Q,
        work_out: impl FnOnce() -> Q::Answer,
    ) -> Q::Answer {
        match self.memory.upgrade() {
            Some(memory) => memory.ask(question, work_out),
            None => work_out(),
        }
    }
}

/// A schema and the cached findings about it.
#[derive(Clone, Copy)]
pub(super) struct KnownSchema<'s> {
    pub(super) value: &'s Value,
    pub(super) known: &'s Known,
}

/// A value in a body and its location.
#[derive(Clone)]
pub(super) struct Found<'v> {
    pub(super) at: Pointer,
    pub(super) value: &'v Value,
}

impl<'v> Found<'v> {
    pub(super) fn whole(body: &'v Value) -> Found<'v> {
        Found {
            at: Pointer::root(),
            value: body,
        }
    }
}

/// The alternatives at a location in a schema.
#[derive(Clone, Copy)]
pub(super) struct Alternatives<'c> {
    /// The location of the keyword that contains the alternatives.
    pub(super) path: &'c str,
    pub(super) choice: &'c Choice,
}

/// The [`Question`] of how to choose between a keyword's branches. The keyword is given by its
/// location.
#[derive(PartialEq, Eq, Hash)]
struct ChoiceAt(Identity, Box<str>);

impl Question for ChoiceAt {
    type Answer = Arc<Choice>;
}

/// The [`Question`] of which values the author of a body probably meant instead of one that a
/// keyword rejects.
#[derive(PartialEq, Eq, Hash)]
struct ValueAt(Identity, Box<str>, Box<str>);

impl Question for ValueAt {
    type Answer = Hint;
}

/// The [`Question`] of which field the author of a body probably meant instead of one that a
/// keyword rejects.
#[derive(PartialEq, Eq, Hash)]
struct FieldAt(Identity, Box<str>, Level, Box<str>);

impl Question for FieldAt {
    type Answer = FieldHint;
}

/// A collector of the mistakes in a body, or in a part of a body.
pub(super) struct Explaining<'s> {
    schema: KnownSchema<'s>,
    part: Found<'s>,
    /// `true` if errors spell field names differently from the original body.
    is_respelt: bool,
    pub(super) mistakes: Vec<Mistake>,
}

impl<'s> Explaining<'s> {
    /// Creates a collector for a part of a body, with the `mistakes` that were found so far.
    pub(super) fn part(
        schema: KnownSchema<'s>,
        part: Found<'s>,
        mistakes: Vec<Mistake>,
    ) -> Explaining<'s> {
        Explaining {
            schema,
            part,
            is_respelt: false,
            mistakes,
        }
    }

    /// Adds the mistakes that explain a validation error.
    pub(super) fn error(&mut self, error: &ValidationError<'_>) {
        let inner = error.instance_path().as_str();
        let inner = if self.is_respelt {
            spelling::original(inner, self.part.value)
        } else {
            Pointer::parse(inner)
        };
        let Some(found) = self.part.value.pointer(inner.as_str()) else {
            return;
        };
        let at = self.part.at.join(&inner);
        let (schema, path) = (self.schema.value, error.schema_path().as_str());
        match error.kind() {
            kind @ (Kind::OneOfNotValid { context } | Kind::AnyOf { context }) => {
                let found = Found { at, value: found };
                self.alternatives(error, kind.keyword(), context, found);
            }
            Kind::AdditionalProperties { unexpected }
            | Kind::UnevaluatedProperties { unexpected } => {
                let node = keyword_owner(schema, path);
                let room = (MAX_PROBLEMS + 1).saturating_sub(self.mistakes.len());
                let unknown = |name: &String| {
                    let mistake = twice(schema, node, &at, name);
                    let mistake = mistake.unwrap_or_else(|| self.unknown_field(path, &at, name));
                    too_deep(schema, node, found.get(name), mistake)
                };
                let unknown: Vec<Mistake> = unexpected.iter().take(room).map(unknown).collect();
                self.mistakes.extend(unknown);
            }
            Kind::PropertyNames { error } => self.mistakes.push(self.field_name(error, &at)),
            kind => self.mistakes.push(self.simple(path, kind, at, found)),
        }
    }

    /// Returns the mistake for a field whose name the schema rejects.
    fn field_name(&self, error: &ValidationError<'_>, object: &Pointer) -> Mistake {
        let name = plain(error.instance());
        let violation = match error.kind() {
            Kind::Pattern { pattern } => format!("does not match `{pattern}`"),
            kind => limit(kind, error.instance()),
        };
        let shown = shown(error.instance());
        let message = format!("the field name `{shown}` in `{object}` {violation}");
        let asked = describe(keyword_owner(
            self.schema.value,
            error.schema_path().as_str(),
        ));
        Mistake::value(object.member(&name), message, asked.into())
    }

    /// Explains a value that matches none of several alternatives.
    fn alternatives(
        &mut self,
        error: &ValidationError<'_>,
        keyword: &str,
        context: &[Vec<ValidationError<'static>>],
        found: Found<'_>,
    ) {
        let (schema, path) = (self.schema.value, error.schema_path().as_str());
        let choice = || Arc::new(Choice::of(schema, keyword_owner(schema, path), keyword));
        let known = self.schema.known;
        let choice = known.ask(ChoiceAt(known.schema, path.into()), choice);
        let of_branch = |told: &mut Self, index: usize| {
            context[index].iter().for_each(|inner| told.error(inner));
        };
        let alternatives = Alternatives {
            path,
            choice: &choice,
        };
        if !self.picked(alternatives, &found, of_branch) {
            self.nearest(error, context, found.at);
        }
    }

    /// Explains a value in terms of the intended alternative. Returns `false` if nothing indicates
    /// the intended one.
    pub(super) fn picked(
        &mut self,
        alternatives: Alternatives<'_>,
        found: &Found<'_>,
        of_branch: impl FnOnce(&mut Self, usize),
    ) -> bool {
        let Alternatives { path, choice } = alternatives;
        let Found { at, value: found } = found;
        let before = self.mistakes.len();
        match choice.pick(found) {
            Pick::Branch(index) => {
                of_branch(self, index);
                let told = &mut self.mistakes[before..];
                for mistake in told {
                    alternatives.point_elsewhere(self.schema.value, at, mistake);
                }
            }
            Pick::Nearest => return false,
            Pick::Unknown { member, value } => {
                let place = at.member(member);
                let message = format!("`{place}` cannot be `{value}`");
                let hint = match self.value_hint(path, &value, || choice.known()) {
                    Hint::Known {
                        words,
                        member: of,
                        names,
                    } => match alternatives.of_shape(self.schema.value, member, found) {
                        Some(meant) => Hint::Meant(vec![meant]),
                        None => Hint::Known {
                            words,
                            member: of,
                            names,
                        },
                    },
                    hint => hint,
                };
                let found = found.get(member).map_or("", kind_of);
                let what = What::Unfit { message, found };
                self.mistakes.push(Mistake {
                    what,
                    ..Mistake::value(place, String::new(), hint)
                });
            }
            Pick::Missing { member } => {
                let hint = match alternatives.of_shape(self.schema.value, member, found) {
                    Some(meant) => {
                        Hint::Other(format!("write `{meant}`, which fits the other fields"))
                    }
                    None => {
                        let (words, names) = ("write one of: ", choice.known());
                        Hint::Known {
                            words,
                            member: Some(member.to_owned()),
                            names,
                        }
                    }
                };
                self.mistakes
                    .push(Mistake::missing(at.clone(), member, hint));
            }
        }
        true
    }

    /// Explains a value by the errors of the branch that was most likely meant, or by the message
    /// of the whole schema.
    fn nearest(
        &mut self,
        error: &ValidationError<'_>,
        context: &[Vec<ValidationError<'static>>],
        at: Pointer,
    ) {
        let own = said(self.schema.value, error.schema_path().as_str());
        match nearest_branch(context).filter(|_| own.is_none()) {
            Some(index) => context[index].iter().for_each(|inner| self.error(inner)),
            None => {
                let message = own.map_or_else(
                    || format!("`{at}` matches none of the forms that the API accepts"),
                    |said| format!("`{at}`: {said}"),
                );
                let mistake = Mistake::value(at, message.clone(), Hint::None);
                self.mistakes.push(match asked_for(context) {
                    Some(names) => Mistake {
                        what: What::NoneOf { names, message },
                        ..mistake
                    },
                    None => mistake,
                });
            }
        }
    }

    /// Returns the mistake for a field that is rejected by the keyword at a path in the schema.
    fn unknown_field(&self, path: &str, at: &Pointer, name: &str) -> Mistake {
        let level = Level::of(at);
        let KnownSchema {
            value: schema,
            known,
        } = self.schema;
        let field = UnknownField {
            schema,
            wire: known.wire,
            owner: keyword_owner(schema, path),
            level,
            name,
        };
        let make = || field.hint();
        let hint = match name.len() <= LONGEST_KEPT {
            true => known.ask(FieldAt(known.schema, path.into(), level, name.into()), make),
            false => make(),
        };
        unknown_field(at, name, hint)
    }

    /// Returns a hint with the similar values or, if there are none, with all known values.
    fn value_hint(&self, path: &str, value: &str, known: impl FnOnce() -> Vec<String>) -> Hint {
        let make = || meant_or_known(self.schema.known.wire, value, &known());
        let known = self.schema.known;
        match value.len() <= LONGEST_KEPT {
            true => known.ask(ValueAt(known.schema, path.into(), value.into()), make),
            false => make(),
        }
    }
}

/// Returns the fields if an object needs one of them. Returns `None` unless each alternative fails
/// only because one field is missing.
fn asked_for(context: &[Vec<ValidationError<'static>>]) -> Option<Vec<String>> {
    context
        .iter()
        .map(|errors| match errors.as_slice() {
            [error] => match error.kind() {
                Kind::Required { property } => property.as_str().map(str::to_owned),
                _ => None,
            },
            _ => None,
        })
        .collect()
}

/// The maximum length in bytes of a value or name whose hint is cached.
const LONGEST_KEPT: usize = 64;

impl Explaining<'_> {
    /// Returns the mistake for an error that can be explained from the failing keyword alone.
    fn simple(&self, path: &str, kind: &Kind, at: Pointer, found: &Value) -> Mistake {
        let schema = self.schema.value;
        let node = keyword_owner(schema, path);
        let said = || said(schema, path).map(|said| format!("`{at}`: {said}"));
        let (rule, message, hint) = match kind {
            Kind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                let property = property_schema(node, name);
                let missing = Mistake::missing(at, name, form(schema, property).into());
                return Mistake {
                    asks: describe(property),
                    ..missing
                };
            }
            // The schema's own message explains why a known field is not allowed here.
            Kind::FalseSchema => match said() {
                Some(message) => (&rules::INVALID_VALUE, message, Hint::None),
                None => (
                    &rules::UNKNOWN_FIELD,
                    format!("`{at}` is not allowed here"),
                    Hint::None,
                ),
            },
            Kind::Not { .. } => {
                let message = said().unwrap_or_else(|| format!("`{at}` {}", limit(kind, found)));
                (&rules::INVALID_VALUE, message, Hint::None)
            }
            Kind::Type { kind } => {
                // A fraction is also a number, so the message shows the value to make clear that an
                // integer is required.
                let is_fraction =
                    found.is_number() && type_names(kind).iter().any(|name| name == "integer");
                let what = if is_fraction {
                    shown(found)
                } else {
                    kind_of(found).to_owned()
                };
                let message = format!("`{at}` must be {}, not {what}", wanted(kind));
                (
                    &rules::WRONG_TYPE,
                    message,
                    json_in_string(kind, found)
                        .or_else(|| form_of_type(schema, node, kind, found))
                        .into(),
                )
            }
            Kind::Enum { options } => {
                let message = format!("`{at}` cannot be `{}`", shown(found));
                (
                    &rules::INVALID_VALUE,
                    message,
                    self.value_hint(path, &plain(found), || {
                        options
                            .as_array()
                            .into_iter()
                            .flatten()
                            .map(plain)
                            .collect()
                    }),
                )
            }
            Kind::Constant { expected_value } => {
                let message = format!(
                    "`{at}` must be `{}`, not `{}`",
                    plain(expected_value),
                    shown(found)
                );
                (&rules::INVALID_VALUE, message, Hint::None)
            }
            // A regular expression is hard to read: words, or the description, explain the form.
            kind @ Kind::Pattern { .. } => (
                &rules::INVALID_VALUE,
                format!("`{at}` {}", limit(kind, found)),
                advice(node).or_else(|| describe(node)).into(),
            ),
            kind => (
                &rules::INVALID_VALUE,
                format!("`{at}` {}", limit(kind, found)),
                Hint::None,
            ),
        };
        let asks = describe(node).filter(|_| rule == &rules::INVALID_VALUE);
        let is_choice = matches!(
            kind,
            Kind::Type { .. } | Kind::Enum { .. } | Kind::Constant { .. }
        );
        let what = match is_choice {
            true => What::Unfit {
                message,
                found: kind_of(found),
            },
            false => What::Other(message),
        };
        Mistake {
            rule,
            pointer: at,
            what,
            hint,
            passed_over_by: None,
            asks,
            place: None,
        }
    }
}

/// Returns the schema's own message for a part that fails. The message is in the schema that
/// contains the failing keyword, or in a schema a few levels above.
fn said(schema: &Value, path: &str) -> Option<String> {
    let owners = std::iter::successors(Some(path), |path| path.rfind('/').map(|at| &path[..at]));
    let mut nodes = owners.take(5).filter_map(|path| schema.pointer(path));
    nodes.find_map(|node| node.get(MESSAGE)?.as_str().map(str::to_owned))
}

/// The alternatives of a schema, and the member by which they are distinguished.
pub(super) struct Choice {
    member: Option<String>,
    default: Option<String>,
    /// For each branch, the values of the member that select it.
    branches: Vec<Vec<String>>,
}

enum Pick<'c> {
    Branch(usize),
    /// No member distinguishes the branches, so the branch that was most likely meant is used.
    Nearest,
    /// The member's value, given here, selects no branch.
    Unknown {
        member: &'c str,
        value: String,
    },
    /// The member is missing.
    Missing {
        member: &'c str,
    },
}

/// One of several alternatives.
struct Branch<'s, 'c> {
    schema: &'s Value,
    /// The values of the member that select this branch.
    values: &'c [String],
}

/// Returns the branches of the alternatives at a location in the schema.
pub(super) fn branches<'s>(
    node: Option<&'s Value>,
    keyword: &str,
) -> impl Iterator<Item = &'s Value> {
    node.and_then(|node| node.get(keyword))
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

impl Choice {
    pub(super) fn of(schema: &Value, node: Option<&Value>, keyword: &str) -> Choice {
        let text = |key: &str| {
            node.and_then(|node| node.get(key))
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let member = text(DISCRIMINATOR);
        let branches = branches(node, keyword)
            .map(|branch: &Value| -> Vec<String> {
                let Some(member) = member.as_deref() else {
                    return Vec::new();
                };
                let property = property_schema(Some(follow(schema, branch)), member)
                    .map(|property| follow(schema, property));
                let constant = property
                    .and_then(|property| property.get("const"))
                    .into_iter();
                let listed = property
                    .and_then(|property| property.get("enum"))
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten();
                constant.chain(listed).map(plain).collect()
            })
            .collect();
        Choice {
            default: text(DEFAULT),
            member,
            branches,
        }
    }

    fn pick(&self, found: &Value) -> Pick<'_> {
        let (Some(member), Value::Object(members)) = (self.member.as_deref(), found) else {
            return Pick::Nearest;
        };
        let branch = |value: &str| {
            self.branches
                .iter()
                .position(|values| values.iter().any(|known| known == value))
        };
        match members.get(member) {
            Some(value) => branch(&plain(value)).map_or_else(
                || Pick::Unknown {
                    member,
                    value: shown(value),
                },
                Pick::Branch,
            ),
            None => self
                .default
                .as_deref()
                .and_then(branch)
                .map_or(Pick::Missing { member }, Pick::Branch),
        }
    }

    fn known(&self) -> Vec<String> {
        self.branches.iter().flatten().cloned().collect()
    }

    /// Returns `true` if an object can match only the branch that its discriminator selects.
    /// `required` returns the names of the members that a branch requires.
    pub(super) fn is_exclusive<'s>(
        &self,
        required: impl Fn(usize) -> Option<&'s Vec<Value>>,
    ) -> bool {
        let Some(member) = &self.member else {
            return false;
        };
        let mut values: Vec<&String> = self.branches.iter().flatten().collect();
        values.sort_unstable();
        let is_default = |values: &[String]| {
            self.default
                .as_ref()
                .is_some_and(|default| values.contains(default))
        };
        let needs_member = |index: usize| {
            required(index).is_some_and(|names| names.iter().any(|name| name == member))
        };
        values.windows(2).all(|pair| pair[0] != pair[1])
            && self.branches.iter().enumerate().all(|(index, values)| {
                !values.is_empty() && (is_default(values) || needs_member(index))
            })
    }
}

impl Alternatives<'_> {
    /// Returns the branches, each with the values of the member that select it.
    fn branches<'s>(&self, schema: &'s Value) -> impl Iterator<Item = Branch<'s, '_>> {
        let keyword = self.path.rsplit('/').next().unwrap_or_default();
        let branches = branches(keyword_owner(schema, self.path), keyword);
        let with_values = branches.zip(&self.choice.branches);
        with_values.map(|(schema, values)| Branch { schema, values })
    }

    /// Returns the value that the member should have: the value of the only alternative that has
    /// all other members of an object.
    fn of_shape(&self, schema: &Value, member: &str, found: &Value) -> Option<String> {
        let others: Vec<&String> = found
            .as_object()?
            .keys()
            .filter(|name| *name != member)
            .collect();
        let fitting = self.branches(schema).filter(|branch| {
            let known = known_fields(schema, Some(branch.schema));
            others.iter().all(|name| known.contains(name))
        });
        let mut fitting = fitting.map(|branch| branch.values);
        let value = fitting.next()?.first().filter(|_| !others.is_empty())?;
        fitting
            .all(|values| values.contains(value))
            .then(|| value.clone())
    }

    /// Adds a hint to an unknown field: the alternatives that have this field. Does nothing if a
    /// similar name was found.
    fn point_elsewhere(&self, schema: &Value, at: &Pointer, mistake: &mut Mistake) {
        if !matches!(
            (&mistake.what, &mistake.hint),
            (What::Unknown, Hint::Fields(_))
        ) {
            return;
        }
        let name = mistake
            .pointer
            .tokens()
            .last()
            .filter(|_| mistake.pointer.parent().as_ref() == Some(at));
        let (Some(member), Some(name)) = (&self.choice.member, name) else {
            return;
        };
        let having = self
            .branches(schema)
            .filter(|branch| known_fields(schema, Some(branch.schema)).contains(&name))
            .flat_map(|branch| branch.values);
        let having = having.filter(|value| *value != "null");
        let values: Vec<String> = having.map(|value| format!("`{value}`")).collect();
        mistake.hint = Hint::Other(match values.as_slice() {
            [] => return,
            [one] => format!("`{name}` belongs to the {member} {one}"),
            [one, other] => format!("`{name}` belongs to the {member} {one} or {other}"),
            several => format!(
                "`{name}` belongs to other values of `{member}`: {}",
                few(several)
            ),
        });
    }
}

/// Returns the branch that was most likely meant: the one whose shallowest error is deepest. If
/// several are equally deep, branches without type errors and with fewer errors are preferred.
fn nearest_branch(context: &[Vec<ValidationError<'_>>]) -> Option<usize> {
    let depth = |errors: &Vec<ValidationError<'_>>| {
        let deepest = errors
            .iter()
            .map(|error| error.instance_path().as_str().matches('/').count())
            .min()
            .unwrap_or(0);
        let is_type = errors
            .iter()
            .any(|error| matches!(error.kind(), Kind::Type { .. }));
        (deepest, !is_type, std::cmp::Reverse(errors.len()))
    };
    (0..context.len()).max_by_key(|&index| (depth(&context[index]), std::cmp::Reverse(index)))
}

#[cfg(test)]
mod tests {
    use super::super::mistake::{absorb, drop_misspelt};
    use super::*;

    use serde_json::json;

    /// Returns the messages and hints for a body, one per line.
    fn told(schema: &Value, body: &Value) -> Vec<String> {
        let validator = jsonschema::draft202012::options()
            .offline()
            .build(schema)
            .expect("a schema");
        let schema = KnownSchema {
            value: schema,
            known: &Known::default(),
        };
        mistakes(schema, &validator, body, body)
            .into_iter()
            .map(|it| it.told(""))
            .map(|problem| match problem.help {
                Some(help) => format!("{} ({help})", problem.message),
                None => problem.message,
            })
            .collect()
    }

    fn object(properties: &Value, required: &[&str]) -> Value {
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
    }

    /// Returns a schema for a list of messages and calls. The `type` of a message may be missing,
    /// and its content is a list of parts.
    fn items() -> Value {
        let text = object(
            &json!({"type": {"const": "text"}, "text": {"type": "string"}}),
            &["type", "text"],
        );
        let image = object(
            &json!({"type": {"const": "image"}, "url": {"type": "string", "minLength": 1}}),
            &["type", "url"],
        );
        let parts = json!({"x-reqc-discriminator": "type", "oneOf": [text, image]});
        let message = object(
            &json!({"type": {"const": "message"}, "content": {"items": parts}}),
            &["content"],
        );
        let call = object(
            &json!({"type": {"enum": ["call"]}, "call_id": {"type": "string"}}),
            &["type", "call_id"],
        );
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
            ["the API has no field `/input/0/kontent` (did you mean `content`?)"]
        );
        assert_eq!(
            told(&items(), &json!({"input": [{}]})),
            ["`/input/0/content` is missing"]
        );
    }

    #[test]
    fn without_a_default_the_discriminator_is_missing() {
        assert_eq!(
            told(&items(), &json!({"input": [{"content": [{"text": "a"}]}]})),
            ["`/input/0/content/0/type` is missing (write `text`, which fits the other fields)"]
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
                "the API has no field `/input/0/content/1/url` (`url` belongs to the type `image`)",
            ]
        );
        let body = json!({"input": [{"type": "call", "call_id": 7}]});
        assert_eq!(
            told(&items(), &body),
            ["`/input/0/call_id` must be a string, not a number (put it in quotes: `\"7\"`)"]
        );
    }

    #[test]
    fn quotes_are_proposed_only_for_possible_strings() {
        let listed =
            json!({"properties": {"choice": {"type": "string", "enum": ["auto", "true"]}}});
        let quoted = "`/choice` must be a string, not a boolean (put it in quotes: `\"true\"`)";
        assert_eq!(told(&listed, &json!({"choice": true}))[0], quoted);
        let other = json!({"properties": {"choice": {"type": "string", "enum": ["auto"]}}});
        let plain = "`/choice` must be a string, not a boolean";
        assert_eq!(told(&other, &json!({"choice": true}))[0], plain);
        let shaped = json!({"properties": {"choice": {"type": "string", "pattern": "^[0-9]+s$"}}});
        assert_eq!(told(&shaped, &json!({"choice": true})), [plain]);
    }

    #[test]
    fn what_fails_as_a_whole_is_told_in_the_schemas_own_words() {
        let needs = json!({
            "x-reqc-message": "a file needs data or id",
            "anyOf": [{"required": ["data"]}, {"required": ["id"]}]
        });
        assert_eq!(
            told(&needs, &json!({})),
            ["`(the whole body)`: a file needs data or id"]
        );
        let excludes = json!({"properties": {"file": {
            "x-reqc-message": "data and id exclude each other", "not": {"required": ["data", "id"]}
        }}});
        let body = json!({"file": {"data": "", "id": ""}});
        assert_eq!(
            told(&excludes, &body),
            ["`/file`: data and id exclude each other"]
        );
    }

    #[test]
    fn fields_are_pointed_to_where_they_belong() {
        let options = object(&json!({"top_k": {}}), &[]);
        let schema = object(&json!({"options": options, "keep_alive": {}}), &[]);
        assert_eq!(
            told(&schema, &json!({"top_k": 1})),
            ["the API has no field `top_k` (`top_k` belongs in `/options`)"]
        );
        assert_eq!(
            told(&schema, &json!({"options": {"keep_alive": 1}})),
            [
                "the API has no field `/options/keep_alive` (`keep_alive` belongs at the top of the body)"
            ]
        );
    }

    #[test]
    fn a_name_that_is_not_accepted_is_told_at_its_field() {
        let names = json!({"pattern": "^[0-9]+$", "description": "ids of tokens"});
        let schema = json!({"properties": {"bias": {"propertyNames": names}}});
        assert_eq!(
            told(&schema, &json!({"bias": {"1": 0, "a/b": 0}})),
            ["the field name `a/b` in `/bias` does not match `^[0-9]+$` (ids of tokens)"]
        );
        let short = json!({"propertyNames": {"maxLength": 1}});
        assert_eq!(
            told(&short, &json!({"ab": 0})),
            ["the field name `ab` in `(the whole body)` must have at most 1 characters"]
        );
    }

    #[test]
    fn types_are_named_without_null_and_strings_that_hold_json_say_so() {
        let schema = json!({"properties": {"stop": {"type": ["null", "array"]}}});
        assert_eq!(
            told(&schema, &json!({"stop": 1})),
            ["`/stop` must be a list, not a number"]
        );
        assert_eq!(
            told(&schema, &json!({"stop": "[1]"})),
            [
                "`/stop` must be a list, not a string (the string contains a list: it is encoded twice, or is a template without \
             `{{` and `{%`)"
            ]
        );
    }

    #[test]
    fn what_one_object_lacks_is_one_problem() {
        let schema = object(
            &json!({"a": {}, "b": {}, "c": {"required": ["d"]}}),
            &["a", "b"],
        );
        let validator = jsonschema::draft202012::options()
            .offline()
            .build(&schema)
            .expect("a schema");
        let known = KnownSchema {
            value: &schema,
            known: &Known::default(),
        };
        let mut mistakes = mistakes(known, &validator, &json!({"c": {}}), &json!({"c": {}}));
        mistakes.dedup_by(|next, kept| absorb(kept, next));
        let mut messages: Vec<String> = mistakes
            .into_iter()
            .map(|mistake| mistake.told("").message)
            .collect();
        messages.sort_unstable();
        assert_eq!(messages, ["`/a` and `/b` are missing", "`/c/d` is missing"]);
    }

    #[test]
    fn only_what_is_misspelt_is_told_instead_of_what_is_missing() {
        let schema = object(
            &json!({"max_tokens": {}, "model": {}}),
            &["max_tokens", "model"],
        );
        let validator = jsonschema::draft202012::options()
            .offline()
            .build(&schema)
            .expect("a schema");
        let known = KnownSchema {
            value: &schema,
            known: &Known::default(),
        };
        let mut mistakes = mistakes(
            known,
            &validator,
            &json!({"max_token": 1}),
            &json!({"max_token": 1}),
        );
        drop_misspelt(&mut mistakes);
        let messages: Vec<String> = mistakes
            .into_iter()
            .map(|mistake| mistake.told("").message)
            .collect();
        assert_eq!(
            messages,
            ["`/model` is missing", "the API has no field `max_token`"]
        );
    }

    #[test]
    fn fields_at_the_wrong_depth_are_one_mistake() {
        let function = json!({"properties": {"name": {"type": "string"}, "parameters": {"type": "object"}},
                              "required": ["name"], "additionalProperties": false});
        let nested = json!({"properties": {"type": {"const": "function"}, "function": function},
                            "required": ["type", "function"], "additionalProperties": false});
        let flat = json!({"type": "function", "name": "a", "parameters": {}});
        assert_eq!(
            told(&nested, &flat),
            ["`/function` is missing (put `name` and `parameters` into it)"]
        );
        let deep = json!({"function": {"name": "a"}});
        assert_eq!(
            told(&function, &deep),
            ["the API has no field `function` (remove it here, and write `name` in its place)"]
        );
    }

    #[test]
    fn an_object_in_the_place_of_a_text_is_told_how_to_be_one() {
        let schema = json!({"properties": {
            "url": {"type": "string"}, "arguments": {"type": "string", "description": "Arguments as JSON"},
            "content": {"type": ["string", "array"]}}});
        let body = json!({"url": {"url": "a"}, "arguments": {"name": "a"}, "content": {"a": 1}});
        let json = "(write it as a string that contains the JSON)";
        assert_eq!(
            told(&schema, &body),
            [
                "`/url` must be a string, not an object (write only the text of its `url`)".to_owned(),
                format!("`/arguments` must be a string, not an object {json}"),
                "`/content` must be a string or a list, not an object (write a string in quotes, or a list: `[…]`)"
                    .to_owned(),
            ]
        );
    }
}
