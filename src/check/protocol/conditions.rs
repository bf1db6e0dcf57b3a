//! Tables of members and values that must not be combined in a body: rules in the form of data.

use serde_json::Value;

use super::super::subject::Subject;
use super::Found;
use crate::diag::Severity;
use crate::json::Pointer;
use crate::provider::{Server, Software, WireFormat};

/// A combination of members that an API rejects or ignores.
pub(super) struct Combination {
    /// The wire formats that the combination applies to.
    pub(super) wires: &'static [WireFormat],
    /// The servers that the combination applies to; empty for all.
    pub(super) servers: &'static [Server],
    /// For unknown servers, the software that the combination applies to; empty for all software.
    pub(super) software: &'static [Software],
    /// The member that is wrong.
    pub(super) at: Condition,
    /// The conditions under which the member is wrong. All of them must hold.
    pub(super) with: &'static [Condition],
    /// `true` for a warning: the member is ignored, or sources disagree about the combination.
    pub(super) warns: bool,
    /// The message of the finding.
    pub(super) says: &'static str,
    /// The advice in the finding's help.
    pub(super) help: &'static str,
}

/// Declares a `TABLE` of combinations:
/// `refused FORMATS at [Server]: ("a.b", Is) with ("c", IsNot), …; "what is wrong"; "what to do";`.
/// `warned` instead of `refused` declares a warning. `among SERVERS` refers to a list of servers,
/// and `running [SOFTWARE]` limits unknown servers to those that may run one of these.
macro_rules! combinations {
    (@warns refused) => { false };
    (@warns warned) => { true };
    (@servers) => { &[] };
    (@servers [$($server:ident),+]) => { &[$($crate::provider::Server::$server),+] };
    (@servers $servers:ident) => { $servers };
    (@software) => { &[] };
    (@software [$($software:ident),+]) => { &[$($crate::provider::$software),+] };
    (@condition ($path:literal, $test:ident $(($of:expr))?)) => {
        $crate::check::protocol::conditions::Condition($path, $crate::check::protocol::conditions::Test::$test $(($of))?)
    };
    ($($how:ident $wires:ident $(at $at:tt)? $(among $among:ident)? $(running $running:tt)?: $wrong:tt with $($with:tt),+; $says:literal; $help:literal;)*) => {
        static TABLE: &[$crate::check::protocol::conditions::Combination] = &[
            $($crate::check::protocol::conditions::Combination {
                wires: $wires,
                servers: combinations!(@servers $($at)? $($among)?),
                software: combinations!(@software $($running)?),
                at: combinations!(@condition $wrong),
                with: &[$(combinations!(@condition $with)),+],
                warns: combinations!(@warns $how),
                says: $says,
                help: $help,
            }),*
        ];
    };
}
pub(super) use combinations;

/// A condition on a member: the names on the member's path, joined with dots, and a test of its
/// value.
pub(super) struct Condition(pub(super) &'static str, pub(super) Test);

/// A test of a member's value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Test {
    /// The member is present and not `null`.
    Is,
    /// The member is missing or `null`.
    IsNot,
    /// The value is `true`.
    IsTrue,
    /// The member is present, and its value is `false`.
    IsFalse,
    /// The value is not `true`, or the member is missing.
    IsNotTrue,
    /// The value is one of these strings.
    Says(&'static [&'static str]),
    /// The value is a string, but none of these.
    SaysNoneOf(&'static [&'static str]),
    /// The value is a list, an object or a string, and is not empty.
    Holds,
    /// The value is an empty list or string, or the member is missing.
    IsEmpty,
    /// The value is a list that contains this string.
    Lists(&'static str),
    /// The value is an object.
    IsObject,
    /// The value is zero.
    IsZero,
    /// The value is a number other than zero.
    IsNotZero,
    /// The value is a number greater than this.
    IsAbove(i32),
    /// The value is a number greater than the value of another member, given by its path.
    Exceeds(&'static str),
}

impl Combination {
    /// Returns the severity of the combination in a body; `None` if the combination does not apply.
    fn level(&self, subject: &Subject<'_>) -> Option<Severity> {
        if !self.wires.contains(&subject.wire) || !self.may_run(subject) {
            return None;
        }
        if self.servers.is_empty() || self.servers.contains(&subject.server) {
            return Some(Severity::Error);
        }
        // OpenRouter writes its own bodies for model vendors, so the vendors' combinations do not
        // apply.
        let mut servers = self.servers.iter().copied();
        servers
            .find_map(|server| subject.level_of(server))
            .filter(|_| subject.server != Server::OpenRouter)
    }
}

impl Combination {
    /// Returns `true` if the server may run the software, or is a known server.
    fn may_run(&self, subject: &Subject<'_>) -> bool {
        let mut software = self.software.iter();
        self.software.is_empty()
            || subject.server != Server::Unknown
            || software.any(|software| subject.may_run(*software))
    }
}

impl Condition {
    fn is_met(&self, subject: &Subject<'_>) -> bool {
        self.1.is_met(self.value(subject), subject)
    }

    /// Returns the pointer to the member, even if it is missing.
    fn pointer(&self) -> Pointer {
        self.0
            .split('.')
            .fold(Pointer::root(), |at, name| at.member(name))
    }

    fn value<'b>(&self, subject: &Subject<'b>) -> Option<&'b Value> {
        value_at(self.0, subject)
    }
}

/// Returns the value at a path of names joined with dots; `None` if it is missing or `null`.
fn value_at<'b>(path: &str, subject: &Subject<'b>) -> Option<&'b Value> {
    let mut names = path.split('.');
    let first = names.next()?;
    let is_lenient = subject.wire.facts().has_two_spellings;
    let first = subject.member(first).or_else(|| {
        is_lenient
            .then(|| subject.member(&in_snake_case(first)))
            .flatten()
    })?;
    let value = names.try_fold(first, |value, name| {
        value
            .get(name)
            .or_else(|| is_lenient.then(|| value.get(in_snake_case(name))).flatten())
    })?;
    (!value.is_null()).then_some(value)
}

/// Converts a `camelCase` name to Gemini's other spelling, `snake_case`.
fn in_snake_case(camel: &str) -> String {
    let mut name = String::with_capacity(camel.len() + 4);
    for c in camel.chars() {
        if c.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
    }
    name
}

impl Test {
    fn is_met(self, value: Option<&Value>, subject: &Subject<'_>) -> bool {
        let text = value.and_then(Value::as_str);
        match self {
            Test::Is => value.is_some(),
            Test::IsNot => value.is_none(),
            Test::IsTrue => value == Some(&Value::Bool(true)),
            Test::IsFalse => value == Some(&Value::Bool(false)),
            Test::IsNotTrue => value != Some(&Value::Bool(true)),
            Test::Says(texts) => text.is_some_and(|text| is_among(texts, text)),
            Test::SaysNoneOf(texts) => text.is_some_and(|text| !is_among(texts, text)),
            Test::Holds => match value {
                Some(Value::Array(elements)) => !elements.is_empty(),
                Some(Value::Object(members)) => !members.is_empty(),
                Some(Value::String(text)) => !text.is_empty(),
                _ => false,
            },
            Test::IsEmpty => match value {
                None => true,
                Some(Value::Array(elements)) => elements.is_empty(),
                Some(Value::String(text)) => text.is_empty(),
                Some(_) => false,
            },
            Test::Lists(wanted) => {
                let elements = value.and_then(Value::as_array);
                elements.is_some_and(|elements| {
                    elements
                        .iter()
                        .any(|element| element.as_str() == Some(wanted))
                })
            }
            Test::IsObject => value.is_some_and(Value::is_object),
            Test::IsZero => value.and_then(Value::as_f64) == Some(0.0),
            Test::IsNotZero => value
                .and_then(Value::as_f64)
                .is_some_and(|number| number != 0.0),
            Test::IsAbove(least) => value
                .and_then(Value::as_f64)
                .is_some_and(|number| number > f64::from(least)),
            Test::Exceeds(other) => {
                let number = value.and_then(Value::as_f64);
                let limit = value_at(other, subject);
                number
                    .zip(limit.and_then(Value::as_f64))
                    .is_some_and(|(number, limit)| number > limit)
            }
        }
    }
}

/// Returns `true` if `word` is one of several words. Gemini accepts enum values in any case. For
/// other servers, the schemas report values in the wrong case.
fn is_among(words: &[&str], word: &str) -> bool {
    words.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// Reports the combinations in a table that occur in a body.
pub(super) fn check<'b>(
    table: &'static [Combination],
    subject: &Subject<'b>,
    found: &mut Found<'b>,
) {
    for entry in table {
        let Some(level) = entry.level(subject) else {
            continue;
        };
        if !entry.at.is_met(subject)
            || !entry.with.iter().all(|condition| condition.is_met(subject))
        {
            continue;
        }
        let note = match entry.at.value(subject) {
            Some(value) => found.at(value, entry.says),
            None => found.at_top(entry.says),
        };
        let note = if entry.warns {
            note.warning()
        } else {
            note.level(level)
        };
        let absent = entry
            .with
            .iter()
            .filter(|condition| condition.value(subject).is_none());
        absent
            .fold(note, |note, condition| {
                note.for_lack_of(condition.pointer())
            })
            .help(entry.help);
    }
}
