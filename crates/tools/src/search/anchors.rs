//! Which lines of a search's text are worth keeping when it is cut: a line of every file before a
//! second one of any (tool-contract §18, `match_context`).

use std::collections::HashMap;

use portcullis_base::Window;
use portcullis_contract::Anchor;

/// A search's text is bounded by its limit of lines; of anything longer the start is enough.
const READ_MAX: u64 = 4 << 20;

/// Anchors of a text of `path:line:text` lines, round-robin over paths.
pub(crate) fn by_file(window: &dyn Window) -> Vec<Anchor> {
    let Ok(text) = window.slice(0, window.len().min(READ_MAX)) else { return Vec::new() };
    let mut turns: HashMap<&[u8], usize> = HashMap::new();
    let mut anchors = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let end = start + line.len() as u64;
        if let Some(path) = path_of(line) {
            let turn = turns.entry(path).or_default();
            anchors.push((*turn, Anchor { start, end }));
            *turn += 1;
        }
        start = end;
    }
    anchors.sort_by_key(|(turn, anchor)| (*turn, anchor.start));
    anchors.into_iter().map(|(_, anchor)| anchor).collect()
}

/// Anchors of a text of `number:text` lines, where others have no `:` after their number.
pub(crate) fn of_matches(window: &dyn Window) -> Vec<Anchor> {
    let Ok(text) = window.slice(0, window.len().min(READ_MAX)) else { return Vec::new() };
    let mut anchors = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let end = start + line.len() as u64;
        let digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits > 0 && line.get(digits) == Some(&b':') {
            anchors.push(Anchor { start, end });
        }
        start = end;
    }
    anchors
}

/// What stands before the first `:number:`.
fn path_of(line: &[u8]) -> Option<&[u8]> {
    let colons: Vec<usize> = (0..line.len()).filter(|at| line[*at] == b':').collect();
    colons.windows(2).find_map(|pair| {
        let number = &line[pair[0] + 1..pair[1]];
        (!number.is_empty() && number.iter().all(u8::is_ascii_digit)).then(|| &line[..pair[0]])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_its_turn() {
        let text = "a.rs:1:x\na.rs:2:y: 3:\nb: c.rs:7:z\nthe first 3 matching lines\n".to_owned().into_bytes();
        let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
        let found = by_file(&text.clone());
        let at = |anchor: &Anchor| &text[anchor.start as usize..anchor.end as usize];
        assert_eq!(found.iter().map(at).collect::<Vec<_>>(), [lines[0], lines[2], lines[1]]);
    }
}
