//! Tools that are programs: they read arguments as JSON from standard input, and write the result
//! to standard output.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};

use super::{BoxFuture, Tool, ToolContext, ToolOutput};
use crate::conversation::Tool as Definition;
use crate::repo::{ProgramSpec, ToolSpec};
use crate::world::AccessError;

/// Runs programs. [`SystemProcesses`](crate::system::SystemProcesses) runs them on this machine.
pub trait Processes: Send + Sync {
    /// Checks that a program exists and can be run.
    ///
    /// # Errors
    ///
    /// Returns a phrase that says why it cannot be run.
    fn find(&self, program: &str) -> Result<(), AccessError>;

    /// Runs a program until it ends or exceeds a limit. Dropping the future kills the program and
    /// its child processes.
    fn run<'a>(&'a self, process: Process<'a>) -> BoxFuture<'a, Ended>;

    /// Starts a program that keeps running. Its standard error output is written to `complaint`.
    /// Only MCP servers need this.
    ///
    /// # Errors
    ///
    /// Returns a phrase that says why it does not start.
    fn start(
        &self,
        program: &ProgramSpec,
        complaint: Complaint,
    ) -> Result<RunningProgram, AccessError> {
        drop(complaint);
        Err(format!(
            "`{}` cannot be started: this host runs no servers",
            program.name.value
        )
        .into())
    }
}

/// A program that keeps running.
pub struct RunningProgram {
    /// The program's standard input. The program should end when this is closed.
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    /// The program's standard output.
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    /// A future that completes with the exit status when the program has ended; `None` if a signal
    /// ended it. Dropping the future kills the program and its child processes.
    pub ended: BoxFuture<'static, Option<i32>>,
}

/// The last part of a program's standard error output so far.
#[derive(Debug, Clone, Default)]
pub struct Complaint(Arc<Mutex<Vec<u8>>>);

impl Complaint {
    /// The maximum number of bytes kept.
    pub const MAX_BYTES: usize = 4 * 1024;

    /// Adds output. Only the last bytes are kept.
    pub fn push(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(bytes);
        let surplus = kept.len().saturating_sub(Complaint::MAX_BYTES);
        kept.drain(..surplus);
    }

    /// Returns the bytes that were kept.
    pub fn into_bytes(self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the bytes that were kept as text. Bytes that are not UTF-8 become U+FFFD.
    pub fn text(&self) -> String {
        text(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A program to run.
#[derive(Debug, Clone, Copy)]
pub struct Process<'a> {
    /// The program, its folder and its limits.
    pub spec: &'a ToolSpec,
    /// The text for standard input.
    pub input: &'a str,
}

/// The way a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The program exited by itself, or a signal ended it.
    Exited {
        /// The exit status; `None` if a signal ended the program.
        code: Option<i32>,
        /// The standard output.
        output: Vec<u8>,
        /// The last part of the standard error output.
        complaint: Vec<u8>,
    },
    /// The program exceeded the time limit and was killed.
    TimedOut {
        /// The last part of the standard error output.
        complaint: Vec<u8>,
    },
    /// The program exceeded the output limit and was killed.
    TooMuchOutput {
        /// The standard output, up to the limit.
        output: Vec<u8>,
    },
    /// The program did not start, or its pipes failed. Contains the reason.
    Failed(String),
}

/// A tool that is a program.
#[derive(Clone)]
pub struct ProcessTool {
    spec: ToolSpec,
    processes: Arc<dyn Processes>,
}

impl ProcessTool {
    /// Returns the tool for an entry in `tools.toml`.
    pub fn new(spec: ToolSpec, processes: Arc<dyn Processes>) -> ProcessTool {
        ProcessTool { spec, processes }
    }

    async fn run(&self, input: &Value) -> ToolOutput {
        let input = input.to_string();
        answer(
            self.processes
                .run(Process {
                    spec: &self.spec,
                    input: &input,
                })
                .await,
            &self.spec,
        )
    }
}

impl Tool for ProcessTool {
    fn definition(&self) -> &Definition {
        &self.spec.definition
    }

    fn call(&self, input: Value, context: ToolContext) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async move {
            tokio::select! {
                output = self.run(&input) => output,
                () = context.cancelled.cancelled() => ToolOutput::cancelled(),
            }
        })
    }
}

impl fmt::Debug for ProcessTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessTool")
            .field("spec", &self.spec)
            .finish_non_exhaustive()
    }
}

/// Returns the output for the model, depending on how the program ended.
fn answer(ended: Ended, spec: &ToolSpec) -> ToolOutput {
    match ended {
        Ended::Exited {
            code: Some(0),
            output,
            ..
        } => ToolOutput::text(text(&output)),
        Ended::Exited {
            code,
            output,
            complaint,
        } => {
            let how = match code {
                Some(code) => format!("the tool failed with exit status {code}"),
                None => "the tool was killed by a signal".to_owned(),
            };
            let said = if complaint.iter().all(u8::is_ascii_whitespace) {
                output
            } else {
                complaint
            };
            failure(&how, &said)
        }
        Ended::TimedOut { complaint } => failure(
            &format!("the tool was stopped after {}", seconds(spec.time_limit)),
            &complaint,
        ),
        Ended::TooMuchOutput { output } => {
            let limit = spec.output_limit;
            failure(
                &format!(
                    "the tool wrote more than {limit} bytes and was stopped; the output began with"
                ),
                &output,
            )
        }
        Ended::Failed(why) => ToolOutput::error(format!("the tool could not be run: {why}")),
    }
}

fn failure(how: &str, said: &[u8]) -> ToolOutput {
    match text(said).trim() {
        "" => ToolOutput::error(how),
        said => ToolOutput::error(format!("{how}:\n{said}")),
    }
}

/// Converts bytes to text, because models read only text. Bytes that are not UTF-8 become U+FFFD.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(super) fn seconds(limit: Duration) -> String {
    match limit.as_secs() {
        1 => "1 second".to_owned(),
        seconds => format!("{seconds} seconds"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::read_tools;
    use crate::source::Sources;
    use crate::world::MemoryWorld;
    use serde_json::json;
    use tokio::sync::mpsc;
    use tokio_util::sync::CancellationToken;

    /// Ends programs with a fixed result; with `None`, they never end.
    struct Scripted(Option<Ended>);

    impl Processes for Scripted {
        fn find(&self, _program: &str) -> Result<(), AccessError> {
            Ok(())
        }

        fn run<'a>(&'a self, process: Process<'a>) -> BoxFuture<'a, Ended> {
            assert_eq!(process.input, "{\"a\":1}");
            match self.0.clone() {
                Some(ended) => Box::pin(std::future::ready(ended)),
                None => Box::pin(std::future::pending()),
            }
        }
    }

    async fn call(ended: Option<Ended>, cancelled: &CancellationToken) -> ToolOutput {
        let text =
            "[[tool]]\nname = \"t\"\ndescription = \"d\"\ncommand = [\"p\"]\ntimeout_seconds = 1";
        let world = MemoryWorld::from_iter([("tools.toml", text)]);
        let spec = read_tools(&world, "tools.toml", &mut Sources::default())
            .0
            .tools
            .remove(0);
        let context = ToolContext::new("1".into(), cancelled.clone(), mpsc::channel(1).0);
        ProcessTool::new(spec, Arc::new(Scripted(ended)))
            .call(json!({"a": 1}), context)
            .await
    }

    #[tokio::test]
    async fn the_model_is_told_how_a_program_ended() {
        let said = async |ended| {
            let output = call(Some(ended), &CancellationToken::new()).await;
            (output.is_error, output.content.to_string())
        };
        let exited = |code, output: &[u8], complaint: &[u8]| Ended::Exited {
            code,
            output: output.to_vec(),
            complaint: complaint.to_vec(),
        };
        assert_eq!(
            said(exited(Some(0), b" a\xff\n", b"note")).await,
            (false, " a\u{fffd}\n".into())
        );
        assert_eq!(
            said(exited(Some(2), b"out", b"why\n")).await,
            (true, "the tool failed with exit status 2:\nwhy".into())
        );
        assert_eq!(
            said(exited(None, b"out", b"\n")).await,
            (true, "the tool was killed by a signal:\nout".into())
        );
        assert_eq!(
            said(Ended::TimedOut {
                complaint: Vec::new()
            })
            .await,
            (true, "the tool was stopped after 1 second".into())
        );
        let long = said(Ended::TooMuchOutput {
            output: b"abc".to_vec(),
        })
        .await
        .1;
        assert_eq!(
            long,
            "the tool wrote more than 65536 bytes and was stopped; the output began with:\nabc"
        );
        assert_eq!(
            said(Ended::Failed("no".into())).await,
            (true, "the tool could not be run: no".into())
        );
    }

    #[tokio::test]
    async fn cancelling_ends_a_call() {
        let cancelled = CancellationToken::new();
        cancelled.cancel();
        assert!(call(None, &cancelled).await.is_error);
    }
}
