//! Comparisons of a value with a word that it never equals, such as `message.role == "asistant"`.

use std::ops::Range;

use minijinja::machinery::ast::{BinOp, BinOpKind, CallArg, Expr};

use super::{Shape, Walker};
use crate::conversation::words_of;
use crate::diag::nearest;
use crate::render::parts::{self, literal_name, range};

/// A comparison with a word that the member of an object never equals.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) struct NeverEqual {
    /// The location of the word in the template.
    pub(in super::super) range: Range<usize>,
    /// The object, as named in `conversation::TEMPLATE_DATA`.
    pub(in super::super) object: &'static str,
    pub(in super::super) member: &'static str,
    pub(in super::super) word: String,
    /// `true` if the object is identified only by its usual name.
    pub(in super::super) is_guess: bool,
}

/// The tests that compare with one word, and those that compare with a list.
const EQUAL: [&str; 5] = ["eq", "equalto", "==", "ne", "!="];

impl<'t> Walker<'t> {
    /// Checks the words that a comparison contains, and the name of a member in `"name" in object`.
    pub(super) fn compared(&mut self, it: &BinOp<'t>) {
        match it.op {
            BinOpKind::Eq | BinOpKind::Ne => {
                self.pair(&it.left, &it.right);
                self.pair(&it.right, &it.left);
            }
            BinOpKind::In => {
                self.pair(&it.left, &it.right);
                let is_object = self.shape(&it.right).is_some_and(|shape| !shape.is_list);
                if let Some(name) = literal_name(&it.left).filter(|_| is_object) {
                    self.asked(&it.right, &name, range(it.left.span()));
                }
            }
            _ => {}
        }
    }

    /// Checks `filter_by_type(list, word)` and `filter_skip_role(list, word)`.
    pub(super) fn selected(&mut self, function: &str, arguments: &[CallArg<'t>]) {
        let [CallArg::Pos(list), CallArg::Pos(word)] = arguments else {
            return;
        };
        let (object, member) = match function {
            "filter_by_type" => ("block", "type"),
            _ => ("message", "role"),
        };
        let usual = Shape {
            object,
            is_list: false,
            is_guess: true,
        };
        let shape = self.shape(list).and_then(Shape::element);
        let shape = shape.filter(|shape| shape.object == object);
        self.words(shape.unwrap_or(usual), member, word);
    }

    /// Checks `selectattr(member, test, word)`.
    pub(super) fn selected_by(&mut self, list: &Expr<'t>, arguments: &[CallArg<'t>]) {
        let [CallArg::Pos(member), CallArg::Pos(test), CallArg::Pos(word)] = arguments else {
            return;
        };
        let is_comparison =
            literal_name(test).is_some_and(|test| test == "in" || EQUAL.contains(&test.as_str()));
        let shape = self.shape(list).and_then(Shape::element);
        if let Some(shape) = shape.filter(|_| is_comparison)
            && let Some(member) = literal_name(member)
        {
            self.words(shape, &member, word);
        }
    }

    /// Checks a comparison of a member with words.
    fn pair(&mut self, value: &Expr<'t>, words: &Expr<'t>) {
        let (object, member) = match value {
            Expr::GetAttr(it) => (&it.expr, it.name.to_owned()),
            Expr::GetItem(it) => match literal_name(&it.subscript_expr) {
                Some(name) => (&it.expr, name),
                None => return,
            },
            _ => return,
        };
        if let Some(shape) = self.shape(object).filter(|shape| !shape.is_list) {
            self.words(shape, &member, words);
        }
    }

    /// Checks a word, or each word of a list.
    fn words(&mut self, shape: Shape, member: &str, words: &Expr<'t>) {
        let Some((member, known)) = words_of(shape.object, member) else {
            return;
        };
        if !matches!(words, Expr::Const(_)) {
            parts::visit(words, |word| self.word(shape, member, known, word));
        }
        self.word(shape, member, known, words);
    }

    fn word(&mut self, shape: Shape, member: &'static str, known: &[&str], word: &Expr<'t>) {
        let Some(text) = literal_name(word) else {
            return;
        };
        let is_slip = !shape.is_guess || !nearest(&text, known.iter().copied()).is_empty();
        if !known.contains(&text.as_str()) && is_slip {
            self.never_equal.push(NeverEqual {
                range: range(word.span()),
                object: shape.object,
                member,
                word: text,
                is_guess: shape.is_guess,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use minijinja::machinery;
    use minijinja::syntax::SyntaxConfig;

    fn found(text: &str) -> Vec<String> {
        let tree = machinery::parse(text, "", SyntaxConfig::default()).expect("it parses");
        let found = super::super::find(&tree).never_equal.into_iter();
        found
            .map(|it| {
                let mark = if it.is_guess { "?" } else { "" };
                format!("{}.{} {}{mark}", it.object, it.member, &text[it.range])
            })
            .collect()
    }

    #[test]
    fn words_are_compared_with_those_that_exist() {
        assert_eq!(
            found("{% for m in ctx.history if m.role == 'human' %}{% endfor %}"),
            ["message.role 'human'"]
        );
        assert_eq!(
            found("{% if \"asistant\" == message.role %}{% endif %}"),
            ["message.role \"asistant\"?"]
        );
        assert_eq!(
            found("{% if block.type in ['image', 'documnt'] %}{% endif %}"),
            ["block.type 'documnt'?"]
        );
        assert_eq!(
            found("{{ filter_by_type(message.content_blocks, 'tool_user') }}"),
            ["block.type 'tool_user'?"]
        );
        assert_eq!(
            found("{{ filter_by_type(ctx.history[0].content_blocks, 'video') }}"),
            ["block.type 'video'"]
        );
        assert_eq!(
            found("{{ ctx.history | rejectattr('role', 'eq', 'sytem') | list }}"),
            ["message.role 'sytem'"]
        );
        assert_eq!(
            found("{{ document.source == 'base46' }}"),
            ["block.source 'base46'?"]
        );
    }

    #[test]
    fn words_that_may_be_right_are_silent() {
        for silent in [
            "{{ message.role == 'user' and message['role'] != 'system' }}",
            "{{ filter_by_type(blocks, 'video') }}{{ message.role == 'developer' }}",
            "{{ block.name == 'tool_user' }}{{ kind == 'tool_user' }}",
            "{% set message = {} %}{{ message.role == 'asistant' }}",
        ] {
            assert_eq!(found(silent), [""; 0], "{silent}");
        }
    }
}
