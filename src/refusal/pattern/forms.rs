//! Shorter forms of sentences, and sentences that do not say what is wrong.

/// Error classes before sentences, which some servers and clients omit or replace.
const CLASSES: [&str; 11] = [
    "<400> InternalError.Algo.InvalidParameter: ",
    "InternalError.Algo.InvalidParameter: ",
    "Failed to deserialize the JSON body into the target type: ",
    "Invalid JSON payload received. ",
    "Invalid request content: ",
    "Invalid request: ",
    "Malformed input request: ",
    "Jinja Exception: ",
    "Value error, ",
    "messages: ",
    "The model returned the following errors: ",
];

/// The beginning of a sentence that starts with a hole for a reason, so only its end is fixed.
const BARE_REASON: &str = "{reason}";

/// Returns shorter forms by which a sentence can also be recognised: without the error class or
/// path before it, and without the advice after each full stop.
pub(in crate::refusal) fn shorter(sentence: &str) -> Vec<&str> {
    let bare = CLASSES
        .iter()
        .chain(["{path}: "].iter())
        .find_map(|class| sentence.strip_prefix(class))
        .filter(|bare| !bare.starts_with(BARE_REASON));
    let mut shorter: Vec<&str> = bare.into_iter().collect();
    for whole in bare.into_iter().chain([sentence]) {
        let parts = whole.match_indices(". ").map(|(at, _)| &whole[..=at]);
        // An error class at the end of a part belongs to the message after it, so such a part is
        // left out.
        shorter
            .extend(parts.filter(|part| !CLASSES.iter().any(|it| part.ends_with(it.trim_end()))));
    }
    shorter
}

/// Words that show only that a text is a refusal.
const GENERAL: [&str; 22] = [
    "a",
    "an",
    "arguments",
    "bad",
    "body",
    "error",
    "failed",
    "input",
    "invalid",
    "is",
    "not",
    "of",
    "or",
    "parameter",
    "parameters",
    "provided",
    "provider",
    "request",
    "server",
    "the",
    "unexpected",
    "your",
];

/// Returns `true` if a sentence has no word that says what is wrong. Many servers use such
/// sentences.
pub(in crate::refusal) fn is_general(sentence: &str) -> bool {
    let mut words = sentence
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|word| !word.is_empty());
    words.all(|word| GENERAL.contains(&word.to_lowercase().as_str()))
}
