//! When a turn fits: what its conditions look at.

use serde::Deserialize;
use serde_json::Value;

use crate::{Message, ResultPart, ToolResult, UserPart};

/// The conditions of a turn; all that are given must hold.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TurnCondition {
    /// A result in the newest message.
    observed: Option<ResultPattern>,
    /// Text in the newest message, results included.
    contains: Option<String>,
    /// The code of the newest result in the newest message.
    code: Option<String>,
    /// Text in the newest words of the user.
    message: Option<String>,
    /// The number of the request, from 1.
    turn: Option<u64>,
    /// Text in the system prompt or the first message, where agent, session and thread are named.
    thread: Option<String>,
}

/// What a result must show; all that is given must hold of the same result.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct ResultPattern {
    tool: Option<String>,
    exit_code: Option<i64>,
    code: Option<String>,
    ok: Option<bool>,
}

impl TurnCondition {
    /// Refuses what is written and means nothing.
    pub(super) fn checked(self) -> Result<Self, &'static str> {
        if self.observed == Some(ResultPattern::default()) {
            return Err("`observed` is empty; write `tool`, `exit_code`, `code` or `ok` in it");
        }
        if self.turn == Some(0) {
            return Err("`turn` counts requests from 1");
        }
        Ok(self)
    }

    /// Whether they hold for request number `request`, which shows these messages.
    pub(super) fn holds(&self, request: u64, system: &str, messages: &[Message]) -> bool {
        let newest = messages.last();
        let given = |condition: &Option<String>, test: &dyn Fn(&str) -> bool| condition.as_deref().is_none_or(test);
        self.turn.is_none_or(|turn| turn == request)
            && self.observed.as_ref().is_none_or(|wanted| results(newest).any(|result| wanted.fits(result)))
            && given(&self.code, &|code| {
                results(newest).last().is_some_and(|r| ResultFacts::of(r).code() == Some(code))
            })
            && given(&self.contains, &|text| texts(newest).any(|shown| shown.contains(text)))
            && given(&self.message, &|text| words(messages).iter().any(|said| said.contains(text)))
            && given(&self.thread, &|text| {
                system.contains(text) || texts(messages.first()).any(|shown| shown.contains(text))
            })
    }
}

impl ResultPattern {
    fn fits(&self, result: &ToolResult) -> bool {
        let facts = ResultFacts::of(result);
        self.tool.as_deref().is_none_or(|tool| tool == facts.tool())
            && self.exit_code.is_none_or(|code| facts.exit_code() == Some(code))
            && self.code.as_deref().is_none_or(|code| facts.code() == Some(code))
            && self.ok.is_none_or(|ok| ok == facts.ok())
    }
}

/// The facts of an observation: the first line of its text, one JSON object; below it comes what the tool put out.
struct ResultFacts<'r> {
    result: &'r ToolResult,
    line: Value,
}

impl<'r> ResultFacts<'r> {
    fn of(result: &'r ToolResult) -> Self {
        let first = result.parts.first().and_then(|part| match part {
            ResultPart::Text(text) => text.lines().next(),
            ResultPart::Media(_) => None,
        });
        let line = first.and_then(|line| serde_json::from_str(line).ok()).unwrap_or(Value::Null);
        Self { result, line }
    }

    fn tool(&self) -> &str {
        self.line["tool"].as_str().unwrap_or(&self.result.name)
    }

    fn exit_code(&self) -> Option<i64> {
        self.line["exitCode"].as_i64()
    }

    fn code(&self) -> Option<&str> {
        self.line["code"].as_str()
    }

    fn ok(&self) -> bool {
        self.line["ok"].as_bool().unwrap_or(!self.result.is_error)
    }
}

fn parts(message: Option<&Message>) -> &[UserPart] {
    match message {
        Some(Message::User(parts)) => parts,
        _ => &[],
    }
}

fn results(message: Option<&Message>) -> impl DoubleEndedIterator<Item = &ToolResult> {
    parts(message).iter().filter_map(|part| match part {
        UserPart::Result(result) => Some(result),
        _ => None,
    })
}

/// Every text of a message, results included.
fn texts(message: Option<&Message>) -> impl Iterator<Item = &str> {
    parts(message).iter().flat_map(|part| match part {
        UserPart::Text(text) => vec![text.as_str()],
        UserPart::Media(_) => Vec::new(),
        UserPart::Result(result) => result
            .parts
            .iter()
            .filter_map(|part| match part {
                ResultPart::Text(text) => Some(text.as_str()),
                ResultPart::Media(_) => None,
            })
            .collect(),
    })
}

/// The newest words of the user: the texts of the newest message that has any but notes of the runtime.
fn words(messages: &[Message]) -> Vec<&str> {
    let spoken = messages.iter().rev().map(|message| {
        let texts = parts(Some(message)).iter().filter_map(|part| match part {
            UserPart::Text(text) if !is_note(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>()
    });
    spoken.into_iter().find(|texts| !texts.is_empty()).unwrap_or_default()
}

/// A text of nothing but notes of the runtime, `[session-event] …` (agent-runtime 6.3).
fn is_note(text: &str) -> bool {
    text.lines().all(|line| {
        line.strip_prefix('[').and_then(|rest| rest.split_once("] ")).is_some_and(|(tag, _)| {
            !tag.is_empty() && tag.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-' || byte == b':')
        })
    })
}
