//! The questions of a run, answered by its flag or by a person at this terminal.

use portcullis::{Answer, Reply};
use portcullis_store::Notices as _;
use tokio::signal::unix::Signal;

use crate::args::ApprovalMode;
use crate::ask::Ask;
use crate::ask_view::{self, Whole};
use crate::keys::{Hint, Keys};
use crate::person;
use crate::render::{BOLD, Term, styled};
use crate::world::{LOOK_AGAIN, World};

/// What became of a question.
pub enum Answered {
    /// Somebody here said this.
    Said(Box<Answer>),
    /// Somebody else was quicker.
    Settled,
    /// Nobody can answer here.
    Nobody,
    /// Ctrl-C, or the terminal is gone.
    Left,
}

/// The answer that a flag gives; `None` where a person must.
pub fn by_flag(mode: ApprovalMode) -> Option<Answer> {
    match mode {
        ApprovalMode::Ask => None,
        ApprovalMode::Allow => Some(person::answer(Reply::AllowOnce, "flag", None)),
        // Nobody looked at it, and whoever proposed it should not think so.
        ApprovalMode::Deny => {
            let words = "this run answers every ask with no (--approvals deny)".to_owned();
            Some(person::answer(Reply::DenyWithFeedback, "flag", Some(words)))
        }
    }
}

/// One line on a question that somebody else answered, or nobody in time.
pub fn settled(ask: &Ask) -> String {
    format!("{} meanwhile: {}", ask.row.ask_id, ask_view::standing(&ask.row))
}

/// Shows one ask and takes its key.
pub async fn at_terminal(world: &World, ask: Ask, term: &Term, interrupts: &mut Signal) -> anyhow::Result<Answered> {
    if !term.interactive() {
        return Ok(Answered::Nobody);
    }
    let mut changes = world.store.changes();
    let whole = Whole::load(world, ask).await?;
    term.print(&whole.text(world, false))?;
    // Nobody allows what nobody could be shown; the rest of it stands on the screen.
    let shown = whole.diff.is_ok();
    let remembers = shown && whole.asked.grantable.is_some();
    let mut keys = Keys::listen()?;
    let Some(armed) = keys.arm(interrupts).await else { return Ok(Answered::Left) };
    let allow = if shown { "a allow once   " } else { "" };
    let remember = if remembers { "t this session   p this project   " } else { "" };
    let choices = format!("{allow}{remember}d no   b no, because…");
    term.note(&styled(BOLD, &choices));
    let mut hint = Hint::default();
    loop {
        changes.mark_unchanged();
        let (key, typed) = tokio::select! {
            key = keys.next() => match key {
                None => return Ok(Answered::Left),
                Some((_, typed)) if typed < armed => continue,
                Some(key) => key,
            },
            _ = interrupts.recv() => return Ok(Answered::Left),
            () = async { let _ = tokio::time::timeout(LOOK_AGAIN, changes.changed()).await; } => {
                // Someone else may have answered it.
                let now = Ask::load(world, whole.ask.row.ask_id).await?;
                if now.is_pending() {
                    continue;
                }
                term.note(&settled(&now));
                return Ok(Answered::Settled);
            }
        };
        let (reply, words) = match key {
            b'a' if shown => (Reply::AllowOnce, None),
            b't' if remembers => (Reply::AllowSession, None),
            b'p' if remembers => (Reply::AllowSaved, None),
            b'd' | b'n' => (Reply::Deny, None),
            b'b' => {
                term.note("no, because (one line, Enter ends it; empty goes back):");
                let words = tokio::select! {
                    words = keys.line() => words,
                    _ = interrupts.recv() => None,
                };
                match words {
                    None => return Ok(Answered::Left),
                    Some(words) if words.is_empty() => continue,
                    words => (Reply::DenyWithFeedback, words),
                }
            }
            _ => {
                hint.unknown(term, typed, &format!("that key does nothing here; these do: {choices}"));
                continue;
            }
        };
        return Ok(Answered::Said(Box::new(person::answer(reply, "cli", words))));
    }
}
