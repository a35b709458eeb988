//! Which file a command's program is, before it runs: found as a shell finds it, and told from any other that could stand
//! at the same place.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use portcullis_command::{self as command, Folder, PlacedCommand};
use portcullis_contract::Bound;
use portcullis_sandbox::{self as sandbox, Kind};

use super::places::{LineFolders, is_relative, joined, written};

/// Programs of one line that are looked for; a line with more is shown whole all the same.
const PROGRAMS: usize = 64;

/// Programs that run a file which stands in their words.
const INTERPRETERS: [&str; 24] = [
    "sh", "bash", "dash", "zsh", "ksh", "fish", "busybox", "python", "python2", "python3", "node", "nodejs", "deno",
    "bun", "ruby", "perl", "php", "lua", "luajit", "Rscript", "julia", "tclsh", "source", ".",
];

/// Where the programs of a line are looked up from.
pub(super) struct LookupStart<'a> {
    pub(super) places: &'a LineFolders<'a>,
    /// The value of `PATH`.
    pub(super) path: &'a str,
}

/// What was found of the programs of a line.
#[derive(Default)]
pub(super) struct Programs {
    pub(super) bound: Vec<Bound>,
    /// `name = place`
    pub(super) words: Vec<String>,
    /// Files that interpreters are given in a folder that becomes known only when the line runs.
    pub(super) unknown: Vec<String>,
}

/// The programs that a line names, and the files that it hands to interpreters.
pub(super) fn bound(placed: &[PlacedCommand], from: &LookupStart<'_>) -> Programs {
    let (mut known, mut out) = (BTreeSet::new(), Programs::default());
    for PlacedCommand { argv, folder } in placed.iter().filter(|command| command.folder != Folder::Elsewhere) {
        let Some(name) = argv.first().filter(|name| is_literal(name)) else { continue };
        let cwd = from.places.of(folder);
        // Only some programs depend on the folder.
        let there =
            is_relative(name) || (!name.contains('/') && from.path.split(':').any(|path| !path.starts_with('/')));
        let title = match folder {
            Folder::At(steps) if there => format!("the program `{name}` in `{}`", written(steps)),
            _ => format!("the program `{name}`"),
        };
        if (cwd.is_some() || !there) && known.len() < PROGRAMS && known.insert(title.clone()) {
            match program(name, cwd.as_deref().unwrap_or("/"), from) {
                Some((place, identity)) => {
                    out.words.push(format!("{name} = {place}"));
                    out.bound.push(Bound::new(title, place, identity));
                }
                None => out.bound.push(Bound::new(title, "not found in any folder", "")),
            }
        }
        match cwd {
            Some(cwd) => {
                if let Some((place, identity)) = script(argv, &cwd, from)
                    && known.len() < PROGRAMS
                    && known.insert(place.clone())
                {
                    out.bound.push(Bound::new(format!("the file {place}"), "", identity));
                }
            }
            None => out.unknown.extend(
                argv.get(1)
                    .filter(|word| is_interpreter(name) && !word.starts_with(['-', '/']))
                    .filter(|word| !command::may_be_line(word))
                    .map(|word| format!("`{name} {word}`")),
            ),
        }
    }
    out.words.dedup();
    out
}

/// Whether a word of a command stands for itself.
pub(super) fn is_literal(word: &str) -> bool {
    !word.is_empty() && !word.starts_with('~') && !word.contains(['$', '`', '*', '?', '\n', '\0'])
}

/// The place of a program, and what tells it from another.
fn program(name: &str, cwd: &str, from: &LookupStart<'_>) -> Option<(String, String)> {
    if name.contains('/') {
        return file(&joined(cwd, name), from, true);
    }
    from.path.split(':').find_map(|folder| {
        let folder = if folder.is_empty() { "." } else { folder };
        file(&joined(cwd, &format!("{folder}/{name}")), from, true)
    })
}

/// The first file of the mounts among the words of an interpreter.
fn script(argv: &[String], cwd: &str, from: &LookupStart<'_>) -> Option<(String, String)> {
    let (name, words) = argv.split_first()?;
    let mut words = words.iter().filter(|word| !word.starts_with('-') && is_literal(word));
    if is_interpreter(name) { words.find_map(|word| file(&joined(cwd, word), from, false)) } else { None }
}

fn is_interpreter(program: &str) -> bool {
    let name = command::base(program);
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS.contains(&name) || INTERPRETERS.contains(&bare)
}

/// A file by its path; outside of the mounts only a program of the machine.
fn file(place: &str, from: &LookupStart<'_>, runs: bool) -> Option<(String, String)> {
    if let Ok(found) = from.places.mounts.resolve(place) {
        let runnable =
            |found: &sandbox::ResolvedPlace| !runs || sandbox::stat(found).is_ok_and(|stat| stat.mode & 0o111 != 0);
        let found = Some(found).filter(|found| found.kind() == Some(Kind::File) && runnable(found))?;
        return Some((found.path().as_str().to_owned(), sandbox::identity(&found).ok()?));
    }
    let stat = std::fs::metadata(Path::new(place)).ok().filter(|stat| runs && stat.is_file())?;
    let identity = format!(
        "{}:{}:{}:{}.{}:{}.{}",
        stat.dev(),
        stat.ino(),
        stat.size(),
        stat.mtime(),
        stat.mtime_nsec(),
        stat.ctime(),
        stat.ctime_nsec()
    );
    (stat.mode() & 0o111 != 0).then(|| (place.to_owned(), identity))
}
