//! The file of a scripted model, as written and as understood.

use std::time::Duration;

use portcullis_base::Digest;
use serde::Deserialize;
use toml::Spanned;

use super::condition::TurnCondition;
use crate::{Failure, ModelError, Stop};

/// The most places a script may have, repeated turns included: more is a slip of the pen, and memory.
const MAX_PLACES: usize = 100_000;

/// A script that was understood.
#[derive(Debug)]
pub(super) struct Script {
    turns: Vec<Turn>,
    /// The turn at each place: a turn that is repeated has several.
    places: Vec<usize>,
    pub(super) faults: Vec<Fault>,
    pub(super) stream_delay: Duration,
    pub(super) window: Option<u64>,
    /// Tells this script from another one.
    pub(super) digest: String,
}

/// One turn.
#[derive(Debug, Clone, Default)]
pub(super) struct Turn {
    pub(super) when: TurnCondition,
    pub(super) thinking: String,
    pub(super) text: String,
    pub(super) calls: Vec<ScriptedCall>,
    pub(super) stop: Option<Stop>,
}

/// One call of a turn.
#[derive(Debug, Clone)]
pub(super) struct ScriptedCall {
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) arguments: String,
}

/// A request that fails.
#[derive(Debug, Clone)]
pub(super) struct Fault {
    pub(super) turn: u64,
    pub(super) status: Option<u16>,
    pub(super) cut_after_bytes: Option<usize>,
    pub(super) retry_after: Option<Duration>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenScript {
    #[serde(default)]
    turn: Vec<Spanned<WrittenTurn>>,
    #[serde(default)]
    defaults: WrittenDefaults,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct WrittenDefaults {
    #[serde(default)]
    stream_delay_ms: u64,
    #[serde(default)]
    fail: Vec<Spanned<WrittenFault>>,
    window: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenTurn {
    when: Option<Spanned<TurnCondition>>,
    #[serde(default)]
    thinking: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    calls: Vec<Spanned<WrittenCall>>,
    stop: Option<WrittenStop>,
    repeat: Option<Spanned<usize>>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum WrittenStop {
    EndTurn,
    ToolUse,
    MaxTokens,
    Refusal,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCall {
    id: Option<String>,
    name: String,
    input: Option<toml::Value>,
    arguments: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFault {
    turn: u64,
    status: Option<u16>,
    cut_after_bytes: Option<usize>,
    retry_after_ms: Option<u64>,
    times: Option<usize>,
}

impl Script {
    pub(super) fn parse(file: &str, text: &str) -> Result<Self, ModelError> {
        let source = Source { file, text };
        let written: WrittenScript = toml::from_str(text).map_err(|e| {
            let at = e.span().map_or(0, |span| span.start);
            source.fault(at, &e.message().replace('\n', "; "))
        })?;
        if written.turn.is_empty() {
            return Err(source.fault(text.len(), "it has no turn; write `[[turn]]` and under it `text = \"…\"`"));
        }
        let mut script = Self {
            turns: Vec::new(),
            places: Vec::new(),
            faults: Vec::new(),
            stream_delay: Duration::from_millis(written.defaults.stream_delay_ms),
            window: written.defaults.window,
            digest: format!("{:.12}", Digest::of(text.as_bytes())),
        };
        for turn in written.turn {
            script.add_turn(&source, turn)?;
        }
        for fault in written.defaults.fail {
            script.add_fault(&source, &fault)?;
        }
        Ok(script)
    }

    /// How many places there are.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// The turn at a place below [`Self::len`].
    pub(super) fn turn(&self, place: usize) -> &Turn {
        &self.turns[self.places[place]]
    }

    fn add_turn(&mut self, source: &Source<'_>, written: Spanned<WrittenTurn>) -> Result<(), ModelError> {
        let at = written.span().start;
        let written = written.into_inner();
        if written.text.is_empty() && written.calls.is_empty() && written.thinking.is_empty() {
            return Err(source.fault(at, "this turn says nothing; write `text`, `calls` or both"));
        }
        let when = match written.when {
            None => TurnCondition::default(),
            Some(when) => {
                let at = when.span().start;
                when.into_inner().checked().map_err(|what| source.fault(at, what))?
            }
        };
        let calls = written.calls.into_iter().map(|call| source.call(call)).collect::<Result<_, _>>()?;
        let stop = written.stop.map(|stop| match stop {
            WrittenStop::EndTurn => Stop::EndTurn,
            WrittenStop::ToolUse => Stop::ToolUse,
            WrittenStop::MaxTokens => Stop::MaxTokens,
            WrittenStop::Refusal => Stop::Refusal,
        });
        let (repeat, at) = written.repeat.map_or((1, at), |repeat| (*repeat.get_ref(), repeat.span().start));
        if repeat == 0 || repeat > MAX_PLACES - self.places.len().min(MAX_PLACES) {
            return Err(source.fault(at, &format!("`repeat` takes 1 or more, and a script {MAX_PLACES} turns in all")));
        }
        self.places.extend(std::iter::repeat_n(self.turns.len(), repeat));
        self.turns.push(Turn { when, thinking: written.thinking, text: written.text, calls, stop });
        Ok(())
    }

    fn add_fault(&mut self, source: &Source<'_>, written: &Spanned<WrittenFault>) -> Result<(), ModelError> {
        let at = written.span().start;
        let written = written.get_ref();
        if written.turn == 0 {
            return Err(source.fault(at, "`turn` counts requests from 1"));
        }
        if written.status.is_some() == written.cut_after_bytes.is_some() {
            let what = "a failure is either `{ turn = 3, status = 529 }` or `{ turn = 3, cut_after_bytes = 120 }`";
            return Err(source.fault(at, what));
        }
        if written.status.is_some_and(|status| !(400..600).contains(&status)) {
            return Err(source.fault(at, "`status` takes an HTTP status from 400 to 599"));
        }
        let times = written.times.unwrap_or(1);
        if times > MAX_PLACES {
            return Err(source.fault(at, &format!("`times` takes at most {MAX_PLACES}")));
        }
        let fault = Fault {
            turn: written.turn,
            status: written.status,
            cut_after_bytes: written.cut_after_bytes,
            retry_after: written.retry_after_ms.map(Duration::from_millis),
        };
        self.faults.extend(std::iter::repeat_n(fault, times));
        Ok(())
    }
}

/// The text with its name, for messages.
struct Source<'t> {
    file: &'t str,
    text: &'t str,
}

impl Source<'_> {
    fn fault(&self, at: usize, what: &str) -> ModelError {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        ModelError::new(Failure::Config, format!("{}, line {line}: {what}", self.file))
    }

    fn call(&self, written: Spanned<WrittenCall>) -> Result<ScriptedCall, ModelError> {
        let at = written.span().start;
        let WrittenCall { id, name, input, arguments } = written.into_inner();
        let arguments = match (input, arguments) {
            (Some(_), Some(_)) => {
                return Err(self.fault(at, "a call has `input` (a table) or `arguments` (text as it is), not both"));
            }
            (None, Some(raw)) => raw,
            (None, None) => "{}".to_owned(),
            (Some(value), None) => json(value).map_err(|what| self.fault(at, what))?.to_string(),
        };
        Ok(ScriptedCall { id, name, arguments })
    }
}

/// A TOML value as JSON; times become text.
fn json(value: toml::Value) -> Result<serde_json::Value, &'static str> {
    Ok(match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => serde_json::Number::from_f64(number)
            .map(serde_json::Value::Number)
            .ok_or("JSON has no `inf` and no `nan`; write a number, or `arguments = \"…\"` for what is no JSON")?,
        toml::Value::Boolean(flag) => flag.into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(values) => values.into_iter().map(json).collect::<Result<Vec<_>, _>>()?.into(),
        toml::Value::Table(table) => {
            let fields = table.into_iter().map(|(key, value)| Ok((key, json(value)?)));
            serde_json::Value::Object(fields.collect::<Result<_, &'static str>>()?)
        }
    })
}
