//! `/undo`: takes back the newest change of the session's file tools that can be, through the gate.

use portcullis::{CallOutcome, CancellationToken, Observed, Profile, Reply};
use portcullis_base::{Code, Digest, Recorded, limits};
use portcullis_terminal::render::{exact, safe_line};
use serde_json::{Value, json};

use super::ModelRun;
use super::changes::{Change, FileChanges, kept, removal};
use crate::exit::failed;
use crate::person;

/// A longer file is not looked at: the file tools do not write one, either.
const FILE_MAX: u64 = 64 << 20;

/// How a change is taken back.
enum UndoWay {
    /// The input of the tool that does it.
    Call(&'static str, Value),
    /// Nothing is left of it.
    Gone,
    /// It stays, and why.
    Stays(String),
}

/// Takes back the newest change that can be; what stays is told. Refused where the file is not as the session left it.
pub async fn undo(work: &ModelRun<'_>) -> anyhow::Result<String> {
    let changed = FileChanges::load(work.world, work.session).await?;
    if changed.files.is_empty() {
        return Err(failed("this session changed no file that could be taken back"));
    }
    let (mut stays, mut passed) = (Vec::new(), Vec::new());
    for change in changed.standing.iter().rev().map(|at| &changed.files[*at]) {
        let target = &change.effect.target;
        // What is below a change that stays is covered by it.
        if passed.contains(&target) {
            continue;
        }
        let shown = exact(change.name(), 200);
        match way(work, change).await? {
            UndoWay::Gone => {}
            UndoWay::Stays(why) => stays.push(format!("{shown} was not taken back: {why}")),
            UndoWay::Call(tool, input) => {
                let observed = make(work, tool, &input).await?;
                if !observed.ok {
                    let why = refused(&observed);
                    return Err(failed(format!("{shown} was not taken back: {why}")));
                }
                stays.push(match change.made() {
                    true => format!("{shown} is removed: this session made it"),
                    false => format!("{shown} is as it was before the last change"),
                });
                return Ok(stays.join("\n"));
            }
        }
        passed.push(target);
    }
    match stays.is_empty() {
        true => Err(failed(
            "nothing is left to take back: this session changed no file, or every change was taken back already",
        )),
        false => Err(failed(stays.join("; "))),
    }
}

/// What can be done about a change, as the file is now.
async fn way(work: &ModelRun<'_>, change: &Change) -> anyhow::Result<UndoWay> {
    let stays = |why: &str| Ok(UndoWay::Stays(why.to_owned()));
    let Some(folder) = work.runtime.workspace() else { return stays("the session has no workspace") };
    let now = match portcullis_config::read_project_file(folder, change.name(), FILE_MAX) {
        Ok(now) => now,
        Err(why) => return Ok(UndoWay::Stays(why)),
    };
    let Some(now) = now else {
        return match change.made() {
            true => Ok(UndoWay::Gone),
            false => stays("it is not there any more; it was removed, or has another name now"),
        };
    };
    if Some(Digest::of(&now)) != change.after {
        return stays("it was changed since, and not by this session's file tools");
    }
    if change.made() {
        let tool = match work.world.settings.profile {
            Profile::Code => "bash",
            Profile::Managed => "shell_run",
        };
        return Ok(UndoWay::Call(tool, removal(change.name())));
    }
    let Some(before) = &change.effect.before else { return stays("what it held before was not kept") };
    let before = kept(work, before).await?;
    let input = json!({"file_path": change.name(), "content": before});
    if fits(&input) {
        return Ok(UndoWay::Call("write", input));
    }
    // Of a file that is too long to be written whole the part that changed is put back.
    let Ok(now) = String::from_utf8(now) else { return stays("it is not text") };
    let Some((old, new)) = part(&now, &before) else { return stays("too much of it changed to be put back at once") };
    let input = json!({"file_path": change.name(), "old_string": old, "new_string": new});
    match fits(&input) {
        true => Ok(UndoWay::Call("edit", input)),
        false => stays("too much of it changed to be put back at once"),
    }
}

/// Whether a tool takes so long an input.
fn fits(input: &Value) -> bool {
    input.to_string().len() <= limits::INPUT_MAX
}

/// The lines of `now` that are not those of `before`, with as many around them as make them the only such ones; and what
/// stood in their place.
fn part<'t>(now: &'t str, before: &'t str) -> Option<(&'t str, &'t str)> {
    let same = |pairs: &mut dyn Iterator<Item = (u8, u8)>| pairs.take_while(|(a, b)| a == b).count();
    let front = same(&mut now.bytes().zip(before.bytes()));
    let room = now.len().min(before.len()) - front;
    let back = same(&mut now.bytes().rev().zip(before.bytes().rev())).min(room);
    let (mut from, mut to) = (front, now.len() - back);
    loop {
        // In whole lines: both texts are the same outside of what changed.
        from = now.as_bytes()[..from].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        to = now.as_bytes()[to..].iter().position(|byte| *byte == b'\n').map_or(now.len(), |at| to + at + 1);
        let old = now.get(from..to)?;
        let end = before.len().checked_sub(now.len() - to)?;
        if old.len() > limits::INPUT_MAX {
            return None;
        }
        if !old.is_empty() && now.matches(old).nth(1).is_none() {
            return Some((old, before.get(from..end)?));
        }
        if from == 0 && to == now.len() {
            return None;
        }
        from = from.saturating_sub(1);
    }
}

/// Makes a call that whoever typed `/undo` has allowed with it. What denies it still does.
async fn make(work: &ModelRun<'_>, tool: &str, input: &Value) -> anyhow::Result<Observed> {
    match work.runtime.call(work.session, tool, &input.to_string()).await? {
        CallOutcome::Observed(seen) => Ok(seen.session_view().clone()),
        CallOutcome::Waiting(ask) => {
            let asked = crate::ask::load(work.world, ask).await?;
            work.world.archive.diff(&asked.row).await?;
            work.runtime.reply(ask, person::answer(Reply::AllowOnce, "cli", None)).await?;
            let cancel = CancellationToken::new();
            Ok(work.runtime.see_through_until(ask, &cancel).await?.observed)
        }
        CallOutcome::Elsewhere(_) | CallOutcome::Queued(_) => {
            Err(failed("the session is in use by another process; nothing was taken back"))
        }
    }
}

/// Why it did not happen, for a person: what a tool says is for a model.
fn refused(observed: &Observed) -> String {
    match &observed.code {
        Recorded::Known(Code::StaleFileBaseline) => {
            "it was changed since, and not by this session's file tools".to_owned()
        }
        code => format!("{code}: {}", safe_line(&observed.summary, 300)),
    }
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn the_part_that_changed_is_whole_lines_that_stand_there_once() {
        let whole = |now: &str, before: &str| {
            let (old, new) = part(now, before).expect("a part");
            assert_eq!(now.matches(old).count(), 1, "{old:?}");
            assert_eq!(now.replacen(old, new, 1), before, "{old:?} {new:?}");
            old.to_owned()
        };
        assert_eq!(whole("1\nb\nc\n", "one\nb\nc\n"), "1\n");
        assert_eq!(whole("x\nx\ny\n", "x\nz\ny\n"), "x\nx\ny\n");
        whole("a\na\na\n", "a\na\n");
        whole("a\na\n", "a\na\na\n");
        whole("é\nü", "é\nö");
        whole("a\nb", "a\nc\nb");
        assert_eq!(part("", "x"), None, "nothing could be named");
    }
}
