//! `protocol/call-namespace`: calls in the Responses API that lack their tool's namespace.

use std::collections::HashMap;

use serde_json::Value;

use super::tools::{DeclaredTool, responses};
use super::value::elements;
use super::{Found, Subject, body_rule};
use crate::check::history::text_of;

body_rule! {
    Error "protocol/call-namespace", "a call lacks the namespace of its tool",
    "In OpenAI's Responses API, a `namespace` groups tools. The names of these tools are separate from the names of other tools. The API \
     writes the namespace's name into each call, as `namespace`, and the call must be sent back with this field. Without the field, the \
     API searches only the tools outside namespaces, and rejects a call to a tool that is not among them. This rule considers the tools in \
     `tools`, and those that `tool_search_output` and `additional_tools` load.\n\n\
     A tool search also sets `namespace` in a call to a deferred function that is in no namespace; a call without this field is a \
     warning.\n\n\
     * wrong: `{ \"type\": \"function_call\", \"name\": \"open\", … }` for a tool in the namespace `pages`\n\
     * right: the same with `\"namespace\": \"pages\"`",
    of OpenAiResponses;
    seen "2026-11" {
        "https://developers.openai.com/api/docs/guides/tools-tool-search":
            "calls of loaded tools have a `namespace`",
        "vercel/ai#15193": "*Missing namespace for function_call … Round-trip the model's function_call item*",
        "earendil-works/pi#7709": "the same error",
        "github/copilot-cli#4519": "GitHub Copilot: the same error",
        "jlcodes99/cockpit-tools#1856": "the same error",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    if !subject.server.is_openai() {
        return;
    }
    let input = elements(subject.member("input"));
    let loaded = input.iter().filter(|item| {
        matches!(
            text_of(item, "type"),
            Some("tool_search_output" | "additional_tools")
        )
    });
    let lists = loaded
        .map(|item| item.get("tools"))
        .chain([subject.member("tools")]);
    let tools: Vec<DeclaredTool<'_>> = lists
        .flat_map(|list| elements(list).iter().flat_map(responses))
        .collect();
    let is_searched = tools.iter().any(|tool| tool.kind == "tool_search");
    let places = Places::by_name(&tools);
    for item in input.iter().filter(|item| is_bare_call(item)) {
        let Some(named) = text_of(item, "name").and_then(|name| places.get(name)) else {
            continue;
        };
        if named.are_nested {
            found
                .at(
                    item,
                    "this call has no `namespace`, but its tool is in a namespace",
                )
                .help("send the call back with the `namespace` that the API gave it");
        } else if is_searched && named.are_nested_or_deferred {
            found
                .at(
                    item,
                    "according to user reports, the API sets `namespace` in calls to deferred tools, and it must be sent back",
                )
                .warning()
                .help("send the call back with the `namespace` that the API gave it");
        }
    }
}

/// The locations of all tools with the same name.
struct Places {
    /// `true` if all of the tools are in namespaces.
    are_nested: bool,
    /// `true` if all of the tools are in namespaces, or are deferred.
    are_nested_or_deferred: bool,
}

impl Places {
    /// Returns the locations of the tools by their names.
    fn by_name<'t>(tools: &[DeclaredTool<'t>]) -> HashMap<&'t str, Places> {
        let mut places: HashMap<&str, Places> = HashMap::with_capacity(tools.len());
        for tool in tools {
            let Some(name) = tool.name else {
                continue;
            };
            let named = places.entry(name).or_insert(Places {
                are_nested: true,
                are_nested_or_deferred: true,
            });
            named.are_nested &= tool.is_nested;
            named.are_nested_or_deferred &= tool.is_nested || is_deferred(tool);
        }
        places
    }
}

/// Returns `true` for a call without a namespace.
fn is_bare_call(item: &Value) -> bool {
    let is_call = matches!(
        text_of(item, "type"),
        Some("function_call" | "custom_tool_call")
    );
    is_call && item.get("namespace").is_none_or(Value::is_null)
}

fn is_deferred(tool: &DeclaredTool<'_>) -> bool {
    tool.object.get("defer_loading") == Some(&Value::Bool(true))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_tools_of_a_name_decide() {
        let list = json!([
            { "type": "namespace", "name": "pages", "tools": [
                { "type": "function", "name": "open" },
                { "type": "function", "name": "close" },
                { "type": "function", "name": "find" },
            ] },
            { "type": "function", "name": "close" },
            { "type": "function", "name": "find", "defer_loading": true },
            { "type": "function" },
        ]);
        let tools: Vec<DeclaredTool<'_>> =
            elements(Some(&list)).iter().flat_map(responses).collect();
        let places = Places::by_name(&tools);
        let told = ["open", "close", "find"].map(|name| {
            let named = &places[name];
            (named.are_nested, named.are_nested_or_deferred)
        });
        assert_eq!(told, [(true, true), (false, false), (false, true)]);
        assert!(!places.contains_key("save"));
    }
}
