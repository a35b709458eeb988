//! `approvals watch`: every new ask as it comes. On a terminal one key answers it; elsewhere each is
//! a line, and only Ctrl-C, or a reader that leaves, ends the watch.

use std::collections::BTreeSet;

use portcullis::Reply;
use portcullis_base::AskId;
use portcullis_store::Notices as _;
use tokio::signal::unix::Signal;
use tokio::sync::watch;

use crate::approvals::settle;
use crate::ask::Ask;
use crate::ask_view::{self, Whole};
use crate::exit::Ended;
use crate::keys::{Hint, Key, Keys};
use crate::pages::{Pages, Size};
use crate::person;
use crate::render::{BOLD, Term, styled};
use crate::signals::interrupts;
use crate::world::{LOOK_AGAIN, World};

/// What ends a wait.
enum Woke {
    Changed,
    Key(Key),
    Left,
}

struct Watch<'a> {
    world: &'a World,
    term: &'a Term,
    changes: watch::Receiver<u64>,
    /// Where a person sits.
    keys: Option<Keys>,
    interrupts: Signal,
    /// Shown already, answered or skipped.
    seen: BTreeSet<AskId>,
    hint: Hint,
}

pub async fn run(world: &World, term: &Term) -> anyhow::Result<Ended> {
    let interactive = term.interactive();
    let keys = if interactive { Some(Keys::listen()?) } else { None };
    let (changes, interrupts) = (world.store.changes(), interrupts()?);
    let mut watch = Watch { world, term, changes, keys, interrupts, seen: BTreeSet::new(), hint: Hint::default() };
    term.note(if interactive {
        "waiting for asks of every session; q or Ctrl-C leaves"
    } else {
        "waiting for asks of every session; no terminal, so nothing is answered here; Ctrl-C leaves"
    });
    loop {
        // Seen before reading: what is committed meanwhile wakes the next wait.
        watch.changes.mark_unchanged();
        for ask in Ask::pending(world).await? {
            if !watch.seen.insert(ask.row.ask_id) {
                continue;
            }
            if !interactive {
                watch.line(&ask)?;
            } else if !watch.ask(ask).await? {
                return Ok(Ended::Done);
            }
            watch.hint = Hint::default();
        }
        match watch.wait().await {
            Woke::Left => return Ok(Ended::Done),
            Woke::Key((b'q', _)) => return Ok(Ended::Done),
            Woke::Key((_, typed)) => watch.hint.unknown(watch.term, typed, "nothing new waits for an answer; q leaves"),
            Woke::Changed => {}
        }
    }
}

impl Watch<'_> {
    async fn wait(&mut self) -> Woke {
        // Without a terminal nobody types, and that there is no input ends nothing.
        let typed = async {
            match &mut self.keys {
                Some(keys) => keys.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = self.changes.changed() => if changed.is_ok() { Woke::Changed } else { Woke::Left },
            () = tokio::time::sleep(LOOK_AGAIN) => Woke::Changed,
            key = typed => key.map_or(Woke::Left, Woke::Key),
            _ = self.interrupts.recv() => Woke::Left,
        }
    }

    /// One ask as a line.
    fn line(&self, ask: &Ask) -> anyhow::Result<()> {
        if self.term.json {
            return self.term.bytes(format!("{}\n", ask.document()?).as_bytes());
        }
        let row = &ask.row;
        let (id, tool, touches) = (row.ask_id, ask_view::tool(row), ask_view::touches(row));
        let command = self.world.command(&format!("approvals show {id}"));
        let (folder, session) = (ask_view::folder(ask), row.session_id);
        self.term.stream(&format!("{id} {tool} {touches} in {folder} ({session}): {command}"))
    }

    /// Shows one ask and takes its key; `false` to leave.
    async fn ask(&mut self, ask: Ask) -> anyhow::Result<bool> {
        let whole = Whole::load(self.world, ask).await?;
        let mut pages = Pages::of(&whole.text(self.world, false), Size::of_terminal());
        self.term.print(&pages.next())?;
        let Some(keys) = &mut self.keys else { return Ok(true) };
        let Some(armed) = keys.arm(&mut self.interrupts).await else { return Ok(false) };
        let can_remember = whole.asked.grantable.is_some();
        // Nobody allows what was not shown to its end.
        let choices = |pages: &Pages| match (pages.at_end(), can_remember) {
            (false, _) => "Space shows the next page   d deny   s skip   q leave",
            (true, true) => "a allow once   t this session   p this project   d deny   s skip   q leave",
            (true, false) => "a allow once   d deny   s skip   q leave",
        };
        self.term.note(&styled(BOLD, choices(&pages)));
        loop {
            let shown = pages.at_end();
            let reply = match self.wait().await {
                Woke::Key((_, typed)) if typed < armed => continue,
                Woke::Left | Woke::Key((b'q', _)) => return Ok(false),
                Woke::Key((b' ', _)) if !shown => {
                    self.term.print(&pages.next())?;
                    self.term.note(&styled(BOLD, choices(&pages)));
                    continue;
                }
                Woke::Key((b'a', _)) if shown => Reply::AllowOnce,
                Woke::Key((b't', _)) if shown && can_remember => Reply::AllowSession,
                Woke::Key((b'p', _)) if shown && can_remember => Reply::AllowSaved,
                Woke::Key((b'd', _)) => Reply::Deny,
                Woke::Key((b's', _)) => return Ok(true),
                Woke::Key((_, typed)) => {
                    let words = format!("that key does nothing here; these do: {}", choices(&pages));
                    self.hint.unknown(self.term, typed, &words);
                    continue;
                }
                // Someone else may have answered it.
                Woke::Changed => {
                    let now = Ask::load(self.world, whole.ask.row.ask_id).await?;
                    if now.is_pending() {
                        continue;
                    }
                    self.term.note(&format!("{} meanwhile: {}", now.row.ask_id, ask_view::standing(&now.row)));
                    return Ok(true);
                }
            };
            // A call that fails is that call's matter; the watch goes on.
            if let Err(error) = settle(self.world, &whole.ask.row, person::answer(reply, "cli", None), self.term).await
            {
                self.term.error(&format!("{error:#}"));
            }
            return Ok(true);
        }
    }
}

/// Shows an ask that is longer than the screen to its end, before an allow that was typed as a command. `false` if the
/// person left earlier. A shorter one is not shown: whoever typed its id has seen it.
pub async fn read_through(world: &World, ask: &Ask, term: &Term) -> anyhow::Result<bool> {
    let whole = Whole::load(world, Ask::load(world, ask.row.ask_id).await?).await?;
    let mut pages = Pages::of(&whole.text(world, false), Size::of_terminal());
    if pages.is_one() {
        return Ok(true);
    }
    let (mut keys, mut interrupts) = (Keys::listen()?, interrupts()?);
    let mut hint = Hint::default();
    term.print(&pages.next())?;
    while !pages.at_end() {
        const WORDS: &str = "Space shows the next page; the last one allows it   q leaves, and allows nothing";
        term.note(&styled(BOLD, WORDS));
        let Some(armed) = keys.arm(&mut interrupts).await else { return Ok(false) };
        loop {
            let key = tokio::select! {
                key = keys.next() => key,
                _ = interrupts.recv() => None,
            };
            match key {
                None | Some((b'q', _)) => return Ok(false),
                Some((_, typed)) if typed < armed => {}
                Some((b' ', _)) => break,
                Some((_, typed)) => hint.unknown(term, typed, WORDS),
            }
        }
        term.print(&pages.next())?;
    }
    Ok(true)
}
