//! `reqc init`: a small agent repository that passes its own checks and explains itself.

use std::path::PathBuf;

use super::args::Compile;
use super::options::Options;
use super::{Failure, Outcome, Terminal, compile};
use crate::system::Disk;
use crate::text::text;
use crate::world::Output;

/// The files, with the sentence that tells what each is for.
const FILES: [(&str, &str, &str); 7] = [
    ("README.md", include_str!("init_files/README.md"), "what is where, and what to do next"),
    ("reqc.toml", include_str!("init_files/reqc.toml"), "marks the root; settings, all optional"),
    ("agents/team_base.toml", include_str!("init_files/team_base.toml"), "what all your agents share"),
    ("agents/reviewer.toml", include_str!("init_files/reviewer.toml"), "a concrete agent: a few lines over the base"),
    (
        "agents/reviewer_claude.toml",
        include_str!("init_files/reviewer_claude.toml"),
        "the same job with another provider",
    ),
    ("roles/reviewer.md", include_str!("init_files/reviewer.md"), "the task prompt, as Markdown"),
    (
        "contexts/review-request.json",
        include_str!("init_files/review-request.json"),
        "a conversation of your own to test against",
    ),
];

pub(super) fn run(options: &Options, path: Option<PathBuf>, terminal: &mut Terminal) -> Outcome {
    options.refuse_model()?;
    let folder = options.directory().join(path.unwrap_or_default());
    let disk = Disk::create(&folder, None)?;
    let present: Vec<String> =
        Output::list(&disk, "")?.into_iter().map(|entry| entry.path).filter(|name| name != ".git").collect();
    if !present.is_empty() {
        let shown = present.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
        let failure = Failure::new(format!("{} is not empty: it holds {shown}", folder.display()));
        return Err(failure.help("`reqc init DIR` starts in a new folder"));
    }
    for (path, text, why) in FILES {
        disk.replace(path, text.as_bytes())?;
        terminal.say(&text!("  {:<30} {}", path, why));
    }
    let args = Compile { write: true, ..Compile::default() };
    let here = options.for_people_in(folder);
    let status = compile::run(&here, &args, terminal)?;
    terminal.say(&text!("next: `reqc list`, `reqc check`, `reqc render Reviewer --context review-request`"));
    Ok(status)
}
