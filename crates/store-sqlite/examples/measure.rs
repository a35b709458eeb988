//! Measures the store against plain rusqlite writing the same rows, in one run:
//! `cargo run --release -p portcullis-store-sqlite --example measure`.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portcullis_event::{Event, State};
use portcullis_store::testkit::World;
use portcullis_store::{Log as _, SessionKey};
use portcullis_store_sqlite::{Durability, SqliteConfig, SqliteStore};
use rusqlite::{Connection, params};

const CALLS: usize = 400;
const SESSIONS: usize = 64;
const ROUNDS: usize = 40;

fn open(world: &World, path: &Path) -> SqliteStore {
    SqliteStore::open(SqliteConfig {
        path: path.to_owned(),
        durability: Durability::Full,
        clock: world.clock.clone(),
        ids: world.ids.clone(),
        liveness: world.liveness.clone(),
        checkpoint_key: Some(world.key.clone()),
    })
    .expect("the store opens")
}

fn p50(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// The rows of one append as anyone would write them: events, their long payloads, an intent, the head.
fn plain_append(conn: &Connection, key: SessionKey, events: &[Event]) {
    let (tenant, session) = (key.tenant.as_u128().to_be_bytes(), key.session.as_u128().to_be_bytes());
    for event in events {
        let payload = event.payload.as_deref().unwrap_or_default();
        let long = (payload.len() > 560).then(|| {
            conn.prepare_cached("INSERT INTO payloads (payload) VALUES (?1)")
                .and_then(|mut s| s.execute([payload]))
                .expect("a payload row");
            conn.last_insert_rowid()
        });
        conn.prepare_cached(
            "INSERT INTO events VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19)",
        )
        .and_then(|mut s| {
            s.execute(params![
                tenant,
                session,
                event.seq,
                event.id.as_u128().to_be_bytes(),
                event.kind.as_str(),
                event.at.as_micros(),
                event.actor.as_str(),
                event.worker_id.map(|w| w.as_u128().to_be_bytes()),
                event.fence,
                None::<Vec<u8>>,
                None::<Vec<u8>>,
                None::<Vec<u8>>,
                event.append_id.as_u128().to_be_bytes(),
                event.v,
                long.is_none().then_some(payload),
                long,
                event.payload_hash.as_bytes(),
                event.prev_hash.as_bytes(),
                event.hash.as_bytes(),
            ])
        })
        .expect("an event row");
    }
    let last = events.last().expect("an append has events");
    conn.prepare_cached("INSERT INTO intents VALUES (?1,?2,?3,'msg_x/call_1','read',?4,'observed',NULL,?5,NULL)")
        .and_then(|mut s| {
            s.execute(params![tenant, session, last.id.as_u128().to_be_bytes(), format!("dv1:{}", last.hash), last.seq])
        })
        .expect("an intent row");
    conn.prepare_cached(
        "INSERT INTO session_heads VALUES (?1,?2,?3,?4,1,NULL,NULL,NULL,'idle',0,0,0) \
         ON CONFLICT (tenant, session) DO UPDATE SET last_seq = ?3, last_hash = ?4",
    )
    .and_then(|mut s| s.execute(params![tenant, session, last.seq, last.hash.as_bytes()]))
    .expect("a head row");
}

#[tokio::main]
async fn main() {
    let folder = tempfile::tempdir_in(".").expect("a folder on this disk");
    let world = Arc::new(World::new(1));
    let content = "x".repeat(4_096);

    let path = folder.path().join("one.db");
    let store = Arc::new(open(&world, &path));
    let key = world.session(&*store).await.expect("a session");
    let lease = world.claim(&*store, key, 1).await.expect("a lease");
    let plain_path = folder.path().join("plain.db");
    drop(open(&world, &plain_path));
    let plain = Connection::open(&plain_path).expect("it opens");
    plain.pragma_update(None, "synchronous", "FULL").expect("a pragma");

    // Turn about, so that both meet the same disk.
    let (mut ours, mut theirs, mut appends) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..CALLS {
        let commit = world.work(key, &lease, world.inert_call(&content));
        let start = Instant::now();
        let committed = store.commit(commit).await.expect("an append");
        ours.push(start.elapsed());
        let start = Instant::now();
        plain.execute_batch("BEGIN IMMEDIATE").expect("begin");
        plain_append(&plain, key, &committed.events);
        plain.execute_batch("COMMIT").expect("commit");
        theirs.push(start.elapsed());
        appends.push(committed.events);
    }
    println!("single session, read of 4 KiB (9 events), FULL: store p50 {:?}, plain p50 {:?}", p50(ours), p50(theirs));

    let payload: usize = appends[0].iter().filter_map(|e| e.payload.as_deref()).map(str::len).sum();
    let raw = Connection::open(&path).expect("it opens");
    let size = || -> i64 { raw.query_row("PRAGMA page_count", [], |row| row.get(0)).expect("a number") };
    let before = size();
    for _ in 0..CALLS {
        store.commit(world.work(key, &lease, world.inert_call(&content))).await.expect("an append");
    }
    let grown = (size() - before) * 4_096 / CALLS as i64;
    println!("bytes per call: {grown}, payloads {payload}, beyond payloads {}", grown - payload as i64);

    let (mut reads, mut folds, mut seq) = (Vec::new(), Vec::new(), 0);
    for _ in 0..9 {
        let start = Instant::now();
        let events = store.read(key, 0, usize::MAX).await.expect("a log");
        reads.push(start.elapsed());
        let start = Instant::now();
        seq = State::fold(&events).seq;
        folds.push(start.elapsed());
    }
    let (read, fold) = (p50(reads), p50(folds));
    let rate = |took: Duration| seq as f64 / took.as_secs_f64();
    println!("{seq} events: read {:.0}/s, fold {:.0}/s, both {:.0}/s", rate(read), rate(fold), rate(read + fold));

    let path = folder.path().join("many.db");
    let many = Arc::new(open(&world, &path));
    let mut leases = Vec::new();
    for _ in 0..SESSIONS {
        let key = world.session(&*many).await.expect("a session");
        leases.push((key, world.claim(&*many, key, 1).await.expect("a lease")));
    }
    let before = many.commits();
    let start = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for (key, lease) in leases {
        let (world, many, content) = (world.clone(), many.clone(), content.clone());
        tasks.spawn(async move {
            let mut appends = Vec::new();
            for _ in 0..ROUNDS {
                let call = world.work(key, &lease, world.inert_call(&content));
                appends.push((key, many.commit(call).await.expect("an append").events));
            }
            appends
        });
    }
    let mut rounds: Vec<Vec<(SessionKey, Vec<Event>)>> = (0..ROUNDS).map(|_| Vec::new()).collect();
    while let Some(appends) = tasks.join_next().await {
        for (round, append) in appends.expect("no panic").into_iter().enumerate() {
            rounds[round].push(append);
        }
    }
    let took = start.elapsed();
    let total = (SESSIONS * ROUNDS * 9) as f64;
    println!(
        "{SESSIONS} sessions, FULL: store {:.0} events/s in {} transactions",
        total / took.as_secs_f64(),
        many.commits() - before
    );
    let start = Instant::now();
    for round in &rounds {
        plain.execute_batch("BEGIN IMMEDIATE").expect("begin");
        for (key, events) in round {
            plain_append(&plain, *key, events);
        }
        plain.execute_batch("COMMIT").expect("commit");
    }
    println!(
        "{SESSIONS} sessions, FULL: plain {:.0} events/s, 64 appends a transaction",
        total / start.elapsed().as_secs_f64()
    );

    drop((store, many));
    let start = Instant::now();
    let store = open(&world, &path);
    let opened = start.elapsed();
    let listed = store.sessions(world.tenant, 50).await.expect("a list").len();
    let both = start.elapsed();
    drop(store);
    println!("open {opened:?}, with a list of {listed} sessions {both:?}, with closing {:?}", start.elapsed());
}
