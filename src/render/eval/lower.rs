//! Converts a string to a [`Template`]: parses it with the engine's parser, and records the
//! location of every node.

use std::collections::HashMap;
use std::ops::Range;

use minijinja::machinery::ast::{
    self, BinOpKind, CallArg, CallType, Expr as Ast, Stmt as AstStmt, UnaryOpKind,
};
use minijinja::machinery::{self, Span};
use minijinja::{Error, Value};

use super::super::builtins::{Filter, Test};
use super::super::dialect::syntax;
use super::super::folders::PROMPT_VARIABLES;
use super::super::place::Place;
use super::closure;
use super::tags::{Parentheses, Side, Tags, Tokens};
use super::tree::{
    Argument, Block, Call, Callee, Choice, Emit, Expr, ExprKind, Filtered, For, If, Imported,
    Macro, Parameter, Slice, Stmt, StmtKind, Target, Template, Tested,
};
use crate::repo::Dialect;

/// The function that replaces a missing value, whichever part of its path is missing.
const DEFAULT: &str = "default";

/// Parses a template and converts its tree. `pairs` contains the ranges of the values over which
/// loops iterate by key and value.
///
/// # Errors
///
/// Returns an error if the text does not parse.
pub(in super::super) fn lower(
    text: &str,
    dialect: Dialect,
    number: u32,
    pairs: &[Range<usize>],
) -> Result<Template, Error> {
    let tree = machinery::parse(text, "", syntax(dialect))?;
    let tokens = Tokens::of(text, dialect);
    let tags = Tags::of(&tokens);
    let parentheses = Parentheses::of(&tokens);
    let mut lowering = Lowering {
        text,
        number,
        tags,
        parentheses,
        pairs,
        blocks: HashMap::new(),
        order: Vec::new(),
    };
    let body = match &tree {
        AstStmt::Template(it) => lowering.statements(&it.children),
        other => lowering.statements(std::slice::from_ref(other)),
    };
    let Lowering {
        mut blocks, order, ..
    } = lowering;
    let blocks = order
        .iter()
        .filter_map(|name| blocks.remove(name))
        .collect();
    Ok(Template {
        number,
        body,
        blocks,
    })
}

struct Lowering<'t> {
    text: &'t str,
    number: u32,
    tags: Tags,
    parentheses: Parentheses,
    pairs: &'t [Range<usize>],
    blocks: HashMap<String, Block>,
    /// The blocks' names, in their order.
    order: Vec<String>,
}

fn range(span: Span) -> Range<usize> {
    span.start_offset as usize..span.end_offset as usize
}

/// Converts statements.
impl Lowering<'_> {
    fn place(&self, range: &Range<usize>) -> Place {
        Place::new(self.number, range)
    }

    /// Returns the tag at the start of a statement.
    fn tag(&self, span: Span) -> Place {
        let range = range(span);
        self.place(self.tags.around(range.start).unwrap_or(&range))
    }

    fn statements(&mut self, statements: &[AstStmt<'_>]) -> Vec<Stmt> {
        statements
            .iter()
            .map(|statement| self.statement(statement))
            .collect()
    }

    fn statement(&mut self, statement: &AstStmt<'_>) -> Stmt {
        let (at, kind) = match statement {
            AstStmt::Template(it) => (
                self.tag(it.span()),
                StmtKind::With(Vec::new(), self.statements(&it.children)),
            ),
            AstStmt::EmitRaw(it) => (self.raw(it.raw, it.span()), StmtKind::Raw(it.raw.into())),
            AstStmt::EmitExpr(it) => (
                self.place(&range(it.span())),
                StmtKind::Emit(self.emit(&it.expr)),
            ),
            AstStmt::ForLoop(it) => (self.tag(it.span()), self.for_loop(it)),
            AstStmt::IfCond(it) => {
                let otherwise = self.tags.else_of(range(it.span()).start);
                (
                    self.tag(it.span()),
                    StmtKind::If(self.condition(it, otherwise.as_ref())),
                )
            }
            AstStmt::WithBlock(it) => (self.tag(it.span()), self.with_block(it)),
            AstStmt::Set(it) => (self.tag(it.span()), self.set(it)),
            AstStmt::SetBlock(it) => (self.tag(it.span()), self.set_block(it)),
            AstStmt::AutoEscape(it) => {
                let enabled = self.expr(&it.enabled);
                (
                    self.tag(it.span()),
                    StmtKind::AutoEscape(enabled, self.statements(&it.body)),
                )
            }
            AstStmt::FilterBlock(it) => {
                let filter = self.expr(&it.filter);
                (
                    self.tag(it.span()),
                    StmtKind::FilterBlock(filter, self.statements(&it.body)),
                )
            }
            AstStmt::Block(it) => (self.tag(it.span()), self.block(it)),
            AstStmt::Import(it) => (self.place(&range(it.span())), self.import(it)),
            AstStmt::FromImport(it) => (self.place(&range(it.span())), self.names_of_import(it)),
            AstStmt::Extends(it) => (self.tag(it.span()), StmtKind::Extends(self.expr(&it.name))),
            AstStmt::Include(it) => {
                let name = self.expr(&it.name);
                let inner = self.place(&range(it.span()));
                (
                    self.tag(it.span()),
                    StmtKind::Include {
                        name,
                        ignore_missing: it.ignore_missing,
                        inner,
                    },
                )
            }
            AstStmt::Macro(it) => (
                self.tag(it.span()),
                StmtKind::Macro(Box::new(self.macro_(it, it.span()))),
            ),
            AstStmt::CallBlock(it) => {
                let call = self.call(&it.call, it.call.span());
                let body = self.macro_(&it.macro_decl, it.macro_decl.span());
                (
                    self.tag(it.span()),
                    StmtKind::CallBlock(Box::new(call), Box::new(body)),
                )
            }
            AstStmt::Do(it) => (
                self.tag(it.span()),
                StmtKind::Do(Box::new(self.call(&it.call, it.call.span()))),
            ),
        };
        Stmt { at, kind }
    }

    /// Returns the location of literal text, which is its span without the trimmed whitespace.
    fn raw(&self, raw: &str, span: Span) -> Place {
        let within = range(span);
        let start = within.start + self.text[within].find(raw).unwrap_or_default();
        self.place(&(start..start + raw.len()))
    }

    fn emit(&mut self, expression: &Ast<'_>) -> Emit {
        if let Ast::Call(call) = expression {
            match call.identify_call() {
                CallType::Function("super") if call.args.is_empty() => return Emit::Super,
                CallType::Function("loop") if call.args.len() == 1 => {
                    if let CallArg::Pos(over) = &call.args[0] {
                        return Emit::Loop(self.expr(over));
                    }
                }
                CallType::Block(name) => return Emit::Block(name.into()),
                _ => {}
            }
        }
        Emit::Value(self.expr(expression))
    }

    fn for_loop(&mut self, it: &ast::Spanned<ast::ForLoop<'_>>) -> StmtKind {
        let iter = self.expr(&it.iter);
        let otherwise = self.tags.else_of(range(it.span()).start);
        let by_pairs = self
            .pairs
            .iter()
            .any(|range| *range == self.parentheses.operand(&iter.at.range(), Side::Left));
        StmtKind::For(Box::new(For {
            target: self.target(&it.target),
            by_pairs: by_pairs || self.pairs.contains(&iter.at.range()),
            iter,
            filter: it.filter_expr.as_ref().map(|filter| self.expr(filter)),
            recursive: it.recursive,
            body: self.statements(&it.body),
            otherwise: self.statements(&it.else_body),
            else_at: self.place(&otherwise.unwrap_or_default()),
        }))
    }

    fn condition(&mut self, it: &ast::IfCond<'_>, otherwise: Option<&Range<usize>>) -> If {
        let test = self.expr(&it.expr);
        let body = self.statements(&it.true_body);
        if let [AstStmt::IfCond(next)] = it.false_body.as_slice()
            && self.tags.is_elif(range(next.span()).start)
        {
            let at = self.tag(next.span());
            let next = Stmt {
                at,
                kind: StmtKind::If(self.condition(next, otherwise)),
            };
            return If {
                test,
                body,
                otherwise: vec![next],
                else_at: None,
            };
        }
        let else_at = otherwise
            .filter(|_| !it.false_body.is_empty())
            .map(|range| self.place(range));
        If {
            test,
            body,
            otherwise: self.statements(&it.false_body),
            else_at,
        }
    }

    fn with_block(&mut self, it: &ast::WithBlock<'_>) -> StmtKind {
        let mut assignments = Vec::with_capacity(it.assignments.len());
        for (target, value) in &it.assignments {
            let value = self.expr(value);
            assignments.push((self.target(target), value));
        }
        StmtKind::With(assignments, self.statements(&it.body))
    }

    fn set(&mut self, it: &ast::Set<'_>) -> StmtKind {
        let value = self.expr(&it.expr);
        StmtKind::Set(self.target(&it.target), value)
    }

    fn set_block(&mut self, it: &ast::SetBlock<'_>) -> StmtKind {
        let filter = it.filter.as_ref().map(|filter| self.expr(filter));
        StmtKind::SetBlock {
            target: self.target(&it.target),
            filter,
            body: self.statements(&it.body),
        }
    }

    /// Converts a block. If several blocks have the same name, the last one applies everywhere.
    fn block(&mut self, it: &ast::Block<'_>) -> StmtKind {
        let body = self.statements(&it.body);
        let block = Block {
            name: it.name.into(),
            required: it.required,
            body,
        };
        if self.blocks.insert(it.name.to_owned(), block).is_none() {
            self.order.push(it.name.to_owned());
        }
        StmtKind::Block(it.name.into())
    }

    fn import(&mut self, it: &ast::Import<'_>) -> StmtKind {
        let from = self.expr(&it.expr);
        // Anything but a name was rejected earlier.
        let name = match &it.name {
            Ast::Var(name) => name.id.into(),
            _ => Box::default(),
        };
        StmtKind::Import { from, name }
    }

    fn names_of_import(&mut self, it: &ast::FromImport<'_>) -> StmtKind {
        let from = self.expr(&it.expr);
        let mut names = Vec::with_capacity(it.names.len());
        for (name, alias) in &it.names {
            let target = self.target(alias.as_ref().unwrap_or(name));
            names.push(Imported {
                name: self.expr(name),
                target,
            });
        }
        StmtKind::FromImport { from, names }
    }

    fn macro_(&mut self, it: &ast::Macro<'_>, span: Span) -> Macro {
        let (enclosed, wants_caller) = closure::of(it);
        let without_default = it.args.len() - it.defaults.len();
        let mut parameters = Vec::with_capacity(it.args.len());
        for (index, argument) in it.args.iter().enumerate() {
            let name = match argument {
                Ast::Var(name) => name.id.into(),
                _ => Box::default(),
            };
            let default = index
                .checked_sub(without_default)
                .and_then(|index| it.defaults.get(index));
            parameters.push(Parameter {
                at: self.place(&range(argument.span())),
                name,
                default: default.map(|default| self.expr(default)),
            });
        }
        let body = self.statements(&it.body);
        Macro {
            name: it.name.into(),
            parameters,
            body,
            enclosed,
            wants_caller,
            at: self.tag(span),
        }
    }

    fn target(&mut self, target: &Ast<'_>) -> Target {
        match target {
            Ast::Var(name) => Target::Name(name.id.into()),
            Ast::List(it) => Target::List(self.place(&range(it.span())), self.targets(&it.items)),
            Ast::Tuple(it) => Target::List(self.place(&range(it.span())), self.targets(&it.items)),
            Ast::GetAttr(it) => Target::Member {
                at: self.place(&range(it.span())),
                object: Box::new(self.expr(&it.expr)),
                name: it.name.into(),
            },
            other => Target::List(self.place(&range(other.span())), Vec::new()),
        }
    }

    fn targets(&mut self, targets: &[Ast<'_>]) -> Vec<Target> {
        targets.iter().map(|target| self.target(target)).collect()
    }
}

/// Converts expressions.
impl Lowering<'_> {
    fn boxed(&mut self, expression: &Ast<'_>) -> Box<Expr> {
        Box::new(self.expr(expression))
    }

    fn all(&mut self, expressions: &[Ast<'_>]) -> Vec<Expr> {
        expressions
            .iter()
            .map(|expression| self.expr(expression))
            .collect()
    }

    /// Returns the range from an operator's left operand, with its parentheses, to `end`.
    fn range_from(&self, left: &Expr, end: usize) -> Range<usize> {
        self.parentheses.operand(&left.at.range(), Side::Left).start..end
    }

    fn right_end(&self, right: &Expr) -> usize {
        self.parentheses.operand(&right.at.range(), Side::Right).end
    }

    fn expr(&mut self, expression: &Ast<'_>) -> Expr {
        let own = range(expression.span());
        match expression {
            Ast::Var(it) => self.variable(it.id, &own),
            Ast::Const(it) => self.made(&own, ExprKind::Const(it.value.clone())),
            Ast::List(it) => {
                let kind = ExprKind::List(self.all(&it.items));
                self.made(&own, kind)
            }
            Ast::Tuple(it) => {
                let kind = ExprKind::Tuple(self.all(&it.items));
                self.made(&own, kind)
            }
            Ast::Map(it) => {
                let pairs = it.keys.iter().zip(&it.values);
                let pairs = pairs
                    .map(|(key, value)| (self.expr(key), self.expr(value)))
                    .collect();
                self.made(&own, ExprKind::Map(pairs))
            }
            Ast::UnaryOp(it) => self.unary(it, &own),
            Ast::BinOp(it) => self.binary(it),
            Ast::Compare(it) => self.compare(it, own.end),
            Ast::IfExpr(it) => self.choice(it),
            Ast::Slice(it) => self.slice(it, own.end),
            Ast::GetAttr(it) => {
                let base = self.boxed(&it.expr);
                let range = self.range_from(&base, own.end);
                self.made(
                    &range,
                    ExprKind::Member {
                        base,
                        name: it.name.into(),
                        optional: false,
                    },
                )
            }
            Ast::GetItem(it) => {
                let (base, key) = (self.boxed(&it.expr), self.boxed(&it.subscript_expr));
                let range = self.range_from(&base, own.end);
                self.made(
                    &range,
                    ExprKind::Item {
                        base,
                        key,
                        optional: false,
                    },
                )
            }
            Ast::Filter(it) => {
                let input = it.expr.as_ref().map(|input| self.expr(input));
                let arguments = self.arguments(&it.args);
                let range = input
                    .as_ref()
                    .map_or(own.clone(), |input| self.range_from(input, own.end));
                let filter = Filter::named(&without_blanks(it.name));
                self.made(
                    &range,
                    ExprKind::Filter(Box::new(Filtered {
                        own: self.place(&own),
                        filter,
                        input,
                        arguments,
                    })),
                )
            }
            Ast::Test(it) => {
                let (input, arguments) = (self.expr(&it.expr), self.arguments(&it.args));
                let range = self.range_from(&input, own.end);
                let test = Test::named(&without_blanks(it.name));
                self.made(
                    &range,
                    ExprKind::Test(Box::new(Tested {
                        test,
                        input,
                        arguments,
                    })),
                )
            }
            Ast::Call(it) => {
                let call = self.call(it, it.span());
                let range = call.at.range();
                self.made(&range, ExprKind::Call(Box::new(call)))
            }
        }
    }

    fn made(&self, range: &Range<usize>, kind: ExprKind) -> Expr {
        Expr {
            at: self.place(range),
            kind,
        }
    }

    /// Converts a variable. A name that replaced `${PROJECT_DIR}` or a similar variable represents
    /// the whole original text.
    fn variable(&self, name: &str, own: &Range<usize>) -> Expr {
        let is_folder = PROMPT_VARIABLES
            .iter()
            .any(|(_, variable)| *variable == name);
        let start = self.text[..own.start]
            .strip_suffix("{{")
            .filter(|_| is_folder)
            .map(str::len);
        let end = self.text[own.end..].find("}}").map(|at| own.end + at + 2);
        match start.zip(end) {
            Some((start, end)) => self.made(&(start..end), ExprKind::Folder(name.into())),
            None => self.made(own, ExprKind::Var(name.into())),
        }
    }

    /// Converts `not x` and `-x`; the engine parses `x not in y` and `x is not y` the same way.
    fn unary(&mut self, it: &ast::UnaryOp<'_>, own: &Range<usize>) -> Expr {
        let inner = self.boxed(&it.expr);
        let whole = self.parentheses.operand(&inner.at.range(), Side::Right);
        let is_prefix = match it.op {
            UnaryOpKind::Not => {
                self.text[own.start..].starts_with("not") && own.start < whole.start
            }
            UnaryOpKind::Neg => true,
        };
        let start = if is_prefix {
            own.start
        } else {
            inner.at.range().start
        };
        let kind = match it.op {
            UnaryOpKind::Not => ExprKind::Not(inner),
            UnaryOpKind::Neg => ExprKind::Neg(inner),
        };
        self.made(&(start..whole.end.max(own.end)), kind)
    }

    fn binary(&mut self, it: &ast::BinOp<'_>) -> Expr {
        let (left, right) = (self.boxed(&it.left), self.boxed(&it.right));
        let range = self.range_from(&left, self.right_end(&right));
        let kind = match it.op {
            BinOpKind::ScAnd => ExprKind::And(left, right),
            BinOpKind::ScOr => ExprKind::Or(left, right),
            op => ExprKind::Binary(op, left, right),
        };
        self.made(&range, kind)
    }

    fn compare(&mut self, it: &ast::Compare<'_>, end: usize) -> Expr {
        let first = self.boxed(&it.expr);
        let rest: Vec<_> = it
            .ops
            .iter()
            .map(|operand| (operand.op, self.expr(&operand.expr)))
            .collect();
        let end = rest.last().map_or(end, |(_, last)| self.right_end(last));
        let range = self.range_from(&first, end);
        self.made(&range, ExprKind::Compare(first, rest))
    }

    fn choice(&mut self, it: &ast::IfExpr<'_>) -> Expr {
        let (test, then) = (self.expr(&it.test_expr), self.expr(&it.true_expr));
        let otherwise = it.false_expr.as_ref().map(|other| self.expr(other));
        let range = self.range_from(&then, self.right_end(otherwise.as_ref().unwrap_or(&test)));
        self.made(
            &range,
            ExprKind::If(Box::new(Choice {
                test,
                then,
                otherwise,
            })),
        )
    }

    fn slice(&mut self, it: &ast::Slice<'_>, end: usize) -> Expr {
        let base = self.expr(&it.expr);
        let range = self.range_from(&base, end);
        let [start, end, by] =
            [&it.start, &it.stop, &it.step].map(|bound| bound.as_ref().map(|it| self.expr(it)));
        self.made(
            &range,
            ExprKind::Slice(Box::new(Slice {
                base,
                start,
                stop: end,
                step: by,
            })),
        )
    }

    fn call(&mut self, it: &ast::Call<'_>, span: Span) -> Call {
        let own = range(span);
        let (start, callee) = match it.identify_call() {
            CallType::Function(name) => (range(it.expr.span()).start, Callee::Name(name.into())),
            CallType::Block(name) => {
                let whole = self.expr(&it.expr);
                (whole.at.range().start, Callee::Block(name.into()))
            }
            CallType::Method(object, name) => {
                let object = self.expr(object);
                (
                    self.range_from(&object, 0).start,
                    Callee::Method(object, name.into(), self.place(&own)),
                )
            }
            CallType::Object(value) => {
                let value = self.expr(value);
                (self.range_from(&value, 0).start, Callee::Value(value))
            }
        };
        let mut arguments = self.arguments(&it.args);
        if let (Callee::Name(name), Some(Argument::Value(path))) = (&callee, arguments.first_mut())
            && &**name == DEFAULT
        {
            make_optional(path);
        }
        Call {
            at: self.place(&(start..own.end)),
            callee,
            arguments,
        }
    }

    fn arguments(&mut self, arguments: &[CallArg<'_>]) -> Vec<Argument> {
        let mut lowered = Vec::with_capacity(arguments.len());
        for argument in arguments {
            lowered.push(match argument {
                CallArg::Pos(it) => Argument::Value(self.expr(it)),
                CallArg::Kwarg(name, it) => Argument::Named((*name).into(), self.expr(it)),
                CallArg::PosSplat(it) => Argument::Spread(self.expr(it)),
                CallArg::KwargSplat(it) => Argument::SpreadNamed(self.expr(it)),
            });
        }
        lowered
    }
}

/// Makes each part of a path optional: a missing part has no members.
fn make_optional(path: &mut Expr) {
    match &mut path.kind {
        ExprKind::Member { base, optional, .. } | ExprKind::Item { base, optional, .. } => {
            *optional = true;
            make_optional(base);
        }
        _ => {}
    }
}

/// Removes the blanks that the engine permits in the names of filters and tests.
fn without_blanks(name: &str) -> String {
    name.chars().filter(|c| !c.is_ascii_whitespace()).collect()
}

/// Returns the value of a literal.
pub(super) fn literal(expression: &Expr) -> Option<&Value> {
    match &expression.kind {
        ExprKind::Const(value) => Some(value),
        _ => None,
    }
}
