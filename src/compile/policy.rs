//! The policy for findings: severities, `[[allow]]`, the command line; and what a repository
//! lowered by them.

mod keys;
mod levels;
mod lowered;
mod newly;

pub(super) use self::levels::{Judgement, Policy, check_codes};
pub use self::levels::{LeftOut, PolicyOptions};
pub(crate) use self::levels::{MOST_OF_A_RULE, check_allowed, check_code};
pub use self::lowered::{Lowered, LoweredKind, LoweredTo};
pub use self::newly::newly_lowered;
