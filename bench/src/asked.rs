//! Calls that ask each time. The question and its answer are a person's time, and not measured: what is, is the way
//! from the stored intent through every phase to the observation, both commits included.

use anyhow::{Result, bail, ensure};
use portcullis::{AskAnswer, AskId, Reply, Runtime};
use portcullis_base::MessageId;
use portcullis_pipeline::{Append, Disposition, Observation, Proposal, Session};
use serde_json::Value;

/// A call that a person has allowed and nobody has carried out.
pub async fn allowed(runtime: &Runtime, session: &Session, n: u128, tool: &str, input: &Value) -> Result<AskId> {
    let mut facts = Append::new();
    let turn = session.begin_turn(&mut facts);
    let proposal = Proposal {
        actor: portcullis::Actor::agent("bench"),
        message_id: MessageId::from_u128(n),
        call_id: "c".to_owned(),
        tool: tool.to_owned(),
        input: input.to_string(),
        stated_reason: None,
    };
    let (facts, disposition) = session.admit(facts, &turn, proposal).settled().await?;
    session.commit(facts).await?;
    let ask = match disposition {
        Disposition::Parked(ask) => ask,
        Disposition::Settled(seen) => bail!("{tool} did not ask: {}", seen.session_view().summary),
        Disposition::Elsewhere(event) => bail!("{tool} was handed over by {event}"),
    };
    runtime.reply(ask, AskAnswer::by("bench", Reply::AllowOnce)).await?;
    Ok(ask)
}

/// Carries it out. It must go well.
pub async fn carry_out(session: &Session, ask: AskId) -> Result<Box<Observation>> {
    match session.resume(ask).await? {
        Some(Disposition::Settled(seen)) => {
            ensure!(seen.ok(), "it failed: {}", seen.session_view().summary);
            Ok(seen)
        }
        _ => bail!("it was not carried out"),
    }
}
