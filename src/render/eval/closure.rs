//! The variables that a macro takes from where it is declared.
//!
//! The engine works them out by a walk of its own, which it does not give out. This one follows it
//! step by step, except for slices: what the engine does not see is looked up among the data when
//! the macro runs.

use std::collections::BTreeSet;

use minijinja::machinery::ast::{CallArg, Expr, Macro, Stmt};

/// Returns the names of the variables, and whether the macro asks for its caller.
pub(super) fn of(declared: &Macro<'_>) -> (Vec<Box<str>>, bool) {
    let mut walk = Walk {
        free: BTreeSet::new(),
        assigned: vec![BTreeSet::new()],
    };
    walk.macro_body(declared, false);
    let wants_caller = walk.free.remove("caller");
    (walk.free.into_iter().map(Box::from).collect(), wants_caller)
}

struct Walk<'t> {
    free: BTreeSet<&'t str>,
    /// The names that are assigned, scope by scope.
    assigned: Vec<BTreeSet<&'t str>>,
}

impl<'t> Walk<'t> {
    fn assign(&mut self, name: &'t str) {
        if let Some(scope) = self.assigned.last_mut() {
            scope.insert(name);
        }
    }

    fn within(&mut self, walk: impl FnOnce(&mut Self)) {
        self.assigned.push(BTreeSet::new());
        walk(self);
        self.assigned.pop();
    }

    fn target(&mut self, target: &Expr<'t>) {
        match target {
            Expr::Var(name) => self.assign(name.id),
            Expr::List(it) => it.items.iter().for_each(|item| self.target(item)),
            Expr::Tuple(it) => it.items.iter().for_each(|item| self.target(item)),
            _ => {}
        }
    }

    fn macro_body(&mut self, it: &Macro<'t>, with_caller: bool) {
        if with_caller {
            self.assign("caller");
        }
        it.args.iter().for_each(|argument| self.target(argument));
        it.defaults
            .iter()
            .for_each(|default| self.expression(default));
        self.statements(&it.body);
    }

    fn statements(&mut self, statements: &[Stmt<'t>]) {
        statements
            .iter()
            .for_each(|statement| self.statement(statement));
    }

    fn statement(&mut self, statement: &Stmt<'t>) {
        match statement {
            Stmt::Template(it) => {
                self.assign("self");
                self.statements(&it.children);
            }
            Stmt::EmitExpr(it) => self.expression(&it.expr),
            Stmt::ForLoop(it) => {
                self.within(|walk| {
                    walk.assign("loop");
                    walk.expression(&it.iter);
                    walk.target(&it.target);
                    it.filter_expr
                        .iter()
                        .for_each(|filter| walk.expression(filter));
                    walk.statements(&it.body);
                });
                self.within(|walk| walk.statements(&it.else_body));
            }
            Stmt::IfCond(it) => {
                self.expression(&it.expr);
                self.within(|walk| walk.statements(&it.true_body));
                self.within(|walk| walk.statements(&it.false_body));
            }
            Stmt::WithBlock(it) => self.within(|walk| {
                for (target, value) in &it.assignments {
                    walk.target(target);
                    walk.expression(value);
                }
                walk.statements(&it.body);
            }),
            Stmt::Set(it) => {
                self.target(&it.target);
                self.expression(&it.expr);
            }
            Stmt::SetBlock(it) => {
                self.target(&it.target);
                self.within(|walk| walk.statements(&it.body));
            }
            Stmt::AutoEscape(it) => self.within(|walk| walk.statements(&it.body)),
            Stmt::FilterBlock(it) => self.within(|walk| walk.statements(&it.body)),
            Stmt::Block(it) => self.within(|walk| {
                walk.assign("super");
                walk.statements(&it.body);
            }),
            Stmt::EmitRaw(_) | Stmt::Extends(_) | Stmt::Include(_) => {}
            Stmt::Import(it) => self.target(&it.name),
            Stmt::FromImport(it) => {
                it.names
                    .iter()
                    .for_each(|(name, alias)| self.target(alias.as_ref().unwrap_or(name)));
            }
            Stmt::Macro(it) => {
                self.assign(it.name);
                self.within(|walk| walk.macro_body(it, true));
            }
            Stmt::CallBlock(it) => {
                self.expression(&it.call.expr);
                self.arguments(&it.call.args);
                self.within(|walk| walk.macro_body(&it.macro_decl, true));
            }
            Stmt::Do(it) => {
                self.expression(&it.call.expr);
                self.arguments(&it.call.args);
            }
        }
    }

    fn arguments(&mut self, arguments: &[CallArg<'t>]) {
        for argument in arguments {
            let (CallArg::Pos(it)
            | CallArg::Kwarg(_, it)
            | CallArg::PosSplat(it)
            | CallArg::KwargSplat(it)) = argument;
            self.expression(it);
        }
    }

    fn expression(&mut self, expression: &Expr<'t>) {
        match expression {
            Expr::Var(name) => {
                if !self.assigned.iter().any(|scope| scope.contains(name.id)) {
                    self.free.insert(name.id);
                    self.assign(name.id);
                }
            }
            Expr::Const(_) => {}
            Expr::UnaryOp(it) => self.expression(&it.expr),
            Expr::BinOp(it) => {
                self.expression(&it.left);
                self.expression(&it.right);
            }
            Expr::Compare(it) => {
                self.expression(&it.expr);
                it.ops
                    .iter()
                    .for_each(|operand| self.expression(&operand.expr));
            }
            Expr::IfExpr(it) => {
                self.expression(&it.test_expr);
                self.expression(&it.true_expr);
                it.false_expr
                    .iter()
                    .for_each(|other| self.expression(other));
            }
            Expr::Filter(it) => {
                it.expr.iter().for_each(|input| self.expression(input));
                self.arguments(&it.args);
            }
            Expr::Test(it) => {
                self.expression(&it.expr);
                self.arguments(&it.args);
            }
            Expr::GetAttr(it) => self.expression(&it.expr),
            Expr::GetItem(it) => {
                self.expression(&it.expr);
                self.expression(&it.subscript_expr);
            }
            // The engine looks at the bounds alone: there, a macro does not see the variable that
            // it takes a part of.
            Expr::Slice(it) => {
                self.expression(&it.expr);
                [&it.start, &it.stop, &it.step]
                    .into_iter()
                    .flatten()
                    .for_each(|bound| self.expression(bound));
            }
            Expr::Call(it) => {
                self.expression(&it.expr);
                self.arguments(&it.args);
            }
            Expr::List(it) => it.items.iter().for_each(|item| self.expression(item)),
            Expr::Tuple(it) => it.items.iter().for_each(|item| self.expression(item)),
            Expr::Map(it) => {
                for (key, value) in it.keys.iter().zip(&it.values) {
                    self.expression(key);
                    self.expression(value);
                }
            }
        }
    }
}
