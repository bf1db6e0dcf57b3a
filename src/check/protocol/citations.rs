//! `protocol/citations`: citations asked for on some documents only.

use serde_json::Value;

use super::super::history::Kind;
use super::{Found, Subject, body_rule};
use crate::provider::WireFormat;

body_rule! {
    History, Error "protocol/citations", "citations are asked for on some documents only",
    "Anthropic cites all documents of a request or none: it refuses a request in which `citations.enabled` is true on one document \
     and not on another.\n\n\
     * wrong: two documents, one with `\"citations\": {\"enabled\": true}`\n\
     * right: both with it, or none\n\n\
     Source: Anthropic's page on citations, seen in November 2026."
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    if subject.wire != WireFormat::AnthropicMessages {
        return;
    }
    let documents = subject.history().parts().filter(|(_, part)| matches!(part.kind, Kind::Media));
    let documents = documents.map(|(_, part)| part.value).filter(|value| value.get("type") == Some(&"document".into()));
    let mut first = None;
    for document in documents {
        let cites = document.pointer("/citations/enabled") == Some(&Value::Bool(true));
        if *first.get_or_insert(cites) != cites {
            found
                .at_member(document, "citations", "citations are enabled on all documents of a request or on none")
                .help("write the same for every document");
        }
    }
}
