//! Where requests went at the last start, and which network commands had, so that a change can be told before anything is
//! sent. Keys are never kept, only the variables they are in.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{ConfigError, DraftFile, Settings};

/// What the last start had.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastStart {
    /// The network of commands.
    pub network: Option<String>,
    /// By the provider's name.
    pub providers: BTreeMap<String, SentTo>,
}

/// Where the requests to a provider went.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentTo {
    /// `None`: the provider's own.
    pub address: Option<String>,
    /// The variable that held the key.
    pub key: Option<String>,
}

fn file(settings: &Settings) -> PathBuf {
    settings.home.root().join("last-start.json")
}

impl LastStart {
    /// What was kept; a file that says nothing is one that nobody compares with.
    #[must_use]
    pub fn load(settings: &Settings) -> Self {
        let text = fs::read_to_string(file(settings)).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Keeps it in place of `before`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn keep(&self, settings: &Settings, before: &Self) -> Result<(), ConfigError> {
        if before == self {
            return Ok(());
        }
        settings.home.prepare()?;
        let file = file(settings);
        let cannot = |error: std::io::Error| ConfigError::cannot_keep(&file, error);
        let text = serde_json::to_string_pretty(self).map_err(|error| cannot(error.into()))? + "\n";
        let mut draft = DraftFile::begin(&file).map_err(cannot)?;
        draft.write_all(text.as_bytes()).and_then(|()| draft.replace()).map_err(cannot)
    }
}

/// Keeps where requests go, for the next start. An address that a flag gave for this start alone is not kept; where the
/// file says the same, the flag has confirmed the file.
///
/// # Errors
/// If the file cannot be written.
pub fn remember(settings: &Settings, provider: &str, sent: SentTo) -> Result<(), ConfigError> {
    if settings.chosen.base_url && sent.address != settings.file_base_url.as_deref().map(plain) {
        return Ok(());
    }
    let before = LastStart::load(settings);
    let mut seen = before.clone();
    seen.providers.insert(provider.to_owned(), sent);
    seen.keep(settings, &before)
}

/// An address without what may be secret in it: a password before the host, a query behind the path.
pub fn plain(address: &str) -> String {
    let address = address.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
    let (host, path) = rest.split_once('/').map_or((rest, String::new()), |(host, path)| (host, format!("/{path}")));
    let host = host.rsplit('@').next().unwrap_or(host);
    if scheme.is_empty() { format!("{host}{path}") } else { format!("{scheme}://{host}{path}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_kept_without_what_may_be_secret_in_it() {
        assert_eq!(plain("https://me:secret@host:1/v1/?key=secret#x"), "https://host:1/v1");
        assert_eq!(plain("http://host/"), "http://host");
        assert_eq!(plain("host"), "host");
    }
}
