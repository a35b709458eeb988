//! What a command runs in its turn: `sudo`, `env`, `timeout`, `sh -c` and their like (tool-contract 13.3).
//!
//! The forms are for rules that forbid. One too many makes a rule reach further than it must, one too
//! few lets a forbidden command through; so where the options of a wrapper are not understood, every
//! tail of its words counts.

use super::option_reader::{OptionReader, ReadWord, ValuedOptions};
use super::runners::{ANY_TAIL, RUNNERS};
use super::shell::{self, is_shell};
use super::{git, inline, program_variables};

/// What a wrapper hands on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Inner {
    /// A command by its words.
    Argv(Vec<String>),
    /// A line for a shell.
    Line(String),
    /// More than is looked at.
    Cut,
}

/// How a wrapper's own words end.
struct Wrapper {
    names: &'static [&'static str],
    valued: ValuedOptions,
    /// Words of its own before the command.
    operands: usize,
    then: WrappedForm,
}

/// How a wrapper gets the command that it runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WrappedForm {
    Argv,
    /// The rest is joined and given to a shell.
    Line,
}

const fn wrapper(names: &'static [&'static str], letters: &'static str, operands: usize) -> Wrapper {
    Wrapper { names, valued: ValuedOptions { letters, long: &[] }, operands, then: WrappedForm::Argv }
}

impl Wrapper {
    const fn long(mut self, long: &'static [&'static str]) -> Self {
        self.valued.long = long;
        self
    }

    const fn line(mut self) -> Self {
        self.then = WrappedForm::Line;
        self
    }
}

static WRAPPERS: &[Wrapper] = &[
    wrapper(&["env", "genv"], "uCa", 0).long(&["unset", "chdir", "argv0"]),
    wrapper(&["sudo"], "ughpCrtTUDR", 0).long(&[
        "user",
        "group",
        "host",
        "prompt",
        "chdir",
        "chroot",
        "close-from",
        "role",
        "type",
        "other-user",
    ]),
    wrapper(&["doas"], "uC", 0),
    wrapper(&["timeout", "gtimeout"], "sk", 1).long(&["signal", "kill-after"]),
    wrapper(&["nice", "gnice"], "n", 0).long(&["adjustment"]),
    wrapper(&["ionice"], "cnpPu", 0).long(&["class", "classdata", "pid", "pgid", "uid"]),
    wrapper(&["stdbuf", "gstdbuf"], "ioe", 0).long(&["input", "output", "error"]),
    wrapper(
        &[
            "nohup",
            "gnohup",
            "setsid",
            "command",
            "builtin",
            "busybox",
            "toybox",
            "then",
            "do",
            "else",
            "!",
            "coproc",
            // Of other shells.
            "noglob",
            "nocorrect",
            "and",
            "or",
            "not",
            "begin",
            "jobs",
        ],
        "",
        0,
    ),
    wrapper(&["repeat"], "", 1),
    wrapper(&["exec"], "a", 0),
    wrapper(&["time", "gtime"], "fo", 0).long(&["format", "output"]),
    wrapper(&["chroot", "gchroot"], "", 1).long(&["userspec", "groups"]),
    wrapper(&["xargs", "gxargs"], "adEIJLnPRs", 0).long(&[
        "arg-file",
        "delimiter",
        "max-args",
        "max-procs",
        "max-chars",
        "process-slot-var",
    ]),
    wrapper(&["chrt"], "TPD", 1).long(&["sched-runtime", "sched-period", "sched-deadline"]),
    wrapper(&["taskset"], "", 1),
    wrapper(&["flock"], "wE", 1).long(&["wait", "timeout", "conflict-exit-code"]),
    wrapper(&["watch"], "nqs", 0).long(&["interval", "equexit", "shotsdir"]).line(),
    wrapper(&["eval"], "", 0).line(),
    wrapper(&["ssh"], "BbcDEeFIiJLlmOopQRSWw", 1).line(),
];

/// Where the word stands after which `name` runs something.
fn runner_verb(name: &str, words: &[String]) -> Option<usize> {
    let (_, verbs) = RUNNERS.iter().find(|(names, _)| names.contains(&name))?;
    words.iter().position(|word| verbs.contains(&word.as_str()))
}

/// Words of a command that are searched for another one. A wrapper with more is opaque.
pub(super) const WORDS_MAX: usize = 256;

/// The last name of a program's path.
#[must_use]
pub fn base(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Wrappers that surely run their command, once and at once, and end as it ends.
const SURE: [&str; 15] = [
    "env", "genv", "sudo", "doas", "timeout", "gtimeout", "nice", "gnice", "ionice", "stdbuf", "nohup", "setsid",
    "command", "exec", "time",
];

/// Layers of sure wrappers that are taken off.
const SURE_MAX: usize = 8;

/// The words of the command that `argv` surely runs and ends as, without the wrappers around it. `xargs`, `eval` and
/// `watch` may run theirs often, later or not at all, and stay.
#[must_use]
pub fn peeled(argv: &[String]) -> &[String] {
    let once = |argv: &'_ [String]| -> Option<usize> {
        let (name, words) = argv.split_first().map(|(program, words)| (base(program), words))?;
        let wrapper = WRAPPERS.iter().find(|wrapper| SURE.contains(&name) && wrapper.names.contains(&name))?;
        let splits = name.ends_with("env") && words.iter().any(|word| is_split_string(word));
        let looks = name == "command" && words.first().is_some_and(|word| matches!(word.as_str(), "-v" | "-V"));
        let rest = wrapper.rest(words).filter(|rest| !rest.is_empty() && !splits && !looks)?;
        Some(argv.len() - rest.len())
    };
    let mut words = argv;
    for _ in 0..SURE_MAX {
        let Some(own) = once(words) else { break };
        words = &words[own..];
    }
    words
}

/// Whether `program` may run what its words name.
pub(super) fn wraps(program: &str) -> bool {
    let name = base(program);
    let words = [name, "x", "x", "x"].map(str::to_owned);
    is_shell(name) || matches!(name, "find" | "gfind") || !inner(&words).is_empty()
}

/// Whether what `name` runs is found in these words, whatever else they hold.
pub(super) fn looks_through(name: &str, words: &[String]) -> bool {
    let any_tail = ANY_TAIL.contains(&name) || is_loader(name) || name.starts_with("qemu-");
    any_tail
        || WRAPPERS.iter().any(|wrapper| wrapper.names.contains(&name))
        || runner_verb(name, words).is_some()
        || (is_shell(name) && !shell::lines(words).is_empty())
}

/// What `argv` runs in its turn, one layer down. The same command by the last name of its path counts
/// as one.
pub(super) fn inner(argv: &[String]) -> Vec<Inner> {
    let argv = &argv[..argv.len().min(WORDS_MAX)];
    let Some((program, words)) = argv.split_first() else { return Vec::new() };
    let mut out = Vec::new();
    // The value of a variable may be a path.
    if is_assignment(program) {
        out.extend((!words.is_empty()).then(|| Inner::Argv(words.to_vec())));
        return out;
    }
    if program.contains('/') && !base(program).is_empty() {
        let mut bare = argv.to_vec();
        bare[0] = base(program).to_owned();
        out.push(Inner::Argv(bare));
        return out;
    }
    // `time -- rm x`; and `=rm x` of zsh.
    if program.starts_with('-') {
        return tails(words);
    }
    if let Some(named) = program.strip_prefix('=').filter(|named| !named.is_empty()) {
        let mut bare = argv.to_vec();
        bare[0] = named.to_owned();
        return vec![Inner::Argv(bare)];
    }
    let name = program.as_str();
    out.extend(inline::lines(name, words).into_iter().filter(|line| !line.is_empty()).map(Inner::Line));
    out.extend(by_verb(name, words));
    if is_shell(name) {
        out.extend(shell::lines(words).into_iter().map(Inner::Line));
    } else if matches!(name, "env" | "genv") && words.iter().any(|word| is_split_string(word)) {
        out.extend(split_strings(words));
    } else if matches!(name, "find" | "gfind") {
        out.extend(executed_by_find(words));
    } else if ANY_TAIL.contains(&name) || is_loader(name) || name.starts_with("qemu-") {
        out.extend(tails(words));
        out.extend(lines_in(words));
    } else if let Some(at) = runner_verb(name, words) {
        let words = &words[at + 1..];
        out.extend(tails(words));
        out.extend(lines_in(words));
    } else if let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.names.contains(&name)) {
        out.extend(wrapper.inner(name, words));
    }
    out
}

/// What a program runs by a verb, or by a variable of its own.
fn by_verb(name: &str, words: &[String]) -> Vec<Inner> {
    match name {
        "git" => {
            let again = git::once_more(words);
            let with_git = |at: usize| Inner::Argv([&["git".to_owned()], &again[at..]].concat());
            (0..again.len().min(TAILS_MAX)).map(with_git).collect()
        }
        // `cargo watch -x publish`
        "cargo" if words.iter().any(|word| word == "watch") => {
            let given = |(at, word): (usize, &String)| {
                let attached = word.strip_prefix("--exec=").or_else(|| word.strip_prefix("-x"));
                match attached {
                    Some("") => words.get(at + 1).cloned(),
                    None if word == "--exec" => words.get(at + 1).cloned(),
                    attached => attached.map(str::to_owned),
                }
            };
            let verbs = words.iter().enumerate().filter_map(given);
            verbs.map(|verb| Inner::Line(format!("cargo {verb}"))).collect()
        }
        "make" | "gmake" | "bmake" | "pmake" => {
            let goals = program_variables::goals_of_make(words).map(|goal| [&[name.to_owned(), goal], words].concat());
            let goals = goals.map(Inner::Argv);
            program_variables::programs_of_make(words).map(Inner::Line).chain(goals).collect()
        }
        _ => Vec::new(),
    }
}

/// The words that a shell would take for a line, and the values of options that it would.
fn lines_in(words: &[String]) -> impl Iterator<Item = Inner> {
    let lines = words.iter().filter(|word| may_be_line(word));
    lines.flat_map(|word| {
        let value = word.split_once('=').filter(|(name, _)| name.starts_with('-')).map(|(_, value)| value.to_owned());
        [Some(word.clone()), value].into_iter().flatten().map(Inner::Line)
    })
}

impl Wrapper {
    fn inner(&self, name: &str, words: &[String]) -> Vec<Inner> {
        // A query, not a command.
        if name == "command" && words.first().is_some_and(|word| matches!(word.as_str(), "-v" | "-V")) {
            return Vec::new();
        }
        let by_shell = match name {
            "flock" => words.iter().any(|word| matches!(word.as_str(), "-c" | "--command")),
            "sudo" | "doas" => words.iter().any(|word| {
                matches!(word.as_str(), "--shell" | "--login")
                    || (!word.starts_with("--") && word.starts_with('-') && word.contains(['s', 'i']))
            }),
            _ => false,
        };
        let Some(rest) = self.rest(words) else { return tails(words) };
        if rest.is_empty() {
            return Vec::new();
        }
        if by_shell {
            return vec![Inner::Line(rest.join(" ")), Inner::Argv(rest.to_vec())];
        }
        match self.then {
            WrappedForm::Argv => vec![Inner::Argv(rest.to_vec())],
            WrappedForm::Line => vec![Inner::Line(rest.join(" ")), Inner::Argv(rest.to_vec())],
        }
    }

    /// The words of the command; none if an option is not understood.
    fn rest<'w>(&self, words: &'w [String]) -> Option<&'w [String]> {
        let mut operands = self.operands;
        let mut reader = OptionReader::new(words, self.valued);
        loop {
            match reader.next() {
                None => return Some(&[]),
                Some(ReadWord::Abbreviated(..)) => return None,
                Some(ReadWord::Letter(..) | ReadWord::Long(..)) => {}
                Some(ReadWord::Operand(word)) if self.is_own(word) => {}
                Some(ReadWord::Operand(_)) if operands > 0 => operands -= 1,
                Some(ReadWord::Operand(_)) => return words.get(reader.place() - 1..),
            }
        }
    }

    /// Whether a word sets a variable for the command. Any name is one to them, also one that a shell does not take;
    /// `env -` is `env -i`.
    fn is_own(&self, word: &str) -> bool {
        matches!(self.names[0], "env" | "sudo" | "doas") && (word.contains('=') || word == "-")
    }
}

/// The options of a wrapper up to the command that it runs.
pub(super) fn options_of<'w>(name: &str, words: &'w [String]) -> impl Iterator<Item = ReadWord<'w>> {
    let wrapper = WRAPPERS.iter().find(|wrapper| wrapper.names.contains(&name));
    let all = wrapper.into_iter().flat_map(|wrapper| {
        let own = |word: &ReadWord<'_>| !matches!(word, ReadWord::Operand(word) if !wrapper.is_own(word));
        OptionReader::new(words, wrapper.valued).take_while(own)
    });
    all.filter(|word| !matches!(word, ReadWord::Operand(_)))
}

/// A dynamic linker, which runs the program it is given: `ld.so`, `ld-linux-x86-64.so.2`, `ld-musl-x86_64.so.1`,
/// `ld-2.31.so`.
fn is_loader(name: &str) -> bool {
    name.starts_with("ld") && name.contains(".so") || name.starts_with("ld-linux") || name.starts_with("ld-musl")
}

/// `NAME=value`, as a shell and `env` read it.
#[must_use]
pub fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        let name = name.strip_suffix('+').unwrap_or(name);
        let mut chars = name.chars();
        chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
            && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// Every tail of the words.
fn tails(words: &[String]) -> Vec<Inner> {
    let tails = (0..words.len().min(TAILS_MAX)).map(|at| Inner::Argv(words[at..].to_vec()));
    tails.chain((words.len() > TAILS_MAX).then_some(Inner::Cut)).collect()
}

/// Tails that are looked at: options before a command are few. With more words a command is opaque.
const TAILS_MAX: usize = 64;

/// Whether a shell would see more in a word than a word. Braces alone are the templates of many programs.
#[must_use]
pub fn may_be_line(word: &str) -> bool {
    word.contains(|c: char| c.is_whitespace() || matches!(c, ';' | '&' | '|' | '<' | '>' | '(' | ')' | '$' | '`'))
        || (word.contains('{') && word.contains(','))
}

fn is_split_string(word: &str) -> bool {
    word.starts_with("--s") || (word.starts_with('-') && !word.starts_with("--") && word.contains('S'))
}

/// `env -S 'a b' c`: cut at blanks, as a line, and with every tail of the rest.
fn split_strings(words: &[String]) -> Vec<Inner> {
    let mut out = tails(words);
    if let Some((at, word)) = words.iter().enumerate().find(|(_, word)| is_split_string(word)) {
        let before = if word.starts_with("--") { '=' } else { 'S' };
        let attached = word.split_once(before).map_or("", |(_, rest)| rest);
        let rest = words[at + 1..].iter().map(String::as_str);
        let line: Vec<&str> = std::iter::once(attached).chain(rest).collect();
        let line = line.join(" ").trim().to_owned();
        // `\_` is a blank to it, and so are these; another character stands for itself.
        let blanks = ["\\_", "\\t", "\\n", "\\v", "\\f", "\\r"];
        let blank = blanks.iter().fold(line.clone(), |line, blank| line.replace(blank, " "));
        out.extend((blank != line).then_some(Inner::Line(blank)));
        out.push(Inner::Line(line));
    }
    out
}

/// What `-exec` and its like run, up to `;` or `+`.
fn executed_by_find(words: &[String]) -> Vec<Inner> {
    let mut out = Vec::new();
    for (at, word) in words.iter().enumerate() {
        if matches!(word.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir") {
            let command = words[at + 1..].iter().take_while(|word| *word != ";" && *word != "+");
            let command: Vec<String> = command.cloned().collect();
            out.extend((!command.is_empty()).then_some(Inner::Argv(command)));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn l32_options_of_wrappers_are_passed_over() {
        for line in [
            "env rm x",
            "env -i rm x",
            "env -u A -C . B=c rm x",
            "env -- rm x",
            "sudo rm x",
            "sudo -u root -E A=b rm x",
            "sudo -n -- rm x",
            "doas -u a rm x",
            "timeout 5 rm x",
            "timeout -s KILL -k 3 5 rm x",
            "timeout --signal=KILL 5 rm x",
            "timeout --signal KILL 5 rm x",
            "nohup rm x",
            "nice rm x",
            "nice -n 5 rm x",
            "nice -5 rm x",
            "ionice -c3 rm x",
            "ionice -c 3 rm x",
            "stdbuf -oL rm x",
            "setsid rm x",
            "setsid -f rm x",
            "chroot / rm x",
            "chroot --userspec=a / rm x",
            "xargs rm x",
            "xargs -n 1 -I{} rm x",
            "xargs -0 rm x",
            "command rm x",
            "command -p rm x",
            "exec -a n rm x",
            "builtin rm x",
            "time -p rm x",
            "time -f %e rm x",
            "flock a rm x",
            "taskset 1 rm x",
            "busybox rm x",
            "find . -exec rm x ; -print",
            "find . -name a -okdir rm x +",
            "/bin/rm x",
            "A=b rm x",
            "strace -f -o y rm x",
            "unshare -r rm x",
            "parallel -j 2 rm x",
            "ld-linux-x86-64.so.2 rm x",
            "timeout -- 5 rm x",
            "uv run --frozen rm x",
            "poetry run rm x",
            "npm exec -- rm x",
            "bundle exec rm x",
            "git bisect run rm x",
            "choom -n 5 -- rm x",
            "setarch x86_64 rm x",
        ] {
            assert!(inner(&argv(line)).contains(&Inner::Argv(argv("rm x"))), "{line}: {:?}", inner(&argv(line)));
        }
        for line in ["command -v rm", "ls rm x", "env", "grep rm x", "find . -name rm", "git rm x", "npm install rm"] {
            assert_eq!(inner(&argv(line)), [], "{line}");
        }
    }

    #[test]
    fn l32_lines_for_a_shell_are_found() {
        let words = |all: &[&str]| all.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        for all in [
            &["sh", "-c", "rm x"][..],
            &["bash", "-lc", "rm x"],
            &["bash", "-e", "-o", "pipefail", "-c", "rm x", "name"],
            &["zsh", "-xec", "rm x"],
            &["bash", "--norc", "-c", "rm x"],
            &["bash", "-c", "--", "rm x"],
            &["bash", "+x", "-c", "rm x"],
            &["ssh", "-p", "22", "host", "rm", "x"],
            &["eval", "rm", "x"],
            &["watch", "-n", "1", "rm x"],
            &["env", "-S", "rm x"],
            &["env", "-iSrm x"],
            &["env", "--split-string=rm x"],
            &["su", "root", "-c", "rm x"],
            &["script", "-qc", "rm x", "f"],
            &["bash", "-ceu", "rm x"],
            &["git", "submodule", "foreach", "rm x"],
        ] {
            assert!(inner(&words(all)).contains(&Inner::Line("rm x".into())), "{all:?}: {:?}", inner(&words(all)));
        }
        assert_eq!(inner(&words(&["bash", "script.sh", "-c", "rm x"])), []);
    }
}
