//! Cassettes of VCR in YAML, as `vcrpy`, `pytest-recording`, the `vcr` of Ruby and `go-vcr` write them: the few forms of scalars in which
//! they write bodies, and nothing else of YAML.
//!
//! Sources: `kevin1024/vcrpy`, `vcr/serializers/yamlserializer.py`; `vcr/vcr`, `lib/vcr/cassette/serializers.rb`; `dnaeon/go-vcr`.

use serde_json::{Value, json};

/// Returns the interactions of a cassette as JSON; `None` if a text is none.
pub(in crate::traffic) fn document(text: &str) -> Option<Value> {
    let begins = text.lines().any(|line| matches!(line.trim_end(), "interactions:" | "http_interactions:"));
    if !begins {
        return None;
    }
    let lines: Vec<&str> = text.lines().collect();
    let mut reader = Reader { lines: &lines, interactions: Vec::new(), side: Side::Neither };
    let mut at = 0;
    while at < lines.len() {
        at = reader.line(at);
    }
    Some(json!({"interactions": reader.interactions}))
}

/// The side of an interaction that lines belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Neither,
    Request,
    Response,
}

struct Reader<'t> {
    lines: &'t [&'t str],
    interactions: Vec<Value>,
    side: Side,
}

impl Reader<'_> {
    /// Reads from a line on; returns the next one.
    fn line(&mut self, at: usize) -> usize {
        let line = self.lines[at];
        let key_line = line.trim_start().trim_start_matches("- ");
        if line.trim_start().starts_with("- request:") || self.is_of_go(at) {
            self.interactions.push(json!({"request": {}, "response": {}}));
        }
        let Some((key, value)) = key_line.split_once(':') else { return at + 1 };
        match key {
            "request" if value.trim().is_empty() => self.side = Side::Request,
            "response" if value.trim().is_empty() => self.side = Side::Response,
            "uri" | "url" if self.side == Side::Request => {
                self.set("url", Value::from(value.trim().trim_matches(['\'', '"'])))
            }
            "recorded_at" => self.set_beside("recorded_at", Value::from(value.trim())),
            // `body` holds the text, or a `string` or `body_json` below it.
            "body" | "string" if self.side != Side::Neither && !value.trim().is_empty() => {
                let (text, next) = self.scalar(at, line.len() - line.trim_start().len(), value.trim());
                if let Some(text) = text {
                    self.set("body", Value::String(text));
                }
                return next;
            }
            _ => {}
        }
        at + 1
    }

    /// `go-vcr` begins an interaction with its number.
    fn is_of_go(&self, at: usize) -> bool {
        let is_numbered = self.lines[at].trim_start().starts_with("- id:");
        is_numbered && self.lines[at + 1..].iter().take(2).any(|line| line.trim() == "request:")
    }

    fn set(&mut self, name: &str, value: Value) {
        let side = if self.side == Side::Response { "response" } else { "request" };
        if let Some(last) = self.interactions.last_mut() {
            last[side][name] = value;
        }
    }

    fn set_beside(&mut self, name: &str, value: Value) {
        if let Some(last) = self.interactions.last_mut() {
            last[name] = value;
        }
    }

    /// Reads a scalar that begins behind a key; returns it and the line after it.
    fn scalar(&self, at: usize, indent: usize, value: &str) -> (Option<String>, usize) {
        match value.as_bytes()[0] {
            b'\'' => self.quoted(at, value, '\''),
            b'"' => self.quoted(at, value, '"'),
            b'|' | b'>' => self.block(at, indent, value.starts_with('>')),
            b'!' | b'&' | b'*' | b'[' => (None, at + 1),
            _ => self.bare(at, indent, value),
        }
    }

    /// A scalar in quotes: lines are folded to spaces, an empty one is a line end.
    fn quoted(&self, at: usize, value: &str, quote: char) -> (Option<String>, usize) {
        let mut raw = value[1..].to_owned();
        let mut next = at + 1;
        while closing(&raw, quote).is_none() {
            let Some(line) = self.lines.get(next) else { return (None, next) };
            fold(&mut raw, line.trim(), quote == '"');
            next += 1;
        }
        let inner = &raw[..closing(&raw, quote).unwrap_or(raw.len())];
        let text = match quote {
            '\'' => Some(inner.replace("''", "'")),
            _ => unescaped(inner),
        };
        (text, next)
    }

    fn block(&self, at: usize, indent: usize, is_folded: bool) -> (Option<String>, usize) {
        let mut next = at + 1;
        let mut lines = Vec::new();
        let own = self.lines.get(next).map_or(0, |line| line.len() - line.trim_start().len());
        while let Some(line) = self.lines.get(next) {
            let here = line.len() - line.trim_start().len();
            if !line.trim().is_empty() && here <= indent {
                break;
            }
            lines.push(line.get(own.min(line.len())..).unwrap_or_default());
            next += 1;
        }
        (Some(lines.join(if is_folded { " " } else { "\n" })), next)
    }

    /// A scalar without quotes goes on in lines that stand further in.
    fn bare(&self, at: usize, indent: usize, value: &str) -> (Option<String>, usize) {
        let mut text = value.to_owned();
        let mut next = at + 1;
        while let Some(line) = self.lines.get(next) {
            if line.trim().is_empty() || line.len() - line.trim_start().len() <= indent {
                break;
            }
            fold(&mut text, line.trim(), false);
            next += 1;
        }
        (Some(text).filter(|text| text != "null"), next)
    }
}

fn fold(text: &mut String, line: &str, has_escapes: bool) {
    if has_escapes && text.ends_with('\\') && !text.ends_with("\\\\") {
        text.pop();
        text.push_str(line.strip_prefix('\\').filter(|rest| rest.starts_with(' ')).unwrap_or(line));
    } else if line.is_empty() {
        text.push('\n');
    } else {
        if !text.ends_with('\n') {
            text.push(' ');
        }
        text.push_str(line);
    }
}

/// Returns the place of the quote that ends a scalar.
fn closing(text: &str, quote: char) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match (bytes[at], quote) {
            (b'\\', '"') => at += 1,
            (b'\'', '\'') if bytes.get(at + 1) == Some(&b'\'') => at += 1,
            (b'\'', '\'') | (b'"', '"') => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

/// Resolves the escapes of a scalar in double quotes, of which JSON has most.
fn unescaped(text: &str) -> Option<String> {
    let mut json = String::with_capacity(text.len() + 2);
    json.push('"');
    let mut signs = text.chars();
    while let Some(sign) = signs.next() {
        match (sign, sign == '\\') {
            (_, true) => match signs.next()? {
                ' ' => json.push(' '),
                'x' => {
                    json.push_str("\\u00");
                    json.extend(signs.by_ref().take(2));
                }
                'U' => {
                    let hex: String = signs.by_ref().take(8).collect();
                    json.push(char::from_u32(u32::from_str_radix(&hex, 16).ok()?)?);
                }
                'e' => json.push_str("\\u001b"),
                '0' => json.push_str("\\u0000"),
                other => {
                    json.push('\\');
                    json.push(other);
                }
            },
            ('\n', false) => json.push_str("\\n"),
            ('\t', false) => json.push_str("\\t"),
            (other, false) => json.push(other),
        }
    }
    json.push('"');
    serde_json::from_str(&json).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_of_cassettes_are_read() {
        let text = "interactions:\n- request:\n    body: '{\"model\": \"m\", \"messages\": [{\"role\": \"user\",\n      \"content\": \"it''s\"}]}'\n\
            \x20   headers:\n      accept:\n      - application/json\n    method: POST\n    uri: https://api.openai.com/v1/chat/completions\n  \
            response:\n    body:\n      string: \"{\\\"usage\\\": {\\\"prompt_tokens\\\"\\\n        : 5}}\"\n    status:\n      code: 200\n\
            - request:\n    body: |-\n      {\"a\": 1,\n       \"b\": 2}\n    uri: x\n  response:\n    body: null\nversion: 1\n";
        let found = document(text).expect("a cassette");
        let body = |at: usize, side: &str| found["interactions"][at][side]["body"].as_str().map(str::to_owned);
        assert_eq!(
            body(0, "request").as_deref(),
            Some(r#"{"model": "m", "messages": [{"role": "user", "content": "it's"}]}"#)
        );
        assert_eq!(body(0, "response").as_deref(), Some(r#"{"usage": {"prompt_tokens": 5}}"#));
        assert_eq!(body(1, "request").as_deref(), Some("{\"a\": 1,\n \"b\": 2}"));
        assert_eq!(body(1, "response"), None);
        assert_eq!(found["interactions"][0]["request"]["url"], "https://api.openai.com/v1/chat/completions");
        assert!(document("a: b\n").is_none());
    }
}
