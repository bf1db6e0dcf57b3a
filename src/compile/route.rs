//! Routes files to agents: finds the first agent in a roster whose `match` accepts a file.

mod router;
pub(super) mod rosters;
mod rerouted;

pub use self::rerouted::{Rerouted, rerouted};
pub use self::router::{PassedOver, Route, Router};
