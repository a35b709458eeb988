//! `policy`: what the rules decide, whether they are sound, which project's are trusted, and what a change of them
//! would have changed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use portcullis::instead::Alternative;
use portcullis::local::{call_session, offering};
use portcullis::operations::ExplainedCall;
use portcullis::operations::ask_words::suggestion;
use portcullis::{REACHES, Runtime};
use portcullis_base::{Clock as _, Code, SystemClock};
use portcullis_config::{
    ConfigError, Settings, UnreadableFile, project_file, rules_of,
    trust::{self, TrustRecord},
};
use portcullis_event::facts::Verdict;
use portcullis_policy::{EnterprisePolicy, Finding, Layer, Rule, RuleEffect, RuleId, file_hash, lint};
use portcullis_terminal::render::{self, BOLD, Term, exact, quoted, styled};
use serde_json::{Value, json};

use crate::args::{Globals, Policy};
use crate::exit::{ExitKind, failed, usage};
use crate::world::{World, workspace};
use crate::{backtest, call, person};

pub async fn run(what: Policy, globals: &Globals, term: &Term) -> anyhow::Result<ExitKind> {
    match what {
        Policy::Explain { tool, input } => explain(&tool, &call::input(&input)?, globals, term).await,
        Policy::Check { file } => check(file.as_deref(), globals, term),
        Policy::Trust { file } => trust(&file, globals, term),
        Policy::Backtest { file, since } => backtest::run(&file, since, globals, term).await,
    }
}

/// A runtime that decides as `call` would here; without a store nothing is remembered.
fn deciding(settings: Settings, folder: &Path) -> anyhow::Result<Runtime> {
    let builder = offering(&settings, folder)?;
    let Some(world) = World::look(settings)? else { return Ok(builder.build()?) };
    Ok(world.deciding(builder)?)
}

async fn explain(tool: &str, input: &str, globals: &Globals, term: &Term) -> anyhow::Result<ExitKind> {
    let folder = workspace(globals)?;
    let settings = globals.settings()?;
    call::warn_of_trust(&settings, &folder, term)?;
    let session = call_session(&folder);
    let runtime = deciding(settings, &folder)?;
    let explained = runtime.explain(session, tool, input).await;
    let (found, wrong) = (&explained.found, explained.is_wrong_input());
    if wrong && !term.json {
        // No rule was asked: this is no decision about a call, but an input that is none.
        term.error(&found.reason);
        if let Some(hint) = call::hint_at_input(None, &runtime, session, tool).await {
            term.note(&render::safe(&hint));
        }
    } else if term.json {
        term.document(&explained.document())?;
    } else {
        term.print(&in_words(&explained))?;
        if found.code == Some(Code::UnknownTool) && (input == "{}" || !input.trim_start().starts_with('{')) {
            // Whoever names a program means its command line.
            let words = if input == "{}" { "" } else { input };
            let line = json!({ "command": format!("{tool} {words}").trim_end() }).to_string();
            let command = format!("portcullis policy explain --profile code bash {}", quoted(line.as_bytes()));
            term.note(&format!("the name of a tool comes first; about a command line: {command}"));
        }
    }
    Ok(match found.decision {
        // No rule denies it: the tool does not do it.
        Verdict::Deny if explained.is_refused() && !wrong => ExitKind::Failed,
        Verdict::Allow => ExitKind::Done,
        Verdict::Ask => ExitKind::Waits,
        Verdict::Deny if wrong => ExitKind::Usage,
        Verdict::Deny => ExitKind::Denied,
    })
}

fn in_words(explained: &ExplainedCall) -> String {
    let ExplainedCall { found, instead, denied_elsewhere } = explained;
    let decision = if explained.is_refused() { "refused".to_owned() } else { render::word(&found.decision) };
    let code = found.code.map(|code| format!(" ({code})")).unwrap_or_default();
    let mut text = format!("{}{code}: {}\n", styled(BOLD, &decision), exact(&found.reason, 2_000));
    let mut line = |label: &str, value: &str| {
        if !value.is_empty() {
            let _ = writeln!(text, "  {label:<12}{value}");
        }
    };
    line("phase", &found.phase.to_string());
    line("rules", &exact(&found.policy_ids.join(", "), 2_000));
    line("grants", &found.grant_ids.join(", "));
    line("risk", &found.risk.iter().map(render::word).collect::<Vec<_>>().join(", "));
    if let (Some(profile), Some(isolated)) = (&found.sandbox, &found.isolated) {
        line("sandbox", &format!("{profile}, isolation level {}, network {}", isolated.level, isolated.network));
    }
    line("pinned", if found.pinned { "every call asks; no remembered allow answers it" } else { "" });
    line("instead", &instead.as_ref().map(|instead| exact(&mapped(instead), 2_000)).unwrap_or_default());
    for rule in &found.suggested_rules {
        text.push_str(&suggestion("a rule would settle this for good", &json!(rule)));
    }
    if let Some(reason) = denied_elsewhere {
        let _ = writeln!(text, "  {:<12}{}", "denied", exact(reason, 2_000));
    }
    text
}

/// The tool that answers what a command asks, in one line.
fn mapped(found: &Alternative) -> String {
    let differs = found.differs.map(|differs| format!(" ({differs})")).unwrap_or_default();
    format!("{} {}{differs}", found.tool, found.input)
}

fn check(file: Option<&Path>, globals: &Globals, term: &Term) -> anyhow::Result<ExitKind> {
    let folder = workspace(globals)?;
    let settings = sound(globals.settings())?;
    let (rules, of): (Vec<Rule>, usize) = match file {
        Some(file) => {
            let (layer, _, rules) = sound(rules_of(file))?;
            // What holds beside them may shadow them.
            let others = settings.policy(&folder)?;
            let beside = others.rules().iter().filter(|rule| rule.layer != layer).cloned();
            let own = rules.len();
            (rules.into_iter().chain(beside).collect(), own)
        }
        None => {
            let rules = sound(settings.policy(&folder))?.rules().to_vec();
            let all = rules.len();
            (rules, all)
        }
    };
    let inert = inert(file, &rules[..of], &settings, &folder);
    let checked: Vec<_> = rules[..of].iter().map(|rule| rule.id.clone()).collect();
    let findings = lint(&rules, REACHES, SystemClock::new().now());
    let findings: Vec<&Finding> = findings.iter().filter(|finding| checked.contains(&finding.rule)).collect();
    if term.json {
        let document = |finding: &&Finding| {
            let Finding { rule, source, fault } = finding;
            json!({"rule": rule, "file": source.file, "line": source.line, "problem": fault.to_string()})
        };
        let all: Vec<Value> = findings.iter().map(document).collect();
        term.document(&json!({"rules": of, "findings": all, "inert": inert}))?;
    } else {
        for finding in &findings {
            term.print(&exact(&finding.to_string(), 4_000))?;
        }
        let found = match findings.len() as u64 {
            0 => "nothing wrong".to_owned(),
            n => render::count(n, "finding"),
        };
        term.note(&format!("{} checked: {found}", render::count(of as u64, "rule")));
        if !inert.is_empty() {
            let ids: Vec<String> = inert.iter().map(|id| format!("`{id}`")).collect();
            let file = file.map_or_else(|| project_file(&folder), Path::to_owned);
            let text = format!(
                "the project's allow of {} is inert until you trust exactly this text: portcullis policy trust {}",
                ids.join(", "),
                file.display()
            );
            term.note(&exact(&text, 4_000));
        }
    }
    Ok(if findings.is_empty() { ExitKind::Done } else { ExitKind::Failed })
}

/// The allow rules among those checked that do nothing, since their project file is not trusted as it is now.
fn inert(file: Option<&Path>, rules: &[Rule], settings: &Settings, folder: &Path) -> Vec<RuleId> {
    let path = file.map_or_else(|| project_file(folder), Path::to_owned);
    let path = path.canonicalize().unwrap_or(path);
    let trusted =
        std::fs::read_to_string(&path).is_ok_and(|text| trust::holds(&settings.home, &path, &text) == Ok(true));
    let allows = rules.iter().filter(|rule| rule.layer == Layer::Project && rule.effect == RuleEffect::Allow);
    allows.filter(|_| !trusted).map(|rule| rule.id.clone()).collect()
}

/// Rules that are not understood are what was asked about: wrong rules, not wrong usage. A file that is not
/// there holds none.
pub fn sound<T>(read: Result<T, ConfigError>) -> anyhow::Result<T> {
    read.map_err(|error| match error {
        ConfigError::Unreadable(_) => error.into(),
        _ => failed(error.to_string()),
    })
}

fn trust(file: &Path, globals: &Globals, term: &Term) -> anyhow::Result<ExitKind> {
    let settings = globals.settings()?;
    let file = if file.is_dir() { project_file(file) } else { file.to_owned() };
    let path: PathBuf = file.canonicalize().map_err(|e| UnreadableFile::because(&file, e.to_string()))?;
    let (layer, text, rules) = rules_of(&path)?;
    if layer != Layer::Project {
        let text = format!(
            "{} is not a project's .portcullis/config.toml; your own rules and {} need no trust",
            path.display(),
            EnterprisePolicy::PATH
        );
        return Err(usage(text));
    }
    let (sha256, by, at) = (file_hash(&text), person::login(), SystemClock::new().now());
    trust::keep(&settings.home, &TrustRecord { file: path.clone(), sha256, by, at })?;
    let allows: Vec<&Rule> = rules.iter().filter(|rule| rule.effect == RuleEffect::Allow).collect();
    if term.json {
        let ids: Vec<String> = allows.iter().map(|rule| rule.id.to_string()).collect();
        term.document(&json!({"file": path, "sha256": sha256, "in_force": ids}))?;
        return Ok(ExitKind::Done);
    }
    term.print(&format!("trusted: {} as it is now; any change of it voids the trust", render::place(&path)))?;
    if allows.is_empty() {
        term.note("it has no allow rules, so nothing changes: its other rules were in force before");
    }
    for rule in allows {
        let Rule { id, action, resource, source, .. } = rule;
        term.print(&exact(
            &format!("now in force: allow {action} on {resource} (`{id}`, line {})", source.line),
            2_000,
        ))?;
    }
    Ok(ExitKind::Done)
}
