//! What an answer claims, and what it admits: the clauses of its sentences, by the tables of `words` (tool-contract §24).

use portcullis_command::check_of;
use portcullis_event::facts::VerificationKind::{self, Build, Lint, Tests, Typecheck};

use crate::clauses::{Clause, News, clauses};
use crate::commands::words_of;
use crate::deeds::{Speaker, deeds};
use crate::prose::{Lexeme, is_file, sentences};
use crate::words::*;

/// Claims of one answer that are judged. No honest answer has as many, and each is compared with the others.
const CLAIMS_MAX: usize = 256;

/// What is said to pass: a kind of check, all there are, those of another machine, a command by its words, or some tests by
/// the name of one, of their file or of their suite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckSubject {
    Kind(VerificationKind),
    Checks,
    Ci,
    Command(String),
    Part(String),
}

/// What is said to have happened to a file. What `Holds` is there; what is `Mended` may have been mended elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileDeed {
    Created,
    Wrote,
    Holds,
    Edited,
    Mended,
    Deleted,
    Renamed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimText {
    /// It passes; all of it, in those words; so many tests.
    Passes(CheckSubject, bool, Option<u64>),
    /// Something was repaired; by what there is, which may be a proposal; only wording.
    Fixed(Option<VerificationKind>, bool, bool),
    File(FileDeed, String),
    /// `committed`, `pushed`; nothing is left; of how it is, not of what was done.
    Git(&'static str, bool, bool),
    /// A command ran, or a kind of check did; `all`: every test, in those words.
    Ran(String),
    RanKind(VerificationKind, bool),
    Installed(Option<String>),
    /// It went well, in words that the tables do not know.
    Praise,
    /// Supplied by the agent in words that the tables do not know.
    Unknown(String),
}

#[derive(Debug, Default)]
pub struct AnswerText {
    pub claims: Vec<ClaimText>,
    /// It says that tests fail, or that only a part is done; and that anything fails.
    pub admits: bool,
    pub tells: bool,
    /// What was spoken of last: "they" means it.
    spoken_of: Vec<CheckSubject>,
    praised: bool,
}

impl AnswerText {
    pub fn read(answer: &str) -> Self {
        let mut out = Self::default();
        let (sentences, cut) = sentences(answer);
        sentences.iter().for_each(|sentence| out.sentence(sentence));
        if out.praised && !out.tells {
            out.push(ClaimText::Praise);
        }
        // Nobody read what stands there, so what was read does not support the whole.
        if cut && !out.claims.is_empty() {
            out.claims.push(ClaimText::Unknown("the rest of a very long answer".to_owned()));
        }
        out
    }

    pub fn push(&mut self, claim: ClaimText) {
        if self.claims.len() < CLAIMS_MAX && !self.claims.contains(&claim) {
            self.claims.push(claim);
        }
    }

    fn sentence(&mut self, sentence: &[Lexeme]) {
        let mut speaker = Speaker::default();
        // Subjects of a list whose verb is yet to come: "the build, the linter and the tests pass".
        let mut listed: Vec<CheckSubject> = Vec::new();
        // "Everything passes: tests, lint".
        let mut praised = false;
        for clause in clauses(sentence) {
            let beside = clause.is(0, "including even especially");
            if beside && !self.praised {
                continue;
            }
            let subjects = subjects(&clause);
            let mut news = clause.news();
            // "Verified with `a`", "so does lint": good news of what follows.
            let listing = praised && clause.goes_on;
            let same = (listing && clause.tokens.len() < 4)
                || (self.praised && (beside || clause.has("does same included too")));
            let verb = (0..clause.tokens.len()).find(|at| clause.is(*at, VERIFIED));
            let with = verb.is_some_and(|at| clause.any(at..clause.tokens.len(), "with by using via against running"));
            if news.is_empty() && !subjects.is_empty() && (same || with) {
                let good = !clause.denies(clause.tokens.len());
                news.push(News { at: verb.unwrap_or(clause.tokens.len() - 1), good, sure: true });
            }
            // "Tests pass (all 97 of them)".
            let them = count_at(&clause, clause.tokens.len()).filter(|_| clause.has("them") && news.is_empty());
            if let Some(count) = them.filter(|_| self.praised) {
                self.push(ClaimText::Passes(CheckSubject::Kind(Tests), true, Some(count)));
            }
            listed.retain(|_| clause.goes_on);
            praised = listing || (clause.has(":") && news.iter().any(|one| one.good && clause.is_so(one.at)));
            self.admits |= clause.has("except apart aside exception sauf") && !clause.unreal;
            for one in &news {
                let about = listed.iter().cloned().chain(self.subjects_of(&clause, &subjects, one)).collect();
                self.news(&clause, one, about);
            }
            let aside = clause.is(0, "after before for with without during in on since from by of") || !news.is_empty();
            listed.retain(|_| news.is_empty());
            listed.extend(subjects.iter().filter(|_| !aside).map(|(_, subject)| subject.clone()));
            if !subjects.is_empty() {
                self.spoken_of = subjects.into_iter().map(|(_, subject)| subject).collect();
            }
            deeds(&clause, &mut speaker).into_iter().for_each(|deed| self.push(deed));
        }
    }

    fn news(&mut self, clause: &Clause<'_>, one: &News, about: Vec<CheckSubject>) {
        if !one.good {
            return self.bad_news(clause, one.at, &about);
        }
        if handed_on(clause, one.at) || !clause.is_so(one.at) {
            return;
        }
        if !clause.is_whole() {
            self.admits |= about.iter().any(is_of_tests) && !clause.has(ELSEWHERE);
            return;
        }
        self.praised = true;
        let works = clause.is(one.at, "works worked working work verified confirmed") && !clause.is(one.at + 1, "with");
        if about.is_empty() && works {
            self.push(ClaimText::Fixed(None, true, false));
        }
        for subject in about {
            let every = clause.has("all every each everything whole entire full complete 100% both");
            let count = count_at(clause, one.at).filter(|_| is_of_tests(&subject));
            self.push(ClaimText::Passes(subject, every, count));
        }
    }

    fn bad_news(&mut self, clause: &Clause<'_>, at: usize, about: &[CheckSubject]) {
        let still = clause.has("still remains remain left there there's remaining as one two three 1 2 3 has");
        let then = clause.has("before earlier previously originally initially") && !clause.has("as than like");
        let past = then || (clause.any(0..at, "was were had used") && !still);
        let adjective = clause.is(at, "failing failed broken") && clause.is(at + 1, TESTS);
        let soft = clause.is(at, "warning warnings issue issues problem problems error errors regression regressions");
        let over = past || ((adjective || soft) && !still);
        let wished = clause.any(0..at, "would could might may can") || clause.has(INTENDED);
        if clause.unreal || over || wished || clause.has(FIXES) {
            return;
        }
        self.tells = true;
        let name = |at| clause.code(at) && !is_file(clause.text(at)) || clause.text(at).parse::<u64>().is_ok();
        let one_of = clause.any(0..at, ONE_OF) || clause.tokens.len() < 4 || (0..at).any(name);
        self.admits |= one_of || about.iter().any(is_of_tests);
    }

    /// What news at a place are about: what stands before them, behind them, or was spoken of.
    fn subjects_of(&self, clause: &Clause<'_>, subjects: &[(usize, CheckSubject)], one: &News) -> Vec<CheckSubject> {
        let before = subjects.iter().rfind(|(at, _)| *at <= one.at);
        let near = |at: usize| at > one.at && at - one.at < 7 && (one.sure || clause.any(one.at..at, "under with by"));
        let behind = subjects.iter().find(|(at, _)| near(*at));
        // Of a command that checks nothing, "all good" may be said of what it showed.
        let fits = |subject: &&CheckSubject| match subject {
            CheckSubject::Command(words) => one.sure || kind_of_command(words).is_some(),
            _ => true,
        };
        if let Some((_, subject)) = before.or(behind) {
            return Some(subject).filter(fits).cloned().into_iter().collect();
        }
        let filler = |at| clause.is(at, ADVERBS) || clause.is(at, FILLERS) || clause.text(at).parse::<f64>().is_ok();
        let bare = (0..one.at).all(filler);
        let counts = clause.is(one.at, COUNTED) && (bare || clause.any(0..one.at, "all everything both it's"));
        match self.spoken_of.as_slice() {
            [] if counts => vec![if bare { CheckSubject::Kind(Tests) } else { CheckSubject::Checks }],
            spoken_of if bare || clause.any(0..one.at, PRONOUNS) => spoken_of.iter().filter(fits).cloned().collect(),
            _ => Vec::new(),
        }
    }
}

fn is_of_tests(subject: &CheckSubject) -> bool {
    let of_command = matches!(subject, CheckSubject::Command(words) if kind_of_command(words) == Some(Tests));
    of_command || matches!(subject, CheckSubject::Kind(Tests) | CheckSubject::Part(_) | CheckSubject::Checks)
}

pub fn kind_of_command(words: &str) -> Option<VerificationKind> {
    check_of(&words_of(words)).map(|check| check.kind)
}

/// What each word of a clause names that can pass.
pub fn subjects(clause: &Clause<'_>) -> Vec<(usize, CheckSubject)> {
    let mut out: Vec<(usize, CheckSubject)> = Vec::new();
    let part = |name: &str| Some(CheckSubject::Part(name.replace("end-to-end", "e2e")));
    let kinds = [(BUILDS, Build), (LINTS, Lint), (TYPES, Typecheck), (TESTS, Tests)];
    for (at, token) in clause.tokens.iter().enumerate() {
        let last = at.wrapping_sub(1);
        let kind = kinds.iter().find(|(list, _)| token.is(list)).map(|(_, kind)| *kind);
        let subject = match kind {
            _ if token.is("clippy") => Some(CheckSubject::Command("cargo clippy".to_owned())),
            _ if token.is(TOOLS) => Some(CheckSubject::Command(token.text.clone())),
            _ if token.code => of_code(&token.text, clause.is(last, "test spec") || clause.is(at + 1, "test spec")),
            Some(Tests) if token.is("test spec") && (clause.code(last) || clause.code(at + 1)) => None,
            Some(Tests) if clause.is(last, SUITES) => part(clause.text(last)),
            Some(Tests) if clause.is(at + 1, "in for of under from") && clause.code(at + 2) => {
                part(clause.text(at + 2))
            }
            Some(kind) => Some(CheckSubject::Kind(kind)),
            None if token.is("check checks checker") && clause.is(last, "type") => Some(CheckSubject::Kind(Typecheck)),
            None if token.is("checks check") && (at == 0 || clause.is(last, DETERMINERS)) => Some(CheckSubject::Checks),
            None if token.is("ci pipeline actions") => Some(CheckSubject::Ci),
            None => part(&token.text).filter(|_| token.text.contains('_')),
        };
        // "The CI build", "the lint check": the first names it.
        let follows = out.last().is_some_and(|(place, _)| place + 1 == at) && !token.code && !token.is(TOOLS);
        out.extend(subject.filter(|_| !follows).map(|subject| (at, subject)));
    }
    out
}

fn of_code(code: &str, test: bool) -> Option<CheckSubject> {
    let single = !code.contains(char::is_whitespace);
    let script = format!("sh {code}");
    let name = test || code.to_ascii_lowercase().contains("test") || (code.contains('_') && !is_file(code));
    match kind_of_command(code) {
        Some(_) => Some(CheckSubject::Command(code.to_owned())),
        None if single && is_file(code) && kind_of_command(&script).is_some() => Some(CheckSubject::Command(script)),
        None if single => name.then(|| CheckSubject::Part(code.to_owned())),
        None => (!code.starts_with("git ")).then(|| CheckSubject::Command(code.to_owned())),
    }
}

/// "The test passes 2 and 3 to it": something is handed on.
fn handed_on(clause: &Clause<'_>, at: usize) -> bool {
    let value = clause.code(at + 1) || clause.is(at + 1, HANDED) || clause.text(at + 1).parse::<f64>().is_ok();
    let checks = clause.any(at..at + 6, TESTS) || clause.any(at..at + 6, "checks check");
    clause.is(at, "pass passes passed passing") && value && !checks
}

/// How many are said to pass: "all 12 tests pass", "4 passed", "12/12".
fn count_at(clause: &Clause<'_>, at: usize) -> Option<u64> {
    let number = |at: usize| clause.text(at).split('/').next()?.parse::<u64>().ok().filter(|count| *count > 0);
    let tests = |at: usize| clause.is(at - 1, ":") || clause.is(at + 1, TESTS) || clause.is(at + 1, "cases");
    let behind = || (at + 1..at + 6).filter(|at| tests(*at)).find_map(number);
    (at.saturating_sub(5)..=at).rev().find_map(number).or_else(behind)
}
