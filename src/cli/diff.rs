//! `reqc compile --diff`: shows what changed, by cause.

use std::sync::Arc;

use super::args::{Compile, Format};
use super::goldens::{compare, golden};
use super::options::{Opened, Options};
use super::{Failure, Outcome, Status, Terminal, report};
use crate::compile::compare::Purpose;
use crate::compile::{Compiler, Selection};
use crate::diff::ChangedFile;
use crate::report::{lowered_text, review_broken};
use crate::review::{AgainstGolden, Review, Reviewing, Side};
use crate::system::GitRevision;
use crate::text::{Text, text};
use crate::world::{MemoryWorld, World};

pub(super) fn run(
    options: &Options,
    args: &Compile,
    revision: Option<&str>,
    terminal: &mut Terminal,
) -> Outcome {
    let opened = options.open_selected()?;
    let (review, base) = match Sides::of(&opened, args, revision)? {
        None => (against_golden(options, args, &opened, terminal)?, None),
        Some(sides) => (
            between(options, args, &opened, &sides, terminal)?,
            sides.base,
        ),
    };
    let fails = review.report.fails();
    match args.text {
        true => textual(options, &review, terminal),
        false => options
            .formats
            .write_review(&review, base.as_ref(), terminal)?,
    }
    // This comes after the list of agents that break, which should be read first.
    if fails
        && !matches!(
            options.format,
            Format::Json | Format::Markdown | Format::Html
        )
    {
        terminal.text(&text!("\n"));
        report(options, &review.report, terminal);
    }
    let is_refused = args
        .fail_on
        .is_some_and(|class| !review.is_empty() && review.class() >= class);
    Ok(
        match is_refused || args.exit_code && !review.is_empty() || fails {
            true => Status::Findings,
            false => Status::Clean,
        },
    )
}

/// Two sides compiled from sources.
struct Sides {
    older: MemoryWorld,
    /// The newer side; `None` for the files on disk.
    newer: Option<MemoryWorld>,
    /// The revision of the older side, if it differs from the revision that the user named.
    base: Option<Text>,
}

impl Sides {
    /// Returns the sides, or `None` to compare with golden files.
    fn of(
        opened: &Opened,
        args: &Compile,
        revision: Option<&str>,
    ) -> Result<Option<Sides>, Failure> {
        let load = |rev: &str| Ok::<_, Failure>(GitRevision::load(&opened.root, rev)?);
        let newer = if args.staged {
            Some(GitRevision::staged(&opened.root)?)
        } else {
            None
        };
        let Some(revision) = revision.or(args.staged.then_some("HEAD")) else {
            return Ok(None);
        };
        let (rev, to, is_from_base) = match (revision.split_once("..."), revision.split_once(".."))
        {
            (Some((from, to)), _) => (from, Some(to), true),
            (None, Some((from, to))) => (from, Some(to), false),
            (None, None) => (revision, None, !args.no_merge_base),
        };
        // The usual cause is an unset variable.
        if rev.is_empty() && to.is_none_or(str::is_empty) {
            return Err(Failure::new(format!("`{revision}` is not a git revision")));
        }
        if to.is_some() && args.staged {
            return Err(Failure::new(
                "`--staged` accepts only one revision, and compares the staged files with it",
            ));
        }
        let [from, to] =
            [Some(rev), to].map(|rev| rev.map(|rev| if rev.is_empty() { "HEAD" } else { rev }));
        let from = from.unwrap_or("HEAD");
        let base = match is_from_base {
            true => GitRevision::merge_base(&opened.root, from, to.unwrap_or("HEAD"))?,
            false => None,
        };
        let newer = to.map(load).transpose()?.or(newer);
        let text = base.as_ref().map(|base| {
            text!(
                "compared with {}, where {} and {} diverged",
                &base[..12],
                from,
                to.unwrap_or("HEAD")
            )
        });
        Ok(Some(Sides {
            older: load(base.as_deref().unwrap_or(from))?,
            newer,
            base: text,
        }))
    }
}

fn between(
    options: &Options,
    args: &Compile,
    opened: &Opened,
    sides: &Sides,
    terminal: &mut Terminal,
) -> Result<Review, Failure> {
    let load = |world: &MemoryWorld| Arc::new(options.load_selected(Arc::new(world.clone())));
    let older = Side::new(&sides.older, load(&sides.older));
    match &sides.newer {
        Some(world) => {
            let compiler = load(world);
            let selection = options.selection_of(&compiler)?;
            Ok(reviewed(options, args, opened, &selection, |it| {
                Review::between(&older, &Side::new(world, compiler), it)
            }))
        }
        None => {
            let selection = options.selection(opened, terminal)?;
            let newer = Side::new(opened.disk.as_ref(), Arc::clone(&opened.compiler));
            Ok(reviewed(options, args, opened, selection, |it| {
                Review::between(&older, &newer, it)
            }))
        }
    }
}

pub(super) fn against_golden(
    options: &Options,
    args: &Compile,
    opened: &Opened,
    terminal: &mut Terminal,
) -> Result<Review, Failure> {
    let selection = options.selection(opened, terminal)?;
    let (found, comparison) = compare(
        opened,
        &golden(opened),
        Purpose::Show,
        args.all_contexts,
        terminal.quiet,
    )?;
    let drifts: Vec<ChangedFile> = comparison.drifts().iter().map(ChangedFile::from).collect();
    // Golden files do not record the sources from which they were compiled. Usually, these are the
    // sources of the last commit.
    let older = match drifts.is_empty() && !found.fails() {
        true => None,
        false => GitRevision::load(&opened.root, "HEAD").ok(),
    };
    let altered_bundled = comparison.altered_bundled();
    let against = AgainstGolden {
        report: found,
        drifts,
        altered_bundled,
    };
    let older = older.map(|world| {
        Side::new(
            &world,
            Arc::new(options.load_selected(Arc::new(world.clone()))),
        )
    });
    let newer = Side::new(opened.disk.as_ref(), Arc::clone(&opened.compiler));
    Ok(reviewed(options, args, opened, selection, |it| {
        Review::of_golden(against, older.as_ref(), &newer, it)
    }))
}

fn reviewed(
    options: &Options,
    args: &Compile,
    opened: &Opened,
    selection: &Selection,
    review: impl FnOnce(&Reviewing<'_>) -> Review,
) -> Review {
    let load = |world: MemoryWorld, wanted: &dyn Fn(&str) -> bool| -> Compiler {
        options.load_wanted(Arc::new(world) as Arc<dyn World>, wanted)
    };
    review(&Reviewing {
        selection,
        policy: &opened.policy,
        all_contexts: args.all_contexts,
        load: &load,
    })
}

/// Writes changes as a line diff, on request.
fn textual(options: &Options, review: &Review, terminal: &mut Terminal) {
    if options.format != Format::Json {
        terminal.text(&review_broken(review, terminal.layout()));
        terminal.text(&lowered_text(&review.lowered));
    }
    terminal.text(
        &review
            .changes
            .iter()
            .map(|file| Text::lines(&file.textual()))
            .collect(),
    );
    if review.is_empty() && options.format == Format::Human {
        terminal.say(&text!("no changes"));
    }
}
