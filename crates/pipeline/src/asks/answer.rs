//! Answers to asks, and those that are known when an ask is raised (tool-contract 13.7): a flag, or a rule of an embedder's
//! own. A known answer stands in one append with its ask and the start of the call; nothing waits and nothing is sought.

use std::sync::Arc;

use portcullis_base::{AskId, GrantId, SessionId, Timestamp};
use portcullis_event::facts::{AskReplied, BY_FLAG, PermissionAsked, Reply};
use portcullis_event::{Actor, fold};

use crate::asks::grants::{NewGrant, Terms};
use crate::phases::intent::Intent;
use crate::sessions::append::Append;
use crate::sessions::session::SessionShared;

/// What is known of the answer to an ask in the process that raises it. `None`: the ask waits for somebody. It is called
/// once for each ask, before anything of the ask is durable: it decides, and neither waits nor tells anybody who could
/// answer.
pub type KnownAnswers = Arc<dyn Fn(SessionId, &PermissionAsked) -> Option<AskAnswer> + Send + Sync>;

/// The answer to an ask, and where it came from.
#[derive(Debug, Clone)]
pub struct AskAnswer {
    /// Yes or no. `AllowSession` and `AllowSaved` also remember the rule that the ask suggested.
    pub reply: Reply,
    /// Until when it is remembered; without it, until it is revoked.
    pub expires_at: Option<Timestamp>,
    /// Words for the model, with [`Reply::DenyWithFeedback`].
    pub feedback: Option<String>,
    /// Who.
    pub approver: String,
    /// Through what: `cli`, `callback`, `flag`.
    pub channel: String,
    /// The terminal it was given at, if any.
    pub terminal: Option<String>,
    /// The process that started the one that answered.
    pub parent_process: Option<String>,
}

impl AskAnswer {
    /// An answer through the embedder's own callback.
    #[must_use]
    pub fn by(approver: &str, reply: Reply) -> Self {
        Self {
            reply,
            expires_at: None,
            feedback: None,
            approver: approver.to_owned(),
            channel: "callback".to_owned(),
            terminal: None,
            parent_process: None,
        }
    }

    /// Whether nobody has read what it allows.
    #[must_use]
    pub fn is_unread_allow(&self) -> bool {
        self.channel == BY_FLAG && self.reply.allows()
    }

    /// Whether the rule that the ask suggested is remembered by it.
    #[must_use]
    pub fn is_remembered(&self) -> bool {
        matches!(self.reply, Reply::AllowSession | Reply::AllowSaved)
    }

    /// The terms on which it is remembered.
    #[must_use]
    pub fn terms(&self, now: Timestamp) -> Terms<'_> {
        Terms { reply: &self.reply, by: &self.approver, now, expires_at: self.expires_at }
    }

    /// The fact that it was given. `masked` takes out of a person's words what nobody else may read (L69).
    #[must_use]
    pub fn replied(self, ask_id: AskId, grant_id: Option<GrantId>, masked: impl FnOnce(&str) -> String) -> AskReplied {
        AskReplied {
            ask_id,
            reply: self.reply,
            approver: self.approver,
            channel: self.channel,
            terminal: self.terminal,
            parent_process: self.parent_process,
            feedback: self.feedback.map(|words| masked(&words)),
            grant_id,
        }
    }
}

/// Writes the answer to an ask that was just written, if it is known and may be given by whoever knows it.
pub(crate) fn known(
    session: &SessionShared,
    intent: &Intent,
    asked: &PermissionAsked,
    facts: &mut Append,
) -> Option<fold::Ask> {
    let known = session.scope.answers.as_ref()?;
    let mut answer = known(session.key.session, asked)?;
    // It may hide a command that a rule denies, and a flag has read nothing.
    if asked.only_a_person && answer.is_unread_allow() {
        return None;
    }
    let grant = remembered(session, asked, &mut answer);
    let actor = Actor::user(&answer.approver);
    let masked = |words: &str| session.scope.redactor.redact_text(words).into_owned();
    let replied = answer.replied(asked.ask_id, grant.as_ref().map(|grant| grant.id), masked);
    session.note_by(&actor, facts, intent.turn_id, &replied);
    if let Some(grant) = grant {
        session.note_by(&actor, facts, intent.turn_id, &grant.event);
        facts.records.extend(grant.records);
    }
    // Where it stands in the log nobody needs to know: it is settled or started with the append that tells of it.
    let mut ask = fold::Ask::pending(asked, 0);
    ask.answer(&replied);
    Some(ask)
}

/// The grant that a known answer gives. A yes that cannot be remembered stands for this once.
fn remembered(session: &SessionShared, asked: &PermissionAsked, answer: &mut AskAnswer) -> Option<NewGrant> {
    if !answer.is_remembered() {
        return None;
    }
    let now = session.gate.clock.now();
    let id = GrantId::make(&*session.gate.ids, now);
    match session.scope.books.grants.given(asked, session.key.session, id, &answer.terms(now)) {
        Ok(grant) => Some(grant),
        Err(error) => {
            tracing::warn!(ask = %asked.ask_id, "{error}");
            answer.reply = Reply::AllowOnce;
            None
        }
    }
}
