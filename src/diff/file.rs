//! Files whose text has changed, and the changes in their JSON.

use serde_json::Value;

use super::{BodyId, Change, ChangeKind, FileChange, structural, textual};
use crate::json::Pointer;

/// A file whose text differs between the older and the newer version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// The body that the file belongs to.
    pub subject: BodyId,
    /// The path relative to the folder of golden files.
    pub path: String,
    /// The older text; `None` if the file did not exist.
    pub old: Option<String>,
    /// The newer text; `None` if the file no longer exists.
    pub new: Option<String>,
}

impl ChangedFile {
    /// Returns the changes in the file. If the file was added or removed, that is the only change.
    pub(super) fn changes(&self) -> Vec<Change> {
        let (old, new) = match (&self.old, &self.new) {
            (None, _) => return file(FileChange::New),
            (_, None) => return file(FileChange::Gone),
            (Some(old), Some(new)) => (
                serde_json::from_str::<Value>(old),
                serde_json::from_str::<Value>(new),
            ),
        };
        let (Ok(old), Ok(new)) = (old, new) else {
            return file(FileChange::Broken);
        };
        let changes = structural(&old, &new);
        if changes.is_empty() {
            file(FileChange::Reformatted)
        } else {
            changes
        }
    }

    /// Returns a textual diff; see [`textual`].
    pub fn textual(&self) -> String {
        let whole = |side: &Option<String>| side.clone().unwrap_or_default();
        textual(&whole(&self.old), &whole(&self.new), &self.path)
    }
}

fn file(change: FileChange) -> Vec<Change> {
    vec![Change {
        pointer: Pointer::root(),
        kind: ChangeKind::File(change),
    }]
}
