//! What a process that starts finds: the work among ten thousand sessions, and one long session opened by its snapshot.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use portcullis::Runtime;
use portcullis_base::WorkerId;
use portcullis_event::facts::Priority;
use portcullis_event::{FOLD_VERSION, State};
use portcullis_pipeline::Opened;
use portcullis_store::{Commit, Fairness, HostLiveness, Lease, LeaseOwner, Log as _, Queue as _, SessionKey, Snapshot};
use portcullis_store_sqlite::SqliteStore;
use portcullis_store_testkit::World;

use crate::table::{Row, millis};
use crate::world::{artifacts, nothing, sqlite};

const SESSIONS: usize = 10_000;
const EVENTS: u64 = 100_000;
/// What has come since the snapshot: as many as an opening may have to fold (`Session::release` keeps a newer one then).
const TAIL: u64 = 1_000;
const TTL: Duration = Duration::from_secs(30);
/// Sessions one claim takes.
const BATCH: usize = 64;

pub async fn run() -> Result<Vec<Row>> {
    Ok(vec![scan().await?, open().await?])
}

/// A tenth is due by input or a wake, a tenth was held by a process that died, the rest sleeps.
async fn scan() -> Result<Row> {
    let folder = tempfile::tempdir()?;
    let store = sqlite(folder.path())?;
    let world = World::new(1);
    let host = HostLiveness::new();
    let mut child = std::process::Command::new("true").spawn()?;
    let dead = LeaseOwner { pid: child.id(), ..host.this_process(WorkerId::from_u128(1), "dead") };
    child.wait()?;
    let mut made = Vec::new();
    for n in 0..SESSIONS {
        let (begin, store) = (first_events(&world, n), store.clone());
        let holder = (n % 10 == 1).then(|| dead.clone());
        // At once, so that they share their syncs.
        made.push(tokio::spawn(async move {
            let key = begin.key;
            store.commit(begin).await?;
            if let Some(holder) = holder {
                store.claim_session(key, holder, TTL).await?;
            }
            anyhow::Ok(())
        }));
    }
    for one in made {
        one.await??;
    }
    drop(store);

    // A process that starts: nothing is cached.
    let begun = Instant::now();
    let store = sqlite(folder.path())?;
    let owner = host.this_process(WorkerId::from_u128(2), "portcullis-bench");
    let mut found = 0;
    loop {
        let all = Fairness { per_tenant_max: usize::MAX };
        let taken = store.claim_any(owner.clone(), BATCH, TTL, all).await?;
        if taken.is_empty() {
            break;
        }
        found += taken.len();
    }
    let span = begun.elapsed();
    ensure!(found == SESSIONS / 5, "{found} sessions were found");
    Ok(Row {
        what: format!("recovery scan: {found} of {SESSIONS} sessions found and claimed, opening the store included"),
        measured: millis(span),
        anchor: "–".to_owned(),
        must: "< 1 s".to_owned(),
        reached: span < Duration::from_secs(1),
    })
}

fn first_events(world: &World, n: usize) -> Commit {
    let key = world.key();
    let mut events = vec![world.created(key)];
    match n % 20 {
        0 => events.push(world.queued("input")),
        10 => events.push(world.wake(Duration::ZERO, Priority::Low, None).1),
        _ if n.is_multiple_of(3) => events.push(world.wake(Duration::from_secs(1 << 40), Priority::Normal, None).1),
        _ => {}
    }
    Commit::client(key, world.append(), events)
}

/// One session of a hundred thousand events, opened by a process that knows nothing of it yet.
async fn open() -> Result<Row> {
    let folder = tempfile::tempdir()?;
    let world = World::new(2);
    let key = {
        let store = sqlite(folder.path())?;
        let key = world.session(&*store).await?;
        let lease = world.claim(&*store, key, 1).await?;
        let mut state = State::default();
        while state.seq < EVENTS - TAIL {
            append(&store, &world, (key, &lease), &mut state).await?;
        }
        let text = serde_json::to_string(&state)?;
        let digest = portcullis_base::Digest::of(text.as_bytes());
        let snapshot = Snapshot { seq: state.seq, code_version: FOLD_VERSION, state: text, digest };
        store.put_snapshot(key, snapshot).await?;
        while state.seq < EVENTS {
            append(&store, &world, (key, &lease), &mut state).await?;
        }
        store.release(key, lease.fence, Some(u64::MAX)).await?;
        key
    };
    let mut samples = Vec::new();
    for n in 0..5 {
        let begun = Instant::now();
        let store = sqlite(folder.path())?;
        let runtime =
            Runtime::builder().store(store, artifacts(folder.path())?).tool("nothing", nothing()?)?.build()?;
        let owner = HostLiveness::new().this_process(WorkerId::from_u128(10 + n), "portcullis-bench");
        let Opened::Ready(session) = runtime.gate().open(key.session, owner).await? else {
            bail!("someone holds the session");
        };
        samples.push(begun.elapsed());
        ensure!(session.state().seq >= EVENTS);
        session.release().await?;
    }
    // The first has the longest tail to fold: it keeps a newer snapshot when it lets go.
    let span = samples.into_iter().max().unwrap_or_default();
    Ok(Row {
        what: format!("opening a session of {EVENTS} events by its snapshot, {TAIL} events after it, store included"),
        measured: millis(span),
        anchor: "–".to_owned(),
        must: "< 100 ms".to_owned(),
        reached: span < Duration::from_millis(100),
    })
}

/// As many calls as one append takes.
async fn append(
    store: &SqliteStore,
    world: &World,
    (key, lease): (SessionKey, &Lease),
    state: &mut State,
) -> Result<()> {
    let events = (0..100).flat_map(|_| world.inert_call("what a file says, or a command")).collect();
    for event in store.commit(world.work(key, lease, events)).await?.events {
        state.apply(&event);
    }
    Ok(())
}
