//! What decides what a call does besides its input: an approval is bound to it (tool-contract 13.7), and a call that
//! waited for its turn is looked at again.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{
    self, World, acting, acts, follow_tokio, fresh_message, observed, parked, proposal, touches, turn_of,
};
use portcullis_base::Code;
use portcullis_contract::{
    Bound, DefaultPolicy, Prepared, Resolved, Resource, Semantics, SurroundingFacts, Surroundings, Tool,
};
use portcullis_event::AskState;
use portcullis_event::facts::Reply;
use portcullis_pipeline::Append;
use tokio::sync::Notify;

const SECRET: &str = "a-value-that-nobody-may-guess";

/// A tool that runs in a folder, with a variable.
fn placed(effects: &common::Effects, folder: &Arc<Mutex<(&'static str, &'static str)>>) -> Tool {
    let (effects, folder) = (effects.clone(), Arc::clone(folder));
    let run = move |input: common::Note, _| {
        effects.add(input.text.clone());
        async move { Ok("done".to_owned()) }
    };
    let around = move || {
        let folder = Arc::clone(&folder);
        Surroundings::by(move || {
            let (place, identity) = *folder.lock().expect("nobody panics");
            let bound = vec![Bound::new("the folder", place, identity), Bound::new("the variable X", "", SECRET)];
            let facts = vec![("programs".to_owned(), "git = /usr/bin/git".to_owned())];
            std::future::ready(SurroundingFacts { bound, facts, ..SurroundingFacts::default() })
        })
    };
    acting(Semantics { default_policy: DefaultPolicy::Ask, ..acts() }, run)
        .precheck(move |_, _, _| std::future::ready(Ok(Prepared { around: Some(around()), ..Prepared::default() })))
        .build()
        .expect("a sound tool")
}

#[tokio::test]
async fn l36_an_approval_is_void_where_the_surroundings_are_others_and_says_which() {
    for (then, words) in [
        (("/a", "1"), None),
        (("/a", "2"), Some("the folder /a is another one than was shown")),
        (("/b", "1"), Some("the folder is /b now, and /a was shown")),
    ] {
        let world = World::new().await;
        let folder = Arc::new(Mutex::new(("/a", "1")));
        let process = world.process([("t", placed(&world.effects, &folder))]);
        let ask = parked(&process.call("t", "a").await);
        let row = world.store.ask(world.key().tenant, ask).await.expect("read").expect("there");
        assert_eq!(row.facts["runs_with"]["programs"], "git = /usr/bin/git");
        world.reply(ask, Reply::AllowOnce).await.expect("answered");
        *folder.lock().expect("nobody panics") = then;
        let session = process.open().await;
        let attended = session.attend().await.expect("attended");
        let seen = observed(&attended[0].disposition);
        let row = world.store.ask(world.key().tenant, ask).await.expect("read").expect("there");
        match words {
            None => assert_eq!((seen.ok, world.effects.count()), (true, 1), "{}", seen.summary),
            Some(words) => {
                assert_eq!(seen.code.known(), Some(Code::StaleFileBaseline));
                assert!(seen.summary.contains(words), "{}", seen.summary);
                assert_eq!((world.effects.count(), row.state), (0, AskState::Voided));
            }
        }
        let log = format!("{:?}", world.events().await);
        assert!(log.contains("the variable X") && !log.contains(SECRET), "the log keeps no value");
    }
}

/// Holds its session's turn until it is let go.
fn blocking(started: &Arc<Notify>, go: &Arc<Notify>) -> Tool {
    let (started, go) = (Arc::clone(started), Arc::clone(go));
    let run = move |_: common::Note, _| {
        let (started, go) = (Arc::clone(&started), Arc::clone(&go));
        async move {
            started.notify_one();
            go.notified().await;
            Ok("done".to_owned())
        }
    };
    acting(acts(), run).build().expect("a sound tool")
}

/// What it touches is not told by its input alone.
fn meaning(effects: &common::Effects, other: &Arc<AtomicBool>, decided: &Arc<AtomicUsize>) -> Tool {
    let (effects, other, decided) = (effects.clone(), Arc::clone(other), Arc::clone(decided));
    let run = move |input: common::Note, _| {
        effects.add(input.text.clone());
        async move { Ok("done".to_owned()) }
    };
    acting(Semantics { default_policy: DefaultPolicy::Allow, ..acts() }, run)
        .resolve(move |_, _| {
            decided.fetch_add(1, Ordering::SeqCst);
            let name = if other.load(Ordering::SeqCst) { "/other" } else { "/one" };
            Ok(Resolved { resources: vec![Resource::path(name, name)], ..Resolved::default() })
        })
        .plan_access(|_, resolved| vec![touches(&resolved.resources[0].canonical)])
        .build()
        .expect("a sound tool")
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waited_while_its_words_came_to_mean_something_else_does_not_run() {
    for changes in [false, true] {
        let world = World::new().await;
        let (started, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (other, decided) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let tools = [("blocks", blocking(&started, &go)), ("means", meaning(&world.effects, &other, &decided))];
        let process = world.process(tools);
        let _clock = follow_tokio(&world.clock);
        let session = process.open().await;
        let turn = turn_of(&session).await;
        let admit = |tool: &str| {
            session.admit(Append::new(), &turn, proposal("c", fresh_message(), tool, r#"{"text":"b"}"#)).spawned()
        };
        let blocks = admit("blocks");
        started.notified().await;
        let means = admit("means");
        // Time is paused: it passes only when every task waits, and this one then waits for its turn.
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(decided.load(Ordering::SeqCst), 1, "it was decided on");
        other.store(changes, Ordering::SeqCst);
        go.notify_one();
        let (facts, blocked) = blocks.settled().await.expect("no halt");
        session.commit(facts).await.expect("committed");
        assert!(observed(&blocked).ok, "{}", observed(&blocked).summary);
        let (facts, waited) = means.settled().await.expect("no halt");
        session.commit(facts).await.expect("committed");
        let seen = observed(&waited);
        assert_eq!(seen.ok, !changes, "{}", seen.summary);
        assert_eq!(world.effects.count(), usize::from(!changes));
        assert_eq!(seen.summary.contains("changed while it waited"), changes, "{}", seen.summary);
    }
}
