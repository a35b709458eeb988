//! Registration, menus and staleness: which tool a name means, and that nothing else ever runs.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::OnceLock;

use crate::common::{
    Effects, LOCATION, Note, Process, World, call_in, call_on, change, fresh_message, look, name, observed, proposal,
    row, runtime, turn_of,
};
use portcullis_base::{Code, Digest, LocationId, Phase, Reason, Recovery, RegistrationId, SessionId, SideEffectState};
use portcullis_contract::{DefaultPolicy, ExecutorId, ExecutorKind, Semantics, Tool, ToolName, ToolOrigin};
use portcullis_event::Body;
use portcullis_pipeline::{Placement, RegistrationError, RegistrationGuard, Session};
use proptest::prelude::*;

const ELSEWHERE: LocationId = LocationId::from_u128(8);
const STRANGER: SessionId = SessionId::from_u128(99);
const INPUT: &str = r#"{"text":"x"}"#;

/// A tool that can be told from the others by its executor id, and says so when it runs.
fn numbered(effects: &Effects, number: usize) -> Tool {
    let effects = effects.clone();
    Tool::builder::<Note, String>("One of many.")
        .semantics(Semantics::read_only())
        .executor(ExecutorId { kind: ExecutorKind::Embedded, id: number.to_string(), impl_version: "1".to_owned() })
        .execute(move |_, _| {
            effects.add(number.to_string());
            async move { Ok(number.to_string()) }
        })
        .build()
        .expect("a sound tool")
}

fn one(text: &str, tool: Tool) -> BTreeMap<ToolName, Tool> {
    BTreeMap::from([(name(text), tool)])
}

fn put(process: &Process, placement: Placement, text: &str, tool: Tool) -> RegistrationGuard {
    process.registry.registrar(placement, ToolOrigin::Builtin).register(one(text, tool)).expect("registered")
}

/// Everything a session can find out about its tools: name → executor and registration, and what is hidden.
type Lookups = (BTreeMap<String, (String, RegistrationId)>, BTreeMap<String, Option<Reason>>);

fn lookups(process: &Process, session: SessionId) -> Lookups {
    let offer = process.gate.offer(session);
    let entries = offer
        .entries()
        .map(|(n, e)| (n.to_string(), (e.executor_id.id.clone(), e.registration_id.expect("a live registration"))))
        .collect();
    let hidden = offer.hidden().iter().map(|h| (h.name.clone(), h.reason.known())).collect();
    (entries, hidden)
}

/// Name → executor only.
fn winners(process: &Process, session: SessionId) -> BTreeMap<String, String> {
    lookups(process, session).0.into_iter().map(|(n, (executor, _))| (n, executor)).collect()
}

// --- L9 -----------------------------------------------------------------------------------------

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn l09_a_name_can_be_registered_exactly_if_it_fits_the_grammar(
        text in prop_oneof!["[A-Za-z][A-Za-z0-9_-]{0,70}", "[A-Za-z0-9_. é\n-]{0,6}", ".{0,4}"]
    ) {
        let letters: Vec<char> = text.chars().collect();
        let fits = !letters.is_empty()
            && letters.len() <= 64
            && letters[0].is_ascii_alphabetic()
            && letters.iter().all(|c| c.is_ascii_alphanumeric() || *c == '_' || *c == '-');
        prop_assert_eq!(text.parse::<ToolName>().is_ok(), fits);
        let by_serde = serde_json::from_value::<ToolName>(serde_json::Value::String(text));
        prop_assert_eq!(by_serde.is_ok(), fits, "no way round the check");
    }
}

// --- L10, L11, L12: against a naive list ------------------------------------------------------------

const NAMES: [&str; 5] = ["a", "b", "c", "A", "B"];

#[derive(Debug, Clone)]
enum Op {
    Register { place: usize, names: BTreeSet<usize> },
    Replace { which: prop::sample::Index, names: BTreeSet<usize> },
    Close(prop::sample::Index),
    ClosePlace(usize),
}

fn op() -> impl Strategy<Value = Op> {
    let names = prop::collection::btree_set(0..NAMES.len(), 0..3);
    prop_oneof![
        8 => (0..5usize, names.clone()).prop_map(|(place, names)| Op::Register { place, names }),
        4 => (any::<prop::sample::Index>(), names).prop_map(|(which, names)| Op::Replace { which, names }),
        5 => any::<prop::sample::Index>().prop_map(Op::Close),
        1 => (2..5usize).prop_map(Op::ClosePlace),
    ]
}

struct Listed {
    id: usize,
    place: usize,
    names: BTreeSet<usize>,
}

/// The reference: a list in the order of registration, read from the end.
#[derive(Default)]
struct Model {
    live: Vec<Listed>,
    closed: BTreeSet<usize>,
}

impl Model {
    /// Who has the name, and how strong its place is.
    fn effective(&self, name: usize, places_by_strength: [usize; 3]) -> Option<(usize, usize)> {
        places_by_strength.iter().enumerate().find_map(|(weakness, place)| {
            let mut newest_first = self.live.iter().rev();
            let winner = newest_first.find(|c| c.place == *place && c.names.contains(&name))?;
            Some((winner.id, 2 - weakness))
        })
    }

    fn admits(&self, place: usize, instead_of: Option<usize>, names: &BTreeSet<usize>) -> bool {
        let stays = self.live.iter().filter(|c| c.place == place && Some(c.id) != instead_of);
        let all: Vec<usize> = stays.flat_map(|c| &c.names).chain(names).copied().collect();
        let conflict = names.iter().any(|n| all.iter().any(|o| o != n && NAMES[*o].eq_ignore_ascii_case(NAMES[*n])));
        !conflict && !self.closed.contains(&place)
    }

    fn register(&mut self, id: usize, place: usize, names: BTreeSet<usize>) -> bool {
        let admits = self.admits(place, None, &names);
        if admits {
            self.live.push(Listed { id, place, names });
        }
        admits
    }

    /// What `id` brought becomes what `new` brings, where it stands in the list.
    fn replace(&mut self, id: usize, new: usize, names: BTreeSet<usize>) -> bool {
        let Some(at) = self.live.iter().position(|c| c.id == id) else { return false };
        let place = self.live[at].place;
        let admits = self.admits(place, Some(id), &names);
        if admits {
            self.live[at] = Listed { id: new, place, names };
        }
        admits
    }

    fn offer(&self, places: [usize; 3]) -> (BTreeMap<String, String>, BTreeSet<String>) {
        let (mut seen, mut hidden) = (BTreeMap::new(), BTreeSet::new());
        for (n, text) in NAMES.iter().enumerate() {
            let Some((id, strength)) = self.effective(n, places) else { continue };
            let twins = NAMES.iter().enumerate().filter(|(o, other)| *o != n && other.eq_ignore_ascii_case(text));
            let stronger = twins.filter_map(|(o, _)| self.effective(o, places)).any(|(_, theirs)| theirs > strength);
            if stronger {
                hidden.insert((*text).to_owned());
            } else {
                seen.insert((*text).to_owned(), id.to_string());
            }
        }
        (seen, hidden)
    }
}

/// Built once: compiling schemas is what costs.
fn pool() -> &'static [Tool] {
    static POOL: OnceLock<Vec<Tool>> = OnceLock::new();
    POOL.get_or_init(|| (0..64).map(|n| numbered(&Effects::default(), n)).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn l10_effective_equals_a_reference_model(ops in prop::collection::vec(op(), 0..40)) {
        runtime().block_on(async {
            let world = World::new().await;
            let process = world.process([]);
            let places = [
                Placement::Process,
                Placement::Location(LOCATION),
                Placement::Session(world.session),
                Placement::Location(ELSEWHERE),
                Placement::Session(STRANGER),
            ];
            let mut model = Model::default();
            let mut guards: Vec<(usize, RegistrationGuard)> = Vec::new();
            let mut ids = HashSet::new();
            for (n, op) in ops.into_iter().enumerate() {
                let before = (lookups(&process, world.session), lookups(&process, STRANGER));
                match op {
                    Op::Register { place, names } => {
                        let tools = names.iter().map(|i| (name(NAMES[*i]), pool()[n].clone())).collect();
                        let registered = process.registry.registrar(places[place], ToolOrigin::Builtin).register(tools);
                        let expected = model.register(n, place, names);
                        prop_assert_eq!(registered.is_ok(), expected);
                        match registered {
                            Ok(guard) => guards.push((n, guard)),
                            Err(_) => {
                                let after = (lookups(&process, world.session), lookups(&process, STRANGER));
                                prop_assert_eq!(before, after, "L12: a refused registration changes nothing");
                            }
                        }
                    }
                    Op::Replace { which, names } => {
                        if !guards.is_empty() {
                            let at = which.index(guards.len());
                            let (id, guard) = &mut guards[at];
                            let tools = names.iter().map(|i| (name(NAMES[*i]), pool()[n].clone())).collect();
                            let replaced = guard.replace(tools);
                            prop_assert_eq!(replaced.is_ok(), model.replace(*id, n, names));
                            if replaced.is_ok() {
                                *id = n;
                            } else {
                                let after = (lookups(&process, world.session), lookups(&process, STRANGER));
                                prop_assert_eq!(before, after, "L18: a refused refresh changes nothing");
                            }
                        }
                    }
                    Op::Close(which) => {
                        if !guards.is_empty() {
                            let (id, guard) = guards.remove(which.index(guards.len()));
                            guard.close();
                            model.live.retain(|c| c.id != id);
                        }
                    }
                    Op::ClosePlace(place) => {
                        process.registry.close(places[place]);
                        model.live.retain(|c| c.place != place);
                        model.closed.insert(place);
                    }
                }
                for (session, own_place) in [(world.session, 2), (STRANGER, 4)] {
                    let (entries, hidden) = lookups(&process, session);
                    let seen: BTreeMap<String, String> =
                        entries.iter().map(|(n, (executor, _))| (n.clone(), executor.clone())).collect();
                    let hidden_names: BTreeSet<String> = hidden.keys().cloned().collect();
                    prop_assert_eq!((seen, hidden_names), model.offer([own_place, 1, 0]));
                    prop_assert!(hidden.values().all(|reason| *reason == Some(Reason::CaseConflict)));
                    for (n, (executor, id)) in entries {
                        ids.insert((n, executor, id));
                    }
                }
            }
            let distinct: HashSet<RegistrationId> = ids.iter().map(|(_, _, id)| *id).collect();
            prop_assert_eq!(distinct.len(), ids.len(), "every (contribution, name) has an id of its own");
            Ok(())
        })?;
    }

    #[test]
    fn l11_exact_removal(
        contributions in prop::collection::vec((0..3usize, prop::collection::btree_set(0..3usize, 1..3)), 1..8),
        order in Just((0..8usize).collect::<Vec<_>>()).prop_shuffle(),
        left in 0..3usize,
    ) {
        runtime().block_on(async {
            let world = World::new().await;
            let process = world.process([]);
            let places = [Placement::Process, Placement::Location(LOCATION), Placement::Session(world.session)];
            let mut guards: BTreeMap<usize, RegistrationGuard> = BTreeMap::new();
            for (n, (place, names)) in contributions.iter().enumerate() {
                let tools = names.iter().map(|i| (name(NAMES[*i]), pool()[n].clone())).collect();
                guards.insert(n, process.registry.registrar(places[*place], ToolOrigin::Builtin).register(tools).expect("registered"));
            }
            let closing: Vec<usize> = order.iter().copied().filter(|n| *n < contributions.len()).collect();
            let kept = left.min(closing.len());
            for n in &closing[..closing.len() - kept] {
                let before = lookups(&process, world.session).0;
                drop(guards.remove(n));
                let after = lookups(&process, world.session).0;
                for (text, (executor, id)) in &before {
                    if *executor != n.to_string() {
                        prop_assert_eq!(after.get(text), Some(&(executor.clone(), *id)), "only what it had won changes");
                    }
                }
                prop_assert!(after.values().all(|(executor, _)| *executor != n.to_string()), "it is gone");
            }
            // The end depends on what is left, not on the order: the same as if the rest had never been.
            let mut model = Model::default();
            for (n, (place, names)) in contributions.iter().enumerate().filter(|(n, _)| guards.contains_key(n)) {
                model.register(n, *place, names.clone());
            }
            prop_assert_eq!(winners(&process, world.session), model.offer([2, 1, 0]).0);
            Ok(())
        })?;
    }
}

#[tokio::test]
async fn l11_a_guard_outliving_its_closed_place_removes_nothing_more() {
    let world = World::new().await;
    let process = world.process([]);
    let keep = put(&process, Placement::Process, "a", pool()[1].clone());
    let guard = put(&process, Placement::Session(world.session), "a", pool()[2].clone());
    process.registry.close(Placement::Session(world.session));
    assert_eq!(winners(&process, world.session)["a"], "1");
    drop(guard);
    assert_eq!(winners(&process, world.session)["a"], "1", "closed once is closed");
    drop(keep);
    assert!(winners(&process, world.session).is_empty());
}

#[tokio::test]
async fn l12_atomicity() {
    let world = World::new().await;
    let process = world.process([]);
    let _kept = put(&process, Placement::Location(LOCATION), "Read", pool()[1].clone());
    let before = lookups(&process, world.session);

    let mixed = BTreeMap::from([(name("aaa"), pool()[2].clone()), (name("read"), pool()[2].clone())]);
    let refused = process.registry.registrar(Placement::Location(LOCATION), ToolOrigin::Builtin).register(mixed).err();
    assert_eq!(refused, Some(RegistrationError::CaseConflict { name: name("read"), existing: name("Read") }));
    assert_eq!(lookups(&process, world.session), before);

    let itself = BTreeMap::from([(name("x"), pool()[2].clone()), (name("X"), pool()[2].clone())]);
    let refused = process.registry.registrar(Placement::Process, ToolOrigin::Application).register(itself).err();
    assert!(matches!(refused, Some(RegistrationError::CaseConflict { .. })), "{refused:?}");
    assert_eq!(lookups(&process, world.session), before);

    process.registry.close(Placement::Session(world.session));
    let before = lookups(&process, world.session);
    let late = process
        .registry
        .registrar(Placement::Session(world.session), ToolOrigin::Builtin)
        .register(one("y", pool()[2].clone()));
    assert_eq!(late.err(), Some(RegistrationError::ScopeClosed("session")));
    assert_eq!(lookups(&process, world.session), before);

    let nothing = process
        .registry
        .registrar(Placement::Process, ToolOrigin::Application)
        .register(BTreeMap::new())
        .expect("no tools is fine");
    assert_eq!(lookups(&process, world.session), before);
    drop(nothing);
    assert_eq!(lookups(&process, world.session), before);
}

#[tokio::test]
async fn l18_a_refresh_replaces_all_or_nothing() {
    let world = World::new().await;
    let process = world.process([]);
    let location = Placement::Location(LOCATION);
    let both = BTreeMap::from([(name("a"), pool()[1].clone()), (name("b"), pool()[1].clone())]);
    let mut source = process.registry.registrar(location, ToolOrigin::Builtin).register(both).expect("registered");
    let _newer = put(&process, location, "C", pool()[2].clone());
    let before = lookups(&process, world.session);

    // A conflict with what another brought: neither the good half comes nor the old goes.
    let wrong = BTreeMap::from([(name("a"), pool()[3].clone()), (name("c"), pool()[3].clone())]);
    let refused = source.replace(wrong).err();
    assert_eq!(refused, Some(RegistrationError::CaseConflict { name: name("c"), existing: name("C") }));
    assert_eq!(lookups(&process, world.session), before);

    // Its own old names are in nobody's way, and what it no longer brings is gone.
    source.replace(one("A", pool()[4].clone())).expect("only a case of its own name has changed");
    let now = BTreeMap::from([("A", "4"), ("C", "2")].map(|(n, e)| (n.to_owned(), e.to_owned())));
    assert_eq!(winners(&process, world.session), now);
    // It stays behind who came after it.
    source.replace(one("C", pool()[5].clone())).expect("an overlay");
    assert_eq!(winners(&process, world.session), BTreeMap::from([("C".to_owned(), "2".to_owned())]));

    process.registry.close(location);
    assert_eq!(source.replace(one("z", pool()[6].clone())), Err(RegistrationError::ScopeClosed("location")));
    assert!(winners(&process, world.session).is_empty());
}

#[tokio::test]
async fn l15_stale_rejection_after_a_refresh() {
    let world = World::new().await;
    let process = world.process([]);
    let mut source = put(&process, Placement::Location(LOCATION), "t", numbered(&world.effects, 1));
    let by = || {
        source.replace(one("t", numbered(&world.effects, 2))).expect("replaced");
        vec![source]
    };
    let (_guards, now) = stale_after(&world, &process, by).await;
    assert_eq!(now.as_deref(), Some("2"));
}

#[tokio::test]
async fn l15_a_refresh_keeps_the_registrations_of_tools_that_did_not_change() {
    let world = World::new().await;
    let process = world.process([]);
    let tools = |b: usize| BTreeMap::from([(name("a"), pool()[1].clone()), (name("b"), pool()[b].clone())]);
    let registrar = process.registry.registrar(Placement::Location(LOCATION), ToolOrigin::Builtin);
    let mut source = registrar.register(tools(2)).expect("registered");
    let (before, _) = lookups(&process, world.session);
    source.replace(tools(3)).expect("replaced");
    let (after, _) = lookups(&process, world.session);
    assert_eq!(after["a"], before["a"]);
    assert_ne!(after["b"].1, before["b"].1);
}

#[tokio::test]
async fn l13_snapshot() {
    let mut world = World::new().await;
    world.rules = "[[rules]]\nid = \"no\"\naction = \"sneaky\"\neffect = \"deny\"\n".to_owned();
    let process = world.process([]);
    let tool = change(&world.effects, DefaultPolicy::Allow);
    let mut callers = one("change", tool.clone());
    let _guard = process
        .registry
        .registrar(Placement::Process, ToolOrigin::Application)
        .register(callers.clone())
        .expect("registered");
    let before = lookups(&process, world.session);

    callers.insert(name("more"), tool.clone());
    callers.insert(name("change"), numbered(&world.effects, 7));
    drop(callers);
    let decorated = tool.with_access_alias("sneaky");
    assert_eq!(lookups(&process, world.session), before);
    assert!(observed(&process.call("change", "a").await).ok, "the registered one still acts as `change`");

    let _other = put(&process, Placement::Process, "decorated", decorated);
    assert_eq!(observed(&process.call("decorated", "b").await).code.known(), Some(Code::PolicyDenied));
    assert!(observed(&process.call("change", "c").await).ok, "and decorating a copy changed nothing of it");
    assert_eq!(world.effects.all(), ["a", "c"]);
}

// --- L15, L16 -------------------------------------------------------------------------------------

/// What a call from an old menu comes to after `meanwhile`; then the same call from a new menu.
async fn stale_after(
    world: &World,
    process: &Process,
    meanwhile: impl FnOnce() -> Vec<RegistrationGuard>,
) -> (Vec<RegistrationGuard>, Option<String>) {
    let session = process.open().await;
    let turn = turn_of(&session).await;
    let guards = meanwhile();
    let seen = call_on(&session, &turn, proposal("c", fresh_message(), "t", INPUT)).await.expect("no halt");
    let expected = (Phase::Lookup, Code::StaleTool, SideEffectState::None, true, Recovery::ResubmitNextTurn);
    assert_eq!(row(observed(&seen)), expected);
    assert!(!observed(&seen).ok);
    assert_eq!(world.effects.count(), 0, "no executor of any registration ran");
    let (again, _) = call_in(&session, "t", INPUT).await.expect("no halt");
    session.release().await.expect("released");
    (guards, observed(&again).content.first().and_then(|part| part.text.clone()))
}

#[tokio::test]
async fn l15_stale_rejection_after_replacement() {
    let world = World::new().await;
    let process = world.process([("t", numbered(&world.effects, 1))]);
    let by = || vec![put(&process, Placement::Location(LOCATION), "t", numbered(&world.effects, 2))];
    let (_guards, now) = stale_after(&world, &process, by).await;
    assert_eq!(now.as_deref(), Some("2"));
}

#[tokio::test]
async fn l15_stale_rejection_after_registering_the_very_same_tool_again() {
    let world = World::new().await;
    let tool = numbered(&world.effects, 1);
    let process = world.process([("t", tool.clone())]);
    let by = || vec![put(&process, Placement::Location(LOCATION), "t", tool)];
    let (_guards, now) = stale_after(&world, &process, by).await;
    assert_eq!(now.as_deref(), Some("1"));
}

#[tokio::test]
async fn l15_stale_rejection_after_removal() {
    let world = World::new().await;
    let process = world.process([]);
    let guard = put(&process, Placement::Session(world.session), "t", numbered(&world.effects, 1));
    let session = process.open().await;
    let turn = turn_of(&session).await;
    drop(guard);
    let seen = call_on(&session, &turn, proposal("c", fresh_message(), "t", INPUT)).await.expect("no halt");
    assert_eq!(observed(&seen).code.known(), Some(Code::StaleTool));
    let (next, _) = call_in(&session, "t", INPUT).await.expect("no halt");
    assert_eq!(observed(&next).code.known(), Some(Code::UnknownTool), "the next menu no longer has it");
    assert_eq!(world.effects.count(), 0);
}

#[tokio::test]
async fn l15_stale_rejection_after_a_shadow_from_a_higher_placement() {
    let world = World::new().await;
    let process = world.process([("t", numbered(&world.effects, 1))]);
    let by = || vec![put(&process, Placement::Session(world.session), "t", numbered(&world.effects, 2))];
    let (_guards, now) = stale_after(&world, &process, by).await;
    assert_eq!(now.as_deref(), Some("2"));
}

#[tokio::test]
async fn l15_stale_rejection_after_a_reveal() {
    let world = World::new().await;
    let process = world.process([("t", numbered(&world.effects, 1))]);
    let overlay = put(&process, Placement::Session(world.session), "t", numbered(&world.effects, 2));
    let by = || {
        drop(overlay);
        Vec::new()
    };
    let (_guards, now) = stale_after(&world, &process, by).await;
    assert_eq!(now.as_deref(), Some("1"));
}

#[tokio::test]
async fn l15_a_weaker_or_foreign_registration_makes_nothing_stale() {
    let world = World::new().await;
    let process = world.process([("t", numbered(&world.effects, 1))]);
    let session = process.open().await;
    let turn = turn_of(&session).await;
    let _weaker = put(&process, Placement::Process, "t", numbered(&world.effects, 2));
    let _foreign = put(&process, Placement::Session(STRANGER), "t", numbered(&world.effects, 3));
    let _elsewhere = put(&process, Placement::Location(ELSEWHERE), "t", numbered(&world.effects, 4));
    let seen = call_on(&session, &turn, proposal("c", fresh_message(), "t", INPUT)).await.expect("no halt");
    assert!(observed(&seen).ok);
    assert_eq!(world.effects.all(), ["1"]);
}

#[tokio::test]
async fn l16_locality() {
    let world = World::new().await;
    let process = world.process([("t", numbered(&world.effects, 1)), ("u", numbered(&world.effects, 2))]);
    let session = process.open().await;
    let turn = turn_of(&session).await;
    let _new = put(&process, Placement::Session(world.session), "t", numbered(&world.effects, 3));
    let call = |id: &'static str, tool: &'static str| call_on_own(&session, &turn, id, tool);
    assert_eq!(call("1", "t").await, Some(Code::StaleTool));
    assert_eq!(call("2", "u").await, Some(Code::Ok));
    assert_eq!(call("3", "t").await, Some(Code::StaleTool));
    assert_eq!(world.effects.all(), ["2"]);
}

async fn call_on_own(
    session: &Session,
    turn: &std::sync::Arc<portcullis_pipeline::Turn>,
    id: &str,
    tool: &str,
) -> Option<Code> {
    let seen = call_on(session, turn, proposal(id, fresh_message(), tool, INPUT)).await.expect("no halt");
    observed(&seen).code.known()
}

// --- L17 and what a menu hides ----------------------------------------------------------------------

#[tokio::test]
async fn l17_menu_first() {
    let world = World::new().await;
    let process = world.process([("b", look(&world.effects)), ("a", look(&world.effects))]);
    process.call("a", "1").await;
    process.call("b", "2").await;
    let extra = put(&process, Placement::Process, "c", look(&world.effects));
    process.call("c", "3").await;
    drop(extra);
    process.call("a", "4").await;

    let mut frozen = BTreeMap::new();
    let mut hashes = Vec::new();
    for event in world.events().await {
        match event.body() {
            Body::MenuFrozen(menu) => {
                frozen.insert(menu.menu_id, event.seq);
                hashes.push(menu.hash);
            }
            Body::IntentProposed(intent) => {
                let menu = frozen.get(&intent.menu_id).copied().expect("its menu is in the log");
                assert!(menu < event.seq, "the menu was recorded before the intent");
            }
            _ => {}
        }
    }
    assert_eq!(hashes.len(), 4);
    assert_eq!(hashes[0], hashes[1], "nothing changed, so not a byte did");
    assert_ne!(hashes[1], hashes[2]);
    assert_eq!(hashes[0], hashes[3], "the same tools again are the same menu again");

    let body = world.store.blob(world.key().tenant, hashes[0]).await.expect("read").expect("the body is stored");
    assert_eq!(Digest::of(&body), hashes[0]);
    let lines: Vec<serde_json::Value> = serde_json::from_slice(&body).expect("json");
    let names: Vec<&str> = lines.iter().filter_map(|line| line["name"].as_str()).collect();
    assert_eq!(names, ["a", "b"], "by name");
    assert!(lines.iter().all(|line| line.get("registration_id").is_none()), "what dies with the process is not in it");
    let state = portcullis_event::State::fold(&world.events().await);
    assert_eq!(state.session.menus.len(), 2, "two contents, two bodies");
}

#[tokio::test]
async fn l17_a_tool_that_came_later_is_callable_only_from_the_next_menu_on() {
    let world = World::new().await;
    let process = world.process([]);
    let session = process.open().await;
    let turn = turn_of(&session).await;
    let _late = put(&process, Placement::Process, "late", look(&world.effects));
    let seen = call_on(&session, &turn, proposal("c", fresh_message(), "late", INPUT)).await.expect("no halt");
    let expected = (Phase::Lookup, Code::ToolNotVisible, SideEffectState::None, true, Recovery::ChooseOtherTool);
    assert_eq!(row(observed(&seen)), expected);
    let (next, _) = call_in(&session, "late", INPUT).await.expect("no halt");
    assert!(observed(&next).ok);
}

#[tokio::test]
async fn l17_an_unknown_name_is_not_an_invisible_one() {
    let world = World::new().await;
    let process = world.process([("look", look(&world.effects))]);
    let seen = process.call("lokk", "x").await;
    let expected = (Phase::Lookup, Code::UnknownTool, SideEffectState::None, true, Recovery::ChooseOtherTool);
    assert_eq!(row(observed(&seen)), expected);
    assert!(observed(&seen).summary.contains("look"), "it says what there is");
    let long = process.call(&"x".repeat(10_000), "x").await;
    assert_eq!(observed(&long).code.known(), Some(Code::UnknownTool));
    assert!(observed(&long).tool.len() <= 128);
}

#[tokio::test]
async fn l09_a_case_conflict_across_placements_hides_the_weaker_one() {
    let world = World::new().await;
    let process = world.process([("Read", numbered(&world.effects, 1))]);
    let overlay = put(&process, Placement::Session(world.session), "read", numbered(&world.effects, 2));
    let (entries, hidden) = lookups(&process, world.session);
    assert_eq!(entries.keys().collect::<Vec<_>>(), ["read"]);
    assert_eq!(hidden, BTreeMap::from([("Read".to_owned(), Some(Reason::CaseConflict))]));

    let weaker = process.call("Read", "x").await;
    assert_eq!(observed(&weaker).code.known(), Some(Code::ToolNotVisible));
    assert_eq!(observed(&weaker).reason.as_ref().and_then(|r| r.known()), Some(Reason::CaseConflict));
    assert!(observed(&process.call("read", "x").await).ok);
    assert_eq!(world.effects.all(), ["2"]);
    drop(overlay);
    assert!(observed(&process.call("Read", "x").await).ok, "it is back when the stronger one is gone");
}

#[tokio::test]
async fn l17_a_wholly_denied_tool_is_hidden_with_its_reason() {
    let mut world = World::new().await;
    world.rules = "[[rules]]\nid = \"no\"\naction = \"look\"\neffect = \"deny\"\n".to_owned();
    let process = world.process([("look", look(&world.effects)), ("other", look(&world.effects))]);
    let (entries, hidden) = lookups(&process, world.session);
    assert_eq!(entries.keys().collect::<Vec<_>>(), ["other"]);
    assert_eq!(hidden, BTreeMap::from([("look".to_owned(), Some(Reason::WhollyDenied))]));
    let seen = process.call("look", "x").await;
    assert_eq!(observed(&seen).code.known(), Some(Code::ToolNotVisible));
    assert_eq!(observed(&seen).reason.as_ref().and_then(|r| r.known()), Some(Reason::WhollyDenied));
    // The menu event tells it too, so that an audit can.
    let told = world.events().await.iter().any(|event| match event.body() {
        Body::MenuFrozen(menu) => menu.hidden.iter().any(|h| h.name == "look"),
        _ => false,
    });
    assert!(told);
    // Rules that change are seen at once: no stale cache of what was offered.
    world.rules.clear();
    process.gate.set_policy(world.policy());
    assert!(observed(&process.call("look", "x").await).ok);
}
