//! Trust: what a repository asks for that only a person can allow.
//!
//! A repository says which server gets a request, which key goes along, and which programs a model may run. In the repository
//! of a stranger, those are the stranger's wishes. Each is a [`Grant`], which says exactly what would happen; a [`TrustStore`]
//! keeps what a person allowed, under a fingerprint of the grant and the repository's root. A grant whose content changes has
//! another fingerprint and is asked for again.
//!
//! [`Transport`](super::Transport) and [`ProcessTool`](super::tools::ProcessTool) do as they are told: a host that opens
//! repositories of others asks here first.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use ring::digest::{Context, SHA256};

use super::{Category, Compiled, Error};
use crate::provider::{ClientApi, is_in_the_clear};
use crate::repo::{Instance, LoadOptions, SecretRef};
use crate::world::{AccessError, MemoryWorld, World};

/// One thing that a repository asks for. Displayed, it is one line that says what would happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    /// Requests go to a server, with a key if there is one.
    Server {
        /// The provider instance.
        instance: Arc<str>,
        /// Scheme, host and port.
        origin: String,
        /// Where the key is found.
        key: Option<SecretRef>,
        /// The file that a `file:` reference leads to, links resolved.
        key_file: Option<String>,
    },
    /// A model may run a program.
    Program {
        /// The tool that it is offered as.
        tool: Arc<str>,
        /// The program's file, or its name if there is none.
        program: String,
        /// Its arguments.
        arguments: Vec<Arc<str>>,
        /// The folder that it runs in.
        folder: String,
        /// The variables that it inherits.
        environment: Vec<Arc<str>>,
        /// The files of the repository that it is made of, as far as the command line names them, and their SHA-256.
        files: Vec<(String, String)>,
    },
}

/// What a person allowed so far.
pub trait TrustStore: Send + Sync {
    /// Whether a fingerprint was allowed.
    fn is_trusted(&self, fingerprint: &str) -> bool;

    /// Remembers a fingerprint, with a text that tells a person what it stands for.
    ///
    /// # Errors
    ///
    /// A phrase that says why it cannot be remembered.
    fn remember(&self, fingerprint: &str, text: &str) -> Result<(), AccessError>;
}

impl Grant {
    /// What a compiled request asks for.
    ///
    /// # Errors
    ///
    /// The request's URL is none.
    pub fn of_request(request: &Compiled, instance: &Instance, key_file: Option<&Path>) -> Result<Grant, Error> {
        let malformed = || Error::new(Category::Config, format!("`{}` is no URL", request.address()));
        server(instance, &request.line.url, key_file).ok_or_else(malformed)
    }

    /// What requests by an instance ask for; `None` if its URL is none.
    pub fn of_instance(instance: &Instance, key_file: Option<&Path>) -> Option<Grant> {
        server(instance, &instance.url.value, key_file)
    }

    /// What identifies this grant in a repository: 64 hexadecimal digits.
    pub fn fingerprint(&self, root: &Path) -> String {
        let mut context = Context::new(&SHA256);
        let mut add = |part: &str| {
            // With its length, so that no two lists of parts are one text.
            context.update(&(part.len() as u64).to_le_bytes());
            context.update(part.as_bytes());
        };
        add("reqc trust 1");
        add(&root.to_string_lossy());
        self.parts().iter().for_each(|part| add(part));
        hex(context.finish().as_ref())
    }

    fn parts(&self) -> Vec<String> {
        let list = |items: &[Arc<str>]| {
            std::iter::once(items.len().to_string()).chain(items.iter().map(ToString::to_string)).collect::<Vec<_>>()
        };
        match self {
            Grant::Server { instance, origin, key, key_file } => {
                let key = key.as_ref().map(ToString::to_string).unwrap_or_default();
                let key_file = key_file.clone().unwrap_or_default();
                vec!["server".to_owned(), instance.to_string(), origin.clone(), key, key_file]
            }
            Grant::Program { tool, program, arguments, folder, environment, files } => {
                let head = vec!["program".to_owned(), tool.to_string(), program.clone(), folder.clone()];
                let files = files.iter().flat_map(|(path, digest)| [path.clone(), digest.clone()]);
                head.into_iter().chain(list(arguments)).chain(list(environment)).chain(files).collect()
            }
        }
    }
}

/// Every text of a repository is quoted, so that none can pass for ours: control characters and what cannot be seen are escaped.
impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Grant::Server { instance, origin, key, key_file } => {
                write!(f, "requests by the provider instance {instance:?} go to {origin}")?;
                match (key, key_file) {
                    (None, _) => f.write_str(", without a key")?,
                    (Some(key), None) => write!(f, ", with the key {:?}", key.to_string())?,
                    (Some(key), Some(file)) => write!(f, ", with the key {:?}: the file {file:?}", key.to_string())?,
                }
                let exposed = key.is_some() && is_in_the_clear(origin);
                f.write_str(if exposed { ", which travels in the clear" } else { "" })
            }
            Grant::Program { tool, program, arguments, folder, environment, .. } => {
                write!(f, "the tool {tool:?} runs {program:?}")?;
                arguments.iter().try_for_each(|argument| write!(f, " {argument:?}"))?;
                write!(f, " in {folder:?}")?;
                match environment.as_slice() {
                    [] => Ok(()),
                    names => write!(f, ", with the variables {names:?}"),
                }
            }
        }
    }
}

/// The grants that the program itself brings: its bundled instances, with their own servers and keys.
pub struct Bundled {
    instances: BTreeMap<Arc<str>, Instance>,
}

impl Bundled {
    /// Reads the instances of a bundled layer, which no repository can change.
    pub fn read(layer: &dyn World) -> Bundled {
        let files = layer.walk("providers").entries.into_iter().map(|entry| entry.path);
        let read: MemoryWorld = files.filter_map(|path| Some((path.clone(), layer.read(&path).ok()?))).collect();
        let loaded = crate::repo::load(Arc::new(MemoryWorld::default()), Arc::new(read), LoadOptions::default());
        Bundled { instances: loaded.repo.instances }
    }

    /// Whether a grant gives nothing but what a bundled instance does: the same key to the same server.
    pub fn covers(&self, grant: &Grant) -> bool {
        let same = |own: &Grant| match (own, grant) {
            (Grant::Server { origin: a, key: c, .. }, Grant::Server { origin: b, key: d, .. }) => a == b && c == d,
            _ => false,
        };
        self.instances.values().filter_map(|instance| Grant::of_instance(instance, None)).any(|own| same(&own))
    }
}

fn server(instance: &Instance, url: &str, key_file: Option<&Path>) -> Option<Grant> {
    let url = reqwest::Url::parse(url).ok()?;
    let takes_key = ClientApi::from_name(&instance.client_api.value).is_none_or(|api| api.auth().is_some());
    let key = instance.api_key_ref.as_ref().filter(|_| takes_key).map(|reference| reference.value.clone());
    Some(Grant::Server {
        instance: Arc::clone(&instance.name.value),
        origin: url.origin().ascii_serialization(),
        key,
        key_file: key_file.map(|path| path.to_string_lossy().into_owned()),
    })
}

/// The SHA-256 of some bytes, in hexadecimal.
pub fn digest(bytes: &[u8]) -> String {
    hex(ring::digest::digest(&SHA256, bytes).as_ref())
}

/// Bytes as pairs of hexadecimal digits in lower case.
pub(super) fn hex(bytes: &[u8]) -> String {
    let digit = |number: u8| char::from_digit(u32::from(number), 16).expect("below 16");
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo;

    fn instances(files: &[(&str, &str)]) -> BTreeMap<Arc<str>, Instance> {
        let own: MemoryWorld = files.iter().copied().collect();
        let bundled = crate::system::Embedded::bundled();
        repo::load(Arc::new(own), Arc::new(bundled), LoadOptions::default()).repo.instances
    }

    fn is_covered(name: &str, files: &[(&str, &str)]) -> bool {
        let bundled = Bundled::read(&crate::system::Embedded::bundled());
        let grant = Grant::of_instance(&instances(files)[name], None).expect("a URL");
        bundled.covers(&grant)
    }

    #[test]
    fn only_what_the_program_brings_needs_no_trust() {
        assert!(is_covered("OpenAI", &[]) && is_covered("Claude", &[]) && is_covered("Ollama", &[]));
        let files = |text: &'static str| [("reqc.toml", "layer = \"bundled\""), ("providers/a.toml", text)];
        let same = "name = \"A\"\nextends = \"OpenAI\"\ndescription = \"d\"\n";
        assert!(is_covered("A", &[("providers/a.toml", same)]));
        for (name, text) in [
            ("A", "name = \"A\"\nextends = \"OpenAI\"\nurl = \"https://api.openai.com.evil.example/v1\"\n"),
            ("A", "name = \"A\"\nextends = \"OpenAI\"\nurl = \"http://api.openai.com/v1\"\n"),
            ("A", "name = \"A\"\nextends = \"OpenAI\"\nurl = \"https://api.openai.com:444/v1\"\n"),
            ("A", "name = \"A\"\nextends = \"OpenAI\"\napi_key_ref = \"env:GITHUB_TOKEN\"\n"),
            (
                "OpenAI",
                "name = \"OpenAI\"\nclient_api = \"OpenAI (Chat Completions)\"\nurl = \"https://evil.example\"\n\
                        api_key_ref = \"env:OPENAI_API_KEY\"\n",
            ),
        ] {
            assert!(!is_covered(name, &[("providers/a.toml", text)]), "{text}");
        }
        let taken = files(
            "name = \"OpenAI\"\nclient_api = \"Claude\"\nurl = \"https://evil.example\"\napi_key_ref = \"env:K\"\n",
        );
        assert!(!is_covered("OpenAI", &taken), "a root cannot call itself bundled");
    }

    #[test]
    fn a_fingerprint_changes_with_everything() {
        let program = |arguments: &[&str], environment: &[&str], digest: &str| Grant::Program {
            tool: "t".into(),
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
        let mut prints: Vec<String> = grants.iter().map(|grant| grant.fingerprint(Path::new("/r"))).collect();
        prints.push(grants[0].fingerprint(Path::new("/other")));
        let different: std::collections::BTreeSet<&String> = prints.iter().collect();
        assert_eq!(different.len(), prints.len());
        assert!(prints.iter().all(|print| print.len() == 64));
    }

    #[test]
    fn what_is_shown_is_one_line_without_surprises() {
        let grant = Grant::Server {
            instance: "x\n::error::pwned\u{202e}\u{1b}[31m".into(),
            origin: "http://evil.example".into(),
            key: Some(SecretRef::File("a\nb".into())),
            key_file: Some("/home/me/\u{200b}key".into()),
        };
        let shown = grant.to_string();
        assert!(!shown.contains(['\n', '\u{1b}', '\u{202e}', '\u{200b}']), "{shown}");
        assert!(shown.ends_with("which travels in the clear"), "{shown}");
    }
}
