//! Programs that run a program given as the value of an option, as one of their words, or in a variable.

use super::program_variables::{self, runs_variable};
use super::runners::ANY_TAIL;
use super::shell::is_input;
use super::unwrap::{self, is_assignment};
use super::{database, git, plain_programs, sed};

/// Options whose value is a command.
struct CommandOptions {
    names: &'static [&'static str],
    letters: &'static str,
    /// Long options; any beginning of one is taken for it.
    long: &'static [&'static str],
    /// Options of several letters after one dash.
    words: &'static [&'static str],
}

const fn runs(names: &'static [&'static str], letters: &'static str, long: &'static [&'static str]) -> CommandOptions {
    CommandOptions { names, letters, long, words: &[] }
}

static RUNS: &[CommandOptions] = &[
    runs(
        &["tar", "gtar", "bsdtar"],
        "IF",
        &[
            "to-command",
            "use-compress-program",
            "checkpoint-action",
            "info-script",
            "new-volume-script",
            "rsh-command",
            "rmt-command",
        ],
    ),
    runs(&["rsync"], "e", &["rsh", "rsync-path"]),
    runs(&["scp"], "SD", &[]),
    runs(&["make", "gmake", "bmake", "pmake"], "E", &["eval"]),
    runs(&["man"], "PH", &["pager", "html"]),
    runs(&["split", "gsplit"], "", &["filter"]),
    runs(&["sort", "gsort"], "", &["compress-program"]),
    runs(&["rg"], "", &["pre", "hostname-bin"]),
    runs(&["install", "ginstall"], "", &["strip-program"]),
    runs(&["sdiff"], "", &["diff-program"]),
    runs(&["nc", "ncat", "netcat"], "ec", &["exec", "sh-exec", "lua-exec"]),
    runs(&["tcpdump"], "z", &["postrotate-command"]),
    runs(&["wget"], "", &["use-askpass"]),
    runs(&["just"], "c", &["command", "shell"]),
    runs(&["mosh"], "", &["ssh", "server"]),
    runs(&["hg"], "", &["config"]),
    runs(&["svn"], "", &["config-option", "diff-cmd", "diff3-cmd", "editor-cmd"]),
    runs(
        &["npm", "pnpm", "yarn", "bun", "npx", "pnpx", "bunx"],
        "",
        &["script-shell", "node-options", "shell", "call", "git", "editor", "viewer", "browser", "onload-script"],
    ),
    runs(&["bazel", "bazelisk"], "", &["run_under"]),
    runs(&["meson"], "", &["wrapper", "gdb-path"]),
    runs(&["nano", "pico"], "s", &["speller"]),
    runs(&["gpg", "gpg2"], "", &["photo-viewer", "agent-program", "dirmngr-program", "exec-path"]),
    runs(&["pandoc"], "F", &["filter", "pdf-engine"]),
    CommandOptions { words: &["TT"], ..runs(&["zip"], "", &["unzip-command"]) },
    CommandOptions { words: &["exec", "toolexec", "vettool"], ..runs(&["go"], "", &["exec", "toolexec", "vettool"]) },
    CommandOptions { words: &["wrapper"], ..runs(&["gcc", "g++", "cc", "c++", "clang", "clang++"], "", &["wrapper"]) },
    CommandOptions {
        words: &["ex", "iex", "eval-command", "init-eval-command"],
        ..runs(&["gdb"], "", &["ex", "iex", "eval-command", "init-eval-command"])
    },
    runs(&["lldb"], "oOkK", &["one-line"]),
];

/// Programs with a language of their own that can start others, typed in or given as a word.
const OWN_LANGUAGE: &[&str] = &[
    "vi",
    "vim",
    "view",
    "ex",
    "nvim",
    "gvim",
    "vimdiff",
    "rvim",
    "evim",
    "ed",
    "red",
    "emacs",
    "emacsclient",
    "dc",
    "m4",
    "expect",
    "gnuplot",
    "octave",
    "R",
    "at",
    "batch",
    "sftp",
    "ftp",
    "lftp",
    "mail",
    "mailx",
    "mutt",
    "bpftrace",
    "fc",
    "bind",
    "jshell",
    "scala",
    "clojure",
    "clj",
    "bb",
    "sbcl",
    "ocaml",
    "swipl",
    "racket",
    "ipython",
    "gview",
    "rview",
    "rgvim",
    "rgview",
    "gvimdiff",
    "eview",
    "nvi",
    "vile",
    "elvis",
    "editor",
    "sensible-editor",
    "mg",
    "jed",
    "joe",
    "jmacs",
    "jove",
    "kak",
    "hx",
    "helix",
    "ghci",
    "pry",
    "duckdb",
    "sqlplus",
    "mongo",
    "mongosh",
    "smbclient",
    "telnet",
    "s-nail",
    "maxima",
    "gp",
    "tig",
    "run-parts",
];

/// Programs that take commands of their own from their input, and are ordinary without one.
const FED_LANGUAGE: &[&str] = &["gdb", "cgdb", "lldb", "dlv", "jdb", "rr", "wdb", "pdb", "ipdb", "kdb"];

/// Ends that a distribution gives to the variants of one program.
const VARIANTS: &[&str] = &[
    ".basic",
    ".tiny",
    ".nox",
    ".gtk",
    ".gtk3",
    ".athena",
    ".openbsd",
    ".traditional",
    ".mailutils",
    "-gtk",
    "-nox",
    "-lucid",
];

/// The name without the end that tells variants of one program apart: `vim.basic` is `vim`.
pub(super) fn plain_name(name: &str) -> &str {
    VARIANTS.iter().find_map(|end| name.strip_suffix(end)).filter(|plain| !plain.is_empty()).unwrap_or(name)
}

/// Whether a program takes what it runs from the input that a line gives it.
pub(super) fn runs_what_it_is_fed(argv: &[String]) -> bool {
    let Some((program, words)) = argv.split_first() else { return false };
    let name = plain_name(unwrap::base(program));
    FED_LANGUAGE.contains(&name) || starts_a_shell(name, words) || opens_editor(name, words)
}

/// Whether a program opens a person's editor, which reads what the program was given to read.
fn opens_editor(name: &str, words: &[String]) -> bool {
    let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
    match name {
        "git" => git::opens_editor(words),
        "sudoedit" | "visudo" | "vipw" | "vigr" | "edquota" => true,
        "kubectl" | "oc" | "systemctl" | "virsh" | "gh" | "glab" => has(&["edit"]),
        "sudo" => has(&["-e", "--edit"]),
        "svn" | "hg" | "jj" | "bzr" => {
            let message = |word: &String| {
                ["-m", "-F", "-l", "--message", "--file", "--logfile"].iter().any(|start| word.starts_with(start))
            };
            has(&["commit", "ci", "describe", "histedit"]) && !words.iter().any(message)
        }
        _ => false,
    }
}

/// Whether a program that runs another one is told none, and so starts a shell on its input: `linux64 -v`, `su root`.
fn starts_a_shell(name: &str, words: &[String]) -> bool {
    // `ts` marks lines with the time.
    if !ANY_TAIL.contains(&name) || name == "ts" {
        return false;
    }
    let operands = || words.iter().filter(|word| !word.starts_with('-'));
    let known = |word: &String| word.contains(' ') || plain_programs::is_known(word);
    operands().next().is_none() || (OPERAND_THEN_SHELL.contains(&name) && !operands().any(known))
}

/// Those of them that take a user, a process, a folder or a machine before the command.
const OPERAND_THEN_SHELL: &[&str] = &[
    "setarch",
    "su",
    "sg",
    "runuser",
    "nsenter",
    "unshare",
    "script",
    "schroot",
    "dchroot",
    "proot",
    "nix-shell",
    "systemd-nspawn",
    "distrobox",
    "toolbox",
    "machinectl",
    "firejail",
    "gosu",
    "su-exec",
];

/// What may stand where a command may: it does nothing with what it is given but pack, show or carry it.
const HARMLESS: &[&str] = &[
    "gzip", "gunzip", "bzip2", "xz", "zstd", "unzstd", "lz4", "lzip", "lzma", "lzop", "pigz", "pbzip2", "pxz", "zcat",
    "brotli", "ssh", "cat", "less", "more", "true", "false", ":", "dot", "echo", "totals", "ccache", "sccache",
];

pub(super) const AS_OPTION: &str = "an option or a word is a program that is run";
const AS_VARIABLE: &str = "a variable is a program that is run";

/// Whether what such a program runs is found here.
pub(super) fn is_known(name: &str) -> bool {
    OWN_LANGUAGE.contains(&name) || RUNS.iter().any(|runs| runs.names.contains(&name))
}

/// Why the words do not tell what is run, if a program is hidden in them.
pub(super) fn hidden(name: &str, words: &[String]) -> Option<&'static str> {
    if lines(name, words).iter().any(|line| !is_harmless(line)) {
        return Some(AS_OPTION);
    }
    if is_assignment(name) && runs_variable(name) {
        return Some(AS_VARIABLE);
    }
    if OWN_LANGUAGE.contains(&name) {
        let asks = matches!(words, [only] if matches!(only.as_str(), "--version" | "--help" | "-l"));
        let lists = name == "run-parts" && words.iter().any(|word| matches!(word.as_str(), "--test" | "--list"));
        let asks = asks || lists;
        return (!asks).then_some("a program has commands of its own, which may run others");
    }
    match name {
        "git" => git::runs_a_program(words).then_some(AS_OPTION),
        "sed" | "gsed" => sed::runs_or_writes(words).then_some("a script of sed runs a command or writes a file"),
        "env" | "genv" | "cross-env" | "sudo" | "doas" | "export" | "declare" | "typeset" | "local" | "readonly"
            if words.iter().any(|word| runs_variable(word)) =>
        {
            Some(AS_VARIABLE)
        }
        "make" | "gmake" | "bmake" | "pmake" => program_variables::makes(words),
        "crontab" => (!words.iter().any(|word| word == "-l")).then_some("a table of commands is installed"),
        "ssh" | "autossh" | "scp" | "mosh" | "sshfs" | "rsync" => connects(name, words),
        "socat" => any(words, &["exec:", "system:", "shell:"]).then_some(AS_OPTION),
        "less" | "more" | "most" => {
            words.iter().any(|word| word.starts_with('+') && word.contains('!')).then_some(AS_OPTION)
        }
        "apt" | "apt-get" | "dpkg" | "aptitude" => any(words, &["invoke", "dpkg::tools"]).then_some(AS_OPTION),
        "cargo" => {
            let config = words.iter().any(|word| word.starts_with("--config"));
            let keys = ["wrapper", "runner", "linker", "alias", "rustc", "rustdoc", "credential", "env."];
            (config && any(words, &keys)).then_some(AS_OPTION)
        }
        "gdb" => words.iter().any(|word| is_input(word)).then_some(AS_OPTION),
        "java" | "swift" | "kotlin" | "mix" | "rails" | "iex" => {
            let inline = |word: &String| is_input(word) || matches!(word.as_str(), "-e" | "--eval" | "runner" | "r");
            words.iter().any(inline).then_some(AS_OPTION)
        }
        "gh" => {
            // What is behind `--` goes to git.
            let own = words.iter().position(|word| word == "--").map_or(&[][..], |at| &words[at..]);
            (words.iter().any(|word| word == "alias") || git::is_told_a_program(own)).then_some(AS_OPTION)
        }
        "mvn" | "mvnw" => any(words, &["exec:", "exec.executable"]).then_some(AS_OPTION),
        "psql" | "mysql" | "mariadb" => database::hidden(words),
        "tar" | "gtar" | "bsdtar" => {
            // Letters without a dash: which word is whose value depends on all of them.
            let bundle = words.first().is_some_and(|first| {
                first.bytes().all(|byte| byte.is_ascii_alphabetic()) && first.contains(['I', 'F'])
            });
            bundle.then_some(AS_OPTION)
        }
        _ => None,
    }
}

/// The lines that options of `name` give it to run.
pub(super) fn lines(name: &str, words: &[String]) -> Vec<String> {
    let mut out = Vec::new();
    let Some(runs) = RUNS.iter().find(|runs| runs.names.contains(&name)) else { return out };
    // What follows `--` is no option of it.
    let own = words.iter().position(|word| word == "--").filter(|_| name == "rg").unwrap_or(words.len());
    for (at, word) in words[..own].iter().enumerate() {
        let next = || words.get(at + 1).cloned().unwrap_or_default();
        if let Some(long) = word.strip_prefix("--") {
            let (given, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let is_meant = |known: &&str| {
                *known == given || (given.len() > 1 && given != "checkpoint" && known.starts_with(given))
            };
            if runs.long.iter().any(is_meant) {
                out.push(value.map_or_else(next, str::to_owned));
            }
        } else if let Some(letters) = word.strip_prefix('-') {
            let (given, value) = letters.split_once('=').map_or((letters, None), |(name, value)| (name, Some(value)));
            if runs.words.contains(&given) {
                out.push(value.map_or_else(next, str::to_owned));
            } else if let Some((_, attached)) = letters.split_once("TT").filter(|_| name == "zip") {
                out.push(if attached.is_empty() { next() } else { attached.to_owned() });
            } else if let Some(place) = letters.find(|letter| runs.letters.contains(letter)) {
                let attached = &letters[place + 1..];
                out.push(if attached.is_empty() { next() } else { attached.to_owned() });
            }
        }
    }
    for line in &mut out {
        if let Some(command) = line.strip_prefix("exec=") {
            *line = command.to_owned();
        }
        // It is run with the host and the command for it.
        if name == "rsync" && !line.is_empty() {
            line.push_str(" host true");
        }
    }
    out
}

/// Whether a shell that ran it would start nothing that matters.
pub(super) fn is_harmless(line: &str) -> bool {
    let plain = !line.contains([';', '|', '&', '<', '>', '$', '`', '(', ')', '\n', '{', '\\', '!'])
        && !any(&[line.to_owned()], SSH_RUNS);
    let first = line.split_whitespace().next().unwrap_or("");
    let first = first.split('=').next().unwrap_or("");
    plain && (first.is_empty() || HARMLESS.contains(&first))
}

fn any(words: &[String], parts: &[&str]) -> bool {
    words.iter().map(|word| word.to_ascii_lowercase()).any(|word| parts.iter().any(|part| word.contains(part)))
}

/// Settings of ssh that name a program or a library.
const SSH_RUNS: &[&str] =
    &["proxycommand", "localcommand", "knownhostscommand", "provider", "xauthlocation", "ssh_command"];

fn connects(name: &str, words: &[String]) -> Option<&'static str> {
    if any(words, SSH_RUNS) || words.iter().any(|word| is_input(word)) {
        return Some(AS_OPTION);
    }
    let asks = words.iter().any(|word| matches!(word.as_str(), "-V" | "-N" | "-G" | "-Q" | "-O"));
    (name == "ssh" && !asks && unwrap::inner(&[&[name.to_owned()], words].concat()).is_empty())
        .then_some("a shell takes its commands from its input")
}

#[cfg(test)]
mod tests {
    use crate::analyse;

    #[test]
    fn l31_a_program_that_starts_a_shell_on_its_input_hides() {
        for line in [
            "setarch x86_64 <<< 'touch made'",
            "setarch <<< 'touch made'",
            "linux64 <<< 'touch made'",
            "x86_64 <<< 'touch made'",
            "uname26 < f",
            "echo x | base64 -d | linux64 -v",
            "unshare -r <<< 'touch made'",
            "su root <<< 'touch made'",
            "runuser -u root <<< 'touch made'",
            "nsenter -U -t $$ <<< 'touch made'",
            "script -q /dev/null <<< 'touch made'",
            "fakeroot < f",
            "sudo linux64 < f",
            "zip -qTT 'touch made;:' -T x.zip hi.txt",
            "zip -q -T -TT'touch made;:' x.zip hi.txt",
            "zip -qTTT 'touch made;:' x.zip hi.txt",
        ] {
            assert!(analyse(line).hides, "{line}");
        }
        for line in [
            "make | ts",
            "echo x | docker load",
            "kubectl apply -f - <<E\nx: y\nE",
            "echo y | setarch x86_64 cat",
            "cat f | xvfb-run -a grep x",
            "su root -c 'cat f' < f",
            "zip -qr x.zip src",
        ] {
            assert!(!analyse(line).hides, "{line}: {:?}", analyse(line));
        }
    }

    #[test]
    fn l31_a_place_of_input_is_found_from_the_folder_that_a_command_runs_in() {
        for line in [
            "cd /dev; echo x | sh stdin",
            "cd /dev/fd; echo x | sh 0",
            "cd /proc/self/fd && echo x | sh ./0",
            "cd /dev; echo x | python3 stdin",
            "echo x | env -C /dev sh stdin",
            "echo x | (cd /dev && . ./stdin)",
            "cd $x; echo x | sh stdin",
            "cd /; echo x | bash dev/stdin",
        ] {
            assert!(analyse(line).hides, "{line}");
        }
        for line in ["cd sub && sh build.sh", "cd /dev && ls", "cd $x && python3 x.py", "cd /opt && sh stdin"] {
            assert!(!analyse(line).hides, "{line}");
        }
    }

    #[test]
    fn l31_make_expands_any_variable() {
        for line in [
            "LOADLIBES='$(shell $(T)ouch made)' T=t make hello",
            "TARGET_ARCH='; t$(X)ouch made;' make hello",
            "OUTPUT_OPTION='; t$(X)ouch made;' make hello.o",
            "export LOADLIBES='; t$(X)ouch made'; make hello",
            "read -r LOADLIBES <<< ';x'; export LOADLIBES; for TARGET_ARCH in '`x`'; do make; done",
            "env LOADLIBES='`x`' make hello",
        ] {
            assert!(analyse(line).hides, "{line}");
        }
        for line in ["V=1 make", "x=$(date); make VERSION=$x", "CFLAGS='-O2 -g' make -j4", "FOO='a; b' npm test"] {
            assert!(!analyse(line).hides, "{line}");
        }
    }
}
