//! Programs that run a program given as the value of an option, as one of their words, or in a variable.

use super::shell::is_input;
use super::unwrap::{self, is_assignment};
use super::{git, sed};

/// Options whose value is a command.
struct Runs {
    names: &'static [&'static str],
    letters: &'static str,
    /// Long options; any beginning of one is taken for it.
    long: &'static [&'static str],
    /// Options of several letters after one dash.
    words: &'static [&'static str],
}

const fn runs(names: &'static [&'static str], letters: &'static str, long: &'static [&'static str]) -> Runs {
    Runs { names, letters, long, words: &[] }
}

static RUNS: &[Runs] = &[
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
    runs(&["npm", "pnpm", "yarn"], "", &["script-shell", "node-options"]),
    Runs { words: &["TT"], ..runs(&["zip"], "", &["unzip-command"]) },
    Runs { words: &["exec", "toolexec", "vettool"], ..runs(&["go"], "", &["exec", "toolexec", "vettool"]) },
    Runs { words: &["wrapper"], ..runs(&["gcc", "g++", "cc", "c++", "clang", "clang++"], "", &["wrapper"]) },
    Runs {
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
];

/// What may stand where a command may: it does nothing with what it is given but pack, show or carry it.
const HARMLESS: &[&str] = &[
    "gzip", "gunzip", "bzip2", "xz", "zstd", "unzstd", "lz4", "lzip", "lzma", "lzop", "pigz", "pbzip2", "pxz", "zcat",
    "brotli", "ssh", "cat", "less", "more", "true", "false", ":", "dot", "echo", "totals",
];

const AS_OPTION: &str = "an option or a word is a program that is run";
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
        "make" | "gmake" | "bmake" | "pmake" => makes(words),
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
        "gh" => words.iter().any(|word| word == "alias").then_some(AS_OPTION),
        "psql" | "mysql" | "mariadb" => database(words),
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
fn is_harmless(line: &str) -> bool {
    let plain = !line.contains([';', '|', '&', '<', '>', '$', '`', '(', ')', '\n', '{', '\\', '!'])
        && !any(&[line.to_owned()], SSH_RUNS);
    let first = line.split_whitespace().next().unwrap_or("");
    let first = first.split('=').next().unwrap_or("");
    plain && (first.is_empty() || HARMLESS.contains(&first))
}

fn any(words: &[String], parts: &[&str]) -> bool {
    words.iter().map(|word| word.to_ascii_lowercase()).any(|word| parts.iter().any(|part| word.contains(part)))
}

/// `NAME=value` where the value is run by whatever looks at the variable.
fn runs_variable(word: &str) -> bool {
    let Some((name, value)) = word.split_once('=') else { return false };
    let name = name.trim_end_matches('+');
    let ends = ["PAGER", "EDITOR", "VISUAL", "BROWSER", "_COMMAND", "ASKPASS", "_RSH", "LESSOPEN", "LESSCLOSE"];
    if ends.iter().any(|end| name.ends_with(end)) || matches!(name, "GIT_SSH" | "GIT_EXTERNAL_DIFF" | "TAR_OPTIONS") {
        return !is_harmless(value);
    }
    let expands = value.contains(['$', '`']);
    match name {
        "PS0" | "PS1" | "PS2" | "PS3" | "PS4" | "BASH_ENV" | "ENV" => expands || is_input(value),
        "MAKEFLAGS" | "GNUMAKEFLAGS" | "MFLAGS" => expands || value.contains("eval"),
        "NODE_OPTIONS" => ["data:", "import", "require", "loader"].iter().any(|part| value.contains(part)),
        "PERL5OPT" | "RUBYOPT" => value.contains(|c: char| !c.is_ascii_alphanumeric() && !"-_:./ =".contains(c)),
        "PERL5DB" | "GIT_CONFIG_PARAMETERS" | "GIT_CONFIG_COUNT" => true,
        _ => {
            ["GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_", "BASH_FUNC_"].iter().any(|start| name.starts_with(start))
                || value.starts_with("() {")
                || is_input(value)
                // Arithmetic evaluates the value of a name, and what its index runs.
                || (value.contains('[') && (value.contains("$(") || value.contains('`')))
        }
    }
}

fn makes(words: &[String]) -> Option<&'static str> {
    let input = |word: &String| word == "-" || is_input(word) || word.strip_prefix("-f").is_some_and(is_dash);
    let long = |word: &String| word.split_once('=').is_some_and(|(_, value)| value == "-" || is_input(value));
    if words.iter().any(|word| input(word) || long(word)) {
        return Some("make takes its rules from its input");
    }
    let variable = |word: &String| {
        let shell = ["SHELL", ".SHELLFLAGS"].iter().any(|name| word.starts_with(name) && word.contains('='));
        shell || word.contains("$(") || word.contains("${") || word.contains('`')
    };
    words.iter().any(variable).then_some(AS_OPTION)
}

fn is_dash(text: &str) -> bool {
    text == "-"
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

fn database(words: &[String]) -> Option<&'static str> {
    if words.iter().any(|word| word.contains('\\')) || any(words, &["system", "program"]) {
        return Some(AS_OPTION);
    }
    let given = |word: &String| {
        ["-c", "-f", "-e", "--command", "--file", "--execute"].iter().any(|option| word.starts_with(option))
            || matches!(word.as_str(), "--version" | "-V" | "-l" | "--list" | "--help")
    };
    (!words.iter().any(given)).then_some("a program takes its commands from its input")
}
