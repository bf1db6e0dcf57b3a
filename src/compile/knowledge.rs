//! Known facts about the model in a body that was not compiled from a profile.

use super::compiler::Compiler;
use crate::check::families::{ModelFacts, Route};
use crate::provider::{ApiHeaders, Server, WireFormat};
use crate::repo::{Price, Property};

/// The known facts about a model on a server.
#[derive(Debug, Clone, Default)]
pub(crate) struct ModelKnowledge {
    /// The maximum number of tokens in a request and its answer together.
    pub(crate) context_window: Option<i64>,
    /// The length of the shortest prefix that is cached, in tokens.
    pub(crate) cache_minimum: Option<i64>,
    /// The model's token price.
    pub(crate) price: Option<Price>,
    /// `true` if thinking blocks are valid only after the unchanged content that preceded them.
    pub(crate) binds_thinking: bool,
}

impl ModelKnowledge {
    /// Returns the known facts about a model on a server.
    pub(crate) fn of(
        compiler: &Compiler,
        wire: WireFormat,
        server: Server,
        model: &str,
    ) -> ModelKnowledge {
        let headers = ApiHeaders::default();
        let facts = ModelFacts::of(
            &compiler.repo.families,
            Route {
                wire,
                server,
                headers: &headers,
            },
            Some(model),
        );
        ModelKnowledge {
            context_window: facts.context_window().map(|(window, _)| window),
            cache_minimum: facts
                .value(|family| family.cache_minimum)
                .map(|(tokens, _)| tokens),
            price: facts.price(),
            binds_thinking: wire.binds_thinking() && facts.is(Property::BoundThinking),
        }
    }
}
