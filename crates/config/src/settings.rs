//! Configuration: flag, environment variable, project file, user file, default. A file that is not understood whole is an
//! error; nothing in it is passed over.

use std::path::{Path, PathBuf};
use std::time::Duration;

use portcullis_base::IsolationLevel;
use portcullis_policy::{EnterprisePolicy, Policy, PolicyBuilder, Rule};
use portcullis_sandbox::hand::{Host, Limits};
use portcullis_store::Retention;
use portcullis_store_sqlite::Durability;
use portcullis_tools::Profile;
use portcullis_tools::hand::{HandSettings, NetworkAccess};

use crate::ApprovalMode;
use crate::error::{ConfigError, UnreadableFile};
use crate::files::read;
use crate::home::{self, Home};
use crate::project::ProjectRules;
use crate::runtime_folders;
use crate::trust::UnreadableTrust;
use crate::user_file::{ModelChoice, local, parse_user};

/// What the command line says, which wins over variables and files.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// Whether a flag names the workspace.
    pub workspace: bool,
    pub workspace_is_home: bool,
    pub store: Option<String>,
    pub artifacts: Option<String>,
    pub config: Option<PathBuf>,
    pub profile: Option<Profile>,
    pub model: Option<String>,
    pub base_url: Option<String>,
    pub approvals: Option<ApprovalMode>,
    pub sandbox: Option<IsolationLevel>,
}

/// What did not come from the user's own file or a default.
#[derive(Debug, Clone, Default)]
pub struct ChoiceOrigins {
    /// Whether `--workspace` named the workspace.
    pub workspace: bool,
    /// Whether that may hold a home folder.
    pub workspace_is_home: bool,
    pub base_url: bool,
    /// Whether a flag or a variable names the model.
    pub model: bool,
    pub profile: bool,
    pub store: bool,
    pub artifacts: bool,
    pub config: Option<PathBuf>,
    pub sandbox: Option<IsolationLevel>,
}

/// Everything a run needs to know before it opens anything.
#[derive(Debug, Clone)]
pub struct Settings {
    pub home: Home,
    pub database: PathBuf,
    pub artifacts: PathBuf,
    pub durability: Durability,
    pub quota: u64,
    /// What goes by itself; nothing unless someone says so.
    pub retention: Retention,
    pub approvals: ApprovalMode,
    pub ask_expiry: Duration,
    /// The least isolation that commands run with; nothing weakens the organisation's.
    pub minimum: IsolationLevel,
    pub network: NetworkAccess,
    /// What a command may use up.
    pub limits: Limits,
    /// How long a persistent shell is kept that nobody uses.
    pub shell_idle: Duration,
    pub profile: Profile,
    pub model: ModelChoice,
    /// The address that the user's file names, whether or not it is the one that holds.
    pub file_base_url: Option<String>,
    /// The collector that spans are sent to.
    pub otlp_endpoint: Option<String>,
    /// What a flag or a variable chose: a command that goes on from here must choose it again.
    pub chosen: ChoiceOrigins,
    /// The user's file, if there is one.
    pub user_file: Option<PathBuf>,
    pub enterprise: EnterprisePolicy,
    user_rules: Vec<Rule>,
}

impl Settings {
    /// Reads every file but the project's.
    pub fn load(flags: &Flags) -> Result<Self, ConfigError> {
        let home = Home::find()?;
        let config = || std::env::var_os("PORTCULLIS_CONFIG").filter(|value| !value.is_empty()).map(PathBuf::from);
        let named = flags.config.clone().or_else(config);
        let mut chosen = ChoiceOrigins {
            workspace: flags.workspace,
            workspace_is_home: flags.workspace_is_home,
            base_url: flags.base_url.is_some(),
            profile: flags.profile.is_some(),
            config: named.clone(),
            sandbox: flags.sandbox,
            ..ChoiceOrigins::default()
        };
        let (user_file, text) = match named {
            Some(path) => {
                let text = read(&path)?.ok_or_else(|| UnreadableFile::absent(&path))?;
                (Some(path), text)
            }
            None => match home::user_config() {
                Some(path) => read(&path)?.map_or_else(|| (None, String::new()), |text| (Some(path), text)),
                None => (None, String::new()),
            },
        };
        let name = user_file.as_deref().map(|path| path.display().to_string()).unwrap_or_default();
        let file = parse_user(&text, &name)?;
        let enterprise = EnterprisePolicy::load(Path::new(EnterprisePolicy::PATH))?;

        let store = flags.store.clone().map_or_else(|| variable("PORTCULLIS_STORE"), |url| Ok(Some(url)))?;
        chosen.store = store.is_some();
        let store = match store {
            Some(url) => Some(local("sqlite", &url).map_err(|why| ConfigError::invalid(format!("--store: {why}")))?),
            None => file.store,
        };
        let artifacts =
            flags.artifacts.clone().map_or_else(|| variable("PORTCULLIS_ARTIFACTS"), |url| Ok(Some(url)))?;
        chosen.artifacts = artifacts.is_some();
        let artifacts = match artifacts {
            Some(url) => Some(local("file", &url).map_err(|why| ConfigError::invalid(format!("--artifacts: {why}")))?),
            None => file.artifacts,
        };
        let approvals = match (flags.approvals, variable("PORTCULLIS_APPROVALS")?) {
            (Some(mode), _) => mode,
            (None, Some(word)) => ApprovalMode::from_word(&word)
                .map_err(|why| ConfigError::invalid(format!("PORTCULLIS_APPROVALS: {why}")))?,
            (None, None) => file.approvals,
        };
        permitted(approvals, &enterprise)?;
        let model = ModelChoice {
            name: flags.model.clone().map_or_else(|| variable("PORTCULLIS_MODEL"), |name| Ok(Some(name)))?,
            base_url: flags.base_url.clone(),
            ..file.model.clone()
        };
        chosen.model = model.name.is_some();
        let file_base_url = file.model.base_url.clone();
        // An address of the file belongs to the model of the file.
        let base_url = model.base_url.or_else(|| file.model.base_url.filter(|_| model.name.is_none()));
        let model = ModelChoice { name: model.name.or(file.model.name), base_url, ..model };
        Ok(Self {
            database: store.unwrap_or_else(|| home.database()),
            artifacts: artifacts.unwrap_or_else(|| home.artifacts()),
            durability: file.durability,
            quota: file.quota,
            retention: file.retention,
            approvals,
            ask_expiry: file.ask_expiry,
            minimum: flags
                .sandbox
                .unwrap_or(file.minimum)
                .max(enterprise.min_sandbox().unwrap_or(IsolationLevel::None)),
            network: file.network,
            limits: file.limits,
            shell_idle: file.shell_idle,
            profile: flags.profile.unwrap_or(Profile::Managed),
            model,
            file_base_url,
            otlp_endpoint: file.otlp_endpoint,
            chosen,
            user_file,
            enterprise,
            user_rules: file.rules,
            home,
        })
    }

    /// The rules that hold in a workspace.
    pub fn policy(&self, workspace: &Path) -> Result<Policy, ConfigError> {
        let project = ProjectRules::load(&self.home, workspace)?;
        self.policy_with(self.user_rules.iter().cloned(), project)
    }

    /// A record of trust of this workspace's rules that says nothing.
    pub fn unreadable_trust(&self, workspace: &Path) -> Result<Option<UnreadableTrust>, ConfigError> {
        Ok(ProjectRules::load(&self.home, workspace)?.unreadable)
    }

    /// The rules that would hold with these in the place of the user's and the project's own.
    pub fn policy_with(
        &self,
        user: impl IntoIterator<Item = Rule>,
        project: ProjectRules,
    ) -> Result<Policy, ConfigError> {
        let builder = PolicyBuilder::new().enterprise(&self.enterprise).rules(user);
        Ok(builder.rules(project.rules).project_trust(project.trusted).build()?)
    }

    /// What commands get in a workspace.
    pub fn hand(&self, workspace: &Path) -> HandSettings {
        HandSettings {
            minimum: self.minimum,
            network: self.network,
            limits: self.limits,
            caches: Some(self.home.caches(workspace)),
            host: Host::of_this_process(),
            ours: runtime_folders::places(self, workspace),
            homes: runtime_folders::homes_in(workspace),
            ..HandSettings::default()
        }
    }

    /// The user's own rules.
    pub fn user_rules(&self) -> &[Rule] {
        &self.user_rules
    }
}

/// A variable's text, `None` if it is unset or empty.
pub fn variable(name: &str) -> Result<Option<String>, ConfigError> {
    match std::env::var_os(name).filter(|value| !value.is_empty()).map(std::ffi::OsString::into_string) {
        None => Ok(None),
        Some(Ok(text)) => Ok(Some(text)),
        Some(Err(_)) => {
            Err(ConfigError::invalid(format!("the variable {name} is not UTF-8 text; set it anew or unset it")))
        }
    }
}

/// Only the organisation can forbid it, and nothing here can overrule that.
pub fn permitted(approvals: ApprovalMode, enterprise: &EnterprisePolicy) -> Result<(), ConfigError> {
    if approvals == ApprovalMode::Allow && !enterprise.approvals_allow() {
        return Err(ConfigError::AllowForbidden(EnterprisePolicy::PATH));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_organisation_can_forbid_allowing_everything() {
        let strict = EnterprisePolicy::parse("approvals_allow = false", "policy.toml").expect("parses");
        assert!(permitted(ApprovalMode::Allow, &strict).is_err());
        assert!(permitted(ApprovalMode::Deny, &strict).is_ok());
        assert!(permitted(ApprovalMode::Allow, &EnterprisePolicy::default()).is_ok());
    }
}
