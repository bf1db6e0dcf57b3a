//! reqc
pub mod context;
pub mod conversation;
pub mod diag;
pub mod json;
pub mod profile;
pub mod provider;
pub mod render;
pub mod repo;
pub mod report;
pub mod resolve;
pub mod source;
pub mod system;
pub mod toml;
pub mod world;
