//! Someone changes the database behind our back; verification finds it and names the event (L74).

use crate::common;

use portcullis_base::{Digest, EventId, SessionId};
use portcullis_event::{Chain, ChainFault, Event, chain_hash, first_prev_hash, ledger_of};
use portcullis_store::{Audit, Log as _, LogFault, Proof, SessionKey, deliver_outbox, verify_session, verify_tenant};
use portcullis_store_sqlite::SqliteStore;
use portcullis_store_testkit::World;
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

/// The number of the log of `?1`.
const LOG: &str = "(SELECT log FROM logs WHERE session = ?1)";

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
                &format!("SELECT {column} FROM events JOIN runs USING (run) WHERE events.log = {LOG} AND seq = ?2"),
                params![id(self.key.session.as_u128()), seq],
                |row| row.get(0),
            )
            .expect("the event is there")
    }

    fn set(&self, column: &str, seq: u64, value: &Value) {
        let of_event = format!("events SET {column} = ?3 WHERE log = {LOG} AND seq = ?2");
        let of_run =
            format!("runs SET {column} = ?3 WHERE run = (SELECT run FROM events WHERE log = {LOG} AND seq = ?2)");
        let sql = format!("UPDATE {}", if OF_RUNS.contains(&column) { of_run } else { of_event });
        let changed = self.raw.execute(&sql, params![id(self.key.session.as_u128()), seq, value]);
        assert_eq!(changed.expect("SQLite takes it"), 1);
    }

    /// The events of the run that an event belongs to.
    fn run_of(&self, seq: u64) -> std::ops::RangeInclusive<u64> {
        let end = |which: &str| match self
            .cell(&format!("(SELECT {which}(e.seq) FROM events e WHERE e.run = runs.run)"), seq)
        {
            Value::Integer(seq) => u64::try_from(seq).expect("a seq"),
            other => panic!("a seq is a number: {other:?}"),
        };
        end("min")..=end("max")
    }

    /// Removes everything after `last` of a log, its checkpoints too, and sets the head back.
    async fn cut(&self, key: SessionKey, last: u64) {
        let hash = self.events(key).await[last as usize - 1].hash;
        let session = id(key.session.as_u128());
        for table in ["events", "checkpoints"] {
            let of = if table == "events" { format!("log = {LOG}") } else { "session = ?1".to_owned() };
            let sql = format!("DELETE FROM {table} WHERE {of} AND seq > ?2");
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
            // Into a run of its own.
            self.raw
                .execute(
                    &format!(
                        "INSERT INTO runs (log, append_id, actor, worker_id, fence, wake_id, turn_id, session_thread_id, \
                         payloads) SELECT log, append_id, actor, worker_id, fence, wake_id, turn_id, session_thread_id, ?3 \
                         FROM runs WHERE run = (SELECT run FROM events WHERE log = {LOG} AND seq = ?2)"
                    ),
                    params![session, event.seq, &*payload],
                )
                .expect("a run");
            self.raw
                .execute(
                    &format!(
                        "UPDATE events SET run = ?3, start = 0, bytes = ?4, hash = ?5 WHERE log = {LOG} AND seq = ?2"
                    ),
                    params![session, event.seq, self.raw.last_insert_rowid(), payload.len(), event.hash.as_bytes()],
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

/// Columns of an event's own row.
const OF_EVENTS: [&str; 8] = ["event_id", "type", "at", "v", "run", "start", "bytes", "hash"];
/// Columns that the events of a run share.
const OF_RUNS: [&str; 8] =
    ["append_id", "actor", "worker_id", "fence", "wake_id", "turn_id", "session_thread_id", "payloads"];

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
    // A short run, an event with a fence, the last one before and after a checkpoint.
    for seq in [1, 3, 10, 19] {
        for column in OF_EVENTS.iter().chain(&OF_RUNS) {
            for bit in [0, 13, 101] {
                let honest = scene.cell(column, seq);
                // An absent number cannot become 16 bytes: that is the test after the next.
                if honest == Value::Null && *column == "fence" {
                    continue;
                }
                scene.set(column, seq, &flipped(&honest, bit));
                let named = scene.fault_with(false).await.map(|fault| fault.to_string()).unwrap_or_default();
                // What events share is wrong with the first of them already; payloads, from where they differ.
                let suspects = if OF_RUNS.contains(column) { scene.run_of(seq) } else { seq..=seq };
                let found = suspects.into_iter().any(|seq| named.contains(&format!("event {seq} ")));
                assert!(found, "{column} of event {seq}, bit {bit}: `{named}`");
                let audit = scene.audit(false, false).await;
                assert!(!audit.holds(), "{column} of event {seq}, bit {bit}");
                scene.set(column, seq, &honest);
            }
        }
    }
    assert_eq!(scene.fault().await, None, "every change was taken back");
}

#[tokio::test]
async fn l74_a_changed_lost_or_unreadable_run_is_found() {
    let scene = Scene::new().await;
    let Value::Blob(packed) = scene.cell("payloads", 10) else { panic!("a long run is packed") };
    let first = *scene.run_of(10).start();
    let named = async |seq: u64, what: &str| {
        let said = scene.fault().await.map(|f| f.to_string()).unwrap_or_default();
        assert!(said.contains(&format!("event {seq} ")), "{what}: `{said}`");
    };
    // Packed anew, so that nothing is wrong but one letter of one payload.
    let words = include_bytes!("../../src/words.txt");
    let size = scene.run_of(10).map(|seq| match scene.cell("bytes", seq) {
        Value::Integer(bytes) => usize::try_from(bytes).expect("a length"),
        other => panic!("{other:?}"),
    });
    let all = lz4_flex::block::decompress_with_dict(&packed[4..], size.sum(), words).expect("ours");
    let all = String::from_utf8(all).expect("text");
    let forged = lz4_flex::block::compress_prepend_size(all.replacen("content", "contemt", 1).as_bytes());
    scene.set("payloads", 10, &Value::Blob(forged));
    named(10, "one letter").await;
    let stretched = [&u32::MAX.to_le_bytes()[..], &packed[4..]].concat();
    for (what, value) in [
        ("no text", Value::Text(all.replace("content", "\u{fffd}"))),
        ("not packed", Value::Blob(vec![1, 2, 3])),
        ("a size that no run has", Value::Blob(stretched)),
        ("a number", Value::Integer(7)),
    ] {
        scene.set("payloads", 10, &value);
        let said = scene.fault().await.map(|f| f.to_string()).unwrap_or_default();
        assert!(scene.run_of(10).any(|seq| said.contains(&format!("event {seq} "))), "{what}: `{said}`");
    }
    scene.set("payloads", 10, &Value::Null);
    named(first, "taken out without what it hashed to").await;
    scene.run("DELETE FROM runs WHERE run = (SELECT run FROM events WHERE log = (SELECT log FROM logs WHERE session = ?1) AND seq = 10)", scene.key.session);
    named(first, "a lost run does not pass for an erased one").await;
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
        let first = if OF_RUNS.contains(&column) { *scene.run_of(5).start() } else { 5 };
        scene.set(column, 5, &value);
        let fault = scene.fault().await;
        assert!(matches!(fault, Some(LogFault::Unreadable { seq, .. }) if seq == first), "{column}: {fault:?}");
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
    let changed =
        LogFault::Chain { session, event: Some((4, ids[4])), fault: ChainFault::Envelope { seq: 4, id: ids[4] } };
    assert_eq!(fault, Some(changed), "event 5 stands where 4 was");
    swap(4, 5);

    scene.set("seq", 7, &Value::Integer(900));
    let fault = scene.fault().await;
    assert!(matches!(fault, Some(LogFault::Chain { fault: ChainFault::Gap { seq: 7, found: 8 }, .. })), "{fault:?}");
    scene.set("seq", 900, &Value::Integer(7));

    scene.run(&format!("DELETE FROM events WHERE log = {LOG} AND seq = 19"), session);
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
    scene.run(&format!("DELETE FROM events WHERE log = {LOG}"), scene.key.session);
    for table in ["checkpoints", "session_heads", "sessions", "intents", "asks"] {
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
        &format!("UPDATE checkpoints SET hash = (SELECT hash FROM events e WHERE e.log = {LOG} AND e.seq = checkpoints.seq) WHERE session = ?1"),
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

/// Whoever may write the database may write what lists show; the log says otherwise (S15).
#[tokio::test(flavor = "multi_thread")]
async fn s15_changed_facts_of_a_session_are_found() {
    for change in [
        "UPDATE session_facts SET summary = 'all went well' WHERE session = ?1",
        "UPDATE session_facts SET status = 'terminated' WHERE session = ?1",
        "UPDATE session_facts SET tool_calls = 0 WHERE session = ?1",
        "DELETE FROM session_facts WHERE session = ?1",
        "INSERT INTO unknown_outcomes VALUES ((SELECT tenant FROM sessions WHERE session = ?1), ?1, ?1, ?1, 0, 1)",
    ] {
        let scene = Scene::new().await;
        scene.raw.execute(change, params![id(scene.key.session.as_u128())]).expect("someone changes it");
        let faults = scene.audit(true, false).await.faults;
        let is_row = |fault: &LogFault| matches!(fault, LogFault::Row { session, .. } if *session == scene.key.session);
        assert!(faults.len() == 1 && faults.iter().all(is_row), "{change}: {faults:?}");
    }
}
