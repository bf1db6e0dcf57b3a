//! Compiled requests in the forms that other programs take.
//!
//! Input: request lines and bodies. Output: files as text. The forms are documented by those who
//! read them: HAR 1.2 (<http://www.softwareishard.com/blog/har-12-spec/>), the batch services of
//! OpenAI (<https://platform.openai.com/docs/guides/batch>) and Anthropic
//! (<https://platform.claude.com/docs/en/build-with-claude/batch-processing>), seen in November
//! 2026. Knows nothing of profiles.

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

/// How requests are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// A folder for each agent, a file for each body, as golden files.
    Tree,
    /// One file with a line for each request.
    Jsonl,
    /// A shell script for each request, which sends it with curl.
    Curl,
    /// One HTTP archive.
    Har,
    /// Input files of OpenAI's batch service, one for each endpoint and model.
    BatchOpenAi,
    /// Request bodies that create message batches of Anthropic's.
    BatchAnthropic,
}

impl Layout {
    /// All layouts, in the order of the help.
    pub const ALL: [Layout; 6] = [
        Layout::Tree,
        Layout::Jsonl,
        Layout::Curl,
        Layout::Har,
        Layout::BatchOpenAi,
        Layout::BatchAnthropic,
    ];

    /// Its name in options.
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
    /// The agent.
    pub agent: Arc<str>,
    /// The context.
    pub context: Arc<str>,
    /// The provider instance.
    pub instance: Arc<str>,
    /// The wire format.
    pub wire: WireFormat,
    /// Whose server answers.
    pub server: Server,
    /// The request line, without keys.
    pub line: RequestLine,
    /// The body, as it is sent.
    pub body: String,
}

impl Request {
    /// Returns where a file about it lies: a folder for the agent, a file for the context.
    fn path(&self, ending: &str) -> String {
        format!("{}/{}.{ending}", slug(&self.agent), self.context)
    }

    fn value(&self) -> Value {
        serde_json::from_str(&self.body).expect("a body is JSON")
    }
}

/// The requests that were laid out.
#[derive(Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exported {
    /// Relative paths and what the files hold.
    pub files: Vec<(String, String)>,
    /// The number of requests that are in them.
    pub requests: usize,
    /// The number of requests that were left out, because the form has no place for them.
    pub left_out: usize,
}

/// Lays out requests. `root` is the folder that files of keys are named from.
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

/// A request as one object.
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

/// A value on one line.
fn line(value: &Value) -> String {
    Text::json_line(value).to_string()
}

/// Returns what the name of a file may hold: everything else becomes a dash.
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
