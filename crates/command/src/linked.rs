//! The other names of the programs of an analysed line.

use portcullis_base::OtherForm;

use crate::analyse::{Analysis, forms};
use crate::{hidden, marks};

impl Analysis {
    /// With what the file system tells of the programs: `names` gives, for a program as it is written, the names of the
    /// links and of the file that it leads to. Every command that the line comes down to is looked at.
    #[must_use]
    pub fn linked(mut self, names: &dyn Fn(&str) -> Vec<String>) -> Self {
        let with_names = |(at, argv): (usize, &Vec<String>)| {
            let written = marks::put_on(argv, self.open.get(at).map_or(&[], Vec::as_slice));
            let forms = forms(&written);
            let mut out = Vec::new();
            for form in std::iter::once(&written).chain(&forms) {
                let Some((program, rest)) = form.split_first().filter(|_| !marks::hides_program(form)) else {
                    continue;
                };
                for name in names(program) {
                    let (words, open) = marks::taken_off([&[name], rest].concat());
                    let other = OtherForm { words, open };
                    if !out.contains(&other) {
                        out.push(other);
                    }
                }
            }
            out
        };
        self.linked = self.commands.iter().enumerate().map(with_names).collect();
        // A program with a language of its own is one by every name: `editor` is vim.
        let hides = |form: &OtherForm| hidden::hides(&marks::put_on(&form.words, &form.open));
        if self.linked.iter().flatten().any(hides) {
            self.hides = true;
            self.opaque.push("a program is a link to one that may run others".to_owned());
        }
        self
    }

    /// Whether a command of the line may change the working directory of those after it.
    #[must_use]
    pub fn moves(&self) -> bool {
        let moves = |word: &String| matches!(word.as_str(), "cd" | "pushd" | "popd" | "eval" | "source" | ".");
        !self.opaque.is_empty() || self.commands.iter().flatten().any(moves)
    }
}
