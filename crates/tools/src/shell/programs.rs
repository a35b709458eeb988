//! Which file a command's program is, before it runs: found as a shell finds it, and told from any other that could stand
//! at the same place.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use portcullis_command::{self as command, Analysis};
use portcullis_contract::Bound;
use portcullis_sandbox::{self as sandbox, Kind, MountTable};

/// Programs of one line that are looked for; a line with more is shown whole all the same.
const PROGRAMS: usize = 64;

/// Programs that run a file which stands in their words.
const INTERPRETERS: [&str; 24] = [
    "sh", "bash", "dash", "zsh", "ksh", "fish", "busybox", "python", "python2", "python3", "node", "nodejs", "deno",
    "bun", "ruby", "perl", "php", "lua", "luajit", "Rscript", "julia", "tclsh", "source", ".",
];

/// Where a line would run.
pub(super) struct From<'a> {
    pub(super) mounts: &'a MountTable,
    /// The folder, by its virtual path.
    pub(super) cwd: &'a str,
    /// The value of `PATH`.
    pub(super) path: &'a str,
}

/// The programs that a line names, and the files that it hands to interpreters.
pub(super) fn bound(analysis: &Analysis, from: &From<'_>) -> (Vec<Bound>, Vec<String>) {
    let mut forms: Vec<Vec<String>> = analysis.commands.clone();
    forms.extend(analysis.commands.iter().flat_map(|argv| command::unwrapped(argv)));
    let (mut known, mut bound, mut words) = (BTreeSet::new(), Vec::new(), Vec::new());
    for argv in &forms {
        let Some(name) = argv.first().filter(|name| is_literal(name)) else { continue };
        if known.len() < PROGRAMS && known.insert(name.clone()) {
            match program(name, from) {
                Some((place, identity)) => {
                    words.push(format!("{name} = {place}"));
                    bound.push(Bound::new(format!("the program `{name}`"), place, identity));
                }
                None => bound.push(Bound::new(format!("the program `{name}`"), "not found in any folder", "")),
            }
        }
        if let Some((place, identity)) = script(argv, from)
            && known.len() < PROGRAMS
            && known.insert(place.clone())
        {
            bound.push(Bound::new(format!("the file {place}"), "", identity));
        }
    }
    (bound, words)
}

fn is_literal(word: &str) -> bool {
    !word.is_empty() && !word.contains(['$', '`', '*', '?', '\n', '\0'])
}

/// The place of a program, and what tells it from another.
fn program(name: &str, from: &From<'_>) -> Option<(String, String)> {
    if name.contains('/') {
        return file(name, from, true);
    }
    from.path.split(':').find_map(|folder| {
        let folder = if folder.is_empty() { "." } else { folder };
        file(&format!("{folder}/{name}"), from, true)
    })
}

/// The first file of the mounts among the words of an interpreter.
fn script(argv: &[String], from: &From<'_>) -> Option<(String, String)> {
    let name = argv.first().and_then(|name| name.rsplit('/').next())?;
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if !INTERPRETERS.contains(&name) && !INTERPRETERS.contains(&bare) {
        return None;
    }
    let mut words = argv[1..].iter().filter(|word| !word.starts_with('-') && is_literal(word));
    words.find_map(|word| file(word, from, false))
}

/// A file as it would be found from the folder; outside of the mounts only a program of the machine.
fn file(name: &str, from: &From<'_>, runs: bool) -> Option<(String, String)> {
    let place = if name.starts_with('/') { name.to_owned() } else { format!("{}/{name}", from.cwd) };
    if let Ok(found) = from.mounts.resolve(&place) {
        let runnable =
            |found: &sandbox::Resolved| !runs || sandbox::stat(found).is_ok_and(|stat| stat.mode & 0o111 != 0);
        let found = Some(found).filter(|found| found.kind() == Some(Kind::File) && runnable(found))?;
        return Some((found.path().as_str().to_owned(), sandbox::identity(&found).ok()?));
    }
    let stat = std::fs::metadata(Path::new(&place)).ok().filter(|stat| runs && stat.is_file())?;
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
    (stat.mode() & 0o111 != 0).then_some((place, identity))
}
