//! The hand of a session: how the tools that start programs reach the launcher.
//!
//! A [`Hand`] knows what a session may see (mounts, rules, what is hidden) and makes a [`Plan`] of it for one command: a
//! view with its masks and guards, and an environment to the letter. [`Hand::launch`] starts it, [`Hand::run`] sees it
//! through to its end. Nothing here decides whether a command may run; the gate has.

mod absent;
mod denial;
mod environment;
mod failure;
mod fold;
mod git;
mod git_command;
mod git_config;
mod guards;
mod host;
mod later_places;
mod launched;
mod masks;
mod plan;
mod programs;
mod run;
mod runtime_folders;
mod secrets;
mod view;

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

pub use portcullis_agent::setup::NetworkAccess;
use portcullis_base::{IsolationLevel, SessionId};
use portcullis_contract::{Caller, ToolFailure};
use portcullis_pipeline::{Isolated, Isolation, PathRules, ShellBook};
use portcullis_sandbox::MountTable;
use portcullis_sandbox::hand::{Host, Launcher, Limits, Network, Running};
use portcullis_sandbox::tree::TreeIndex;

use crate::files::OwnWrites;

pub use denial::Denial;
pub(crate) use denial::{VisiblePlaces, named};
pub(crate) use git_config::git_setting;
pub(crate) use later_places::{LaterPlaces, appeared_words, outermost, tell_appeared};
pub use launched::{LaunchedFailure, Limit};
pub use masks::Masks;
pub use plan::Plan;
pub(crate) use programs::SYSTEM_FOLDERS;
pub use run::{CommandRun, StreamFault, StreamTails, Streams};
pub(crate) use run::{NOT_FOUND, never_ran, ran_to_its_end, tell_unheld};
pub(crate) use secrets::EmptiedFiles;

/// The sandbox profile of tools that run commands on writable mounts.
pub const PROFILE: &str = "hand";
/// The sandbox profile of tools that run commands which only read.
pub const READ_ONLY_PROFILE: &str = "hand_read_only";

/// The network that a launch gets (agent-runtime 2.2).
///
/// # Errors
/// If it cannot be given what it should have.
fn granted(access: NetworkAccess, reach: Reach) -> Result<Network, ToolFailure> {
    match (reach, access) {
        (Reach::ReadOnly, _) | (Reach::Writable, NetworkAccess::Disabled) => Ok(Network::Disabled),
        (Reach::Writable, NetworkAccess::Enabled) => Ok(Network::Host),
        (Reach::Writable, NetworkAccess::Limited) => Err(ToolFailure::sandbox_unavailable(
            "a network limited to certain hosts cannot be given to commands yet; set `network` in the [sandbox] table of \
             the configuration to \"disabled\" or \"enabled\"",
        )),
    }
}

/// What a session's commands get, whatever they are.
#[derive(Debug, Clone)]
pub struct HandSettings {
    /// Below this nothing runs.
    pub minimum: IsolationLevel,
    pub network: NetworkAccess,
    pub limits: Limits,
    /// This workspace's folder for caches in the data directory; without it no toolchain has a writable one.
    pub caches: Option<PathBuf>,
    /// Where toolchains are; `None` = only the system's programs.
    pub host: Option<Host>,
    /// Host folders and files that no command sees.
    pub hidden: Vec<PathBuf>,
    /// Those of them that configure or record the runtime, there or not: no command makes or replaces one, or a folder or
    /// a link on the way to it.
    pub ours: Vec<PathBuf>,
    /// Folders, links resolved, in which a person's shell, login or connection finds what it runs.
    pub homes: Vec<PathBuf>,
}

impl Default for HandSettings {
    /// Strict, without a network, and without anything of a person's home.
    fn default() -> Self {
        Self {
            minimum: IsolationLevel::Full,
            network: NetworkAccess::Disabled,
            limits: Limits::default(),
            caches: None,
            host: None,
            hidden: Vec::new(),
            ours: Vec::new(),
            homes: Vec::new(),
        }
    }
}

/// Whether the index of the tree keeps a name: it begins a place that runs later, or may be that of a secret.
fn looked_for(name: &OsStr) -> bool {
    later_places::begins(name) || name.to_str().is_some_and(portcullis_secret::file_names::may_be_secret)
}

/// What a command may do with what it sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Every mount is read-only, there is no cache, no network, no toolchain of a home, and nothing of the session's
    /// environment.
    ReadOnly,
    /// Mounts as they are, caches, the network of the settings, the session's environment.
    Writable,
}

/// The hand of the sessions of one workspace. Clones are one hand.
#[derive(Clone)]
pub struct Hand(Arc<HandParts>);

/// The state that all clones of a hand share.
struct HandParts {
    launcher: Launcher,
    mounts: Arc<MountTable>,
    rules: PathRules,
    book: ShellBook,
    settings: HandSettings,
    /// Where names stand that need a guard.
    tree: TreeIndex,
    /// What the file tools wrote.
    own: OwnWrites,
    /// What each session was told of files that it saw empty.
    told_empty: Mutex<HashMap<SessionId, HashSet<String>>>,
}

impl Hand {
    /// A hand over these mounts.
    #[must_use]
    pub fn new(
        launcher: Launcher,
        mounts: Arc<MountTable>,
        rules: PathRules,
        book: ShellBook,
        settings: HandSettings,
    ) -> Self {
        Self(Arc::new(HandParts {
            launcher,
            mounts,
            rules,
            book,
            settings,
            tree: TreeIndex::new(looked_for),
            own: OwnWrites::default(),
            told_empty: Mutex::default(),
        }))
    }

    /// What commands get.
    #[must_use]
    pub fn settings(&self) -> &HandSettings {
        &self.0.settings
    }

    /// What the file tools of the same workspace wrote; they say it here.
    pub(crate) fn own_writes(&self) -> &OwnWrites {
        &self.0.own
    }

    /// What starts them.
    #[must_use]
    pub fn launcher(&self) -> &Launcher {
        &self.0.launcher
    }

    /// The mounts they see.
    #[must_use]
    pub fn mounts(&self) -> &Arc<MountTable> {
        &self.0.mounts
    }

    /// Starts what was planned. When this returns, its program has been executed; if it fails, nothing of it ran.
    ///
    /// # Errors
    /// `sandbox_unavailable` if the isolation it needs is not to be had here, naming the rule or the level; otherwise what
    /// is wrong with the command.
    pub async fn launch(&self, plan: Plan) -> Result<Running, ToolFailure> {
        let Plan { launch, masks, .. } = plan;
        self.0.launcher.launch(launch).await.map_err(|error| failure::of(&error, &masks))
    }

    /// Whether a rule closes something now that was open when a command was launched with `since`: it must not go on with
    /// its old view. What was closed then and is not any more does not count, but for what the runtime hides: where that
    /// was removed, its mask went with it, and the command could make it anew.
    ///
    /// # Errors
    /// If the mounts cannot be looked through.
    pub async fn masks_changed(&self, caller: &Caller, since: &Masks) -> Result<bool, ToolFailure> {
        let now = self.masks(caller, Reach::Writable).await?;
        Ok(!now.are_all_in(since) || !since.hidden_is_all_in(&now))
    }
}

impl Isolation for Hand {
    fn of(&self, profile: &str) -> Option<Isolated> {
        let HandParts { launcher, settings, .. } = &*self.0;
        let network = match profile {
            READ_ONLY_PROFILE => NetworkAccess::Disabled,
            PROFILE => settings.network,
            _ => return None,
        };
        let posture = launcher.posture();
        Some(Isolated {
            level: posture.level,
            missing: posture.missing_lines(),
            minimum: settings.minimum,
            network: network.as_str().to_owned(),
        })
    }
}
