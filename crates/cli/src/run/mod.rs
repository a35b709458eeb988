//! `run`: a model at work in this workspace, until it is done or somebody must answer.

mod asks;
mod changes;
pub mod drive;
pub mod model;
pub mod screen;
mod session;
mod talk;
mod typed;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use portcullis::harness::{Guidance, Settings as Wakes, WakeEnd};
use portcullis::model::Model;
use portcullis::{Agent, AgentParts, Profile, Runtime, SessionId, SystemIds};
use portcullis_event::facts::SessionUsage;
use portcullis_event::fold::CustomRequest;
use portcullis_event::{Body, Observed};
use portcullis_pipeline::folded;
use portcullis_store::Log as _;
use serde_json::{Value, json};

use crate::args::{Globals, RunArgs};
use crate::ask::Ask;
use crate::config::{self, Settings};
use crate::exit::{Ended, interrupts, usage};
use crate::render::{self, BOLD, DIM, Term, safe_line, styled};
use crate::world::{World, key, quoted, workspace};
use crate::{ask_view, call, person};
use drive::{Drive, Outcome};
use screen::Screen;

/// The guidance of a workspace, first found first.
const GUIDANCE: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

pub async fn run(args: &RunArgs, globals: &Globals, term: &Term) -> anyhow::Result<Ended> {
    let prompt = prompt(args, term)?;
    let mut settings = Settings::load(globals)?;
    if globals.profile.is_none() {
        settings.profile = Profile::Code;
    }
    let folder = workspace(globals)?;
    // Rules that cannot be read and models that are none stop the start before anything is made on disk.
    settings.policy(&folder)?;
    call::warn_of_trust(&settings, &folder, term)?;
    let model = model::choose(&settings, args.strict_script, term).await?;
    let world = World::open(settings, term)?;
    let named = prompt.as_deref().unwrap_or("conversation");
    let (runtime, session) = session::open(&world, args, globals, (&folder, named), term).await?;
    let before = world.store.head(key(session)).await?.map_or(0, |head| head.last_seq);
    let work = Work { world: &world, runtime, session, model, before, globals };
    let screen = Arc::new(Screen::new(*term, false));
    let agent = work.agent(&screen);
    screen.document(&json!({
        "type": "session", "session_id": session, "workspace": work.runtime.workspace(),
        "model": work.model.name().to_string(), "resumed": args.session.is_some() || args.resume,
    }));
    if let Some(prompt) = &prompt {
        work.runtime.say(session, &person::login(), prompt).await?;
    }
    let mut drive = Drive {
        world: &world,
        runtime: &work.runtime,
        agent: &agent,
        session,
        approvals: world.settings.approvals,
        by: "--approvals",
        screen: Arc::clone(&screen),
        term: *term,
        interrupts: interrupts()?,
        typed: None,
        left: false,
        elsewhere: false,
        failure: None,
    };
    let began = Instant::now();
    let ended = match prompt.is_none() && term.interactive() {
        true => talk::talk(&work, &mut drive).await,
        false => match drive.go().await {
            Ok(outcome) => work.end(outcome, &screen, began).await,
            Err(error) => Err(error),
        },
    };
    // What a persistent shell holds does not outlive the run. Whoever left does not wait for it: with this process its
    // commands end, and what it leaves unsettled the next one settles, as after a crash.
    if !drive.left {
        work.runtime.shutdown().await;
    }
    ended
}

/// What is to be done, in the user's words.
fn prompt(args: &RunArgs, term: &Term) -> anyhow::Result<Option<String>> {
    let text = match args.prompt.as_deref() {
        Some("-") => Some(call::input("-")?),
        other => other.map(str::to_owned),
    };
    let resumes = args.session.is_some() || args.resume;
    match text {
        Some(text) if text.trim().is_empty() => Err(usage("the prompt is empty; say what is to be done")),
        None if !resumes && !term.interactive() => Err(usage(
            "what is to be done? portcullis run \"PROMPT\"; without one a terminal is needed, or --continue to go on",
        )),
        text => Ok(text),
    }
}

/// The workspace's own words to whoever works in it. One that cannot be read is told, and left out.
pub fn guidance(folder: &Path, term: &Term) -> Option<Guidance> {
    GUIDANCE.iter().find_map(|name| match config::read(&folder.join(name)) {
        Ok(text) => text.map(|text| Guidance { name: (*name).to_owned(), text }),
        Err(error) => {
            term.note(&format!("warning: the guidance is left out: {error}"));
            None
        }
    })
}

/// A run, with what is needed to say how it went.
pub struct Work<'a> {
    pub world: &'a World,
    pub runtime: Runtime,
    pub session: SessionId,
    pub model: Arc<dyn Model>,
    /// The last event before it.
    pub before: u64,
    pub globals: &'a Globals,
}

impl Work<'_> {
    pub fn agent(&self, screen: &Arc<Screen>) -> Agent {
        let settings = &self.world.settings;
        let folder = self.runtime.workspace().unwrap_or(Path::new("."));
        let wakes = Wakes {
            guidance: guidance(folder, &Term::new(self.globals)),
            directive: false,
            // A person waits: what will not go well later is told at once.
            other_tries: 1,
            ..settings.model.wakes()
        };
        self.runtime.agent(AgentParts {
            model: Arc::clone(&self.model),
            settings: wakes,
            watcher: Arc::clone(screen) as _,
            entropy: Arc::new(SystemIds::new()),
            sandbox: format!(
                "commands run isolated at level {} or better; their network is {}",
                settings.minimum,
                settings.network.as_str()
            ),
        })
    }

    /// The command that goes on with this session.
    fn again(&self, prompt: Option<&str>) -> String {
        let mut words = format!("run --session {}", self.session);
        if let Some(name) = self.globals.model.as_deref() {
            words.push_str(&format!(" --model {}", quoted(name.as_bytes())));
        }
        if let Some(url) = self.globals.base_url.as_deref() {
            words.push_str(&format!(" --base-url {}", quoted(url.as_bytes())));
        }
        if let Some(prompt) = prompt {
            words.push_str(&format!(" {}", quoted(prompt.as_bytes())));
        }
        self.world.command(&words)
    }

    /// Says how it ended, what it used, and what goes on from here.
    async fn end(&self, outcome: Outcome, screen: &Screen, began: Instant) -> anyhow::Result<Ended> {
        let used = self.used().await?;
        let handed_over = self.handed_over().await?;
        let (ended, mut document) = match &outcome {
            Outcome::Nothing if !handed_over.is_empty() => (Ended::Waits, self.waits(&[], &handed_over, screen)),
            Outcome::Done(end) => {
                (done(end, screen), json!({"stop": "done", "text": end.text, "checked": end.checked}))
            }
            Outcome::Nothing => {
                screen.line("nothing is pending in this session; give it a prompt to go on");
                (Ended::Done, json!({"stop": "nothing"}))
            }
            Outcome::Later(at) => {
                screen.line(&format!("it wants to go on at {at}; when that time has come: {}", self.again(None)));
                (Ended::Done, json!({"stop": "later", "at": at}))
            }
            Outcome::Waits(asks) => (Ended::Waits, self.waits(asks, &handed_over, screen)),
            Outcome::Failed(error) => {
                let text = format!("the model failed ({}): {}", error.failure.as_str(), error.message);
                let again = self.again(Some("go on"));
                if !screen.is_json() {
                    self.error(&text);
                }
                screen.line(&format!("what happened so far is kept; go on with: {again}"));
                let failure = error.failure.as_str();
                (Ended::Failed, json!({"stop": "failed", "failure": failure, "message": text, "commands": [again]}))
            }
            Outcome::Interrupted => {
                let again = self.again(Some("go on"));
                screen.line(&format!("interrupted; go on with: {again}"));
                (Ended::Interrupted, json!({"stop": "interrupted", "commands": [again]}))
            }
        };
        screen.line(&styled(DIM, &spent(&used, began)));
        let look = self.world.command(&format!("sessions show {}", self.session));
        screen.line(&styled(DIM, &format!("session {}; look at it with: {look}", self.session)));
        document["type"] = json!("end");
        document["exit"] = json!(ended as u8);
        document["session_id"] = json!(self.session);
        document["usage"] = json!(used);
        screen.document(&document);
        Ok(ended)
    }

    fn error(&self, text: &str) {
        Term::new(self.globals).error(text);
    }

    /// Calls that the client of this session runs.
    async fn handed_over(&self) -> anyhow::Result<Vec<CustomRequest>> {
        let state = folded(&*self.world.store, key(self.session)).await?;
        Ok(state.progress.custom.into_values().collect())
    }

    /// Every ask that nobody could answer here, every call that its client runs, and the exact commands that answer.
    fn waits(&self, asks: &[Ask], handed_over: &[CustomRequest], screen: &Screen) -> Value {
        let again = self.again(None);
        let mut documents = Vec::new();
        for ask in asks {
            screen.line(&ask_view::waiting(self.world, ask));
            documents.push(ask_view::requires_action(self.world, ask)["requires_action"].take());
        }
        let mut custom = Vec::new();
        for request in handed_over {
            let (session, id) = (self.session, request.event_id);
            let answer = self.world.command(&format!("sessions answer {session} --request {id} 'OUTPUT'"));
            let (name, input) = (safe_line(&request.name, 80), safe_line(&request.input.to_string(), 200));
            screen.line(&format!("{name} {input} is run by its client; give the result with: {answer}"));
            custom.push(json!({"id": id, "name": request.name, "input": request.input, "commands": [answer]}));
        }
        screen.line(&format!("{} {again}", styled(BOLD, "then go on with:")));
        json!({"stop": "requires_action", "asks": documents, "custom": custom, "commands": [again]})
    }

    /// What every call after this event came to.
    pub async fn observed(&self, after: u64) -> anyhow::Result<Vec<Observed>> {
        let mut all = Vec::new();
        let gather = |events: &[portcullis_event::Event]| {
            all.extend(events.iter().filter_map(|event| match event.body() {
                Body::Observed(observed) => Some(*observed),
                _ => None,
            }));
            Ok(())
        };
        self.world.each_page(self.session, after, gather).await?;
        Ok(all)
    }

    /// What the requests of this run used.
    pub async fn used(&self) -> anyhow::Result<SessionUsage> {
        let mut used = SessionUsage::default();
        let count = |events: &[portcullis_event::Event]| {
            for event in events {
                match event.body() {
                    Body::ModelRequestEnd(end) => {
                        used.turns += 1;
                        if let Some(usage) = end.model_usage {
                            used.input_tokens += usage.input_tokens;
                            used.output_tokens += usage.output_tokens;
                            used.cache_read_input_tokens += usage.cache_read_input_tokens;
                            used.cache_creation_input_tokens += usage.cache_creation_input_tokens;
                        }
                    }
                    Body::IntentProposed(_) => used.tool_calls += 1,
                    Body::SpanStarted(_) => used.wakes += 1,
                    _ => {}
                }
            }
            Ok(())
        };
        self.world.each_page(self.session, self.before, count).await?;
        Ok(used)
    }
}

fn done(end: &WakeEnd, screen: &Screen) -> Ended {
    if let Some(checked) = &end.checked {
        screen.line(&screen::verdict(checked));
    }
    Ended::Done
}

/// Tokens, requests and calls on one line.
pub fn spent(used: &SessionUsage, began: Instant) -> String {
    let cached = match used.cache_read_input_tokens {
        0 => String::new(),
        cached => format!(" ({cached} from the cache)"),
    };
    format!(
        "{} tokens in{cached}, {} out; {}, {}, {}",
        used.input_tokens,
        used.output_tokens,
        render::count(used.turns, "request"),
        render::count(used.tool_calls, "call"),
        render::span(u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX))
    )
}

/// A name for a session, from what it was asked first.
fn title(prompt: &str) -> String {
    safe_line(prompt, 60)
}
