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
use crate::mutant::{self, Mutant};
use crate::process;
use crate::repo::Repo;
use crate::scratch::Scratch;
use crate::suite;
use crate::test_binary::{TestBinary, matching};

pub const HELP: &str = "\
Makes each wrong change of mutants/ in turn; the tests it names must fail.

Usage: cargo xtask mutants [NAME... | --crate CRATE... | --check]

Works in a copy of the tree under target/mutants, never in yours. First the named tests are run on the unchanged copy and
must pass. Then, for each mutant: the change is made, the test binaries that hold its tests are built (a build that fails
is not a kill), and every test that it names must fail; one that runs for more than two minutes counts as failed. Prints a
table with the time of each and exits with 1 if any mutant was not killed.

  NAME           one mutant
  --crate CRATE  the mutants of mutants/CRATE.toml
  --check        builds nothing; only checks that every mutant fits the sources, as `cargo xtask test` does

Without an argument all are tried. mutants/README.md says how to add one. The command is run before an issue is resolved,
not in CI.";

/// A test that runs longer than this hangs: the slowest that a mutant names takes a few seconds.
const HANG: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(50);

/// Where a named test is found: which binaries hold it, and by which full names.
#[derive(Debug, Default)]
struct Place {
    binaries: BTreeSet<TestBinary>,
    paths: Vec<String>,
}

/// By package and by the name that a mutant uses.
type Places = BTreeMap<(String, String), Place>;

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

pub fn run(args: &[String]) -> Result<()> {
    let begun = Instant::now();
    let repo = Repo::find()?;
    if matches!(args, [only] if only == "--check") {
        println!("{}", mutant::check(&repo)?);
        return Ok(());
    }
    let chosen = choose(Mutant::all(&repo)?, args)?;
    if chosen.is_empty() {
        bail!("there are no mutants; mutants/README.md says how to write one");
    }
    let scratch = Scratch::open(&Graph::load(&repo)?.target)?;
    scratch.restore(&repo)?;
    let places = control(&scratch, &chosen)?;
    let mut rows = Vec::new();
    for mutant in &chosen {
        println!("== {}/{}: {}", mutant.of, mutant.name, mutant.what);
        let begun = Instant::now();
        let verdict = attempt(&scratch, mutant, &places);
        scratch.restore(&repo)?;
        let verdict = verdict?;
        println!("   {verdict} ({:.1} s)", begun.elapsed().as_secs_f64());
        rows.push((mutant, verdict, begun.elapsed()));
    }
    let width = rows.iter().map(|(mutant, ..)| mutant.name.len()).max();
    let width = width.unwrap_or_default();
    println!();
    for (mutant, verdict, took) in &rows {
        let seconds = took.as_secs_f64();
        println!("{:width$}  {seconds:6.1} s  {verdict}", mutant.name);
        if !verdict.killed() {
            println!("{:width$}            {}", "", scratch.log(&mutant.name).display());
        }
    }
    let minutes = begun.elapsed().as_secs_f64() / 60.0;
    let alive = rows.iter().filter(|(_, verdict, _)| !verdict.killed()).count();
    if alive > 0 {
        bail!("{alive} of {} mutants were not killed ({minutes:.1} min)", rows.len());
    }
    let s = if rows.len() == 1 { "" } else { "s" };
    println!("{} mutant{s}, all killed ({minutes:.1} min)", rows.len());
    Ok(())
}

/// The mutants that the arguments name, one by one or by their crates; all without arguments.
fn choose(all: Vec<Mutant>, args: &[String]) -> Result<Vec<Mutant>> {
    let mut names = BTreeSet::new();
    let mut crates = BTreeSet::new();
    let mut args = args.iter().map(String::as_str).peekable();
    let everything = args.peek().is_none();
    while let Some(arg) = args.next() {
        if arg == "--crate" {
            let of = args.next().context("`--crate` needs the name of a folder under crates/")?;
            if !all.iter().any(|mutant| mutant.of == of) {
                bail!("there are no mutants of `{of}`: mutants/{of}.toml has none, or does not exist");
            }
            crates.insert(of);
        } else if all.iter().any(|mutant| mutant.name == arg) {
            names.insert(arg);
        } else {
            bail!("there is no mutant `{arg}`; `--crate CRATE` takes those of a crate");
        }
    }
    let wanted = |mutant: &Mutant| everything || names.contains(&*mutant.name) || crates.contains(&*mutant.of);
    Ok(all.into_iter().filter(wanted).collect())
}

/// Runs every named test unchanged, once a package: it must exist and pass, or its failure later would prove nothing.
fn control(scratch: &Scratch, mutants: &[Mutant]) -> Result<Places> {
    let mut wanted: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for mutant in mutants {
        wanted.entry(mutant.package()).or_default().extend(mutant.tests.iter().map(String::as_str));
    }
    let mut places = Places::new();
    for (package, tests) in wanted {
        println!("== unchanged: {} tests of {package}", tests.len());
        let begun = Instant::now();
        let listed = TestBinary::list(cargo_test(scratch, &package).arg("--tests"))?;
        let mut all = Place::default();
        for test in tests {
            let mut place = Place::default();
            for (binary, names) in &listed {
                let found = matching(names, test);
                if !found.is_empty() {
                    place.binaries.insert(binary.clone());
                    place.paths.extend(found);
                }
            }
            if place.paths.is_empty() {
                bail!("{package} has no test `{test}`");
            }
            all.binaries.extend(place.binaries.iter().cloned());
            all.paths.extend(place.paths.iter().cloned());
            places.insert((package.clone(), test.to_owned()), place);
        }
        let mut command = cargo_test(scratch, &package);
        command.args(all.binaries.iter().flat_map(TestBinary::arguments));
        process::run(command.args(["--quiet", "--no-fail-fast", "--", "--exact"]).args(all.paths))
            .context("a test that a mutant names fails on the unchanged tree")?;
        println!("   passed ({:.1} s)", begun.elapsed().as_secs_f64());
    }
    Ok(places)
}

fn attempt(scratch: &Scratch, mutant: &Mutant, places: &Places) -> Result<Verdict> {
    let log = scratch.log(&mutant.name);
    File::create(&log).with_context(|| format!("{} cannot be written", log.display()))?;
    if let Err(error) = scratch.apply(mutant) {
        return Ok(Verdict::NotApplied(format!("{error:#}")));
    }
    let package = mutant.package();
    let place = |test: &String| {
        let place = places.get(&(package.clone(), test.clone()));
        place.with_context(|| format!("`{test}` was not run unchanged"))
    };
    let mut binaries = BTreeSet::new();
    for test in &mutant.tests {
        binaries.extend(&place(test)?.binaries);
    }
    let mut build = cargo_test(scratch, &package);
    build.args(binaries.into_iter().flat_map(TestBinary::arguments)).arg("--no-run");
    if !into_log(&mut build, &log)?.status()?.success() {
        return Ok(Verdict::NotBuilt);
    }
    let mut hung = None;
    for test in &mutant.tests {
        let Place { binaries, paths } = place(test)?;
        let mut command = cargo_test(scratch, &package);
        command.args(binaries.iter().flat_map(TestBinary::arguments)).args(["--", "--exact"]).args(paths);
        match finish(into_log(&mut command, &log)?)? {
            Some(true) => return Ok(Verdict::Survived(test.clone())),
            Some(false) => {}
            None => hung = Some(test.clone()),
        }
    }
    Ok(hung.map_or(Verdict::Killed, Verdict::Hung))
}

fn cargo_test(scratch: &Scratch, package: &str) -> Command {
    let mut command = scratch.cargo();
    suite::seeded(command.args(["test", "--locked", "--package", package]));
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
