//! What follows from all commands of a line together: it runs what it makes, or replaces the folder that it enters.

use super::folders::Folder;
use super::made_files::{LineCommands, MadeFiles};
use super::walk::Walk;
use super::{program_variables, replaced, spliced};

impl Walk {
    /// Whether the line runs a program that it makes itself.
    pub(super) fn runs_what_it_makes(&mut self) {
        let inner = || self.inner.iter().flat_map(|one| &one.redirections);
        let redirected = self.found.redirections.iter().chain(inner()).collect();
        let forms = self.forms.iter().map(|(form, _)| form);
        let commands: Vec<Vec<String>> =
            self.found.commands.iter().chain(forms).chain(&self.assigned).cloned().collect();
        let made =
            MadeFiles::of(LineCommands { commands: &commands, given: &self.readers, fed: &self.found.fed, redirected });
        let is_run = made.is_run(&commands);
        // What the line writes to a file is read by a command that names the file.
        let readers: Vec<Vec<String>> =
            self.found.commands.iter().filter(|argv| made.is_named(argv)).cloned().collect();
        if is_run {
            self.hidden("a program is run that the line itself may make");
        }
        if program_variables::make_expands(&commands) {
            self.hidden("make runs what a variable holds");
        }
        let texts = std::mem::take(&mut self.printed);
        readers.iter().for_each(|argv| self.reads(argv, &texts));
    }

    /// Notes the commands as their programs put them together from words and variables. What is inside a wrapper is
    /// looked at with the line's first command.
    pub(super) fn takes_words_of_variables(&mut self) {
        let forms = || self.forms.iter().map(|(form, _)| form);
        let assignments = spliced::assignments(self.found.commands.iter().chain(forms()).chain(&self.assigned));
        if assignments.is_empty() {
            return;
        }
        let commands = self.found.commands.iter();
        let mut linked: Vec<_> = commands.map(|argv| spliced::with_variables(argv, &assignments)).collect();
        let inner: Vec<_> = forms().flat_map(|form| spliced::with_variables(form, &assignments)).collect();
        linked.iter_mut().take(1).for_each(|first| first.extend_from_slice(&inner));
        self.found.linked = linked;
    }

    /// Whether the line changes into a folder that it may replace itself.
    pub(super) fn replaces_its_folders(&mut self) {
        let forms = self.forms.iter().map(|(form, _)| form);
        let commands: Vec<Vec<String>> = self.found.commands.iter().chain(forms).cloned().collect();
        let entered = self.found.folders.iter().chain(self.forms.iter().map(|(_, folder)| folder));
        self.found.replaced = replaced::are_replaced(&commands, entered);
        if self.found.replaced {
            self.found.folders.iter_mut().for_each(Folder::forget);
        }
    }
}
