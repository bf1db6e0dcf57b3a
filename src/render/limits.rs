//! Limits the nesting of templates. A template's tokens are counted before any code recurses over
//! the template.
//!
//! The engine's parser limits brackets and blocks, but not chains, in which every link adds a level
//! to the tree that is compiled and checked: `a ~ b ~ c …`, `x | f | f …`, `x.a.b …`, `{% elif %}`
//! after `{% elif %}`.

use std::ops::Range;

use minijinja::machinery::{self, Token};
use minijinja::syntax::SyntaxConfig;

/// The maximum number of chain links in one tag, and of `{% elif %}` in one template. A stack of 2
/// MiB suffices for this many.
const MAX_LINKS: usize = 250;

/// The maximum length of a template, in bytes.
pub(super) const MAX_TEXT: usize = 4 * 1024 * 1024;
/// The maximum number of tags in one template.
const MAX_TAGS: usize = 10_000;
/// The maximum number of `{% block %}` tags in one template: each inclusion examines all of them.
const MAX_BLOCKS: usize = 64;
/// The maximum number of names that one template gives to namespace members: testing whether a
/// namespace is empty examines all of them.
pub(super) const MAX_MEMBERS: usize = 256;

/// The maximum length of a name, in bytes: each step that uses a name compares or copies it.
const MAX_NAME: usize = 256;
/// The maximum number of parameters per macro: each call, and each read of the parameter list,
/// takes one step for all of them.
const MAX_PARAMETERS: usize = 50;

/// Counters that are updated with each token.
#[derive(Debug, Default)]
pub(super) struct Depth {
    links: usize,
    branches: usize,
    tags: usize,
    blocks: usize,
    /// The number of parameters in the current tag; `None` if the tag is not a macro's.
    parameters: Option<usize>,
    /// The location where a limit is exceeded, if any, and a phrase for the excess.
    pub(super) too_long: Option<(Range<usize>, String)>,
    before: Before,
    /// The location where the template nests too deeply, if any.
    pub(super) exceeded: Option<Range<usize>>,
}

/// The previous token.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Before {
    /// `{%`.
    BlockStart,
    /// An operand, which an index or a call can follow.
    Operand,
    #[default]
    Other,
}

/// Returns the location where a template nests too deeply, if any.
pub(super) fn too_deep(source: &str) -> Option<Range<usize>> {
    let mut depth = Depth::default();
    for token in machinery::tokenize(source, false, SyntaxConfig::default()) {
        let Ok((token, span)) = token else { break };
        depth.count(&token, span.start_offset as usize..span.end_offset as usize);
    }
    depth.exceeded
}

impl Depth {
    /// Counts the next token.
    pub(super) fn count(&mut self, token: &Token<'_>, range: Range<usize>) {
        match token {
            Token::VariableStart | Token::BlockStart => {
                self.links = 0;
                self.tags += 1;
                self.parameters = None;
            }
            Token::Ident("macro" | "call") if self.before == Before::BlockStart => {
                self.parameters = Some(0);
            }
            Token::Comma => self.parameters = self.parameters.map(|count| count + 1),
            Token::Ident("block") if self.before == Before::BlockStart => self.blocks += 1,
            Token::Ident("elif") if self.before == Before::BlockStart => self.branches += 1,
            _ if is_link(token, self.before) => self.links += 1,
            _ => {}
        }
        let is_long = matches!(token, Token::Ident(name) if name.len() > MAX_NAME);
        let limits = [
            (self.tags > MAX_TAGS, "tags", MAX_TAGS),
            (self.blocks > MAX_BLOCKS, "blocks", MAX_BLOCKS),
            (
                self.parameters > Some(MAX_PARAMETERS),
                "parameters",
                MAX_PARAMETERS,
            ),
            (is_long, "bytes in a name", MAX_NAME),
        ];
        if let (None, Some((_, what, most))) =
            (&self.too_long, limits.iter().find(|(is_over, ..)| *is_over))
        {
            self.too_long = Some((range.clone(), format!("more than {most} {what}")));
        }
        if self.exceeded.is_none() && (self.links > MAX_LINKS || self.branches > MAX_LINKS) {
            self.exceeded = Some(range);
        }
        self.before = match token {
            Token::BlockStart => Before::BlockStart,
            Token::Ident(_) | Token::BracketClose | Token::ParenClose | Token::BraceClose => {
                Before::Operand
            }
            _ => Before::Other,
        };
    }
}

/// Returns `true` if a token adds a level to the tree of its expression.
fn is_link(token: &Token<'_>, before: Before) -> bool {
    match token {
        Token::Plus
        | Token::Minus
        | Token::Mul
        | Token::Div
        | Token::FloorDiv
        | Token::Pow
        | Token::Mod
        | Token::Dot
        | Token::Tilde
        | Token::Pipe
        | Token::Eq
        | Token::Ne
        | Token::Gt
        | Token::Gte
        | Token::Lt
        | Token::Lte
        | Token::Ident("not" | "and" | "or" | "if" | "in" | "is") => true,
        // An index or a call, rather than a list or a parenthesis.
        Token::BracketOpen | Token::ParenOpen => before == Before::Operand,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_parameters_are_limited() {
        let too_long = |source: &str| {
            let mut depth = Depth::default();
            for token in machinery::tokenize(source, false, SyntaxConfig::default()) {
                let (token, span) = token.expect("tokens");
                depth.count(&token, span.start_offset as usize..span.end_offset as usize);
            }
            depth.too_long.map(|(_, what)| what)
        };
        assert_eq!(too_long(&format!("{{{{ {} }}}}", "a".repeat(256))), None);
        assert_eq!(
            too_long(&format!("{{{{ x.{} }}}}", "a".repeat(257))).as_deref(),
            Some("more than 256 bytes in a name")
        );
        let declared =
            |count: usize| format!("{{% macro f({}) %}}{{% endmacro %}}", "a,".repeat(count));
        assert_eq!(too_long(&declared(40)), None);
        assert_eq!(
            too_long(&declared(60)).as_deref(),
            Some("more than 50 parameters")
        );
    }

    #[test]
    fn chains_are_limited_and_lists_are_not() {
        let chain = |link: &str, count: usize| format!("{{{{ a{} }}}}", link.repeat(count));
        for link in [
            " + a",
            " ~ a",
            " | f",
            ".a",
            "[0]",
            "()",
            " and a",
            " if 1 else a",
            " is x",
        ] {
            assert_eq!(too_deep(&chain(link, 200)), None, "{link}");
            assert!(too_deep(&chain(link, 300)).is_some(), "{link}");
        }
        assert!(too_deep(&format!("{{{{ {}1 }}}}", "not ".repeat(300))).is_some());
        assert!(
            too_deep(&format!(
                "{{% if a %}}{}{{% endif %}}",
                "{% elif a %}".repeat(300)
            ))
            .is_some()
        );
        assert_eq!(
            too_deep(&format!("{{{{ [{}] }}}}", "{'a': 1}, ".repeat(5000))),
            None
        );
        assert_eq!(
            too_deep(&"{{ a ~ b }}{% if a %}{% endif %}".repeat(3000)),
            None
        );
    }
}
