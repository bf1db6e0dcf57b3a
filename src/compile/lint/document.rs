//! Checks one document or one line: finds the bodies in it, their problems, and the locations of
//! the problems.

use std::ops::Range;

use rayon::prelude::*;
use serde_json::{Value, json};

use crate::check::{About, Problem};
use crate::compile::compiler::Compiler;
use crate::compile::finding;
use crate::compile::judge::{Judge, LintTarget, Linted, api, local_server};
use crate::diag::{Diagnostic, Rule, Severity};
use crate::json::{self, JsonError, Pointer};
use crate::lint::{
    Endpoint, Envelope, Excerpt, Flaw, FoundBody, Harvest, ModelAt, Places, Settings, Stranger,
    Unrecognised, Unsearched, Unsupported, WrongUrl, excerpts, find, find_near, find_sent,
    place_in_record, recognise_among, rules,
};
use crate::panics::{PANIC, caught};
use crate::provider::{ApiHeaders, MODEL_PLACEHOLDER, Server, WireFormat};
use crate::source::{FileId, Span};

/// The formats whose requests name the model in the URL: Gemini's always, Anthropic's on Bedrock
/// and Vertex AI.
const MODEL_IN_URL: [WireFormat; 2] = [
    WireFormat::GoogleGenerateContent,
    WireFormat::AnthropicMessages,
];

/// The findings in one document or line.
#[derive(Default)]
pub(super) struct Judged {
    pub(super) formats: Vec<WireFormat>,
    pub(super) passed_over: usize,
    /// The number of bodies whose model is unknown.
    pub(super) without_model: usize,
    /// The format of a request that was passed over because this format is not checked.
    pub(super) passed_format: Option<Unsupported>,
    pub(super) told: Vec<Told>,
    /// The batch lines in the document, or the line itself.
    pub(super) envelopes: Vec<Envelope>,
}

impl Judged {
    /// Adds the findings in another document of the same text.
    fn add(&mut self, other: Judged) {
        self.formats.extend(other.formats);
        self.passed_over += other.passed_over;
        self.without_model += other.without_model;
        self.passed_format = self.passed_format.or(other.passed_format);
        self.told.extend(other.told);
    }

    /// Returns `true` if there are neither requests nor findings.
    fn is_empty(&self) -> bool {
        self.formats.is_empty() && self.told.is_empty() && self.passed_over == 0
    }

    /// Moves the findings in an excerpt to the text that contains it.
    fn moved(mut self, excerpt: &Excerpt) -> Judged {
        for told in &mut self.told {
            told.range = excerpt.to_text(told.range.clone());
            let within = told.within.take().map(|within| excerpt.to_text(within));
            told.within = within.or(Some(excerpt.range.clone()));
        }
        self
    }
}

/// A problem, and its location in the text.
pub(super) struct Told {
    pub(super) range: Range<usize>,
    pub(super) problem: Problem,
    /// The range that may be shown around the problem; `None` for no limit. For a capture, it
    /// contains only the body.
    pub(super) within: Option<Range<usize>>,
    /// The kind of value, if the value is not a body.
    pub(super) stranger: Option<Stranger>,
}

impl Told {
    pub(super) fn new(range: Range<usize>, problem: Problem) -> Told {
        Told {
            range,
            problem,
            within: None,
            stranger: None,
        }
    }

    /// Returns the problem as a finding in a file. `start` is the offset at which the file's
    /// content begins in the whole text.
    pub(super) fn at(self, file: FileId, start: usize) -> Diagnostic {
        let Told { range, problem, .. } = self;
        let pointer = problem.pointer.clone();
        let span = problem.place.unwrap_or_else(|| {
            Span::new(
                file,
                range.start - start..range.end.max(range.start) - start,
            )
        });
        finding::finding(problem, span).in_body_at(pointer.as_str())
    }
}

pub(super) fn problem(
    rule: &'static Rule,
    message: impl Into<String>,
    help: Option<&str>,
) -> Problem {
    let (message, help) = (message.into(), help.map(str::to_owned));
    Problem {
        rule,
        severity: None,
        pointer: Pointer::root(),
        message,
        help,
        sense: None,
        about: About::Meaning,
        sources: &[],
        is_of_model: false,
        lacks: Vec::new(),
        place: None,
    }
}

impl Told {
    /// Returns a mistake in a batch line.
    pub(super) fn of_flaw(places: &mut Places<'_>, flaw: Flaw) -> Told {
        let range = places.of(None, &flaw.at, flaw.is_about_key);
        let problem = problem(flaw.rule, flaw.message, Some(flaw.help));
        Told::new(
            range,
            Problem {
                severity: Some(flaw.severity),
                pointer: flaw.at,
                ..problem
            },
        )
    }
}

/// The rules and schemas that bodies are checked against.
pub(super) struct DocumentJudge<'c> {
    pub(super) compiler: &'c Compiler,
    pub(super) wire: Option<WireFormat>,
    pub(super) target: LintTarget<'c>,
    /// The URL of all requests, if it is known and the documents do not contain it.
    pub(super) url: Option<String>,
}

impl DocumentJudge<'_> {
    /// Checks a JSON document. If the text is not JSON, checks the bodies that it contains: in a log,
    /// or as a program printed them.
    pub(super) fn judge(&self, text: &str) -> Judged {
        let error = match json::parse(text) {
            Ok(document) => return self.document(text, document, None),
            Err(error) => error,
        };
        let syntax = syntax(text);
        let found = (syntax != Syntax::Json)
            .then(|| self.excerpts(text))
            .flatten();
        let is_log = found.is_some() && syntax == Syntax::Text;
        let mut judged = found.unwrap_or_default();
        if syntax == Syntax::Text && text.trim().contains('\n') {
            let without = (!is_log).then(|| without_body(text));
            judged.told.extend(without);
        } else if !is_log {
            judged.told.push(broken(error.range.clone(), &error));
        }
        judged
    }

    /// Checks the bodies that a text contains; `None` if it contains none.
    pub(super) fn excerpts(&self, text: &str) -> Option<Judged> {
        let mut all = Judged::default();
        let mut is_empty = true;
        let mut end = 0;
        for found in excerpts(text) {
            let excerpt = match found {
                Ok(excerpt) => excerpt,
                Err(Unsearched(at)) => {
                    all.told.push(unsearched(at));
                    is_empty = false;
                    break;
                }
            };
            all.told
                .extend(broken_lines(text, end..excerpt.range.start));
            end = excerpt.range.end;
            let mut judged = self.excerpt(&excerpt);
            judged.told.retain(|told| told.stranger.is_none());
            is_empty &= judged.is_empty();
            all.add(judged.moved(&excerpt));
        }
        all.told.extend(broken_lines(text, end..text.len()));
        (!is_empty).then_some(all)
    }

    fn excerpt(&self, excerpt: &Excerpt) -> Judged {
        match json::parse(&excerpt.json) {
            Ok(mut document) => {
                // LiteLLM prints this setting, but does not send it.
                if let Some(members) = document.as_object_mut()
                    && members.get("extra_body").is_some_and(|it| *it == json!({}))
                {
                    members.remove("extra_body");
                }
                self.document(&excerpt.json, document, Some(excerpt))
            }
            Err(error) if is_like_body(&excerpt.json) => Judged {
                told: vec![broken(error.range.clone(), &error)],
                ..Judged::default()
            },
            Err(_) => Judged::default(),
        }
    }

    /// Checks a document, which may be an excerpt from a log.
    fn document(&self, text: &str, document: Value, excerpt: Option<&Excerpt>) -> Judged {
        let near = excerpt.and_then(|excerpt| excerpt.url.as_deref());
        let is_capture = document
            .pointer("/log/entries")
            .is_some_and(Value::is_array);
        // The text around a body may contain a key.
        let is_private = is_capture || excerpt.is_some();
        let Harvest {
            bodies,
            passed_over,
            passed_format,
            broken: unreadable,
            strangers,
            unsupported,
            envelopes,
        } = match (&self.url, near) {
            (Some(url), _) => find_sent(url, document, self.wire),
            (None, Some(url)) => find_near(url, document, self.wire),
            (None, None) => find(document, self.wire),
        };
        let judged: Vec<_> = bodies.into_par_iter().map(|body| self.body(body)).collect();
        let mut all = Judged {
            passed_over,
            passed_format,
            envelopes,
            ..Judged::default()
        };
        all.formats
            .extend(judged.iter().filter_map(|body| body.wire));
        all.without_model = judged.iter().filter(|body| body.is_model_unknown).count();
        let wrong: Vec<JudgedBody> = judged
            .into_iter()
            .filter(|body| !body.problems.is_empty() || body.wrong_url.is_some())
            .collect();
        if wrong.is_empty()
            && unreadable.is_empty()
            && strangers.is_empty()
            && unsupported.is_empty()
        {
            return all;
        }
        let mut places = Places::new(text);
        wrong
            .into_iter()
            .for_each(|body| body.tell(&mut places, is_private, &mut all.told));
        for (string, error) in unreadable {
            let told = broken(places.of_mistake(&string, error.range.clone()), &error);
            all.told.push(Told {
                within: places.literal(&string).filter(|_| is_capture),
                ..told
            });
        }
        for (string, at, kind) in strangers {
            let told = Told::new(places.of(string.as_ref(), &at, false), stranger(kind));
            all.told.push(Told {
                stranger: Some(kind),
                ..told
            });
        }
        for (string, at, format) in unsupported {
            all.told.push(Told::new(
                places.of(string.as_ref(), &at, false),
                unrecognised(&Unrecognised::Unsupported(format)),
            ));
        }
        all
    }

    /// Returns the server for all bodies, if one is given.
    pub(super) fn server(&self) -> Option<Server> {
        self.target.given_server().or(self
            .target
            .instance
            .and_then(|instance| Some(Server::of(instance, api(instance)?))))
    }

    fn is_server_known(&self) -> bool {
        self.target.named.is_some() || self.target.server.is_some()
    }

    fn body(&self, body: FoundBody) -> JudgedBody {
        let FoundBody {
            value,
            string,
            at,
            endpoint,
            headers,
            model_at,
            settings,
            wrong_url,
        } = body;
        let endpoint = endpoint.as_ref();
        let linted = caught(|| {
            let wire = self.wire.or(endpoint.map(|endpoint| endpoint.wire));
            let wire = wire.map_or_else(|| self.recognised(&value, model_at), Ok)?;
            let target = self.target_of(wire, endpoint, model_at);
            let headers = Some(headers.or(|| target.all_headers()));
            self.judged(&value, wire, &LintTarget { headers, ..target }, endpoint)
        });
        let (wire, problems) = match linted {
            Ok(Ok(linted)) => (Some(linted.wire), linted.problems),
            Ok(Err(why)) => (None, vec![unrecognised(&why)]),
            Err(panic) => {
                let (message, help) = panic.told("this body");
                (None, vec![problem(&PANIC, message, Some(&help))])
            }
        };
        let is_model_unknown = model_at == ModelAt::Request
            && wire.is_some_and(|wire| MODEL_IN_URL.contains(&wire))
            && value.get("model").is_none()
            && self.model_at(endpoint).is_none();
        JudgedBody {
            wire,
            problems,
            string,
            at,
            settings,
            wrong_url,
            is_model_unknown,
        }
    }

    /// Returns the model that is given for all bodies, or else the one in the URL.
    fn model_at<'t>(&'t self, endpoint: Option<&'t Endpoint>) -> Option<&'t str> {
        let of_url = endpoint.and_then(|endpoint| endpoint.model.as_deref());
        self.target.model.or(of_url)
    }

    /// Checks a body. Content that only one server rejects causes a warning unless the request
    /// certainly goes to that server.
    fn judged(
        &self,
        body: &Value,
        wire: WireFormat,
        target: &LintTarget<'_>,
        endpoint: Option<&Endpoint>,
    ) -> Result<Linted, Unrecognised> {
        let judge = Judge::new(self.compiler);
        let guessed = endpoint
            .filter(|_| self.target.instance.is_none() && !self.is_server_known())
            .and_then(|endpoint| judge.guessed_server_at(endpoint));
        let Some(server) = guessed else {
            return judge.lint(body, Some(wire), target);
        };
        let anywhere = LintTarget {
            instance: None,
            server: Some(Server::Unknown),
            ..target.clone()
        };
        let certain = judge.lint(body, Some(wire), &anywhere)?;
        if server == Server::LlamaCpp && is_of_mlx(body) {
            return Ok(certain);
        }
        let mut linted = judge.lint(body, Some(wire), target)?;
        for problem in &mut linted.problems {
            if !certain.problems.iter().any(|other| is_same(other, problem)) {
                problem.severity = Some(Severity::Warning);
                problem.message += &format!(" (only the port suggests {})", server.name());
            }
        }
        Ok(linted)
    }

    /// Recognises the wire format of a body by its shape. If the shape is ambiguous, a chat in a
    /// batch without addresses has Mistral's format, and a chat for a model that Bedrock invokes
    /// has OpenAI's.
    fn recognised(&self, body: &Value, model_at: ModelAt) -> Result<WireFormat, Unrecognised> {
        let recognised = recognise_among(body, &self.target.formats());
        let is_ambiguous = matches!(recognised, Err(Unrecognised::Ambiguous(_)));
        let is_chat = body.get("messages").is_some();
        match model_at {
            ModelAt::BatchJob if is_ambiguous && is_chat => Ok(WireFormat::MistralChat),
            ModelAt::InvokedPath if is_ambiguous && is_chat => Ok(WireFormat::OpenAiChat),
            ModelAt::Request | ModelAt::BatchJob | ModelAt::InvokedPath => recognised,
        }
    }

    /// Returns the destination of a body: the given destination, or else the destination in the
    /// body's URL.
    fn target_of<'t>(
        &'t self,
        wire: WireFormat,
        endpoint: Option<&'t Endpoint>,
        model_at: ModelAt,
    ) -> LintTarget<'t> {
        let named = self
            .target
            .instance
            .filter(|instance| api(instance).is_some_and(|api| api.speaks(wire)));
        let judge = Judge::new(self.compiler);
        let instance = named.or_else(|| {
            let endpoint = endpoint.filter(|_| self.target.named.is_none());
            judge.instance_at(endpoint?, wire)
        });
        let model = self.model_at(endpoint);
        // If only the host identifies the instance, the instance's headers do not apply, because a
        // different program may have sent different headers.
        LintTarget {
            instance,
            named: self.target.named,
            server: self.target.given_server().or_else(|| {
                // If the user names an operator, the URL is ignored: the body then determines the
                // server, as it does with the operator's own URL.
                let endpoint = endpoint.filter(|_| self.target.named.is_none());
                endpoint
                    .filter(|_| named.is_none())
                    .and_then(|endpoint| endpoint.server)
                    .or_else(|| self.local_server(endpoint).filter(|_| instance.is_none()))
                    .or_else(|| endpoint.filter(|_| instance.is_none())?.likely_server())
            }),
            model: model.or((model_at != ModelAt::Request).then_some(MODEL_PLACEHOLDER)),
            headers: self.target.headers.clone().or_else(|| {
                instance
                    .filter(|_| named.is_none())
                    .map(|instance| ApiHeaders::default().at_server_of(instance))
            }),
        }
    }

    /// Returns the local server that receives a body, for a wire format that the server's instance
    /// does not list.
    fn local_server(&self, endpoint: Option<&Endpoint>) -> Option<Server> {
        let named = self.target.instance.and_then(local_server);
        named.or_else(|| Judge::new(self.compiler).local_server_at(endpoint?))
    }
}

/// Returns `true` if two problems break the same rule at the same location, and are equally severe.
fn is_same(one: &Problem, other: &Problem) -> bool {
    one.rule.code == other.rule.code
        && one.pointer == other.pointer
        && one.severity == other.severity
}

/// Returns `true` if a body's model has weights for Apple's MLX, which llama.cpp does not read.
fn is_of_mlx(body: &Value) -> bool {
    body.get("model")
        .and_then(Value::as_str)
        .is_some_and(|model| model.starts_with("mlx-community/"))
}

/// A checked body, and its location.
struct JudgedBody {
    wire: Option<WireFormat>,
    problems: Vec<Problem>,
    string: Option<Pointer>,
    at: Pointer,
    settings: Option<Settings>,
    wrong_url: Option<WrongUrl>,
    is_model_unknown: bool,
}

impl JudgedBody {
    fn tell(self, places: &mut Places<'_>, is_private: bool, told: &mut Vec<Told>) {
        let whole = self.string.as_ref().unwrap_or(&self.at);
        let within = places.literal(whole).filter(|_| is_private);
        if let Some(WrongUrl { path, string, at }) = self.wrong_url {
            let wrong = problem(&rules::WRONG_PATH, path.message(), Some(&path.help()));
            let wrong = Problem {
                severity: Some(path.severity()),
                ..wrong
            };
            // The URL may contain a key, too.
            let (string, at) = match is_private {
                true => (&self.string, &self.at),
                false => (&string, &at),
            };
            let range = places.of(string.as_ref(), at, false);
            told.push(Told {
                within: within.clone(),
                ..Told::new(range, wrong)
            });
        }
        for problem in self.problems {
            let pointer = place_in_record(&self.at, self.settings.as_ref(), &problem.pointer);
            let range = places.of(self.string.as_ref(), &pointer, problem.is_about_key());
            told.push(Told {
                range,
                problem,
                within: within.clone(),
                stranger: None,
            });
        }
    }
}

/// The syntax of a text that is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Syntax {
    /// JSON with a mistake.
    Json,
    /// A value in the syntax of Python or JavaScript.
    Program,
    /// Text, such as a log.
    Text,
}

/// Returns the syntax of a text, judging by its beginning.
fn syntax(text: &str) -> Syntax {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if text.starts_with("//") || text.starts_with("/*") {
        return Syntax::Program;
    }
    let inner = text.trim_start_matches(|sign: char| "{[( \n\r\t".contains(sign));
    let brackets = &text[..text.len() - inner.len()];
    let is_object = brackets.contains('{');
    match inner.chars().next() {
        _ if brackets.is_empty() => Syntax::Text,
        Some('\'') => Syntax::Program,
        Some(sign) if sign.is_alphabetic() && is_object => Syntax::Program,
        // `[INFO]`, `[2027-01-31 12:00]`
        Some(sign) if sign.is_alphanumeric() && !is_object => Syntax::Text,
        _ => Syntax::Json,
    }
}

/// Returns `true` for an object with the conversation of a request, judging by its text.
fn is_like_body(json: &str) -> bool {
    ["\"messages\"", "\"contents\"", "\"input\""]
        .iter()
        .any(|name| json.contains(name))
}

/// Returns the lines in a part of a log that begin like JSON but contain a mistake.
fn broken_lines(text: &str, part: Range<usize>) -> Vec<Told> {
    let mut told = Vec::new();
    let mut start = part.start;
    for line in text[part].split_inclusive('\n') {
        let is_line = start == 0 || text[..start].ends_with('\n');
        if is_line
            && line.trim_start().starts_with("{\"")
            && let Err(error) = json::parse(line)
        {
            let range = start + error.range.start..start + error.range.end;
            told.push(Told {
                within: Some(start..start + line.len()),
                ..broken(range, &error)
            });
        }
        start += line.len();
    }
    told
}

/// Reports that a log is not searched from an offset on.
fn unsearched(at: usize) -> Told {
    let message = "the text from here on is not searched for request bodies, because it contains too many braces that do not begin a value";
    let help = "check only the lines that contain the request";
    let mut problem = problem(&rules::NO_BODY, message, Some(help));
    problem.severity = Some(Severity::Warning);
    Told::new(at..at + 1, problem)
}

/// Reports a log that contains no body, at its first line.
fn without_body(text: &str) -> Told {
    let is_abbreviated = ["[Array]", "[Object]"].iter().any(|it| text.contains(it));
    let help = match is_abbreviated {
        true => {
            "Node abbreviates nested values as `[Array]` and `[Object]`: print the body with `JSON.stringify`"
        }
        false => {
            "pass the request body as JSON, or a log that contains it; `reqc why400` reads error messages"
        }
    };
    let start = text.len() - text.trim_start().len();
    let line = text[start..].lines().next().unwrap_or_default();
    let message = "this text contains no request body";
    Told::new(
        start..start + line.len(),
        problem(&rules::NO_BODY, message, Some(help)),
    )
}

fn broken(range: Range<usize>, error: &JsonError) -> Told {
    let help = match &error.problem {
        json::Problem::Unquoted(text) if matches!(text.as_str(), "None" | "True" | "False") => {
            Some("JSON writes `null`, `true` and `false`")
        }
        json::Problem::KeyNotString => Some(
            "write the key in double quotes; to print JSON, use `json.dumps` in Python or `JSON.stringify` in JavaScript",
        ),
        json::Problem::SecondValue => Some("in JSON Lines, each line contains one document"),
        _ => None,
    };
    Told::new(
        range,
        problem(&rules::SYNTAX, error.problem.message(), help),
    )
}

pub(super) fn unrecognised(why: &Unrecognised) -> Problem {
    match why {
        Unrecognised::NoBody => stranger(Stranger::Unknown),
        Unrecognised::Ambiguous(_) => {
            let help = "name the format with `--wire`, or the server with `--provider`";
            problem(&rules::UNKNOWN_FORMAT, why.to_string(), Some(help))
        }
        Unrecognised::Unsupported(_) => {
            let help = "`reqc` does not check this format: remove the request from the file, or ignore the finding with `--allow lint/unsupported-format`";
            problem(&rules::UNSUPPORTED_FORMAT, why.to_string(), Some(help))
        }
    }
}

fn stranger(kind: Stranger) -> Problem {
    problem(&rules::NO_BODY, kind.message(), Some(kind.help()))
}
