//! Describes the alteration of a string on its way into a body.

use crate::compare::alteration;

/// The message about a string that was encoded twice.
pub(super) const ENCODED: &str = "it is JSON-encoded a second time";

/// Returns a description if a candidate contains the text in escaped form.
pub(super) fn escaped(text: &str, candidates: &[&str]) -> Option<String> {
    let encoded = encoded(text);
    candidates.iter().find_map(|candidate| {
        if unescaped_html(candidate).is_some_and(|plain| plain.contains(text)) {
            return Some("it is HTML-escaped".to_owned());
        }
        (encoded != text && candidate.contains(&encoded)).then(|| ENCODED.to_owned())
    })
}

/// Returns a description if a candidate is an altered form of the text, such as "it is truncated
/// after 10 of 20 characters".
pub(super) fn find<'t>(
    text: &str,
    candidates: impl IntoIterator<Item = &'t str>,
) -> Option<String> {
    candidates
        .into_iter()
        .find_map(|candidate| of(text, candidate))
}

/// Describes the alteration of a call's arguments.
pub(super) fn of_arguments(arguments: &str, found: &str) -> String {
    match escaped(arguments, &[found]).or_else(|| digits(arguments, found)) {
        Some(how) => how,
        None => alteration(arguments, found),
    }
}

/// Returns a description of the first number that differs, if only numbers differ. Large integers
/// lose digits when a program converts them to floating point.
fn digits(arguments: &str, found: &str) -> Option<String> {
    if rest(arguments) != rest(found) {
        return None;
    }
    let (before, after) = (words(arguments), words(found));
    let (one, other) = before
        .iter()
        .zip(&after)
        .find(|(one, other)| one != other)?;
    (is_number(one) && is_number(other)).then(|| format!("the number {one} became {other}"))
}

fn is_number(word: &str) -> bool {
    word.parse::<f64>().is_ok()
}

fn rest(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_ascii_digit() && !".+-eE".contains(*c))
        .collect::<String>()
}

fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_ascii_digit() && !".+-eE".contains(c))
        .map(str::to_owned)
        .collect::<Vec<_>>()
}

/// Encodes a string as JSON.
pub(super) fn as_json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn of(text: &str, candidate: &str) -> Option<String> {
    if text.trim().is_empty() || candidate.trim().is_empty() {
        return None;
    }
    let trimmed = text.trim();
    let how = if trimmed != text && candidate.contains(trimmed) {
        "leading or trailing whitespace is removed".to_owned()
    } else if let Some(length) = cut_behind(text, candidate) {
        format!(
            "it is truncated after {length} of {} characters",
            text.chars().count()
        )
    } else if is_tail(text, candidate) {
        format!(
            "only the last {} of its {} characters remain",
            candidate.chars().count(),
            text.chars().count()
        )
    } else if squeezed(candidate).contains(&squeezed(text)) {
        "its whitespace differs".to_owned()
    } else if candidate.to_lowercase() == text.to_lowercase() {
        "its letter case differs".to_owned()
    } else {
        return None;
    };
    Some(how)
}

/// Encodes a string as JSON, without the quotes around it.
fn encoded(text: &str) -> String {
    let json = as_json(text);
    json[1..json.len() - 1].to_owned()
}

/// Decodes the HTML entities in a string; returns `None` if there are none.
fn unescaped_html(text: &str) -> Option<String> {
    const ENTITIES: [(&str, &str); 9] = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#34;", "\""),
        ("&#39;", "'"),
        ("&#x27;", "'"),
        ("&#x2f;", "/"),
        ("&#x2F;", "/"),
        ("&amp;", "&"),
    ];
    let has_entity = ENTITIES.iter().any(|(entity, _)| text.contains(entity));
    has_entity.then(|| {
        ENTITIES
            .iter()
            .fold(text.to_owned(), |text, (entity, plain)| {
                text.replace(entity, plain)
            })
    })
}

/// Returns the number of characters that remain of a string that was cut at the end; `None` if the
/// candidate is not a long enough beginning of the string.
fn cut_behind(text: &str, candidate: &str) -> Option<usize> {
    const SHORTEST: usize = 8;
    let head = candidate.trim_end().trim_end_matches(['…', '.']).trim_end();
    let length = head.chars().count();
    let is_enough = length >= SHORTEST || 3 * length >= text.chars().count();
    (!head.is_empty() && is_enough && head.len() < text.len() && text.starts_with(head))
        .then_some(length)
}

fn is_tail(text: &str, candidate: &str) -> bool {
    const SHORTEST: usize = 8;
    candidate.chars().count() >= SHORTEST
        && candidate.len() < text.len()
        && text.ends_with(candidate)
}

fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alterations_are_named() {
        let text = "Is \"a\" < b?\nSay so. ";
        let how = |found: &str| {
            let candidates = ["something else", found];
            escaped(text, &candidates).or_else(|| find(text, candidates))
        };
        assert_eq!(
            how("Is &quot;a&quot; &lt; b?\nSay so. ").as_deref(),
            Some("it is HTML-escaped")
        );
        assert_eq!(
            how("\"Is \\\"a\\\" < b?\\nSay so. \"").as_deref(),
            Some("it is JSON-encoded a second time")
        );
        assert_eq!(
            how("Is \"a\" < b?\nSay so.").as_deref(),
            Some("leading or trailing whitespace is removed")
        );
        assert_eq!(
            how("Is \"a\" < b?...").as_deref(),
            Some("it is truncated after 11 of 20 characters")
        );
        assert_eq!(
            how("b?\nSay so. ").as_deref(),
            Some("only the last 11 of its 20 characters remain")
        );
        assert_eq!(
            how("Is \"a\" < b? Say so.").as_deref(),
            Some("its whitespace differs")
        );
        assert_eq!(
            how("IS \"A\" < B?\nSAY SO. ").as_deref(),
            Some("its letter case differs")
        );
        assert_eq!(how("ok"), None);
        assert_eq!(find("", ["part 1"]), None);
        let arguments = |found: &str| of_arguments(r#"{"id":9007199254740993}"#, found);
        assert_eq!(
            arguments(r#"{"id":9007199254740992}"#),
            "the number 9007199254740993 became 9007199254740992"
        );
    }
}
