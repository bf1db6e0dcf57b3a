//! The functions of system prompts, and the files that prompts may read.

use std::ops::Range;
use std::sync::Arc;

use minijinja::value::from_args;
use minijinja::{Error, Value};

use super::builtins::Filter;
use super::folders::{Folders, role_path};
use super::objects::Function;
use super::refusal::{Refusal, UnreadableFile};
use super::rope::{ReadFile, ReadPlace, Rope, Writer};
use super::tracked::{Native, Tracked};
use super::values::text;
use super::{account, rules};
use crate::diag::did_you_mean;
use crate::repo::Dialect;
use crate::repo::folders::ROLES;
use crate::source::{MAX_SOURCE_BYTES, SourceText, TextError};
use crate::world::{EntryKind, ReadError, World, normalise_path};

/// A function that only system prompts may call.
#[derive(Debug, Clone, Copy)]
enum OwnFunction {
    ReadFile,
    FileExists,
    ReadDir,
    HeadLines,
    Basename,
    Dirname,
    Ext,
    Lower,
    Upper,
    AgentRole,
}

impl OwnFunction {
    /// Returns `true` if the function's result depends on files.
    fn looks_at_files(self) -> bool {
        match self {
            OwnFunction::ReadFile
            | OwnFunction::FileExists
            | OwnFunction::ReadDir
            | OwnFunction::AgentRole => true,
            OwnFunction::HeadLines
            | OwnFunction::Basename
            | OwnFunction::Dirname
            | OwnFunction::Ext
            | OwnFunction::Lower
            | OwnFunction::Upper => false,
        }
    }
}

/// The functions in [`OwnFunction`], by name.
const OWN_FUNCTIONS: [(&str, OwnFunction); 10] = [
    ("read_file", OwnFunction::ReadFile),
    ("file_exists", OwnFunction::FileExists),
    ("read_dir", OwnFunction::ReadDir),
    ("head_lines", OwnFunction::HeadLines),
    ("basename", OwnFunction::Basename),
    ("dirname", OwnFunction::Dirname),
    ("ext", OwnFunction::Ext),
    ("lower", OwnFunction::Lower),
    ("upper", OwnFunction::Upper),
    ("agent_role", OwnFunction::AgentRole),
];

/// The body functions that prompts may also call.
const SHARED_FUNCTIONS: [&str; 3] = ["existsIn", "length", "tojson"];

/// The functions for system prompts, in addition to the engine's.
pub(super) const PROMPT_FUNCTIONS: [&str; OWN_FUNCTIONS.len() + SHARED_FUNCTIONS.len()] = {
    let mut names = [""; OWN_FUNCTIONS.len() + SHARED_FUNCTIONS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = match at < OWN_FUNCTIONS.len() {
            true => OWN_FUNCTIONS[at].0,
            false => SHARED_FUNCTIONS[at - OWN_FUNCTIONS.len()],
        };
        at += 1;
    }
    names
};

/// The project and the files visible to a system prompt: those of its layer and the bundled ones.
pub struct PromptScope {
    /// The project of the conversation.
    pub project: Arc<dyn World>,
    /// The project's name.
    pub project_name: Arc<str>,
    /// The language of the file that the user has open.
    pub language: Arc<str>,
    /// The layers in which `:/x` is looked up, nearest first; the first is the agent repository.
    pub layers: Vec<Arc<dyn World>>,
    /// For each layer, the prefix of its files' paths in reports.
    pub shown_below: Vec<&'static str>,
    /// The values of `${PROJECT_DIR}`, `${CONFIG_DIR}` and `${HOME}` in the prompt's own text.
    pub folders: Folders,
}

/// The variables in prompts.
pub(super) const VARIABLES: [&str; 5] = ["language", "project_name", "_p", "_c", "_h"];

/// Returns `true` if the value of a name depends on the conversation, or may change while a program
/// runs.
pub(super) fn differs(name: &str) -> bool {
    // inja's `exists` looks up its argument.
    name == "exists"
        || VARIABLES.contains(&name)
        || OWN_FUNCTIONS
            .iter()
            .any(|(known, function)| *known == name && function.looks_at_files())
}

/// The resolution of a path in a file function.
enum ResolvedPath<'a> {
    /// A file in the first of these worlds that contains it.
    In(Vec<&'a Arc<dyn World>>, String),
    /// A location that must not be read.
    Outside,
    /// A path with an unknown variable.
    Unresolved(String),
}

impl PromptScope {
    /// Returns the variables and functions of a prompt.
    pub(super) fn variables(self: &Arc<Self>, dialect: Dialect) -> Vec<(Arc<str>, Value)> {
        let Folders {
            project,
            config,
            home,
        } = &self.folders;
        let values = [&self.language, &self.project_name, project, config, home];
        let variables = VARIABLES
            .into_iter()
            .zip(values.map(|value| Value::from(Arc::clone(value))));
        let functions = OWN_FUNCTIONS
            .into_iter()
            .map(|(name, function)| (name, self.function(name, function, dialect)));
        variables
            .chain(functions)
            .map(|(name, value)| (Arc::from(name), value))
            .collect()
    }

    fn function(
        self: &Arc<Self>,
        name: &'static str,
        function: OwnFunction,
        dialect: Dialect,
    ) -> Value {
        let scope = Arc::clone(self);
        let is_inja = dialect == Dialect::Inja;
        match function {
            OwnFunction::ReadFile => Function::with(name, move |native| {
                let path = path(native)?;
                scope.charged_read(&path)
            }),
            OwnFunction::FileExists => Function::with(name, move |native| {
                let path = path(native)?;
                charge_path(&path)?;
                Ok(Tracked::plain(scope.exists(&path, is_inja)?))
            }),
            OwnFunction::ReadDir => {
                Function::with(name, move |native| scope.charged_list(&path(native)?))
            }
            OwnFunction::AgentRole => Function::with(name, move |native| {
                let id = path(native)?;
                let path = role_path(&id);
                charge_path(&path)?;
                let read = scope.read_file(&path);
                let read = read.map_err(|refusal| scope.about_role(&id, refusal));
                of_file(read?)
            }),
            OwnFunction::HeadLines if is_inja => {
                Function::of(name, |native| head(native, lines_at_head))
            }
            OwnFunction::HeadLines => Function::of(name, |native| head(native, head_lines)),
            OwnFunction::Basename => Function::of(name, |native| part(native, basename)),
            OwnFunction::Dirname if is_inja => Function::of(name, folder),
            OwnFunction::Dirname => Function::of(name, |native| part(native, dirname)),
            OwnFunction::Ext if is_inja => Function::of(name, |native| part(native, suffix)),
            OwnFunction::Ext => Function::of(name, |native| part(native, extension)),
            OwnFunction::Lower => Function::of(name, Filter::named("lower").apply),
            OwnFunction::Upper => Function::of(name, Filter::named("upper").apply),
        }
    }

    fn charged_read(&self, path: &str) -> Result<Tracked, Error> {
        charge_path(path)?;
        of_file(self.read_file(path)?)
    }

    /// Adds the role names to the refusal of a role that has no file.
    pub(super) fn about_role(&self, id: &str, mut refusal: Refusal) -> Refusal {
        if refusal.rule != &rules::PROMPT_MISSING {
            return refusal;
        }
        let entries = { self.layers.iter() }.filter_map(|world| world.list(ROLES).ok());
        let names = entries.flatten().map(|it| last_part(&it.path));
        let roles: Vec<String> = names
            .filter_map(|name| Some(name.strip_suffix(".md")?.to_owned()))
            .collect();
        let plain = id.strip_suffix(".md").unwrap_or(id);
        let plain = plain.rsplit('/').next().unwrap_or_default();
        let same = roles.iter().find(|role| role.eq_ignore_ascii_case(plain));
        let help = match same {
            Some(role) => Some(format!(
                "write `agent_role('{role}')`, for the file `{ROLES}/{role}.md`"
            )),
            None => did_you_mean(plain, roles.iter().map(String::as_str)),
        };
        refusal.help = Some(help.unwrap_or_else(|| {
            format!("a role is a file in `{ROLES}/`, named without its extension: `agent_role('x')` reads `{ROLES}/x.md`")
        }));
        refusal
    }

    /// Returns the advice for a file that the project lacks, but that is in the agent repository.
    fn in_a_layer(&self, path: &str) -> Option<String> {
        let index = self
            .layers
            .iter()
            .position(|layer| layer.kind(path) == Ok(EntryKind::File))?;
        let role = path
            .strip_prefix(ROLES)
            .and_then(|rest| rest.strip_prefix('/'));
        let role = role.and_then(|name| name.strip_suffix(".md"));
        let (place, written) = match (role, index) {
            (Some(role), _) => ("agent repository", format!("agent_role('{role}')")),
            (None, 0) => (
                "agent repository",
                format!("read_file('${{CONFIG_DIR}}/{path}')"),
            ),
            (None, _) => ("bundled resources", format!("read_file(':/{path}')")),
        };
        Some(format!(
            "a relative path is in the project; this file is in the {place}: write `{written}`"
        ))
    }

    fn charged_list(&self, path: &str) -> Result<Tracked, Error> {
        charge_path(path)?;
        let (names, looked_at) = self.read_dir(path)?;
        account::charge(account::ENTRY.saturating_mul(looked_at as u64))?;
        account::list(names.len())?;
        account::make(names.iter().map(String::len).sum())?;
        Ok(Tracked::plain(
            names.into_iter().map(Value::from).collect::<Vec<Value>>(),
        ))
    }

    fn target(&self, path: &str) -> ResolvedPath<'_> {
        let (worlds, rest): (Vec<&Arc<dyn World>>, &str) =
            if let Some(rest) = path.strip_prefix(":/") {
                (self.layers.iter().collect(), rest)
            } else if let Some(rest) = below(path, "${PROJECT_DIR}", &self.folders.project) {
                (vec![&self.project], rest)
            } else if let Some(rest) = below(path, "${CONFIG_DIR}", &self.folders.config) {
                (self.layers.iter().take(1).collect(), rest)
            } else if below(path, "${HOME}", &self.folders.home).is_some() {
                return ResolvedPath::Outside;
            } else {
                (vec![&self.project], path)
            };
        if let Some(at) = rest.find("${") {
            let end = rest[at..].find('}').map_or(rest.len(), |len| at + len + 1);
            return ResolvedPath::Unresolved(rest[at..end].to_owned());
        }
        normalise_path(rest).map_or(ResolvedPath::Outside, |path| ResolvedPath::In(worlds, path))
    }

    pub(super) fn read_file(&self, path: &str) -> Result<(String, ReadFile), Refusal> {
        let (worlds, inner) = match self.target(path) {
            ResolvedPath::In(worlds, inner) => (worlds, inner),
            ResolvedPath::Outside => return Err(outside(path)),
            ResolvedPath::Unresolved(variable) => {
                let refusal = Refusal::new(
                    &rules::PROMPT_VARIABLE,
                    format!("`{variable}` in `{path}` is unknown"),
                );
                return Err(
                    refusal.help("known variables: ${PROJECT_DIR}, ${CONFIG_DIR} and ${HOME}")
                );
            }
        };
        for world in &worlds {
            match world.read(&inner) {
                Ok(bytes) => {
                    let file = ReadFile {
                        place: self.place_of(world),
                        path: Arc::from(inner.as_str()),
                    };
                    return self.decode(path, bytes, &file).map(|text| (text, file));
                }
                Err(ReadError::Missing) => {}
                Err(ReadError::Outside) => return Err(outside(path)),
                Err(ReadError::Hidden) => return Err(hidden(path)),
                Err(error) => {
                    return Err(Refusal::new(
                        &rules::PROMPT_MISSING,
                        format!("`{path}` cannot be read: {error}"),
                    ));
                }
            }
        }
        let mut refusal =
            Refusal::new(&rules::PROMPT_MISSING, format!("there is no file `{path}`"));
        // If a layer lacks the file, all agents lack it; a project belongs to one context.
        refusal.cause = path
            .starts_with(":/")
            .then(|| format!("{} {path}", worlds.len()));
        let general = match path.starts_with(":/") {
            true => {
                "`:/x` means file `x` in the profile's own layer or, if it is not there, in the bundled layer"
            }
            false => {
                "if it is optional, check `file_exists` first; contexts provide the files of their virtual projects"
            }
        };
        let is_of_project = matches!(&worlds[..], [only] if Arc::ptr_eq(only, &self.project));
        let elsewhere = self.in_a_layer(&inner).filter(|_| is_of_project);
        let help = elsewhere.or_else(|| near_files(&worlds, &inner));
        Err(refusal.help(help.unwrap_or_else(|| general.to_owned())))
    }

    fn place_of(&self, world: &Arc<dyn World>) -> ReadPlace {
        match self
            .layers
            .iter()
            .position(|layer| Arc::ptr_eq(layer, world))
        {
            Some(index) => ReadPlace::Layer(index),
            None => ReadPlace::Project,
        }
    }

    fn decode(&self, path: &str, bytes: Vec<u8>, file: &ReadFile) -> Result<String, Refusal> {
        let error = match SourceText::from_bytes(&bytes) {
            Ok(text) => return Ok(text.as_str().to_owned()),
            Err(error) => error,
        };
        let not_text = |why: String| format!("`{path}` is not text: {why}");
        let (message, at) = match error {
            TextError::Utf16 { encoding } => (not_text(format!("it is {encoding}, not UTF-8")), 0),
            TextError::NotUtf8 { offset } => {
                (not_text(format!("byte {offset} is not UTF-8")), offset)
            }
            TextError::Nul { offset } => (not_text(format!("byte {offset} is NUL")), offset),
            TextError::TooLarge { size } => {
                let message = format!("`{path}` has {size} bytes; the limit is {MAX_SOURCE_BYTES}");
                (message, 0)
            }
        };
        let mut refusal = Refusal::new(&rules::PROMPT_NOT_TEXT, message);
        if let ReadPlace::Layer(index) = file.place {
            let path = format!(
                "{}{}",
                self.shown_below.get(index).copied().unwrap_or_default(),
                file.path
            );
            refusal.file = Some(Box::new(UnreadableFile { path, bytes, at }));
        }
        Err(refusal)
    }

    /// Returns `true` if there is a file or, with `with_folders`, a folder at a path.
    fn exists(&self, path: &str, with_folders: bool) -> Result<bool, Refusal> {
        match self.target(path) {
            ResolvedPath::In(worlds, inner) => {
                let mut kinds = worlds.into_iter().map(|world| world.kind(&inner));
                let found = kinds.find(|kind| !matches!(kind, Err(ReadError::Missing)));
                match found {
                    Some(Err(ReadError::Outside)) => Err(outside(path)),
                    Some(Err(ReadError::Hidden)) => Err(hidden(path)),
                    found => Ok(found.is_some_and(|kind| {
                        kind.is_ok_and(|kind| match kind {
                            EntryKind::File => true,
                            EntryKind::Folder => with_folders,
                        })
                    })),
                }
            }
            ResolvedPath::Outside => Err(outside(path)),
            ResolvedPath::Unresolved(_) => Ok(false),
        }
    }

    /// Returns the names in a folder, and the number of entries examined.
    fn read_dir(&self, path: &str) -> Result<(Vec<String>, usize), Refusal> {
        match self.target(path) {
            ResolvedPath::In(worlds, inner) => {
                let (mut names, mut looked_at) = (Vec::new(), 0);
                for world in worlds {
                    let (entries, count) = world.list_counted(&inner).map_err(|why| match why {
                        ReadError::Outside => outside(path),
                        ReadError::Hidden => hidden(path),
                        why => Refusal::new(
                            &rules::PROMPT_MISSING,
                            format!("`{path}` cannot be listed: {why}"),
                        ),
                    })?;
                    looked_at += count;
                    names.extend(entries.iter().map(|entry| last_part(&entry.path)));
                }
                names.sort();
                names.dedup();
                Ok((names, looked_at))
            }
            ResolvedPath::Outside => Err(outside(path)),
            ResolvedPath::Unresolved(_) => Ok((Vec::new(), 0)),
        }
    }
}

/// Returns the text of a file, with the file as its writer.
fn of_file((text, file): (String, ReadFile)) -> Result<Tracked, Error> {
    account::make(text.len())?;
    let writer = Writer::File {
        file: Arc::new(file),
        at: 0,
    };
    Ok(Tracked::text(Rope::one(&text, writer)))
}

/// Suggests files in the same folder.
fn near_files(worlds: &[&Arc<dyn World>], path: &str) -> Option<String> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let entries = worlds
        .iter()
        .filter_map(|world| world.list(folder).ok())
        .flatten();
    let names: Vec<String> = entries.map(|it| last_part(&it.path)).collect();
    did_you_mean(name, names.iter().map(String::as_str))
}

/// Returns the part of a path below a folder. The folder is given as a variable or by the
/// variable's value.
fn below<'p>(path: &'p str, variable: &str, folder: &str) -> Option<&'p str> {
    let rest = path
        .strip_prefix(variable)
        .or_else(|| path.strip_prefix(folder))?;
    rest.strip_prefix('/').or(rest.is_empty().then_some(rest))
}

fn outside(path: &str) -> Refusal {
    let refusal = Refusal::new(
        &rules::PROMPT_OUTSIDE,
        format!("`{path}` is outside the folders that a system prompt may read"),
    );
    refusal.help("a prompt may read the project (`${PROJECT_DIR}/…` or a relative path), the agent repository (`${CONFIG_DIR}/…`) and `:/…`")
}

fn hidden(path: &str) -> Refusal {
    let message = format!("`{path}` is hidden from system prompts");
    Refusal::new(&rules::PROMPT_OUTSIDE, message)
        .help("files whose names begin with a dot, and private keys, are never read: rename the file if prompts may read it")
}

/// Charges for a file-system query.
fn charge_path(path: &str) -> Result<(), Error> {
    account::charge(account::FILE)?;
    account::make(path.len())
}

/// Returns the path argument of a file function.
fn path(native: &Native<'_, '_>) -> Result<String, Error> {
    let (path,): (&Value,) = from_args(&native.arguments.values)?;
    text(path).map(str::to_owned)
}

/// Returns a part of a text argument.
fn part(native: &mut Native<'_, '_>, part: fn(&str) -> Range<usize>) -> Result<Tracked, Error> {
    let (whole,): (&Value,) = from_args(&native.arguments.values)?;
    let whole = text(whole)?;
    account::make(2 * whole.len())?;
    Ok(native.part(whole, part(whole)))
}

/// Returns the first lines of a text argument.
fn head(native: &mut Native<'_, '_>, end: fn(&str, usize) -> usize) -> Result<Tracked, Error> {
    let (whole, count): (&Value, i64) = from_args(&native.arguments.values)?;
    let whole = text(whole)?;
    account::make(whole.len())?;
    Ok(native.part(whole, 0..end(whole, usize::try_from(count).unwrap_or(0))))
}

/// Returns the offset where the first lines of a string end.
fn head_lines(text: &str, count: usize) -> usize {
    text.split_inclusive('\n').take(count).map(str::len).sum()
}

/// Returns the offset where the first lines of a string end, without the last newline. The original
/// client gets the same result, because it splits the text and joins the lines again.
fn lines_at_head(text: &str, count: usize) -> usize {
    match count.checked_sub(1) {
        None => 0,
        Some(last) => text
            .match_indices('\n')
            .nth(last)
            .map_or(text.len(), |(at, _)| at),
    }
}

fn basename(path: &str) -> Range<usize> {
    path.rfind('/').map_or(0, |at| at + 1)..path.len()
}

fn dirname(path: &str) -> Range<usize> {
    0..path.rfind('/').unwrap_or(0)
}

fn extension(path: &str) -> Range<usize> {
    let name = basename(path);
    let dot = path[name.clone()].rfind('.').filter(|&at| at > 0);
    dot.map_or(path.len(), |at| name.start + at + 1)..path.len()
}

/// Returns the folder of a path, as Qt's `QFileInfo::path` does: `.` for a bare name.
fn folder(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    let (path,): (&Value,) = from_args(&native.arguments.values)?;
    let path = text(path)?;
    account::make(2 * path.len())?;
    match path.rfind('/') {
        None => Ok(native.computed(Value::from("."))),
        Some(0) => Ok(native.part(path, 0..1)),
        Some(at) => Ok(native.part(path, 0..at)),
    }
}

/// Returns the part of a name after its last dot, as Qt's `QFileInfo::suffix` does, even if the
/// name begins with that dot.
fn suffix(path: &str) -> Range<usize> {
    let name = basename(path);
    path[name.clone()]
        .rfind('.')
        .map_or(path.len(), |at| name.start + at + 1)..path.len()
}

fn last_part(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::MemoryWorld;

    fn scope() -> PromptScope {
        let project =
            MemoryWorld::from_iter([("src/a.rs", "a"), ("README.md", "one\ntwo\nthree\n")]);
        let own = MemoryWorld::from_iter([("roles/me.md", "own"), ("x", "own")]);
        let bundled = MemoryWorld::from_iter([("roles/base.md", "bundled"), ("x", "bundled")]);
        PromptScope {
            project: Arc::new(project),
            project_name: "p".into(),
            language: "".into(),
            layers: vec![Arc::new(own), Arc::new(bundled)],
            shown_below: vec!["", "bundled:"],
            folders: Folders::placeholders(),
        }
    }

    #[test]
    fn reads_are_confined() {
        let scope = scope();
        assert_eq!(
            scope.read_file("${PROJECT_DIR}/src/a.rs").expect("there").0,
            "a"
        );
        assert_eq!(scope.read_file("/project/src/a.rs").expect("there").0, "a");
        assert_eq!(
            scope.read_file("src/../README.md").expect("there").0,
            "one\ntwo\nthree\n"
        );
        assert_eq!(scope.read_file(":/x").expect("there").0, "own");
        assert_eq!(
            scope.read_file(":/roles/base.md").expect("there").0,
            "bundled"
        );
        assert_eq!(scope.read_file("${CONFIG_DIR}/x").expect("there").0, "own");
        for path in [
            "/etc/passwd",
            "../x",
            "${HOME}/.ssh/id",
            "${PROJECT_DIR}/../x",
            ":/../x",
            "c:/x",
        ] {
            assert_eq!(
                scope.read_file(path).expect_err(path).rule.code,
                "prompt/outside"
            );
            assert!(scope.exists(path, false).is_err(), "{path}");
        }
        assert_eq!(
            scope.read_file("${FOO}/x").expect_err("unknown").rule.code,
            "prompt/unknown-variable"
        );
        assert!(!scope.exists("${FOO}/x", false).expect("no error"));
        assert_eq!(
            scope.read_file("none").expect_err("missing").rule.code,
            "prompt/missing-file"
        );
        assert!(!scope.exists("none", false).expect("no error"));
    }

    #[test]
    fn folders_list_sorted_names() {
        assert_eq!(scope().read_dir("").expect("lists").0, ["README.md", "src"]);
        assert_eq!(
            scope().read_dir("none").expect("lists").0,
            Vec::<String>::new()
        );
        assert_eq!(
            scope().read_dir(":/roles").expect("lists").0,
            ["base.md", "me.md"]
        );
    }

    #[test]
    fn text_helpers() {
        let head = |text: &'static str, count| &text[..head_lines(text, count)];
        assert_eq!((head("a\nb\nc", 2), head("a\nb\nc", 0)), ("a\nb\n", ""));
        let extension = |path: &'static str| &path[extension(path)];
        assert_eq!((extension("a/b.tar.gz"), extension(".bashrc")), ("gz", ""));
        let (base, dir) = (
            |path: &'static str| &path[basename(path)],
            |path: &'static str| &path[dirname(path)],
        );
        assert_eq!(
            (base("a/b"), base("b"), dir("a/b"), dir("b"), dir("/b")),
            ("b", "b", "a", "", "")
        );
    }

    #[test]
    fn text_helpers_of_the_original_client() {
        let head = |text: &'static str, count| &text[..lines_at_head(text, count)];
        assert_eq!((head("a\nb\nc", 2), head("a\nb\n", 2)), ("a\nb", "a\nb"));
        assert_eq!((head("a\nb\n", 3), head("\n\nb", 1)), ("a\nb\n", ""));
        assert_eq!((head("a", 0), head("", 5)), ("", ""));
        let suffix = |path: &'static str| &path[suffix(path)];
        assert_eq!(
            [suffix(".bashrc"), suffix("a/b.tar.gz"), suffix("a.b/c")],
            ["bashrc", "gz", ""]
        );
        assert!(
            scope().exists("src", true).expect("no error")
                && !scope().exists("src", false).expect("no error")
        );
    }
}
