//! Stored content: the session file holds references to it, and requests hold its bytes.

use crate::send::{repository, run};
use crate::server::{Server, says};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n0000";

/// A session with a file next to it stays small, sends the same bytes when it is resumed, and loses
/// nothing when the file is gone or changed.
#[tokio::test]
async fn a_session_refers_to_files_beside_it() {
    let server = Server::start(|_, _| says("A tree.")).await;
    let root = repository(&server.url);
    let at = |name: &str| root.path().join(name);
    std::fs::write(at("tree.png"), PNG).expect("writable");
    let first = [
        "send", "--trust", "Tester", "-m", "What?", "--attach", "tree.png", "--save", "s.jsonl",
    ];
    let ran = run(root.path(), &first).await;
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (0, "A tree.\n"),
        "{}",
        ran.err
    );
    let saved = std::fs::read_to_string(at("s.jsonl")).expect("it is saved");
    assert!(
        saved.contains("\"reference\":\"tree.png\"") && !saved.contains("iVBORw0KGgo"),
        "{saved}"
    );

    let again = [
        "send", "--trust", "Tester", "-m", "And?", "--resume", "s.jsonl",
    ];
    assert_eq!(run(root.path(), &again).await.code, 0);
    let sent: Vec<String> = server
        .received()
        .iter()
        .map(|received| received.json()["messages"].to_string())
        .collect();
    let image = "data:image/png;base64,iVBORw0KGgowMDAw";
    assert!(
        sent.iter()
            .all(|messages| messages.matches(image).count() == 1),
        "{sent:#?}"
    );
    let before = std::fs::read(at("s.jsonl")).expect("it is saved");

    std::fs::write(at("tree.png"), b"\x89PNG\r\n\x1a\n0001").expect("writable");
    let changed = run(root.path(), &again).await;
    assert!(
        changed.code == 2 && changed.err.contains("has changed since"),
        "{}",
        changed.err
    );
    std::fs::remove_file(at("tree.png")).expect("it is there");
    let gone = run(root.path(), &again).await;
    assert!(
        gone.code == 2
            && gone
                .err
                .contains("`tree.png` cannot be loaded: there is no such file"),
        "{}",
        gone.err
    );
    assert_eq!(
        std::fs::read(at("s.jsonl")).expect("it is saved"),
        before,
        "nothing is lost or added"
    );
    assert_eq!(server.received().len(), 2, "nothing was sent");

    std::fs::write(at("tree.png"), PNG).expect("writable");
    assert_eq!(run(root.path(), &again).await.code, 0, "it goes on");
}

#[tokio::test]
async fn no_path_leads_out_of_the_folder() {
    let server = Server::start(|_, _| says("ok")).await;
    let root = repository(&server.url);
    std::fs::write(root.path().join("secret.png"), PNG).expect("writable");
    std::fs::create_dir(root.path().join("below")).expect("writable");
    std::fs::write(root.path().join("below/.hidden.png"), PNG).expect("writable");
    #[cfg(unix)]
    std::os::unix::fs::symlink("../secret.png", root.path().join("below/link.png"))
        .expect("a link");
    let absolute = root
        .path()
        .join("secret.png")
        .to_string_lossy()
        .into_owned();
    for path in [
        "../secret.png",
        "link.png",
        ".hidden.png",
        "a/../../secret.png",
        &absolute,
        "",
        ".",
    ] {
        let arguments = [
            "send",
            "--trust",
            "Tester",
            "-m",
            "Hi",
            "--attach",
            path,
            "--save",
            "below/s.jsonl",
        ];
        let ran = run(root.path(), &arguments).await;
        assert_eq!(ran.code, 2, "{path}: {}{}", ran.out, ran.err);
    }
    let alone = run(
        root.path(),
        &[
            "send",
            "--trust",
            "Tester",
            "-m",
            "Hi",
            "--attach",
            "secret.png",
        ],
    )
    .await;
    assert!(
        alone.code == 2 && alone.err.contains("`--save` or `--resume`"),
        "{}",
        alone.err
    );
    assert!(server.received().is_empty());
}
