//! Reads git objects: first the size, then the bytes.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStdin, ChildStdout, Stdio};

use super::program::Git;
use super::running::Running;
use super::stand_in::ObjectFormat;
use crate::system::words;
use crate::world::{AccessError, MAX_REPOSITORY_BYTES};

/// A `git cat-file --batch` process. Objects are requested one at a time, so that no pipe fills up.
pub(super) struct Objects {
    running: Running,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    format: ObjectFormat,
    /// The number of bytes that may still be read.
    left: u64,
}

/// The fields that git prints before the bytes of an object.
struct Header {
    kind: String,
    size: u64,
}

impl Objects {
    pub(super) fn open(git: &Git, format: ObjectFormat) -> Result<Objects, AccessError> {
        let mut command = git.command(&["cat-file", "--batch"]);
        let running = Running::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()))?;
        match (running.take_input(), running.take_output()) {
            (Some(input), Some(output)) => {
                let output = BufReader::new(output);
                Ok(Objects {
                    running,
                    input,
                    output,
                    format,
                    left: MAX_REPOSITORY_BYTES,
                })
            }
            _ => Err("git cannot be run: its pipes are missing".into()),
        }
    }

    pub(super) fn format(&self) -> ObjectFormat {
        self.format
    }

    /// Returns the bytes of an object, or an error if the object is not of this kind.
    pub(super) fn read(
        &mut self,
        name: &str,
        kind: &str,
        limit: u64,
    ) -> Result<Vec<u8>, AccessError> {
        if !self.format.names(name) && !name.ends_with("^{tree}") {
            return Err(unreadable(name, "has a name that git does not use"));
        }
        self.running.lives();
        let header = self
            .ask(name)
            .map_err(|why| unreadable(name, self.running.why().unwrap_or(why)))?;
        if header.kind != kind {
            return Err(unreadable(
                name,
                format!("is a {}, not a {kind}", header.kind),
            ));
        }
        if header.size > limit {
            return Err(unreadable(
                name,
                format!("has {} bytes; the limit is {limit}", header.size),
            ));
        }
        if header.size > self.left {
            return Err(format!(
                "its files are larger than {} MiB in total",
                MAX_REPOSITORY_BYTES >> 20
            )
            .into());
        }
        self.left -= header.size;
        let bytes = self
            .bytes(header.size)
            .map_err(|error| self.running.why().unwrap_or_else(|| words(&error).into()));
        bytes.map_err(|why| unreadable(name, format!("cannot be read: {why}")))
    }

    fn ask(&mut self, name: &str) -> Result<Header, AccessError> {
        let mut line = Vec::new();
        let asked = writeln!(self.input, "{name}").and_then(|()| self.input.flush());
        let answered = asked.and_then(|()| {
            (&mut self.output)
                .take(1 << 10)
                .read_until(b'\n', &mut line)
        });
        answered.map_err(|error| format!("cannot be read: {}", words(&error)))?;
        let line = String::from_utf8_lossy(&line);
        // The line is `<object> <type> <size>` or `<object> missing`.
        let mut parts = line.trim_end().rsplit(' ');
        match (parts.next().map(str::parse), parts.next()) {
            (Some(Ok(size)), Some(kind)) => Ok(Header {
                kind: kind.to_owned(),
                size,
            }),
            _ if line.ends_with(" missing\n") => Err("is missing".into()),
            _ if line.is_empty() => Err("cannot be read: git stopped".into()),
            _ => Err("is not an object name".into()),
        }
    }

    fn bytes(&mut self, size: u64) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        (&mut self.output).take(size).read_to_end(&mut bytes)?;
        let mut newline = [0];
        self.output.read_exact(&mut newline)?;
        match bytes.len() as u64 == size {
            true => Ok(bytes),
            false => Err(std::io::Error::other("git stopped")),
        }
    }
}

fn unreadable(name: &str, why: impl std::fmt::Display) -> AccessError {
    format!("the object {name} {why}").into()
}
