//! The `match` table, which determines the files that an agent handles.

mod examples;

pub(crate) use examples::examples;

use std::fmt;
use std::sync::{Arc, OnceLock};

use globset::{GlobBuilder, GlobMatcher};

/// The conditions that a file and its project must meet. In every dimension, one of the patterns
/// must match, unless the dimension has no patterns.
#[derive(Debug, Clone, Default)]
pub struct Matcher {
    files: Vec<Pattern>,
    paths: Vec<Pattern>,
    projects: Vec<Arc<str>>,
}

#[derive(Debug, Clone)]
struct Pattern {
    text: Arc<str>,
    glob: Glob,
}

/// A file to route to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileToRoute {
    /// The path, with `/` between its parts.
    path: String,
    project: Option<String>,
}

/// A dimension of a [`Matcher`] that does not accept a [`FileToRoute`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// The dimension that does not accept the file.
    pub dimension: Dimension,
    /// The patterns as written. At least one of them would have to match.
    pub wanted: Vec<Arc<str>>,
    /// The actual name; `None` if no project was specified.
    pub found: Option<String>,
}

/// A property that a matcher compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dimension {
    /// `file_patterns`: globs that match the file's name or the whole path.
    File,
    /// `path_patterns`: globs that match the whole path.
    Path,
    /// `project_names`: exact names.
    Project,
}

impl Dimension {
    /// Returns the dimension's key in `[match]`.
    pub fn key(self) -> &'static str {
        match self {
            Dimension::File => "file_patterns",
            Dimension::Path => "path_patterns",
            Dimension::Project => "project_names",
        }
    }
}

impl FileToRoute {
    /// Returns a file, and its project if known. Both `/` and `\` separate folders.
    pub fn new(path: &str, project: Option<&str>) -> FileToRoute {
        let path = path.replace('\\', "/");
        let path = path.trim_start_matches("./").to_owned();
        FileToRoute {
            path,
            project: project.map(str::to_owned),
        }
    }

    fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

impl Matcher {
    /// Builds a matcher from patterns as written. Invalid globs are omitted, because they are
    /// reported elsewhere.
    pub fn new<'p>(
        files: impl IntoIterator<Item = &'p str>,
        paths: impl IntoIterator<Item = &'p str>,
        projects: impl IntoIterator<Item = &'p str>,
    ) -> Matcher {
        Matcher {
            files: files.into_iter().filter_map(Pattern::new).collect(),
            paths: paths.into_iter().filter_map(Pattern::new).collect(),
            projects: projects.into_iter().map(Arc::from).collect(),
        }
    }

    /// Returns `true` if the matcher has no patterns, and thus accepts everything.
    pub fn is_unconstrained(&self) -> bool {
        self.files.is_empty() && self.paths.is_empty() && self.projects.is_empty()
    }

    /// Returns the dimensions that do not accept a file; empty if the file is accepted.
    pub fn mismatches(&self, subject: &FileToRoute) -> Vec<Mismatch> {
        let path = fold(&subject.path);
        let name = fold(subject.file_name());
        let file = self.files.is_empty()
            || self
                .files
                .iter()
                .any(|it| it.accepts(&name) || it.accepts(&path));
        let whole = self.paths.is_empty() || self.paths.iter().any(|it| it.accepts(&path));
        let project = subject.project.as_deref();
        let known =
            self.projects.is_empty() || self.projects.iter().any(|it| Some(it.as_ref()) == project);
        let found = [
            (
                file,
                Dimension::File,
                texts(&self.files),
                Some(subject.path.clone()),
            ),
            (
                whole,
                Dimension::Path,
                texts(&self.paths),
                Some(subject.path.clone()),
            ),
            (
                known,
                Dimension::Project,
                self.projects.clone(),
                subject.project.clone(),
            ),
        ];
        let missed = found.into_iter().filter(|(accepts, ..)| !accepts);
        missed
            .map(|(_, dimension, wanted, found)| Mismatch {
                dimension,
                wanted,
                found,
            })
            .collect()
    }
}

fn texts(patterns: &[Pattern]) -> Vec<Arc<str>> {
    patterns.iter().map(|it| Arc::clone(&it.text)).collect()
}

impl Pattern {
    fn new(text: &str) -> Option<Pattern> {
        Some(Pattern {
            text: text.into(),
            glob: glob(text).ok()?,
        })
    }

    fn accepts(&self, folded: &str) -> bool {
        self.glob.is_match(folded)
    }
}

/// Returns a string in lower case, because the glob library ignores case only for ASCII.
fn fold(text: &str) -> String {
    text.to_lowercase()
}

/// Parses a glob in `[match]`, which is anchored at both ends and ignores case, and in which `*`
/// also matches `/`. The text to match must be in lower case.
///
/// # Errors
///
/// Returns the mistake in the glob.
pub(crate) fn glob(text: &str) -> Result<Glob, GlobError> {
    Glob::build(text, &fold(text), |builder| {
        builder
            .case_insensitive(true)
            .literal_separator(false)
            .backslash_escape(true);
    })
}

/// A mistake in a glob.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum GlobError {
    /// The glob has more than 1,000 bytes.
    TooLong,
    /// The braces in the glob are nested deeper than 8 levels.
    TooDeep,
    /// The syntax of the glob is invalid.
    Syntax(globset::ErrorKind),
}

impl fmt::Display for GlobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GlobError::TooLong => write!(f, "it is longer than {MAX_GLOB_BYTES} bytes"),
            GlobError::TooDeep => write!(
                f,
                "its braces are nested more than {MAX_GLOB_DEPTH} levels deep"
            ),
            GlobError::Syntax(kind) => kind.fmt(f),
        }
    }
}

impl std::error::Error for GlobError {}

impl From<globset::Error> for GlobError {
    fn from(error: globset::Error) -> GlobError {
        GlobError::Syntax(error.kind().clone())
    }
}

/// A pattern for names and paths.
#[derive(Debug, Clone)]
pub struct Glob {
    text: Arc<str>,
    parsed: globset::Glob,
    /// Compiled on first use, because a run needs only a few of the bundled patterns.
    matcher: OnceLock<GlobMatcher>,
}

/// The maximum length of a glob, in bytes.
const MAX_GLOB_BYTES: usize = 1_000;
/// The maximum nesting depth of braces in a glob.
const MAX_GLOB_DEPTH: usize = 8;
/// The maximum number of globs in one list.
pub(crate) const MAX_GLOBS: usize = 500;

impl Glob {
    /// Parses a glob in shell syntax, except that `*` also matches `/`.
    ///
    /// # Errors
    ///
    /// Returns the mistake in the glob.
    pub fn new(text: &str) -> Result<Glob, GlobError> {
        Glob::build(text, text, |_| {})
    }

    fn build(
        shown: &str,
        text: &str,
        set_up: impl FnOnce(&mut GlobBuilder<'_>),
    ) -> Result<Glob, GlobError> {
        check_size(text)?;
        let mut builder = GlobBuilder::new(text);
        set_up(&mut builder);
        Ok(Glob {
            text: shown.into(),
            parsed: builder.build()?,
            matcher: OnceLock::new(),
        })
    }

    /// Returns the glob as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns `true` if a name or path matches.
    pub fn is_match(&self, name: &str) -> bool {
        // Compiling fails only for large globs, which `check_size` has rejected.
        let matcher = self.matcher.get_or_init(|| self.parsed.compile_matcher());
        matcher.is_match(name)
    }
}

/// Checks that a glob is small enough to be matched in time linear in the name's length.
fn check_size(text: &str) -> Result<(), GlobError> {
    if text.len() > MAX_GLOB_BYTES {
        return Err(GlobError::TooLong);
    }
    let mut depth = 0_usize;
    for byte in text.bytes() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_GLOB_DEPTH {
            return Err(GlobError::TooDeep);
        }
    }
    Ok(())
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wanted: Vec<String> = self.wanted.iter().map(|it| format!("`{it}`")).collect();
        let (key, wanted) = (self.dimension.key(), wanted.join(", "));
        match &self.found {
            Some(found) => write!(f, "`{key}` is {wanted}, which `{found}` does not match"),
            None => write!(f, "`{key}` is {wanted}, but no project is given"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn accepts(matcher: &Matcher, path: &str, project: Option<&str>) -> bool {
        matcher
            .mismatches(&FileToRoute::new(path, project))
            .is_empty()
    }

    fn files(patterns: &[&str]) -> Matcher {
        Matcher::new(patterns.iter().copied(), [], [])
    }

    #[test]
    fn globs_are_anchored_and_stars_cross_folders() {
        assert!(accepts(&files(&["*.rs"]), "src/a/B.RS", None));
        assert!(accepts(&files(&["SRC/*.rs"]), "src/a/b.rs", None));
        assert!(accepts(&files(&["**/*.rs"]), "b.rs", None));
        assert!(!accepts(&files(&["*.rs"]), "a.rs.bak", None));
        assert!(!accepts(&files(&["rs"]), "a.rs", None));
        assert!(accepts(&files(&["*.{py,PYI}", "x"]), "a.pyi", None));
        assert!(accepts(&files(&["Ä*.md"]), "docs/änderung.md", None));
        assert!(glob("[a-").is_err());
    }

    #[test]
    fn globs_that_no_engine_takes_are_told() {
        let nested = format!("{}a{}", "{".repeat(125), "}".repeat(125));
        let long = "a*".repeat(1_000_000);
        for text in [
            nested.as_str(),
            &long,
            &"{a,".repeat(300),
            &"[!é]".repeat(300),
        ] {
            assert!(
                glob(text).is_err() && Glob::new(text).is_err(),
                "{}",
                &text[..20]
            );
        }
        for text in [
            "?".repeat(1000),
            "[!a]".repeat(250),
            "{a,b}".repeat(200),
            "{é,ß,ﬃ}".repeat(70),
        ] {
            assert!(
                glob(&text).is_ok_and(|glob| !glob.is_match("x")),
                "{}",
                &text[..12]
            );
        }
    }

    #[test]
    fn path_patterns_see_the_whole_path_only() {
        let matcher = Matcher::new([], ["tests/*"], []);
        assert!(accepts(&matcher, "tests/a/b.rs", None));
        assert!(accepts(&matcher, "Tests\\a.rs", None));
        assert!(accepts(&matcher, "./tests/a.rs", None));
        assert!(!accepts(&matcher, "src/tests/a.rs", None));
        assert!(!accepts(&Matcher::new([], ["a.rs"], []), "src/a.rs", None));
        assert!(accepts(&files(&["a.rs"]), "C:\\src\\a.rs", None));
    }

    #[test]
    fn dimensions_are_anded_and_each_tells_why_not() {
        let matcher = Matcher::new(["*.rs", "*.py"], ["src/*"], ["Core"]);
        assert!(accepts(&matcher, "src/a.py", Some("Core")));
        let why = |path: &str, project: Option<&str>| {
            let found = matcher.mismatches(&FileToRoute::new(path, project));
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(
            why("docs/a.md", None),
            [
                "`file_patterns` is `*.rs`, `*.py`, which `docs/a.md` does not match",
                "`path_patterns` is `src/*`, which `docs/a.md` does not match",
                "`project_names` is `Core`, but no project is given",
            ]
        );
        assert_eq!(
            why("src/a.rs", Some("core")),
            ["`project_names` is `Core`, which `core` does not match"]
        );
        assert!(Matcher::default().is_unconstrained() && accepts(&Matcher::default(), "", None));
    }

    proptest! {
        /// Neither case nor the kind of separator changes the result, and nothing panics.
        #[test]
        fn case_and_separators_do_not_count(pattern in r"[a-cA-C*?./\[\]{},!\\&~^é-]{0,12}", path in r"([a-cA-C.]{0,3}/){0,3}[a-c.]{0,4}") {
            let matcher = files(&[&pattern]);
            let lower = accepts(&matcher, &path, None);
            prop_assert_eq!(lower, accepts(&matcher, &path.to_uppercase(), None));
            prop_assert_eq!(lower, accepts(&matcher, &path.replace('/', "\\"), None));
        }
    }
}
