//! Marks in a template's compiled text, through which a render can be followed.
//!
//! `{{ a.b }}` becomes `{{ ((((a)|__x(0)).b)|__x(1)) }}`: the filter sees every value on its way, and gives it on. Literal text,
//! captures and includes get marks that write nothing: `{{0|__t(2)}}`. What a mark stands for is a [`Node`]. Marks are filters since
//! macros capture the functions that they call, which changes what the engine makes of their variables.

use std::ops::Range;
use std::sync::Arc;

use minijinja::Error;
use minijinja::machinery::ast::{self, BinOpKind, CallArg, CallType, Expr, Stmt};
use minijinja::machinery::{self, Token};

use super::super::dialect::PROMPT_VARIABLES;
use super::super::guards::Edits;
use super::super::operators::{self, SLICE};
use super::super::ranges::{Ranges, raw_tag};
use super::super::syntax;
use super::filters::{Argument, BlockFilter};
use crate::repo::Dialect;

/// Around an expression.
pub(super) const VALUE: &str = "__x";
/// Writes nothing; tells where the render is.
pub(super) const MARK: &str = "__t";

/// What a mark stands for.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) kind: NodeKind,
    /// Which template, by its number among those that were marked.
    pub(super) template: u32,
    /// Where in the template's own text.
    pub(super) range: Range<usize>,
    /// Whether it is in the default of a parameter, which a macro looks at before its body begins.
    pub(super) is_default: bool,
}

/// The number of a node.
pub(super) type NodeId = u32;

#[derive(Debug)]
pub(super) enum NodeKind {
    /// Literal text follows.
    Raw(Arc<str>),
    /// A literal of an expression.
    Const,
    Variable,
    /// `${PROJECT_DIR}` and the like in a prompt's own text.
    Folder,
    /// `base.key`, or `base["key"]`.
    Member {
        base: NodeId,
        key: Key,
    },
    /// A filter or a function with a value or values.
    Call {
        name: Arc<str>,
        operands: Vec<NodeId>,
    },
    /// `a ~ b` or `a + b`.
    Join {
        left: NodeId,
        right: NodeId,
    },
    /// One of the expressions inside: the one that was looked at last.
    Choice,
    /// A part of a text.
    Slice {
        base: NodeId,
    },
    /// An expression of any other kind.
    Other,
    /// A variable that a `set` block gave, and the filters that it went through.
    Captured {
        filters: Vec<BlockFilter>,
    },
    /// What follows is captured, or run apart.
    Enter(Scope),
    /// It ends here; the filters that its text goes through before it is written.
    Leave {
        filters: Vec<BlockFilter>,
    },
    /// It ends here, and its text is dropped.
    Drop,
    Include,
    Included,
    /// A `call` block, and its end.
    CallBlock,
    CallBlockEnd,
    /// What follows is dropped: the template that is extended writes.
    Extends,
    /// The end of a template that may extend another.
    End,
    /// A branch or a loop's body that was taken.
    Branch,
}

#[derive(Debug)]
pub(super) enum Key {
    Name(Arc<str>),
    Index(usize),
    /// What an expression gives.
    Computed(NodeId),
}

/// What a captured part of a template is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Set,
    /// The body of a macro, with its name.
    Macro(Arc<str>),
    Caller,
    Filter,
    Import,
}

/// Marks a template's compiled text. `original` leads from its offsets to those of the template's own text; nodes are added to
/// `nodes`, which number them. `dialect` tells whether the line end at the end of a template is written.
pub(super) fn mark(
    (text, dialect): (&str, Dialect),
    template: u32,
    nodes: &mut Vec<Node>,
    first: NodeId,
    original: &dyn Fn(Range<usize>) -> Range<usize>,
) -> Result<String, Error> {
    let tree = machinery::parse(text, "", syntax(dialect))?;
    let (ranges, edits) = (Ranges::new(text), Edits::default());
    let mut marker = Marker { text, dialect, template, ranges, edits, nodes, first, is_default: false, original };
    marker.tags()?;
    marker.statement(&tree);
    Ok(marker.edits.apply(text).0)
}

struct Marker<'t> {
    text: &'t str,
    dialect: Dialect,
    template: u32,
    ranges: Ranges<'t>,
    edits: Edits,
    nodes: &'t mut Vec<Node>,
    /// The number of the first of `nodes`.
    first: NodeId,
    /// Whether the expression is the default of a parameter.
    is_default: bool,
    original: &'t dyn Fn(Range<usize>) -> Range<usize>,
}

impl Marker<'_> {
    fn add(&mut self, kind: NodeKind, range: Range<usize>) -> NodeId {
        let range = (self.original)(range);
        self.nodes.push(Node { kind, template: self.template, range, is_default: self.is_default });
        self.first + NodeId::try_from(self.nodes.len() - 1).expect("fewer than 2^32 nodes")
    }
}

/// A tag: its range, and the tokens between its ends.
struct Tag<'t> {
    range: Range<usize>,
    tokens: Vec<(Token<'t>, Range<usize>)>,
}

impl Tag<'_> {
    fn keyword(&self) -> &str {
        match self.tokens.first() {
            Some((Token::Ident(name), _)) => name,
            _ => "",
        }
    }

    /// What stands behind the keyword.
    fn name(&self) -> Arc<str> {
        match self.tokens.get(1) {
            Some((Token::Ident(name), _)) => Arc::from(*name),
            _ => Arc::from(""),
        }
    }

    /// Whether this is a `set` with a body.
    fn is_block(&self) -> bool {
        !self.tokens.iter().any(|(token, _)| matches!(token, Token::Assign))
            || self
                .tokens
                .iter()
                .position(|(token, _)| matches!(token, Token::Pipe))
                .is_some_and(|pipe| self.tokens[..pipe].iter().all(|(token, _)| !matches!(token, Token::Assign)))
    }

    /// The filters behind each `|`, or those of a `filter` tag.
    fn filters(&self, argument: impl Fn(&str, Range<usize>) -> Argument) -> Vec<BlockFilter> {
        let from_first = usize::from(self.keyword() == "filter");
        let (mut depth, mut filters) = (0_i32, Vec::<BlockFilter>::new());
        for (index, (token, _)) in self.tokens.iter().enumerate() {
            match token {
                Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => depth += 1,
                Token::ParenClose | Token::BracketClose | Token::BraceClose => depth -= 1,
                _ => {}
            }
            let follows = matches!(token, Token::Pipe) || from_first == 1 && index == 0;
            if depth == 0
                && follows
                && let Some((Token::Ident(name), _)) = self.tokens.get(index + 1)
            {
                filters.push(BlockFilter { name: Arc::from(*name), arguments: Vec::new() });
            }
            // An argument that is a text alone stands between two of these.
            let begins = depth == 1 && matches!(token, Token::ParenOpen | Token::Comma);
            let [one, end] = [1, 2].map(|more| self.tokens.get(index + more));
            if let (true, Some(filter), Some((one, range)), Some((end, _))) = (begins, filters.last_mut(), one, end) {
                let ends = matches!(end, Token::Comma | Token::ParenClose);
                let text = match one {
                    Token::Str(text) => Some(*text),
                    Token::String(text) => Some(&**text),
                    _ => None,
                };
                filter.arguments.push(text.filter(|_| ends).map(|text| argument(text, range.clone())));
            }
        }
        filters
    }

    /// What a `set` block assigns, as it is written.
    fn target<'s>(&self, text: &'s str) -> &'s str {
        let end = self.tokens.iter().find(|(token, _)| matches!(token, Token::Pipe)).map(|(_, range)| range.start);
        let end = end.or(self.tokens.last().map(|(_, range)| range.end)).unwrap_or(self.range.start);
        let start = self.tokens.get(1).map_or(end, |(_, range)| range.start);
        text[start..end].trim()
    }
}

/// The blocks around a tag.
#[derive(Default)]
struct Blocks<'t> {
    sets: Vec<SetBlock<'t>>,
    /// The filters of each `filter` block.
    filters: Vec<Vec<BlockFilter>>,
}

struct SetBlock<'t> {
    /// What it assigns, as it is written.
    target: &'t str,
    filters: Vec<BlockFilter>,
    tag: Range<usize>,
}

/// Tags and literal text, from the tokens: the engine's tree does not say where a body begins and ends.
impl<'t> Marker<'t> {
    fn tags(&mut self) -> Result<(), Error> {
        let mut open: Option<Tag<'t>> = None;
        let mut blocks = Blocks::default();
        for token in machinery::tokenize(self.text, false, syntax(self.dialect)) {
            let (token, span) = token?;
            let range = span.start_offset as usize..span.end_offset as usize;
            match (token, &mut open) {
                (Token::TemplateData(raw), _) => self.raw(raw),
                (Token::BlockStart, _) => open = Some(Tag { range, tokens: Vec::new() }),
                (Token::BlockEnd, Some(_)) => {
                    let mut tag = open.take().expect("just matched");
                    tag.range.end = range.end;
                    self.tag(&tag, &mut blocks);
                }
                (token, Some(tag)) => tag.tokens.push((token, range)),
                _ => {}
            }
        }
        Ok(())
    }

    fn tag(&mut self, tag: &Tag<'t>, blocks: &mut Blocks<'t>) {
        let none = Vec::new;
        match tag.keyword() {
            "set" if tag.is_block() => {
                let (target, filters) = (tag.target(self.text), tag.filters(self.argument()));
                blocks.sets.push(SetBlock { target, filters, tag: tag.range.clone() });
                self.after(tag, NodeKind::Enter(Scope::Set));
            }
            "endset" => {
                self.before(tag, NodeKind::Leave { filters: none() });
                if let Some(SetBlock { target, filters, tag: opened }) = blocks.sets.pop() {
                    let id = self.add(NodeKind::Captured { filters }, opened);
                    let trim = if self.text[..tag.range.end].ends_with("-%}") { "-" } else { "" };
                    self.edits.put(tag.range.end, format!("{{%set {target}={target}|{VALUE}({id}){trim}%}}"));
                }
            }
            "macro" => self.after(tag, NodeKind::Enter(Scope::Macro(tag.name()))),
            "endmacro" => self.before(tag, NodeKind::Leave { filters: none() }),
            "call" => {
                self.before(tag, NodeKind::CallBlock);
                self.after(tag, NodeKind::Enter(Scope::Caller));
            }
            "endcall" => {
                self.before(tag, NodeKind::Leave { filters: none() });
                self.after(tag, NodeKind::CallBlockEnd);
            }
            "filter" => {
                blocks.filters.push(tag.filters(self.argument()));
                self.after(tag, NodeKind::Enter(Scope::Filter));
            }
            "endfilter" => {
                let filters = blocks.filters.pop().unwrap_or_default();
                self.before(tag, NodeKind::Leave { filters });
            }
            "include" => {
                self.before(tag, NodeKind::Include);
                self.after(tag, NodeKind::Included);
            }
            "import" | "from" => {
                self.before(tag, NodeKind::Enter(Scope::Import));
                self.after(tag, NodeKind::Drop);
            }
            "extends" => {
                self.after(tag, NodeKind::Extends);
                let end = self.add(NodeKind::End, tag.range.clone());
                self.edits.put(end_of_text(self.text, self.dialect), format!("{{{{0|{MARK}({end})}}}}"));
            }
            "if" | "elif" | "else" | "for" => self.after(tag, NodeKind::Branch),
            _ => {}
        }
    }

    /// Makes an argument of a filter, with its place in the template's own text.
    fn argument(&self) -> impl Fn(&str, Range<usize>) -> Argument {
        let (template, original) = (self.template, self.original);
        move |text, range| Argument { text: Arc::from(text), template, range: original(range) }
    }

    fn before(&mut self, tag: &Tag<'_>, kind: NodeKind) {
        let id = self.add(kind, tag.range.clone());
        let trim = if self.text[tag.range.start..].starts_with("{%-") { "-" } else { "" };
        self.edits.put(tag.range.start, format!("{{{{{trim}0|{MARK}({id})}}}}"));
    }

    fn after(&mut self, tag: &Tag<'_>, kind: NodeKind) {
        let id = self.add(kind, tag.range.clone());
        let trim = if self.text[..tag.range.end].ends_with("-%}") { "-" } else { "" };
        self.edits.put(tag.range.end, format!("{{{{0|{MARK}({id}){trim}}}}}"));
    }

    fn raw(&mut self, raw: &'t str) {
        let at = raw.as_ptr() as usize - self.text.as_ptr() as usize;
        if raw.is_empty() {
            return;
        }
        let id = self.add(NodeKind::Raw(Arc::from(raw)), at..at + raw.len());
        match raw_tag(&self.text[..at]) {
            None => self.edits.put(at, format!("{{{{0|{MARK}({id})}}}}")),
            // Inside of the tag nothing is code. What trims the text before the tag must go on doing so.
            Some(tag) => {
                let trim = if self.text[tag..].starts_with("{%-") { "-" } else { "" };
                self.edits.put(tag, format!("{{{{{trim}0|{MARK}({id})}}}}"));
            }
        }
    }
}

/// The end of a template's text, before the line end that the engine may leave out.
fn end_of_text(text: &str, dialect: Dialect) -> usize {
    if dialect == Dialect::Inja {
        return text.len();
    }
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text).len()
}

/// Statements: the expressions in them.
impl Marker<'_> {
    fn statements(&mut self, statements: &[Stmt<'_>]) {
        statements.iter().for_each(|statement| self.statement(statement));
    }

    fn statement(&mut self, statement: &Stmt<'_>) {
        match statement {
            Stmt::Template(it) => self.statements(&it.children),
            Stmt::EmitExpr(it) => self.emitted(&it.expr),
            Stmt::ForLoop(it) => {
                self.value(&it.iter);
                self.statements(&it.body);
                self.statements(&it.else_body);
            }
            Stmt::IfCond(it) => {
                self.statements(&it.true_body);
                self.statements(&it.false_body);
            }
            Stmt::WithBlock(it) => {
                self.values(it.assignments.iter().map(|(_, value)| value));
                self.statements(&it.body);
            }
            Stmt::Set(it) => self.values([&it.expr]),
            Stmt::SetBlock(it) => self.statements(&it.body),
            Stmt::AutoEscape(it) => self.statements(&it.body),
            Stmt::FilterBlock(it) => self.statements(&it.body),
            Stmt::Block(it) => self.statements(&it.body),
            Stmt::Macro(it) => self.macro_body(it),
            Stmt::CallBlock(it) => {
                self.arguments(&it.call.args);
                self.macro_body(&it.macro_decl);
            }
            Stmt::Do(it) => drop(self.arguments(&it.call.args)),
            Stmt::EmitRaw(_) | Stmt::Import(_) | Stmt::FromImport(_) | Stmt::Extends(_) | Stmt::Include(_) => {}
        }
    }

    fn macro_body(&mut self, it: &ast::Macro<'_>) {
        let is_default = std::mem::replace(&mut self.is_default, true);
        self.values(&it.defaults);
        self.is_default = is_default;
        self.statements(&it.body);
    }

    /// What a tag writes. Blocks and loops that write themselves do so without a value.
    fn emitted(&mut self, expression: &Expr<'_>) {
        if let Expr::Call(call) = expression {
            match call.identify_call() {
                CallType::Function("super") | CallType::Block(_) => return,
                CallType::Function("loop") => return drop(self.arguments(&call.args)),
                _ => {}
            }
        }
        self.value(expression);
    }
}

/// Expressions.
impl Marker<'_> {
    /// Marks an expression and what it is made of.
    fn value(&mut self, expression: &Expr<'_>) -> NodeId {
        if let Some(inner) = guarded(expression) {
            return self.value(inner);
        }
        let range = self.ranges.range(expression);
        let id = match self.folder(expression, &range) {
            Some(whole) => self.add(NodeKind::Folder, whole),
            None => {
                let kind = self.kind(expression);
                self.add(kind, range.clone())
            }
        };
        // A wrapper would take the elements of a tuple for arguments.
        if !matches!(expression, Expr::Tuple(_)) {
            self.edits.wrap(&range, "(", &format!(")|{VALUE}({id})"));
        }
        id
    }

    /// The whole tag that stands for `${PROJECT_DIR}` or the like.
    fn folder(&self, expression: &Expr<'_>, range: &Range<usize>) -> Option<Range<usize>> {
        let Expr::Var(variable) = expression else { return None };
        let is_folder = PROMPT_VARIABLES.iter().any(|(_, name)| *name == variable.id);
        let start = self.text[..range.start].strip_suffix("{{").filter(|_| is_folder)?.len();
        Some(start..range.end + self.text[range.end..].find("}}")? + 2)
    }

    fn kind(&mut self, expression: &Expr<'_>) -> NodeKind {
        match expression {
            Expr::Const(_) => NodeKind::Const,
            Expr::Var(_) => NodeKind::Variable,
            Expr::GetAttr(it) => NodeKind::Member { base: self.value(&it.expr), key: Key::Name(Arc::from(it.name)) },
            Expr::GetItem(it) => {
                let base = self.value(&it.expr);
                NodeKind::Member { base, key: self.key(&it.subscript_expr) }
            }
            Expr::Filter(it) => {
                let mut operands: Vec<NodeId> = it.expr.iter().map(|inner| self.value(inner)).collect();
                operands.extend(self.arguments(&it.args));
                NodeKind::Call { name: Arc::from(it.name), operands }
            }
            Expr::Call(it) => self.call(it),
            Expr::BinOp(it) => self.operation(it),
            Expr::IfExpr(it) => {
                self.values([&it.true_expr].into_iter().chain(&it.false_expr));
                NodeKind::Choice
            }
            other => {
                match other {
                    Expr::List(it) => self.values(&it.items),
                    Expr::Map(it) => self.values(&it.values),
                    Expr::Tuple(it) => self.values(&it.items),
                    _ => {}
                }
                NodeKind::Other
            }
        }
    }

    fn operation(&mut self, it: &ast::BinOp<'_>) -> NodeKind {
        match it.op {
            BinOpKind::Concat | BinOpKind::Add => {
                NodeKind::Join { left: self.value(&it.left), right: self.value(&it.right) }
            }
            BinOpKind::ScOr | BinOpKind::ScAnd => {
                self.values([&it.left, &it.right]);
                NodeKind::Choice
            }
            _ => NodeKind::Other,
        }
    }

    fn values<'e, 's: 'e>(&mut self, expressions: impl IntoIterator<Item = &'e Expr<'s>>) {
        for expression in expressions {
            self.value(expression);
        }
    }

    fn key(&mut self, expression: &Expr<'_>) -> Key {
        match expression {
            Expr::Const(it) => match (it.value.as_str(), it.value.as_usize()) {
                (Some(name), _) => Key::Name(Arc::from(name)),
                (None, Some(index)) => Key::Index(index),
                _ => Key::Computed(self.value(expression)),
            },
            other => Key::Computed(self.value(other)),
        }
    }

    fn call(&mut self, it: &ast::Call<'_>) -> NodeKind {
        match it.identify_call() {
            CallType::Function(SLICE) => {
                let operands = self.arguments(&it.args);
                operands.first().map_or(NodeKind::Other, |&base| NodeKind::Slice { base })
            }
            CallType::Function(name) => NodeKind::Call { name: Arc::from(name), operands: self.arguments(&it.args) },
            CallType::Method(object, name) => {
                self.value(object);
                NodeKind::Call { name: Arc::from(format!(".{name}")), operands: self.arguments(&it.args) }
            }
            CallType::Block(_) | CallType::Object(_) => NodeKind::Other,
        }
    }

    fn arguments(&mut self, arguments: &[CallArg<'_>]) -> Vec<NodeId> {
        let mut operands = Vec::with_capacity(arguments.len());
        for argument in arguments {
            match argument {
                CallArg::Pos(it) => operands.push(self.value(it)),
                CallArg::Kwarg(_, it) => self.values([it]),
                CallArg::PosSplat(_) | CallArg::KwargSplat(_) => {}
            }
        }
        operands
    }
}

/// What a guard is put around.
fn guarded<'e, 't>(expression: &'e Expr<'t>) -> Option<&'e Expr<'t>> {
    let Expr::Call(call) = expression else { return None };
    match (call.identify_call(), call.args.first()) {
        (CallType::Function(name), Some(CallArg::Pos(inner))) if operators::is_guard(name) => Some(inner),
        _ => None,
    }
}
