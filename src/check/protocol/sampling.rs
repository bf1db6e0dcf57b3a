//! `protocol/sampling`: sampling settings that a wire format rejects for all models.

use serde_json::Value;

use super::{Found, Subject, body_rule};
use crate::provider::{ClientApi, Server, VLLM};

body_rule! {
    Warning "protocol/sampling", "the sampling settings are rejected by the API",
    "Mistral's API rejects `temperature` 0 with a `top_p` other than 1: *top_p must be 1 when using greedy sampling*. vLLM \
     rejects several answers (`n`) at `temperature` 0, because all would be the same, and a `top_p` of 0; it accepts a `temperature` \
     over 2, which LMDeploy and OpenVINO reject.\n\n\
     * wrong: `temperature = 0` and `top_p = 0.9`, for Mistral\n\
     * right: `temperature = 0`\n\n\
     `protocol/model-parameter` reports settings that only some models reject.",
    seen "2026-11" {
        "devoxx/DevoxxGenieIDEAPlugin#338": "*top_p must be 1 when using greedy sampling*",
        "pkg:github/vllm-project/vllm#vllm/sampling_params.py":
            "vLLM: *n must be 1 when using greedy sampling*, *top_p must be in (0, 1]*",
        "https://github.com/InternLM/lmdeploy/blob/1263d5cd889b7ad500e85b8eb20401327a4516ab/lmdeploy/serve/openai/endpoints/generate.py":
            "LMDeploy: *The temperature must be in [0, 2]*",
    }
}

/// Reports a temperature above 2, which some servers reject. Schemas report a negative temperature.
fn above_two<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let temperature = subject.member("temperature");
    let high = temperature.filter(|it| it.as_f64().is_some_and(|it| it > 2.0));
    if let Some(high) = high {
        let message = format!("`temperature` is {high}, but some servers accept only 0 to 2");
        found.at(high, message).help("use a value from 0 to 2");
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let is_mistral = ClientApi::Mistral.speaks(subject.wire) || subject.server == Server::Mistral;
    let is_greedy = subject
        .member("temperature")
        .is_some_and(|temperature| is(temperature, 0.0));
    let several = subject.member("n").filter(|n| n.as_u64() > Some(1));
    // With beam search, `n` is the number of beams.
    let has_beams = subject.member("use_beam_search") == Some(&Value::Bool(true));
    let is_refused = is_greedy && !has_beams && subject.may_run(VLLM);
    if let Some(several) = several.filter(|_| is_refused) {
        let message = format!(
            "`n` is {several}, but vLLM requires 1 if `temperature` is 0, because all answers would be the same"
        );
        found
            .at(several, message)
            .help("ask for one answer, or raise `temperature`");
    }
    let nothing = subject
        .member("top_p")
        .filter(|top_p| is(top_p, 0.0) && subject.may_run(VLLM));
    if let Some(nothing) = nothing {
        found
            .at(nothing, "`top_p` is 0, but vLLM requires more than 0")
            .help("omit `top_p`, or set `temperature` to 0");
    }
    if subject.may_run(VLLM) {
        above_two(subject, found);
    }
    if !is_mistral {
        return;
    }
    let Some(top_p) = subject
        .member("top_p")
        .filter(|top_p| is_greedy && !is(top_p, 1.0))
    else {
        return;
    };
    let message = format!("`top_p` is {top_p}, but must be 1 if `temperature` is 0");
    found
        .at(top_p, message)
        .help("leave `top_p` out, or raise `temperature`");
}

fn is(value: &Value, number: f64) -> bool {
    value
        .as_f64()
        .is_some_and(|found| (found - number).abs() < f64::EPSILON)
}
