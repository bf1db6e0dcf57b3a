//! Content that agents lose: what `flow` finds in each body, reported once for each kind at the
//! place that comes nearest.

mod judged;
mod nearest;
mod agent;
mod fate;

pub(super) use self::agent::AgentFlow;
pub use self::fate::ContentFate;
