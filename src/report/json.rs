//! The report as JSON: one document, described by `schemas/report.schema.json`.

use serde::Serialize;
use serde_json::Value;

use super::places::Region;
use super::{Format, lowered};
use crate::compile::{Report, Summary};
use crate::diag::{Diagnostic, Edit, Rule};
use crate::source::{Sources, Span};
use crate::text::Text;

/// The version of the document's format. It is increased when a key is removed or its meaning
/// changes.
const VERSION: u32 = 1;

/// Writes the whole report as pretty-printed JSON.
#[derive(Debug, Clone, Copy, Default)]
pub struct Json;

impl Format for Json {
    fn report(&self, report: &Report, _: &[&'static Rule]) -> Text {
        let document = Document {
            version: VERSION,
            summary: Counts::new(&report.summary),
            diagnostics: report
                .findings
                .iter()
                .map(|finding| Finding::new(finding, &report.sources))
                .collect(),
            lowered: lowered::values(&report.summary.lowered),
        };
        Text::json(&document)
    }

    /// Writes the same document as `report`, so that programs need to read only one form.
    fn findings(&self, report: &Report, rules: &[&'static Rule]) -> Text {
        self.report(report, rules)
    }
}

/// Returns the findings of a report, for documents that contain other data as well.
pub(crate) fn findings(report: &Report) -> Vec<Value> {
    report
        .findings
        .iter()
        .map(|it| finding(it, report))
        .collect()
}

/// Returns one finding of a report.
pub(super) fn finding(finding: &Diagnostic, report: &Report) -> Value {
    serde_json::to_value(Finding::new(finding, &report.sources))
        .expect("a value serialises into memory")
}

#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    summary: Counts,
    diagnostics: Vec<Finding<'a>>,
    lowered: Vec<Value>,
}

#[derive(Serialize)]
struct Counts {
    agents: usize,
    contexts: usize,
    bodies: usize,
    errors: usize,
    warnings: usize,
    formats: Vec<FormatCount>,
    passed_over: usize,
    without_model: usize,
    left_out: Vec<LeftOutCount>,
}

/// The number of a rule's findings that were counted but are not among the diagnostics.
#[derive(Serialize)]
struct LeftOutCount {
    code: &'static str,
    severity: &'static str,
    findings: usize,
}

/// The number of bodies in one wire format, found in files of bodies.
#[derive(Serialize)]
struct FormatCount {
    name: &'static str,
    bodies: usize,
}

#[derive(Serialize)]
struct Finding<'a> {
    code: &'a str,
    severity: &'a str,
    message: &'a str,
    #[serde(flatten)]
    place: Location<'a>,
    pointer: Option<&'a str>,
    help: Option<&'a str>,
    fixes: Vec<Fix<'a>>,
    agents: Vec<&'a str>,
    contexts: Vec<&'a str>,
    related: Vec<Related<'a>>,
}

/// The text that replaces the text at a location.
#[derive(Serialize)]
struct Fix<'a> {
    #[serde(flatten)]
    place: Location<'a>,
    text: String,
}

#[derive(Serialize)]
struct Related<'a> {
    message: &'a str,
    #[serde(flatten)]
    place: Location<'a>,
}

/// A location with one-based numbers. Columns count characters, and the end is exclusive.
#[derive(Serialize)]
pub(super) struct Location<'a> {
    file: &'a str,
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
}

impl Counts {
    fn new(summary: &Summary) -> Counts {
        let &Summary {
            agents,
            contexts,
            bodies,
            errors,
            warnings,
            ref linted,
            ref left_out,
            skipped: _,
            lowered: _,
        } = summary;
        let formats = linted.iter().flat_map(|linted| &linted.formats);
        let formats = formats
            .map(|&(wire, bodies)| FormatCount {
                name: wire.name(),
                bodies,
            })
            .collect();
        let passed_over = linted.as_ref().map_or(0, |linted| linted.passed_over);
        let without_model = linted.as_ref().map_or(0, |linted| linted.without_model);
        let left_out = left_out.iter().map(|it| LeftOutCount {
            code: it.code,
            severity: it.severity.name(),
            findings: it.findings,
        });
        Counts {
            agents,
            contexts,
            bodies,
            errors,
            warnings,
            formats,
            passed_over,
            without_model,
            left_out: left_out.collect(),
        }
    }
}

impl<'a> Finding<'a> {
    fn new(finding: &'a Diagnostic, sources: &'a Sources) -> Finding<'a> {
        let related = finding.related.iter();
        Finding {
            code: finding.rule.code,
            severity: finding.severity.name(),
            message: &finding.message,
            place: Location::new(finding.primary.span, sources),
            pointer: finding.pointer.as_deref(),
            help: finding.help.as_deref(),
            fixes: finding
                .fix(sources)
                .map(|edit| Fix::new(edit, sources))
                .into_iter()
                .collect(),
            agents: finding.agents.iter().map(AsRef::as_ref).collect(),
            contexts: finding.contexts.iter().map(AsRef::as_ref).collect(),
            related: related
                .map(|label| Related {
                    message: &label.message,
                    place: Location::new(label.span, sources),
                })
                .collect(),
        }
    }
}

impl<'a> Fix<'a> {
    fn new(edit: Edit, sources: &'a Sources) -> Fix<'a> {
        Fix {
            place: Location::new(edit.span, sources),
            text: edit.text,
        }
    }
}

impl<'a> Location<'a> {
    pub(super) fn new(span: Span, sources: &'a Sources) -> Location<'a> {
        let Region {
            line,
            column,
            end_line,
            end_column,
        } = Region::of(span, sources);
        Location {
            file: sources.get(span.file).path(),
            line,
            column,
            end_line,
            end_column,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{example, report as made};
    use super::*;
    use crate::compile::lint::LintedBodies;
    use crate::compile::policy::{Lowered, LoweredKind};
    use crate::provider::WireFormat;

    fn report() -> Text {
        let (sources, mut finding) = example();
        finding.agents.truncate(1);
        let mut linted = LintedBodies::default();
        (linted.formats, linted.passed_over) = (vec![(WireFormat::OpenAiChat, 3)], 7);
        let summary = Summary {
            agents: 1,
            contexts: 2,
            bodies: 3,
            errors: 4,
            warnings: 5,
            skipped: 6,
            lowered: vec![Lowered::new(LoweredKind::Rule, "key/unknown")],
            left_out: vec![],
            linted: Some(linted),
        };
        Json.report(&made(sources, vec![finding], summary), &[])
    }

    #[test]
    fn the_document_is_the_contract() {
        insta::assert_snapshot!(report().as_str(), @r#"
        {
          "version": 1,
          "summary": {
            "agents": 1,
            "contexts": 2,
            "bodies": 3,
            "errors": 4,
            "warnings": 5,
            "formats": [
              {
                "name": "openai-chat",
                "bodies": 3
              }
            ],
            "passed_over": 7,
            "without_model": 0,
            "left_out": []
          },
          "diagnostics": [
            {
              "code": "render/undefined",
              "severity": "error",
              "message": "`msg` has no `contnet`",
              "file": "partials/p.jinja",
              "line": 2,
              "column": 14,
              "end_line": 2,
              "end_column": 25,
              "pointer": null,
              "help": "did you mean `content`?",
              "fixes": [
                {
                  "file": "partials/p.jinja",
                  "line": 2,
                  "column": 18,
                  "end_line": 2,
                  "end_column": 25,
                  "text": "content"
                }
              ],
              "agents": [
                "OpenAI Chat 00"
              ],
              "contexts": [
                "plain-turn"
              ],
              "related": [
                {
                  "message": "included from here",
                  "file": "agents/base.toml",
                  "line": 3,
                  "column": 13,
                  "end_line": 3,
                  "end_column": 30
                }
              ]
            }
          ],
          "lowered": [
            {
              "kind": "rule",
              "what": "key/unknown",
              "to": null,
              "value": null,
              "agent": null,
              "path": null,
              "fields": [],
              "reason": null,
              "expires": null,
              "file": null,
              "line": null
            }
          ]
        }
        "#);
    }

    #[test]
    fn nothing_found_is_an_empty_list() {
        let text = Json.report(&Report::default(), &[]);
        assert!(text.ends_with("\"diagnostics\": [],\n  \"lowered\": []\n}\n"));
    }

    /// Checks that every object has exactly the keys that the schema lists and requires, in its
    /// order.
    #[test]
    fn the_schema_describes_the_document() {
        let schema: Value =
            serde_json::from_str(include_str!("../../schemas/report.schema.json")).expect("JSON");
        let report: Value = serde_json::from_str(&report()).expect("JSON");
        check(&schema, &schema, &report);
    }

    fn check(root: &Value, schema: &Value, value: &Value) {
        let schema = match schema["$ref"].as_str() {
            Some(name) => root.pointer(&name[1..]).expect("a definition"),
            None => schema,
        };
        match value {
            Value::Object(map) => {
                let keys: Vec<&String> = map.keys().collect();
                let listed = schema["properties"]
                    .as_object()
                    .expect("an object's schema");
                assert_eq!(keys, listed.keys().collect::<Vec<_>>());
                assert_eq!(
                    map.keys().map(String::as_str).collect::<Value>(),
                    schema["required"]
                );
                map.iter()
                    .for_each(|(key, value)| check(root, &listed[key], value));
            }
            Value::Array(items) => items
                .iter()
                .for_each(|item| check(root, &schema["items"], item)),
            _ => assert!(
                schema
                    .get("type")
                    .or(schema.get("enum"))
                    .or(schema.get("const"))
                    .is_some()
            ),
        }
    }
}
