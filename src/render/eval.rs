//! Evaluates templates: a walk over the engine's own syntax tree that can be watched.
//!
//! Input: a [`Template`], which [`lower`] makes of a text, the data, and a [`Watch`] that is told
//! what happens. Output: the text, or a [`Failure`] that knows its place. Values, filters and
//! arithmetic are minijinja's; what statements do is written here once, and a differential test
//! holds it to the engine. Where a value came from travels beside it, as its [`Origin`].
//!
//! # How a byte of a body gets its writer
//!
//! 1. A body is first made without writers: a watch whose `FOLLOWS` is false costs no origins and
//!    no runs.
//! 2. When a finding asks for a place, `unit::record` looks up which splice of the body holds it.
//! 3. A splice is the part of a body that one template wrote; all other parts are literals of
//!    profiles or provider steps, which
//!    name their own places.
//! 4. The template of the splice is evaluated again with the watch `Trace`; the record keeps the
//!    recording, and the memory keeps
//!    places in templates that several agents share.
//! 5. Each variable that the template is given starts with an origin: `ctx` with the root of the
//!    data, another with its own path.
//! 6. A member or an element of data has the path of its object and its own name or index as
//!    origin.
//! 7. A captured text has the text itself with all of its writers as origin.
//! 8. A list or an object that a template makes has the origins of its parts.
//! 9. Nothing is known of any other value, and a text computed from it names no inputs.
//! 10. Text with writers is a `Told`: the text, and runs that cover all of its bytes in order. A
//!     run says how many bytes it has, who
//!     wrote them, how often they were escaped, by which tag and in which frame.
//! 11. Literal text of a template, or a literal of an expression, makes a run whose writer is its
//!     place in the template.
//! 12. `{{ value }}` makes a run of the value's origin: a path of the data, a file that a prompt
//!     read, or inputs it was computed
//!     from.
//! 13. JSON that a tag writes is cut into leaves with their own writers, and the quotes and
//!     brackets between them, which the tag wrote.
//! 14. Escaping keeps the runs and counts itself, so that an offset in the output leads back to one
//!     in the source.
//! 15. Filters that keep content hand the runs on; any other result is computed, from the inputs of
//!     its arguments.
//! 16. The first tag that writes a run is noted in it with the frame; a later tag that writes the
//!     capture does not replace it.
//! 17. A frame is an include, a macro, a `call`, `set` or `filter` block, and knows its parent: the
//!     frames of a run tell which steps led
//!     to it.
//! 18. A text of too many runs becomes one run that was computed from its first inputs.
//! 19. The system prompt has a recording of its own; runs that it wrote are marked, and their tags
//!     and frames looked up there.
//! 20. To answer for a byte, `Recording::written` finds the run that covers it, and turns its place
//!     into a span of a file, or its
//!     path into a value of the conversation.

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
pub(super) use trace::{Frame, Trace};
pub(super) use tree::Template;
pub(super) use watch::Watch;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use foldhash::HashMap;
use minijinja::{Environment, Error, State, UndefinedBehavior, Value};

use super::place::Place;
use super::rope::Told;
use super::tracked::{Names, Origin, Tracked};
use calls::Declared;
use failure::Outcome;
use tree::Block;
use variables::Variables;

/// A scope that a render can be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// `{% include %}`.
    Include,
    /// `{% import %}` and `{% from %}`.
    Import,
    /// The body of a macro.
    Macro,
    /// The body of a `{% call %}` block, which the macro asks for.
    Caller,
    /// `{% set %}…{% endset %}`.
    SetBlock,
    /// `{% filter %}`.
    FilterBlock,
}

/// A step into a scope: from a tag, or for a macro from its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) scope: Scope,
    pub(super) at: Place,
}

/// Gives the templates that others include.
pub(super) trait Library {
    /// Returns the template that a name in an include leads to.
    fn find(&self, name: &str) -> Option<&Template>;

    /// Returns what a partial writes where a template includes it that has set some names, and the
    /// steps that this takes, if that is known.
    ///
    /// # Errors
    ///
    /// If the work that it takes is too much.
    fn known(&self, _name: &str, _template: &dyn Names) -> Result<Option<Known>, Error> {
        Ok(None)
    }
}

/// The text of a partial, known beforehand.
pub(super) struct Known {
    pub(super) text: Arc<str>,
    pub(super) steps: u64,
}

/// The input of an evaluation.
pub(super) struct Input<'e> {
    pub(super) library: &'e dyn Library,
    /// The functions that templates may call, by name.
    pub(super) globals: &'e BTreeMap<&'static str, Value>,
    /// The variables that it is given.
    pub(super) data: Vec<(Arc<str>, Value)>,
    /// The system prompt with its writers, if these are followed.
    pub(super) prompt: Option<Arc<Told>>,
    /// The most bytes that it may write.
    pub(super) most: usize,
}

/// The result of a render.
pub(super) struct Output<W> {
    /// The output, up to a failure if there was one.
    pub(super) text: Told,
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
    let mut variables = Variables::new(input.globals);
    for (name, value) in input.data {
        let origin = if W::FOLLOWS {
            origin_of(&name)
        } else {
            Origin::Unknown
        };
        variables.give(name, Tracked { value, origin });
    }
    let mut eval = Eval {
        library: input.library,
        state,
        variables,
        prompt: input.prompt,
        macros: Vec::new(),
        blocks: BTreeMap::new(),
        extended: BTreeSet::new(),
        block: None,
        parent: None,
        template,
        escapes: false,
        out: vec![Sink::Text(Told::new(W::FOLLOWS))],
        most: input.most,
        is_full: false,
        loops: 0,
        running: Vec::new(),
        lacking: HashMap::default(),
        watch,
    };
    eval.add_blocks(template);
    let outcome = eval
        .template(template)
        .map_err(|failure| eval.with_object(failure));
    eval.watch.ended(&mut eval.variables.set_here());
    let text = match eval.out.into_iter().next() {
        Some(Sink::Text(text)) => text,
        _ => Told::new(W::FOLLOWS),
    };
    Output {
        text,
        outcome,
        watch: eval.watch,
    }
}

/// `ctx` is the data, others are members beside it.
fn origin_of(name: &str) -> Origin {
    let root = crate::json::Pointer::root();
    match name {
        "ctx" => Origin::Data(Arc::new(root)),
        name => Origin::Data(Arc::new(root.member(name))),
    }
}

/// Where text goes.
#[derive(Debug)]
enum Sink {
    Text(Told),
    /// Nothing: another template writes instead.
    Nothing,
}

/// A block and those that it overrides.
struct Blocks<'e> {
    /// The innermost first.
    all: Vec<&'e Block>,
    /// Which of them runs.
    depth: usize,
}

/// A render.
struct Eval<'e, W> {
    library: &'e dyn Library,
    /// The state that the engine's own filters ask for.
    state: State<'e, 'e>,
    variables: Variables<'e>,
    prompt: Option<Arc<Told>>,
    macros: Vec<Declared<'e>>,
    blocks: BTreeMap<&'e str, Blocks<'e>>,
    /// The templates that were extended, by their numbers.
    extended: BTreeSet<u32>,
    /// The block that runs.
    block: Option<&'e str>,
    /// The template that the running one extends.
    parent: Option<&'e Template>,
    /// The template that runs.
    template: &'e Template,
    /// `true` if captured text counts as escaped.
    escapes: bool,
    /// The output, and the captures that are open.
    out: Vec<Sink>,
    most: usize,
    is_full: bool,
    /// The number of loops that began.
    loops: usize,
    /// The objects that lacked a member, by the expression that asked for it.
    lacking: HashMap<Place, Value>,
    /// The loops that run, also around the macro that does.
    running: Vec<variables::Running<'e>>,
    watch: W,
}

impl<'e, W: Watch> Eval<'e, W> {
    /// Adds the object that lacks what a render failed for.
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

    /// Writes a text.
    fn write(&mut self, text: &Told, at: Place) -> Outcome<()> {
        let is_output = self.out.len() == 1;
        if let Some(Sink::Text(out)) = self.out.last_mut() {
            if is_output && out.text.len() + text.text.len() > self.most {
                self.is_full = true;
                return Err(Failure::at(at, failure::too_large()));
            }
            out.append(text);
        }
        Ok(())
    }

    fn begin_capture(&mut self) {
        self.out.push(Sink::Text(Told::new(W::FOLLOWS)));
    }

    fn begin_discard(&mut self) {
        self.out.push(Sink::Nothing);
    }

    fn is_discarding(&self) -> bool {
        matches!(self.out.last(), Some(Sink::Nothing))
    }

    /// Returns what was captured.
    fn end_capture(&mut self) -> Told {
        match self.out.pop() {
            Some(Sink::Text(text)) => text,
            _ => Told::new(W::FOLLOWS),
        }
    }

    /// Returns a captured text as a value.
    fn captured(&self, text: Told) -> Tracked {
        let text = Tracked::text(text);
        match (self.escapes, text.value.as_str()) {
            (true, Some(safe)) => Tracked {
                value: Value::from_safe_string(safe.to_owned()),
                ..text
            },
            _ => text,
        }
    }

    /// Does something within a scope, whose failures lead through it.
    fn within<R>(&mut self, step: Step, inner: impl FnOnce(&mut Self) -> Outcome<R>) -> Outcome<R> {
        self.watch.entered(step);
        let result = inner(self);
        self.watch.left();
        result.map_err(|failure| failure.through(step))
    }
}

/// Returns how the engine's own filters are to behave.
pub(super) fn environment() -> Environment<'static> {
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment
}

/// Renders a template that includes nothing.
///
/// # Errors
///
/// What went wrong, as text.
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
        prompt: None,
        most: usize::MAX,
    };
    let output = run(&template, input, environment.empty_state(), ());
    output
        .outcome
        .map(|()| output.text.text)
        .map_err(|failure| failure.error.to_string())
}
