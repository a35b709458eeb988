//! A log that was exported, verified where there is no store: its chain, and that its manifest says of it what is so.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use portcullis_base::TenantId;
use portcullis_event::{Chain, Event, ledger_of};
use portcullis_store::ErasedEvents;
use serde_json::{Value, json};

use super::export::{ContentLine, FORMAT, HeadLine, Manifest, ManifestLine};

/// Bytes of one line: more than any event or manifest has.
const LINE_MAX: u64 = 256 << 20;

/// A file that cannot be read as an export.
#[derive(Debug, thiserror::Error)]
pub enum ExportFileError {
    /// The file cannot be read.
    #[error("cannot read the export {}: {error}", file.display())]
    Unreadable {
        /// Its name.
        file: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A line that no export has.
    #[error("a line of {} is longer than any of an export", .0.display())]
    LongLine(PathBuf),
    /// The manifest is missing.
    #[error("{}: its last line is not the manifest of an export, so it is none, or was cut short", .0.display())]
    NoManifest(PathBuf),
}

/// What an export was found to be.
pub struct CheckedExport {
    /// What it says of itself.
    pub manifest: Manifest,
    /// How many events there are.
    pub events: u64,
    /// The last of them.
    pub head: Option<HeadLine>,
    /// What does not hold.
    pub fault: Option<String>,
}

impl CheckedExport {
    /// For a program.
    #[must_use]
    pub fn document(&self, path: &Path, tenant: TenantId) -> Value {
        let session = self.manifest.session_id;
        json!({
            "file": path,
            "session_id": session,
            "ledger": session == ledger_of(tenant),
            "holds": self.fault.is_none(),
            "events": self.events,
            "head": self.head.map(|head| head.to_string()),
            "fault": self.fault,
        })
    }
}

/// The lines of an export, one at a time.
pub(super) struct ExportLines<'a> {
    from: BufReader<File>,
    file: &'a Path,
}

impl<'a> ExportLines<'a> {
    pub fn open(file: &'a Path) -> Result<Self, ExportFileError> {
        let opened = File::open(file);
        let from = opened.map_err(|error| ExportFileError::Unreadable { file: file.to_owned(), error })?;
        Ok(Self { from: BufReader::new(from), file })
    }

    /// `false` at the end.
    pub fn next(&mut self, line: &mut Vec<u8>) -> Result<bool, ExportFileError> {
        line.clear();
        let read = self.from.by_ref().take(LINE_MAX).read_until(b'\n', line);
        read.map_err(|error| ExportFileError::Unreadable { file: self.file.to_owned(), error })?;
        if line.len() as u64 == LINE_MAX {
            return Err(ExportFileError::LongLine(self.file.to_owned()));
        }
        Ok(!line.is_empty())
    }
}

impl Manifest {
    /// That of an export: its last line, which says whose log it is.
    ///
    /// # Errors
    /// If the file cannot be read or is no export.
    pub fn read(file: &Path) -> Result<Self, ExportFileError> {
        let mut lines = ExportLines::open(file)?;
        let (mut line, mut last) = (Vec::new(), Vec::new());
        while lines.next(&mut line)? {
            std::mem::swap(&mut line, &mut last);
        }
        let found = serde_json::from_slice::<ManifestLine>(&last).ok().map(|last| last.manifest);
        found.filter(|manifest| manifest.format == FORMAT).ok_or_else(|| ExportFileError::NoManifest(file.to_owned()))
    }
}

impl CheckedExport {
    /// Reads the whole export. `against` is a head that was saved of this log before.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn of(file: &Path, manifest: Manifest, against: Option<HeadLine>) -> Result<Self, ExportFileError> {
        let mut lines = ExportLines::open(file)?;
        let mut chain = Chain::start(manifest.session_id);
        let mut found = Manifest::new(manifest.session_id, manifest.ledger_head);
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
            if let Some(head) = saved.take_if(|head| head.seq == event.seq)
                && head.hash != event.hash
            {
                fault = Some(format!("event {} has not the saved hash: the ledger was written anew", event.seq));
            }
        }
        let head = (chain.seq() > 0).then(|| HeadLine { seq: chain.seq(), hash: chain.hash() });
        let gone = |seq| format!("the content of event {seq} is gone, and nothing says that it was erased");
        let stranger = contents.iter().find(|sha256| !found.names(sha256));
        let ends = |saved: HeadLine| format!("it ends at event {}, before the saved head {}", chain.seq(), saved.seq);
        let fault = fault
            .or_else(|| erased.unsaid().map(|(seq, _)| gone(seq)))
            .or_else(|| stranger.map(|sha256| format!("no event names its content {sha256}")))
            .or_else(|| found.difference(&manifest))
            .or_else(|| saved.map(ends));
        Ok(Self { manifest, events: found.events, head, fault })
    }
}
