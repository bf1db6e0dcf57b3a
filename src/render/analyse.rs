//! Extracts facts from the text of a template, without running it.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use minijinja::Error;
use minijinja::machinery;
use minijinja::machinery::ast::{Call, CallArg, CallType, Expr, ForLoop, Macro, Stmt};
use minijinja::syntax::SyntaxConfig;

use super::folders::{path_in_layers, role_path};
use super::lost_sets::{self, LostSet};
use super::parts::{self, literal_name, literal_names, range};
use super::recursion::{Misplaced, Scope};
use super::slips_of_data::{self, DataSlips};
use super::unexpanded::Unexpanded;

/// The entry in `reads` that represents every member of `ctx`.
pub(super) const ALL_OF_CTX: &str = "*";

/// The known facts about one template.
#[derive(Debug, Default)]
pub(super) struct Analysis {
    pub(super) includes: Vec<Include>,
    /// Functions, filters and tests that are called.
    pub(super) calls: Vec<Called>,
    /// Members of `ctx` that are read.
    pub(super) reads: BTreeSet<String>,
    /// Names that are assigned anywhere.
    pub(super) assigned: HashSet<String>,
    /// Names that are imported from other templates.
    pub(super) imported: Vec<ImportedName>,
    /// The variables that are read, with their locations.
    pub(super) variables: Vec<(String, Range<usize>)>,
    /// Variables that the template allows to be absent, because it tests them with `is defined` or
    /// gives them a default.
    pub(super) optional: HashSet<String>,
    /// Members of namespaces that are assigned.
    pub(super) namespace_members: HashSet<String>,
    /// The values that loops iterate over by key and value.
    pub(super) pair_loops: Vec<Range<usize>>,
    /// Statements at locations where the engine cannot run them.
    pub(super) misplaced: Vec<Misplaced>,
    /// The outermost loops, bodies included.
    pub(super) loops: Vec<Range<usize>>,
    /// Variables that a loop sets, but whose values are lost.
    pub(super) lost_sets: Vec<LostSet>,
    /// Strings that contain folder variables, and that expressions print.
    pub(super) unexpanded: Unexpanded,
    /// Mistakes about the data.
    pub(super) slips_of_data: DataSlips,
    /// Calls that read files in the layers by literal names.
    pub(super) file_reads: Vec<FileRead>,
    /// The literal paths that `file_exists` is called with.
    pub(super) tested_files: HashSet<String>,
    /// `true` if the template tests files that it does not name literally, because it lists a
    /// folder or computes the path.
    pub(super) tests_any_file: bool,
}

/// A call in a system prompt that reads a file in the layers by a literal name.
#[derive(Debug)]
pub(super) struct FileRead {
    /// The path in the form that `read_file` accepts, beginning with `:/` or `${CONFIG_DIR}/`.
    pub(super) path: String,
    /// The path within the layer.
    pub(super) within: String,
    /// The ID of the role, if the call refers to a role.
    pub(super) role: Option<String>,
    pub(super) range: Range<usize>,
}

impl FileRead {
    /// Returns a read of a path; `None` if the path does not refer to a file in the layers.
    fn of(path: String, role: Option<String>, range: Range<usize>) -> Option<FileRead> {
        let within = path_in_layers(&path)?;
        Some(FileRead {
            path,
            within,
            role,
            range,
        })
    }
}

/// A name in `{% from 'template' import name as target %}`.
#[derive(Debug)]
pub(super) struct ImportedName {
    pub(super) template: String,
    pub(super) name: String,
    /// The variable that receives the value; `name` if there is no `as`.
    pub(super) target: String,
    pub(super) range: Range<usize>,
}

/// An `include`, `import`, `from` or `extends`.
#[derive(Debug)]
pub(super) struct Include {
    /// The names, tried in order; empty if they are not literal.
    pub(super) names: Vec<String>,
    pub(super) is_literal: bool,
    pub(super) ignore_missing: bool,
    pub(super) range: Range<usize>,
}

/// Returns the name under which a partial is registered, with the `partials/` prefix.
pub(crate) fn full_name(name: &str) -> Cow<'_, str> {
    match name.starts_with("partials/") || name.starts_with('\u{1}') {
        true => Cow::Borrowed(name),
        false => Cow::Owned(format!("partials/{name}")),
    }
}

/// A name that is called.
#[derive(Debug)]
pub(super) struct Called {
    pub(super) what: Callable,
    pub(super) name: String,
    pub(super) range: Range<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Callable {
    Function,
    Filter,
    Test,
    /// `object.name()`.
    Method,
}

pub(super) fn analyse(text: &str, name: &str) -> Result<Analysis, Error> {
    let tree = machinery::parse(text, name, SyntaxConfig::default())?;
    let mut walker = Walker {
        found: Analysis::default(),
        loops: Vec::new(),
        scope: Scope::default(),
    };
    walker.statement(&tree);
    walker.found.slips_of_data = slips_of_data::find(&tree);
    walker.found.lost_sets = lost_sets::find(&tree);
    Ok(walker.found)
}

struct Walker {
    found: Analysis,
    /// Ranges of the loops around the current statement.
    loops: Vec<Range<usize>>,
    scope: Scope,
}

impl Walker {
    fn statements(&mut self, statements: &[Stmt<'_>]) {
        statements
            .iter()
            .for_each(|statement| self.statement(statement));
    }

    fn statement(&mut self, statement: &Stmt<'_>) {
        match statement {
            Stmt::Template(it) => self.statements(&it.children),
            Stmt::EmitExpr(it) => {
                self.expression(&it.expr);
                self.found.unexpanded.print(&it.expr);
            }
            Stmt::EmitRaw(_) => {}
            Stmt::ForLoop(it) => self.for_loop(it, range(it.span())),
            Stmt::IfCond(it) => {
                self.expression(&it.expr);
                self.statements(&it.true_body);
                self.statements(&it.false_body);
            }
            Stmt::WithBlock(_)
            | Stmt::Set(_)
            | Stmt::SetBlock(_)
            | Stmt::Import(_)
            | Stmt::FromImport(_) => {
                self.assignment(statement);
            }
            Stmt::AutoEscape(it) => {
                self.expression(&it.enabled);
                self.statements(&it.body);
            }
            Stmt::FilterBlock(it) => {
                self.expression(&it.filter);
                self.statements(&it.body);
            }
            Stmt::Block(it) => {
                let around = std::mem::replace(&mut self.scope, Scope::of_block());
                self.statements(&it.body);
                self.scope = around;
            }
            Stmt::Extends(it) => {
                self.import(&it.name);
            }
            Stmt::Include(it) => self.include(&it.name, it.ignore_missing),
            Stmt::Macro(it) => {
                self.assigned(it.name);
                self.macro_body(it);
            }
            Stmt::CallBlock(it) => {
                self.call(&it.call, range(it.call.span()));
                self.macro_body(&it.macro_decl);
            }
            Stmt::Do(it) => self.call(&it.call, range(it.call.span())),
        }
    }

    /// Handles a statement that assigns names.
    fn assignment(&mut self, statement: &Stmt<'_>) {
        match statement {
            Stmt::WithBlock(it) => {
                for (target, value) in &it.assignments {
                    self.assign(target);
                    self.expression(value);
                }
                self.statements(&it.body);
            }
            Stmt::Set(it) => {
                self.expression(&it.expr);
                self.found.unexpanded.set(it);
                self.assign(&it.target);
            }
            Stmt::SetBlock(it) => {
                it.filter.iter().for_each(|filter| self.expression(filter));
                self.statements(&it.body);
                self.assign(&it.target);
            }
            Stmt::Import(it) => {
                self.import(&it.expr);
                self.import_name(&it.name);
            }
            Stmt::FromImport(it) => {
                self.import(&it.expr);
                for (name, alias) in &it.names {
                    let target = alias.as_ref().unwrap_or(name);
                    self.assign(target);
                    self.imported(&it.expr, name, target);
                }
            }
            _ => {}
        }
    }

    fn imported(&mut self, template: &Expr<'_>, name: &Expr<'_>, target: &Expr<'_>) {
        let template = literal_name(template);
        if let (Some(template), Expr::Var(name), Expr::Var(target)) = (template, name, target) {
            self.found.imported.push(ImportedName {
                template,
                name: name.id.to_owned(),
                target: target.id.to_owned(),
                range: range(name.span()),
            });
        }
    }

    fn for_loop(&mut self, it: &ForLoop<'_>, range: Range<usize>) {
        self.expression(&it.iter);
        self.assign(&it.target);
        it.filter_expr
            .iter()
            .for_each(|filter| self.expression(filter));
        if self.loops.is_empty() {
            self.found.loops.push(range.clone());
        }
        self.loops.push(range);
        self.scope.enter_loop();
        self.statements(&it.body);
        self.scope.leave_loop();
        self.loops.pop();
        self.statements(&it.else_body);
    }

    fn macro_body(&mut self, it: &Macro<'_>) {
        let was_block = std::mem::replace(&mut self.scope.is_block, false);
        it.args.iter().for_each(|argument| self.assign(argument));
        it.defaults
            .iter()
            .for_each(|default| self.expression(default));
        self.statements(&it.body);
        self.scope.is_block = was_block;
    }

    /// Reports an import name that is not a plain name: the engine parses any expression here, but
    /// compiles only names.
    fn import_name(&mut self, name: &Expr<'_>) {
        if !matches!(name, Expr::Var(_)) {
            self.found.misplaced.push(Misplaced {
                range: range(name.span()),
                message: "a name must follow `as`",
                help: "write `{% import \"…\" as name %}`",
            });
        }
        self.assign(name);
    }

    fn assign(&mut self, target: &Expr<'_>) {
        match target {
            Expr::Var(var) => self.assigned(var.id),
            Expr::List(_) | Expr::Tuple(_) => {
                parts::visit(target, |item| self.assign(item));
            }
            // In `ns.x = …`, the namespace outlives the loop on purpose.
            Expr::GetAttr(it) => drop(self.found.namespace_members.insert(it.name.to_owned())),
            _ => {}
        }
    }

    fn assigned(&mut self, name: &str) {
        self.found.assigned.insert(name.to_owned());
    }

    fn import(&mut self, name: &Expr<'_>) {
        self.include(name, false);
    }

    fn include(&mut self, name: &Expr<'_>, ignore_missing: bool) {
        let names = literal_names(name);
        let is_literal = names.is_some();
        self.found.includes.push(Include {
            names: names.unwrap_or_default(),
            is_literal,
            ignore_missing,
            range: range(name.span()),
        });
        if !is_literal {
            self.expression(name);
        }
    }

    fn expression(&mut self, expression: &Expr<'_>) {
        match expression {
            Expr::Var(it) => self.variable(it.id, range(it.span())),
            Expr::Filter(it) => {
                if let ("default" | "d", Some(Expr::Var(var))) = (it.name, &it.expr) {
                    self.found.optional.insert(var.id.to_owned());
                }
                self.called(Callable::Filter, it.name, range(it.span()));
                self.parts(expression);
            }
            Expr::Test(it) => {
                if let ("defined" | "undefined", Expr::Var(var)) = (it.name, &it.expr) {
                    self.found.optional.insert(var.id.to_owned());
                }
                self.called(Callable::Test, it.name, range(it.span()));
                self.parts(expression);
            }
            Expr::GetAttr(it) => self.member_read(&it.expr, it.name),
            Expr::GetItem(it) => match literal_name(&it.subscript_expr) {
                Some(name) => self.member_read(&it.expr, &name),
                None => self.parts(expression),
            },
            Expr::Call(it) => self.call(it, range(it.span())),
            _ => self.parts(expression),
        }
    }

    fn variable(&mut self, name: &str, range: Range<usize>) {
        if name == "ctx" {
            // The whole object is passed on, so that any member may be read.
            self.found.reads.insert(ALL_OF_CTX.to_owned());
        }
        self.found.variables.push((name.to_owned(), range));
    }

    fn call(&mut self, call: &Call<'_>, range: Range<usize>) {
        match call.identify_call() {
            CallType::Function(name) => {
                self.file_call(name, &call.args, range);
                let range = parts::range(call.expr.span());
                self.found.misplaced.extend(self.scope.called(name, &range));
                self.called(Callable::Function, name, range);
                if name == "exists" {
                    return self.path_read(&call.args);
                }
                if name == "existsIn"
                    && let [CallArg::Pos(object), CallArg::Pos(key)] = call.args.as_slice()
                    && let Some(key) = literal_name(key)
                {
                    return self.member_read(object, &key);
                }
            }
            CallType::Method(object, name) => {
                self.called(Callable::Method, name, range);
                self.expression(object);
            }
            CallType::Object(object) => self.expression(object),
            CallType::Block(_) => {}
        }
        self.arguments(&call.args);
    }

    /// Records a call to a file function.
    fn file_call(&mut self, function: &str, arguments: &[CallArg<'_>], range: Range<usize>) {
        let literal = match arguments {
            [CallArg::Pos(argument)] => literal_name(argument),
            _ => None,
        };
        match (function, literal) {
            ("agent_role", Some(id)) => {
                let read = FileRead::of(role_path(&id), Some(id), range);
                self.found.file_reads.extend(read);
            }
            ("read_file", Some(path)) => {
                let read = FileRead::of(path, None, range);
                self.found.file_reads.extend(read);
            }
            ("file_exists", Some(path)) => drop(self.found.tested_files.insert(path)),
            ("file_exists", None) | ("read_dir", _) => self.found.tests_any_file = true,
            _ => {}
        }
    }

    /// Records a lookup by a path in the data; an unknown path may refer to any member.
    fn path_read(&mut self, args: &[CallArg<'_>]) {
        let path = match args {
            [CallArg::Pos(path)] => literal_name(path),
            _ => None,
        };
        let member = path
            .as_deref()
            .and_then(|path| path.strip_prefix("ctx."))
            .and_then(|rest| rest.split('.').next());
        match member {
            Some(member) if crate::conversation::CTX_MEMBERS.contains(&member) => {
                self.found.reads.insert(member.to_owned());
            }
            Some(_) => {}
            None => drop(self.found.reads.insert(ALL_OF_CTX.to_owned())),
        }
        self.arguments(args);
    }

    fn parts(&mut self, expression: &Expr<'_>) {
        parts::visit(expression, |part| self.expression(part));
    }

    fn arguments(&mut self, arguments: &[CallArg<'_>]) {
        parts::visit_arguments(arguments, |argument| self.expression(argument));
    }

    fn called(&mut self, what: Callable, name: &str, range: Range<usize>) {
        self.found.calls.push(Called {
            what,
            name: name.to_owned(),
            range,
        });
    }

    /// Handles a read of one member: notes a member of `ctx`, and visits any other object.
    fn member_read(&mut self, object: &Expr<'_>, name: &str) {
        match object {
            Expr::Var(var) if var.id == "ctx" => {
                // Other names are irrelevant, and there may be very many.
                if crate::conversation::CTX_MEMBERS.contains(&name) {
                    self.found.reads.insert(name.to_owned());
                }
                self.found
                    .variables
                    .push((var.id.to_owned(), range(var.span())));
            }
            Expr::Var(var) if var.id == "loop" => {
                self.found
                    .variables
                    .push((var.id.to_owned(), range(var.span())));
            }
            object => self.expression(object),
        }
    }
}
