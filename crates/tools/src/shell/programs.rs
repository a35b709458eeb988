//! Which file a command's program is, before it runs: found as a shell finds it, and told from any other that could stand
//! at the same place.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use portcullis_command::{self as command, Folder, PlacedCommand};
use portcullis_contract::Bound;
use portcullis_sandbox as sandbox;

use super::named_files::{AnalysedLine, NamedFiles};
use super::places::{LineFolders, is_relative, joined, written};

/// Programs and files of one line that are bound each by itself. The others are bound as one.
const BY_THEMSELVES: usize = 64;

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
    /// The value of `HOME`.
    pub(super) home: &'a str,
}

/// What was found of the programs of a line.
#[derive(Default)]
pub(super) struct Programs {
    pub(super) bound: Vec<Bound>,
    /// `name = place`
    pub(super) words: Vec<String>,
    /// The files that it names for them, by their virtual paths.
    pub(super) files: Vec<String>,
    /// Commands that run a file in a folder, or by a pattern, that becomes known only when the line runs.
    pub(super) unknown: Vec<String>,
    /// How many of them are bound as one.
    pub(super) together: usize,
}

/// The programs that a line names, and the files that it names for programs which may run them.
pub(super) fn bound(line: &AnalysedLine<'_>, from: &LookupStart<'_>) -> Programs {
    let (mut known, mut out) = (BTreeSet::new(), Programs::default());
    let mut files = NamedFiles::new(from.places, from.home);
    for PlacedCommand { argv, folder } in line.placed.iter().filter(|command| command.folder != Folder::Elsewhere) {
        let Some(name) = argv.first() else { continue };
        let cwd = from.places.of(folder);
        match &cwd {
            Some(cwd) => files.of_command(argv, cwd),
            None => out.unknown.extend(
                argv.get(1)
                    .filter(|word| is_interpreter(name) && !word.starts_with(['-', '/']))
                    .filter(|word| !command::may_be_line(word))
                    .map(|word| format!("`{name} {word}`")),
            ),
        }
        // Only some programs depend on the folder.
        let there =
            is_relative(name) || (!name.contains('/') && from.path.split(':').any(|path| !path.starts_with('/')));
        let title = match folder {
            Folder::At(steps) if there => format!("the program `{name}` in `{}`", written(steps)),
            _ => format!("the program `{name}`"),
        };
        if !is_literal(name) || (cwd.is_none() && there) || !known.insert(title.clone()) {
            continue;
        }
        match program(name, cwd.as_deref().unwrap_or("/"), from) {
            Some((place, identity)) => {
                out.words.push(format!("{name} = {place}"));
                out.bound.push(Bound::new(title, place, identity));
            }
            None => out.bound.push(Bound::new(title, "not found in any folder", "")),
        }
    }
    files.of_inputs(line.redirections, line.placed);
    if line.opaque {
        files.of_text(line.text, line.placed);
    }
    let (files, wide) = files.found();
    out.unknown.extend(wide.into_iter().map(|pattern| format!("`{pattern}`")));
    let is_bound = |place: &String| out.bound.iter().any(|program| program.what == *place);
    let files: Vec<_> = files.into_iter().filter(|(place, _)| !is_bound(place)).collect();
    out.files = files.iter().map(|(place, _)| place.clone()).collect();
    out.bound.extend(files.into_iter().map(|(place, identity)| Bound::new(format!("the file {place}"), "", identity)));
    out.words.dedup();
    out.bind_the_rest_as_one();
    out
}

impl Programs {
    fn bind_the_rest_as_one(&mut self) {
        let rest = self.bound.split_off(BY_THEMSELVES.min(self.bound.len()));
        self.together = rest.len();
        if !rest.is_empty() {
            let all: Vec<String> =
                rest.iter().map(|one| format!("{}\0{}\0{}\n", one.name, one.what, one.value.expose())).collect();
            let title = "one of the further programs and files of the line";
            self.bound.push(Bound::new(title, format!("({} of them)", rest.len()), all.concat()));
        }
        let more = self.words.split_off(BY_THEMSELVES.min(self.words.len()));
        if !more.is_empty() {
            self.words.push(format!("… and {} more", more.len()));
        }
    }
}

/// Whether a word of a command stands for itself.
pub(super) fn is_literal(word: &str) -> bool {
    !word.is_empty() && !word.starts_with('~') && !word.contains(['$', '`', '*', '?', '\n', '\0'])
}

/// The place of a program, and what tells it from another.
fn program(name: &str, cwd: &str, from: &LookupStart<'_>) -> Option<(String, String)> {
    if name.contains('/') {
        return file(&joined(cwd, name), from);
    }
    from.path.split(':').find_map(|folder| {
        let folder = if folder.is_empty() { "." } else { folder };
        file(&joined(cwd, &format!("{folder}/{name}")), from)
    })
}

pub(crate) fn is_interpreter(program: &str) -> bool {
    let name = command::base(program);
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS.contains(&name) || INTERPRETERS.contains(&bare)
}

/// A program by its path, in the mounts or of the machine.
fn file(place: &str, from: &LookupStart<'_>) -> Option<(String, String)> {
    if let Ok(found) = from.places.mounts.resolve(place) {
        let runs = sandbox::stat(&found).is_ok_and(|stat| stat.mode & 0o111 != 0);
        return from.places.file(place).filter(|_| runs);
    }
    let stat = std::fs::metadata(Path::new(place)).ok().filter(|stat| stat.is_file())?;
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
