//! Variables whose values are lost: a value that a loop sets lasts only until the end of the
//! iteration.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use minijinja::machinery::ast::{Call, CallType, Expr, ForLoop, Macro, Stmt};

use super::parts::{self, range};

/// A variable that a loop sets, but whose value does not reach the code that reads it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LostSet {
    pub(super) name: String,
    /// The target of the assignment in the loop.
    pub(super) set: Range<usize>,
    /// The first read after the loop; `None` if nothing reads the value, not even in the loop,
    /// although the variable exists before the loop.
    pub(super) read: Option<Range<usize>>,
}

/// Finds the lost values in a template, in the order of their assignments.
pub(super) fn find(template: &Stmt<'_>) -> Vec<LostSet> {
    let mut walker = Walker {
        frames: vec![Frame::default()],
        found: BTreeMap::new(),
        assignments: 0,
        all_read: 0,
    };
    walker.statement(template);
    let found = walker.found.into_values();
    found.collect()
}

/// The names in a loop, a block or a macro. They exist only until the end of that part.
#[derive(Default)]
struct Frame<'t> {
    kind: FrameKind,
    /// The names that have a value here, each with its assignment in this loop, as long as nothing
    /// has read that assignment.
    names: HashMap<&'t str, Option<Assignment>>,
    /// The assignments here, by name.
    set: HashMap<&'t str, Range<usize>>,
    lost: Lost<'t>,
}

/// An assignment that nothing has read so far.
struct Assignment {
    place: Range<usize>,
    /// The assignment's number among all assignments.
    number: usize,
}

/// The names that loops inside a frame have set, with the locations.
#[derive(Default)]
struct Lost<'t> {
    places: HashMap<&'t str, Range<usize>>,
    /// The names in the order in which they were added.
    order: Vec<&'t str>,
}

impl<'t> Lost<'t> {
    fn add(&mut self, name: &'t str, place: Range<usize>) {
        self.places.insert(name, place);
        self.order.push(name);
    }

    /// Removes and returns all names except the first `first` names.
    fn taken_from(&mut self, first: usize) -> Vec<(&'t str, Range<usize>)> {
        let added = self.order.split_off(first);
        let places = &mut self.places;
        let added = added.into_iter();
        added
            .filter_map(|name| Some((name, places.remove(name)?)))
            .collect()
    }
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum FrameKind {
    #[default]
    Plain,
    /// A loop that does not call itself: each iteration begins with the names outside the loop.
    Loop,
    /// A macro, which runs elsewhere, at a time that the text does not show.
    Macro,
}

struct Walker<'t> {
    frames: Vec<Frame<'t>>,
    /// The lost values, by the location of the assignment.
    found: BTreeMap<usize, LostSet>,
    /// The number of assignments so far.
    assignments: usize,
    /// The number of assignments before the last construct that can read any name, such as an
    /// include.
    all_read: usize,
}

impl<'t> Walker<'t> {
    fn statements(&mut self, statements: &[Stmt<'t>]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Stmt<'t>) {
        match statement {
            Stmt::Template(it) => self.statements(&it.children),
            Stmt::EmitRaw(_) | Stmt::Extends(_) => {}
            Stmt::EmitExpr(it) => self.expression(&it.expr),
            Stmt::ForLoop(it) => self.for_loop(it),
            Stmt::IfCond(it) => {
                self.expression(&it.expr);
                let before = self.frame().lost.order.len();
                self.statements(&it.true_body);
                let of_true = self.frame().lost.taken_from(before);
                self.statements(&it.false_body);
                self.lose(of_true);
            }
            Stmt::WithBlock(it) => self.within(FrameKind::Plain, |walker| {
                for (target, value) in &it.assignments {
                    walker.expression(value);
                    walker.bind(target);
                }
                walker.statements(&it.body);
            }),
            Stmt::Set(it) => {
                self.expression(&it.expr);
                self.set(&it.target);
            }
            Stmt::SetBlock(it) => {
                self.statements(&it.body);
                it.filter.iter().for_each(|filter| self.expression(filter));
                self.set(&it.target);
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
                self.within(FrameKind::Plain, |walker| walker.statements(&it.body));
            }
            // The included template may read any name.
            Stmt::Include(it) => {
                self.expression(&it.name);
                self.read_all();
            }
            Stmt::Import(it) => self.bind(&it.name),
            Stmt::FromImport(it) => {
                let names = it.names.iter();
                names.for_each(|(name, alias)| self.bind(alias.as_ref().unwrap_or(name)));
            }
            Stmt::Macro(it) => {
                self.frame().names.insert(it.name, None);
                self.macro_body(it);
            }
            Stmt::CallBlock(it) => {
                self.call(&it.call);
                self.macro_body(&it.macro_decl);
            }
            Stmt::Do(it) => self.call(&it.call),
        }
    }

    fn for_loop(&mut self, it: &ForLoop<'t>) {
        self.expression(&it.iter);
        let kind = if it.recursive {
            FrameKind::Plain
        } else {
            FrameKind::Loop
        };
        let lost = self.within(kind, |walker| {
            walker.bind(&it.target);
            walker.frame().names.insert("loop", None);
            let filter = it.filter_expr.iter();
            filter.for_each(|filter| walker.expression(filter));
            walker.statements(&it.body);
            let Frame { set, lost, .. } = walker.frame();
            let mut all = lost.taken_from(0);
            all.extend(std::mem::take(set));
            all
        });
        self.lose(lost);
        self.statements(&it.else_body);
    }

    fn macro_body(&mut self, it: &Macro<'t>) {
        it.defaults
            .iter()
            .for_each(|default| self.expression(default));
        self.within(FrameKind::Macro, |walker| {
            it.args.iter().for_each(|argument| walker.bind(argument));
            walker.statements(&it.body);
        });
    }

    /// Visits a part that has its own names.
    fn within<T>(&mut self, kind: FrameKind, inner: impl FnOnce(&mut Self) -> T) -> T {
        self.frames.push(Frame {
            kind,
            ..Frame::default()
        });
        let result = inner(self);
        let Some(frame) = self.frames.pop() else {
            return result;
        };
        if frame.kind == FrameKind::Loop {
            let sets = frame.names.into_iter();
            for (name, set) in sets.filter_map(|(name, set)| Some((name, set?))) {
                if set.number > self.all_read {
                    self.note(name, set.place, None);
                }
            }
        }
        result
    }

    fn frame(&mut self) -> &mut Frame<'t> {
        self.frames.last_mut().expect("a template has a frame")
    }

    /// Records names that have lost their values here.
    fn lose(&mut self, lost: Vec<(&'t str, Range<usize>)>) {
        let all = &mut self.frame().lost;
        lost.into_iter()
            .for_each(|(name, place)| all.add(name, place));
    }

    fn note(&mut self, name: &str, set: Range<usize>, read: Option<Range<usize>>) {
        let found = self.found.entry(set.start).or_insert_with(|| LostSet {
            name: name.to_owned(),
            set,
            read: None,
        });
        if found.read.is_none() {
            found.read = read;
        }
    }

    /// Records that names have a value that no assignment in a loop set.
    fn bind(&mut self, target: &Expr<'t>) {
        match target {
            Expr::Var(var) => drop(self.frame().names.insert(var.id, None)),
            Expr::List(_) | Expr::Tuple(_) => parts::visit(target, |item| self.bind(item)),
            target => self.expression(target),
        }
    }

    fn set(&mut self, target: &Expr<'t>) {
        match target {
            Expr::Var(var) => {
                self.assignments += 1;
                let number = self.assignments;
                let (inner, around) = self
                    .frames
                    .split_last_mut()
                    .expect("a template has a frame");
                let mut around = around.iter().rev();
                let is_around = around.any(|frame| frame.names.contains_key(var.id));
                let place = range(var.span());
                inner.lost.places.remove(var.id);
                inner.set.insert(var.id, place.clone());
                let is_told = is_around && inner.kind == FrameKind::Loop;
                let set = is_told.then_some(Assignment { place, number });
                inner.names.insert(var.id, set);
            }
            Expr::List(_) | Expr::Tuple(_) => parts::visit(target, |item| self.set(item)),
            // In `ns.x = …`, the namespace outlives the loop on purpose.
            target => self.expression(target),
        }
    }

    fn read(&mut self, name: &'t str, place: Range<usize>) {
        let mut is_here = true;
        for at in (0..self.frames.len()).rev() {
            let frame = &mut self.frames[at];
            if is_here && let Some(set) = frame.lost.places.remove(name) {
                self.note(name, set, Some(place));
                return;
            }
            if let Some(unread) = frame.names.get_mut(name) {
                *unread = None;
                return;
            }
            is_here &= frame.kind != FrameKind::Macro;
        }
    }

    fn read_all(&mut self) {
        self.all_read = self.assignments;
    }

    fn expression(&mut self, expression: &Expr<'t>) {
        match expression {
            Expr::Var(var) => self.read(var.id, range(var.span())),
            Expr::Call(call) => self.call(call),
            _ => parts::visit(expression, |part| self.expression(part)),
        }
    }

    /// Visits a call. A macro may read any name.
    fn call(&mut self, call: &Call<'t>) {
        match call.identify_call() {
            CallType::Function(name) => {
                self.read(name, range(call.expr.span()));
                if self
                    .frames
                    .iter()
                    .any(|frame| frame.names.contains_key(name))
                {
                    self.read_all();
                }
            }
            CallType::Method(object, _) | CallType::Object(object) => {
                self.expression(object);
                self.read_all();
            }
            CallType::Block(_) => self.read_all(),
        }
        parts::visit_arguments(&call.args, |argument| self.expression(argument));
    }
}

#[cfg(test)]
mod tests {
    use minijinja::machinery;
    use minijinja::syntax::SyntaxConfig;

    use super::*;

    /// Returns each lost name, with the text from its read or, after `=`, from its assignment.
    fn lost(text: &str) -> Vec<String> {
        let tree = machinery::parse(text, "", SyntaxConfig::default()).expect("it parses");
        let found = find(&tree).into_iter();
        let found = found.map(|it| match it.read {
            Some(read) => format!("{} {}", it.name, &text[read.start..]),
            None => format!("{} = {}", it.name, &text[it.set.start..]),
        });
        found.collect()
    }

    #[test]
    fn a_value_that_a_loop_sets_is_lost_after_it() {
        let count = "{% set n = 0 %}{% for m in x %}{% set n = n + 1 %}{% endfor %}";
        assert_eq!(lost(&format!("{count}{{{{ n }}}}")), ["n n }}"]);
        assert_eq!(
            lost(&format!("{count}{{% if a and n > 3 %}}1{{% endif %}}")).len(),
            1
        );
        assert_eq!(
            lost("{% for m in x %}{% set n = m %}{% endfor %}{{ n }}"),
            ["n n }}"]
        );
        let nested = "{% for m in x %}{% set f = 0 %}{% for b in m %}{% if b %}{% set f = 1 %}{% endif %}{% endfor %}{{ f }}{% endfor %}";
        assert_eq!(lost(nested), ["f f }}{% endfor %}"]);
        let outer =
            "{% for m in x %}{% for b in m %}{% set f = b %}{% endfor %}{% endfor %}{{ f }}";
        assert_eq!(lost(outer), ["f f }}"]);
        let in_loop =
            "{% for m in x %}{% set f = m %}{% endfor %}{% for m in x %}{{ f }}{% endfor %}";
        assert_eq!(lost(in_loop).len(), 1);
        let block = "{% set t %}{% endset %}{% for m in x %}{% set t %}{{ t }}a{% endset %}{% endfor %}{{ t }}";
        assert_eq!(lost(block), ["t t }}"]);
    }

    #[test]
    fn a_value_that_nothing_reads_in_its_pass_is_lost_too() {
        let flag = "{% set first = true %}{% for m in x %}{% if not first %},{% endif %}{% set first = false %}{% endfor %}";
        assert_eq!(lost(flag), ["first = first = false %}{% endfor %}"]);
    }

    #[test]
    fn other_assignments_are_not_lost() {
        for text in [
            "{% set n = 0 %}{% for m in x %}{{ n }}{% endfor %}{{ n }}",
            "{% for m in x %}{% set n = m %}{{ n }}{% endfor %}",
            "{% for m in x %}{% set n = m %}{% endfor %}",
            "{% for m in x %}{% set n = m %}{{ n }}{% endfor %}{% for m in y %}{% set n = m %}{{ n }}{% endfor %}",
            "{% for m in x %}{% set n = m %}{{ n }}{% endfor %}{% set n = 1 %}{{ n }}",
            "{% for m in x %}{% set n = m %}{{ n }}{% endfor %}{% for n in y %}{{ n }}{% endfor %}",
            "{% set n = 0 %}{% for m in x %}{% set n = m %}{% include 'a' %}{% endfor %}",
            "{% set ns = namespace(n=0) %}{% for m in x %}{% set ns.n = m %}{% endfor %}{{ ns.n }}",
            "{% if a %}{% for m in x %}{% set n = m %}{{ n }}{% endfor %}{% else %}{% set n = 1 %}{{ n }}{% endif %}",
            "{% set n = 0 %}{% if a %}{% for m in x %}{% set n = m %}{{ n }}{% endfor %}{% else %}{{ n }}{% endif %}",
            "{% set n = 0 %}{% for m in x recursive %}{{ n }}{% set n = m %}{{ loop(m) }}{% endfor %}",
            "{% macro f(n) %}{{ n }}{% endmacro %}{% for m in x %}{% set n = m %}{{ f(n) }}{% endfor %}",
            "{% set n = 0 %}{% macro f() %}{{ n }}{% endmacro %}{% for m in x %}{% set n = m %}{{ f() }}{% endfor %}",
            "{% for m in x %}{% with n = m %}{{ n }}{% endwith %}{% endfor %}{{ n }}",
        ] {
            assert_eq!(lost(text), Vec::<String>::new(), "{text}");
        }
    }
}
