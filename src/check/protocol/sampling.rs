//! `protocol/sampling`: sampling that a format refuses or ignores for all its models.

use serde_json::Value;

use super::{Found, Subject, body_rule};
use crate::provider::{Server, WireFormat};

body_rule! {
    Body, Error "protocol/sampling", "sampling is asked for in a way that the API refuses or ignores",
    "Mistral's API refuses `temperature` 0 with a `top_p` other than 1: *top_p must be 1 when using greedy sampling*. Ollama's own \
     API reads sampling from `options` alone; at the top of a body it is ignored, which is a warning.\n\n\
     * wrong: `temperature = 0` and `top_p = 0.9`, for Mistral\n\
     * right: `temperature = 0`\n\
     * wrong: `temperature = 0.2` in the body, for Ollama\n\
     * right: `options.temperature = 0.2`\n\n\
     What single models refuse is told by `protocol/model-parameter`. Sources, seen in November 2026: \
     devoxx/DevoxxGenieIDEAPlugin#338; ollama/ollama fb30760, `api/types.go`."
}

/// What Ollama reads from `options` alone.
const OPTIONS: [&str; 20] = [
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "typical_p",
    "seed",
    "stop",
    "num_predict",
    "num_ctx",
    "num_keep",
    "num_batch",
    "num_gpu",
    "num_thread",
    "repeat_penalty",
    "repeat_last_n",
    "presence_penalty",
    "frequency_penalty",
    "max_tokens",
    "max_output_tokens",
    "max_completion_tokens",
];

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    match subject.wire {
        WireFormat::OllamaChat | WireFormat::OllamaGenerate => ollama(subject, found),
        WireFormat::MistralChat | WireFormat::MistralFim => greedy(subject, found),
        _ if subject.server == Server::Mistral => greedy(subject, found),
        _ => {}
    }
}

fn ollama<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    for (name, value) in subject.members().filter(|(name, value)| !value.is_null() && OPTIONS.contains(name)) {
        let option = if name.ends_with("_tokens") { "num_predict" } else { name };
        let note = found.at(value, format!("`{name}` is ignored here: Ollama reads it from `options`"));
        note.warning().help(format!("write `options.{option}`"));
    }
}

fn greedy<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let is = |value: &Value, number: f64| value.as_f64().is_some_and(|found| (found - number).abs() < f64::EPSILON);
    let is_greedy = subject.member("temperature").is_some_and(|temperature| is(temperature, 0.0));
    let Some(top_p) = subject.member("top_p").filter(|top_p| is_greedy && !is(top_p, 1.0)) else { return };
    let message = format!("`top_p` is {top_p}, and must be 1 while `temperature` is 0");
    found.at(top_p, message).help("leave `top_p` out, or raise `temperature`");
}
