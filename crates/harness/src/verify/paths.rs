//! Claims about files: "created `a.rs`", "`a.rs` was deleted", "added a test to `b.rs` and `c.rs`".

use super::claims::{Said, Verb};
use super::clauses::{clauses, is_condition, is_so};
use super::deeds::{Carried, Work, is_own};
use super::prose::{Prose, is_path, pattern};

/// Verbs of which only what was put somewhere by the speaker is a claim: "put it into `a`" is an instruction, "it is placed
/// in `a`" a description.
const PUT: [&str; 5] = ["put", "placed", "inserted", "appended", "prepended"];
/// Participles of which only the place counts, whoever's deed they are said to be: "replaced `a` with `b` in `c`".
const PLACED: [&str; 10] =
    ["replaced", "introduced", "applied", "made", "bumped", "improved", "inserted", "appended", "prepended", "swapped"];
/// What takes a deed back right behind its verb: "changed nothing in `a`".
const NOTHING: [&str; 6] = ["nothing", "neither", "none", "no", "zero", "0"];
// The speaker leaves it to the reader: "(copy this over the old one)".
pattern!(FOR_YOU, r"\b(?:copy|paste|save|apply) (?:this|it|the following)\b");
pattern!(SPEAKER, r"\b(?:i|we|i've|we've|i have|we have)\b");
pattern!(OTHERS, r"\b(?:you|you've|your|somebody|someone|they|user|users)\b");

// Subjects of the passive that stand for work on files; "settings are saved in `a`" is none.
pattern!(
    WORK,
    r"⟦m\d+⟧$|\b(?:files?|tests?|helpers?|functions?|methods?|code|fix|changes?|checks?|comments?|sections?|entry|entries|lines?|imports?|documentation|docs|examples?|notes?|header|class|module|dependency|guard|bug|script|logic|implementation|type|constant|summary|report|output|results?|patch|edits?|contents?|diff|data|response|configuration|config|settings?|port|version|feature|markers?|occurrences|statements?)$"
);
// A clause of its own: "so that `a` is deleted", "the case in which `a` was removed".
pattern!(NEW_FILES, r"^(?:new|added|created) files?\b[^:]*:");
/// Words behind a file's name that make it a kind of file, or a name in a text.
const KINDS: [&str; 11] = [
    "files",
    "support",
    "format",
    "syntax",
    "handling",
    "parsing",
    "extension",
    "extensions",
    "wording",
    "references",
    "paths",
];
/// What a file may be said to have without being written.
const GIVEN: [&str; 6] = ["callers", "users", "references", "importers", "dependents", "consumers"];

/// What only leads to a file.
const POINTS: [&str; 18] = [
    "link",
    "links",
    "reference",
    "references",
    "call",
    "calls",
    "path",
    "pointer",
    "import",
    "imports",
    "duplicate",
    "alternative",
    "redirect",
    "mention",
    "mentions",
    "similar",
    "dependency",
    "version",
];
// Where a program writes it, not the speaker.
pattern!(
    BY_PROGRAM,
    r"\b(?:generated|produced|resulting|each run|every run|on exit|at startup|with (?:this|that|the (?:change|fix))|after (?:this|the|my) (?:change|fix|edit)|as a result)\b"
);

/// Where in a clause the reader is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    /// Behind the verb: what comes is what it was done to.
    Object,
    /// Behind a preposition such as `in`: what comes was edited.
    Inside,
    /// Behind a preposition, and then something else: "to the end of `a`" comes back by the next one.
    Near,
    /// At something else for good: "to import it from `b`".
    Away,
}

/// The claims about files in a sentence.
pub(super) fn path_claims(sentence: &str, prose: &Prose) -> Vec<Said> {
    let mut said = Vec::new();
    // What was done goes on over `and` and commas: "created `a`, `b` and `c`".
    let mut deed: Option<(Verb, At)> = None;
    // Files that stand before their verb: "`a` and `b` were deleted".
    let mut waiting: Vec<String> = Vec::new();
    let mut conditional = false;
    let mut carried = Carried::new(sentence);
    let work = Work { objects: &WORK, present: false };
    for clause in clauses(sentence) {
        conditional |= is_condition(clause);
        if conditional || FOR_YOU.is_match(sentence) {
            continue;
        }
        let begins_with_file = clause.starts_with('⟦');
        if !begins_with_file {
            deed = NEW_FILES.is_match(clause).then_some((Verb::Created, At::Object));
            waiting.clear();
        }
        let tokens: Vec<&str> = clause.split(' ').collect();
        if matches!(tokens.get(1), Some(&"is" | &"are" | &"was" | &"were" | &"has" | &"have")) {
            deed = None;
        }
        let mut end = 0;
        let mut passive = false;
        let mut last = "";
        // Behind a verb of putting only the place counts: "put a summary of `a` into `b`".
        let mut put = false;
        for (nth, token) in tokens.iter().enumerate() {
            end += token.len();
            let word = token.trim_matches(|c: char| matches!(c, ':' | '.' | '!' | '"' | '\''));
            if let Some(path) = path_of(word, prose) {
                let rest = &tokens[nth + 1..];
                match deed {
                    _ if rest.first().is_some_and(|next| KINDS.contains(next)) => {}
                    Some((verb, At::Object)) if is_value(verb, rest) => {
                        let away = matches!(verb, Verb::Edited);
                        deed = Some((verb, if away { At::Away } else { At::Object }));
                    }
                    Some((verb, At::Object)) => said.push(Said::File(verb, path)),
                    Some((_, At::Inside)) => said.push(Said::File(Verb::Edited, path)),
                    Some((_, At::Near | At::Away)) => {}
                    None => waiting.push(path),
                }
                passive = token.ends_with(':');
            } else if NOTHING.contains(&word) && verb_of(last).is_some() {
                deed = None;
            } else if PLACED.contains(&word) && placed(clause, end - token.len(), carried) {
                put = true;
                if passive {
                    said.extend(waiting.drain(..).map(|path| Said::File(Verb::Edited, path)));
                }
                deed = Some((Verb::Edited, At::Near));
                waiting.clear();
            } else if PUT.contains(&word) && SPEAKER.is_match(&clause[..end]) {
                put = is_so(clause, end) && !OTHERS.is_match(&clause[..end]);
                deed = put.then_some((Verb::Edited, At::Near));
                waiting.clear();
            } else if last == "now" && holds(word, &tokens[nth + 1..]) {
                let said_so = is_so(clause, end) && !OTHERS.is_match(clause) && !BY_PROGRAM.is_match(sentence);
                let files = waiting.drain(..).filter(|_| said_so);
                said.extend(files.map(|path| Said::File(Verb::Holds, path)));
                deed = None;
            } else if let Some(verb) = verb_of(word) {
                let start = end - token.len();
                let end = start + token.trim_end_matches([':', '.', '!']).len();
                let bare = matches!(clause[end..].trim(), "" | "successfully") && last.starts_with('⟦');
                if is_so(clause, end) && is_own(clause, start, end, carried, &work) {
                    if passive || bare {
                        said.extend(waiting.drain(..).map(|path| Said::File(verb, path)));
                    }
                    deed = Some((verb, At::Object));
                } else {
                    deed = None;
                    waiting.clear();
                }
            } else {
                match word {
                    "was" | "were" | "been" | "is" | "are" | "now" | "newly" | "also" | "has" | "have"
                    | "successfully" => {
                        passive |= !waiting.is_empty();
                    }
                    "the" | "a" | "an" | "new" | "file" | "files" | "module" | "script" | "folder" | "directory"
                    | "existing" | "both" | "called" | "named" | "your" | "our" | "its" | "my" | "this" | "as"
                    | "old" | "config" | "test" | "tests" => {}
                    // "renamed `a` to `b`"
                    "to" | "into" if matches!(deed, Some((Verb::Renamed, At::Object))) => {}
                    "of" if put && matches!(last, "top" | "bottom" | "end" | "start" | "beginning") => {
                        deed = deed.map(|(verb, _)| (verb, At::Inside));
                    }
                    "from" | "of" | "at" if put => {}
                    // "a link to `a`": the next preposition leads back.
                    "to" | "of" if POINTS.contains(&last) => {
                        deed = deed.map(|(verb, at)| (verb, if at == At::Away { At::Away } else { At::Near }));
                    }
                    "from" if matches!(deed, Some((Verb::Edited | Verb::Wrote | Verb::Created, _))) => {
                        deed = deed.map(|(verb, _)| (verb, At::Away));
                    }
                    "in" | "into" | "to" | "within" | "inside" | "from" | "of" | "at" => {
                        deed = deed.map(|(verb, at)| (verb, if at == At::Away { At::Away } else { At::Inside }));
                    }
                    // "a test for `a` to `b`": the next preposition leads back.
                    "for" | "about" | "on" => {
                        deed = deed.map(|(verb, at)| (verb, if at == At::Away { At::Away } else { At::Near }));
                        waiting.clear();
                    }
                    "following" if last != "the" => deed = deed.map(|(verb, _)| (verb, At::Away)),
                    "with" if put => {}
                    "using" | "with" | "by" | "like" | "via" | "per" | "against" | "than" | "after" | "that"
                    | "which" | "use" | "call" | "match" | "import" | "where" | "before" | "under" | "how" | "when"
                    | "if" | "so" | "because" | "reads" | "reading" | "mentions" | "whether" | "instead" | "except" => {
                        deed = deed.map(|(verb, _)| (verb, At::Away));
                        waiting.clear();
                    }
                    _ => {
                        if let Some((verb, At::Inside)) = deed {
                            // "changed the port to 8080 in `a`", not "changed it to read `a`".
                            let value = word.starts_with(|c: char| c.is_ascii_digit());
                            deed = Some((verb, if last == "to" && !value { At::Away } else { At::Near }));
                        }
                        if !passive {
                            waiting.clear();
                        }
                    }
                }
            }
            last = word;
            end = (end + 1).min(clause.len());
        }
        carried.after(clause);
        // Only a list goes on behind its comma: "`a` was left unchanged, `b` was changed".
        if !last.starts_with('⟦') {
            waiting.clear();
        }
    }
    said
}

/// Whether something was put somewhere by the speaker.
fn placed(clause: &str, start: usize, carried: Carried) -> bool {
    let end = clause[start..].find(' ').map_or(clause.len(), |length| start + length);
    is_so(clause, end) && is_own(clause, start, end, carried, &Work { objects: &WORK, present: false })
}

/// Whether a file is said to hold something: "now contains", but not "now has been" or "now has three callers".
fn holds(word: &str, rest: &[&str]) -> bool {
    let something = !matches!(rest.first(), None | Some(&"been" | &"no" | &"not" | &"to" | &"zero" | &"only"));
    let given = rest.iter().take(3).any(|word| GIVEN.contains(word));
    let verb = matches!(
        word,
        "uses"
            | "handles"
            | "supports"
            | "validates"
            | "contains"
            | "contain"
            | "has"
            | "have"
            | "includes"
            | "include"
            | "holds"
            | "hold"
            | "reads"
    );
    verb && something && !given
}

/// Whether a file's name is what was written, not the file: "added `a` to `b`", "changed `a` to `b`".
fn is_value(verb: Verb, rest: &[&str]) -> bool {
    let joins = match verb {
        Verb::Wrote | Verb::Edited => matches!(rest.first(), Some(&"to" | &"into")),
        Verb::Deleted => rest.first() == Some(&"from"),
        Verb::Created | Verb::Holds | Verb::Renamed => false,
    };
    let mut words =
        rest.iter().skip(1).skip_while(|word| matches!(**word, "the" | "your" | "our" | "its" | "file" | "a"));
    joins && words.next().is_some_and(|word| word.starts_with('⟦'))
}

fn path_of(word: &str, prose: &Prose) -> Option<String> {
    let (number, rest) = word.strip_prefix("⟦m")?.split_once('⟧')?;
    let code = prose.aside.get(number.parse::<usize>().ok()?)?;
    (matches!(rest, "" | "'s") && is_path(code)).then(|| code.clone())
}

fn verb_of(word: &str) -> Option<Verb> {
    Some(match word {
        "created" | "generated" | "scaffolded" => Verb::Created,
        "added" | "wrote" | "written" | "saved" | "overwrote" | "implemented" | "copied" => Verb::Wrote,
        "edited" | "updated" | "modified" | "changed" | "patched" | "refactored" | "adjusted" | "amended"
        | "extended" | "rewrote" | "rewritten" | "simplified" | "tweaked" | "reworked" | "touched" | "cleaned" => {
            Verb::Edited
        }
        "deleted" | "removed" | "wiped" => Verb::Deleted,
        "renamed" | "moved" => Verb::Renamed,
        _ => return None,
    })
}
