//! The screen of a run while it goes on: text as it comes, one line a call, the line that is typed below everything. Programs
//! get one document a thing that happened.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io::{self, IsTerminal as _};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use portcullis::harness::{Live, LiveEvent, Watcher};
use portcullis_base::{SessionId, WakeId};
use portcullis_pipeline::{Gate, Progress};
use portcullis_terminal::render::{self, DIM, Term, safe, safe_line, styled};
use portcullis_terminal::rows::{BarredStream, barred, beginning, ending};
use portcullis_terminal::waiting::{PATIENCE, Spinner};
use portcullis_terminal::{observed, output_tail};
use serde_json::Value;

use super::answer::IncomingAnswer;
use super::live::LiveTail;
use super::words::{INPUT_CHARS, SUMMARY_CHARS, call_line, compacted, document, titled};

/// Columns of a terminal that does not tell.
const COLUMNS: usize = 80;
/// Takes the line off the screen that the cursor is in.
const WIPE: &str = "\r\x1b[K";

/// Where it is shown.
pub struct Screen {
    term: Term,
    /// Everything on standard output: what is told is the result (`demo`).
    aloud: bool,
    /// A line that moves while something takes long; not where a person types.
    moving: bool,
    /// The line being typed can be drawn.
    draws: bool,
    /// Text is shown while it comes: standard output is a terminal. Elsewhere it holds whole answers alone.
    streams: bool,
    /// Where the rules of the session are known that is shown.
    rules: OnceLock<(Gate, SessionId)>,
    /// The command that shows all of what a call wrote whose intent is named behind it.
    output_command: OnceLock<String>,
    paper: Mutex<Paper>,
}

/// While something is being typed, the line below everything else is its own, and text comes above it in whole lines.
#[derive(Default)]
struct Paper {
    /// A row of an answer was begun and not ended.
    mid_line: bool,
    /// The rows of the answer that comes, where it stands behind a bar.
    rows: BarredStream,
    /// What is being typed, with what stands before it, or the answer that is selected.
    typing: String,
    /// It is on the screen, and the cursor behind it.
    drawn: bool,
    /// How many lines of a command are drawn above it.
    drawn_above: usize,
    /// What the command that runs wrote last.
    live: LiveTail,
    /// Text that waits for the end of its row.
    held: String,
    /// The answer that comes.
    coming: IncomingAnswer,
    /// The wakes that ran here.
    wakes: HashSet<WakeId>,
    /// Calls that began and have not ended. One that waited for an answer ends without its input.
    begun: Vec<BegunCall>,
    /// The inputs of calls that another process began and did not end.
    left_over: HashMap<String, String>,
    /// Why something that was to be read could not be written.
    unwritten: Option<io::Error>,
    /// What is waited for, and since when.
    busy: Option<(String, Instant)>,
    /// Answered asks whose calls have not ended, in the order in which they will: what runs, where it may.
    answered: VecDeque<Option<String>>,
    spinner: Option<Spinner>,
}

struct BegunCall {
    call_id: String,
    input: String,
    /// In an earlier wake: held back behind a call that waited, it begins once more.
    earlier: bool,
}

impl Paper {
    /// Keeps the first reason why something could not be written. That whoever read has left is none: what happens is in
    /// the log all the same.
    fn noted(&mut self, written: io::Result<()>) {
        if let Err(error) = written.or_else(render::unread) {
            self.unwritten.get_or_insert(error);
        }
    }
}

impl Screen {
    pub fn new(term: Term, aloud: bool) -> Self {
        Self {
            term,
            aloud,
            moving: !term.json,
            draws: term.draws(),
            streams: io::stdout().is_terminal(),
            rules: OnceLock::new(),
            output_command: OnceLock::new(),
            paper: Mutex::default(),
        }
    }

    /// From now on a refusal names the file and the line of its rule.
    pub fn names_rules_of(&self, gate: &Gate, session: SessionId) {
        // Whoever said so first stays right: it is one session.
        let _ = self.rules.set((gate.clone(), session));
    }

    /// From now on output that is shown in part is followed by the command that shows all of it.
    pub fn names_output_by(&self, command: String) {
        // As above.
        let _ = self.output_command.set(command);
    }

    pub fn is_json(&self) -> bool {
        self.term.json
    }

    fn paper(&self) -> MutexGuard<'_, Paper> {
        self.paper.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The wakes that ran here.
    pub fn wakes(&self) -> HashSet<WakeId> {
        self.paper().wakes.clone()
    }

    /// Shows that something is waited for, once that takes long.
    pub fn tick(&self) {
        let mut paper = self.paper();
        if !paper.typing.is_empty() || !paper.live.is_empty() {
            paper.spinner = None;
            self.draw(&mut paper);
            return;
        }
        let Some((words, since)) = &paper.busy else { return };
        if self.moving && !paper.mid_line && paper.spinner.is_none() && since.elapsed() >= PATIENCE {
            paper.spinner = Some(Spinner::show(&self.term, words));
        }
    }

    /// Shows what is being typed; `before` says what for. Nothing, where nothing is and nothing stands before it.
    pub fn typing(&self, before: &str, text: &str) {
        if !self.draws || self.term.json {
            return;
        }
        self.below(match (before, text) {
            ("", "") => String::new(),
            ("", text) => format!("> {text}"),
            (before, text) => format!("{before}{text}"),
        });
    }

    /// Shows the answer that is selected and not yet given, in place of what is being typed.
    pub fn selected(&self, text: &str) {
        if !self.draws {
            self.line(text);
        } else if !self.term.json {
            self.below(text.to_owned());
        }
    }

    /// Has this as the line below everything else; nothing, where it is empty.
    fn below(&self, text: String) {
        let mut paper = self.paper();
        paper.typing = text;
        if !paper.typing.is_empty() {
            paper.spinner = None;
            self.end_line(&mut paper);
            self.draw(&mut paper);
            return;
        }
        self.wipe(&mut paper);
        let held = std::mem::take(&mut paper.held);
        self.put(&mut paper, &held);
    }

    /// Whether what commands write is shown while they run: on a terminal that can be drawn over, if anything is.
    pub fn shows_output(&self) -> bool {
        self.draws && !self.aloud && !self.term.json && !self.term.quiet
    }

    /// More of what a running command wrote. It is drawn with the next tick.
    pub fn output(&self, said: &Progress) {
        if let Some(stream) = said.stream.as_deref().filter(|_| self.shows_output()) {
            self.paper().live.take(stream, &said.text, said.provisional);
        }
    }

    /// Takes the lines of a command off the screen.
    fn no_output(&self, paper: &mut Paper) {
        if !paper.live.is_empty() {
            self.wipe(paper);
            paper.live.clear();
        }
    }

    /// Draws the last lines of the command that runs, and below them the line being typed, after what is waited for.
    fn draw(&self, paper: &mut Paper) {
        if !self.draws || (paper.typing.is_empty() && paper.live.is_empty()) {
            return;
        }
        self.wipe(paper);
        if paper.mid_line {
            self.end_row(paper);
        }
        let busy = match &paper.busy {
            Some((words, since)) => format!("{words} ({} s) ", since.elapsed().as_secs()),
            None => String::new(),
        };
        let room = self.term.columns().unwrap_or(COLUMNS).saturating_sub(1);
        let line = ending(&format!("{busy}{}", paper.typing.replace('\n', "⏎").replace('\t', " ")), room);
        let above: Vec<String> = paper.live.lines().map(|line| beginning(&line, room)).collect();
        let above: String = match self.term.coloured() {
            true => above.iter().map(|line| styled(DIM, line) + "\n").collect(),
            false => above.iter().map(|line| format!("{line}\n")).collect(),
        };
        // As below.
        let _ = self.term.bytes(format!("{WIPE}{above}{line}").as_bytes());
        (paper.drawn, paper.drawn_above) = (true, paper.live.lines().count());
    }

    fn wipe(&self, paper: &mut Paper) {
        if std::mem::take(&mut paper.drawn) {
            let rows = std::mem::take(&mut paper.drawn_above);
            let wipe = if rows > 0 { format!("\r\x1b[{rows}A\x1b[J") } else { WIPE.to_owned() };
            // As below.
            let _ = self.term.bytes(wipe.as_bytes());
        }
    }

    /// One thing that happened, for a program.
    pub fn document(&self, document: &Value) {
        if self.term.json {
            let written = self.term.document(document);
            self.paper().noted(written);
        }
    }

    /// Whether all that was to be read could be written.
    pub fn written(&self) -> anyhow::Result<()> {
        match self.paper().unwritten.take() {
            Some(error) => Err(anyhow::Error::from(error).context("standard output cannot be written")),
            None => Ok(()),
        }
    }

    /// A line of its own beside the text.
    pub fn line(&self, text: &str) {
        if !self.hushed() {
            self.apart(|term| match self.aloud {
                true => term.print(text),
                false => {
                    term.note(text);
                    Ok(())
                }
            });
        }
    }

    /// What somebody must know to go on, also where nothing but the result is wanted.
    pub fn needed(&self, text: &str) {
        self.apart(|term| match self.aloud {
            true => term.print(text),
            false => {
                term.insist(text);
                Ok(())
            }
        });
    }

    /// Something of its own that belongs to the result.
    pub fn print(&self, text: &str) {
        self.apart(|term| term.print(text));
    }

    /// An answer that is whole.
    pub fn answer(&self, text: &str) {
        self.text(text);
        let mut paper = self.paper();
        self.end_line(&mut paper);
        self.draw(&mut paper);
    }

    /// What went wrong, for a person, whether or not the rest is wanted.
    pub fn error(&self, text: &str) {
        self.apart(|term| {
            term.error(text);
            Ok(())
        });
    }

    /// What is told beside the result is not wanted.
    fn hushed(&self) -> bool {
        self.aloud && self.term.quiet
    }

    fn apart(&self, print: impl FnOnce(Term) -> io::Result<()>) {
        if self.term.json {
            return;
        }
        let mut paper = self.paper();
        paper.spinner = None;
        self.end_line(&mut paper);
        paper.noted(print(self.term));
        self.draw(&mut paper);
    }

    /// Leaves the cursor at the beginning of an empty line.
    fn end_line(&self, paper: &mut Paper) {
        self.wipe(paper);
        let held = std::mem::take(&mut paper.held);
        self.put(paper, &held);
        self.end_row(paper);
    }

    /// Ends the row that an answer is in.
    fn end_row(&self, paper: &mut Paper) {
        let rest = paper.rows.end(self.columns());
        self.put(paper, &rest);
        if std::mem::take(&mut paper.mid_line) {
            paper.noted(self.term.piece("\n"));
        }
    }

    fn put(&self, paper: &mut Paper, text: &str) {
        if !text.is_empty() {
            paper.noted(self.term.piece(text));
            paper.mid_line = !text.ends_with('\n');
        }
    }

    /// How wide the rows of an answer are; a pipe has no end of a row.
    fn columns(&self) -> usize {
        self.term.columns().unwrap_or(usize::MAX)
    }

    fn text(&self, text: &str) {
        if text.is_empty() || self.hushed() {
            return;
        }
        let mut paper = self.paper();
        (paper.spinner, paper.busy) = (None, None);
        self.no_output(&mut paper);
        let text = safe(text);
        match self.stands_apart() {
            true => {
                let rows = paper.rows.push(&text, self.columns());
                paper.held.push_str(&rows);
            }
            false => paper.held.push_str(&text),
        }
        // Above the line being typed only whole rows have their place.
        let end =
            if paper.typing.is_empty() { Some(paper.held.len()) } else { paper.held.rfind('\n').map(|at| at + 1) };
        let Some(end) = end else { return };
        let rest = paper.held.split_off(end);
        let whole = std::mem::replace(&mut paper.held, rest);
        self.wipe(&mut paper);
        self.put(&mut paper, &whole);
        self.draw(&mut paper);
    }

    /// Whether an answer has lines of ours beside it, so that it stands behind a bar. A pipe holds the answer alone.
    fn stands_apart(&self) -> bool {
        self.streams || self.aloud
    }

    /// The model is asked. A person sees where the answer that broke off ends and the new one begins.
    fn asked(&self) {
        let broke_off = self.paper().coming.begins();
        match broke_off {
            Some(_) if self.streams => {
                self.print(&styled(DIM, "the answer above broke off; the model is asked again:"))
            }
            Some(chars) => self.line(&styled(
                DIM,
                &format!(
                    "an answer broke off after {chars} characters, which are not printed; the model is asked again"
                ),
            )),
            None => {}
        }
        self.busy(Some("waiting for the model".to_owned()));
    }

    /// The answer that came is whole.
    fn whole(&self) {
        let text = self.paper().coming.ends();
        self.answer(if self.streams { "" } else { &text });
    }

    /// Tells what came of an answer that never was whole, where it was not shown while it came.
    pub fn unfinished(&self) {
        let text = self.paper().coming.take_unfinished();
        if !self.streams && !text.is_empty() {
            let lines = barred(&safe(&text));
            self.needed(&format!(
                "the last answer broke off. What came of it is neither on standard output nor in the log:\n{lines}"
            ));
        }
    }

    /// Whether a call begins that has not begun before.
    fn begins(&self, call_id: &str, input: &str) -> bool {
        let begun = &mut self.paper().begun;
        if let Some(known) = begun.iter_mut().find(|known| known.earlier && known.call_id == call_id) {
            known.earlier = false;
            return false;
        }
        begun.push(BegunCall { call_id: call_id.to_owned(), input: input.to_owned(), earlier: false });
        true
    }

    /// The input of a call that ended.
    fn ended(&self, call_id: &str, input: &str) -> String {
        let mut paper = self.paper();
        let left_over = paper.left_over.remove(call_id);
        match paper.begun.iter().position(|known| known.call_id == call_id) {
            Some(at) => paper.begun.remove(at).input,
            None => left_over.filter(|_| input.is_empty()).unwrap_or_else(|| input.to_owned()),
        }
    }

    /// A call that another process left unsettled: it ends here without having begun here.
    pub fn left_over(&self, call_id: String, input: String) {
        self.paper().left_over.insert(call_id, input);
    }

    /// Nothing is waited for that would be shown.
    pub fn rest(&self) {
        self.paper().answered.clear();
        self.busy(None);
    }

    /// An ask was answered. A call that was allowed runs next (`what` it is), and does not begin a second time.
    pub fn answered(&self, what: Option<&str>) {
        let words = what.map(|what| format!("running {}", safe_line(what, INPUT_CHARS)));
        let mut paper = self.paper();
        if paper.busy.is_none() {
            paper.busy = words.clone().map(|words| (words, Instant::now()));
        }
        paper.answered.push_back(words);
    }

    /// A call ended: of those that were answered the next one runs.
    fn next_answered(&self) {
        let mut paper = self.paper();
        paper.answered.pop_front();
        while paper.answered.front().is_some_and(Option::is_none) {
            paper.answered.pop_front();
        }
        let next = paper.answered.front().cloned().flatten();
        paper.spinner = None;
        self.no_output(&mut paper);
        paper.busy = next.map(|words| (words, Instant::now()));
    }

    fn busy(&self, words: Option<String>) {
        let mut paper = self.paper();
        paper.spinner = None;
        self.no_output(&mut paper);
        paper.busy = words.map(|words| (words, Instant::now()));
    }
}

impl Watcher for Screen {
    /// A terminal shows one session.
    fn see(&self, live: Live<'_>) {
        self.show(live.event);
    }
}

impl Screen {
    pub fn show(&self, live: LiveEvent<'_>) {
        match live {
            LiveEvent::WakeBegan { wake_id } => {
                let mut paper = self.paper();
                paper.wakes.insert(wake_id);
                paper.begun.iter_mut().for_each(|call| call.earlier = true);
            }
            LiveEvent::CallBegan { call_id, input, .. } if !self.begins(call_id, input) => return,
            _ => {}
        }
        if self.term.json {
            if let LiveEvent::CallEnded { observed, .. } = live {
                self.ended(&observed.call_id, "");
            }
            if let Some(document) = document(live) {
                self.document(&document);
            }
            return;
        }
        match live {
            LiveEvent::Text(text) => {
                self.paper().coming.push(text);
                if self.streams {
                    self.text(text);
                }
            }
            LiveEvent::Asking { .. } => self.asked(),
            LiveEvent::MessageEnd => self.whole(),
            LiveEvent::BrokeOff => self.paper().coming.breaks_off(),
            LiveEvent::CallBegan { tool, input, .. } => {
                self.busy(Some(format!("running {}", safe_line(&titled(tool, input), INPUT_CHARS))));
            }
            LiveEvent::CallEnded { input, observed } => {
                self.next_answered();
                let input = self.ended(&observed.call_id, input);
                self.line(&call_line(&input, observed));
                let against = self.rules.get().map(|(gate, session)| gate.rules_against(*session, observed));
                for rule in against.into_iter().flatten() {
                    self.line(&format!("  {}", safe_line(&rule, SUMMARY_CHARS)));
                }
                output_tail::of(observed, self.output_command.get().map(String::as_str))
                    .iter()
                    .for_each(|line| self.line(line));
                // Right below its call: a mark that says all is well says nothing of them.
                observed::warnings(observed).for_each(|warning| self.needed(&warning));
            }
            LiveEvent::Warning(text) => self.line(&observed::warning(text)),
            LiveEvent::Heard { words } => {
                self.line(&styled(DIM, &format!("heard: {}", render::count(words as u64, "message"))))
            }
            LiveEvent::Compacted { messages, assumed } => self.line(&styled(DIM, &compacted(messages, assumed))),
            // It does not run: somebody must answer first.
            LiveEvent::Waiting { .. } => self.busy(None),
            LiveEvent::WakeBegan { .. } | LiveEvent::Thinking(_) | LiveEvent::Checked(_) => {}
            LiveEvent::HandedOver { tool, .. } => {
                self.busy(None);
                self.line(&styled(DIM, &format!("{} is run by its client", safe_line(tool, 80))));
            }
        }
    }
}
