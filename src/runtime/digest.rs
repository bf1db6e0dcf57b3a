//! The digest that tells whether bytes are still those of earlier.

use sha2::{Digest, Sha256};

use crate::text::hex;

/// Returns the SHA-256 of bytes, in hexadecimal.
pub fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
