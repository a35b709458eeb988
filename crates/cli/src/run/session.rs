//! The session that a run works in: a new one, one by its id, or the newest of this workspace.

use std::path::Path;
use std::sync::Arc;

use portcullis::model::Model;
use portcullis::{ModelSetup, Runtime, SessionId, Setup};
use portcullis_config::ModelChoice;
use portcullis_event::facts::text_of;
use portcullis_event::{Body, LOCAL_TENANT, SessionStatus};
use portcullis_secret::Redactor;
use portcullis_store::{Log as _, SessionSummary};

use super::{model, title};
use crate::args::{Globals, RunArgs};
use crate::call;
use crate::custom_tools;
use crate::exit::failed;
use crate::render::{DIM, Term, exact, safe_line, styled};
use crate::thinker;
use crate::world::{Role, World, call_session, key, next_call_session};

const ROLE: Role = Role::standing("portcullis run");
/// The name of a conversation in which nothing was said yet.
pub const UNNAMED: &str = "conversation";
/// Events of a conversation that are looked through for its first message.
const FIRST_EVENTS: usize = 20;

/// What a session is called: a conversation has its first message for a name, without keys.
pub async fn name(world: &World, session: SessionId, title: Option<&str>) -> Option<String> {
    let title = title?;
    if title != UNNAMED {
        return Some(title.to_owned());
    }
    // A log that cannot be read is told by whoever needs it.
    let begun = world.store.read(key(session), 0, FIRST_EVENTS).await.unwrap_or_default();
    let first = begun.iter().find_map(|event| match event.body() {
        Body::UserMessage(message) => Some(text_of(&message.content)),
        _ => None,
    });
    let masked = first.map(|text| super::title(&Redactor::none().and_keys().redact_text(&text)));
    Some(masked.unwrap_or_else(|| title.to_owned()))
}

/// How many sessions are looked through at first for the newest of a workspace.
const LOOKED_AT: usize = 1_000;

/// A session that a model works in.
pub struct OpenedSession {
    pub runtime: Runtime,
    pub session: SessionId,
    pub model: Arc<dyn Model>,
    /// What the model came from.
    pub choice: ModelChoice,
}

/// Opens the session of a run. `chosen` is the model of a new one, or the one that a flag or a variable names; without it
/// the session that is gone on with has its own.
pub async fn open(
    world: &World,
    (args, globals): (&RunArgs, &Globals),
    chosen: Option<(Arc<dyn Model>, Option<ModelSetup>)>,
    (folder, named): (&Path, &str),
    term: &Term,
) -> anyhow::Result<OpenedSession> {
    let settings = &world.settings;
    let resumes = args.session.is_some() || args.resume;
    if let Some((model, own)) = chosen.clone().filter(|_| !resumes) {
        let runtime = world.runtime(folder, ROLE)?;
        let custom_tools = custom_tools::read(args.custom_tools.as_deref())?;
        let setup = Setup { model: own, custom_tools, ..runtime.setup().clone() };
        let session = custom_tools::session(&runtime, &title(&runtime.gate().masked(named)), &setup).await?;
        return Ok(OpenedSession { runtime, session, model, choice: settings.model.clone() });
    }
    let session = match args.session {
        Some(session) => session,
        None => {
            let (session, name) = newest(world, folder).await?;
            term.note(&styled(DIM, &format!("going on with {session}: {}", safe_line(&name, 60))));
            session
        }
    };
    let own = world.setup(session).await?.setup;
    let choice = thinker::model_of(settings, &own);
    let (model, chosen) = match chosen {
        Some(chosen) => chosen,
        None => model::choose(settings, &choice, args.strict_script, term).await?,
    };
    let setup = Setup { model: chosen, ..thinker::started(own, settings) };
    let runtime = call::of_session(world, session, setup, globals, ROLE, term).await?;
    Ok(OpenedSession { runtime, session, model, choice })
}

/// The newest session of a workspace that is not the one of its calls. One in which nothing was said yet counts only if
/// there is no other: somebody opened a conversation and left.
async fn newest(world: &World, folder: &Path) -> Result<(SessionId, String), anyhow::Error> {
    let here = folder.to_string_lossy();
    let calls = call_session(folder);
    let later = next_call_session(calls);
    let of_here = |summary: &SessionSummary| {
        let of_calls = summary.session_id == calls || summary.session_id == later;
        summary.row.workspace.as_deref() == Some(&*here)
            && summary.head.status != SessionStatus::Terminated
            && !of_calls
    };
    let mut most = LOOKED_AT;
    let found = loop {
        let all = world.store.sessions(LOCAL_TENANT, most).await?;
        let whole = all.len() < most;
        let (begun, empty): (Vec<_>, Vec<_>) =
            all.into_iter().filter(of_here).partition(|found| found.head.last_seq > 1);
        match begun.into_iter().next() {
            Some(found) => break Some(found),
            None if whole => break empty.into_iter().next(),
            // Further back: the store may serve many folders.
            None => most = most.saturating_mul(10),
        }
    };
    match found {
        // A row is where it is found by; where it works, its log says.
        Some(summary) => {
            let created = world.created(summary.session_id).await?;
            if created.workspace.as_deref() != Some(&*here) {
                let (session, verify) = (summary.session_id, world.command("audit verify"));
                let made_in = created.workspace.unwrap_or_else(|| "no folder".to_owned());
                return Err(failed(format!(
                    "by its row the session {session} works in {here}, by its log in {}: somebody altered the store, see \
                     {verify}",
                    exact(&made_in, 4_096)
                )));
            }
            let name = name(world, summary.session_id, created.name.as_deref()).await;
            Ok((summary.session_id, name.unwrap_or_default()))
        }
        None => Err(failed(format!("no session of {here} to go on with; leave --continue out to begin one"))),
    }
}
