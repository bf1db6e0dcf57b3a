//! Shows which tools of a list each provider accepts: as text, as JSON, and as a comment on a pull
//! request.

use serde_json::{Value, json};

use super::escape::{code, html};
use super::thousands;
use crate::diag::{Evidence, Rank, count};
use crate::lint::Problem;
use crate::text::{Text, text};
use crate::tool_list::lower::Loss;
use crate::tool_list::{Column, LoweredList, LoweredTool, Matrix, Objection, Status, evidence};

/// The maximum width of a tool's name, in columns.
const WIDEST_NAME: usize = 44;

/// The maximum number of tools listed for a group.
const MOST_NAMED: usize = 6;

/// The maximum number of source addresses listed for a group.
const MOST_SOURCES: usize = 3;

/// Objections of the same kind, with the tools and providers concerned.
struct Group<'m> {
    first: &'m Objection,
    targets: Vec<&'static str>,
    /// The indices of the tools; empty if the objection is to the list as a whole.
    tools: Vec<usize>,
    /// `true` if messages in the group differ in a name or a number.
    is_varied: bool,
    sources: Vec<&'static Evidence>,
}

/// Returns the objections by kind, rejections first.
fn groups(matrix: &Matrix) -> Vec<Group<'_>> {
    let mut groups: Vec<(String, Group<'_>)> = Vec::new();
    for column in &matrix.columns {
        let of_tools = column.verdicts.iter().enumerate();
        let of_tools = of_tools.flat_map(|(index, verdict)| {
            verdict.objections.iter().map(move |it| (Some(index), it))
        });
        let of_list = column.of_list.iter().map(|it| (None, it));
        for (tool, objection) in of_tools.chain(of_list) {
            let key = format!(
                "{:?} {} {}",
                objection.status,
                objection.rule.code,
                Problem::words(&objection.message)
            );
            let at = groups
                .iter()
                .position(|(known, _)| *known == key)
                .unwrap_or_else(|| {
                    let group = Group {
                        first: objection,
                        targets: Vec::new(),
                        tools: Vec::new(),
                        is_varied: false,
                        sources: Vec::new(),
                    };
                    groups.push((key, group));
                    groups.len() - 1
                });
            groups[at].1.add(column, tool, objection);
        }
    }
    let mut groups: Vec<Group<'_>> = groups.into_iter().map(|(_, group)| group).collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.first.status));
    groups
}

impl Group<'_> {
    fn add(&mut self, column: &Column, tool: Option<usize>, objection: &Objection) {
        if !self.targets.contains(&column.target.name) {
            self.targets.push(column.target.name);
        }
        self.is_varied |= objection.message != self.first.message;
        self.tools
            .extend(tool.filter(|index| !self.tools.contains(index)));
        for source in evidence(objection, column.target.server) {
            if !self.sources.contains(&source) {
                self.sources.push(source);
            }
        }
    }

    /// Returns the number of tools, with a note if their problems are similar rather than the same.
    fn counted(&self) -> String {
        let tools = count(self.tools.len(), "tool");
        match self.is_varied {
            true => format!("{tools} with this or a similar problem"),
            false => tools,
        }
    }

    /// Returns the tool names, up to the maximum.
    fn named(&self, matrix: &Matrix) -> String {
        let names = self
            .tools
            .iter()
            .take(MOST_NAMED)
            .map(|index| matrix.tools[*index].name.as_str());
        let mut shown = names.collect::<Vec<_>>().join(", ");
        if self.tools.len() > MOST_NAMED {
            shown.push_str(&format!(" and {} more", self.tools.len() - MOST_NAMED));
        }
        shown
    }

    /// Returns the sources of the objection.
    fn known_from(&self) -> String {
        match self.sources.is_empty() {
            true => format!(
                "the schema of the wire format, `reqc rule {}`",
                self.first.rule.code
            ),
            false => {
                let mut sources: Vec<&&Evidence> = self.sources.iter().collect();
                sources.sort_by_key(|source| rank(source.rank()));
                sources
                    .iter()
                    .take(MOST_SOURCES)
                    .map(|source| source.source)
                    .collect::<Vec<_>>()
                    .join(", ")
            }
        }
    }
}

/// Returns the position of a rank in a list of sources.
fn rank(rank: Rank) -> usize {
    match rank {
        Rank::Recorded => 0,
        Rank::Provider => 1,
        Rank::Thread => 2,
        Rank::Other => 3,
    }
}

fn mark(status: Status) -> &'static str {
    match status {
        Status::Accepted => "+",
        Status::Weakened => "~",
        Status::Doubtful => "?",
        Status::Rejected => "x",
    }
}

/// Returns the letter of a column.
fn letter(index: usize) -> char {
    char::from(b'A' + u8::try_from(index).unwrap_or(25).min(25))
}

/// Describes the figures of a column in words.
fn figures(column: &Column) -> String {
    let told = Status::ALL
        .into_iter()
        .rev()
        .filter(|status| *status != Status::Accepted && column.with(*status) > 0);
    let mut told: Vec<String> = told
        .map(|status| format!("{} {}", column.with(status), status.name()))
        .collect();
    if column
        .of_list
        .iter()
        .any(|objection| objection.status == Status::Rejected)
    {
        told.push("the list rejected".to_owned());
    }
    if told.is_empty() {
        told.push("all accepted".to_owned());
    }
    told.join(", ")
}

fn tokens(column: &Column) -> String {
    let tokens = thousands(column.tokens);
    match column.is_tokenized {
        true => format!("{tokens} tokens"),
        false => format!("about {tokens} tokens"),
    }
}

/// Returns the matrix in human-readable form.
pub fn tools_text(source: &str, matrix: &Matrix) -> Text {
    let mut shown = text!("{} of {}\n\n", count(matrix.tools.len(), "tool"), source);
    for (index, column) in matrix.columns.iter().enumerate() {
        let name = text!("{}", column.target.name).padded(17);
        shown.push(&text!(
            "  {} {} {}; {}\n",
            letter(index).to_string(),
            name,
            figures(column),
            tokens(column)
        ));
    }
    let widest = matrix
        .tools
        .iter()
        .map(|tool| Text::line(&tool.name).cut(WIDEST_NAME).width())
        .max();
    let widest = widest.unwrap_or_default().max("tool".len());
    let letters: String = (0..matrix.columns.len())
        .flat_map(|index| [' ', letter(index)])
        .collect();
    shown.push(&text!(
        "\n  {} {}  tokens\n",
        text!("tool").padded(widest),
        letters
    ));
    for (index, tool) in matrix.tools.iter().enumerate() {
        let verdicts = || matrix.columns.iter().map(|column| &column.verdicts[index]);
        let marks: String = verdicts()
            .flat_map(|verdict| [" ", mark(verdict.status)])
            .collect();
        let tokens = verdicts()
            .map(|verdict| verdict.tokens)
            .max()
            .unwrap_or_default();
        let name = Text::line(&tool.name).cut(WIDEST_NAME).padded(widest);
        shown.push(&text!(
            "  {} {}  {:>6}\n",
            name,
            marks,
            usize::try_from(tokens).unwrap_or(usize::MAX)
        ));
    }
    shown.push(&text!(
        "\n  + accepted   ~ silently weakened   ? reports disagree   x rejected\n"
    ));
    for group in groups(matrix) {
        shown.push(&group_text(matrix, &group));
    }
    for column in matrix
        .columns
        .iter()
        .filter(|column| column.verdicts.iter().any(|it| !it.dropped.is_empty()))
    {
        shown.push(&dropped_text(column));
    }
    shown
}

fn group_text(matrix: &Matrix, group: &Group<'_>) -> Text {
    let first = group.first;
    let verb = match first.status {
        Status::Rejected => "rejected by",
        Status::Doubtful => "doubtful for",
        Status::Weakened => "weakened by",
        Status::Accepted => "note for",
    };
    let mut shown = text!(
        "\n{} {}: {}\n",
        verb,
        group.targets.join(", "),
        first.rule.code
    );
    let example = match (first.pointer.is_empty(), group.tools.first()) {
        (false, Some(index)) => {
            text!(
                " ({}: {})",
                Text::line(&matrix.tools[*index].name).cut(WIDEST_NAME),
                &first.pointer
            )
        }
        _ => Text::new(),
    };
    shown.push(&text!("  {}{}\n", &first.message, example));
    if !group.tools.is_empty() {
        shown.push(&text!("  {}: {}\n", group.counted(), group.named(matrix)));
    }
    if let Some(help) = &first.help {
        shown.push(&text!("  help: {}\n", help));
    }
    shown.push(&text!("  sources: {}\n", group.known_from()));
    shown
}

/// Returns the keywords that a provider ignores, with their counts.
fn dropped(column: &Column) -> Vec<(String, usize)> {
    let mut keywords: Vec<(String, usize)> = Vec::new();
    for loss in column.verdicts.iter().flat_map(|verdict| &verdict.dropped) {
        match keywords
            .iter_mut()
            .find(|(keyword, _)| *keyword == loss.keyword)
        {
            Some((_, times)) => *times += 1,
            None => keywords.push((loss.keyword.clone(), 1)),
        }
    }
    keywords.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    keywords
}

fn dropped_text(column: &Column) -> Text {
    let keywords = dropped(column)
        .into_iter()
        .take(12)
        .map(|(keyword, times)| format!("{keyword} {times}×"));
    let keywords: Vec<String> = keywords.collect();
    text!(
        "\n{} silently ignores: {}\n",
        column.target.name,
        keywords.join(", ")
    )
}

/// Returns the matrix for a comment on a pull request or a summary.
pub fn tools_markdown(source: &str, matrix: &Matrix) -> Text {
    let mut page = format!(
        "### {} of {}\n\n| tool |",
        count(matrix.tools.len(), "tool"),
        code(source)
    );
    for column in &matrix.columns {
        page.push_str(&format!(" {} |", column.target.name));
    }
    page.push_str(&format!(
        "\n| --- |{}\n",
        " --- |".repeat(matrix.columns.len())
    ));
    for (index, tool) in matrix.tools.iter().enumerate() {
        let cells = matrix.columns.iter().map(|column| {
            let verdict = &column.verdicts[index];
            format!(" {}, {} |", verdict.status.name(), verdict.tokens)
        });
        page.push_str(&format!(
            "| {} |{}\n",
            code(&tool.name),
            cells.collect::<String>()
        ));
    }
    let sums = matrix
        .columns
        .iter()
        .map(|column| format!(" {}; {} |", figures(column), tokens(column)));
    page.push_str(&format!("| all |{}\n", sums.collect::<String>()));
    for group in groups(matrix) {
        let first = group.first;
        page.push_str(&format!(
            "\n- **{}** ({}): {} (`{}`)\n",
            first.status.name(),
            group.targets.join(", "),
            html(&first.message),
            first.rule.code
        ));
        if !group.tools.is_empty() {
            page.push_str(&format!(
                "  {}: {}\n",
                group.counted(),
                html(&group.named(matrix))
            ));
        }
        page.push_str(&format!("  sources: {}\n", html(&group.known_from())));
    }
    for column in matrix
        .columns
        .iter()
        .filter(|column| !dropped(column).is_empty())
    {
        let keywords = dropped(column)
            .into_iter()
            .take(12)
            .map(|(keyword, times)| format!("{} {times}×", code(&keyword)));
        let keywords: Vec<String> = keywords.collect();
        page.push_str(&format!(
            "\n- {} silently ignores: {}\n",
            column.target.name,
            keywords.join(", ")
        ));
    }
    Text::script(&page)
}

/// Returns the matrix as JSON.
pub fn tools_json(source: &str, matrix: &Matrix) -> Value {
    let providers = matrix.columns.iter().map(|column| {
        json!({
            "provider": column.target.name, "wire_format": column.target.wire.name(), "rejected": column.is_refused(),
            "tokens": column.tokens, "counted_by": if column.is_tokenized { "tokenizer" } else { "estimate" },
            "list": column.of_list.iter().map(|it| objection(column, it)).collect::<Vec<_>>(),
        })
    });
    let tools = matrix.tools.iter().enumerate().map(|(index, tool)| {
        let verdicts = matrix.columns.iter().map(|column| {
            let verdict = &column.verdicts[index];
            json!({
                "provider": column.target.name, "status": verdict.status.name(), "tokens": verdict.tokens,
                "objections": verdict.objections.iter().map(|it| objection(column, it)).collect::<Vec<_>>(),
                "dropped": verdict.dropped.iter().map(loss).collect::<Vec<_>>(),
            })
        });
        json!({"name": tool.name, "verdicts": verdicts.collect::<Vec<_>>()})
    });
    json!({
        "version": 1, "source": source, "rejected": matrix.refuses(),
        "providers": providers.collect::<Vec<_>>(), "tools": tools.collect::<Vec<_>>(),
    })
}

fn objection(column: &Column, it: &Objection) -> Value {
    let sources = evidence(it, column.target.server);
    let sources = sources
        .iter()
        .map(|it| json!({"source": it.source, "shows": it.shows, "seen": it.seen}));
    json!({
        "status": it.status.name(), "code": it.rule.code, "pointer": it.pointer, "message": it.message, "help": it.help,
        "evidence": sources.collect::<Vec<_>>(),
    })
}

fn loss(loss: &Loss) -> Value {
    json!({"pointer": loss.pointer, "keyword": loss.keyword, "became": loss.became})
}

/// Returns lowered tools as JSON.
pub fn lowered_json(list: &LoweredList) -> Value {
    let told = list.told.iter().map(|tool| {
        json!({
            "name": tool.name, "renamed": tool.renamed, "left_out": tool.refused,
            "instead": tool.instead.as_ref().map(|(target, why)| json!({"form": target.name, "why": why})),
            "no_longer_checked": tool.losses.iter().map(loss).collect::<Vec<_>>(),
        })
    });
    let of_list = list.of_list.iter().map(|it| {
        json!({"status": it.status.name(), "code": it.rule.code, "message": it.message, "help": it.help})
    });
    json!({
        "version": 1, "tools": list.tools, "conversions": told.collect::<Vec<_>>(),
        "list": of_list.collect::<Vec<_>>(),
    })
}

/// Returns the constraints that lowered tools no longer check, and the reasons why the list is
/// still rejected, in human-readable form.
pub fn losses_text(list: &LoweredList) -> Text {
    let mut shown: Text = list.told.iter().map(tool_losses).collect();
    for objection in &list.of_list {
        shown.push(&text!(
            "the list is still rejected: {}\n",
            &objection.message
        ));
    }
    shown
}

fn tool_losses(tool: &LoweredTool) -> Text {
    let name = Text::line(&tool.name).cut(WIDEST_NAME);
    let mut shown = Text::new();
    if let Some(renamed) = &tool.renamed {
        shown.push(&text!("{}: renamed to `{}`\n", name, renamed));
    }
    if let Some((target, why)) = &tool.instead {
        shown.push(&text!(
            "{}: uses the form `{}` instead: {}\n",
            name,
            target.name,
            why
        ));
    }
    if let Some(why) = &tool.refused {
        shown.push(&text!(
            "{}: left out, because nothing similar is accepted: {}\n",
            name,
            why
        ));
    }
    for loss in &tool.losses {
        let at = if loss.pointer.is_empty() {
            "the root"
        } else {
            &loss.pointer
        };
        shown.push(&text!(
            "{}: {}: `{}` {}\n",
            name,
            at,
            &loss.keyword,
            &loss.became
        ));
    }
    shown
}
