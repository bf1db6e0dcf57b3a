//! Asks for the permissions that a repository needs, before any key is read or any program runs.

use std::path::Path;

use super::super::{Failure, Terminal};
use crate::runtime::trust::{Grant, TrustStore};
use crate::text::{Text, text};

/// Continues if everything was allowed before, is allowed by `--trust`, or is now allowed by a user
/// at a terminal.
pub(super) fn ask(
    root: &Path,
    wanted: &[Grant],
    flag: bool,
    store: &dyn TrustStore,
) -> Result<(), Failure> {
    let missing: Vec<&Grant> = wanted
        .iter()
        .filter(|grant| !store.is_trusted(&grant.fingerprint(root)))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = missing.iter().map(ToString::to_string).collect();
    if !flag && !Terminal::asks(&question(root, &lines))? {
        return Err(refusal(root, &lines));
    }
    for (grant, line) in missing.iter().zip(&lines) {
        if let Err(why) = store.remember(
            &grant.fingerprint(root),
            &format!("{:?}: {line}\n", root.to_string_lossy()),
        ) {
            Terminal::warn(&format!(
                "the permission could not be saved and applies only to this run: {why}"
            ));
        }
    }
    Ok(())
}

fn question(root: &Path, lines: &[String]) -> Text {
    let list: Text = lines.iter().map(|line| text!("  {}\n", line)).collect();
    let root = Text::quoted(&root.to_string_lossy());
    text!(
        "The repository {} asks for permissions that only you can give:\n{}Allow this, now and in future? [y/N] ",
        root,
        list
    )
}

fn refusal(root: &Path, lines: &[String]) -> Failure {
    let message = format!(
        "the repository {:?} is not trusted: {}",
        root.to_string_lossy(),
        lines.join("; ")
    );
    Failure::new(message).help(
        "`--trust` allows this, now and in future; `--dry-run` shows the request without reading a key",
    )
}
