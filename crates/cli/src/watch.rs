//! `approvals watch`: every new ask as it comes. On a terminal one key answers it; elsewhere each is
//! a line, and only Ctrl-C, or a reader that leaves, ends the watch.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use portcullis::Reply;
use portcullis_base::AskId;
use portcullis_store::Notices as _;
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr, tcsetattr,
};
use tokio::signal::unix::Signal;
use tokio::sync::{mpsc, watch};

use crate::approvals::settle;
use crate::ask::Ask;
use crate::ask_view::{self, Whole};
use crate::exit::{Ended, interrupts};
use crate::person;
use crate::render::{BOLD, Term, styled};
use crate::world::{LOOK_AGAIN, World};

/// How long an ask stands on the screen before a key can answer it: a key that bounced, or was meant
/// for the ask before, comes sooner.
const ARMING: Duration = Duration::from_millis(500);

/// A terminal that gives every key at once. Ctrl-C still interrupts; dropping it (a panic unwinds,
/// too) restores what was.
struct KeyMode {
    before: Termios,
}

impl KeyMode {
    fn enter() -> io::Result<Self> {
        let stdin = io::stdin();
        let before = tcgetattr(stdin.as_fd())?;
        let mut keys = before.clone();
        keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        keys.special_codes[SpecialCodeIndex::VMIN] = 1;
        keys.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(stdin.as_fd(), OptionalActions::Now, &keys)?;
        Ok(Self { before })
    }
}

impl Drop for KeyMode {
    fn drop(&mut self) {
        // The terminal is gone or it is restored; there is no third thing to do.
        let _ = tcsetattr(io::stdin().as_fd(), OptionalActions::Now, &self.before);
    }
}

/// A key, and when it was read.
type Key = (u8, Instant);

/// Bytes of standard input; the channel closes at its end. The thread ends with the process: a
/// blocked read cannot be called back.
fn keys() -> mpsc::Receiver<Key> {
    let (send, receive) = mpsc::channel(16);
    std::thread::spawn(move || {
        let mut byte = [0u8; 1];
        loop {
            match rustix::io::read(io::stdin().as_fd(), &mut byte) {
                Ok(1) if send.blocking_send((byte[0], Instant::now())).is_ok() => {}
                Err(rustix::io::Errno::INTR) => {}
                _ => return,
            }
        }
    });
    receive
}

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
    keys: Option<mpsc::Receiver<Key>>,
    interrupts: Signal,
    /// Shown already, answered or skipped.
    seen: BTreeSet<AskId>,
}

pub async fn run(world: &World, term: &Term) -> anyhow::Result<Ended> {
    let interactive = term.interactive();
    let _mode = if interactive { Some(KeyMode::enter()?) } else { None };
    let (changes, interrupts) = (world.store.changes(), interrupts()?);
    let mut watch = Watch { world, term, changes, keys: interactive.then(keys), interrupts, seen: BTreeSet::new() };
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
        }
        match watch.wait().await {
            Woke::Left => return Ok(Ended::Done),
            Woke::Key((b'q', _)) => return Ok(Ended::Done),
            Woke::Changed | Woke::Key(_) => {}
        }
    }
}

impl Watch<'_> {
    async fn wait(&mut self) -> Woke {
        // Without a terminal nobody types, and that there is no input ends nothing.
        let typed = async {
            match &mut self.keys {
                Some(keys) => keys.recv().await,
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

    /// Throws away what was typed before now: nobody can have meant an ask that was not on the screen.
    /// `false` to leave.
    async fn arm(&mut self) -> bool {
        tokio::select! {
            () = tokio::time::sleep(ARMING) => {}
            _ = self.interrupts.recv() => return false,
        }
        // The terminal is gone or it is emptied; a lost one shows as the end of the keys.
        let _ = tcflush(io::stdin().as_fd(), QueueSelector::IFlush);
        while self.keys.as_mut().is_some_and(|keys| keys.try_recv().is_ok()) {}
        true
    }

    /// Shows one ask and takes its key; `false` to leave.
    async fn ask(&mut self, ask: Ask) -> anyhow::Result<bool> {
        let whole = Whole::load(self.world, ask).await?;
        self.term.print(&whole.text(self.world, false))?;
        if !self.arm().await {
            return Ok(false);
        }
        // One that the reading thread holds already slips past the emptying; its time gives it away.
        let armed = Instant::now();
        let can_remember = whole.asked.grantable.is_some();
        let remember = if can_remember { "t this session   p this project   " } else { "" };
        self.term.note(&styled(BOLD, &format!("a allow once   {remember}d deny   s skip   q leave")));
        loop {
            let reply = match self.wait().await {
                Woke::Key((_, typed)) if typed < armed => continue,
                Woke::Left | Woke::Key((b'q', _)) => return Ok(false),
                Woke::Key((b'a', _)) => Reply::AllowOnce,
                Woke::Key((b't', _)) if can_remember => Reply::AllowSession,
                Woke::Key((b'p', _)) if can_remember => Reply::AllowSaved,
                Woke::Key((b'd', _)) => Reply::Deny,
                Woke::Key((b's', _)) => return Ok(true),
                Woke::Key(_) => continue,
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
