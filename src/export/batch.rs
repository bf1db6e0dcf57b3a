//! Writes input for the batch services of OpenAI and Anthropic.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Exported, Request, file_name, line};
use crate::provider::{BatchService, Server};
use crate::text::hex;

/// The maximum number of requests and bytes in a file for OpenAI.
const OPENAI: Limits = Limits {
    requests: 50_000,
    bytes: 200_000_000,
};
/// The maximum number of requests and bytes in a file for Anthropic.
const ANTHROPIC: Limits = Limits {
    requests: 100_000,
    bytes: 256_000_000,
};
/// The maximum length of a request ID for Anthropic. IDs consist of letters, digits, `_` and `-`.
const LONGEST_ID: usize = 64;

struct Limits {
    requests: usize,
    bytes: usize,
}

/// Writes one line for each request, into one file for each endpoint and model.
pub(super) fn openai(requests: &[Request]) -> Exported {
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (request, endpoint) in requests
        .iter()
        .filter_map(|request| Some((request, endpoint(request)?)))
    {
        let body = batched(request);
        let model = body["model"].as_str().unwrap_or("no-model");
        let name = format!(
            "{}-{}",
            file_name(endpoint.trim_start_matches("/v1/")),
            file_name(model)
        );
        let item =
            json!({"custom_id": id(request), "method": "POST", "url": endpoint, "body": body});
        files.entry(name).or_default().push(line(&item));
    }
    exported(requests, files, &OPENAI, "jsonl", <[String]>::concat)
}

/// Returns the endpoint of a request, if OpenAI's batch service supports it.
fn endpoint(request: &Request) -> Option<&'static str> {
    match request.wire.facts().batches? {
        BatchService::OpenAi(endpoint) => (request.server == Server::OpenAi).then_some(endpoint),
        BatchService::Anthropic => None,
    }
}

/// Writes the request bodies that create message batches.
pub(super) fn anthropic(requests: &[Request]) -> Exported {
    let items: Vec<String> = requests
        .iter()
        .filter(|request| {
            request.wire.facts().batches == Some(BatchService::Anthropic)
                && request.server == Server::Anthropic
        })
        .map(|request| json!({"custom_id": id(request), "params": batched(request)}).to_string())
        .collect();
    let files = if items.is_empty() {
        BTreeMap::new()
    } else {
        BTreeMap::from([("messages".to_owned(), items)])
    };
    exported(requests, files, &ANTHROPIC, "json", |items| {
        format!("{{\"requests\": [\n{}\n]}}\n", items.join(",\n"))
    })
}

/// Splits file contents so that each part is within a service's limits.
fn exported(
    requests: &[Request],
    files: BTreeMap<String, Vec<String>>,
    limits: &Limits,
    ending: &str,
    put_together: impl Fn(&[String]) -> String,
) -> Exported {
    let mut exported = Exported::default();
    for (name, items) in files {
        for (at, part) in parts(&items, limits).into_iter().enumerate() {
            let number = if at == 0 {
                String::new()
            } else {
                format!("-{}", at + 1)
            };
            exported.requests += part.len();
            exported
                .files
                .push((format!("{name}{number}.{ending}"), put_together(part)));
        }
    }
    exported.left_out = requests.len() - exported.requests;
    exported
}

fn parts<'i>(items: &'i [String], limits: &Limits) -> Vec<&'i [String]> {
    let (mut parts, mut start, mut bytes) = (Vec::new(), 0, 0);
    for (at, item) in items.iter().enumerate() {
        if at > start && (at - start == limits.requests || bytes + item.len() > limits.bytes) {
            parts.push(&items[start..at]);
            (start, bytes) = (at, 0);
        }
        bytes += item.len() + 2;
    }
    parts.push(&items[start..]);
    parts
}

/// Returns the body without the members that request a stream, because batches have no streams.
fn batched(request: &Request) -> Value {
    let mut body = request.value();
    if let Some(members) = body.as_object_mut() {
        members.shift_remove("stream");
        members.shift_remove("stream_options");
    }
    body
}

/// Returns an ID that both services accept, built from the agent and the context.
fn id(request: &Request) -> String {
    let name = request.path("");
    let name = name.trim_end_matches('.');
    let fit: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '-' {
                c
            } else {
                '_'
            }
        })
        .collect();
    let is_same = name
        .chars()
        .filter(|c| !c.is_ascii_alphanumeric() && *c != '-')
        .collect::<BTreeSet<_>>()
        == BTreeSet::from(['/']);
    if is_same && fit.len() <= LONGEST_ID {
        return fit;
    }
    let print = hex(&Sha256::digest(name.as_bytes())[..8]);
    format!("{}_{print}", &fit[..fit.len().min(LONGEST_ID - 17)])
}
