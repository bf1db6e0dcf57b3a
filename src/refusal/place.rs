//! Finds the location in a body that a sentence refers to.

use serde_json::Value;

use crate::json::Pointer;

/// Returns the location of a path such as `messages.3.content.0`, `input[2].role`, or
/// `GenerateContentRequest.contents[0]`. If the path refers to an element that a list lacks,
/// returns the location of the list. Words that do not match are skipped, because providers insert
/// type names between member names.
pub(super) fn of_path(body: &Value, path: &str) -> Option<Pointer> {
    let walked = walk(body, path);
    (walked.steps > 0).then_some(walked.at)
}

/// Returns `true` if a path points to a list element that the body does not have.
pub(super) fn is_outside(body: &Value, path: &str) -> bool {
    walk(body, path).is_outside
}

/// The end of a path in a body, as far as the path matches.
#[derive(Default)]
struct Walked {
    at: Pointer,
    /// The number of words in the path that matched.
    steps: usize,
    /// `true` if the next word is the index of an element that the list at this location lacks.
    is_outside: bool,
}

fn walk(body: &Value, path: &str) -> Walked {
    let (mut walked, mut value) = (Walked::default(), body);
    for word in path
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
    {
        let next = match (value, word.parse::<usize>()) {
            (Value::Array(elements), Ok(index)) => {
                let Some(element) = elements.get(index) else {
                    walked.is_outside = true;
                    return walked;
                };
                Some((walked.at.element(index), element))
            }
            (Value::Object(members), index) => {
                let named = members.iter().find(|(name, _)| is_same_name(name, word));
                // Google counts the properties of a schema: `properties[2].value`.
                let is_counted = walked.at.as_str().ends_with("/properties");
                let member =
                    named.or_else(|| members.iter().nth(index.ok().filter(|_| is_counted)?));
                member.map(|(name, value)| (walked.at.member(name), value))
            }
            _ => None,
        };
        if let Some((pointer, inner)) = next {
            (walked.at, value) = (pointer, inner);
            walked.steps += 1;
        }
    }
    walked
}

/// Returns `true` if any object in a body has a member with this name.
pub(super) fn has_member(value: &Value, name: &str) -> bool {
    match value {
        Value::Object(members) => members
            .iter()
            .any(|(other, inner)| is_same_name(other, name) || has_member(inner, name)),
        Value::Array(elements) => elements.iter().any(|element| has_member(element, name)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Compares names ignoring case and underscores: Google writes `generation_config` for
/// `generationConfig`.
fn is_same_name(name: &str, word: &str) -> bool {
    name == word || letters(name) == letters(word)
}

fn letters(text: &str) -> String {
    text.chars()
        .filter(|c| *c != '_')
        .map(|c| c.to_ascii_lowercase())
        .collect::<String>()
}

/// Returns the words in a list of IDs or names.
pub(super) fn words(list: &str) -> impl Iterator<Item = &str> + Clone {
    list.split([',', ' ', '\'', '[', ']'])
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| word.len() > 2)
}

/// Returns the first location whose value is this text.
pub(super) fn of_value(body: &Value, text: &str) -> Option<Pointer> {
    below(body, text, &Pointer::root())
}

/// Returns the location of the definition of the tool with this name.
pub(super) fn of_tool(body: &Value, name: &str) -> Option<Pointer> {
    let tools = body.get("tools")?.as_array()?;
    let at = Pointer::root().member("tools");
    let declared = tools.iter().enumerate().flat_map(|(index, tool)| {
        let at = at.element(index);
        let function = tool.get("function").map(|it| (at.member("function"), it));
        let declarations = tool.get("functionDeclarations").and_then(Value::as_array);
        let in_list = at.member("functionDeclarations");
        let declarations = declarations.into_iter().flatten().enumerate();
        std::iter::once((at.clone(), tool))
            .chain(function)
            .chain(declarations.map(move |(index, it)| (in_list.element(index), it)))
    });
    let mut named = declared.filter(|(_, tool)| tool.get("name").is_some_and(|it| it == name));
    named.next().map(|(at, _)| at)
}

/// Returns the location in a tool's schema that a sentence names as a list of quoted keys, such as
/// `('properties', 'a', 'items')`, as far as the schema has them.
pub(super) fn in_schema(body: &Value, tool: &Pointer, keys: &str) -> Pointer {
    const SCHEMAS: [&str; 3] = ["parameters", "input_schema", "parametersJsonSchema"];
    let mut schemas = SCHEMAS.map(|name| tool.member(name)).into_iter();
    let schema = schemas.find(|at| body.pointer(at.as_str()).is_some());
    let mut at = schema.unwrap_or_else(|| tool.clone());
    for key in keys.split(['\'', '"']).skip(1).step_by(2) {
        let next = at.member(key);
        if body.pointer(next.as_str()).is_none() {
            break;
        }
        at = next;
    }
    at
}

fn below(value: &Value, text: &str, at: &Pointer) -> Option<Pointer> {
    match value {
        Value::String(found) if found == text => Some(at.clone()),
        Value::Array(elements) => elements
            .iter()
            .enumerate()
            .find_map(|(index, element)| below(element, text, &at.element(index))),
        Value::Object(members) => members
            .iter()
            .find_map(|(name, inner)| below(inner, text, &at.member(name))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_of_every_provider_lead_into_the_body() {
        let body = json!({
            "messages": [{"content": [{"type": "text", "text": ""}]}],
            "tools": [{"name": "a b"}],
            "generationConfig": {"topK": 1},
        });
        let place = |path| of_path(&body, path).map(|pointer| pointer.as_str().to_owned());
        assert_eq!(
            place("messages.0.content.0.text.text").as_deref(),
            Some("/messages/0/content/0/text")
        );
        assert_eq!(
            place("messages.[0].content").as_deref(),
            Some("/messages/0/content")
        );
        assert_eq!(
            place("tools.0.custom.name").as_deref(),
            Some("/tools/0/name")
        );
        assert_eq!(
            place("GenerateContentRequest.generation_config.top_k").as_deref(),
            Some("/generationConfig/topK")
        );
        assert_eq!(place("nowhere"), None);
        assert_eq!(place("messages.5.content.0").as_deref(), Some("/messages"));
        for outside in [
            "messages.5.content.0",
            "tools[1].name",
            "GenerateContentRequest.tools[7]",
        ] {
            assert!(is_outside(&body, outside), "{outside}");
        }
        for inside in [
            "messages.0.content.0.text.text",
            "messages",
            "nowhere",
            "tools.0.custom.name",
        ] {
            assert!(!is_outside(&body, inside), "{inside}");
        }
        assert_eq!(
            of_value(&body, "a b")
                .map(|at| at.as_str().to_owned())
                .as_deref(),
            Some("/tools/0/name")
        );
    }
}
