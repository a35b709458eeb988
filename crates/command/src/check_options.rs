//! Words of test runners with which no test runs, and words that are known to leave no test out: anything else may.
//!
//! The second is a list of what is harmless, because a runner has more ways to run less than anybody lists. A run with a
//! word that stands here nowhere supports no "all tests pass", and accuses nobody.

use super::unwrap::base;

/// Whether a list of words has this word.
pub(super) fn has(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|one| one == word)
}

/// Options with which no test runs, or with which a run ends well whatever its tests do: of any program, and of some.
const IDLE: &str = "--help -h --version --fix --write --list --collect-only --co --cache-show --dump --dry-run \
    --list-tests --listTests --notest --fixtures --markers --setup-plan --setup-only --showConfig --show-config --init \
    --ignore-scripts --if-present --just-print --recon --touch --question --ignore-errors --show --prereqs --tasks \
    --summary --evaluate --show-only --print-labels --listenvs --devenv --list-sessions --install-only --fail-never \
    --clearCache --list-suites --list-groups --list-files --no-run -list -exec -Dmaven.test.failure.ignore";
const IDLE_OF: [(&str, &str); 8] = [
    ("make gmake just task ninja rake", "-n -i -t -q -v -l -T -P -V"),
    ("cargo pytest py.test", "-V"),
    ("npm yarn pnpm bun node mvn mvnw gradle gradlew", "-v -fn -m"),
    ("go", "-c -n"),
    ("ctest", "-N"),
    ("tox nox", "-l -a list config devenv"),
    ("jest vitest", "list init bench"),
    ("dotnet", "-t"),
];

/// Whether these words only look at tests, or cannot fail by them.
pub(super) fn is_idle(name: &str, rest: &[&str]) -> bool {
    // What stands behind `--` is for the tests.
    let mut own = rest.iter().take_while(|word| **word != "--");
    own.any(|word| {
        let plain = word.split('=').next().unwrap_or(word);
        let letters = word.strip_prefix('-').filter(|letters| letters.bytes().all(|byte| byte.is_ascii_alphabetic()));
        let cluster = letters.is_some_and(|letters| letters.contains(['n', 'i', 't', 'q', 'v']));
        let of_it = IDLE_OF.iter().any(|(names, options)| has(names, name) && has(options, plain));
        (has(IDLE, plain) && !(plain == "--no-run" && name == "cargo")) || of_it || (cluster && has("make gmake", name))
    }) || (name == "cargo" && rest.iter().skip_while(|word| **word != "--").any(|word| *word == "--list"))
}

/// Runners, operands that leave nothing out (`*`: any), and options of theirs that stand alone.
const RUNNERS: [(&str, &str, &str); 12] = [
    (
        "cargo",
        "test t nextest run r",
        "-r --workspace --all --all-features --no-default-features --all-targets --tests",
    ),
    ("pytest py.test", "tests tests/ test test/ . ./", "-x -l -ra -rA -rs -rf --ff --exitfirst --cov --no-cov"),
    ("unittest nose2", "discover", "-b -f"),
    ("go", "test ./... ...", "-race -cover -json -failfast -trimpath"),
    ("jest vitest ava mocha", "run test watch dev", "--runInBand --forceExit --detectOpenHandles --recursive --run"),
    ("npm pnpm yarn bun", "run run-script test tests t tst check verify spec", "--runInBand --forceExit --run"),
    ("make gmake just task rake", "*", "-k -B -w -j -R -r -O --keep-going --always-make --no-print-directory"),
    ("mvn mvnw gradle gradlew", "*", "-B -e -U -o -X -i -S --batch-mode --info --no-daemon --rerun-tasks --continue"),
    ("ctest", "", "-V -VV -Q --output-on-failure -j"),
    ("playwright cypress deno dotnet swift zig mix stack cabal bazel dune", "test run runtest", "-A --no-build"),
    ("rspec phpunit pest bats busted tox nox", "", "-b -c -w -r --backtrace --testdox"),
    ("node", "", "--test --no-warnings"),
];

/// Options of any runner that leave nothing out: alone, and with a value (`--a=b`, `--a b`, `-ab`).
const BARE: &str = "-q -qq -v -vv -vvv -s --quiet --verbose --silent --locked --frozen --offline --release --no-fail-fast \
    --nocapture --no-capture --show-output --include-ignored --keep-going --coverage --no-coverage --ci --colors --color \
    --no-color --bail --no-cache --no-watch --watch=false --watchAll=false --stacktrace --parallel --progress --fail-fast \
    --failfast --exit --strict-markers --disable-warnings --no-header --trace --yes";
const VALUED: &str = "--features -F --target --profile --cargo-profile -j --jobs --target-dir --color --message-format \
    --test-threads --retries --tb --durations --cov --cov-report --cov-config --cov-fail-under --junitxml -n --dist \
    --timeout -W --maxfail --capture -timeout -parallel -cpu -coverprofile -covermode -coverpkg -shuffle -mod -C \
    --maxWorkers -w --reporter --reporters --testTimeout --loglevel --console --max-workers --format -f --seed --order \
    --prefix --directory --test-dir --output-sync";

/// Whether a run of tests may leave some out. `words` name the runner, perhaps behind `npx`, `poetry run` and the like; a
/// script of the project has words of its own.
pub(super) fn leaves_out(words: &[&str]) -> bool {
    let found = (0..words.len().min(6))
        .find_map(|at| RUNNERS.iter().find(|runner| has(runner.0, base(words[at]))).map(|runner| (at, runner)));
    let Some((at, (names, operands, bare))) = found else { return false };
    let rest = &words[at + 1..];
    let (own, behind) = rest.split_at(rest.iter().position(|word| *word == "--").unwrap_or(rest.len()));
    !all_known(own, names, operands, bare) || !all_known(behind.get(1..).unwrap_or_default(), names, "", "")
}

fn all_known(words: &[&str], names: &str, operands: &str, bare: &str) -> bool {
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let alone = |word: &str| has(BARE, word) || has(bare, word);
        let short = word.len() > 2 && !word.starts_with("--");
        if !word.starts_with('-') {
            let set = word.contains('=') && !is_harmless_variable(word);
            if set || !(operands == "*" || has(operands, word) || word.starts_with('+')) {
                return false;
            }
        } else if alone(word) || (short && word[1..].chars().all(|letter| alone(&format!("-{letter}")))) {
            // A number behind `make -j` is its own.
            words.next_if(|next| next.parse::<u32>().is_ok());
        } else if has(VALUED, name) && !(*word == "-f" && operands == "*") {
            words.next_if(|_| name == *word);
        } else {
            // `-j4`; and `go test -count=1` runs them anew, `-count=0` runs none.
            let attached = word.get(..2).is_some_and(|option| short && has(VALUED, option));
            let number = word.get(2..).is_some_and(|value| value.parse::<f64>().is_ok());
            let counts = names == "go" && name == "-count" && value.parse::<u32>().is_ok_and(|count| count > 0);
            if !(counts || (attached && number)) {
                return false;
            }
        }
    }
    true
}

/// Variables that leave no test out, by their names, and by the ends of names that say where something is.
const HARMLESS: &str = "CI RUST_LOG RUST_BACKTRACE NODE_ENV RAILS_ENV APP_ENV FORCE_COLOR NO_COLOR PYTHONPATH \
    PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONHASHSEED PYTHONWARNINGS DEBUG TZ LANG GOMAXPROCS CGO_ENABLED \
    CARGO_TERM_COLOR CARGO_INCREMENTAL CARGO_TARGET_DIR CARGO_BUILD_JOBS RUST_TEST_THREADS DJANGO_SETTINGS_MODULE TERM \
    COLUMNS HOME TMPDIR V VERBOSE JOBS";
const ENDS: [&str; 9] = ["_URL", "_URI", "_DSN", "_HOST", "_PORT", "_USER", "_PASSWORD", "_KEY", "_TOKEN"];

/// Whether `NAME=value` is known to leave no test out.
pub(super) fn is_harmless_variable(word: &str) -> bool {
    let (name, value) = word.split_once('=').unwrap_or((word, ""));
    let name = name.trim_end_matches('+');
    // Folders of tools beside those that there are.
    let tools = |part: &str| part.contains("PATH") || part.ends_with("bin") || part.ends_with("shims");
    let path = name == "PATH" && value.contains("PATH") && value.replace('"', "").split(':').all(tools);
    path || has(HARMLESS, name) || name.starts_with("LC_") || ENDS.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l76_a_run_of_some_tests_is_known_by_its_words() {
        let is = |line: &str| leaves_out(&line.split(' ').collect::<Vec<_>>());
        for line in [
            "cargo test parse_one",
            "cargo test -p x -- parse_one",
            "cargo test --lib",
            "cargo test -p x",
            "cargo nextest run -p x",
            "cargo test --test words",
            "cargo test -- --skip slow",
            "cargo nextest run parse",
            "pytest -k empty",
            "pytest tests/test_a.py",
            "python3 -m pytest -q tests/test_a.py::test_b",
            "pytest -m fast",
            "python -m unittest tests.test_a",
            "go test -run TestA ./...",
            "go test -run=TestA ./...",
            "go test ./parse",
            "npx jest parser",
            "npx vitest run src/a.test.ts",
            "jest -t empty",
            "npm test -- parser",
            "npm run test:unit",
            "pytest docs",
            "go test .",
            "yarn test parser",
            "bun test parser",
            "deno test --filter empty",
            "mvn -q -Dtest=ParserTest test",
            "./gradlew test --tests ParserTest",
            "ctest -R parser",
            "make check TESTS=parser",
            "bundle exec rspec spec/a_spec.rb",
            "dotnet test --filter Name=A",
        ] {
            assert!(is(line), "{line}");
        }
        for line in [
            "cargo test",
            "cargo +nightly test --workspace --all-features",
            "cargo test --workspace -- --nocapture --test-threads 1",
            "cargo nextest run",
            "pytest",
            "pytest -q tests",
            "python3 -m pytest -x",
            "python -m unittest discover",
            "go test ./...",
            "go test -race -count=1 ./...",
            "npx jest --coverage",
            "npx vitest --run",
            "npx vitest run",
            "npm test",
            "yarn test",
            "bun test",
            "deno test",
            "deno test -A",
            "mvn -q test",
            "./gradlew check",
            "ctest --output-on-failure",
            "make -k check",
            "make -j4 test",
            "bundle exec rspec",
            "sh test.sh",
        ] {
            assert!(!is(line), "{line}");
        }
    }

    #[test]
    fn l76_what_is_not_known_to_leave_nothing_out_may_leave_tests_out() {
        let is = |line: &str| !leaves_out(&line.split(' ').collect::<Vec<_>>());
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
            "mvn -q -B test",
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
