//! The standard output of a server, with one message per line. Other lines are counted, and the
//! first is kept for errors.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// The maximum amount of output that does not consist of messages, in bytes.
const MAX_NOISE: usize = 1024 * 1024;

/// The number of bytes kept from the first line that is not a message.
const SHOWN: usize = 120;

/// A record of a server's standard output, for error messages.
#[derive(Debug, Default)]
pub(super) struct Watch(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    /// The beginning of the first line that is not a message.
    noise: Vec<u8>,
    /// The reason reading has stopped.
    end: Option<&'static str>,
}

impl Watch {
    /// Returns the problem with the output, if any, as a predicate whose subject is the server.
    pub(super) fn problem(&self) -> Option<String> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let noise = String::from_utf8_lossy(&seen.noise);
        match (seen.end, noise.trim()) {
            (Some(end), _) => Some(end.to_owned()),
            (None, "") => None,
            (None, noise) => Some(format!(
                "it wrote `{noise}` to standard output, which is reserved for messages"
            )),
        }
    }

    fn with(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Reads the lines of a server, up to the first one that is too long, or until the limit of other
/// output is exceeded.
pub(super) struct Lines<R> {
    inner: R,
    watch: Arc<Watch>,
    longest: usize,
    /// The length of the current line so far.
    length: usize,
    /// `Some(true)` if the line is not a message; `None` before its first visible character.
    is_noise: Option<bool>,
    /// The number of bytes so far that are not part of messages.
    noise: usize,
    has_ended: bool,
}

impl<R> Lines<R> {
    /// Returns a reader of lines with at most `longest` bytes.
    pub(super) fn new(inner: R, longest: usize, watch: Arc<Watch>) -> Lines<R> {
        Lines {
            inner,
            watch,
            longest,
            length: 0,
            is_noise: None,
            noise: 0,
            has_ended: false,
        }
    }

    /// Returns `true` if the bytes may be passed on.
    fn accepts(&mut self, bytes: &[u8]) -> bool {
        bytes
            .split_inclusive(|byte| *byte == b'\n')
            .all(|piece| self.accepts_piece(piece))
    }

    /// Checks a piece of one line.
    fn accepts_piece(&mut self, piece: &[u8]) -> bool {
        self.length += piece.len();
        let first = piece.iter().find(|byte| !byte.is_ascii_whitespace());
        self.is_noise = self.is_noise.or(first.map(|first| *first != b'{'));
        if self.is_noise == Some(true) {
            self.noise += piece.len();
            self.watch.with(|seen| {
                let room = SHOWN.saturating_sub(seen.noise.len());
                let is_first = self.noise < SHOWN && !seen.noise.contains(&b'\n');
                seen.noise.extend_from_slice(
                    &piece[..piece.len().min(room).min(if is_first { SHOWN } else { 0 })],
                );
            });
        }
        let end = match () {
            () if self.length > self.longest => Some("it wrote a message of more than 16 MiB"),
            () if self.noise > MAX_NOISE => {
                Some("it wrote more than 1 MiB of output other than messages to standard output")
            }
            () => None,
        };
        if piece.ends_with(b"\n") {
            (self.length, self.is_noise) = (0, None);
        }
        if end.is_some() {
            self.watch.with(|seen| seen.end = end);
        }
        end.is_none()
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Lines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.has_ended {
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        if !self.accepts(&buffer.filled()[before..]) {
            // End as if the server had closed its output.
            self.has_ended = true;
            buffer.set_filled(before);
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    async fn read(bytes: &[u8], longest: usize) -> (Vec<u8>, Option<String>) {
        let watch = Arc::<Watch>::default();
        let mut read = Vec::new();
        Lines::new(bytes, longest, Arc::clone(&watch))
            .read_to_end(&mut read)
            .await
            .expect("memory");
        (read, watch.problem())
    }

    #[tokio::test]
    async fn messages_pass() {
        let text = b"{\"a\":1}\n\n  {\"b\":2}\r\n{";
        assert_eq!(read(text, 100).await, (text.to_vec(), None));
    }

    #[tokio::test]
    async fn the_first_line_that_is_no_message_is_remembered() {
        let text = b"Starting\xff ...\n{\"a\":1}\nmore\n";
        let (passed, problem) = read(text, 100).await;
        let expected =
            "it wrote `Starting\u{fffd} ...` to standard output, which is reserved for messages";
        assert_eq!(
            (passed.len(), problem.as_deref()),
            (text.len(), Some(expected))
        );
    }

    #[tokio::test]
    async fn reading_ends_where_it_is_too_much() {
        let (passed, problem) = read(&b"{".repeat(100), 50).await;
        assert!(passed.len() <= 50 && problem.is_some_and(|it| it.contains("16 MiB")));
        let (passed, problem) = read(&b"noise\n".repeat(1_000_000), 50).await;
        assert!(passed.len() <= MAX_NOISE && problem.is_some_and(|it| it.contains("1 MiB")));
    }
}
