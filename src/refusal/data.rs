//! Reads the dictionary's sentences from `refusals/`.

use std::mem::take;

use super::columns::{Columns, File};
use super::pattern::{self, Pattern, Plain};

/// The files of `refusals/` as [`Columns`] in JSON, compressed by the build script. Uncompressed,
/// they would make up an eighth of the program, and few commands read them.
static FILES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/refusals.deflate"));

/// A provider, a server or a proxy that rejects requests.
#[derive(Debug)]
#[non_exhaustive]
pub struct Provider {
    /// The name of the provider's file without the extension, for example `openai-chat`.
    pub id: String,
    /// The displayed name, for example `OpenAI (Chat Completions)`.
    pub name: String,
    /// The words in the name that a string may use to refer to the provider, in lower case.
    words: Vec<String>,
    /// The hosts that use these sentences, or the addresses of their endpoints; empty for
    /// self-hosted software.
    pub hosts: Vec<String>,
    /// Codes that only this provider's servers use, in lower case.
    codes: Vec<String>,
    /// Words of the provider's envelopes that other servers rarely use, without spaces and quotes.
    marks: Vec<Plain>,
    /// The provider's sentences, in file order.
    pub refusals: Vec<Refusal>,
}

/// A sentence that is used to reject a request.
#[derive(Debug)]
#[non_exhaustive]
pub struct Refusal {
    /// The sentence as the provider writes it. `{name}` stands for a variable part.
    pub sentence: String,
    /// `true` for words that a gateway or a client puts around another server's message. They are
    /// reported only if the message itself is not recognised.
    pub wraps: bool,
    pub(super) pattern: Pattern,
    /// The sentence without the error class before it and without the advice after it, if it has
    /// either.
    pub(super) shorter: Vec<Pattern>,
    /// The HTTP status, if known.
    pub status: Option<i64>,
    /// The type or code in the envelope.
    pub kind: Option<String>,
    /// The rule that predicts the refusal, or why no rule does.
    pub reason: Reason,
    /// The meaning, as a sentence.
    pub meaning: String,
    /// The remedy, as a sentence.
    pub remedy: String,
    /// The month in which the sentence was first seen, for example `2025-03`.
    pub seen: String,
    /// The addresses where the sentence was found.
    pub sources: Vec<String>,
}

/// The rule that predicts a refusal, or why no rule does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The rule with this code.
    Rule(String),
    /// No rule, for this reason.
    Unruled(Unruled),
}

impl Refusal {
    /// Returns the sentence in human-readable form: `{name}` marks a variable part, and other
    /// braces are not doubled.
    pub fn shown(&self) -> String {
        self.sentence.replace("{{", "{").replace("}}", "}")
    }

    /// Returns `true` if the sentence quotes JSON of an answer. Answers with other messages contain
    /// the same JSON.
    pub(super) fn quotes_json(&self) -> bool {
        self.shown().contains("\":")
    }

    /// Returns `true` if the entry can apply to an HTTP status: an entry with a status applies only
    /// to that status.
    pub(super) fn is_for(&self, status: Option<u16>) -> bool {
        self.status.is_none() || self.status == status.map(i64::from)
    }
}

impl Reason {
    /// Returns the code of the rule, or the reason's name in the data.
    pub fn name(&self) -> &str {
        match self {
            Reason::Rule(code) => code,
            Reason::Unruled(unruled) => unruled.name(),
        }
    }
}

/// The reasons why no rule predicts a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unruled {
    /// A body shows the mistake, but no rule checks it yet.
    Gap,
    /// The refusal is about keys or permissions.
    Auth,
    /// The refusal is about account limits.
    Quota,
    /// The refusal is about the server: its load, its settings, or its models.
    Server,
    /// The refusal is about the request line, headers, or bytes, which no body shows.
    Transport,
    /// The refusal is about the meaning of the content.
    Content,
    /// The refusal is about a wire format that reqc does not support.
    Format,
    /// The message does not say what is wrong, because several mistakes cause it.
    Unsaid,
}

impl Reason {
    /// Returns `true` if this reason is possible for the HTTP status. Some statuses are used only
    /// for keys, limits or server errors.
    pub(super) fn fits(&self, status: Option<u16>) -> bool {
        use Unruled::{Auth, Content, Quota, Server, Transport};
        let Some(status) = status else {
            return true;
        };
        let reason = match self {
            Reason::Rule(_) => None,
            Reason::Unruled(unruled) => Some(unruled),
        };
        match status {
            401 => matches!(reason, Some(Auth | Server)),
            402 | 429 => reason == Some(&Quota),
            403 => matches!(reason, Some(Auth | Quota | Content | Server)),
            408 => reason == Some(&Transport),
            451 => reason == Some(&Content),
            502.. => matches!(reason, Some(Server | Transport)),
            _ => true,
        }
    }
}

impl Unruled {
    /// All reasons.
    pub const ALL: [Unruled; 8] = [
        Unruled::Gap,
        Unruled::Auth,
        Unruled::Quota,
        Unruled::Server,
        Unruled::Transport,
        Unruled::Content,
        Unruled::Format,
        Unruled::Unsaid,
    ];

    /// Returns the name used in the data.
    pub fn name(self) -> &'static str {
        match self {
            Unruled::Gap => "gap",
            Unruled::Auth => "auth",
            Unruled::Quota => "quota",
            Unruled::Server => "server",
            Unruled::Transport => "transport",
            Unruled::Content => "content",
            Unruled::Format => "format",
            Unruled::Unsaid => "unsaid",
        }
    }

    /// Returns a sentence that explains the reason to users.
    pub fn told(self) -> &'static str {
        match self {
            Unruled::Gap => "No rule detects this before you send the request.",
            Unruled::Auth => {
                "The request body alone does not show this: the cause is a key or a permission."
            }
            Unruled::Quota => {
                "The request body alone does not show this: the cause is a limit of your account."
            }
            Unruled::Server => {
                "The request body alone does not show this: the cause is the server or its models."
            }
            Unruled::Transport => {
                "The request body alone does not show this: the cause is the way in which the request was sent."
            }
            Unruled::Content => "No rule detects this: it depends on the meaning of the content.",
            Unruled::Format => "No rule detects this: `reqc` does not support this wire format.",
            Unruled::Unsaid => {
                "Several mistakes lead to this message, so no rule is named: `reqc lint` checks the body."
            }
        }
    }
}

/// A measure of how strongly a string refers to a provider. A stronger hint compares as greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Hint {
    /// `true` if the text contains one of the provider's hosts or codes. These are better evidence
    /// than a name, because clients named after a provider are also used with other servers.
    is_certain: bool,
    /// `true` if the text contains a host, a code, or the full name as separate words.
    pub(super) is_named: bool,
    /// `true` if the text has the provider's envelope.
    is_marked: bool,
    /// The number of the name's words that occur in the text.
    words: usize,
    /// The length of the longest host or endpoint address in the text.
    host: usize,
}

/// The file with validators' sentences, which many servers share. These sentences are used only if
/// no provider's sentence matches.
pub(super) const SHARED: &str = "validators";

/// The file with phrases that show what an unknown sentence is about. The phrases are used only if
/// no sentence matches.
const PHRASES: &str = "phrases";

/// The file with types, codes and statuses, which accompany many sentences. These entries are used
/// only if nothing else matches.
pub(super) const CODES: &str = "envelopes";

impl Provider {
    /// Returns the name of the file if it is a general one.
    pub(super) fn general(&self) -> Option<&str> {
        [SHARED, PHRASES, CODES]
            .into_iter()
            .find(|name| *name == self.id)
    }

    /// Returns `true` if many servers use the sentences of this file.
    pub fn is_general(&self) -> bool {
        self.general().is_some()
    }

    /// Returns `true` if the file contains phrases, which occur within sentences.
    pub(super) fn is_of_phrases(&self) -> bool {
        self.id == PHRASES
    }

    /// Returns `true` if an entry is a type or a code. Sentences in the same file, such as those of
    /// clients that report only a status, contain spaces.
    pub(super) fn is_code(&self, refusal: &Refusal) -> bool {
        self.id == CODES && !refusal.sentence.contains(char::is_whitespace)
    }

    /// Returns how strongly a text, given in lower case and in its plain form, refers to the
    /// provider.
    pub(super) fn hint(&self, lower: &str, plain: &Plain) -> Hint {
        let met = self
            .words
            .iter()
            .filter(|word| lower.contains(word.as_str()))
            .count();
        let hosts = self
            .hosts
            .iter()
            .filter(|host| lower.contains(host.as_str()));
        let host = hosts.map(String::len).max().unwrap_or_default();
        let is_certain = host > 0 || self.codes.iter().any(|code| lower.contains(code));
        let is_named =
            !self.words.is_empty() && self.words.iter().all(|word| stands_alone(word, lower));
        Hint {
            is_certain,
            is_named: is_certain || is_named,
            is_marked: self.marks.iter().any(|mark| plain.contains(mark)),
            words: met,
            host,
        }
    }
}

/// Returns `true` if a word occurs on its own. In `openai.BadRequestError`, `OpenAIException` or
/// `openai/gpt-oss-120b`, the word refers to a client or a model, which may be used with any
/// server.
fn stands_alone(word: &str, lower: &str) -> bool {
    lower.match_indices(word).any(|(at, _)| {
        let (before, after) = (&lower[..at], &lower[at + word.len()..]);
        let mut after = after.chars();
        let ends = match after.next() {
            Some('.') => !after.next().is_some_and(|c| c.is_ascii_alphanumeric()),
            next => !next.is_some_and(is_of_identifier),
        };
        ends && !before.ends_with(|c| c == '.' || is_of_identifier(c))
    })
}

fn is_of_identifier(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/')
}

/// Reads all files, ordered by name.
pub(super) fn bundled() -> Vec<Provider> {
    let json = miniz_oxide::inflate::decompress_to_vec(FILES).expect("the build compressed it");
    let mut columns: Columns = serde_json::from_slice(&json).expect("the build wrote it");
    let mut first = 0;
    let files = take(&mut columns.files).into_iter();
    files
        .map(|file| {
            let entries = first..first + file.entries;
            first = entries.end;
            let refusals = entries.flat_map(|entry| refusals(&mut columns, entry));
            provider(file, refusals.collect())
        })
        .collect()
}

fn provider(file: File, refusals: Vec<Refusal>) -> Provider {
    let codes = file.codes.iter().map(|code| code.to_lowercase());
    let marks = file.marks.iter().map(|mark| Plain::of(mark));
    Provider {
        id: file.provider,
        words: words_of(&file.name),
        name: file.name,
        hosts: file.hosts,
        codes: codes.collect(),
        marks: marks.collect(),
        refusals,
    }
}

/// Returns the words in a name. The API in parentheses and short words are omitted.
fn words_of(name: &str) -> Vec<String> {
    let name = name.split(" (").next().unwrap_or_default().to_lowercase();
    let words = name.split(' ').filter(|word| word.len() > 2);
    words.map(str::to_owned).collect()
}

/// Returns an entry, and a copy of the entry for each alternative wording.
fn refusals(columns: &mut Columns, entry: usize) -> Vec<Refusal> {
    let wordings = std::iter::once(take(&mut columns.sentence[entry]))
        .chain(take(&mut columns.same[entry]))
        .collect::<Vec<_>>();
    wordings
        .into_iter()
        .map(|sentence| refusal(columns, entry, sentence))
        .collect()
}

fn refusal(columns: &Columns, entry: usize, sentence: String) -> Refusal {
    Refusal {
        pattern: Pattern::parse(&sentence),
        shorter: pattern::shorter(&sentence)
            .into_iter()
            .filter(|shorter| !pattern::is_general(shorter))
            .map(Pattern::parse)
            .filter(Pattern::is_telling)
            .collect(),
        sentence,
        wraps: columns.wraps[entry],
        status: columns.status[entry],
        kind: columns.kind[entry].clone(),
        reason: reason(columns, entry),
        meaning: columns.meaning[entry].clone(),
        remedy: columns.remedy[entry].clone(),
        seen: columns.seen[entry].clone(),
        sources: columns.sources[entry].clone(),
    }
}

fn reason(columns: &Columns, entry: usize) -> Reason {
    if let Some(code) = &columns.rule[entry] {
        return Reason::Rule(code.clone());
    }
    let name = columns.unruled[entry].as_deref().unwrap_or_default();
    let known = Unruled::ALL
        .into_iter()
        .find(|unruled| unruled.name() == name);
    Reason::Unruled(known.unwrap_or_else(|| panic!("`{name}` is not a reason")))
}
