//! reqc
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
pub mod resolve;
pub mod source;
pub mod system;
pub mod toml;
pub mod unit;
pub mod world;
