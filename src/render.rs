//! Checks, compiles and renders templates. No other module uses `minijinja`.
//!
//! Input: partials from a [`Repo`] and template strings from profiles. Output: rendered text, or
//! findings at the line of the TOML file or partial that caused them. This module does not check
//! that the text is JSON.
//!
//! An [`Engine`] is built once per repository; a [`Renderer`] is an engine with limits for
//! conversations up to a given size. All threads share both.

pub(crate) mod rules;
mod limits;
mod parts;
mod recursion;
mod refusal;
mod account;
mod values;
mod place;
mod data_path;
mod rope;
mod tracked;
mod objects;
mod keep;
mod writing;
mod folders;
mod slips_of_data;
mod unexpanded;
mod lost_sets;
mod analyse;
mod builtins;
mod inja;
mod functions;
mod prompt;
mod dialect;
mod eval;
mod data;
mod included;
mod includes;
mod slips;
mod missing_files;
mod unclosed;
mod recording;
pub(crate) mod coverage;
mod syntax;
mod errors;
mod names;

pub(crate) use account::{LIMIT as ACCOUNT_LIMIT, MAX_OUTPUT};
pub(crate) use analyse::full_name;
pub use data::ContextData;
pub use folders::Folders;
pub use functions::IdRule;
pub(crate) use included::Keep;
pub use prompt::PromptScope;
pub use recording::{By, From as ComputedFrom, Step, StepKind, Written};
pub(crate) use recording::{DataRead, Recording};
pub use rope::{ReadFile, ReadPlace};

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use foldhash::{HashMap, HashSet};
use memchr::memmem;
use minijinja::{Environment, Value};

use crate::diag::{Diagnostic, Severity, Suggestions, nearest};
use crate::memory::{Identity, Memory, Question};
use crate::panics::{Panic, caught};
use crate::repo::{Dialect, Repo};
use crate::source::{FileId, OffsetMap, Sources, Span};
use crate::toml;
use analyse::{ALL_OF_CTX, Analysis};
use eval::{Asked, Hole, Input, Output, Steps, Watch};
use included::{BodyLibrary, LeftOut};
use place::Place;

/// The base number of steps for any template.
const BASE_FUEL: u64 = 200_000;
/// The additional steps per content block of the conversation.
const FUEL_PER_BLOCK: u64 = 5_000;
/// The maximum number of steps, however long the conversation is.
const MAX_FUEL: u64 = 5_000_000;

/// The first character of the name under which a profile's template is registered; no include can
/// contain it.
const OF_PROFILE: char = '\u{1}';

/// A checked template of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TemplateId(u32);

/// The purpose of a template string, which determines the functions that it may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TemplateKind {
    /// A string in `[body]`.
    Body,
    /// `system_prompt`.
    Prompt,
}

/// Returns the functions that templates of a kind may call, in addition to the engine's.
pub fn function_names(kind: TemplateKind) -> &'static [&'static str] {
    match kind {
        TemplateKind::Body => &functions::BODY_FUNCTIONS,
        TemplateKind::Prompt => &prompt::PROMPT_FUNCTIONS,
    }
}

/// Returns `true` if a string in a body is a template; `{#` alone does not make it a template.
pub fn is_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%")
}

/// The source of a template's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TemplateOrigin {
    /// A whole file.
    File(FileId),
    /// A string in a TOML file, with the location of the literal.
    Toml(Span),
}

/// A template as its author wrote it.
struct TemplateSource<'t> {
    name: &'t Arc<str>,
    origin: TemplateOrigin,
    text: &'t str,
    /// The purpose; `None` for a partial, which serves any template that includes it.
    kind: Option<TemplateKind>,
}

impl TemplateSource<'_> {
    fn is_prompt(&self) -> bool {
        self.kind == Some(TemplateKind::Prompt)
    }
}

/// All templates of a repository.
pub struct Engine {
    /// The environment with the settings for the engine's own filters.
    environment: Environment<'static>,
    /// The functions that templates may call, by name.
    globals: BTreeMap<&'static str, Value>,
    /// The names of templates, by number.
    numbered: Vec<Arc<str>>,
    places: HashMap<Arc<str>, TemplateOrigin>,
    analyses: HashMap<Arc<str>, Box<Analysis>>,
    /// The usable partials.
    partials: HashMap<Arc<str>, Partial>,
    partial_names: BTreeSet<Arc<str>>,
    /// Partials and templates with a finding, which rendering would only repeat.
    broken: HashSet<Arc<str>>,
    templates: Vec<Template>,
    by_span: HashMap<Span, TemplateId>,
    dialect: Dialect,
    /// The names that templates assign. If an included template calls one of them, the call may
    /// refer to the assigned value.
    assigned: HashSet<String>,
    suggestions: Suggestions,
    /// Reads that always fail when they run.
    slips: Vec<Diagnostic>,
    /// The data that each partial reads, including through its includes.
    reads_of_partials: HashMap<Arc<str>, BTreeSet<String>>,
    /// The templates that are system prompts.
    prompts: HashSet<Arc<str>>,
    memory: Arc<Memory>,
    /// Identifies this engine in cache keys.
    id: Identity,
}

/// A usable partial, compiled when it is first needed: most repositories use only a few of the
/// bundled partials.
struct Partial {
    /// The partial's number among all templates.
    number: u32,
    /// The text to evaluate.
    text: Box<str>,
    tree: OnceLock<eval::Template>,
}

struct Template {
    name: Arc<str>,
    /// The template's number among all templates.
    number: u32,
    /// The text to evaluate.
    text: Box<str>,
    /// The data that the template reads, including through its includes.
    reads: BTreeSet<String>,
    /// `true` if the template may read the system prompt.
    reads_prompt: bool,
    usable: bool,
    /// The number of agents that use the template.
    uses: usize,
}

/// The [`Question`] for a profile's compiled template. A compiled template takes ten times as much
/// memory as its text.
#[derive(PartialEq, Eq, Hash)]
struct TreeOf {
    engine: Identity,
    id: TemplateId,
    /// The length of the text in bytes.
    len: usize,
}

impl Question for TreeOf {
    type Answer = Arc<eval::Template>;

    fn weight(&self, _: &Arc<eval::Template>) -> usize {
        1024 + 10 * self.len
    }
}

/// The [`Question`] for the offset map of a literal that contains a finding.
#[derive(PartialEq, Eq, Hash)]
struct MapOf(Identity, Span);

impl Question for MapOf {
    type Answer = Arc<OffsetMap>;

    fn weight(&self, _: &Arc<OffsetMap>) -> usize {
        256 + (self.1.end - self.1.start) as usize
    }
}

impl Engine {
    /// Checks the partials of a repository. Each partial is compiled when it is first needed.
    pub fn new(repo: &Repo, memory: &Arc<Memory>) -> (Engine, Vec<Diagnostic>) {
        let mut engine = Engine {
            environment: eval::environment(),
            globals: functions::globals(repo.config.dialect)
                .into_iter()
                .collect(),
            numbered: Vec::new(),
            places: HashMap::default(),
            analyses: HashMap::default(),
            partials: HashMap::default(),
            partial_names: repo.partials.keys().cloned().collect(),
            broken: HashSet::default(),
            templates: Vec::new(),
            by_span: HashMap::default(),
            dialect: repo.config.dialect,
            assigned: HashSet::default(),
            suggestions: Suggestions::default(),
            slips: Vec::new(),
            reads_of_partials: HashMap::default(),
            prompts: HashSet::default(),
            memory: Arc::clone(memory),
            id: Identity::new(),
        };
        let mut findings = Vec::new();
        for (name, partial) in &repo.partials {
            let text = repo.sources.get(partial.file).text();
            let source = TemplateSource {
                name,
                origin: TemplateOrigin::File(partial.file),
                text,
                kind: None,
            };
            if let Some(text) = engine.register(&repo.sources, &source, &mut findings) {
                let partial = Partial {
                    number: engine.next_number() - 1,
                    text: text.into_boxed_str(),
                    tree: OnceLock::new(),
                };
                engine.partials.insert(Arc::clone(name), partial);
            }
        }
        engine.check_partials(repo, &mut findings);
        (engine, findings)
    }

    /// Returns a profile's compiled template.
    fn tree(&self, id: TemplateId) -> Arc<eval::Template> {
        let template = &self.templates[id.0 as usize];
        self.memory.ask(
            TreeOf {
                engine: self.id,
                id,
                len: template.text.len(),
            },
            || Arc::new(self.lowered(&template.name, template.number, &template.text)),
        )
    }

    /// Checks and compiles a profile's template string. The same string is compiled only once,
    /// however many profiles inherit it. Returns `None` if the template has findings, now or
    /// earlier.
    pub fn add(
        &mut self,
        repo: &Repo,
        kind: TemplateKind,
        text: &str,
        literal: Span,
        findings: &mut Vec<Diagnostic>,
    ) -> Option<TemplateId> {
        if let Some(&known) = self.by_span.get(&literal) {
            let template = &mut self.templates[known.0 as usize];
            template.uses += 1;
            return template.usable.then_some(known);
        }
        let id =
            TemplateId(u32::try_from(self.templates.len()).expect("fewer than 2^32 templates"));
        let name: Arc<str> = Arc::from(format!("{OF_PROFILE}{}", id.0));
        let source = TemplateSource {
            name: &name,
            origin: TemplateOrigin::Toml(literal),
            text,
            kind: Some(kind),
        };
        let number = self.next_number();
        let text = self.register(&repo.sources, &source, findings);
        if !self.broken.contains(&name) {
            self.check_functions(repo, &name, kind, findings);
            self.check_includes(repo, &name, findings);
        }
        let usable = !self.broken.contains(&name);
        let reads = if usable {
            self.reads_of(&name)
        } else {
            BTreeSet::new()
        };
        let reads_prompt = can_read_prompt(&reads);
        self.templates.push(Template {
            name,
            number,
            text: text.unwrap_or_default().into_boxed_str(),
            reads,
            reads_prompt,
            usable,
            uses: 1,
        });
        self.by_span.insert(literal, id);
        usable.then_some(id)
    }

    /// Removes and returns the reads that always fail when they run. Otherwise, a read that no
    /// context reaches would not be reported.
    pub(crate) fn take_slips(&mut self, repo: &Repo) -> Vec<Diagnostic> {
        self.note_misspelt_variables(&repo.sources);
        self.note_missing_imports(&repo.sources);
        self.note_missing_files(repo);
        std::mem::take(&mut self.slips)
    }

    /// Returns the suggestions for misspelled names in profiles.
    pub(crate) fn suggestions(&mut self) -> &mut Suggestions {
        &mut self.suggestions
    }

    /// Returns the compiled template of a literal, if it was added and has no findings.
    pub fn template(&self, literal: Span) -> Option<TemplateId> {
        self.by_span
            .get(&literal)
            .copied()
            .filter(|id| self.templates[id.0 as usize].usable)
    }

    /// Returns the members of `ctx` that a template reads, including through its includes.
    pub fn reads(&self, id: TemplateId) -> &BTreeSet<String> {
        &self.templates[id.0 as usize].reads
    }

    /// Returns the full names of the partials that a template in a profile includes, directly or
    /// indirectly, whether they exist or not. `literal` is the location of the template's text.
    /// Each name in an include reduces `left` by one. When `left` reaches zero, no further template
    /// is examined.
    pub(crate) fn partials_of(&self, literal: Span, left: &mut usize) -> BTreeSet<Arc<str>> {
        let template = self.by_span.get(&literal).into_iter();
        let mut reached = BTreeSet::new();
        self.follow(
            template
                .map(|id| &self.templates[id.0 as usize].name)
                .collect(),
            &mut |_, analysis| {
                let targets = || analysis.includes.iter().flat_map(|include| &include.names);
                let Some(rest) = left.checked_sub(targets().count()) else {
                    *left = 0;
                    return false;
                };
                *left = rest;
                reached.extend(targets().map(|target| Arc::from(full_name(target))));
                true
            },
        );
        reached
    }

    /// Returns a renderer with limits for conversations of up to `blocks` content blocks.
    pub fn renderer(&self, blocks: usize) -> Renderer<'_> {
        let fuel = BASE_FUEL
            .saturating_add(FUEL_PER_BLOCK.saturating_mul(blocks as u64))
            .min(MAX_FUEL);
        Renderer { engine: self, fuel }
    }

    /// Returns the number of the next template to be registered.
    fn next_number(&self) -> u32 {
        u32::try_from(self.numbered.len()).expect("fewer than 2^32 templates")
    }

    /// Checks one template text and returns the text to evaluate; `None` if it has findings.
    fn register(
        &mut self,
        sources: &Sources,
        template: &TemplateSource<'_>,
        findings: &mut Vec<Diagnostic>,
    ) -> Option<String> {
        self.numbered.push(Arc::clone(template.name));
        self.places
            .insert(Arc::clone(template.name), template.origin);
        if template.is_prompt() {
            self.prompts.insert(Arc::clone(template.name));
        }
        let rewritten = self.rewritten(sources, template, findings)?;
        self.checked(sources, template, &rewritten, findings)
    }

    /// Returns a compiled partial, if it is usable.
    fn partial(&self, name: &str) -> Option<&eval::Template> {
        let partial = self.partials.get(name)?;
        let tree = partial
            .tree
            .get_or_init(|| self.lowered(name, partial.number, &partial.text));
        Some(tree)
    }

    /// Compiles the text of a usable template.
    fn lowered(&self, name: &str, number: u32, text: &str) -> eval::Template {
        let pairs = self
            .analyses
            .get(name)
            .map(|analysis| analysis.pair_loops.as_slice())
            .unwrap_or_default();
        eval::lower(text, self.dialect, number, pairs)
            .expect("a template that is usable was parsed")
    }

    /// Rewrites a template to the engine's spelling; `None` if it is too long or nests too deeply.
    fn rewritten(
        &mut self,
        sources: &Sources,
        template: &TemplateSource<'_>,
        findings: &mut Vec<Diagnostic>,
    ) -> Option<dialect::Rewritten> {
        let &TemplateSource { name, text, .. } = template;
        if text.len() > limits::MAX_TEXT {
            let what = format!("more than {} MiB", limits::MAX_TEXT / (1024 * 1024));
            self.too_long(sources, name, 0..0, &what, findings);
            return None;
        }
        let mut rewritten = dialect::rewrite(text, self.dialect, template.is_prompt());
        debug_assert_eq!(
            rewritten.text.len(),
            text.len(),
            "rewriting keeps every offset"
        );
        if let Some(range) = rewritten.too_deep.take() {
            let span = self.span(sources, name, range);
            let finding = Diagnostic::new(&rules::TOO_DEEP, span, "this expression is too long");
            findings.push(finding.help("store parts of it in variables: `{% set part = … %}`"));
            self.broken.insert(Arc::clone(name));
            return None;
        }
        if let Some((range, what)) = rewritten.too_long.take() {
            self.too_long(sources, name, range, &what, findings);
            return None;
        }
        Some(rewritten)
    }

    /// Analyses a template and reports its mistakes; returns the text to evaluate, or `None` if it
    /// cannot be used.
    fn checked(
        &mut self,
        sources: &Sources,
        template: &TemplateSource<'_>,
        rewritten: &dialect::Rewritten,
        findings: &mut Vec<Diagnostic>,
    ) -> Option<String> {
        let name = template.name;
        let mut analysis = match caught(|| analyse::analyse(&rewritten.text, name)) {
            Ok(Ok(analysis)) => analysis,
            Ok(Err(error)) => {
                findings.push(syntax::finding(
                    self,
                    sources,
                    name,
                    &rewritten.text,
                    &error,
                ));
                self.broken.insert(Arc::clone(name));
                return None;
            }
            Err(panic) => {
                self.lost(sources, name, &panic, findings);
                return None;
            }
        };
        let is_sound = self.check_places(sources, name, &analysis, findings);
        if analysis.namespace_members.len() > limits::MAX_MEMBERS {
            let what = format!("more than {} namespace members", limits::MAX_MEMBERS);
            self.too_long(sources, name, 0..0, &what, findings);
            return None;
        }
        self.assigned.extend(analysis.assigned.iter().cloned());
        if template.is_prompt() {
            self.check_unexpanded(sources, name, &analysis, findings);
            self.note_names(sources, name, &analysis);
        } else {
            self.check_data(
                sources,
                (name, &rewritten.text),
                &analysis.slips_of_data,
                findings,
            );
        }
        findings.extend(dialect::findings(
            rewritten,
            &analysis,
            self.dialect,
            |range| self.span(sources, name, range),
        ));
        analysis.pair_loops.clone_from(&rewritten.pair_loops);
        self.analyses.insert(Arc::clone(name), Box::new(analysis));
        is_sound.then(|| rewritten.text.clone())
    }

    /// Reports mistakes in the use of a conversation's data, whether or not a context reveals them.
    fn check_data(
        &mut self,
        sources: &Sources,
        (name, text): (&str, &str),
        slips: &slips_of_data::DataSlips,
        findings: &mut Vec<Diagnostic>,
    ) {
        let impossible = slips
            .impossible
            .iter()
            .filter(|it| !it.is_of_inja || self.dialect == Dialect::Inja);
        findings.extend(impossible.map(|asked| self.impossible(sources, name, asked)));
        for it in &slips.never_there {
            let span = self.span(sources, name, it.range.clone());
            self.slips
                .extend(errors::never_there(sources, span, it.object));
        }
        for it in &slips.never_equal {
            let span = self.span(sources, name, it.range.clone());
            findings.push(errors::never_equal(span, it));
        }
        let unescaped = slips.unescaped.iter();
        findings.extend(unescaped.map(|it| self.unescaped(sources, name, text, it)));
    }

    /// Records names in a system prompt that do not exist there: `ctx`, and misspelled variables.
    /// These are reported even if no context reaches them.
    fn note_names(&mut self, sources: &Sources, name: &str, analysis: &Analysis) {
        let known = prompt::VARIABLES;
        for (read, range) in &analysis.variables {
            let is_slip = !known.contains(&read.as_str())
                && (read == "ctx" || !nearest(read, known).is_empty());
            if is_slip && !analysis.assigned.contains(read) {
                let span = self.span(sources, name, range.clone());
                let slip = errors::no_variable(sources, span, TemplateKind::Prompt);
                self.slips.push(slip);
            }
        }
    }

    /// Returns the finding for a guard that tests a member that cannot exist.
    fn impossible(
        &self,
        sources: &Sources,
        name: &str,
        asked: &slips_of_data::Impossible,
    ) -> Diagnostic {
        let slips_of_data::Impossible {
            range,
            object,
            member,
            is_guess,
            ..
        } = asked;
        let what = match *object {
            "ctx" => "`ctx` has".to_owned(),
            object => format!("no {object} has"),
        };
        let no = if *object == "ctx" { "no " } else { "" };
        let message = format!(
            "{what} {no}`{}`, and this guard hides the mistake",
            crate::text::cut(member, 60)
        );
        let finding = Diagnostic::new(
            &rules::IMPOSSIBLE_MEMBER,
            self.span(sources, name, range.clone()),
            message,
        );
        let finding = finding.help(errors::slip_help(member, object));
        if *is_guess {
            finding.at_most(Severity::Warning)
        } else {
            finding
        }
    }

    /// Returns the finding for a value that is written unescaped between quotes.
    fn unescaped(
        &self,
        sources: &Sources,
        name: &str,
        text: &str,
        it: &slips_of_data::Unescaped,
    ) -> Diagnostic {
        // The engine's range for a chain begins after the chain's last index.
        let start = text[..it.range.start]
            .rfind("{{")
            .map_or(it.range.start, |at| at + "{{".len());
        let end = text[it.range.end..]
            .find("}}")
            .map_or(it.range.end, |at| it.range.end + at);
        let inner = text[start..end].trim_matches('-').trim();
        let from = start + text[start..end].find(inner).unwrap_or_default();
        let range = from..from + inner.len();
        let written = crate::text::cut(inner, 60);
        let message = format!("a quote in `{written}` would end the surrounding string");
        let finding = Diagnostic::new(&rules::UNESCAPED, self.span(sources, name, range), message);
        let finding = finding.label("`say \"hi\"` becomes `\"say \"hi\"\"`, which is not JSON");
        let finding = finding.help(match it.is_alone {
            true => format!("write `{{{{ tojson({written}) }}}}` instead of the quotes and the text between them"),
            false => format!("build the whole string first, and encode it once: `{{{{ tojson(\"…\" ~ {written} ~ \"…\") }}}}`, without quotes around it"),
        });
        if it.is_free && !it.is_guess {
            finding
        } else {
            finding.at_most(Severity::Warning)
        }
    }

    /// Returns the purpose of a profile's template.
    fn kind_of(&self, name: &str) -> TemplateKind {
        match self.prompts.contains(name) {
            true => TemplateKind::Prompt,
            false => TemplateKind::Body,
        }
    }

    /// Reports folder variables in strings that a prompt's expressions print.
    fn check_unexpanded(
        &self,
        sources: &Sources,
        name: &str,
        analysis: &Analysis,
        findings: &mut Vec<Diagnostic>,
    ) {
        for range in &analysis.unexpanded.printed {
            let span = self.span(sources, name, range.clone());
            let message =
                "this variable is never expanded, because it is in a string inside an expression";
            let finding = Diagnostic::new(&rules::UNEXPANDED, span, message);
            findings
                .push(finding.help("write the variable outside `{{ }}`, in the prompt's own text"));
        }
    }

    fn too_long(
        &mut self,
        sources: &Sources,
        name: &Arc<str>,
        range: Range<usize>,
        what: &str,
        findings: &mut Vec<Diagnostic>,
    ) {
        let span = self.span(sources, name, range);
        let finding = Diagnostic::new(&rules::TOO_LONG, span, format!("the template has {what}"));
        findings.push(
            finding.help("split it: move parts into partials, which several templates can share"),
        );
        self.broken.insert(Arc::clone(name));
    }

    /// Reports a template that made this program panic.
    fn lost(
        &mut self,
        sources: &Sources,
        name: &Arc<str>,
        panic: &Panic,
        findings: &mut Vec<Diagnostic>,
    ) {
        findings.push(panic.finding("this template", self.span(sources, name, 0..0)));
        self.broken.insert(Arc::clone(name));
    }

    /// Converts a range in a template's text to a location in a file.
    fn span(&self, sources: &Sources, name: &str, range: Range<usize>) -> Span {
        match self.places.get(name) {
            Some(TemplateOrigin::File(file)) => Span::new(*file, range),
            Some(TemplateOrigin::Toml(literal)) => {
                let map = self.memory.ask(MapOf(self.id, *literal), || {
                    Arc::new(toml::decode_map(
                        sources.slice(*literal),
                        literal.start as usize,
                    ))
                });
                Span::new(literal.file, map.to_source_range(range))
            }
            None => unreachable!("every template is registered with its place"),
        }
    }

    /// Converts a location in a template to a location in a file.
    fn place_span(&self, sources: &Sources, place: Place) -> Span {
        self.span(
            sources,
            &self.numbered[place.template as usize],
            place.range(),
        )
    }

    /// Visits templates and all their includes, each once, until `visit` returns `false`.
    fn follow<'e>(
        &'e self,
        names: Vec<&'e Arc<str>>,
        visit: &mut impl FnMut(&'e Arc<str>, &'e Analysis) -> bool,
    ) {
        let (mut seen, mut pending) = (HashSet::default(), names);
        while let Some(name) = pending.pop() {
            let Some(analysis) = self.analyses.get(name).filter(|_| seen.insert(name)) else {
                continue;
            };
            if !visit(name, analysis) {
                return;
            }
            let targets = analysis.includes.iter().flat_map(|include| &include.names);
            pending.extend(
                targets.filter_map(|target| self.partial_names.get(full_name(target).as_ref())),
            );
        }
    }

    fn reads_of(&self, name: &Arc<str>) -> BTreeSet<String> {
        let Some(analysis) = self.analyses.get(name) else {
            return BTreeSet::new();
        };
        let mut reads = analysis.reads.clone();
        let targets = analysis.includes.iter().flat_map(|include| &include.names);
        let included: BTreeSet<Arc<str>> = targets
            .filter_map(|target| self.partial_names.get(full_name(target).as_ref()))
            .cloned()
            .collect();
        for partial in included {
            reads.extend(
                self.reads_of_partials
                    .get(&partial)
                    .into_iter()
                    .flatten()
                    .cloned(),
            );
        }
        reads
    }
}

/// An [`Engine`] with limits for conversations up to a given size.
pub struct Renderer<'e> {
    engine: &'e Engine,
    /// The maximum number of steps for a template.
    fuel: u64,
}

/// The output of a template, and its cost.
pub struct Rendered {
    /// The text with its writers.
    ///
    /// # Errors
    ///
    /// Returns the error at its line.
    pub(crate) output: Result<Recording, Box<Diagnostic>>,
    /// The cost in units of work, the same on every machine.
    pub cost: u64,
    /// The part of the cost that the steps account for, regardless of the data that they process.
    pub steps: u64,
}

/// The input of a body template.
pub struct BodyInput<'a> {
    /// The conversation that templates read as `ctx`.
    pub context: &'a ContextData,
    /// The rendered system prompt, if it is not blank.
    pub system_prompt: Option<&'a str>,
    /// The wire format's rule for tool IDs.
    pub ids: IdRule,
    /// The permission to cache output for other agents; `None` if nothing may be cached.
    pub(crate) keep: Option<Keep>,
}

impl BodyInput<'_> {
    /// Returns the variables for a body template.
    fn variables(&self) -> Vec<(Arc<str>, Value)> {
        let ctx = self.context.with_system_prompt(self.system_prompt);
        vec![
            (Arc::from("ctx"), ctx),
            (Arc::from("tool_id"), self.ids.function()),
        ]
    }
}

impl Renderer<'_> {
    /// Returns `true` if several agents use a template.
    pub(crate) fn is_shared(&self, id: TemplateId) -> bool {
        self.engine.templates[id.0 as usize].uses > 1
    }

    /// Returns `true` if a template may read the system prompt.
    pub(crate) fn reads_prompt(&self, id: TemplateId) -> bool {
        self.engine.templates[id.0 as usize].reads_prompt
    }

    /// Returns the maximum cost of a template's steps, in units.
    pub(crate) fn most_for_steps(&self) -> u64 {
        self.fuel * account::STEP
    }

    /// Renders a body template.
    pub fn body(&self, sources: &Sources, id: TemplateId, input: &BodyInput<'_>) -> Rendered {
        let library = BodyLibrary {
            engine: self.engine,
            input,
            // The output of a template that several agents share is cached as a whole.
            keep: input.keep.filter(|_| !self.is_shared(id)),
            fuel: self.fuel,
            left_out: LeftOut::default(),
        };
        let watch = (Steps::at_most(self.fuel), &library.left_out);
        let (output, spent) = self.run(id, &library, input.variables(), watch);
        if library.left_out.was_asked_for() {
            let alone = BodyInput {
                keep: None,
                ..*input
            };
            return self.body(sources, id, &alone);
        }
        let steps = output.watch.0.taken();
        self.rendered(sources, id, steps, output, spent)
    }

    /// Renders a body template with a placeholder for the system prompt. Also returns `true` if the
    /// template examines the prompt instead of just passing it on.
    pub(crate) fn hollow_body(
        &self,
        sources: &Sources,
        id: TemplateId,
        input: &BodyInput<'_>,
        placeholder: &memmem::Finder<'_>,
    ) -> (Rendered, bool) {
        let watch = (Steps::at_most(self.fuel), Hole::new(placeholder));
        let (output, spent) = self.run(id, self.engine, input.variables(), watch);
        let (steps, is_looked_at) = (output.watch.0.taken(), output.watch.1.was_looked_at());
        let rendered = self.rendered(sources, id, steps, output, spent);
        (rendered, is_looked_at)
    }

    /// Renders a system prompt. Also returns `true` if the result does not depend on the context,
    /// given enough steps. In that case, the prompt read no conversation setting, folder or file.
    pub fn prompt(
        &self,
        sources: &Sources,
        id: TemplateId,
        scope: &Arc<PromptScope>,
    ) -> (Rendered, bool) {
        let variables = scope.variables(self.engine.dialect);
        let watch = (Steps::at_most(self.fuel), Asked::default());
        let (output, spent) = self.run(id, self.engine, variables, watch);
        let (steps, asked) = (output.watch.0.taken(), &output.watch.1);
        let differs = asked.names.iter().any(|name| prompt::differs(name));
        (self.rendered(sources, id, steps, output, spent), !differs)
    }

    /// Returns the writers of a range in a template's output.
    pub(crate) fn written(
        &self,
        sources: &Sources,
        recording: &Recording,
        range: Range<usize>,
    ) -> Vec<Written> {
        recording.written(self.engine, sources, range)
    }

    /// Returns the tags of the branches and loops that a template entered.
    pub(crate) fn branches(&self, sources: &Sources, recording: &Recording) -> Vec<Span> {
        recording.branches(self.engine, sources)
    }

    /// Returns the tag in a range of a template's output that wrote nothing, if there is one.
    pub(crate) fn empty_tag(
        &self,
        sources: &Sources,
        recording: &Recording,
        range: &Range<usize>,
    ) -> Option<Span> {
        recording.empty_tag(self.engine, sources, range)
    }

    /// Returns the macro call that wrote text rather than JSON before a byte of the output, with
    /// the offset where the call's output begins.
    pub(crate) fn call_for_text(
        &self,
        sources: &Sources,
        recording: &Recording,
        at: usize,
    ) -> Option<(usize, Span)> {
        recording.call_for_text(self.engine, sources, at)
    }

    /// Evaluates a template; also returns the units of work spent, excluding steps and output.
    fn run<W: Watch>(
        &self,
        id: TemplateId,
        library: &dyn eval::Library,
        data: Vec<(Arc<str>, Value)>,
        watch: W,
    ) -> (Output<W>, u64) {
        let tree = self.engine.tree(id);
        let input = Input {
            library,
            globals: &self.engine.globals,
            data,
            most: MAX_OUTPUT,
            depth: 0,
        };
        account::metered(|| eval::run(&tree, input, self.engine.environment.empty_state(), watch))
    }

    /// Returns the output of a template with its cost.
    fn rendered<W>(
        &self,
        sources: &Sources,
        id: TemplateId,
        steps: u64,
        output: Output<W>,
        spent: u64,
    ) -> Rendered {
        let Output {
            written, outcome, ..
        } = output;
        let steps = steps * account::STEP;
        let cost = spent + 2 * written.rope.text.len() as u64 + steps;
        let Template { name, number, .. } = &self.engine.templates[id.0 as usize];
        let kind = self.engine.kind_of(name);
        let output = outcome
            .map(|()| Recording::new(written, *number))
            .map_err(|failure| Box::new(errors::runtime(self.engine, sources, kind, &failure)));
        Rendered {
            output,
            cost,
            steps,
        }
    }
}

/// Returns `true` if the system prompt is among the members of `ctx` that are read.
fn can_read_prompt(reads: &BTreeSet<String>) -> bool {
    reads.contains("system_prompt") || reads.contains(ALL_OF_CTX)
}
