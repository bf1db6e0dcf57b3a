//! Exports compiled requests in the formats of other programs.
//!
//! Input: request lines and bodies. Output: files as text. The formats are HAR 1.2
//! (<http://www.softwareishard.com/blog/har-12-spec/>) and the batch formats of OpenAI
//! (<https://platform.openai.com/docs/guides/batch>) and Anthropic
//! (<https://platform.claude.com/docs/en/build-with-claude/batch-processing>), seen in November
//! 2026. This module does not read profiles.

mod batch;
mod curl;
mod har;

pub use curl::curl;

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::profile::slug;
use crate::provider::{RequestLine, Server, WireFormat};
use crate::text::Text;

/// A layout of exported requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// A folder for each agent and a file for each body, as for golden files.
    Tree,
    /// One file with a line for each request.
    Jsonl,
    /// A shell script for each request, which sends the request with curl.
    Curl,
    /// One HTTP archive.
    Har,
    /// Input files for OpenAI's batch service, one for each endpoint and model.
    BatchOpenAi,
    /// Request bodies that create Anthropic's message batches.
    BatchAnthropic,
}

impl Layout {
    /// All layouts, in help text order.
    pub const ALL: [Layout; 6] = [
        Layout::Tree,
        Layout::Jsonl,
        Layout::Curl,
        Layout::Har,
        Layout::BatchOpenAi,
        Layout::BatchAnthropic,
    ];

    /// Returns the name used in options.
    pub fn name(self) -> &'static str {
        match self {
            Layout::Tree => "tree",
            Layout::Jsonl => "jsonl",
            Layout::Curl => "curl",
            Layout::Har => "har",
            Layout::BatchOpenAi => "batch-openai",
            Layout::BatchAnthropic => "batch-anthropic",
        }
    }
}

/// A compiled request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Request {
    /// The name of the agent that the request belongs to.
    pub agent: Arc<str>,
    /// The name of the context that the request was compiled from.
    pub context: Arc<str>,
    /// The provider instance.
    pub instance: Arc<str>,
    /// The wire format.
    pub wire: WireFormat,
    /// The server that would answer.
    pub server: Server,
    /// The request line, without keys.
    pub line: RequestLine,
    /// The body, as it is sent.
    pub body: String,
}

impl Request {
    /// Returns the path of a file for the request: a folder for the agent, a file for the context.
    fn path(&self, ending: &str) -> String {
        format!("{}/{}.{ending}", slug(&self.agent), self.context)
    }

    fn value(&self) -> Value {
        serde_json::from_str(&self.body).expect("a body is JSON")
    }
}

/// The exported requests.
#[derive(Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exported {
    /// The relative paths and contents of the files.
    pub files: Vec<(String, String)>,
    /// The number of requests in the files.
    pub requests: usize,
    /// The number of requests that were left out, because the layout cannot express them.
    pub left_out: usize,
}

/// Exports requests. The paths of key files are relative to `root`.
pub fn export(layout: Layout, requests: &[Request], root: &Path) -> Exported {
    match layout {
        Layout::Tree => all(
            requests
                .iter()
                .map(|it| (it.path("json"), it.body.clone()))
                .collect(),
            requests,
        ),
        Layout::Jsonl => {
            let lines: Vec<String> = requests.iter().map(|it| line(&object(it))).collect();
            all(
                vec![("requests.jsonl".to_owned(), lines.concat())],
                requests,
            )
        }
        Layout::Curl => all(
            requests
                .iter()
                .map(|it| {
                    (
                        it.path("sh"),
                        format!("#!/bin/sh\n{}", curl(&it.line, &it.body, root)),
                    )
                })
                .collect(),
            requests,
        ),
        Layout::Har => all(
            vec![(
                "requests.har".to_owned(),
                Text::json_data(&har::archive(requests)).to_string(),
            )],
            requests,
        ),
        Layout::BatchOpenAi => batch::openai(requests),
        Layout::BatchAnthropic => batch::anthropic(requests),
    }
}

fn all(files: Vec<(String, String)>, requests: &[Request]) -> Exported {
    Exported {
        files,
        requests: requests.len(),
        left_out: 0,
    }
}

/// Returns a request as one JSON object.
fn object(request: &Request) -> Value {
    json!({
        "agent": &*request.agent,
        "context": &*request.context,
        "provider_instance": &*request.instance,
        "wire": request.wire.name(),
        "method": request.line.method,
        "url": request.line.url,
        "body": request.value(),
    })
}

/// Returns a value as JSON on one line.
fn line(value: &Value) -> String {
    Text::json_line(value).to_string()
}

/// Converts a string to a file name. Every character except ASCII letters, digits, `.`, `-` and `_`
/// becomes a dash.
fn file_name(text: &str) -> String {
    text.trim_matches('/')
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || ".-_".contains(c) {
                c
            } else {
                '-'
            }
        })
        .collect()
}
