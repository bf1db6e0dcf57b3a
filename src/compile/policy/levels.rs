//! The policy for findings: severities, `[[allow]]`, the command line.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use super::keys;
use crate::compile::compiler::Compiler;
use crate::compile::rules::{NOT_LOWERABLE, UNKNOWN_RULE, all_rules, rule};
use crate::context::rules as context_rules;
use crate::diag::{Diagnostic, Edit, Findings, Severity, did_you_mean};
use crate::provider::rules as provider_rules;
use crate::render::rules as render_rules;
use crate::repo::{Allow, Config, Date, Level, rules as repo_rules};
use crate::resolve::Hierarchy;
use crate::source::{FileId, Position, Sources, Span};

/// A run's policy for findings, in addition to the settings in `reqc.toml`.
#[derive(Debug, Clone, Default)]
pub struct PolicyOptions {
    /// Codes that are errors in this run, regardless of their configured severity. `family/*` means
    /// a whole family.
    pub deny: Vec<String>,
    /// Codes whose findings are dropped in this run.
    pub allow: Vec<String>,
    /// Today's date, for entries that expire. If it is `None`, no entry expires.
    pub today: Option<Date>,
    /// `Some(true)` if the whole repository is checked. Only then can an entry be reported as
    /// unused. `None` means that this is derived from the selection.
    pub complete: Option<bool>,
}

/// Decides which findings are dropped and which fail a run.
pub(in crate::compile) struct Policy<'c> {
    /// The settings in `reqc.toml`.
    pub(in crate::compile) config: &'c Config,
    pub(in crate::compile) options: &'c PolicyOptions,
    /// `true` if the whole repository is checked.
    pub(in crate::compile) complete: bool,
    hierarchy: &'c Hierarchy,
}

impl<'c> Policy<'c> {
    /// Returns the policy for a repository and a run; `complete` means that the run checks
    /// everything, unless the options override it.
    pub(in crate::compile) fn of(
        compiler: &'c Compiler,
        options: &'c PolicyOptions,
        complete: bool,
    ) -> Policy<'c> {
        Policy {
            config: &compiler.repo.config,
            options,
            complete: options.complete.unwrap_or(complete),
            hierarchy: &compiler.hierarchy,
        }
    }

    /// Returns the remaining findings, with their severity in this run, sorted by file and
    /// location.
    pub(in crate::compile) fn judge(&self, sources: &Sources, findings: Findings) -> Judgement {
        let mut left = self.apply(sources, findings.into_vec());
        left = told_by_context(told_by_instance(told_by_cause(left)));
        left.sort_by(|a, b| order(sources, a).cmp(&order(sources, b)));
        let mut judgement = bounded(left);
        keys::hide(&mut judgement.findings, sources);
        judgement
    }

    fn apply(&self, sources: &Sources, findings: Vec<Diagnostic>) -> Vec<Diagnostic> {
        let mut used = vec![false; self.config.allows.len()];
        let mut left: Vec<Diagnostic> = Vec::with_capacity(findings.len());
        let mut entries = Entries::default();
        for mut finding in findings {
            if finding.rule.can_be_lowered
                && self.is_allowed(sources, &mut finding, &mut entries, &mut used)
            {
                continue;
            }
            match self.level(&finding) {
                Level::Off => continue,
                Level::On(severity) => finding.severity = severity.min(finding.worst),
            }
            left.push(finding);
        }
        if self.complete {
            left.extend(self.unused(sources, &used));
        }
        left
    }

    fn level(&self, finding: &Diagnostic) -> Level {
        let code = finding.rule.code;
        if !finding.rule.can_be_lowered {
            return Level::On(finding.severity);
        }
        if self
            .options
            .deny
            .iter()
            .any(|pattern| matches(pattern, code))
        {
            return Level::On(Severity::Error);
        }
        if self
            .options
            .allow
            .iter()
            .any(|pattern| matches(pattern, code))
        {
            return Level::Off;
        }
        self.configured(code, finding.severity)
    }

    /// Returns the level that `[rules]` gives a rule, or else its default level.
    pub(in crate::compile) fn configured(&self, code: &str, usual: Severity) -> Level {
        let configured = self
            .config
            .levels
            .iter()
            .rev()
            .find(|(pattern, _)| matches(&pattern.value, code));
        configured.map_or(Level::On(usual), |(_, level)| *level)
    }

    /// Returns `true` if entries allow the whole finding. An entry that names agents removes only
    /// these agents from the finding's reach.
    fn is_allowed(
        &self,
        sources: &Sources,
        finding: &mut Diagnostic,
        entries: &mut Entries,
        used: &mut [bool],
    ) -> bool {
        let (code, file) = (finding.rule.code, finding.primary.span.file);
        let fitting = entries
            .entry((code, file))
            .or_insert_with(|| self.fitting(code, sources.get(file).path()));
        for &index in &*fitting {
            let (entry, used) = (&self.config.allows[index], &mut used[index]);
            match &entry.agent {
                None => {
                    *used = true;
                    return true;
                }
                Some(glob) => {
                    let before = finding.agents.len();
                    finding.agents.retain(|agent| !glob.is_match(agent));
                    *used |= finding.agents.len() < before;
                    if before > 0 && finding.agents.is_empty() {
                        return true;
                    }
                }
            }
        }
        false
    }

    /// Returns the indexes of the entries for a code in a file.
    fn fitting(&self, code: &str, path: &str) -> Vec<usize> {
        let fits = |entry: &Allow| {
            matches(&entry.code, code)
                && !self.is_expired(entry)
                && entry.file.as_ref().is_none_or(|glob| glob.is_match(path))
        };
        let entries = self.config.allows.iter().enumerate();
        entries
            .filter(|(_, entry)| fits(entry))
            .map(|(index, _)| index)
            .collect()
    }

    pub(in crate::compile) fn is_expired(&self, entry: &Allow) -> bool {
        entry
            .expires
            .zip(self.options.today)
            .is_some_and(|(expires, today)| expires < today)
    }

    /// Returns the help for an entry whose agent or file does not exist.
    fn matches_nothing(&self, sources: &Sources, entry: &Allow) -> Option<String> {
        if let Some(glob) = &entry.agent
            && !self.hierarchy.names().any(|name| glob.is_match(name))
        {
            let wanted = glob.text();
            let meant = or_meant(wanted, self.hierarchy.names());
            return Some(format!("no agent is called `{wanted}`{meant}"));
        }
        let paths: Vec<&str> = sources.iter().map(|(_, file)| &**file.path()).collect();
        let glob = entry.file.as_ref()?;
        if paths.iter().any(|path| glob.is_match(path)) {
            return None;
        }
        let wanted = glob.text();
        let plain = wanted.strip_prefix("./").unwrap_or(wanted);
        let meant = match paths.iter().find(|path| ends_with_path(path, plain)) {
            Some(path) => format!("; did you mean `{path}`?"),
            None => or_meant(wanted, paths.into_iter()),
        };
        Some(format!(
            "no file matches `{wanted}`; write the path as it appears in findings{meant}"
        ))
    }

    fn unused(&self, sources: &Sources, used: &[bool]) -> Vec<Diagnostic> {
        let entries = self.config.allows.iter().zip(used).filter(|(entry, used)| {
            !**used && !entry.broken && is_known(&entry.code) && can_silence(&entry.code)
        });
        let findings = entries.map(|(entry, _)| {
            let (message, help) = match self.is_expired(entry) {
                true => (
                    format!("this entry for `{}` has expired", entry.code),
                    "remove it, or set a later expiry date".to_owned(),
                ),
                false => (
                    format!("this entry for `{}` suppresses nothing", entry.code),
                    self.matches_nothing(sources, entry)
                        .unwrap_or_else(|| "remove it".to_owned()),
                ),
            };
            let without = allow_entry(
                sources.get(entry.span.file).text(),
                entry.span.start as usize,
            );
            let without = without.map(|range| Edit::new(Span::new(entry.span.file, range), ""));
            Diagnostic::new(&repo_rules::UNUSED_ALLOW, entry.span, message)
                .help(help)
                .maybe_fix(without)
        });
        findings.collect()
    }
}

/// Returns `true` if a path ends with all parts of another path.
fn ends_with_path(path: &str, end: &str) -> bool {
    path.strip_suffix(end)
        .is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

/// Returns “; did you mean `a`?”, or an empty string.
fn or_meant<'a>(wanted: &str, known: impl Iterator<Item = &'a str>) -> String {
    did_you_mean(wanted, known).map_or(String::new(), |meant| format!("; {meant}"))
}

/// Returns the lines of the `[[allow]]` entry around a location, up to the comments of the next
/// entry; `None` if the entry has a different form.
fn allow_entry(text: &str, at: usize) -> Option<Range<usize>> {
    let lines = || {
        text.split_inclusive('\n')
            .map(|line| (line.as_ptr() as usize - text.as_ptr() as usize, line))
    };
    let headers = || lines().filter(|(_, line)| line.trim_start().starts_with('['));
    let (start, header) = headers().take_while(|(start, _)| *start <= at).last()?;
    if header.split('#').next()?.trim() != "[[allow]]" {
        return None;
    }
    let next = headers()
        .map(|(start, _)| start)
        .find(|next| *next > at)
        .unwrap_or(text.len());
    let mut inside = lines().filter(|(line, _)| (start..next).contains(line));
    let (last, line) = inside.rfind(|(_, line)| is_said(line))?;
    let end = last + line.len();
    let blank = lines()
        .skip_while(|(start, _)| *start < end)
        .take_while(|(_, line)| line.trim().is_empty());
    let end = blank.last().map_or(end, |(start, line)| start + line.len());
    // Removing the last entry also removes the blank line above it.
    let above = text[..start].trim_end_matches('\n').len();
    let start = if end == text.len() && above > 0 {
        above + 1
    } else {
        start
    };
    Some(start..end)
}

fn is_said(line: &str) -> bool {
    !line.trim().is_empty() && !line.trim_start().starts_with('#')
}

/// The maximum number of findings of one rule and level that are reported, even in machine-readable
/// formats.
pub(crate) const MOST_OF_A_RULE: usize = 10_000;

/// Findings with their severities in a run, and the number of findings beyond the limit.
pub(in crate::compile) struct Judgement {
    pub(in crate::compile) findings: Vec<Diagnostic>,
    pub(in crate::compile) left_out: Vec<LeftOut>,
}

/// The findings of one rule that exceed the limit, and are not included in any output format.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// The code of the rule.
    pub code: &'static str,
    /// The severity of the findings.
    pub severity: Severity,
    /// The number of findings beyond the limit.
    pub findings: usize,
}

impl LeftOut {
    pub(in crate::compile) fn new(
        code: &'static str,
        severity: Severity,
        findings: usize,
    ) -> LeftOut {
        LeftOut {
            code,
            severity,
            findings,
        }
    }
}

/// Keeps the first findings of each rule.
fn bounded(findings: Vec<Diagnostic>) -> Judgement {
    let mut counts: BTreeMap<(&'static str, Severity), usize> = BTreeMap::new();
    let mut kept: Vec<Diagnostic> = Vec::with_capacity(findings.len());
    for finding in findings {
        let key = (finding.rule.code, finding.severity);
        let count = counts.entry(key).or_default();
        *count += 1;
        if *count <= MOST_OF_A_RULE {
            kept.push(finding);
        }
    }
    let beyond = counts
        .into_iter()
        .filter(|(_, count)| *count > MOST_OF_A_RULE);
    let left_out = beyond
        .map(|((code, severity), count)| LeftOut::new(code, severity, count - MOST_OF_A_RULE));
    Judgement {
        findings: kept,
        left_out: left_out.collect(),
    }
}

fn order<'a>(
    sources: &'a Sources,
    finding: &'a Diagnostic,
) -> (&'a str, Position, u32, &'static str, &'a str) {
    let span = finding.primary.span;
    let file = sources.get(span.file);
    (
        file.path(),
        file.start(),
        span.start,
        finding.rule.code,
        &finding.message,
    )
}

/// A cache of the `[[allow]]` entries for a code in a file. Many findings have the same code and
/// file.
type Entries = HashMap<(&'static str, FileId), Vec<usize>>;

/// Returns `true` if a pattern matches at least one rule whose findings can be allowed.
pub(super) fn can_silence(pattern: &str) -> bool {
    all_rules()
        .iter()
        .any(|rule| matches(pattern, rule.code) && rule.can_be_lowered)
}

/// Returns `true` if a code matches a pattern: the code itself or `family/*`.
pub(in crate::compile) fn matches(pattern: &str, code: &str) -> bool {
    pattern == code
        || pattern
            .strip_suffix("/*")
            .is_some_and(|family| code.split('/').next() == Some(family))
}

/// Returns findings about codes in `reqc.toml` that no rule has, or whose rules cannot be lowered.
pub(in crate::compile) fn check_codes(config: &Config) -> Vec<Diagnostic> {
    let levels = config
        .levels
        .iter()
        .map(|(code, level)| (&code.value, code.span, *level != Level::On(Severity::Error)));
    let allows = config
        .allows
        .iter()
        .map(|entry| (&entry.code, entry.span, true));
    let findings = levels.chain(allows).filter_map(|(code, span, lowers)| {
        if !is_known(code) {
            let family = format!("{code}/*");
            let help = match is_family(&family) {
                true => Some(format!(
                    "write `{family}` for all rules whose codes begin with `{code}/`"
                )),
                false => did_you_mean(code, all_rules().iter().map(|rule| rule.code)),
            };
            let finding =
                Diagnostic::new(&UNKNOWN_RULE, span, format!("there is no rule `{code}`"));
            return Some(
                finding.help(help.unwrap_or_else(|| "`reqc rule` lists all codes".to_owned())),
            );
        }
        let is_fixed = lowers && !can_silence(code);
        is_fixed.then(|| {
            let finding = Diagnostic::new(
                &NOT_LOWERABLE,
                span,
                format!("`{code}` cannot be lowered or suppressed"),
            );
            finding.help(
                "fix the finding, or remove the agent; otherwise an agent without a body would be overlooked",
            )
        })
    });
    findings.collect()
}

pub(super) fn is_known(pattern: &str) -> bool {
    rule(pattern).is_some() || is_family(pattern)
}

fn is_family(pattern: &str) -> bool {
    pattern.ends_with("/*") && all_rules().iter().any(|rule| matches(pattern, rule.code))
}

/// Removes an agent from a finding if one of the locations that explain the finding has an error
/// for the same agent. Only findings that the policy reports as errors are considered.
fn told_by_cause(mut findings: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let explained: HashSet<Span> = findings
        .iter()
        .flat_map(|finding| finding.explained_at.iter().copied())
        .collect();
    let mut causes: HashMap<Span, BTreeSet<Arc<str>>> = HashMap::new();
    let errors = findings.iter().filter(|finding| {
        finding.rule == &render_rules::IMPOSSIBLE_MEMBER
            && finding.severity == Severity::Error
            && explained.contains(&finding.primary.span)
    });
    for error in errors {
        let agents = causes.entry(error.primary.span).or_default();
        agents.extend(error.agents.iter().cloned());
    }
    findings.retain_mut(|finding| {
        let had_agents = !finding.agents.is_empty();
        let places = &finding.explained_at;
        finding.agents.retain(|agent| {
            let mut causes = places.iter().filter_map(|place| causes.get(place));
            !causes.any(|agents| agents.contains(agent))
        });
        !had_agents || !finding.agents.is_empty()
    });
    // So far, agents with and without an explanation had separate findings.
    let mut merged = Findings::default();
    for finding in findings {
        merged.push(finding.explained_at(Vec::new()));
    }
    merged.into_vec()
}

/// Removes findings that follow from a provider instance whose wire format differs from that of the
/// inherited body, because correcting the format resolves these findings.
fn told_by_instance(mut findings: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut causes: HashMap<Span, BTreeSet<Arc<str>>> = HashMap::new();
    for finding in &findings {
        if finding.rule == &provider_rules::OTHER_FORMAT && finding.severity == Severity::Error {
            let agents = causes.entry(finding.primary.span).or_default();
            agents.extend(finding.agents.iter().cloned());
        }
    }
    findings.retain_mut(|finding| {
        let is_effect = finding.rule.code.starts_with("flow/")
            || [
                &provider_rules::UNSERVED_ENDPOINT,
                &provider_rules::UNSERVED_MODEL,
            ]
            .contains(&finding.rule);
        match causes.get(&finding.primary.span).filter(|_| is_effect) {
            Some(agents) => {
                finding.agents.retain(|agent| !agents.contains(agent));
                !finding.agents.is_empty()
            }
            None => true,
        }
    });
    findings
}

/// Merges the findings at a media type that a context misspells. One finding remains, with the
/// worst severity among the wire formats; a separate finding for each format would add nothing.
fn told_by_context(findings: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let (mut misspelt, mut others): (Vec<_>, Vec<_>) = findings
        .into_iter()
        .partition(|finding| finding.rule == &context_rules::MEDIA_TYPE);
    let by_place: HashMap<Span, usize> = misspelt
        .iter()
        .enumerate()
        .map(|(index, finding)| (finding.primary.span, index))
        .collect();
    others.retain(|other| match by_place.get(&other.primary.span) {
        Some(&index) => {
            misspelt[index].takes_in(other);
            false
        }
        None => true,
    });
    misspelt.into_iter().chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_goes_with_its_lines_alone() {
        let without = |text: &str| {
            let range = allow_entry(text, text.find("STALE")?)?;
            Some(format!("{}{}", &text[..range.start], &text[range.end..]))
        };
        let text = "[rules]\n\n[[allow]] # why\ncode = \"STALE\"\nreason = \"x\"\n\n# of the next\n[[allow]]\ncode = \"b\"\n";
        assert_eq!(
            without(text).as_deref(),
            Some("[rules]\n\n# of the next\n[[allow]]\ncode = \"b\"\n")
        );
        assert_eq!(
            without("a = 1\n\n[[allow]]\ncode = \"STALE\"").as_deref(),
            Some("a = 1\n")
        );
        assert_eq!(without("allow = [{ code = \"STALE\" }]"), None);
    }
}
