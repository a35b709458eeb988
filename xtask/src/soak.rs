//! `cargo xtask soak`: the same tests, many more times.

use anyhow::Result;

use crate::process;
use crate::repo::Repo;
use crate::suite;

/// Instead of 256.
const CASES: &str = "100000";

pub const HELP: &str = "\
Runs the tests with PORTCULLIS_SOAK=1.

Usage: cargo xtask soak [ARGS...]

Tests that repeat something (property cases, kills, races, seeds) read PORTCULLIS_SOAK and multiply their counts; the
others run as ever. ARGS go to the runner (cargo nextest if installed, else cargo test), for example a name to run only
matching tests: `cargo xtask soak fuzz_` runs the fuzz targets alone (command parser, path resolver, shell framing, the
wire to the launcher) with PROPTEST_CASES=100000. May run for hours; not a part of CI.

Property tests draw other cases each time, from a seed that is printed. PROPTEST_RNG_SEED in the environment brings them
again, here and in `cargo xtask test`.

Without ARGS the tests of the feature `otel` are run first: they need a build of their own, which is too long for
`cargo xtask test`. `cargo xtask soak otel` runs them alone.";

pub fn run(args: &[String]) -> Result<()> {
    let repo = Repo::find()?;
    let only_otel = args == ["otel"];
    if args.is_empty() || only_otel {
        process::run(&mut suite::otel_tests(&repo))?;
    }
    if only_otel {
        return Ok(());
    }
    // Property tests that name no count of their own, all `fuzz_` targets among them, take it from here.
    let tests = &mut suite::tests(&repo);
    suite::seeded_anew(tests);
    process::run(tests.args(args).env("PORTCULLIS_SOAK", "1").env("PROPTEST_CASES", CASES))
}
