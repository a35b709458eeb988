//! What a person can do about an error, with the commands and flags of this program. The libraries say what went wrong and
//! name none of them; the hint is added here, by the kind of the error and never by its text.

use std::borrow::Cow;
use std::error::Error;
use std::os::unix::ffi::OsStrExt as _;

use portcullis::harness::ServeFault;
use portcullis::local::{CrewError, InstallationError};
use portcullis::model::{Failure, ModelError, ModelSetting};
use portcullis::operations::{
    AnswerError, AskViewError, CallNameError, ContentError, ExportFileError, IdPartError, ImportError,
};
use portcullis::{GrantError, Refused, RuntimeError, StoreError, Witness};
use portcullis_base::{Code, IsolationLevel, Recorded};
use portcullis_config::home_workspace::WorkspaceRefusal;
use portcullis_config::{ConfigError, trust::UnreadableTrust};
use portcullis_event::{Body, Observed};
use portcullis_pipeline::{Halt, ShelfError};
use portcullis_terminal::render::quoted;

const DAMAGED: &str = "`portcullis audit verify` tells what is missing; then restore the store from a backup, or go on from \
                       the last event that holds with `portcullis sessions fork`";
/// [`DAMAGED`], where the mark beside the database is the witness and a person may overrule it.
const DAMAGED_BY_MARK: &str = "`portcullis audit verify` tells what is missing; then restore the store from a backup, or go \
                               on from the last event that holds with `portcullis sessions fork`, or give up what is lost \
                               with `portcullis audit accept-loss`";
const ISOLATION: &str = "`portcullis doctor` says what is missing for a higher isolation level";
const ROOM: &str = "`portcullis gc --dry-run` shows what can go, and `quota` under `[artifacts]` in the configuration sets \
                    the limit";
/// Where ids are listed.
const IDS: &str = "`portcullis sessions list` and `portcullis approvals list` show the ids that there are";
const LOST_CONTENT: &str = "`portcullis audit verify` tells more";

/// Where every warning of a session is listed, for a list that holds the newest alone.
pub const ALL_WARNINGS: &str = "`portcullis sessions show` lists every warning";

/// The error that another only passes on: how a run ends and which hint there is go by this one.
pub fn bare<'e>(error: &'e (dyn Error + 'static)) -> &'e (dyn Error + 'static) {
    let inner = (error.downcast_ref().and_then(InstallationError::bare))
        .or_else(|| error.downcast_ref().and_then(CrewError::bare))
        .or_else(|| error.downcast_ref().and_then(AnswerError::bare))
        .or_else(|| error.downcast_ref().and_then(AskViewError::bare))
        .or_else(|| error.downcast_ref().and_then(ContentError::bare));
    inner.map_or(error, bare)
}

/// An error with its causes.
fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |cause| (*cause).source())
}

/// The hint for an error: that of the first in its chain of causes that has one.
pub fn of(error: &(dyn Error + 'static)) -> Option<Cow<'static, str>> {
    causes(error).map(bare).find_map(|cause| match cause.downcast_ref() {
        Some(WorkspaceRefusal::Unconfirmed { workspace, .. }) => Some(Cow::Owned(format!(
            "work in the folder of a project, confirm it once on a terminal with `portcullis run --workspace {}`, or give \
             --workspace-is-home",
            quoted(workspace.as_os_str().as_bytes())
        ))),
        _ => of_one(cause).map(Cow::Borrowed),
    })
}

/// The error in its own words, followed by its hint.
pub fn explained(error: &(dyn Error + 'static)) -> String {
    followed(error.to_string(), of(error).as_deref())
}

/// The chain of an error on one line, followed by its hint.
pub fn explained_chain(error: &anyhow::Error) -> String {
    explained_causes(error.as_ref())
}

/// The same for an error of a library.
pub fn explained_causes(error: &(dyn Error + 'static)) -> String {
    let words: Vec<String> = causes(error).map(ToString::to_string).collect();
    followed(words.join(": "), of(error).as_deref())
}

/// A text and the hint after it.
pub fn followed(text: String, hint: Option<&str>) -> String {
    match hint {
        Some(hint) => format!("{text}; {hint}"),
        None => text,
    }
}

/// The hint for a call that failed.
pub fn of_failure(observed: &Observed) -> Option<&'static str> {
    match &observed.code {
        _ if observed.ok => None,
        // One that may be tried again failed by chance, not for want of a layer.
        Recorded::Known(Code::SandboxUnavailable) if !observed.retryable => Some(ISOLATION),
        Recorded::Known(Code::RetentionFailed) => Some(ROOM),
        _ if observed.tool_code.as_deref() == Some("artifact_lost") => Some(LOST_CONTENT),
        _ => None,
    }
}

/// The hint for the warnings of a call: below level `full` a command can see what that level would hide.
pub fn of_warnings(observed: &Observed, level: impl FnOnce() -> IsolationLevel) -> Option<&'static str> {
    let warned = observed.sandbox.is_some() && !observed.warnings.is_empty();
    (warned && level() != IsolationLevel::Full).then_some(ISOLATION)
}

/// The command that prints an artifact.
pub fn whole_artifact(id: &str) -> String {
    format!("portcullis call artifact_read '{{\"id\":\"{id}\"}}'")
}

/// The hint for a record of trust that says nothing.
pub fn of_trust(unreadable: &UnreadableTrust) -> String {
    format!("look at that file, then trust it again: portcullis policy trust {}", unreadable.file.display())
}

/// The hint for an event whose content is damaged.
pub fn of_event(body: &Body) -> Option<&'static str> {
    body.is_damaged().then_some(LOST_CONTENT)
}

fn of_one(cause: &(dyn Error + 'static)) -> Option<&'static str> {
    if let Some(IdPartError::Unknown(_)) = cause.downcast_ref() {
        return Some(IDS);
    }
    if let Some(error) = cause.downcast_ref::<RuntimeError>() {
        return match error {
            RuntimeError::Store(error) => of_store(error),
            RuntimeError::Grant(error) => of_grant(error),
            RuntimeError::Halted(halt) => of_halt(halt),
            RuntimeError::Refused(refused) => of_refusal(refused),
            _ => None,
        };
    }
    if let Some(error) = cause.downcast_ref::<ShelfError>() {
        return match error {
            ShelfError::Lost(_) => Some(LOST_CONTENT),
            ShelfError::Store(error) => of_store(error),
            ShelfError::NotFound(_) | ShelfError::Expired { .. } => None,
        };
    }
    if let Some(InstallationError::Unreadable(_)) = cause.downcast_ref() {
        return Some(
            "it is no store of Portcullis, or damaged: name another with --store, or restore it from a backup",
        );
    }
    if let Some(CallNameError::Unknown(_)) = cause.downcast_ref() {
        return Some("`portcullis sessions show` lists them");
    }
    if let Some(ConfigError::AllowForbidden(_)) = cause.downcast_ref::<ConfigError>() {
        return Some("answer each ask with `portcullis approvals`");
    }
    if let Some(ServeFault::Store(error)) = cause.downcast_ref::<ServeFault>() {
        return of_store(error);
    }
    if let Some(ImportError::MissingContent { .. }) = cause.downcast_ref() {
        return Some("export it again with --with-artifacts");
    }
    if let Some(ExportFileError::NoManifest(_)) = cause.downcast_ref() {
        return Some("`portcullis sessions export` writes one");
    }
    (cause.downcast_ref().and_then(of_store))
        .or_else(|| cause.downcast_ref().and_then(of_grant))
        .or_else(|| cause.downcast_ref().and_then(of_halt))
        .or_else(|| cause.downcast_ref().and_then(of_refusal))
        .or_else(|| cause.downcast_ref().and_then(of_model))
}

/// The hint for a store that refused or failed.
pub fn of_store(error: &StoreError) -> Option<&'static str> {
    Some(match error {
        StoreError::NoSession(_) => "`portcullis sessions list` shows those that are",
        StoreError::Terminated(_) => "begin another with `portcullis sessions new`",
        StoreError::NoAsk(_) => "`portcullis approvals list` shows those that wait",
        StoreError::NoWake(_) => "`portcullis sessions show` lists those that are",
        StoreError::Damaged { witness: Witness::Mark, .. } => DAMAGED_BY_MARK,
        StoreError::Damaged { .. } => DAMAGED,
        StoreError::Corrupt(_) => "`portcullis audit verify` names what is wrong",
        StoreError::ReadOnly(_) => "`portcullis doctor` tells more",
        StoreError::OverLimit(_) => ROOM,
        _ => return None,
    })
}

fn of_grant(error: &GrantError) -> Option<&'static str> {
    match error {
        GrantError::Unknown(_) => Some("`portcullis grants` lists them"),
        GrantError::Store(error) => of_store(error),
        GrantError::NotRemembered { .. } | GrantError::Revoked { .. } => None,
    }
}

fn of_halt(halt: &Halt) -> Option<&'static str> {
    match halt {
        Halt::FenceLost(error) | Halt::PersistFailed(error) => of_store(error),
        Halt::TaskLost(_) => None,
    }
}

fn of_refusal(refused: &Refused) -> Option<&'static str> {
    match refused {
        Refused::WhichOne(_) => Some("name one with --request"),
        Refused::NotUnknown(_) => Some("`portcullis sessions unknown` lists those"),
        Refused::NothingWaits(_) | Refused::NotWaiting(_) | Refused::Empty => None,
    }
}

fn of_model(error: &ModelError) -> Option<&'static str> {
    match (error.setting, error.failure) {
        (Some(ModelSetting::ModelOrServer), _) => Some(
            "give --model PROVIDER/MODEL, or --base-url URL for a server of your own; `portcullis demo` needs no model",
        ),
        (Some(ModelSetting::Model), _) => Some("name one with --model"),
        (Some(ModelSetting::Server), _) => Some("give the address of a server of your own with --base-url URL"),
        (Some(ModelSetting::Script), _) => Some("name it with --model scripted:FILE"),
        (None, Failure::ScriptExhausted) => Some("or leave out --strict-script"),
        (None, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use portcullis::{AskId, SessionId};
    use portcullis_base::{GrantId, QueuedWakeId};

    use super::*;

    #[test]
    fn an_error_that_wraps_another_has_the_hint_of_the_inner_one() {
        let session = SessionId::from_u128(1);
        let lost = || StoreError::NoSession(session);
        let wrapped: [Box<dyn Error>; 11] = [
            Box::new(lost()),
            Box::new(RuntimeError::Store(lost())),
            Box::new(RuntimeError::Halted(Halt::PersistFailed(lost()))),
            Box::new(RuntimeError::Grant(GrantError::Store(lost()))),
            Box::new(GrantError::Store(lost())),
            Box::new(ShelfError::Store(lost())),
            Box::new(Halt::PersistFailed(lost())),
            Box::new(ServeFault::Store(lost())),
            Box::new(InstallationError::Runtime(RuntimeError::Store(lost()))),
            Box::new(CrewError::Answer(AnswerError::View(AskViewError::Store(lost())))),
            Box::new(ContentError::Shelf(ShelfError::Store(lost()))),
        ];
        for error in wrapped {
            let text = explained(error.as_ref());
            assert!(text.contains(&session.to_string()) && text.ends_with("shows those that are"), "{text}");
        }
        let above = anyhow::Error::from(lost()).context("it was not sent");
        assert_eq!(of(above.as_ref()), of(&lost()), "through the chain");
    }

    #[test]
    fn a_damaged_session_names_every_way_out() {
        let session = SessionId::from_u128(1);
        let damaged = |witness| StoreError::Damaged { session, witness, recorded: 9, found: 4 };
        let text = explained(&damaged(Witness::Head));
        assert!(text.contains("audit verify") && text.contains("sessions fork") && text.contains("backup"), "{text}");
        assert!(!text.contains("accept-loss"), "only the mark can be given up: {text}");
        assert!(explained(&damaged(Witness::Mark)).contains("audit accept-loss"));
    }

    #[test]
    fn what_is_missing_is_said_with_where_to_look() {
        let hints = [
            (of(&StoreError::NoAsk(AskId::from_u128(1))), "approvals list"),
            (of(&StoreError::NoWake(QueuedWakeId::from_u128(1))), "sessions show"),
            (of(&StoreError::Terminated(SessionId::from_u128(1))), "sessions new"),
            (of(&GrantError::Unknown(GrantId::from_u128(1))), "portcullis grants"),
            (of(&Refused::WhichOne(Vec::new())), "--request"),
            (of(&ModelError::new(Failure::Config, "x").mended_by(ModelSetting::ModelOrServer)), "portcullis demo"),
            (of(&ModelError::new(Failure::ScriptExhausted, "x")), "--strict-script"),
        ];
        for (hint, word) in hints {
            assert!(hint.as_ref().is_some_and(|hint| hint.contains(word)), "{word}: {hint:?}");
        }
        assert_eq!(of(&ModelError::new(Failure::Timeout, "x")), None);
        assert_eq!(of(&StoreError::Locked("x".to_owned())), None);
    }
}
