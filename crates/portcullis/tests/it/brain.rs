//! A model that says what it was told to say, and remembers what it was sent.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use portcullis::model::{
    Answer, AnswerPart, Call, Delta, Failure, Heard, Message, Model, ModelError, ModelName, Request, Stop, ToolSpec,
    Usage,
};

pub struct Brain {
    name: ModelName,
    answers: Mutex<VecDeque<Result<Vec<AnswerPart>, ModelError>>>,
    requests: Mutex<Vec<String>>,
    /// Messages that were rendered for it, each as often as it was.
    rendered: AtomicUsize,
    menus: Mutex<Vec<Vec<String>>>,
    window: Option<u64>,
    usage: Usage,
    /// How an answer without calls ends.
    stop: Stop,
    /// Why no request can be made with the tools it is given.
    unfit: Option<ModelError>,
    /// Whether one with calls ends so, too.
    always: bool,
    warnings: Vec<String>,
    /// Characters of a piece that it is heard in.
    pieces: usize,
    /// Bytes of a conversation that it can read.
    reads: usize,
}

impl Brain {
    pub fn new(answers: impl IntoIterator<Item = Vec<AnswerPart>>) -> Self {
        Self::scripted(answers.into_iter().map(Ok))
    }

    pub fn scripted(answers: impl IntoIterator<Item = Result<Vec<AnswerPart>, ModelError>>) -> Self {
        Self {
            name: "fake/brain".parse().expect("a name"),
            answers: Mutex::new(answers.into_iter().collect()),
            requests: Mutex::default(),
            rendered: AtomicUsize::new(0),
            menus: Mutex::default(),
            window: Some(1_000_000),
            usage: Usage { input: 10, output: 5, ..Usage::default() },
            stop: Stop::EndTurn,
            unfit: None,
            always: false,
            warnings: Vec::new(),
            pieces: usize::MAX,
            reads: usize::MAX,
        }
    }

    /// How often a message was rendered for it.
    pub fn rendered(&self) -> usize {
        self.rendered.load(Ordering::Relaxed)
    }

    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    pub fn ending(mut self, stop: Stop) -> Self {
        self.stop = stop;
        self
    }

    pub fn always_ending(self, stop: Stop) -> Self {
        Self { stop, always: true, ..self }
    }

    pub fn in_pieces(self, pieces: usize) -> Self {
        Self { pieces, ..self }
    }

    pub fn warning(mut self, text: &str) -> Self {
        self.warnings.push(text.to_owned());
        self
    }

    pub fn unfit(mut self, error: ModelError) -> Self {
        self.unfit = Some(error);
        self
    }

    /// Refuses what is longer, and says nothing of a window.
    pub fn reading_at_most(mut self, bytes: usize) -> Self {
        (self.reads, self.window) = (bytes, None);
        self
    }

    pub fn with_window(mut self, window: u64) -> Self {
        self.window = Some(window);
        self
    }

    /// The tools that each request named.
    pub fn menus(&self) -> Vec<Vec<String>> {
        self.menus.lock().expect("whole").clone()
    }

    /// What it was sent, message after message.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("whole").clone()
    }
}

pub fn said(text: &str) -> AnswerPart {
    AnswerPart::Text(text.to_owned())
}

pub fn call(id: &str, name: &str, arguments: &str) -> AnswerPart {
    AnswerPart::Call(Call { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() })
}

#[async_trait]
impl Model for Brain {
    fn name(&self) -> &ModelName {
        &self.name
    }

    fn wire(&self) -> &'static str {
        "fake"
    }

    fn window(&self) -> Option<u64> {
        self.window
    }

    fn fits(&self, _tools: &[ToolSpec]) -> Result<(), ModelError> {
        self.unfit.clone().map_or(Ok(()), Err)
    }

    async fn ask(&self, request: &Request<'_>, heard: Heard<'_>) -> Result<Answer, ModelError> {
        let render = |message: &Message, out: &mut Vec<u8>| {
            self.rendered.fetch_add(1, Ordering::Relaxed);
            out.extend_from_slice(serde_json::to_string(message).expect("JSON").as_bytes());
        };
        let sent =
            request.conversation.with_rendered("fake", render, |bytes| String::from_utf8_lossy(bytes).into_owned());
        self.requests.lock().expect("whole").push(sent);
        let menu = request.tools.iter().map(|tool| tool.name.clone()).collect();
        self.menus.lock().expect("whole").push(menu);
        let too_long = self.requests.lock().expect("whole").last().is_some_and(|sent| sent.len() > self.reads);
        if too_long {
            return Err(ModelError::new(Failure::ContextOverflow, "the prompt is too long"));
        }
        let next = self.answers.lock().expect("whole").pop_front();
        let parts = next.unwrap_or_else(|| Err(ModelError::new(Failure::ScriptExhausted, "nothing more to say")))?;
        for part in &parts {
            if let AnswerPart::Text(text) = part {
                let letters: Vec<char> = text.chars().collect();
                letters.chunks(self.pieces).for_each(|piece| heard(Delta::Text(&String::from_iter(piece))));
            }
        }
        let calls = parts.iter().any(|part| matches!(part, AnswerPart::Call(_)));
        let stop = if calls && !self.always { Stop::ToolUse } else { self.stop.clone() };
        Ok(Answer { parts, stop, usage: Some(self.usage), warnings: self.warnings.clone() })
    }
}

type Act = dyn Fn(usize, bool) -> BoxFuture<'static, Vec<AnswerPart>> + Send + Sync;

/// A model that does something while it is asked: it is told which request it is, from 0, and whether it may call.
pub struct Acting {
    name: ModelName,
    act: Box<Act>,
    asked: AtomicUsize,
}

impl Acting {
    pub fn new<A: Future<Output = Vec<AnswerPart>> + Send + 'static>(
        act: impl Fn(usize, bool) -> A + Send + Sync + 'static,
    ) -> Self {
        let act = Box::new(move |n, may_call| act(n, may_call).boxed());
        Self { name: "fake/acting".parse().expect("a name"), act, asked: AtomicUsize::new(0) }
    }
}

#[async_trait]
impl Model for Acting {
    fn name(&self) -> &ModelName {
        &self.name
    }

    fn wire(&self) -> &'static str {
        "fake"
    }

    fn window(&self) -> Option<u64> {
        None
    }

    fn fits(&self, _tools: &[ToolSpec]) -> Result<(), ModelError> {
        Ok(())
    }

    async fn ask(&self, request: &Request<'_>, heard: Heard<'_>) -> Result<Answer, ModelError> {
        let n = self.asked.fetch_add(1, Ordering::Relaxed);
        let mut act = (self.act)(n, !request.tools_off);
        // It is never silent for long.
        let parts = loop {
            match tokio::time::timeout(Duration::from_secs(1), &mut act).await {
                Ok(parts) => break parts,
                Err(_) => heard(Delta::Alive),
            }
        };
        Ok(Answer { parts, stop: Stop::EndTurn, usage: None, warnings: Vec::new() })
    }
}
