//! The system prompt of a request, and the placeholder that represents any prompt.

use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::ops::{Deref, Range};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use memchr::memmem;

use super::costed::{Costed, HOLDER};
use crate::diag::Diagnostic;
use crate::memory::{Identity, Question};
use crate::render::{Recording, Rendered, TemplateId};
use crate::repo::LayerKind;

/// The whole system prompt of a request. Its hash and escaped form are computed once, because the
/// prompt is part of the key of every answer that depends on it.
#[derive(Debug, Clone)]
pub struct SystemPrompt {
    known: Arc<Known>,
    /// The agent's own part with its writers; `None` if the prompt has no such part, or if the
    /// caller gave the prompt.
    own: Option<Arc<Recording>>,
}

#[derive(Debug)]
struct Known {
    hash: u64,
    text: Box<str>,
    escaped: OnceLock<Box<str>>,
}

impl SystemPrompt {
    pub(super) fn new(text: String) -> SystemPrompt {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let (hash, text) = (hasher.finish(), text.into());
        SystemPrompt {
            known: Arc::new(Known {
                hash,
                text,
                escaped: OnceLock::new(),
            }),
            own: None,
        }
    }

    /// Returns the agent's own part with its writers.
    pub(super) fn own(&self) -> Option<&Arc<Recording>> {
        self.own.as_ref()
    }

    /// Returns the prompt without its writers, because agents with the same prompt may have
    /// different writers.
    pub(super) fn without_writers(&self) -> SystemPrompt {
        SystemPrompt {
            known: Arc::clone(&self.known),
            own: None,
        }
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.known.text
    }

    /// Returns the approximate size in bytes, including the JSON form and the writers.
    pub(super) fn weight(&self) -> usize {
        HOLDER + 2 * self.len() + self.own.as_ref().map_or(0, |own| own.weight())
    }

    /// Returns the text as it appears in a JSON string.
    pub(super) fn escaped(&self) -> &str {
        self.known.escaped.get_or_init(|| {
            let json =
                serde_json::to_string(self.as_str()).expect("a string serialises into memory");
            json[1..json.len() - 1].into()
        })
    }
}

impl PartialEq for SystemPrompt {
    fn eq(&self, other: &SystemPrompt) -> bool {
        let (one, other) = (&self.known, &other.known);
        Arc::ptr_eq(one, other) || (one.hash == other.hash && one.text == other.text)
    }
}

impl Eq for SystemPrompt {}

impl Deref for SystemPrompt {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl Hash for SystemPrompt {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.known.hash);
    }
}

/// The system prompt of a request with its cost; `None` if it is blank.
pub(crate) type Prompt = Costed<Result<Option<SystemPrompt>, Box<Diagnostic>>>;

/// A [`Question`] about the system prompt of a conversation, with the agent's own part and the
/// layer whose files that part can include.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct PromptOf(
    pub(super) Identity,
    pub(super) Option<TemplateId>,
    pub(super) LayerKind,
);

impl Question for PromptOf {
    type Answer = Prompt;

    fn weight(&self, answer: &Prompt) -> usize {
        HOLDER
            + answer
                .result
                .iter()
                .flatten()
                .map(SystemPrompt::weight)
                .sum::<usize>()
    }
}

/// The prompts of one agent, most of which are equal.
#[derive(Default)]
pub(super) struct KnownPrompts {
    /// The agent's own part, if it is the same in every context.
    constant: OnceLock<Constant>,
    whole: Mutex<Option<SystemPrompt>>,
}

/// A prompt that is the same in every context, given enough steps to render it.
struct Constant {
    recording: Arc<Recording>,
    cost: u64,
    /// The part of the cost that the prompt's steps account for.
    steps: u64,
}

/// The agent's own part of its prompt.
type OwnPart = Costed<Result<Arc<Recording>, Box<Diagnostic>>>;

impl KnownPrompts {
    /// Returns the agent's own part, which is rendered only once if `render` reports that the part
    /// is constant. `most` limits the cost of the steps.
    pub(super) fn own(&self, most: u64, render: impl FnOnce() -> (Rendered, bool)) -> OwnPart {
        if let Some(known) = self.constant.get().filter(|known| known.steps < most) {
            return Costed {
                result: Ok(Arc::clone(&known.recording)),
                cost: known.cost,
            };
        }
        let (rendered, is_constant) = render();
        let Rendered {
            output,
            cost,
            steps,
        } = rendered;
        let output = output.map(Arc::new);
        if let (true, Ok(recording)) = (is_constant, &output) {
            self.constant.get_or_init(|| Constant {
                recording: Arc::clone(recording),
                cost,
                steps,
            });
        }
        Costed {
            result: output,
            cost,
        }
    }

    /// Returns a whole prompt, with the recording of the agent's own part. The text of the previous
    /// prompt is reused if it is the same.
    pub(super) fn whole(&self, text: String, own: Option<Arc<Recording>>) -> SystemPrompt {
        let mut known = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        let same = known.take().filter(|known| known.as_str() == text);
        let prompt = known.insert(same.unwrap_or_else(|| SystemPrompt::new(text)));
        SystemPrompt {
            own,
            ..prompt.clone()
        }
    }
}

/// A string that represents any system prompt while a shared template is rendered.
pub(super) struct Placeholder {
    prompt: SystemPrompt,
    // Created once, because most of the searched strings are short.
    finder: memmem::Finder<'static>,
    escaped_finder: memmem::Finder<'static>,
    /// Finds the part that looks the same in every escaped form.
    core_finder: memmem::Finder<'static>,
    mark_finder: memmem::Finder<'static>,
}

/// The number of marks in the placeholder, which makes it about as long as a typical prompt.
const MARKS: usize = 16;
/// The character at both ends of the placeholder. JSON must escape it, so output that inserts the
/// prompt unescaped does not parse.
const EDGE: char = '\u{1}';

/// Returns the text that represents an agent's own system prompt in shared values.
pub(crate) fn stand_in() -> &'static str {
    placeholder().as_str()
}

/// Returns the placeholder. No repository author can know it, and no finished body contains it.
pub(super) fn placeholder() -> &'static Placeholder {
    static PLACEHOLDER: OnceLock<Placeholder> = OnceLock::new();
    PLACEHOLDER.get_or_init(|| {
        let mark = format!("{:016x}", RandomState::new().hash_one(0));
        let prompt = SystemPrompt::new(format!("{EDGE}{}{EDGE}", mark.repeat(MARKS)));
        let finder = memmem::Finder::new(prompt.as_str()).into_owned();
        let escaped_finder = memmem::Finder::new(prompt.escaped()).into_owned();
        let core = &prompt[EDGE.len_utf8()..prompt.len() - EDGE.len_utf8()];
        let core_finder = memmem::Finder::new(core).into_owned();
        Placeholder {
            finder,
            escaped_finder,
            core_finder,
            mark_finder: memmem::Finder::new(&mark).into_owned(),
            prompt,
        }
    })
}

impl Placeholder {
    /// Returns the placeholder's offsets in a string, in any escaped form.
    pub(super) fn found_in(&self, text: &str) -> Vec<usize> {
        self.core_finder.find_iter(text.as_bytes()).collect()
    }

    /// Returns `true` if a range of a string overlaps the placeholder, given the offsets at which
    /// it was `found`.
    pub(super) fn is_in(&self, range: &Range<usize>, found: &[usize]) -> bool {
        let length = self.core_finder.needle().len();
        found
            .iter()
            .any(|&at| at < range.end && at + length > range.start)
    }

    /// Splits a string at the placeholder; returns `None` if the placeholder does not occur.
    pub(super) fn split<'t>(&self, text: &'t str) -> Option<Vec<&'t str>> {
        let mut from = 0;
        let mut pieces: Vec<&str> = Vec::new();
        for at in self.finder.find_iter(text.as_bytes()) {
            pieces.push(&text[from..at]);
            from = at + self.prompt.len();
        }
        (from > 0).then(|| {
            pieces.push(&text[from..]);
            pieces
        })
    }

    /// Returns the placeholder's offsets in a string in which it is escaped as JSON.
    pub(super) fn found_escaped(&self, text: &str) -> Vec<usize> {
        self.escaped_finder.find_iter(text.as_bytes()).collect()
    }

    /// Returns the search for the repeated mark, which every longer part of the placeholder
    /// contains.
    pub(super) fn mark_finder(&self) -> &memmem::Finder<'static> {
        &self.mark_finder
    }
}

impl Deref for Placeholder {
    type Target = SystemPrompt;

    fn deref(&self) -> &SystemPrompt {
        &self.prompt
    }
}
