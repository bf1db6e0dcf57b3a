//! Client APIs and wire formats: the requirements of providers, and the steps from a rendered body
//! to a request.
//!
//! Input: a rendered body, and the settings of the profile and the request. Output: the final body
//! and the [`RequestLine`]. All functions are pure; none of them renders or sends anything.

mod url;
mod cache;
mod capability;
pub(crate) mod rules;
mod server;
mod retired;
mod spelling;
mod model_names;
mod named;
mod headers;
mod wire;
mod api;
#[cfg(feature = "runtime")]
mod blocks;
mod request;
mod instances;
pub(crate) mod names;
mod tools;
mod wrong_path;

pub use crate::profile::Breakpoint;
pub use api::{Auth, ClientApi};
#[cfg(feature = "runtime")]
pub(crate) use cache::breakpoints_of;
pub(crate) use cache::{CacheMark, CachePlace, Cacheable, LOOKBACK, add_cache_control};
pub use cache::{CachePlan, CacheTtl};
pub use capability::Capability;
pub use headers::ApiHeaders;
pub(crate) use headers::is_domain;
pub(crate) use instances::which_instance;
#[cfg(feature = "cli")]
pub(crate) use instances::which_server;
pub use instances::{check_instances, origins};
pub(crate) use model_names::{UnservedModel, maker_of, unserved as unserved_model};
pub use named::NamedServer;
pub(crate) use named::{
    ENVOY, LLAMA_STACK, LMDEPLOY, MINDIE, MISTRAL_RS, OPENVINO, SGLANG, Software, VLLM, VLLM_MLX,
};
pub(crate) use request::is_in_the_clear;
#[cfg(feature = "runtime")]
pub(crate) use request::is_loopback;
#[cfg(feature = "runtime")]
pub(crate) use request::placeholder;
pub(crate) use request::request_url;
pub use request::{Header, HeaderValue, MODEL_PLACEHOLDER, RequestLine, request_line};
pub use server::Server;
pub(crate) use server::{Site, is_claude_model, is_openai_model, is_workers_ai_model};
pub(crate) use spelling::KnownModels;
#[cfg(feature = "cli")]
pub(crate) use spelling::known_name as known_model;
pub use tools::tool_definitions;
pub(crate) use tools::{Tools, is_injected, shaped, tool_source, with_own_tools};
pub(crate) use url::UrlParts;
#[cfg(feature = "runtime")]
pub(crate) use wire::AnswerForm;
pub use wire::WireFormat;
pub(crate) use wire::{BatchService, OwnPlace, ToolForm, TurnForm};
pub(crate) use wrong_path::WrongPath;
