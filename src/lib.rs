//! reqc
pub mod source; pub mod diag; pub mod world; pub mod toml; pub mod repo; pub mod conversation; pub mod json;
pub mod profile; pub mod resolve;
