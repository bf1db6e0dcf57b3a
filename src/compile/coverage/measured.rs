//! The shares of lines and outcomes that contexts reach, and the gaps.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use crate::compile::compiler::{Compiler, STACK_BYTES};
use crate::compile::pairing::Pairing;
use crate::compile::selection::{Chosen, Selection};
use crate::compile::surroundings;
use crate::render::coverage::{DecisionCoverage, DecisionId, DecisionKind, Runs, TemplateCoverage};
use crate::render::rules as render_rules;
use crate::resolve::ProfileId;
use crate::source::{FileId, Sources, Span};

/// The coverage of selected agents' templates by selected contexts.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Coverage {
    /// The files that locations point into.
    pub sources: Sources,
    /// The files with templates, sorted by path.
    pub files: Vec<FileCoverage>,
    /// The number of measured agents.
    pub agents: usize,
    /// The number of contexts that the agents were rendered in.
    pub contexts: usize,
}

/// The coverage of one file.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FileCoverage {
    /// The measured file.
    pub file: FileId,
    /// The file's path from the root of its layer.
    pub path: Arc<str>,
    /// The number of times that each line with a statement ran, by line number from 1.
    pub lines: BTreeMap<usize, u64>,
    /// The decisions, in file order.
    pub splits: Vec<Split>,
    /// The gaps, in file order.
    pub gaps: Vec<Gap>,
}

/// A decision in a template, with the number of times that it went each way.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Split {
    /// The location of the decision.
    pub span: Span,
    /// The number of times that the condition was true, the loop had elements or the value was
    /// present; and the number of opposite outcomes.
    pub outcomes: [u64; 2],
    /// `true` if a missing outcome is ignored, because it is excused or impossible.
    pub is_excused: bool,
    /// The code that runs only on the corresponding outcome.
    parts: [Option<Span>; 2],
}

/// Code or an outcome that no context reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gap {
    /// The location of the gap.
    pub span: Span,
    /// The kind of gap.
    pub kind: GapKind,
    /// The part that is not reached, as a phrase.
    pub missing: String,
    /// The data that would reach the missing part, as a phrase; `None` if no conversation can.
    pub needs: Option<String>,
    /// The missing outcome, if the gap is a missing outcome.
    pub(super) decision: Option<Missing>,
}

/// A missing outcome of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Missing {
    pub(super) decision: DecisionId,
    /// `true` if the condition was never true, `false` if it was never false.
    pub(super) holds: bool,
}

/// The kinds of gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GapKind {
    /// A template that nothing renders.
    Template,
    /// A macro that is never called.
    Macro,
    /// A condition that is never true, or never false.
    Condition,
    /// A loop that never has an element, or always has one.
    Loop,
    /// A default that is never used, or always used.
    Default,
    /// A statement after a failure.
    Statement,
    /// An excuse for code that is reached.
    Excuse,
}

impl GapKind {
    /// Returns the kind's name in machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            GapKind::Template => "template",
            GapKind::Macro => "macro",
            GapKind::Condition => "condition",
            GapKind::Loop => "loop",
            GapKind::Default => "default",
            GapKind::Statement => "statement",
            GapKind::Excuse => "excuse",
        }
    }
}

/// The part of a total, such as lines or outcomes, that contexts reach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    /// The number of reached lines or outcomes.
    pub reached: usize,
    /// The total number of lines or outcomes.
    pub all: usize,
}

impl Share {
    /// Returns the share in percent; 100 if the total is 0.
    #[expect(clippy::cast_precision_loss, reason = "counts of lines are small")]
    pub fn percent(self) -> f64 {
        match self.all {
            0 => 100.0,
            all => 100.0 * self.reached as f64 / all as f64,
        }
    }

    fn and(self, other: Share) -> Share {
        Share {
            reached: self.reached + other.reached,
            all: self.all + other.all,
        }
    }
}

impl FileCoverage {
    /// Returns the share of lines that ran.
    pub fn lines(&self) -> Share {
        Share {
            reached: self.lines.values().filter(|&&count| count > 0).count(),
            all: self.lines.len(),
        }
    }

    /// Returns the share of outcomes that occurred.
    pub fn outcomes(&self) -> Share {
        let reached = self.splits.iter().map(Split::reached);
        let excused = self.splits.iter().filter(|split| split.is_excused);
        Share {
            reached: reached.sum(),
            all: 2 * self.splits.len() - excused.map(|split| 2 - split.reached()).sum::<usize>(),
        }
    }
}

impl Split {
    /// Returns the code that runs only on outcomes that never occurred.
    fn never_ran(&self) -> impl Iterator<Item = Span> {
        let parts = self.parts.into_iter().zip(self.outcomes);
        parts.filter_map(|(part, count)| part.filter(|_| count == 0))
    }

    /// Returns the number of outcomes that occurred, from 0 to 2.
    fn reached(&self) -> usize {
        self.outcomes.iter().filter(|&&count| count > 0).count()
    }
}

impl Coverage {
    /// Returns the share of lines that ran, in all files.
    pub fn lines(&self) -> Share {
        let files = self.files.iter().map(FileCoverage::lines);
        files.fold(Share::default(), Share::and)
    }

    /// Returns the share of outcomes that occurred, in all files.
    pub fn outcomes(&self) -> Share {
        let files = self.files.iter().map(FileCoverage::outcomes);
        files.fold(Share::default(), Share::and)
    }

    /// Returns the gaps in all files.
    pub fn gaps(&self) -> impl Iterator<Item = &Gap> {
        self.files.iter().flat_map(|file| &file.gaps)
    }

    /// Renders every selected agent in every selected context, and counts the statements that run.
    pub fn measure(compiler: &Compiler, selection: &Selection) -> Coverage {
        let chosen = Chosen::new(compiler, selection);
        let agents = chosen.usable();
        let count_all = || {
            agents
                .par_iter()
                .map(|id| runs_of(chosen, *id))
                .reduce(Runs::default, Runs::and)
        };
        let runs = match rayon::ThreadPoolBuilder::new()
            .stack_size(STACK_BYTES)
            .build()
        {
            Ok(pool) => pool.install(count_all),
            Err(_) => count_all(),
        };
        let templates = compiler.engine.coverage(compiler.sources(), &runs);
        Coverage {
            sources: compiler.sources().clone(),
            files: files(chosen, templates),
            agents: agents.len(),
            contexts: chosen.contexts().count(),
        }
    }
}

/// Renders an agent in its contexts.
fn runs_of(chosen: Chosen<'_>, id: ProfileId) -> Runs {
    let (compiler, mut runs) = (chosen.compiler, Runs::default());
    let Some(plan) = compiler.plan(id) else {
        return runs;
    };
    for loaded in chosen.contexts_of(plan.name()) {
        let Some(Ok(pairing)) = Pairing::of(compiler, id, &loaded.context.name) else {
            continue;
        };
        let renderer = loaded.renderer(&compiler.engine);
        surroundings::count_runs(&plan, loaded, &renderer, &mut runs);
        let request = pairing.request(chosen.selection.model.as_deref());
        plan.count_runs(compiler.sources(), &renderer, &request, &mut runs);
    }
    runs
}

/// Groups templates by their files. Leaves out layers that are not compiled and, if agents were
/// selected, templates that the selected agents do not use.
fn files(chosen: Chosen<'_>, templates: Vec<TemplateCoverage>) -> Vec<FileCoverage> {
    let repo = &chosen.compiler.repo;
    let all = repo.profiles.iter().chain(repo.partials.values());
    let compiled: BTreeSet<FileId> = all
        .filter(|file| repo.is_compiled(file.layer))
        .map(|file| file.file)
        .collect();
    let takes_all = chosen.selection.agents.is_none();
    let mut by_file: BTreeMap<(Arc<str>, FileId), FileCoverage> = BTreeMap::new();
    for template in templates {
        let counts = compiled.contains(&template.file) && (takes_all || template.has_run());
        if !counts {
            continue;
        }
        let path = repo.sources.get(template.file).path();
        let file = by_file
            .entry((Arc::clone(path), template.file))
            .or_insert_with(|| FileCoverage {
                file: template.file,
                path: Arc::clone(path),
                lines: BTreeMap::new(),
                splits: Vec::new(),
                gaps: Vec::new(),
            });
        file.add(&repo.sources, &template);
    }
    let mut files: Vec<FileCoverage> = by_file.into_values().collect();
    for file in &mut files {
        file.excuse(&repo.sources);
        file.splits.sort_by_key(|split| split.span);
        file.gaps.sort_by_key(|gap| gap.span);
    }
    files
}

impl FileCoverage {
    fn add(&mut self, sources: &Sources, template: &TemplateCoverage) {
        for (span, count) in &template.statements {
            for line in lines_of(sources, *span) {
                let known = self.lines.entry(line).or_default();
                *known = (*known).max(*count);
            }
        }
        for decision in &template.decisions {
            self.splits.push(Split {
                span: decision.span,
                outcomes: [decision.outcomes.held, decision.outcomes.failed],
                is_excused: decision.fails_if.is_none(),
                parts: decision.parts,
            });
        }
        let before = self.gaps.len();
        if !template.has_run() && !template.statements.is_empty() {
            self.gaps.push(Gap {
                span: template.span,
                kind: GapKind::Template,
                missing: "nothing renders this template".to_owned(),
                needs: None,
                decision: None,
            });
            return;
        }
        let unused = template.macros.iter().filter(|it| !it.has_run);
        self.gaps.extend(unused.map(|it| Gap {
            span: it.span,
            kind: GapKind::Macro,
            missing: format!("nothing calls the macro `{}`", it.name),
            needs: None,
            decision: None,
        }));
        let decisions = template.decisions.iter();
        self.gaps.extend(decisions.filter_map(gap_of));
        if self.gaps.len() > before {
            return;
        }
        // Every unreached branch or macro has its own gap. Any other unreached statement follows a
        // failure.
        let first = template.statements.iter().find(|(_, count)| *count == 0);
        self.gaps.extend(first.map(|(span, _)| Gap {
            span: *span,
            kind: GapKind::Statement,
            missing: "this never runs, because the template fails before it".to_owned(),
            needs: None,
            decision: None,
        }));
    }
}

/// The prefix of a comment that excuses unreached code on its line.
const EXCUSE: &str = "no coverage:";

impl FileCoverage {
    /// Removes excused gaps, and adds gaps for unnecessary excuses.
    fn excuse(&mut self, sources: &Sources) {
        let source = sources.get(self.file);
        for (excused, comment) in excuses(source.text()) {
            let line_of = |span: Span| source.position(span.range().start).line;
            let before = self.gaps.len();
            self.gaps.retain(|gap| line_of(gap.span) != excused);
            let never_ran = self.lines.get(&excused) == Some(&0);
            if never_ran {
                self.lines.remove(&excused);
            }
            let mut behind = Vec::new();
            let splits = self.splits.iter_mut();
            for split in splits.filter(|split| line_of(split.span) == excused) {
                split.is_excused = true;
                behind.extend(split.never_ran());
            }
            for part in behind {
                self.leave_out(sources, part);
            }
            if self.gaps.len() == before && !never_ran {
                self.gaps.push(Gap {
                    span: Span::new(self.file, comment),
                    kind: GapKind::Excuse,
                    missing: "everything on this line is covered: remove the comment".to_owned(),
                    needs: None,
                    decision: None,
                });
            }
        }
    }
}

impl FileCoverage {
    /// Excludes a part that never ran: its lines and outcomes no longer count.
    fn leave_out(&mut self, sources: &Sources, part: Span) {
        for line in lines_of(sources, part) {
            if self.lines.get(&line) == Some(&0) {
                self.lines.remove(&line);
            }
        }
        let range = part.range();
        let splits = self.splits.iter_mut();
        splits
            .filter(|split| range.contains(&split.span.range().start))
            .for_each(|split| split.is_excused = true);
    }
}

/// Returns the excuses in a string, each with its line number from 1 and its range in bytes.
fn excuses(text: &str) -> Vec<(usize, Range<usize>)> {
    let (mut found, mut at) = (Vec::new(), 0);
    for (line, number) in text.split_inclusive('\n').zip(1..) {
        if let Some(comment) = excuse_in(line) {
            found.push((number, at + comment.start..at + comment.end));
        }
        at += line.len();
    }
    found
}

/// Returns the comment on a line, if it is an excuse with a reason.
fn excuse_in(line: &str) -> Option<Range<usize>> {
    let start = line.find("{#")?;
    let end = start + line[start..].find("#}")? + "#}".len();
    let inner = line[start..end].trim_matches(['{', '}', '#', '-', ' ']);
    let reason = inner.strip_prefix(EXCUSE)?;
    (!reason.trim().is_empty()).then_some(start..end)
}

/// Returns the numbers of the non-blank lines in a span.
fn lines_of(sources: &Sources, span: Span) -> Vec<usize> {
    let (file, mut lines) = (sources.get(span.file), Vec::new());
    let mut at = span.range().start;
    for line in sources.slice(span).split_inclusive('\n') {
        if !line.trim().is_empty() {
            lines.push(file.position(at).line);
        }
        at += line.len();
    }
    lines
}

/// Returns the gap for a decision that always had the same outcome. A decision that was never
/// evaluated is inside another gap.
fn gap_of(decision: &DecisionCoverage) -> Option<Gap> {
    let outcomes = decision.outcomes;
    let (has_held, needs) = match (outcomes.held > 0, outcomes.failed > 0) {
        (true, false) => (true, decision.fails_if.as_ref()?),
        (false, true) => (false, &decision.holds_if),
        (true, true) | (false, false) => return None,
    };
    let (kind, missing) = match (decision.kind, has_held) {
        (DecisionKind::If | DecisionKind::Choice, true) => {
            (GapKind::Condition, "the condition is always true")
        }
        (DecisionKind::If | DecisionKind::Choice, false) => {
            (GapKind::Condition, "the condition is never true")
        }
        (DecisionKind::LoopFilter, true) => (
            GapKind::Condition,
            "the loop's condition accepts every element",
        ),
        (DecisionKind::LoopFilter, false) => (
            GapKind::Condition,
            "the loop's condition accepts no element",
        ),
        (DecisionKind::Loop, true) => (GapKind::Loop, "the loop is never empty"),
        (DecisionKind::Loop, false) => (GapKind::Loop, "the loop is always empty"),
        (DecisionKind::Default, true) => (GapKind::Default, "the default is never used"),
        (DecisionKind::Default, false) => (GapKind::Default, "the default is always used"),
        (DecisionKind::Parameter, true) => {
            (GapKind::Default, "the parameter's default is never used")
        }
        (DecisionKind::Parameter, false) => (GapKind::Default, "the parameter is never passed"),
    };
    if let Some(name) = &decision.lost {
        let rule = render_rules::SET_IN_LOOP.code;
        return Some(Gap {
            span: decision.span,
            kind,
            missing: format!("{missing}, and `{name}` loses the value that a loop sets ({rule})"),
            needs: None,
            decision: None,
        });
    }
    Some(Gap {
        span: decision.span,
        kind,
        missing: missing.to_owned(),
        needs: Some(needs.clone()),
        decision: Some(Missing {
            decision: decision.id,
            holds: !has_held,
        }),
    })
}
