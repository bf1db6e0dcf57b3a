//! `reqc send`: sends one request to a real server and prints the answer as it arrives.

mod output;
mod signals;
mod trust;
mod unusable;
mod tools;
mod input;
mod compress;

use std::path::Path;
use std::sync::Arc;

use super::args::{Format, Send};
use super::options::{Opened, Options};
use super::{Failure, Outcome, Status, Terminal};
use crate::compile::Report;
use crate::conversation::log::Log;
use crate::diag::Diagnostic;
use crate::runtime::compression::Compression;
use crate::runtime::trust::{Bundled, Grant};
use crate::runtime::{
    Agent, Category, CompileError, Compiled, Error, Event, Outcome as Ended, Run, Session,
    Transport, TransportOptions,
};
use crate::system::{Embedded, JournalFile, RunningTools, SystemClock, SystemSecrets, TrustFolder};
use crate::text::Text;
use crate::world::Journal;
use input::{Input, Resumed};
use output::{Ending, Held, Printer};
use serde_json::Value;
use tokio::runtime::Runtime;
use tools::Tools;
use unusable::Unusable;

/// The reasons for not sending.
enum Unsent {
    Failure(Failure),
    /// The sources of the request have mistakes.
    Findings(Box<Report>),
    /// The request has mistakes.
    Refused(Box<Report>),
}

impl From<Failure> for Unsent {
    fn from(failure: Failure) -> Unsent {
        Unsent::Failure(failure)
    }
}

/// Sends the request and prints the events. JSON output always ends in the same way, even if
/// nothing is sent: if this function returns a failure, the caller ends the output with
/// [`end_unsent`].
pub(super) fn run(options: &Options, send: &Send, terminal: &mut Terminal) -> Outcome {
    match attempt(options, send, terminal) {
        Ok(status) => Ok(status),
        Err(Unsent::Failure(failure)) => Err(failure),
        Err(Unsent::Findings(found)) => {
            show_unsent(
                options,
                &found,
                "nothing was sent: the files of the agent have errors",
                terminal,
            );
            Ok(Status::Findings)
        }
        Err(Unsent::Refused(found)) => {
            show_unsent(options, &found, HAS_MISTAKES, terminal);
            Terminal::fail(HAS_MISTAKES, Some("`--force` sends it anyway"));
            Ok(Status::Findings)
        }
    }
}

const HAS_MISTAKES: &str = "nothing was sent: the request has errors";

/// Shows the findings that prevent sending.
fn show_unsent(options: &Options, found: &Report, why: &str, terminal: &mut Terminal) {
    match options.format {
        Format::Json | Format::Events => {
            terminal.findings_aside(options.format, found);
            let first = found
                .findings
                .first()
                .map(|finding| finding.message.as_str());
            let error = first
                .into_iter()
                .fold(Error::new(Category::Config, why), Error::detail);
            Ending::failed(error, Some(found)).print(options.format, terminal);
        }
        format => terminal.findings(format, found),
    }
}

/// Ends the JSON output after a failure before sending.
pub(super) fn end_unsent(format: Format, failure: &Failure, terminal: &mut Terminal) {
    let error = Error::new(Category::Config, failure.message.as_str());
    let error = failure
        .help
        .iter()
        .fold(error, |error, help| error.detail(help.as_str()));
    Ending::failed(error, None).print(format, terminal);
}

fn attempt(options: &Options, send: &Send, terminal: &mut Terminal) -> Result<Status, Unsent> {
    let everything = options.with_bundled();
    // The agent that compresses the chat can only be determined when all agents are loaded.
    let mut opened = if send.compress {
        everything.open()?
    } else {
        everything.open_one(&send.agent)?
    };
    let input = match Input::read(options, send, &mut opened, terminal) {
        Ok(input) => input,
        Err(Unusable::Failure(failure)) => return Err(failure.into()),
        Err(Unusable::Findings(found)) => {
            return Err(Unsent::Findings(opened.report_of(found).into()));
        }
        Err(Unusable::FindingsIn(sources, found)) => {
            return Err(Unsent::Findings(opened.report_in(sources, found).into()));
        }
    };
    let agent = Agent::new(
        Arc::clone(&opened.compiler),
        &send.agent,
        input.environment.clone(),
    )
    .map_err(failure)?;
    let agent = agent.with_model(options.model.as_deref());
    let agent = match input::session_files(options, send)? {
        Some(files) => agent.with_content(Arc::new(files)),
        None => agent,
    };
    let compressor = send
        .compress
        .then(|| agent.compression_agent())
        .transpose()
        .map_err(failure)?;
    let checked = match &compressor {
        Some(compressor) if input.blocks.is_none() => compress::compile(compressor, &input)?,
        _ => compile(&agent, &input)?,
    };
    let checked = match checked {
        Ok(checked) => checked,
        Err(found) => return Err(Unsent::Findings(opened.report_of(found).into())),
    };
    if checked.compiled.exposes_key() {
        Terminal::warn(&format!(
            "the key is sent unencrypted to {}: use https",
            checked.compiled.address()
        ));
    }
    if !is_sent(send) && input.tools.as_ref().is_some_and(Tools::has_servers) {
        Terminal::warn(
            "this request lacks the tools of MCP servers: servers are started only when a request is sent",
        );
    }
    let (compiled, found) = (&checked.compiled, opened.report_of(checked.found.clone()));
    let is_refused = found.fails() && !send.force;
    if is_refused && is_sent(send) {
        return Err(Unsent::Refused(found.into()));
    }
    terminal.findings_aside(options.format, &found);
    match is_sent(send) {
        true => deliver(
            &Command {
                options,
                send,
                opened: &opened,
            },
            Agents { agent, compressor },
            &checked,
            input,
            terminal,
        ),
        false => show(
            &Command {
                options,
                send,
                opened: &opened,
            },
            compiled,
            &found,
            terminal,
        ),
    }
}

fn is_sent(send: &Send) -> bool {
    !send.curl && !send.dry_run
}

/// A request and the findings about it.
struct Checked {
    compiled: Compiled,
    found: Vec<Diagnostic>,
}

/// A request, or the findings that prevented it.
type Compilation = Result<Checked, Vec<Diagnostic>>;

/// Compiles the request that would be sent now.
fn compile(agent: &Agent, input: &Input) -> Result<Compilation, Failure> {
    let conversation = input
        .restored()
        .preview(agent, input.blocks.clone())
        .map_err(failure)?;
    match agent.compile_and_check(conversation) {
        Ok((compiled, found)) => Ok(Ok(Checked { compiled, found })),
        Err(CompileError::Findings(found)) => Ok(Err(found)),
        Err(error) => Err(failure(error.into_error(agent.compiler()))),
    }
}

/// Prints the request. The returned status shows whether the request would be sent.
fn show(
    command: &Command<'_>,
    compiled: &Compiled,
    found: &Report,
    terminal: &mut Terminal,
) -> Result<Status, Unsent> {
    let Command {
        options,
        send,
        opened,
    } = command;
    let is_refused = found.fails() && !send.force;
    let curl = send
        .curl
        .then(|| crate::export::curl(&compiled.line, &compiled.body.pretty(), &opened.root));
    match options.format {
        format @ (Format::Json | Format::Events) => {
            let request = request_document(command, compiled, curl.as_ref())?;
            let ending = match is_refused {
                true => Ending::failed(Error::new(Category::Config, HAS_MISTAKES), Some(found)),
                false => Ending::as_asked(),
            };
            ending.with_request(request).print(format, terminal);
        }
        _ => terminal.text(&curl.unwrap_or_else(|| output::dry_run(compiled))),
    }
    Ok(if is_refused {
        Status::Findings
    } else {
        Status::Clean
    })
}

/// Returns the request as JSON, with the command that sends it.
fn request_document(
    Command {
        options,
        send,
        opened,
    }: &Command<'_>,
    compiled: &Compiled,
    curl: Option<&Text>,
) -> Result<Value, Failure> {
    let plan = opened
        .compiler
        .plan(opened.agent(&send.agent)?)
        .expect("it was compiled");
    let model = opened
        .compiler
        .repo()
        .client_model(plan.name(), options.model.as_deref());
    let mut document = super::render::request(&plan, model, &compiled.body);
    if let Some(curl) = curl {
        document["curl"] = curl.as_str().into();
    }
    Ok(document)
}

/// The command, and the repository that it works on.
struct Command<'c> {
    options: &'c Options,
    send: &'c Send,
    opened: &'c Opened,
}

/// The agent of the chat, and the agent that first compresses the chat, if requested.
struct Agents {
    agent: Agent,
    compressor: Option<Agent>,
}

/// Obtains all permissions, sends the request, and prints the response.
fn deliver(
    command: &Command<'_>,
    Agents { agent, compressor }: Agents,
    checked: &Checked,
    mut input: Input,
    terminal: &mut Terminal,
) -> Result<Status, Unsent> {
    let Command {
        options,
        send,
        opened,
    } = command;
    let secrets = SystemSecrets::new(&opened.root);
    let mut wanted = wanted(opened, &checked.compiled, &input, &secrets)?;
    if let Some(compressor) = &compressor {
        let compiled = compress::compile(compressor, &input)?;
        let more = compiled
            .ok()
            .map(|checked| server_grant(opened, &checked.compiled, &secrets))
            .transpose()?;
        wanted.extend(more.flatten().filter(|grant| !wanted.contains(grant)));
    }
    trust::ask(
        &opened.root,
        &wanted,
        send.trust,
        &TrustFolder::of_person(&opened.root),
    )?;
    let transport = Transport::new(Arc::new(secrets), TransportOptions::default())
        .with_clock(Arc::new(SystemClock));
    let engine = Engine::start(&mut input, &transport)?;
    let is_compiled = input.blocks.is_some() || compressor.is_none();
    if is_compiled && input.tools.as_ref().is_some_and(Tools::has_servers) {
        look_again(command, &agent, checked, &input, terminal)?;
    }
    let agent = if send.force {
        agent
    } else {
        agent.checked(opened.policy.clone())
    };
    let compression =
        compressor.map(|compressor| compress::compression(command, compressor, &transport));
    let held = send.clean.then(|| Held::for_task(&input.base.task));
    let mut printer = Printer::new(options.format, terminal).cleaning(held);
    let (session, ended) = talk(
        command,
        Talk {
            agent,
            transport,
            compression,
        },
        input,
        &engine,
        &mut printer,
    )?;
    drop(engine);
    printer.end(&session, &checked.compiled, &ended);
    match &ended {
        Ended::Failed(error) if error.category == Category::Config && !send.force => Ok(
            refuse_next(options, &opened.report_of(session.findings()), terminal),
        ),
        _ => Ok(status(&ended)),
    }
}

/// The runtime for requests and servers. Dropping it ends them.
struct Engine {
    /// `None` only while this is being dropped.
    runtime: Option<Runtime>,
    tools: Option<RunningTools>,
}

impl Engine {
    /// Starts the servers whose tools are needed, and adds the tools to the input.
    fn start(input: &mut Input, transport: &Transport) -> Result<Engine, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build();
        let runtime =
            runtime.map_err(|error| Failure::new(format!("the runtime cannot start: {error}")))?;
        let mut engine = Engine {
            runtime: Some(runtime),
            tools: None,
        };
        if let Some(tools) = &mut input.tools {
            crate::system::adopt();
            engine.tools = Some(engine.run(tools.start(transport))?);
            input.base.tools = tools.set.definitions();
        }
        Ok(engine)
    }

    fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime
            .as_ref()
            .expect("the runtime is taken only on drop")
            .block_on(work)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if let Some(tools) = self.tools.take() {
            self.run(tools.close());
        }
        // Do not wait for a key lookup that is still running.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        crate::system::end_the_rest();
    }
}

/// Compiles and checks the request again, now with the servers' tools.
fn look_again(
    Command {
        options,
        send,
        opened,
    }: &Command<'_>,
    agent: &Agent,
    before: &Checked,
    input: &Input,
    terminal: &mut Terminal,
) -> Result<(), Unsent> {
    let mut found = match compile(agent, input)? {
        Ok(checked) => checked.found,
        Err(found) => return Err(Unsent::Findings(opened.report_of(found).into())),
    };
    found.retain(|finding| !before.found.contains(finding));
    let found = opened.report_of(found);
    if found.fails() && !send.force {
        return Err(Unsent::Refused(found.into()));
    }
    terminal.findings_aside(options.format, &found);
    Ok(())
}

/// Shows why a later request in the tool loop was not sent, if that is why the session failed.
fn refuse_next(options: &Options, found: &Report, terminal: &Terminal) -> Status {
    if !found.fails() {
        return Status::Failed;
    }
    terminal.findings_aside(options.format, found);
    Terminal::fail(
        "the next request was not sent: it has errors",
        Some("`--force` sends it anyway"),
    );
    Status::Findings
}

/// Returns the permissions that only the user can give: for everything except reqc's own servers
/// and keys.
fn wanted(
    opened: &Opened,
    compiled: &Compiled,
    input: &Input,
    secrets: &SystemSecrets,
) -> Result<Vec<Grant>, Failure> {
    let server = server_grant(opened, compiled, secrets)?;
    let tools = input
        .tools
        .as_ref()
        .map(|tools| tools.grants(&opened.root, secrets))
        .transpose()?;
    Ok(server
        .into_iter()
        .chain(tools.unwrap_or_default())
        .collect())
}

/// Returns the permission that only the user can give for a request's server and key.
fn server_grant(
    opened: &Opened,
    compiled: &Compiled,
    secrets: &SystemSecrets,
) -> Result<Option<Grant>, Failure> {
    let instance = opened
        .compiler
        .repo()
        .instances
        .get(&compiled.instance)
        .expect("the request was compiled with this instance");
    let key_file = instance
        .api_key_ref
        .as_ref()
        .and_then(|reference| secrets.file_of(&reference.value));
    let server = Grant::of_request(compiled, key_file.as_deref()).map_err(failure)?;
    let is_own = Bundled::read(Arc::new(Embedded::bundled())).covers(&server);
    Ok(Some(server).filter(|_| !is_own))
}

/// Continues if the user allows everything that is not bundled with reqc.
pub(super) fn allow(root: &Path, wanted: &[Grant], flag: bool) -> Result<(), Failure> {
    let bundled = Bundled::read(Arc::new(Embedded::bundled()));
    let wanted: Vec<Grant> = wanted
        .iter()
        .filter(|grant| !bundled.covers(grant))
        .cloned()
        .collect();
    trust::ask(root, &wanted, flag, &TrustFolder::of_person(root))
}

pub(super) fn failure(error: Error) -> Failure {
    let failure = Failure::new(error.message);
    error.detail.into_iter().fold(failure, Failure::help)
}

fn status(ended: &Ended) -> Status {
    match ended {
        Ended::Finished(_) => Status::Clean,
        Ended::Failed(_) => Status::Failed,
        Ended::Cancelled => Status::Cancelled,
    }
}

/// The agent and transport of the request, and the compression that precedes it, if requested.
struct Talk {
    agent: Agent,
    transport: Transport,
    compression: Option<Compression>,
}

/// Sends the request and prints events until it has ended.
fn talk(
    Command { options, send, .. }: &Command<'_>,
    Talk {
        agent,
        transport,
        compression,
    }: Talk,
    input: Input,
    engine: &Engine,
    printer: &mut Printer<'_>,
) -> Result<(Session, Ended), Failure> {
    let restored = input.restored();
    let session = match journal(options, send, input.resumed)? {
        Some(journal) => {
            Session::journaled(agent, transport, restored, Box::new(journal)).map_err(failure)?
        }
        None => Session::new(agent, transport, input.base),
    };
    if let Some(tools) = input.tools {
        session.set_tools(tools.set);
    }
    let ended = engine.run(async {
        if let Some(compression) = &compression {
            let ended =
                compress::first(&session, compression, input.blocks.is_some(), printer).await;
            if input.blocks.is_none() || !matches!(ended, Ended::Finished(_)) {
                return ended;
            }
        }
        let run = match input.blocks {
            Some(blocks) => session.send(blocks),
            None => session.proceed(),
        };
        tokio::spawn(signals::watch(session.clone(), run.cancellation()));
        print(run, printer).await
    });
    Ok((session, ended))
}

/// Returns the file to which the session is written, if any.
fn journal(
    options: &Options,
    send: &Send,
    resumed: Option<Resumed>,
) -> Result<Option<JournalFile>, Failure> {
    let saved = send
        .save
        .as_ref()
        .map(|path| {
            let path = options.path(path);
            crate::system::to_write(&path, Some(options.directory()))?;
            JournalFile::create(&path).map_err(|why| {
                Failure::new(why).help(match is_session(&path) {
                    true => format!(
                        "to continue the existing session, use `--resume {}`",
                        path.display()
                    ),
                    false => "it is not a session: use a different file".to_owned(),
                })
            })
        })
        .transpose()?;
    Ok(match (resumed, saved) {
        (None, saved) => saved,
        (Some(old), None) => Some(old.journal),
        (Some(old), Some(mut saved)) => {
            saved.append(&old.log.to_text())?;
            Some(saved)
        }
    })
}

/// Returns `true` if a file contains a session.
fn is_session(path: &Path) -> bool {
    JournalFile::open(path)
        .is_ok_and(|opened| Log::parse(&opened.bytes).is_ok_and(|loaded| loaded.log.is_some()))
}

/// Prints events until the request has ended. If the reader of the output goes away, the request is
/// cancelled.
async fn print(mut run: Run, printer: &mut Printer<'_>) -> Ended {
    while let Some(event) = run.next().await {
        match event {
            Event::Done(ended) => return ended,
            event => printer.event(&event),
        }
        if printer.is_closed() {
            run.cancel();
        }
    }
    Ended::Cancelled
}
