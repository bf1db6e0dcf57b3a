//! The demands of batch services on the lines around request bodies: their ids, addresses and
//! methods, and of a file as a whole.
//!
//! Input: an object that may be a line of a batch. Output: an [`Envelope`], what is wrong with it
//! alone (`line`), and what is wrong with it beside the lines before it ([`Batch`]). Bodies are
//! judged elsewhere.

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

/// How a batch service writes a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `custom_id`, `method`, `url` and `body`: OpenAI, Azure, and services like them.
    Http,
    /// `custom_id` and `body`: Mistral, and services like it.
    Plain,
    /// `custom_id` and `params`: Anthropic.
    Params,
    /// `key` and `request`: Gemini.
    Keyed,
    /// `recordId` and `modelInput`: Amazon Bedrock.
    Record,
}

/// Whose batch service takes a line, as far as the line tells.
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

/// The request that a line holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    /// An object.
    Object,
    /// Something else.
    Other,
    /// Nothing.
    Nothing,
    /// Its members are beside the id.
    Beside,
}

/// A line of a batch, without the body that it holds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Envelope {
    /// Where it is in the document.
    pub(crate) at: Pointer,
    pub(crate) form: Form,
    /// `true` if it is a line of a batch whatever the other lines are: a log has methods and
    /// addresses too.
    pub(crate) is_certain: bool,
    id: Option<Value>,
    /// A key that is almost that of the id.
    almost_id: Option<String>,
    method: Option<Value>,
    url: Option<Value>,
    held: Held,
    model: Option<String>,
    streams: bool,
}

/// Something wrong with a line of a batch.
#[derive(Debug, PartialEq)]
pub(crate) struct Flaw {
    pub(crate) rule: &'static Rule,
    pub(crate) severity: Severity,
    /// Where, in the document.
    pub(crate) at: Pointer,
    /// `true` if it mentions the key there.
    pub(crate) is_about_key: bool,
    pub(crate) message: String,
    pub(crate) help: &'static str,
}

impl Form {
    /// The key of a line's id.
    fn id_key(self) -> &'static str {
        match self {
            Form::Http | Form::Plain | Form::Params => "custom_id",
            Form::Keyed => "key",
            Form::Record => "recordId",
        }
    }

    /// The key of a line's request.
    fn request_key(self) -> &'static str {
        match self {
            Form::Http | Form::Plain => "body",
            Form::Params => "params",
            Form::Keyed => "request",
            Form::Record => "modelInput",
        }
    }

    /// Returns the form of an object, `None` if it is not a line of a batch. `is_listed` says that
    /// it is in a list of `requests`.
    fn of(members: &Map<String, Value>, is_listed: bool) -> Option<Form> {
        let has_id = members.contains_key("custom_id");
        let is_http = has_any(members, &["method", "url"]);
        if has_any(members, &["modelInput"]) {
            return Some(Form::Record);
        }
        if members.contains_key("params") && (has_id || is_listed || members.len() == 1) {
            return Some(Form::Params);
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

/// The members of a log and a line of results that a line of requests has not.
const RESULTS: [&str; 4] = ["response", "result", "error", "status"];

fn has_any(members: &Map<String, Value>, names: &[&str]) -> bool {
    names.iter().any(|name| members.contains_key(*name))
}

/// Returns `true` if an object is a line of Gemini's: a log keeps more beside `request`.
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
    /// Returns an object as a line of a batch, `None` if it is not one.
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

    /// Returns `true` if there is no body in it to be judged: none at all, or one that no wire
    /// format is known of.
    pub(super) fn is_without_body(&self) -> bool {
        self.is_certain && (self.held != Held::Object || self.is_of_bedrock())
    }

    /// Returns `true` if it is a line of Amazon Bedrock's, whose requests differ from those of the
    /// models' own providers.
    pub(super) fn is_of_bedrock(&self) -> bool {
        self.form == Form::Record
    }

    /// Returns whose service takes it; `named` is the server that somebody named.
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

    /// The path of its address.
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
    /// The form of a line whose id is misspelt.
    fn of_almost(members: &Map<String, Value>) -> Option<Form> {
        ["body", "params"].into_iter().find_map(|name| match name {
            "body" => members.get("body")?.is_object().then_some(Form::Plain),
            _ => members.get("params")?.is_object().then_some(Form::Params),
        })
    }
}

/// Returns `true` if a path is one of Azure's: without the version that OpenAI's begin with.
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

/// A key that differs from `custom_id` in case, in `_`, `-` and spaces alone.
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

/// Returns `true` if a line of the form of HTTP has nothing but what a batch has, and an address
/// that a batch has: a log keeps whole ones.
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
        None if begins => Held::Beside,
        None => Held::Nothing,
    }
}
