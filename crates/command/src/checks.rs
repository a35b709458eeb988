//! Which programs verify something, by their words.

use portcullis_base::VerificationKind::{self, Build, Lint, Tests, Typecheck};

use super::check_options::{has, is_harmless_variable, is_idle, leaves_out};
use super::hidden::interpreted;
use super::unwrap::{base, peeled};

/// A command that verifies something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckCommand {
    pub kind: VerificationKind,
    /// A success also proves that it builds.
    pub builds: bool,
    /// A script of the project: it may swallow the exit code of what it runs, so its report counts as well.
    pub script: bool,
    /// It may run only some of the tests.
    pub narrow: bool,
    /// The words that verify, without wrappers.
    pub target: String,
    /// What is set before them and may make it another run.
    pub set: String,
}

impl CheckCommand {
    /// It ran with these variables: what is not known to be harmless may make it run less.
    pub fn assume(&mut self, assigned: &[String]) {
        let set: Vec<&str> = assigned.iter().map(String::as_str).filter(|word| !is_harmless_variable(word)).collect();
        self.narrow |= !set.is_empty();
        self.set = set.join(" ");
    }
}

/// Programs, their verbs (none: whatever follows), what they verify, and whether a success proves that it builds.
const PROGRAMS: [(&str, &str, VerificationKind, bool); 21] = [
    ("cargo", "test t nextest", Tests, true),
    ("cargo", "build b", Build, true),
    ("cargo", "check c", Typecheck, true),
    ("cargo", "clippy", Lint, true),
    ("cargo", "fmt", Lint, false),
    ("jest vitest mocha ava pytest py.test unittest nose2 tox nox rspec phpunit ctest bats busted", "", Tests, false),
    ("playwright deno", "test", Tests, false),
    ("cypress", "run", Tests, false),
    ("deno", "lint", Lint, false),
    ("deno", "check", Typecheck, false),
    ("go", "test", Tests, true),
    ("go next", "build", Build, true),
    ("go", "vet", Lint, true),
    ("dotnet swift zig mix stack cabal bazel dune", "test runtest", Tests, true),
    ("dotnet swift zig mix stack cabal bazel dune", "build compile", Build, true),
    ("tsc vue-tsc", "", Typecheck, true),
    ("mypy pyright pyre flow", "", Typecheck, false),
    ("gcc g++ clang clang++ cc c++ rustc javac ghc vite webpack rollup esbuild py_compile", "", Build, true),
    ("eslint flake8 pylint rubocop golangci-lint shellcheck stylelint standard ktlint hadolint", "", Lint, false),
    ("ruff biome", "check lint format ci", Lint, false),
    ("prettier black isort", "", Lint, false),
];

/// What these words verify, under wrappers that end as they do. Only what surely verifies something does.
#[must_use]
pub fn check_of(argv: &[String]) -> Option<CheckCommand> {
    let words = peeled(argv);
    let container = has("docker podman docker-compose", base(words.first()?));
    let verb = words.iter().position(|word| container && (word == "exec" || word == "run"));
    let of = |argv: &[String]| {
        let words: Vec<&str> = argv.iter().map(String::as_str).collect();
        let (kind, builds, script) = known(argv)?;
        let narrow = kind == Tests && leaves_out(&words);
        Some(CheckCommand { kind, builds, script, narrow, target: argv.join(" "), set: String::new() })
    };
    match verb {
        Some(verb) => (verb + 1..words.len()).find_map(|at| of(&words[at..]).filter(|check| !check.script)),
        None => of(words),
    }
}

/// Kind, whether it builds, whether it is a script.
fn known(argv: &[String]) -> Option<(VerificationKind, bool, bool)> {
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    let (program, rest) = words.split_first()?;
    let name = base(program);
    if is_idle(name, rest) {
        return None;
    }
    // Options and toolchains such as `+nightly` before the verb.
    let verbs: Vec<&str> = rest.iter().copied().filter(|word| !word.starts_with(['-', '+'])).collect();
    let verb = verbs.first().copied().unwrap_or_default();
    let second = verbs.get(1).copied().unwrap_or_default();
    let given = |flag: &str| rest.contains(&flag);
    let from =
        |word: &str, more: usize| words.iter().position(|one| *one == word).and_then(|at| known(&argv[at + more..]));
    let of_script = |name: &str| script_kind(name).map(|kind| (kind, false, true));
    match name {
        "cargo" if given("--no-run") => return Some((Build, true, false)),
        "cargo" if verb == "nextest" && !has("run r", second) => return None,
        "npm" | "yarn" | "pnpm" | "bun" if verb == "exec" => return from("exec", 1),
        "npm" | "yarn" | "pnpm" | "bun" if has("run run-script", verb) => return of_script(second),
        "npm" if has("t tst", verb) => return of_script("test"),
        "npm" | "yarn" | "pnpm" | "bun" => return of_script(verb),
        "npx" | "bunx" | "pnpx" => return from(verb, 0),
        "poetry" | "pipenv" | "uv" | "rye" | "hatch" | "pdm" if verb == "run" => return from("run", 1),
        "bundle" if verb == "exec" => return from("exec", 1),
        "node" if given("--test") => return Some((Tests, false, false)),
        "cmake" if given("--build") => return Some((Build, true, false)),
        "make" | "gmake" | "just" | "task" | "ninja" | "rake" => {
            let target = verbs.iter().rfind(|word| !word.contains('='));
            let whole = has("make gmake ninja", name).then_some((Build, true, true));
            return target.map_or(whole, |target| of_script(target));
        }
        "mvn" | "mvnw" | "gradle" | "gradlew" => return java(name, &words),
        _ => {}
    }
    let formats = has("prettier black isort", name) || has("fmt format", verb);
    let row = PROGRAMS.iter().find(|(names, verbs, ..)| has(names, name) && (verbs.is_empty() || has(verbs, verb)));
    if let Some((_, _, kind, builds)) = row {
        return (!formats || given("--check") || given("-c")).then_some((*kind, *builds, false));
    }
    match interpreted(name, &argv[1..]) {
        Some((at, module)) if at > 0 && rest[at - 1] == "-m" && module == rest[at] => {
            known(&argv[at + 1..]).filter(|found| !found.2)
        }
        Some((at, path)) if rest[..at].iter().all(|word| keeps_running(word)) => match path.ends_with("manage.py") {
            true => (rest.get(at + 1) == Some(&"test")).then_some((Tests, false, false)),
            false => script(path),
        },
        Some(_) => None,
        None if has("source .", name) => script(verb),
        None if program.contains('/') => script(program),
        None => None,
    }
}

/// Whether an interpreter runs its script all the same with this word before it.
fn keeps_running(word: &str) -> bool {
    let letters = word.strip_prefix(['-', '+']).map(|letters| letters.chars().all(|c| "exuvoBOWXIrTwESM".contains(c)));
    letters.unwrap_or(word != "noexec") || word.starts_with("-I") || has("--require --import --loader", word)
}

/// Maven and Gradle: what the last target does, unless the tests are left out.
fn java(name: &str, words: &[&str]) -> Option<(VerificationKind, bool, bool)> {
    let excluded = |at: usize| has("-x --exclude-task", words[at - 1]);
    let skips = (1..words.len()).any(|at| {
        let set = words[at].strip_prefix("-D").unwrap_or(if words[at - 1] == "-D" { words[at] } else { "" });
        set.starts_with("skipTests")
            || set.starts_with("maven.test.skip")
            || (excluded(at) && words[at].ends_with("test"))
    });
    let target = (1..words.len()).rfind(|at| !words[*at].starts_with('-') && !excluded(*at)).map(|at| words[at])?;
    match target {
        "test" if skips => None,
        "verify" | "check" | "install" | "build" if skips => Some((Build, true, false)),
        "test" | "verify" | "check" | "install" => Some((Tests, true, false)),
        "build" if name.starts_with("gradle") => Some((Tests, true, false)),
        "compile" | "package" | "assemble" | "classes" => Some((Build, true, false)),
        _ => None,
    }
}

/// The kind of a script or target by its name: `test`, `test:unit`, `build-all`, `check`.
fn script_kind(name: &str) -> Option<VerificationKind> {
    let words: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    match *words.first()? {
        "test" | "tests" | "check" | "verify" | "spec" | "e2e" | "unittest" | "jest" | "vitest" => Some(Tests),
        "build" | "compile" | "all" => Some(Build),
        "lint" | "eslint" if !words.contains(&"fix") => Some(Lint),
        "typecheck" | "types" | "tsc" => Some(Typecheck),
        "type" if words.get(1) == Some(&"check") => Some(Typecheck),
        _ => None,
    }
}

/// Words in the name of a script that prepares or makes something, whatever else is in it.
const PREPARES: &str = "data gen generate generator setup teardown helper helpers fixture fixtures env util utils config \
    conftest install create make write list clean cleanup reset seed mock mocks";

/// A script whose name or folder says that it tests: `test.sh`, `./run_tests.sh`, `tests/all.py`.
fn script(path: &str) -> Option<(VerificationKind, bool, bool)> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let words: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    if words.is_empty() || words.iter().any(|word| has(PREPARES, word)) {
        return None;
    }
    let tests = words.iter().any(|word| has("test tests spec specs", word));
    if tests || has("test tests spec specs __tests__ e2e", base(folder)) {
        return Some((Tests, false, true));
    }
    let stem = name.split('.').next().unwrap_or(name);
    has("build lint typecheck check", stem).then(|| (script_kind(stem).unwrap_or(Tests), false, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(line: &str) -> Option<VerificationKind> {
        check_of(&line.split(' ').map(str::to_owned).collect::<Vec<_>>()).map(|check| check.kind)
    }

    #[test]
    fn runners_are_known_by_their_words() {
        let tests = [
            "cargo test",
            "cargo +nightly nextest run -p x",
            "npm test",
            "npm run test:unit",
            "yarn test",
            "npx jest a",
            "npx --yes vitest run",
            "pytest -q",
            "python3 -m pytest tests",
            "python3.12 -m unittest",
            "go test ./...",
            "make test",
            "make -j4 check",
            "ctest",
            "./gradlew test",
            "mvn -q test",
            "bundle exec rspec",
            "phpunit",
            "dotnet test",
            "sh test.sh",
            "./run_tests.sh",
            "bash tests/all.sh",
            "timeout 60 cargo test",
            "env A=1 pytest",
            "poetry run pytest",
            "node --test",
            "python tests/sum.py",
            "time npm t",
            "sudo -u x make check",
            "docker compose exec -T app pytest -q",
            "bash -ex test.sh",
            "ruby -Itest test/a_test.rb",
            "make -k check",
            "npx playwright test",
            "python3 -W error tests/all.py",
        ];
        for line in tests {
            assert_eq!(kind(line), Some(Tests), "{line}");
        }
        for line in [
            "cargo build",
            "make",
            "npm run build",
            "go build ./...",
            "cargo test --no-run",
            "gcc a.c",
            "mvn -q -DskipTests verify",
            "mvn install -DskipTests",
            "gradle build -x test",
        ] {
            assert_eq!(kind(line), Some(Build), "{line}");
        }
        for line in ["cargo clippy", "eslint .", "npm run lint", "ruff check", "cargo fmt --check"] {
            assert_eq!(kind(line), Some(Lint), "{line}");
        }
        for line in ["cargo check", "npx tsc --noEmit", "mypy src", "npm run typecheck", "npm run type-check"] {
            assert_eq!(kind(line), Some(Typecheck), "{line}");
        }
        let others = [
            "cargo run",
            "npm install",
            "cargo fmt",
            "eslint --fix .",
            "npm run lint:fix",
            "echo cargo test",
            "cat test.sh",
            "ls tests",
            "make install",
            "cargo test --help",
            "git commit -m tests",
            "sh deploy.sh",
            "pytest --version",
            "python3 -c print('test')",
            "python3 -uc test",
            "node -e test",
            "node --check test.js",
            "perl -e test",
            "perl -c tests/a.pl",
            "php -l tests/a.php",
            "ruby -c spec/a_spec.rb",
            "sh -nv test.sh",
            "bash -o noexec test.sh",
            "bash -c test",
            "sh tests/setup.sh",
            "python3 test_data/gen.py",
            "mvn -DskipTests test",
            "playwright install",
            "npx playwright install chromium",
            "cypress verify",
            "pytest --co -q",
            "pytest -h",
            "jest --listTests",
            "vitest list",
            "cargo nextest list",
            "ctest -N",
            "go test -list .",
            "go test -c ./...",
            "go test -exec true ./...",
            "rspec --dry-run",
            "tox --notest",
            "dotnet test --list-tests",
            "make -i test",
            "make -ki test",
            "make --just-print test",
            "gradle test --dry-run",
            "deno test --no-run",
            "npm test --ignore-scripts",
            "find . -exec pytest {} ;",
            "xargs -r pytest",
            "eval pytest",
            "command -v pytest",
        ];
        for line in others {
            assert_eq!(kind(line), None, "{line}");
        }
    }
}
