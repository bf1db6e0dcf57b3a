//! Rewrites inja's spellings in place, keeping every byte offset.

use std::borrow::Cow;
use std::ops::Range;

use minijinja::machinery::{self, Token};
use minijinja::syntax::SyntaxConfig;

use super::analyse::{Analysis, Callable};
use super::folders::PROMPT_VARIABLES;
use super::inja::INDEX_FROM_0;
use super::limits::{self, Depth};
use super::lost_sets::LostSet;
use super::rules;
use crate::diag::{Diagnostic, Rule, Severity, count};
use crate::repo::Dialect;
use crate::source::Span;
use crate::text::cut;

/// A rewritten template, with observations from the rewriting.
#[derive(Debug, Default)]
pub(super) struct Rewritten {
    pub(super) text: String,
    /// The location where the template nests too deeply, if any.
    pub(super) too_deep: Option<Range<usize>>,
    /// The location where a limit is exceeded, if any, and a phrase for the excess.
    pub(super) too_long: Option<(Range<usize>, String)>,
    /// The first inja spelling.
    inja: Option<InjaSpelling>,
    /// The locations of `loop.index`.
    loop_index: Vec<Range<usize>>,
    /// The locations of `loop.parent`.
    loop_parent: Vec<Range<usize>>,
    /// The values that `{% for key, value in … %}` iterates over by key and value.
    pub(super) pair_loops: Vec<Range<usize>>,
    /// The newline at the end of a prompt.
    final_line_end: Option<Range<usize>>,
    /// Lines of text that an engine with line statements would interpret as statements.
    line_statements: Vec<Range<usize>>,
}

/// Rewrites a template's source. If the text cannot be tokenised, only the part before the error is
/// rewritten; the parser reports the error.
pub(super) fn rewrite(source: &str, dialect: Dialect, is_prompt: bool) -> Rewritten {
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    let mut rewritten = Rewritten::default();
    let powers = if dialect == Dialect::Inja {
        powers(source)
    } else {
        Cow::Borrowed(source)
    };
    let source = &*powers;
    let mut pairs = Pairs::default();
    let mut recent: [Option<(Token<'_>, Range<usize>)>; 3] = [None, None, None];
    let mut depth = Depth::default();
    for token in machinery::tokenize(source, false, SyntaxConfig::default()) {
        let Ok((token, span)) = token else { break };
        let range = span.start_offset as usize..span.end_offset as usize;
        if let Token::TemplateData(text) = &token {
            let (at, has_statements) = (
                text.as_ptr() as usize - source.as_ptr() as usize,
                text.contains(LINE_STATEMENT),
            );
            if (is_prompt || has_statements) && !after_raw_tag(&source[..at]) {
                if has_statements {
                    rewritten
                        .line_statements
                        .extend(line_statements(source, at..at + text.len()));
                }
                if is_prompt {
                    expand_variables(text, at, &mut edits);
                }
            }
        }
        depth.count(&token, range.clone());
        if dialect == Dialect::Inja {
            rewritten.pair_loops.extend(pairs.next(&token, &range));
        }
        recent.rotate_left(1);
        recent[2] = Some((token, range));
        rewritten.look_at(&recent, dialect, &mut edits);
    }
    rewritten.final_line_end =
        (is_prompt && source.ends_with('\n')).then(|| source.len() - 1..source.len());
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

/// An inja spelling, and Jinja's spelling.
#[derive(Debug, Clone)]
struct InjaSpelling {
    range: Range<usize>,
    inja: &'static str,
    jinja: &'static str,
}

/// The members of `loop` in inja, each with Jinja's whole spelling and Jinja's name.
const LOOP_MEMBERS: [(&str, &str, &str); 3] = [
    ("loop.is_first", "loop.first", "first"),
    ("loop.is_last", "loop.last", "last"),
    ("loop.index1", "loop.index", "index"),
];

impl Rewritten {
    /// Examines the last three tokens.
    fn look_at(
        &mut self,
        recent: &[Option<(Token<'_>, Range<usize>)>; 3],
        dialect: Dialect,
        edits: &mut Vec<(Range<usize>, String)>,
    ) {
        let [
            Some((first, start)),
            Some((second, middle)),
            Some((third, end)),
        ] = recent
        else {
            return;
        };
        match (first, second, third) {
            (Token::BlockStart, Token::Ident("else"), Token::Ident("if")) => {
                self.inja.get_or_insert(InjaSpelling {
                    range: middle.start..end.end,
                    inja: "else if",
                    jinja: "elif",
                });
                edits.push((middle.start..end.end, "elif".to_owned()));
            }
            (Token::Ident("loop"), Token::Dot, Token::Ident(name)) => {
                let whole = start.start..end.end;
                match *name {
                    "parent" => self.loop_parent.push(whole),
                    "index" => {
                        if dialect == Dialect::Inja {
                            edits.push((whole.clone(), format!("{INDEX_FROM_0}(loop)")));
                        }
                        self.loop_index.push(whole);
                    }
                    name => {
                        let mut members = LOOP_MEMBERS.iter();
                        let member = members.find(|(inja, ..)| inja.ends_with(&format!(".{name}")));
                        if let Some((inja, jinja, plain)) = member {
                            let range = whole;
                            self.inja.get_or_insert(InjaSpelling { range, inja, jinja });
                            edits.push((end.clone(), (*plain).to_owned()));
                        }
                    }
                }
            }
            _ => {}
        }
    }
}

/// The maximum number of `^` operators to rewrite in a template.
const MOST_POWERS: usize = 100;

/// Replaces `^` with `**`, using an adjacent blank so that no offset moves. A `^` without an
/// adjacent blank is left to the parser.
fn powers(source: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(source);
    for _ in 0..MOST_POWERS {
        let Some(at) = power(&text) else { break };
        let bytes = text.as_bytes();
        let before = at > 0 && bytes[at - 1] == b' ';
        let range = match before {
            true => at - 1..at + 1,
            false if bytes.get(at + 1) == Some(&b' ') => at..at + 2,
            false => break,
        };
        text.to_mut().replace_range(range, "**");
    }
    text
}

/// Returns the first `^` in the position of an operator.
fn power(text: &str) -> Option<usize> {
    if !text.contains('^') {
        return None;
    }
    let mut end = 0;
    for token in machinery::tokenize(text, false, SyntaxConfig::default()) {
        match token {
            Ok((_, span)) => end = span.end_offset as usize,
            Err(_) => {
                let rest = text[end..].trim_start();
                return rest.starts_with('^').then(|| text.len() - rest.len());
            }
        }
    }
    None
}

/// A matcher for the tokens of `{% for key, value in … %}`.
#[derive(Debug, Default)]
struct Pairs {
    /// The number of the tag's tokens that matched so far.
    met: usize,
    start: usize,
    end: usize,
}

impl Pairs {
    /// Returns the range of the value that a loop iterates over, at the end of its tag.
    fn next(&mut self, token: &Token<'_>, range: &Range<usize>) -> Option<Range<usize>> {
        let fits = match self.met {
            0 => matches!(token, Token::BlockStart),
            1 => matches!(token, Token::Ident("for")),
            2 | 4 => matches!(token, Token::Ident(_)),
            3 => matches!(token, Token::Comma),
            5 => matches!(token, Token::Ident("in")),
            // In inja, neither a condition nor recursion is possible here.
            _ => !matches!(token, Token::Ident("if" | "recursive")),
        };
        if !fits {
            self.met = usize::from(matches!(token, Token::BlockStart));
            return None;
        }
        if self.met > 5 && matches!(token, Token::BlockEnd) {
            let found = (self.met > 6).then_some(self.start..self.end);
            self.met = 0;
            return found;
        }
        if self.met == 6 {
            self.start = range.start;
        }
        self.end = range.end;
        self.met += 1;
        None
    }
}

/// Returns `true` if a string ends with a `{% raw %}` tag.
fn after_raw_tag(before: &str) -> bool {
    let Some(tag) = before
        .trim_end()
        .strip_suffix("%}")
        .and_then(|text| text.rfind("{%").map(|at| &text[at + 2..]))
    else {
        return false;
    };
    tag.trim_matches(['-', '+', ' ', '\n', '\t']) == "raw"
}

/// The start of a line statement in inja.
const LINE_STATEMENT: &str = "##";

/// Returns the lines in a part of a template's text that begin with the line-statement marker and
/// one of inja's tags, each from the marker on. Many Markdown headings also match.
fn line_statements(source: &str, part: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let follows_tag = part.start > 0 && !source[..part.start].ends_with('\n');
    let mut end = part.start;
    let lines = source[part].split_inclusive('\n').map(move |line| {
        end += line.len();
        (line.trim(), end - line.trim_start().len())
    });
    let whole = lines.skip(usize::from(follows_tag));
    let statements = whole
        .filter(|(line, _)| line.starts_with(LINE_STATEMENT) && INJA_TAGS.contains(&tag(line)));
    statements.map(|(line, start)| start..start + line.len())
}

/// Inja's tags.
const INJA_TAGS: [&str; 10] = [
    "for", "endfor", "if", "else", "endif", "set", "include", "extends", "block", "endblock",
];

/// Returns the name of the tag in a line statement.
fn tag(statement: &str) -> &str {
    let inner = statement.trim_start_matches(LINE_STATEMENT).trim_start();
    &inner[..inner
        .find(|c: char| !c.is_ascii_alphabetic())
        .unwrap_or(inner.len())]
}

/// Returns `true` if a line is definitely a statement: it ends a block, sets a variable, or
/// contains a file name in quotes.
fn is_no_heading(statement: &str) -> bool {
    let inner = statement.trim_start_matches(LINE_STATEMENT).trim();
    let rest = inner[tag(statement).len()..].trim_start();
    match tag(statement) {
        "endfor" | "endif" | "endblock" => rest.is_empty(),
        "set" => rest
            .split_once('=')
            .is_some_and(|(name, _)| !name.trim().contains(char::is_whitespace)),
        "include" | "extends" => rest.starts_with(['"', '\'']),
        _ => false,
    }
}

/// Reports a template with line statements once, at the first of them.
fn with_line_statements(
    rewritten: &Rewritten,
    span: &impl Fn(Range<usize>) -> Span,
) -> Option<Diagnostic> {
    let statement = |range: &Range<usize>| &rewritten.text[range.clone()];
    if !rewritten
        .line_statements
        .iter()
        .any(|range| is_no_heading(statement(range)))
    {
        return None;
    }
    let (first, others) = rewritten.line_statements.split_first()?;
    let text = statement(first);
    let message = format!(
        "`{LINE_STATEMENT} {}` is plain text: line statements are not supported",
        tag(text)
    );
    let inner = cut(
        text.trim_start_matches(LINE_STATEMENT).trim(),
        LONGEST_STATEMENT,
    );
    let help = match others.len() {
        0 => format!("write `{{% {inner} %}}`"),
        others => format!(
            "write `{{% {inner} %}}`, and also use tags on {}",
            count(others, "other line")
        ),
    };
    Some(Diagnostic::new(&rules::LINE_STATEMENT, span(first.clone()), message).help(help))
}

/// The maximum number of a line statement's characters that are shown as a tag.
const LONGEST_STATEMENT: usize = 60;

fn expand_variables(text: &str, at: usize, edits: &mut Vec<(Range<usize>, String)>) {
    for (variable, name) in PROMPT_VARIABLES {
        for (found, _) in text.match_indices(variable) {
            let width = variable.len() - "{{}}".len();
            edits.push((
                at + found..at + found + variable.len(),
                format!("{{{{{name:<width$}}}}}"),
            ));
        }
    }
}

/// Reports spellings that the two dialects interpret differently.
pub(super) fn findings(
    rewritten: &Rewritten,
    analysis: &Analysis,
    dialect: Dialect,
    span: impl Fn(Range<usize>) -> Span,
) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    for range in &rewritten.loop_parent {
        let finding = Diagnostic::new(
            &rules::LOOP_PARENT,
            span(range.clone()),
            "`loop.parent` does not exist here",
        );
        findings.push(finding.help(
            "keep the outer loop in a variable: `{% set outer = loop %}` before the inner loop",
        ));
    }
    findings.extend(with_line_statements(rewritten, &span));
    let inja = dialect == Dialect::Inja;
    if rewritten.inja.is_none() && !inja {
        findings.extend(lost(analysis, &rules::SET_IN_LOOP, &span));
        return findings;
    }
    if !inja {
        for range in &rewritten.loop_index {
            let message = "`loop.index` counts from 1 here, but from 0 in inja";
            let finding = Diagnostic::new(&rules::LOOP_INDEX, span(range.clone()), message);
            findings.push(finding.help(
                "write `loop.index0` to count from 0, or set `dialect = \"inja\"` in reqc.toml",
            ));
        }
    }
    if !inja {
        findings.extend(differing(rewritten, analysis, &span));
    }
    findings.extend(
        lost(analysis, &rules::DIALECT_SET_IN_LOOP, &span).map(|mut finding| {
            if inja {
                finding.severity = Severity::Error;
            }
            finding
        }),
    );
    findings
}

/// Reports constructs that make a prompt's text differ from the text that inja renders.
fn differing(
    rewritten: &Rewritten,
    analysis: &Analysis,
    span: &impl Fn(Range<usize>) -> Span,
) -> Vec<Diagnostic> {
    let functions = analysis
        .calls
        .iter()
        .filter(|called| called.what == Callable::Function);
    let told = functions.filter_map(|called| {
        let (_, differs) = DIFFERING.iter().find(|(name, _)| *name == called.name)?;
        Some((
            called.range.clone(),
            format!("in inja, `{}` {differs}", called.name),
        ))
    });
    let last = rewritten.final_line_end.clone();
    let last = last.map(|range| {
        (
            range,
            "inja, the dialect of this prompt, keeps the final newline; reqc removes it".to_owned(),
        )
    });
    told.chain(last)
        .map(|(range, message)| {
            let finding = Diagnostic::new(&rules::PROMPT_TEXT, span(range), message);
            let Some(InjaSpelling { range, inja, jinja }) = &rewritten.inja else {
                return finding;
            };
            let finding = finding.related(span(range.clone()), "this is inja syntax");
            finding.help(format!(
                "write `{jinja}` instead of `{inja}`; for a whole collection in inja syntax, set `dialect = \"inja\"` in reqc.toml"
            ))
        })
        .collect()
}

/// Prompt functions that differ in inja, each with the difference.
const DIFFERING: [(&str, &str); 4] = [
    ("head_lines", "leaves out the last newline"),
    ("file_exists", "is true for folders too"),
    ("dirname", "gives `.` for a bare name"),
    ("ext", "gives `bashrc` for `.bashrc`"),
];

/// Reports variables that a loop sets, but whose values are lost.
fn lost(
    analysis: &Analysis,
    rule: &'static Rule,
    span: &impl Fn(Range<usize>) -> Span,
) -> impl Iterator<Item = Diagnostic> {
    analysis.lost_sets.iter().map(move |LostSet { name, set, read }| {
        let finding = match read {
            Some(read) => {
                let message = format!(
                    "`{name}` is set in a loop and read after it, but a value set in a loop does not outlive the loop"
                );
                Diagnostic::new(rule, span(read.clone()), message)
                    .related(span(set.clone()), "set here, in the loop")
            }
            None => {
                let message = format!(
                    "`{name}` is set for the next iteration of the loop, but a value set in a loop is lost when the iteration ends"
                );
                Diagnostic::new(rule, span(set.clone()), message)
            }
        };
        finding.help(format!(
            "use a namespace: before the loop `{{% set ns = namespace({name}=…) %}}`, in it `{{% set ns.{name} = … %}}`, and read `ns.{name}`"
        ))
    })
}

/// Returns the syntax of a dialect: inja keeps the newline at the end of a template.
pub(super) fn syntax(dialect: Dialect) -> SyntaxConfig {
    let keeps_line_end = SyntaxConfig::builder()
        .keep_trailing_newline(dialect == Dialect::Inja)
        .build();
    keeps_line_end.expect("the delimiters are the usual ones")
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
        assert_eq!(
            rewritten("else if {{ \"else if\" }} loop.is_last"),
            "else if {{ \"else if\" }} loop.is_last"
        );
        assert_eq!(
            rewritten("{% raw %}{% else if %}{% endraw %}"),
            "{% raw %}{% else if %}{% endraw %}"
        );
        assert_eq!(
            rewrite("{{ loop.index }}", Dialect::Inja, false).text,
            "{{ _i(loop)   }}"
        );
    }

    #[test]
    fn powers_and_loops_by_key_and_value() {
        let inja = |source| rewrite(source, Dialect::Inja, false);
        assert_eq!(
            inja("^{{ 2 ^ 3 }}{{ 2^ 3 }}^").text,
            "^{{ 2** 3 }}{{ 2**3 }}^"
        );
        assert_eq!(inja("{{ 2^3 }}").text, "{{ 2^3 }}");
        assert_eq!(inja("{{ \"^\" }}").text, "{{ \"^\" }}");
        let source = "{% for k, v in a.b(c) %}{% for x in y %}{%- for i,j in [1] -%}{% for k, v in a if v %}";
        let loops: Vec<&str> = inja(source)
            .pair_loops
            .into_iter()
            .map(|range| &source[range])
            .collect();
        assert_eq!(loops, ["a.b(c)", "[1]"]);
        assert!(rewrite(source, Dialect::Jinja, false).pair_loops.is_empty());
    }

    #[test]
    fn prompt_variables_become_expressions_of_the_same_length() {
        let source = "at ${PROJECT_DIR}, ${HOME} {{ f('${HOME}') }}{% raw %}${HOME}{% endraw %}";
        let text = rewrite(source, Dialect::Jinja, true).text;
        assert_eq!(text.len(), source.len());
        assert_eq!(
            text,
            "at {{_p        }}, {{_h }} {{ f('${HOME}') }}{% raw %}${HOME}{% endraw %}"
        );
    }

    #[test]
    fn text_that_does_not_tokenise_is_left_to_the_parser() {
        assert_eq!(rewritten("{{ \"open"), "{{ \"open");
    }
}
