//! The beginning or the end of an id in place of the whole one, where it fits only one session or ask. Ids of one hour begin
//! alike; their ends differ.

use std::ffi::OsString;

use clap::Parser as _;
use clap::error::{ContextKind, ContextValue};
use portcullis_base::{AskId, SessionId};
use portcullis_event::LOCAL_TENANT;
use portcullis_store::{AskFilter, Log as _};

use crate::args::{Cli, Command};
use crate::ask::Ask;
use crate::exit::usage;
use crate::world::World;

/// Sessions that a beginning is looked for in, newest first.
const LOOKED_AT: usize = 100_000;
/// So many characters at the end of an id tell it from others.
const ENDING: usize = 8;
/// Without the prefix of its kind a shorter end is none: it may be a slip.
const LEAST: usize = 4;
/// Ids that an error names.
const NAMED: usize = 5;

/// The end of an id, as a short name for it.
pub fn ending(id: &str) -> &str {
    &id[id.len().saturating_sub(ENDING)..]
}

/// Which ids an argument may be a part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IdKind {
    Session,
    Ask,
}

impl IdKind {
    /// What a word may be a part of, given for this argument; none if it is whole, or no id. Without its prefix a word is
    /// the end of an id.
    fn of_part(word: &str, argument: &str) -> Option<Self> {
        let whole = Self::Session.stand_in().len() - "sesn_".len();
        let is_open = |rest: &str| rest.len() < whole && rest.bytes().all(|b| b.is_ascii_alphanumeric());
        match word.split_once('_') {
            Some(("sesn", rest)) if is_open(rest) => Some(Self::Session),
            Some(("ask", rest)) if is_open(rest) => Some(Self::Ask),
            None if word.len() < LEAST || !is_open(word) => None,
            None if argument.contains("<ASK>") => Some(Self::Ask),
            None if argument.contains("SESSION") || argument.contains("--session") => Some(Self::Session),
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

    /// Those that a word may mean: of asks that are to be shown or answered those that wait, before any other.
    async fn meant(self, world: &World, part: &str, answers: bool) -> anyhow::Result<Vec<String>> {
        if self == Self::Ask && answers {
            let waiting: Vec<String> =
                Ask::pending(world).await?.iter().map(|ask| ask.row.ask_id.to_string()).collect();
            if waiting.iter().any(|id| fits(id, part)) {
                return Ok(waiting);
            }
        }
        self.all(world).await
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

/// A word of the command line that is a part of an id.
struct OpenWord {
    at: usize,
    /// What stands before the id: `--session=`.
    before: String,
    part: String,
    kind: IdKind,
}

impl OpenWord {
    /// The word that an error is about, if it is one.
    fn rejected(words: &[OsString], error: &clap::Error) -> Option<Self> {
        let Some(ContextValue::String(part)) = error.get(ContextKind::InvalidValue) else { return None };
        let argument = error.get(ContextKind::InvalidArg).map(ToString::to_string).unwrap_or_default();
        let kind = IdKind::of_part(part, &argument)?;
        let before = |word: &OsString| {
            let before = word.to_str()?.strip_suffix(part.as_str())?;
            (before.is_empty() || before.ends_with('=')).then(|| before.to_owned())
        };
        let (at, before) = words.iter().enumerate().find_map(|(at, word)| Some((at, before(word)?)))?;
        Some(Self { at, before, part: part.clone(), kind })
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
    let Some(world) = World::look(cli.globals.settings()?)? else { return Ok(None) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answers = matches!(cli.command, Command::Approvals { .. });
    for word in &open {
        let all = runtime.block_on(word.kind.meant(&world, &word.part, answers))?;
        if !word.part.contains('_') && !all.iter().any(|id| fits(id, &word.part)) {
            // It is no id at all.
            return Ok(None);
        }
        let id = the_one(&word.part, all)?;
        words[word.at] = word.with(&id);
    }
    Ok(Cli::try_parse_from(words).ok())
}

/// Whether a word is the beginning or, with or without the prefix, the end of an id.
pub fn fits(id: &str, part: &str) -> bool {
    let Some((prefix, rest)) = id.split_once('_') else { return false };
    match part.split_once('_') {
        Some((given, part)) => given == prefix && (rest.starts_with(part) || rest.ends_with(part)),
        None => rest.ends_with(part),
    }
}

/// The one id that begins or ends so.
fn the_one(part: &str, mut all: Vec<String>) -> anyhow::Result<String> {
    all.retain(|id| fits(id, part));
    match &all[..] {
        [] => Err(usage(format!("no id begins or ends with {part}"))),
        [one] => Ok(one.clone()),
        several => {
            let more = if several.len() > NAMED { ", …" } else { "" };
            let (n, named) = (several.len(), several[..several.len().min(NAMED)].join(", "));
            Err(usage(format!(
                "{n} ids begin or end with {part}: {named}{more}; give more of the one you mean, such as its end"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_part_of_an_id_is_completed() {
        let of = |word: &str| IdKind::of_part(word, "<ASK>");
        assert_eq!(of("sesn_01m7"), Some(IdKind::Session));
        assert_eq!((of("ask_0"), of("ask_"), of("x8vd")), (Some(IdKind::Ask), Some(IdKind::Ask), Some(IdKind::Ask)));
        assert_eq!(IdKind::of_part("x8vd", "--session <ID>"), Some(IdKind::Session));
        assert_eq!(IdKind::of_part("x8vd", "<GRANT>"), None);
        let whole = IdKind::Ask.stand_in();
        for word in ["", "vd", "grant_01", "ask_0 x", "ask_é", "é", &whole, &format!("{whole}0")] {
            assert_eq!(of(word), None, "{word}");
        }
    }

    #[test]
    fn a_beginning_that_fits_several_names_them() {
        let all = || vec!["ask_01a".to_owned(), "ask_01b".to_owned(), "ask_02a".to_owned()];
        assert_eq!(the_one("ask_02", all()).expect("one"), "ask_02a");
        assert_eq!(the_one("1b", all()).expect("one"), "ask_01b");
        assert_eq!(the_one("ask_1b", all()).expect("one"), "ask_01b");
        let told = |part| the_one(part, all()).expect_err("not one").to_string();
        assert!(told("ask_01").starts_with("2 ids begin or end with ask_01: ask_01a, ask_01b; give more"));
        assert!(told("ask_").starts_with("3 ids "), "nothing but the prefix fits all");
        assert_eq!(told("ask_9"), "no id begins or ends with ask_9");
    }
}
