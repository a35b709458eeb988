//! In which folder a command starts what it runs in its turn: `env -C`, `sudo -D`, `find -execdir`.

use super::folders::Folder;
use super::unwrap::is_assignment;
use super::{marks, screen};

/// What runs another command where it stands itself, and has no option to do otherwise.
const STAYS: &[&str] = &[
    "doas",
    "timeout",
    "gtimeout",
    "nice",
    "gnice",
    "ionice",
    "stdbuf",
    "gstdbuf",
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
    "noglob",
    "nocorrect",
    "and",
    "or",
    "not",
    "begin",
    "jobs",
    "repeat",
    "exec",
    "time",
    "gtime",
    "xargs",
    "gxargs",
    "chrt",
    "taskset",
    "flock",
    "watch",
    "eval",
    "coreutils",
];

/// What runs a command on another machine or in a container.
const ELSEWHERE: &[&str] = &[
    "ssh",
    "docker",
    "podman",
    "nerdctl",
    "kubectl",
    "crictl",
    "ctr",
    "lxc",
    "lxc-attach",
    "lxc-execute",
    "vagrant",
    "adb",
    "ansible",
    "lima",
    "limactl",
    "wsl",
    "multipass",
    "pssh",
    "pdsh",
    "clush",
    "heroku",
];

/// What runs a command in a folder that its words do not tell: of a repository, of each package, of another root, of a
/// server that runs already.
const ANYWHERE: &[&str] = &[
    "git",
    "chroot",
    "gchroot",
    "fakechroot",
    "proot",
    "schroot",
    "dchroot",
    "bwrap",
    "firejail",
    "systemd-run",
    "systemd-nspawn",
    "machinectl",
    "apptainer",
    "singularity",
    "distrobox",
    "toolbox",
    "flatpak-spawn",
    "tmux",
    "screen",
    "byobu",
    "zellij",
    "lerna",
    "devbox",
    "foreman",
    "honcho",
    "run-parts",
    "tsp",
    "nq",
    "srun",
    "mpirun",
    "mpiexec",
    "gnome-terminal",
    "konsole",
    "kitty",
    "wezterm",
    "alacritty",
    "foot",
];

/// Long options by which some program changes its folder.
const LONG: &[&str] = &[
    "chdir",
    "cwd",
    "dir",
    "directory",
    "prefix",
    "working-directory",
    "workdir",
    "work-dir",
    "wd",
    "cd",
    "base-directory",
    "project",
    "root",
    "rootfs",
    "chroot",
    "recursive",
    "workspace",
    "workspaces",
    "filter",
    "login",
];

/// In which folder `argv`, itself run in `folder`, starts what it runs.
pub(super) fn started_in(argv: &[String], folder: &Folder) -> Folder {
    let Some((program, words)) = argv.split_first() else { return folder.clone() };
    let same = || folder.clone();
    // The same command by another name.
    if program.contains('/') || is_assignment(program) || program.starts_with(['-', '=']) {
        return same();
    }
    match program.as_str() {
        name if STAYS.contains(&name) => same(),
        name if ELSEWHERE.contains(&name) => Folder::Elsewhere,
        name if ANYWHERE.contains(&name) => Folder::Unknown,
        "env" | "genv" => match option(words, "uCaS", 'C', &["chdir", "split-string"]) {
            OptionValue::Not => same(),
            OptionValue::Value(path) => folder.then(path),
            OptionValue::Untold => Folder::Unknown,
        },
        "sudo" => match option(words, "ughpCrtTUDR", 'D', &["chdir", "login", "chroot"]) {
            OptionValue::Not if words.iter().any(|word| word.starts_with('-') && word.contains(['i', 'R'])) => {
                Folder::Unknown
            }
            OptionValue::Not => same(),
            OptionValue::Value(path) => folder.then(path),
            OptionValue::Untold => Folder::Unknown,
        },
        "find" | "gfind" if words.iter().any(|word| matches!(word.as_str(), "-execdir" | "-okdir")) => Folder::Unknown,
        // A restricted shell refuses `cd`.
        "rbash" | "rzsh" | "rksh" => Folder::Unknown,
        "bash" | "sh" | "dash" | "zsh" | "ksh" | "mksh" | "ash" => {
            let restricted =
                |word: &&String| *word == "--restricted" || (!word.starts_with("--") && word.contains('r'));
            let mut options = words.iter().take_while(|word| word.starts_with(['-', '+']));
            if options.any(|word| restricted(&word)) { Folder::Unknown } else { same() }
        }
        _ if words.iter().any(|word| may_move(word)) => Folder::Unknown,
        _ => same(),
    }
}

/// The value of an option, as far as the line tells it.
enum OptionValue<'w> {
    Not,
    Value(&'w str),
    /// It is there, and what it says is not literal or not understood.
    Untold,
}

/// The value of the option `-letter`, or of the first of `long` by any beginning of it; the others are not understood.
/// `valued` are the letters that take a value.
fn option<'w>(words: &'w [String], valued: &str, letter: char, long: &[&str]) -> OptionValue<'w> {
    let mut given = OptionValue::Not;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let value = if let Some(name) = word.strip_prefix("--") {
            if name.is_empty() {
                break;
            }
            let (name, value) = name.split_once('=').map_or((name, None), |(name, value)| (name, Some(value)));
            match long.iter().position(|known| known.starts_with(name)) {
                None => continue,
                Some(0) => value.or_else(|| words.next().map(String::as_str)),
                Some(_) => return OptionValue::Untold,
            }
        } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            let Some(at) = letters.find(|c| valued.contains(c)) else { continue };
            let attached = &letters[at + 1..];
            let value = if attached.is_empty() { words.next().map(String::as_str) } else { Some(attached) };
            match letters[at..].starts_with(letter) {
                true => value,
                // `env -S '-C folder program'`
                false if letters[at..].starts_with('S') => return OptionValue::Untold,
                false => continue,
            }
        } else if word.contains('=') || word == "-" {
            continue;
        } else {
            break;
        };
        match value.filter(|path| is_literal(path)) {
            Some(path) => given = OptionValue::Value(path),
            None => return OptionValue::Untold,
        }
    }
    given
}

/// Whether a word of a command stands for itself.
fn is_literal(word: &str) -> bool {
    let changed = |c: char| matches!(c, '{' | '}' | '\\' | '$' | '`') || screen::is_look_alike(c);
    !word.is_empty() && !word.starts_with('~') && !word.contains(changed) && marks::of(word).is_none()
}

/// Whether a word may be an option by which a program changes its folder.
fn may_move(word: &str) -> bool {
    match word.strip_prefix("--") {
        Some(long) => LONG.contains(&long.split('=').next().unwrap_or(long)),
        None => word == "-" || ["-C", "-D", "-w", "-d", "-l", "-r", "-F"].iter().any(|option| word.starts_with(option)),
    }
}
