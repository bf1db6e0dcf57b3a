//! The output of one template in a body, and the mistakes in it.

use std::ops::Range;
use std::sync::Arc;

use super::costed::{Costed, HOLDER};
use super::excerpt::{self, Excerpt};
use super::fix;
use super::members::{Member, Shared};
use super::prompt::{SystemPrompt, placeholder};
use super::request::Request;
use super::rules;
use crate::diag::{Diagnostic, Edit, Label, Rule};
use crate::json::{self, JsonError, Pointer, Problem};
use crate::memory::{Identity, Memory, Question};
use crate::render::{
    ACCOUNT_LIMIT, BodyInput, By, ComputedFrom, IdRule, MAX_OUTPUT, Recording, Rendered, Renderer,
    TemplateId, Written, rules as render_rules,
};
use crate::source::{Sources, Span};

/// The units charged for each JSON value in a template's output, because a value takes more memory
/// than its text.
const VALUE: u64 = 256;
/// The cost factor for a template whose output is not JSON. Such output costs more, because the
/// writers of its text must be found.
const EXPLAINED: u64 = 9;

/// A renderer for the templates of a body.
pub(super) struct Fragments<'a> {
    pub(super) sources: &'a Sources,
    pub(super) renderer: &'a Renderer<'a>,
    pub(super) request: &'a Request<'a>,
    pub(super) input: &'a BodyInput<'a>,
}

/// The output of one template: a value, nothing, or a finding.
pub(super) type Fragment<V> = Costed<Result<Option<Output<V>>, Box<Diagnostic>>>;

/// A value that a template wrote.
#[derive(Debug, Clone)]
pub(super) struct Output<V> {
    pub(super) value: V,
    /// The text without trailing commas, with its writers.
    pub(super) recording: Arc<Recording>,
    /// `true` if the placeholder represents the system prompt.
    pub(super) is_hollow: bool,
}

impl<V> Output<V> {
    /// Returns the output with a different form of the value.
    pub(super) fn map<U>(self, change: impl FnOnce(V) -> U) -> Output<U> {
        Output {
            value: change(self.value),
            recording: self.recording,
            is_hollow: self.is_hollow,
        }
    }
}

/// A fragment that several bodies share.
type SharedFragment = Fragment<Arc<Shared>>;

/// A [`Question`] about a template's output, with everything that it depends on.
#[derive(PartialEq, Eq, Hash, Clone)]
pub(super) struct FragmentOf {
    pub(super) template: TemplateId,
    pub(super) ids: IdRule,
    /// The template data.
    pub(super) data: Identity,
    /// The system prompt, if the template can see it.
    pub(super) system_prompt: Option<SystemPrompt>,
}

impl FragmentOf {
    /// Returns the approximate size of the question in bytes.
    pub(super) fn weight(&self) -> usize {
        4 * HOLDER + self.system_prompt.as_ref().map_or(0, SystemPrompt::weight)
    }
}

impl Question for FragmentOf {
    type Answer = SharedFragment;

    fn weight(&self, answer: &SharedFragment) -> usize {
        FragmentOf::weight(self)
            + answer
                .result
                .iter()
                .flatten()
                .map(Output::weight)
                .sum::<usize>()
    }
}

/// A [`Question`] about a template's output for any system prompt. The output contains the
/// placeholder.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct HollowOf(pub(super) FragmentOf);

impl Question for HollowOf {
    type Answer = Costed<Measured>;

    fn weight(&self, answer: &Costed<Measured>) -> usize {
        match &answer.result.hollow {
            Hollow::Value(Some(output)) => 4 * HOLDER + output.weight(),
            _ => 4 * HOLDER,
        }
    }
}

/// The output of a template for any system prompt.
#[derive(Debug, Clone)]
pub(super) enum Hollow {
    /// A value with holes in place of the prompt; `None` if there is no output.
    Value(Option<Output<Arc<Shared>>>),
    /// A finding that does not depend on the prompt.
    Finding(Box<Diagnostic>),
    /// The output is unknown, so the template must be rendered for each prompt.
    Unknown,
}

/// The prompt-independent output of a template, with the cost of rendering it for a prompt.
#[derive(Debug, Clone)]
pub(super) struct Measured {
    pub(super) hollow: Hollow,
    /// The units spent regardless of the prompt's length.
    fixed: u64,
    /// The units that grow at most in proportion to the prompt.
    growing: u64,
}

impl Measured {
    /// Returns the maximum cost in units of rendering the template for a prompt; `None` if
    /// rendering could exceed one of the renderer's limits.
    pub(super) fn most(&self, prompt_len: usize) -> Option<u64> {
        /// The largest estimate that [`json::count_values`] returns for a string without counting
        /// its values.
        const UNCOUNTED: u64 = 10_000;
        let times = prompt_len.div_ceil(placeholder().as_str().len()).max(1) as u64;
        let growing = self.growing.saturating_mul(times);
        // Each output byte costs two units, so this bounds every text in the template by the
        // largest permitted output.
        let fits = growing <= 2 * MAX_OUTPUT as u64;
        fits.then(|| {
            growing
                .saturating_add(self.fixed)
                .saturating_add(UNCOUNTED * VALUE)
        })
    }
}

impl Output<Arc<Shared>> {
    /// Returns the approximate size in bytes.
    fn weight(&self) -> usize {
        self.value.weight() + self.recording.weight()
    }
}

impl Fragments<'_> {
    /// Returns a template's output for this request, as a value that several bodies can share.
    pub(super) fn shared(
        &self,
        memory: &Memory,
        template: TemplateId,
        literal: Span,
        at: &Pointer,
    ) -> SharedFragment {
        self.make(template, literal, at, |text| {
            Shared::of(text, memory, Shared::new)
        })
    }

    /// Returns the output of a template that only this agent uses. Other templates may produce the
    /// same value.
    pub(super) fn own(
        &self,
        template: TemplateId,
        literal: Span,
        at: &Pointer,
    ) -> Fragment<Member> {
        self.make(template, literal, at, |text| match self.request.memory {
            Some(memory) => Shared::of(text, memory, Shared::new).map(Member::Shared),
            None => json::parse(text).map(Member::Own),
        })
    }

    fn make<V>(
        &self,
        template: TemplateId,
        literal: Span,
        at: &Pointer,
        read: impl FnOnce(&Arc<str>) -> Result<V, JsonError>,
    ) -> Fragment<V> {
        let Rendered { output, cost, .. } = self.renderer.body(self.sources, template, self.input);
        let recording = match output {
            Ok(recording) if recording.text().trim().is_empty() => {
                return Costed {
                    result: Ok(None),
                    cost,
                };
            }
            Ok(recording) => recording,
            Err(finding) => {
                return Costed {
                    result: Err(finding),
                    cost,
                };
            }
        };
        let rendered = recording.text();
        let cost = cost.saturating_add(VALUE.saturating_mul(json::count_values(rendered) as u64));
        if cost > ACCOUNT_LIMIT {
            return Costed {
                result: Err(Box::new(too_much_work(literal))),
                cost,
            };
        }
        let text: Arc<str> = json::blank_trailing_commas(rendered.to_owned()).into();
        let recording = recording.with_text(Arc::clone(&text));
        match read(&text) {
            Ok(value) => Costed {
                result: Ok(Some(Output {
                    value,
                    recording: Arc::new(recording),
                    is_hollow: false,
                })),
                cost,
            },
            Err(error) => {
                let finding = self.not_json(&recording, literal, at, &text, &error);
                Costed {
                    result: Err(Box::new(finding)),
                    cost: cost.saturating_mul(EXPLAINED),
                }
            }
        }
    }

    /// Returns a template's output for any system prompt, rendered with the placeholder.
    pub(super) fn hollow(
        &self,
        template: TemplateId,
        literal: Span,
        at: &Pointer,
    ) -> Costed<Measured> {
        let mark = placeholder().mark_finder();
        let (rendered, is_looked_at) =
            self.renderer
                .hollow_body(self.sources, template, self.input, mark);
        let Rendered {
            output,
            cost,
            steps,
        } = rendered;
        let (mut fixed, growing) = (steps, cost.saturating_sub(steps));
        let hollow = match output {
            _ if is_looked_at => Hollow::Unknown,
            Ok(recording) if recording.text().trim().is_empty() => Hollow::Value(None),
            Ok(recording) => {
                let values = json::count_values(recording.text()) as u64;
                fixed = fixed.saturating_add(VALUE.saturating_mul(values));
                match fixed.saturating_add(growing) > ACCOUNT_LIMIT {
                    true => Hollow::Unknown,
                    false => self.parsed_hollow(literal, at, recording),
                }
            }
            Err(finding) => with_finding(finding),
        };
        let charged = match &hollow {
            Hollow::Finding(finding) if finding.rule.code.starts_with("json/") => EXPLAINED,
            _ => 1,
        };
        let cost = fixed.saturating_add(growing).saturating_mul(charged);
        Costed {
            result: Measured {
                hollow,
                fixed,
                growing,
            },
            cost,
        }
    }

    fn parsed_hollow(&self, literal: Span, at: &Pointer, recording: Recording) -> Hollow {
        let written = placeholder().found_in(recording.text());
        let text: Arc<str> = json::blank_trailing_commas(recording.text().to_owned()).into();
        let recording = recording.with_text(Arc::clone(&text));
        let shared = match self.request.memory {
            Some(memory) => Shared::of(&text, memory, Shared::hollow),
            None => json::parse(&text).map(|value| Arc::new(Shared::hollow(value))),
        };
        match shared {
            // A placeholder in a key, or escaped differently, is not a hole.
            Ok(value) if value.holes() == written.len() => Hollow::Value(Some(Output {
                value,
                recording: Arc::new(recording),
                is_hollow: true,
            })),
            Err(error) if is_apart(&written, &error) => with_finding(Box::new(
                self.not_json(&recording, literal, at, &text, &error),
            )),
            Ok(_) | Err(_) => Hollow::Unknown,
        }
    }

    /// Returns the finding for text that is not JSON. The prompt's own writers do not matter,
    /// because the template that inserts a prompt must convert it to JSON, regardless of its
    /// content.
    fn not_json(
        &self,
        recording: &Recording,
        literal: Span,
        at: &Pointer,
        text: &str,
        error: &JsonError,
    ) -> Diagnostic {
        let place = |range: &Range<usize>| self.written(recording, range);
        let found = place(&error.range);
        let bare = self.bare_value(recording, found.as_ref(), text, error);
        let (rule, span, help) = match bare {
            Some((span, help)) => (&rules::UNQUOTED, span, Some(help)),
            None => {
                let span = found.as_ref().map_or(literal, Written::statement);
                (rule(&error.problem), span, error.problem.help())
            }
        };
        // If a value contains a quote, the text after the quote looks as if it followed the string.
        let what = match help.is_some_and(|help| {
            help == WITH_QUOTES && rule == &rules::UNQUOTED && self::rule(&error.problem) != rule
        }) {
            true => "a quote in this value ends the surrounding string".to_owned(),
            false => error.problem.message(),
        };
        let message = format!("`{at}` is not valid JSON: {what}");
        let mut finding = Diagnostic::new(rule, span, message)
            .label(Excerpt::new(text, &error.range).to_string());
        let mut relate = |range: &Range<usize>, what: &str| {
            let span = place(range).map_or(literal, |found| found.span);
            finding.related.push(Label {
                span,
                message: what.to_owned(),
            });
        };
        if let Problem::DuplicateKey(_, first) = &error.problem {
            relate(first, "first here");
        }
        if let Some(met) = &error.met {
            relate(met, &format!("`{}` is here", &text[met.clone()]));
        }
        for step in found
            .iter()
            .flat_map(|found| &found.steps)
            .filter(|step| step.span != span)
        {
            finding = finding.related(step.span, step.kind.phrase());
        }
        if !literal.contains(span)
            && !found
                .iter()
                .flat_map(|found| &found.steps)
                .any(|step| literal.contains(step.span))
        {
            finding = finding.related(literal, "rendered for this value");
        }
        finding
            .maybe_help(help.map(str::to_owned))
            .maybe_fix(self.fix(recording, text, error, bare))
    }

    /// Returns the edit that repairs invalid JSON if the template's own text or a single tag caused
    /// it.
    fn fix(
        &self,
        recording: &Recording,
        text: &str,
        error: &JsonError,
        bare: Option<(Span, &'static str)>,
    ) -> Option<Edit> {
        if let Some((tag, help)) = bare {
            return fix::as_json(self.sources, tag, help == WITH_QUOTES);
        }
        let literal = |range: &Range<usize>| {
            let found = self
                .written(recording, range)
                .filter(|found| found.by == By::Template)?;
            (self.sources.slice(found.span) == &text[range.clone()]).then_some(found.span)
        };
        let (range, comma) = error.comma()?;
        if !range.is_empty() {
            return Some(Edit::new(literal(&range)?, comma));
        }
        // The edit goes after the text that wrote the previous value.
        let last = text[..range.start].char_indices().next_back()?.0..range.start;
        let after = literal(&last).or_else(|| self.written(recording, &last)?.tag)?;
        Some(Edit::new(
            Span {
                start: after.end,
                ..after
            },
            comma,
        ))
    }

    /// Returns the writer of a range's first byte, or of the output's last byte.
    fn written(&self, recording: &Recording, range: &Range<usize>) -> Option<Written> {
        let len = recording.text().len();
        let start = range.start.min(len.saturating_sub(1));
        let end = range.end.clamp((start + 1).min(len), len);
        self.renderer
            .written(self.sources, recording, start..end)
            .into_iter()
            .next()
    }

    /// Returns the tag whose value breaks the surrounding JSON, and the fix. Parsing fails inside
    /// this value, or the value is empty.
    fn bare_value(
        &self,
        recording: &Recording,
        found: Option<&Written>,
        text: &str,
        error: &JsonError,
    ) -> Option<(Span, &'static str)> {
        if error.problem == Problem::MissingValue {
            let gap = text[..error.range.start].trim_end().len()..error.range.start;
            let span = self.renderer.empty_tag(self.sources, recording, &gap)?;
            return Some((span, WITHOUT_QUOTES));
        }
        let help = |start: usize| {
            if text[..start].ends_with('"') {
                WITH_QUOTES
            } else {
                WITHOUT_QUOTES
            }
        };
        if rule(&error.problem) == &rules::UNQUOTED
            && let Some((start, call)) =
                self.renderer
                    .call_for_text(self.sources, recording, error.range.start)
        {
            return Some((call, help(start)));
        }
        let found = found?;
        let value = found.value.clone()?;
        let (start, help) = (value.start, help(value.start));
        // A JSON string that is put into another string ends that string with its first quote.
        let is_quoted_twice =
            error.problem == Problem::MissingComma && text[start..].starts_with('"');
        let is_first = error.range.start == start
            && help == WITH_QUOTES
            && (is_quoted_twice || is_in_string(&error.problem));
        let is_inside = error.range.start > start || is_first;
        // A value that is valid JSON on its own is not the cause: the text around it is.
        let is_right = || {
            help == WITHOUT_QUOTES
                && text
                    .get(value)
                    .is_some_and(|value| json::parse(value).is_ok())
        };
        let is_text = rule(&error.problem) == &rules::UNQUOTED || !is_made_of_templates(&found.by);
        (is_inside && is_text && !is_right()).then_some((found.tag?, help))
    }
}

/// Returns `true` if a computed value contains template text, which may be hand-written JSON that
/// was then altered.
fn is_made_of_templates(by: &By) -> bool {
    matches!(by, By::Computed(from) if from.iter().any(is_template))
}

fn is_template(from: &ComputedFrom) -> bool {
    matches!(from, ComputedFrom::Template(_))
}

/// Returns `true` if a problem can only occur inside a string.
fn is_in_string(problem: &Problem) -> bool {
    matches!(
        problem,
        Problem::ControlCharacter(_) | Problem::BadEscape | Problem::LoneSurrogate
    )
}

const WITHOUT_QUOTES: &str = "write `{{ tojson(value) }}`, which quotes and escapes it";
const WITH_QUOTES: &str = "write `{{ tojson(value) }}` instead of the value and its quotes: it quotes and escapes the value";

/// Returns `true` if a mistake does not depend on the prompt: the text before it parses as JSON,
/// and neither the mistake's ranges nor the excerpts shown with it touch a placeholder.
fn is_apart(written: &[usize], error: &JsonError) -> bool {
    let first = match &error.problem {
        Problem::DuplicateKey(_, first) => Some(first),
        _ => None,
    };
    let mut ranges = [Some(&error.range), first, error.met.as_ref()]
        .into_iter()
        .flatten();
    let holds = |range: &Range<usize>| placeholder().is_in(range, written);
    !ranges.any(|range| holds(range) || holds(&excerpt::shown(range)))
}

/// Returns the output for a finding about a template that was rendered with the placeholder.
fn with_finding(finding: Box<Diagnostic>) -> Hollow {
    let is_about_size =
        finding.rule == &render_rules::TOO_MUCH_WORK || finding.rule == &render_rules::TOO_LARGE;
    match is_about_size || shows_placeholder(&finding) {
        true => Hollow::Unknown,
        false => Hollow::Finding(finding),
    }
}

fn shows_placeholder(finding: &Diagnostic) -> bool {
    let labels = finding
        .related
        .iter()
        .chain([&finding.primary])
        .map(|label| &label.message);
    let mut texts = labels.chain([&finding.message]).chain(&finding.help);
    texts.any(|text| placeholder().mark_finder().find(text.as_bytes()).is_some())
}

fn rule(problem: &Problem) -> &'static Rule {
    match problem {
        Problem::Unquoted(_)
        | Problem::UnterminatedString
        | Problem::ControlCharacter(_)
        | Problem::BadEscape
        | Problem::LoneSurrogate => &rules::UNQUOTED,
        Problem::SecondValue => &rules::TWO_VALUES,
        Problem::DuplicateKey(..) => &rules::DUPLICATE_KEY,
        Problem::BadNumber | Problem::NumberOutOfRange => &rules::NUMBER,
        Problem::TooDeep => &rules::TOO_DEEP,
        _ => &rules::SYNTAX,
    }
}

/// Returns the finding for a body whose templates together exceed the limit, at the template that
/// exceeds it.
pub(super) fn too_much_work(literal: Span) -> Diagnostic {
    let message = "the templates of this body process too much data in total";
    let finding = Diagnostic::new(&render_rules::TOO_MUCH_WORK, literal, message);
    finding.help(
        "look for templates that repeatedly copy, join, compare or search long strings or lists",
    )
}
