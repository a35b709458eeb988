//! What a commit leaves for others: sessions that are made, events that are delivered, and people outside who are told.

use std::collections::BTreeSet;
use std::time::Duration;

use portcullis_base::{AppendId, EventId, OutboxId, SessionId, TenantId};
use portcullis_event::facts::{Block, UserMessage};
use portcullis_event::{Actor, Draft, ledger_of};
use portcullis_store::{
    ClaimedEntry, Commit, OutboxEntry, OutboxEvent, OutboxKind, SessionKey, SessionQuery, Store, StoreError,
    deliver_outbox,
};
use serde_json::json;

use super::{Make, TTL, assert_sound, head, setup, whole};
use crate::{Fault, FaultKind, FaultyStore, World};

fn entry(world: &World, work: OutboxKind) -> OutboxEntry {
    let now = world.now();
    OutboxEntry { id: OutboxId::make(&*world.ids, now), tenant: world.tenant, at: now, work }
}

fn said(world: &World, text: &str) -> Draft {
    world.draft(&UserMessage { content: vec![Block::text(text)] })
}

/// The creation of a child that is told what to do.
fn creation(world: &World, parent: SessionKey, child: SessionKey) -> OutboxEntry {
    let created = world.created_with(child, |created| {
        created.parent_session_id = Some(parent.session);
        created.root_session_id = parent.session;
    });
    let drafts = [created, said(world, "do this"), world.queued("and that")];
    let events = drafts.iter().map(|draft| OutboxEvent::of(draft, String::new())).collect();
    entry(
        world,
        OutboxKind::Create {
            session_id: child.session,
            append_id: world.append(),
            dedupe: format!("child:{}", child.session),
            actor: Actor::agent("parent"),
            events,
        },
    )
}

fn delivery(world: &World, to: SessionId, texts: &[(&str, &str)]) -> OutboxEntry {
    let event = |(key, text): &(&str, &str)| OutboxEvent::of(&said(world, text), (*key).to_owned());
    let (append_id, actor) = (world.append(), Actor::agent("sender"));
    entry(world, OutboxKind::Deliver { session_id: to, append_id, actor, events: texts.iter().map(event).collect() })
}

async fn commit_with(world: &World, store: &dyn Store, key: SessionKey, entries: Vec<OutboxEntry>) {
    let mut commit = world.input(key, "with something for others");
    commit.outbox = entries;
    store.commit(commit).await.expect("an append");
}

async fn kinds(store: &dyn Store, key: SessionKey) -> Vec<String> {
    whole(store, key).await.iter().map(|event| event.kind.as_str().to_owned()).collect()
}

pub async fn the_outbox_creates_and_seeds_a_session_once(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let (parent, child) = (world.session(store).await.expect("a session"), world.key());
    let entry = creation(&world, parent, child);
    commit_with(&world, store, parent, vec![entry.clone()]).await;
    assert_eq!(store.head(child).await, Ok(None), "it is made when it is delivered");
    deliver_outbox(store).await.expect("delivered");
    let seeded = ["session.created", "user.message", "tool.queued"];
    assert_eq!(kinds(store, child).await, seeded);
    assert!(whole(store, child).await.iter().all(|event| event.actor == Actor::agent("parent")));
    assert!(head(store, child).await.next_due_at.is_some(), "what it was told makes it due");
    let query = SessionQuery { parent: Some(parent.session), ..SessionQuery::default() };
    let children = store.find_sessions(world.tenant, &query, 9, None).await.expect("a list").items;
    assert_eq!(children.iter().map(|one| one.session_id).collect::<Vec<_>>(), [child.session]);

    // A deliverer that died before it could say so: the entry comes again, and then with another log in between.
    for _ in 0..2 {
        commit_with(&world, store, parent, vec![entry.clone()]).await;
        assert_eq!(deliver_outbox(store).await, Ok(0));
        assert_eq!(kinds(store, child).await, seeded);
        assert_eq!(store.outbox(9).await, Ok(Vec::new()));
    }
    assert_sound(store, child).await;
}

/// Whenever the deliverer dies, what comes of it is there once (F2).
pub async fn f02_a_crash_between_delivery_and_removal_delivers_once(make: Make) {
    for nth in 1..=6 {
        for kind in FaultKind::ALL {
            let (world, backend) = setup(make);
            let store = &*backend.store;
            let (parent, child) = (world.session(store).await.expect("a session"), world.key());
            let entries = vec![
                creation(&world, parent, child),
                delivery(&world, child.session, &[("a", "first"), ("b", "second")]),
                delivery(&world, parent.session, &[("c", "to itself")]),
            ];
            commit_with(&world, store, parent, entries).await;
            let faulty = FaultyStore::new(backend.store.clone(), Some(Fault { nth, kind }));
            let _ = deliver_outbox(&faulty).await;
            deliver_outbox(store).await.expect("the next one delivers the rest");
            let expected = ["session.created", "user.message", "tool.queued", "user.message", "user.message"];
            assert_eq!(kinds(store, child).await, expected, "{nth} {kind:?}");
            assert_eq!(kinds(store, parent).await.iter().filter(|kind| *kind == "user.message").count(), 1);
            assert_eq!(store.outbox(9).await, Ok(Vec::new()));
        }
    }
}

pub async fn each_delivered_event_takes_effect_once_by_its_own_key(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let (from, to) = (world.session(store).await.expect("a session"), world.session(store).await.expect("a session"));
    commit_with(&world, store, from, vec![delivery(&world, to.session, &[("a", "one"), ("b", "two")])]).await;
    deliver_outbox(store).await.expect("delivered");
    // Another entry brings one that is there, and one that is not.
    let again = delivery(&world, to.session, &[("b", "two, again"), ("c", "three")]);
    commit_with(&world, store, from, vec![again, delivery(&world, to.session, &[("c", "three, again")])]).await;
    deliver_outbox(store).await.expect("delivered");
    let events = whole(store, to).await;
    let told: Vec<&str> = events.iter().filter(|e| e.kind.as_str() == "user.message").filter_map(text).collect();
    let has = |word: &str| told.iter().filter(|payload| payload.contains(word)).count();
    assert_eq!((told.len(), has("one"), has("two"), has("three"), has("again")), (3, 1, 1, 1, 0));
    assert!(events.iter().skip(1).all(|event| event.actor == Actor::agent("sender")));
    assert_sound(store, to).await;
}

fn text(event: &portcullis_event::Event) -> Option<&str> {
    event.payload.as_deref()
}

pub async fn deliveries_to_one_log_share_an_append(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    for _ in 0..100 {
        world.session(store).await.expect("a session");
    }
    assert_eq!(deliver_outbox(store).await, Ok(100));
    let ledger = SessionKey { tenant: world.tenant, session: ledger_of(world.tenant) };
    let events = whole(store, ledger).await;
    let appends: BTreeSet<AppendId> = events.iter().map(|event| event.append_id).collect();
    assert_eq!((events.len(), appends.len()), (100, 1));
    let checkpoints = store.checkpoints(ledger).await.expect("checkpoints");
    assert_eq!(checkpoints.last().map(|checkpoint| checkpoint.seq), Some(100), "its end is proved");
    assert_sound(store, ledger).await;
}

/// An entry that could never be delivered is refused where it is written, and nothing of that commit is.
pub async fn an_entry_that_cannot_be_delivered_is_not_taken(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    let before = whole(store, key).await.len();
    let child = world.key();
    let made_of = |drafts: Vec<Draft>| {
        let events = drafts.iter().map(|draft| OutboxEvent::of(draft, String::new())).collect();
        let (session_id, actor) = (child.session, Actor::system());
        entry(
            &world,
            OutboxKind::Create { session_id, append_id: world.append(), dedupe: "x".to_owned(), actor, events },
        )
    };
    let observed = world.observed(world.intent().0, "smuggled");
    let foreign = OutboxEntry { tenant: TenantId::from_u128(77), ..delivery(&world, key.session, &[("a", "x")]) };
    let typed = |draft: &Draft| OutboxEvent::of(draft, "k".to_owned());
    let deliver = |draft: &Draft| {
        let (session_id, actor, events) = (key.session, Actor::system(), vec![typed(draft)]);
        entry(&world, OutboxKind::Deliver { session_id, append_id: world.append(), actor, events })
    };
    for wrong in [
        made_of(vec![said(&world, "no creation")]),
        made_of(vec![]),
        made_of(vec![world.created(child), observed.clone()]),
        deliver(&observed),
        deliver(&world.created(key)),
        foreign,
    ] {
        let mut commit = world.input(key, "smuggles");
        commit.outbox = vec![wrong];
        let answer = store.commit(commit).await;
        assert!(matches!(answer, Err(StoreError::NotTheirs { .. } | StoreError::NoSession(_))), "{answer:?}");
    }
    assert_eq!(whole(store, key).await.len(), before);
    assert_eq!(store.head(child).await, Ok(None));
    // A delivery, whoever makes it, cannot begin a second session in a log that has one.
    let second = Commit::outbox(key, "again".to_owned(), world.append(), vec![world.created(key)]);
    assert_eq!(store.commit(second).await, Err(StoreError::SessionExists(key.session)));
}

pub async fn a_webhook_is_claimed_by_one_sender_when_it_is_due(make: Make) {
    let (world, backend) = setup(make);
    let store = &*backend.store;
    let key = world.session(store).await.expect("a session");
    deliver_outbox(store).await.expect("the ledger is told");
    let hook = |after: u64, name: &str| {
        let (endpoint, due_at) = (name.to_owned(), world.now().plus(Duration::from_secs(after)));
        entry(&world, OutboxKind::Webhook { endpoint, due_at, body: json!({"event": EventId::from_u128(1)}) })
    };
    let (soon, later) = (hook(0, "soon"), hook(60, "later"));
    commit_with(&world, store, key, vec![later.clone(), soon.clone()]).await;
    assert_eq!(deliver_outbox(store).await, Ok(0), "no commit sends it");
    assert_eq!(store.outbox(9).await, Ok(Vec::new()));
    let claimed = |entry: &OutboxEntry, attempt| ClaimedEntry { entry: entry.clone(), attempt };

    assert_eq!(store.claim_outbox(9, TTL).await, Ok(vec![claimed(&soon, 1)]), "the other is not due");
    assert_eq!(store.claim_outbox(9, TTL).await, Ok(Vec::new()), "it is somebody's");
    let again_at = world.now().plus(Duration::from_secs(10));
    assert_eq!(store.outbox_failed(soon.id, 1, again_at).await, Ok(true));
    assert_eq!(store.claim_outbox(9, TTL).await, Ok(Vec::new()), "not before its time");
    world.clock.advance(Duration::from_secs(10));
    assert_eq!(store.claim_outbox(9, TTL).await, Ok(vec![claimed(&soon, 2)]));
    // Its sender dies: when the claim is over, another one takes it, and what the first says counts no longer.
    world.clock.advance(Duration::from_secs(60));
    assert_eq!(store.claim_outbox(1, TTL).await, Ok(vec![claimed(&soon, 3)]), "the longest due first");
    assert_eq!(store.outbox_failed(soon.id, 2, world.now()).await, Ok(false));
    assert_eq!(store.claim_outbox(9, TTL).await, Ok(vec![claimed(&later, 1)]));
    store.outbox_done(vec![soon.id, later.id]).await.expect("sent");
    assert_eq!(store.outbox_failed(soon.id, 3, world.now()).await, Ok(false), "it is done");
    world.clock.advance(Duration::from_secs(600));
    assert_eq!(store.claim_outbox(9, TTL).await, Ok(Vec::new()));
}
