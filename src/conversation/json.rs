//! What a host keeps or passes on, for serde.
//!
//! There is one form of each thing, that of contexts and logs (`docs/contexts.md`, `docs/sessions.md`), and one writer and one
//! reader, those of the [`log`](super::log). A [`Conversation`](super::Conversation) has no form of its own: its history has, and a log
//! holds what a session knows beside it.

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};
use serde_json::{Value, json};

use super::log::read::{self, Object, Read};
use super::log::{CutOff, Entry, write};
use super::{
    AttachedFile, Audio, Block, Document, DocumentSource, Image, Item, ItemKind, Message, PodEvent, ProviderBlock,
    Role, SystemLayer, Tool, Usage,
};

/// Serde by way of a value of JSON: how it is written, and how it is read.
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
    Message: message, |it| read::message_of(&Object::of(it, "a message")?);
    Block: write::block, |it| read::block(&it);
    Document: |it| write::block(&Block::Document(it.clone())), |it| match read::block(&it)? {
        Block::Document(it) => Ok(it),
        _ => Err("it is no document".to_owned()),
    };
    Image: |it| write::block(&Block::Image(it.clone())), |it| match read::block(&it)? {
        Block::Image(it) => Ok(it),
        _ => Err("it is no image".to_owned()),
    };
    Audio: |it| write::block(&Block::Audio(it.clone())), |it| match read::block(&it)? {
        Block::Audio(it) => Ok(it),
        _ => Err("it is no recording".to_owned()),
    };
    ProviderBlock: |it| write::block(&Block::Provider(it.clone())), |it| match read::block(&it)? {
        Block::Provider(it) => Ok(it),
        _ => Err("it is no block of a provider".to_owned()),
    };
    Tool: write::tool, |it| read::tool(&it);
    SystemLayer: write::layer, |it| read::layer(&it);
    AttachedFile: |it| json!({"file_path": &*it.file_path, "content": &*it.content}), |it| {
        let file = Object::of(it, "a file")?;
        Ok(AttachedFile { file_path: file.text("file_path")?, content: file.text("content")? })
    };
    Item: |it| Value::Object(write::item(it)), |it| match read::entry_of(&Object::of(it, "an item")?)? {
        Entry::Item(it) => Ok(it),
        _ => Err("it is no typed item".to_owned()),
    };
    Entry: |it| Value::Object(write::members(it)), |it| read::entry_of(&Object::of(it, "a line")?);
    Usage: |it| Value::Object(write::usage(*it)), |it| read::usage(&Object::of(it, "a count of tokens")?);
    Role: |it| it.name().into(), |it| named(&it, Role::from_name);
    ItemKind: |it| it.name().into(), |it| named(&it, ItemKind::from_name);
    PodEvent: |it| it.name().into(), |it| named(&it, PodEvent::from_name);
    DocumentSource: |it| it.name().into(), |it| named(&it, DocumentSource::from_name);
    CutOff: |it| it.name().into(), |it| named(&it, CutOff::from_name);
}

/// A typed item as in a context; any other message as in a log, without the kind of its line.
fn message(message: &Message) -> Value {
    match (message.role, message.item, message.blocks.as_slice()) {
        (Role::System, Some(kind), [Block::Text(text)]) => json!({"kind": kind.name(), "text": &**text}),
        _ => Value::Object(write::message_members(message)),
    }
}

fn named<T>(value: &Value, from_name: fn(&str) -> Option<T>) -> Read<T> {
    let name = value.as_str().ok_or("it is not a string")?;
    from_name(name).ok_or_else(|| format!("`{}` is not one of the names", crate::text::cut(name, 40)))
}
