//! What a process does all day: it takes up what is due, or a session of its own choice, attends to it, makes a few
//! calls, and gives it back; or it fails to.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use portcullis_base::{Clock as _, MessageId, limits};
use portcullis_pipeline::{Append, Halt, InContext, Opened, Proposal, Scheduling, Session};
use portcullis_store::{Claim, Fairness, Lease, Notices as _, Queue as _, SessionKey, StoreError, deliver_outbox};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::dice::Dice;
use crate::jobs::roll_call;
use crate::process::Process;

/// How often a worker looks for work by itself (store §7), in milliseconds, give or take a fifth.
pub const POLL_MS: u64 = 1_000;

/// Works until `stop`, or for ever if the process is killed: then it hangs at its next step.
pub async fn work(process: Arc<Process>, stop: CancellationToken) {
    let dice = Dice::of(process.ground.options.seed, &process.name);
    let mut changes = process.store.changes();
    while !stop.is_cancelled() {
        changes.mark_unchanged();
        if dice.chance(20) {
            // What it cannot deliver now stays in the outbox, for it or for another one.
            let _ = deliver_outbox(&*process.store).await;
        }
        let held = take_up(&process, &dice).await;
        if held.is_empty() {
            news(&mut changes, &dice).await;
            continue;
        }
        join_all(held.into_iter().map(|session| tend(&process, session, &dice, &stop))).await;
        // A model thinks before its next turn; one that only waits for others is there at once.
        let thinks = if process.ground.options.only_the_queue { 0 } else { dice.between(1, 2_000) };
        tokio::time::sleep(Duration::from_millis(thinks)).await;
    }
}

/// Waits for a hint, or for as long as a worker does without.
async fn news(changes: &mut watch::Receiver<u64>, dice: &Dice) {
    let poll = Duration::from_millis(dice.between(POLL_MS * 4 / 5, POLL_MS * 6 / 5));
    tokio::select! {
        biased;
        changed = changes.changed() => if changed.is_err() { std::future::pending().await },
        () = tokio::time::sleep(poll) => {}
    }
}

/// What is due, as a worker does; or any session, due or not, as `portcullis call` does.
async fn take_up(process: &Process, dice: &Dice) -> Vec<Session> {
    if process.ground.options.only_the_queue || dice.chance(60) {
        let limit = dice.between(1, 3) as usize;
        let asked = process.clock.monotonic();
        let mut held = Vec::new();
        for (key, lease) in claim(process, limit, dice).await.unwrap_or_default() {
            if let Ok(session) = process.gate(key.tenant).hold(lease, asked).await {
                held.push(session);
            }
        }
        return held;
    }
    let sessions = process.ground.known().await;
    let key = sessions[dice.index(sessions.len())];
    match process.gate(key.tenant).open(key.session, process.owner.clone()).await {
        Ok(Opened::Ready(session)) => vec![session],
        Ok(Opened::Held(_)) | Err(_) => Vec::new(),
    }
}

/// What is due of one tenant, or of all.
async fn claim(process: &Process, limit: usize, dice: &Dice) -> Result<Vec<(SessionKey, Lease)>, StoreError> {
    let (owner, tenants) = (process.owner.clone(), &process.ground.tenants);
    if tenants.len() > 1 && (process.ground.options.only_the_queue || dice.chance(50)) {
        return process.store.claim_any(owner, limit, limits::LEASE_TTL, Fairness { per_tenant_max: 8 }).await;
    }
    let tenant = tenants[dice.index(tenants.len())];
    let claims = process.store.claim(tenant, owner, limit, limits::LEASE_TTL).await?;
    let granted = claims.into_iter().filter_map(Claim::granted);
    Ok(granted.map(|lease| (SessionKey { tenant, session: lease.session }, lease)).collect())
}

/// One session from taking it up to giving it back.
async fn tend(process: &Process, session: Session, dice: &Dice, stop: &CancellationToken) {
    let worked = attend_and_call(process, &session, dice, stop).await;
    // One who failed either gives the session back all the same, as `Runtime::serve` does, or leaves it to run out.
    if worked.is_ok() || dice.chance(50) {
        let _ = session.release().await;
    }
}

async fn attend_and_call(
    process: &Process,
    session: &Session,
    dice: &Dice,
    stop: &CancellationToken,
) -> Result<(), Halt> {
    session.attend_until(&process.interrupt()).await?;
    if dice.chance(25) {
        serve(process, session, dice, stop).await?;
    }
    let turns = if process.ground.options.only_the_queue { 0 } else { dice.between(0, 2) };
    for _ in 0..turns {
        if dice.chance(12) {
            // The one who waits goes away: what was begun settles by itself.
            let patience = Duration::from_millis(dice.between(0, 3_000));
            if let Ok(ended) = tokio::time::timeout(patience, turn(process, session, dice)).await {
                ended?;
            }
        } else {
            turn(process, session, dice).await?;
        }
    }
    Ok(())
}

/// Stays and does what others ask for.
async fn serve(process: &Process, session: &Session, dice: &Dice, stop: &CancellationToken) -> Result<(), Halt> {
    let mut changes = process.store.changes();
    for _ in 0..dice.between(1, 6) {
        if stop.is_cancelled() {
            break;
        }
        changes.mark_unchanged();
        session.attend_until(&process.interrupt()).await?;
        news(&mut changes, dice).await;
    }
    Ok(())
}

/// A few calls at once.
async fn turn(process: &Process, session: &Session, dice: &Dice) -> Result<(), Halt> {
    let ground = &process.ground;
    let count = ground.take_calls(dice.between(1, 4));
    if count == 0 {
        return Ok(());
    }
    let message_id = MessageId::make(&*ground.ids, process.clock.now());
    let propose = |n: u64| {
        let (tool, input) = roll_call(dice);
        // Now and then a model repeats a call's id.
        let call_id = format!("call_{}", if dice.chance(3) { 0 } else { n });
        let actor = session.agent();
        Proposal { actor, message_id, call_id, tool: tool.to_owned(), input: input.to_string(), stated_reason: None }
    };
    let proposals = (0..count).map(propose).collect();
    let scheduling = dice.pick(&[Scheduling::Segmented, Scheduling::Segmented, Scheduling::Sequential]);
    let mut facts = Append::new();
    let turn = match dice.chance(50) {
        true => session.begin_turn(&mut facts),
        false => session.begin_loop_turn(&mut facts, &InContext::default()),
    };
    let end = session.calls(facts, &turn, proposals, scheduling, &process.interrupt()).await?;
    let mut facts = end.facts;
    facts.idle();
    session.commit(facts).await
}

/// Attends to what is due and nothing else, until nothing is; how many sessions it took up. For the heal phase.
///
/// # Errors
/// If the log refused a write, which after the healing it must not.
pub async fn clear_the_queue(process: &Process) -> Result<usize, Halt> {
    let mut taken = 0;
    loop {
        // One at a time: a lease is renewed only from when its session is held.
        let asked = process.clock.monotonic();
        let fairness = Fairness { per_tenant_max: usize::MAX };
        let mut claims = process.store.claim_any(process.owner.clone(), 1, limits::LEASE_TTL, fairness).await?;
        let Some((key, lease)) = claims.pop() else { return Ok(taken) };
        let session = process.gate(key.tenant).hold(lease, asked).await?;
        session.attend().await?;
        session.release().await?;
        taken += 1;
    }
}

/// Attends to one session, due or not; false if someone still holds it.
///
/// # Errors
/// If the log refused a write.
pub async fn visit(process: &Process, key: SessionKey) -> Result<bool, Halt> {
    match process.gate(key.tenant).open(key.session, process.owner.clone()).await? {
        Opened::Held(_) => Ok(false),
        Opened::Ready(held) => {
            held.attend().await?;
            held.release().await.map_err(|error: StoreError| Halt::from(error))?;
            Ok(true)
        }
    }
}
