//! Paths of values in a template's data.

use std::sync::Arc;

use minijinja::Value;

use crate::json::Pointer;

/// The path of a value in the data. Unlike a [`Pointer`], it shares the path of its object or list,
/// since a render reads many members of one object.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct DataPath(Option<Arc<Link>>);

#[derive(Debug, PartialEq)]
struct Link {
    /// The path of the object or list that contains the value.
    within: DataPath,
    token: Token,
}

#[derive(Debug, PartialEq)]
enum Token {
    /// A variable other than `ctx`.
    Variable(Value),
    /// The name of a member, as a value, which stores short strings without allocating.
    Name(Value),
    Index(usize),
}

impl DataPath {
    /// Returns the path of the whole data.
    pub(super) fn root() -> DataPath {
        DataPath(None)
    }

    /// Returns the path of a variable that is passed to a template: `ctx` is the whole data.
    pub(super) fn of_variable(name: &str) -> DataPath {
        match name {
            "ctx" => DataPath::root(),
            name => DataPath::root().with(Token::Variable(Value::from(name))),
        }
    }

    /// Returns the name of the variable whose value is at this path, unless it is `ctx`.
    pub(super) fn variable(&self) -> Option<&str> {
        match &self.0.as_deref()?.token {
            Token::Variable(name) => name.as_str(),
            Token::Name(_) | Token::Index(_) => None,
        }
    }

    /// Returns the path of a member in the object at this path.
    pub(super) fn member(&self, name: &str) -> DataPath {
        self.with(Token::Name(Value::from(name)))
    }

    /// Returns the path of an element in the list at this path.
    pub(super) fn element(&self, index: usize) -> DataPath {
        self.with(Token::Index(index))
    }

    /// Returns `true` if this is the path of the data's member `member`.
    pub(super) fn is(&self, member: &str) -> bool {
        self.0.as_deref().is_some_and(|Link { within, token }| {
            within.0.is_none()
                && matches!(token, Token::Name(name) if name.as_str() == Some(member))
        })
    }

    fn with(&self, token: Token) -> DataPath {
        let within = self.clone();
        DataPath(Some(Arc::new(Link { within, token })))
    }

    /// Returns the path as a JSON pointer.
    pub(super) fn pointer(&self) -> Pointer {
        match self.0.as_deref() {
            None => Pointer::root(),
            Some(Link { within, token }) => match token {
                Token::Variable(name) | Token::Name(name) => {
                    within.pointer().member(name.as_str().unwrap_or_default())
                }
                Token::Index(index) => within.pointer().element(*index),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_pointer() {
        let path = DataPath::root().member("a/b").element(3).member("c");
        assert_eq!(path.pointer().as_str(), "/a~1b/3/c");
        assert_eq!(DataPath::of_variable("ctx"), DataPath::root());
        let variable = DataPath::of_variable("a");
        assert_eq!(
            (variable.variable(), variable.pointer().as_str()),
            (Some("a"), "/a")
        );
        assert!(!variable.is("a") && variable.member("b").variable().is_none());
        assert!(DataPath::root().member("a").is("a") && !path.is("c"));
    }
}
