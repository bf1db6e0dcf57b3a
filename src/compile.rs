//! The entry point: compiles a repository to bodies and findings.
//!
//! Input: the files of both layers. Output: a [`Compiler`], which has read and checked everything
//! that does not depend on a conversation. [`Compiler::report`] compiles all selected bodies in
//! parallel and returns the findings as a [`Report`]. [`Compiler::report_each`] passes the bodies
//! of one agent at a time to a visitor.
//!
//! This page covers everything that most hosts need. Each of these modules has a type that borrows
//! the compiler:
//!
//! | module | for |
//! | --- | --- |
//! | [`selection`] | programs that let users select agents and contexts, or that use shards |
//! | [`policy`] | CI gates, which report lowered checks and allowed findings |
//! | [`baseline`] | CI gates for repositories that already have findings |
//! | [`live`] | hosts that compile bodies from their own conversations and send them |
//! | [`lint`] | programs that check files of bodies from other programs |
//! | [`compare`] | programs that compare bodies with golden files or an older side |
//! | [`explain`] | editors and reviewers, which show where a value in a body comes from |
//! | [`flow`] | editors and reviewers, which show where a piece of a conversation went |
//! | [`impact`] | editors and reviewers, which show the values that a location in a file affects |
//! | [`reach`] | CI, which checks only the agents that a change affects |
//! | [`route`] | editors, which choose the agent for a file |
//! | [`mend`] | tools that apply fixes |
//! | [`coverage`] | tools that show the parts of templates that no context reaches |
//!
//! The modules below are in the order of their imports: each uses only those above it.

mod budget;
pub(crate) mod rules;
mod environment;
mod turns;
mod contexts;
mod leaves_out;
mod compiler;
mod surroundings;
pub mod selection;
mod unmade;
pub mod reach;
pub mod policy;
mod judge;
mod knowledge;
mod pairing;
pub mod explain;
mod finding;
pub mod flow;
mod growth;
mod budgets;
mod run;
mod report;
pub mod baseline;
pub mod lint;
pub mod live;
pub mod coverage;
pub mod compare;
pub mod route;
pub mod impact;
pub mod mend;
mod load;

use std::sync::Arc;

use serde_json::Value;

pub use self::compiler::Compiler;
pub(crate) use self::compiler::STACK_BYTES;
pub use self::contexts::LoadedContext;
pub use self::environment::PromptEnvironment;
pub(crate) use self::judge::usual_server;
pub use self::judge::{Judge, LintTarget, Linted};
pub(crate) use self::knowledge::ModelKnowledge;
pub(crate) use self::policy::MOST_OF_A_RULE;
#[doc(inline)]
pub use self::policy::PolicyOptions;
#[cfg(feature = "cli")]
pub(crate) use self::policy::{check_allowed, check_code};
pub(crate) use self::report::Reporter;
pub use self::report::{Report, Summary};
pub use self::rules::{all_rules, rule};
pub use self::run::{AgentBodies, Run};
#[doc(inline)]
pub use self::selection::Selection;

#[doc(inline)]
pub use crate::render::Folders;
#[doc(inline)]
pub use crate::repo::{Date, LoadOptions};
#[doc(inline)]
pub use crate::resolve::ProfileId;
#[doc(inline)]
pub use crate::unit::Body;

use self::pairing::Pairing;
use self::run::Runner;
use self::selection::Chosen;
use crate::diag::{Diagnostic, Findings};
use crate::lint::Unrecognised;
use crate::provider::WireFormat;
use crate::world::World;

impl Compiler {
    /// Reads and checks a repository. Findings do not stop compilation; everything that can be
    /// compiled is compiled.
    pub fn load(own: Arc<dyn World>, bundled: Arc<dyn World>, options: LoadOptions) -> Compiler {
        load::load(own, bundled, options, None)
    }

    /// Reads and checks a repository, and prepares only the agents whose names `wanted` accepts.
    /// Other agents cannot be compiled. If there are findings, or if `wanted` accepts no name, all
    /// agents are prepared, so that findings name the agents that they reach.
    #[cfg(feature = "cli")]
    pub(crate) fn load_some(
        own: Arc<dyn World>,
        bundled: Arc<dyn World>,
        options: LoadOptions,
        wanted: Option<&dyn Fn(&str) -> bool>,
    ) -> Compiler {
        load::load(own, bundled, options, wanted)
    }

    /// Compiles all selected bodies, and reports the findings from loading and from the bodies.
    pub fn report(&self, selection: &Selection, options: &PolicyOptions) -> Report {
        self.report_each(selection, options, |_| ()).0
    }

    /// Works like [`Compiler::report`], but also passes the bodies of each agent to `visit`, and
    /// returns the results of `visit`, sorted by agent name. `visit` is called on worker threads.
    pub fn report_each<R: Send>(
        &self,
        selection: &Selection,
        options: &PolicyOptions,
        visit: impl Fn(&AgentBodies<'_>) -> R + Sync,
    ) -> (Report, Vec<R>) {
        Reporter::new(self, selection, options).each(visit)
    }

    /// Compiles all selected bodies. `visit` is called on worker threads, once for each agent.
    /// Unlike [`Compiler::report`], this applies no policy to the findings, and excludes the
    /// findings from loading.
    pub fn run<R: Send>(
        &self,
        selection: &Selection,
        visit: impl Fn(&AgentBodies<'_>) -> R + Sync,
    ) -> Run<R> {
        Runner::new(Chosen::new(self, selection)).run(Findings::default(), visit)
    }

    /// Compiles one body of one agent. Returns `None` if the agent is unusable or the context does
    /// not fit it, and `Err` with the findings that prevent compilation.
    pub fn body(
        &self,
        id: ProfileId,
        context: &str,
        model: Option<&str>,
    ) -> Option<Result<Body, Vec<Diagnostic>>> {
        let pairing = match Pairing::of(self, id, context)? {
            Ok(pairing) => pairing,
            Err(findings) => return Some(Err(findings)),
        };
        let request = pairing.request(model);
        Some(pairing.body(&request))
    }

    /// Checks a request body from any source against the schema of its wire format and the rules of
    /// its server.
    ///
    /// Without a wire format, the format is recognised by the shape of the body. If the target has
    /// an instance, only its formats are considered.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use reqc::compile::{Compiler, LintTarget, LoadOptions};
    /// use reqc::system::Embedded;
    /// use reqc::world::MemoryWorld;
    /// use serde_json::json;
    ///
    /// let nothing = Arc::new(MemoryWorld::default());
    /// let compiler = Compiler::load(nothing, Arc::new(Embedded::bundled()), LoadOptions::default());
    /// let body = json!({
    ///     "model": "claude-sonnet-5-5",
    ///     "max_tokens": 1000,
    ///     "messages": [{"role": "user", "content": [
    ///         {"type": "tool_result", "tool_use_id": "toolu_1", "content": "18 degrees"}
    ///     ]}]
    /// });
    /// let linted = compiler.lint(&body, None, &LintTarget::default())?;
    /// assert_eq!(linted.wire.name(), "anthropic-messages");
    /// assert_eq!(linted.problems[0].rule.code, "protocol/orphan-result");
    /// assert_eq!(linted.problems[0].pointer.as_str(), "/messages/0/content/0");
    /// # Ok::<(), reqc::lint::Unrecognised>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the wire format is not given and cannot be recognised.
    pub fn lint(
        &self,
        body: &Value,
        wire: Option<WireFormat>,
        target: &LintTarget<'_>,
    ) -> Result<Linted, Unrecognised> {
        Judge::new(self).lint(body, wire, target)
    }
}

#[cfg(test)]
mod tests;
