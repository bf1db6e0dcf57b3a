//! `DEBUG` logs of the OpenAI and Anthropic Python SDKs:
//! `Request options: {'method': 'post', 'json_data': {…}}`.
//!
//! Source: `openai/openai-python`, `src/openai/_base_client.py`
//! (`log.debug("Request options: %s", …)`). The Anthropic SDK writes the same.

use serde_json::{Map, Number, Value};

/// The maximum nesting depth of values.
const DEEPEST: usize = 100;

/// Returns the request options on a line as JSON; `None` if there are none.
pub(super) fn options(line: &str) -> Option<Value> {
    let (_, options) = line.split_once("Request options: {")?;
    let text = format!("{{{options}");
    let mut reader = Reader { rest: &text };
    reader.value(DEEPEST)
}

/// A parser for Python literals.
struct Reader<'t> {
    rest: &'t str,
}

impl Reader<'_> {
    fn value(&mut self, depth: usize) -> Option<Value> {
        let depth = depth.checked_sub(1)?;
        self.blank();
        match self.rest.chars().next()? {
            '{' => self.object(depth),
            '[' => self.list(depth, ']'),
            '(' => self.list(depth, ')'),
            '\'' | '"' => self.string().map(Value::String),
            _ => self.word(),
        }
    }

    fn blank(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, sign: char) -> bool {
        self.blank();
        let eaten = self.rest.strip_prefix(sign);
        self.rest = eaten.unwrap_or(self.rest);
        eaten.is_some()
    }

    fn object(&mut self, depth: usize) -> Option<Value> {
        let mut members = Map::new();
        self.eat('{');
        while !self.eat('}') {
            self.blank();
            let Value::String(name) = self.value(depth)? else {
                return None;
            };
            if !self.eat(':') {
                return None;
            }
            members.insert(name, self.value(depth)?);
            self.eat(',');
        }
        Some(Value::Object(members))
    }

    fn list(&mut self, depth: usize, end: char) -> Option<Value> {
        let mut elements = Vec::new();
        self.rest = &self.rest[1..];
        while !self.eat(end) {
            elements.push(self.value(depth)?);
            self.eat(',');
        }
        Some(Value::Array(elements))
    }

    fn string(&mut self) -> Option<String> {
        let quote = self.rest.chars().next()?;
        let mut text = String::new();
        let mut signs = self.rest.char_indices().skip(1);
        while let Some((at, sign)) = signs.next() {
            if sign == quote {
                self.rest = &self.rest[at + 1..];
                return Some(text);
            }
            if sign != '\\' {
                text.push(sign);
                continue;
            }
            let (_, escaped) = signs.next()?;
            let digits = match escaped {
                'n' => {
                    text.push('\n');
                    continue;
                }
                't' => {
                    text.push('\t');
                    continue;
                }
                'r' => {
                    text.push('\r');
                    continue;
                }
                'x' => 2,
                'u' => 4,
                'U' => 8,
                other => {
                    text.push(other);
                    continue;
                }
            };
            let hex: String = signs
                .by_ref()
                .take(digits)
                .map(|(_, digit)| digit)
                .collect();
            text.push(
                char::from_u32(u32::from_str_radix(&hex, 16).ok()?)
                    .unwrap_or(char::REPLACEMENT_CHARACTER),
            );
        }
        None
    }

    /// Parses a number, a constant, or the representation of an object that is not a literal, such
    /// as `NOT_GIVEN` or `<Timeout …>`.
    fn word(&mut self) -> Option<Value> {
        let mut depth = 0_usize;
        let end = self.rest.char_indices().find(|(_, sign)| {
            depth += usize::from(matches!(sign, '(' | '<' | '[' | '{'));
            let is_end = depth == 0 && matches!(sign, ',' | '}' | ']' | ')' | ':');
            depth -= usize::from(depth > 0 && matches!(sign, ')' | '>' | ']' | '}'));
            is_end
        });
        let (word, rest) = self
            .rest
            .split_at(end.map_or(self.rest.len(), |(at, _)| at));
        self.rest = rest;
        let word = word.trim();
        if word.is_empty() {
            return None;
        }
        Some(match word {
            "None" | "NOT_GIVEN" => Value::Null,
            "True" => Value::Bool(true),
            "False" => Value::Bool(false),
            _ => match (word.parse::<i64>(), word.parse::<f64>()) {
                (Ok(whole), _) => whole.into(),
                (_, Ok(number)) => Number::from_f64(number).map_or(Value::Null, Value::Number),
                _ => Value::String(word.to_owned()),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn options_of_a_log_become_json() {
        let line = "DEBUG:openai._base_client:Request options: {'method': 'post', 'url': '/chat/completions', 'timeout': \
            Timeout(connect=5.0, read=600), 'files': None, 'json_data': {'messages': [{'role': 'user', 'content': \"It's \\\"é\\\" \
            \\x41\\n\"}], 'stream': True, 'temperature': 0.5, 'n': 1, 'stop': ('a',)}}";
        let found = options(line).expect("a literal");
        assert_eq!(
            found["json_data"],
            json!({
                "messages": [{"role": "user", "content": "It's \"é\" A\n"}], "stream": true, "temperature": 0.5, "n": 1, "stop": ["a"],
            })
        );
        assert_eq!(found["url"], "/chat/completions");
        for broken in [
            "Request options: {'a': ",
            "Request options: {'a",
            "Request options: {{{{",
            "Request options: {'a': }",
        ] {
            assert_eq!(options(broken), None, "{broken}");
        }
        assert_eq!(
            options(&format!("Request options: {{'a': {}", "[".repeat(5_000))),
            None
        );
    }
}
