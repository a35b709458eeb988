//! An ask as a person reads it: facts in the order of tool-contract 13.4, the diff, the exact reach
//! of each suggested rule, and the commands that answer it.

use std::fmt::Write as _;

use portcullis_base::{ArtifactRef, Clock as _, Digest, SystemClock, Timestamp};
use portcullis_event::facts::Asked;
use portcullis_event::{Body, LOCAL_TENANT};
use portcullis_pipeline::ArtifactShelf;
use portcullis_store::{AskRow, Log as _};
use serde_json::{Value, json};

use crate::exit::{Ended, fault};
use crate::render::{self, BOLD, DIM, YELLOW, exact, styled};
use crate::world::{World, key};

/// Facts with a place and a label of their own; any other is shown under its own name.
const LABELS: &[(&str, &str)] = &[
    ("actions", "what"),
    ("cwd", "in"),
    ("resources", "touches"),
    ("input", "input"),
    ("project_scripts", "project scripts"),
    ("sandbox", "sandbox"),
    ("network", "network"),
    ("output_limit", "output limit"),
    ("risk", "risk"),
    ("reversible", "reversible"),
    ("reason", "asked because"),
    ("rule", "rule"),
];
/// Not facts of their own: the heading, and what is printed below.
const ELSEWHERE: &[&str] = &["tool", "diff", "tool_says"];
/// Characters of one fact.
const FACT_CHARS: usize = 2_000;

/// What the log asked, in place of what the row says of it: a row is a copy, and whoever answers must
/// see the question itself (S15).
pub async fn as_asked(world: &World, row: AskRow) -> anyhow::Result<AskRow> {
    let asked = question(world, &row).await?;
    let Asked { intent_id, kind, facts, pinned, input_hash, expires_at, definition_version, .. } = asked;
    Ok(AskRow { intent_id, kind, facts, pinned, input_hash, expires_at, definition_version, ..row })
}

/// The event that opened the ask.
async fn question(world: &World, row: &AskRow) -> anyhow::Result<Asked> {
    let events = world.store.read(key(row.session_id), row.asked_seq.saturating_sub(1), 1).await?;
    match events.first().map(portcullis_event::Event::body) {
        Some(Body::Asked(asked)) if asked.ask_id == row.ask_id => Ok(asked),
        _ => {
            let check = world.command(&format!("audit verify {}", row.session_id));
            let (ask, seq) = (row.ask_id, row.asked_seq);
            let text = format!("event {seq} of its log is not ask {ask}, so nobody can be shown what it asks: {check}");
            Err(fault(Ended::Broken, text))
        }
    }
}

/// The tool that would run.
pub fn tool(row: &AskRow) -> String {
    row.facts.get("tool").and_then(Value::as_str).map(|name| exact(name, FACT_CHARS)).unwrap_or_default()
}

/// What it would touch, on one line.
pub fn touches(row: &AskRow) -> String {
    row.facts.get("resources").map(resources).unwrap_or_default()
}

/// How long is left, and until when.
pub fn expiry(at: Timestamp) -> String {
    let left = at.since(SystemClock::new().now()).as_secs();
    match left {
        0 => format!("expired at {at}"),
        1..120 => format!("in {left} s ({at})"),
        120..7_200 => format!("in {} min ({at})", (left + 30) / 60),
        _ => format!("in {} h ({at})", (left + 1_800) / 3_600),
    }
}

/// The commands that go on.
fn commands(world: &World, row: &AskRow) -> [(&'static str, String); 3] {
    let ask = row.ask_id;
    [
        ("look at it", world.command(&format!("approvals show {ask}"))),
        ("allow once", world.command(&format!("approvals allow {ask}"))),
        ("refuse", world.command(&format!("approvals deny {ask}"))),
    ]
}

/// What `call` prints instead of a result.
pub fn waiting(world: &World, row: &AskRow) -> String {
    let mut text = format!("{} waits for an answer.\n", styled(BOLD, &tool(row)));
    for (name, label) in [("resources", "touches"), ("reason", "asked because")] {
        if let Some(value) = row.facts.get(name) {
            let _ = writeln!(text, "  {label}: {}", fact(name, value));
        }
    }
    let _ = writeln!(text, "  expires: {}", expiry(row.expires_at));
    for (label, command) in commands(world, row) {
        let _ = writeln!(text, "{label}: {command}");
    }
    text
}

/// The same for a program.
pub fn requires_action(world: &World, row: &AskRow) -> Value {
    let commands = commands(world, row).map(|(_, command)| command);
    json!({"requires_action": {
        "kind": row.kind,
        "ask_id": row.ask_id,
        "session_id": row.session_id,
        "intent_id": row.intent_id,
        "tool": row.facts.get("tool"),
        "pinned": row.pinned,
        "facts": row.facts,
        "expires_at": row.expires_at,
        "commands": commands,
    }})
}

/// The diff of an ask, as much of it as was kept.
pub struct Diff {
    text: String,
    bytes: u64,
    complete: bool,
}

/// The diff that an ask names, if it names one. Whoever cannot be shown it must not allow it.
pub async fn diff(world: &World, row: &AskRow) -> anyhow::Result<Option<Diff>> {
    let Some(named) = row.facts.get("diff").filter(|named| !named.is_null()) else { return Ok(None) };
    let cannot = |why: &dyn std::fmt::Display| {
        let ask = row.ask_id;
        fault(Ended::Broken, format!("the diff of ask {ask} cannot be opened, so nobody can allow it: {why}"))
    };
    let named = serde_json::from_value::<ArtifactRef>(named.clone()).map_err(|e| cannot(&e))?;
    let shelf = ArtifactShelf::new(world.store.clone(), world.artifacts().map_err(|e| cannot(&e))?, LOCAL_TENANT);
    let (kept, window) = shelf.open(named.id, Some(row.session_id)).await.map_err(|e| cannot(&e))?;
    let bytes = window.slice(0, window.len()).map_err(|e| cannot(&e))?;
    if Digest::of(&bytes) != named.sha256 {
        return Err(cannot(&"what is kept is not what was asked"));
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(Some(Diff { text, bytes: bytes.len() as u64, complete: named.complete && kept.complete }))
}

impl Diff {
    fn shown(&self) -> String {
        let text = render::diff(&self.text);
        if self.complete {
            return text;
        }
        let words = format!("the diff is CUT: only its first {} bytes are shown, the call changes more", self.bytes);
        let cut = styled(YELLOW.bold(), &words);
        format!("{cut}\n{text}{cut}\n")
    }
}

/// An ask with everything that belongs to it.
pub struct Whole {
    pub row: AskRow,
    pub asked: Asked,
    /// Or why it cannot be opened.
    pub diff: Result<Option<Diff>, anyhow::Error>,
}

impl Whole {
    /// Reads what the row does not hold: the suggested rules and the diff.
    pub async fn load(world: &World, row: AskRow) -> anyhow::Result<Self> {
        let asked = question(world, &row).await?;
        let diff = diff(world, &row).await;
        Ok(Self { row, asked, diff })
    }

    /// For a program.
    pub fn document(&self) -> anyhow::Result<Value> {
        let mut value = serde_json::to_value(&self.row)?;
        value["suggested_rules"] = json!(self.asked.suggested_rules);
        match &self.diff {
            Ok(diff) => {
                value["diff_text"] = json!(diff.as_ref().map(|diff| &diff.text));
                value["diff_complete"] = json!(diff.as_ref().map(|diff| diff.complete));
            }
            Err(error) => value["diff_error"] = json!(error.to_string()),
        }
        Ok(value)
    }

    /// For a person. Without `commands` where a key answers.
    pub fn text(&self, world: &World, with_commands: bool) -> String {
        let row = &self.row;
        let mut text = format!("{} {}\n", styled(BOLD, &tool(row)), styled(DIM, &row.ask_id.to_string()));
        let mut line = |label: &str, value: &str| {
            let _ = writeln!(text, "{}", format!("  {label:<16}{value}").trim_end());
        };
        line("state", &render::word(&row.state));
        line("session", &row.session_id.to_string());
        for (name, label) in LABELS {
            if let Some(value) = row.facts.get(*name) {
                line(label, &fact(name, value));
            }
        }
        for (name, value) in row.facts.as_object().into_iter().flatten() {
            let placed = LABELS.iter().any(|(known, _)| known == name) || ELSEWHERE.contains(&name.as_str());
            if !placed {
                line(&exact(name, 40), &fact(name, value));
            }
        }
        if let Some(said) = row.facts.get("tool_says") {
            line("the tool says", "");
            match said.as_object() {
                Some(all) => all.iter().for_each(|(name, value)| {
                    line("", &format!("{}: {}", exact(name, 40), fact("tool_says", value)));
                }),
                None => line("", &fact("tool_says", said)),
            }
        }
        if row.pinned {
            line("pinned", "every call asks; no remembered allow answers it");
        }
        line("expires", &expiry(row.expires_at));
        match &self.diff {
            Ok(None) => {}
            Ok(Some(diff)) => {
                let _ = write!(text, "\n{}", diff.shown());
            }
            Err(error) => {
                let _ = writeln!(text, "\n{}", styled(YELLOW.bold(), &exact(&error.to_string(), FACT_CHARS)));
            }
        }
        for rule in &self.asked.suggested_rules {
            text.push_str(&suggestion(rule));
        }
        if with_commands && row.state == portcullis_event::AskState::Pending {
            text.push('\n');
            for (label, command) in commands(world, row).into_iter().skip(1) {
                let _ = writeln!(text, "{label}: {command}");
            }
            if self.asked.grantable.is_some() {
                let allow = world.command(&format!("approvals allow {}", row.ask_id));
                let _ = writeln!(text, "remember the rule: {allow} --session | --save [--expires 7d]");
            }
        }
        text
    }
}

pub fn suggestion(rule: &Value) -> String {
    let list = |name: &str| {
        let all = rule.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        exact(&all.collect::<Vec<_>>().join(", "), FACT_CHARS)
    };
    let reach = rule.get("reach").and_then(Value::as_str).unwrap_or_default();
    let mut text = format!("\na rule would settle this for good: allow {}\n", exact(reach, FACT_CHARS));
    let _ = writeln!(text, "  would allow: {}", list("would_allow"));
    let not = list("would_not_allow");
    if !not.is_empty() {
        let _ = writeln!(text, "  would not allow: {not}");
    }
    text
}

fn resources(value: &Value) -> String {
    let named = value.as_array().into_iter().flatten().map(|resource| {
        let part = |name: &str| resource.get(name).and_then(Value::as_str).unwrap_or_default();
        let (kind, name, raw) = (part("kind"), part("name"), part("as_written"));
        if raw == name || raw.is_empty() {
            format!("{kind} {name}")
        } else {
            format!("{kind} {name} (written as {raw})")
        }
    });
    exact(&named.collect::<Vec<_>>().join(", "), FACT_CHARS)
}

/// One fact in words.
fn fact(name: &str, value: &Value) -> String {
    let flag = |yes: &str, no: &str| match value {
        Value::Bool(true) => yes.to_owned(),
        _ => no.to_owned(),
    };
    match name {
        "resources" => resources(value),
        "project_scripts" => flag(&styled(YELLOW, "may run"), "cannot run"),
        "reversible" => flag("yes", &styled(YELLOW, "no")),
        "rule" => rule(value),
        "cwd" if value.is_null() => "/workspace".to_owned(),
        _ => match value {
            Value::String(text) => exact(text, FACT_CHARS),
            Value::Array(all) if all.iter().all(Value::is_string) => {
                let words: Vec<&str> = all.iter().filter_map(Value::as_str).collect();
                exact(&words.join(", "), FACT_CHARS)
            }
            other => exact(&other.to_string(), FACT_CHARS),
        },
    }
}

/// The rule that asked, with file and line.
fn rule(value: &Value) -> String {
    let id = value.get("id").and_then(Value::as_str).unwrap_or("none");
    let place = value.get("source").and_then(|source| {
        let file = source.get("file")?.as_str()?;
        Some(format!("{file}:{}", source.get("line")?))
    });
    match place {
        Some(place) => exact(&format!("{id} ({place})"), FACT_CHARS),
        None => exact(id, FACT_CHARS),
    }
}
