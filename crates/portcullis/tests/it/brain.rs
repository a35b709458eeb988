//! The fake model of these tests. It remembers what it was sent.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use portcullis::model::{
    Answer, AnswerPart, Call, Delta, DeltaSink, Failure, Message, Model, ModelError, ModelName, Request, Stop,
    ToolSpec, Usage,
};

type Act = dyn Fn(usize, bool) -> BoxFuture<'static, Vec<AnswerPart>> + Send + Sync;

/// Where the next answer comes from.
enum Mind {
    /// From a list, one after the other.
    Script(Mutex<VecDeque<Result<Vec<AnswerPart>, ModelError>>>),
    /// From something that it does meanwhile.
    Act(Box<Act>),
    /// From what it is shown.
    Shown(fn(&[Message]) -> Vec<AnswerPart>),
    /// From nowhere: its request never ends, until it is cut off.
    Silent,
}

pub struct Brain {
    name: ModelName,
    mind: Mind,
    requests: Mutex<Vec<String>>,
    /// Messages that were rendered for it, each as often as it was.
    rendered: AtomicUsize,
    menus: Mutex<Vec<Vec<String>>>,
    window: Option<u64>,
    usage: Option<Usage>,
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
        let usage = Some(Usage { input: 10, output: 5, ..Usage::default() });
        let script = Mind::Script(Mutex::new(answers.into_iter().collect()));
        Self { window: Some(1_000_000), usage, ..Self::of(script) }
    }

    /// Does something while it is asked, and ends its turn whatever it answers. `act` is told which request it is, from 0,
    /// and whether it may call.
    pub fn acting<A: Future<Output = Vec<AnswerPart>> + Send + 'static>(
        act: impl Fn(usize, bool) -> A + Send + Sync + 'static,
    ) -> Self {
        let act = Mind::Act(Box::new(move |n, may_call| act(n, may_call).boxed()));
        Self::of(act).always_ending(Stop::EndTurn)
    }

    /// Answers by what it is shown and by nothing else: equal requests get equal answers.
    pub fn shown(answer: fn(&[Message]) -> Vec<AnswerPart>) -> Self {
        Self::of(Mind::Shown(answer))
    }

    /// Never answers.
    pub fn silent() -> Self {
        Self::of(Mind::Silent)
    }

    fn of(mind: Mind) -> Self {
        Self {
            name: "fake/brain".parse().expect("a name"),
            mind,
            requests: Mutex::default(),
            rendered: AtomicUsize::new(0),
            menus: Mutex::default(),
            window: None,
            usage: None,
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
        self.usage = Some(usage);
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

    /// The answer to the request `n`, from 0.
    async fn answer(
        &self,
        n: usize,
        request: &Request<'_>,
        heard: DeltaSink<'_>,
    ) -> Result<Vec<AnswerPart>, ModelError> {
        match &self.mind {
            Mind::Script(answers) => {
                let next = answers.lock().expect("whole").pop_front();
                next.unwrap_or_else(|| Err(ModelError::new(Failure::ScriptExhausted, "nothing more to say")))
            }
            Mind::Act(act) => {
                let mut act = act(n, !request.tools_off);
                // It is never silent for long.
                loop {
                    match tokio::time::timeout(Duration::from_secs(1), &mut act).await {
                        Ok(parts) => return Ok(parts),
                        Err(_) => heard(Delta::Alive),
                    }
                }
            }
            Mind::Shown(answer) => Ok(answer(request.conversation.messages())),
            Mind::Silent => std::future::pending().await,
        }
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

    async fn ask(&self, request: &Request<'_>, heard: DeltaSink<'_>) -> Result<Answer, ModelError> {
        let render = |message: &Message, out: &mut Vec<u8>| {
            self.rendered.fetch_add(1, Ordering::Relaxed);
            out.extend_from_slice(serde_json::to_string(message).expect("JSON").as_bytes());
        };
        let sent =
            request.conversation.with_rendered("fake", render, |bytes| String::from_utf8_lossy(bytes).into_owned());
        let too_long = sent.len() > self.reads;
        let n = {
            let mut requests = self.requests.lock().expect("whole");
            requests.push(sent);
            requests.len() - 1
        };
        let menu = request.tools.iter().map(|tool| tool.name.clone()).collect();
        self.menus.lock().expect("whole").push(menu);
        if too_long {
            return Err(ModelError::new(Failure::ContextOverflow, "the prompt is too long"));
        }
        let parts = self.answer(n, request, heard).await?;
        for part in &parts {
            if let AnswerPart::Text(text) = part {
                let letters: Vec<char> = text.chars().collect();
                letters.chunks(self.pieces).for_each(|piece| heard(Delta::Text(&String::from_iter(piece))));
            }
        }
        let calls = parts.iter().any(|part| matches!(part, AnswerPart::Call(_)));
        let stop = if calls && !self.always { Stop::ToolUse } else { self.stop.clone() };
        Ok(Answer { parts, stop, usage: self.usage, warnings: self.warnings.clone() })
    }
}
