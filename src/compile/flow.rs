//! Content that agents lose: the losses in each body, reported once for each kind at the nearest
//! location.

mod judged;
mod nearest;
mod agent;
mod fate;

pub(super) use self::agent::AgentFlow;
pub use self::fate::ContentFate;
