//! The session projection of an observation (tool-contract §20): the payload of `tool.observation`,
//! and the model and user projections derived from it.

use portcullis_base::{
    ArtifactRef, AskId, Code, FileFact, GrantId, IncidentId, IntentId, InvocationId, MenuId, ObservationId, Phase,
    Reason, Recorded, Recovery, SideEffects, TaskId, Trust, TurnId,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::facts::{Capture, InputError, Verdict};

/// How a content part is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentFormat {
    Text,
    Json,
    Diff,
    Image,
    ArtifactRef,
}

/// A labelled piece of content. Only runtime code makes `runtime_fact` (tool-contract §21).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentPart {
    pub trust: Trust,
    pub format: ContentFormat,
    pub source: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<ArtifactRef>,
}

/// Who let it happen, or did not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Permission {
    pub decision: Verdict,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policy_ids: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_id: Option<AskId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grant_ids: Vec<GrantId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approver: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
}

/// Where it ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxFact {
    pub profile: String,
    pub network: String,
}

/// An observation that a later one points back to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlierObservation {
    pub observation_id: ObservationId,
    /// How the model knows it.
    pub call_id: String,
}

/// One settled intent, whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Observed {
    pub observation_id: ObservationId,
    pub intent_id: IntentId,
    pub call_id: String,
    pub tool: String,
    pub turn_id: TurnId,
    pub menu_id: MenuId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invocation_id: Option<InvocationId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor_id: Option<String>,
    pub attempt: u32,
    pub ok: bool,
    pub phase: Recorded<Phase>,
    pub code: Recorded<Code>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Recorded<Reason>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_code: Option<String>,
    pub title: String,
    pub summary: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<ContentPart>,
    /// Inline up to 256 KiB, else `{"$artifact": id}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// Whether the structured value is what the model sees (R9).
    #[serde(default)]
    pub structured_is_channel: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    pub duration_us: u64,
    pub side_effects: SideEffects,
    pub retryable: bool,
    pub recovery: Recorded<Recovery>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<InputError>,
    #[serde(default)]
    pub truncated: bool,
    #[serde(default)]
    pub omitted_bytes: u64,
    #[serde(default)]
    pub omitted_lines: u64,
    #[serde(default)]
    pub total_bytes: u64,
    /// False when the whole output could not be kept (R2).
    pub retained: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capture: Vec<Capture>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<ArtifactRef>,
    /// What the call learned of or did to files; baselines are folded from it (tool-contract §19).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileFact>,
    /// The observation that shows the content of this one; with `file_unchanged` and nothing else (L65).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchanged_since: Option<EarlierObservation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggested_next_tool: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_hint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission: Option<Permission>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxFact>,
    #[serde(default)]
    pub synthetic: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incident_id: Option<IncidentId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Observed {
    /// The background task that the call goes on as.
    #[must_use]
    pub fn task_id(&self) -> Option<TaskId> {
        if self.code.known() != Some(Code::BackgroundStarted) {
            return None;
        }
        self.structured.as_ref()?.get("task_id")?.as_str()?.parse().ok()
    }

    /// The document a model is shown: camelCase, bounded, no ids it cannot use, no host path.
    #[must_use]
    pub fn model_view(&self) -> Value {
        let mut view = Map::new();
        let mut put = |name: &str, value: Value| view.insert(name.to_owned(), value);
        put("type", json!("tool.observation"));
        put("callId", json!(self.call_id));
        put("tool", json!(self.tool));
        put("ok", json!(self.ok));
        put("phase", json!(self.phase));
        put("code", json!(self.code));
        if let Some(reason) = &self.reason {
            put("reason", json!(reason));
        }
        if let Some(tool_code) = &self.tool_code {
            put("toolCode", json!(tool_code));
        }
        if let Some(exit_code) = self.exit_code {
            put("exitCode", json!(exit_code));
        }
        if let Some(signal) = self.signal {
            put("signal", json!(signal));
        }
        put("durationMs", json!(self.duration_us / 1_000));
        put("summary", json!(self.summary));
        if let Some(earlier) = &self.unchanged_since {
            put("unchangedSince", json!({"callId": earlier.call_id}));
        }
        put("sideEffects", json!(self.side_effects));
        if !self.ok {
            put("retryable", json!(self.retryable));
            put("recovery", json!(self.recovery));
        }
        if !self.errors.is_empty() {
            put("errors", json!(self.errors));
        }
        if self.truncated {
            put("truncated", json!(true));
            put("omittedBytes", json!(self.omitted_bytes));
            put("omittedLines", json!(self.omitted_lines));
            put("totalBytes", json!(self.total_bytes));
            put("retained", json!(self.retained));
        }
        if !self.capture.is_empty() {
            let capture: Vec<Value> = self
                .capture
                .iter()
                .map(|c| {
                    json!({"stream": c.stream, "totalBytes": c.total_bytes, "keptBytes": c.kept_bytes,
                           "complete": c.complete})
                })
                .collect();
            put("capture", Value::Array(capture));
        }
        if !self.artifacts.is_empty() {
            let artifacts: Vec<Value> = self
                .artifacts
                .iter()
                .map(|a| json!({"id": a.id, "kind": a.kind, "bytes": a.bytes, "complete": a.complete}))
                .collect();
            put("artifacts", Value::Array(artifacts));
        }
        if let Some(next) = &self.suggested_next_tool {
            put("suggestedNextTool", next.clone());
        }
        if let Some(hint) = &self.next_hint {
            put("nextHint", json!(hint));
        }
        if let Some(permission) = &self.permission {
            let mut shown = json!({"decision": permission.decision});
            if let Some(feedback) = &permission.feedback {
                shown["feedback"] = json!(feedback);
            }
            put("permission", shown);
        }
        if let Some(sandbox) = &self.sandbox {
            put("sandbox", json!(sandbox));
        }
        if self.synthetic {
            put("synthetic", json!(true));
        }
        if let Some(incident) = &self.incident_id {
            put("incidentId", json!(incident));
        }
        if !self.warnings.is_empty() {
            put("warnings", json!(self.warnings));
        }
        let content: Vec<Value> = self
            .content
            .iter()
            .map(|part| {
                let mut shown = json!({"trust": part.trust, "format": part.format, "source": part.source});
                if let Some(text) = &part.text {
                    shown["text"] = json!(text);
                }
                if let Some(artifact) = &part.artifact {
                    shown["artifact"] = json!({"id": artifact.id, "mime": artifact.mime, "bytes": artifact.bytes});
                }
                shown
            })
            .collect();
        if !content.is_empty() {
            put("content", Value::Array(content));
        }
        if self.structured_is_channel
            && let Some(structured) = &self.structured
        {
            put("structured", structured.clone());
        }
        Value::Object(view)
    }
}
