//! Coverage of templates: the statements, decisions and macros that ran, with their locations in
//! files.
//!
//! Bodies and prompts are evaluated with a counting [`Ran`] watch. The cache is not used, because
//! templates with cached output do not run.

use std::sync::Arc;

use super::eval::{self, Decision, Need, Ran, Steps};
use super::place::Place;
use super::{BodyInput, Engine, PromptScope, Renderer, TemplateId, TemplateOrigin};
use crate::source::{FileId, Sources, Span};

pub(crate) use super::eval::{DecisionKind, Outcomes};

/// The coverage collected from renders.
#[derive(Debug, Default)]
pub(crate) struct Runs(Ran);

/// Identifies a decision in a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DecisionId(Decision);

impl Runs {
    /// Returns the number of times that a decision had each outcome.
    pub(crate) fn outcomes(&self, decision: DecisionId) -> Outcomes {
        self.0.outcomes(decision.0)
    }

    /// Adds the coverage of other renders.
    #[must_use]
    pub(crate) fn and(mut self, other: Runs) -> Runs {
        self.0.add(other.0);
        self
    }
}

/// The coverage of one template.
#[derive(Debug)]
pub(crate) struct TemplateCoverage {
    /// The file that contains the template.
    pub(crate) file: FileId,
    /// The location of the template's text: a file, or the literal in a profile.
    pub(crate) span: Span,
    /// Each statement, with the number of times that it ran.
    pub(crate) statements: Vec<(Span, u64)>,
    pub(crate) decisions: Vec<DecisionCoverage>,
    pub(crate) macros: Vec<MacroCoverage>,
}

impl TemplateCoverage {
    /// Returns `true` if any part of the template ran.
    pub(crate) fn has_run(&self) -> bool {
        self.statements.iter().any(|(_, count)| *count > 0)
    }
}

/// The coverage of a decision.
#[derive(Debug)]
pub(crate) struct DecisionCoverage {
    pub(crate) id: DecisionId,
    pub(crate) kind: DecisionKind,
    pub(crate) span: Span,
    pub(crate) outcomes: Outcomes,
    /// A description of the data required for the first outcome.
    pub(crate) holds_if: String,
    /// A description of the data required for the second outcome; `None` if that is impossible.
    pub(crate) fails_if: Option<String>,
    /// For each outcome, the statements that run only then.
    pub(crate) parts: [Option<Span>; 2],
    /// A variable in the condition, if a loop sets the variable and the value is lost.
    pub(crate) lost: Option<String>,
}

/// The coverage of a macro.
#[derive(Debug)]
pub(crate) struct MacroCoverage {
    pub(crate) name: String,
    pub(crate) span: Span,
    pub(crate) has_run: bool,
}

impl Renderer<'_> {
    /// Evaluates a body template, and counts the statements that run.
    pub(crate) fn run_body(&self, id: TemplateId, input: &BodyInput<'_>, runs: &mut Runs) {
        self.count(id, input.variables(), runs);
    }

    /// Evaluates a system prompt, and counts the statements that run.
    pub(crate) fn run_prompt(&self, id: TemplateId, scope: &Arc<PromptScope>, runs: &mut Runs) {
        self.count(id, scope.variables(self.engine.dialect), runs);
    }

    fn count(&self, id: TemplateId, data: Vec<(Arc<str>, minijinja::Value)>, runs: &mut Runs) {
        let watch = (Steps::at_most(self.fuel), std::mem::take(&mut runs.0));
        let (output, _) = self.run(id, self.engine, data, watch);
        (_, runs.0) = output.watch;
    }
}

impl Engine {
    /// Returns the coverage of each partial, and of each usable template in a profile.
    pub(crate) fn coverage(&self, sources: &Sources, runs: &Runs) -> Vec<TemplateCoverage> {
        let partials = self
            .partial_names
            .iter()
            .filter_map(|name| self.partial(name))
            .map(|tree| self.covered(sources, tree, &runs.0));
        let of_profiles = self
            .templates
            .iter()
            .zip(0..)
            .filter(|(template, _)| template.usable)
            .map(|(_, number)| self.covered(sources, &self.tree(TemplateId(number)), &runs.0));
        partials.chain(of_profiles).collect()
    }

    fn covered(&self, sources: &Sources, tree: &eval::Template, ran: &Ran) -> TemplateCoverage {
        let written = |at| self.written_at(sources, at);
        let ground = tree.ground(&written);
        let told = |need: &Need| need.told(&written);
        let statements = ground.statements.iter();
        let statements = statements.map(|&at| (self.place_span(sources, at), ran.count(at)));
        let decisions = ground.decisions.iter().map(|it| DecisionCoverage {
            id: DecisionId(it.decision),
            kind: it.decision.kind,
            span: self.place_span(sources, it.decision.at),
            outcomes: ran.outcomes(it.decision),
            holds_if: told(&it.holds_if),
            fails_if: it.fails_if.as_ref().map(told),
            parts: it
                .parts
                .map(|part| part.map(|at| self.place_span(sources, at))),
            lost: self.lost_in(tree, it.decision.at),
        });
        let macros = ground.macros.iter().map(|it| MacroCoverage {
            name: it.name.to_string(),
            span: self.place_span(sources, it.at),
            has_run: it.body.iter().any(|&at| ran.count(at) > 0) || it.body.is_empty(),
        });
        let span = match self.places[&self.numbered[tree.number as usize]] {
            TemplateOrigin::File(file) => Span::file_start(file),
            TemplateOrigin::Toml(literal) => literal,
        };
        TemplateCoverage {
            file: span.file,
            span,
            statements: statements.collect(),
            decisions: decisions.collect(),
            macros: macros.collect(),
        }
    }

    /// Returns a variable that is read at a location in a template, if a loop sets the variable and
    /// the value is lost.
    fn lost_in(&self, tree: &eval::Template, at: Place) -> Option<String> {
        let analysis = self.analyses.get(&self.numbered[tree.number as usize])?;
        let at = at.range();
        let mut inside = analysis
            .variables
            .iter()
            .filter(|(_, range)| at.start <= range.start && range.end <= at.end)
            .map(|(name, _)| name);
        inside
            .find(|name| analysis.lost_sets.iter().any(|it| it.name == **name))
            .cloned()
    }

    /// Returns the author's text at a location, on one line.
    fn written_at(&self, sources: &Sources, at: Place) -> String {
        let written = sources.slice(self.place_span(sources, at));
        written.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}
