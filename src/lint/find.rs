//! Finds the request bodies in a document: the document itself, list elements, the contents of
//! batches and logs, and HAR file entries.

use serde_json::{Map, Value};

use super::address::{Address, Endpoint};
use super::batch::Envelope;
use super::encoded::Decoder;
use super::litellm::{self, Recorded, Settings};
use super::recognise::begins_with;
use super::session::Agent;
use super::stranger::Stranger;
use super::unsupported::Unsupported;
use super::wrapper::{COUNTED, wrapper};
use crate::json::{self, JsonError, Pointer};
use crate::provider::{ApiHeaders, WireFormat, WrongPath};

/// A request body, and the facts known from the text around it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FoundBody {
    /// The body as JSON.
    pub value: Value,
    /// The string that contains the body, as a pointer into the document; `None` if the body is not
    /// in a string. HAR files and logs contain bodies as text.
    pub string: Option<Pointer>,
    /// The location of the body, in the string that contains it or in the document.
    pub at: Pointer,
    /// The endpoint that the body was sent to, if known.
    pub endpoint: Option<Endpoint>,
    /// The headers that the body was sent with, if known.
    pub headers: ApiHeaders,
    /// The place where the model is specified.
    pub model_at: ModelAt,
    /// The body's members that are elsewhere in a log record.
    pub(crate) settings: Option<Settings>,
    /// The mistake in the request URL, if any.
    pub(crate) wrong_url: Option<WrongUrl>,
}

/// The place where a request's model is specified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelAt {
    /// The body, or the URL of its endpoint.
    Request,
    /// The job that runs a batch, as in Mistral's batches.
    BatchJob,
    /// The path of a Bedrock request. Bedrock serves models with several formats.
    InvokedPath,
}

/// A URL whose path is wrong, and its location.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WrongUrl {
    /// The mistake in the path.
    pub(crate) path: WrongPath,
    /// The string that contains the URL's object, as in [`FoundBody::string`].
    pub(crate) string: Option<Pointer>,
    /// The location of the URL, in the string that contains it or in the document.
    pub(crate) at: Pointer,
}

/// The content of a document.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Harvest {
    /// The bodies, in order.
    pub bodies: Vec<FoundBody>,
    /// The number of requests to other kinds of endpoints.
    pub passed_over: usize,
    /// The strings that contain invalid JSON in place of a body.
    pub(crate) broken: Vec<(Pointer, JsonError)>,
    /// The format of a captured request that is skipped because its format is not checked.
    pub(crate) passed_format: Option<Unsupported>,
    /// The values that are not bodies and contain none, each with its string and its location.
    pub(crate) strangers: Vec<(Option<Pointer>, Pointer, Stranger)>,
    /// The requests in formats that are not checked, each with its string and its location.
    pub(crate) unsupported: Vec<(Option<Pointer>, Pointer, Unsupported)>,
    /// The lines in a batch, in order.
    pub(crate) envelopes: Vec<Envelope>,
}

/// Finds the bodies in a document. `wire` is the format of all bodies, if it is known.
///
/// ```
/// let line = serde_json::json!({"custom_id": "a", "url": "/v1/chat/completions", "body": {"model": "m", "messages": []}});
/// let found = reqc::lint::find(line, None);
/// assert_eq!(found.bodies[0].at.as_str(), "/body");
/// ```
pub fn find(document: Value, wire: Option<WireFormat>) -> Harvest {
    find_from(Here::default(), document, wire)
}

/// Finds the bodies in a document that was sent to a URL.
pub(crate) fn find_sent(url: &str, document: Value, wire: Option<WireFormat>) -> Harvest {
    let here = Here {
        address: Address::of(url),
        has_url: true,
        headers: ApiHeaders::default().at(url),
        within: Within::Wrapper,
        ..Here::default()
    };
    find_from(here, document, wire)
}

/// Finds the bodies in a document from a log that mentions a request to this URL near the document.
pub(crate) fn find_near(url: &str, document: Value, wire: Option<WireFormat>) -> Harvest {
    let here = Here {
        address: Address::of(url),
        has_url: true,
        headers: ApiHeaders::default().at(url),
        ..Here::default()
    };
    find_from(here, document, wire)
}

fn find_from(here: Here, document: Value, wire: Option<WireFormat>) -> Harvest {
    let mut finder = Finder {
        wire,
        harvest: Harvest::default(),
    };
    match document {
        Value::Array(elements) => match Agent::of_list(&elements) {
            Some(agent) => finder.stranger(here, Stranger::Session(agent)),
            None => finder.each(elements, &here),
        },
        document => finder.look(document, here),
    }
    finder.harvest
}

/// The position of a value, and the facts known from the objects around it.
#[derive(Debug, Clone, Default)]
struct Here {
    at: Pointer,
    string: Option<Pointer>,
    address: Address,
    /// `true` if one of the surrounding objects contains a URL.
    has_url: bool,
    wrong_url: Option<WrongUrl>,
    headers: ApiHeaders,
    /// `true` if the value is a line of a batch.
    is_of_batch: bool,
    /// `true` if the value is an entry of a capture. Most entries are not requests to a model.
    is_captured: bool,
    within: Within,
    depth: usize,
}

/// The container of a value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Within {
    #[default]
    Nothing,
    /// A list of `requests`.
    Requests,
    /// An object that wraps the value.
    Wrapper,
}

impl Here {
    /// Returns `true` if the value is the body of a request to a known endpoint. Such a body is
    /// accepted even without its characteristic members. Other checks handle batch lines and
    /// captures.
    fn is_sent_to_model(&self) -> bool {
        self.within == Within::Wrapper
            && matches!(self.address, Address::Known(_))
            && !self.is_of_batch
            && !self.is_captured
    }

    fn below(&self, name: &str) -> Here {
        Here {
            at: self.at.member(name),
            depth: self.depth + 1,
            ..self.clone()
        }
    }
}

/// The maximum number of wrappers around a body.
const DEEPEST: usize = 8;

/// The members in batches that contain requests: Anthropic's and Gemini's, and xAI's.
const LISTS: [&str; 2] = ["requests", "batch_requests"];

/// The locations of the requests in a batch that is sent to Gemini as one request.
const INLINE: [&str; 2] = [
    "/inputConfig/requests/requests",
    "/input_config/requests/requests",
];

/// The requests of a batch in one document.
struct RequestList {
    /// The location of the list.
    at: Pointer,
    requests: Vec<Value>,
    within: Within,
}

impl RequestList {
    /// Takes the requests of a batch from its members; `None` if there are none.
    fn of(members: &mut Map<String, Value>) -> Option<RequestList> {
        let root = Pointer::root();
        let list = LISTS
            .into_iter()
            .find(|name| members.get(*name).is_some_and(Value::is_array));
        let (at, requests, within) = if let Some(name) = list {
            (root.member(name), members.get_mut(name)?, Within::Requests)
        } else {
            let batch = members.get_mut("batch")?;
            let inner = INLINE
                .iter()
                .find(|at| batch.pointer(at).is_some_and(Value::is_array))?;
            let names = inner.split('/').skip(1);
            let at = names.fold(root.member("batch"), |at, name| at.member(name));
            // These requests need no key, unlike those in a file.
            (at, batch.pointer_mut(inner)?, Within::Wrapper)
        };
        match requests.take() {
            Value::Array(requests) => Some(RequestList {
                at,
                requests,
                within,
            }),
            _ => None,
        }
    }
}

struct Finder {
    wire: Option<WireFormat>,
    harvest: Harvest,
}

impl Finder {
    fn each(&mut self, elements: Vec<Value>, here: &Here) {
        for (index, element) in elements.into_iter().enumerate() {
            self.look(
                element,
                Here {
                    at: here.at.element(index),
                    depth: here.depth + 1,
                    ..here.clone()
                },
            );
        }
    }

    fn look(&mut self, value: Value, here: Here) {
        match value {
            Value::Object(members) => self.object(members, here),
            Value::String(text) if here.depth > 0 && here.string.is_none() => {
                self.text(&text, here);
            }
            Value::String(text) if matches!(json::parse(&text), Ok(Value::Object(_))) => {
                self.stranger(here, Stranger::Encoded);
            }
            _ => self.stranger(here, Stranger::Unknown),
        }
    }

    fn object(&mut self, mut members: Map<String, Value>, here: Here) {
        if is_capture(&members) {
            return self.capture(&mut members, &here);
        }
        if let Some(list) = RequestList::of(&mut members) {
            // Each request in a batch has its own URL, except in Anthropic's and Gemini's batches.
            let address = match &here.address {
                Address::Known(endpoint) if here.is_captured => Address::Known(endpoint.clone()),
                _ => Address::Unknown,
            };
            let here = Here {
                address,
                has_url: false,
                within: list.within,
                at: here.at.join(&list.at),
                depth: here.depth + 1,
                ..here
            };
            return self.each(list.requests, &here);
        }
        if self.is_empty_envelope(&members, &here) {
            return;
        }
        // A body that contains an `info` object but no model looks like a session file.
        let is_expected = self.wire.is_some() || matches!(here.address, Address::Known(_));
        if let Some(agent) =
            Agent::of_object(&members).filter(|agent| *agent != Agent::Messages || !is_expected)
        {
            return self.stranger(here, Stranger::Session(agent));
        }
        if litellm::is_record(&members) {
            let Recorded {
                body,
                endpoint,
                settings,
            } = litellm::request(members);
            let address = endpoint.map_or_else(|| here.address.clone(), Address::Known);
            return self.body(body, settings, Here { address, ..here });
        }
        if let Address::Known(endpoint) = &here.address
            && is_code_assist(&members)
        {
            let model = members.get("model").and_then(Value::as_str);
            // Code Assist also serves models from other makers.
            let endpoint = Endpoint {
                model: model.map(str::to_owned),
                server: None,
                ..endpoint.clone()
            };
            let here = Here {
                address: Address::Known(endpoint),
                ..here.below("request")
            };
            let inner = members.remove("request").unwrap_or_default();
            return self.look(inner, here);
        }
        let is_sent = here.is_sent_to_model();
        // The object that was sent is the body, even if its `input` looks like a body, too.
        let is_whole = match &here.address {
            Address::Known(_) if is_sent => members.contains_key("model"),
            Address::Known(endpoint) if here.is_captured => starts(endpoint.wire, &members),
            _ => false,
        };
        let is_whole = is_whole || self.is_body(&members);
        let wrapper = wrapper(&members).filter(|_| here.depth < DEEPEST);
        match wrapper.filter(|name| *name == litellm::PROXIED || !is_whole) {
            Some(name) => {
                let mut here = around(&members, &here).below(name);
                if COUNTED.contains(&name) {
                    here.headers = here.headers.of_counted();
                }
                let inner = members.remove(name).unwrap_or_default();
                self.look(inner, here);
            }
            None if is_sent || is_whole || self.wire.is_some() && !here.is_captured => {
                self.body(members, None, here);
            }
            None => self.stranger(here, Stranger::of(&members)),
        }
    }

    /// Adds an object to the lines of a batch, if it is one. Returns `true` if the line has no body
    /// to check.
    fn is_empty_envelope(&mut self, members: &Map<String, Value>, here: &Here) -> bool {
        if here.within == Within::Wrapper || here.is_captured || here.string.is_some() {
            return false;
        }
        let Some(envelope) = Envelope::of(members, &here.at, here.within == Within::Requests)
        else {
            return false;
        };
        let is_empty = envelope.is_without_body();
        self.harvest.passed_over += usize::from(is_empty && envelope.is_of_bedrock());
        self.harvest.envelopes.push(envelope);
        is_empty
    }

    /// Returns `true` if a value has a characteristic member of the given format or, if none is
    /// given, of any format.
    fn is_body(&self, members: &Map<String, Value>) -> bool {
        if self.wire.is_none() && Unsupported::by_shape(members).is_some() {
            return true;
        }
        let formats = self
            .wire
            .map_or(WireFormat::ALL.to_vec(), |wire| vec![wire]);
        formats
            .into_iter()
            .flat_map(begins_with)
            .any(|name| match members.get(*name) {
                // In logs, `input` may also be the input of a call.
                Some(Value::Object(_)) => *name != "input",
                Some(_) if *name == "input" => !is_logged_input(members),
                value => value.is_some(),
            })
    }

    fn capture(&mut self, members: &mut Map<String, Value>, here: &Here) {
        let entries = members
            .get_mut("log")
            .and_then(|log| log.get_mut("entries"))
            .map(Value::take);
        let here = Here {
            is_captured: true,
            ..here.below("log").below("entries")
        };
        if let Some(Value::Array(mut entries)) = entries {
            let mut decoder = Decoder::default();
            entries
                .iter_mut()
                .for_each(|entry| decoder.decode_request(entry));
            self.each(entries, &Here { depth: 0, ..here });
        }
    }

    /// Reads a body in a string.
    fn text(&mut self, text: &str, here: Here) {
        match json::parse(text) {
            Ok(value @ Value::Object(_)) => {
                self.look(
                    value,
                    Here {
                        string: Some(here.at.clone()),
                        at: Pointer::root(),
                        ..here
                    },
                );
            }
            Err(error) if matches!(here.address, Address::Known(_)) => {
                self.harvest.broken.push((here.at, error));
            }
            _ => self.stranger(here, Stranger::Unknown),
        }
    }

    fn body(&mut self, members: Map<String, Value>, settings: Option<Settings>, here: Here) {
        let model_at = if here.address == Address::Invoke {
            ModelAt::InvokedPath
        } else if here.is_of_batch && !here.has_url {
            ModelAt::BatchJob
        } else {
            ModelAt::Request
        };
        let endpoint = match here.address {
            Address::Known(endpoint) => Some(endpoint),
            Address::Other => return self.harvest.passed_over += 1,
            Address::Unsupported(_) if self.wire.is_none() => {
                return self.stranger(here, Stranger::Unknown);
            }
            // A model's own format on Bedrock has a `prompt` in place of `messages`.
            Address::Invoke
                if self.wire.is_none()
                    && members.contains_key("prompt")
                    && !members.contains_key("messages") =>
            {
                let address = Address::Unsupported(Unsupported::BedrockPrompt);
                return self.stranger(Here { address, ..here }, Stranger::Unknown);
            }
            // A captured request to an unknown server may have any purpose.
            Address::Unknown | Address::Invoke if here.is_captured && self.wire.is_none() => {
                return self.harvest.passed_over += 1;
            }
            Address::Unknown | Address::Invoke | Address::Unsupported(_) => None,
        };
        // On other servers, the path of an endpoint may belong to a different API.
        if here.is_captured
            && endpoint.as_ref().is_some_and(|endpoint| {
                endpoint.server.is_none() && !starts(endpoint.wire, &members)
            })
        {
            self.harvest.passed_over += 1;
            return;
        }
        self.harvest.bodies.push(FoundBody {
            value: Value::Object(members),
            string: here.string,
            at: here.at,
            endpoint,
            headers: here.headers,
            model_at,
            settings,
            wrong_url: here.wrong_url,
        });
    }

    fn stranger(&mut self, here: Here, kind: Stranger) {
        match here.address {
            Address::Unsupported(format) if here.is_captured => {
                self.harvest.passed_over += 1;
                self.harvest.passed_format.get_or_insert(format);
            }
            _ if here.is_captured => self.harvest.passed_over += 1,
            Address::Other => self.harvest.passed_over += 1,
            Address::Unsupported(format) => {
                let found = (here.string, here.at, format);
                self.harvest.unsupported.push(found);
            }
            Address::Known(_) | Address::Invoke | Address::Unknown => {
                self.harvest.strangers.push((here.string, here.at, kind));
            }
        }
    }
}

/// Returns `true` if an object's `input` belongs to a log record, which has its own type or has the
/// output next to the `input`. The only requests with a type are those to the Responses API over a
/// WebSocket.
fn is_logged_input(members: &Map<String, Value>) -> bool {
    let has_type = members
        .get("type")
        .is_some_and(|kind| kind.is_string() && kind != "response.create");
    has_type || members.contains_key("output")
}

/// Returns `true` if an object has a characteristic member of a wire format. A request to Ollama
/// may contain only a model to load.
fn starts(wire: WireFormat, members: &Map<String, Value>) -> bool {
    match wire {
        WireFormat::OllamaChat | WireFormat::OllamaGenerate => members.contains_key("model"),
        WireFormat::AnthropicMessages
        | WireFormat::OpenAiChat
        | WireFormat::OpenAiResponses
        | WireFormat::GoogleGenerateContent
        | WireFormat::MistralChat
        | WireFormat::MistralFim
        | WireFormat::LlamaCppInfill => begins_with(wire)
            .iter()
            .any(|name| members.contains_key(*name)),
    }
}

/// Returns `true` if an object is a HAR file.
fn is_capture(members: &Map<String, Value>) -> bool {
    members
        .get("log")
        .and_then(|log| log.get("entries"))
        .is_some_and(Value::is_array)
}

/// Returns the position of the body inside an object, and the facts known about the body.
fn around(members: &Map<String, Value>, here: &Here) -> Here {
    let named = ["url", "path", "endpoint", "uri", "URL"]
        .into_iter()
        .find_map(|name| Some((name, members.get(name)?.as_str()?)));
    let url = named.map(|(_, url)| url);
    let wrong_url = named.and_then(|(name, url)| {
        Some(WrongUrl {
            path: WrongPath::of(url)?,
            string: here.string.clone(),
            at: here.at.member(name),
        })
    });
    let right_url = wrong_url.as_ref().and_then(|wrong| wrong.path.right_url());
    let address = match (right_url, url) {
        (Some(right), _) => Address::of(&right),
        (None, Some(url)) => match (Address::of(url), &here.address) {
            // A path without a host.
            (Address::Known(path), Address::Known(around))
                if path.host.is_empty() && path.wire == around.wire =>
            {
                here.address.clone()
            }
            (address, _) => address,
        },
        (None, None) => here.address.clone(),
    };
    Here {
        has_url: here.has_url || url.is_some(),
        wrong_url: wrong_url.or_else(|| here.wrong_url.clone()),
        within: Within::Wrapper,
        // A line in Anthropic's batches wraps the body, with its model, as `params`.
        is_of_batch: here.is_of_batch
            || members.contains_key("custom_id") && members.contains_key("body"),
        address,
        headers: match url {
            Some(url) => headers(members)
                .unwrap_or_else(|| here.headers.clone())
                .at(url),
            None => headers(members)
                .unwrap_or_default()
                .or(|| Some(here.headers.clone())),
        },
        ..here.clone()
    }
}

/// Returns `true` for the envelope of Gemini Code Assist, which contains the body and the model's
/// name. Source: <https://github.com/google-gemini/gemini-cli/blob/main/packages/core/src/code_assist/converter.ts>.
fn is_code_assist(members: &Map<String, Value>) -> bool {
    let request = members.get("request");
    members.contains_key("model")
        && request.is_some_and(|request| request.get("contents").is_some())
}

/// Returns the headers of a request. Logs write them as an object of strings or of lists of
/// strings, HAR files as a list of objects with `name` and `value`. Returns `None` if they contain
/// neither a version nor beta features.
fn headers(members: &Map<String, Value>) -> Option<ApiHeaders> {
    let found = ["headers", "request_headers", "requestHeaders"]
        .into_iter()
        .find_map(|name| members.get(name))?;
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    match found {
        Value::Object(headers) => {
            for (name, value) in headers {
                let values = value
                    .as_array()
                    .map_or(std::slice::from_ref(value), Vec::as_slice);
                pairs.extend(
                    values
                        .iter()
                        .filter_map(Value::as_str)
                        .map(|value| (name.as_str(), value)),
                );
            }
        }
        Value::Array(headers) => {
            pairs.extend(headers.iter().filter_map(named_header));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    Some(ApiHeaders::read(pairs)).filter(|headers| !headers.is_unknown())
}

/// Returns the name and the value of a header in a HAR file.
fn named_header(header: &Value) -> Option<(&str, &str)> {
    Some((
        header.get("name")?.as_str()?,
        header.get("value")?.as_str()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::Site;
    use serde_json::json;

    fn places(document: Value) -> Vec<String> {
        find(document, None)
            .bodies
            .iter()
            .map(|body| match &body.string {
                Some(string) => format!("{}{}", string.as_str(), body.at.as_str()),
                None => body.at.as_str().to_owned(),
            })
            .collect()
    }

    #[test]
    fn bodies_lists_batches_and_logs() {
        let body = json!({"model": "m", "messages": []});
        assert_eq!(places(body.clone()), [""]);
        assert_eq!(places(json!([body, body])), ["/0", "/1"]);
        assert_eq!(
            places(json!({"custom_id": "a", "params": body})),
            ["/params"]
        );
        assert_eq!(
            places(json!({"requests": [{"custom_id": "a", "params": body}]})),
            ["/requests/0/params"]
        );
        let of_gemini = json!({"batch": {"inputConfig": {"requests": {"requests": [
            {"request": {"contents": [{"parts": [{"text": "x"}]}]}, "metadata": {"key": "0"}}
        ]}}}});
        assert_eq!(
            places(of_gemini),
            ["/batch/inputConfig/requests/requests/0/request"]
        );
        let of_xai = json!({"batch_requests": [{"batch_request_id": "0", "batch_request": {"responses": body}}]});
        assert_eq!(
            places(of_xai),
            ["/batch_requests/0/batch_request/responses"]
        );
        assert_eq!(
            places(json!({"key": "a", "request": {"contents": []}})),
            ["/request"]
        );
        assert_eq!(
            places(json!({"request": {"url": "/v1/messages", "body": body.to_string()}})),
            ["/request/body"]
        );
        assert_eq!(places(json!({"input": body, "output": {}})), ["/input"]);
        let of_bedrock = json!({"schemaType": "ModelInvocationLog", "input": {"inputBodyJson": body}, "output": {}});
        assert_eq!(places(of_bedrock), ["/input/inputBodyJson"]);
        let of_cloudflare = json!({"Method": "POST", "URL": "https://h/v1/messages", "RequestBody": body.to_string()});
        let found = find(of_cloudflare, None).bodies.remove(0);
        assert_eq!(
            found.endpoint.expect("an endpoint").wire,
            WireFormat::AnthropicMessages
        );
        assert_eq!(
            places(
                json!({"proxy_server_request": body, "model": "m", "messages": {}, "response": {}})
            ),
            ["/proxy_server_request"]
        );
        assert_eq!(
            places(
                json!({"proxy_server_request": {"url": "http://h/v1/messages", "body": body}, "messages": []})
            ),
            ["/proxy_server_request/body"]
        );
    }

    #[test]
    fn records_of_litellm_are_read_as_requests() {
        let record = json!({
            "id": "a", "call_type": "acompletion", "model": "m", "messages": [], "model_parameters": {"temperature": 1},
            "response": {"id": "b"}, "error_str": "no", "startTime": 1.0,
        });
        let found = find(record, None).bodies.remove(0);
        assert_eq!(
            (found.at.as_str(), found.value),
            ("", json!({"model": "m", "messages": [], "temperature": 1}))
        );
        assert_eq!(
            found.endpoint.expect("an endpoint").wire,
            WireFormat::OpenAiChat
        );
    }

    #[test]
    fn the_input_of_a_record_is_no_request() {
        let said = json!([{"type": "text", "text": "hi"}]);
        for record in [
            json!({"type": "turn.prompt", "input": said, "time": 1}),
            json!({"id": "g", "type": "GENERATION", "model": "gpt-4o", "input": said, "output": "x"}),
            json!({"input": "a", "output": "b"}),
        ] {
            let found = find(record.clone(), None);
            assert_eq!(
                (found.bodies.len(), found.strangers[0].2),
                (0, Stranger::Record),
                "{record}"
            );
            assert_eq!(
                find(record, Some(WireFormat::OpenAiResponses)).bodies.len(),
                1
            );
        }
        let event = json!({"type": "response.create", "model": "gpt-5", "input": said});
        assert_eq!(find(event, None).bodies.len(), 1);
    }

    #[test]
    fn what_is_no_body_is_told_apart() {
        let kind = |document: Value, wire| {
            let found = find(document, wire);
            assert!(found.bodies.is_empty(), "{found:?}");
            found.strangers[0].2
        };
        let chat = Some(WireFormat::OpenAiChat);
        let said = json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]);
        let messages = Stranger::Session(Agent::Messages);
        assert_eq!(kind(said.clone(), None), messages);
        assert_eq!(kind(said, chat), messages);
        let rollout = json!({"type": "response_item", "payload": {"type": "message", "role": "user", "content": []}});
        assert_eq!(kind(rollout, chat), Stranger::Session(Agent::Codex));
        let encoded = json!(json!({"model": "m", "messages": []}).to_string());
        assert_eq!(kind(encoded, None), Stranger::Encoded);
    }

    #[test]
    fn a_prompt_at_bedrock_is_not_taken_for_a_format_with_prompts() {
        let url = "https://bedrock-runtime.us-east-1.amazonaws.com/model/mistral.mistral-7b-instruct-v0:2/invoke";
        let body = json!({"prompt": "<s>[INST] Hi [/INST]", "max_tokens": 100});
        let found = find(json!({"url": url, "body": body}), None);
        assert_eq!(found.bodies.len(), 0);
        assert_eq!(found.unsupported[0].2, Unsupported::BedrockPrompt);
    }

    #[test]
    fn captures_tell_a_format_that_is_not_checked() {
        let entry = json!({"request": {"method": "POST", "url": "https://bedrock-runtime.us-east-1.amazonaws.com/model/a/converse",
            "postData": {"text": "{\"messages\":[]}"}}});
        let found = find(json!({"log": {"entries": [entry]}}), None);
        assert_eq!(
            (found.passed_over, found.passed_format, found.bodies.len()),
            (1, Some(Unsupported::Converse), 0)
        );
    }

    #[test]
    fn headers_of_logs_tell_version_and_betas() {
        let body = json!({"model": "m", "messages": []});
        let version = |headers: Value| {
            let line = json!({"url": "/v1/messages", "headers": headers, "body": body});
            find(line, None).bodies[0].headers.version.clone()
        };
        let expected = Some("2023-06-01".to_owned());
        assert_eq!(
            version(json!({"anthropic-version": "2023-06-01"})),
            expected
        );
        assert_eq!(
            version(json!({"Anthropic-Version": ["2023-06-01"]})),
            expected
        );
        assert_eq!(
            version(json!([{"name": "anthropic-version", "value": "2023-06-01"}])),
            expected
        );
        assert_eq!(version(json!({"x-api-key": "k"})), None);
        assert_eq!(version(json!(null)), None);
    }

    #[test]
    fn captures_are_read_by_url() {
        let entry = |url: &str, text: &str| json!({"request": {"method": "POST", "url": url, "postData": {"text": text}}});
        let body = r#"{"model":"m","messages":[]}"#;
        let document = json!({"log": {"entries": [
            entry("https://api.openai.com/v1/chat/completions", body),
            entry("https://example.com/collect", body),
            {"request": {"method": "GET", "url": "https://example.com/"}},
            entry("https://example.com/api/chat", r#"{"text": "hello"}"#),
            entry("https://api.anthropic.com/v1/messages", "{"),
        ]}});
        let found = find(document, None);
        assert_eq!(
            (found.bodies.len(), found.passed_over, found.broken.len()),
            (1, 3, 1)
        );
        assert_eq!(
            found.bodies[0].string.as_ref().expect("a string").as_str(),
            "/log/entries/0/request/postData/text"
        );
        assert!(found.strangers.is_empty());
    }

    #[test]
    fn other_endpoints_are_passed_over() {
        let line = json!({"custom_id": "a", "url": "/v1/embeddings", "body": {"model": "m", "input": "a"}});
        let found = find(line, None);
        assert_eq!((found.bodies.len(), found.passed_over), (0, 1));
        let count = json!({
            "url": "https://generativelanguage.googleapis.com/v1beta/models/gemini-3-pro:countTokens",
            "body": {"generateContentRequest": {"model": "models/gemini-3-pro", "contents": []}}
        });
        let counted = &find(count, None).bodies[0];
        assert_eq!(counted.at.as_str(), "/body/generateContentRequest");
        assert_eq!(counted.headers.sites, [Site::CountedRequest]);
        let code_assist = json!({
            "url": "https://cloudcode-pa.googleapis.com/v1internal:generateContent",
            "body": {"model": "gemini-3-pro", "project": "p", "request": {"contents": []}}
        });
        let body = &find(code_assist, None).bodies[0];
        assert_eq!(body.at.as_str(), "/body/request");
        let mistral = json!({"custom_id": "a", "body": {"messages": []}});
        assert_eq!(find(mistral, None).bodies[0].model_at, ModelAt::BatchJob);
        assert_eq!(find(json!({"choices": []}), None).strangers.len(), 1);
        let converse =
            json!({"url": "/model/amazon.nova-pro-v1:0/converse", "body": {"messages": []}});
        let found = find(converse.clone(), None);
        assert_eq!((found.bodies.len(), found.unsupported.len()), (0, 1));
        let forced = find(converse, Some(WireFormat::AnthropicMessages));
        assert_eq!((forced.bodies.len(), forced.unsupported.len()), (1, 0));
        assert_eq!(
            find(json!({"choices": []}), Some(WireFormat::OpenAiChat))
                .bodies
                .len(),
            1
        );
    }
}
