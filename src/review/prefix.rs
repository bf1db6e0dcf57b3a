//! Measures the part of a cached prefix that a change invalidates.
//!
//! Servers cache the processed beginning of a request: tools, then instructions, then messages
//! (<https://platform.claude.com/docs/en/build-with-claude/prompt-caching>,
//! <https://platform.openai.com/docs/guides/prompt-caching>). Everything after the first difference
//! is processed again, and models do not share caches.

use serde_json::Value;

use crate::check::prefix;
use crate::diff::ChangedFile;

/// The lost part of a cached prefix.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PrefixLoss {
    /// The first differing location, as a JSON pointer.
    pub pointer: String,
    /// The share of the older prefix after that location, from 0 to 1, in bytes.
    pub share: f64,
}

/// Returns the loss caused by a change; `None` if the whole prefix is kept, or there was none.
pub(super) fn loss(file: &ChangedFile) -> Option<PrefixLoss> {
    file.subject.context.as_ref()?;
    let value = |text: &Option<String>| serde_json::from_str::<Value>(text.as_deref()?).ok();
    let (old, new) = (value(&file.old)?, value(&file.new)?);
    if old.get("model") != new.get("model") {
        return Some(PrefixLoss {
            pointer: "/model".to_owned(),
            share: 1.0,
        });
    }
    let (before, after) = (texts(&old), texts(&new));
    let whole: usize = before.iter().map(|(_, text)| text.len()).sum();
    let same = before
        .iter()
        .zip(&after)
        .take_while(|((_, a), (_, b))| a == b)
        .count();
    // A body that was only extended keeps its prefix.
    let (pointer, old_part) = before.get(same)?;
    let new_part = after.get(same).map_or("", |(_, text)| text);
    let common = old_part
        .bytes()
        .zip(new_part.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let kept: usize = before[..same]
        .iter()
        .map(|(_, text)| text.len())
        .sum::<usize>()
        + common;
    #[expect(clippy::cast_precision_loss, reason = "a share is shown in percent")]
    let share = (whole - kept) as f64 / whole as f64;
    Some(PrefixLoss {
        pointer: pointer.clone(),
        share,
    })
}

/// Returns the parts of a body that form its prefix, in order, as strings.
fn texts(body: &Value) -> Vec<(String, String)> {
    let parts = prefix::parts(|name| body.get(name)).into_iter();
    parts
        .map(|part| (part.pointer().as_str().to_owned(), part.value.to_string()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::BodyId;

    fn of(old: &str, new: &str) -> Option<(String, u32)> {
        let file = ChangedFile {
            subject: BodyId {
                agent: "a".into(),
                context: Some("c".into()),
            },
            path: String::new(),
            old: Some(old.to_owned()),
            new: Some(new.to_owned()),
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "percent"
        )]
        loss(&file).map(|loss| (loss.pointer, (loss.share * 100.0).round() as u32))
    }

    #[test]
    fn what_stands_behind_the_first_difference_is_lost() {
        let body = |system: &str, more: &str| {
            format!(
                r#"{{"messages": ["{}"{more}], "system": "{system}"}}"#,
                "m".repeat(98)
            )
        };
        assert_eq!(
            of(&body(&"s".repeat(98), ""), &body(&"t".repeat(98), "")),
            Some(("/system".to_owned(), 100))
        );
        let old = body(&"s".repeat(98), "");
        assert_eq!(
            of(&old, &old.replace("mm\"", "mx\"")),
            Some(("/messages/0".to_owned(), 1))
        );
        assert_eq!(of(&old, &body(&"s".repeat(98), r#", "x""#)), None);
        assert_eq!(
            of(&old, &old.replacen('{', r#"{"model": "x", "#, 1)),
            Some(("/model".to_owned(), 100))
        );
        assert_eq!(
            of(&old, &old.replacen('{', r#"{"temperature": 1, "#, 1)),
            None
        );
    }
}
