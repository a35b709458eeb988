//! Files that a line names for programs which may run them: a script, a module, a configuration. An approval is bound to
//! each. Which words a program runs is not asked: every word that names a file counts.

use std::collections::{BTreeMap, BTreeSet};

use portcullis_command::{self as command, PlacedCommand, ProgramReads, RedirectedFile};
use portcullis_sandbox::VirtualPath;

use super::places::{LineFolders, joined};
use super::programs::is_literal;
use crate::command::matched;

/// Patterns of one line that are matched.
const PATTERNS: usize = 32;

/// Letters of options that may stand together before a path.
const LETTERS: usize = 6;

/// Programs that keep, move and count files, besides those that only show them. None runs what is in a file.
const KEEPERS: &str =
    "cp mv rm rmdir mkdir touch chmod chown chgrp ln tee truncate gzip gunzip xz sort cut paste diff ls";

/// Folders of modules that are looked in for one command.
const MODULE_FOLDERS: usize = 8;

/// Programs that find a file by a name which is not its own, and what they add to the name.
static FOUND_AS: &[(&str, &[&str])] = &[
    ("python pypy", &[".py", "/__main__.py", "/__init__.py"]),
    ("node tsx ts-node deno bun", &[".js", ".cjs", ".mjs", ".ts", "/index.js", "/package.json"]),
    ("java kotlin scala", &[".class"]),
    ("ruby", &[".rb"]),
    ("perl", &[".pm", ".pl"]),
];

/// The files that a program finds by words which are not their names: `python3 -m a.b`, `node a`, `perl -Ma::b`.
pub(crate) fn found_as(argv: &[String]) -> Vec<String> {
    let Some(at) = argv.iter().position(|word| !command::is_assignment(word)) else { return Vec::new() };
    let family = command::verbs::family(command::base(&argv[at]));
    let added = FOUND_AS.iter().find(|(names, _)| is_of(names, family)).map_or([].as_slice(), |(_, added)| added);
    let words = argv.iter().enumerate().filter(|(word, _)| *word != at).map(|(_, word)| word);
    // A module of perl has `::` where its file has a slash.
    let whole = words.clone().filter(|word| word.contains("::")).map(|word| word.replace("::", "/"));
    let whole: Vec<String> = whole.collect();
    let names = words.chain(&whole).flat_map(|word| pieces(word)).filter(|name| !name.is_empty());
    let named = names.flat_map(|name| added.iter().map(move |end| (name, end)));
    let found = named.flat_map(|(name, end)| [format!("{name}{end}"), format!("{}{end}", name.replace('.', "/"))]);
    let found: Vec<String> = found.collect();
    let folders = module_folders(argv);
    let elsewhere = found.iter().flat_map(|name| folders.iter().map(move |folder| format!("{folder}/{name}")));
    elsewhere.chain(found.iter().cloned()).collect()
}

/// Folders in which the words of a command let it look for modules: `-Ilib`, `-I lib`, `PYTHONPATH=lib`.
fn module_folders(argv: &[String]) -> Vec<&str> {
    let mut out = Vec::new();
    for (at, word) in argv.iter().enumerate() {
        let of_variable =
            |(name, value)| (name == "RUBYLIB" || name == "PERL5LIB" || str::ends_with(name, "PATH")).then_some(value);
        match word.strip_prefix("-I") {
            Some("") => out.extend(argv.get(at + 1).map(String::as_str)),
            Some(folder) => out.push(folder),
            None => {
                out.extend(word.split_once('=').and_then(of_variable).into_iter().flat_map(|all: &str| all.split(':')))
            }
        }
    }
    out.retain(|folder| !folder.is_empty());
    out.truncate(MODULE_FOLDERS);
    out
}

/// Programs that run `node_modules/.bin/NAME` of their folder or of one above it.
const PACKAGE_RUNNERS: &str = "npm npx pnpm pnpx yarn bun bunx";

/// What these read there besides.
const PACKAGE_SETTINGS: [&str; 4] = [".npmrc", ".yarnrc", ".yarnrc.yml", "bunfig.toml"];

/// A line with what its text tells.
pub(super) struct AnalysedLine<'l> {
    pub(super) text: &'l str,
    pub(super) placed: &'l [PlacedCommand],
    /// Files that its redirections name.
    pub(super) redirections: &'l [RedirectedFile],
    /// It may run more than its commands say.
    pub(super) opaque: bool,
}

/// The files that were found so far.
pub(super) struct NamedFiles<'p> {
    places: &'p LineFolders<'p>,
    /// The value of `HOME`.
    home: &'p str,
    /// Texts that were looked at, each with its folder.
    seen: BTreeSet<(String, String)>,
    found: BTreeMap<String, String>,
    patterns: usize,
    /// Patterns that match too much.
    wide: BTreeSet<String>,
}

impl<'p> NamedFiles<'p> {
    pub(super) fn new(places: &'p LineFolders<'p>, home: &'p str) -> Self {
        Self { places, home, seen: BTreeSet::new(), found: BTreeMap::new(), patterns: 0, wide: BTreeSet::new() }
    }

    /// Those among the words of a command.
    pub(super) fn of_command(&mut self, argv: &[String], cwd: &str) {
        let Some(at) = argv.iter().position(|word| !command::is_assignment(word)) else {
            return argv.iter().for_each(|word| self.of_word(word, cwd));
        };
        let words = argv.iter().enumerate().filter(|(word, _)| *word != at).map(|(_, word)| word);
        if !is_literal(&argv[at]) {
            self.of_word(&argv[at], cwd);
        }
        let keeps = only_keeps(&argv[at..]);
        // Whatever a program does with its words, a variable may name what it or a program behind it runs.
        let looked_at = words.clone().filter(|word| !keeps || command::is_assignment(word));
        looked_at.for_each(|word| self.of_word(word, cwd));
        let family = command::verbs::family(command::base(&argv[at]));
        let names: Vec<&str> = words.flat_map(|word| pieces(word)).filter(|name| !name.is_empty()).collect();
        found_as(argv).iter().for_each(|name| self.look(name, cwd));
        for above in ancestors(cwd).filter(|_| is_of(PACKAGE_RUNNERS, family)) {
            PACKAGE_SETTINGS.iter().for_each(|name| self.look(&format!("{above}/{name}"), cwd));
            names.iter().for_each(|name| self.look(&format!("{above}/node_modules/.bin/{name}"), cwd));
        }
    }

    /// Those that redirections give commands to read, unless every command only shows or moves what it reads.
    pub(super) fn of_inputs(&mut self, files: &[RedirectedFile], placed: &[PlacedCommand]) {
        if placed.iter().all(|command| command.argv.is_empty() || only_keeps(&command.argv)) {
            return;
        }
        let folders = self.folders(placed);
        for file in files.iter().filter(|file| !file.writes) {
            folders.iter().for_each(|cwd| self.look(&file.path, cwd));
        }
    }

    /// Every folder of a line that is known.
    fn folders(&self, placed: &[PlacedCommand]) -> BTreeSet<String> {
        let folders = placed.iter().filter_map(|command| self.places.of(&command.folder));
        folders.chain([self.places.start.to_owned()]).collect()
    }

    /// Those in the text of a line whose commands are not all known.
    pub(super) fn of_text(&mut self, text: &str, placed: &[PlacedCommand]) {
        let folders = self.folders(placed);
        let wide = self.wide.clone();
        folders.iter().for_each(|cwd| self.of_word(text, cwd));
        // The ask says already that not all of the line is known.
        self.wide = wide;
    }

    /// The files, each with what tells it from another, and the patterns of which it is not known what they match.
    pub(super) fn found(self) -> (BTreeMap<String, String>, BTreeSet<String>) {
        (self.found, self.wide)
    }

    fn of_word(&mut self, word: &str, cwd: &str) {
        self.look(word, cwd);
        pieces(word).for_each(|piece| self.look(piece, cwd));
    }

    fn look(&mut self, text: &str, cwd: &str) {
        if text.is_empty() || text.contains(['\n', '\0']) || !self.seen.insert((cwd.to_owned(), text.to_owned())) {
            return;
        }
        // `~-/x`, `~2/x`, `~user/x`: a folder of before, of the stack, or of somebody.
        if text.contains('/')
            && text.strip_prefix('~').is_some_and(|rest| !rest.starts_with('/') && !rest.starts_with("+/"))
        {
            self.wide.insert(text.to_owned());
        }
        self.found.extend(self.places.file(&self.place(text, cwd)));
        if text.contains(['*', '?', '[']) {
            self.patterns += 1;
            let folder = VirtualPath::new(cwd).ok().filter(|_| self.patterns <= PATTERNS);
            match folder.and_then(|folder| matched(self.places.mounts, &folder, text)) {
                Some(names) => {
                    self.found.extend(names.iter().filter_map(|name| self.places.file(&joined(cwd, name))));
                }
                None => _ = self.wide.insert(text.to_owned()),
            }
        }
    }

    /// Where a text leads, with what a shell puts for a home and for the folder.
    fn place(&self, text: &str, cwd: &str) -> String {
        let behind = |starts: &[&str]| starts.iter().find_map(|start| text.strip_prefix(start));
        // The folder of before is one of the line, and each of these is looked in; or the ask says that it is not known.
        let here = ["$PWD/", "${PWD}/", "$(pwd)/", "~+/", "~-/", "$OLDPWD/", "${OLDPWD}/"];
        match (behind(&["~/", "$HOME/", "${HOME}/"]), behind(&here)) {
            (Some(rest), _) => joined(self.home, rest),
            (None, rest) => joined(cwd, rest.unwrap_or(text)),
        }
    }
}

/// What may be a path in a word: `--opt=a:b`, `-fa`, `@a`, `{a,b}`, or a line.
pub(crate) fn pieces(word: &str) -> impl Iterator<Item = &str> {
    let parts = word.split(|c: char| c.is_whitespace() || "=:,;|&()<>'\"`{}".contains(c));
    parts.flat_map(|part| {
        // `-fa`, `-nfa`
        let letters = if part.starts_with('-') { LETTERS } else { 0 };
        let attached = (2..2 + letters).filter_map(|at| part.get(at..));
        attached.chain([part]).chain(part.strip_prefix('@'))
    })
}

/// Whether a program is known to run nothing of the files that it is given.
fn only_keeps(argv: &[String]) -> bool {
    let family = command::verbs::family(command::base(&argv[0]));
    match family {
        "git" => command::reads(argv) == ProgramReads::Text,
        // Its commands may be in a file.
        "sed" => !argv.iter().any(|word| word.starts_with('-') && word.contains('f')),
        // What it runs may use what it is given.
        _ if command::reads(argv) == ProgramReads::Wraps => false,
        _ => is_of(KEEPERS, family) || command::program_names().any(|known| known == family),
    }
}

fn is_of(names: &str, name: &str) -> bool {
    names.split_ascii_whitespace().any(|known| known == name)
}

/// A folder and those above it, by their text.
fn ancestors(folder: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(folder), |folder| folder.rsplit_once('/').map(|(above, _)| above))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_found_wherever_it_stands_in_a_word() {
        for word in
            ["x/a", "--file=x/a", "-fx/a", "-nfx/a", "@x/a", "b:x/a", "open('x/a')", "{b,x/a}", "cat x/a|sh", "<x/a"]
        {
            assert!(pieces(word).any(|piece| piece == "x/a"), "{word}: {:?}", pieces(word).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_program_that_only_shows_or_moves_files_runs_none() {
        let keeps = |line: &str| only_keeps(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        for line in ["cat a", "grep x a", "cp a b", "git add a", "sed -i s/a/b/ a", "rm -r a", "/bin/ls a"] {
            assert!(keeps(line), "{line}");
        }
        for line in ["env A=a sh", "env a", "nice a", "xargs a"] {
            assert!(!keeps(line), "{line}");
        }
        for line in ["sed -f a b", "awk -f a", "sh a", "pytest a", "unknown a", "make -f a", "java A.java", "tar -xf a"]
        {
            assert!(!keeps(line), "{line}");
        }
    }
}
