//! reqc
pub mod source; pub mod diag; pub mod world; pub mod toml; pub mod json;
