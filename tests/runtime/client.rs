//! HTTP clients that the host provides in place of the built-in one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqc::conversation::Conversation;
use reqc::runtime::client::{
    Bytes, HttpBody, HttpClient, HttpError, HttpErrorKind, ReqwestClient, http, reqwest,
};
use reqc::runtime::tools::BoxFuture;
use reqc::runtime::{Category, Error, Outcome, Session, StopReason, Transport};

use crate::fixture::{KEY, Planted, agent, events, options, said, session as plain};
use crate::server::{Server, says, status};

/// A server in memory that keeps requests and gives the answers of a function.
struct Memory {
    sent: Mutex<Vec<http::Request<Bytes>>>,
    answer: fn(usize) -> Result<http::Response<HttpBody>, HttpError>,
}

impl HttpClient for Memory {
    fn send(
        &self,
        request: http::Request<Bytes>,
    ) -> BoxFuture<'_, Result<http::Response<HttpBody>, HttpError>> {
        let mut sent = self.sent.lock().unwrap();
        sent.push(request);
        Box::pin(std::future::ready((self.answer)(sent.len() - 1)))
    }
}

type Answer = fn(usize) -> Result<http::Response<HttpBody>, HttpError>;

fn memory(answer: Answer) -> (Session, Arc<Memory>) {
    let client = Arc::new(Memory {
        sent: Mutex::default(),
        answer,
    });
    (
        with_client(Arc::clone(&client) as Arc<dyn HttpClient>),
        client,
    )
}

fn with_client(client: Arc<dyn HttpClient>) -> Session {
    let transport = Transport::new(Arc::new(Planted), options()).with_client(client);
    Session::new(
        agent("https://nowhere.invalid"),
        transport,
        Conversation::default(),
    )
}

fn failed(outcome: Outcome) -> Error {
    match outcome {
        Outcome::Failed(error) => error,
        other => panic!("{other:?}"),
    }
}

const EVENTS: [&str; 3] = [
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel",
    "lo, planted-key-7f3a\"}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    "data: [DONE]\n\n",
];

fn stream() -> http::Response<HttpBody> {
    let body = HttpBody::of_pieces(EVENTS.map(|piece| Ok(Bytes::from(piece))));
    http::Response::builder()
        .header("content-type", "text/event-stream")
        .body(body)
        .expect("legal")
}

#[tokio::test]
async fn a_client_in_memory_gets_the_whole_request_and_the_key_in_one_marked_header() {
    let (session, client) = memory(|_| Ok(stream()));
    let (events, outcome) = events(session.send("Hi")).await;
    assert_eq!(
        (said(&events).as_str(), outcome),
        ("Hello, [key]", Outcome::Finished(StopReason::EndTurn))
    );
    let request = client.sent.lock().unwrap().remove(0);
    assert_eq!(
        (
            request.method().as_str(),
            request.uri().to_string().as_str()
        ),
        ("POST", "https://nowhere.invalid/v1/chat/completions")
    );
    let secret: Vec<&str> = request
        .headers()
        .iter()
        .filter(|(_, value)| value.is_sensitive())
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(secret, ["authorization"]);
    assert_eq!(request.headers()["authorization"], format!("Bearer {KEY}"));
    assert!(!format!("{request:?}").contains(KEY), "{request:?}");
    assert!(
        request.headers()["user-agent"]
            .to_str()
            .unwrap()
            .starts_with("reqc/")
    );
    // The same bytes are sent over a socket.
    let server = Server::answering(vec![says("Hello.")]).await;
    plain(&server.url).send("Hi").outcome().await;
    assert_eq!(request.body().as_ref(), server.received()[0].body);
}

#[tokio::test]
async fn the_kind_of_a_failure_decides_what_is_tried_again() {
    let cases: [(Answer, usize, Category, &str); 4] = [
        (
            |_| Err(HttpError::new(HttpErrorKind::Connect, "the cable is cut")),
            4,
            Category::Network,
            "cannot be reached",
        ),
        (
            |_| Err(HttpError::new(HttpErrorKind::Broken, "the cable is cut")),
            4,
            Category::Network,
            "was lost before an answer",
        ),
        (
            |_| Err(HttpError::new(HttpErrorKind::Silence, "the cable is cut")),
            1,
            Category::Network,
            "sent nothing for too long",
        ),
        (
            |_| Err(HttpError::new(HttpErrorKind::Setup, "the cable is cut")),
            1,
            Category::Config,
            "cannot be used",
        ),
    ];
    for (answer, attempts, category, words) in cases {
        let (session, client) = memory(answer);
        let error = failed(session.send("Hi").outcome().await);
        assert_eq!(
            (error.category, error.detail.as_deref()),
            (category, Some("the cable is cut")),
            "{error}"
        );
        assert!(error.message.contains(words), "{error}");
        assert_eq!(client.sent.lock().unwrap().len(), attempts, "{error}");
    }
}

#[tokio::test]
async fn statuses_redirects_and_broken_bodies_are_judged_as_ever() {
    let (session, client) = memory(|number| {
        let head = http::Response::builder()
            .status(if number == 0 { 503 } else { 307 })
            .header("location", "https://elsewhere.invalid");
        Ok(head.body("{}".into()).expect("legal"))
    });
    let error = failed(session.send("Hi").outcome().await);
    assert!(
        error
            .message
            .contains("redirects to https://elsewhere.invalid"),
        "{error}"
    );
    assert_eq!(
        (client.sent.lock().unwrap().len(), error.status),
        (2, Some(307))
    );

    let (session, _) = memory(|_| {
        let pieces = [
            Ok(Bytes::from(EVENTS[0])),
            Err(HttpError::new(HttpErrorKind::Broken, "the cable is cut")),
        ];
        Ok(http::Response::builder()
            .header("content-type", "text/event-stream")
            .body(HttpBody::of_pieces(pieces))
            .expect("legal"))
    });
    let error = failed(session.send("Hi").outcome().await);
    assert_eq!(
        (error.detail.as_deref(), error.retryable),
        (Some("the cable is cut"), true),
        "{error}"
    );
}

/// A body that never ends.
struct Endless;

impl HttpClient for Endless {
    fn send(
        &self,
        _: http::Request<Bytes>,
    ) -> BoxFuture<'_, Result<http::Response<HttpBody>, HttpError>> {
        let body = HttpBody::new(Silent);
        Box::pin(async {
            Ok(http::Response::builder()
                .header("content-type", "text/event-stream")
                .body(body)
                .expect("legal"))
        })
    }
}

struct Silent;

impl futures_core::Stream for Silent {
    type Item = Result<Bytes, HttpError>;

    fn poll_next(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        std::task::Poll::Pending
    }
}

#[tokio::test]
async fn a_client_that_never_says_anything_is_given_up() {
    let options = reqc::runtime::TransportOptions {
        idle_timeout: Duration::from_millis(30),
        ..options()
    };
    let transport = Transport::new(Arc::new(Planted), options).with_client(Arc::new(Endless));
    let session = Session::new(
        agent("https://nowhere.invalid"),
        transport,
        Conversation::default(),
    );
    let error = failed(session.send("Hi").outcome().await);
    assert!(error.message.contains("stopped sending"), "{error}");
}

#[tokio::test]
async fn a_client_of_reqwest_keeps_what_the_host_set_up_and_follows_no_redirect() {
    let elsewhere = Server::answering(vec![says("You should not be here.")]).await;
    let target = format!("{}/v1/chat/completions", elsewhere.url);
    let server = Server::start(move |number, _| match number {
        0 => status(307, &[("location", &target)], "{}"),
        _ => says("Hello."),
    })
    .await;
    let asked = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&asked);
    let proxy = reqwest::Proxy::custom(move |_| {
        seen.fetch_add(1, Ordering::SeqCst);
        None::<reqwest::Url>
    });
    let builder = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::limited(5))
        .proxy(proxy);
    let client = ReqwestClient::new(builder).expect("it can be built");
    let transport =
        Transport::new(Arc::new(Planted), options()).with_client(Arc::new(client.clone()));
    let session = Session::new(agent(&server.url), transport, Conversation::default());
    let error = failed(session.send("Hi").outcome().await);
    assert!(
        error.message.contains("redirects to") && elsewhere.received().is_empty(),
        "{error}"
    );
    assert_eq!(session.send("Hi").text().await.as_deref(), Ok("Hello."));
    assert_eq!(
        server.received()[1].header("authorization"),
        Some(format!("Bearer {KEY}").as_str())
    );
    assert!(asked.load(Ordering::SeqCst) > 0, "its proxies are asked");
    assert_eq!(
        client
            .client()
            .get(&server.url)
            .send()
            .await
            .expect("the host's own request")
            .status(),
        200
    );
}
