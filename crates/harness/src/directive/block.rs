//! The block in a reply that holds a directive: found, and taken out of what a person sees.

use serde_json::Value;

use super::{Directive, from_input};

const OPEN: &str = "<portcullis-session-loop>";
const CLOSE: &str = "</portcullis-session-loop>";

/// The visible reply and its directive.
///
/// Exactly one block counts, and it ends the reply (agent-runtime 5.5). Two say two things, so neither is heeded; both
/// are taken out all the same. A block in the middle of a sentence, or with words behind it, is a quotation and stays,
/// whoever wrote it first. A block inside a code fence is an example and stays, unless the fence is the end of the
/// reply, holds nothing else, and there is no other block: that is how some models write markup. A block that was begun
/// and never ended is what a cut answer leaves.
#[must_use]
pub fn read(reply: &str) -> (String, Directive) {
    let fences = fences(reply);
    let mut blocks = blocks(reply, |at| fences.iter().any(|fence| fence.contains(&at)) || !begins_anew(&reply[..at]));
    if blocks.last().is_some_and(|last| !reply[last.whole.end..].trim().is_empty()) {
        blocks.clear();
    }
    if blocks.is_empty()
        && let Some(fence) = fences.last()
        && reply[fence.end..].trim().is_empty()
        && let Some(block) = alone(reply, fence)
    {
        blocks.push(block);
    }
    let mut visible = String::with_capacity(reply.len());
    let mut from = 0;
    for block in &blocks {
        visible.push_str(&reply[from..block.whole.start]);
        from = block.whole.end;
    }
    visible.push_str(&reply[from..]);
    let visible = if blocks.is_empty() { visible } else { visible.trim_end().to_owned() };
    let directive = match blocks.as_slice() {
        [Block { body: Some(body), .. }] => serde_json::from_str::<Value>(body).ok(),
        _ => None,
    };
    let directive = match directive {
        Some(fields) => from_input(&fields, &visible),
        None => Directive::none(&visible),
    };
    (visible, directive)
}

/// Whether what comes after this text stands by itself: on a line of its own, or behind the end of a sentence.
fn begins_anew(before: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or_default().trim_end();
    line.is_empty() || line.ends_with(['.', '!', '?', '…', ')', '*', '。'])
}

struct Block<'r> {
    whole: std::ops::Range<usize>,
    /// None of a block that does not end.
    body: Option<&'r str>,
}

fn blocks(reply: &str, fenced: impl Fn(usize) -> bool) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut from = 0;
    while let Some(found) = reply[from..].find(OPEN) {
        let start = from + found;
        let inside = start + OPEN.len();
        from = inside;
        if fenced(start) {
            continue;
        }
        if let Some(end) = reply[inside..].find(CLOSE).map(|end| inside + end) {
            from = end + CLOSE.len();
            blocks.push(Block { whole: start..from, body: Some(&reply[inside..end]) });
        } else if reply[inside..].trim_start().starts_with('{') || reply[inside..].trim().is_empty() {
            blocks.push(Block { whole: start..reply.len(), body: None });
            break;
        }
    }
    blocks
}

/// Byte ranges of the code fences, their own lines included. One that swallows the end of the reply without ending is
/// more likely a slip than an example, and is none.
fn fences(reply: &str) -> Vec<std::ops::Range<usize>> {
    let mut fences = Vec::new();
    let mut open: Option<(usize, char, usize)> = None;
    let mut at = 0;
    for line in reply.split_inclusive('\n') {
        let text = line.trim_start();
        let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'));
        let run = mark.map_or(0, |mark| text.chars().take_while(|c| *c == mark).count());
        match open {
            None if run >= 3 => open = mark.map(|mark| (at, mark, run)),
            Some((start, was, length)) if mark == Some(was) && run >= length && text.trim_end().len() == run => {
                fences.push(start..at + line.len());
                open = None;
            }
            _ => {}
        }
        at += line.len();
    }
    fences
}

/// The block that a fence consists of.
fn alone<'r>(reply: &'r str, fence: &std::ops::Range<usize>) -> Option<Block<'r>> {
    let inside = &reply[fence.clone()];
    let first = inside.find('\n')? + 1;
    let body = inside[first..].trim_end().trim_end_matches(['`', '~']).trim();
    let body = body.strip_prefix(OPEN)?.strip_suffix(CLOSE)?;
    (!body.contains(OPEN)).then_some(Block { whole: fence.start..reply.len(), body: Some(body) })
}
