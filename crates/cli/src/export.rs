//! `sessions export`: a log as lines that anyone can verify, to standard output or into a new file.

use std::io::{self, Write as _};
use std::path::Path;

use portcullis::StoreError;
use portcullis::operations::{EVENTS_AT_ONCE, Manifest};
use portcullis_base::SessionId;
use portcullis_config::DraftFile;
use portcullis_terminal::render::{self, Term};
use portcullis_terminal::waiting::Bar;

use crate::exit::failed;
use crate::world::World;

pub async fn run(
    world: &World,
    session: SessionId,
    with_artifacts: bool,
    out: Option<&Path>,
    term: &Term,
) -> anyhow::Result<()> {
    let head = world.archive.head(session).await?.ok_or(StoreError::NoSession(session))?;
    let Some(path) = out else {
        return written(world, session, with_artifacts, |lines| Ok(term.bytes(lines)?)).await.map(drop);
    };
    let cannot = |e: io::Error| match e.kind() {
        io::ErrorKind::AlreadyExists => failed(format!(
            "{} is there already and stays as it is; name another file with --out, or remove that one first",
            path.display()
        )),
        _ => failed(format!("cannot write {}: {e}; nothing of it is kept", path.display())),
    };
    // Found before the work is done; and again when it is put in its place.
    if path.symlink_metadata().is_ok() {
        return Err(cannot(io::ErrorKind::AlreadyExists.into()));
    }
    // Like the store it comes from: nobody else's to read.
    let mut file = DraftFile::begin(path).map_err(cannot)?;
    let progress = Bar::new(term, head.last_seq, "exporting events");
    let write = |lines: &[u8]| {
        progress.add(EVENTS_AT_ONCE as u64);
        file.write_all(lines).map_err(cannot)
    };
    let manifest = written(world, session, with_artifacts, write).await?;
    drop(progress);
    file.put_new().map_err(cannot)?;
    term.note(&format!("{} in {}", render::count(manifest.events, "event"), render::place(path)));
    Ok(())
}

/// Hands the lines of one log to `write`.
async fn written(
    world: &World,
    session: SessionId,
    with_artifacts: bool,
    mut write: impl FnMut(&[u8]) -> anyhow::Result<()>,
) -> anyhow::Result<Manifest> {
    let artifacts = if with_artifacts { Some(world.artifacts()?) } else { None };
    let mut export = world.export(session, artifacts.as_deref()).await?;
    while let Some(lines) = export.next().await? {
        write(&lines)?;
    }
    Ok(export.manifest())
}
