//! What the attacks and the fuzzer share: sandboxes, and what must hold in them.

#![allow(dead_code, reason = "the fuzzer uses a part of it")]

pub(crate) mod checks;
pub(crate) mod recipe;
pub(crate) mod sandbox;
pub(crate) mod server;
