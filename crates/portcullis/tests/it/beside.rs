//! Runtimes beside each other in one process: one gate and one registry, and each session acts by its own setup.

use async_trait::async_trait;
use portcullis::{
    AccessRequest, Action, AskAnswer, CallOutcome, Code, LocationServices, Mode, Offer, Plugin, PluginScope, Profile,
    Reply, Resource, Runtime, RuntimeError, Semantics, SessionId, Setup, Tool, ToolOrigin,
};
use portcullis_agent::setup::{ToolPolicy, ToolSetup};
use portcullis_base::{Reason, TenantId};
use portcullis_event::{Body, LOCAL_TENANT};
use portcullis_store::SessionKey;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Text {
    text: String,
}

/// Says who called, and in which tenant.
fn whoami(semantics: Semantics) -> Tool {
    Tool::builder::<Text, String>("Says who called.")
        .semantics(semantics)
        .plan_access(|_, _| {
            let place = Resource::path("/workspace/x", "x");
            vec![AccessRequest::new(Action::new("touch"), place, [portcullis::Risk::Read].into())]
        })
        .execute(|input, context| async move {
            let caller = context.caller();
            Ok(format!("{}: {} {} {}", input.text, caller.principal, caller.actor, caller.tenant))
        })
        .build()
        .expect("a tool")
}

fn first() -> Runtime {
    let looks = whoami(Semantics::read_only());
    let acts = whoami(Semantics { default_policy: portcullis::DefaultPolicy::Allow, ..Semantics::mutating() });
    let builder = Runtime::builder().tool("whoami", looks).and_then(|builder| builder.tool("act", acts));
    builder.expect("names").principal("ann").build().expect("builds")
}

fn setup(tenant: TenantId, principal: &str) -> Setup {
    Setup::local(tenant, principal, Profile::Code)
}

async fn code(runtime: &Runtime, session: SessionId, tool: &str) -> (Option<Code>, String) {
    match runtime.call(session, tool, r#"{"text":"x"}"#).await.expect("no fault") {
        CallOutcome::Observed(seen) => (seen.session_view().code.known(), seen.model_view().to_string()),
        CallOutcome::Waiting(ask) => (None, ask.to_string()),
        other => panic!("{other:?}"),
    }
}

fn hidden(offer: &Offer, tool: &str) -> Option<Reason> {
    offer.hidden().iter().find(|hidden| hidden.name == tool).and_then(|hidden| hidden.reason.known())
}

#[tokio::test]
async fn sessions_of_one_process_act_by_their_own_setups_at_the_same_time() {
    let first = first();
    let folders = [tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder")];
    let in_folder =
        |n: usize, setup: Setup| Setup { workspace: Some(folders[n].path().display().to_string()), ..setup };
    let plan = Setup { mode: Mode::Plan, ..in_folder(0, setup(LOCAL_TENANT, "ann")) };
    let other = TenantId::from_u128(9);
    let mut flags = Setup { profile: Profile::Managed, ..in_folder(1, setup(other, "bob")) };
    flags.tools.tools.insert("whoami".to_owned(), ToolSetup { enabled: Some(false), policy: None });
    flags.tools.tools.insert("act".to_owned(), ToolSetup { enabled: None, policy: Some(ToolPolicy::AlwaysAsk) });
    let plans = first.beside().setup(plan).build().expect("builds");
    let asks = first.beside().setup(flags).build().expect("builds");
    let strict = Setup { mode: Mode::Strict, ..setup(LOCAL_TENANT, "cay") };
    let strict = first.beside().setup(strict).build().expect("builds");

    let sessions = [
        first.create_session("first").await.expect("made"),
        plans.create_session("plans").await.expect("made"),
        asks.create_session("asks").await.expect("made"),
        strict.create_session("strict").await.expect("made"),
    ];
    for _ in 0..2 {
        // The embedder's tools are there for all of them, and each says whom it acts for.
        let (seen, text) = code(&first, sessions[0], "act").await;
        assert!(seen == Some(Code::Ok) && text.contains("ann user:ann"), "{text}");
        let (seen, text) = code(&plans, sessions[1], "whoami").await;
        assert!(seen == Some(Code::Ok) && text.contains("ann user:ann"), "{text}");
        assert_eq!(code(&plans, sessions[1], "act").await.0, Some(Code::ToolNotVisible), "plan shows what reads");
        assert_eq!(code(&asks, sessions[2], "whoami").await.0, Some(Code::ToolNotVisible), "its flag is off");
        assert_eq!(code(&asks, sessions[2], "act").await.0, None, "its setup has it ask");
        assert_eq!(code(&strict, sessions[3], "act").await.0, None, "strict asks about all that acts");
        assert_eq!(code(&strict, sessions[3], "whoami").await.0, Some(Code::Ok), "and not about what reads");
    }
    assert_eq!(hidden(&plans.offer(sessions[1]), "edit"), Some(Reason::Mode));
    assert_eq!(hidden(&asks.offer(sessions[2]), "whoami"), Some(Reason::Agent));
    let has = |runtime: &Runtime, session, tool: &str| runtime.offer(session).knows(tool);
    assert!(has(&plans, sessions[1], "read") && !has(&plans, sessions[1], "shell_run"), "the profile of its own");
    assert!(has(&asks, sessions[2], "shell_run") && !has(&first, sessions[0], "read"), "the folder of its own");

    // Each log is its own tenant's alone, and names who proposed.
    for (runtime, session, tenant) in
        [(&first, sessions[0], LOCAL_TENANT), (&asks, sessions[2], other), (&strict, sessions[3], LOCAL_TENANT)]
    {
        let log = runtime.gate().store().read(SessionKey { tenant, session }, 0, 1_000).await.expect("read");
        let principal = &runtime.setup().principal;
        let proposed = log.iter().filter(|event| matches!(event.body(), Body::IntentProposed(_)));
        let actors: Vec<&str> = proposed.map(|event| event.actor.as_str()).collect();
        assert!(actors.len() >= 2 && actors.iter().all(|actor| *actor == format!("user:{principal}")), "{actors:?}");
    }
    let found = first.call(sessions[2], "whoami", r#"{"text":"x"}"#).await;
    assert!(matches!(found, Err(RuntimeError::Store(portcullis::StoreError::NoSession(_)))), "{found:?}");
}

#[tokio::test]
async fn an_approval_is_void_in_another_mode_than_it_was_given_in() {
    let first = first();
    let strict = first.beside().setup(Setup { mode: Mode::Strict, ..setup(LOCAL_TENANT, "ann") });
    let strict = strict.build().expect("builds");
    let session = strict.create_session("strict").await.expect("made");
    let CallOutcome::Waiting(ask) = strict.call(session, "act", r#"{"text":"x"}"#).await.expect("no fault") else {
        panic!("strict asks")
    };
    let usual = first.beside().setup(Setup { mode: Mode::Ask, ..setup(LOCAL_TENANT, "ann") }).build().expect("builds");
    usual.reply(ask, AskAnswer::by("ann", Reply::AllowOnce)).await.expect("recorded");
    let attended = usual.attend(session).await.expect("attended");
    let codes: Vec<_> = attended.iter().map(|one| format!("{:?}", one.disposition)).collect();
    assert!(codes.iter().all(|one| one.contains("PolicyDenied")), "{codes:?}");
}

struct Greeter;

#[async_trait]
impl Plugin for Greeter {
    fn name(&self) -> &'static str {
        "greeter"
    }

    async fn install(&self, services: LocationServices) -> Result<PluginScope, RuntimeError> {
        let tool = whoami(Semantics::read_only());
        let tools = [("greet", tool.clone()), ("read", tool)].map(|(name, tool)| (name.parse().expect("a name"), tool));
        let mut scope = PluginScope::default();
        scope.hold(services.registrar.register(tools.into())?);
        Ok(scope)
    }
}

#[tokio::test]
async fn a_plugin_is_installed_once_a_location_and_its_tools_stand_over_the_built_ins_of_every_toolset_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = first();
    let here = |profile| first.beside().workspace(folder.path()).profile(profile).build().expect("builds");
    let (managed, code) = (here(Profile::Managed), here(Profile::Code));
    let session = SessionId::from_u128(5);
    let origin = |runtime: &Runtime, tool: &str| {
        let offer = runtime.offer(session);
        offer
            .entries()
            .find(|(name, _)| name.as_str() == tool)
            .map(|(_, entry)| (entry.origin.clone(), entry.registration_id))
    };
    assert_eq!(origin(&code, "read").expect("there").0, ToolOrigin::Builtin);
    managed.install(&Greeter).await.expect("installed");
    let before = origin(&code, "greet").expect("there");
    assert_eq!(before.0, ToolOrigin::Plugin("greeter".to_owned()));
    code.install(&Greeter).await.expect("there already");
    assert_eq!(origin(&managed, "greet"), Some(before), "it was installed once");
    assert_eq!(origin(&managed, "read").expect("there").0.to_string(), "plugin:greeter");
    assert_eq!(origin(&first, "greet"), None, "another location has none of it");
    assert!(managed.uninstall("greeter").await && !code.uninstall("greeter").await);
    assert_eq!(origin(&code, "read").expect("there").0, ToolOrigin::Builtin, "what it hid is back");
}
