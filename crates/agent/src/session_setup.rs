//! The setup that a session has: as its log recorded it, or derived from what an older log recorded.

use portcullis_base::{Digest, SessionId};
use portcullis_event::facts::{MenuFrozen, ModelRequestStart, SessionCreated, SessionUpdated};
use portcullis_event::{Body, EventBody as _};
use portcullis_store::{SessionKey, Store, StoreError, created};
use serde::Deserialize;

use crate::setup::{ModelSetup, Profile, Setup, SetupError};

/// The principal of sessions that nobody named one for.
pub const LOCAL_PRINCIPAL: &str = "local";

/// A tool that only the managed profile offers: a menu that has it was frozen under that profile.
const MANAGED_ONLY: &str = "shell_describe";

/// The setup of a session, and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionSetup {
    pub setup: Setup,
    pub origin: SetupOrigin,
}

/// Where the setup of a session comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetupOrigin {
    /// An event of its log names it by this hash.
    Recorded(Digest),
    /// Its log is from before there were setups: this is what it says without one.
    Derived,
}

/// Why the setup of a session cannot be known.
#[derive(Debug, thiserror::Error)]
pub enum SessionSetupError {
    #[error("the setup of session {session} cannot be used: {error}")]
    Unusable { session: SessionId, error: SetupError },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a session runs as.
///
/// # Errors
/// If there is no such session, or its setup is gone or unreadable. Nothing is assumed then.
pub async fn session_setup(store: &dyn Store, key: SessionKey) -> Result<SessionSetup, SessionSetupError> {
    session_setup_at(store, key, u64::MAX).await
}

/// What a session ran as when its event at `seq` was written: an answered call runs as it was asked.
///
/// # Errors
/// As [`session_setup`].
pub async fn session_setup_at(store: &dyn Store, key: SessionKey, seq: u64) -> Result<SessionSetup, SessionSetupError> {
    let created = created(store, key).await?;
    let updates = store.of_kinds(key, &[SessionUpdated::KIND]).await?;
    let updated = updates.iter().rev().filter(|event| event.seq <= seq).find_map(|event| match event.body() {
        Body::SessionUpdated(changed) => changed.config_hash,
        _ => None,
    });
    let Some(hash) = updated.or(created.has_setup.then_some(created.config_hash)) else {
        return Ok(SessionSetup { setup: derived(store, key, seq, created).await?, origin: SetupOrigin::Derived });
    };
    let session = key.session;
    let bytes = store.blob(key.tenant, hash).await?;
    let bytes =
        bytes.ok_or_else(|| StoreError::Corrupt(format!("the setup of session {session} ({hash}) is missing")))?;
    let setup = Setup::from_bytes(&bytes).map_err(|error| SessionSetupError::Unusable { session, error })?;
    Ok(SessionSetup { setup, origin: SetupOrigin::Recorded(hash) })
}

/// What a log without a setup says: its folder, its client's tools, the profile of its newest menu, the model asked last.
async fn derived(store: &dyn Store, key: SessionKey, seq: u64, created: SessionCreated) -> Result<Setup, StoreError> {
    let told = store.of_kinds(key, &[MenuFrozen::KIND, ModelRequestStart::KIND]).await?;
    let (mut menu, mut model) = (None, None);
    for event in told.iter().filter(|event| event.seq <= seq) {
        match event.body() {
            Body::MenuFrozen(frozen) => menu = Some(frozen.hash),
            Body::ModelRequestStart(asked) => model = Some(asked.model.clone()),
            _ => {}
        }
    }
    let menu = match menu {
        Some(hash) => store.blob(key.tenant, hash).await?,
        None => None,
    };
    let mut setup = Setup::local(key.tenant, LOCAL_PRINCIPAL, menu.map_or(Profile::Code, |menu| profile_of(&menu)));
    setup.workspace = created.workspace;
    setup.custom_tools = created.custom_tools;
    setup.model = model.map(|name| ModelSetup { name, ..ModelSetup::default() });
    Ok(setup)
}

fn profile_of(menu: &[u8]) -> Profile {
    #[derive(Deserialize)]
    struct MenuLine {
        name: String,
    }
    let lines: Vec<MenuLine> = serde_json::from_slice(menu).unwrap_or_default();
    if lines.iter().any(|line| line.name == MANAGED_ONLY) { Profile::Managed } else { Profile::Code }
}
