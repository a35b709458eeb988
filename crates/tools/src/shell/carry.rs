//! What of a shell's exported environment is kept for later commands (agent-runtime 10.4).

use std::collections::BTreeMap;

use portcullis_base::{EnvKey, EnvKeyError, limits};
use portcullis_contract::ShellFact;
use portcullis_pipeline::Environment;
use portcullis_secret::SecretText;

/// The changes that a command made, for [`portcullis_contract::ToolContext::shell`], and what could not be kept.
#[derive(Debug, Default)]
pub struct CarryOver {
    pub facts: Vec<ShellFact>,
    pub warnings: Vec<String>,
}

/// What a command changed: `exported` is the environment that its shell reported after it, `known` the one that it was
/// started with. What the runtime or a shell keeps itself is left out without a word (H43); what is too long, or too
/// much, with a warning that names it. A value that is no text is no [`SecretText`]: leave it out of both.
#[must_use]
pub fn carry_over(known: &Environment, exported: BTreeMap<String, SecretText>) -> CarryOver {
    let mut carried = CarryOver::default();
    let (mut kept, mut too_long) = (Vec::new(), Vec::new());
    for (name, value) in exported {
        match name.parse::<EnvKey>() {
            Ok(key) if value.expose().len() > limits::ENV_VALUE => too_long.push(key),
            Ok(key) => kept.push((key, value)),
            // Functions that a shell exports have names that are none.
            Err(EnvKeyError::Malformed(_) | EnvKeyError::Protected(_) | EnvKeyError::OfTheShell(_)) => {}
        }
    }
    let is_there = |key: &EnvKey| kept.iter().any(|(there, _)| there == key) || too_long.contains(key);
    let gone = known.values.keys().filter(|key| !is_there(key)).cloned();
    carried.facts.extend(gone.map(ShellFact::EnvUnset));
    // An old value must not come back in place of one that could not be kept.
    let stale = too_long.iter().filter(|key| known.values.contains_key(key)).cloned();
    carried.facts.extend(stale.map(ShellFact::EnvUnset));
    let mut names = known.values.len().saturating_sub(carried.facts.len());
    let mut left_out: Vec<EnvKey> = Vec::new();
    for (key, value) in kept {
        let is_new = !known.values.contains_key(&key);
        if known.values.get(&key) == Some(&value) {
            continue;
        }
        if (is_new && names >= limits::ENV_NAMES) || carried.facts.len() >= limits::ENV_NAMES {
            left_out.push(key);
            continue;
        }
        names += usize::from(is_new);
        carried.facts.push(ShellFact::EnvSet(key, value));
    }
    for key in too_long {
        carried.warnings.push(format!(
            "`{key}` is not kept for later commands: its value is longer than {} bytes",
            limits::ENV_VALUE
        ));
    }
    if let Some(first) = left_out.first() {
        let more = left_out.len();
        carried.warnings.push(format!(
            "{more} exported names, `{first}` the first, are not kept for later commands: a session has at most {} names",
            limits::ENV_NAMES
        ));
    }
    carried
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> SecretText {
        SecretText::new(value)
    }

    fn exported(pairs: &[(&str, &str)]) -> BTreeMap<String, SecretText> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), text(value))).collect()
    }

    fn known(pairs: &[(&str, &str)]) -> Environment {
        let values = pairs.iter().map(|(name, value)| (name.parse().expect("a name"), text(value))).collect();
        Environment { values, lost: Vec::new() }
    }

    #[test]
    fn h43_only_what_a_session_may_set_is_carried_over_and_only_what_changed() {
        let before = known(&[("KEPT", "1"), ("CHANGED", "1"), ("GONE", "1")]);
        let after = exported(&[
            ("KEPT", "1"),
            ("CHANGED", "2"),
            ("NEW", " spaces "),
            ("PATH", "/evil"),
            ("LANG", "C"),
            ("PORTCULLIS_SESSION_ID", "x"),
            ("PWD", "/workspace"),
            ("OLDPWD", "/"),
            ("SHLVL", "2"),
            ("_", "/usr/bin/env"),
            ("BASH_FUNC_f%%", "() { :; }"),
        ]);
        let carried = carry_over(&before, after);
        let key = |name: &str| name.parse::<EnvKey>().expect("a name");
        assert_eq!(
            carried.facts,
            [
                ShellFact::EnvUnset(key("GONE")),
                ShellFact::EnvSet(key("CHANGED"), text("2")),
                ShellFact::EnvSet(key("NEW"), text(" spaces ")),
            ]
        );
        assert!(carried.warnings.is_empty(), "{:?}", carried.warnings);
    }

    #[test]
    fn what_is_too_long_or_too_much_is_named_and_leaves_no_old_value() {
        let long = "x".repeat(limits::ENV_VALUE + 1);
        let carried = carry_over(&known(&[("LONG", "1")]), exported(&[("LONG", &long)]));
        assert_eq!(carried.facts, [ShellFact::EnvUnset("LONG".parse().expect("a name"))]);
        assert!(carried.warnings[0].contains("`LONG`") && !carried.warnings[0].contains("xxx"));
        let many: Vec<String> = (0..limits::ENV_NAMES + 2).map(|n| format!("N{n:04}")).collect();
        let pairs: Vec<(&str, &str)> = many.iter().map(|name| (name.as_str(), "v")).collect();
        let carried = carry_over(&Environment::default(), exported(&pairs));
        assert_eq!(carried.facts.len(), limits::ENV_NAMES);
        assert!(carried.warnings[0].starts_with("2 exported names, `N0200`"), "{:?}", carried.warnings);
    }
}
