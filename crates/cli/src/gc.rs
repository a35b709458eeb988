//! `gc`: what could be freed, and freeing it, together with build caches of workspaces that are gone.

use std::path::{Path, PathBuf};

use portcullis::operations::{Garbage, leftover_words};
use portcullis::{ArtifactRow, Leftover, StoreError};
use portcullis_base::Timestamp;
use portcullis_config::caches::{self, Cache};
use portcullis_terminal::render::{self, Term};
use portcullis_terminal::table;
use portcullis_terminal::waiting;
use serde_json::{Value, json};

use crate::args::{GcArgs, Globals};
use crate::exit::{ExitKind, failed};
use crate::person;
use crate::world::World;

pub async fn run(args: &GcArgs, globals: &Globals, term: &Term) -> anyhow::Result<ExitKind> {
    let world = World::existing(globals)?;
    let artifacts = world.artifacts()?;
    let operator = world.operator(person::login(), "portcullis gc");
    let looking = async {
        let found = Garbage::find(&operator, artifacts.clone(), &world.settings.retention).await?;
        Ok::<_, StoreError>((found, left_over_caches(&world).await?))
    };
    let (mut found, caches) = waiting::during(term, "looking for what can go", looking).await?;
    if args.apply {
        free_caches(&caches)?;
        found = found.free(&operator, &*artifacts).await?;
    }
    let freed =
        found.unreferenced.iter().map(|file| file.bytes).chain(found.buried.iter().map(|row| row.artifact.bytes));
    let (files, bytes) = (found.unreferenced.len() + found.buried.len(), freed.sum::<u64>());
    let later: u64 = found.expired.iter().map(|(row, _)| row.artifact.bytes).sum();
    if term.json {
        term.document(&document((&found, &caches), args.apply, bytes, later))?;
        return Ok(ExitKind::Done);
    }
    let cached: u64 = caches.iter().map(|cache| cache.bytes).sum();
    let lines = table(&found, &caches);
    if !lines.is_empty() {
        term.print(&table::table(&["BYTES", "SINCE", "WHAT"], lines))?;
    }
    let done = if args.apply { "freed" } else { "can be freed" };
    term.print(&format!("{}, {} {done}", render::count(files as u64, "file"), render::count(bytes, "byte")))?;
    if !caches.is_empty() {
        let n = render::count(caches.len() as u64, "workspace");
        let are = if caches.len() == 1 { "is" } else { "are" };
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
    if !args.apply && (files > 0 || !found.expired.is_empty() || !caches.is_empty()) {
        term.note(&format!("to free it: {}", world.command("gc --apply")));
    }
    Ok(ExitKind::Done)
}

async fn left_over_caches(world: &World) -> Result<Vec<Cache>, StoreError> {
    let sessions = world.archive.sessions(usize::MAX).await?;
    let workspaces: Vec<PathBuf> =
        sessions.into_iter().filter_map(|summary| summary.row.workspace.map(PathBuf::from)).collect();
    let mut caches = caches::found(&world.settings.home, &workspaces);
    caches.retain(Cache::is_left_over);
    Ok(caches)
}

fn free_caches(found: &[Cache]) -> anyhow::Result<()> {
    for cache in found {
        caches::remove(&cache.folder)
            .map_err(|e| failed(format!("the build caches in {} cannot be removed: {e}", cache.folder.display())))?;
    }
    Ok(())
}

fn table(found: &Garbage, caches: &[Cache]) -> Vec<Vec<String>> {
    let line = |row: &ArtifactRow, since: Option<Timestamp>, why: &str| {
        let since = since.map_or_else(|| "-".to_owned(), |at| at.to_string());
        vec![row.artifact.bytes.to_string(), since, format!("{} of {}, {why}", row.artifact.id, row.session)]
    };
    let file = |file: &Leftover| vec![file.bytes.to_string(), file.modified.to_string(), leftover_words(file)];
    let mut lines: Vec<Vec<String>> = found.unreferenced.iter().map(file).collect();
    lines.extend(found.buried.iter().map(|row| line(row, row.tombstone.map(|stone| stone.at), "expired")));
    lines.extend(found.expired.iter().map(|(row, why)| line(row, None, &format!("over {}", why.key()))));
    lines.extend(caches.iter().map(|cache| {
        let workspace = cache.workspace.as_deref().unwrap_or(Path::new("-")).display().to_string();
        let what = format!("build caches for {}, which is gone", render::exact(&workspace, 200));
        vec![cache.bytes.to_string(), "-".to_owned(), what]
    }));
    lines.extend(found.large.iter().map(|row| line(row, None, "large, and kept")));
    lines
}

fn document((found, caches): (&Garbage, &[Cache]), applied: bool, bytes: u64, later: u64) -> Value {
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
        "caches": caches.iter().map(|cache| {
            json!({"workspace": cache.workspace, "folder": cache.folder, "bytes": cache.bytes})
        }).collect::<Vec<_>>(),
        "large": found.large.iter().map(|row| artifact(row, "large")).collect::<Vec<_>>(),
    })
}
