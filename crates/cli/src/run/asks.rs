//! The questions of a run, answered by its flag or by a person at this terminal.

use std::time::{Duration, Instant};

use portcullis::{Answer, Reply};
use portcullis_pipeline::folded;
use portcullis_store::{Log as _, Notices as _};

use super::screen::Screen;
use super::typed::Typed;
use crate::args::ApprovalMode;
use crate::ask::Ask;
use crate::ask_view::{self, Whole};
use crate::pages::{Pages, Size};
use crate::render::{BOLD, DIM, safe_line, styled};
use crate::signals::Interrupts;
use crate::typing::{Input, waits};
use crate::world::{LOOK_AGAIN, World, key};
use crate::{person, terminal};

/// What became of a question.
pub enum Answered {
    /// Somebody here said this.
    Said(Box<Answer>),
    /// Somebody else was quicker.
    Settled,
    /// Words, which are not an answer.
    Line(String),
    /// Nobody can answer here, or the terminal is gone.
    Nobody,
    /// Ctrl-C.
    Left,
    /// Somebody interrupted the session elsewhere: the ask takes no answer any more.
    Stopped,
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

/// What is said where somebody else interrupted the session.
pub const STOPPED: &str = "the session was interrupted elsewhere: the ask takes no answer any more";

/// Whether somebody interrupted the session of an ask, and no wake has settled that yet.
pub async fn is_stopped(world: &World, ask: &Ask) -> anyhow::Result<bool> {
    Ok(ask.is_pending() && folded(&*world.store, key(ask.row.session_id)).await?.inbox.interrupted())
}

/// Before a key that answers, nothing was typed for so long: whoever is writing does not answer.
const QUIET: Duration = Duration::from_millis(500);
/// The same where a line was begun, which whoever looks for the next letter may go on with.
const QUIET_AFTER_WORDS: Duration = Duration::from_secs(1);
/// After a key that answers, nothing is typed for so long: a word may begin with any letter.
const LONE: Duration = Duration::from_millis(200);

const HEARD: &str = "words with Enter go to the session; one key by itself answers";

/// What a lone key would be taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Choosing,
    /// This would be remembered, if somebody says so again.
    Confirming(Wide),
    /// A line is typed: why not.
    Because,
}

/// An answer for more than the one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wide {
    Session,
    Project,
}

impl Wide {
    const fn key(self) -> char {
        match self {
            Self::Session => 't',
            Self::Project => 'p',
        }
    }

    fn reply(self) -> Reply {
        match self {
            Self::Session => Reply::AllowSession,
            Self::Project => Reply::AllowSaved,
        }
    }
}

/// A question on the screen, until somebody answers it.
///
/// Invariant: nothing that is typed in a run, pasted, or typed before the choices were on the screen is an answer; it is
/// what the person is writing. A wide answer needs a second key, after its rule was shown.
pub struct Question<'a> {
    world: &'a World,
    screen: &'a Screen,
    whole: Whole,
    /// What of it was shown.
    pages: Pages,
    stage: Stage,
    /// What is said when keys count (again), and once it is, when that was.
    prompt: String,
    since: Option<Instant>,
    /// The last time that something was typed, or the question changed.
    last: Instant,
    /// A key that counts if nothing follows it.
    held: Option<(Input, Instant)>,
    /// The line that was being written when a reason was asked for.
    put_aside: String,
    told_of_words: bool,
    /// How far the log of its session was looked at.
    looked: Option<u64>,
}

impl<'a> Question<'a> {
    /// Puts it on the screen.
    pub async fn show(world: &'a World, screen: &'a Screen, ask: Ask) -> anyhow::Result<Self> {
        let whole = Whole::load(world, ask).await?;
        let mut pages = Pages::of(&whole.text(world, false), Size::of_terminal());
        screen.print(&pages.next());
        let mut question = Self {
            world,
            screen,
            whole,
            pages,
            stage: Stage::Choosing,
            prompt: String::new(),
            since: None,
            last: Instant::now(),
            held: None,
            put_aside: String::new(),
            told_of_words: false,
            looked: None,
        };
        question.prompt = styled(BOLD, &question.choices());
        Ok(question)
    }

    /// Nobody allows what nobody could be shown, or what was not shown to its end; the rest of it stands on the screen.
    fn shown(&self) -> bool {
        self.whole.diff.is_ok() && self.pages.at_end()
    }

    fn remembers(&self) -> bool {
        self.shown() && self.whole.asked.grantable.is_some()
    }

    fn choices(&self) -> String {
        let allow = match (self.pages.at_end(), self.shown()) {
            (false, _) => "Space shows the next page   ",
            (true, true) => "a allow once   ",
            (true, false) => "",
        };
        let remember = if self.remembers() { "t this session   p this project   " } else { "" };
        format!("{allow}{remember}d no   b no, because…")
    }

    /// Waits for an answer, a whole line, or whatever else ends the wait.
    pub async fn wait(&mut self, typed: &mut Typed, interrupts: &mut Interrupts) -> anyhow::Result<Answered> {
        let mut changes = self.world.store.changes();
        self.draw(typed);
        loop {
            changes.mark_unchanged();
            let next = self.next(typed);
            tokio::select! {
                // What was typed comes before the time that has passed: a machine that was busy may bring both.
                biased;
                input = typed.next() => {
                    let Some((input, at)) = input else { return Ok(Answered::Nobody) };
                    if let Some(answered) = self.hear(typed, input, at) {
                        return Ok(answered);
                    }
                }
                () = until(next) => {
                    if let Some(answered) = self.quiet(typed) {
                        return Ok(answered);
                    }
                }
                () = interrupts.next() => return Ok(Answered::Left),
                () = terminal::CONTINUED.notified() => (self.since, self.last) = (None, Instant::now()),
                () = async { let _ = tokio::time::timeout(LOOK_AGAIN, changes.changed()).await; } => {
                    // Someone else may have answered it; whoever writes a reason is told when it is given.
                    let now = Ask::load(self.world, self.whole.ask.row.ask_id).await?;
                    if self.stage == Stage::Because {
                        continue;
                    }
                    if !now.is_pending() {
                        self.screen.line(&settled(&now));
                        return Ok(Answered::Settled);
                    }
                    // Only what is new in this session can have stopped it.
                    let head = self.world.store.head(key(now.row.session_id)).await?.map(|head| head.last_seq);
                    if std::mem::replace(&mut self.looked, head) != head && is_stopped(self.world, &now).await? {
                        self.screen.line(STOPPED);
                        return Ok(Answered::Stopped);
                    }
                }
            }
        }
    }

    /// When something happens by itself: the choices are shown, or the key counts.
    fn next(&self, typed: &Typed) -> Option<Instant> {
        match (&self.held, self.since) {
            (Some((input, at)), _) => Some(*at + if self.means(input) { LONE } else { QUIET }),
            (None, None) => Some(self.last + calm(typed, self.stage)),
            (None, Some(_)) => None,
        }
    }

    /// Whether a key means something at this stage.
    fn means(&self, input: &Input) -> bool {
        match (self.stage, input) {
            (Stage::Choosing, Input::Char(' ')) => !self.pages.at_end(),
            (Stage::Choosing, Input::Char('a')) => self.shown(),
            (Stage::Choosing, Input::Char('t' | 'p')) => self.remembers(),
            (Stage::Choosing, Input::Char('d' | 'n' | 'b')) => true,
            // Every other key goes back.
            (Stage::Confirming(_), _) => true,
            _ => false,
        }
    }

    /// Something was typed: an answer, perhaps, if nothing else comes; or a part of what the person is writing.
    fn hear(&mut self, typed: &mut Typed, input: Input, at: Instant) -> Option<Answered> {
        if self.stage == Stage::Because {
            return self.reason(typed, input);
        }
        if let Some((first, then)) = self.held.take() {
            // Two that come together: both are written.
            typed.put_back(input, at);
            return self.written(typed, first, then);
        }
        let alone = match &input {
            Input::Char(_) | Input::Escape => true,
            // With words before it, it ends a line.
            Input::Enter => matches!(self.stage, Stage::Confirming(_)) && typed.line().is_empty(),
            _ => false,
        };
        let counts = self.since.is_some_and(|since| at >= since) && at >= self.last + calm(typed, self.stage);
        if alone && counts {
            self.held = Some((input, at));
            return None;
        }
        self.written(typed, input, at)
    }

    fn written(&mut self, typed: &mut Typed, input: Input, at: Instant) -> Option<Answered> {
        self.last = at;
        if input == Input::End {
            self.screen.line(&styled(DIM, "Ctrl-D ends nothing here; Ctrl-C interrupts"));
        }
        if matches!(self.stage, Stage::Confirming(_)) {
            self.back();
        }
        let line = typed.apply(input);
        if !typed.line().is_empty() && !std::mem::replace(&mut self.told_of_words, true) {
            self.screen.line(&styled(DIM, &format!("you are writing: {HEARD}")));
        }
        self.draw(typed);
        // What was asked stands further up by then.
        line.map(|line| {
            self.since = None;
            Answered::Line(line)
        })
    }

    fn draw(&self, typed: &Typed) {
        self.screen.typing(if self.stage == Stage::Because { "no, because " } else { "" }, typed.line());
    }

    /// To the choices.
    fn back(&mut self) {
        (self.stage, self.since) = (Stage::Choosing, None);
        self.prompt = styled(BOLD, &self.choices());
    }

    /// Nothing was typed for a moment.
    fn quiet(&mut self, typed: &mut Typed) -> Option<Answered> {
        let Some((input, at)) = self.held.take() else {
            // Before it is seen: whoever sees it may be quick.
            self.since = Some(Instant::now());
            self.screen.line(&self.prompt);
            return None;
        };
        if waits() {
            // It does not stand alone; what follows it is about to be read.
            self.held = Some((input, at + LONE));
            return None;
        }
        self.last = at;
        if let Stage::Confirming(wide) = self.stage {
            if input == Input::Enter || input == Input::Char(wide.key()) {
                return Some(said(wide.reply(), None));
            }
            self.back();
            return None;
        }
        if !self.means(&input) {
            self.prompt = format!("that key does nothing here; these do: {} ({HEARD})", self.choices());
            self.since = None;
            return None;
        }
        match input {
            Input::Char(' ') => {
                self.screen.print(&self.pages.next());
                self.back();
            }
            Input::Char('a') => return Some(said(Reply::AllowOnce, None)),
            Input::Char('d' | 'n') => return Some(said(Reply::Deny, None)),
            Input::Char('t') => self.confirm(Wide::Session),
            Input::Char('p') => self.confirm(Wide::Project),
            _ => {
                self.stage = Stage::Because;
                self.put_aside = typed.take_line();
                if !typed.draws() {
                    typed.by_keys(false);
                }
                self.screen.line("no, because (one line, Enter ends it; empty or Escape goes back):");
                self.draw(typed);
            }
        }
        None
    }

    /// Shows exactly what would be remembered.
    fn confirm(&mut self, wide: Wide) {
        let scope = match wide {
            Wide::Session => "for this session".to_owned(),
            Wide::Project => format!("for every session in {}", ask_view::folder(&self.whole.ask)),
        };
        let rule = self.whole.asked.suggested_rules.first().map(ask_view::suggestion).unwrap_or_default();
        self.screen.print(&format!("{}\nwould be remembered {scope}, until you revoke it", rule.trim()));
        self.stage = Stage::Confirming(wide);
        self.since = None;
        self.prompt = styled(BOLD, &format!("Enter or {} again remembers it   any other key goes back", wide.key()));
    }

    /// A line that says why not.
    fn reason(&mut self, typed: &mut Typed, input: Input) -> Option<Answered> {
        let words = match input {
            Input::Escape => Some(String::new()),
            input => typed.apply(input),
        };
        self.draw(typed);
        let words = words?.trim().to_owned();
        typed.set_line(std::mem::take(&mut self.put_aside));
        typed.by_keys(true);
        if words.is_empty() {
            self.last = Instant::now();
            self.back();
            self.draw(typed);
            return None;
        }
        if typed.draws() {
            self.screen.line(&styled(DIM, &format!("no, because > {}", safe_line(&words, 400))));
        }
        self.draw(typed);
        Some(said(Reply::DenyWithFeedback, Some(words)))
    }
}

/// How long nothing must have been typed before a key counts.
fn calm(typed: &Typed, stage: Stage) -> Duration {
    if typed.line().is_empty() || stage != Stage::Choosing { QUIET } else { QUIET_AFTER_WORDS }
}

fn said(reply: Reply, words: Option<String>) -> Answered {
    Answered::Said(Box::new(person::answer(reply, "cli", words)))
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}
