//! The questions of a run, answered by its flag or by a person at this terminal.

use std::sync::Arc;
use std::time::Instant;

use portcullis::operations::AskView;
use portcullis::operations::ask_words;
use portcullis::{AskAnswer, PermissionAsked, Reply};
use portcullis_base::AskId;
use portcullis_config::ApprovalMode;
use portcullis_event::AskState;
use portcullis_event::facts::BY_FLAG;
use portcullis_terminal::choice::{Choice, REASON, Step};
use portcullis_terminal::mode;
use portcullis_terminal::render::{BOLD, DIM, safe_line, styled};
use portcullis_terminal::signals::Interrupts;
use portcullis_terminal::typing::Input;
use serde_json::{Value, json};

use super::screen::Screen;
use super::typed::TypedInput;
use crate::ask;
use crate::ask_sheet::Sheet;
use crate::ask_view::ShownAsk;
use crate::person;
use crate::world::{LOOK_AGAIN, World};

/// What a run offers besides an allow.
const BESIDES: &[Choice] = &[Choice::No, Choice::Because];

/// What became of a question.
pub enum PromptEnd {
    /// Somebody here said this.
    Said(Box<AskAnswer>),
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

/// Characters of a call on the line that says how it was answered.
const CALL_CHARS: usize = 100;

/// The answer that a flag gives to an ask; `None` where a person must.
pub fn by_flag(mode: ApprovalMode, only_a_person: bool) -> Option<AskAnswer> {
    match mode {
        ApprovalMode::Ask => None,
        // It may hide a command that a rule denies.
        ApprovalMode::Allow if only_a_person => None,
        ApprovalMode::Allow => Some(person::answer(Reply::AllowOnce, BY_FLAG, None)),
        // Nobody looked at it, and whoever proposed it should not think so.
        ApprovalMode::Deny => {
            let words = "this run answers every ask with no (--approvals deny)".to_owned();
            Some(person::answer(Reply::DenyWithFeedback, BY_FLAG, Some(words)))
        }
    }
}

/// Has the runtimes of a world know the answers that its flag gives. `told` hears of each as it is given.
pub fn answer_at_once(world: &World, told: impl Fn(&PermissionAsked, &AskAnswer) + Send + Sync + 'static) {
    let mode = world.settings.approvals;
    if mode == ApprovalMode::Ask {
        return;
    }
    world.answering(Arc::new(move |_, asked| {
        let answer = by_flag(mode, asked.only_a_person)?;
        told(asked, &answer);
        Some(answer)
    }));
}

/// An answer, for a program that reads along.
pub fn reply_document(ask: AskId, answer: &AskAnswer) -> Value {
    json!({"type": "reply", "ask_id": ask, "reply": answer.reply, "channel": answer.channel})
}

/// One line on an answer, and who gave it in place of a person.
pub fn said_line(ask: AskId, call: &str, allows: bool, by: Option<&str>) -> String {
    let word = if allows { "allowed" } else { "refused" };
    let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
    styled(DIM, &format!("{word}{by}: {} ({ask})", safe_line(call, CALL_CHARS)))
}

/// One line on a question that somebody else answered, or nobody in time.
pub fn settled(ask: &AskView) -> String {
    format!("{} meanwhile: {}", ask.row.ask_id, ask_words::standing(&ask.row))
}

/// One line on a question that an interrupt closed.
pub fn withdrawn(ask: AskId) -> String {
    format!("withdrawn: {ask}; no answer to it runs anything")
}

/// What is said where somebody else interrupted the session.
pub const STOPPED: &str = "the session was interrupted elsewhere: the ask takes no answer any more";

/// Whether the session of an ask was interrupted, and no wake has settled that yet. The process that interrupted it may have
/// withdrawn the ask already.
pub async fn is_stopped(world: &World, ask: &AskView) -> anyhow::Result<bool> {
    let unanswered = ask.is_pending() || ask.row.state == AskState::Superseded;
    Ok(unanswered && world.archive.state(ask.row.session_id).await?.inbox.interrupted())
}

const HEARD: &str =
    "words with Enter go to the session, Escape drops them; one key on an empty line selects, Enter confirms";

/// A question on the screen, until somebody answers it.
///
/// Invariant: whatever is typed is what the person writes, unless it is one lone key on an empty line that was read after the
/// choices could be seen. Such a key selects an answer; only Enter gives it ([`crate::choice::Chooser`]). What a wide answer would
/// remember is shown when it is selected.
pub struct AskPrompt<'a> {
    world: &'a World,
    screen: &'a Screen,
    sheet: Sheet,
    /// A line is typed: why not.
    because: bool,
    told_of_words: bool,
    /// How far the log of its session was looked at.
    looked: Option<u64>,
}

impl<'a> AskPrompt<'a> {
    /// Puts it on the screen.
    pub async fn show(world: &'a World, screen: &'a Screen, ask: AskView) -> anyhow::Result<Self> {
        let whole = ShownAsk::load(world, ask).await?;
        let (sheet, first) = Sheet::new(whole, BESIDES);
        screen.print(&first);
        Ok(Self { world, screen, sheet, because: false, told_of_words: false, looked: None })
    }

    /// Waits for an answer, a whole line, or whatever else ends the wait.
    pub async fn wait(&mut self, typed: &mut TypedInput, interrupts: &mut Interrupts) -> anyhow::Result<PromptEnd> {
        let mut changes = self.world.archive.changes_of_asks();
        loop {
            if self.sheet.chooser.is_hidden() && !self.because {
                self.screen.line(&styled(BOLD, &self.sheet.chooser.line()));
                self.sheet.chooser.appeared(Instant::now());
                self.draw(typed);
            }
            changes.mark_unchanged();
            tokio::select! {
                biased;
                input = typed.next() => {
                    let Some((input, at)) = input else { return Ok(PromptEnd::Nobody) };
                    if let Some(answered) = self.hear(typed, input, at) {
                        return Ok(answered);
                    }
                }
                () = interrupts.next() => return Ok(PromptEnd::Left),
                // What was on the screen may be gone.
                () = mode::CONTINUED.notified() => self.sheet.chooser.hide(),
                () = async { let _ = tokio::time::timeout(LOOK_AGAIN, changes.changed()).await; } => {
                    // Someone else may have answered it; whoever writes a reason is told when it is given.
                    let now = ask::load(self.world, self.sheet.whole.0.ask.row.ask_id).await?;
                    if self.because {
                        continue;
                    }
                    // Only what is new in this session can have stopped it.
                    let head = Some(self.world.archive.last_seq(now.row.session_id).await?);
                    if std::mem::replace(&mut self.looked, head) != head && is_stopped(self.world, &now).await? {
                        self.screen.line(STOPPED);
                        return Ok(PromptEnd::Stopped);
                    }
                    if !now.is_pending() {
                        self.screen.line(&settled(&now));
                        return Ok(PromptEnd::Settled);
                    }
                }
            }
        }
    }

    /// Something was typed.
    fn hear(&mut self, typed: &mut TypedInput, input: Input, at: Instant) -> Option<PromptEnd> {
        if self.because {
            return self.reason(typed, input);
        }
        if input == Input::End {
            self.screen.line(&styled(DIM, "Ctrl-D ends nothing here; Ctrl-C interrupts"));
        }
        let step = match self.sheet.hear(input, at, typed.line()) {
            Ok(step) => step,
            Err(page) => {
                self.draw(typed);
                self.screen.print(&page);
                return None;
            }
        };
        match step {
            // A page was shown for it.
            Step::Nothing | Step::NextPage | Step::AllFacts => {}
            Step::EnterTooSoon => self.draw(typed),
            Step::Reason(input) => {
                self.because = true;
                if !typed.draws() {
                    // The rest of the line is the terminal's to edit and to show.
                    typed.by_keys(false);
                }
                return self.reason(typed, input);
            }
            Step::Cleared => self.offer_again(typed, None),
            Step::NoAnswer(why) => self.offer_again(typed, Some(&why)),
            Step::Selected(choice) => self.select(typed, choice),
            Step::Confirmed(choice) => return self.confirmed(typed, choice),
            Step::Text(inputs) => return self.written(typed, inputs),
        }
        None
    }

    fn written(&mut self, typed: &mut TypedInput, inputs: Vec<Input>) -> Option<PromptEnd> {
        let mut line = None;
        for input in inputs {
            line = typed.apply(input).or(line);
        }
        if let Some(why) = self.sheet.chooser.too_early(typed.line()) {
            self.screen.line(&why);
        } else if !typed.line().is_empty() && !std::mem::replace(&mut self.told_of_words, true) {
            self.screen.line(&styled(DIM, &format!("you are writing: {HEARD}")));
        }
        self.draw(typed);
        // What was asked stands further up by then.
        line.map(|line| {
            self.sheet.chooser.hide();
            PromptEnd::Line(line)
        })
    }

    /// Empties the line and shows the choices below whatever else was shown.
    fn offer_again(&self, typed: &mut TypedInput, why: Option<&str>) {
        typed.take_line();
        self.draw(typed);
        if let Some(why) = why {
            self.screen.line(why);
        }
        self.screen.line(&styled(BOLD, &self.sheet.chooser.line()));
    }

    fn draw(&self, typed: &TypedInput) {
        match self.sheet.chooser.selection() {
            Some(selection) => self.screen.selected(&selection),
            None => self.screen.typing(if self.because { REASON } else { "" }, typed.line()),
        }
    }

    /// Shows what would be answered; of an answer that is remembered exactly what would be.
    fn select(&mut self, typed: &TypedInput, choice: Choice) {
        let scope = match choice {
            Choice::Session => Some("for this session".to_owned()),
            Choice::Project => Some(format!("for every session in {}", ask_words::folder(&self.sheet.whole.0.ask))),
            _ => None,
        };
        if let Some(scope) = scope {
            let lead = format!("would be remembered {scope}, until you revoke it");
            let rule = self.sheet.whole.0.asked.suggested_rules.first();
            self.screen.print(rule.map(|rule| ask_words::suggestion(&lead, rule)).unwrap_or(lead).trim());
        }
        // Before it is drawn: whoever sees it may be quick.
        let shown = Instant::now();
        self.draw(typed);
        self.sheet.chooser.selection_is_shown(shown);
    }

    fn confirmed(&mut self, typed: &mut TypedInput, choice: Choice) -> Option<PromptEnd> {
        self.draw(typed);
        match choice {
            Choice::Once => Some(said(Reply::AllowOnce, None)),
            Choice::Session => Some(said(Reply::AllowSession, None)),
            Choice::Project => Some(said(Reply::AllowSaved, None)),
            Choice::Because => {
                self.because = true;
                if !typed.draws() {
                    typed.by_keys(false);
                }
                self.screen.line("no, because (one line, Enter ends it; empty or Escape goes back):");
                None
            }
            // The last four are not offered here or need no Enter, and allow nothing.
            Choice::No | Choice::Skip | Choice::Leave | Choice::NextPage | Choice::AllFacts => {
                Some(said(Reply::Deny, None))
            }
        }
    }

    /// A line that says why not.
    fn reason(&mut self, typed: &mut TypedInput, input: Input) -> Option<PromptEnd> {
        let words = match input {
            Input::Escape => {
                typed.take_line();
                Some(String::new())
            }
            input => typed.apply(input),
        };
        self.draw(typed);
        let words = words?.trim().to_owned();
        self.because = false;
        typed.by_keys(true);
        // Whoever wrote the whole word meant it.
        let words = if words.starts_with("ecause ") { format!("b{words}") } else { words };
        if words.is_empty() {
            self.sheet.chooser.hide();
            self.draw(typed);
            return None;
        }
        if typed.draws() {
            self.screen.line(&styled(DIM, &format!("{REASON}{}", safe_line(&words, 400))));
        }
        self.draw(typed);
        Some(said(Reply::DenyWithFeedback, Some(words)))
    }
}

fn said(reply: Reply, words: Option<String>) -> PromptEnd {
    PromptEnd::Said(Box::new(person::answer(reply, "cli", words)))
}
