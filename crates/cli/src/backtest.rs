//! `policy backtest`: changed rules, asked again about every recorded call.

use std::path::Path;
use std::time::Duration;

use portcullis::local::RulesOnTrial;
use portcullis::operations::{BacktestTally, ChangedDecision};
use portcullis_base::{Clock as _, SystemClock, Timestamp};
use portcullis_config::rules_of;
use portcullis_policy::Layer;
use portcullis_terminal::render::{self, Term, exact};
use portcullis_terminal::waiting::Bar;

use crate::args::Globals;
use crate::exit::ExitKind;
use crate::policy::sound;
use crate::world::World;

pub async fn run(file: &Path, since: Option<Duration>, globals: &Globals, term: &Term) -> anyhow::Result<ExitKind> {
    let (layer, _, rules) = sound(rules_of(file))?;
    let world = World::existing(globals)?;
    let since = since.map(|span| {
        let micros = i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_micros(SystemClock::new().now().as_micros().saturating_sub(micros))
    });
    let mut trial = RulesOnTrial::new(&world.settings, layer, rules, file);
    let (mut backtest, sessions) = world.backtest(since).await?;
    let bar = Bar::new(term, sessions.iter().map(|found| found.head.last_seq).sum(), "events");
    for session in &sessions {
        let policy = trial.policy(session.row.workspace.as_deref())?;
        let mut weighing = backtest.session(session, &policy);
        while let Some((events, changed)) = weighing.next().await? {
            changed.iter().try_for_each(|changed| bar.aside(|| line(changed, term)))?;
            bar.add(events);
        }
    }
    drop(bar);
    summary(backtest.tally(), layer, term)?;
    Ok(ExitKind::Done)
}

fn line(changed: &ChangedDecision, term: &Term) -> anyhow::Result<()> {
    if term.json {
        return Ok(term.bytes(format!("{}\n", serde_json::to_string(changed)?).as_bytes())?);
    }
    let ChangedDecision { session_id, intent_id, old, new, reason, .. } = changed;
    let (old, new) = (render::word(old), render::word(new));
    Ok(term.stream(&format!("{session_id} {intent_id} {old} → {new}: {}", exact(reason, 1_000)))?)
}

fn summary(tally: &BacktestTally, layer: Layer, term: &Term) -> anyhow::Result<()> {
    if term.json {
        return Ok(
            term.bytes(format!("{}\n", serde_json::to_string(&serde_json::json!({"total": tally}))?).as_bytes())?
        );
    }
    let BacktestTally { intents, same, changed, refused_before_the_gate, undecided, not_comparable } = tally;
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
