//! A store as one tenant sees it. Every operation that only reads begins here, and no way in has a store of its own.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use portcullis_agent::calls::SessionCalls;
use portcullis_agent::status::{Holder, Standing};
use portcullis_agent::trace::{self, Span};
use portcullis_agent::tree::Forest;
use portcullis_agent::unknown::{UnknownCall, unknown_calls};
use portcullis_agent::wake_facts::WakeFacts;
use portcullis_agent::{SessionSetup, session_setup, session_setup_at};
use portcullis_base::{ArtifactId, ArtifactRef, AskId, EventId, IntentId, SessionId, TenantId, Timestamp, WakeId};
use portcullis_event::facts::SessionCreated;
use portcullis_event::{Event, State};
use portcullis_pipeline::{ArtifactShelf, GrantBook, ShelfError, folded};
use portcullis_store::{
    Artifacts, AskFilter, AskRow, Head, LeaseOwner, RebuiltLog, SessionKey, SessionSummary, Store, StoreError, Topic,
    created, is_erased, rebuild,
};
use tokio::sync::watch;

use crate::RuntimeError;

/// Events read at once.
pub const EVENTS_AT_ONCE: usize = 500;

/// The logs, rows and contents of one tenant.
#[derive(Clone)]
pub struct Archive {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) tenant: TenantId,
    contents: ContentsOnDemand,
}

/// Opens the large contents of a store. A command that needs none of them makes no folder for them.
pub type ContentsOnDemand = Arc<dyn Fn() -> Result<Arc<dyn Artifacts>, UnopenedContents> + Send + Sync>;

/// The folder of large contents cannot be made or opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot keep artifacts in {}", .folder.display())]
pub struct UnopenedContents {
    /// Which.
    pub folder: PathBuf,
    /// Why.
    pub source: io::Error,
}

/// An artifact that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// There is none such, or its bytes are gone.
    #[error(transparent)]
    Shelf(#[from] ShelfError),
    /// The folder of large contents cannot be opened.
    #[error(transparent)]
    Folder(#[from] UnopenedContents),
    /// Its bytes cannot be read.
    #[error(transparent)]
    Bytes(#[from] io::Error),
}

impl ContentError {
    /// The error that this one passes on, whose kind and hint count.
    #[must_use]
    pub fn bare(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Shelf(error) => Some(error),
            Self::Folder(error) => Some(error),
            Self::Bytes(error) => Some(error),
        }
    }
}

/// The bytes of an artifact.
pub struct KeptBytes {
    /// What its row says of it now.
    pub artifact: ArtifactRef,
    /// What it holds.
    pub bytes: Vec<u8>,
}

impl Archive {
    /// What a store holds of a tenant.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, tenant: TenantId, contents: ContentsOnDemand) -> Self {
        Self { store, tenant, contents }
    }

    pub(crate) fn key(&self, session: SessionId) -> SessionKey {
        SessionKey { tenant: self.tenant, session }
    }

    /// How a session was made.
    ///
    /// # Errors
    /// If there is no such session, or the store cannot be read; so for every reader below.
    pub async fn created(&self, session: SessionId) -> Result<SessionCreated, StoreError> {
        created(&*self.store, self.key(session)).await
    }

    /// What a session runs as.
    pub async fn setup(&self, session: SessionId) -> Result<SessionSetup, RuntimeError> {
        Ok(session_setup(&*self.store, self.key(session)).await?)
    }

    /// What a session ran as when it asked.
    pub async fn setup_at(&self, ask: &AskRow) -> Result<SessionSetup, RuntimeError> {
        Ok(session_setup_at(&*self.store, self.key(ask.session_id), ask.asked_seq).await?)
    }

    /// The head of a log, `None` if there is no such log.
    pub async fn head(&self, session: SessionId) -> Result<Option<Head>, StoreError> {
        self.store.head(self.key(session)).await
    }

    /// The number of its last event; 0 if there is no such log.
    pub async fn last_seq(&self, session: SessionId) -> Result<u64, StoreError> {
        Ok(self.head(session).await?.map_or(0, |head| head.last_seq))
    }

    /// The process whose lease has not run out and that is not known to be gone.
    pub async fn holder(&self, session: SessionId, now: Timestamp) -> Result<Option<LeaseOwner>, StoreError> {
        let head = self.head(session).await?;
        Ok(head.and_then(|head| match Holder::of(&head, now) {
            Some(Holder::Holds { owner, .. }) => Some(owner.clone()),
            _ => None,
        }))
    }

    /// The fold of a log.
    pub async fn state(&self, session: SessionId) -> Result<State, StoreError> {
        folded(&*self.store, self.key(session)).await
    }

    /// Whether a log ended by being erased.
    pub async fn is_erased(&self, session: SessionId, head: &Head) -> Result<bool, StoreError> {
        is_erased(&*self.store, self.key(session), head).await
    }

    /// Events of a log after `after`, at most `limit`.
    pub async fn events(&self, session: SessionId, after: u64, limit: usize) -> Result<Vec<Event>, StoreError> {
        self.store.read(self.key(session), after, limit).await
    }

    /// The newest events of a log, oldest first.
    pub async fn newest_events(&self, session: SessionId) -> Result<Vec<Event>, StoreError> {
        let last = self.last_seq(session).await?;
        self.events(session, last.saturating_sub(EVENTS_AT_ONCE as u64), EVENTS_AT_ONCE).await
    }

    /// Every event of a log after `after`, a page at a time.
    pub async fn each_page(
        &self,
        session: SessionId,
        after: u64,
        mut visit: impl FnMut(&[Event]),
    ) -> Result<(), StoreError> {
        let visit = |page: &[Event]| {
            visit(page);
            Ok(())
        };
        self.try_each_page(session, after, visit).await
    }

    /// The same where a visit may fail, which ends it.
    pub async fn try_each_page<E: From<StoreError>>(
        &self,
        session: SessionId,
        mut after: u64,
        mut visit: impl FnMut(&[Event]) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            let page = self.events(session, after, EVENTS_AT_ONCE).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.seq;
            visit(&page)?;
        }
    }

    /// Sessions, newest first.
    pub async fn sessions(&self, limit: usize) -> Result<Vec<SessionSummary>, StoreError> {
        self.store.sessions(self.tenant, limit).await
    }

    /// Asks of a session that wait for an answer, oldest first.
    pub async fn waiting_asks(&self, session: SessionId) -> Result<Vec<AskRow>, StoreError> {
        self.store.asks(self.tenant, AskFilter { session: Some(session), pending: true }).await
    }

    /// The row of an ask.
    pub async fn ask_row(&self, ask: AskId) -> Result<AskRow, StoreError> {
        self.store.ask(self.tenant, ask).await?.ok_or(StoreError::NoAsk(ask))
    }

    /// Calls of a session that have not ended: the ids of their intents.
    pub async fn open_intents(&self, session: SessionId) -> Result<Vec<IntentId>, StoreError> {
        let rows = self.store.intents(self.key(session), true).await?;
        Ok(rows.into_iter().map(|row| row.intent_id).collect())
    }

    /// Where a session stands.
    pub async fn standing(&self, session: SessionId) -> Result<Standing, StoreError> {
        Standing::read(&*self.store, self.key(session)).await
    }

    /// The calls of a session.
    pub async fn calls(&self, session: SessionId) -> Result<SessionCalls, StoreError> {
        SessionCalls::read(&*self.store, self.key(session)).await
    }

    /// What each wake of a session did, and when.
    pub async fn trace(&self, session: SessionId) -> Result<Vec<(WakeId, Span)>, StoreError> {
        self.created(session).await?;
        trace::read(&*self.store, self.key(session)).await
    }

    /// What the log says of one wake, which took up the inputs `processed`.
    pub async fn wake_facts(
        &self,
        session: SessionId,
        wake: WakeId,
        processed: &[EventId],
    ) -> Result<WakeFacts, StoreError> {
        WakeFacts::read(&*self.store, self.key(session), wake, processed).await
    }

    /// Which session began which.
    pub async fn forest(&self) -> Result<Forest, StoreError> {
        Forest::read(&*self.store, self.tenant).await
    }

    /// Calls of one session, or of all, of which nobody knows how they ended.
    pub async fn unknown_calls(&self, session: Option<SessionId>) -> Result<Vec<UnknownCall>, StoreError> {
        unknown_calls(&*self.store, self.tenant, session).await
    }

    /// The state and the rows as a log alone gives them, up to an event or to its end, compared with the stored rows.
    pub async fn rebuilt(&self, session: SessionId, until: Option<u64>) -> Result<RebuiltLog, StoreError> {
        rebuild(&*self.store, self.key(session), until).await
    }

    /// Remembered allows.
    #[must_use]
    pub fn grants(&self) -> GrantBook {
        GrantBook::new(Arc::clone(&self.store), self.tenant)
    }

    /// Changes with every commit to a session. A notice is a hint and may be lost or late.
    #[must_use]
    pub fn changes_in(&self, session: SessionId) -> watch::Receiver<u64> {
        self.store.changes_of(Topic::Session(SessionKey { tenant: self.tenant, session }))
    }

    /// Changes with every ask that is raised or settled. A notice is a hint and may be lost or late.
    #[must_use]
    pub fn changes_of_asks(&self) -> watch::Receiver<u64> {
        self.store.changes_of(Topic::Asks(self.tenant))
    }

    /// What an artifact of a session holds.
    ///
    /// # Errors
    /// If there is no such artifact, it expired, or it cannot be read.
    pub async fn artifact(&self, id: ArtifactId, session: SessionId) -> Result<KeptBytes, ContentError> {
        let shelf = ArtifactShelf::new(Arc::clone(&self.store), (self.contents)()?, self.tenant);
        let (artifact, window) = shelf.open(id, Some(session)).await?;
        let bytes = window.slice(0, window.len())?;
        Ok(KeptBytes { artifact, bytes })
    }
}
