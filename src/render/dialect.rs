//! The other engine's spellings, rewritten in place: every byte offset stays true.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use minijinja::machinery::{self, Token};
use minijinja::syntax::SyntaxConfig;

use super::analyse::Analysis;
use super::functions::INDEX_FROM_0;
use super::limits::{self, Depth};
use super::rules;
use crate::diag::{Diagnostic, Severity};
use crate::repo::Dialect;
use crate::source::Span;

/// A template's text after rewriting, and what was met on the way.
#[derive(Debug, Default)]
pub(super) struct Rewritten {
    pub(super) text: String,
    /// Where it nests too deeply, if it does.
    pub(super) too_deep: Option<Range<usize>>,
    /// Where there is too much of something, and of what.
    pub(super) too_long: Option<(Range<usize>, String)>,
    /// Whether a spelling of the other dialect was seen.
    shows_inja: bool,
    /// Each `loop.index`.
    loop_index: Vec<Range<usize>>,
    /// Each `loop.parent`.
    loop_parent: Vec<Range<usize>>,
}

/// The variables of a prompt's own text and the names that stand for them: short enough to fit with braces.
pub(super) const PROMPT_VARIABLES: [(&str, &str); 3] =
    [("${PROJECT_DIR}", "_p"), ("${CONFIG_DIR}", "_c"), ("${HOME}", "_h")];

/// Rewrites a template's source. A text that cannot be tokenised is rewritten up to there; the parser reports it.
pub(super) fn rewrite(source: &str, dialect: Dialect, is_prompt: bool) -> Rewritten {
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    let mut rewritten = Rewritten::default();
    let mut recent: [Option<(Token<'_>, Range<usize>)>; 3] = [None, None, None];
    let mut depth = Depth::default();
    for token in machinery::tokenize(source, false, SyntaxConfig::default()) {
        let Ok((token, span)) = token else { break };
        let range = span.start_offset as usize..span.end_offset as usize;
        if let (Token::TemplateData(text), true) = (&token, is_prompt) {
            let at = text.as_ptr() as usize - source.as_ptr() as usize;
            if !after_raw_tag(&source[..at]) {
                expand_variables(text, at, &mut edits);
            }
        }
        depth.count(&token, range.clone());
        recent.rotate_left(1);
        recent[2] = Some((token, range));
        rewritten.look_at(&recent, dialect, &mut edits);
    }
    source.clone_into(&mut rewritten.text);
    rewritten.too_deep = depth.exceeded;
    rewritten.too_long = depth.too_long;
    if !edits.is_empty() {
        for (range, replacement) in edits {
            let padded = format!("{replacement:<width$}", width = range.len());
            rewritten.text.replace_range(range, &padded);
        }
        rewritten.too_deep = limits::too_deep(&rewritten.text);
    }
    rewritten
}

impl Rewritten {
    /// Looks at the last three tokens.
    fn look_at(
        &mut self,
        recent: &[Option<(Token<'_>, Range<usize>)>; 3],
        dialect: Dialect,
        edits: &mut Vec<(Range<usize>, String)>,
    ) {
        let [Some((first, start)), Some((second, middle)), Some((third, end))] = recent else { return };
        match (first, second, third) {
            (Token::BlockStart, Token::Ident("else"), Token::Ident("if")) => {
                self.shows_inja = true;
                edits.push((middle.start..end.end, "elif".to_owned()));
            }
            (Token::Ident("loop"), Token::Dot, Token::Ident(name)) => {
                let whole = start.start..end.end;
                match *name {
                    "is_first" | "is_last" | "index1" => {
                        self.shows_inja = true;
                        let name = name.trim_start_matches("is_").trim_end_matches('1');
                        edits.push((end.clone(), name.to_owned()));
                    }
                    "parent" => self.loop_parent.push(whole),
                    "index" => {
                        if dialect == Dialect::Inja {
                            edits.push((whole.clone(), format!("{INDEX_FROM_0}(loop)")));
                        }
                        self.loop_index.push(whole);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

/// Whether a text ends with a `{% raw %}` tag.
fn after_raw_tag(before: &str) -> bool {
    let Some(tag) = before.trim_end().strip_suffix("%}").and_then(|text| text.rfind("{%").map(|at| &text[at + 2..]))
    else {
        return false;
    };
    tag.trim_matches(['-', '+', ' ', '\n', '\t']) == "raw"
}

fn expand_variables(text: &str, at: usize, edits: &mut Vec<(Range<usize>, String)>) {
    for (variable, name) in PROMPT_VARIABLES {
        for (found, _) in text.match_indices(variable) {
            let width = variable.len() - "{{}}".len();
            edits.push((at + found..at + found + variable.len(), format!("{{{{{name:<width$}}}}}")));
        }
    }
}

/// Findings about what the two dialects understand differently.
pub(super) fn findings(
    rewritten: &Rewritten,
    analysis: &Analysis,
    dialect: Dialect,
    span: impl Fn(Range<usize>) -> Span,
) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    for range in &rewritten.loop_parent {
        let finding = Diagnostic::new(&rules::LOOP_PARENT, span(range.clone()), "`loop.parent` does not exist here");
        findings
            .push(finding.help("keep the outer loop in a variable: `{% set outer = loop %}` before the inner loop"));
    }
    let inja = dialect == Dialect::Inja;
    if !rewritten.shows_inja && !inja {
        return findings;
    }
    if !inja {
        for range in &rewritten.loop_index {
            let message = "`loop.index` counts from 1 here, and from 0 in the dialect that this template is written in";
            let finding = Diagnostic::new(&rules::LOOP_INDEX, span(range.clone()), message);
            findings
                .push(finding.help("write `loop.index0` to count from 0, or set `dialect = \"inja\"` in reqc.toml"));
        }
    }
    for (name, range) in outliving(analysis) {
        let message =
            format!("`{name}` is set in a loop and read after it: here the loop's value does not outlive the loop");
        let mut finding = Diagnostic::new(&rules::SET_IN_LOOP, span(range), message);
        finding = finding
            .help(format!("use a namespace: `{{% set ns = namespace({name}=…) %}}`, then `{{% set ns.{name} = … %}}`"));
        if inja {
            finding.severity = Severity::Error;
        }
        findings.push(finding);
    }
    findings
}

/// Variables that are set in a loop and read after it, with the place of the first such read.
fn outliving(analysis: &Analysis) -> Vec<(&str, Range<usize>)> {
    if analysis.set_in_loops.is_empty() {
        return Vec::new();
    }
    let mut reads: HashMap<&str, Vec<&Range<usize>>> = HashMap::new();
    analysis.variables.iter().for_each(|(name, at)| reads.entry(name).or_default().push(at));
    reads.values_mut().for_each(|places| places.sort_unstable_by_key(|at| at.start));
    let (mut found, mut names) = (Vec::new(), HashSet::new());
    for (name, around) in &analysis.set_in_loops {
        let Some(places) = reads.get(name.as_str()).filter(|_| !names.contains(name.as_str())) else { continue };
        let first = places.partition_point(|at| at.start < around.end);
        if let Some(&at) = places.get(first) {
            names.insert(name.as_str());
            found.push((name.as_str(), at.clone()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(source: &str) -> String {
        let text = rewrite(source, Dialect::Jinja, false).text;
        assert_eq!(text.len(), source.len());
        text
    }

    #[test]
    fn spellings_are_rewritten_in_place() {
        assert_eq!(rewritten("{% else if x %}"), "{% elif    x %}");
        assert_eq!(rewritten("{%- else  if x %}"), "{%- elif     x %}");
        assert_eq!(rewritten("{% if loop.is_last %}"), "{% if loop.last    %}");
        assert_eq!(rewritten("{{ loop.index1 }}"), "{{ loop.index  }}");
        assert_eq!(rewritten("else if {{ \"else if\" }} loop.is_last"), "else if {{ \"else if\" }} loop.is_last");
        assert_eq!(rewritten("{% raw %}{% else if %}{% endraw %}"), "{% raw %}{% else if %}{% endraw %}");
        assert_eq!(rewrite("{{ loop.index }}", Dialect::Inja, false).text, "{{ _i(loop)   }}");
    }

    #[test]
    fn prompt_variables_become_expressions_of_the_same_length() {
        let source = "at ${PROJECT_DIR}, ${HOME} {{ f('${HOME}') }}{% raw %}${HOME}{% endraw %}";
        let text = rewrite(source, Dialect::Jinja, true).text;
        assert_eq!(text.len(), source.len());
        assert_eq!(text, "at {{_p        }}, {{_h }} {{ f('${HOME}') }}{% raw %}${HOME}{% endraw %}");
    }

    #[test]
    fn text_that_does_not_tokenise_is_left_to_the_parser() {
        assert_eq!(rewritten("{{ \"open"), "{{ \"open");
    }
}
