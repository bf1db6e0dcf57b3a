//! Servers that a user names, because a URL such as `http://10.0.0.7:8000` does not reveal them.

use super::server::{Server, Site};

/// A server named by a user: an operator, or the software that runs at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NamedServer(Named);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Named {
    Server(Server),
    Site(Site),
    Software(Software),
}

/// Software that anyone can run at any address, except for software that is a [`Server`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Software {
    /// The name that families and messages use.
    pub(crate) name: &'static str,
    /// `false` for a gateway, which passes requests on to other servers.
    pub(crate) runs_models: bool,
}

const fn engine(name: &'static str) -> Software {
    Software {
        name,
        runs_models: true,
    }
}

const fn gateway(name: &'static str) -> Software {
    Software {
        name,
        runs_models: false,
    }
}

// The software to which rules refer.
pub(crate) const VLLM: Software = engine("vLLM");
pub(crate) const SGLANG: Software = engine("SGLang");
pub(crate) const LMDEPLOY: Software = engine("LMDeploy");
pub(crate) const MINDIE: Software = engine("MindIE");
pub(crate) const OPENVINO: Software = engine("OpenVINO Model Server");
pub(crate) const MISTRAL_RS: Software = engine("mistral.rs");
pub(crate) const VLLM_MLX: Software = engine("vllm-mlx");
pub(crate) const LLAMA_STACK: Software = engine("Llama Stack");
pub(crate) const ENVOY: Software = gateway("Envoy AI Gateway");

/// All known software.
const SOFTWARE: [Software; 24] = [
    VLLM,
    SGLANG,
    LMDEPLOY,
    engine("TensorRT-LLM"),
    engine("Text Generation Inference"),
    MINDIE,
    OPENVINO,
    engine("DJL Serving"),
    MISTRAL_RS,
    engine("MLX LM"),
    engine("mlx-vlm"),
    engine("Rapid-MLX"),
    VLLM_MLX,
    engine("Xinference"),
    engine("Text generation web UI"),
    engine("TabbyAPI"),
    engine("KoboldCpp"),
    engine("LocalAI"),
    engine("MLC LLM"),
    LLAMA_STACK,
    gateway("LiteLLM"),
    ENVOY,
    gateway("New API"),
    gateway("One Hub"),
];

impl Software {
    /// Returns the names of all known software.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        SOFTWARE.iter().map(|software| software.name)
    }
}

impl NamedServer {
    fn all() -> impl Iterator<Item = NamedServer> {
        let servers = Server::ALL
            .into_iter()
            .filter(|server| *server != Server::Unknown);
        let sites = Site::ALL.into_iter().filter(|site| site.is_operator());
        SOFTWARE
            .into_iter()
            .map(Named::Software)
            .chain(servers.map(Named::Server))
            .chain(sites.map(Named::Site))
            .map(NamedServer)
    }

    /// Returns the names of all servers.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NamedServer::all().map(NamedServer::name)
    }

    /// Returns the server with exactly this name; `None` if there is none.
    pub fn from_name(name: &str) -> Option<NamedServer> {
        NamedServer::all().find(|server| server.name() == name)
    }

    /// Returns the server with this name in upper or lower case; `None` if there is none.
    pub fn from_name_in_any_case(name: &str) -> Option<NamedServer> {
        NamedServer::all().find(|server| server.name().eq_ignore_ascii_case(name))
    }

    /// Returns the name of the server.
    pub fn name(self) -> &'static str {
        match self.0 {
            Named::Server(server) => server.name(),
            Named::Site(site) => site.name(),
            Named::Software(software) => software.name,
        }
    }

    /// Returns the server whose rules apply; `None` if they depend on the client API.
    pub fn server(self) -> Option<Server> {
        match self.0 {
            Named::Server(server) => Some(server),
            Named::Site(_) => None,
            Named::Software(_) => Some(Server::Unknown),
        }
    }

    pub(super) fn site(self) -> Option<Site> {
        match self.0 {
            Named::Site(site) => Some(site),
            Named::Server(_) | Named::Software(_) => None,
        }
    }

    pub(super) fn software(self) -> Option<Software> {
        match self.0 {
            Named::Software(software) => Some(software),
            Named::Server(_) | Named::Site(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_in_any_case() {
        let names: Vec<String> = NamedServer::names().map(str::to_lowercase).collect();
        let unique: BTreeSet<&String> = names.iter().collect();
        assert_eq!(names.len(), unique.len());
    }

    #[test]
    fn names_tell_servers_sites_and_software() {
        let of = |name| NamedServer::from_name_in_any_case(name).map(|it| (it.name(), it.server()));
        assert_eq!(of("groq"), Some(("Groq", Some(Server::Groq))));
        assert_eq!(of("VLLM"), Some(("vLLM", Some(Server::Unknown))));
        assert_eq!(of("azure"), Some(("Azure", None)));
        assert_eq!(NamedServer::from_name("vllm"), None);
        for unknown in ["", "this server", "token count", "private address", "vLLM "] {
            assert_eq!(of(unknown), None, "{unknown}");
        }
    }
}
