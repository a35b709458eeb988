//! Words of test runners that are known to leave no test out: anything else may.
//!
//! Lists of what is harmless, not of what is not: a runner has more ways to run less than anybody lists. A run with a word
//! that stands here nowhere is `narrow`; that supports no "all tests pass", and accuses nobody.

/// A runner: its names, options that stand alone, and options that take a value (as `--a=b`, `--a b`, and `-ab` for a
/// short one), each in one text with spaces between them.
struct Runner {
    names: &'static str,
    bare: &'static str,
    valued: &'static str,
}

/// Whether a list has this word.
fn has(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|one| one == word)
}

const RUNNERS: [Runner; 20] = [
    Runner {
        names: "cargo",
        bare: "--workspace --all --all-features --no-default-features --all-targets --tests --release -r --locked \
         --frozen --offline -q --quiet -v -vv --verbose --no-fail-fast --no-capture --nocapture --keep-going \
         --future-incompat-report --timings",
        valued: "--features -F --target --profile --cargo-profile -P -j --jobs --target-dir --color --message-format \
         --test-threads --retries --failure-output --success-output --status-level --final-status-level \
         --show-progress",
    },
    Runner {
        names: "pytest py.test",
        bare: "-q -qq -v -vv -vvv -s -x -l -ra -rA -rs -rf -rx -rfE --quiet --verbose --exitfirst --ff \
         --failed-first --nf --new-first --showlocals --no-header --no-summary --strict-markers \
         --strict-config --strict --cov --no-cov --full-trace --disable-warnings --cache-clear \
         --doctest-modules",
        valued: "--tb --color --durations --cov --cov-report --cov-config --cov-fail-under --junitxml --junit-xml -n \
         --numprocesses --dist --timeout -W --basetemp --log-level --log-cli-level --capture --maxfail \
         --asyncio-mode --verbosity --show-capture",
    },
    Runner { names: "unittest nose2", bare: "-v -q -b -f --verbose --quiet --buffer --failfast", valued: "" },
    Runner {
        names: "go",
        bare: "-v -race -cover -json -failfast -x -trimpath -a -benchmem",
        valued: "-timeout -p -parallel -cpu -coverprofile -covermode -coverpkg -shuffle -mod -vet",
    },
    Runner {
        names: "jest vitest ava mocha",
        bare: "--coverage --ci --verbose --silent --runInBand -i --no-cache --colors --color --no-color --bail -b \
         --detectOpenHandles --forceExit --run --no-coverage --recursive --exit --no-watch --watch=false \
         --watchAll=false --no-file-parallelism --parallel --check-leaks --no-bail",
        valued: "--maxWorkers -w --reporter --reporters -R --testTimeout --timeout --pool --coverageReporters \
         --coverage.enabled --coverageDirectory --environment --env --jobs -j",
    },
    Runner {
        names: "playwright cypress",
        bare: "--headed --quiet --forbid-only",
        valued: "--reporter --workers --timeout",
    },
    Runner {
        names: "npm pnpm yarn bun",
        bare: "--silent -s --verbose --coverage --ci --runInBand --run --no-color --color --watch=false \
         --watchAll=false --no-watch --no-watchAll --quiet --colors --bail --no-coverage --detectOpenHandles \
         --forceExit --no-cache -v",
        valued: "--loglevel --reporter --reporters --maxWorkers --testTimeout --timeout --max-workers",
    },
    Runner {
        names: "deno",
        bare: "-A --allow-all --quiet -q --parallel --no-check --trace-leaks --fail-fast --locked",
        valued: "--allow-read --allow-write --allow-net --allow-env --allow-run --coverage --reporter",
    },
    Runner {
        names: "make gmake",
        bare: "-k -s -B -w -j -R -r --keep-going --silent --quiet --always-make --no-print-directory \
         --print-directory --jobs -O --output-sync",
        valued: "-j --jobs -C --directory -l -O --output-sync",
    },
    Runner { names: "just task", bare: "-q --quiet -v --verbose -s --silent --yes", valued: "--color --output" },
    Runner { names: "rake", bare: "-q -s -v --quiet --silent --verbose --trace", valued: "-j --jobs" },
    Runner {
        names: "mvn mvnw",
        bare: "-q -B -e -U -o -V -X -ff -fae -ntp --quiet --batch-mode --errors --offline --update-snapshots \
         --no-transfer-progress --fail-fast --fail-at-end --debug --show-version",
        valued: "-T --threads -s --settings --color",
    },
    Runner {
        names: "gradle gradlew",
        bare: "-q -i -d -s -S -w --quiet --info --debug --stacktrace --full-stacktrace --warn --no-daemon --daemon \
         --parallel --no-parallel --offline --rerun-tasks --build-cache --no-build-cache --scan --no-scan \
         --continue --configuration-cache --no-configuration-cache --rerun --refresh-dependencies",
        valued: "--console --max-workers --warning-mode",
    },
    Runner {
        names: "ctest",
        bare: "-V -VV -Q --verbose --extra-verbose --output-on-failure --quiet --progress -j",
        valued: "-j --parallel --timeout -C --build-config --test-dir --output-log -O --output-junit",
    },
    Runner { names: "tox nox", bare: "-q -v -vv -r --recreate -p --quiet --verbose -R", valued: "--color" },
    Runner {
        names: "rspec",
        bare: "-b --backtrace --fail-fast --color --no-color -c -w --profile --force-color",
        valued: "-f --format --seed --order -r --require -o --out",
    },
    Runner {
        names: "phpunit pest bats busted",
        bare: "--verbose -v --testdox --no-coverage --stop-on-failure -r --recursive -t --tap -T",
        valued: "--colors --coverage-text --log-junit -j --jobs",
    },
    Runner {
        names: "dotnet",
        bare: "--nologo --no-build --no-restore --blame",
        valued: "-c --configuration -v --verbosity --logger -l --collect --results-directory",
    },
    Runner { names: "node", bare: "--test --experimental-test-coverage --no-warnings", valued: "--test-reporter" },
    Runner {
        names: "swift zig mix stack cabal bazel dune",
        bare: "--parallel --verbose -v -q --trace --color --cover --force --no-start --warnings-as-errors",
        valued: "--max-cases --seed --test_output -c -j --summary --jobs",
    },
];

/// What the tests of cargo take behind `--`.
const OF_LIBTEST: Runner = Runner {
    names: "",
    bare: "--nocapture --no-capture --show-output -q --quiet --include-ignored --report-time",
    valued: "--test-threads --color --format -Z",
};

/// Whether all options of a run of tests are known to leave none out. `argv` names the runner, perhaps behind `npx`,
/// `poetry run` and the like; a script of the project has words of its own.
pub(super) fn are_harmless(argv: &[String]) -> bool {
    let base = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    let found = (0..words.len().min(6)).find_map(|at| {
        let name = base(words[at]);
        RUNNERS.iter().find(|runner| has(runner.names, &name)).map(|runner| (at, runner))
    });
    let Some((at, runner)) = found else { return true };
    let rest = &words[at + 1..];
    let (own, behind) = rest.split_at(rest.iter().position(|word| *word == "--").unwrap_or(rest.len()));
    let behind = behind.get(1..).unwrap_or_default();
    let of_behind = if has(runner.names, "cargo") { &OF_LIBTEST } else { runner };
    all_known(own, runner) && all_known(behind, of_behind) && variables(own, runner)
}

fn all_known(words: &[&str], Runner { names, bare, valued }: &Runner) -> bool {
    let short = |word: &str| word.len() > 2 && !word.starts_with("--");
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        if !word.starts_with('-') || *word == "-" {
            continue;
        }
        let name = word.split('=').next().unwrap_or(word);
        let positive =
            || word.split_once('=').is_some_and(|(_, count)| count.parse::<u32>().is_ok_and(|count| count > 0));
        // `-qx`: each of its letters.
        let cluster = || short(word) && word[1..].chars().all(|letter| has(bare, &format!("-{letter}")));
        let attached = || {
            short(word) && valued.split_ascii_whitespace().any(|option| option.len() == 2 && word.starts_with(option))
        };
        // `go test -count=1` runs them anew, `-count=0` runs none.
        if has(bare, word) || cluster() || (has(names, "go") && name == "-count" && positive()) {
            // A number behind `make -j` is its own.
            let number = words.peek().is_some_and(|next| next.parse::<u32>().is_ok());
            if has(valued, word) && number {
                words.next();
            }
        } else if has(valued, name) {
            if name == *word {
                words.next();
            }
        } else if !attached() {
            return false;
        }
    }
    true
}

/// `make test SHELL=/bin/true`: what is set in the words of a run.
fn variables(words: &[&str], runner: &Runner) -> bool {
    let sets = |word: &&&str| !word.starts_with('-') && word.contains('=');
    let built = ["make", "just", "rake"].iter().any(|name| has(runner.names, name));
    !built || words.iter().filter(sets).all(|word| is_harmless_variable(word))
}

/// Variables that leave no test out, by their names.
const HARMLESS: &str = "CI RUST_LOG RUST_BACKTRACE NODE_ENV RAILS_ENV APP_ENV FORCE_COLOR NO_COLOR CLICOLOR PYTHONPATH \
         PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONHASHSEED PYTHONWARNINGS DEBUG TZ LANG LANGUAGE \
         GOMAXPROCS CGO_ENABLED CARGO_TERM_COLOR CARGO_INCREMENTAL CARGO_TARGET_DIR CARGO_BUILD_JOBS \
         RUST_TEST_THREADS DJANGO_SETTINGS_MODULE TERM COLUMNS HOME TMPDIR V VERBOSE JOBS SOURCE_DATE_EPOCH";

/// Endings of names of variables that say where something is, or with which key.
const WHERE: [&str; 9] = ["_URL", "_URI", "_DSN", "_HOST", "_PORT", "_USER", "_PASSWORD", "_KEY", "_TOKEN"];

/// Whether `NAME=value` leaves no test out.
pub(super) fn is_harmless_variable(word: &str) -> bool {
    let (name, value) = word.split_once('=').unwrap_or((word, ""));
    let name = name.trim_end_matches('+');
    // Folders of tools beside those that there are.
    let tools = |part: &str| matches!(part, "$PATH" | "${PATH}") || part.ends_with("bin") || part.ends_with("shims");
    if name == "PATH" {
        // A word that is not literal is given as it is written.
        let value = value.replace('"', "");
        return value.contains("PATH") && value.split(':').all(tools);
    }
    has(HARMLESS, name) || name.starts_with("LC_") || WHERE.iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l76_what_is_not_known_to_leave_nothing_out_may_leave_tests_out() {
        let is = |line: &str| are_harmless(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        for line in [
            "cargo test",
            "cargo +nightly test --workspace --all-features -j 4 -- --nocapture --test-threads 1",
            "cargo nextest run --no-fail-fast",
            "pytest -q",
            "pytest -xvs --tb=short tests",
            "python3 -m pytest -x --cov=src -n auto",
            "go test -v -race -count=1 ./...",
            "npx jest --coverage --ci",
            "npm test --silent",
            "npm test -- --coverage --watchAll=false",
            "make -j4 -k test",
            "make -j 4 V=1 test",
            "make -C sub test",
            "mvn -q -B -T 4 test",
            "./gradlew test --no-daemon --console=plain",
            "ctest --output-on-failure -j8",
            "bundle exec rspec --format doc",
            "sh test.sh --whatever",
        ] {
            assert!(is(line), "{line}");
        }
        for line in [
            "make -f /dev/null test",
            "make test SHELL=/bin/true",
            "make -o test test",
            "cargo test --bins",
            "cargo test --examples",
            "cargo test -- --ignored",
            "cargo test --manifest-path other/Cargo.toml",
            "pytest -c /dev/null",
            "npm test --workspace=a",
            "npm test -- --passWithNoTests",
            "go test -count=0 ./...",
            "mvn -pl a test",
            "tox -e lint",
            "nox -s lint",
            "rspec --tag x",
            "rspec --only-failures",
            "ctest -T Configure",
            "ctest --rerun-failed",
            "gradle -p other test",
        ] {
            assert!(!is(line), "{line}");
        }
        for word in ["CI=1", "LC_ALL=C", "DATABASE_URL=postgres://x", "RUST_LOG+=x", "PATH=$HOME/.cargo/bin:$PATH"] {
            assert!(is_harmless_variable(word), "{word}");
        }
        for word in ["MAKEFLAGS=-n", "PYTEST_ADDOPTS=--co", "GOFLAGS=-run=NONE", "PATH=/x", "MAVEN_ARGS=-DskipTests"] {
            assert!(!is_harmless_variable(word), "{word}");
        }
    }
}
