//! What a session changed, from its own records; and taking the last of it back.

use portcullis::{CallOutcome, Reply};
use portcullis_base::{ArtifactId, SideEffect};
use portcullis_event::LOCAL_TENANT;
use portcullis_pipeline::ArtifactShelf;
use serde_json::json;

use super::Work;
use crate::exit::failed;
use crate::render::{self, safe_line};
use crate::{ask_view, person};

/// Where tools see the workspace.
const MOUNT: &str = "/workspace/";

/// Changes of files whose contents were kept, oldest first; and whether commands ran, which may have changed more.
async fn changed(work: &Work<'_>) -> anyhow::Result<(Vec<SideEffect>, bool)> {
    let mut files = Vec::new();
    let mut commands = false;
    for observed in work.observed(0).await? {
        for effect in observed.side_effects.items {
            match effect.kind.starts_with("file_") && effect.after.is_some() {
                true => files.push(effect),
                false => commands = true,
            }
        }
    }
    Ok((files, commands))
}

/// What an artifact of this session holds.
async fn kept(work: &Work<'_>, id: &str) -> anyhow::Result<String> {
    let gone = |why: &dyn std::fmt::Display| failed(format!("what the file held is not kept any more: {why}"));
    let id: ArtifactId = id.parse().map_err(|e| gone(&e))?;
    let shelf = ArtifactShelf::new(work.world.store.clone(), work.world.artifacts()?, LOCAL_TENANT);
    let (_, window) = shelf.open(id, Some(work.session)).await.map_err(|e| gone(&e))?;
    let bytes = window.slice(0, window.len()).map_err(|e| gone(&e))?;
    String::from_utf8(bytes.to_vec()).map_err(|_| failed("it is not text"))
}

async fn side(work: &Work<'_>, side: Option<&String>) -> anyhow::Result<String> {
    match side {
        Some(id) => kept(work, id).await,
        None => Ok(String::new()),
    }
}

/// Each file as it was before the session's first change, against its last.
pub async fn diff(work: &Work<'_>) -> anyhow::Result<String> {
    let (files, commands) = changed(work).await?;
    let mut text = String::new();
    let mut seen: Vec<&str> = Vec::new();
    for first in &files {
        if seen.contains(&first.target.as_str()) {
            continue;
        }
        seen.push(&first.target);
        let last = files.iter().rev().find(|later| later.target == first.target).unwrap_or(first);
        let (before, after) = (side(work, first.before.as_ref()).await, side(work, last.after.as_ref()).await);
        let name = safe_line(&first.target, 200);
        match (before, after) {
            (Ok(before), Ok(after)) => {
                let changes = similar::TextDiff::from_lines(&before, &after);
                let unified = changes.unified_diff().header(&name, &name).to_string();
                text.push_str(&render::diff(&unified));
            }
            (Err(error), _) | (_, Err(error)) => text.push_str(&format!("{name}: {error}\n")),
        }
    }
    if files.is_empty() {
        text.push_str("no file was changed by this session's file tools\n");
    }
    if commands {
        text.push_str("commands ran as well; what they changed is not in here (`git diff` may show it)\n");
    }
    Ok(text)
}

/// Writes back what the last changed file held before, through the gate: it is refused if the file is not as the session
/// left it.
pub async fn undo(work: &Work<'_>) -> anyhow::Result<String> {
    let (files, _) = changed(work).await?;
    let last = files.last().ok_or_else(|| failed("this session changed no file that could be taken back"))?;
    let name = last.target.strip_prefix(MOUNT).unwrap_or(&last.target);
    let Some(before) = &last.before else {
        return Err(failed(format!("{name} was made by this session; nothing was there before: remove it yourself")));
    };
    let input = json!({"file_path": name, "content": kept(work, before).await?}).to_string();
    let observed = match work.runtime.call(work.session, "write", &input).await? {
        CallOutcome::Observed(seen) => seen.session_view().clone(),
        CallOutcome::Waiting(ask) => {
            // Whoever typed it has answered it.
            let asked = crate::ask::Ask::load(work.world, ask).await?;
            ask_view::diff(work.world, &asked.row).await?;
            work.runtime.reply(ask, person::answer(Reply::AllowOnce, "cli", None)).await?;
            let cancel = portcullis::CancellationToken::new();
            work.runtime.see_through_until(ask, &cancel).await?.observed
        }
        CallOutcome::Elsewhere(_) | CallOutcome::Queued(_) => {
            return Err(failed("the session is in use by another process; nothing was taken back"));
        }
    };
    if !observed.ok {
        let why = safe_line(&observed.summary, 300);
        return Err(failed(format!("{name} was not taken back: {}: {why}", observed.code)));
    }
    // The model must not go on believing that its change is there.
    let told = format!("I took your last change to {name} back (/undo); the file is as it was before that change.");
    work.runtime.say(work.session, &person::login(), &told).await?;
    Ok(format!("{name} is as it was before the last change"))
}
