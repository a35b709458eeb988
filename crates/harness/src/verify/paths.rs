//! Claims about files: "created `a.rs`", "`a.rs` was deleted", "added a test to `b.rs` and `c.rs`".

use super::claims::{Said, Verb, clauses, is_so};
use super::prose::{Prose, is_path, pattern};

pattern!(
    CONDITION,
    r"^(?:and |but |so |then )?(?:if|once|when|whenever|unless|until|assuming|provided|as soon as|before|after you|to)\b"
);

/// Before these a verb is an adjective ("the edited `a.py`"), or somebody else's deed ("you created `a.py`").
const ARTICLES: [&str; 8] = ["the", "a", "an", "any", "your", "each", "you", "you've"];

/// Verbs of which only what was put somewhere by the speaker is a claim: "put it into `a`" is an instruction, "it is placed
/// in `a`" a description.
const PUT: [&str; 5] = ["put", "placed", "inserted", "appended", "prepended"];
pattern!(SPEAKER, r"\b(?:i|we|i've|we've|i have|we have)\b");
pattern!(OTHERS, r"\b(?:you|you've|your|somebody|someone|they|user|users)\b");

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
    for clause in clauses(sentence) {
        conditional |= CONDITION.is_match(clause);
        if conditional {
            continue;
        }
        let begins_with_file = clause.starts_with('⟦');
        if !begins_with_file {
            deed = None;
            waiting.clear();
        }
        let mut end = 0;
        let mut passive = false;
        let mut last = "";
        // Behind a verb of putting only the place counts: "put a summary of `a` into `b`".
        let mut put = false;
        let tokens: Vec<&str> = clause.split(' ').collect();
        for (nth, token) in tokens.iter().enumerate() {
            end += token.len();
            let word = token.trim_matches(|c: char| matches!(c, ':' | '.' | '!' | '"' | '\''));
            if let Some(path) = path_of(word, prose) {
                match deed {
                    Some((verb, At::Object)) => said.push(Said::File(verb, path)),
                    Some((_, At::Inside)) => said.push(Said::File(Verb::Edited, path)),
                    Some((_, At::Near | At::Away)) => {}
                    None => waiting.push(path),
                }
                passive = token.ends_with(':');
            } else if PUT.contains(&word) && SPEAKER.is_match(&clause[..end]) {
                put = is_so(clause, end) && !OTHERS.is_match(&clause[..end]);
                deed = put.then_some((Verb::Edited, At::Near));
                waiting.clear();
            } else if last == "now" && holds(word, tokens.get(nth + 1)) {
                let said_so = is_so(clause, end) && !OTHERS.is_match(clause);
                let files = waiting.drain(..).filter(|_| said_so);
                said.extend(files.map(|path| Said::File(Verb::Wrote, path)));
                deed = None;
            } else if let Some(verb) = verb_of(word).filter(|_| !ARTICLES.contains(&last)) {
                if is_so(clause, end) {
                    if passive {
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
                    | "existing" | "both" | "called" | "named" | "your" | "our" | "its" | "my" | "this"
                    | "following" | "as" | "old" | "config" | "test" | "tests" => {}
                    // "renamed `a` to `b`"
                    "to" | "into" if matches!(deed, Some((Verb::Renamed, At::Object))) => {}
                    "from" | "of" | "at" if put => {}
                    "in" | "into" | "to" | "within" | "inside" | "from" | "of" | "at" => {
                        deed = deed.map(|(verb, at)| (verb, if at == At::Away { At::Away } else { At::Inside }));
                    }
                    // "a test for `a` to `b`": the next preposition leads back.
                    "for" | "about" | "on" => {
                        deed = deed.map(|(verb, at)| (verb, if at == At::Away { At::Away } else { At::Near }));
                        waiting.clear();
                    }
                    "using" | "with" | "by" | "like" | "via" | "per" | "against" | "than" | "after" | "that"
                    | "which" | "use" | "call" | "match" | "import" | "where" | "before" | "under" => {
                        deed = deed.map(|(verb, _)| (verb, At::Away));
                        waiting.clear();
                    }
                    _ => {
                        if let Some((verb, At::Inside)) = deed {
                            deed = Some((verb, if last == "to" { At::Away } else { At::Near }));
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
    }
    said
}

/// Whether a file is said to hold something: "now contains", but not "now has been".
fn holds(word: &str, next: Option<&&str>) -> bool {
    let something = !matches!(next, None | Some(&"been" | &"no" | &"not" | &"to" | &"zero" | &"only"));
    something && matches!(word, "contains" | "contain" | "has" | "have" | "includes" | "include" | "holds" | "hold")
}

fn path_of(word: &str, prose: &Prose) -> Option<String> {
    let word = word.trim_end_matches("'s");
    let number = word.strip_prefix('⟦')?.split('⟧').next()?.parse::<usize>().ok()?;
    prose.aside.get(number).filter(|code| is_path(code)).cloned()
}

fn verb_of(word: &str) -> Option<Verb> {
    Some(match word {
        "created" | "generated" | "scaffolded" => Verb::Created,
        "added" | "wrote" | "written" | "saved" | "overwrote" | "implemented" => Verb::Wrote,
        "edited" | "updated" | "modified" | "changed" | "patched" | "refactored" | "adjusted" | "amended"
        | "extended" | "rewrote" | "rewritten" | "simplified" => Verb::Edited,
        "deleted" | "removed" => Verb::Deleted,
        "renamed" | "moved" => Verb::Renamed,
        _ => return None,
    })
}
