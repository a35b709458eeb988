//! What a session changed, from its own records.

use std::collections::{HashMap, HashSet};

use portcullis::SessionId;
use portcullis_base::{ArtifactId, Digest, IntentId, MessageId, SideEffect};
use portcullis_event::facts::text_of;
use portcullis_event::{Body, Event};
use portcullis_terminal::render::{quoted, safe_line};
use serde_json::{Value, json};

use super::ModelRun;
use crate::ask_view;
use crate::exit::failed;
use crate::hints;
use crate::world::World;

/// Where tools see the workspace.
const MOUNT: &str = "/workspace/";

/// A change of a file whose contents were kept.
pub struct Change {
    pub effect: SideEffect,
    /// What the two artifacts hold. `None`: there was nothing, or it could not be kept.
    pub before: Option<Digest>,
    pub after: Option<Digest>,
    /// A call of the model. What a person did beside it, `/undo` among it, is not.
    of_model: bool,
}

impl Change {
    /// The file as a person names it.
    pub fn name(&self) -> &str {
        self.effect.target.strip_prefix(MOUNT).unwrap_or(&self.effect.target)
    }

    /// Nothing was there before.
    pub fn made(&self) -> bool {
        self.effect.kind == "file_created"
    }
}

/// The input of the command that takes a file away which the session made. The log knows it by this.
pub fn removal(name: &str) -> Value {
    json!({"command": format!("rm -- {}", quoted(name.as_bytes()))})
}

/// What the model is told of a change that was taken back.
pub fn note(name: &str) -> String {
    let file = portcullis::harness::context::quoted::name(name);
    format!("I took your last change to {file} back (/undo); the file is as it was before that change.")
}

/// What a log says about files.
#[derive(Default)]
pub struct FileChanges {
    /// Changes, oldest first.
    pub files: Vec<Change>,
    /// Those that were not taken back.
    pub standing: Vec<usize>,
    /// Commands ran, which may have changed more.
    pub commands: bool,
    /// What was taken back, and the model has not heard of: the notes that tell it.
    pub untold: Vec<String>,
}

impl FileChanges {
    pub async fn load(world: &World, session: SessionId) -> anyhow::Result<Self> {
        let (mut changed, mut calls) = (Self::default(), Calls::default());
        let gather = |events: &[Event]| {
            events.iter().for_each(|event| changed.take(event, &mut calls));
        };
        world.archive.each_page(session, 0, gather).await?;
        Ok(changed)
    }

    fn take(&mut self, event: &Event, calls: &mut Calls) {
        match event.body() {
            Body::ModelRequestStart(start) => drop(calls.answers.insert(start.message_id)),
            Body::IntentProposed(intent) if calls.answers.contains(&intent.message_id) => {
                calls.of_model.insert(intent.intent_id);
            }
            Body::IntentProposed(intent) => drop(calls.of_people.insert(intent.intent_id, intent.raw_input)),
            Body::Observed(observed) => {
                let of_model = calls.of_model.remove(&observed.intent_id);
                let input = calls.of_people.remove(&observed.intent_id);
                if let Some(input) = input.filter(|_| observed.ok) {
                    self.removed(&input);
                }
                let holds = |id: &Option<String>| {
                    let kept = observed.artifacts.iter().find(|kept| Some(kept.id.to_string()) == *id);
                    kept.map(|kept| kept.sha256)
                };
                for effect in &observed.side_effects.items {
                    let (before, after) = (holds(&effect.before), holds(&effect.after));
                    match effect.kind.starts_with("file_") && effect.after.is_some() {
                        true => self.changed(Change { effect: effect.clone(), before, after, of_model }),
                        false => self.commands = true,
                    }
                }
            }
            Body::UserMessage(message) => {
                let said = text_of(&message.content);
                if let Some(at) = self.untold.iter().position(|note| *note == said) {
                    self.untold.remove(at);
                }
            }
            _ => {}
        }
    }

    /// The log alone says what was taken back, whichever process did it: a person's call that gave a file what it held
    /// before the last change to it that stands took that change back, and is none itself.
    fn changed(&mut self, change: Change) {
        let last = self.last_of(&change.effect.target);
        let takes_back = |last: &Change| last.before.is_some() && last.before == change.after;
        let taken = last.filter(|at| !change.of_model && takes_back(&self.files[self.standing[*at]]));
        if let Some(at) = taken {
            self.took_back(at);
        } else if change.before.is_none() || change.before != change.after {
            self.standing.push(self.files.len());
        }
        self.files.push(change);
    }

    /// A person's command took a file away that the session had made.
    fn removed(&mut self, input: &Value) {
        let made = |change: &Change| change.made() && removal(change.name()) == *input;
        let found = self.standing.iter().rposition(|at| made(&self.files[*at]));
        if let Some(at) = found {
            self.took_back(at);
        }
    }

    fn last_of(&self, target: &str) -> Option<usize> {
        self.standing.iter().rposition(|at| self.files[*at].effect.target == target)
    }

    fn took_back(&mut self, at: usize) {
        let change = self.standing.remove(at);
        self.untold.push(note(self.files[change].name()));
    }
}

/// Calls that have not ended, and who made them.
#[derive(Default)]
struct Calls {
    answers: HashSet<MessageId>,
    of_model: HashSet<IntentId>,
    of_people: HashMap<IntentId, Value>,
}

/// What an artifact of this session holds.
pub async fn kept(work: &ModelRun<'_>, id: &str) -> anyhow::Result<String> {
    let gone = |why: &dyn std::fmt::Display| failed(format!("what the file held is not kept any more: {why}"));
    let id: ArtifactId = id.parse().map_err(|e| gone(&e))?;
    let kept = work.world.archive.artifact(id, work.session).await.map_err(|e| gone(&hints::explained(&e)))?;
    String::from_utf8(kept.bytes).map_err(|_| failed("it is not text"))
}

async fn side(work: &ModelRun<'_>, side: Option<&String>) -> anyhow::Result<String> {
    match side {
        Some(id) => kept(work, id).await,
        None => Ok(String::new()),
    }
}

/// Each file as it was before the session's first change, against its last.
pub async fn diff(work: &ModelRun<'_>) -> anyhow::Result<String> {
    let FileChanges { files, commands, .. } = FileChanges::load(work.world, work.session).await?;
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
                text.push_str(&ask_view::changes(&portcullis::unified_diff(&name, Some(&before), &after).text));
            }
            (Err(error), _) | (_, Err(error)) => {
                text.push_str(&format!("{name}: {}\n", hints::explained(error.as_ref())))
            }
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
        let mut changed = FileChanges::default();
        changes.into_iter().for_each(|change| changed.changed(change));
        let standing = changed.standing.iter().map(|at| &changed.files[*at].effect);
        standing.map(|effect| (effect.target.clone(), effect.before.clone())).collect()
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
