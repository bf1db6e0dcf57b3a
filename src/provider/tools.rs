//! The tools step.

use serde_json::{Value, json};

use super::WireFormat;
use crate::conversation::Tool;

/// The tool definitions in the wire format's own shape; `None` if there are no tools.
///
/// Sources: Anthropic `tools[].input_schema`; OpenAI Chat and Mistral `tools[].function.parameters`; Responses
/// flat, with `strict: false` so that the schema is taken as it is; Gemini `functionDeclarations` with
/// `parametersJsonSchema`, which takes JSON Schema unchanged.
pub fn tool_definitions(wire: WireFormat, tools: &[Tool]) -> Option<Value> {
    let definitions = tools.iter().map(|tool| definition(wire, tool));
    (!tools.is_empty()).then(|| match wire {
        WireFormat::GoogleGenerateContent => json!([{"functionDeclarations": definitions.collect::<Vec<_>>()}]),
        _ => definitions.collect(),
    })
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
    use serde_json::Map;

    #[test]
    fn tools_are_defined_in_each_formats_shape() {
        let tool = Tool { name: "ls".into(), description: "list".into(), schema: Map::new() };
        let text = |wire| tool_definitions(wire, std::slice::from_ref(&tool)).expect("one tool").to_string();
        assert_eq!(text(WireFormat::AnthropicMessages), r#"[{"name":"ls","description":"list","input_schema":{}}]"#);
        assert_eq!(
            text(WireFormat::GoogleGenerateContent),
            r#"[{"functionDeclarations":[{"name":"ls","description":"list","parametersJsonSchema":{}}]}]"#
        );
        assert!(text(WireFormat::OpenAiResponses).contains(r#""strict":false"#));
        assert!(text(WireFormat::OllamaChat).contains(r#""function":{"name":"ls""#));
        assert_eq!(tool_definitions(WireFormat::OpenAiChat, &[]), None);
    }
}
