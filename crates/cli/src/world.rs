//! Opening what a command needs, and no more: the store, or a runtime over it for one workspace.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use portcullis::{
    Runtime, RuntimeBuilder, RuntimeError, SecretText, SessionSetup, Setup, session_setup, session_setup_at,
};
use portcullis_base::{Digest, Entropy as _, SessionId, SystemClock, SystemIds};
use portcullis_config::{ELSEWHERE, Settings, runtime_folders};
use portcullis_event::facts::SessionCreated;
use portcullis_event::{CheckpointKey, Event, LOCAL_TENANT};
use portcullis_store::{
    AskRow, Head, HostLiveness, LocalArtifacts, Log as _, SessionKey, StoreError, created, is_erased,
};
use portcullis_store_sqlite::{SqliteConfig, SqliteStore};

use crate::args::Globals;
use crate::exit::{ExitKind, failed, fault, usage};
use crate::render::{Term, exact, place};
use crate::{home_workspace, last_start, loss, telemetry};

/// Events read at once.
pub const PAGE: usize = 500;

/// Notices of commits are hints and may be lost; whoever waits for one looks again after this.
pub const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// What a process is to others who come across a session that it holds.
#[derive(Debug, Clone, Copy)]
pub struct Role {
    what: &'static str,
    brief: bool,
}

impl Role {
    /// It holds a session for as long as it likes.
    pub const fn standing(what: &'static str) -> Self {
        Self { what, brief: false }
    }

    /// It holds a session for one call or answer.
    pub const fn brief(what: &'static str) -> Self {
        Self { what, brief: true }
    }

    fn of(self, builder: RuntimeBuilder) -> RuntimeBuilder {
        let builder = builder.called(self.what);
        if self.brief { builder.brief() } else { builder }
    }
}

/// The key of a session of the one tenant this build serves.
pub fn key(session: SessionId) -> SessionKey {
    SessionKey { tenant: LOCAL_TENANT, session }
}

/// The folder that this run is about, links in its path resolved.
pub fn workspace(globals: &Globals) -> anyhow::Result<PathBuf> {
    let named = globals.workspace.clone().unwrap_or_else(|| PathBuf::from("."));
    let cannot =
        |why: &dyn std::fmt::Display| usage(format!("the workspace {} cannot be used: {why}", named.display()));
    let folder = named.canonicalize().map_err(|e| cannot(&e))?;
    if !folder.is_dir() {
        return Err(cannot(&"it is not a folder"));
    }
    Ok(folder)
}

/// The session of calls in a workspace: the same for every process.
pub fn call_session(workspace: &Path) -> SessionId {
    session_of(&[b"portcullis-call-session-1:", workspace.as_os_str().as_bytes()].concat())
}

/// A session that is none: to look at what is offered to every one.
pub const NO_SESSION: SessionId = SessionId::from_u128(0);

/// The one that takes the place of a workspace's session that was erased.
pub fn next_call_session(erased: SessionId) -> SessionId {
    session_of(format!("portcullis-call-session-after-1:{erased}").as_bytes())
}

fn session_of(name: &[u8]) -> SessionId {
    let digest = Digest::of(name);
    SessionId::from_u128(u128::from_be_bytes(std::array::from_fn(|i| digest.as_bytes()[i])))
}

/// The database with the files that belong to it.
pub fn store_files(settings: &Settings) -> [PathBuf; 4] {
    ["", "-wal", "-shm", "-mark"].map(|suffix| {
        let mut file = settings.database.clone().into_os_string();
        file.push(suffix);
        file.into()
    })
}

/// A runtime in the making that knows no store: enough to say what is offered.
pub fn offering(settings: &Settings, workspace: &Path) -> anyhow::Result<RuntimeBuilder> {
    let policy = settings.policy(workspace)?;
    let mut builder = Runtime::builder().workspace(workspace).policy(policy).profile(settings.profile);
    builder = builder.sandbox(settings.hand(workspace));
    builder = concealing(builder);
    // The store may be kept elsewhere, in the workspace itself perhaps. What else is ours goes with the sandbox.
    Ok(store_files(settings).into_iter().fold(builder, RuntimeBuilder::hide))
}

/// A server that repeats its key in an answer, or a file that holds it, must not bring it into the log.
fn concealing(builder: RuntimeBuilder) -> RuntimeBuilder {
    let keys = portcullis::model::key_variables().filter_map(|name| std::env::var(name).ok());
    keys.fold(builder, |builder, key| builder.conceal(SecretText::new(key)))
}

/// An open store with what goes with it.
pub struct World {
    pub settings: Settings,
    pub store: Arc<SqliteStore>,
    pub checkpoint_key: Option<CheckpointKey>,
    ids: Arc<SystemIds>,
    /// Flags that a command must repeat to find this store again.
    flags: String,
    /// Who is told of what cannot be made; nobody by a command that only looks.
    term: Option<Term>,
}

impl World {
    /// Opens the store, making it and its keys if there are none.
    pub fn open(settings: Settings, term: &Term) -> anyhow::Result<Self> {
        telemetry::warn_unsent(&settings, term);
        let ids = Arc::new(SystemIds::new());
        let fresh = !settings.database.exists();
        let has_key = settings.home.existing_checkpoint_key(&*ids)?;
        let checkpoint_key = match has_key {
            None if fresh => Some(settings.home.checkpoint_key(&*ids)?),
            None => {
                let path = settings.home.checkpoint_key_path();
                term.note(&format!(
                    "warning: {} is missing: events are recorded without checkpoints; restore it from a backup",
                    place(&path)
                ));
                None
            }
            found => found,
        };
        let world = Self::with_key(settings, ids, checkpoint_key)?;
        last_start::tell_network(&world.settings, term);
        Ok(Self { term: Some(*term), ..world })
    }

    /// Opens the store if there is one, to look at it.
    pub fn look(settings: Settings) -> anyhow::Result<Option<Self>> {
        if !is_there(&settings)? {
            return Ok(None);
        }
        let ids = Arc::new(SystemIds::new());
        let checkpoint_key = settings.home.existing_checkpoint_key(&*ids)?;
        Self::with_key(settings, ids, checkpoint_key).map(Some)
    }

    /// Opens the store, which must be there.
    pub fn existing(globals: &Globals) -> anyhow::Result<Self> {
        let settings = globals.settings()?;
        let database = settings.database.clone();
        Self::look(settings)?.ok_or_else(|| {
            failed(format!("there is no store at {} yet; `portcullis call` makes one", database.display()))
        })
    }

    fn with_key(
        settings: Settings,
        ids: Arc<SystemIds>,
        checkpoint_key: Option<CheckpointKey>,
    ) -> anyhow::Result<Self> {
        let opened = SqliteStore::open(SqliteConfig {
            path: settings.database.clone(),
            durability: settings.durability,
            clock: Arc::new(SystemClock::new()),
            ids: Arc::clone(&ids) as _,
            liveness: Arc::new(HostLiveness::new()),
            checkpoint_key: checkpoint_key.clone(),
        });
        let store = opened.map_err(unopened)?;
        loss::tell(&store);
        let flags = repeated_flags(&settings);
        Ok(Self { settings, store: Arc::new(store), checkpoint_key, ids, flags, term: None })
    }

    /// A command line that goes on from here.
    pub fn command(&self, words: &str) -> String {
        format!("portcullis{} {words}", self.flags)
    }

    pub fn artifacts(&self) -> anyhow::Result<Arc<LocalArtifacts>> {
        let root = &self.settings.artifacts;
        let opened = LocalArtifacts::open(root, Arc::clone(&self.ids) as _);
        Ok(Arc::new(opened.with_context(|| format!("cannot keep artifacts in {}", root.display()))?))
    }

    /// A runtime for one workspace over this store, as the configuration says.
    pub fn runtime(&self, workspace: &Path, role: Role) -> anyhow::Result<Runtime> {
        Ok(role.of(self.builder(&self.settings, workspace)?).build()?)
    }

    fn builder(&self, settings: &Settings, workspace: &Path) -> anyhow::Result<RuntimeBuilder> {
        home_workspace::permitted(settings, workspace)?;
        for (folder, why) in runtime_folders::prepare(workspace) {
            if let Some(term) = &self.term {
                let text = "and no command can make it either: what would hold it is read-only for commands";
                term.note(&format!("warning: {} cannot be made ({why}), {text}", place(&folder)));
            }
        }
        Ok(offering(settings, workspace)?
            .store(Arc::clone(&self.store) as _, self.artifacts()? as _)
            .sealing_key(settings.home.sealing_key(&*self.ids)?)
            .artifact_quota(settings.quota)
            .ask_expiry(settings.ask_expiry)
            .shell_idle(settings.shell_idle))
    }

    /// A runtime that acts by the setup of a session.
    pub async fn runtime_of(&self, session: SessionId, role: Role) -> anyhow::Result<Runtime> {
        let own = self.setup(session).await?.setup;
        self.runtime_by(&self.settings, session, own, role).await
    }

    /// A runtime that can carry out the call of an ask: it acts by the setup that the session had when it asked.
    pub async fn runtime_for(&self, row: &AskRow, role: Role) -> anyhow::Result<Runtime> {
        let then = session_setup_at(&*self.store, key(row.session_id), row.asked_seq).await;
        let then = then.map_err(RuntimeError::from)?;
        self.runtime_by(&self.settings, row.session_id, then.setup, role).await
    }

    /// What a session runs as.
    pub async fn setup(&self, session: SessionId) -> anyhow::Result<SessionSetup> {
        Ok(session_setup(&*self.store, key(session)).await.map_err(RuntimeError::from)?)
    }

    /// A runtime that acts by a setup of a session, with settings that may have changed since the store was opened.
    pub async fn runtime_by(
        &self,
        settings: &Settings,
        session: SessionId,
        setup: Setup,
        role: Role,
    ) -> anyhow::Result<Runtime> {
        let folder = setup.workspace.clone().ok_or_else(|| failed(format!("session {session} has no workspace")))?;
        let folder = Path::new(&folder);
        if !folder.is_dir() {
            let text = format!(
                "the workspace {} of session {session} is gone; bring it back, then try again",
                folder.display()
            );
            return Err(failed(text));
        }
        // It was named with its links resolved: a name that leads elsewhere now is another folder.
        let now = folder.canonicalize().with_context(|| format!("cannot open {}", folder.display()))?;
        if now != folder {
            return Err(failed(format!(
                "the workspace {} of session {session} leads to {} now, which is another folder; bring the first one \
                 back, then try again",
                folder.display(),
                now.display()
            )));
        }
        Ok(role.of(self.builder(settings, folder)?.setup(setup)).build()?)
    }

    /// A runtime that only appends to the log of a session: its folder may be gone.
    pub async fn appending(&self, session: SessionId, role: Role) -> anyhow::Result<Runtime> {
        self.created(session).await?;
        let builder = concealing(Runtime::builder())
            .store(Arc::clone(&self.store) as _, self.artifacts()? as _)
            .sealing_key(self.settings.home.sealing_key(&*self.ids)?)
            .appends_only();
        Ok(role.of(builder).build()?)
    }

    /// How a session was made.
    pub async fn created(&self, session: SessionId) -> Result<SessionCreated, StoreError> {
        created(&*self.store, key(session)).await
    }

    /// Every event of a log after `after`, a page at a time.
    pub async fn each_page(
        &self,
        session: SessionId,
        mut after: u64,
        mut visit: impl FnMut(&[Event]) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        loop {
            let page = self.store.read(key(session), after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.seq;
            visit(&page)?;
        }
    }

    /// Whether a log ended by being erased.
    pub async fn is_erased(&self, session: SessionId, head: &Head) -> Result<bool, StoreError> {
        is_erased(&*self.store, key(session), head).await
    }

    /// Where ids come from.
    pub fn ids(&self) -> &SystemIds {
        &self.ids
    }

    /// A few random bytes in hex, for names that must not collide.
    pub fn tag(&self) -> String {
        let mut bytes = [0u8; 4];
        self.ids.fill(&mut bytes);
        format!("{:08x}", u32::from_be_bytes(bytes))
    }
}

/// Whether there is a store to look at. The usual one may be yet to come; one that a person named and that is not there
/// is a slip, and must not pass for one in which nothing happened. Neither must one that was there and is gone.
pub fn is_there(settings: &Settings) -> anyhow::Result<bool> {
    let database = &settings.database;
    let there = database
        .try_exists()
        .map_err(|e| fault(ExitKind::Broken, format!("cannot look at {}: {e}; {ELSEWHERE}", database.display())))?;
    if !there {
        loss::refuse_gone(database)?;
    }
    if !there && settings.chosen.store {
        return Err(usage(format!(
            "there is no store at {}, which --store or PORTCULLIS_STORE names; correct the path, or make a store there \
             with `portcullis call`",
            database.display()
        )));
    }
    Ok(there)
}

/// A store that could not be opened at all: no command that reads it can tell more.
fn unopened(error: StoreError) -> anyhow::Error {
    match error {
        StoreError::Corrupt(why) => {
            let to_do =
                "it is no store of Portcullis, or damaged: name another with --store, or restore it from a backup";
            fault(ExitKind::Broken, format!("the store cannot be opened: {why}; {to_do}"))
        }
        other => other.into(),
    }
}

fn repeated_flags(settings: &Settings) -> String {
    let mut flags = String::new();
    let mut add = |flag: &str, scheme: &str, path: &Path| {
        let word = [scheme.as_bytes(), path.as_os_str().as_bytes()].concat();
        flags.push_str(&format!(" {flag} {}", quoted(&word)));
    };
    let chosen = &settings.chosen;
    if chosen.store {
        add("--store", "sqlite:", &settings.database);
    }
    if chosen.artifacts {
        add("--artifacts", "file:", &settings.artifacts);
    }
    if let Some(path) = &chosen.config {
        add("--config", "", &std::path::absolute(path).unwrap_or_else(|_| path.clone()));
    }
    if chosen.workspace_is_home {
        flags.push_str(" --workspace-is-home");
    }
    if let Some(level) = chosen.sandbox {
        flags.push_str(&format!(" --sandbox {level}"));
    }
    flags
}

/// A word as a shell takes it.
pub fn quoted(word: &[u8]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:=+@%,".contains(c);
    match std::str::from_utf8(word) {
        Ok(text) if !text.is_empty() && text.chars().all(plain) => text.to_owned(),
        // Nothing in it is hidden, so it can stand as it is.
        Ok(text) if exact(text, usize::MAX) == text => format!("'{}'", text.replace('\'', r"'\''")),
        _ => {
            let octal = |byte: &u8| match char::from(*byte) {
                c if plain(c) => c.to_string(),
                _ => format!("\\{byte:03o}"),
            };
            format!("$'{}'", word.iter().map(octal).collect::<String>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_has_one_call_session_whoever_asks() {
        let here = call_session(Path::new("/a"));
        assert_eq!(here, call_session(Path::new("/a")));
        assert_ne!(here, call_session(Path::new("/b")));
    }

    #[test]
    fn a_printed_command_can_be_pasted() {
        assert_eq!(quoted(b"sqlite:/tmp/x.db"), "sqlite:/tmp/x.db");
        assert_eq!(quoted(b"/a b/it's"), r"'/a b/it'\''s'");
        assert_eq!(quoted(b"/a\x1b/\xff"), r"$'/a\033/\377'");
    }
}
