//! Tests for the sentence search.

use super::*;

fn holes(sentence: &str, text: &str) -> Option<Vec<(String, String)>> {
    let plain = Plain::of(text);
    Some(Pattern::parse(sentence).find(&plain)?.named(&plain))
}

#[test]
fn a_sentence_is_found_in_whatever_wraps_it() {
    let sentence = "Unsupported parameter: '{field}' is not supported with this model.";
    let expected = Some(vec![("field".to_owned(), "max_tokens".to_owned())]);
    for text in [
        "Unsupported parameter: 'max_tokens' is not supported with this model.",
        r#"{"error": {"message": "Unsupported parameter: 'max_tokens' is not supported with this model."}}"#,
        r#"Error code: 400 - {'error': {'message': "Unsupported parameter: 'max_tokens' is not supported with this model."}}"#,
        r#"{"raw": "{\"message\": \"Unsupported parameter: \\\"max_tokens\\\" is not supported\n with this model\"}"}"#,
    ] {
        assert_eq!(holes(sentence, text), expected, "{text}");
    }
    assert_eq!(holes(sentence, "Unsupported parameter: nothing"), None);
}

#[test]
fn each_of_several_sentences_is_found() {
    let text = "* a.b[0]: the odd property is no thing at all\n* c.d[1]: the odd property is no thing at all\n";
    let plain = Plain::of(text);
    let found = Pattern::parse("* {path}: the odd property is no thing at all").find_all(&plain, 9);
    let paths: Vec<_> = found.iter().filter_map(|it| it.path(&plain)).collect();
    assert_eq!(paths, ["a.b[0]", "c.d[1]"]);
}

#[test]
fn a_sentence_may_be_cut_off_before_advice_of_a_client() {
    let pattern = Pattern::parse("odd tool choice requires the server to have a tool parser set");
    let cut = |text: &str| pattern.find_cut(&Plain::of(text), false).is_some();
    assert!(cut(
        "odd tool choice requires the server to hav. Check the logs for more"
    ));
    assert!(!cut(
        "odd tool choice requires the server to have no tools. Check the logs"
    ));
    assert!(!cut("odd tool choice requires the server to hav and more"));
}

#[test]
fn general_words_tell_nothing() {
    assert!(is_general("Invalid request parameters."));
    assert!(!is_general("Invalid request: odd parameters."));
}

#[test]
fn a_sentence_is_shown_with_its_quoted_words() {
    let shown = |sentence: &str, text: &str| {
        let plain = Plain::of(text);
        let found = Pattern::parse(sentence).find(&plain).expect("it is found");
        found.shown(&plain).to_owned()
    };
    for (sentence, text, expected) in [
        (
            "the odd value is unknown here: {name}",
            r#"{"message": "the odd value is unknown here: "a". Bye"}"#,
            "the odd value is unknown here: 'a'",
        ),
        (
            "the odd supported values are: {values}",
            "the odd supported values are: 'a', 'b', and 'c'. Bye",
            "the odd supported values are: 'a', 'b', and 'c'",
        ),
        (
            "auto' is an odd choice here",
            r#"{'message': '"auto" is an odd choice here', 'code': 400}"#,
            "'auto' is an odd choice here",
        ),
        (
            "'{path}' : for an odd role the following must hold",
            "'messages.2' : for an odd role the following must hold",
            "'messages.2' : for an odd role the following must hold",
        ),
        (
            "the odd value is here: {value}",
            r#"{"message": "the odd value is here: \"\"1\"\" instead"}"#,
            "the odd value is here: ''1''",
        ),
        (
            "the odd value of {path} is no value",
            r#"{"message": "the odd value of a.b is no value\n","code": 1}"#,
            "the odd value of a.b is no value",
        ),
        (
            "the provider's odd value is no value",
            r#"{"message": "the provider's odd value is no value"}"#,
            "the provider's odd value is no value",
        ),
    ] {
        assert_eq!(shown(sentence, text), expected, "{sentence}");
    }
}

#[test]
fn holes_at_the_ends_and_braces() {
    let found = |sentence, text| holes(sentence, text).map(|mut holes| holes.remove(0).1);
    let text = "got: registry/llama3 does not support tools at all. Try another";
    assert_eq!(
        found("{model} does not support tools at all", text).as_deref(),
        Some("registry/llama3")
    );
    assert_eq!(
        found(
            "this model is not known: {model}",
            "this model is not known: m-1. Bye"
        )
        .as_deref(),
        Some("m-1")
    );
    assert_eq!(
        found(
            "the value {{{name}}} is unknown here",
            "the value {x} is unknown here"
        )
        .as_deref(),
        Some("x")
    );
}

#[test]
fn the_end_of_a_phrase_is_no_path() {
    let sentence = "{path}: the odd value is unknown here";
    for (text, expected) in [
        ("400 odd: the odd value is unknown here", "odd"),
        ("API Error: odd: the odd value is unknown here", "odd"),
        ("error in field odd: the odd value is unknown here", "odd"),
        ("of server a.0.b: the odd value is unknown here", "a.0.b"),
    ] {
        let expected = Some(vec![("path".to_owned(), expected.to_owned())]);
        assert_eq!(holes(sentence, text), expected, "{text}");
    }
    for text in [
        "400 Error from provider: the odd value is unknown here",
        "Error from provider (Odd): the odd value is unknown here",
        "LLM request failed: the odd value is unknown here",
    ] {
        assert_eq!(holes(sentence, text), None, "{text}");
    }
}

#[test]
fn few_letters_must_be_all_that_is_said() {
    assert!(holes("Overloaded", r#"{"message": "Overloaded"}"#).is_some());
    assert!(holes("Overloaded", "Overloaded").is_some());
    assert!(holes("Overloaded", "the server was overloaded by a client").is_none());
    for text in [
        "API Error: Overloaded",
        "  \u{23bf}  Overloaded.",
        "[retry 3] Overloaded",
        "the request failed (Overloaded)",
    ] {
        assert!(holes("Overloaded", text).is_some(), "{text}");
    }
    assert!(holes("Overloaded", "API Error: Overloaded by a client").is_none());
}

#[test]
fn few_letters_behind_a_status_are_all_that_is_said() {
    let sentence = "Resource not found";
    for text in [
        "404 Resource not found",
        "NotFoundError: 404 Resource not found.",
        "request failed: HTTP 404 - Resource not found",
        "Error: 404: Resource not found",
    ] {
        assert!(holes(sentence, text).is_some(), "{text}");
    }
    for text in [
        "in row 404. Resource not found",
        "line 1404 Resource not found",
        "took 1.404 Resource not found",
        "after 200 Resource not found",
        "404 Resource not found in the cache",
    ] {
        assert!(holes(sentence, text).is_none(), "{text}");
    }
}

#[test]
fn wraps_gutters_and_quotes_make_no_difference() {
    let sentence = "messages.{path}: thinking blocks must not be changed by anybody";
    for text in [
        "messages.1:thinking blocks must not be changed by anybody",
        "\u{258f} messages.1: thinking blo\n\u{258f} cks must not be changed by anybody",
        "> messages.1: thinking blocks must\n> not be changed by anybody",
        "// messages.1: thinking blocks must\n  // not be changed by anybody",
        "messages.1: `thinking` blocks must not be changed by anybody",
    ] {
        assert_eq!(
            holes(sentence, text),
            Some(vec![("path".to_owned(), "1".to_owned())]),
            "{text}"
        );
    }
}

#[test]
fn no_sentence_begins_in_the_middle_of_a_path() {
    let sentence = "cache_control: Extra inputs are not permitted";
    assert!(holes(sentence, "cache_control: Extra inputs are not permitted").is_some());
    assert!(
        holes(
            sentence,
            "messages.1.content.0.cache_control: Extra inputs are not permitted"
        )
        .is_none()
    );
}

#[test]
fn a_hole_begins_in_no_word() {
    let sentence = "The model {model} is not supported by this server";
    assert!(holes(sentence, "The model x-1 is not supported by this server").is_some());
    assert!(holes(sentence, "The model\n`x-1` is not supported by this server").is_some());
    let other = "The models/x-1: something is not supported by this server";
    assert!(holes(sentence, other).is_none());
}

#[test]
fn a_name_does_not_reach_into_another_message() {
    let sentence = "Provider {name} not supported at all";
    assert!(holes(sentence, "Provider 'odd' not supported at all").is_some());
    let text = r#"{"message": "Provider failed", "raw": "Odd is not supported at all"}"#;
    assert!(holes(sentence, text).is_none());
}

#[test]
fn a_name_does_not_reach_into_another_clause() {
    let sentence = "Model '{model}' is not supported here";
    for text in [
        "Model 'odd-1' is not supported here",
        "Model Odd 1 (large) is not supported here",
        "Model odd:latest is not supported here",
    ] {
        assert!(holes(sentence, text).is_some(), "{text}");
    }
    for text in [
        "model 'odd-1' with streaming: status 400 lookaround is not supported here",
        "The model returned the following errors: that is not supported here",
        "model odd-1 was called. That is not supported here",
        "model (odd-1): request failed: [odd] that is not supported here",
    ] {
        assert!(holes(sentence, text).is_none(), "{text}");
    }
}

#[test]
fn a_phrase_of_one_word_is_one_word() {
    let has = |phrase, text| Pattern::parse(phrase).has_phrase(&Plain::of(text));
    assert!(has("oneOf", "odd: oneOf is not welcome"));
    assert!(!has("oneOf", "odd must be one of a, b"));
    assert!(has("one of", "odd must be one of a, b"));
}

#[test]
fn a_sentence_stands_around_another() {
    let inner = |sentence, text| {
        let plain = Plain::of(text);
        Pattern::parse(sentence).inner(&plain).map(str::to_owned)
    };
    let expected = Some("the odd thing".to_owned());
    let text = "Upstream error from Odd: the odd thing";
    assert_eq!(
        inner("Upstream error from {provider}: {reason}", text),
        expected
    );
    let text = "400 the provider refused the request: the odd thing";
    assert_eq!(inner("the provider refused the request", text), expected);
    assert_eq!(
        inner("the provider refused the request", "the odd thing"),
        None
    );
}

#[test]
fn the_name_of_a_member_fills_no_hole() {
    let sentence = "{path}: Extra inputs are not permitted";
    let text = r#"{"loc": ["body", "store"], "msg": "Extra inputs are not permitted"}"#;
    assert!(holes(sentence, text).is_none());
    assert!(holes(sentence, "store: Extra inputs are not permitted").is_some());
}

#[test]
fn the_name_of_an_exception_is_no_sentence() {
    let sentence = "Cannot read the body";
    assert!(holes(sentence, "openai.CannotReadTheBody: 400").is_none());
    assert!(
        holes(
            "Cannot read your whole body",
            "a. Cannot read your whole body. b"
        )
        .is_some()
    );
}

#[test]
fn a_chinese_sentence_counts_by_its_characters() {
    let sentence = "{field} 参数非法。请检查文档。";
    let text = "400: messages 参数非法。请检查文档。 (1214)";
    let expected = vec![("field".to_owned(), "messages".to_owned())];
    assert_eq!(holes(sentence, text), Some(expected));
}

#[test]
fn a_shorter_form_ends_where_the_sentence_does() {
    let end = |text: &str| {
        let plain = Plain::of(text);
        let found = Pattern::parse("The schema of the tool is not valid").find(&plain);
        found.is_some_and(|found| is_over(&plain, found.range.end))
    };
    assert!(end("The schema of the tool is not valid. Mend it"));
    assert!(end(
        "'message': 'The schema of the tool is not valid', 'code': 1"
    ));
    assert!(!end(
        "The schema of the tool is not valid: 'type' is missing"
    ));
}

#[test]
fn escapes_of_every_kind_are_read() {
    let sentence =
        "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'";
    for text in [
        r"Messages with role \u0027tool\u0027 must be a response to a preceding message with \u0027tool_calls\u0027",
        "\x1b[31mMessages with role 'tool'\x1b[0m must be a \x1b[1;33mresponse\x1b[0m to a preceding message with 'tool_calls'",
        r"\u001b[31mMessages with role 'tool' must be a response\u001b[0m to a preceding message with 'tool_calls'",
        "Messages with role &#39;tool&#39; must be a response to a preceding message with &quot;tool_calls&quot;",
        r"Messages with role \`tool\` must be a response to a preceding message with tool\_calls",
        "Messages with role 'tool' must be a re\u{200b}sponse to a preceding message with 'tool_calls'",
    ] {
        assert!(
            Pattern::parse(sentence).find(&Plain::of(text)).is_some(),
            "{text}"
        );
    }
    let sentence = "余额不足或无可用资源包,请充值。";
    assert!(
        Pattern::parse(sentence)
            .find(&Plain::of("余额不足或无可用资源包，请充值"))
            .is_some()
    );
    assert_eq!(
        Plain::of(r"C:\users & \u12 \x &lt").text,
        r"C:\users & \u12 \x &lt"
    );
}

#[test]
fn a_cut_sentence_is_found_if_what_is_left_tells() {
    let pattern = Pattern::parse(
        "Unsupported value: '{field}' does not support {value} with this model. Only the default (1) value is supported.",
    );
    let cut = |text: &str| {
        let plain = Plain::of(text);
        pattern
            .find_cut(&plain, true)
            .map(|range| plain.text[range].to_owned())
    };
    assert!(
        cut("400 Unsupported value: 'temperature' does not support 0.3 with this mo").is_some()
    );
    assert!(
        cut("Unsupported value: 'temperature' does not support 0.3 with this… (more)").is_some()
    );
    assert!(cut("Unsupported value: 'temperature' does not support 0.3 with this...").is_some());
    // A different sentence with the same beginning, and a string that is cut off too early.
    assert!(cut("Unsupported value: 'temperature' does not support 0.3 with this tier").is_none());
    assert!(cut("Unsupported value: 'temp").is_none());
}

#[test]
fn a_cut_sentence_is_near() {
    let pattern = Pattern::parse(
        "Expected a thinking block, but found {kind}. When thinking is on, the last message must start with one",
    );
    let near = |text| pattern.nearness(&Plain::of(text));
    assert!(near("Expected a thinking block, but found text. When thinking is on, the last") > 60);
    assert!(near("The server has a thinking cap") < 30);
}

#[test]
fn the_path_is_told_with_the_words_that_touch_it() {
    let path = |sentence, text| {
        let plain = Plain::of(text);
        Pattern::parse(sentence)
            .find(&plain)
            .and_then(|found| found.path(&plain))
    };
    let text = "messages.3.content.0: tool_use ids were found";
    assert_eq!(
        path("messages.{path}: tool_use ids were found", text).as_deref(),
        Some("messages.3.content.0")
    );
    let text = "The odd schema is not welcome. Found at properties.email";
    assert_eq!(
        path("The odd schema is not welcome. Found at {path}", text).as_deref(),
        Some("properties.email")
    );
    let text = "Invalid value at 'input[2].content[0]' of this request";
    assert_eq!(
        path("Invalid value at '{path}' of this request", text).as_deref(),
        Some("input[2].content[0]")
    );
    let sentence = "{path} is missing an odd member";
    for text in [
        "400 input[2] is missing an odd member",
        "400 'input[2]' is missing an odd member",
        "400 it is not permitted#/input[2] is missing an odd member",
    ] {
        assert_eq!(path(sentence, text).as_deref(), Some("input[2]"), "{text}");
    }
    for text in [
        "400 '' is missing an odd member",
        "400 it is not permitted# is missing an odd member",
    ] {
        assert_eq!(path(sentence, text), None, "{text}");
    }
}

#[test]
fn a_path_in_quotes_at_the_end_is_told() {
    let path = |text| {
        let plain = Plain::of(text);
        Pattern::parse("the odd value is not one of these - '{path}'")
            .find(&plain)
            .and_then(|found| found.path(&plain))
    };
    assert_eq!(
        path("the odd value is not one of these - 'messages.2.role' (id 7)").as_deref(),
        Some("messages.2.role")
    );
    assert_eq!(path("the odd value is not one of these - 'a b'"), None);
}

#[test]
fn a_hole_for_a_part_of_a_body_holds_its_name() {
    let matches =
        |sentence: &str, text: &str| Pattern::parse(sentence).find(&Plain::of(text)).is_some();
    let sentence = "Parameter {field} was not received by the odd server";
    for (text, expected) in [
        ("Parameter `odd` was not received by the odd server", true),
        ("Parameter '' was not received by the odd server", true),
        (
            "The odd parameter was not received by the odd server",
            false,
        ),
    ] {
        assert_eq!(matches(sentence, text), expected, "{text}");
    }
    let sentence = "Unknown odd parameter: 'odd_format.{field}'";
    assert!(matches(sentence, "Unknown odd parameter: 'odd_format.a'."));
    assert!(!matches(sentence, "Unknown odd parameter: 'odd_format'."));
}

#[test]
fn a_sentence_begins_after_what_stands_before_it() {
    let sentence = "Invalid '{path}'. An odd value is expected here";
    for text in [
        r#"{"type": "invalid_odd", "code": "odd", "message": "Invalid 'a[1].b'. An odd value is expected here"}"#,
        "Invalid request: Invalid 'a[1].b'. An odd value is expected here",
    ] {
        let plain = Plain::of(text);
        let found = Pattern::parse(sentence).find(&plain).expect(text);
        assert_eq!(found.path(&plain).as_deref(), Some("a[1].b"), "{text}");
    }
}

#[test]
fn a_sentence_does_not_end_inside_an_identifier() {
    let pattern = Pattern::parse("odd errors of the reader for OddAnswer");
    for (text, expected) in [
        ("2 odd errors of the reader for OddAnswer", true),
        ("2 odd errors of the reader for OddAnswers", true),
        ("2 odd errors of the reader for OddAnswerRequest", false),
    ] {
        assert_eq!(pattern.find(&Plain::of(text)).is_some(), expected, "{text}");
    }
}

#[test]
fn empty_names_are_told() {
    let empty = |text| {
        let plain = Plain::of(text);
        let found = Pattern::parse("The '{model}' model is not welcome at the odd server");
        found.find(&plain).map(|found| found.empty_name(&plain))
    };
    assert_eq!(
        empty(r#"{"detail": "The '' model is not welcome at the odd server"}"#),
        Some(Some("model".to_owned()))
    );
    for text in [
        "The 'a' model is not welcome at the odd server",
        "The model is not welcome at the odd server",
    ] {
        assert_eq!(empty(text), Some(None), "{text}");
    }
}

#[test]
fn a_number_alone_is_no_path() {
    let path = |text| {
        let plain = Plain::of(text);
        Pattern::parse("an odd message at index {index} is not welcome")
            .find(&plain)
            .and_then(|found| found.path(&plain))
    };
    assert_eq!(path("an odd message at index 4 is not welcome"), None);
    assert_eq!(
        path("an odd message at index messages[4] is not welcome").as_deref(),
        Some("messages[4]")
    );
}

#[test]
fn underscores_that_markdown_took_away_make_no_difference() {
    let sentence = "Invalid max_tokens value, the valid range of max_tokens is [1, {most}]";
    assert_eq!(
        holes(
            sentence,
            "Invalid maxtokens value, the valid range of maxtokens is [1, 393216]"
        ),
        Some(vec![("most".to_owned(), "393216".to_owned())])
    );
    assert_eq!(
        holes(
            "Invalid request Error",
            r#"{"type": "invalid_request_error"}"#
        ),
        None
    );
}
