//! A simple command of a line: its words, its redirections and what a shell expands in them.

use brush_parser::ast::{
    AssignmentName, AssignmentValue, CommandPrefixOrSuffixItem as Item, IoFileRedirectKind, IoFileRedirectTarget,
    IoRedirect, ProcessSubstitutionKind, RedirectList, SimpleCommand, Word as Raw,
};

use super::analyse::forms;
use super::analysis::RedirectedFile;
use super::marks::{self, OpenExtent};
use super::raw_word::{openness, shown, unquoted};
use super::setters::{self, SetVariable};
use super::walk::Walk;
use super::word::{self, Word};
use super::{builtin, fed, inline, stage};

impl Walk {
    pub(super) fn simple(&mut self, simple: &SimpleCommand, depth: usize) {
        let mut argv = Vec::new();
        let prefix = simple.prefix.iter().flat_map(|prefix| &prefix.0);
        let suffix = simple.suffix.iter().flat_map(|suffix| &suffix.0);
        let redirected = |item: &Item| matches!(item, Item::IoRedirect(redirect) if fed::feeds(redirect));
        let fed = self.fed || prefix.clone().chain(suffix.clone()).any(redirected);
        let own = |item: &Item| if let Item::IoRedirect(redirect) = item { fed::text(redirect) } else { None };
        let mut texts: Vec<String> = prefix.clone().chain(suffix.clone()).filter_map(own).collect();
        let around = std::mem::take(&mut self.substitutes);
        prefix.for_each(|item| self.item(item, &mut argv, depth));
        if let Some(name) = &simple.word_or_name {
            argv.push(self.word(name, depth));
        }
        suffix.for_each(|item| self.item(item, &mut argv, depth));
        let substitutes = std::mem::replace(&mut self.substitutes, around);
        self.vars.command(&argv);
        self.sets(&setters::by_command(&argv));
        self.course.cdpath |= argv.iter().any(|word| word.starts_with("CDPATH"));
        let folder = self.course.here();
        self.course.run(simple);
        if substitutes && !argv.first().is_some_and(|program| fed::shows_files(program)) {
            self.hidden("a process substitution may be a script");
        }
        if argv.is_empty() || !self.room() {
            return;
        }
        self.printed.extend(texts.iter().cloned().chain(fed::printed(&argv)));
        texts.extend_from_slice(&self.given);
        self.reads(&argv, &texts);
        if !texts.is_empty() {
            self.readers.push(argv.clone());
        }
        if fed && std::iter::once(argv.clone()).chain(forms(&argv)).any(|form| inline::runs_what_it_is_fed(&form)) {
            self.hidden("a program takes its commands from its input");
        }
        if fed && !stage::only_reads(&argv) && !self.found.fed.contains(&argv) {
            self.found.fed.push(argv.clone());
        }
        let mut known = self.found.commands.iter().zip(&self.found.folders);
        if !known.any(|(command, at)| *command == argv && *at == folder) {
            self.unwrap(&argv, &folder, depth);
            self.found.commands.push(argv);
            self.found.folders.push(folder);
        }
    }

    fn item(&mut self, item: &Item, argv: &mut Vec<String>, depth: usize) {
        match item {
            Item::IoRedirect(redirect) => self.redirect(redirect, depth),
            Item::Word(word) => argv.push(self.word(word, depth)),
            Item::AssignmentWord(assignment, word) => {
                if let AssignmentName::ArrayElementName(_, index) = &assignment.name
                    && !builtin::is_plain_index(index)
                {
                    self.hidden("the index of an array is evaluated");
                }
                if let AssignmentValue::Array(items) = &assignment.value {
                    self.opaque("an array is assigned");
                    for index in items.iter().filter_map(|(index, _)| index.as_ref()) {
                        self.vars.evaluate(&index.value);
                    }
                    self.substituted(&word.value, depth);
                    argv.push(marks::mark(word.value.clone(), OpenExtent::One));
                } else {
                    argv.push(self.word(word, depth));
                }
            }
            Item::ProcessSubstitution(kind, subshell) => {
                self.substitutes |= matches!(kind, ProcessSubstitutionKind::Read);
                self.opaque("a process substitution");
                self.subshell(|walk| walk.list(&subshell.list, depth));
                argv.push(marks::mark(subshell.to_string(), OpenExtent::One));
            }
        }
    }

    /// The word's characters, or its text if it is not literal.
    pub(super) fn word(&mut self, raw: &Raw, depth: usize) -> String {
        match word::read(&raw.value) {
            Ok(Word::Literal(text)) => text,
            // Look-alikes are text to a shell; what they deceive is a reader, who is asked.
            Ok(Word::Glob(pattern)) => {
                self.opaque(format!("`{}` is a pattern over file names", shown(&raw.value)));
                marks::mark(pattern.as_str().to_owned(), OpenExtent::Many)
            }
            Err(why) => {
                self.opaque(format!("`{}` holds {why}", shown(&raw.value)));
                self.substitutes |= raw.value.contains("<(");
                self.substituted(&raw.value, depth);
                let text = unquoted(&raw.value);
                match openness(why, &raw.value) {
                    Some(open) => marks::mark(text, open),
                    None => text,
                }
            }
        }
    }

    pub(super) fn substituted(&mut self, raw: &str, depth: usize) {
        self.expanded(raw);
        for inner in word::substitutions(raw, true) {
            self.subshell(|walk| walk.line(&inner, depth + 1));
        }
    }

    /// Notes variables that are set without an assignment.
    pub(super) fn sets(&mut self, variables: &[SetVariable]) {
        if variables.iter().any(SetVariable::may_run) {
            self.hidden("a variable whose value may be run is set");
        }
        self.assigned.extend(variables.iter().filter_map(SetVariable::as_assignment).map(|word| vec![word]));
    }

    fn expanded(&mut self, raw: &str) {
        self.sets(&setters::by_expansion(raw));
        if self.vars.expand(raw) {
            self.hidden("the text of a variable is expanded once more");
        }
    }

    pub(super) fn redirects(&mut self, redirects: Option<&RedirectList>, depth: usize) {
        redirects.iter().flat_map(|list| &list.0).for_each(|redirect| self.redirect(redirect, depth));
    }

    fn redirect(&mut self, redirect: &IoRedirect, depth: usize) {
        match redirect {
            IoRedirect::File(_, kind, target) => match target {
                IoFileRedirectTarget::Filename(word) => {
                    let writes = !matches!(kind, IoFileRedirectKind::Read | IoFileRedirectKind::DuplicateInput);
                    self.file(word, writes, depth);
                    if matches!(kind, IoFileRedirectKind::ReadAndWrite) {
                        self.file(word, false, depth);
                    }
                }
                IoFileRedirectTarget::Fd(_) => {}
                IoFileRedirectTarget::ProcessSubstitution(_, subshell) => {
                    self.opaque("a process substitution");
                    self.subshell(|walk| walk.list(&subshell.list, depth));
                }
                IoFileRedirectTarget::Duplicate(word) => {
                    // `>&2`, `>&-`; anything else is a file.
                    let stream = word.value.trim_end_matches('-');
                    if !stream.bytes().all(|b| b.is_ascii_digit()) {
                        self.file(word, true, depth);
                    }
                }
            },
            IoRedirect::OutputAndError(word, _) => self.file(word, true, depth),
            IoRedirect::HereString(_, word) => {
                self.word(word, depth);
            }
            IoRedirect::HereDocument(_, document) => {
                if document.requires_expansion && document.doc.value.contains(['$', '`']) {
                    self.opaque("a here-document holds a variable or substitution");
                    self.expanded(&document.doc.value);
                    for inner in word::substitutions(&document.doc.value, false) {
                        self.subshell(|walk| walk.line(&inner, depth + 1));
                    }
                }
            }
        }
    }

    fn file(&mut self, raw: &Raw, writes: bool, depth: usize) {
        let path = marks::without(&self.word(raw, depth));
        let redirected = RedirectedFile { path, writes };
        if redirected.path != "/dev/null" && !self.found.redirections.contains(&redirected) && self.room() {
            self.found.redirections.push(redirected);
        }
    }
}
