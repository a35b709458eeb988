//! `sessions rm`: what a session holds is erased; its hashes stay, and that it was erased (store §11).

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use portcullis::{GrantBook, RememberedGrant};
use portcullis_base::{AppendId, Clock as _, Digest, GrantId, SessionId, SystemClock, Timestamp, WorkerId};
use portcullis_event::facts::{GrantCreated, SessionErased};
use portcullis_event::{Actor, Body, EventBody as _, LOCAL_TENANT, Stamp, ledger_of, operator_log_of};
use portcullis_store::{AskFilter, Claim, Commit, HostLiveness, Log as _, Queue as _, StoreError, deliver_outbox};
use serde_json::json;

use crate::exit::{ExitKind, failed, fault, usage};
use crate::hints;
use crate::render::{self, Term};
use crate::world::{World, key};
use crate::{person, spinner, tree};

/// The lease of an erasure: it is one transaction.
const TTL: Duration = Duration::from_secs(30);
/// A file that was put so lately may be about to be named by another session; it is left to `gc`.
const PUT_GRACE: Duration = Duration::from_secs(600);
/// Rows read at once.
const PAGE: usize = 500;

pub async fn run(
    world: &World,
    session: SessionId,
    yes: bool,
    reason: Option<String>,
    term: &Term,
) -> anyhow::Result<()> {
    if session == ledger_of(LOCAL_TENANT) || session == operator_log_of(LOCAL_TENANT) {
        return Err(failed("that log is the store's own record and is never erased"));
    }
    let head = world.store.head(key(session)).await?.ok_or(StoreError::NoSession(session))?;
    if world.is_erased(session, &head).await? {
        return Err(failed(format!("session {session} was erased already")));
    }
    let contents = contents_of(world, Some(session)).await?;
    let waiting =
        world.store.asks(LOCAL_TENANT, AskFilter { session: Some(session), pending: true }).await?.len() as u64;
    let stays = ErasureRemains::of(world, session).await?;
    if !yes {
        confirm(session, (head.last_seq, contents.len(), waiting), &stays, term)?;
    }
    let erased = spinner::during(term, "erasing", erase(world, session, reason)).await?;
    // The ledger's entry may wait; everything else is done.
    if let Err(error) = deliver_outbox(&*world.store).await {
        term.note(&format!("warning: the ledger is told later: {}", hints::explained(&error)));
    }
    let (files, left) = delete_files(world, contents).await?;
    if term.json {
        let document = json!({
            "session_id": session, "events": erased, "files": files, "files_left": left, "asks_withdrawn": waiting,
            "copies_left": stays.copies, "grants_left": stays.grants, "forks_left": stays.forks,
        });
        return term.document(&document);
    }
    let events = render::count(erased, "event");
    // Small contents are rows, which went with the rest.
    let deleted = if files > 0 { format!(", {} deleted", render::count(files, "file")) } else { String::new() };
    let lost = if erased == 1 { "its" } else { "their" };
    term.print(&format!("{session} erased: {events} lost {lost} content{deleted}"))?;
    if waiting > 0 {
        term.note(&format!(
            "{} in it waited for an answer and went with it: no call of it runs",
            render::count(waiting, "ask")
        ));
    }
    for copy in &stays.copies {
        term.note(&format!(
            "a copy of it stays, which an export made: {}",
            render::exact(&copy.display().to_string(), 4_096)
        ));
    }
    for fork in &stays.forks {
        let erase = world.command(&format!("sessions rm {fork}"));
        term.note(&format!("a fork of it stays, with what it held up to there; to erase it too: {erase}"));
    }
    for grant in &stays.grants {
        let revoke = world.command(&format!("grants revoke {grant}"));
        term.note(&format!("an allow that was remembered in it stays in force; to take it back: {revoke}"));
    }
    if left > 0 {
        let stay = render::count(left, "file");
        term.note(&format!(
            "{stay} written just now may be needed elsewhere; a day later: {}",
            world.command("gc --apply")
        ));
    }
    Ok(())
}

/// What an erasure does not reach, as far as this program knows of it.
struct ErasureRemains {
    /// Its log in evidence that `audit export` put into the data folder.
    copies: Vec<PathBuf>,
    /// Allows that were remembered in it, for itself or for its project, and are in force.
    grants: Vec<GrantId>,
    /// Sessions that were forked from it, which have what it held up to there.
    forks: Vec<SessionId>,
}

impl ErasureRemains {
    async fn of(world: &World, session: SessionId) -> anyhow::Result<Self> {
        let mut given = HashSet::new();
        world
            .each_page(session, 0, |page| {
                for event in page.iter().filter(|event| event.kind == GrantCreated::KIND) {
                    if let Body::GrantCreated(fact) = event.body() {
                        given.insert(fact.grant_id);
                    }
                }
                Ok(())
            })
            .await?;
        let now = SystemClock::new().now();
        let of_it = |found: &RememberedGrant| {
            (given.contains(&found.grant.id) || found.grant.scope.session == Some(session)) && found.in_force(now)
        };
        let grants = GrantBook::new(world.store.clone(), LOCAL_TENANT).all().await?;
        let grants = grants.iter().filter(|found| of_it(found)).map(|found| found.grant.id).collect();
        let forks = tree::forks_of(world, session).await?;
        Ok(Self { copies: copies(&world.settings.home.evidence(), session), grants, forks })
    }

    /// For the question: empty if nothing stays.
    fn words(&self) -> String {
        let copies = match self.copies.len() as u64 {
            0 => None,
            1 => Some("1 exported copy".to_owned()),
            n => Some(format!("{n} exported copies")),
        };
        let grants = (!self.grants.is_empty()).then(|| render::count(self.grants.len() as u64, "remembered allow"));
        let forks = (!self.forks.is_empty()).then(|| render::count(self.forks.len() as u64, "fork"));
        match copies.into_iter().chain(forks).chain(grants).collect::<Vec<_>>().join(" and ") {
            none if none.is_empty() => none,
            what => format!("; not erased with it: {what}"),
        }
    }
}

/// The files of a session in every folder of evidence.
fn copies(evidence: &Path, session: SessionId) -> Vec<PathBuf> {
    let Ok(folders) = fs::read_dir(evidence) else { return Vec::new() };
    let file = |folder: fs::DirEntry| folder.path().join("sessions").join(format!("{session}.ndjson"));
    let mut found: Vec<PathBuf> = folders.flatten().map(file).filter(|file| file.exists()).collect();
    found.sort();
    found
}

/// On a terminal a person says yes; elsewhere a flag must.
fn confirm(
    session: SessionId,
    (events, contents, waiting): (u64, usize, u64),
    stays: &ErasureRemains,
    term: &Term,
) -> anyhow::Result<()> {
    let left = stays.words();
    if !term.interactive() {
        let asks = if waiting > 0 {
            format!(", and {} in it waits for an answer", render::count(waiting, "ask"))
        } else {
            String::new()
        };
        return Err(usage(format!("erasing cannot be undone{asks}{left}; say so with --yes")));
    }
    let (events, contents) = (render::count(events, "event"), render::count(contents as u64, "artifact"));
    let asks =
        if waiting > 0 { format!(", {} waiting for an answer", render::count(waiting, "ask")) } else { String::new() };
    write!(io::stderr(), "erase {session} ({events}, {contents}{asks}{left})? This cannot be undone. Type yes: ")?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    if answer.trim() == "yes" { Ok(()) } else { Err(failed("nothing was erased")) }
}

/// Takes the lease and erases; how many events there were.
async fn erase(world: &World, session: SessionId, reason: Option<String>) -> anyhow::Result<u64> {
    let (clock, ids) = (SystemClock::new(), world.ids());
    let worker = WorkerId::make(ids, clock.now());
    let owner = HostLiveness::new().this_process(worker, "portcullis sessions rm");
    let lease = match world.store.claim_session(key(session), owner, TTL).await? {
        Claim::Granted(lease) => lease,
        Claim::Held { owner, .. } => {
            let text = format!("session {session} is in use by {owner}; end it, then erase the session");
            return Err(fault(ExitKind::Broken, text));
        }
        Claim::Refused(error) => return Err(error.into()),
    };
    let mut to_seq = lease.last_seq;
    loop {
        let by = person::login();
        let actor = Actor::worker(worker);
        let stamp = Stamp { ids, clock: &clock, actor: &actor, turn_id: None, wake_id: None };
        let fact = SessionErased { from_seq: 1, to_seq, by, reason: reason.clone() };
        let append = AppendId::make(ids, clock.now());
        let mut commit = Commit::worker(key(session), worker, lease.fence, append, vec![stamp.draft(&fact)]);
        commit.idle = true;
        match world.store.erase(commit).await {
            Ok(_) => return Ok(to_seq),
            // A client appended meanwhile; that goes as well.
            Err(StoreError::NotTheirs { .. }) => {
                let head = world.store.head(key(session)).await?.ok_or(StoreError::NoSession(session))?;
                if head.last_seq == to_seq {
                    return Err(failed(format!("session {session} cannot be erased")));
                }
                to_seq = head.last_seq;
            }
            Err(error) => {
                // Else it would be held until it runs out.
                let _ = world.store.release(key(session), lease.fence, None).await;
                return Err(error.into());
            }
        }
    }
}

/// The contents that rows have: of one session, or of all.
async fn contents_of(world: &World, session: Option<SessionId>) -> Result<HashSet<Digest>, StoreError> {
    let (mut found, mut after) = (HashSet::new(), None);
    loop {
        let page = world.store.artifacts(LOCAL_TENANT, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(found) };
        after = Some(last.artifact.id);
        let mine = page.iter().filter(|row| session.is_none_or(|session| row.session == session));
        found.extend(mine.map(|row| row.artifact.sha256));
    }
}

/// Deletes the files that no other session has: how many went, and how many are too young to be sure.
async fn delete_files(world: &World, contents: HashSet<Digest>) -> anyhow::Result<(u64, u64)> {
    let artifacts = world.artifacts()?;
    let others = contents_of(world, None).await?;
    let grace = i64::try_from(PUT_GRACE.as_micros()).unwrap_or(i64::MAX);
    let before = Timestamp::from_micros(SystemClock::new().now().as_micros().saturating_sub(grace));
    let (mut gone, mut left) = (0, 0);
    for sha256 in contents.difference(&others) {
        let cannot =
            |e: io::Error| failed(format!("the session is erased, but its content {sha256} cannot be deleted: {e}"));
        let Some(file) = artifacts.file_of(LOCAL_TENANT, *sha256).map_err(cannot)? else { continue };
        match artifacts.sweep(&file, before).map_err(cannot)? {
            true => gone += 1,
            false => left += 1,
        }
    }
    Ok((gone, left))
}
