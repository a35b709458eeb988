//! `read_text`, `write_text`, `append_text`, `replace_text`: `read`, `write` and `edit` in the words of
//! agent-runtime 10.3.

use std::sync::Arc;

use portcullis_contract::{BuildError, Reshape};
use serde_json::{Map, Value, json};

use super::mount_names::MountNames;
use super::{Actions, FirstClassTools, chars, pick, reshape, word};
use crate::files::{FileTools, append_tool};

/// What the tools call differently. One list for all: a refused write says which lines to read.
const FIELDS: &[(&str, &str)] = &[
    ("path", "file_path"),
    ("maxChars", "max_chars"),
    ("startLine", "start_line"),
    ("lineCount", "line_count"),
    ("tailLines", "tail_lines"),
    ("oldText", "old_string"),
    ("newText", "new_string"),
    ("replaceAll", "replace_all"),
];

/// What both ways of writing take.
const WRITES: &[&str] = &["path", "content"];
/// Appended text is not the whole content.
const WORDS: &[(&str, &str)] = &[("content", "The text, exactly; may be empty.")];

pub(super) fn actions(
    own: &FirstClassTools,
    places: &MountNames,
    files: Arc<FileTools>,
) -> Result<Actions, BuildError> {
    let shape = |name, takes, made: fn(&MountNames, &Value, &Value) -> Value| {
        let places = places.clone();
        Reshape {
            fields: FIELDS,
            words: WORDS,
            ..reshape(name, Some(takes), move |input, output| made(&places, input, output))
        }
    };
    let takes = &["path", "maxChars", "startLine", "lineCount", "tailLines"];
    let read = own.tool("read")?.reshaped(shape("read_text", takes, read_text))?;
    let made = |places: &_, input: &_, output: &_| written(places, "write", input, output);
    let write = own.tool("write")?.reshaped(shape("write_text", WRITES, made))?;
    let made = |places: &_, input: &_, output: &_| written(places, "append", input, output);
    let append = append_tool(files)?.reshaped(shape("append_text", WRITES, made))?;
    let takes = &["path", "oldText", "newText", "replaceAll"];
    let replace = own.tool("edit")?.reshaped(shape("replace_text", takes, replaced))?;
    Ok([("read_text", read), ("write_text", write), ("append_text", append), ("replace_text", replace)].into())
}

/// Where something is.
fn place(places: &MountNames, output: &Value) -> Map<String, Value> {
    let path = word(output, "path");
    [("path".to_owned(), path.into()), ("mountPath".to_owned(), places.mount_path(path).into())].into_iter().collect()
}

fn read_text(places: &MountNames, input: &Value, output: &Value) -> Value {
    let mut document = place(places, output);
    let Some(page) = output.get("page").filter(|page| page.is_object()) else {
        // An image or a document: it is shown as it is, and is no text.
        document.extend(pick(output, &["media"]));
        return document.into();
    };
    let number = |field: &str| page.get(field).and_then(Value::as_u64).unwrap_or_default();
    let (first, last) = (number("first_line"), number("last_line"));
    let selected = (last + 1).saturating_sub(first);
    let left_out = number("left_out_chars");
    let truncated = page.get("truncated").and_then(Value::as_bool).unwrap_or_default();
    let mut content = word(page, "text").to_owned();
    let count = content.chars().count() as u64 + left_out;
    if truncated {
        content.push_str(&format!("...[truncated {left_out} chars]"));
    }
    document.extend([
        ("content".to_owned(), content.into()),
        ("truncated".to_owned(), truncated.into()),
        ("charCount".to_owned(), count.into()),
        ("totalLineCount".to_owned(), number("total_lines").into()),
        ("selectedLineCount".to_owned(), selected.into()),
    ]);
    let given = |field: &str| input.get(field).and_then(Value::as_f64).is_some_and(|count| count >= 1.0);
    let window = match () {
        () if given("tailLines") => Some(json!({"mode": "tail", "startLine": first, "count": selected})),
        () if given("startLine") => Some(json!({"mode": "range", "startLine": first, "count": selected})),
        () if given("lineCount") => Some(json!({"mode": "head", "count": selected})),
        () => None,
    };
    document.extend(window.map(|window| ("lineWindow".to_owned(), window)));
    document.into()
}

fn written(places: &MountNames, operation: &str, input: &Value, output: &Value) -> Value {
    let mut document = place(places, output);
    document.insert("charCount".to_owned(), chars(input, "content").into());
    document.insert("operation".to_owned(), operation.into());
    document.into()
}

fn replaced(places: &MountNames, input: &Value, output: &Value) -> Value {
    let mut document = place(places, output);
    let count = output.get("replacements").cloned().unwrap_or_default();
    document.extend([
        ("operation".to_owned(), "replace".into()),
        ("replaceAll".to_owned(), input.get("replaceAll").and_then(Value::as_bool).unwrap_or_default().into()),
        // Several places are replaced all, or refused.
        ("occurrences".to_owned(), count.clone()),
        ("replacements".to_owned(), count),
        ("charCount".to_owned(), output.get("chars").cloned().unwrap_or_default()),
    ]);
    document.into()
}
