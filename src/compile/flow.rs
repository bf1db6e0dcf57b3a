//! Finds content that agents lose. Each kind of loss in a body is reported once, at the nearest
//! location.

mod judged;
mod nearest;
mod agent;
mod fate;

pub(super) use self::agent::AgentFlow;
pub use self::fate::ContentFate;
