//! Certificates: which are trusted, and the messages about those that are not.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::fixture::{KEY, STATE};
use crate::program;
use crate::send::repository;

const ANSWER: &str =
    r#"{"choices":[{"index":0,"message":{"content":"By TLS."},"finish_reason":"stop"}]}"#;

/// A server with a self-signed certificate for `localhost`. Returns its port and the certificate.
async fn server() -> (u16, String) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .expect("they belong together");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // A client that does not trust the certificate closes the connection.
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            let _ = stream.read(&mut [0; 4096]).await;
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
            let answer = format!("{head}content-length: {}\r\n\r\n{ANSWER}", ANSWER.len());
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    (port, cert.pem())
}

async fn send(root: &Path, certificates: &Path) -> (Option<i32>, String, String) {
    let mut command = Command::new(program::path());
    command
        .args(["send", "--trust", "Tester", "-m", "Hi"])
        .current_dir(root)
        .env("SCRIPTED_KEY", KEY);
    command.env("XDG_STATE_HOME", STATE);
    let output = command
        .env("SSL_CERT_FILE", certificates)
        .env_remove("SSL_CERT_DIR")
        .output()
        .await
        .expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[tokio::test]
async fn only_a_trusted_certificate_gets_the_key() {
    let (port, certificate) = server().await;
    let (_, other) = server().await;
    let root = repository(&format!("https://localhost:{port}"));
    let file = root.path().join("trusted.pem");
    std::fs::write(&file, certificate).expect("written");
    assert_eq!(
        send(root.path(), &file).await,
        (Some(0), "By TLS.\n".to_owned(), String::new())
    );
    std::fs::write(&file, other).expect("written");
    let (code, out, told) = send(root.path(), &file).await;
    assert_eq!((code, out.as_str()), (Some(2), ""));
    // Reported once, without retries, which would not help.
    let place =
        format!("https://localhost:{port}/v1/chat/completions (provider instance `Scripted`)");
    assert!(
        told.starts_with(&format!(
            "error: network: the certificate of {place} is not trusted: "
        )),
        "{told}"
    );
}

/// A port that answers everything with these bytes and keeps the connection open. Also counts
/// connections.
async fn port_that_says(bytes: &'static [u8]) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let (port, accepted) = (
        listener.local_addr().expect("bound").port(),
        Arc::<AtomicUsize>::default(),
    );
    let count = Arc::clone(&accepted);
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(bytes).await;
            open.push(stream);
        }
    });
    (port, accepted)
}

/// Returns the message of `reqc send` about such a port, and the number of connections.
async fn told_of(bytes: &'static [u8]) -> (String, usize) {
    let (port, accepted) = port_that_says(bytes).await;
    let root = repository(&format!("https://localhost:{port}"));
    let file = root.path().join("trusted.pem");
    std::fs::write(&file, server().await.1).expect("written");
    let (code, out, told) = send(root.path(), &file).await;
    assert_eq!((code, out.as_str()), (Some(2), ""));
    let place =
        format!("https://localhost:{port}/v1/chat/completions (provider instance `Scripted`)");
    (
        told.replace(&place, "[place]"),
        accepted.load(Ordering::SeqCst),
    )
}

#[tokio::test]
async fn a_server_that_does_not_speak_tls_is_told_at_once() {
    let (told, times) = told_of(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await;
    assert!(
        told.starts_with("error: network: the server at [place] does not use TLS: "),
        "{told}"
    );
    assert!(told.contains("did you mean `http://`"), "{told}");
    assert_eq!(times, 1, "{told}");
}

#[tokio::test]
async fn a_port_of_this_machine_that_waits_for_another_protocol_is_not_tried_again() {
    let (told, times) = told_of(b"").await;
    assert!(
        told.starts_with("error: network: connecting to [place] timed out: "),
        "{told}"
    );
    assert!(told.contains("write `http://`"), "{told}");
    assert_eq!(times, 1, "{told}");
}
