//! From a place in rendered text back to the template that wrote it. Slow: used when something is wrong.
//!
//! Literal text reaches the output as slices of the template's source, so its address tells template and offset.
//! For a value, a formatter counts emissions; a second render that fails at the right one names the tag.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use minijinja::{Environment, Error, ErrorKind, Value};

use super::{Engine, Renderer, TemplateId, account, errors, functions};
use crate::source::{Sources, Span};

/// What wrote a place of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The template's text or tag.
    pub span: Span,
    /// Where in the output the value starts that the place lies inside of; `None` for literal text and for the start of a
    /// value.
    pub inside_value_from: Option<usize>,
}

/// What wrote the output's `range`, by its start.
pub(super) fn origin(
    renderer: &Renderer<'_>,
    sources: &Sources,
    id: TemplateId,
    root: &Value,
    range: Range<usize>,
) -> Origin {
    let trace = Trace::new(renderer, sources, id, root);
    let pieces = &trace.pieces;
    let index = pieces.partition_point(|piece| piece.output.end <= range.start).min(pieces.len().saturating_sub(1));
    let Some(piece) = pieces.get(index) else { return Origin { span: trace.whole(), inside_value_from: None } };
    let start = piece.output.start;
    let is_inside = matches!(piece.source, Source::Emission(_)) && range.start > start;
    Origin { span: trace.span(piece, range), inside_value_from: is_inside.then_some(start) }
}

/// The tag that wrote nothing, somewhere in a range of the output.
pub(super) fn nothing(
    renderer: &Renderer<'_>,
    sources: &Sources,
    id: TemplateId,
    root: &Value,
    range: &Range<usize>,
) -> Option<Span> {
    let trace = Trace::new(renderer, sources, id, root);
    let is_there = |piece: &&Piece| {
        piece.output.is_empty() && range.start <= piece.output.start && piece.output.start <= range.end
    };
    let piece = trace.pieces.iter().rev().find(is_there)?;
    Some(trace.span(piece, piece.output.clone()))
}

/// One render, piece by piece.
struct Trace<'t> {
    renderer: &'t Renderer<'t>,
    sources: &'t Sources,
    name: &'t str,
    root: &'t Value,
    pieces: Vec<Piece>,
}

impl<'t> Trace<'t> {
    fn new(renderer: &'t Renderer<'t>, sources: &'t Sources, id: TemplateId, root: &'t Value) -> Trace<'t> {
        let name = &renderer.engine.templates[id.0 as usize].name;
        let (pieces, _) = account::metered(|| record(&renderer.environment, name, root));
        Trace { renderer, sources, name, root, pieces }
    }

    /// The start of the template.
    fn whole(&self) -> Span {
        self.renderer.engine.span(self.sources, self.name, 0..0)
    }

    /// The part of the template that wrote `range` of the output, which starts in `piece`.
    fn span(&self, piece: &Piece, range: Range<usize>) -> Span {
        let engine = self.renderer.engine;
        match &piece.source {
            Source::Literal { template, offset } => {
                let from = range.start.clamp(piece.output.start, piece.output.end) - piece.output.start;
                let to = range.end.clamp(piece.output.start + from, piece.output.end) - piece.output.start;
                engine.compiled_span(self.sources, template, offset + from..offset + to)
            }
            Source::Emission(count) => {
                let (error, _) =
                    account::metered(|| emission_error(&self.renderer.environment, self.name, self.root, *count));
                error.and_then(|error| tag(engine, self.sources, &error)).unwrap_or_else(|| self.whole())
            }
        }
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
    let mut recorder = Recorder { texts, emissions, pieces: Vec::new(), len: 0, told: 0 };
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
    /// How many emissions have a piece, or were passed over.
    told: usize,
}

impl io::Write for Recorder {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let at = address(bytes);
        let literal = self.texts.iter().find(|(_, text)| text.start <= at.start && at.end <= text.end);
        let emitted = self.emissions.load(Ordering::Relaxed);
        if literal.is_some() && emitted > self.told {
            // The last value wrote nothing.
            self.pieces.push(Piece { output: self.len..self.len, source: Source::Emission(emitted) });
        }
        self.told = emitted;
        let source = match literal {
            Some((template, text)) if !bytes.is_empty() => {
                Source::Literal { template: Arc::clone(template), offset: at.start - text.start }
            }
            _ => Source::Emission(emitted),
        };
        self.pieces.push(Piece { output: self.len..self.len + bytes.len(), source });
        self.len += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
