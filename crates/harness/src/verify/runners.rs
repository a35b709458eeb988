//! Which programs verify something, by their words.

use portcullis_event::facts::VerificationKind::{self, Build, Lint, Tests, Typecheck};

use super::idle::is_idle;
use super::narrow::narrow;
use super::options::{are_harmless, is_harmless_variable};
use super::peel::{base, peeled};

/// What a command verifies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Check {
    pub kind: VerificationKind,
    /// A success also proves that it builds.
    pub builds: bool,
    /// A script of the project: it may swallow the exit code of what it runs, so its report counts as well.
    pub script: bool,
    /// It runs only some of the tests.
    pub narrow: bool,
    /// The words that verify, without wrappers.
    pub target: String,
    /// What is set before them and may make it another run.
    pub set: String,
}

impl Check {
    /// It ran with these variables: what is not known to be harmless may make it run less.
    pub(super) fn assume(&mut self, assigned: &[&String]) {
        let set: Vec<&str> =
            assigned.iter().map(|word| word.as_str()).filter(|word| !is_harmless_variable(word)).collect();
        self.narrow |= !set.is_empty();
        self.set.push_str(&set.join(" "));
    }
}

/// What these words verify, under wrappers that end as they do.
pub(super) fn check_of(argv: &[String]) -> Option<Check> {
    let words = peeled(argv);
    direct(words).or_else(|| in_container(words))
}

fn direct(argv: &[String]) -> Option<Check> {
    let (kind, builds, script) = known(argv)?;
    let narrow = narrow(argv) || (kind == Tests && !are_harmless(argv));
    Some(Check { kind, builds, script, narrow, target: argv.join(" "), set: String::new() })
}

/// `docker compose exec app pytest`: a runner that is known by its own name.
fn in_container(argv: &[String]) -> Option<Check> {
    let program = base(argv.first()?);
    if !matches!(program, "docker" | "podman" | "docker-compose") {
        return None;
    }
    let verb = argv.iter().position(|word| word == "exec" || word == "run")?;
    (verb + 1..argv.len()).find_map(|at| direct(&argv[at..]).filter(|check| !check.script))
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
    let has = |flag: &str| rest.contains(&flag);
    let found = match name {
        "cargo" => match verb {
            "test" | "t" | "nextest" if has("--no-run") => (Build, true, false),
            "nextest" if !matches!(verbs.get(1), Some(&"run" | &"r")) => return None,
            "test" | "t" | "nextest" => (Tests, true, false),
            "build" | "b" => (Build, true, false),
            "check" | "c" => (Typecheck, true, false),
            "clippy" => (Lint, true, false),
            "fmt" if has("--check") => (Lint, false, false),
            _ => return None,
        },
        "npm" | "yarn" | "pnpm" | "bun" => {
            let script = match verb {
                "exec" => return known(&argv[argv.iter().position(|word| word == verbs.get(1).unwrap_or(&""))?..]),
                "run" | "run-script" => verbs.get(1).copied().unwrap_or_default(),
                "t" | "tst" => "test",
                other => other,
            };
            (script_kind(script)?, false, true)
        }
        "npx" | "bunx" | "pnpx" => return known(&argv[argv.iter().position(|word| word == verb)?..]),
        "poetry" | "pipenv" | "uv" | "rye" | "hatch" | "pdm" if verb == "run" => {
            return known(&argv[argv.iter().position(|word| word == "run")? + 1..]);
        }
        "bundle" if verb == "exec" => return known(&argv[argv.iter().position(|word| word == "exec")? + 1..]),
        "playwright" if verb != "test" => return None,
        "cypress" if verb != "run" => return None,
        "jest" | "vitest" | "mocha" | "ava" | "karma" | "playwright" | "cypress" | "pytest" | "py.test" | "nose2"
        | "tox" | "nox" | "rspec" | "phpunit" | "pest" | "ctest" | "bats" | "busted" | "minitest" => {
            (Tests, false, false)
        }
        "node" if has("--test") => (Tests, false, false),
        "deno" => match verb {
            "test" => (Tests, false, false),
            "lint" => (Lint, false, false),
            "check" => (Typecheck, false, false),
            _ => return None,
        },
        "go" => match verb {
            "test" => (Tests, true, false),
            "build" => (Build, true, false),
            "vet" => (Lint, true, false),
            _ => return None,
        },
        "make" | "gmake" | "just" | "task" | "ninja" => {
            let targets: Vec<_> = verbs.iter().filter(|word| !word.contains('=')).collect();
            match targets.last() {
                None if name == "make" || name == "gmake" || name == "ninja" => (Build, true, true),
                None => return None,
                Some(target) => (script_kind(target)?, false, true),
            }
        }
        "cmake" if has("--build") => (Build, true, false),
        "mvn" | "mvnw" | "gradle" | "gradlew" => {
            let skips = rest
                .iter()
                .any(|word| word.starts_with("-DskipTests") || word.starts_with("-Dmaven.test.skip"))
                || words.windows(2).any(|pair| {
                    pair[0] == "-D" && (pair[1].starts_with("skipTests") || pair[1].starts_with("maven.test.skip"))
                })
                || words.windows(2).any(|pair| matches!(pair[0], "-x" | "--exclude-task") && pair[1].ends_with("test"));
            let verbs: Vec<&str> = (1..words.len())
                .filter(|at| !words[*at].starts_with('-') && !matches!(words[at - 1], "-x" | "--exclude-task"))
                .map(|at| words[at])
                .collect();
            match verbs.last().copied().unwrap_or_default() {
                "test" if skips => return None,
                "verify" | "check" | "install" | "build" | "package" | "assemble" if skips => (Build, true, false),
                "test" | "verify" | "check" | "install" => (Tests, true, false),
                "build" if name.starts_with("gradle") => (Tests, true, false),
                "compile" | "package" | "assemble" | "classes" => (Build, true, false),
                _ => return None,
            }
        }
        "dotnet" => match verb {
            "test" => (Tests, true, false),
            "build" => (Build, true, false),
            _ => return None,
        },
        "swift" | "zig" | "mix" | "stack" | "cabal" | "bazel" | "dune" => match verb {
            "test" | "runtest" => (Tests, true, false),
            "build" | "compile" => (Build, true, false),
            _ => return None,
        },
        "rake" => (script_kind(verb)?, false, true),
        "tsc" | "vue-tsc" => (Typecheck, true, false),
        "mypy" | "pyright" | "pyre" | "flow" => (Typecheck, false, false),
        "gcc" | "g++" | "clang" | "clang++" | "cc" | "c++" | "rustc" | "javac" | "ghc" => (Build, true, false),
        "vite" | "webpack" | "rollup" | "esbuild" | "next" if name != "next" || verb == "build" => (Build, true, false),
        "eslint" | "flake8" | "pylint" | "rubocop" | "golangci-lint" | "shellcheck" | "stylelint" | "standard"
        | "ktlint" | "hadolint" | "phpcs" => (Lint, false, false),
        "ruff" if matches!(verb, "check") || (verb == "format" && has("--check")) => (Lint, false, false),
        "biome" if matches!(verb, "check" | "lint" | "ci") => (Lint, false, false),
        "prettier" | "black" | "isort" if has("--check") || has("-c") => (Lint, false, false),
        "gofmt" if has("-l") || has("-d") => return None,
        _ if is_python(name) && module(rest).is_some() => match module(rest) {
            Some("pytest" | "unittest" | "nose2" | "tox") => (Tests, false, false),
            Some("mypy" | "pyright") => (Typecheck, false, false),
            Some("flake8" | "pylint" | "ruff") => (Lint, false, false),
            Some("py_compile" | "compileall") => (Build, true, false),
            _ => return None,
        },
        _ if is_python(name) && verb.ends_with("manage.py") => match verbs.get(1) {
            Some(&"test") => (Tests, false, false),
            _ => return None,
        },
        _ => match interpreted(name, rest) {
            Some(path) => script(path)?,
            None if program.contains('/') && !is_interpreter(name) => script(program)?,
            None => return None,
        },
    };
    Some(found)
}

/// Programs that run a script, letters of their options with which they run none (an inline program, a check of its
/// grammar), and letters that take a word.
const INTERPRETERS: [(&[&str], &str, &str); 6] = [
    (&["sh", "bash", "zsh", "dash", "ksh"], "cnsDh", "oO"),
    (&["source", "."], "", ""),
    (&["python"], "cihVx", "WX"),
    (&["node"], "epcivh", "rC"),
    (&["ruby"], "cenpilsxyh", "IrC"),
    (&["perl"], "ceEnpilvVhsx", "IMm"),
];

const PHP: (&[&str], &str, &str) = (&["php"], "lrivmaswhz", "dcf");

fn interpreter(name: &str) -> Option<&'static (&'static [&'static str], &'static str, &'static str)> {
    let name = if is_python(name) { "python" } else { name };
    INTERPRETERS.iter().chain(std::iter::once(&PHP)).find(|(names, _, _)| names.contains(&name))
}

fn is_interpreter(name: &str) -> bool {
    interpreter(name).is_some()
}

/// The script that an interpreter runs, if it surely runs one.
pub(super) fn interpreted<'w>(name: &str, rest: &[&'w str]) -> Option<&'w str> {
    let (_, none, valued) = interpreter(name)?;
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        if let Some(long) = word.strip_prefix("--") {
            match long.split('=').next().unwrap_or(long) {
                "require" | "import" | "loader" if !long.contains('=') => drop(words.next()),
                "eval" | "print" | "check" | "interactive" | "syntax-check" | "run" | "rcfile" | "init-file"
                | "dump-strings" | "dump-po-strings" | "version" | "help" => {
                    return None;
                }
                _ => {}
            }
        } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            for (at, letter) in letters.char_indices() {
                if none.contains(letter) {
                    return None;
                }
                if valued.contains(letter) {
                    let value = if at + 1 == letters.len() { words.next().copied() } else { Some(&letters[at + 1..]) };
                    if value == Some("noexec") {
                        return None;
                    }
                    break;
                }
            }
        } else {
            return Some(word);
        }
    }
    None
}

fn is_python(name: &str) -> bool {
    name.strip_prefix("python").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
        || name == "pypy3"
}

/// The module of `python -m MODULE`: only options stand before it.
fn module<'w>(rest: &[&'w str]) -> Option<&'w str> {
    let at = rest.iter().take_while(|word| word.starts_with('-')).position(|word| *word == "-m")?;
    rest.get(at + 1).copied()
}

/// The kind of a script or target by its name: `test`, `test:unit`, `build-all`, `check`.
fn script_kind(name: &str) -> Option<VerificationKind> {
    let words = || name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let first = words().next()?;
    match first {
        "test" | "tests" | "check" | "verify" | "spec" | "e2e" | "unittest" | "jest" | "vitest" => Some(Tests),
        "build" | "compile" | "all" => Some(Build),
        "lint" | "eslint" if !words().any(|word| word == "fix") => Some(Lint),
        "typecheck" | "types" | "tsc" => Some(Typecheck),
        "type" if words().nth(1) == Some("check") => Some(Typecheck),
        _ => None,
    }
}

/// Words in the name of a script that prepares or makes something, whatever else is in it.
const PREPARES: [&str; 26] = [
    "data",
    "gen",
    "generate",
    "generator",
    "setup",
    "teardown",
    "helper",
    "helpers",
    "fixture",
    "fixtures",
    "env",
    "util",
    "utils",
    "config",
    "conftest",
    "install",
    "create",
    "make",
    "write",
    "list",
    "clean",
    "cleanup",
    "reset",
    "seed",
    "mock",
    "mocks",
];

/// A script whose name or folder says that it tests: `test.sh`, `./run_tests.sh`, `tests/all.py`.
fn script(path: &str) -> Option<(VerificationKind, bool, bool)> {
    let parts: Vec<&str> = path.split('/').collect();
    let (name, folders) = parts.split_last()?;
    let words: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    if words.is_empty() || words.iter().any(|word| PREPARES.contains(word)) {
        return None;
    }
    let folder = |folder: &&&str| matches!(**folder, "test" | "tests" | "spec" | "specs" | "__tests__" | "e2e");
    if words.iter().any(|word| matches!(*word, "test" | "tests" | "spec" | "specs"))
        || folders.last().filter(folder).is_some()
    {
        return Some((Tests, false, true));
    }
    let stem = name.split('.').next().unwrap_or(name);
    matches!(stem, "build" | "lint" | "typecheck" | "check").then(|| {
        let kind = script_kind(stem).unwrap_or(Tests);
        (kind, false, true)
    })
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
