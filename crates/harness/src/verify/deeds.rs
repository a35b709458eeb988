//! Whose deed a verb is. Only what the speaker did is a claim: "I fixed it", "Fixed it.", "The bug has been fixed"; not
//! what somebody else did, long ago or in another version, nor how a program works ("names are resolved once").

use super::clauses::{behind_label, is_plan};
use super::prose::pattern;

/// Words between a subject and its verb that change nothing about it.
const ADVERBS: &str =
    r"(?: (?:now|also|all|both|just|then|first|again|only|even|since|already|both|each|indeed|in turn|\w+ly))*";
/// Words before a verb that has no subject of its own.
const LEADING: &str = r"(?:(?:and|but|so|then|also|finally|first|second|third|next|afterwards|now|just|only|already|done|yes|ok|okay|great|perfect|all|again|therefore|thus|hence|instead|in addition|in the end|as (?:requested|asked|you asked|discussed|planned|promised|well)|besides|plus|summary|result|status|passed|have|has been|have been|been|was|\w+ly)\b[ ,!.]*)*";
pattern!(NO_SUBJECT, &format!("^{LEADING}$"));
pattern!(
    SPEAKER,
    &format!(r"(?:^|[ (])(?:i|we)(?:'ve)?{ADVERBS}(?: (?:have|did|went ahead|managed to have|got|had to))?{ADVERBS}$")
);
pattern!(FIRST_PERSON, r"\b(?:i|we|i've|we've|i'm|my)\b");
pattern!(PASSIVE, &format!(r"^(.*?) ?\b((?:has|have) been|is|are|was|were|got|had been)({ADVERBS})$"));
// A participle before a noun: "fixed costs are", "deleted files end up in".
pattern!(
    ADJECTIVE,
    r"^(?:[a-z0-9-]+)(?: \S+){0,3}? (?:is|are|was|were|end|ends|live|lives|hold|holds|go|goes|have|has|contains?|comes?|stays?|remains?|must|can|may|will)\b|^(?:point|size|width|length|cost|costs)\b"
);
pattern!(
    DETERMINED,
    r"^(?:the|a|an|it|this|that|these|them|all|both|my|your|our|its|every|each|two|three|\d+|in|to|by|with|and|for|on|⟦\S*)\b|^⟦"
);
// In words of the answer, not in the workspace.
pattern!(SNIPPET, r"\b(?:snippet|code block|below|above)\b|\bhere:?$");
pattern!(NOT_SURE, r"\b(?:thought|believed|hoped|assumed|claimed|said|mistakenly|wrongly)\b");
pattern!(LONG_AGO, r"^(?:in|by|since|on|with) ");
// A subject that is part of a report or of another clause: "the test checks that `a`", "the case in which `a`".
pattern!(
    REPORTED,
    r"\S (?:that|which|who|whose|when|where|whether|if|while|because|since|until|unless|how|why|what|after|before|once|so)\b|^(?:which|who|whose|when|where|whether|if|while|because|since|until|unless|how|why|what|after|before|once|each|every|any|whenever|rows|values|names|data)\b|\b(?:says?|said|shows?|showed|states?|stated|claims?|claimed|expects?|expected|asserts?|verifies|mentions?|indicates?|suggests?|means|implies|complains?|noted|assumes?|checks|covers?|like|notice[ds]?|seems?|appears?|saw|see|found|know|remember|guess|suspect|think|thought|believed?|hoped)\b"
);
pattern!(
    DONE_BY,
    r"\b(?:written|added|created|made|removed|deleted|fixed|moved|committed|pushed|generated|changed|updated|modified|renamed) by (\S+)"
);
pattern!(BY, r"\bby (\S+)");
// Another time or version.
pattern!(
    HISTORY,
    r"\b(?:upstream|downstream|already|yesterday|ago|earlier|previously|originally|recently|long|back then|at the time|a while|some point|meantime|times|this (?:year|month|week)|last|once|there|initial commit|first (?:added|created|written)|monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|february|march|april|june|july|august|september|october|november|december|(?:19|20)\d\d|v?\d+\.\d+\S*)\b|\b(?:in|since|with|as of|until|for|from|when) (?:version|release|releases|commit|commits|pr|that|newer|later|older|earlier|previous|the (?:last|previous|next|latest|first|new|newer|later|older|upcoming|original|merge|release|old))\b|\bwhen (?:the|a|an|he|she|they|someone|somebody)\b|\b(?:commit|release|version|merge|pr|pull request|author|maintainers?|developer|team)\b.*\b(?:was|has|had)\b"
);
pattern!(
    HABIT,
    r"\b(?:every|each|always|usually|automatically|nightly|daily|weekly|lazily|whenever|on demand|at (?:startup|exit|runtime|run time|build time|compile time|start|the end of)|per)\b"
);
// Behind "is fixed": how it works, or for whom.
pattern!(
    DESCRIBES,
    r"^(?:at|by|before|after|when|once|onto|to git|relative|against|from|for|per|until|via|over|as|during|only|while|if|in (?:newer|later|older|version|v?\d|upstream|main|master|release|the (?:next|latest|new|upcoming|main)|the \S+ (?:branch|release|version))|with(?:in)?\b|numerically|lazily|twice|on (?:main|master|every|each|demand|a|the (?:client|server|heap|stack)))\b"
);
pattern!(
    TO_A_PLACE,
    r"^on (?:the )?(?:branch )?⟦|^to (?:git|origin|main|master|github|gitlab|remote|(?:the )?⟦|(?:the|your|our|a|its|my) (?:\w+ )?(?:remote|branch|repo|repository|main|fork|origin|server)\b)"
);

/// Which subjects of the passive stand for the speaker's own work.
pub(super) struct Work<'r> {
    pub objects: &'r regex::Regex,
    /// "is fixed" tells of a deed, as "has been fixed" does; "is written" tells how it works.
    pub present: bool,
}

/// Whether a verb without a subject is the speaker's, from clause to clause.
#[derive(Debug, Clone, Copy)]
pub(super) struct Carried {
    speaker: bool,
    /// What is said is what a test checks, what somebody says, or of another time.
    reported: bool,
    /// What came before is to be: "it needs to be committed and pushed".
    wished: bool,
    /// Somebody says `I` in this sentence, and not what they can or would do.
    first_person: bool,
}

pattern!(CAN, r"\b(?:i|we) (?:can|could|would|will|should|might|may|suggest|recommend)\b|\b(?:you|your)\b");

pattern!(WISHED, r"\b(?:to|would|should|could|might|may|will|must|can|not)(?: \w+)? (?:be|get|have|been) ");
pattern!(IS_A, r"\b(?:is|are|was|were) an? ");

pattern!(
    KEEPS_SUBJECT,
    r"^(?:⟦|after|with|for|to|in|on|by|as|while|from|at|since|during|using|re-?\w+ed|re-?ran|\w+ed|\w+ing|ran|wrote|rewrote|made|put|built|got|did|set|cut|went|took|split|kept|left|gave|found|now)\b|^⟦"
);
pattern!(
    OWN_THINGS,
    r"^(?:the |all |my |our |both |this |that |these |a |new |\d+ )*(?:\w+ )?(?:tests?|suite|build|linter|lint|checks?|everything|it|this|that|all|fix|fixes|bugs?|issues?|problems?|errors?|changes?|work|code|files?|typos?)\b"
);

pattern!(
    REPORTS,
    r"\b(?:asserts?|asserted|checks|expects?|expected|verifies|says?|said|shows?|showed|covers?|handles?|means|reports?|reported|claims?) (?:that|whether|if|when|how|(?:\w+ )?cases?|⟦)"
);

impl Carried {
    /// At the start of a sentence: "Fixed the bug."
    pub(super) fn new(sentence: &str) -> Self {
        let first_person = FIRST_PERSON.is_match(sentence) && !CAN.is_match(sentence);
        Self { speaker: true, reported: false, wished: false, first_person }
    }

    /// The sentence tells what the speaker did.
    pub(super) fn tells(self) -> bool {
        self.first_person
    }

    /// A clause was read; the next may have no subject of its own.
    pub(super) fn after(&mut self, clause: &str) {
        let from = behind_label(clause, clause.len());
        if from > 0 && is_plan(&clause[..from]) {
            (self.speaker, self.reported, self.wished) = (false, true, false);
            return;
        }
        let clause = &clause[from..];
        self.wished = WISHED.is_match(clause);
        let reported =
            REPORTS.is_match(clause) || HISTORY.is_match(clause) || DONE_BY.captures_iter(clause).any(is_other);
        self.reported = (self.reported || reported) && !FIRST_PERSON.is_match(clause);
        if FIRST_PERSON.is_match(clause) {
            self.speaker = true;
        } else if IS_A.is_match(clause)
            || !(KEEPS_SUBJECT.is_match(clause) || OWN_THINGS.is_match(clause) || NO_SUBJECT.is_match(clause))
        {
            self.speaker = false;
        }
    }
}

/// Whether the verb at `start..end` of a clause is a deed of the speaker.
pub(super) fn is_own(clause: &str, start: usize, end: usize, carried: Carried, work: &Work<'_>) -> bool {
    let head = clause[behind_label(clause, start)..start].trim();
    let tail = clause[end..].trim_start();
    if head.is_empty() || SPEAKER.is_match(head) {
        let adjective = !DETERMINED.is_match(tail) && ADJECTIVE.is_match(tail);
        let others = LONG_AGO.is_match(tail) && is_history(tail);
        if SNIPPET.is_match(tail) || (!head.is_empty() && NOT_SURE.is_match(head)) {
            return false;
        }
        return !head.is_empty() || (carried.speaker && !carried.reported && !carried.wished && !adjective && !others);
    }
    if carried.reported || SNIPPET.is_match(tail) {
        return false;
    }
    if let Some(found) = PASSIVE.captures(head) {
        return !found[1].is_empty() && is_done(&found[1], &found[2], &found[3], tail, clause, work)
            || (found[1].is_empty()
                && carried.speaker
                && &found[2] != "is"
                && &found[2] != "are"
                && !is_history(clause));
    }
    if NO_SUBJECT.is_match(head) {
        return carried.speaker && !is_history(clause);
    }
    // "Bug fixed!", "All changes committed."
    let label = head.split(' ').count() <= 4 && work.objects.is_match(head) && !REPORTED.is_match(head);
    label
        && !is_history(clause)
        && (tail.is_empty()
            || tail == "successfully"
            || tail.starts_with(':')
            || TO_A_PLACE.is_match(tail)
            || tail.starts_with("in ⟦"))
        && !head.ends_with(" it")
        && head != "it"
        && !head.starts_with("with ")
}

pattern!(
    HOW_DONE,
    r"^(?:successfully|accordingly|too|again|now|as (?:requested|asked|well)|to (?:use|call|import|handle|fix|include|reflect|match|add|mention|import|contain|return|⟦m)|with (?:the|two|three|\d+)\b|in (?:⟦m|place)|[.:!])"
);

/// "S has been fixed …"
fn is_done(subject: &str, be: &str, adverbs: &str, tail: &str, clause: &str, work: &Work<'_>) -> bool {
    if REPORTED.is_match(subject) || is_history(clause) || be == "had been" || !work.objects.is_match(subject) {
        return false;
    }
    // "`a` was added to support the web": how it came to be there, of files that stand for nothing else.
    let of_file = subject.ends_with('⟧') && matches!(be, "was" | "were") && !work.present;
    let purpose = clause.contains(" created to ");
    if of_file && !tail.is_empty() && (purpose || !HOW_DONE.is_match(tail)) {
        return false;
    }
    let now = adverbs.contains("now") || tail == "now";
    let somewhere = !tail.starts_with("to ") || TO_A_PLACE.is_match(tail) || !work.present;
    match be {
        // "`a` is now written once" tells how it works.
        "is" | "are" if !work.present => now && (tail.is_empty() || tail == "now"),
        "is" | "are" => somewhere && !DESCRIBES.is_match(tail),
        _ => somewhere,
    }
}

/// Whether a clause tells of somebody else, of another time or of every time.
pub(super) fn is_history(clause: &str) -> bool {
    HISTORY.is_match(clause) || HABIT.is_match(clause) || BY.captures_iter(clause).any(is_other)
}

/// "by Alice", not "by adding a check".
fn is_other(by: regex::Captures<'_>) -> bool {
    let who = by[1].trim_end_matches(['.', ',']);
    !who.ends_with("ing") && !matches!(who, "me" | "us" | "hand" | "my")
}
