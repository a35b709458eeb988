//! Who works in sessions that this process wakes: the model, and how its wakes behave.

use std::sync::Arc;

use portcullis::harness::{Guidance, NoWatcher, Settings as Wakes};
use portcullis::model::Model;
use portcullis::{Agent, AgentParts, Profile, Runtime, Setup, SystemIds, environment};
use portcullis_config::{ModelChoice, Settings};

use crate::args::Globals;
use crate::render::Term;
use crate::run::guidance;

/// The settings of a run in which a model works: profile `code`, unless a flag says otherwise.
pub fn settings(globals: &Globals) -> anyhow::Result<Settings> {
    let mut settings = globals.settings()?;
    if globals.profile.is_none() {
        settings.profile = Profile::Code;
    }
    Ok(settings)
}

/// The model that a session has by its setup, unless a flag or a variable names another; the configured one where the
/// setup names none.
pub fn model_of(settings: &Settings, setup: &Setup) -> ModelChoice {
    match &setup.model {
        Some(own) if !settings.chosen.model => settings.model.by(own),
        _ => settings.model.clone(),
    }
}

/// The setup of a session that a person goes on with: what a flag names is changed in it, and commands get what the
/// machine's configuration gives now.
pub fn started(own: Setup, settings: &Settings) -> Setup {
    let folder = own.workspace.clone().unwrap_or_default();
    let profile = if settings.chosen.profile { settings.profile } else { own.profile };
    Setup { profile, environment: environment(&settings.hand(folder.as_ref())), ..own }
}

/// An agent for sessions of one runtime, with the guidance of its workspace as it is now.
pub async fn agent(runtime: &Runtime, model: &Arc<dyn Model>, choice: &ModelChoice, term: &Term) -> Agent {
    guided(runtime, model, choice, guidance(runtime, term).await)
}

/// The same with this guidance.
pub fn guided(runtime: &Runtime, model: &Arc<dyn Model>, choice: &ModelChoice, guidance: Option<Guidance>) -> Agent {
    runtime.agent(AgentParts {
        model: Arc::clone(model),
        settings: Wakes { guidance, ..choice.wakes() },
        watcher: Arc::new(NoWatcher),
        entropy: Arc::new(SystemIds::new()),
        sandbox: sandbox(runtime),
    })
}

/// What stands between commands and the machine, in one line for the model.
pub fn sandbox(runtime: &Runtime) -> String {
    let environment = runtime.environment();
    let (level, network) = (environment.minimum, environment.network.as_str());
    format!("commands run isolated at level {level} or better; their network is {network}")
}
