//! The floor: minijinja and `serde_json` alone, on the same templates and data, without origins,
//! checks, limits, comma handling or provider steps.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;

use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value};
use rayon::prelude::*;
use reqc::compile::Compiler;
use reqc::resolve::MergedTable;
use reqc::toml::{Kind, Node};
use reqc::world::{Output, World};

/// Everything that is prepared only once, for [`Floor::run`] to render, parse, print, and read
/// golden files.
pub(crate) struct Floor {
    environment: Environment<'static>,
    agents: Vec<Agent>,
    /// The `ctx`, the language and the project's name for each context.
    contexts: HashMap<String, (Value, String, String)>,
}

struct Agent {
    folder: String,
    prompt: Option<String>,
    templates: Vec<String>,
    contexts: Vec<String>,
}

impl Floor {
    /// Prepares the floor for the contexts whose names `is_chosen` accepts.
    pub(crate) fn new(
        compiler: &Compiler,
        bundled: &dyn World,
        is_chosen: impl Fn(&str) -> bool,
    ) -> Floor {
        let mut environment = environment(bundled);
        for partial in bundled.walk("partials").entries {
            let text =
                String::from_utf8(bundled.read(&partial.path).expect("reads")).expect("UTF-8");
            environment
                .add_template_owned(partial.path, text)
                .expect("parses");
        }
        let mut names: HashMap<String, String> = HashMap::new();
        let mut intern = |environment: &mut Environment<'static>, text: &str| {
            let next = format!("t{}", names.len());
            let name = names.entry(text.to_owned()).or_insert(next).clone();
            environment
                .add_template_owned(name.clone(), text.to_owned())
                .expect("parses");
            name
        };
        let mut agents = Vec::new();
        for (id, _) in compiler.agents() {
            let (plan, resolved) = (
                compiler.plan(*id).expect("usable"),
                compiler.resolve(*id).expect("usable"),
            );
            let mut texts = Vec::new();
            collect(resolved.body().expect("there"), &mut texts);
            let chosen = compiler
                .contexts()
                .iter()
                .filter(|ready| is_chosen(&ready.context.name));
            let fitting = chosen.filter(|ready| ready.context.kind() == plan.kind);
            agents.push(Agent {
                folder: reqc::profile::slug(plan.name()),
                prompt: resolved
                    .string("system_prompt")
                    .map(|prompt| intern(&mut environment, prompt.value)),
                templates: texts
                    .iter()
                    .map(|text| intern(&mut environment, text))
                    .collect(),
                contexts: fitting
                    .map(|ready| ready.context.name.to_string())
                    .collect(),
            });
        }
        let contexts = compiler.contexts().iter().map(|ready| {
            let context = &ready.context;
            let data = Value::from(minijinja::value::Serde(
                context.conversation.template_data(),
            ));
            (
                context.name.to_string(),
                (
                    data,
                    context.language.to_string(),
                    context.project.name.to_string(),
                ),
            )
        });
        Floor {
            environment,
            agents,
            contexts: contexts.collect(),
        }
    }

    pub(crate) fn run(&self, disk: &(dyn Output + Sync)) {
        self.agents.par_iter().for_each(|agent| {
            for name in &agent.contexts {
                let (data, language, project) = &self.contexts[name];
                let prompt = agent.prompt.as_ref().map(|prompt| {
                    let scope = minijinja::context! { language, project_name => project };
                    self.environment
                        .get_template(prompt)
                        .expect("there")
                        .render(scope)
                        .expect("renders")
                });
                let ctx = minijinja::context! { system_prompt => prompt, ..data.clone() };
                let mut body = serde_json::Map::new();
                for template in &agent.templates {
                    let text = self
                        .environment
                        .get_template(template)
                        .expect("there")
                        .render(minijinja::context! { ctx => &ctx })
                        .expect("renders");
                    let text = blank(text);
                    if !text.trim().is_empty() {
                        body.insert(
                            template.clone(),
                            serde_json::from_str(&text).expect("is JSON"),
                        );
                    }
                }
                black_box(serde_json::to_string_pretty(&body).expect("serialises"));
                black_box(
                    disk.current(&format!("golden/{}/{name}.json", agent.folder))
                        .expect("reads"),
                );
            }
        });
    }
}

fn collect(table: &MergedTable<'_>, texts: &mut Vec<String>) {
    for (_, merged) in table.iter() {
        match merged.table() {
            Some(inner) => collect(inner, texts),
            None => collect_node(merged.node, texts),
        }
    }
}

fn collect_node(node: &Node, texts: &mut Vec<String>) {
    match &node.kind {
        Kind::String(text) if reqc::render::is_template(text) => texts.push(text.clone()),
        Kind::Array(elements) => elements
            .iter()
            .for_each(|element| collect_node(element, texts)),
        _ => {}
    }
}

/// Replaces trailing commas with spaces, because the templates' output is not JSON otherwise. This
/// is the shortest way to do so.
fn blank(text: String) -> String {
    let mut bytes = text.into_bytes();
    let (mut in_string, mut escaped, mut comma) = (false, false, None);
    for at in 0..bytes.len() {
        match bytes[at] {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => (in_string, comma) = (!in_string, None),
            _ if in_string => {}
            b',' => comma = Some(at),
            b'}' | b']' => {
                if let Some(at) = comma.take() {
                    bytes[at] = b' ';
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => comma = None,
        }
    }
    String::from_utf8(bytes).expect("ASCII for ASCII")
}

fn environment(bundled: &dyn World) -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    let tojson = |value: Value| serde_json::to_string(&value).expect("serialises");
    environment.add_function("tojson", tojson);
    environment.add_filter("tojson", tojson);
    environment.add_function("tool_id", |id: Value| id);
    environment.add_function("length", |value: Value| value.len());
    environment.add_function("existsIn", |value: Value, key: String| {
        value.get_attr(&key).map(|it| !it.is_undefined())
    });
    environment.add_function("filter_by_type", |list: Value, kind: String| {
        let keep = |element: &Value| {
            element
                .get_attr("type")
                .is_ok_and(|found| found.as_str() == Some(&kind))
        };
        list.try_iter()
            .map(|elements| elements.filter(keep).collect::<Vec<Value>>())
    });
    environment.add_function("lower", |text: String| text.to_lowercase());
    environment.add_function("upper", |text: String| text.to_uppercase());
    environment.add_function("file_exists", |_: String| false);
    environment.add_function("read_file", |_: String| String::new());
    let roles = bundled.walk("roles").entries.into_iter().map(|entry| {
        let text = String::from_utf8(bundled.read(&entry.path).expect("reads")).expect("UTF-8");
        (entry.path, Value::from(text))
    });
    let roles: Arc<HashMap<String, Value>> = Arc::new(roles.collect());
    environment.add_function("agent_role", move |id: String| {
        roles[&format!("roles/{id}.md")].clone()
    });
    environment
}
