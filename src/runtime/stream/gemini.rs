//! Gemini `generateContent` and `streamGenerateContent`.
//!
//! A chunk is a `GenerateContentResponse` of the Python SDK google-genai 3.4 (`types.py`). A whole
//! answer is one chunk, and without `alt=sse`, a stream is a JSON array of chunks. There is no
//! terminal event: an answer is complete when a chunk had a `finishReason`. Reasons (`types.py`,
//! `FinishReason`):
//!
//! | provider | here |
//! | --- | --- |
//! | `STOP` | end of turn, or tool use if there are calls |
//! | `MAX_TOKENS`, `CONTINUATION` | token limit |
//! | `SAFETY`, `RECITATION`, `LANGUAGE`, `BLOCKLIST`, `PROHIBITED_CONTENT`, `SPII`, `IMAGE_…`, `MODEL_ARMOR`, `ESCALATION`, `PUP_LIMITED_DISABLED` | refusal |
//! | `MALFORMED_FUNCTION_CALL`, `MALFORMED_RESPONSE`, `UNEXPECTED_TOOL_CALL`, `MISSING_THOUGHT_SIGNATURE` | an error |
//! | others | the provider's own word |
//!
//! The reasons that are errors end answers without usable content. If such answers were treated as
//! complete, agents would repeat the request endlessly (Wei-Shaw/sub2api#7098). A blocked prompt
//! (`promptFeedback.blockReason`) has no answer, so it is an error too.
//!
//! A `thoughtSignature` is part of a call or of text. Here it is stored in the preceding thinking
//! block, from which the bundled partials can restore it. Usage: thoughts are not included in
//! `candidatesTokenCount`, and cached content is included in `promptTokenCount`.
//!
//! The parts of a chunk are parts of the answer; text continues across chunks. Arguments may arrive
//! in pieces (`partialArgs`, by JSON path). A piece has no name, may lack the ID of its call, and
//! may carry the call's signature (google/adk-go#442, promptfoo/promptfoo#10172). The following are
//! kept in provider-specific blocks: parts of other kinds, a signature that follows a call, the
//! sources of a candidate, and a `functionResponse` from the model together with its call, which
//! the server itself ran. Candidates beyond the first are dropped, with a warning.

use serde_json::{Map, Value, json};

use super::AnswerParser;
use super::builder::{AnswerBuilder, BlockIndex};
use super::json::{count, is_first, items, text};
use super::shape::{self, Member, Shape};
use super::shape::{
    always, any, apart, beside, beside_in_pieces, flag, ignored, kept, number, within,
};
use crate::runtime::{Category, Error, StopReason, failure};

pub(super) static SHAPE: Shape = Shape::new(
    "answer",
    &[
        shape::text(&["responseId", "modelVersion"]),
        within(&["candidates"], &CANDIDATE),
        within(&["usageMetadata"], &USAGE),
        within(&["promptFeedback"], &FEEDBACK),
        ignored(&["createTime"], "the server's clock"),
        ignored(
            &["traceId", "sdkHttpResponse"],
            "data about the transmission",
        ),
    ],
);

static CANDIDATE: Shape = Shape::new(
    "candidates[]",
    &[
        number(&["index"]),
        within(&["content"], &CONTENT),
        shape::text(&["finishReason", "finishMessage"]),
        kept(&SOURCES),
        beside_in_pieces(&["logprobsResult"]),
        beside(&["avgLogprobs", "groundingAttributions"]),
        ignored(&["safetyRatings"], "reported only if an answer is refused"),
        ignored(&["tokenCount"], "the usage contains it"),
    ],
);

static CONTENT: Shape = Shape::new(
    "candidates[].content",
    &[apart(&["parts"], &PART), always(&["role"], &["model"])],
);

/// The table of parts with text or a call. Other parts are kept whole.
static PART: Shape = Shape::new("candidates[].content.parts[]", PART_MEMBERS);

const PART_MEMBERS: &[Member] = &[
    shape::text(&["text", SIGNATURE]),
    flag(&["thought"]),
    within(&["functionCall"], &CALL),
];

static CALL: Shape = Shape::new(
    "candidates[].content.parts[].functionCall",
    &[
        shape::text(&["id", "name"]),
        any(&["args"]),
        within(&["partialArgs"], &PIECE),
        flag(&["willContinue"]),
    ],
);

static PIECE: Shape = Shape::new(
    "candidates[].content.parts[].functionCall.partialArgs[]",
    &[
        shape::text(&["jsonPath", "stringValue"]),
        number(&["numberValue"]),
        flag(&["boolValue"]),
        ignored(&["nullValue"], "an argument is null until it has a value"),
        ignored(
            &["willContinue"],
            "a string continues with the next piece of the same path",
        ),
    ],
);

static FEEDBACK: Shape = Shape::new(
    "promptFeedback",
    &[
        shape::text(&["blockReason", "blockReasonMessage"]),
        ignored(&["safetyRatings"], "reported only if a prompt is blocked"),
    ],
);

static USAGE: Shape = Shape::new(
    "usageMetadata",
    &[
        number(&[
            "promptTokenCount",
            "candidatesTokenCount",
            "thoughtsTokenCount",
        ]),
        number(&["cachedContentTokenCount", "toolUsePromptTokenCount"]),
        ignored(&["totalTokenCount"], "the sum of the others"),
        ignored(MODALITIES, "the counts above, split by modality"),
        ignored(
            &["trafficType", "serviceTier"],
            "how the request was served",
        ),
    ],
);

const MODALITIES: &[&str] = &[
    "promptTokensDetails",
    "candidatesTokensDetails",
    "cacheTokensDetails",
    "toolUsePromptTokensDetails",
];

#[derive(Default)]
pub(super) struct Gemini {
    /// Calls whose arguments are incomplete.
    open: Vec<Call>,
    /// Complete calls.
    calls: Vec<Call>,
    /// The members of the candidate outside its content, by name.
    beside: Vec<(&'static str, BlockIndex)>,
}

/// A call in the answer.
struct Call {
    place: BlockIndex,
    /// The part that contains the call, with its pieces merged.
    part: Value,
    /// The block for the call's signature. Only calls that have a signature or arrive in pieces
    /// have such a block.
    signature: Option<BlockIndex>,
}

/// Members of a candidate that contain the sources of the answer.
const SOURCES: [&str; 3] = [
    "groundingMetadata",
    "citationMetadata",
    "urlContextMetadata",
];

impl AnswerParser for Gemini {
    fn read(&mut self, _: &str, value: &Value, answer: &mut AnswerBuilder) -> Result<(), Error> {
        usage(&value["usageMetadata"], answer);
        let blocked = text(&value["promptFeedback"], "blockReason");
        if !blocked.is_empty() {
            let feedback = &value["promptFeedback"];
            let detail = with_message(
                &with_ratings(blocked, feedback),
                text(feedback, "blockReasonMessage"),
            );
            return Err(
                Error::new(Category::Validation, "the provider blocked the prompt").detail(detail),
            );
        }
        let candidates = items(value, "candidates");
        if candidates.iter().any(|candidate| !is_first(candidate)) {
            answer.warn("the answer has several candidates: the first is kept");
        }
        if let Some(candidate) = candidates.iter().find(|candidate| is_first(candidate)) {
            self.parts(items(&candidate["content"], "parts"), answer);
            self.sources(candidate, answer);
            if let Some(stop) = stop_reason(candidate)? {
                if stop == StopReason::Refusal {
                    let category = with_ratings(text(candidate, "finishReason"), candidate);
                    answer.refused_for(&category, text(candidate, "finishMessage"));
                }
                answer.stop(stop);
            }
        }
        Ok(())
    }

    /// Ends calls whose last piece is missing. They are complete if the model stopped by itself,
    /// because the last piece of a call is empty, and some servers omit it.
    fn end(&mut self, answer: &mut AnswerBuilder) {
        for call in std::mem::take(&mut self.open) {
            if answer.stopped_by_itself() {
                self.end_call(call, answer);
            } else {
                answer.cut_call(call.place);
            }
        }
    }
}

impl Gemini {
    fn parts(&mut self, parts: &[Value], answer: &mut AnswerBuilder) {
        let mut before = None;
        for part in parts {
            if part["text"].is_string() || part["functionCall"].is_object() {
                PART.look_over("", part, answer);
            }
            let kind = part["text"]
                .is_string()
                .then(|| part["thought"] == Value::Bool(true));
            if kind.is_some() && kind == before {
                answer.seal_last();
            }
            self.part(part, answer);
            before = kind;
        }
    }

    fn part(&mut self, part: &Value, answer: &mut AnswerBuilder) {
        let signature = text(part, SIGNATURE);
        if part["functionCall"].is_object() {
            self.function_call(part, answer);
            return;
        }
        if let Some(response) = part
            .get("functionResponse")
            .filter(|response| response.is_object())
        {
            self.was_run(response, answer);
        }
        let words = text(part, "text");
        if !part["text"].is_string() && part.as_object().is_some_and(|members| !members.is_empty())
        {
            answer.own(part.clone());
            return;
        }
        if words.is_empty() && !signature.is_empty() && !answer.ends_in_words() {
            answer.own(json!({"text": "", SIGNATURE: signature}));
            return;
        }
        if part["thought"] == Value::Bool(true) {
            answer.thinking(words);
        } else {
            answer.text(words);
        }
        if !signature.is_empty() {
            answer.sign_text(signature);
        }
    }

    /// Completes a call that the server executed itself. It is not passed to the host, and is sent
    /// back unchanged.
    fn was_run(&mut self, response: &Value, answer: &mut AnswerBuilder) {
        if let Some(at) = self
            .open
            .iter()
            .position(|call| call.is_answered_by(response))
        {
            let call = self.open.remove(at);
            self.end_call(call, answer);
        }
        if let Some(at) = self
            .calls
            .iter()
            .position(|call| call.is_answered_by(response))
        {
            let call = self.calls.remove(at);
            answer.make_own(call.place, call.part);
        }
    }

    /// Reads a call or a piece of one.
    fn function_call(&mut self, part: &Value, answer: &mut AnswerBuilder) {
        let piece = &part["functionCall"];
        let mut call = match self.goes_on(piece) {
            Some(at) => self.open.remove(at),
            None if text(piece, "name").is_empty() && piece.get("args").is_none() => return,
            None => {
                self.end_nameless(answer);
                Call::begin(part, answer)
            }
        };
        call.add(part, answer);
        if piece["willContinue"] == Value::Bool(true) {
            self.open.push(call);
        } else {
            self.end_call(call, answer);
        }
    }

    /// Returns the position of the open call that a piece continues: the call with its ID or, if
    /// the piece has neither ID nor name, the last one.
    fn goes_on(&self, piece: &Value) -> Option<usize> {
        let (id, is_nameless) = (text(piece, "id"), text(piece, "name").is_empty());
        let same_id = self
            .open
            .iter()
            .position(|call| !id.is_empty() && text(call.function(), "id") == id);
        same_id.or_else(|| self.open.len().checked_sub(1).filter(|_| is_nameless))
    }

    /// Ends open calls without an ID when another call begins, because their pieces could not be
    /// distinguished.
    fn end_nameless(&mut self, answer: &mut AnswerBuilder) {
        for call in std::mem::take(&mut self.open) {
            if text(call.function(), "id").is_empty() {
                self.end_call(call, answer);
            } else {
                self.open.push(call);
            }
        }
    }

    /// Ends the pieces of a call. The call is completed at the end of the answer, because the
    /// server may still answer it.
    fn end_call(&mut self, call: Call, answer: &mut AnswerBuilder) {
        match call
            .function()
            .get("args")
            .filter(|arguments| !arguments.is_null())
        {
            Some(arguments) => answer.arguments_value(call.place, arguments),
            None => answer.arguments_value(call.place, &json!({})),
        }
        if !text(call.function(), "name").is_empty() {
            self.calls.push(call);
        }
    }

    /// Keeps the sources of the answer. Each chunk with sources replaces the previous one, because
    /// the last is the most complete.
    fn sources(&mut self, candidate: &Value, answer: &mut AnswerBuilder) {
        for name in SOURCES {
            let Some(value) = candidate
                .get(name)
                .filter(|value| value.as_object().is_some_and(|it| !it.is_empty()))
            else {
                continue;
            };
            let data = json!({ name: value });
            match self.beside.iter().find(|(known, _)| *known == name) {
                Some((_, place)) => answer
                    .own_data(*place)
                    .into_iter()
                    .for_each(|known| known.clone_from(&data)),
                None => {
                    let place = answer.open_own(data);
                    answer.seal(place);
                    self.beside.push((name, place));
                }
            }
        }
    }
}

impl Call {
    /// Begins the call in a part, without arguments so far.
    fn begin(part: &Value, answer: &mut AnswerBuilder) -> Call {
        let mut part = part.clone();
        let will_continue = part["functionCall"]["willContinue"] == Value::Bool(true);
        if let Some(piece) = part["functionCall"].as_object_mut() {
            piece.retain(|name, _| !matches!(name.as_str(), "willContinue" | "partialArgs"));
        }
        let is_signed = !text(&part, SIGNATURE).is_empty();
        let signature = (will_continue || is_signed).then(|| answer.place_of_signature());
        let place = answer.open_call(
            text(&part["functionCall"], "id"),
            text(&part["functionCall"], "name"),
        );
        Call {
            place,
            part,
            signature,
        }
    }

    /// Adds a piece to the call; also used for the first one.
    fn add(&mut self, part: &Value, answer: &mut AnswerBuilder) {
        let piece = &part["functionCall"];
        let function = &mut self.part["functionCall"];
        if let Some(whole) = piece.get("args").filter(|whole| !whole.is_null()) {
            function["args"] = whole.clone();
        }
        items(piece, "partialArgs")
            .iter()
            .for_each(|piece| put(&mut function["args"], piece));
        let signature = text(part, SIGNATURE);
        if let Some(place) = self.signature
            && !signature.is_empty()
            && !answer.is_signed(place)
        {
            answer.signature_at(place, signature);
            answer.seal(place);
            self.part[SIGNATURE] = signature.into();
        }
    }

    fn function(&self) -> &Value {
        &self.part["functionCall"]
    }

    /// Returns `true` if a result belongs to this call: it has the same name and, if it has an ID,
    /// the same ID.
    fn is_answered_by(&self, response: &Value) -> bool {
        let call = self.function();
        let is_same_id = text(response, "id").is_empty() || response["id"] == call["id"];
        response["name"] == call["name"] && is_same_id
    }
}

/// The member of a part that contains its signature.
const SIGNATURE: &str = "thoughtSignature";

/// Adds a piece of arguments (`PartialArg`), which is a value at a JSON path such as `$.a.b[0]`. A
/// string is appended to an existing string.
fn put(arguments: &mut Value, piece: &Value) {
    let steps = steps(text(piece, "jsonPath"));
    let at = steps.iter().fold(arguments, step_into);
    let values = ["stringValue", "numberValue", "boolValue"]
        .into_iter()
        .find_map(|name| piece.get(name));
    match (at, values) {
        (Value::String(known), Some(Value::String(more))) => known.push_str(more),
        (at, Some(value)) => at.clone_from(value),
        (_, None) => {}
    }
}

/// A step in a JSON path.
#[derive(Debug, PartialEq)]
enum Step {
    /// A step to a member.
    Name(String),
    /// A step to an element of a list.
    Index(usize),
}

/// Returns the steps of a JSON path (RFC 9535) that identifies a single location: `.name`,
/// `['name']`, `["name"]`, `[0]`.
fn steps(path: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    while !rest.is_empty() {
        let (step, after) = first_step(rest);
        steps.extend(step);
        rest = after;
    }
    steps
}

/// Returns the first step of a path, `None` if it is invalid, and the rest of the path.
fn first_step(path: &str) -> (Option<Step>, &str) {
    let Some(inside) = path.strip_prefix('[') else {
        let path = path.strip_prefix('.').unwrap_or(path);
        let (name, after) = path.split_at(path.find(['.', '[']).unwrap_or(path.len()));
        return (named(name), after);
    };
    if let Some(quote) = inside
        .chars()
        .next()
        .filter(|first| matches!(first, '\'' | '"'))
    {
        let (name, after) = quoted(&inside[1..], quote);
        return (
            Some(Step::Name(name)),
            after.strip_prefix(']').unwrap_or(after),
        );
    }
    let (word, after) = inside.split_once(']').unwrap_or((inside, ""));
    let index = word.parse().ok().filter(|index| *index < MOST_ELEMENTS);
    (index.map(Step::Index).or_else(|| named(word)), after)
}

fn named(name: &str) -> Option<Step> {
    (!name.is_empty()).then(|| Step::Name(name.to_owned()))
}

/// Returns a name up to its closing quote, and the rest. A backslash escapes the next character.
fn quoted(text: &str, quote: char) -> (String, &str) {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            _ if character == quote => return (name, &text[at + 1..]),
            '\\' => name.extend(characters.next().map(|(_, escaped)| escaped)),
            _ => name.push(character),
        }
    }
    (name, "")
}

/// Returns the value at a step, creating it if necessary.
fn step_into<'v>(at: &'v mut Value, step: &Step) -> &'v mut Value {
    match step {
        Step::Index(index) if at.is_null() || at.is_array() => {
            let length = at.as_array().map_or(0, Vec::len).max(index + 1);
            let mut elements = at.as_array_mut().map(std::mem::take).unwrap_or_default();
            elements.resize(length, Value::Null);
            *at = Value::Array(elements);
            &mut at[*index]
        }
        Step::Index(index) => member(at, &index.to_string()),
        Step::Name(name) => member(at, name),
    }
}

fn member<'v>(at: &'v mut Value, name: &str) -> &'v mut Value {
    if !at.is_object() {
        *at = Value::Object(Map::new());
    }
    &mut at[name]
}

/// The maximum length to which an index may extend a list in arguments.
const MOST_ELEMENTS: usize = 10_000;

fn stop_reason(candidate: &Value) -> Result<Option<StopReason>, Error> {
    Ok(Some(match text(candidate, "finishReason") {
        "" => return Ok(None),
        "STOP" => StopReason::EndTurn,
        "MAX_TOKENS" | "CONTINUATION" => StopReason::MaxTokens,
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "MODEL_ARMOR"
        | "ESCALATION"
        | "PUP_LIMITED_DISABLED" => StopReason::Refusal,
        image if image.starts_with("IMAGE_") => StopReason::Refusal,
        reason @ ("MALFORMED_FUNCTION_CALL" | "MALFORMED_RESPONSE" | "UNEXPECTED_TOOL_CALL") => {
            let error = Error::new(Category::Provider, "the model's answer is malformed");
            return Err(error
                .detail(with_message(reason, text(candidate, "finishMessage")))
                .retryable());
        }
        reason @ "MISSING_THOUGHT_SIGNATURE" => {
            let error = Error::new(
                Category::Validation,
                "the provider requires a signature that the request does not have",
            );
            return Err(error.detail(with_message(reason, text(candidate, "finishMessage"))));
        }
        other => StopReason::Other(other.to_owned()),
    }))
}

/// Returns a reason, followed by the categories that a filter blocked (`safetyRatings`), if any.
fn with_ratings(reason: &str, value: &Value) -> String {
    let blocked = items(value, "safetyRatings")
        .iter()
        .filter(|rating| rating["blocked"] == Value::Bool(true));
    let blocked: Vec<&str> = blocked.map(|rating| text(rating, "category")).collect();
    if blocked.is_empty() {
        reason.to_owned()
    } else {
        format!("{reason} ({})", blocked.join(", "))
    }
}

/// Returns a reason, followed by the provider's explanation, if any.
fn with_message(reason: &str, message: &str) -> String {
    let separator = if message.is_empty() { "" } else { ": " };
    failure::snippet(format!("{reason}{separator}{message}").as_bytes())
}

fn usage(value: &Value, answer: &mut AnswerBuilder) {
    if !value.is_object() {
        return;
    }
    let usage = answer.usage();
    usage.input = tokens(value, "/promptTokenCount")
        .saturating_add(tokens(value, "/toolUsePromptTokenCount"));
    usage.reasoning = tokens(value, "/thoughtsTokenCount");
    usage.output = tokens(value, "/candidatesTokenCount").saturating_add(usage.reasoning);
    usage.cache_read = tokens(value, "/cachedContentTokenCount");
}

fn tokens(usage: &Value, pointer: &str) -> u64 {
    count(usage, pointer).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_quotes_are_one_step() {
        let arguments = |paths: &[&str]| {
            let mut arguments = json!({});
            paths
                .iter()
                .for_each(|path| put(&mut arguments, &json!({"jsonPath": path, "numberValue": 1})));
            arguments
        };
        assert_eq!(
            arguments(&["$['a.b'].c[1]"]),
            json!({"a.b": {"c": [null, 1]}})
        );
        assert_eq!(
            arguments(&[r#"$["x[0]"]['it\'s']"#]),
            json!({"x[0]": {"it's": 1}})
        );
        assert_eq!(
            arguments(&["$.a.0", "$['1']", "$.l[0].n", "$.l[1].n"]),
            json!({
                "a": {"0": 1}, "1": 1, "l": [{"n": 1}, {"n": 1}]
            })
        );
        for odd in [
            "",
            "$",
            "$['",
            "$[",
            "$..",
            "$[]",
            "$['a",
            "$[99999999999]",
            "$.a]",
        ] {
            arguments(&[odd]);
        }
    }
}
