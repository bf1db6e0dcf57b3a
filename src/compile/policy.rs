//! The policy for findings (severities, `[[allow]]`, the command line), and the list of checks that
//! a repository lowers.

mod keys;
mod levels;
#[cfg(feature = "cli")]
mod codes;
mod lowered;
mod newly;

#[cfg(feature = "cli")]
pub(crate) use self::codes::{check_allowed, check_code};
pub(crate) use self::levels::MOST_OF_A_RULE;
pub(super) use self::levels::{Judgement, Policy, check_codes};
pub use self::levels::{LeftOut, PolicyOptions};
pub use self::lowered::{Lowered, LoweredKind, LoweredTo};
pub use self::newly::newly_lowered;
