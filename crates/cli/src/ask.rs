//! An ask as it stands: what the log asked, where, and whether an answer still counts.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use portcullis_base::{AskId, Clock as _, SessionId, SystemClock};
use portcullis_event::facts::PermissionAsked;
use portcullis_event::{AskState, Body, LOCAL_TENANT};
use portcullis_store::{AskFilter, AskRow, Log as _, StoreError};
use serde_json::{Value, json};

use crate::ask_kept;
use crate::exit::{ExitKind, fault};
use crate::world::{World, key};

/// Where tools see the workspace.
const MOUNT: &str = "/workspace";

/// One ask, with the folder of this machine that it is about: whoever answers sees no other project's name
/// for it, since every workspace is `/workspace` to its tools.
pub struct Ask {
    pub row: AskRow,
    /// The host's folder of the session's workspace.
    pub workspace: Option<String>,
    /// No flag may allow it.
    pub only_a_person: bool,
}

impl Ask {
    /// One ask, as the log asked it.
    pub async fn load(world: &World, ask: AskId) -> anyhow::Result<Self> {
        let row = world.store.ask(LOCAL_TENANT, ask).await?.ok_or(StoreError::NoAsk(ask))?;
        let workspace = world.created(row.session_id).await?.workspace;
        let (row, only_a_person) = as_asked(world, row).await?;
        Ok(Self { row, workspace, only_a_person })
    }

    /// Those that wait for an answer that would still count.
    pub async fn pending(world: &World) -> anyhow::Result<Vec<Self>> {
        let mut asks = Vec::new();
        let mut folders: BTreeMap<SessionId, Option<String>> = BTreeMap::new();
        for row in world.store.asks(LOCAL_TENANT, AskFilter { session: None, pending: true }).await? {
            let (row, only_a_person) = as_asked(world, row).await?;
            if row.state != AskState::Pending {
                continue;
            }
            let workspace = match folders.entry(row.session_id) {
                Entry::Occupied(known) => known.get().clone(),
                Entry::Vacant(new) => new.insert(world.created(row.session_id).await?.workspace).clone(),
            };
            asks.push(Self { row, workspace, only_a_person });
        }
        Ok(asks)
    }

    pub fn is_pending(&self) -> bool {
        self.row.state == AskState::Pending
    }

    /// The folder of this machine that the call would run in.
    pub fn cwd(&self) -> Option<String> {
        let workspace = self.workspace.as_ref()?;
        let within = self.row.facts.get("cwd").and_then(Value::as_str).and_then(|cwd| cwd.strip_prefix(MOUNT));
        Some(format!("{workspace}{}", within.unwrap_or_default()))
    }

    /// For a program.
    pub fn document(&self) -> anyhow::Result<Value> {
        let mut value = serde_json::to_value(&self.row)?;
        value["workspace"] = json!(self.workspace);
        value["cwd"] = json!(self.cwd());
        value["only_a_person"] = json!(self.only_a_person);
        Ok(value)
    }
}

/// What the log asked, in place of what the row says of it: a row is a copy, and whoever answers must
/// see the question itself (S15). Nor does a row say that its time has passed before its call was told. And whether only a
/// person may allow it.
async fn as_asked(world: &World, row: AskRow) -> anyhow::Result<(AskRow, bool)> {
    let asked = question(world, &row).await?;
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
    } = asked;
    let expired = row.state == AskState::Pending && expires_at <= SystemClock::new().now();
    let state = if expired { AskState::Expired } else { row.state };
    let facts = ask_kept::facts(world, &row, facts).await;
    let row = AskRow { intent_id, kind, facts, pinned, input_hash, expires_at, definition_version, state, ..row };
    Ok((row, only_a_person))
}

/// The event that opened the ask.
pub async fn question(world: &World, row: &AskRow) -> anyhow::Result<PermissionAsked> {
    let events = world.store.read(key(row.session_id), row.asked_seq.saturating_sub(1), 1).await?;
    match events.first().map(portcullis_event::Event::body) {
        Some(Body::PermissionAsked(asked)) if asked.ask_id == row.ask_id => Ok(*asked),
        _ => {
            let check = world.command(&format!("audit verify {}", row.session_id));
            let (ask, seq) = (row.ask_id, row.asked_seq);
            let text = format!("event {seq} of its log is not ask {ask}, so nobody can be shown what it asks: {check}");
            Err(fault(ExitKind::Broken, text))
        }
    }
}
