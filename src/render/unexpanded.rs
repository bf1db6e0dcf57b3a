//! Folder variables in the strings of expressions, where they are not expanded.
//!
//! `${PROJECT_DIR}` is expanded in the prompt's own text and in arguments of file functions, but
//! not in a string that an expression prints. A string in a variable is tracked to the location
//! where the variable is printed.

use std::collections::HashMap;
use std::ops::Range;

use minijinja::machinery::ast::{BinOpKind, Expr, Set};

use super::folders::PROMPT_VARIABLES;

/// The strings found so far in one template.
#[derive(Debug, Default)]
pub(super) struct Unexpanded {
    /// Variables that contain a string with a folder variable, with the locations where the string
    /// is written.
    held: HashMap<String, Vec<Range<usize>>>,
    /// The locations of strings that are printed.
    pub(super) printed: Vec<Range<usize>>,
}

impl Unexpanded {
    /// Records the strings in a variable's value.
    pub(super) fn set(&mut self, set: &Set<'_>) {
        let Expr::Var(name) = &set.target else { return };
        let texts = self.texts(&set.expr);
        if texts.is_empty() {
            self.held.remove(name.id);
        } else {
            self.held.insert(name.id.to_owned(), texts);
        }
    }

    /// Records the strings in a printed expression.
    pub(super) fn print(&mut self, printed: &Expr<'_>) {
        for text in self.texts(printed) {
            if !self.printed.contains(&text) {
                self.printed.push(text);
            }
        }
    }

    /// Returns the strings with a folder variable in a value. Function arguments are ignored,
    /// because a function may expand them or may not print them.
    fn texts(&self, value: &Expr<'_>) -> Vec<Range<usize>> {
        let both =
            |left: &Expr<'_>, right: &Expr<'_>| [self.texts(left), self.texts(right)].concat();
        match value {
            Expr::Const(it) if it.value.as_str().is_some_and(has_variable) => {
                let span = it.span();
                std::iter::once(span.start_offset as usize..span.end_offset as usize).collect()
            }
            Expr::Var(it) => self.held.get(it.id).cloned().unwrap_or_default(),
            Expr::BinOp(it) if matches!(it.op, BinOpKind::Concat | BinOpKind::Add) => {
                both(&it.left, &it.right)
            }
            Expr::IfExpr(it) => [
                self.texts(&it.true_expr),
                it.false_expr
                    .as_ref()
                    .map_or_else(Vec::new, |it| self.texts(it)),
            ]
            .concat(),
            Expr::Filter(it) => it.expr.as_ref().map_or_else(Vec::new, |it| self.texts(it)),
            _ => Vec::new(),
        }
    }
}

fn has_variable(text: &str) -> bool {
    PROMPT_VARIABLES
        .iter()
        .any(|(variable, _)| text.contains(variable))
}
