//! `reqc init`: creates a small agent repository that passes its own checks and explains itself.

use std::path::{Path, PathBuf};

use super::args::Compile;
use super::options::Options;
use super::{Failure, Outcome, Terminal, compile};
use crate::repo::folders;
use crate::system::Disk;
use crate::text::text;
use crate::world::Output;

/// The file that is not overwritten if it exists.
const README: &str = "README.md";

/// The files, each with a sentence on its purpose.
const FILES: [(&str, &str, &str); 7] = [
    (
        README,
        include_str!("init_files/README.md"),
        "an overview of the files, and the next steps",
    ),
    (
        folders::CONFIG,
        include_str!("init_files/reqc.toml"),
        "marks the root; settings, all optional",
    ),
    (
        "agents/team_base.toml",
        include_str!("init_files/team_base.toml"),
        "settings that all your agents share",
    ),
    (
        "agents/reviewer.toml",
        include_str!("init_files/reviewer.toml"),
        "a concrete agent: a few lines on top of the base",
    ),
    (
        "agents/reviewer_claude.toml",
        include_str!("init_files/reviewer_claude.toml"),
        "the same job with another provider",
    ),
    (
        "roles/reviewer.md",
        include_str!("init_files/reviewer.md"),
        "the task prompt, as Markdown",
    ),
    (
        "contexts/review-request.json",
        include_str!("init_files/review-request.json"),
        "your own test conversation",
    ),
];

pub(super) fn run(options: &Options, path: Option<PathBuf>, terminal: &mut Terminal) -> Outcome {
    let folder = options.directory().join(path.unwrap_or_default());
    let disk = Disk::create(&folder, None)?;
    refuse_to_overwrite(&disk, &folder)?;
    for (path, text, why) in FILES {
        let is_kept = disk.current(path)?.is_some();
        if !is_kept {
            disk.replace(path, text.as_bytes())?;
        }
        terminal.say(&text!(
            "  {:<30} {}",
            path,
            if is_kept {
                "already exists, and is kept"
            } else {
                why
            }
        ));
    }
    let args = Compile {
        write: true,
        ..Compile::default()
    };
    let here = options.for_people_in(folder);
    let status = compile::run(&here, &args, terminal)?;
    terminal.say(&text!(
        "next: `reqc list`, `reqc check`, `reqc render Reviewer --context review-request`"
    ));
    Ok(status)
}

/// Rejects a folder in which a file would be overwritten, or in which other agents would be
/// compiled as well. A README is allowed.
fn refuse_to_overwrite(disk: &Disk, folder: &Path) -> Result<(), Failure> {
    let mut taken = Vec::new();
    if !Output::list(disk, "agents")?.is_empty() {
        taken.push("agents/");
    }
    for (path, ..) in FILES {
        if path != README && !path.starts_with("agents/") && disk.current(path)?.is_some() {
            taken.push(path);
        }
    }
    match taken.is_empty() {
        true => Ok(()),
        false => {
            let failure = Failure::new(format!(
                "{} already contains {}",
                folder.display(),
                taken.join(", ")
            ));
            Err(failure.help("to use another folder: `reqc init DIR`"))
        }
    }
}
