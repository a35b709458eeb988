//! Asks: durable, answered once, run once, by whoever holds the lease then.

use crate::common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{World, change, look, observed, parked};
use portcullis_base::{Clock as _, Code, ManualClock, Phase, SideEffectState, limits};
use portcullis_contract::{DefaultPolicy, Diff, Prepared, Semantics, Tool};
use portcullis_event::AskState;
use portcullis_event::facts::{Reply, Verdict};
use portcullis_pipeline::Disposition;
use portcullis_store::{AskFilter, Claim, StoreError};
use portcullis_store_testkit::FaultyStore;

#[tokio::test]
async fn l36_an_answered_ask_runs_the_stored_input_once_in_another_process() {
    let world = World::new().await;
    let asking = world.process([("change", change(&world.effects, DefaultPolicy::Ask))]);
    let ask = parked(&asking.call("change", "a.txt").await);
    assert_eq!(world.effects.count(), 0, "nothing happens before the answer");
    drop(asking);

    world.reply(ask, Reply::AllowOnce).await.expect("the first answer counts");
    let later = world.process([("change", change(&world.effects, DefaultPolicy::Ask))]);
    let session = later.open().await;
    let attended = session.attend().await.expect("attended");
    assert_eq!(attended.len(), 1);
    assert!(observed(&attended[0].disposition).ok);
    assert_eq!(world.effects.all(), ["a.txt"]);
    assert!(session.attend().await.expect("attended again").is_empty(), "an approval is single-use");
    assert_eq!(world.effects.count(), 1);
}

#[tokio::test]
async fn l35_a_second_reply_changes_nothing() {
    let world = World::new().await;
    let process = world.process([("change", change(&world.effects, DefaultPolicy::Ask))]);
    let ask = parked(&process.call("change", "a").await);
    let other = parked(&process.call("change", "b").await);
    world.reply(ask, Reply::AllowOnce).await.expect("answered");
    let again = world.reply(ask, Reply::Deny).await;
    assert_eq!(again, Err(StoreError::AskSettled { ask, state: AskState::Answered }));

    let session = process.open().await;
    session.attend().await.expect("attended");
    assert_eq!(world.effects.all(), ["a"]);
    let pending = world.store.asks(world.key().tenant, AskFilter { session: None, pending: true }).await.expect("asks");
    assert_eq!(pending.iter().map(|row| row.ask_id).collect::<Vec<_>>(), [other], "a reply settles only its own ask");
}

#[tokio::test]
async fn l26_a_denial_is_not_a_failure_and_feedback_arrives_verbatim() {
    let world = World::new().await;
    let process = world.process([("change", change(&world.effects, DefaultPolicy::Ask))]);
    let ask = parked(&process.call("change", "a").await);
    let words = "use \u{201c}b\u{201d} instead — not $HOME";
    world.reply_with(ask, Reply::DenyWithFeedback, Some(words.to_owned())).await.expect("answered");
    let session = process.open().await;
    let attended = session.attend().await.expect("attended");
    let seen = observed(&attended[0].disposition);
    assert_eq!((seen.phase.known(), seen.code.known()), (Some(Phase::Permission), Some(Code::UserDenied)));
    assert_eq!(seen.side_effects.state, SideEffectState::None);
    assert!(!seen.retryable);
    assert_eq!(seen.model_view()["permission"]["feedback"], words);
    assert_eq!(world.effects.count(), 0);
}

#[tokio::test]
async fn an_expired_ask_settles_as_expired_and_cannot_be_answered() {
    let world = World::new().await;
    let process = world.process([("change", change(&world.effects, DefaultPolicy::Ask))]);
    let ask = parked(&process.call("change", "a").await);
    world.clock.advance(portcullis_base::limits::ASK_EXPIRY);
    assert_eq!(world.reply(ask, Reply::AllowOnce).await, Err(StoreError::AskExpired(ask)));
    let session = process.open().await;
    let attended = session.attend().await.expect("attended");
    let seen = observed(&attended[0].disposition);
    assert_eq!((seen.phase.known(), seen.code.known()), (Some(Phase::Permission), Some(Code::ApprovalExpired)));
    assert!(seen.retryable);
    let row = world.store.ask(world.key().tenant, ask).await.expect("read").expect("there");
    assert_eq!(row.state, AskState::Expired);
}

#[tokio::test]
async fn s11_a_sweep_and_a_worker_settle_an_expired_ask_that_nobody_looked_at() {
    let world = World::new().await;
    let process = world.process([("change", change(&world.effects, DefaultPolicy::Ask))]);
    parked(&process.call("change", "a").await);
    let tenant = world.key().tenant;
    let claim = async || world.store.claim(tenant, process.owner.clone(), 9, limits::LEASE_TTL).await.expect("claims");
    assert_eq!(world.store.sweep().await.expect("swept").expired, 0);
    assert_eq!(claim().await, [], "a blocked session is nobody's work");
    world.clock.advance(limits::ASK_EXPIRY);
    assert_eq!(world.store.sweep().await.expect("swept").expired, 1);
    let claims = claim().await;
    let [Claim::Granted(lease)] = claims.as_slice() else { panic!("one is due: {claims:?}") };
    world.store.release(world.key(), lease.fence, None).await.expect("released");
    let session = process.open().await;
    let attended = session.attend().await.expect("attended");
    assert_eq!(observed(&attended[0].disposition).code.known(), Some(Code::ApprovalExpired));
    session.release().await.expect("released");
    assert_eq!(world.store.sweep().await.expect("swept").expired, 0);
    assert_eq!(claim().await, [], "and nothing is left");
    assert_eq!(world.effects.count(), 0);
}

/// The store's clock is a little behind this process's, and says whether an answer came in time (S10).
#[tokio::test]
async fn s10_an_answer_in_the_moment_of_its_expiry_counts() {
    for (reply, effects, code) in [(Reply::AllowOnce, 1, Code::Ok), (Reply::Deny, 0, Code::UserDenied)] {
        let mut world = World::new().await;
        let asking = world.process([("change", change(&world.effects, DefaultPolicy::Ask))]);
        let ask = parked(&asking.call("change", "a").await);
        world.clock = Arc::new(ManualClock::new(world.clock.now().plus(limits::ASK_EXPIRY)));
        let world = Arc::new(world);
        let store = Arc::new(FaultyStore::new(Arc::clone(&world.store), None));
        let ahead =
            world.process_over(Arc::clone(&store) as _, [("change", change(&world.effects, DefaultPolicy::Ask))]);
        let session = ahead.open().await;
        let answering = Arc::clone(&world);
        store.before_next(move || async move { answering.reply(ask, reply).await.expect("in time for the store") });
        let attended = session.attend().await.expect("no halt");
        assert_eq!(observed(&attended[0].disposition).code.known(), Some(code));
        assert_eq!(world.effects.count(), effects);
        let row = world.store.ask(world.key().tenant, ask).await.expect("read").expect("there");
        assert_eq!(row.state, AskState::Answered);
        session.release().await.expect("the session goes on");
    }
}

#[tokio::test]
async fn l38_headless_asks_settle_at_once() {
    let mut world = World::new().await;
    world.approvals = portcullis_pipeline::Approvals::Unavailable;
    let process = world.process([("change", change(&world.effects, DefaultPolicy::Ask))]);
    let seen = process.call("change", "a").await;
    let seen = observed(&seen);
    assert_eq!((seen.phase.known(), seen.code.known()), (Some(Phase::Permission), Some(Code::ApprovalUnavailable)));
    assert_eq!(seen.permission.as_ref().map(|p| p.decision), Some(Verdict::Ask));
}

#[tokio::test]
async fn changed_rules_void_an_approval() {
    let mut world = World::new().await;
    let process = world.process([("change", change(&world.effects, DefaultPolicy::Ask))]);
    let ask = parked(&process.call("change", "a").await);
    world.reply(ask, Reply::AllowOnce).await.expect("answered");
    world.rules = "[[rules]]\naction = \"other\"\neffect = \"deny\"\n".to_owned();
    process.gate.set_policy(world.policy());
    let session = process.open().await;
    let attended = session.attend().await.expect("attended");
    assert_eq!(observed(&attended[0].disposition).code.known(), Some(Code::PolicyDenied));
    assert_eq!(world.effects.count(), 0);
    let row = world.store.ask(world.key().tenant, ask).await.expect("read").expect("there");
    assert_eq!(row.state, AskState::Voided);
}

#[tokio::test]
async fn a_deny_rule_added_after_the_ask_beats_the_approval() {
    let mut world = World::new().await;
    let process = world.process([("change", change(&world.effects, DefaultPolicy::Ask))]);
    let ask = parked(&process.call("change", "a").await);
    world.reply(ask, Reply::AllowOnce).await.expect("answered");
    world.rules = "[[rules]]\nid = \"no\"\naction = \"change\"\neffect = \"deny\"\n".to_owned();
    process.gate.set_policy(world.policy());
    let session = process.open().await;
    let attended = session.attend().await.expect("attended");
    let seen = observed(&attended[0].disposition);
    assert_eq!(seen.code.known(), Some(Code::PolicyDenied));
    assert_eq!(seen.permission.as_ref().map(|p| p.policy_ids.clone()), Some(vec!["no".to_owned()]));
    assert_eq!(world.effects.count(), 0);
}

#[tokio::test]
async fn l15_another_definition_voids_an_approval() {
    let world = World::new().await;
    let process = world.process([("change", change(&world.effects, DefaultPolicy::Ask))]);
    let ask = parked(&process.call("change", "a").await);
    drop(process);
    world.reply(ask, Reply::AllowOnce).await.expect("answered");
    // The same name now asks by another default: another definition version.
    let changed = world.process([("change", change(&world.effects, DefaultPolicy::AskPinned))]);
    let session = changed.open().await;
    let attended = session.attend().await.expect("attended");
    let seen = observed(&attended[0].disposition);
    assert_eq!((seen.phase.known(), seen.code.known()), (Some(Phase::Lookup), Some(Code::StaleTool)));
    assert_eq!(world.effects.count(), 0);
}

#[tokio::test]
async fn a_parked_call_does_not_hold_back_calls_of_other_turns() {
    let world = World::new().await;
    let process =
        world.process([("change", change(&world.effects, DefaultPolicy::Ask)), ("look", look(&world.effects))]);
    parked(&process.call("change", "a").await);
    assert!(observed(&process.call("look", "b").await).ok);
}

#[tokio::test]
async fn l17_l20_a_parked_and_resumed_intent_leaves_the_promised_facts_in_order() {
    let world = World::new().await;
    let process = world.process([("change", change(&world.effects, DefaultPolicy::Ask))]);
    let ask = parked(&process.call("change", "a").await);
    world.reply(ask, Reply::AllowOnce).await.expect("answered");
    let session = process.open().await;
    let attended = session.attend().await.expect("attended");
    assert!(matches!(attended[0].disposition, Disposition::Settled(_)));
    assert_eq!(
        world.types().await,
        [
            "tool.menu",
            "tool.intent",
            "tool.lookup",
            "tool.validation",
            "tool.permission",
            "agent.tool_use",
            "tool.permission.asked",
            "tool.permission.replied",
            "tool.validation",
            "tool.scheduled",
            "tool.invocation.started",
            "tool.invocation.completed",
            "tool.observation",
        ]
    );
}

/// A tool that counts its effects, and whose runtime check finds out what `found` says.
fn prepared(
    effects: &common::Effects,
    policy: DefaultPolicy,
    found: impl Fn() -> Prepared + Send + Sync + 'static,
) -> Tool {
    let effects = effects.clone();
    let run = move |input: common::Note, _| {
        effects.add(input.text.clone());
        async move { Ok("done".to_owned()) }
    };
    common::acting(Semantics { default_policy: policy, ..common::acts() }, run)
        .precheck(move |_, _, _| std::future::ready(Ok(found())))
        .build()
        .expect("a sound tool")
}

/// A tool whose diff can change.
fn picky(effects: &common::Effects, changed: &Arc<AtomicBool>) -> Tool {
    let changed = Arc::clone(changed);
    prepared(effects, DefaultPolicy::Ask, move || {
        let diff = if changed.load(Ordering::SeqCst) { "+another" } else { "+one" };
        Prepared {
            diff: Some(diff.to_owned().into()),
            facts: vec![("risk".to_owned(), "none at all".to_owned())],
            ..Prepared::default()
        }
    })
}

/// A tool whose diff cannot be made.
fn blind(effects: &common::Effects, policy: DefaultPolicy) -> Tool {
    prepared(effects, policy, || Prepared { diff: Some(Diff::later(|| panic!("no diff"))), ..Prepared::default() })
}

#[tokio::test]
async fn l36_an_approval_counts_only_for_what_was_shown() {
    let world = World::new().await;
    let changed = Arc::default();
    let process = world.process([("t", picky(&world.effects, &changed))]);
    let ask = parked(&process.call("t", "a").await);
    world.reply(ask, Reply::AllowOnce).await.expect("answered");
    changed.store(true, Ordering::SeqCst);
    let session = process.open().await;
    let attended = session.attend().await.expect("attended");
    let seen = observed(&attended[0].disposition);
    assert_eq!(seen.code.known(), Some(Code::StaleFileBaseline), "{}", seen.summary);
    assert_eq!(world.effects.count(), 0);
    let row = world.store.ask(world.key().tenant, ask).await.expect("read").expect("there");
    assert_eq!(row.state, AskState::Voided);
}

#[tokio::test]
async fn l19_nobody_is_asked_about_a_change_that_cannot_be_shown_and_nobody_else_needs_it() {
    let world = World::new().await;
    let tools =
        [("asks", blind(&world.effects, DefaultPolicy::Ask)), ("runs", blind(&world.effects, DefaultPolicy::Allow))];
    let process = world.process(tools);
    let refused = process.call("asks", "a").await;
    let seen = observed(&refused);
    assert_eq!((seen.code.known(), seen.synthetic), (Some(Code::InternalError), true), "{}", seen.summary);
    assert_eq!(world.effects.count(), 0);
    let ran = process.call("runs", "b").await;
    assert!(observed(&ran).ok, "{}", observed(&ran).summary);
    assert_eq!(world.effects.all(), ["b"]);
}

#[tokio::test]
async fn l26_a_no_is_a_no_whatever_has_become_of_the_call() {
    let world = World::new().await;
    let process = world.process([("change", change(&world.effects, DefaultPolicy::Ask))]);
    let ask = parked(&process.call("change", "a").await);
    drop(process);
    world.reply_with(ask, Reply::DenyWithFeedback, Some("never".to_owned())).await.expect("answered");
    // The tool is not even there any more.
    let bare = world.process([("look", look(&world.effects))]);
    let session = bare.open().await;
    let attended = session.attend().await.expect("attended");
    let seen = observed(&attended[0].disposition);
    assert_eq!((seen.phase.known(), seen.code.known()), (Some(Phase::Permission), Some(Code::UserDenied)));
    assert_eq!(seen.model_view()["permission"]["feedback"], "never");
}

#[tokio::test]
async fn what_a_tool_says_never_takes_the_place_of_a_fact() {
    let world = World::new().await;
    let process = world.process([("t", picky(&world.effects, &Arc::default()))]);
    let ask = parked(&process.call("t", "a").await);
    let row = world.store.ask(world.key().tenant, ask).await.expect("read").expect("there");
    assert_eq!(row.facts["risk"], serde_json::json!(["write"]));
    assert_eq!(row.facts["tool_says"]["risk"], "none at all");
}

#[tokio::test]
async fn s07_two_attendants_run_an_approved_call_once() {
    let world = World::new().await;
    let process = world.process([("change", change(&world.effects, DefaultPolicy::Ask))]);
    let ask = parked(&process.call("change", "a").await);
    world.reply(ask, Reply::AllowOnce).await.expect("answered");
    let session = process.open().await;
    let (one, two, three) = tokio::join!(session.resume(ask), session.attend(), session.resume(ask));
    let told = [one.is_ok(), two.is_ok(), three.is_ok()];
    assert!(told.contains(&true), "{told:?}");
    assert_eq!(world.effects.all(), ["a"], "once, whoever asks for it");
    assert_eq!(world.observations().await.len(), 1);
}

#[tokio::test]
async fn s10_a_reply_in_another_session_settles_nothing() {
    let world = World::new().await;
    let process = world.process([("change", change(&world.effects, DefaultPolicy::Ask))]);
    let ask = parked(&process.call("change", "a").await);
    let other = portcullis_base::SessionId::from_u128(0x77);
    world.create(other).await;
    let replied = portcullis_event::facts::AskReplied {
        ask_id: ask,
        reply: Reply::AllowOnce,
        approver: "tester".to_owned(),
        channel: "test".to_owned(),
        terminal: None,
        parent_process: None,
        feedback: None,
        grant_id: None,
    };
    assert_eq!(world.client(other, &replied).await, Err(StoreError::NoAsk(ask)));
    world.reply(ask, Reply::AllowOnce).await.expect("its own session may");
}

#[tokio::test]
async fn l36_an_approval_does_not_carry_over_to_another_stored_input() {
    use portcullis_secret::{Aad, Sealer, SealingKey};

    let mut world = World::new().await;
    world.secrets = vec!["hunter2-very-secret".to_owned()];
    let effects = world.effects.clone();
    let run = move |input: common::Note, _| {
        let effects = effects.clone();
        async move {
            effects.add(input.text);
            Ok("done".to_owned())
        }
    };
    // It touches the same whatever it is given, so that only the input tells two calls apart.
    let tool = common::acting(Semantics { default_policy: DefaultPolicy::Ask, ..Semantics::mutating() }, run)
        .plan_access(|_, _| vec![common::touches("same")])
        .build()
        .expect("a sound tool");
    let process = world.process([("acts", tool)]);
    // Masked in its event, so its input comes from the sealed copy.
    let ask = parked(&process.call("acts", "hunter2-very-secret").await);
    world.reply(ask, Reply::AllowOnce).await.expect("answered");

    let row = world.store.ask(world.key().tenant, ask).await.expect("read").expect("there");
    let name = format!("intent-input:{}", row.intent_id);
    let aad = Aad { tenant: world.key().tenant, name: &name, version: 1 };
    let sealer = Sealer::new(&SealingKey::from_bytes([9; 32]));
    let other = sealer.seal(aad, br#"{"text":"another"}"#, &*world.ids).expect("sealed");
    let session = process.open().await;
    let fence = world.store.head(world.key()).await.expect("head").expect("there").fence;
    let append = portcullis_base::AppendId::make(&*world.ids, portcullis_base::Clock::now(&*world.clock));
    let mut swap = portcullis_store::Commit::worker(world.key(), process.owner.worker, fence, append, Vec::new());
    swap.sealed = vec![(row.intent_id, other.into_bytes())];
    world.store.commit(swap).await.expect("swapped");

    let attended = session.attend().await.expect("attended");
    let seen = observed(&attended[0].disposition);
    assert_eq!(seen.code.known(), Some(Code::PolicyDenied), "{seen:?}");
    assert_eq!(world.effects.count(), 0, "what runs is what was approved");
}
