//! The tools step.

use serde_json::{Map, Value, json};

use super::WireFormat;
use crate::conversation::Tool;

/// Appends the tool definitions, in the wire format's own shape, as the body's last key. No tools, no key.
///
/// Sources: Anthropic `tools[].input_schema`; OpenAI Chat and Mistral `tools[].function.parameters`; Responses
/// flat, with `strict: false` so that the schema is taken as it is; Gemini `functionDeclarations` with
/// `parametersJsonSchema`, which takes JSON Schema unchanged.
pub fn add_tools(body: &mut Map<String, Value>, wire: WireFormat, tools: &[Tool]) {
    if tools.is_empty() {
        return;
    }
    let definitions = tools.iter().map(|tool| definition(wire, tool));
    let value = match wire {
        WireFormat::GoogleGenerateContent => json!([{"functionDeclarations": definitions.collect::<Vec<_>>()}]),
        _ => definitions.collect(),
    };
    body.shift_remove("tools");
    body.insert("tools".to_owned(), value);
}

fn definition(wire: WireFormat, tool: &Tool) -> Value {
    let (name, description, schema) = (&*tool.name, &*tool.description, &tool.schema);
    match wire {
        WireFormat::AnthropicMessages => json!({"name": name, "description": description, "input_schema": schema}),
        WireFormat::OpenAiResponses => {
            json!({"type": "function", "name": name, "description": description, "parameters": schema, "strict": false})
        }
        WireFormat::GoogleGenerateContent => {
            json!({"name": name, "description": description, "parametersJsonSchema": schema})
        }
        _ => json!({"type": "function", "function": {"name": name, "description": description, "parameters": schema}}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_come_last_in_each_formats_shape() {
        let tool = Tool { name: "ls".into(), description: "list".into(), schema: Map::new() };
        let body = |wire| {
            let mut body = Map::from_iter([("messages".to_owned(), json!([]))]);
            add_tools(&mut body, wire, std::slice::from_ref(&tool));
            Value::Object(body).to_string()
        };
        assert_eq!(
            body(WireFormat::AnthropicMessages),
            r#"{"messages":[],"tools":[{"name":"ls","description":"list","input_schema":{}}]}"#
        );
        assert!(body(WireFormat::GoogleGenerateContent).ends_with(
            r#""tools":[{"functionDeclarations":[{"name":"ls","description":"list","parametersJsonSchema":{}}]}]}"#
        ));
        assert!(body(WireFormat::OpenAiResponses).contains(r#""strict":false"#));
        assert!(body(WireFormat::OllamaChat).contains(r#""function":{"name":"ls""#));
        let mut none = Map::new();
        add_tools(&mut none, WireFormat::OpenAiChat, &[]);
        assert!(none.is_empty());
    }
}
