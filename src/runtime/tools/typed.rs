//! Tools whose arguments have a Rust type.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{BoxFuture, Tool, ToolContext, ToolOutput};
use crate::conversation::Tool as Definition;

/// A tool whose arguments have a Rust type. The schema is derived from the type, and the doc
/// comments of its fields explain them to the model.
///
/// ```
/// use reqc::runtime::tools::{ToolSet, TypedTool};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Celsius {
///     /// Degrees Fahrenheit.
///     fahrenheit: f64,
/// }
///
/// let celsius = TypedTool::new("celsius", "Converts a temperature.", |input: Celsius, _| async move {
///     if input.fahrenheit < -459.67 { Err("there is nothing so cold") } else { Ok(format!("{:.1}", (input.fahrenheit - 32.0) / 1.8)) }
/// });
/// let tools = ToolSet::new().with(celsius);
/// assert!(tools.mistake("celsius", &serde_json::json!({"fahrenheit": "hot"})).is_some());
/// ```
pub struct TypedTool<T, F> {
    definition: Definition,
    function: F,
    is_concurrent: bool,
    /// `true` if there are no arguments: `T` is `()`.
    takes_nothing: bool,
    input: PhantomData<fn(T)>,
}

impl<T, F, R> TypedTool<T, F>
where
    T: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(T, ToolContext) -> R + Send + Sync,
    R: Future<Output: Into<ToolOutput>> + Send + 'static,
{
    /// Returns a tool that calls `function` with its arguments. Arguments are always an object, so
    /// `T` is a struct, a map, or an enum of these, or `()` for no arguments. The function returns
    /// text, JSON, a [`ToolOutput`], or a `Result` of one of these; the model sees an error value.
    pub fn new(
        name: impl Into<Arc<str>>,
        description: impl Into<Arc<str>>,
        function: F,
    ) -> TypedTool<T, F> {
        let mut schema = schema_of::<T>();
        let takes_nothing = schema.get("type").is_some_and(|kind| kind == "null");
        if takes_nothing {
            schema = Map::new();
        }
        let kind = schema.entry("type").or_insert_with(|| "object".into());
        // OpenAI rejects an object without this member.
        if kind == "object" && !schema.contains_key("oneOf") && !schema.contains_key("anyOf") {
            schema
                .entry("properties")
                .or_insert_with(|| Value::Object(Map::new()));
        }
        let definition = Definition {
            name: name.into(),
            description: description.into(),
            schema,
        };
        TypedTool {
            definition,
            function,
            is_concurrent: true,
            takes_nothing,
            input: PhantomData,
        }
    }

    /// Makes the tool run alone; see [`Tool::is_concurrent`].
    #[must_use]
    pub fn not_concurrent(self) -> TypedTool<T, F> {
        TypedTool {
            is_concurrent: false,
            ..self
        }
    }
}

impl<T, F, R> Tool for TypedTool<T, F>
where
    T: DeserializeOwned + Send + 'static,
    F: Fn(T, ToolContext) -> R + Send + Sync,
    R: Future<Output: Into<ToolOutput>> + Send + 'static,
{
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn call(&self, input: Value, context: ToolContext) -> BoxFuture<'_, ToolOutput> {
        match serde_json::from_value(if self.takes_nothing {
            Value::Null
        } else {
            input
        }) {
            Ok(input) => {
                let output = (self.function)(input, context);
                Box::pin(async move { output.await.into() })
            }
            // The schema may be weaker than the type, for example for a number that must be prime.
            Err(error) => {
                let told = format!(
                    "the arguments of `{}` are invalid: {error}",
                    self.definition.name
                );
                Box::pin(std::future::ready(ToolOutput::error(told)))
            }
        }
    }

    fn is_concurrent(&self) -> bool {
        self.is_concurrent
    }
}

/// Returns the JSON Schema for deserialising `T`, in the form that providers accept: without
/// references unless `T` is recursive, and without number formats that JSON Schema does not define
/// (`uint32`).
pub fn schema_of<T: JsonSchema>() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let settings = settings.with_transform(RecursiveTransform(without_number_formats));
    match settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value()
    {
        Value::Object(mut schema) => {
            // The name of a Rust type is meaningless to a model.
            schema.remove("title");
            schema
        }
        _ => Map::new(),
    }
}

fn without_number_formats(schema: &mut Schema) {
    let is_number = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(is_number),
        Some(kind) => is_number(kind),
        None => false,
    };
    if is_number {
        schema.remove("format");
    }
}

fn is_number(kind: &Value) -> bool {
    kind == "integer" || kind == "number"
}

impl From<String> for ToolOutput {
    fn from(text: String) -> ToolOutput {
        ToolOutput::text(text)
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> ToolOutput {
        ToolOutput::text(text)
    }
}

impl From<Value> for ToolOutput {
    fn from(value: Value) -> ToolOutput {
        ToolOutput::text(value.to_string())
    }
}

impl<T: Into<ToolOutput>, E: fmt::Display> From<Result<T, E>> for ToolOutput {
    fn from(result: Result<T, E>) -> ToolOutput {
        result.map_or_else(|error| ToolOutput::error(error.to_string()), Into::into)
    }
}
