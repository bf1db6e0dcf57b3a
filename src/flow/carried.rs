//! Finds the content of a conversation in a body.

use foldhash::{HashMap, HashSet};
use std::cell::{Cell, OnceCell};

use serde_json::Value;

use super::alteration;
use super::{Fate, Judged, Loss};
use crate::check::history::Role;
use crate::compare::{Content, Piece, canonical, pieces_of};
use crate::conversation::{
    Block, ContentKind as Kind, Conversation, Document, DocumentSource, Image, Message,
    Role as Speaker, Task,
};
use crate::json::Pointer;
use crate::provider::WireFormat;

/// The content that a body should contain.
pub(crate) struct Expected<'c> {
    /// The conversation, which provides a completion's task, the files and the tools.
    pub(crate) conversation: &'c Conversation,
    /// The history, in the form that templates see.
    pub(crate) history: &'c [Message],
    /// The whole system prompt, if there is one.
    pub(crate) system_prompt: Option<&'c str>,
    /// `true` if the request offers its tools.
    pub(crate) offers_tools: bool,
}

/// The maximum number of bytes in a body that are searched for content inside longer strings.
/// Beyond this limit, content is assumed to be present.
const MAX_SEARCH: usize = 256 << 20;

/// The maximum number of losses of one kind that are reported for one body.
const MAX_LOSSES: usize = 32;

/// The members of a body, by name.
pub(crate) type Members<'b> = [(&'b str, &'b Value)];

/// Judges which expected content a body contains.
pub(crate) fn judge(wire: WireFormat, members: &Members<'_>, expected: &Expected<'_>) -> Judged {
    let pieces = pieces_of(wire, &|name| {
        members
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| *value)
    });
    let taken = vec![false; pieces.len()];
    let mut texts: HashMap<String, Vec<usize>> = HashMap::default();
    for (number, piece) in pieces.iter().enumerate() {
        if let Some(text) = piece
            .text_of_message()
            .filter(|text| !text.trim().is_empty())
        {
            texts.entry(text.to_owned()).or_default().push(number);
        }
    }
    let mut judge = Judge {
        members,
        pieces,
        taken,
        texts,
        system_prompt: expected
            .system_prompt
            .filter(|prompt| !prompt.trim().is_empty()),
        leaves: OnceCell::new(),
        searched: Cell::new(0),
        calls: HashMap::default(),
        said: Vec::new(),
        order: Vec::new(),
        judged: Judged::default(),
    };
    judge.surroundings(expected);
    match &expected.conversation.task {
        Task::Chat(_) => judge.history(expected.history),
        Task::Completion { prefix, suffix } => {
            judge.anywhere(Kind::Prefix, &Pointer::root().member("prefix"), prefix);
            judge.anywhere(Kind::Suffix, &Pointer::root().member("suffix"), suffix);
        }
    }
    judge.duplicates();
    judge.order();
    judge.judged
}

/// A string in the conversation, and its location in the template data.
struct Said<'c> {
    kind: Kind,
    text: &'c str,
    at: Pointer,
}

struct Judge<'b, 'c> {
    members: &'b Members<'b>,
    pieces: Vec<Piece<'b>>,
    /// `true` for each piece that is matched with content.
    taken: Vec<bool>,
    /// The pieces that are strings in messages, by text.
    texts: HashMap<String, Vec<usize>>,
    system_prompt: Option<&'c str>,
    /// All strings in the body. A system prompt at the beginning of a string is removed, because
    /// words that occur in the prompt by chance are not content.
    leaves: OnceCell<Leaves<'b>>,
    /// The number of bytes that were searched so far.
    searched: Cell<usize>,
    /// The calls in the body, by call ID in the conversation.
    calls: HashMap<&'c str, Called>,
    said: Vec<Said<'c>>,
    /// The pieces that are whole strings, calls or results in messages, each with the index of its
    /// message.
    order: Vec<(usize, usize, Kind, Pointer)>,
    judged: Judged,
}

impl<'b, 'c> Judge<'b, 'c> {
    fn hold(&mut self, kind: Kind) {
        self.judged.held.add(kind);
    }

    fn lose(&mut self, kind: Kind, at: &Pointer, shown: &str) {
        self.tell(kind, Fate::Dropped, at, shown);
    }

    fn tell(&mut self, kind: Kind, fate: Fate, at: &Pointer, shown: &str) {
        self.judged
            .losses
            .push(Loss::new(kind, fate, at.clone(), shown));
    }

    /// Matches the first unmatched piece that fits.
    fn take(&mut self, fits: impl Fn(&Piece<'b>) -> bool) -> Option<usize> {
        let found =
            (0..self.pieces.len()).find(|at| !self.taken[*at] && fits(&self.pieces[*at]))?;
        self.taken[found] = true;
        Some(found)
    }

    /// Matches the first unmatched text in a message that equals this text and has a fitting role.
    fn take_text(&mut self, text: &str, fits: impl Fn(Role) -> bool) -> Option<usize> {
        let numbers = self.texts.get(text)?;
        let found = numbers
            .iter()
            .copied()
            .find(|at| !self.taken[*at] && fits(self.pieces[*at].role))?;
        self.taken[found] = true;
        Some(found)
    }

    fn leaves(&self) -> &Leaves<'b> {
        self.leaves.get_or_init(|| {
            let mut leaves = Vec::new();
            self.members
                .iter()
                .for_each(|(_, value)| collect(value, &mut leaves));
            if let Some(prompt) = self.system_prompt {
                // The prompt comes first in the text that contains it. Elsewhere, a short prompt
                // may occur by chance.
                leaves = leaves
                    .into_iter()
                    .map(|leaf| leaf.strip_prefix(prompt).unwrap_or(leaf))
                    .collect();
            }
            Leaves {
                bytes: leaves.iter().map(|leaf| leaf.len()).sum(),
                whole: leaves.iter().copied().collect(),
                in_order: leaves,
            }
        })
    }

    /// Returns `true` if the limit allows another search of the body's strings.
    fn may_search(&self) -> bool {
        let searched = self.searched.get().saturating_add(self.leaves().bytes);
        self.searched.set(searched);
        searched <= MAX_SEARCH
    }

    fn is_a_leaf(&self, text: &str) -> bool {
        self.leaves().whole.contains(text)
    }

    fn is_in_a_leaf(&self, text: &str) -> bool {
        let leaves = self.leaves();
        leaves.whole.contains(text)
            || !self.may_search()
            || leaves.in_order.iter().any(|leaf| says(leaf, text))
    }

    /// Judges a string that may be anywhere in the body.
    fn anywhere(&mut self, kind: Kind, at: &Pointer, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        match self.is_in_a_leaf(text) {
            true => self.hold(kind),
            false => self.lost_text(kind, at, text),
        }
    }

    /// Reports a string that is not in the body unchanged.
    fn lost_text(&mut self, kind: Kind, at: &Pointer, text: &str) {
        let told = self
            .judged
            .losses
            .iter()
            .filter(|loss| loss.kind == kind)
            .count();
        if told < MAX_LOSSES {
            let fate = self.altered(text).map_or(Fate::Dropped, Fate::Altered);
            self.tell(kind, fate, at, text);
        }
    }

    /// Describes the alteration of a string, if the body contains an altered form.
    fn altered(&self, text: &str) -> Option<String> {
        if let Some(how) = alteration::escaped(text, &self.leaves().in_order) {
            return Some(how);
        }
        let free = self
            .pieces
            .iter()
            .enumerate()
            .filter(|(number, _)| !self.taken[*number])
            .filter_map(|(_, piece)| piece.text_of_any());
        alteration::find(text, free)
    }

    /// Judges the system prompt, attached files and tools.
    fn surroundings(&mut self, expected: &Expected<'c>) {
        if let Some(prompt) = self.system_prompt {
            let at = Pointer::root().member("system_prompt");
            let mut leaves = Vec::new();
            self.members
                .iter()
                .for_each(|(_, value)| collect(value, &mut leaves));
            match leaves.iter().any(|leaf| leaf.contains(prompt)) {
                true => self.hold(Kind::SystemPrompt),
                false => self.lost_text(Kind::SystemPrompt, &at, prompt),
            }
            self.said.push(Said {
                kind: Kind::SystemPrompt,
                text: prompt,
                at,
            });
            self.take_text(prompt, |role| role == Role::System);
        }
        for (number, file) in expected.conversation.files.iter().enumerate() {
            let at = Pointer::root().member("files_metadata").element(number);
            self.anywhere(Kind::Files, &at.member("file_path"), &file.file_path);
            self.anywhere(Kind::Files, &at.member("content"), &file.content);
        }
        for (number, tool) in expected
            .conversation
            .tools
            .iter()
            .enumerate()
            .filter(|_| expected.offers_tools)
        {
            let at = Pointer::root().member("tools").element(number);
            self.anywhere(Kind::Tools, &at.member("name"), &tool.name);
            self.anywhere(Kind::Tools, &at.member("description"), &tool.description);
        }
    }

    fn history(&mut self, history: &'c [Message]) {
        let at = Pointer::root().member("history");
        for (message, said) in history.iter().enumerate() {
            self.calls_of(said, message, &blocks(message, &at));
        }
        let mut names: HashMap<&str, &str> = HashMap::default();
        for (message, said) in history.iter().enumerate() {
            for (number, block) in said.blocks.iter().enumerate() {
                if let Block::ToolUse { id, name, .. } = block {
                    names.insert(id, name);
                }
                self.block(
                    said,
                    message,
                    block,
                    &blocks(message, &at).element(number),
                    &names,
                );
            }
        }
    }

    fn block(
        &mut self,
        said: &'c Message,
        message: usize,
        block: &'c Block,
        at: &Pointer,
        names: &HashMap<&'c str, &'c str>,
    ) {
        match block {
            Block::Text(text) => self.text(said, message, text, &at.member("text")),
            Block::Thinking {
                text,
                signature,
                origin,
            } => {
                let also = origin.is_none().then_some(Kind::UnknownThinking);
                self.thought(Kind::Thinking, also, &at.member("thinking"), text);
                self.thought(Kind::Signatures, also, &at.member("signature"), signature);
            }
            Block::RedactedThinking { data, origin } => {
                let also = origin.is_none().then_some(Kind::UnknownThinking);
                self.thought(Kind::RedactedThinking, also, &at.member("data"), data);
            }
            Block::ToolResult {
                id,
                content,
                is_error,
                images,
            } => {
                let name = names.get(&**id).copied().unwrap_or_default();
                let result = Outcome {
                    id,
                    content,
                    is_error: *is_error,
                    name,
                };
                self.result(&result, message, at);
                for (number, image) in images.iter().enumerate() {
                    self.image(
                        Kind::ResultImages,
                        image,
                        &at.member("images").element(number),
                    );
                }
            }
            Block::Image(image) => {
                let kind = if image.is_url {
                    Kind::ImageUrls
                } else {
                    Kind::Images
                };
                self.image(kind, image, at);
            }
            Block::Document(document) => self.document(document, at),
            Block::Audio(audio) => {
                if self.data(Kind::Audio, &at.member("data"), &audio.data) {
                    self.media_type(
                        &audio.data,
                        &audio.media_type,
                        false,
                        &at.member("media_type"),
                    );
                }
            }
            // Calls were judged earlier, because results refer to them.
            Block::ToolUse { .. } | Block::Stored(_) => {}
            Block::Provider(own) => {
                self.own_block(&own.data, own.text.as_deref(), &at.member("data"));
            }
        }
    }

    fn text(&mut self, message: &Message, number: usize, text: &'c str, at: &Pointer) {
        if text.trim().is_empty() {
            return;
        }
        let kind = match (message.item.is_some(), message.role) {
            (false, Speaker::User) => Kind::UserText,
            (false, Speaker::Assistant) => Kind::AssistantText,
            (true, _) | (false, Speaker::System) => Kind::SystemItems,
        };
        self.said.push(Said {
            kind,
            text,
            at: at.clone(),
        });
        if let Some(piece) = self.take_text(text, |role| may_say(role, kind)) {
            self.order.push((piece, number, kind, at.clone()));
            return self.hold_with_role(kind);
        }
        if self
            .take_text(&alteration::as_json(text), |_| true)
            .is_some()
        {
            return self.tell(
                kind,
                Fate::Altered(alteration::ENCODED.to_owned()),
                at,
                text,
            );
        }
        if !self.may_search() || self.is_part_of_message(text, kind) {
            return self.hold_with_role(kind);
        }
        if self.take_text(text, |_| true).is_some() {
            self.hold(kind);
            let message = at
                .parent()
                .and_then(|block| block.parent()?.parent())
                .unwrap_or_else(Pointer::root);
            return self.lose(Kind::Roles, &message.member("role"), text);
        }
        match self.is_in_a_leaf(text) {
            true => self.hold(kind),
            false => self.lost_text(kind, at, text),
        }
    }

    fn hold_with_role(&mut self, kind: Kind) {
        self.hold(kind);
        self.hold(Kind::Roles);
    }

    /// Judges thinking, a signature, or content that only the provider can read.
    fn thought(&mut self, kind: Kind, also: Option<Kind>, at: &Pointer, text: &str) {
        let told = self.judged.losses.len();
        self.anywhere(kind, at, text);
        self.judged.losses[told..]
            .iter_mut()
            .for_each(|loss| loss.also = also);
    }

    /// Returns `true` if this text is part of a string in a message with a suitable role.
    fn is_part_of_message(&self, text: &str, kind: Kind) -> bool {
        let mut messages = self.pieces.iter().filter(|piece| may_say(piece.role, kind));
        messages.any(|piece| {
            piece
                .text_of_message()
                .is_some_and(|whole| says(whole, text))
        })
    }

    /// Judges the calls in a message. Equal calls are matched first, so that a differing call does
    /// not take the match of an equal call.
    fn calls_of(&mut self, said: &'c Message, message: usize, at: &Pointer) {
        let mut others = Vec::new();
        for (number, block) in said.blocks.iter().enumerate() {
            let Block::ToolUse { id, name, input } = block else {
                continue;
            };
            let (at, arguments) = (at.element(number), canonical(input));
            let equal = self.take(|piece| {
                tool_of(piece) == Some(name) && arguments_of(piece) == Some(arguments.as_str())
            });
            match equal {
                Some(piece) => self.called(id, piece, message, &at),
                None => others.push(OtherCall {
                    id,
                    name,
                    input,
                    arguments,
                    at,
                }),
            }
        }
        for call in &others {
            self.other_call(call, message);
        }
    }

    fn called(&mut self, id: &'c str, piece: usize, message: usize, at: &Pointer) {
        if let Content::Call(call) = &self.pieces[piece].content {
            let has_id = has_id(self.pieces[piece].value);
            self.calls.insert(
                id,
                Called {
                    number: call.number,
                    at: at.clone(),
                    has_id,
                },
            );
        }
        self.order
            .push((piece, message, Kind::ToolCalls, at.clone()));
        self.hold(Kind::ToolCalls);
        self.hold(Kind::ToolArguments);
    }

    /// Judges a call that the body does not contain unchanged: it may have different arguments or a
    /// different name, or be part of a string.
    fn other_call(&mut self, said: &OtherCall<'c>, message: usize) {
        let OtherCall {
            id,
            name,
            input,
            arguments,
            at,
        } = said;
        if let Some(piece) = self.take(|piece| tool_of(piece) == Some(name)) {
            self.called(id, piece, message, at);
            let found = arguments_of(&self.pieces[piece]).unwrap_or_default();
            let fate = match found {
                "{}" => Fate::Dropped,
                found => Fate::Altered(alteration::of_arguments(arguments, found)),
            };
            return self.tell(Kind::ToolArguments, fate, &at.member("input"), arguments);
        }
        let renamed =
            self.take(|piece| arguments_of(piece) == Some(arguments.as_str()) && arguments != "{}");
        if let Some(piece) = renamed {
            self.called(id, piece, message, at);
            let called = tool_of(&self.pieces[piece]).unwrap_or_default();
            let fate = match called.is_empty() {
                true => Fate::Dropped,
                false => Fate::Altered(format!("the call to `{name}` became a call to `{called}`")),
            };
            return self.tell(Kind::ToolCalls, fate, &at.member("name"), name);
        }
        let mut leaves = Vec::new();
        collect(input, &mut leaves);
        let is_told = self.is_in_a_leaf(name)
            && (self.is_in_a_leaf(&input.to_string())
                || leaves.iter().all(|leaf| self.is_in_a_leaf(leaf)));
        match is_told && !leaves.is_empty() {
            true => self.hold(Kind::ToolCalls),
            false => self.lose(Kind::ToolCalls, at, name),
        }
    }

    fn result(&mut self, result: &Outcome<'c>, message: usize, at: &Pointer) {
        let content = result.content;
        let partner = self.calls.get(result.id).map(|call| call.number);
        let found = match self.take(|piece| answers(piece, partner) && reports(piece, content)) {
            Some(found) => {
                self.hold(Kind::CallIds);
                Some(found)
            }
            None => match self
                .take(|piece| reports(piece, content))
                .filter(|_| !content.trim().is_empty())
            {
                Some(found) => {
                    let without_id = self.calls.get(result.id).map(|call| match call.has_id {
                        true => at.member("tool_use_id"),
                        false => call.at.member("id"),
                    });
                    if let Some(at) = without_id {
                        self.lose(Kind::CallIds, &at, result.id);
                    }
                    Some(found)
                }
                None => None,
            },
        };
        if let Some(piece) = found {
            if self.pieces[piece].text_of_any() == Some(&alteration::as_json(content)) {
                let fate = Fate::Altered(alteration::ENCODED.to_owned());
                return self.tell(Kind::ToolResults, fate, &at.member("content"), content);
            }
            self.hold(Kind::ToolResults);
            self.order
                .push((piece, message, Kind::ToolResults, at.clone()));
            return self.marks(result, piece, at);
        }
        if let Some(piece) = self.take(|piece| answers(piece, partner)) {
            self.hold(Kind::CallIds);
            let Content::Result(answer) = &self.pieces[piece].content else {
                return;
            };
            let answer = answer.text.clone();
            let found = alteration::escaped(content, &[&answer])
                .or_else(|| alteration::find(content, [&*answer]));
            let fate = found.map_or(Fate::Dropped, Fate::Altered);
            return self.tell(Kind::ToolResults, fate, &at.member("content"), content);
        }
        match !content.trim().is_empty() && self.is_in_a_leaf(content) {
            true => self.hold(Kind::ToolResults),
            false => self.lost_text(Kind::ToolResults, &at.member("content"), content),
        }
    }

    /// Judges the attributes of a result: the error mark and the tool name.
    fn marks(&mut self, result: &Outcome<'_>, piece: usize, at: &Pointer) {
        let Piece {
            content: Content::Result(answer),
            value,
            ..
        } = &self.pieces[piece]
        else {
            return;
        };
        let is_marked = answer.is_error || answer.text.trim() != result.content.trim();
        let inner = ["functionResponse", "function_response"]
            .into_iter()
            .find_map(|name| value.get(name));
        let is_named = result.name.is_empty() || names_tool(inner.unwrap_or(value), result.name);
        if result.is_error {
            match is_marked {
                true => self.hold(Kind::ErrorMarks),
                false => self.lose(Kind::ErrorMarks, &at.member("is_error"), "true"),
            }
        }
        match is_named {
            true => self.hold(Kind::ResultNames),
            false => self.lose(Kind::ResultNames, &at.member("name"), result.name),
        }
    }

    /// Judges the data of an image, a document or a recording. In a body, data is a separate string
    /// or follows the head of a data URL. Returns `true` if the body contains the data.
    fn data(&mut self, kind: Kind, at: &Pointer, data: &str) -> bool {
        let leaves = self.leaves();
        let is_held = data.trim().is_empty()
            || leaves.whole.contains(data)
            || leaves.in_order.iter().any(|leaf| ends_a_url(leaf, data));
        match is_held {
            true => self.hold(kind),
            false => self.lose(kind, at, data),
        }
        is_held
    }

    fn image(&mut self, kind: Kind, image: &Image, at: &Pointer) {
        let told = self.judged.losses.len();
        if !self.data(kind, &at.member("data"), &image.data) {
            let also = image.is_url.then_some(Kind::ImageUrls);
            return self.judged.losses[told..]
                .iter_mut()
                .for_each(|loss| loss.also = also);
        }
        self.media_type(
            &image.data,
            &image.media_type,
            !image.is_url,
            &at.member("media_type"),
        );
    }

    /// Judges the media type of some data. Base64 data requires a media type. An address does not,
    /// but its media type must not be wrong.
    fn media_type(&mut self, data: &str, media_type: &str, is_needed: bool, at: &Pointer) {
        if !self.may_search() {
            return;
        }
        let holders = self
            .members
            .iter()
            .flat_map(|(_, value)| holders_of(value, data));
        let stated: Vec<Option<&str>> = holders.map(stated_type).collect();
        let is_right = stated
            .iter()
            .flatten()
            .any(|stated| is_same_type(stated, media_type));
        let is_wrong = stated
            .iter()
            .flatten()
            .any(|stated| !is_same_type(stated, media_type));
        let is_silent = is_needed && !stated.is_empty() && stated.iter().all(Option::is_none);
        if is_right {
            self.hold(Kind::MediaTypes);
        } else if is_wrong || is_silent {
            self.lose(Kind::MediaTypes, at, media_type);
        }
    }

    fn document(&mut self, document: &Document, at: &Pointer) {
        let data = at.member("data");
        let is_held = match document.source {
            DocumentSource::Text => {
                let losses = self.judged.losses.len();
                self.anywhere(Kind::DocumentText, &data, &document.data);
                losses == self.judged.losses.len()
            }
            DocumentSource::Url => self.data(Kind::DocumentUrls, &data, &document.data),
            DocumentSource::File => self.data(
                Kind::DocumentFiles,
                &data,
                document.data.trim_start_matches("files/"),
            ),
            DocumentSource::Base64 if document.media_type.as_ref() == "application/pdf" => {
                self.data(Kind::PdfDocuments, &data, &document.data)
            }
            DocumentSource::Base64 => self.data(Kind::OtherDocuments, &data, &document.data),
        };
        if is_held && document.source != DocumentSource::Text {
            self.media_type(
                &document.data,
                &document.media_type,
                false,
                &at.member("media_type"),
            );
        }
        let kind = match document.source {
            DocumentSource::Text | DocumentSource::Base64 => Kind::DocumentTitles,
            DocumentSource::Url | DocumentSource::File => Kind::LinkedTitles,
        };
        if let Some(title) = document.title.as_deref().filter(|_| is_held) {
            self.anywhere(kind, &at.member("title"), title);
        }
    }

    /// Checks that the body carries a block in the provider's own form. The body may contain the
    /// block as a whole, as members of another object, or as a string that replaces it.
    fn own_block(&mut self, data: &Value, text: Option<&str>, at: &Pointer) {
        let mut leaves = Vec::new();
        collect_telling(data, &mut leaves);
        // An audio answer is sent back only as its ID.
        let spoken = data.pointer("/audio/id").and_then(Value::as_str);
        // Members of a message are merged with those of other blocks; a block with a type stays
        // whole.
        let is_joined = data.get("type").is_none()
            && !leaves.is_empty()
            && leaves.iter().all(|leaf| self.is_a_leaf(leaf));
        let is_held = is_joined
            || spoken.is_some_and(|id| self.is_a_leaf(id))
            || !self.may_search()
            || self.members.iter().any(|(_, value)| holds(value, data))
            || text.is_some_and(|text| !text.trim().is_empty() && self.is_in_a_leaf(text));
        match is_held {
            true => self.hold(Kind::ProviderBlocks),
            false => self.lose(Kind::ProviderBlocks, at, &data.to_string()),
        }
    }

    /// Reports strings that occur more often in the body than in the conversation.
    fn duplicates(&mut self) {
        let mut times: HashMap<&str, (usize, usize)> = HashMap::default();
        for (number, said) in self.said.iter().enumerate() {
            times.entry(said.text).or_insert((number, 0)).1 += 1;
        }
        let mut told: Vec<usize> = Vec::new();
        for (text, (first, times)) in times {
            let is_more = self
                .texts
                .get(text)
                .is_some_and(|pieces| pieces.len() > times);
            told.extend(is_more.then_some(first));
        }
        told.sort_unstable();
        for number in told.into_iter().take(MAX_LOSSES) {
            let Said { kind, text, at } = &self.said[number];
            let (kind, text, at) = (*kind, *text, at.clone());
            self.tell(kind, Fate::Duplicated, &at, text);
        }
    }

    /// Reports messages that come before earlier messages in the body.
    fn order(&mut self) {
        self.order.sort_by_key(|(piece, ..)| *piece);
        let mut latest = 0;
        let order = std::mem::take(&mut self.order);
        for (piece, message, kind, at) in order {
            if message < latest {
                let shown = self.pieces[piece]
                    .text_of_message()
                    .unwrap_or_default()
                    .to_owned();
                // If results come before their calls, the order also explains the problems with
                // call IDs.
                self.judged.losses.retain(|loss| loss.kind != Kind::CallIds);
                return self.tell(kind, Fate::Reordered, &at, &shown);
            }
            latest = message;
        }
    }
}

fn blocks(message: usize, at: &Pointer) -> Pointer {
    at.element(message).member("content_blocks")
}

/// Returns `true` if strings of this kind may be in messages with this role.
fn may_say(role: Role, kind: Kind) -> bool {
    match kind {
        Kind::AssistantText => role == Role::Assistant,
        Kind::UserText => matches!(role, Role::User | Role::Tool),
        _ => matches!(role, Role::System | Role::User),
    }
}

/// Returns the tool that a piece calls; `None` if the piece is not a call.
fn tool_of<'p>(piece: &'p Piece<'_>) -> Option<&'p str> {
    match &piece.content {
        Content::Call(call) => Some(&call.name),
        _ => None,
    }
}

/// Returns the arguments of a piece; `None` if the piece is not a call.
fn arguments_of<'p>(piece: &'p Piece<'_>) -> Option<&'p str> {
    match &piece.content {
        Content::Call(call) => Some(&call.arguments),
        _ => None,
    }
}

/// Returns `true` if a piece is the result of this call.
fn answers(piece: &Piece<'_>, call: Option<usize>) -> bool {
    matches!(&piece.content, Content::Result(answer) if call.is_some() && answer.call == call)
}

/// Returns `true` if a piece is a result that contains this text.
fn reports(piece: &Piece<'_>, content: &str) -> bool {
    matches!(&piece.content, Content::Result(answer) if content.trim().is_empty() || says(&answer.text, content))
}

/// Returns `true` if a result in the body names this tool.
fn names_tool(result: &Value, name: &str) -> bool {
    ["name", "tool_name"]
        .into_iter()
        .any(|key| result.get(key).and_then(Value::as_str) == Some(name))
}

/// A call in the conversation that the body does not contain unchanged.
struct OtherCall<'c> {
    id: &'c str,
    name: &'c str,
    input: &'c Value,
    /// The input, as canonical JSON.
    arguments: String,
    at: Pointer,
}

/// A call in the body.
struct Called {
    /// The index of the call in the body.
    number: usize,
    /// The location of the call in the conversation.
    at: Pointer,
    /// `true` if the call has an ID in the body.
    has_id: bool,
}

/// The strings in a body.
struct Leaves<'b> {
    in_order: Vec<&'b str>,
    whole: HashSet<&'b str>,
    bytes: usize,
}

/// The result of a call in a conversation.
struct Outcome<'c> {
    id: &'c str,
    content: &'c str,
    is_error: bool,
    name: &'c str,
}

impl Piece<'_> {
    /// Returns the piece's text, regardless of its kind.
    fn text_of_any(&self) -> Option<&str> {
        match &self.content {
            Content::Text(text) | Content::Gap(_, text) | Content::Thinking(text) => Some(text),
            Content::Result(answer) => Some(&answer.text),
            _ => None,
        }
    }

    /// Returns the text, if the piece is text in a message or in a gap.
    fn text_of_message(&self) -> Option<&str> {
        match &self.content {
            Content::Text(text) | Content::Gap(_, text) => Some(text),
            _ => None,
        }
    }
}

/// Returns `true` if `whole` contains `text`. A short text must be a separate word, because the
/// letters of "ok" occur in many words.
fn says(whole: &str, text: &str) -> bool {
    const SHORT: usize = 8;
    if text.len() >= SHORT {
        return whole.contains(text);
    }
    whole
        .match_indices(text)
        .any(|(at, _)| is_apart(at, whole, text))
}

fn is_apart(at: usize, whole: &str, text: &str) -> bool {
    let before = whole[..at].chars().next_back();
    let behind = whole[at + text.len()..].chars().next();
    !before.is_some_and(char::is_alphanumeric) && !behind.is_some_and(char::is_alphanumeric)
}

/// Collects the strings in a value.
fn collect<'v>(value: &'v Value, leaves: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => leaves.push(text),
        Value::Array(elements) => elements.iter().for_each(|element| collect(element, leaves)),
        Value::Object(members) => members.values().for_each(|member| collect(member, leaves)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Collects the strings in a value that identify the value: IDs, words, data.
fn collect_telling<'v>(value: &'v Value, leaves: &mut Vec<&'v str>) {
    const SHORTEST: usize = 4;
    const COMMON: [&str; 4] = ["type", "role", "status", "name"];
    match value {
        Value::String(text) if text.len() >= SHORTEST => leaves.push(text),
        Value::Array(elements) => elements
            .iter()
            .for_each(|element| collect_telling(element, leaves)),
        Value::Object(members) => members
            .iter()
            .filter(|(name, _)| !COMMON.contains(&name.as_str()))
            .for_each(|(_, member)| collect_telling(member, leaves)),
        _ => {}
    }
}

/// Returns `true` if a value, or a value inside it, has all members of `wanted`.
fn holds(value: &Value, wanted: &Value) -> bool {
    let has_all = match (value, wanted) {
        (Value::Object(members), Value::Object(wanted)) => {
            !wanted.is_empty()
                && wanted
                    .iter()
                    .all(|(name, value)| members.get(name) == Some(value))
        }
        (value, wanted) => value == wanted,
    };
    has_all
        || match value {
            Value::Array(elements) => elements.iter().any(|element| holds(element, wanted)),
            Value::Object(members) => members.values().any(|member| holds(member, wanted)),
            _ => false,
        }
}

/// Returns `true` if a call has an ID, under any of its names.
fn has_id(call: &Value) -> bool {
    let inner = ["functionCall", "function_call"]
        .into_iter()
        .find_map(|name| call.get(name))
        .unwrap_or(call);
    let ids = ["id", "call_id"]
        .into_iter()
        .filter_map(|name| inner.get(name)?.as_str());
    ids.into_iter().any(|id| !id.is_empty())
}

/// Returns the objects that contain some data, alone or after the head of a data URL. If a list
/// contains the data directly, returns the string itself.
fn holders_of<'v>(value: &'v Value, data: &str) -> Vec<&'v Value> {
    match value {
        Value::Array(elements) => {
            let inner = elements.iter().flat_map(|element| {
                if is_data(element, data) {
                    vec![element]
                } else {
                    holders_of(element, data)
                }
            });
            inner.collect()
        }
        Value::Object(members) if members.values().any(|member| is_data(member, data)) => {
            vec![value]
        }
        Value::Object(members) => members
            .values()
            .flat_map(|member| holders_of(member, data))
            .collect(),
        _ => Vec::new(),
    }
}

/// Returns `true` if the data follows the head of a data URL, or is the last part of a path.
fn ends_a_url(text: &str, data: &str) -> bool {
    text.strip_suffix(data)
        .is_some_and(|head| head.ends_with("base64,") || head.ends_with('/'))
}

/// Returns `true` if a string is the data, alone or after the head of a data URL.
fn is_data(value: &Value, data: &str) -> bool {
    value.as_str().is_some_and(|text| text.ends_with(data))
}

/// Returns the media type or format that an object or its data URL specifies.
fn stated_type(holder: &Value) -> Option<&str> {
    const NAMES: [&str; 4] = ["mimeType", "mime_type", "media_type", "format"];
    fn of_url(value: &Value) -> Option<&str> {
        Some(
            value
                .as_str()?
                .strip_prefix("data:")?
                .split_once(";base64,")?
                .0,
        )
    }
    let Some(members) = holder.as_object() else {
        return of_url(holder);
    };
    let named = NAMES
        .into_iter()
        .find_map(|name| members.get(name)?.as_str());
    named.or_else(|| members.values().find_map(of_url))
}

/// Returns `true` if a stated type matches a media type, either in full or by the name of its
/// format: `wav` for `audio/x-wav`, `mp3` for `audio/mpeg`.
fn is_same_type(stated: &str, media_type: &str) -> bool {
    const OTHER_NAMES: [(&str, &str); 2] = [("mp3", "mpeg"), ("jpg", "jpeg")];
    let Some((_, kind)) = media_type.split_once('/') else {
        return stated == media_type;
    };
    let kind = kind.strip_prefix("x-").unwrap_or(kind);
    stated == media_type || stated == kind || OTHER_NAMES.contains(&(stated, kind))
}
