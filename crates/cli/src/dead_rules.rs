//! Rules that can never match anything here: written with a purpose, and without effect.

use std::path::Path;

use portcullis::Runtime;
use portcullis_policy::{ActionPattern, ResourcePattern, Rule, never_a_word};

use crate::render::exact;
use crate::world::call_session;

/// Where every path that a rule is matched against begins.
const WORKSPACE: &str = "workspace";

/// The actions of this build's tools, whatever rules hide them: each tool's is its name.
pub fn actions(workspace: &Path) -> anyhow::Result<Vec<String>> {
    let offer = Runtime::builder().workspace(workspace).build()?.offer(call_session(workspace));
    Ok(offer.entries().map(|(_, entry)| entry.definition.name.to_string()).collect())
}

/// Why a rule can match nothing, and what to write instead.
pub fn dead(rule: &Rule, actions: &[String]) -> Option<(String, String)> {
    unknown_action(&rule.action, actions).or_else(|| match &rule.resource {
        // One that can match is enough.
        ResourcePattern::Path(all) => {
            let mut faults = all.iter().map(|pattern| stray_path(pattern.as_str()));
            let first = faults.next()??;
            faults.all(|fault| fault.is_some()).then_some(first)
        }
        ResourcePattern::Argv(all) => {
            let mut faults = all.iter().map(|pattern| Some((pattern.to_string(), never_a_word(pattern)?)));
            let (pattern, why) = faults.next()??;
            let dead = faults.all(|fault| fault.is_some());
            dead.then(|| (format!("no command has the words {}", exact(&pattern, 200)), exact(&why, 400)))
        }
        _ => None,
    })
}

fn unknown_action(pattern: &ActionPattern, actions: &[String]) -> Option<(String, String)> {
    if actions.iter().any(|action| pattern.matches(&portcullis::Action::new(action.as_str()))) {
        return None;
    }
    let known = actions.join(", ");
    Some((format!("no tool has an action `{}`", exact(pattern.as_str(), 80)), format!("this build's are: {known}")))
}

fn stray_path(pattern: &str) -> Option<(String, String)> {
    let shown = exact(pattern, 200);
    if pattern.trim() != pattern {
        let to_do = "take the blanks away, unless the file's name has them";
        return Some((format!("its path `{shown}` begins or ends with a blank"), to_do.to_owned()));
    }
    let first = pattern.strip_prefix('/')?.split('/').next()?;
    let wild = first.contains(['*', '?', '[', '{', '\\']);
    (!wild && !first.is_empty() && first != WORKSPACE).then(|| {
        let to_do =
            "write it beneath the workspace: src/**, or /workspace/src/**; a path of this machine is never matched";
        (format!("its path `{shown}` is outside the workspace"), to_do.to_owned())
    })
}
