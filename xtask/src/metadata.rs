//! What `cargo metadata` says, reduced to what the checks ask: packages, who declares whom, who reaches whom.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process;
use crate::repo::Repo;

/// One package of the resolved graph.
#[derive(Debug, Clone)]
pub struct Package {
    pub name: String,
    pub version: String,
    pub licence: Option<String>,
    /// Names it declares as normal or build dependencies, optional ones too.
    pub declared: Vec<String>,
    pub member: bool,
}

/// The workspace and everything it resolves to, with every feature on and for every platform.
#[derive(Debug, Default)]
pub struct Graph {
    /// By package id.
    pub packages: BTreeMap<String, Package>,
    /// Resolved normal and build dependencies, id to ids; dev-dependencies are left out.
    pub reaches: BTreeMap<String, Vec<String>>,
    pub target: PathBuf,
}

impl Graph {
    pub fn load(repo: &Repo) -> Result<Self> {
        let text =
            process::output(repo.cargo().args(["metadata", "--locked", "--all-features", "--format-version", "1"]))?;
        let value: Value = serde_json::from_str(&text).context("`cargo metadata` printed no JSON")?;
        Self::read(&value)
    }

    /// Reads the document of `cargo metadata --format-version 1`.
    pub fn read(value: &Value) -> Result<Self> {
        let members: Vec<&str> = list(value, "workspace_members")?.iter().filter_map(Value::as_str).collect();
        let mut graph = Self { target: PathBuf::from(text(value, "target_directory")?), ..Self::default() };
        for package in list(value, "packages")? {
            let id = text(package, "id")?;
            let declared = list(package, "dependencies")?
                .iter()
                .filter(|dependency| dependency["kind"] != "dev")
                .map(|dependency| Ok(text(dependency, "name")?.to_owned()))
                .collect::<Result<_>>()?;
            graph.packages.insert(
                id.to_owned(),
                Package {
                    name: text(package, "name")?.to_owned(),
                    version: text(package, "version")?.to_owned(),
                    licence: package["license"].as_str().map(str::to_owned),
                    declared,
                    member: members.contains(&id),
                },
            );
        }
        for node in list(&value["resolve"], "nodes")? {
            let mut targets = Vec::new();
            for dependency in list(node, "deps")? {
                let runs = list(dependency, "dep_kinds")?.iter().any(|kind| kind["kind"] != "dev");
                if runs {
                    targets.push(text(dependency, "pkg")?.to_owned());
                }
            }
            graph.reaches.insert(text(node, "id")?.to_owned(), targets);
        }
        Ok(graph)
    }

    pub fn members(&self) -> impl Iterator<Item = (&String, &Package)> {
        self.packages.iter().filter(|(_, package)| package.member)
    }

    pub fn name<'a>(&'a self, id: &'a str) -> &'a str {
        self.packages.get(id).map_or(id, |package| package.name.as_str())
    }
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    value[key].as_str().with_context(|| format!("`cargo metadata` has no text `{key}` where one is expected"))
}

fn list<'a>(value: &'a Value, key: &str) -> Result<&'a Vec<Value>> {
    value[key].as_array().with_context(|| format!("`cargo metadata` has no list `{key}` where one is expected"))
}
