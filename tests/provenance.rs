//! Tests the source of each value: almost every byte has an exact source, and a change of the cited
//! source changes the value.
//!
//! ```sh
//! cargo test --release --features long-tests --test provenance    # at least 1,000 values
//! REQC_EVERY_SOURCE=1 cargo test --release --features long-tests --test provenance    # all
//! ```

#![expect(
    clippy::disallowed_methods,
    reason = "the test itself reads the files that it alters"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use reqc::compile::explain::{Explainer, Explanation, SourceKind};
use reqc::compile::impact::{ImpactQuery, impact};
use reqc::compile::{Compiler, Selection};
use reqc::json::Pointer;
use reqc::repo::LoadOptions;
use reqc::system::Embedded;
use reqc::world::MemoryWorld;
use serde_json::Value;

/// The files of a collection of agents, in memory.
struct Collection {
    files: BTreeMap<String, String>,
}

/// A value in one body.
#[derive(Debug, Clone)]
struct Place {
    agent: String,
    context: String,
    pointer: Pointer,
    value: Value,
}

/// A piece of a file that is cited as the source of values.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Cited {
    path: String,
    start: usize,
    end: usize,
}

impl Collection {
    fn read(folder: &Path) -> Collection {
        let mut files = BTreeMap::new();
        read_into(folder, folder, &mut files);
        Collection { files }
    }

    /// Returns the bundled agents, read from this repository.
    fn bundled() -> Collection {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut files = BTreeMap::new();
        for folder in [
            "agents",
            "partials",
            "roles",
            "contexts",
            "providers",
            "schemas",
        ] {
            read_into(root, &root.join(folder), &mut files);
        }
        let config = root.join("reqc.toml");
        files.insert(
            "reqc.toml".to_owned(),
            std::fs::read_to_string(config).expect("the project has one"),
        );
        Collection { files }
    }

    /// Returns the collection for the original engine, which has no `reqc.toml`.
    fn flat() -> Collection {
        Collection::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/collections/flat"))
    }

    /// Returns the same collection with `dialect = "inja"`: partials keep their line ends.
    fn flat_inja() -> Collection {
        let mut collection = Collection::flat();
        collection
            .files
            .insert("reqc.toml".to_owned(), "dialect = \"inja\"\n".to_owned());
        collection
    }

    fn compile(&self) -> Compiler {
        let world: MemoryWorld = self
            .files
            .iter()
            .map(|(path, text)| (path.clone(), text.clone()))
            .collect();
        Compiler::load(
            Arc::new(world),
            Arc::new(Embedded::bundled()),
            LoadOptions::default(),
        )
    }

    /// Compiles the collection with this text in place of the cited one.
    fn altered(&self, cited: &Cited, text: &str) -> Option<Compiler> {
        let mut files = self.files.clone();
        files
            .get_mut(&cited.path)?
            .replace_range(cited.start..cited.end, text);
        Some(Collection { files }.compile())
    }
}

fn read_into(root: &Path, folder: &Path, files: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be listed").path();
        match path.is_dir() {
            true => read_into(root, &path, files),
            false => {
                let name = path
                    .strip_prefix(root)
                    .expect("below")
                    .to_str()
                    .expect("UTF-8")
                    .replace('\\', "/");
                files.extend(std::fs::read_to_string(&path).ok().map(|text| (name, text)));
            }
        }
    }
}

/// Explains every leaf of every body.
fn explain_all(compiler: &Compiler, mut visit: impl FnMut(&str, &str, &Explanation)) {
    for &(id, _) in compiler.agents() {
        let agent = compiler.hierarchy().get(id).name.value.to_string();
        for ready in compiler.contexts() {
            if let Some(Ok(explained)) =
                Explainer::new(compiler).explain(id, &ready.context.name, None, None)
            {
                explained
                    .values
                    .iter()
                    .for_each(|it| visit(&agent, &ready.context.name, it));
            }
        }
    }
}

/// Counts the bytes that have no exact source, by the tag that computed them.
fn inexact(compiler: &Compiler) -> BTreeMap<String, usize> {
    let mut reasons = BTreeMap::new();
    explain_all(compiler, |_, _, it| {
        for source in it
            .sources
            .iter()
            .filter(|source| source.kind.is_inferred() || source.span.is_none())
        {
            let tag = source.tag.map(|tag| {
                format!(
                    "{} {}",
                    compiler.sources().describe(tag),
                    compiler.sources().slice(tag)
                )
            });
            *reasons
                .entry(format!("{} {tag:?} {:?}", source.kind.name(), source.data))
                .or_default() += source.len;
        }
    });
    reasons
}

/// Counts the bytes of all leaves by the kind of their source; values that come from no file are
/// separate.
fn bytes_by_source(compiler: &Compiler) -> BTreeMap<&'static str, usize> {
    let mut bytes: BTreeMap<&'static str, usize> = BTreeMap::new();
    explain_all(compiler, |_, _, it| {
        for source in &it.sources {
            let is_told = source.span.is_some() || source.len == 0;
            *bytes
                .entry(if is_told {
                    source.kind.name()
                } else {
                    "in no file"
                })
                .or_default() += source.len;
        }
        if it.sources.is_empty() {
            *bytes
                .entry(if it.step.is_some() { "step" } else { "literal" })
                .or_default() += it.value.to_string().len();
        }
    });
    bytes
}

fn assert_complete(collection: &Collection) {
    let compiler = collection.compile();
    let bytes = bytes_by_source(&compiler);
    let all: usize = bytes.values().sum();
    let inexact: usize = ["computed", "unknown", "in no file"]
        .iter()
        .filter_map(|kind| bytes.get(kind))
        .sum();
    println!("{all} bytes of leaves: {bytes:?}");
    assert!(all > 10_000, "{bytes:?}");
    assert!(
        (all - inexact) * 100 >= all * 98,
        "{bytes:?}: {:#?}",
        self::inexact(&compiler)
    );
    assert_eq!(bytes.get("unknown"), None, "every template can be followed");
}

#[test]
fn nearly_every_byte_of_the_bundled_agents_has_an_exact_source() {
    assert_complete(&Collection::bundled());
}

#[test]
fn nearly_every_byte_of_the_other_dialect_has_an_exact_source() {
    assert_complete(&Collection::flat());
    assert_complete(&Collection::flat_inja());
}

/// Returns the exact sources of values, each with its values.
fn citations(collection: &Collection, compiler: &Compiler) -> BTreeMap<Cited, Vec<Place>> {
    let mut cited: BTreeMap<Cited, Vec<Place>> = BTreeMap::new();
    explain_all(compiler, |agent, context, it| {
        let from_template = it
            .sources
            .iter()
            .filter(|source| source.len > 0 && !source.kind.is_inferred());
        let from_template = from_template
            .filter(|source| source.kind != SourceKind::Tag)
            .filter_map(|source| source.span);
        let from_step = it
            .step
            .and_then(|(_, setting)| setting)
            .filter(|_| it.sources.is_empty());
        let from_profile = it.literal.filter(|_| it.sources.is_empty());
        // For a file that is read and trimmed as a whole, only the first byte is cited.
        for span in from_template.chain(from_step).chain(from_profile) {
            let file = compiler.sources().get(span.file);
            let place = Cited {
                path: file.path().to_string(),
                start: span.start as usize,
                end: span.end as usize,
            };
            if collection
                .files
                .get(&place.path)
                .is_some_and(|text| text == file.text())
            {
                let (agent, context) = (agent.to_owned(), context.to_owned());
                let value = Place {
                    agent,
                    context,
                    pointer: it.pointer.clone(),
                    value: it.value.clone(),
                };
                cited.entry(place).or_default().push(value);
            }
        }
    });
    cited
}

/// Changes one character of a string so that it keeps its type: another letter, another digit, the
/// other boolean. `None` if that is not possible.
fn changed(text: &str) -> Option<String> {
    match text {
        "true" => return Some("false".to_owned()),
        "false" => return Some("true".to_owned()),
        "null" => return None,
        _ => {}
    }
    let bytes = text.as_bytes();
    let is_free =
        |at: usize| at == 0 || bytes[at - 1] != b'\\' && (at < 2 || bytes[at - 2] != b'u');
    let at = (0..bytes.len()).find(|&at| bytes[at].is_ascii_alphanumeric() && is_free(at))?;
    let other = match bytes[at] {
        b'0' if bytes.len() > 1 => b'0',
        b'9' => b'8',
        digit if digit.is_ascii_digit() => digit + 1,
        b'z' => b'y',
        b'Z' => b'Y',
        letter => letter + 1,
    };
    let mut altered = bytes.to_vec();
    altered[at] = other;
    String::from_utf8(altered).ok()
}

/// Counts the values that changed, stayed the same, or could not be compiled after the change.
#[derive(Debug, Default)]
struct Tried {
    changed: usize,
    same: Vec<String>,
    refused: usize,
}

fn try_citations(collection: &Collection, at_least: usize) -> Tried {
    let compiler = collection.compile();
    let all = citations(collection, &compiler);
    let every = std::env::var_os("REQC_EVERY_SOURCE").is_some();
    // A fixed order that spreads over all files.
    let mut order: Vec<(&Cited, &Vec<Place>)> = all.iter().collect();
    order.sort_by_key(|(cited, _)| {
        (cited.start * 2_654_435_761 + cited.path.len() * 40_503) % 1_000_003
    });
    let mut tried = Tried::default();
    for (cited, places) in order {
        if !every && tried.changed + tried.same.len() >= at_least {
            break;
        }
        let text = &collection.files[&cited.path][cited.start..cited.end];
        let Some(altered) = changed(text).filter(|altered| altered != text) else {
            continue;
        };
        let Some(after) = collection.altered(cited, &altered) else {
            continue;
        };
        for place in places.iter().take(if every { usize::MAX } else { 12 }) {
            tried.one(&after, cited, place, &altered);
        }
    }
    tried
}

impl Tried {
    fn one(&mut self, after: &Compiler, cited: &Cited, place: &Place, altered: &str) {
        let is_there = after.context(&place.context).is_some();
        let id = after.hierarchy().by_name(&place.agent).filter(|_| is_there);
        let body = id
            .and_then(|id| after.body(id, &place.context, None))
            .and_then(Result::ok);
        match body.map(|body| body.value().pointer(place.pointer.as_str()).cloned()) {
            None => self.refused += 1,
            Some(value) if value.as_ref() != Some(&place.value) => self.changed += 1,
            Some(_) => self.same.push(format!(
                "{}:{}..{} as {altered:?} leaves {} of {} with {} as it is",
                cited.path, cited.start, cited.end, place.pointer, place.agent, place.context
            )),
        }
    }
}

fn assert_cited(collection: &Collection, at_least: usize) {
    let tried = try_citations(collection, at_least);
    let all = tried.changed + tried.same.len();
    println!(
        "{all} values: {} changed, {} refused",
        tried.changed, tried.refused
    );
    assert!(all >= at_least, "{tried:?}");
    assert!(tried.same.len() * 200 <= all, "{:#?}", tried.same);
}

#[test]
fn changing_what_is_cited_changes_values_of_the_bundled_agents() {
    assert_cited(&Collection::bundled(), 1_000);
}

#[test]
fn changing_what_is_cited_changes_values_of_the_other_dialect() {
    assert_cited(&Collection::flat(), 300);
}

/// A generator of random templates, with statements and expressions of all kinds, that write a list
/// of strings.
struct Grammar(fastrand::Rng);

impl Grammar {
    fn pick<'c>(&mut self, choices: &[&'c str]) -> &'c str {
        choices[self.0.usize(..choices.len())]
    }

    fn template(&mut self) -> String {
        let mut template = String::from(
            "{% macro m(a, b='d') %}<{{ a }}-{{ b }}{% if caller is defined %}{{ caller() }}{% endif %}>{% endmacro %}{% import 'partials/lib.jinja' as lib %}\
             {%- set ns = namespace(t='n') -%}{% set s = 'sé\\n' %}[\"\"",
        );
        for _ in 0..self.0.usize(1..6) {
            let statement = self.statement(3);
            template.push_str(&statement);
        }
        template + "]"
    }

    fn space(&mut self) -> &'static str {
        ["", "", " ", "\n", "  \n "][self.0.usize(..5)]
    }

    fn dash(&mut self) -> &'static str {
        ["", "", "-"][self.0.usize(..3)]
    }

    /// Generates a tag that may trim the text around it.
    fn tag(&mut self, inner: &str) -> String {
        let (before, after) = (self.dash(), self.dash());
        format!(
            "{}{{%{before} {inner} {after}%}}{}",
            self.space(),
            self.space()
        )
    }

    /// Generates a statement that writes a comma and an element, or nothing.
    #[expect(clippy::too_many_lines, reason = "one arm for each statement")]
    fn statement(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.element();
        }
        let inner = depth - 1;
        match self.0.usize(..14) {
            0 => format!(
                "{}{}{}",
                self.tag("if ctx.history"),
                self.statement(inner),
                self.tag("endif")
            ),
            1 => {
                let (test, yes, no) = (self.test(), self.statement(inner), self.statement(inner));
                format!(
                    "{}{yes}{}{no}{}",
                    self.tag(&format!("if {test}")),
                    self.tag("else"),
                    self.tag("endif")
                )
            }
            2 => {
                let body = self.statement(inner);
                format!(
                    "{}{body}{}",
                    self.tag("for x in ctx.history"),
                    self.tag("endfor")
                )
            }
            3 => {
                let body = self.statement(inner);
                format!(
                    "{}{body}{}",
                    self.tag("for x in ['p', 'q', s]"),
                    self.tag("endfor")
                )
            }
            4 => {
                let text = self.text(inner);
                format!("{}{text}{}", self.tag("set s"), self.tag("endset"))
            }
            5 => {
                let (text, filter) = (
                    self.text(inner),
                    self.pick(&["trim", "upper", "tojson", "replace('a', 'b')", "indent(2)"]),
                );
                format!(
                    "{}{text}{}",
                    self.tag(&format!("set s | {filter}")),
                    self.tag("endset")
                )
            }
            6 => {
                let expression = self.expression(2);
                self.tag(&format!("set s = {expression}"))
            }
            7 => {
                let expression = self.expression(2);
                self.tag(&format!("set ns.t = {expression}"))
            }
            8 => format!(
                "{}{}{}",
                self.tag("with s = ns.t ~ '!'"),
                self.statement(inner),
                self.tag("endwith")
            ),
            9 => self
                .pick(&[
                    "{% include 'partials/one.jinja' %}",
                    "{%- include \"partials/two.jinja\" -%}",
                ])
                .to_owned(),
            10 => format!(
                ",\"{}\"",
                self.pick(&[
                    "literal",
                    "é",
                    "{% raw %}{{ raw }}{% endraw %}",
                    "{# gone #}",
                    ""
                ])
            ),
            11 => {
                let text = self.text(inner);
                format!(
                    "{}{}{text}{}{}{}",
                    self.tag("set t"),
                    self.tag("filter upper"),
                    self.tag("endfilter"),
                    self.tag("endset"),
                    ",{{ tojson(t) }}"
                )
            }
            12 => {
                let text = self.text(inner);
                format!(
                    "{}{}{text}{}{}{}",
                    self.tag("set t"),
                    self.tag("call m('k')"),
                    self.tag("endcall"),
                    self.tag("endset"),
                    ",{{ tojson(t) }}"
                )
            }
            _ => self.element(),
        }
    }

    fn element(&mut self) -> String {
        let expression = self.expression(3);
        match self.0.usize(..4) {
            0 => format!(",{}{{{{ tojson({expression}) }}}}", self.space()),
            1 => format!(",{{{{- ({expression}) | tojson -}}}}{}", self.space()),
            2 => format!(
                ",{{{{ tojson({expression} if {} else {}) }}}}",
                self.test(),
                self.expression(1)
            ),
            _ => format!(
                ",\"a{{{{ ({expression}) | replace('\"', '') | replace('\\\\', '') | replace('\\n', '') }}}}b\""
            ),
        }
    }

    /// Generates the content of a captured block.
    fn text(&mut self, depth: usize) -> String {
        let expression = self.expression(2);
        match self.0.usize(..6) {
            0 => format!(" text {{{{ {expression} }}}}{}", self.space()),
            1 if depth > 0 => format!(
                "{}{}{}{}",
                self.tag("for y in [1, 2]"),
                self.text(depth - 1),
                "{{ loop.index }}{{ y }}",
                self.tag("endfor")
            ),
            2 if depth > 0 => format!(
                "{}{}{}",
                self.tag("if ns.t"),
                self.text(depth - 1),
                self.tag("endif")
            ),
            3 if depth > 0 => format!(
                "{}{}{}{{{{ u }}}}",
                self.tag("set u"),
                self.text(depth - 1),
                self.tag("endset")
            ),
            4 => "{% include 'partials/text.jinja' %}".to_owned(),
            _ => format!("{{{{ {expression} }}}}"),
        }
    }

    fn test(&mut self) -> &'static str {
        self.pick(&[
            "s",
            "ns.t == 's'",
            "'a' in s",
            "ctx.history | length > 1",
            "x is defined",
            "not s",
            "1 > 2",
        ])
    }

    /// Generates an expression whose value is a string.
    fn expression(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self
                .pick(&[
                    "s",
                    "ns.t",
                    "'a'",
                    "\"it's \\\"q\\\"\\n\"",
                    "ctx.history[0].content",
                    "ctx['history'][-1].role",
                    "ctx.history | length | string",
                    "(ctx.history | first).content",
                    "'é' * 3",
                    "ctx.system_prompt",
                ])
                .to_owned();
        }
        let (a, b) = (self.expression(depth - 1), self.expression(depth - 1));
        match self.0.usize(..18) {
            0 => format!("({a} ~ {b})"),
            1 => format!("({a} + {b})"),
            2 => format!("({a} if {} else {b})", self.test()),
            3 => format!("({a} or {b})"),
            4 => format!("m({a})"),
            5 => format!("m({a}, b={b})"),
            6 => format!("lib.wrap({a})"),
            7 => format!("({a} | trim)"),
            8 => format!(
                "({a} | {})",
                self.pick(&[
                    "upper",
                    "lower",
                    "title",
                    "capitalize",
                    "string",
                    "tojson",
                    "reverse",
                    "indent(3, true)",
                    "split('o') | join('-')",
                    "lines | last | string",
                    "replace('', s)",
                ])
            ),
            9 => format!("({a} | default({b}, true))"),
            10 => format!("[{a}, {b}] | join({})", self.pick(&["', '", "s", "''"])),
            11 => format!("({a})[{}]", self.pick(&["1:", ":2", "1:-1", "::2", ":"])),
            12 => format!("({a} | replace('a', {b}))"),
            13 => format!("{{'k': {a}}}.k"),
            14 => format!("[{a}, {b}][{}]", self.pick(&["0", "1", "-1"])),
            15 => format!("tojson([{a}, {{'k': {b}}}, 1, none, true])"),
            16 => format!("[{a}, {b}] | map('upper') | join"),
            _ => a,
        }
    }
}

/// Returns a repository with one agent for each template.
fn agents_with(templates: &[String], dialect: &str) -> Compiler {
    let mut files: Vec<(String, String)> = vec![
        ("reqc.toml".into(), dialect.to_owned()),
        ("providers/p.toml".into(), "name = \"P\"\nclient_api = \"OpenAI Compatible\"\nurl = \"https://p.example/v1\"\n".into()),
        ("agents/base.toml".into(), "name = \"Base\"\nabstract = true\nprovider_instance = \"P\"\nendpoint = \"chat\"\nsystem_prompt = \"You {{ upper('are') }} {{ agent_role('me') | trim }}\\n{{ language }}\"\n[body]\n".into()),
        ("roles/me.md".into(), "a rôle\nof two lines\n".into()),
        ("partials/lib.jinja".into(), "ignored {{ 1 }}{% macro wrap(t) -%} ({{ t }}) {%- endmacro %}".into()),
        ("partials/one.jinja".into(), ",{{ tojson(s) }}{% include 'partials/two.jinja' %}".into()),
        ("partials/two.jinja".into(), "{% for m in ctx.history %},\"{{ loop.index }}\"{% endfor %}\n".into()),
        ("partials/text.jinja".into(), "text of a file {{ s }} {% set s = 'inner' %}{{ s -}}  \n".into()),
        ("contexts/turn.json".into(), r#"{"name": "turn", "why": "one", "kind": "chat", "golden": true, "language": "Rust",
            "history": [{"role": "user", "content": "hel\u0000lo \"q\""}, {"role": "assistant", "content": [{"type": "text", "text": "é\n x"}]}, {"role": "user", "content": "more"}]}"#.into()),
    ];
    for (index, template) in templates.iter().enumerate() {
        let escaped = serde_json::to_string(template)
            .expect("a string")
            .replace('\u{7f}', "\\u007f");
        files.push((
            format!("agents/a{index}.toml"),
            format!("name = \"A{index}\"\nextends = \"Base\"\n[body]\nx = {escaped}\n"),
        ));
    }
    let world: MemoryWorld = files.into_iter().collect();
    let options = LoadOptions {
        without_bundled: true,
        ..LoadOptions::default()
    };
    Compiler::load(Arc::new(world), Arc::new(Embedded::bundled()), options)
}

/// The number of templates is 5,000, or the value of `REQC_TEMPLATES`.
#[test]
fn random_templates_are_followed_byte_by_byte() {
    let wanted = std::env::var("REQC_TEMPLATES")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(5_000);
    let mut grammar = Grammar(fastrand::Rng::with_seed(11));
    let (mut followed, mut failed) = (0, 0);
    for dialect in ["", "dialect = \"inja\"\n"].into_iter().cycle() {
        if followed >= wanted {
            break;
        }
        assert!(
            failed <= wanted,
            "templates that fail prove nothing: {followed} of {wanted}"
        );
        let line_end = if dialect.is_empty() { "" } else { "\n" };
        let templates: Vec<String> = (0..50).map(|_| grammar.template() + line_end).collect();
        let compiler = agents_with(&templates, dialect);
        for (index, template) in templates.iter().enumerate() {
            let id = compiler
                .hierarchy()
                .by_name(&format!("A{index}"))
                .expect("it is there");
            match Explainer::new(&compiler).explain(id, "turn", None, None) {
                Some(Ok(explained)) => {
                    followed += 1;
                    let lost = explained
                        .values
                        .iter()
                        .find(|it| it.step.is_none() && it.sources.is_empty());
                    assert!(lost.is_none(), "{template}\n{lost:?}");
                }
                Some(Err(found)) => {
                    failed += 1;
                    if failed < 20 {
                        println!(
                            "{template}\n   {:?}",
                            found
                                .iter()
                                .map(|f| (&f.rule.code, &f.message))
                                .collect::<Vec<_>>()
                        );
                    }
                }
                None => {
                    failed += 1;
                    if failed < 20 {
                        println!(
                            "{template}\n   {:?}",
                            compiler
                                .findings()
                                .iter()
                                .map(|f| (&f.rule.code, &f.message))
                                .collect::<Vec<_>>()
                        );
                    }
                }
            }
        }
    }
    println!("{followed} templates followed, {failed} with findings");
}

/// An agent that uses every mechanism. The snapshot has the sources of each value as `KIND PLACE
/// TEXT`, then the steps.
#[test]
fn each_mechanism_is_told() {
    let files = [
        (
            "providers/p.toml",
            "name = \"P\"\nclient_api = \"Claude\"\nurl = \"https://p.example/v1\"\n",
        ),
        (
            "agents/base.toml",
            "name = \"Base\"\nabstract = true\nprovider_instance = \"P\"\nendpoint = \"messages\"\n[body]\nmax_tokens = 1\ntop_k = 1\n",
        ),
        (
            "agents/middle.toml",
            "name = \"Middle\"\nabstract = true\nextends = \"Base\"\n[body]\nmax_tokens = 2\n",
        ),
        (
            "agents/a.toml",
            r#"name = "A"
extends = "Middle"
model = "m-1"
enable_tools = true
cache_prompt = true
cache_breakpoints = ["system"]
system_prompt = "{{ agent_role('me') | trim }} {{ read_file('${PROJECT_DIR}/notes.txt') }} {{ head_lines(read_file(':/roles/two.md'), 1) }}"
[body]
max_tokens = 3
system = "{{ tojson(ctx.system_prompt) }}"
capture = "{% set c %}[\"in set\"]{% endset %}{{ c }}"
macro = '{% macro m(x) %}["in macro", {{ tojson(x) }}]{% endmacro %}{{ m(ctx.history[0].content) }}'
import = '{% import "partials/lib.jinja" as lib %}{{ tojson(lib.wrap("w")) }}'
loop = '[{% for message in ctx.history %}{% include "partials/each.jinja" %}{% endfor %}]'
filter = '{% filter trim %} "{{ "f" | upper }}" {% endfilter %}'
call = '{% macro box() %}["{{ caller() }}"]{% endmacro %}{% call box() %}called{% endcall %}'
computed = '{{ tojson(ctx.history[0].content | replace("o", "0")) }}'
joined = '{{ tojson("a-" ~ ctx.history[1].content) }}'
number = '{{ ctx.history | length }}'
"escape\td" = "[\"\u00e9\\n\", {{ 1 }}]"
list = ["{% if false %}1{% endif %}", "{{ 2 }}", 3]
"#,
        ),
        ("roles/me.md", "\nthe role\n"),
        ("roles/two.md", "first\nsecond\n"),
        (
            "partials/lib.jinja",
            "{% macro wrap(t) %}<{{ t }}>{% endmacro %}",
        ),
        ("partials/each.jinja", "{{ tojson(message.content) }},"),
        (
            "contexts/c.json",
            r#"{
  "name": "c", "why": "all", "kind": "chat", "golden": true,
  "project": {"name": "p", "files": {"notes.txt": "a note"}},
  "tools": [{"name": "ls", "description": "d", "schema": {"type": "object"}}],
  "history": [
    {"role": "user", "content": "hello"},
    {"role": "assistant", "content": [{"type": "text", "text": "hi"}]},
    {"role": "user", "content": "go"}
  ]
}"#,
        ),
    ];
    let world: MemoryWorld = files.into_iter().collect();
    let options = LoadOptions {
        without_bundled: true,
        ..LoadOptions::default()
    };
    let compiler = Compiler::load(Arc::new(world), Arc::new(Embedded::bundled()), options);
    let id = compiler.hierarchy().by_name("A").expect("it is there");
    let explained = Explainer::new(&compiler)
        .explain(id, "c", None, None)
        .expect("a body")
        .expect("without findings");
    insta::assert_snapshot!("each_mechanism", told(&compiler, &explained.values));
}

/// Lists the sources of each value as `KIND PLACE TEXT`, then the steps.
fn told(compiler: &Compiler, values: &[Explanation]) -> String {
    let mut told = String::new();
    for it in values {
        told.push_str(&format!("{} = {}\n", it.pointer, it.value));
        let place = |span| {
            let file = compiler.sources().get(span);
            file.path().to_string()
        };
        let at = |span: reqc::source::Span| {
            let position = compiler
                .sources()
                .get(span.file)
                .position(span.start as usize);
            format!(
                "{}:{}:{} {:?}",
                place(span.file),
                position.line,
                position.column,
                compiler.sources().slice(span)
            )
        };
        if let Some((step, setting)) = it.step {
            told.push_str(&format!("  {}: {:?}\n", step.setting(), setting.map(at)));
            it.placed_by
                .iter()
                .for_each(|span| told.push_str(&format!("  placed by {}\n", at(*span))));
        }
        if let (Some(literal), true) = (it.literal, it.sources.is_empty()) {
            told.push_str(&format!("  literal {}\n", at(literal)));
        }
        it.overrode
            .iter()
            .for_each(|span| told.push_str(&format!("  was {}\n", at(*span))));
        for source in &it.sources {
            told.push_str(&format!(
                "  {} {}\n",
                source.kind.name(),
                source.span.map_or("nowhere".to_owned(), at)
            ));
            source
                .made_of
                .iter()
                .for_each(|span| told.push_str(&format!("    of {}\n", at(*span))));
            source.steps.iter().for_each(|step| {
                told.push_str(&format!("    {} {}\n", step.kind.name(), at(step.span)));
            });
        }
    }
    told
}

/// A conversation of two turns. Its additions come from the file, or from no file at all.
const TURNS: &str = r#"{
  "name": "c", "why": "all", "kind": "chat", "language": "Rust",
  "system_prompt": "omit",
  "system_layers": [{"name": "l", "text": "The layer."}],
  "tools": [{"name": "first", "description": "d", "schema": {"type": "object"}}],
  "files": [{"file_path": "old.rs", "content": "fn old()"}],
  "history": [
    {"role": "user", "content": [{"type": "text", "text": "one "}, {"type": "text", "text": "two"}]},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "first", "input": {}}]},
    {"role": "user", "content": [
      {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "\u00e9b"}]}
    ]},
    {"kind": "notification", "text": "Note."},
    {"role": "assistant", "content": "done"}
  ],
  "turns": [
    {
      "tools": [{"name": "second", "description": "d", "schema": {"type": "object"}}],
      "files": [{"file_path": "new.rs", "content": "fn new()"}],
      "history": [{"role": "user", "content": "go"}]
    }
  ]
}"#;

/// Returns agents with values that are made from several sources, or by a tag that computes them.
fn agents_of_pieces() -> Compiler {
    let files = [
        (
            "providers/p.toml",
            "name = \"P\"\nclient_api = \"Claude\"\nurl = \"https://p.example/v1\"\n[headers]\nx-p = \"1\"\n",
        ),
        (
            "providers/q.toml",
            "name = \"Q\"\nextends = \"P\"\nurl = \"https://q.example/v1\"\n",
        ),
        (
            "agents/a.toml",
            r#"name = "A"
provider_instance = "Q"
endpoint = "messages"
model = "m-1"
enable_tools = true
cache_prompt = true
cache_breakpoints = ["tools"]
cache_ttl = "1h"
surroundings = "Language: {{ language }}"
[body]
system = "{{ tojson(ctx.system_prompt) }}"
all = '[{% for message in ctx.history %}{{ tojson(message.role) }}, {{ tojson(message.content) }},{% endfor %}]'
results = '[{% for message in ctx.history %}{% for block in message.content_blocks %}{% if block.type == "tool_result" %}{{ tojson(block.content) }},{% endif %}{% endfor %}{% endfor %}]'
extends = '{% include "partials/child.jinja" %}'
block = '{% include "partials/block.jinja" %}'
captured = '{% include "partials/captured.jinja" %}'
call = '{% from "partials/lib.jinja" import box %}{% call box("b") %}called{% endcall %}'
long = """
[
  "one",
  "two", {{ 3 }}
]"""
"#,
        ),
        (
            "agents/b.toml",
            "name = \"B\"\nprovider_instance = \"P\"\nendpoint = \"messages/${MODEL}\"\nmodel = \"m\"\nsystem_prompt = \"In ${PROJECT_DIR}: {{ agent_role('me') | replace('x', 'y') }}\"\n[body]\nsystem = \"{{ tojson(ctx.system_prompt) }}\"\n",
        ),
        ("roles/me.md", "first\nsecond\n"),
        (
            "partials/base.jinja",
            "[{% block first %}1{% endblock %}, {% block second %}2{% endblock %}]",
        ),
        (
            "partials/child.jinja",
            "{% extends \"partials/base.jinja\" %}\n\nDropped {{ 1 }}.\n{% block first %}\"child\"{% endblock %}\n",
        ),
        (
            "partials/block.jinja",
            "{# #}\n{% filter replace(\"@\", \"e\") %}[\"h@llo\"]{% endfilter %}\n",
        ),
        (
            "partials/captured.jinja",
            "{# #}\n{% set it | replace(\"@\", \"e\") %}[\"h@llo\"]{% endset %}\n{{ it }}\n",
        ),
        (
            "partials/lib.jinja",
            "{% macro box(name) %}[\"{{ name }}\", \"{{ caller() }}\"]{% endmacro %}",
        ),
        ("partials/zz.jinja", "Nobody includes {{ 'this' }}."),
        ("contexts/c.json", TURNS),
        (
            "contexts/d.json",
            r#"{"name": "d", "why": "plain", "kind": "chat", "history": [{"role": "user", "content": "x"}]}"#,
        ),
    ];
    let world: MemoryWorld = files.into_iter().collect();
    let options = LoadOptions {
        without_bundled: true,
        ..LoadOptions::default()
    };
    Compiler::load(Arc::new(world), Arc::new(Embedded::bundled()), options)
}

#[test]
fn pieces_are_told_one_by_one() {
    let compiler = agents_of_pieces();
    let id = compiler.hierarchy().by_name("A").expect("it is there");
    let explained = Explainer::new(&compiler)
        .explain(id, "c", None, None)
        .expect("a body")
        .expect("without findings");
    insta::assert_snapshot!("pieces", told(&compiler, &explained.values));
    let b = compiler.hierarchy().by_name("B").expect("it is there");
    let prompt = Explainer::new(&compiler)
        .explain(b, "d", None, None)
        .expect("a body")
        .expect("without findings");
    let folder = "  template agents/b.toml:5:21 \"${PROJECT_DIR}\"\n";
    assert!(
        told(&compiler, &prompt.values).contains(folder),
        "{}",
        told(&compiler, &prompt.values)
    );
    let model = Pointer::parse("/model");
    let named = Explainer::new(&compiler)
        .explain(id, "c", Some("other"), Some(&model))
        .expect("a body")
        .expect("without findings");
    assert_eq!(
        told(&compiler, &named.values),
        "/model = \"other\"\n  model: None\n"
    );
}

/// Agents whose bodies cannot be compiled, each for a different reason, and a context with errors.
#[test]
fn a_place_of_what_cannot_be_made_does_not_reach_nothing() {
    let files = [
        (
            "agents/base.toml",
            "name = \"Base\"\nabstract = true\nprovider_instance = \"Claude\"\nendpoint = \"messages\"\nmodel = \"m\"\n\
             system_prompt = \"{{ agent_role('me') }}{{ read_file('${CONFIG_DIR}/more/a.md') }}\"\n# a comment\n",
        ),
        (
            "agents/no_json.toml",
            "name = \"No JSON\"\ndescription = \"d\"\nextends = \"Base\"\n[body]\nx = '{% include \"lib.jinja\" %}'\n",
        ),
        (
            "agents/broken.toml",
            "name = \"Broken\"\nextends = \"Base\"\n[body]\nx = '{{ 1 a }}'\n",
        ),
        (
            "agents/other.toml",
            "name = \"Other\"\nprovider_instance = \"Claude\"\nendpoint = \"messages\"\n[body]\nx = '{{ oh }}'\n",
        ),
        ("partials/lib.jinja", "{# why #}\n[1 \n 2]\n"),
        ("roles/me.md", "# Me\n"),
        ("more/a.md", "a"),
        (
            "contexts/c.json",
            r#"{"name": "c", "why": "one", "kind": "chat", "history": [{"role": "user", "content": "x"}]}"#,
        ),
        (
            "contexts/d.json",
            r#"{"name": "d", "why": "none", "kind": "chat"}"#,
        ),
    ];
    let world: MemoryWorld = files.into_iter().collect();
    let compiler = Compiler::load(
        Arc::new(world),
        Arc::new(Embedded::bundled()),
        LoadOptions::default(),
    );
    let told = |place: &str| match impact(&compiler, &ImpactQuery::parse(place), None) {
        Ok(reached) => reached
            .iter()
            .map(|it| format!("{}: {}", it.agent, it.unfollowed.unwrap_or("?")))
            .collect(),
        Err(why) => vec![why.to_string()],
    };
    let unmade = |agents: &[&str]| -> Vec<String> {
        agents
            .iter()
            .map(|agent| format!("{agent}: its bodies cannot be compiled"))
            .collect()
    };
    assert_eq!(
        told("partials/lib.jinja:2:3"),
        unmade(&["No JSON"]),
        "where a comma is missing"
    );
    assert_eq!(told("partials/lib.jinja:1"), [""; 0], "a comment");
    assert_eq!(
        told("roles/me.md:1"),
        unmade(&["Broken", "No JSON"]),
        "the prompt of both reads it"
    );
    assert_eq!(
        told("more/a.md"),
        unmade(&["Broken", "No JSON"]),
        "no earlier query was about this file"
    );
    assert_eq!(told("agents/broken.toml:4"), unmade(&["Broken"]));
    assert_eq!(told("agents/no_json.toml:2"), [""; 0], "a description");
    assert_eq!(told("agents/base.toml:7"), [""; 0], "a comment");
    assert_eq!(
        told("contexts/c.json:1:40"),
        unmade(&["Broken", "No JSON", "Other"])
    );
    assert_eq!(
        told("contexts/d.json:1"),
        ["`contexts/d.json` is left out because it has errors"]
    );
    assert_eq!(told("more/b.md"), ["no agent uses `more/b.md`"]);
}

/// Returns the values in all bodies of an agent that a location affects, after `request` if it
/// affects the rest of the request.
fn reached(compiler: &Compiler, place: &str, agent: &str) -> Vec<String> {
    let all = impact(compiler, &ImpactQuery::parse(place), None).expect("there is such a place");
    let of_agent = all.iter().filter(|it| *it.agent == *agent);
    let values = of_agent.flat_map(|it| {
        let request = it.request.then(|| "request".to_owned());
        request
            .into_iter()
            .chain(it.contexts.values().flatten().map(ToString::to_string))
    });
    let mut values: Vec<String> = values.collect();
    values.dedup();
    values
}

#[test]
fn a_place_reaches_what_it_takes_part_in() {
    let compiler = agents_of_pieces();
    for (place, agent, expected) in [
        ("agents/a.toml:20", "A", &["/long/0"][..]),
        ("agents/a.toml:8", "A", &["/tools/0/cache_control/ttl"]),
        ("agents/a.toml:4", "A", &["/model"]),
        ("agents/b.toml:4", "B", &["request", "/model"]),
        ("roles/me.md:2", "B", &["/system"]),
        ("providers/q.toml:3", "A", &["request"]),
        ("providers/p.toml:3", "A", &[]),
        ("providers/p.toml:3", "B", &["request"]),
        ("providers/p.toml:5", "A", &["request"]),
        ("partials/child.jinja:4", "A", &["/extends/0"]),
    ] {
        assert_eq!(
            reached(&compiler, place, agent),
            expected,
            "{place} of {agent}"
        );
    }
}

#[test]
fn a_place_says_what_it_does_where_that_is_not_followed() {
    let compiler = agents_of_pieces();
    let unfollowed = |place: &str| {
        let all =
            impact(&compiler, &ImpactQuery::parse(place), None).expect("there is such a place");
        all.iter()
            .find(|it| &*it.agent == "A")
            .and_then(|it| it.unfollowed)
    };
    let assembles = |told: &str| told.starts_with("controls how the agent");
    assert!(unfollowed("providers/q.toml:2").is_some_and(assembles));
    // In one context, the agent has no body.
    assert_eq!(
        unfollowed("partials/child.jinja:1"),
        Some("its bodies cannot be compiled")
    );
    for place in [
        "agents/a.toml:20",
        "partials/block.jinja:1",
        "partials/zz.jinja:1",
        "providers/p.toml:3",
    ] {
        assert_eq!(unfollowed(place), None, "{place}");
    }
    // A key affects the same places as its value.
    assert_eq!(reached(&compiler, "agents/a.toml:18:2", "A"), ["/long"]);
}

#[test]
fn a_line_that_writes_no_value_reaches_what_it_belongs_to() {
    let agent = r#"name = "A"
provider_instance = "P"
endpoint = "chat"
system_prompt = """
# Rules
{%- if language %}
In {{ language }}.
{%- else %}
In none.
{%- endif %}
{#- a remark -#}
"""
# a comment
[body]
system = "{{ tojson(ctx.system_prompt) }}"
messages = """
[
  {% include "partials/m.jinja" %}
]
"""
[body.more]
x = { y = 1 }
"#;
    let partial = "{#- # why -#}\n{% for m in ctx.history %}\n{\n\"role\": {{ tojson(m.role) }}\n},\n{% endfor %}\n";
    let files = [
        ("agents/a.toml", agent),
        ("partials/m.jinja", partial),
        (
            "providers/p.toml",
            "name = \"P\"\nclient_api = \"OpenAI Compatible\"\nurl = \"https://p.example/v1\"\n",
        ),
        (
            "contexts/c.json",
            r#"{"name": "c", "why": "w", "kind": "chat", "history": [{"role": "user", "content": "x"}]}"#,
        ),
    ];
    let options = LoadOptions {
        without_bundled: true,
        ..LoadOptions::default()
    };
    let world: MemoryWorld = files.into_iter().collect();
    let compiler = Compiler::load(Arc::new(world), Arc::new(Embedded::bundled()), options);
    let values = |place: &str| {
        reached(&compiler, place, "A")
            .into_iter()
            .collect::<BTreeSet<String>>()
    };
    for (line, expected) in [
        (4, &["/system"][..]),
        (5, &["/system"]),
        (12, &["/system"]),
        (13, &[]),
        (
            14,
            &[
                "/messages",
                "/messages/0/role",
                "/more",
                "/more/x",
                "/more/x/y",
                "/system",
            ],
        ),
        (17, &["/messages"]),
        (19, &["/messages"]),
        (20, &["/messages/0/role"]),
    ] {
        let all: BTreeSet<String> = values(&format!("agents/a.toml:{line}"));
        let is_first = |pointer: &&String| {
            !pointer.starts_with("/messages/") || pointer.starts_with("/messages/0")
        };
        let first: Vec<&String> = all.iter().filter(is_first).collect();
        let expected: BTreeSet<&str> = expected.iter().copied().collect();
        assert_eq!(
            first,
            expected.into_iter().collect::<Vec<_>>(),
            "line {line}"
        );
    }
    assert!(values("partials/m.jinja:3").contains("/messages/0"));
    assert_eq!(values("partials/m.jinja:1"), BTreeSet::new());
    // The end of a block affects the same places as its beginning.
    let contexts = |place: &str| {
        let all =
            impact(&compiler, &ImpactQuery::parse(place), None).expect("there is such a place");
        all.iter()
            .map(|it| (it.contexts.clone(), it.unfollowed))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        contexts("partials/m.jinja:6"),
        contexts("partials/m.jinja:2")
    );
    assert!(!contexts("partials/m.jinja:6").is_empty());
    let wanted = ["agents/a.toml:6", "agents/a.toml:8", "agents/a.toml:10"].map(contexts);
    assert!(wanted.iter().any(|it| !it.is_empty()), "{wanted:?}");
}

#[test]
fn what_puts_an_agent_together_reaches_what_comes_of_it() {
    let base = "name = \"Base\"\nabstract = true\nprovider_instance = \"P\"\nendpoint = \"chat\"\n\
                [headers]\nx-a = \"1\"\n[body]\nsaid = 1\nreplaced = 2\nremoved = 3\nkept = { a = 4, b = 5 }\n";
    let middle = "name = \"Middle\"\nabstract = true\nextends = \"Base\"\n[body]\nreplaced = 6\nall = \"{{ length(ctx.history) }}\"\n";
    let agent = "name = \"A\"\nextends = \"Middle\"\nunset = [\n  \"removed\",\n  \"kept.a\",\n  \"headers.x-a\",\n]\n[body]\nown = 7\n\n";
    let files = [
        ("agents/base.toml", base),
        ("agents/middle.toml", middle),
        ("agents/a.toml", agent),
        (
            "providers/p.toml",
            "name = \"P\"\nclient_api = \"OpenAI Compatible\"\nurl = \"https://p.example/v1\"\n",
        ),
        (
            "contexts/c.json",
            r#"{"name": "c", "why": "w", "kind": "chat", "history": [{"role": "user", "content": "x"}]}"#,
        ),
    ];
    let options = LoadOptions {
        without_bundled: true,
        ..LoadOptions::default()
    };
    let world: MemoryWorld = files.into_iter().collect();
    let compiler = Compiler::load(Arc::new(world), Arc::new(Embedded::bundled()), options);
    for (place, expected) in [
        (
            "agents/a.toml:2",
            &["request", "/all", "/kept/b", "/replaced", "/said"][..],
        ),
        ("agents/middle.toml:3", &["request", "/kept/b", "/said"]),
        ("agents/a.toml:4", &["/removed"]),
        ("agents/a.toml:5", &["/kept/a"]),
        ("agents/a.toml:6", &["request"]),
        // Empty lines at the end of the file.
        ("agents/a.toml:10", &[]),
        ("agents/a.toml:11", &[]),
    ] {
        // Values that are affected in several contexts are listed once.
        let found: BTreeSet<String> = reached(&compiler, place, "A").into_iter().collect();
        assert_eq!(
            found,
            expected.iter().map(ToString::to_string).collect(),
            "{place}"
        );
    }
    let id = compiler.hierarchy().by_name("A").expect("it is there");
    let removed = Explainer::new(&compiler)
        .unset_at(id, &Pointer::parse("/kept/a"))
        .expect("it is removed");
    assert_eq!(compiler.sources().describe(removed), "agents/a.toml:5");
}

#[test]
fn a_list_names_the_step_that_added_to_it() {
    let compiler = agents_of_pieces();
    let id = compiler.hierarchy().by_name("A").expect("it is there");
    let added = |pointer: &str| {
        let explained =
            Explainer::new(&compiler).explain(id, "c", None, Some(&Pointer::parse(pointer)));
        let explained = explained.expect("a body").expect("without findings");
        explained.values[0]
            .added
            .iter()
            .map(|(step, _)| step.setting())
            .collect::<Vec<_>>()
    };
    assert_eq!(added("/tools"), ["cache_prompt"]);
    assert_eq!(added("/tools/0"), ["cache_prompt"]);
    assert_eq!(added("/tools/0/name"), [""; 0]);
    let whole = Explainer::new(&compiler)
        .explain(id, "c", None, Some(&Pointer::root()))
        .expect("a body")
        .expect("without findings");
    let steps: Vec<&str> = whole.values[0]
        .added
        .iter()
        .map(|(step, _)| step.setting())
        .collect();
    assert_eq!(steps, ["model", "enable_tools", "cache_prompt"]);
}

#[test]
fn a_role_that_is_no_text_is_told_in_the_role_once() {
    let agent = |name: &str| {
        format!(
            "name = \"{name}\"\nextends = \"Base\"\nsystem_prompt = \"{{{{ agent_role('me') }}}}\"\n[body]\nx = \"1\"\n"
        )
    };
    let base = "name = \"Base\"\nabstract = true\nprovider_instance = \"P\"\nendpoint = \"chat\"\n[body]\n";
    let world = MemoryWorld::from_iter([
        ("agents/base.toml", base.as_bytes().to_vec()),
        ("agents/a.toml", agent("A").into_bytes()),
        ("agents/b.toml", agent("B").into_bytes()),
        ("roles/me.md", b"the role\nwith a \0\n".to_vec()),
        (
            "providers/p.toml",
            b"name = \"P\"\nclient_api = \"OpenAI Compatible\"\nurl = \"https://p.example/v1\"\n".to_vec(),
        ),
        (
            "contexts/c.json",
            br#"{"name": "c", "why": "w", "kind": "chat", "history": [{"role": "user", "content": "x"}]}"#.to_vec(),
        ),
    ]);
    let options = LoadOptions {
        without_bundled: true,
        ..LoadOptions::default()
    };
    let compiler = Compiler::load(Arc::new(world), Arc::new(Embedded::bundled()), options);
    let mut found = compiler
        .run(&Selection::default(), |_| ())
        .findings
        .into_vec();
    found.retain(|finding| finding.rule.code.starts_with("prompt/"));
    let [finding] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!(finding.rule.code, "prompt/not-text");
    assert_eq!(
        compiler.sources().describe(finding.primary.span),
        "roles/me.md:2"
    );
    assert_eq!(finding.agents.len(), 2);
}

/// Tracing a string that is appended to itself terminates. The source is then only the computing
/// tag.
#[test]
fn a_text_that_grows_in_a_loop_is_not_followed_for_ever() {
    let template = "{% set ns = namespace(s='') %}{% for i in range(12000) %}{% set ns.s = ns.s ~ 'x' %}{% endfor %}[{{ tojson(ns.s) }}]";
    let compiler = agents_with(&[template.to_owned()], "");
    let id = compiler.hierarchy().by_name("A0").expect("it is there");
    let pointer = Pointer::parse("/x/0");
    let explained = Explainer::new(&compiler)
        .explain(id, "turn", None, Some(&pointer))
        .expect("a body")
        .expect("without findings");
    let kinds: Vec<SourceKind> = explained.values[0]
        .sources
        .iter()
        .map(|source| source.kind)
        .collect();
    assert_eq!(kinds, [SourceKind::Computed]);
}

/// `${PROJECT_DIR}` is cited as the profile's own text, although rendering replaces it.
#[test]
fn a_folder_in_a_prompt_is_cited_as_it_is_written() {
    let agent = "name = \"A\"\nprovider_instance = \"P\"\nendpoint = \"chat\"\nsystem_prompt = \"In ${PROJECT_DIR} or ${HOME}!\"\n\
                 [body]\nx = \"{{ tojson(ctx.system_prompt) }}\"\n";
    let world = MemoryWorld::from_iter([
        ("agents/a.toml", agent),
        (
            "providers/p.toml",
            "name = \"P\"\nclient_api = \"OpenAI Compatible\"\nurl = \"https://p.example/v1\"\n",
        ),
        (
            "contexts/c.json",
            r#"{"name": "c", "why": "w", "kind": "chat", "history": [{"role": "user", "content": "x"}]}"#,
        ),
    ]);
    let options = LoadOptions {
        without_bundled: true,
        ..LoadOptions::default()
    };
    let compiler = Compiler::load(Arc::new(world), Arc::new(Embedded::bundled()), options);
    let id = compiler.hierarchy().by_name("A").expect("it is there");
    let pointer = Pointer::parse("/x");
    let explained = Explainer::new(&compiler)
        .explain(id, "c", None, Some(&pointer))
        .expect("a body")
        .expect("without findings");
    let sources = explained.values[0]
        .sources
        .iter()
        .filter(|source| source.kind != SourceKind::Tag);
    let cited: Vec<(SourceKind, &str)> = sources
        .map(|source| {
            (
                source.kind,
                source
                    .span
                    .map_or("", |span| compiler.sources().slice(span)),
            )
        })
        .collect();
    let texts = ["In ", "${PROJECT_DIR}", " or ", "${HOME}", "!"];
    assert_eq!(cited, texts.map(|text| (SourceKind::Template, text)));
}
