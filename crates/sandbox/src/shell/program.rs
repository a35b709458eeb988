//! Which shell, how it is started, and what is said to it.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;

use super::Token;

/// A shell that can be driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    Bash,
    /// Where there is no bash.
    Sh,
}

/// Variables that make a shell read a file, change what it is, or print by itself when it starts. They are given to it
/// only when it stands.
const START_UP: [&str; 15] = [
    "ENV",
    "BASH_ENV",
    "POSIXLY_CORRECT",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS4",
    "BASH_XTRACEFD",
    "TMOUT",
    "IGNOREEOF",
    "IFS",
    "GLOBIGNORE",
    "MAIL",
    "MAILPATH",
];
/// Variables that a shell does not let anybody set.
const READ_ONLY: [&str; 3] = ["SHELLOPTS", "BASHOPTS", "MAILCHECK"];

impl Program {
    /// In this order.
    pub const ALL: [Self; 2] = [Self::Bash, Self::Sh];

    /// The first that is on this machine.
    #[must_use]
    pub fn installed() -> Option<Self> {
        Self::ALL.into_iter().find(|program| std::path::Path::new(program.path()).exists())
    }

    /// Never from a `PATH`: the workspace may have something of that name.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::Bash => "/bin/bash",
            Self::Sh => "/bin/sh",
        }
    }

    /// Clean: it reads no file of anybody.
    #[must_use]
    pub fn argv(self) -> Vec<OsString> {
        let words: &[&str] = match self {
            Self::Bash => &["/bin/bash", "--noprofile", "--norc", "--noediting", "-i"],
            Self::Sh => &["/bin/sh", "-i"],
        };
        words.iter().map(OsString::from).collect()
    }

    /// What comes before a word so that neither an alias nor a function of that name is meant.
    const fn own(self) -> &'static str {
        match self {
            Self::Bash => "\\builtin",
            Self::Sh => "\\command",
        }
    }

    /// The first command: no prompts, no history, no mail, and then what was held back. A shell that looks for mail before a
    /// prompt expands the message of `MAILPATH` in itself, so how often it looks is settled for good: in bash a number below
    /// zero means never, to others a long time is as good. Bash lets no line set, unset or shadow what is read-only.
    pub(super) fn settle(self, held_back: &[(OsString, OsString)]) -> Vec<u8> {
        let mut out = match self {
            Self::Bash => b"set +H +o history +m; PS1= PS2= PS4='+ '; readonly MAILCHECK=-1".to_vec(),
            Self::Sh => b"set +m; PS1= PS2= PS4='+ '; readonly MAILCHECK=2147483647".to_vec(),
        };
        for (name, value) in held_back {
            out.extend([b"; export ", name.as_bytes(), b"=", &quoted(value.as_bytes())].concat());
        }
        out
    }

    /// The lines that run a command and have its end told. The empty one in between ends what an unfinished word in the
    /// command has left of the parser's state; it changes no status.
    pub(super) fn lines(self, command: &[u8], token: &Token) -> Vec<u8> {
        let own = self.own();
        let mut out = format!("{own} eval ").into_bytes();
        out.extend(quoted(command));
        out.extend_from_slice(b" </dev/null\n\n");
        out.extend(self.report(token).into_bytes());
        out
    }

    /// The folder is what `pwd` says: `$PWD` is a variable, which a command may set to any place, and what may be done
    /// next is decided by where the shell is. In a group, so that a trace (`set -x`) of it goes nowhere. What is exported
    /// is listed in the shell's own words, which costs no process.
    fn report(self, token: &Token) -> String {
        let (own, token) = (self.own(), token.as_str());
        let mut out = String::new();
        let _ = write!(out, "{{ {own} printf '\\0%s\\0%s\\0' {token} \"$?\" >&0; ");
        let _ = write!(out, "{own} pwd -P >&0; {own} printf '\\0' >&0; {own} export -p >&0; ");
        let _ = writeln!(out, "{own} printf '\\0%s\\0' {token}. >&0; }} 2>/dev/null");
        out
    }

    /// The lines that have the environment told, once it is not what it was: by a program that is started with it, which
    /// knows it to the byte and which no function stands in for. Where none can be started the answer has none.
    pub(super) fn environment(self, token: &Token) -> Vec<u8> {
        let (own, token) = (self.own(), token.as_str());
        let mut out = format!("{{ {own} printf '\\0%s\\0%s\\0\\0\\0' {token} 0 >&0; ");
        let _ = writeln!(out, "/usr/bin/env -0 >&0 || :; {own} printf '%s\\0' {token}. >&0; }} 2>/dev/null");
        out.into_bytes()
    }
}

/// Takes out of an environment what a shell must not start with; what it is to get later is given back.
pub(super) fn hold_back(env: &mut Vec<(OsString, OsString)>) -> Vec<(OsString, OsString)> {
    let is = |name: &OsStr, list: &[&str]| list.iter().any(|one| name == *one);
    env.retain(|(name, _)| !is(name, &READ_ONLY));
    env.extract_if(.., |(name, _)| is(name, &START_UP)).collect()
}

/// One word of a shell, to the byte.
#[must_use]
pub fn quoted(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    out.push(b'\'');
    for byte in text {
        match byte {
            b'\'' => out.extend_from_slice(b"'\\''"),
            other => out.push(*other),
        }
    }
    out.push(b'\'');
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_quoted_word_is_the_word_to_a_real_shell(word in proptest::collection::vec(1_u8.., 0..60)) {
            let script = [b"printf %s ".as_slice(), &quoted(&word)].concat();
            let out = std::process::Command::new("/bin/sh").arg("-c").arg(OsStr::from_bytes(&script)).output();
            prop_assert_eq!(out.expect("a shell").stdout, word);
        }
    }

    #[test]
    fn what_makes_a_shell_read_a_file_is_held_back() {
        let pair = |name: &str| (OsString::from(name), OsString::from("x"));
        let mut env = vec![pair("PATH"), pair("BASH_ENV"), pair("SHELLOPTS"), pair("A"), pair("PROMPT_COMMAND")];
        assert_eq!(hold_back(&mut env), [pair("BASH_ENV"), pair("PROMPT_COMMAND")]);
        assert_eq!(env, [pair("PATH"), pair("A")]);
    }
}
