//! How much a template may nest: counted on its tokens, before anything recurses over it.
//!
//! The engine's parser limits brackets and blocks. Chains are not limited there, and every link is a level of the tree
//! that compiling and checking walk: `a ~ b ~ c …`, `x | f | f …`, `x.a.b …`, `{% elif %}` after `{% elif %}`.

use std::ops::Range;

use minijinja::machinery::{self, Token};
use minijinja::syntax::SyntaxConfig;

/// Links of chains in one tag, and `{% elif %}` in one template. With this many, a stack of 2 MiB suffices.
const MAX_LINKS: usize = 250;

/// The place in a template where it gets too deep, if it does.
pub(super) fn too_deep(source: &str) -> Option<Range<usize>> {
    let (mut links, mut branches) = (0, 0);
    let mut before = None;
    for token in machinery::tokenize(source, false, SyntaxConfig::default()) {
        let Ok((token, span)) = token else { return None };
        match token {
            Token::VariableStart | Token::BlockStart => links = 0,
            Token::Ident("elif") if matches!(before, Some(Token::BlockStart)) => branches += 1,
            _ if is_link(&token, before.as_ref()) => links += 1,
            _ => {}
        }
        if links > MAX_LINKS || branches > MAX_LINKS {
            return Some(span.start_offset as usize..span.end_offset as usize);
        }
        before = Some(token);
    }
    None
}

/// Whether a token makes the tree of its expression one level deeper.
fn is_link(token: &Token<'_>, before: Option<&Token<'_>>) -> bool {
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
        // An index or a call, not a list or a parenthesis.
        Token::BracketOpen | Token::ParenOpen => {
            matches!(before, Some(Token::Ident(_) | Token::BracketClose | Token::ParenClose | Token::BraceClose))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_are_limited_and_lists_are_not() {
        let chain = |link: &str, count: usize| format!("{{{{ a{} }}}}", link.repeat(count));
        for link in [" + a", " ~ a", " | f", ".a", "[0]", "()", " and a", " if 1 else a", " is x"] {
            assert_eq!(too_deep(&chain(link, 200)), None, "{link}");
            assert!(too_deep(&chain(link, 300)).is_some(), "{link}");
        }
        assert!(too_deep(&format!("{{{{ {}1 }}}}", "not ".repeat(300))).is_some());
        assert!(too_deep(&format!("{{% if a %}}{}{{% endif %}}", "{% elif a %}".repeat(300))).is_some());
        assert_eq!(too_deep(&format!("{{{{ [{}] }}}}", "{'a': 1}, ".repeat(5000))), None);
        assert_eq!(too_deep(&"{{ a ~ b }}{% if a %}{% endif %}".repeat(5000)), None);
    }
}
