//! Which part of a sentence is said to be so: not what is negated, conditional, wished, planned, of another time or
//! place, or attributed to somebody else.

use super::prose::pattern;

/// Bytes of a clause that are looked at: each verb in it is looked at with all that stands before it.
const CLAUSE_MAX: usize = 2_000;

// What somebody does not say to be so. Looked for up to the end of a phrase.
pattern!(
    NOT_SO,
    r"\b(?:would|should|could|might|may|will|won't|can|cannot|can't|shall|must|needs?|want|wants|plan(?:s|ning)? to|going to|expect(?:s|ed)?|hopefully|hope|likely|probably|presumably|supposed(?:ly)?|ideally|allegedly|ensure|make sure|makes sure|making sure|verify|confirm|check (?:that|if|whether)|see (?:if|whether)|so that|in order|let me|let's|i'll|we'll|it'll|they'll|you'll|tr(?:y|ied|ying)|attempt(?:s|ed|ing)?|to be|ready to|able to|assum(?:e|es|ed|ing)|until|unless|whether|please|thought|believed|mistaken(?:ly)?|wrongly|claiming|pretend(?:ing)?|takes for|to see|goal|aim(?:s|ed)?|todo|pending|required?|wish(?:es|ed)?|i'd|ought to|if)\b"
);
pattern!(
    NEGATED,
    r"\b(?:not|no|never|none|neither|nor|without|cannot|unable|nothing|nobody|fail|fails|failed|failing|failure|failures|yet to|instead of|rather than|half|most|some|several|few|only|many|far from|skipped|partially|partly|avoid(?:ed|ing|s)?|nicht|kein|keine|niet|geen|nessun|non|pas)\b|n't\b|n’t\b|ningún|⟦x⟧|\b(?:0|zero)(?: ?%)?(?: of the)?(?: \w+)? (?:tests?|specs?|cases?|passed|passing|pass|green|bugs?|issues?|problems?|commits?|files?)\b"
);
// What takes back what stands before it: "Tests pass: no", "I committed nothing", "Fixed bugs: 0".
pattern!(
    DENIED,
    r"^(?: so far| yet)?(?:(?: ?[\w⟦⟧]+){0,2} ?[:=?—–-])? ?(?:no|none|nothing|false|not|neither|never|nobody|zero|0|nil|n/a|⟦x⟧)(?:$|[ .,!]| ?/)"
);
// "All tests pass no matter what", "3 passed 0 failed".
pattern!(
    NOT_DENIED,
    r"^[ :=—–-]*(?:no|not|zero|0|nothing|never)(?: more| longer| single)? (?:matter|doubt|errors?|failures?|failed|failing|skipped|ignored|warnings?|problems?|issues?|regressions?|only|else|again)\b"
);
pattern!(
    DENIED_AT_END,
    r"(?:[:=?—–] ?| )(?:no|none|false|not yet|nothing(?: yet)?|never|n/a|⟦x⟧(?: failed)?|declined|denied|refused)$"
);
pattern!(
    ATTRIBUTED,
    r"\b(?:you|user|users|issue|ticket|readme|docs?|documentation|comment|he|she|task|instructions?|description|author|pr|changelog|badge|⟦quoted⟧)(?: \w+)? (?:said|says?|saying|mentioned|mentions?|claims?|claimed|asks?|asked|wrote|reports?|reported|states?|stated|told|requested|wanted)\b|\baccording to\b|\b(?:previously|originally|used to|at first|initially|formerly|in the past)\b|\bbefore (?:my|the|this|these|your|any|that)\b"
);
// Another time, place or wish, for what is said of a state.
pattern!(
    ELSEWHERE,
    r"\b(?:earlier|yesterday|ago|last (?:week|month|night|year|time|run)|rarely|seldom|hardly|barely|sometimes|occasionally|intermittently|usually|often|false|untrue|wrong|incorrect|doubt|unsure|unclear|unlikely|before|once|as soon as|upstream|reverted|undone|stashed|excluded|disabled|commented out|except|apart from|aside from|other than|excluding|save for|nearly|almost|virtually|practically|to make|making|to get|getting|\w+ing (?:this|that|it) makes)\b|^for (?:the |all |your |these )*(?:\w+ )?tests? to\b|^(?:this|that) way\b|\b(?:one|two|three|four|five|six|seven|eight|nine) out of\b|\b(?:two|three|four|five|six|seven|eight|nine) of\b|\b\d{1,2} ?% of\b|\bon (?:the |your |their |a )?(?:main|master|base|default|old|previous|other|your|their|his|her|another)\b|\bon your\b|\b(?:with|in|under|for|by) (?:option|variant|alternative|approach) \w+\b|\b(?:other|remaining|rest of the|first|last|next)(?: \w+)? (?:tests?|specs?|cases?|checks?)\b|\b(?:stop(?:ped|s)?|done|complete|finished|over|merge|ready|wait(?:ed|ing)?|only) when\b|\bwhen (?:all|the|every|these|those|your)\b"
);
pattern!(
    LATER,
    r"\b(?:if|once|unless|provided|assuming|as long as|when (?:you|the|it|they|run|using|there|a|an|this|that|no)|when i (?:replace|change|use|add|remove|set|swap|comment|skip|disable|run|do|apply|revert)|whenever|after you|except|apart from|aside from|other than|besides|excluding|but one|only|intermittently|sometimes|occasionally|most of the time|at times|for you|on your|yesterday|last (?:week|month|night|year)|ago|in theory|in principle|in isolation|individually|separately|one by one|one at a time|on (?:linux|windows|macos|mac)|save (?:one|for|two))\b|\b(?:disabled|reverted|excluded|skipped|ignored|stashed)$|in my (?:head|mind)|on paper|on (?:the )?(?:main|master|base|default|old|previous|other)|^ for (?:some|most|a few|certain|\d|positive|negative|small|simple|the (?:first|simple|common))\b|^ (?:is|was|are|would be) (?:wrong|false|not|untrue|incorrect|an?|the|what|my|our|your)\b|^ (?:would|should|could|might|may|depends?|requires?|means)\b"
);
pattern!(
    CONDITION,
    r"^(?:and |but |so |then |or )?(?:if|whenever|unless|until|assuming|provided|before (?:you|we|merging|anyone|it|that|this can)|after you|suppose|in case|should you|(?:had|were) (?:i|we|you|it|they|the|that|this)|after (?:all |the |these |your )*(?:tests?|suite|checks?|ci|build)(?: \w+)? (?:pass|passes|succeed|succeeds|is green|are green))\b"
);
pattern!(WHEN, r"^(?:and |but |so |then |or )?(?:when|once|as soon as)\b");
// Of something that was done: "Once I fixed it, …", "When running the tests, …".
pattern!(
    WHEN_DONE,
    r"^(?:and |but |so |then )?(?:when|once|as soon as) (?:(?:i|we)(?:'d|'ve| had| have)? (?:ran|re-?ran|made|did|put|got|wrote|rewrote|\w+ed)|(?:re-?)?running|testing)\b"
);
// "Change line 3 and the tests pass": what follows is for whoever does it.
pattern!(
    INSTRUCTION,
    r"^(?:just |simply |please |then |now |first )?(?:do|use|apply|change|replace|rename|restart|clear|run|set|add|remove|delete|put|install|update|edit|make|try|switch|move|copy|paste|rebuild|upgrade|revert|commit|push|merge|create|open|fix|call|pass|wrap|insert|swap|import|enable|disable|configure) (?:the|a|an|this|that|it|your|all|both|every|line|lines|⟦m)(?:$|\W|\d)"
);
pattern!(
    DONE_WHEN,
    r"\b(?:done|complete|completed|finished|over|ready|stop|stops|stopped|merge|ship|wait|waiting) (?:when|once|if|as soon as|until)\b"
);
// "With the change reverted, …": what follows is not so now.
pattern!(
    ASIDE_FROM_IT,
    r"^(?:with|without|on|in|under|for|using)\b.*\b(?:reverted|undone|stashed|excluded|ignored|disabled|skipped|commented out|main branch|main|master|your machine|option \w+)$|^without (?:my|the|this|that|your|these|it)\b"
);
pattern!(CLAUSE, r",| and | but | so | then | while | although | though | because | however | yet |\(|\)|;");
/// What is to be, not what is: "Acceptance criteria:", "Next steps:", "Option A:".
const TO_BE: &str = r"\b(?:plan|plans|todo|to[- ]do|next|remaining|left|remains|criteria|criterion|definition of done|goals?|objectives?|requirements?|required|expected|expectations?|options?|phase|drafts?|proposal|proposed|suggest(?:ed|ions?)|recommend(?:ed|ations?)?|would|should|could|will|needs?|needed|must|checklist|before (?:merging|you)|how to|to (?:verify|test|reproduce|do|run)|roadmap|if|once|ideas?|you (?:asked|wanted|requested)|not (?:done|yet|verified|tested|true|the case)|missing|commit (?:messages?|titles?)|open (?:points|questions|issues)|unverified|untested|undone|false|wrong)\b";
pattern!(PLAN, TO_BE);
// What others did: "Changelog:", "The last commits:", "The diff shows:".
pattern!(
    TOLD,
    r"\b(?:change ?log|release notes?|history|commits|(?:the|git|commit) (?:log|diff|status)|pr|prs|pull requests?|upstream|versions?|authors?|previous|last (?:week|month|release))\b"
);
pattern!(MINE, r"\b(?:i|we|i've|we've|my|our)\b");
pattern!(
    MET,
    r"\b(?:met|fulfilled|satisfied|completed|achieved|i did|done:|is done|are done|all done|no (?:\w+ )?doubt)\b|^(?:there (?:is|are) )?(?:no|nothing)\b"
);

/// Whether a label, heading or introduction says that what follows is to be, and is not yet, or is of others.
pub(super) fn is_plan(label: &str) -> bool {
    (PLAN.is_match(label) && !MET.is_match(label)) || (TOLD.is_match(label) && !MINE.is_match(label))
}

/// The clauses of a sentence.
pub(super) fn clauses(sentence: &str) -> impl Iterator<Item = &str> {
    CLAUSE
        .split(sentence)
        .map(|clause| &clause[..clause.floor_char_boundary(CLAUSE_MAX)])
        .map(|clause| clause.trim().trim_end_matches(['.', '!', ':']))
        .filter(|clause| !clause.is_empty())
}

/// Whether a clause makes all that follows in its sentence conditional.
pub(super) fn is_condition(clause: &str) -> bool {
    CONDITION.is_match(clause)
        || ASIDE_FROM_IT.is_match(clause)
        || DONE_WHEN.is_match(clause)
        || INSTRUCTION.is_match(clause)
        || (WHEN.is_match(clause) && !WHEN_DONE.is_match(clause))
}

/// Where the words behind the last colon before `end` begin: what is negated before it says nothing about them.
pub(super) fn behind_label(clause: &str, end: usize) -> usize {
    clause[..end].rfind(": ").map_or(0, |colon| colon + 2)
}

/// Whether what stands up to `end` in a clause is said to be so.
pub(super) fn is_so(clause: &str, end: usize) -> bool {
    let from = behind_label(clause, end);
    let upto = &clause[from..end];
    let planned = from > 0 && is_plan(&clause[..from]);
    // "What you asked for is done: …"
    let whole = if MET.is_match(&clause[..from]) { upto } else { clause };
    !planned
        && !NOT_SO.is_match(upto)
        && !NEGATED.is_match(upto)
        && !ATTRIBUTED.is_match(whole)
        && !is_denied(clause, end)
}

/// Whether what stands up to `end` is taken back behind it.
fn is_denied(clause: &str, end: usize) -> bool {
    let tail = &clause[end..];
    (DENIED.is_match(tail) && !NOT_DENIED.is_match(tail)) || DENIED_AT_END.is_match(tail)
}

/// Whether a clause begins with a label that says that the rest of its sentence is to be: "TODO: fix it, tests green."
pub(super) fn begins_plan(clause: &str) -> bool {
    clause.find(": ").is_some_and(|colon| is_plan(&clause[..colon]))
}

/// As [`is_so`], for a state: here, now and whatever else is the case.
pub(super) fn is_so_now(clause: &str, end: usize) -> bool {
    let from = behind_label(clause, end);
    // "The tests that failed earlier now pass."
    let from = clause[from..end].rfind("now ").map_or(from, |now| from + now);
    is_so(clause, end) && !ELSEWHERE.is_match(&clause[from..end]) && !LATER.is_match(&clause[end..])
}

/// Whether something is wished, tried or possible in these words.
pub(super) fn is_wish(words: &str) -> bool {
    NOT_SO.is_match(words)
}
