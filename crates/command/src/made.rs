//! A line that makes a file or a link and runs it: what its name stands for is known only when the line runs.

use super::marks;
use super::unwrap::{base, is_assignment};

/// Programs that give a file another name or make it a program, by all their operands.
const MAKERS: &[&str] = &[
    "ln", "gln", "link", "cp", "gcp", "mv", "gmv", "install", "ginstall", "rsync", "dd", "tee", "chmod", "symlink",
    "rename",
];

/// Where programs of the system lie.
const SYSTEM: &[&str] = &["/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/opt/", "/nix/", "/snap/"];

/// What a line makes.
#[derive(Default)]
struct Made<'l> {
    /// Last names of what it names in doing so.
    touched: Vec<&'l str>,
    /// Those that are there afterwards.
    there: Vec<&'l str>,
    /// Something whose name is not known before the line runs.
    open: bool,
}

/// Whether one of `commands` may be something that another one makes, or that a redirection to one of `written` makes.
pub(super) fn runs_what_it_makes<'l>(commands: &'l [Vec<String>], written: impl Iterator<Item = &'l str>) -> bool {
    let mut made = Made::default();
    made.there.extend(written.map(last));
    for argv in commands {
        let Some(at) = argv.iter().position(|word| !is_assignment(word)) else { continue };
        let name = base(marks::bare(&argv[at]));
        if !MAKERS.contains(&name) {
            continue;
        }
        let operands: Vec<&String> = argv[at + 1..].iter().filter(|word| !word.starts_with('-')).collect();
        made.open |= operands.last().is_some_and(|word| marks::of(word).is_some() && name != "chmod");
        let names = operands.iter().map(|word| last(word.split_once('=').map_or(word.as_str(), |(_, value)| value)));
        made.touched.extend(names.clone());
        // Of others the last is what is made; these make each.
        let each = matches!(name, "tee" | "chmod" | "dd");
        made.there.extend(names.skip(if each { 0 } else { operands.len().saturating_sub(1) }));
    }
    let anything = made.open || !made.touched.is_empty() || !made.there.is_empty();
    anything && commands.iter().any(|argv| made.may_be(argv))
}

impl Made<'_> {
    fn may_be(&self, argv: &[String]) -> bool {
        // Where programs are looked for is changed.
        let path = |word: &String| word.starts_with("PATH=") || word.starts_with("PATH+=");
        let placed = !self.touched.is_empty() || self.open;
        if placed && argv.iter().any(path) {
            return true;
        }
        let Some(program) = argv.iter().find(|word| !is_assignment(word)).map(|word| marks::bare(word)) else {
            return false;
        };
        if base(program) == "run-parts" {
            return true;
        }
        let system = SYSTEM.iter().any(|folder| program.starts_with(folder)) && !program.contains("/..");
        if system || !program.contains('/') {
            return self.there.contains(&base(program));
        }
        let mut names = program.split('/').filter(|name| !matches!(*name, "" | "." | ".."));
        self.open || names.any(|name| self.touched.contains(&name) || self.there.contains(&name))
    }
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
