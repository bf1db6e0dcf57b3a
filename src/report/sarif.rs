//! SARIF 2.1.0, for code scanning and editors.
//!
//! Format: <https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html>. The subset that
//! GitHub supports:
//! <https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning>.

use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

use super::places::{Checkout, Fingerprints, Region, bundled_path};
use super::{Format, is_of_folder, told};
use crate::compile::Report;
use crate::diag::{Diagnostic, Edit, Label, Rule};
use crate::source::Sources;
use crate::text::{Text, Within};

/// Writes one run with all findings, their rules, and fingerprints that stay the same if lines are
/// moved.
#[derive(Debug, Clone, Default)]
pub struct Sarif(pub Checkout);

/// The schema of the document.
const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
/// The bases of paths: the root of the checkout, and the bundled files.
const BASES: [(&str, &str); 2] = [
    ("%SRCROOT%", "The root of the checkout."),
    (
        "%BUNDLED%",
        "The files that come with reqc: `reqc list --bundled`.",
    ),
];
/// The characters that are escaped in a path.
const PLAIN: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

impl Format for Sarif {
    fn report(&self, report: &Report, rules: &[&'static Rule]) -> Text {
        let used: Vec<&Rule> = rules
            .iter()
            .copied()
            .filter(|rule| is_used(rule, &report.findings))
            .collect();
        let mut prints = Fingerprints::default();
        let results = report.findings.iter().map(|finding| {
            let print = prints.next(finding, &report.sources);
            let index = used.iter().position(|rule| rule.code == finding.rule.code);
            Written {
                checkout: &self.0,
                sources: &report.sources,
            }
            .result(finding, index, &print)
        });
        Text::json(&json!({
            "$schema": SCHEMA,
            "version": "2.1.0",
            "runs": [{
                "tool": {"driver": driver(&used)},
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": bases(),
                "results": results.collect::<Vec<Value>>(),
            }],
        }))
    }

    fn findings(&self, report: &Report, rules: &[&'static Rule]) -> Text {
        self.report(report, rules)
    }
}

fn is_used(rule: &Rule, findings: &[Diagnostic]) -> bool {
    findings
        .iter()
        .any(|finding| finding.rule.code == rule.code)
}

fn bases() -> Map<String, Value> {
    BASES
        .into_iter()
        .map(|(name, what)| (name.to_owned(), json!({"description": {"text": what}})))
        .collect()
}

fn driver(rules: &[&Rule]) -> Value {
    let mut driver = json!({
        "name": "reqc",
        "semanticVersion": env!("CARGO_PKG_VERSION"),
        "rules": rules.iter().map(|rule| descriptor(rule)).collect::<Vec<_>>(),
    });
    if let Some(address) = address() {
        driver["informationUri"] = address.into();
    }
    driver
}

/// Returns the repository's address from the manifest, if it has one.
fn address() -> Option<&'static str> {
    Some(env!("CARGO_PKG_REPOSITORY")).filter(|address| !address.is_empty())
}

fn descriptor(rule: &Rule) -> Value {
    let page = rule.full_page();
    let mut descriptor = json!({
        "id": rule.code,
        "shortDescription": {"text": rule.summary},
        "help": {"text": page, "markdown": page},
        "defaultConfiguration": {"level": rule.severity.name()},
        "properties": {"tags": [rule.code.split('/').next()], "problem.severity": rule.severity.name()},
    });
    if let Some(address) = address() {
        let anchor = rule.code.replace('/', "");
        let version = env!("CARGO_PKG_VERSION");
        let family = rule.code.split('/').next().unwrap_or_default();
        descriptor["helpUri"] =
            format!("{address}/blob/v{version}/docs/rules/{family}.md#{anchor}").into();
    }
    descriptor
}

/// The data needed to write locations.
struct Written<'r> {
    checkout: &'r Checkout,
    sources: &'r Sources,
}

impl Written<'_> {
    fn result(&self, finding: &Diagnostic, rule: Option<usize>, print: &str) -> Value {
        let mut result = json!({
            "ruleId": finding.rule.code,
            "level": finding.severity.name(),
            "message": message(&told(finding)),
            "locations": [{"physicalLocation": self.place(&finding.primary, is_of_folder(finding, self.sources))}],
            "partialFingerprints": {"reqc/v1": print},
            "properties": {"agents": names(&finding.agents), "contexts": names(&finding.contexts)},
        });
        if let Some(index) = rule {
            result["ruleIndex"] = index.into();
        }
        if let Some(edit) = finding.fix(self.sources) {
            result["fixes"] = json!([self.fix(finding, &edit)]);
        }
        if !finding.related.is_empty() {
            result["relatedLocations"] = finding
                .related
                .iter()
                .enumerate()
                .map(|(index, label)| self.related(index, label))
                .collect();
        }
        result
    }

    fn fix(&self, finding: &Diagnostic, edit: &Edit) -> Value {
        let why = finding.help.as_deref().unwrap_or(&finding.message);
        json!({
            "description": message(&Text::line(why)),
            "artifactChanges": [{
                "artifactLocation": self.artifact(self.sources.get(edit.span.file).path()),
                "replacements": [{
                    "deletedRegion": region(Region::of(edit.span, self.sources)),
                    "insertedContent": {"text": edit.text},
                }],
            }],
        })
    }

    fn related(&self, index: usize, label: &Label) -> Value {
        json!({
            "id": index + 1,
            "message": message(&Text::line(&label.message)),
            "physicalLocation": self.place(label, false),
        })
    }

    fn place(&self, label: &Label, is_folder: bool) -> Value {
        let artifact = self.artifact(self.sources.get(label.span.file).path());
        match is_folder {
            true => json!({"artifactLocation": artifact}),
            false => {
                json!({"artifactLocation": artifact, "region": region(Region::of(label.span, self.sources))})
            }
        }
    }

    fn artifact(&self, shown: &str) -> Value {
        if let Some(path) = bundled_path(shown) {
            return json!({"uri": encoded(path), "uriBaseId": BASES[1].0});
        }
        let path = self.checkout.path(shown);
        match path.starts_with('/') {
            true => json!({"uri": format!("file://{}", encoded(&path))}),
            false => json!({"uri": encoded(&path), "uriBaseId": BASES[0].0}),
        }
    }
}

fn encoded(path: &str) -> String {
    utf8_percent_encode(path, &PLAIN).to_string()
}

fn names(names: &[Arc<str>]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect::<Vec<_>>()
}

fn message(text: &Text) -> Value {
    json!({"text": text.within(Within::Sarif).as_str()})
}

fn region(region: Region) -> Value {
    let Region {
        line,
        column,
        end_line,
        end_column,
    } = region;
    json!({"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column})
}

#[cfg(test)]
mod tests {
    use super::super::tests::{example, report};
    use super::*;
    use crate::compile::Summary;

    #[test]
    fn paths_are_addresses_below_a_base() {
        let written = Written {
            checkout: &Checkout::at("team"),
            sources: &Sources::default(),
        };
        let uri = |shown: &str| written.artifact(shown);
        assert_eq!(
            uri("agents/a b:#.toml"),
            json!({"uri": "team/agents/a%20b%3A%23.toml", "uriBaseId": "%SRCROOT%"})
        );
        assert_eq!(
            uri("bundled:agents/é"),
            json!({"uri": "agents/%C3%A9", "uriBaseId": "%BUNDLED%"})
        );
        assert_eq!(uri("/tmp/x"), json!({"uri": "file:///tmp/x"}));
        assert_eq!(uri("<stdin>")["uri"], "team/%3Cstdin%3E");
    }

    #[test]
    fn a_result_has_its_rule_place_and_chain() {
        let (sources, mut finding) = example();
        finding.agents.truncate(1);
        let rule = finding.rule;
        let report = report(sources, vec![finding], Summary::default());
        let document: Value =
            serde_json::from_str(&Sarif::default().report(&report, &[rule])).expect("JSON");
        let run = &document["runs"][0];
        assert_eq!(run["tool"]["driver"]["rules"][0]["id"], "render/undefined");
        insta::assert_snapshot!(serde_json::to_string_pretty(&run["results"][0]).expect("JSON"), @r#"
        {
          "ruleId": "render/undefined",
          "level": "error",
          "message": {
            "text": "`msg` has no `contnet`\nhelp: did you mean `content`?\nreaches 1 agent"
          },
          "locations": [
            {
              "physicalLocation": {
                "artifactLocation": {
                  "uri": "partials/p.jinja",
                  "uriBaseId": "%SRCROOT%"
                },
                "region": {
                  "startLine": 2,
                  "startColumn": 14,
                  "endLine": 2,
                  "endColumn": 25
                }
              }
            }
          ],
          "partialFingerprints": {
            "reqc/v1": "c9460f39d032b15efa23e95248785cbb"
          },
          "properties": {
            "agents": [
              "OpenAI Chat 00"
            ],
            "contexts": [
              "plain-turn"
            ]
          },
          "ruleIndex": 0,
          "fixes": [
            {
              "description": {
                "text": "did you mean `content`?"
              },
              "artifactChanges": [
                {
                  "artifactLocation": {
                    "uri": "partials/p.jinja",
                    "uriBaseId": "%SRCROOT%"
                  },
                  "replacements": [
                    {
                      "deletedRegion": {
                        "startLine": 2,
                        "startColumn": 18,
                        "endLine": 2,
                        "endColumn": 25
                      },
                      "insertedContent": {
                        "text": "content"
                      }
                    }
                  ]
                }
              ]
            }
          ],
          "relatedLocations": [
            {
              "id": 1,
              "message": {
                "text": "included from here"
              },
              "physicalLocation": {
                "artifactLocation": {
                  "uri": "agents/base.toml",
                  "uriBaseId": "%SRCROOT%"
                },
                "region": {
                  "startLine": 3,
                  "startColumn": 13,
                  "endLine": 3,
                  "endColumn": 30
                }
              }
            }
          ]
        }
        "#);
    }

    #[test]
    fn nothing_found_is_a_run_without_results() {
        let document: Value =
            serde_json::from_str(&Sarif::default().report(&Report::default(), &[])).expect("JSON");
        assert_eq!(document["runs"][0]["results"], json!([]));
    }
}
