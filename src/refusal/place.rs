//! Finds the place in a body that a sentence names.

use serde_json::Value;

use crate::json::Pointer;

/// Returns the place of a path such as `messages.3.content.0`, `input[2].role`, or
/// `GenerateContentRequest.contents[0]`. Words that do not match are skipped, because providers
/// insert type names between member names.
pub(super) fn of_path(body: &Value, path: &str) -> Option<Pointer> {
    let (mut at, mut value, mut steps) = (Pointer::root(), body, 0);
    for word in path
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
    {
        let next = match value {
            Value::Array(elements) => {
                let index = word.parse().ok().filter(|index| *index < elements.len());
                index.map(|index: usize| (at.element(index), &elements[index]))
            }
            Value::Object(members) => {
                let member = members.iter().find(|(name, _)| is_same_name(name, word));
                member.map(|(name, value)| (at.member(name), value))
            }
            _ => None,
        };
        if let Some((pointer, inner)) = next {
            (at, value, steps) = (pointer, inner, steps + 1);
        }
    }
    (steps > 0).then_some(at)
}

/// Returns `true` if a path leads to an element that a list of the body does not have.
pub(super) fn is_outside(body: &Value, path: &str) -> bool {
    let Some(at) = of_path(body, path) else {
        return false;
    };
    let Some(Value::Array(elements)) = body.pointer(at.as_str()) else {
        return false;
    };
    let last = at.tokens().last().unwrap_or_default();
    let mut words = path
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .skip_while(|word| !is_same_name(&last, word))
        .skip(1);
    let index = words.next().and_then(|word| word.parse::<usize>().ok());
    index.is_some_and(|index| index >= elements.len())
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

/// Returns the words in a list of ids or names.
pub(super) fn words(list: &str) -> impl Iterator<Item = &str> {
    list.split([',', ' ', '\'', '[', ']'])
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| word.len() > 2)
}

/// Returns the first place whose value is this text.
pub(super) fn of_value(body: &Value, text: &str) -> Option<Pointer> {
    below(body, text, &Pointer::root())
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
