//! The arguments as they are written.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::compile::selection::Shard;
use crate::diag::did_you_mean;
use crate::export::Layout;
use crate::review::Class;

/// The format in which programs wait for the outcome of a `reqc send` whose arguments are wrong, as
/// far as they can be read.
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

/// An argument that says something: one that is empty is most often a variable that is not set, and
/// would select everything or nothing.
fn filled(argument: &str) -> Result<String, String> {
    match argument.trim().is_empty() {
        true => Err("it is empty".to_owned()),
        false => Ok(argument.to_owned()),
    }
}

/// A layout of requests.
fn layout(argument: &str) -> Result<Layout, String> {
    Layout::ALL
        .into_iter()
        .find(|layout| layout.name() == argument)
        .ok_or_else(|| format!("write one of: {}", names()))
}

fn names() -> String {
    Layout::ALL.map(Layout::name).join(", ")
}

/// A share in percent.
fn percent(argument: &str) -> Result<f64, String> {
    let number: Option<f64> = argument.trim_end_matches('%').trim().parse().ok();
    number
        .filter(|number| (0.0..=100.0).contains(number))
        .ok_or_else(|| "write a number from 0 to 100".to_owned())
}

/// A class of changes.
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
/// prove that they are right.
#[derive(Debug, Parser)]
#[command(
    name = "reqc",
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
#[expect(clippy::struct_excessive_bools, reason = "flags are what they are")]
pub(super) struct Common {
    /// Run as if started in DIR, which is then the root of the repository
    #[arg(short = 'C', value_name = "DIR", global = true)]
    pub(super) directory: Option<PathBuf>,
    /// Only agents whose name matches (repeatable)
    #[arg(long = "agent", value_name = "GLOB", global = true, value_parser = filled)]
    pub(super) agents: Vec<String>,
    /// Only contexts whose name matches (repeatable)
    #[arg(long = "context", value_name = "GLOB", global = true, value_parser = filled)]
    pub(super) contexts: Vec<String>,
    /// The model to render with
    #[arg(long, value_name = "M", global = true)]
    pub(super) model: Option<String>,
    /// Take the bundled agents too
    #[arg(long, global = true, conflicts_with = "no_bundled")]
    pub(super) bundled: bool,
    /// Leave out bundled profiles, partials and roles
    #[arg(long, global = true)]
    pub(super) no_bundled: bool,
    /// How results are written (repeatable); `FORMAT=FILE` writes a report into a file [default:
    /// human]
    #[arg(long = "format", value_name = "FORMAT[=FILE]", value_parser = FormatParser::of_all(), global = true)]
    pub(super) formats: Vec<FormatTo>,
    /// When to use colours; `auto` looks at the terminal and `NO_COLOR`
    #[arg(long, value_enum, default_value_t = Color::Auto, global = true)]
    pub(super) color: Color,
    /// Print findings only
    #[arg(short, long, global = true)]
    pub(super) quiet: bool,
    /// Say on standard error how much work was shared between agents
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    pub(super) verbose: bool,
    /// Treat findings of a rule as errors (repeatable; `family/*` for all of a family)
    #[arg(long, value_name = "CODE", global = true, value_parser = filled)]
    pub(super) deny: Vec<String>,
    /// Drop findings of a rule (repeatable; `family/*` for all of a family)
    #[arg(long, value_name = "CODE", global = true, value_parser = filled)]
    pub(super) allow: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Render every agent against every context and report what is wrong
    Check(Check),
    /// Silence today's findings: write them as [[allow]] entries into reqc.toml
    Baseline(Baseline),
    /// Write golden bodies, or compare them
    Compile(Compile),
    /// Write golden bodies cause by cause, each once you accept it
    Review(Review),
    /// Tell what one of two request bodies of a conversation lacks
    Compare(Compare),
    /// Judge request bodies that any program made
    Lint(Lint),
    /// Explain why a provider refused a request
    Why400(Why400),
    /// Judge a list of tools for each provider
    Tools {
        /// The action
        #[command(subcommand)]
        action: ToolsAction,
    },
    /// List agents
    List {
        /// Include hidden and abstract ones
        #[arg(long)]
        all: bool,
        /// Only agents with this tag
        #[arg(long, value_name = "TAG", value_parser = filled)]
        tag: Option<String>,
    },
    /// Show the hierarchy of profiles and what each level adds
    Tree,
    /// Show an agent's merged profile, each value with its origin
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
        /// Print a curl command instead of the body alone
        #[arg(long)]
        curl: bool,
        /// Print the body on one line, as it goes over the wire
        #[arg(long, conflicts_with = "curl")]
        compact: bool,
        /// Print how many tokens the request takes, part by part, instead of the body
        #[arg(long, conflicts_with_all = ["curl", "compact"])]
        tokens: bool,
    },
    /// Tell who wrote a value of a body, or each line
    #[command(visible_alias = "why")]
    Explain {
        /// The agent's name
        #[arg(value_parser = filled)]
        agent: String,
        /// The value, as a JSON pointer: /messages/0/content
        pointer: Option<String>,
        /// Instead of a value of the body, a piece of the context file: where it went. A JSON
        /// pointer: /history/3/blocks/0
        #[arg(long, value_name = "POINTER", value_parser = filled, conflicts_with = "pointer")]
        content: Option<String>,
    },
    /// Tell which parts of the templates no context reaches
    Coverage(Coverage),
    /// Tell which agents, contexts and values a place of a file reaches
    Impact {
        /// The place: a file, with a line and a column if you like: `partials/x.jinja:3:7`
        #[arg(value_name = "PLACE", value_parser = filled)]
        place: String,
    },
    /// List contexts and why they are there
    Contexts,
    /// Make a context of a real request body
    Context {
        /// The action
        #[command(subcommand)]
        action: ContextAction,
    },
    /// Tell what is known of a model, or list all families of models
    Models {
        /// The model's name, as it is sent
        #[arg(value_parser = filled)]
        name: Option<String>,
        /// List the models that the server of a provider instance offers
        #[cfg(feature = "runtime")]
        #[arg(long, value_name = "INSTANCE", conflicts_with = "name", value_parser = filled)]
        installed: Option<String>,
        /// With `--installed`: allow the request, now and later
        #[cfg(feature = "runtime")]
        #[arg(long, requires = "installed")]
        trust: bool,
    },
    /// List provider instances, and whether their keys are found; no key is printed
    #[cfg(feature = "runtime")]
    Providers,
    /// Send one request and print its answer as it comes
    #[cfg(feature = "runtime")]
    Send(Send),
    /// Tell which agent of a roster gets a file, and why others do not
    Route(Route),
    /// Explain a rule, or list all of them
    Rule {
        /// The rule's code, for instance extends/cycle
        code: Option<String>,
    },
    /// Print a JSON Schema, or list all of them
    Schema {
        /// The schema's name, for instance profile
        name: Option<String>,
    },
    /// Make a small agent repository to start from
    Init {
        /// The folder; by default the current one. Files that are there stay as they are
        path: Option<PathBuf>,
    },
    /// Print a completion script
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the manual pages of all commands into a folder
    Man {
        /// The folder
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
}

/// Forms of output that some commands have beside findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writes {
    /// Reports of findings.
    Reports,
    /// The effects of a change.
    Reviews,
    /// The losses between two bodies.
    Comparisons,
    /// The stories of conversations.
    Stories,
    /// The coverage of templates.
    Coverage,
    /// The answers that `reqc send` gets.
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
    /// Hands `reqc compare` the options that mean something of its own there: agents are names,
    /// what is allowed are differences.
    pub(super) fn settle(mut self) -> Args {
        if let Command::Compare(compare) = &mut self.command {
            compare.agents = std::mem::take(&mut self.common.agents);
            compare.allow = std::mem::take(&mut self.common.allow);
        }
        self
    }

    /// Returns `true` if `--model` is given and names none. `reqc send` takes that for no model: it
    /// may be a variable that is not set.
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

    /// The format in which programs read what `reqc send` does, if this is that command and they
    /// do.
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
    /// Exit with 1 if there are warnings, too
    #[arg(long)]
    pub(super) deny_warnings: bool,
    /// Mend what has one right answer, in the files of the whole repository
    #[arg(long, conflicts_with_all = ["paths", "affected", "shard"])]
    pub(super) fix: bool,
    /// With --fix: show the edits and write nothing
    #[arg(long, requires = "fix")]
    pub(super) dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Baseline {
    /// Why they are silenced; by default that they are in the baseline of today
    #[arg(long, value_name = "TEXT", value_parser = filled)]
    pub(super) reason: Option<String>,
    /// The last day on which the entries hold; by default in 90 days
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = filled)]
    pub(super) expires: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Coverage {
    /// Exit with 1 if less of the lines or of the outcomes is reached
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(super) fail_under: Option<f64>,
    /// Write a context that reaches a gap: one of the file and line of `--gap`, or the first that
    /// can be reached
    #[arg(long, value_name = "FILE")]
    pub(super) write_context: Option<PathBuf>,
    /// With --write-context: the gap, by its place: `partials/x.jinja:3` or `partials/x.jinja:3:7`
    #[arg(long, value_name = "PLACE", requires = "write_context", value_parser = filled)]
    pub(super) gap: Option<String>,
}

/// The part of a repository that is looked at.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Part {
    /// Only what these files and folders reach; the root of a repository stands for all of it
    #[arg(value_name = "PATH")]
    pub(super) paths: Vec<PathBuf>,
    /// Only agents that changed files reach, compared with a git revision, by default HEAD
    #[arg(long, value_name = "REV", num_args = 0..=1, conflicts_with = "paths")]
    #[expect(
        clippy::option_option,
        reason = "not asked for, without a revision, and with one"
    )]
    pub(super) affected: Option<Option<String>>,
    /// Only the I-th of N parts of the agents, for a matrix of jobs; a new agent moves no other
    #[arg(long, value_name = "I/N")]
    pub(super) shard: Option<Shard>,
}

#[derive(Debug, Default, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags are what they are")]
pub(super) struct Compile {
    #[command(flatten)]
    pub(super) part: Part,
    /// Write nothing; exit with 1 if golden files are out of date
    #[arg(long, conflicts_with_all = ["diff", "out"])]
    pub(super) check: bool,
    /// Write golden files although the variable `CI` is set
    #[arg(long, conflicts_with_all = ["check", "diff", "out"])]
    pub(super) write: bool,
    /// With --check: exit with 1 if there are warnings, too
    #[arg(long, requires = "check")]
    pub(super) deny_warnings: bool,
    /// Show what changed, by cause: against the golden files, a git revision, or between two (A..B,
    /// A...B)
    #[arg(long, value_name = "REV", num_args = 0..=1, conflicts_with_all = ["paths", "affected", "shard"])]
    #[expect(
        clippy::option_option,
        reason = "not asked for, without a revision, and with one, which may be empty"
    )]
    pub(super) diff: Option<Option<String>>,
    /// With --diff: compare what is staged, instead of the files on disk, with HEAD or REV
    #[arg(long, requires = "diff")]
    pub(super) staged: bool,
    /// With --diff: compare with REV itself, not with the commit at which it and HEAD diverged
    #[arg(long, requires = "diff")]
    pub(super) no_merge_base: bool,
    /// With --diff: line by line instead of by cause
    #[arg(long, requires = "diff")]
    pub(super) text: bool,
    /// With --diff: exit with 1 if a change is of this class or a graver one
    #[arg(long, value_name = "CLASS", requires = "diff", value_parser = class)]
    pub(super) fail_on: Option<Class>,
    /// With --diff: exit with 1 if anything changed
    #[arg(long, requires = "diff")]
    pub(super) exit_code: bool,
    /// Write bodies to DIR, in the same layout, instead of golden/
    #[arg(long, value_name = "DIR", conflicts_with = "diff")]
    pub(super) out: Option<PathBuf>,
    /// With --out: how requests are laid out: tree, jsonl, curl, har, batch-openai or
    /// batch-anthropic
    #[arg(long, value_name = "LAYOUT", requires = "out", value_parser = layout)]
    pub(super) layout: Option<Layout>,
    /// Write bodies for every context, not only those that goldens are kept for
    #[arg(long)]
    pub(super) all_contexts: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Review {
    /// Accept the causes with these numbers, and ask nothing
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub(super) accept: Vec<usize>,
    /// Bodies of every context, not only those that goldens are kept for
    #[arg(long)]
    pub(super) all_contexts: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum ToolsAction {
    /// Tell which provider takes which tools, and what they cost; exit with 1 if one is refused
    Check(ToolsCheck),
}

#[derive(Debug, clap::Args)]
pub(super) struct ToolsCheck {
    /// A file with tools: JSON (a list, a request body, an answer to `tools/list`, what an SDK
    /// writes) or tools.toml; `-` is standard input
    #[arg(value_name = "SOURCE")]
    pub(super) source: Option<PathBuf>,
    /// Only this provider (repeatable); `all` for those that few ask for, too
    #[arg(long = "provider", value_name = "P", value_parser = filled)]
    pub(super) providers: Vec<String>,
    /// Write the nearest tools that this provider takes, and say what they no longer check
    #[arg(long, value_name = "P", value_parser = filled, conflicts_with = "providers")]
    pub(super) lower: Option<String>,
    /// Start the MCP server after `--`, and ask it for its tools
    #[cfg(feature = "runtime")]
    #[arg(long, requires = "command", conflicts_with_all = ["mcp_url", "source"])]
    pub(super) mcp_command: bool,
    /// Ask the MCP server at this URL for its tools
    #[cfg(feature = "runtime")]
    #[arg(long, value_name = "URL", value_parser = filled, conflicts_with = "source")]
    pub(super) mcp_url: Option<String>,
    /// With --mcp-command: a variable of this environment that the server gets (repeatable)
    #[cfg(feature = "runtime")]
    #[arg(long, value_name = "NAME", value_parser = filled, requires = "mcp_command")]
    pub(super) mcp_env: Vec<String>,
    /// With --mcp-url: where the key is found, for instance `env:NAME`
    #[cfg(feature = "runtime")]
    #[arg(long, value_name = "REF", value_parser = filled, requires = "mcp_url")]
    pub(super) mcp_key: Option<String>,
    /// How long an MCP server may take, in seconds
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
    /// Two files of bodies: JSON, JSON Lines, batches, HAR; `-` is standard input. Or --agent
    /// twice, with --context
    #[arg(value_name = "FILE", num_args = 2)]
    pub(super) files: Vec<PathBuf>,
    /// The wire format of the first file, for instance openai-chat; otherwise URLs and shapes
    /// decide
    #[arg(long, value_name = "WIRE", value_parser = filled)]
    pub(super) from: Option<String>,
    /// The wire format of the second file
    #[arg(long, value_name = "WIRE", value_parser = filled)]
    pub(super) to: Option<String>,
    /// The agents that are compared, of `--agent`.
    #[arg(skip)]
    pub(super) agents: Vec<String>,
    /// The differences that may be, of `--allow`.
    #[arg(skip)]
    pub(super) allow: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Lint {
    /// Files of bodies: JSON, JSON Lines, batches, HAR; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    pub(super) files: Vec<PathBuf>,
    /// Tell the story of each conversation in the files: where the cache was lost, what it cost,
    /// what makes requests fail
    #[arg(long, conflicts_with = "provider")]
    pub(super) session: bool,
    /// The wire format of all bodies, for instance openai-chat; otherwise URLs and shapes decide
    #[arg(long, value_name = "W", value_parser = filled)]
    pub(super) wire: Option<String>,
    /// The provider instance that the bodies go to, of the repository or bundled
    #[arg(long, value_name = "INSTANCE", value_parser = filled)]
    pub(super) provider: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Why400 {
    /// The sentence or JSON that the provider answered, or a file that holds it: a log, a HAR file,
    /// a cassette; `-` is standard input
    #[arg(value_name = "ANSWER", required = true, allow_hyphen_values = true, value_parser = filled)]
    pub(super) answer: String,
    /// A file with the request's body, in which the place is shown
    #[arg(long, value_name = "FILE")]
    pub(super) body: Option<PathBuf>,
    /// The wire format of the body, for instance openai-chat; otherwise its shape decides
    #[arg(long, value_name = "W", value_parser = filled)]
    pub(super) wire: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(super) enum ContextAction {
    /// Print the context that a request body makes, and what of the body is not in it
    Import(Import),
}

#[derive(Debug, clap::Args)]
pub(super) struct Import {
    /// A file that holds the body: JSON, JSON Lines, a batch, HAR; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
    /// The wire format of the body, for instance openai-chat; otherwise its URL and shape decide
    #[arg(long, value_name = "WIRE", value_parser = filled)]
    pub(super) from: Option<String>,
    /// The body on this line of JSON Lines
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) line: Option<u32>,
    /// The body with this number, of several; by default the first
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) body: Option<u32>,
    /// The name of the context; by default that of the file
    #[arg(long, value_name = "NAME", value_parser = filled)]
    pub(super) name: Option<String>,
    /// Replace texts by others of the same length and kinds of characters
    #[arg(long)]
    pub(super) redact: bool,
    /// Write the context to a new file
    #[arg(long, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
}

#[cfg(feature = "runtime")]
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags are what they are")]
pub(super) struct Send {
    /// The agent's name, of the repository or bundled
    #[arg(value_parser = filled)]
    pub(super) agent: String,
    /// `-` reads the message from standard input
    #[arg(value_name = "-", conflicts_with = "message")]
    pub(super) input: Option<String>,
    /// The message; `--context` names a conversation, by its name or as a file, instead
    #[arg(short, long, value_name = "TEXT")]
    pub(super) message: Option<String>,
    /// An image of the message: a file or a URL (repeatable)
    #[arg(long = "image", value_name = "FILE|URL")]
    pub(super) images: Vec<String>,
    /// A file of the message that the session refers to and does not hold: a path below the
    /// session's folder (repeatable)
    #[arg(long = "attach", value_name = "FILE")]
    pub(super) attached: Vec<String>,
    /// Tools that the agent may run; docs/tools.md describes the file
    #[arg(long, value_name = "FILE")]
    pub(super) tools: Option<PathBuf>,
    /// Allow what the repository asks for, now and later: its servers, keys and tools
    #[arg(long)]
    pub(super) trust: bool,
    /// Send the request although it has mistakes that `reqc check` refuses
    #[arg(long)]
    pub(super) force: bool,
    /// Remove code fences, and text repeated from around the gap, from the printed answer
    #[arg(long)]
    pub(super) clean: bool,
    /// Print the request and send nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Print a curl command and send nothing
    #[arg(long)]
    pub(super) curl: bool,
    /// Save the session to a new file
    #[arg(long, value_name = "FILE")]
    pub(super) save: Option<PathBuf>,
    /// Go on with a saved session; without `--save` the file grows
    #[arg(long, value_name = "FILE")]
    pub(super) resume: Option<PathBuf>,
    /// Replace the conversation so far with a summary first; the agent for it is that of the roster
    /// `chat_compression`
    #[arg(long, conflicts_with_all = ["dry_run", "curl"])]
    pub(super) compress: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Route {
    /// The file's path, as agents' patterns see it; it need not exist
    #[arg(value_parser = filled)]
    pub(super) file: String,
    /// The roster of `rosters.toml`
    #[arg(long, value_name = "NAME", value_parser = filled)]
    pub(super) roster: String,
    /// The project that the file belongs to
    #[arg(long, value_name = "NAME", value_parser = filled)]
    pub(super) project: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people
    #[value(alias = "text")]
    Human,
    /// One line per finding
    Short,
    /// For programs; docs/json.md describes it
    Json,
    /// For code scanning
    Sarif,
    /// GitHub Actions annotations
    Github,
    /// GitLab Code Quality report
    Gitlab,
    #[value(help = "JUnit XML")]
    Junit,
    /// For a comment or a summary
    Markdown,
    /// One page that needs no network: changes of `compile --diff`, stories of `lint --session`,
    /// lines of `coverage`
    Html,
    /// The tracefile of `coverage`, for editors and coverage services
    Lcov,
    /// One JSON object per event of `reqc send`
    #[cfg(feature = "runtime")]
    Events,
}

impl Format {
    /// Returns `true` if what a command writes has this form.
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

/// A format, and the file that it is written to; without one, standard output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FormatTo {
    pub(super) format: Format,
    pub(super) file: Option<PathBuf>,
}

impl FormatTo {
    fn parse(argument: &str) -> Result<FormatTo, String> {
        let (name, file) = match argument.split_once('=') {
            Some((_, "")) => return Err("no file is named after the `=`".to_owned()),
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

/// Reads a [`FormatTo`], and tells help and shells which formats there are.
#[derive(Clone)]
pub(super) struct FormatParser {
    /// The forms that the command can write.
    pub(super) writes: &'static [Writes],
}

impl FormatParser {
    fn of_all() -> FormatParser {
        FormatParser {
            writes: Writes::ALL,
        }
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
        Some(Box::new(written.filter_map(ValueEnum::to_possible_value)))
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
