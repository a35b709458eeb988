//! What `shell_run` and `shell_exec` have in common: how a command line is given, how long it may run, how much of its
//! output is shown, and what such a tool is to the gate.

use portcullis_base::{Effect, EffectSet, Risk, RiskSet};
use portcullis_contract::{Concurrency, DefaultPolicy, Interrupt, Semantics, Strategy, Timeout, ToolContext, UserText};
use schemars::{JsonSchema, Schema};
use serde::Deserialize;
use serde_json::Value;

use super::line::brief;
use crate::count::Count;
use crate::hand;

/// How long a command may run by default, and at most (tool-contract §17).
pub(crate) const TIMEOUT_MS: u64 = 120_000;
pub(crate) const TIMEOUT_MOST_MS: u64 = 600_000;
/// Characters of output that are shown by default, and at most; the rest is kept.
const OUTPUT_CHARS: u64 = 12_000;
const OUTPUT_MOST_CHARS: u64 = 40_000;

// A command line for a shell. (A doc comment would become part of its schema.)
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LineInput {
    /// The command line.
    #[schemars(regex(pattern = r"\S"), length(max = 65536))]
    pub(super) command: String,
    /// The folder to run in, relative to the workspace or as `/workspace/…`. Absent means the session's folder.
    #[serde(default)]
    #[schemars(length(max = 4096))]
    pub(super) cwd: Option<String>,
    /// Milliseconds until it is ended. 0 or less, or absent, means 120000; above 600000 means 600000.
    #[serde(default)]
    pub(super) timeout_ms: Count<TIMEOUT_MS, TIMEOUT_MOST_MS>,
    /// How much of the output is shown at once; all of it is kept. 0 or less, or absent, means 12000; above 40000 means
    /// 40000.
    #[serde(default)]
    max_output_chars: Count<OUTPUT_CHARS, OUTPUT_MOST_CHARS>,
}

impl LineInput {
    /// Characters of output that are shown.
    pub(super) fn shown_chars(&self) -> Option<usize> {
        usize::try_from(self.max_output_chars.value()).ok()
    }

    /// Warns of values that were lowered to their caps.
    pub(super) fn warn_of_caps(&self, context: &ToolContext) {
        let lowered = [self.timeout_ms.lowered("timeoutMs"), self.max_output_chars.lowered("maxOutputChars")];
        lowered.into_iter().flatten().for_each(|text| context.warn(text));
    }
}

/// Gives a field of an input other words.
pub(super) fn describe(schema: &mut Schema, field: &str, words: &str) {
    if let Some(property) = schema.get_mut("properties").and_then(|properties| properties.get_mut(field)) {
        property["description"] = words.into();
    }
}

/// What a tool is that runs commands which may write.
pub(super) fn semantics(default_policy: DefaultPolicy) -> Semantics {
    Semantics {
        risk: RiskSet::from([Risk::Execute, Risk::Write]),
        effects: EffectSet::from([Effect::SandboxExecute, Effect::MemoryWrite]),
        destructive: true,
        concurrency: Concurrency::Keyed,
        timeout: Timeout { default_ms: TIMEOUT_MS, max_ms: TIMEOUT_MOST_MS },
        sandbox: Some(hand::PROFILE.to_owned()),
        default_policy,
        truncation: Strategy::AroundErrors,
        // A command is ended when somebody interrupts it (tool-contract §14).
        interrupt: Interrupt::Cancel,
        ..Semantics::mutating()
    }
}

/// A command that ended, for people.
pub(super) fn ran(line: &str, output: &Value) -> UserText {
    let number = |field: &str| output.get(field).and_then(Value::as_i64).unwrap_or_default();
    UserText {
        title: format!("Ran {}", brief(line)),
        summary: format!("exit code {} in {} ms", number("exitCode"), number("durationMs")),
    }
}
