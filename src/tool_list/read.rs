//! Tool lists in common formats: MCP's format, the wire formats, and the JSON that SDKs write.

use serde_json::{Map, Value};

use super::ListedTool;
use crate::json::Pointer;

/// The tools in a document, and its other entries.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ToolList {
    /// The tools that a client runs, in order.
    pub tools: Vec<ListedTool>,
    /// The number of tools that a server runs. They have no schema and are ignored.
    pub hosted: usize,
    /// The locations of the entries that are not tools, because they have no name or no schema.
    pub unread: Vec<Pointer>,
    /// `true` if the document is one page of a longer list.
    pub is_partial: bool,
}

/// Members that contain a tool's argument schema, the most specific first.
const SCHEMAS: [&str; 7] = [
    "inputSchema",
    "input_schema",
    "parametersJsonSchema",
    "parameters_json_schema",
    "parameters",
    "args_schema",
    "schema",
];

/// Members that contain a list of tools, or an object with tools by name.
const LISTS: [&str; 6] = [
    "tools",
    "functions",
    "functionDeclarations",
    "function_declarations",
    "result",
    // Converse's.
    "toolConfig",
];

/// The members of Gemini's tool entries that stand for tools run by its server.
const HOSTED_BY_GEMINI: [&str; 9] = [
    "codeexecution",
    "computeruse",
    "enterprisewebsearch",
    "filesearch",
    "googlemaps",
    "googlesearch",
    "googlesearchretrieval",
    "retrieval",
    "urlcontext",
];

/// The maximum nesting depth of a list.
const DEEPEST: usize = 8;

impl ToolList {
    /// Reads a document: a list of tools, an object that contains one (a request body, or an answer
    /// to `tools/list`), tools by name, a single tool, or a schema whose title is the tool's name.
    /// Returns `None` if the document has no entry that might be a tool.
    pub fn of(document: &Value) -> Option<ToolList> {
        let mut list = ToolList::default();
        list.add(document, &Pointer::root(), DEEPEST);
        (list.entries() > 0).then_some(list)
    }

    /// Returns `true` if there are tools, whether a client or a server runs them.
    pub fn has_tools(&self) -> bool {
        !self.tools.is_empty() || self.hosted > 0
    }

    fn add(&mut self, value: &Value, at: &Pointer, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else {
            return;
        };
        if let Value::Array(elements) = value {
            for (index, element) in elements.iter().enumerate() {
                let (before, at) = (self.entries(), at.element(index));
                let members = element.as_object().into_iter().flatten();
                self.hosted += members
                    .filter(|(name, tool)| is_of_gemini(name, tool))
                    .count();
                self.add(element, &at, depth);
                if self.entries() == before {
                    self.unread.push(at);
                }
            }
            return;
        }
        let Some(members) = value.as_object() else {
            return;
        };
        self.is_partial |= has_next_page(members);
        if let Some((name, inner)) = LISTS.iter().find_map(|name| {
            let inner = members.get(*name)?;
            (inner.is_array() || inner.is_object() && *name != "toolConfig" || has_list(inner))
                .then_some((*name, inner))
        }) {
            let at = at.member(name);
            match inner {
                Value::Object(named) if !has_list(inner) => self.add_named(named, &at),
                inner => self.add(inner, &at, depth),
            }
            return;
        }
        match tool_of(value, None) {
            Some(tool) => self.tools.push(tool),
            None if is_schema(members) || is_function(value) && members.contains_key("type") => {
                self.unread.push(at.clone());
            }
            None if members.get("type").is_some_and(Value::is_string) => self.hosted += 1,
            // An object with tools by name.
            None if members
                .iter()
                .any(|(name, tool)| tool_of(tool, Some(name)).is_some()) =>
            {
                self.add_named(members, at);
            }
            None => {}
        }
    }

    /// Adds tools by name.
    fn add_named(&mut self, named: &Map<String, Value>, at: &Pointer) {
        for (name, entry) in named {
            match tool_of(entry, Some(name)) {
                Some(tool) => self.tools.push(tool),
                None if is_of_gemini(name, entry) => self.hosted += 1,
                None => self.unread.push(at.member(name)),
            }
        }
    }

    /// Returns the number of entries read so far.
    fn entries(&self) -> usize {
        self.tools.len() + self.hosted + self.unread.len()
    }
}

/// Returns `true` for a member that stands for a tool run by Gemini's server, in either spelling.
fn is_of_gemini(name: &str, tool: &Value) -> bool {
    let plain = name.replace('_', "").to_ascii_lowercase();
    HOSTED_BY_GEMINI.contains(&plain.as_str())
        && tool.is_object()
        && tool_of(tool, Some(name)).is_none()
}

/// Returns `true` for a page of an MCP server's list that is followed by another page.
fn has_next_page(members: &Map<String, Value>) -> bool {
    let cursor = members.get("nextCursor").and_then(Value::as_str);
    cursor.is_some_and(|cursor| !cursor.is_empty())
}

/// Returns `true` for an object that is a JSON Schema, rather than a tool with a type.
fn is_schema(members: &Map<String, Value>) -> bool {
    const TYPES: [&str; 7] = [
        "array", "boolean", "integer", "null", "number", "object", "string",
    ];
    let kind = members.get("type").and_then(Value::as_str);
    kind.is_some_and(|kind| TYPES.contains(&kind)) || members.contains_key("$schema")
}

/// Returns `true` for a tool that a client runs, by its type.
fn is_function(tool: &Value) -> bool {
    matches!(
        tool.get("type").and_then(Value::as_str),
        None | Some("function" | "custom")
    )
}

fn has_list(value: &Value) -> bool {
    LISTS
        .iter()
        .any(|name| value.get(*name).is_some_and(Value::is_array))
}

/// Reads a tool. `key` is the tool's name in the surrounding object. It is used if the tool itself
/// contains no name.
fn tool_of(value: &Value, key: Option<&str>) -> Option<ListedTool> {
    let inner = ["function", "toolSpec"]
        .into_iter()
        .find_map(|name| value.get(name).filter(|inner| inner.is_object()));
    let object = inner.unwrap_or(value);
    let name = object.get("name").and_then(Value::as_str).or(key);
    let description = object
        .get("description")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let held = SCHEMAS
        .iter()
        .find_map(|name| Some((*name, object.get(*name)?)));
    if let (Some(name), Some((member, schema))) = (name, held) {
        let schema = unwrapped(schema).clone();
        let schema = if member == "parameters" {
            in_small_letters(schema)
        } else {
            schema
        };
        return Some(ListedTool {
            name: name.to_owned(),
            description,
            schema,
        });
    }
    let is_schema = object.get("properties").is_some_and(Value::is_object)
        && object.get("type") == Some(&"object".into());
    let title = object.get("title").and_then(Value::as_str).or(key);
    if let (true, Some(title)) = (is_schema, title) {
        return Some(ListedTool {
            name: title.to_owned(),
            description,
            schema: object.clone(),
        });
    }
    // A tool without arguments may have no schema.
    let has_own_name = object.get("name").is_some_and(Value::is_string);
    let is_tool = has_own_name
        && is_function(value)
        && (object.get("description").is_some() || inner.is_some());
    is_tool.then(|| ListedTool {
        name: name.unwrap_or_default().to_owned(),
        description,
        schema: serde_json::json!({"type": "object", "properties": {}}),
    })
}

/// Returns a schema without the wrapper that an SDK (`jsonSchema`) or Converse (`json`) puts around
/// it.
fn unwrapped(schema: &Value) -> &Value {
    schema
        .get("jsonSchema")
        .or_else(|| in_json(schema))
        .unwrap_or(schema)
}

/// Returns the value of an object's only member, if the member is an object called `json`.
fn in_json(schema: &Value) -> Option<&Value> {
    let members = schema.as_object().filter(|members| members.len() == 1)?;
    members.get("json").filter(|it| it.is_object())
}

/// Converts the types of Gemini's own schema dialect, which are upper-case, to lower case.
fn in_small_letters(mut schema: Value) -> Value {
    lower_types(&mut schema);
    schema
}

fn lower_types(value: &mut Value) {
    const TYPES: [&str; 7] = [
        "STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL",
    ];
    match value {
        Value::Object(members) => {
            if let Some(Value::String(name)) = members.get_mut("type")
                && TYPES.contains(&name.as_str())
            {
                *name = name.to_ascii_lowercase();
            }
            members.values_mut().for_each(lower_types);
        }
        Value::Array(elements) => elements.iter_mut().for_each(lower_types),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn names(document: &Value) -> Vec<String> {
        ToolList::of(document)
            .unwrap_or_default()
            .tools
            .into_iter()
            .map(|tool| tool.name)
            .collect()
    }

    #[test]
    fn lists_are_found_in_every_form() {
        let schema = json!({"type": "object", "properties": {"q": {"type": "string"}}});
        let mcp = json!({"name": "a", "description": "d", "inputSchema": schema});
        let documents = [
            json!([mcp]),
            json!({"tools": [mcp], "nextCursor": "x"}),
            json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": [mcp]}}),
            json!({"model": "m", "messages": [], "tools": [{"name": "a", "input_schema": schema}]}),
            json!({"tools": [{"type": "function", "function": {"name": "a", "parameters": schema}}]}),
            json!({"input": "x", "tools": [{"type": "function", "name": "a", "parameters": schema}]}),
            json!({"contents": [], "tools": [{"functionDeclarations": [{"name": "a", "parametersJsonSchema": schema}]}]}),
            json!({"functions": [{"name": "a", "parameters": schema}]}),
            json!({"tools": {"a": {"description": "d", "inputSchema": {"jsonSchema": schema}}}}),
            json!({"a": {"description": "d", "parameters": schema}}),
            json!({"title": "a", "type": "object", "properties": {"q": {"type": "string"}}}),
            json!({"messages": [], "toolConfig": {"tools": [{"toolSpec": {"name": "a", "inputSchema": {"json": schema}}}]}}),
            mcp.clone(),
        ];
        for document in documents {
            assert_eq!(names(&document), ["a"], "{document}");
        }
        let tool = ToolList::of(&json!([mcp])).expect("a tool").tools.remove(0);
        assert_eq!((tool.description.as_str(), &tool.schema), ("d", &schema));
    }

    #[test]
    fn what_a_server_runs_is_counted_and_what_is_no_tool_is_none() {
        let list = ToolList::of(
            &json!({"tools": [{"type": "web_search"}, {"name": "t", "inputSchema": true}]}),
        );
        let list = list.expect("tools");
        assert_eq!(
            (list.hosted, list.tools.len(), &list.tools[0].schema),
            (1, 1, &Value::Bool(true))
        );
        for document in [
            json!([]),
            json!(1),
            json!({"a": 1}),
            json!({"messages": [{"role": "user", "content": "x"}]}),
            json!({"contents": [], "toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}),
        ] {
            assert_eq!(ToolList::of(&document), None, "{document}");
        }
    }

    #[test]
    fn tools_of_geminis_server_are_hosted() {
        let search = json!({"googleSearch": {}});
        let declared = json!({"functionDeclarations": [{"name": "a", "description": "d"}]});
        let beside = json!({"function_declarations": [{"name": "a", "description": "d"}], "url_context": {}});
        let by_name = json!({"search": {"description": "d", "inputSchema": {"type": "object"}}, "retrieval": {"description": "d"}});
        for document in [
            json!([declared, search]),
            json!({"tools": [beside]}),
            by_name,
        ] {
            let list = ToolList::of(&document).expect("a tool");
            assert_eq!(
                (list.tools.len(), list.hosted, list.unread.len()),
                (1, 1, 0),
                "{document}"
            );
        }
    }

    #[test]
    fn a_schema_without_a_name_is_no_tool_of_a_server() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
        for document in [
            schema.clone(),
            json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "anyOf": [schema]}),
            json!({"type": "function"}),
        ] {
            let list = ToolList::of(&document).expect("an entry");
            assert_eq!(
                (list.has_tools(), &list.unread),
                (false, &vec![Pointer::root()]),
                "{document}"
            );
        }
        let own = json!({"file_search": {"description": "d", "inputSchema": schema}});
        assert_eq!(ToolList::of(&own).expect("a tool").hosted, 0);
        let list = ToolList::of(&json!([schema, {"name": "a", "inputSchema": schema}]));
        assert_eq!(list.expect("a tool").unread, [Pointer::parse("/0")]);
    }

    #[test]
    fn entries_that_are_no_tools_are_counted() {
        let tool = json!({"name": "ok", "inputSchema": {}});
        let list = ToolList::of(&json!({"tools": [{"name": 5, "inputSchema": {}}, 7, {}, tool]}));
        let list = list.expect("a tool");
        assert_eq!((list.tools.len(), list.unread.len()), (1, 3));
        assert_eq!(list.unread[0].as_str(), "/tools/0");
        let by_name = ToolList::of(&json!({"tools": {"a": 5, "ok": {"inputSchema": {}}}}));
        assert_eq!(by_name.expect("a tool").unread.len(), 1);
        let nested =
            ToolList::of(&json!([{"functionDeclarations": [7, {"name": "ok", "parameters": {}}]}]));
        assert_eq!(
            nested.expect("a tool").unread,
            [Pointer::parse("/0/functionDeclarations/0")]
        );
    }

    #[test]
    fn types_in_capitals_are_those_of_json_schema() {
        let list = json!([{"functionDeclarations": [{"name": "a", "parameters": {"type": "OBJECT", "properties": {"x": {"type": "STRING"}}}}]}]);
        let tool = ToolList::of(&list).expect("a tool").tools.remove(0);
        assert_eq!(
            tool.schema,
            json!({"type": "object", "properties": {"x": {"type": "string"}}})
        );
    }
}
