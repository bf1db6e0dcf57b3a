//! Renders and assembles one body.

use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::assembled::assemble;
use super::costed::Costed;
use super::fragment::{Fragment, FragmentOf, Fragments, Hollow, HollowOf, too_much_work};
use super::members::{Member, MemberRef, Members, Sameness, Shared};
use super::plan::{KeyOrValue, Part, Plan};
use super::prompt::{Prompt, PromptOf, SystemPrompt, placeholder};
use super::request::Request;
use super::splices::{Splice, SpliceIndex};
use crate::diag::Diagnostic;
use crate::json::Pointer;
use crate::memory::{Identity, Memory, Question};
use crate::provider::{CacheMark, Tools, WireFormat, rules as provider_rules, with_own_tools};
use crate::render::coverage::Runs;
use crate::render::{ACCOUNT_LIMIT, BodyInput, DataRead, Keep, Recording, Renderer, TemplateId};
use crate::source::{Sources, Span};

/// A request body, exactly as it is sent.
#[derive(Debug, Clone)]
pub struct Body {
    members: Members,
    /// The members as one value, created on first use.
    value: OnceLock<Value>,
    splices: Vec<Splice>,
    steps: Steps,
    /// The whole system prompt.
    prompt: Option<SystemPrompt>,
    /// The approximate size in bytes of the members rendered from this agent's own templates,
    /// including their writers.
    weight: usize,
    /// The cache of the members shared with other bodies.
    memory: Option<Arc<Memory>>,
}

/// The changes that the provider steps made to a body.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Steps {
    pub(super) has_model: bool,
    /// The number of the body's own tools, which precede the request's tools.
    pub(super) tools_behind: Option<usize>,
    pub(super) marks: Vec<CacheMark>,
}

impl Body {
    /// Returns the body as a value.
    pub fn value(&self) -> &Value {
        self.value.get_or_init(|| self.members.to_value())
    }

    /// Returns the members in order.
    pub(crate) fn members(&self) -> impl Iterator<Item = MemberRef<'_>> {
        self.members
            .iter()
            .map(|(name, member)| MemberRef::of(name, member, self.memory.as_deref()))
    }

    /// Returns the identity of each member that other bodies may share; `None` for a member that
    /// belongs only to this body.
    pub(crate) fn sameness(&self) -> Vec<(Arc<str>, Option<Sameness>)> {
        self.members
            .named()
            .map(|(name, member)| (Arc::clone(name), member.sameness()))
            .collect()
    }

    /// Returns the cache of the members shared with other bodies.
    pub(crate) fn memory(&self) -> Option<&Memory> {
        self.memory.as_deref()
    }

    /// Returns the values that templates rendered, in body order.
    pub fn splices(&self) -> &[Splice] {
        &self.splices
    }

    /// Returns the changes that the provider steps made.
    pub(super) fn steps(&self) -> &Steps {
        &self.steps
    }

    /// Returns the whole system prompt.
    pub(super) fn prompt(&self) -> Option<&SystemPrompt> {
        self.prompt.as_ref()
    }

    /// Returns the approximate number of bytes that only this body uses. This includes values that
    /// another agent happens to share, because the order of agents is unknown.
    pub(crate) fn weight(&self) -> usize {
        self.weight + self.members.weight()
    }

    /// Returns the body in the compact form in which it is sent.
    pub fn compact(&self) -> String {
        self.value().to_string()
    }

    /// Returns the body as golden files contain it: two spaces of indentation and a final newline.
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
    /// Builds the body of one request.
    ///
    /// # Errors
    ///
    /// Returns every error in templates and their output, one finding per template.
    pub fn body(
        &self,
        sources: &Sources,
        renderer: &Renderer<'_>,
        request: &Request<'_>,
    ) -> Result<Body, Vec<Diagnostic>> {
        self.made(sources, renderer, request).body
    }

    /// Builds the body like [`Plan::body`], and reports its cost.
    pub(crate) fn made(
        &self,
        sources: &Sources,
        renderer: &Renderer<'_>,
        request: &Request<'_>,
    ) -> Made {
        self.made_of(
            self.prompt(sources, renderer, request),
            None,
            sources,
            renderer,
            request,
        )
    }

    /// Builds the body like `made`, with a known prompt and only the members that `only` accepts.
    pub(crate) fn made_of(
        &self,
        Costed {
            result: prompt,
            cost,
        }: Prompt,
        only: Option<fn(&str) -> bool>,
        sources: &Sources,
        renderer: &Renderer<'_>,
        request: &Request<'_>,
    ) -> Made {
        let system_prompt = match prompt {
            Ok(prompt) => prompt,
            Err(finding) => {
                return Made {
                    body: Err(vec![*finding]),
                    cost,
                    prompt: None,
                };
            }
        };
        let with_prompt = system_prompt.is_none() || !self.has_own_prompt(renderer);
        let input = BodyInput {
            keep: request.memory.map(|_| Keep { with_prompt }),
            ..self.input(request, system_prompt.as_ref())
        };
        let mut assembly = BodyBuilder {
            plan: self,
            sources,
            renderer,
            request,
            input: &input,
            system_prompt: system_prompt.as_ref(),
            splices: Vec::new(),
            findings: Vec::new(),
            cost,
            most: cost,
            weight: 0,
        };
        let members = assembly.members(&self.body, only);
        let BodyBuilder {
            findings,
            splices,
            cost,
            weight,
            ..
        } = assembly;
        let body = match findings.is_empty() {
            true => self
                .complete(members, splices, system_prompt.as_ref(), weight, request)
                .map_err(|finding| vec![*finding]),
            false => Err(findings),
        };
        Made {
            body,
            cost,
            prompt: system_prompt,
        }
    }

    /// Runs the provider steps, which follow the templates.
    fn complete(
        &self,
        mut members: Members,
        splices: Vec<Splice>,
        prompt: Option<&SystemPrompt>,
        weight: usize,
        request: &Request<'_>,
    ) -> Result<Body, Box<Diagnostic>> {
        let mut steps = Steps::default();
        if self.with_tools {
            let own = members.take("tools");
            match self.tools(request, own.as_ref()) {
                Tools::None => own
                    .into_iter()
                    .for_each(|own| members.add(Arc::from("tools"), own)),
                Tools::All(tools) => {
                    members.add(Arc::from("tools"), tools);
                    steps.tools_behind =
                        Some(own.as_ref().map_or(0, |own| tool_count(own.value())));
                }
                Tools::Twice { at, name } => {
                    return Err(Box::new(self.tools_twice(&at, &name, &splices)));
                }
            }
        }
        if let Some(cache) = &self.cache {
            steps.marks = members.add_cache_control(cache, request.memory.map(|memory| &**memory));
        }
        if self.wire.has_model_in_body() {
            members.push_front(
                Arc::from("model"),
                Member::Own(self.model(request.model).into()),
            );
            steps.has_model = true;
        }
        let memory = request.memory.map(Arc::clone);
        Ok(Body {
            members,
            value: OnceLock::new(),
            splices,
            steps,
            prompt: prompt.cloned(),
            weight,
            memory,
        })
    }

    /// Returns a body's tools: its own tools, followed by the request's tools.
    fn tools(&self, request: &Request<'_>, own: Option<&Member>) -> Tools<Member> {
        let value = own.map(Member::value);
        let make = || with_own_tools(self.wire, value, &request.conversation.tools);
        match request.memory.filter(|_| own.is_none_or(Member::is_shared)) {
            Some(memory) => {
                let asked = ToolsOf(request.conversation.id, self.wire, own.and_then(Member::id));
                memory
                    .ask(asked, || make().map(|made| Shared::same(made, memory)))
                    .map(Member::Shared)
            }
            None => make().map(Member::Own),
        }
    }

    /// Returns the finding for one of the body's own tools that has the same name as a request
    /// tool.
    fn tools_twice(&self, at: &Pointer, name: &str, splices: &[Splice]) -> Diagnostic {
        let at = Pointer::root().member("tools").join(at);
        let splices = SpliceIndex::new(splices);
        let span = splices.around(&at).map_or_else(
            || self.literal(&at, KeyOrValue::Value, &splices),
            |(_, splice, _)| splice.literal,
        );
        let message = format!(
            "a tool in the request is also named `{}`",
            crate::text::cut(name, 60)
        );
        let finding = Diagnostic::new(&provider_rules::TOOLS_TWICE, span, message);
        let finding = match self.profile.switch("enable_tools") {
            Some(switch) => finding.related(switch.span, "the request's tools are enabled here"),
            None => finding,
        };
        finding.help("give every tool a unique name, or let the request provide this one")
    }
}

impl Plan<'_> {
    /// Returns the whole system prompt of a request; `None` if it is blank.
    ///
    /// # Errors
    ///
    /// Returns the error in the template.
    pub fn system_prompt(
        &self,
        sources: &Sources,
        renderer: &Renderer<'_>,
        request: &Request<'_>,
    ) -> Result<Option<SystemPrompt>, Box<Diagnostic>> {
        self.prompt(sources, renderer, request).result
    }

    pub(crate) fn prompt(
        &self,
        sources: &Sources,
        renderer: &Renderer<'_>,
        request: &Request<'_>,
    ) -> Prompt {
        let conversation = &request.conversation.conversation;
        if let Some(known) = &conversation.known_prompt {
            let text = Some(known.to_string()).filter(|text| !text.trim().is_empty());
            return Costed {
                result: Ok(text.map(|text| self.known_prompts.whole(text, None))),
                cost: 0,
            };
        }
        let template = self.prompt.filter(|_| !conversation.omit_system_prompt);
        let whole = |own: Option<Arc<Recording>>| {
            let text = conversation.system_prompt(own.as_ref().map(|own| own.text()))?;
            Some(self.known_prompts.whole(text, own))
        };
        let render = || match template {
            None => Costed {
                result: Ok(whole(None)),
                cost: 0,
            },
            Some(template) => {
                let own = self.known_prompts.own(renderer.most_for_steps(), || {
                    renderer.prompt(sources, template, request.scope)
                });
                own.map(|result| result.map(|own| whole(Some(own))))
            }
        };
        match request
            .memory
            .filter(|_| template.is_none_or(|template| renderer.is_shared(template)))
        {
            Some(memory) => memory.ask(
                PromptOf(
                    request.conversation.id,
                    template,
                    self.profile.profile.layer,
                ),
                render,
            ),
            None => render(),
        }
    }

    pub(super) fn input<'a>(
        &self,
        request: &'a Request<'_>,
        system_prompt: Option<&'a SystemPrompt>,
    ) -> BodyInput<'a> {
        BodyInput {
            context: request.conversation.data(self.api),
            system_prompt: system_prompt.map(SystemPrompt::as_str),
            ids: self.wire.ids(),
            keep: None,
        }
    }

    /// Returns the template data values that a body's templates read, with the locations of the
    /// reads, in order.
    pub(crate) fn data_reads(
        &self,
        sources: &Sources,
        renderer: &Renderer<'_>,
        request: &Request<'_>,
        body: &Body,
    ) -> Vec<DataRead> {
        let prompt = self
            .prompt(sources, renderer, request)
            .result
            .ok()
            .flatten();
        let input = self.input(request, prompt.as_ref());
        let templates = body.splices.iter().map(|splice| splice.template);
        templates
            .flat_map(|template| renderer.reads_of_body(sources, template, &input))
            .collect()
    }

    /// Evaluates the templates of a body and its system prompt, and counts the statements that run.
    pub(crate) fn count_runs(
        &self,
        sources: &Sources,
        renderer: &Renderer<'_>,
        request: &Request<'_>,
        runs: &mut Runs,
    ) {
        let own_prompt = self
            .prompt
            .filter(|_| !request.conversation.conversation.omit_system_prompt);
        if let Some(template) = own_prompt {
            renderer.run_prompt(template, request.scope, runs);
        }
        let prompt = self.prompt(sources, renderer, request).result;
        let Ok(prompt) = prompt else { return };
        let input = self.input(request, prompt.as_ref());
        let mut templates = Vec::new();
        for (_, part) in &self.body {
            part.add_templates(&mut templates);
        }
        for template in templates {
            renderer.run_body(template, &input, runs);
        }
    }

    /// Returns the location of a member of `[body]`, or of the whole table if there is no such
    /// member.
    pub(crate) fn member_at(&self, name: &str) -> Span {
        self.literal(
            &Pointer::root().member(name),
            KeyOrValue::Value,
            &SpliceIndex::new(&[]),
        )
    }

    /// Returns `true` if a template's output can be shared: other agents use the template and, if
    /// the template reads the system prompt, have the same prompt.
    pub(super) fn shares(
        &self,
        renderer: &Renderer<'_>,
        template: TemplateId,
        system_prompt: Option<&SystemPrompt>,
    ) -> bool {
        let is_alone = system_prompt.is_some() && self.has_own_prompt(renderer);
        renderer.is_shared(template) && !(is_alone && renderer.reads_prompt(template))
    }

    /// Returns `true` if no other agent has the same prompt.
    pub(super) fn has_own_prompt(&self, renderer: &Renderer<'_>) -> bool {
        self.prompt
            .is_some_and(|prompt| !renderer.is_shared(prompt))
    }

    /// Returns `true` if a template should be rendered once for all prompts, with this agent's own
    /// prompt spliced into the output. This works only if the template passes the prompt on
    /// unchanged, which the render shows.
    pub(super) fn splices(&self, renderer: &Renderer<'_>, template: TemplateId) -> bool {
        self.has_own_prompt(renderer)
            && renderer.is_shared(template)
            && renderer.reads_prompt(template)
    }

    /// Returns the question for a template's output.
    pub(super) fn fragment_of(
        &self,
        renderer: &Renderer<'_>,
        request: &Request<'_>,
        template: TemplateId,
        system_prompt: Option<&SystemPrompt>,
    ) -> FragmentOf {
        FragmentOf {
            template,
            ids: self.wire.ids(),
            data: request.conversation.data(self.api).id(),
            system_prompt: system_prompt
                .filter(|_| renderer.reads_prompt(template))
                .map(SystemPrompt::without_writers),
        }
    }
}

/// A [`Question`] about the tools of a body in a wire format, including the body's own tools.
#[derive(PartialEq, Eq, Hash)]
struct ToolsOf(Identity, WireFormat, Option<Identity>);

impl Question for ToolsOf {
    type Answer = Tools<Arc<Shared>>;

    fn weight(&self, answer: &Tools<Arc<Shared>>) -> usize {
        match answer {
            Tools::All(shared) => 256 + shared.weight(),
            Tools::None | Tools::Twice { .. } => 256,
        }
    }
}

/// Returns the number of tools that the body itself defines.
fn tool_count(own: &Value) -> usize {
    match own {
        Value::Null => 0,
        Value::Array(tools) => tools.len(),
        // The request's tools are not appended to a value of any other kind.
        _ => usize::MAX,
    }
}

/// A body with its cost in units of work.
pub(crate) struct Made {
    pub(crate) body: Result<Body, Vec<Diagnostic>>,
    pub(crate) cost: u64,
    /// The system prompt in the body.
    pub(crate) prompt: Option<SystemPrompt>,
}

struct BodyBuilder<'a> {
    plan: &'a Plan<'a>,
    sources: &'a Sources,
    renderer: &'a Renderer<'a>,
    request: &'a Request<'a>,
    input: &'a BodyInput<'a>,
    system_prompt: Option<&'a SystemPrompt>,
    splices: Vec<Splice>,
    findings: Vec<Diagnostic>,
    /// The cost so far of the prompt and the templates, in units.
    cost: u64,
    /// The maximum cost in units if each template were rendered for this prompt.
    most: u64,
    /// The approximate size in bytes of the members rendered from this agent's own templates,
    /// including their writers.
    weight: usize,
}

impl BodyBuilder<'_> {
    fn members(&mut self, parts: &[(Arc<str>, Part)], only: Option<fn(&str) -> bool>) -> Members {
        let mut members = Members::with_capacity(parts.len());
        for (key, part) in parts
            .iter()
            .filter(|(key, _)| only.is_none_or(|only| only(key)))
        {
            let member = match part {
                Part::Member(shared) => Some(Member::Shared(Arc::clone(shared))),
                Part::Template(template, literal) => {
                    self.template(*template, *literal, member_at(key))
                }
                part => Some(self.assembled(part, &member_at(key))),
            };
            if let Some(member) = member {
                members.add(Arc::clone(key), member);
            }
        }
        members
    }

    /// Returns the value of a member that contains templates.
    fn assembled(&mut self, part: &Part, at: &Pointer) -> Member {
        let mut given = Vec::new();
        self.give(part, at, &mut given);
        let memory = self.request.memory.map(|memory| &**memory);
        let member = assemble(part, given, memory);
        if let Member::Shared(shared) = &member {
            self.weight += shared.weight();
        }
        member
    }

    /// Adds the output of a part's templates to `given`, in order; returns `true` if the part
    /// exists.
    fn give(&mut self, part: &Part, at: &Pointer, given: &mut Vec<Option<Member>>) -> bool {
        match part {
            Part::Constant(_) | Part::Member(_) => true,
            Part::Table(parts) => {
                for (key, part) in parts {
                    self.give(part, &at.member(key), given);
                }
                true
            }
            Part::Array(parts) => {
                let mut index = 0;
                parts.iter().for_each(|part| {
                    index += usize::from(self.give(part, &at.element(index), given));
                });
                true
            }
            Part::Template(template, literal) => {
                given.push(self.template(*template, *literal, at.clone()));
                given.last().is_some_and(Option::is_some)
            }
        }
    }

    fn template(&mut self, template: TemplateId, literal: Span, at: Pointer) -> Option<Member> {
        if self.cost > ACCOUNT_LIMIT {
            return None;
        }
        let spliced = self.spliced(template, literal, &at);
        let found = spliced.unwrap_or_else(|| self.rendered(template, literal, &at));
        let Costed { result, cost } = found;
        self.cost = self.cost.saturating_add(cost);
        match result {
            Ok(_) if self.cost > ACCOUNT_LIMIT => {
                self.findings.push(too_much_work(literal));
                None
            }
            Ok(None) => None,
            Ok(Some(output)) => {
                self.splices.push(Splice {
                    pointer: at,
                    literal,
                    template,
                    cost,
                    recording: output.recording,
                    is_hollow: output.is_hollow,
                });
                Some(output.value)
            }
            Err(finding) => {
                self.findings.push(*finding);
                None
            }
        }
    }

    /// Returns a template's output, rendered for this agent alone or for all agents that have this
    /// prompt.
    fn rendered(&mut self, template: TemplateId, literal: Span, at: &Pointer) -> Fragment<Member> {
        let fragments = self.fragments(self.input);
        let found = match self.request.memory.filter(|_| {
            self.plan
                .shares(self.renderer, template, self.system_prompt)
        }) {
            Some(memory) => {
                let asked = self.plan.fragment_of(
                    self.renderer,
                    self.request,
                    template,
                    self.system_prompt,
                );
                let made = memory.ask(asked, || fragments.shared(memory, template, literal, at));
                made.map(|result| result.map(|output| output.map(|it| it.map(Member::Shared))))
            }
            None => {
                let made = fragments.own(template, literal, at);
                // The size of a value inside a list or a table is included in the size of its
                // member.
                if let (Ok(Some(output)), None) = (&made.result, at.tokens().nth(1))
                    && let Member::Shared(shared) = &output.value
                {
                    self.weight += shared.weight();
                }
                if let Ok(Some(output)) = &made.result {
                    self.weight += output.recording.weight();
                }
                made
            }
        };
        self.most = self.most.saturating_add(found.cost);
        found
    }

    /// Returns a template's prompt-independent output with this prompt spliced in; `None` if the
    /// output for this prompt could differ.
    fn spliced(
        &mut self,
        template: TemplateId,
        literal: Span,
        at: &Pointer,
    ) -> Option<Fragment<Member>> {
        let (memory, prompt) = (self.request.memory?, self.system_prompt?);
        if !self.plan.splices(self.renderer, template) {
            return None;
        }
        let asked = HollowOf(self.plan.fragment_of(
            self.renderer,
            self.request,
            template,
            Some(placeholder()),
        ));
        let found = memory.ask(asked, || {
            let input = self.plan.input(self.request, Some(placeholder()));
            self.fragments(&input).hollow(template, literal, at)
        });
        let most = self
            .most
            .saturating_add(found.result.most(prompt.escaped().len())?);
        if most > ACCOUNT_LIMIT {
            return None;
        }
        let cost = found.cost;
        let found = match found.result.hollow {
            Hollow::Unknown => return None,
            Hollow::Finding(finding) => Costed {
                result: Err(finding),
                cost,
            },
            Hollow::Value(output) => {
                let holes = output.as_ref().map_or(0, |output| output.value.holes());
                let spliced = output.map(|it| it.map(|shared| Member::splice(shared, prompt)));
                Costed {
                    result: Ok(spliced),
                    cost: cost.saturating_add(cost_of_holes(holes, prompt.escaped().len())),
                }
            }
        };
        self.most = most;
        Some(found)
    }

    fn fragments<'f>(&'f self, input: &'f BodyInput<'f>) -> Fragments<'f> {
        let BodyBuilder {
            sources,
            renderer,
            request,
            ..
        } = *self;
        Fragments {
            sources,
            renderer,
            request,
            input,
        }
    }
}

fn member_at(key: &str) -> Pointer {
    Pointer::root().member(key)
}

/// Returns the cost in units of splicing a prompt into the holes of a template's output.
pub(super) fn cost_of_holes(holes: usize, prompt_len: usize) -> u64 {
    2 * (holes * prompt_len) as u64
}
