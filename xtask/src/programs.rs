//! Programs that tests run as they are found on a machine. What can be installed is installed; the rest is named.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::process;

/// Each with the Debian package that brings it. The read-only hand takes programs from `/usr/bin` and `/bin` alone.
const NEEDED: &[(&str, &str)] = &[
    ("file", "file"),
    ("hexdump", "bsdextrautils"),
    ("jq", "jq"),
    ("rev", "util-linux"),
    ("rg", "ripgrep"),
    ("strings", "binutils"),
    ("tree", "tree"),
    ("xxd", "xxd"),
];

pub fn check() -> Result<String> {
    let mut packages = missing();
    let root = process::output(Command::new("id").arg("-u")).is_ok_and(|uid| uid.trim() == "0");
    if !packages.is_empty() && root && Path::new("/usr/bin/apt-get").exists() {
        println!("installing the Debian packages {}", packages.join(" "));
        process::run(Command::new("apt-get").args(["update", "--quiet"]))?;
        process::run(
            Command::new("apt-get")
                .args(["install", "--yes", "--quiet", "--no-install-recommends"])
                .args(&packages)
                .env("DEBIAN_FRONTEND", "noninteractive"),
        )?;
        packages = missing();
    }
    if !packages.is_empty() {
        bail!("tests run programs that are not here: install the Debian packages {}", packages.join(" "));
    }
    Ok(format!("{} programs that tests run", NEEDED.len()))
}

fn missing() -> Vec<&'static str> {
    let here = |program: &str| ["/usr/bin", "/bin"].iter().any(|folder| Path::new(folder).join(program).exists());
    NEEDED.iter().filter(|(program, _)| !here(program)).map(|(_, package)| *package).collect()
}
