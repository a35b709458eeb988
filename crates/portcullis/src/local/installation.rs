//! The store that the settings name, opened with its keys, and runtimes over it.

use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use portcullis_agent::setup::Setup;
use portcullis_base::{Entropy as _, SessionId, SystemClock, SystemIds};
use portcullis_config::{Settings, home_workspace, runtime_folders};
use portcullis_event::{CheckpointKey, LOCAL_TENANT};
use portcullis_harness::Redrive;
use portcullis_model::Model;
use portcullis_secret::SecretText;
use portcullis_store::{AskRow, HostLiveness, LocalArtifacts, LossBook, LostEnd, Store, StoreError};
use portcullis_store_sqlite::{SqliteConfig, SqliteStore};

use super::{InstallationError, store_files};
use crate::operations::{Archive, AskView, AskViewError, Export, Operator, StoreAudit, UnopenedContents, WholeAsk};
use crate::{KnownAnswers, Runtime, RuntimeBuilder};

/// What a process is to others who come across a session that it holds.
#[derive(Debug, Clone, Copy)]
pub struct ProcessRole {
    what: &'static str,
    brief: bool,
}

impl ProcessRole {
    /// It holds a session for as long as it likes.
    #[must_use]
    pub const fn standing(what: &'static str) -> Self {
        Self { what, brief: false }
    }

    /// It holds a session for one call or answer.
    #[must_use]
    pub const fn brief(what: &'static str) -> Self {
        Self { what, brief: true }
    }

    pub(super) const fn what(self) -> &'static str {
        self.what
    }

    fn of(self, builder: RuntimeBuilder) -> RuntimeBuilder {
        let builder = builder.called(self.what);
        if self.brief { builder.brief() } else { builder }
    }
}

/// A runtime in the making that knows no store: enough to say what is offered.
///
/// # Errors
/// If the rules for the workspace cannot be read.
pub fn offering(settings: &Settings, workspace: &Path) -> Result<RuntimeBuilder, InstallationError> {
    let policy = settings.policy(workspace)?;
    let mut builder = Runtime::builder().workspace(workspace).policy(policy).profile(settings.profile);
    builder = builder.sandbox(settings.hand(workspace));
    builder = concealing(builder);
    // The store may be kept elsewhere, in the workspace itself perhaps. What else is ours goes with the sandbox.
    Ok(store_files(settings).into_iter().fold(builder, RuntimeBuilder::hide))
}

/// A server that repeats its key in an answer, or a file that holds it, must not bring it into the log.
fn concealing(builder: RuntimeBuilder) -> RuntimeBuilder {
    let keys = portcullis_model::key_variables().filter_map(|name| std::env::var(name).ok());
    keys.fold(builder, |builder, key| builder.conceal(SecretText::new(key)))
}

/// Hears of a folder that commands must not make and that cannot be made for them.
pub type ToldOfFolder = Arc<dyn Fn(&Path, &io::Error) + Send + Sync>;

/// An open store with what goes with it.
pub struct Installation {
    /// What the files, variables and flags say.
    pub settings: Settings,
    /// What the store holds.
    pub archive: Archive,
    /// With it more is proved than that logs agree with themselves.
    pub checkpoint_key: Option<CheckpointKey>,
    sqlite: Arc<SqliteStore>,
    ids: Arc<SystemIds>,
    unmade: Option<ToldOfFolder>,
    answers: OnceLock<KnownAnswers>,
    /// The first runtime that was made for a session: the others join its process.
    first: OnceLock<Runtime>,
}

impl Installation {
    /// Opens the store, making it and its keys if there are none. `without_key` hears that the key of an older store is
    /// missing, before the store is opened without it.
    ///
    /// # Errors
    /// If the store or a key cannot be opened.
    pub fn open(settings: Settings, without_key: impl FnOnce(&Path)) -> Result<Self, InstallationError> {
        let ids = Arc::new(SystemIds::new());
        let fresh = !settings.database.exists();
        let checkpoint_key = match settings.home.existing_checkpoint_key(&*ids)? {
            None if fresh => Some(settings.home.checkpoint_key(&*ids)?),
            None => {
                without_key(&settings.home.checkpoint_key_path());
                None
            }
            found => found,
        };
        Self::with_key(settings, ids, checkpoint_key)
    }

    /// Opens a store that is there, to look at it: no key is made.
    ///
    /// # Errors
    /// If the store or its key cannot be opened.
    pub fn look(settings: Settings) -> Result<Self, InstallationError> {
        let ids = Arc::new(SystemIds::new());
        let checkpoint_key = settings.home.existing_checkpoint_key(&*ids)?;
        Self::with_key(settings, ids, checkpoint_key)
    }

    fn with_key(
        settings: Settings,
        ids: Arc<SystemIds>,
        checkpoint_key: Option<CheckpointKey>,
    ) -> Result<Self, InstallationError> {
        let opened = SqliteStore::open(SqliteConfig {
            path: settings.database.clone(),
            durability: settings.durability,
            clock: Arc::new(SystemClock::new()),
            ids: Arc::clone(&ids) as _,
            liveness: Arc::new(HostLiveness::new()),
            checkpoint_key: checkpoint_key.clone(),
        });
        let sqlite = Arc::new(opened.map_err(|error| match error {
            StoreError::Corrupt(why) => InstallationError::Unreadable(why),
            other => other.into(),
        })?);
        let (folder, entropy) = (settings.artifacts.clone(), Arc::clone(&ids));
        let contents = Arc::new(move || Ok(open_contents(&folder, &entropy)? as _));
        let archive = Archive::new(Arc::clone(&sqlite) as _, LOCAL_TENANT, contents);
        Ok(Self {
            settings,
            archive,
            checkpoint_key,
            sqlite,
            ids,
            unmade: None,
            answers: OnceLock::new(),
            first: OnceLock::new(),
        })
    }

    /// Tells `hears` of folders that cannot be made for a workspace.
    #[must_use]
    pub fn telling(self, hears: ToldOfFolder) -> Self {
        Self { unmade: Some(hears), ..self }
    }

    /// From now on its runtimes know these answers ([`RuntimeBuilder::answering`]). The first ones stay.
    pub fn answering(&self, known: KnownAnswers) {
        let _ = self.answers.set(known);
    }

    pub(super) fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.archive.store)
    }

    /// Logs whose end was missing when the store was opened.
    #[must_use]
    pub fn lost(&self) -> &[LostEnd] {
        self.sqlite.lost()
    }

    /// Where a loss is given up.
    #[must_use]
    pub fn loss_book(&self) -> &dyn LossBook {
        &*self.sqlite
    }

    /// Whether room is kept for a full disk.
    #[must_use]
    pub fn has_ballast(&self) -> bool {
        self.sqlite.has_ballast()
    }

    /// The large contents.
    ///
    /// # Errors
    /// If their folder cannot be made.
    pub fn artifacts(&self) -> Result<Arc<LocalArtifacts>, UnopenedContents> {
        open_contents(&self.settings.artifacts, &self.ids)
    }

    /// A runtime for one workspace over this store, as the configuration says.
    ///
    /// # Errors
    /// If the workspace is refused, or a rule, a key or a folder cannot be opened.
    pub fn runtime(&self, workspace: &Path, role: ProcessRole) -> Result<Runtime, InstallationError> {
        Ok(role.of(self.builder(&self.settings, workspace)?).build()?)
    }

    fn builder(&self, settings: &Settings, workspace: &Path) -> Result<RuntimeBuilder, InstallationError> {
        home_workspace::permitted(settings, workspace)?;
        for (folder, why) in runtime_folders::prepare(workspace) {
            if let Some(hears) = &self.unmade {
                hears(&folder, &why);
            }
        }
        let mut offering = offering(settings, workspace)?;
        if let Some(known) = self.answers.get().cloned() {
            offering = offering.answering(move |session, asked| known(session, asked));
        }
        Ok(offering
            .store(self.store(), self.artifacts()?)
            .sealing_key(settings.home.sealing_key(&*self.ids)?)
            .artifact_quota(settings.quota)
            .ask_expiry(settings.ask_expiry)
            .shell_idle(settings.shell_idle))
    }

    /// A runtime that decides with what is remembered in this store.
    ///
    /// # Errors
    /// If the runtime cannot be made.
    pub fn deciding(&self, offering: RuntimeBuilder) -> Result<Runtime, InstallationError> {
        Ok(offering.store(self.store(), self.artifacts()?).build()?)
    }

    /// A runtime that acts by the setup of a session.
    ///
    /// # Errors
    /// As [`Installation::runtime_by`].
    pub async fn runtime_of(&self, session: SessionId, role: ProcessRole) -> Result<Runtime, InstallationError> {
        let own = self.archive.setup(session).await?.setup;
        self.runtime_by(&self.settings, session, own, role)
    }

    /// A runtime that can carry out the call of an ask: it acts by the setup that the session had when it asked.
    ///
    /// # Errors
    /// As [`Installation::runtime_by`].
    pub async fn runtime_for(&self, row: &AskRow, role: ProcessRole) -> Result<Runtime, InstallationError> {
        let then = self.archive.setup_at(row).await?;
        self.runtime_by(&self.settings, row.session_id, then.setup, role)
    }

    /// A runtime through which an ask can be answered. A refusal needs nothing of a folder that is gone.
    ///
    /// # Errors
    /// As [`Installation::runtime_by`].
    pub async fn runtime_to_answer(
        &self,
        row: &AskRow,
        allows: bool,
        role: ProcessRole,
    ) -> Result<Runtime, InstallationError> {
        match self.runtime_for(row, role).await {
            Err(_) if !allows => self.appending(row.session_id, role).await,
            runtime => runtime,
        }
    }

    /// A runtime that acts by a setup of a session, with settings that may have changed since the store was opened.
    ///
    /// # Errors
    /// If the folder of the setup is gone, leads elsewhere or is refused, or something of the settings cannot be opened.
    pub fn runtime_by(
        &self,
        settings: &Settings,
        session: SessionId,
        setup: Setup,
        role: ProcessRole,
    ) -> Result<Runtime, InstallationError> {
        let folder = setup.workspace.clone().ok_or(InstallationError::NoWorkspace(session))?;
        let folder = Path::new(&folder);
        if !folder.is_dir() {
            return Err(InstallationError::WorkspaceGone { session, folder: folder.to_owned() });
        }
        // It was named with its links resolved: a name that leads elsewhere now is another folder.
        let now =
            folder.canonicalize().map_err(|source| InstallationError::Folder { folder: folder.to_owned(), source })?;
        if now != folder {
            return Err(InstallationError::WorkspaceMoved { session, folder: folder.to_owned(), now });
        }
        let builder = role.of(self.builder(settings, folder)?.setup(setup));
        // One process, one gate: the first runtime makes it, and the others stand at it.
        let builder = match self.first.get() {
            Some(first) => builder.joining(first),
            None => builder,
        };
        let runtime = builder.build()?;
        let _ = self.first.set(runtime.clone());
        Ok(runtime)
    }

    /// A runtime that only appends to the log of a session: its folder may be gone.
    ///
    /// # Errors
    /// If there is no such session, or a key or a folder cannot be opened.
    pub async fn appending(&self, session: SessionId, role: ProcessRole) -> Result<Runtime, InstallationError> {
        self.archive.created(session).await?;
        let builder = concealing(Runtime::builder())
            .store(self.store(), self.artifacts()?)
            .sealing_key(self.settings.home.sealing_key(&*self.ids)?)
            .appends_only();
        Ok(role.of(builder).build()?)
    }

    /// An ask with the suggested rules and the diff, which its row does not hold.
    ///
    /// # Errors
    /// If its log does not hold it, or the store cannot be read.
    pub async fn whole_ask(&self, ask: AskView, role: ProcessRole) -> Result<WholeAsk, AskViewError> {
        let asked = self.archive.question(&ask.row).await?;
        let diff = self.archive.diff(&ask.row).await;
        // Where its call could not run here at all, whoever allows it is told that.
        let outdated = ask.is_pending()
            && self
                .runtime_for(&ask.row, role)
                .await
                .is_ok_and(|runtime| runtime.gate().revision() != asked.policy_revision);
        Ok(WholeAsk { ask, asked, diff, outdated })
    }

    /// Somebody at work on the store: `by` is their login, `called` says with what.
    #[must_use]
    pub fn operator(&self, by: String, called: &str) -> Operator {
        Operator {
            store: self.store(),
            tenant: self.archive.tenant,
            ids: Arc::clone(&self.ids) as _,
            clock: Arc::new(SystemClock::new()),
            by,
            called: called.to_owned(),
        }
    }

    /// The logs, to be verified.
    #[must_use]
    pub fn audit(&self) -> StoreAudit<'_> {
        StoreAudit {
            store: self.store(),
            tenant: self.archive.tenant,
            checkpoint_key: self.checkpoint_key.as_ref(),
            lost: self.lost(),
        }
    }

    /// The lines of one log, with the contents of its artifacts if they are wanted.
    ///
    /// # Errors
    /// If there is no such log, or it cannot be read.
    pub async fn export<'a>(
        &'a self,
        session: SessionId,
        contents: Option<&'a LocalArtifacts>,
    ) -> Result<Export<'a>, StoreError> {
        Export::of(&*self.archive.store, self.archive.key(session), contents.map(|contents| contents as _)).await
    }

    /// What a model needs to answer again what is recorded, up to an event or to the end. Nothing of it runs a call.
    ///
    /// # Errors
    /// If the contents that the log names cannot be opened.
    pub fn redrive(
        &self,
        session: SessionId,
        until: Option<u64>,
        model: Arc<dyn Model>,
    ) -> Result<Redrive, UnopenedContents> {
        Ok(Redrive { store: self.store(), artifacts: self.artifacts()?, key: self.archive.key(session), until, model })
    }

    /// A few random bytes in hex, for names that must not collide.
    #[must_use]
    pub fn tag(&self) -> String {
        let mut bytes = [0u8; 4];
        self.ids.fill(&mut bytes);
        format!("{:08x}", u32::from_be_bytes(bytes))
    }

    /// Where ids come from.
    #[must_use]
    pub fn ids(&self) -> &SystemIds {
        &self.ids
    }
}

fn open_contents(folder: &Path, entropy: &Arc<SystemIds>) -> Result<Arc<LocalArtifacts>, UnopenedContents> {
    let opened = LocalArtifacts::open(folder, Arc::clone(entropy) as _);
    Ok(Arc::new(opened.map_err(|source| UnopenedContents { folder: folder.to_owned(), source })?))
}
