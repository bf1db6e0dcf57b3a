//! Runs git in the repositories of tests.

#![expect(clippy::disallowed_methods, reason = "the test runs git itself")]

use std::path::Path;
use std::process::Command;

/// Runs git with a test identity.
///
/// # Panics
///
/// Panics if git fails.
pub(crate) fn git(root: &Path, arguments: &[&str]) {
    let identity = [
        "-c",
        "user.name=Test",
        "-c",
        "user.email=test@example.com",
        "-c",
        "commit.gpgsign=false",
    ];
    let output = Command::new("git")
        .args(identity)
        .args(arguments)
        .current_dir(root)
        .output()
        .expect("git runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
