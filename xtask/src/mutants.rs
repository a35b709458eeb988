//! `cargo xtask mutants`: whether the tests notice when the code is wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::metadata::Graph;
use crate::patch::Patch;
use crate::process;
use crate::repo::Repo;
use crate::scratch::Scratch;
use crate::suite;

pub const HELP: &str = "\
Applies each patch of mutants/ in turn; the tests it names must fail.

Usage: cargo xtask mutants [NAME...]

Works in a copy of the tree under target/mutants, never in yours. First the named tests are run unchanged and must pass.
Then, for each mutant: the patch is applied, the package's tests are built (a build that fails is not a kill), and every
test that the patch names must fail; one that runs for more than five minutes counts as failed. Prints a table and exits
with 1 if any mutant was not killed. NAME is a file of mutants/ without `.patch`; none means all. mutants/README.md says
how to add one. It is run before an issue is resolved, not in CI.";

/// A test that runs longer than this hangs.
const HANG: Duration = Duration::from_secs(300);
const POLL: Duration = Duration::from_millis(50);

/// Paths of tests by package and by the name a patch uses.
type Paths = BTreeMap<(String, String), Vec<String>>;

enum Verdict {
    Killed,
    Hung(String),
    Survived(String),
    NotApplied(String),
    NotBuilt,
}

impl Verdict {
    fn killed(&self) -> bool {
        matches!(self, Self::Killed | Self::Hung(_))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Killed => write!(f, "killed"),
            Self::Hung(test) => write!(f, "killed ({test} hung)"),
            Self::Survived(test) => write!(f, "SURVIVED: {test} passed"),
            Self::NotApplied(why) => write!(f, "DOES NOT APPLY: {why}"),
            Self::NotBuilt => write!(f, "DOES NOT BUILD"),
        }
    }
}

pub fn run(names: &[String]) -> Result<()> {
    let repo = Repo::find()?;
    let chosen = choose(Patch::all(&repo)?, names)?;
    if chosen.is_empty() {
        bail!("there are no mutants; mutants/README.md says how to write one");
    }
    let scratch = Scratch::open(&Graph::load(&repo)?.target)?;
    scratch.restore(&repo)?;
    let paths = baseline(&scratch, &chosen)?;
    let mut rows = Vec::new();
    for patch in &chosen {
        println!("== {}: {}", patch.name, patch.what);
        let begun = Instant::now();
        let verdict = attempt(&repo, &scratch, patch, &paths);
        scratch.restore(&repo)?;
        let verdict = verdict?;
        println!("   {verdict} ({:.1} s)", begun.elapsed().as_secs_f64());
        rows.push((patch, verdict, begun.elapsed()));
    }
    let width = rows.iter().map(|(patch, ..)| patch.name.len()).max();
    let width = width.unwrap_or_default();
    println!();
    for (patch, verdict, took) in &rows {
        let seconds = took.as_secs_f64();
        println!("{:width$}  {seconds:6.1} s  {verdict}", patch.name);
        if !verdict.killed() {
            println!("{:width$}            {}", "", scratch.log(&patch.name).display());
        }
    }
    let alive = rows.iter().filter(|(_, verdict, _)| !verdict.killed()).count();
    if alive > 0 {
        bail!("{alive} of {} mutants were not killed", rows.len());
    }
    let s = if rows.len() == 1 { "" } else { "s" };
    println!("{} mutant{s}, all killed", rows.len());
    Ok(())
}

fn choose(all: Vec<Patch>, names: &[String]) -> Result<Vec<Patch>> {
    if let Some(unknown) = names.iter().find(|name| !all.iter().any(|patch| patch.name == **name)) {
        bail!("there is no mutants/{unknown}.patch");
    }
    Ok(all.into_iter().filter(|patch| names.is_empty() || names.contains(&patch.name)).collect())
}

/// Runs every named test unchanged: it must exist and pass, or its failure later would prove nothing.
fn baseline(scratch: &Scratch, patches: &[Patch]) -> Result<Paths> {
    let mut wanted: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for patch in patches {
        let tests = wanted.entry(&patch.package).or_default();
        tests.extend(patch.tests.iter().map(String::as_str));
    }
    let mut paths = Paths::new();
    for (package, tests) in wanted {
        println!("== unchanged: {} tests of {package}", tests.len());
        let listed = process::output(cargo_test(scratch, package).args(["--", "--list", "--format", "terse"]))?;
        let mut all = Vec::new();
        for test in tests {
            let found = matching(&listed, test);
            if found.is_empty() {
                bail!("{package} has no test `{test}`");
            }
            all.extend(found.clone());
            paths.insert((package.to_owned(), test.to_owned()), found);
        }
        process::run(cargo_test(scratch, package).args(["--quiet", "--", "--exact"]).args(all))
            .context("a test that a mutant names fails on the unchanged tree")?;
    }
    Ok(paths)
}

/// The full paths (`module::name`) in a terse list of tests whose last parts are `test`.
fn matching(listed: &str, test: &str) -> Vec<String> {
    let found: BTreeSet<String> = listed
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .filter(|path| *path == test || path.ends_with(&format!("::{test}")))
        .map(str::to_owned)
        .collect();
    found.into_iter().collect()
}

fn attempt(repo: &Repo, scratch: &Scratch, patch: &Patch, paths: &Paths) -> Result<Verdict> {
    let log = scratch.log(&patch.name);
    File::create(&log).with_context(|| format!("{} cannot be written", log.display()))?;
    if let Err(error) = scratch.apply(repo, &patch.file()) {
        return Ok(Verdict::NotApplied(format!("{error:#}")));
    }
    let mut build = cargo_test(scratch, &patch.package);
    if !into_log(build.arg("--no-run"), &log)?.status()?.success() {
        return Ok(Verdict::NotBuilt);
    }
    let mut hung = None;
    for test in &patch.tests {
        let key = (patch.package.clone(), test.clone());
        let found = paths.get(&key).into_iter().flatten();
        let mut command = cargo_test(scratch, &patch.package);
        command.args(["--", "--exact"]).args(found);
        match finish(into_log(&mut command, &log)?)? {
            Some(true) => return Ok(Verdict::Survived(test.clone())),
            Some(false) => {}
            None => hung = Some(test.clone()),
        }
    }
    Ok(hung.map_or(Verdict::Killed, Verdict::Hung))
}

/// `--tests` is the library, the binaries and the integration tests, without the examples in the documentation.
fn cargo_test(scratch: &Scratch, package: &str) -> Command {
    let mut command = scratch.cargo();
    suite::seeded(command.args(["test", "--locked", "--package", package, "--tests"]));
    command
}

fn into_log<'a>(command: &'a mut Command, log: &Path) -> Result<&'a mut Command> {
    let file = File::options().append(true).open(log)?;
    Ok(command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file))
}

/// Whether it passed; nothing if it hung. It gets a process group of its own, so that the tests end with it.
fn finish(command: &mut Command) -> Result<Option<bool>> {
    let mut child = command.process_group(0).spawn()?;
    let begun = Instant::now();
    while begun.elapsed() < HANG {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status.success()));
        }
        thread::sleep(POLL);
    }
    let group = format!("-{}", child.id());
    process::run(Command::new("kill").args(["-KILL", "--", &group]))?;
    child.wait()?;
    Ok(None)
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
}
