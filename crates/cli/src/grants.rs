//! `grants`: remembered allows, what each reaches, and taking one back.

use portcullis::RememberedGrant;
use portcullis_base::{Clock as _, GrantId, SystemClock, SystemIds, Timestamp};
use portcullis_event::{Actor, Stamp};
use portcullis_terminal::render::{Term, exact};
use portcullis_terminal::table::table;
use serde_json::{Value, json};

use crate::args::{Globals, Grants};
use crate::exit::ExitKind;
use crate::person;
use crate::world::World;

pub async fn run(what: Grants, globals: &Globals, term: &Term) -> anyhow::Result<ExitKind> {
    match what {
        Grants::List { all } => list(globals, all, term).await,
        Grants::Revoke { grant } => revoke(&World::existing(globals)?, grant, term).await,
    }
}

async fn list(globals: &Globals, all: bool, term: &Term) -> anyhow::Result<ExitKind> {
    let mut grants = match World::look(globals.settings()?)? {
        Some(world) => world.archive.grants().all().await?,
        None => Vec::new(),
    };
    let now = SystemClock::new().now();
    grants.retain(|found| all || found.in_force(now));
    if term.json {
        let document = |found: &RememberedGrant| -> anyhow::Result<Value> {
            let mut value = serde_json::to_value(found)?;
            value["in_force"] = json!(found.in_force(now));
            Ok(value)
        };
        let grants: Vec<Value> = grants.iter().map(document).collect::<anyhow::Result<_>>()?;
        term.document(&json!({"grants": grants}))?;
    } else if grants.is_empty() {
        term.note("nothing is remembered; `portcullis approvals allow ASK --save` remembers an answer");
    } else {
        let rows: Vec<_> = grants.iter().map(|found| row(found, now)).collect();
        let header = ["GRANT", "ALLOWS", "FOR", "GIVEN", "UNTIL", "USES"];
        let fits = |columns| rows.iter().all(|row| row.iter().map(|cell| cell.len() + 2).sum::<usize>() <= columns);
        // What a rule allows is never cut: where a row has no room for it, a grant has several.
        match term.columns().is_none_or(fits) {
            true => term.print(&table(&header, rows))?,
            false => term.print(&rows.iter().map(|row| lines(row)).collect::<String>())?,
        }
    }
    Ok(ExitKind::Done)
}

fn row(found: &RememberedGrant, now: Timestamp) -> Vec<String> {
    let grant = &found.grant;
    let scope = match grant.scope.session {
        Some(session) => session.to_string(),
        None => grant.scope.project.as_deref().map(|project| exact(project, 80)).unwrap_or_default(),
    };
    let until = match (&found.revoked, grant.expires_at) {
        (Some(taken), _) => format!("revoked by {}", exact(&taken.by, 40)),
        (None, Some(end)) if end <= now => format!("ran out {end}"),
        (None, Some(end)) => end.to_string(),
        (None, None) => "you revoke it".to_owned(),
    };
    vec![
        grant.id.to_string(),
        in_words(&exact(&grant.rule.to_string(), 120)),
        scope,
        format!("{} {}", exact(&grant.created_by, 40), grant.created_at),
        until,
        grant.uses.to_string(),
    ]
}

/// A grant in lines of its own.
fn lines(row: &[String]) -> String {
    let [grant, allows, scope, given, until, uses] = row else { return String::new() };
    format!("{grant}\n  allows  {allows}\n  for     {scope}\n  given   {given}\n  until   {until}, {uses} uses\n")
}

/// A rule whose last word says that nothing may follow.
fn in_words(rule: &str) -> String {
    rule.replace(r#","$"]"#, "] and nothing more").replace(r#", "$"]"#, "] and nothing more")
}

async fn revoke(world: &World, grant: GrantId, term: &Term) -> anyhow::Result<ExitKind> {
    let by = person::login();
    let (ids, clock, actor) = (SystemIds::new(), SystemClock::new(), Actor::user(&by));
    let stamp = Stamp { ids: &ids, clock: &clock, actor: &actor, turn_id: None, wake_id: None };
    let found = world.archive.grants().revoke(grant, &by, &stamp).await?;
    if term.json {
        term.document(&found)?;
    } else {
        term.print(&format!("revoked: {}; its calls ask again", in_words(&exact(&found.grant.rule.to_string(), 200))))?;
    }
    Ok(ExitKind::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_rule_is_said_in_words() {
        assert_eq!(in_words(r#"bash on ["sh","s.sh","$"]"#), r#"bash on ["sh","s.sh"] and nothing more"#);
        assert_eq!(in_words(r#"bash on ["echo","$","x"]"#), r#"bash on ["echo","$","x"]"#);
    }
}
