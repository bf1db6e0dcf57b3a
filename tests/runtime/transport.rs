//! Refusals, retries, limits, and the locations where keys may appear.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use reqc::conversation::Conversation;
use reqc::runtime::{
    Category, Error, Event, Outcome, RetryPolicy, Session, StopReason, Transport, TransportOptions,
};
use wiremock::matchers::{header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::fixture::{KEY, Planted, agent, events, options, said, session, text, transport};
use crate::server::{Act, Server, says, sse, status, stream_head};

fn failed(outcome: Outcome) -> Error {
    match outcome {
        Outcome::Failed(error) => error,
        other => panic!("{other:?}"),
    }
}

fn retries(events: &[Event]) -> Vec<(u32, Duration)> {
    let retry = |event: &Event| match event {
        Event::Retry { attempt, delay, .. } => Some((*attempt, *delay)),
        _ => None,
    };
    events.iter().filter_map(retry).collect()
}

#[tokio::test]
async fn the_request_line_and_key_reach_a_server_of_another_make() {
    let server = MockServer::start().await;
    let answer = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"Whole."},"finish_reason":"stop"}]}"#;
    Mock::given(method("POST"))
        .and(path("/v1/chat/completions"))
        .and(header("authorization", format!("Bearer {KEY}").as_str()))
        .respond_with(ResponseTemplate::new(200).set_body_raw(answer, "application/json"))
        .expect(1)
        .mount(&server)
        .await;
    let session = session(&server.uri());
    let (events, outcome) = events(session.send(text("Hi"))).await;
    assert_eq!(
        (said(&events).as_str(), outcome),
        ("Whole.", Outcome::Finished(StopReason::EndTurn))
    );
}

#[tokio::test]
async fn statuses_decide_the_category() {
    for (code, category, attempts) in [
        (400, Category::Validation, 1),
        (401, Category::Auth, 1),
        (403, Category::Auth, 1),
        (404, Category::Validation, 1),
        (422, Category::Validation, 1),
        (408, Category::Provider, 4),
        (409, Category::Provider, 4),
        (429, Category::Provider, 4),
        (500, Category::Provider, 4),
        (503, Category::Provider, 4),
        (529, Category::Provider, 4),
    ] {
        let server = MockServer::start().await;
        let body = serde_json::json!({"error": {"message": "the reason", "type": "x"}});
        let answer = ResponseTemplate::new(code).set_body_json(body);
        Mock::given(method("POST"))
            .respond_with(answer)
            .expect(attempts)
            .mount(&server)
            .await;
        let (events, outcome) = events(session(&server.uri()).send(text("Hi"))).await;
        let error = failed(outcome);
        assert_eq!(
            (error.category, error.status),
            (category, Some(code)),
            "{code}"
        );
        assert!(error.to_string().contains("the reason"), "{error}");
        assert_eq!(retries(&events).len() as u64, attempts - 1, "{code}");
    }
}

#[tokio::test]
async fn a_server_that_recovers_is_asked_again_as_it_wishes() {
    let past = "Sun, 22 Nov 2020 10:00:00 GMT";
    let server = Server::answering(vec![
        status(429, &[("retry-after", "0")], "{}"),
        status(503, &[("retry-after", past)], "{}"),
        status(529, &[("retry-after", "0.03")], "{}"),
        says("At last."),
    ])
    .await;
    let (events, outcome) = events(session(&server.url).send(text("Hi"))).await;
    assert_eq!(outcome, Outcome::Finished(StopReason::EndTurn));
    // The last delay that the server asks for is longer than the policy's own delays.
    let delays = retries(&events);
    let attempts: Vec<u32> = delays.iter().map(|(attempt, _)| *attempt).collect();
    assert_eq!(attempts, [2, 3, 4]);
    assert!(
        delays[..2]
            .iter()
            .all(|(_, delay)| *delay >= Duration::from_millis(1)),
        "there is always a delay: {delays:?}"
    );
    assert_eq!(delays[2].1, Duration::from_millis(30));
    let bodies: Vec<Vec<u8>> = server
        .received()
        .into_iter()
        .map(|received| received.body)
        .collect();
    assert!(
        bodies.windows(2).all(|pair| pair[0] == pair[1]),
        "the same body each time"
    );
}

/// An hour is too long to wait, and a retry before it has passed would fail.
#[tokio::test]
async fn a_server_that_asks_for_too_long_a_pause_is_not_asked_again() {
    for wish in ["3600", "121"] {
        let server = Server::answering(vec![status(429, &[("retry-after", wish)], "{}")]).await;
        let (events, outcome) = events(session(&server.url).send(text("Hi"))).await;
        let error = failed(outcome);
        assert!(
            error
                .to_string()
                .contains(&format!("asks to wait {wish} s")),
            "{error}"
        );
        assert_eq!(
            error
                .retry_after
                .map(|wish| wish.as_secs().to_string())
                .as_deref(),
            Some(wish)
        );
        assert!(error.retryable && retries(&events).is_empty() && server.received().len() == 1);
    }
}

/// Comments keep a connection open, but do not extend the time of a request.
#[tokio::test]
async fn comments_without_end_are_silence() {
    let half = r#"{"choices":[{"index":0,"delta":{"content":"half"}}]}"#;
    for noise in [&b": still here\n\n"[..], b"\n", b":\n"] {
        let mut acts = sse(&[half]);
        for _ in 0..200 {
            acts.extend([
                Act::Bytes(noise.to_vec()),
                Act::Pause(Duration::from_millis(20)),
            ]);
        }
        acts.push(Act::Hang);
        let server = Server::answering(vec![acts]).await;
        let options = TransportOptions {
            idle_timeout: Duration::from_millis(300),
            ..options()
        };
        let transport = Transport::new(Arc::new(Planted), options);
        let session = Session::new(agent(&server.url), transport, Conversation::default());
        let began = Instant::now();
        let error = failed(events(session.send(text("Hi"))).await.1);
        assert!(
            error.category == Category::Network && tells_silence(&error.message),
            "{error}"
        );
        assert!(
            began.elapsed() < Duration::from_secs(3),
            "{:?}",
            began.elapsed()
        );
    }
}

#[tokio::test]
async fn a_server_may_wish_in_milliseconds_or_in_googles_words() {
    let info = r#"{"error":{"code":429,"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"0.005s"}]}}"#;
    let server = Server::answering(vec![
        status(
            429,
            &[("retry-after-ms", "7"), ("retry-after", "9999")],
            "{}",
        ),
        status(429, &[], info),
        says("At last."),
    ])
    .await;
    let (events, outcome) = events(session(&server.url).send(text("Hi"))).await;
    assert_eq!(outcome, Outcome::Finished(StopReason::EndTurn));
    let delays: Vec<Duration> = retries(&events)
        .into_iter()
        .map(|(_, delay)| delay)
        .collect();
    assert_eq!(delays, [Duration::from_millis(7), Duration::from_millis(5)]);
}

#[tokio::test]
async fn an_answer_in_an_encoding_that_nobody_asked_for_names_it() {
    for code in [200, 400] {
        let server = Server::answering(vec![status(
            code,
            &[("content-encoding", "gzip")],
            "\u{1f}\u{8b}",
        )])
        .await;
        let (_, outcome) = events(session(&server.url).send(text("Hi"))).await;
        let error = failed(outcome);
        assert!(
            error
                .to_string()
                .contains("`content-encoding: gzip`, which the request did not ask for"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_connection_that_is_refused_is_tried_again_and_then_told() {
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let (events, outcome) =
        events(session(&format!("http://127.0.0.1:{port}")).send(text("Hi"))).await;
    let error = failed(outcome);
    let told = format!(
        "http://127.0.0.1:{port}/v1/chat/completions (provider instance `Scripted`) cannot be reached"
    );
    assert_eq!(
        (error.category, error.message.as_str()),
        (Category::Network, told.as_str())
    );
    assert!(
        error
            .detail
            .as_deref()
            .is_some_and(|detail| detail.contains("refused")),
        "{error}"
    );
    assert_eq!(retries(&events).len(), 3);
}

#[tokio::test]
async fn an_error_names_the_url_without_credentials_and_query() {
    let server = Server::start(|_, _| status(404, &[], r#"{"error":"not found"}"#)).await;
    let error = failed(events(session(&server.url).send(text("Hi"))).await.1);
    let told = format!(
        "validation: the provider has no such endpoint or model (HTTP 404) at {}/v1/chat/completions \
         (provider instance `Scripted`): not found",
        server.url
    );
    assert_eq!(error.to_string(), told);
    let mut compiled = agent(&server.url)
        .compile(Conversation::default())
        .expect("it can be compiled");
    compiled.line.url =
        "https://me:secret@a.example:8443/v1/models/m:stream?key=secret#secret".to_owned();
    assert_eq!(
        compiled.address(),
        "https://a.example:8443/v1/models/m:stream"
    );
}

#[tokio::test]
async fn a_connection_that_is_reset_before_an_answer_is_tried_again() {
    let server = Server::answering(vec![vec![Act::Reset], says("Here.")]).await;
    let (events, outcome) = events(session(&server.url).send(text("Hi"))).await;
    assert_eq!(outcome, Outcome::Finished(StopReason::EndTurn));
    assert_eq!(retries(&events).len(), 1);
}

/// Returns whether a message says that the server sent nothing, before or within its answer.
fn tells_silence(message: &str) -> bool {
    message.contains("sent nothing for too long") || message.contains("stopped sending")
}

#[tokio::test]
async fn a_silent_server_is_given_up_before_and_within_an_answer() {
    let half = r#"{"choices":[{"index":0,"delta":{"content":"half"}}]}"#;
    let mut within = sse(&[half]);
    within.push(Act::Hang);
    for acts in [vec![Act::Hang], within] {
        let server = Server::answering(vec![acts]).await;
        let options = TransportOptions {
            idle_timeout: Duration::from_millis(150),
            ..options()
        };
        let transport = Transport::new(Arc::new(Planted), options);
        let session = Session::new(agent(&server.url), transport, Conversation::default());
        let began = Instant::now();
        let error = failed(events(session.send(text("Hi"))).await.1);
        assert_eq!(error.category, Category::Network);
        let place = format!(
            "{}/v1/chat/completions (provider instance `Scripted`) ",
            server.url
        );
        assert!(
            error.message.starts_with(&place) && tells_silence(&error.message),
            "{error}"
        );
        assert!(began.elapsed() < Duration::from_secs(4));
        assert_eq!(server.received().len(), 1, "silence is not tried again");
        server.quiet().await;
    }
}

#[tokio::test]
async fn a_long_answer_that_keeps_coming_has_no_limit_in_time() {
    let piece = r#"{"choices":[{"index":0,"delta":{"content":"x"}}]}"#;
    let mut acts = vec![stream_head()];
    for _ in 0..12 {
        acts.push(Act::Pause(Duration::from_millis(50)));
        acts.push(Act::Bytes(format!("data: {piece}\n\n").into_bytes()));
    }
    acts.push(Act::Bytes(
        b"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n".to_vec(),
    ));
    let server = Server::answering(vec![acts]).await;
    let options = TransportOptions {
        idle_timeout: Duration::from_millis(400),
        ..options()
    };
    let transport = Transport::new(Arc::new(Planted), options);
    let session = Session::new(agent(&server.url), transport, Conversation::default());
    let (events, outcome) = events(session.send(text("Hi"))).await;
    assert_eq!(
        (said(&events).len(), outcome),
        (12, Outcome::Finished(StopReason::EndTurn))
    );
}

#[tokio::test]
async fn redirects_are_not_followed_and_no_key_leaves() {
    let elsewhere = Server::answering(vec![says("Stolen.")]).await;
    for code in [301, 302, 303, 307, 308] {
        let target = format!("{}/v1/chat/completions", elsewhere.url);
        let server = Server::answering(vec![status(code, &[("location", &target)], "")]).await;
        let error = failed(events(session(&server.url).send(text("Hi"))).await.1);
        assert_eq!(error.category, Category::Config);
        assert!(error.message.contains(&target), "{error}");
    }
    assert!(elsewhere.received().is_empty());
}

#[tokio::test]
async fn an_endless_error_is_read_to_a_limit() {
    let head =
        b"HTTP/1.1 500 Oops\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n".to_vec();
    let server =
        Server::start(move |_, _| vec![Act::Bytes(head.clone()), Act::Forever(vec![b'x'; 4096])])
            .await;
    let options = TransportOptions {
        retry: RetryPolicy::never(),
        ..options()
    };
    let transport = Transport::new(Arc::new(Planted), options);
    let session = Session::new(agent(&server.url), transport, Conversation::default());
    let error = failed(events(session.send(text("Hi"))).await.1);
    assert_eq!(error.status, Some(500));
    assert!(error.to_string().len() < 600, "{error}");
    server.quiet().await;
}

#[tokio::test]
async fn garbage_for_ever_is_cut_off() {
    let garbage: [&[u8]; 4] = [
        b"\0\xff\xfe garbage ",
        b"data: {\"a\":",
        b": comment\n",
        b"data: {\"choices\":[]}\n\n",
    ];
    for pattern in garbage {
        let repeated = pattern.repeat(64 * 1024 / pattern.len());
        let server = Server::answering(vec![vec![stream_head(), Act::Forever(repeated)]]).await;
        let error = failed(events(session(&server.url).send(text("Hi"))).await.1);
        assert_eq!(error.category, Category::Provider, "{error}");
        server.quiet().await;
    }
}

#[tokio::test]
async fn endless_headers_are_cut_off() {
    let head = b"HTTP/1.1 200 OK\r\n".to_vec();
    let server = Server::start(move |_, _| {
        vec![
            Act::Bytes(head.clone()),
            Act::Forever(b"x-more: and more and more and more\r\n".repeat(64)),
        ]
    })
    .await;
    let error = failed(events(session(&server.url).send(text("Hi"))).await.1);
    assert_eq!(error.category, Category::Network, "{error}");
    server.quiet().await;
}

#[tokio::test]
async fn no_content_is_no_answer() {
    let server = Server::answering(vec![vec![Act::Bytes(
        b"HTTP/1.1 204 None\r\nconnection: close\r\n\r\n".to_vec(),
    )]])
    .await;
    let error = failed(events(session(&server.url).send(text("Hi"))).await.1);
    assert_eq!(
        (error.category, error.message.as_str()),
        (Category::Provider, "the answer is empty (HTTP 204)")
    );
}

#[tokio::test]
async fn a_page_is_no_answer() {
    let page = "<html><head><title>Sign in</title></head><body>Welcome to the hotel</body></html>";
    let server = Server::answering(vec![status(
        200,
        &[("content-type", "text/html; charset=utf-8")],
        page,
    )])
    .await;
    let error = failed(events(session(&server.url).send(text("Hi"))).await.1);
    assert!(error.to_string().contains("Sign in"), "{error}");
}

/// The complete log, of every level.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_planted_key_is_sent_and_found_nowhere_else() {
    // The subscriber is global, so that this also finds keys that other tests log.
    let logged = Logged::default();
    let writer = logged.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::set_global_default(subscriber).expect("no other test sets one");
    // The server repeats the key, in an error and in an answer that breaks off.
    let echo = format!(r#"{{"error":{{"message":"the key {KEY} is wrong"}}}}"#);
    let broken = sse(&[&echo]);
    // Messages of providers are shortened, here in the middle of the key.
    let padding = "a".repeat(295 - KEY.len());
    let cut = format!(r#"{{"error":{{"message":"{padding} {KEY} is wrong, and here is why"}}}}"#);
    let mut answers = vec![
        status(401, &[], &echo),
        broken,
        status(500, &[], &echo),
        says("Fine."),
    ];
    let later = (0..KEY.len()).map(|at| status(403, &[], &cut.replacen('a', "", at)));
    answers.extend(later);
    let server = Server::answering(answers).await;
    let journal = reqc::world::MemoryJournal::default();
    let begin = reqc::runtime::SessionStart::New(Conversation::default());
    let session = Session::journaled(
        agent(&server.url),
        transport(),
        begin,
        Box::new(journal.clone()),
    )
    .unwrap();
    let mut everything = String::new();
    for _ in 0..3 + KEY.len() {
        let (events, outcome) = events(session.send(text("Hi"))).await;
        everything.push_str(&format!("{events:?} {outcome:?}"));
        if let Outcome::Failed(error) = &outcome {
            everything.push_str(&format!("{error} {error:#?}"));
        }
    }
    let compiled = agent(&server.url).compile(Conversation::default()).unwrap();
    everything.push_str(&format!(
        "{compiled:?} {:?}",
        reqc::runtime::secret::Secrets::read(&Planted, &reqc::repo::SecretRef::Env("K".into()))
    ));
    everything.push_str(&String::from_utf8_lossy(&journal.bytes()));
    everything.push_str(&String::from_utf8_lossy(&logged.0.lock().unwrap()));
    assert!(server.received().iter().all(|received| {
        received
            .header("authorization")
            .is_some_and(|key| key.contains(KEY))
    }));
    assert!(everything.contains("sending"), "logging was on");
    let part = &KEY[..4];
    assert!(
        !everything.contains(part),
        "{}",
        &everything[everything.find(part).unwrap().saturating_sub(200)..]
    );
}
