//! Random templates from a seed: every statement and every kind of expression, with values of every
//! kind.
//!
//! Most expressions have the kind that their position requires, so that templates do not fail
//! early; others have any kind. Values that may be added, repeated or sliced lists are read through
//! a filter, because in the engine, such lists are iterable but not sequences.

use fastrand::Rng;

use super::Source;
use crate::render::builtins::FILTERS;

/// The kind of value that an expression should have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    List,
    Map,
    Flag,
    Any,
}

const KINDS: [Kind; 6] = [
    Kind::Text,
    Kind::Number,
    Kind::List,
    Kind::Map,
    Kind::Flag,
    Kind::Any,
];

const OPERATORS: [&str; 18] = [
    "+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in",
    "and", "or",
];
const WORDY_TESTS: [&str; 25] = [
    "boolean",
    "defined",
    "divisibleby",
    "endingwith",
    "eq",
    "even",
    "false",
    "float",
    "ge",
    "gt",
    "in",
    "integer",
    "iterable",
    "le",
    "lt",
    "mapping",
    "ne",
    "none",
    "number",
    "odd",
    "sequence",
    "startingwith",
    "string",
    "true",
    "undefined",
];
const FUNCTIONS: [&str; 15] = [
    "range",
    "dict",
    "namespace",
    "tojson",
    "existsIn",
    "length",
    "filter_by_type",
    "filter_skip_role",
    "strip_signature_suffix",
    "m",
    "k",
    "mod.m",
    "ns.t",
    "l",
    "caller",
];
/// Numbers at the limits of their ranges, and strings of unusual characters.
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

/// Operands that most operators and filters reject.
const ODD: [&str; 19] = [
    "nope",
    "d.nope",
    "m",
    "k",
    "(1 if false)",
    "range",
    "mod",
    "ns",
    "caller",
    "self",
    "huge",
    "None",
    "mk",
    "170141183460469231731687303715884105727",
    "9223372036854775807",
    "-0.0",
    "z.x",
    "ns.nope",
    "{1: 1, 1.0: 2}",
];

/// The loop around a statement, unless there is a block between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Within {
    #[default]
    Nothing,
    /// A loop over a value whose length the engine may not know.
    Loop,
    LoopOverList,
    /// A recursive loop. If a block inside it called the loop, the engine would continue in the
    /// wrong template.
    Recursion,
}

/// The surroundings of a statement.
#[derive(Debug, Clone, Copy, Default)]
struct Around {
    /// The number of open tags.
    depth: usize,
    within: Within,
    /// `true` if `super()` is allowed here.
    in_block: bool,
    /// `true` if the statement is inside a recursive loop, where `do` and `from … import` leave a
    /// value behind in the engine.
    in_recursion: bool,
}

/// The name of the template that is rendered.
pub(super) const MAIN: &str = "partials/main";

/// Generates a template and the templates that it includes. Two in three are tame: they are
/// expected to evaluate without an error.
pub(super) fn templates(seed: u64) -> Vec<Source> {
    let (rng, is_wild) = (Rng::with_seed(seed), seed.is_multiple_of(3));
    let mut generator = Generator {
        rng,
        is_wild,
        calls: true,
        in_macro: false,
        includes: &["p1", "p2", "lib"],
        blocks: 0,
    };
    let main = generator.main();
    generator.includes = &["p2", "lib"];
    let one = generator.partial();
    generator.includes = &["lib"];
    let (two, base, middle) = (generator.partial(), generator.base(), generator.middle());
    let library = generator.library();
    let all = [
        ("main", main),
        ("p1", one),
        ("p2", two),
        ("lib", library),
        ("base", base),
        ("middle", middle),
    ];
    all.into_iter()
        .map(|(name, text)| Source::new(name, text))
        .collect()
}

/// Assigns values to the variables that expressions use.
const HEAD: &str = "{% set ns = namespace(a=1, t='x', l=[1, 2], q=none) %}\n\
                    {% set v1, v2, v3, x, y, w = 1, 'v', [1], 'x', none, 'w' %}\n\
                    {% import 'lib' as mod %}";

struct Generator {
    rng: Rng,
    /// `true` if code that will probably fail is allowed anywhere.
    is_wild: bool,
    /// `true` if macros can be called here.
    calls: bool,
    /// `true` if this is the body of a macro. Such a body contains no slices, because the engine
    /// does not capture the variables in them.
    in_macro: bool,
    /// The templates that can be included here.
    includes: &'static [&'static str],
    blocks: usize,
}

/// Generates templates.
impl Generator {
    fn one<'t>(&mut self, all: &[&'t str]) -> &'t str {
        all[self.rng.usize(..all.len())]
    }

    /// Returns one of the `tame` strings or, in a wild template, sometimes one of the `wild` ones.
    fn one_of<'t>(&mut self, tame: &[&'t str], wild: &[&'t str]) -> &'t str {
        if self.is_odd(3) {
            self.one(wild)
        } else {
            self.one(tame)
        }
    }

    fn is_odd(&mut self, of: usize) -> bool {
        self.is_wild && self.is_rare(of)
    }

    fn is_rare(&mut self, of: usize) -> bool {
        self.rng.usize(..of) == 0
    }

    fn main(&mut self) -> String {
        if self.is_rare(6) {
            let parent = self.one_of(&["base", "middle", "middle"], &["nosuch", MAIN]);
            return self.child(parent);
        }
        let macros = self.library();
        let count = self.rng.usize(1..5);
        format!(
            "{HEAD}{macros}{}",
            self.statements(count, Around::default())
        )
    }

    fn partial(&mut self) -> String {
        let count = self.rng.usize(1..4);
        self.statements(
            count,
            Around {
                depth: 1,
                ..Around::default()
            },
        )
    }

    /// Returns macros, and variables that can be imported. No macro calls another, because macros
    /// could call each other endlessly.
    fn library(&mut self) -> String {
        let around = (self.calls, self.in_macro);
        (self.calls, self.in_macro) = (false, true);
        let text = self.expr(Kind::Text, 2);
        let inner = Around {
            depth: 2,
            ..Around::default()
        };
        let (plain, asking) = (self.statements(2, inner), self.statements(1, inner));
        let caller = self.one_of(
            &[
                "{{ caller() if caller else '' }}",
                "{{ caller('q') if caller }}",
                "{% if caller %}{{ caller(1, y=2) }}{% endif %}",
            ],
            &[
                "{{ caller() }}",
                "{{ caller.name }}",
                "{{ caller(1, 2, 3) }}",
            ],
        );
        let (default, third) = (
            self.expr(Kind::Any, 2),
            self.one_of(&["3", "t"], &["x", "y", "nope"]),
        );
        (self.calls, self.in_macro) = around;
        format!(
            "{{% set w = {text} %}}{{% set _w = 1 %}}\n\
             {{% macro m(x=1, y={default}, z={third}) %}}({plain}){{% endmacro %}}\n\
             {{% macro k(x=1, y=2) -%}} [{caller}{asking}] {{%- endmacro %}}"
        )
    }

    fn base(&mut self) -> String {
        let at_top = Around {
            depth: 2,
            ..Around::default()
        };
        let (top, one, two) = (
            self.statements(1, at_top),
            self.statements(1, at_top),
            self.statements(1, at_top),
        );
        let required = self.one_of(&[""], &[" required"]);
        let three = if required.is_empty() {
            self.statements(1, at_top)
        } else {
            String::new()
        };
        format!(
            "{top}<{{% block b1 %}}{one}{{% endblock %}}>\n{{{{ self.b1() }}}}\
             <{{% block b2 %}}{two}{{% block b4 %}}4{{% endblock %}}{{% endblock %}}>\n\
             {{% for i in [1, 2] %}}{{% block b3{required} %}}{three}{{% endblock %}}{{% endfor %}}"
        )
    }

    fn middle(&mut self) -> String {
        let parent = self.one_of(&["base"], &["base", "p1"]);
        self.child(parent)
    }

    fn child(&mut self, parent: &str) -> String {
        let before = self.statements(
            1,
            Around {
                depth: 2,
                ..Around::default()
            },
        );
        let mut text =
            format!("{HEAD}{{% from 'lib' import m, k %}}{before}{{% extends '{parent}' %}}\n");
        for name in ["b1", "b2", "b3", "b4"] {
            if self.rng.bool() {
                let around = Around {
                    depth: 2,
                    in_block: true,
                    ..Around::default()
                };
                let body = self.statements(2, around);
                text.push_str(&format!(
                    "{{% block {name} %}}{body}{{% endblock {name} %}}\n"
                ));
            }
        }
        text + &self.statements(
            1,
            Around {
                depth: 2,
                ..Around::default()
            },
        )
    }
}

/// Generates statements.
impl Generator {
    fn statements(&mut self, count: usize, around: Around) -> String {
        let count = if count > 1 {
            self.rng.usize(1..=count)
        } else {
            count
        };
        (0..count)
            .map(|_| self.text() + &self.statement(around))
            .collect::<String>()
            + self.text().as_str()
    }

    fn text(&mut self) -> String {
        self.one(&[
            "",
            "",
            " ",
            "\n",
            "\n\n  ",
            "a",
            "é\n",
            "a b\r\n",
            "\u{1f600}\n",
            "\t\n",
            "}}",
            "\"x\": ",
        ])
        .into()
    }

    /// Returns a tag with or without whitespace control.
    fn tag(&mut self, inner: &str) -> String {
        let (left, right) = (
            self.one(&["", "", "", "", "-", "+"]),
            self.one(&["", "", "", "", "-", "+"]),
        );
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
            6 => self
                .one(&[
                    "{# note\n #}",
                    "{#- note -#}",
                    "{% raw %}{{ x }}\n{% endraw %}",
                    "{%- raw -%} {% x %} {%- endraw %}",
                ])
                .into(),
            7 => self.done(around),
            8 => self.set_block(around),
            9..=11 => self.for_loop(around),
            12..=14 => self.condition(around),
            15 => self.with_block(around),
            16 => self.filter_block(around),
            17 => self.macro_here(around),
            18 | 19 => self.call_block(around),
            20 | 21 => self.include(),
            22 | 23 => self.import(around),
            24 => self.block(around),
            _ => {
                let body = self.statements(2, inside(around));
                let value = self.one_of(
                    &["true", "false", "'html'", "'none'"],
                    &["n", "t", "nope", "z"],
                );
                self.wrapped(&format!("autoescape {value}"), &body, "endautoescape")
            }
        }
    }

    fn written(&mut self, around: Around) -> String {
        if around.within != Within::Nothing && self.is_rare(3) {
            let member = self.loop_member(around);
            return self.emit(&member);
        }
        let kind = KINDS[self.rng.usize(..KINDS.len())];
        let value = self.expr(kind, 0);
        self.emit(&value)
    }

    fn special_write(&mut self, around: Around) -> String {
        let written = if around.within == Within::Recursion && self.is_rare(2) {
            let over = self.one_of(&["[]"], &["x", "1", "[[x]]"]);
            format!("loop({over})")
        } else if around.in_block && self.is_rare(2) {
            self.one(&["super()", "super() ~ 'x'", "super() | upper"])
                .to_owned()
        } else if self.is_odd(3) {
            self.one(&[
                "caller()",
                "caller(1)",
                "super()",
                "self.b1()",
                "k(**d)",
                "(m)(1)",
            ])
            .to_owned()
        } else if self.calls {
            self.one_of(&["m", "m", "k"], &["mod.m", "nope", "w", "ns.t", "mk"])
                .to_owned()
                + &self.arguments(1)
        } else {
            self.one(&["1 if false", "x if b", "t ~ (1 if n > 9)"])
                .to_owned()
        };
        self.emit(&written)
    }

    fn done(&mut self, around: Around) -> String {
        if around.in_recursion {
            return self.written(around);
        }
        let arguments = self.arguments(1);
        let (calls, is_odd) = (self.calls, self.is_odd(2));
        let called = match calls {
            _ if is_odd => {
                self.one(&["m", "k", "nope", "tojson", "mod.m", "ns.a"])
                    .to_owned()
                    + &arguments
            }
            true => self.one(&["m", "k"]).to_owned() + &arguments,
            false => "namespace(a=1)".to_owned(),
        };
        self.tag(&format!("do {called}"))
    }

    fn assignment(&mut self) -> String {
        let kind = KINDS[self.rng.usize(..KINDS.len())];
        let value = self.expr(kind, 0);
        let kinds = if self.in_macro { 4 } else { 8 };
        let inner = match self.rng.usize(..if self.is_wild { 10 } else { kinds }) {
            0..=3 => format!("set v{} = {value}", self.rng.usize(1..4)),
            4 => format!("set ns.a = {}", self.expr(Kind::Number, 0)),
            5 => format!("set ns.t = {}", self.expr(Kind::Text, 0)),
            6 => format!("set ns.q = {value}"),
            7 => format!("set v1, v2 = {}, {value}", self.expr(Kind::Any, 1)),
            8 => format!(
                "set (v1, (v2, v3)) = {}, {}",
                self.expr(Kind::Any, 1),
                self.expr(Kind::List, 1)
            ),
            _ => format!(
                "set {}.x = {value}",
                self.one(&["d", "nope", "t", "ns.q", "ns"])
            ),
        };
        self.tag(&inner)
    }

    fn set_block(&mut self, around: Around) -> String {
        let body = self.statements(2, inside(around));
        let tame = [
            "v1",
            "v2",
            "v1 | upper",
            "v2 | trim | length",
            "v3",
            "ns.t",
            "ns.q",
        ];
        let count = if self.in_macro { 4 } else { tame.len() };
        let target = self.one_of(&tame[..count], &["d.x", "v3 | nope", "v1 | first", "ns.t"]);
        self.wrapped(&format!("set {target}"), &body, "endset")
    }

    fn for_loop(&mut self, around: Around) -> String {
        let (is_recursive, in_list_loop) = (self.is_rare(4), self.rng.bool());
        let over = match (in_list_loop, self.is_rare(4)) {
            (true, true) => "(d | items)".to_owned(),
            (true, false) => format!("({}) | list", self.expr(Kind::List, 1)),
            (false, _) => {
                let kind = if self.is_odd(3) {
                    Kind::Any
                } else {
                    [Kind::List, Kind::Map, Kind::Text][self.rng.usize(..3)]
                };
                self.expr(kind, 1)
            }
        };
        let over = if is_recursive {
            self.one(&["tree", "ll", "[1, [2, [3]]]"]).to_owned()
        } else {
            over
        };
        let target = match (is_recursive, over.contains("items")) {
            (true, _) => "x",
            (_, true) => self.one(&["x, y", "x, y", "(x, y)", "x"]),
            (..) => self.one_of(&["x"], &["x, y", "(x, y)", "x, (y, v1)"]),
        };
        let condition = match self.is_rare(3) {
            true => format!(" if {}", self.expr(Kind::Flag, 1)),
            false => String::new(),
        };
        let recursive = if is_recursive { " recursive" } else { "" };
        let within = match (is_recursive, in_list_loop) {
            (true, _) => Within::Recursion,
            (false, true) => Within::LoopOverList,
            (false, false) => Within::Loop,
        };
        let in_recursion = is_recursive || around.in_recursion;
        let inner = Around {
            within,
            in_recursion,
            ..inside(around)
        };
        let body = match is_recursive {
            true => {
                let again = self.one(&[
                    "{{ loop(x) }}",
                    "{% set v1 = loop(x) %}{{ v1 }}",
                    "{{ '' ~ loop(x) }}",
                    "{{ loop(x) | upper }}",
                ]);
                let rest = self.statements(1, inner);
                format!(
                    "{{% if x is sequence %}}({again}){{% else %}}{{{{ x }}}}\n{rest}{{% endif %}}"
                )
            }
            false => self.statements(2, inner),
        };
        let otherwise = match !is_recursive && self.is_rare(3) {
            true => self.tag("else") + &self.statements(1, inside(around)),
            false => String::new(),
        };
        self.wrapped(
            &format!("for {target} in {over}{condition}{recursive}"),
            &(body + &otherwise),
            "endfor",
        )
    }

    fn loop_member(&mut self, around: Around) -> String {
        let safe = ["index", "index0", "first", "depth", "depth0"];
        let all = ["length", "last", "revindex", "revindex0", "index", "first"];
        let tame: &[&str] = match around.within {
            Within::LoopOverList | Within::Recursion => &all,
            Within::Loop | Within::Nothing => &safe,
        };
        let member = self.one_of(tame, &["nextitem", "previtem", "nope"]);
        match self.rng.usize(..if self.is_wild { 5 } else { 9 }) {
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
        let filter = self.one_of(
            &[
                "upper",
                "trim",
                "length",
                "replace('a', 'b')",
                "tojson",
                "indent(2)",
                "list",
                "upper | trim",
                "split('a')",
            ],
            &["nope", "first", "map('nope')", "int | nope(1)"],
        );
        self.wrapped(&format!("filter {filter}"), &body, "endfilter")
    }

    fn macro_here(&mut self, around: Around) -> String {
        let name = self.one_of(&["m", "q", "v1"], &["k", "t"]);
        let parameters = self.one_of(
            &["x=1, y=2, z=3", "x=n, y=t, z='z'"],
            &[
                "",
                "x",
                "x=nope, y=caller",
                "t",
                "x=n, y=x, z=y",
                "x=none, y=t, z=caller",
            ],
        );
        let inner = Around {
            depth: around.depth + 1,
            ..Around::default()
        };
        let around = (self.calls, self.in_macro);
        (self.calls, self.in_macro) = (self.calls && self.is_wild, true);
        let body = self.statements(2, inner);
        (self.calls, self.in_macro) = around;
        let arguments = self.arguments(1);
        let declared = self.wrapped(&format!("macro {name}({parameters})"), &body, "endmacro");
        let called = self.emit(&format!("{name}{arguments}"));
        declared + &called
    }

    fn call_block(&mut self, around: Around) -> String {
        if !self.calls {
            return self.condition(around);
        }
        let inner = Around {
            depth: around.depth + 1,
            ..Around::default()
        };
        let in_macro = std::mem::replace(&mut self.in_macro, true);
        let body = self.statements(2, inner);
        self.in_macro = in_macro;
        let parameters = self.one_of(
            &["(x=1, y=2)", "(x=n, y=2)"],
            &["", "(x)", "(x, y)", "(x=n, y=x)"],
        );
        let arguments = match self.rng.bool() {
            true => "()".to_owned(),
            false => self.arguments(1),
        };
        let called = self.one_of(&["k", "k", "mod.k"], &["m", "mk", "nope", "tojson"]);
        self.wrapped(
            &format!("call{parameters} {called}{arguments}"),
            &body,
            "endcall",
        )
    }

    fn include(&mut self) -> String {
        let known = self.one(self.includes).to_owned();
        let inner = match self.rng.usize(..if self.is_wild { 9 } else { 5 }) {
            0 | 1 => format!("include '{known}'"),
            2 => format!("include ['nosuch', '{known}', 'p1']"),
            3 => format!(
                "include {} ignore missing",
                self.one_of(&["'nosuch'", "['gone', 'lib']", "[]"], &["n"])
            ),
            4 => format!("include '{}' ~ '{}'", &known[..1], &known[1..]),
            5 => format!(
                "include {}",
                self.one(&[
                    "'nosuch'",
                    "n",
                    "nope",
                    "z",
                    "[]",
                    "['nosuch', 'gone']",
                    "d"
                ])
            ),
            6 => format!("include {}", self.expr(Kind::Any, 1)),
            _ => format!("include '{}'", self.one(&["p1", "p2", "base"])),
        };
        self.tag(&inner)
    }

    fn import(&mut self, around: Around) -> String {
        if around.in_recursion {
            return self.tag("import 'lib' as mod");
        }
        let inner = self.one_of(
            &[
                "import 'lib' as mod",
                "from 'lib' import m, k as mk, w",
                "from 'lib' import w as v1, m as q",
            ],
            &[
                "import 'p1' as mod",
                "from 'lib' import nope as v3",
                "from 'nosuch' import m",
                "import nope as mod",
            ],
        );
        let imported = self.tag(inner);
        let used = match self.calls {
            true => self.one_of(
                &["mod.m(1)", "mod.w", "mod", "mod['w'] ~ w"],
                &["mod.nope", "mk(2)", "mod.m.name"],
            ),
            false => self.one_of(&["mod.w", "mod['w'] ~ w"], &["mod.nope", "mod._w"]),
        };
        match self.rng.bool() {
            true => imported + &self.emit(used),
            false => imported,
        }
    }

    /// Returns a block with a unique name. In a macro, returns another statement instead.
    fn block(&mut self, around: Around) -> String {
        if self.in_macro {
            return self.written(around);
        }
        self.blocks += 1;
        let name = format!("own{}", self.blocks);
        let body = self.statements(
            2,
            Around {
                within: Within::Nothing,
                ..inside(around)
            },
        );
        self.wrapped(&format!("block {name}"), &body, "endblock")
    }
}

fn inside(around: Around) -> Around {
    Around {
        depth: around.depth + 1,
        ..around
    }
}

/// Generates expressions.
impl Generator {
    fn expr(&mut self, kind: Kind, depth: usize) -> String {
        let kind = if self.is_odd(10) { Kind::Any } else { kind };
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
            Kind::Any if self.is_odd(2) => self.wild(depth + 1),
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
            7 if !self.in_macro => format!(
                "({one}[{other}:{third}:{}] | list)",
                self.one(&["", "1", "2"])
            ),
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
        if self.is_odd(8) {
            return self.one(&ODD).to_owned();
        }
        let leaves: &[&str] = match kind {
            Kind::Text => &[
                "t",
                "u",
                "''",
                "'a'",
                "\"é\\n\"",
                "'<&>'",
                "ns.t",
                "d.t",
                "ctx.name",
                "w",
                "'a' 'b'",
            ],
            Kind::Number => &[
                "n", "f", "big", "0", "1", "2", "1.5", "1_000", "0x1F", "0b11", "1e3", "-3",
                "ns.a", "d.n",
            ],
            Kind::List => &[
                "l",
                "ll",
                "[]",
                "[1, 'a', none]",
                "(1, 2)",
                "()",
                "(1,)",
                "tup",
                "ctx.items",
                "ns.l",
                "range(3)",
                "tree",
            ],
            Kind::Map => &[
                "d",
                "dd",
                "{}",
                "{'a': 1}",
                "{1: 2, 'b': [1]}",
                "{t: n}",
                "ctx",
                "dict(a=1)",
                "ctx.items[0]",
            ],
            Kind::Flag => &[
                "true",
                "false",
                "b",
                "True",
                "False",
                "(t is defined)",
                "(nope is undefined)",
                "(n == 1)",
            ],
            Kind::Any => &[
                "none", "z", "x", "y", "v1", "v2", "v3", "ns.q", "t", "l", "d", "n",
            ],
        };
        self.one(leaves).to_owned()
    }

    fn of_any_kind(&mut self, kind: Kind, depth: usize) -> String {
        let (one, other) = (self.expr(kind, depth), self.expr(kind, depth));
        match self.rng.usize(..if self.is_wild { 10 } else { 8 }) {
            0 => format!("({one} if {} else {other})", self.expr(Kind::Flag, depth)),
            1 => format!("({one})"),
            2 => format!("({one} or {other})"),
            3 => format!("({one} and {other})"),
            4 => format!(
                "[{one}, {other}][{}]",
                self.one(&["0", "1", "-1", "-2", "n - 2"])
            ),
            5 => format!("{{'a': {one}}}.a"),
            6 => format!("({one} | default({other}))"),
            7 => format!("([{one}, {other}] | first)"),
            8 => format!("[{one}, {other}][{}]", self.expr(Kind::Number, depth)),
            _ => format!("({one} if {})", self.expr(Kind::Flag, depth)),
        }
    }

    fn of_text(&mut self, depth: usize) -> String {
        let one = self.expr(Kind::Text, depth);
        match self.rng.usize(..if self.is_wild { 14 } else { 11 }) {
            0 | 1 => format!("({one} ~ {})", self.expr(Kind::Any, depth)),
            2 => format!("({one} + {})", self.expr(Kind::Text, depth)),
            3 => format!(
                "({one} * {})",
                self.one_of(&["0", "2", "3", "n"], &["-1", "1.5", "f"])
            ),
            4 | 5 => {
                let filter = self.one_of(
                    &[
                        "upper",
                        "lower",
                        "trim",
                        "title",
                        "capitalize",
                        "string",
                        "reverse",
                        "indent(2)",
                        "replace('a', t)",
                        "trim('a')",
                    ],
                    &["first", "last", "nope", "indent('a')", "upper(1)"],
                );
                format!("({one} | {filter})")
            }
            6 => format!("({} | join({one}))", self.expr(Kind::List, depth)),
            7 => format!("({} | tojson)", self.expr(Kind::Any, depth)),
            8 if self.in_macro => format!("({one} | trim)"),
            8 => format!("(({one})[{}] | string)", self.bounds(depth)),
            9 if self.calls => self.one(&["m", "mod.m"]).to_owned() + &self.arguments(depth),
            9 => format!("strip_signature_suffix({one})"),
            10 => format!(
                "dd.a.{}",
                self.one_of(&["t"], &["n", "b", "nope", "nope.x"])
            ),
            11 => format!("({one})[{}]", self.expr(Kind::Number, depth)),
            12 => format!("tojson({})", self.expr(Kind::Any, depth)),
            _ => format!("({one}).{}", self.one(&["upper()", "x", "strip()"])),
        }
    }

    fn of_number(&mut self, depth: usize) -> String {
        let one = self.expr(Kind::Number, depth);
        match self.rng.usize(..10) {
            0..=2 => format!(
                "({one} {} {})",
                self.one(&["+", "-", "+", "*"]),
                self.expr(Kind::Number, depth)
            ),
            3 if self.is_odd(2) => {
                format!(
                    "({one} {} {})",
                    self.one(&["/", "//", "%", "**"]),
                    self.expr(Kind::Number, depth)
                )
            }
            3 => format!(
                "({one} {})",
                self.one(&["/ 2", "// 3", "% 7", "** 2", "/ -0.5", "// 2.5", "% -2"])
            ),
            4 => format!("-{one}"),
            5 => format!("({} | length)", self.expr(Kind::List, depth)),
            6 => format!(
                "({one} | {})",
                self.one(&["abs", "int", "float", "round", "round(1)", "default(1)"])
            ),
            7 => format!("length({})", self.expr(Kind::Text, depth)),
            8 if self.is_odd(2) => {
                format!(
                    "({} | {})",
                    self.expr(Kind::List, depth),
                    self.one(&["max", "min", "first", "last"])
                )
            }
            8 => format!(
                "(l | {})",
                self.one(&["max", "min", "first", "last", "count"])
            ),
            _ => format!("({} | int(0))", self.expr(Kind::Text, depth)),
        }
    }

    fn of_list(&mut self, depth: usize) -> String {
        let one = self.expr(Kind::List, depth);
        match self.rng.usize(..if self.is_wild { 14 } else { 12 }) {
            0 => format!("[{one}, {}]", self.expr(Kind::Any, depth)),
            1 => format!("({one}, {})", self.expr(Kind::Any, depth)),
            2 => format!(
                "(({one} | list + {} | list) | list)",
                self.expr(Kind::List, depth)
            ),
            3 => format!(
                "(({one} * {}) | list)",
                self.one_of(&["0", "1", "2", "n"], &["-1", "f", "t"])
            ),
            4 | 5 if !self.in_macro => format!("(({one})[{}] | list)", self.bounds(depth)),
            4..=7 => {
                let filter = self.one_of(
                    &[
                        "list",
                        "reverse",
                        "unique",
                        "map('string')",
                        "select('defined')",
                        "reject('none')",
                        "select('eq', 1)",
                    ],
                    &[
                        "sort",
                        "sort(reverse=true)",
                        "map(attribute='a')",
                        "selectattr('a')",
                        "rejectattr('b', 'eq', 1)",
                        "map('upper')",
                    ],
                );
                format!("({one} | {filter})")
            }
            8 => format!("({} | items)", self.expr(Kind::Map, depth)),
            9 => {
                format!(
                    "({} | {})",
                    self.expr(Kind::Text, depth),
                    self.one(&["split('a')", "list", "lines", "split"])
                )
            }
            10 => format!(
                "range({})",
                self.one_of(&["3", "1, 4", "5, 0, -2", "n", "0"], &["t", "1, 2, 0", "f"])
            ),
            11 => format!(
                "filter_by_type(ctx.items, {})",
                self.one_of(&["'a'", "'b'", "t"], &["n"])
            ),
            12 => format!("(({one} + {}) | list)", self.expr(Kind::List, depth)),
            _ => format!("ll[{}]", self.expr(Kind::Number, depth)),
        }
    }

    fn of_map(&mut self, depth: usize) -> String {
        let one = self.expr(Kind::Any, depth);
        match self.rng.usize(..5) {
            0 => format!(
                "{{'a': {one}, {}: {}}}",
                self.expr(Kind::Text, depth),
                self.expr(Kind::Any, depth)
            ),
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
            0 => format!("(not {one})"),
            1..=3 => format!(
                "({one} {} {other})",
                self.one(&["==", "!=", "<", "<=", ">", ">="])
            ),
            4 => format!("({one} < {other} <= {})", self.expr(kind, depth)),
            5 => format!(
                "({one} {} {})",
                self.one(&["in", "not in"]),
                self.expr(Kind::List, depth)
            ),
            6 => format!("({one} in {})", self.expr(Kind::Map, depth)),
            7 => format!(
                "({one} == {other} != {other} in {})",
                self.expr(Kind::List, depth)
            ),
            8 | 9 => {
                let test = self.one_of(
                    &[
                        "defined",
                        "undefined",
                        "none",
                        "string",
                        "number",
                        "mapping",
                        "sequence",
                        "iterable",
                        "boolean",
                        "true",
                        "even",
                        "odd",
                        "divisibleby(2)",
                        "eq(1)",
                        "in([1, 'a'])",
                        "integer",
                        "float",
                        "lt 2",
                    ],
                    &["nope", "startingwith('a')", "even(1)", "in(1)"],
                );
                format!("({one} is {}{test})", self.one(&["", "not "]))
            }
            10 => format!(
                "({} and {})",
                self.expr(Kind::Flag, depth),
                self.expr(Kind::Flag, depth)
            ),
            _ => format!(
                "existsIn({}, {})",
                self.expr(Kind::Map, depth),
                self.expr(Kind::Text, depth)
            ),
        }
    }

    /// Returns the bounds of a slice. Steps are positive: with negative steps, only the evaluator
    /// slices as Python does.
    fn bounds(&mut self, depth: usize) -> String {
        let (start, end) = (self.bound(depth), self.bound(depth));
        let step = self.one_of(&["", "1", "2", "n", "none"], &["0", "t", "9"]);
        match self.rng.bool() {
            true => format!("{start}:{end}"),
            false => format!("{start}:{end}:{step}"),
        }
    }

    fn bound(&mut self, depth: usize) -> String {
        match self.rng.usize(..4) {
            0 => String::new(),
            1 if self.is_odd(2) => self.expr(Kind::Number, depth),
            _ => self
                .one(&["0", "1", "-1", "2", "-2", "9", "-9", "n", "none"])
                .to_owned(),
        }
    }

    /// Returns arguments for macros with the parameters `x`, `y` and `z`.
    fn arguments(&mut self, depth: usize) -> String {
        let (one, other) = (self.expr(Kind::Any, depth), self.expr(Kind::Text, depth));
        match self.rng.usize(..if self.is_wild { 12 } else { 8 }) {
            0 => "()".to_owned(),
            1 | 2 => format!("({one})"),
            3 => format!("({one}, {other})"),
            4 => format!("({one}, y={other})"),
            5 => format!("(*[{one}, {other}])"),
            6 => format!("(**{{'x': {one}}})"),
            7 => format!("({one}, **{{'y': {other}}})"),
            8 => format!("(*{})", self.expr(Kind::List, depth)),
            9 => format!("(**{})", self.expr(Kind::Map, depth)),
            10 => format!(
                "({one}, *{}, z={other}, **{})",
                self.expr(Kind::List, depth),
                self.expr(Kind::Map, depth)
            ),
            _ => format!(
                "(x={one}, {})",
                self.one(&["x=1", "q=2", "y=3", "caller=4"])
            ),
        }
    }
}
