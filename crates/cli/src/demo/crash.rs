//! `demo --crash`: a process of ours dies in the middle of a command, and another goes on where it was.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use portcullis::SessionId;
use portcullis::local::ProcessRole;
use portcullis::model::Model;
use portcullis_base::Code;
use portcullis_terminal::render::{BOLD, Term, place as place_of, styled};
use portcullis_terminal::signals::Leave;
use serde_json::json;

use super::{DemoProject, Stop, look_at, lowered, played, see_through, settings, told};
use crate::args::Globals;
use crate::exit::{ExitKind, failed, usage};
use crate::person;
use crate::run::ModelRun;
use crate::run::screen::Screen;
use crate::world::World;

pub const PROJECT: &[(&str, &str)] = &[("long.sh", include_str!("long.sh"))];
const SCRIPT: &str = include_str!("crash.toml");
const PROMPT: &str = "Run long.sh and tell me how it went.";
/// What the command writes first.
const BEGAN: &str = "began.txt";
/// How long the command may take to begin, and to be gone after its runner was killed.
const PATIENCE: Duration = Duration::from_secs(8);
/// How long the command of a process that was killed early may take to be gone.
const AFTERWARDS: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(20);

/// What the model says, about the command of this very demo.
pub fn model(tag: &str) -> anyhow::Result<Arc<dyn Model>> {
    played("demo-crash", &SCRIPT.replace("@TAG@", tag))
}

pub async fn run(
    work: &ModelRun<'_>,
    place: &DemoProject,
    tag: &str,
    (screen, term): (&Arc<Screen>, &Term),
    stop: &Stop,
) -> anyhow::Result<ExitKind> {
    screen.line(&styled(BOLD, &format!("A project in {} with a command that takes long.", place_of(&place.folder))));
    screen.line(&styled(BOLD, &format!("> {PROMPT}")));
    let session = work.session;
    work.runtime.say(session, &person::login(), PROMPT).await?;
    // Another process works on it, so that it can really be killed.
    let mut stage = Stage::begin(session, tag)?;
    let pid = stage.child.id();
    let began = place.folder.join(BEGAN);
    tokio::select! {
        _ = wait(|| began.exists() || stage.child.try_wait().is_ok_and(|ended| ended.is_some())) => {}
        () = stop.any.cancelled() => return Err(stop.error()),
    }
    stage.kill()?;
    if !began.exists() {
        return Err(failed("the command did not begin, so there was nothing to crash"));
    }
    screen.line(&styled(
        BOLD,
        &format!("process {pid} was killed (SIGKILL) in the middle of the command; another goes on:"),
    ));
    let dead = wait(|| !runs(tag)).await;
    told(&see_through(work, screen, term, stop).await?, screen, stop)?;
    let observed = work.observed(0).await?;
    let unknown = observed.iter().filter(|seen| seen.code.known() == Some(Code::OutcomeUnknown)).count();
    let times = fs::read_to_string(began).unwrap_or_default().lines().count();
    screen.print(&format!(
        "unknown calls: {unknown}; the command began {times} time{}; it is {}",
        if times == 1 { "" } else { "s" },
        if dead { "dead" } else { "still running" }
    ));
    look_at(work, screen, term);
    let well = unknown == 1 && times == 1 && dead;
    let ended = if well { ExitKind::Done } else { ExitKind::Failed };
    screen.document(&json!({
        "type": "end", "exit": ended as u8, "session_id": session, "usage": work.used().await?,
        "unknown": unknown, "began": times, "dead": dead,
    }));
    Ok(ended)
}

/// This very program once more, at work on the session. It does not outlive this, nor does its command.
struct Stage {
    child: Child,
    tag: String,
}

impl Stage {
    fn begin(session: SessionId, tag: &str) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut words: Vec<_> = std::env::args_os().skip(1).collect();
        words.extend(["--stage".into(), format!("{session}:{tag}:{}", std::process::id()).into()]);
        let child = Command::new(program).args(words).stdin(Stdio::null()).spawn();
        Ok(Self { child: child.context("cannot start this program once more")?, tag: tag.to_owned() })
    }

    /// SIGKILL: nothing of it can tidy up.
    fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill().context("the process cannot be killed")?;
        self.child.wait().context("the process cannot be waited for")?;
        Ok(())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // It may be dead already.
        if self.kill().is_ok() {
            // Its command goes right after it; a folder that goes must not be written into any more.
            let since = Instant::now();
            while runs(&self.tag) && since.elapsed() < AFTERWARDS {
                std::thread::sleep(LOOK);
            }
        }
    }
}

/// What the process does that will be killed.
pub async fn perform(stage: &str, globals: &Globals, term: &Term) -> anyhow::Result<ExitKind> {
    let words: Vec<&str> = stage.split(':').collect();
    let [session, tag, parent] = words[..] else { return Err(usage("--stage is for the demo itself")) };
    die_with(parent)?;
    // Whoever started it says what there is to say.
    let mut leave = Leave::listen()?;
    let session = SessionId::from_str(session).map_err(|e| usage(e.to_string()))?;
    let quiet = Arc::new(Screen::new(*term, true));
    let world = World::open(lowered(settings(globals)?, globals, &quiet)?, term)?;
    let runtime = world.runtime_of(session, ProcessRole::standing("portcullis demo")).await?;
    let work = ModelRun {
        world: &world,
        runtime,
        session,
        model: model(tag)?,
        choice: world.settings.model.clone(),
        before: 0,
        globals,
        model_is_unknown: Default::default(),
    };
    let stop = Stop::default();
    tokio::select! {
        biased;
        how = leave.next() => Ok(how.into()),
        outcome = see_through(&work, &quiet, term, &stop) => outcome.map(|_| ExitKind::Done),
    }
}

/// Whatever ends the process that started this one ends this one, too.
fn die_with(parent: &str) -> anyhow::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .context("this process cannot be bound to its parent")?;
    // It may have died before that, and then nothing comes.
    let now = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().to_string());
    if now.as_deref() == Some(parent) { Ok(()) } else { Err(Stop::default().error()) }
}

/// Waits until it is so, as long as anyone has patience for; whether it came to be so.
async fn wait(mut so: impl FnMut() -> bool) -> bool {
    let since = Instant::now();
    while since.elapsed() < PATIENCE {
        if so() {
            return true;
        }
        tokio::time::sleep(LOOK).await;
    }
    so()
}

/// Whether a command with that word is there.
fn runs(tag: &str) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.map(|process| process.path().join("cmdline")).any(|file| {
        let words = fs::read(file).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|word| word == tag.as_bytes())
    })
}
