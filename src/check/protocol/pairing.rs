//! Where the results of calls belong, by wire format and server.

use super::super::history::{Entry, History, Outcome, Role};
use super::super::subject::Subject;
use crate::provider::{Server, WireFormat};

/// Where a server looks for the results of an entry's calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answers {
    /// In the next entry.
    Next,
    /// In the messages of tools right behind it.
    Following,
    /// In any later item.
    Later,
    /// Nowhere in particular: the format has no rule.
    Anywhere,
}

impl Answers {
    /// Anthropic: the next message. Chat Completions and Mistral: tool messages before anything else. Responses: by `call_id`.
    /// Gemini: the next content. Ollama renders whatever comes.
    pub(super) fn of(wire: WireFormat) -> Answers {
        match wire {
            WireFormat::AnthropicMessages | WireFormat::GoogleGenerateContent => Answers::Next,
            WireFormat::OpenAiChat | WireFormat::MistralChat => Answers::Following,
            WireFormat::OpenAiResponses => Answers::Later,
            WireFormat::OllamaChat
            | WireFormat::MistralFim
            | WireFormat::OllamaGenerate
            | WireFormat::LlamaCppInfill => Answers::Anywhere,
        }
    }

    /// The entries in which results of an entry are looked for.
    fn entries<'h, 'b>(self, history: &'h History<'b>, at: usize) -> &'h [Entry<'b>] {
        let later = history.entries.get(at + 1..).unwrap_or_default();
        match self {
            Answers::Next => &later[..later.len().min(1)],
            Answers::Following => {
                let run = later.iter().take_while(|entry| entry.role == Role::Tool).count();
                &later[..run]
            }
            Answers::Later | Answers::Anywhere => later,
        }
    }

    /// The results that are looked at for the calls of an entry.
    pub(super) fn results<'h, 'b: 'h>(
        self,
        history: &'h History<'b>,
        at: usize,
    ) -> impl Iterator<Item = Outcome<'b>> + 'h {
        self.entries(history, at).iter().flat_map(|entry| &entry.parts).filter_map(|part| part.outcome())
    }

    /// Where the results belong, in words.
    pub(super) fn place(self) -> &'static str {
        match self {
            Answers::Next => "in the next message",
            Answers::Following => "in tool messages right behind the call",
            Answers::Later | Answers::Anywhere => "behind the call",
        }
    }
}

/// Whether the server refuses what does not pair. Local servers and unknown ones render it, and the model has to cope.
pub(super) fn is_refused(subject: &Subject<'_>) -> bool {
    match subject.server {
        Server::LmStudio | Server::Ollama | Server::LlamaCpp | Server::Unknown => {
            subject.wire != WireFormat::OpenAiChat
        }
        _ => true,
    }
}
