//! A server that follows a script, regardless of the request.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use super::recipe::Script;

/// A local server that runs until the test process ends.
pub(crate) struct Server {
    pub(crate) url: String,
}

impl Server {
    pub(crate) fn start(script: &Script) -> std::io::Result<Server> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        let with_url = |text: &str| text.replace("<<url>>", &url);
        let script = Script {
            say: with_url(&script.say),
            forever: with_url(&script.forever),
            ..script.clone()
        };
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let script = script.clone();
                thread::spawn(move || serve(stream, &script));
            }
        });
        Ok(Server { url })
    }
}

fn serve(mut stream: TcpStream, script: &Script) -> std::io::Result<()> {
    // No client can block a test forever.
    stream.set_read_timeout(Some(Duration::from_mins(1)))?;
    stream.set_write_timeout(Some(Duration::from_mins(1)))?;
    let request = read_request(&mut stream)?;
    let key = key(&request);
    let said = |text: &str| text.replace("<<key>>", &key).into_bytes();
    stream.write_all(&said(&script.say))?;
    let forever = said(&script.forever);
    while !forever.is_empty() {
        stream.write_all(&forever)?;
    }
    if script.hang {
        while stream.read(&mut [0; 64])? > 0 {}
    }
    Ok(())
}

/// Reads the head of a request, and as much of its body as arrives with it.
fn read_request(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    loop {
        let mut chunk = [0; 16 * 1024];
        let count = stream.read(&mut chunk)?;
        bytes.extend_from_slice(&chunk[..count]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            if count == 0 {
                return Ok(text.into_owned());
            }
            continue;
        };
        if count == 0 || body.len() >= length(head) {
            return Ok(text.into_owned());
        }
    }
}

fn length(head: &str) -> usize {
    header(head, "content-length")
        .and_then(|value| value.parse().ok())
        .unwrap_or(0)
}

/// The key in a request, in any of the usual headers.
fn key(request: &str) -> String {
    let named = ["authorization", "x-api-key", "x-goog-api-key", "api-key"];
    let value = named
        .iter()
        .find_map(|name| header(request, name))
        .unwrap_or_default();
    value.trim_start_matches("Bearer ").to_owned()
}

fn header<'r>(head: &'r str, name: &str) -> Option<&'r str> {
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    lines
        .filter(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim())
        .next()
}
