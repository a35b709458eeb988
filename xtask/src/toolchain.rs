//! Whether the machine has what the build needs. What can be installed is installed; the rest is named.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process;
use crate::repo::Repo;

/// The oldest compiler that builds the workspace (`rust-version` in Cargo.toml).
const NEEDED: &str = env!("CARGO_PKG_RUST_VERSION");

pub fn check(repo: &Repo) -> Result<String> {
    let found = process::output(Command::new("rustc").arg("--version"))
        .with_context(|| format!("rustc is not on the path; Portcullis needs rustc {NEEDED}"))?;
    if version(&found)? < version(NEEDED)? {
        bail!(
            "Portcullis needs rustc {NEEDED} or newer and this is `{}`; `rustup update stable` brings it",
            found.trim()
        );
    }
    for (subcommand, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if !process::works(repo.cargo().args([subcommand, "--version"])) {
            bail!("`cargo {subcommand}` is missing; `rustup component add {component}` brings it");
        }
    }
    let compiler = c_compiler()?;
    Ok(format!("{}, C compiler `{compiler}`", found.trim()))
}

/// SQLite and ring are compiled from C.
fn c_compiler() -> Result<String> {
    if let Some(name) = found_compiler() {
        return Ok(name);
    }
    let root = process::output(Command::new("id").arg("-u")).is_ok_and(|uid| uid.trim() == "0");
    if root && Path::new("/usr/bin/apt-get").exists() {
        println!("no C compiler; installing the Debian packages gcc and libc6-dev");
        process::run(Command::new("apt-get").args(["update", "--quiet"]))?;
        process::run(
            Command::new("apt-get")
                .args(["install", "--yes", "--quiet", "--no-install-recommends"])
                .args(["gcc", "libc6-dev"])
                .env("DEBIAN_FRONTEND", "noninteractive"),
        )?;
        if let Some(name) = found_compiler() {
            return Ok(name);
        }
    }
    bail!("a C compiler is missing: install `cc` (Debian: the packages gcc and libc6-dev) or set CC to one")
}

fn found_compiler() -> Option<String> {
    let named = std::env::var("CC").ok().filter(|name| !name.is_empty());
    named
        .into_iter()
        .chain(["cc", "gcc", "clang"].map(str::to_owned))
        .find(|name| process::works(Command::new(name).arg("--version")))
}

/// Major and minor version of `1.95`, `1.95.0` or `rustc 1.95.0-nightly (…)`.
fn version(text: &str) -> Result<(u32, u32)> {
    let number = text
        .split_whitespace()
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        .with_context(|| format!("no version in `{}`", text.trim()))?;
    let mut parts = number.split(['.', '-']).map(str::parse::<u32>);
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => Ok((major, minor)),
        _ => bail!("`{number}` is not a version"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() -> Result<()> {
        assert_eq!(version("rustc 1.95.0 (59807616e 2026-04-14)")?, (1, 95));
        assert_eq!(version("rustc 1.100.0-nightly (abc 2027-01-01)")?, (1, 100));
        assert!(version("1.9")? < version("1.95")?);
        assert!(version("1.100.0")? > version("1.95")?);
        assert!(version("rustc").is_err());
        Ok(())
    }
}
