//! Code that the attacks and the fuzzer share: sandboxes, and the checks in them.

pub(crate) mod checks;
pub(crate) mod recipe;
pub(crate) mod sandbox;
pub(crate) mod server;
