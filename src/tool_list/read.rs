//! Tool lists in common formats: MCP's format, the wire formats, and the JSON that SDKs write.

use serde_json::Value;

use super::ListedTool;

/// The tools of a document, and the numbers of its other entries.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ToolList {
    /// The tools that a client runs, in order.
    pub tools: Vec<ListedTool>,
    /// The number of tools that a server runs. They have no schema and are ignored.
    pub hosted: usize,
    /// The number of entries without a name or a schema, which are not tools.
    pub unread: usize,
}

/// Members that contain the schema of a tool's arguments, the most specific first.
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
const LISTS: [&str; 5] = [
    "tools",
    "functions",
    "functionDeclarations",
    "function_declarations",
    "result",
];

/// The maximum nesting depth of a list.
const DEEPEST: usize = 8;

impl ToolList {
    /// Reads a document: a list of tools, an object that contains one (a request body, or the
    /// answer to `tools/list`), an object with tools by name, a single tool, or a schema whose
    /// title is the tool's name. Returns `None` if the document contains no tools.
    pub fn of(document: &Value) -> Option<ToolList> {
        let mut list = ToolList::default();
        list.add(document, DEEPEST);
        (!list.tools.is_empty() || list.hosted > 0).then_some(list)
    }

    fn add(&mut self, value: &Value, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else {
            return;
        };
        if let Value::Array(elements) = value {
            for element in elements {
                let before = self.entries();
                self.add(element, depth);
                self.unread += usize::from(self.entries() == before);
            }
            return;
        }
        let Some(members) = value.as_object() else {
            return;
        };
        if let Some(inner) = LISTS.iter().find_map(|name| {
            members
                .get(*name)
                .filter(|it| it.is_array() || it.is_object())
        }) {
            match inner {
                Value::Object(named) if !has_list(inner) => {
                    for (name, entry) in named {
                        let tool = tool_of(entry, Some(name));
                        self.unread += usize::from(tool.is_none());
                        self.tools.extend(tool);
                    }
                }
                inner => self.add(inner, depth),
            }
            return;
        }
        match tool_of(value, None) {
            Some(tool) => self.tools.push(tool),
            None if members.get("type").is_some_and(Value::is_string) => self.hosted += 1,
            // An object with tools by name.
            None => members
                .iter()
                .for_each(|(name, tool)| self.tools.extend(tool_of(tool, Some(name)))),
        }
    }

    /// Returns the number of entries read so far.
    fn entries(&self) -> usize {
        self.tools.len() + self.hosted + self.unread
    }
}

fn has_list(value: &Value) -> bool {
    LISTS
        .iter()
        .any(|name| value.get(*name).is_some_and(Value::is_array))
}

/// Reads a tool. `key` is the tool's name in the surrounding object. It is used if the tool itself
/// contains no name.
fn tool_of(value: &Value, key: Option<&str>) -> Option<ListedTool> {
    let object = value
        .get("function")
        .filter(|inner| inner.is_object())
        .unwrap_or(value);
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
        // Some SDKs wrap the JSON form of a schema in an object.
        let schema = schema.get("jsonSchema").unwrap_or(schema).clone();
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
    let is_function = matches!(
        value.get("type").and_then(Value::as_str),
        None | Some("function" | "custom")
    );
    let has_own_name = object.get("name").is_some_and(Value::is_string);
    let is_tool = has_own_name
        && is_function
        && (object.get("description").is_some() || value.get("function").is_some());
    is_tool.then(|| ListedTool {
        name: name.unwrap_or_default().to_owned(),
        description,
        schema: serde_json::json!({"type": "object", "properties": {}}),
    })
}

/// Converts the types of Gemini's own schema dialect to lower case.
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
        ] {
            assert_eq!(ToolList::of(&document), None, "{document}");
        }
    }

    #[test]
    fn entries_that_are_no_tools_are_counted() {
        let tool = json!({"name": "ok", "inputSchema": {}});
        let list = ToolList::of(&json!({"tools": [{"name": 5, "inputSchema": {}}, 7, {}, tool]}));
        let list = list.expect("a tool");
        assert_eq!((list.tools.len(), list.unread), (1, 3));
        let by_name = ToolList::of(&json!({"tools": {"a": 5, "ok": {"inputSchema": {}}}}));
        assert_eq!(by_name.expect("a tool").unread, 1);
        let nested =
            ToolList::of(&json!([{"functionDeclarations": [7, {"name": "ok", "parameters": {}}]}]));
        assert_eq!(nested.expect("a tool").unread, 1);
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
