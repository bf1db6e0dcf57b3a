//! The request to send: a message, a context, or the continuation of a session.

use std::path::Path;

use super::super::args::Send;
use super::super::options::{Opened, Options};
use super::super::{Failure, Terminal};
use super::output::shortened;
use super::tools::Tools;
use super::unusable::Unusable;
use crate::compile::PromptEnvironment;
use crate::compile::live::Live;
use crate::context::{self, Context};
use crate::conversation::log::Log;
use crate::conversation::{Block, Conversation, Image, Task, TaskKind};
use crate::diag::did_you_mean;
use crate::provider;
use crate::repo::LayerKind;
use crate::resolve::ProfileId;
use crate::runtime::{SessionStart, image};
use crate::source::SourceText;
use crate::system::{FolderContent, JournalFile, project_environment, to_read, to_write};
use crate::world::AccessError;

/// Everything that a request is compiled from, except the agent.
pub(super) struct Input {
    /// The environment for prompts.
    pub(super) environment: PromptEnvironment,
    /// The tools, layers and history of a context or, for a completion, its task.
    pub(super) base: Conversation,
    /// The session to continue.
    pub(super) resumed: Option<Resumed>,
    /// The new message; `None` to continue without one.
    pub(super) blocks: Option<Vec<Block>>,
    /// The tools that can run.
    pub(super) tools: Option<Tools>,
}

/// A session from a file.
pub(super) struct Resumed {
    pub(super) log: Log,
    pub(super) journal: JournalFile,
}

impl Input {
    pub(super) fn read(
        options: &Options,
        send: &Send,
        opened: &mut Opened,
        terminal: &Terminal,
    ) -> Result<Input, Unusable> {
        let kind = usable_agent(options, send, opened, terminal)?;
        let (environment, mut base) = match options.one_context()? {
            Some(context) => from_context(options, &send.agent, opened, context, terminal)?,
            None => (real_environment(options, opened)?, Conversation::default()),
        };
        let resumed = send
            .resume
            .as_deref()
            .map(|path| resume(options, path, send))
            .transpose()?;
        let tools = send
            .tools
            .as_ref()
            .map(|path| Tools::read(options, opened, path, terminal))
            .transpose()?;
        if let Some(tools) = &tools {
            base.tools = tools.set.definitions();
        }
        let mut blocks = message(options, send)?;
        if kind == TaskKind::Completion && base.kind() == TaskKind::Chat {
            base.task = completion(send, blocks.take().as_deref())?;
        }
        if blocks.is_none() && resumed.is_none() && is_empty(&base) {
            let help = "give `--message TEXT`, `-` for standard input, `--context NAME` or `--resume FILE`";
            return Err(Failure::new("there is nothing to send").help(help).into());
        }
        Ok(Input {
            environment,
            base,
            resumed,
            blocks,
            tools,
        })
    }

    /// Returns the starting point of the session.
    pub(super) fn restored(&self) -> SessionStart {
        match &self.resumed {
            Some(resumed) => SessionStart::Resumed(resumed.log.clone(), self.base.clone()),
            None => SessionStart::New(self.base.clone()),
        }
    }
}

/// Returns the kind of task that the agent performs, if the agent can be used. Reports findings
/// about the agent.
fn usable_agent(
    options: &Options,
    send: &Send,
    opened: &Opened,
    terminal: &Terminal,
) -> Result<TaskKind, Unusable> {
    let id = opened.agent(&send.agent)?;
    let Some(plan) = opened.compiler.plan(id) else {
        return Err(Unusable::Findings(opened.findings_of(id)));
    };
    let errors = opened.errors_of_settings(&plan.instance.name.value);
    if !errors.is_empty() {
        return Err(Unusable::Findings(errors));
    }
    tell_of_agent(options, opened, id, terminal);
    if send.tools.is_some() && !plan.profile.is_on("enable_tools") {
        Terminal::warn(&format!(
            "`{}` cannot use tools: set `enable_tools = true`",
            send.agent
        ));
    }
    Ok(plan.kind)
}

fn is_empty(conversation: &Conversation) -> bool {
    matches!(&conversation.task, Task::Chat(history) if history.is_empty())
}

/// Shows the findings in an agent's files.
fn tell_of_agent(options: &Options, opened: &Opened, id: ProfileId, terminal: &Terminal) {
    let mut findings = opened.findings_of(id);
    // This finding is reported when the request is compiled, even if a repository allows it.
    findings.retain(|finding| finding.rule.code != "provider/plain-http");
    terminal.findings_aside(options.format, &opened.report_of(findings));
}

/// Returns the message from the command line: its text, then its images.
fn message(options: &Options, send: &Send) -> Result<Option<Vec<Block>>, Failure> {
    let mut blocks = Vec::new();
    if let Some(text) = text(send)?.filter(|text| !text.trim().is_empty()) {
        blocks.push(Block::Text(text.into()));
    }
    for source in &send.images {
        let image = match image::is_url(source) {
            true => Ok(image::at_url(source)),
            false => read_image(
                &to_read(&options.path(Path::new(source)), options.directory())
                    .map_err(Failure::from)?,
            ),
        };
        let image = image.map_err(|why| match image::is_other_url(source) {
            true => Failure::new(format!(
                "the image `{}` is neither a file nor an http URL",
                shortened(source)
            ))
            .help("give a file, or a URL that begins with https:// or http://"),
            false => Failure::new(format!("the image `{source}` {why}")),
        })?;
        blocks.push(Block::Image(image));
    }
    if !send.attached.is_empty() {
        let Some(files) = session_files(options, send)? else {
            return Err(Failure::new(
                "`--attach` refers to files next to a session, but there is no session",
            )
            .help("give the session's file with `--save` or `--resume`"));
        };
        for path in &send.attached {
            blocks.push(Block::Stored(files.store(path).map_err(super::failure)?));
        }
    }
    Ok((!blocks.is_empty()).then_some(blocks))
}

/// Returns the folder of the files that belong to the session, if a session is continued or saved.
pub(super) fn session_files(
    options: &Options,
    send: &Send,
) -> Result<Option<FolderContent>, Failure> {
    let Some(file) = send.resume.as_ref().or(send.save.as_ref()) else {
        return Ok(None);
    };
    let file = options.path(file);
    let folder = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    Ok(Some(FolderContent::open(folder).map_err(Failure::from)?))
}

/// Reads an image from a file. An error is a phrase that follows the image's name in a sentence.
fn read_image(path: &Path) -> Result<Image, AccessError> {
    let bytes = crate::system::read_bytes(path, image::MAX_BYTES)?;
    image::of_bytes(&bytes).ok_or_else(|| "is not a PNG, JPEG, GIF or WebP".into())
}

fn text(send: &Send) -> Result<Option<String>, Failure> {
    match (&send.message, send.input.as_deref()) {
        (Some(text), _) => Ok(Some(text.clone())),
        (None, Some("-")) => {
            let text = crate::system::read_input();
            Ok(Some(text.map_err(|why| {
                Failure::new(format!("standard input {why}"))
            })?))
        }
        (None, Some(other)) => Err(Failure::new(format!("unexpected argument `{other}`"))
            .help("write `--message TEXT`, or `-` for standard input")),
        (None, None) => Ok(None),
    }
}

/// Returns the gap for a completion agent. The gap begins after the text of the message.
fn completion(send: &Send, blocks: Option<&[Block]>) -> Result<Task, Failure> {
    match blocks {
        Some([Block::Text(prefix)]) => Ok(Task::Completion {
            prefix: prefix.to_string(),
            suffix: String::new(),
        }),
        _ => {
            let help =
                "give its prefix with `--message`, or use `--context` with a completion context";
            Err(Failure::new(format!("`{}` completes code", send.agent)).help(help))
        }
    }
}

/// Opens the session in a file. The file is not changed until something is sent.
fn resume(options: &Options, path: &Path, send: &Send) -> Result<Resumed, Failure> {
    let path = &options.path(path);
    to_write(path, Some(options.directory()))?;
    let opened = JournalFile::open(path)?;
    let shown = path.display();
    let loaded = Log::parse(&opened.bytes).map_err(|error| {
        let failure = Failure::new(error.of_file(&shown.to_string()));
        match error.line {
            1 => failure,
            line => failure.help(format!(
                "the session file was not changed: fix the line, or continue with a copy of the part before line {line}"
            )),
        }
    })?;
    let Some(log) = loaded.log else {
        return Err(no_session(&shown.to_string(), &opened.bytes));
    };
    if log.agent() != send.agent {
        Terminal::warn(&format!(
            "`{shown}` is a session of `{}`",
            shortened(log.agent())
        ));
    }
    if loaded.tail_bytes > 0 {
        let what = format!(
            "the last {} bytes of `{shown}` are not a complete line",
            loaded.tail_bytes
        );
        Terminal::warn(&format!("{what}; they are ignored"));
    }
    Ok(Resumed {
        log,
        journal: opened.journal,
    })
}

/// Returns the failure for a file without a complete line.
fn no_session(shown: &str, bytes: &[u8]) -> Failure {
    match (bytes.is_empty(), Log::is_cut_header(bytes)) {
        (true, _) => Failure::new(format!("`{shown}` is empty: it contains no session")).help(
            format!("to start a session in this file, use `--save {shown}`"),
        ),
        (false, true) => Failure::new(format!(
            "`{shown}` was truncated inside its first line: it contains no session"
        ))
        .help(format!(
            "the session has no messages yet: to start it again, use `--save {shown}`"
        )),
        (false, false) => Failure::new(format!("`{shown}` contains no session"))
            .help("to start a session, use `--save` with a different file"),
    }
}

/// Returns the context with this name, or from the file with this path, prepared for the agent.
fn from_context(
    options: &Options,
    agent: &str,
    opened: &mut Opened,
    wanted: &str,
    terminal: &Terminal,
) -> Result<(PromptEnvironment, Conversation), Unusable> {
    let context = context(options, opened, wanted, terminal)?;
    let plan = opened
        .compiler
        .plan(opened.agent(agent)?)
        .expect("it can be used");
    let conversation = Live::new(&opened.compiler, &plan)
        .conversation_of(&context)
        .map_err(Unusable::Findings)?;
    Ok((PromptEnvironment::of(&context), conversation))
}

fn context(
    options: &Options,
    opened: &mut Opened,
    wanted: &str,
    terminal: &Terminal,
) -> Result<Context, Unusable> {
    if let Some(loaded) = opened.compiler.context(wanted) {
        return Ok(loaded.context.clone());
    }
    let path =
        to_read(&options.path(Path::new(wanted)), options.directory()).map_err(Failure::from)?;
    let text = match crate::system::read_text(&path) {
        Ok(text) => text,
        Err(why) => {
            let failure = Failure::new(format!(
                "no context is named `{wanted}`, and the file with that name {why}"
            ));
            let known = opened
                .compiler
                .contexts()
                .iter()
                .map(|loaded| loaded.context.name.as_ref());
            let help = did_you_mean(wanted, known);
            return Err(failure
                .help(help.unwrap_or_else(|| "`reqc contexts` shows every context".to_owned()))
                .into());
        }
    };
    let file = opened
        .compiler
        .sources()
        .add(wanted.to_owned(), SourceText::salvage(text.as_bytes()));
    let text = opened.compiler.sources().get(file).text().to_owned();
    let origins = provider::origins(opened.compiler.repo().instances.values());
    let mut found = Vec::new();
    let Some(context) = context::read(file, LayerKind::Own, &text, &origins, &mut found) else {
        return Err(Unusable::Findings(found));
    };
    terminal.findings_aside(options.format, &opened.report_of(found));
    Ok(context)
}

/// Returns the environment for the project, which is the folder that the user named, or else the
/// one in which the command was started.
fn real_environment(options: &Options, opened: &Opened) -> Result<PromptEnvironment, Failure> {
    Ok(project_environment(options.directory(), &opened.root)?)
}
