//! The step that adds the definitions of the request's tools after the body's own tools.

use serde_json::{Value, json};

use super::{ToolForm, WireFormat};
use crate::conversation::Tool;
use crate::json::Pointer;

/// Returns the tool definitions in the shape of the wire format; `None` if there are no tools.
///
/// Sources: Anthropic `tools[].input_schema`; OpenAI Chat and Mistral
/// `tools[].function.parameters`; Responses without nesting, and with `strict: false` so that the
/// schema is used unchanged; Gemini `functionDeclarations` with `parametersJsonSchema`, which
/// accepts JSON Schema unchanged.
pub fn tool_definitions(wire: WireFormat, tools: &[Tool]) -> Option<Value> {
    let definitions = tools.iter().map(|tool| definition(wire, tool)).collect();
    (!tools.is_empty()).then(|| wire.facts().tools.list(definitions))
}

impl ToolForm {
    /// Returns the value of `tools` for these definitions.
    pub(crate) fn list(self, definitions: Vec<Value>) -> Value {
        match self {
            ToolForm::Declarations => json!([{"functionDeclarations": definitions}]),
            ToolForm::Plain | ToolForm::Typed | ToolForm::Function => definitions.into(),
        }
    }

    /// Returns the JSON pointer, within the body, of the definition with this index.
    pub(crate) fn place(self, index: usize) -> String {
        match self {
            ToolForm::Declarations => format!("/tools/0/functionDeclarations/{index}"),
            ToolForm::Plain | ToolForm::Typed | ToolForm::Function => format!("/tools/{index}"),
        }
    }
}

/// The tools of a body: its own tools, followed by the request's tools.
#[derive(Debug, Clone)]
pub(crate) enum Tools<T> {
    /// No tools.
    None,
    /// All tools, in the shape of the wire format.
    All(T),
    /// A name clash: one of the body's tools has the same name as one of the request's tools.
    Twice {
        /// The location of the name, relative to the `tools` member.
        at: Pointer,
        /// The name that occurs twice.
        name: String,
    },
}

impl<T> Tools<T> {
    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> Tools<U> {
        match self {
            Tools::None => Tools::None,
            Tools::All(all) => Tools::All(change(all)),
            Tools::Twice { at, name } => Tools::Twice { at, name },
        }
    }
}

/// Appends the definitions of a request's tools to the body's own tools. If the body's member is
/// not a list, it stays unchanged.
pub(crate) fn with_own_tools(
    wire: WireFormat,
    own: Option<&Value>,
    tools: &[Tool],
) -> Tools<Value> {
    let definitions = tool_definitions(wire, tools);
    let (own, definitions) = match (own, definitions) {
        (None | Some(Value::Null), definitions) => {
            return definitions.map_or(Tools::None, Tools::All);
        }
        (Some(Value::Array(own)), Some(Value::Array(definitions))) => (own, definitions),
        (Some(own), _) => return Tools::All(own.clone()),
    };
    let mut names = own_names(wire, own);
    if let Some((at, name)) = names.find(|(_, name)| tools.iter().any(|tool| *tool.name == **name))
    {
        return Tools::Twice {
            at,
            name: name.to_owned(),
        };
    }
    Tools::All(own.iter().cloned().chain(definitions).collect())
}

/// Returns the names of the body's own tools, each with its location.
fn own_names(wire: WireFormat, own: &[Value]) -> impl Iterator<Item = (Pointer, &str)> {
    own.iter()
        .enumerate()
        .flat_map(move |(index, tool)| named(wire, tool, &Pointer::root().element(index)))
}

fn named<'v>(wire: WireFormat, tool: &'v Value, at: &Pointer) -> Vec<(Pointer, &'v str)> {
    let name =
        |object: &'v Value, at: Pointer| Some((at.member("name"), object.get("name")?.as_str()?));
    match wire.facts().tools {
        ToolForm::Plain | ToolForm::Typed => name(tool, at.clone()).into_iter().collect(),
        ToolForm::Function => {
            let kind = tool
                .get("type")
                .and_then(Value::as_str)
                .unwrap_or("function");
            tool.get(kind)
                .and_then(|inner| name(inner, at.member(kind)))
                .into_iter()
                .collect()
        }
        ToolForm::Declarations => ["functionDeclarations", "function_declarations"]
            .into_iter()
            .filter_map(|member| Some((at.member(member), tool.get(member)?.as_array()?)))
            .flat_map(|(at, list)| {
                list.iter()
                    .enumerate()
                    .map(move |(index, it)| (at.element(index), it))
            })
            .filter_map(|(at, declaration)| name(declaration, at))
            .collect(),
    }
}

fn definition(wire: WireFormat, tool: &Tool) -> Value {
    shaped(
        wire,
        &tool.name,
        &tool.description,
        &Value::Object(tool.schema.clone()),
    )
}

/// Returns a tool definition in the shape of the wire format. The schema is not checked.
pub(crate) fn shaped(wire: WireFormat, name: &str, description: &str, schema: &Value) -> Value {
    match wire.facts().tools {
        ToolForm::Plain => {
            json!({"name": name, "description": description, "input_schema": schema})
        }
        ToolForm::Typed => {
            json!({"type": "function", "name": name, "description": description, "parameters": schema, "strict": false})
        }
        ToolForm::Declarations => {
            json!({"name": name, "description": description, "parametersJsonSchema": schema})
        }
        ToolForm::Function => {
            json!({"type": "function", "function": {"name": name, "description": description, "parameters": schema}})
        }
    }
}

/// Returns `true` if a location below the `tools` member belongs to one of the request's tools,
/// which follow the body's `own` tools.
pub(crate) fn is_injected(own: usize, inner: &Pointer) -> bool {
    let index = inner
        .tokens()
        .next()
        .and_then(|token| token.parse::<usize>().ok());
    index.map_or(own == 0, |index| index >= own)
}

/// Returns the context location of a value in the tool definitions; `None` for values that the wire
/// format adds. `own` is the number of the body's own tools, which come first.
pub(crate) fn tool_source(wire: WireFormat, own: usize, inner: &Pointer) -> Option<Pointer> {
    let tokens: Vec<String> = inner.tokens().collect();
    let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
    let (index, rest) = match (wire.facts().tools, tokens.as_slice()) {
        (ToolForm::Declarations, [_, "functionDeclarations", index, rest @ ..]) => {
            (index.parse().ok()?, rest)
        }
        (ToolForm::Plain | ToolForm::Typed, [index, rest @ ..])
        | (ToolForm::Function, [index, "function", rest @ ..]) => (behind_own(index, own)?, rest),
        (ToolForm::Function, [index]) => (behind_own(index, own)?, &[][..]),
        (ToolForm::Declarations | ToolForm::Plain | ToolForm::Typed | ToolForm::Function, _) => {
            return None;
        }
    };
    let tool = Pointer::root().member("tools").element(index);
    let (member, rest) = match rest {
        [] => return Some(tool),
        ["name", rest @ ..] => ("name", rest),
        ["description", rest @ ..] => ("description", rest),
        [
            "input_schema" | "parameters" | "parametersJsonSchema",
            rest @ ..,
        ] => ("schema", rest),
        _ => return None,
    };
    Some(
        rest.iter()
            .fold(tool.member(member), |at, token| at.member(token)),
    )
}

fn behind_own(index: &str, own: usize) -> Option<usize> {
    index.parse::<usize>().ok()?.checked_sub(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Map;

    #[test]
    fn tools_are_defined_in_each_formats_shape() {
        let tool = Tool {
            name: "ls".into(),
            description: "list".into(),
            schema: Map::new(),
        };
        let text = |wire| {
            tool_definitions(wire, std::slice::from_ref(&tool))
                .expect("one tool")
                .to_string()
        };
        assert_eq!(
            text(WireFormat::AnthropicMessages),
            r#"[{"name":"ls","description":"list","input_schema":{}}]"#
        );
        assert_eq!(
            text(WireFormat::GoogleGenerateContent),
            r#"[{"functionDeclarations":[{"name":"ls","description":"list","parametersJsonSchema":{}}]}]"#
        );
        assert!(text(WireFormat::OpenAiResponses).contains(r#""strict":false"#));
        assert!(text(WireFormat::OllamaChat).contains(r#""function":{"name":"ls""#));
        assert_eq!(tool_definitions(WireFormat::OpenAiChat, &[]), None);
    }
    #[test]
    fn they_follow_what_the_body_says() {
        let tool = |name: &str| Tool {
            name: name.into(),
            description: "d".into(),
            schema: Map::new(),
        };
        let merged = |wire, own: Value, names: &[&str]| {
            let tools: Vec<Tool> = names.iter().map(|name| tool(name)).collect();
            match with_own_tools(wire, Some(&own), &tools) {
                Tools::None => "none".to_owned(),
                Tools::All(all) => all.to_string(),
                Tools::Twice { at, name } => format!("{name} at {}", at.as_str()),
            }
        };
        let search = || json!([{"type": "web_search_20260209", "name": "web_search"}]);
        assert_eq!(
            merged(WireFormat::AnthropicMessages, search(), &["ls"]),
            r#"[{"type":"web_search_20260209","name":"web_search"},{"name":"ls","description":"d","input_schema":{}}]"#
        );
        assert_eq!(
            merged(
                WireFormat::AnthropicMessages,
                search(),
                &["ls", "web_search"]
            ),
            "web_search at /0/name"
        );
        let search = || json!([{"googleSearch": {}}, {"functionDeclarations": [{"name": "a"}, {"name": "b"}]}]);
        assert_eq!(
            merged(WireFormat::GoogleGenerateContent, search(), &["b"]),
            "b at /1/functionDeclarations/1/name"
        );
        assert!(
            merged(WireFormat::GoogleGenerateContent, search(), &["ls"])
                .ends_with(r#"{"functionDeclarations":[{"name":"ls","description":"d","parametersJsonSchema":{}}]}]"#)
        );
        let own = |kind: &str| json!([{"type": kind, kind: {"name": "x"}}]);
        assert_eq!(
            merged(WireFormat::OpenAiChat, own("custom"), &["x"]),
            "x at /0/custom/name"
        );
        assert_eq!(
            merged(WireFormat::OllamaChat, own("function"), &["x"]),
            "x at /0/function/name"
        );
        assert_eq!(
            merged(
                WireFormat::OpenAiResponses,
                json!([{"type": "web_search"}]),
                &[]
            ),
            r#"[{"type":"web_search"}]"#
        );
        assert_eq!(
            merged(WireFormat::OpenAiChat, json!("all"), &["x"]),
            r#""all""#
        );
        assert_eq!(merged(WireFormat::OpenAiChat, Value::Null, &[]), "none");
    }

    #[test]
    fn a_place_behind_the_bodys_own_tools_leads_to_the_request() {
        let source = |wire, own, inner: &str| {
            tool_source(wire, own, &Pointer::parse(inner)).map(|at| at.as_str().to_owned())
        };
        assert_eq!(
            source(WireFormat::AnthropicMessages, 1, "/2/input_schema/x").as_deref(),
            Some("/tools/1/schema/x")
        );
        assert_eq!(source(WireFormat::AnthropicMessages, 1, "/0/name"), None);
        assert_eq!(
            source(
                WireFormat::GoogleGenerateContent,
                2,
                "/2/functionDeclarations/0/name"
            )
            .as_deref(),
            Some("/tools/0/name")
        );
        assert!(!is_injected(1, &Pointer::root()) && !is_injected(1, &Pointer::parse("/0")));
        assert!(is_injected(1, &Pointer::parse("/1/name")) && is_injected(0, &Pointer::root()));
    }
}
