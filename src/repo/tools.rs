//! `tools.toml`: programs that a model may run, and MCP servers whose tools it may call.
//!
//! Input: a world whose root is the file's folder. Output: a [`ToolsFile`]. The runtime determines
//! whether a program exists, how it is run, and which tools a server offers.

mod server;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Number, Value};

use super::{Known, Reader, rules};
use crate::conversation::Tool;
use crate::diag::Diagnostic;
use crate::json;
use crate::source::{FileId, Span, Spanned};
use crate::toml::{Kind, Node, Table};
use crate::world::{EntryKind, ReadError, World, normalise_path};
pub use server::{HttpSpec, KeyHeader, MAX_SERVER_NAME, SERVER_KEYS, ServerConnection, ServerSpec};

/// Every key in `tools.toml`.
pub const TOOLS_KEYS: [&str; 3] = ["schema_version", "tool", "server"];

/// Every key in a `[[tool]]` entry.
pub const TOOL_KEYS: [&str; 9] = [
    "name",
    "description",
    "command",
    "schema",
    "schema_file",
    "timeout_seconds",
    "max_output_bytes",
    "working_directory",
    "env",
];

/// The default time limit for a tool.
pub const DEFAULT_TIME_LIMIT: Duration = Duration::from_mins(1);

/// The default limit on a tool's output, in bytes.
pub const DEFAULT_OUTPUT_LIMIT: usize = 64 * 1024;

/// The maximum length, in bytes, of a tool name that every wire format accepts.
pub const MAX_TOOL_NAME: usize = 64;

/// Returns `true` if every wire format accepts this byte in a tool's name.
pub fn is_in_names(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// The maximum time limit for a tool, in seconds: one day.
const MAX_SECONDS: i64 = 24 * 60 * 60;

/// The maximum limit on a tool's output, in bytes. No model can read more.
const MAX_BYTES: i64 = 64 * 1024 * 1024;

/// The programs and servers that a `tools.toml` defines.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ToolsFile {
    /// The programs that a model may run, in the order in which they are offered.
    pub tools: Vec<ToolSpec>,
    /// The MCP servers whose tools a model may call. Their tools are offered after the programs, in
    /// this order.
    pub servers: Vec<ServerSpec>,
}

/// A program that a model may run, as defined in `tools.toml`.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The definition for the model.
    pub definition: Tool,
    /// The program to run.
    pub program: ProgramSpec,
    /// The time limit for one run.
    pub time_limit: Duration,
    /// The maximum size of the standard output, in bytes.
    pub output_limit: usize,
}

/// A program, as defined in `tools.toml`.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgramSpec {
    /// The program's name, which is looked up, or its path.
    pub name: Spanned<Arc<str>>,
    /// The arguments. No shell interprets them.
    pub arguments: Vec<Arc<str>>,
    /// The working directory, relative to the file's folder; empty for that folder itself.
    pub working_directory: String,
    /// The names of the environment variables that the program inherits; it receives no other
    /// variables.
    pub environment: Vec<Arc<str>>,
}

impl ToolSpec {
    /// Returns the finding about a program that is missing or not executable.
    pub fn not_found(&self, why: &str) -> Diagnostic {
        self.program
            .not_found(&format!("the tool `{}`", self.definition.name), why)
    }
}

impl ProgramSpec {
    /// Returns the finding that the program is missing or not executable. `whose` describes the
    /// tool or server that runs it.
    fn not_found(&self, whose: &str, why: &str) -> Diagnostic {
        let message = format!("the program of {whose} cannot be run: {why}");
        Diagnostic::new(&rules::NO_PROGRAM, self.name.span, message)
            .help("name an existing executable; a relative path starts at the folder of this file")
    }

    /// Reads the program; returns `None` if a finding makes it unusable.
    fn read(world: &dyn World, reader: &mut Reader<'_, '_>) -> Option<ProgramSpec> {
        let command = reader
            .strings("command")
            .filter(|command| check_command(reader, command));
        let working_directory = read_directory(world, reader);
        let environment = reader.strings("env").map(|it| it.value).unwrap_or_default();
        environment
            .iter()
            .for_each(|name| check_variable(reader, name));
        let mut command = command?.value.into_iter();
        Some(ProgramSpec {
            name: command.next()?,
            arguments: command.map(|it| it.value).collect(),
            working_directory: working_directory?,
            environment: environment.into_iter().map(|it| it.value).collect(),
        })
    }
}

/// The limits on a tool's run time and output.
struct Limits {
    time: Duration,
    output: usize,
}

impl Limits {
    /// Reads the limits; returns `None` if a finding was reported.
    fn read(reader: &mut Reader<'_, '_>) -> Option<Limits> {
        let time = Limits::time(reader, "timeout_seconds");
        let bytes = reader.integer_within("max_output_bytes", 1..=MAX_BYTES);
        Some(Limits {
            time: time?,
            output: bytes?
                .and_then(|it| usize::try_from(it).ok())
                .unwrap_or(DEFAULT_OUTPUT_LIMIT),
        })
    }

    /// Reads the time limit under a key, in seconds; returns `None` if a finding was reported.
    fn time(reader: &mut Reader<'_, '_>, key: &'static str) -> Option<Duration> {
        let seconds = reader.integer_within(key, 1..=MAX_SECONDS)?;
        let seconds = seconds.and_then(|it| u64::try_from(it).ok());
        Some(seconds.map_or(DEFAULT_TIME_LIMIT, Duration::from_secs))
    }
}

/// Reads `tools.toml`, whose folder is the root of `world`.
pub(super) fn read(
    world: &dyn World,
    file: FileId,
    table: &Table,
    findings: &mut Vec<Diagnostic>,
) -> ToolsFile {
    let mut reader = Reader::new(file, table, findings);
    let inner: &[(&str, &[&str])] = &[("[[tool]]", &TOOL_KEYS), ("[[server]]", &SERVER_KEYS)];
    reader.only(&Known {
        what: "tools.toml",
        keys: &TOOLS_KEYS,
        inner,
    });
    reader.schema_version(1);
    let (tools, servers) = (reader.tables("tool"), reader.tables("server"));
    ToolsFile {
        tools: read_entries(file, "tool", tools, findings, |reader, entry| {
            read_tool(world, reader, entry)
        }),
        servers: read_entries(file, "server", servers, findings, |reader, entry| {
            server::read(world, reader, entry)
        }),
    }
}

/// Reads entries, whose names must be unique. If several entries have the same name, the first one
/// is kept.
fn read_entries<T>(
    file: FileId,
    what: &str,
    entries: Vec<Spanned<&Table>>,
    findings: &mut Vec<Diagnostic>,
    read: impl Fn(&mut Reader<'_, '_>, Spanned<&Table>) -> Option<(T, Spanned<Arc<str>>)>,
) -> Vec<T> {
    let mut found = Vec::new();
    let mut known: BTreeMap<Arc<str>, Span> = BTreeMap::new();
    for entry in entries {
        let mut reader = Reader::new(file, entry.value, findings);
        let Some((one, name)) = read(&mut reader, entry) else {
            continue;
        };
        match known.get(&name.value) {
            Some(first) => {
                let message = format!("there are two {what}s `{}`", name.value);
                let finding = Diagnostic::new(&rules::REPEATED_TOOL, name.span, message);
                findings.push(
                    finding
                        .related(*first, "first defined here")
                        .help("rename one of them"),
                );
            }
            None => {
                known.insert(name.value, name.span);
                found.push(one);
            }
        }
    }
    found
}

/// Reads a tool and its name; returns `None` if a finding makes it unusable.
fn read_tool(
    world: &dyn World,
    reader: &mut Reader<'_, '_>,
    entry: Spanned<&Table>,
) -> Option<(ToolSpec, Spanned<Arc<str>>)> {
    reader.only(&Known::flat("[[tool]]", &TOOL_KEYS));
    reader.missing(
        "a [[tool]] entry",
        entry.span,
        &["name", "description", "command"],
    );
    let name = reader
        .string("name")
        .filter(|name| check_name(reader, "tool", name, MAX_TOOL_NAME));
    let description = reader.string("description");
    let schema = read_schema(world, reader);
    let (limits, program) = (Limits::read(reader), ProgramSpec::read(world, reader));

    let (name, limits) = (name?, limits?);
    let tool = ToolSpec {
        definition: Tool {
            name: Arc::clone(&name.value),
            description: description?.value,
            schema: schema?,
        },
        program: program?,
        time_limit: limits.time,
        output_limit: limits.output,
    };
    Some((tool, name))
}

/// Checks a tool name. Anthropic and `OpenAI` accept `^[a-zA-Z0-9_-]{1,64}$`; all other providers
/// accept at least these names.
fn check_name(
    reader: &mut Reader<'_, '_>,
    what: &str,
    name: &Spanned<Arc<str>>,
    longest: usize,
) -> bool {
    let fits = (1..=longest).contains(&name.value.len()) && name.value.bytes().all(is_in_names);
    if !fits {
        let message = format!("`{}` is not a valid {what} name", name.value);
        let finding = Diagnostic::new(&rules::INVALID_VALUE, name.span, message);
        let whose = if what == "tool" {
            "providers accept"
        } else {
            "write"
        };
        reader.report(finding.help(format!(
            "{whose} up to {longest} ASCII letters, digits, `_` and `-`"
        )));
    }
    fits
}

fn check_command(reader: &mut Reader<'_, '_>, command: &Spanned<Vec<Spanned<Arc<str>>>>) -> bool {
    let has_program = command
        .value
        .first()
        .is_some_and(|program| !program.value.trim().is_empty());
    if !has_program {
        let finding = Diagnostic::new(
            &rules::INVALID_VALUE,
            command.span,
            "`command` names no program",
        );
        reader.report(
            finding.help("write the program and its arguments: `command = [\"git\", \"status\"]`"),
        );
    }
    let with_nul = command.value.iter().find(|part| part.value.contains('\0'));
    if let Some(part) = with_nul {
        let message = "a program argument cannot contain a NUL character";
        reader.report(Diagnostic::new(&rules::INVALID_VALUE, part.span, message));
    }
    has_program && with_nul.is_none()
}

fn check_variable(reader: &mut Reader<'_, '_>, name: &Spanned<Arc<str>>) {
    if name.value.is_empty() || name.value.contains(['=', '\0', '$']) {
        let message = format!(
            "`{}` is not the name of an environment variable",
            name.value
        );
        let finding = Diagnostic::new(&rules::INVALID_VALUE, name.span, message);
        reader.report(
            finding.help("`env` lists only names; the values come from reqc's own environment"),
        );
    }
}

/// Reads the working directory; returns `None` if a finding was reported.
fn read_directory(world: &dyn World, reader: &mut Reader<'_, '_>) -> Option<String> {
    if !reader.has("working_directory") {
        return Some(String::new());
    }
    let written = reader.string("working_directory")?;
    let normal = normalise_path(&written.value);
    let found = normal
        .as_ref()
        .map_or(Err(ReadError::Outside), |path| match path.as_str() {
            "" => Ok(EntryKind::Folder),
            path => world.kind(path),
        });
    let why = match found {
        Ok(EntryKind::Folder) => return normal,
        Ok(EntryKind::File) => "it is a file, not a folder".to_owned(),
        Err(ReadError::Missing) => "there is no such folder".to_owned(),
        Err(ReadError::Outside) => "it is outside the folder of this file".to_owned(),
        Err(error) => error.to_string(),
    };
    let message = format!("a tool cannot run in `{}`: {why}", written.value);
    reader.report(Diagnostic::new(
        &rules::INVALID_VALUE,
        written.span,
        message,
    ));
    None
}

/// Reads the argument schema; returns `None` if a finding was reported.
fn read_schema(world: &dyn World, reader: &mut Reader<'_, '_>) -> Option<Map<String, Value>> {
    match (reader.has("schema"), reader.has("schema_file")) {
        (false, false) => Some(Map::from_iter([
            ("type".to_owned(), Value::from("object")),
            ("properties".to_owned(), Value::Object(Map::new())),
        ])),
        (true, false) => {
            let table = reader.table("schema")?;
            let schema = table_json(reader, table.value)?;
            is_object_schema(reader, table.span, &schema).then_some(schema)
        }
        (false, true) => {
            let path = reader.string("schema_file")?;
            match schema_of_file(world, &path.value) {
                Ok(schema) => is_object_schema(reader, path.span, &schema).then_some(schema),
                Err(why) => {
                    let message = format!("the schema `{}` cannot be used: {why}", path.value);
                    reader.report(Diagnostic::new(&rules::INVALID_VALUE, path.span, message));
                    None
                }
            }
        }
        (true, true) => {
            let span = reader.string("schema_file").map(|path| path.span)?;
            let finding = Diagnostic::new(
                &rules::INVALID_VALUE,
                span,
                "a tool can have only one schema",
            );
            reader.report(finding.help("remove `schema` or `schema_file`"));
            None
        }
    }
}

fn schema_of_file(world: &dyn World, path: &str) -> Result<Map<String, Value>, String> {
    let path = normalise_path(path).ok_or("it is outside the folder of this file")?;
    let bytes = world.read(&path).map_err(|error| match error {
        ReadError::Outside => "it is outside the folder of this file".to_owned(),
        error => error.to_string(),
    })?;
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8")?;
    let value = json::parse(text.trim_start_matches('\u{feff}')).map_err(|error| {
        let line = text
            .get(..error.range.start)
            .map_or(1, |before| before.matches('\n').count() + 1);
        format!("line {line}: {}", error.problem.message())
    })?;
    match value {
        Value::Object(schema) => Ok(schema),
        _ => Err("it is not a JSON object".to_owned()),
    }
}

/// Checks that a schema has the type `object`, because arguments are always an object.
fn is_object_schema(reader: &mut Reader<'_, '_>, span: Span, schema: &Map<String, Value>) -> bool {
    let is_object = schema.get("type").is_some_and(|kind| kind == "object");
    if !is_object {
        let finding = Diagnostic::new(
            &rules::INVALID_VALUE,
            span,
            "a tool schema must have `type` \"object\"",
        );
        reader.report(
            finding.help("the arguments are an object: add `type = \"object\"`, and `properties`"),
        );
    }
    is_object
}

fn table_json(reader: &mut Reader<'_, '_>, table: &Table) -> Option<Map<String, Value>> {
    let members = table
        .entries
        .iter()
        .map(|(key, node)| Some((key.name.clone(), node_json(reader, node)?)));
    members.collect()
}

pub(super) fn node_json(reader: &mut Reader<'_, '_>, node: &Node) -> Option<Value> {
    Some(match &node.kind {
        Kind::String(text) => text.as_str().into(),
        Kind::Integer(value) => (*value).into(),
        Kind::Boolean(value) => (*value).into(),
        Kind::Float(value) if value.is_finite() => Value::Number(Number::from_f64(*value)?),
        Kind::Array(elements) => Value::Array(
            elements
                .iter()
                .map(|it| node_json(reader, it))
                .collect::<Option<_>>()?,
        ),
        Kind::Table(table) => Value::Object(table_json(reader, table)?),
        Kind::Float(_) | Kind::Datetime(_) => {
            let message = format!("JSON cannot represent this value: {}", node.describe());
            let span = reader.span(node);
            reader.report(
                Diagnostic::new(&rules::INVALID_VALUE, span, message).help("write it as a string"),
            );
            return None;
        }
    })
}

impl Reader<'_, '_> {
    /// Reads an integer within a range; returns `None` if a finding was reported, `Some(None)` if
    /// the key is absent.
    #[expect(
        clippy::option_option,
        reason = "invalid, absent and present are three different cases"
    )]
    pub(super) fn integer_within(
        &mut self,
        key: &str,
        range: std::ops::RangeInclusive<i64>,
    ) -> Option<Option<i64>> {
        if !self.has(key) {
            return Some(None);
        }
        let number = self.integer(key)?;
        if range.contains(&number.value) {
            return Some(Some(number.value));
        }
        let message = format!("`{key}` must be from {} to {}", range.start(), range.end());
        self.report(Diagnostic::new(&rules::INVALID_VALUE, number.span, message));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::read_tools;
    use crate::source::Sources;
    use crate::world::MemoryWorld;

    fn tools(text: &str) -> (Vec<ToolSpec>, Vec<String>) {
        let (file, findings) = file(text);
        (file.tools, findings)
    }

    pub(super) fn file(text: &str) -> (ToolsFile, Vec<String>) {
        let schema = r#"{"type": "object", "properties": {"q": {"type": "string"}}}"#;
        let files = [
            ("tools.toml", text),
            ("s.json", schema),
            ("list.json", "[]"),
            ("bad.json", "{\n,}"),
            ("in/x", ""),
        ];
        let (file, findings) = read_tools(
            &MemoryWorld::from_iter(files),
            "tools.toml",
            &mut Sources::default(),
        );
        (
            file,
            findings
                .into_iter()
                .map(|finding| finding.message)
                .collect(),
        )
    }

    fn found(lines: &str) -> Vec<String> {
        let entry = "[[tool]]\nname = \"t\"\ndescription = \"d\"\ncommand = [\"p\"]\n";
        let keys: Vec<&str> = lines
            .lines()
            .filter_map(|line| line.split(" =").next())
            .collect();
        let kept = entry
            .lines()
            .filter(|line| !keys.iter().any(|key| line.starts_with(&format!("{key} ="))));
        tools(&format!("{}\n{lines}", kept.collect::<Vec<_>>().join("\n"))).1
    }

    #[test]
    fn an_entry_is_read_with_its_defaults() {
        let text = "[[tool]]\nname = \"t\"\ndescription = \"d\"\ncommand = [\"p\", \"-a\", \"\"]\n\n\
                    [[tool]]\nname = \"u\"\ndescription = \"\"\ncommand = [\"./p\"]\nschema_file = \"./s.json\"\ntimeout_seconds = 5\n\
                    max_output_bytes = 10\nworking_directory = \"in\"\nenv = [\"HOME\"]\n\n\
                    [[tool]]\nname = \"v\"\ndescription = \"d\"\ncommand = [\"p\"]\n[tool.schema]\ntype = \"object\"\n\
                    properties.n = { type = \"number\", minimum = 0.5, enum = [1, 2.0, true] }\n";
        let (tools, findings) = tools(text);
        assert_eq!(findings, Vec::<String>::new());
        let [t, u, v] = &tools[..] else {
            panic!("three tools")
        };
        assert_eq!(
            (
                &*t.program.name.value,
                t.program.arguments.len(),
                t.time_limit.as_secs(),
                t.output_limit
            ),
            ("p", 2, 60, 65_536)
        );
        assert_eq!(
            (
                t.program.working_directory.as_str(),
                t.program.environment.len()
            ),
            ("", 0)
        );
        assert_eq!(
            (
                u.program.working_directory.as_str(),
                u.time_limit.as_secs(),
                u.output_limit
            ),
            ("in", 5, 10)
        );
        assert_eq!(
            Value::Object(t.definition.schema.clone()).to_string(),
            r#"{"type":"object","properties":{}}"#
        );
        assert_eq!(u.definition.schema["properties"]["q"]["type"], "string");
        let number = r#"{"n":{"type":"number","minimum":0.5,"enum":[1,2.0,true]}}"#;
        assert_eq!(v.definition.schema["properties"].to_string(), number);
    }

    #[test]
    fn a_name_that_is_there_twice_is_told_at_the_second() {
        let entry = "[[tool]]\nname = \"t\"\ndescription = \"d\"\ncommand = [\"p\"]\n";
        let world = MemoryWorld::from_iter([("tools.toml", entry.repeat(2).as_str())]);
        let (file, findings) = read_tools(&world, "tools.toml", &mut Sources::default());
        let [finding] = &findings[..] else {
            panic!("one finding")
        };
        assert_eq!(
            (file.tools.len(), finding.rule.code),
            (1, "tools/repeated-name")
        );
        assert!(finding.primary.span.start as usize > entry.len() && finding.related.len() == 1);
    }

    #[test]
    fn mistakes_are_findings() {
        let said = |lines: &str| found(lines).join("; ");
        assert_eq!(
            tools("[[tool]]\nname = \"t\"").1,
            ["a [[tool]] entry needs `description` and `command`"]
        );
        assert_eq!(said("comand = 1"), "unknown key `comand` in [[tool]]");
        assert_eq!(said("name = \"a b\""), "`a b` is not a valid tool name");
        assert_eq!(said("command = []"), "`command` names no program");
        assert_eq!(
            said("command = \"ls -l\""),
            "`command` must be an array of strings, not a string"
        );
        assert_eq!(
            said("timeout_seconds = 0"),
            "`timeout_seconds` must be from 1 to 86400"
        );
        assert_eq!(
            said("max_output_bytes = 1.5"),
            "`max_output_bytes` must be an integer, not a float"
        );
        assert_eq!(
            said("env = [\"A=1\"]"),
            "`A=1` is not the name of an environment variable"
        );
        assert_eq!(
            said("working_directory = \"no\""),
            "a tool cannot run in `no`: there is no such folder"
        );
        assert_eq!(
            said("working_directory = \"in/../..\""),
            "a tool cannot run in `in/../..`: it is outside the folder of this file"
        );
        assert_eq!(
            said("working_directory = \"s.json\""),
            "a tool cannot run in `s.json`: it is a file, not a folder"
        );
        assert_eq!(
            said("schema = {}"),
            "a tool schema must have `type` \"object\""
        );
        assert_eq!(
            said("schema = { type = nan }"),
            "JSON cannot represent this value: a float"
        );
        assert_eq!(
            said("schema_file = \"list.json\""),
            "the schema `list.json` cannot be used: it is not a JSON object"
        );
        assert!(
            said("schema_file = \"bad.json\"")
                .starts_with("the schema `bad.json` cannot be used: line 2: ")
        );
        assert_eq!(
            said("schema_file = \"no\""),
            "the schema `no` cannot be used: there is no such file"
        );
        assert_eq!(
            said("schema_file = \"s.json\"\nschema = {}"),
            "a tool can have only one schema"
        );
        let one = "[[tool]]\nname = \"t\"\ndescription = \"d\"\ncommand = [\"p\"]\n";
        assert_eq!(tools(&format!("{one}{one}")).1, ["there are two tools `t`"]);
        assert_eq!(tools("[[tool]]\nname = ").1.len(), 1);
    }
}
