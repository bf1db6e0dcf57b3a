//! The tools step.

use serde_json::{Value, json};

use super::WireFormat;
use crate::conversation::Tool;
use crate::json::Pointer;

/// The tool definitions in the wire format's own shape; `None` if there are no tools.
///
/// Sources: Anthropic `tools[].input_schema`; OpenAI Chat and Mistral `tools[].function.parameters`; Responses
/// flat, with `strict: false` so that the schema is taken as it is; Gemini `functionDeclarations` with
/// `parametersJsonSchema`, which takes JSON Schema unchanged.
pub fn tool_definitions(wire: WireFormat, tools: &[Tool]) -> Option<Value> {
    let definitions = tools.iter().map(|tool| definition(wire, tool));
    (!tools.is_empty()).then(|| match wire {
        WireFormat::GoogleGenerateContent => json!([{"functionDeclarations": definitions.collect::<Vec<_>>()}]),
        WireFormat::AnthropicMessages
        | WireFormat::OpenAiChat
        | WireFormat::OpenAiResponses
        | WireFormat::MistralChat
        | WireFormat::MistralFim
        | WireFormat::OllamaChat
        | WireFormat::OllamaGenerate
        | WireFormat::LlamaCppInfill => definitions.collect(),
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
        WireFormat::OpenAiChat
        | WireFormat::MistralChat
        | WireFormat::MistralFim
        | WireFormat::OllamaChat
        | WireFormat::OllamaGenerate
        | WireFormat::LlamaCppInfill => {
            json!({"type": "function", "function": {"name": name, "description": description, "parameters": schema}})
        }
    }
}

/// What stands around the name, description and schema of a tool.
enum Envelope {
    /// Nothing.
    None,
    /// A member `function`.
    Function,
    /// A list of declarations in one element.
    Declarations,
}

fn envelope(wire: WireFormat) -> Envelope {
    match wire {
        WireFormat::GoogleGenerateContent => Envelope::Declarations,
        WireFormat::AnthropicMessages | WireFormat::OpenAiResponses => Envelope::None,
        WireFormat::OpenAiChat
        | WireFormat::MistralChat
        | WireFormat::MistralFim
        | WireFormat::OllamaChat
        | WireFormat::OllamaGenerate
        | WireFormat::LlamaCppInfill => Envelope::Function,
    }
}

/// The place in a context that a value of the tool definitions comes from; `None` for what a wire format adds.
pub(crate) fn tool_source(wire: WireFormat, inner: &Pointer) -> Option<Pointer> {
    let tokens: Vec<String> = inner.tokens().collect();
    let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
    let (index, rest) = match (envelope(wire), tokens.as_slice()) {
        (Envelope::Declarations, [_, "functionDeclarations", index, rest @ ..])
        | (Envelope::None, [index, rest @ ..])
        | (Envelope::Function, [index, "function", rest @ ..]) => (index, rest),
        (Envelope::Function, [index]) => (index, &[][..]),
        (Envelope::Declarations | Envelope::None | Envelope::Function, _) => return None,
    };
    let tool = Pointer::root().member("tools").member(index);
    let (member, rest) = match rest {
        [] => return Some(tool),
        ["name", rest @ ..] => ("name", rest),
        ["description", rest @ ..] => ("description", rest),
        ["input_schema" | "parameters" | "parametersJsonSchema", rest @ ..] => ("schema", rest),
        _ => return None,
    };
    Some(rest.iter().fold(tool.member(member), |at, token| at.member(token)))
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
