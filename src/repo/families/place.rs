//! Body members, identified by JSON pointers.

use serde_json::Value;

use crate::json::Pointer;

/// One or more members of a body.
#[derive(Debug, Clone, PartialEq)]
pub struct MemberPath {
    /// The JSON pointer, in which `*` stands for each element of a list.
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
        let mut steps = self.steps.iter().zip(tokens);
        self.steps.len() == tokens.len()
            && steps.all(|(step, token)| match &*step.name {
                "*" => token.bytes().all(|byte| byte.is_ascii_digit()),
                name => token == name || step.snake.as_deref() == Some(token),
            })
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

    /// Returns the name in dotted form, such as `reasoning.effort`.
    pub fn name(&self) -> String {
        let names: Vec<&str> = self
            .steps
            .iter()
            .map(|step| &*step.name)
            .filter(|name| *name != "*")
            .collect();
        names.join(".")
    }
}

/// Adds the values that the steps point to; `*` stands for each element of a list. A value that is
/// not a list is treated as a list with one element, as in servers that read protocol buffers.
fn find_in<'b>(
    steps: &[Step],
    both: bool,
    member: FoundMember<'b>,
    found: &mut Vec<FoundMember<'b>>,
) {
    let holder = Some(member.value);
    match (steps, member.value) {
        ([], _) => found.push(member),
        ([any, rest @ ..], Value::Array(elements)) if &*any.name == "*" => {
            for value in elements {
                find_in(rest, both, FoundMember { value, holder }, found);
            }
        }
        ([any, rest @ ..], _) if &*any.name == "*" => {
            if both {
                find_in(rest, both, member, found);
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
