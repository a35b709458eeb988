//! Files that are said to be mended: "fixed `a.md`", "corrected a typo in `b.md`". Words that were put right were put right
//! in the file that is named; where a bug showed is not always where it was.

use portcullis_event::facts::ClaimVerdict as V;

use super::claims::{Said, Verb, marked};
use super::facts::Facts;
use super::files::file;
use super::judge::Found;
use super::prose::{Prose, is_path, pattern};

const MENDED: &str = r"(?:fixed|corrected|repaired)";
/// Words of one phrase: no other clause begins in it.
const WORDS: &str = r"(?:⟦m\d+⟧|[\w'’-]+)";
pattern!(
    OBJECT,
    &format!(r"^{MENDED}(?: up)?(?: the| my| your| our| both)?(?: file| script| module)? ⟦m(\d+)⟧(?:$|[ .:;!])")
);
pattern!(
    PLACE,
    &format!(
        r"^{MENDED}((?: {WORDS}){{1,7}}?) (?:in|inside|within)(?: the| your| our)?(?: file)? ⟦m(\d+)⟧(?:$|[ .:;!])"
    )
);
// "The typo in `a` is fixed", "`a` has been corrected".
pattern!(
    BEFORE,
    r"^(?:(.*) (?:in|inside|within) )?(?:the |file |script )*⟦m(\d+)⟧(?: file| script)? (?:(?:has|have) been|is|was|got)(?: now| also)*$"
);
// What goes on in the next clause: "… and a typo in `b`", "… and `b`".
pattern!(
    GOES_ON,
    &format!(
        r"^(?:also )?((?:an?|the|another|one|two|three|some|several|\d+)(?: {WORDS}){{1,4}}?) in(?: the| your| our)? ⟦m(\d+)⟧$|^⟦m(\d+)⟧$"
    )
);
// Behind these words a file is only spoken of.
pattern!(
    ASIDE,
    r"\b(?:by|with|that|which|when|where|how|if|using|so|because|from|caused|reading|whether|while|mentioned|described|listed|reported|documented|noted|shown|seen|found|tracked|discussed|logged)\b"
);
pattern!(
    WORDING,
    r"\b(?:typos?|spelling|wording|formatting|comments?|docs?|documentation|grammar|indentation|whitespace|heading|headings|link|links|example|examples)\b"
);

/// What a clause says to be mended, whose verb stands at `start`.
pub(super) fn mended(clause: &str, start: usize, prose: &Prose) -> Option<Said> {
    let tail = &clause[start..];
    if let Some(found) = OBJECT.captures(tail) {
        let path = marked(&found, prose).filter(|path| is_path(path))?;
        return Some(Said::Mended { path: path.to_owned(), sure: is_prose(path) });
    }
    if let Some(found) = PLACE.captures(tail) {
        return in_place(&found, prose);
    }
    in_place(&BEFORE.captures(clause[..start].trim_end())?, prose)
}

/// What the next clause adds to what was mended.
pub(super) fn mended_too(clause: &str, prose: &Prose) -> Option<Said> {
    let found = GOES_ON.captures(clause)?;
    if let Some(alone) = found.get(3) {
        let path = prose.aside.get(alone.as_str().parse::<usize>().ok()?).filter(|path| is_path(path))?;
        return Some(Said::Mended { path: path.clone(), sure: is_prose(path) });
    }
    in_place(&found, prose)
}

/// What (first group) was mended where (second group).
fn in_place(found: &regex::Captures<'_>, prose: &Prose) -> Option<Said> {
    let what = found.get(1).map_or("", |what| what.as_str());
    let number = found.get(2)?.as_str().parse::<usize>().ok()?;
    let path = prose.aside.get(number).filter(|path| is_path(path) && !ASIDE.is_match(what))?;
    Some(Said::Mended { path: path.clone(), sure: WORDING.is_match(what) || (what.is_empty() && is_prose(path)) })
}

/// Whether a file holds words for people: nothing but an edit mends it.
fn is_prose(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    matches!(extension, Some("md" | "markdown" | "rst" | "adoc")) || name.starts_with("readme") || name == "changelog"
}

/// A test is mended by a change of what it tests as well.
fn is_test(path: &str) -> bool {
    let mut words = path.split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_ascii_lowercase);
    words.any(|word| matches!(word.as_str(), "test" | "tests" | "spec" | "specs" | "e2e") || word.ends_with("test"))
}

pub(super) fn judged(path: &str, sure: bool, facts: &Facts) -> Found {
    match file(Verb::Edited, path, facts) {
        Found(V::Contradicted, fact, evidence) if !sure => Found(V::Unsupported, fact, evidence),
        found => found,
    }
}

/// Whether there is anything to say of it: that the file was edited is no news beside what else is claimed.
pub(super) fn is_news(path: &str, sure: bool, facts: &Facts) -> bool {
    let verdict = judged(path, sure, facts).0;
    verdict == V::Contradicted || (verdict == V::Unsupported && !is_test(path))
}
