//! `policy backtest`: changed rules, asked again about every recorded call. The log holds what the rules were asked, so
//! nothing is resolved, opened or run; every intent is counted, also those that never came before the rules.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use portcullis::{AccessRequest, Action, DefaultPolicy, GrantBook, Policy, RememberedGrant, Resource};
use portcullis_base::{Clock as _, IntentId, SessionId, SystemClock, Timestamp};
use portcullis_config::{ProjectRules, Settings, rules_of};
use portcullis_event::facts::{PermissionDecided, TouchedResource, Verdict};
use portcullis_event::{Body, LOCAL_TENANT};
use portcullis_policy::{Asker, Decision, Grant, Layer, Rule};
use portcullis_store::{Log as _, SessionSummary};
use serde::Serialize;
use serde_json::Value;

use crate::args::Globals;
use crate::exit::ExitKind;
use crate::policy::sound;
use crate::progress::Bar;
use crate::render::{self, Term, exact};
use crate::world::{World, key};

/// Events read at once: a page is read while the one before it is weighed.
const PAGE: usize = 4_000;

/// A decision that would be another one.
#[derive(Debug, Serialize)]
struct ChangedDecision {
    session_id: SessionId,
    intent_id: IntentId,
    old: Verdict,
    new: Verdict,
    policy_ids: Vec<String>,
    reason: String,
}

/// What became of every recorded intent; the parts add up to `intents`.
#[derive(Debug, Default, Serialize)]
struct Tally {
    intents: u64,
    same: u64,
    changed: u64,
    /// Refused before the rules were asked: an unknown tool, an input that is none, a loop.
    refused_before_the_gate: u64,
    /// Not decided yet.
    undecided: u64,
    /// What the rules were asked is not in the log whole: masked, cut, or written by an older version.
    not_comparable: u64,
}

pub async fn run(file: &Path, since: Option<Duration>, globals: &Globals, term: &Term) -> anyhow::Result<ExitKind> {
    let (layer, _, rules) = sound(rules_of(file))?;
    let world = World::existing(globals)?;
    let sessions = world.store.sessions(LOCAL_TENANT, usize::MAX).await?;
    let since = since.map(|span| {
        let micros = i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_micros(SystemClock::new().now().as_micros().saturating_sub(micros))
    });
    let grants = GrantBook::new(world.store.clone(), LOCAL_TENANT).all().await?;
    let trial = Trial { settings: &world.settings, layer, rules, file, policies: BTreeMap::new(), grants: &grants };
    let bar = Bar::new(term, sessions.iter().map(|found| found.head.last_seq).sum(), "events");
    let mut backtest = Backtest { world: &world, term, bar, since, trial, tally: Tally::default() };
    for session in &sessions {
        backtest.weigh(session).await?;
    }
    let Backtest { bar, tally, .. } = backtest;
    drop(bar);
    summary(&tally, layer, term)?;
    Ok(ExitKind::Done)
}

struct Backtest<'a> {
    world: &'a World,
    term: &'a Term,
    bar: Bar,
    since: Option<Timestamp>,
    trial: Trial<'a>,
    tally: Tally,
}

impl Backtest<'_> {
    /// Every intent of one session.
    async fn weigh(&mut self, session: &SessionSummary) -> anyhow::Result<()> {
        let id = session.session_id;
        let policy = self.trial.policy(session.row.workspace.as_deref())?;
        let mut open: HashMap<IntentId, Timestamp> = HashMap::new();
        let store = self.world.store.clone();
        let read = |after: u64| {
            let store = store.clone();
            tokio::spawn(async move { store.read(key(id), after, PAGE).await })
        };
        let mut next = read(0);
        loop {
            let page = next.await??;
            let Some(last) = page.last() else { break };
            next = read(last.seq);
            for event in &page {
                match event.kind.as_str() {
                    "tool.intent" if self.since.is_none_or(|since| event.at >= since) => {
                        self.tally.intents += 1;
                        self.tally.undecided += 1;
                        if let Some(intent) = intent_of(event.payload.as_deref()) {
                            open.insert(intent, event.at);
                        }
                    }
                    "tool.permission" => {
                        let Body::PermissionDecided(decided) = event.body() else { continue };
                        if let Some(at) = open.remove(&decided.intent_id) {
                            self.compare(&policy, session, &decided, at)?;
                        }
                    }
                    // What is observed and was never decided did not come before the rules.
                    "tool.observation"
                        if intent_of(event.payload.as_deref()).is_some_and(|id| open.remove(&id).is_some()) =>
                    {
                        self.tally.undecided -= 1;
                        self.tally.refused_before_the_gate += 1;
                    }
                    _ => {}
                }
            }
            self.bar.add(page.len() as u64);
        }
        Ok(())
    }

    fn compare(
        &mut self,
        policy: &Policy,
        session: &SessionSummary,
        decided: &PermissionDecided,
        at: Timestamp,
    ) -> anyhow::Result<()> {
        self.tally.undecided -= 1;
        let Some(decision) = self.trial.again(policy, session, decided, at) else {
            self.tally.not_comparable += 1;
            return Ok(());
        };
        let (old, new) = (decided.decision, verdict(&decision));
        if new == old {
            self.tally.same += 1;
            return Ok(());
        }
        self.tally.changed += 1;
        let changed = ChangedDecision {
            session_id: session.session_id,
            intent_id: decided.intent_id,
            old,
            new,
            policy_ids: decision.policy_ids().iter().map(ToString::to_string).collect(),
            reason: decision.reason().to_owned(),
        };
        self.bar.aside(|| line(&changed, self.term))
    }
}

/// Only the id: an input may be long.
fn intent_of(payload: Option<&str>) -> Option<IntentId> {
    #[derive(serde::Deserialize)]
    struct IntentOnly {
        intent_id: IntentId,
    }
    serde_json::from_str::<IntentOnly>(payload?).ok().map(|named| named.intent_id)
}

/// The rules on trial, for each workspace that sessions worked in.
struct Trial<'a> {
    settings: &'a Settings,
    layer: Layer,
    rules: Vec<Rule>,
    file: &'a Path,
    policies: BTreeMap<Option<PathBuf>, Arc<Policy>>,
    grants: &'a [RememberedGrant],
}

impl Trial<'_> {
    fn policy(&mut self, workspace: Option<&str>) -> anyhow::Result<Arc<Policy>> {
        let folder = workspace.map(PathBuf::from);
        if let Some(policy) = self.policies.get(&folder) {
            return Ok(Arc::clone(policy));
        }
        let settings = self.settings;
        let own = || match &folder {
            Some(folder) => ProjectRules::load(&settings.home, folder),
            None => Ok(ProjectRules::default()),
        };
        let theirs = portcullis_config::project_file(folder.as_deref().unwrap_or(Path::new("/")));
        let here = self.file.canonicalize().ok().is_some_and(|file| theirs.canonicalize().is_ok_and(|own| own == file));
        let policy = match self.layer {
            // As if the person had trusted it: whoever tries a file wants to know what it would do.
            Layer::Project if here => {
                let project = ProjectRules { rules: self.rules.clone(), trusted: true, unreadable: None };
                settings.policy_with(settings.user_rules().to_vec(), project)?
            }
            Layer::User => settings.policy_with(self.rules.clone(), own()?)?,
            _ => settings.policy_with(settings.user_rules().to_vec(), own()?)?,
        };
        let policy = Arc::new(policy);
        self.policies.insert(folder, Arc::clone(&policy));
        Ok(policy)
    }

    /// The same question, asked of the new rules at the time it was asked; `None` if it is not known whole.
    fn again(
        &self,
        policy: &Policy,
        session: &SessionSummary,
        asked: &PermissionDecided,
        at: Timestamp,
    ) -> Option<Decision> {
        if asked.partial || asked.resources.is_empty() {
            return None;
        }
        let requests: Vec<AccessRequest> = asked.resources.iter().map(request).collect::<Option<_>>()?;
        let default: DefaultPolicy = serde_json::from_value(Value::String(asked.default_policy.clone())).ok()?;
        let alone = Asker {
            agent: Some("local"),
            session: Some(session.session_id),
            project: session.row.workspace.as_deref(),
            now: at,
            default,
            grants: &[],
        };
        let decision = policy.decide(&requests, &alone);
        if self.grants.is_empty() || !matches!(&decision, Decision::Ask(ask) if !ask.pinned) {
            return Some(decision);
        }
        let stood = |found: &&RememberedGrant| {
            found.grant.created_at <= at && found.revoked.as_ref().is_none_or(|taken| at < taken.at)
        };
        let grants: Vec<Grant> = self.grants.iter().filter(stood).map(|found| found.grant.clone()).collect();
        Some(policy.decide(&requests, &Asker { grants: &grants, ..alone }))
    }
}

fn request(touched: &TouchedResource) -> Option<AccessRequest> {
    let kind = serde_json::from_value(Value::String(touched.kind.clone())).ok()?;
    let class = touched.class.clone().and_then(|class| serde_json::from_value(class).ok());
    let resource = Resource {
        inside: touched.inside,
        fed: touched.fed,
        command: touched.command.clone(),
        class,
        ..Resource::bare(kind, touched.name.clone(), String::new())
    };
    Some(AccessRequest::new(Action::new(touched.action.clone()), resource, touched.risk.clone()))
}

fn verdict(decision: &Decision) -> Verdict {
    match decision {
        Decision::Allow(_) => Verdict::Allow,
        Decision::Ask(_) => Verdict::Ask,
        Decision::Deny(_) => Verdict::Deny,
    }
}

fn line(changed: &ChangedDecision, term: &Term) -> anyhow::Result<()> {
    if term.json {
        return term.bytes(format!("{}\n", serde_json::to_string(changed)?).as_bytes());
    }
    let ChangedDecision { session_id, intent_id, old, new, reason, .. } = changed;
    let (old, new) = (render::word(old), render::word(new));
    term.stream(&format!("{session_id} {intent_id} {old} → {new}: {}", exact(reason, 1_000)))
}

fn summary(tally: &Tally, layer: Layer, term: &Term) -> anyhow::Result<()> {
    if term.json {
        return term.bytes(format!("{}\n", serde_json::to_string(&serde_json::json!({"total": tally}))?).as_bytes());
    }
    let Tally { intents, same, changed, refused_before_the_gate, undecided, not_comparable } = tally;
    let intents = render::count(*intents, "intent");
    term.stream(&format!(
        "{intents}: {changed} changed, {same} the same, {refused_before_the_gate} refused before the gate, {undecided} not \
         decided yet, {not_comparable} not comparable"
    ))?;
    if *refused_before_the_gate > 0 {
        term.note("refused before the gate: no such tool, a wrong input or a loop; no rule was asked about these");
    }
    if *not_comparable > 0 {
        term.note(
            "not comparable: the log does not hold all that the rules were asked (it was masked or cut, or an older version \
             wrote it), so the new rules cannot be asked the same",
        );
    }
    if layer == Layer::Project {
        term.note("the project's file was tried as if you had trusted it");
    }
    Ok(())
}
