//! Finds the fate of a piece of a conversation.

use super::agent::{AgentFlow, kinds};
use super::judged::judged_members;
use crate::compare::limits;
use crate::compile::contexts::LoadedContext;
use crate::compile::explain::places::Places;
use crate::compile::explain::{Explainer, Explanation, ValueSource};
use crate::compile::surroundings;
use crate::diag::Diagnostic;
use crate::flow::{Fate, Loss};
use crate::json::{self, Pointer};
use crate::resolve::ProfileId;
use crate::source::Span;
use crate::unit::MemberRef;

/// The fate of a piece of a conversation.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ContentFate {
    /// `true` if the context has a value at the location.
    pub is_there: bool,
    /// The values in the body that contain the piece or were computed from it, in body order.
    pub values: Vec<Explanation>,
    /// The losses, each with its reason as a sentence.
    pub lost: Vec<String>,
}

impl Explainer<'_> {
    /// Finds the fate of a piece of a context in one of an agent's bodies. The pointer refers to
    /// the context file. Returns `None` if there is no such body.
    ///
    /// # Errors
    ///
    /// Returns the findings that prevent the body from being compiled.
    pub fn content_fate(
        &self,
        id: ProfileId,
        context: &str,
        model: Option<&str>,
        wanted: &Pointer,
    ) -> Option<Result<ContentFate, Vec<Diagnostic>>> {
        let explained = match self.explain(id, context, model, None)? {
            Ok(explained) => explained,
            Err(findings) => return Some(Err(findings)),
        };
        let (plan, loaded) = (self.compiler.plan(id)?, self.compiler.context(context)?);
        let Some(place) = self.place_in_context(loaded, wanted) else {
            return Some(Ok(ContentFate {
                is_there: false,
                values: Vec::new(),
                lost: Vec::new(),
            }));
        };
        let of_it = explained
            .values
            .into_iter()
            .filter(|value| value.sources.iter().any(|it| is_of(it, place)));
        let places = Places::new(self.compiler, &plan, loaded);
        Some(Ok(ContentFate {
            is_there: true,
            values: of_it.collect(),
            lost: lost_at(&places, model, place),
        }))
    }

    /// Returns a value's location in the context file. There, blocks are called `content`, and a
    /// message that consists of text has no list of blocks.
    fn place_in_context(&self, loaded: &LoadedContext, wanted: &Pointer) -> Option<Span> {
        let file = loaded.context.file;
        let source = self.compiler.sources().get(file);
        let tree = json::parse_tree(source.text()).ok()?;
        let wanted = wanted
            .as_str()
            .replace("/content_blocks", "/content")
            .replace("/blocks", "/content");
        let as_text = wanted
            .split_once("/content/")
            .map(|(message, _)| format!("{message}/content"));
        let mut pointers = [Some(wanted), as_text].into_iter().flatten();
        let found = pointers.find_map(|pointer| tree.locate(&Pointer::parse(&pointer)))?;
        Some(Span::new(file, found.span.clone()))
    }
}

/// Returns `true` if a source contains a location, or a location contains the source.
fn is_of(source: &ValueSource, place: Span) -> bool {
    let mut spans = source.span.iter().chain(&source.made_of);
    spans.any(|span| place.contains(*span) || span.contains(place))
}

/// Returns the losses in a body for a location in a context, each with its reason as a sentence.
fn lost_at(places: &Places<'_>, model: Option<&str>, place: Span) -> Vec<String> {
    let Places {
        compiler,
        plan,
        loaded,
    } = *places;
    let renderer = loaded.renderer(&compiler.engine);
    let Ok(version) = surroundings::version(compiler, plan, loaded, &renderer).result else {
        return Vec::new();
    };
    let request = loaded.request(plan, &version, model);
    let made = plan.made(compiler.sources(), &renderer, &request);
    let Ok(body) = made.body else {
        return Vec::new();
    };
    let members: Vec<MemberRef<'_>> = body.members().collect();
    let judged = judged_members(plan, &request, made.prompt.as_ref(), &members);
    let agent = AgentFlow::new(compiler, plan);
    let wanted = judged.losses.iter().filter(|loss| {
        places
            .data_span(&loss.at)
            .is_some_and(|span| place.contains(span))
    });
    wanted.map(|loss| why(places, &agent, loss)).collect()
}

/// Describes a loss. If the wire format or the author accounts for the loss, the description says
/// why it needs no fix.
fn why(places: &Places<'_>, agent: &AgentFlow<'_>, loss: &Loss) -> String {
    let Places { compiler, plan, .. } = *places;
    let (what, is_one) = loss.kind.phrase();
    let fate = match (&loss.fate, is_one) {
        (Fate::Altered(how), _) => format!("{what}: {how}"),
        (Fate::Duplicated, _) => format!("{what}: it appears twice"),
        (Fate::Reordered, _) => format!("{what}: it has moved"),
        (Fate::Dropped, true) => format!("{what} is not in the body"),
        (Fate::Dropped, false) => format!("{what} are not in the body"),
    };
    let mut limits = limits::all()
        .iter()
        .filter(|limit| limit.holds(plan.wire, plan.api));
    if let Some(limit) = limits.find(|limit| kinds(loss).any(|kind| limit.kinds.contains(&kind))) {
        return format!("{fate}. {} ({})", limit.reason, limit.source);
    }
    match agent.declaration(loss) {
        Some(declared) => format!(
            "{fate}: `leaves_out` at {}",
            compiler.sources().describe(declared.span)
        ),
        None => fate,
    }
}
