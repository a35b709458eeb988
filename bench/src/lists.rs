//! Lists with two conditions: 20 of 10,000 sessions and of 10,000 asks, beside the same of 1,000. The conditions leave a
//! quarter, spread over all, so that a list which walked over the table would show it.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use portcullis_base::AgentId;
use portcullis_event::facts::{Reply, StatusRunning};
use portcullis_event::{AskState, SessionStatus};
use portcullis_store::{AskQuery, Log as _, Queue as _, SessionQuery};
use portcullis_store_sqlite::{Durability, SqliteConfig, SqliteStore};
use portcullis_store_testkit::World;

use crate::table::{Row, millis, p50};

const MANY: u32 = 10_000;
const FEW: u32 = 1_000;
/// Sessions that are made at once: they share a sync.
const AT_ONCE: u32 = 64;
const LISTED: usize = 20;
/// Looks at each list; the middle one counts.
const LOOKS: usize = 200;
const MOST: Duration = Duration::from_millis(5);
const GROWTH: f64 = 1.3;

pub async fn run() -> Result<Vec<Row>> {
    let (few_sessions, few_asks) = measured(FEW).await?;
    let (sessions, asks) = measured(MANY).await?;
    let row = |what: &str, many: Duration, few: Duration| {
        let growth = many.as_secs_f64() / few.as_secs_f64();
        Row {
            what: format!("list {LISTED} of {MANY} {what} with two filters, p50"),
            measured: format!("{} = {growth:.2} ×", millis(many)),
            anchor: format!("{} of {FEW}", millis(few)),
            must: format!("≤ {}, ≤ {GROWTH} ×", millis(MOST)),
            reached: many <= MOST && growth <= GROWTH,
        }
    };
    Ok(vec![row("sessions", sessions, few_sessions), row("asks", asks, few_asks)])
}

async fn measured(count: u32) -> Result<(Duration, Duration)> {
    let folder = tempfile::tempdir()?;
    let world = Arc::new(World::new(1));
    let store = Arc::new(open(&world, &folder.path().join("lists.db"))?);
    let mut made = 0;
    while made < count {
        let mut tasks = tokio::task::JoinSet::new();
        for n in made..count.min(made + AT_ONCE) {
            tasks.spawn(session(world.clone(), store.clone(), n));
        }
        while let Some(task) = tasks.join_next().await {
            task??;
        }
        world.clock.advance(Duration::from_secs(1));
        made += AT_ONCE;
    }
    let by = SessionQuery {
        agent: Some(AgentId::from_u128(0)),
        status: Some(SessionStatus::Running),
        ..SessionQuery::default()
    };
    let waiting =
        AskQuery { state: Some(AskState::Pending), principal: Some("user:test".to_owned()), ..AskQuery::default() };
    let (mut sessions, mut asks) = (Vec::new(), Vec::new());
    for _ in 0..LOOKS {
        let begun = Instant::now();
        let page = store.find_sessions(world.tenant, &by, LISTED, None).await?;
        sessions.push(begun.elapsed());
        anyhow::ensure!(page.items.len() == LISTED && page.next.is_some(), "a whole page of sessions");
        let begun = Instant::now();
        let page = store.find_asks(world.tenant, &waiting, LISTED, None).await?;
        asks.push(begun.elapsed());
        anyhow::ensure!(page.items.len() == LISTED && page.next.is_some(), "a whole page of asks");
    }
    Ok((p50(sessions), p50(asks)))
}

/// A session of one of two agents, running or not, with an ask that waits or was answered.
async fn session(world: Arc<World>, store: Arc<SqliteStore>, n: u32) -> Result<()> {
    let key = world.key();
    let created = world.created_with(key, |created| created.agent_id = Some(AgentId::from_u128(u128::from(n % 2))));
    store.commit(world.client(key, created)).await?;
    let lease = world.claim(&*store, key, 1).await?;
    let parked = world.parked();
    let mut events = parked.events;
    if n % 4 < 2 {
        events.push(world.draft(&StatusRunning { previous_status: "idle".to_owned() }));
    }
    store.commit(world.work(key, &lease, events)).await?;
    if !n.is_multiple_of(4) {
        store.commit(world.client(key, world.replied(parked.ask, Reply::Deny))).await?;
    }
    Ok(store.release(key, lease.fence, None).await?)
}

pub fn open(world: &World, path: &Path) -> Result<SqliteStore> {
    Ok(SqliteStore::open(SqliteConfig {
        path: path.to_owned(),
        durability: Durability::Full,
        clock: world.clock.clone(),
        ids: world.ids.clone(),
        liveness: world.liveness.clone(),
        checkpoint_key: Some(world.key.clone()),
    })?)
}
