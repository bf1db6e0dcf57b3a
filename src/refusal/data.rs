//! `refusals/`: the sentences as data.

use include_dir::{Dir, include_dir};

use super::pattern::{self, Pattern};
use crate::toml::{self, Kind, Node, Table};

static FILES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/refusals");

/// A provider, a server or a proxy that refuses requests.
#[derive(Debug)]
#[non_exhaustive]
pub struct Provider {
    /// The name of its file: `openai-chat`.
    pub id: String,
    /// The name in use: `OpenAI (Chat Completions)`.
    pub name: String,
    /// The hosts that answer so; none for programs that people run themselves.
    pub hosts: Vec<String>,
    /// Its sentences, in the order of the file.
    pub refusals: Vec<Refusal>,
}

/// A sentence that a request is refused with.
#[derive(Debug)]
#[non_exhaustive]
pub struct Refusal {
    /// The sentence as the provider writes it; `{name}` stands for what varies.
    pub sentence: String,
    pub(super) pattern: Pattern,
    /// The sentence without the class of errors in front and without the advice behind, as far as
    /// it has them.
    pub(super) shorter: Vec<Pattern>,
    /// The HTTP status, if it is known.
    pub status: Option<i64>,
    /// The type or code that the envelope names.
    pub kind: Option<String>,
    /// Which rule finds it before, or why none does.
    pub reason: Reason,
    /// The meaning, as a sentence.
    pub meaning: String,
    /// The remedy, as a sentence.
    pub remedy: String,
    /// The month in which it was first seen: `2025-03`.
    pub seen: String,
    /// The addresses at which the sentence is.
    pub sources: Vec<String>,
}

/// Which rule finds a refusal before the provider does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The rule with this code.
    Rule(String),
    /// None.
    Unruled(Unruled),
}

impl Reason {
    /// Returns the code of the rule, or the name that the data uses.
    pub fn name(&self) -> &str {
        match self {
            Reason::Rule(code) => code,
            Reason::Unruled(unruled) => unruled.name(),
        }
    }
}

/// Why no rule finds a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unruled {
    /// A body shows it, and no rule looks yet.
    Gap,
    /// It is about keys and permissions.
    Auth,
    /// It is about limits of an account.
    Quota,
    /// It is about the server: its load, its settings, the models it has.
    Server,
    /// It is about the request line, headers or bytes, and no body shows it.
    Transport,
    /// It is about what the content says.
    Content,
    /// It is about a wire format that is not read here.
    Format,
}

impl Unruled {
    /// Every reason.
    pub const ALL: [Unruled; 7] = [
        Unruled::Gap,
        Unruled::Auth,
        Unruled::Quota,
        Unruled::Server,
        Unruled::Transport,
        Unruled::Content,
        Unruled::Format,
    ];

    /// Returns the name that the data uses.
    pub fn name(self) -> &'static str {
        match self {
            Unruled::Gap => "gap",
            Unruled::Auth => "auth",
            Unruled::Quota => "quota",
            Unruled::Server => "server",
            Unruled::Transport => "transport",
            Unruled::Content => "content",
            Unruled::Format => "format",
        }
    }

    /// Returns a sentence for people.
    pub fn told(self) -> &'static str {
        match self {
            Unruled::Gap => "No rule finds this before you send.",
            Unruled::Auth => "No body shows this: it is about keys and permissions.",
            Unruled::Quota => "No body shows this: it is about the limits of your account.",
            Unruled::Server => {
                "No body shows this: it is about the server and the models that it has."
            }
            Unruled::Transport => "No body shows this: it is about how the request was sent.",
            Unruled::Content => "No rule finds this: it is about what the content says.",
            Unruled::Format => "No rule finds this: `reqc` does not read this wire format.",
        }
    }
}

/// How well a text names a provider; the better one is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Hint {
    /// `true` if it names a host, or the full name.
    pub(super) is_named: bool,
    /// The number of words of the name that are there.
    words: usize,
}

/// The names of files whose sentences count only where none of a provider is known, in the order in
/// which they are looked at: what validators say that many servers share, and what types, codes and
/// statuses say, whatever the sentence.
pub(super) const GENERAL: [&str; 2] = ["validators", "envelopes"];

impl Provider {
    /// Returns the name of the general file that it is, if it is one.
    pub(super) fn general(&self) -> Option<&str> {
        GENERAL.into_iter().find(|name| *name == self.id)
    }

    /// Returns how well a text in lower case names the provider.
    pub(super) fn hint(&self, lower: &str) -> Hint {
        let name = self
            .name
            .split(" (")
            .next()
            .unwrap_or_default()
            .to_lowercase();
        let words: Vec<&str> = name.split(' ').filter(|word| word.len() > 2).collect();
        let met = words.iter().filter(|word| lower.contains(*word)).count();
        let is_host = self.hosts.iter().any(|host| lower.contains(host.as_str()));
        Hint {
            is_named: is_host || met > 0 && met == words.len(),
            words: met,
        }
    }
}

/// Reads all files, in order of their names. Their form is a matter of tests.
pub(super) fn bundled() -> Vec<Provider> {
    let mut files: Vec<_> = FILES.files().collect();
    files.sort_by_key(|file| file.path());
    files
        .iter()
        .map(|file| {
            let text = file.contents_utf8().expect("refusals are UTF-8");
            provider(
                &toml::parse(text)
                    .unwrap_or_else(|error| panic!("{}: {error}", file.path().display())),
            )
        })
        .collect()
}

fn provider(table: &Table) -> Provider {
    Provider {
        id: required(table, "provider"),
        name: required(table, "name"),
        hosts: texts(table, "hosts"),
        refusals: elements(table, "refusal").iter().map(refusal).collect(),
    }
}

fn refusal(node: &Node) -> Refusal {
    let Kind::Table(table) = &node.kind else {
        panic!("a refusal is a table")
    };
    let sentence = required(table, "sentence");
    let reason = match text(table, "rule") {
        Some(code) => Reason::Rule(code),
        None => {
            let name = required(table, "unruled");
            let known = Unruled::ALL
                .into_iter()
                .find(|unruled| unruled.name() == name);
            Reason::Unruled(known.unwrap_or_else(|| panic!("`{name}` is not a reason")))
        }
    };
    Refusal {
        pattern: Pattern::parse(&sentence),
        shorter: pattern::shorter(&sentence)
            .into_iter()
            .map(Pattern::parse)
            .filter(Pattern::is_telling)
            .collect(),
        sentence,
        status: match table.get("status").map(|node| &node.kind) {
            Some(Kind::Integer(status)) => Some(*status),
            _ => None,
        },
        kind: text(table, "type"),
        reason,
        meaning: required(table, "meaning"),
        remedy: required(table, "remedy"),
        seen: required(table, "seen"),
        sources: texts(table, "sources"),
    }
}

fn required(table: &Table, key: &str) -> String {
    text(table, key).unwrap_or_else(|| panic!("no `{key}` in {table:?}"))
}

fn text(table: &Table, key: &str) -> Option<String> {
    match &table.get(key)?.kind {
        Kind::String(text) => Some(text.clone()),
        _ => None,
    }
}

fn texts(table: &Table, key: &str) -> Vec<String> {
    elements(table, key)
        .iter()
        .filter_map(|node| match &node.kind {
            Kind::String(text) => Some(text.clone()),
            _ => None,
        })
        .collect()
}

fn elements<'t>(table: &'t Table, key: &str) -> &'t [Node] {
    match table.get(key).map(|node| &node.kind) {
        Some(Kind::Array(elements)) => elements,
        _ => &[],
    }
}
