//! `reqc why400`: the reason a provider rejected a request, and its location in the body.

use std::io::{IsTerminal, Read};
use std::path::Path;

use serde_json::{Value, json};

use super::args::{Format, Why400};
use super::options::{Opened, Options};
use super::{Failure, Outcome, Status, Terminal, lint, list};
use crate::compile::lint::Linting;
use crate::compile::{LintTarget, PolicyOptions, Report};
use crate::diag::Severity;
use crate::json::Pointer;
use crate::lint::rules::{SYNTAX, UNSUPPORTED_FORMAT};
use crate::lint::{Unrecognised, recognise};
use crate::provider::{ApiHeaders, NamedServer, Server, UrlParts, WireFormat};
use crate::refusal::{
    Basis, Dictionary, Exchange, Explanation, Provider, Reason, Stated, Unruled, exchanges,
    is_request, requests,
};
use crate::report::findings_json;
use crate::system::is_input;
use crate::text::{Text, text};
use crate::world::MAX_FILE_BYTES;

/// The maximum number of rejected requests in a capture that are reported individually.
const MOST_EXCHANGES: usize = 20;

/// The maximum length of a displayed value, in bytes.
const LONGEST_VALUE: usize = 120;

pub(super) fn run(options: &Options, args: &Why400, terminal: &mut Terminal) -> Outcome {
    let wire = args.wire.as_deref().map(lint::wire_named).transpose()?;
    let opened = options.open()?;
    let argument = match &args.answer {
        Some(first) => format!("{first} {}", args.words.join(" ")),
        None if std::io::stdin().is_terminal() => {
            return Err(Failure::new("there is no error message to explain").help(
                "pass a file that contains the error message, or run `reqc why400 -`, paste the message, and press Ctrl-D",
            ));
        }
        None => "-".to_owned(),
    };
    let argument = argument.trim_end();
    if let Some(option) = args.answer.as_deref().filter(|it| is_option(it)) {
        return Err(Failure::new(format!("there is no option `{option}`"))
            .help("pass the error message or a file that contains it; `--body` names the file with the request"));
    }
    if is_input(Path::new(argument)) && args.body.as_deref().is_some_and(is_input) {
        return Err(Failure::new(
            "standard input can be the answer or the body, not both",
        ));
    }
    if let Some(file) = args
        .words
        .iter()
        .find(|word| options.path(Path::new(word)).exists())
    {
        return Err(
            Failure::new("only one file can contain the error message").help(format!(
                "to check the request's body too, write `--body {file}`"
            )),
        );
    }
    let Answer { text, is_file } = answer(options, &opened, argument)?;
    let body = args
        .body
        .as_deref()
        .map(|file| read(options, &opened, file))
        .transpose()?;
    let asked = exchanges(&text);
    let asked = match asked.is_empty() {
        true => vec![Exchange::of_answer(text)],
        false => asked,
    };
    let judge = Judge {
        options,
        opened: &opened,
        wire,
    };
    let told: Vec<Told> = asked
        .iter()
        .take(MOST_EXCHANGES)
        .map(|exchange| judge.told(exchange, body.as_ref()))
        .collect();
    if options.format == Format::Json {
        terminal.json(&told.iter().map(document).collect());
    } else {
        for (index, told) in told.iter().enumerate() {
            if index > 0 {
                terminal.text(&text!("\n"));
            }
            show(options, told, terminal);
        }
        if !is_file && is_like_file_name(argument) && !told.iter().all(Told::is_known) {
            terminal.text(&text!(
                "There is no file `{}`, either.\n",
                Text::line(argument)
            ));
        }
        if asked.len() > MOST_EXCHANGES {
            terminal.text(&text!(
                "\n{} more rejected requests are not shown\n",
                asked.len() - MOST_EXCHANGES
            ));
        }
    }
    let is_explained = told
        .iter()
        .all(|told| told.explained.iter().any(|it| it.basis != Basis::Near));
    Ok(if is_explained {
        Status::Clean
    } else {
        Status::Findings
    })
}

/// A request body, and the file or part of a capture from which it comes.
struct Body {
    name: String,
    text: String,
}

/// The parts of the report on an answer.
struct Told {
    explained: Vec<Explanation>,
    /// The locations in the body to which the sentences refer, in the order of `explained`.
    places: Vec<Option<Place>>,
    /// The body's findings that match the sentences, or else all errors.
    report: Option<Report>,
    /// The path in a sentence that points outside the body, because the sentence is about a
    /// different request.
    outside: Option<String>,
    /// `true` if a request was given instead of an answer.
    is_request: bool,
}

impl Told {
    /// Returns `true` if the text is a request or contains a known message.
    fn is_known(&self) -> bool {
        let mut explained = self.explained.iter();
        self.is_request || explained.any(|it| it.basis == Basis::Sentence)
    }

    fn has_findings(&self) -> bool {
        let report = self.report.as_ref();
        report.is_some_and(|report| !report.findings.is_empty())
    }
}

/// A place in a body, with its value.
struct Place {
    pointer: Pointer,
    value: String,
}

struct Judge<'j> {
    options: &'j Options,
    opened: &'j Opened,
    wire: Option<WireFormat>,
}

impl Judge<'_> {
    fn told(&self, exchange: &Exchange, given: Option<&Body>) -> Told {
        let with_address = format!(
            "{}\n{}",
            exchange.url.as_deref().unwrap_or_default(),
            exchange.answer
        );
        let explained = Dictionary::bundled().explain(&with_address);
        let own = exchange
            .request
            .clone()
            .or_else(|| request_in(&exchange.answer));
        let own = own.map(|text| Body {
            name: "the request".to_owned(),
            text,
        });
        let body = given.or(own.as_ref());
        let value = body.and_then(|body| only_request(&body.text));
        let outside = value
            .as_ref()
            .and_then(|body| explained.iter().find_map(|it| it.outside(body)));
        let places = explained
            .iter()
            .map(|it| value.as_ref().and_then(|body| place_of(it, body)))
            .collect();
        let is_request = explained.is_empty()
            && exchange.request.is_none()
            && serde_json::from_str(&exchange.answer).is_ok_and(|value: Value| is_request(&value));
        let report = body.and_then(|body| self.report(body, exchange, &explained));
        Told {
            explained,
            places,
            report,
            outside,
            is_request,
        }
    }

    /// Returns the body's findings that match the sentences, or all errors if there are none. If
    /// the URL is unknown and the rules that apply to every server find no match, the body is
    /// checked again with the rules of the server that sent the sentences.
    fn report(
        &self,
        body: &Body,
        exchange: &Exchange,
        explained: &[Explanation],
    ) -> Option<Report> {
        let url = exchange.url.as_ref();
        let report = self.judged(body, url, LintTarget::default())?;
        let is_host_known =
            url.is_some_and(|url| Server::by_host(UrlParts::of(url).host()).is_some());
        if is_host_known || has_meant(&report, explained) {
            return Some(narrowed(report, explained));
        }
        let at_servers: Vec<Report> = explained
            .iter()
            .flat_map(|it| targets_of(it.provider))
            .filter_map(|target| self.judged(body, url, target))
            .collect();
        let mut reports = at_servers.iter();
        let meant = reports.clone().find(|report| has_meant(report, explained));
        // The dictionary names one rule, but a different rule may find the cause.
        let chosen = meant.or_else(|| reports.find(|report| has_errors(report)));
        Some(narrowed(chosen.cloned().unwrap_or(report), explained))
    }

    /// Checks a body as `reqc lint` does.
    fn judged(&self, body: &Body, url: Option<&String>, target: LintTarget<'_>) -> Option<Report> {
        let wire = self
            .wire
            .or_else(|| likely_wire(&body.text, target.given_server()));
        let target = LintTarget {
            model: self.options.model.as_deref(),
            ..target
        };
        let mut linting = Linting::new(&self.opened.compiler, wire, target).sent_to(url.cloned());
        linting.read(&body.name, body.text.as_bytes()).ok()?;
        // The request was rejected, so none of its findings is suppressed.
        Some(linting.report(&PolicyOptions::default()))
    }
}

/// The text that may contain an error message.
struct Answer {
    text: String,
    is_file: bool,
}

/// Returns the content of the file at this path or, if there is no such file, the argument itself.
fn answer(options: &Options, opened: &Opened, argument: &str) -> Result<Answer, Failure> {
    let path = Path::new(argument);
    if is_input(path) || options.path(path).exists() {
        let Body { name, text } = read(options, opened, path)?;
        if text.trim().is_empty() {
            return Err(Failure::new(format!("`{name}` is empty")));
        }
        if text.contains('\0') {
            return Err(Failure::new(format!("`{name}` is not text")));
        }
        return Ok(Answer {
            text,
            is_file: true,
        });
    }
    match is_file_name(argument) {
        true => Err(Failure::new(format!("there is no file `{argument}`"))
            .help("pass a file that contains the response, or the error message itself")),
        false => Ok(Answer {
            text: argument.to_owned(),
            is_file: false,
        }),
    }
}

/// Returns `true` for a word that is an option rather than the beginning of an error message.
fn is_option(word: &str) -> bool {
    let name = word.strip_prefix("--").unwrap_or_default();
    name.starts_with(|sign: char| sign.is_ascii_lowercase())
        && name
            .chars()
            .all(|sign| sign.is_ascii_lowercase() || sign == '-')
}

/// Returns `true` for a single word with a dot or a slash, which may be a file name.
fn is_like_file_name(argument: &str) -> bool {
    argument.len() > 1
        && argument.contains(['.', '/', '\\'])
        && !argument.contains(char::is_whitespace)
}

/// Returns `true` for a string that is a file name rather than an error message: one word with a
/// common extension.
fn is_file_name(argument: &str) -> bool {
    const ENDINGS: [&str; 9] = [
        "json", "jsonl", "ndjson", "har", "log", "txt", "yaml", "yml", "out",
    ];
    let ending = Path::new(argument).extension().and_then(|it| it.to_str());
    !argument.contains(char::is_whitespace)
        && !argument.contains(['{', '"'])
        && ending.is_some_and(|ending| ENDINGS.contains(&ending.to_ascii_lowercase().as_str()))
}

fn read(options: &Options, opened: &Opened, file: &Path) -> Result<Body, Failure> {
    let (name, reader) = lint::open(options, &opened.root, file)?;
    let mut bytes = Vec::new();
    let read = reader.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| Failure::new(format!("`{name}` cannot be read: {error}")))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        let help = "extract the rejected request and its answer";
        return Err(Failure::new(format!(
            "`{name}` is larger than {} MiB",
            MAX_FILE_BYTES >> 20
        ))
        .help(help));
    }
    Ok(Body {
        text: String::from_utf8_lossy(&bytes).into_owned(),
        name,
    })
}

/// Returns the likely wire format of a body that fits several formats. A chat with a known server
/// other than Ollama uses OpenAI's format.
fn likely_wire(body: &str, server: Option<Server>) -> Option<WireFormat> {
    let body = only_request(body)?;
    let Err(Unrecognised::Ambiguous(wires)) = recognise(&body) else {
        return None;
    };
    let is_chat = wires.contains(&WireFormat::OpenAiChat);
    (is_chat && server.is_some_and(|server| server != Server::Ollama))
        .then_some(WireFormat::OpenAiChat)
}

/// Returns the destinations that a provider's error message implies: its hosts, or its software. A
/// gateway at another URL passes the provider's message on.
fn targets_of(provider: &Provider) -> Vec<LintTarget<'static>> {
    let at_hosts = provider.hosts.iter().map(String::as_str).map(target_at);
    let named = NamedServer::from_name(&provider.name).filter(|_| provider.hosts.is_empty());
    let at_software = named.map(|named| LintTarget {
        named: Some(named),
        ..LintTarget::default()
    });
    at_hosts.chain(at_software).collect()
}

/// Returns the destination that a host implies. It may be followed by a path.
fn target_at(host: &str) -> LintTarget<'static> {
    let url = format!("https://{host}");
    LintTarget {
        server: Server::by_host(UrlParts::of(&url).host()),
        headers: Some(ApiHeaders::default().at(&url)),
        ..LintTarget::default()
    }
}

/// Finds a request body in a dump that also contains the answer.
fn request_in(dump: &str) -> Option<String> {
    let body = requests(dump).into_iter().next()?;
    serde_json::to_string_pretty(&body).ok()
}

/// Returns the request body in a file; `None` if there are several, because any of them may be the
/// rejected one.
fn only_request(text: &str) -> Option<Value> {
    let whole = serde_json::from_str(text).ok().filter(is_request);
    whole.or_else(|| {
        let mut found = requests(text);
        found.pop().filter(|_| found.is_empty())
    })
}

fn place_of(explanation: &Explanation, body: &Value) -> Option<Place> {
    let pointer = explanation
        .place(body)
        .filter(|_| explanation.outside(body).is_none())?;
    let value = body.pointer(pointer.as_str())?.to_string();
    Some(Place { pointer, value })
}

/// Keeps the findings that match the sentences, or all errors if there are none, or all warnings if
/// there are no errors either.
fn narrowed(mut report: Report, explained: &[Explanation]) -> Report {
    if has_meant(&report, explained) {
        report
            .findings
            .retain(|finding| is_meant(finding.rule.code, explained));
    } else if has_errors(&report) {
        report
            .findings
            .retain(|finding| finding.severity == Severity::Error);
    }
    // A body that a program printed is checked even if it is not JSON.
    if report.summary.bodies > 0 {
        report
            .findings
            .retain(|finding| finding.rule.code != SYNTAX.code);
    }
    for finding in &mut report.findings {
        // The advice applies only to files that also contain other requests.
        if finding.rule.code == UNSUPPORTED_FORMAT.code {
            finding.help = None;
        }
    }
    report
}

fn has_meant(report: &Report, explained: &[Explanation]) -> bool {
    report
        .findings
        .iter()
        .any(|finding| is_meant(finding.rule.code, explained))
}

fn has_errors(report: &Report) -> bool {
    let mut findings = report.findings.iter();
    findings.any(|finding| finding.severity == Severity::Error)
}

fn is_meant(code: &str, explained: &[Explanation]) -> bool {
    explained
        .iter()
        .any(|it| it.refusal.reason == Reason::Rule(code.to_owned()))
}

fn show(options: &Options, told: &Told, terminal: &mut Terminal) {
    if told.is_request {
        terminal.text(&text!(
            "this is a request, not an error response: pass the response as the argument and this file with `--body`; to check only the request, use `reqc lint`\n"
        ));
    } else if told.explained.is_empty() {
        terminal.text(&text!("this text contains no known error message\n"));
    }
    let groups = groups(told);
    for group in &groups {
        terminal.text(&page(group, told, terminal.width()));
    }
    if let Some(path) = &told.outside {
        terminal.text(&text!(
            "\nThe body has no `{}`: it may not be the request that was rejected.\n",
            Text::line(path).cut(LONGEST_VALUE)
        ));
    }
    match &told.report {
        Some(report) if !report.findings.is_empty() => {
            terminal.text(&text!("\nIn the body:\n\n"));
            terminal.findings(options.format, report);
        }
        Some(_) => terminal.text(&text!("\nThe rules find no mistake in the body.\n")),
        None => {}
    }
    if told.report.as_ref().is_some_and(is_without_model) {
        terminal.text(&text!(
            "The body does not name its model: with `--model NAME`, the rules about this model apply too.\n"
        ));
    }
    let is_apart = told.report.is_some() || told.outside.is_some();
    if is_apart && groups.iter().any(|group| group[0].0.basis != Basis::Words) {
        terminal.text(&text!("\n"));
    }
    for group in &groups {
        terminal.text(&seen(group, groups.len() == 1, terminal.width()));
    }
}

/// Returns `true` if a body was checked without knowing its model.
fn is_without_model(report: &Report) -> bool {
    let linted = report.summary.linted.as_ref();
    linted.is_some_and(|linted| linted.without_model > 0)
}

/// Explanations from the same entry in the dictionary, with their locations.
type Group<'t> = Vec<(&'t Explanation, Option<&'t Place>)>;

/// Returns the explanations, grouped by dictionary entry, so that each meaning is shown once.
fn groups(told: &Told) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (it, place) in told.explained.iter().zip(&told.places) {
        let same = groups
            .iter_mut()
            .find(|group| std::ptr::eq(group[0].0.refusal, it.refusal));
        match same {
            Some(group) => group.push((it, place.as_ref())),
            None => groups.push(vec![(it, place.as_ref())]),
        }
    }
    groups
}

/// Returns the sentence to show: the sentence in the text or, if it is only similar to a known
/// sentence, the known sentence.
fn sentence(it: &Explanation) -> String {
    match it.basis {
        Basis::Near => it.refusal.shown(),
        Basis::Sentence | Basis::Words | Basis::Code => it.said.clone(),
    }
}

/// Returns the explanation in human-readable form.
fn page(group: &Group<'_>, told: &Told, width: usize) -> Text {
    let (it, _) = group[0];
    let outside = told.outside.as_deref();
    let refusal = it.refusal;
    let mut page = match it.basis {
        Basis::Sentence => text!(""),
        Basis::Words => text!(
            "This text contains no known error message. A guess from its words:

"
        ),
        Basis::Code => text!(
            "This text contains no known error message. Its status or type usually means:

"
        ),
        Basis::Near => text!(
            "This error message is unknown. The closest known one:

"
        ),
    };
    page.push(&text!("{}\n", heading(it)));
    let mut sentences: Vec<String> = group.iter().map(|(it, _)| sentence(it)).collect();
    sentences.dedup();
    for sentence in &sentences {
        page.push(&text!("  {}\n", Text::line(sentence)));
    }
    page.push(&text!("\n"));
    let mut paragraph = |text: &str| {
        page.push(&text!("{}\n", Text::join(&list::wrap(text, width), "\n")));
    };
    if let Some(name) = &it.empty {
        paragraph(&format!(
            "The {name} in the message is empty: the client sent none. Set it first; the rest of the message may be a consequence."
        ));
    }
    paragraph(&refusal.meaning);
    paragraph(&format!("What to do: {}", refusal.remedy));
    match &refusal.reason {
        Reason::Rule(code) => {
            paragraph(&format!(
                "The rule `{code}` detects this before you send the request (see `reqc rule {code}`)."
            ));
            if told.report.is_none() {
                paragraph(
                    "With `--body FILE`, the report shows where the request breaks the rule.",
                );
            }
        }
        // Words alone do not show where the cause is.
        Reason::Unruled(Unruled::Unsaid | Unruled::Server | Unruled::Transport)
            if it.basis == Basis::Words && told.report.is_none() =>
        {
            paragraph("With `--body FILE`, the request is checked too.");
        }
        // Although no rule covers this answer, rules may have found its cause in the body.
        Reason::Unruled(Unruled::Gap) if told.has_findings() => {}
        Reason::Unruled(unruled) => paragraph(unruled.told()),
    }
    for (it, place) in group {
        if let Some(place) = place {
            paragraph(&format!(
                "It refers to {} in the body: {}",
                place.pointer,
                Text::line(&place.value).cut(LONGEST_VALUE)
            ));
        } else if let Some(path) = it
            .path
            .as_deref()
            .filter(|path| (it.is_field || is_path(path)) && outside != Some(*path))
        {
            paragraph(&format!(
                "The message names `{}`.",
                Text::line(path).cut(LONGEST_VALUE)
            ));
        }
    }
    page
}

/// Returns where the error message of a group was seen; an empty text if only phrases of the
/// message are known.
fn seen(group: &Group<'_>, is_only: bool, width: usize) -> Text {
    let (it, _) = group[0];
    if it.basis == Basis::Words {
        return text!("");
    }
    let refusal = it.refusal;
    let seen = match is_only {
        true => "Seen since".to_owned(),
        false => format!("{}: seen since", it.provider.name),
    };
    let sources = refusal.sources.join(", ");
    let seen = format!("{seen} {}: {sources}", refusal.seen);
    text!("{}\n", Text::join(&list::wrap(&seen, width), "\n"))
}

/// Returns `true` if a string is a path into a body, rather than a single word or a number.
fn is_path(path: &str) -> bool {
    let is_of_path = |c: char| c.is_ascii_alphanumeric() || "_.[]$/".contains(c);
    path.starts_with(|c: char| c.is_ascii_alphabetic())
        && path.contains(['.', '_', '['])
        && path.chars().all(is_of_path)
}

/// Returns the line above the error message. It attributes the rejection to a provider only if the
/// text names that provider, because servers copy each other's messages.
fn heading(it: &Explanation) -> String {
    let details = envelope(it);
    let name = &it.provider.name;
    if it.is_named || it.provider.is_general() {
        return format!("{name} rejects a request{details}:");
    }
    let also: Vec<String> = it
        .also
        .iter()
        .map(|provider: &&Provider| within_sentence(&provider.name))
        .collect();
    let also = match also.is_empty() {
        true => String::new(),
        false => format!(", also used by {}", also.join(", ")),
    };
    let name = within_sentence(name);
    format!("The request is rejected{details}. This is a known error message from {name}{also}:")
}

/// Returns a provider's name as it is written within a sentence: `a FastAPI server`.
fn within_sentence(name: &str) -> String {
    match name.strip_prefix("A ") {
        Some(rest) => format!("a {rest}"),
        None => name.to_owned(),
    }
}

/// Returns the status and the type of the answer. If the text does not contain them, those that
/// usually accompany the sentence are used.
fn envelope(it: &Explanation) -> String {
    let kind = it.kind().filter(|_| it.stated != Stated::Status);
    let details = match (it.status, kind) {
        (Some(status), Some(kind)) => format!(" with status {status}, `{kind}`"),
        (Some(status), None) => format!(" with status {status}"),
        (None, Some(kind)) => format!(" with `{kind}`"),
        (None, None) => return String::new(),
    };
    match (it.stated, it.status) {
        (Stated::Nothing, Some(_)) => format!(", usually{details}"),
        _ => details,
    }
}

/// Returns the report as JSON.
fn document(told: &Told) -> Value {
    let explained: Vec<Value> = told
        .explained
        .iter()
        .zip(&told.places)
        .map(|(it, place)| explanation(it, place.as_ref()))
        .collect();
    let findings: Vec<Value> = told.report.iter().flat_map(findings_json).collect();
    json!({
        "explanations": explained, "findings": findings, "outside": told.outside, "is_request": told.is_request,
        "without_model": told.report.as_ref().is_some_and(is_without_model),
    })
}

fn explanation(it: &Explanation, place: Option<&Place>) -> Value {
    let refusal = it.refusal;
    let (rule, unruled) = match &refusal.reason {
        Reason::Rule(code) => (Some(code.as_str()), None),
        Reason::Unruled(unruled) => (None, Some(unruled.name())),
    };
    json!({
        "provider": it.provider.id, "basis": it.basis.name(), "sentence": refusal.shown(), "said": it.said, "status": it.status,
        "type": it.kind(), "rule": rule, "unruled": unruled, "meaning": refusal.meaning, "remedy": refusal.remedy,
        "path": it.path, "pointer": place.as_ref().map(|place| place.pointer.as_str()), "seen": refusal.seen, "sources": refusal.sources,
        "named": it.is_named, "empty": it.empty, "also": it.also.iter().map(|provider| provider.id.as_str()).collect::<Vec<_>>(),
    })
}
