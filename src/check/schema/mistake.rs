//! The mistakes in a body, before they become messages. In this form, they can be compared, merged
//! and dropped by kind.

use std::collections::HashSet;

use super::super::{About, Problem, without_numbers};
use super::rules;
use crate::diag::{Rule, Severity, one_of};
use crate::json::Pointer;
use crate::source::Span;

/// A mistake at a location in a body.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mistake {
    pub(super) rule: &'static Rule,
    /// The location in the body. For missing fields, this is the object that lacks them.
    pub(super) pointer: Pointer,
    pub(super) what: What,
    pub(super) hint: Hint,
    /// The server's name, if the server ignores the mistake.
    pub(super) passed_over_by: Option<&'static str>,
    /// The requirement, in a form that does not depend on the value. Formats may have different
    /// requirements for one location.
    pub(super) asks: Option<String>,
    /// The location to fix, if it differs from the location where the value was written.
    pub(super) place: Option<Span>,
}

/// The kinds of mistakes.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum What {
    /// A field that is not in the schema.
    Unknown,
    /// Missing fields.
    Missing(Vec<String>),
    /// Several missing fields, with the schema's own message. The object needs one of them.
    NoneOf { names: Vec<String>, message: String },
    /// A value that the schema does not accept, with its message and the kind of value.
    /// Alternatives in the schema may have different requirements for one kind.
    Unfit {
        message: String,
        found: &'static str,
    },
    /// Any other mistake, with its message.
    Other(String),
}

/// A change that advice proposes.
pub(crate) enum Proposal<'p> {
    /// Adding a field at a location.
    Field { at: &'p Pointer },
    /// Writing a string as the value at a location.
    Value { at: &'p Pointer, text: &'p str },
}

/// Advice on a mistake.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Hint {
    None,
    /// Names that are similar to the wrong one.
    Meant(Vec<String>),
    /// All known fields of the object.
    Fields(Vec<String>),
    /// All known values for the wrong value itself or for a missing member. `words` precede the
    /// values.
    Known {
        words: &'static str,
        member: Option<String>,
        names: Vec<String>,
    },
    /// The field belongs in a member of the object, given by its pointer.
    Within(Pointer),
    /// The names of fields inside this field that belong one level higher.
    Unwrap(Vec<String>),
    /// Any other advice.
    Other(String),
}

impl From<Option<String>> for Hint {
    fn from(help: Option<String>) -> Hint {
        help.map_or(Hint::None, Hint::Other)
    }
}

/// Formats names as an enumeration.
fn listed(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
        [] => String::new(),
    }
}

/// Merges mistakes with the same cause. Fields that belong in a missing member are reported
/// together with that member. Missing fields are not reported if they are present one level too
/// deep.
pub(super) fn fold(mistakes: &mut Vec<Mistake>) {
    let holders: Vec<Pointer> = mistakes
        .iter()
        .filter_map(|mistake| mistake.missing_holder(mistakes))
        .collect();
    for holder in holders {
        let (object, name) = (holder.parent(), holder.tokens().last().unwrap_or_default());
        let is_inside =
            |mistake: &Mistake| matches!(&mistake.hint, Hint::Within(within) if *within == holder);
        let inside = mistakes.iter().filter(|mistake| is_inside(mistake));
        let names: Vec<String> = inside
            .filter_map(|mistake| mistake.pointer.tokens().last())
            .collect();
        mistakes.retain(|mistake| !is_inside(mistake));
        if let Some(missing) = mistakes
            .iter_mut()
            .find(|mistake| mistake.lacks(&name) && Some(&mistake.pointer) == object.as_ref())
        {
            missing.hint = Hint::Other(format!("put {} into it", listed(&names)));
        }
    }
    let unwrapped: Vec<(Option<Pointer>, Vec<String>)> =
        mistakes.iter().filter_map(Mistake::unwrapped).collect();
    for (object, names) in unwrapped {
        mistakes.retain(|mistake| match &mistake.what {
            What::Missing(missing) if Some(&mistake.pointer) == object.as_ref() => {
                !missing.iter().all(|name| names.contains(name))
            }
            _ => true,
        });
    }
}

impl Mistake {
    /// Drops proposals that `is_taken` rejects from the advice, because models of one API accept
    /// different values and fields.
    #[must_use]
    pub(super) fn proposing(self, is_taken: impl Fn(&Proposal<'_>) -> bool) -> Mistake {
        let at = self.pointer.clone();
        let takes_value =
            |at: &Pointer, name: &String| is_taken(&Proposal::Value { at, text: name });
        let takes_field = |name: &String| {
            at.parent().is_none_or(|object| {
                is_taken(&Proposal::Field {
                    at: &object.member(name),
                })
            })
        };
        let is_field = self.what == What::Unknown;
        let hint = match self.hint {
            Hint::Meant(mut names) => {
                names.retain(|name| {
                    if is_field {
                        takes_field(name)
                    } else {
                        takes_value(&at, name)
                    }
                });
                match names.is_empty() {
                    false => Hint::Meant(names),
                    true if is_field => Hint::Other("leave it out".to_owned()),
                    true => Hint::None,
                }
            }
            Hint::Fields(mut names) => {
                names.retain(takes_field);
                if names.is_empty() {
                    Hint::None
                } else {
                    Hint::Fields(names)
                }
            }
            Hint::Known {
                words,
                member,
                mut names,
            } => {
                let place = member
                    .as_ref()
                    .map_or_else(|| at.clone(), |member| at.member(member));
                names.retain(|name| takes_value(&place, name));
                if names.is_empty() {
                    Hint::None
                } else {
                    Hint::Known {
                        words,
                        member,
                        names,
                    }
                }
            }
            other @ (Hint::None | Hint::Within(_) | Hint::Unwrap(_) | Hint::Other(_)) => other,
        };
        Mistake { hint, ..self }
    }

    fn lacks(&self, name: &str) -> bool {
        matches!(&self.what, What::Missing(names) if names.iter().any(|known| known == name))
    }

    /// Returns the missing member that several fields belong in, if this is the first mistake about
    /// such a field.
    fn missing_holder(&self, all: &[Mistake]) -> Option<Pointer> {
        let Hint::Within(holder) = &self.hint else {
            return None;
        };
        let (object, name) = (holder.parent()?, holder.tokens().last()?);
        let is_missing = all
            .iter()
            .any(|other| other.pointer == object && other.lacks(&name));
        let is_first = all
            .iter()
            .find(|other| other.hint == self.hint)
            .is_some_and(|first| std::ptr::eq(first, self));
        (is_missing && is_first).then(|| holder.clone())
    }

    /// Returns the object that contains the field of a mistake, and the fields that are one level
    /// too deep.
    fn unwrapped(&self) -> Option<(Option<Pointer>, Vec<String>)> {
        match &self.hint {
            Hint::Unwrap(names) => Some((self.pointer.parent(), names.clone())),
            _ => None,
        }
    }

    /// Returns the mistake for a value that the schema does not accept.
    pub(super) fn value(pointer: Pointer, message: String, hint: Hint) -> Mistake {
        Mistake {
            rule: &rules::INVALID_VALUE,
            pointer,
            what: What::Other(message),
            hint,
            passed_over_by: None,
            asks: None,
            place: None,
        }
    }

    /// Returns the mistake for a missing field.
    pub(super) fn missing(object: Pointer, name: &str, hint: Hint) -> Mistake {
        let what = What::Missing(vec![name.to_owned()]);
        Mistake {
            rule: &rules::MISSING_FIELD,
            pointer: object,
            what,
            hint,
            passed_over_by: None,
            asks: None,
            place: None,
        }
    }

    /// Uses the description in a repository's own schema as advice, because schema authors write
    /// descriptions for the people who use the schema.
    #[must_use]
    pub(super) fn in_own_words(self) -> Mistake {
        let hint = match self.hint {
            Hint::None => self.asks.clone().into(),
            hint => hint,
        };
        Mistake { hint, ..self }
    }

    /// Returns the field whose name an unknown field misspells, if there is only one such field.
    fn meant(&self) -> Option<Pointer> {
        match (&self.what, &self.hint) {
            (What::Unknown, Hint::Meant(near)) => match near.as_slice() {
                [meant] => Some(self.pointer.parent()?.member(meant)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the missing fields.
    fn lacking(&self) -> Vec<Pointer> {
        match &self.what {
            What::Missing(names) | What::NoneOf { names, .. } => {
                names.iter().map(|name| self.pointer.member(name)).collect()
            }
            What::Unknown | What::Unfit { .. } | What::Other(_) => Vec::new(),
        }
    }

    /// Converts the mistake to a problem. A value is reported only once for each variant of a
    /// format, even if several alternatives of the schema reject it.
    pub(super) fn told(self, variant: &str) -> Problem {
        let severity = self.passed_over_by.map(|_| Severity::Warning);
        let mut lacks = Vec::new();
        let unfit = match &self.what {
            What::Unfit { found, .. } => Some(format!(
                "{}\n{found}\n{variant}",
                without_numbers(self.pointer.as_str(), '/')
            )),
            _ => None,
        };
        let message = match self.what {
            What::Unknown if let Some(server) = self.passed_over_by => {
                format!(
                    "{server} is not known to read the field `{}`",
                    named(&self.pointer)
                )
            }
            What::Unknown => format!("the API has no field `{}`", named(&self.pointer)),
            What::Missing(names) => {
                lacks = names.iter().map(|name| self.pointer.member(name)).collect();
                let fields: Vec<String> = names
                    .iter()
                    .map(|name| format!("`{}`", self.pointer.member(name)))
                    .collect();
                format!(
                    "{} {} missing",
                    fields.join(" and "),
                    if fields.len() == 1 { "is" } else { "are" }
                )
            }
            What::NoneOf { message, .. } | What::Unfit { message, .. } | What::Other(message) => {
                message
            }
        };
        let help = match self.hint {
            Hint::None => None,
            Hint::Meant(near) => one_of(&near.iter().map(String::as_str).collect::<Vec<_>>()),
            Hint::Fields(mut known) => {
                // The message shows the most similar names, sorted so that they have the same order
                // in each message.
                let shown = known.len().min(FEW);
                known[..shown].sort();
                Some(format!("known fields: {}", few(&known)))
            }
            Hint::Known { words, names, .. } => Some(format!("{words}{}", few(&names))),
            Hint::Within(holder) => {
                let name = self.pointer.tokens().last().unwrap_or_default();
                Some(format!("`{name}` belongs in `{holder}`"))
            }
            Hint::Unwrap(names) => Some(format!(
                "remove it here, and write {} in its place",
                listed(&names)
            )),
            Hint::Other(help) => Some(help),
        };
        let told = help
            .as_deref()
            .filter(|_| self.rule == &rules::INVALID_VALUE);
        let sense = Some(unfit.unwrap_or_else(|| {
            format!("{}\n{}", Problem::words(&message), told.unwrap_or_default())
        }));
        Problem {
            rule: self.rule,
            severity,
            pointer: self.pointer,
            message,
            help,
            sense,
            about: About::Form,
            sources: &[],
            is_of_model: false,
            lacks,
            place: self.place,
        }
    }
}

/// Returns the name of a top-level field, or the pointer to a deeper field.
fn named(pointer: &Pointer) -> String {
    let mut tokens = pointer.tokens();
    match (tokens.next(), tokens.next()) {
        (Some(name), None) => name,
        _ => pointer.to_string(),
    }
}

/// The maximum number of names in advice.
pub(super) const FEW: usize = 8;

/// Lists the first names and the number of further names.
pub(super) fn few(names: &[String]) -> String {
    let shown = names[..names.len().min(FEW)].join(", ");
    match names.len().saturating_sub(FEW) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Drops missing fields that are present with a misspelled name, because the misspelled name is
/// already reported. No server ignores such a misspelling, because a required field is then
/// missing.
pub(super) fn drop_misspelt(mistakes: &mut Vec<Mistake>) {
    let misspelt: HashSet<Pointer> = mistakes.iter().filter_map(Mistake::meant).collect();
    let mut required = HashSet::new();
    mistakes.retain(|mistake| {
        let lacking = mistake.lacking();
        let present = lacking.iter().filter(|field| misspelt.contains(field));
        let found = present.clone().count();
        required.extend(present.cloned());
        match &mistake.what {
            What::Missing(names) => found < names.len(),
            What::NoneOf { .. } => found == 0,
            What::Unknown | What::Unfit { .. } | What::Other(_) => true,
        }
    });
    for mistake in mistakes {
        if mistake
            .meant()
            .is_some_and(|field| required.contains(&field))
        {
            mistake.passed_over_by = None;
        }
    }
}

/// Merges a mistake into the previous one if one finding can report both: missing fields of one
/// object, or a repetition. Returns `true` if they were merged.
pub(super) fn absorb(kept: &mut Mistake, next: &Mistake) -> bool {
    let is_same = kept.rule == next.rule && kept.pointer == next.pointer;
    if let (true, What::Missing(known), What::Missing(more)) = (is_same, &mut kept.what, &next.what)
    {
        let before = known.len();
        let new: Vec<String> = more
            .iter()
            .filter(|name| !known.contains(name))
            .cloned()
            .collect();
        known.extend(new);
        if known.len() > before {
            kept.hint = Hint::None;
        }
    }
    is_same
}
