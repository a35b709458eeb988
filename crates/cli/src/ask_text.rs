//! The text of an ask: what would happen first, then the facts by which a person judges it.

use std::fmt::Write as _;

use portcullis::AskRow;
use portcullis::operations::ask_words::{
    self, NAME_CHARS, TouchedView, added, command, command_of, expiry, fact_name, folder, input, session, standing,
    suggestion, tool, unsaid,
};
use portcullis_terminal::render::{self, BOLD, DIM, YELLOW, exact, styled};
use serde_json::Value;

use crate::ask_view::{ShownAsk, changes};
use crate::hints;

/// How much of an ask is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskDetail {
    /// Everything that would happen, and the facts that differ from ask to ask.
    Short,
    Whole,
}

/// Facts with a place and a label of their own; any other is shown under its own name.
const LABELS: &[(&str, &str)] = &[
    ("actions", "what"),
    ("cwd", "in the sandbox"),
    ("input", "input"),
    ("resources", "touches"),
    ("project_scripts", "scripts"),
    ("sandbox", "sandbox"),
    ("network", "network"),
    ("output_limit", "output limit"),
    ("risk", "risk"),
    ("reversible", "reversible"),
    ("since_last_answer", "appeared"),
    ("reason", "asked because"),
    ("rule", "rule"),
];
/// Not facts of their own: the heading, and what is printed below.
const ELSEWHERE: &[&str] = &["tool", "diff", "tool_says", "runs_with"];
/// What surrounds the call, and what its tool says of it.
pub const SAID: [(&str, &str); 2] = [("runs_with", "runs with"), ("tool_says", "the tool says")];
/// What an answer to an ask can do whose rules have changed.
const OUTDATED: &str =
    "the rules changed after this was asked: an allow would be void and run nothing; make the call again";

/// One fact in words, with what is to be minded in colour.
pub fn fact(name: &str, value: &Value) -> String {
    let words = ask_words::fact(name, value);
    match (name, value) {
        ("project_scripts", Value::Bool(true)) => styled(YELLOW, &words),
        ("reversible", value) if *value != Value::Bool(true) => styled(YELLOW, &words),
        // The list may hold the newest alone.
        ("since_last_answer", _) => format!("{words} ({})", hints::ALL_WARNINGS),
        _ => words,
    }
}

/// Where a rule that reaches further is written.
const WIDER: &str = "a wider rule is yours to write: in ~/.config/portcullis/config.toml, with path = \"/workspace/**\" or \
                     argv = [\"npm\", \"test\"]\n";

/// The lines of a fact that holds others.
pub fn said(row: &AskRow, name: &str) -> Vec<String> {
    match row.facts.get(name) {
        None => Vec::new(),
        Some(Value::Object(all)) => {
            all.iter().map(|(name, value)| format!("{}: {}", fact_name(name), fact("", value))).collect()
        }
        Some(other) => vec![fact("", other)],
    }
}

/// Whether a fact says what it says in nearly every ask, or what another line of the short text says.
fn goes_without_saying(name: &str, value: &Value, row: &AskRow) -> bool {
    let words = value.as_str().unwrap_or_default();
    match name {
        "actions" => value.as_array().into_iter().flatten().all(|action| Some(action) == row.facts.get("tool")),
        "sandbox" => words.starts_with("none needed") || words.contains("isolation level full") && !words.contains(';'),
        "project_scripts" => *value == Value::Bool(false),
        "cwd" | "output_limit" | "rule" => true,
        _ => false,
    }
}

impl ShownAsk {
    /// For a person.
    pub fn text(&self, detail: AskDetail) -> String {
        let row = &self.0.ask.row;
        let (short, pending) = (detail == AskDetail::Short, self.0.ask.is_pending());
        let mut text = format!("{} {}\n", styled(BOLD, &tool(row)), styled(DIM, &row.ask_id.to_string()));
        let null = Value::Null;
        let given = row.facts.get("input").unwrap_or(&null);
        let (line, others) =
            command_of(given).map_or((None, Some(given.clone())), |(line, others)| (Some(line), others));
        text.push_str(&line.map(command).unwrap_or_default());
        match &self.0.diff {
            Ok(diff) => text.push_str(&diff.as_deref().map(changes).unwrap_or_default()),
            Err(error) => {
                let words = exact(&hints::explained_causes(error), NAME_CHARS);
                let _ = writeln!(text, "  {}", styled(YELLOW.bold(), &words));
            }
        }
        let mut line_of = |label: &str, value: &str| {
            let _ = writeln!(text, "{}", format!("  {label:<15} {value}").trim_end());
        };
        if self.0.outdated {
            line_of("", &styled(YELLOW.bold(), OUTDATED));
        }
        let added = self.0.diff.as_ref().ok().and_then(Option::as_deref).map(added).unwrap_or_default();
        let resources = row.facts.get("resources").unwrap_or(&null);
        let unsaid = unsaid(line.unwrap_or_default(), resources);
        let count = |all: &Value| all.as_array().map_or(0, Vec::len) as u64;
        let said_above = count(resources) - count(&unsaid);
        let mut touched = TouchedView::of(&unsaid, given);
        if !short && said_above > 0 {
            let more = if touched.few.is_empty() { "" } else { ", " };
            let commands = render::count(said_above, "command");
            touched.few = format!("{commands} that the line above shows{more}{}", touched.few);
        }
        for (name, label) in LABELS {
            if *name == "cwd" {
                line_of("in", &folder(&self.0.ask));
            }
            match (*name, row.facts.get(*name)) {
                (_, None) => {}
                (name, Some(value)) if short && goes_without_saying(name, value, row) => {}
                ("input", Some(_)) => others.iter().for_each(|others| line_of(label, &input(others, &added))),
                ("resources", Some(_)) if touched.few.is_empty() => {}
                ("resources", Some(_)) => line_of(label, &touched.few),
                (name, Some(value)) => line_of(label, &fact(name, value)),
            }
        }
        for (name, value) in row.facts.as_object().into_iter().flatten() {
            let placed = LABELS.iter().any(|(known, _)| known == name) || ELSEWHERE.contains(&name.as_str());
            if !placed {
                line_of(&exact(name, 40), &fact(name, value));
            }
        }
        for (name, label) in SAID {
            said(row, name).iter().enumerate().for_each(|(at, one)| line_of(if at == 0 { label } else { "" }, one));
        }
        if row.pinned && !short {
            line_of("pinned", "every call asks; no remembered allow answers it");
        }
        let by_default = row.facts.pointer("/rule/id").and_then(Value::as_str).is_none_or(|id| id.contains(':'));
        if pending && self.0.asked.only_a_person {
            line_of("only once", "it may hide a command that a rule denies, so a person looks at each such line");
        } else if pending && self.0.asked.grantable.is_none() && by_default {
            line_of("only once", "no rule can be offered that would allow exactly this and nothing else");
        }
        if !short {
            line_of("session", &session(row));
        }
        match pending {
            true => line_of("expires", &expiry(row.expires_at)),
            false => line_of("state", &standing(row)),
        }
        if let Some(all) = touched.all {
            line_of("touches in all", &all);
        }
        for rule in self.0.asked.suggested_rules.iter().filter(|_| pending && !short) {
            text.push_str(&suggestion("a rule would settle this for good", rule));
        }
        if pending && !short && self.0.asked.grantable.is_some() {
            text.push_str(WIDER);
        }
        text
    }
}
