//! Reads and compares the tools in two bodies.

use serde_json::Value;

use super::Side;
use super::piece::canonical;
use crate::check::history::text_of;
use crate::diff::{ChangeKind, structural};
use crate::import::forms;

/// A tool in a body.
#[derive(Debug)]
pub(super) struct Offer<'b> {
    /// The tool's name, or the kind of a server tool.
    pub(super) name: String,
    /// The value that declares the tool.
    pub(super) value: &'b Value,
    function: Option<Function>,
}

#[derive(Debug)]
struct Function {
    description: String,
    schema: Value,
}

/// Reads the tools in a body, in order.
pub(super) fn offers(side: Side<'_>) -> Vec<Offer<'_>> {
    let lists = forms::TOOLS
        .iter()
        .filter_map(|name| side.body.get(*name)?.as_array());
    lists.flatten().flat_map(declared).collect()
}

/// Reads the tools in one list element. Gemini's elements can declare several tools, including
/// server tools.
fn declared(element: &Value) -> Vec<Offer<'_>> {
    const LISTS: [&str; 2] = ["functionDeclarations", "function_declarations"];
    let list = LISTS
        .into_iter()
        .find_map(|name| element.get(name)?.as_array());
    let Some(declarations) = list else {
        return vec![offer(element)];
    };
    let hosted = element
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| !LISTS.contains(&name.as_str()));
    let hosted = hosted.map(|(name, value)| Offer {
        name: name.clone(),
        value,
        function: None,
    });
    declarations.iter().map(offer).chain(hosted).collect()
}

fn offer(value: &Value) -> Offer<'_> {
    let inner = value.get("function").unwrap_or(value);
    let is_function = matches!(text_of(value, "type"), None | Some("function" | "custom"));
    match text_of(inner, "name").filter(|_| is_function) {
        Some(name) => {
            let description = text_of(inner, "description").unwrap_or_default().to_owned();
            let schema = Value::Object(forms::schema(inner));
            Offer {
                name: name.to_owned(),
                value,
                function: Some(Function {
                    description,
                    schema,
                }),
            }
        }
        None => Offer {
            name: text_of(value, "type")
                .unwrap_or_else(|| {
                    value
                        .as_object()
                        .and_then(|members| members.keys().next())
                        .map_or("tool", String::as_str)
                })
                .to_owned(),
            value,
            function: None,
        },
    }
}

/// Returns phrases that describe the differences between two tools with the same name.
pub(super) fn alterations(before: &Offer<'_>, after: &Offer<'_>) -> Vec<String> {
    let (Some(before), Some(after)) = (&before.function, &after.function) else {
        let is_same = canonical(before.value) == canonical(after.value);
        return if is_same {
            Vec::new()
        } else {
            vec!["it is declared differently".to_owned()]
        };
    };
    let mut told = Vec::new();
    if before.description != after.description {
        told.push(format!(
            "in its description, {}",
            super::texts::alteration(&before.description, &after.description)
        ));
    }
    for change in structural(&before.schema, &after.schema) {
        let at = match change.pointer.as_str() {
            "" => "its schema".to_owned(),
            pointer => format!("`{pointer}` of its schema"),
        };
        match change.kind {
            ChangeKind::Removed(_) => told.push(format!("{at} is missing")),
            ChangeKind::Replaced(..) => told.push(format!("{at} has a different value")),
            ChangeKind::Added(_) => told.push(format!("{at} is added")),
            ChangeKind::Reordered(..) | ChangeKind::File(_) => {}
        }
    }
    told
}
