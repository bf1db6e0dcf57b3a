//! From a place in rendered text back to the template that wrote it. Slow: used when something is wrong.
//!
//! Literal text reaches the output as slices of the template's source, so its address tells template and offset.
//! For a value, a formatter counts emissions; a second render that fails at the right one names the tag.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use minijinja::{Environment, Error, ErrorKind, Value};

use super::{Engine, Renderer, TemplateId, errors, functions};
use crate::source::{Sources, Span};

/// The place of what wrote the output's `range`, by its start.
pub(super) fn origin(
    renderer: &Renderer<'_>,
    sources: &Sources,
    id: TemplateId,
    root: &Value,
    range: Range<usize>,
) -> Span {
    let engine = renderer.engine;
    let name = &engine.templates[id.0 as usize].name;
    let whole = || engine.span(sources, name, 0..0);
    let pieces = record(&renderer.environment, name, root);
    let index = pieces.partition_point(|piece| piece.output.end <= range.start).min(pieces.len().saturating_sub(1));
    let Some(piece) = pieces.get(index) else { return whole() };
    match &piece.source {
        Source::Literal { template, offset } => {
            let from = range.start.clamp(piece.output.start, piece.output.end) - piece.output.start;
            let to = range.end.clamp(piece.output.start + from, piece.output.end) - piece.output.start;
            engine.compiled_span(sources, template, offset + from..offset + to)
        }
        Source::Emission(count) => match emission_error(&renderer.environment, name, root, *count) {
            Some(error) => tag(engine, sources, &error).unwrap_or_else(whole),
            None => whole(),
        },
    }
}

/// The expression of the tag that an error stands in: the engine knows only the operation that came last.
fn tag(engine: &Engine, sources: &Sources, error: &Error) -> Option<Span> {
    let innermost = *errors::chain(error).last()?;
    let (name, at) = (innermost.name()?, innermost.range()?);
    let template = engine.environment.get_template(name).ok()?;
    let text = template.source();
    let start = text.get(..at.start)?.rfind("{{").map_or(at.start, |open| open + "{{".len());
    let end = text.get(at.end..)?.find("}}").map_or(at.end, |close| at.end + close);
    let is_space = |c: char| c.is_whitespace() || matches!(c, '-' | '+');
    let inner = text.get(start..end)?.trim_end_matches(is_space);
    let lead = inner.len() - inner.trim_start_matches(is_space).len();
    Some(engine.compiled_span(sources, name, start + lead..start + inner.len()))
}

/// A run of output and what wrote it.
struct Piece {
    output: Range<usize>,
    source: Source,
}

enum Source {
    /// Text of a template.
    Literal { template: Arc<str>, offset: usize },
    /// The n-th emitted value, counted from 1.
    Emission(usize),
}

fn record(environment: &Environment<'static>, name: &str, root: &Value) -> Vec<Piece> {
    let emissions = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&emissions);
    let mut counting = environment.clone();
    counting.set_formatter(move |out, state, value| {
        counter.fetch_add(1, Ordering::Relaxed);
        functions::emit(out, state, value)
    });
    let texts: Vec<(Arc<str>, Range<usize>)> =
        counting.templates().map(|(name, template)| (Arc::from(name), address(template.source().as_bytes()))).collect();
    let mut recorder = Recorder { texts, emissions, pieces: Vec::new(), len: 0 };
    if let Ok(template) = counting.get_template(name) {
        // What was written before a failure is as good as all of it.
        let _ = template.render_captured_to(root.clone(), &mut recorder);
    }
    recorder.pieces
}

/// The error of a render that fails at its n-th emission: it knows the tag.
fn emission_error(environment: &Environment<'static>, name: &str, root: &Value, count: usize) -> Option<Error> {
    let emissions = AtomicUsize::new(0);
    let mut failing = environment.clone();
    failing.set_formatter(move |out, state, value| match emissions.fetch_add(1, Ordering::Relaxed) + 1 == count {
        true => Err(Error::new(ErrorKind::InvalidOperation, "found")),
        false => functions::emit(out, state, value),
    });
    failing.get_template(name).ok()?.render(root.clone()).err()
}

fn address(bytes: &[u8]) -> Range<usize> {
    let start = bytes.as_ptr() as usize;
    start..start + bytes.len()
}

struct Recorder {
    texts: Vec<(Arc<str>, Range<usize>)>,
    emissions: Arc<AtomicUsize>,
    pieces: Vec<Piece>,
    len: usize,
}

impl io::Write for Recorder {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let at = address(bytes);
        let literal = self.texts.iter().find(|(_, text)| text.start <= at.start && at.end <= text.end);
        let source = match literal {
            Some((template, text)) if !bytes.is_empty() => {
                Source::Literal { template: Arc::clone(template), offset: at.start - text.start }
            }
            _ => Source::Emission(self.emissions.load(Ordering::Relaxed)),
        };
        self.pieces.push(Piece { output: self.len..self.len + bytes.len(), source });
        self.len += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
