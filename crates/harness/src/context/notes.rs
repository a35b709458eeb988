//! The automatic notes of a wake: one table, in the order of agent-runtime 6.7.
//!
//! A note holds runtime facts: types, ids, codes, counts, names we minted, and the tool to read more with. None quotes what
//! a tool, a page or a file said (L67).

use std::fmt::Write as _;

use portcullis_base::InvocationId;

use super::budget::ContextBudget;
use super::quoted;
use crate::SuggestedCall;

/// Every tag, in the order in which their notes stand.
pub const TAGS: [&str; 12] = [
    "outcome-repair",
    "promotion-gate",
    "outcome-trend",
    "setup-drift",
    "shell-busy",
    "read-first",
    "skill-candidate",
    "session-candidate",
    "retrieval-plan",
    "retrieval-candidate",
    "context-pressure",
    "crash-recovery",
];

/// The facts that the notes of this crate are made of.
pub(crate) struct NoteFacts<'a> {
    /// The look that answers what a person said, if a tool of the menu takes it.
    pub(crate) look: Option<&'a SuggestedCall>,
    /// Something waits for an answer.
    pub(crate) waits: bool,
    pub(crate) budget: &'a ContextBudget,
    /// Calls whose end nobody knows, where this wake goes on with what a dead process left.
    pub(crate) unknown: &'a [InvocationId],
    /// The tool of the menu that describes the context, if there is one.
    pub(crate) context_tool: Option<&'a str>,
}

/// All notes of a wake, in their order. `others` come from those who know more (`Extras`).
pub(crate) fn notes(facts: &NoteFacts<'_>, others: Vec<String>) -> Vec<String> {
    let busy = others.iter().any(|note| tag_of(note) == Some("shell-busy"));
    let look = facts.look.filter(|_| !busy && !facts.waits).map(read_first);
    let own = [look, pressure(facts), recovery(facts.unknown)];
    // A note is one line, whatever made it.
    let others = others.iter().map(|note| quoted::in_line(note));
    let mut all: Vec<String> = others.chain(own.into_iter().flatten()).collect();
    // Stable: several notes of one tag stay as they came. A tag that nobody knows stands last.
    all.sort_by_key(|note| {
        tag_of(note).and_then(|tag| TAGS.iter().position(|known| *known == tag)).unwrap_or(TAGS.len())
    });
    all
}

/// The tag that a note begins with.
fn tag_of(note: &str) -> Option<&str> {
    note.strip_prefix('[')?.split_once(']').map(|(tag, _)| tag)
}

fn read_first(SuggestedCall { intent, tool, input }: &SuggestedCall) -> String {
    format!("[read-first] intent={intent} nextTool={tool} nextArgs={}", quoted::value(input))
}

fn pressure(facts: &NoteFacts<'_>) -> Option<String> {
    let word = facts.budget.told()?;
    let counts = &facts.budget.history.counts;
    let mut note = format!(
        "[context-pressure] pressure={word} headroom={} budget={} droppedConversation={} droppedRuntimeNotes={}",
        facts.budget.selection_headroom_tokens,
        facts.budget.context_selection_budget_tokens,
        counts.dropped_conversation_count,
        counts.dropped_runtime_note_count,
    );
    if let Some(tool) = facts.context_tool {
        let _ = write!(note, " nextTool={tool}");
    }
    Some(note)
}

fn recovery(unknown: &[InvocationId]) -> Option<String> {
    if unknown.is_empty() {
        return None;
    }
    let mut note = "[crash-recovery] the process that worked on this ended in the middle; these calls had begun, and \
                    nobody knows how they ended:"
        .to_owned();
    for invocation in unknown {
        let _ = write!(note, " {invocation}");
    }
    Some(note)
}

#[cfg(test)]
mod tests {
    use super::super::budget::{HistoryCounts, HistoryWeight};
    use super::*;

    fn budget(headroom: u64, dropped: usize) -> ContextBudget {
        let counts = HistoryCounts { dropped_conversation_count: dropped, ..HistoryCounts::default() };
        let history = HistoryWeight { counts, ..HistoryWeight::default() };
        ContextBudget { selection_headroom_tokens: headroom, history, ..ContextBudget::default() }
    }

    fn look() -> SuggestedCall {
        SuggestedCall { intent: "file_read", tool: "look", input: serde_json::json!({"path": "src/main.rs"}) }
    }

    fn facts<'a>(
        look: Option<&'a SuggestedCall>,
        budget: &'a ContextBudget,
        unknown: &'a [InvocationId],
    ) -> NoteFacts<'a> {
        NoteFacts { look, waits: false, budget, unknown, context_tool: Some("describe") }
    }

    fn tags(notes: &[String]) -> Vec<&str> {
        notes.iter().map(|note| tag_of(note).expect("a tag")).collect()
    }

    #[test]
    fn notes_stand_in_the_order_of_the_table_whoever_made_them() {
        let (budget, unknown) = (budget(0, 1), [InvocationId::from_u128(7)]);
        let others = [
            "[retrieval-candidate] b",
            "[outcome-repair] status=blocked",
            "[setup-drift] x",
            "[retrieval-candidate] a",
        ];
        let all = notes(&facts(Some(&look()), &budget, &unknown), others.map(str::to_owned).to_vec());
        let order = ["outcome-repair", "setup-drift", "read-first", "retrieval-candidate", "retrieval-candidate"];
        assert_eq!(tags(&all), [&order[..], &["context-pressure", "crash-recovery"]].concat());
        assert_eq!(all[3], "[retrieval-candidate] b", "several of one tag stay as they came");
    }

    #[test]
    fn context_pressure_says_how_much_and_where_to_look() {
        let (tight, crowded, wide) = (budget(256, 0), budget(5_000, 3), budget(257, 0));
        let note = notes(&facts(None, &tight, &[]), Vec::new());
        assert!(note[0].starts_with("[context-pressure] pressure=tight headroom=256"), "{note:?}");
        let note = notes(&facts(None, &crowded, &[]), Vec::new());
        assert!(note[0].contains("pressure=crowded") && note[0].contains("droppedConversation=3"), "{note:?}");
        assert!(note[0].ends_with("nextTool=describe"), "{note:?}");
        assert!(notes(&facts(None, &wide, &[]), Vec::new()).is_empty());
        let unoffered = NoteFacts { context_tool: None, ..facts(None, &tight, &[]) };
        assert!(!notes(&unoffered, Vec::new())[0].contains("nextTool"), "a tool that is not there is not named");
    }

    #[test]
    fn a_hint_gives_way_to_a_busy_shell_and_to_what_waits() {
        let wide = budget(5_000, 0);
        let look = look();
        let asked = || facts(Some(&look), &wide, &[]);
        let hint = notes(&asked(), Vec::new());
        assert_eq!(hint, [r#"[read-first] intent=file_read nextTool=look nextArgs={"path":"src/main.rs"}"#]);
        assert_eq!(tags(&notes(&asked(), vec!["[shell-busy] shell=x".to_owned()])), ["shell-busy"]);
        assert!(notes(&NoteFacts { waits: true, ..asked() }, Vec::new()).is_empty());
    }

    #[test]
    fn h36_crash_recovery_lists_calls_by_their_ids_alone() {
        let wide = budget(5_000, 0);
        let ids = [InvocationId::from_u128(7), InvocationId::from_u128(8)];
        let all = notes(&facts(None, &wide, &ids), Vec::new());
        assert!(ids.iter().all(|id| all[0].contains(&id.to_string())), "{all:?}");
    }
}
