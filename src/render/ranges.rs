//! Where the expressions of a template stand.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::ops::Range;

use minijinja::machinery::ast::{self, Expr, UnaryOpKind};
use minijinja::machinery::{self, Token};
use minijinja::syntax::SyntaxConfig;

/// A token that tells where operands begin and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Open,
    Close,
    BracketOpen,
    BracketClose,
    BraceOpen,
    BraceClose,
    Colon,
    BlockEnd,
    Other,
}

fn tokens(text: &str) -> Vec<(Mark, Range<usize>)> {
    let tokens = machinery::tokenize(text, false, SyntaxConfig::default());
    let marks = tokens.map_while(Result::ok).map(|(token, span)| {
        let mark = match token {
            Token::ParenOpen => Mark::Open,
            Token::ParenClose => Mark::Close,
            Token::BracketOpen => Mark::BracketOpen,
            Token::BracketClose => Mark::BracketClose,
            Token::BraceOpen => Mark::BraceOpen,
            Token::BraceClose => Mark::BraceClose,
            Token::Colon => Mark::Colon,
            Token::BlockEnd => Mark::BlockEnd,
            _ => Mark::Other,
        };
        (mark, span.start_offset as usize..span.end_offset as usize)
    });
    marks.collect()
}

/// The ranges of a template's expressions.
pub(super) struct Ranges<'t> {
    text: &'t str,
    /// The tokens, once a range asks for them: most templates need none.
    tokens: OnceCell<Vec<(Mark, Range<usize>)>>,
    /// Ranges of expressions, by their address: each is needed for every operator around it.
    known: RefCell<HashMap<usize, Range<usize>>>,
}

/// The range of an expression as the engine has it.
pub(super) fn span(expression: &Expr<'_>) -> Range<usize> {
    let span = expression.span();
    span.start_offset as usize..span.end_offset as usize
}

/// Where the tag starts that makes what follows literal, if the text ends with one.
pub(super) fn raw_tag(before: &str) -> Option<usize> {
    let at = before.trim_end().strip_suffix("%}")?.rfind("{%")?;
    let inner = before[at + 2..].trim_end().strip_suffix("%}")?;
    (inner.trim_matches(['-', '+', ' ', '\n', '\t', '\r']) == "raw").then_some(at)
}

impl<'t> Ranges<'t> {
    pub(super) fn new(text: &'t str) -> Ranges<'t> {
        Ranges { text, tokens: OnceCell::new(), known: RefCell::default() }
    }

    pub(super) fn tokens(&self) -> &[(Mark, Range<usize>)] {
        self.tokens.get_or_init(|| tokens(self.text))
    }
}

/// Which side of its operator an operand stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

/// The engine's own ranges begin too late for members of members, and too early for comparisons.
impl Ranges<'_> {
    /// The range of an expression, without parentheses around it.
    pub(super) fn range(&self, expression: &Expr<'_>) -> Range<usize> {
        let address = std::ptr::from_ref(expression) as usize;
        let known = self.known.borrow().get(&address).cloned();
        known.unwrap_or_else(|| {
            let range = self.measured(expression);
            self.known.borrow_mut().insert(address, range.clone());
            range
        })
    }

    fn measured(&self, expression: &Expr<'_>) -> Range<usize> {
        let own = span(expression);
        match expression {
            Expr::Var(_) | Expr::Const(_) | Expr::List(_) | Expr::Tuple(_) | Expr::Map(_) => own,
            Expr::UnaryOp(it) => self.unary(it, own),
            Expr::BinOp(it) => self.operand(&it.left, Side::Left).start..self.operand(&it.right, Side::Right).end,
            Expr::Compare(it) => {
                let last = it.ops.last().map(|last| self.operand(&last.expr, Side::Right).end);
                self.operand(&it.expr, Side::Left).start..last.unwrap_or(own.end)
            }
            Expr::IfExpr(it) => {
                let last = it.false_expr.as_ref().unwrap_or(&it.test_expr);
                self.operand(&it.true_expr, Side::Left).start..self.operand(last, Side::Right).end
            }
            Expr::Slice(it) => self.operand(&it.expr, Side::Left).start..own.end,
            Expr::GetAttr(it) => self.operand(&it.expr, Side::Left).start..own.end,
            Expr::GetItem(it) => self.operand(&it.expr, Side::Left).start..own.end,
            Expr::Call(it) => self.operand(&it.expr, Side::Left).start..own.end,
            Expr::Test(it) => self.operand(&it.expr, Side::Left).start..own.end,
            Expr::Filter(it) => {
                let start = it.expr.as_ref().map_or(own.start, |inner| self.operand(inner, Side::Left).start);
                start..own.end
            }
        }
    }

    /// `not x` and `-x`; `x not in y` and `x is not y` are the same to the engine.
    fn unary(&self, it: &ast::UnaryOp<'_>, own: Range<usize>) -> Range<usize> {
        let inner = self.operand(&it.expr, Side::Right);
        let starts_with = |text: &str| self.text[own.start..].starts_with(text);
        let is_prefix = match it.op {
            UnaryOpKind::Not => starts_with("not") && own.start < inner.start,
            UnaryOpKind::Neg => true,
        };
        let start = if is_prefix { own.start } else { self.range(&it.expr).start };
        start..inner.end.max(own.end)
    }

    /// The range of an operand, with its parentheses.
    pub(super) fn operand(&self, expression: &Expr<'_>, side: Side) -> Range<usize> {
        let mut range = self.range(expression);
        let mut before = self.tokens().partition_point(|(_, token)| token.start < range.start);
        let mut after = self.tokens().partition_point(|(_, token)| token.start < range.end);
        loop {
            let open = before.checked_sub(1).map(|index| &self.tokens()[index]).filter(|(mark, _)| *mark == Mark::Open);
            let close = self.tokens().get(after).filter(|(mark, _)| *mark == Mark::Close);
            let is_enclosed = match side {
                Side::Left => close.is_some(),
                Side::Right => open.is_some(),
            };
            let (Some((_, open)), Some((_, close)), true) = (open, close, is_enclosed) else { return range };
            range = open.start..close.end;
            before -= 1;
            after += 1;
        }
    }
}
