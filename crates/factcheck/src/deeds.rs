//! What the speaker of an answer says to have done: repairs, files, commits, runs. The deeds of others are none of it.

use portcullis_event::facts::VerificationKind::{Build, Tests};

use crate::claims::{CheckSubject, ClaimText, FileDeed, kind_of_command, subjects};
use crate::clauses::Clause;
use crate::prose::{Lexeme, is_file};
use crate::words::*;

/// What goes on from one clause of a sentence to the next.
#[derive(Debug, Default)]
pub struct Speaker {
    /// Somebody else is spoken of.
    other: bool,
    /// Files that stand before their verb, perhaps in a list: "`a` and `b` were deleted".
    files: Vec<String>,
    /// What was done last, for a list that goes on: "created `a`, `b` and `c`".
    deed: Option<FileDeed>,
}

/// How a deed is told: "I fixed it", "it was fixed", "it is fixed", "bug fixed".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Telling {
    Active,
    Passive,
    State,
    Label,
}

/// How the verb at a place is told to be a deed of the speaker, if it is; `objects` are what it is done to.
fn telling(clause: &Clause<'_>, at: usize, other: bool, objects: &str) -> Option<Telling> {
    let (tokens, end) = (clause.tokens, clause.tokens.len());
    // What stands behind a label is said as by itself: "Summary: fixed it".
    let from = (0..at).rfind(|nth| clause.is(*nth, ":")).map_or(0, |colon| colon + 1);
    let (mut head, mut be) = (at, "");
    while head > from && (clause.is(head - 1, ADVERBS) || clause.is(head - 1, "is are was were be got")) {
        head -= 1;
        let aux = clause.is(head, "is are was were been got had").then_some(clause.text(head));
        be = aux.filter(|aux| be != "been" || *aux == "had").unwrap_or(be);
    }
    let mine = head > from && clause.is(head - 1, "i we i've we've");
    let by = (at..end).find(|nth| clause.is(*nth, "by")).and_then(|by| tokens.get(by + 1));
    let year = |token: &Lexeme| token.text.parse::<u32>().is_ok_and(|year| (1990..2100).contains(&year));
    let digit = |nth: usize| clause.text(nth).starts_with(|c: char| c.is_ascii_digit());
    let dated = |nth: usize| clause.is(nth, "in on") && (digit(nth + 1) || clause.is(nth + 1, "commit main master"));
    let past = clause.has(ELSEWHERE) || clause.has("snippet here below");
    let past = past || tokens.iter().any(year) || (at..end).any(dated);
    let told = clause.any(0..from, "diff shows log changelog history message title");
    if told || by.is_some_and(|who| !who.text.ends_with("ing") && !who.is("me us hand")) || past || be == "had" {
        return None;
    }
    let fits = head > from && (clause.code(head - 1) || clause.is(head - 1, objects));
    let known = fits && !clause.has(HISTORY) && !clause.any(from..head, RELATIVES);
    let bare = !clause.is(at + 1, "the a an all both this my it");
    let adjective = bare && clause.any(at + 1..end, "are is end live lives were holds hold have come get lie was");
    match be {
        "" if mine => Some(Telling::Active),
        "" if head == from && from > 1 && clause.code(from - 2) => Some(Telling::Label),
        "" if head == from => (!other && !adjective).then_some(Telling::Active),
        "" => {
            let ends = at + 1 == end || clause.is(at + 1, "successfully : to in on as with now");
            (known && ends && head - from < 5).then_some(Telling::Label)
        }
        "is" | "are" => known.then_some(Telling::State),
        _ if head == from => (!other).then_some(Telling::Passive),
        _ => known.then_some(Telling::Passive),
    }
}

pub fn deeds(clause: &Clause<'_>, speaker: &mut Speaker) -> Vec<ClaimText> {
    let mut out = Vec::new();
    let (tokens, end) = (clause.tokens, clause.tokens.len());
    if !clause.goes_on {
        (speaker.files, speaker.deed) = (Vec::new(), None);
    }
    let lead = (0..end).take_while(|at| clause.code(*at) || clause.is(*at, LEADS)).count();
    let first = speaker.files.len();
    speaker.files.extend(tokens[..lead].iter().filter_map(path_of));
    if let Some(deed) = speaker.deed.filter(|_| lead == end) {
        out.extend(speaker.files[first..].iter().map(|path| ClaimText::File(deed, path.clone())));
    }
    for at in 0..end {
        let token = &tokens[at];
        let told = |objects: &str| telling(clause, at, speaker.other, objects).filter(|_| said(clause, at));
        if token.is(FIXES) {
            let found = fixed(clause, at, told(FIXABLE));
            speaker.deed = (found.len() > 1).then_some(FileDeed::Mended);
            out.extend(found);
        } else if token.is("committed pushed") {
            let aside = clause.is(at + 1, "to hard back for through forward onto into aside");
            let to_git = !aside || clause.code(at + 2) || clause.is(at + 2, "the origin main master remote git github");
            let verb = if token.is("pushed") { "pushed" } else { "committed" };
            let all = token.is("committed") && clause.has("everything all nothing");
            let how = told(COMMITTABLE).filter(|_| to_git);
            out.extend(how.map(|how| ClaimText::Git(verb, all, how == Telling::State)));
        } else if token.is("commit commits") && clause.has("made created succeeded through") {
            let so = said(clause, at) && !speaker.other && !clause.has("by in initial last");
            out.extend(so.then_some(ClaimText::Git("committed", false, false)));
        } else if token.is("installed") && told("dependencies packages package requirements").is_some() {
            let what = tokens[at + 1..].iter().find(|token| token.code && !token.text.contains(' '));
            out.push(ClaimText::Installed(what.map(|token| token.text.clone())));
        } else if token.is(RUNS) {
            out.extend(ran(clause, at, speaker.other));
        } else if token.is(HOLDS) && clause.has("now") && lead > 0 && !clause.any(at..at + 4, GIVEN) {
            let held = std::mem::take(&mut speaker.files).into_iter().filter(|_| said(clause, at));
            out.extend(held.map(|path| ClaimText::File(FileDeed::Holds, path)));
        } else if let Some((_, deed)) = FILE_VERBS.iter().find(|(list, _)| token.is(list)) {
            // "`a` was added for the web": how it came to be there, not what was done.
            let story = clause.is(at + 1, "for with from to") && !clause.is(at + 2, PURPOSES);
            let story = story && !speaker.files.is_empty();
            let now = clause.has("now") && at + 1 == end;
            let files = |speaker: &mut Speaker| {
                std::mem::take(&mut speaker.files).into_iter().map(|path| ClaimText::File(*deed, path))
            };
            match told(WORK) {
                Some(Telling::Active) if end == 1 => out.extend(files(speaker)),
                Some(Telling::Active) => {
                    let found = objects(clause, at, *deed);
                    speaker.deed = (!found.is_empty()).then_some(*deed);
                    out.extend(found);
                }
                Some(Telling::Passive) if story => {}
                // "`a` is updated" may tell how it works.
                Some(Telling::State) if !now => {
                    let paths = tokens[..at].iter().filter(|_| at + 1 == end).filter_map(path_of);
                    out.extend(paths.map(|path| ClaimText::File(FileDeed::Mended, path)));
                }
                Some(_) => {
                    out.extend(files(speaker));
                    out.extend(objects(clause, at, FileDeed::Edited));
                }
                None => {}
            }
        }
    }
    if lead < end {
        speaker.files.clear();
    }
    // A clause with a subject of its own changes who is spoken of.
    let first = (0..end).find(|at| !clause.is(*at, ADVERBS)).unwrap_or(0);
    let noun = clause.is(first, "the your a") && !clause.is(first + 1, WORK) && !clause.is(first + 1, FIXABLE);
    // "Carol committed it and pushed."
    let object = clause.code(first) || clause.is(first, WORK) || clause.is(first, FIXABLE);
    let actor = clause.is(first + 1, "wrote fixed committed pushed added removed ran updated created") && !object;
    let others = clause.is(first, OTHERS) || clause.is(first, "it this") || noun || actor || clause.has("by");
    speaker.other = !clause.has("i we i've we've i'm") && (speaker.other || others);
    out
}

/// Whether a deed at a place is said to be so, and not taken back.
fn said(clause: &Clause<'_>, at: usize) -> bool {
    let taken = clause.any(at + 1..at + 5, "nothing neither none no 0 zero ✗ not false") && !clause.is(at + 1, "it");
    let half = clause.any(0..at, "partially partly half") || (clause.any(0..at, "only") && !clause.any(0..at, "not"));
    clause.is_so(at) && !clause.denies(at) && !taken && !half
}

fn fixed(clause: &Clause<'_>, at: usize, told: Option<Telling>) -> Vec<ClaimText> {
    let finite = clause.is(at, "fixes resolves solves fixing resolving solving") || clause.any(0..at, "change edit");
    let mine = clause.any(0..at, "this that change edit fix thereby which") || at == 0;
    let mine = finite && mine && said(clause, at) && !clause.has("makes");
    let how = if finite { mine.then_some(Telling::State) } else { told };
    let gone = clause.is(at, "gone") && how == Some(Telling::Active);
    let part = clause.is(at + 1, "one two three four some most several part half") || clause.has("wrong question");
    let Some(how) = how.filter(|_| !gone && !part) else { return Vec::new() };
    let words = clause.has(WORDING);
    let kind = subjects(clause).into_iter().find_map(|(_, subject)| match subject {
        CheckSubject::Kind(kind) => Some(kind),
        CheckSubject::Command(words) => kind_of_command(&words),
        _ => None,
    });
    let kind = kind.filter(|kind| *kind != Tests).or(clause.has("compile compiler compilation").then_some(Build));
    let mut out = vec![ClaimText::Fixed(kind, how == Telling::State, words)];
    let path = |at: usize| clause.tokens.get(at).and_then(path_of);
    let within = (0..clause.tokens.len()).filter(|at| clause.is(*at, "in inside within")).find_map(|at| path(at + 1));
    let aside = clause.has("that which when where described mentioned shown caused reported showed");
    let named = path(at + 1).or_else(|| path(at + 2)).or(within);
    let found = named.filter(|_| !aside && (how == Telling::Active || words));
    out.extend(found.map(|path| ClaimText::File(if words { FileDeed::Edited } else { FileDeed::Mended }, path)));
    out
}

/// "I ran `a`", "re-ran the tests", "the tests were run".
fn ran(clause: &Clause<'_>, at: usize, other: bool) -> Option<ClaimText> {
    let end = clause.tokens.len();
    let have = clause.any(0..at, "i've we've have has been were was");
    let gerund = clause.text(at).ends_with("ing");
    let by = gerund && clause.is(at.wrapping_sub(1), "by after then") && clause.has("verified confirmed validated i");
    let told = by || (!gerund && telling(clause, at, other, TESTS).is_some());
    if (clause.is(at, "run rerun re-run") && !have) || !said(clause, at) || !told {
        return None;
    }
    let code = (at + 1..end.min(at + 5)).find(|at| clause.code(*at)).map(|at| clause.text(at));
    let command = code.filter(|code| !code.contains('_') || is_file(code) || code.contains(' '));
    if clause.is(at + 1, PROGRAMS) {
        let words = (at + 1..end).take_while(|at| clause.code(*at) || !clause.is(*at, BEHIND_COMMANDS));
        return Some(ClaimText::Ran(words.map(|at| clause.text(at)).collect::<Vec<_>>().join(" ")));
    }
    if let Some(command) = command {
        return Some(ClaimText::Ran(command.to_owned()));
    }
    let all = clause.has("all every full whole entire complete") && !clause.any(at..end, "for in of");
    let near = |place: usize| if have && at + 1 >= end { place < at } else { place > at && place - at < 6 };
    subjects(clause).into_iter().filter(|(place, _)| near(*place)).find_map(|(_, subject)| match subject {
        CheckSubject::Kind(kind) => Some(ClaimText::RanKind(kind, all)),
        _ => None,
    })
}

fn path_of(token: &Lexeme) -> Option<String> {
    let code = token.text.trim_end_matches("'s");
    let slashed = code.contains('/') && !code.contains([' ', '(', '<']) && !code.contains("://");
    (token.code && (is_file(code) || slashed)).then(|| code.to_owned())
}

/// The files that a deed at a place was done to, or done in.
fn objects(clause: &Clause<'_>, verb: usize, deed: FileDeed) -> Vec<ClaimText> {
    let mut out = Vec::new();
    let renames = deed == FileDeed::Renamed;
    // What comes is what it was done to, unless something else was named.
    let putting = clause.is(verb, PUTS);
    let mut now = (!putting).then_some(deed);
    // "Changed `a` to `b`": neither is a file that was changed.
    let mut spare = false;
    for at in verb + 1..clause.tokens.len() {
        let to_code = clause.is(at + 1, "to into from") && (clause.code(at + 2) || clause.code(at + 3));
        if let Some(path) = path_of(&clause.tokens[at]) {
            let value = (to_code && !renames && deed != FileDeed::Created) || clause.is(at + 1, KINDS);
            out.extend(now.filter(|_| !value && !spare).map(|deed| ClaimText::File(deed, path)));
            spare = value && deed == FileDeed::Edited;
        } else if clause.code(at) {
            now = now.filter(|_| renames);
        } else if clause.is(at, "in into to within inside from") {
            let points = clause.is(at - 1, POINTS);
            let digit = clause.text(at + 1).starts_with(|c: char| c.is_ascii_digit());
            let goal = clause.is(at, "to") && !clause.code(at + 1) && !clause.is(at + 1, PLACED) && !digit;
            let away = clause.is(at, "from") && !matches!(deed, FileDeed::Deleted | FileDeed::Renamed);
            if away || (goal && !points) {
                break;
            }
            now = (!points).then_some(if renames && clause.is(at, "to into") { deed } else { FileDeed::Edited });
        } else if clause.is(at, "for about on of") {
            now = (clause.is(at, "of") && clause.is(at - 1, PLACED)).then_some(FileDeed::Edited);
        } else if clause.is(at, AWAY) && !putting {
            break;
        } else if !clause.is(at, PLACED) {
            now = now.filter(|one| *one == deed && deed != FileDeed::Edited);
        }
    }
    out
}
