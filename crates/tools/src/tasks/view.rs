//! What a model and a person see of a task.

use portcullis_contract::{Content, ToolContext, UserText};
use portcullis_event::facts::{Exit, TaskCompleted};
use portcullis_pipeline::{SoFar, TaskSeen, TaskStanding};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::running_output;

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    Running,
    Ok,
    Error,
    Cancelled,
    Timeout,
    /// Its process ended before it did.
    Unknown,
}

impl From<Exit> for State {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Ok => Self::Ok,
            Exit::Error => Self::Error,
            Exit::Cancelled => Self::Cancelled,
            Exit::Timeout => Self::Timeout,
            Exit::Unknown => Self::Unknown,
        }
    }
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct StreamView {
    name: String,
    /// Bytes kept so far: where a `range` for what comes next begins.
    bytes: u64,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct ArtifactView {
    id: String,
    bytes: u64,
    complete: bool,
}

/// The output of all three tools.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct TaskView {
    task_id: String,
    /// The tool it is a call of.
    tool: String,
    pub(super) state: State,
    /// What happened, once it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    /// What it captures, while it runs.
    streams: Vec<StreamView>,
    /// What was kept of it, once it has ended.
    artifacts: Vec<ArtifactView>,
    /// The text is not the whole output.
    truncated: bool,
    /// The text itself; not kept twice in the session's record.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

/// Says what the end of a task warned of: nobody was there to hear it.
pub(super) fn tell_warnings(seen: &TaskSeen, context: &ToolContext) {
    if let TaskStanding::Ended(end) = &seen.standing {
        end.warnings.iter().for_each(|warning| context.warn(warning));
    }
}

impl TaskView {
    /// `range`: bytes of each stream of a running task, or of the text of one that has ended.
    pub(super) fn of(seen: TaskSeen, range: Option<(u64, u64)>) -> Self {
        let blank = Self {
            task_id: seen.task_id.to_string(),
            tool: seen.tool,
            state: State::Unknown,
            code: None,
            exit_code: None,
            signal: None,
            summary: None,
            streams: Vec::new(),
            artifacts: Vec::new(),
            truncated: false,
            text: None,
        };
        match seen.standing {
            TaskStanding::Running(streams) => blank.running(&streams, range),
            TaskStanding::Ended(end) => blank.ended(*end, range),
            TaskStanding::Lost => Self {
                summary: Some("no process works on it any more, and how it ended is not known".to_owned()),
                ..blank
            },
        }
    }

    fn running(self, streams: &[SoFar], range: Option<(u64, u64)>) -> Self {
        let shown = streams.iter().map(|stream| StreamView { name: stream.name.clone(), bytes: stream.kept_bytes });
        let text = running_output::text(streams, range);
        Self { state: State::Running, streams: shown.collect(), text: Some(text), ..self }
    }

    fn ended(self, end: TaskCompleted, range: Option<(u64, u64)>) -> Self {
        let artifacts = end.artifacts.iter();
        let artifacts = artifacts.map(|a| ArtifactView { id: a.id.to_string(), bytes: a.bytes, complete: a.complete });
        let text = match range {
            Some((start, end_at)) => cut(&end.text, start, end_at),
            None => end.text,
        };
        Self {
            state: end.exit.into(),
            code: Some(end.code.to_string()),
            exit_code: end.exit_code,
            signal: end.signal,
            summary: Some(end.summary).filter(|words| !words.is_empty()),
            artifacts: artifacts.collect(),
            truncated: end.truncated,
            text: Some(text),
            ..self
        }
    }
}

/// Bytes `start..end` of a text, from a character's beginning to one's end.
fn cut(text: &str, start: u64, end: u64) -> String {
    let place = |at: u64| text.floor_char_boundary(usize::try_from(at).unwrap_or(usize::MAX));
    text.get(place(start)..place(end)).unwrap_or_default().to_owned()
}

pub(super) fn to_model(output: &Value) -> Vec<Content> {
    match output.get("text").and_then(Value::as_str) {
        Some(text) if !text.is_empty() => vec![Content::text(text)],
        _ => Vec::new(),
    }
}

pub(super) fn to_user(output: &Value) -> UserText {
    let Ok(view) = TaskView::deserialize(output) else { return UserText::default() };
    let mut summary = match view.state {
        State::Running => "it is running".to_owned(),
        _ => format!("it has ended: {}", view.code.as_deref().unwrap_or("unknown")),
    };
    if let Some(code) = view.exit_code {
        summary.push_str(&format!(", exit code {code}"));
    }
    if let Some(words) = &view.summary {
        summary.push_str(&format!("; {words}"));
    }
    for stream in &view.streams {
        summary.push_str(&format!("; {}: {} bytes so far", stream.name, stream.bytes));
    }
    for artifact in &view.artifacts {
        summary.push_str(&format!("; kept as {} ({} bytes)", artifact.id, artifact.bytes));
    }
    UserText { title: format!("Task {}", view.task_id), summary }
}

/// For the session's record, which has the text as the model's.
pub(super) fn without_text(output: &Value) -> Value {
    let mut kept = output.clone();
    if let Some(fields) = kept.as_object_mut() {
        fields.remove("text");
    }
    kept
}
