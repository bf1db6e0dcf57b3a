//! Checks rule codes that are given on the command line.

use std::fmt;

use super::levels::{can_silence, is_known};
use crate::compile::rules::all_rules;
use crate::diag::did_you_mean;

/// The reason a code on the command line cannot be used.
#[derive(Debug)]
pub(crate) enum CodeError {
    /// No rule has this code; `near` suggests similar codes, as a phrase.
    Unknown { code: String, near: Option<String> },
    /// The findings of this rule cannot be allowed.
    Fixed { code: String },
}

impl fmt::Display for CodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CodeError::Unknown { code, near } => {
                let near = near.as_deref().unwrap_or("`reqc rule` lists all codes");
                write!(f, "there is no rule `{code}`; {near}")
            }
            CodeError::Fixed { code } => {
                write!(
                    f,
                    "`{code}` cannot be allowed, because an agent without a body would be overlooked"
                )
            }
        }
    }
}

impl std::error::Error for CodeError {}

/// Checks that the findings of a code on the command line can be allowed.
pub(crate) fn check_allowed(code: &str) -> Result<(), CodeError> {
    check_code(code)?;
    match can_silence(code) {
        true => Ok(()),
        false => Err(CodeError::Fixed {
            code: code.to_owned(),
        }),
    }
}

/// Checks that a rule with this code exists.
pub(crate) fn check_code(code: &str) -> Result<(), CodeError> {
    if is_known(code) {
        return Ok(());
    }
    let near = did_you_mean(code, all_rules().iter().map(|rule| rule.code));
    Err(CodeError::Unknown {
        code: code.to_owned(),
        near,
    })
}
