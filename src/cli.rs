//! The command-line interface. It parses arguments into options, runs a command, and returns an
//! exit code. Each command has one short file.
//!
//! Everything is printed through `Terminal`; other modules make all decisions.

mod args;
mod progress;
mod shared;
mod terminal;
mod formats;
mod options;
mod baseline;
mod fix;
mod impact;
mod list;
mod models;
mod part;
mod export;
mod check;
mod lint;
mod import;
mod coverage;
#[cfg(feature = "runtime")]
mod providers;
mod render;
mod compare;
mod explain;
mod route;
mod rule;
mod schema;
#[cfg(feature = "runtime")]
mod send;
#[cfg(feature = "runtime")]
mod installed;
#[cfg(feature = "runtime")]
mod mcp_list;
mod man;
mod goldens;
mod diff;
mod compile;
mod init;
mod show;
mod review;
mod tools;
mod tree;
mod why400;

use std::path::Path;
use std::process::ExitCode;

use args::{Args, Command, ContextAction, ToolsAction};
use options::Options;
use render::Shape;
use terminal::Terminal;

use crate::compile::Report;
use crate::report::Checkout;
use crate::world::AccessError;

/// The result of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// No finding reaches the threshold.
    Clean,
    /// There are findings or drift.
    Findings,
    /// The command could not run, or the request failed.
    Failed,
    /// The user cancelled the run.
    Cancelled,
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> ExitCode {
        ExitCode::from(match status {
            Status::Clean => 0,
            Status::Findings => 1,
            Status::Failed => 2,
            // The exit code that shells report after Ctrl-C: 128 plus the signal number.
            Status::Cancelled => 130,
        })
    }
}

/// The reason a command could not run, as a phrase, and the next step if there is one.
pub struct Failure {
    message: String,
    help: Option<String>,
}

impl Failure {
    fn new(message: impl Into<String>) -> Failure {
        Failure {
            message: message.into(),
            help: None,
        }
    }

    /// Creates a failure with an error's message.
    fn of(error: impl std::error::Error) -> Failure {
        Failure::new(error.to_string())
    }

    fn help(mut self, help: impl Into<String>) -> Failure {
        self.help = Some(help.into());
        self
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Failure {
        Failure::new(message)
    }
}

impl From<AccessError> for Failure {
    fn from(error: AccessError) -> Failure {
        Failure::new(error)
    }
}

type Outcome = Result<Status, Failure>;

/// Shows a report. Returns the status of the run.
fn report(options: &Options, report: &Report, terminal: &mut Terminal) -> Status {
    terminal.report(options.format, report, &Checkout::default());
    if report.fails() {
        Status::Findings
    } else {
        Status::Clean
    }
}

/// Shows a report and writes it to the requested files. The report's paths are relative to
/// `folder`. Returns the status of the run, which also fails on warnings if `deny_warnings` is set.
fn report_from(
    folder: &Path,
    options: &Options,
    found: &Report,
    deny_warnings: bool,
    terminal: &mut Terminal,
) -> Outcome {
    options.formats.write(found, folder, terminal)?;
    let fails = found.fails() || deny_warnings && found.summary.warnings > 0;
    Ok(if fails {
        Status::Findings
    } else {
        Status::Clean
    })
}

/// Shows findings that explain why there is nothing else to show.
fn show_findings(options: &Options, report: &Report, terminal: &mut Terminal) -> Status {
    terminal.findings(options.format, report);
    Status::Findings
}

/// Runs the command given in the process arguments.
pub fn main() -> ExitCode {
    #[cfg(feature = "runtime")]
    if let Some(status) = crate::system::supervise() {
        return status;
    }
    Terminal::tell_of_panics();
    // Some systems give the main thread a stack of 1 MiB, which is too small for the deepest
    // allowed templates.
    match std::thread::Builder::new()
        .stack_size(crate::compile::STACK_BYTES)
        .spawn(start)
    {
        // The panic was printed when it happened.
        Ok(thread) => thread.join().unwrap_or(Status::Failed.into()),
        Err(_) => start(),
    }
}

fn start() -> ExitCode {
    let args = match shared::read() {
        Ok(args) => args,
        Err(error) => {
            #[cfg(feature = "runtime")]
            if let Some(format) = args::format_of_unread_send(&error) {
                let failure = Failure::new("the command line is invalid: see standard error");
                send::end_unsent(
                    format,
                    &failure,
                    &mut Terminal::new(args::Color::Never, true),
                );
            }
            return Terminal::usage(&error);
        }
    };
    let mut terminal = Terminal::new(args.common.color, args.common.quiet);
    #[cfg(feature = "runtime")]
    let sends_for_programs = args.sends_for_programs();
    let status = run(args, &mut terminal).unwrap_or_else(|failure| {
        #[cfg(feature = "runtime")]
        if let Some(format) = sends_for_programs {
            send::end_unsent(format, &failure, &mut terminal);
        }
        Terminal::fail(&failure.message, failure.help.as_deref());
        Status::Failed
    });
    if let Some(why) = terminal.lost() {
        Terminal::fail(&format!("cannot write to standard output: {why}"), None);
        return Status::Failed.into();
    }
    status.into()
}

fn run(args: Args, terminal: &mut Terminal) -> Outcome {
    if args.has_empty_model() {
        return Err(Failure::new("`--model` is empty"));
    }
    shared::refuse_model(&args.name, args.common.model.as_deref())?;
    let args = args.settle();
    let options = Options::resolve(args.common)?;
    options.formats.refuse_others(args.command.writes())?;
    match args.command {
        Command::Check(check) if check.fix => {
            fix::run(&options, check.dry_run, check.deny_warnings, terminal)
        }
        Command::Check(check) => check::run(&options, &check.part, check.deny_warnings, terminal),
        Command::Baseline(arguments) => baseline::run(&options, &arguments, terminal),
        Command::Compile(compile) => compile::run(&options, &compile, terminal),
        Command::Review(args) => review::run(&options, &args, terminal),
        Command::Compare(args) => compare::run(&options, &args, terminal),
        Command::Lint(lint) => lint::run(&options, &lint, terminal),
        Command::Why400(args) => why400::run(&options, &args, terminal),
        Command::Tools {
            action: ToolsAction::Check(args),
        } => tools::check(&options, &args, terminal),
        Command::List { all, tag } => list::agents(&options, all, tag.as_deref(), terminal),
        Command::Explain {
            agent,
            pointer,
            content,
        } => {
            let wanted = explain::Wanted {
                pointer: pointer.as_deref(),
                content: content.as_deref(),
            };
            explain::run(&options, &agent, &wanted, terminal)
        }
        Command::Coverage(args) => coverage::run(&options, &args, terminal),
        Command::Impact { place } => impact::run(&options, &place, terminal),
        Command::Contexts => list::contexts(&options, terminal),
        Command::Context {
            action: ContextAction::Import(import),
        } => import::run(&options, &import, terminal),
        #[cfg(feature = "runtime")]
        Command::Models {
            installed: Some(instance),
            trust,
            ..
        } => installed::run(&options, &instance, trust, terminal),
        Command::Models { name, .. } => models::run(&options, name.as_deref(), terminal),
        Command::Tree => tree::run(&options, terminal),
        Command::Show { agent } => show::run(&options, &agent, terminal),
        Command::Render {
            agent,
            curl,
            compact,
            tokens,
        } => {
            let shape = match (curl, compact, tokens) {
                (true, ..) => Shape::Curl,
                (_, true, _) => Shape::Compact,
                (.., true) => Shape::Tokens,
                _ => Shape::Pretty,
            };
            render::run(&options, &agent, shape, terminal)
        }
        #[cfg(feature = "runtime")]
        Command::Providers => providers::run(&options, terminal),
        #[cfg(feature = "runtime")]
        Command::Send(arguments) => send::run(&options, &arguments, terminal),
        Command::Route(arguments) => route::run(&options, &arguments, terminal),
        Command::Rule { code, evidence } => {
            rule::run(&options, code.as_deref(), evidence, terminal)
        }
        Command::Schema { name } => schema::run(&options, name.as_deref(), terminal),
        Command::Init { path } => init::run(&options, path, terminal),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut shared::command(), "reqc", &mut script);
            terminal.script(&String::from_utf8_lossy(&script));
            Ok(Status::Clean)
        }
        Command::Man { out } => man::run(&options, &out, terminal),
    }
}
