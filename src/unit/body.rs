//! Rendering and assembling one body.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use super::members::{Member, MemberRef, Members};
use super::memo::{Costed, Fragment, FragmentKey, Prompt};
use super::plan::{Part, Plan, Target};
use super::prompt::SystemPrompt;
use super::{Request, rules};
use crate::diag::{Diagnostic, Rule};
use crate::json::{self, JsonError, Pointer, Problem};
use crate::provider::tool_definitions;
use crate::render::{ACCOUNT_LIMIT, BodyInput, Rendered, Renderer, TemplateId, rules as render_rules};
use crate::source::{Sources, Span};

/// A request body, exactly as it is sent.
#[derive(Debug, Clone)]
pub struct Body {
    members: Members,
    /// The members as one value, if it was asked for.
    value: OnceLock<Value>,
    splices: Vec<Splice>,
}

/// A value of a body that a template rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splice {
    /// Where in the body.
    pub pointer: Pointer,
    /// The template's literal in its TOML file.
    pub literal: Span,
    /// The template.
    pub template: TemplateId,
}

impl Body {
    /// The body as a value.
    pub fn value(&self) -> &Value {
        self.value.get_or_init(|| self.members.to_value())
    }

    /// The members in order.
    pub(crate) fn members(&self) -> impl Iterator<Item = MemberRef<'_>> {
        self.members.iter().map(|(name, member)| MemberRef { name, value: member.value(), accepted: member.accepted() })
    }

    /// What templates rendered, in order of the body.
    pub fn splices(&self) -> &[Splice] {
        &self.splices
    }

    /// The body as it goes over the wire.
    pub fn compact(&self) -> String {
        self.value().to_string()
    }

    /// The body as golden files hold it: two spaces of indentation and a final newline.
    pub fn pretty(&self) -> String {
        let mut text = self.members.pretty();
        text.push('\n');
        text
    }
}

impl PartialEq for Body {
    fn eq(&self, other: &Body) -> bool {
        self.value() == other.value() && self.splices == other.splices
    }
}

impl Plan<'_> {
    /// Makes the body of one request.
    ///
    /// # Errors
    ///
    /// Everything that goes wrong in templates and their output, one finding per template.
    pub fn body(
        &self,
        sources: &Sources,
        renderer: &Renderer<'_>,
        request: &Request<'_>,
    ) -> Result<Body, Vec<Diagnostic>> {
        self.made(sources, renderer, request).body
    }

    /// The same, with what it cost.
    pub(crate) fn made(&self, sources: &Sources, renderer: &Renderer<'_>, request: &Request<'_>) -> Made {
        let Costed { result: prompt, cost } = self.prompt(sources, renderer, request);
        let system_prompt = match prompt {
            Ok(prompt) => prompt,
            Err(finding) => return Made { body: Err(vec![*finding]), cost },
        };
        let input = self.input(request, system_prompt.as_ref());
        let mut assembly = Assembly {
            plan: self,
            sources,
            renderer,
            request,
            input: &input,
            system_prompt: system_prompt.as_ref(),
            splices: Vec::new(),
            findings: Vec::new(),
            cost,
        };
        let members = assembly.members(&self.body);
        let (findings, splices, cost) = (assembly.findings, assembly.splices, assembly.cost);
        let body = match findings.is_empty() {
            true => Ok(self.complete(members, splices, request)),
            false => Err(findings),
        };
        Made { body, cost }
    }

    /// The steps behind the templates.
    fn complete(&self, mut members: Members, splices: Vec<Splice>, request: &Request<'_>) -> Body {
        if let Some(tools) = self.tools(request) {
            members.push(Arc::from("tools"), tools);
        }
        if let Some(cache) = &self.cache {
            members.add_cache_control(cache);
        }
        if self.wire.has_model_in_body() {
            members.push_front(Arc::from("model"), Member::Own(self.model(request.model).into()));
        }
        Body { members, value: OnceLock::new(), splices }
    }

    /// The tool definitions, as the body's last member; `None` if there are none.
    fn tools(&self, request: &Request<'_>) -> Option<Member> {
        let make = || tool_definitions(self.wire, &request.conversation.tools);
        match request.memo.filter(|_| self.with_tools) {
            Some(memo) => memo.tools(self.wire, make).map(Member::Shared),
            None if self.with_tools => make().map(Member::Own),
            None => None,
        }
    }
}

impl Plan<'_> {
    /// The whole system prompt of a request; `None` if it is blank.
    ///
    /// # Errors
    ///
    /// What went wrong in the template.
    pub fn system_prompt(
        &self,
        sources: &Sources,
        renderer: &Renderer<'_>,
        request: &Request<'_>,
    ) -> Result<Option<SystemPrompt>, Box<Diagnostic>> {
        self.prompt(sources, renderer, request).result
    }

    fn prompt(&self, sources: &Sources, renderer: &Renderer<'_>, request: &Request<'_>) -> Prompt {
        let conversation = &request.conversation.conversation;
        let template = self.prompt.filter(|_| !conversation.omit_system_prompt);
        let whole = |own: Option<&str>| conversation.system_prompt(own).map(SystemPrompt::new);
        let render = || match template {
            None => Costed { result: Ok(whole(None)), cost: 0 },
            Some(template) => {
                let Rendered { text, cost } = renderer.prompt(sources, template, request.scope);
                Costed { result: text.map(|own| whole(Some(&own))), cost }
            }
        };
        match request.memo.filter(|_| template.is_none_or(|template| renderer.is_shared(template))) {
            Some(memo) => memo.prompt(template, self.profile.profile.layer, render),
            None => render(),
        }
    }

    fn input<'a>(&self, request: &'a Request<'_>, system_prompt: Option<&'a SystemPrompt>) -> BodyInput<'a> {
        let system_prompt = system_prompt.map(SystemPrompt::as_str);
        BodyInput { context: request.conversation.data(self.api), system_prompt, ids: self.wire.ids() }
    }

    /// Where the value at a pointer of one body is written: as [`Plan::origin`], but inside of what a template
    /// rendered down to the template's text or tag. Renders again: for a few pointers, not for all.
    pub fn trace(
        &self,
        sources: &Sources,
        renderer: &Renderer<'_>,
        request: &Request<'_>,
        body: &Body,
        pointer: &Pointer,
        target: Target,
    ) -> Span {
        self.traced(sources, renderer, request, body, pointer, target).0
    }

    /// The same, with what it cost.
    pub(crate) fn traced(
        &self,
        sources: &Sources,
        renderer: &Renderer<'_>,
        request: &Request<'_>,
        body: &Body,
        pointer: &Pointer,
        target: Target,
    ) -> (Span, u64) {
        let splice = body.splices.iter().find_map(|splice| Some((splice, pointer.below(&splice.pointer)?)));
        // A key beside a template stands in the profile, whatever the template writes.
        let splice = splice.filter(|(_, inner)| target == Target::Value || inner.parent().is_some());
        let Some((splice, inner)) = splice else { return (self.origin(pointer, target), 0) };
        let system_prompt = self.prompt(sources, renderer, request);
        let (prompt_cost, system_prompt) = (system_prompt.cost, system_prompt.result.ok().flatten());
        let input = self.input(request, system_prompt.as_ref());
        let traced = || {
            let Rendered { text, cost } = renderer.body(sources, splice.template, &input);
            let place = text.ok().and_then(|text| place_in(&json::blank_trailing_commas(text), &inner, target));
            let span = place.map(|place| renderer.origin(sources, splice.template, &input, place).span);
            Costed { result: span, cost: cost.saturating_mul(TRACED) }
        };
        let Costed { result: span, cost } = match request.memo.filter(|_| self.shares(renderer, splice.template)) {
            Some(memo) => {
                let key = self.fragment_key(renderer, request, splice.template, system_prompt.as_ref());
                memo.trace((key, inner.clone(), target), traced)
            }
            None => traced(),
        };
        (span.unwrap_or(splice.literal), prompt_cost.saturating_add(cost))
    }

    /// As [`Plan::trace`], but of what a template rendered only the template: for the rest of many pointers.
    pub fn place(&self, body: &Body, pointer: &Pointer, target: Target) -> Span {
        let splice = body.splices.iter().find(|splice| pointer.below(&splice.pointer).is_some());
        splice.map_or_else(|| self.origin(pointer, target), |splice| splice.literal)
    }

    /// Whether other agents may ask for what a template gives: they use it too, and with the same system prompt if it reads that.
    fn shares(&self, renderer: &Renderer<'_>, template: TemplateId) -> bool {
        let has_own_prompt = self.prompt.is_some_and(|prompt| !renderer.is_shared(prompt));
        renderer.is_shared(template) && !(has_own_prompt && renderer.reads(template, "system_prompt"))
    }

    /// Everything that a template's fragment depends on.
    fn fragment_key(
        &self,
        renderer: &Renderer<'_>,
        request: &Request<'_>,
        template: TemplateId,
        system_prompt: Option<&SystemPrompt>,
    ) -> FragmentKey {
        FragmentKey {
            template,
            ids: self.wire.ids(),
            variant: request.conversation.variant(self.api).map(|_| self.api),
            system_prompt: system_prompt.filter(|_| renderer.reads(template, "system_prompt")).cloned(),
        }
    }
}

/// A body, and the units of work that it took.
pub(crate) struct Made {
    pub(crate) body: Result<Body, Vec<Diagnostic>>,
    pub(crate) cost: u64,
}

/// How often a template is rendered to tell who wrote a place of its output.
const TRACED: u64 = 3;
/// Units for a value of the JSON that a template gives: what holds it is larger than its text.
const VALUE: u64 = 256;
/// The same for a finding about output that is not JSON: up to three places.
const EXPLAINED: u64 = 9;

/// Where a value stands in what a template gave.
fn place_in(text: &str, inner: &Pointer, target: Target) -> Option<Range<usize>> {
    let tree = json::parse_tree(text).ok()?;
    let key = || tree.locate(&inner.parent()?)?.key_span(&inner.tokens().last()?);
    (target == Target::Key).then(key).flatten().or_else(|| Some(tree.locate(inner)?.span.clone()))
}

struct Assembly<'a> {
    plan: &'a Plan<'a>,
    sources: &'a Sources,
    renderer: &'a Renderer<'a>,
    request: &'a Request<'a>,
    input: &'a BodyInput<'a>,
    system_prompt: Option<&'a SystemPrompt>,
    splices: Vec<Splice>,
    findings: Vec<Diagnostic>,
    /// The units that prompt and templates have cost.
    cost: u64,
}

impl Assembly<'_> {
    fn members(&mut self, parts: &[(Arc<str>, Part)]) -> Members {
        let mut members = Members::with_capacity(parts.len());
        for (key, part) in parts {
            let at = || Pointer::root().member(key);
            let member = match part {
                Part::Member(shared) => Some(Member::Shared(Arc::clone(shared))),
                Part::Template(template, literal) => self.template(*template, *literal, &at()),
                part => self.part(part, &at()).map(Member::Own),
            };
            if let Some(member) = member {
                members.add(Arc::clone(key), member);
            }
        }
        members
    }

    fn table(&mut self, parts: &[(Arc<str>, Part)], at: &Pointer) -> Map<String, Value> {
        let mut members = Map::with_capacity(parts.len() + 2);
        for (key, part) in parts {
            if let Some(value) = self.part(part, &at.member(key)) {
                members.insert(key.to_string(), value);
            }
        }
        members
    }

    /// The value of a part; `None` if it is left out, or has a finding.
    fn part(&mut self, part: &Part, at: &Pointer) -> Option<Value> {
        match part {
            Part::Constant(value) => Some(value.clone()),
            Part::Member(shared) => Some(shared.value().clone()),
            Part::Table(parts) => Some(Value::Object(self.table(parts, at))),
            Part::Array(parts) => {
                let mut elements = Vec::with_capacity(parts.len());
                for part in parts {
                    elements.extend(self.part(part, &at.element(elements.len())));
                }
                Some(Value::Array(elements))
            }
            Part::Template(template, literal) => self.template(*template, *literal, at).map(Member::into_value),
        }
    }

    fn template(&mut self, template: TemplateId, literal: Span, at: &Pointer) -> Option<Member> {
        if self.cost > ACCOUNT_LIMIT {
            return None;
        }
        let Costed { result, cost } = match self.request.memo.filter(|_| self.plan.shares(self.renderer, template)) {
            Some(memo) => memo
                .fragment(self.plan.fragment_key(self.renderer, self.request, template, self.system_prompt), || {
                    self.fragment(template, literal, at)
                })
                .map(|result| result.map(|shared| shared.map(Member::Shared))),
            None => self.fragment(template, literal, at).map(|result| result.map(|value| value.map(Member::Own))),
        };
        self.cost = self.cost.saturating_add(cost);
        match result {
            Ok(_) if self.cost > ACCOUNT_LIMIT => {
                self.findings.push(too_much_work(literal));
                None
            }
            Ok(member) => {
                member.iter().for_each(|_| self.splices.push(Splice { pointer: at.clone(), literal, template }));
                member
            }
            Err(finding) => {
                self.findings.push(*finding);
                None
            }
        }
    }

    fn fragment(&self, template: TemplateId, literal: Span, at: &Pointer) -> Fragment {
        let Rendered { text, cost } = self.renderer.body(self.sources, template, self.input);
        let rendered = match text {
            Ok(rendered) if rendered.trim().is_empty() => return Costed { result: Ok(None), cost },
            Ok(rendered) => rendered,
            Err(finding) => return Costed { result: Err(finding), cost },
        };
        let cost = cost.saturating_add(VALUE.saturating_mul(json::count_values(&rendered) as u64));
        if cost > ACCOUNT_LIMIT {
            return Costed { result: Err(Box::new(too_much_work(literal))), cost };
        }
        let text = json::blank_trailing_commas(rendered);
        match json::parse(&text) {
            Ok(value) => Costed { result: Ok(Some(value)), cost },
            Err(error) => {
                let finding = self.not_json(template, literal, at, &text, &error);
                Costed { result: Err(Box::new(finding)), cost: cost.saturating_mul(EXPLAINED) }
            }
        }
    }

    fn not_json(&self, template: TemplateId, literal: Span, at: &Pointer, text: &str, error: &JsonError) -> Diagnostic {
        let origin = |range: Range<usize>| self.renderer.origin(self.sources, template, self.input, range);
        let (span, bare) = match self.bare_value(template, text, error) {
            Some((span, help)) => (span, Some(help)),
            None => (origin(error.range.clone()).span, None),
        };
        let rule = if bare.is_some() { &rules::UNQUOTED } else { rule(&error.problem) };
        let message = format!("`{at}` is not valid JSON: {}", error.problem.message());
        let mut finding = Diagnostic::new(rule, span, message).label(excerpt(text, &error.range));
        if let Problem::DuplicateKey(_, first) = &error.problem {
            finding = finding.related(origin(first.clone()).span, "first here");
        }
        if let Some(opened) = &error.opened {
            let bracket = &text[opened.clone()];
            finding = finding.related(origin(opened.clone()).span, format!("`{bracket}` is open since here"));
        }
        if span.file != literal.file || !(literal.start..=literal.end).contains(&span.start) {
            finding = finding.related(literal, "rendered for this value");
        }
        finding.maybe_help(bare.or(error.problem.help()).map(str::to_owned))
    }

    /// The tag whose value breaks the JSON around it, and what to write instead: a value that parsing fails inside of, or
    /// one that is not there at all.
    fn bare_value(&self, template: TemplateId, text: &str, error: &JsonError) -> Option<(Span, &'static str)> {
        const WITHOUT_QUOTES: &str = "write `{{ tojson(value) }}`, which quotes and escapes it";
        const WITH_QUOTES: &str =
            "write `{{ tojson(value) }}` instead of quotes around the value: it escapes what is inside";
        if error.problem == Problem::MissingValue {
            let gap = text[..error.range.start].trim_end().len()..error.range.start;
            let span = self.renderer.empty_tag(self.sources, template, self.input, &gap)?;
            return Some((span, WITHOUT_QUOTES));
        }
        let origin = self.renderer.origin(self.sources, template, self.input, error.range.clone());
        let start = origin.inside_value_from?;
        Some((origin.span, if text[..start].ends_with('"') { WITH_QUOTES } else { WITHOUT_QUOTES }))
    }
}

/// The templates of a body that are too much together: the one that is one too many.
fn too_much_work(literal: Span) -> Diagnostic {
    let message = "the templates of this body work on too much data together";
    let finding = Diagnostic::new(&render_rules::TOO_MUCH_WORK, literal, message);
    finding.help("look for templates that copy, join, compare or search long texts or lists again and again")
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

/// The output around a mistake, on one line: `…"a": 1 ▶"b"◀: 2…`.
fn excerpt(text: &str, range: &Range<usize>) -> String {
    const AROUND: usize = 24;
    let start = text.floor_char_boundary(range.start.saturating_sub(AROUND));
    let (from, to) =
        (text.floor_char_boundary(range.start), text.ceil_char_boundary(range.end.min(range.start + AROUND)));
    let end = text.ceil_char_boundary((to + AROUND).min(text.len()));
    let squeeze = |part: &str| {
        let mut squeezed = part.split_whitespace().collect::<Vec<_>>().join(" ");
        if part.starts_with(char::is_whitespace) && !squeezed.is_empty() {
            squeezed.insert(0, ' ');
        }
        if part.ends_with(char::is_whitespace) && !squeezed.is_empty() {
            squeezed.push(' ');
        }
        squeezed
    };
    let (before, marked, after) = (squeeze(&text[start..from]), squeeze(&text[from..to]), squeeze(&text[to..end]));
    let (head, tail) = (if start > 0 { "…" } else { "" }, if end < text.len() { "…" } else { "" });
    format!("rendered: {head}{before}▶{marked}◀{after}{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_are_short_and_mark_the_place() {
        assert_eq!(excerpt("[1 2]", &(3..4)), "rendered: [1 ▶2◀]");
        let long = format!("[{}]", "\"é\", ".repeat(40));
        assert!(excerpt(&long, &(100..101)).chars().count() < 80);
    }
}
