//! Finds the values that programs print among other text: JSON, Python dictionaries, JavaScript
//! objects, and strings that contain JSON.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::address::Address;
use crate::json::{Rewritten, Unread, decode_map, rewritten, rewritten_string};
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
    /// The maps that convert an offset in the JSON to an offset in the text, applied in this order.
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

/// The maximum number of times, on average, that each byte of a text may be read by searches that
/// find no object. In a short text, the number may be higher.
const MOST_READ: usize = 4;
const ALWAYS_READ: usize = 4 << 20;

/// The offset at which the search of a text was abandoned, because too many bytes had been read
/// without finding an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unsearched(pub(crate) usize);

/// Returns the objects in a text that are not part of another object, in order.
pub(crate) fn excerpts(text: &str) -> impl Iterator<Item = Result<Excerpt, Unsearched>> {
    let mut found = Objects {
        text,
        at: 0,
        work: text.len().saturating_mul(MOST_READ) + ALWAYS_READ,
    }
    .peekable();
    let mut before = 0;
    std::iter::from_fn(move || {
        let mut excerpt = match found.next()? {
            Ok(excerpt) => excerpt,
            unsearched => return Some(unsearched),
        };
        let Range { start, end } = excerpt.range;
        let after = match found.peek() {
            Some(Ok(next)) => next.range.start,
            Some(Err(_)) | None => text.len(),
        };
        excerpt.url = url_near(&text[before..start], &text[end..after]);
        before = end;
        Some(Ok(excerpt))
    })
}

/// A search for objects in a text.
struct Objects<'t> {
    text: &'t str,
    /// The offset at which the search continues.
    at: usize,
    /// The number of bytes that may still be read without finding an object.
    work: usize,
}

impl Iterator for Objects<'_> {
    type Item = Result<Excerpt, Unsearched>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let start = self.at + memchr::memchr(b'{', &self.text.as_bytes()[self.at..])?;
            let Unread { bytes, cut_at } = match excerpt(self.text, start) {
                Ok(excerpt) => {
                    self.at = excerpt.range.end;
                    return Some(Ok(excerpt));
                }
                Err(unread) => unread,
            };
            if self.work < bytes {
                self.at = self.text.len();
                return Some(Err(Unsearched(start)));
            }
            self.work -= bytes;
            // In a truncated string, everything that follows is part of the string.
            self.at = cut_at.unwrap_or(start + 1);
        }
    }
}

/// Returns the object that begins at a brace, or the object in a string that begins before the
/// brace.
fn excerpt(text: &str, start: usize) -> Result<Excerpt, Unread> {
    let before = &text[..start];
    let is_quoted = before.ends_with(['\'', '"', '`']);
    let is_bytes = is_quoted && before[..start - 1].ends_with('b');
    let as_bytes = is_bytes.then(|| in_string(text, start - 2));
    let read = match as_bytes {
        Some(Ok(excerpt)) => return Ok(excerpt),
        Some(Err(unread)) => unread.bytes,
        None => 0,
    };
    let unread = match rewritten(text, start) {
        Ok(Rewritten { json, map, end }) => {
            return Ok(Excerpt {
                json,
                range: start..end,
                url: None,
                maps: vec![map],
            });
        }
        Err(unread) => unread,
    };
    let unread = Unread {
        bytes: unread.bytes + read,
        ..unread
    };
    let quoted = is_quoted.then(|| in_string(text, start - 1));
    quoted.unwrap_or(Err(unread)).map_err(|last| Unread {
        bytes: unread.bytes + last.bytes,
        ..unread
    })
}

/// Returns the object in a string that begins at an offset.
fn in_string(text: &str, start: usize) -> Result<Excerpt, Unread> {
    let Rewritten { json, map, end } = rewritten_string(text, start)?;
    let inner: Option<String> = serde_json::from_str(&json).ok();
    let inner = inner.filter(|it| serde_json::from_str::<serde::de::IgnoredAny>(it).is_ok());
    Ok(Excerpt {
        json: inner.ok_or(Unread {
            bytes: end - start,
            cut_at: None,
        })?,
        range: start..end,
        url: None,
        maps: vec![decode_map(&json, 0), map],
    })
}

/// A request with a URL: `POST https://…`, or a `curl` command, whose URL may be on the next line.
static SENT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"(?i)(?:\bPOST\b["']?[\s\\]+|\bcurl\b[^\n"'{]{0,200}?\s)(?:--url\s+)?["']?(https?://[^\s"'\\]+)"#,
    )
});

/// A log line about a request that was sent, in the format of `httpx`.
static WAS_SENT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"(?:Sending HTTP Request: POST (https?://\S+)|\bPOST (https?://\S+) "(?:HTTP/)?[\d.]+ ?\w)"#,
    )
});

/// A request line without a host.
static REQUEST_LINE: LazyLock<Regex> = LazyLock::new(|| pattern(r"\bPOST\s+(/\S*)\s+HTTP/[\d.]+"));

/// The header with the host. In Python's logs, the ends of lines are escaped.
static HOST: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)(?:\b|\\n)host:\s*([\w.:-]+)"));

/// The maximum distance between a body and its URL, in bytes.
const NEAR: usize = 8 << 10;

fn pattern(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is valid")
}

/// Returns the URL of the endpoint that an object in a log was sent to. `before` is the text between
/// the previous object and this one, and `after` is the text up to the next object.
fn url_near(before: &str, after: &str) -> Option<String> {
    let before = &before[before.ceil_char_boundary(before.len().saturating_sub(NEAR))..];
    let after = &after[..after.floor_char_boundary(NEAR)];
    let logged = WAS_SENT.captures(after);
    let logged = logged.and_then(|found| found.get(1).or(found.get(2)));
    // A line about the previous request, which was sent before this object was printed.
    let is_answered = |end: usize| before[end..].starts_with(" \"");
    let sent = SENT.captures_iter(before).filter_map(|found| found.get(1));
    let sent = sent.filter(|url| !is_answered(url.end())).last();
    [
        logged.map(|url| url.as_str().to_owned()),
        sent.map(|url| url.as_str().to_owned()),
        url_of_host(before),
    ]
    .into_iter()
    .flatten()
    .find(|url| matches!(Address::of(url), Address::Known(_)))
}

/// Returns the URL of the last request in a dump, from its first line and its `Host` header.
fn url_of_host(dump: &str) -> Option<String> {
    let line = REQUEST_LINE.captures_iter(dump).last()?;
    let headers = &dump[line.get(0)?.end()..];
    let host = HOST.captures(headers)?;
    Some(format!("https://{}{}", &host[1], &line[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        excerpts(text)
            .flatten()
            .map(|excerpt| excerpt.json)
            .collect()
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
        // A string that is cut off is not searched, but the next line is.
        assert_eq!(found("{'a': \"b {'c': 1} d\n{'e': 2}"), ["{\"e\": 2}"]);
    }

    #[test]
    fn places_in_strings_are_those_of_the_text() {
        let text = r#"send: b'{"a": "it\'s \\"so\\" \xc3\xa9", "c": 12}'"#;
        let excerpt = excerpts(text).flatten().next().expect("an object");
        let at = excerpt.json.find("12").expect("a number");
        assert_eq!(&text[excerpt.to_text(at..at + 2)], "12");
        let at = excerpt.json.find('é').expect("a letter");
        assert_eq!(&text[excerpt.to_text(at..at + 2)], r"\xc3\xa9");
    }

    #[test]
    fn braces_are_not_read_again_and_again() {
        for part in [
            "{'a':",
            "'{' ",
            "'{0}'\n",
            "{a:<",
            "{[",
            "{'\\N{",
            "b'{",
            "POST /x HTTP/1.1 ",
        ] {
            let text = part.repeat(100_000);
            assert_eq!(
                excerpts(&text)
                    .flatten()
                    .filter(|it| it.json.len() > 9)
                    .count(),
                0,
                "{part}"
            );
        }
    }

    #[test]
    fn a_search_that_ends_early_says_where() {
        let text = format!("{{\"a\": 1}}{}", "{a:".repeat(400_000));
        let mut found = excerpts(&text);
        assert!(found.next().is_some_and(|it| it.is_ok()));
        let end = found.next().expect("the end of the search");
        assert!(end.is_err_and(|Unsearched(at)| at > 8 && at < text.len()));
        assert!(found.next().is_none());
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
        assert_eq!(
            url_near(&format!("POST {url} \"HTTP/1.1 200 OK\"\n"), ""),
            None
        );
        assert_eq!(
            url_near(&format!("curl {url} -d '"), "").as_deref(),
            Some(url)
        );
    }
}
