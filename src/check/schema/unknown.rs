//! Advice for fields and values that are not in a schema: names from other APIs, names that belong
//! elsewhere, and typing mistakes.

use serde_json::Value;

use super::fields::known_fields;
use super::mistake::{FEW, Hint, Mistake, What};
use super::{rules, spelling};
use crate::diag::nearest as nearest_names;
use crate::json::Pointer;
use crate::provider::WireFormat;
use crate::provider::names::{self, Synonyms};

/// The nesting level of an object in a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Level {
    Body,
    /// A member of the body, which may be a group of settings.
    Member,
    Deeper,
}

impl Level {
    pub(super) fn of(at: &Pointer) -> Level {
        match at.tokens().count() {
            0 => Level::Body,
            1 => Level::Member,
            _ => Level::Deeper,
        }
    }
}

/// A field that is not in the schema of its object.
pub(super) struct UnknownField<'s> {
    pub(super) schema: &'s Value,
    pub(super) wire: Option<WireFormat>,
    /// The schema of the object that contains the field.
    pub(super) owner: Option<&'s Value>,
    pub(super) level: Level,
    pub(super) name: &'s str,
}

impl UnknownField<'_> {
    /// Returns a hint about what was meant: this API's name or location for another API's field, or
    /// a similar name.
    pub(super) fn hint(&self) -> FieldHint {
        let of_other_api = self.synonyms().find_map(|synonyms| self.synonym(synonyms));
        of_other_api
            .or_else(|| self.misspelt())
            .or_else(|| self.elsewhere(&[self.name.to_owned()]))
            .or_else(|| self.absent())
            .unwrap_or_else(|| {
                let known = known_fields(self.schema, self.owner);
                FieldHint::Is(match known.is_empty() {
                    true => Hint::None,
                    false => Hint::Fields(by_nearness(self.name, known)),
                })
            })
    }

    /// Returns the entries of `api-names.toml` that contain the field's name.
    fn synonyms(&self) -> impl Iterator<Item = &'static Synonyms> {
        let fields = names::of_field(self.name).filter(|_| self.level != Level::Body);
        let settings = names::of_setting(self.name).filter(|_| self.level != Level::Deeper);
        fields.chain(settings)
    }

    /// Returns this API's name for the field, its location, or the advice for it.
    fn synonym(&self, synonyms: &Synonyms) -> Option<FieldHint> {
        let known = known_fields(self.schema, self.owner);
        of_other_api(self.wire, synonyms, &known)
            .map(FieldHint::Is)
            .or_else(|| self.elsewhere(&synonyms.names))
    }

    /// Returns the object's fields with a similar name. Another API's setting is not treated as a
    /// typing mistake.
    fn misspelt(&self) -> Option<FieldHint> {
        let is_setting = self.level == Level::Body && self.synonyms().next().is_some();
        let near = || meant(self.name, &known_fields(self.schema, self.owner));
        if is_setting {
            None
        } else {
            near().map(FieldHint::Is)
        }
    }

    /// Returns a hint for the first of these names that is a field in one of the object's members,
    /// or in the body.
    fn elsewhere(&self, names: &[String]) -> Option<FieldHint> {
        let has =
            |node: &Value, name: &String| known_fields(self.schema, Some(node)).contains(name);
        let members = self
            .owner
            .and_then(|owner| owner.get("properties")?.as_object());
        let below = members.and_then(|members| {
            names.iter().find_map(|name| {
                let (member, _) = members.iter().find(|(_, member)| has(member, name))?;
                Some(FieldHint::Below {
                    member: member.clone(),
                    name: name.clone(),
                })
            })
        });
        let at_top = || names.iter().find(|name| has(self.schema, name)).cloned();
        match self.level {
            Level::Body => below,
            Level::Member | Level::Deeper => below.or_else(|| at_top().map(FieldHint::AtTop)),
        }
    }

    /// Returns the advice for a setting that this API does not have.
    fn absent(&self) -> Option<FieldHint> {
        let synonyms = self
            .synonyms()
            .next()
            .filter(|_| self.level == Level::Body)?;
        let advice = synonyms.otherwise.as_deref();
        let advice = advice.unwrap_or("leave it out: this API has no such setting");
        Some(FieldHint::Is(Hint::Other(advice.to_owned())))
    }
}

/// A hint for a field that is not in the schema of its object.
#[derive(Clone)]
pub(super) enum FieldHint {
    /// The field belongs in this member of the object, with this name.
    Below {
        member: String,
        name: String,
    },
    /// The field belongs at the top level of the body, with this name.
    AtTop(String),
    Is(Hint),
}

impl FieldHint {
    /// Resolves the hint to the location of the object that should contain the field.
    fn told(self, at: &Pointer, name: &str) -> Hint {
        match self {
            FieldHint::Below {
                member,
                name: meant,
            } if meant == name => Hint::Within(at.member(&member)),
            FieldHint::Below { member, name } => {
                Hint::Other(format!("write `{name}` in `{}`", at.member(&member)))
            }
            FieldHint::AtTop(meant) if meant == name => {
                Hint::Other(format!("`{name}` belongs at the top of the body"))
            }
            FieldHint::AtTop(name) => Hint::Other(format!("write `{name}` at the top of the body")),
            FieldHint::Is(hint) => hint,
        }
    }
}

pub(super) fn unknown_field(at: &Pointer, name: &str, hint: FieldHint) -> Mistake {
    Mistake {
        rule: &rules::UNKNOWN_FIELD,
        what: What::Unknown,
        pointer: at.member(name),
        hint: hint.told(at, name),
        passed_over_by: None,
        asks: None,
        place: None,
    }
}

/// Returns the mistake for a `snake_case` field whose `camelCase` spelling is in the schema, which
/// means that both spellings are present; `None` for any other field.
pub(super) fn twice(
    schema: &Value,
    node: Option<&Value>,
    at: &Pointer,
    name: &str,
) -> Option<Mistake> {
    let camel = spelling::camel_case(name).filter(|_| spelling::has_two(schema))?;
    known_fields(schema, node).contains(&camel).then(|| {
        let message = format!(
            "`{}` and `{}` are two names for the same field",
            at.member(&camel),
            at.member(name)
        );
        let hint = FieldHint::Is(Hint::Other("remove one of them".to_owned()));
        Mistake {
            what: What::Other(message),
            ..unknown_field(at, name, hint)
        }
    })
}

/// Changes the hint for an unknown field if it contains fields that belong one level higher.
pub(super) fn too_deep(
    schema: &Value,
    node: Option<&Value>,
    held: Option<&Value>,
    mistake: Mistake,
) -> Mistake {
    let known = known_fields(schema, node);
    let held = held
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(|members| members.keys());
    // Most objects have a field `type`, so this field proves nothing.
    let is_known = |name: &&String| known.contains(name) && **name != "type";
    let names: Vec<String> = held.filter(is_known).cloned().collect();
    match &mistake.hint {
        Hint::None | Hint::Fields(_) if !names.is_empty() => Mistake {
            hint: Hint::Unwrap(names),
            ..mistake
        },
        _ => mistake,
    }
}

/// The maximum length in bytes of a name that is compared with other names.
const LONGEST_NAME: usize = 64;

/// Sorts names by similarity if there are many. Names that contain `name`, or that are contained in
/// it, come first.
fn by_nearness(name: &str, mut known: Vec<String>) -> Vec<String> {
    if known.len() > FEW && name.len() <= LONGEST_NAME {
        let holds = |known: &str| known.contains(name) || known.len() > 2 && name.contains(known);
        let likeness = |known: &str| (!holds(known), 1.0 - strsim::jaro_winkler(name, known));
        known.sort_by(|a, b| {
            likeness(a)
                .partial_cmp(&likeness(b))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
    }
    known
}

/// Returns a hint with the names that are similar to `name`, if there are any.
fn meant(name: &str, known: &[String]) -> Option<Hint> {
    let near = nearest_names(name, known.iter().map(String::as_str));
    (!near.is_empty()).then(|| Hint::Meant(near.into_iter().map(str::to_owned).collect()))
}

/// Returns a wire format's advice for a name from another API, or else this API's names for the
/// same thing.
fn of_other_api(wire: Option<WireFormat>, synonyms: &Synonyms, known: &[String]) -> Option<Hint> {
    if let Some(advice) = wire.and_then(|wire| synonyms.instead(wire)) {
        return Some(Hint::Other(advice.to_owned()));
    }
    let mut here = synonyms.names.clone();
    here.retain(|name| known.contains(name));
    (!here.is_empty()).then_some(Hint::Meant(here))
}

/// Returns a hint with the values that were probably meant, or else with all known values.
pub(super) fn meant_or_known(wire: Option<WireFormat>, value: &str, known: &[String]) -> Hint {
    let of_other_api =
        names::of_value(value).find_map(|synonyms| of_other_api(wire, synonyms, known));
    let meant = of_other_api.or_else(|| meant(value, known));
    meant.unwrap_or_else(|| Hint::Known {
        words: "known: ",
        member: None,
        names: by_nearness(value, written(known)),
    })
}

/// Removes `null` from the values, because it is only another way to omit a field.
fn written(known: &[String]) -> Vec<String> {
    known
        .iter()
        .filter(|known| *known != "null")
        .cloned()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    use serde_json::json;

    #[expect(clippy::disallowed_methods, reason = "the test itself reads the file")]
    fn schema_of(wire: WireFormat) -> String {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/wire");
        std::fs::read_to_string(folder.join(format!("{}.schema.json", wire.name())))
            .expect("each wire format has a schema")
    }

    /// Returns the help for an unknown field of a body, or of a body's member.
    fn help(wire: WireFormat, member: Option<&str>, name: &str) -> Option<String> {
        let schema: Value = serde_json::from_str(&schema_of(wire)).expect("JSON");
        let (at, owner) = match member {
            Some(member) => (
                Pointer::root().member(member),
                schema["properties"].get(member),
            ),
            None => (Pointer::root(), Some(&schema)),
        };
        let field = UnknownField {
            schema: &schema,
            wire: Some(wire),
            owner,
            level: Level::of(&at),
            name,
        };
        unknown_field(&at, name, field.hint()).told("").help
    }

    #[test]
    fn advice_names_what_the_format_has() {
        for (wire, advice) in names::all_advice() {
            let schema = schema_of(*wire);
            let quoted = advice.split('`').skip(1).step_by(2);
            for name in quoted.filter(|name| name.chars().all(|c| c.is_alphanumeric() || c == '_'))
            {
                let is_absent = advice.contains(&format!("no `{name}`"));
                assert!(
                    is_absent || schema.contains(&format!("\"{name}\"")),
                    "{}: {advice}",
                    wire.name()
                );
            }
        }
    }

    #[test]
    fn settings_of_other_apis_are_found_where_this_one_has_them() {
        let help = |wire, name| help(wire, None, name).expect("help");
        for (wire, name, expected) in [
            (
                WireFormat::OllamaChat,
                "max_tokens",
                "write `num_predict` in `/options`",
            ),
            (
                WireFormat::AnthropicMessages,
                "stop",
                "did you mean `stop_sequences`?",
            ),
            (
                WireFormat::AnthropicMessages,
                "seed",
                "leave it out: this API has no such setting",
            ),
            (
                WireFormat::OpenAiResponses,
                "messages",
                "did you mean `input`?",
            ),
            (
                WireFormat::OpenAiChat,
                "system",
                "write it as the first message, with the role `system`",
            ),
            (
                WireFormat::OpenAiChat,
                "temprature",
                "did you mean `temperature`?",
            ),
        ] {
            assert_eq!(help(wire, name), expected, "{name} at {}", wire.name());
        }
    }

    #[test]
    fn settings_in_a_member_may_belong_at_the_top() {
        let help = |name| help(WireFormat::OllamaChat, Some("options"), name);
        assert_eq!(
            help("response_format").as_deref(),
            Some("write `format` at the top of the body")
        );
        assert_eq!(
            help("max_tokens").as_deref(),
            Some("did you mean `num_predict`?")
        );
    }

    #[test]
    fn a_value_of_another_api_is_the_one_that_this_api_has() {
        let known = ["text", "image_url", "input_audio"].map(str::to_owned);
        let hint = meant_or_known(Some(WireFormat::OpenAiChat), "input_image", &known);
        assert_eq!(hint, Hint::Meant(vec!["image_url".to_owned()]));
    }

    #[test]
    fn a_field_with_a_type_is_no_misplaced_object() {
        let schema = json!({"properties": {"type": {}, "text": {}}});
        let mistake =
            || unknown_field(&Pointer::root(), "cache_control", FieldHint::Is(Hint::None));
        let hint = |held: Value| too_deep(&schema, Some(&schema), Some(&held), mistake()).hint;
        assert_eq!(hint(json!({"type": "ephemeral"})), Hint::None);
        assert_eq!(
            hint(json!({"text": "a"})),
            Hint::Unwrap(vec!["text".to_owned()])
        );
    }
}
