//! A model that says what it was told to say, and remembers what it was sent.

use std::collections::VecDeque;
use std::sync::Mutex;

use async_trait::async_trait;
use portcullis::model::{
    Answer, AnswerPart, Call, Delta, Failure, Heard, Message, Model, ModelError, ModelName, Request, Stop, ToolSpec,
    Usage,
};

pub struct Brain {
    name: ModelName,
    answers: Mutex<VecDeque<Result<Vec<AnswerPart>, ModelError>>>,
    requests: Mutex<Vec<String>>,
    menus: Mutex<Vec<Vec<String>>>,
    window: Option<u64>,
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
            menus: Mutex::default(),
            window: Some(1_000_000),
        }
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
        Ok(())
    }

    async fn ask(&self, request: &Request<'_>, heard: Heard<'_>) -> Result<Answer, ModelError> {
        let render = |message: &Message, out: &mut Vec<u8>| {
            out.extend_from_slice(serde_json::to_string(message).expect("JSON").as_bytes());
        };
        let sent =
            request.conversation.with_rendered("fake", render, |bytes| String::from_utf8_lossy(bytes).into_owned());
        self.requests.lock().expect("whole").push(sent);
        let menu = request.tools.iter().map(|tool| tool.name.clone()).collect();
        self.menus.lock().expect("whole").push(menu);
        let next = self.answers.lock().expect("whole").pop_front();
        let parts = next.unwrap_or_else(|| Err(ModelError::new(Failure::ScriptExhausted, "nothing more to say")))?;
        for part in &parts {
            if let AnswerPart::Text(text) = part {
                heard(Delta::Text(text));
            }
        }
        let calls = parts.iter().any(|part| matches!(part, AnswerPart::Call(_)));
        let stop = if calls { Stop::ToolUse } else { Stop::EndTurn };
        Ok(Answer {
            parts,
            stop,
            usage: Some(Usage { input: 10, output: 5, ..Usage::default() }),
            warnings: Vec::new(),
        })
    }
}
