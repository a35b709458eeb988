//! `audit verify --export`: a log that was exported, verified where there is no store.

use std::path::Path;

use portcullis::operations::{CheckedExport, HeadLine, Manifest};
use portcullis_event::{LOCAL_TENANT, ledger_of};
use portcullis_terminal::render::{self, GREEN, RED, Term, exact, styled};

use crate::audit::name_of;
use crate::exit::{ExitKind, usage};

pub fn run(path: &Path, against: Option<HeadLine>, term: &Term) -> anyhow::Result<ExitKind> {
    let manifest = Manifest::read(path)?;
    if against.is_some() && manifest.session_id != ledger_of(LOCAL_TENANT) {
        return Err(usage(format!(
            "--against holds the ledger against a saved head, and {} is the log of {}; leave it out",
            path.display(),
            manifest.session_id
        )));
    }
    let checked = CheckedExport::of(path, manifest, against)?;
    if term.json {
        term.document(&checked.document(path, LOCAL_TENANT))?;
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
    let head = checked.head.map(|head| format!(", head {head}")).unwrap_or_default();
    format!("{} {}: {events}, consistent{head}", styled(GREEN, "ok"), name_of(checked.manifest.session_id))
}
