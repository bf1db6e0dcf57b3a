//! `reqc models`: the known facts about models.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::args::Format;
use super::list::columns;
use super::options::Options;
use super::{Outcome, Status, Terminal};
use crate::diag::{Rank, Severity, count};
use crate::provider::known_model;
use crate::repo::{
    Condition, Demand, Fact, Family, ModelName, ModelPattern, Origin, Price, Property, State,
};
use crate::source::Spanned;
use crate::text::{Text, text};

pub(super) fn run(options: &Options, name: Option<&str>, terminal: &mut Terminal) -> Outcome {
    let opened = options.open()?;
    let model = name.map(ModelName::new);
    let all = opened.compiler.repo().families.iter();
    let families: Vec<&Family> = all
        .map(AsRef::as_ref)
        .filter(|family| model.as_ref().is_none_or(|name| family.is_about(name)))
        .collect();
    if options.format == Format::Json {
        terminal.json(&families.into_iter().map(document).collect());
        return Ok(Status::Clean);
    }
    match model {
        Some(model) => {
            let known = known_model(model.normal(), &opened.compiler.repo().families);
            of_model(model.normal(), known.as_deref(), &families, terminal);
        }
        None => overview(&families, terminal),
    }
    Ok(Status::Clean)
}

/// Lists the families with the models that belong to them.
fn overview(families: &[&Family], terminal: &mut Terminal) {
    let rows: Vec<[String; 3]> = families.iter().map(|family| row(family)).collect();
    let rows: Vec<[&str; 3]> = rows
        .iter()
        .map(|row| row.each_ref().map(String::as_str))
        .collect();
    terminal.text(&columns(["FAMILY", "WIRE FORMATS", "MODELS"], &rows));
}

fn row(family: &Family) -> [String; 3] {
    let mut models = patterns(&family.models);
    if !family.except.is_empty() {
        models.push_str(&format!(", but not {}", patterns(&family.except)));
    }
    [family.name.value.to_string(), names(&family.wires), models]
}

/// Prints the facts about one model, with their sources. If `normal` is probably misspelled,
/// `known` is the correct name.
fn of_model(normal: &str, known: Option<&str>, families: &[&Family], terminal: &mut Terminal) {
    terminal.say(&text!(
        "{}: {}",
        Text::line(normal).cut(80),
        count(families.len(), "family")
    ));
    if let Some(known) = known {
        terminal.say(&text!("did you mean `{}`?", Text::line(known).cut(80)));
    }
    if families.is_empty() {
        terminal.say(&text!(
            "nothing is known about this model: only the rules of its wire format apply"
        ));
    }
    for family in families {
        let servers = if family.servers.is_empty() {
            String::new()
        } else {
            format!(", on {}", names(&family.servers))
        };
        terminal.text(&text!(
            "\n{} ({}{})\n",
            family.name.value,
            names(&family.wires),
            servers
        ));
        terminal.text(&text!("  {}\n", origin(&family.origin)));
        for line in family.flags() {
            terminal.text(&text!("  - {}\n", line));
        }
        for fact in &family.facts {
            terminal.text(&of_fact(fact));
        }
    }
}

fn of_fact(fact: &Fact) -> Text {
    let wires = if fact.wires.is_empty() {
        String::new()
    } else {
        format!(" ({})", names(&fact.wires))
    };
    let level = if fact.level == Severity::Warning {
        " [warning]"
    } else {
        ""
    };
    let mut lines = text!("  - {}{}{}\n", fact.told(), wires, level);
    for more in [&fact.says, &fact.help].into_iter().flatten() {
        lines.push(&text!("    {}\n", more));
    }
    if fact.origin != Origin::default() {
        lines.push(&text!("    {}\n", origin(&fact.origin)));
    }
    lines
}

fn origin(origin: &Origin) -> String {
    let seen = origin.seen.as_ref().map(|seen| format!("seen {seen}"));
    let source = origin.source.as_deref().map(|source| match origin.rank() {
        // The source of a recording already begins with its rank.
        Some(Rank::Recorded) if source.starts_with(Rank::Recorded.name()) => source.to_owned(),
        Some(rank) => format!("{rank}: {source}"),
        None => source.to_owned(),
    });
    let parts: Vec<&str> = [source.as_deref(), seen.as_deref()]
        .into_iter()
        .flatten()
        .collect();
    parts.join("; ")
}

fn patterns(patterns: &[ModelPattern]) -> String {
    patterns
        .iter()
        .map(|pattern| &*pattern.text.value)
        .collect::<Vec<_>>()
        .join(", ")
}

fn names(names: &[Spanned<Arc<str>>]) -> String {
    names
        .iter()
        .map(|name| &*name.value)
        .collect::<Vec<_>>()
        .join(", ")
}

fn document(family: &Family) -> Value {
    let mut document = json!({
        "name": &*family.name.value, "models": globs(&family.models), "except": globs(&family.except),
        "wires": texts(&family.wires), "servers": texts(&family.servers), "of_server": family.of_server,
        "from_version": family.from_version.as_deref(), "without_beta": texts(&family.without_beta),
        "source": family.origin.source.as_deref(), "rank": family.origin.rank().map(Rank::name),
        "seen": family.origin.seen.as_deref(),
        "reasoned_calls": family.reasoned_calls.map(Severity::name), "cache_minimum": family.cache_minimum,
        "context_window": family.context_window,
        "longest_request": family.longest_request, "image_patches": family.image_patches,
        "price": family.price.as_ref().map(price_document),
        "facts": family.facts.iter().map(fact_document).collect::<Vec<_>>(),
    });
    let properties = Property::ALL
        .into_iter()
        .map(|it| (it.key().to_owned(), json!(family.property(it))));
    document
        .as_object_mut()
        .expect("the document is an object")
        .extend(properties);
    document
}

fn globs(list: &[ModelPattern]) -> Vec<String> {
    list.iter()
        .map(|it| it.text.value.to_string())
        .collect::<Vec<_>>()
}

fn texts(names: &[Spanned<Arc<str>>]) -> Vec<String> {
    names
        .iter()
        .map(|name| name.value.to_string())
        .collect::<Vec<_>>()
}

fn price_document(price: &Price) -> Value {
    json!({
        "input": price.input, "output": price.output, "cache_read": price.cache_read, "cache_write": price.cache_write,
        "cache_write_hour": price.cache_write_hour, "most_input": price.most_input,
        "source": price.origin.source.as_deref(), "rank": price.origin.rank().map(Rank::name),
        "seen": price.origin.seen.as_deref(),
    })
}

fn fact_document(fact: &Fact) -> Value {
    let (instead, values, even_null) = match &fact.demand {
        Demand::Absent {
            instead,
            values,
            even_null,
        } => (instead.as_deref(), Some(values), Some(*even_null)),
        Demand::Value { .. } => (None, None, None),
    };
    let (one_of, least, most) = match &fact.demand {
        Demand::Absent { .. } => (None, None, None),
        Demand::Value {
            one_of,
            least,
            most,
        } => (Some(one_of), *least, *most),
    };
    json!({
        "at": fact.at.iter().map(|place| place.pointer.as_str()).collect::<Vec<_>>(),
        "refused": one_of.is_none(), "instead": instead, "values": values, "null": even_null,
        "one_of": one_of, "least": least, "most": most,
        "when": conditions(&fact.when), "unless": conditions(&fact.unless),
        "wires": fact.wires.iter().map(|name| &*name.value).collect::<Vec<_>>(), "level": fact.level.name(),
        "says": fact.says.as_deref(), "help": fact.help.as_deref(),
        "source": fact.origin.source.as_deref(), "rank": fact.origin.rank().map(Rank::name),
        "seen": fact.origin.seen.as_deref(),
    })
}

fn conditions(conditions: &[Condition]) -> Value {
    Value::Object(
        conditions
            .iter()
            .map(|condition| {
                let value = match &condition.is {
                    State::Present(is_there) => json!(is_there),
                    State::OneOf(values) => json!(values),
                };
                (condition.path(), value)
            })
            .collect::<Map<_, _>>(),
    )
}
