//! Converts panics, in reqc and in libraries, to findings, so that a panic affects only one agent
//! or one file, not the whole run.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;

use crate::diag::Diagnostic;
use crate::source::Span;

crate::diag::rules! {
    PANIC = Error "internal/panic", "`reqc` itself failed",
        "This is a bug in `reqc`, not in your files. The run continues without the agent or file that was being processed. The exit \
         status is 1, so that the failure is not overlooked.\n\n\
         Please report it, with the message and the file that the finding points at.";
}

/// The message of a panic, and its location in the source code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Panic {
    message: String,
    place: String,
}

impl Panic {
    /// Returns the finding about a panic that occurred while `what` was being processed, at its
    /// location in the repository.
    pub(crate) fn finding(&self, what: &str, span: Span) -> Diagnostic {
        let (message, help) = self.told(what);
        Diagnostic::new(&PANIC, span, message).help(help)
    }

    /// Returns the message and the help for a panic.
    pub(crate) fn told(&self, what: &str) -> (String, String) {
        let message = format!("reqc failed on {what}: {}", self.message);
        let help = format!(
            "this is a bug in reqc, not in your files: please report it (it happened at {})",
            self.place
        );
        (message, help)
    }
}

thread_local! {
    static IS_CATCHING: Cell<bool> = const { Cell::new(false) };
    static LAST: RefCell<Option<Panic>> = const { RefCell::new(None) };
}

/// Runs `work`. If it panics, the panic is returned instead of printed.
///
/// After a panic, data that `work` was changing may be inconsistent, so callers must not use it
/// afterwards.
pub(crate) fn caught<R>(work: impl FnOnce() -> R) -> Result<R, Panic> {
    install_hook();
    let before = IS_CATCHING.replace(true);
    let result = std::panic::catch_unwind(AssertUnwindSafe(work));
    IS_CATCHING.set(before);
    result.map_err(|_| {
        LAST.take().unwrap_or_else(|| Panic {
            message: "it panicked".into(),
            place: "?".into(),
        })
    })
}

/// Installs a hook that passes panics outside [`caught`] on to the previous hook.
fn install_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| match IS_CATCHING.get() {
            true => LAST.set(Some(told(info))),
            false => before(info),
        }));
    });
}

fn told(info: &PanicHookInfo<'_>) -> Panic {
    let message = info
        .payload_as_str()
        .unwrap_or("it panicked")
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned();
    let place = info.location().map_or_else(
        || "?".to_owned(),
        |at| format!("{}:{}", file_name(at.file()), at.line()),
    );
    Panic { message, place }
}

/// Returns the file name in a path, because the rest depends on the machine that built the program.
fn file_name(path: &str) -> &str {
    ["/src/", "\\src\\"]
        .iter()
        .find_map(|folder| Some(&path[path.rfind(folder)? + 1..]))
        .unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_are_told() {
        let panic = caught(|| -> u8 { panic!("no\nsecond line") }).expect_err("it panics");
        assert_eq!(panic.message, "no");
        assert!(panic.place.starts_with("src/panics.rs:"), "{panic:?}");
        assert_eq!(caught(|| 1), Ok(1));
        assert_eq!(
            file_name("/home/x/.cargo/registry/src/index/lib-1.0/src/a.rs"),
            "src/a.rs"
        );
    }
}
