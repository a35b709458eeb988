//! What whoever started a run sees while it goes on: text as it comes, one line a call; for programs one document a thing
//! that happened (`docs/run-json.md`).

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use portcullis::harness::{Live, Watcher};
use portcullis_base::{Code, Recorded};
use portcullis_event::Observed;
use portcullis_event::facts::FinalChecked;
use serde_json::{Value, json};

use crate::render::{self, DIM, GREEN, RED, Term, YELLOW, safe, safe_line, styled};
use crate::spinner::{PATIENCE, Spinner};

/// Characters of an input on the line of its call.
const INPUT_CHARS: usize = 60;
/// Characters of what a call says of its outcome.
const SUMMARY_CHARS: usize = 120;

/// Where it is shown.
pub struct Screen {
    term: Term,
    /// Everything on standard output: what is told is the result (`demo`).
    aloud: bool,
    /// A line that moves while something takes long; not where a person types.
    moving: bool,
    paper: Mutex<Paper>,
}

#[derive(Default)]
struct Paper {
    /// A line was begun and not ended.
    mid_line: bool,
    /// Calls that began and have not ended: tool and input. One that waited for an answer ends without them.
    begun: Vec<(String, String)>,
    /// What is waited for, and since when.
    busy: Option<(String, Instant)>,
    spinner: Option<Spinner>,
}

impl Screen {
    pub fn new(term: Term, aloud: bool) -> Self {
        Self { term, aloud, moving: !term.json, paper: Mutex::default() }
    }

    pub fn is_json(&self) -> bool {
        self.term.json
    }

    fn paper(&self) -> MutexGuard<'_, Paper> {
        self.paper.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows that something is waited for, once that takes long.
    pub fn tick(&self) {
        let mut paper = self.paper();
        let Some((words, since)) = &paper.busy else { return };
        if self.moving && !paper.mid_line && paper.spinner.is_none() && since.elapsed() >= PATIENCE {
            paper.spinner = Some(Spinner::show(&self.term, words));
        }
    }

    /// One thing that happened, for a program.
    pub fn document(&self, document: &Value) {
        if self.term.json {
            // Whoever read has left; what happens is in the log all the same.
            let _ = self.term.document(document);
        }
    }

    /// A line of its own beside the text.
    pub fn line(&self, text: &str) {
        if self.term.json {
            return;
        }
        let mut paper = self.paper();
        paper.spinner = None;
        self.end_line(&mut paper);
        if self.aloud {
            // As above.
            let _ = self.term.print(text);
        } else {
            self.term.note(text);
        }
    }

    fn end_line(&self, paper: &mut Paper) {
        if std::mem::take(&mut paper.mid_line) {
            // As above.
            let _ = self.term.piece("\n");
        }
    }

    fn text(&self, text: &str) {
        if text.is_empty() {
            return;
        }
        let mut paper = self.paper();
        (paper.spinner, paper.busy) = (None, None);
        // As above.
        let _ = self.term.piece(&safe(text));
        paper.mid_line = !text.ends_with('\n');
    }

    /// The input of a call that ended.
    fn ended(&self, tool: &str, input: &str) -> String {
        let begun = &mut self.paper().begun;
        let is_it = |known: &(String, String)| known.0 == tool && (input.is_empty() || known.1 == input);
        begun.iter().position(is_it).map_or_else(|| input.to_owned(), |at| begun.remove(at).1)
    }

    fn busy(&self, words: Option<String>) {
        let mut paper = self.paper();
        paper.spinner = None;
        paper.busy = words.map(|words| (words, Instant::now()));
    }
}

impl Watcher for Screen {
    fn see(&self, live: Live<'_>) {
        if self.term.json {
            if let Some(document) = document(live) {
                self.document(&document);
            }
            return;
        }
        match live {
            Live::Text(text) => self.text(text),
            Live::Asking { .. } => self.busy(Some("waiting for the model".to_owned())),
            Live::MessageEnd => self.end_line(&mut self.paper()),
            Live::CallBegan { tool, input } => {
                self.paper().begun.push((tool.to_owned(), input.to_owned()));
                self.busy(Some(format!("running {}", safe_line(tool, INPUT_CHARS))));
            }
            Live::CallEnded { input, observed } => {
                self.busy(None);
                let input = self.ended(&observed.tool, input);
                self.line(&call_line(&input, observed));
            }
            Live::Warning(text) => self.line(&format!("warning: {}", safe_line(text, 400))),
            Live::Heard { words } => {
                self.line(&styled(DIM, &format!("heard: {}", render::count(words as u64, "message"))))
            }
            Live::Compacted { messages } => self.line(&styled(
                DIM,
                &format!("the conversation grew long: {messages} messages gave way to a summary; the log has them all"),
            )),
            Live::WakeBegan { .. } | Live::Thinking(_) | Live::Waiting { .. } | Live::Checked(_) => {}
            Live::HandedOver { tool, .. } => {
                self.busy(None);
                self.line(&styled(DIM, &format!("{} is run by its client", safe_line(tool, 80))));
            }
        }
    }
}

/// One call: whether it went well, what it was, how long it took, how it ended.
pub fn call_line(input: &str, observed: &Observed) -> String {
    let mark = if observed.ok { styled(GREEN, "✓") } else { styled(RED, "✗") };
    let what = aim(input).unwrap_or_else(|| untitled(observed).to_owned());
    let mut line = format!("{mark} {} {}", safe_line(&observed.tool, 80), safe_line(&what, INPUT_CHARS));
    let code = match (&observed.code, observed.exit_code) {
        (_, Some(exit)) if exit != 0 => format!("exit {exit}"),
        (Recorded::Known(code), _) if observed.ok && *code == Code::Ok => String::new(),
        (code, _) => code.to_string(),
    };
    let mut tail = render::span(observed.duration_us);
    if !code.is_empty() {
        tail = format!("{code}, {tail}");
    }
    line = format!("{} {}", line.trim_end(), styled(DIM, &format!("({tail})")));
    if !observed.ok && observed.exit_code.is_none() && !observed.summary.is_empty() {
        line.push_str(&format!(": {}", safe_line(&observed.summary, SUMMARY_CHARS)));
    }
    line
}

/// A title without the name of the tool, which stands before it.
fn untitled(observed: &Observed) -> &str {
    match observed.title.split_once(' ') {
        Some((first, rest)) if first.eq_ignore_ascii_case(&observed.tool) => rest,
        None if observed.title.eq_ignore_ascii_case(&observed.tool) => "",
        _ => &observed.title,
    }
}

/// The one field of an input that says what a call is about.
fn aim(input: &str) -> Option<String> {
    const TELLING: &[&str] = &["command", "file_path", "pattern", "path", "url", "query", "name"];
    let value: Value = serde_json::from_str(input).ok()?;
    TELLING.iter().find_map(|key| match value.get(key)? {
        Value::String(text) => Some(text.clone()),
        _ => None,
    })
}

/// The fact-check of an answer, in one line and one for each claim that does not hold.
pub fn verdict(checked: &FinalChecked) -> String {
    use portcullis_event::facts::FinalVerdict;
    let style = match checked.verdict {
        FinalVerdict::Supported => GREEN.bold(),
        FinalVerdict::NoClaims => DIM,
        FinalVerdict::Stale | FinalVerdict::Unsupported => YELLOW.bold(),
        FinalVerdict::Contradicted => RED.bold(),
    };
    let mut text = format!("fact-check: {}", styled(style, checked.verdict.as_str()));
    for claim in &checked.claims {
        let said = safe_line(&claim.claim, SUMMARY_CHARS);
        let (word, fact) = (render::word(&claim.verdict), safe_line(&claim.fact, 2 * SUMMARY_CHARS));
        text.push_str(&format!("\n  {word}: \"{said}\": {fact}"));
    }
    text
}

fn document(live: Live<'_>) -> Option<Value> {
    Some(match live {
        Live::WakeBegan { wake_id } => json!({"type": "wake", "wake_id": wake_id}),
        Live::Asking { turn } => json!({"type": "request", "turn": turn}),
        Live::Text(text) => json!({"type": "text", "text": text}),
        Live::Thinking(text) => json!({"type": "thinking", "text": text}),
        Live::MessageEnd => json!({"type": "message_end"}),
        Live::CallBegan { tool, input } => json!({"type": "call", "tool": tool, "input": input}),
        Live::CallEnded { observed, .. } => json!({"type": "observation", "observation": observed}),
        Live::Warning(text) => json!({"type": "warning", "text": text}),
        Live::Heard { words } => json!({"type": "heard", "messages": words}),
        Live::Compacted { messages } => json!({"type": "compacted", "messages": messages}),
        Live::Checked(checked) => json!({"type": "checked", "verdict": checked.verdict, "claims": checked.claims}),
        Live::HandedOver { event_id, tool } => json!({"type": "custom_tool_use", "event_id": event_id, "tool": tool}),
        // The ask is told with its facts and commands when it is somebody's turn.
        Live::Waiting { .. } => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_named_by_what_it_is_about() {
        assert_eq!(aim(r#"{"file_path":"a.txt","old_string":"x"}"#).as_deref(), Some("a.txt"));
        assert_eq!(aim(r#"{"command":"sh test.sh"}"#).as_deref(), Some("sh test.sh"));
        assert_eq!(aim("not json"), None);
    }
}
