//! The vocabularies used to count a model's text, and their numbers of tokens for each kind of
//! piece.
//!
//! OpenAI's two vocabularies and Mistral's are published. Google publishes the vocabulary of Gemma,
//! which its Gemini documentation refers to. Anthropic published the vocabulary of Claude 2, but no
//! later one. The figures below were fitted to these vocabularies by `scripts/token-error`. A
//! [`Calibration`](super::Calibration) corrects the differences from a provider's own count.

use super::scan::{self, KINDS};
use crate::provider::WireFormat;
use crate::repo::ModelName;

/// A tokenizer's vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Vocabulary {
    /// OpenAI's `o200k_base`, used by GPT-4o and later, and by gpt-oss.
    O200k,
    /// OpenAI's `cl100k_base`, used by GPT-4 and GPT-3.5. The vocabularies of Llama 3 and Qwen are
    /// derived from it and are similar.
    Cl100k,
    /// Anthropic's vocabulary for Claude 2, the last one that was published.
    Claude,
    /// Google's vocabulary for Gemma and Gemini.
    Gemini,
    /// Mistral's `tekken`.
    Mistral,
}

/// Prefixes of model names in normal form, and their vocabularies. The first match applies.
const BY_NAME: [(&str, Vocabulary); 24] = [
    ("gpt-4o", Vocabulary::O200k),
    ("gpt-4-1", Vocabulary::O200k),
    ("gpt-4-5", Vocabulary::O200k),
    ("gpt-4", Vocabulary::Cl100k),
    ("gpt-3", Vocabulary::Cl100k),
    ("gpt-", Vocabulary::O200k),
    ("chatgpt", Vocabulary::O200k),
    ("codex", Vocabulary::O200k),
    ("o1", Vocabulary::O200k),
    ("o3", Vocabulary::O200k),
    ("o4", Vocabulary::O200k),
    ("claude", Vocabulary::Claude),
    ("gemini", Vocabulary::Gemini),
    ("gemma", Vocabulary::Gemini),
    ("mistral", Vocabulary::Mistral),
    ("ministral", Vocabulary::Mistral),
    ("magistral", Vocabulary::Mistral),
    ("codestral", Vocabulary::Mistral),
    ("devstral", Vocabulary::Mistral),
    ("pixtral", Vocabulary::Mistral),
    ("open-mistral", Vocabulary::Mistral),
    ("qwen", Vocabulary::Cl100k),
    ("llama", Vocabulary::Cl100k),
    ("deepseek", Vocabulary::Cl100k),
];

impl Vocabulary {
    /// All vocabularies.
    pub const ALL: [Vocabulary; 5] = [
        Vocabulary::O200k,
        Vocabulary::Cl100k,
        Vocabulary::Claude,
        Vocabulary::Gemini,
        Vocabulary::Mistral,
    ];

    /// Returns the stable lower-case name of the vocabulary.
    pub fn name(self) -> &'static str {
        match self {
            Vocabulary::O200k => "o200k",
            Vocabulary::Cl100k => "cl100k",
            Vocabulary::Claude => "claude",
            Vocabulary::Gemini => "gemini",
            Vocabulary::Mistral => "mistral",
        }
    }

    /// Returns the vocabulary of a model. For an unknown model name, returns the usual vocabulary
    /// for the wire format.
    pub fn of(model: &str, wire: WireFormat) -> Vocabulary {
        let name = ModelName::new(model);
        let known = BY_NAME
            .iter()
            .find(|(begins, _)| name.normal().starts_with(begins));
        known.map_or_else(|| usual(wire), |(_, vocabulary)| *vocabulary)
    }

    /// Returns the number of tokens in a string. It is exact if this build has the tokenizer, and
    /// otherwise an estimate.
    pub fn count(self, text: &str) -> u64 {
        self.tokenized(text).unwrap_or_else(|| self.estimated(text))
    }

    /// Estimates the number of tokens in a string from the kinds of its pieces.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "counts are small and not negative"
    )]
    pub fn estimated(self, text: &str) -> u64 {
        let pieces = scan::pieces(text);
        let taken = pieces
            .iter()
            .zip(self.weights())
            .map(|(&count, weight)| count as f64 * weight);
        let tokens = taken.sum::<f64>().round() as u64;
        if text.is_empty() { 0 } else { tokens.max(1) }
    }

    /// Returns the average number of tokens per piece of each kind.
    fn weights(self) -> &'static Weights {
        match self {
            Vocabulary::O200k => &O200K,
            Vocabulary::Cl100k => &CL100K,
            Vocabulary::Claude => &CLAUDE,
            Vocabulary::Gemini => &GEMINI,
            Vocabulary::Mistral => &MISTRAL,
        }
    }

    /// Returns `true` if this build has the vocabulary's own tokenizer.
    pub fn has_tokenizer(self) -> bool {
        self.tokenized("").is_some()
    }

    /// Counts the tokens of a string with the vocabulary's own tokenizer; `None` if this build
    /// lacks it.
    #[cfg(not(feature = "tokenizers"))]
    #[expect(clippy::unused_self, reason = "builds with the feature ask it")]
    fn tokenized(self, _: &str) -> Option<u64> {
        None
    }

    /// Counts the tokens of a string with the vocabulary's own tokenizer; `None` if this build
    /// lacks it.
    #[cfg(feature = "tokenizers")]
    fn tokenized(self, text: &str) -> Option<u64> {
        use std::sync::LazyLock;

        use tiktoken::{CoreBpe, encoding};

        static O200K: LazyLock<CoreBpe> = LazyLock::new(encoding::o200k_base);
        static CL100K: LazyLock<CoreBpe> = LazyLock::new(encoding::cl100k_base);
        let tokenizer = match self {
            Vocabulary::O200k => &O200K,
            Vocabulary::Cl100k => &CL100K,
            Vocabulary::Claude | Vocabulary::Gemini | Vocabulary::Mistral => return None,
        };
        Some(tokenizer.count(text) as u64)
    }
}

/// Returns the vocabulary that most models with a wire format use.
fn usual(wire: WireFormat) -> Vocabulary {
    match wire {
        WireFormat::AnthropicMessages => Vocabulary::Claude,
        WireFormat::OpenAiChat | WireFormat::OpenAiResponses => Vocabulary::O200k,
        WireFormat::GoogleGenerateContent => Vocabulary::Gemini,
        WireFormat::MistralChat | WireFormat::MistralFim => Vocabulary::Mistral,
        WireFormat::OllamaChat | WireFormat::OllamaGenerate | WireFormat::LlamaCppInfill => {
            Vocabulary::Cl100k
        }
    }
}

/// For each kind, the average number of tokens per piece in a vocabulary. The numbers were fitted
/// by least squares to 2,433 samples of 115 kinds: code, prose, JSON, requests, keys, and
/// translations into 100 languages.
type Weights = [f64; KINDS];

/// The weights for `o200k_base`.
const O200K: Weights = [
    0.733, 1.263, 2.106, 0.935, 0.673, 0.847, 0.741, 0.517, 0.175, 1.308, 0.029, 0.712, 0.252,
    0.758, 0.960, 0.659, 0.000, 0.548, 0.415, 0.959, 0.594, 0.781, 0.057, 0.441, 0.840, 0.000,
];

/// The weights for `cl100k_base`.
const CL100K: Weights = [
    0.774, 1.255, 1.946, 1.341, 0.666, 0.742, 0.758, 0.471, 0.159, 1.324, 0.000, 0.783, 0.208,
    0.683, 0.874, 0.695, 0.190, 0.690, 0.575, 1.396, 0.898, 1.221, 0.649, 1.136, 1.224, 0.000,
];

/// The weights for `tekken_240911`.
const MISTRAL: Weights = [
    0.767, 1.277, 2.119, 1.122, 0.696, 0.852, 0.781, 0.511, 0.311, 0.275, 1.019, 0.728, 0.311,
    0.698, 1.029, 0.761, 0.000, 0.590, 0.405, 1.125, 0.566, 0.784, 0.165, 0.509, 0.812, 0.000,
];

/// The weights for the vocabulary of Claude 2.
const CLAUDE: Weights = [
    0.773, 1.295, 1.874, 1.786, 1.213, 1.199, 0.836, 0.000, 0.180, 0.856, 0.135, 1.014, 0.118,
    0.000, 1.033, 0.692, 1.786, 0.553, 0.596, 1.261, 0.913, 1.383, 0.643, 1.265, 1.222, 0.000,
];

/// The weights for Gemma's vocabulary.
const GEMINI: Weights = [
    0.825, 1.120, 1.716, 0.992, 0.942, 1.055, 0.855, 0.206, 0.181, 0.000, 1.018, 0.969, 0.138,
    0.861, 1.251, 0.686, 0.000, 0.484, 0.358, 0.640, 0.304, 0.792, 0.222, 0.543, 0.875, 0.014,
];
