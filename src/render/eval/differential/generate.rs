//! Templates at random, from a seed: every statement and every kind of expression, around values of every kind.
//!
//! Most expressions have the kind that their place asks for, so that templates get far; some have any. A filter reads what may be
//! a list that is added, repeated or cut: the engine makes lists of these that can be read but are no sequences.

use fastrand::Rng;

use super::Source;
use crate::render::builtins::FILTERS;

/// The kind of value that an expression is to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    List,
    Map,
    Flag,
    Any,
}

const KINDS: [Kind; 6] = [Kind::Text, Kind::Number, Kind::List, Kind::Map, Kind::Flag, Kind::Any];

const OPERATORS: [&str; 18] = [
    "+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or",
];
const WORDY_TESTS: [&str; 25] = [
    "boolean", "defined", "divisibleby", "endingwith", "eq", "even", "false", "float", "ge", "gt", "in", "integer",
    "iterable", "le", "lt", "mapping", "ne", "none", "number", "odd", "sequence", "startingwith", "string", "true",
    "undefined",
];
const FUNCTIONS: [&str; 15] = [
    "range", "dict", "namespace", "tojson", "existsIn", "length", "filter_by_type", "filter_skip_role",
    "strip_signature_suffix", "m", "k", "mod.m", "ns.t", "l", "caller",
];
/// Numbers at the ends of their ranges, and texts of odd characters.
const HOSTILE: [&str; 14] = [
    "1e308",
    "(1e308 * 10)",
    "(0.0 * (1e308 * 10))",
    "-9223372036854775808",
    "18446744073709551615",
    "340282366920938463463374607431768211455",
    "64",
    "'\\u0000\\n'",
    "'upper'",
    "'length'",
    "[[], [[1]], {}]",
    "(1, 'a')",
    "{none: 1, true: 2}",
    "('ab' * 300)",
];

/// What stands around a statement.
#[derive(Debug, Clone, Copy, Default)]
struct Around {
    depth: usize,
    /// Whether it is in a loop whose members are all alike in both.
    in_list_loop: bool,
    in_loop: bool,
    is_recursive: bool,
    /// Whether `super()` may stand here.
    in_block: bool,
    in_macro: bool,
    wants_caller: bool,
}

/// Makes a template, `main`, and those that it includes.
pub(super) fn templates(seed: u64) -> Vec<Source> {
    let mut generator = Generator { rng: Rng::with_seed(seed), blocks: 0 };
    vec![
        Source::new("main", generator.main()),
        Source::new("p1", generator.partial()),
        Source::new("p2", generator.partial()),
        Source::new("lib", generator.library()),
        Source::new("base", generator.base()),
        Source::new("middle", generator.middle()),
    ]
}

struct Generator {
    rng: Rng,
    blocks: usize,
}

/// Templates.
impl Generator {
    fn one<'t>(&mut self, all: &[&'t str]) -> &'t str {
        all[self.rng.usize(..all.len())]
    }

    fn is_rare(&mut self, of: usize) -> bool {
        self.rng.usize(..of) == 0
    }

    fn main(&mut self) -> String {
        if self.is_rare(6) {
            return self.child(&["base", "middle", "middle", "nosuch", "main"]);
        }
        let head = "{% set ns = namespace(a=1, t='x', l=[1, 2]) %}\n";
        let macros = self.library();
        let count = self.rng.usize(2..6);
        format!("{head}{macros}{}", self.statements(count, Around::default()))
    }

    fn partial(&mut self) -> String {
        let count = self.rng.usize(1..4);
        self.statements(count, Around { depth: 1, ..Around::default() })
    }

    /// Macros, and variables that can be imported.
    fn library(&mut self) -> String {
        let text = self.expr(Kind::Text, 1);
        let inner = Around { depth: 2, in_macro: true, ..Around::default() };
        let (plain, called) = (self.statements(2, inner), self.statements(1, inner));
        let caller = self.one(&["{{ caller() }}", "{{ caller('q') }}", "{{ caller(1, y=2) }}", "{{ caller.name }}"]);
        let default = self.expr(Kind::Any, 1);
        format!(
            "{{% set w = {text} %}}{{% set _w = 1 %}}\n\
             {{% macro m(x, y={default}, z=x) %}}({plain}){{% endmacro %}}\n\
             {{% macro k(x=1) -%}} [{caller}{called}] {{%- endmacro %}}"
        )
    }

    fn base(&mut self) -> String {
        let at_top = Around { depth: 2, ..Around::default() };
        let in_block = Around { in_block: true, ..at_top };
        let (top, one, two) =
            (self.statements(1, at_top), self.statements(1, at_top), self.statements(1, in_block));
        let required = self.one(&["", "", "", " required"]);
        let three = if required.is_empty() { self.statements(1, at_top) } else { String::new() };
        format!(
            "{top}<{{% block b1 %}}{one}{{% endblock %}}>\n{{{{ self.b1() }}}}\
             <{{% block b2 %}}{two}{{% block b4 %}}4{{% endblock %}}{{% endblock %}}>\n\
             {{% for i in [1, 2] %}}{{% block b3{required} %}}{three}{{% endblock %}}{{% endfor %}}"
        )
    }

    fn middle(&mut self) -> String {
        self.child(&["base", "base", "base", "p1"])
    }

    fn child(&mut self, parents: &[&str]) -> String {
        let parent = self.one(parents);
        let head = "{% set ns = namespace(a=1, t='x', l=[1, 2]) %}\n";
        let before = self.statements(1, Around { depth: 2, ..Around::default() });
        let mut text = format!("{head}{before}{{% extends '{parent}' %}}\n");
        for name in ["b1", "b2", "b3", "b4"] {
            if self.rng.bool() {
                let around = Around { depth: 2, in_block: true, ..Around::default() };
                let body = self.statements(2, around);
                text.push_str(&format!("{{% block {name} %}}{body}{{% endblock {name} %}}\n"));
            }
        }
        text + &self.statements(1, Around { depth: 2, ..Around::default() })
    }
}

/// Statements.
impl Generator {
    fn statements(&mut self, count: usize, around: Around) -> String {
        (0..count).map(|_| self.text() + &self.statement(around)).collect::<String>() + self.text().as_str()
    }

    fn text(&mut self) -> String {
        self.one(&["", "", " ", "\n", "\n\n  ", "a", "é\n", "a b\r\n", "\u{1f600}\n", "\t\n", "}}", "\"x\": "]).into()
    }

    /// Returns a tag with or without white space control.
    fn tag(&mut self, inner: &str) -> String {
        let (left, right) = (self.one(&["", "", "", "", "-", "+"]), self.one(&["", "", "", "", "-", "+"]));
        let space = self.one(&[" ", " ", " ", "\n", "\n  "]);
        format!("{{%{left}{space}{inner}{space}{right}%}}")
    }

    fn emit(&mut self, expression: &str) -> String {
        let (left, right) = (self.one(&["", "", "", "-"]), self.one(&["", "", "", "-"]));
        let space = self.one(&[" ", " ", "\n"]);
        format!("{{{{{left}{space}{expression}{space}{right}}}}}")
    }

    fn wrapped(&mut self, open: &str, body: &str, close: &str) -> String {
        self.tag(open) + body + &self.tag(close)
    }

    fn statement(&mut self, around: Around) -> String {
        let kind = self.rng.usize(..if around.depth < 4 { 26 } else { 8 });
        match kind {
            0..=3 => self.written(around),
            4 => self.assignment(),
            5 => self.special_write(around),
            6 => self.one(&["{# note\n #}", "{#- note -#}", "{% raw %}{{ x }}\n{% endraw %}", "{%- raw -%} {% x %} {%- endraw %}"]).into(),
            7 => self.done(around),
            8 => self.set_block(around),
            9..=11 => self.for_loop(around),
            12..=14 => self.condition(around),
            15 => self.with_block(around),
            16 => self.filter_block(around),
            17 => self.macro_here(around),
            18 | 19 => self.call_block(around),
            20 | 21 => self.include(),
            22 | 23 => self.import(),
            24 => self.block(around),
            _ => {
                let body = self.statements(2, inside(around));
                let value = self.one(&["true", "false", "'html'", "'none'", "n", "t", "nope", "z"]).to_owned();
                self.wrapped(&format!("autoescape {value}"), &body, "endautoescape")
            }
        }
    }

    fn written(&mut self, around: Around) -> String {
        if around.in_loop && self.is_rare(3) {
            let member = self.loop_member(around);
            return self.emit(&member);
        }
        let kind = KINDS[self.rng.usize(..KINDS.len())];
        let value = self.expr(kind, 0);
        self.emit(&value)
    }

    fn special_write(&mut self, around: Around) -> String {
        let list = self.expr(Kind::List, 1);
        let written = match () {
            () if around.is_recursive && self.is_rare(2) => {
                self.one(&["loop(x)", "loop(x)", "'' ~ loop(x)", "loop([])", "loop(1)"]).to_owned()
            }
            () if around.wants_caller || self.is_rare(8) => {
                self.one(&["caller()", "caller", "caller(1)"]).to_owned()
            }
            () if around.in_block || self.is_rare(8) => {
                self.one(&["super()", "super() ~ 'x'", "super() | upper", "self.b1()"]).to_owned()
            }
            () => self.one(&["m(", "k(", "mod.m(", "nope(", "w(", "ns.t(", "(m)("]).to_owned() + &list + ")",
        };
        self.emit(&written)
    }

    fn done(&mut self, around: Around) -> String {
        let arguments = self.arguments(1);
        let called = match around.is_recursive && self.is_rare(2) {
            true => "loop(x)".to_owned(),
            false => self.one(&["m", "k", "namespace", "dict", "nope", "tojson"]).to_owned() + &arguments,
        };
        self.tag(&format!("do {called}"))
    }

    fn assignment(&mut self) -> String {
        let kind = KINDS[self.rng.usize(..KINDS.len())];
        let value = self.expr(kind, 0);
        let inner = match self.rng.usize(..9) {
            0..=3 => format!("set v{} = {value}", self.rng.usize(1..4)),
            4 => format!("set ns.a = {}", self.expr(Kind::Number, 0)),
            5 => format!("set ns.{} = {value}", self.one(&["t", "l", "q"])),
            6 => format!("set v1, v2 = {}, {value}", self.expr(Kind::Any, 1)),
            7 => format!("set (v1, (v2, v3)) = {}, {}", self.expr(Kind::Any, 1), self.expr(Kind::List, 1)),
            _ => format!("set {}.x = {value}", self.one(&["d", "nope", "t", "ns.q", "ns"])),
        };
        self.tag(&inner)
    }

    fn set_block(&mut self, around: Around) -> String {
        let body = self.statements(2, inside(around));
        let target = self.one(&["v1", "v2", "v3", "ns.t", "ns.q", "d.x", "v1 | upper", "v2 | trim | length", "v3 | nope"]);
        let target = target.to_owned();
        self.wrapped(&format!("set {target}"), &body, "endset")
    }

    fn for_loop(&mut self, around: Around) -> String {
        let (is_recursive, in_list_loop) = (self.is_rare(4), self.rng.bool());
        let over = match (in_list_loop, self.is_rare(4)) {
            (true, true) => "(d | items)".to_owned(),
            (true, false) => format!("({}) | list", self.expr(Kind::List, 1)),
            (false, _) => {
                let kind = KINDS[self.rng.usize(..KINDS.len())];
                self.expr(kind, 1)
            }
        };
        let over = if is_recursive { self.one(&["tree", "ll", "[1, [2, [3]]]"]).to_owned() } else { over };
        let target = match (is_recursive, over.contains("items")) {
            (true, _) => "x",
            (_, true) => self.one(&["x, y", "x, y", "(x, y)", "x"]),
            (..) => self.one(&["x", "x", "x", "x", "x", "x, y", "(x, y)", "x, (y, v1)"]),
        };
        let condition = match self.is_rare(3) {
            true => format!(" if {}", self.expr(Kind::Flag, 1)),
            false => String::new(),
        };
        let recursive = if is_recursive { " recursive" } else { "" };
        let inner = Around { in_loop: true, in_list_loop: in_list_loop || is_recursive, is_recursive, ..inside(around) };
        let body = match is_recursive {
            true => {
                let again = self.one(&["{{ loop(x) }}", "{% set v1 = loop(x) %}{{ v1 }}", "{{ '' ~ loop(x) }}", "{% do loop(x) %}"]);
                let rest = self.statements(1, inner);
                format!("{{% if x is sequence %}}({again}){{% else %}}{{{{ x }}}}\n{rest}{{% endif %}}")
            }
            false => self.statements(2, inner),
        };
        let otherwise = match self.is_rare(3) {
            true => self.tag("else") + &self.statements(1, inside(around)),
            false => String::new(),
        };
        self.wrapped(&format!("for {target} in {over}{condition}{recursive}"), &(body + &otherwise), "endfor")
    }

    fn loop_member(&mut self, around: Around) -> String {
        let safe = ["index", "index0", "first", "depth", "depth0", "previtem", "nextitem", "nope"];
        let all = ["length", "last", "revindex", "revindex0", "index", "first", "nextitem"];
        let member = if around.in_list_loop { self.one(&all) } else { self.one(&safe) };
        match self.rng.usize(..5) {
            0..=2 => format!("loop.{member}"),
            3 => format!("loop['{member}']"),
            _ => format!("loop.{member} is defined"),
        }
    }

    fn condition(&mut self, around: Around) -> String {
        let (test, other) = (self.expr(Kind::Flag, 0), self.expr(Kind::Flag, 1));
        let mut body = self.statements(2, inside(around));
        if self.is_rare(3) {
            body += &self.tag(&format!("elif {other}"));
            body += &self.statements(1, inside(around));
        }
        if self.rng.bool() {
            body += &self.tag("else");
            body += &self.statements(1, inside(around));
        }
        self.wrapped(&format!("if {test}"), &body, "endif")
    }

    fn with_block(&mut self, around: Around) -> String {
        let (one, other) = (self.expr(Kind::Any, 1), self.expr(Kind::Text, 1));
        let body = self.statements(2, inside(around));
        let given = match self.rng.usize(..3) {
            0 => format!("with x = {one}, v2 = {other} ~ x"),
            1 => format!("with (x, y) = ({one}, {other})"),
            _ => format!("with t = {other}"),
        };
        self.wrapped(&given, &body, "endwith")
    }

    fn filter_block(&mut self, around: Around) -> String {
        let body = self.statements(2, inside(around));
        let filter = self.one(&[
            "upper", "trim", "length", "replace('a', 'b')", "tojson", "indent(2)", "list", "upper | trim", "nope", "first", "split('a')",
        ]);
        let filter = filter.to_owned();
        self.wrapped(&format!("filter {filter}"), &body, "endfilter")
    }

    fn macro_here(&mut self, around: Around) -> String {
        let name = self.one(&["m", "k", "q", "v1"]).to_owned();
        let parameters = self.one(&["", "x", "x, y=1", "x=n, y=x", "x=nope, y=caller", "t"]).to_owned();
        let inner = Around { in_macro: true, wants_caller: self.is_rare(3), depth: around.depth + 1, ..Around::default() };
        let body = self.statements(2, inner);
        let closing = self.one(&["endmacro", "endmacro"]).to_owned();
        let arguments = self.arguments(1);
        let declared = self.wrapped(&format!("macro {name}({parameters})"), &body, &closing);
        let called = self.emit(&format!("{name}{arguments}"));
        declared + &called
    }

    fn call_block(&mut self, around: Around) -> String {
        let inner = Around { in_macro: true, depth: around.depth + 1, ..Around::default() };
        let body = self.statements(2, inner);
        let parameters = self.one(&["", "", "", "(x)", "(x, y)", "(x=1)"]).to_owned();
        let arguments = match self.rng.bool() {
            true => "()".to_owned(),
            false => self.arguments(1),
        };
        let called = self.one(&["k", "k", "k", "k", "m", "mod.k", "mk", "nope", "tojson"]).to_owned();
        self.wrapped(&format!("call{parameters} {called}{arguments}"), &body, "endcall")
    }

    fn include(&mut self) -> String {
        let inner = match self.rng.usize(..9) {
            0..=3 => format!("include '{}'", self.one(&["p1", "p2", "p2"])),
            4 => format!("include {}", self.one(&["'nosuch'", "n", "nope", "z", "[]", "['nosuch', 'gone']", "d", "'p' ~ 1"])),
            5 => format!("include {} ignore missing", self.one(&["'nosuch'", "['gone', 'p1']", "n", "[]"])),
            6 => "include ['nosuch', 'p2', 'p1']".to_owned(),
            7 => "include 'lib'".to_owned(),
            _ => format!("include {}", self.expr(Kind::Any, 1)),
        };
        self.tag(&inner)
    }

    fn import(&mut self) -> String {
        let inner = match self.rng.usize(..9) {
            0..=3 => "import 'lib' as mod",
            4 => "import 'p1' as mod",
            5 => "from 'lib' import m, k as mk, w",
            6 => "from 'lib' import w as v1, _w as v2, nope as v3",
            7 => "from 'nosuch' import m",
            _ => "import nope as mod",
        };
        let imported = self.tag(inner);
        let used = match self.rng.usize(..7) {
            0..=1 => "mod.m(1)",
            2 => "mod.w",
            3 => "mod",
            4 => "mk(2)",
            5 => "mod.nope",
            _ => "mod['w'] ~ w",
        };
        match self.rng.bool() {
            true => imported + &self.emit(used),
            false => imported,
        }
    }

    /// Blocks have names of their own, and stand in no macro.
    fn block(&mut self, around: Around) -> String {
        if around.in_macro {
            return self.written(around);
        }
        self.blocks += 1;
        let name = format!("own{}", self.blocks);
        let body = self.statements(2, Around { in_block: true, ..inside(around) });
        self.wrapped(&format!("block {name}"), &body, "endblock")
    }
}

fn inside(around: Around) -> Around {
    Around { depth: around.depth + 1, ..around }
}

/// Expressions.
impl Generator {
    fn expr(&mut self, kind: Kind, depth: usize) -> String {
        let kind = if self.is_rare(12) { Kind::Any } else { kind };
        if depth > 3 || self.is_rare(3) {
            return self.leaf(kind);
        }
        if self.is_rare(6) {
            return self.of_any_kind(kind, depth + 1);
        }
        match kind {
            Kind::Text => self.of_text(depth + 1),
            Kind::Number => self.of_number(depth + 1),
            Kind::List => self.of_list(depth + 1),
            Kind::Map => self.of_map(depth + 1),
            Kind::Flag => self.of_flag(depth + 1),
            Kind::Any if self.is_rare(3) => self.wild(depth + 1),
            Kind::Any => {
                let kind = KINDS[self.rng.usize(..5)];
                self.expr(kind, depth + 1)
            }
        }
    }

    /// Returns an expression whose parts may have any kind.
    fn wild(&mut self, depth: usize) -> String {
        let parts = [self.any(depth), self.any(depth), self.any(depth)];
        let [one, other, third] = &parts;
        let count = self.rng.usize(..3);
        let given = parts[..count].join(", ");
        match self.rng.usize(..10) {
            0 => format!("(({one} {} {other}) | string)", self.one(&OPERATORS)),
            1 | 2 => {
                let filter = FILTERS[self.rng.usize(..FILTERS.len())].name;
                format!("({one} | {filter}({given}))")
            }
            3 => format!("({one} is {}({given}))", self.one(&WORDY_TESTS)),
            4 | 5 => format!("{}({given})", self.one(&FUNCTIONS)),
            6 => format!("{one}[{other}]"),
            7 => format!("({one}[{other}:{third}:{}] | list)", self.one(&["", "1", "-1", "2"])),
            8 => format!("{{{one}: {other}}}"),
            _ => format!("({one} < {other} <= {third})"),
        }
    }

    fn any(&mut self, depth: usize) -> String {
        match self.is_rare(4) {
            true => self.one(&HOSTILE).to_owned(),
            false => self.expr(Kind::Any, depth),
        }
    }

    fn leaf(&mut self, kind: Kind) -> String {
        let leaves: &[&str] = match kind {
            Kind::Text => &["t", "u", "''", "'a'", "\"é\\n\"", "'<&>'", "ns.t", "d.t", "ctx.name", "w", "'a' 'b'"],
            Kind::Number => {
                &["n", "f", "big", "huge", "0", "1", "2", "1.5", "1_000", "0x1F", "0b11", "1e3", "-3", "ns.a", "d.n",
                  "170141183460469231731687303715884105727", "9223372036854775807", "-0.0"]
            }
            Kind::List => &["l", "ll", "[]", "[1, 'a', none]", "(1, 2)", "()", "(1,)", "tup", "ctx.items", "ns.l", "range(3)", "tree"],
            Kind::Map => &["d", "dd", "{}", "{'a': 1}", "{1: 2, 'b': [1]}", "{t: n}", "ctx", "dict(a=1)", "ctx.items[0]", "{1: 1, 1.0: 2}"],
            Kind::Flag => &["true", "false", "b", "True", "False", "t is defined", "nope is undefined", "n == 1"],
            Kind::Any => {
                &["none", "nope", "z", "x", "y", "v1", "v2", "v3", "None", "m", "k", "ns.q", "d.nope", "(1 if false)", "range", "mod",
                  "ns", "namespace", "caller", "self"]
            }
        };
        self.one(leaves).to_owned()
    }

    fn of_any_kind(&mut self, kind: Kind, depth: usize) -> String {
        let (one, other) = (self.expr(kind, depth), self.expr(kind, depth));
        match self.rng.usize(..9) {
            0 => format!("({one} if {} else {other})", self.expr(Kind::Flag, depth)),
            1 => format!("({one} if {})", self.expr(Kind::Flag, depth)),
            2 => format!("({one} or {other})"),
            3 => format!("({one} and {other})"),
            4 => format!("[{one}, {other}][{}]", self.expr(Kind::Number, depth)),
            5 => format!("{{'a': {one}}}.a"),
            6 => format!("({one} | default({other}))"),
            7 => format!("[{one}, {other}] | first"),
            _ => format!("({one})"),
        }
    }

    fn of_text(&mut self, depth: usize) -> String {
        let one = self.expr(Kind::Text, depth);
        match self.rng.usize(..16) {
            0 | 1 => format!("{one} ~ {}", self.expr(Kind::Any, depth)),
            2 => format!("(({one} + {}) | string)", self.expr(Kind::Text, depth)),
            3 => format!("(({one} * {}) | string)", self.one(&["0", "2", "3", "n", "-1", "1.5", "f"])),
            4 | 5 => {
                let filter = self.one(&["upper", "lower", "trim", "title", "capitalize", "string", "reverse", "first", "last", "indent(2)", "replace('a', t)", "trim('a')"]);
                format!("({one} | {filter})")
            }
            6 => format!("({} | join({one}))", self.expr(Kind::List, depth)),
            7 => format!("{} | tojson", self.expr(Kind::Any, depth)),
            8 => format!("(({one})[{}] | string)", self.bounds(depth)),
            9 => format!("({one})[{}]", self.expr(Kind::Number, depth)),
            10 => format!("m{}", self.arguments(depth)),
            11 => format!("tojson({})", self.expr(Kind::Any, depth)),
            12 => format!("strip_signature_suffix({one})"),
            13 => format!("mod.m{}", self.arguments(depth)),
            14 => format!("dd.a.{}", self.one(&["t", "n", "b", "nope", "nope.x"])),
            _ => format!("({one}).{}", self.one(&["upper()", "x", "strip()"])),
        }
    }

    fn of_number(&mut self, depth: usize) -> String {
        let one = self.expr(Kind::Number, depth);
        match self.rng.usize(..10) {
            0..=3 => {
                let op = self.one(&["+", "-", "*", "/", "//", "%", "**", "+", "-"]);
                let other = if op == "**" { self.one(&["2", "3", "n", "-1", "0.5"]).to_owned() } else { self.expr(Kind::Number, depth) };
                format!("({one} {op} {other})")
            }
            4 => format!("-{one}"),
            5 => format!("({} | length)", self.expr(Kind::List, depth)),
            6 => format!("({one} | {})", self.one(&["abs", "int", "float", "round", "round(1)", "default(1)"])),
            7 => format!("length({})", self.expr(Kind::Text, depth)),
            8 => format!("({} | {})", self.expr(Kind::List, depth), self.one(&["max", "min", "first", "last", "count"])),
            _ => format!("({} | int(0))", self.expr(Kind::Text, depth)),
        }
    }

    fn of_list(&mut self, depth: usize) -> String {
        let one = self.expr(Kind::List, depth);
        match self.rng.usize(..14) {
            0 => format!("[{one}, {}]", self.expr(Kind::Any, depth)),
            1 => format!("({one}, {})", self.expr(Kind::Any, depth)),
            2 => format!("(({one} + {}) | list)", self.expr(Kind::List, depth)),
            3 => format!("(({one} * {}) | list)", self.one(&["0", "1", "2", "n", "-1", "f"])),
            4 | 5 => format!("(({one})[{}] | list)", self.bounds(depth)),
            6 | 7 => {
                let filter = self.one(&[
                    "list", "reverse", "sort", "unique", "map('string')", "select('defined')", "reject('none')", "map(attribute='a')",
                    "select('eq', 1)", "sort(reverse=true)", "selectattr('a')", "rejectattr('b', 'eq', 1)", "map('upper')",
                ]);
                format!("({one} | {filter})")
            }
            8 => format!("({} | items)", self.expr(Kind::Map, depth)),
            9 => format!("({} | {})", self.expr(Kind::Text, depth), self.one(&["split('a')", "list", "lines", "split"])),
            10 => format!("range({})", self.one(&["3", "1, 4", "5, 0, -2", "n", "0", "t", "1, 2, 0"])),
            11 => format!("filter_by_type(ctx.items, {})", self.one(&["'a'", "'b'", "t", "n"])),
            12 => format!("({one}, {}) | list", self.expr(Kind::Number, depth)),
            _ => format!("ll[{}]", self.expr(Kind::Number, depth)),
        }
    }

    fn of_map(&mut self, depth: usize) -> String {
        let one = self.expr(Kind::Any, depth);
        match self.rng.usize(..5) {
            0 => format!("{{'a': {one}, {}: {}}}", self.expr(Kind::Text, depth), self.expr(Kind::Any, depth)),
            1 => format!("{{{one}: {}}}", self.expr(Kind::Any, depth)),
            2 => format!("dict({}, b={one})", self.expr(Kind::Map, depth)),
            3 => format!("dict(**{})", self.expr(Kind::Map, depth)),
            _ => format!("{{'a': {{'b': {one}}}}}['a']"),
        }
    }

    fn of_flag(&mut self, depth: usize) -> String {
        let kind = KINDS[self.rng.usize(..KINDS.len())];
        let (one, other) = (self.expr(kind, depth), self.expr(kind, depth));
        match self.rng.usize(..12) {
            0 => format!("not {one}"),
            1..=3 => format!("({one} {} {other})", self.one(&["==", "!=", "<", "<=", ">", ">="])),
            4 => format!("({one} < {other} <= {})", self.expr(kind, depth)),
            5 => format!("({one} {} {})", self.one(&["in", "not in"]), self.expr(Kind::List, depth)),
            6 => format!("({one} in {})", self.expr(Kind::Map, depth)),
            7 => format!("({one} == {other} != {other} in {})", self.expr(Kind::List, depth)),
            8 | 9 => {
                let test = self.one(&[
                    "defined", "undefined", "none", "string", "number", "mapping", "sequence", "iterable", "boolean", "true", "even",
                    "odd", "divisibleby(2)", "eq(1)", "in([1, 'a'])", "startingwith('a')", "integer", "float", "nope", "== 1", "lt 2",
                ]);
                format!("({one} is {}{test})", self.one(&["", "not "]))
            }
            10 => format!("({} and {})", self.expr(Kind::Flag, depth), self.expr(Kind::Flag, depth)),
            _ => format!("existsIn({}, {})", self.expr(Kind::Map, depth), self.expr(Kind::Text, depth)),
        }
    }

    fn bounds(&mut self, depth: usize) -> String {
        let (start, stop, step) = (self.bound(depth), self.bound(depth), self.bound(depth));
        match self.rng.bool() {
            true => format!("{start}:{stop}"),
            false => format!("{start}:{stop}:{step}"),
        }
    }

    fn bound(&mut self, depth: usize) -> String {
        match self.rng.usize(..4) {
            0 => String::new(),
            1 | 2 => self.one(&["0", "1", "-1", "2", "-2", "9", "-9", "n", "none"]).to_owned(),
            _ => self.expr(Kind::Number, depth),
        }
    }

    fn arguments(&mut self, depth: usize) -> String {
        let (one, other) = (self.expr(Kind::Any, depth), self.expr(Kind::Text, depth));
        match self.rng.usize(..10) {
            0 => "()".to_owned(),
            1..=3 => format!("({one})"),
            4 => format!("({one}, {other})"),
            5 => format!("({one}, y={other})"),
            6 => format!("(*{})", self.expr(Kind::List, depth)),
            7 => format!("(**{})", self.expr(Kind::Map, depth)),
            8 => format!("({one}, *{}, z={other}, **{})", self.expr(Kind::List, depth), self.expr(Kind::Map, depth)),
            _ => format!("(x={one}, {})", self.one(&["x=1", "q=2", "y=3", "caller=4"])),
        }
    }
}
