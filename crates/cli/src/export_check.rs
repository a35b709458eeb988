//! `audit verify --export`: a log that was exported, verified where there is no store: its chain, and that its
//! manifest says of it what is so.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use portcullis_base::{Digest, SessionId};
use portcullis_event::{Chain, Event, LOCAL_TENANT, ledger_of};
use portcullis_store::ErasedEvents;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::audit::name_of;
use crate::exit::{ExitKind, usage};
use crate::export::{ContentLine, FORMAT, Manifest};
use crate::render::{self, GREEN, RED, Term, exact, styled};

/// Bytes of one line: more than any event or manifest has.
const LINE_MAX: u64 = 256 << 20;

#[derive(Deserialize)]
pub struct ManifestLine {
    pub manifest: Manifest,
}

/// What an export was found to be.
pub struct CheckedExport {
    session: SessionId,
    pub events: u64,
    pub head: Option<(u64, Digest)>,
    pub fault: Option<String>,
}

pub fn run(path: &Path, against: Option<(u64, Digest)>, term: &Term) -> anyhow::Result<ExitKind> {
    let manifest = manifest(path)?;
    if against.is_some() && manifest.session_id != ledger_of(LOCAL_TENANT) {
        return Err(usage(format!(
            "--against holds the ledger against a saved head, and {} is the log of {}; leave it out",
            path.display(),
            manifest.session_id
        )));
    }
    let checked = check(path, &manifest, against)?;
    if term.json {
        term.document(&document(path, &checked))?;
    } else {
        term.print(&words(path, &checked))?;
    }
    Ok(if checked.fault.is_none() { ExitKind::Done } else { ExitKind::Failed })
}

fn words(path: &Path, checked: &CheckedExport) -> String {
    if let Some(fault) = &checked.fault {
        return format!("{} {}: {}", styled(RED, "broken"), render::place(path), exact(fault, 1_000));
    }
    let events = render::count(checked.events, "event");
    let head = checked.head.map(|(seq, hash)| format!(", head {seq}:{hash}")).unwrap_or_default();
    format!("{} {}: {events}, consistent{head}", styled(GREEN, "ok"), name_of(checked.session))
}

fn document(path: &Path, checked: &CheckedExport) -> Value {
    json!({
        "file": path,
        "session_id": checked.session,
        "ledger": checked.session == ledger_of(LOCAL_TENANT),
        "holds": checked.fault.is_none(),
        "events": checked.events,
        "head": checked.head.map(|(seq, hash)| format!("{seq}:{hash}")),
        "fault": checked.fault,
    })
}

/// The lines of an export, one at a time.
pub struct ExportLines {
    from: BufReader<File>,
    name: String,
}

impl ExportLines {
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|e| usage(format!("cannot read the export {name}: {e}")))?;
        Ok(Self { from: BufReader::new(file), name })
    }

    /// `false` at the end.
    pub fn next(&mut self, line: &mut Vec<u8>) -> anyhow::Result<bool> {
        line.clear();
        let read = self.from.by_ref().take(LINE_MAX).read_until(b'\n', line);
        read.map_err(|e| usage(format!("cannot read the export {}: {e}", self.name)))?;
        if line.len() as u64 == LINE_MAX {
            return Err(usage(format!("a line of {} is longer than any of an export", self.name)));
        }
        Ok(!line.is_empty())
    }
}

/// The last line, which says whose log it is.
pub fn manifest(path: &Path) -> anyhow::Result<Manifest> {
    let mut lines = ExportLines::open(path)?;
    let (mut line, mut last) = (Vec::new(), Vec::new());
    while lines.next(&mut line)? {
        std::mem::swap(&mut line, &mut last);
    }
    let found = serde_json::from_slice::<ManifestLine>(&last).ok().map(|last| last.manifest);
    found.filter(|manifest| manifest.format == FORMAT).ok_or_else(|| {
        usage(format!(
            "{}: its last line is not the manifest of an export, so it is none, or was cut short; `portcullis sessions \
             export` writes one",
            path.display()
        ))
    })
}

pub fn check(path: &Path, said: &Manifest, against: Option<(u64, Digest)>) -> anyhow::Result<CheckedExport> {
    let mut lines = ExportLines::open(path)?;
    let mut chain = Chain::start(said.session_id);
    let mut found = Manifest::new(said.session_id, said.ledger_head.clone());
    let mut saved = against;
    let (mut line, mut number, mut fault) = (Vec::new(), 0u64, None);
    let mut contents = BTreeSet::new();
    let mut erased = ErasedEvents::default();
    while fault.is_none() && lines.next(&mut line)? {
        number += 1;
        let event = match serde_json::from_slice::<Event>(&line) {
            Ok(event) => event,
            Err(_) if serde_json::from_slice::<ManifestLine>(&line).is_ok() => {
                if lines.next(&mut line)? {
                    fault = Some(format!("line {number} is a manifest, and more follows it"));
                }
                break;
            }
            Err(e) => match serde_json::from_slice::<ContentLine>(&line) {
                Ok(ContentLine { content }) => {
                    fault = content.bytes().err();
                    contents.insert(content.sha256);
                    continue;
                }
                Err(_) => {
                    fault = Some(format!("line {number} is not an event: {e}"));
                    break;
                }
            },
        };
        if !contents.is_empty() {
            fault = Some(format!("line {number} is an event after the contents"));
            break;
        }
        if let Err(broken) = chain.step(&event) {
            fault = Some(broken.to_string());
            break;
        }
        found.take_in(&event);
        erased.take_in(&event);
        if let Some((_, hash)) = saved.take_if(|(seq, _)| *seq == event.seq)
            && hash != event.hash
        {
            fault = Some(format!("event {} has not the saved hash: the ledger was written anew", event.seq));
        }
    }
    let head = (chain.seq() > 0).then(|| (chain.seq(), chain.hash()));
    let named = |sha256: &Digest| found.menus.contains(sha256) || found.artifacts.values().any(|a| a.sha256 == *sha256);
    let stranger = contents.iter().find(|sha256| !named(sha256));
    let unsaid = erased.unsaid();
    let fault = fault
        .or_else(|| {
            unsaid.map(|(seq, _)| format!("the content of event {seq} is gone, and nothing says that it was erased"))
        })
        .or_else(|| stranger.map(|sha256| format!("no event names its content {sha256}")))
        .or_else(|| found.difference(said))
        .or_else(|| saved.map(|(seq, _)| format!("it ends at event {}, before the saved head {seq}", chain.seq())));
    Ok(CheckedExport { session: said.session_id, events: found.events, head, fault })
}
