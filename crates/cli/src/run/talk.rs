//! A conversation at the terminal: a prompt with editing, history and paste; what is typed while it works is heard at the
//! next turn.

use std::time::Instant;

use anyhow::Context as _;
use reedline::{DefaultPrompt, DefaultPromptSegment, FileBackedHistory, Reedline, Signal};

use super::drive::{Drive, Outcome};
use super::typed::Typed;
use super::{Work, changes, screen, spent};
use crate::exit::Ended;
use crate::person;
use crate::render::{BOLD, DIM, styled};

/// Lines that are remembered from one conversation to the next.
const HISTORY: usize = 1_000;
const HELP: &str =
    "/diff what this session changed   /undo take its last change to a file back   /cost tokens   /quit leave";

/// What a person typed.
enum Line {
    Words(String),
    /// Ctrl-C.
    Nothing,
    End,
}

/// Where a person types.
enum Prompt {
    Edited(Box<Reedline>),
    /// A terminal that cannot do that.
    Plain,
}

impl Prompt {
    fn new(work: &Work<'_>) -> Self {
        let mut editor = Reedline::create().use_bracketed_paste(true);
        // Without a history it is still a prompt.
        if let Ok(history) = FileBackedHistory::with_file(HISTORY, work.world.settings.home.root().join("history")) {
            editor = editor.with_history(Box::new(history));
        }
        Self::Edited(Box::new(editor))
    }

    async fn line(&mut self) -> anyhow::Result<Line> {
        let Self::Edited(editor) = std::mem::replace(self, Self::Plain) else { return plain().await };
        let reading = tokio::task::spawn_blocking(move || {
            let mut editor = editor;
            let prompt = DefaultPrompt::new(DefaultPromptSegment::Basic(String::new()), DefaultPromptSegment::Empty);
            let read = editor.read_line(&prompt);
            (editor, read)
        });
        let (editor, read) = reading.await.context("the prompt failed")?;
        match read {
            Ok(read) => {
                *self = Self::Edited(editor);
                Ok(match read {
                    Signal::Success(words) => Line::Words(words),
                    Signal::CtrlC => Line::Nothing,
                    _ => Line::End,
                })
            }
            // It does not answer what it is asked: then whole lines will do.
            Err(_) => plain().await,
        }
    }
}

async fn plain() -> anyhow::Result<Line> {
    eprint!("> ");
    Ok(Typed::listen().next().await.map_or(Line::End, Line::Words))
}

/// Talks until somebody leaves.
pub async fn talk(work: &Work<'_>, drive: &mut Drive<'_>) -> anyhow::Result<Ended> {
    let began = Instant::now();
    let term = drive.term;
    term.note(&styled(DIM, &format!("{} in {}; {HELP}", work.model.name(), folder(work))));
    let mut prompt = Prompt::new(work);
    let mut leaving = false;
    // What was left over from before comes first.
    turn(work, drive).await?;
    loop {
        let line = match prompt.line().await? {
            Line::End => break,
            Line::Nothing if leaving => break,
            Line::Nothing => {
                leaving = true;
                term.note("Ctrl-C again leaves; so does /quit");
                continue;
            }
            Line::Words(words) => words.trim().to_owned(),
        };
        leaving = false;
        match line.as_str() {
            "" => {}
            "/quit" | "/exit" => break,
            "/cost" => term.note(&spent(&work.used().await?, began)),
            "/diff" => term.print(&changes::diff(work).await?)?,
            "/undo" => match changes::undo(work).await {
                Ok(text) => term.note(&text),
                Err(error) => term.error(&format!("{error:#}")),
            },
            "/help" => term.note(HELP),
            command if command.starts_with('/') && !command.contains(' ') => {
                term.note(&format!("there is no {command}; {HELP}"));
            }
            words => {
                work.runtime.say(work.session, &person::login(), words).await?;
                turn(work, drive).await?;
            }
        }
    }
    term.note(&styled(DIM, &spent(&work.used().await?, began)));
    term.note(&styled(DIM, &format!("session {}; go on with: {}", work.session, work.again(None))));
    Ok(Ended::Done)
}

fn folder(work: &Work<'_>) -> String {
    work.runtime.workspace().map(|folder| folder.display().to_string()).unwrap_or_default()
}

/// Works on what was said. What ends a turn does not end the conversation.
async fn turn(work: &Work<'_>, drive: &mut Drive<'_>) -> anyhow::Result<()> {
    let outcome = loop {
        drive.typed = Some(Typed::listen());
        let outcome = drive.go().await;
        // What came too late for the last turn begins another.
        if !drive.say_typed().await? || outcome.is_err() {
            break outcome;
        }
    };
    let term = drive.term;
    match outcome? {
        Outcome::Done(end) => {
            if let Some(checked) = end.checked.filter(|checked| !checked.claims.is_empty()) {
                drive.screen.line(&screen::verdict(&checked));
            }
        }
        Outcome::Nothing => {}
        Outcome::Failed(error) => {
            term.error(&format!("the model failed ({}): {}", error.failure.as_str(), error.message))
        }
        Outcome::Interrupted => drive.screen.line(&styled(BOLD, "interrupted")),
        Outcome::Later(at) => drive.screen.line(&format!("it wants to go on at {at}; say something to go on sooner")),
        Outcome::Waits(asks) => {
            work.waits(&asks, &work.handed_over().await?, &drive.screen);
        }
    }
    Ok(())
}
