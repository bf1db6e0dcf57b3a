//! Requests of one conversation only add to each other: the bundled agents' do, and every kind of change is found at the line that makes it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use reqc::compile::{Compiler, Selection};
use reqc::diag::Diagnostic;
use reqc::repo::LoadOptions;
use reqc::system::{Disk, Embedded};
use reqc::world::{MemoryWorld, World};

const THINKING: &str = "protocol/thinking-prefix";
const UNSTABLE: &str = "cache/unstable-prefix";

fn load(world: Arc<dyn World>) -> Compiler {
    Compiler::load(world, Arc::new(Embedded::bundled()), LoadOptions::default())
}

fn of_prefixes(findings: Vec<Diagnostic>) -> Vec<Diagnostic> {
    findings.into_iter().filter(|finding| [THINKING, UNSTABLE].contains(&finding.rule.code)).collect()
}

#[test]
fn the_bundled_agents_only_add() {
    let compiler = load(Arc::new(Disk::open(Path::new(env!("CARGO_MANIFEST_DIR"))).expect("the repository")));
    let run = compiler.run(&Selection::default(), |agent| agent.bodies.len());
    assert_eq!(of_prefixes(run.findings.into_vec()), []);
    assert!(run.bodies > 1000);
    let turns: Vec<&str> = compiler
        .contexts()
        .iter()
        .filter(|ready| !ready.context.earlier.is_empty())
        .map(|ready| &*ready.context.name)
        .collect();
    assert!(turns.len() >= 4, "{turns:?}");
}

/// A change that an agent makes to what it sent before.
struct Planted {
    name: &'static str,
    /// The agent, below a base of its provider.
    agent: String,
    rule: &'static str,
    /// The beginning of the place that differs.
    pointer: &'static str,
    /// What stands in the line that is named, or in one that led there.
    line: &'static str,
}

const CLAUDE: &str = "name = 'P'\nprovider_instance = 'Claude'\nendpoint = 'v1/messages'\nmodel = 'claude-opus-5-5'\n";
const SYSTEM: &str = "system = '{% if ctx.system_prompt is defined %}{{ tojson(ctx.system_prompt) }}{% endif %}'\n";

/// An agent of Claude's with a system prompt, and the bundled messages.
fn claude_system(prompt: &str, body: &str) -> String {
    let messages = "messages = '[{% include \"partials/anthropic/messages.jinja\" %}]'";
    format!("{CLAUDE}system_prompt = '''\n{prompt}'''\n[body]\nmax_tokens = 1000\n{messages}\n{SYSTEM}{body}")
}

/// An agent of Claude's that writes each message by itself; `blocks` are written before and after those of the message.
fn claude_messages(head: &str, before: &str, after: &str) -> String {
    format!(
        "{CLAUDE}[body]\nmax_tokens = 1000\nmessages = '''[\n{head}\n\
         {{\"role\": {{{{ tojson(\"assistant\" if message.role == \"assistant\" else \"user\") }}}}, \"content\": [\n{before}\n\
         {{% if message.role == \"assistant\" %}}{{% include \"partials/anthropic/assistant_blocks.jinja\" %}}\
         {{% else %}}{{% include \"partials/anthropic/user_blocks.jinja\" %}}{{% endif %}}\n{after}\n\
         ]}},\n{{% endfor %}}]'''\n"
    )
}

const EACH: &str = "{% for message in ctx.history %}";

fn extending(base: &str, rest: &str) -> String {
    format!("name = 'P'\nextends = '{base}'\n{rest}")
}

#[expect(clippy::too_many_lines, reason = "a table")]
fn planted() -> Vec<Planted> {
    let plant = |name, agent, rule, pointer, line| Planted { name, agent, rule, pointer, line };
    let text = |text: &str| format!("{{\"type\": \"text\", \"text\": {text}}},");
    vec![
        plant("language", claude_system("One.\nIt is {{ language }}.\n", ""), THINKING, "/system", "{{ language }}"),
        plant(
            "project file",
            claude_system("One.\n{{ read_file('${PROJECT_DIR}/AGENTS.md') if file_exists('${PROJECT_DIR}/AGENTS.md') }}\n", ""),
            THINKING,
            "/system",
            "AGENTS.md",
        ),
        plant("project name", claude_system("One.\nAt {{ project_name }}.\n", ""), THINKING, "/system", "{{ project_name }}"),
        plant(
            "listing of the project",
            claude_system("One.\n{{ read_dir('${PROJECT_DIR}') | join(', ') }}\n", ""),
            THINKING,
            "/system",
            "read_dir",
        ),
        plant(
            "attached files",
            claude_system("One.", "").replace(
                SYSTEM,
                "system = '''\n[{\"type\": \"text\", \"text\": \"One\"},\n{% if ctx.files_metadata is defined %}{\"type\": \"text\", \"text\": {{ tojson(ctx.files_metadata[0].content) }}}{% endif %}]'''\n",
            ),
            THINKING,
            "/system/1",
            "ctx.files_metadata[0].content",
        ),
        plant(
            "number of messages in the system prompt",
            claude_system("One.", "").replace(SYSTEM, "system = '''\n{{ tojson(\"Of \" ~ (ctx.history | length)) }}'''\n"),
            THINKING,
            "/system",
            "ctx.history | length)",
        ),
        plant(
            "tools by the length of the conversation",
            claude_system(
                "One.",
                "tools = '''[{\"name\": \"a\", \"input_schema\": {\"type\": \"object\"}},\n{% if ctx.history | length > 2 %}\
                 {\"name\": \"b\", \"input_schema\": {\"type\": \"object\"}}{% endif %}]'''\n",
            ),
            THINKING,
            "/tools/1",
            "\"name\": \"b\"",
        ),
        plant(
            "a reminder in the last message",
            claude_messages(EACH, "", &format!("{{% if loop.last %}}{}{{% endif %}}", text("\"Be brief.\""))),
            THINKING,
            "/messages/0/content/1",
            "Be brief.",
        ),
        plant(
            "a note on messages that are not the last",
            claude_messages(EACH, &format!("{{% if not loop.last %}}{}{{% endif %}}", text("\"Old.\"")), ""),
            THINKING,
            "/messages/0/content/0",
            "Old.",
        ),
        plant(
            "numbers from the end",
            claude_messages(EACH, &text("{{ tojson(loop.revindex ~ \" to go\") }}"), ""),
            THINKING,
            "/messages/0/content/0/text",
            "loop.revindex",
        ),
        plant(
            "only the last messages",
            claude_messages("{% for message in ctx.history[-3:] %}", "", ""),
            THINKING,
            "/messages/0",
            "",
        ),
        plant(
            "thinking of the last answer alone",
            claude_system("One.", "").replace(
                "messages = '[{% include \"partials/anthropic/messages.jinja\" %}]'",
                "messages = '''[{% for message in ctx.history %}{\"role\": {{ tojson(message.role) }}, \"content\": [\n\
                 {% for block in message.content_blocks %}\n\
                 {% if block.type == \"thinking\" and loop.index == 1 and message == (ctx.history | selectattr(\"role\", \"eq\", \"assistant\") | list | last) %}\n\
                 {\"type\": \"thinking\", \"thinking\": {{ tojson(block.thinking) }}, \"signature\": {{ tojson(block.signature) }}},\n\
                 {% elif block.type == \"text\" %}{\"type\": \"text\", \"text\": {{ tojson(block.text) }}},{% endif %}\n\
                 {% endfor %}]},{% endfor %}]'''",
            ),
            THINKING,
            "/messages/",
            "",
        ),
        plant(
            "old results are cut",
            extending(
                "Claude Chat Thinking",
                "[body]\nmessages = '''[{% for message in ctx.history %}{\"role\": {{ tojson(\"assistant\" if message.role == \"assistant\" else \"user\") }}, \"content\": [\n\
                 {% if message.role == \"assistant\" %}{% include \"partials/anthropic/assistant_blocks.jinja\" %}{% else %}\n\
                 {% for block in message.content_blocks %}{% if block.type == \"tool_result\" %}\n\
                 {\"type\": \"tool_result\", \"tool_use_id\": {{ tojson(block.tool_use_id) }}, \"content\": {{ tojson(block.content if loop.last and message == (ctx.history | last) else \"cut\") }}},\n\
                 {% elif block.type == \"text\" %}{\"type\": \"text\", \"text\": {{ tojson(block.text) }}},{% endif %}{% endfor %}\n\
                 {% endif %}]},{% endfor %}]'''\n",
            ),
            THINKING,
            "/messages/",
            "else \"cut\"",
        ),
        plant(
            "the last message as a string",
            extending(
                "OpenAI Chat",
                "[body]\nmessages = '''[{% for message in ctx.history %}{\"role\": {{ tojson(\"assistant\" if message.role == \"assistant\" else \"user\") }}, \"content\":\n\
                 {% if loop.last %}{{ tojson(message.content) }}{% else %}\n[{\"type\": \"text\", \"text\": {{ tojson(message.content) }}}]{% endif %}},{% endfor %}]'''\n",
            ),
            UNSTABLE,
            "/messages/",
            "\"type\": \"text\"",
        ),
        plant(
            "a clock that is a counter",
            extending("Gemini Chat", "[body]\nsystemInstruction = '''{\"parts\": [{\"text\":\n\"Turn {{ ctx.history | length }}\"}]}'''\n"),
            UNSTABLE,
            "/systemInstruction",
            "Turn {{",
        ),
        plant(
            "language in instructions",
            extending("OpenAI Responses Chat", "system_prompt = '''\nOne.\n{{ language }}'''\n"),
            UNSTABLE,
            "/instructions",
            "{{ language }}",
        ),
        plant(
            "language in a developer message",
            extending("OpenAI Chat", "system_prompt = '''\nOne.\n{{ language }}'''\n"),
            UNSTABLE,
            "/messages/0/content",
            "{{ language }}",
        ),
        plant(
            "language for a server that keeps prefixes itself",
            extending("llama.cpp Chat", "system_prompt = '''\nOne.\n{{ language }}'''\n"),
            UNSTABLE,
            "/messages/0/content",
            "{{ language }}",
        ),
        plant(
            "older models of Claude's are not bound",
            claude_system("One.\nIt is {{ language }}.\n", "").replace("opus-5-5", "opus-4-5"),
            UNSTABLE,
            "/system",
            "{{ language }}",
        ),
        plant(
            "the newest message first",
            claude_messages("{% for message in ctx.history | reverse %}", "", ""),
            THINKING,
            "/messages/0",
            "",
        ),
    ]
}

/// The lines of a finding's places.
fn lines(compiler: &Compiler, finding: &Diagnostic) -> String {
    let labels = std::iter::once(&finding.primary).chain(&finding.related);
    let line = |span: reqc::source::Span| {
        let text = compiler.sources().get(span.file).text();
        let start = text[..span.start as usize].rfind('\n').map_or(0, |at| at + 1);
        let end = text[span.end as usize..].find('\n').map_or(text.len(), |at| span.end as usize + at);
        text[start..end].to_owned()
    };
    labels.map(|label| line(label.span)).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_kind_of_change_is_found_at_the_line_that_makes_it() {
    let mut wrong = BTreeMap::new();
    let all = planted();
    assert!(all.len() >= 15);
    for it in all {
        let world: MemoryWorld = [("agents/p.toml".to_owned(), it.agent.clone())].into_iter().collect();
        let compiler = load(Arc::new(world));
        let loading: Vec<String> = compiler.findings().iter().map(|finding| finding.message.clone()).collect();
        let run = compiler.run(&Selection::default(), |_| ());
        let found = run.findings.into_vec();
        let is_it = |finding: &&Diagnostic| {
            finding.rule.code == it.rule
                && finding.message.contains(&format!("grows, `{}", it.pointer))
                && lines(&compiler, finding).contains(it.line)
        };
        if !found.iter().any(|finding| is_it(&finding)) {
            let told = found.iter().map(|finding| {
                format!("{}: {}\n    {}", finding.rule.code, finding.message, lines(&compiler, finding))
            });
            wrong.insert(it.name, (loading, told.collect::<Vec<_>>()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
