//! Estimates the number of tokens in a request, part by part, before it is sent.
//!
//! Input: a request body, its wire format and its model. Output: a [`TokenEstimate`] with a part
//! for the system prompt, the tools and each message. Text is counted by the model's own tokenizer
//! if the feature `tokenizers` includes it; otherwise, it is estimated from the kinds of its pieces
//! (`scan`). Images are counted by their providers' rules (`media`). A [`Calibration`] learns how
//! estimates differ from the provider's own counts, which answers report as `usage`. This module
//! uses neither profiles nor the disk, and sends nothing.

mod media;
mod parts;
mod scan;
mod vocabulary;

use std::cell::RefCell;

use serde_json::Value;

use crate::provider::WireFormat;
pub use parts::PartKind;
pub use vocabulary::Vocabulary;

/// An estimate of a request's tokens, made before the request is sent.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TokenEstimate {
    /// The parts, in body order. Their sum is the total.
    pub parts: Vec<TokenPart>,
    /// The vocabulary used to count the text.
    pub vocabulary: Vocabulary,
    /// `true` if that vocabulary's tokenizer counted the text, `false` if the count is an estimate.
    pub is_tokenized: bool,
}

/// The tokens in one part of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokenPart {
    /// The kind of part.
    pub kind: PartKind,
    /// The JSON pointer in the body; empty for tokens that the server adds.
    pub pointer: String,
    /// The number of tokens.
    pub tokens: u64,
}

impl TokenEstimate {
    /// Estimates a request body.
    ///
    /// ```
    /// use reqc::runtime::WireFormat;
    /// use reqc::tokens::{PartKind, TokenEstimate};
    ///
    /// let body = serde_json::json!({"system": "Be brief.", "messages": [{"role": "user", "content": "What is a monad?"}]});
    /// let estimate = TokenEstimate::of(&body, WireFormat::AnthropicMessages, "claude-sonnet-5");
    /// assert!(estimate.parts.iter().any(|part| part.kind == PartKind::System));
    /// assert!((10..40).contains(&estimate.total()));
    /// ```
    pub fn of(body: &Value, wire: WireFormat, model: &str) -> TokenEstimate {
        let vocabulary = Vocabulary::of(model, wire);
        let pictures = media::PictureRule::of(model, wire);
        let counter = parts::Counter {
            count: &|text| match is_data(text) {
                true => 0,
                false => vocabulary.count(text),
            },
            wire,
            pictures,
        };
        TokenEstimate {
            parts: counter.parts(body),
            vocabulary,
            is_tokenized: vocabulary.has_tokenizer(),
        }
    }

    /// Returns the strings in a body that are counted. A tokenizer's count of these strings shows
    /// how good an estimate is.
    pub fn texts(body: &Value, wire: WireFormat) -> Vec<String> {
        let texts = RefCell::new(Vec::new());
        let pictures = media::PictureRule::of("", wire);
        let counter = parts::Counter {
            count: &|text| keep(text, &texts),
            wire,
            pictures,
        };
        counter.parts(body);
        texts.into_inner()
    }

    /// Returns the number of tokens in all parts.
    pub fn total(&self) -> u64 {
        self.parts.iter().map(|part| part.tokens).sum()
    }

    /// Returns the number of tokens in all parts of a kind.
    pub fn of_kind(&self, kind: PartKind) -> u64 {
        self.parts
            .iter()
            .filter(|part| part.kind == kind)
            .map(|part| part.tokens)
            .sum()
    }

    /// Returns the estimate corrected by a calibration.
    #[must_use]
    pub fn calibrated(mut self, calibration: &Calibration) -> TokenEstimate {
        self.parts
            .iter_mut()
            .for_each(|part| part.tokens = calibration.corrected(part.tokens));
        self
    }
}

/// Returns the members of a body whose content counts towards the request's length.
pub(crate) fn members(wire: WireFormat) -> impl Iterator<Item = &'static str> {
    parts::members(wire)
}

/// Returns the longer side of a base64 image in pixels, as read from its header; `None` if the
/// header does not contain it.
pub(crate) fn longest_side(base64: &str) -> Option<u32> {
    media::longest_side(base64)
}

/// Returns the shorter side of a base64 image in pixels, as read from its header; `None` if the
/// header does not contain it.
pub(crate) fn shortest_side(base64: &str) -> Option<u32> {
    media::shortest_side(base64)
}

/// The guaranteed share of an estimate, in hundredths. The error was at most 15% at the 95th
/// percentile of real requests in five vocabularies (`docs/runtime.md` has the figures); this
/// allows twice that, because of outliers.
const SURE: u64 = 70;

/// The length to which each run of a repeated character is shortened, because tokenizers have
/// single tokens for long runs, such as rules and indentation.
const LONGEST_RUN: usize = 4;

/// Returns a lower bound on the token count of a body. Only its text is counted; the server's
/// additions, images and documents add more.
pub(crate) fn at_least(body: &Value, wire: WireFormat, model: &str) -> u64 {
    let vocabulary = Vocabulary::of(model, wire);
    let tokens: u64 = TokenEstimate::texts(body, wire)
        .iter()
        .filter(|text| !is_data(text))
        .map(|text| vocabulary.count(&without_runs(text)))
        .sum();
    tokens * SURE / 100
}

/// The minimum length, in bytes, at which a string of only base64 characters is treated as data.
const DATA: usize = 2048;

/// Returns `true` for base64 data: a `data:` URL, or a long string of only base64 characters. If
/// there is no rule for its kind (videos, generated pictures), data counts as zero, because its
/// count as text would be a hundred times too high.
fn is_data(text: &str) -> bool {
    let is_url = text.starts_with("data:")
        && text
            .chars()
            .take(200)
            .collect::<String>()
            .contains(";base64,");
    is_url || (text.len() >= DATA && text.bytes().all(is_digit))
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=-_\r\n".contains(&byte)
}

/// Shortens each run of a repeated character.
fn without_runs(text: &str) -> String {
    let (mut last, mut length) = ('\0', 0);
    let mut kept = text.to_owned();
    kept.retain(|c| {
        length = if c == last { length + 1 } else { 1 };
        last = c;
        length <= LONGEST_RUN
    });
    kept
}

/// Keeps a string instead of counting it.
fn keep(text: &str, texts: &RefCell<Vec<String>>) -> u64 {
    texts.borrow_mut().push(text.to_owned());
    0
}

/// A correction for one model, learned from answers: the ratio of a provider's input token count to
/// the estimate.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Calibration {
    /// The sum of the estimates so far; later answers weigh more.
    estimated: f64,
    /// The sum of the provider's counts.
    counted: f64,
}

/// The weight of earlier answers relative to a new one.
const KEPT: f64 = 0.7;

/// The maximum correction in either direction: a larger deviation has a different cause, such as a
/// gateway's own prompt.
const MOST: f64 = 3.0;

impl Calibration {
    /// Learns from an answer, given the uncalibrated estimate of its request and the number of
    /// input tokens in its `usage`, including cached ones. A count of zero is ignored.
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of tokens are far below 2^53"
    )]
    pub fn learn(&mut self, estimated: u64, counted: u64) {
        if estimated > 0 && counted > 0 {
            self.estimated = self.estimated * KEPT + estimated as f64;
            self.counted = self.counted * KEPT + counted as f64;
        }
    }

    /// Returns the factor for estimates: 1 before the first answer, and always between ⅓ and 3.
    pub fn factor(&self) -> f64 {
        if self.estimated > 0.0 {
            (self.counted / self.estimated).clamp(1.0 / MOST, MOST)
        } else {
            1.0
        }
    }

    /// Returns the corrected estimate.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "counts of tokens are small and not negative"
    )]
    pub fn corrected(&self, tokens: u64) -> u64 {
        (tokens as f64 * self.factor()).round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_calibration_follows_what_the_provider_counts_and_believes_no_nonsense() {
        let mut calibration = Calibration::default();
        assert_eq!(calibration.corrected(1_000), 1_000);
        calibration.learn(1_000, 1_300);
        assert_eq!(calibration.corrected(1_000), 1_300);
        for _ in 0..20 {
            calibration.learn(2_000, 2_200);
        }
        assert!(
            (calibration.factor() - 1.1).abs() < 0.001,
            "{}",
            calibration.factor()
        );
        calibration.learn(0, 50);
        calibration.learn(50, 0);
        assert!((calibration.factor() - 1.1).abs() < 0.001);
        calibration.learn(1, u64::MAX);
        assert!((calibration.factor() - 3.0).abs() < f64::EPSILON);
    }

    #[test]
    fn parts_add_up_in_every_wire_format() {
        let message = json!([{"role": "user", "content": "What is a monad?"}]);
        let bodies = [
            (
                WireFormat::AnthropicMessages,
                json!({"system": "Be brief.", "messages": message}),
            ),
            (WireFormat::OpenAiChat, json!({"messages": message})),
            (
                WireFormat::OpenAiResponses,
                json!({"input": "What is a monad?"}),
            ),
            (
                WireFormat::GoogleGenerateContent,
                json!({"contents": [{"parts": [{"text": "What is a monad?"}]}]}),
            ),
            (WireFormat::MistralChat, json!({"messages": message})),
            (
                WireFormat::MistralFim,
                json!({"prompt": "What is", "suffix": " a monad?"}),
            ),
            (WireFormat::OllamaChat, json!({"messages": message})),
            (
                WireFormat::OllamaGenerate,
                json!({"prompt": "What is a monad?"}),
            ),
            (
                WireFormat::LlamaCppInfill,
                json!({"input_prefix": "What is", "input_suffix": " a monad?"}),
            ),
        ];
        for (wire, body) in bodies {
            let estimate = TokenEstimate::of(&body, wire, "m");
            assert!((4..30).contains(&estimate.total()), "{wire:?} {estimate:?}");
            for part in estimate
                .parts
                .iter()
                .filter(|part| !part.pointer.is_empty())
            {
                assert!(
                    body.pointer(&part.pointer).is_some(),
                    "{wire:?} {}",
                    part.pointer
                );
            }
        }
    }

    #[test]
    fn nothing_is_counted_that_no_model_reads() {
        let plain = json!({"messages": [{"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}]}]});
        let mut signed = plain.clone();
        signed["messages"][0]["content"][0]["signature"] = json!("A".repeat(10_000));
        signed["messages"][0]["content"][0]["cache_control"] = json!({"type": "ephemeral"});
        let count = |body: &Value| {
            TokenEstimate::of(body, WireFormat::AnthropicMessages, "claude-sonnet-5").total()
        };
        assert_eq!(count(&plain), count(&signed));
    }

    #[test]
    fn an_image_counts_by_its_size_and_not_by_its_bytes() {
        use base64::Engine;
        let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        png.extend(1024u32.to_be_bytes());
        png.extend(1024u32.to_be_bytes());
        png.extend([8, 2, 0, 0, 0]);
        png.extend(std::iter::repeat_n(7, 900_000));
        let data = base64::engine::general_purpose::STANDARD.encode(&png);
        let source = json!({"type": "base64", "media_type": "image/png", "data": data});
        let claude = json!({"messages": [{"role": "user", "content": [{"type": "image", "source": source}]}]});
        let total =
            TokenEstimate::of(&claude, WireFormat::AnthropicMessages, "claude-haiku-4-5").total();
        assert!(
            (1_369..1_390).contains(&total),
            "37 patches of 28 pixels each way, and the message: {total}"
        );
        let url = format!("data:image/png;base64,{data}");
        let gpt = json!({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]});
        let total = TokenEstimate::of(&gpt, WireFormat::OpenAiChat, "gpt-4o").total();
        assert!(
            (765..780).contains(&total),
            "four tiles of 170 and 85, and the message: {total}"
        );
        let total = TokenEstimate::of(&gpt, WireFormat::OpenAiChat, "gpt-5.6-terra").total();
        assert!(
            (1_229..1_245).contains(&total),
            "32 patches of 32 pixels each way, by 1.2: {total}"
        );
        let part = json!({"inlineData": {"mimeType": "image/png", "data": data}});
        let gemini = json!({"contents": [{"role": "user", "parts": [part]}]});
        let total =
            TokenEstimate::of(&gemini, WireFormat::GoogleGenerateContent, "gemini-2.5-pro").total();
        assert!(
            (1_032..1_050).contains(&total),
            "four tiles of 258: {total}"
        );
        let ollama = json!({"messages": [{"role": "user", "content": "Look.", "images": [data]}]});
        let total = TokenEstimate::of(&ollama, WireFormat::OllamaChat, "qwen3-vl:8b").total();
        assert!((500..2_000).contains(&total), "{total}");
    }
}
