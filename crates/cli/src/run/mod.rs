//! `run`: a model at work in this workspace, until it is done or somebody must answer.

mod answer;
pub mod asks;
pub mod changes;
pub mod drive;
mod elsewhere;
mod live;
pub mod model;
pub mod screen;
pub mod session;
mod talk;
pub mod typed;
mod undo;
pub mod words;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use portcullis::harness::{Guidance, Settings as Wakes, WakeEnd};
use portcullis::local::sandbox_words;
use portcullis::model::{Failure, Model, ModelError};
use portcullis::operations::{AskView, contradicted, limit_word, refused, unfinished};
use portcullis::{Agent, AgentParts, Profile, ProjectGuidance, Runtime, RuntimeError, SessionId, SystemIds};
use portcullis_base::shown::id_ending;
use portcullis_base::{EventId, WakeId};
use portcullis_config::ModelChoice;
use portcullis_config::followed::Followed;
use portcullis_event::facts::{SessionUsage, text_of};
use portcullis_event::fold::HandedOver;
use portcullis_event::{Body, Observed};
use portcullis_terminal::render::{self, BOLD, DIM, Term, quoted, safe_line, styled};
use portcullis_terminal::signals::Interrupts;
use portcullis_terminal::{mode, observed};
use serde_json::{Value, json};

use crate::args::{Globals, ProfileName, RunArgs};
use crate::exit::{ExitKind, fault, streamed, usage};
use crate::hints;
use crate::world::{World, workspace};
use crate::{ask_view, call, home_workspace, person, wake};
use drive::{Drive, Outcome};
use screen::Screen;
use session::OpenedSession;
use typed::TypedInput;

/// What answers where no person does, as a person typed it.
const BY_FLAG_WORD: &str = "--approvals";

pub async fn run(args: &RunArgs, globals: &Globals, term: &Term) -> anyhow::Result<ExitKind> {
    let prompt = prompt(args, term)?;
    let mut settings = globals.settings()?;
    if globals.profile.is_none() {
        settings.profile = Profile::Code;
    }
    let folder = workspace(globals)?;
    if args.session.is_none() {
        home_workspace::ask(&settings, &folder)?;
    }
    // Rules that cannot be read and models that are none stop the start before anything is made on disk.
    settings.policy(&folder)?;
    call::warn_of_trust(&settings, &folder, term)?;
    let resumes = args.session.is_some() || args.resume;
    let chosen = match resumes && !settings.chosen.model {
        // A session that is gone on with has its own.
        true => None,
        false => Some(model::choose(&settings, &settings.model, args.strict_script, term).await?),
    };
    let world = World::open(settings, term)?;
    let screen = Arc::new(Screen::new(*term, false));
    let shows = Arc::clone(&screen);
    asks::answer_at_once(&world, move |asked, answer| {
        shows.document(&asks::reply_document(asked.ask_id, answer));
        let call = ask_view::call(&asked.facts);
        shows.line(&asks::said_line(asked.ask_id, &call, answer.reply.allows(), Some(BY_FLAG_WORD)));
    });
    let named = prompt.as_deref().unwrap_or(session::UNNAMED);
    let OpenedSession { runtime, session, model, choice } =
        session::open(&world, (args, globals), chosen, (&folder, named), term).await?;
    let _followed = Followed::begin(&world.settings.home, session);
    let before = world.archive.last_seq(session).await?;
    let work = ModelRun {
        world: &world,
        runtime,
        session,
        model,
        choice,
        before,
        globals,
        model_is_unknown: AtomicBool::new(false),
    };
    screen.names_rules_of(work.runtime.gate(), session);
    screen.names_output_by(world.command(&format!("sessions output {}", id_ending(&session.to_string()))));
    let agent = work.agent(&screen).await;
    // First: whoever was told of the session finds in it what it is for, however soon this process ends.
    let said = match prompt.as_deref() {
        Some(prompt) => Some(work.say(prompt).await),
        None => None,
    };
    screen.document(&json!({
        "type": "session", "session_id": session, "workspace": work.runtime.workspace(),
        "model": work.model.name().to_string(), "resumed": args.session.is_some() || args.resume,
    }));
    if term.interactive() {
        mode::keep()?;
    }
    let mut drive = Drive {
        world: &world,
        runtime: &work.runtime,
        agent: &agent,
        session,
        approvals: world.settings.approvals,
        by: BY_FLAG_WORD,
        screen: Arc::clone(&screen),
        term: *term,
        interrupts: if term.interactive() { Interrupts::listen()? } else { Interrupts::listen_to_all()? },
        typed: None,
        left: false,
        elsewhere: None,
        superseded: false,
        failure: None,
    };
    let began = Instant::now();
    let ended = match prompt.is_none() && term.interactive() {
        true => talk::talk(&work, &mut drive).await,
        false => once(&work, &mut drive, said, began).await,
    };
    let told = |error| streamed(term, json!({"type": "end", "stop": "error", "session_id": session}), error);
    // What a persistent shell holds does not outlive the run. Whoever left does not wait for it: with this process its
    // commands end, and what it leaves unsettled the next one settles, as after a crash.
    if drive.left {
        unsent(&mut drive);
        let again = work.again(Some("go on"));
        return Err(told(fault(
            drive.interrupts.how.into(),
            format!("left before the session settled; go on with: {again}"),
        )));
    }
    let left = work.runtime.shutdown().await.into_iter().map(|(_, found)| found);
    for warning in work.late_warnings().await.into_iter().chain(left) {
        screen.needed(&observed::warning(&warning));
    }
    // Until the last moment: what is typed here is not for whoever reads this terminal next.
    unsent(&mut drive);
    let ended = ended.and_then(|ended| screen.written().map(|()| ended));
    ended.map_err(told)
}

/// Works on what was said, or on what is left over, until nothing is left to do. Who sits at a terminal may say more meanwhile.
async fn once(
    work: &ModelRun<'_>,
    drive: &mut Drive<'_>,
    said: Option<anyhow::Result<EventId>>,
    began: Instant,
) -> anyhow::Result<ExitKind> {
    let said = said.transpose()?;
    if said.is_some() && drive.waits().await? {
        drive
            .term
            .note("an ask waits in this session: what you said is kept, and the model hears it when that is answered");
    }
    if drive.term.interactive() && mode::in_front() {
        drive.typed = Some(TypedInput::new(&drive.term));
    }
    let outcome = talk::see_through(drive).await;
    drive.screen.unfinished();
    let outcome = outcome?;
    let later = drive.typed.as_mut().map(|typed| std::mem::take(&mut typed.later)).unwrap_or_default();
    // Nobody else may be given what is typed from here on, either.
    if let Some(typed) = &mut drive.typed {
        typed.listen();
    }
    for command in &later {
        talk::does(command, work, drive, began).await?;
    }
    work.end((outcome, said, drive.interrupts.how.into()), &drive.screen, began).await
}

/// Tells what was typed and went nowhere.
fn unsent(drive: &mut Drive<'_>) {
    let Some(mut typed) = drive.typed.take() else { return };
    typed.pause();
    drive.screen.typing("", "");
    let mut lines: Vec<String> = std::iter::from_fn(|| typed.waiting()).collect();
    lines.push(typed.take_line());
    for line in lines.iter().filter(|line| !line.trim().is_empty()) {
        drive.screen.line(&format!("typed and not sent: {}", safe_line(line, 400)));
    }
}

/// What is to be done, in the user's words.
fn prompt(args: &RunArgs, term: &Term) -> anyhow::Result<Option<String>> {
    let text = match args.prompt.as_deref() {
        Some("-") => Some(call::said()?),
        other => other.map(str::to_owned),
    };
    let resumes = args.session.is_some() || args.resume;
    match text {
        Some(text) if text.trim().is_empty() => Err(usage("the prompt is empty; say what is to be done")),
        None if !resumes && !term.interactive() => Err(usage(
            "what is to be done? portcullis run \"PROMPT\", or - to read it from standard input; without one a terminal is \
             needed, or --continue to go on",
        )),
        text => Ok(text),
    }
}

/// The workspace's own words to whoever works in it. What is left out of them is told.
pub async fn guidance(runtime: &Runtime, term: &Term) -> Option<Guidance> {
    let found = runtime.guidance().await;
    warn_of(&found, term);
    found.guidance
}

/// Tells what a person should know of it.
pub fn warn_of(found: &ProjectGuidance, term: &Term) {
    if let Some(warning) = &found.warning {
        term.note(&format!("warning: {}", safe_line(warning, 600)));
    }
}

/// A run, with what is needed to say how it went.
pub struct ModelRun<'a> {
    pub world: &'a World,
    pub runtime: Runtime,
    pub session: SessionId,
    pub model: Arc<dyn Model>,
    /// What the model came from.
    pub choice: ModelChoice,
    /// The last event before it.
    pub before: u64,
    pub globals: &'a Globals,
    /// The provider did not know the model, so that nobody goes on with it.
    pub model_is_unknown: AtomicBool,
}

impl ModelRun<'_> {
    /// What is said of a model that failed.
    fn failed(&self, error: &ModelError) -> String {
        if error.status == Some(404) || error.failure == Failure::Config {
            self.model_is_unknown.store(true, Ordering::Relaxed);
        }
        format!("the model failed: {}", hints::explained(error))
    }

    pub async fn agent(&self, screen: &Arc<Screen>) -> Agent {
        let wakes = Wakes {
            guidance: guidance(&self.runtime, &self.globals.term()).await,
            directive: false,
            // A person waits: what will not go well later is told at once.
            other_tries: 1,
            ..self.choice.wakes()
        };
        self.runtime.agent(AgentParts {
            model: Arc::clone(&self.model),
            settings: wakes,
            watcher: Arc::clone(screen) as _,
            entropy: Arc::new(SystemIds::new()),
            sandbox: sandbox_words(&self.runtime),
        })
    }

    /// Says something to the session, which is claimed first: nobody else answers it in place of this run. What was taken
    /// back since somebody last spoke is told with it.
    pub async fn say(&self, words: &str) -> anyhow::Result<EventId> {
        self.runtime.hold(self.session).await.map_err(|error| match error {
            RuntimeError::Held(owner) => {
                let send = format!("sessions send {} {}", self.session, quoted(words.as_bytes()));
                let send = self.world.command(&send);
                let text = format!(
                    "the session is in use by {owner}, and nothing was said to it; wait until it is done, or leave the words to \
                     that process: {send}"
                );
                fault(ExitKind::Broken, text)
            }
            other => other.into(),
        })?;
        let by = person::login();
        for note in changes::FileChanges::load(self.world, self.session).await?.untold {
            self.runtime.say(self.session, &by, &note).await?;
        }
        Ok(self.runtime.say(self.session, &by, words).await?)
    }

    /// The command that goes on with this session.
    fn again(&self, prompt: Option<&str>) -> String {
        let mut words = format!("run --session {}", self.session);
        if matches!(self.globals.profile, Some(ProfileName::Managed)) {
            words.push_str(" --profile managed");
        }
        if self.model_is_unknown.load(Ordering::Relaxed) {
            words.push_str(" --model PROVIDER/MODEL");
        } else if let Some(name) = self.globals.model.as_deref() {
            // Whoever goes on may stand in another folder.
            let script = name.strip_prefix("scripted:").and_then(|path| std::path::absolute(path).ok());
            let name = script.map_or_else(|| name.to_owned(), |path| format!("scripted:{}", path.display()));
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
    async fn end(
        &self,
        (outcome, said, how): (Outcome, Option<EventId>, ExitKind),
        screen: &Screen,
        began: Instant,
    ) -> anyhow::Result<ExitKind> {
        let used = self.used_in(&screen.wakes()).await?;
        let handed_over = self.asked_of_client().await?;
        let (ended, mut document) = match &outcome {
            Outcome::Nothing if !handed_over.is_empty() => {
                (ExitKind::Waits, self.waits(&[], &handed_over, screen).await)
            }
            Outcome::Done(end) => {
                let (ended, stop) = match (refused(end), contradicted(end)) {
                    (true, _) => (ExitKind::Failed, "refusal"),
                    _ if unfinished(end) => (ExitKind::Failed, "limit"),
                    (false, true) => (ExitKind::Failed, "done"),
                    (false, false) => (ExitKind::Done, "done"),
                };
                done(end, screen);
                let mut document = json!({"stop": stop, "text": end.text, "checked": end.checked});
                if unfinished(end) {
                    document["limit"] = json!(limit_word(end));
                }
                (ended, document)
            }
            Outcome::Nothing if said.is_some() => (ExitKind::Done, self.answered_elsewhere(said, screen).await?),
            Outcome::Nothing => {
                screen.line("nothing is pending in this session; give it a prompt to go on");
                (ExitKind::Done, json!({"stop": "nothing"}))
            }
            Outcome::Later(at) => {
                screen.needed(&format!("it wants to go on at {at}; when that time has come: {}", self.again(None)));
                (ExitKind::Done, json!({"stop": "later", "at": at}))
            }
            Outcome::Waits(asks) => (ExitKind::Waits, self.waits(asks, &handed_over, screen).await),
            Outcome::Failed(error) => {
                let text = self.failed(error);
                let again = self.again(Some("go on"));
                if !screen.is_json() {
                    self.error(&text);
                }
                screen.needed(&format!("what happened so far is kept; go on with: {again}"));
                let failure = error.failure.as_str();
                (ExitKind::Failed, json!({"stop": "failed", "failure": failure, "message": text, "commands": [again]}))
            }
            Outcome::Interrupted => {
                let again = self.again(Some("go on"));
                screen.needed(&format!("interrupted; go on with: {again}"));
                (how, json!({"stop": "interrupted", "commands": [again]}))
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
        self.globals.term().error(text);
    }

    /// Calls that the client of this session runs.
    async fn asked_of_client(&self) -> anyhow::Result<Vec<HandedOver>> {
        let state = self.world.archive.state(self.session).await?;
        Ok(state.progress.asked_of_client().cloned().collect())
    }

    /// Every ask that nobody could answer here, every call that its client runs, and the exact commands that answer.
    async fn waits(&self, asks: &[AskView], handed_over: &[HandedOver], screen: &Screen) -> Value {
        let again = self.again(None);
        let mut documents = Vec::new();
        for ask in asks {
            screen.needed(&ask_view::waiting(self.world, ask).await);
            documents.push(ask_view::requires_action(self.world, ask)["requires_action"].take());
        }
        let mut custom = Vec::new();
        for request in handed_over {
            let (session, id) = (self.session, request.event_id);
            let answer = self.world.command(&format!("sessions answer {session} --request {id} 'OUTPUT'"));
            let (name, input) = (safe_line(&request.name, 80), safe_line(&request.input.to_string(), 200));
            screen.needed(&format!("{name} {input} is run by its client; give the result with: {answer}"));
            custom.push(json!({"id": id, "name": request.name, "input": request.input, "commands": [answer]}));
        }
        screen.needed(&format!("{} {again}", styled(BOLD, "then go on with:")));
        json!({"stop": "requires_action", "asks": documents, "custom": custom, "commands": [again]})
    }

    /// What background tasks warned of when they ended during this run; their calls had been shown before.
    async fn late_warnings(&self) -> Vec<String> {
        let mut all = Vec::new();
        let gather = |events: &[portcullis_event::Event]| {
            for event in events {
                if let Body::TaskCompleted(end) = event.body() {
                    all.extend(end.warnings);
                }
            }
        };
        // A log that cannot be read is told by whoever needs it.
        let _ = self.world.archive.each_page(self.session, self.before, gather).await;
        all
    }

    /// What every call after this event came to.
    pub async fn observed(&self, after: u64) -> anyhow::Result<Vec<Observed>> {
        let mut all = Vec::new();
        let gather = |events: &[portcullis_event::Event]| {
            all.extend(events.iter().filter_map(|event| match event.body() {
                Body::Observed(observed) => Some(*observed),
                _ => None,
            }));
        };
        self.world.archive.each_page(self.session, after, gather).await?;
        Ok(all)
    }

    /// Another process took up what was said here: what it answered, if it did.
    async fn answered_elsewhere(&self, said: Option<EventId>, screen: &Screen) -> anyhow::Result<Value> {
        let (mut heard, mut answer) = (false, None);
        let wakes = screen.wakes();
        let own = |event: &portcullis_event::Event| event.wake_id.is_some_and(|wake| wakes.contains(&wake));
        let look = |events: &[portcullis_event::Event]| {
            for event in events {
                heard |= Some(event.id) == said;
                match event.body() {
                    // What this run's own wakes said stands on the screen already.
                    Body::AgentMessage(message) if heard && !own(event) => {
                        answer = Some(text_of(&message.content));
                    }
                    _ => {}
                }
            }
        };
        self.world.archive.each_page(self.session, self.before, look).await?;
        match &answer {
            Some(text) => {
                screen.line(&styled(DIM, "another process works on this session and answered in place of this run:"));
                screen.answer(text);
            }
            None => screen.line("another process works on this session and has taken up what was said here"),
        }
        Ok(json!({"stop": "elsewhere", "text": answer}))
    }

    /// What the requests since this work began used.
    pub async fn used(&self) -> anyhow::Result<SessionUsage> {
        self.used_where(|_| true).await
    }

    /// The same of these wakes alone: others may work on the session as well.
    pub async fn used_in(&self, wakes: &HashSet<WakeId>) -> anyhow::Result<SessionUsage> {
        self.used_where(|event| event.wake_id.is_some_and(|wake| wakes.contains(&wake))).await
    }

    async fn used_where(&self, counts: impl Fn(&portcullis_event::Event) -> bool) -> anyhow::Result<SessionUsage> {
        let mut used = SessionUsage::default();
        let count = |events: &[portcullis_event::Event]| {
            for event in events.iter().filter(|event| counts(event)) {
                let fact = event.body();
                used.count(&fact);
                used.wakes += u64::from(matches!(fact, Body::SpanStarted(_)));
            }
        };
        self.world.archive.each_page(self.session, self.before, count).await?;
        Ok(used)
    }
}

/// What is said of a last answer: that it is none, or whether it holds.
fn done(end: &WakeEnd, screen: &Screen) {
    match (wake::no_answer(end), &end.checked) {
        (Some(words), _) => screen.error(&words),
        // It is why the run fails.
        (None, Some(checked)) if contradicted(end) => screen.needed(&words::verdict(checked)),
        (None, Some(checked)) => screen.line(&words::verdict(checked)),
        (None, None) => {}
    }
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
