//! A runtime over a store in a scratch folder, and one held session to call in.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail};
use portcullis::{Runtime, Semantics, Tool};
use portcullis_base::{Clock, IdGen, MessageId, SessionId, SystemClock, SystemIds, WorkerId};
use portcullis_event::CheckpointKey;
use portcullis_pipeline::{Append, Disposition, Observation, Opened, Proposal, Session};
use portcullis_store::{HostLiveness, LocalArtifacts};
use portcullis_store_sqlite::{Durability, SqliteConfig, SqliteStore};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Nothing {
    #[expect(dead_code, reason = "decoded and left alone")]
    text: String,
}

/// A tool that only looks, and at nothing: what is measured around it is the gate.
pub fn nothing() -> Result<Tool> {
    asking(Semantics::read_only())
}

/// The same with other semantics, such as a policy that asks.
pub fn asking(semantics: Semantics) -> Result<Tool> {
    Ok(Tool::builder::<Nothing, String>("Does nothing.")
        .semantics(semantics)
        .execute(|_, _| async { Ok("done".to_owned()) })
        .build()?)
}

pub fn sqlite(folder: &Path) -> Result<Arc<SqliteStore>> {
    let ids = Arc::new(SystemIds::new());
    Ok(Arc::new(SqliteStore::open(SqliteConfig {
        path: folder.join("portcullis.db"),
        durability: Durability::Full,
        clock: Arc::new(SystemClock::new()) as Arc<dyn Clock>,
        ids: ids as Arc<dyn IdGen>,
        liveness: Arc::new(HostLiveness::new()),
        checkpoint_key: Some(CheckpointKey::from_bytes([1; 32])),
    })?))
}

pub fn artifacts(folder: &Path) -> Result<Arc<LocalArtifacts>> {
    Ok(Arc::new(LocalArtifacts::open(&folder.join("artifacts"), Arc::new(SystemIds::new()))?))
}

/// A claimed session that stays claimed: a call then costs its own commits and no others.
pub async fn hold(runtime: &Runtime, session: SessionId) -> Result<Session> {
    let owner = HostLiveness::new().this_process(WorkerId::from_u128(1), "portcullis-bench");
    match runtime.gate().open(session, owner).await? {
        Opened::Ready(session) => Ok(session),
        Opened::Held(owner) => bail!("held by {owner}"),
    }
}

/// One call as a turn of its own, made durable.
pub async fn call(session: &Session, n: u128, tool: &str, input: String) -> Result<Observation> {
    let mut facts = Append::new();
    let turn = session.begin_turn(&mut facts);
    let proposal = Proposal {
        actor: portcullis::Actor::agent("bench"),
        message_id: MessageId::from_u128(n),
        call_id: "c".to_owned(),
        tool: tool.to_owned(),
        input,
        stated_reason: None,
    };
    let (facts, disposition) = session.admit(facts, &turn, proposal).settled().await?;
    session.commit(facts).await?;
    match disposition {
        Disposition::Settled(observation) => Ok(*observation),
        Disposition::Parked(ask) => bail!("it asks: {ask}"),
        Disposition::Elsewhere(event) => bail!("it was handed over by {event}"),
    }
}
