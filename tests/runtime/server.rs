//! A scripted server that records each request, byte for byte, and answers as the script says.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A request as it was received.
#[derive(Debug, Clone, Default)]
pub(crate) struct Received {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) target: String,
    /// In the order received, with names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("bodies are JSON")
    }
}

/// A step of an answer.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    Bytes(Vec<u8>),
    Pause(Duration),
    /// Sends nothing more, and keeps the connection open until the client closes it.
    Hang,
    /// Sends the same bytes until the client closes the connection.
    Forever(Vec<u8>),
    /// Closes the connection so that the client sees a reset.
    Reset,
}

pub(crate) struct Server {
    pub(crate) url: String,
    received: Arc<Mutex<Vec<Received>>>,
    open: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Starts a server; `script` answers the request with the given number, counted from 0.
    pub(crate) async fn start(
        script: impl Fn(usize, &Received) -> Vec<Act> + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let (received, open) = (
            Arc::<Mutex<Vec<Received>>>::default(),
            Arc::<AtomicUsize>::default(),
        );
        let script = Arc::new(script);
        let shared = (Arc::clone(&received), Arc::clone(&open));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (received, open, script) = (
                    Arc::clone(&shared.0),
                    Arc::clone(&shared.1),
                    Arc::clone(&script),
                );
                open.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    serve(stream, &received, script.as_ref()).await;
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Server {
            url,
            received,
            open,
            task,
        }
    }

    /// A server that answers each request with the next of these answers.
    pub(crate) async fn answering(answers: Vec<Vec<Act>>) -> Server {
        Server::start(move |number, _| {
            answers
                .get(number)
                .cloned()
                .unwrap_or_else(|| status(500, &[], "no more"))
        })
        .await
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().expect("no panics").clone()
    }

    /// Returns the requests received since the last call.
    pub(crate) fn take_received(&self) -> Vec<Received> {
        std::mem::take(&mut *self.received.lock().expect("no panics"))
    }

    /// Waits until no connection is open.
    pub(crate) async fn quiet(&self) {
        for _ in 0..6_000 {
            if self.open.load(Ordering::SeqCst) == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!(
            "{} connections are still open",
            self.open.load(Ordering::SeqCst)
        );
    }
}

async fn serve(
    mut stream: TcpStream,
    received: &Mutex<Vec<Received>>,
    script: &(impl Fn(usize, &Received) -> Vec<Act> + ?Sized),
) {
    let Some(request) = read_request(&mut stream).await else {
        return;
    };
    let acts = {
        let mut received = received.lock().expect("no panics");
        received.push(request.clone());
        script(received.len() - 1, &request)
    };
    for act in acts {
        let ended = match act {
            Act::Bytes(bytes) => stream.write_all(&bytes).await.is_err(),
            Act::Pause(time) => {
                tokio::time::sleep(time).await;
                false
            }
            Act::Hang => {
                // The read ends when the client closes the connection.
                while stream.read(&mut [0; 64]).await.is_ok_and(|count| count > 0) {}
                true
            }
            Act::Forever(bytes) => {
                while stream.write_all(&bytes).await.is_ok() {}
                true
            }
            Act::Reset => {
                let _ = stream.set_zero_linger();
                true
            }
        };
        if ended {
            return;
        }
    }
    let _ = stream.shutdown().await;
}

async fn read_request(stream: &mut TcpStream) -> Option<Received> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        let mut chunk = [0; 4 * 1024];
        let count = stream
            .read(&mut chunk)
            .await
            .ok()
            .filter(|count| *count > 0)?;
        bytes.extend_from_slice(&chunk[..count]);
    };
    let text = String::from_utf8(bytes[..head].to_vec()).ok()?;
    let mut lines = text.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let mut request = Received {
        method: first.next()?.into(),
        target: first.next()?.into(),
        ..Received::default()
    };
    for line in lines {
        let (name, value) = line.split_once(": ")?;
        request
            .headers
            .push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let length: usize = request
        .header("content-length")
        .map_or(0, |length| length.parse().expect("a number"));
    request.body = bytes.split_off(head + 4);
    while request.body.len() < length {
        let mut chunk = [0; 4 * 1024];
        let count = stream
            .read(&mut chunk)
            .await
            .ok()
            .filter(|count| *count > 0)?;
        request.body.extend_from_slice(&chunk[..count]);
    }
    Some(request)
}

/// A complete answer.
pub(crate) fn status(code: u16, headers: &[(&str, &str)], body: &str) -> Vec<Act> {
    let mut head = format!(
        "HTTP/1.1 {code} Scripted\r\ncontent-length: {}\r\nconnection: close\r\n",
        body.len()
    );
    let has_type = headers.iter().any(|(name, _)| *name == "content-type");
    let json = [("content-type", "application/json")];
    let kind = json.iter().filter(|_| !has_type);
    headers
        .iter()
        .chain(kind)
        .for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
    vec![Act::Bytes(format!("{head}\r\n{body}").into_bytes())]
}

/// The head of a stream that ends when the connection closes.
pub(crate) fn stream_head() -> Act {
    Act::Bytes(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n".to_vec(),
    )
}

/// A stream of server-sent events without names.
pub(crate) fn sse(data: &[&str]) -> Vec<Act> {
    let events = data
        .iter()
        .map(|data| Act::Bytes(format!("data: {data}\n\n").into_bytes()));
    std::iter::once(stream_head()).chain(events).collect()
}

/// A Chat Completions answer with this text.
pub(crate) fn says(text: &str) -> Vec<Act> {
    let delta = serde_json::json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": text}}]});
    let stop = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    let usage =
        r#"{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12}}"#;
    sse(&[&delta.to_string(), stop, usage, "[DONE]"])
}

/// A Chat Completions answer that calls tools, each given as ID, name and arguments.
pub(crate) fn calls(calls: &[(&str, &str, &str)]) -> Vec<Act> {
    let call = |(index, (id, name, arguments)): (usize, &(&str, &str, &str))| serde_json::json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    let calls: Vec<_> = calls.iter().enumerate().map(call).collect();
    let delta = serde_json::json!({"choices": [{"index": 0, "delta": {"role": "assistant", "tool_calls": calls}}]});
    let stop = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#;
    let usage =
        r#"{"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":5,"total_tokens":25}}"#;
    sse(&[&delta.to_string(), stop, usage, "[DONE]"])
}
