//! Shows how many tokens the parts of a request body contain, and which parts are worth shortening.
//!
//! ```sh
//! cargo run --example tokens -- anthropic-messages claude-sonnet-5 < body.json
//! ```

use std::error::Error;

use reqc::runtime::WireFormat;
use reqc::tokens::{PartKind, TokenEstimate};
use serde_json::Value;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [wire, model] = arguments.as_slice() else {
        return Err("usage: tokens WIRE_FORMAT MODEL < BODY".into());
    };
    let body: Value = serde_json::from_reader(std::io::stdin())?;
    println!("{}", report(&body, wire, model)?);
    Ok(())
}

/// Returns the number of tokens in each kind of part, and the largest part.
pub(crate) fn report(body: &Value, wire: &str, model: &str) -> Result<String, Box<dyn Error>> {
    let wire = WireFormat::ALL
        .into_iter()
        .find(|known| known.name() == wire)
        .ok_or("no such wire format")?;
    let estimate = TokenEstimate::of(body, wire, model);
    let kinds = PartKind::ALL.map(|kind| (estimate.of_kind(kind), kind.name()));
    let kinds = kinds
        .into_iter()
        .filter(|(tokens, _)| *tokens > 0)
        .map(|(tokens, name)| format!("{tokens:>7} {name}\n"));
    let mut report: String = kinds.collect();
    report.push_str(&format!("{:>7} in all\n", estimate.total()));
    if let Some(largest) = estimate.parts.iter().max_by_key(|part| part.tokens) {
        report.push_str(&format!("most of it: {}", largest.pointer));
    }
    Ok(report)
}
