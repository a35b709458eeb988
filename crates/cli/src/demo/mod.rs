//! `demo`: a small real project whose test fails, and a scripted model that mends it. Only the model is played; every call
//! passes the gate and really runs.

mod crash;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use portcullis::hand::Launcher;
use portcullis::model::{Model, Scripted};
use portcullis::{IsolationLevel, Profile};
use portcullis_event::facts::FinalVerdict;
use serde_json::json;

use crate::args::{ApprovalMode, DemoArgs, Globals};
use crate::config::{self, Settings};
use crate::exit::{Ended, failed, fault, interrupts, usage};
use crate::home::Home;
use crate::render::{BOLD, DIM, Term, YELLOW, styled};
use crate::run::drive::{Drive, Outcome};
use crate::run::screen::{self, Screen};
use crate::run::{Work, model, spent};
use crate::world::World;
use crate::{caches, person};

/// Who answers the asks of a demo.
const BY: &str = "the demo";
const PROMPT: &str = "The test of this project fails. Find out why, mend it, and show that it passes.";
const PROJECT: &[(&str, &str)] = &[("sum.sh", include_str!("sum.sh")), ("test.sh", include_str!("test.sh"))];
const MEND: &str = include_str!("mend.toml");

pub async fn run(args: &DemoArgs, globals: &Globals, term: &Term) -> anyhow::Result<Ended> {
    if let Some(stage) = &args.stage {
        return crash::perform(stage, globals, term).await;
    }
    let settings = settings(globals)?;
    let place =
        Place::lay_out(&settings.home, args.keep.as_deref(), if args.crash { crash::PROJECT } else { PROJECT })?;
    let screen = Arc::new(Screen::new(*term, true));
    let settings = lowered(settings, globals, &screen)?;
    let world = World::open(settings, term)?;
    if args.crash {
        return crash::run(&world, &place, globals, &screen, term).await;
    }
    let model: Arc<dyn Model> = match &globals.model {
        Some(_) => model::choose(&world.settings, false, term).await?,
        None => played("demo", MEND)?,
    };
    screen.line(&styled(BOLD, &format!("A project in {}: sum.sh, and test.sh, which fails.", place.folder.display())));
    screen.line(&styled(BOLD, &format!("> {PROMPT}")));
    let runtime = world.runtime(&place.folder, "portcullis demo")?;
    let session = runtime.create_session("demo").await?;
    runtime.say(session, &person::login(), PROMPT).await?;
    let work = Work { world: &world, runtime, session, model, before: 0, globals };
    let began = Instant::now();
    let outcome = see_through(&work, &screen, term).await?;
    let passes = work.observed(0).await?.iter().rev().find(|seen| seen.tool == "bash").is_some_and(|seen| seen.ok);
    let verdict = told(&outcome, &screen)?;
    screen.line(&styled(DIM, &spent(&work.used().await?, began)));
    if args.keep.is_some() {
        screen.line(&format!("the project stays in {}", place.folder.display()));
    }
    look_at(&work, &screen);
    let well = passes && verdict == Some(FinalVerdict::Supported);
    let ended = if well { Ended::Done } else { Ended::Failed };
    screen.document(&json!({
        "type": "end", "exit": ended as u8, "session_id": session, "verdict": verdict, "test_passes": passes,
    }));
    Ok(ended)
}

/// The user's own, in the profile of `run`, with every ask answered: what is asked about is a project made for this.
fn settings(globals: &Globals) -> anyhow::Result<Settings> {
    let mut settings = Settings::load(globals)?;
    settings.profile = Profile::Code;
    config::permitted(ApprovalMode::Allow, &settings.enterprise)?;
    settings.approvals = ApprovalMode::Allow;
    Ok(settings)
}

/// The isolation that can be had here, said aloud if it is less than usual. Without any nothing runs.
fn lowered(mut settings: Settings, globals: &Globals, screen: &Screen) -> anyhow::Result<Settings> {
    let level = Launcher::this_program().posture().level;
    if level >= settings.minimum || globals.sandbox.is_some() {
        return Ok(settings);
    }
    let demanded = settings.enterprise.min_sandbox().unwrap_or(IsolationLevel::None);
    if level == IsolationLevel::None || level < demanded {
        let text = format!(
            "nothing here isolates a command well enough (level `{level}`), so the demo runs none; `portcullis doctor` says \
             what is missing"
        );
        return Err(fault(Ended::Failed, text));
    }
    let words = format!(
        "commands run at isolation level `{level}` here, not `{}`; `portcullis doctor` says what is missing",
        settings.minimum
    );
    screen.line(&styled(YELLOW, &words));
    settings.minimum = level;
    Ok(settings)
}

fn played(name: &str, script: &str) -> anyhow::Result<Arc<dyn Model>> {
    Ok(Arc::new(Scripted::parse(name, script).map_err(|error| failed(error.to_string()))?))
}

/// Where the project lies; gone with this, unless it is to stay.
struct Place {
    folder: PathBuf,
    /// What commands in a folder that goes leave in the data folder, which goes with it.
    caches: Option<PathBuf>,
    _scratch: Option<tempfile::TempDir>,
}

impl Place {
    fn lay_out(home: &Home, keep: Option<&Path>, project: &[(&str, &str)]) -> anyhow::Result<Self> {
        let (folder, scratch) = match keep {
            Some(folder) => {
                let cannot = |why: &dyn std::fmt::Display| usage(format!("--keep {}: {why}", folder.display()));
                if folder.exists() && !folder.is_dir() {
                    return Err(cannot(&"it is a file, not a folder; name a new or empty folder"));
                }
                fs::create_dir_all(folder).map_err(|e| cannot(&e))?;
                if fs::read_dir(folder).map_err(|e| cannot(&e))?.next().is_some() {
                    return Err(cannot(&"it is not empty; name a new folder"));
                }
                (folder.to_owned(), None)
            }
            None => {
                let made = tempfile::Builder::new().prefix("portcullis-demo-").tempdir();
                let scratch = made.context("no folder for the demo can be made; name one with --keep")?;
                (scratch.path().to_owned(), Some(scratch))
            }
        };
        let folder = folder.canonicalize().with_context(|| folder.display().to_string())?;
        for (name, text) in project {
            fs::write(folder.join(name), text).with_context(|| format!("cannot write {name}"))?;
        }
        let caches = scratch.is_some().then(|| home.caches(&folder));
        Ok(Self { folder, caches, _scratch: scratch })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(caches) = &self.caches {
            // What stays is found by `doctor` and `gc`.
            let _ = caches::remove(caches);
        }
    }
}

/// The session, until nothing is left to do.
async fn see_through(work: &Work<'_>, screen: &Arc<Screen>, term: &Term) -> anyhow::Result<Outcome> {
    let agent = work.agent(screen);
    let mut drive = Drive {
        world: work.world,
        runtime: &work.runtime,
        agent: &agent,
        session: work.session,
        approvals: ApprovalMode::Allow,
        by: BY,
        screen: Arc::clone(screen),
        term: *term,
        interrupts: interrupts()?,
        typed: None,
        left: false,
        elsewhere: false,
        failure: None,
    };
    let outcome = drive.go().await;
    work.runtime.shutdown().await;
    outcome
}

/// How it ended, in words; the verdict on its last answer.
fn told(outcome: &Outcome, screen: &Screen) -> anyhow::Result<Option<FinalVerdict>> {
    match outcome {
        Outcome::Done(end) => {
            if let Some(checked) = &end.checked {
                screen.line(&screen::verdict(checked));
            }
            Ok(end.checked.as_ref().map(|checked| checked.verdict))
        }
        Outcome::Failed(error) => Err(failed(format!("the model failed: {}", error.message))),
        Outcome::Interrupted => Err(fault(Ended::Interrupted, "interrupted")),
        Outcome::Nothing | Outcome::Waits(_) | Outcome::Later(_) => Ok(None),
    }
}

/// The commands that look at what happened.
fn look_at(work: &Work<'_>, screen: &Screen) {
    let session = work.session;
    screen.line(&format!("session {session}; look at what happened:"));
    for words in
        [format!("sessions trace {session} --all"), format!("audit verify {session}"), format!("replay {session}")]
    {
        screen.line(&format!("  {}", work.world.command(&words)));
    }
}
