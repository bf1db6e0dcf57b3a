//! Visits the parts of expressions, for all code that examines a template's text, and returns the
//! range or the literal text of a part.

use std::ops::Range;

use minijinja::machinery::Span;
use minijinja::machinery::ast::{CallArg, Expr};

/// Visits the direct parts of an expression, in order.
pub(super) fn visit<'t>(expression: &Expr<'t>, mut part: impl FnMut(&Expr<'t>)) {
    match expression {
        Expr::Var(_) | Expr::Const(_) => {}
        Expr::Slice(it) => {
            part(&it.expr);
            [&it.start, &it.stop, &it.step]
                .into_iter()
                .flatten()
                .for_each(part);
        }
        Expr::UnaryOp(it) => part(&it.expr),
        Expr::BinOp(it) => [&it.left, &it.right].into_iter().for_each(part),
        Expr::Compare(it) => {
            part(&it.expr);
            it.ops.iter().for_each(|operand| part(&operand.expr));
        }
        Expr::IfExpr(it) => [&it.test_expr, &it.true_expr]
            .into_iter()
            .chain(&it.false_expr)
            .for_each(part),
        Expr::Filter(it) => {
            it.expr.iter().for_each(&mut part);
            visit_arguments(&it.args, part);
        }
        Expr::Test(it) => {
            part(&it.expr);
            visit_arguments(&it.args, part);
        }
        Expr::GetAttr(it) => part(&it.expr),
        Expr::GetItem(it) => [&it.expr, &it.subscript_expr].into_iter().for_each(part),
        Expr::Call(it) => {
            part(&it.expr);
            visit_arguments(&it.args, part);
        }
        Expr::List(it) => it.items.iter().for_each(part),
        Expr::Tuple(it) => it.items.iter().for_each(part),
        Expr::Map(it) => it.keys.iter().chain(&it.values).for_each(part),
    }
}

/// Visits the arguments of a call.
pub(super) fn visit_arguments<'t>(arguments: &[CallArg<'t>], part: impl FnMut(&Expr<'t>)) {
    let values = arguments.iter().map(|argument| {
        let (CallArg::Pos(it)
        | CallArg::Kwarg(_, it)
        | CallArg::PosSplat(it)
        | CallArg::KwargSplat(it)) = argument;
        it
    });
    values.for_each(part);
}

/// Returns the range of bytes in a template's text that a span of the engine covers.
pub(super) fn range(span: Span) -> Range<usize> {
    span.start_offset as usize..span.end_offset as usize
}

/// Returns the text of an expression, if it is a literal.
pub(super) fn literal_name(expression: &Expr<'_>) -> Option<String> {
    match expression {
        Expr::Const(it) => it.value.as_str().map(str::to_owned),
        _ => None,
    }
}

/// Returns the name or names of an include, if they are literals.
pub(super) fn literal_names(expression: &Expr<'_>) -> Option<Vec<String>> {
    let items = match expression {
        Expr::List(it) => &it.items,
        Expr::Tuple(it) => &it.items,
        single => return literal_name(single).map(|name| vec![name]),
    };
    items.iter().map(literal_name).collect()
}
