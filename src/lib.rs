//! reqc
pub mod check;
pub mod cli;
pub mod compile;
pub mod context;
pub mod conversation;
pub mod diag;
pub mod diff;
pub mod golden;
pub mod json;
pub mod profile;
pub mod provider;
pub mod render;
pub mod repo;
pub mod report;
pub mod resolve;
pub mod source;
#[expect(clippy::disallowed_methods, reason = "this module is what the others are told to use instead")]
pub mod system;
pub mod toml;
pub mod unit;
pub mod world;
