//! `approvals watch`: every new ask as it comes. On a terminal a key selects an answer and Enter confirms it; elsewhere each
//! is a line, and only Ctrl-C, or a reader that leaves, ends the watch.

use std::collections::BTreeSet;
use std::io;
use std::time::Instant;

use portcullis::Reply;
use portcullis::operations::AskView;
use portcullis::operations::ask_words;
use portcullis_base::AskId;
use portcullis_terminal::choice::{Choice, Chooser, Step};
use portcullis_terminal::mode;
use portcullis_terminal::pages::{Pages, Size};
use portcullis_terminal::render::{BOLD, Term, styled};
use portcullis_terminal::signals::interrupts;
use portcullis_terminal::typing::Input;
use tokio::signal::unix::Signal;
use tokio::sync::watch;

use crate::approvals::answer_and_run;
use crate::ask;
use crate::ask_sheet::Sheet;
use crate::ask_text::AskDetail;
use crate::ask_view::{self, ShownAsk};
use crate::exit::ExitKind;
use crate::hints;
use crate::person;
use crate::run::typed::TypedInput;
use crate::world::{LOOK_AGAIN, World};

/// What a watch offers besides an allow.
const BESIDES: &[Choice] = &[Choice::No, Choice::Skip, Choice::Leave];

/// What ends a wait.
enum WatchEvent {
    Changed,
    Typed(Input, Instant),
    Left,
}

struct Watch<'a> {
    world: &'a World,
    term: &'a Term,
    changes: watch::Receiver<u64>,
    /// Where a person sits.
    typed: Option<TypedInput>,
    interrupts: Signal,
    /// Shown already, answered or skipped.
    seen: BTreeSet<AskId>,
    /// It was said what keys do, since the last ask.
    hinted: bool,
}

pub async fn run(world: &World, term: &Term) -> anyhow::Result<ExitKind> {
    let interactive = term.interactive();
    let typed = if interactive { Some(keys(term)?) } else { None };
    let (changes, interrupts) = (world.archive.changes_of_asks(), interrupts()?);
    let mut watch = Watch { world, term, changes, typed, interrupts, seen: BTreeSet::new(), hinted: false };
    term.note(if interactive {
        "waiting for asks of every session; q or Ctrl-C leaves"
    } else {
        "waiting for asks of every session; no terminal, so nothing is answered here; Ctrl-C leaves"
    });
    loop {
        // Seen before reading: what is committed meanwhile wakes the next wait.
        watch.changes.mark_unchanged();
        for ask in ask::pending(world).await? {
            if !watch.seen.insert(ask.row.ask_id) {
                continue;
            }
            if !interactive {
                watch.line(&ask)?;
            } else if !watch.ask(ask).await? {
                return Ok(ExitKind::Done);
            }
            watch.hinted = false;
        }
        match watch.wait().await {
            WatchEvent::Left => return Ok(ExitKind::Done),
            WatchEvent::Typed(Input::Char('q'), _) => return Ok(ExitKind::Done),
            WatchEvent::Typed(..) => watch.hint("nothing new waits for an answer; q leaves"),
            WatchEvent::Changed => {}
        }
    }
}

/// What is typed from now on, key by key.
fn keys(term: &Term) -> io::Result<TypedInput> {
    mode::keep()?;
    let mut typed = TypedInput::new(term);
    typed.listen();
    typed.by_keys(true);
    Ok(typed)
}

impl Watch<'_> {
    async fn wait(&mut self) -> WatchEvent {
        // Without a terminal nobody types, and that there is no input ends nothing.
        let typed = async {
            match &mut self.typed {
                Some(typed) => typed.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = self.changes.changed() => if changed.is_ok() { WatchEvent::Changed } else { WatchEvent::Left },
            () = tokio::time::sleep(LOOK_AGAIN) => WatchEvent::Changed,
            input = typed => input.map_or(WatchEvent::Left, |(input, at)| WatchEvent::Typed(input, at)),
            _ = self.interrupts.recv() => WatchEvent::Left,
        }
    }

    fn hint(&mut self, words: &str) {
        if !std::mem::replace(&mut self.hinted, true) {
            self.term.note(words);
        }
    }

    /// One ask as a line.
    fn line(&self, ask: &AskView) -> anyhow::Result<()> {
        if self.term.json {
            return Ok(self.term.bytes(format!("{}\n", ask.document()?).as_bytes())?);
        }
        let row = &ask.row;
        let (id, tool, touches) = (row.ask_id, ask_words::tool(row), ask_words::touches(row));
        let command = self.world.command(&format!("approvals show {id}"));
        let (folder, session) = (ask_words::folder(ask), row.session_id);
        Ok(self.term.stream(&format!("{id} {tool} {touches} in {folder} ({session}): {command}"))?)
    }

    /// Shows one ask and takes its answer; `false` to leave.
    async fn ask(&mut self, ask: AskView) -> anyhow::Result<bool> {
        let whole = ShownAsk::load(self.world, ask).await?;
        let (mut sheet, first) = Sheet::new(whole, BESIDES);
        self.page(&mut sheet, &first)?;
        loop {
            let (input, at) = match self.wait().await {
                WatchEvent::Left => return Ok(false),
                WatchEvent::Typed(input, at) => (input, at),
                // Someone else may have answered it.
                WatchEvent::Changed => {
                    let now = ask::load(self.world, sheet.whole.0.ask.row.ask_id).await?;
                    if now.is_pending() {
                        continue;
                    }
                    self.term.note(&format!("{} meanwhile: {}", now.row.ask_id, ask_words::standing(&now.row)));
                    return Ok(true);
                }
            };
            let line = self.typed.as_ref().map_or("", TypedInput::line);
            let step = match sheet.hear(input, at, line) {
                Ok(step) => step,
                Err(page) => {
                    self.page(&mut sheet, &page)?;
                    continue;
                }
            };
            let reply = match step {
                // A page was shown for it, or it is not offered here.
                Step::Nothing | Step::NextPage | Step::AllFacts | Step::Reason(_) => continue,
                Step::EnterTooSoon => {
                    self.term.note(&sheet.chooser.selection().unwrap_or_default());
                    continue;
                }
                Step::Cleared => {
                    self.offer_again("nothing is selected", &sheet.chooser);
                    continue;
                }
                Step::NoAnswer(why) => {
                    self.offer_again(&why, &sheet.chooser);
                    continue;
                }
                Step::Selected(_) => {
                    // Before it is drawn: whoever sees it may be quick.
                    let shown = Instant::now();
                    self.term.note(&sheet.chooser.selection().unwrap_or_default());
                    sheet.chooser.selection_is_shown(shown);
                    continue;
                }
                Step::Text(inputs) => {
                    self.write(inputs);
                    self.hint(&format!(
                        "words go nowhere here, and Enter or Escape drops them; {}",
                        sheet.chooser.line()
                    ));
                    continue;
                }
                Step::Confirmed(Choice::Once) => Reply::AllowOnce,
                Step::Confirmed(Choice::Session) => Reply::AllowSession,
                Step::Confirmed(Choice::Project) => Reply::AllowSaved,
                Step::Confirmed(Choice::No | Choice::Because) => Reply::Deny,
                Step::Confirmed(Choice::Skip | Choice::NextPage | Choice::AllFacts) => return Ok(true),
                Step::Confirmed(Choice::Leave) => return Ok(false),
            };
            // A call that fails is that call's matter; the watch goes on.
            if let Err(error) =
                answer_and_run(self.world, &sheet.whole.0.ask.row, person::answer(reply, "cli", None), self.term).await
            {
                self.term.error(&hints::explained_chain(&error));
            }
            return Ok(true);
        }
    }

    /// A page, and the choices below it.
    fn page(&self, sheet: &mut Sheet, page: &str) -> anyhow::Result<()> {
        self.term.print(page)?;
        self.term.note(&styled(BOLD, &sheet.chooser.line()));
        sheet.chooser.appeared(Instant::now());
        Ok(())
    }

    /// Empties the line and shows the choices below whatever else was shown.
    fn offer_again(&mut self, why: &str, chooser: &Chooser) {
        if let Some(typed) = &mut self.typed {
            typed.take_line();
        }
        self.term.note(why);
        self.term.note(&styled(BOLD, &chooser.line()));
    }

    /// Words are for nobody here. They are kept until their line ends, so that no letter of them is taken for a key.
    fn write(&mut self, inputs: Vec<Input>) {
        let Some(typed) = &mut self.typed else { return };
        for input in inputs {
            typed.apply(input);
        }
    }
}

/// Shows an ask that is longer than the screen to its end, before an allow that was typed as a command. `false` if the
/// person left earlier. A shorter one is not shown: whoever typed its id has seen it.
pub async fn read_through(world: &World, ask: &AskView, term: &Term) -> anyhow::Result<bool> {
    const WORDS: &str = "Space shows the next page; the last one allows it   q leaves, and allows nothing";
    let whole = ShownAsk::load(world, ask::load(world, ask.row.ask_id).await?).await?;
    let about = ask_view::about(&ask.row);
    let mut pages = Pages::of(whole.text(AskDetail::Short), about, WORDS.to_owned(), Size::of_terminal());
    if pages.is_one() {
        return Ok(true);
    }
    let mut typed = keys(term)?;
    let mut interrupts = interrupts()?;
    term.print(&pages.next_page())?;
    while !pages.at_end() {
        term.note(&styled(BOLD, WORDS));
        let shown = Instant::now();
        loop {
            let input = tokio::select! {
                input = typed.next() => input,
                _ = interrupts.recv() => None,
            };
            match input {
                None | Some((Input::Char('q') | Input::Escape | Input::End, _)) => return Ok(false),
                // A key that was typed before the page was shown is no sign that it was read.
                Some((Input::Char(' '), at)) if at > shown => break,
                Some(_) => {}
            }
        }
        pages.follow(Size::of_terminal());
        term.print(&pages.next_page())?;
        // What is on the screen now may be less than the page.
        pages.follow(Size::of_terminal());
    }
    Ok(true)
}
