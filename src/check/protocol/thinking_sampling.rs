//! `protocol/thinking-sampling`: sampling beside thinking, at Anthropic.

use super::value::is_type;
use super::{Found, Subject, body_rule};
use crate::provider::WireFormat;

body_rule! {
    Body, Error "protocol/thinking-sampling", "sampling is asked for that thinking forbids",
    "With thinking on, Anthropic's API takes `temperature` only as 1, `top_p` only from 0.95 to 1, and no `top_k`. Everything else is \
     refused: *temperature may only be set to 1 when thinking is enabled*.\n\n\
     * wrong: `temperature = 0.2` with `thinking = { type = \"adaptive\" }`\n\
     * right: no `temperature`\n\n\
     Sources, seen in November 2026: Anthropic's page on extended thinking, *feature compatibility*. Later models refuse \
     these members altogether: `protocol/model-parameter`."
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    if subject.wire != WireFormat::AnthropicMessages {
        return;
    }
    let is_on = |thinking: &serde_json::Value| is_type(thinking, "enabled") || is_type(thinking, "adaptive");
    if !subject.member("thinking").is_some_and(is_on) {
        return;
    }
    let range = |least: f64, most: f64| move |number: f64| number < least || number > most;
    let asks: [(&str, &str, &dyn Fn(f64) -> bool); 3] = [
        ("temperature", "1", &range(1.0, 1.0)),
        ("top_p", "0.95 to 1", &range(0.95, 1.0)),
        ("top_k", "nothing", &|_| true),
    ];
    for (name, takes, is_wrong) in asks {
        let Some(value) = subject.member(name).filter(|value| value.as_f64().is_some_and(is_wrong)) else { continue };
        let message = format!("`{name}` is {value}, and with thinking on the API takes {takes}");
        found.at(value, message).help("leave it out, or turn thinking off");
    }
}
