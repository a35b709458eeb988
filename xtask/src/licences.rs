//! Licences of everything in the resolved graph, dev-dependencies too, and the crates that may not be in it at all.

use anyhow::{Result, bail};

use crate::metadata::{Graph, Package};
use crate::rules;
use crate::spdx::Expression;

/// Fails with every package that may not be here, one a line; otherwise says how many were looked at.
pub fn check(graph: &Graph) -> Result<String> {
    let problems: Vec<String> = graph.packages.values().filter_map(problem).collect();
    if problems.is_empty() {
        return Ok(format!("{} packages", graph.packages.len()));
    }
    bail!("packages that may not be in the tree:\n  {}", problems.join("\n  "))
}

fn problem(package: &Package) -> Option<String> {
    let Package { name, version, .. } = package;
    if let Some((_, why)) = rules::FORBIDDEN.iter().find(|(other, _)| other == name) {
        return Some(format!(
            "{name} {version} is forbidden: {why} (`cargo tree -i {name} --all-features` says who brings it)"
        ));
    }
    let used = |(other, _): &&(&str, &str)| package.member && package.declared.iter().any(|declared| declared == other);
    if let Some((other, why)) = rules::NOT_OURS.iter().find(used) {
        return Some(format!("{name} may not use {other}: {why}"));
    }
    let Some(licence) = &package.licence else {
        return Some(format!("{name} {version} names no licence"));
    };
    match Expression::parse(licence) {
        Err(error) => Some(format!("{name} {version}: {error}")),
        Ok(expression) if !expression.satisfied(&|term| rules::LICENCES.contains(&term)) => Some(format!(
            "{name} {version} is under `{licence}`, which is not among the licences of xtask/src/rules.rs"
        )),
        Ok(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_needs_an_accepted_licence_and_must_not_be_forbidden() {
        let cases = [
            ("serde", Some("MIT OR Apache-2.0"), None),
            ("copyleft", Some("GPL-3.0-only"), Some("GPL-3.0-only")),
            ("silent", None, Some("names no licence")),
            ("odd", Some("MIT OR"), Some("not a licence expression")),
            ("aws-lc-sys", Some("MIT"), Some("forbidden")),
            ("chrono", Some("MIT"), None),
        ];
        for (name, licence, expected) in cases {
            let found = problem(&Package {
                name: name.to_owned(),
                version: "1.0.0".to_owned(),
                licence: licence.map(str::to_owned),
                declared: Vec::new(),
                member: false,
            });
            match (expected, &found) {
                (None, None) => {}
                (Some(expected), Some(found)) if found.contains(expected) => {}
                _ => panic!("{name}: expected {expected:?}, found {found:?}"),
            }
        }
    }

    #[test]
    fn what_others_may_bring_our_own_crates_may_not_use() {
        let ours = |member| {
            problem(&Package {
                name: "portcullis-cli".to_owned(),
                version: "1.0.0".to_owned(),
                licence: Some("MIT".to_owned()),
                declared: vec!["chrono".to_owned()],
                member,
            })
        };
        assert!(ours(true).is_some_and(|found| found.contains("may not use chrono")));
        assert_eq!(ours(false), None);
    }
}
