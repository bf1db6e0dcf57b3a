//! A schema document as a graph. Its edges point from a schema to schemas for the same value, and
//! to schemas for parts of the value.
//!
//! The graph is built before a repository's schema is compiled. Schemas with unbounded work are
//! rejected: cycles of schemas that apply to the same value, exponential repetition, and keywords
//! whose work cannot be predicted. For any other schema, the work can be [measured](super::cost)
//! for each body.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::refusal::Refusal;
use super::{extend, pattern};
use crate::text::cut;

/// The maximum number of values in a document, including extensions.
pub(super) const MAX_VALUES: usize = 50_000;
/// The maximum depth of nested schemas that apply to one value.
const MAX_HEIGHT: u32 = 32;
/// The maximum number of schemas, including values to compare with, that one schema may apply to
/// one value.
const MAX_EXPANSION: u64 = 100_000;

/// The keywords that contain a schema for the same value.
const SAME_VALUE: [&str; 4] = ["not", "if", "then", "else"];
/// The keywords that contain a list of schemas for the same value.
const SAME_VALUE_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// The keywords that contain schemas for the same value, by name.
const SAME_VALUE_MAPS: [&str; 2] = ["dependentSchemas", "dependencies"];
/// The keywords that compare a value with other values.
const COMPARED: [&str; 6] = [
    "enum",
    "const",
    "required",
    "dependentRequired",
    "dependencies",
    "type",
];
/// Keywords that are resolved in unexpected ways or whose work cannot be predicted, each with
/// advice on how to replace it.
const REFUSED: [(&str, &str); 7] = [
    ("$dynamicRef", "write `$ref`"),
    (
        "$dynamicAnchor",
        "write `$ref` with a JSON pointer to the schema",
    ),
    ("$recursiveRef", "write `$ref`"),
    (
        "$recursiveAnchor",
        "write `$ref` with a JSON pointer to the schema",
    ),
    (
        "$anchor",
        "write `$ref` with a JSON pointer to the schema: `#/$defs/name`",
    ),
    (
        "unevaluatedProperties",
        "list the fields in `properties` and use `additionalProperties` instead",
    ),
    (
        "unevaluatedItems",
        "describe the elements with `prefixItems` and `items`",
    ),
];
/// Keywords that are allowed only at the root of a document.
const ROOT_ONLY: [&str; 3] = ["$id", "$schema", "$vocabulary"];

/// The index of a schema in a [`Graph`].
pub(super) type SchemaId = usize;

/// All schemas that can be reached from the root.
pub(super) struct Graph {
    pub(super) schemas: Vec<Schema>,
    /// The location of each schema, as a JSON pointer.
    places: Vec<String>,
}

/// A schema, with references to the schemas that its edges point to.
#[derive(Default)]
pub(super) struct Schema {
    /// The cost of the schema's own keywords.
    pub(super) weight: u64,
    /// The cost, per byte of a string, of the schema's `pattern`.
    pub(super) pattern: u64,
    /// `true` if elements are compared with each other, because of `uniqueItems`.
    pub(super) is_unique: bool,
    /// The schemas that apply to the same value.
    pub(super) same: Vec<SchemaId>,
    /// The number of alternatives among these schemas. Each alternative copies a value that it
    /// rejects.
    pub(super) alternatives: u64,
    pub(super) properties: HashMap<String, SchemaId>,
    /// The schemas in `patternProperties`, each with the cost of its pattern per byte of a name.
    pub(super) by_pattern: Vec<(u64, SchemaId)>,
    pub(super) other_properties: Option<SchemaId>,
    pub(super) names: Option<SchemaId>,
    pub(super) first_elements: Vec<SchemaId>,
    pub(super) elements: Option<SchemaId>,
    pub(super) contains: Option<SchemaId>,
    /// The number of edges that point to this schema.
    pub(super) uses: u32,
    /// The cost of all schemas that apply to the same value, measured for a short string.
    pub(super) expansion: u64,
}

impl Graph {
    /// Builds the graph of a document.
    ///
    /// # Errors
    ///
    /// Returns the first reason why the cost of the document is unbounded.
    pub(super) fn of(document: &Value) -> Result<Graph, Refusal> {
        if extend::count(document) > MAX_VALUES {
            let message = format!("the schema has more than {MAX_VALUES} values");
            return Err(Refusal::new(
                "",
                message,
                "keep only what the wire format needs",
            ));
        }
        let mut builder = Builder {
            document,
            known: HashMap::new(),
            schemas: Vec::new(),
            places: Vec::new(),
        };
        builder.schema(document, String::new());
        let mut next = 0;
        while next < builder.places.len() {
            builder.read(next)?;
            next += 1;
        }
        let places = builder.places.into_iter().map(|(_, place)| place).collect();
        let graph = Graph {
            schemas: builder.schemas,
            places,
        };
        let mut heights = Heights {
            graph,
            known: vec![None; next],
        };
        (0..next).try_for_each(|id| heights.find(id, 0).map(drop))?;
        Ok(heights.graph)
    }

    /// Returns the ID of the schema at a location.
    pub(super) fn find(&self, place: &str) -> Option<SchemaId> {
        self.places.iter().position(|known| known == place)
    }
}

struct Builder<'s> {
    document: &'s Value,
    /// The IDs of schemas, by their locations.
    known: HashMap<String, SchemaId>,
    schemas: Vec<Schema>,
    /// The value and location of each schema, by ID.
    places: Vec<(&'s Value, String)>,
}

impl<'s> Builder<'s> {
    /// Returns the ID of a schema. A new schema gets an ID, and is read later.
    fn schema(&mut self, value: &'s Value, at: String) -> SchemaId {
        let id = match self.known.get(&at) {
            Some(known) => *known,
            None => {
                let id = self.schemas.len();
                self.schemas.push(Schema::default());
                self.places.push((value, at.clone()));
                self.known.insert(at, id);
                id
            }
        };
        self.schemas[id].uses += 1;
        id
    }

    fn read(&mut self, id: SchemaId) -> Result<(), Refusal> {
        let (value, at) = self.places[id].clone();
        let Value::Object(keywords) = value else {
            return Ok(());
        };
        refused(keywords, &at)?;
        let mut schema = Schema {
            weight: weight(keywords),
            ..Schema::default()
        };
        schema.pattern = keywords
            .get("pattern")
            .map_or(Ok(0), |it| pattern::work(it, &format!("{at}/pattern")))?;
        schema.is_unique = keywords.get("uniqueItems") == Some(&Value::Bool(true));
        self.read_same(keywords, &at, &mut schema)?;
        self.read_parts(keywords, &at, &mut schema)?;
        schema.uses = self.schemas[id].uses;
        self.schemas[id] = schema;
        Ok(())
    }

    fn read_same(
        &mut self,
        keywords: &'s Map<String, Value>,
        at: &str,
        schema: &mut Schema,
    ) -> Result<(), Refusal> {
        if let Some(target) = keywords.get("$ref") {
            schema.same.push(self.target(target, at)?);
        }
        schema.same.extend(
            SAME_VALUE
                .iter()
                .filter_map(|keyword| self.one(keywords, at, keyword)),
        );
        for keyword in SAME_VALUE_LISTS {
            let list = self.list(keywords, at, keyword);
            schema.alternatives += if keyword == "allOf" {
                0
            } else {
                list.len() as u64
            };
            schema.same.extend(list);
        }
        for keyword in SAME_VALUE_MAPS {
            schema.same.extend(
                self.map(keywords, at, keyword)
                    .into_iter()
                    .map(|(_, id)| id),
            );
        }
        Ok(())
    }

    fn read_parts(
        &mut self,
        keywords: &'s Map<String, Value>,
        at: &str,
        schema: &mut Schema,
    ) -> Result<(), Refusal> {
        schema.properties = self.map(keywords, at, "properties").into_iter().collect();
        for (name, id) in self.map(keywords, at, "patternProperties") {
            let work = pattern::work(&Value::String(name), &format!("{at}/patternProperties"))?;
            schema.by_pattern.push((work, id));
        }
        schema.other_properties = self.one(keywords, at, "additionalProperties");
        schema.names = self.one(keywords, at, "propertyNames");
        schema.first_elements = self.list(keywords, at, "prefixItems");
        schema.elements = self.one(keywords, at, "items");
        schema.contains = self.one(keywords, at, "contains");
        Ok(())
    }

    fn one(
        &mut self,
        keywords: &'s Map<String, Value>,
        at: &str,
        keyword: &str,
    ) -> Option<SchemaId> {
        let value = keywords.get(keyword)?;
        Some(self.schema(value, format!("{at}/{keyword}")))
    }

    fn list(&mut self, keywords: &'s Map<String, Value>, at: &str, keyword: &str) -> Vec<SchemaId> {
        let elements = keywords
            .get(keyword)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .enumerate();
        elements
            .map(|(index, value)| self.schema(value, format!("{at}/{keyword}/{index}")))
            .collect()
    }

    fn map(
        &mut self,
        keywords: &'s Map<String, Value>,
        at: &str,
        keyword: &str,
    ) -> Vec<(String, SchemaId)> {
        let members = keywords
            .get(keyword)
            .and_then(Value::as_object)
            .into_iter()
            .flatten();
        members
            .map(|(name, value)| (name.clone(), self.schema(value, place(name, at, keyword))))
            .collect()
    }

    fn target(&mut self, target: &Value, at: &str) -> Result<SchemaId, Refusal> {
        let at = format!("{at}/$ref");
        let text = target.as_str().unwrap_or_default();
        let pointer = text
            .strip_prefix('#')
            .filter(|pointer| pointer.is_empty() || pointer.starts_with('/'));
        let help =
            "write `#` and a JSON pointer to a schema of this file, for example `#/$defs/name`";
        let Some(pointer) = pointer.filter(|pointer| !pointer.contains('%')) else {
            return Err(Refusal::new(
                &at,
                "a schema cannot refer to anything outside its file",
                help,
            ));
        };
        match self.document.pointer(pointer) {
            Some(found @ (Value::Object(_) | Value::Bool(_))) => {
                Ok(self.schema(found, pointer.to_owned()))
            }
            _ => Err(Refusal::new(
                &at,
                format!("there is no schema at `{}`", cut(text, QUOTED)),
                help,
            )),
        }
    }
}

fn place(name: &str, at: &str, keyword: &str) -> String {
    format!(
        "{at}/{keyword}/{}",
        name.replace('~', "~0").replace('/', "~1")
    )
}

fn refused(keywords: &Map<String, Value>, at: &str) -> Result<(), Refusal> {
    let place = |keyword: &str| format!("{at}/{keyword}");
    if let Some((keyword, help)) = REFUSED
        .iter()
        .find(|(keyword, _)| keywords.contains_key(*keyword))
    {
        return Err(Refusal::new(
            &place(keyword),
            format!("`{keyword}` is not supported here"),
            *help,
        ));
    }
    match ROOT_ONLY
        .iter()
        .find(|keyword| !at.is_empty() && keywords.contains_key(**keyword))
    {
        Some(keyword) => {
            let message = format!("`{keyword}` is not supported inside a schema");
            Err(Refusal::new(
                &place(keyword),
                message,
                "remove it: a schema file is one document",
            ))
        }
        None => Ok(()),
    }
}

/// Returns the cost of the keywords that compare a value with other values.
fn weight(keywords: &Map<String, Value>) -> u64 {
    1 + COMPARED
        .iter()
        .filter_map(|keyword| keywords.get(*keyword))
        .map(size)
        .sum::<u64>()
}

/// Returns the cost of a comparison with a value.
fn size(value: &Value) -> u64 {
    match value {
        Value::String(text) => 1 + text.len() as u64 / 64,
        Value::Array(elements) => 1 + elements.iter().map(size).sum::<u64>(),
        Value::Object(members) => {
            1 + members
                .iter()
                .map(|(name, it)| name.len() as u64 / 64 + size(it))
                .sum::<u64>()
        }
        _ => 1,
    }
}

/// The maximum number of characters that a message quotes from a schema.
pub(super) const QUOTED: usize = 80;

/// A search for the nesting depth of schemas that apply to one value, and for their total number.
struct Heights {
    graph: Graph,
    known: Vec<Option<Found>>,
}

#[derive(Clone, Copy)]
enum Found {
    /// The schema is being visited. Reaching it again closes a cycle.
    Open,
    Height(u32),
}

impl Heights {
    fn find(&mut self, id: SchemaId, depth: u32) -> Result<u32, Refusal> {
        match self.known[id] {
            Some(Found::Height(height)) => return Ok(height),
            Some(Found::Open) => {
                let message = "this schema refers back to itself without descending into the value";
                return Err(self.refuse(id, message, "remove one of the references in the cycle"));
            }
            None => self.known[id] = Some(Found::Open),
        }
        let schema = &self.graph.schemas[id];
        let (mut height, mut expansion) = (0, schema.weight + schema.pattern);
        for inner in schema.same.clone() {
            if depth >= MAX_HEIGHT {
                let message =
                    format!("more than {MAX_HEIGHT} schemas check the same value in turn");
                return Err(self.refuse(
                    inner,
                    message,
                    "express the same constraints with fewer schemas",
                ));
            }
            height = height.max(self.find(inner, depth + 1)? + 1);
            expansion = expansion.saturating_add(self.graph.schemas[inner].expansion);
        }
        if expansion > MAX_EXPANSION || height > MAX_HEIGHT {
            let message = "this schema repeats others too often: one value would be checked more than 100,000 times";
            return Err(self.refuse(id, message, "write each condition once"));
        }
        self.graph.schemas[id].expansion = expansion;
        self.known[id] = Some(Found::Height(height));
        Ok(height)
    }

    fn refuse(&self, id: SchemaId, message: impl Into<String>, help: &str) -> Refusal {
        Refusal::new(&self.graph.places[id], message, help)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[expect(
        clippy::needless_pass_by_value,
        reason = "tests build the schema in place"
    )]
    fn refusal(schema: Value) -> (String, String) {
        let refusal = Graph::of(&schema).err().expect("it is refused");
        (refusal.at, refusal.message)
    }

    #[test]
    fn circles_that_look_at_no_part_are_refused() {
        let (at, message) = refusal(json!({"oneOf": [{"$ref": "#"}]}));
        assert_eq!(
            (at.as_str(), message.contains("refers back to itself")),
            ("", true),
            "{message}"
        );
        let circle = json!({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}}});
        assert_eq!(refusal(circle).0, "/$defs/a");
        assert!(
            Graph::of(&json!({"properties": {"a": {"$ref": "#"}}, "items": {"$ref": "#"}})).is_ok()
        );
    }

    #[test]
    fn schemas_that_double_are_refused() {
        let mut levels: Map<String, Value> = (0..12)
            .map(|level| {
                let next = json!({"$ref": format!("#/$defs/{}", level + 1)});
                (level.to_string(), json!({"allOf": [next, next, next]}))
            })
            .collect();
        levels.insert("12".to_owned(), json!({"type": "string"}));
        assert!(
            refusal(json!({"$ref": "#/$defs/0", "$defs": levels}))
                .1
                .contains("repeats others too often")
        );
    }

    #[test]
    fn long_chains_are_refused() {
        let mut levels: Map<String, Value> = (0..1000)
            .map(|level| {
                (
                    level.to_string(),
                    json!({"$ref": format!("#/$defs/{}", level + 1)}),
                )
            })
            .collect();
        levels.insert("1000".to_owned(), json!(true));
        assert!(
            refusal(json!({"$ref": "#/$defs/0", "$defs": levels}))
                .1
                .contains("in turn")
        );
        // The chain must also be rejected if the search begins at its end.
        let levels: Map<String, Value> = (0..1000)
            .rev()
            .map(|at| {
                (
                    format!("k{at}"),
                    json!({"$ref": format!("#/properties/k{}", at + 1)}),
                )
            })
            .collect();
        let mut properties = levels;
        properties.insert("k1000".to_owned(), json!({}));
        assert!(Graph::of(&json!({"properties": properties})).is_err());
    }

    #[test]
    fn references_stay_in_the_file() {
        for target in [
            "https://example.org",
            "#name",
            "other.json",
            "#/a%20b",
            "#/$defs/nowhere",
            "#/type",
        ] {
            let (at, _) = refusal(json!({"type": "object", "properties": {"a": {"$ref": target}}}));
            assert_eq!(at, "/properties/a/$ref", "{target}");
        }
        assert_eq!(
            refusal(json!({"items": {"unevaluatedProperties": false}})).0,
            "/items/unevaluatedProperties"
        );
        assert_eq!(refusal(json!({"items": {"$id": "x"}})).0, "/items/$id");
        assert!(Graph::of(&json!({"$id": "x", "$schema": "y"})).is_ok());
    }
}
