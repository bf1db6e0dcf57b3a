//! Finds the values that programs print among other text: JSON, Python dictionaries, JavaScript
//! objects, and strings that contain JSON.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::address::Address;
use crate::json::{Rewritten, decode_map, rewritten};
use crate::source::OffsetMap;

/// An object in a text, as JSON.
#[derive(Debug)]
pub(crate) struct Excerpt {
    /// The object as JSON.
    pub(crate) json: String,
    /// The range of the object in the text.
    pub(crate) range: Range<usize>,
    /// The URL of the endpoint that the object was sent to, if a request line or a log line near it
    /// contains one.
    pub(crate) url: Option<String>,
    /// The maps that lead from the JSON to the text, in this order.
    maps: Vec<OffsetMap>,
}

impl Excerpt {
    /// Converts a range in the JSON to a range in the text.
    pub(crate) fn to_text(&self, range: Range<usize>) -> Range<usize> {
        self.maps
            .iter()
            .fold(range, |range, map| map.to_source_range(range))
    }
}

/// How often the bytes of a text may be read in search of objects, on average.
const MOST_READ: usize = 4;

/// Returns the objects in a text that are not part of another object, in order.
pub(crate) fn excerpts(text: &str) -> impl Iterator<Item = Excerpt> {
    let mut found = Objects {
        text,
        at: 0,
        work: text.len().saturating_mul(MOST_READ),
    }
    .peekable();
    let mut before = 0;
    std::iter::from_fn(move || {
        let mut excerpt = found.next()?;
        let Range { start, end } = excerpt.range;
        let after = found.peek().map_or(text.len(), |next| next.range.start);
        excerpt.url = url_near(&text[before..start], &text[end..after]);
        before = end;
        Some(excerpt)
    })
}

/// A search for objects in a text.
struct Objects<'t> {
    text: &'t str,
    /// The offset at which the search continues.
    at: usize,
    /// The number of bytes that may still be read in vain.
    work: usize,
}

impl Iterator for Objects<'_> {
    type Item = Excerpt;

    fn next(&mut self) -> Option<Excerpt> {
        loop {
            let start = self.at + memchr::memchr(b'{', &self.text.as_bytes()[self.at..])?;
            match excerpt(self.text, start) {
                Ok(excerpt) => {
                    self.at = excerpt.range.end;
                    return Some(excerpt);
                }
                Err(end) => {
                    self.at = start + 1;
                    self.work = self.work.checked_sub(end.saturating_sub(start) + 1)?;
                }
            }
        }
    }
}

/// Returns the object that begins at a brace, or whose string begins before it. Fails with the offset
/// at which reading ended.
fn excerpt(text: &str, start: usize) -> Result<Excerpt, usize> {
    let before = &text[..start];
    let is_quoted = before.ends_with(['\'', '"', '`']);
    let is_bytes = is_quoted && before[..start - 1].ends_with('b');
    if is_bytes && let Some(excerpt) = in_string(text, start - 2) {
        return Ok(excerpt);
    }
    match rewritten(text, start) {
        Ok(Rewritten { json, map, end }) => Ok(Excerpt {
            json,
            range: start..end,
            url: None,
            maps: vec![map],
        }),
        Err(end) if !is_quoted => Err(end),
        Err(end) => in_string(text, start - 1).ok_or(end),
    }
}

/// Returns the object in a string that begins at an offset.
fn in_string(text: &str, start: usize) -> Option<Excerpt> {
    let Rewritten { json, map, end } = rewritten(text, start).ok()?;
    let inner: String = serde_json::from_str(&json).ok()?;
    serde_json::from_str::<serde::de::IgnoredAny>(&inner).ok()?;
    Some(Excerpt {
        maps: vec![decode_map(&json, 0), map],
        json: inner,
        range: start..end,
        url: None,
    })
}

/// A request line with a URL: `POST https://…`, or `curl -X POST \` and the URL on the next line.
static SENT: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"(?i)\bPOST\b["']?[\s\\]+["']?(https?://[^\s"'\\]+)"#));

/// A line of a log about a request that was sent, as `httpx` writes it.
static WAS_SENT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"(?:Sending HTTP Request: POST (https?://\S+)|\bPOST (https?://\S+) "(?:HTTP/)?[\d.]+ ?\w)"#,
    )
});

/// A request line without a host, and the header with the host. In Python's logs, the ends of lines
/// are escaped.
static SENT_TO_HOST: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?is)\bPOST\s+(/\S*)\s+HTTP/[\d.]+.{0,4000}?(?:\b|\\n)host:\s*([\w.:-]+)")
});

fn pattern(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is valid")
}

/// Returns the URL of the endpoint that an object in a log was sent to. `before` is the text between
/// the previous object and this one, and `after` is the text up to the next object.
fn url_near(before: &str, after: &str) -> Option<String> {
    let logged = WAS_SENT.captures(after);
    let logged = logged.and_then(|found| found.get(1).or(found.get(2)));
    let sent = SENT.captures_iter(before).last();
    let sent = sent.and_then(|found| found.get(1));
    let to_host = SENT_TO_HOST.captures_iter(before).last();
    let to_host = to_host.map(|found| format!("https://{}{}", &found[2], &found[1]));
    [
        logged.map(|url| url.as_str().to_owned()),
        sent.map(|url| url.as_str().to_owned()),
        to_host,
    ]
    .into_iter()
    .flatten()
    .find(|url| matches!(Address::of(url), Address::Known(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        excerpts(text).map(|excerpt| excerpt.json).collect()
    }

    #[test]
    fn objects_among_text_are_found() {
        assert_eq!(
            found("a {b} {\"c\": [{}]} d {'e': 1}{"),
            ["{\"c\": [{}]}", "{\"e\": 1}"]
        );
        assert_eq!(found("-d '{'a': \"it's\"}'"), ["{\"a\": \"it's\"}"]);
        assert_eq!(found("-d '{\"a\": \"b\\n\"}'"), ["{\"a\": \"b\\n\"}"]);
        assert_eq!(
            found(r#"send: b'{"a": "it\'s \\"so\\" \xc3\xa9"}'"#),
            [r#"{"a": "it's \"so\" é"}"#]
        );
        assert_eq!(found(r#"body="{\"a\": 1}""#), ["{\"a\": 1}"]);
        assert!(found("{'a': [Array]} {").is_empty());
    }

    #[test]
    fn places_in_strings_are_those_of_the_text() {
        let text = r#"send: b'{"a": "it\'s \\"so\\" \xc3\xa9", "c": 12}'"#;
        let excerpt = excerpts(text).next().expect("an object");
        let at = excerpt.json.find("12").expect("a number");
        assert_eq!(&text[excerpt.to_text(at..at + 2)], "12");
        let at = excerpt.json.find('é').expect("a letter");
        assert_eq!(&text[excerpt.to_text(at..at + 2)], r"\xc3\xa9");
    }

    #[test]
    fn braces_are_not_read_again_and_again() {
        let text = "{'a':".repeat(200_000);
        assert_eq!(excerpts(&text).count(), 0);
    }

    #[test]
    fn the_url_of_a_request_is_near_it() {
        let url = "https://api.openai.com/v1/chat/completions";
        for (before, after) in [
            (format!("--> POST {url} http/1.1\n"), String::new()),
            (format!("curl -X POST \\\n{url} \\\n-d '"), String::new()),
            (
                "> POST /v1/chat/completions HTTP/1.1\n> Host: api.openai.com\n".to_owned(),
                String::new(),
            ),
            (
                r"send: b'POST /v1/chat/completions HTTP/1.1\r\nHost: api.openai.com\r\n'"
                    .to_owned(),
                String::new(),
            ),
            (
                "POST https://api.anthropic.com/v1/messages\n".to_owned(),
                format!("INFO:httpx:HTTP Request: POST {url} \"HTTP/1.1 400 Bad Request\""),
            ),
        ] {
            assert_eq!(url_near(&before, &after).as_deref(), Some(url), "{before}");
        }
        assert_eq!(url_near("POST https://api.openai.com/v1/ \n", ""), None);
    }
}
