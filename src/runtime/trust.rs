//! Trust: the actions of a repository that only a user can permit.
//!
//! A repository determines which server receives a request, which key is sent along, and which
//! programs a model may run. In an untrusted repository, its author makes these decisions. Each of
//! them is a [`Grant`], which describes exactly what would happen. A [`TrustStore`] records the
//! grants that a user has permitted, under a fingerprint of the grant and the repository's root. If
//! the content of a grant changes, its fingerprint changes too, and the user is asked again.
//!
//! [`Transport`](super::Transport) and [`ProcessTool`](super::tools::ProcessTool) do not check
//! trust: a host that opens other people's repositories must do so before it uses them.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};

pub use super::digest::digest;
use super::installed::ModelList;
use super::{Category, Compiled, Error, tools};
use crate::compile::Compiler;
use crate::provider::{Header, HeaderValue, MODEL_PLACEHOLDER, is_in_the_clear, placeholder};
use crate::repo::{HttpSpec, LoadOptions, SecretRef};
use crate::text::hex;
use crate::unit::Plan;
use crate::world::{AccessError, MemoryWorld, World};

/// One permission that a repository asks for. Its [`Display`](fmt::Display) form is one line that
/// describes what would happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    /// Sending requests to a server, with a key if there is one.
    Server {
        /// The part of the repository that asks.
        asker: Asker,
        /// The exact URL, with `${MODEL}` in place of a plain model name.
        url: String,
        /// Every header, with the key's reference in place of the key.
        headers: Vec<(String, String)>,
        /// The reference to the key, if there is one.
        key: Option<SecretRef>,
        /// The file of a `file:` reference, with links resolved.
        key_file: Option<String>,
    },
    /// Running a program, for a model that calls it or as an MCP server.
    Program {
        /// The part of the repository that asks.
        asker: Asker,
        /// The program's file, or its name if no file was found.
        program: String,
        /// The program's arguments.
        arguments: Vec<Arc<str>>,
        /// The working directory.
        folder: String,
        /// The environment variables that the program inherits.
        environment: Vec<Arc<str>>,
        /// The repository files named on the command line, each with its SHA-256.
        files: Vec<(String, String)>,
    },
}

/// The part of a repository that asks for permission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asker {
    /// A provider instance.
    Instance(Arc<str>),
    /// A tool that is a program.
    Tool(Arc<str>),
    /// An MCP server.
    Server(Arc<str>),
}

impl Asker {
    fn name(&self) -> &Arc<str> {
        match self {
            Asker::Instance(name) | Asker::Tool(name) | Asker::Server(name) => name,
        }
    }
}

/// Formats the kind, and the name quoted and escaped.
impl fmt::Display for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Asker::Instance(name) => write!(f, "the provider instance {name:?}"),
            Asker::Tool(name) => write!(f, "the tool {name:?}"),
            Asker::Server(name) => write!(f, "the MCP server {name:?}"),
        }
    }
}

/// The permissions that a user has granted.
pub trait TrustStore: Send + Sync {
    /// Returns `true` if a fingerprint was permitted.
    fn is_trusted(&self, fingerprint: &str) -> bool;

    /// Records a fingerprint, and a string that explains it to the user.
    ///
    /// # Errors
    ///
    /// Returns a phrase that says why it cannot be recorded.
    fn remember(&self, fingerprint: &str, text: &str) -> Result<(), AccessError>;
}

impl Grant {
    /// Returns the grant that a compiled request requires.
    ///
    /// # Errors
    ///
    /// Returns an error if the request's URL is invalid.
    pub fn of_request(request: &Compiled, key_file: Option<&Path>) -> Result<Grant, Error> {
        let asker = Asker::Instance(Arc::clone(&request.instance));
        server(asker, &request.line.headers, &request.target, key_file).ok_or_else(|| {
            Error::new(
                Category::Config,
                format!("`{}` is not a URL", request.address()),
            )
        })
    }

    /// Returns the grant that an agent's requests require, for models with a plain name; `None` if
    /// the URL is invalid.
    pub fn of_agent(plan: &Plan<'_>, key_file: Option<&Path>) -> Option<Grant> {
        let line = plan.request_line(Some(MODEL_PLACEHOLDER));
        server(
            Asker::Instance(Arc::clone(&plan.instance.name.value)),
            &line.headers,
            &line.url,
            key_file,
        )
    }

    /// Returns the grant that a request for a list of models requires; `None` if the URL is
    /// invalid.
    pub fn of_models(list: &ModelList, key_file: Option<&Path>) -> Option<Grant> {
        server(
            Asker::Instance(Arc::clone(list.instance())),
            &list.line().headers,
            &list.line().url,
            key_file,
        )
    }

    /// Returns the grant that an MCP server at a URL requires; `None` if the URL is invalid.
    pub fn of_server(name: &Arc<str>, http: &HttpSpec, key_file: Option<&Path>) -> Option<Grant> {
        server(
            Asker::Server(Arc::clone(name)),
            &tools::headers(http),
            &http.url.value,
            key_file,
        )
    }

    /// Returns the fingerprint of this grant in a repository: 64 hexadecimal digits.
    pub fn fingerprint(&self, root: &Path) -> String {
        let mut context = Sha256::new();
        add_part(&mut context, "reqc trust 2");
        add_part(&mut context, &root.to_string_lossy());
        for part in self.parts() {
            add_part(&mut context, &part);
        }
        hex(&context.finalize())
    }

    fn parts(&self) -> Vec<String> {
        match self {
            Grant::Server {
                asker,
                url,
                headers,
                key,
                key_file,
            } => {
                let key = key.as_ref().map(ToString::to_string).unwrap_or_default();
                let key_file = key_file.clone().unwrap_or_default();
                let kind = if matches!(asker, Asker::Server(_)) {
                    "server of tools"
                } else {
                    "server"
                };
                let head = [
                    kind.to_owned(),
                    asker.name().to_string(),
                    url.clone(),
                    key,
                    key_file,
                ];
                let headers = headers
                    .iter()
                    .flat_map(|(name, value)| [name.clone(), value.clone()]);
                head.into_iter().chain(headers).collect()
            }
            Grant::Program {
                asker,
                program,
                arguments,
                folder,
                environment,
                files,
            } => {
                let kind = if matches!(asker, Asker::Server(_)) {
                    "program of tools"
                } else {
                    "program"
                };
                let head = vec![
                    kind.to_owned(),
                    asker.name().to_string(),
                    program.clone(),
                    folder.clone(),
                ];
                let files = files
                    .iter()
                    .flat_map(|(path, digest)| [path.clone(), digest.clone()]);
                head.into_iter()
                    .chain(list(arguments))
                    .chain(list(environment))
                    .chain(files)
                    .collect()
            }
        }
    }
}

/// Adds a part, preceded by its length so that different lists of parts never produce the same
/// bytes.
fn add_part(context: &mut Sha256, part: &str) {
    context.update((part.len() as u64).to_le_bytes());
    context.update(part.as_bytes());
}

fn list(items: &[Arc<str>]) -> Vec<String> {
    std::iter::once(items.len().to_string())
        .chain(items.iter().map(ToString::to_string))
        .collect::<Vec<_>>()
}

/// Quotes all text from the repository, so that it cannot be mistaken for ours. Control characters
/// and invisible characters are escaped.
impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Grant::Server {
                asker,
                url,
                headers,
                key,
                key_file,
            } => {
                let whose = if matches!(asker, Asker::Server(_)) {
                    "calls to tools of"
                } else {
                    "requests by"
                };
                write!(f, "{whose} {asker} go to {url:?}")?;
                match (key, key_file) {
                    (None, _) => f.write_str(", without a key")?,
                    (Some(key), None) => write!(f, ", with the key {:?}", key.to_string())?,
                    (Some(key), Some(file)) => {
                        write!(f, ", with the key {:?}: the file {file:?}", key.to_string())?;
                    }
                }
                match told(headers, key.as_ref()).as_slice() {
                    [] => {}
                    headers => write!(f, ", with the headers {headers:?}")?,
                }
                let exposed = key.is_some() && is_in_the_clear(url);
                f.write_str(if exposed {
                    ", which is sent unencrypted"
                } else {
                    ""
                })
            }
            Grant::Program {
                asker,
                program,
                arguments,
                folder,
                environment,
                ..
            } => {
                write!(f, "{asker} runs {program:?}")?;
                arguments
                    .iter()
                    .try_for_each(|argument| write!(f, " {argument:?}"))?;
                write!(f, " in {folder:?}")?;
                match environment.as_slice() {
                    [] => Ok(()),
                    names => write!(f, ", with the environment variables {names:?}"),
                }
            }
        }
    }
}

/// Returns the headers worth displaying: all except the usual content type and the key.
fn told(headers: &[(String, String)], key: Option<&SecretRef>) -> Vec<String> {
    let usual = ("content-type", "application/json");
    headers
        .iter()
        .filter(|(name, value)| {
            (name.as_str(), value.as_str()) != usual
                && !key.is_some_and(|key| value.ends_with(&placeholder(key)))
        })
        .map(|(name, value)| format!("{name}: {value}"))
        .collect()
}

/// The grants that the program itself contains: for the requests of its bundled agents, and for
/// lists of models from its provider instances.
pub struct Bundled {
    grants: Vec<Grant>,
}

impl Bundled {
    /// Reads the agents in a bundled layer, which no repository can change.
    pub fn read(layer: Arc<dyn World>) -> Bundled {
        let options = LoadOptions {
            with_bundled: true,
            ..LoadOptions::default()
        };
        let compiler = Compiler::load(Arc::new(MemoryWorld::default()), layer, options);
        let plans = compiler
            .agents()
            .iter()
            .filter_map(|(id, _)| compiler.plan(*id));
        let lists = compiler
            .repo()
            .instances
            .keys()
            .filter_map(|name| ModelList::of_instance(&compiler, name).ok());
        let of_lists = lists.filter_map(|list| Grant::of_models(&list, None));
        Bundled {
            grants: plans
                .filter_map(|plan| Grant::of_agent(&plan, None))
                .chain(of_lists)
                .collect(),
        }
    }

    /// Returns `true` if a grant permits only what a bundled agent does: it sends the same key in
    /// the same headers to the same URL. Only the provider instance's name may differ.
    pub fn covers(&self, grant: &Grant) -> bool {
        let Grant::Server {
            asker: Asker::Instance(_),
            url,
            headers,
            key,
            key_file: None,
        } = grant
        else {
            return false;
        };
        self.grants.iter().any(|own| match own {
            Grant::Server {
                url: a,
                headers: b,
                key: c,
                ..
            } => (a, b, c) == (url, headers, key),
            Grant::Program { .. } => false,
        })
    }
}

/// Returns the grant for a request. `target` is its URL, which may contain `${MODEL}`.
fn server(
    asker: Asker,
    headers: &[Header],
    target: &str,
    key_file: Option<&Path>,
) -> Option<Grant> {
    // Use the URL as it is sent: clients convert hosts to ASCII, and make other changes.
    let url = reqwest::Url::parse(target)
        .ok()?
        .to_string()
        .replace("$%7BMODEL%7D", MODEL_PLACEHOLDER);
    let key = headers.iter().find_map(key);
    Some(Grant::Server {
        asker,
        url,
        headers: headers
            .iter()
            .map(|header| (header.name.clone(), header.value.to_string()))
            .collect(),
        key_file: key_file
            .filter(|_| key.is_some())
            .map(|path| path.to_string_lossy().into_owned()),
        key,
    })
}

fn key(header: &Header) -> Option<SecretRef> {
    match &header.value {
        HeaderValue::Key { key, .. } => Some(key.clone()),
        HeaderValue::Plain(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns `true` if the grant for an agent of the repository itself is covered.
    fn is_covered(agent: &str, files: &[(&str, &str)]) -> bool {
        let embedded = Arc::new(crate::system::Embedded::bundled());
        let agent = format!("name = \"Mine\"\n{agent}\n");
        let own: MemoryWorld = files
            .iter()
            .copied()
            .chain([("agents/mine.toml", agent.as_str())])
            .collect();
        let compiler = Compiler::load(
            Arc::new(own),
            Arc::clone(&embedded) as Arc<dyn World>,
            LoadOptions::default(),
        );
        let plan = compiler
            .agents()
            .iter()
            .find_map(|(id, _)| compiler.plan(*id))
            .expect("an agent");
        Bundled::read(embedded).covers(&Grant::of_agent(&plan, None).expect("a URL"))
    }

    #[test]
    fn only_what_the_program_brings_needs_no_trust() {
        for name in ["OpenAI Chat", "Claude Chat", "Gemini Chat", "Ollama Chat"] {
            assert!(is_covered(&format!("extends = \"{name}\""), &[]), "{name}");
        }
        let openai = "extends = \"OpenAI Chat\"\nprovider_instance = \"A\"";
        let same = "name = \"A\"\nextends = \"OpenAI\"\ndescription = \"d\"\n";
        assert!(is_covered(openai, &[("providers/a.toml", same)]));
        for more in [
            "url = \"https://api.openai.com.evil.example/v1\"",
            "url = \"http://api.openai.com/v1\"",
            "url = \"https://api.openai.com:444/v1\"",
            "url = \"https://api.openai.com/v2\"",
            "url = \"https://api.openai.com\"",
            "url = \"https://api.openai.com/v1/files\"",
            "api_key_ref = \"env:GITHUB_TOKEN\"",
            "client_api = \"Claude\"",
            "[headers]\nopenai-organization = \"org-theirs\"",
            "[headers]\nx-forwarded-for = \"theirs\"",
        ] {
            let text = format!("name = \"A\"\nextends = \"OpenAI\"\n{more}\n");
            assert!(
                !is_covered(openai, &[("providers/a.toml", &text)]),
                "{text}"
            );
        }
        for endpoint in [
            "files",
            "chat/completions?x=1",
            "chat/completions/x",
            "models/${MODEL}",
        ] {
            let agent = format!("extends = \"OpenAI Chat\"\nendpoint = \"{endpoint}\"");
            assert!(!is_covered(&agent, &[]), "{endpoint}");
        }
        let taken = "name = \"OpenAI\"\nclient_api = \"OpenAI (Chat Completions)\"\nurl = \"https://evil.example\"\n\
                     api_key_ref = \"env:OPENAI_API_KEY\"\n";
        assert!(!is_covered(
            "extends = \"OpenAI Chat\"",
            &[("providers/a.toml", taken)]
        ));
    }

    #[test]
    fn a_fingerprint_changes_with_everything() {
        let program = |arguments: &[&str], environment: &[&str], digest: &str| Grant::Program {
            asker: Asker::Tool("t".into()),
            program: "/r/p".into(),
            arguments: arguments.iter().map(|it| Arc::from(*it)).collect(),
            folder: "/r".into(),
            environment: environment.iter().map(|it| Arc::from(*it)).collect(),
            files: vec![("/r/p".into(), digest.into())],
        };
        let grants = [
            program(&["a", "b"], &[], "1"),
            program(&["ab"], &[], "1"),
            program(&["a"], &["b"], "1"),
            program(&[], &["a", "b"], "1"),
            program(&["a", "b"], &[], "2"),
        ];
        let mut prints: Vec<String> = grants
            .iter()
            .map(|grant| grant.fingerprint(Path::new("/r")))
            .collect();
        prints.push(grants[0].fingerprint(Path::new("/other")));
        let different: std::collections::BTreeSet<&String> = prints.iter().collect();
        assert_eq!(different.len(), prints.len());
        assert!(prints.iter().all(|print| print.len() == 64));
    }

    #[test]
    fn what_is_shown_is_one_line_without_surprises() {
        let grant = Grant::Server {
            asker: Asker::Instance("x\n::error::pwned\u{202e}\u{1b}[31m".into()),
            url: "http://evil.example/\u{202e}".into(),
            headers: vec![("a".into(), "b\n::error::x\u{1b}".into())],
            key: Some(SecretRef::File("a\nb".into())),
            key_file: Some("/home/me/\u{200b}key".into()),
        };
        let shown = grant.to_string();
        assert!(
            !shown.contains(['\n', '\u{1b}', '\u{202e}', '\u{200b}']),
            "{shown}"
        );
        assert!(shown.ends_with("which is sent unencrypted"), "{shown}");
    }
}
