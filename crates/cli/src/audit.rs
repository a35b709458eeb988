//! `audit`: proving that logs are whole and unaltered (store §2), and taking the proof elsewhere.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use portcullis::operations::{AuditReport, HeadLine, StoreAudit, VerifiedSession, write_evidence};
use portcullis::{LogFault, Proof, VerifiedLog};
use portcullis_base::{Clock as _, SessionId, SystemClock};
use portcullis_event::{LOCAL_TENANT, ledger_of, operator_log_of};
use portcullis_terminal::render::{self, GREEN, RED, Term, exact, styled};
use portcullis_terminal::waiting;
use portcullis_terminal::waiting::Bar;
use serde_json::json;

use crate::args::{Audit, Globals};
use crate::exit::{ExitKind, failed, usage};
use crate::export_check;
use crate::loss;
use crate::world::World;

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
fn saved_head(text: &str) -> anyhow::Result<HeadLine> {
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

fn parse_head(text: &str) -> Option<HeadLine> {
    // As `audit head --json` prints it.
    if let Ok(head) = serde_json::from_str(text) {
        return Some(head);
    }
    let (seq, hash) = text.split_once(':')?;
    Some(HeadLine { seq: seq.parse().ok()?, hash: hash.parse().ok()? })
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

/// A fault in words. Values of rows are anybody's.
fn fault_words(fault: &LogFault) -> String {
    exact(&fault.to_string(), usize::MAX)
}

fn verified_line(log: &VerifiedLog, erased: bool) -> String {
    let events = render::count(log.last_seq, "event");
    let gone = if erased { "; erased, so only its hashes were checked" } else { "" };
    match &log.fault {
        None => format!("{} {}: {events}, {}{gone}", styled(GREEN, "ok"), name_of(log.session), proof_words(log.proof)),
        Some(fault) => format!("{} {}", styled(RED, "broken"), fault_words(fault)),
    }
}

fn ended(holds: bool) -> ExitKind {
    if holds { ExitKind::Done } else { ExitKind::Failed }
}

async fn verify_one(world: &World, session: SessionId, term: &Term) -> anyhow::Result<ExitKind> {
    let audit = world.audit();
    let bar = Bar::new(term, audit.events(Some(session)).await?, "events verified");
    let verified = audit.session(session, &|events| bar.add(events)).await?;
    drop(bar);
    let VerifiedSession { log, erased } = &verified;
    if term.json {
        term.document(&verified.document(LOCAL_TENANT))?;
    } else {
        term.print(&verified_line(log, *erased))?;
    }
    Ok(ended(log.fault.is_none()))
}

/// Every log, the ledger, and the bytes of every artifact.
async fn verified(
    audit: &StoreAudit<'_>,
    world: &World,
    against: Option<HeadLine>,
    term: &Term,
) -> anyhow::Result<AuditReport> {
    let bar = Bar::new(term, audit.events(None).await?, "events verified");
    let walk = audit.logs(against, &|events| bar.add(events)).await?;
    drop(bar);
    let rest = audit.rest(walk, world.artifacts()?, SystemClock::new().now());
    Ok(waiting::during(term, "verifying artifacts", rest).await?)
}

async fn verify_all(world: &World, against: Option<HeadLine>, term: &Term) -> anyhow::Result<ExitKind> {
    let report = verified(&world.audit(), world, against, term).await?;
    let AuditReport { walk, expired, erased } = &report;
    if term.json {
        term.document(&report.document(LOCAL_TENANT, against))?;
        return Ok(ended(walk.holds()));
    }
    let mut text = String::new();
    for log in &walk.logs {
        let _ = writeln!(text, "{}", verified_line(log, erased.contains(&log.session)));
    }
    let in_logs = |fault: &&_| walk.logs.iter().any(|log| log.fault.as_ref() == Some(*fault));
    for fault in walk.faults.iter().filter(|fault| !in_logs(fault)) {
        let _ = writeln!(text, "{} {}", styled(RED, "broken"), fault_words(fault));
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
    if let (true, Some(head)) = (walk.holds(), against) {
        let _ = writeln!(text, "the saved ledger head {} is in the ledger", head.seq);
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
        term.error(&format!("{}; keep the store as it is and compare with a backup", fault_words(&walk.faults[0])));
    }
    Ok(ended(walk.holds()))
}

async fn head(world: &World, term: &Term) -> anyhow::Result<ExitKind> {
    let head = world.audit().ledger_head().await?;
    let none = if world.lost().is_empty() { "there are no sessions yet" } else { "its sessions are lost" };
    let head = head.ok_or_else(|| failed(format!("the ledger is empty: {none}")))?;
    if term.json {
        term.document(&head)?;
    } else {
        term.print(&head.to_string())?;
    }
    Ok(ExitKind::Done)
}

/// Every log, the ledger, a manifest and the report, in a folder of their own.
async fn bundle(world: &World, out: Option<PathBuf>, term: &Term) -> anyhow::Result<ExitKind> {
    let audit = world.audit();
    let report = verified(&audit, world, None, term).await?;
    let holds = report.walk.holds();
    let folder = out.unwrap_or_else(|| world.settings.home.evidence().join(world.tag()));
    let logs = write_evidence(&audit, &report, &folder).await?;
    if term.json {
        term.document(&json!({"folder": folder, "holds": holds, "logs": logs}))?;
    } else {
        let logs = render::count(logs as u64, "log");
        let state = if holds { "everything holds" } else { "broken: see verify.json" };
        term.print(&format!("{logs} in {}; {state}", render::place(&folder)))?;
    }
    Ok(ended(holds))
}

#[cfg(test)]
mod tests {
    use portcullis_base::Digest;

    use super::*;

    #[test]
    fn a_saved_head_is_read_from_text_or_file() {
        let hash = Digest::of(b"x");
        assert_eq!(parse_head(&format!("7:{hash}")), Some(HeadLine { seq: 7, hash }));
        assert_eq!(parse_head("7:zz"), None);
        let error = saved_head("/no/such/file").expect_err("no head").to_string();
        assert!(error.contains("audit head"), "{error}");
    }
}
