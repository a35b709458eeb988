//! What a command of a line runs in its turn, and the texts that it may run.

use super::analyse::forms;
use super::folders::Folder;
use super::plain_programs::ProgramReads;
use super::unwrap::{self, Inner};
use super::walk::{DEPTH_MAX, FORMS_MAX, Walk};
use super::{hidden, input_runners, marks, names, plain_programs, started_in};

impl Walk {
    /// Follows what `argv`, itself run in `folder`, runs in its turn.
    pub(super) fn unwrap(&mut self, argv: &[String], folder: &Folder, depth: usize) {
        let why = hidden::hidden_program(argv);
        if hidden::hides(argv) {
            self.hidden(why.unwrap_or("what an interpreter runs becomes known only when the line runs"));
        } else if let Some(why) = why {
            self.opaque(why);
        }
        if hidden::script_is_input(argv, folder) {
            self.hidden("what is run comes from the input");
        }
        let mut inner = unwrap::inner(argv);
        inner.extend(names::other(argv).map(Inner::Argv));
        if argv.len() > unwrap::WORDS_MAX && unwrap::wraps(&argv[0]) {
            self.hidden("a command that runs another one has too many words to be analysed");
        }
        if !inner.is_empty() && depth >= DEPTH_MAX {
            self.hidden("commands are nested too deeply to be analysed");
            return;
        }
        let folder = started_in::started_in(argv, folder);
        for inner in inner {
            if self.kept > FORMS_MAX {
                return;
            }
            match inner {
                Inner::Argv(form) => {
                    let form = input_runners::filled_in(argv, form);
                    if !self.forms.iter().any(|(known, at)| *known == form && *at == folder) && self.room() {
                        self.forms.push((form.clone(), folder.clone()));
                        self.unwrap(&form, &folder, depth + 1);
                    }
                }
                Inner::Cut => self.hidden("a command that runs another one has too many words to be analysed"),
                Inner::Line(text) => {
                    let vars = std::mem::take(&mut self.vars);
                    let course = self.course.inside(folder.clone(), &argv[0]);
                    let mut inside = Self { kept: self.kept, parsed: self.parsed, vars, course, ..Self::default() };
                    inside.line(&marks::without(&text), depth + 1);
                    (self.kept, self.parsed) = (inside.kept, inside.parsed);
                    self.evaluates |= inside.evaluates;
                    self.vars = inside.vars;
                    self.printed.extend(inside.printed);
                    self.readers.extend(inside.readers);
                    self.assigned.extend(inside.assigned);
                    self.forms.extend(inside.found.commands.iter().cloned().zip(inside.found.folders.iter().cloned()));
                    self.forms.extend(inside.forms);
                    self.inner.extend(inside.inner);
                    self.inner.push(inside.found);
                }
            }
        }
    }

    /// Notes texts that a command reads, if it may run them.
    pub(super) fn reads(&mut self, argv: &[String], texts: &[String]) {
        let runs =
            |form: &[String]| matches!(plain_programs::reads(form), ProgramReads::Values | ProgramReads::Anything);
        if texts.is_empty() || !(runs(argv) || forms(argv).iter().any(|form| runs(form))) {
            return;
        }
        for text in texts {
            let input = (argv.to_vec(), marks::without(text));
            if !self.found.inputs.contains(&input) && self.room() {
                self.found.inputs.push(input);
            }
        }
    }
}
