//! Generates templates, TOML values and schemas from a grammar: mostly well formed, with unusual
//! values.

use fastrand::Rng;

const NUMBERS: [&str; 20] = [
    "0",
    "1",
    "-1",
    "2",
    "3",
    "7",
    "0.5",
    "-0.0",
    "1e308",
    "1e-300",
    "127",
    "255",
    "65536",
    "2147483648",
    "-2147483649",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "99999999999999999999",
    "170141183460469231731687303715884105727",
];
const TEXTS: [&str; 16] = [
    "", "a", "abc", "é😀", "\\n", "x y", "%s", "%5d", "{}", "{{", "user", "text", "\u{202e}",
    "\\u0000", "../x", "<b>&'",
];
const VARIABLES: [&str; 14] = [
    "ctx",
    "ctx.history",
    "ctx.history[0]",
    "ctx.history[0].content",
    "ctx.history[0].content_blocks",
    "ctx.prefix",
    "ctx.suffix",
    "ctx.system_prompt",
    "ctx.nothing",
    "x",
    "n",
    "n.v",
    "loop",
    "loop.index",
];
const FILTERS: [&str; 45] = [
    "abs",
    "capitalize",
    "count",
    "d(E)",
    "default(E)",
    "default(E, true)",
    "first",
    "float",
    "indent(E)",
    "int",
    "items",
    "join",
    "join(E)",
    "last",
    "length",
    "lines",
    "list",
    "lower",
    "map('upper')",
    "map(attribute='role')",
    "max",
    "min",
    "reject",
    "rejectattr('role')",
    "replace(E, E)",
    "reverse",
    "round",
    "round(E)",
    "select",
    "select('defined')",
    "selectattr('role', 'equalto', E)",
    "sort",
    "sort(reverse=true)",
    "split",
    "split(E)",
    "split(E, E)",
    "string",
    "title",
    "tojson",
    "trim",
    "unique",
    "trim(E)",
    "upper",
    "sort(attribute='role')",
    "unique(E)",
];
/// Filters that do not exist, or not with these arguments.
const MORE_FILTERS: [&str; 6] = [
    "urlencode",
    "nosuch",
    "tojson(indent=E)",
    "batch(E, E)",
    "attr('a')",
    "pprint",
];
const TESTS: [&str; 23] = [
    "defined",
    "undefined",
    "none",
    "string",
    "number",
    "sequence",
    "mapping",
    "iterable",
    "boolean",
    "integer",
    "float",
    "odd",
    "even",
    "divisibleby(E)",
    "eq(E)",
    "lt(E)",
    "in(E)",
    "startingwith(E)",
    "endingwith(E)",
    "true",
    "ge(E)",
    "ne(E)",
    "false",
];
const CALLS: [&str; 19] = [
    "tojson(E)",
    "existsIn(E, E)",
    "length(E)",
    "filter_by_type(E, E)",
    "filter_skip_role(E, E)",
    "strip_signature_suffix(E)",
    "tool_id(E)",
    "range(E)",
    "range(E, E)",
    "range(E, E, E)",
    "dict(a=E)",
    "namespace(v=E)",
    "f(E)",
    "caller()",
    "super()",
    "self.b()",
    "E.a",
    "E[E]",
    "loop.cycle(E, E)",
];
const PROMPT_CALLS: [&str; 12] = [
    "read_file(E)",
    "file_exists(E)",
    "read_dir(E)",
    "agent_role(E)",
    "head_lines(E, E)",
    "basename(E)",
    "dirname(E)",
    "ext(E)",
    "lower(E)",
    "upper(E)",
    "read_file(':/roles/assistant.md')",
    "read_file('${PROJECT_DIR}/x')",
];
const OPERATORS: [&str; 17] = [
    "+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "and", "or", "in",
];

/// The location of a template, which decides which functions it can call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Body,
    Prompt,
}

fn pick<'a>(rng: &mut Rng, list: &[&'a str]) -> &'a str {
    list[rng.usize(..list.len())]
}

/// An expression.
pub(crate) fn expression(rng: &mut Rng, place: Place, depth: u32) -> String {
    if depth == 0 {
        return atom(rng);
    }
    let inner = |rng: &mut Rng| expression(rng, place, depth - 1);
    match rng.u32(..12) {
        0 | 1 => atom(rng),
        2 | 3 => {
            let list: &[&str] = if rng.u32(..50) == 0 {
                &MORE_FILTERS
            } else {
                &FILTERS
            };
            let filter = pick(rng, list);
            format!("{} | {}", inner(rng), filled(rng, place, depth, filter))
        }
        4 => {
            let test = pick(rng, &TESTS);
            let not = if rng.bool() { "not " } else { "" };
            format!("{} is {not}{}", inner(rng), filled(rng, place, depth, test))
        }
        5 | 6 => {
            let list: &[&str] = if place == Place::Prompt && rng.bool() {
                &PROMPT_CALLS
            } else {
                &CALLS
            };
            let call = pick(rng, list);
            filled(rng, place, depth, call)
        }
        7 => format!("({} {} {})", inner(rng), pick(rng, &OPERATORS), inner(rng)),
        8 => format!("{}[{}:{}:{}]", inner(rng), atom(rng), atom(rng), atom(rng)),
        9 => format!("[{}, {}]", inner(rng), inner(rng)),
        10 => format!("{{'a': {}, {}: 1}}", inner(rng), atom(rng)),
        _ => match rng.u32(..3) {
            0 => format!("({} if {} else {})", inner(rng), inner(rng), inner(rng)),
            1 => format!("not {}", inner(rng)),
            _ => format!("-{}", inner(rng)),
        },
    }
}

fn atom(rng: &mut Rng) -> String {
    match rng.u32(..8) {
        0 | 1 => pick(rng, &NUMBERS).to_owned(),
        2 | 3 => format!("'{}'", pick(rng, &TEXTS).replace('\'', "")),
        4 => pick(
            rng,
            &[
                "true",
                "false",
                "none",
                "[]",
                "{}",
                "''",
                "[1, 2, 3]",
                "range(5)",
            ],
        )
        .to_owned(),
        5 => pick(rng, &VARIABLES).to_owned(),
        _ => pick(rng, &VARIABLES[..4]).to_owned(),
    }
}

/// Replaces each `E` in a string with an expression.
fn filled(rng: &mut Rng, place: Place, depth: u32, shape: &str) -> String {
    let mut parts = shape.split('E');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text += &expression(rng, place, depth - 1);
        text += part;
    }
    text
}

const STATEMENTS: [&str; 30] = [
    "{{ E }}",
    "{{ tojson(E) }}",
    "\"{{ E }}\"",
    "{% if E %}S{% endif %}",
    "{% if E %}S{% elif E %}S{% else %}S{% endif %}",
    "[{% for x in E %}{{ tojson(x) }},{% endfor %}]",
    "{% for x in E %}S{% else %}S{% endfor %}",
    "{% for x in E if E %}S{% endfor %}",
    "{% for a, b in E %}{{ a }}{% endfor %}",
    "{% for x in E recursive %}{{ loop(E) }}{% endfor %}",
    "{% set x = E %}S",
    "{% set x %}S{% endset %}{{ x }}",
    "{% set n = namespace(v=E) %}{% set n.v = E %}S",
    "{% set n.v = n %}",
    "{% set n = namespace(v=[1]) %}{% for i in range(12) %}{% set n.v = [n.v, n.v] %}{% endfor %}{{ n.v }}",
    "{% set n = namespace(v='x') %}{% for i in range(12) %}{% set n.v = n.v ~ n.v %}{% endfor %}{{ n.v }}",
    "{% with x = E, n = namespace() %}S{% endwith %}",
    "{% filter upper %}S{% endfilter %}",
    "{% macro f(a, b=E) %}S{% endmacro %}{{ f(E) }}",
    "{% macro f(a) %}{{ caller() }}{% endmacro %}{% call f(E) %}S{% endcall %}",
    "{% include 'm.jinja' %}",
    "{% include 'p.jinja' ignore missing %}",
    "{% from 'p.jinja' import f %}{{ f(E) }}",
    "{% import 'p.jinja' as x %}{{ x.f(E) }}",
    "{% block b %}S{% endblock %}",
    "{% raw %}{{ E }}{% endraw %}",
    "{# S #}",
    "{% do E %}",
    "{% else if %}{{ loop.is_last }}",
    "{\"a\": {{ tojson(E) }}, \"b\": [S]}",
];

/// A template of several statements.
pub(crate) fn template(rng: &mut Rng, place: Place, depth: u32) -> String {
    let mut text = pick(rng, &STATEMENTS).to_owned();
    while let Some(at) = text.find('S') {
        let inner = if depth == 0 {
            pick(rng, &["1", "", ",", "x", "é"]).to_owned()
        } else {
            template(rng, place, depth - 1)
        };
        text.replace_range(at..=at, &inner);
    }
    let depth = 1 + rng.u32(..3);
    filled(rng, place, depth, &text)
}

/// A template that usually renders one JSON value.
pub(crate) fn body(rng: &mut Rng) -> String {
    let depth = 1 + rng.u32(..4);
    match rng.u32(..6) {
        0 => template(rng, Place::Body, 2),
        1 => format!(
            "{{% set x = {} %}}{{{{ tojson(x) }}}}",
            expression(rng, Place::Body, depth)
        ),
        2 => format!(
            "[{{% for x in ctx.history %}}{{{{ tojson({}) }}}},{{% endfor %}}]",
            expression(rng, Place::Body, depth)
        ),
        3 => format!(
            "{}{{{{ tojson({}) }}}}",
            SHARED[rng.usize(..SHARED.len())],
            expression(rng, Place::Body, depth)
        ),
        _ => format!("{{{{ tojson({}) }}}}", expression(rng, Place::Body, depth)),
    }
}

/// Statements that define names for later expressions.
const SHARED: [&str; 6] = [
    "{% set n = namespace(v=[1]) %}{% set x = 'abc' %}",
    "{% set n = namespace(v=ctx) %}{% set n.v = n %}{% set x = n %}",
    "{% set n = namespace(v=[1]) %}{% for i in range(40) %}{% set n.v = [n.v, n.v] %}{% endfor %}{% set x = n.v %}",
    "{% set n = namespace(v='x') %}{% for i in range(40) %}{% set n.v = n.v ~ n.v %}{% endfor %}{% set x = n.v %}",
    "{% set n = namespace(v=[]) %}{% for i in range(3000) %}{% set n.v = [n.v] %}{% endfor %}{% set x = n.v %}",
    "{% set x = range(99999) %}{% set n = {'v': x | list} %}",
];

/// A TOML string.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a string")
}

/// A TOML value.
pub(crate) fn toml(rng: &mut Rng, depth: u32) -> String {
    match rng.u32(..if depth == 0 { 6 } else { 9 }) {
        0 => pick(rng, &NUMBERS).to_owned(),
        1 => quoted(pick(rng, &TEXTS)),
        2 => pick(
            rng,
            &[
                "true",
                "false",
                "nan",
                "-inf",
                "1979-05-27T07:32:00Z",
                "07:32:00",
                "0x7f",
                "''",
                "'''\nx'''",
            ],
        )
        .to_owned(),
        3..=5 => quoted(&template(rng, Place::Body, 1)),
        6 => format!("[{}, {}]", toml(rng, depth - 1), toml(rng, depth - 1)),
        7 => format!(
            "{{ a = {}, \"b.c\" = {} }}",
            toml(rng, depth - 1),
            toml(rng, depth - 1)
        ),
        _ => format!("[{}]", toml(rng, depth - 1)),
    }
}

const KEYWORDS: [&str; 30] = [
    "\"type\": \"object\"",
    "\"type\": \"nosuch\"",
    "\"type\": [\"string\", \"null\"]",
    "\"properties\": {\"messages\": S, \"x\": S}",
    "\"items\": S",
    "\"prefixItems\": [S, S]",
    "\"oneOf\": [S, S]",
    "\"anyOf\": [S, S]",
    "\"allOf\": [S]",
    "\"not\": S",
    "\"if\": S, \"then\": S, \"else\": S",
    "\"$ref\": \"#\"",
    "\"$ref\": \"#/$defs/a\"",
    "\"$ref\": \"#/nowhere\"",
    "\"$defs\": {\"a\": S}",
    "\"additionalProperties\": S",
    "\"unevaluatedProperties\": S",
    "\"unevaluatedItems\": S",
    "\"required\": [\"model\", \"x\"]",
    "\"enum\": [1, \"a\", null]",
    "\"const\": {\"a\": 1}",
    "\"pattern\": \"^(a+)+$\"",
    "\"pattern\": \"([\"",
    "\"patternProperties\": {\"^m\": S}",
    "\"minLength\": 1e3",
    "\"maximum\": -1, \"multipleOf\": 0.1",
    "\"x-reqc-discriminator\": \"type\", \"oneOf\": [S, S]",
    "\"x-reqc-free\": true",
    "\"uniqueItems\": true",
    "\"dependentSchemas\": {\"model\": S}",
];

/// A JSON Schema.
pub(crate) fn schema(rng: &mut Rng, depth: u32) -> String {
    if depth == 0 || rng.u32(..8) == 0 {
        return pick(rng, &["true", "false", "{}", "1", "{\"$ref\": \"#\"}"]).to_owned();
    }
    let count = 1 + rng.usize(..3);
    let keywords: Vec<String> = (0..count)
        .map(|_| {
            let mut text = pick(rng, &KEYWORDS).to_owned();
            while let Some(at) = text.find('S') {
                let inner = schema(rng, depth - 1);
                text.replace_range(at..=at, &inner);
            }
            text
        })
        .collect();
    format!("{{{}}}", keywords.join(", "))
}
