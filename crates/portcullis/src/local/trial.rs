//! Rules on trial, for each workspace that sessions worked in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_base::Timestamp;
use portcullis_config::{ConfigError, ProjectRules, Settings, project_file};
use portcullis_policy::{Layer, Policy, Rule};
use portcullis_store::{SessionSummary, StoreError};

use super::Installation;
use crate::operations::Backtest;

/// The rules of a file, in place of those of its layer.
pub struct RulesOnTrial<'a> {
    settings: &'a Settings,
    layer: Layer,
    rules: Vec<Rule>,
    file: &'a Path,
    policies: BTreeMap<Option<PathBuf>, Arc<Policy>>,
}

impl<'a> RulesOnTrial<'a> {
    /// Tries the rules of `file`, which are those of a layer.
    #[must_use]
    pub fn new(settings: &'a Settings, layer: Layer, rules: Vec<Rule>, file: &'a Path) -> Self {
        Self { settings, layer, rules, file, policies: BTreeMap::new() }
    }

    /// What would decide in a workspace.
    ///
    /// # Errors
    /// If the other rules of the workspace cannot be read.
    pub fn policy(&mut self, workspace: Option<&str>) -> Result<Arc<Policy>, ConfigError> {
        let folder = workspace.map(PathBuf::from);
        if let Some(policy) = self.policies.get(&folder) {
            return Ok(Arc::clone(policy));
        }
        let settings = self.settings;
        let own = || match &folder {
            Some(folder) => ProjectRules::load(&settings.home, folder),
            None => Ok(ProjectRules::default()),
        };
        let theirs = project_file(folder.as_deref().unwrap_or(Path::new("/")));
        let here = self.file.canonicalize().ok().is_some_and(|file| theirs.canonicalize().is_ok_and(|own| own == file));
        let policy = match self.layer {
            // As if the person had trusted it: whoever tries a file wants to know what it would do.
            Layer::Project if here => {
                let project = ProjectRules { rules: self.rules.clone(), trusted: true, unreadable: None };
                settings.policy_with(settings.user_rules().to_vec(), project)?
            }
            Layer::User => settings.policy_with(self.rules.clone(), own()?)?,
            _ => settings.policy_with(settings.user_rules().to_vec(), own()?)?,
        };
        let policy = Arc::new(policy);
        self.policies.insert(folder, Arc::clone(&policy));
        Ok(policy)
    }
}

impl Installation {
    /// A backtest of intents since a time, or of all, and the sessions that they are in.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn backtest(&self, since: Option<Timestamp>) -> Result<(Backtest, Vec<SessionSummary>), StoreError> {
        let sessions = self.archive.sessions(usize::MAX).await?;
        Ok((Backtest::new(self.store(), self.archive.tenant, since).await?, sessions))
    }
}
