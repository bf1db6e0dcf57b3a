//! The tools and the tool choice of a body, in one form for all wire formats, for the rules about
//! tools.

use serde_json::Value;

use super::super::history::elements;
use super::super::subject::Subject;
use crate::provider::ToolForm;

/// A tool that a body declares.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeclaredTool<'b> {
    /// `function` or `custom` for a tool that the client runs; the tool's type for a server tool.
    pub(super) kind: &'b str,
    /// The object that contains the name, description and schema.
    pub(super) object: &'b Value,
    /// The tool's name; `None` if it has none.
    pub(super) name: Option<&'b str>,
    /// The name of the member that contains the tool's argument schema.
    pub(super) schema_key: &'static str,
    /// `true` if the tool is in a namespace. Names need to be unique only within a namespace.
    pub(super) is_nested: bool,
}

impl<'b> DeclaredTool<'b> {
    fn new(kind: &'b str, object: &'b Value, schema_key: &'static str) -> DeclaredTool<'b> {
        DeclaredTool {
            kind,
            object,
            name: text(object, "name"),
            schema_key,
            is_nested: false,
        }
    }

    /// Returns `true` if the client runs the tool and a schema describes its arguments.
    pub(super) fn is_function(&self) -> bool {
        self.kind == "function"
    }

    /// Returns the tool's argument schema.
    pub(super) fn schema(&self) -> Option<&'b Value> {
        self.object
            .get(self.schema_key)
            .filter(|schema| self.is_function() && !schema.is_null())
    }

    /// Returns `true` if strict mode enforces the tool's argument schema.
    pub(super) fn is_strict(&self) -> bool {
        self.object.get("strict") == Some(&Value::Bool(true))
    }
}

/// Returns a member of an object if its value is a string.
pub(super) fn text<'b>(object: &'b Value, name: &str) -> Option<&'b str> {
    object.get(name)?.as_str()
}

/// Returns the tools in a body.
pub(super) fn tools<'b>(subject: &Subject<'b>) -> Vec<DeclaredTool<'b>> {
    let list = elements(subject.member("tools"));
    if !subject.wire.is_chat() {
        return Vec::new();
    }
    match subject.wire.facts().tools {
        ToolForm::Plain => list.iter().map(anthropic).collect(),
        ToolForm::Function => list.iter().map(chat).collect(),
        ToolForm::Typed => list.iter().flat_map(responses).collect(),
        ToolForm::Declarations => list.iter().flat_map(google).collect(),
    }
}

fn anthropic(tool: &Value) -> DeclaredTool<'_> {
    let kind = text(tool, "type")
        .filter(|kind| *kind != "custom")
        .unwrap_or("function");
    DeclaredTool::new(kind, tool, "input_schema")
}

fn chat(tool: &Value) -> DeclaredTool<'_> {
    let kind = text(tool, "type").unwrap_or("function");
    DeclaredTool::new(kind, tool.get(kind).unwrap_or(tool), "parameters")
}

/// Returns a Responses API tool and, if it is a namespace, the tools in it.
pub(super) fn responses(tool: &Value) -> Vec<DeclaredTool<'_>> {
    let own = DeclaredTool::new(text(tool, "type").unwrap_or_default(), tool, "parameters");
    let nested = elements(tool.get("tools").filter(|_| own.kind == "namespace"));
    let nested = nested.iter().flat_map(responses).map(|tool| DeclaredTool {
        is_nested: true,
        ..tool
    });
    std::iter::once(own).chain(nested).collect()
}

fn google(tool: &Value) -> Vec<DeclaredTool<'_>> {
    let members = tool.as_object().into_iter().flatten();
    let of_member = |(name, value)| match str::as_ref(name) {
        "functionDeclarations" | "function_declarations" => elements(Some(value))
            .iter()
            .map(|function| DeclaredTool::new("function", function, "parameters"))
            .collect(),
        kind => vec![DeclaredTool::new(kind, value, "parameters")],
    };
    members
        .flat_map(
            |(name, value): (&String, &Value)| -> Vec<DeclaredTool<'_>> {
                of_member((name, value))
            },
        )
        .collect()
}

/// Returns `true` if a request to Gemini enables server tools together with functions.
pub(super) fn lets_tools_mix(subject: &Subject<'_>) -> bool {
    let config = subject.either("toolConfig", "tool_config");
    let names = [
        "includeServerSideToolInvocations",
        "include_server_side_tool_invocations",
    ];
    names
        .iter()
        .any(|name| config.and_then(|config| config.get(*name)) == Some(&Value::Bool(true)))
}

/// The tool choice of a body.
#[derive(Debug)]
pub(super) struct Choice<'b> {
    /// The value in the body.
    pub(super) value: &'b Value,
    /// The tools that the choice allows.
    pub(super) which: Which<'b>,
}

/// The tools that a tool choice allows.
#[derive(Debug)]
pub(super) enum Which<'b> {
    /// Any tool or none: the model decides.
    Free,
    /// No tool.
    None,
    /// Any tools, but at least one.
    Some,
    /// Only these tools; `true` if one of them must be called.
    These(Vec<Chosen<'b>>, bool),
    /// An unknown form of the tool choice.
    Other,
}

/// A tool that a tool choice names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chosen<'b> {
    /// The value that contains the name.
    pub(super) value: &'b Value,
    /// The kind of tool, as given in the tool choice.
    pub(super) kind: &'b str,
    /// The tool's name; `None` for kinds of server tools without names.
    pub(super) name: Option<&'b str>,
}

impl Choice<'_> {
    /// Returns `true` if the tool choice forces the model to call a tool.
    pub(super) fn is_forced(&self) -> bool {
        matches!(self.which, Which::Some | Which::These(_, true))
    }
}

/// Returns the tool choice in a body, if there is one.
pub(super) fn choice<'b>(subject: &Subject<'b>) -> Option<Choice<'b>> {
    match subject.wire.facts().tools {
        ToolForm::Declarations => google_choice(subject),
        ToolForm::Plain | ToolForm::Typed | ToolForm::Function => {
            let value = subject.member("tool_choice")?;
            let which = which(value);
            Some(Choice { value, which })
        }
    }
}

/// Returns the tools that the `tool_choice` member selects.
fn which(value: &Value) -> Which<'_> {
    match (value, text(value, "type")) {
        (Value::String(word), _) => by_word(word),
        (_, Some(word @ ("auto" | "any" | "none"))) => by_word(word),
        (_, Some("allowed_tools")) => allowed(value.get("allowed_tools").unwrap_or(value)),
        (_, Some(_)) => Which::These(vec![chosen(value)], true),
        _ => Which::Other,
    }
}

fn by_word<'b>(word: &str) -> Which<'b> {
    match word {
        "auto" => Which::Free,
        "none" => Which::None,
        "any" | "required" => Which::Some,
        _ => Which::Other,
    }
}

fn allowed(value: &Value) -> Which<'_> {
    let is_forced = text(value, "mode") == Some("required");
    Which::These(
        elements(value.get("tools")).iter().map(chosen).collect(),
        is_forced,
    )
}

/// Reads a chosen tool. Type and name are members of the same object, or the name is in an inner
/// object.
fn chosen(value: &Value) -> Chosen<'_> {
    let kind = text(value, "type").unwrap_or("function");
    let object = value
        .get(kind)
        .filter(|inner| inner.is_object())
        .unwrap_or(value);
    let name = object.get(if kind == "mcp" {
        "server_label"
    } else {
        "name"
    });
    Chosen {
        value: name.unwrap_or(value),
        kind,
        name: name.and_then(Value::as_str),
    }
}

fn google_choice<'b>(subject: &Subject<'b>) -> Option<Choice<'b>> {
    let config = subject.either("toolConfig", "tool_config")?;
    let value = config
        .get("functionCallingConfig")
        .or_else(|| config.get("function_calling_config"))?;
    let names = value
        .get("allowedFunctionNames")
        .or_else(|| value.get("allowed_function_names"));
    let is_mode =
        |name: &str| text(value, "mode").is_some_and(|mode| mode.eq_ignore_ascii_case(name));
    let is_forced = is_mode("ANY");
    let which = match elements(names) {
        [] if is_forced => Which::Some,
        [] if is_mode("NONE") => Which::None,
        [] => Which::Free,
        names => Which::These(
            names
                .iter()
                .map(|name| Chosen {
                    value: name,
                    kind: "function",
                    name: name.as_str(),
                })
                .collect(),
            is_forced,
        ),
    };
    Some(Choice { value, which })
}
