//! The serde forms of values that a host stores or sends elsewhere.
//!
//! Each value has a single form, which contexts and logs share (`docs/contexts.md`,
//! `docs/sessions.md`). The functions of [`log`](super::log) write and read it. A [`Conversation`]
//! has the members of a context, and additional members for facts that only a session has
//! (`docs/library.md`).

use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error};
use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::log::read::{self, Object, Read};
use super::log::{CutOff, Entry, write};
use super::{
    AttachedFile, Audio, Block, Conversation, Document, DocumentSource, Image, Item, ItemKind,
    Message, PodEvent, ProviderBlock, Role, SystemLayer, Task, Tool, Usage,
};

/// Implements serde with a function that writes a JSON value, and one that reads it.
macro_rules! as_json {
    ($($type:ty: $write:expr, $read:expr;)*) => { $(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let write: fn(&$type) -> Value = $write;
                write(self).serialize(serializer)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                let read: fn(Value) -> Read<$type> = $read;
                read(Value::deserialize(deserializer)?).map_err(D::Error::custom)
            }
        }
    )* };
}

as_json! {
    Conversation: conversation, |it| conversation_of(Object::of(it, "a conversation")?);
    Message: message, |it| read::message_of(&Object::of(it, "a message")?);
    Block: write::block, |it| read::block(&it);
    Document: |it| write::block(&Block::Document(it.clone())), |it| match read::block(&it)? {
        Block::Document(it) => Ok(it),
        _ => Err("it is not a document".into()),
    };
    Image: |it| write::block(&Block::Image(it.clone())), |it| match read::block(&it)? {
        Block::Image(it) => Ok(it),
        _ => Err("it is not an image".into()),
    };
    Audio: |it| write::block(&Block::Audio(it.clone())), |it| match read::block(&it)? {
        Block::Audio(it) => Ok(it),
        _ => Err("it is not a recording".into()),
    };
    ProviderBlock: |it| write::block(&Block::Provider(it.clone())), |it| match read::block(&it)? {
        Block::Provider(it) => Ok(it),
        _ => Err("it is not a provider block".into()),
    };
    Tool: write::tool, |it| read::tool(&it);
    SystemLayer: write::layer, |it| read::layer(&it);
    AttachedFile: |it| json!({"file_path": &*it.file_path, "content": &*it.content}), |it| {
        let file = Object::of(it, "a file")?;
        Ok(AttachedFile { file_path: file.text("file_path")?, content: file.text("content")? })
    };
    Item: |it| Value::Object(write::item(it)), |it| match read::entry_of(&Object::of(it, "an item")?)? {
        Entry::Item(it) => Ok(it),
        _ => Err("it is not a typed item".into()),
    };
    Entry: |it| Value::Object(write::members(it)), |it| read::entry_of(&Object::of(it, "a line")?);
    Usage: |it| Value::Object(write::usage(*it)), |it| read::usage(&Object::of(it, "a count of tokens")?);
    Role: |it| it.name().into(), |it| named(&it, Role::from_name);
    ItemKind: |it| it.name().into(), |it| named(&it, ItemKind::from_name);
    PodEvent: |it| it.name().into(), |it| named(&it, PodEvent::from_name);
    DocumentSource: |it| it.name().into(), |it| named(&it, DocumentSource::from_name);
    CutOff: |it| it.name().into(), |it| named(&it, CutOff::from_name);
}

/// Returns a typed item in the form of a context, or any other message in the form of a log but
/// without `kind`.
fn message(message: &Message) -> Value {
    match (message.role, message.item, message.blocks.as_slice()) {
        (Role::System, Some(kind), [Block::Text(text)]) => {
            json!({"kind": kind.name(), "text": &**text})
        }
        _ => Value::Object(write::message_members(message)),
    }
}

/// Returns the members of a context, except for empty ones, followed by the members that only a
/// session has.
fn conversation(it: &Conversation) -> Value {
    let mut members = Map::new();
    match &it.task {
        Task::Chat(history) => {
            drop(members.insert("history".to_owned(), history.iter().map(message).collect()));
        }
        Task::Completion { prefix, suffix } => {
            members.insert("prefix".to_owned(), prefix.as_str().into());
            members.insert("suffix".to_owned(), suffix.as_str().into());
        }
    }
    let mut add = |key: &str, is_told: bool, value: Value| {
        if is_told {
            members.insert(key.to_owned(), value);
        }
    };
    add("tools", !it.tools.is_empty(), json!(it.tools));
    add("files", !it.files.is_empty(), json!(it.files));
    add(
        "system_layers",
        !it.system_layers.is_empty(),
        json!(it.system_layers),
    );
    add("system_prompt", it.omit_system_prompt, "omit".into());
    add("bound_from", it.bound_from > 0, it.bound_from.into());
    add(
        "known_prompt",
        it.known_prompt.is_some(),
        it.known_prompt.as_deref().into(),
    );
    add("is_told", it.is_told, true.into());
    add(
        "known_items",
        !it.known_items.is_empty(),
        json!(it.known_items),
    );
    Value::Object(members)
}

fn conversation_of(mut members: Object) -> Read<Conversation> {
    let omit_system_prompt = match members.optional("system_prompt")?.as_deref() {
        Some("omit") => true,
        None | Some("profile") => false,
        Some(_) => return Err("`system_prompt` is neither `profile` nor `omit`".into()),
    };
    Ok(Conversation {
        task: task(&mut members)?,
        tools: member(&mut members, "tools")?,
        files: member(&mut members, "files")?,
        system_layers: member(&mut members, "system_layers")?,
        omit_system_prompt,
        bound_from: member(&mut members, "bound_from")?,
        known_prompt: members.optional("known_prompt")?,
        is_told: member(&mut members, "is_told")?,
        known_items: member(&mut members, "known_items")?,
    })
}

fn task(members: &mut Object) -> Read<Task> {
    let gap = (members.optional("prefix")?, members.optional("suffix")?);
    match (members.take("history"), gap) {
        (Some(history), (None, None)) => Ok(Task::Chat(value_of("history", history)?)),
        (None, (Some(prefix), Some(suffix))) => Ok(Task::Completion {
            prefix: prefix.to_string(),
            suffix: suffix.to_string(),
        }),
        _ => Err("a conversation has a `history`, or a `prefix` and a `suffix`".into()),
    }
}

/// Removes and returns an optional member, or returns the default value if the member is missing.
fn member<T: DeserializeOwned + Default>(members: &mut Object, key: &str) -> Read<T> {
    members
        .take(key)
        .map_or_else(|| Ok(T::default()), |value| value_of(key, value))
}

fn value_of<T: DeserializeOwned>(key: &str, value: Value) -> Read<T> {
    serde_json::from_value(value).map_err(|why| format!("`{key}`: {why}").into())
}

fn named<T>(value: &Value, from_name: fn(&str) -> Option<T>) -> Read<T> {
    let name = value.as_str().ok_or("it is not a string")?;
    from_name(name).ok_or_else(|| {
        format!(
            "`{}` is not one of the allowed names",
            crate::text::cut(name, 40)
        )
        .into()
    })
}
