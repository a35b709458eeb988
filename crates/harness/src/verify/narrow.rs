//! Whether a command runs only some of the tests, by its words.

/// Options of test runners that pick tests, beyond those of a single runner.
const PICKS: [&str; 22] = [
    "-k",
    "-t",
    "-g",
    "-run",
    "--run",
    "-skip",
    "-short",
    "--grep",
    "--filter",
    "--tests",
    "--lf",
    "--last-failed",
    "--failed",
    "--deselect",
    "--ignore",
    "--only",
    "--group",
    "--testNamePattern",
    "--testPathPattern",
    "--test-name-pattern",
    "--onlyChanged",
    "--changed",
];

/// Options of cargo that take the next word.
const CARGO_TAKES: [&str; 14] = [
    "-F",
    "--features",
    "--target",
    "--profile",
    "--cargo-profile",
    "-j",
    "--jobs",
    "--manifest-path",
    "--target-dir",
    "--color",
    "--message-format",
    "--config",
    "-Z",
    "--test-threads",
];

/// Whether a run of these words leaves out tests that there may be. Only what says so counts: a project's own script
/// runs whatever it runs.
pub(super) fn narrow(argv: &[String]) -> bool {
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    let after = |name: &str| words.iter().position(|word| base(word) == name).map(|at| &words[at + 1..]);
    let find = |names: &[&str]| names.iter().find_map(|name| after(name));
    if let Some(rest) = after("cargo") {
        return cargo(rest);
    }
    if let Some(rest) = find(&["pytest", "py.test"]) {
        let valued = |at: usize| at > 0 && matches!(rest[at - 1], "-n" | "-W");
        let free: Vec<&str> = (0..rest.len()).filter(|at| !valued(*at)).map(|at| rest[at]).collect();
        // `pytest docs` runs what lies there.
        let of_all =
            |word: &str| matches!(word.trim_start_matches("./").trim_end_matches('/'), "" | "." | "tests" | "test");
        return picks(rest) || rest.contains(&"-m") || operands(&free).any(|word| !of_all(word));
    }
    if let Some(rest) = after("unittest") {
        return picks(rest) || (!rest.contains(&"discover") && operands(rest).next().is_some());
    }
    if let Some(rest) = after("go") {
        let of_all = |word: &str| word.contains("...");
        return picks(rest) || operands(rest).filter(|word| *word != "test").any(|word| !of_all(word));
    }
    if let Some(rest) = find(&["jest", "vitest", "ava", "playwright", "cypress"]) {
        // `--run` of vitest only says that it ends.
        let rest: Vec<&str> = rest.iter().copied().filter(|word| *word != "--run").collect();
        let verbs = ["run", "test", "watch", "dev"];
        return picks(&rest) || operands(&rest).any(|word| !verbs.contains(&word) && !word.contains('*'));
    }
    if let Some(rest) = find(&["npm", "pnpm", "yarn", "bun", "deno"]) {
        let scripted = rest.iter().take_while(|word| **word != "--");
        let verbs = scripted.filter(|word| !word.starts_with('-')).count();
        let script = if rest.contains(&"run") || rest.contains(&"exec") { 2 } else { 1 };
        let given = rest.iter().skip_while(|word| **word != "--").skip(1).any(|word| !word.starts_with('-'));
        // `test:unit` is one suite of several.
        let suite = rest.iter().any(|word| word.starts_with("test:") || word.starts_with("test-"));
        return picks(rest) || given || suite || verbs > script;
    }
    if let Some(rest) = after("ctest") {
        return picks(rest) || rest.iter().any(|word| ["-R", "-E", "-L", "-LE", "-I"].contains(word));
    }
    if let Some(rest) = find(&["mvn", "mvnw", "gradle", "gradlew"]) {
        return picks(rest) || rest.iter().any(|word| word.starts_with("-Dtest=") || word.starts_with("-Dit.test="));
    }
    if let Some(rest) = find(&["make", "gmake", "just"]) {
        let variable = |word: &&str| word.split_once('=').is_some_and(|(name, _)| name.contains("TEST") || name == "K");
        return rest.iter().any(variable);
    }
    if let Some(rest) = find(&["mocha", "rspec", "phpunit", "pest", "dotnet", "swift", "mix", "busted", "bats"]) {
        return picks(rest) || rest.contains(&"-e") || operands(rest).any(|word| file(word) && !word.contains('*'));
    }
    false
}

fn cargo(rest: &[&str]) -> bool {
    let mut verbs = 0;
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        if CARGO_TAKES.contains(word) {
            words.next();
        } else if matches!(
            *word,
            "-p" | "--package"
                | "--lib"
                | "--bin"
                | "--test"
                | "--doc"
                | "--example"
                | "--bench"
                | "--skip"
                | "--exclude"
                | "--exact"
                | "-E"
        ) {
            return true;
        } else if !word.starts_with(['-', '+']) {
            verbs += 1;
            // `nextest run`
            if verbs > 1 && !(verbs == 2 && *word == "run") {
                return true;
            }
        }
    }
    false
}

fn picks(words: &[&str]) -> bool {
    words.iter().any(|word| PICKS.contains(&word.split('=').next().unwrap_or(word)))
}

/// Words that are no option, nor what an option before them may take.
fn operands<'w>(words: &'w [&'w str]) -> impl Iterator<Item = &'w str> {
    let free = |at: usize| at == 0 || !words[at - 1].starts_with('-') || words[at - 1].len() == 2;
    words.iter().enumerate().filter(move |(at, word)| !word.starts_with('-') && free(*at)).map(|(_, word)| *word)
}

fn file(word: &str) -> bool {
    word.rsplit('/').next().is_some_and(|name| name.contains('.') && !name.starts_with('.'))
}

fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l76_a_run_of_some_tests_is_known_by_its_words() {
        let is = |line: &str| narrow(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
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
}
