//! `examples/embed`, a crate outside the workspace: someone who embeds Portcullis, seen from their side.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::process;
use crate::repo::Repo;
use crate::rules;

const MANIFEST: &str = "examples/embed/Cargo.toml";
const MAIN: &str = "examples/embed/src/main.rs";

/// Fails unless the example is short and light and its lock file knows what our crates need. Compiles nothing.
pub fn check(repo: &Repo) -> Result<String> {
    if !repo.path(MANIFEST).is_file() {
        bail!("{MANIFEST} does not exist; the example is a part of the product and is not skipped");
    }
    let source = fs::read_to_string(repo.path(MAIN)).with_context(|| format!("{MAIN} cannot be read"))?;
    let lines = source.lines().count();
    if lines >= rules::EMBED_LINES {
        bail!("{MAIN} has {lines} lines; an embedder's first program must stay below {}", rules::EMBED_LINES);
    }
    // `cargo fmt --all` of the workspace does not come here.
    process::run(repo.cargo().args(["fmt", "--check", "--manifest-path", MANIFEST]))
        .context("examples/embed is not formatted")?;
    let tree = process::output(repo.cargo().args([
        "tree",
        "--locked",
        "--manifest-path",
        MANIFEST,
        "--edges",
        "normal,build",
        "--prefix",
        "none",
    ]))
    .with_context(|| {
        format!("the example's lock file may be stale: `cargo tree --manifest-path {MANIFEST}` brings it up to date")
    })?;
    if let Some(found) = heavy(&tree) {
        bail!(
            "examples/embed builds `{found}`, which an embedder must not need (`cargo tree --manifest-path {MANIFEST} -i {found}` says why)"
        );
    }
    Ok(format!("{lines} lines, {} packages", tree.lines().count()))
}

/// Builds the example and runs it; `target` is the target directory of the workspace.
pub fn run(repo: &Repo, target: &Path) -> Result<String> {
    process::run(
        repo.cargo()
            .args(["run", "--locked", "--manifest-path", MANIFEST])
            .env("CARGO_TARGET_DIR", target.join("embed")),
    )?;
    Ok("ran".to_owned())
}

/// The first unwanted crate in `cargo tree --prefix none`, where each line is `name vX.Y.Z …`.
fn heavy(tree: &str) -> Option<&str> {
    tree.lines().filter_map(|line| line.split_whitespace().next()).find(|name| rules::EMBED_ABSENT.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heavy_crate_is_found_by_its_whole_name() {
        assert_eq!(heavy("embed v0.1.0 (path)\nserde v1.0.0\n"), None);
        assert_eq!(heavy("embed v0.1.0\naxum-core v0.5.0\n"), None);
        assert_eq!(heavy("embed v0.1.0\naxum v0.8.0 (*)\n"), Some("axum"));
    }
}
