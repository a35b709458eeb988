//! A new model over old facts (tool-contract §23): it is asked what was asked then, with the tools that were shown then,
//! and every call it makes that was made then gets the observation of then. The first one that was not stops it. Nothing is
//! executed and nothing is written: there is no gate here.

use std::collections::HashMap;
use std::sync::Arc;

use portcullis_base::{Digest, EventId, IntentId, MenuId, MessageId};
use portcullis_event::facts::{Block, IntentProposed, ModelRequestEnd};
use portcullis_event::{Body, Event};
use portcullis_model::{AnswerPart, Call, Model, ModelError, Request, ToolSpec, UserPart};
use portcullis_pipeline::{ArtifactShelf, Halt, input_hash};
use portcullis_store::{Artifacts, SessionKey, Store, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Settings;
use crate::context::{AddedPart, Context, calls_of, media_of, open, said};

/// Events read at once.
const PAGE: usize = 1_000;

/// What is driven again.
pub struct Redrive {
    pub store: Arc<dyn Store>,
    pub artifacts: Arc<dyn Artifacts>,
    pub key: SessionKey,
    /// The last event that counts.
    pub until: Option<u64>,
    pub model: Arc<dyn Model>,
}

/// Why it could not be.
#[derive(Debug, thiserror::Error)]
pub enum RedriveError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0}")]
    Log(#[from] Halt),
    #[error("the model could not be asked: {}", .0.message)]
    Model(ModelError),
    #[error("the menu {0} that the model was shown then is not kept any more")]
    MenuGone(Digest),
}

/// A call, as it was then or is proposed now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallSeen {
    pub tool: String,
    pub input: Value,
    pub definition_version: Option<String>,
}

/// The first call that differs. `None` on one side: that side made no call there.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Divergence {
    /// The event of the answer that was recorded.
    pub seq: u64,
    /// Which model request of the session, from 1.
    pub request: u64,
    /// Which call of its answer, from 1.
    pub call: usize,
    pub recorded: Option<CallSeen>,
    pub proposed: Option<CallSeen>,
}

/// What a redrive found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RedriveResult {
    /// Answers that were asked for.
    pub requests: u64,
    /// Calls that were the same.
    pub calls: u64,
    pub last_seq: u64,
    pub diverged: Option<Divergence>,
}

/// One tool of a stored menu, as far as a model reads it.
#[derive(Deserialize)]
struct StoredMenuLine {
    name: String,
    definition_version: String,
    definition: StoredDefinition,
}

/// The part of a stored definition that a model reads.
#[derive(Deserialize)]
struct StoredDefinition {
    description: String,
    input_schema: Value,
}

struct Menu {
    tools: Arc<[ToolSpec]>,
    versions: HashMap<String, String>,
}

struct Driving<'a> {
    drive: &'a Redrive,
    shelf: ArtifactShelf,
    context: Context,
    said: HashMap<EventId, Vec<Block>>,
    proposed: HashMap<(MessageId, String), IntentProposed>,
    intents: HashMap<IntentId, MessageId>,
    menus: HashMap<MenuId, Digest>,
    read: HashMap<Digest, Arc<Menu>>,
    menu: Option<MenuId>,
    /// The request that is answered next was the last of its wake, in which nothing could be called.
    tools_off: bool,
    done: RedriveResult,
}

impl Redrive {
    /// Drives it, up to the first call that differs.
    ///
    /// # Errors
    /// If the log cannot be read, or the model not be asked.
    pub async fn run(&self) -> Result<RedriveResult, RedriveError> {
        let events = self.events().await?;
        // Intents come after the answer that proposed them: they must be known before it is compared.
        let proposed = events.iter().filter_map(|event| match event.body() {
            Body::IntentProposed(intent) => Some(((intent.message_id, intent.call_id.clone()), *intent)),
            _ => None,
        });
        let mut driving = Driving {
            shelf: ArtifactShelf::new(Arc::clone(&self.store), Arc::clone(&self.artifacts), self.key.tenant),
            context: Context::empty(),
            said: HashMap::new(),
            proposed: proposed.collect(),
            intents: HashMap::new(),
            menus: HashMap::new(),
            read: HashMap::new(),
            menu: None,
            tools_off: false,
            done: RedriveResult { requests: 0, calls: 0, last_seq: 0, diverged: None },
            drive: self,
        };
        for event in &events {
            driving.take(event).await?;
            driving.done.last_seq = event.seq;
            if driving.done.diverged.is_some() {
                break;
            }
        }
        Ok(driving.done)
    }

    async fn events(&self) -> Result<Vec<Event>, StoreError> {
        let mut all: Vec<Event> = Vec::new();
        loop {
            let page = self.store.read(self.key, all.last().map_or(0, |event| event.seq), PAGE).await?;
            let more = page.len() == PAGE;
            all.extend(page);
            let far = self.until.is_some_and(|until| all.last().is_some_and(|event| event.seq >= until));
            if !more || far {
                all.retain(|event| self.until.is_none_or(|until| event.seq <= until));
                return Ok(all);
            }
        }
    }
}

impl Driving<'_> {
    async fn take(&mut self, event: &Event) -> Result<(), RedriveError> {
        let session = self.drive.key.session;
        match &*event.body_ref() {
            Body::UserMessage(said) => drop(self.said.insert(event.id, said.content.clone())),
            Body::SystemMessage(said) => drop(self.said.insert(event.id, said.content.clone())),
            Body::MenuFrozen(menu) => drop(self.menus.insert(menu.menu_id, menu.hash)),
            Body::ModelRequestStart(start) => {
                self.menu = Some(start.menu_id);
                let added: Vec<AddedPart> = open(&self.shelf, session, &start.context).await?;
                if let Some(system) = &start.system {
                    let system: String = open(&self.shelf, session, system).await?;
                    self.context.system = Some(system.into());
                }
                self.tools_off = added.iter().any(AddedPart::is_last_request);
                let notes = AddedPart::notes(&added);
                let parts = added.into_iter().filter_map(|added| match added {
                    AddedPart::Text(text) => Some(UserPart::Text(text)),
                    AddedPart::Said(event) => Some(said(&self.said.remove(&event)?)),
                });
                let parts = parts.collect();
                self.context.ask(parts, notes);
            }
            Body::ModelRequestEnd(end) if !end.is_error => self.answered(event.seq, end).await?,
            Body::IntentProposed(intent) => drop(self.intents.insert(intent.intent_id, intent.message_id)),
            Body::Observed(observed) => {
                let message = self.intents.remove(&observed.intent_id);
                if message.is_some() && message == self.context.newest.as_ref().map(|newest| newest.message_id) {
                    let media = media_of(&self.shelf, session, observed).await;
                    self.context.observed(observed, media, event.seq, None);
                }
            }
            Body::ContextCompacted(compacted) => {
                let summary: String = open(&self.shelf, session, &compacted.summary).await?;
                self.context.compact(summary, compacted.kept_from_seq, compacted.cut_to);
            }
            _ => {}
        }
        Ok(())
    }

    /// Asks the new model what the old one answered here.
    async fn answered(&mut self, seq: u64, end: &ModelRequestEnd) -> Result<(), RedriveError> {
        let recorded: Vec<AnswerPart> = match &end.parts {
            Some(parts) => open(&self.shelf, self.drive.key.session, parts).await?,
            None => Vec::new(),
        };
        let menu = self.menu_of(self.menu).await?;
        let system = self.context.system.clone().unwrap_or_else(|| "".into());
        let request = Request {
            system: &system,
            tools: Arc::clone(&menu.tools),
            tools_off: self.tools_off,
            conversation: &self.context.conversation,
            max_output_tokens: Settings::default().max_output_tokens,
        };
        self.done.requests += 1;
        let answer = self.drive.model.ask(&request, &|_| {}).await.map_err(RedriveError::Model)?;
        let calls = |parts: &[AnswerPart]| calls_of(parts, &[]);
        let (then, now) = (calls(&recorded), calls(&answer.parts));
        for n in 0..then.len().max(now.len()) {
            if self.same(end.message_id, then.get(n), now.get(n), &menu) {
                self.done.calls += 1;
                continue;
            }
            self.done.diverged = Some(Divergence {
                seq,
                request: self.done.requests,
                call: n + 1,
                recorded: then.get(n).map(|call| self.recorded(end.message_id, call)),
                proposed: now.get(n).map(|call| CallSeen {
                    tool: call.name.clone(),
                    input: value_of(&call.arguments),
                    definition_version: menu.versions.get(&call.name).cloned(),
                }),
            });
            return Ok(());
        }
        // By the ids of then: the observations that follow name those.
        let mut ids = then.into_iter().map(|call| call.id);
        let parts = answer.parts.into_iter().map(|part| match part {
            AnswerPart::Call(call) => {
                let id = ids.next().unwrap_or_else(|| call.id.clone());
                AnswerPart::Call(Call { id, ..call })
            }
            other => other,
        });
        let parts: Vec<AnswerPart> = parts.collect();
        let calls = calls(&parts);
        self.context.answered(end.message_id, parts, calls, seq);
        Ok(())
    }

    /// Equal by canonical (tool, input, definition version), at the same place.
    fn same(&self, message: MessageId, then: Option<&Call>, now: Option<&Call>, menu: &Menu) -> bool {
        let (Some(then), Some(now)) = (then, now) else { return false };
        if then.name != now.name {
            return false;
        }
        match self.proposed.get(&(message, then.id.clone())) {
            // Of the input before anything was masked in it.
            Some(intent) => {
                intent.input_hash == input_hash(&now.arguments)
                    && intent.definition_version.as_ref() == menu.versions.get(&now.name)
            }
            None => input_hash(&then.arguments) == input_hash(&now.arguments),
        }
    }

    fn recorded(&self, message: MessageId, call: &Call) -> CallSeen {
        let intent = self.proposed.get(&(message, call.id.clone()));
        CallSeen {
            tool: call.name.clone(),
            input: intent.map_or_else(|| value_of(&call.arguments), |intent| intent.raw_input.clone()),
            definition_version: intent.and_then(|intent| intent.definition_version.clone()),
        }
    }

    /// The menu of then, not today's.
    async fn menu_of(&mut self, menu: Option<MenuId>) -> Result<Arc<Menu>, RedriveError> {
        let Some(hash) = menu.and_then(|menu| self.menus.get(&menu).copied()) else {
            return Ok(Arc::new(Menu { tools: Arc::new([]), versions: HashMap::new() }));
        };
        if let Some(known) = self.read.get(&hash) {
            return Ok(Arc::clone(known));
        }
        let tenant = self.drive.key.tenant;
        let bytes = match self.drive.store.blob(tenant, hash).await? {
            Some(bytes) => bytes,
            None => {
                let window = self.drive.artifacts.open(tenant, hash).map_err(|_| RedriveError::MenuGone(hash))?;
                window.slice(0, window.len()).map_err(|_| RedriveError::MenuGone(hash))?
            }
        };
        let lines: Vec<StoredMenuLine> = serde_json::from_slice(&bytes).map_err(|_| RedriveError::MenuGone(hash))?;
        let versions = lines.iter().map(|line| (line.name.clone(), line.definition_version.clone())).collect();
        let tools = lines
            .into_iter()
            .map(|line| ToolSpec::of(line.name, line.definition.description, &line.definition.input_schema));
        let menu = Arc::new(Menu { tools: tools.collect(), versions });
        self.read.insert(hash, Arc::clone(&menu));
        Ok(menu)
    }
}

fn value_of(arguments: &str) -> Value {
    serde_json::from_str(arguments).unwrap_or_else(|_| Value::String(arguments.to_owned()))
}
