//! F9, and the torn page of F8: the power fails, and of what was written since the last sync any subset of the disk's
//! sectors is there.
//!
//! The files are looked at after every acknowledged append. Between two of these looks SQLite wrote one append into the
//! log, synced it, and at times moved the log into the database. So there are two kinds of crash: somewhere in the log's
//! writes, with the database as it was; and, with the log synced, somewhere in the database's writes.

use crate::common;

use std::fs;
use std::path::Path;

use portcullis_base::limits::APPEND_MOST;
use portcullis_store::{Log as _, SessionKey, verify_tenant};
use portcullis_store_sqlite::SqliteStore;
use portcullis_store_testkit::World;
use portcullis_store_testkit::conformance::assert_sound;

/// What a disk writes at once.
const SECTOR: usize = 512;
/// Enough for the log to be moved into the database several times.
const APPENDS: u64 = 60;
/// Crashes tried between two looks.
const CRASHES: usize = 2;

/// The two files that survive a crash.
#[derive(Clone)]
struct Disk {
    database: Vec<u8>,
    log: Vec<u8>,
}

impl Disk {
    fn look(path: &Path) -> Self {
        let read = |path: &Path| fs::read(path).expect("it is there");
        Self { database: read(path), log: read(&path.with_extension("db-wal")) }
    }

    fn put(&self, path: &Path) {
        fs::write(path, &self.database).expect("written");
        fs::write(path.with_extension("db-wal"), &self.log).expect("written");
        // That of another crash at this name would prove that something is missing.
        let _ = fs::remove_file(path.with_extension("db-mark"));
    }
}

/// A little generator, so that a failure can be repeated.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }
}

/// `old` on its way to `new`: each sector that differs is there, is not, or is garbage where nothing was before.
fn torn(old: &[u8], new: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut found = old.to_vec();
    // The length is of the file system's own records, which may be ahead of the data.
    let len = if dice.roll().is_multiple_of(2) { new.len() } else { old.len() };
    found.resize(len.max(old.len().min(new.len())), 0);
    for (at, sector) in new.chunks(SECTOR).enumerate() {
        let at = at * SECTOR;
        if found.len() < at + sector.len() || found[at..at + sector.len()] == *sector {
            continue;
        }
        let place = &mut found[at..at + sector.len()];
        match dice.roll() % 4 {
            0 => {}
            1 if at >= old.len() => place.iter_mut().for_each(|byte| *byte = dice.roll().to_le_bytes()[0]),
            _ => place.copy_from_slice(sector),
        }
    }
    found
}

fn open(world: &World, path: &Path) -> SqliteStore {
    SqliteStore::open(common::synced(path, world)).expect("it opens, whatever the crash left")
}

/// Where the last frame of a log begins: the last whose salts are those of the log's beginning. What stands after it is left
/// from before the log began anew.
fn last_frame(log: &[u8]) -> usize {
    const FRAME: usize = 24 + 4_096;
    let live = log[32..].chunks_exact(FRAME).take_while(|frame| frame[8..16] == log[16..24]).count();
    32 + (live - 1) * FRAME
}

/// Everything acknowledged is there, an append is there whole or not at all, and the log proves itself.
async fn check(world: &World, path: &Path, key: SessionKey, acknowledged: u64, what: &str) {
    let store = open(world, path);
    let last = store.head(key).await.expect("a head").expect("the session").last_seq;
    assert!(last == acknowledged || last == acknowledged + 1, "{what}: {acknowledged} acknowledged, {last} found");
    assert_sound(&store, key).await;
    let audit = verify_tenant(&store, world.tenant, Some(&world.key), None).await.expect("an audit");
    assert!(audit.holds(), "{what}: {:?}", audit.faults);
    store.commit(world.input(key, "after the crash")).await.expect("it goes on");
}

#[tokio::test]
async fn f08_f09_with_any_subset_of_unsynced_sectors_nothing_acknowledged_is_lost() {
    let world = World::new(9);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = open(&world, &path);
    let key = world.session(&store).await.expect("a session");
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut before = Disk::look(&path);
    let (mut acknowledged, mut moved, mut restarted) = (1, 0, 0);
    for n in 0..APPENDS {
        // Noise, which packing does not make shorter.
        let text: String = (0..1 + dice.roll() % 12_000).map(|_| format!("{:016x}", dice.roll())).collect();
        assert!(text.len() < APPEND_MOST);
        store.commit(world.input(key, &text)).await.expect("an append");
        let after = Disk::look(&path);
        for crash in 0..CRASHES {
            let what = format!("append {n}, crash {crash}");
            let copy = folder.path().join(format!("crash-{n}-{crash}.db"));
            let log = torn(&before.log, &after.log, &mut dice);
            Disk { database: before.database.clone(), log }.put(&copy);
            check(&world, &copy, key, acknowledged, &what).await;
            if before.database != after.database {
                let database = torn(&before.database, &after.database, &mut dice);
                Disk { database, log: after.log.clone() }.put(&copy);
                fs::remove_file(copy.with_extension("db-shm")).expect("memory does not survive");
                check(&world, &copy, key, acknowledged + 1, &what).await;
                moved += 1;
            }
            for suffix in ["db", "db-wal", "db-shm"] {
                fs::remove_file(copy.with_extension(suffix)).expect("tidy");
            }
        }
        // The salt of a log's beginning changes when it begins anew.
        restarted += usize::from(before.log.len() > 32 && before.log[..32] != after.log[..32]);
        acknowledged += 1;
        before = after;
    }
    assert!(moved > 1 && restarted > 0, "the log was moved and began anew: {moved} {restarted}");
    // The check has teeth: with less than was synced, something acknowledged is missing.
    let copy = folder.path().join("cut.db");
    let log = before.log[..last_frame(&before.log)].to_vec();
    Disk { database: before.database, log }.put(&copy);
    let last = open(&world, &copy).head(key).await.expect("a head").map_or(0, |head| head.last_seq);
    assert!(last < acknowledged, "{last} of {acknowledged}");
}
