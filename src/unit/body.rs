//! Rendering and assembling one body.

use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::assembled::assemble;
use super::costed::Costed;
use super::fragment::{FragmentOf, Fragments, Hollow, HollowOf, too_much_work};
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
use crate::render::{ACCOUNT_LIMIT, BodyInput, DataRead, Keep, Renderer, TemplateId};
use crate::source::{Sources, Span};

/// A request body, exactly as it is sent.
#[derive(Debug, Clone)]
pub struct Body {
    members: Members,
    /// The members as one value, if it was asked for.
    value: OnceLock<Value>,
    splices: Vec<Splice>,
    steps: Steps,
    /// About how many bytes members hold that templates of this agent gave, alone or together.
    weight: usize,
    /// The memory that knows the members that other bodies hold too.
    memory: Option<Arc<Memory>>,
}

/// The changes of the provider steps to a body.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Steps {
    pub(super) has_model: bool,
    /// The tools of the request are after so many of the body's own.
    pub(super) tools_behind: Option<usize>,
    pub(super) marks: Vec<CacheMark>,
}

impl Body {
    /// The body as a value.
    pub fn value(&self) -> &Value {
        self.value.get_or_init(|| self.members.to_value())
    }

    /// The members in order.
    pub(crate) fn members(&self) -> impl Iterator<Item = MemberRef<'_>> {
        self.members
            .iter()
            .map(|(name, member)| MemberRef::of(name, member, self.memory.as_deref()))
    }

    /// Returns what each member shares with the same one of other bodies; `None` for those that it
    /// has for itself.
    pub(crate) fn sameness(&self) -> Vec<(Arc<str>, Option<Sameness>)> {
        self.members
            .named()
            .map(|(name, member)| (Arc::clone(name), member.sameness()))
            .collect()
    }

    /// Returns what knows of the members that other bodies hold too.
    pub(crate) fn memory(&self) -> Option<&Memory> {
        self.memory.as_deref()
    }

    /// Returns what templates rendered, in order of the body.
    pub fn splices(&self) -> &[Splice] {
        &self.splices
    }

    /// Returns what the provider steps did.
    pub(super) fn steps(&self) -> &Steps {
        &self.steps
    }

    /// About how many bytes it holds that no other agent's body does, unless by chance: whoever
    /// came first cannot be known.
    pub(crate) fn weight(&self) -> usize {
        self.weight + self.members.weight()
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

    /// The same for a prompt that is known, and of some members alone.
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
                .complete(members, splices, weight, request)
                .map_err(|finding| vec![*finding]),
            false => Err(findings),
        };
        Made {
            body,
            cost,
            prompt: system_prompt,
        }
    }

    /// The steps after the templates.
    fn complete(
        &self,
        mut members: Members,
        splices: Vec<Splice>,
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
            weight,
            memory,
        })
    }

    /// The tools of a body: its own, and after them the request's.
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

    /// A tool of the body's own that has the name of one of the request's.
    fn tools_twice(&self, at: &Pointer, name: &str, splices: &[Splice]) -> Diagnostic {
        let at = Pointer::root().member("tools").join(at);
        let splices = SpliceIndex::new(splices);
        let span = splices.around(&at).map_or_else(
            || self.literal(&at, KeyOrValue::Value, &splices),
            |(_, splice, _)| splice.literal,
        );
        let message = format!(
            "a tool of the request is called `{}` too",
            crate::text::cut(name, 60)
        );
        let finding = Diagnostic::new(&provider_rules::TOOLS_TWICE, span, message);
        let finding = match self.profile.switch("enable_tools") {
            Some(switch) => {
                finding.related(switch.span, "the request's tools are switched on here")
            }
            None => finding,
        };
        finding.help("give every tool a name of its own, or leave this one to the request")
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
                result: Ok(text.map(|text| self.known_prompts.whole(text))),
                cost: 0,
            };
        }
        let template = self.prompt.filter(|_| !conversation.omit_system_prompt);
        let whole = |own: Option<&str>| {
            conversation
                .system_prompt(own)
                .map(|text| self.known_prompts.whole(text))
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
                own.map(|text| text.map(|own| whole(Some(&own))))
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

    /// Returns which values of the template data the templates of a body read, and where, in order.
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

    /// Evaluates the templates of a body and its system prompt, and counts what runs of them.
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

    /// Where a member of `[body]` is written; the whole of it if there is no such member.
    pub(crate) fn member_at(&self, name: &str) -> Span {
        self.literal(
            &Pointer::root().member(name),
            KeyOrValue::Value,
            &SpliceIndex::new(&[]),
        )
    }

    /// Returns `true` if other agents may ask for what a template gives: they use it too, and with
    /// the same system prompt if it reads that.
    pub(super) fn shares(
        &self,
        renderer: &Renderer<'_>,
        template: TemplateId,
        system_prompt: Option<&SystemPrompt>,
    ) -> bool {
        let is_alone = system_prompt.is_some() && self.has_own_prompt(renderer);
        renderer.is_shared(template) && !(is_alone && renderer.reads_prompt(template))
    }

    /// Returns `true` if no other agent has the prompt.
    pub(super) fn has_own_prompt(&self, renderer: &Renderer<'_>) -> bool {
        self.prompt
            .is_some_and(|prompt| !renderer.is_shared(prompt))
    }

    /// Returns `true` if a template may be rendered once for all prompts, and this agent's own be
    /// put into what it gives: it may if the template does no more with the prompt than to hand it
    /// on.
    pub(super) fn splices(&self, renderer: &Renderer<'_>, template: TemplateId) -> bool {
        self.has_own_prompt(renderer)
            && renderer.is_shared(template)
            && renderer.reads_prompt(template)
    }

    /// Asks for what a template gives.
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
                .cloned(),
        }
    }
}

/// Asks for the tools of a body in a wire format, after those of its own.
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

/// Returns how many tools a body has of its own.
fn tool_count(own: &Value) -> usize {
    match own {
        Value::Null => 0,
        Value::Array(tools) => tools.len(),
        // None of the request's tools is after it.
        _ => usize::MAX,
    }
}

/// A body, and the units of work that it took.
pub(crate) struct Made {
    pub(crate) body: Result<Body, Vec<Diagnostic>>,
    pub(crate) cost: u64,
    /// The system prompt in it.
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
    /// The units that prompt and templates have cost.
    cost: u64,
    /// The most units that they would have cost if each was rendered for this prompt.
    most: u64,
    /// About how many bytes members hold that templates of this agent gave, alone or together.
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

    /// The value of a member with templates in it.
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

    /// Returns what the templates of a part give, in order; whether the part is there.
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
            Ok(member) => {
                if member.is_some() {
                    self.splices.push(Splice {
                        pointer: at,
                        literal,
                        template,
                        cost,
                    });
                }
                member
            }
            Err(finding) => {
                self.findings.push(*finding);
                None
            }
        }
    }

    /// Returns what a template gives for this prompt alone, or for all agents with it.
    fn rendered(&mut self, template: TemplateId, literal: Span, at: &Pointer) -> MemberFragment {
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
                made.map(|result| result.map(|shared| shared.map(Member::Shared)))
            }
            None => {
                let made = fragments.own(template, literal, at);
                // What is in a list or a table is weighed with that.
                if let (Ok(Some(Member::Shared(shared))), None) = (&made.result, at.tokens().nth(1))
                {
                    self.weight += shared.weight();
                }
                made
            }
        };
        self.most = self.most.saturating_add(found.cost);
        found
    }

    /// Returns what a template gives for any prompt, with this one in its places; `None` if that
    /// may not be what it gives for this one.
    fn spliced(
        &mut self,
        template: TemplateId,
        literal: Span,
        at: &Pointer,
    ) -> Option<MemberFragment> {
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
            Hollow::Value(shared) => {
                let holes = shared.as_ref().map_or(0, |shared| shared.holes());
                let spliced = shared.map(|shared| Member::splice(shared, prompt));
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

/// The units of work for a prompt in the holes of what a template gave for any.
pub(super) fn cost_of_holes(holes: usize, prompt_len: usize) -> u64 {
    2 * (holes * prompt_len) as u64
}

/// The output of a template, as a member of a body.
type MemberFragment = Costed<Result<Option<Member>, Box<Diagnostic>>>;
