//! The comparison of two files that contain bodies, as text, as JSON, and as a comment on a pull
//! request.

use serde_json::{Value, json};

use super::escape::{code, html};
use crate::compare::{ComparedFiles, ComparedPair, LineColumn, PlacedDifference};
use crate::diag::count;
use crate::text::{Text, text};

/// Returns the comparison in human-readable form.
pub fn comparison_text(compared: &ComparedFiles) -> Text {
    let mut shown = text!("");
    for pair in &compared.pairs {
        shown.push(&text!("{}\n", heading(compared, pair)));
        for difference in &pair.differences {
            shown.push(&line(compared, difference));
        }
    }
    for line in &compared.unpaired_first {
        shown.push(&text!(
            "{}:{}: this body has no counterpart in {}\n",
            &compared.first,
            *line,
            &compared.second
        ));
    }
    for line in &compared.unpaired_second {
        shown.push(&text!(
            "{}:{}: this body has no counterpart in {}\n",
            &compared.second,
            *line,
            &compared.first
        ));
    }
    shown.push(&text!("{}\n", summary(compared)));
    shown
}

/// Returns the names of both bodies, their wire formats, and the share that they have in common.
fn heading(compared: &ComparedFiles, pair: &ComparedPair) -> String {
    format!(
        "{}:{} ({}) → {}:{} ({}): {} in both",
        compared.first,
        pair.first_line,
        pair.first_wire.name(),
        compared.second,
        pair.second_line,
        pair.second_wire.name(),
        count(pair.shared, "piece")
    )
}

fn line(compared: &ComparedFiles, it: &PlacedDifference) -> Text {
    let difference = &it.difference;
    let mark = if it.is_allowed { " (allowed)" } else { "" };
    let code = text!("{}", difference.code()).padded(WIDEST_CODE);
    let mut shown = text!("  {}  {}{}\n", code, &difference.message, mark);
    let no_place = difference.no_place.map(|why| no_place(it, why));
    for line in no_place.into_iter().chain(places(compared, it)) {
        shown.push(&text!("  {}  {}\n", text!("").padded(WIDEST_CODE), line));
    }
    shown
}

/// Returns a line that explains why the second format cannot carry the lost content.
fn no_place(it: &PlacedDifference, why: &str) -> String {
    format!("{} cannot carry it: {why}", it.second_wire.name())
}

/// The maximum width of a code, in columns.
const WIDEST_CODE: usize = 20;

/// Returns the locations of a difference: file, line, column, and pointer.
fn places(compared: &ComparedFiles, it: &PlacedDifference) -> Vec<String> {
    let sides = [
        (&compared.first, it.first, &it.difference.first),
        (&compared.second, it.second, &it.difference.second),
    ];
    let known = sides
        .into_iter()
        .filter_map(|(file, place, pointer)| Some((file, place?, pointer.as_ref()?)));
    known
        .map(|(file, place, pointer)| format!("{file}:{}:{}  {pointer}", place.line, place.column))
        .collect()
}

/// Returns the last line, which counts the pairs, the differences, and the losses.
fn summary(compared: &ComparedFiles) -> String {
    let differences: usize = compared
        .pairs
        .iter()
        .map(|pair| pair.differences.len())
        .sum();
    let unpaired = compared.unpaired_first.len() + compared.unpaired_second.len();
    match (differences + unpaired, compared.losses()) {
        (0, _) => format!(
            "{} compared, no differences",
            count(compared.pairs.len(), "pair")
        ),
        (all, losses) => {
            let losses = match losses {
                0 => "nothing is lost".to_owned(),
                1 => "1 loss".to_owned(),
                losses => format!("{losses} losses"),
            };
            format!(
                "{} compared, {}: {losses}",
                count(compared.pairs.len(), "pair"),
                count(all, "difference")
            )
        }
    }
}

/// Returns the comparison as JSON.
pub fn comparison_json(compared: &ComparedFiles) -> Value {
    json!({
        "first": compared.first, "second": compared.second, "losses": compared.losses(),
        "pairs": compared.pairs.iter().map(pair_json).collect::<Vec<_>>(),
        "unpaired": {"first": compared.unpaired_first, "second": compared.unpaired_second},
    })
}

fn pair_json(pair: &ComparedPair) -> Value {
    json!({
        "first": {"line": pair.first_line, "wire": pair.first_wire.name()},
        "second": {"line": pair.second_line, "wire": pair.second_wire.name()},
        "shared": pair.shared,
        "differences": pair.differences.iter().map(difference_json).collect::<Vec<_>>(),
    })
}

fn difference_json(it: &PlacedDifference) -> Value {
    let difference = &it.difference;
    json!({
        "kind": difference.kind.name(), "subject": difference.subject, "message": difference.message,
        "is_loss": difference.kind.is_loss(), "is_allowed": it.is_allowed, "no_place": difference.no_place,
        "first": place_json(it.first, difference.first.as_ref().map(crate::json::Pointer::as_str)),
        "second": place_json(it.second, difference.second.as_ref().map(crate::json::Pointer::as_str)),
    })
}

fn place_json(place: Option<LineColumn>, pointer: Option<&str>) -> Value {
    match (place, pointer) {
        (Some(place), Some(pointer)) => {
            json!({"line": place.line, "column": place.column, "pointer": pointer})
        }
        _ => Value::Null,
    }
}

/// Returns the comparison with a table for each pair.
pub fn comparison_markdown(compared: &ComparedFiles) -> Text {
    let mut shown = format!("### {}\n", html(&Text::line(&summary(compared))));
    for pair in compared
        .pairs
        .iter()
        .filter(|pair| !pair.differences.is_empty())
    {
        shown.push_str(&format!(
            "\n{}\n\n",
            html(&Text::line(&heading(compared, pair)))
        ));
        shown.push_str("| difference | what | where |\n| --- | --- | --- |\n");
        for it in &pair.differences {
            let places: Vec<String> = places(compared, it)
                .iter()
                .map(|place| code(place))
                .collect();
            let why = it
                .difference
                .no_place
                .map(|why| format!(". {}", no_place(it, why)))
                .unwrap_or_default();
            let message =
                html(&Text::line(&format!("{}{why}", it.difference.message))).replace('|', "\\|");
            shown.push_str(&format!(
                "| {} | {message} | {} |\n",
                code(&it.difference.code()),
                places.join("<br>")
            ));
        }
    }
    for line in &compared.unpaired_first {
        shown.push_str(&format!(
            "\n{} has no counterpart\n",
            code(&format!("{}:{line}", compared.first))
        ));
    }
    for line in &compared.unpaired_second {
        shown.push_str(&format!(
            "\n{} has no counterpart\n",
            code(&format!("{}:{line}", compared.second))
        ));
    }
    Text::lines(&shown)
}
