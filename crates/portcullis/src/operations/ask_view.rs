//! An ask as it stands: what the log asked, where, whether an answer still counts, and what is kept beside its event.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::error::Error;

use portcullis_base::{ArtifactRef, AskId, Digest, SessionId, Timestamp};
use portcullis_event::facts::PermissionAsked;
use portcullis_event::{AskState, Body, Event};
use portcullis_store::{AskFilter, AskRow, StoreError};
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::Archive;

/// Where tools see the workspace.
const MOUNT: &str = "/workspace";
/// The fact that names the artifact with all facts, where they are too long for an event.
const WHOLE: &str = "whole";

/// One ask, with the folder of this machine that it is about: whoever answers sees no other project's name
/// for it, since every workspace is `/workspace` to its tools.
pub struct AskView {
    /// What the log asked, in the shape of a row.
    pub row: AskRow,
    /// The host's folder of the session's workspace.
    pub workspace: Option<String>,
    /// No flag may allow it.
    pub only_a_person: bool,
}

/// An ask with everything that belongs to it.
pub struct WholeAsk {
    /// The ask.
    pub ask: AskView,
    /// The event that opened it.
    pub asked: PermissionAsked,
    /// The diff, or why it cannot be opened.
    pub diff: Result<Option<String>, AskContentError>,
    /// The rules are not those it was asked under: an allow would be void (tool-contract 13.7).
    pub outdated: bool,
}

/// An ask that cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum AskViewError {
    /// Its row points to an event that is another.
    #[error("event {} of its log is not ask {}, so nobody can be shown what it asks", .0.asked_seq, .0.ask_id)]
    NotItsEvent(Box<AskRow>),
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AskViewError {
    /// The error that this one passes on, whose kind and hint count.
    #[must_use]
    pub fn bare(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            _ => None,
        }
    }
}

/// A part of an ask that cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("the {what} of ask {ask} cannot be opened, so nobody can allow it")]
pub struct AskContentError {
    what: String,
    ask: AskId,
    source: Box<dyn Error + Send + Sync>,
}

impl AskContentError {
    fn new(row: &AskRow, name: &str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let what = if name == WHOLE { "facts" } else { name }.to_owned();
        Self { what, ask: row.ask_id, source: source.into() }
    }
}

impl AskView {
    /// Whether an answer would still count.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.row.state == AskState::Pending
    }

    /// The folder of this machine that the call would run in.
    #[must_use]
    pub fn cwd(&self) -> Option<String> {
        let workspace = self.workspace.as_ref()?;
        let within = self.row.facts.get("cwd").and_then(Value::as_str).and_then(|cwd| cwd.strip_prefix(MOUNT));
        Some(format!("{workspace}{}", within.unwrap_or_default()))
    }

    /// For a program.
    ///
    /// # Errors
    /// If the row is no document.
    pub fn document(&self) -> Result<Value, serde_json::Error> {
        let mut value = serde_json::to_value(&self.row)?;
        value["workspace"] = json!(self.workspace);
        value["cwd"] = json!(self.cwd());
        value["only_a_person"] = json!(self.only_a_person);
        Ok(value)
    }
}

impl Archive {
    /// One ask, as the log asked it.
    ///
    /// # Errors
    /// If there is no such ask, its log does not hold it, or the store cannot be read.
    pub async fn ask(&self, ask: AskId, now: Timestamp) -> Result<AskView, AskViewError> {
        let row = self.ask_row(ask).await?;
        let workspace = self.created(row.session_id).await?.workspace;
        let (row, only_a_person) = self.as_asked(row, now).await?;
        Ok(AskView { row, workspace, only_a_person })
    }

    /// Asks that wait for an answer that would still count, oldest first.
    ///
    /// # Errors
    /// If a log does not hold what its row says, or the store cannot be read.
    pub async fn pending_asks(&self, now: Timestamp) -> Result<Vec<AskView>, AskViewError> {
        let mut asks = Vec::new();
        let mut folders: BTreeMap<SessionId, Option<String>> = BTreeMap::new();
        for row in self.store.asks(self.tenant, AskFilter { session: None, pending: true }).await? {
            let (row, only_a_person) = self.as_asked(row, now).await?;
            if row.state != AskState::Pending {
                continue;
            }
            let workspace = match folders.entry(row.session_id) {
                Entry::Occupied(known) => known.get().clone(),
                Entry::Vacant(new) => new.insert(self.created(row.session_id).await?.workspace).clone(),
            };
            asks.push(AskView { row, workspace, only_a_person });
        }
        Ok(asks)
    }

    /// What the log asked, in place of what the row says of it: a row is a copy, and whoever answers must
    /// see the question itself (S15). Nor does a row say that its time has passed before its call was told. And whether only a
    /// person may allow it.
    async fn as_asked(&self, row: AskRow, now: Timestamp) -> Result<(AskRow, bool), AskViewError> {
        let PermissionAsked {
            intent_id,
            kind,
            facts,
            pinned,
            only_a_person,
            input_hash,
            expires_at,
            definition_version,
            ..
        } = self.question(&row).await?;
        let expired = row.state == AskState::Pending && expires_at <= now;
        let state = if expired { AskState::Expired } else { row.state };
        let facts = self.all_facts(&row, facts).await;
        let row = AskRow { intent_id, kind, facts, pinned, input_hash, expires_at, definition_version, state, ..row };
        Ok((row, only_a_person))
    }

    /// The event that opened an ask.
    ///
    /// # Errors
    /// If the log holds another event there, or cannot be read.
    pub async fn question(&self, row: &AskRow) -> Result<PermissionAsked, AskViewError> {
        let events = self.events(row.session_id, row.asked_seq.saturating_sub(1), 1).await?;
        match events.first().map(Event::body) {
            Some(Body::PermissionAsked(asked)) if asked.ask_id == row.ask_id => Ok(*asked),
            _ => Err(AskViewError::NotItsEvent(Box::new(row.clone()))),
        }
    }

    /// All facts of an ask. If they cannot be opened, those that the event holds; [`Archive::diff`] then says why nobody
    /// can allow it.
    async fn all_facts(&self, row: &AskRow, told: Value) -> Value {
        match self.kept_beside(row, &told, WHOLE).await {
            Ok(Some(bytes)) => serde_json::from_slice(&bytes).unwrap_or(told),
            Ok(None) | Err(_) => told,
        }
    }

    /// The diff that an ask names, if it names one. Whoever cannot be shown it, or the facts, must not allow it.
    ///
    /// # Errors
    /// If the diff or the facts are gone or cannot be read.
    pub async fn diff(&self, row: &AskRow) -> Result<Option<String>, AskContentError> {
        if row.facts.get(WHOLE).is_some() {
            self.kept_beside(row, &row.facts, WHOLE).await?;
            return Err(AskContentError::new(row, WHOLE, "they are no document"));
        }
        let diff = self.kept_beside(row, &row.facts, "diff").await?;
        Ok(diff.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    async fn kept_beside(&self, row: &AskRow, facts: &Value, name: &str) -> Result<Option<Vec<u8>>, AskContentError> {
        let Some(named) = facts.get(name).filter(|named| !named.is_null()) else { return Ok(None) };
        let named = ArtifactRef::deserialize(named).map_err(|error| AskContentError::new(row, name, error))?;
        let kept = self.artifact(named.id, row.session_id).await;
        let kept = kept.map_err(|error| AskContentError::new(row, name, error))?;
        if Digest::of(&kept.bytes) != named.sha256 {
            return Err(AskContentError::new(row, name, "what is kept is not what was asked"));
        }
        if !(named.complete && kept.artifact.complete) {
            let why = "an older version kept only a part of it; deny it and make the call again";
            return Err(AskContentError::new(row, name, why));
        }
        Ok(Some(kept.bytes))
    }
}
