//! Ctrl-C and similar signals: the first cancels the request, the second ends the process.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::runtime::Session;

/// The maximum time for writing the last output of a cancelled request, in case it is not read.
const PATIENCE: Duration = Duration::from_secs(2);

/// Cancels the request at the first signal, whatever the program is doing. After a second signal,
/// or after `PATIENCE` if the output is not read, ends the process as soon as the request has
/// ended, so that no tool is left running.
pub(super) async fn watch(session: Session, cancel: CancellationToken) {
    let mut signals = Signals::new();
    signals.next().await;
    cancel.cancel();
    tokio::select! {
        () = signals.next() => {}
        () = tokio::time::sleep(PATIENCE) => {}
    }
    session.idle().await;
    crate::system::end_the_rest();
    std::process::exit(130);
}

#[cfg(unix)]
struct Signals(Vec<tokio::signal::unix::Signal>);

#[cfg(unix)]
impl Signals {
    fn new() -> Signals {
        use tokio::signal::unix::{SignalKind, signal};
        let kinds = [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
        ];
        // A signal that cannot be handled keeps its default action.
        Signals(
            kinds
                .into_iter()
                .filter_map(|kind| signal(kind).ok())
                .collect(),
        )
    }

    async fn next(&mut self) {
        std::future::poll_fn(|context| {
            let ready = self
                .0
                .iter_mut()
                .any(|signal| signal.poll_recv(context).is_ready());
            if ready {
                std::task::Poll::Ready(())
            } else {
                std::task::Poll::Pending
            }
        })
        .await;
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> Signals {
        Signals
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
