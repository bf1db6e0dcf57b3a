//! Files whose text changed, as changes of the JSON that they hold.

use serde_json::Value;

use super::{BodyId, Change, ChangeKind, FileChange, structural, textual};
use crate::json::Pointer;

/// A file whose text differs between two sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// Whose file it is.
    pub subject: BodyId,
    /// Path relative to the folder of golden files.
    pub path: String,
    /// The older text; `None`: there is none.
    pub old: Option<String>,
    /// The newer text; `None`: there is none.
    pub new: Option<String>,
}

impl ChangedFile {
    /// Returns what changed in it. Of a file that only one side has, that is all that is said.
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

    /// A textual diff; see [`textual`].
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
