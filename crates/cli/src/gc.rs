//! `gc`: what could be freed, and freeing it. What an event names is never among it.

use std::sync::Arc;

use portcullis_base::{Clock as _, SystemClock};
use portcullis_event::LOCAL_TENANT;
use portcullis_store::{Leftover, LocalArtifacts, grace, unreferenced};
use serde_json::{Value, json};

use crate::args::{GcArgs, Globals};
use crate::exit::{Ended, failed};
use crate::render::{self, Term};
use crate::spinner;
use crate::world::World;

pub async fn run(args: &GcArgs, globals: &Globals, term: &Term) -> anyhow::Result<Ended> {
    let world = World::existing(globals)?;
    let artifacts = world.artifacts()?;
    let now = SystemClock::new().now();
    let looking = unreferenced(&*world.store, &artifacts, LOCAL_TENANT, now);
    let mut found = spinner::during(term, "looking for what nothing names", looking).await?;
    if args.apply {
        found = free(&artifacts, found)?;
    }
    let bytes: u64 = found.iter().map(|leftover| leftover.bytes).sum();
    if term.json {
        let files: Vec<Value> = found.iter().map(document).collect();
        term.document(&json!({"applied": args.apply, "bytes": bytes, "files": files}))?;
        return Ok(Ended::Done);
    }
    if !found.is_empty() {
        term.print(&render::table(&["BYTES", "SINCE", "WHAT"], found.iter().map(line).collect()))?;
    }
    let (files, done) = (render::count(found.len() as u64, "file"), if args.apply { "freed" } else { "can be freed" });
    term.print(&format!("{files}, {} {done}", render::count(bytes, "byte")))?;
    if !args.apply && !found.is_empty() {
        term.note(&format!("to free it: {}", world.command("gc --apply")));
    }
    Ok(Ended::Done)
}

/// Deletes them and says which went; one that was put again meanwhile stays.
fn free(artifacts: &Arc<LocalArtifacts>, found: Vec<Leftover>) -> anyhow::Result<Vec<Leftover>> {
    let before = grace(SystemClock::new().now());
    let mut gone = Vec::new();
    for leftover in found {
        match artifacts.sweep(&leftover, before) {
            Ok(true) => gone.push(leftover),
            Ok(false) => {}
            Err(e) => {
                let freed = render::count(gone.len() as u64, "file");
                return Err(failed(format!("{} cannot be deleted: {e}; {freed} went before it", what(&leftover))));
            }
        }
    }
    Ok(gone)
}

fn what(leftover: &Leftover) -> String {
    leftover.sha256.map_or_else(|| "never finished".to_owned(), |sha256| format!("content {sha256}, named by nothing"))
}

fn line(leftover: &Leftover) -> Vec<String> {
    vec![leftover.bytes.to_string(), leftover.modified.to_string(), what(leftover)]
}

fn document(leftover: &Leftover) -> Value {
    let why = if leftover.sha256.is_some() { "unreferenced" } else { "unfinished" };
    json!({"sha256": leftover.sha256, "bytes": leftover.bytes, "since": leftover.modified, "why": why})
}
