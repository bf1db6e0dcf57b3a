//! Describes the change from one string to another.

use crate::text::cut;

/// Returns a phrase that describes the change to a string, such as "it is truncated after 100 of
/// 350 characters".
pub(crate) fn alteration(before: &str, after: &str) -> String {
    if after.trim().is_empty() {
        return "nothing of it remains".to_owned();
    }
    if before.trim() == after.trim() {
        return "leading or trailing whitespace differs".to_owned();
    }
    if before.starts_with(after.trim_end()) {
        return format!(
            "it is truncated after {} of {} characters",
            length(after.trim_end()),
            length(before)
        );
    }
    if encoded(before) == after || unquoted(&encoded(before)) == after {
        return "it is JSON-encoded a second time".to_owned();
    }
    if escaped_for_html(before) == after {
        return "it is HTML-escaped".to_owned();
    }
    if words(before).eq(words(after)) {
        return "it differs only in whitespace".to_owned();
    }
    if let Some(at) = after.find(before.trim()) {
        let added = length(after).saturating_sub(length(before.trim()));
        let place = if at == 0 { "after it" } else { "around it" };
        return format!("{added} characters are added {place}");
    }
    first_difference(before, after)
}

fn length(text: &str) -> usize {
    text.chars().count()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace()
}

fn encoded(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn unquoted(json: &str) -> &str {
    json.strip_prefix('"')
        .and_then(|json| json.strip_suffix('"'))
        .unwrap_or(json)
}

/// Escapes a string as common template engines do: `&`, `<`, `>` and both kinds of quotes.
fn escaped_for_html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&#34;")
        .replace('\'', "&#39;")
}

/// The maximum number of characters shown after the location where two strings begin to differ.
const LONGEST: usize = 30;

/// Describes the location where two strings begin to differ, and how each string continues.
fn first_difference(before: &str, after: &str) -> String {
    let same = before
        .chars()
        .zip(after.chars())
        .take_while(|(a, b)| a == b)
        .count();
    let [before, after] =
        [rest(before, same), rest(after, same)].map(|text| cut(&text, LONGEST).into_owned());
    let place = if same == 0 {
        String::new()
    } else {
        format!("from character {} on ", same + 1)
    };
    format!("{place}it changed from \"{before}\" to \"{after}\"")
}

fn rest(text: &str, same: usize) -> String {
    text.chars()
        .skip(same)
        .take(4 * LONGEST)
        .collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::alteration;

    #[test]
    fn alterations_are_named() {
        let cases = [
            ("abc def", " ", "nothing of it remains"),
            ("abc\n", "abc", "leading or trailing whitespace differs"),
            ("abcdef", "abc", "it is truncated after 3 of 6 characters"),
            ("a\nb", "a\\nb", "it is JSON-encoded a second time"),
            ("a\nb", "\"a\\nb\"", "it is JSON-encoded a second time"),
            ("a < b", "a &lt; b", "it is HTML-escaped"),
            ("a  b", "a b", "it differs only in whitespace"),
            ("abc", "abc, and more", "10 characters are added after it"),
            (
                "abcd",
                "abxd",
                "from character 3 on it changed from \"cd\" to \"xd\"",
            ),
        ];
        for (before, after, told) in cases {
            assert_eq!(alteration(before, after), told);
        }
    }
}
