//! A name in the environment of a session. What cannot be one, or is the runtime's own, has no such value: so nothing
//! that takes an [`EnvKey`] can change `PATH`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::limits;

/// Set anew for every command by the runtime (agent-runtime 8.7).
const PROTECTED: [&str; 3] = ["PATH", "LANG", "TMPDIR"];
/// The runtime's own names begin so.
const PROTECTED_PREFIX: &str = "PORTCULLIS_";
/// Kept by a shell itself; each shell has its own.
const OF_THE_SHELL: [&str; 4] = ["PWD", "OLDPWD", "SHLVL", "_"];

/// A name that a session may set.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EnvKey(String);

/// Why a text is no name that a session may set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvKeyError {
    #[error(
        "`{0}` is not a name of the environment: expected a letter or `_`, then letters, digits and `_`, at most {max} \
         characters in all",
        max = limits::ENV_NAME
    )]
    Malformed(String),
    #[error(
        "`{0}` is protected: the runtime sets PATH, LANG, TMPDIR and every PORTCULLIS_ name for each command itself; \
         choose another name"
    )]
    Protected(String),
    #[error(
        "`{0}` is kept by each shell itself and cannot be set for a session; use shell_set_cwd to change the folder"
    )]
    OfTheShell(String),
}

impl EnvKey {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for EnvKey {
    type Err = EnvKeyError;

    fn from_str(text: &str) -> Result<Self, EnvKeyError> {
        let mut letters = text.bytes();
        let first = letters.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
        if !first || !letters.all(|b| b.is_ascii_alphanumeric() || b == b'_') || text.len() > limits::ENV_NAME {
            return Err(EnvKeyError::Malformed(text.chars().take(64).collect()));
        }
        if PROTECTED.contains(&text) || text.starts_with(PROTECTED_PREFIX) {
            return Err(EnvKeyError::Protected(text.to_owned()));
        }
        if OF_THE_SHELL.contains(&text) {
            return Err(EnvKeyError::OfTheShell(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for EnvKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Serialize for EnvKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for EnvKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h43_what_the_runtime_or_a_shell_keeps_itself_is_no_name_of_a_session() {
        for name in ["PATH", "LANG", "TMPDIR", "PORTCULLIS_SESSION_ID", "PORTCULLIS_WORKSPACE_CWD", "PORTCULLIS_X"] {
            assert_eq!(name.parse::<EnvKey>(), Err(EnvKeyError::Protected(name.to_owned())));
        }
        for name in ["PWD", "OLDPWD", "SHLVL", "_"] {
            assert_eq!(name.parse::<EnvKey>(), Err(EnvKeyError::OfTheShell(name.to_owned())));
        }
        for name in ["", "1A", "A-B", "A=B", "A B", "Ä", "A\0", "A\n", &"A".repeat(limits::ENV_NAME + 1)] {
            assert!(matches!(name.parse::<EnvKey>(), Err(EnvKeyError::Malformed(_))), "{name:?}");
        }
        for name in ["A", "_a1", "path", "PATHS", "LC_ALL", "PORTCULLIS"] {
            assert_eq!(name.parse::<EnvKey>().map(|key| key.to_string()), Ok(name.to_owned()));
        }
    }
}
