//! The beginning or the end of an id in place of the whole one, where it fits only one session or ask. Ids of one hour begin
//! alike; their ends differ.

use std::ffi::OsString;

use clap::Parser as _;
use clap::error::{ContextKind, ContextValue};
use portcullis::operations::{IdKind, only_id};
use portcullis_base::{AskId, Clock as _, SessionId, SystemClock};

use crate::args::{Cli, Command};
use crate::ask;
use crate::world::World;

/// Without the prefix of its kind a shorter end is none: it may be a slip.
const LEAST: usize = 4;
/// What a word may be a part of, given for this argument; none if it is whole, or no id. Without its prefix a word is
/// the end of an id.
fn kind_of_part(word: &str, argument: &str) -> Option<IdKind> {
    let whole = stand_in(IdKind::Session).len() - "sesn_".len();
    let is_open = |rest: &str| rest.len() < whole && rest.bytes().all(|b| b.is_ascii_alphanumeric());
    match word.split_once('_') {
        Some(("sesn", rest)) if is_open(rest) => Some(IdKind::Session),
        Some(("ask", rest)) if is_open(rest) => Some(IdKind::Ask),
        None if word.len() < LEAST || !is_open(word) => None,
        None if argument.contains("<ASK>") => Some(IdKind::Ask),
        None if argument.contains("SESSION") || argument.contains("--session") => Some(IdKind::Session),
        _ => None,
    }
}

/// Some id of the kind, for a look at the other arguments.
fn stand_in(kind: IdKind) -> String {
    match kind {
        IdKind::Session => SessionId::from_u128(1).to_string(),
        IdKind::Ask => AskId::from_u128(1).to_string(),
    }
}

/// Those that a word may mean: of asks that are to be answered those that wait, before any other.
async fn meant(world: &World, word: &OpenWord, answers: bool) -> anyhow::Result<Vec<String>> {
    let ids = match word.kind {
        IdKind::Ask if answers => world.archive.ids_to_answer(&word.part, SystemClock::new().now()).await,
        kind => world.archive.ids(kind).await,
    };
    ids.map_err(|error| ask::unseen(world, error))
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
        let kind = kind_of_part(part, &argument)?;
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

/// A command line that was not understood, with whole ids. Where it is not understood with them either, the inner error says
/// what else is wrong with it.
pub fn completed(words: &[OsString], error: clap::Error) -> anyhow::Result<Result<Cli, clap::Error>> {
    let (mut words, mut open, mut wrong) = (words.to_vec(), Vec::new(), error);
    let cli = loop {
        let Some(word) = OpenWord::rejected(&words, &wrong) else { return Ok(Err(wrong)) };
        words[word.at] = word.with(&stand_in(word.kind));
        open.push(word);
        match Cli::try_parse_from(&words) {
            Ok(cli) => break cli,
            Err(error) => wrong = error,
        }
    };
    let Some(world) = World::look(cli.globals.settings()?)? else { return Ok(Err(wrong)) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answers = matches!(cli.command, Command::Approvals { .. });
    for word in &open {
        let all = runtime.block_on(meant(&world, word, answers))?;
        let id = only_id(&word.part, all)?;
        words[word.at] = word.with(&id);
    }
    Ok(Cli::try_parse_from(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_part_of_an_id_is_completed() {
        let of = |word: &str| kind_of_part(word, "<ASK>");
        assert_eq!(of("sesn_01m7"), Some(IdKind::Session));
        assert_eq!((of("ask_0"), of("ask_"), of("x8vd")), (Some(IdKind::Ask), Some(IdKind::Ask), Some(IdKind::Ask)));
        assert_eq!(kind_of_part("x8vd", "--session <ID>"), Some(IdKind::Session));
        assert_eq!(kind_of_part("x8vd", "<GRANT>"), None);
        let whole = stand_in(IdKind::Ask);
        for word in ["", "vd", "grant_01", "ask_0 x", "ask_é", "é", &whole, &format!("{whole}0")] {
            assert_eq!(of(word), None, "{word}");
        }
    }
}
