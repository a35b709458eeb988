//! Words of git that make it run something: settings, helpers and filters.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::option_reader::{OptionReader, ReadWord, ValuedOptions};
use super::{git_editor, marks};

/// Settings that only change how git looks at things or shows them.
const SAFE_SECTIONS: &[&str] = &[
    "color.",
    "user.",
    "advice.",
    "log.",
    "column.",
    "status.",
    "i18n.",
    "gc.",
    "pack.",
    "fetch.",
    "push.",
    "pull.",
    "branch.",
    "init.",
    "safe.",
    "commit.",
    "tag.",
    "format.",
    "http.",
    "index.",
    "grep.",
    "rerere.",
    "stash.",
    "versionsort.",
    "feature.",
    "protocol.version",
    "rebase.",
    "receive.",
    "transfer.",
    "clone.",
    "checkout.",
];

const SAFE_KEYS: &[&str] = &[
    "core.quotepath",
    "core.autocrlf",
    "core.eol",
    "core.safecrlf",
    "core.filemode",
    "core.ignorecase",
    "core.longpaths",
    "core.preloadindex",
    "core.abbrev",
    "core.precomposeunicode",
    "core.symlinks",
    "core.untrackedcache",
    "core.whitespace",
    "core.compression",
    "core.bare",
    "diff.renames",
    "diff.algorithm",
    "diff.context",
    "diff.noprefix",
    "diff.mnemonicprefix",
    "diff.colormoved",
    "diff.renamelimit",
    "merge.conflictstyle",
    "merge.ff",
    "merge.renames",
    "merge.renamelimit",
    "submodule.recurse",
];

/// Keys of safe sections whose value is a program all the same.
const PROGRAM_KEYS: &[&str] = &[
    "pager",
    "editor",
    "command",
    "program",
    "cmd",
    "helper",
    "hook",
    "proxy",
    "template",
    // Its text stands in the list of steps, each of which may run something.
    "instructionformat",
];

/// Programs that do nothing.
const NOTHING: &[&str] =
    &["", "cat", "true", "false", ":", "0", "1", "no", "yes", "on", "off", "/dev/null", "less", "never"];

/// Whether setting it makes git run what it is set to.
fn is_program(key: &str, value: &str) -> bool {
    if NOTHING.contains(&value) {
        return false;
    }
    let key = key.to_ascii_lowercase();
    let named = PROGRAM_KEYS.iter().any(|part| key.rsplit('.').next().is_some_and(|last| last.contains(part)));
    let safe = SAFE_SECTIONS.iter().any(|section| key.starts_with(section)) || SAFE_KEYS.contains(&key.as_str());
    named || !safe
}

fn sets_program(setting: &str) -> bool {
    setting.split_once('=').is_some_and(|(key, value)| is_program(key, value))
}

/// Long options whose value is a command, or a folder of commands.
const COMMANDS: &[&str] =
    &["upload-pack", "receive-pack", "exec", "exec-path", "extcmd", "open-files-in-pager", "authors-prog"];

/// Verbs that are made to run a program, or that take one in too many ways to tell.
const RUNNING_VERBS: &str = "filter-branch instaweb credential daemon p4 cvsserver send-email remote-ext remote-fd \
    merge-index svn cvsimport cvsexportcommit archimport shell hook difftool--helper mergetool--lib web--browse \
    http-backend imap-send citool gui";

/// Verbs whose words are names, patterns and messages. Their options that run something are found here.
const TEXT_VERBS: &str = "add am annotate apply blame branch cat-file check-ignore checkout cherry-pick clean commit \
    config describe diff format-patch grep help init log ls-files ls-tree merge mv notes reflog remote reset restore \
    rev-list rev-parse revert rm shortlog show show-ref stage stash status switch tag worktree";

fn holds(list: &str, verb: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == verb)
}

/// Whether an option takes a command. Git takes any beginning of a name that no other option has.
fn takes_command(word: &str) -> bool {
    let Some(name) = word.strip_prefix("--").map(|long| long.split('=').next().unwrap_or(long)) else { return false };
    !name.is_empty()
        && (COMMANDS.iter().any(|known| known.starts_with(name))
            || name.starts_with("config-e")
            || name.ends_with("-cmd"))
}

/// Whether a folder of hooks is named.
fn takes_template(words: &[String]) -> bool {
    let name = |word: &String| word.strip_prefix("--").map(|long| long.split('=').next().unwrap_or(long).to_owned());
    words.iter().filter_map(name).any(|name| name.len() > 2 && "template".starts_with(&name))
}

/// Whether options for `git clone` that another program hands on give it a program.
pub(super) fn is_told_a_program(words: &[String]) -> bool {
    words.iter().any(|word| takes_command(word) || ["-u", "-c", "--config"].iter().any(|start| word.starts_with(start)))
}

/// Whether the words behind the verb are text to git.
pub(super) fn reads_text(words: &[String]) -> bool {
    verb(words).is_none_or(|at| holds(TEXT_VERBS, &words[at]))
}

/// The words behind a verb that runs git once more: `git for-each-repo --config=x push`.
pub(super) fn once_more(words: &[String]) -> &[String] {
    match verb(words) {
        Some(at) if words[at] == "for-each-repo" => &words[at + 1..],
        _ => &[],
    }
}

/// Whether git opens an editor, which reads what git was given to read.
pub(super) fn opens_editor(words: &[String]) -> bool {
    verb(words).is_some_and(|at| git_editor::opens(&words[at], &words[at + 1..]))
}

/// Whether git runs a program that its words give it.
pub(super) fn runs_a_program(words: &[String]) -> bool {
    let verb = verb(words);
    let (before, after) = words.split_at(verb.unwrap_or(words.len()));
    let name = after.first().map_or("", String::as_str);
    let clones = matches!(name, "clone" | "submodule");
    let setting = |words: &[String]| {
        words.iter().enumerate().any(|(at, word)| match word.strip_prefix("-c") {
            Some("") => words.get(at + 1).is_some_and(|setting| sets_program(setting)),
            Some(setting) => sets_program(setting),
            None => {
                word.strip_prefix("--config=").is_some_and(sets_program)
                    || (word == "--config" && words.get(at + 1).is_some_and(|setting| sets_program(setting)))
            }
        })
    };
    if setting(before) || (clones && setting(after)) {
        return true;
    }
    // A path that git only prints.
    let asks = words.len() == 1 && words[0] == "--exec-path";
    if (!asks && words.iter().any(|word| takes_command(word)))
        || words.iter().any(|word| word.contains("ext::") || word.contains("fd::"))
    {
        return true;
    }
    let has = |letter: char| {
        after.iter().skip(1).any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains(letter))
    };
    match name {
        verb if holds(RUNNING_VERBS, verb) => true,
        "difftool" | "rebase" => has('x'),
        "clone" => has('u') || takes_template(after),
        "init" => takes_template(after),
        "grep" => has('O'),
        "config" => configures(&after[1..]),
        _ => false,
    }
}

/// Where the verb stands, behind the options of git itself.
fn verb(words: &[String]) -> Option<usize> {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        if !word.starts_with('-') {
            return Some(at);
        }
        let valued =
            ["-c", "-C", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--config-env", "--attr-source"];
        at += 1 + usize::from(valued.contains(&word.as_str()));
    }
    None
}

/// Verbs that git and the programs usually installed with it bring along. A configuration file cannot give them another
/// meaning: git looks for these first.
const OWN_VERBS: &str = "add am annotate apply archimport archive backfill bisect blame branch bugreport bundle cat-file \
    check-attr check-ignore check-mailmap check-ref-format checkout checkout--worker checkout-index cherry cherry-pick \
    citool clean clone column commit commit-graph commit-tree config count-objects credential credential-cache \
    credential-store cvsexportcommit cvsimport cvsserver daemon describe diagnose diff diff-files diff-index diff-pairs \
    diff-tree difftool fast-export fast-import fetch fetch-pack filter-branch fmt-merge-msg for-each-ref for-each-repo \
    format-patch fsck fsck-objects fsmonitor--daemon gc get-tar-commit-id grep gui hash-object help hook http-backend \
    http-fetch http-push imap-send index-pack init init-db instaweb interpret-trailers last-modified log ls-files \
    ls-remote ls-tree mailinfo mailsplit maintenance merge merge-base merge-file merge-index merge-octopus \
    merge-one-file merge-ours merge-recursive merge-resolve merge-subtree merge-tree mergetool mktag mktree \
    multi-pack-index mv name-rev notes p4 pack-objects pack-redundant pack-refs patch-id prune prune-packed pull push \
    quiltimport range-diff read-tree rebase receive-pack reflog refs remote remote-ext remote-fd remote-ftp remote-http \
    remote-https repack replace replay repo request-pull rerere reset restore rev-list rev-parse revert rm send-email \
    send-pack sh-i18n shell shortlog show show-branch show-index show-ref sparse-checkout stage stash status stripspace \
    submodule subtree survey svn switch symbolic-ref tag unpack-file unpack-objects update-index update-ref \
    update-server-info upload-archive upload-pack var verify-commit verify-pack verify-tag version whatchanged worktree \
    write-tree absorb annex cliff crypt filter-repo flow lfs";

static OWN: LazyLock<HashSet<&str>> = LazyLock::new(|| OWN_VERBS.split_ascii_whitespace().collect());

/// The verb of git where it is none of git's own, so that a configuration file may say what it runs: `git p`.
#[must_use]
pub fn alias_verb(words: &[String]) -> Option<&str> {
    let verb = &words[verb(words)?];
    (marks::of(verb).is_none() && !verb.is_empty() && !OWN.contains(verb.as_str())).then_some(verb)
}

/// `git config KEY VALUE`
fn configures(words: &[String]) -> bool {
    let valued = ValuedOptions { letters: "ft", long: &["file", "blob", "type", "default", "comment", "value", "url"] };
    let mut plain = Vec::new();
    for word in OptionReader::new(words, valued) {
        match word {
            ReadWord::Operand(word) => plain.push(word),
            // Behind the key an option of this name would be its value.
            ReadWord::Letter('l', _) | ReadWord::Long("list", _) if plain.is_empty() => return false,
            ReadWord::Long(long, _) if plain.is_empty() && long.starts_with("get") => return false,
            _ => {}
        }
    }
    match plain[..] {
        ["get" | "list", ..] => false,
        ["set", key, value, ..] | [key, value, ..] => is_program(key, value),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::analyse;

    #[test]
    fn l31_settings_of_git_that_run_a_program_hide_however_they_are_written() {
        for line in [
            "git -C r config alias.p '!touch ../made' get; git -C r p",
            "git -C r config alias.p '!touch ../made' list; git -C r p",
            "git config --add alias.p '!touch made' list",
            "git config --replace-all alias.p '!touch made' get",
            "git config --file get alias.p '!touch made'",
            "git config -f list alias.p '!touch made'",
            "git config set alias.p '!touch made'",
            "git config set --global alias.p '!touch made'",
            "git config core.fsmonitor 'touch made #' get",
            "git config --type=path core.pager 'touch made' get",
            "git -c 'rebase.instructionFormat=%s%nexec touch%x20made' -c sequence.editor=: rebase -i --root",
            "git config rebase.instructionFormat x",
            "git clone --template=$PWD/h . c",
            "git clone --templ h . c",
            "git init -q --template h r",
        ] {
            assert!(analyse(line).hides, "{line}");
        }
        for line in [
            "git config user.name x",
            "git config --get alias.p",
            "git config get alias.p",
            "git config -l",
            "git config list --global",
            "git config --global --list",
            "git config --global init.defaultBranch main",
            "git config --file x user.name y",
            "git commit --template=x -m y",
            "git clone --depth 1 https://localhost/x",
        ] {
            assert!(!analyse(line).hides, "{line}");
        }
    }
}
