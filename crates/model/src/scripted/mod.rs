//! The scripted model: plays a TOML file (cli §2). Tests, `demo` and the examples run on it.
//!
//! It is a model like any other: it streams, counts tokens, calls tools, fails when told to. It keeps nothing that a
//! restart would lose: which turn is next follows from the conversation alone (`place`).

mod condition;
mod file;
mod position;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use self::file::{Fault, Script, Turn};
use self::position::{Mark, ScriptPosition};
use crate::{
    Answer, AnswerPart, Call, Conversation, Delta, DeltaSink, Failure, Message, Model, ModelError, ModelName,
    ModelSetting, Opaque, Request, ResultPart, Stop, ToolSpec, Usage, UserPart,
};

/// The wire format of its own parts.
const WIRE: &str = "scripted";

/// What it says when no turn fits.
const EXHAUSTED: &str = "script exhausted";

/// What it says instead of calls where none may be made.
const NO_TOOLS_NOW: &str = "No tools may be called now.";

/// A chunk of a stream, in bytes at most: small, so that a watcher sees a stream even of a short text.
const CHUNK: usize = 24;

/// Characters that count as one token (agent-runtime 1.1).
const CHARS_A_TOKEN: u64 = 4;

/// A model that plays a script.
#[derive(Debug)]
pub struct Scripted {
    name: ModelName,
    script: Script,
    strict: bool,
    /// How often a turn that is to fail was asked for, by conversation. Lost at a restart: then it fails again.
    attempts: Mutex<HashMap<(u64, u64), usize>>,
}

impl Scripted {
    /// Reads a script from a file.
    ///
    /// # Errors
    /// [`Failure::Config`], naming the file, the line and what to write there.
    pub fn load(path: &Path) -> Result<Self, ModelError> {
        let shown = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|e| {
            let what = format!("the script {shown} cannot be read: {e}; a script is a TOML file");
            ModelError::new(Failure::Config, what).mended_by(ModelSetting::Script)
        })?;
        Self::parse(&shown, &text)
    }

    /// Reads a script from its text; `file` is its name in messages.
    ///
    /// # Errors
    /// [`Failure::Config`], naming the file, the line and what to write there.
    pub fn parse(file: &str, text: &str) -> Result<Self, ModelError> {
        let name = ModelName { provider: WIRE.to_owned(), id: file.to_owned() };
        Ok(Self { name, script: Script::parse(file, text)?, strict: false, attempts: Mutex::default() })
    }

    /// Whether a request that no turn fits is an error (`--strict-script`).
    #[must_use]
    pub fn strict(self, strict: bool) -> Self {
        Self { strict, ..self }
    }

    /// The same with the context window that a person set, which beats the one of the script; `None` changes nothing.
    #[must_use]
    pub fn with_window(mut self, window: Option<u64>) -> Self {
        self.script.window = window.or(self.script.window);
        self
    }

    /// The fault that this request is to meet, if any: the n-th request for a turn meets its n-th fault.
    fn fault(&self, request: u64, conversation: &Conversation) -> Option<&Fault> {
        let mut faults = self.script.faults.iter().filter(|fault| fault.turn == request).peekable();
        faults.peek()?;
        let mut hasher = DefaultHasher::new();
        if let Some(Message::User(parts)) = conversation.messages().first() {
            for part in parts {
                if let UserPart::Text(text) = part {
                    text.hash(&mut hasher);
                }
            }
        }
        let mut attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        let attempt = attempts.entry((request, hasher.finish())).or_default();
        let fault = faults.nth(*attempt);
        *attempt += 1;
        fault
    }

    /// What is said now: the answer, and the warnings that go with it.
    fn answer(&self, place: &ScriptPosition, request: &Request<'_>) -> Result<(Answer, String), ModelError> {
        let taken = place.take(&self.script, request.system, request.conversation.messages());
        let mut warnings = Vec::new();
        let mut next = taken.map_or(place.next, |taken| taken + 1);
        let mut turn = match taken {
            Some(taken) => self.script.turn(taken).clone(),
            None if self.strict => return Err(self.exhausted(place)),
            None => Turn { text: EXHAUSTED.to_owned(), ..Turn::default() },
        };
        if request.tools_off && !turn.calls.is_empty() {
            // A provider would not let it call; its turn waits until it may.
            next = place.next;
            turn.calls.clear();
            if turn.text.is_empty() {
                NO_TOOLS_NOW.clone_into(&mut turn.text);
            }
            warnings.push(format!("{}: request {} may not call tools, its turn waits", self.name, place.request));
        }
        let mut minted = place.calls;
        let calls: Vec<Call> = turn
            .calls
            .iter()
            .map(|call| {
                let id = call.id.clone().unwrap_or_else(|| {
                    minted += 1;
                    format!("call_{minted}")
                });
                Call { id, name: call.name.clone(), arguments: call.arguments.clone() }
            })
            .collect();
        let mark = Mark {
            script: self.script.digest.clone(),
            request: place.request,
            next,
            calls: minted,
            thinking: turn.thinking.clone(),
        };
        let stop = turn.stop.unwrap_or(if calls.is_empty() { Stop::EndTurn } else { Stop::ToolUse });
        let mut parts = vec![AnswerPart::Opaque(Opaque::new(WIRE, mark.to_json()))];
        if !turn.text.is_empty() {
            parts.push(AnswerPart::Text(turn.text));
        }
        parts.extend(calls.into_iter().map(AnswerPart::Call));
        let answer = Answer { parts, stop, usage: None, warnings };
        let usage = Usage { input: sent(request), output: said(&answer, &turn.thinking), ..Usage::default() };
        Ok((Answer { usage: Some(usage), ..answer }, turn.thinking))
    }

    fn exhausted(&self, place: &ScriptPosition) -> ModelError {
        let what = format!(
            "{}: no turn fits request {}: {} of {} turns are behind it; add a [[turn]] whose `when` holds",
            self.name,
            place.request,
            place.next,
            self.script.len(),
        );
        ModelError::new(Failure::ScriptExhausted, what)
    }

    fn cut_off(&self, place: &ScriptPosition, after: usize) -> ModelError {
        let what = format!("{}: the answer to request {} broke off after {after} bytes", self.name, place.request);
        ModelError::new(Failure::CutOff, what)
    }
}

#[async_trait]
impl Model for Scripted {
    fn name(&self) -> &ModelName {
        &self.name
    }

    fn wire(&self) -> &'static str {
        WIRE
    }

    fn window(&self) -> Option<u64> {
        self.script.window
    }

    fn fits(&self, _tools: &[ToolSpec]) -> Result<(), ModelError> {
        Ok(())
    }

    async fn ask(&self, request: &Request<'_>, heard: DeltaSink<'_>) -> Result<Answer, ModelError> {
        let place = ScriptPosition::of(&self.script, request.system, request.conversation.messages());
        let fault = self.fault(place.request, request.conversation);
        if let Some(Fault { status: Some(status), retry_after, .. }) = fault {
            let what = format!("{}: request {} was answered {status}", self.name, place.request);
            let error = ModelError::new(Failure::of_status(*status), what);
            return Err(ModelError { status: Some(*status), retry_after: *retry_after, ..error });
        }
        let cut = fault.and_then(|fault| fault.cut_after_bytes);
        let (answer, thinking) = self.answer(&place, request)?;
        let mut stream = Stream { heard, delay: self.script.stream_delay, left: cut, begun: false };
        let mut come = stream.chunks(&thinking, Delta::Thinking).await;
        for part in &answer.parts {
            come = come
                && match part {
                    AnswerPart::Text(text) => stream.chunks(text, Delta::Text).await,
                    AnswerPart::Call(call) => stream.call(call).await,
                    AnswerPart::Opaque(_) => true,
                };
        }
        match cut {
            // An answer shorter than the cut lacks its end all the same.
            Some(after) => Err(self.cut_off(&place, after)),
            None => Ok(answer),
        }
    }
}

/// An answer on its way, in chunks.
struct Stream<'a> {
    heard: DeltaSink<'a>,
    delay: Duration,
    /// Bytes until it breaks off.
    left: Option<usize>,
    begun: bool,
}

impl Stream<'_> {
    /// Lets a text be heard; false if it broke off.
    async fn chunks<'t>(&mut self, text: &'t str, delta: impl Fn(&'t str) -> Delta<'t>) -> bool {
        let mut rest = text;
        while !rest.is_empty() {
            self.wait().await;
            let (chunk, after) = rest.split_at(rest.floor_char_boundary(CHUNK.min(self.left.unwrap_or(CHUNK))));
            if !chunk.is_empty() {
                (self.heard)(delta(chunk));
            }
            // What is left for less than a character is as good as nothing.
            if !self.through(chunk.len().max(1)) {
                return false;
            }
            rest = after;
        }
        true
    }

    async fn call(&mut self, call: &Call) -> bool {
        self.wait().await;
        (self.heard)(Delta::Call { name: &call.name });
        self.through(call.arguments.len())
    }

    /// Counts bytes that came; false when the cut is reached.
    fn through(&mut self, bytes: usize) -> bool {
        self.left = self.left.map(|left| left.saturating_sub(bytes));
        self.left != Some(0)
    }

    async fn wait(&mut self) {
        if self.begun && !self.delay.is_zero() {
            tokio::time::sleep(self.delay).await;
        }
        self.begun = true;
    }
}

/// An estimate of the tokens of what was sent.
fn sent(request: &Request<'_>) -> u64 {
    let tools = request.tools.iter().map(|tool| {
        chars(&tool.name) + chars(&tool.description) + u64::try_from(tool.input_schema.to_string().len()).unwrap_or(0)
    });
    let messages = request.conversation.messages().iter().map(|message| match message {
        Message::User(parts) => parts.iter().map(user_chars).sum::<u64>(),
        Message::Assistant(parts) => parts.iter().map(answer_chars).sum(),
    });
    (chars(request.system) + tools.sum::<u64>() + messages.sum::<u64>()).div_ceil(CHARS_A_TOKEN)
}

/// An estimate of the tokens of what it said.
fn said(answer: &Answer, thinking: &str) -> u64 {
    (answer.parts.iter().map(answer_chars).sum::<u64>() + chars(thinking)).div_ceil(CHARS_A_TOKEN)
}

fn user_chars(part: &UserPart) -> u64 {
    match part {
        UserPart::Text(text) => chars(text),
        UserPart::Media(_) => 0,
        UserPart::Result(result) => result
            .parts
            .iter()
            .map(|part| match part {
                ResultPart::Text(text) => chars(text),
                ResultPart::Media(_) => 0,
            })
            .sum(),
    }
}

fn answer_chars(part: &AnswerPart) -> u64 {
    match part {
        AnswerPart::Text(text) => chars(text),
        AnswerPart::Call(call) => chars(&call.name) + chars(&call.arguments),
        // Its own mark is not a token.
        AnswerPart::Opaque(_) => 0,
    }
}

fn chars(text: &str) -> u64 {
    u64::try_from(text.chars().count()).unwrap_or(u64::MAX)
}
