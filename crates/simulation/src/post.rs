//! What sessions hand to others by the outbox: children that are made and seeded, and events for sessions that are there.
//! Whoever delivers may die or be cut off anywhere; each takes effect once if what caused it did, and else never.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use portcullis_base::{Clock as _, EventId, OutboxId, SessionId};
use portcullis_event::facts::ToolQueued;
use portcullis_event::{Actor, Draft, Event};
use portcullis_store::{Log as _, OutboxEntry, OutboxEvent, OutboxKind, SessionKey};

use crate::dice::Dice;
use crate::ground::Ground;
use crate::jobs::roll_call;

/// One entry that somebody tried to commit.
#[derive(Clone)]
struct Posted {
    /// The event that stands beside it in the log of its sender.
    cause: EventId,
    from: SessionKey,
    to: SessionKey,
    events: Vec<EventId>,
    /// The root of the tree that it makes a session in; none if it makes none.
    creates: Option<SessionId>,
}

/// Everything that was posted.
#[derive(Default)]
pub struct PostBook(Mutex<Vec<Posted>>);

impl PostBook {
    fn all(&self) -> Vec<Posted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sessions that somebody wanted made.
    #[must_use]
    pub fn children(&self) -> Vec<SessionKey> {
        self.all().iter().filter(|posted| posted.creates.is_some()).map(|posted| posted.to).collect()
    }

    /// The root of the tree that a session is in.
    fn root_of(&self, session: SessionKey) -> SessionId {
        let made = self.all().into_iter().find(|posted| posted.to == session).and_then(|posted| posted.creates);
        made.unwrap_or(session.session)
    }

    /// An entry of `from` with calls for a new child of it, or for `to`, to be committed with `cause`.
    #[must_use]
    pub fn entry(&self, ground: &Ground, from: SessionKey, to: Option<SessionKey>, cause: &Draft) -> OutboxEntry {
        let dice = Dice::of(ground.options.seed, &cause.id.to_string());
        let now = ground.clock.now();
        let root = to.is_none().then(|| self.root_of(from));
        let to = to.unwrap_or_else(|| SessionKey { session: SessionId::make(&*ground.ids, now), ..from });
        let mut drafts: Vec<Draft> =
            root.map(|root| ground.created(to, Some((from.session, root)))).into_iter().collect();
        for _ in 0..ground.take_calls(dice.between(1, 2)) {
            let (name, input) = roll_call(&dice);
            drafts.push(ground.draft(&ToolQueued { name: name.to_owned(), input, by: "session".to_owned() }));
        }
        let events: Vec<EventId> = drafts.iter().map(|draft| draft.id).collect();
        let carried = drafts.iter().map(|draft| OutboxEvent::of(draft, draft.id.to_string())).collect();
        let (append_id, actor) = (ground.append_id(), Actor::agent("sender"));
        let work = match root {
            Some(_) => OutboxKind::Create {
                session_id: to.session,
                append_id,
                dedupe: format!("created:{}", to.session),
                actor,
                events: carried,
            },
            None => OutboxKind::Deliver { session_id: to.session, append_id, actor, events: carried },
        };
        ground.oracle.belongs(to);
        let posted = Posted { cause: cause.id, from, to, events, creates: root };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(posted);
        OutboxEntry { id: OutboxId::make(&*ground.ids, now), tenant: from.tenant, at: now, work }
    }

    /// What was handed over is there once and in order, if what caused it is there; else nothing of it is.
    pub async fn check(&self, ground: &Ground) {
        let mut logs: BTreeMap<SessionKey, Vec<Event>> = BTreeMap::new();
        for posted in self.all() {
            for key in [posted.from, posted.to] {
                logs.entry(key).or_insert(ground.store.read(key, 0, usize::MAX).await.unwrap_or_default());
            }
            let caused = logs[&posted.from].iter().any(|event| event.id == posted.cause);
            let arrived = logs[&posted.to].iter().filter(|event| posted.events.contains(&event.id));
            let arrived: Vec<EventId> = arrived.map(|event| event.id).collect();
            let expected = if caused { posted.events.as_slice() } else { &[] };
            if arrived != expected {
                let text = format!("{} of {} events for {}", arrived.len(), expected.len(), posted.to.session);
                ground.oracle.breach("S6/outbox", format!("{text} arrived from {}", posted.from.session));
            }
            let Some(root) = posted.creates.filter(|_| caused) else { continue };
            let made = ground.store.session(posted.to).await.ok().flatten();
            let lineage = made.map(|made| (made.row.parent_session_id, made.row.root_session_id));
            if lineage != Some((Some(posted.from.session), root)) {
                ground.oracle.breach("S15", format!("{} is a child of {lineage:?}", posted.to.session));
            }
        }
    }
}
