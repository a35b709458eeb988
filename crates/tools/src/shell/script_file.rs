//! Files that a line surely runs, for the person who is asked: a program of the workspace by its path, and what a shell or an
//! interpreter is given. The text comes from the workspace, so it is untrusted.

use portcullis_base::Digest;
use portcullis_command::PlacedCommand;
use portcullis_sandbox as sandbox;

use super::places::{LineFolders, joined};
use super::programs::{is_interpreter, is_literal};
use super::project_script::{LINES, cut};

/// Files of one line that are quoted.
const FILES: usize = 4;
/// Other files that are named.
const NAMED: usize = 16;
/// Bytes of a file that is looked at. Of a larger one only the size is told.
const FILE: u64 = 1 << 20;
/// Characters of one quotation.
const SHOWN: usize = 2_000;
/// Digits of a digest that are shown.
const DIGITS: usize = 16;

/// The places of the files, by their virtual paths, each once, in the order of the line.
pub(super) fn run_by(placed: &[PlacedCommand], places: &LineFolders<'_>) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for PlacedCommand { argv, folder } in placed {
        let (Some(cwd), Some((program, words))) = (places.of(folder), argv.split_first()) else { continue };
        let file = |word: &String| is_literal(word).then(|| places.file(&joined(&cwd, word))).flatten();
        let mut found: Vec<String> = Vec::new();
        if program.contains('/') {
            found.extend(file(program).map(|(place, _)| place));
        }
        if is_interpreter(program) {
            let mut after_option = false;
            for word in words {
                if word.starts_with('-') {
                    after_option = true;
                } else if let Some((place, _)) = file(word) {
                    found.push(place);
                    // Behind an option it may be that option's value, and the script is still to come.
                    if !std::mem::take(&mut after_option) {
                        break;
                    }
                } else {
                    after_option = false;
                }
            }
        }
        for place in found {
            if !out.contains(&place) {
                out.push(place);
            }
        }
    }
    out
}

/// What a person is told of these files: each by its size, its digest and its first lines, as far as `may_show` lets it be
/// shown; then the names of the others that the answer is bound to.
pub(super) fn facts(
    run: &[String],
    others: &[String],
    places: &LineFolders<'_>,
    may_show: &dyn Fn(&str) -> bool,
) -> Vec<(String, String)> {
    let mut facts: Vec<(String, String)> =
        run.iter().take(FILES).filter_map(|place| fact(place, places, may_show)).collect();
    let others: Vec<&str> = run.iter().skip(FILES).chain(others).map(String::as_str).collect();
    if !others.is_empty() {
        let mut text = others.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
        if others.len() > NAMED {
            text.push_str(&format!(" and {} more", others.len() - NAMED));
        }
        facts.push(("bound to files as they are now".to_owned(), text));
    }
    facts
}

fn fact(place: &str, places: &LineFolders<'_>, may_show: &dyn Fn(&str) -> bool) -> Option<(String, String)> {
    let found = places.mounts.resolve(place).ok()?;
    let size = sandbox::stat(&found).ok()?.size;
    let untold = |why: &str| (format!("runs the file {place}"), format!("{}, {why}", bytes(size)));
    if !may_show(place) {
        return Some(untold("which may not be shown"));
    }
    let Ok(content) = sandbox::read_file(&found, FILE) else { return Some(untold("not looked at")) };
    let digest = short(&content.sha256);
    let described = format!("{}, sha256 {digest}…", bytes(content.size));
    match String::from_utf8(content.bytes) {
        Ok(text) if !text.contains('\0') => {
            Some((format!("runs the file {place} ({described}; untrusted, quoted)"), quoted(&text)))
        }
        _ => Some((format!("runs the file {place}"), format!("{described}, no text"))),
    }
}

fn quoted(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    if lines.iter().all(|line| line.trim().is_empty()) {
        return "(nothing in it)".to_owned();
    }
    let shown = cut(lines.iter().take(LINES).copied().collect(), lines.len().saturating_sub(LINES));
    match shown.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}… ({} characters of the file more)", &shown[..at], text.chars().count() - SHOWN),
        None => shown,
    }
}

fn bytes(size: u64) -> String {
    if size == 1 { "1 byte".to_owned() } else { format!("{size} bytes") }
}

fn short(digest: &Digest) -> String {
    digest.to_string().chars().take(DIGITS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotation_is_bounded_by_lines_and_by_characters_and_says_what_is_missing() {
        assert_eq!(quoted("echo a\necho b\n"), "echo a\necho b");
        assert_eq!(quoted("\n \n"), "(nothing in it)");
        let long = quoted(&"x\n".repeat(LINES + 3));
        assert!(long.ends_with("… (3 lines more)"), "{long}");
        let wide = quoted(&"y".repeat(SHOWN + 7));
        assert!(wide.ends_with("… (7 characters of the file more)") && wide.chars().count() < SHOWN + 50, "{wide}");
    }
}
