//! A self-contained HTML page: each conversation with a chart of its request sizes over time, and
//! its story.

use super::sentences::{Sentence, heading, of_story, summary};
use super::{prose, spelled, told, untold};
use crate::report::escape::{code, html};
use crate::report::thousands;
use crate::text::Text;
use crate::traffic::{Point, Share, Stories, Story};

/// The page's content security policy, which allows only the page's own styles.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";
const STYLE: &str = include_str!("stories.css");

/// The maximum number of conversations shown.
const MOST: usize = 300;

/// Returns the stories as an HTML document.
pub fn stories_html(stories: &Stories) -> Text {
    let summary = summary(stories);
    let title = summary.first().map(|line| html(line)).unwrap_or_default();
    let lines: Vec<String> = summary
        .iter()
        .map(|line| format!("<p>{}</p>\n", html(line)))
        .collect();
    let lines = lines.concat();
    let sections: String = told(stories)
        .take(MOST)
        .map(|(at, story)| section(at, story))
        .collect();
    let more = untold(stories, MOST).map(|more| format!("<p>{}</p>\n", prose(&more)));
    let more = more.unwrap_or_default();
    Text::lines(&format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>reqc: {title}</title>\n<style>\n{STYLE}</style>\n</head>\n\
         <body>\n<main>\n{lines}{legend}{sections}{more}</main>\n</body>\n</html>\n",
        legend = legend()
    ))
}

fn legend() -> String {
    let parts = Share::ALL
        .iter()
        .map(|share| format!("<span class=\"{0}\">■</span> {0} ", share.name()));
    let parts: String = parts.collect();
    format!(
        "<p class=\"legend\">{parts}<span class=\"other\">■</span> not in the file \
         <span class=\"cached\">╌╌</span> from the cache \
         <span class=\"mark\">│</span> the prefix changed, or the cache was missed \
         <span class=\"summary\">│</span> a summary \
         <span class=\"mark\">┈┈</span> the context window</p>\n"
    )
}

fn section(at: usize, story: &Story) -> String {
    let sentences: String = of_story(story).iter().map(sentence).collect();
    format!(
        "<section>\n<h2>{}</h2>\n{}<ul>\n{sentences}</ul>\n</section>\n",
        html(&heading(at, story)),
        picture(story)
    )
}

fn sentence(sentence: &Sentence) -> String {
    let class = if sentence.is_finding {
        " class=\"finding\""
    } else {
        ""
    };
    let mut shown = format!("<li{class}>{}", prose(&sentence.text));
    if let (Some(before), Some(after)) = (&sentence.before, &sentence.after) {
        shown.push_str(&format!("<br>{}<br>{}", code(before), code(after)));
    }
    if let Some(help) = &sentence.help {
        shown.push_str(&format!("<br><small>{}</small>", prose(help)));
    }
    if let Some(place) = &sentence.place {
        shown.push_str(&format!(" <small>{}</small>", code(&spelled(place))));
    }
    shown + "</li>\n"
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 160.0;

/// The scales of a chart.
struct Scale {
    first: usize,
    requests: usize,
    most: u64,
}

impl Scale {
    #[expect(clippy::cast_precision_loss, reason = "f64 is precise enough")]
    fn x(&self, request: usize) -> f64 {
        let span = self.requests.saturating_sub(self.first).max(1) as f64;
        request.saturating_sub(self.first) as f64 / span * WIDTH
    }

    #[expect(clippy::cast_precision_loss, reason = "f64 is precise enough")]
    fn y(&self, tokens: u64) -> f64 {
        HEIGHT - tokens as f64 / self.most.max(1) as f64 * HEIGHT
    }
}

/// Draws a chart of the sizes of a conversation's requests, with their parts stacked.
fn picture(story: &Story) -> String {
    let points = &story.growth.points;
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return String::new();
    };
    if points.len() < 2 {
        return String::new();
    }
    let most = points
        .iter()
        .map(|point| point.total().max(point.cached))
        .max()
        .unwrap_or_default();
    let window = story
        .growth
        .window
        .filter(|window| *window < most.saturating_mul(2));
    let scale = Scale {
        first: first.request,
        requests: last.request,
        most: window.unwrap_or_default().max(most),
    };
    // The labels are outside the drawing, so that they stay readable when it shrinks.
    let mut shown = format!(
        "<figure>\n<p>0 to {} tokens</p>\n\
         <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"tokens of each request\">\n",
        thousands(scale.most)
    );
    shown.push_str(&area(points, &scale, "other", |point| (0, point.other)));
    for (at, share) in Share::ALL.iter().enumerate() {
        shown.push_str(&area(points, &scale, share.name(), |point| {
            let below = point.other + point.tokens[..at].iter().sum::<u64>();
            (below, below + point.tokens[at])
        }));
    }
    shown.push_str(&line(points, &scale));
    for found in &story.breaks {
        shown.push_str(&mark(&scale, found.request, "mark"));
    }
    if let Some(missed) = &story.counted.missed {
        for request in &missed.requests {
            shown.push_str(&mark(&scale, *request, "mark"));
        }
    }
    for found in &story.compactions {
        shown.push_str(&mark(&scale, found.request, "summary"));
    }
    if let Some(window) = window {
        let y = scale.y(window);
        shown.push_str(&format!(
            "<line class=\"window\" x1=\"0\" x2=\"{WIDTH}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\n"
        ));
    }
    format!(
        "{shown}<line class=\"axis\" x1=\"0\" x2=\"{WIDTH}\" y1=\"{HEIGHT}\" y2=\"{HEIGHT}\"/>\n</svg>\n\
         <p class=\"ends\"><span>request {}</span><span>request {}</span></p>\n</figure>\n",
        scale.first, scale.requests
    )
}

fn area(
    points: &[Point],
    scale: &Scale,
    class: &str,
    ends: impl Fn(&Point) -> (u64, u64),
) -> String {
    if points.iter().all(|point| ends(point).0 == ends(point).1) {
        return String::new();
    }
    let above = points.iter().map(|point| {
        format!(
            "{:.1},{:.1}",
            scale.x(point.request),
            scale.y(ends(point).1)
        )
    });
    let below = points.iter().rev().map(|point| {
        format!(
            "{:.1},{:.1}",
            scale.x(point.request),
            scale.y(ends(point).0)
        )
    });
    let corners: Vec<String> = above.chain(below).collect();
    format!(
        "<polygon class=\"{class}\" points=\"{}\"/>\n",
        corners.join(" ")
    )
}

fn line(points: &[Point], scale: &Scale) -> String {
    if points.iter().all(|point| point.cached == 0) {
        return String::new();
    }
    let corners: Vec<String> = points
        .iter()
        .map(|point| format!("{:.1},{:.1}", scale.x(point.request), scale.y(point.cached)))
        .collect();
    format!(
        "<polyline class=\"cached\" points=\"{}\"/>\n",
        corners.join(" ")
    )
}

fn mark(scale: &Scale, request: usize, class: &str) -> String {
    let x = scale.x(request);
    format!(
        "<line class=\"{class}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"0\" y2=\"{HEIGHT}\"><title>request {request}</title></line>\n"
    )
}
