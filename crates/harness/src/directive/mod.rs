//! The loop directive: what the model wants to happen after a wake (agent-runtime 5.5).
//!
//! It comes as a block at the end of a reply ([`read`]) or as a call of a tool that ends the wake ([`terminal_tool`], H30).
//! It is a wish: whatever of a block is not as the table says is left out, and nothing of it is an error.

mod block;
mod terminal;

use portcullis_event::facts::{LearningKind, LoopOutcome, Priority};
use serde_json::{Map, Value, json};

pub use block::read;
pub(crate) use terminal::called;
pub use terminal::{TOOL, terminal_tool};

/// Queued wakes and learnings that are accepted of one directive; more are passed over.
pub const WAKES_MAX: usize = 3;
pub const LEARNINGS_MAX: usize = 3;

/// The longest wait that a model can ask for: a day. Longer ones are that long, since a time must be possible.
pub const DELAY_MAX_SECS: u64 = 86_400;

/// Characters of a learning's title and detail.
pub const TITLE_MAX: usize = 120;
pub const DETAIL_MAX: usize = 400;

/// Characters of a summary that is taken from the reply itself.
pub const FALLBACK_MAX: usize = 220;

/// Characters of a summary, reason or note that the model wrote, of a name, and of a key: each is kept in an event and
/// shown in lists.
const LINE_MAX: usize = 500;
const NAME_MAX: usize = 200;

/// Claims that are taken from one directive.
const CLAIMS_MAX: usize = 32;

/// What the keys of the runtime's own wakes begin with. A model's wake that bore one would be taken for it.
const OWN_KEYS: [&str; 3] = ["retry:", "follow-up:", "carry-on:"];

const NO_CONTENT: &str = "No response content was produced.";

/// A wake that the model wants, so many seconds after this one began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WakeWish {
    pub reason: String,
    pub delay_secs: u64,
    pub note: Option<String>,
    pub dedupe_key: Option<String>,
    pub priority: Priority,
}

/// Something the model learnt and wants kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Learning {
    pub kind: LearningKind,
    pub title: String,
    pub detail: String,
    pub promote_to_memory: bool,
    pub dedupe_key: Option<String>,
}

/// A custom tool that the model wants called (agent-runtime 7.13).
#[derive(Debug, Clone, PartialEq)]
pub struct CustomWanted {
    pub name: String,
    /// Always an object.
    pub input: Value,
}

/// What the model wants to happen after a wake.
#[derive(Debug, Clone, PartialEq)]
pub struct Directive {
    pub outcome: LoopOutcome,
    pub summary: String,
    /// Seconds until the follow-up, of a `continue` that names them.
    pub follow_up: Option<u64>,
    pub queued_wakes: Vec<WakeWish>,
    pub learnings: Vec<Learning>,
    pub custom: Option<CustomWanted>,
    /// What the model says it did, for the fact-check (tool-contract §24).
    pub claims: Vec<String>,
}

impl Directive {
    /// What a reply without a directive comes to (H31).
    #[must_use]
    pub fn none(reply: &str) -> Self {
        Self {
            outcome: LoopOutcome::Sleep,
            summary: summary_of(reply),
            follow_up: None,
            queued_wakes: Vec::new(),
            learnings: Vec::new(),
            custom: None,
            claims: Vec::new(),
        }
    }
}

impl Directive {
    /// The same with every text masked. What a block says is known only when it is decoded: an escape can hide a secret
    /// from the code that masked the reply (L69).
    #[must_use]
    pub(crate) fn masked(mut self, mask: impl Fn(&str) -> String) -> Self {
        let over = |text: &mut String| *text = mask(text);
        let maybe = |text: &mut Option<String>| text.iter_mut().for_each(over);
        over(&mut self.summary);
        self.claims.iter_mut().for_each(over);
        for wake in &mut self.queued_wakes {
            over(&mut wake.reason);
            maybe(&mut wake.note);
            maybe(&mut wake.dedupe_key);
        }
        for learnt in &mut self.learnings {
            over(&mut learnt.title);
            over(&mut learnt.detail);
            maybe(&mut learnt.dedupe_key);
        }
        if let Some(custom) = &mut self.custom {
            over(&mut custom.name);
            // Invariant: a mask has no character that JSON writes otherwise.
            custom.input = serde_json::from_str(&mask(&custom.input.to_string())).unwrap_or_default();
        }
        self
    }
}

/// Reads the fields of a directive. `reply` is the visible text, which stands in for a summary that is missing.
#[must_use]
pub fn from_input(input: &Value, reply: &str) -> Directive {
    let Some(fields) = input.as_object() else { return Directive::none(reply) };
    let outcome = match text(fields, "outcome") {
        Some("continue") => LoopOutcome::Continue,
        _ => LoopOutcome::Sleep,
    };
    Directive {
        outcome,
        summary: line(fields, "summary").unwrap_or_else(|| summary_of(reply)),
        follow_up: match outcome {
            LoopOutcome::Continue => seconds(fields, "followUpSeconds"),
            LoopOutcome::Sleep => None,
        },
        queued_wakes: list(fields, "queuedWakes").filter_map(wanted).take(WAKES_MAX).collect(),
        learnings: list(fields, "learnings").filter_map(learnt).take(LEARNINGS_MAX).collect(),
        custom: fields.get("customToolRequest").and_then(Value::as_object).and_then(custom),
        claims: fields
            .get("claims")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(|claim| cut(&collapsed(claim), LINE_MAX))
            .filter(|claim| !claim.is_empty())
            .take(CLAIMS_MAX)
            .collect(),
    }
}

/// The schema of the terminal tool that takes a directive (H30).
#[must_use]
pub fn schema() -> Value {
    let string = || json!({"type": "string"});
    json!({
        "type": "object",
        "properties": {
            "outcome": {"type": "string", "enum": ["sleep", "continue"],
                "description": "sleep: wait for new input. continue: wake again by yourself."},
            "summary": {"type": "string", "description": "One line on what this wake came to; it is kept."},
            "followUpSeconds": {"type": ["number", "null"], "exclusiveMinimum": 0,
                "description": "With continue: how long to wait. Default: the heartbeat."},
            "queuedWakes": {"type": "array", "maxItems": WAKES_MAX, "items": {
                "type": "object",
                "properties": {
                    "reason": {"type": "string", "minLength": 1},
                    "delaySeconds": {"type": "number", "exclusiveMinimum": 0, "maximum": DELAY_MAX_SECS},
                    "note": string(),
                    "dedupeKey": {"type": "string", "description": "While a wake with this key waits, no second one is made."},
                    "priority": {"type": "string", "enum": ["low", "normal", "high"]},
                },
                "required": ["reason", "delaySeconds"],
            }},
            "learnings": {"type": "array", "maxItems": LEARNINGS_MAX, "items": {
                "type": "object",
                "properties": {
                    "kind": {"type": "string", "enum": ["lesson", "correction", "error"]},
                    "title": {"type": "string", "minLength": 1, "maxLength": TITLE_MAX},
                    "detail": {"type": "string", "minLength": 1, "maxLength": DETAIL_MAX},
                    "promoteToMemory": {"type": "boolean"},
                    "dedupeKey": string(),
                },
                "required": ["title", "detail"],
            }},
            "customToolRequest": {
                "type": "object",
                "properties": {"name": {"type": "string", "minLength": 1}, "input": {"type": "object"}},
                "required": ["name"],
            },
            "claims": {"type": "array", "items": string(),
                "description": "What you did, one short sentence each. They are compared with the facts."},
        },
        "required": ["outcome", "summary"],
    })
}

/// What comes after a wake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// Until something happens. `enforced`: the model wanted to go on, too often in a row (H32).
    Sleep { enforced: bool },
    /// A follow-up, so long after this wake began.
    Continue { delay_secs: u64 },
}

/// What comes after a wake, if `consecutive` wakes before it wanted to go on, one after another.
#[must_use]
pub fn after(directive: &Directive, consecutive: u32, max: u32, heartbeat_secs: u64) -> After {
    match directive.outcome {
        LoopOutcome::Sleep => After::Sleep { enforced: false },
        LoopOutcome::Continue if consecutive >= max => After::Sleep { enforced: true },
        LoopOutcome::Continue => After::Continue { delay_secs: directive.follow_up.unwrap_or(heartbeat_secs).max(1) },
    }
}

/// The first words of a reply, in one line.
#[must_use]
pub fn summary_of(reply: &str) -> String {
    let summary: String = collapsed(reply).chars().take(FALLBACK_MAX).collect();
    let summary = summary.trim_end();
    if summary.is_empty() { NO_CONTENT.to_owned() } else { summary.to_owned() }
}

fn wanted(fields: &Map<String, Value>) -> Option<WakeWish> {
    Some(WakeWish {
        reason: line(fields, "reason")?,
        delay_secs: seconds(fields, "delaySeconds")?,
        note: line(fields, "note"),
        dedupe_key: key(fields).filter(|key| !OWN_KEYS.iter().any(|own| key.starts_with(own))),
        priority: match text(fields, "priority") {
            Some("low") => Priority::Low,
            Some("high") => Priority::High,
            _ => Priority::Normal,
        },
    })
}

fn learnt(fields: &Map<String, Value>) -> Option<Learning> {
    Some(Learning {
        kind: match text(fields, "kind") {
            Some("correction") => LearningKind::Correction,
            Some("error") => LearningKind::Error,
            _ => LearningKind::Lesson,
        },
        title: cut(text(fields, "title")?, TITLE_MAX),
        detail: cut(text(fields, "detail")?, DETAIL_MAX),
        promote_to_memory: fields.get("promoteToMemory").and_then(Value::as_bool).unwrap_or(false),
        dedupe_key: key(fields),
    })
}

fn custom(fields: &Map<String, Value>) -> Option<CustomWanted> {
    let input = fields.get("input").filter(|input| input.is_object()).cloned();
    // A name is never cut: it would be another tool's.
    let name = text(fields, "name").filter(|name| name.chars().count() <= NAME_MAX)?;
    Some(CustomWanted { name: name.to_owned(), input: input.unwrap_or_else(|| json!({})) })
}

fn list<'v>(fields: &'v Map<String, Value>, name: &str) -> impl Iterator<Item = &'v Map<String, Value>> {
    fields.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

/// A string that says something.
fn text<'v>(fields: &'v Map<String, Value>, name: &str) -> Option<&'v str> {
    fields.get(name)?.as_str().map(str::trim).filter(|text| !text.is_empty())
}

fn line(fields: &Map<String, Value>, name: &str) -> Option<String> {
    Some(cut(&collapsed(text(fields, name)?), LINE_MAX))
}

fn key(fields: &Map<String, Value>) -> Option<String> {
    Some(text(fields, "dedupeKey")?.chars().take(NAME_MAX).collect())
}

/// A number of seconds above nothing, in whole ones, between one second and a day.
fn seconds(fields: &Map<String, Value>, name: &str) -> Option<u64> {
    let seconds = fields.get(name)?.as_f64().filter(|seconds| *seconds > 0.0)?;
    // A float beyond the range becomes the end of it, which is what a bound wants.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "floored on purpose; positive")]
    let whole = seconds.floor() as u64;
    Some(whole.clamp(1, DELAY_MAX_SECS))
}

fn collapsed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// At most `max` characters; the last three of what was cut are dots.
fn cut(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    let mut out: String = text.chars().take(max - 3).collect();
    out.push_str("...");
    out
}
