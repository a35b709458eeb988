//! Secrets in memory: they do not print themselves and are wiped when dropped.

use std::fmt;

use secrecy::{ExposeSecret, SecretSlice, SecretString};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use subtle::ConstantTimeEq;

use crate::MASK;

/// A secret text. Printing, logging or serializing it by accident yields `***`.
///
/// Deserializing reads the real value, serializing never writes it: a config can hold one, a log
/// cannot.
#[derive(Clone)]
pub struct SecretText(SecretString);

/// Secret bytes, such as what [`Sealer::open`](crate::Sealer::open) gives back.
#[derive(Clone)]
pub struct SecretBytes(SecretSlice<u8>);

/// The bytes are not UTF-8. Their content is deliberately not part of the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the secret is not UTF-8 text; store it as text or use it as bytes")]
pub struct NotUtf8Secret;

impl SecretText {
    /// Takes the value in; the caller's copy is moved, not left behind.
    pub fn new(text: impl Into<String>) -> Self {
        Self(SecretString::from(text.into()))
    }

    /// The value itself. The caller answers for where it goes.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl SecretBytes {
    /// Takes the value in; the caller's copy is moved, not left behind.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(SecretSlice::from(bytes.into()))
    }

    /// The value itself. The caller answers for where it goes.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        self.0.expose_secret()
    }

    /// The same value as text.
    ///
    /// # Errors
    /// If the bytes are not UTF-8.
    pub fn to_text(&self) -> Result<SecretText, NotUtf8Secret> {
        std::str::from_utf8(self.expose()).map(SecretText::new).map_err(|_| NotUtf8Secret)
    }
}

macro_rules! masked {
    ($name:ident) => {
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(MASK)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(MASK)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(MASK)
            }
        }
    };
}

masked!(SecretText);
masked!(SecretBytes);

/// Takes the same time wherever the values differ, so that a comparison tells nothing but the length.
impl PartialEq for SecretText {
    fn eq(&self, other: &Self) -> bool {
        self.expose().as_bytes().ct_eq(other.expose().as_bytes()).into()
    }
}

impl Eq for SecretText {}

/// Takes the same time wherever the values differ, so that a comparison tells nothing but the length.
impl PartialEq for SecretBytes {
    fn eq(&self, other: &Self) -> bool {
        self.expose().ct_eq(other.expose()).into()
    }
}

impl Eq for SecretBytes {}

impl<'de> Deserialize<'de> for SecretText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_print_itself() {
        let text = SecretText::new("hunter2-hunter2");
        let bytes = SecretBytes::new(b"hunter2-hunter2".to_vec());
        assert_eq!(format!("{text} {text:?} {bytes} {bytes:?}"), "*** *** *** ***");
        assert_eq!(serde_json::to_string(&(&text, &bytes)).expect("masks serialize"), r#"["***","***"]"#);
        assert_eq!(text.expose(), "hunter2-hunter2");
        assert_eq!(bytes.to_text(), Ok(text));
    }

    #[test]
    fn a_secret_is_read_but_never_written() {
        let text: SecretText = serde_json::from_str(r#""pass""#).expect("a string");
        assert_eq!(text.expose(), "pass");
        assert_ne!(text, SecretText::new("pasS"));
    }

    #[test]
    fn bytes_that_are_not_text_say_so_without_content() {
        let error = SecretBytes::new(vec![0xff, 0x41]).to_text().expect_err("not UTF-8");
        assert!(!error.to_string().contains('A'), "{error}");
    }
}
