//! A line that makes a file or a link and runs it: what its name stands for is known only when the line runs.

use std::borrow::Cow;

use portcullis_base::loads_code;

use super::analysis::RedirectedFile;
use super::file_options::AwkWords;
use super::option_reader::{OptionReader, ReadWord, ValuedOptions};
use super::program_variables::{SYSTEM, is_trusted_folder, names_a_person};
use super::unwrap::{base, is_assignment};
use super::{marks, outputs, scripts};

/// Programs that give a file another name, another content or the right to run, by all their operands.
const MAKERS: &[&str] = &[
    "ln", "gln", "link", "cp", "gcp", "mv", "gmv", "install", "ginstall", "rsync", "dd", "tee", "chmod", "symlink",
    "rename", "curl", "wget", "sed", "gsed", "sort", "uniq", "xxd", "shuf", "truncate", "split", "csplit", "openssl",
    "gpg", "ed", "sponge", "scp", "base64", "logsave", "script",
];

/// Compilers: what they make of a file that the line wrote has any name.
const COMPILERS: &[&str] = &[
    "gcc", "g++", "cc", "c++", "clang", "clang++", "rustc", "go", "ghc", "tcc", "gfortran", "ld", "as", "nasm", "zig",
    "tar",
];

/// Ends of names that no program looks for by itself.
const DATA: &str = ".txt .log .out .err .md .csv .tsv .patch .diff .html";

/// The commands of a line, for what they make.
pub(super) struct LineCommands<'l> {
    pub(super) commands: &'l [Vec<String>],
    /// Those of them that are given a text of the line to read.
    pub(super) given: &'l [Vec<String>],
    /// Those of them that read what something else gives them.
    pub(super) fed: &'l [Vec<String>],
    /// Files that redirections open.
    pub(super) redirected: Vec<&'l RedirectedFile>,
}

/// What a line makes, by paths as they are written.
#[derive(Default)]
pub(super) struct MadeFiles<'l> {
    /// What it names in doing so.
    touched: Vec<&'l str>,
    /// Files that are there afterwards. `*` stands for any end of a name.
    there: Vec<Cow<'l, str>>,
    /// Those that only get the right to run: what is in them stays.
    allowed: Vec<&'l str>,
    /// Something whose name is not known before the line runs.
    open: bool,
    /// It changes files that a text names.
    patches: bool,
}

impl<'l> MadeFiles<'l> {
    pub(super) fn of(line: LineCommands<'l>) -> Self {
        let mut made = Self::default();
        let (written, read): (Vec<_>, Vec<_>) = line.redirected.into_iter().partition(|file| file.writes);
        made.there.extend(written.into_iter().map(|file| path_of(&file.path).into()));
        for argv in line.commands {
            let Some((name, words)) = named(argv) else { continue };
            if MAKERS.contains(&name) {
                made.note(name, words);
            }
            made.note_output(name, words);
        }
        // A patch says itself which files it changes.
        let patches = |argv: &Vec<String>| {
            let patch = |(name, words): (&str, &[String])| {
                let verb = || words.iter().any(|word| matches!(word.as_str(), "apply" | "am"));
                name == "patch" || (name == "git" && verb())
            };
            let given =
                || line.given.contains(argv) || read.iter().any(|file| made.is_named(std::slice::from_ref(&file.path)));
            named(argv).is_some_and(patch) && (given() || made.is_named(argv))
        };
        let compiles =
            |argv: &Vec<String>| named(argv).is_some_and(|(name, _)| COMPILERS.contains(&name)) && made.is_named(argv);
        let unpacks = |argv: &Vec<String>| {
            let unpacks = named(argv).is_some_and(|(name, words)| outputs::unpacks(name, words));
            unpacks && (line.fed.contains(argv) || made.is_named(argv))
        };
        (made.open, made.patches) = (
            made.open || line.commands.iter().any(|argv| compiles(argv) || unpacks(argv)),
            line.commands.iter().any(patches),
        );
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
        let names = operands.iter().map(|word| path_of(value_of(word)));
        let attached = words.iter().filter(|word| word.starts_with("-o") || word.starts_with("-O"));
        let attached = attached.map(|word| path_of(&word[2..])).filter(|name| !name.is_empty());
        let long = words.iter().filter(|word| word.starts_with("--")).filter_map(|word| word.split_once('='));
        self.there.extend(attached.chain(long.map(|(_, value)| path_of(value))).map(Cow::from));
        // Of the first ones the last operand is what is made; others make each.
        let last_alone =
            ["ln", "gln", "link", "cp", "gcp", "mv", "gmv", "install", "ginstall", "rsync", "symlink", "rename"];
        if last_alone.contains(&name) {
            self.touched.extend(names.clone());
            self.there.extend(names.skip(operands.len().saturating_sub(1)).map(Cow::from));
        } else if name == "chmod" {
            self.allowed.extend(names);
        } else {
            if matches!(name, "tee" | "dd") {
                self.touched.extend(names.clone());
            }
            self.there.extend(names.map(Cow::from));
        }
    }

    /// Files that an option or the program among the words names.
    fn note_output(&mut self, name: &str, words: &'l [String]) {
        self.there.extend(outputs::named(name, words));
        let behind = |options: &'static [&'static str]| {
            let is_option = |word: &&[String]| options.contains(&word[0].as_str());
            words.windows(2).filter(is_option).map(|pair| path_of(&pair[1]).into())
        };
        match name {
            "find" | "gfind" => self.there.extend(behind(&["-fprintf", "-fprint", "-fprint0", "-fls"])),
            "npm" if words.first().is_some_and(|verb| verb == "pkg") => self.there.push("package.json".into()),
            "split" | "gsplit" | "csplit" => self.there.extend(pieces(name, words).map(Cow::from)),
            "awk" | "gawk" | "mawk" | "nawk" => {
                let writes = |text: &&str| text.split_once("print").is_some_and(|(_, rest)| rest.contains('>'));
                for text in AwkWords::of(words).programs.into_iter().filter(writes) {
                    self.open = true;
                    self.there.extend(text.split('"').skip(1).step_by(2).map(Cow::from));
                }
            }
            _ => {}
        }
    }

    fn paths(&self) -> impl Iterator<Item = &str> {
        let others = self.touched.iter().chain(&self.allowed).copied();
        self.there.iter().map(AsRef::as_ref).chain(others)
    }

    /// Whether one of `commands` may be something that the line makes, or run it as a script.
    pub(super) fn is_run(&self, commands: &[Vec<String>]) -> bool {
        let makes = self.open || self.patches || self.paths().next().is_some();
        let is_value = |argv: &&Vec<String>| commands.iter().any(|whole| outputs::is_value(whole, argv));
        let mut run = commands.iter().filter(|argv| !is_value(argv));
        makes && run.any(|argv| self.may_be(argv) || self.is_script_of(argv) || self.is_loaded_by(argv))
    }

    /// Whether a word of a command names something that the line makes, itself or behind a letter or a sign.
    pub(super) fn is_named(&self, argv: &[String]) -> bool {
        let names = |word: &str| {
            let attached = word.starts_with(['-', '@']);
            self.there.iter().map(|made| base(made)).any(|made| {
                base(path_of(value_of(word))) == made
                    || (attached && !made.is_empty() && marks::bare(word).ends_with(made))
            })
        };
        argv.iter().any(|word| names(word))
    }

    /// Whether a variable of a command names something that the line makes, or a folder that it fills:
    /// `BASH_ENV=./x.sh bash -c ls`, `HOME=. git p`.
    fn is_loaded_by(&self, argv: &[String]) -> bool {
        argv.iter().filter_map(|word| marks::bare(word).split_once('=')).any(|(name, value)| {
            let name = name.trim_end_matches('+');
            let loads = !matches!(name, "PATH" | "IFS") && loads_code(name).is_some() && !names_a_person(name);
            let mut pieces = value.split([':', ',', ' ', '=']).filter(|piece| !piece.is_empty());
            loads && pieces.any(|piece| self.there.iter().any(|made| base(made) == base(piece)) || self.fills(piece))
        })
    }

    /// Whether the line may put something into this folder that a program looks for there.
    fn fills(&self, folder: &str) -> bool {
        if is_trusted_folder(folder) {
            return false;
        }
        let is_data = |path: &str| DATA.split_ascii_whitespace().any(|end| base(path).ends_with(end));
        let inside = folder.strip_prefix("/workspace").unwrap_or(folder);
        let mut names = inside.split('/').filter(|name| !matches!(*name, "" | "."));
        let (Some(last), false) = (names.next_back(), folder.contains(['$', '`', '~'])) else {
            return self.open || self.paths().any(|path| !is_data(path));
        };
        self.paths().any(|path| !is_data(path) && path.split('/').any(|name| name == last || last == ".."))
    }

    /// Whether a command runs a file as a script that the line makes.
    fn is_script_of(&self, argv: &[String]) -> bool {
        let Some((name, words)) = named(argv) else { return false };
        scripts::of(name, words).is_some_and(|scripts| {
            self.there.iter().any(|made| scripts.may_be(made))
                // `cp x $y; sh z.sh`
                || (self.open && scripts.names_one())
                || (self.patches && scripts.may_be_any())
                // `gcc -Bfolder`
                || scripts.folders().any(|folder| self.fills(folder))
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
            let mut made = self.there.iter().map(AsRef::as_ref).chain(self.allowed.iter().copied());
            return made.any(|path| base(path) == base(program));
        }
        let mut names = program.split('/').filter(|name| !matches!(*name, "" | "." | ".."));
        self.open || self.patches || names.any(|name| self.paths().any(|path| base(path) == name))
    }
}

/// The program of a command by its last name, and its words.
fn named(argv: &[String]) -> Option<(&str, &[String])> {
    let at = argv.iter().position(|word| !is_assignment(word))?;
    Some((base(marks::bare(&argv[at])), &argv[at + 1..]))
}

/// The names of the pieces of a file, as patterns.
fn pieces(name: &str, words: &[String]) -> impl Iterator<Item = String> {
    let letters = if name == "csplit" { "fbn" } else { "abClnt" };
    let valued = ValuedOptions { letters, long: &["prefix", "bytes", "lines", "number", "suffix-length"] };
    let given = OptionReader::new(words, valued).filter_map(move |word| match word {
        ReadWord::Letter('f', value) | ReadWord::Long("prefix", value) if name == "csplit" => value,
        ReadWord::Operand(word) if name != "csplit" => Some(word),
        _ => None,
    });
    let skipped = usize::from(name != "csplit");
    let names: Vec<String> = given.skip(skipped).map(|prefix| format!("{prefix}*")).collect();
    let default = names.is_empty().then(|| "x*".to_owned());
    names.into_iter().chain(default)
}

/// The value of an option or a variable, or the word itself.
fn value_of(word: &str) -> &str {
    word.split_once('=').map_or(word, |(_, value)| value)
}

/// A path without what does not belong to it.
fn path_of(word: &str) -> &str {
    marks::bare(word).trim_end_matches('/')
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
            // A variable that loads code names a folder that the line fills.
            "printf x > .gitconfig; HOME=$PWD git p",
            "printf x > .gitconfig; HOME=. git p",
            "printf x > .gitconfig; export HOME=.; git p",
            "mkdir git; printf x > git/config; XDG_CONFIG_HOME=$PWD git p",
            "echo x > .bashrc; HOME=. bash -ic true",
            "echo x > .profile; HOME=/workspace bash -lc true",
            "mkdir -p b; printf x > b/as; chmod +x b/as; COMPILER_PATH=b gcc -c hello.c",
            "mkdir -p h/hooks; printf x > h/hooks/post-checkout; GIT_TEMPLATE_DIR=$PWD/h git clone -q . c",
            "for BASH_ENV in ./rc; do export BASH_ENV; echo x > rc; bash -c true; done",
            "echo x > m; NODE_OPTIONS=-r/workspace/m node empty.js",
            "mkdir -p b; printf x > b/cc1; chmod +x b/cc1; gcc -Bb -c hello.c",
            "printf x > ld; chmod +x ld; gcc -B. hello.c",
            "printf x > collect2; chmod +x collect2; gcc -B $PWD/ hello.c",
            // Nothing has to be written.
            "GIT_EXEC_PATH=$PWD/sub git t made",
            "export GIT_EXEC_PATH=sub; git t made",
            "COMPILER_PATH=b gcc -c hello.c",
            // Files that an option, a script or a patch writes.
            "awk 'BEGIN{print \"tou\" \"ch made\" > \"s\"}'; sh s",
            "find . -maxdepth 0 -fprintf s 'tou\\143h made\\n'; sh s",
            "git log --format='tou%x63h made' -1 --output=s; sh s",
            "git show -s --output s; sh s",
            "base64 -d <<< x | split -l1 - p; sh paa",
            "base64 -d <<< x | split; sh xaa",
            "base64 -d <<< x | csplit -f p - 1; sh p01",
            "patch hi.txt <<'E'\nx\nE\nsh hi.txt",
            "git apply <<'E'\nx\nE\nsh hi.txt",
            "printf x > p.diff; patch -p1 < p.diff; bash hi.txt",
            "printf x > p.diff; git apply p.diff; bash hi.txt",
            "git apply <<'E'\nx\nE\nmake",
            "patch -p1 <<'E'\nx\nE\n./build",
            "awk 'BEGIN{print \"a:;x\" > \"Makefile\"}'; make",
            "npm pkg set \"scripts.p=$(echo x | base64 -d)\"; npm run p",
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
            "PYTHONPATH=. pytest -q > out.log",
            "PYTHONPATH=src python3 x.py > out.txt && tail out.txt",
            "GIT_PAGER=cat git diff > x.patch",
            "CC=clang make > build.log",
            "patch -p1 < fix.diff && python3 test.py",
            "git apply fix.diff && cargo test",
            "split -l 100 big.txt part_; python3 x.py",
            "awk '$3 > 1 {print $1}' f; sh build.sh",
            "find . -name '*.rs' -fprint list.txt; sh build.sh",
            "gcc -c hello.c -o hello.o",
            "npm pkg set version=1.0.1",
            "git apply <<'E'\nx\nE\ngit status",
            "awk '{print $1 > \"out.txt\"}' f; make",
        ] {
            assert!(!analyse(line).hides, "{line}");
        }
    }
}
