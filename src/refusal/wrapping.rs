//! Text around a message: the words that gateways and clients put before another server's message,
//! and the advice after it.

use std::borrow::Cow;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use regex::Regex;

/// Words before a message, such as those about a failed request, a returned error, or a status.
/// Words that show what failed, such as `authentication failed`, belong to the message itself.
static BEFORE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?isx)
        (?:
          (?-u:\b) (?: api | call | chat | completion | generation | inference | invocation | llm | model | operation | provider
              | request | run | stream | streaming | upstream ) \s+ failed (?-u:\b)
          | (?-u:\b) failed \s+ to \s+ (?: call | complete | create | generate | get | invoke | send | start )
              \s+ (?: (?: a | an | the | chat | streaming | upstream ) \s+ )*
              (?: answer | completion | content | llm | message | model | request | response | stream | text )s? (?-u:\b) [^:\n]{0,80}?
          | (?-u:\b) (?: returned | sent | received | got ) \s+ (?: (?: an | the | following ) \s+ )* (?: error | exception )s?
          | (?-u:\b) error \s+ from \s+ [^:\n]{1,60}?
          | (?-u:\b) when \s+ calling \s+ the \s+ \w+ \s+ operation
        )
        (?: \s* (?: , | \( | with (?-u:\b) | due \s+ to ) )? \s* (?: http \s* )? (?: status \s* )? (?: code \s* )? :? \s* (?: [45]\d\d (?-u:\b) )? \)?
        (?: \s* : \s+ | \s+ - \s+ | \s* $ )
        | (?-u:\b) (?: with | returned ) \s+ (?: http \s+ )? status (?: \s+ code )? \s* :? \s* [45]\d\d (?-u:\b) [\s:,-]*",
    )
});

/// A sentence that refers to a web page.
static ADVICE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?isx)
        (?-u:\b) (?: (?: you \s+ can \s+ )? (?: find | learn | read ) \s+ more | for \s+ (?: more \s+ | further \s+ )? (?: details | help | information )
          | more \s+ (?: details | information ) | (?: please \s+ )? (?: see | visit | consult | refer \s+ to ) )
        (?-u:\b) [^.\n]*? https?://\S+",
    )
});

/// A tool name. It may be any word, and does not show what is wrong.
static TOOL: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"(?i)(?-u:\b)(tool|function)s?\s+(?:(?:named|called|with\s+name)\s+)?['"`][^'"`]*['"`]"#,
    )
});

/// A status in words, which does not show what is wrong: the status about sizes with its number, or
/// the status of Google's API as its Go SDK prints it.
static NAMED_STATUS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?ix)
        (?-u:\b) 413 \s* [-:(]? \s* (?: (?: payload | content ) \s+ too \s+ large | request \s+ entity \s+ too \s+ large ) (?-u:\b)
        | (?-u:\b) status: \s* [A-Z_]+ , \s* details: \s* \[ \s* \]",
    )
});

/// A client's message about an answer that it cannot read, and the first words of its parser.
static UNREADABLE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?ix)
        (?P<said>
          (?-u:\b) (?: failed | unable | could \s+ not | couldn't | cannot | can't | error | failure ) \s+ (?: (?: to | while | when | in ) \s+ )?
          (?: deserial\w+ | pars\w+ | decod\w+ | unmarshal\w* | read\w* | process\w* ) \s+
          (?: (?: of | the | an? | api | body | chat | completions? | error | from | http | json | provider(?:'s)? | server | stream(?:ing)? | upstream ) \s+ )*
          (?: answer | chunk | event | reply | response )s? (?-u:\b) (?: \s+ (?: body | data | json | as \s+ json | from \s+ \S+ ) )*?
        )
        \s* [:;(-]+ \s* (?: \w+ (?: \s+ \w+ ){0,2} : \s* )?
        (?: cannot \s+ unmarshal | control \s+ character | data \s+ did \s+ not \s+ match | duplicate \s+ field | eof \s | expect(?:ed|ing) \s
          | field \s+ required | invalid \s+ (?: character | json | length | type | value ) | json \s* (?: decode \s* )? error | json: | key \s+ must
          | missing \s+ field | not \s+ (?: a \s+ )? valid \s+ json | trailing \s | unexpected \s+ (?: character | end | eof | token ) | unexpected \s+ non-whitespace
          | unknown \s+ (?: field | variant ) | unterminated | \d+ \s+ validation \s+ errors? )",
    )
});

/// The end of a parser's message: the end of the line or string, or the beginning of the answer.
static PARSER_ENDS: LazyLock<AhoCorasick> = LazyLock::new(|| {
    AhoCorasick::new(["\n", "{", "\",", "\"}", "',", "'}", "\\\","])
        .expect("an automaton for a few words is small")
});

/// Removes parsers' messages about an answer that a client cannot read. They describe the answer,
/// but sound like the rejection of a request.
pub(super) fn without_parsers(text: &str) -> Cow<'_, str> {
    let (mut rest, mut kept) = (text, String::new());
    while let Some((whole, said)) = UNREADABLE
        .captures(rest)
        .and_then(|found| found.get(0).zip(found.name("said")))
    {
        let end = whole.end();
        kept.push_str(&rest[..said.end()]);
        rest = &rest[end..];
        let end = PARSER_ENDS.find(rest);
        rest = &rest[end.map_or(rest.len(), |end| end.start())..];
    }
    if kept.is_empty() {
        return Cow::Borrowed(text);
    }
    kept.push_str(rest);
    Cow::Owned(kept)
}

/// The time at the beginning of a log line, or the mark before a line that R printed, with the
/// spaces after it.
static LINE_START: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?m)^(?:\#>|[\[(]?\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[ ]?[+-]\d\d:?\d\d)?[\])]?)[ \t]+",
    )
});

/// Removes the times and marks at the beginnings of lines. In output that wraps a message, they are
/// inside the message.
pub(super) fn without_line_starts(text: &str) -> Cow<'_, str> {
    LINE_START.replace_all(text, "")
}

/// The lines of a JavaScript stack trace: `    at name (file:///a.js:1:2)`.
static FRAMES: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?m)(?:^[ \t]+at [^\n]*:\d+:\d+\)?(?: \{)?[ \t]*(?:\n|\z))+"));

/// Replaces stack traces by a brace, at which the message before them ends.
pub(super) fn without_frames(text: &str) -> Cow<'_, str> {
    FRAMES.replace_all(text, "}\n")
}

/// An HTTP header, as a member of an object or as a line of `curl -v`, Python's `http.client` or
/// Ruby's Faraday.
static HEADER: LazyLock<Regex> = LazyLock::new(|| {
    const NAME: &str = "(?: accept | authorization | connection | cookie | date | host | server | user-agent | vary | via \
        | (?: accept | access-control | alt | anthropic | api | cache | cf | content | cross-origin | openai | permissions | proxy | referrer \
        | set | strict-transport | transfer | x ) -[a-z-]+ )";
    pattern(&format!(
        r#"(?imx)
        ["'] {NAME} ["'] \s* : \s* (?: "(?: [^"\\\n] | \\. )*" | '(?: [^'\\\n] | \\. )*' ) ,?
        | ^ (?: [<>*] | header: ) \x20 {NAME} : \x20 .* $
        | ^ (?: .* \x20 -- \x20 (?: request | response ) : \x20 )? {NAME} : \x20 " [^"\n]* " $
        | ^ send: \x20 b["'] .* $"#
    ))
});

/// Removes HTTP headers, which are not part of an answer's message and may contain a key.
pub(super) fn without_headers(text: &str) -> Cow<'_, str> {
    HEADER.replace_all(text, "")
}

/// A pydantic error about the constant that distinguishes the alternatives of a union, such as a
/// message's role. The error's location names the class of the alternative.
static ALTERNATIVE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"(?x)
        ["']type["'] \s* : \s* ["']literal_error["'] \s* , \s* ["']loc["'] \s* : \s* [\[(] [^\])]* ["'][A-Z]\w+["'] \s* , \s* ["'](?: role | type )["'] \s* \\? [\])]
        \s* , \s* ["']msg["'] \s* : \s* (?: "[^"]*" | '[^']*' )"#,
    )
});

/// The same error in an error's text: the location ends with the class and `role`.
static ALTERNATIVE_OF_TEXT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?m)^[ \t]*\S*\b[A-Z]\w+\.role\n[ \t]+.*\[type=(?:literal|value)_error, .*$")
});

/// Removes the errors for alternatives that the request was not meant to match, unless there are no
/// other errors.
pub(super) fn without_alternatives(text: &str) -> Cow<'_, str> {
    let rest = without(text, &ALTERNATIVE, &["'msg'", "\"msg\""]);
    match without(&rest, &ALTERNATIVE_OF_TEXT, &[" [type="]) {
        Cow::Owned(text) => Cow::Owned(text),
        Cow::Borrowed(_) => rest,
    }
}

/// Removes the errors that a pattern finds, unless no error with one of the marks is left.
fn without<'t>(text: &'t str, errors: &Regex, marks: &[&str]) -> Cow<'t, str> {
    let rest = errors.replace_all(text, "");
    match marks.iter().any(|mark| rest.contains(mark)) {
        true => rest,
        false => Cow::Borrowed(text),
    }
}

fn pattern(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is valid")
}

/// Returns the text after the last words that introduce a message; the whole text if there are
/// none.
pub(super) fn inner(message: &str) -> &str {
    let end = BEFORE
        .find_iter(message)
        .last()
        .map_or(0, |found| found.end());
    message[end..].trim()
}

/// Returns the words after a sentence, up to the end of the string that contains it. The text must
/// be plain, with one kind of quote.
pub(super) fn behind(rest: &str) -> &str {
    rest[..string_end(rest)]
        .trim_start_matches(|c: char| !c.is_alphanumeric() && c != '\'')
        .trim_end()
}

/// Returns the offset of the quote that ends the enclosing string: it closes no quoted word
/// of the text, and JSON continues after it.
fn string_end(text: &str) -> usize {
    let mut is_in_quotes = false;
    for (at, _) in text.match_indices('\'') {
        let (before, after) = (&text[..at], &text[at + 1..]);
        if is_in_quotes {
            is_in_quotes = false;
        } else if after.is_empty() || after.starts_with([',', '}', ']', ':']) {
            return at;
        } else {
            // An apostrophe does not open a quoted word.
            is_in_quotes = !before.ends_with(char::is_alphanumeric);
        }
    }
    text.len()
}

/// Returns a message without the names of statuses.
pub(super) fn without_status(message: &str) -> String {
    NAMED_STATUS.replace_all(message, " ").into_owned()
}

/// Removes the parts of a message that do not show what is wrong: sentences that refer to a web
/// page, status names, and tool names.
pub(super) fn telling(message: &str) -> String {
    let message = ADVICE.replace_all(message, " ");
    let message = without_status(&message);
    TOOL.replace_all(&message, "$1").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_trace_ends_a_message() {
        let trace = "Error: odd: x_1\n    at a (file:///b.mjs:1:2)\n    at async c.mjs:3:4 {\n  status: 400\n";
        assert_eq!(without_frames(trace), "Error: odd: x_1\n}\n  status: 400\n");
        assert_eq!(without_frames("meet at 10:30:00"), "meet at 10:30:00");
    }

    #[test]
    fn headers_and_other_alternatives_are_not_messages() {
        assert_eq!(
            without_headers(
                "{\"content-type\": \"a\", \"content\": \"b\", 'x-id': 'it\\'s', \"server\": 1}\n< date: c"
            ),
            "{ \"content\": \"b\",  \"server\": 1}\n"
        );
        assert_eq!(
            without_headers("> error: odd\n> Authorization: Bearer a\nsend: b'POST /'\nsend: it"),
            "> error: odd\n\n\nsend: it"
        );
        let one = "{'type': 'literal_error', 'loc': ['body', 'messages', 2, 'ToolMessage', 'role'], 'msg': 'Input should be tool'}";
        let other = "{'type': 'string_type', 'loc': ['body', 'a'], 'msg': 'Input should be a valid string'}";
        assert_eq!(without_alternatives(one), one);
        assert_eq!(
            without_alternatives(&format!("[{one}, {other}]")),
            format!("[{{}}, {other}]")
        );
        let one = "messages.0.UserMessage.role\n  Input should be 'user' [type=literal_error, input_value='a', input_type=str]\n";
        let other = "messages.0.content\n  Field required [type=missing, input_value={}, input_type=dict]\n";
        assert_eq!(without_alternatives(one), one);
        let log = format!("{one}{{\"msg\": \"failed\"}}");
        assert_eq!(without_alternatives(&log), log);
        assert_eq!(
            without_alternatives(&format!("{one}{other}")),
            format!("\n{other}")
        );
    }

    #[test]
    fn the_message_inside_is_found() {
        for text in [
            "request failed with status 400: the odd thing",
            "request failed with status 400\n\nthe odd thing",
            "inference request failed: failed to invoke model 'a/b-1' with streaming: request failed with status 400 the odd thing",
            "Failed to create stream: failed to generate stream from Odd: the odd thing",
            "The model returned the following errors: the odd thing",
            "An error occurred (ValidationException) when calling the ConverseStream operation: the odd thing",
            "Error from provider (Odd): Upstream request failed: the odd thing",
            "LLM call failed (status code 400): the odd thing",
            "Provider returned error: the odd thing",
            "Provider returned status 422: the odd thing",
            "the odd thing",
        ] {
            assert_eq!(inner(text), "the odd thing", "{text}");
        }
    }

    #[test]
    fn the_words_behind_a_sentence_end_with_the_string() {
        for (rest, expected) in [
            (".the odd thing", "the odd thing"),
            (". The odd thing', 'code': None}}", "The odd thing"),
            (": 'odd' is a thing'", "'odd' is a thing"),
            (".', 'code': 'odd'}", ""),
            (
                ". Use 'a', 'b' or the user's.', 'code': 1}",
                "Use 'a', 'b' or the user's.",
            ),
            ("', 'status': 'odd thing'", ""),
        ] {
            assert_eq!(behind(rest), expected, "{rest}");
        }
    }

    #[test]
    fn the_words_of_a_parser_are_left_out() {
        for (text, expected) in [
            (
                "Error: failed to deserialize api response: invalid type: integer `400`, expected a string at line 1 column 87",
                "Error: failed to deserialize api response",
            ),
            (
                r#"{"error": "Failed to parse the response body: missing field `choices`", "code": 1}"#,
                r#"{"error": "Failed to parse the response body", "code": 1}"#,
            ),
            (
                r#"unable to decode response: JSON error: expected value content:{"message": "odd"}"#,
                r#"unable to decode response{"message": "odd"}"#,
            ),
        ] {
            assert_eq!(without_parsers(text), expected);
        }
        for text in [
            "Failed to parse response: the odd thing",
            "Failed to deserialize the JSON body into the target type: missing field `odd`",
            "failed to parse request: invalid type: integer `400`",
        ] {
            assert_eq!(without_parsers(text), text);
        }
    }

    #[test]
    fn what_says_the_subject_is_kept() {
        for text in [
            "Authentication failed: the odd thing",
            "Failed to download image: the odd thing",
            "failed to parse: the odd thing",
            "max_tokens: the odd thing",
            "the model failed to answer",
        ] {
            assert_eq!(inner(text), text);
        }
        assert_eq!(
            inner("Failed to create stream: inference request failed:"),
            ""
        );
    }

    #[test]
    fn advice_and_names_of_tools_are_left_out() {
        for text in [
            "The odd thing. Learn more about tool use at https://a.example/tool-use.",
            "The odd thing. For more information, see https://a.example/images",
            "The odd thing. Please see https://a.example/images",
        ] {
            assert_eq!(telling(text), "The odd thing.", "{text}");
        }
        assert_eq!(
            telling("unexpected status 413 Payload Too Large: the odd thing"),
            "unexpected status  : the odd thing"
        );
        let text = "See the image of the odd thing";
        assert_eq!(telling(text), text);
        let text = "tool 'image' is odd, and so is function `billing`";
        assert_eq!(telling(text), "tool is odd, and so is function");
    }
}
