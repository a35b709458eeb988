//! Untrusted text in tool-result position, between delimiters that it cannot hold (tool-contract §21).
//!
//! An observation is shown as one line of facts, which the runtime wrote, and then one block for each content. A block
//! stands between two lines that hold a nonce which occurs in none of the texts, so that no text can end its block or
//! begin another. The nonce is made from the texts: the same observation is the same bytes at every replay (L71).

use portcullis_base::{Digest, Trust};
use portcullis_event::{ContentFormat, ContentPart, Observed};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const OPENING: &str = "<<<content ";
const LONE: &str = "<<<media ";
const CLOSING: &str = "<<<end ";
const LABEL_END: &str = ">>>";

/// How much of a digest is a nonce: the first that does not occur. Four digits cost the model few tokens; what makes a
/// nonce safe is that the text does not hold it, not that nobody could guess it.
const NONCE_DIGITS: [usize; 4] = [4, 16, 32, 64];

/// What stands in the opening delimiter of a block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    pub trust: Trust,
    pub format: ContentFormat,
    pub source: String,
    /// It is the tool's result itself, not text about it (R9).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub structured: bool,
    /// Id, type and size of the bytes that belong to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Value>,
}

/// One fenced block of a text, read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FencedBlock {
    pub label: Label,
    /// None of a part that has no text, such as an image: it is named here and goes along as media.
    pub text: Option<String>,
}

/// What [`shown`] wrote, read back.
#[derive(Debug, Clone, PartialEq)]
pub struct FencedObservation {
    pub facts: Value,
    pub contents: Vec<FencedBlock>,
}

/// The observation as the model is shown it.
#[must_use]
pub fn shown(observed: &Observed) -> String {
    let mut view = observed.model_view();
    if let Value::Object(fields) = &mut view {
        fields.shift_remove("content");
        fields.shift_remove("structured");
    }
    enclosed(one_line(&view), &contents(observed))
}

/// What a client answered to a question that no call stands for: a line of the runtime, and its words between delimiters.
pub(crate) fn answered(line: String, words: String) -> String {
    let label = Label {
        trust: Trust::ToolOutputUntrusted,
        format: ContentFormat::Text,
        source: "client".to_owned(),
        structured: false,
        artifact: None,
    };
    enclosed(line, &[FencedBlock { label, text: Some(words) }])
}

/// The facts, and below them each content in its block.
fn enclosed(mut out: String, contents: &[FencedBlock]) -> String {
    let labels: Vec<String> = contents.iter().map(|content| one_line(&json!(content.label))).collect();
    // Nor in labels and facts: a search for the nonce finds delimiters and nothing else.
    let texts = contents.iter().filter_map(|content| content.text.as_deref());
    let nonce = nonce(&texts.chain(labels.iter().map(String::as_str)).chain([out.as_str()]).collect::<Vec<_>>());
    for (content, label) in contents.iter().zip(&labels) {
        match &content.text {
            Some(text) => {
                for piece in ["\n", OPENING, &nonce, " ", label, LABEL_END, "\n", text] {
                    out.push_str(piece);
                }
                for piece in ["\n", CLOSING, &nonce, LABEL_END] {
                    out.push_str(piece);
                }
            }
            None => {
                for piece in ["\n", LONE, &nonce, " ", label, LABEL_END] {
                    out.push_str(piece);
                }
            }
        }
    }
    out
}

impl FencedObservation {
    /// The same text again, or that of what was changed in it.
    pub(crate) fn to_text(&self) -> String {
        enclosed(one_line(&self.facts), &self.contents)
    }
}

/// Reads back what [`shown`] wrote; `None` if it is anything else.
#[must_use]
pub fn parse(shown: &str) -> Option<FencedObservation> {
    let (facts, mut rest) = shown.split_once('\n').map_or((shown, None), |(facts, rest)| (facts, Some(rest)));
    let facts: Value = serde_json::from_str(facts).ok()?;
    facts.as_object()?;
    let mut contents = Vec::new();
    while let Some(block) = rest {
        let (line, after) = block.split_once('\n').map_or((block, None), |(line, after)| (line, Some(after)));
        if let Some(label) = line.strip_prefix(LONE) {
            let (_, label) = label.strip_suffix(LABEL_END)?.split_once(' ')?;
            contents.push(FencedBlock { label: serde_json::from_str(label).ok()?, text: None });
            rest = after;
            continue;
        }
        let (nonce, label) = line.strip_prefix(OPENING)?.strip_suffix(LABEL_END)?.split_once(' ')?;
        let end = format!("\n{CLOSING}{nonce}{LABEL_END}");
        // The line break before the text belongs to the opening, the one before the end to the end: a text may be empty.
        let body = &block[line.len()..];
        let text = body.strip_prefix('\n')?;
        let at = text.find(&end)?;
        contents.push(FencedBlock { label: serde_json::from_str(label).ok()?, text: Some(text[..at].to_owned()) });
        rest = match &text[at + end.len()..] {
            "" => None,
            more => Some(more.strip_prefix('\n')?),
        };
    }
    Some(FencedObservation { facts, contents })
}

/// Everything of the observation that is not a fact.
fn contents(observed: &Observed) -> Vec<FencedBlock> {
    let mut contents: Vec<FencedBlock> = observed.content.iter().map(fenced).collect();
    if observed.structured_is_channel
        && let Some(structured) = &observed.structured
    {
        let label = Label {
            trust: Trust::ToolOutputUntrusted,
            format: ContentFormat::Json,
            source: observed.tool.clone(),
            structured: true,
            artifact: None,
        };
        contents.push(FencedBlock { label, text: Some(structured.to_string()) });
    }
    contents
}

fn fenced(part: &ContentPart) -> FencedBlock {
    let artifact = part.artifact.as_ref().map(|a| json!({"id": a.id, "mime": a.mime, "bytes": a.bytes}));
    FencedBlock {
        label: Label {
            trust: part.trust,
            format: part.format,
            source: part.source.clone(),
            structured: false,
            artifact,
        },
        text: part.text.clone(),
    }
}

/// JSON without a character that any reader takes for a line break. JSON itself escapes those below U+0020.
fn one_line(value: &Value) -> String {
    let text = value.to_string();
    if !text.contains(['\u{85}', '\u{2028}', '\u{2029}']) {
        return text;
    }
    text.replace('\u{85}', "\\u0085").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

/// Digits that occur in none of the texts.
fn nonce(texts: &[&str]) -> String {
    let mut hashed = Vec::new();
    for text in texts {
        hashed.extend_from_slice(&text.len().to_le_bytes());
        hashed.extend_from_slice(text.as_bytes());
    }
    let mut digest = Digest::of(&hashed);
    loop {
        let digits = digest.to_string();
        let free = |nonce: &&str| texts.iter().all(|text| !text.contains(*nonce));
        if let Some(nonce) = NONCE_DIGITS.iter().map(|length| &digits[..*length]).find(free) {
            return nonce.to_owned();
        }
        // Only a text that holds its own digest comes here, and no text holds every one of the chain that follows.
        digest = Digest::of(digest.as_bytes());
    }
}
