//! One model request: what it adds, the durable note that it goes out, and the answer.

use std::sync::Arc;
use std::time::Duration;

use portcullis_base::{EventId, MessageId, TurnId};
use portcullis_event::facts::{AgentMessage, ModelRequestEnd, ModelRequestStart, ModelUsage, text_of};
use portcullis_event::fold::InputContent;
use portcullis_model::{Answer, AnswerPart, Call, Delta, Failure, ModelError, Request, Stop, ToolSpec, UserPart};
use portcullis_pipeline::{Append, Halt, Turn};
use portcullis_store::StoreError;
use serde_json::json;
use tracing::Instrument as _;

use super::finish::in_log;
use super::voice::Voice;
use super::{Wake, spans, unfinished};
use crate::context::{AddedPart, BudgetInput, ContextBudget, NoteFacts, guided, notes, quoted, said};
use crate::live_event::LiveEvent;

const SECRET_THOUGHT: &str = "a part of the model's thinking holds a secret; it is not kept and not sent back";

/// How a model request ended for its wake.
pub(super) enum RequestOutcome {
    Answered,
    Failed(ModelError),
    /// A person wants the session to stop.
    Interrupted,
    Cancelled,
}

impl Wake<'_> {
    /// Drains what people said meanwhile. `true`: one of them wants it to stop.
    pub(super) async fn take_new_input(&mut self) -> Result<bool, Halt> {
        self.session.catch_up().await?;
        let (inputs, interrupted) =
            self.session.with_state(|state| (state.inbox.pending().to_vec(), state.inbox.interrupted()));
        let refused = self.stop_wished();
        self.heeded = refused.unwrap_or(self.heeded);
        let fresh: Vec<_> = inputs.into_iter().filter(|input| !self.processed.contains(&input.event_id)).collect();
        if interrupted && fresh.iter().any(|input| matches!(input.said, InputContent::Interrupt { .. })) {
            return Ok(true);
        }
        // Who speaks as well is heard.
        if refused.is_some() && fresh.is_empty() {
            return Ok(true);
        }
        if !fresh.is_empty() {
            self.tell(LiveEvent::Heard { words: fresh.len() });
            self.consume(&fresh);
        }
        Ok(false)
    }

    /// Where a person refused a call meanwhile and wanted the session to stop (R4).
    pub(super) fn stop_wished(&self) -> Option<u64> {
        self.session.with_state(|state| state.progress.stop_wished).filter(|wished| *wished > self.heeded)
    }

    /// Asks the model once.
    pub(super) async fn ask(&mut self) -> Result<RequestOutcome, Halt> {
        let last = self.is_last_request();
        if self.context.is_empty() {
            // Before anything else that this session is ever told (agent-runtime 6.1).
            let guidance = self.harness.settings.guidance.as_ref().map(|guidance| AddedPart::Text(guided(guidance)));
            self.added.splice(..0, guidance);
        }
        let turn = self.session.begin_loop_turn(&mut self.facts, &self.context.pages);
        let tools = self.tools_of(&turn);
        if let Err(error) = self.harness.model.fits(&tools) {
            return Ok(RequestOutcome::Failed(error));
        }
        let system: Arc<str> = self.prompt(&tools).into();
        self.make_room(false, &system).await?;
        self.add_notes(&system, &tools);
        let (start, message_id) = self.request_start(&turn, &system).await?;
        self.flush().await?;
        self.turns += 1;
        self.request = Some(start);
        self.requests += 1;
        self.asked_here = true;
        self.tell(LiveEvent::Asking { turn: self.turns });
        self.turn = Some(Arc::clone(&turn));
        let span = spans::request(self.session, self.harness.model.name(), message_id);
        let answer = self.hear(&system, tools, last).instrument(span.clone()).await;
        spans::heard(span, &answer);
        match answer {
            ResponseOutcome::Answer(answer) => {
                self.shrunk = 0;
                let answer = if last { self.without_calls(*answer) } else { *answer };
                match self.answered(&turn, start, message_id, answer).await {
                    Ok(()) => Ok(RequestOutcome::Answered),
                    // It is the answer that is too much. The next try would end the same way, and each is paid for: it is
                    // a failure like any other (agent-runtime 5.7). A store that takes nothing is no failure of the
                    // model.
                    Err(Halt::PersistFailed(error @ (StoreError::TooLarge { .. } | StoreError::OverLimit(_)))) => {
                        self.facts = Append::new();
                        self.tell(LiveEvent::BrokeOff);
                        self.request_failed(turn.turn_id, start, message_id, "not_kept");
                        let text = format!("the model's answer could not be kept: {error}");
                        Ok(RequestOutcome::Failed(ModelError::new(Failure::InvalidResponse, text)))
                    }
                    Err(halt) => Err(halt),
                }
            }
            ResponseOutcome::Failed(error) => {
                self.request_failed(turn.turn_id, start, message_id, error.failure.as_str());
                let too_long = error.failure == Failure::ContextOverflow;
                if too_long && self.may_shrink() && self.make_room(true, &system).await? {
                    return Box::pin(self.ask()).await;
                }
                Ok(RequestOutcome::Failed(error))
            }
            ResponseOutcome::Interrupted => {
                self.request_failed(turn.turn_id, start, message_id, "interrupted");
                Ok(RequestOutcome::Interrupted)
            }
            ResponseOutcome::Cancelled => {
                self.request_failed(turn.turn_id, start, message_id, "cancelled");
                Ok(RequestOutcome::Cancelled)
            }
        }
    }

    /// The menu as the model is told of it; made once for an offer, so that its bytes stay the same.
    fn tools_of(&mut self, turn: &Turn) -> Arc<[ToolSpec]> {
        let offer = turn.shared_offer();
        if let Some((known, tools)) = &self.tools
            && Arc::ptr_eq(known, &offer)
        {
            return Arc::clone(tools);
        }
        let specs = offer.entries().map(|(name, entry)| {
            let definition = &entry.definition;
            ToolSpec::of(name.to_string(), definition.description.clone(), &definition.input_schema)
        });
        let tools: Arc<[ToolSpec]> = specs.collect();
        self.tools = Some((offer, Arc::clone(&tools)));
        tools
    }

    /// The note that a request goes out, with everything that is needed to build it again.
    async fn request_start(&mut self, turn: &Turn, system: &Arc<str>) -> Result<(EventId, MessageId), Halt> {
        let added = std::mem::take(&mut self.added);
        let parts = self.parts_of(&added);
        self.context.ask(parts, AddedPart::notes(&added));
        let message_id = MessageId::make(&*self.harness.ids, self.now());
        let context = self.session.carry(&mut self.facts, turn.turn_id, json!(added)).await?;
        let known = self.context.system.as_ref().is_some_and(|known| known == system);
        let carried = match known {
            true => None,
            false => Some(self.session.carry(&mut self.facts, turn.turn_id, json!(&**system)).await?),
        };
        self.context.system = Some(Arc::clone(system));
        let start = ModelRequestStart {
            turn_id: turn.turn_id,
            message_id,
            menu_id: turn.menu_id,
            model: self.harness.model.name().to_string(),
            context,
            context_hash: self.context.hash(),
            system: carried,
        };
        Ok((self.session.note(&mut self.facts, Some(turn.turn_id), &start), message_id))
    }

    /// What is added, as it is sent. The words of an input are in the log, or were folded from it.
    fn parts_of(&mut self, added: &[AddedPart]) -> Vec<UserPart> {
        let mut parts = Vec::with_capacity(added.len());
        for added in added {
            match added {
                AddedPart::Text(text) => parts.push(UserPart::Text(text.clone())),
                AddedPart::Said(event) => {
                    if let Some(content) = self.said.remove(event) {
                        self.context.digested.said(*event, &content);
                        parts.push(said(&content));
                    }
                }
            }
        }
        parts
    }

    async fn hear(&self, system: &str, tools: Arc<[ToolSpec]>, tools_off: bool) -> ResponseOutcome {
        let settings = &self.harness.settings;
        let request = Request {
            system,
            tools,
            tools_off,
            conversation: &self.context.conversation,
            max_output_tokens: settings.max_output_tokens,
        };
        let voice = Voice::new(Arc::clone(&self.harness.watcher), self.session, self.request);
        let spoke = Arc::new(tokio::sync::Notify::new());
        let heard = {
            let (spoke, voice) = (Arc::clone(&spoke), &voice);
            move |delta: Delta<'_>| {
                spoke.notify_one();
                voice.hear(delta);
            }
        };
        let asked = self.harness.model.ask(&request, &heard);
        let heard = tokio::select! {
            biased;
            () = self.cancel.cancelled() => ResponseOutcome::Cancelled,
            () = self.session.lost().cancelled() => ResponseOutcome::Cancelled,
            answer = asked => match answer {
                Ok(answer) => unfinished::heard(self.harness.model.name(), answer),
                Err(error) => ResponseOutcome::Failed(error),
            },
            () = silence(settings.request_timeout, &spoke) => self.too_late("said nothing for", settings.request_timeout),
            () = tokio::time::sleep(settings.wake_deadline) => self.too_late("was not done within", settings.wake_deadline),
            () = self.interrupt_comes() => ResponseOutcome::Interrupted,
        };
        voice.rest();
        if matches!(heard, ResponseOutcome::Failed(_)) && voice.has_told() {
            self.tell(LiveEvent::BrokeOff);
        }
        heard
    }

    fn too_late(&self, how: &str, limit: Duration) -> ResponseOutcome {
        let text = format!("{} {how} {} s", self.harness.model.name(), limit.as_secs());
        ResponseOutcome::Failed(ModelError::new(Failure::Timeout, text))
    }

    async fn answered(
        &mut self,
        turn: &Turn,
        start: EventId,
        message_id: MessageId,
        answer: Answer,
    ) -> Result<(), Halt> {
        // A server's own words may be in them: ids, names, reasons (L69).
        let warn = |text: &str| self.tell(LiveEvent::Warning(&self.session.gate().masked(text)));
        answer.warnings.iter().for_each(|warning| warn(warning));
        let KeptAnswer { parts, calls, masked_calls } = self.kept(answer.parts);
        let carried = match parts.is_empty() {
            true => None,
            false => Some(self.session.carry(&mut self.facts, turn.turn_id, json!(parts)).await?),
        };
        // Not before it can be kept: an answer that is too much fails its request.
        self.tell(LiveEvent::MessageEnd);
        if let Some(cut) = cut_short(&answer.stop) {
            self.tell(LiveEvent::Warning(&self.session.gate().masked(&cut)));
        }
        let end = ModelRequestEnd {
            model_request_start_id: start,
            turn_id: turn.turn_id,
            message_id,
            is_error: false,
            stop: self.session.gate().masked(&stop_word(&answer.stop)),
            model_usage: answer.usage.map(|usage| ModelUsage {
                input_tokens: usage.input,
                output_tokens: usage.output,
                cache_read_input_tokens: usage.cache_read,
                cache_creation_input_tokens: usage.cache_write,
            }),
            parts: carried,
            calls: calls.len(),
            masked_calls,
        };
        self.session.note(&mut self.facts, Some(turn.turn_id), &end);
        self.stop = Some(answer.stop);
        let seq = self.session.with_state(|state| state.seq) + 1;
        self.context.answered(message_id, parts, calls, seq);
        // What it says beside its calls; the words of an answer without any are told by the end of the wake.
        let newest = self.context.newest.as_ref().filter(|newest| !newest.asked.is_empty());
        if let Some(newest) = newest.filter(|newest| !newest.text.trim().is_empty()) {
            let message = AgentMessage { message_id, content: vec![in_log(&newest.text)], summary: None };
            self.session.note(&mut self.facts, Some(turn.turn_id), &message);
        }
        Ok(())
    }

    /// A name that is no tool's is any text that the model wrote (L69).
    fn kept_name(&self, name: String) -> String {
        let gate = self.session.gate();
        if gate.offer(self.session.key().session).knows(&name) { name } else { gate.masked(&name) }
    }

    /// The answer to the last request of a piece of work: a model that was told so and calls all the same is not gone on with.
    fn without_calls(&self, mut answer: Answer) -> Answer {
        let before = answer.parts.len();
        answer.parts.retain(|part| !matches!(part, AnswerPart::Call(_)));
        let calls = before - answer.parts.len();
        if calls > 0 {
            answer.warnings.push(format!(
                "the model made {calls} calls in the last request, where none can be made; they were not run"
            ));
        }
        answer
    }

    /// What the log and the conversation hold of an answer, which is the same (L71) and has no secret in it (L69); and the
    /// calls as the model made them, which are run and kept nowhere.
    fn kept(&self, parts: Vec<AnswerPart>) -> KeptAnswer {
        let gate = self.session.gate();
        let mut kept =
            KeptAnswer { parts: Vec::with_capacity(parts.len()), calls: Vec::new(), masked_calls: Vec::new() };
        for part in parts {
            kept.parts.push(match part {
                AnswerPart::Text(text) => AnswerPart::Text(gate.masked(&text)),
                AnswerPart::Call(mut call) => {
                    call.id = gate.masked(&call.id);
                    call.name = self.kept_name(call.name);
                    let masked = gate.masked_input(self.session.key().session, &call.name, &call.arguments);
                    kept.calls.push(call.clone());
                    if let Some(masked) = masked {
                        kept.masked_calls.push(call.id.clone());
                        call.arguments = masked;
                    }
                    AnswerPart::Call(call)
                }
                AnswerPart::Opaque(part) => {
                    // It is kept to the byte or not at all (L69): a mask would make it one that its provider refuses.
                    if gate.masked(&part.raw) != part.raw {
                        self.tell(LiveEvent::Warning(SECRET_THOUGHT));
                        continue;
                    }
                    AnswerPart::Opaque(part)
                }
            });
        }
        kept
    }

    pub(super) fn request_failed(&mut self, turn_id: TurnId, start: EventId, message_id: MessageId, stop: &str) {
        let end = ModelRequestEnd {
            model_request_start_id: start,
            turn_id,
            message_id,
            is_error: true,
            stop: stop.to_owned(),
            model_usage: None,
            parts: None,
            calls: 0,
            masked_calls: Vec::new(),
        };
        self.session.note(&mut self.facts, Some(turn_id), &end);
    }
}

impl Wake<'_> {
    /// Characters of what the next request adds, results of calls aside.
    pub(super) fn message_chars(&self) -> usize {
        let chars = |added: &AddedPart| match added {
            AddedPart::Text(text) => text.len(),
            AddedPart::Said(event) => self.said.get(event).map_or(0, |content| text_of(content).len()),
        };
        self.added.iter().map(chars).sum()
    }

    /// The automatic notes (agent-runtime 6.7), with the first request that this process makes in a wake.
    fn add_notes(&mut self, system: &str, tools: &[ToolSpec]) {
        if std::mem::replace(&mut self.noted, true) {
            return;
        }
        let message = self.message_chars();
        let weighed = ContextBudget::of(&BudgetInput {
            budget: self.token_budget(system, message),
            system,
            message,
            history: self.context.counts(),
            conversation: self.context.chars(),
            tools,
        });
        // A person who reads along sees for themselves what the model reads first
        // (docs/decisions/wakes.md, "A person reading along needs no directive").
        let newest = self.added.iter().rev().find_map(|added| match added {
            AddedPart::Said(event) if self.harness.settings.directive => self.said.get(event),
            _ => None,
        });
        let said = newest.map(|content| text_of(content)).unwrap_or_default();
        let extras = &self.harness.extras;
        let others = extras.notes(self.session);
        let offered = |name: &str| tools.iter().any(|tool| tool.name == name);
        let noted = self.session.with_state(|state| {
            let look = extras.first_look(&said, &state.shell).filter(|look| offered(look.tool));
            let facts = NoteFacts {
                look: look.as_ref(),
                waits: state.asks.pending().next().is_some() || !state.progress.handed_over.is_empty(),
                budget: &weighed,
                unknown: &self.unknown,
                context_tool: extras.context_tool().filter(|tool| offered(tool)),
            };
            notes(&facts, others)
        });
        self.added.extend(noted.into_iter().map(AddedPart::Text));
    }
}

/// Resolves when nothing was said for so long. An answer may take as long as it goes on.
async fn silence(limit: Duration, spoke: &tokio::sync::Notify) {
    while tokio::time::timeout(limit, spoke.notified()).await.is_ok() {}
}

/// How the wait for an answer ended.
pub(super) enum ResponseOutcome {
    Answer(Box<Answer>),
    Failed(ModelError),
    Interrupted,
    Cancelled,
}

/// An answer as the log keeps it, and its calls as the model made them.
struct KeptAnswer {
    parts: Vec<AnswerPart>,
    calls: Vec<Call>,
    masked_calls: Vec<String>,
}

pub(super) fn stop_word(stop: &Stop) -> String {
    match stop {
        Stop::EndTurn => "end_turn".to_owned(),
        Stop::ToolUse => "tool_use".to_owned(),
        Stop::MaxTokens => "max_tokens".to_owned(),
        Stop::Refusal => "refusal".to_owned(),
        // A server's own word: a record holds a short one.
        Stop::Other(word) => word.chars().take(STOP_WORD).collect(),
    }
}

/// Characters of a word that a server made up.
const STOP_WORD: usize = 64;

/// What a person should know of an answer that did not come to its end.
fn cut_short(stop: &Stop) -> Option<String> {
    match stop {
        Stop::EndTurn | Stop::ToolUse | Stop::Refusal => None,
        Stop::MaxTokens => {
            let text = "the answer was cut at the model's limit for one answer; what follows was never said (raise \
                        `max_output_tokens` under `[model]`, or ask it to go on)";
            Some(text.to_owned())
        }
        Stop::Other(_) => {
            Some(format!("the model stopped for a reason of its own: {}", quoted::name(&stop_word(stop))))
        }
    }
}
