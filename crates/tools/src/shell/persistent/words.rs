//! What is said to a shell besides commands, and how its output is shown in a few words.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use portcullis_base::{EnvKey, limits};
use portcullis_sandbox::shell::quoted;
use portcullis_secret::SecretText;

/// A change of a shell.
pub(super) enum ShellChange<'a> {
    Cd(&'a Path),
    Set(&'a EnvKey, &'a SecretText),
    Unset(&'a EnvKey),
}

impl ShellChange<'_> {
    /// By the shell's own words, whatever functions bear their names.
    pub(super) fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Cd(path) => [b"\\command cd -- ".as_slice(), &quoted(path.as_os_str().as_bytes())].concat(),
            Self::Set(key, value) => {
                let name = key.as_str().as_bytes();
                [b"\\command export ".as_slice(), name, b"=", &quoted(value.expose().as_bytes())].concat()
            }
            Self::Unset(key) => format!("\\command unset -v {key}").into_bytes(),
        }
    }
}

/// The end of a text, at most [`limits::OUTPUT_PREVIEW`] characters.
pub(super) fn preview(text: &str) -> String {
    let over = text.chars().count().saturating_sub(limits::OUTPUT_PREVIEW);
    if over == 0 {
        return text.to_owned();
    }
    // One place for the sign that something is left out.
    format!("…{}", text.chars().skip(over + 1).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_is_the_end_and_no_longer_than_it_may_be() {
        assert_eq!(preview("short"), "short");
        let long = "ä".repeat(1_000) + "end";
        let shown = preview(&long);
        assert_eq!(shown.chars().count(), limits::OUTPUT_PREVIEW);
        assert!(shown.starts_with('…') && shown.ends_with("äend"));
    }
}
