//! Renders the stories of conversations as text, JSON, a comment, or a page with a timeline.

mod sentences;
mod html;
mod json;

pub use html::stories_html;
pub use json::stories_json;

use sentences::{Sentence, heading, of_story, summary};

use super::escape::{code, html};
use crate::diag::count;
use crate::text::{Text, text};
use crate::traffic::{Place, Stories, Story};

/// The maximum number of stories without findings in human-readable reports.
const MOST_QUIET: usize = 20;

/// Returns the stories in human-readable form.
pub fn stories_text(stories: &Stories) -> Text {
    let mut shown = text!("");
    for (at, story) in told(stories) {
        shown.push(&text!("{}\n", heading(at, story)));
        for sentence in of_story(story) {
            shown.push(&lines(&sentence));
        }
        shown.push(&text!("\n"));
    }
    if let Some(more) = untold(stories, usize::MAX) {
        shown.push(&text!("{}\n\n", more));
    }
    for line in summary(stories) {
        shown.push(&text!("{}\n", line));
    }
    shown
}

/// Returns the stories to report: all with findings, and the first ones without.
fn told(stories: &Stories) -> impl Iterator<Item = (usize, &Story)> {
    let mut quiet = 0;
    stories
        .stories
        .iter()
        .enumerate()
        .filter(move |(_, story)| {
            quiet += usize::from(!story.has_findings());
            story.has_findings() || quiet <= MOST_QUIET
        })
}

/// Returns a sentence about the stories that are left out if at most `most` are shown; `None` if no
/// story is left out.
fn untold(stories: &Stories, most: usize) -> Option<String> {
    let hidden = stories.stories.len() - told(stories).take(most).count();
    let all = hidden + stories.untold;
    if all == 0 {
        return None;
    }
    let kind = match told(stories).nth(most) {
        None => ", without problems,",
        Some(_) => "",
    };
    let verb = if all == 1 { "is" } else { "are" };
    let listed = match hidden {
        0 => String::new(),
        _ if hidden == all => "; `--format json` lists all".to_owned(),
        _ => format!("; `--format json` lists {hidden} of them"),
    };
    let more = count(all, "more conversation");
    Some(format!("{more}{kind} {verb} not shown{listed}"))
}

/// Returns text whose parts in backticks are code.
fn prose(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('`')
        && let Some((name, behind)) = after.split_once('`')
    {
        shown.push_str(&format!("{}<code>{}</code>", html(before), html(name)));
        rest = behind;
    }
    shown + &html(rest)
}

fn lines(sentence: &Sentence) -> Text {
    let mark = if sentence.is_finding { "!" } else { " " };
    let mut shown = text!("{} {}\n", mark, &sentence.text);
    for (name, value) in [("was", &sentence.before), ("now", &sentence.after)] {
        if let Some(value) = value {
            shown.push(&text!("    {}  {}\n", name, value));
        }
    }
    if let Some(help) = &sentence.help {
        shown.push(&text!("    help: {}\n", help));
    }
    if let Some(place) = &sentence.place {
        shown.push(&text!("    {}\n", spelled(place)));
    }
    shown
}

fn spelled(place: &Place) -> String {
    format!("{}:{}", place.file, place.line)
}

/// Returns the stories for a comment or a summary.
pub fn stories_markdown(stories: &Stories) -> Text {
    let mut shown = String::new();
    for line in summary(stories) {
        shown.push_str(&format!("{}\n\n", html(&line)));
    }
    for (at, story) in told(stories) {
        shown.push_str(&format!("### {}\n\n", html(&heading(at, story))));
        for sentence in of_story(story) {
            let mark = if sentence.is_finding { "**!** " } else { "" };
            shown.push_str(&format!("- {mark}{}", prose(&sentence.text)));
            if let (Some(before), Some(after)) = (&sentence.before, &sentence.after) {
                shown.push_str(&format!("<br>{} → {}", code(before), code(after)));
            }
            if let Some(help) = &sentence.help {
                shown.push_str(&format!("<br>{}", prose(help)));
            }
            if let Some(place) = &sentence.place {
                shown.push_str(&format!(" ({})", code(&spelled(place))));
            }
            shown.push('\n');
        }
        shown.push('\n');
    }
    if let Some(more) = untold(stories, usize::MAX) {
        shown.push_str(&format!("{}\n", prose(&more)));
    }
    Text::lines(&shown)
}
