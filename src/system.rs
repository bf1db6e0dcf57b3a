//! The real world behind [`world`](crate::world)'s traits: the disk, the files in the binary, git, the clock.
//!
//! The only module that calls `std::fs`, `std::env`, processes or the clock. Input: a folder, or a git revision.
//! Output: a [`World`](crate::world::World) to read from and an [`Output`](crate::world::Output) to write to. It
//! does not know what any file means, and every world here lists the same files in the same order: sorted by
//! path, byte for byte, with `/` between parts.

mod disk;
mod embedded;
mod git;

pub use disk::Disk;
pub use embedded::Embedded;
pub use git::GitRevision;

/// The system's words for an error, without its number.
fn words(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
