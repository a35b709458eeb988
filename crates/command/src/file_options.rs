//! Options that name a file which a program runs, or from which it takes further options: `awk -f x`, `ssh -F x`,
//! `bash --rcfile x`, `gcc @x`.

use super::make_words::MakeWords;
use super::option_reader::{OptionReader, ReadWord, ValuedOptions};
use super::shell::is_shell;
use super::verbs;

/// The options of some programs.
struct FileOptions {
    programs: &'static str,
    valued: ValuedOptions,
    /// Those letters of them whose value is such a file, or a folder of programs.
    letters: &'static str,
    long: &'static [&'static str],
    /// `@file`
    at: bool,
}

const fn files(programs: &'static str, valued: &'static str, letters: &'static str) -> FileOptions {
    let valued = ValuedOptions { letters: valued, long: &[] };
    FileOptions { programs, valued, letters, long: &[], at: false }
}

impl FileOptions {
    const fn long(mut self, valued: &'static [&'static str], long: &'static [&'static str]) -> Self {
        self.valued.long = valued;
        self.long = long;
        self
    }

    const fn at(mut self) -> Self {
        self.at = true;
        self
    }
}

const PRELOADED: &[&str] = &["require", "import", "loader", "experimental-loader", "env-file"];

static SHELL: FileOptions = files("", "oO", "").long(&["rcfile", "init-file"], &["rcfile", "init-file"]);

static AWK: FileOptions = files("awk gawk mawk nawk", "fFvEeilW", "fEi")
    .long(&["file", "field-separator", "assign", "exec", "source", "include", "load"], &["file", "exec", "include"]);

static COMPILER: FileOptions = files("", "BoIxDULlT", "B").long(&[], &[]).at();

static BUILDER: FileOptions = files("", "fx", "fx").long(&["file"], &["file"]);

static TABLE: &[FileOptions] = &[
    files("sed gsed", "efl", "f").long(&["expression", "file", "line-length"], &["file"]),
    files("node nodejs", "rCep", "r").long(PRELOADED, PRELOADED),
    files("ssh scp sftp autossh", "BbcDEeFIiJLlmOopPQRSWwX", "F"),
    files("ruby", "rICEe", "r"),
    files("lua luajit", "le", "l"),
    files("psql", "cdfvoFPRTLhpU", "f").long(&["command", "file", "dbname", "set", "output"], &["file"]),
    files("gdb cgdb", "x", "x").long(&["command", "init-command"], &["command", "init-command"]),
    files("cargo", "", "").long(&["config"], &["config"]),
    files("ansible ansible-playbook", "iemuM", "iM").long(&["inventory", "module-path"], &["inventory", "module-path"]),
    files("man", "CPHMSLmert", "C").long(&["config-file"], &["config-file"]),
    files("java javac javadoc jar kotlinc", "", "").at(),
];

/// Compilers that run further programs, also with the name of a machine or a version: `x86_64-linux-gnu-gcc-12`.
pub(super) fn is_compiler(name: &str) -> bool {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    let last = plain.rsplit('-').next().unwrap_or(plain);
    matches!(
        last,
        "gcc" | "g++" | "cc" | "c++" | "clang" | "clang++" | "cpp" | "c99" | "c89" | "gfortran" | "ld" | "as"
    )
}

fn options_of(name: &str) -> Option<&'static FileOptions> {
    let family = verbs::family(name);
    if is_shell(name) {
        Some(&SHELL)
    } else if AWK.programs.split_ascii_whitespace().any(|known| known == name) {
        Some(&AWK)
    } else if is_compiler(name) {
        Some(&COMPILER)
    } else {
        TABLE.iter().find(|options| options.programs.split_ascii_whitespace().any(|known| known == family))
    }
}

/// The files that a command is told to run by an option; of a builder that is not in the table, by `-f`. Where an option is
/// not understood, its next word counts.
pub(super) fn named<'w>(name: &str, words: &'w [String], builds: bool) -> Vec<&'w str> {
    if matches!(name, "make" | "gmake" | "bmake" | "pmake") {
        return MakeWords::of(words).files;
    }
    let Some(options) = options_of(name).or(builds.then_some(&BUILDER)) else { return Vec::new() };
    let of_option = |word| match word {
        ReadWord::Letter(letter, value) if options.letters.contains(letter) => {
            value.map(|value| value.strip_prefix('=').unwrap_or(value))
        }
        ReadWord::Long(long, value) if options.long.iter().any(|known| known.starts_with(long)) => value,
        ReadWord::Abbreviated(_, value) => value,
        ReadWord::Operand(word) if options.at => word.strip_prefix('@'),
        _ => None,
    };
    OptionReader::new(words, options.valued).filter_map(of_option).collect()
}

/// What a program of awk is made of.
#[derive(Debug, Default)]
pub(super) struct AwkWords<'w> {
    /// Texts of a program among the words.
    pub(super) programs: Vec<&'w str>,
    /// Files with a program or a part of one.
    pub(super) files: Vec<&'w str>,
    /// An option is not understood.
    pub(super) unknown: bool,
}

impl<'w> AwkWords<'w> {
    pub(super) fn of(words: &'w [String]) -> Self {
        let mut out = Self::default();
        let mut included = 0;
        for word in OptionReader::new(words, AWK.valued) {
            match word {
                ReadWord::Letter('F' | 'v', _) | ReadWord::Long("field-separator" | "assign", _) => {}
                ReadWord::Letter('f' | 'E', Some(file)) | ReadWord::Long("file" | "exec", Some(file)) => {
                    out.files.push(file);
                }
                ReadWord::Letter('i', Some(file)) | ReadWord::Long("include", Some(file)) => {
                    out.files.push(file);
                    included += 1;
                }
                ReadWord::Letter('e', Some(text)) | ReadWord::Long("source", Some(text)) => out.programs.push(text),
                // What stands behind the program is read by it.
                ReadWord::Operand(word) => {
                    if out.files.len() == included && out.programs.is_empty() {
                        out.programs.push(word);
                    }
                    return out;
                }
                _ => out.unknown = true,
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::named;
    use crate::analyse;

    #[test]
    fn l31_a_program_of_awk_that_is_not_in_the_words_hides() {
        for line in [
            "awk -v x=1 -f- <<< 'BEGIN{system(\"touch made\")}'",
            "awk -v x=1 -f /dev/stdin hi.txt < f",
            "cat f | awk -v x=1 -f -",
            "awk -f \"$x\" hi.txt",
            "gawk -i inplace \"$x\" f",
            "gawk -l ext 'BEGIN{}'",
            "mawk -W exec f",
            "awk -v x=1",
        ] {
            assert!(analyse(line).hides, "{line}");
        }
        for line in [
            "awk -f a.awk f",
            "awk -v x=\"$y\" '{print x}' f",
            "awk -F , -v n=1 '$1 > n' f",
            "gawk -i inplace '{print}' f",
        ] {
            assert!(!analyse(line).hides, "{line}");
        }
    }

    #[test]
    fn a_file_that_is_run_is_found_in_every_spelling() {
        for line in [
            "awk -f x",
            "awk -fx",
            "awk -v a=1 -f x",
            "awk -va=1 -fx",
            "awk --file=x",
            "awk --fil x",
            "gawk -i x",
            "sed -f x",
            "sed -nf x",
            "sed -nfx",
            "sed --file=x",
            "sed --fi x",
            "make -frules -f x",
            "make -sf x",
            "bash --rcfile x -ic true",
            "bash --init-file x -i",
            "bash --rcfile=x",
            "node -r x a.js",
            "node --require=x",
            "node --require x a.js",
            "ssh -F x host",
            "ssh -Fx host",
            "ssh -vF x host",
            "scp -F x a b",
            "gcc -c a.c @x",
            "gcc-12 @x",
            "x86_64-linux-gnu-gcc -Bx a.c",
            "gcc -B x a.c",
            "java @x A",
            "psql -f x",
            "psql -fx",
            "gdb -batch -x x",
            "gdb -x=x",
            "gdb --command=x",
            "cargo --config x run",
            "cargo --config=x run",
            "man -Cx ls",
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(named(&words[0], &words[1..], false).last(), Some(&"x"), "{line}");
        }
        for line in ["gcc -c x -o y", "node x", "sed -n p x", "bash -c x", "ssh host x", "awk -v a=x p"] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert!(named(&words[0], &words[1..], false).is_empty(), "{line}");
        }
    }
}
