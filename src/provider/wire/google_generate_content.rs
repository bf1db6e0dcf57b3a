//! Gemini `generateContent`.
//!
//! The path contains the model. Provider-specific blocks: see `google-genai` 3.4, `types.py`,
//! `Part` and `Candidate`. Tool names: see `FunctionDeclaration.name`.

#[cfg(feature = "runtime")]
use super::facts::AnswerForm;
use super::facts::{Facts, OwnPlace, ToolForm, TurnForm};
use crate::conversation::ProviderBlockKind::Kept;
use crate::conversation::{NameRule, ProviderBlockKinds};
use crate::provider::Capability;
use crate::render::IdRule;

pub(super) static FACTS: Facts = Facts {
    name: "google-generate-content",
    paths: &[":generateContent", ":streamGenerateContent", ":countTokens"],
    only_at: None,
    begins_with: &["contents", "systemInstruction", "system_instruction"],
    has_model_in_body: false,
    has_two_spellings: true,
    capabilities: &[Capability::Tools, Capability::Thinking],
    turns: TurnForm::Contents,
    history: Some("contents"),
    continued_by: &[],
    system: &["systemInstruction", "system_instruction"],
    prompt: &[],
    gap: None,
    answer_form: &[
        "/generationConfig/responseSchema",
        "/generationConfig/responseJsonSchema",
    ],
    longest_answer: &[],
    needs_limit: false,
    tools: ToolForm::Declarations,
    drops_keywords: false,
    has_arguments_as_text: false,
    ids: IdRule::Any,
    has_ids: false,
    names: NameRule::Dotted(128),
    checks_reasoning: false,
    clouds: &[],
    binds_thinking: false,
    has_cache_breakpoints: false,
    own_blocks: ProviderBlockKinds {
        known: &[
            ("groundingMetadata", Kept),
            ("citationMetadata", Kept),
            ("urlContextMetadata", Kept),
            ("safetyRatings", Kept),
            ("logprobsResult", Kept),
            ("avgLogprobs", Kept),
            ("groundingAttributions", Kept),
        ],
        keeps_unknown: false,
    },
    own_place: OwnPlace::Parts,
    batches: None,
    #[cfg(feature = "runtime")]
    answers: AnswerForm::Gemini,
    #[cfg(feature = "runtime")]
    streams_lines: false,
    #[cfg(feature = "runtime")]
    events: &[],
};
