//! A line that changes into a folder after it put something else there: what is there is known only when the line runs.

use super::folders::Folder;
use super::marks;
use super::unwrap::{base, is_assignment};

/// Programs that put something else where a folder or a link is, by all their operands.
const REPLACERS: &[&str] = &[
    "ln", "gln", "link", "cp", "gcp", "mv", "gmv", "install", "ginstall", "rsync", "rm", "grm", "rmdir", "unlink",
    "symlink", "rename",
];

/// Whether one of `commands` may put something else where one of `folders` is looked for.
pub(super) fn are_replaced<'l>(commands: &[Vec<String>], folders: impl Iterator<Item = &'l Folder>) -> bool {
    let names = |path: &'l str| path.split('/').filter(|name| !matches!(*name, "" | "." | ".."));
    let steps = folders.filter_map(|folder| if let Folder::At(steps) = folder { Some(steps) } else { None });
    let entered: Vec<&str> = steps.flatten().flat_map(|step| names(step)).collect();
    let replaces = |argv: &Vec<String>| {
        let mut words = argv.iter().skip_while(|word| is_assignment(word));
        words.next().is_some_and(|program| REPLACERS.contains(&base(program)))
            && words
                .filter(|word| !word.starts_with('-'))
                .any(|word| marks::of(word).is_some() || entered.contains(&base(word.trim_end_matches('/'))))
    };
    !entered.is_empty() && commands.iter().any(replaces)
}
