//! Which operations of a template need a guard: those whose work or result depends on the size of a value that is not
//! known to be small.
//!
//! Ordinary templates need few: `message.role == "user"` compares with a short literal, and `history[0]` reads one element.

use minijinja::machinery::ast::{self, BinOpKind, CallArg, CallType, Expr, Stmt, UnaryOpKind};
use minijinja::value::ValueKind;

use super::guards::Edits;
use super::operators::{BREADTH, FACTOR, LOOP, NAMESPACE, OPTIONAL, RESULT, SLICE, TEXT, VARIABLE, WHOLE};
use super::ranges::{Mark, Ranges, Side, raw_tag, span};
use super::recursion::{HIDDEN, Recursion};

/// Literals up to this size are small, in bytes: comparing with them is a matter of one step.
const SMALL_TEXT: usize = 1_024;
/// Literal lists up to this length are small.
const SMALL_LIST: usize = 16;
/// An index up to which reading a text by index is a matter of one step.
const SMALL_INDEX: u64 = 64;
/// Literal text that is longer is charged for; what is not is paid by its step.
pub(super) const SHORT_TEXT: usize = 64;

/// inja's function that gives another value where one is missing, however much of the path to it is.
const DEFAULT: &str = "default";
/// Filters whose result is a text.
const TEXT_FILTERS: [&str; 10] =
    ["capitalize", "indent", "join", "lower", "replace", "string", "title", "tojson", "trim", "upper"];
/// Filters whose result is a number.
const NUMBER_FILTERS: [&str; 6] = ["abs", "count", "float", "int", "length", "round"];
/// Members of `loop` that are numbers or booleans.
const LOOP_COUNTERS: [&str; 9] =
    ["depth", "depth0", "first", "index", "index0", "last", "length", "revindex", "revindex0"];

/// The guards of a template.
pub(super) fn edits(text: &str, tree: &Stmt<'_>, recursion: &Recursion) -> Edits {
    let mut instrument = Instrument { text, ranges: Ranges::new(text), edits: Edits::default() };
    instrument.statement(tree);
    instrument.recursion(recursion);
    instrument.edits
}

struct Instrument<'t> {
    text: &'t str,
    ranges: Ranges<'t>,
    edits: Edits,
}

/// Statements.
impl Instrument<'_> {
    fn statements(&mut self, statements: &[Stmt<'_>]) {
        statements.iter().for_each(|statement| self.statement(statement));
    }

    fn statement(&mut self, statement: &Stmt<'_>) {
        match statement {
            Stmt::Template(it) => self.statements(&it.children),
            Stmt::EmitExpr(it) => self.expression(&it.expr),
            Stmt::EmitRaw(it) => self.literal(it.raw),
            Stmt::ForLoop(it) => {
                self.expression(&it.iter);
                it.filter_expr.iter().for_each(|filter| self.expression(filter));
                self.statements(&it.body);
                self.statements(&it.else_body);
            }
            Stmt::IfCond(it) => {
                self.expression(&it.expr);
                self.statements(&it.true_body);
                self.statements(&it.false_body);
            }
            Stmt::WithBlock(_) | Stmt::Set(_) | Stmt::SetBlock(_) => self.assignment(statement),
            Stmt::AutoEscape(it) => {
                self.expression(&it.enabled);
                self.statements(&it.body);
            }
            Stmt::FilterBlock(it) => {
                self.expression(&it.filter);
                self.statements(&it.body);
            }
            Stmt::Block(it) => self.statements(&it.body),
            Stmt::Import(it) => self.imported(&it.name),
            Stmt::FromImport(_) | Stmt::Extends(_) | Stmt::Include(_) => {}
            Stmt::Macro(it) => self.macro_body(it),
            Stmt::CallBlock(it) => {
                self.call(&it.call);
                self.macro_body(&it.macro_decl);
            }
            Stmt::Do(it) => self.call(&it.call),
        }
    }

    /// A statement that keeps values under names.
    fn assignment(&mut self, statement: &Stmt<'_>) {
        match statement {
            Stmt::WithBlock(it) => {
                for (_, value) in &it.assignments {
                    self.expression(value);
                    self.kept(value);
                }
                self.statements(&it.body);
            }
            Stmt::Set(it) => {
                self.expression(&it.expr);
                match targets_namespace(&it.target) {
                    true => self.kept_in_namespace(&it.expr, &it.target),
                    false => self.kept(&it.expr),
                }
            }
            Stmt::SetBlock(it) => {
                if let Some(filter) = &it.filter {
                    self.expression(filter);
                    if targets_namespace(&it.target) {
                        self.kept_by_filters(filter, &it.target);
                    }
                }
                self.statements(&it.body);
            }
            _ => {}
        }
    }

    fn macro_body(&mut self, it: &ast::Macro<'_>) {
        for default in &it.defaults {
            self.expression(default);
            self.kept(default);
        }
        self.statements(&it.body);
    }

    /// Literal text: charged where it is long.
    fn literal(&mut self, raw: &str) {
        if raw.len() <= SHORT_TEXT {
            return;
        }
        let at = raw.as_ptr() as usize - self.text.as_ptr() as usize;
        let len = raw.len();
        match raw_tag(&self.text[..at]) {
            None => self.edits.put(at, format!("{{%do {TEXT}({len})%}}")),
            // Inside of the tag nothing is code. What trims the text before the tag must go on doing so.
            Some(tag) => {
                let trim = self.text[tag..].strip_prefix("{%-").map_or("", |_| "-");
                self.edits.put(tag, format!("{{%{trim}do {TEXT}({len})%}}"));
            }
        }
    }

    /// A module holds the variables of a partial, among them modules: its depth is looked at behind the tag.
    fn imported(&mut self, name: &Expr<'_>) {
        let Expr::Var(var) = name else { return };
        self.behind_tag(span(name).end, &format!("do {VARIABLE}({})", var.id));
    }

    /// Loops that are called: only by guards, and nobody else gets one.
    fn recursion(&mut self, recursion: &Recursion) {
        recursion.reads.iter().for_each(|range| self.edits.wrap(range, LOOP, ""));
        recursion.calls.iter().for_each(|at| self.edits.prefix(*at, HIDDEN));
        for (head, name) in &recursion.names {
            self.behind_tag(*head, &format!("set {HIDDEN}{name}=loop"));
        }
    }

    /// Inserts a tag behind the first that ends from an offset on.
    fn behind_tag(&mut self, from: usize, statement: &str) {
        let index = self.ranges.tokens().partition_point(|(_, range)| range.start < from);
        let Some((_, tag)) = self.ranges.tokens()[index..].iter().find(|(mark, _)| *mark == Mark::BlockEnd) else {
            return;
        };
        // What trims the text behind the tag must go on doing so.
        let trim = if self.text[tag.clone()].starts_with('-') { "-" } else { "" };
        self.edits.put(tag.end, format!("{{%{statement}{trim}%}}"));
    }
}

fn targets_namespace(target: &Expr<'_>) -> bool {
    match target {
        Expr::GetAttr(_) => true,
        Expr::List(list) => list.items.iter().any(targets_namespace),
        Expr::Tuple(tuple) => tuple.items.iter().any(targets_namespace),
        _ => false,
    }
}

/// Expressions.
impl Instrument<'_> {
    fn expression(&mut self, expression: &Expr<'_>) {
        match expression {
            Expr::Var(_) | Expr::Const(_) => {}
            Expr::Slice(it) => {
                self.expression(&it.expr);
                [&it.start, &it.stop, &it.step].into_iter().flatten().for_each(|bound| self.expression(bound));
                self.slice(expression, it);
            }
            Expr::UnaryOp(it) => self.expression(&it.expr),
            Expr::BinOp(it) => self.binary(expression, it),
            Expr::Compare(it) => {
                let operands = || std::iter::once(&it.expr).chain(it.ops.iter().map(|operand| &operand.expr));
                operands().for_each(|operand| self.expression(operand));
                operands().filter(|operand| !is_small(operand)).for_each(|operand| self.guard(operand, WHOLE, ""));
            }
            Expr::IfExpr(it) => {
                self.expression(&it.test_expr);
                self.expression(&it.true_expr);
                it.false_expr.iter().for_each(|other| self.expression(other));
            }
            Expr::Filter(it) => {
                it.expr.iter().for_each(|inner| self.expression(inner));
                self.arguments(&it.args);
            }
            Expr::Test(it) => {
                self.expression(&it.expr);
                self.arguments(&it.args);
            }
            Expr::GetAttr(it) => self.expression(&it.expr),
            Expr::GetItem(it) => self.index(it),
            Expr::Call(it) => self.call(it),
            Expr::List(it) => it.items.iter().for_each(|item| self.expression(item)),
            Expr::Tuple(it) => it.items.iter().for_each(|item| self.expression(item)),
            Expr::Map(it) => {
                it.keys.iter().chain(&it.values).for_each(|item| self.expression(item));
                it.keys.iter().filter(|key| !is_small(key)).for_each(|key| self.guard(key, WHOLE, ""));
            }
        }
    }

    fn call(&mut self, call: &ast::Call<'_>) {
        match call.identify_call() {
            CallType::Method(object, _) | CallType::Object(object) => self.expression(object),
            CallType::Function(DEFAULT) => {
                if let Some(CallArg::Pos(value)) = call.args.first() {
                    self.optional(value);
                }
            }
            CallType::Function(_) | CallType::Block(_) => {}
        }
        self.arguments(&call.args);
    }

    /// A path of which each part may be missing.
    fn optional(&mut self, path: &Expr<'_>) {
        let inner = match path {
            Expr::GetAttr(it) => &it.expr,
            Expr::GetItem(it) => &it.expr,
            _ => return,
        };
        self.optional(inner);
        self.guard(inner, OPTIONAL, "");
    }

    fn arguments(&mut self, arguments: &[CallArg<'_>]) {
        for argument in arguments {
            match argument {
                CallArg::Pos(it) | CallArg::Kwarg(_, it) => self.expression(it),
                CallArg::PosSplat(it) | CallArg::KwargSplat(it) => {
                    self.expression(it);
                    self.guard(it, WHOLE, "");
                }
            }
        }
    }

    fn index(&mut self, it: &ast::GetItem<'_>) {
        self.expression(&it.expr);
        self.expression(&it.subscript_expr);
        if is_small_index(&it.subscript_expr) {
            return;
        }
        self.guard(&it.expr, BREADTH, "");
        if !is_small(&it.subscript_expr) {
            self.guard(&it.subscript_expr, WHOLE, "");
        }
    }

    fn binary(&mut self, whole: &Expr<'_>, it: &ast::BinOp<'_>) {
        match it.op {
            BinOpKind::Add => drop(self.sum(whole, it, false)),
            BinOpKind::Concat => self.joined(it),
            _ => {
                self.expression(&it.left);
                self.expression(&it.right);
            }
        }
        match it.op {
            BinOpKind::Mul if !is_number(&it.left) || !is_number(&it.right) => {
                [&it.left, &it.right].into_iter().filter(|it| !is_number(it)).for_each(|it| self.guard(it, FACTOR, ""));
                self.guard(whole, RESULT, "");
            }
            BinOpKind::Eq | BinOpKind::Ne | BinOpKind::Lt | BinOpKind::Lte | BinOpKind::Gt | BinOpKind::Gte
                if !is_small(&it.left) && !is_small(&it.right) =>
            {
                self.guard(&it.left, WHOLE, "");
                self.guard(&it.right, WHOLE, "");
            }
            BinOpKind::In => self.containment(&it.left, &it.right),
            _ => {}
        }
    }

    /// `needle in hay`.
    fn containment(&mut self, needle: &Expr<'_>, hay: &Expr<'_>) {
        let in_text = may_be_text(hay);
        match (is_small(needle), is_small(hay)) {
            // Whatever is looked for in a text becomes one.
            (false, true) if in_text => self.guard(needle, WHOLE, ""),
            (_, true) => {}
            (true, false) => self.guard(hay, BREADTH, ""),
            (false, false) => {
                self.guard(needle, WHOLE, "");
                self.guard(hay, WHOLE, "");
            }
        }
    }

    /// `a + b + …`, each sum guarded but those with a short literal, which the next one pays for. Gives how many are still
    /// to be paid for.
    fn sum(&mut self, whole: &Expr<'_>, it: &ast::BinOp<'_>, is_part: bool) -> usize {
        let mut operations = 1;
        for operand in [&it.left, &it.right] {
            match operand {
                Expr::BinOp(inner) if matches!(inner.op, BinOpKind::Add) => {
                    operations += self.sum(operand, inner, true);
                }
                operand => self.expression(operand),
            }
        }
        if is_number(&it.left) || is_number(&it.right) {
            return 0;
        }
        let has_literal =
            [&it.left, &it.right].into_iter().any(|operand| matches!(operand, Expr::Const(_)) && is_small(operand));
        if is_part && has_literal {
            return operations;
        }
        self.guard(whole, RESULT, &if operations > 1 { format!(", {operations}") } else { String::new() });
        0
    }

    /// `a ~ b ~ …`: each text may be copied once for each of the operators.
    fn joined(&mut self, it: &ast::BinOp<'_>) {
        let mut operands = Vec::new();
        flatten(it, &mut operands);
        let times = operands.len() - 1;
        for operand in operands {
            self.expression(operand);
            if !is_small(operand) {
                self.guard(operand, WHOLE, &if times > 1 { format!(", {times}") } else { String::new() });
            }
        }
    }

    /// `a[b:c:d]` becomes `__s(a,b,c,d)`.
    fn slice(&mut self, whole: &Expr<'_>, it: &ast::Slice<'_>) {
        let range = self.ranges.range(whole);
        let base = self.ranges.operand(&it.expr, Side::Left);
        let marks = self.ranges.tokens();
        let first = marks.partition_point(|(_, range)| range.start < base.end);
        let mut missing = [it.start.is_none(), it.stop.is_none(), it.step.is_none()].into_iter();
        let mut depth = 0;
        for (mark, token) in &marks[first..] {
            match mark {
                Mark::BracketOpen | Mark::Open | Mark::BraceOpen => depth += 1,
                Mark::BracketClose | Mark::Close | Mark::BraceClose => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.edits.replace(token.start, b' ');
                break;
            }
            let opens = depth == 1 && *mark == Mark::BracketOpen;
            if opens || depth == 1 && *mark == Mark::Colon {
                self.edits.replace(token.start, b',');
                if missing.next() == Some(true) {
                    self.edits.put(token.end, "none");
                }
            }
        }
        self.edits.wrap(&range, SLICE, "");
    }

    fn guard(&mut self, expression: &Expr<'_>, function: &str, arguments: &str) {
        let range = self.ranges.range(expression);
        self.edits.wrap(&range, function, arguments);
    }
}

/// The operands of a chain of `~`.
fn flatten<'e, 'a>(it: &'e ast::BinOp<'a>, operands: &mut Vec<&'e Expr<'a>>) {
    for operand in [&it.left, &it.right] {
        match operand {
            Expr::BinOp(inner) if matches!(inner.op, BinOpKind::Concat) => flatten(inner, operands),
            operand => operands.push(operand),
        }
    }
}

/// Guards around values that variables keep.
impl Instrument<'_> {
    /// Guards what could make values deeper and deeper: literals that hold values.
    fn kept(&mut self, expression: &Expr<'_>) {
        match expression {
            Expr::List(it) if !it.items.iter().all(is_flat) => self.guard(expression, VARIABLE, ""),
            Expr::Map(it) if !it.values.iter().all(is_flat) => self.guard(expression, VARIABLE, ""),
            Expr::Tuple(it) => {
                for item in it.items.iter().filter(|item| !is_flat(item)) {
                    self.guard(item, VARIABLE, "");
                }
            }
            Expr::IfExpr(it) => {
                self.kept(&it.true_expr);
                it.false_expr.iter().for_each(|other| self.kept(other));
            }
            Expr::BinOp(it)
                if matches!(it.op, BinOpKind::Add | BinOpKind::Mul | BinOpKind::ScAnd | BinOpKind::ScOr) =>
            {
                self.kept(&it.left);
                self.kept(&it.right);
            }
            Expr::Slice(it) => self.kept(&it.expr),
            Expr::Filter(it) if it.name == "items" || it.name == "map" && !takes_attribute(&it.args) => {
                self.guard(expression, VARIABLE, "");
            }
            Expr::Filter(it) if !is_flat(expression) => {
                it.expr.iter().for_each(|inner| self.kept(inner));
                self.kept_arguments(&it.args);
            }
            _ => {}
        }
    }

    fn kept_arguments(&mut self, arguments: &[CallArg<'_>]) {
        for argument in arguments {
            let (CallArg::Pos(it) | CallArg::Kwarg(_, it) | CallArg::PosSplat(it) | CallArg::KwargSplat(it)) = argument;
            self.kept(it);
        }
    }

    /// Guards all that is not known to be a text or a number.
    fn kept_in_namespace(&mut self, expression: &Expr<'_>, target: &Expr<'_>) {
        match expression {
            _ if is_flat(expression) || is_same(expression, target) => {}
            Expr::IfExpr(it) => {
                self.kept_in_namespace(&it.true_expr, target);
                it.false_expr.iter().for_each(|other| self.kept_in_namespace(other, target));
            }
            Expr::BinOp(it)
                if matches!(it.op, BinOpKind::Add | BinOpKind::Mul | BinOpKind::ScAnd | BinOpKind::ScOr) =>
            {
                self.kept_in_namespace(&it.left, target);
                self.kept_in_namespace(&it.right, target);
            }
            Expr::Tuple(it) => it.items.iter().for_each(|item| self.kept_in_namespace(item, target)),
            expression => self.guard(expression, NAMESPACE, ""),
        }
    }

    /// What the filters of a `set` block could bring in beside the text.
    fn kept_by_filters(&mut self, filters: &Expr<'_>, target: &Expr<'_>) {
        let Expr::Filter(it) = filters else { return };
        it.expr.iter().for_each(|inner| self.kept_by_filters(inner, target));
        for argument in &it.args {
            let (CallArg::Pos(it) | CallArg::Kwarg(_, it) | CallArg::PosSplat(it) | CallArg::KwargSplat(it)) = argument;
            self.kept_in_namespace(it, target);
        }
    }
}

/// Whether an expression reads what the target holds already.
fn is_same(expression: &Expr<'_>, target: &Expr<'_>) -> bool {
    match (expression, target) {
        (Expr::GetAttr(read), Expr::GetAttr(written)) if read.name == written.name => {
            matches!((&read.expr, &written.expr), (Expr::Var(a), Expr::Var(b)) if a.id == b.id)
        }
        _ => false,
    }
}

/// Whether an expression gives a number or a boolean, whatever it is made of.
fn is_number(expression: &Expr<'_>) -> bool {
    match expression {
        Expr::Const(it) => matches!(it.value.kind(), ValueKind::Number | ValueKind::Bool | ValueKind::None),
        Expr::UnaryOp(it) => matches!(it.op, UnaryOpKind::Not | UnaryOpKind::Neg),
        Expr::BinOp(it) => match it.op {
            BinOpKind::Add => is_number(&it.left) || is_number(&it.right),
            BinOpKind::Mul | BinOpKind::ScAnd | BinOpKind::ScOr => is_number(&it.left) && is_number(&it.right),
            BinOpKind::Concat => false,
            _ => true,
        },
        Expr::Compare(_) | Expr::Test(_) => true,
        Expr::IfExpr(it) => is_number(&it.true_expr) && it.false_expr.as_ref().is_some_and(is_number),
        Expr::GetAttr(it) => matches!(&it.expr, Expr::Var(var) if var.id == "loop") && LOOP_COUNTERS.contains(&it.name),
        Expr::Filter(it) => NUMBER_FILTERS.contains(&it.name) && it.args.is_empty(),
        _ => false,
    }
}

/// `map(attribute="name")`.
fn takes_attribute(arguments: &[CallArg<'_>]) -> bool {
    arguments.iter().all(|argument| matches!(argument, CallArg::Kwarg(..)))
}

/// Whether something small may be a text: a literal, or one of two.
fn may_be_text(expression: &Expr<'_>) -> bool {
    match expression {
        Expr::Const(it) => it.value.kind() == ValueKind::String,
        Expr::IfExpr(it) => may_be_text(&it.true_expr) || it.false_expr.as_ref().is_some_and(may_be_text),
        _ => false,
    }
}

/// Whether reading or comparing with what an expression gives is a matter of one step.
fn is_small(expression: &Expr<'_>) -> bool {
    match expression {
        Expr::Const(it) => it.value.as_str().is_none_or(|text| text.len() <= SMALL_TEXT),
        Expr::List(it) => it.items.len() <= SMALL_LIST && it.items.iter().all(is_small_leaf),
        Expr::Tuple(it) => it.items.len() <= SMALL_LIST && it.items.iter().all(is_small_leaf),
        Expr::Map(it) => it.keys.is_empty(),
        Expr::IfExpr(it) => is_small(&it.true_expr) && it.false_expr.as_ref().is_some_and(is_small),
        other => is_number(other),
    }
}

fn is_small_leaf(expression: &Expr<'_>) -> bool {
    matches!(expression, Expr::Const(_)) && is_small(expression)
}

/// Whether an index is a name or a small number.
fn is_small_index(expression: &Expr<'_>) -> bool {
    match expression {
        Expr::Const(it) => match it.value.as_str() {
            Some(text) => text.len() <= SMALL_TEXT,
            None => u64::try_from(it.value.clone()).is_ok_and(|index| index <= SMALL_INDEX),
        },
        _ => false,
    }
}

/// Whether an expression gives a text, a number or a literal without variables: nothing that holds anything.
fn is_flat(expression: &Expr<'_>) -> bool {
    match expression {
        Expr::Const(_) => true,
        Expr::BinOp(it) if matches!(it.op, BinOpKind::Concat) => true,
        Expr::BinOp(it) if matches!(it.op, BinOpKind::Add) => {
            is_number(expression) || [&it.left, &it.right].iter().any(|operand| is_text_literal(operand))
        }
        Expr::Filter(it) => TEXT_FILTERS.contains(&it.name) || is_number(expression),
        Expr::IfExpr(it) => is_flat(&it.true_expr) && it.false_expr.as_ref().is_none_or(is_flat),
        Expr::List(it) => it.items.iter().all(is_flat_leaf),
        Expr::Map(it) => it.keys.iter().chain(&it.values).all(is_flat_leaf),
        other => is_number(other),
    }
}

fn is_flat_leaf(expression: &Expr<'_>) -> bool {
    matches!(expression, Expr::Const(_))
}

fn is_text_literal(expression: &Expr<'_>) -> bool {
    matches!(expression, Expr::Const(it) if it.value.kind() == ValueKind::String)
}

#[cfg(test)]
mod tests {
    use super::*;
    use minijinja::machinery;
    use minijinja::syntax::SyntaxConfig;

    fn guarded(text: &str) -> String {
        let tree = machinery::parse(text, "t", SyntaxConfig::default()).expect("parses");
        let guarded = edits(text, &tree, &Recursion::default()).apply(text).0;
        machinery::parse(&guarded, "t", SyntaxConfig::default()).unwrap_or_else(|error| panic!("{guarded}: {error}"));
        guarded
    }

    #[test]
    fn ordinary_expressions_need_no_guard() {
        for text in [
            "{{ m.role == 'user' }}",
            "{{ m.role in ['user', 'assistant'] and not m.x is defined }}",
            "{{ loop.index + 1 }}{{ loop.index0 % 2 == 0 }}{{ n - 1 }}",
            "{{ ctx.history[0].content }}{{ m['role'] }}",
            "{% set calls = filter_by_type(m.content_blocks, 'tool_use') %}",
            "{% set x = m.content %}{% set ns.found = true %}{% set ns.t = 'a' %}",
            "{% set x = [] %}{% set x = ['a', 1] %}{% set x = ctx.history | list %}",
            "{{ tojson({'type': 'text', 'text': m.content}) }}",
        ] {
            assert_eq!(guarded(text), text);
        }
    }

    #[test]
    fn what_may_be_large_is_guarded() {
        for (text, expected) in [
            ("{{ 'a' ~ x }}", "{{ 'a' ~ __w(x) }}"),
            ("{{ 'a' ~ x.y.z ~ (p or q) }}", "{{ 'a' ~ __w(x.y.z, 2) ~ (__w(p or q, 2)) }}"),
            ("{{ (a + b) * c }}", "{{ __g((__m(__g(a + b))) * __m(c)) }}"),
            ("{{ 'x' + a + 'y' + b }}", "{{ __g('x' + a + 'y' + b, 3) }}"),
            ("{{ a.b == c[d].e }}", "{{ __w(a.b) == __w(__v(c)[__w(d)].e) }}"),
            ("{{ a not in b }}{{ 'x' in b }}", "{{ __w(a) not in __w(b) }}{{ 'x' in __v(b) }}"),
            ("{{ x[-1] }}{{ (x)[i - 1] }}", "{{ __v(x)[-1] }}{{ (__v(x))[i - 1] }}"),
            ("{{ f(*a, **b) }}", "{{ f(*__w(a), **__w(b)) }}"),
            ("{{ {k: 1} }}", "{{ {__w(k): 1} }}"),
            ("{{ a < b < c }}", "{{ __w(a) < __w(b) < __w(c) }}"),
            ("{{ -a * 2 }}{{ not a == b }}", "{{ -a * 2 }}{{ not __w(a) == __w(b) }}"),
        ] {
            assert_eq!(guarded(text), expected);
        }
    }

    #[test]
    fn a_path_with_a_default_may_be_missing() {
        for (text, expected) in [
            ("{{ default(a, 1) }}", "{{ default(a, 1) }}"),
            ("{{ default(a.b['c'].d, e.f) }}", "{{ default(__o(__o(__o(a).b)['c']).d, e.f) }}"),
            ("{{ default(a[i].b, 1) }}", "{{ default(__o(__v(__o(a))[__w(i)]).b, 1) }}"),
        ] {
            assert_eq!(guarded(text), expected);
        }
    }

    #[test]
    fn slices_become_calls() {
        for (text, expected) in [
            ("{{ x[:] }}", "{{ __s(x,none,none ) }}"),
            ("{{ x[1:] }}", "{{ __s(x,1,none ) }}"),
            ("{{ x[::-1] }}", "{{ __s(x,none,none,-1 ) }}"),
            ("{{ (a + b)[f([1])[0] : {'a': 1}['a']].c }}", "{{ __s((__g(a + b)),f([1])[0] , {'a': 1}['a'] ).c }}"),
            ("{{ x[1:2][:-1] }}", "{{ __s(__s(x,1,2 ),none,-1 ) }}"),
            ("{{ x[y[1:2]:3:] }}", "{{ __s(x,__s(y,1,2 ),3,none ) }}"),
            ("{{ x[0][a[0]:] }}", "{{ __s(x[0],a[0],none ) }}"),
        ] {
            assert_eq!(guarded(text), expected);
        }
    }

    #[test]
    fn what_is_kept_is_guarded() {
        for (text, expected) in [
            ("{% set x = [x] %}", "{% set x = __d([x]) %}"),
            ("{% set x = x + [y] %}", "{% set x = __g(x + __d([y])) %}"),
            ("{% set x = y, [z] %}", "{% set x = __d(y), __d([z]) %}"),
            ("{% set ns.l = ns.l + [y] %}", "{% set ns.l = __g(ns.l + __n([y])) %}"),
            ("{% set ns.x = ns %}", "{% set ns.x = __n(ns) %}"),
            ("{% set ns.x %}a{% endset %}", "{% set ns.x %}a{% endset %}"),
            ("{% with a = [b] %}{% endwith %}", "{% with a = __d([b]) %}{% endwith %}"),
            ("{% macro m(a=[b]) %}{% endmacro %}", "{% macro m(a=__d([b])) %}{% endmacro %}"),
            ("{% import 'x' as m -%} a", "{% import 'x' as m -%}{%do __d(m)-%} a"),
        ] {
            assert_eq!(guarded(text), expected);
        }
    }

    #[test]
    fn long_literal_text_is_charged() {
        let long = "a".repeat(100);
        assert_eq!(guarded(&format!("{{{{ x -}}}}  {long}")), format!("{{{{ x -}}}}  {{%do __c(100)%}}{long}"));
        assert_eq!(
            guarded(&format!("b {{%- raw %}}{long}{{% endraw %}}")),
            format!("b {{%-do __c(100)%}}{{%- raw %}}{long}{{% endraw %}}")
        );
    }
}
