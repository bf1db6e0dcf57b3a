//! Lists the models that an agent's server offers and that reqc has no facts about.
//!
//! `cargo run --example models -- "Ollama Chat"`

use reqc::runtime::{Agent, Error, Transport};
use reqc::system::open_repository;

/// Returns the models that do not belong to any family in `model-families.toml`. For these, only
/// the rules of their wire format apply.
pub(crate) async fn unknown(agent: &Agent, transport: &Transport) -> Result<Vec<String>, Error> {
    let models = agent.installed_models(transport).await?;
    let unknown = models.into_iter().filter(|model| model.families.is_empty());
    Ok(unknown.map(|model| model.id.to_string()).collect())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).ok_or("AGENT")?;
    let repository = open_repository(".")?;
    for model in unknown(&repository.agent(&name)?, &repository.transport()).await? {
        println!("{model}");
    }
    Ok(())
}
