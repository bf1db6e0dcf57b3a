//! Tools of MCP servers, started as programs or reached at URLs, that behave well or badly.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reqc::repo::read_tools;
use reqc::runtime::tools::ServerSpec;
use reqc::runtime::tools::{McpServer, ToolContext, ToolOutput, ToolSet};
use reqc::runtime::{Error, Event, Outcome, StopReason, Transport};
use reqc::source::Sources;
use reqc::system::{Disk, OpenedTools, SystemProcesses, SystemSecrets};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::fixture::{KEY, STATE, history, transport};
use crate::program;
use crate::send::repository;
use crate::server::{Act, Received, Server, calls, says, status, stream_head};

/// A server as a shell script, with a function for each method. `$id` is the ID of the request.
const SCRIPT: &str = r#"#!/bin/sh
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
fail() { printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"%s"}}\n' "$id" "$1"; }
begin() { :; }
hello() { answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}'; }
tools() { answer '{"tools":[{"name":"echo","description":"Says it again.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}]}'; }
call() { answer '{"content":[{"type":"text","text":"called"}]}'; }
other() { :; }
OVERRIDES
begin
while IFS= read -r line; do
  printf '%s\n' "$line" >> received
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
    *'"method":"initialize"'*) hello;;
    *'"method":"tools/list"'*) tools;;
    *'"method":"tools/call"'*) call;;
    *) other;;
  esac
done
echo end >> received
"#;

/// A folder with a server that overrides some functions, and a `tools.toml` that names it.
fn scene(overrides: &str, more: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), overrides, more);
    folder
}

fn write(folder: &Path, overrides: &str, more: &str) {
    let script = folder.join("server");
    std::fs::write(&script, SCRIPT.replace("OVERRIDES", overrides)).expect("written");
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).expect("ours");
    let limit = if more.contains("timeout_seconds") {
        ""
    } else {
        "timeout_seconds = 5\n"
    };
    let toml = format!(
        "[[server]]\nname = \"s\"\ncommand = [\"./server\"]\nenv = [\"PATH\"]\nstartup_timeout_seconds = 5\n{limit}{more}\n"
    );
    std::fs::write(folder.join("tools.toml"), toml).expect("written");
}

fn spec(folder: &Path) -> ServerSpec {
    let world = Disk::open(folder).expect("it is there");
    let (mut file, findings) = read_tools(&world, "tools.toml", &mut Sources::default());
    assert_eq!(findings, []);
    file.servers.remove(0)
}

async fn start_with(folder: &Path, transport: &Transport) -> Result<McpServer, Error> {
    let processes = SystemProcesses::new(folder).expect("a folder");
    McpServer::start(&spec(folder), &processes, transport).await
}

async fn start(folder: &Path) -> Result<McpServer, Error> {
    start_with(folder, &transport()).await
}

fn tools(server: &McpServer) -> ToolSet {
    let mut set = ToolSet::new();
    server.add_to(&mut set);
    set
}

async fn call(
    set: &ToolSet,
    name: &str,
    input: Value,
    cancelled: &CancellationToken,
) -> ToolOutput {
    let context = ToolContext::new("1".into(), cancelled.clone(), mpsc::channel(1).0);
    set.get(name)
        .expect("it is offered")
        .call(input, context)
        .await
}

/// Calls the server's only tool and returns the result.
async fn called(overrides: &str, more: &str) -> (bool, String) {
    let folder = scene(overrides, more);
    let server = start(folder.path()).await.expect("it starts");
    let output = call(
        &tools(&server),
        "s__echo",
        json!({"text": "x"}),
        &CancellationToken::new(),
    )
    .await;
    server.close().await;
    (output.is_error, output.content.to_string())
}

/// Returns why a server cannot be used.
async fn refused(overrides: &str, more: &str) -> String {
    let folder = scene(overrides, more);
    start(folder.path())
        .await
        .expect_err("it cannot be used")
        .to_string()
}

fn received(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("received")).unwrap_or_default();
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

#[tokio::test]
async fn tools_are_offered_and_called() {
    let folder = scene("", "");
    let server = start(folder.path()).await.expect("it starts");
    let set = tools(&server);
    let definition = &set.definitions()[0];
    assert_eq!(
        (&*definition.name, &*definition.description),
        ("s__echo", "Says it again.")
    );
    assert_eq!(definition.schema["properties"]["text"]["type"], "string");
    let output = call(
        &set,
        "s__echo",
        json!({"text": "hi"}),
        &CancellationToken::new(),
    )
    .await;
    assert_eq!(output, ToolOutput::text("called"));
    server.close().await;
    let methods: Vec<Value> = received(folder.path())
        .iter()
        .map(|it| it["method"].clone())
        .collect();
    assert_eq!(
        methods,
        [
            "initialize",
            "notifications/initialized",
            "tools/list",
            "tools/call"
        ]
    );
    let last = &received(folder.path())[3]["params"];
    assert_eq!(
        (&last["name"], &last["arguments"]),
        (&json!("echo"), &json!({"text": "hi"}))
    );
    // The server was told to end, and ended.
    assert!(
        std::fs::read_to_string(folder.path().join("received"))
            .expect("written")
            .ends_with("end\n")
    );
}

#[tokio::test]
async fn a_host_starts_all_tools_of_a_file_with_one_call() {
    let program = "[[tool]]\nname = \"list\"\ndescription = \"Lists.\"\ncommand = [\"ls\"]\nenv = [\"PATH\"]\n";
    let folder = scene("", program);
    let answers = vec![
        calls(&[("c1", "s__echo", r#"{"text":"x"}"#), ("c2", "list", "{}")]),
        says("Done."),
    ];
    let server = Server::answering(answers).await;
    let repository = crate::library::repository(folder.path(), &server, &[]);
    let opened = OpenedTools::open(folder.path().join("tools.toml")).expect("it is there");
    let grants = opened
        .grants(&repository.root, &SystemSecrets::new(&repository.root))
        .expect("programs");
    assert_eq!(grants.len(), 2);

    let session = repository.session("Helper").expect("a session");
    let tools = repository
        .start_tools(&repository.transport())
        .await
        .expect("they start");
    assert_eq!(tools.set.names().collect::<Vec<_>>(), ["list", "s__echo"]);
    assert_eq!(tools.warnings().count(), 0);
    session.set_tools(tools.set.clone());
    assert_eq!(session.send("Go").text().await.expect("an answer"), "Done.");
    assert!(
        history(&session)[2].starts_with("user: result #c1: called | result #c2: agents\n"),
        "{:?}",
        history(&session)
    );
    tools.close().await;
    assert!(
        std::fs::read_to_string(folder.path().join("received"))
            .expect("written")
            .ends_with("end\n")
    );
}

#[tokio::test]
async fn lists_have_pages_and_names_of_all_kinds() {
    let long = "l".repeat(100);
    let pages = format!(
        r#"tools() {{ case $line in
  *cursor*) answer '{{"tools":[{{"name":"a_b","inputSchema":{{}}}},{{"name":"{long}","inputSchema":{{"type":"object"}}}},{{"name":"odd","inputSchema":{{"type":"string"}}}},{{"name":"a.b","inputSchema":{{}}}}]}}';;
  *) answer '{{"tools":[{{"name":"a.b","title":"Title","inputSchema":{{"type":"object","$schema":"x"}}}}],"nextCursor":"2"}}';;
esac; }}"#
    );
    let folder = scene(&pages, "");
    let server = start(folder.path()).await.expect("it starts");
    let set = tools(&server);
    let names: Vec<&str> = set.names().collect();
    assert_eq!(names[0], "s__a_b");
    assert!(
        names[1].starts_with("s__a_b_") && names[2].starts_with("s__llll") && names[2].len() == 64,
        "{names:?}"
    );
    assert_eq!(
        (
            &*set.definitions()[0].description,
            &set.definitions()[0].schema["$schema"]
        ),
        ("Title", &json!("x"))
    );
    assert_eq!(
        set.definitions()[1].schema,
        *json!({"type": "object", "properties": {}})
            .as_object()
            .expect("one")
    );
    let warnings = server.warnings().join("\n");
    assert!(
        warnings.contains("`odd` whose input schema is not of the type `object`")
            && warnings.contains("lists `a.b` twice"),
        "{warnings}"
    );
    call(&set, names[1], json!({}), &CancellationToken::new()).await;
    server.close().await;
    assert_eq!(
        received(folder.path()).last().expect("a call")["params"]["name"],
        "a_b"
    );
}

#[tokio::test]
async fn only_tools_that_are_listed_are_offered() {
    let two = r#"tools() { answer '{"tools":[{"name":"one","inputSchema":{}},{"name":"two","inputSchema":{}}]}'; }"#;
    let folder = scene(two, "tools = [\"two\", \"thre\", \"tow\"]");
    let server = start(folder.path()).await.expect("it starts");
    assert_eq!(tools(&server).names().collect::<Vec<_>>(), ["s__two"]);
    let warnings = server.warnings().join("\n");
    assert!(
        warnings.contains("has no tool `thre`") && warnings.contains("did you mean `two`"),
        "{warnings}"
    );
}

#[tokio::test]
async fn results_of_every_kind_are_told() {
    let error = r#"call() { answer '{"content":[{"type":"text","text":"no such file"}],"isError":true}'; }"#;
    assert_eq!(called(error, "").await, (true, "no such file".to_owned()));
    let structured = r#"call() { answer '{"content":[],"structuredContent":{"a":1}}'; }"#;
    assert_eq!(
        called(structured, "").await,
        (false, r#"{"a":1}"#.to_owned())
    );
    let refusal = called("call() { fail 'no argument `x`'; }", "").await;
    assert_eq!(
        refusal,
        (true, "the call was refused: no argument `x`".to_owned())
    );
    let odd = called(
        r#"call() { answer '{"content":[{"type":"hologram"}]}'; }"#,
        "",
    )
    .await;
    assert_eq!(
        odd,
        (
            true,
            "the MCP server `s` failed: its answer is not a tool result".to_owned()
        )
    );
    let long = called(
        r#"call() { answer '{"content":[{"type":"text","text":"0123456789"}]}'; }"#,
        "max_output_bytes = 4",
    )
    .await;
    assert_eq!(
        long,
        (
            true,
            "the tool returned more than 4 bytes; the result began with:\n0123".to_owned()
        )
    );
}

#[tokio::test]
async fn a_server_that_does_not_start_says_why() {
    let begins = |what: &str| format!("begin() {{ {what}; }}");
    let ends = refused(&begins("echo 'no licence' >&2; exit 3"), "").await;
    assert!(
        ends.starts_with("tool: the MCP server `s` cannot be used: it ended with exit status 3"),
        "{ends}"
    );
    assert!(ends.contains("no licence"), "{ends}");
    assert!(
        refused(&begins("exec 1>&-; sleep 5"), "")
            .await
            .contains("it closed the connection")
    );
    let asks = refused("hello() { fail 'not today'; }", "").await;
    assert!(
        asks.contains("it rejected the initialization: not today"),
        "{asks}"
    );
    let odd = refused(r#"hello() { answer '{"a":1}'; }"#, "").await;
    assert!(odd.contains("it does not speak MCP"), "{odd}");
    let missing = scene("", "");
    std::fs::remove_file(missing.path().join("server")).expect("it was there");
    let missing = start(missing.path())
        .await
        .expect_err("nothing is there")
        .to_string();
    assert!(
        missing.contains("there is no program `./server`"),
        "{missing}"
    );
    let lists = refused("tools() { fail 'what?'; }", "").await;
    assert!(
        lists.contains("it did not list its tools: what?"),
        "{lists}"
    );
}

#[tokio::test]
async fn a_server_that_hangs_or_floods_is_given_up() {
    let began = Instant::now();
    let silent = refused("hello() { :; }", "").await;
    assert!(
        silent.contains("it was not ready after 5 seconds"),
        "{silent}"
    );
    let noisy = refused("begin() { echo Starting up; }\nhello() { :; }", "").await;
    assert!(
        noisy.contains("it wrote `Starting up` to standard output, which is reserved for messages"),
        "{noisy}"
    );
    let flood = refused("begin() { yes; }", "").await;
    assert!(
        flood.contains("more than 1 MiB of output other than messages to standard output"),
        "{flood}"
    );
    let huge = "hello() { printf '{\"a\":\"'; head -c 20000000 /dev/zero | tr '\\0' x; sleep 5; }";
    let huge = refused(huge, "").await;
    assert!(
        huge.contains("it wrote a message of more than 16 MiB"),
        "{huge}"
    );
    let pages = refused(
        r#"tools() { answer '{"tools":[],"nextCursor":"again"}'; }"#,
        "",
    )
    .await;
    assert!(pages.contains("on more than 100 pages"), "{pages}");
    assert!(
        began.elapsed() < Duration::from_secs(25),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn noise_and_strange_messages_are_passed_over() {
    let noise = "begin() { echo Ready; }\n\
        tools() { printf 'x\\n{}\\n[]\\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\\n'\n\
        printf '{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"sampling/createMessage\",\"params\":{\"messages\":[],\"maxTokens\":1}}\\n'\n\
        answer '{\"tools\":[{\"name\":\"echo\",\"inputSchema\":{}}]}'; }";
    assert_eq!(called(noise, "").await, (false, "called".to_owned()));
}

#[tokio::test]
async fn a_server_that_dies_or_is_slow_fails_the_call_alone() {
    let dies = called("call() { echo 'out of memory' >&2; exit 1; }", "").await;
    assert_eq!(
        dies,
        (
            true,
            "the MCP server `s` failed: the connection is closed:\nout of memory".to_owned()
        )
    );
    let began = Instant::now();
    let slow = called("call() { :; }", "timeout_seconds = 1").await;
    assert_eq!(
        slow,
        (true, "the tool did not answer within 1 second".to_owned())
    );
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn cancelling_tells_the_server() {
    let folder = scene("call() { :; }", "");
    let server = start(folder.path()).await.expect("it starts");
    let (set, cancelled) = (tools(&server), CancellationToken::new());
    let later = cancelled.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(200)).await;
        later.cancel();
    });
    let output = call(&set, "s__echo", json!({}), &cancelled).await;
    assert_eq!(output, ToolOutput::error("the tool was cancelled"));
    for _ in 0..200 {
        let all = received(folder.path());
        if all
            .last()
            .is_some_and(|last| last["method"] == "notifications/cancelled")
        {
            assert_eq!(
                all[all.len() - 1]["params"]["requestId"],
                all[all.len() - 2]["id"]
            );
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{:?}", received(folder.path()));
}

/// A server at a URL that answers each method in JSON, and calls as a stream.
fn answers(request: &Received, call: &Value) -> Vec<Act> {
    if request.method != "POST" {
        return status(405, &[], "");
    }
    let message = request.json();
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => {
            json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "h", "version": "1"}})
        }
        "tools/list" => {
            json!({"tools": [{"name": "echo", "description": format!("Knows {KEY}."), "inputSchema": {"type": "object"}}]})
        }
        "tools/call" => {
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": call});
            return vec![
                stream_head(),
                Act::Bytes(format!("event: message\ndata: {answer}\n\n").into_bytes()),
            ];
        }
        _ => return status(202, &[], ""),
    };
    let session = [("mcp-session-id", "s-1")];
    status(
        200,
        &session,
        &json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string(),
    )
}

async fn http(
    script: impl Fn(usize, &Received) -> Vec<Act> + Send + Sync + 'static,
    more: &str,
) -> (Server, TempDir) {
    let server = Server::start(script).await;
    let folder = tempfile::tempdir().expect("a folder");
    let toml = format!(
        "[[server]]\nname = \"h\"\nurl = \"{}/mcp\"\nstartup_timeout_seconds = 3\ntimeout_seconds = 3\n{more}\n",
        server.url
    );
    std::fs::write(folder.path().join("tools.toml"), toml).expect("written");
    (server, folder)
}

#[tokio::test]
async fn a_server_at_a_url_gets_its_key_and_headers() {
    let said = json!({"content": [{"type": "text", "text": "from afar"}]});
    let more = "headers = { x-team = \"a\" }\napi_key_ref = \"env:K\"";
    let (seen, folder) = http(move |_, request| answers(request, &said), more).await;
    let server = start(folder.path()).await.expect("it answers");
    let set = tools(&server);
    assert_eq!(&*set.definitions()[0].description, "Knows [key].");
    let output = call(&set, "h__echo", json!({"a": 1}), &CancellationToken::new()).await;
    assert_eq!(output, ToolOutput::text("from afar"));
    server.close().await;
    for request in seen.received().iter().filter(|it| it.method == "POST") {
        assert_eq!(
            request.header("authorization"),
            Some(format!("Bearer {KEY}").as_str())
        );
        assert_eq!(
            (request.header("x-team"), request.target.as_str()),
            (Some("a"), "/mcp")
        );
    }
    let bare = "api_key_ref = \"env:K\"\napi_key_header = \"x-api-key\"";
    let (seen, folder) = http(|_, request| answers(request, &json!({})), bare).await;
    start(folder.path())
        .await
        .expect("it answers")
        .close()
        .await;
    let first = &seen.received()[0];
    assert_eq!(
        (first.header("x-api-key"), first.header("authorization")),
        (Some(KEY), None)
    );
}

#[tokio::test]
async fn a_server_at_a_url_that_fails_says_why() {
    let refused = async |script: fn(usize, &Received) -> Vec<Act>| {
        let (_server, folder) = http(script, "").await;
        let began = Instant::now();
        let error = start(folder.path())
            .await
            .expect_err("it cannot be used")
            .to_string();
        assert!(began.elapsed() < Duration::from_secs(10), "{error}");
        error
    };
    let key = refused(|_, _| status(401, &[("www-authenticate", "Bearer")], "")).await;
    assert!(
        key.contains("it requires a key, or a different one (HTTP 401)"),
        "{key}"
    );
    let plain = refused(|_, _| status(401, &[], "no")).await;
    assert!(plain.contains("401"), "{plain}");
    let broken = refused(|_, _| status(500, &[("content-type", "text/html")], "<h1>oh</h1>")).await;
    assert!(broken.contains("HTTP 500"), "{broken}");
    let page =
        refused(|_, _| status(200, &[("content-type", "text/html")], "<h1>Welcome</h1>")).await;
    assert!(
        page.contains("cannot be used") && page.contains("text/html"),
        "{page}"
    );
    let moved = refused(|_, _| status(307, &[("location", "http://127.0.0.1:9/")], "")).await;
    assert!(moved.contains("307"), "{moved}");
    let silent = refused(|_, _| vec![Act::Hang]).await;
    assert!(
        silent.contains("it was not ready after 3 seconds"),
        "{silent}"
    );
    let endless = refused(|_, _| vec![stream_head(), Act::Forever(vec![b'x'; 65_536])]).await;
    assert!(endless.contains("cannot be used"), "{endless}");
    let (server, folder) = http(|_, _| Vec::new(), "").await;
    drop(server);
    let gone = start(folder.path())
        .await
        .expect_err("no server is there")
        .to_string();
    assert!(
        gone.contains("cannot be used") && gone.contains("refused"),
        "{gone}"
    );
}

#[tokio::test]
async fn a_call_over_http_that_fails_is_an_error_for_the_model() {
    let failing = |request: &Received| match request.method == "POST"
        && request.json()["method"] == "tools/call"
    {
        true => status(500, &[("content-type", "text/plain")], "oh"),
        false => answers(request, &json!({})),
    };
    let (_seen, folder) = http(move |_, request| failing(request), "").await;
    let server = start(folder.path()).await.expect("it answers");
    let output = call(
        &tools(&server),
        "h__echo",
        json!({}),
        &CancellationToken::new(),
    )
    .await;
    assert!(
        output.is_error && output.content.contains("HTTP 500"),
        "{output:?}"
    );
    let leaks = json!({"content": [{"type": "text", "text": "x".repeat(100_000)}]});
    let (_seen, folder) = http(move |_, request| answers(request, &leaks), "").await;
    let server = start(folder.path()).await.expect("it answers");
    let output = call(
        &tools(&server),
        "h__echo",
        json!({}),
        &CancellationToken::new(),
    )
    .await;
    assert!(
        output.is_error
            && output
                .content
                .starts_with("the tool returned more than 65536 bytes"),
        "{output:?}"
    );
}

/// Runs `reqc send` in a repository with a server, and a model that calls its tool once.
async fn send(folder: &TempDir, arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(program::path());
    command
        .args(["send", "Tester", "-m", "Go", "--tools", "tools.toml"])
        .args(arguments);
    command
        .current_dir(folder.path())
        .env("SCRIPTED_KEY", KEY)
        .env("XDG_STATE_HOME", STATE)
        .env("CI", "1");
    let output = command.output().await.expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code().unwrap_or(-1),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[tokio::test]
async fn send_calls_tools_of_a_server() {
    let model = Server::answering(vec![
        calls(&[("c1", "s__echo", "{\"text\":\"hi\"}")]),
        says("Done."),
    ])
    .await;
    let folder = repository(&model.url);
    write(folder.path(), "", "");
    let (code, _, err) = send(&folder, &[]).await;
    assert!(
        code == 2
            && err.contains("the MCP server \"s\" runs ")
            && !folder.path().join("received").exists(),
        "{err}"
    );
    assert!(model.received().is_empty());
    let (code, out, err) = send(&folder, &["--dry-run"]).await;
    assert!(
        code == 0 && !out.contains("s__echo") && !folder.path().join("received").exists(),
        "{out}"
    );
    assert!(
        err.contains("this request lacks the tools of MCP servers"),
        "{err}"
    );
    let (code, out, err) = send(&folder, &["--trust"]).await;
    assert_eq!((code, out.as_str()), (0, "Done.\n"), "{err}");
    assert!(err.contains("s__echo returned: called"), "{err}");
    let bodies: Vec<Value> = model.received().iter().map(Received::json).collect();
    assert_eq!(bodies[0]["tools"][0]["function"]["name"], "s__echo");
    assert_eq!(
        bodies[1]["messages"]
            .as_array()
            .and_then(|all| all.last())
            .expect("a result")["content"],
        "called"
    );
}

#[tokio::test]
async fn send_tells_of_a_server_that_cannot_be_used() {
    let model = Server::answering(Vec::new()).await;
    let folder = repository(&model.url);
    write(
        folder.path(),
        "begin() { echo 'no licence' >&2; exit 3; }",
        "",
    );
    let (code, _, err) = send(&folder, &["--trust"]).await;
    assert!(
        code == 2 && err.contains("it ended with exit status 3") && err.contains("no licence"),
        "{code}: {err}"
    );
    assert!(model.received().is_empty());
}

#[tokio::test]
async fn a_key_goes_to_a_server_only_if_it_is_allowed() {
    let model = Server::answering(vec![says("Done.")]).await;
    let folder = repository(&model.url);
    let (seen, _other) = http(|_, request| answers(request, &json!({})), "").await;
    let toml = format!(
        "[[server]]\nname = \"h\"\nurl = \"{}/mcp\"\napi_key_ref = \"env:SCRIPTED_KEY\"\n",
        seen.url
    );
    std::fs::write(folder.path().join("tools.toml"), toml).expect("written");
    let (code, _, err) = send(&folder, &[]).await;
    let asked = format!(
        "calls to tools of the MCP server \"h\" go to \"{}/mcp\", with the key \"env:SCRIPTED_KEY\"",
        seen.url
    );
    assert!(
        code == 2 && err.contains(&asked) && seen.received().is_empty(),
        "{err}"
    );
    let (code, out, err) = send(&folder, &["--trust"]).await;
    assert_eq!((code, out.as_str()), (0, "Done.\n"), "{err}");
    assert!(!seen.received().is_empty() && !err.contains(KEY));
}

/// Returns whether a process exists and is not a zombie.
#[cfg(target_os = "linux")]
fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    stat.is_ok_and(|stat| {
        !stat
            .rsplit(") ")
            .next()
            .is_some_and(|rest| rest.starts_with('Z'))
    })
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn no_server_outlives_reqc() {
    // The server reads nothing more, so that its pipe fills, and starts a process outside its
    // group.
    let stubborn = "call() { echo $$ > pids; setsid sh -c 'echo $$ >> pids; exec sleep 300' & trap '' TERM; while :; do sleep 1; done; }";
    for is_killed in [true, false] {
        let model = Server::answering(vec![calls(&[("c1", "s__echo", "{}")]), says("Done.")]).await;
        let folder = repository(&model.url);
        write(
            folder.path(),
            stubborn,
            if is_killed { "" } else { "timeout_seconds = 1" },
        );
        let mut command = Command::new(program::path());
        command
            .args([
                "send",
                "--trust",
                "Tester",
                "-m",
                "Go",
                "--tools",
                "tools.toml",
            ])
            .current_dir(folder.path());
        command
            .env("SCRIPTED_KEY", KEY)
            .env("XDG_STATE_HOME", STATE);
        let mut child = command.spawn().expect("it runs");
        let began = Instant::now();
        let pids: Vec<String> = loop {
            let text = std::fs::read_to_string(folder.path().join("pids")).unwrap_or_default();
            assert!(
                began.elapsed() < Duration::from_secs(20),
                "it was never called"
            );
            if text.lines().count() >= 2 {
                break text.lines().map(str::to_owned).collect();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        if is_killed {
            child.start_kill().expect("ours");
        }
        child.wait().await.expect("it ends");
        let began = Instant::now();
        while pids.iter().any(|pid| is_alive(pid)) {
            assert!(
                began.elapsed() < Duration::from_secs(8),
                "{pids:?} outlive reqc"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test]
async fn a_host_may_share_a_server_between_sessions() {
    let folder = scene("", "");
    let server = start(folder.path()).await.expect("it starts");
    let set = Arc::new(tools(&server));
    let calls: Vec<_> = (0..10)
        .map(|_| {
            let set = Arc::clone(&set);
            tokio::spawn(async move {
                call(&set, "s__echo", json!({}), &CancellationToken::new()).await
            })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.expect("no panic"), ToolOutput::text("called"));
    }
}

/// Reports steps under a token, with a message: `tell TOKEN STEP`.
const TELL: &str = r#"
tell() { printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%s,"total":4,"message":"at %s"}}\n' "$1" "$2" "$2"; }
token() { token=${line#*\"progressToken\":}; token=${token%%[,\}]*}; }
done_() { answer '{"content":[{"type":"text","text":"done"}]}'; }
"#;

#[tokio::test]
async fn a_call_may_take_longer_while_the_server_tells_of_its_progress() {
    let progress = r#"call() { token; for step in 1 2 3 4; do sleep 0.6; tell "$token" "$step"; done; done_; }"#;
    assert_eq!(
        called(&format!("{TELL}{progress}"), "timeout_seconds = 1").await,
        (false, "done".to_owned())
    );
    // Progress under a token that no call has does not extend the time.
    let other = r#"call() { token; for step in 1 2 3 4; do sleep 0.6; tell "$((token + 7))" "$step"; done; done_; }"#;
    let (is_error, told) = called(&format!("{TELL}{other}"), "timeout_seconds = 1").await;
    assert_eq!(
        (is_error, told.as_str()),
        (true, "the tool did not answer within 1 second")
    );
}

#[tokio::test]
async fn what_a_server_tells_of_a_call_is_an_event_of_that_call() {
    // The server waits for both calls before it reports progress, first on the second one.
    let both = r#"
call() { case $line in
  *'"text":"one"'*) token; one=$token one_id=$id;;
  *) token; two=$token two_id=$id;;
esac
if [ -n "$one" ] && [ -n "$two" ]; then
  tell "$two" 1; tell "\"$one\"" 1; tell 999 2; tell "$one" 2; tell "$one" 3
  id=$one_id; done_; tell "$two" 2; id=$two_id; done_
fi; }"#;
    let folder = scene(&format!("{TELL}{both}"), "");
    let calls_both = calls(&[
        ("c1", "s__echo", r#"{"text":"one"}"#),
        ("c2", "s__echo", r#"{"text":"two"}"#),
    ]);
    let server = Server::answering(vec![calls_both, says("Done.")]).await;
    let repository = crate::library::repository(folder.path(), &server, &[]);
    let session = repository.session("Helper").expect("a session");
    let tools = repository
        .start_tools(&repository.transport())
        .await
        .expect("they start");
    session.set_tools(tools.set.clone());
    let (events, outcome) = crate::fixture::events(session.send("Go")).await;
    assert_eq!(outcome, Outcome::Finished(StopReason::EndTurn));
    let told = |wanted: &str| -> Vec<String> {
        let text = |event: &Event| match event {
            Event::ToolProgress { id, text } if **id == *wanted => Some(text.clone()),
            _ => None,
        };
        events.iter().filter_map(text).collect()
    };
    // Each call reports all progress that came before its result, in order.
    assert_eq!(told("c1"), ["1/4: at 1", "2/4: at 2", "3/4: at 3"]);
    assert_eq!(told("c2"), ["1/4: at 1", "2/4: at 2"]);
    tools.close().await;
}

#[tokio::test]
async fn a_server_that_tells_without_end_floods_nobody() {
    let flood = r#"call() { token; step=0; while [ $step -lt 3000 ]; do step=$((step + 1)); tell "$token" "$step"; done; done_; }"#;
    let folder = scene(&format!("{TELL}{flood}"), "");
    let server = start(folder.path()).await.expect("it starts");
    let (events, mut told) = mpsc::channel(1);
    let context = ToolContext::new("1".into(), CancellationToken::new(), events);
    let set = tools(&server);
    let call = set
        .get("s__echo")
        .expect("it is offered")
        .call(json!({}), context);
    let slow = async {
        let mut count = 0;
        while told.recv().await.is_some() {
            count += 1;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        count
    };
    let (output, count) = tokio::join!(call, slow);
    assert_eq!(output, ToolOutput::text("done"));
    assert!((1..3000).contains(&count), "{count}");
    server.close().await;
}
