//! From one request of a conversation to the next, text is only added at the end. The bundled
//! agents keep this rule, and each violation is reported at the line that causes it.

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
const VOLATILE: &str = "cache/volatile";

fn load(world: Arc<dyn World>) -> Compiler {
    Compiler::load(world, Arc::new(Embedded::bundled()), LoadOptions::default())
}

fn of_prefixes(findings: Vec<Diagnostic>) -> Vec<Diagnostic> {
    findings
        .into_iter()
        .filter(|finding| [THINKING, UNSTABLE, VOLATILE].contains(&finding.rule.code))
        .collect()
}

#[test]
fn the_bundled_agents_only_add() {
    let compiler = load(Arc::new(
        Disk::open(Path::new(env!("CARGO_MANIFEST_DIR"))).expect("the repository"),
    ));
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

/// An agent that changes a part of what it sent before.
struct Planted {
    name: &'static str,
    /// The agent's file, which extends a base of its provider.
    agent: String,
    rule: &'static str,
    /// The prefix of the pointer that is reported.
    pointer: &'static str,
    /// Text in the reported line, or in one of its related lines.
    line: &'static str,
}

const CLAUDE: &str = "name = 'P'\nprovider_instance = 'Claude'\nendpoint = 'v1/messages'\nmodel = 'claude-opus-5-5'\n";
const SYSTEM: &str =
    "system = '{% if ctx.system_prompt is defined %}{{ tojson(ctx.system_prompt) }}{% endif %}'\n";

/// Returns a Claude agent with a system prompt and the bundled messages.
fn claude_system(prompt: &str, body: &str) -> String {
    let messages = "messages = '[{% include \"partials/anthropic/messages.jinja\" %}]'";
    format!(
        "{CLAUDE}system_prompt = '''\n{prompt}'''\n[body]\nmax_tokens = 1000\n{messages}\n{SYSTEM}{body}"
    )
}

/// Returns a Claude agent with its own template for messages. `before` and `after` are written
/// around the blocks of each message.
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
    let plant = |name, agent, rule, pointer, line| Planted {
        name,
        agent,
        rule,
        pointer,
        line,
    };
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
            "how many calls there were, in the first message",
            claude_messages(
                &format!(
                    "{{% set n = namespace(calls=0) %}}{{% for message in ctx.history %}}\
                     {{% set n.calls = n.calls + (filter_by_type(message.content_blocks, \"tool_use\") | length) %}}{{% endfor %}}{EACH}"
                ),
                "",
                &format!("{{% if loop.first %}}{}{{% endif %}}", text("{{ tojson(\"calls: \" ~ n.calls) }}")),
            ),
            THINKING,
            "/messages/0/content/1/text",
            "n.calls) }}",
        ),
        plant(
            "how much room is left",
            claude_messages(
                EACH,
                "",
                &text("{{ tojson(\"left: \" ~ (1000 - (ctx.history | map(attribute=\"content\") | join(\"\") | length))) }}"),
            ),
            THINKING,
            "/messages/0/content/1/text",
            "left: ",
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

/// Returns the messages of a chat as text, in OpenAI's format or a similar one, with a template for
/// the content.
fn plain(head: &str, content: &str) -> String {
    format!(
        "[body]\nmessages = '''[{head}{{% for message in ctx.history %}}\
         {{\"role\": {{{{ tojson(\"assistant\" if message.role == \"assistant\" else \"user\") }}}}, \"content\":\n{{{{ tojson({content}) }}}}}},\
         {{% endfor %}}]'''\n"
    )
}

/// Returns the messages of an agent with tools, with a template for the text of a result. In it,
/// `n.at` and `n.all` count results, and `messages` counts messages.
fn results(base: &str, provider: &str, id: &str, content: &str) -> String {
    let assistant = format!("{{% include \"partials/{provider}/assistant.jinja\" %}}");
    extending(
        base,
        &format!(
            "[body]\nmessages = '''[{{% set n = namespace(all=0, at=0) %}}{{% set messages = ctx.history | length %}}\
             {{% for message in ctx.history %}}{{% set n.all = n.all + (filter_by_type(message.content_blocks, \"tool_result\") | length) %}}{{% endfor %}}\
             {{% for message in ctx.history %}}{{% set index = loop.index0 %}}{{% if message.role == \"assistant\" %}}{assistant}{{% else %}}\
             {{% for block in message.content_blocks %}}{{% if block.type == \"tool_result\" %}}{{% set n.at = n.at + 1 %}}\
             {{\"role\": \"tool\", {id}, \"content\":\n{{{{ tojson({content}) }}}}}},{{% endif %}}{{% endfor %}}\
             {{% if message.content %}}{{\"role\": \"user\", \"content\": {{{{ tojson(message.content) }}}}}},{{% endif %}}{{% endif %}}{{% endfor %}}]'''\n"
        ),
    )
}

const OLLAMA_ID: &str = "\"tool_name\": {{ tojson(block.name) }}";
const CALL_ID: &str = "\"tool_call_id\": {{ tojson(tool_id(block.tool_use_id)) }}";

/// Returns the messages of a Responses agent. `image` writes the members after an image's address.
fn responses(image: &str) -> String {
    extending(
        "OpenAI Responses Chat",
        &format!(
            "[body]\ninput = '''[{{% for message in ctx.history %}}{{% set is_last = loop.last %}}\
             {{\"role\": {{{{ tojson(\"assistant\" if message.role == \"assistant\" else \"user\") }}}}, \"content\": [{{% for block in message.content_blocks %}}\
             {{% if block.type == \"image\" %}}{{\"type\": \"input_image\", \"image_url\": {{{{ tojson(block.data) }}}},\n{image}}},\
             {{% elif block.type == \"text\" %}}{{\"type\": {{{{ tojson(\"output_text\" if message.role == \"assistant\" else \"input_text\") }}}}, \"text\": {{{{ tojson(block.text) }}}}}},\
             {{% endif %}}{{% endfor %}}]}},{{% endfor %}}]'''\n"
        ),
    )
}

/// Returns agents of other formats, with other kinds of changes.
#[expect(clippy::too_many_lines, reason = "a table")]
fn planted_elsewhere() -> Vec<Planted> {
    let unstable = |name, agent, pointer, line| Planted {
        name,
        agent,
        rule: UNSTABLE,
        pointer,
        line,
    };
    let setting = |name, agent, pointer, line| Planted {
        name,
        agent,
        rule: VOLATILE,
        pointer,
        line,
    };
    vec![
        unstable(
            "results cut by their age, in calls before the last",
            results("Ollama Chat Tools", "ollama", OLLAMA_ID, "block.content if messages - index <= 8 else \"cut\""),
            "/messages/",
            "messages - index <= 8",
        ),
        unstable(
            "results cut by their age, far back",
            results("Ollama Chat Tools", "ollama", OLLAMA_ID, "block.content if messages - index <= 20 else \"cut\""),
            "/messages/",
            "messages - index <= 20",
        ),
        unstable(
            "only the last three results",
            results("OpenAI Chat Tools", "openai", CALL_ID, "block.content if n.all - n.at < 3 else \"cut\""),
            "/messages/",
            "n.all - n.at < 3",
        ),
        unstable(
            "only the last six results",
            results("OpenAI Compatible Chat Tools", "compatible", CALL_ID, "block.content if n.all - n.at < 6 else \"cut\""),
            "/messages/",
            "n.all - n.at < 6",
        ),
        unstable(
            "a window of twenty messages",
            extending("Mistral Chat", &plain("", "message.content or \"-\"").replace("in ctx.history", "in ctx.history[-20:]")),
            "/messages/",
            "message.content",
        ),
        unstable(
            "a summary of what was said before",
            extending(
                "Qwen Chat",
                &plain(
                    "{% if ctx.history | length > 6 %}{\"role\": \"user\", \"content\":\n{{ tojson(\"Before: \" ~ (ctx.history[:-4] | map(attribute=\"content\") | join(\" / \"))) }}},{% endif %}",
                    "message.content or \"-\"",
                )
                .replace("message in ctx.history %}", "message in ctx.history[-4:] %}"),
            ),
            "/messages/",
            "ctx.history[:-4]",
        ),
        unstable(
            "another template once there are many messages",
            extending(
                "Gemini Chat",
                "[body]\ncontents = '''[{% if ctx.history | length > 4 %}{\"role\": \"user\", \"parts\": [{\"text\":\n\"Go on.\"}]},{% endif %}{% include \"partials/google/contents.jinja\" %}]'''\n",
            ),
            "/contents/0",
            "Go on.",
        ),
        unstable(
            "old texts are cut",
            extending("LM Studio Chat", &plain("", "(message.content or \"-\") if loop.revindex <= 4 else (message.content or \"-\")[:20]")),
            "/messages/",
            "loop.revindex <= 4",
        ),
        unstable(
            "thoughts of the last answers alone",
            extending(
                "DeepSeek Chat",
                &plain("", "message.content or \"-\"").replace(
                    "{\"role\":",
                    "{% set is_new = loop.revindex < 3 %}{ {% for block in message.content_blocks if block.type == \"thinking\" and is_new %}\n\
                     \"reasoning_content\": {{ tojson(block.thinking) }},\n{% endfor %}\"role\":",
                ),
            ),
            "/messages/",
            "reasoning_content",
        ),
        unstable(
            "a reminder before the last message",
            extending("llama.cpp Chat", &plain("", "message.content or \"-\"").replace(
                "{\"role\":",
                "{% if loop.last %}\n{\"role\": \"user\", \"content\": \"Be brief.\"},\n{% endif %}{\"role\":",
            )),
            "/messages/",
            "Be brief.",
        ),
        unstable(
            "old images in less detail",
            responses("\"detail\": {{ tojson(\"high\" if is_last else \"low\") }}"),
            "/input/0/content/",
            "is_last",
        ),
        unstable(
            "the number of messages in a tool's description",
            extending(
                "OpenAI Responses Chat",
                "enable_tools = false\n[body]\ntools = '''[{\"type\": \"function\", \"name\": \"now\", \"strict\": false, \"parameters\": {\"type\": \"object\", \"properties\": {}}, \"description\":\n{{ tojson(\"Message \" ~ (ctx.history | length)) }}}]'''\n",
            ),
            "/tools/0/description",
            "ctx.history | length",
        ),
        unstable(
            "a tool by who spoke last",
            extending(
                "Mistral Chat",
                "enable_tools = false\n[body]\ntools = '''[{% if (ctx.history | last).role == \"user\" %}\n{\"type\": \"function\", \"function\": {\"name\": \"now\", \"parameters\": {\"type\": \"object\", \"properties\": {}}}}{% endif %}]'''\n",
            ),
            "/tools/0",
            "\"name\": \"now\"",
        ),
        setting(
            "the order of tools by the length of the conversation",
            claude_system(
                "One.",
                "tools = '''[{% for name in ([\"a\", \"b\"] | reverse if ctx.history | length > 2 else [\"a\", \"b\"]) %}\n{\"name\": {{ tojson(name) }}, \"input_schema\": {\"type\": \"object\"}, \"cache_control\": {\"type\": \"ephemeral\"}},{% endfor %}]'''\n",
            )
            .replace("opus-5-5", "opus-4-5"),
            "/tools/0/name",
            "reverse if",
        ),
        setting(
            "thinking by the length of the conversation",
            extending(
                "Claude Chat Thinking",
                "[body]\nthinking = '''{\"type\":\n{{ tojson(\"adaptive\" if ctx.history | length < 4 else \"between_tools\") }}}'''\n",
            ),
            "/thinking/type",
            "between_tools",
        ),
        setting(
            "effort by the length of the conversation",
            extending(
                "Claude Chat Thinking",
                "[body]\noutput_config = '''{\"effort\":\n{{ tojson(\"low\" if ctx.history | length < 4 else \"high\") }}}'''\n",
            ),
            "/output_config/effort",
            "\"low\" if",
        ),
        setting(
            "a choice of tools that is gone later",
            extending(
                "Claude Chat Tools",
                "[body]\ntool_choice = '''{% if ctx.tools is defined and ctx.history | length < 4 %}\n{\"type\": \"auto\"}{% endif %}'''\n",
            ),
            "/tool_choice",
            "\"type\": \"auto\"",
        ),
        unstable(
            "a cache key that changes",
            extending("OpenAI Responses Chat", "[body]\nprompt_cache_key = '''\n{{ tojson(\"key\" ~ (ctx.history | length)) }}'''\n"),
            "/prompt_cache_key",
            "ctx.history | length",
        ),
        unstable(
            "the form of the answer asked for later",
            extending(
                "OpenAI Chat",
                "[body]\nresponse_format = '''{% if ctx.history | length > 2 %}\n{\"type\": \"json_object\"}{% endif %}'''\n",
            ),
            "/response_format",
            "json_object",
        ),
    ]
}

/// Returns agents that use the position of a message, but only add text at the end.
fn append_only() -> Vec<(&'static str, String)> {
    let breakpoint = "{% if loop.revindex <= 3 %}{\"type\": \"text\", \"text\": \".\", \"cache_control\": {\"type\": \"ephemeral\"}},\
                      {% else %}{\"type\": \"text\", \"text\": \".\"},{% endif %}";
    vec![
        (
            "numbers from the beginning",
            extending(
                "OpenAI Chat",
                &plain("", "\"#\" ~ loop.index ~ \" \" ~ message.content"),
            ),
        ),
        (
            "a word in every third message",
            extending(
                "Mistral Chat",
                &plain(
                    "",
                    "(message.content or \"-\") ~ (\" Third.\" if loop.index % 3 == 0 else \"\")",
                ),
            ),
        ),
        (
            "a mark on the first message",
            extending(
                "LM Studio Chat",
                &plain(
                    "",
                    "(\"First: \" if loop.first else \"\") ~ message.content",
                ),
            ),
        ),
        (
            "results that are always cut",
            results(
                "Ollama Chat Tools",
                "ollama",
                OLLAMA_ID,
                "block.content[:100]",
            ),
        ),
        (
            "results numbered from the first",
            results(
                "OpenAI Compatible Chat Tools",
                "compatible",
                CALL_ID,
                "n.at ~ \": \" ~ block.content",
            ),
        ),
        ("images in one size", responses("\"detail\": \"low\"")),
        (
            "a breakpoint that moves",
            claude_messages(EACH, "", breakpoint),
        ),
        (
            "a choice of tools where there are tools",
            extending(
                "Claude Chat Tools",
                "[body]\ntool_choice = '{% if ctx.tools is defined %}{\"type\": \"auto\"}{% endif %}'\n",
            ),
        ),
        (
            "thinking that depends on nothing",
            extending(
                "Claude Chat Thinking",
                "[body]\nthinking = '{\"type\": {{ tojson(\"adaptive\") }}}'\n",
            ),
        ),
        (
            "a line behind the conversation, in a format without breakpoints",
            extending(
                "Gemini Chat",
                "[body]\ncontents = '''[{% include \"partials/google/contents.jinja\" %}{% if (ctx.history | last).role == \"user\" %}{\"role\": \"user\", \"parts\": [{\"text\": \"Be brief.\"}]}{% endif %}]'''\n",
            ),
        ),
    ]
}

#[test]
fn what_only_adds_is_not_told() {
    let mut wrong = BTreeMap::new();
    for (name, agent) in append_only() {
        let world: MemoryWorld = [("agents/p.toml".to_owned(), agent)].into_iter().collect();
        let compiler = load(Arc::new(world));
        let run = compiler.run(&Selection::default(), |agent| agent.bodies.len());
        let found = of_prefixes(run.findings.into_vec());
        // An agent that compiles no bodies would have no findings either.
        if run.bodies < 20 || !found.is_empty() {
            let told = found.into_iter().map(|finding| finding.message);
            wrong.insert(name, (run.bodies, told.collect::<Vec<_>>()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Returns the source lines that a finding points to.
fn lines(compiler: &Compiler, finding: &Diagnostic) -> String {
    let labels = std::iter::once(&finding.primary).chain(&finding.related);
    let line = |span: reqc::source::Span| {
        let text = compiler.sources().get(span.file).text();
        let start = text[..span.start as usize]
            .rfind('\n')
            .map_or(0, |at| at + 1);
        let end = text[span.end as usize..]
            .find('\n')
            .map_or(text.len(), |at| span.end as usize + at);
        text[start..end].to_owned()
    };
    labels
        .map(|label| line(label.span))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn every_kind_of_change_is_found_at_the_line_that_makes_it() {
    let mut wrong = BTreeMap::new();
    let all: Vec<Planted> = planted().into_iter().chain(planted_elsewhere()).collect();
    assert!(all.len() >= 35);
    for it in all {
        let world: MemoryWorld = [("agents/p.toml".to_owned(), it.agent.clone())]
            .into_iter()
            .collect();
        let compiler = load(Arc::new(world));
        let loading: Vec<String> = compiler
            .findings()
            .iter()
            .map(|finding| finding.message.clone())
            .collect();
        let run = compiler.run(&Selection::default(), |_| ());
        let found = run.findings.into_vec();
        let is_it = |finding: &&Diagnostic| {
            finding.rule.code == it.rule
                && finding.message.starts_with(&format!("`{}", it.pointer))
                && lines(&compiler, finding).contains(it.line)
        };
        if !found.iter().any(|finding| is_it(&finding)) {
            let told = found.iter().map(|finding| {
                format!(
                    "{}: {}\n    {}",
                    finding.rule.code,
                    finding.message,
                    lines(&compiler, finding)
                )
            });
            wrong.insert(it.name, (loading, told.collect::<Vec<_>>()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
