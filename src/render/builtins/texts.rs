//! Filters for strings and numbers.

use minijinja::value::{Kwargs, Rest, ValueKind, from_args};
use minijinja::{Error, ErrorKind, Value, filters};

use super::super::rope::{Cutter, Rope, Writer};
use super::super::tracked::{Native, Tracked};
use super::super::values::undefined;
use super::super::{account, values};
use super::invalid;

/// A text argument.
pub(super) struct Text(pub(super) std::sync::Arc<str>);

impl<'a> minijinja::value::ArgType<'a> for Text {
    type Output = Text;

    fn from_value(value: Option<&'a Value>) -> Result<Text, Error> {
        let value = value.ok_or_else(|| Error::from(ErrorKind::MissingArgument))?;
        match value.kind() {
            // A function may read its whole text argument.
            ValueKind::String => {
                account::read(value.as_bytes().map_or(0, <[u8]>::len))?;
                Ok(Text(value.to_str().unwrap_or_else(|| "".into())))
            }
            ValueKind::Undefined => Err(undefined()),
            _ => Ok(Text(text_of(value)?.into())),
        }
    }
}

/// Returns a value as text, in the engine's notation.
///
/// # Errors
///
/// Returns an error if the value is undefined or too large.
pub(in super::super) fn text_of(value: &Value) -> Result<String, Error> {
    if value.is_undefined() {
        return Err(undefined());
    }
    let units = values::weigh(value)?;
    account::charge(4 * units)?;
    Ok(value.to_string())
}

/// Changes the case of letters; if nothing else changes, each byte keeps its writer.
fn mapped(native: &Native<'_, '_>, change: impl Fn(&str) -> String) -> Result<Tracked, Error> {
    let (text,): (Text,) = from_args(&native.arguments.values)?;
    account::make(4 * text.0.len())?;
    let changed = change(&text.0);
    if !changed.eq_ignore_ascii_case(&text.0) {
        return Ok(native.computed(Value::from(changed)));
    }
    let mut rope = native.rope(0, &text.0);
    rope.text = changed;
    Ok(Tracked::text(rope))
}

pub(super) fn lower(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    mapped(native, str::to_lowercase)
}

pub(super) fn upper(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    mapped(native, str::to_uppercase)
}

pub(super) fn title(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    mapped(native, |text| filters::title(text.into()))
}

pub(super) fn capitalize(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    mapped(native, capitalized)
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars
        .next()
        .map(|first| first.to_uppercase().collect::<String>());
    first.unwrap_or_default() + &chars.as_str().to_lowercase()
}

pub(super) fn trim(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    const MAX_CHARS: usize = 64;
    let (text, chars): (Text, Option<&str>) = from_args(&native.arguments.values)?;
    account::make(text.0.len())?;
    let (behind_start, trimmed) = match chars {
        None => (text.0.trim_start(), text.0.trim()),
        Some(chars) if chars.len() > MAX_CHARS => {
            return Err(invalid(format!(
                "`trim` takes at most {MAX_CHARS} characters to trim"
            )));
        }
        Some(chars) => {
            account::read(text.0.len() * chars.len())?;
            let chars = chars.chars().collect::<Vec<char>>();
            (
                text.0.trim_start_matches(&chars[..]),
                text.0.trim_matches(&chars[..]),
            )
        }
    };
    let start = text.0.len() - behind_start.len();
    Ok(native.part(&text.0, start..start + trimmed.len()))
}

pub(super) fn replace(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    let (text, from, to): (Text, Text, Text) = from_args(&native.arguments.values)?;
    account::read(4 * text.0.len())?;
    let found = text.0.matches(&*from.0).count();
    account::make(
        text.0
            .len()
            .saturating_add(found.saturating_mul(to.0.len())),
    )?;
    let (value, to) = (native.arguments.get(0), native.rope(2, &to.0));
    let whole = value.with_runs(&text.0);
    let (mut made, mut cutter, mut rest) = (Rope::default(), Cutter::new(whole.slice()), 0);
    for (at, found) in text.0.match_indices(&*from.0) {
        cutter.cut(rest..at, &mut made);
        made.push(to.slice());
        rest = at + found.len();
    }
    cutter.cut(rest..text.0.len(), &mut made);
    Ok(Tracked::text(made))
}

pub(super) fn indent(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    const MAX_WIDTH: u32 = 1_000;
    let (text, width, first, blank): (Text, u32, Option<bool>, Option<bool>) =
        from_args(&native.arguments.values)?;
    if width > MAX_WIDTH {
        return Err(invalid(format!(
            "`indent` takes a width of at most {MAX_WIDTH}"
        )));
    }
    let (first, blank) = (first.unwrap_or(false), blank.unwrap_or(false));
    let lines = text.0.lines().count();
    account::read(text.0.len())?;
    // Each line becomes a separate group of pieces.
    account::list(lines)?;
    account::make(text.0.len() + lines * width as usize)?;
    let value = native.arguments.get(0);
    let whole = value.with_runs(&text.0);
    let (margin, mut indented, mut cutter) = (
        " ".repeat(width as usize),
        Rope::default(),
        Cutter::new(whole.slice()),
    );
    let mut start = 0;
    for line in text.0.strip_suffix('\n').unwrap_or(&text.0).split('\n') {
        let is_indented = if start == 0 {
            first
        } else {
            blank || !line.trim_end_matches('\r').is_empty()
        };
        if start > 0 {
            cutter.cut(start - 1..start, &mut indented);
        }
        if is_indented {
            indented.push_one(&margin, Writer::Tag);
        }
        cutter.cut(start..start + line.len(), &mut indented);
        start += line.len() + 1;
    }
    Ok(Tracked::text(indented))
}

pub(super) fn split(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    let (text, separator, count): (Text, Option<&Value>, Option<i64>) =
        from_args(&native.arguments.values)?;
    let separator = separator.filter(|separator| !separator.is_none());
    let limit = count
        .and_then(|count| usize::try_from(count).ok())
        .map(|count| count.saturating_add(1));
    let text = &*text.0;
    match (
        separator.map(|separator| {
            separator
                .as_str()
                .ok_or_else(|| invalid("the separator of `split` must be a string"))
        }),
        limit,
    ) {
        (None, None) => listed(native, text, text.split_whitespace()),
        (None, Some(limit)) => listed(native, text, words(text, limit)),
        (Some(separator), None) => listed(native, text, text.split(separator?)),
        (Some(separator), Some(limit)) => listed(native, text, text.splitn(limit, separator?)),
    }
}

pub(super) fn lines(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    let (text,): (Text,) = from_args(&native.arguments.values)?;
    listed(native, &text.0, text.0.lines())
}

/// Returns at most `limit` parts of a string: its first words and, as the last part, the rest of
/// the text.
fn words(text: &str, limit: usize) -> impl Iterator<Item = &str> {
    let (mut rest, mut left) = (text.trim_start(), limit);
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        left = left.saturating_sub(1);
        let end = if left == 0 {
            rest.len()
        } else {
            rest.find(char::is_whitespace).unwrap_or(rest.len())
        };
        let (word, behind) = rest.split_at(end);
        rest = behind.trim_start();
        Some(word.trim_end())
    })
}

/// Returns the given parts of a string, which are in order, as a list.
fn listed<'t>(
    native: &Native<'_, '_>,
    text: &'t str,
    parts: impl Iterator<Item = &'t str>,
) -> Result<Tracked, Error> {
    account::make(text.len())?;
    let value = native.arguments.get(0);
    let whole = value.with_runs(text);
    let (mut cutter, mut from, mut elements) = (Cutter::new(whole.slice()), 0, Vec::new());
    for part in parts {
        account::charge(account::ELEMENT)?;
        // Each part occurs in the remaining text. Its next occurrence is its origin, or at least
        // has the same text.
        let start = from + text[from..].find(part).unwrap_or_default();
        from = start + part.len();
        elements.push(Tracked::text(cutter.part(start..from)));
    }
    Ok(Tracked::list(elements))
}

pub(super) fn string(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    let (value,): (&Value,) = from_args(&native.arguments.values)?;
    let text = text_of(value)?;
    Ok(Tracked::text(native.rope(0, &text)))
}

/// Returns `true` if `default` keeps its input: the input is defined and, if the third argument
/// requires it, true.
pub(in super::super) fn keeps_value(arguments: &[Value]) -> bool {
    let asks_for_true = arguments.get(2).is_some_and(Value::is_true);
    arguments
        .first()
        .is_some_and(|value| !value.is_undefined() && (value.is_true() || !asks_for_true))
}

/// Replaces a missing value with a default.
pub(super) fn default(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    let (value, others): (&Value, Rest<Value>) = from_args(&native.arguments.values)?;
    let given = filters::default(native.state, value, Rest(others.0.clone()))?;
    let is_kept = keeps_value(&native.arguments.values);
    let origin = native.arguments.get(usize::from(!is_kept)).origin;
    Ok(Tracked {
        value: given,
        origin,
    })
}

pub(super) fn abs(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    let (value,): (Value,) = from_args(&native.arguments.values)?;
    filters::abs(value).map(Tracked::plain)
}

pub(super) fn int(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    let (value, default, base, options): (&Value, Option<Value>, Option<u32>, Kwargs) =
        from_args(&native.arguments.values)?;
    account::read(value.as_bytes().map_or(0, <[u8]>::len))?;
    filters::int(native.state, value, default, base, options).map(Tracked::plain)
}

pub(super) fn float(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    let (value, default, options): (&Value, Option<Value>, Kwargs) =
        from_args(&native.arguments.values)?;
    account::read(value.as_bytes().map_or(0, <[u8]>::len))?;
    filters::float(native.state, value, default, options).map(Tracked::plain)
}

pub(super) fn round(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    const MAX_PRECISION: u32 = 30;
    let (value, precision, method, options): (Value, Option<i32>, Option<&str>, Kwargs) =
        from_args(&native.arguments.values)?;
    let named: Option<i32> = options.get("precision")?;
    if precision
        .or(named)
        .is_some_and(|precision| precision.unsigned_abs() > MAX_PRECISION)
    {
        return Err(invalid(format!(
            "`round` takes a precision of at most {MAX_PRECISION}"
        )));
    }
    filters::round(value, precision, method, options).map(Tracked::plain)
}
