//! What of a sentence its author says to be so: not what is negated, wished, conditional, elsewhere or somebody else's.

use std::ops::Range;

use crate::prose::Lexeme;
use crate::words::*;

/// Tokens of a clause that are looked at: each verb in it is looked at with what stands around it.
const CLAUSE_MAX: usize = 200;

#[derive(Debug, Clone, Copy)]
pub struct Clause<'s> {
    pub tokens: &'s [Lexeme],
    /// What stands before it joins it to a list.
    pub goes_on: bool,
    /// It hangs on a condition, or is somebody else's.
    pub unreal: bool,
}

/// Good or bad news at a place of a clause; `sure`: it says so itself, as "no failures", not as "is clean".
#[derive(Debug, Clone, Copy)]
pub struct News {
    pub at: usize,
    pub good: bool,
    pub sure: bool,
}

pub fn clauses(sentence: &[Lexeme]) -> Vec<Clause<'_>> {
    let mut out: Vec<Clause<'_>> = Vec::new();
    let (mut unreal, mut from, mut goes_on) = (false, 0, false);
    for at in 0..=sentence.len() {
        // "All but one" and "a while" are one thing.
        let is = |list: &str, before: &str| {
            at > 0 && sentence.get(at).is_some_and(|t| t.is(list)) && sentence[at - 1].is(before)
        };
        if is("but", WHOLES) || is("while", "a") || sentence.get(at).is_some_and(|token| !token.is(JOINS)) {
            continue;
        }
        let clause = Clause { tokens: &sentence[from..at.min(from + CLAUSE_MAX)], goes_on, unreal };
        if !clause.tokens.is_empty() {
            unreal |= clause.is_condition();
            out.push(Clause { unreal, ..clause });
            unreal |= clause.is_told();
            goes_on = false;
        }
        goes_on |= sentence.get(at).is_some_and(|token| token.is(", and & ("));
        from = at + 1;
    }
    out
}

impl Clause<'_> {
    pub fn is(&self, at: usize, list: &str) -> bool {
        self.tokens.get(at).is_some_and(|token| token.is(list))
    }

    pub fn any(&self, mut range: Range<usize>, list: &str) -> bool {
        range.any(|at| self.is(at, list))
    }

    pub fn has(&self, list: &str) -> bool {
        self.any(0..self.tokens.len(), list)
    }

    pub fn code(&self, at: usize) -> bool {
        self.tokens.get(at).is_some_and(|token| token.code)
    }

    pub fn text(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| token.text.as_str())
    }

    /// "If …", "once …", "when you …"; not "when I ran it", "once I fixed it".
    fn is_condition(&self) -> bool {
        let at = (0..self.tokens.len()).find(|at| !self.is(*at, "and but so then or also only")).unwrap_or(0);
        let mine = self.is(at + 1, "i we i've we've");
        let label = (0..self.tokens.len()).find(|at| self.is(*at, ":"));
        let verb = self.text(at + 1 + usize::from(mine));
        let done = has("ran re-ran made did put got wrote running testing", verb) || (mine && verb.ends_with("ed"));
        self.is(at, "if whenever unless until assuming provided suppose")
            || (self.is(at, "when once") && !done)
            || (self.is(at, "before after") && self.is(at + 1, "you we merging anyone it that"))
            || (self.is(at, "had were should") && self.is(at + 1, "i we you it they the"))
            || (self.is(at, "after") && self.any(at + 1..at + 4, TESTS) && self.has("pass passes succeed"))
            || (self.is(at, "with without on under in")
                && self.any(self.tokens.len() - 1..self.tokens.len(), AWAY_FROM))
            || (self.is(at, "without") && self.is(at + 1, "my the this that your these it"))
            || (self.is(at, "in") && self.has("version release branch"))
            || label.is_some_and(|end| self.any(0..end, PLANS) && !self.any(0..end, "nothing no none"))
            || (self.is(0, ORDERS) && (self.tokens.len() == 1 || self.code(1) || self.is(1, OBJECTS)))
    }

    /// What follows is somebody else's, or for whoever does it: "you said that …", "change line 3 and …".
    fn is_told(&self) -> bool {
        let told = (0..self.tokens.len()).any(|at| self.says(at)) && !self.is(0, "as");
        told || (self.any(1..self.tokens.len(), "once until") && !self.has("i we"))
    }

    fn says(&self, at: usize) -> bool {
        let others = self.is(at, SAYS) && self.any(at.saturating_sub(2)..at, OTHERS) && !self.is(at + 1, "as now");
        self.is(at, "according") || others
    }

    /// Whether what stands at `at` is said to be so.
    pub fn is_so(&self, at: usize) -> bool {
        let unsure = |nth: usize| {
            let sees = self.is(nth, "can") && self.is(nth + 1, "confirm see report verify now");
            let asked = self.is(nth, "expected required asked requested") && self.is(nth.wrapping_sub(1), "as all you");
            let wished = self.is(nth, UNSURE) && !sees && !asked && !self.any(0..nth, "nothing");
            wished || (self.says(nth) && !self.is(0, "as"))
        };
        let able = self.any(0..at, "able managed verified confirmed got made my") && !self.denies(at);
        let to = self.is(at.wrapping_sub(1), "to") || self.any(0..at, "make making makes get getting");
        let passing = self.is(at, "passing") && self.is(at + 1, "is was");
        let when = (at..self.tokens.len()).any(|nth| self.is(nth, "when") && !self.is(nth + 1, "i we running"));
        let later = passing || when || self.any(at..self.tokens.len(), LATER);
        !self.unreal && !later && !(0..at).any(unsure) && (able || !to)
    }

    /// Whether it holds of everything, here and now.
    pub fn is_whole(&self) -> bool {
        let now = self.has("now again");
        let part = |at: usize| {
            let last = at.wrapping_sub(1);
            // "3/5", "3 of 5", "three out of four".
            let of = if self.is(at + 1, "of") { self.text(at + 2) } else { "" };
            let (some, all) = self.text(at).split_once('/').unwrap_or((self.text(at), of));
            let counted = some.parse::<u64>().is_ok() || self.is(at, "one two three four five six seven eight nine");
            let spared = self.is(last, "not the") || self.is(at + 1, "failing importantly");
            let spared = self.is(at, "only most") && spared;
            (self.is(at, PARTS) && !spared)
                || (self.is(at, ELSEWHERE) && !(now && self.is(at, "once earlier previously originally before")))
                || (self.is(at, "last") && self.is(at + 1, "week month night year"))
                || (self.is(at, "on in for")
                    && self.is(at + 1, "your their another windows linux isolation theory my main master 0"))
                || (self.is(at, "but save") && self.is(last, WHOLES))
                || some.parse::<u64>().ok().zip(all.parse::<u64>().ok()).is_some_and(|(some, all)| some < all)
                || (counted
                    && self.is(at + 1, "of out")
                    && all.parse::<u64>().is_err()
                    && !self.is(last, "every each all"))
        };
        !(0..self.tokens.len()).any(part)
    }

    pub fn denies(&self, at: usize) -> bool {
        (0..at).any(|nth| self.negates(nth))
    }

    pub fn negates(&self, at: usize) -> bool {
        let not = self.text(at).ends_with("n't") && !self.code(at);
        (not || self.is(at, NEGATIONS)) && !self.is(at + 1, "only matter doubt")
    }

    /// Everything good and bad that is said, where "no" turns one into the other.
    pub fn news(&self) -> Vec<News> {
        let mut out: Vec<News> = Vec::new();
        let mut negated: Option<usize> = None;
        for (at, token) in self.tokens.iter().enumerate() {
            let (last, next) = (at.wrapping_sub(1), at + 1);
            let exit = self.any(at.saturating_sub(6)..at, EXITS) && !token.code;
            let number = token.text.parse::<i64>().ok().filter(|_| exit);
            let parts = token.text.split_once('/').filter(|(some, all)| some == all);
            let whole = parts.is_some_and(|(some, _)| some.parse::<u32>().is_ok());
            let stands = (at == 0 || self.is(last, COPULAS)) && !self.is(next, "to for with way");
            let works = token.is("works worked working") && self.is(next, "now again");
            let fairly = (token.is(FAIRLY_GOOD) && stands) || works || (at > 0 && (token.is("100%") || whole));
            let end = next == self.tokens.len() && (self.is(last, "do does did is are") || token.text.ends_with("n't"));
            let (denies, failed) = (end && self.negates(at), token.code && token.text.starts_with("FAIL"));
            let good = token.is(GOOD) || fairly || number == Some(0);
            let bad = token.is(BAD) || failed || number.is_some_and(|number| number != 0) || denies;
            // "I did not fix the warnings."
            let left = negated.is_some_and(|from| bad && self.any(from..at, "fix resolve address solve remove"));
            if (good || bad) && !left {
                // "Tests pass: no", "failures: 0", "0 passed", but "results: 0 failures".
                let counted = self.is(at + 3, BAD) && !self.is(at + 4, ":");
                let none = self.is(next, ":") && self.is(at + 2, "0 zero not no none") && !counted;
                let never = self.any(next..at + 4, "none nothing false ✗ never") || self.is(next, "0");
                let turned = (negated.is_some_and(|from| at - from < 7) || none || never) && !denies;
                out.push(News { at, good: good != turned, sure: !fairly || turned });
                negated = (bad && self.is(next, "to")).then_some(at);
            } else if token.is(":") || (self.negates(at) && number.is_none()) {
                negated = Some(at).filter(|_| !token.is(":"));
            }
        }
        out
    }
}
