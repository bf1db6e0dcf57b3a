//! VCR cassettes in YAML, as written by `vcrpy`, `pytest-recording`, Ruby's `vcr`, and `go-vcr`.
//!
//! Only the parts of YAML that these programs write are supported: mappings and lists in blocks or
//! in flow style, and plain, quoted, and block scalars. Anything else is read as null. Sources:
//! `kevin1024/vcrpy`, `vcr/serializers/yamlserializer.py`; `vcr/vcr`,
//! `lib/vcr/cassette/serializers.rb`; `dnaeon/go-vcr`; `pydantic/pydantic-ai`,
//! `tests/json_body_serializer.py` (`parsed_body`).

use serde_json::{Map, Value, json};

use super::encoded::Decoder;

/// The maximum nesting depth of values.
const DEEPEST: usize = 64;

/// Returns the interactions in a cassette as JSON; `None` if the text is not a cassette.
pub(crate) fn document(text: &str) -> Option<Value> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let begins = text.lines().any(|line| is_beginning(line.as_bytes()));
    if !begins {
        return None;
    }
    let mut document = Yaml::of(text).node(0, DEEPEST);
    let found = ["interactions", "http_interactions"]
        .into_iter()
        .find_map(|name| document.get_mut(name).map(Value::take));
    let Some(Value::Array(interactions)) = found else {
        return None;
    };
    Some(json!({"interactions": interactions}))
}

/// Returns `true` if a line begins the interactions of a cassette.
pub(crate) fn is_beginning(line: &[u8]) -> bool {
    let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
    let line = line.strip_prefix(b"http_").unwrap_or(line);
    line.strip_prefix(b"interactions:")
        .map(<[u8]>::trim_ascii)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"["))
}

/// Decodes the bodies of an interaction, and renames its members to the names used in logs.
pub(crate) fn settle(interaction: &mut Value, decoder: &mut Decoder) {
    decoder.decode_exchange(interaction);
    for side in ["request", "response"] {
        let Some(Value::Object(members)) = interaction.get_mut(side) else {
            continue;
        };
        let below = members
            .get("body")
            .and_then(|body| body.get("string").or(body.get("json")))
            .cloned();
        if let Some(body) = members.remove("parsed_body").or(below) {
            members.insert("body".to_owned(), body);
        }
        if let Some(url) = members.remove("uri") {
            members.insert("url".to_owned(), url);
        }
    }
}

/// A line without its indentation.
#[derive(Debug, Clone, Copy)]
struct Line<'t> {
    indent: usize,
    text: &'t str,
}

/// A YAML parser that works line by line.
struct Yaml<'t> {
    lines: Vec<Line<'t>>,
    at: usize,
    decoder: Decoder,
}

impl<'t> Yaml<'t> {
    fn of(text: &'t str) -> Yaml<'t> {
        let mut lines: Vec<Line<'t>> = Vec::new();
        for line in text.lines().filter(|line| *line != "---") {
            let text = line.trim_start_matches(' ');
            lines.push(Line {
                indent: line.len() - text.len(),
                text: text.trim_end_matches('\r'),
            });
        }
        Yaml {
            lines,
            at: 0,
            decoder: Decoder::default(),
        }
    }

    /// Returns the next line that is neither blank nor a comment.
    fn line(&mut self) -> Option<Line<'t>> {
        while self
            .lines
            .get(self.at)
            .is_some_and(|line| line.text.trim().is_empty() || line.text.starts_with('#'))
        {
            self.at += 1;
        }
        self.lines.get(self.at).copied()
    }

    /// Parses the value that begins at this indentation or a deeper one.
    fn node(&mut self, indent: usize, depth: usize) -> Value {
        let Some(line) = self
            .line()
            .filter(|line| line.indent >= indent && depth > 0)
        else {
            return Value::Null;
        };
        if is_element(line.text) {
            return self.list(line.indent, depth - 1);
        }
        match key(line.text) {
            Some(_) => self.mapping(line.indent, depth - 1),
            None => self.scalar(line.text, indent.saturating_sub(1)),
        }
    }

    fn list(&mut self, indent: usize, depth: usize) -> Value {
        let mut elements = Vec::new();
        while let Some(line) = self
            .line()
            .filter(|line| line.indent == indent && is_element(line.text))
        {
            let rest = line.text[1..].trim_start_matches(' ');
            if rest.is_empty() {
                self.at += 1;
            } else {
                self.lines[self.at] = Line {
                    indent: indent + line.text.len() - rest.len(),
                    text: rest,
                };
            }
            elements.push(self.node(indent + 1, depth));
            // Skip lines that cannot be parsed.
            while self.line().is_some_and(|line| line.indent > indent) {
                self.at += 1;
            }
        }
        Value::Array(elements)
    }

    fn mapping(&mut self, indent: usize, depth: usize) -> Value {
        let mut members = Map::new();
        while let Some(line) = self
            .line()
            .filter(|line| line.indent == indent && !is_element(line.text))
        {
            let Some((name, rest)) = key(line.text) else {
                break;
            };
            let value = if rest.is_empty() {
                self.at += 1;
                match self.line() {
                    Some(next) if next.indent == indent && is_element(next.text) => {
                        self.list(indent, depth)
                    }
                    _ => self.node(indent + 1, depth),
                }
            } else {
                self.scalar(rest, indent)
            };
            members.insert(name.to_owned(), value);
            while self.line().is_some_and(|line| line.indent > indent) {
                self.at += 1;
            }
        }
        Value::Object(members)
    }

    /// Parses a scalar that begins on this line. Its further lines are indented more deeply than
    /// `indent`.
    fn scalar(&mut self, text: &str, indent: usize) -> Value {
        self.at += 1;
        match text.as_bytes().first() {
            Some(b'\'') => self.quoted(text, '\''),
            Some(b'"') => self.quoted(text, '"'),
            Some(b'|' | b'>') => self.block(text, indent),
            Some(b'{' | b'[') => self.flow(text, indent),
            Some(b'!') => self.binary(text, indent),
            Some(b'&' | b'*') => Value::Null,
            _ => self.plain(text, indent),
        }
    }

    /// Parses a quoted scalar. Line breaks become spaces, and an empty line becomes a line break.
    fn quoted(&mut self, text: &str, quote: char) -> Value {
        let mut raw = text[1..].to_owned();
        let mut searched = 0;
        loop {
            if let Some(end) = closing(&raw[searched..], quote) {
                return value_of_quoted(&raw[..searched + end], quote);
            }
            let Some(line) = self.lines.get(self.at) else {
                return Value::Null;
            };
            // No escape sequence of two characters extends over a line break.
            searched = raw.len() - usize::from(quote == '"' && is_continued(&raw));
            fold(&mut raw, line.text.trim(), quote == '"');
            self.at += 1;
        }
    }

    /// Parses a block scalar (`|` or `>`). With `-`, its final line break is removed.
    fn block(&mut self, header: &str, indent: usize) -> Value {
        let digit = header
            .chars()
            .find_map(|sign| sign.to_digit(10))
            .and_then(|digit| usize::try_from(digit).ok());
        let first = self.lines[self.at.min(self.lines.len())..]
            .iter()
            .find(|line| !line.text.is_empty());
        let own = digit.map_or(first.map_or(0, |line| line.indent), |digit| indent + digit);
        let mut text = String::new();
        while let Some(line) = self
            .lines
            .get(self.at)
            .filter(|line| line.text.is_empty() || line.indent > indent)
        {
            if !text.is_empty() || line.indent > 0 {
                text.push_str(&" ".repeat(line.indent.saturating_sub(own)));
            }
            text.push_str(line.text);
            text.push('\n');
            self.at += 1;
        }
        let kept = text.trim_end_matches('\n');
        let end = if header.contains('-') { "" } else { "\n" };
        let is_folded = header.starts_with('>');
        Value::String(
            if is_folded {
                kept.replace('\n', " ")
            } else {
                kept.to_owned()
            } + end,
        )
    }

    /// Parses a scalar with a tag: the text that `!!binary` encodes; null for other tags.
    fn binary(&mut self, text: &str, indent: usize) -> Value {
        let Some(header) = text.strip_prefix("!!binary ").map(str::trim_start) else {
            return Value::Null;
        };
        let encoded = if header.starts_with('|') {
            self.block(header, indent)
        } else {
            self.plain(header, indent)
        };
        encoded
            .as_str()
            .and_then(|text| self.decoder.text(text))
            .map_or(Value::Null, Value::String)
    }

    /// Parses a mapping or a list in flow style, which may continue on lines with deeper
    /// indentation, or with a closing bracket.
    fn flow(&mut self, text: &str, indent: usize) -> Value {
        let mut whole = text.to_owned();
        while let Some(line) = self.lines.get(self.at).filter(|line| {
            line.text.is_empty() || line.indent > indent || line.text.starts_with([']', '}'])
        }) {
            whole.push('\n');
            whole.push_str(line.text);
            self.at += 1;
        }
        let mut flow = Flow {
            text: &whole,
            at: 0,
        };
        flow.value(DEEPEST).unwrap_or_default()
    }

    /// Parses a plain scalar, which continues on lines with deeper indentation.
    fn plain(&mut self, text: &str, indent: usize) -> Value {
        let mut whole = text.to_owned();
        while let Some(line) = self
            .lines
            .get(self.at)
            .filter(|line| !line.text.is_empty() && line.indent > indent)
        {
            fold(&mut whole, line.text.trim(), false);
            self.at += 1;
        }
        typed(whole.trim())
    }
}

/// Returns the value of a plain scalar.
fn typed(text: &str) -> Value {
    match text {
        "null" | "~" | "" => Value::Null,
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        text => serde_json::from_str(text)
            .ok()
            .filter(Value::is_number)
            .unwrap_or_else(|| Value::from(text)),
    }
}

/// A parser of mappings and lists in flow style, such as `{a: [1, 'b']}`.
struct Flow<'t> {
    text: &'t str,
    at: usize,
}

impl Flow<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// Skips whitespace, and returns the next byte.
    fn peek(&mut self) -> Option<u8> {
        self.at = self.text.len() - self.rest().trim_start().len();
        self.text.as_bytes().get(self.at).copied()
    }

    /// Parses a value; `None` if it is broken or too deep.
    fn value(&mut self, depth: usize) -> Option<Value> {
        let depth = depth.checked_sub(1)?;
        match self.peek()? {
            b'{' => self.mapping(depth),
            b'[' => self.list(depth),
            b'!' | b'&' | b'*' => None,
            _ => self.scalar(),
        }
    }

    fn mapping(&mut self, depth: usize) -> Option<Value> {
        self.at += 1;
        let mut members = Map::new();
        loop {
            match self.peek()? {
                b'}' => {
                    self.at += 1;
                    return Some(Value::Object(members));
                }
                b',' => self.at += 1,
                _ => {
                    let name = match self.scalar()? {
                        Value::String(name) => name,
                        other => other.to_string(),
                    };
                    let mut value = Value::Null;
                    if self.peek()? == b':' {
                        self.at += 1;
                        if !matches!(self.peek()?, b',' | b'}') {
                            value = self.value(depth)?;
                        }
                    }
                    if !matches!(self.peek()?, b',' | b'}') {
                        return None;
                    }
                    members.insert(name, value);
                }
            }
        }
    }

    fn list(&mut self, depth: usize) -> Option<Value> {
        self.at += 1;
        let mut elements = Vec::new();
        loop {
            match self.peek()? {
                b']' => {
                    self.at += 1;
                    return Some(Value::Array(elements));
                }
                b',' => self.at += 1,
                _ => {
                    elements.push(self.value(depth)?);
                    if !matches!(self.peek()?, b',' | b']') {
                        return None;
                    }
                }
            }
        }
    }

    /// Parses a quoted or plain scalar, which may be a key.
    fn scalar(&mut self) -> Option<Value> {
        let rest = self.rest();
        if let Some(quote) = rest
            .chars()
            .next()
            .filter(|sign| matches!(sign, '\'' | '"'))
        {
            let end = closing(&rest[1..], quote)? + 1;
            let scalar = quoted(&rest[1..=end], quote);
            self.at += end + 1;
            return Some(scalar);
        }
        let bytes = rest.as_bytes();
        let end = (0..bytes.len()).find(|at| ends_plain(&bytes[*at..]))?;
        let words: Vec<&str> = rest[..end].split_whitespace().collect();
        let scalar = typed(&words.join(" "));
        self.at += end;
        (end > 0).then_some(scalar)
    }
}

/// Returns `true` if a plain scalar in flow style ends before this text.
fn ends_plain(text: &[u8]) -> bool {
    match text {
        [b',' | b'[' | b']' | b'{' | b'}', ..] | [b':'] => true,
        [b':', next, ..] => b" \n,[]{}".contains(next),
        _ => false,
    }
}

/// Returns the value of a quoted scalar, given its text with its line breaks and the final quote.
fn quoted(text: &str, quote: char) -> Value {
    let mut lines = text.lines();
    let mut raw = lines.next().unwrap_or_default().to_owned();
    lines.for_each(|line| fold(&mut raw, line.trim(), quote == '"'));
    value_of_quoted(raw.strip_suffix(quote).unwrap_or_default(), quote)
}

fn value_of_quoted(text: &str, quote: char) -> Value {
    match quote {
        '\'' => Value::String(text.replace("''", "'")),
        _ => unescaped(text).map_or(Value::Null, Value::String),
    }
}

fn is_element(text: &str) -> bool {
    text == "-" || text.starts_with("- ")
}

/// Returns the key on a line of a mapping, and the text after it; `None` if the line contains no
/// key.
fn key(text: &str) -> Option<(&str, &str)> {
    if let Some(quote) = text
        .chars()
        .next()
        .filter(|sign| matches!(sign, '\'' | '"'))
    {
        let end = text[1..].find(quote)? + 1;
        let rest = text[end + 1..].strip_prefix(':')?;
        return (rest.is_empty() || rest.starts_with(' ')).then(|| (&text[1..end], rest.trim()));
    }
    let (name, rest) = match text.split_once(": ") {
        Some(parts) => parts,
        None => (text.trim_end().strip_suffix(':')?, ""),
    };
    let is_name = !name.is_empty() && !name.contains(['"', '\'', '{', '[']) && !name.contains(' ');
    is_name.then(|| (name, rest.trim()))
}

/// Returns `true` if a line of a double-quoted scalar ends with a backslash, which joins it with the
/// next line.
fn is_continued(text: &str) -> bool {
    text.ends_with('\\') && !text.ends_with("\\\\")
}

fn fold(text: &mut String, line: &str, has_escapes: bool) {
    if has_escapes && is_continued(text) {
        text.pop();
        text.push_str(
            line.strip_prefix('\\')
                .filter(|rest| rest.starts_with(' '))
                .unwrap_or(line),
        );
    } else if line.is_empty() {
        text.push('\n');
    } else {
        if !text.ends_with('\n') {
            text.push(' ');
        }
        text.push_str(line);
    }
}

/// Returns the position of the quote that ends a scalar; `None` if there is none.
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

/// Resolves the escapes in a double-quoted scalar, most of which are the same as in JSON.
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

    fn settled(text: &str) -> Value {
        let mut document = document(text).expect("a cassette");
        let interactions = document["interactions"].as_array_mut().expect("a list");
        let mut decoder = Decoder::default();
        interactions
            .iter_mut()
            .for_each(|interaction| settle(interaction, &mut decoder));
        document
    }

    #[test]
    fn bodies_of_cassettes_are_read() {
        let text = "interactions:\n- request:\n    body: '{\"model\": \"m\", \"messages\": [{\"role\": \"user\",\n      \"content\": \"it''s\"}]}'\n\
            \x20   headers:\n      accept:\n      - application/json\n    method: POST\n    uri: https://api.openai.com/v1/chat/completions\n  \
            response:\n    body:\n      string: \"{\\\"usage\\\": {\\\"prompt_tokens\\\"\\\n        : 5}}\"\n    status:\n      code: 200\n\
            - request:\n    body: |-\n      {\"a\": 1,\n       \"b\": 2}\n    uri: x\n  response:\n    body: null\nversion: 1\n";
        let found = settled(text);
        let body = |at: usize, side: &str| {
            found["interactions"][at][side]["body"]
                .as_str()
                .map(str::to_owned)
        };
        assert_eq!(
            body(0, "request").as_deref(),
            Some(r#"{"model": "m", "messages": [{"role": "user", "content": "it's"}]}"#)
        );
        assert_eq!(
            body(0, "response").as_deref(),
            Some(r#"{"usage": {"prompt_tokens": 5}}"#)
        );
        assert_eq!(
            body(1, "request").as_deref(),
            Some("{\"a\": 1,\n \"b\": 2}")
        );
        assert_eq!(body(1, "response"), None);
        assert_eq!(
            found["interactions"][0]["request"]["url"],
            "https://api.openai.com/v1/chat/completions"
        );
        assert!(document("a: b\n").is_none());
    }

    #[test]
    fn bodies_that_are_taken_apart_are_read() {
        let text = "interactions:\n- request:\n    parsed_body:\n      max_tokens: 100\n      stream: false\n      messages:\n      - content:\n        \
            - text: 'Briefly: why?'\n          type: text\n        - text: |-\n            a: b\n\n              c\n          type: text\n        role: user\n      \
            - content: plain text\n          goes on\n        role: assistant\n      system: []\n    uri: https://api.anthropic.com/v1/messages\n  response:\n    \
            parsed_body:\n      usage: {\"input_tokens\": 5}\nversion: 1\n";
        let found = settled(text);
        assert_eq!(
            found["interactions"][0]["request"]["body"],
            json!({
                "max_tokens": 100, "stream": false, "system": [], "messages": [
                    {"content": [{"text": "Briefly: why?", "type": "text"}, {"text": "a: b\n\n  c", "type": "text"}], "role": "user"},
                    {"content": "plain text goes on", "role": "assistant"},
                ],
            })
        );
        assert_eq!(
            found["interactions"][0]["response"]["body"]["usage"]["input_tokens"],
            5
        );
        let text = "interactions:\n- request: {method: POST, uri: 'https://api.openai.com/v1/responses',\n    parsed_body: {model: gpt-5, n: 1,\n      \
            input: [{role: user, content: 'it''s\n\n        a'}, {role: user, \"content\":\"b\", x: }], stream: true}}\n  response: {status: {code: 200}}\n";
        let found = settled(text);
        let interaction = &found["interactions"][0];
        assert_eq!(
            interaction["request"],
            json!({"method": "POST", "url": "https://api.openai.com/v1/responses", "body": {
                "model": "gpt-5", "n": 1, "stream": true,
                "input": [{"role": "user", "content": "it's\na"}, {"role": "user", "content": "b", "x": null}],
            }})
        );
        assert_eq!(interaction["response"]["status"]["code"], 200);
        let lines: Vec<String> = (0..500)
            .map(|at| format!("{}a:\n", " ".repeat(at)))
            .collect();
        let deep = format!("interactions:\n{}", lines.concat());
        assert!(document(&deep).is_none());
        for broken in [
            "interactions:\n- a: 'x",
            "interactions:\n- a: |",
            "interactions:\n- ",
            "interactions:\n-- a\n- b: \"\\",
            "interactions:\n  x\n- é: é",
            "interactions: [{a: b",
            "interactions:\n- a: {b: 'é",
            "interactions:\n- {é: [é, }",
        ] {
            document(broken);
        }
    }
}
