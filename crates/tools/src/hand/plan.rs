//! From a command to a plan for the launcher.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use portcullis_base::EnvKey;
use portcullis_contract::{Caller, Resource, ToolFailure};
use portcullis_sandbox::VirtualPath;
use portcullis_sandbox::hand::{self, Network, Tmp, View};
use portcullis_secret::SecretText;

use super::masks::ClosedPlace;
use super::secrets::{EmptiedFiles, Shown};
use super::view::ViewPlaces;
use super::{Hand, LaterPlaces, Masks, Reach, environment, guards, host, programs, runtime_folders};

/// One launch. What a tool adds of its own (standard input, descriptors) goes into [`Plan::launch`].
#[derive(Debug)]
pub struct Plan {
    pub launch: hand::Plan,
    /// What is closed to it; a persistent shell keeps it for [`Hand::masks_changed`].
    pub masks: Arc<Masks>,
    /// The names of its environment.
    pub env_names: Vec<String>,
    /// Things worth a line in the observation.
    pub warnings: Vec<String>,
    /// The folder it runs in, by its virtual path.
    pub cwd: VirtualPath,
    /// What existed of the places that run later; `None` for a command that cannot write.
    pub(crate) later: Option<Arc<LaterPlaces>>,
    /// Secrets that it sees empty, or not at all.
    pub(crate) emptied: Arc<EmptiedFiles>,
    /// The network it has.
    pub(super) network: Network,
    /// Places of the view that are shown, for naming denials.
    pub(super) shown: Vec<PathBuf>,
    pub(super) closed: Vec<ClosedPlace>,
    /// Places of the view that may hold secrets.
    pub(super) secrets: Vec<PathBuf>,
}

impl Plan {
    /// With these variables besides, which count more than the session's own.
    pub(crate) fn also(&mut self, env: &BTreeMap<EnvKey, SecretText>) {
        for (key, value) in env {
            let name = OsString::from(key.as_str());
            self.launch.env.retain(|(known, _)| *known != name);
            self.launch.env.push((name, value.expose().into()));
            self.env_names.retain(|known| known != key.as_str());
            self.env_names.push(key.as_str().to_owned());
        }
        self.env_names.sort();
    }

    /// Another program of the same command, with the same view: the next stage of a pipeline. Nothing of its streams
    /// is taken over.
    #[must_use]
    pub fn beside(&self, argv: Vec<OsString>, cwd: &VirtualPath) -> Self {
        let mut launch = hand::Plan::new(argv);
        launch.env.clone_from(&self.launch.env);
        launch.cwd = PathBuf::from(cwd.as_str());
        launch.view = self.launch.view.clone();
        launch.limits = self.launch.limits;
        launch.network = self.launch.network;
        launch.minimum = self.launch.minimum;
        Self {
            launch,
            masks: Arc::clone(&self.masks),
            env_names: self.env_names.clone(),
            warnings: Vec::new(),
            cwd: cwd.clone(),
            later: None,
            emptied: Arc::clone(&self.emptied),
            network: self.network,
            shown: self.shown.clone(),
            closed: self.closed.clone(),
            secrets: self.secrets.clone(),
        }
    }
}

impl Hand {
    /// What `argv` needs to run in `cwd`, a folder of the mounts. The rules are matched against the mounts anew.
    ///
    /// # Errors
    /// If the rules leave nothing to show, or the session's environment cannot be read.
    pub async fn plan(
        &self,
        caller: &Caller,
        argv: Vec<OsString>,
        cwd: &VirtualPath,
        reach: Reach,
    ) -> Result<Plan, ToolFailure> {
        self.plan_showing(caller, argv, cwd, reach, &[]).await
    }

    /// The same where the gate let the call read these: a secret among them is shown as it is.
    ///
    /// # Errors
    /// As [`Hand::plan`].
    pub(crate) async fn plan_showing(
        &self,
        caller: &Caller,
        argv: Vec<OsString>,
        cwd: &VirtualPath,
        reach: Reach,
        decided: &[Resource],
    ) -> Result<Plan, ToolFailure> {
        let settings = self.settings();
        let network = super::granted(settings.network, reach)?;
        let masks = Arc::new(self.masks(caller, reach).await?);
        let full = self.posture().await.virtual_paths();
        let shown = ViewPlaces::of(self, caller, reach, full)?;
        let mut launch = hand::Plan::new(argv);
        launch.limits = settings.limits;
        launch.network = network;
        launch.minimum = settings.minimum;
        launch.cwd = PathBuf::from(cwd.as_str());
        let environment = environment::of(self, caller, cwd, reach, &shown).await?;
        launch.env = environment.variables;
        let mut closed: Vec<ClosedPlace> = masks.places(&shown).collect();
        // Without a root of its own nothing of the system can be closed; the rule still holds for lines.
        if full && !masks.programs.is_empty() {
            closed.extend(programs::closed(&shown, &masks.programs));
        }
        let mut warnings = environment.warnings;
        let sighted = self.sighted().await?;
        let emptied = self.emptied(caller, &masks, Shown { reach, decided }, Arc::clone(&sighted)).await?;
        warnings.extend(self.tell_emptied(caller, &emptied, full));
        let (mut guards, mut later) = (Vec::new(), None);
        if reach == Reach::Writable {
            let found = Arc::new(self.later(&sighted));
            let (places, over) = found.guards(&shown);
            guards = guards::of(self, &shown);
            guards.extend(places);
            guards.sort_by(|one, other| one.place.cmp(&other.place));
            // What lies in a guarded folder is guarded with it.
            guards.dedup_by(|one, above| one.place.starts_with(&above.place));
            if over > 0 {
                warnings.push(format!(
                    "{over} files and folders that run later outside of the sandbox could not be kept read-only, because \
                     there are too many, or they lie too deep; look at them after this command"
                ));
            }
            warnings.extend(found.not_followed());
            later = Some(found);
        }
        guards.extend(runtime_folders::held(self, &shown)?);
        let secrets = emptied.empty(&shown).chain(emptied.closed(&shown)).collect();
        launch.view = View {
            masks: closed.iter().map(|closed| closed.place.clone()).chain(emptied.closed(&shown)).collect(),
            empty: emptied.empty(&shown).collect(),
            pinned: masks.pinned(&shown).chain(emptied.pinned(&shown)).collect(),
            guards,
            tmp: shown.tmp.clone().map_or_else(|| View::default().tmp, Tmp::Folder),
            home: shown.home.clone(),
            binds: shown.binds,
        };
        let shown = launch.view.binds.iter().map(|bind| bind.place.clone()).collect();
        Ok(Plan {
            launch,
            masks,
            env_names: environment.names,
            warnings,
            later,
            emptied: Arc::new(emptied),
            cwd: cwd.clone(),
            network,
            shown,
            closed,
            secrets,
        })
    }

    /// The environment that a command on writable mounts gets in `cwd`, by name. A value that is no text is shown as one.
    ///
    /// # Errors
    /// As [`Self::plan`].
    pub(crate) async fn environment(
        &self,
        caller: &Caller,
        cwd: &VirtualPath,
    ) -> Result<BTreeMap<String, SecretText>, ToolFailure> {
        let full = self.posture().await.virtual_paths();
        let shown = ViewPlaces::of(self, caller, Reach::Writable, full)?;
        let environment = environment::of(self, caller, cwd, Reach::Writable, &shown).await?;
        let text = |text: OsString| text.to_string_lossy().into_owned();
        Ok(environment.variables.into_iter().map(|(name, value)| (text(name), SecretText::new(text(value)))).collect())
    }

    /// Variables of the person's environment that decide which programs a command of this caller finds: those it was
    /// asked about with, else those of this process.
    pub(crate) fn asker_env(&self, caller: &Caller) -> BTreeMap<String, String> {
        let host = host::of(self, caller);
        let all = host.iter().flat_map(|host| &host.variables);
        // One that is no text cannot be kept with an ask. It is bound like every other.
        all.filter_map(|(name, value)| Some((name.to_str()?.to_owned(), value.to_str()?.to_owned()))).collect()
    }

    /// What stands between commands and this machine; probed where that disturbs nobody.
    pub(crate) async fn posture(&self) -> hand::Posture {
        let launcher = self.launcher().clone();
        crate::off_thread(move || launcher.posture().clone()).await
    }
}
