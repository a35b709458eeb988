//! Someone changes the database behind our back; verification finds it and names the event (L74).

use crate::common;

use portcullis_base::{Digest, EventId, SessionId};
use portcullis_event::{Chain, ChainFault, Event, chain_hash, first_prev_hash, ledger_of};
use portcullis_store::testkit::World;
use portcullis_store::{Audit, Log as _, LogFault, Proof, SessionKey, deliver_outbox, verify_session, verify_tenant};
use portcullis_store_sqlite::SqliteStore;
use rusqlite::types::Value;
use rusqlite::{Connection, params};

/// A store with two sessions, the first of which has checkpoints at 10 and 19, and a knife.
struct Scene {
    world: World,
    store: SqliteStore,
    raw: Connection,
    key: SessionKey,
    /// The ledger's head as a careful person saved it.
    saved: (u64, Digest),
    _folder: tempfile::TempDir,
}

fn id(number: u128) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

impl Scene {
    async fn new() -> Self {
        let world = World::new(1);
        let (store, path, folder) = common::scratch(&world, Some(world.key.clone()));
        let key = world.session(&store).await.expect("a session");
        let lease = world.claim(&store, key, 1).await.expect("a lease");
        for _ in 0..2 {
            let mut commit = world.work(key, &lease, world.inert_call(&"content ".repeat(90)));
            commit.idle = true;
            store.commit(commit).await.expect("an append");
        }
        let other = world.session(&store).await.expect("a session");
        store.commit(world.input(other, "small")).await.expect("an append");
        deliver_outbox(&store).await.expect("deliveries");
        let audit = verify_tenant(&store, world.tenant, Some(&world.key), None).await.expect("an audit");
        assert!(audit.holds(), "{:?}", audit.faults);
        let saved = audit.ledger_head.expect("a ledger");
        let raw = Connection::open(path).expect("the file opens");
        Self { world, store, raw, key, saved, _folder: folder }
    }

    fn ledger(&self) -> SessionKey {
        SessionKey { tenant: self.world.tenant, session: ledger_of(self.world.tenant) }
    }

    async fn fault(&self) -> Option<LogFault> {
        self.fault_with(true).await
    }

    async fn fault_with(&self, key: bool) -> Option<LogFault> {
        let checkpoint_key = key.then_some(&self.world.key);
        verify_session(&self.store, self.key, checkpoint_key).await.expect("it can be read").fault
    }

    async fn audit(&self, key: bool, against: bool) -> Audit {
        let checkpoint_key = key.then_some(&self.world.key);
        let against = against.then_some(self.saved);
        verify_tenant(&self.store, self.world.tenant, checkpoint_key, against).await.expect("it can be read")
    }

    async fn events(&self, key: SessionKey) -> Vec<Event> {
        self.store.read(key, 0, 1_000).await.expect("a page")
    }

    fn cell(&self, column: &str, seq: u64) -> Value {
        self.raw
            .query_row(
                &format!("SELECT {column} FROM events WHERE session = ?1 AND seq = ?2"),
                params![id(self.key.session.as_u128()), seq],
                |row| row.get(0),
            )
            .expect("the event is there")
    }

    fn set(&self, column: &str, seq: u64, value: &Value) {
        let changed = self.raw.execute(
            &format!("UPDATE events SET {column} = ?3 WHERE session = ?1 AND seq = ?2"),
            params![id(self.key.session.as_u128()), seq, value],
        );
        assert_eq!(changed.expect("SQLite takes it"), 1);
    }

    /// Removes everything after `last` of a log, its checkpoints too, and sets the head back.
    async fn cut(&self, key: SessionKey, last: u64) {
        let hash = self.events(key).await[last as usize - 1].hash;
        let session = id(key.session.as_u128());
        for table in ["events", "checkpoints"] {
            let sql = format!("DELETE FROM {table} WHERE session = ?1 AND seq > ?2");
            self.raw.execute(&sql, params![session, last]).expect("rows go");
        }
        self.raw
            .execute(
                "UPDATE session_heads SET last_seq = ?2, last_hash = ?3, checkpoint_seq = 0 WHERE session = ?1",
                params![session, last, hash.as_bytes()],
            )
            .expect("the head goes back");
    }

    /// Writes a log anew from changed payloads, with a chain that verifies.
    async fn rehash(&self, key: SessionKey, change: impl Fn(&mut Event)) {
        let mut last = first_prev_hash(key.session);
        let session = id(key.session.as_u128());
        for mut event in self.events(key).await {
            change(&mut event);
            let payload = event.payload.clone().expect("nothing was erased");
            event.payload_hash = Digest::of(payload.as_bytes());
            event.prev_hash = last;
            event.hash = chain_hash(&event);
            last = event.hash;
            self.raw
                .execute(
                    "UPDATE events SET payload = ?3, payload_id = NULL, payload_hash = ?4, prev_hash = ?5, hash = ?6 \
                     WHERE session = ?1 AND seq = ?2",
                    params![
                        session,
                        event.seq,
                        &*payload,
                        event.payload_hash.as_bytes(),
                        event.prev_hash.as_bytes(),
                        event.hash.as_bytes()
                    ],
                )
                .expect("the event is rewritten");
        }
        self.raw
            .execute("UPDATE session_heads SET last_hash = ?2 WHERE session = ?1", params![session, last.as_bytes()])
            .expect("the head follows");
    }

    fn run(&self, sql: &str, session: SessionId) {
        self.raw.execute(sql, params![id(session.as_u128())]).expect("SQLite takes it");
    }
}

fn forge(event: &mut Event) {
    if event.seq == 3 {
        event.payload = Some("{\"forged\":true}".into());
    }
}

const COLUMNS: [&str; 15] = [
    "event_id",
    "type",
    "at",
    "actor",
    "worker_id",
    "fence",
    "wake_id",
    "turn_id",
    "session_thread_id",
    "append_id",
    "v",
    "payload",
    "payload_hash",
    "prev_hash",
    "hash",
];

/// The cell with one bit changed; an absent value becomes a present one.
fn flipped(value: &Value, bit: usize) -> Value {
    match value {
        Value::Null => Value::Blob(vec![1; 16]),
        Value::Integer(number) => Value::Integer(number ^ (1 << (bit % 40))),
        Value::Real(_) => unreachable!("no column holds a real number"),
        Value::Text(text) => {
            // Low bits of ASCII text keep it text; other flips are tried on blobs.
            let mut bytes = text.clone().into_bytes();
            let at = (bit / 3) % bytes.len();
            bytes[at] ^= 1 << (bit % 3);
            Value::Text(String::from_utf8(bytes).expect("it stays ASCII"))
        }
        Value::Blob(bytes) => {
            let mut bytes = bytes.clone();
            let at = (bit / 8) % bytes.len();
            bytes[at] ^= 1 << (bit % 8);
            Value::Blob(bytes)
        }
    }
}

#[tokio::test]
async fn l74_a_flipped_bit_in_any_column_is_found_and_the_event_named() {
    let scene = Scene::new().await;
    // An inline payload, an event with a fence, the last one before and after a checkpoint.
    for seq in [1, 3, 10, 19] {
        for column in COLUMNS {
            for bit in [0, 13, 101] {
                let honest = scene.cell(column, seq);
                // A long payload stands in its own table; the next test changes it there. An absent
                // number cannot become 16 bytes: that is the test after it.
                if honest == Value::Null && matches!(column, "payload" | "fence") {
                    continue;
                }
                scene.set(column, seq, &flipped(&honest, bit));
                let fault = scene.fault_with(false).await;
                let said = fault.map(|f| f.to_string()).unwrap_or_default();
                assert!(said.contains(&format!("event {seq} ")), "{column} of event {seq}, bit {bit}: `{said}`");
                let audit = scene.audit(false, false).await;
                assert!(!audit.holds(), "{column} of event {seq}, bit {bit}");
                scene.set(column, seq, &honest);
            }
        }
    }
    assert_eq!(scene.fault().await, None, "every change was taken back");
}

#[tokio::test]
async fn l74_a_changed_lost_or_unreadable_payload_row_is_found() {
    let scene = Scene::new().await;
    let Value::Integer(payload_id) = scene.cell("payload_id", 10) else { panic!("a long payload has a row") };
    let named = async |what: &str| {
        let said = scene.fault().await.map(|f| f.to_string()).unwrap_or_default();
        assert!(said.contains("event 10 "), "{what}: `{said}`");
    };
    let flip = "UPDATE payloads SET payload = replace(payload, 'content', 'contemt') WHERE payload_id = ?1";
    scene.raw.execute(flip, [payload_id]).expect("SQLite takes it");
    named("one bit").await;
    let broken = "UPDATE payloads SET payload = CAST(x'80ff' AS TEXT) WHERE payload_id = ?1";
    scene.raw.execute(broken, [payload_id]).expect("SQLite takes it");
    named("no text").await;
    scene.raw.execute("DELETE FROM payloads WHERE payload_id = ?1", [payload_id]).expect("SQLite takes it");
    named("a lost payload does not pass for an erased one").await;
}

#[tokio::test]
async fn l74_a_value_of_another_shape_is_found_and_the_event_named() {
    let scene = Scene::new().await;
    for (column, value) in [
        ("event_id", Value::Blob(vec![1; 15])),
        ("hash", Value::Blob(Vec::new())),
        ("fence", Value::Blob(vec![1; 16])),
        ("at", Value::Text("yesterday".to_owned())),
        ("actor", Value::Blob(vec![0xff])),
        ("v", Value::Integer(-1)),
    ] {
        let honest = scene.cell(column, 5);
        scene.set(column, 5, &value);
        let fault = scene.fault().await;
        assert!(matches!(fault, Some(LogFault::Unreadable { seq: 5, .. })), "{column}: {fault:?}");
        scene.set(column, 5, &honest);
    }
}

#[tokio::test]
async fn l74_reordered_missing_and_surplus_events_are_found() {
    let scene = Scene::new().await;
    let session = scene.key.session;
    let swap = |a: u64, b: u64| {
        for (from, to) in [(a, 900), (b, a), (900, b)] {
            scene.set("seq", from, &Value::Integer(to as i64));
        }
    };
    let ids: Vec<EventId> = scene.events(scene.key).await.iter().map(|e| e.id).collect();
    swap(4, 5);
    let fault = scene.fault().await;
    let wanted =
        LogFault::Chain { session, event: Some((4, ids[4])), fault: ChainFault::Unlinked { seq: 4, id: ids[4] } };
    assert_eq!(fault, Some(wanted), "event 5 stands where 4 was");
    swap(4, 5);

    scene.set("seq", 7, &Value::Integer(900));
    let fault = scene.fault().await;
    assert!(matches!(fault, Some(LogFault::Chain { fault: ChainFault::Gap { seq: 7, found: 8 }, .. })), "{fault:?}");
    scene.set("seq", 900, &Value::Integer(7));

    scene.run("DELETE FROM events WHERE session = ?1 AND seq = 19", session);
    let fault = scene.fault().await;
    assert!(
        matches!(fault, Some(LogFault::Chain { fault: ChainFault::Tail { head: 19, found: 18 }, .. })),
        "the head row stands: {fault:?}"
    );
    scene.run("UPDATE session_heads SET last_seq = 17 WHERE session = ?1", session);
    let fault = scene.fault().await;
    assert!(
        matches!(fault, Some(LogFault::Chain { fault: ChainFault::Tail { head: 17, found: 18 }, .. })),
        "an event behind the head: {fault:?}"
    );
    scene.run("DELETE FROM session_heads WHERE session = ?1", session);
    assert!(scene.fault().await.is_some(), "events without a head");
}

#[tokio::test]
async fn l74_a_tail_dropped_with_its_head_and_checkpoints_is_found() {
    let scene = Scene::new().await;
    scene.cut(scene.key, 12).await;
    let alone = verify_session(&scene.store, scene.key, Some(&scene.world.key)).await.expect("it can be read");
    assert_eq!((alone.fault, alone.proof), (None, Proof::ProvedUpTo(10)), "the log alone cannot know");
    let audit = scene.audit(false, false).await;
    let ledger_seq = audit.ledger_head.map_or(0, |(seq, _)| seq) - 1;
    let ends = LogFault::EndsEarly { session: scene.key.session, seq: 19, last: 12, ledger_seq };
    assert_eq!(audit.faults, [ends], "the ledger knows");

    // The ledger's tail goes too: then only what was saved outside knows.
    scene.cut(scene.ledger(), 2).await;
    let session = scene.key.session;
    scene.run("DELETE FROM checkpoints WHERE session <> ?1", session);
    let (audit, against) = (scene.audit(true, false).await, scene.audit(true, true).await);
    let known = |f: &LogFault| matches!(f, LogFault::NotInLedger { .. } | LogFault::Unproved { .. });
    assert!(audit.faults.iter().all(known), "{:?}", audit.faults);
    let behind = LogFault::BehindSavedHead { seq: scene.saved.0, last: 2 };
    assert!(against.faults.contains(&behind), "{:?}", against.faults);
}

#[tokio::test]
async fn l74_a_deleted_session_is_found() {
    let scene = Scene::new().await;
    let ledger = scene.events(scene.ledger()).await;
    for table in ["events", "checkpoints", "session_heads", "sessions", "intents", "asks"] {
        scene.run(&format!("DELETE FROM {table} WHERE session = ?1"), scene.key.session);
    }
    let gone = LogFault::Deleted { session: scene.key.session, seq: 1, id: ledger[0].id };
    assert_eq!(scene.audit(true, false).await.faults, std::slice::from_ref(&gone));
    assert!(gone.to_string().contains(&ledger[0].id.to_string()), "{gone}");

    // Someone who also rewrites the ledger is found against a saved head, and only then.
    scene.run("DELETE FROM checkpoints WHERE session = ?1", scene.ledger().session);
    let kept = ledger.last().expect("entries").seq;
    scene.rehash(scene.ledger(), |event| event.payload = Some("{}".into())).await;
    let against = scene.audit(true, true).await;
    let saved = LogFault::NotTheSavedHead { seq: kept, id: ledger.last().expect("entries").id };
    assert!(against.faults.contains(&saved), "{:?}", against.faults);
}

#[tokio::test]
async fn l74_a_wholly_rehashed_log_is_found_by_its_checkpoints() {
    let scene = Scene::new().await;
    let honest = scene.events(scene.key).await;
    scene.rehash(scene.key, forge).await;
    let mut chain = Chain::start(scene.key.session);
    for event in scene.events(scene.key).await {
        chain.step(&event).expect("the forger's chain verifies");
    }
    let fault = scene.fault_with(false).await;
    let wanted = LogFault::Chain {
        session: scene.key.session,
        event: Some((10, honest[9].id)),
        fault: ChainFault::CheckpointHash { seq: 10 },
    };
    assert_eq!(fault, Some(wanted), "a checkpoint row still names the old hash, key or not");

    // The forger fixes the hashes of the checkpoints; without the key the MACs cannot follow.
    scene.run(
        "UPDATE checkpoints SET hash = (SELECT hash FROM events e WHERE e.session = checkpoints.session \
         AND e.seq = checkpoints.seq) WHERE session = ?1",
        scene.key.session,
    );
    let fault = scene.fault_with(true).await;
    assert!(matches!(fault, Some(LogFault::Chain { fault: ChainFault::CheckpointMac { seq: 10 }, .. })), "{fault:?}");
    assert_eq!(scene.fault_with(false).await, None, "without the key it is consistent");
    let audit = scene.audit(false, false).await;
    let recorded =
        audit.faults.iter().any(|f| matches!(f, LogFault::NotAsRecorded { seq: 10, id, .. } if *id == honest[9].id));
    assert!(recorded, "the ledger knows better: {:?}", audit.faults);
}

#[tokio::test]
async fn l74_a_wholly_rehashed_store_is_found_with_the_key_and_without_it_only_against_a_saved_head() {
    let scene = Scene::new().await;
    scene.rehash(scene.key, forge).await;
    scene.run("DELETE FROM checkpoints WHERE session = ?1", scene.key.session);
    let alone = verify_session(&scene.store, scene.key, Some(&scene.world.key)).await.expect("it can be read");
    assert_eq!((alone.fault, alone.proof), (None, Proof::Consistent), "consistent, and not proved");
    assert!(!scene.audit(true, false).await.holds(), "the ledger knows");

    // Everything is written anew, the ledger included, with statements that fit.
    let hashes: Vec<(u64, Digest)> = scene.events(scene.key).await.iter().map(|e| (e.seq, e.hash)).collect();
    let session = scene.key.session.to_string();
    scene
        .rehash(scene.ledger(), |event| {
            let mut fact: serde_json::Value =
                serde_json::from_str(event.payload.as_deref().unwrap_or_default()).expect("a ledger entry");
            if fact["session_id"] == session.as_str() {
                let seq = fact["seq"].as_u64().unwrap_or(1);
                let field = if event.kind.as_str() == "ledger.checkpoint" { "hash" } else { "first_hash" };
                let hash = hashes.iter().find(|(s, _)| *s == seq).expect("it names an event").1;
                fact[field] = serde_json::json!(hash);
                event.payload = Some(fact.to_string().into());
            }
        })
        .await;
    scene.run("DELETE FROM checkpoints WHERE session = ?1", scene.ledger().session);
    let keyed = scene.audit(true, false).await;
    let unproved = |f: &LogFault| matches!(f, LogFault::Unproved { session, .. } if *session == scene.ledger().session);
    assert!(keyed.faults.iter().any(unproved), "with the key its end must be proved: {:?}", keyed.faults);
    let blind = scene.audit(false, false).await;
    assert!(blind.holds(), "{:?}", blind.faults);
    assert!(blind.logs.iter().all(|log| log.proof == Proof::Consistent), "it claims no more: {:?}", blind.logs);
    let against = scene.audit(false, true).await;
    let faults = against.faults;
    assert!(
        matches!(faults.as_slice(), [LogFault::NotTheSavedHead { seq, .. }] if *seq == scene.saved.0),
        "{faults:?}"
    );
}

#[tokio::test]
async fn l74_a_sound_store_is_proved_with_the_key_and_consistent_without() {
    let scene = Scene::new().await;
    let proof = |audit: &Audit, session| audit.logs.iter().find(|log| log.session == session).map(|log| log.proof);
    let with = scene.audit(true, true).await;
    assert!(with.holds(), "{:?}", with.faults);
    assert_eq!(proof(&with, scene.key.session), Some(Proof::ProvedUpTo(19)));
    assert_eq!(proof(&with, scene.ledger().session), Some(Proof::ProvedUpTo(scene.saved.0)));
    let without = scene.audit(false, true).await;
    assert!(without.holds());
    assert_eq!(proof(&without, scene.key.session), Some(Proof::Consistent));

    let other = portcullis_event::CheckpointKey::from_bytes([8; 32]);
    let wrong = verify_session(&scene.store, scene.key, Some(&other)).await.expect("it can be read");
    assert!(matches!(wrong.fault, Some(LogFault::Chain { fault: ChainFault::CheckpointMac { seq: 10 }, .. })));
    // What waits in the outbox is delivered first, and an older saved head still holds.
    scene.world.session(&scene.store).await.expect("a session");
    let later = scene.audit(true, true).await;
    assert!(later.holds(), "{:?}", later.faults);
    assert_eq!(later.ledger_head.map(|(seq, _)| seq), Some(scene.saved.0 + 1));
}
