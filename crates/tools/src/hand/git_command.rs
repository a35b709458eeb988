//! What a git setting that holds a command may run: the names in its text, and whether the text tells them all.
//!
//! A setting is a line of a shell. Which of its names is a folder and which a file only the file system tells, so every
//! name is looked for in every folder that another name leads to: `cd tools && ./x.sh`, `env -C tools ./x.sh`,
//! `PATH=tools:$PATH x.sh` and `make -C tools` need no rule of their own.

use std::collections::BTreeSet;

use portcullis_command::{self as command, Folder, PlacedCommand};

use super::git_config;
use crate::shell::{found_as, is_interpreter, is_relative, pieces, runs_scripts};

/// Names of one setting. Real ones have a dozen.
const NAMES_MAX: usize = 400;

/// Files that programs read in their folder, although no word names them.
const READS_BY_ITSELF: &[(&str, &[&str])] = &[
    ("make gmake bmake pmake", &["GNUmakefile", "makefile", "Makefile", "BSDmakefile"]),
    (
        "npm npx pnpm pnpx yarn bun bunx",
        &["package.json", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", "bunfig.toml"],
    ),
    ("just", &["justfile", ".justfile", "Justfile"]),
    ("task go-task", &["Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml"]),
    ("rake", &["Rakefile", "rakefile", "Rakefile.rb"]),
    ("cargo", &[".cargo/config.toml", ".cargo/config"]),
    ("ninja samu", &["build.ninja"]),
    ("deno", &["deno.json", "deno.jsonc"]),
    ("pre-commit", &[".pre-commit-config.yaml"]),
    ("tox", &["tox.ini"]),
    ("nox", &["noxfile.py"]),
    ("invoke inv", &["tasks.py"]),
    ("mise", &["mise.toml", ".mise.toml"]),
];

/// Texts that stand for the folder of a command or for the top of the tree, which is looked in anyhow.
const HERE: &[&str] = &[
    "$(git rev-parse --show-toplevel)",
    "`git rev-parse --show-toplevel`",
    "$(pwd)",
    "`pwd`",
    "$(pwd -P)",
    "${PWD}",
    "$PWD",
    "~+",
];

/// The same of a home.
const HOME: &[&str] = &["${HOME}", "$HOME"];

/// What the text of a setting tells.
#[derive(Debug, Default)]
pub(super) struct SettingCommand {
    /// What may be the path of a file, of a folder, or a pattern over them.
    pub(super) names: BTreeSet<Vec<u8>>,
    /// Files that its programs read wherever they run.
    pub(super) own_files: BTreeSet<&'static str>,
    /// The program, the script or the folder of a command becomes known only when git runs it.
    pub(super) open: bool,
    /// There are more names than are looked for.
    pub(super) cut: bool,
}

impl SettingCommand {
    /// Of a value. `of_git`: its words are words of git unless it begins with `!`, as those of an alias.
    pub(super) fn of(value: &[u8], of_git: bool) -> Self {
        let (value, is_shell) = value.strip_prefix(b"!").map_or((value, !of_git), |line| (line, true));
        let mut out = Self::default();
        let text = String::from_utf8_lossy(value).trim().to_owned();
        let text = if is_shell { text } else { format!("git {text}") };
        let text = put(&put(&text, HERE, "."), HOME, "~");
        for name in git_config::words(value).into_iter().chain(git_config::words(text.as_bytes())) {
            out.name(name);
        }
        let analysis = command::analyse(&text);
        let placed = analysis.placed();
        for PlacedCommand { argv, .. } in &placed {
            out.command(argv);
        }
        analysis.redirections.iter().for_each(|file| out.text(&file.path));
        let written = || analysis.commands.iter().zip(&analysis.folders);
        out.open = written().any(|(argv, folder)| is_open(argv, folder, &text))
            || placed.iter().any(|one| one.folder == Folder::Unknown && is_open(&one.argv, &one.folder, &text))
            || (analysis.hides && text.contains(['$', '`']));
        out
    }

    fn command(&mut self, argv: &[String]) {
        argv.iter().for_each(|word| self.text(word));
        let Some(at) = argv.iter().position(|word| !command::is_assignment(word)) else { return };
        found_as(&argv[at..]).into_iter().for_each(|name| self.name(name.into_bytes()));
        let family = command::verbs::family(command::base(&argv[at]));
        let reads = READS_BY_ITSELF.iter().filter(|(names, _)| names.split(' ').any(|name| name == family));
        self.own_files.extend(reads.flat_map(|(_, files)| *files));
    }

    fn text(&mut self, word: &str) {
        self.name(word.as_bytes().to_owned());
        pieces(word).for_each(|piece| self.name(piece.as_bytes().to_owned()));
    }

    /// Keeps a name, and what is left of it without a variable or an operator before it: `$x/a`, `${X:-a}`.
    fn name(&mut self, name: Vec<u8>) {
        let bare = name.iter().position(|byte| !b"-+?=#%@!".contains(byte)).map_or(&[][..], |at| &name[at..]);
        let variables = name.split(|byte| *byte == b'$').skip(1).map(|part| {
            let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
            let end = if part.first() == Some(&b'{') {
                part.iter().position(|byte| *byte == b'}').map_or(part.len(), |at| at + 1)
            } else {
                part.iter().position(|byte| !is_name(byte)).unwrap_or(part.len())
            };
            &part[end..]
        });
        let more: Vec<Vec<u8>> = variables.chain([bare]).map(<[u8]>::to_owned).collect();
        for name in more.into_iter().chain([name]) {
            if name.is_empty() || name.contains(&b'\n') || name.contains(&0) {
                continue;
            }
            if self.names.len() >= NAMES_MAX && !self.names.contains(&name) {
                self.cut = true;
            } else {
                self.names.insert(name);
            }
        }
    }
}

/// Puts a text in the place of others, but not of the beginning of a longer variable.
fn put(text: &str, from: &[&str], to: &str) -> String {
    let mut text = text.to_owned();
    for from in from {
        let mut out = String::new();
        let mut rest = text.as_str();
        while let Some(at) = rest.find(from) {
            let (before, behind) = (&rest[..at], &rest[at + from.len()..]);
            let longer = from.ends_with(|c: char| c.is_ascii_alphanumeric())
                && behind.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
            out.push_str(before);
            out.push_str(if longer { from } else { to });
            rest = behind;
        }
        out.push_str(rest);
        text = out;
    }
    text
}

/// Whether a text holds something that a shell puts in its place, other than the words that git gives a command.
fn holds_open(text: &str) -> bool {
    let given = ["$@", "$*", "$#", "${@}", "${1}"];
    let bare = given.iter().fold(text.to_owned(), |text, given| text.replace(given, ""));
    let mut parts = bare.split('$').skip(1);
    bare.contains('`') || parts.any(|part| !part.starts_with(|c: char| c.is_ascii_digit()))
}

fn is_open(argv: &[String], folder: &Folder, text: &str) -> bool {
    let Some(at) = argv.iter().position(|word| !command::is_assignment(word)) else { return false };
    let (program, words) = (&argv[at], &argv[at + 1..]);
    let braces = |word: &str| word.contains('{') && word.contains('}');
    if program.contains(['$', '`']) || braces(program) {
        return true;
    }
    let interprets = is_interpreter(program) || program == "eval";
    let finds = runs_scripts(&argv[at..]);
    if *folder == Folder::Unknown && text.contains(['$', '`']) && (is_relative(program) || interprets || finds) {
        return holds_open(text);
    }
    // A line in the words is analysed by itself.
    let inline = words.iter().any(|word| matches!(word.as_str(), "-c" | "-e"));
    let moves = matches!(program.as_str(), "env" | "cd" | "pushd" | "xargs");
    ((interprets && !inline) || finds || moves) && words.iter().any(|word| holds_open(word) || braces(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_line_is_found_however_it_is_written() {
        for (value, names) in [
            ("cd tools && ./f.sh", vec!["tools", "./f.sh"]),
            ("$PWD/tools/f.sh", vec!["./tools/f.sh"]),
            ("`pwd`/tools/f.sh", vec!["./tools/f.sh"]),
            ("env -C tools ./f.sh", vec!["tools", "./f.sh"]),
            ("env -Ctools ./f.sh", vec!["tools", "./f.sh"]),
            ("${X:-tools/f.sh}", vec!["tools/f.sh"]),
            ("x=tools; $x/f.sh", vec!["tools", "/f.sh"]),
            ("PATH=tools:$PATH f.sh", vec!["tools", "f.sh"]),
            ("python3 -m tools.f", vec!["tools/f.py"]),
            ("perl -Itools -Mf -e 1", vec!["tools", "f.pm"]),
            ("to''ols/f.sh", vec!["tools/f.sh"]),
            ("tools\\/f.sh", vec!["tools/f.sh"]),
            ("sh < tools/f.sh", vec!["tools/f.sh"]),
        ] {
            let found = SettingCommand::of(value.as_bytes(), false);
            for name in names {
                assert!(found.names.contains(name.as_bytes()), "{value}: {name} is not in {:?}", found.names);
            }
        }
    }

    #[test]
    fn a_setting_is_open_only_where_its_program_script_or_folder_is() {
        let open = |value: &str| SettingCommand::of(value.as_bytes(), true).open;
        for value in [
            "!$x/f.sh",
            "!${X:-tools/f.sh}",
            "!`cat where`/f.sh",
            "!cd $x && ./f.sh",
            "!sh $x",
            "!. \"$(cat where)\"",
            "!eval \"$X\"",
            "!make -C $x",
            "!env -C $x ./f.sh",
            "!sh tools/{f,g}.sh",
        ] {
            assert!(open(value), "{value}");
        }
        for value in [
            "status -sb",
            "log --format='%h $x'",
            "!git log $1",
            "!f() { git commit -m \"$1\"; }; f",
            "!f() { ./x.sh \"$@\"; }; f",
            "!sh -c 'git log \"$1\"' -",
            "!\"$(git rev-parse --show-toplevel)\"/x.sh",
            "!$PWD/x.sh \"$@\"",
            "!cd tools && ./f.sh",
            "!vim",
            "!ssh -i $HOME/.ssh/key",
        ] {
            assert!(!open(value), "{value}");
        }
    }
}
