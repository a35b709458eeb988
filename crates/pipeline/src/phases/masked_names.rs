//! Keys and paths that hold a secret. They are compared as well as written, so a mask alone is not enough:
//! a caller that does not know the secret must still meet the same key.

use std::borrow::Cow;

use portcullis_base::{FileFact, SideEffects};
use portcullis_contract::Tool;
use portcullis_contract::seam::{self, Decoded};
use portcullis_secret::{Redactor, redact_sensitive};
use serde_json::Value;

use crate::sessions::session::SessionShared;

/// What must not be written of one call: the secrets of the runtime and the call's own sensitive values.
pub(crate) struct CallRedactor {
    known: std::sync::Arc<Redactor>,
    own: Redactor,
}

impl CallRedactor {
    pub(crate) fn of(session: &SessionShared, tool: &Tool, input: &Decoded) -> Self {
        let mut input = input.value().clone();
        let taken = redact_sensitive(seam::input_schema(tool), &mut input);
        let values = taken.into_iter().map(|(_, value)| match value {
            Value::String(text) => text,
            other => other.to_string(),
        });
        // Values too large to be searched for leave the runtime's own secrets to be masked.
        let own = if values.len() == 0 { Redactor::none() } else { Redactor::new(values).unwrap_or_default() };
        Self { known: std::sync::Arc::clone(&session.scope.redactor), own }
    }

    fn is_empty(&self) -> bool {
        self.known.is_empty() && self.own.is_empty()
    }

    pub(crate) fn masked<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.known.redact_text(text) {
            Cow::Borrowed(text) => self.own.redact_text(text),
            Cow::Owned(text) => Cow::Owned(self.own.redact_text(&text).into_owned()),
        }
    }

    /// A key that names no secret and conflicts with all that `key` conflicts with (L42): the nearest folder
    /// above the secret, or everything. A hash would keep a caller apart from one that does not know the secret.
    pub(crate) fn key(&self, key: String) -> String {
        let mut wide = key.as_str();
        while matches!(self.masked(wide), Cow::Owned(_)) {
            match wide.rfind('/') {
                // `fs:/` is the root itself, and `fs:` would be no folder.
                Some(at) if wide[..at].ends_with(':') && at + 1 < wide.len() => wide = &wide[..=at],
                Some(at) if !wide[..at].ends_with(':') => wide = &wide[..at],
                _ => return "*".to_owned(),
            }
        }
        wide.to_owned()
    }

    /// What a tool names in its reports may hold what it was given.
    pub(crate) fn mask_effects(&self, effects: &mut SideEffects) {
        if self.is_empty() {
            return;
        }
        for item in &mut effects.items {
            let words = [Some(&mut item.kind), Some(&mut item.target), item.before.as_mut(), item.after.as_mut()];
            for word in words.into_iter().flatten() {
                *word = self.masked(word).into_owned();
            }
        }
    }

    /// Baselines are found by the masked path, too.
    pub(crate) fn mask_files(&self, files: &mut [FileFact]) {
        if self.is_empty() {
            return;
        }
        for fact in files {
            let (FileFact::Delivered { path, .. } | FileFact::Edited { path, .. } | FileFact::Written { path, .. }) =
                fact;
            *path = self.masked(path).into_owned();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l42_l69_a_key_with_a_secret_becomes_the_folder_above_it() {
        let known = std::sync::Arc::new(Redactor::new(["hunter2-known", "a/secret/path"]).expect("a redactor"));
        let names = CallRedactor { known, own: Redactor::new(["hunter2-own"]).expect("a redactor") };
        for (key, wide) in [
            ("fs:/repo/plain", "fs:/repo/plain"),
            ("fs:/repo/hunter2-known/x", "fs:/repo"),
            ("fs:/repo/x-hunter2-own.txt", "fs:/repo"),
            ("fs:/repo/a/secret/path/x", "fs:/repo/a/secret"),
            ("fs:/hunter2-own", "fs:/"),
            ("mcp:hunter2-own", "*"),
            ("hunter2-known:/x", "*"),
        ] {
            assert_eq!(names.key(key.to_owned()), wide);
        }
    }
}
