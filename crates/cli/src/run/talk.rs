//! A conversation at the terminal: a prompt with editing, history and paste; what is typed while it works is heard at the
//! next turn.

use std::fs::{OpenOptions, Permissions};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::Context as _;
use portcullis_terminal::mode;
use portcullis_terminal::render::{BOLD, DIM, Term, exact, place, safe, styled};
use portcullis_terminal::signals::Interrupts;
use portcullis_terminal::typing::Input;
use reedline::{
    DefaultPrompt, DefaultPromptSegment, EditCommand, FileBackedHistory, Highlighter, Reedline, Signal, StyledText,
};

use super::drive::{Drive, Outcome};
use super::typed::TypedInput;
use super::{ModelRun, changes, spent, undo, words};
use crate::exit::ExitKind;
use crate::hints;
use crate::wake;

/// Lines that are remembered from one conversation to the next.
const HISTORY: usize = 1_000;
const HELP: &str = "/diff what this session changed   /undo take its last change to a file back   /cost tokens   /quit leave (or quit, exit)";

/// What a line means, typed at the prompt or while it works.
#[derive(Debug, PartialEq, Eq)]
pub enum TypedLine<'a> {
    Nothing,
    /// For the model.
    Words(&'a str),
    Quit,
    /// A command that looks at a session which rests.
    Later(&'a str),
    /// What is told to whoever typed it.
    Help(String),
}

impl<'a> TypedLine<'a> {
    pub fn of(line: &'a str) -> Self {
        match line.trim() {
            "" => Self::Nothing,
            "/quit" | "/exit" | "quit" | "exit" => Self::Quit,
            command @ ("/cost" | "/diff" | "/undo") => Self::Later(command),
            "/help" => Self::Help(HELP.to_owned()),
            words if COMMANDS.contains(&words.split_whitespace().next().unwrap_or_default()) => {
                let command = words.split_whitespace().next().unwrap_or_default();
                Self::Help(format!("{command} stands alone on its line; {HELP}"))
            }
            words => match words.split_whitespace().next().filter(|first| looks_like_a_command(first)) {
                Some(first) => Self::Help(format!("there is no {first}, and nothing was said to the model; {HELP}")),
                None => Self::Words(words),
            },
        }
    }
}

/// Whether a line that begins so was hardly meant for the model: `/foo`, and not `/etc/hosts`.
fn looks_like_a_command(first: &str) -> bool {
    let name = first.strip_prefix('/').unwrap_or_default();
    !name.is_empty() && !name.contains('/')
}

/// What a line that begins with one of these asks for, whatever follows: it is never meant for the model.
const COMMANDS: [&str; 6] = ["/quit", "/exit", "/cost", "/diff", "/undo", "/help"];

/// What a person typed.
enum PromptInput {
    Words(String),
    /// Ctrl-C, on a line that was empty or is now.
    Nothing {
        cleared: bool,
    },
    End,
}

/// Where a person types.
struct Prompt {
    term: Term,
    /// None on a terminal that cannot be drawn over: it edits whole lines itself.
    editor: Option<Box<Reedline>>,
    /// Something stood on the line when it was drawn last.
    written: Arc<AtomicBool>,
}

/// Draws a line as it is, and knows whether there is one.
struct EmptyLineWatch(Arc<AtomicBool>);

impl Highlighter for EmptyLineWatch {
    fn highlight(&self, line: &str, _cursor: usize) -> StyledText {
        self.0.store(!line.is_empty(), Ordering::Relaxed);
        let mut text = StyledText::new();
        text.push((Default::default(), line.to_owned()));
        text
    }
}

impl Prompt {
    fn new(work: &ModelRun<'_>, term: Term) -> Self {
        let written = Arc::new(AtomicBool::new(false));
        if !term.draws() {
            return Self { term, editor: None, written };
        }
        let seen = Box::new(EmptyLineWatch(Arc::clone(&written)));
        let mut editor =
            Reedline::create().use_bracketed_paste(true).with_ansi_colors(term.coloured()).with_highlighter(seen);
        let file = work.world.settings.home.root().join("history");
        // Without a history it is still a prompt.
        if own(&file).is_ok()
            && let Ok(history) = FileBackedHistory::with_file(HISTORY, file)
        {
            editor = editor.with_history(Box::new(history));
        }
        Self { term, editor: Some(Box::new(editor)), written }
    }

    /// A line, which begins with what was typed before.
    async fn line(&mut self, begun: String, interrupts: &mut Interrupts) -> anyhow::Result<PromptInput> {
        let Some(mut editor) = self.editor.take() else { return plain(&self.term, begun, interrupts).await };
        let reading = tokio::task::spawn_blocking(move || {
            let prompt = DefaultPrompt::new(DefaultPromptSegment::Basic(String::new()), DefaultPromptSegment::Empty);
            if !begun.is_empty() {
                editor.run_edit_commands(&[EditCommand::InsertString(begun)]);
            }
            let read = editor.read_line(&prompt);
            (editor, read)
        });
        let (editor, read) = reading.await.context("the prompt failed")?;
        match read {
            Ok(read) => {
                self.editor = Some(editor);
                let cleared = self.written.swap(false, Ordering::Relaxed);
                Ok(match read {
                    Signal::Success(words) => PromptInput::Words(words),
                    Signal::CtrlC => PromptInput::Nothing { cleared },
                    _ => PromptInput::End,
                })
            }
            // It does not answer what it is asked: then whole lines will do.
            Err(_) => plain(&self.term, String::new(), interrupts).await,
        }
    }
}

/// What a person typed is nobody else's to read, also where an older version left it open.
fn own(file: &Path) -> std::io::Result<()> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(file)?.set_permissions(Permissions::from_mode(0o600))
}

/// A line that the terminal edits itself.
async fn plain(term: &Term, begun: String, interrupts: &mut Interrupts) -> anyhow::Result<PromptInput> {
    eprint!("> {}", safe(&begun));
    let mut typed = TypedInput::new(term);
    typed.set_line(begun);
    typed.listen();
    typed.by_keys(false);
    loop {
        tokio::select! {
            input = typed.next() => match input {
                None => return Ok(PromptInput::End),
                Some((Input::End, _)) if typed.line().is_empty() => return Ok(PromptInput::End),
                Some((input, _)) => if let Some(line) = typed.apply(input) {
                    return Ok(PromptInput::Words(line));
                }
            },
            // The terminal threw away what stood there, and does not tell what that was.
            () = interrupts.next() => return Ok(PromptInput::Nothing { cleared: false }),
        }
    }
}

/// Talks until somebody leaves.
pub async fn talk(work: &ModelRun<'_>, drive: &mut Drive<'_>) -> anyhow::Result<ExitKind> {
    let began = Instant::now();
    let term = drive.term;
    term.note(&styled(DIM, &format!("{} in {}; {HELP}", exact(&work.model.name().to_string(), 200), folder(work))));
    mode::keep()?;
    drive.typed = Some(TypedInput::new(&term));
    let mut prompt = Prompt::new(work, term);
    let mut leaving = false;
    // What was left over from before comes first.
    turn(work, drive).await?;
    loop {
        let (quit, later, begun) = match &mut drive.typed {
            Some(typed) => (typed.quit, std::mem::take(&mut typed.later), typed.take_line()),
            None => Default::default(),
        };
        for command in &later {
            does(command, work, drive, began).await?;
        }
        if quit {
            break;
        }
        let line = match prompt.line(begun, &mut drive.interrupts).await? {
            PromptInput::End => break,
            PromptInput::Nothing { cleared: false } if leaving => break,
            PromptInput::Nothing { cleared } => {
                leaving = !cleared;
                if leaving {
                    term.note("Ctrl-C again leaves; so does /quit");
                }
                continue;
            }
            PromptInput::Words(words) => words,
        };
        leaving = false;
        match TypedLine::of(&line) {
            TypedLine::Nothing => {}
            TypedLine::Quit => break,
            TypedLine::Later(command) => does(command, work, drive, began).await?,
            TypedLine::Help(words) => term.note(&words),
            TypedLine::Words(words) => match work.say(words).await {
                Ok(_) => turn(work, drive).await?,
                Err(error) => {
                    // It stands on the prompt again.
                    term.error(&hints::explained_chain(&error));
                    if let Some(typed) = &mut drive.typed {
                        typed.set_line(words.to_owned());
                    }
                }
            },
        }
    }
    term.note(&styled(DIM, &spent(&work.used_in(&drive.screen.wakes()).await?, began)));
    term.note(&styled(DIM, &format!("session {}; go on with: {}", work.session, work.again(None))));
    Ok(ExitKind::Done)
}

/// A command about a session that rests.
pub async fn does(command: &str, work: &ModelRun<'_>, drive: &Drive<'_>, began: Instant) -> anyhow::Result<()> {
    let term = drive.term;
    match command {
        "/cost" => {
            // What was used before this process began is not in it.
            let of = if work.before > 1 { "since this run began, not the whole session: " } else { "" };
            term.note(&format!("{of}{}", spent(&work.used_in(&drive.screen.wakes()).await?, began)));
        }
        "/diff" => term.print(&changes::diff(work).await?)?,
        _ => match undo::undo(work).await {
            Ok(text) => term.note(&text),
            Err(error) => term.error(&hints::explained_chain(&error)),
        },
    }
    Ok(())
}

fn folder(work: &ModelRun<'_>) -> String {
    work.runtime.workspace().map(place).unwrap_or_default()
}

/// Works on what was said, and on what is said meanwhile.
pub async fn see_through(drive: &mut Drive<'_>) -> anyhow::Result<Outcome> {
    loop {
        if let Some(typed) = &mut drive.typed {
            typed.listen();
        }
        let outcome = drive.go().await;
        if let Some(typed) = &mut drive.typed {
            typed.pause();
        }
        drive.screen.typing("", "");
        // What came too late for the last turn begins another.
        let more = drive.hear_rest().await?;
        if !more || outcome.is_err() || drive.typed.as_ref().is_some_and(|typed| typed.quit) {
            return outcome;
        }
    }
}

/// One turn. What ends it does not end the conversation.
async fn turn(work: &ModelRun<'_>, drive: &mut Drive<'_>) -> anyhow::Result<()> {
    let term = drive.term;
    match see_through(drive).await? {
        Outcome::Done(end) => {
            if let Some(words) = wake::no_answer(&end) {
                drive.screen.error(&words);
            } else if let Some(checked) = end.checked.filter(|checked| !checked.claims.is_empty()) {
                drive.screen.line(&words::verdict(&checked));
            }
        }
        Outcome::Nothing => {}
        Outcome::Failed(error) => term.error(&work.failed(&error)),
        Outcome::Interrupted => drive.screen.line(&styled(BOLD, "interrupted")),
        Outcome::Later(at) => drive.screen.line(&format!("it wants to go on at {at}; say something to go on sooner")),
        Outcome::Waits(asks) => {
            work.waits(&asks, &work.asked_of_client().await?, &drive.screen).await;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_begins_like_a_command_is_never_said_to_the_model() {
        for line in ["/foo", "/foo bar", " /Clear\nall", "/compact the rest"] {
            let TypedLine::Help(told) = TypedLine::of(line) else { panic!("{line}") };
            assert!(told.contains("/quit leave"), "{told}");
        }
        for line in ["quit", " exit ", "/quit"] {
            assert_eq!(TypedLine::of(line), TypedLine::Quit, "{line}");
        }
        for line in
            ["exit code 1 is wrong", "quit it", "Exit", "/etc/hosts is wrong", "look at /foo", "/ is full", "//"]
        {
            assert_eq!(TypedLine::of(line), TypedLine::Words(line), "{line}");
        }
    }
}
