//! What a request weighs against its budget, and how much that presses (agent-runtime 6.5, 6.6).

use portcullis_model::ToolSpec;
use serde::Serialize;

/// Half of the window: the other half is for what a wake adds, and for thinking.
const WINDOW_SHARE: u64 = 2;
/// Where nobody knows the window.
pub(crate) const FALLBACK: u64 = 16_000;
/// What a budget leaves beside the prompt and the new message (H38).
const LEAST_ROOM: u64 = 2_000;
/// Headroom below which it presses, and below which it presses hard.
const NARROW: u64 = 1_200;
const LOW: u64 = 400;
/// Headroom at which the model is told.
const TIGHT: u64 = 256;
/// The largest schemas that are named.
const TOP: usize = 5;

/// Tokens of so many characters, by the rule of thumb of agent-runtime 1.1.
pub(crate) fn tokens(chars: usize) -> u64 {
    match chars {
        0 => 0,
        chars => (chars as u64).div_ceil(4).max(1),
    }
}

/// The budget of a conversation: as configured, else a share of the model's window; never so small that the prompt and
/// the new message leave no room (H38).
pub(crate) fn budget(configured: Option<u64>, window: Option<u64>, system: usize, message: usize) -> u64 {
    let wanted = configured.or(window.map(|window| window / WINDOW_SHARE)).unwrap_or(FALLBACK);
    wanted.max(tokens(system) + tokens(message) + LEAST_ROOM)
}

/// Characters of a budget that are left beside the prompt and the new message.
pub(crate) fn room_of(budget: u64, system: usize, message: usize) -> usize {
    let left = budget.saturating_sub(tokens(system) + tokens(message)).max(LEAST_ROOM);
    usize::try_from(left.saturating_mul(4)).unwrap_or(usize::MAX)
}

/// A piece and what it weighs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Weight {
    pub chars: usize,
    pub estimated_tokens: u64,
}

impl Weight {
    pub(crate) fn of(chars: usize) -> Self {
        Self { chars, estimated_tokens: tokens(chars) }
    }
}

/// A section of the system prompt, or the schema of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NamedWeight {
    pub name: String,
    #[serde(flatten)]
    pub weight: Weight,
}

/// The system prompt by its sections.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SystemWeight {
    #[serde(flatten)]
    pub weight: Weight,
    pub sections: Vec<NamedWeight>,
}

/// Messages and notes so far. What a compaction replaced by its summary is dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryCounts {
    pub total_conversation_count: usize,
    pub conversation_count: usize,
    pub total_runtime_note_count: usize,
    pub runtime_note_count: usize,
    pub dropped_conversation_count: usize,
    pub dropped_runtime_note_count: usize,
    pub protected_conversation_continuity_count: usize,
}

/// The conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct HistoryWeight {
    #[serde(flatten)]
    pub counts: HistoryCounts,
    #[serde(flatten)]
    pub weight: Weight,
}

/// The menu.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolsWeight {
    pub count: usize,
    pub schema_chars: usize,
    pub schema_tokens: u64,
    pub top_schemas: Vec<NamedWeight>,
}

impl ToolsWeight {
    fn of(tools: &[ToolSpec]) -> Self {
        let chars = |tool: &ToolSpec| tool.name.len() + tool.description.len() + tool.input_schema.to_string().len();
        let mut schemas: Vec<NamedWeight> =
            tools.iter().map(|tool| NamedWeight { name: tool.name.clone(), weight: Weight::of(chars(tool)) }).collect();
        let schema_chars = schemas.iter().map(|tool| tool.weight.chars).sum();
        schemas.sort_by_key(|tool| std::cmp::Reverse(tool.weight.chars));
        schemas.truncate(TOP);
        Self { count: tools.len(), schema_chars, schema_tokens: tokens(schema_chars), top_schemas: schemas }
    }
}

/// What a request weighs (agent-runtime 6.5); what this build has no facts of is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextBudget {
    pub context_selection_budget_tokens: u64,
    pub estimated_selected_text_tokens: u64,
    pub estimated_tool_schema_tokens: u64,
    pub estimated_total_runtime_tokens: u64,
    pub selection_headroom_tokens: u64,
    pub system_prompt: SystemWeight,
    pub session_message: Weight,
    pub history: HistoryWeight,
    pub tools: ToolsWeight,
}

/// What a context budget is computed from.
pub(crate) struct BudgetInput<'a> {
    pub(crate) budget: u64,
    pub(crate) system: &'a str,
    /// Characters of what the request adds.
    pub(crate) message: usize,
    pub(crate) history: HistoryCounts,
    /// Characters of the conversation before it.
    pub(crate) conversation: usize,
    pub(crate) tools: &'a [ToolSpec],
}

impl ContextBudget {
    pub(crate) fn of(weighed: &BudgetInput<'_>) -> Self {
        let system = Weight::of(weighed.system.len());
        let (message, history) = (Weight::of(weighed.message), Weight::of(weighed.conversation));
        let selected = system.estimated_tokens + message.estimated_tokens + history.estimated_tokens;
        let tools = ToolsWeight::of(weighed.tools);
        Self {
            context_selection_budget_tokens: weighed.budget,
            estimated_selected_text_tokens: selected,
            estimated_tool_schema_tokens: tools.schema_tokens,
            estimated_total_runtime_tokens: selected + tools.schema_tokens,
            selection_headroom_tokens: weighed.budget.saturating_sub(selected),
            system_prompt: SystemWeight { weight: system, sections: sections(weighed.system) },
            session_message: message,
            history: HistoryWeight { counts: weighed.history, weight: history },
            tools,
        }
    }

    /// How much it presses, why, and what to read instead (agent-runtime 6.6).
    #[must_use]
    pub fn pressure(&self) -> Pressure {
        let (headroom, counts) = (self.selection_headroom_tokens, &self.history.counts);
        let mut pressure = Pressure { level: Level::Low, reasons: Vec::new(), recommended_tools: Vec::new() };
        if headroom < LOW {
            pressure.add(format!("low_headroom:{headroom}"), &["retrieval_search", "session_search_context"]);
        } else if headroom < NARROW {
            pressure.add(format!("narrow_headroom:{headroom}"), &["retrieval_search"]);
        }
        let dropped = counts.dropped_conversation_count;
        if dropped > 0 {
            pressure
                .add(format!("dropped_conversation:{dropped}"), &["session_search_context", "session_get_snapshot"]);
        }
        let notes = counts.dropped_runtime_note_count;
        if notes > 0 {
            pressure.add(format!("dropped_runtime_notes:{notes}"), &["session_get_trace", "shell_describe"]);
        }
        pressure.level = match pressure.reasons.is_empty() {
            _ if headroom < LOW || dropped > 0 => Level::High,
            false => Level::Moderate,
            true => Level::Low,
        };
        pressure
    }

    /// Whether the model is told: `crowded` if anything gave way, `tight` if there is hardly room.
    pub(crate) fn told(&self) -> Option<&'static str> {
        let counts = &self.history.counts;
        match counts.dropped_conversation_count + counts.dropped_runtime_note_count {
            0 => (self.selection_headroom_tokens <= TIGHT).then_some("tight"),
            _ => Some("crowded"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Low,
    Moderate,
    High,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pressure {
    pub level: Level,
    pub reasons: Vec<String>,
    pub recommended_tools: Vec<&'static str>,
}

impl Pressure {
    fn add(&mut self, reason: String, tools: &[&'static str]) {
        self.reasons.push(reason);
        for tool in tools {
            if !self.recommended_tools.contains(tool) {
                self.recommended_tools.push(tool);
            }
        }
    }
}

/// The sections of a prompt: each stands in an element of its name, on lines of their own (agent-runtime 6.1).
fn sections(system: &str) -> Vec<NamedWeight> {
    let mut found = Vec::new();
    let mut rest = system;
    while let Some(name) =
        rest.trim_start().strip_prefix('<').and_then(|rest| rest.split_once('>')).map(|(name, _)| name)
    {
        let end = format!("\n</{name}>");
        let Some(at) = rest.find(&end) else { break };
        let (section, after) = rest.split_at(at + end.len());
        found.push(NamedWeight { name: name.to_owned(), weight: Weight::of(section.trim().len()) });
        rest = after;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weighed(headroom: u64, dropped: usize, notes: usize) -> ContextBudget {
        let counts = HistoryCounts {
            dropped_conversation_count: dropped,
            dropped_runtime_note_count: notes,
            ..HistoryCounts::default()
        };
        let history = HistoryWeight { counts, ..HistoryWeight::default() };
        ContextBudget { selection_headroom_tokens: headroom, history, ..ContextBudget::default() }
    }

    #[test]
    fn pressure_levels_reasons_and_tools_are_those_of_the_table() {
        type Case = (u64, usize, usize, Level, &'static [&'static str], &'static [&'static str]);
        let cases: [Case; 7] = [
            (1_200, 0, 0, Level::Low, &[], &[]),
            (1_199, 0, 0, Level::Moderate, &["narrow_headroom:1199"], &["retrieval_search"]),
            (400, 0, 0, Level::Moderate, &["narrow_headroom:400"], &["retrieval_search"]),
            (399, 0, 0, Level::High, &["low_headroom:399"], &["retrieval_search", "session_search_context"]),
            (
                9_000,
                2,
                0,
                Level::High,
                &["dropped_conversation:2"],
                &["session_search_context", "session_get_snapshot"],
            ),
            (9_000, 0, 3, Level::Moderate, &["dropped_runtime_notes:3"], &["session_get_trace", "shell_describe"]),
            (
                0,
                1,
                1,
                Level::High,
                &["low_headroom:0", "dropped_conversation:1", "dropped_runtime_notes:1"],
                &[
                    "retrieval_search",
                    "session_search_context",
                    "session_get_snapshot",
                    "session_get_trace",
                    "shell_describe",
                ],
            ),
        ];
        for (headroom, dropped, notes, level, reasons, tools) in cases {
            let pressure = weighed(headroom, dropped, notes).pressure();
            assert_eq!(pressure.level, level, "headroom {headroom}, dropped {dropped} and {notes}");
            assert_eq!(pressure.reasons, reasons);
            assert_eq!(pressure.recommended_tools, tools);
        }
    }

    #[test]
    fn the_model_is_told_at_256_tokens_or_when_anything_gave_way() {
        assert_eq!(weighed(257, 0, 0).told(), None);
        assert_eq!(weighed(256, 0, 0).told(), Some("tight"));
        assert_eq!(weighed(9_000, 0, 1).told(), Some("crowded"));
        assert_eq!(weighed(9_000, 1, 0).told(), Some("crowded"));
    }

    #[test]
    fn h38_a_budget_leaves_room_beside_the_prompt_and_the_message() {
        assert_eq!(budget(None, None, 0, 0), 16_000);
        assert_eq!(budget(None, Some(50_000), 0, 0), 25_000);
        assert_eq!(budget(Some(9_000), Some(50_000), 0, 0), 9_000);
        assert_eq!(budget(Some(100), None, 4_000, 400), 1_000 + 100 + 2_000);
    }

    #[test]
    fn the_parts_of_a_request_add_up() {
        let schema = serde_json::json!({"type": "object"});
        let spec = |name: &str, words: usize| ToolSpec {
            name: name.to_owned(),
            description: "x".repeat(words),
            input_schema: schema.clone(),
        };
        let tools = [spec("small", 10), spec("large", 4_000)];
        let system = "<bootstrap>\nYou.\n</bootstrap>\n<harness_appendix>\n- one <b>\n- two\n</harness_appendix>\n";
        let budget = ContextBudget::of(&BudgetInput {
            budget: 10_000,
            system,
            message: 400,
            history: HistoryCounts::default(),
            conversation: 4_000,
            tools: &tools,
        });
        assert_eq!(budget.estimated_selected_text_tokens, tokens(system.len()) + 100 + 1_000);
        assert_eq!(budget.selection_headroom_tokens, 10_000 - budget.estimated_selected_text_tokens);
        assert_eq!(budget.tools.top_schemas[0].name, "large");
        assert_eq!(
            budget.estimated_total_runtime_tokens,
            budget.estimated_selected_text_tokens + budget.estimated_tool_schema_tokens
        );
        let names: Vec<&str> = budget.system_prompt.sections.iter().map(|section| section.name.as_str()).collect();
        assert_eq!(names, ["bootstrap", "harness_appendix"]);
    }
}
