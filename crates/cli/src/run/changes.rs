//! What a session changed, from its own records; and taking the last of it back.

use std::collections::HashSet;

use portcullis::harness::context::told;
use portcullis::{CallOutcome, Reply};
use portcullis_base::{ArtifactId, Digest, IntentId, MessageId, SideEffect};
use portcullis_event::{Body, Event, LOCAL_TENANT};
use portcullis_pipeline::ArtifactShelf;
use serde_json::json;

use super::Work;
use crate::exit::failed;
use crate::render::{self, safe_line};
use crate::{ask_view, person};

/// Where tools see the workspace.
const MOUNT: &str = "/workspace/";

/// A change of a file whose contents were kept.
struct Change {
    effect: SideEffect,
    /// What the two artifacts hold. `None`: there was nothing, or it could not be kept.
    before: Option<Digest>,
    after: Option<Digest>,
    /// A call of the model. What a person did beside it, `/undo` among it, is not.
    of_model: bool,
}

/// Changes of files, oldest first; and whether commands ran, which may have changed more.
async fn changed(work: &Work<'_>) -> anyhow::Result<(Vec<Change>, bool)> {
    let mut changes = Vec::new();
    let mut commands = false;
    let mut answers: HashSet<MessageId> = HashSet::new();
    let mut of_model: HashSet<IntentId> = HashSet::new();
    let gather = |events: &[Event]| {
        for event in events {
            match event.body() {
                Body::ModelRequestStart(start) => drop(answers.insert(start.message_id)),
                Body::IntentProposed(intent) if answers.contains(&intent.message_id) => {
                    of_model.insert(intent.intent_id);
                }
                Body::Observed(observed) => {
                    let of_model = of_model.remove(&observed.intent_id);
                    let holds = |id: &Option<String>| {
                        let kept = observed.artifacts.iter().find(|kept| Some(kept.id.to_string()) == *id);
                        kept.map(|kept| kept.sha256)
                    };
                    for effect in &observed.side_effects.items {
                        let (before, after) = (holds(&effect.before), holds(&effect.after));
                        match effect.kind.starts_with("file_") && effect.after.is_some() {
                            true => changes.push(Change { effect: effect.clone(), before, after, of_model }),
                            false => commands = true,
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    };
    work.world.each_page(work.session, 0, gather).await?;
    Ok((changes, commands))
}

/// The changes that were not taken back, oldest first. The log alone says so, whichever process did it: a person's call
/// that gave a file what it held before the last change that stands took that change back, and is none itself.
fn standing(changes: Vec<Change>) -> Vec<Change> {
    let mut standing: Vec<Change> = Vec::new();
    for change in changes {
        let takes_back = |last: &Change| {
            last.effect.target == change.effect.target && last.before.is_some() && last.before == change.after
        };
        if !change.of_model && standing.last().is_some_and(takes_back) {
            standing.pop();
        } else if change.before.is_none() || change.before != change.after {
            standing.push(change);
        }
    }
    standing
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
    let files: Vec<SideEffect> = files.into_iter().map(|change| change.effect).collect();
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

/// Writes back what the file of the last change that stands held before it, through the gate: it is refused if the file
/// is not as the session left it.
pub async fn undo(work: &Work<'_>) -> anyhow::Result<String> {
    let (changes, _) = changed(work).await?;
    if changes.is_empty() {
        return Err(failed("this session changed no file that could be taken back"));
    }
    let changes = standing(changes);
    let Some(Change { effect: last, .. }) = changes.last() else {
        return Err(failed("nothing is left to take back: every change of this session to a file was"));
    };
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
    let file = told::name(name);
    let told = format!("I took your last change to {file} back (/undo); the file is as it was before that change.");
    work.runtime.say(work.session, &person::login(), &told).await?;
    Ok(format!("{} is as it was before the last change", render::exact(name, 200)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(target: &str, before: &str, after: &str, of_model: bool) -> Change {
        let effect = SideEffect {
            kind: "file_modified".to_owned(),
            target: target.to_owned(),
            before: Some(before.to_owned()),
            after: Some(after.to_owned()),
            reversible: true,
        };
        let digest = |text: &str| Some(Digest::of(text.as_bytes()));
        Change { effect, before: digest(before), after: digest(after), of_model }
    }

    fn left(changes: Vec<Change>) -> Vec<(String, Option<String>)> {
        standing(changes).into_iter().map(|change| (change.effect.target, change.effect.before)).collect()
    }

    #[test]
    fn an_undo_is_paired_with_what_it_took_back_and_is_no_change_itself() {
        let edits = || vec![change("a", "1", "2", true), change("b", "x", "y", true), change("a", "2", "3", true)];
        let undone = |more: Vec<Change>| left(edits().into_iter().chain(more).collect());
        let first = ("a".to_owned(), Some("1".to_owned()));
        let second = ("b".to_owned(), Some("x".to_owned()));
        assert_eq!(undone(vec![change("a", "3", "2", false)]), [first.clone(), second]);
        let (one, two) = (change("a", "3", "2", false), change("b", "y", "x", false));
        assert_eq!(undone(vec![one, two]), std::slice::from_ref(&first));
        let (one, two) = (change("a", "3", "2", false), change("b", "y", "x", false));
        assert_eq!(undone(vec![one, two, change("a", "2", "1", false)]), []);
        let again = vec![change("a", "1", "2", true), change("a", "2", "1", false), change("a", "1", "2", true)];
        assert_eq!(left(again), [first]);
    }

    #[test]
    fn what_the_model_put_back_itself_and_what_a_person_wrote_are_changes() {
        let own = vec![change("a", "1", "2", true), change("a", "2", "1", true)];
        assert_eq!(left(own).len(), 2, "the model's own way back is a change that can be taken back");
        let persons = vec![change("a", "1", "2", true), change("a", "2", "9", false)];
        assert_eq!(left(persons).len(), 2, "a person's call that wrote something else");
        assert_eq!(left(vec![change("a", "1", "1", true)]), [], "nothing changed");
    }
}
