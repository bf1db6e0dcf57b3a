//! Checks for Moonshot's dialect of JSON Schema. Sources:
//! <https://github.com/MoonshotAI/walle/blob/main/docs/mfjs-spec.md> and the validator in the same
//! repository.

use serde_json::{Map, Value};

use super::Found;
use super::schemas::properties_without;
use crate::text::cut;

/// Reports keywords that Moonshot's schema dialect does not accept, such as references to anything
/// but `$defs`, and keywords next to a reference that the referenced schema repeats.
pub(super) fn check_moonshot<'b>(root: &'b Value, inner: &'b Value, found: &mut Found<'b>) {
    moonshot_shape(inner, found);
    moonshot_types(inner, found);
    moonshot_enum(inner, found);
    moonshot_several_types(inner, found);
    moonshot_repeated_keywords(inner, found);
    moonshot_alternatives(inner, std::ptr::eq(inner, root), found);
    if let Some(reference) = inner.get("$ref").and_then(Value::as_str) {
        moonshot_reference(root, inner, reference, found);
    }
}

/// The sources of the rule about `type` next to `anyOf`. These sources disagree.
const ALTERNATIVES: [&str; 8] = [
    "pkg:github/MoonshotAI/walle#validator.go",
    "MoonshotAI/kimi-code#2661",
    "MoonshotAI/kimi-code#792",
    "FTShare-Lab/FTShare-MCP#7",
    "MoonshotAI/kimi-cli#2531",
    "abhigyanpatwari/GitNexus#2703",
    "CommandCodeAI/command-code#594",
    "14790897/MiqroForge-Desktop#1165",
];

/// Reports a `type` next to `anyOf`. The root must have a `type`, so it cannot have an `anyOf`.
fn moonshot_alternatives<'b>(inner: &'b Value, is_root: bool, found: &mut Found<'b>) {
    if inner.get("anyOf").is_none() || inner.get("type").is_none() {
        return;
    }
    if is_root {
        found
            .at_member(
                inner,
                "anyOf",
                "Moonshot requires `type` at the root, and rejects it next to `anyOf`",
            )
            .known_from(&ALTERNATIVES)
            .warning()
            .help(
                "declare an object with all properties, and explain in the description which ones belong together",
            );
        return;
    }
    found
        .at_member(
            inner,
            "type",
            "Moonshot requires `type` inside the schemas of `anyOf`, not next to it",
        )
        .known_from(&ALTERNATIVES)
        .warning()
        .help("move `type` into each schema of `anyOf`");
}

/// Names of keywords that Moonshot rejects as property names.
pub(crate) const MOONSHOT_RESERVED: [&str; 5] =
    ["$defs", "$ref", "additionalProperties", "anyOf", "required"];

/// Reports a list as `items`, reserved property names, and names in `required` that are not
/// properties.
fn moonshot_shape<'b>(inner: &'b Value, found: &mut Found<'b>) {
    if let Some(items) = inner.get("items").filter(|items| items.is_array()) {
        found
            .at(
                items,
                "Moonshot accepts a single schema as `items`, not a list",
            )
            .known_from(&["vercel/ai#18921"])
            .help("write a single schema, with `anyOf` if the elements differ");
    }
    let Some(properties) = inner.get("properties").and_then(Value::as_object) else {
        return;
    };
    if let Some((name, property)) = properties
        .iter()
        .find(|(name, _)| MOONSHOT_RESERVED.contains(&name.as_str()))
    {
        found
            .at(
                property,
                format!("Moonshot rejects a property named `{name}`"),
            )
            .known_from(&[
                "pkg:github/MoonshotAI/walle#validator.go",
                "pydantic/logfire#2191",
            ])
            .help("give the property another name");
    }
    let required = inner.get("required").and_then(Value::as_array);
    let undefined = required.into_iter().flatten().find(|name| {
        let name = name.as_str();
        name.is_some_and(|name| !properties.contains_key(name))
    });
    if let Some(name) = undefined {
        found
            .at(
                name,
                "Moonshot rejects a name in `required` that is not in `properties`",
            )
            .known_from(&["vercel/ai#18921"])
            .help("remove the name from `required`, or declare the property");
    }
}

/// Keywords that define the type of a property. Moonshot requires at least one of them in the
/// property's schema.
const MOONSHOT_KINDS: [&str; 5] = ["type", "anyOf", "oneOf", "allOf", "$ref"];

/// Reports properties without a type.
fn moonshot_types<'b>(inner: &'b Value, found: &mut Found<'b>) {
    let properties = inner.get("properties").and_then(Value::as_object);
    for property in properties.into_iter().flat_map(Map::values) {
        if property.is_boolean() {
            found
                .at(
                    property,
                    "Moonshot rejects `true` and `false` as the schema of a property",
                )
                .known_from(&["can1357/oh-my-pi#5952", "can1357/oh-my-pi#5918"])
                .help("write an object, such as `{ \"type\": \"string\" }`");
        }
    }
    for property in properties_without(inner, &MOONSHOT_KINDS) {
        found
            .at(property, "Moonshot requires `type` for every property")
            .known_from(&[
                "MoonshotAI/kimi-cli#178",
                "earendil-works/pi#5822",
                "earendil-works/pi#4138",
                "tailcallhq/forgecode#3123",
            ])
            .help("add `type`");
    }
}

/// Returns the types that a schema allows, if it specifies any.
fn types_of(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(only)) => vec![only],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Returns `true` if a value has one of these types. An unknown type fits any value.
fn is_of_any_type(value: &Value, types: &[&str]) -> bool {
    types.iter().any(|kind| match *kind {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "null" => value.is_null(),
        _ => true,
    })
}

/// Reports an empty `enum`, and values in an `enum` that do not have the declared type.
fn moonshot_enum<'b>(inner: &'b Value, found: &mut Found<'b>) {
    let Some(list) = inner.get("enum") else {
        return;
    };
    if list.as_array().is_some_and(Vec::is_empty) {
        found
            .at(list, "Moonshot rejects an empty `enum`")
            .known_from(&["pkg:github/MoonshotAI/walle#validator.go"])
            .help("list the values, or remove `enum`");
    }
    let types = types_of(inner);
    let mut values = list.as_array().into_iter().flatten();
    let other = values.find(|value| !is_of_any_type(value, &types));
    if let Some(other) = other.filter(|_| !types.is_empty()) {
        found
            .at(
                other,
                "Moonshot rejects a value of `enum` that does not have the `type` of the schema",
            )
            .known_from(&["pkg:github/MoonshotAI/walle#validator.go"])
            .help("remove the value, or change the `type`");
    }
}

/// Keywords that Moonshot's validator accepts next to a list of types.
const BESIDE_TYPES: [&str; 5] = ["type", "description", "title", "$defs", "$id"];

/// Keywords that both a schema and its alternatives may have. A `type` next to `anyOf` is listed
/// because [`moonshot_alternatives`] always reports it.
const REPEATABLE: [&str; 4] = ["description", "title", "type", "anyOf"];

/// Reports keywords next to a list of types. Moonshot's validator accepts only a description, and
/// `enum` if the list has one type besides `null`.
fn moonshot_several_types<'b>(inner: &'b Value, found: &mut Found<'b>) {
    if types_of(inner).len() < 2 || inner.get("enum").is_some() {
        return;
    }
    let mut names = inner.as_object().into_iter().flat_map(Map::keys);
    if let Some(name) = names.find(|name| !BESIDE_TYPES.contains(&name.as_str())) {
        let message = format!(
            "Moonshot's validator rejects `{}` next to several types",
            cut(name, 40)
        );
        found
            .at_member(inner, name, message)
            .warning()
            .known_from(&["pkg:github/MoonshotAI/walle#validator.go"])
            .help("write `anyOf` with a schema for each type");
    }
}

/// Reports a keyword next to `anyOf` that one of the schemas in `anyOf` also has.
fn moonshot_repeated_keywords<'b>(inner: &'b Value, found: &mut Found<'b>) {
    let Some(members) = inner.as_object() else {
        return;
    };
    let Some(branches) = inner.get("anyOf").and_then(Value::as_array) else {
        return;
    };
    let mut names = members
        .keys()
        .filter(|name| !REPEATABLE.contains(&name.as_str()));
    if let Some(name) = names.find(|name| branches.iter().any(|branch| branch.get(name).is_some()))
    {
        let message = format!(
            "Moonshot rejects `{}` next to `anyOf`, because one of the alternatives has it as well",
            cut(name, 40)
        );
        found
            .at_member(inner, name, message)
            .help("remove it in one of the two places");
    }
}

/// Returns the target of a reference into `$defs` or to the root.
fn target<'b>(root: &'b Value, reference: &str) -> Option<&'b Value> {
    let pointer = reference.strip_prefix('#')?;
    let is_known = pointer.is_empty() || pointer.starts_with("/$defs/");
    root.pointer(pointer).filter(|_| is_known)
}

/// The maximum number of schemas that are visited to determine whether a value can be finite.
const MOST_FOLLOWED: usize = 1_000;

/// Reports a schema that only an infinite value could match. Moonshot's validator checks the root.
pub(super) fn moonshot_recursion<'b>(root: &'b Value, found: &mut Found<'b>) {
    let mut recursion = Recursion {
        root,
        within: vec!["#"],
        followed: 0,
    };
    if recursion.never_ends(root) {
        found
            .at_member(
                root,
                "required",
                "Moonshot rejects a schema whose required properties lead back to itself: a valid value would have to be infinite",
            )
            .help("make one of the properties optional, or allow `null` with `anyOf`");
    }
}

/// A traversal of references that determines whether every value of a schema would be infinite.
struct Recursion<'b> {
    root: &'b Value,
    /// The references that were followed to reach the schema.
    within: Vec<&'b str>,
    followed: usize,
}

impl<'b> Recursion<'b> {
    /// Returns `true` if no value of the schema can be finite, because the schema requires itself,
    /// directly or through other schemas.
    fn never_ends(&mut self, schema: &'b Value) -> bool {
        self.followed += 1;
        if self.followed > MOST_FOLLOWED {
            return false;
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            if self.within.contains(&reference) {
                return true;
            }
            self.within.push(reference);
            let target = target(self.root, reference);
            let never_ends = target.is_some_and(|target| self.never_ends(target));
            self.within.pop();
            return never_ends;
        }
        if let Some(branches) = schema.get("anyOf").and_then(Value::as_array) {
            return !branches.is_empty() && branches.iter().all(|branch| self.never_ends(branch));
        }
        let required = schema.get("required").and_then(Value::as_array);
        let properties = schema.get("properties");
        required
            .into_iter()
            .flatten()
            .filter_map(|name| properties?.get(name.as_str()?))
            .any(|property| self.never_ends(property))
    }
}

fn moonshot_reference<'b>(
    root: &'b Value,
    inner: &'b Value,
    reference: &str,
    found: &mut Found<'b>,
) {
    if inner.get("type").is_some() {
        found
            .at_member(
                inner,
                "type",
                "Moonshot rejects `type` next to `$ref`: it belongs in the referenced schema",
            )
            .known_from(&[
                "pkg:github/MoonshotAI/walle#validator.go",
                "lidge-jun/opencodex#2673",
            ])
            .help("remove it");
        return;
    }
    if reference == "#" {
        return;
    }
    let Some(target) = target(root, reference) else {
        let message = "Moonshot accepts only references into the `$defs` of the schema";
        found
            .at_member(inner, "$ref", message)
            .help("use `#/$defs/NAME`, and define the schema under `$defs` at the root");
        return;
    };
    let members = inner.as_object().into_iter().flatten();
    let mut names = members
        .map(|(name, _)| name.as_str())
        .filter(|name| *name != "$ref");
    if let Some(name) = names.find(|name| target.get(*name).is_some()) {
        let message = format!(
            "Moonshot may reject `{}` next to `$ref`, because the referenced schema has it as well",
            cut(name, 40)
        );
        found
            .at_member(inner, name, message)
            .warning()
            .help("remove it in one of the two places");
    }
}
