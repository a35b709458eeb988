//! Who works in sessions that this process wakes: the model, and how its wakes behave.

use std::sync::Arc;

use portcullis::harness::{Guidance, NoWatcher, Settings as Wakes};
use portcullis::model::Model;
use portcullis::{Agent, AgentParts, Profile, Runtime, SystemIds};
use portcullis_config::Settings;

use crate::args::Globals;
use crate::render::Term;
use crate::run::{guidance, model};

/// The model that works: by flag, by configuration, or the first that the environment has a key for.
pub async fn choose(settings: &Settings, term: &Term) -> anyhow::Result<Arc<dyn Model>> {
    model::choose(settings, false, term).await
}

/// The settings of a run in which a model works: profile `code`, unless a flag says otherwise.
pub fn settings(globals: &Globals) -> anyhow::Result<Settings> {
    let mut settings = globals.settings()?;
    if globals.profile.is_none() {
        settings.profile = Profile::Code;
    }
    Ok(settings)
}

/// An agent for sessions of one workspace, with its guidance as it is now.
pub async fn agent(runtime: &Runtime, model: &Arc<dyn Model>, settings: &Settings, term: &Term) -> Agent {
    guided(runtime, model, settings, guidance(runtime, term).await)
}

/// The same with this guidance.
pub fn guided(runtime: &Runtime, model: &Arc<dyn Model>, settings: &Settings, guidance: Option<Guidance>) -> Agent {
    runtime.agent(AgentParts {
        model: Arc::clone(model),
        settings: Wakes { guidance, ..settings.model.wakes() },
        watcher: Arc::new(NoWatcher),
        entropy: Arc::new(SystemIds::new()),
        sandbox: format!(
            "commands run isolated at level {} or better; their network is {}",
            settings.minimum,
            settings.network.as_str()
        ),
    })
}
