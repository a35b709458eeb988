//! The tool that answers what a command asks (agent-runtime 8.6), as it is shown beside what the rules decide.

use portcullis::instead::Alternative;
use serde_json::{Value, json};

pub fn document(found: Option<&Alternative>) -> Value {
    found.map_or(Value::Null, |found| json!({"tool": found.tool, "input": found.input, "differs": found.differs}))
}

/// In one line.
pub fn in_words(found: &Alternative) -> String {
    let differs = found.differs.map(|differs| format!(" ({differs})")).unwrap_or_default();
    format!("{} {}{differs}", found.tool, found.input)
}
