//! The digest that tells whether bytes are still those of earlier.

use sha2::{Digest, Sha256};

use crate::text::hex;

/// The SHA-256 of some bytes, in hexadecimal.
pub fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
