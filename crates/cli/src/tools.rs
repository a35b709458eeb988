//! `tools`: what is offered in this workspace, and what is not and why. Opens no store.

use std::fmt::Write as _;
use std::sync::Arc;

use portcullis::local::offering;
use portcullis::{Policy, Runtime, ToolDefinition};
use portcullis_pipeline::Offer;
use portcullis_policy::probably_meant;
use portcullis_terminal::render::{self, BOLD, DIM, Term, safe, safe_line, styled};
use portcullis_terminal::table::table_within;
use serde_json::{Value, json};

use crate::args::{Globals, Tools};
use crate::exit::{ExitKind, failed};
use crate::world::{NO_SESSION, workspace};

pub fn run(what: &Tools, globals: &Globals, term: &Term) -> anyhow::Result<ExitKind> {
    let settings = globals.settings()?;
    let folder = workspace(globals)?;
    let runtime = offering(&settings, &folder)?.build()?;
    let offer = runtime.offer(NO_SESSION);
    match what {
        Tools::List => list(&offer, &runtime.gate().policy(), term)?,
        Tools::Show { name } => {
            let hidden = offer.hidden().iter().find(|hidden| hidden.name == *name);
            match hidden {
                // A rule hides it, not its definition: without rules it is offered.
                Some(hidden) => {
                    let open =
                        Runtime::builder().workspace(&folder).profile(settings.profile).build()?.offer(NO_SESSION);
                    show(&open, name, Some(&hidden.reason.to_string()), term)?;
                }
                None => show(&offer, name, None, term)?,
            }
        }
    }
    Ok(ExitKind::Done)
}

fn list(offer: &Arc<Offer>, policy: &Policy, term: &Term) -> anyhow::Result<()> {
    if term.json {
        let tools: Vec<Value> = offer.entries().map(|(_, entry)| summary(&entry.definition)).collect();
        return Ok(term.document(&json!({"tools": tools, "hidden": offer.hidden()}))?);
    }
    let wide = !term.narrow();
    let row = |definition: &ToolDefinition| {
        let semantics = &definition.semantics;
        let mut row = vec![
            definition.name.to_string(),
            render::word(&semantics.default_policy),
            semantics.risk.iter().map(render::word).collect::<Vec<_>>().join(","),
            if semantics.read_only { "yes" } else { "no" }.to_owned(),
        ];
        row.extend(wide.then(|| render::word(&semantics.ownership)));
        row.extend(wide.then(|| short(definition.version.as_str())));
        row.push(safe_line(definition.description.lines().next().unwrap_or_default(), 60));
        row
    };
    let rows = offer.entries().map(|(_, entry)| row(&entry.definition)).collect();
    let mut header = vec!["NAME", "POLICY", "RISK", "READ-ONLY"];
    header.extend(if wide { &["RUN BY", "VERSION"][..] } else { &[] });
    header.push("DESCRIPTION");
    let mut text = table_within(term.columns(), &[0, 1, 2], &header, rows);
    for hidden in offer.hidden() {
        let _ = writeln!(text, "hidden: {}: {}", safe(&hidden.name), hidden.reason);
    }
    term.print(&text)?;
    let (rules, inert) = (policy.rules().len() as u64, policy.inert_rules().count());
    if rules > 0 {
        let note =
            if inert > 0 { format!(", {inert} of them inert (`portcullis doctor` tells why)") } else { String::new() };
        term.note(&styled(DIM, &format!("{} in force here{note}", render::count(rules, "rule"))));
    }
    Ok(())
}

fn summary(definition: &ToolDefinition) -> Value {
    let semantics = &definition.semantics;
    json!({
        "name": definition.name,
        "ownership": semantics.ownership,
        "policy": semantics.default_policy,
        "risk": semantics.risk,
        "read_only": semantics.read_only,
        "version": definition.version,
        "description": definition.description,
    })
}

/// Enough of a version to tell two apart.
fn short(version: &str) -> String {
    version.chars().take(12).collect()
}

/// One tool, and why it is `hidden` here if it is.
fn show(offer: &Arc<Offer>, name: &str, hidden: Option<&str>, term: &Term) -> anyhow::Result<()> {
    let found = offer.entries().find(|(known, _)| known.as_str() == name);
    let Some((_, entry)) = found else {
        let known: Vec<String> = offer.entries().map(|(known, _)| known.to_string()).collect();
        let meant = probably_meant(name, known.iter().map(String::as_str));
        let meant = meant.map(|meant| format!(" (did you mean `{meant}`?)")).unwrap_or_default();
        return Err(failed(format!("there is no tool `{}`{meant}; there are: {}", safe(name), known.join(", "))));
    };
    let definition = &*entry.definition;
    if term.json {
        let mut value = serde_json::to_value(definition)?;
        value["executor_id"] = json!(entry.executor_id.to_string());
        value["hidden"] = json!(hidden);
        return Ok(term.document(&value)?);
    }
    let mut text = format!("{}\n\n{}\n\n", styled(BOLD, name), safe(&definition.description));
    if let Some(reason) = hidden {
        let _ = writeln!(text, "  {:<12}not offered here: {}", "hidden", safe(reason));
    }
    let semantics = &definition.semantics;
    let risk = semantics.risk.iter().map(render::word).collect::<Vec<_>>().join(", ");
    for (label, value) in [
        ("run by", render::word(&semantics.ownership)),
        ("executor", entry.executor_id.to_string()),
        ("policy", render::word(&semantics.default_policy)),
        ("risk", risk),
        ("read-only", semantics.read_only.to_string()),
        ("reversible", semantics.reversible.to_string()),
        ("timeout", format!("{} ms, at most {} ms", semantics.timeout.default_ms, semantics.timeout.max_ms)),
        ("version", definition.version.to_string()),
    ] {
        let _ = writeln!(text, "  {label:<12}{value}");
    }
    for (label, schema) in [("input", &definition.input_schema), ("output", &definition.output_schema)] {
        let _ = write!(text, "\n{label} schema:\n{}\n", safe(&serde_json::to_string_pretty(schema)?));
    }
    Ok(term.print(&text)?)
}
