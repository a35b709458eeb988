//! A line that makes a file or a link and runs it: what its name stands for is known only when the line runs.

use portcullis_base::loads_code;

use super::program_variables::SYSTEM;
use super::unwrap::{base, is_assignment};
use super::{marks, scripts};

/// Programs that give a file another name, another content or the right to run, by all their operands.
const MAKERS: &[&str] = &[
    "ln", "gln", "link", "cp", "gcp", "mv", "gmv", "install", "ginstall", "rsync", "dd", "tee", "chmod", "symlink",
    "rename", "curl", "wget", "sed", "gsed", "sort", "uniq", "xxd", "shuf", "truncate", "split", "csplit", "openssl",
    "gpg", "ed", "sponge", "unzip", "gunzip", "scp", "base64",
];

/// Compilers: what they make of a file that the line wrote has any name.
const COMPILERS: &[&str] = &[
    "gcc", "g++", "cc", "c++", "clang", "clang++", "rustc", "go", "ghc", "tcc", "gfortran", "ld", "as", "nasm", "zig",
    "tar",
];

/// The files that a line makes.
#[derive(Default)]
pub(super) struct MadeFiles<'l> {
    /// Last names of what it names in doing so.
    touched: Vec<&'l str>,
    /// Those that are there afterwards.
    there: Vec<&'l str>,
    /// Those that only get the right to run: what is in them stays.
    allowed: Vec<&'l str>,
    /// Something whose name is not known before the line runs.
    open: bool,
}

impl<'l> MadeFiles<'l> {
    /// What `commands` make, and redirections to `written`.
    pub(super) fn of(commands: &'l [Vec<String>], written: impl Iterator<Item = &'l str>) -> Self {
        let mut made = Self::default();
        made.there.extend(written.map(last));
        for argv in commands {
            let Some(at) = argv.iter().position(|word| !is_assignment(word)) else { continue };
            let (name, words) = (base(marks::bare(&argv[at])), &argv[at + 1..]);
            if MAKERS.contains(&name) {
                made.note(name, words);
            }
        }
        let compiles = |argv: &Vec<String>| {
            let name = argv.iter().find(|word| !is_assignment(word)).map(|word| base(marks::bare(word)));
            name.is_some_and(|name| COMPILERS.contains(&name)) && made.is_named(argv)
        };
        made.open |= commands.iter().any(compiles);
        made
    }

    fn note(&mut self, name: &str, words: &'l [String]) {
        // These change a file only by an option.
        let option = |letter: char| {
            words.iter().any(|word| {
                let long = ["--output", "--in-place", "--remote-name"].iter().any(|long| word.starts_with(long));
                long || (word.starts_with('-') && !word.starts_with("--") && word.contains(letter))
            })
        };
        let changes = match name {
            "sed" | "gsed" => option('i'),
            "sort" | "shuf" | "gpg" | "openssl" => option('o'),
            "curl" => option('o') || option('O'),
            "base64" => option('o'),
            _ => true,
        };
        if !changes {
            return;
        }
        let operands: Vec<&'l String> = words.iter().filter(|word| !word.starts_with('-')).collect();
        self.open |= operands.last().is_some_and(|word| marks::of(word).is_some() && name != "chmod");
        let names = operands.iter().map(|word| last(word.split_once('=').map_or(word.as_str(), |(_, value)| value)));
        let attached = words.iter().filter(|word| word.starts_with("-o") || word.starts_with("-O"));
        let attached = attached.map(|word| last(&word[2..])).filter(|name| !name.is_empty());
        let long = words.iter().filter(|word| word.starts_with("--")).filter_map(|word| word.split_once('='));
        self.there.extend(attached.chain(long.map(|(_, value)| last(value))));
        // Of the first ones the last operand is what is made; others make each.
        let last_alone =
            ["ln", "gln", "link", "cp", "gcp", "mv", "gmv", "install", "ginstall", "rsync", "symlink", "rename"];
        if last_alone.contains(&name) {
            self.touched.extend(names.clone());
            self.there.extend(names.skip(operands.len().saturating_sub(1)));
        } else if name == "chmod" {
            self.allowed.extend(names);
        } else {
            if matches!(name, "tee" | "dd") {
                self.touched.extend(names.clone());
            }
            self.there.extend(names);
        }
    }

    fn anything(&self) -> bool {
        self.open || !self.touched.is_empty() || !self.there.is_empty() || !self.allowed.is_empty()
    }

    /// Whether one of `commands` may be something that the line makes, or run it as a script.
    pub(super) fn is_run(&self, commands: &[Vec<String>]) -> bool {
        self.anything() && commands.iter().any(|argv| self.may_be(argv) || self.is_script_of(argv))
    }

    /// Whether a word of a command names something that the line makes.
    pub(super) fn is_named(&self, argv: &[String]) -> bool {
        !self.there.is_empty() && argv.iter().any(|word| self.there.contains(&last(value_of(word))))
    }

    /// Whether a command runs a file as a script that the line makes.
    fn is_script_of(&self, argv: &[String]) -> bool {
        // `BASH_ENV=./x.sh bash -c ls`
        let loads = |word: &String| {
            let set = marks::bare(word).split_once('=').filter(|(name, _)| loads_code(name).is_some());
            set.is_some_and(|(_, value)| self.there.contains(&last(value_of(value))))
        };
        if argv.iter().any(loads) {
            return true;
        }
        let Some(at) = argv.iter().position(|word| !is_assignment(word)) else { return false };
        scripts::of(marks::bare(&argv[at]), &argv[at + 1..]).is_some_and(|scripts| {
            self.there.iter().any(|made| scripts.may_be(made))
                // `cp x $y; sh z.sh`
                || (self.open && scripts.names_one())
        })
    }

    fn may_be(&self, argv: &[String]) -> bool {
        // Where programs are looked for is changed.
        let path = |word: &String| word.starts_with("PATH=") || word.starts_with("PATH+=");
        let placed = !self.touched.is_empty() || !self.allowed.is_empty() || self.open;
        if placed && argv.iter().any(path) {
            return true;
        }
        let Some(program) = argv.iter().find(|word| !is_assignment(word)).map(|word| marks::bare(word)) else {
            return false;
        };
        let system = SYSTEM.iter().any(|folder| program.starts_with(folder)) && !program.contains("/..");
        if system || !program.contains('/') {
            return self.there.contains(&base(program)) || self.allowed.contains(&base(program));
        }
        let mut names = program.split('/').filter(|name| !matches!(*name, "" | "." | ".."));
        let all = [&self.touched, &self.there, &self.allowed];
        self.open || names.any(|name| all.iter().any(|made| made.contains(&name)))
    }
}

/// The value of an option or a variable, or the word itself.
fn value_of(word: &str) -> &str {
    word.split_once('=').map_or(word, |(_, value)| value)
}

/// The last name of a path.
fn last(path: &str) -> &str {
    base(marks::bare(path).trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use crate::analyse;

    #[test]
    fn l31_a_program_that_the_line_makes_is_unknown() {
        for line in [
            "ln -s /usr/bin/touch t; ./t made",
            "ln -s /usr/bin/touch t && PATH=. t made",
            "ln -s /usr/bin/touch t; export PATH=$PWD:$PATH; t made",
            "ln -s /usr/bin/touch d/t; run-parts -a made d",
            "cp /usr/bin/touch t; ./t made",
            "mv d e; e/t made",
            "cp x/t d; d/t made",
            "install -m 755 /usr/bin/touch /tmp/t && /tmp/t made",
            "cat /usr/bin/touch > t; chmod +x t; ./t made",
            "cat /usr/bin/touch | tee t; ./t made",
            "x=t; ln -s /usr/bin/touch $x; ./t made",
            "ln -s /usr/bin/touch ~/bin/t; t made",
            "bash -c 'ln -s /usr/bin/touch t; ./t made'",
            "sudo ln -s /usr/bin/touch t; env ./t made",
            "curl -so t http://localhost/t; ./t made",
            "printf x > a.c; gcc a.c -o t; ./t made",
        ] {
            assert!(analyse(line).hides, "{line}");
        }
        for line in [
            "./build.sh > out.log 2>&1",
            "./gradlew test | tee out.txt",
            "cp .env.example .env && ./run.sh",
            "cp a b; ls",
            "mkdir -p x && cd x && cmake ..",
            "mv a b && git add -A",
            "chmod +x a.sh",
            "PATH=/usr/bin:$PATH make > log",
            "cp -r a bin && /usr/bin/git status",
        ] {
            assert!(!analyse(line).hides, "{line}");
        }
    }
}
