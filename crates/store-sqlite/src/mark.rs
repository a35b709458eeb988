//! The mark: a small file beside the database that names the newest event of the sessions that were written last.
//!
//! A write-ahead log that is damaged loses its last commits, and SQLite then opens the database as it was before them:
//! whole, and older. So does a copy of an older database. Nothing inside the file can tell. The mark can: it is written
//! after each commit, without a sync of its own, so that it never names what is not durable, and at most the loss of both
//! at once goes unseen. It is a witness against accidents, not against a person who may write the folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use portcullis_base::{Digest, SessionId, TenantId};
use portcullis_store::SessionKey;

/// How many sessions it names: those of one process at work, twice over, in a file of one page.
const SESSIONS: usize = 40;
const MAGIC: &[u8; 16] = b"portcullis mark1";
/// `run`, tenant, session, seq, hash, and a check of these.
const ENTRY: usize = 8 + 16 + 16 + 8 + 32 + CHECK;
const CHECK: usize = 8;

/// The newest event of a session, and in which run it stands: runs are counted up by every append of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NewestEvent {
    pub(crate) run: i64,
    pub(crate) seq: u64,
    pub(crate) hash: Digest,
}

/// The newest event of each session.
type NewestEvents = BTreeMap<SessionKey, NewestEvent>;

/// The newest events that this process knows of.
#[derive(Debug, Default)]
struct MarkState {
    named: NewestEvents,
    /// Sessions whose lost end is being settled: the file still names what is lost.
    aside: BTreeSet<SessionKey>,
}

/// What this process knows of the newest events, and the file that keeps it.
#[derive(Debug)]
pub(crate) struct Mark {
    path: PathBuf,
    known: Mutex<MarkState>,
}

impl Mark {
    /// The mark beside a database. One that is missing or unreadable names nothing.
    pub(crate) fn beside(database: &Path) -> Self {
        let mut name = database.as_os_str().to_owned();
        name.push("-mark");
        let path = PathBuf::from(name);
        let named = File::open(&path).and_then(|file| read(&file)).unwrap_or_default();
        Self { path, known: Mutex::new(MarkState { named, aside: BTreeSet::new() }) }
    }

    fn known(&self) -> MutexGuard<'_, MarkState> {
        // Every change of it is one insertion or removal.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of a session.
    pub(crate) fn of(&self, key: SessionKey) -> Option<NewestEvent> {
        self.known().named.get(&key).copied()
    }

    /// Everything that is named.
    pub(crate) fn all(&self) -> Vec<(SessionKey, NewestEvent)> {
        self.known().named.iter().map(|(key, newest)| (*key, *newest)).collect()
    }

    /// Names what was just made durable. What other processes named stays. Two that write at the same moment may leave the
    /// older one of both; the next commit of either mends that. A mark that cannot be written is an older mark: the store
    /// itself says what is wrong with its disk.
    pub(crate) fn note(&self, written: &[(SessionKey, NewestEvent)]) {
        if written.is_empty() {
            return;
        }
        let mut known = self.known();
        let MarkState { named, aside } = &mut *known;
        named.extend(written.iter().filter(|(key, _)| !aside.contains(key)).copied());
        let _ = self.write(|theirs| {
            let mut kept = NewestEvents::new();
            for (key, newest) in theirs {
                if aside.contains(&key) {
                    kept.insert(key, newest);
                } else if named.get(&key).is_none_or(|ours| ours.run < newest.run) {
                    named.insert(key, newest);
                }
            }
            forget_oldest(named, SESSIONS - kept.len());
            kept.extend(named.iter());
            kept
        });
        forget_oldest(named, SESSIONS);
    }

    /// Stops naming these.
    pub(crate) fn forget(&self, keys: &[SessionKey]) -> io::Result<()> {
        self.write(|mut theirs| {
            theirs.retain(|key, _| !keys.contains(key));
            theirs
        })?;
        self.known().aside.clear();
        Ok(())
    }

    /// Stops holding these to what is named, in this process only and until they are forgotten.
    pub(crate) fn set_aside(&self, keys: &[SessionKey]) {
        let mut known = self.known();
        known.named.retain(|key, _| !keys.contains(key));
        known.aside.extend(keys);
    }

    fn write(&self, change: impl FnOnce(NewestEvents) -> NewestEvents) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(&self.path)?;
        let named = change(read(&file).unwrap_or_default());
        let mut bytes = MAGIC.to_vec();
        for (key, newest) in &named {
            bytes.extend_from_slice(&entry(*key, *newest));
        }
        // The rest of the page names nothing: a shorter list leaves no end of a longer one.
        bytes.resize(MAGIC.len() + SESSIONS * ENTRY, 0);
        file.write_all_at(&bytes, 0)
    }
}

fn forget_oldest(named: &mut NewestEvents, most: usize) {
    while named.len() > most {
        let oldest = named.iter().min_by_key(|(_, newest)| newest.run).map(|(key, _)| *key);
        oldest.and_then(|key| named.remove(&key));
    }
}

fn entry(key: SessionKey, newest: NewestEvent) -> [u8; ENTRY] {
    let mut bytes = Vec::with_capacity(ENTRY);
    bytes.extend_from_slice(&newest.run.to_be_bytes());
    bytes.extend_from_slice(&key.tenant.as_u128().to_be_bytes());
    bytes.extend_from_slice(&key.session.as_u128().to_be_bytes());
    bytes.extend_from_slice(&newest.seq.to_be_bytes());
    bytes.extend_from_slice(newest.hash.as_bytes());
    bytes.extend_from_slice(&check(&bytes));
    std::array::from_fn(|at| bytes[at])
}

/// FNV-1a: enough to know a torn entry, and cheap, because every commit writes all of them.
fn check(fields: &[u8]) -> [u8; CHECK] {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    fields.iter().fold(0xcbf2_9ce4_8422_2325, step).to_be_bytes()
}

/// What a file names. An entry that was torn names nothing.
fn read(file: &File) -> io::Result<NewestEvents> {
    let mut bytes = [0; MAGIC.len() + SESSIONS * ENTRY];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], filled as u64)? {
            0 => break,
            n => filled += n,
        }
    }
    let Some(entries) = bytes[..filled].strip_prefix(MAGIC) else { return Ok(NewestEvents::new()) };
    Ok(entries.chunks_exact(ENTRY).filter_map(parsed).collect())
}

fn parsed(entry: &[u8]) -> Option<(SessionKey, NewestEvent)> {
    let (fields, written) = entry.split_at_checked(ENTRY - CHECK)?;
    if check(fields) != written {
        return None;
    }
    let (run, fields) = fields.split_first_chunk::<8>()?;
    let (tenant, fields) = fields.split_first_chunk::<16>()?;
    let (session, fields) = fields.split_first_chunk::<16>()?;
    let (seq, hash) = fields.split_first_chunk::<8>()?;
    let key = SessionKey {
        tenant: TenantId::from_u128(u128::from_be_bytes(*tenant)),
        session: SessionId::from_u128(u128::from_be_bytes(*session)),
    };
    let hash = Digest::from_bytes(*hash.first_chunk::<32>()?);
    Some((key, NewestEvent { run: i64::from_be_bytes(*run), seq: u64::from_be_bytes(*seq), hash }))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    fn key(n: u128) -> SessionKey {
        SessionKey { tenant: TenantId::from_u128(1), session: SessionId::from_u128(n) }
    }

    fn at(run: i64) -> NewestEvent {
        NewestEvent { run, seq: run as u64 * 2, hash: Digest::of(&run.to_be_bytes()) }
    }

    #[test]
    fn what_is_noted_is_read_again_and_the_newest_sessions_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let database = folder.path().join("store.db");
        let mark = Mark::beside(&database);
        for n in 1..=100 {
            mark.note(&[(key(n as u128), at(n))]);
        }
        let again = Mark::beside(&database);
        let named: Vec<_> = (61..=100).map(|n| (key(n as u128), at(n))).collect();
        assert_eq!(again.all(), named);
        let found = fs::metadata(folder.path().join("store.db-mark")).expect("it is there");
        assert!(found.len() <= 4_096 && found.mode() & 0o777 == 0o600, "{found:?}");
    }

    #[test]
    fn two_processes_name_what_both_wrote_and_the_newer_of_one_session() {
        let folder = tempfile::tempdir().expect("a folder");
        let database = folder.path().join("store.db");
        let (one, two) = (Mark::beside(&database), Mark::beside(&database));
        one.note(&[(key(1), at(1))]);
        two.note(&[(key(2), at(2)), (key(3), at(3))]);
        one.note(&[(key(3), at(4))]);
        two.note(&[(key(2), at(5))]);
        assert_eq!(Mark::beside(&database).all(), [(key(1), at(1)), (key(2), at(5)), (key(3), at(4))]);
    }

    #[test]
    fn a_torn_or_foreign_mark_names_nothing_false() {
        let folder = tempfile::tempdir().expect("a folder");
        let (database, path) = (folder.path().join("store.db"), folder.path().join("store.db-mark"));
        Mark::beside(&database).note(&[(key(1), at(1)), (key(2), at(2))]);
        let whole = fs::read(&path).expect("the mark");
        for at_byte in 0..MAGIC.len() + 2 * ENTRY {
            let mut torn = whole.clone();
            torn[at_byte] ^= 0x40;
            fs::write(&path, torn).expect("written");
            let named = Mark::beside(&database).all();
            assert!(named.iter().all(|(k, n)| [(key(1), at(1)), (key(2), at(2))].contains(&(*k, *n))), "{at_byte}");
            assert!(named.len() < 2, "{at_byte}");
        }
        fs::write(&path, &whole[..MAGIC.len() + ENTRY + 7]).expect("written");
        assert_eq!(Mark::beside(&database).all(), [(key(1), at(1))]);
    }

    #[test]
    fn what_is_forgotten_stays_forgotten() {
        let folder = tempfile::tempdir().expect("a folder");
        let database = folder.path().join("store.db");
        let mark = Mark::beside(&database);
        mark.note(&[(key(1), at(9)), (key(2), at(2))]);
        mark.set_aside(&[key(1)]);
        mark.note(&[(key(1), at(3)), (key(2), at(4))]);
        assert_eq!(mark.of(key(1)), None, "its process may write to it");
        assert_eq!(Mark::beside(&database).of(key(1)), Some(at(9)), "and every other one knows what is lost");
        mark.forget(&[key(1)]).expect("written");
        assert_eq!((mark.of(key(1)), Mark::beside(&database).all().len()), (None, 1));
        // Its next event has a smaller number than the one that was lost.
        mark.note(&[(key(1), at(5))]);
        assert_eq!(Mark::beside(&database).of(key(1)), Some(at(5)));
    }
}
