//! The command-line arguments, as the user writes them.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::compile::selection::Shard;
use crate::diag::did_you_mean;
use crate::export::Layout;
use crate::review::Class;

/// Returns the machine-readable format that a `reqc send` command with invalid arguments requests.
/// Returns `None` for other commands, and if the arguments name no such format.
#[cfg(feature = "runtime")]
pub(super) fn format_of_unread_send(error: &clap::Error) -> Option<Format> {
    let arguments = std::env::args_os()
        .skip(1)
        .map(|argument| argument.to_string_lossy().into_owned());
    let arguments: Vec<String> = arguments.collect();
    if !error.use_stderr() || !arguments.iter().any(|argument| argument == "send") {
        return None;
    }
    let next = arguments
        .windows(2)
        .filter(|pair| pair[0] == "--format")
        .map(|pair| pair[1].as_str());
    let joined = arguments
        .iter()
        .filter_map(|argument| argument.strip_prefix("--format="));
    next.chain(joined).find_map(|name| match name {
        "events" => Some(Format::Events),
        "json" => Some(Format::Json),
        _ => None,
    })
}

/// Rejects an empty argument. It usually comes from an unset variable, and would select everything
/// or nothing.
fn filled(argument: &str) -> Result<String, String> {
    match argument.trim().is_empty() {
        true => Err("it is empty".to_owned()),
        false => Ok(argument.to_owned()),
    }
}

/// Parses a layout of requests.
fn layout(argument: &str) -> Result<Layout, String> {
    Layout::ALL
        .into_iter()
        .find(|layout| layout.name() == argument)
        .ok_or_else(|| format!("write one of: {}", names()))
}

fn names() -> String {
    Layout::ALL.map(Layout::name).join(", ")
}

/// Parses a percentage.
fn percent(argument: &str) -> Result<f64, String> {
    let number: Option<f64> = argument.trim_end_matches('%').trim().parse().ok();
    number
        .filter(|number| (0.0..=100.0).contains(number))
        .ok_or_else(|| "write a number from 0 to 100".to_owned())
}

/// Parses a class of changes.
fn class(argument: &str) -> Result<Class, String> {
    Class::ALL
        .into_iter()
        .find(|class| class.name() == argument)
        .ok_or_else(|| format!("write one of: {}", class_names()))
}

fn class_names() -> String {
    Class::ALL.map(Class::name).join(", ")
}

/// Compile declarative LLM agent profiles into the exact request bodies that providers receive, and
/// verify them
#[derive(Debug, Parser)]
#[command(
    name = "reqc",
    bin_name = "reqc",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) common: Common,
    #[command(subcommand)]
    pub(super) command: Command,
    /// The name of the command.
    #[arg(skip)]
    pub(super) name: String,
}

#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate flag")]
pub(super) struct Common {
    /// Run as if started in DIR, which becomes the root of the repository
    #[arg(short = 'C', value_name = "DIR", global = true)]
    pub(super) directory: Option<PathBuf>,
    /// Only agents whose name matches (repeatable)
    #[arg(long = "agent", value_name = "GLOB", global = true, value_parser = filled)]
    pub(super) agents: Vec<String>,
    /// Only contexts whose name matches (repeatable)
    #[arg(long = "context", value_name = "GLOB", global = true, value_parser = filled)]
    pub(super) contexts: Vec<String>,
    /// The model to compile for
    #[arg(long, value_name = "M", global = true)]
    pub(super) model: Option<String>,
    /// Include the bundled agents
    #[arg(long, global = true, conflicts_with = "no_bundled")]
    pub(super) bundled: bool,
    /// Exclude bundled profiles, partials and roles
    #[arg(long, global = true)]
    pub(super) no_bundled: bool,
    /// Output format (repeatable); `FORMAT=FILE` writes a report to a file [default: human]
    #[arg(long = "format", value_name = "FORMAT[=FILE]", value_parser = FormatParser::of_all(), global = true)]
    pub(super) formats: Vec<FormatTo>,
    /// When to use colours; `auto` checks the terminal and `NO_COLOR`
    #[arg(long, value_enum, default_value_t = Color::Auto, global = true)]
    pub(super) color: Color,
    /// Print findings only
    #[arg(short, long, global = true)]
    pub(super) quiet: bool,
    /// Print cache statistics to standard error
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    pub(super) verbose: bool,
    /// Treat findings of a rule as errors (repeatable; `family/*` for a whole family)
    #[arg(long, value_name = "CODE", global = true, value_parser = filled)]
    pub(super) deny: Vec<String>,
    /// Allow findings of a rule: do not report them (repeatable; `family/*` for a whole family)
    #[arg(long, value_name = "CODE", global = true, value_parser = filled)]
    pub(super) allow: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Compile every agent in every context and report problems
    Check(Check),
    /// Allow today's findings by adding [[allow]] entries to reqc.toml
    Baseline(Baseline),
    /// Write golden bodies, or compare with them
    Compile(Compile),
    /// Review golden bodies cause by cause, and write those that you accept
    Review(Review),
    /// Compare two request bodies and show what the second one lacks
    Compare(Compare),
    /// Check request bodies from any program
    Lint(Lint),
    /// Explain why a provider rejected a request
    Why400(Why400),
    /// Check which tools each provider accepts
    Tools {
        /// The action
        #[command(subcommand)]
        action: ToolsAction,
    },
    /// List agents
    List {
        /// Include hidden and abstract agents
        #[arg(long)]
        all: bool,
        /// Only agents with this tag
        #[arg(long, value_name = "TAG", value_parser = filled)]
        tag: Option<String>,
    },
    /// Show the hierarchy of profiles and what each profile adds
    Tree,
    /// Show an agent's merged profile, with the origin of each value
    Show {
        /// The agent's name
        #[arg(value_parser = filled)]
        agent: String,
    },
    /// Print one request body
    Render {
        /// The agent's name
        #[arg(value_parser = filled)]
        agent: String,
        /// Print a curl command instead of the body
        #[arg(long)]
        curl: bool,
        /// Print the body on one line, as it is sent
        #[arg(long, conflicts_with = "curl")]
        compact: bool,
        /// Print the number of tokens of each part of the request instead of the body
        #[arg(long, conflicts_with_all = ["curl", "compact"])]
        tokens: bool,
    },
    /// Show where a value (or each line) of a request body comes from
    #[command(visible_alias = "why")]
    Explain {
        /// The agent's name
        #[arg(value_parser = filled)]
        agent: String,
        /// The value, as a JSON pointer: /messages/0/content
        pointer: Option<String>,
        /// Show where a value in the context file ends up in the body, instead of where a value in
        /// the body comes from. A JSON pointer: /history/3/blocks/0
        #[arg(long, value_name = "POINTER", value_parser = filled, conflicts_with = "pointer")]
        content: Option<String>,
    },
    /// Show which parts of the templates no context covers
    Coverage(Coverage),
    /// Show which agents, contexts and values a file or line affects
    Impact {
        /// The place: a file, optionally with a line and a column: `partials/x.jinja:3:7`
        #[arg(value_name = "PLACE", value_parser = filled)]
        place: String,
    },
    /// List contexts and their purpose
    Contexts,
    /// Convert a real request body to a context
    Context {
        /// The action
        #[command(subcommand)]
        action: ContextAction,
    },
    /// Show what reqc knows about a model, or list all model families
    Models {
        /// The model's name, as sent to the provider
        #[arg(value_parser = filled)]
        name: Option<String>,
        /// List the models that a provider instance's server offers
        #[cfg(feature = "runtime")]
        #[arg(long, value_name = "INSTANCE", conflicts_with = "name", value_parser = filled)]
        installed: Option<String>,
        /// With --installed: allow the request, now and in future
        #[cfg(feature = "runtime")]
        #[arg(long, requires = "installed")]
        trust: bool,
    },
    /// List provider instances and whether their keys are found; prints no keys
    #[cfg(feature = "runtime")]
    Providers,
    /// Send one request and print the answer as it arrives
    #[cfg(feature = "runtime")]
    Send(Send),
    /// Show which agent in a roster handles a file, and why the others do not
    Route(Route),
    /// Explain a rule, or list all of them
    Rule {
        /// The rule's code, for example extends/cycle
        code: Option<String>,
        /// Also list the rule's evidence, and the providers' error messages for the mistake
        #[arg(long, requires = "code")]
        evidence: bool,
    },
    /// Print a JSON Schema, or list all of them
    Schema {
        /// The schema's name, for example profile
        name: Option<String>,
    },
    /// Create a small agent repository to start from
    Init {
        /// The folder; by default the current one. Existing files are kept
        path: Option<PathBuf>,
    },
    /// Print a completion script
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the man pages of all commands to a folder
    Man {
        /// The folder
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
}

/// The kinds of output that commands produce. Each kind is available in certain formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writes {
    /// Reports of findings.
    Reports,
    /// The effects of a change.
    Reviews,
    /// Comparisons of two bodies.
    Comparisons,
    /// Analyses of conversations.
    Stories,
    /// The coverage of templates.
    Coverage,
    /// The answers that `reqc send` receives.
    Answers,
    /// Results of any other kind.
    Others,
}

impl Writes {
    const ALL: &[Writes] = &[
        Writes::Reports,
        Writes::Reviews,
        Writes::Comparisons,
        Writes::Stories,
        Writes::Coverage,
        Writes::Answers,
        Writes::Others,
    ];
}

impl Command {
    pub(super) fn writes(&self) -> Writes {
        match self {
            Command::Lint(lint) if lint.session => Writes::Stories,
            Command::Check(_) | Command::Lint(_) => Writes::Reports,
            Command::Coverage(_) => Writes::Coverage,
            Command::Compare(_) | Command::Tools { .. } => Writes::Comparisons,
            Command::Compile(compile) if compile.diff.is_some() || compile.staged => {
                Writes::Reviews
            }
            Command::Compile(compile) if compile.check => Writes::Reports,
            #[cfg(feature = "runtime")]
            Command::Send(_) => Writes::Answers,
            _ => Writes::Others,
        }
    }
}

impl Args {
    /// Moves the options that have a special meaning for `reqc compare` to its own arguments:
    /// `--agent` names the agents to compare, and `--allow` the differences to ignore.
    pub(super) fn settle(mut self) -> Args {
        if let Command::Compare(compare) = &mut self.command {
            compare.agents = std::mem::take(&mut self.common.agents);
            compare.allow = std::mem::take(&mut self.common.allow);
        }
        self
    }

    /// Returns `true` if `--model` is given but empty. `reqc send` treats an empty value as no
    /// model, because it may come from an unset variable.
    pub(super) fn has_empty_model(&self) -> bool {
        let is_empty = self
            .common
            .model
            .as_ref()
            .is_some_and(|model| model.trim().is_empty());
        #[cfg(feature = "runtime")]
        let is_empty = is_empty && !matches!(self.command, Command::Send(_));
        is_empty
    }

    /// Returns the format of `reqc send` if a program reads its output; `None` for other commands.
    #[cfg(feature = "runtime")]
    pub(super) fn sends_for_programs(&self) -> Option<Format> {
        if !matches!(self.command, Command::Send(_)) {
            return None;
        }
        let shown = self
            .common
            .formats
            .iter()
            .filter(|asked| asked.file.is_none());
        shown
            .map(|asked| asked.format)
            .find(|format| matches!(format, Format::Json | Format::Events))
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct Check {
    #[command(flatten)]
    pub(super) part: Part,
    /// Also exit with 1 on warnings
    #[arg(long)]
    pub(super) deny_warnings: bool,
    /// Fix findings that have exactly one correct fix, across the whole repository
    #[arg(long, conflicts_with_all = ["paths", "affected", "shard"])]
    pub(super) fix: bool,
    /// With --fix: show the edits and write nothing
    #[arg(long, requires = "fix")]
    pub(super) dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Baseline {
    /// The reason for the entries; by default, that they are in today's baseline
    #[arg(long, value_name = "TEXT", value_parser = filled)]
    pub(super) reason: Option<String>,
    /// The last day on which the entries apply; by default 90 days from now
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = filled)]
    pub(super) expires: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Coverage {
    /// Exit with 1 if the coverage of lines or of outcomes is below this percentage
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(super) fail_under: Option<f64>,
    /// Write a context that covers the gap at `--gap`, or by default the first gap that can be
    /// covered
    #[arg(long, value_name = "FILE")]
    pub(super) write_context: Option<PathBuf>,
    /// With --write-context: the place of the gap: `partials/x.jinja:3` or `partials/x.jinja:3:7`
    #[arg(long, value_name = "PLACE", requires = "write_context", value_parser = filled)]
    pub(super) gap: Option<String>,
}

/// The part of a repository to process.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Part {
    /// Only agents and contexts that these files and folders affect; the root of the repository selects everything
    #[arg(value_name = "PATH")]
    pub(super) paths: Vec<PathBuf>,
    /// Only agents affected by files that changed since a git revision, by default HEAD
    #[arg(long, value_name = "REV", num_args = 0..=1, conflicts_with = "paths")]
    #[expect(
        clippy::option_option,
        reason = "the option may be absent, bare, or have a value"
    )]
    pub(super) affected: Option<Option<String>>,
    /// Check only shard I of N (for CI job matrices); adding an agent never moves another to a
    /// different shard
    #[arg(long, value_name = "I/N")]
    pub(super) shard: Option<Shard>,
}

#[derive(Debug, Default, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate flag")]
pub(super) struct Compile {
    #[command(flatten)]
    pub(super) part: Part,
    /// Write nothing; exit with 1 if golden files are out of date
    #[arg(long, conflicts_with_all = ["diff", "out"])]
    pub(super) check: bool,
    /// Write golden files even if the environment variable `CI` is set
    #[arg(long, conflicts_with_all = ["check", "diff", "out"])]
    pub(super) write: bool,
    /// With --check: also exit with 1 on warnings
    #[arg(long, requires = "check")]
    pub(super) deny_warnings: bool,
    /// Show what changed, by cause: since the golden files, since a git revision, or between two
    /// revisions (A..B, A...B)
    #[arg(long, value_name = "REV", num_args = 0..=1, conflicts_with_all = ["paths", "affected", "shard"])]
    #[expect(
        clippy::option_option,
        reason = "the option may be absent, bare, or have a value, which may be empty"
    )]
    pub(super) diff: Option<Option<String>>,
    /// With --diff: compare the staged files, instead of the files on disk, with HEAD or REV
    #[arg(long, requires = "diff")]
    pub(super) staged: bool,
    /// With --diff: compare with REV itself, not with the merge base of REV and HEAD
    #[arg(long, requires = "diff")]
    pub(super) no_merge_base: bool,
    /// With --diff: show changes line by line instead of by cause
    #[arg(long, requires = "diff")]
    pub(super) text: bool,
    /// With --diff: exit with 1 if a change has this severity or a higher one
    #[arg(long, value_name = "CLASS", requires = "diff", value_parser = class)]
    pub(super) fail_on: Option<Class>,
    /// With --diff: exit with 1 if anything changed
    #[arg(long, requires = "diff")]
    pub(super) exit_code: bool,
    /// Write bodies to DIR instead of golden/, in the same layout
    #[arg(long, value_name = "DIR", conflicts_with = "diff")]
    pub(super) out: Option<PathBuf>,
    /// With --out: the layout of requests: tree, jsonl, curl, har, batch-openai or batch-anthropic
    #[arg(long, value_name = "LAYOUT", requires = "out", value_parser = layout)]
    pub(super) layout: Option<Layout>,
    /// Write bodies for every context, not only for those with golden files
    #[arg(long)]
    pub(super) all_contexts: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Review {
    /// Accept the causes with these numbers without asking
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub(super) accept: Vec<usize>,
    /// Include bodies for every context, not only for those with golden files
    #[arg(long)]
    pub(super) all_contexts: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum ToolsAction {
    /// Show which provider accepts which tools, and what they cost; exit with 1 if one is rejected
    Check(ToolsCheck),
}

#[derive(Debug, clap::Args)]
pub(super) struct ToolsCheck {
    /// A file with tools: JSON (a list, a request body, an answer to `tools/list`, an SDK's output)
    /// or tools.toml; `-` reads standard input
    #[arg(value_name = "SOURCE")]
    pub(super) source: Option<PathBuf>,
    /// Only this provider (repeatable); `all` includes less common ones
    #[arg(long = "provider", value_name = "P", value_parser = filled)]
    pub(super) providers: Vec<String>,
    /// Rewrite the tools into a form that this provider accepts, and list the checks that are lost
    #[arg(long, value_name = "P", value_parser = filled, conflicts_with = "providers")]
    pub(super) lower: Option<String>,
    /// Start the MCP server given after `--`, and ask it for its tools
    #[cfg(feature = "runtime")]
    #[arg(long, requires = "command", conflicts_with_all = ["mcp_url", "source"])]
    pub(super) mcp_command: bool,
    /// Ask the MCP server at this URL for its tools
    #[cfg(feature = "runtime")]
    #[arg(long, value_name = "URL", value_parser = filled, conflicts_with = "source")]
    pub(super) mcp_url: Option<String>,
    /// With --mcp-command: an environment variable to pass to the server (repeatable)
    #[cfg(feature = "runtime")]
    #[arg(long, value_name = "NAME", value_parser = filled, requires = "mcp_command")]
    pub(super) mcp_env: Vec<String>,
    /// With --mcp-url: where to find the key, for example `env:NAME`
    #[cfg(feature = "runtime")]
    #[arg(long, value_name = "REF", value_parser = filled, requires = "mcp_url")]
    pub(super) mcp_key: Option<String>,
    /// The time limit for an MCP server, in seconds
    #[cfg(feature = "runtime")]
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub(super) timeout: u32,
    /// The program of an MCP server and its arguments
    #[cfg(feature = "runtime")]
    #[arg(value_name = "COMMAND", last = true, requires = "mcp_command")]
    pub(super) command: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Compare {
    /// Two files of bodies: JSON, JSON Lines, batches, HAR; `-` reads standard input. Or use
    /// --agent twice, with --context
    #[arg(value_name = "FILE", num_args = 2)]
    pub(super) files: Vec<PathBuf>,
    /// The wire format of the first file, for example openai-chat; by default detected from URLs
    /// and shapes
    #[arg(long, value_name = "WIRE", value_parser = filled)]
    pub(super) from: Option<String>,
    /// The wire format of the second file
    #[arg(long, value_name = "WIRE", value_parser = filled)]
    pub(super) to: Option<String>,
    /// The agents to compare, from `--agent`.
    #[arg(skip)]
    pub(super) agents: Vec<String>,
    /// The differences to ignore, from `--allow`.
    #[arg(skip)]
    pub(super) allow: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Lint {
    /// Files that contain request bodies (JSON, JSON Lines, batches, HAR, SDKs' debug logs); `-` reads
    /// standard input
    #[arg(value_name = "FILE", required = true)]
    pub(super) files: Vec<PathBuf>,
    /// Analyse each conversation in the files: where the cache was lost, what that cost, and why
    /// requests fail
    #[arg(long, conflicts_with_all = ["provider", "server"])]
    pub(super) session: bool,
    /// The wire format of all bodies, for example openai-chat; by default detected from URLs and
    /// shapes
    #[arg(long, value_name = "W", value_parser = filled)]
    pub(super) wire: Option<String>,
    /// The provider instance that receives the bodies, from the repository or bundled
    #[arg(long, value_name = "INSTANCE", value_parser = filled)]
    pub(super) provider: Option<String>,
    /// The server that answers, if its URL does not reveal it: an operator or software, for example
    /// vLLM
    #[arg(long, value_name = "NAME", value_parser = filled, conflicts_with = "provider")]
    pub(super) server: Option<String>,
    /// Also exit with 1 on warnings
    #[arg(long, conflicts_with = "session")]
    pub(super) deny_warnings: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Why400 {
    /// The error message or JSON from the provider, or a file that contains it: a log, a HAR file,
    /// a cassette; with `-` or no argument, standard input is read
    #[arg(value_name = "ANSWER", allow_hyphen_values = true, value_parser = filled)]
    pub(super) answer: Option<String>,
    /// The rest of an error message that is not in quotes
    #[arg(hide = true)]
    pub(super) words: Vec<String>,
    /// A file with the request body, to show where in the body the error is
    #[arg(long, value_name = "FILE")]
    pub(super) body: Option<PathBuf>,
    /// The wire format of the body, for example openai-chat; by default detected from its shape
    #[arg(long, value_name = "W", value_parser = filled)]
    pub(super) wire: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(super) enum ContextAction {
    /// Convert a request body to a context, and list what could not be converted
    Import(Import),
}

#[derive(Debug, clap::Args)]
pub(super) struct Import {
    /// A file that contains the body: JSON, JSON Lines, a batch, HAR; `-` reads standard input
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
    /// The wire format of the body, for example openai-chat; by default detected from its URL and
    /// shape
    #[arg(long, value_name = "WIRE", value_parser = filled)]
    pub(super) from: Option<String>,
    /// Use the body on this line of a JSON Lines file
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) line: Option<u32>,
    /// Use the body with this number, if there are several; by default the first
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) body: Option<u32>,
    /// The context's name (default: the file name)
    #[arg(long, value_name = "NAME", value_parser = filled)]
    pub(super) name: Option<String>,
    /// Replace text with text of the same length and the same kinds of characters
    #[arg(long)]
    pub(super) redact: bool,
    /// Write the context to a new file
    #[arg(long, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
}

#[cfg(feature = "runtime")]
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate flag")]
pub(super) struct Send {
    /// The name of an agent in the repository, or of a bundled one
    #[arg(value_parser = filled)]
    pub(super) agent: String,
    /// `-` reads the message from standard input
    #[arg(value_name = "-", conflicts_with = "message")]
    pub(super) input: Option<String>,
    /// The message; or use `--context` to send a conversation from a context or a file
    #[arg(short, long, value_name = "TEXT")]
    pub(super) message: Option<String>,
    /// An image to attach to the message: a file or a URL (repeatable)
    #[arg(long = "image", value_name = "FILE|URL")]
    pub(super) images: Vec<String>,
    /// Attach a file below the session's folder by reference, without storing it in the session
    /// (repeatable)
    #[arg(long = "attach", value_name = "FILE")]
    pub(super) attached: Vec<String>,
    /// Tools that the agent may run; docs/tools.md describes the file
    #[arg(long, value_name = "FILE")]
    pub(super) tools: Option<PathBuf>,
    /// Allow the servers, keys and tools that the repository asks for, now and in future
    #[arg(long)]
    pub(super) trust: bool,
    /// Send the request even if `reqc check` reports errors in it
    #[arg(long)]
    pub(super) force: bool,
    /// Remove code fences and repeated surrounding text from the printed answer
    #[arg(long)]
    pub(super) clean: bool,
    /// Print the request without sending it
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Print a curl command without sending the request
    #[arg(long)]
    pub(super) curl: bool,
    /// Save the session to a new file
    #[arg(long, value_name = "FILE")]
    pub(super) save: Option<PathBuf>,
    /// Continue a saved session, and append to its file unless `--save` is given
    #[arg(long, value_name = "FILE")]
    pub(super) resume: Option<PathBuf>,
    /// First replace the conversation so far with a summary, written by an agent in the
    /// `chat_compression` roster
    #[arg(long, conflicts_with_all = ["dry_run", "curl"])]
    pub(super) compress: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Route {
    /// The path of the file, as matched by the agents' patterns; it need not exist
    #[arg(value_parser = filled)]
    pub(super) file: String,
    /// The name of the roster in `rosters.toml`
    #[arg(long, value_name = "NAME", value_parser = filled)]
    pub(super) roster: String,
    /// The project that the file belongs to
    #[arg(long, value_name = "NAME", value_parser = filled)]
    pub(super) project: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Human-readable text
    #[value(alias = "text")]
    Human,
    /// One line per finding
    Short,
    /// Machine-readable JSON; see docs/json.md
    Json,
    /// For code scanning
    Sarif,
    /// GitHub Actions annotations
    Github,
    /// GitLab Code Quality report
    Gitlab,
    #[value(help = "JUnit XML")]
    Junit,
    /// For a comment or a job summary
    Markdown,
    /// A self-contained HTML page
    Html,
    /// An LCOV tracefile (only `reqc coverage`), for editors and coverage services
    Lcov,
    /// One JSON object per event of `reqc send`
    #[cfg(feature = "runtime")]
    Events,
}

impl Format {
    /// Returns `true` if the format is available for this kind of output.
    pub(super) fn is_form_of(self, writes: Writes) -> bool {
        match self {
            Format::Sarif | Format::Github | Format::Gitlab | Format::Junit => {
                writes == Writes::Reports
            }
            Format::Markdown => {
                !matches!(writes, Writes::Answers | Writes::Coverage | Writes::Others)
            }
            Format::Html => {
                matches!(writes, Writes::Reviews | Writes::Stories | Writes::Coverage)
            }
            Format::Lcov => writes == Writes::Coverage,
            #[cfg(feature = "runtime")]
            Format::Events => writes == Writes::Answers,
            Format::Human | Format::Short | Format::Json => true,
        }
    }

    pub(super) fn name(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// A format, and the file to write it to; `None` stands for standard output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FormatTo {
    pub(super) format: Format,
    pub(super) file: Option<PathBuf>,
}

impl FormatTo {
    fn parse(argument: &str) -> Result<FormatTo, String> {
        let (name, file) = match argument.split_once('=') {
            Some((_, "")) => return Err("the file name after `=` is missing".to_owned()),
            Some((name, file)) => (name, Some(PathBuf::from(file))),
            None => (argument, None),
        };
        let format = Format::from_str(name, false).map_err(|_| {
            let known: Vec<String> = format_names().collect();
            let near = did_you_mean(name, known.iter().map(String::as_str));
            near.unwrap_or_else(|| format!("possible formats: {}", known.join(", ")))
        })?;
        Ok(FormatTo { format, file })
    }
}

fn format_names() -> impl Iterator<Item = String> {
    Format::value_variants().iter().map(|format| format.name())
}

/// Parses a [`FormatTo`], and lists the formats for help and shell completion.
#[derive(Clone)]
pub(super) struct FormatParser {
    /// The kinds of output that the command has.
    pub(super) writes: &'static [Writes],
}

impl FormatParser {
    fn of_all() -> FormatParser {
        FormatParser {
            writes: Writes::ALL,
        }
    }
}

impl FormatParser {
    /// Returns the help for HTML, which names the commands and options that can write it.
    fn of_html(&self) -> String {
        let sources = self.writes.iter().filter_map(|writes| match writes {
            Writes::Reviews => Some("`compile --diff`"),
            Writes::Stories => Some("`lint --session`"),
            Writes::Coverage => Some("`coverage`"),
            Writes::Reports | Writes::Comparisons | Writes::Answers | Writes::Others => None,
        });
        let sources: Vec<&str> = sources.collect();
        format!("A self-contained HTML page for {}", sources.join(" and "))
    }
}

impl TypedValueParser for FormatParser {
    type Value = FormatTo;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<FormatTo, clap::Error> {
        StringValueParser::new()
            .try_map(|text| FormatTo::parse(&text))
            .parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let formats = Format::value_variants().iter();
        let written =
            formats.filter(|format| self.writes.iter().any(|writes| format.is_form_of(*writes)));
        let values = written.filter_map(|format| {
            let value = format.to_possible_value()?;
            match format {
                Format::Html => Some(value.help(self.of_html())),
                _ => Some(value),
            }
        });
        Some(Box::new(values))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    /// On a terminal, unless `NO_COLOR` is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}
