//! `cargo xtask test`: everything that must hold before a change lands, cheapest first.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::metadata::Graph;
use crate::process;
use crate::repo::Repo;
use crate::suite::{self, Counts};
use crate::{embed, laws, licences, mutant, order, paths, programs, text, toolchain};

pub const HELP: &str = "\
Everything that must hold before a change lands. Stops at the first failure.

Usage: cargo xtask test [--quick]

   1 toolchain    rustc, rustfmt, clippy, a C compiler
   2 format       cargo fmt --all --check
   3 crate order  each crate depends only on earlier ones, from cargo metadata
   4 licences     of every package in the graph, and forbidden crates
   5 text         no registry hosts, stubs, ignored tests, unsafe outside crates/sandbox, overlong files;
                  files that documents name are there
   6 mutants      every mutant fits the sources and its tests exist (`cargo xtask mutants` runs them)
   7 laws         every reference to a rule or section of docs/spec resolves, and docs/laws.md is current
   8 embed        examples/embed is short, light, and its lock file is current
   9 clippy       all targets, warnings denied
  10 tests        cargo nextest (else cargo test), then the examples in the documentation
  11 example      examples/embed builds and runs
  12 clean        the run changed nothing that `git status` shows

--quick: steps 1 to 10 without the examples in the documentation, for use while working. It is not enough to land.";

/// The last step of `--quick`.
const QUICK_STEPS: usize = 10;

struct Run {
    repo: Repo,
    quick: bool,
    status: String,
    graph: Option<Graph>,
    counts: Counts,
}

type Step = (&'static str, fn(&mut Run) -> Result<String>);

const STEPS: &[Step] = &[
    ("toolchain", |run| Ok(format!("{}, {}", toolchain::check(&run.repo)?, programs::check()?))),
    ("format", Run::format),
    ("crate order", |run| order::check(run.graph()?)),
    ("licences", |run| licences::check(run.graph()?)),
    ("text", |run| Ok(format!("{}, {}", text::check(&run.repo)?, paths::check(&run.repo)?))),
    ("mutants", |run| mutant::check(&run.repo)),
    ("laws", |run| laws::check(&run.repo)),
    ("embed", |run| embed::check(&run.repo)),
    ("clippy", Run::clippy),
    ("tests", Run::tests),
    ("example", |run| {
        let target = run.graph()?.target.clone();
        embed::run(&run.repo, &target)
    }),
    ("clean", Run::clean),
];

pub fn run(args: &[String]) -> Result<()> {
    let quick = match args {
        [] => false,
        [flag] if flag == "--quick" => true,
        _ => bail!("`cargo xtask test` takes --quick or nothing"),
    };
    let repo = Repo::find()?;
    let mut run = Run { status: repo.status()?, repo, quick, graph: None, counts: Counts::default() };
    let begun = Instant::now();
    let count = if quick { QUICK_STEPS } else { STEPS.len() };
    let mut took = Vec::new();
    for (index, (name, check)) in STEPS.iter().take(count).enumerate() {
        println!("== {}/{count} {name}", index + 1);
        let step = Instant::now();
        let said = check(&mut run);
        took.push((*name, step.elapsed()));
        match said {
            Ok(said) => println!("   ok: {said} ({})", seconds(step.elapsed())),
            Err(error) => {
                if run.counts != Counts::default() {
                    println!("tests: {}", run.counts);
                }
                println!("== stopped at step {}/{count} after {}", index + 1, seconds(begun.elapsed()));
                return Err(error.context(format!("step {}, {name}", index + 1)));
            }
        }
    }
    println!();
    for (name, time) in &took {
        println!("{name:>12} {:>9}", seconds(*time));
    }
    println!("{:>12} {:>9}", "all", seconds(begun.elapsed()));
    if quick {
        let left: Vec<&str> = STEPS[QUICK_STEPS..].iter().map(|(name, _)| *name).collect();
        println!("not run (--quick): doc tests, {}", left.join(", "));
    }
    println!("{} of {count} steps hold", took.len());
    println!("{}", run.counts);
    Ok(())
}

impl Run {
    fn graph(&mut self) -> Result<&Graph> {
        if self.graph.is_none() {
            self.graph = Some(Graph::load(&self.repo)?);
        }
        self.graph.as_ref().context("the graph was just loaded")
    }

    fn format(&mut self) -> Result<String> {
        process::run(self.repo.cargo().args(["fmt", "--all", "--check"]))
            .context("the sources are not formatted; `cargo fmt --all` formats them")?;
        Ok("formatted".to_owned())
    }

    fn clippy(&mut self) -> Result<String> {
        process::run(self.repo.cargo().args([
            "clippy",
            "--workspace",
            "--all-targets",
            "--locked",
            "--",
            "-D",
            "warnings",
        ]))?;
        Ok("no warnings".to_owned())
    }

    fn tests(&mut self) -> Result<String> {
        suite::run(&mut suite::tests(&self.repo), &mut self.counts)?;
        if !self.quick {
            suite::run(&mut suite::doc_tests(&self.repo), &mut self.counts)?;
        }
        if self.counts.passed == 0 {
            bail!("no test was run");
        }
        Ok(self.counts.to_string())
    }

    fn clean(&mut self) -> Result<String> {
        let now = self.repo.status()?;
        if now == self.status {
            return Ok("the work tree is as it was".to_owned());
        }
        let changed: Vec<&str> = now
            .lines()
            .filter(|line| !self.status.lines().any(|old| old == *line))
            .chain(self.status.lines().filter(|line| !now.lines().any(|new| new == *line)))
            .collect();
        bail!("the run changed the work tree (or someone edited meanwhile):\n  {}", changed.join("\n  "))
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
