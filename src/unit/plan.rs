//! The facts about an agent that do not depend on a conversation.

mod endpoint;

use std::sync::Arc;

use serde_json::Value;

use super::members::Shared;
use super::prompt::KnownPrompts;
use super::splices::SpliceIndex;
use crate::conversation::TaskKind;
use crate::diag::{Diagnostic, Severity, Suggestions};
use crate::json::{self, Pointer};
use crate::memory::Memory;
use crate::provider::{
    ApiHeaders, Breakpoint, CachePlan, CacheTtl, Capability, ClientApi, MODEL_PLACEHOLDER,
    RequestLine, WireFormat, request_line, rules as provider_rules, which_instance,
};
use crate::render::{Engine, TemplateId, TemplateKind, is_template, rules as render_rules};
use crate::repo::{Instance, LayerKind, Repo};
use crate::resolve::{Merged, MergedTable, ResolvedProfile};
use crate::source::{FileId, Span, Spanned};
use crate::toml::{Kind, Node};

/// An agent that can be compiled, because it is complete and its templates parse.
pub struct Plan<'r> {
    /// The merged profile.
    pub profile: ResolvedProfile<'r>,
    /// The provider instance.
    pub instance: &'r Instance,
    /// The client API.
    pub api: ClientApi,
    /// The wire format.
    pub wire: WireFormat,
    /// The kind of conversation that the agent serves.
    pub kind: TaskKind,
    pub(super) endpoint: Spanned<&'r str>,
    default_model: Option<&'r str>,
    pub(super) prompt: Option<TemplateId>,
    /// The template for the text that a change of surroundings adds to the conversation.
    pub(crate) surroundings: Option<TemplateId>,
    pub(super) body: Vec<(Arc<str>, Part)>,
    pub(super) with_tools: bool,
    pub(super) cache: Option<CachePlan>,
    pub(super) known_prompts: KnownPrompts,
}

/// The part of a member whose location is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyOrValue {
    /// The member's key.
    Key,
    /// The member's value.
    Value,
}

/// A value in the body before rendering.
pub(super) enum Part {
    /// A value without templates.
    Constant(Value),
    /// A value without templates, as a member of the body.
    Member(Arc<Shared>),
    /// A template string, with the location of its literal.
    Template(TemplateId, Span),
    /// An array that contains templates.
    Array(Vec<Part>),
    /// A table that contains templates.
    Table(Vec<(Arc<str>, Part)>),
}

impl Part {
    /// Adds the templates in this part to a list.
    pub(super) fn add_templates(&self, templates: &mut Vec<TemplateId>) {
        match self {
            Part::Constant(_) | Part::Member(_) => {}
            Part::Template(id, _) => templates.push(*id),
            Part::Array(parts) => parts.iter().for_each(|part| part.add_templates(templates)),
            Part::Table(parts) => {
                parts
                    .iter()
                    .for_each(|(_, part)| part.add_templates(templates));
            }
        }
    }

    fn static_values(&self) -> usize {
        match self {
            Part::Constant(value) => json::count(value),
            Part::Member(shared) => json::count(shared.value()),
            Part::Template(..) => 1,
            Part::Array(parts) => 1 + parts.iter().map(Part::static_values).sum::<usize>(),
            Part::Table(parts) => {
                1 + parts
                    .iter()
                    .map(|(_, part)| part.static_values())
                    .sum::<usize>()
            }
        }
    }
}

impl<'r> Plan<'r> {
    /// Checks a resolved profile and compiles its templates. Returns `false` if there is an error
    /// that prevents bodies from being compiled.
    pub fn prepare(
        repo: &Repo,
        engine: &mut Engine,
        profile: &ResolvedProfile<'_>,
        findings: &mut Vec<Diagnostic>,
    ) -> bool {
        let before = findings.len();
        let mut usable = true;
        if let Some(prompt) = profile.string("system_prompt") {
            usable &= engine
                .add(
                    repo,
                    TemplateKind::Prompt,
                    prompt.value,
                    prompt.span,
                    findings,
                )
                .is_some();
        }
        if let Some(text) = profile.string("surroundings") {
            usable &= engine
                .add(repo, TemplateKind::Prompt, text.value, text.span, findings)
                .is_some();
        }
        if let Some(body) = profile.body() {
            walk_table(body, &mut |text, literal| {
                usable &= engine
                    .add(repo, TemplateKind::Body, text, literal, findings)
                    .is_some();
            });
        }
        usable &= check_settings(repo, profile, engine.suggestions(), findings);
        // Bodies can be compiled despite these errors.
        let leave_a_body = [
            &render_rules::IMPOSSIBLE_MEMBER,
            &render_rules::UNESCAPED,
            &provider_rules::UNSERVED_ENDPOINT,
        ];
        usable
            && !findings[before..].iter().any(|finding| {
                finding.severity == Severity::Error && !leave_a_body.contains(&finding.rule)
            })
    }

    /// Returns the plan of a profile that [`Plan::prepare`] accepted; `None` for any other profile.
    pub fn new(
        repo: &'r Repo,
        engine: &Engine,
        memory: &Memory,
        profile: ResolvedProfile<'r>,
    ) -> Option<Plan<'r>> {
        let instance = repo
            .instances
            .get(profile.string("provider_instance")?.value)?;
        let endpoint = profile.string("endpoint")?;
        let api = ClientApi::from_name(&instance.client_api.value)?;
        let wire = api.wire(endpoint.value);
        let prompt = match profile.string("system_prompt") {
            Some(prompt) => Some(engine.template(prompt.span)?),
            None => None,
        };
        let surroundings = match profile.string("surroundings") {
            Some(text) => Some(engine.template(text.span)?),
            None => None,
        };
        let mut completion = false;
        let mut body = table_parts(profile.body()?, &mut |literal| {
            let id = engine.template(literal)?;
            completion |= engine.reads(id).contains("prefix");
            Some(id)
        })?;
        for ((_, part), (_, merged)) in body.iter_mut().zip(profile.body()?.iter()) {
            part.share((merged.file != profile.profile.file).then_some(memory));
        }
        let default_model = profile.string("model").map(|model| model.value);
        let kind = if completion {
            TaskKind::Completion
        } else {
            TaskKind::Chat
        };
        let with_tools = profile.is_on("enable_tools");
        let cache = cache_plan(&profile, wire);
        let known_prompts = KnownPrompts::default();
        Some(Plan {
            profile,
            instance,
            api,
            wire,
            kind,
            endpoint,
            default_model,
            prompt,
            surroundings,
            body,
            with_tools,
            cache,
            known_prompts,
        })
    }

    /// Returns the number of values in a body that are not rendered by templates.
    pub(crate) fn static_values(&self) -> usize {
        self.body.iter().map(|(_, part)| part.static_values()).sum()
    }

    /// Returns the agent's name.
    pub fn name(&self) -> &'r Arc<str> {
        self.profile.name()
    }

    /// Returns the endpoint as written in the profile.
    pub fn endpoint(&self) -> &'r str {
        self.endpoint.value
    }

    /// Returns the profile's default model.
    pub fn default_model(&self) -> Option<&'r str> {
        self.default_model
    }

    /// Returns a request's model: the client's, the profile's, or the placeholder.
    pub fn model<'m>(&self, client: Option<&'m str>) -> &'m str
    where
        'r: 'm,
    {
        client.or(self.default_model).unwrap_or(MODEL_PLACEHOLDER)
    }

    /// Returns `true` if a request specifies its model, in the body or in the URL.
    pub fn carries_model(&self) -> bool {
        self.wire.has_model_in_body() || self.endpoint.value.contains(MODEL_PLACEHOLDER)
    }

    /// Returns the request without its body.
    pub fn request_line(&self, client_model: Option<&str>) -> RequestLine {
        request_line(
            self.instance,
            self.api,
            self.endpoint.value,
            self.model(client_model),
            self.headers(),
        )
    }

    /// Returns the profile's own headers, with names in lower case.
    fn headers(&self) -> impl Iterator<Item = (&'r str, &'r str)> {
        self.profile
            .headers()
            .map(|(name, value)| (name, value.value))
    }

    /// Returns the API version and the beta features that requests specify.
    pub fn api_headers(&self) -> ApiHeaders {
        self.api.api_headers(self.instance, self.headers())
    }

    /// Returns the location of a setting.
    pub(super) fn setting(&self, key: &str) -> Option<Span> {
        self.profile.merged.get(key).map(Merged::span)
    }

    /// Returns the location of a value in `[body]`, or of its key; `splices` identify the list
    /// templates that produced an element.
    pub(super) fn literal(
        &self,
        pointer: &Pointer,
        target: KeyOrValue,
        splices: &SpliceIndex<'_>,
    ) -> Span {
        self.find(pointer, splices).map_or_else(
            || self.whole(),
            |found| match (target, found.key) {
                (KeyOrValue::Key, Some(key)) => key,
                _ => found.value,
            },
        )
    }

    /// Returns the location where `unset` removed a member of `[body]` or its parent table; `None`
    /// if that is not why the member is missing.
    pub(crate) fn unset_at(&self, pointer: &Pointer) -> Option<Span> {
        let mut table = self.profile.body()?;
        for name in pointer.tokens() {
            match table.unset_at(&name) {
                Some(by) => return Some(by),
                None => table = table.get(&name)?.table()?,
            }
        }
        None
    }

    /// Returns the `unset` entry that drops a member of `[body]`; `None` for a value in a list,
    /// which no entry can identify.
    pub(crate) fn unset_entry(&self, pointer: &Pointer) -> Option<String> {
        let mut table = Some(self.profile.body()?);
        let mut path = Vec::new();
        for name in pointer.tokens() {
            table = table?.get(&name)?.table();
            path.push(if name.contains('.') {
                format!("\"{name}\"")
            } else {
                name
            });
        }
        let path = path.join(".");
        let quote = if path.contains('"') { '\'' } else { '"' };
        (!path.is_empty()).then(|| format!("{quote}{path}{quote}"))
    }

    /// Returns the location of a value in `[body]`, and the locations in earlier levels of the
    /// chain that it overrides, the nearest first.
    pub(super) fn levels(&self, pointer: &Pointer, splices: &SpliceIndex<'_>) -> (Span, Vec<Span>) {
        self.find(pointer, splices).map_or_else(
            || (self.whole(), Vec::new()),
            |found| (found.nearest, found.overrode),
        )
    }

    fn find(&self, pointer: &Pointer, splices: &SpliceIndex<'_>) -> Option<Literal> {
        let tokens: Vec<String> = pointer.tokens().collect();
        literal_in(self.profile.body()?, &tokens, splices, &|file| {
            self.layer_of(file)
        })
    }

    fn layer_of(&self, file: FileId) -> Option<LayerKind> {
        self.profile
            .chain
            .iter()
            .find(|profile| profile.file == file)
            .map(|profile| profile.layer)
    }

    /// Returns the location of the whole body.
    fn whole(&self) -> Span {
        self.profile
            .merged
            .get("body")
            .map_or_else(|| self.profile.name_span(), Merged::key_span)
    }
}

/// A value in `[body]`.
struct Literal {
    key: Option<Span>,
    value: Span,
    /// The location in the nearest level.
    nearest: Span,
    overrode: Vec<Span>,
}

/// Finds the deepest member on the way to a pointer. For a table that a child profile reopens, the
/// location is its first opening among files of the same layer.
fn literal_in(
    table: &MergedTable<'_>,
    tokens: &[String],
    splices: &SpliceIndex<'_>,
    layer: &dyn Fn(FileId) -> Option<LayerKind>,
) -> Option<Literal> {
    let (first, rest) = tokens.split_first()?;
    let merged = table.get(first)?;
    let deeper = merged
        .table()
        .filter(|_| !rest.is_empty())
        .and_then(|inner| literal_in(inner, rest, splices, layer));
    let begun = merged.beginning(|file| layer(file) == layer(merged.file));
    Some(deeper.unwrap_or_else(|| {
        match rest {
            [] => Literal {
                key: Some(Span::new(begun.file, begun.key.span.clone())),
                value: Span::new(begun.file, begun.node.span.clone()),
                nearest: merged.span(),
                overrode: merged
                    .overrode
                    .iter()
                    .map(|level| Span::new(level.file, level.node.span.clone()))
                    .collect(),
            },
            rest => element(begun.file, begun.node, rest, splices),
        }
    }))
}

fn element(file: FileId, node: &Node, tokens: &[String], splices: &SpliceIndex<'_>) -> Literal {
    let child = tokens
        .split_first()
        .and_then(|(first, rest)| match &node.kind {
            Kind::Array(_) => Some((
                None,
                splices.element(file, node, first.parse().ok()?)?,
                rest,
            )),
            Kind::Table(table) => table
                .entry(first)
                .map(|(key, node)| (Some(key), node, rest)),
            _ => None,
        });
    match child {
        Some((key, node, [])) => Literal {
            key: key.map(|key| Span::new(file, key.span.clone())),
            value: Span::new(file, node.span.clone()),
            nearest: Span::new(file, node.span.clone()),
            overrode: Vec::new(),
        },
        Some((_, node, rest)) => element(file, node, rest, splices),
        None => {
            let value = Span::new(file, node.span.clone());
            Literal {
                key: None,
                value,
                nearest: value,
                overrode: Vec::new(),
            }
        }
    }
}

fn cache_plan(profile: &ResolvedProfile<'_>, wire: WireFormat) -> Option<CachePlan> {
    if !profile.is_on("cache_prompt") || !wire.has_cache_breakpoints() {
        return None;
    }
    let breakpoints = profile
        .strings("cache_breakpoints")
        .into_iter()
        .filter_map(Breakpoint::from_name)
        .collect();
    let ttl = match profile.string("cache_ttl").map(|ttl| ttl.value) {
        Some("1h") => CacheTtl::OneHour,
        _ => CacheTtl::FiveMinutes,
    };
    Some(CachePlan { breakpoints, ttl })
}

fn walk_table(table: &MergedTable<'_>, visit: &mut impl FnMut(&str, Span)) {
    for (_, merged) in table.iter() {
        match merged.table() {
            Some(inner) => walk_table(inner, visit),
            None => walk_node(merged.file, merged.node, visit),
        }
    }
}

fn walk_node(file: FileId, node: &Node, visit: &mut impl FnMut(&str, Span)) {
    match &node.kind {
        Kind::String(text) if is_template(text) => visit(text, Span::new(file, node.span.clone())),
        Kind::Array(elements) => elements
            .iter()
            .for_each(|element| walk_node(file, element, visit)),
        Kind::Table(table) => table
            .entries
            .iter()
            .for_each(|(_, node)| walk_node(file, node, visit)),
        _ => {}
    }
}

type Find<'f> = dyn FnMut(Span) -> Option<TemplateId> + 'f;

fn table_parts(table: &MergedTable<'_>, find: &mut Find<'_>) -> Option<Vec<(Arc<str>, Part)>> {
    let parts = table.iter().map(|(key, merged)| {
        let part = match merged.table() {
            Some(inner) => Part::table(table_parts(inner, find)?),
            None => node_part(merged.file, merged.node, find)?,
        };
        Some((Arc::from(key), part))
    });
    parts.collect()
}

fn node_part(file: FileId, node: &Node, find: &mut Find<'_>) -> Option<Part> {
    Some(match &node.kind {
        Kind::String(text) if is_template(text) => {
            let literal = Span::new(file, node.span.clone());
            Part::Template(find(literal)?, literal)
        }
        Kind::String(text) => Part::Constant(text.as_str().into()),
        Kind::Integer(value) => Part::Constant((*value).into()),
        Kind::Float(value) => Part::Constant(serde_json::Number::from_f64(*value)?.into()),
        Kind::Boolean(value) => Part::Constant((*value).into()),
        Kind::Datetime(_) => return None,
        Kind::Array(elements) => {
            let parts = elements
                .iter()
                .map(|element| node_part(file, element, find));
            Part::array(parts.collect::<Option<_>>()?)
        }
        Kind::Table(table) => {
            let parts = table.entries.iter();
            let parts = parts.map(|(key, node)| {
                Some((Arc::from(key.name.as_str()), node_part(file, node, find)?))
            });
            Part::table(parts.collect::<Option<_>>()?)
        }
    })
}

impl Part {
    fn array(parts: Vec<Part>) -> Part {
        match parts.iter().all(|part| matches!(part, Part::Constant(_))) {
            true => Part::Constant(parts.into_iter().filter_map(Part::into_constant).collect()),
            false => Part::Array(parts),
        }
    }

    fn table(parts: Vec<(Arc<str>, Part)>) -> Part {
        match parts
            .iter()
            .all(|(_, part)| matches!(part, Part::Constant(_)))
        {
            true => {
                let members = parts
                    .into_iter()
                    .filter_map(|(key, part)| Some((key.to_string(), part.into_constant()?)));
                Part::Constant(Value::Object(members.collect()))
            }
            false => Part::Table(parts),
        }
    }

    /// Turns a constant into a value that all bodies share. With a cache, all agents that inherit
    /// the value also share it.
    fn share(&mut self, memory: Option<&Memory>) {
        if let Part::Constant(value) = self {
            let value = value.take();
            *self = Part::Member(match memory {
                Some(memory) => Shared::same(value, memory),
                None => Arc::new(Shared::new(value)),
            });
        }
    }

    fn into_constant(self) -> Option<Value> {
        match self {
            Part::Constant(value) => Some(value),
            _ => None,
        }
    }
}

/// Reports mistakes in the settings of one agent. Inherited mistakes are reported where they were
/// made. Returns `false` if the agent cannot be used, even if the reason is reported elsewhere.
fn check_settings(
    repo: &Repo,
    profile: &ResolvedProfile<'_>,
    suggestions: &mut Suggestions,
    findings: &mut Vec<Diagnostic>,
) -> bool {
    let (Some(name), Some(endpoint)) = (
        profile.string("provider_instance"),
        profile.string("endpoint"),
    ) else {
        return false;
    };
    if profile.body().is_none() {
        return false;
    }
    let Some(instance) = repo.instances.get(name.value) else {
        if !repo.instance_files(name.value).is_empty() {
            return false;
        }
        let message = format!("there is no provider instance `{}`", name.value);
        let known = repo.instances.keys().map(AsRef::as_ref);
        let spelt = suggestions.did_you_mean(name.value, known);
        let help = spelt.unwrap_or_else(|| which_instance(name.value, &repo.instances));
        findings.push(
            Diagnostic::new(&provider_rules::UNKNOWN_INSTANCE, name.span, message).help(help),
        );
        return false;
    };
    let Some(api) = ClientApi::from_name(&instance.client_api.value) else {
        return false;
    };
    check_api(profile, api, api.wire(endpoint.value), findings);
    let is_new_instance = level(name.span, profile) < level(endpoint.span, profile);
    let wrong = endpoint::wrong(instance, api, name.span, &endpoint);
    findings.extend(wrong.map(|finding| match is_new_instance {
        true => finding.told_at(name.span, "this is inherited"),
        false => finding,
    }));
    true
}

/// Returns the level in the chain that contains a location. If a level below the endpoint's level
/// sets an instance, that instance is at fault.
fn level(span: Span, profile: &ResolvedProfile<'_>) -> Option<usize> {
    profile
        .chain
        .iter()
        .position(|level| level.file == span.file)
}

fn check_api(
    profile: &ResolvedProfile<'_>,
    api: ClientApi,
    wire: WireFormat,
    findings: &mut Vec<Diagnostic>,
) {
    for capability in [Capability::Tools, Capability::Thinking] {
        let Some(switch) = profile
            .switch(capability.key())
            .filter(|switch| switch.value)
        else {
            continue;
        };
        if !api.can(wire, capability) {
            let (api, wire) = (api.name(), wire.name());
            let message = format!(
                "`{}` is on, but {api} does not support {} ({wire})",
                capability.key(),
                capability.name()
            );
            let finding = Diagnostic::new(&provider_rules::CAPABILITY, switch.span, &*message)
                .in_sense(Some(message));
            findings.push(finding.help(format!(
                "write `{} = false`, or use another provider",
                capability.key()
            )));
        }
    }
    if let Some(cache) = profile
        .switch("cache_prompt")
        .filter(|it| it.value && !wire.has_cache_breakpoints())
    {
        let message = format!("`cache_prompt` has no effect with {}", wire.name());
        let finding = Diagnostic::new(&provider_rules::NO_PROMPT_CACHE, cache.span, &*message)
            .in_sense(Some(message));
        findings.push(
            finding.help("remove it; to turn off an inherited value, write `cache_prompt = false`"),
        );
    }
}
