//! Every variable that bash itself knows (its manual, sections "Shell Variables" and "Locale-Specific Translation", up to
//! version 5.3), and what setting it does.
//!
//! The table is complete on purpose: a variable that bash acts on and that nobody looked at is a way to have a word mean
//! something else. A test compares it with the manual's list and with a running bash.

/// What comes of setting a variable of the shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShellVariable {
    /// The shell runs or expands its value, or a later line, word or program means something else by it.
    Acts(&'static str),
    /// It changes what is shown or counted, or the shell keeps it to itself.
    Harmless(&'static str),
}

use ShellVariable::{Acts, Harmless};

const FROM_SHELL: &str = "the shell sets it and does not read it back";
const COMPLETION: &str = "it matters only while a key completes a word";
const HISTORY: &str = "it matters only to the history, which is off";
const EVALUATED: &str = "a number; what else it is set to is found where lines are read for arithmetic";
const LOCALE: &str = "it changes language, order and classes of characters";
const SHOWN: &str = "it changes what is shown, or a limit";
const PROMPT: &str = "a shell expands it, and with it any command inside, before each prompt";
const OPTIONS: &str = "it switches options of every bash that is started";
const BASH: &str = "bash itself acts on it";
const MAIL: &str = "bash looks for mail by it before a prompt, and expands its message with any command inside";
const TRANSLATED: &str = "strings that are to be translated are taken from files that it names, and expanded";

const TABLE: &[(&str, ShellVariable)] = &[
    // Bourne shell.
    ("CDPATH", Acts("`cd` goes to folders below these")),
    ("HOME", Acts("programs read their configuration from this folder, and many run what it names")),
    ("IFS", Acts("shells split words by it, so that a line may mean another one")),
    ("MAIL", Acts(MAIL)),
    ("MAILPATH", Acts(MAIL)),
    ("OPTARG", Harmless(FROM_SHELL)),
    ("OPTIND", Harmless(EVALUATED)),
    ("PATH", Acts("programs are looked for in these folders")),
    ("PS1", Acts(PROMPT)),
    ("PS2", Acts(PROMPT)),
    // Bash.
    ("_", Harmless(FROM_SHELL)),
    ("auto_resume", Acts("a word that is the name of a stopped job continues that job")),
    ("BASH", Harmless(FROM_SHELL)),
    ("BASHOPTS", Acts(OPTIONS)),
    ("BASHPID", Harmless(EVALUATED)),
    ("BASH_ALIASES", Acts("it holds the aliases, which may stand in for any program")),
    ("BASH_ARGC", Acts(BASH)),
    ("BASH_ARGV", Acts(BASH)),
    ("BASH_ARGV0", Acts(BASH)),
    ("BASH_CMDS", Acts("it says where programs are")),
    ("BASH_COMMAND", Acts(BASH)),
    ("BASH_COMPAT", Acts("it changes how bash reads lines")),
    ("BASH_ENV", Acts("every bash that is started runs this file first")),
    ("BASH_EXECUTION_STRING", Acts(BASH)),
    ("BASH_LINENO", Acts(BASH)),
    ("BASH_LOADABLES_PATH", Acts("`enable -f` loads code from these folders")),
    ("BASH_MONOSECONDS", Acts(BASH)),
    ("BASH_REMATCH", Acts(BASH)),
    ("BASH_SOURCE", Acts(BASH)),
    ("BASH_SUBSHELL", Acts(BASH)),
    ("BASH_TRAPSIG", Acts(BASH)),
    ("BASH_VERSINFO", Acts(BASH)),
    ("BASH_VERSION", Acts(BASH)),
    ("BASH_XTRACEFD", Acts("bash writes the trace of its lines to this file")),
    ("CHILD_MAX", Harmless(SHOWN)),
    ("COLUMNS", Harmless(SHOWN)),
    ("COMP_CWORD", Harmless(COMPLETION)),
    ("COMP_KEY", Harmless(COMPLETION)),
    ("COMP_LINE", Harmless(COMPLETION)),
    ("COMP_POINT", Harmless(COMPLETION)),
    ("COMP_TYPE", Harmless(COMPLETION)),
    ("COMP_WORDBREAKS", Harmless(COMPLETION)),
    ("COMP_WORDS", Harmless(COMPLETION)),
    ("COMPREPLY", Harmless(COMPLETION)),
    ("COPROC", Harmless(FROM_SHELL)),
    ("DIRSTACK", Harmless("`~1` and its like never count as known folders")),
    ("EMACS", Harmless("it switches line editing off")),
    ("ENV", Acts("a shell that is started runs this file first")),
    ("EPOCHREALTIME", Harmless(FROM_SHELL)),
    ("EPOCHSECONDS", Harmless(EVALUATED)),
    ("EUID", Harmless("it cannot be set")),
    ("EXECIGNORE", Acts("bash passes over these programs")),
    ("FCEDIT", Acts("the shell runs it as an editor")),
    ("FIGNORE", Harmless(COMPLETION)),
    ("FUNCNAME", Harmless(FROM_SHELL)),
    ("FUNCNEST", Harmless(SHOWN)),
    ("GLOBIGNORE", Acts("shells leave these names out of patterns")),
    ("GLOBSORT", Acts("shells put the names that a pattern matches in this order")),
    ("GROUPS", Harmless("it cannot be set")),
    ("histchars", Acts("it says which characters bring back an earlier line")),
    ("HISTCMD", Harmless(EVALUATED)),
    ("HISTCONTROL", Harmless(HISTORY)),
    ("HISTFILE", Acts("a shell writes this file")),
    ("HISTFILESIZE", Acts("a shell cuts the file of its history to this length")),
    ("HISTIGNORE", Harmless(HISTORY)),
    ("HISTSIZE", Harmless(HISTORY)),
    ("HISTTIMEFORMAT", Harmless(HISTORY)),
    ("HOSTFILE", Harmless(COMPLETION)),
    ("HOSTNAME", Harmless(FROM_SHELL)),
    ("HOSTTYPE", Harmless(FROM_SHELL)),
    ("IGNOREEOF", Harmless("it says how often the end of the input is passed over")),
    ("INPUTRC", Acts("line editors read key bindings from this file")),
    ("INSIDE_EMACS", Harmless("it switches line editing off")),
    ("LANG", Harmless(LOCALE)),
    ("LC_ALL", Harmless(LOCALE)),
    ("LC_COLLATE", Harmless(LOCALE)),
    ("LC_CTYPE", Harmless(LOCALE)),
    ("LC_MESSAGES", Harmless(LOCALE)),
    ("LC_NUMERIC", Harmless(LOCALE)),
    ("LC_TIME", Harmless(LOCALE)),
    ("LINENO", Harmless(EVALUATED)),
    ("LINES", Harmless(SHOWN)),
    ("MACHTYPE", Harmless(FROM_SHELL)),
    ("MAILCHECK", Acts(MAIL)),
    ("MAPFILE", Harmless(FROM_SHELL)),
    ("OLDPWD", Harmless("`cd -` and `~-` never count as known folders")),
    ("OPTERR", Harmless(SHOWN)),
    ("OSTYPE", Harmless(FROM_SHELL)),
    ("PIPESTATUS", Harmless(FROM_SHELL)),
    ("POSIXLY_CORRECT", Acts("it changes how shells and programs read their words")),
    ("PPID", Harmless("it cannot be set")),
    ("PROMPT_COMMAND", Acts("bash runs it before each prompt")),
    ("PROMPT_DIRTRIM", Harmless(SHOWN)),
    ("PS0", Acts("bash expands it, and with it any command inside, before each command")),
    ("PS3", Acts(PROMPT)),
    ("PS4", Acts("a shell expands it, and with it any command inside, in front of every traced line")),
    ("PWD", Harmless("where a shell is, it is asked with `pwd`; `~+` never counts as a known folder")),
    ("RANDOM", Harmless(EVALUATED)),
    ("READLINE_ARGUMENT", Harmless(COMPLETION)),
    ("READLINE_LINE", Harmless(COMPLETION)),
    ("READLINE_MARK", Harmless(COMPLETION)),
    ("READLINE_POINT", Harmless(COMPLETION)),
    ("REPLY", Harmless(FROM_SHELL)),
    ("SECONDS", Harmless(EVALUATED)),
    ("SHELL", Acts("many programs run this as the shell")),
    ("SHELLOPTS", Acts(OPTIONS)),
    ("SHLVL", Harmless(SHOWN)),
    ("SRANDOM", Harmless(EVALUATED)),
    ("TEXTDOMAIN", Acts(TRANSLATED)),
    ("TEXTDOMAINDIR", Acts(TRANSLATED)),
    ("TIMEFORMAT", Harmless(SHOWN)),
    ("TMOUT", Harmless("it says how long a shell waits for input")),
    ("TMPDIR", Harmless("programs keep files there for a moment")),
    ("UID", Harmless("it cannot be set")),
];

/// What setting a variable of bash does; `None` if bash knows none of this name.
#[must_use]
pub fn shell_variable(name: &str) -> Option<ShellVariable> {
    TABLE.iter().find(|(known, _)| *known == name).map(|(_, effect)| *effect)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::loads_code;

    /// The names of the manual of bash 5.3, of which earlier ones have fewer.
    const MANUAL: &str = "CDPATH HOME IFS MAIL MAILPATH OPTARG OPTIND PATH PS1 PS2 _ BASH BASHOPTS BASHPID BASH_ALIASES \
        BASH_ARGC BASH_ARGV BASH_ARGV0 BASH_CMDS BASH_COMMAND BASH_COMPAT BASH_ENV BASH_EXECUTION_STRING BASH_LINENO \
        BASH_LOADABLES_PATH BASH_MONOSECONDS BASH_REMATCH BASH_SOURCE BASH_SUBSHELL BASH_TRAPSIG BASH_VERSINFO \
        BASH_VERSION BASH_XTRACEFD CHILD_MAX COLUMNS COMP_CWORD COMP_LINE COMP_POINT COMP_TYPE COMP_KEY COMP_WORDBREAKS \
        COMP_WORDS COMPREPLY COPROC DIRSTACK EMACS ENV EPOCHREALTIME EPOCHSECONDS EUID EXECIGNORE FCEDIT FIGNORE \
        FUNCNAME FUNCNEST GLOBIGNORE GLOBSORT GROUPS histchars HISTCMD HISTCONTROL HISTFILE HISTFILESIZE HISTIGNORE \
        HISTSIZE HISTTIMEFORMAT HOSTFILE HOSTNAME HOSTTYPE IGNOREEOF INPUTRC INSIDE_EMACS LANG LC_ALL LC_COLLATE \
        LC_CTYPE LC_MESSAGES LC_NUMERIC LC_TIME LINENO LINES MACHTYPE MAILCHECK MAPFILE OLDPWD OPTERR OSTYPE PIPESTATUS \
        POSIXLY_CORRECT PPID PROMPT_COMMAND PROMPT_DIRTRIM PS0 PS3 PS4 PWD RANDOM READLINE_ARGUMENT READLINE_LINE \
        READLINE_MARK READLINE_POINT REPLY SECONDS SHELL SHELLOPTS SHLVL SRANDOM TIMEFORMAT TMOUT TMPDIR UID \
        auto_resume TEXTDOMAIN TEXTDOMAINDIR";

    #[test]
    fn every_variable_of_the_manual_has_an_entry_and_no_other_has() {
        let manual: BTreeSet<&str> = MANUAL.split_ascii_whitespace().collect();
        let table: BTreeSet<&str> = TABLE.iter().map(|(name, _)| *name).collect();
        assert_eq!(table, manual);
        assert_eq!(table.len(), TABLE.len(), "a name stands twice");
    }

    #[test]
    fn every_variable_that_a_running_bash_has_is_in_the_table() {
        let bash = std::path::Path::new("/bin/bash");
        if !bash.exists() {
            return;
        }
        // With arguments, a pipeline, a match and a read, so that those variables exist.
        let line = "read <<< x; [[ a =~ a ]]; mapfile <<< x; cd /; cd /; true | true; f() { compgen -v; }; f";
        let run = std::process::Command::new(bash).args(["--noprofile", "--norc", "-ic", line]).env_clear().output();
        let run = run.expect("bash runs");
        let known = String::from_utf8_lossy(&run.stdout).into_owned();
        assert!(known.lines().count() > 40, "{known}");
        // Bash sets `TERM` where nobody did, and leaves it to others.
        for name in known.lines().filter(|name| *name != "TERM") {
            assert!(shell_variable(name).is_some(), "{name}");
        }
    }

    #[test]
    fn what_acts_is_known_to_load_code_and_what_is_harmless_is_not() {
        for (name, effect) in TABLE {
            let (Acts(reason) | Harmless(reason)) = effect;
            assert!(!reason.is_empty() && reason.len() < 100, "{name}");
            assert_eq!(loads_code(name).is_some(), matches!(effect, Acts(_)), "{name}");
        }
    }
}
