//! Evaluates templates by walking the engine's own syntax tree, under observation.
//!
//! Input: a [`Template`], which [`lower`] creates from a string, the data, and a [`Watch`] that is
//! notified of events. Output: the text, or a [`Failure`] with its location. Values, arithmetic and
//! some filters are minijinja's. The effects of statements are implemented here, and most filters
//! in `builtins`; a differential test compares both with the engine. Each value has an [`Origin`],
//! which records its source.
//!
//! # How a byte of a body gets its writer
//!
//! 1. Every evaluation tracks who writes what, so no template of a body is evaluated again to find
//!    out.
//! 2. The output of a template and its [`Trace`] become a `Recording`, which the body's splice
//!    contains, and which is cached for agents that share the template.
//! 3. A splice is the part of a body that one template wrote; all other parts are literals of
//!    profiles or provider steps, which have their own locations.
//! 4. When a finding needs a location, `unit::record` finds the splice that contains it, and looks
//!    the location up in the recording.
//! 5. Each variable that is passed to the template starts with an origin: `ctx` with the root of
//!    the data, any other variable with its own path.
//! 6. The origin of a member or an element of data is the path of its object, extended by its name
//!    or index.
//! 7. The origin of a captured string is the text itself, with all of its writers.
//! 8. The origin of a list or an object that a template creates consists of the origins of its
//!    parts.
//! 9. The origin of any other value is unknown. A string that is computed from it, or from a list
//!    or an object that a template created, has no inputs.
//! 10. Text with writers is a `Rope`: the text, and runs that cover all of its bytes in order. A
//!     run contains its number of bytes, their writer, how often they were escaped, the tag that
//!     wrote them, and its frame.
//! 11. Literal text in a template, or a literal in an expression, becomes a run whose writer is its
//!     location in the template.
//! 12. `{{ value }}` becomes one or more runs with the value's origins: paths in the data, files
//!     that a prompt read, or the inputs that it was computed from. Its tag is the expression.
//! 13. JSON that a tag writes is divided into leaves with their own writers, and the quotes, names
//!     and brackets between them, which the tag wrote.
//! 14. Escaping keeps the runs and increases their escape count, so that an offset in the output
//!     maps back to an offset in the source.
//! 15. Filters that keep content pass the runs on; any other string is computed from the inputs of
//!     the arguments.
//! 16. The first tag that writes a run is recorded in the run with the frame; a later tag that
//!     writes the capture does not replace it.
//! 17. A frame is an include, an import, a macro, or a `call`, `set` or `filter` block. Every frame
//!     except the outermost has a parent. The frames of a run, without imports, are the steps that
//!     led to it.
//! 18. A string with too many runs becomes one run that was computed from its first inputs.
//! 19. The system prompt has a separate recording. In a body, it is a data value. For `explain`,
//!     and for a finding inside the prompt, the prompt's own runs replace that value, and the tags
//!     and frames of these runs are looked up in the prompt's recording.
//! 20. To find the writer of a byte, `Recording::written` finds the run that covers it, and
//!     converts its location to a span of a file, or its path to a value in the conversation.

mod closure;
mod tags;
mod tree;
mod decisions;
mod lower;
mod failure;
mod objects;
mod variables;
mod watch;
mod asked;
mod charge;
mod hole;
mod operators;
mod calls;
mod expressions;
mod ran;
mod reads;
mod statements;
mod trace;
#[cfg(test)]
mod differential;

pub(super) use asked::Asked;
pub(super) use charge::Steps;
pub(crate) use decisions::DecisionKind;
pub(super) use decisions::{Decision, Need};
pub(super) use failure::Failure;
pub(super) use hole::Hole;
pub(super) use lower::lower;
pub(crate) use ran::Outcomes;
pub(super) use ran::Ran;
pub(super) use reads::Reads;
use trace::Given;
pub(super) use trace::Trace;
pub(super) use tree::Template;
pub(super) use watch::Watch;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use foldhash::HashMap;
use minijinja::{Environment, Error, State, UndefinedBehavior, Value};

use super::account;
use super::data_path::DataPath;
use super::place::Place;
use super::rope::{Rope, RopeSlice, Run};
use super::tracked::{Names, Origin, Tracked};
use calls::Declared;
use failure::Outcome;
use tree::Block;
use variables::Variables;

/// A scope that a render can enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// `{% include %}`.
    Include,
    /// `{% import %}` and `{% from %}`.
    Import,
    /// The body of a macro.
    Macro,
    /// The body of a `{% call %}` block, which the macro renders.
    Caller,
    /// `{% set %}…{% endset %}`.
    SetBlock,
    /// `{% filter %}`.
    FilterBlock,
}

/// A step into a scope, from a tag or, for a macro, from its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) scope: Scope,
    pub(super) at: Place,
}

/// Provides the templates that others include.
pub(super) trait Library {
    /// Returns the template for a name in an include.
    fn find(&self, name: &str) -> Option<&Template>;

    /// Returns the known output of a partial, and the steps that it takes, for a template that
    /// includes it with some variables set; `None` if the output is not known.
    ///
    /// # Errors
    ///
    /// Returns an error if the partial's cost exceeds the limit.
    fn known(&self, _name: &str, _template: &dyn Names) -> Result<Option<Known>, Error> {
        Ok(None)
    }
}

/// The output of a partial that is known in advance.
pub(super) struct Known {
    pub(super) written: Arc<Traced>,
    /// The names of the variables that the including template passed to the partial.
    pub(super) given: Arc<[Arc<str>]>,
    pub(super) steps: u64,
}

/// A string with its writers, and the scopes in which they wrote.
#[derive(Debug, Clone, Default)]
pub(super) struct Traced {
    pub(super) rope: Rope,
    pub(super) trace: Trace,
}

impl Traced {
    /// Returns the approximate size in bytes.
    pub(super) fn weight(&self) -> usize {
        self.rope.text.len() + self.rope.runs.len() * size_of::<Run>() + self.trace.weight()
    }
}

/// The input of an evaluation.
pub(super) struct Input<'e> {
    pub(super) library: &'e dyn Library,
    /// The functions that templates may call, by name.
    pub(super) globals: &'e BTreeMap<&'static str, Value>,
    /// The variables passed to the template.
    pub(super) data: Vec<(Arc<str>, Value)>,
    /// The maximum length of the output, in bytes.
    pub(super) most: usize,
    /// The nesting levels around the template.
    pub(super) depth: usize,
}

/// The result of a render.
pub(super) struct Output<W> {
    /// The output, up to the failure if there was one.
    pub(super) written: Traced,
    pub(super) outcome: Result<(), Failure>,
    pub(super) watch: W,
}

/// Evaluates a template.
pub(super) fn run<'e, W: Watch>(
    template: &'e Template,
    input: Input<'e>,
    state: State<'e, 'e>,
    watch: W,
) -> Output<W> {
    let mut variables = Variables::new(input.globals, input.depth);
    for (name, value) in input.data {
        let origin = Origin::Data(DataPath::of_variable(&name));
        variables.give(name, Tracked { value, origin });
    }
    let mut eval = Eval {
        library: input.library,
        state,
        variables,
        macros: Vec::new(),
        blocks: BTreeMap::new(),
        extended: BTreeSet::new(),
        block: None,
        parent: None,
        template,
        escapes: false,
        out: vec![Sink::Text(Rope::default())],
        most: input.most,
        is_full: false,
        loops: 0,
        running: Vec::new(),
        lacking: HashMap::default(),
        trace: Trace::default(),
        watch,
    };
    eval.add_blocks(template);
    let outcome = eval
        .template(template)
        .map_err(|failure| eval.with_object(failure));
    eval.watch.ended(&mut eval.variables.set_here());
    eval.trace.finish();
    let rope = match eval.out.into_iter().next() {
        Some(Sink::Text(rope)) => rope,
        _ => Rope::default(),
    };
    Output {
        written: Traced {
            rope,
            trace: eval.trace,
        },
        outcome,
        watch: eval.watch,
    }
}

/// The destination of text.
#[derive(Debug)]
enum Sink {
    Text(Rope),
    /// The text is discarded, because another template writes instead.
    Nothing,
}

/// A block with the blocks that it overrides.
struct Blocks<'e> {
    /// The innermost first.
    all: Vec<&'e Block>,
    /// The index of the running block.
    depth: usize,
}

/// The state of a render.
struct Eval<'e, W> {
    library: &'e dyn Library,
    /// The state for the engine's own filters.
    state: State<'e, 'e>,
    variables: Variables<'e>,
    macros: Vec<Declared<'e>>,
    blocks: BTreeMap<&'e str, Blocks<'e>>,
    /// The templates that were extended, by number.
    extended: BTreeSet<u32>,
    /// The running block.
    block: Option<&'e str>,
    /// The template that the running template extends.
    parent: Option<&'e Template>,
    /// The running template.
    template: &'e Template,
    /// `true` if captured text is treated as escaped.
    escapes: bool,
    /// The output, with the open captures.
    out: Vec<Sink>,
    most: usize,
    is_full: bool,
    /// The number of loops started so far.
    loops: usize,
    /// The objects that lacked a member, by the expression that read it.
    lacking: HashMap<Place, Value>,
    /// The running loops, including those around the running macro.
    running: Vec<variables::Running<'e>>,
    trace: Trace,
    watch: W,
}

impl<'e, W: Watch> Eval<'e, W> {
    /// Adds the object that caused a failure by lacking a member.
    fn with_object(&mut self, mut failure: Failure) -> Failure {
        failure.object = failure
            .missing
            .and_then(|absent| self.lacking.remove(&absent.at));
        failure
    }

    fn step(&mut self, at: Place) -> Outcome<()> {
        self.watch.step().map_err(|error| Failure::at(at, error))
    }

    fn add_blocks(&mut self, template: &'e Template) {
        for block in &template.blocks {
            self.blocks
                .entry(&block.name)
                .or_insert(Blocks {
                    all: Vec::new(),
                    depth: 0,
                })
                .all
                .push(block);
        }
    }

    /// Writes text with its runs. `tag` becomes the tag of runs that have none yet.
    fn write(&mut self, rope: RopeSlice<'_>, tag: Place, at: Place) -> Outcome<()> {
        self.check_room(rope.text, at)?;
        let Some(Sink::Text(out)) = self.out.last_mut() else {
            return Ok(());
        };
        account::charge(account::WRITE).map_err(|error| Failure::at(at, error))?;
        if rope.text.is_empty() {
            out.push_nothing(self.trace.nothing(tag));
            return Ok(());
        }
        let first = out.runs.len();
        out.push(rope);
        // If there were too many runs, only one is left.
        let first = first.min(out.runs.len() - 1);
        self.trace.writes(&mut out.runs[first..], tag);
        Ok(())
    }

    /// Writes literal text of a template.
    fn write_literal(&mut self, text: &str, at: Place) -> Outcome<()> {
        self.check_room(text, at)?;
        if let Some(Sink::Text(out)) = self.out.last_mut() {
            out.push_run(text, self.trace.literal(text.len(), at));
        }
        Ok(())
    }

    /// Writes the known output of a partial.
    fn write_known(&mut self, known: &Known, step: Step) -> Outcome<()> {
        let Known { written, given, .. } = known;
        self.check_room(&written.rope.text, step.at)?;
        charge_scope(step.at)?;
        let variables = &self.variables;
        let given: Vec<Given> = given
            .iter()
            .filter_map(|name| Some(Given::new(name, variables.set_value(name)?)))
            .collect();
        if let Some(Sink::Text(out)) = self.out.last_mut() {
            let rope = self.trace.adopt(step, written, &given);
            match rope.text.is_empty() {
                true => rope.runs.into_iter().for_each(|run| out.push_nothing(run)),
                false => out.push(rope.slice()),
            }
        }
        Ok(())
    }

    /// Checks that the output has room for a string.
    fn check_room(&mut self, text: &str, at: Place) -> Outcome<()> {
        match self.out.as_slice() {
            [Sink::Text(out)] if out.text.len() + text.len() > self.most => {
                self.is_full = true;
                Err(Failure::at(at, failure::too_large()))
            }
            _ => Ok(()),
        }
    }

    fn begin_capture(&mut self) {
        self.out.push(Sink::Text(Rope::default()));
    }

    fn begin_discard(&mut self) {
        self.out.push(Sink::Nothing);
    }

    fn is_discarding(&self) -> bool {
        matches!(self.out.last(), Some(Sink::Nothing))
    }

    /// Ends a capture, and returns its text.
    fn end_capture(&mut self) -> Rope {
        match self.out.pop() {
            Some(Sink::Text(text)) => text,
            _ => Rope::default(),
        }
    }

    /// Returns a captured string as a value.
    fn captured(&self, text: Rope) -> Tracked {
        let text = Tracked::text(text);
        match (self.escapes, text.value.as_str()) {
            (true, Some(safe)) => Tracked {
                value: Value::from_safe_string(safe.to_owned()),
                ..text
            },
            _ => text,
        }
    }

    /// Runs a part within a scope, which becomes a step in its failures.
    fn within<R>(&mut self, step: Step, inner: impl FnOnce(&mut Self) -> Outcome<R>) -> Outcome<R> {
        charge_scope(step.at)?;
        self.trace.entered(step);
        let result = inner(self);
        self.trace.left();
        result.map_err(|failure| failure.through(step))
    }
}

/// Charges for a scope, which the trace keeps.
fn charge_scope(at: Place) -> Outcome<()> {
    account::charge(account::SCOPE).map_err(|error| Failure::at(at, error))
}

/// Returns the settings of the engine's own filters.
pub(super) fn environment() -> Environment<'static> {
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment
}

/// Renders a template without includes.
///
/// # Errors
///
/// Returns the error as text.
#[cfg(test)]
pub(super) fn render_alone(text: &str, dialect: crate::repo::Dialect) -> Result<String, String> {
    struct Empty;
    impl Library for Empty {
        fn find(&self, _: &str) -> Option<&Template> {
            None
        }
    }
    let template = lower(text, dialect, 0, &[]).map_err(|error| error.to_string())?;
    let globals = super::functions::globals(dialect).into_iter().collect();
    let environment = environment();
    let input = Input {
        library: &Empty,
        globals: &globals,
        data: Vec::new(),
        most: usize::MAX,
        depth: 0,
    };
    let output = run(&template, input, environment.empty_state(), ());
    output
        .outcome
        .map(|()| output.written.rope.text)
        .map_err(|failure| failure.error.to_string())
}
