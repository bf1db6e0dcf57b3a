//! The variables that a macro captures where it is declared.
//!
//! The engine determines them with a private tree walk. This module replicates that walk step by
//! step, except for slices. The engine overlooks variables there, and looks them up in the data
//! when the macro runs.

use std::collections::BTreeSet;

use minijinja::machinery::ast::{Call, Expr, Macro, Stmt};

use super::super::parts;

/// Returns the names of the captured variables, and `true` if the macro uses its caller.
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
    /// The assigned names, by scope.
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
            Expr::List(_) | Expr::Tuple(_) => parts::visit(target, |item| self.target(item)),
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
                self.call(&it.call);
                self.within(|walk| walk.macro_body(&it.macro_decl, true));
            }
            Stmt::Do(it) => self.call(&it.call),
        }
    }

    fn call(&mut self, call: &Call<'t>) {
        self.expression(&call.expr);
        parts::visit_arguments(&call.args, |argument| self.expression(argument));
    }

    /// Visits an expression. In a slice, the engine visits only the bounds, so a macro does not
    /// capture the sliced variable there.
    fn expression(&mut self, expression: &Expr<'t>) {
        let Expr::Var(name) = expression else {
            return parts::visit(expression, |part| self.expression(part));
        };
        if !self.assigned.iter().any(|scope| scope.contains(name.id)) {
            self.free.insert(name.id);
            self.assign(name.id);
        }
    }
}
