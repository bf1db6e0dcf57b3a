//! Reads the files of both layers.

use std::collections::BTreeMap;
use std::mem::take;
use std::sync::Arc;

use super::instance::{self, RawInstance};
use super::listing::Listing;
use super::unread::{self, Suspicion};
use super::{
    AgentModel, Config, Family, Layer, LayerFile, LayerKind, Loaded, Reader, Repo, Roster,
    ToolsFile, families, folders, roster, rules, tools,
};
use crate::diag::{Diagnostic, Edit};
use crate::secret;
use crate::source::{BUNDLED, FileId, SourceText, Sources, Span, Spanned, TextError};
use crate::toml::{self, Table};
use crate::world::{EntryKind, MAX_FILE_BYTES, MAX_REPOSITORY_BYTES, ReadError, Unread, World};

/// The options for loading a repository.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LoadOptions {
    /// Compiles the bundled agents too.
    pub with_bundled: bool,
    /// Excludes bundled profiles, partials and roles.
    pub without_bundled: bool,
}

/// Reads a repository. `bundled` contains the files embedded in the program, which are ignored if
/// the root itself is the bundled layer. If they are built in, the model families are the program's
/// own.
pub fn load(own: Arc<dyn World>, bundled: Arc<dyn World>, options: LoadOptions) -> Loaded {
    let mut loader = Loader::default();
    let config = loader.config(&own);
    let mut layers = Vec::new();
    if config.is_bundled_layer {
        layers.push(Layer {
            kind: LayerKind::Bundled,
            world: own,
            active: true,
            compiled: true,
        });
    } else {
        let active = !options.without_bundled;
        let compiled = active && options.with_bundled;
        layers.push(Layer {
            kind: LayerKind::Bundled,
            world: bundled,
            active,
            compiled,
        });
        layers.push(Layer {
            kind: LayerKind::Own,
            world: own,
            active: true,
            compiled: true,
        });
    }
    for layer in &layers {
        loader.shown_below = shown_below(layer, &config);
        loader.layer(layer);
    }
    let families = loader.families(&layers, &config);
    let root = &layers[layers.len() - 1];
    loader.shown_below.clear();
    let models = loader.models(root);
    let rosters = loader.rosters(root);
    Loaded {
        repo: Repo {
            models,
            families,
            rosters,
            ..loader.repo(layers, config)
        },
        findings: loader.findings,
    }
}

/// Returns the prefix that reports put before the paths of a layer.
fn shown_below(layer: &Layer, config: &Config) -> String {
    let is_embedded = layer.kind == LayerKind::Bundled && !config.is_bundled_layer;
    if is_embedded { BUNDLED } else { "" }.to_owned()
}

/// Reads a `tools.toml`. The root of `world` is the file's folder; nothing outside it is read.
pub fn read_tools(
    world: &dyn World,
    path: &str,
    sources: &mut Sources,
) -> (ToolsFile, Vec<Diagnostic>) {
    read_tools_below("", world, path, sources)
}

/// Reads a `tools.toml`. Reports display the root of `world` as `folder`, which includes the final
/// `/`.
pub(crate) fn read_tools_below(
    folder: &str,
    world: &dyn World,
    path: &str,
    sources: &mut Sources,
) -> (ToolsFile, Vec<Diagnostic>) {
    let mut loader = Loader {
        sources: take(sources),
        shown_below: folder.to_owned(),
        ..Loader::default()
    };
    let read = loader.toml(world, path);
    let tools = read
        .map(|(file, table)| tools::read(world, file, &table, &mut loader.findings))
        .unwrap_or_default();
    *sources = loader.sources;
    (tools, loader.findings)
}

#[derive(Default)]
struct Loader {
    sources: Sources,
    findings: Vec<Diagnostic>,
    /// The prefix that reports put before file paths.
    shown_below: String,
    profiles: Vec<LayerFile>,
    unreadable_profiles: Vec<LayerFile>,
    partials: BTreeMap<Arc<str>, LayerFile>,
    contexts: Vec<LayerFile>,
    schemas: BTreeMap<Arc<str>, Vec<LayerFile>>,
    raw_instances: BTreeMap<Arc<str>, RawInstance>,
    unreadable_partials: BTreeMap<Arc<str>, FileId>,
    unlisted_partials: Vec<String>,
    /// The total number of bytes read so far.
    bytes_read: u64,
}

impl Loader {
    fn config(&mut self, own: &Arc<dyn World>) -> Config {
        if own.kind(folders::CONFIG) == Err(ReadError::Missing) {
            return Config::default();
        }
        match self.toml(own.as_ref(), folders::CONFIG) {
            Some((file, table)) => Config::read(file, &table, &mut self.findings),
            None => Config::default(),
        }
    }

    fn models(&mut self, layer: &Layer) -> BTreeMap<Arc<str>, AgentModel> {
        let mut models = BTreeMap::new();
        if layer.world.kind("models.toml") != Err(ReadError::Missing)
            && let Some((file, table)) = self.toml(layer.world.as_ref(), "models.toml")
        {
            let mut reader = Reader::new(file, &table, &mut self.findings);
            for (key, node) in &table.entries {
                match reader.string_at(&key.name, node) {
                    Some(Spanned { value, span }) => {
                        let name = Span::new(file, key.span.clone());
                        models.insert(Arc::from(key.name.as_str()), AgentModel { name, value, span });
                    }
                    None => reader.help(
                        "each line maps the name of an agent to the id of its model: `\"My Agent\" = \"model-id\"`",
                    ),
                }
            }
        }
        models
    }

    /// Returns the model families, including the bundled ones even if bundled profiles are
    /// excluded.
    fn families(&mut self, layers: &[Layer], config: &Config) -> Vec<Arc<Family>> {
        let mut of_layers = layers.iter().map(|layer| {
            self.shown_below = shown_below(layer, config);
            match self.family_table(layer.world.as_ref()) {
                Some((file, table)) => families::read(file, &table, &mut self.findings),
                None => Vec::new(),
            }
        });
        let bundled = of_layers.next().unwrap_or_default();
        let own = of_layers.next().unwrap_or_default();
        drop(of_layers);
        self.shown_below.clear();
        families::merged(bundled, own)
            .into_iter()
            .map(Arc::new)
            .collect()
    }

    /// Reads a layer's families. The program's own were converted when it was built: they have no
    /// locations, and their file is empty.
    fn family_table(&mut self, world: &dyn World) -> Option<(FileId, Table)> {
        if world.is_built_in() {
            let shown = format!("{}{}", self.shown_below, folders::MODEL_FAMILIES);
            let file = self.sources.add(shown.as_str(), SourceText::salvage(b""));
            return Some((file, families::bundled()));
        }
        if world.kind(folders::MODEL_FAMILIES) == Err(ReadError::Missing) {
            return None;
        }
        self.toml(world, folders::MODEL_FAMILIES)
    }

    fn rosters(&mut self, layer: &Layer) -> Vec<Roster> {
        if layer.world.kind("rosters.toml") == Err(ReadError::Missing) {
            return Vec::new();
        }
        match self.toml(layer.world.as_ref(), "rosters.toml") {
            Some((file, table)) => roster::read(file, &table, &mut self.findings),
            None => Vec::new(),
        }
    }

    fn layer(&mut self, layer: &Layer) {
        let world = layer.world.as_ref();
        let listing = Listing::of(world);
        listing
            .unread
            .iter()
            .for_each(|folder| self.unread(world, folder));
        if layer.active {
            for path in &listing.profiles {
                match self.read(world, path) {
                    Ok(file) => self.profiles.push(LayerFile {
                        file,
                        layer: layer.kind,
                    }),
                    Err(file) => self.unreadable_profiles.push(LayerFile {
                        file,
                        layer: layer.kind,
                    }),
                }
            }
            for (name, path) in &listing.partials {
                self.partial(layer, name, path);
            }
        }
        for path in &listing.contexts {
            if let Some(file) = self.text(world, path) {
                self.contexts.push(LayerFile {
                    file,
                    layer: layer.kind,
                });
            }
        }
        for path in &listing.schemas {
            if let Some(file) = self.text(world, path) {
                let name = path
                    .trim_start_matches("schemas/wire/")
                    .trim_end_matches(".json")
                    .trim_end_matches(".schema");
                self.schemas
                    .entry(Arc::from(name))
                    .or_default()
                    .push(LayerFile {
                        file,
                        layer: layer.kind,
                    });
            }
        }
        for path in &listing.providers {
            if let Some(raw) = self.raw_instance(layer, path) {
                self.instance(raw);
            }
        }
        if self.shown_below.is_empty() {
            self.not_read(world, &listing);
        }
    }

    /// Reports files that look like sources but are not read.
    fn not_read(&mut self, world: &dyn World, listing: &Listing) {
        let hidden = listing
            .hidden
            .iter()
            .map(|path| (path, String::new(), unread::hidden()));
        let mut found: Vec<(&String, String, Suspicion)> = hidden.collect();
        let mut left = unread::MAX_ALL_BYTES;
        for (path, like) in &listing.others {
            let bytes = match world.read_within(path, left.min(unread::MAX_BYTES)) {
                Ok(bytes) => bytes,
                Err(ReadError::TooLarge { limit, .. }) if limit < unread::MAX_BYTES => {
                    found.push((path, String::new(), unread::not_looked_at()));
                    break;
                }
                // A larger or unreadable file is not a source.
                Err(_) => Vec::new(),
            };
            left -= bytes.len() as u64;
            let text = String::from_utf8(bytes).unwrap_or_default();
            if let Some(suspicion) = unread::suspicion(path, &text, *like) {
                found.push((path, text, suspicion));
            }
        }
        let more = found.len().saturating_sub(unread::MOST);
        for (
            index,
            (
                path,
                text,
                Suspicion {
                    rule,
                    message,
                    help,
                },
            ),
        ) in found.into_iter().take(unread::MOST).enumerate()
        {
            let file = self
                .sources
                .add(path.as_str(), SourceText::salvage(text.as_bytes()));
            let others = if index + 1 == unread::MOST && more > 0 {
                format!(" (and {more} more)")
            } else {
                String::new()
            };
            let finding = Diagnostic::new(
                rule,
                Span::file_start(file),
                format!("`{path}` {message}{others}"),
            );
            self.findings.push(finding.help(help));
        }
    }

    fn raw_instance(&mut self, layer: &Layer, path: &str) -> Option<RawInstance> {
        let file = self.text(layer.world.as_ref(), path)?;
        // The program's own files contain no user secrets.
        if self.shown_below.is_empty() {
            for place in secret::places_to_hide(self.sources.get(file).text()) {
                self.sources.mask(Span::new(file, place));
            }
        }
        let text = self.sources.get(file).text();
        match toml::parse(text) {
            Ok(table) => RawInstance::read(file, layer.kind, &table, &mut self.findings),
            Err(error) => {
                let rest = toml::salvage(text, &error);
                self.findings.push(not_toml(file, error));
                let mut raw = RawInstance::read(file, layer.kind, &rest?, &mut Vec::new())?;
                raw.broken = true;
                Some(raw)
            }
        }
    }

    fn instance(&mut self, raw: RawInstance) {
        match self.raw_instances.get(&raw.name.value) {
            Some(known) if known.layer == raw.layer => {
                let message = format!(
                    "the provider instance `{}` is defined twice",
                    raw.name.value
                );
                let finding = Diagnostic::new(&rules::DUPLICATE_NAME, raw.name.span, message);
                self.findings.push(
                    finding
                        .related(known.name.span, "first defined here")
                        .help("rename one of them"),
                );
                debug_assert_ne!(known.file, raw.file);
            }
            _ => drop(self.raw_instances.insert(Arc::clone(&raw.name.value), raw)),
        }
    }

    fn partial(&mut self, layer: &Layer, name: &str, path: &str) {
        let name: Arc<str> = Arc::from(name);
        let file = match self.read(layer.world.as_ref(), path) {
            Ok(file) => file,
            Err(file) => {
                self.unreadable_partials.insert(name, file);
                return;
            }
        };
        let Some(known) = self.partials.get(&name) else {
            self.partials.insert(
                name,
                LayerFile {
                    file,
                    layer: layer.kind,
                },
            );
            return;
        };
        let (rule, message, help) = match known.layer == layer.kind {
            true => (
                &rules::DUPLICATE_NAME,
                format!("there are two partials `{name}`"),
                "rename one of them",
            ),
            false => (
                &rules::BUNDLED_NAME,
                format!("`{name}` is the name of a bundled partial"),
                "give yours a different name",
            ),
        };
        let finding = Diagnostic::new(rule, Span::file_start(file), message).help(help);
        self.findings
            .push(finding.related(Span::file_start(known.file), "the other one"));
    }

    /// Reads and parses a file. If this fails, reports a finding and returns `None`.
    fn toml(&mut self, world: &dyn World, path: &str) -> Option<(FileId, Table)> {
        let file = self.text(world, path)?;
        match toml::parse(self.sources.get(file).text()) {
            Ok(table) => Some((file, table)),
            Err(error) => {
                self.findings.push(not_toml(file, error));
                None
            }
        }
    }

    /// Reads and registers a file. If this fails, reports a finding and returns `None`.
    fn text(&mut self, world: &dyn World, path: &str) -> Option<FileId> {
        self.read(world, path).ok()
    }

    /// Reads and registers a file. If this fails, reports a finding, and returns the file that the
    /// finding refers to.
    fn read(&mut self, world: &dyn World, path: &str) -> Result<FileId, FileId> {
        let shown = format!("{}{path}", self.shown_below);
        let left = MAX_REPOSITORY_BYTES.saturating_sub(self.bytes_read);
        let bytes = match world.read_within(path, left.min(MAX_FILE_BYTES)) {
            Ok(bytes) => bytes,
            Err(error) => {
                let file = self.sources.add(shown.as_str(), SourceText::salvage(b""));
                self.findings.push(unreadable(file, &shown, &error, left));
                return Err(file);
            }
        };
        self.bytes_read += bytes.len() as u64;
        match SourceText::from_bytes(&bytes) {
            Ok(text) => Ok(self.sources.add(shown, text)),
            Err(error) => {
                let file = self
                    .sources
                    .add(shown.as_str(), SourceText::salvage(&bytes));
                self.findings.push(not_text(file, &bytes, &error, &shown));
                Err(file)
            }
        }
    }

    /// Reports that a folder could not be listed.
    fn unread(&mut self, world: &dyn World, folder: &Unread) {
        let shown = format!("{}{}", self.shown_below, folder.path);
        // A file where a folder is expected is shown without a final `/`.
        let is_file = world.kind(&folder.path) == Ok(EntryKind::File);
        let place = if is_file {
            shown.clone()
        } else {
            format!("{shown}/")
        };
        let file = self.sources.add(place.as_str(), SourceText::salvage(b""));
        if folder.path == "partials" || folder.path.starts_with("partials/") {
            self.unlisted_partials.push(folder.path.clone());
        }
        let message = format!("`{shown}` cannot be listed: {}", folder.why);
        let finding = Diagnostic::new(&rules::UNREADABLE, Span::file_start(file), message);
        self.findings
            .push(finding.help(how_to_make_readable(&folder.why)));
    }

    /// Returns the repository. Models, families and rosters, which only files at the root define,
    /// are left empty.
    fn repo(&mut self, layers: Vec<Layer>, config: Config) -> Repo {
        for finding in self
            .findings
            .iter()
            .filter(|finding| finding.rule == &rules::LITERAL_SECRET)
        {
            self.sources.mask(finding.primary.span);
        }
        let instances = instance::resolve(&self.raw_instances, &mut self.findings);
        let instance_files = instance::files(&self.raw_instances);
        Repo {
            has_built_in_layer: layers[0].world.is_built_in(),
            sources: take(&mut self.sources),
            is_bundled_root: config.is_bundled_layer,
            layers,
            config,
            profiles: take(&mut self.profiles),
            unreadable_profiles: take(&mut self.unreadable_profiles),
            partials: take(&mut self.partials),
            contexts: take(&mut self.contexts),
            schemas: take(&mut self.schemas),
            instances,
            instance_files,
            models: BTreeMap::new(),
            families: Vec::new(),
            rosters: Vec::new(),
            unreadable_partials: take(&mut self.unreadable_partials),
            unlisted_partials: take(&mut self.unlisted_partials),
        }
    }
}

/// Returns the finding about an unreadable file. `left` is the number of bytes allowed for all
/// remaining files.
fn unreadable(file: FileId, shown: &str, error: &ReadError, left: u64) -> Diagnostic {
    let (rule, message) = match error {
        ReadError::TooLarge { size, limit } if left < MAX_FILE_BYTES && *limit == left => {
            let most = MAX_REPOSITORY_BYTES >> 20;
            let message = format!(
                "`{shown}` has {size} bytes, which brings the total size of all files over {most} MiB"
            );
            (&rules::TOO_LARGE, message)
        }
        ReadError::TooLarge { size, limit } => (
            &rules::TOO_LARGE,
            format!("`{shown}` has {size} bytes; the limit is {limit}"),
        ),
        error => (
            &rules::UNREADABLE,
            format!("`{shown}` cannot be read: {error}"),
        ),
    };
    Diagnostic::new(rule, Span::file_start(file), message).help(how_to_make_readable(error))
}

fn how_to_make_readable(error: &ReadError) -> &'static str {
    match error {
        ReadError::Outside => "copy it into the repository: a fresh clone must be complete",
        ReadError::Hidden => {
            "copy the target instead: a link must not point to a hidden file or folder, or to a key file"
        }
        ReadError::Folder => "rename the folder: names with this ending are read as files",
        ReadError::TooLarge { .. } => SMALLER,
        ReadError::Missing => "point the link to a file of the repository, or remove it",
        ReadError::Failed(_) => "fix the permissions, or replace it with a readable file or folder",
    }
}

/// Returns the finding about a file that is not TOML.
pub(crate) fn not_toml(file: FileId, error: toml::SyntaxError) -> Diagnostic {
    let edit = error
        .edit
        .map(|(range, text)| Edit::new(Span::new(file, range), text));
    let finding = Diagnostic::new(
        &rules::TOML_SYNTAX,
        Span::new(file, error.span),
        error.message,
    );
    let finding = finding.maybe_help(error.help).maybe_fix(edit);
    match error.first {
        Some(first) => finding.related(Span::new(file, first), "first here"),
        None => finding,
    }
}

fn not_text(file: FileId, bytes: &[u8], error: &TextError, shown: &str) -> Diagnostic {
    match *error {
        TextError::Utf16 { encoding } => {
            let message = format!("`{shown}` is {encoding}, not UTF-8");
            Diagnostic::new(&rules::NOT_TEXT, Span::file_start(file), message).help(format!(
                "save the file as UTF-8: `iconv -f {encoding} -t UTF-8`"
            ))
        }
        TextError::NotUtf8 { offset } => {
            let message = format!(
                "`{shown}` is not UTF-8: byte 0x{:02x} at offset {offset}",
                bytes[offset]
            );
            Diagnostic::new(
                &rules::NOT_TEXT,
                Span::new(file, place(offset, bytes)..place(offset, bytes)),
                message,
            )
            .help(
                "save the file as UTF-8; from an older encoding: `iconv -f WINDOWS-1252 -t UTF-8`",
            )
        }
        TextError::Nul { offset } => {
            let message = format!("`{shown}` contains a NUL byte at offset {offset}");
            Diagnostic::new(
                &rules::NOT_TEXT,
                Span::new(file, place(offset, bytes)..place(offset, bytes)),
                message,
            )
            .help("source files must be text; for the character itself, write `\\u0000`")
        }
        TextError::TooLarge { size } => {
            let message = format!(
                "`{shown}` has {size} bytes; the limit is {}",
                crate::source::MAX_SOURCE_BYTES
            );
            Diagnostic::new(&rules::TOO_LARGE, Span::file_start(file), message).help(SMALLER)
        }
    }
}

/// Converts the offset of a file's first invalid byte to an offset in the decoded text, which is
/// the length of the decoded text before that byte.
fn place(offset: usize, bytes: &[u8]) -> usize {
    SourceText::salvage(&bytes[..offset]).as_str().len()
}

/// The help for a file that is too large.
const SMALLER: &str = "move it out of the source folders; they are only for profiles, partials, contexts, providers and schemas";
