//! The tree of a template for evaluation: an owned form of the engine's syntax tree, with locations
//! in the author's text.
//!
//! Nodes contain their locations, so that any event can be reported there.

use minijinja::Value;
use minijinja::machinery::ast::{BinOpKind, CompareOpKind};

use super::super::builtins::{Filter, Test};
use super::super::place::Place;

/// A template.
#[derive(Debug)]
pub(in super::super) struct Template {
    /// The template's number in its engine.
    pub(in super::super) number: u32,
    pub(super) body: Vec<Stmt>,
    /// The template's blocks, at any nesting level.
    pub(super) blocks: Vec<Block>,
}

/// A `{% block %}`.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) name: Box<str>,
    pub(super) required: bool,
    pub(super) body: Vec<Stmt>,
}

/// A statement.
#[derive(Debug)]
pub(super) struct Stmt {
    /// The tag, with its braces; for literal text, the text itself.
    pub(super) at: Place,
    pub(super) kind: StmtKind,
}

/// The kinds of statements.
#[derive(Debug)]
pub(super) enum StmtKind {
    Raw(Box<str>),
    Emit(Emit),
    For(Box<For>),
    If(If),
    With(Vec<(Target, Expr)>, Vec<Stmt>),
    Set(Target, Expr),
    SetBlock {
        target: Target,
        filter: Option<Expr>,
        body: Vec<Stmt>,
    },
    AutoEscape(Expr, Vec<Stmt>),
    FilterBlock(Expr, Vec<Stmt>),
    /// A block at this location, by its name.
    Block(Box<str>),
    Import {
        from: Expr,
        name: Box<str>,
    },
    FromImport {
        from: Expr,
        names: Vec<Imported>,
    },
    Extends(Expr),
    Include {
        name: Expr,
        ignore_missing: bool,
        inner: Place,
    },
    Macro(Box<Macro>),
    CallBlock(Box<Call>, Box<Macro>),
    Do(Box<Call>),
}

/// The effect of `{{ … }}`.
#[derive(Debug)]
pub(super) enum Emit {
    Value(Expr),
    /// `{{ super() }}`.
    Super,
    /// `{{ loop(…) }}`: runs the enclosing loop again, over this value.
    Loop(Expr),
    /// `{{ self.name() }}`.
    Block(Box<str>),
}

/// A name in `{% from … import … %}`.
#[derive(Debug)]
pub(super) struct Imported {
    pub(super) name: Expr,
    pub(super) target: Target,
}

/// The target of an assignment.
#[derive(Debug)]
pub(super) enum Target {
    Name(Box<str>),
    List(Place, Vec<Target>),
    Member {
        object: Box<Expr>,
        name: Box<str>,
        at: Place,
    },
}

impl Target {
    /// Returns `true` if the target is a member of a namespace.
    pub(super) fn is_in_namespace(&self) -> bool {
        match self {
            Target::Name(_) => false,
            Target::List(_, targets) => targets.iter().any(Target::is_in_namespace),
            Target::Member { .. } => true,
        }
    }
}

/// A `{% for %}`.
#[derive(Debug)]
pub(super) struct For {
    pub(super) target: Target,
    pub(super) iter: Expr,
    /// `true` if the loop iterates over an object by key and value, as in inja.
    pub(super) by_pairs: bool,
    pub(super) filter: Option<Expr>,
    pub(super) recursive: bool,
    pub(super) body: Vec<Stmt>,
    pub(super) otherwise: Vec<Stmt>,
    /// The `{% else %}` tag.
    pub(super) else_at: Place,
}

/// An `{% if %}` or `{% elif %}`.
#[derive(Debug)]
pub(super) struct If {
    pub(super) test: Expr,
    pub(super) body: Vec<Stmt>,
    /// The statements after `{% else %}`, or the next `{% elif %}`.
    pub(super) otherwise: Vec<Stmt>,
    /// The `{% else %}` tag, if there is one.
    pub(super) else_at: Option<Place>,
}

/// A `{% macro %}`, or the body of a `{% call %}`.
#[derive(Debug)]
pub(super) struct Macro {
    pub(super) name: Box<str>,
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Vec<Stmt>,
    /// The variables that the macro captures where it is declared.
    pub(super) enclosed: Vec<Box<str>>,
    /// `true` if the macro uses its `caller`.
    pub(super) wants_caller: bool,
    /// The tag that begins the macro.
    pub(super) at: Place,
}

/// A parameter of a macro.
#[derive(Debug)]
pub(super) struct Parameter {
    /// The location of the parameter's name in the declaration.
    pub(super) at: Place,
    pub(super) name: Box<str>,
    pub(super) default: Option<Expr>,
}

/// An expression.
#[derive(Debug)]
pub(super) struct Expr {
    /// The location without surrounding parentheses.
    pub(super) at: Place,
    pub(super) kind: ExprKind,
}

/// The kinds of expressions.
#[derive(Debug)]
pub(super) enum ExprKind {
    Const(Value),
    Var(Box<str>),
    /// `${PROJECT_DIR}` or a similar variable in a prompt's own text.
    Folder(Box<str>),
    Member {
        base: Box<Expr>,
        name: Box<str>,
        optional: bool,
    },
    Item {
        base: Box<Expr>,
        key: Box<Expr>,
        optional: bool,
    },
    Slice(Box<Slice>),
    Not(Box<Expr>),
    Neg(Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Binary(BinOpKind, Box<Expr>, Box<Expr>),
    Compare(Box<Expr>, Vec<(CompareOpKind, Expr)>),
    If(Box<Choice>),
    Filter(Box<Filtered>),
    Test(Box<Tested>),
    Call(Box<Call>),
    List(Vec<Expr>),
    Tuple(Vec<Expr>),
    Map(Vec<(Expr, Expr)>),
}

/// `base[start:stop:step]`.
#[derive(Debug)]
pub(super) struct Slice {
    pub(super) base: Expr,
    pub(super) start: Option<Expr>,
    pub(super) stop: Option<Expr>,
    pub(super) step: Option<Expr>,
}

/// `then if test else otherwise`.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) test: Expr,
    pub(super) then: Expr,
    pub(super) otherwise: Option<Expr>,
}

/// `input | filter(arguments)`.
#[derive(Debug)]
pub(super) struct Filtered {
    /// The filter with its arguments, without its input.
    pub(super) own: Place,
    pub(super) filter: Filter,
    /// `None` for the first filter of a block, whose input is the block's text.
    pub(super) input: Option<Expr>,
    pub(super) arguments: Vec<Argument>,
}

/// `input is test(arguments)`.
#[derive(Debug)]
pub(super) struct Tested {
    pub(super) test: Test,
    pub(super) input: Expr,
    pub(super) arguments: Vec<Argument>,
}

/// A call.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) at: Place,
    pub(super) callee: Callee,
    pub(super) arguments: Vec<Argument>,
}

/// The target of a call.
#[derive(Debug)]
pub(super) enum Callee {
    Name(Box<str>),
    /// A method, with the location of its name and arguments.
    Method(Expr, Box<str>, Place),
    Value(Expr),
    Block(Box<str>),
}

/// An argument of a call.
#[derive(Debug)]
pub(super) enum Argument {
    Value(Expr),
    Named(Box<str>, Expr),
    Spread(Expr),
    SpreadNamed(Expr),
}

impl Argument {
    /// Returns `true` if the argument is passed by name.
    pub(super) fn is_named(&self) -> bool {
        matches!(self, Argument::Named(..) | Argument::SpreadNamed(_))
    }

    /// Returns the argument's expression.
    pub(super) fn expression(&self) -> &Expr {
        let (Argument::Value(it)
        | Argument::Named(_, it)
        | Argument::Spread(it)
        | Argument::SpreadNamed(it)) = self;
        it
    }
}
