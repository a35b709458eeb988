//! `gc`: what could be freed, and freeing it. What an event names is among it only where a retention policy says so: its
//! row becomes a tombstone first, and its bytes go a day later.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_base::{ArtifactId, Clock as _, Digest, SystemClock, Timestamp};
use portcullis_event::LOCAL_TENANT;
use portcullis_event::facts::ArtifactsExpired;
use portcullis_store::{
    ArtifactRow, HeldArtifacts, Leftover, LocalArtifacts, Log as _, Retain, RetentionLimit, StoreError, grace,
    unreferenced,
};
use serde_json::{Value, json};

use crate::args::{GcArgs, Globals};
use crate::caches::{self, Cache};
use crate::exit::{ExitKind, failed};
use crate::loss;
use crate::render::{self, Term};
use crate::spinner;
use crate::world::World;

/// From this size on an artifact is worth a line, even if nothing lets it go.
const LARGE: u64 = 1 << 20;
/// Lines of large ones.
const LARGE_SHOWN: usize = 10;
/// Artifacts that become tombstones in one transaction.
const BURIED_AT_ONCE: usize = 500;

/// What was found, each kind largest first.
struct Garbage {
    /// Files that nothing names.
    unreferenced: Vec<Leftover>,
    /// Artifacts over a limit of the policy.
    expired: Vec<(ArtifactRow, RetentionLimit)>,
    /// Contents of tombstones whose grace is over.
    buried: Vec<ArtifactRow>,
    /// The largest that stay.
    large: Vec<ArtifactRow>,
    /// Build caches of workspaces that are gone.
    caches: Vec<Cache>,
}

pub async fn run(args: &GcArgs, globals: &Globals, term: &Term) -> anyhow::Result<ExitKind> {
    let world = World::existing(globals)?;
    let artifacts = world.artifacts()?;
    let looking = look(&world, &artifacts, SystemClock::new().now());
    let mut found = spinner::during(term, "looking for what can go", looking).await?;
    if args.apply {
        found.caches = free_caches(found.caches)?;
        found.unreferenced = free(&artifacts, found.unreferenced)?;
        found.buried = free_buried(&world, &artifacts, found.buried).await?;
        found.expired = bury(&world, found.expired).await?;
    }
    let freed =
        found.unreferenced.iter().map(|file| file.bytes).chain(found.buried.iter().map(|row| row.artifact.bytes));
    let (files, bytes) = (found.unreferenced.len() + found.buried.len(), freed.sum::<u64>());
    let later: u64 = found.expired.iter().map(|(row, _)| row.artifact.bytes).sum();
    if term.json {
        term.document(&document(&found, args.apply, bytes, later))?;
        return Ok(ExitKind::Done);
    }
    let cached: u64 = found.caches.iter().map(|cache| cache.bytes).sum();
    let lines = table(&found);
    if !lines.is_empty() {
        term.print(&render::table(&["BYTES", "SINCE", "WHAT"], lines))?;
    }
    let done = if args.apply { "freed" } else { "can be freed" };
    term.print(&format!("{}, {} {done}", render::count(files as u64, "file"), render::count(bytes, "byte")))?;
    if !found.caches.is_empty() {
        let n = render::count(found.caches.len() as u64, "workspace");
        let are = if found.caches.len() == 1 { "is" } else { "are" };
        term.print(&format!("{} of build caches for {n} that {are} gone {done}", render::size(cached)))?;
    }
    if !found.expired.is_empty() {
        let expired = format!(
            "{} of {} by the retention policy",
            render::count(later, "byte"),
            render::count(found.expired.len() as u64, "artifact"),
        );
        let when = "their bytes go with a `gc --apply` a day later; hash and size stay";
        term.print(&match args.apply {
            true => format!("{expired} expired; {when}"),
            false => format!("{expired} would expire; {when}"),
        })?;
    }
    if !args.apply && (files > 0 || !found.expired.is_empty() || !found.caches.is_empty()) {
        term.note(&format!("to free it: {}", world.command("gc --apply")));
    }
    Ok(ExitKind::Done)
}

async fn look(world: &World, artifacts: &Arc<LocalArtifacts>, now: Timestamp) -> Result<Garbage, StoreError> {
    let unreferenced = unreferenced(&*world.store, artifacts, LOCAL_TENANT, now).await?;
    let held = HeldArtifacts::read(&*world.store, LOCAL_TENANT, now).await?;
    let expired = held.expired(&world.settings.retention, now);
    let going = |row: &ArtifactRow| expired.iter().any(|(other, _)| other.artifact.sha256 == row.artifact.sha256);
    let mut large = held.large(LARGE, LARGE_SHOWN + expired.len());
    large.retain(|row| !going(row));
    large.truncate(LARGE_SHOWN);
    let caches = left_over_caches(world).await?;
    Ok(Garbage { unreferenced, buried: held.freeable(now), large, expired, caches })
}

async fn left_over_caches(world: &World) -> Result<Vec<Cache>, StoreError> {
    let sessions = world.store.sessions(LOCAL_TENANT, usize::MAX).await?;
    let workspaces: Vec<PathBuf> =
        sessions.into_iter().filter_map(|summary| summary.row.workspace.map(PathBuf::from)).collect();
    let mut caches = caches::found(&world.settings.home, &workspaces);
    caches.retain(Cache::is_left_over);
    Ok(caches)
}

fn free_caches(found: Vec<Cache>) -> anyhow::Result<Vec<Cache>> {
    for cache in &found {
        caches::remove(&cache.folder)
            .map_err(|e| failed(format!("the build caches in {} cannot be removed: {e}", cache.folder.display())))?;
    }
    Ok(found)
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

/// The rows become tombstones, durably; only a later run takes the bytes.
async fn bury(
    world: &World,
    expired: Vec<(ArtifactRow, RetentionLimit)>,
) -> anyhow::Result<Vec<(ArtifactRow, RetentionLimit)>> {
    let mut buried = Vec::new();
    for some in expired.chunks(BURIED_AT_ONCE) {
        let ids: Vec<ArtifactId> = some.iter().map(|(row, _)| row.artifact.id).collect();
        // First, so that no row says it alone; what is said of an artifact that then stays changes nothing.
        loss::in_operator_log(world, |by| ArtifactsExpired { by, artifacts: ids.clone() }).await?;
        let changed = world.store.retain(LOCAL_TENANT, Retain::Bury(ids)).await?;
        let did = |row: &ArtifactRow| changed.iter().any(|other| other.artifact.id == row.artifact.id);
        buried.extend(some.iter().filter(|(row, _)| did(row)).cloned());
    }
    Ok(buried)
}

/// Takes the bytes of tombstones: the file first, then the row says that they are gone. A crash in between is made up
/// for by the next run.
async fn free_buried(
    world: &World,
    artifacts: &Arc<LocalArtifacts>,
    buried: Vec<ArtifactRow>,
) -> anyhow::Result<Vec<ArtifactRow>> {
    let before = grace(SystemClock::new().now());
    let mut gone: Vec<Digest> = Vec::new();
    for row in &buried {
        let sha256 = row.artifact.sha256;
        let swept = match artifacts.file_of(LOCAL_TENANT, sha256) {
            Ok(None) => Ok(true),
            Ok(Some(file)) => artifacts.sweep(&file, before),
            Err(e) => Err(e),
        };
        match swept {
            Ok(true) => gone.push(sha256),
            // It was put again meanwhile: someone is about to name it.
            Ok(false) => {}
            Err(e) => return Err(failed(format!("content {sha256} cannot be deleted: {e}"))),
        }
    }
    let freed = world.store.retain(LOCAL_TENANT, Retain::Free { contents: gone, before }).await?;
    let did = |row: &ArtifactRow| freed.iter().any(|other| other.artifact.id == row.artifact.id);
    Ok(buried.into_iter().filter(did).collect())
}

fn what(leftover: &Leftover) -> String {
    leftover.sha256.map_or_else(|| "never finished".to_owned(), |sha256| format!("content {sha256}, named by nothing"))
}

fn table(found: &Garbage) -> Vec<Vec<String>> {
    let line = |row: &ArtifactRow, since: Option<Timestamp>, why: &str| {
        let since = since.map_or_else(|| "-".to_owned(), |at| at.to_string());
        vec![row.artifact.bytes.to_string(), since, format!("{} of {}, {why}", row.artifact.id, row.session)]
    };
    let file = |file: &Leftover| vec![file.bytes.to_string(), file.modified.to_string(), what(file)];
    let mut lines: Vec<Vec<String>> = found.unreferenced.iter().map(file).collect();
    lines.extend(found.buried.iter().map(|row| line(row, row.tombstone.map(|stone| stone.at), "expired")));
    lines.extend(found.expired.iter().map(|(row, why)| line(row, None, &format!("over {}", why.key()))));
    lines.extend(found.caches.iter().map(|cache| {
        let workspace = cache.workspace.as_deref().unwrap_or(Path::new("-")).display().to_string();
        let what = format!("build caches for {}, which is gone", render::exact(&workspace, 200));
        vec![cache.bytes.to_string(), "-".to_owned(), what]
    }));
    lines.extend(found.large.iter().map(|row| line(row, None, "large, and kept")));
    lines
}

fn document(found: &Garbage, applied: bool, bytes: u64, later: u64) -> Value {
    let artifact = |row: &ArtifactRow, why: &str| {
        let artifact = &row.artifact;
        json!({
            "artifact_id": artifact.id, "session_id": row.session, "sha256": artifact.sha256, "bytes": artifact.bytes,
            "why": why,
        })
    };
    let file = |file: &Leftover| {
        let why = if file.sha256.is_some() { "unreferenced" } else { "unfinished" };
        json!({"sha256": file.sha256, "bytes": file.bytes, "since": file.modified, "why": why})
    };
    let mut files: Vec<Value> = found.unreferenced.iter().map(file).collect();
    files.extend(found.buried.iter().map(|row| artifact(row, "expired")));
    json!({
        "applied": applied,
        "bytes": bytes,
        "files": files,
        "expired": found.expired.iter().map(|(row, why)| artifact(row, why.key())).collect::<Vec<_>>(),
        "expired_bytes": later,
        "caches": found.caches.iter().map(|cache| {
            json!({"workspace": cache.workspace, "folder": cache.folder, "bytes": cache.bytes})
        }).collect::<Vec<_>>(),
        "large": found.large.iter().map(|row| artifact(row, "large")).collect::<Vec<_>>(),
    })
}
