//! What an audit found, with every log, in a folder that can be taken elsewhere.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use portcullis_base::SessionId;
use portcullis_event::ledger_of;
use portcullis_store::{SessionKey, StoreError};
use serde_json::{Value, json};

use super::audit::{AuditReport, StoreAudit};
use super::export::{Export, ExportError};

/// Evidence that could not be written, or not whole.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// A folder of that name is there.
    #[error("{} exists already; name a folder that does not", .0.display())]
    Exists(PathBuf),
    /// A folder cannot be made.
    #[error("cannot make {}", folder.display())]
    Folder {
        /// Its name.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {}", file.display())]
    File {
        /// Its name.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A log cannot be read.
    #[error("{0}")]
    Log(#[from] ExportError),
}

/// Writes every log, the ledger, a manifest and the report into a folder of their own; how many logs there are.
///
/// # Errors
/// If the folder is there already, something cannot be written, or the store fails.
pub async fn write_evidence(
    audit: &StoreAudit<'_>,
    report: &AuditReport,
    folder: &Path,
) -> Result<usize, EvidenceError> {
    if folder.exists() {
        return Err(EvidenceError::Exists(folder.to_owned()));
    }
    let sessions = folder.join("sessions");
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&sessions);
    made.map_err(|source| EvidenceError::Folder { folder: sessions, source })?;
    let mut manifests = Vec::new();
    for log in audit.store.logs(audit.tenant).await.map_err(ExportError::from)? {
        let ledger = log == ledger_of(audit.tenant);
        let name = if ledger { "ledger.ndjson".into() } else { place_of(log) };
        let mut file = NewFile::create(folder.join(&name))?;
        let written = write_log(audit, log, &mut file).await;
        file.finish()?;
        match written {
            Ok(manifest) => manifests.push(json!({"file": name, "manifest": manifest})),
            // A damaged log is evidence too: what can be read of it is written, the report says the rest.
            Err(EvidenceError::Log(ExportError::Store(error @ StoreError::Corrupt(_)))) => {
                manifests.push(json!({"file": name, "incomplete": error.to_string()}));
            }
            Err(error) => return Err(error),
        }
    }
    let found = report.document(audit.tenant, None);
    let manifest = json!({
        "format": "portcullis-evidence-1",
        "ledger_head": found["ledger_head"],
        "holds": report.walk.holds(),
        "logs": manifests,
    });
    for (name, value) in [("verify.json", &found), ("manifest.json", &manifest)] {
        let mut file = NewFile::create(folder.join(name))?;
        file.write(format!("{value:#}").as_bytes())?;
        file.finish()?;
    }
    Ok(manifests.len())
}

async fn write_log(audit: &StoreAudit<'_>, session: SessionId, file: &mut NewFile) -> Result<Value, EvidenceError> {
    let key = SessionKey { tenant: audit.tenant, session };
    let mut export = Export::of(&*audit.store, key, None).await.map_err(ExportError::from)?;
    while let Some(lines) = export.next().await? {
        file.write(&lines)?;
    }
    Ok(json!(export.manifest()))
}

/// Where a session's log stands in evidence.
fn place_of(session: SessionId) -> PathBuf {
    Path::new("sessions").join(format!("{session}.ndjson"))
}

/// The logs of a session in every folder of evidence beneath `evidence`.
#[must_use]
pub fn evidence_of(evidence: &Path, session: SessionId) -> Vec<PathBuf> {
    let Ok(folders) = fs::read_dir(evidence) else { return Vec::new() };
    let file = |folder: fs::DirEntry| folder.path().join(place_of(session));
    let mut found: Vec<PathBuf> = folders.flatten().map(file).filter(|file| file.exists()).collect();
    found.sort();
    found
}

/// A file that was not there, for its owner alone.
struct NewFile {
    path: PathBuf,
    file: fs::File,
}

impl NewFile {
    fn create(path: PathBuf) -> Result<Self, EvidenceError> {
        match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => Ok(Self { path, file }),
            Err(source) => Err(EvidenceError::File { file: path, source }),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), EvidenceError> {
        self.file.write_all(bytes).map_err(|source| EvidenceError::File { file: self.path.clone(), source })
    }

    fn finish(self) -> Result<(), EvidenceError> {
        self.file.sync_all().map_err(|source| EvidenceError::File { file: self.path, source })
    }
}
