//! Body members, identified by JSON pointers.

use serde_json::Value;

use crate::json::Pointer;
use crate::json::subschemas::visit;

/// The step that stands for each element of a list.
const ELEMENTS: &str = "*";

/// The step that stands for a schema and each schema inside it.
pub(super) const SCHEMAS: &str = "**";

/// One or more members of a body.
#[derive(Debug, Clone, PartialEq)]
pub struct MemberPath {
    /// The JSON pointer, in which `*` stands for each element of a list, and `**` for a schema and
    /// each schema inside it.
    pub pointer: Pointer,
    steps: Box<[Step]>,
}

/// A value that a path leads to.
#[derive(Debug, Clone, Copy)]
pub struct FoundMember<'b> {
    /// The value.
    pub value: &'b Value,
    /// The object or list that contains the value; `None` for a top-level member.
    pub holder: Option<&'b Value>,
}

/// One step of a pointer, with a member's name and its alternative spelling.
#[derive(Debug, Clone, PartialEq)]
struct Step {
    name: Box<str>,
    /// The `snake_case` form of a `camelCase` name, because Gemini reads proto3 JSON, which accepts
    /// both.
    snake: Option<Box<str>>,
}

impl MemberPath {
    pub(super) fn new(pointer: &str) -> MemberPath {
        let pointer = Pointer::parse(pointer);
        let steps = pointer.tokens().map(|name| Step {
            snake: snake(&name),
            name: name.into(),
        });
        MemberPath {
            steps: steps.collect(),
            pointer,
        }
    }

    /// Returns `true` if the path starts with this member of the body.
    pub fn is_below(&self, member: &str) -> bool {
        self.steps
            .first()
            .is_none_or(|step| &*step.name == member || step.snake.as_deref() == Some(member))
    }

    /// Returns `true` if a pointer, given by its tokens, identifies one of these members.
    pub fn is_at(&self, tokens: &[String]) -> bool {
        is_at(&self.steps, tokens)
    }

    /// Returns these members. `member` returns a top-level member of the body by name, and `both`
    /// is `true` if both spellings of names are accepted.
    pub fn find<'b>(
        &self,
        both: bool,
        member: impl Fn(&str) -> Option<&'b Value>,
    ) -> Vec<FoundMember<'b>> {
        let mut found = Vec::new();
        if let Some((first, rest)) = self.steps.split_first()
            && let Some(value) = first.find(both, member)
        {
            let first = FoundMember {
                value,
                holder: None,
            };
            find_in(rest, both, first, &mut found);
        }
        found
    }

    /// Returns these members of a value, as if it were the body.
    pub fn find_below<'b>(&self, both: bool, value: &'b Value) -> Vec<FoundMember<'b>> {
        let mut found = Vec::new();
        let holder = None;
        find_in(&self.steps, both, FoundMember { value, holder }, &mut found);
        found
    }

    /// Returns the name in dotted form, such as `reasoning.effort` or `stop[4]`.
    pub fn name(&self) -> String {
        let mut named = String::new();
        for step in self
            .steps
            .iter()
            .filter(|step| ![ELEMENTS, SCHEMAS].contains(&&*step.name))
        {
            if step.name.bytes().all(|byte| byte.is_ascii_digit()) {
                named.push_str(&format!("[{}]", step.name));
                continue;
            }
            if !named.is_empty() {
                named.push('.');
            }
            named.push_str(&step.name);
        }
        named
    }
}

fn is_at(steps: &[Step], tokens: &[String]) -> bool {
    match (steps, tokens) {
        ([], []) => true,
        ([step, rest @ ..], _) if &*step.name == SCHEMAS => {
            (0..=tokens.len()).any(|count| is_at(rest, &tokens[count..]))
        }
        ([step, rest @ ..], [token, more @ ..]) => {
            let is_step = match &*step.name {
                ELEMENTS => token.bytes().all(|byte| byte.is_ascii_digit()),
                name => token == name || step.snake.as_deref() == Some(token),
            };
            is_step && is_at(rest, more)
        }
        ([], _) | (_, []) => false,
    }
}

/// Adds the values that the steps point to; `*` stands for each element of a list, `**` for each
/// schema. With both spellings, a value that is not a list is treated as a list with one element, as
/// in servers that read protocol buffers.
fn find_in<'b>(
    steps: &[Step],
    both: bool,
    member: FoundMember<'b>,
    found: &mut Vec<FoundMember<'b>>,
) {
    let holder = Some(member.value);
    match (steps, member.value) {
        ([], _) => found.push(member),
        ([step, rest @ ..], Value::Array(elements)) if &*step.name == ELEMENTS => {
            for value in elements {
                find_in(rest, both, FoundMember { value, holder }, found);
            }
        }
        ([step, rest @ ..], _) if &*step.name == ELEMENTS => {
            if both {
                find_in(rest, both, member, found);
            }
        }
        ([step, rest @ ..], schema) if &*step.name == SCHEMAS => {
            visit(schema, &mut |value| {
                find_in(rest, both, FoundMember { value, ..member }, found);
            });
        }
        ([step, rest @ ..], Value::Array(elements)) => {
            let element = step
                .name
                .parse()
                .ok()
                .and_then(|at: usize| elements.get(at));
            if let Some(value) = element {
                find_in(rest, both, FoundMember { value, holder }, found);
            }
        }
        ([step, rest @ ..], object) => {
            if let Some(value) = step.find(both, |name| object.get(name)) {
                find_in(rest, both, FoundMember { value, holder }, found);
            }
        }
    }
}

impl Step {
    fn find<'b>(
        &self,
        both: bool,
        member: impl Fn(&str) -> Option<&'b Value>,
    ) -> Option<&'b Value> {
        member(&self.name).or_else(|| member(self.snake.as_deref().filter(|_| both)?))
    }
}

fn snake(name: &str) -> Option<Box<str>> {
    if !name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return None;
    }
    let mut snake = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    Some(snake.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(path: &str, body: &Value) -> Vec<Value> {
        let members = MemberPath::new(path).find_below(false, body);
        members.iter().map(|member| member.value.clone()).collect()
    }

    #[test]
    fn a_number_is_an_element_and_two_asterisks_are_schemas() {
        let body = json!({"stop": ["a", "b"], "0": 1, "schema": {
            "format": "a",
            "properties": {"format": {"format": "b", "items": {"anyOf": [{"format": "c"}, true]}}},
            "$defs": {"x": {"format": 1}},
            "const": {"format": "data"},
        }});
        assert_eq!(found("/stop/1", &body), [json!("b")]);
        assert_eq!(found("/0", &body), [json!(1)]);
        assert!(found("/stop/2", &body).is_empty());
        let formats = found("/schema/**/format", &body);
        assert_eq!(formats, [json!("a"), json!("b"), json!("c"), json!(1)]);
        assert_eq!(found("/schema/**", &body).len(), 5);
        assert!(found("/stop/**", &body).is_empty());
    }

    #[test]
    fn the_members_of_a_path_are_known_by_their_pointers() {
        let is_at = |path: &str, pointer: &str| {
            let tokens: Vec<String> = Pointer::parse(pointer).tokens().collect();
            MemberPath::new(path).is_at(&tokens)
        };
        assert!(is_at("/schema/**/format", "/schema/format"));
        assert!(is_at(
            "/schema/**/format",
            "/schema/properties/a/items/format"
        ));
        assert!(!is_at("/schema/**/format", "/schema/properties/a/type"));
        assert!(is_at("/messages/*/images/1", "/messages/3/images/1"));
        assert!(!is_at("/messages/*/images/1", "/messages/3/images/0"));
    }
}
