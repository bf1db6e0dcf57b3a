//! The requirements of batch services for the lines around request bodies (IDs, addresses, methods)
//! and for a file as a whole.
//!
//! Input: an object that may be a line of a batch. Output: an [`Envelope`], the mistakes in the
//! line itself (`line`), and those that depend on the lines before it ([`Batch`]). The bodies
//! themselves are checked elsewhere.

pub(crate) mod rules;
mod file;
mod line;

pub(crate) use file::{Batch, Place};

use serde_json::{Map, Value};

use super::recognise::begins_with;
use super::wrapper::wrapper;
use crate::diag::{Rule, Severity};
use crate::json::Pointer;
use crate::provider::{Server, UrlParts, WireFormat, is_openai_model};

/// The form of a batch line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `custom_id`, `method`, `url` and `body`: OpenAI, Azure, and similar services.
    Http,
    /// `custom_id` and `body`: Mistral, and similar services.
    Plain,
    /// `custom_id` and `params`: Anthropic.
    Params,
    /// `key` and `request`: Gemini.
    Keyed,
    /// `recordId` and `modelInput`: Amazon Bedrock.
    Record,
}

/// The batch service that accepts a line, if the line identifies it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    OpenAi,
    Azure,
    Anthropic,
    Mistral,
    Gemini,
    Bedrock,
    Unknown,
}

/// The request in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    /// An object.
    Object,
    /// Something else.
    Other,
    /// The request is missing.
    Nothing,
    /// The request has the name that another service uses.
    Misnamed(&'static str),
    /// The request's members are in the same object as the ID.
    Beside,
}

/// A line of a batch, without its body.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Envelope {
    /// The location of the line in the document.
    pub(crate) at: Pointer,
    pub(crate) form: Form,
    /// `true` if this is certainly a batch line, regardless of the other lines. Otherwise, it may
    /// be a log line, because logs also have methods and addresses.
    pub(crate) is_certain: bool,
    id: Option<Value>,
    /// A key that is probably a misspelled ID key.
    almost_id: Option<String>,
    method: Option<Value>,
    url: Option<Value>,
    held: Held,
    model: Option<String>,
    streams: bool,
}

/// A mistake in a line of a batch.
#[derive(Debug, PartialEq)]
pub(crate) struct Flaw {
    pub(crate) rule: &'static Rule,
    pub(crate) severity: Severity,
    /// The location of the mistake in the document.
    pub(crate) at: Pointer,
    /// `true` if the mistake is in the key at that location.
    pub(crate) is_about_key: bool,
    pub(crate) message: String,
    pub(crate) help: &'static str,
}

impl Form {
    /// Returns the key of a line's ID.
    fn id_key(self) -> &'static str {
        match self {
            Form::Http | Form::Plain | Form::Params => "custom_id",
            Form::Keyed => "key",
            Form::Record => "recordId",
        }
    }

    /// Returns the key of a line's request.
    fn request_key(self) -> &'static str {
        match self {
            Form::Http | Form::Plain => "body",
            Form::Params => "params",
            Form::Keyed => "request",
            Form::Record => "modelInput",
        }
    }

    /// Returns the form of an object; `None` if the object is not a line of a batch. `is_listed`
    /// means that the object is in a list of `requests`.
    fn of(members: &Map<String, Value>, is_listed: bool) -> Option<Form> {
        let has_id = members.contains_key("custom_id");
        let is_http = has_any(members, &["method", "url"]);
        if has_any(members, &["modelInput"]) {
            return Some(Form::Record);
        }
        if members.contains_key("params") && (has_id || is_listed || members.len() == 1) {
            return Some(Form::Params);
        }
        if let Some((form, _)) = misnamed(members) {
            return Some(form);
        }
        if is_keyed(members) {
            return Some(Form::Keyed);
        }
        if members.contains_key("body") && !has_any(members, &RESULTS) {
            return if is_http {
                Some(Form::Http)
            } else {
                Some(Form::Plain).filter(|_| has_id || is_listed)
            };
        }
        let is_empty = has_id && !has_any(members, &RESULTS) && wrapper(members).is_none();
        is_empty.then_some(if is_http { Form::Http } else { Form::Params })
    }
}

/// Members that logs and result lines have and request lines do not.
const RESULTS: [&str; 4] = ["response", "result", "error", "status"];

fn has_any(members: &Map<String, Value>, names: &[&str]) -> bool {
    names.iter().any(|name| members.contains_key(*name))
}

/// Returns the form of a line that consists of an ID and a request under the name that a different
/// service uses, together with that name.
fn misnamed(members: &Map<String, Value>) -> Option<(Form, &'static str)> {
    let (id, name, form) = [
        ("custom_id", "request", Form::Plain),
        ("key", "body", Form::Keyed),
        ("key", "params", Form::Keyed),
    ]
    .into_iter()
    .find(|(id, name, _)| members.contains_key(*id) && members.contains_key(*name))?;
    let is_line = members.len() == 2 && members[id].is_string() && members[name].is_object();
    is_line.then_some((form, name))
}

/// Returns `true` if an object is a line in Gemini's form. Logs have more members in addition to
/// `request`.
fn is_keyed(members: &Map<String, Value>) -> bool {
    let request = members.get("request").and_then(Value::as_object);
    let is_of_gemini =
        request.is_some_and(|it| has_any(it, begins_with(WireFormat::GoogleGenerateContent)));
    is_of_gemini
        && members
            .keys()
            .all(|name| matches!(name.as_str(), "key" | "request" | "metadata"))
        || members.len() == 2 && members.contains_key("key") && members.contains_key("request")
}

impl Envelope {
    /// Reads an object as a line of a batch; `None` if the object is not one.
    pub(super) fn of(
        members: &Map<String, Value>,
        at: &Pointer,
        is_listed: bool,
    ) -> Option<Envelope> {
        let almost_id = almost_id(members);
        let form = Form::of(members, is_listed)
            .or(almost_id.as_ref().and_then(|_| Form::of_almost(members)))?;
        let request = members.get(form.request_key());
        let model = request
            .and_then(|request| request.get("model"))
            .and_then(Value::as_str);
        let id = members.get(form.id_key()).cloned();
        Some(Envelope {
            at: at.clone(),
            form,
            is_certain: id.is_some() || almost_id.is_some() || is_listed || is_bare(members, form),
            id,
            almost_id,
            method: members.get("method").cloned(),
            url: members.get("url").cloned(),
            held: held(members, request),
            model: model.map(str::to_owned),
            streams: request
                .is_some_and(|request| request.get("stream") == Some(&Value::Bool(true))),
        })
    }

    /// Returns `true` if the line has no body to check, because its body is missing or has an
    /// unknown wire format.
    pub(super) fn is_without_body(&self) -> bool {
        self.is_certain && (self.held != Held::Object || self.is_of_bedrock())
    }

    /// Returns `true` if the line is for Amazon Bedrock, whose requests differ from those of the
    /// models' own providers.
    pub(super) fn is_of_bedrock(&self) -> bool {
        self.form == Form::Record
    }

    /// Returns the service that accepts the line; `named` is the server that the user specified.
    fn service(&self, named: Option<Server>) -> Service {
        let is_openai =
            named == Some(Server::OpenAi) || self.model.as_deref().is_some_and(is_openai_model);
        match self.form {
            Form::Params => Service::Anthropic,
            Form::Keyed => Service::Gemini,
            Form::Record => Service::Bedrock,
            // A deployment may have any name, and its address has no version.
            Form::Http if self.path().is_some_and(is_azure) => Service::Azure,
            Form::Http | Form::Plain if is_openai => Service::OpenAi,
            Form::Plain if named.is_none_or(|server| server == Server::Mistral) => Service::Mistral,
            Form::Http | Form::Plain => Service::Unknown,
        }
    }

    /// Returns the path in the line's address.
    fn path(&self) -> Option<&str> {
        self.url.as_ref()?.as_str()
    }

    fn member(&self, name: &str) -> Pointer {
        self.at.member(name)
    }

    fn inner(&self, name: &str) -> Pointer {
        self.member(self.form.request_key()).member(name)
    }
}

impl Form {
    /// Returns the form of a line whose ID is misspelled.
    fn of_almost(members: &Map<String, Value>) -> Option<Form> {
        ["body", "params"].into_iter().find_map(|name| match name {
            "body" => members.get("body")?.is_object().then_some(Form::Plain),
            _ => members.get("params")?.is_object().then_some(Form::Params),
        })
    }
}

/// Returns `true` if a path is Azure's. It lacks the version that OpenAI's paths begin with.
fn is_azure(path: &str) -> bool {
    [
        "/chat/completions",
        "/responses",
        "/embeddings",
        "/completions",
    ]
    .contains(&path)
        || UrlParts::of(path).path().starts_with("/openai/")
}

/// Returns a key that differs from `custom_id` only in case, `_`, `-` and spaces.
fn almost_id(members: &Map<String, Value>) -> Option<String> {
    members
        .keys()
        .find(|name| is_almost_id(name))
        .filter(|_| !members.contains_key("custom_id"))
        .cloned()
}

fn is_almost_id(name: &str) -> bool {
    let letters = name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .flat_map(char::to_lowercase);
    name != "custom_id" && letters.eq("customid".chars())
}

/// Returns `true` for a line in Bedrock's form, and for a line in the HTTP form that has only the
/// members of a batch line and a relative address. Logs have full URLs.
fn is_bare(members: &Map<String, Value>, form: Form) -> bool {
    let is_short = members
        .get("url")
        .and_then(Value::as_str)
        .is_some_and(|url| url.starts_with('/'));
    form == Form::Http
        && is_short
        && members
            .keys()
            .all(|name| matches!(name.as_str(), "method" | "url" | "body"))
        || form == Form::Record
}

fn held(members: &Map<String, Value>, request: Option<&Value>) -> Held {
    let begins = WireFormat::ALL
        .into_iter()
        .flat_map(begins_with)
        .any(|name| members.contains_key(*name));
    match request {
        Some(Value::Object(_)) => Held::Object,
        Some(_) => Held::Other,
        None if let Some((_, name)) = misnamed(members) => Held::Misnamed(name),
        None if begins => Held::Beside,
        None => Held::Nothing,
    }
}
