//! The test binaries of a package, and the tests that each of them holds.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process;

/// One binary of `cargo test`: the library's own tests, a program's, or a file of `tests/`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum TestBinary {
    Library,
    Program(String),
    Integration(String),
}

impl TestBinary {
    /// Builds what a `cargo test` command asks for and lists the tests of each binary.
    pub fn list(command: &mut Command) -> Result<BTreeMap<Self, String>> {
        command.args(["--no-run", "--message-format", "json-render-diagnostics"]).stderr(Stdio::inherit());
        let mut listed = BTreeMap::new();
        for line in process::output(command)?.lines() {
            let message: Value = serde_json::from_str(line).context("cargo printed a line that is not JSON")?;
            if let Some((binary, program)) = Self::built(&message) {
                let tests = process::output(Command::new(program).args(["--list", "--format", "terse"]))?;
                listed.insert(binary, tests);
            }
        }
        Ok(listed)
    }

    /// The binary and its path, if a message of cargo says that one with tests was built.
    fn built(message: &Value) -> Option<(Self, &str)> {
        if message["profile"]["test"] != true {
            return None;
        }
        let program = message["executable"].as_str()?;
        let name = message["target"]["name"].as_str()?.to_owned();
        let binary = match message["target"]["kind"][0].as_str()? {
            "bin" => Self::Program(name),
            "test" => Self::Integration(name),
            _ => Self::Library,
        };
        Some((binary, program))
    }

    /// What tells `cargo test` to build and run this one.
    pub fn arguments(&self) -> Vec<&str> {
        match self {
            Self::Library => vec!["--lib"],
            Self::Program(name) => vec!["--bin", name],
            Self::Integration(name) => vec!["--test", name],
        }
    }
}

/// The full paths (`module::name`) in a terse list of tests whose last parts are `test`.
pub fn matching(listed: &str, test: &str) -> Vec<String> {
    let found: BTreeSet<String> = listed
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .filter(|path| *path == test || path.ends_with(&format!("::{test}")))
        .map(str::to_owned)
        .collect();
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_matched_by_whole_name_in_any_module() {
        let listed = "a::l01_x: test\nl01_x: test\na::l01_xy: test\nb::not_l01_x: test\nbench: benchmark\n";
        assert_eq!(matching(listed, "l01_x"), ["a::l01_x", "l01_x"]);
        assert_eq!(matching(listed, "a::l01_x"), ["a::l01_x"]);
        assert!(matching(listed, "l01").is_empty());
    }

    #[test]
    fn binaries_with_tests_are_known_from_the_messages_of_cargo() {
        let message = |kind: &str, test: bool, executable: Option<&str>| {
            serde_json::json!({
                "reason": "compiler-artifact",
                "target": { "kind": [kind], "name": "x" },
                "profile": { "test": test },
                "executable": executable,
            })
        };
        let built = |kind, test, executable| {
            let message = message(kind, test, executable);
            TestBinary::built(&message).map(|(binary, _)| binary.arguments().join(" "))
        };
        assert_eq!(built("lib", true, Some("/t")).as_deref(), Some("--lib"));
        assert_eq!(built("bin", true, Some("/t")).as_deref(), Some("--bin x"));
        assert_eq!(built("test", true, Some("/t")).as_deref(), Some("--test x"));
        assert_eq!(built("bin", false, Some("/t")), None);
        assert_eq!(built("lib", false, None), None);
        assert!(TestBinary::built(&serde_json::json!({ "reason": "build-finished", "success": true })).is_none());
    }
}
