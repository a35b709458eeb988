//! `demo`: a small real project whose test fails, and a scripted model that mends it. Only the model is played; every call
//! passes the gate and really runs.

mod crash;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use portcullis::hand::Launcher;
use portcullis::local::ProcessRole;
use portcullis::model::{Model, Scripted};
use portcullis::{IsolationLevel, Profile};
use portcullis_config::{ApprovalMode, Home, Settings, caches};
use portcullis_event::facts::FinalVerdict;
use portcullis_terminal::render::{BOLD, DIM, Term, YELLOW, place as place_of, quoted, styled};
use portcullis_terminal::signals::{Interrupts, Leave, LeaveSignal};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::args::{DemoArgs, Globals, ProfileName};
use crate::exit::{ExitKind, failed, fault, streamed, usage};
use crate::hints;
use crate::run::drive::{Drive, Outcome};
use crate::run::screen::Screen;
use crate::run::words;
use crate::run::{ModelRun, model, spent};
use crate::world::World;
use crate::{person, wake};

/// Who answers the asks of a demo.
const BY: &str = "the demo";
const PROMPT: &str = "The test of this project fails. Find out why, mend it, and show that it passes.";
const PROJECT: &[(&str, &str)] = &[("sum.sh", include_str!("sum.sh")), ("test.sh", include_str!("test.sh"))];
const MEND: &str = include_str!("mend.toml");
/// The file beside a project that stays, which holds what its model says.
const MODEL: &str = "model.toml";
/// Until a signal that has come is heard.
const A_MOMENT: Duration = Duration::from_millis(20);
/// How long a demo that is to end waits for what runs to settle.
const GRACE: Duration = Duration::from_secs(3);

pub async fn run(args: &DemoArgs, globals: &Globals, term: &Term) -> anyhow::Result<ExitKind> {
    if let Some(stage) = &args.stage {
        return crash::perform(stage, globals, term).await;
    }
    refuse(globals)?;
    // Before anything is laid out: whoever ends a demo early finds nothing of it left.
    let mut leave = Leave::listen()?;
    let stop = Stop::default();
    let mut shown = Box::pin(show(args, globals, term, &stop));
    loop {
        tokio::select! {
            ended = &mut shown => return ended,
            how = leave.next() => {
                if stop.any.is_cancelled() {
                    break;
                }
                stop.by(how);
            }
            () = tokio::time::sleep(GRACE), if stop.any.is_cancelled() => break,
        }
    }
    // The folder goes with it, and what runs with this process.
    drop(shown);
    Err(streamed(term, json!({"type": "end", "stop": "error"}), stop.error()))
}

/// A demo answers its own asks, in the one profile that its model knows: what it cannot do it does not pass over.
fn refuse(globals: &Globals) -> anyhow::Result<()> {
    if let Some(ApprovalMode::Ask | ApprovalMode::Deny) = globals.approvals {
        let text = "the demo answers its own asks with allow, in a folder made for it; leave --approvals out, or see \
                    `portcullis run --approvals deny`";
        return Err(usage(text));
    }
    if globals.profile == Some(ProfileName::Managed) {
        return Err(usage("the demo works in profile `code`, as `portcullis run` does; leave --profile out"));
    }
    Ok(())
}

/// That somebody wants a demo to end.
#[derive(Default)]
struct Stop {
    any: CancellationToken,
    how: OnceLock<LeaveSignal>,
    /// By another signal than Ctrl-C, which whoever drives the session hears itself.
    other: CancellationToken,
}

impl Stop {
    fn by(&self, how: LeaveSignal) {
        // The first counts.
        let _ = self.how.set(how);
        if how != LeaveSignal::Interrupt {
            self.other.cancel();
        }
        self.any.cancel();
    }

    /// An error once somebody does.
    fn check(&self) -> anyhow::Result<()> {
        if self.any.is_cancelled() { Err(self.error()) } else { Ok(()) }
    }

    fn error(&self) -> anyhow::Error {
        fault(self.how.get().copied().map_or(ExitKind::Interrupted, ExitKind::from), "the demo was ended early")
    }
}

async fn show(args: &DemoArgs, globals: &Globals, term: &Term, stop: &Stop) -> anyhow::Result<ExitKind> {
    let settings = settings(globals)?;
    // Before anything is laid out: whoever mistyped its name says it again for the same folder.
    let chosen = match (&globals.model, args.crash) {
        (Some(_), false) => Some(model::choose(&settings, &settings.model, false, term).await?.0),
        _ => None,
    };
    let place =
        DemoProject::lay_out(&settings.home, args.keep.as_deref(), if args.crash { crash::PROJECT } else { PROJECT })?;
    let screen = Arc::new(Screen::new(*term, true));
    let settings = match lowered(settings, globals, &screen) {
        Ok(settings) => settings,
        Err(error) => {
            // A signal that comes while this machine is tried out makes it look worse than it is.
            tokio::time::sleep(A_MOMENT).await;
            stop.check()?;
            return Err(error);
        }
    };
    let world = World::open(settings, term)?;
    let runtime = world.runtime(&place.folder, ProcessRole::standing("portcullis demo"))?;
    let tag = format!("demo-{}", world.tag());
    let model: Arc<dyn Model> = match chosen {
        Some(model) => model,
        None if args.crash => crash::model(&tag)?,
        None => played("demo", MEND)?,
    };
    let session = runtime.create_session(if args.crash { "demo --crash" } else { "demo" }).await?;
    let work = ModelRun {
        world: &world,
        runtime,
        session,
        model,
        choice: world.settings.model.clone(),
        before: 0,
        globals,
        model_is_unknown: Default::default(),
    };
    let ended = match args.crash {
        true => crash::run(&work, &place, &tag, (&screen, term), stop).await,
        false => mend(&work, &place, &screen, term, stop).await,
    };
    let ended = ended.and_then(|ended| screen.written().map(|()| ended));
    ended.map_err(|error| streamed(term, json!({"type": "end", "stop": "error", "session_id": session}), error))
}

/// The project whose test fails.
async fn mend(
    work: &ModelRun<'_>,
    place: &DemoProject,
    screen: &Arc<Screen>,
    term: &Term,
    stop: &Stop,
) -> anyhow::Result<ExitKind> {
    screen.line(&styled(BOLD, &format!("A project in {}: sum.sh, and test.sh, which fails.", place_of(&place.folder))));
    screen.line(&styled(BOLD, &format!("> {PROMPT}")));
    work.runtime.say(work.session, &person::login(), PROMPT).await?;
    let began = Instant::now();
    let outcome = see_through(work, screen, term, stop).await?;
    let passes = work.observed(0).await?.iter().rev().find(|seen| seen.tool == "bash").is_some_and(|seen| seen.ok);
    let verdict = told(&outcome, screen, stop)?;
    let used = work.used().await?;
    screen.line(&styled(DIM, &spent(&used, began)));
    if place.stays() {
        screen.line(&format!("the project stays in {}", place_of(&place.folder)));
        let model = match &work.globals.model {
            Some(name) => name.clone(),
            None => format!("scripted:{}", place.leave(MODEL, MEND)?.display()),
        };
        let words = format!("run --session {} --model {}", work.session, quoted(model.as_bytes()));
        screen.line(&format!("to take the repair back, type /undo in: {}", work.world.command(&words)));
    }
    if !place.stays() {
        screen.line("the project's folder is removed now; `portcullis demo --keep DIR` leaves it");
    }
    look_at(work, screen, term);
    let well = passes && verdict == Some(FinalVerdict::Supported);
    let ended = if well { ExitKind::Done } else { ExitKind::Failed };
    screen.document(&json!({
        "type": "end", "exit": ended as u8, "session_id": work.session, "usage": used,
        "verdict": verdict, "test_passes": passes,
    }));
    Ok(ended)
}

/// The user's own, in the profile of `run`, with every ask answered: what is asked about is a project made for this.
fn settings(globals: &Globals) -> anyhow::Result<Settings> {
    let mut settings = globals.settings()?;
    settings.profile = Profile::Code;
    portcullis_config::permitted(ApprovalMode::Allow, &settings.enterprise)?;
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
        return Err(fault(ExitKind::Failed, text));
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
struct DemoProject {
    folder: PathBuf,
    /// What commands in a folder that goes leave in the data folder, which goes with it.
    caches: Option<PathBuf>,
    scratch: Option<tempfile::TempDir>,
}

impl DemoProject {
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
        Ok(Self { folder, caches, scratch })
    }

    fn stays(&self) -> bool {
        self.scratch.is_none()
    }

    /// Leaves one more file there.
    fn leave(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let file = self.folder.join(name);
        fs::write(&file, text).with_context(|| format!("cannot write {name}"))?;
        Ok(file)
    }
}

impl Drop for DemoProject {
    fn drop(&mut self) {
        if let Some(caches) = &self.caches {
            // What stays is found by `doctor` and `gc`.
            let _ = caches::remove(caches);
        }
    }
}

/// The session, until nothing is left to do.
async fn see_through(work: &ModelRun<'_>, screen: &Arc<Screen>, term: &Term, stop: &Stop) -> anyhow::Result<Outcome> {
    stop.check()?;
    let agent = work.agent(screen).await;
    let mut drive = Drive {
        world: work.world,
        runtime: &work.runtime,
        agent: &agent,
        session: work.session,
        approvals: ApprovalMode::Allow,
        by: BY,
        screen: Arc::clone(screen),
        term: *term,
        interrupts: Interrupts::listen()?,
        typed: None,
        left: false,
        elsewhere: None,
        superseded: false,
        failure: None,
    };
    let outcome = {
        let mut going = std::pin::pin!(drive.go());
        tokio::select! {
            outcome = &mut going => outcome,
            () = stop.other.cancelled() => {
                work.runtime.interrupt(work.session, &person::login(), Some("the demo was ended")).await?;
                going.await
            }
        }
    };
    work.runtime.shutdown().await;
    // An interrupt that comes together with the prompt does not keep the session from it.
    stop.check()?;
    outcome
}

/// How it ended, in words; the verdict on its last answer.
fn told(outcome: &Outcome, screen: &Screen, stop: &Stop) -> anyhow::Result<Option<FinalVerdict>> {
    match outcome {
        Outcome::Done(end) => {
            if let Some(words) = wake::no_answer(end) {
                screen.error(&words);
            }
            if let Some(checked) = &end.checked {
                screen.print(&words::verdict(checked));
            }
            Ok(end.checked.as_ref().map(|checked| checked.verdict))
        }
        Outcome::Failed(error) => Err(failed(format!("the model failed: {}", hints::explained(error)))),
        Outcome::Interrupted => Err(stop.error()),
        Outcome::Nothing | Outcome::Waits(_) | Outcome::Later(_) => Ok(None),
    }
}

/// The commands that look at what happened.
fn look_at(work: &ModelRun<'_>, screen: &Screen, term: &Term) {
    let session = work.session;
    if term.quiet {
        screen.print(&format!("session {session}"));
    }
    screen.line(&format!("session {session}; look at what happened:"));
    for words in
        [format!("sessions trace {session} --all"), format!("audit verify {session}"), format!("replay {session}")]
    {
        screen.line(&format!("  {}", work.world.command(&words)));
    }
}
