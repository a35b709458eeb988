//! The other names of the programs of an analysed line, and where each of its commands runs.

use portcullis_base::{OpenWord, OtherForm};

use crate::analyse::forms_in;
use crate::analysis::Analysis;
use crate::folders::Folder;
use crate::option_reader::{OptionReader, ReadWord, ValuedOptions};
use crate::unwrap::base;
use crate::{hidden, marks, names as other_names};

/// A command that a line runs, itself or in its turn, and the folder it runs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedCommand {
    /// Its words. One that is not literal is given as it is written.
    pub argv: Vec<String>,
    /// Where it runs.
    pub folder: Folder,
}

impl Analysis {
    /// With what the file system tells of the programs: `names` gives, for a program as it is written and the folder it
    /// runs in, the names of the links and of the file that it leads to; `None` if that is not known before the line
    /// runs. Every command that the line comes down to is looked at.
    #[must_use]
    pub fn linked(mut self, names: &dyn Fn(&str, &Folder) -> Option<Vec<String>>) -> Self {
        let with_names = |at: usize| {
            let mut out = self.linked.get(at).cloned().unwrap_or_default();
            for (form, folder) in self.forms_at(at) {
                let Some((program, rest)) = form.split_first().filter(|_| !marks::hides_program(&form)) else {
                    continue;
                };
                let others = match names(program, &folder) {
                    Some(names) => {
                        names.into_iter().map(|name| marks::taken_off([&[name], rest].concat())).collect::<Vec<_>>()
                    }
                    // Any program, with these words.
                    None => {
                        let (words, mut open) = marks::taken_off(form.clone());
                        open.insert(0, OpenWord { at: 0, many: false });
                        vec![(words, open)]
                    }
                };
                // A script may be a link to another one.
                let script = other_names::started(base(program), rest);
                let scripts = script.into_iter().flat_map(|(at, file)| {
                    let path = if file.contains('/') { file.to_owned() } else { format!("./{file}") };
                    let with_its_words =
                        move |name: String| marks::taken_off([&[name], rest.get(at + 1..).unwrap_or(&[])].concat());
                    names(&path, &folder).unwrap_or_default().into_iter().map(with_its_words)
                });
                for (words, open) in others.into_iter().chain(scripts) {
                    let other = OtherForm { words, open };
                    if !out.contains(&other) {
                        out.push(other);
                    }
                }
            }
            out
        };
        self.linked = (0..self.commands.len()).map(with_names).collect();
        // A program with a language of its own is one by every name: `editor` is vim.
        let hides = |form: &OtherForm| hidden::hides(&marks::put_on(&form.words, &form.open));
        if let Some(form) = self.linked.iter().flatten().find(|form| hides(form)) {
            let known = form.words.first().filter(|_| form.open.iter().all(|word| word.at > 0));
            let target = known.map_or("one that".to_owned(), |name| format!("`{name}`, which"));
            self.hides = true;
            self.opaque.push(format!("a program is a link to {target} may run others"));
        }
        self
    }

    /// Every command that the line runs, itself or in its turn, each with its folder.
    #[must_use]
    pub fn placed(&self) -> Vec<PlacedCommand> {
        let mut out = Vec::new();
        for (form, folder) in (0..self.commands.len()).flat_map(|at| self.forms_at(at)) {
            let placed = PlacedCommand { argv: marks::taken_off(form).0, folder };
            if !out.contains(&placed) {
                out.push(placed);
            }
        }
        out
    }

    /// The files that `tee` writes wherever it stands in the line, as they are written there.
    #[must_use]
    pub fn teed(&self) -> Vec<String> {
        let tees = self.placed().into_iter().map(|command| command.argv);
        let tees = tees.filter(|argv| argv.first().is_some_and(|program| base(program) == "tee"));
        let files = |argv: Vec<String>| {
            let words = OptionReader::new(&argv[1..], ValuedOptions { letters: "", long: &[] });
            let operands = words.filter_map(|word| if let ReadWord::Operand(file) = word { Some(file) } else { None });
            operands.map(str::to_owned).collect::<Vec<_>>()
        };
        let mut out: Vec<String> = tees.flat_map(files).filter(|file| file != "/dev/null").collect();
        out.sort();
        out.dedup();
        out
    }

    /// One of the commands and what it comes down to, with marked words.
    fn forms_at(&self, at: usize) -> Vec<(Vec<String>, Folder)> {
        let written = marks::put_on(&self.commands[at], self.open.get(at).map_or(&[], Vec::as_slice));
        let folder = self.folders.get(at).cloned().unwrap_or(Folder::Unknown);
        let mut forms = forms_in(&written, &folder, self.unsettled);
        if self.replaced {
            forms.iter_mut().for_each(|(_, folder)| folder.forget());
        }
        std::iter::once((written, folder)).chain(forms).collect()
    }

    /// Whether a command of the line may change the working directory of those after it.
    #[must_use]
    pub fn moves(&self) -> bool {
        let moves = |word: &String| matches!(word.as_str(), "cd" | "pushd" | "popd" | "eval" | "source" | ".");
        !self.opaque.is_empty() || self.commands.iter().flatten().any(moves)
    }
}
