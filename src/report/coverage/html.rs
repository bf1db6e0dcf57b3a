//! A self-contained HTML page: each file with its lines, their counts, and its gaps.

use std::collections::BTreeMap;

use super::{sentence, shares, summary};
use crate::compile::coverage::{Coverage, FileCoverage, Gap};
use crate::report::escape::html;
use crate::text::Text;

/// The page's content security policy, which allows only the page's own styles.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";
const STYLE: &str = include_str!("coverage.css");

/// Returns the coverage as an HTML document.
pub fn coverage_html(coverage: &Coverage) -> Text {
    let title = html(&summary(coverage));
    let sections = coverage.files.iter().map(|file| section(coverage, file));
    let sections: String = sections.collect();
    Text::lines(&format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>reqc coverage</title>\n<style>\n{STYLE}</style>\n</head>\n\
         <body>\n<main>\n<h1>{title}</h1>\n{sections}</main>\n</body>\n</html>\n"
    ))
}

fn section(coverage: &Coverage, file: &FileCoverage) -> String {
    let source = coverage.sources.get(file.file);
    let mut gaps: BTreeMap<usize, Vec<&Gap>> = BTreeMap::new();
    for gap in &file.gaps {
        let line = source.position(gap.span.range().start).line;
        gaps.entry(line).or_default().push(gap);
    }
    let is_whole = file.gaps.is_empty() && file.lines().reached == file.lines().all;
    let rows: String = source
        .text()
        .lines()
        .zip(1..)
        .map(|(text, line)| row(line, text, file.lines.get(&line), gaps.get(&line)))
        .collect();
    format!(
        "<details{open}>\n<summary>{path} <small>{shares}</small></summary>\n<table>\n{rows}</table>\n</details>\n",
        open = if is_whole { "" } else { " open" },
        path = html(&file.path),
        shares = html(&shares(file.lines(), file.outcomes()))
    )
}

fn row(line: usize, text: &str, ran: Option<&u64>, gaps: Option<&Vec<&Gap>>) -> String {
    let (class, count) = match (ran, gaps) {
        (Some(0), _) => ("never", "0".to_owned()),
        (Some(count), Some(_)) => ("part", count.to_string()),
        (None, Some(_)) => ("part", String::new()),
        (Some(count), None) => ("ran", count.to_string()),
        (None, None) => ("", String::new()),
    };
    let mut told = String::new();
    for gap in gaps.into_iter().flatten() {
        told.push_str("<p>");
        told.push_str(&html(&sentence(gap)));
        told.push_str("</p>");
    }
    format!(
        "<tr class=\"{class}\"><td>{line}</td><td>{count}</td><td><pre>{}</pre>{told}</td></tr>\n",
        html(text)
    )
}
