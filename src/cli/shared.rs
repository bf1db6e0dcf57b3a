//! The options that several commands share, in a table that lists the options for each command.
//! Help, manual pages, and completions follow the table, and commands for which `--model` would
//! have no effect reject it.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory, FromArgMatches};

use super::Failure;
use super::args::{Args, FormatParser, Writes};
use crate::text::Text;

/// The shared options of a command, by their names in [`super::args::Common`].
struct Uses {
    /// The command's name; for `context import`, only the first word.
    command: &'static str,
    options: &'static [&'static str],
    /// The kinds of output that the command has, which determine the listed formats. If there are
    /// none, no formats are listed.
    writes: &'static [Writes],
}

/// The options that every command uses.
const ALWAYS: [&str; 3] = ["directory", "color", "quiet"];

const CHECKING: &[&str] = &[
    "agents",
    "contexts",
    "bundled",
    "no_bundled",
    "verbose",
    "deny",
    "allow",
];
const JUDGING: &[&str] = &[
    "agents",
    "contexts",
    "bundled",
    "no_bundled",
    "deny",
    "allow",
];
const ONE_BODY: &[&str] = &["contexts", "model", "bundled", "no_bundled"];
const AGENTS: &[&str] = &["agents", "bundled", "no_bundled"];
const LAYERS: &[&str] = &["bundled", "no_bundled"];

const TABLE: &[Uses] = &[
    Uses {
        command: "check",
        options: CHECKING,
        writes: &[Writes::Reports],
    },
    Uses {
        command: "baseline",
        options: JUDGING,
        writes: &[Writes::Others],
    },
    Uses {
        command: "compile",
        options: CHECKING,
        writes: &[Writes::Reports, Writes::Reviews],
    },
    Uses {
        command: "review",
        options: JUDGING,
        writes: &[Writes::Others],
    },
    Uses {
        command: "compare",
        options: &[
            "agents",
            "contexts",
            "model",
            "bundled",
            "no_bundled",
            "allow",
        ],
        writes: &[Writes::Comparisons],
    },
    Uses {
        command: "lint",
        options: &["model", "deny", "allow"],
        writes: &[Writes::Reports, Writes::Stories],
    },
    Uses {
        command: "why400",
        options: &["model"],
        writes: &[Writes::Others],
    },
    Uses {
        command: "tools",
        options: LAYERS,
        writes: &[Writes::Comparisons],
    },
    Uses {
        command: "list",
        options: AGENTS,
        writes: &[Writes::Others],
    },
    Uses {
        command: "tree",
        options: AGENTS,
        writes: &[Writes::Others],
    },
    Uses {
        command: "show",
        options: LAYERS,
        writes: &[Writes::Others],
    },
    Uses {
        command: "render",
        options: ONE_BODY,
        writes: &[Writes::Others],
    },
    Uses {
        command: "explain",
        options: ONE_BODY,
        writes: &[Writes::Others],
    },
    Uses {
        command: "coverage",
        options: &["agents", "contexts", "bundled", "no_bundled"],
        writes: &[Writes::Coverage],
    },
    Uses {
        command: "impact",
        options: AGENTS,
        writes: &[Writes::Others],
    },
    Uses {
        command: "contexts",
        options: &["contexts"],
        writes: &[Writes::Others],
    },
    Uses {
        command: "context",
        options: &[],
        writes: &[],
    },
    Uses {
        command: "models",
        options: &[],
        writes: &[Writes::Others],
    },
    Uses {
        command: "providers",
        options: LAYERS,
        writes: &[Writes::Others],
    },
    Uses {
        command: "send",
        options: &["contexts", "model", "no_bundled", "deny", "allow"],
        writes: &[Writes::Answers],
    },
    Uses {
        command: "route",
        options: LAYERS,
        writes: &[Writes::Others],
    },
    Uses {
        command: "rule",
        options: &[],
        writes: &[Writes::Others],
    },
    Uses {
        command: "schema",
        options: &[],
        writes: &[Writes::Others],
    },
    Uses {
        command: "init",
        options: &[],
        writes: &[],
    },
    Uses {
        command: "completions",
        options: &[],
        writes: &[],
    },
    Uses {
        command: "man",
        options: &[],
        writes: &[],
    },
];

/// Special meanings of shared options: the command, the option, the name of its value, and the
/// help.
const MEANINGS: &[(&str, &str, &str, &str)] = &[
    (
        "render",
        "contexts",
        "NAME",
        "The context (required): its name, a context file, or `-` for standard input",
    ),
    (
        "explain",
        "contexts",
        "NAME",
        "The context whose body to explain (required); `reqc contexts` lists them",
    ),
    (
        "send",
        "contexts",
        "NAME",
        "A conversation to send: a context or a context file",
    ),
    (
        "compare",
        "agents",
        "NAME",
        "An agent to compare, instead of files; use twice, with --context",
    ),
    (
        "compare",
        "contexts",
        "NAME",
        "The context whose bodies to compare",
    ),
    (
        "compare",
        "allow",
        "KIND",
        "A kind of difference to allow, such as `moved` or `lost/image` (repeatable)",
    ),
    (
        "lint",
        "model",
        "M",
        "The model of bodies that do not name one",
    ),
    (
        "why400",
        "model",
        "M",
        "The model of the body, if it does not name one",
    ),
];

/// Usage lines of commands that need a shared option.
const USAGES: &[(&str, &str)] = &[
    ("render", "reqc render [OPTIONS] --context <NAME> <AGENT>"),
    (
        "explain",
        "reqc explain [OPTIONS] --context <NAME> <AGENT> [POINTER]",
    ),
];

/// Parses the arguments of the process, or returns clap's error.
pub(super) fn read() -> Result<Args, clap::Error> {
    read_from(std::env::args_os()).map_err(|error| {
        // Clap's message quotes the invalid arguments, so parsing is repeated with arguments that
        // can be displayed.
        let shown = std::env::args_os().map(|argument| shown(&argument.to_string_lossy()).into());
        let same = read_from(shown)
            .err()
            .filter(|again| again.kind() == error.kind());
        let mut error =
            same.unwrap_or_else(|| command().error(error.kind(), "the arguments cannot be read"));
        add_tip(&mut error);
        error
    })
}

/// Options of other programs, and what to write instead.
const TIPS: [(&str, &str); 9] = [
    ("--json", "`--format json` writes JSON"),
    ("--file", "write the file's name without an option"),
    ("--input", "write the file's name without an option"),
    (
        "--request",
        "`reqc why400 --body FILE` reads the request's body",
    ),
    (
        "--url",
        "`--provider NAME` or `--server NAME` names the server",
    ),
    (
        "--host",
        "`--provider NAME` or `--server NAME` names the server",
    ),
    (
        "--strict",
        "with `--deny-warnings`, warnings count as errors",
    ),
    (
        "--werror",
        "with `--deny-warnings`, warnings count as errors",
    ),
    (
        "--fix",
        "`reqc check --fix` edits profiles; request bodies are not edited",
    ),
];

/// Adds a tip to an error about an option that `reqc` does not have.
fn add_tip(error: &mut clap::Error) {
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else {
        return;
    };
    let tip = TIPS.iter().find(|(name, _)| name == option);
    if let Some((_, tip)) = tip.filter(|_| error.kind() == ErrorKind::UnknownArgument) {
        let tip = ContextValue::StyledStrs(vec![(*tip).into()]);
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, tip);
    }
}

fn read_from(arguments: impl Iterator<Item = OsString>) -> Result<Args, clap::Error> {
    let mut command = command();
    let mut matches = command.try_get_matches_from_mut(arguments)?;
    let name = matches.subcommand_name().unwrap_or_default().to_owned();
    let args =
        Args::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))?;
    Ok(Args { name, ..args })
}

fn shown(argument: &str) -> String {
    const LONGEST: usize = 200;
    match argument.trim().is_empty() {
        true => String::new(),
        false => Text::line(argument).cut(LONGEST).to_string(),
    }
}

/// Returns the command-line definition used for parsing and help.
pub(super) fn command() -> Command {
    let command = Args::command();
    let shared: Vec<Arg> = command
        .get_arguments()
        .filter(|argument| argument.is_global_set())
        .cloned()
        .collect();
    let names: Vec<String> = command
        .get_subcommands()
        .map(|below| below.get_name().to_owned())
        .collect();
    names.iter().fold(command, |command, name| {
        command.mut_subcommand(name, |below| with_shared(below, &shared))
    })
}

/// Adds the shared options to a subcommand. Options that the subcommand already has are not added
/// again, and unused options are hidden.
fn with_shared(command: Command, shared: &[Arg]) -> Command {
    let name = command.get_name().to_owned();
    let uses = uses_of(&name);
    let command = match USAGES.iter().find(|(of, _)| *of == name) {
        Some((_, usage)) => command.override_usage(*usage),
        None => command,
    };
    let own_first = shared
        .iter()
        .zip(FIRST_SHARED..)
        .map(|(argument, order)| argument.clone().display_order(order));
    own_first.fold(command, |command, argument| {
        command.arg(shared_by(&name, uses, argument))
    })
}

/// The position of the first shared option in help, after the command's own options.
const FIRST_SHARED: usize = 500;

fn shared_by(command: &str, uses: &Uses, argument: Arg) -> Arg {
    let id = argument.get_id().as_str().to_owned();
    let meaning = MEANINGS
        .iter()
        .find(|(of, option, ..)| *of == command && *option == id);
    let argument = match meaning {
        Some((_, _, value, help)) => argument.value_name(*value).help(*help),
        None => argument,
    };
    match &*id {
        "formats" => argument
            .hide(uses.writes.is_empty())
            .value_parser(FormatParser {
                writes: uses.writes,
            }),
        id => argument.hide(!uses.has(id)),
    }
}

impl Uses {
    fn has(&self, option: &str) -> bool {
        ALWAYS.contains(&option) || self.options.contains(&option)
    }
}

fn uses_of(command: &str) -> &'static Uses {
    TABLE
        .iter()
        .find(|uses| uses.command == command)
        .expect("the table has every command")
}

/// Rejects `--model` for a command whose result does not depend on it.
pub(super) fn refuse_model(command: &str, model: Option<&str>) -> Result<(), Failure> {
    match model {
        Some(_) if !uses_of(command).has("model") => {
            let failure = Failure::new(format!("`--model` has no effect on `reqc {command}`"));
            Err(failure.help("golden bodies use the profile's own model; `reqc render AGENT --model M` uses another"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_commands_and_options_that_are_there() {
        let command = Args::command();
        let commands: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        let options: Vec<&str> = command
            .get_arguments()
            .map(|argument| argument.get_id().as_str())
            .collect();
        for name in &commands {
            assert_eq!(
                TABLE.iter().filter(|uses| uses.command == *name).count(),
                1,
                "{name}"
            );
        }
        let of_runtime = ["send", "providers"];
        for uses in TABLE {
            assert!(
                commands.contains(&uses.command) || of_runtime.contains(&uses.command),
                "{}",
                uses.command
            );
            assert!(
                uses.options.iter().all(|option| options.contains(option)),
                "{}",
                uses.command
            );
        }
        for (of, option, ..) in MEANINGS {
            assert!(uses_of(of).has(option), "{of}: {option}");
        }
        super::command().debug_assert();
    }
}
