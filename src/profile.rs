//! Reads one profile as written in its file, before `extends` is resolved.
//!
//! Input: a parsed TOML table. Output: a [`Profile`], with its name, its parent's name, the keys
//! that are not inherited, and the table itself, checked key by key. [`resolve`](crate::resolve)
//! combines the profile with its ancestors.

mod rules;
mod written;

pub(crate) use rules::RULES;

use std::cell::LazyCell;
use std::ops::Range;
use std::sync::Arc;

use crate::conversation::ContentKind;
use crate::diag::Diagnostic;
use crate::panics::caught;
use crate::repo::folders;
use crate::repo::{
    INSTANCE_KEYS, Known, LayerFile, LayerKind, MAX_GLOBS, Reader, Repo, Special, address,
    body_fields, glob, headers, is_fatal, not_toml, rules as repo_rules,
};
use crate::source::{FileId, Span, Spanned};
use crate::toml::{self, Kind, Node, Table};

/// The newest `schema_version` of profiles that this crate supports.
pub const SCHEMA_VERSION: i64 = 1;

/// The keys of a profile, in the documented order.
pub const KEYS: [&str; 22] = [
    "schema_version",
    "name",
    "description",
    "tags",
    "extends",
    "abstract",
    "hidden",
    "provider_instance",
    "endpoint",
    "model",
    "system_prompt",
    "surroundings",
    "enable_tools",
    "enable_thinking",
    "cache_prompt",
    "cache_ttl",
    "cache_breakpoints",
    "leaves_out",
    "headers",
    "match",
    "unset",
    "body",
];

/// The keys in `[match]`.
pub const MATCH_KEYS: [&str; 3] = ["file_patterns", "path_patterns", "project_names"];

const PROFILE: Known = Known {
    what: "a profile",
    keys: &KEYS,
    inner: &[("[match]", &MATCH_KEYS)],
};

/// Keys that a child does not inherit.
const NOT_INHERITED: [&str; 6] = [
    "schema_version",
    "name",
    "extends",
    "abstract",
    "hidden",
    "unset",
];

/// One profile file.
#[derive(Debug, Clone)]
pub struct Profile {
    /// The profile's TOML file.
    pub file: FileId,
    /// The profile's layer.
    pub layer: LayerKind,
    /// The profile's name.
    pub name: Spanned<Arc<str>>,
    /// The parent's name.
    pub extends: Option<Spanned<Arc<str>>>,
    /// The location of the key that makes the profile abstract, if there is one.
    pub abstract_at: Option<Span>,
    /// `true` if listings omit the profile.
    pub hidden: bool,
    /// Inherited body fields and headers to remove, as paths.
    pub unset: Vec<Spanned<Vec<String>>>,
    /// The settings that its descendants inherit: the file without the keys that are not inherited.
    pub settings: Table,
    /// The number of values in the settings, including nested values.
    pub values: usize,
    /// `true` if a finding makes the profile unusable; its descendants are skipped.
    pub broken: bool,
}

/// Reads all profiles in a repository, in file order.
pub fn read_all(repo: &Repo) -> (Vec<Profile>, Vec<Diagnostic>) {
    let mut findings = Vec::new();
    let fields = LazyCell::new(|| body_fields(repo));
    let mut profiles = Vec::with_capacity(repo.profiles.len() + repo.unreadable_profiles.len());
    for source in &repo.profiles {
        let text = repo.sources.get(source.file).text();
        let read = caught(|| match toml::parse(text) {
            Ok(table) => {
                written::check(source.file, text, &table, &mut findings);
                Profile::read(
                    source.file,
                    source.layer,
                    table,
                    &|key| fields.contains(key),
                    &mut findings,
                )
            }
            Err(error) => {
                findings.push(not_toml(source.file, error));
                Profile::salvage(*source, text)
            }
        });
        match read {
            Ok(profile) => profiles.extend(profile),
            Err(panic) => findings.push(panic.finding("this file", Span::file_start(source.file))),
        }
    }
    let unreadable = repo.unreadable_profiles.iter();
    profiles.extend(
        unreadable
            .filter_map(|source| Profile::salvage(*source, repo.sources.get(source.file).text())),
    );
    (profiles, findings)
}

impl Profile {
    /// Checks one file's table. Returns `None` if the profile has no usable name. `is_field`
    /// returns `true` for the names of body fields.
    pub fn read(
        file: FileId,
        layer: LayerKind,
        mut table: Table,
        is_field: &dyn Fn(&str) -> bool,
        findings: &mut Vec<Diagnostic>,
    ) -> Option<Profile> {
        let first_finding = findings.len();
        let mut reader = Reader::new(file, &table, findings);
        let current = reader.schema_version(SCHEMA_VERSION);
        let has_old_keys = old_keys(&mut reader, file, &table);
        reader.only_beside(&PROFILE, |key| {
            match OLD_KEYS.iter().any(|(old, _)| *old == key) {
                true => Some(Special::Told),
                false if INSTANCE_KEYS.contains(&key) => {
                    Some(Special::Misplaced(in_an_instance(key)))
                }
                false => is_field(key).then(|| Special::Misplaced(below_body(key))),
            }
        });
        let name = reader.string("name");
        let extends = reader.string("extends");
        let abstract_at = reader
            .boolean("abstract")
            .filter(|it| it.value)
            .map(|it| it.span);
        let hidden = reader.boolean("hidden").is_some_and(|it| it.value);
        let unset = reader
            .strings("unset")
            .map(|list| list.value)
            .unwrap_or_default();
        check_settings(&mut reader);
        let headers = reader
            .table("headers")
            .map(|table| headers::read(&mut reader, table.value))
            .unwrap_or_default();
        if let Some(body) = reader.table("body") {
            check_body(&mut reader, file, body.value);
        }
        let name = check_name(&mut reader, file, name, &table)?;
        let failed = findings[first_finding..].iter().any(is_fatal);
        let unset = unset
            .into_iter()
            .map(|path| Spanned {
                value: split_path(&path.value),
                span: path.span,
            })
            .collect();
        let broken = !current || has_old_keys || failed;
        table.entries.retain(|(key, node)| {
            let is_secret = key.name == "endpoint" && holds_secret(node);
            !is_secret && !NOT_INHERITED.contains(&key.name.as_str())
        });
        keep_headers(&mut table, &headers);
        table.entries.shrink_to_fit();
        let values = table.values();
        Some(Profile {
            file,
            layer,
            name,
            extends,
            abstract_at,
            hidden,
            unset,
            settings: table,
            values,
            broken,
        })
    }

    /// Returns a broken profile from a file that cannot be parsed completely, so that its name is
    /// not reported as unknown.
    fn salvage(source: LayerFile, text: &str) -> Option<Profile> {
        let table = toml::parse(text)
            .or_else(|error| toml::salvage(text, &error).ok_or(error))
            .ok()?;
        let profile = Profile::read(
            source.file,
            source.layer,
            table,
            &|_| false,
            &mut Vec::new(),
        )?;
        Some(Profile {
            broken: true,
            ..profile
        })
    }

    /// Returns `true` if the profile can only be extended.
    pub fn is_abstract(&self) -> bool {
        self.abstract_at.is_some()
    }

    /// Returns the name of this agent's folder of golden files: ASCII letters and digits in lower
    /// case, and one `-` for every other run of characters.
    pub fn slug(&self) -> String {
        slug(&self.name.value)
    }
}

/// Returns the slug of a name.
pub fn slug(name: &str) -> String {
    let mut slug = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            c if c.is_ascii_alphanumeric() => slug.push(c.to_ascii_lowercase()),
            _ if slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
    }
    slug
}

/// Splits a dotted path into segments. A segment that contains dots is quoted: `a."b.c"`.
fn split_path(path: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    for c in path.chars() {
        match c {
            '"' => quoted = !quoted,
            '.' if !quoted => parts.push(String::new()),
            c => parts.last_mut().expect("never empty").push(c),
        }
    }
    parts
}

fn check_name(
    reader: &mut Reader<'_, '_>,
    file: FileId,
    name: Option<Spanned<Arc<str>>>,
    table: &Table,
) -> Option<Spanned<Arc<str>>> {
    match name {
        Some(name)
            if slug(&name.value)
                .bytes()
                .any(|byte| byte.is_ascii_alphanumeric()) =>
        {
            Some(name)
        }
        Some(name) => {
            let message = format!("the name `{}` has no ASCII letter or digit", name.value);
            let help = "golden files are named after it: use at least one of a-z, 0-9";
            reader
                .report(Diagnostic::new(&repo_rules::INVALID_VALUE, name.span, message).help(help));
            None
        }
        None => {
            if !reader.has("name") {
                reader.report(without_name(file, table));
            }
            None
        }
    }
}

/// Returns the finding for a profile without a name; it points to the name if the name is below a
/// header.
fn without_name(file: FileId, table: &Table) -> Diagnostic {
    match below_header(table, "name") {
        Some((header, span)) => misplaced_below(Span::new(file, span), "name", header),
        None => Diagnostic::new(
            &repo_rules::MISSING_KEY,
            Span::file_start(file),
            "a profile needs a `name`",
        )
        .help("add `name = \"…\"` at the top of the file"),
    }
}

/// Finds a profile key that is in one of the tables. Returns the table's name and the key's
/// location.
pub(crate) fn below_header<'t>(table: &'t Table, wanted: &str) -> Option<(&'t str, Range<usize>)> {
    table
        .entries
        .iter()
        .find_map(|(header, node)| match &node.kind {
            Kind::Table(inner) => Some((header.name.as_str(), inner.entry(wanted)?.0.span.clone())),
            _ => None,
        })
}

/// Returns the finding for a profile key that is in one of the tables.
pub(crate) fn misplaced_below(place: Span, key: &str, header: &str) -> Diagnostic {
    let message = format!("`{key}` is in the wrong table: it is under `[{header}]`");
    let help =
        "move it up, above the first `[…]` header: everything below a header belongs to its table";
    Diagnostic::new(&repo_rules::MISPLACED_KEY, place, message).help(help)
}

/// Returns advice for a body field that is above `[body]`.
fn below_body(field: &str) -> String {
    let help = "it is a field of the request body: move it under `[body]`";
    match field {
        "system" | "prompt" | "instructions" => {
            format!("{help}; for a system prompt, write `system_prompt`")
        }
        _ => help.to_owned(),
    }
}

/// Returns the advice for a provider instance key.
fn in_an_instance(key: &str) -> String {
    format!(
        "it is a key of a provider instance: write it in a file in `{}/`, and set `provider_instance` here to that file's `name`{}",
        folders::PROVIDERS,
        match key {
            "api_key_ref" => "; bundled instances already have it",
            _ => "",
        }
    )
}

/// Checks the types of the keys that are not read until the profile is resolved.
fn check_settings(reader: &mut Reader<'_, '_>) {
    for key in ["description", "system_prompt", "surroundings"] {
        reader.string(key);
    }
    if let Some(endpoint) = reader.string("endpoint") {
        check_endpoint(reader, &endpoint);
    }
    for key in ["provider_instance", "model"] {
        if let Some(text) = reader
            .string(key)
            .filter(|text| text.value.trim().is_empty())
        {
            let finding = Diagnostic::new(
                &repo_rules::INVALID_VALUE,
                text.span,
                format!("`{key}` must not be empty"),
            );
            reader.report(finding.help("write a name, or leave the key out"));
        }
    }
    for key in ["enable_tools", "enable_thinking", "cache_prompt"] {
        reader.boolean(key);
    }
    reader.strings("tags");
    reader.one_of("cache_ttl", &[("5m", ()), ("1h", ())]);
    let breakpoints = reader
        .strings("cache_breakpoints")
        .map(|list| list.value)
        .unwrap_or_default();
    for breakpoint in breakpoints {
        if Breakpoint::from_name(&breakpoint.value).is_none() {
            reader.invalid(
                "cache_breakpoints",
                &breakpoint,
                Breakpoint::ALL.into_iter().map(Breakpoint::name),
            );
        }
    }
    for kind in reader
        .strings("leaves_out")
        .map(|list| list.value)
        .unwrap_or_default()
    {
        if ContentKind::from_name(&kind.value).is_none() {
            reader.invalid(
                "leaves_out",
                &kind,
                ContentKind::ALL.into_iter().map(ContentKind::name),
            );
        }
    }
    if let Some(matching) = reader.table("match") {
        let mut inner = reader.inner(matching.value);
        inner.only(&Known::flat("[match]", &MATCH_KEYS));
        for key in MATCH_KEYS {
            let patterns = inner
                .strings(key)
                .map(|list| list.value)
                .unwrap_or_default();
            if let Some(one) = patterns.get(MAX_GLOBS) {
                inner.too_many(key, "patterns", MAX_GLOBS, one.span);
            }
            if key != "project_names" {
                patterns
                    .iter()
                    .take(MAX_GLOBS)
                    .for_each(|pattern| check_glob(&mut inner, key, pattern));
            }
        }
    }
}

fn check_endpoint(reader: &mut Reader<'_, '_>, endpoint: &Spanned<Arc<str>>) {
    let Err(problem) = address::endpoint(&endpoint.value) else {
        return;
    };
    let finding = match problem.holds_secret {
        true => Diagnostic::new(
            &repo_rules::LITERAL_SECRET,
            endpoint.span,
            "`endpoint` contains a key",
        ),
        false => Diagnostic::new(
            &repo_rules::INVALID_VALUE,
            endpoint.span,
            "`endpoint` is not a usable path",
        ),
    };
    reader.report(finding.label(problem.why).maybe_help(problem.help));
}

/// Returns `true` if an endpoint must never be shown, not even as an inherited value.
fn holds_secret(endpoint: &Node) -> bool {
    matches!(&endpoint.kind, Kind::String(text) if address::endpoint(text).is_err_and(|problem| problem.holds_secret))
}

/// Keeps only headers that can be sent, and lower-cases their names. As a result, headers are
/// merged regardless of case, and an API key is never shown as an inherited value.
fn keep_headers(table: &mut Table, sendable: &[(Arc<str>, Arc<str>)]) {
    let Some((_, node)) = table
        .entries
        .iter_mut()
        .find(|(key, _)| key.name == "headers")
    else {
        return;
    };
    let Kind::Table(headers) = &mut node.kind else {
        return;
    };
    headers
        .entries
        .iter_mut()
        .for_each(|(key, _)| key.name.make_ascii_lowercase());
    let mut left = sendable.iter().peekable();
    headers.entries.retain(|(key, node)| {
        left.next_if(|(name, value)| **name == *key.name && is_value(value, node))
            .is_some()
    });
}

fn is_value(value: &str, node: &Node) -> bool {
    matches!(&node.kind, Kind::String(text) if **text == *value)
}

fn check_glob(reader: &mut Reader<'_, '_>, key: &str, pattern: &Spanned<Arc<str>>) {
    if let Err(why) = glob(&pattern.value) {
        let message = format!("`{key}` contains an invalid glob: {why}");
        let help = "the wildcards are `*`, `?`, `[a-z]` and `{a,b}`, as in `*.rs`";
        reader
            .report(Diagnostic::new(&repo_rules::INVALID_VALUE, pattern.span, message).help(help));
    }
}

/// A position for a prompt-cache breakpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Breakpoint {
    /// The last system block.
    System,
    /// The last tool.
    Tools,
    /// The last block of the second-to-last message.
    History,
}

impl Breakpoint {
    /// All breakpoints, the most useful first.
    pub const ALL: [Breakpoint; 3] = [Breakpoint::System, Breakpoint::Tools, Breakpoint::History];

    /// Returns the breakpoint's name in `cache_breakpoints`.
    pub const fn name(self) -> &'static str {
        match self {
            Breakpoint::System => "system",
            Breakpoint::Tools => "tools",
            Breakpoint::History => "history",
        }
    }

    /// Returns the breakpoint with this name.
    pub fn from_name(name: &str) -> Option<Breakpoint> {
        Breakpoint::ALL
            .into_iter()
            .find(|breakpoint| breakpoint.name() == name)
    }
}

/// The keys of the older format, and their replacements.
const OLD_KEYS: [(&str, &str); 5] = [
    (
        "role",
        "put the text in a Markdown file and write `system_prompt = \"{{ read_file(':/roles/x.md') }}\"`, or the text itself as `system_prompt`",
    ),
    (
        "context",
        "write `system_prompt`: one template for everything that goes before the conversation",
    ),
    (
        "template",
        "`[template].message_format` is now `[body]`: the request body itself, with a template string where JSON is computed",
    ),
    (
        "sampling",
        "put the fields into `[body]` under the provider's own names, for example `temperature = 0.7`",
    ),
    (
        "thinking",
        "put the provider's own fields into `[body]`, for example `thinking = { type = \"adaptive\" }`, and set `enable_thinking = true`",
    ),
];

fn old_keys(reader: &mut Reader<'_, '_>, file: FileId, table: &Table) -> bool {
    let mut found = false;
    for (key, help) in OLD_KEYS {
        if let Some((written, _)) = table.entry(key) {
            let span = Span::new(file, written.span.clone());
            let message = format!("`{key}` belongs to the older profile format");
            reader.report(Diagnostic::new(&rules::OLD_KEY, span, message).help(help));
            found = true;
        }
    }
    found
}

fn check_body(reader: &mut Reader<'_, '_>, file: FileId, body: &Table) {
    if let Some((key, _)) = body.entry("model") {
        let finding = Diagnostic::new(
            &rules::MODEL_IN_BODY,
            Span::new(file, key.span.clone()),
            "`model` is set in `[body]`",
        );
        reader.report(
            finding
                .help("move it to the top level of the profile, above `[body]`: `model = \"…\"`"),
        );
    }
    body.entries
        .iter()
        .for_each(|(_, node)| check_value(reader, node));
}

/// Reports values that have no JSON form.
fn check_value(reader: &mut Reader<'_, '_>, node: &Node) {
    let what = match &node.kind {
        Kind::Datetime(_) => "a TOML date or time",
        Kind::Float(float) if float.is_nan() => "`nan`",
        Kind::Float(float) if float.is_infinite() => "`inf`",
        Kind::Array(elements) => {
            return elements
                .iter()
                .for_each(|element| check_value(reader, element));
        }
        Kind::Table(table) => {
            return table
                .entries
                .iter()
                .for_each(|(_, node)| check_value(reader, node));
        }
        _ => return,
    };
    let span = reader.span(node);
    let finding = Diagnostic::new(
        &rules::NO_JSON,
        span,
        format!("JSON cannot represent {what}"),
    );
    let help = match &node.kind {
        Kind::Datetime(text) => format!("write it as a string: \"{text}\""),
        _ => "write a number, or leave the key out".to_owned(),
    };
    reader.report(finding.help(help));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_fold_everything_else_into_dashes() {
        assert_eq!(slug("OpenAI (Chat) / v2"), "openai-chat-v2");
        assert_eq!(slug("a__b"), "a-b");
    }

    #[test]
    fn paths_split_at_dots_outside_quotes() {
        assert_eq!(split_path(r#"a."b.c".d"#), ["a", "b.c", "d"]);
    }
}
