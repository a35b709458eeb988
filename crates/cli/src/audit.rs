//! `audit`: proving that logs are whole and unaltered (store §2), and taking the proof elsewhere.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use portcullis_base::{Clock as _, Digest, SessionId, SystemClock};
use portcullis_event::{LOCAL_TENANT, ledger_of, operator_log_of};
use portcullis_store::{
    Audit as Walk, HeldArtifacts, Log as _, LogFault, Proof, StoreError, VerifiedLog, deliver_outbox, verify_artifacts,
    verify_session_seen, verify_tenant_seen,
};
use portcullis_store_sqlite::LostEnd;
use serde_json::{Value, json};

use portcullis_pipeline::GrantBook;

use crate::args::{Audit, Globals};
use crate::exit::{ExitKind, failed, usage};
use crate::export;
use crate::loss;
use crate::progress::Bar;
use crate::rebuild::{altered_rows, own_rows};
use crate::render::{self, GREEN, RED, Term, styled};
use crate::world::{World, key};
use crate::{export_check, spinner};

pub async fn run(what: Audit, globals: &Globals, term: &Term) -> anyhow::Result<ExitKind> {
    match what {
        Audit::Verify { session, against, export } => {
            let against = against.as_deref().map(saved_head).transpose()?;
            if let Some(path) = export {
                return export_check::run(&path, against, term);
            }
            let world = World::existing(globals)?;
            match session {
                Some(session) => verify_one(&world, session, term).await,
                None => verify_all(&world, against, term).await,
            }
        }
        Audit::AcceptLoss { yes } => loss::accept(yes, globals, term).await,
        Audit::Head => head(&World::existing(globals)?, term).await,
        Audit::Export { out } => bundle(&World::existing(globals)?, out, term).await,
    }
}

/// `SEQ:HASH`, or a file that holds it as `audit head` printed it.
fn saved_head(text: &str) -> anyhow::Result<(u64, Digest)> {
    if let Some(head) = parse_head(text) {
        return Ok(head);
    }
    let wanted = "a saved head SEQ:HASH, or a file with one; `portcullis audit head` prints it";
    let saved = fs::read_to_string(text).map_err(|e| {
        let neither = match e.kind() {
            std::io::ErrorKind::NotFound => "it is not SEQ:HASH, and there is no file of that name".to_owned(),
            _ => format!("it is not SEQ:HASH, and not a file that can be read ({e})"),
        };
        usage(format!("--against `{text}`: {neither}; give {wanted}"))
    })?;
    parse_head(saved.trim()).ok_or_else(|| usage(format!("--against {text}: it holds no head; give {wanted}")))
}

fn parse_head(text: &str) -> Option<(u64, Digest)> {
    // As `audit head --json` prints it.
    if let Ok(head) = serde_json::from_str::<export::HeadLine>(text) {
        return Some((head.seq, head.hash));
    }
    let (seq, hash) = text.split_once(':')?;
    Some((seq.parse().ok()?, hash.parse().ok()?))
}

fn proof_words(proof: Proof) -> String {
    match proof {
        Proof::ProvedUpTo(seq) => format!("proved up to seq {seq}"),
        Proof::Consistent => "consistent".to_owned(),
        Proof::Empty => "empty".to_owned(),
    }
}

pub fn name_of(session: SessionId) -> String {
    match session {
        log if log == ledger_of(LOCAL_TENANT) => "the ledger".to_owned(),
        log if log == operator_log_of(LOCAL_TENANT) => "the operator log".to_owned(),
        session => session.to_string(),
    }
}

fn verified_line(log: &VerifiedLog, erased: bool) -> String {
    let events = render::count(log.last_seq, "event");
    let gone = if erased { "; erased, so only its hashes were checked" } else { "" };
    match &log.fault {
        None => format!("{} {}: {events}, {}{gone}", styled(GREEN, "ok"), name_of(log.session), proof_words(log.proof)),
        Some(fault) => format!("{} {fault}", styled(RED, "broken")),
    }
}

fn verified_document(log: &VerifiedLog, erased: bool) -> Value {
    let (proved, words) = match log.proof {
        Proof::ProvedUpTo(seq) => (Some(seq), "proved"),
        Proof::Consistent => (None, "consistent"),
        Proof::Empty => (None, "empty"),
    };
    json!({
        "session_id": log.session,
        "ledger": log.session == ledger_of(LOCAL_TENANT),
        "last_seq": log.last_seq,
        "proof": words,
        "proved_up_to": proved,
        "erased": erased,
        "fault": log.fault.as_ref().map(ToString::to_string),
    })
}

fn ended(holds: bool) -> ExitKind {
    if holds { ExitKind::Done } else { ExitKind::Failed }
}

async fn verify_one(world: &World, session: SessionId, term: &Term) -> anyhow::Result<ExitKind> {
    if world.store.head(key(session)).await?.is_none() && world.store.read(key(session), 0, 1).await?.is_empty() {
        return Err(StoreError::NoSession(session).into());
    }
    let total = world.store.head(key(session)).await?.map_or(0, |head| head.last_seq);
    let bar = Bar::new(term, total, "events verified");
    let seen = |events| bar.add(events);
    let mut log = verify_session_seen(&*world.store, key(session), world.checkpoint_key.as_ref(), &seen).await?;
    drop(bar);
    log.fault = log.fault.or_else(|| world.store.lost().iter().find(|lost| lost.key == key(session)).map(missing_end));
    let erased = is_erased(world, session).await?;
    let reserved = [ledger_of(LOCAL_TENANT), operator_log_of(LOCAL_TENANT)].contains(&session);
    if log.fault.is_none() && !erased && !reserved {
        let own = own_rows(world).await?.remove(&session);
        let altered = altered_rows(world, session, own).await?.into_iter().next();
        log.fault = altered.map(|what| LogFault::Row { session, what });
    }
    if term.json {
        term.document(&verified_document(&log, erased))?;
    } else {
        term.print(&verified_line(&log, erased))?;
    }
    Ok(ended(log.fault.is_none()))
}

/// What the mark beside the database proves.
fn missing_end(lost: &LostEnd) -> LogFault {
    LogFault::NotAsMarked { session: lost.key.session, recorded: lost.recorded, found: lost.found }
}

/// Whether a log is a tombstone: its chain can be walked, what stood in it cannot be looked at.
async fn is_erased(world: &World, session: SessionId) -> anyhow::Result<bool> {
    Ok(match world.store.head(key(session)).await? {
        Some(head) => world.is_erased(session, &head).await?,
        None => false,
    })
}

/// What was found of everything there is.
struct Report {
    walk: Walk,
    /// Artifacts whose bytes the retention policy took.
    expired: usize,
    erased: BTreeSet<SessionId>,
}

/// Every log, the ledger, and the bytes of every artifact.
async fn verified(world: &World, against: Option<(u64, Digest)>, term: &Term) -> anyhow::Result<Report> {
    let mut total = 0;
    for log in world.store.logs(LOCAL_TENANT).await? {
        total += world.store.head(key(log)).await?.map_or(0, |head| head.last_seq);
    }
    let bar = Bar::new(term, total, "events verified");
    let seen = |events| bar.add(events);
    let proof_key = world.checkpoint_key.as_ref();
    let mut walk = verify_tenant_seen(&*world.store, LOCAL_TENANT, proof_key, against, &seen).await?;
    drop(bar);
    for lost in world.store.lost() {
        let fault = missing_end(lost);
        // A log that agrees with itself and lost its end is broken, and nothing else.
        let log = walk.logs.iter_mut().find(|log| log.session == lost.key.session && log.fault.is_none());
        if let Some(log) = log {
            log.fault = Some(fault.clone());
        }
        walk.faults.push(fault);
    }
    let bytes = verify_artifacts(&*world.store, world.artifacts()?, LOCAL_TENANT, &walk.named);
    walk.faults.extend(spinner::during(term, "verifying artifacts", bytes).await?);
    let grants = GrantBook::new(Arc::clone(&world.store) as _, LOCAL_TENANT);
    walk.faults.extend(grants.altered().await?.into_iter().map(|(grant, why)| LogFault::Grant { grant, why }));
    let held = HeldArtifacts::read(&*world.store, LOCAL_TENANT, SystemClock::new().now()).await?;
    let mut erased = BTreeSet::new();
    for log in &walk.logs {
        if is_erased(world, log.session).await? {
            erased.insert(log.session);
        }
    }
    let reserved = [ledger_of(LOCAL_TENANT), operator_log_of(LOCAL_TENANT)];
    let sound: Vec<SessionId> = walk.logs.iter().filter(|log| log.fault.is_none()).map(|log| log.session).collect();
    let mut own = own_rows(world).await?;
    for session in sound.into_iter().filter(|session| !reserved.contains(session)) {
        let own = own.remove(&session);
        if !erased.contains(&session) {
            let altered = altered_rows(world, session, own).await?;
            walk.faults.extend(altered.into_iter().map(|what| LogFault::Row { session, what }));
        } else if own.is_some() {
            let what = "the session was erased, and has a row".to_owned();
            walk.faults.push(LogFault::Row { session, what });
        }
    }
    Ok(Report { walk, expired: held.expired_before(), erased })
}

async fn verify_all(world: &World, against: Option<(u64, Digest)>, term: &Term) -> anyhow::Result<ExitKind> {
    let report = verified(world, against, term).await?;
    let Report { walk, expired, erased } = &report;
    if term.json {
        term.document(&report.document(against))?;
        return Ok(ended(walk.holds()));
    }
    let mut text = String::new();
    for log in &walk.logs {
        let _ = writeln!(text, "{}", verified_line(log, erased.contains(&log.session)));
    }
    let in_logs = |fault: &&_| walk.logs.iter().any(|log| log.fault.as_ref() == Some(*fault));
    for fault in walk.faults.iter().filter(|fault| !in_logs(fault)) {
        let _ = writeln!(text, "{} {fault}", styled(RED, "broken"));
    }
    if !erased.is_empty() {
        let sessions = render::count(erased.len() as u64, "session");
        let _ =
            writeln!(text, "{sessions} erased: the hashes hold together, the content is gone and cannot be checked");
    }
    if *expired > 0 {
        let artifacts = render::count(*expired as u64, "artifact");
        let _ =
            writeln!(text, "{artifacts} expired by the retention policy: hash and size are kept, the bytes are not");
    }
    if let Some((seq, hash)) = walk.ledger_head {
        let _ = writeln!(text, "ledger head {seq}:{hash}");
    }
    if let (true, Some((seq, _))) = (walk.holds(), against) {
        let _ = writeln!(text, "the saved ledger head {seq} is in the ledger");
    }
    term.print(&text)?;
    if walk.holds() {
        term.note(match (&world.checkpoint_key, against) {
            (None, _) => "everything agrees with itself; with keys/checkpoint.key more could be proved",
            (Some(_), None) => {
                "everything holds. To prove later that no tail or session is gone, save the ledger head elsewhere and give \
                 it with `--against`"
            }
            (Some(_), Some(_)) => "everything holds",
        });
    } else {
        term.error(&format!("{}; keep the store as it is and compare with a backup", walk.faults[0]));
    }
    Ok(ended(walk.holds()))
}

impl Report {
    fn document(&self, against: Option<(u64, Digest)>) -> Value {
        let Self { walk, expired, erased } = self;
        let log = |log: &VerifiedLog| verified_document(log, erased.contains(&log.session));
        let logs: Vec<Value> = walk.logs.iter().map(log).collect();
        let faults: Vec<String> = walk.faults.iter().map(ToString::to_string).collect();
        json!({
            "holds": walk.holds(),
            "logs": logs,
            "ledger_head": walk.ledger_head.map(|(seq, hash)| format!("{seq}:{hash}")),
            "against": against.map(|(seq, hash)| format!("{seq}:{hash}")),
            "faults": faults,
            "expired_artifacts": expired,
            "erased_sessions": erased.len(),
        })
    }
}

async fn head(world: &World, term: &Term) -> anyhow::Result<ExitKind> {
    deliver_outbox(&*world.store).await?;
    let head = export::ledger_head(world).await?;
    let none = if world.store.lost().is_empty() { "there are no sessions yet" } else { "its sessions are lost" };
    let head = head.ok_or_else(|| failed(format!("the ledger is empty: {none}")))?;
    if term.json {
        term.document(&head)?;
    } else {
        term.print(&format!("{}:{}", head.seq, head.hash))?;
    }
    Ok(ExitKind::Done)
}

/// Every log, the ledger, a manifest and the report, in a folder of their own.
async fn bundle(world: &World, out: Option<PathBuf>, term: &Term) -> anyhow::Result<ExitKind> {
    let found = verified(world, None, term).await?;
    let walk = &found.walk;
    let folder = out.unwrap_or_else(|| world.settings.home.evidence().join(world.tag()));
    if folder.exists() {
        return Err(failed(format!("{} exists already; name a folder that does not", folder.display())));
    }
    let sessions = folder.join("sessions");
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&sessions);
    made.with_context(|| format!("cannot make {}", sessions.display()))?;
    let mut manifests = Vec::new();
    for log in world.store.logs(LOCAL_TENANT).await? {
        let ledger = log == ledger_of(LOCAL_TENANT);
        let path = if ledger { folder.join("ledger.ndjson") } else { sessions.join(format!("{log}.ndjson")) };
        // A damaged log is evidence too: what can be read of it is written, the report says the rest.
        let mut file = create(&path)?;
        let written = export::write(world, log, false, |lines| Ok(file.write_all(lines)?)).await;
        file.sync_all().with_context(|| path.display().to_string())?;
        let name = path.strip_prefix(&folder).unwrap_or(&path).display().to_string();
        match written {
            Ok(manifest) => manifests.push(json!({"file": name, "manifest": manifest})),
            Err(error) if matches!(error.downcast_ref(), Some(StoreError::Corrupt(_))) => {
                manifests.push(json!({"file": name, "incomplete": error.to_string()}));
            }
            Err(error) => return Err(error),
        }
    }
    let report = found.document(None);
    let manifest = json!({
        "format": "portcullis-evidence-1",
        "ledger_head": report["ledger_head"],
        "holds": walk.holds(),
        "logs": manifests,
    });
    for (name, value) in [("verify.json", &report), ("manifest.json", &manifest)] {
        let path = folder.join(name);
        let mut file = create(&path)?;
        file.write_all(serde_json::to_string_pretty(value)?.as_bytes())?;
        file.sync_all()?;
    }
    if term.json {
        term.document(&json!({"folder": folder, "holds": walk.holds(), "logs": manifests.len()}))?;
    } else {
        let logs = render::count(manifests.len() as u64, "log");
        let state = if walk.holds() { "everything holds" } else { "broken: see verify.json" };
        term.print(&format!("{logs} in {}; {state}", render::place(&folder)))?;
    }
    Ok(ended(walk.holds()))
}

fn create(path: &Path) -> anyhow::Result<fs::File> {
    let opened = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    opened.with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_head_is_read_from_text_or_file() {
        let hash = Digest::of(b"x");
        assert_eq!(parse_head(&format!("7:{hash}")), Some((7, hash)));
        assert_eq!(parse_head("7:zz"), None);
        let error = saved_head("/no/such/file").expect_err("no head").to_string();
        assert!(error.contains("audit head"), "{error}");
    }
}
