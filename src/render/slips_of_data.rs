//! Mistakes about data that are evident from the text of a template, even if no context reveals
//! them.
//!
//! For example, `ctx.sytem_prompt is defined` is never true. Strict undefined values do not reveal
//! the misspelling, because the guard tests before anything is read. The possible content of
//! conversations is a closed set, so the template's text is enough to detect the mistake.
//! Similarly, `"{{ block.title }}"` is JSON only as long as no title contains a quote.

mod comparisons;

pub(super) use comparisons::NeverEqual;

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use minijinja::machinery::ast::{
    BinOpKind, Call, CallArg, CallType, Expr, Filter, ForLoop, Macro, Stmt,
};

use super::parts::{self, literal_name, range};
use crate::conversation::members_of;
use crate::diag::nearest;

/// A test of a member that cannot exist.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Impossible {
    pub(super) range: Range<usize>,
    /// The tested object, as named in `conversation::TEMPLATE_DATA`, or [`LIST`].
    pub(super) object: &'static str,
    pub(super) member: String,
    /// `true` if the object is identified only by its usual name.
    pub(super) is_guess: bool,
    /// `true` if inja's `exists` performs the test; Jinja has no such function.
    pub(super) is_of_inja: bool,
}

/// A value in a conversation that is written unescaped between the quotes of a JSON string.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unescaped {
    pub(super) range: Range<usize>,
    /// The expression of the value.
    pub(super) value: Range<usize>,
    /// `true` if the value may contain any text; IDs, names and media types have a restricted
    /// character set.
    pub(super) is_free: bool,
    pub(super) is_guess: bool,
    /// `true` if there is nothing else between the quotes.
    pub(super) is_alone: bool,
}

/// A read of a member that cannot exist, which always fails when it runs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NeverThere {
    pub(super) range: Range<usize>,
    /// The object that is read, as named in `conversation::TEMPLATE_DATA`, or [`LIST`].
    pub(super) object: &'static str,
    pub(super) member: String,
}

/// The findings in the text of a template.
#[derive(Debug, Default)]
pub(super) struct DataSlips {
    pub(super) impossible: Vec<Impossible>,
    pub(super) never_there: Vec<NeverThere>,
    pub(super) never_equal: Vec<NeverEqual>,
    pub(super) unescaped: Vec<Unescaped>,
}

/// Members whose values are fixed words in the format, or are not text.
const NO_TEXTS: [&str; 6] = ["role", "type", "is_error", "is_url", "source", "schema"];

/// Members whose values contain no quotes if providers respect their formats.
const RESTRICTED: [&str; 6] = [
    "id",
    "tool_use_id",
    "name",
    "media_type",
    "origin",
    "signature",
];

/// The known facts about a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    object: &'static str,
    is_list: bool,
    is_guess: bool,
}

impl Shape {
    fn element(self) -> Option<Shape> {
        self.is_list.then_some(Shape {
            is_list: false,
            ..self
        })
    }

    fn member(self, name: &str) -> Option<Shape> {
        let of = |object| {
            Some(Shape {
                object,
                is_list: true,
                ..self
            })
        };
        match (self.is_list, self.object, name) {
            (false, "ctx", "history") => of("message"),
            (false, "ctx", "files_metadata") => of("file"),
            (false, "ctx", "tools") => of("tool"),
            (false, "message", "content_blocks" | "images") | (false, "block", "images") => {
                of("block")
            }
            _ => None,
        }
    }

    /// Returns the kind of value, as named in `conversation::TEMPLATE_DATA`, or `list`.
    fn kind(self) -> &'static str {
        if self.is_list { LIST } else { self.object }
    }

    fn lacks(self, name: &str) -> bool {
        // An index may be written like a member.
        if self.is_list {
            return !self.is_guess && name.starts_with(|c: char| c.is_alphabetic());
        }
        let members = members_of(self.object);
        let is_slip = || !self.is_guess || !nearest(name, members.iter().copied()).is_empty();
        !members.contains(&name) && is_slip()
    }
}

/// The names that partials conventionally use for values set by their callers.
const USUAL_NAMES: [(&str, &str); 9] = [
    ("message", "message"),
    ("block", "block"),
    ("image", "block"),
    ("document", "block"),
    ("audio", "block"),
    ("call", "block"),
    ("result", "block"),
    ("file", "file"),
    ("tool", "tool"),
];

/// Returns `true` for a name that partials conventionally use for values set by their callers.
pub(super) fn is_usual_name(name: &str) -> bool {
    USUAL_NAMES.iter().any(|(usual, _)| *usual == name)
}

/// The kind of a value that is a list, in the notation of `conversation::TEMPLATE_DATA`.
pub(super) const LIST: &str = "list";

/// Finds the mistakes in a template.
pub(super) fn find(template: &Stmt<'_>) -> DataSlips {
    let mut walker = Walker {
        scopes: vec![HashMap::new()],
        found: Vec::new(),
        never_there: Vec::new(),
        never_equal: Vec::new(),
        unescaped: Vec::new(),
        quoted: Quoted::default(),
        is_text: false,
    };
    walker.statement(template);
    walker.slips()
}

/// The position of literal text within JSON.
#[derive(Debug, Clone, Copy, Default)]
struct Quoted {
    is_in_string: bool,
    /// `true` if the string begins directly here.
    is_at_start: bool,
}

impl Quoted {
    fn read(&mut self, text: &str) {
        let mut is_escaped = false;
        for c in text.chars() {
            self.is_at_start = false;
            match c {
                '"' if !is_escaped => {
                    self.is_in_string = !self.is_in_string;
                    self.is_at_start = self.is_in_string;
                }
                _ => {}
            }
            is_escaped = c == '\\' && !is_escaped;
        }
    }
}

struct Walker<'t> {
    /// The shapes of named values; `None` if unknown.
    scopes: Vec<HashMap<&'t str, Option<Shape>>>,
    found: Vec<Impossible>,
    never_there: Vec<NeverThere>,
    never_equal: Vec<NeverEqual>,
    unescaped: Vec<Unescaped>,
    quoted: Quoted,
    /// `true` inside a macro or a capture, whose text is not JSON yet.
    is_text: bool,
}

impl<'t> Walker<'t> {
    fn slips(mut self) -> DataSlips {
        self.found.dedup();
        // A guard for the same member already reports the mistake.
        let guarded: HashSet<(&str, &str)> = self
            .found
            .iter()
            .map(|it| (it.object, it.member.as_str()))
            .collect();
        self.never_there
            .retain(|it| !guarded.contains(&(it.object, it.member.as_str())));
        DataSlips {
            impossible: self.found,
            never_there: self.never_there,
            never_equal: self.never_equal,
            unescaped: self.unescaped,
        }
    }

    fn statements(&mut self, statements: &[Stmt<'t>]) {
        for (at, statement) in statements.iter().enumerate() {
            self.statement(statement);
            if let Stmt::EmitExpr(it) = statement {
                let next = match statements.get(at + 1) {
                    Some(Stmt::EmitRaw(raw)) => raw.raw,
                    _ => "",
                };
                self.written(&it.expr, next.starts_with('"'));
                self.quoted.is_at_start = false;
            }
        }
    }

    /// Visits a part whose text is not written to the output directly, such as a macro's body.
    fn as_text(&mut self, inner: impl FnOnce(&mut Self)) {
        let around = (self.quoted, std::mem::replace(&mut self.is_text, true));
        self.within(inner);
        (self.quoted, self.is_text) = around;
    }

    /// Records an expression that is written inside a string opened by literal text.
    fn written(&mut self, expression: &Expr<'t>, ends_here: bool) {
        if self.is_text || !self.quoted.is_in_string {
            return;
        }
        if let Some((value, is_free, is_guess)) = self.raw_value(expression) {
            let is_alone = self.quoted.is_at_start && ends_here;
            let range = range(expression.span());
            self.unescaped.push(Unescaped {
                range,
                value,
                is_free,
                is_guess,
                is_alone,
            });
        }
    }

    /// Returns the range of a conversation value that an expression yields unescaped. The first
    /// flag is `true` if the value may contain any text. The second flag is `true` if the value's
    /// object is identified only by its usual name.
    fn raw_value(&self, expression: &Expr<'t>) -> Option<(Range<usize>, bool, bool)> {
        match expression {
            Expr::GetAttr(it) => {
                let shape = self
                    .shape(&it.expr)
                    .filter(|shape| !shape.is_list && !shape.lacks(it.name))?;
                let is_text = !NO_TEXTS.contains(&it.name) && shape.member(it.name).is_none();
                is_text.then(|| {
                    (
                        range(it.span()),
                        !RESTRICTED.contains(&it.name),
                        shape.is_guess,
                    )
                })
            }
            Expr::Filter(it)
                if matches!(
                    it.name,
                    "trim" | "upper" | "lower" | "default" | "d" | "replace" | "indent"
                ) =>
            {
                self.raw_value(it.expr.as_ref()?)
            }
            Expr::Slice(it) => self.raw_value(&it.expr),
            Expr::BinOp(it) if matches!(it.op, BinOpKind::Concat) => self
                .raw_value(&it.left)
                .or_else(|| self.raw_value(&it.right)),
            Expr::IfExpr(it) => self
                .raw_value(&it.true_expr)
                .or_else(|| self.raw_value(it.false_expr.as_ref()?)),
            _ => None,
        }
    }

    fn within(&mut self, inner: impl FnOnce(&mut Self)) {
        self.scopes.push(HashMap::new());
        inner(self);
        self.scopes.pop();
    }

    fn statement(&mut self, statement: &Stmt<'t>) {
        match statement {
            Stmt::Template(it) => self.statements(&it.children),
            Stmt::EmitExpr(it) => self.expression(&it.expr),
            Stmt::EmitRaw(it) => self.quoted.read(it.raw),
            Stmt::ForLoop(it) => self.for_loop(it),
            Stmt::IfCond(it) => {
                self.expression(&it.expr);
                let before = self.quoted;
                self.statements(&it.true_body);
                let after = std::mem::replace(&mut self.quoted, before);
                self.statements(&it.false_body);
                self.quoted = after;
            }
            Stmt::WithBlock(it) => self.within(|walker| {
                for (target, value) in &it.assignments {
                    walker.expression(value);
                    let shape = walker.shape(value);
                    walker.assign(target, shape);
                }
                walker.statements(&it.body);
            }),
            Stmt::Set(it) => {
                self.expression(&it.expr);
                let shape = self.shape(&it.expr);
                self.assign(&it.target, shape);
            }
            Stmt::SetBlock(it) => {
                self.as_text(|walker| walker.statements(&it.body));
                self.assign(&it.target, None);
            }
            Stmt::AutoEscape(it) => self.statements(&it.body),
            Stmt::FilterBlock(it) => self.as_text(|walker| walker.statements(&it.body)),
            Stmt::Block(it) => self.within(|walker| walker.statements(&it.body)),
            Stmt::Import(it) => self.assign(&it.name, None),
            Stmt::FromImport(it) => {
                it.names
                    .iter()
                    .for_each(|(name, alias)| self.assign(alias.as_ref().unwrap_or(name), None));
            }
            Stmt::Extends(_) | Stmt::Include(_) => {}
            Stmt::Macro(it) => self.macro_body(it),
            Stmt::CallBlock(it) => {
                self.call(&it.call);
                self.macro_body(&it.macro_decl);
            }
            Stmt::Do(it) => self.call(&it.call),
        }
    }

    fn for_loop(&mut self, it: &ForLoop<'t>) {
        self.expression(&it.iter);
        let element = self.shape(&it.iter).and_then(Shape::element);
        self.within(|walker| {
            walker.assign(&it.target, element);
            it.filter_expr
                .iter()
                .for_each(|filter| walker.expression(filter));
            walker.statements(&it.body);
        });
        self.statements(&it.else_body);
    }

    fn macro_body(&mut self, it: &Macro<'t>) {
        self.as_text(|walker| {
            it.args
                .iter()
                .for_each(|argument| walker.assign(argument, None));
            walker.statements(&it.body);
        });
    }

    /// Records the shape of a name's value. A name with values of different shapes has no known
    /// shape.
    fn assign(&mut self, target: &Expr<'t>, shape: Option<Shape>) {
        match target {
            Expr::Var(var) => {
                let Some(scope) = self.scopes.last_mut() else {
                    return;
                };
                let known = scope.entry(var.id).or_insert(shape);
                if *known != shape {
                    *known = None;
                }
            }
            Expr::List(_) | Expr::Tuple(_) => {
                parts::visit(target, |item| self.assign(item, None));
            }
            _ => {}
        }
    }

    fn shape(&self, expression: &Expr<'t>) -> Option<Shape> {
        match expression {
            Expr::Var(var) => self.variable(var.id),
            Expr::GetAttr(it) => self.shape(&it.expr)?.member(it.name),
            Expr::GetItem(it) => {
                let base = self.shape(&it.expr)?;
                match literal_name(&it.subscript_expr) {
                    Some(name) => base.member(&name),
                    None => base.element(),
                }
            }
            Expr::Slice(it) => self.shape(&it.expr),
            Expr::Filter(it) => self.filtered(it),
            Expr::Call(it) => match (it.identify_call(), it.args.first()) {
                (
                    CallType::Function("filter_by_type" | "filter_skip_role"),
                    Some(CallArg::Pos(list)),
                ) => self.shape(list),
                _ => None,
            },
            _ => None,
        }
    }

    fn variable(&self, name: &str) -> Option<Shape> {
        if let Some(known) = self.scopes.iter().rev().find_map(|scope| scope.get(name)) {
            return *known;
        }
        if name == "ctx" {
            return Some(Shape {
                object: "ctx",
                is_list: false,
                is_guess: false,
            });
        }
        let (_, object) = USUAL_NAMES.into_iter().find(|(usual, _)| *usual == name)?;
        Some(Shape {
            object,
            is_list: false,
            is_guess: true,
        })
    }

    fn filtered(&self, it: &Filter<'t>) -> Option<Shape> {
        let input = self.shape(it.expr.as_ref()?)?;
        match it.name {
            "first" | "last" => input.element(),
            "select" | "reject" | "selectattr" | "rejectattr" | "list" | "sort" | "reverse"
            | "unique" => Some(input),
            _ => None,
        }
    }

    /// Checks a guard's expression. Each member in its path must be one that can exist.
    fn guarded(&mut self, expression: &Expr<'t>) {
        let (object, member, span) = match expression {
            Expr::GetAttr(it) => (&it.expr, it.name.to_owned(), it.span()),
            Expr::GetItem(it) => match literal_name(&it.subscript_expr) {
                Some(name) => (&it.expr, name, it.span()),
                None => return self.guarded(&it.expr),
            },
            _ => return,
        };
        self.asked(object, &member, range(span));
        self.guarded(object);
    }

    fn asked(&mut self, object: &Expr<'t>, member: &str, range: Range<usize>) {
        if let Some(shape) = self.shape(object).filter(|shape| shape.lacks(member)) {
            self.found.push(Impossible {
                range,
                object: shape.kind(),
                member: member.to_owned(),
                is_guess: shape.is_guess,
                is_of_inja: false,
            });
        }
    }

    /// Checks a read of a member, which fails if the member cannot exist.
    fn read(&mut self, object: &Expr<'t>, member: &str, range: Range<usize>) {
        let shape = self.shape(object);
        if let Some(shape) = shape.filter(|shape| !shape.is_guess && shape.lacks(member)) {
            self.never_there.push(NeverThere {
                range,
                object: shape.kind(),
                member: member.to_owned(),
            });
        }
    }

    fn expression(&mut self, expression: &Expr<'t>) {
        match expression {
            Expr::Slice(it) => self.expression(&it.expr),
            Expr::Call(it) => self.call(it),
            Expr::Test(it) => {
                if matches!(it.name, "defined" | "undefined") {
                    self.guarded(&it.expr);
                }
                self.parts(expression);
            }
            Expr::GetAttr(it) => {
                self.read(&it.expr, it.name, range(it.span()));
                self.parts(expression);
            }
            Expr::GetItem(it) => {
                if let Some(name) = literal_name(&it.subscript_expr) {
                    self.read(&it.expr, &name, range(it.span()));
                }
                self.parts(expression);
            }
            Expr::Filter(it) => {
                match (&it.expr, it.name) {
                    (Some(input), "default" | "d") => self.guarded(input),
                    (Some(input), "selectattr" | "rejectattr") => {
                        self.attribute(input, &it.args);
                        self.selected_by(input, &it.args);
                    }
                    _ => {}
                }
                self.parts(expression);
            }
            Expr::BinOp(it) => {
                self.compared(it);
                self.parts(expression);
            }
            _ => self.parts(expression),
        }
    }

    fn parts(&mut self, expression: &Expr<'t>) {
        parts::visit(expression, |part| self.expression(part));
    }

    /// Checks the attribute by which a filter selects elements: if the attribute cannot exist,
    /// either no element or every element is selected.
    fn attribute(&mut self, list: &Expr<'t>, arguments: &[CallArg<'t>]) {
        let Some(CallArg::Pos(path)) = arguments.first() else {
            return;
        };
        let Some((name, element)) =
            literal_name(path).zip(self.shape(list).and_then(Shape::element))
        else {
            return;
        };
        let first = name.split('.').next().unwrap_or_default();
        if element.lacks(first) {
            let Shape {
                object, is_guess, ..
            } = element;
            self.found.push(Impossible {
                range: range(path.span()),
                object,
                member: first.to_owned(),
                is_guess,
                is_of_inja: false,
            });
        }
    }

    fn call(&mut self, call: &Call<'t>) {
        match call.identify_call() {
            CallType::Function("existsIn") => {
                if let [CallArg::Pos(object), CallArg::Pos(key)] = call.args.as_slice()
                    && let Some(name) = literal_name(key)
                {
                    self.asked(object, &name, range(key.span()));
                }
            }
            CallType::Function(name @ ("filter_by_type" | "filter_skip_role")) => {
                self.selected(name, &call.args);
            }
            CallType::Function("exists") => {
                if let [CallArg::Pos(path)] = call.args.as_slice()
                    && let Some(name) = literal_name(path)
                    && let Some((object, rest)) = name.split_once('.')
                    && let Some(shape) = self.variable(object)
                {
                    let first = rest.split('.').next().unwrap_or_default();
                    if shape.lacks(first) {
                        let Shape {
                            object, is_guess, ..
                        } = shape;
                        let range = range(path.span());
                        self.found.push(Impossible {
                            range,
                            object,
                            member: first.to_owned(),
                            is_guess,
                            is_of_inja: true,
                        });
                    }
                }
            }
            // In the first argument, any part of the path may be missing.
            CallType::Function("default" | "d") => {
                return self.arguments(call.args.get(1..).unwrap_or_default());
            }
            CallType::Method(object, _) | CallType::Object(object) => self.expression(object),
            CallType::Function(_) | CallType::Block(_) => {}
        }
        self.arguments(&call.args);
    }

    fn arguments(&mut self, arguments: &[CallArg<'t>]) {
        parts::visit_arguments(arguments, |argument| self.expression(argument));
    }
}

#[cfg(test)]
mod tests {
    use minijinja::machinery;
    use minijinja::syntax::SyntaxConfig;

    use super::*;

    fn found(text: &str) -> Vec<String> {
        let tree = machinery::parse(text, "", SyntaxConfig::default()).expect("it parses");
        let found = find(&tree).impossible.into_iter();
        found
            .map(|it| {
                format!(
                    "{}.{}{}",
                    it.object,
                    it.member,
                    if it.is_guess { "?" } else { "" }
                )
            })
            .collect()
    }

    #[test]
    fn guards_ask_for_what_can_be_there() {
        assert_eq!(
            found("{% if ctx.sytem_prompt is defined %}{% endif %}"),
            ["ctx.sytem_prompt"]
        );
        assert_eq!(
            found("{% if existsIn(ctx, 'systemprompt') %}{% endif %}"),
            ["ctx.systemprompt"]
        );
        assert_eq!(
            found("{% if ctx['tool'] is not defined %}{% endif %}"),
            ["ctx.tool"]
        );
        assert_eq!(found("{{ exists('ctx.prefx') }}"), ["ctx.prefx"]);
        assert_eq!(
            found("{% for m in ctx.history %}{{ m.contnet | default('') }}{% endfor %}"),
            ["message.contnet"]
        );
        assert_eq!(
            found("{{ ctx.history[0].txt | d('') }}{{ (ctx.history | last).roel | d }}"),
            ["message.txt", "message.roel"]
        );
        let loops = "{% for m in ctx.history %}{% for b in m.content_blocks if b.imagse is defined %}{% endfor %}{% endfor %}";
        assert_eq!(found(loops), ["block.imagse"]);
        let results = "{% set all = filter_by_type(ctx.history[0].content_blocks, 'tool_result') %}{{ all | selectattr('imagse') | list }}";
        assert_eq!(found(results), ["block.imagse"]);
        assert_eq!(
            found("{{ message.contnet | default('') }}"),
            ["message.contnet?"]
        );
    }

    #[test]
    fn reads_are_told_once_and_only_of_known_objects() {
        let reads = |text: &str| -> Vec<String> {
            let tree = machinery::parse(text, "", SyntaxConfig::default()).expect("it parses");
            let told = find(&tree).never_there.into_iter();
            told.map(|it| format!("{}: {}", &text[it.range], it.object))
                .collect()
        };
        assert_eq!(
            reads("{% if false %}{{ ctx.histroy }}{{ ctx['toolz'] }}{% endif %}"),
            ["ctx.histroy: ctx", "ctx['toolz']: ctx"]
        );
        assert_eq!(
            reads("{% for m in ctx.history if m.rol == 'user' %}{{ m.content }}{% endfor %}"),
            ["m.rol: message"]
        );
        for silent in [
            "{% if ctx.histroy is defined %}{{ ctx.histroy }}{% endif %}",
            "{{ message.contnet }}",
            "{{ ctx.history[0].content_blocks[0].data.anything }}",
            "{% set ctx = {} %}{{ ctx.histroy }}",
        ] {
            assert_eq!(reads(silent), [""; 0], "{silent}");
        }
    }

    #[test]
    fn what_may_be_there_is_nothing_to_tell() {
        let silent = [
            "{% if ctx.system_prompt is defined and ctx.tools is defined %}{% endif %}",
            "{% for m in ctx.history %}{% if m.images is defined %}{% endif %}{% endfor %}",
            "{% for b in ctx.history[0].content_blocks %}{{ b.data.anything is defined }}{{ b.input.x | default(1) }}{% endfor %}",
            "{% set message = {'x': 1} %}{{ message.contnet | default('') }}",
            "{% macro m(message) %}{{ message.contnet | default('') }}{% endmacro %}",
            "{{ message.priority | default('') }}{{ closing is defined }}",
            "{% set x = ctx.history[0] %}{% set x = {} %}{{ x.anything is defined }}",
        ];
        for text in silent {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn values_between_quotes_are_to_be_escaped() {
        let found = |text: &str| {
            let tree = machinery::parse(text, "", SyntaxConfig::default()).expect("it parses");
            let told = find(&tree).unescaped.into_iter();
            told.map(|it| (text[it.value].to_owned(), it.is_free, it.is_alone))
                .collect::<Vec<_>>()
        };
        let of = |value: &str, is_free, is_alone| vec![(value.to_owned(), is_free, is_alone)];
        assert_eq!(
            found(r#"{"title": "{{ block.title }}"}"#),
            of("block.title", true, true)
        );
        assert_eq!(
            found(r#"{"id": "{{ block.id }}"}"#),
            of("block.id", false, true)
        );
        assert_eq!(
            found(r#""data:{{ image.media_type }};base64,x""#),
            of("image.media_type", false, false)
        );
        assert_eq!(
            found(r#"{% for m in ctx.history %}"{{ m.content | trim }}",{% endfor %}"#),
            of("m.content", true, true)
        );
        for silent in [
            r#"{"title": {{ tojson(block.title) }}}"#,
            r#"{"role": "{{ message.role }}"}"#,
            r#"{% macro m(file) %}<file path="{{ file.file_path }}">{% endmacro %}"#,
            r#"{% set x %}title="{{ block.title }}"{% endset %}{{ tojson(x) }}"#,
            r#""a \" b", {{ tojson(block.title) }}, "{{ 1 + 1 }}""#,
        ] {
            assert_eq!(found(silent), [], "{silent}");
        }
    }
}
