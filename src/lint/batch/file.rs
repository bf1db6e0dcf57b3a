//! The mistakes in a batch line that depend on the lines before it. For each ID, only a hash is
//! kept in memory. The number of hashes is limited to the most requests that any service accepts in
//! one file.

use std::collections::HashMap;
use std::collections::hash_map::{DefaultHasher, Entry};
use std::hash::Hasher;

use super::{Envelope, Flaw, Form, Service, rules};
use crate::diag::Rule;
use crate::provider::Server;
use crate::text::cut;

/// The maximum number of IDs that are stored. No service accepts more requests in one file.
const MOST_IDS: usize = 1_000_000;

/// The maximum number of a value's characters that a message shows.
const SHOWN: usize = 80;

/// The lines in a file that have been read so far.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// The number of the first line with an ID, by the ID's hash.
    ids: HashMap<u128, usize>,
    requests: usize,
    bytes: u64,
    first: Option<First>,
    /// `true` if the maximum number of requests was exceeded. Each limit is reported once.
    is_too_long: bool,
    is_too_large: bool,
}

/// The properties of a batch's first line that every other line must share.
#[derive(Debug)]
struct First {
    form: Form,
    service: Service,
    line: usize,
    url: Option<String>,
    model: Option<String>,
}

/// The location of a line, for messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// The number of the line or, in a document, of the request in its list, from 1.
    pub(crate) number: usize,
    /// `true` if the request is on its own line.
    pub(crate) is_line: bool,
    /// The size of the line in bytes. For a document, its first request gets the size of the whole
    /// document.
    pub(crate) bytes: u64,
}

impl Place {
    fn told(self, number: usize) -> String {
        let what = if self.is_line { "line" } else { "request" };
        format!("{what} {number}")
    }
}

/// A service's limits for one batch.
struct Most {
    requests: usize,
    bytes: u64,
}

impl Service {
    /// Returns the service's limits; `None` if they depend on the model or are unknown.
    fn most(self) -> Option<Most> {
        const MB: u64 = 1_000_000;
        match self {
            Service::OpenAi => Some(Most {
                requests: 50_000,
                bytes: 200 * MB,
            }),
            Service::Azure => Some(Most {
                requests: 100_000,
                bytes: 200 * MB,
            }),
            Service::Anthropic => Some(Most {
                requests: 100_000,
                bytes: 256 * MB,
            }),
            Service::Mistral => Some(Most {
                requests: 1_000_000,
                bytes: u64::MAX,
            }),
            Service::Gemini => Some(Most {
                requests: usize::MAX,
                bytes: 2_000 * MB,
            }),
            Service::Bedrock | Service::Unknown => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Service::OpenAi => "OpenAI",
            Service::Azure => "Azure",
            Service::Anthropic => "Anthropic",
            Service::Mistral => "Mistral",
            Service::Gemini => "Gemini",
            Service::Bedrock => "Bedrock",
            Service::Unknown => "the service",
        }
    }
}

impl Batch {
    /// Returns `true` if a line had an ID, so the file is a batch rather than a log.
    pub(crate) fn is_certain(&self) -> bool {
        !self.ids.is_empty()
    }

    /// Adds a line, and returns its mistakes: both its own and those that depend on earlier lines.
    pub(crate) fn add(
        &mut self,
        envelope: &Envelope,
        place: Place,
        named: Option<Server>,
    ) -> Vec<Flaw> {
        let service = self.service(envelope, named);
        self.requests += 1;
        self.bytes += place.bytes;
        let mut found = envelope.flaws(service);
        found.extend(envelope.missing_id(service));
        found.extend(self.repeated_id(envelope, place));
        found.extend(self.differing(envelope, place, service));
        found.extend(self.beyond(envelope, service));
        found
    }

    /// Returns the service that accepts a line. If the line does not identify it, the service of
    /// the first line is used, provided that both have the same form.
    fn service(&self, envelope: &Envelope, named: Option<Server>) -> Service {
        match (envelope.service(named), &self.first) {
            (Service::Unknown, Some(first)) if first.form == envelope.form => first.service,
            (service, _) => service,
        }
    }

    /// Reports an ID that an earlier line has already used.
    fn repeated_id(&mut self, envelope: &Envelope, place: Place) -> Option<Flaw> {
        let id = envelope.id.as_ref()?.as_str().filter(|id| !id.is_empty())?;
        let is_full = self.ids.len() >= MOST_IDS;
        let first = match self.ids.entry(hash(id)) {
            Entry::Occupied(first) => *first.get(),
            Entry::Vacant(free) if !is_full => {
                free.insert(place.number);
                return None;
            }
            Entry::Vacant(_) => return None,
        };
        let key = envelope.form.id_key();
        let message = format!(
            "{} already has the {key} `{}`",
            place.told(first),
            cut(id, SHOWN)
        );
        let flaw = envelope.flaw(
            &rules::DUPLICATE_ID,
            key,
            message,
            "give each request a unique id",
        );
        let is_refused = matches!(envelope.form, Form::Http | Form::Plain | Form::Params);
        Some(if is_refused { flaw } else { flaw.warning() })
    }

    /// Reports differences from the first line.
    fn differing(&mut self, envelope: &Envelope, place: Place, service: Service) -> Vec<Flaw> {
        let Some(first) = &mut self.first else {
            self.first = Some(First::of(envelope, place.number, service));
            return Vec::new();
        };
        if first.form != envelope.form {
            let message = format!("{} wraps its request differently", place.told(first.line));
            let key = envelope.form.request_key();
            return vec![envelope.flaw(
                &rules::MIXED,
                key,
                message,
                "use one service for all lines",
            )];
        }
        if envelope.form != Form::Http {
            return Vec::new();
        }
        let url = first
            .url
            .get_or_insert_with(|| envelope.path().unwrap_or_default().to_owned());
        let other_url = envelope.path().filter(|path| path != url).map(|path| {
            let message = format!(
                "`url` is `{}`, and {} has `{}`",
                cut(path, SHOWN),
                place.told(first.line),
                cut(url, SHOWN)
            );
            envelope.flaw(
                &rules::MIXED,
                "url",
                message,
                "make a separate file for each endpoint",
            )
        });
        let model = envelope.model.as_deref();
        let first_model = first
            .model
            .get_or_insert_with(|| model.unwrap_or_default().to_owned());
        let other_model = model.filter(|model| model != first_model).map(|model| {
            let message = format!(
                "`model` is `{}`, and {} has `{}`",
                cut(model, SHOWN),
                place.told(first.line),
                cut(first_model, SHOWN)
            );
            Flaw {
                at: envelope.inner("model"),
                ..envelope.flaw(
                    &rules::MIXED,
                    "",
                    message,
                    "make a separate file for each model",
                )
            }
        });
        let flaws = [other_url, other_model].into_iter().flatten();
        flaws
            .map(|flaw| {
                if service == Service::Unknown {
                    flaw.warning()
                } else {
                    flaw
                }
            })
            .collect()
    }

    /// Reports the first line beyond a limit.
    fn beyond(&mut self, envelope: &Envelope, service: Service) -> Option<Flaw> {
        let most = service.most()?;
        if !self.is_too_long && self.requests > most.requests {
            self.is_too_long = true;
            let message = format!(
                "{} accepts at most {} requests in one batch, and this request exceeds the limit",
                service.name(),
                most.requests
            );
            return Some(whole(envelope, &rules::LIMIT, message));
        }
        if !self.is_too_large && self.bytes > most.bytes {
            self.is_too_large = true;
            let message = format!(
                "{} accepts at most {} MB in one batch, and this request exceeds the limit",
                service.name(),
                most.bytes / 1_000_000
            );
            return Some(whole(envelope, &rules::LIMIT, message));
        }
        None
    }
}

impl First {
    fn of(envelope: &Envelope, line: usize, service: Service) -> First {
        let (url, model) = (envelope.path().map(str::to_owned), envelope.model.clone());
        First {
            form: envelope.form,
            service,
            line,
            url,
            model,
        }
    }
}

fn whole(envelope: &Envelope, rule: &'static Rule, message: String) -> Flaw {
    Flaw {
        at: envelope.at.clone(),
        ..envelope.flaw(rule, "", message, "split the batch")
    }
}

/// Returns a hash of 128 bits, which in practice no two IDs share; it is the same on every machine
/// and in every run.
fn hash(id: &str) -> u128 {
    half_hash(id, 0) << 64 | half_hash(id, 1)
}

fn half_hash(id: &str, seed: u8) -> u128 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u8(seed);
    hasher.write(id.as_bytes());
    u128::from(hasher.finish())
}
