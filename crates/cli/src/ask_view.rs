//! An ask as a person reads it: what would run and where, its input, the other facts of tool-contract 13.4, the diff, the
//! exact reach of each suggested rule, and the commands that answer it.

use std::fmt::Write as _;

use portcullis::AskRow;
use portcullis::operations::ask_words::{
    NAME_CHARS, TouchedView, command, command_of, expiry, folder, is_long, session, tool, unsaid,
};
use portcullis::operations::{AskView, WholeAsk};
use portcullis_terminal::choice::{Choice, Chooser};
use portcullis_terminal::pages::{Pages, Size};
use portcullis_terminal::render::{self, BOLD, exact, styled};
use portcullis_terminal::rows::BAR;
use serde_json::{Value, json};

use crate::approvals::ROLE;
use crate::ask;
use crate::ask_text::{AskDetail, SAID, fact, said};
use crate::hints;
use crate::run::words;
use crate::world::World;

/// The call that would run: its tool and what it is about.
pub fn call(facts: &Value) -> String {
    let input = facts.get("input").map(Value::to_string).unwrap_or_default();
    let tool = facts.get("tool").and_then(Value::as_str).unwrap_or_default();
    let resource = || facts.pointer("/resources/0/as_written").and_then(Value::as_str);
    match words::titled(tool, &input) {
        named if named == tool => format!("{tool} {}", resource().unwrap_or_default()).trim_end().to_owned(),
        named => named,
    }
}

/// The same on one line, as it stands below each page.
pub fn about(row: &AskRow) -> String {
    exact(&call(&row.facts).replace('\n', "⏎"), NAME_CHARS)
}

/// The commands that go on.
fn commands(world: &World, ask: &AskView) -> [(&'static str, String); 3] {
    let ask = ask.row.ask_id;
    [
        ("look at it", world.command(&format!("approvals show {ask}"))),
        ("allow once", world.command(&format!("approvals allow {ask}"))),
        ("refuse", world.command(&format!("approvals deny {ask}"))),
    ]
}

/// Lines of a diff that stand in the ask itself; `approvals show` has all of them.
const DIFF_LINES: usize = 20;
/// Characters of one such line.
const DIFF_CHARS: usize = 200;

/// What `call` prints instead of a result.
pub async fn waiting(world: &World, ask: &AskView) -> String {
    let row = &ask.row;
    let mut text = format!("{} waits for an answer.\n", styled(BOLD, &tool(row)));
    let null = Value::Null;
    let given = row.facts.get("input").unwrap_or(&null);
    let changes = match world.archive.diff(row).await {
        Ok(None) => None,
        Ok(Some(diff)) => Some(beginning(&diff)),
        Err(error) => Some(format!("  {}\n", exact(&hints::explained_causes(&error), NAME_CHARS))),
    };
    let line = command_of(given);
    if let Some(changes) = &changes {
        text.push_str(changes);
    } else if let Some((line, _)) = &line {
        text.push_str(&command(line));
    } else if given.as_object().into_iter().flatten().any(|(_, value)| value.as_str().is_some_and(is_long)) {
        let _ = writeln!(text, "  input: {}", fact("input", given));
    }
    let resources = row.facts.get("resources").unwrap_or(&null);
    let TouchedView { few, all } = TouchedView::of(&unsaid(line.map_or("", |(line, _)| line), resources), given);
    if !few.is_empty() {
        let _ = writeln!(text, "  touches: {}", all.unwrap_or(few));
    }
    for (name, label) in SAID {
        for line in said(row, name) {
            let _ = writeln!(text, "  {label}: {line}");
        }
    }
    if let Some(value) = row.facts.get("since_last_answer") {
        let _ = writeln!(text, "  appeared since the last answer: {}", fact("since_last_answer", value));
    }
    if let Some(value) = row.facts.get("reason") {
        let _ = writeln!(text, "  asked because: {}", fact("reason", value));
    }
    let _ = writeln!(text, "  in: {} (session {})", folder(ask), session(row));
    let _ = writeln!(text, "  expires: {}", expiry(row.expires_at));
    for (label, command) in commands(world, ask) {
        let _ = writeln!(text, "{label}: {command}");
    }
    text
}

/// A diff in lines that are the call's.
pub fn changes(diff: &str) -> String {
    render::diff(diff).lines().map(|line| format!("  {BAR}{line}\n")).collect()
}

/// The first lines of a diff, and how many there are.
fn beginning(diff: &str) -> String {
    let all = diff.lines().count();
    let few = diff.lines().take(DIFF_LINES);
    let cut = few.map(|line| match line.char_indices().nth(DIFF_CHARS) {
        Some((at, _)) => format!("{}… ({} characters)\n", &line[..at], line.chars().count()),
        None => format!("{line}\n"),
    });
    let mut text = format!("  would change:\n{}", changes(&cut.collect::<String>()));
    if all > DIFF_LINES {
        let _ = writeln!(text, "  the first {DIFF_LINES} of {all} lines; `look at it` below shows all of them");
    }
    text
}

/// The same for a program.
pub fn requires_action(world: &World, ask: &AskView) -> Value {
    let row = &ask.row;
    let commands = commands(world, ask).map(|(_, command)| command);
    json!({"requires_action": {
        "kind": row.kind,
        "ask_id": row.ask_id,
        "session_id": row.session_id,
        "intent_id": row.intent_id,
        "tool": row.facts.get("tool"),
        "workspace": ask.workspace,
        "cwd": ask.cwd(),
        "pinned": row.pinned,
        "facts": row.facts,
        "expires_at": row.expires_at,
        "commands": commands,
    }})
}

/// An ask with everything that belongs to it, as it is shown.
pub struct ShownAsk(pub WholeAsk);

impl ShownAsk {
    /// Reads what the row does not hold: the suggested rules and the diff.
    pub async fn load(world: &World, ask: AskView) -> anyhow::Result<Self> {
        Ok(Self(world.whole_ask(ask, ROLE).await.map_err(|error| ask::unseen(world, error))?))
    }

    /// The text in pages that leave room for the choices.
    pub fn pages(&self, detail: AskDetail, besides: &[Choice], size: Size) -> Pages {
        let below = [false, true].map(|at_end| Chooser::new(self.choices(at_end, detail, besides)).line());
        let longest = below.into_iter().max_by_key(|line| line.chars().count()).unwrap_or_default();
        Pages::of(self.text(detail), about(&self.0.ask.row), longest, size)
    }

    /// What can be chosen once all of it was shown or before, and what else is offered. Nobody allows what nobody could be
    /// shown, or what was not shown to its end.
    pub fn choices(&self, shown_to_its_end: bool, detail: AskDetail, besides: &[Choice]) -> Vec<Choice> {
        let mut offered = Vec::new();
        if !shown_to_its_end {
            offered.push(Choice::NextPage);
        } else if self.0.diff.is_ok() {
            offered.push(Choice::Once);
            if self.0.asked.grantable.is_some() {
                offered.extend([Choice::Session, Choice::Project]);
            }
        }
        offered.extend_from_slice(besides);
        if detail == AskDetail::Short {
            offered.push(Choice::AllFacts);
        }
        offered
    }

    /// The commands that answer it.
    pub fn answers(&self, world: &World) -> String {
        let mut text = String::new();
        if !self.0.ask.is_pending() {
            return text;
        }
        for (label, command) in commands(world, &self.0.ask).into_iter().skip(1) {
            let _ = writeln!(text, "{label}: {command}");
        }
        if self.0.asked.grantable.is_some() {
            let allow = world.command(&format!("approvals allow {}", self.0.ask.row.ask_id));
            let _ = writeln!(text, "allow for this session: {allow} --session");
            let _ = writeln!(text, "allow for this project: {allow} --save");
        }
        text
    }

    /// For a program.
    pub fn document(&self) -> anyhow::Result<Value> {
        let mut value = self.0.ask.document()?;
        value["suggested_rules"] = json!(self.0.asked.suggested_rules);
        value["outdated"] = json!(self.0.outdated);
        match &self.0.diff {
            Ok(diff) => {
                value["diff_text"] = json!(diff);
                // It is whole or it is not shown.
                value["diff_complete"] = json!(diff.as_ref().map(|_| true));
            }
            Err(error) => value["diff_error"] = json!(hints::explained_causes(error)),
        }
        Ok(value)
    }
}
