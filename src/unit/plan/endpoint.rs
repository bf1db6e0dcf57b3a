//! Checks whether the server of a profile's provider instance supports the profile's endpoint.

use crate::diag::{Diagnostic, is_misspelling};
use crate::provider::{
    ClientApi, MODEL_PLACEHOLDER, Server, UrlParts, WrongPath, request_url, rules as provider_rules,
};
use crate::repo::Instance;
use crate::source::{Span, Spanned};

/// Returns the finding for an endpoint that is certainly wrong. `named` is the location of the
/// instance's name.
pub(super) fn wrong(
    instance: &Instance,
    api: ClientApi,
    named: Span,
    endpoint: &Spanned<&str>,
) -> Option<Diagnostic> {
    doubled_path(instance, api, named, endpoint)
        .or_else(|| unfilled(endpoint))
        .or_else(|| unserved(instance, api, endpoint))
        .or_else(|| elsewhere(instance, endpoint))
}

/// Returns the finding for an endpoint that repeats the end of the instance's URL, with the
/// location of the instance's name.
fn doubled_path(
    instance: &Instance,
    api: ClientApi,
    named: Span,
    endpoint: &Spanned<&str>,
) -> Option<Diagnostic> {
    let url: Vec<&str> = segments(UrlParts::of(&instance.url.value).path()).collect();
    let path = endpoint.value.split(['?', '#']).next().unwrap_or_default();
    let of_endpoint: Vec<&str> = segments(path).collect();
    let most = url.len().min(of_endpoint.len());
    let twice = (1..=most)
        .rev()
        .find(|&length| url.ends_with(&of_endpoint[..length]))?;
    let message = format!(
        "the path of the request contains `{}` twice",
        crate::text::cut(&of_endpoint[..twice].join("/"), 40)
    );
    let finding = Diagnostic::new(&provider_rules::DOUBLED_PATH, endpoint.span, message);
    let finding = finding.related(instance.url.span, "the URL already ends with it");
    let finding = match named.file == endpoint.span.file {
        true => finding,
        false => finding.related(named, "the instance is named here"),
    };
    let rest = of_endpoint[twice..].join("/");
    let mut known = api.endpoints().iter().copied();
    let slip = known.find(|known| is_misspelling(&rest, known));
    let rest = slip.map_or(rest, str::to_owned);
    Some(finding.help(if rest.is_empty() {
        let of_url = UrlParts::of(&instance.url.value).to_string();
        let repeated = of_endpoint.join("/");
        match of_url.trim_end_matches('/').strip_suffix(&repeated) {
            Some(base) => format!(
                "write `url = \"{}\"` in the instance: reqc appends the endpoint",
                crate::text::cut(base.trim_end_matches('/'), 80)
            ),
            None => "remove it from the instance's `url`: reqc appends the endpoint".to_owned(),
        }
    } else {
        format!("write `endpoint = \"{}\"`", crate::text::cut(&rest, 80))
    }))
}

/// Returns the parts of a path between its slashes.
fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|segment| !segment.is_empty())
}

/// Returns the finding for an endpoint that no server of the client API answers. A gateway may have
/// its own paths, so for gateways, only a likely misspelling is reported.
fn unserved(instance: &Instance, api: ClientApi, endpoint: &Spanned<&str>) -> Option<Diagnostic> {
    let known = api.endpoints();
    let path = endpoint
        .value
        .split(['?', '#'])
        .next()
        .unwrap_or_default()
        .trim_matches('/');
    let ends_with = |served: &&str| {
        path == *served
            || path
                .strip_suffix(*served)
                .is_some_and(|before| before.ends_with(['/', ':']))
    };
    if known.iter().any(ends_with) {
        return None;
    }
    let slip = known
        .iter()
        .find(|endpoint| is_misspelling(end(parts(endpoint), path), endpoint));
    let mut others = ClientApi::ALL.into_iter().filter(|other| *other != api);
    let other = others.find(|other| other.endpoints().iter().any(ends_with));
    let is_official = Server::by_host(UrlParts::of(&instance.url.value).host()).is_some();
    let help = match (slip, other) {
        (Some(slip), _) => {
            format!(
                "did you mean `{}{slip}`?",
                path.strip_suffix(end(parts(slip), path))
                    .unwrap_or_default()
            )
        }
        (None, Some(other)) => {
            format!(
                "it accepts bodies of the client API {}; the endpoint for {} is `{}`",
                other.name(),
                api.name(),
                known[0]
            )
        }
        (None, None) if is_official => {
            let right = WrongPath::of(&request_url(instance, known[0]));
            let right = right.and_then(|it| below(instance, it.right()));
            let right = right.as_deref().unwrap_or(known[0]);
            format!("the endpoint for {} is `{right}`", api.name())
        }
        (None, None) => return None,
    };
    let path = crate::text::cut(path, 60);
    let message = format!("`{path}` is not an endpoint of {}", api.name());
    Some(
        Diagnostic::new(&provider_rules::UNSERVED_ENDPOINT, endpoint.span, &*message)
            .in_sense(Some(message))
            .help(help),
    )
}

/// Returns the finding for an endpoint that the instance's host serves at a different path.
fn elsewhere(instance: &Instance, endpoint: &Spanned<&str>) -> Option<Diagnostic> {
    let wrong = WrongPath::of(&request_url(instance, endpoint.value))?;
    let right = crate::text::cut(wrong.right(), 80);
    let help = match below(instance, wrong.right()) {
        Some(below) => format!("write `endpoint = \"{}\"`", crate::text::cut(&below, 80)),
        None => format!("`url` and `endpoint` together must have the path `{right}`"),
    };
    let finding = Diagnostic::new(
        &provider_rules::UNSERVED_ENDPOINT,
        endpoint.span,
        wrong.message(),
    );
    let finding = finding.at_most(wrong.severity());
    let finding = finding.related(instance.url.span, "the instance is defined here");
    Some(finding.help(help))
}

/// Returns the finding for a placeholder other than `${MODEL}`, which would be sent unchanged.
fn unfilled(endpoint: &Spanned<&str>) -> Option<Diagnostic> {
    let rest = endpoint.value.replace(MODEL_PLACEHOLDER, "");
    let placeholder = &rest[rest.find(['{', '<', '$'])?..];
    let end = placeholder.find(['/', ':', '?']);
    let placeholder = &placeholder[..end.unwrap_or(placeholder.len())];
    let message = format!(
        "the endpoint contains `{}`, which reqc does not replace",
        crate::text::cut(placeholder, 40)
    );
    let finding = Diagnostic::new(&provider_rules::UNSERVED_ENDPOINT, endpoint.span, message);
    Some(finding.help("write `${MODEL}` for the model, which is the only placeholder"))
}

/// Returns the endpoint that points to a path on the instance's host; `None` if the instance's URL
/// points elsewhere.
fn below(instance: &Instance, path: &str) -> Option<String> {
    let base = UrlParts::of(&instance.url.value).path();
    let rest = path.strip_prefix(base.trim_end_matches('/'))?;
    Some(rest.trim_start_matches('/').to_owned())
}

fn parts(endpoint: &str) -> usize {
    endpoint.matches('/').count() + 1
}

fn end(parts: usize, path: &str) -> &str {
    let start = path
        .rmatch_indices(['/', ':'])
        .nth(parts - 1)
        .map_or(0, |(at, _)| at + 1);
    &path[start..]
}
