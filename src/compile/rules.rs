//! The list of all rules, and the rules about a repository as a whole.

use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use super::budget;
use crate::context::{self, Context};
use crate::diag::{Diagnostic, Rule, Suggestions};
use crate::profile::Profile;
use crate::provider::rules::UNKNOWN_INSTANCE;
use crate::provider::which_instance;
use crate::repo::{Glob, Repo, rules as repo_rules};
use crate::resolve::{Hierarchy, ProfileId};
use crate::source::{SourceText, Sources, Span};
use crate::unit::Plan;

crate::diag::rules! {
    SLUG_COLLISION = Error "golden/slug-collision", "two agents would write to the same golden folder",
        "Golden folders are named after the agent: in lower case, with every run of characters other than ASCII letters and \
         digits replaced by one `-`. `GPT (mini)` and `gpt mini-` share a folder. Rename one of the agents.";
    NO_BODY = Error "select/no-body", "a run compiles no body",
        "A run that compiles no body proves nothing, so it fails. Either every profile is abstract, or no context has the \
         agents' kind: completion agents need a completion, all others a chat.\n\n\
         * wrong: `reqc check --agent Codestral --context plain-turn`, where Codestral is a completion agent\n\
         * right: `reqc check --agent Codestral --context completion-prefix-suffix`\n\n\
         Select a context of the right kind (`reqc contexts` shows the kind of each), or add an agent that extends the \
         abstract profiles. This finding cannot be suppressed.";
    UNUSABLE_SLUG = Error "golden/unusable-name", "an agent's golden folder cannot be created on every system",
        "Golden folders are named after the agent. On Windows, `con`, `prn`, `aux`, `nul`, `com1` to `com9` and `lpt1` to `lpt9` \
         are devices, not folders, and a name can have at most 255 bytes. A repository with such a folder could not be checked out \
         on every system.\n\n\
         * wrong: `name = \"Aux\"`\n\
         * right: `name = \"Auxiliary\"`";
    ABSTRACT_SELECTED = Error "select/abstract", "an abstract profile is selected",
        "An abstract profile is incomplete by design, so it has no body of its own. Select one of the agents \
         that extend it; `reqc tree` shows them, and `reqc show NAME` also works for abstract profiles.";
    UNKNOWN_AGENT = Warning "config/unknown-agent", "`models.toml` names an agent that does not exist",
        "The keys of `models.toml` are names of agents, in the repository or bundled. The entry has no effect.";
    UNKNOWN_IN_ROSTER = Error "roster/unknown-agent", "a roster names an agent that does not exist or is abstract",
        "A roster lists agents, in the repository or bundled, but no abstract profiles. An unknown name is skipped, so \
         files silently go to an agent further down, or to none.\n\n\
         `reqc list` shows the repository's agents; `reqc list --bundled` also shows the bundled ones.";
    UNREACHABLE_IN_ROSTER = Warning "roster/unreachable-agent", "an agent in a roster never receives a file",
        "A file goes to the first agent in a roster whose `match` accepts it. An agent without `match` accepts everything, so \
         the agents after it are never tried.\n\n\
         * wrong: `agents = [\"General Chat\", \"Rust Chat\"]`\n\
         * right: `agents = [\"Rust Chat\", \"General Chat\"]`";
    UNKNOWN_CONTEXT = Warning "config/unknown-context", "a pattern in `golden.contexts` matches no context",
        "The pattern selects nothing, so no golden files are kept for the intended contexts. Usually it is misspelled, or the \
         context was renamed. `reqc contexts` lists the names.";
    UNUSED_EXTENSION = Warning "config/unused-extension", "an [[extension]] entry allows nothing",
        "No body for the provider instance, or for an instance that extends it, contains the field that the entry allows. Usually a \
         pointer is misspelled, or the profiles no longer have the field. An entry that is no longer needed could hide a later \
         mistake.\n\n\
         This is reported only if all agents are compiled in all contexts.";
    NOT_LOWERABLE = Warning "config/not-lowerable", "a rule that must stay an error is lowered or suppressed",
        "Some errors mean that an agent has no body, or that golden files differ from the bodies that are sent. If they could be \
         suppressed, a run could pass although it compiled less than it appears to. The entry has no effect.\n\n\
         You can lower warnings and findings about the content of bodies, such as `schema/unknown-field`.";
    UNUSED = Warning "repo/unused", "a role, partial, context, provider instance or abstract profile is unused",
        "An unused file is usually a leftover, or its name is misspelled where it should be used. Reviewing and updating it is wasted \
         effort.\n\n\
         * A role (`roles/**/*.md`) that no `agent_role('…')` or `read_file(':/roles/…')` refers to. If a template computes a role's name, \
         no role is reported.\n\
         * A partial that no profile and no used partial refers to.\n\
         * A context whose kind no agent has, such as a code completion if all agents chat.\n\
         * A provider instance that no profile and no other instance refers to.\n\
         * An abstract profile that no profile extends. A repository with only abstract profiles is a library for other repositories, so \
         nothing is reported.\n\n\
         Bundled files are never reported. While there are errors, nothing is reported, because a misspelled name would be reported \
         twice. A library that also has its own agents sets `\"repo/unused\" = \"off\"` under `[rules]`, or names the files in an \
         `[[allow]]` entry.";
    TOO_MUCH_WORK = Error "run/too-much-work", "an agent or a run exceeds the work limit",
        "Every template has its own limits; the limits here apply to all templates together, so that an untrusted repository cannot keep \
         a build busy for hours. An agent may use at most 1,000 million units of work in all its contexts, and a run at most 8,000 \
         million plus 250,000 per body. A bundled agent uses 120,000 per body on average; `template/too-much-work` explains the unit. The \
         count is the same on every machine: the agents' work is added up in the order of their names. In addition, the bodies of one \
         agent may total at most 128 MiB, and all agents together may inherit at most 10,000,000 values.\n\n\
         Look for templates that process much more data than they send, or compile fewer agents or contexts at a time with `reqc check \
         --agent NAME`.";
    UNKNOWN_RULE = Warning "config/unknown-rule", "`reqc.toml` names a rule that does not exist",
        "`reqc rule` lists all codes; `family/*` means a whole family. The entry has no effect.\n\n\
         * wrong: `\"unknown-key\" = \"error\"`\n\
         * right: `\"key/unknown\" = \"error\"`";
    INVISIBLE = Warning "text/invisible", "a file or a name contains an invisible character",
        "Models read direction marks, zero-width characters, tags, blank symbols and control characters, but the reviewer of a pull \
         request cannot see them, so the reviewed text differs from the text that is sent. In names, such characters make two different \
         things look the same.\n\n\
         Characters in their proper place are not reported: right-to-left letters, joiners in scripts that need them, and \
         joiners and selectors in emoji. Conversations in contexts are not checked either.\n\n\
         * wrong: `name = \"Re<U+200B>viewer\"`, where `<U+200B>` is the character itself\n\
         * right: `name = \"Reviewer\"`\n\n\
         If the character is intended, write it as an escape, so that it can be seen: `\"\\u202E\"` in a TOML string, `{{ \
         \"\\u202E\" }}` in a template.";
    CONFLICT = Error[lowerable] "text/conflict-marks", "a file contains conflict markers from an unfinished merge",
        "git writes `<<<<<<<`, `=======` and `>>>>>>>` around two versions of lines that it could not merge. In a prompt or a \
         partial, they cause no error: the model reads both versions and the markers.\n\n\
         * wrong: a role with `<<<<<<< HEAD` at the start of a line\n\
         * right: the intended version\n\n\
         A prompt that explains merge conflicts may show them: indent them, or allow the finding for the file with an `[[allow]]` \
         entry.";
    BUDGET_EXCEEDED = Error[lowerable] "budget/exceeded", "a body exceeds its budget",
        "A `[[budget]]` entry in `reqc.toml` limits the tokens, bytes or tools in the bodies of some agents, or sets the share of a body \
         that must come from the cache. Each agent gets one finding for its worst body. The finding points to the limit, and also \
         shows the source of the most expensive part of that body.\n\n\
         Tokens are counted by the model's own tokenizer if this build has it, and estimated otherwise: the message then says *about*. \
         `reqc render AGENT --context NAME --tokens` shows the tokens of each part.\n\n\
         * wrong: `tokens = 8000`, and a system prompt of 9,000 tokens\n\
         * right: a shorter prompt, or `tokens = 10000` in a reviewed change";
    UNUSED_BUDGET = Warning "budget/unused", "a [[budget]] entry applies to no body",
        "No agent matches `agent`, or no context matches `context`, so the budget limits nothing. Usually a pattern is misspelled, or \
         the agent was renamed.\n\n\
         * wrong: `agent = \"Reviewr*\"`\n\
         * right: `agent = \"Reviewer*\"`";
}

/// Returns every rule, sorted by code.
pub fn all_rules() -> Vec<&'static Rule> {
    ALL.clone()
}

static ALL: LazyLock<Vec<&'static Rule>> = LazyLock::new(|| {
    let families = [
        RULES,
        repo_rules::RULES,
        crate::profile::RULES,
        crate::resolve::rules::RULES,
        context::rules::RULES,
        crate::render::rules::RULES,
        crate::provider::rules::RULES,
        crate::unit::rules::RULES,
        crate::check::prefix::rules::RULES,
        crate::check::schema::rules::RULES,
        crate::flow::rules::RULES,
        crate::golden::rules::RULES,
        crate::lint::rules::RULES,
        crate::lint::BATCH_RULES,
        crate::panics::RULES,
    ];
    let mut rules: Vec<&Rule> = families
        .into_iter()
        .flatten()
        .copied()
        .chain(crate::check::protocol::rules())
        .collect();
    rules.sort_by_key(|rule| rule.code);
    rules
});

/// Returns the rule with this code; `None` if there is none.
pub fn rule(code: &str) -> Option<&'static Rule> {
    ALL.iter().copied().find(|rule| rule.code == code)
}

pub(super) fn empty(sources: &mut Sources) -> Diagnostic {
    let file = sources.add("agents/", SourceText::salvage(b""));
    let finding = Diagnostic::new(
        &repo_rules::EMPTY,
        Span::file_start(file),
        "there is no profile to compile",
    );
    finding.help("add profiles to `agents/`, start with `reqc init`, or compile the bundled ones with `--bundled`")
}

/// Returns findings about names in `models.toml` that no profile has.
pub(super) fn unknown_agents(repo: &Repo, hierarchy: &Hierarchy) -> Vec<Diagnostic> {
    let unknown = repo
        .models
        .iter()
        .filter(|(name, _)| hierarchy.by_name(name).is_none());
    let mut suggestions = Suggestions::default();
    let findings = unknown.map(|(name, model)| {
        let help = suggestions
            .did_you_mean(name, hierarchy.names())
            .unwrap_or_else(|| "`reqc list` shows all agents".to_owned());
        Diagnostic::new(
            &UNKNOWN_AGENT,
            model.name,
            format!("there is no agent `{name}`"),
        )
        .help(help)
    });
    findings.collect()
}

/// Returns findings about `[[extension]]` entries for instances that do not exist.
pub(super) fn unknown_instances(repo: &Repo) -> Vec<Diagnostic> {
    let unknown = repo
        .config
        .extensions
        .iter()
        .filter(|entry| !repo.instances.contains_key(&*entry.instance));
    let mut suggestions = Suggestions::default();
    let findings = unknown.map(|entry| {
        let known = repo.instances.keys().map(AsRef::as_ref);
        let spelt = suggestions.did_you_mean(&entry.instance, known);
        let message = format!("there is no provider instance `{}`", entry.instance);
        let help = spelt.unwrap_or_else(|| which_instance(&entry.instance, &repo.instances));
        Diagnostic::new(&UNKNOWN_INSTANCE, entry.span, message).help(help)
    });
    findings.collect()
}

/// Returns the finding about an `[[extension]]` entry that allowed nothing; `used` contains the
/// provider instances of all agents, and the instances that they extend.
pub(super) fn unused_extension(repo: &Repo, place: Span, used: &BTreeSet<Arc<str>>) -> Diagnostic {
    let message = "no body contains anything that this entry allows";
    let finding = Diagnostic::new(&UNUSED_EXTENSION, place, message);
    let mut entries = repo.config.extensions.iter();
    let entry = entries.find(|entry| entry.span == place);
    match entry.filter(|entry| !used.contains(&entry.instance)) {
        Some(entry) => finding.help(format!(
            "no agent uses the provider instance `{}`: name an instance that an agent uses (see `reqc list`), or one that such an instance extends",
            entry.instance
        )),
        None => finding.help("remove it, or fix its pointers"),
    }
}

/// Returns findings about patterns in `golden.contexts` that match nothing. A context that could
/// not be loaded has a finding in its own file.
pub(super) fn unknown_contexts(repo: &Repo, contexts: &[Context]) -> Vec<Diagnostic> {
    let globs = repo
        .config
        .golden_contexts
        .iter()
        .flat_map(|globs| &globs.value);
    let left_out = || {
        context::left_out(repo, |file| {
            contexts.iter().any(|context| context.file == file)
        })
    };
    let left_out = LazyCell::new(left_out);
    let is_meant = |glob: &Glob| left_out.iter().any(|(name, _)| glob.is_match(name));
    let is_used =
        |glob: &Glob| contexts.iter().any(|context| glob.is_match(&context.name)) || is_meant(glob);
    let unused = globs.filter(|glob| !is_used(&glob.value));
    let mut suggestions = Suggestions::default();
    let findings = unused.map(|glob| {
        let pattern = glob.value.text();
        let help = suggestions.did_you_mean(
            pattern,
            contexts.iter().map(|context| context.name.as_ref()),
        );
        let finding = Diagnostic::new(
            &UNKNOWN_CONTEXT,
            glob.span,
            format!("no context matches `{pattern}`"),
        );
        finding.help(help.unwrap_or_else(|| "`reqc contexts` lists the names".to_owned()))
    });
    findings.collect()
}

/// Returns the finding about an agent that used up its units of work before all contexts were
/// compiled.
pub(super) fn agent_too_much_work(plan: &Plan<'_>, context: &Arc<str>) -> Diagnostic {
    let message = format!(
        "agent `{}` exceeds the work limit; context `{context}` and all later contexts are not compiled",
        plan.name()
    );
    let finding = Diagnostic::new(&TOO_MUCH_WORK, plan.profile.name_span(), message);
    finding.help(
        "look for templates that repeatedly copy, join, compare or search long strings or lists",
    )
}

/// Returns the finding about an agent whose bodies together exceed the size limit.
pub(super) fn agent_too_large(plan: &Plan<'_>, context: &Arc<str>) -> Diagnostic {
    let most = budget::MAX_HELD >> 20;
    let message = format!(
        "the bodies of `{}` exceed {most} MiB in total; context `{context}` and all later contexts are not compiled",
        plan.name()
    );
    let finding = Diagnostic::new(&TOO_MUCH_WORK, plan.profile.name_span(), message);
    finding
        .help("compile it for fewer contexts at a time, or find out what makes its bodies so large")
}

/// Returns the finding about the agents beyond the limit on merged values.
pub(super) fn too_many_values(
    hierarchy: &Hierarchy,
    first: ProfileId,
    agents: usize,
) -> Diagnostic {
    let name = &hierarchy.get(first).name;
    let others = if agents > 1 {
        format!(", nor are {} others", agents - 1)
    } else {
        String::new()
    };
    let message = format!(
        "merging the profiles exceeds the work limit; `{}` is not compiled{others}",
        name.value
    );
    let finding = Diagnostic::new(&TOO_MUCH_WORK, name.span, message);
    finding.help(format!(
        "all agents together inherit at most {} values: look for bases with very long lists or tables",
        budget::MAX_MERGED
    ))
}

/// Returns the finding about a run that exceeded its work limit; `first` is the first agent that
/// was not compiled.
pub(super) fn run_too_much_work(
    hierarchy: &Hierarchy,
    first: ProfileId,
    agents: usize,
) -> Diagnostic {
    let name = &hierarchy.get(first).name;
    let others = match agents - 1 {
        0 => String::new(),
        1 => " nor is the one after it".to_owned(),
        others => format!(" nor are the {others} after it"),
    };
    let comma = if others.is_empty() { "" } else { "," };
    let message = format!(
        "the run exceeds the work limit; `{}` is not compiled{comma}{others}",
        name.value
    );
    let finding = Diagnostic::new(&TOO_MUCH_WORK, name.span, message);
    finding.help("the agents before it, in the order of names, used up the limit: check their templates, or compile fewer at a time")
}

pub(super) fn slug_collision(profile: &Profile, other: &Profile) -> Diagnostic {
    let message = format!(
        "`{}` and `{}` would both write `golden/{}/`",
        other.name.value,
        profile.name.value,
        profile.slug()
    );
    let finding = Diagnostic::new(&SLUG_COLLISION, profile.name.span, message);
    finding
        .related(other.name.span, "the other one")
        .help("rename one of the agents")
}

/// Returns a finding if an operating system does not allow the name of an agent's golden folder.
pub(super) fn unusable_slug(profile: &Profile) -> Option<Diagnostic> {
    let why = crate::world::unusable_name(&profile.slug())?;
    let message = format!("no golden folder can be named `{}`: {why}", profile.slug());
    Some(
        Diagnostic::new(&UNUSABLE_SLUG, profile.name.span, message)
            .help("give the agent a different name"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Severity;

    /// An error that leaves an agent without a body cannot be lowered. The exceptions are listed
    /// here.
    #[test]
    fn few_errors_can_be_lowered() {
        let errors = all_rules()
            .into_iter()
            .filter(|rule| rule.severity == Severity::Error);
        let lowerable: Vec<&str> = errors
            .filter(|rule| rule.can_be_lowered)
            .map(|rule| rule.code)
            .collect();
        // Protocol rules concern bodies that exist.
        let lowerable: Vec<&str> = lowerable
            .into_iter()
            .filter(|code| !code.starts_with("protocol/"))
            .collect();
        let expected = [
            "budget/exceeded",
            "flow/altered",
            "flow/dropped",
            "flow/reordered",
            "flow/unescaped",
            "key/unknown",
            "lint/batch-duplicate-id",
            "lint/batch-id",
            "lint/batch-limit",
            "lint/batch-mixed",
            "lint/batch-request",
            "lint/batch-stream",
            "lint/no-body",
            "lint/unsupported-format",
            "lint/wrong-path",
            "provider/other-format",
            "provider/unserved-endpoint",
            "provider/unserved-model",
            "schema/invalid-value",
            "schema/missing-field",
            "schema/unknown-field",
            "schema/wrong-type",
            "template/impossible-member",
            "template/impossible-word",
            "text/conflict-marks",
        ];
        assert_eq!(lowerable, expected);
        assert!(
            all_rules()
                .iter()
                .all(|rule| rule.can_be_lowered || rule.severity == Severity::Error)
        );
    }
}
