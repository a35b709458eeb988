//! `demo --crash`: a process of ours dies in the middle of a command, and another goes on where it was.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use portcullis::SessionId;
use portcullis_base::Code;
use serde_json::json;

use super::{Place, look_at, lowered, played, see_through, settings, told};
use crate::args::Globals;
use crate::exit::{Ended, failed, usage};
use crate::person;
use crate::render::{BOLD, Term, styled};
use crate::run::Work;
use crate::run::screen::Screen;
use crate::world::World;

pub const PROJECT: &[(&str, &str)] = &[("long.sh", include_str!("long.sh"))];
const SCRIPT: &str = include_str!("crash.toml");
const PROMPT: &str = "Run long.sh and tell me how it went.";
/// What the command writes first.
const BEGAN: &str = "began.txt";
/// How long the command may take to begin, and to be gone after its runner was killed.
const PATIENCE: Duration = Duration::from_secs(8);
const LOOK: Duration = Duration::from_millis(20);

pub async fn run(
    world: &World,
    place: &Place,
    globals: &Globals,
    screen: &Arc<Screen>,
    term: &Term,
) -> anyhow::Result<Ended> {
    let tag = format!("demo-{}", world.tag());
    screen.line(&styled(BOLD, &format!("A project in {} with a command that takes long.", place.folder.display())));
    screen.line(&styled(BOLD, &format!("> {PROMPT}")));
    let runtime = world.runtime(&place.folder, "portcullis demo")?;
    let session = runtime.create_session("demo --crash").await?;
    runtime.say(session, &person::login(), PROMPT).await?;
    // Another process works on it, so that it can really be killed.
    let mut child = worker(session, &tag)?;
    let began = wait(|| place.folder.join(BEGAN).exists() || child.try_wait().is_ok_and(|ended| ended.is_some())).await;
    let pid = child.id();
    // SIGKILL: nothing of it can tidy up.
    child.kill().context("the process cannot be killed")?;
    child.wait().context("the process cannot be waited for")?;
    if !began || !place.folder.join(BEGAN).exists() {
        return Err(failed("the command did not begin, so there was nothing to crash"));
    }
    screen.line(&styled(
        BOLD,
        &format!("process {pid} was killed (SIGKILL) in the middle of the command; another goes on:"),
    ));
    let dead = wait(|| !runs(&tag)).await;
    let model = played("demo-crash", &SCRIPT.replace("@TAG@", &tag))?;
    let work = Work { world, runtime, session, model, before: 0, globals };
    told(&see_through(&work, screen, term).await?, screen)?;
    let observed = work.observed().await?;
    let unknown = observed.iter().filter(|seen| seen.code.known() == Some(Code::OutcomeUnknown)).count();
    let times = fs::read_to_string(place.folder.join(BEGAN)).unwrap_or_default().lines().count();
    screen.line(&format!(
        "unknown calls: {unknown}; the command began {times} time{}; it is {}",
        if times == 1 { "" } else { "s" },
        if dead { "dead" } else { "still running" }
    ));
    look_at(&work, screen);
    let well = unknown == 1 && times == 1 && dead;
    let ended = if well { Ended::Done } else { Ended::Failed };
    screen.document(&json!({
        "type": "end", "exit": ended as u8, "session_id": session, "unknown": unknown, "began": times, "dead": dead,
    }));
    Ok(ended)
}

/// This very program once more, at work on the session.
fn worker(session: SessionId, tag: &str) -> anyhow::Result<Child> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut words: Vec<_> = std::env::args_os().skip(1).collect();
    words.extend(["--stage".into(), format!("{session}:{tag}").into()]);
    let child = Command::new(program).args(words).stdin(Stdio::null()).spawn();
    child.context("cannot start this program once more")
}

/// What the process does that will be killed.
pub async fn perform(stage: &str, globals: &Globals, term: &Term) -> anyhow::Result<Ended> {
    let (session, tag) = stage.split_once(':').ok_or_else(|| usage("--stage is for the demo itself"))?;
    let session = SessionId::from_str(session).map_err(|e| usage(e.to_string()))?;
    let quiet = Arc::new(Screen::new(*term, true));
    let world = World::open(lowered(settings(globals)?, globals, &quiet)?, term)?;
    let runtime = world.runtime_of(session, "portcullis demo").await?;
    let model = played("demo-crash", &SCRIPT.replace("@TAG@", tag))?;
    let work = Work { world: &world, runtime, session, model, before: 0, globals };
    see_through(&work, &quiet, term).await?;
    Ok(Ended::Done)
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
