//! A progress bar for long runs.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A counter of agents or bytes. It is drawn on a terminal if a run takes more than a second.
pub(super) struct Progress {
    done: Arc<AtomicUsize>,
    painter: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    pub(super) fn start(total: usize, quiet: bool) -> Progress {
        Progress::with_style(total, quiet, "{bar:30} {pos}/{len} agents")
    }

    /// Creates a counter of bytes.
    pub(super) fn of_bytes(total: u64, quiet: bool) -> Progress {
        Progress::with_style(
            usize::try_from(total).unwrap_or(usize::MAX),
            quiet,
            "{bar:30} {bytes}/{total_bytes} {eta}",
        )
    }

    fn with_style(total: usize, quiet: bool, style: &'static str) -> Progress {
        let done = Arc::new(AtomicUsize::new(0));
        let painter = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let (stop, stopped) = mpsc::channel::<()>();
            let count = Arc::clone(&done);
            let thread = std::thread::spawn(move || paint(total, style, &count, &stopped));
            (stop, thread)
        });
        Progress { done, painter }
    }

    /// Adds 1 to the count.
    pub(super) fn tick(&self) {
        self.add(1);
    }

    /// Adds `more` to the count.
    pub(super) fn add(&self, more: usize) {
        self.done.fetch_add(more, Ordering::Relaxed);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.painter.take() {
            drop(stop);
            // If the drawing thread panicked, nothing needs to be done.
            let _ = thread.join();
        }
    }
}

fn paint(total: usize, style: &str, done: &AtomicUsize, stopped: &mpsc::Receiver<()>) {
    if stopped.recv_timeout(Duration::from_secs(1)) != Err(RecvTimeoutError::Timeout) {
        return;
    }
    let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    while stopped.recv_timeout(Duration::from_millis(100)) == Err(RecvTimeoutError::Timeout) {
        bar.set_position(done.load(Ordering::Relaxed) as u64);
    }
    bar.finish_and_clear();
}
