//! The session that a run works in: a new one, one by its id, or the newest of this workspace.

use std::path::Path;
use std::sync::Arc;

use portcullis::local::{ProcessRole, call_session, model_of, next_call_session, restarted};
use portcullis::model::Model;
use portcullis::{ModelSetup, Runtime, SessionId, Setup};
use portcullis_config::ModelChoice;
use portcullis_secret::Redactor;
use portcullis_terminal::render::{DIM, Term, exact, safe_line, styled};

use super::{model, title};
use crate::args::{Globals, RunArgs};
use crate::call;
use crate::custom_tools;
use crate::exit::failed;
use crate::world::World;

const ROLE: ProcessRole = ProcessRole::standing("portcullis run");
/// The name of a conversation in which nothing was said yet.
pub const UNNAMED: &str = "conversation";

/// What a session is called: a conversation has its first message for a name, without keys.
pub async fn name(world: &World, session: SessionId, title: Option<&str>) -> Option<String> {
    let title = title?;
    if title != UNNAMED {
        return Some(title.to_owned());
    }
    let first = world.archive.first_message(session).await;
    let masked = first.map(|text| super::title(&Redactor::none().and_keys().redact_text(&text)));
    Some(masked.unwrap_or_else(|| title.to_owned()))
}

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
        let session = runtime.create_session_by(&title(&runtime.gate().masked(named)), &setup).await?;
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
    let own = world.archive.setup(session).await?.setup;
    let choice = model_of(settings, &own);
    let (model, chosen) = match chosen {
        Some(chosen) => chosen,
        None => model::choose(settings, &choice, args.strict_script, term).await?,
    };
    let setup = Setup { model: chosen, ..restarted(own, settings) };
    let runtime = call::of_session(world, session, setup, globals, ROLE, term).await?;
    Ok(OpenedSession { runtime, session, model, choice })
}

/// The newest session of a workspace that is not the one of its calls.
async fn newest(world: &World, folder: &Path) -> Result<(SessionId, String), anyhow::Error> {
    let here = folder.to_string_lossy();
    let calls = call_session(folder);
    let later = next_call_session(calls);
    let found = world.archive.newest_conversation(folder, &[calls, later]).await?;
    match found {
        // A row is where it is found by; where it works, its log says.
        Some(summary) => {
            let created = world.archive.created(summary.session_id).await?;
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
