//! The order of the crates: each depends only on earlier lines, and what is heavy stays in the leaves.

use std::collections::{BTreeMap, VecDeque};

use anyhow::Result;

use crate::metadata::Graph;
use crate::rules;

/// Fails with every breach of the order, one a line; otherwise says what was looked at.
pub fn check(graph: &Graph) -> Result<String> {
    let mut problems = Vec::new();
    let mut crates = 0;
    for (id, package) in graph.members() {
        if rules::TOOL_PACKAGES.contains(&package.name.as_str()) {
            continue;
        }
        crates += 1;
        let Some(line) = line_of(&package.name) else {
            problems.push(format!(
                "`{}` has no line in the order: give it one in xtask/src/rules.rs and ARCHITECTURE.md",
                package.name
            ));
            continue;
        };
        problems.extend(package.declared.iter().filter_map(|dependency| breach(&package.name, line, dependency)));
        if line < rules::LEAF_LINE
            && let Some(path) = path_to_heavy(graph, id)
        {
            problems.push(format!("`{}` is before the leaves and reaches a heavy crate: {path}", package.name));
        }
    }
    if problems.is_empty() {
        return Ok(format!("{crates} crates in order"));
    }
    anyhow::bail!("the order of the crates is broken:\n  {}", problems.join("\n  "))
}

/// The line of a package, if it is one of ours that has one.
fn line_of(package: &str) -> Option<u8> {
    let folder = if package == "portcullis" { package } else { package.strip_prefix("portcullis-")? };
    rules::LINES.iter().find(|(name, _)| *name == folder).map(|(_, line)| *line)
}

/// What is wrong with one declared dependency, if anything.
fn breach(package: &str, line: u8, dependency: &str) -> Option<String> {
    if rules::TOOL_PACKAGES.contains(&dependency) {
        return Some(format!("`{package}` depends on `{dependency}`, a tool of the repository"));
    }
    if rules::TEST_PACKAGES.contains(&dependency) {
        return Some(format!("`{package}` depends on `{dependency}`, which is for tests: make it a dev-dependency"));
    }
    let other = line_of(dependency)?;
    if other < line {
        return None;
    }
    Some(format!("`{package}` (line {line}) depends on `{dependency}` (line {other}); only earlier lines are allowed"))
}

/// The shortest way from a package to a heavy crate, written with arrows.
fn path_to_heavy(graph: &Graph, from: &str) -> Option<String> {
    let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut queue = VecDeque::from([from]);
    while let Some(id) = queue.pop_front() {
        if rules::HEAVY.contains(&graph.name(id)) {
            let mut path = vec![graph.name(id)];
            let mut at = id;
            while let Some(previous) = came_from.get(at) {
                path.push(graph.name(previous));
                at = previous;
            }
            path.reverse();
            return Some(path.join(" -> "));
        }
        for next in graph.reaches.get(id).into_iter().flatten() {
            if next != from && !came_from.contains_key(next.as_str()) {
                came_from.insert(next, id);
                queue.push_back(next);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    type Dependency = (&'static str, Option<&'static str>);
    type Packages = &'static [(&'static str, &'static [Dependency])];
    type Case = (&'static str, Packages, Option<&'static str>);

    /// A document as `cargo metadata` prints it, from `(package, [(dependency, kind)])`.
    fn graph(packages: Packages) -> Result<Graph> {
        let dependency = |(name, kind): &(&str, Option<&str>)| json!({"name": name, "kind": kind});
        let edge = |(name, kind): &(&str, Option<&str>)| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let document = json!({
            "target_directory": "target",
            "workspace_members": packages.iter().map(|(name, _)| *name)
                .filter(|name| name.starts_with("portcullis") || *name == "xtask").collect::<Vec<_>>(),
            "packages": packages.iter().map(|(name, deps)| json!({
                "id": name, "name": name, "version": "0.1.0", "license": "MIT",
                "dependencies": deps.iter().map(dependency).collect::<Vec<Value>>(),
            })).collect::<Vec<Value>>(),
            "resolve": {"nodes": packages.iter().map(|(name, deps)| json!({
                "id": name, "deps": deps.iter().map(edge).collect::<Vec<Value>>(),
            })).collect::<Vec<Value>>()},
        });
        Graph::read(&document)
    }

    #[test]
    fn a_crate_depends_only_on_strictly_earlier_lines() -> Result<()> {
        let cases: &[Case] = &[
            ("earlier", &[("portcullis-base", &[]), ("portcullis-store", &[("portcullis-base", None)])], None),
            (
                "later",
                &[("portcullis-base", &[("portcullis-store", None)]), ("portcullis-store", &[])],
                Some("`portcullis-base` (line 1) depends on `portcullis-store` (line 4)"),
            ),
            (
                "the same line",
                &[("portcullis-contract", &[]), ("portcullis-event", &[("portcullis-contract", None)])],
                Some("`portcullis-event` (line 3) depends on `portcullis-contract` (line 3)"),
            ),
            (
                "ways in on each other",
                &[("portcullis-mcp", &[]), ("portcullis-server", &[("portcullis-mcp", None)])],
                Some("`portcullis-server` (line 11) depends on `portcullis-mcp` (line 11)"),
            ),
            (
                "dev-dependencies are exempt",
                &[("portcullis-base", &[("portcullis-store", Some("dev"))]), ("portcullis-store", &[])],
                None,
            ),
            (
                "build-dependencies are not",
                &[("portcullis-base", &[("portcullis-store", Some("build"))]), ("portcullis-store", &[])],
                Some("`portcullis-base` (line 1)"),
            ),
            ("a crate nobody gave a line", &[("portcullis-extra", &[])], Some("`portcullis-extra` has no line")),
            (
                "a tool of the repository",
                &[("xtask", &[]), ("portcullis-cli", &[("xtask", None)])],
                Some("`portcullis-cli` depends on `xtask`"),
            ),
            (
                "a crate for tests",
                &[("portcullis-store-testkit", &[]), ("portcullis-cli", &[("portcullis-store-testkit", None)])],
                Some("`portcullis-cli` depends on `portcullis-store-testkit`, which is for tests"),
            ),
            (
                "a crate for tests, in the tests of an earlier crate and in a tool",
                &[
                    ("portcullis-store", &[("portcullis-store-testkit", Some("dev"))]),
                    ("portcullis-store-testkit", &[("portcullis-store", None)]),
                    ("portcullis-simulation", &[("portcullis-store-testkit", None)]),
                ],
                None,
            ),
            (
                "heavy, through another crate",
                &[("portcullis-store", &[("pool", None)]), ("pool", &[("rusqlite", None)]), ("rusqlite", &[])],
                Some("portcullis-store -> pool -> rusqlite"),
            ),
            ("heavy in a leaf", &[("portcullis-store-sqlite", &[("rusqlite", None)]), ("rusqlite", &[])], None),
            ("heavy for tests only", &[("portcullis-model", &[("axum", Some("dev"))]), ("axum", &[])], None),
        ];
        for (name, packages, expected) in cases {
            let found = check(&graph(packages)?).err().map(|error| error.to_string());
            match (expected, found) {
                (None, None) => {}
                (Some(expected), Some(found)) => {
                    assert!(found.contains(expected), "{name}: {found}");
                }
                (expected, found) => panic!("{name}: expected {expected:?}, found {found:?}"),
            }
        }
        Ok(())
    }
}
