//! A digest that shows whether bytes have changed.

use sha2::{Digest, Sha256};

use crate::text::hex;

/// Returns the SHA-256 of bytes, in hexadecimal.
pub fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
