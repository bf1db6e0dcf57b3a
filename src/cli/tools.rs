//! `reqc tools check`: the providers that accept each tool, and its size in tokens.

use std::io::Read;
use std::path::Path;

use serde_json::Value;

use super::args::{Format, ToolsCheck};
use super::options::{Opened, Options};
use super::{Failure, Outcome, Status, Terminal, lint};
use crate::diag::{Severity, did_you_mean, listed};
use crate::json::{self, Pointer};
use crate::lint::find;
use crate::repo::read_tools;
use crate::report::{losses_text, lowered_json, tools_json, tools_markdown, tools_text};
use crate::source::Sources;
use crate::system::Disk;
use crate::tool_list::{Column, ListedTool, Matrix, ToolList, ToolTarget, lowered};
use crate::world::MAX_FILE_BYTES;

/// The maximum number of tools in a list.
const MOST_TOOLS: usize = 10_000;

pub(super) fn check(options: &Options, args: &ToolsCheck, terminal: &mut Terminal) -> Outcome {
    let targets = targets(&args.providers)?;
    let lower_for = args.lower.as_deref().map(target_named).transpose()?;
    let opened = options.open()?;
    let (source, list) = list(options, &opened, args)?;
    if list.hosted > 0 {
        Terminal::warn(&format!("{}: skipped", hosted(list.hosted)));
    }
    if !list.unread.is_empty() {
        Terminal::warn(&unread(&list.unread));
    }
    if list.is_partial {
        Terminal::warn("the list has a `nextCursor`: its other pages are missing");
    }
    let is_whole = list.unread.is_empty();
    if list.tools.len() > MOST_TOOLS {
        return Err(Failure::new(format!(
            "`{source}` has more than {MOST_TOOLS} tools"
        )));
    }
    match lower_for {
        Some(target) => {
            let status = lower(options, &opened, &list.tools, target, terminal);
            Ok(if is_whole { status } else { Status::Findings })
        }
        None => {
            let matrix = Matrix::of(&opened.compiler, list.tools, &targets);
            match options.format {
                Format::Json => terminal.json(&tools_json(&source, &matrix)),
                Format::Markdown => terminal.text(&tools_markdown(&source, &matrix)),
                _ => terminal.text(&tools_text(&source, &matrix)),
            }
            // By default, only a rejection in a provider's plain form makes the command fail. If
            // the user names providers or forms, every rejection does.
            let is_refused = match args.providers.is_empty() {
                true => matrix.refuses(),
                false => matrix.columns.iter().any(Column::is_refused),
            };
            Ok(if is_refused || !is_whole {
                Status::Findings
            } else {
                Status::Clean
            })
        }
    }
}

/// Returns the sentence about tools without a schema.
fn hosted(count: usize) -> String {
    match count {
        1 => "1 tool runs on a server and has no schema".to_owned(),
        several => format!("{several} tools run on a server and have no schema"),
    }
}

/// The maximum number of entries that are named.
const MOST_NAMED: usize = 5;

/// Returns the sentence about entries that are not tools.
fn unread(entries: &[Pointer]) -> String {
    let named: Vec<String> = entries
        .iter()
        .take(MOST_NAMED)
        .map(|entry| match entry.as_str() {
            "" => "the document itself".to_owned(),
            place => place.to_owned(),
        })
        .collect();
    let more = if entries.len() > MOST_NAMED {
        ", …"
    } else {
        ""
    };
    let what = match entries.len() {
        1 => "1 entry of the list is not a tool: it has".to_owned(),
        several => format!("{several} entries of the list are not tools: they have"),
    };
    format!("{what} no name or no schema ({}{more})", named.join(", "))
}

/// Writes the tools in the most similar form that the provider accepts. In human-readable output,
/// the lost checks are listed on standard error.
fn lower(
    options: &Options,
    opened: &Opened,
    tools: &[ListedTool],
    target: ToolTarget,
    terminal: &mut Terminal,
) -> Status {
    let list = lowered(&opened.compiler, tools, target);
    match options.format {
        Format::Json => terminal.json_data(&lowered_json(&list)),
        _ => {
            terminal.json_data(&list.tools);
            terminal.remark(&losses_text(&list));
        }
    }
    let is_whole = list.told.iter().all(|tool| tool.refused.is_none());
    if is_whole && list.of_list.is_empty() {
        Status::Clean
    } else {
        Status::Findings
    }
}

/// Returns the requested targets.
fn targets(names: &[String]) -> Result<Vec<ToolTarget>, Failure> {
    if names.iter().any(|name| name == "all") {
        return Ok(ToolTarget::ALL.to_vec());
    }
    match names {
        [] => Ok(ToolTarget::ALL
            .into_iter()
            .filter(|target| target.is_usual)
            .collect()),
        names => names.iter().map(|name| target_named(name)).collect(),
    }
}

fn target_named(name: &str) -> Result<ToolTarget, Failure> {
    ToolTarget::from_name(name).ok_or_else(|| {
        let help = did_you_mean(name, target_names())
            .unwrap_or_else(|| format!("known providers: {}", listed(target_names())));
        Failure::new(format!("there is no provider `{name}`")).help(help)
    })
}

fn target_names() -> impl Iterator<Item = &'static str> {
    ToolTarget::ALL.into_iter().map(|target| target.name)
}

/// Returns the tools and their source.
fn list(
    options: &Options,
    opened: &Opened,
    args: &ToolsCheck,
) -> Result<(String, ToolList), Failure> {
    #[cfg(feature = "runtime")]
    if let Some(server) = super::mcp_list::Server::of(args) {
        let listed = server.ask(options, opened)?;
        let list = ToolList::of(&Value::Array(listed));
        let list =
            list.ok_or_else(|| Failure::new(format!("`{}` lists no tools", server.shown())))?;
        if list.tools.is_empty() {
            return Err(without_tools(&server.shown(), Some(&list)));
        }
        return Ok((server.shown(), list));
    }
    let Some(file) = args.source.as_deref() else {
        let help = "write `reqc tools check FILE`, or `reqc tools check --mcp-command -- PROGRAM ARGUMENT…`";
        return Err(
            Failure::new("no tools given: pass a file, `--mcp-command` or `--mcp-url`").help(help),
        );
    };
    if file
        .extension()
        .is_some_and(|extension| extension == "toml")
    {
        return of_toml(options, file);
    }
    let (shown, reader) = lint::open(options, &opened.root, file)?;
    let mut bytes = Vec::new();
    let read = reader.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| Failure::new(format!("`{shown}` cannot be read: {error}")))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(Failure::new(format!(
            "`{shown}` is larger than {} MiB",
            MAX_FILE_BYTES >> 20
        )));
    }
    let text =
        String::from_utf8(bytes).map_err(|_| Failure::new(format!("`{shown}` is not UTF-8")))?;
    let document = json::parse(text.trim_start_matches('\u{feff}')).map_err(|error| {
        let line = text.get(..error.range.start).map_or(1, |before| before.matches('\n').count() + 1);
        let failure = Failure::new(format!("`{shown}` is not JSON: line {line}: {}", error.problem.message()));
        failure.help(
            "reqc does not read code: let the SDK write its tools as JSON, and use that file; docs/tools-check.md shows how",
        )
    })?;
    let found = match ToolList::of(&document) {
        Some(list) if list.has_tools() => Some(list),
        nothing => of_bodies(document).or(nothing),
    };
    match found {
        Some(list) if !list.tools.is_empty() => Ok((shown, list)),
        found => Err(without_tools(&shown, found.as_ref())),
    }
}

/// Returns why a file has no tools to check.
fn without_tools(shown: &str, list: Option<&ToolList>) -> Failure {
    match list {
        Some(list) if !list.unread.is_empty() => {
            let help = "a tool's name is its `name`, the `title` of its schema, or its key in an object of tools: \
                 `{\"search\": {\"description\": …, \"inputSchema\": …}}`";
            let why = unread(&list.unread);
            Failure::new(format!("`{shown}` has no tools to check: {why}")).help(help)
        }
        Some(list) => Failure::new(format!(
            "`{shown}` has no tools to check: {}",
            hosted(list.hosted)
        )),
        None => {
            let help =
                "use a list of tools, a request body with `tools`, or an answer to `tools/list`";
            Failure::new(format!("`{shown}` has no tools")).help(help)
        }
    }
}

/// Returns the tools of the first request in a capture that contains any.
fn of_bodies(document: Value) -> Option<ToolList> {
    find(document, None)
        .bodies
        .iter()
        .find_map(|body| ToolList::of(body.value.get("tools")?).filter(ToolList::has_tools))
}

/// Returns the programs of a `tools.toml`. The tools of its servers are not known here.
fn of_toml(options: &Options, file: &Path) -> Result<(String, ToolList), Failure> {
    let shown = file.to_string_lossy().into_owned();
    let path = options.path(file);
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let world = Disk::open(folder)?.with_named(&name);
    let mut sources = Sources::default();
    let (tools, findings) = read_tools(&world, &name, &mut sources);
    if let Some(mistake) = findings
        .iter()
        .find(|finding| finding.severity == Severity::Error)
    {
        let place = sources.describe(mistake.primary.span);
        return Err(Failure::new(format!("{place}: {}", mistake.message)));
    }
    if !tools.servers.is_empty() {
        let servers: Vec<&str> = tools
            .servers
            .iter()
            .map(|server| &*server.name.value)
            .collect();
        Terminal::warn(&format!(
            "these servers are not queried: {}; use `--mcp-command` or `--mcp-url` to query one",
            servers.join(", ")
        ));
    }
    let listed = tools.tools.iter().map(|tool| ListedTool {
        name: tool.definition.name.to_string(),
        description: tool.definition.description.to_string(),
        schema: Value::Object(tool.definition.schema.clone()),
    });
    let mut list = ToolList::default();
    list.tools.extend(listed);
    match list.tools.is_empty() {
        true => Err(Failure::new(format!("`{shown}` has no tools"))),
        false => Ok((shown, list)),
    }
}
