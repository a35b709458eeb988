//! The beginning of an id in place of the whole one, where it fits only one session or ask.

use std::ffi::OsString;

use clap::Parser as _;
use clap::error::{ContextKind, ContextValue};
use portcullis_base::{AskId, SessionId};
use portcullis_event::LOCAL_TENANT;
use portcullis_store::{AskFilter, Log as _};

use crate::args::Cli;
use crate::config::Settings;
use crate::exit::usage;
use crate::world::World;

/// Sessions that a beginning is looked for in, newest first.
const LOOKED_AT: usize = 100_000;
/// Ids that an error names.
const NAMED: usize = 5;

/// Which ids an argument may be the beginning of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IdKind {
    Session,
    Ask,
}

impl IdKind {
    /// What a word may be the beginning of; none if it is whole, or no id.
    fn of_beginning(word: &str) -> Option<Self> {
        let is_open = |rest: &str, whole: &str| {
            rest.len() < whole.len() && !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_alphanumeric())
        };
        let whole = Self::Session.stand_in();
        let whole = whole.trim_start_matches("sesn_");
        match word.split_once('_')? {
            ("sesn", rest) if is_open(rest, whole) => Some(Self::Session),
            ("ask", rest) if is_open(rest, whole) => Some(Self::Ask),
            _ => None,
        }
    }

    /// Some id of the kind, for a look at the other arguments.
    fn stand_in(self) -> String {
        match self {
            Self::Session => SessionId::from_u128(1).to_string(),
            Self::Ask => AskId::from_u128(1).to_string(),
        }
    }

    async fn all(self, world: &World) -> anyhow::Result<Vec<String>> {
        Ok(match self {
            Self::Session => {
                let all = world.store.sessions(LOCAL_TENANT, LOOKED_AT).await?;
                all.iter().map(|session| session.session_id.to_string()).collect()
            }
            Self::Ask => {
                let all = world.store.asks(LOCAL_TENANT, AskFilter { session: None, pending: false }).await?;
                all.iter().map(|ask| ask.ask_id.to_string()).collect()
            }
        })
    }
}

/// A word of the command line that is the beginning of an id.
struct OpenWord {
    at: usize,
    /// What stands before the id: `--session=`.
    before: String,
    beginning: String,
    kind: IdKind,
}

impl OpenWord {
    /// The word that an error is about, if it is one.
    fn rejected(words: &[OsString], error: &clap::Error) -> Option<Self> {
        let Some(ContextValue::String(beginning)) = error.get(ContextKind::InvalidValue) else { return None };
        let kind = IdKind::of_beginning(beginning)?;
        let before = |word: &OsString| {
            let before = word.to_str()?.strip_suffix(beginning.as_str())?;
            (before.is_empty() || before.ends_with('=')).then(|| before.to_owned())
        };
        let (at, before) = words.iter().enumerate().find_map(|(at, word)| Some((at, before(word)?)))?;
        Some(Self { at, before, beginning: beginning.clone(), kind })
    }

    fn with(&self, id: &str) -> OsString {
        format!("{}{id}", self.before).into()
    }
}

/// A command line that was not understood, with whole ids. `None` if it is not understood with them either.
pub fn completed(words: &[OsString], error: &clap::Error) -> anyhow::Result<Option<Cli>> {
    let (mut words, mut open) = (words.to_vec(), Vec::new());
    let mut rejected = OpenWord::rejected(&words, error);
    let cli = loop {
        let Some(word) = rejected else { return Ok(None) };
        words[word.at] = word.with(&word.kind.stand_in());
        open.push(word);
        match Cli::try_parse_from(&words) {
            Ok(cli) => break cli,
            Err(error) => rejected = OpenWord::rejected(&words, &error),
        }
    };
    let Some(world) = World::look(Settings::load(&cli.globals)?)? else { return Ok(None) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for word in &open {
        let id = the_one(&word.beginning, runtime.block_on(word.kind.all(&world))?)?;
        words[word.at] = word.with(&id);
    }
    Ok(Cli::try_parse_from(words).ok())
}

/// The one id that begins so.
fn the_one(beginning: &str, mut all: Vec<String>) -> anyhow::Result<String> {
    all.retain(|id| id.starts_with(beginning));
    match &all[..] {
        [] => Err(usage(format!("no id begins with {beginning}"))),
        [one] => Ok(one.clone()),
        several => {
            let more = if several.len() > NAMED { ", …" } else { "" };
            let (n, named) = (several.len(), several[..several.len().min(NAMED)].join(", "));
            Err(usage(format!("{n} ids begin with {beginning}: {named}{more}; give more of the one you mean")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_beginning_is_completed() {
        assert_eq!(IdKind::of_beginning("sesn_01m7"), Some(IdKind::Session));
        assert_eq!(IdKind::of_beginning("ask_0"), Some(IdKind::Ask));
        let whole = IdKind::Ask.stand_in();
        for word in ["ask_", "sesn", "grant_01", "ask_0 x", "ask_é", &whole, &format!("{whole}0")] {
            assert_eq!(IdKind::of_beginning(word), None, "{word}");
        }
    }

    #[test]
    fn a_beginning_that_fits_several_names_them() {
        let all = || vec!["ask_01a".to_owned(), "ask_01b".to_owned(), "ask_02a".to_owned()];
        assert_eq!(the_one("ask_02", all()).expect("one"), "ask_02a");
        let told = |beginning| the_one(beginning, all()).expect_err("not one").to_string();
        assert_eq!(told("ask_01"), "2 ids begin with ask_01: ask_01a, ask_01b; give more of the one you mean");
        assert_eq!(told("ask_9"), "no id begins with ask_9");
    }
}
