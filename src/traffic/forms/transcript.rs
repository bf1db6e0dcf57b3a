//! Agents' own session files, which contain a conversation message by message, and the usage of
//! each answer. The system prompt and the tools are missing or incomplete.
//!
//! | file | source of its form |
//! | --- | --- |
//! | Claude Code, `~/.claude/projects/…/*.jsonl` | `23min/copilot-lens`, `docs/research/claude-code-sessions.md`; `Huntehhh/claude-code-chat`, `docs/claude-cli-jsonl-format.md` |
//! | Codex CLI, `~/.codex/sessions/…/rollout-*.jsonl` | `openai/codex`, `codex-rs/protocol/src/protocol.rs` (`RolloutItem`) |
//! | Gemini CLI, `~/.gemini/tmp/…/chats/session-*.json` | `google-gemini/gemini-cli`, `packages/core/src/services/chatRecordingService.ts` |
//! | OpenCode, `opencode export` | `sst/opencode`, `packages/opencode/src/session` |
//! | Cline, Roo Code, `api_conversation_history.json` | a list of messages, as the API accepts them |
//! | SWE-agent, mini-swe-agent, `*.traj`, `*.traj.json` | `history` or `messages` next to `info` |

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::check::history::member_of;
use crate::compile::usual_server;
use crate::conversation::Usage;
use crate::lint::{Agent, recognise};
use crate::provider::WireFormat;
use crate::traffic::piece::{Piece, of_message, of_name, of_prompt};
use crate::traffic::read::count;
use crate::traffic::sent::{Answer, Sent};
use crate::traffic::sizer::Sizer;
use crate::traffic::story::Place;
use crate::traffic::usage;

/// The maximum total size of the messages that are kept to be checked at the end, in bytes.
const MOST_JUDGED: usize = 8 << 20;

/// Returns the key of the conversation that a line belongs to, unique within its file.
pub(in crate::traffic) fn key(agent: Agent, document: &Value) -> String {
    match agent {
        Agent::ClaudeCode => {
            let session = text_at(document, "/sessionId").unwrap_or_default();
            let agent = text_at(document, "/agentId").unwrap_or_default();
            let is_side = document.get("isSidechain") == Some(&Value::Bool(true));
            format!("{session} {agent} {is_side}")
        }
        Agent::Codex | Agent::GeminiCli | Agent::OpenCode | Agent::Messages => String::new(),
    }
}

/// A conversation in a session file, up to the last line read.
pub(in crate::traffic) struct Transcript {
    agent: Agent,
    thread: u64,
    wire: WireFormat,
    model: Arc<str>,
    prompt: Vec<Piece>,
    history: Vec<Piece>,
    /// The messages, which are checked at the end. An answer that is spread over several lines is
    /// one message.
    values: Vec<Value>,
    /// For each message, the index of its first piece.
    firsts: Vec<usize>,
    bytes: usize,
    /// A request whose usage has not been read completely, if at all.
    pending: Option<Sent>,
    /// The ID of the answer to the pending request.
    pending_id: Option<u64>,
    /// For each answer read so far, its index among the messages, by the answer's ID.
    answers: HashMap<u64, usize>,
    is_answering: bool,
    is_compacted: bool,
    /// The length of the history after each line, by the line's ID.
    lengths: HashMap<u64, usize>,
    place: Place,
    /// The counter value at the last use.
    pub(in crate::traffic) used: u64,
}

impl Transcript {
    pub(in crate::traffic) fn new(agent: Agent, thread: u64, place: Place) -> Transcript {
        let wire = match agent {
            Agent::ClaudeCode => WireFormat::AnthropicMessages,
            Agent::Codex => WireFormat::OpenAiResponses,
            Agent::GeminiCli => WireFormat::GoogleGenerateContent,
            Agent::OpenCode | Agent::Messages => WireFormat::OpenAiChat,
        };
        Transcript {
            agent,
            thread,
            wire,
            model: Arc::from(""),
            prompt: Vec::new(),
            history: Vec::new(),
            values: Vec::new(),
            firsts: Vec::new(),
            bytes: 0,
            pending: None,
            pending_id: None,
            answers: HashMap::new(),
            is_answering: false,
            is_compacted: false,
            lengths: HashMap::new(),
            place,
            used: 0,
        }
    }

    /// Reads a line or a document. Returns the requests that are now complete.
    pub(in crate::traffic) fn read(
        &mut self,
        document: &Value,
        place: Place,
        sizer: &Sizer,
    ) -> Vec<Sent> {
        self.place = place;
        match self.agent {
            Agent::ClaudeCode => self.claude(document, sizer),
            Agent::Codex => self.codex(document, sizer),
            Agent::GeminiCli => self.gemini(document, sizer),
            Agent::OpenCode => self.open_code(document, sizer),
            Agent::Messages => self.messages(document, sizer),
        }
    }

    /// Ends the transcript, and returns the data that is left.
    pub(in crate::traffic) fn end(mut self) -> Ended {
        let member = self.member();
        // OpenCode stores messages in its own form, and converts them for each provider.
        let is_as_sent = self.agent != Agent::OpenCode;
        let is_whole = is_as_sent && self.bytes <= MOST_JUDGED && !self.values.is_empty();
        let body = is_whole
            .then(|| json!({"model": &*self.model, "max_tokens": 1000, member: self.values}));
        let body = body.map(|mut body| {
            if !self.wire.facts().needs_limit {
                body.as_object_mut()
                    .expect("an object")
                    .remove("max_tokens");
            }
            body
        });
        let fixed = self.prompt.len();
        let pieces = self.firsts.iter().map(|first| fixed + first).collect();
        Ended {
            last: self.pending.take(),
            body,
            wire: self.wire,
            pieces,
        }
    }

    fn member(&self) -> &'static str {
        member_of(self.wire).unwrap_or("messages")
    }

    /// Adds a message to the history.
    fn say(&mut self, value: Value, sizer: &Sizer) {
        let mut piece = of_message(self.member(), self.history.len(), &value);
        sizer.size(&mut piece, &value, self.wire, &self.model);
        piece.keep(&value);
        self.history.push(piece);
        if self.bytes <= MOST_JUDGED {
            self.bytes += value.to_string().len();
            self.firsts.push(self.history.len() - 1);
            self.values.push(value);
        }
    }

    /// Adds blocks to the message at `at` if it is kept; otherwise adds a message.
    fn say_more(&mut self, at: Option<usize>, value: Value, sizer: &Sizer) {
        let more = blocks_of(&value);
        self.say(value, sizer);
        let Some(earlier) = at
            .filter(|at| at + 1 < self.values.len())
            .and_then(|at| self.values.get_mut(at))
        else {
            return;
        };
        if let Some(Value::Array(blocks)) = earlier.get_mut("content") {
            blocks.extend(more);
            self.values.pop();
            self.firsts.pop();
        }
    }

    /// Truncates the history to a number of pieces.
    fn cut(&mut self, length: usize) {
        self.history.truncate(length);
        let kept = self.firsts.partition_point(|first| *first < length);
        self.firsts.truncate(kept);
        self.values.truncate(kept);
    }

    /// Returns a request that contains the whole conversation so far.
    fn sent(&mut self, answer: Answer, time: Option<i64>) -> Sent {
        let server = usual_server(self.wire, Some(&self.model));
        Sent {
            wire: self.wire,
            server,
            model: Arc::clone(&self.model),
            pieces: self.prompt.iter().chain(&self.history).cloned().collect(),
            body: None,
            retention: None,
            settings: Vec::new(),
            answer,
            time,
            place: self.place.clone(),
            flaws: Vec::new(),
            thread: Some(self.thread),
            is_compacted: std::mem::take(&mut self.is_compacted),
            form: self.agent.form(),
        }
    }

    fn claude(&mut self, line: &Value, sizer: &Sizer) -> Vec<Sent> {
        let hash = |name: &str| line.get(name).and_then(Value::as_str).map(of_name);
        let mut found = Vec::new();
        if let Some(message) = line
            .get("message")
            .filter(|message| message.get("content").is_some())
        {
            let time = line.get("timestamp").and_then(usage::time);
            let is = |name: &str| line.get(name) == Some(&Value::Bool(true));
            let kind = line.get("type").and_then(Value::as_str);
            match kind {
                Some("assistant") if is("isApiErrorMessage") => {
                    let text = message
                        .pointer("/content/0/text")
                        .and_then(Value::as_str)
                        .unwrap_or_default();
                    let answer = Answer {
                        refusal: Some(text.chars().take(300).collect()),
                        ..Answer::default()
                    };
                    found.extend(self.pending.take());
                    found.push(self.sent(answer, time));
                }
                Some("assistant") => found.extend(self.claude_answer(message, time, sizer)),
                Some("user") => {
                    if is("isCompactSummary") {
                        self.cut(0);
                        self.is_compacted = true;
                    } else if !is_result_of_claude(message) {
                        self.rewind(hash("parentUuid"));
                    }
                    let last = self.values.len().checked_sub(1);
                    let is_more = is_result_of_claude(message)
                        && last.is_some_and(|last| is_result_of_claude(&self.values[last]));
                    let message = json!({"role": "user", "content": message.get("content")});
                    self.say_more(last.filter(|_| is_more), message, sizer);
                }
                _ => {}
            }
        }
        if let Some(uuid) = hash("uuid") {
            self.lengths.insert(uuid, self.history.len());
        }
        found
    }

    /// Reads a line that contains a part of an answer. The blocks of an answer are on separate
    /// lines with the same ID, and the results of its first calls may be in between. Each line
    /// contains the usage up to then, so the usage of the last line is kept. Returns the previous
    /// request.
    fn claude_answer(&mut self, message: &Value, time: Option<i64>, sizer: &Sizer) -> Option<Sent> {
        let id = message.get("id").and_then(Value::as_str).map(of_name);
        let model = message.get("model").and_then(Value::as_str);
        // An answer with this model was written by the agent itself.
        let is_of_agent = model == Some("<synthetic>");
        if let Some(model) = model.filter(|_| !is_of_agent) {
            self.model = Arc::from(model);
        }
        let known = id.and_then(|id| self.answers.get(&id).copied());
        let answer = answered(message.get("usage"));
        let mut done = None;
        if known.is_none() && !is_of_agent {
            done = self.pending.take();
            self.pending = Some(self.sent(answer, time));
            self.pending_id = id;
        } else if id.is_some()
            && id == self.pending_id
            && let Some(pending) = &mut self.pending
            && answer.usage.is_some()
        {
            pending.answer = answer;
        }
        self.say_more(
            known,
            json!({"role": "assistant", "content": message.get("content")}),
            sizer,
        );
        if let Some(id) = id.filter(|_| known.is_none()) {
            self.answers
                .insert(id, self.values.len() - usize::from(!self.values.is_empty()));
        }
        done
    }

    /// Removes the history after an earlier line if a prompt refers to that line as its parent.
    fn rewind(&mut self, parent: Option<u64>) {
        let Some(length) = parent.and_then(|parent| self.lengths.get(&parent).copied()) else {
            return;
        };
        let has_answer = self
            .history
            .get(length..)
            .is_some_and(|gone| gone.iter().any(|piece| &*piece.label == "assistant"));
        if has_answer {
            self.cut(length);
        }
    }

    fn codex(&mut self, line: &Value, sizer: &Sizer) -> Vec<Sent> {
        let time = line.get("timestamp").and_then(usage::time);
        let Some(payload) = line.get("payload") else {
            return Vec::new();
        };
        let mut found = Vec::new();
        match line.get("type").and_then(Value::as_str).unwrap_or_default() {
            "session_meta" => {
                if let Some(prompt) = text_at(payload, "/base_instructions/text")
                    .or(text_at(payload, "/instructions"))
                {
                    let value = Value::from(prompt);
                    let mut piece = of_prompt("instructions", &value);
                    sizer.size(&mut piece, &value, self.wire, &self.model);
                    piece.keep(&value);
                    self.prompt = vec![piece];
                }
            }
            "turn_context" => {
                if let Some(model) = text_at(payload, "/model") {
                    self.model = Arc::from(model);
                }
            }
            "compacted" => {
                found.extend(self.pending.take());
                self.cut(0);
                self.is_compacted = true;
                self.is_answering = false;
                match payload.get("replacement_history").and_then(Value::as_array) {
                    Some(items) => items.iter().for_each(|item| self.say(item.clone(), sizer)),
                    None => {
                        self.say(json!({"type": "message", "role": "user", "content": payload.get("message")}), sizer);
                    }
                }
            }
            "event_msg" if text_at(payload, "/type") == Some("token_count") => {
                self.counted(payload);
            }
            "response_item" => found.extend(self.codex_item(payload, time, sizer)),
            _ => {}
        }
        found
    }

    fn codex_item(&mut self, item: &Value, time: Option<i64>, sizer: &Sizer) -> Option<Sent> {
        let kind = item.get("type").and_then(Value::as_str).unwrap_or_default();
        let is_answer = match kind {
            "message" => item.get("role").is_some_and(|role| role == "assistant"),
            "ghost_snapshot" => return None,
            _ => !kind.ends_with("_output"),
        };
        let mut done = None;
        if is_answer && !self.is_answering {
            done = self.pending.take();
            self.pending = Some(self.sent(answered(None), time));
        }
        self.is_answering = is_answer;
        self.say(item.clone(), sizer);
        done
    }

    /// Reads the usage of the last answer, which the file may contain more than once.
    fn counted(&mut self, payload: &Value) {
        if let Some(pending) = &mut self.pending
            && pending.answer.usage.is_none()
        {
            pending.answer = answered(payload.pointer("/info/last_token_usage"));
        }
    }

    fn gemini(&mut self, document: &Value, sizer: &Sizer) -> Vec<Sent> {
        let mut found = Vec::new();
        for message in document
            .get("messages")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let time = message.get("timestamp").and_then(usage::time);
            let parts = parts_of_gemini(message.get("content"));
            if message.get("type").is_some_and(|kind| kind == "user") {
                self.say(json!({"role": "user", "parts": parts}), sizer);
                continue;
            }
            if message.get("type").is_none_or(|kind| kind != "gemini") {
                continue;
            }
            if let Some(model) = message.get("model").and_then(Value::as_str) {
                self.model = Arc::from(model);
            }
            found.push(self.sent(answered(message.get("tokens")), time));
            let calls = message
                .get("toolCalls")
                .and_then(Value::as_array)
                .map_or(&[][..], Vec::as_slice);
            let called =
                calls.iter().map(|call| json!({"functionCall": {"name": call.get("name"), "args": call.get("args")}}));
            let said: Vec<Value> = parts.into_iter().chain(called).collect();
            if !said.is_empty() {
                self.say(json!({"role": "model", "parts": said}), sizer);
            }
            let results: Vec<Value> = calls
                .iter()
                .flat_map(|call| parts_of_gemini(call.get("result")))
                .collect();
            if !results.is_empty() {
                self.say(json!({"role": "user", "parts": results}), sizer);
            }
        }
        found
    }

    fn open_code(&mut self, document: &Value, sizer: &Sizer) -> Vec<Sent> {
        let messages = elements_at(document, "messages");
        if messages.iter().any(is_of_claude) {
            self.wire = WireFormat::AnthropicMessages;
        }
        let mut found = Vec::new();
        for message in messages {
            let parts = elements_at(message, "parts");
            if text_at(message, "/info/role") != Some("assistant") {
                let texts: Vec<Value> = parts.iter().filter_map(text_of_open_code).collect();
                if !texts.is_empty() {
                    self.say(json!({"role": "user", "content": texts}), sizer);
                }
                continue;
            }
            if let Some(model) = text_at(message, "/info/modelID") {
                self.model = Arc::from(model);
            }
            let time = message.pointer("/info/time/created").and_then(usage::time);
            let mut steps: Vec<&[Value]> = parts
                .split_inclusive(|part| text_at(part, "/type") == Some("step-finish"))
                .collect();
            // Parts after the last `step-finish` are not a step unless they contain text, reasoning
            // or a tool call.
            if let [.., last] = steps.as_slice()
                && steps.len() > 1
                && !last.iter().any(is_said_by_open_code)
            {
                steps.pop();
            }
            let is_only = steps.len() <= 1;
            for step in steps {
                let tokens = match is_only {
                    true => message.pointer("/info/tokens"),
                    false => step.last().and_then(|part| part.get("tokens")),
                };
                found.push(self.sent(answer_of_open_code(message, tokens, step), time));
                if is_sent_back_by_open_code(message) {
                    self.open_code_step(step, sizer);
                }
            }
            if message.pointer("/info/summary") == Some(&Value::Bool(true)) {
                let summary = self.values.last().cloned();
                self.cut(0);
                self.is_compacted = true;
                summary
                    .into_iter()
                    .for_each(|summary| self.say(summary, sizer));
            }
        }
        found
    }

    /// Adds the answer to a request, and the results of its calls.
    fn open_code_step(&mut self, step: &[Value], sizer: &Sizer) {
        let called = calls_of_open_code(step).map(|call| {
            json!({"type": "tool_use", "id": call.get("callID"), "name": call.get("tool"), "input": call.pointer("/state/input")})
        });
        let said: Vec<Value> = step
            .iter()
            .filter_map(text_of_open_code)
            .chain(called)
            .collect();
        if !said.is_empty() {
            self.say(json!({"role": "assistant", "content": said}), sizer);
        }
        let results: Vec<Value> = calls_of_open_code(step)
            .filter_map(|call| {
                let result = call
                    .pointer("/state/output")
                    .or(call.pointer("/state/error"))?;
                Some(json!({"type": "tool_result", "tool_use_id": call.get("callID"), "content": result}))
            })
            .collect();
        if !results.is_empty() {
            self.say(json!({"role": "user", "content": results}), sizer);
        }
    }

    fn messages(&mut self, document: &Value, sizer: &Sizer) -> Vec<Sent> {
        let list = document
            .as_array()
            .or_else(|| document.get("messages")?.as_array())
            .or_else(|| document.get("history")?.as_array());
        let Some(list) = list else { return Vec::new() };
        self.wire = recognise(&json!({"messages": list})).unwrap_or(WireFormat::OpenAiChat);
        let model = ["/info/config/model/model_name", "/info/model", "/model"]
            .into_iter()
            .find_map(|at| document.pointer(at)?.as_str());
        self.model = Arc::from(model.unwrap_or_default());
        let mut found = Vec::new();
        for message in list {
            let is_answer = message.get("role").is_some_and(|role| role == "assistant");
            if is_answer && !self.history.is_empty() {
                let time = ["ts", "timestamp"]
                    .into_iter()
                    .find_map(|name| usage::time(message.get(name)?));
                if let Some(model) = text_at(message, "/modelInfo/modelId") {
                    self.model = Arc::from(model);
                }
                found.push(self.sent(answer_of_message(message), time));
            }
            self.say(without_notes(message), sizer);
        }
        found
    }
}

/// Returns an answer with these token counts from the file. The file contains the answer itself
/// too, so the provider accepted the request.
fn answered(counts: Option<&Value>) -> Answer {
    Answer {
        is_answered: true,
        ..usage::counted(counts)
    }
}

/// Returns the answer that a message in a list contains, with the token counts that mini-swe-agent
/// (which stores the response itself) or Cline added to the message.
fn answer_of_message(message: &Value) -> Answer {
    if let Some(tokens) = message.pointer("/metrics/tokens") {
        return Answer {
            is_answered: true,
            ..of_cline(tokens, text_at(message, "/modelInfo/providerId"))
        };
    }
    let response = message.pointer("/extra/response").unwrap_or(&Value::Null);
    Answer {
        is_answered: true,
        ..usage::answer(response)
    }
}

/// Reads the counts of Cline (`cline/cline`, `src/core/task/index.ts`). `cached` is the sum of the
/// tokens read from the cache and written to it, so the number of tokens read is known only if the
/// sum is zero. `prompt` includes these tokens only for the provider `openai`.
fn of_cline(tokens: &Value, provider: Option<&str>) -> Answer {
    let (prompt, cached) = (count(tokens, &["/prompt"]), count(tokens, &["/cached"]));
    let beside = cached.filter(|_| provider != Some("openai"));
    let input = prompt.unwrap_or_default() + beside.unwrap_or_default();
    let usage = Usage {
        input,
        output: count(tokens, &["/completion"]).unwrap_or_default(),
        ..Usage::default()
    };
    Answer {
        usage: Some(usage).filter(|usage| usage.input > 0),
        tells_cache: cached == Some(0),
        ..Answer::default()
    }
}

fn elements_at<'v>(document: &'v Value, name: &str) -> &'v [Value] {
    document
        .get(name)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Returns text from `OpenCode` as a block.
fn text_of_open_code(part: &Value) -> Option<Value> {
    let is_ignored = part.get("ignored") == Some(&Value::Bool(true));
    let text = text_at(part, "/text").filter(|text| !text.is_empty() && !is_ignored)?;
    match text_at(part, "/type") {
        Some("text") => Some(json!({"type": "text", "text": text})),
        Some("reasoning") => Some(json!({"type": "thinking", "thinking": text})),
        _ => None,
    }
}

/// Returns `true` if Claude wrote a message in an `OpenCode` export.
fn is_of_claude(message: &Value) -> bool {
    let model = text_at(message, "/info/modelID").unwrap_or_default();
    text_at(message, "/info/providerID") == Some("anthropic") || model.contains("claude")
}

fn calls_of_open_code(parts: &[Value]) -> impl Iterator<Item = &Value> {
    parts
        .iter()
        .filter(|part| text_at(part, "/type") == Some("tool"))
}

fn is_said_by_open_code(part: &Value) -> bool {
    text_of_open_code(part).is_some() || text_at(part, "/type") == Some("tool")
}

/// Returns `true` if later requests contain an answer. Answers that failed are left out, and so are
/// aborted answers without text or a call (`packages/opencode/src/session`, `message-v2.ts`).
fn is_sent_back_by_open_code(message: &Value) -> bool {
    let Some(error) = text_at(message, "/info/error/name") else {
        return true;
    };
    let kinds = elements_at(message, "parts").iter();
    let is_of_use = { kinds }.any(|part| matches!(text_at(part, "/type"), Some("text" | "tool")));
    error == ABORTED && is_of_use
}

/// The name of the error in an answer that the user aborted.
const ABORTED: &str = "MessageAbortedError";

/// Returns the answer of a step. An answer that was aborted has no usage.
fn answer_of_open_code(message: &Value, tokens: Option<&Value>, step: &[Value]) -> Answer {
    let usage = tokens.and_then(usage_of_open_code);
    let error = text_at(message, "/info/error/name").filter(|error| *error != ABORTED);
    let told = text_at(message, "/info/error/data/message").or(error);
    Answer {
        usage,
        tells_cache: usage.is_some(),
        is_answered: usage.is_some() || step.iter().any(is_said_by_open_code),
        refusal: error.and(told).map(|told| told.chars().take(300).collect()),
        ..Answer::default()
    }
}

/// Returns the usage of an answer; `None` if all counts are zero. `OpenCode` counts cached tokens
/// separately from the input, and reasoning separately from the output if the sum is `total`.
fn usage_of_open_code(tokens: &Value) -> Option<Usage> {
    let read = count(tokens, &["/cache/read"]).unwrap_or_default();
    let written = count(tokens, &["/cache/write"]).unwrap_or_default();
    let input = count(tokens, &["/input"])? + read + written;
    let output = count(tokens, &["/output"])?;
    let reasoning = count(tokens, &["/reasoning"]).unwrap_or_default();
    let is_beside = count(tokens, &["/total"]) == Some(input + output + reasoning);
    let usage = Usage {
        input,
        output: output + if is_beside { reasoning } else { 0 },
        cache_read: read,
        cache_write: written,
        reasoning: 0,
    };
    Some(usage).filter(|usage| usage.input > 0)
}

fn text_at<'v>(payload: &'v Value, at: &str) -> Option<&'v str> {
    payload.pointer(at).and_then(Value::as_str)
}

/// The data that is left when a transcript ends.
pub(in crate::traffic) struct Ended {
    /// A request whose usage was never read.
    pub(in crate::traffic) last: Option<Sent>,
    /// A body that contains all messages, to be checked.
    pub(in crate::traffic) body: Option<Value>,
    pub(in crate::traffic) wire: WireFormat,
    /// For each message in the body, the index of its first piece.
    pub(in crate::traffic) pieces: Vec<usize>,
}

fn blocks_of(message: &Value) -> Vec<Value> {
    match message.get("content") {
        Some(Value::Array(blocks)) => blocks.clone(),
        Some(Value::String(text)) => vec![json!({"type": "text", "text": text})],
        _ => Vec::new(),
    }
}

/// Removes the agent's notes from a message. SWE-agent keeps the ID of a result's call in a list,
/// and sends the first element (`sweagent/agent/models.py`).
pub(in crate::traffic) fn without_notes(message: &Value) -> Value {
    const OF_MESSAGES: [&str; 8] = [
        "role",
        "content",
        "tool_calls",
        "tool_call_id",
        "name",
        "refusal",
        "reasoning_content",
        "type",
    ];
    let Value::Object(members) = message else {
        return message.clone();
    };
    let mut kept: Map<String, Value> = members
        .iter()
        .filter(|(name, value)| OF_MESSAGES.contains(&name.as_str()) && !value.is_null())
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if let Some(id) = message.pointer("/tool_call_ids/0") {
        kept.entry("tool_call_id").or_insert_with(|| id.clone());
    }
    Value::Object(kept)
}

fn is_result_of_claude(message: &Value) -> bool {
    let blocks = message.get("content").and_then(Value::as_array);
    blocks.is_some_and(|blocks| {
        blocks
            .iter()
            .any(|block| block.get("type").is_some_and(|kind| kind == "tool_result"))
    })
}

/// Returns the content of a Gemini CLI message as parts. It may be a string, a part, or a list of
/// either.
fn parts_of_gemini(content: Option<&Value>) -> Vec<Value> {
    match content {
        Some(Value::String(text)) if !text.is_empty() => vec![json!({"text": text})],
        Some(Value::Array(parts)) => parts
            .iter()
            .flat_map(|part| parts_of_gemini(Some(part)))
            .collect(),
        Some(part @ Value::Object(_)) => vec![part.clone()],
        _ => Vec::new(),
    }
}
