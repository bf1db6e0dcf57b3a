//! Resolves references to keys, without ever displaying a key.
//!
//! Input: a [`SecretRef`] of a provider instance. Output: a [`SecretString`], which is never
//! printed and is wiped when it is dropped. [`SystemSecrets`](crate::system::SystemSecrets) reads
//! keys from the environment, from files, and from the system's keyring.

use std::fmt;

pub use secrecy::{ExposeSecret, SecretString};

use super::{Category, Error};
#[doc(inline)]
pub use crate::repo::SecretRef;

/// A source of keys.
pub trait Secrets: Send + Sync {
    /// Returns the key that a reference identifies. May block while a keyring asks the user for a
    /// password.
    ///
    /// # Errors
    ///
    /// Returns why there is no key, without any part of a key.
    fn read(&self, reference: &SecretRef) -> Result<SecretString, SecretError>;
}

/// The reason there is no key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SecretError {
    /// The reference identifies nothing. The phrase contains the location that was searched and
    /// what to do.
    Missing(String),
    /// The key exists but cannot be used. The phrase contains the reason.
    Unreadable(String),
}

impl SecretError {
    /// Returns the phrase that describes the error.
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

/// Keys in memory, for tests and for hosts that already have them.
#[derive(Debug, Default)]
pub struct MemorySecrets {
    keys: Vec<(SecretRef, SecretString)>,
}

impl MemorySecrets {
    /// Adds a key, replacing the previous key with the same reference.
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
        found.ok_or_else(|| {
            SecretError::Missing(format!("the in-memory store has no key for `{reference}`"))
        })
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
