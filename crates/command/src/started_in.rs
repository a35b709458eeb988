//! In which folder a command starts what it runs in its turn: `env -C`, `sudo -D`, `find -execdir`.

use super::folders::Folder;
use super::option_reader::ReadWord;
use super::unwrap::{self, is_assignment};
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
        "env" | "genv" => entered(program, words, 'C', folder),
        "sudo" => entered(program, words, 'D', folder),
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

/// Other long options of `env` and `sudo` that may change the folder.
const MOVING: &[&str] = &["split-string", "login", "chroot"];

/// The folder that a wrapper changes into by the option `-letter` or `--chdir`.
fn entered(name: &str, words: &[String], letter: char, folder: &Folder) -> Folder {
    let mut path = None;
    for option in unwrap::options_of(name, words) {
        match option {
            ReadWord::Letter(given, value) if given == letter => path = Some(value),
            ReadWord::Long(long, value) | ReadWord::Abbreviated(long, value) if "chdir".starts_with(long) => {
                path = Some(value);
            }
            // `env -S '-C folder program'`; a home or another root.
            ReadWord::Letter('S', _) if name != "sudo" => return Folder::Unknown,
            ReadWord::Letter('i' | 'R', _) if name == "sudo" => return Folder::Unknown,
            ReadWord::Long(long, _) | ReadWord::Abbreviated(long, _)
                if MOVING.iter().any(|known| known.starts_with(long)) =>
            {
                return Folder::Unknown;
            }
            _ => {}
        }
    }
    match path {
        None => folder.clone(),
        Some(Some(path)) if is_literal(path) => folder.then(path),
        Some(_) => Folder::Unknown,
    }
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
