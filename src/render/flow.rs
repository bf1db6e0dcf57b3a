//! Where the system prompt goes in a template: whether its text only gets into the output.
//!
//! If it does, what the template gives for one prompt is what it gives for any other, with the other text in its places: it is
//! rendered once for all of them. So this must never say so of a template that looks at the text. Names are taken for the
//! same thing wherever they stand, branches and order are not looked at, and what is not known here looks at the text.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use minijinja::machinery;
use minijinja::machinery::ast::{self, BinOpKind, CallArg, CallType, CompareOpKind, Expr, Stmt, UnaryOpKind};
use minijinja::syntax::SyntaxConfig;

use super::functions::INDEX_FROM_0;
use super::operators;

/// How often the facts are gone through before a template counts as one that looks at the text.
const MOST_ROUNDS: usize = 16;

/// Functions that give something else than a text of what they are given.
const READING: [&str; 9] = [
    "existsIn",
    "length",
    "filter_by_type",
    "filter_skip_role",
    "strip_signature_suffix",
    "tool_id",
    "range",
    INDEX_FROM_0,
    operators::TEXT,
];
/// Tests of the kind of a value.
const KINDS: [&str; 14] = [
    "boolean",
    "defined",
    "false",
    "float",
    "int",
    "integer",
    "iterable",
    "mapping",
    "none",
    "number",
    "sequence",
    "string",
    "true",
    "undefined",
];

/// What may hold the system prompt, as a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Held(u8);

impl Held {
    const NOTHING: Held = Held(0);
    /// A text with the prompt in it.
    const TEXT: Held = Held(1);
    /// A text with the prompt in it as JSON.
    const JSON: Held = Held(2);
    /// A list or an object of such texts.
    const HOLDER: Held = Held(4);
    /// `ctx` as a whole.
    const CTX: Held = Held(8);

    fn and(self, other: Held) -> Held {
        Held(self.0 | other.0)
    }

    fn has(self, other: Held) -> bool {
        self.0 & other.0 != 0
    }

    fn without(self, other: Held) -> Held {
        Held(self.0 & !other.0)
    }
}

/// What an expression does with what it is given.
#[derive(Debug)]
enum Term {
    /// Nothing of the prompt.
    Plain,
    Variable(Box<str>),
    Member(Box<Term>, Box<str>),
    /// A member whose name is computed.
    Index(Box<Term>, Box<Term>),
    /// One of these.
    OneOf(Vec<Term>),
    /// These texts, one behind the other.
    Joined(Vec<Term>),
    Sum(Box<Term>, Box<Term>),
    Json(Box<Term>),
    /// A list or an object of these.
    Holder(Vec<Term>),
    /// The elements of a list with a text between.
    List(Box<Term>, Box<Term>),
    /// Asked for its truth or its kind.
    Asked(Vec<Term>),
    /// Looked for in something.
    Sought(Box<Term>, Box<Term>),
    /// Looked at in any way.
    Read(Vec<Term>),
    Call(Box<str>, Vec<Argument>),
    Method(Box<Term>, Box<str>, Vec<Argument>),
}

#[derive(Debug)]
struct Argument {
    name: Option<Box<str>>,
    value: Term,
}

/// A text that is written: the output of a template, a macro or a block. A number within its template.
type Sink = usize;

#[derive(Debug)]
enum Fact {
    Assign(Box<str>, Term),
    /// A variable gets what was written.
    Captured(Box<str>, Sink),
    Write(Sink, Term),
    /// What was written is looked at.
    Filtered(Sink),
    Include(Sink, Vec<String>),
    Loop(Term),
    Look(Term),
}

/// What one template does, by itself.
#[derive(Debug, Default)]
pub(super) struct Flow {
    facts: Vec<Fact>,
    macros: Vec<(Box<str>, Macro)>,
    /// Variables that hold what `import` gives.
    modules: Vec<Box<str>>,
    /// Other names of what is imported.
    aliases: Vec<(Box<str>, Box<str>)>,
    sinks: usize,
    /// Whether there is something in it that is not looked into.
    is_beyond: bool,
}

#[derive(Debug)]
struct Macro {
    parameters: Vec<Box<str>>,
    output: Sink,
}

impl Flow {
    /// Looks through a template as it was compiled.
    pub(super) fn of(text: &str, name: &str) -> Flow {
        let mut flow = Flow { sinks: 1, ..Flow::default() };
        match machinery::parse(text, name, SyntaxConfig::default()) {
            Ok(tree) => flow.statement(&tree, 0),
            Err(_) => flow.is_beyond = true,
        }
        flow
    }

    /// How much there is to go through.
    pub(super) fn len(&self) -> usize {
        self.facts.len()
    }

    fn sink(&mut self) -> Sink {
        self.sinks += 1;
        self.sinks - 1
    }

    fn add(&mut self, fact: Fact) {
        self.facts.push(fact);
    }

    fn statements(&mut self, statements: &[Stmt<'_>], out: Sink) {
        statements.iter().for_each(|statement| self.statement(statement, out));
    }

    fn statement(&mut self, statement: &Stmt<'_>, out: Sink) {
        match statement {
            Stmt::Template(it) => self.statements(&it.children, out),
            Stmt::EmitExpr(it) => self.add(Fact::Write(out, term(&it.expr))),
            Stmt::EmitRaw(_) => {}
            Stmt::ForLoop(it) => self.repeated(it, out),
            Stmt::IfCond(it) => {
                self.look([&it.expr].into_iter());
                self.statements(&it.true_body, out);
                self.statements(&it.false_body, out);
            }
            Stmt::WithBlock(it) => {
                it.assignments.iter().for_each(|(target, value)| self.assign(target, value));
                self.statements(&it.body, out);
            }
            Stmt::Set(it) => self.assign(&it.target, &it.expr),
            Stmt::SetBlock(it) => self.capture(it),
            Stmt::FilterBlock(it) => self.filtered(it),
            Stmt::Import(it) => match &it.name {
                Expr::Var(name) => self.modules.push(name.id.into()),
                _ => self.is_beyond = true,
            },
            Stmt::FromImport(it) => it.names.iter().for_each(|(name, alias)| self.import(name, alias.as_ref())),
            Stmt::Include(it) => match super::analyse::literal_names(&it.name) {
                Some(names) => self.add(Fact::Include(out, names)),
                None => self.is_beyond = true,
            },
            Stmt::Macro(it) => self.define(it),
            Stmt::CallBlock(it) => {
                self.define(&it.macro_decl);
                self.add(Fact::Write(out, call(&it.call)));
            }
            Stmt::Do(it) => self.add(Fact::Look(Term::Asked(vec![call(&it.call)]))),
            // What is inherited is put together elsewhere; what is escaped for HTML is another text.
            Stmt::AutoEscape(_) | Stmt::Block(_) | Stmt::Extends(_) => self.is_beyond = true,
        }
    }

    fn repeated(&mut self, it: &ast::ForLoop<'_>, out: Sink) {
        self.is_beyond |= it.recursive;
        self.add(Fact::Loop(term(&it.iter)));
        self.look(it.filter_expr.iter());
        self.statements(&it.body, out);
        self.statements(&it.else_body, out);
    }

    fn filtered(&mut self, it: &ast::FilterBlock<'_>) {
        let inner = self.sink();
        self.statements(&it.body, inner);
        self.add(Fact::Filtered(inner));
        self.add(Fact::Look(Term::Read(vec![term(&it.filter)])));
    }

    fn look<'e, 'a: 'e>(&mut self, asked: impl Iterator<Item = &'e Expr<'a>>) {
        self.add(Fact::Look(Term::Asked(asked.map(term).collect())));
    }

    fn assign(&mut self, target: &Expr<'_>, value: &Expr<'_>) {
        self.add(match target {
            Expr::Var(name) => Fact::Assign(name.id.into(), term(value)),
            _ => Fact::Look(Term::Read(vec![term(value)])),
        });
    }

    fn capture(&mut self, it: &ast::SetBlock<'_>) {
        let inner = self.sink();
        self.statements(&it.body, inner);
        self.add(match (&it.target, &it.filter) {
            (Expr::Var(name), None) => Fact::Captured(name.id.into(), inner),
            _ => Fact::Filtered(inner),
        });
        self.add(Fact::Look(Term::Read(it.filter.iter().map(term).collect())));
    }

    fn import(&mut self, name: &Expr<'_>, alias: Option<&Expr<'_>>) {
        match (name, alias.unwrap_or(name)) {
            (Expr::Var(name), Expr::Var(alias)) => {
                self.aliases.push((alias.id.into(), name.id.into()));
                self.add(Fact::Assign(alias.id.into(), Term::Variable(name.id.into())));
            }
            _ => self.is_beyond = true,
        }
    }

    fn define(&mut self, it: &ast::Macro<'_>) {
        let output = self.sink();
        let name = |argument: &Expr<'_>| match argument {
            Expr::Var(name) => Some(Box::from(name.id)),
            _ => None,
        };
        let parameters: Option<Vec<Box<str>>> = it.args.iter().map(name).collect();
        self.is_beyond |= parameters.is_none();
        let parameters = parameters.unwrap_or_default();
        let defaulted = parameters.iter().rev().zip(it.defaults.iter().rev());
        let defaults: Vec<Fact> = defaulted.map(|(name, value)| Fact::Assign(name.clone(), term(value))).collect();
        self.facts.extend(defaults);
        self.statements(&it.body, output);
        self.macros.push((it.name.into(), Macro { parameters, output }));
    }
}

fn term(expression: &Expr<'_>) -> Term {
    let boxed = |expression| Box::new(term(expression));
    match expression {
        Expr::Var(it) => Term::Variable(it.id.into()),
        Expr::Const(_) => Term::Plain,
        Expr::Slice(it) => {
            let bounds = [&it.start, &it.stop, &it.step].into_iter().flatten();
            Term::Read(std::iter::once(&it.expr).chain(bounds).map(term).collect())
        }
        Expr::UnaryOp(it) => match it.op {
            UnaryOpKind::Not => Term::Asked(vec![term(&it.expr)]),
            UnaryOpKind::Neg => Term::Read(vec![term(&it.expr)]),
        },
        Expr::BinOp(it) => binary(it),
        Expr::Compare(it) => {
            let mut operands = vec![&it.expr];
            operands.extend(it.ops.iter().map(|operand| &operand.expr));
            let is_equality = it.ops.iter().all(|it| matches!(it.op, CompareOpKind::Eq | CompareOpKind::Ne));
            compared(&operands, is_equality)
        }
        Expr::IfExpr(it) => {
            let asked = Term::Asked(vec![term(&it.test_expr)]);
            let others = it.false_expr.iter().map(term);
            Term::OneOf([asked, term(&it.true_expr)].into_iter().chain(others).collect())
        }
        Expr::Filter(it) => filter(it),
        Expr::Test(it) => test(it),
        Expr::GetAttr(it) => Term::Member(boxed(&it.expr), it.name.into()),
        Expr::GetItem(it) => match super::analyse::literal_name(&it.subscript_expr) {
            Some(name) => Term::Member(boxed(&it.expr), name.into()),
            None => Term::Index(boxed(&it.expr), boxed(&it.subscript_expr)),
        },
        Expr::Call(it) => call(it),
        Expr::List(it) => Term::Holder(it.items.iter().map(term).collect()),
        Expr::Tuple(it) => Term::Holder(it.items.iter().map(term).collect()),
        Expr::Map(it) => {
            let keys = Term::Read(it.keys.iter().map(term).collect());
            Term::Holder(std::iter::once(keys).chain(it.values.iter().map(term)).collect())
        }
    }
}

fn test(it: &ast::Test<'_>) -> Term {
    let operands = std::iter::once(term(&it.expr)).chain(arguments(&it.args).into_iter().map(|it| it.value));
    if KINDS.contains(&it.name) { Term::Asked(operands.collect()) } else { Term::Read(operands.collect()) }
}

fn binary(it: &ast::BinOp<'_>) -> Term {
    let both = || vec![term(&it.left), term(&it.right)];
    match it.op {
        BinOpKind::Concat => Term::Joined(both()),
        BinOpKind::Add => Term::Sum(Box::new(term(&it.left)), Box::new(term(&it.right))),
        BinOpKind::ScAnd | BinOpKind::ScOr => Term::OneOf(both()),
        BinOpKind::Eq | BinOpKind::Ne => compared(&[&it.left, &it.right], true),
        BinOpKind::In => Term::Sought(Box::new(term(&it.left)), Box::new(term(&it.right))),
        _ => Term::Read(both()),
    }
}

/// A text with the prompt in it is not empty, and no number: whether it equals such a literal says nothing of the text.
fn compared(operands: &[&Expr<'_>], is_equality: bool) -> Term {
    let is_apart = |operand: &&&Expr<'_>| match operand {
        Expr::Const(it) => it.value.as_str().is_none_or(str::is_empty),
        _ => false,
    };
    let terms = operands.iter().map(|operand| term(operand)).collect();
    match is_equality && operands.len() == 2 && operands.iter().any(|operand| is_apart(&operand)) {
        true => Term::Asked(terms),
        false => Term::Read(terms),
    }
}

fn filter(it: &ast::Filter<'_>) -> Term {
    // In a filter block there is nothing before the filter.
    let Some(inner) = it.expr.as_ref().map(term) else {
        return Term::Read(arguments(&it.args).into_iter().map(|it| it.value).collect());
    };
    let mut arguments = arguments(&it.args);
    match (it.name, arguments.len()) {
        ("tojson", 0) => Term::Json(Box::new(inner)),
        ("string", 0) => Term::Joined(vec![inner]),
        ("default" | "d", _) => {
            Term::OneOf(std::iter::once(inner).chain(arguments.into_iter().map(|it| it.value)).collect())
        }
        ("join", 1) if arguments[0].name.is_none() => Term::List(Box::new(inner), Box::new(arguments.remove(0).value)),
        ("join", 0) => Term::List(Box::new(inner), Box::new(Term::Plain)),
        ("length" | "count", 0) => Term::Sought(Box::new(Term::Plain), Box::new(inner)),
        _ => Term::Read(std::iter::once(inner).chain(arguments.into_iter().map(|it| it.value)).collect()),
    }
}

fn arguments(arguments: &[CallArg<'_>]) -> Vec<Argument> {
    let argument = |argument: &CallArg<'_>| match argument {
        CallArg::Pos(it) => Argument { name: None, value: term(it) },
        CallArg::Kwarg(name, it) => Argument { name: Some((*name).into()), value: term(it) },
        // Nobody knows which parameters these are.
        CallArg::PosSplat(it) | CallArg::KwargSplat(it) => Argument { name: None, value: Term::Read(vec![term(it)]) },
    };
    arguments.iter().map(argument).collect()
}

fn call(call: &ast::Call<'_>) -> Term {
    match call.identify_call() {
        CallType::Function(name) => Term::Call(name.into(), arguments(&call.args)),
        CallType::Method(object, name) => Term::Method(Box::new(term(object)), name.into(), arguments(&call.args)),
        CallType::Object(_) | CallType::Block(_) => {
            // Whatever it is, it could give anything.
            let arguments = arguments(&call.args).into_iter().map(|it| it.value).collect();
            Term::OneOf(vec![
                Term::Read(arguments),
                Term::Index(Box::new(Term::Variable("ctx".into())), Box::new(Term::Plain)),
            ])
        }
    }
}

/// Some templates that are rendered together: one, and all that it includes.
struct Flows<'f> {
    templates: Vec<(Arc<str>, &'f Flow)>,
    /// Each template by its name.
    index: HashMap<&'f str, usize>,
    macros: HashMap<&'f str, Vec<(usize, &'f Macro)>>,
    variables: HashMap<&'f str, Held>,
    sinks: Vec<Vec<Held>>,
    is_changed: bool,
    /// Whether the text is looked at.
    is_read: bool,
}

/// Whether templates that are rendered together do no more with the system prompt than to write it.
pub(super) fn only_writes<'f>(flows: &'f BTreeMap<Arc<str>, &'f Flow>) -> bool {
    if flows.values().any(|flow| flow.is_beyond) {
        return false;
    }
    let mut all = Flows {
        templates: flows.iter().map(|(name, flow)| (Arc::clone(name), *flow)).collect(),
        index: flows.keys().enumerate().map(|(index, name)| (&**name, index)).collect(),
        macros: HashMap::new(),
        variables: HashMap::from([("ctx", Held::CTX)]),
        sinks: flows.values().map(|flow| vec![Held::NOTHING; flow.sinks]).collect(),
        is_changed: false,
        is_read: false,
    };
    all.name_macros();
    all.is_settled()
}

impl<'f> Flows<'f> {
    fn name_macros(&mut self) {
        for (index, (_, flow)) in self.templates.iter().enumerate() {
            for (name, it) in &flow.macros {
                self.macros.entry(name).or_default().push((index, it));
            }
        }
        let aliases: Vec<&'f (Box<str>, Box<str>)> =
            self.templates.iter().flat_map(|(_, flow)| &flow.aliases).collect();
        // An import of an import: each round leads one further.
        for _ in 0..MOST_ROUNDS {
            for (alias, name) in aliases.iter().copied().filter(|(alias, name)| alias != name) {
                let named = self.macros.get(&**name).cloned().unwrap_or_default();
                let known = self.macros.entry(alias).or_default();
                let is_new = |it: &(usize, &Macro)| !known.iter().any(|(_, other)| std::ptr::eq(*other, it.1));
                let new: Vec<_> = named.into_iter().filter(is_new).collect();
                known.extend(new);
            }
        }
        self.macros.retain(|_, named| !named.is_empty());
    }

    /// Goes through the facts until nothing new is known; `false` if the text is looked at, or might be.
    fn is_settled(&mut self) -> bool {
        for _ in 0..MOST_ROUNDS {
            self.is_changed = false;
            for index in 0..self.templates.len() {
                let flow = self.templates[index].1;
                flow.facts.iter().for_each(|fact| self.fact(index, fact));
            }
            if self.is_read {
                return false;
            }
            if !self.is_changed {
                return true;
            }
        }
        false
    }

    fn fact(&mut self, at: usize, fact: &'f Fact) {
        match fact {
            Fact::Assign(name, value) => {
                let held = self.held(value);
                self.assign(name, held);
            }
            Fact::Captured(name, sink) => self.assign(name, self.sinks[at][*sink]),
            Fact::Write(sink, value) => {
                let held = self.held(value);
                self.write(at, *sink, as_text(held));
            }
            Fact::Filtered(sink) => {
                let held = self.sinks[at][*sink];
                self.read(held);
            }
            Fact::Include(sink, names) => {
                for name in names {
                    let target = self.index.get(&*super::includes::full_name(name)).copied();
                    let held = target.map_or(Held::NOTHING, |target| self.sinks[target][0]);
                    self.write(at, *sink, held);
                }
            }
            Fact::Loop(value) => {
                // The keys of `ctx` say nothing of its texts.
                let held = self.held(value).without(Held::CTX);
                self.read(held);
            }
            Fact::Look(value) => drop(self.held(value)),
        }
    }

    fn assign(&mut self, name: &'f str, held: Held) {
        let known = self.variables.entry(name).or_default();
        let both = known.and(held);
        self.is_changed |= both != *known;
        *known = both;
    }

    fn write(&mut self, at: usize, sink: Sink, held: Held) {
        let both = self.sinks[at][sink].and(held);
        self.is_changed |= both != self.sinks[at][sink];
        self.sinks[at][sink] = both;
    }

    fn read(&mut self, held: Held) {
        self.is_read |= held != Held::NOTHING;
    }

    fn read_all(&mut self, values: &'f [Term]) {
        for value in values {
            let held = self.held(value);
            self.read(held);
        }
    }

    fn held_by_any(&mut self, values: &'f [Term]) -> Held {
        values.iter().fold(Held::NOTHING, |held, value| held.and(self.held(value)))
    }

    fn held(&mut self, value: &'f Term) -> Held {
        match value {
            Term::Plain => Held::NOTHING,
            Term::Variable(name) => {
                // A module is used by its members alone.
                self.is_read |= self.is_module(name);
                self.variables.get(&**name).copied().unwrap_or_default()
            }
            Term::Member(object, name) => self.member(object, name),
            Term::Index(object, index) => {
                let (object, index) = (self.held(object), self.held(index));
                self.read(object.without(Held::CTX).and(index));
                if object.has(Held::CTX) { Held::TEXT } else { Held::NOTHING }
            }
            Term::OneOf(values) => self.held_by_any(values),
            Term::Joined(_) | Term::Sum(..) | Term::Json(_) | Term::Holder(_) | Term::List(..) => self.made(value),
            Term::Asked(values) => {
                self.held_by_any(values);
                Held::NOTHING
            }
            Term::Sought(needle, hay) => {
                let (needle, hay) = (self.held(needle), self.held(hay));
                self.read(needle.and(hay.without(Held::CTX)));
                Held::NOTHING
            }
            Term::Read(values) => {
                self.read_all(values);
                Held::NOTHING
            }
            Term::Call(name, arguments) => self.call(name, arguments),
            Term::Method(object, name, arguments) => {
                let is_module = matches!(&**object, Term::Variable(variable) if self.is_module(variable));
                let object = if is_module { Held::NOTHING } else { self.held(object) };
                self.read(object);
                self.call_macro(name, arguments)
            }
        }
    }

    /// The same of a value that others are put together to.
    fn made(&mut self, value: &'f Term) -> Held {
        match value {
            Term::Joined(values) => {
                let held = self.held_by_any(values);
                self.read(held.without(Held::TEXT.and(Held::JSON)));
                held
            }
            Term::Sum(left, right) => {
                let held = self.held(left).and(self.held(right));
                self.is_read |= held.has(Held::CTX);
                held
            }
            Term::Json(value) => {
                let held = self.held(value);
                self.json(held)
            }
            Term::Holder(values) => holder(self.held_by_any(values), self),
            Term::List(list, between) => {
                let (list, between) = (self.held(list), self.held(between));
                self.read(list.without(Held::HOLDER));
                self.read(between.without(Held::TEXT));
                if list.and(between) == Held::NOTHING { Held::NOTHING } else { Held::TEXT }
            }
            _ => Held::NOTHING,
        }
    }

    /// What is JSON already would be escaped twice.
    fn json(&mut self, held: Held) -> Held {
        self.is_read |= held.has(Held::JSON);
        if held == Held::NOTHING { held } else { Held::JSON }
    }

    fn is_module(&self, name: &str) -> bool {
        self.templates.iter().any(|(_, flow)| flow.modules.iter().any(|module| **module == *name))
    }

    fn member(&mut self, object: &'f Term, name: &'f str) -> Held {
        if let Term::Variable(variable) = object
            && self.is_module(variable)
        {
            return self.variables.get(name).copied().unwrap_or_default();
        }
        let object = self.held(object);
        let of_ctx = object.has(Held::CTX) && name == "system_prompt";
        let of_holder =
            if object.has(Held::HOLDER) { Held::TEXT.and(Held::JSON).and(Held::HOLDER) } else { Held::NOTHING };
        of_holder.and(if of_ctx { Held::TEXT } else { Held::NOTHING })
    }

    fn call(&mut self, name: &'f str, arguments: &'f [Argument]) -> Held {
        if self.macros.contains_key(name) {
            return self.call_macro(name, arguments);
        }
        match (name, arguments) {
            ("tojson", [value]) => {
                let held = self.held(&value.value);
                self.json(held)
            }
            ("existsIn", [object, key]) => {
                let (object, key) = (self.held(&object.value), self.held(&key.value));
                self.read(object.without(Held::CTX).and(key));
                Held::NOTHING
            }
            ("dict", _) => {
                let held = arguments.iter().fold(Held::NOTHING, |held, it| held.and(self.held(&it.value)));
                holder(held, self)
            }
            (name, [value, ..]) if operators::is_guard(name) => self.held(&value.value),
            _ => {
                self.read_arguments(arguments);
                // A variable may hold any macro.
                match READING.contains(&name) || name == "namespace" || operators::SLICE == name {
                    true => Held::NOTHING,
                    false => self.anything(),
                }
            }
        }
    }

    fn read_arguments(&mut self, arguments: &'f [Argument]) {
        for argument in arguments {
            let held = self.held(&argument.value);
            self.read(held);
        }
    }

    /// What any macro might write.
    fn anything(&self) -> Held {
        let macros = self.macros.values().flatten();
        let held = macros.fold(Held::NOTHING, |held, (at, it)| held.and(self.sinks[*at][it.output]));
        held.and(Held::TEXT)
    }

    fn call_macro(&mut self, name: &'f str, arguments: &'f [Argument]) -> Held {
        let Some(named) = self.macros.get(name).cloned() else {
            self.read_arguments(arguments);
            return self.anything();
        };
        let mut held = Held::NOTHING;
        for (at, it) in named {
            for (index, argument) in arguments.iter().enumerate() {
                let parameter = match &argument.name {
                    Some(name) => it.parameters.iter().find(|parameter| *parameter == name),
                    None => it.parameters.get(index),
                };
                let value = self.held(&argument.value);
                match parameter {
                    Some(parameter) => self.assign(parameter, value),
                    None => self.read(value),
                }
            }
            held = held.and(self.sinks[at][it.output]);
        }
        held
    }
}

/// Values that hold something, put into a list or an object.
fn holder(held: Held, flows: &mut Flows<'_>) -> Held {
    // Its place among other members could be asked for.
    flows.is_read |= held.has(Held::CTX.and(Held::JSON));
    if held == Held::NOTHING { held } else { Held::HOLDER }
}

/// What a tag writes: lists and objects become JSON.
fn as_text(held: Held) -> Held {
    let json = if held.has(Held::HOLDER.and(Held::CTX)) { Held::JSON } else { Held::NOTHING };
    held.without(Held::HOLDER.and(Held::CTX)).and(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only_writes_all(templates: &[(&str, &str)]) -> bool {
        let flows: Vec<(Arc<str>, Flow)> =
            templates.iter().map(|(name, text)| (Arc::from(*name), Flow::of(text, name))).collect();
        super::only_writes(&flows.iter().map(|(name, flow)| (Arc::clone(name), flow)).collect())
    }

    fn only_writes(text: &str) -> bool {
        only_writes_all(&[("t", text)])
    }

    #[test]
    fn what_is_written_joined_or_asked_for_its_truth() {
        for text in [
            "{{ ctx.system_prompt }}",
            "{{ tojson(ctx.system_prompt) }}{{ ctx['system_prompt'] | tojson }}",
            "{% if ctx.system_prompt is defined and ctx.system_prompt %}{{ tojson('a' ~ ctx.system_prompt + 'b') }}{% endif %}",
            "{% if existsIn(ctx, 'system_prompt') and ctx.system_prompt != '' %}x{% endif %}",
            "{% set t %}{{ ctx.system_prompt }}, {{ ctx.x }}{% endset %}{{ tojson(t) if t else '' }}",
            "{% set c = ctx %}{{ tojson(c) }}{% for m in c.history %}{{ m.role == 'user' }}{% endfor %}",
            "{{ tojson([{'role': 'system', 'content': ctx.system_prompt}] + []) }}",
            "{{ tojson([ctx.system_prompt, 'x'] | join('\n')) }}",
            "{% macro m(c, d='') %}{% if c.system_prompt %}{{ c.system_prompt }}{{ d }}{% endif %}{% endmacro %}\
             {% set t = m(ctx) %}{{ tojson(t) }}{{ 'x' in ctx.history }}",
            "{% for key in ctx %}{{ key == 'x' }}{% endfor %}{{ 'system_prompt' in ctx }}{{ ctx | length }}",
            "{{ tojson(ctx.system_prompt | default('x')) }}",
            "{% for m in ctx.history %}{% if _i(loop) == 0 %}{{ ctx.system_prompt }}{% endif %}{% endfor %}",
        ] {
            assert!(only_writes(text), "{text}");
        }
    }

    #[test]
    fn what_looks_at_the_text() {
        for text in [
            "{{ ctx.system_prompt | length }}",
            "{{ ctx.system_prompt[0] }}{{ ctx.system_prompt[:3] }}",
            "{{ 'two' in ctx.system_prompt }}",
            "{{ ctx.system_prompt == 'x' }}",
            "{{ ctx.system_prompt is eq 'x' }}",
            "{{ ctx.system_prompt | upper }}{{ ctx.system_prompt | trim }}",
            "{% for c in ctx.system_prompt %}{% endfor %}",
            "{% set t %}{{ ctx.system_prompt }}{% endset %}{{ t == 'x' }}",
            "{% set t | upper %}{{ ctx.system_prompt }}{% endset %}{{ t }}",
            "{% filter upper %}{{ ctx.system_prompt }}{% endfilter %}",
            "{% for k, v in ctx | items %}{{ v == 'x' }}{% endfor %}",
            "{% for k in ctx %}{{ ctx[k] == 'x' }}{% endfor %}",
            "{{ tojson(tojson(ctx.system_prompt)) }}",
            "{% set t = tojson(ctx.system_prompt) %}{{ tojson(t) }}",
            "{{ tojson(ctx) | tojson }}",
            "{{ ctx ~ '' }}{{ [ctx.system_prompt] ~ '' }}",
            "{{ {ctx.system_prompt: 1} }}",
            "{% set ns = namespace(x=ctx.system_prompt) %}",
            "{% set ns = namespace() %}{% set ns.x = ctx.system_prompt %}",
            "{% macro m(x) %}{{ x == 'y' }}{% endmacro %}{{ m(ctx.system_prompt) }}",
            "{% macro m(x) %}{{ x.system_prompt == 'y' }}{% endmacro %}{{ m(x=ctx) }}",
            "{% macro m(x) %}{{ x }}{% endmacro %}{% set f = m %}{{ f(ctx.system_prompt) == 'x' }}",
            "{% macro m() %}{{ ctx.system_prompt }}{% endmacro %}{% set f = m %}{{ f() == 'x' }}",
            "{% macro m() %}{{ ctx.system_prompt }}{% endmacro %}{{ [m][0]() == 'x' }}",
            "{% macro m() %}{{ caller() == 'x' }}{% endmacro %}{% call m() %}{{ ctx.system_prompt }}{% endcall %}",
            "{% macro m() %}{{ caller(ctx.system_prompt) }}{% endmacro %}{% call(x) m() %}{{ x | upper }}{% endcall %}",
            "{% set a, b = ctx.system_prompt, 1 %}{{ a == 'x' }}",
            "{% with t = ctx.system_prompt %}{{ t * 2 }}{% endwith %}",
            "{{ ([ctx.system_prompt] + ctx.history) | map('upper') | join }}",
            "{{ [ctx.system_prompt][0] == 'x' }}{{ {'a': ctx.system_prompt}.a == 'x' }}",
            "{{ __w(ctx.system_prompt) == x }}{{ __s(ctx.system_prompt, 1, none) }}",
            "{% block b %}{{ ctx.system_prompt }}{% endblock %}",
            "{% autoescape true %}{{ ctx.system_prompt }}{% endautoescape %}",
            "{{ ctx.system_prompt < 'x' }}{{ ctx.system_prompt < 'x' < 'y' }}",
            "{% set d = ctx.system_prompt %}{% set c = d %}{% set b = c %}{% set a = b %}{{ b is in ['x'] }}",
            "{{ tool_id(ctx.system_prompt) }}",
        ] {
            assert!(!only_writes(text), "{text}");
        }
    }

    #[test]
    fn through_partials() {
        let macros = (
            "partials/m",
            "{% macro all(ctx) %}{{ ctx.system_prompt }}{% endmacro %}{% set text = ctx.system_prompt %}",
        );
        let looks = ("partials/l", "{{ said == 'x' }}");
        for (text, expected) in [
            ("{% from 'm' import all %}{{ tojson(all(ctx)) }}", true),
            ("{% from 'm' import all as it %}{{ tojson(it(ctx)) }}", true),
            ("{% from 'm' import all as it %}{{ it(ctx) == 'x' }}", false),
            ("{% import 'm' as m %}{{ tojson(m.all(ctx)) }}", true),
            ("{% import 'm' as m %}{{ m.all(ctx) | upper }}", false),
            ("{% import 'm' as m %}{{ m.text | upper }}", false),
            ("{% import 'm' as m %}{% set x = m %}{{ x.text }}", false),
            ("{% from 'm' import text as t %}{{ t | upper }}", false),
            ("{% set said = 'x' %}{% include 'l' %}{{ ctx.system_prompt }}", true),
            ("{% set said = ctx.system_prompt %}{% include 'l' %}", false),
            ("{% set t %}{% include ['none', 'w'] %}{% endset %}{{ tojson(t) }}", true),
            ("{% set t %}{% include ['none', 'w'] %}{% endset %}{{ t == 'x' }}", false),
        ] {
            let writes = ("partials/w", "{{ ctx.system_prompt }}");
            let is_included = |name: &str| text.contains(&format!("'{name}'"));
            let mut all = vec![("t", text)];
            all.extend(
                [("m", macros), ("l", looks), ("w", writes)].into_iter().filter(|it| is_included(it.0)).map(|it| it.1),
            );
            assert_eq!(only_writes_all(&all), expected, "{text}");
        }
    }
}
