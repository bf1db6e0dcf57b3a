//! Misspelled model names.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::diag::is_misspelling;
use crate::repo::{Family, ModelName, ModelPattern};

/// The model names in families.
pub(crate) struct KnownModels<'f> {
    families: &'f [Arc<Family>],
    /// The words in all patterns, determined on first use.
    words: OnceCell<BTreeSet<&'f str>>,
}

impl<'f> KnownModels<'f> {
    /// Returns the names in a repository's families.
    pub(crate) fn new(families: &'f [Arc<Family>]) -> KnownModels<'f> {
        KnownModels {
            families,
            words: OnceCell::new(),
        }
    }

    fn patterns(&self) -> impl Iterator<Item = &'f ModelPattern> + use<'f> {
        self.families.iter().flat_map(|family| &family.models)
    }

    fn words(&self) -> &BTreeSet<&'f str> {
        self.words.get_or_init(|| {
            self.patterns()
                .flat_map(|pattern| words(&pattern.text.value))
                .collect()
        })
    }
}

/// Returns the known name that differs from `name` in the spelling of one word. Other versions of
/// known models, and new words, do not count as misspellings.
pub(super) fn misspelt(name: &str, models: &KnownModels<'_>) -> Option<String> {
    let all = models.words();
    let unknown: Vec<&str> = words(name)
        .filter(|word| !ENDINGS.contains(word) && !all.contains(word))
        .collect();
    let [word] = unknown[..] else {
        return None;
    };
    let before = ModelName::new(name);
    let known = all.iter().copied().chain(ENDINGS);
    known
        .filter(|known| is_misspelt_word(word, known))
        .map(|known| (known, name.replacen(word, known, 1)))
        .find(|(known, spelt)| {
            let after = ModelName::new(spelt);
            let mut newly = models
                .patterns()
                .filter(|pattern| pattern.is_match(&after) && !pattern.is_match(&before));
            ENDINGS.contains(known) || newly.next().is_some()
        })
        .map(|(_, spelt)| spelt)
}

/// Returns the known name that consists of the same parts as `name`, but has the version and the
/// variant in the opposite order (`claude-5-5-sonnet`) or without the first dash (`gpt5.6-luna`).
/// Returns `None` for a name that already matches a pattern with a version.
pub(super) fn misplaced(name: &str, models: &KnownModels<'_>) -> Option<String> {
    let arranged: Vec<Arranged> = [in_other_order(name), with_first_dash(name)]
        .into_iter()
        .flatten()
        .collect();
    if arranged.is_empty() || is_known_version(&ModelName::new(name), models, "") {
        return None;
    }
    let known = arranged
        .into_iter()
        .find(|it| is_known_version(&ModelName::new(&it.name), models, &it.word));
    known.map(|it| it.name)
}

/// Returns `true` if a name matches a pattern that contains a version and a word.
fn is_known_version(name: &ModelName, models: &KnownModels<'_>, word: &str) -> bool {
    models.patterns().any(|pattern| {
        pattern.is_match(name) && has_version(pattern) && pattern.text.value.contains(word)
    })
}

/// Returns the known name that was probably meant by a misspelled name.
#[cfg(feature = "cli")]
pub(crate) fn known_name(name: &str, families: &[Arc<Family>]) -> Option<String> {
    let models = KnownModels::new(families);
    misspelt(name, &models).or_else(|| misplaced(name, &models))
}

/// A model name whose parts were rearranged.
struct Arranged {
    name: String,
    /// The word that a pattern must contain to show that the name is known.
    word: String,
}

/// Swaps the version in a name with the words before or after it.
fn in_other_order(name: &str) -> Option<Arranged> {
    let parts: Vec<&str> = name.split('-').collect();
    let (first, rest) = parts.split_first()?;
    let is_version_first = rest.first().is_some_and(|part| is_version(part));
    let begins_other = |part: &&str| is_version(part) != is_version_first;
    let middle = rest.iter().position(begins_other)?;
    let end = match is_version_first {
        true => middle + 1,
        false => {
            middle
                + rest[middle..]
                    .iter()
                    .take_while(|it| is_version(it))
                    .count()
        }
    };
    let arranged = [&[*first], &rest[middle..end], &rest[..middle], &rest[end..]].concat();
    let word = if is_version_first {
        rest[middle]
    } else {
        rest[0]
    };
    Some(Arranged {
        name: arranged.join("-"),
        word: word.to_owned(),
    })
}

/// Inserts a dash between the first word of a name and the version.
fn with_first_dash(name: &str) -> Option<Arranged> {
    let end = name.find(|c: char| !c.is_ascii_alphabetic())?;
    let (word, rest) = name.split_at(end);
    let is_joined = word.len() >= SHORTEST_WORD && rest.starts_with(|c: char| c.is_ascii_digit());
    is_joined.then(|| Arranged {
        name: format!("{word}-{rest}"),
        word: word.to_owned(),
    })
}

/// Returns `true` for a part of a version: `5`, `v4`, `2.5`, but not for a date or a size.
fn is_version(part: &str) -> bool {
    let digits = part.strip_prefix('v').unwrap_or(part);
    digits.len() <= LONGEST_VERSION
        && digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_digit() || c == '.')
}

fn has_version(pattern: &ModelPattern) -> bool {
    pattern.text.value.contains(|c: char| c.is_ascii_digit())
}

/// The maximum length, in bytes, of one part of a version. Dates and months (`2512`) are longer.
const LONGEST_VERSION: usize = 3;

/// Words that may follow a model name, and that most patterns of families do not contain.
const ENDINGS: [&str; 6] = [
    "experimental",
    "instruct",
    "latest",
    "lite",
    "live",
    "preview",
];

/// Returns `true` if a word in a name is a misspelling of a known word. In short words, only
/// letters in a different order and a missing last letter count, because other short words may be
/// new.
fn is_misspelt_word(word: &str, known: &str) -> bool {
    if word == known {
        return false;
    }
    match (word.len(), known.len()) {
        (3, 3) => sorted(word) == sorted(known),
        (3, 4) => known.starts_with(word),
        (3, _) | (_, 3) => false,
        _ => is_misspelling(word, known),
    }
}

fn sorted(word: &str) -> Vec<u8> {
    let mut letters = word.as_bytes().to_vec();
    letters.sort_unstable();
    letters
}

/// The length of the shortest word whose spelling is checked.
const SHORTEST_WORD: usize = 3;

/// Returns the words in a name or a pattern: the runs of letters that are long enough.
fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split(|c: char| !c.is_ascii_alphabetic())
        .filter(|word| word.len() >= SHORTEST_WORD)
}
