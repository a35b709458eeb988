//! Where requests went at the last start, and which network commands had. What changed since is told before anything is
//! sent: a changed address takes the key along.
//!
//! A flag of this very start is no change: whoever gave it sees it. Keys are never kept, only the variables they are in.

use portcullis::NetworkAccess;
use portcullis::model::Destination;
use portcullis_config::Settings;
use portcullis_config::last_start::{self, LastStart, SentTo, plain};
use portcullis_terminal::render::{Term, exact};

use crate::exit::{failed, usage};
use crate::home_workspace::{has_a_person, says_yes};

/// Characters of an address that are shown.
const SHOWN: usize = 300;

/// Tells of a changed network of commands.
pub fn tell_network(settings: &Settings, term: &Term) {
    let before = LastStart::load(settings);
    let now = settings.network.as_str();
    if let Some(last) = before.network.as_deref().filter(|last| *last != now) {
        let file = settings.user_file.as_deref().map(|file| format!(" ({})", file.display())).unwrap_or_default();
        let change =
            format!("the network of commands is {now} since this start, and was {last}: [sandbox] network{file}");
        // Less than before harms nobody.
        let text = match settings.network {
            NetworkAccess::Disabled => change,
            _ => format!("warning: {change}; if that was not you, stop here"),
        };
        term.note(&exact(&text, 4_096));
    }
    let kept = LastStart { network: Some(now.to_owned()), ..before.clone() };
    // What cannot be kept, on a full disk for one, is told again.
    let _ = kept.keep(settings, &before);
}

/// Tells of a changed address or key before anything is sent. A key goes to another address because of a file only if a
/// person says yes, or a flag names that address.
pub fn check(settings: &Settings, now: &Destination, term: &Term) -> anyhow::Result<()> {
    let seen = LastStart::load(settings);
    // The first model that ever works here: there is nothing to compare with.
    if seen.providers.is_empty() {
        return Ok(());
    }
    let before = seen.providers.get(now.provider);
    if let Some(last) = before.map(|sent| sent.key.as_deref()).filter(|last| *last != now.key_variable) {
        let provider = now.provider;
        let change = match (now.key_variable, last.map(|name| exact(name, SHOWN))) {
            (Some(now), Some(last)) => {
                format!("the key for {provider} comes from {now}; at the last start it came from {last}")
            }
            (Some(now), None) => format!("the key for {provider} comes from {now}; at the last start there was none"),
            (None, last) => {
                let last = last.unwrap_or_default();
                format!("{last} is not set any more; requests to {provider} go without a key")
            }
        };
        term.note(&format!("warning: {change}"));
    }
    let address = now.address.as_deref().map(plain);
    let last = before.and_then(|sent| sent.address.clone());
    if address == last || settings.chosen.base_url {
        return Ok(());
    }
    let shown = |address: Option<&str>| {
        address.map_or_else(|| "the provider's own address".to_owned(), |address| exact(address, SHOWN))
    };
    let because = match (now.address_variable, settings.user_file.as_deref()) {
        (Some(name), _) => format!(" ({name})"),
        (None, Some(file)) if now.address.is_some() => {
            format!(" (base_url in {})", exact(&file.display().to_string(), 4_096))
        }
        _ => String::new(),
    };
    let key = now.key_variable.map(|name| format!(", with the key in {name},")).unwrap_or_default();
    let change = format!(
        "requests to {}{key} go to {}{because}; {}",
        now.provider,
        shown(address.as_deref()),
        match before {
            Some(_) => format!("at the last start they went to {}", shown(last.as_deref())),
            None => format!("{} is used here for the first time", now.provider),
        }
    );
    let is_of_a_file = now.address.is_some() && now.address_variable.is_none();
    match (is_of_a_file && now.key_variable.is_some(), has_a_person()) {
        (false, _) => term.note(&format!("warning: {change}")),
        (true, true) if says_yes(&format!("warning: {change}. Send the key there? Type yes: "))? => {}
        (true, true) => return Err(failed("nothing was sent; look at the configuration file")),
        (true, false) => {
            return Err(usage(format!(
                "{change}; nothing was sent, because nobody can be asked here whether that is meant: name the address once \
                 with --base-url, or run once on a terminal"
            )));
        }
    }
    Ok(())
}

/// Keeps where requests go, for the next start.
pub fn remember(settings: &Settings, now: &Destination) -> anyhow::Result<()> {
    let sent = SentTo { address: now.address.as_deref().map(plain), key: now.key_variable.map(str::to_owned) };
    Ok(last_start::remember(settings, now.provider, sent)?)
}
