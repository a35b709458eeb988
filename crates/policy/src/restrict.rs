//! Rules that forbid a command, or pin an ask about it, in whatever form the command is written (tool-contract 13.3,
//! L32).
//!
//! A form that is certain decides as the rule says. Where a denied command could only be hidden, a person has to look:
//! in words that become known when the line runs, in those of a program that nobody knows, and in a text that a program
//! may run, such as the value of an option, a variable, or what the line gives it to read.

use std::collections::BTreeSet;

use portcullis_base::{CommandFacts, OtherForm};
use portcullis_contract::{Action, Resource};

use crate::fit::{Fit, program_key};
use crate::index::attached;
use crate::subject::Subject;
use crate::{Asker, Layer, Policy, ResourcePattern, Rule, RuleEffect, Specificity};
use portcullis_command::{self as command, ProgramReads, base, is_assignment, marks, may_be_line, may_hold_command};

/// Words of a program that nobody knows which are looked at as a line for a shell.
const LINES_MAX: usize = 16;

/// What rules say of the forms of one resource.
#[derive(Debug, Default)]
pub(crate) struct RestrictedForms {
    /// Rules that forbid, or pin an ask, for certain, each once.
    pub(crate) sure: Vec<(usize, Specificity)>,
    /// Rules whose command may be hidden in it.
    pub(crate) hidden: BTreeSet<usize>,
}

/// What is looked for.
struct Search<'a> {
    policy: &'a Policy,
    action: &'a Action,
    asker: &'a Asker<'a>,
    found: RestrictedForms,
}

impl Policy {
    /// Which rules restrict a resource beyond what its own words match. Nothing is ever allowed by it.
    pub(crate) fn restricting(
        &self,
        action: &Action,
        resource: &Resource,
        subject: &Subject,
        asker: &Asker<'_>,
    ) -> RestrictedForms {
        let mut search = Search { policy: self, action, asker, found: RestrictedForms::default() };
        match subject {
            _ if !self.index().restricts_commands() => {}
            Subject::Argv(argv) => search.argv(argv, &resource.command),
            Subject::Opaque if resource.command.hides => search.anything(),
            _ => {}
        }
        // An allow of what is opaque was written by an author who knew the denies of its layer and of those below it.
        let mut found = search.found;
        if !found.hidden.is_empty() {
            let vouching = self.vouching(action, subject, asker);
            found.hidden.retain(|rule| !self.vouched_for(*rule, subject, &vouching));
        }
        found
    }

    /// Whether one of these rules, which allow the command, allows what may hide the command of `rule`: one about what is
    /// opaque, or one that names this command further than the program alone. A rule of a weaker layer does not count.
    fn vouched_for(&self, rule: usize, subject: &Subject, vouching: &[&Rule]) -> bool {
        let weakest: Layer = self.rules()[rule].layer;
        let names = |words: &[String]| names(words, rule, self);
        vouching.iter().any(|other| other.layer <= weakest && meant_by(&other.resource, subject, &names))
    }

    /// The rules that may do so.
    fn vouching(&self, action: &Action, subject: &Subject, asker: &Asker<'_>) -> Vec<&Rule> {
        let meant = |other: &Rule| meant_by(&other.resource, subject, &|_| true);
        let allows = |other: &Rule| other.effect == RuleEffect::Allow && other.action.matches(action);
        let in_force = |other: &Rule| other.in_force(asker) && !self.is_inert(other);
        self.rules().iter().filter(|other| allows(other) && meant(other) && in_force(other)).collect()
    }
}

/// Whether a rule is about what is opaque, or names this command by words that are `accepted`.
fn meant_by(resource: &ResourcePattern, subject: &Subject, accepted: &dyn Fn(&[String]) -> bool) -> bool {
    match (resource, subject) {
        (ResourcePattern::Opaque, _) => true,
        (ResourcePattern::Argv(all), Subject::Argv(argv)) => {
            all.iter().any(|pattern| pattern.words().len() > 1 && pattern.matches(argv) && accepted(pattern.words()))
        }
        _ => false,
    }
}

/// Whether an allow names a word of what a deny forbids, or an alias that may be anything, so that its author had the deny in
/// mind.
fn names(allowed: &[String], rule: usize, policy: &Policy) -> bool {
    if may_be_alias(allowed) {
        return true;
    }
    match &policy.rules()[rule].resource {
        ResourcePattern::Argv(all) => {
            all.iter().any(|denied| allowed.iter().skip(1).any(|word| base(word) == base(denied.first())))
        }
        _ => false,
    }
}

/// Whether a configuration of the repository may say what this command of git runs.
fn may_be_alias(form: &[String]) -> bool {
    let Some((program, words)) = form.split_first() else { return false };
    program_key(program) == "git" && command::alias_verb(words).is_some()
}

/// `NAME=value`, also with a name that only `env` takes.
fn sets_variable(word: &str) -> bool {
    let name =
        |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'));
    word.split_once('=').is_some_and(|(before, _)| name(before))
}

impl Search<'_> {
    fn argv(&mut self, argv: &[String], facts: &CommandFacts) {
        self.with_forms(&marks::put_on(argv, &facts.open));
        for OtherForm { words, open } in &facts.linked {
            self.with_forms(&marks::put_on(words, open));
        }
        facts.input.iter().for_each(|text| self.text(text));
    }

    fn with_forms(&mut self, argv: &[String]) {
        self.form(argv);
        for form in command::forms(argv) {
            self.form(&form);
        }
    }

    /// One form that the command comes down to for certain.
    fn form(&mut self, form: &[String]) {
        if command::hides_program(form) {
            self.anything();
            return;
        }
        if may_be_alias(form) {
            self.anything();
        }
        for (rule, fit, specificity) in self.fitting(form) {
            match fit {
                Fit::Yes => {
                    if !self.found.sure.iter().any(|known| known.0 == rule) {
                        self.found.sure.push((rule, specificity));
                    }
                }
                Fit::May => self.suspect(rule),
                Fit::No => {}
            }
        }
        let Some((program, words)) = form.split_first() else { return };
        if is_assignment(program) || program.starts_with('-') {
            return self.value(program);
        }
        // Few words are the name of a denied program or a line, so that is asked first.
        let index = self.policy.index();
        let telling = |word: &String| index.restricts(word) || command::is_shell(base(word)) || may_hold_command(word);
        if !words.iter().any(telling) {
            return;
        }
        match command::reads(form) {
            ProgramReads::Text => {}
            ProgramReads::Wraps => words.iter().filter(|word| sets_variable(word)).for_each(|word| self.value(word)),
            ProgramReads::Values => self.values(words),
            ProgramReads::Anything => {
                self.tails(words);
                // What stands behind a shell is a line, and is read as one.
                let shell = words.iter().position(|word| command::is_shell(base(word)));
                self.values(&words[..shell.unwrap_or(words.len())]);
            }
        }
    }

    /// What a program that nobody knows may run: any tail of its words, and a line in one of them.
    fn tails(&mut self, words: &[String]) {
        let mut lines = 0;
        for (at, word) in words.iter().enumerate() {
            if marks::of(word).is_some() {
                continue;
            }
            self.tail(&words[at..]);
            for value in attached(word) {
                self.tail(&[&[value.to_owned()], &words[at + 1..]].concat());
            }
            let shell = command::is_shell(base(word));
            if (shell || may_be_line(word)) && lines < LINES_MAX {
                lines += 1;
                let forms = if shell { command::forms(&words[at..]) } else { command::forms_of_line(word) };
                forms.iter().for_each(|form| self.tail(form));
            }
        }
    }

    /// What a program may run that understands its words: a verb of another program among them, and a text in one.
    fn values(&mut self, words: &[String]) {
        for (at, word) in words.iter().enumerate() {
            let bare = marks::bare(word);
            for program in std::iter::once(bare).chain(attached(bare)) {
                if self.policy.index().restricts(program) {
                    self.verb(&[&[program.to_owned()], &words[at + 1..]].concat());
                }
            }
            if may_hold_command(bare) {
                self.value(bare);
            }
        }
    }

    /// A word, and what is attached to an option or a variable in it.
    fn value(&mut self, word: &str) {
        let word = marks::bare(word);
        std::iter::once(word).chain(attached(word)).for_each(|text| self.text(text));
    }

    /// A text in which a program may find a command. Where a command begins, any rule counts. Anywhere else the name of a
    /// program is a word like others, so that only a rule that names a verb too is told from it.
    fn text(&mut self, text: &str) {
        for piece in command::pieces(text) {
            for at in 0..piece.len() {
                if at == 0 && piece.len() > 1 { self.tail(&piece) } else { self.verb(&piece[at..]) }
            }
        }
    }

    /// A command of which a rule names more than the program.
    fn verb(&mut self, form: &[String]) {
        let form = &command::whole_name(form);
        if form.first().is_none_or(|program| !self.policy.index().restricts(program)) {
            return;
        }
        for (rule, fit, specificity) in self.fitting(form) {
            if fit != Fit::No && specificity.leading() > 1 {
                self.suspect(rule);
            }
        }
    }

    fn tail(&mut self, form: &[String]) {
        if !command::hides_program(form) {
            for (rule, fit, _) in self.fitting(&command::whole_name(form)) {
                if fit != Fit::No {
                    self.suspect(rule);
                }
            }
        }
    }

    /// Anything may run: whatever is denied is among it.
    fn anything(&mut self) {
        let rules: Vec<usize> = self.policy.index().restricting_rules().filter(|rule| self.speaks(*rule)).collect();
        rules.into_iter().for_each(|rule| self.suspect(rule));
    }

    fn suspect(&mut self, rule: usize) {
        self.found.hidden.insert(rule);
    }

    fn speaks(&self, rule: usize) -> bool {
        let rule: &Rule = &self.policy.rules()[rule];
        rule.action.matches(self.action) && rule.in_force(self.asker)
    }

    fn fitting(&self, form: &[String]) -> Vec<(usize, Fit, Specificity)> {
        self.policy.index().restricting(form, |rule| self.speaks(rule))
    }
}
