//! Prints the strings in request bodies whose tokens are counted, with their estimates, for
//! `scripts/token-error`, which compares them with real tokenizers.
//!
//! Reads JSON lines of the form `{"wire", "body"}`, and writes for each a line of the form
//! `{"wire", "texts", "estimated"}`, in which the estimate is given for each vocabulary.

use std::error::Error;
use std::io::BufRead;

use reqc::runtime::WireFormat;
use reqc::tokens::{TokenEstimate, Vocabulary};
use serde_json::{Map, Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    for line in std::io::stdin().lock().lines() {
        let asked: Value = serde_json::from_str(&line?)?;
        let wire = asked["wire"].as_str().unwrap_or_default();
        let known = WireFormat::ALL
            .into_iter()
            .find(|known| known.name() == wire)
            .ok_or("no such wire format")?;
        let texts = TokenEstimate::texts(&asked["body"], known);
        let estimated: Map<String, Value> = Vocabulary::ALL
            .into_iter()
            .map(|it| {
                (
                    it.name().to_owned(),
                    texts
                        .iter()
                        .map(|text| it.estimated(text))
                        .sum::<u64>()
                        .into(),
                )
            })
            .collect();
        println!(
            "{}",
            json!({"wire": wire, "texts": texts, "estimated": estimated})
        );
    }
    Ok(())
}
