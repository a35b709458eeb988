//! `sessions import`: an exported log becomes a session of this store, verified first, whole or not at all.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use portcullis_base::limits::ARTIFACT_INLINE_MAX;
use portcullis_base::{Digest, SessionId};
use portcullis_event::facts::ArtifactsExpired;
use portcullis_event::{Body, Event, IntentState, LOCAL_TENANT, State};
use portcullis_store::{Artifacts, Blob, Import, LocalArtifacts, Log as _, contents_named, deliver_outbox};
use serde_json::json;

use crate::args::Globals;
use crate::exit::failed;
use crate::export::ContentLine;
use crate::export_check::{self, ExportLines};
use crate::loss;
use crate::progress::Bar;
use crate::render::{self, Term, exact};
use crate::world::{World, key};

/// Bytes of events that are held at once: a session is taken in by one transaction.
const EVENTS_MOST: usize = 1 << 30;

/// Bytes of small contents that are held at once, to be rows of that transaction. Past it they are files, like large
/// ones: a reader finds both by their hash.
const CONTENTS_MOST: usize = 64 << 20;

pub async fn run(file: &Path, globals: &Globals, term: &Term) -> anyhow::Result<()> {
    let manifest = export_check::manifest(file)?;
    let checked = export_check::check(file, &manifest, None)?;
    if let Some(fault) = &checked.fault {
        return Err(failed(format!("{}: {}; nothing was written", file.display(), exact(fault, 1_000))));
    }
    let world = World::open(globals.settings()?, term)?;
    let session = manifest.session_id;
    refuse_erased(&world, session, checked.head).await?;
    let artifacts = world.artifacts()?;
    let progress = Bar::new(term, manifest.events, "taking in events");
    let (mut import, mut here) = read(file, &*artifacts, session, CONTENTS_MOST, || progress.add(1))?;
    import.expired.clone_from(&manifest.expired);
    here.extend(manifest.expired_contents());
    if let Some(left) = left_to_do(&import.events) {
        return Err(failed(format!(
            "{}: {left}; let it end where it comes from, then export again; nothing was written",
            file.display()
        )));
    }
    for event in &import.events {
        for sha256 in contents_named(event) {
            if !here.contains(&sha256) && !is_kept(&world, &artifacts, sha256).await? {
                return Err(failed(format!(
                    "{}: it names the content {sha256} (event {}), which is neither in it nor in this store; export it \
                     again with --with-artifacts",
                    file.display(),
                    event.seq
                )));
            }
            here.insert(sha256);
        }
    }
    if !import.expired.is_empty() {
        let artifacts = import.expired.iter().copied().collect();
        loss::in_operator_log(&world, |by| ArtifactsExpired { by, artifacts }).await?;
    }
    let imported = world.store.import(import).await?;
    deliver_outbox(&*world.store).await?;
    drop(progress);
    if term.json {
        let head = checked.head.map(|(seq, hash)| format!("{seq}:{hash}"));
        let document =
            json!({"session_id": session, "events": imported.last_seq, "head": head, "repeat": imported.repeat});
        return term.document(&document);
    }
    let events = render::count(imported.last_seq, "event");
    let what = if imported.repeat { "is here already, the same" } else { "taken in with the same digests:" };
    let head = checked.head.map(|(seq, hash)| format!(", head {seq}:{hash}")).unwrap_or_default();
    Ok(term.print(&format!("{session} {what} {events}{head}"))?)
}

/// What was erased here stays erased, and not a byte of it is written: only the very log that is left of it is the same.
async fn refuse_erased(world: &World, session: SessionId, head: Option<(u64, Digest)>) -> anyhow::Result<()> {
    let Some(here) = world.store.head(key(session)).await? else { return Ok(()) };
    if head == Some((here.last_seq, here.last_hash)) || !world.is_erased(session, &here).await? {
        return Ok(());
    }
    Err(failed(format!(
        "session {session} was erased here and is not taken in again; nothing was written (another store takes it: --store)"
    )))
}

/// What in a log would still happen, or be asked, here. A file may say anything: whoever opens the session next would
/// run a call that nobody made or answered here, a worker would call a model by itself, and what a person is shown of an ask and the rule that an answer
/// would remember are only what the file says they are (tool-contract 13.4).
fn left_to_do(events: &[Event]) -> Option<String> {
    let mut waiting = BTreeSet::new();
    for event in events {
        match &*event.body_ref() {
            Body::PermissionAsked(asked) => drop(waiting.insert(asked.ask_id)),
            Body::AskReplied(replied) => drop(waiting.remove(&replied.ask_id)),
            Body::AskClosed(closed) => drop(waiting.remove(&closed.ask_id)),
            _ => {}
        }
    }
    let state = State::fold(events);
    if let Some(ask) = state.asks.answered().next() {
        return Some(format!("{} in it was answered and its call has not run yet", ask.ask_id));
    }
    if let Some(ask) = waiting.first() {
        return Some(format!("{ask} in it waits for an answer"));
    }
    if let Some(call) = state.session.queued.first() {
        return Some(format!("a call in it is queued ({}) and has not run yet", call.event_id));
    }
    // One that has started only ends, as unknown.
    if let Some(open) = state.intents.open().find(|intent| intent.state < IntentState::Started) {
        return Some(format!("{} in it has not run yet", open.intent_id));
    }
    // Whatever wakes a session has its model called here, with words that nobody here said.
    if let Some(input) = state.inbox.pending().first() {
        return Some(format!("a {} in it ({}) has not been taken up yet", input.kind(), input.event_id));
    }
    if let Some(wake) = state.wakes.pending().next() {
        return Some(format!("{} in it waits for its time", wake.queued_wake_id));
    }
    if let Some(request) = state.progress.custom.keys().next() {
        return Some(format!("a custom call in it ({request}) waits for its result"));
    }
    let open = state.progress.open.as_ref()?;
    Some(format!("{} in it has not ended", open.wake_id))
}

/// The events and small contents; large ones are made durable as they come, before anything can name them (S13). The
/// hashes of both come back too.
fn read(
    file: &Path,
    artifacts: &dyn Artifacts,
    session: SessionId,
    contents_most: usize,
    mut event_read: impl FnMut(),
) -> anyhow::Result<(Import, HashSet<Digest>)> {
    let mut import = Import { key: key(session), events: Vec::new(), blobs: Vec::new(), expired: Default::default() };
    let (mut here, mut bytes, mut held, mut line) = (HashSet::new(), 0, 0, Vec::new());
    let mut lines = ExportLines::open(file)?;
    while lines.next(&mut line)? {
        if let Ok(event) = serde_json::from_slice::<Event>(&line) {
            bytes += line.len();
            if bytes > EVENTS_MOST {
                return Err(failed(format!("{}: its events are more than 1 GiB, too many to take in", file.display())));
            }
            import.events.push(event);
            event_read();
        } else if let Ok(ContentLine { content }) = serde_json::from_slice(&line) {
            let bytes = content.bytes().map_err(failed)?;
            if !here.insert(content.sha256) {
                continue;
            }
            if bytes.len() <= ARTIFACT_INLINE_MAX && held + bytes.len() <= contents_most {
                held += bytes.len();
                import.blobs.push(Blob { sha256: content.sha256, bytes });
            } else {
                let mut writer = artifacts.begin(LOCAL_TENANT)?;
                writer.write(&bytes)?;
                writer.finish()?;
            }
        }
    }
    Ok((import, here))
}

/// Whether a content is here, sound; what is here as a file stays for the rows to come.
async fn is_kept(world: &World, artifacts: &LocalArtifacts, sha256: Digest) -> anyhow::Result<bool> {
    if world.store.blob(LOCAL_TENANT, sha256).await?.is_some() {
        return Ok(true);
    }
    Ok(artifacts.renew(LOCAL_TENANT, sha256)? && artifacts.open(LOCAL_TENANT, sha256).is_ok())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use portcullis_base::{SessionId, SystemIds};

    use super::*;

    #[test]
    fn small_contents_past_the_budget_are_files_and_none_is_held_twice() {
        let folder = tempfile::tempdir().expect("a folder");
        let artifacts = LocalArtifacts::open(&folder.path().join("kept"), Arc::new(SystemIds::new())).expect("opens");
        let file = folder.path().join("export.jsonl");
        let contents = ["a", "b", "a", "c", "d"].map(|letter| letter.repeat(1_000).into_bytes());
        let line = |bytes: &Vec<u8>| {
            let data = data_encoding::BASE64.encode(bytes);
            json!({"content": {"sha256": Digest::of(bytes), "data": data}}).to_string() + "\n"
        };
        std::fs::write(&file, contents.iter().map(line).collect::<String>()).expect("written");
        let (import, here) =
            read(&file, &artifacts, SessionId::from_u128(1), 2_500, || panic!("no event")).expect("read");
        assert_eq!(import.blobs.iter().map(|blob| blob.bytes[0]).collect::<Vec<_>>(), [b'a', b'b']);
        assert_eq!(here.len(), 4);
        for bytes in &contents[3..] {
            let window = artifacts.open(LOCAL_TENANT, Digest::of(bytes)).expect("durable already");
            assert_eq!(window.len(), 1_000);
        }
    }
}
