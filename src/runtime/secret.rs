//! Keys: where a reference leads, without ever showing what is there.
//!
//! Input: a [`SecretRef`] of a provider instance. Output: a [`SecretString`], which prints as
//! nothing and is wiped when it is dropped. The real ones are
//! [`SystemSecrets`](crate::system::SystemSecrets).

use std::fmt;

pub use secrecy::{ExposeSecret, SecretString};

use super::{Category, Error};
#[doc(inline)]
pub use crate::repo::SecretRef;

/// Where keys come from.
pub trait Secrets: Send + Sync {
    /// The key behind a reference. May block for as long as a keyring asks the person for a
    /// password.
    ///
    /// # Errors
    ///
    /// Why there is none; never a part of one.
    fn read(&self, reference: &SecretRef) -> Result<SecretString, SecretError>;
}

/// Why there is no key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SecretError {
    /// There is nothing where the reference leads. The phrase says where that is and what to do.
    Missing(String),
    /// There is something, but it cannot be used. The phrase says why.
    Unreadable(String),
}

impl SecretError {
    /// The phrase.
    pub fn message(&self) -> &str {
        match self {
            SecretError::Missing(message) | SecretError::Unreadable(message) => message,
        }
    }
}

impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for SecretError {}

impl From<SecretError> for Error {
    fn from(error: SecretError) -> Error {
        Error::new(Category::Auth, error.message())
    }
}

/// Keys in memory: for tests, and for hosts that have them already.
#[derive(Debug, Default)]
pub struct MemorySecrets {
    keys: Vec<(SecretRef, SecretString)>,
}

impl MemorySecrets {
    /// With one more key; one behind the same reference is replaced.
    #[must_use]
    pub fn with(mut self, reference: SecretRef, key: impl Into<String>) -> MemorySecrets {
        self.keys.retain(|(known, _)| *known != reference);
        self.keys.push((reference, key.into().into()));
        self
    }
}

impl Secrets for MemorySecrets {
    fn read(&self, reference: &SecretRef) -> Result<SecretString, SecretError> {
        let found = self
            .keys
            .iter()
            .find(|(known, _)| known == reference)
            .map(|(_, key)| key.clone());
        found.ok_or_else(|| SecretError::Missing(format!("memory holds nothing for `{reference}`")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_in_memory_are_found_and_not_shown() {
        let reference = SecretRef::Env("A_KEY".into());
        let secrets = MemorySecrets::default()
            .with(reference.clone(), "old")
            .with(reference.clone(), "planted-value");
        assert!(!format!("{secrets:?}").contains("planted"));
        assert_eq!(
            secrets
                .read(&reference)
                .expect("it was put there")
                .expose_secret(),
            "planted-value"
        );
        let error = secrets
            .read(&SecretRef::File("x".into()))
            .expect_err("nothing is there");
        assert_eq!(Error::from(error).category, Category::Auth);
    }
}
