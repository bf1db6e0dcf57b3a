//! Rendering and assembling one body.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use super::excerpt::excerpt;
use super::members::{Member, MemberRef, Members};
use super::memo::{Costed, Fragment, FragmentKey, Prompt};
use super::plan::{Part, Plan};
use super::prompt::SystemPrompt;
use super::record::Steps;
use super::{Request, rules};
use crate::diag::{Diagnostic, Label, Rule};
use crate::json::{self, JsonError, Pointer, Problem};
use crate::provider::tool_definitions;
use crate::render::{
    ACCOUNT_LIMIT, BodyInput, Recording, Rendered, Renderer, TemplateId, Written, rules as render_rules,
};
use crate::source::{Sources, Span};

/// A request body, exactly as it is sent.
#[derive(Debug, Clone)]
pub struct Body {
    members: Members,
    /// The members as one value, if it was asked for.
    value: OnceLock<Value>,
    splices: Vec<Splice>,
    steps: Steps,
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
    /// The units of work that it took.
    pub(super) cost: u64,
}

impl Body {
    /// The body as a value.
    pub fn value(&self) -> &Value {
        self.value.get_or_init(|| self.members.to_value())
    }

    /// The members in order.
    pub(crate) fn members(&self) -> impl Iterator<Item = MemberRef<'_>> {
        self.members.iter().map(|(name, member)| member.named(name))
    }

    /// What templates rendered, in order of the body.
    pub fn splices(&self) -> &[Splice] {
        &self.splices
    }

    /// What the provider steps did.
    pub(super) fn steps(&self) -> &Steps {
        &self.steps
    }

    /// About how many bytes it holds that no other body does.
    pub(crate) fn weight(&self) -> usize {
        self.members.weight()
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
        let mut steps = Steps::default();
        if let Some(tools) = self.tools(request) {
            members.push(Arc::from("tools"), tools);
            steps.has_tools = true;
        }
        if let Some(cache) = &self.cache {
            steps.marks = members.add_cache_control(cache);
        }
        if self.wire.has_model_in_body() {
            members.push_front(Arc::from("model"), Member::Own(self.model(request.model).into()));
            steps.has_model = true;
        }
        Body { members, value: OnceLock::new(), splices, steps }
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

    pub(super) fn prompt(&self, sources: &Sources, renderer: &Renderer<'_>, request: &Request<'_>) -> Prompt {
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

    pub(super) fn input<'a>(&self, request: &'a Request<'_>, system_prompt: Option<&'a SystemPrompt>) -> BodyInput<'a> {
        let system_prompt = system_prompt.map(SystemPrompt::as_str);
        BodyInput { context: request.conversation.data(self.api), system_prompt, ids: self.wire.ids() }
    }

    /// Whether other agents may ask for what a template gives: they use it too, and with the same system prompt if it reads that.
    pub(super) fn shares(&self, renderer: &Renderer<'_>, template: TemplateId) -> bool {
        let has_own_prompt = self.prompt.is_some_and(|prompt| !renderer.is_shared(prompt));
        renderer.is_shared(template) && !(has_own_prompt && renderer.reads(template, "system_prompt"))
    }

    /// Everything that a template's fragment depends on.
    pub(super) fn fragment_key(
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

/// Units for a value of the JSON that a template gives: what holds it is larger than its text.
const VALUE: u64 = 256;
/// How often the cost of a template is charged whose output is not JSON: it is recorded.
const EXPLAINED: u64 = 9;

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
                member.iter().for_each(|_| self.splices.push(Splice { pointer: at.clone(), literal, template, cost }));
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
        let recording = self.recording(template, text);
        let place = |range: &Range<usize>| self.written(&recording, range);
        let found = place(&error.range);
        let bare = self.bare_value(&recording, found.as_ref(), text, error);
        let (rule, span, help) = match bare {
            Some((span, help)) => (&rules::UNQUOTED, span, Some(help)),
            None => {
                let span = found.as_ref().map_or(literal, Written::statement);
                (rule(&error.problem), span, error.problem.help())
            }
        };
        let message = format!("`{at}` is not valid JSON: {}", error.problem.message());
        let mut finding = Diagnostic::new(rule, span, message).label(excerpt(text, &error.range));
        let mut relate = |range: &Range<usize>, what: &str| {
            let span = place(range).map_or(literal, |found| found.span);
            finding.related.push(Label { span, message: what.to_owned() });
        };
        if let Problem::DuplicateKey(_, first) = &error.problem {
            relate(first, "first here");
        }
        if let Some(met) = &error.met {
            relate(met, &format!("`{}` stands here", &text[met.clone()]));
        }
        for step in found.iter().flat_map(|found| &found.steps) {
            finding = finding.related(step.span, step.kind.phrase());
        }
        if !literal.contains(span)
            && !found.iter().flat_map(|found| &found.steps).any(|step| literal.contains(step.span))
        {
            finding = finding.related(literal, "rendered for this value");
        }
        finding.maybe_help(help.map(str::to_owned))
    }

    fn recording(&self, template: TemplateId, text: &str) -> Recording {
        let prompt = self.plan.recorded_prompt(self.sources, self.renderer, self.request).map(Arc::new);
        // Trailing commas are spaces by now.
        let rendered = self.renderer.body(self.sources, template, self.input).text;
        self.renderer.record_body(template, self.input, prompt.as_ref(), rendered.as_deref().unwrap_or(text))
    }

    /// Who wrote the first byte of a range, or the last byte of the output.
    fn written(&self, recording: &Recording, range: &Range<usize>) -> Option<Written> {
        let len = recording.text().len();
        let start = range.start.min(len.saturating_sub(1));
        let end = range.end.clamp((start + 1).min(len), len);
        self.renderer.written(self.sources, recording, start..end).into_iter().next()
    }

    /// The tag whose value breaks the JSON around it, and what to write instead: a value that parsing fails inside of, or
    /// one that is not there at all.
    fn bare_value(
        &self,
        recording: &Recording,
        found: Option<&Written>,
        text: &str,
        error: &JsonError,
    ) -> Option<(Span, &'static str)> {
        const WITHOUT_QUOTES: &str = "write `{{ tojson(value) }}`, which quotes and escapes it";
        const WITH_QUOTES: &str =
            "write `{{ tojson(value) }}` instead of quotes around the value: it escapes what is inside";
        if error.problem == Problem::MissingValue {
            let gap = text[..error.range.start].trim_end().len()..error.range.start;
            let span = self.renderer.empty_tag(self.sources, recording, &gap)?;
            return Some((span, WITHOUT_QUOTES));
        }
        let found = found?;
        let start = found.value_from.filter(|&start| error.range.start > start)?;
        Some((found.tag?, if text[..start].ends_with('"') { WITH_QUOTES } else { WITHOUT_QUOTES }))
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
