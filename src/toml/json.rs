//! Reads TOML values that the build script has written as JSON. They have no locations, and dates
//! are strings.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::{Key, Kind, Node, Table};

impl<'de> Deserialize<'de> for Table {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Table, D::Error> {
        match Node::deserialize(from)?.kind {
            Kind::Table(table) => Ok(table),
            _ => Err(D::Error::custom("not a table")),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Node, D::Error> {
        from.deserialize_any(KindVisitor).map(nowhere)
    }
}

fn nowhere(kind: Kind) -> Node {
    Node { kind, span: 0..0 }
}

struct KindVisitor;

impl<'de> Visitor<'de> for KindVisitor {
    type Value = Kind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value other than null")
    }

    fn visit_bool<E>(self, is: bool) -> Result<Kind, E> {
        Ok(Kind::Boolean(is))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Kind, E> {
        Ok(Kind::Integer(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Kind, E> {
        i64::try_from(number).map(Kind::Integer).map_err(E::custom)
    }

    fn visit_f64<E>(self, number: f64) -> Result<Kind, E> {
        Ok(Kind::Float(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Kind, E> {
        Ok(Kind::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Kind, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = from.next_element()? {
            elements.push(element);
        }
        Ok(Kind::Array(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Kind, A::Error> {
        let mut entries = Vec::new();
        while let Some((name, node)) = from.next_entry()? {
            entries.push((Key { name, span: 0..0 }, node));
        }
        Ok(Kind::Table(Table { entries }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toml::parse;

    #[test]
    fn tables_are_the_same_as_in_toml() {
        let text = "a = [1, -2.5, \"c\", true]\nd = {e = {}}\n[[f]]\ng = 1\n[[f]]\n";
        let json = r#"{"a":[1,-2.5,"c",true],"d":{"e":{}},"f":[{"g":1},{}]}"#;
        let read: Table = serde_json::from_str(json).expect("tables");
        let parsed = parse(text).expect("TOML");
        assert!(nowhere(Kind::Table(read)).says_the_same(&nowhere(Kind::Table(parsed))));
        for wrong in [
            "null",
            "[]",
            "{\"a\": null}",
            "{\"a\": 18446744073709551615}",
        ] {
            serde_json::from_str::<Table>(wrong).expect_err(wrong);
        }
    }
}
