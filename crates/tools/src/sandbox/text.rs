//! `read_text`, `write_text`, `append_text`, `replace_text`: `read`, `write` and `edit` in the words of
//! agent-runtime 10.3.

use std::sync::Arc;

use portcullis_base::limits;
use portcullis_contract::BuildError;
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use super::place::Places;
use super::{Actions, Own, chars, pick, reshape, word};
use crate::count::{Count, Flag, UNBOUNDED};
use crate::files::{FileTools, append_tool};

const LINES: u64 = limits::READ_LINES as u64;
const BYTES: u64 = limits::READ_BYTES as u64;

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

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "the schema of it; the tool itself reads the values")]
struct ReadText {
    /// The file: a path relative to the workspace, such as `src/main.rs`.
    #[schemars(regex(pattern = r"\S"))]
    path: String,
    /// End the page after at most this many characters. 0 or less, or absent, means 51200; above 51200 means 51200.
    #[serde(default)]
    max_chars: Count<BYTES, BYTES>,
    /// The first line to read, counted from 1; give lineCount with it. 0 or less, or absent, means 1.
    #[serde(default)]
    start_line: Count<1, UNBOUNDED>,
    /// How many lines to read. 0 or less, or absent, means 2000; above 2000 means 2000.
    #[serde(default)]
    line_count: Count<LINES, LINES>,
    /// Read this many lines from the end instead. 0 or less, or absent, means not used; above 2000 means 2000.
    #[serde(default)]
    tail_lines: Count<0, LINES>,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "the schema of it; the tool itself reads the values")]
struct WriteText {
    /// The file: a path relative to the workspace, such as `src/main.rs`.
    #[schemars(regex(pattern = r"\S"))]
    path: String,
    /// The text, exactly; may be empty.
    content: String,
}

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "the schema of it; the tool itself reads the values")]
struct ReplaceText {
    /// The file: a path relative to the workspace, such as `src/main.rs`.
    #[schemars(regex(pattern = r"\S"))]
    path: String,
    /// The text to replace, exactly as it stands in the file, indentation included.
    #[schemars(length(min = 1))]
    old_text: String,
    /// The text to put in its place; may be empty.
    new_text: String,
    /// Replace every place where oldText stands, not only a single one.
    #[serde(default)]
    replace_all: Flag,
}

pub(super) fn actions(own: &Own, places: &Places, files: Arc<FileTools>) -> Result<Actions, BuildError> {
    let at = |of: &Places| of.clone();
    let (read, write, append, replace) = (at(places), at(places), at(places), at(places));
    let shape = reshape("read_text", FIELDS, move |input, output| read_text(&read, input, output));
    let read = own.tool("read")?.reshaped::<ReadText>(shape)?;
    let shape = reshape("write_text", FIELDS, move |input, output| written(&write, "write", input, output));
    let write = own.tool("write")?.reshaped::<WriteText>(shape)?;
    let shape = reshape("append_text", FIELDS, move |input, output| written(&append, "append", input, output));
    let append = append_tool(files)?.reshaped::<WriteText>(shape)?;
    let shape = reshape("replace_text", FIELDS, move |input, output| replaced(&replace, input, output));
    let replace = own.tool("edit")?.reshaped::<ReplaceText>(shape)?;
    Ok([("read_text", read), ("write_text", write), ("append_text", append), ("replace_text", replace)].into())
}

/// Where something is.
fn place(places: &Places, output: &Value) -> Map<String, Value> {
    let path = word(output, "path");
    [("path".to_owned(), path.into()), ("mountPath".to_owned(), places.mount_path(path).into())].into_iter().collect()
}

fn read_text(places: &Places, input: &Value, output: &Value) -> Value {
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

fn written(places: &Places, operation: &str, input: &Value, output: &Value) -> Value {
    let mut document = place(places, output);
    document.insert("charCount".to_owned(), chars(input, "content").into());
    document.insert("operation".to_owned(), operation.into());
    document.into()
}

fn replaced(places: &Places, input: &Value, output: &Value) -> Value {
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
