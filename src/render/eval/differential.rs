//! Compares the evaluator with the engine's virtual machine. Both run the same templates, and must
//! write the same text or fail at the same location with an error of the same kind.
//!
//! `REQC_DIFFERENTIAL=200000 cargo test --lib eval::differential` tries that many generated
//! templates instead of a few.
//!
//! [`reference`] sets the engine up. Intended differences are not compared:
//!
//! - The evaluator rejects operations that cost too much and results that are too large. A
//!   namespace can contain only data, and a loop can be called only within itself. A render that
//!   breaks these rules ends ([`Verdict::Refused`]), and the number of such renders is bounded.
//! - A slice with a negative step works as in Python.
//! - `default(path, other)` in inja accepts a path even if a part of it is missing
//!   ([`Verdict::Meant`]).
//! - A failure in the tag of a block or a call block is reported at the tag; the engine reports the
//!   line where the block's body ends.
//! - A macro captures variables that it slices; in the engine, it does not capture them.
//! - The result of adding, repeating or slicing lists is a list, and the length of every loop is
//!   known. In the engine, the result is iterable but not a sequence, and loops over such a result,
//!   or over the characters of a text, have no `length`, `last`, `revindex` or `revindex0`.
//! - A recursive loop with `else`, `do` or `from … import` works. The engine leaves a value behind
//!   each time, and this value becomes an operand if an expression calls the loop. If a block in
//!   the loop calls the loop, the engine continues in the wrong place.
//! - `loop.cycle` and `loop.changed` are rejected earlier.

mod generate;
mod reference;
mod shrink;
mod tests;

use std::collections::BTreeMap;
use std::error::Error as _;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use minijinja::value::Tuple;
use minijinja::{Environment, Error, ErrorKind, Value};
use rayon::prelude::*;

use super::super::keep::NOT_FOR_NAMESPACES;
use super::objects::NOT_CALLABLE;
use super::{Failure, Input, Library, Output, Steps, Template, Watch, environment, lower, run};
use crate::panics::caught;
use crate::render::account::{self, MAX_OUTPUT};
use crate::render::analyse::full_name;
use crate::render::functions;
use crate::render::refusal::Refusal;
use crate::render::rope::Run;
use crate::repo::Dialect;

/// The number of steps after which a template is abandoned.
const MOST_STEPS: u64 = 20_000;
/// The maximum number of differences shown.
const MOST_SHOWN: usize = 40;
/// The stack size of a thread: without optimisation, the engine needs a lot of it for each macro.
const STACK: usize = 512 * 1024 * 1024;

/// A template's text.
#[derive(Debug, Clone)]
struct Source {
    name: String,
    text: String,
    /// The values that loops iterate over by key and value, in inja.
    pairs: Vec<Range<usize>>,
}

impl Source {
    /// Creates a partial with this name and text.
    fn new(name: &str, text: String) -> Source {
        Source {
            name: full_name(name).into_owned(),
            text,
            pairs: Vec::new(),
        }
    }
}

/// The outcome of a render.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    Text(String),
    Failed(Failed),
}

/// The failure of a render: the kind of error, its location and its message.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Failed {
    kind: ErrorKind,
    template: String,
    /// The lines that the location is on, counted from 1.
    lines: RangeInclusive<usize>,
    message: String,
}

/// The verdict of a comparison.
#[derive(Debug)]
enum Verdict {
    /// Both wrote the same text.
    Text,
    /// Both failed in the same way.
    Failure(String),
    /// Neither can parse the templates.
    Unparsable(String),
    /// The evaluator stopped: a limit was exceeded, or the template did something that is
    /// not allowed.
    Refused,
    /// The results differ as intended.
    Meant,
    /// The engine panicked, or did not terminate.
    Panicked(String),
    Different(String),
}

/// The templates of a case, ready to be evaluated.
struct Trees(BTreeMap<String, Template>);

impl Library for Trees {
    fn find(&self, name: &str) -> Option<&Template> {
        self.0.get(full_name(name).as_ref())
    }
}

fn trees(sources: &[Source], dialect: Dialect) -> Result<Trees, Error> {
    let mut trees = BTreeMap::new();
    for (number, source) in (0..).zip(sources) {
        trees.insert(
            source.name.clone(),
            lower(&source.text, dialect, number, &source.pairs)?,
        );
    }
    Ok(Trees(trees))
}

/// Templates that both the engine and the evaluator can run.
struct Both {
    sources: Vec<Source>,
    environment: Environment<'static>,
    trees: Trees,
    globals: BTreeMap<&'static str, Value>,
    dialect: Dialect,
}

/// The variables of a render.
type Data = Vec<(Arc<str>, Value)>;

impl Both {
    /// Prepares templates; returns a verdict if one does not parse.
    fn of(sources: Vec<Source>, dialect: Dialect) -> Result<Both, Verdict> {
        let environment = caught(|| reference::environment(&sources, dialect));
        let environment =
            environment.map_err(|panic| Verdict::Panicked(panic.told("the engine").0))?;
        let globals = functions::globals(dialect).into_iter().collect();
        match (environment, trees(&sources, dialect)) {
            (Ok(environment), Ok(trees)) => Ok(Both {
                sources,
                environment,
                trees,
                globals,
                dialect,
            }),
            (Err(one), Err(other)) if one.kind() == other.kind() => {
                Err(Verdict::Unparsable(other.to_string()))
            }
            (one, other) => Err(Verdict::Different(format!(
                "{:?}, {:?}",
                one.err(),
                other.err()
            ))),
        }
    }

    /// Runs a template with the evaluator and with the engine.
    fn compare(&self, name: &str, data: &Data) -> Verdict {
        let (output, _) =
            account::metered(|| self.evaluate(name, data, Steps::at_most(MOST_STEPS)));
        if output.outcome.as_ref().is_err_and(is_refused) {
            return Verdict::Refused;
        }
        if !is_traced(&output) {
            return Verdict::Different("the runs do not cover the text".to_owned());
        }
        let ours = self.ended(output);
        let theirs = match caught(|| account::metered(|| self.render(name, data))) {
            Ok((theirs, _)) => theirs,
            Err(panic) => return Verdict::Panicked(panic.told("the engine").0),
        };
        match (&ours, &theirs) {
            (Ended::Text(one), Ended::Text(other)) if one == other => Verdict::Text,
            (Ended::Failed(one), Ended::Failed(other)) if one.is_like(other) => {
                Verdict::Failure(other.message.clone())
            }
            (_, Ended::Failed(other)) if other.kind == ErrorKind::OutOfFuel => {
                Verdict::Panicked(other.message.clone())
            }
            (Ended::Text(_), Ended::Failed(other)) if self.gives_default(other) => Verdict::Meant,
            _ => Verdict::Different(format!("evaluated: {ours:?}\nrendered:  {theirs:?}")),
        }
    }

    /// Returns `true` if a render failed on a path that inja's `default` may find missing.
    fn gives_default(&self, failed: &Failed) -> bool {
        let source = self
            .sources
            .iter()
            .find(|source| source.name == failed.template);
        let has_default = source.is_some_and(|source| source.text.contains("default("));
        self.dialect == Dialect::Inja && failed.kind == ErrorKind::UndefinedError && has_default
    }

    fn evaluate<W: Watch>(&self, name: &str, data: &Data, watch: W) -> Output<W> {
        let (library, globals) = (&self.trees, &self.globals);
        let input = Input {
            library,
            globals,
            data: data.clone(),
            most: MAX_OUTPUT,
            depth: 0,
        };
        let environment = environment();
        run(&self.trees.0[name], input, environment.empty_state(), watch)
    }

    fn ended<W>(&self, output: Output<W>) -> Ended {
        match output.outcome {
            Ok(()) => Ended::Text(output.written.rope.text),
            Err(failure) => {
                let source = &self.sources[failure.at.template as usize];
                let range = failure.at.range();
                let lines = lines_of(&source.text, &range);
                let (kind, message) = (failure.error.kind(), failure.error.to_string());
                Ended::Failed(Failed {
                    kind,
                    template: source.name.clone(),
                    lines,
                    message,
                })
            }
        }
    }

    fn render(&self, name: &str, data: &Data) -> Ended {
        let data = data
            .iter()
            .map(|(name, value)| (Arc::clone(name), reference::bridged(value)));
        let template = self.environment.get_template(name);
        match template.and_then(|template| template.render(Value::from_pairs(data))) {
            Ok(text) => Ended::Text(text),
            Err(error) => Ended::Failed(Failed::of(&error)),
        }
    }
}

/// Returns the lines that the engine may report for a location.
///
/// For the tag of a call block or of a block, this is the line where the block's body ends.
fn lines_of(text: &str, range: &Range<usize>) -> RangeInclusive<usize> {
    let tag = text[..range.end]
        .rfind("{%")
        .filter(|at| !text[*at..range.start.max(*at)].contains("%}"));
    let tag = tag.map_or("", |at| &text[at..]);
    let tag = tag.trim_start_matches(['{', '%', '-', '+']).trim_start();
    let ending = ["endcall", "endblock"]
        .iter()
        .find(|ending| tag.starts_with(&ending[3..]));
    let end = ending
        .and_then(|ending| text.rfind(ending))
        .filter(|end| *end > range.end);
    line_of(text, range.start)..=line_of(text, end.unwrap_or(range.end))
}

fn line_of(text: &str, at: usize) -> usize {
    1 + text[..at].bytes().filter(|byte| *byte == b'\n').count()
}

impl Failed {
    /// Finds the error that the others only wrap.
    fn of(error: &Error) -> Failed {
        let mut innermost = error;
        while let Some(inner) = innermost
            .source()
            .and_then(|source| source.downcast_ref::<Error>())
            && leads_on(innermost)
        {
            innermost = inner;
        }
        let line = innermost.line().unwrap_or_default();
        let template = innermost.name().unwrap_or_default().to_owned();
        Failed {
            kind: innermost.kind(),
            template,
            lines: line..=line,
            message: innermost.to_string(),
        }
    }

    /// Returns `true` if another failure has the same kind, and is on one of the lines.
    fn is_like(&self, other: &Failed) -> bool {
        // It does not matter where a template that calls itself endlessly reaches the limit.
        is_at_limit(self) && is_at_limit(other)
            || self.kind == other.kind
                && self.template == other.template
                && self.lines.contains(other.lines.start())
    }
}

fn is_at_limit(it: &Failed) -> bool {
    it.message.contains("recursion limit exceeded")
}

/// Returns `true` if an error is only a wrapper: it shows where the render was, and its `source` is
/// the actual error.
fn leads_on(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::BadInclude | ErrorKind::EvalBlock)
        || error.detail() == Some("cannot recurse because of non-iterable value")
}

/// Returns `true` if a limit or one of reqc's own rules ended a render.
fn is_refused(failure: &Failure) -> bool {
    let is_ours = failure
        .error
        .source()
        .is_some_and(<dyn std::error::Error + 'static>::is::<Refusal>);
    let is_limit = matches!(
        failure.error.kind(),
        ErrorKind::OutOfFuel | ErrorKind::WriteFailure
    );
    let detail = failure.error.detail().unwrap_or_default();
    is_ours || is_limit || [NOT_CALLABLE, NOT_FOR_NAMESPACES].contains(&detail)
}

/// Returns `true` if each byte of an output has a writer.
fn is_traced(output: &Output<Steps>) -> bool {
    let rope = &output.written.rope;
    rope.runs.iter().map(Run::len).sum::<usize>() == rope.text.len()
}

/// Variables of every kind.
fn data() -> Vec<(Arc<str>, Value)> {
    let list = Value::from(vec![3, 1, 2]);
    let lists = Value::from(vec![
        list.clone(),
        Value::from(vec![Value::from("a"), Value::from(())]),
    ]);
    let map = Value::from_pairs([
        ("t", Value::from("äb")),
        ("n", Value::from(-1)),
        ("b", Value::from(true)),
    ]);
    let maps = Value::from_pairs([
        ("a", map.clone()),
        ("b", list.clone()),
        ("é", Value::from(())),
    ]);
    let leaf = Value::from(vec![1, 2]);
    let tree = Value::from(vec![
        Value::from(1),
        leaf.clone(),
        Value::from(vec![Value::from(3), leaf]),
    ]);
    let ctx = Value::from_pairs([
        ("name", Value::from("N\"\n")),
        (
            "items",
            Value::from(vec![item("a"), item("b"), Value::from_pairs([("b", 1)])]),
        ),
    ]);
    let tuple = Value::from(Tuple::from(vec![Value::from(1), Value::from("b")]));
    let all = [
        ("n", Value::from(2)),
        ("f", Value::from(2.5)),
        ("big", Value::from(u64::MAX)),
        ("huge", Value::from(i128::MAX)),
        ("t", Value::from("a<b")),
        ("u", Value::from("é\u{1f600}\nb a")),
        ("b", Value::from(true)),
        ("z", Value::from(())),
        ("l", list),
        ("ll", lists),
        ("d", map),
        ("dd", maps),
        ("tree", tree),
        ("tup", tuple),
        ("ctx", ctx),
    ];
    all.into_iter()
        .map(|(name, value)| (Arc::from(name), value))
        .collect()
}

fn item(kind: &str) -> Value {
    Value::from_pairs([("type", Value::from(kind)), ("a", Value::from(1))])
}

/// The number of comparisons, by verdict.
#[derive(Debug, Default)]
struct Figures {
    texts: usize,
    failures: Vec<String>,
    unparsable: Vec<String>,
    meant: usize,
    refused: usize,
    panicked: Vec<String>,
    different: Vec<String>,
}

impl Figures {
    fn add(&mut self, verdict: Verdict, sources: &[Source]) {
        match verdict {
            Verdict::Text => self.texts += 1,
            Verdict::Failure(why) => self.failures.push(why),
            Verdict::Unparsable(why) => self.unparsable.push(why),
            Verdict::Meant => self.meant += 1,
            Verdict::Refused => self.refused += 1,
            Verdict::Panicked(why) => self.panicked.push(why),
            Verdict::Different(how) => {
                let shown = sources
                    .iter()
                    .map(|it| format!("--- {}\n{}\n", it.name, it.text));
                self.different.push(shown.collect::<String>() + &how);
            }
        }
    }

    fn with(mut self, other: Figures) -> Figures {
        self.texts += other.texts;
        self.failures.extend(other.failures);
        self.unparsable.extend(other.unparsable);
        self.meant += other.meant;
        self.refused += other.refused;
        self.panicked.extend(other.panicked);
        self.different.extend(other.different);
        self
    }

    fn count(&self) -> usize {
        self.texts
            + self.failures.len()
            + self.unparsable.len()
            + self.meant
            + self.refused
            + self.panicked.len()
            + self.different.len()
    }
}

/// Runs comparisons in threads whose stacks are large enough.
fn compared<T: Send>(all: Vec<T>, compare: impl Fn(&T, &mut Figures) + Send + Sync) -> Figures {
    let pool = rayon::ThreadPoolBuilder::new()
        .stack_size(STACK)
        .build()
        .expect("threads");
    pool.install(|| {
        let figures = all
            .into_par_iter()
            .fold(Figures::default, |mut figures, one| {
                compare(&one, &mut figures);
                figures
            });
        figures.reduce(Figures::default, Figures::with)
    })
}

/// Returns the most frequent messages and their counts, grouped by their beginnings.
fn most_frequent(messages: &[String]) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for message in messages {
        let end = message
            .char_indices()
            .nth(60)
            .map_or(message.len(), |(at, _)| at);
        *counts.entry(&message[..end]).or_default() += 1;
    }
    let mut sorted: Vec<_> = counts.into_iter().collect();
    sorted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    sorted
        .iter()
        .take(20)
        .map(|(message, count)| format!("{count} × {message}"))
        .collect()
}

/// Fails if anything differs, and shows the shortest differences.
fn expect_equal(mut figures: Figures) -> Figures {
    let Figures {
        texts,
        failures,
        unparsable,
        meant,
        refused,
        panicked,
        ..
    } = &figures;
    eprintln!(
        "{texts} texts and {} failures are equal, {meant} differ as intended",
        failures.len()
    );
    eprintln!(
        "{refused} refused, {} unparsable, {} lost by the engine",
        unparsable.len(),
        panicked.len()
    );
    for messages in [failures, unparsable, panicked] {
        eprintln!("{:#?}", most_frequent(messages));
    }
    figures.different.sort_by_key(String::len);
    let shown: Vec<_> = figures
        .different
        .iter()
        .take(MOST_SHOWN)
        .map(String::as_str)
        .collect();
    let count = figures.different.len();
    assert!(count == 0, "{count} differ:\n{}", shown.join("\n=====\n"));
    figures
}
