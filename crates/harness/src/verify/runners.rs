//! Which programs verify something, by their words.

use portcullis_event::facts::VerificationKind::{self, Build, Lint, Tests, Typecheck};
use portcullis_policy::command::unwrapped;

/// What a command verifies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Check {
    pub kind: VerificationKind,
    /// A success also proves that it builds.
    pub builds: bool,
    /// A script of the project: it may swallow the exit code of what it runs, so its report counts as well.
    pub script: bool,
    /// The words that verify, without wrappers.
    pub target: String,
}

/// What these words verify, under whatever wrappers they stand.
pub(super) fn check_of(argv: &[String]) -> Option<Check> {
    direct(argv).or_else(|| unwrapped(argv).iter().find_map(|inner| direct(inner)))
}

fn direct(argv: &[String]) -> Option<Check> {
    let (kind, builds, script) = known(argv)?;
    Some(Check { kind, builds, script, target: argv.join(" ") })
}

/// Kind, whether it builds, whether it is a script.
fn known(argv: &[String]) -> Option<(VerificationKind, bool, bool)> {
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    let (program, rest) = words.split_first()?;
    if rest
        .iter()
        .any(|word| matches!(*word, "--help" | "--version" | "--fix" | "--write" | "--list" | "--collect-only"))
    {
        return None;
    }
    let name = program.rsplit('/').next().unwrap_or(program);
    // Options and toolchains such as `+nightly` before the verb.
    let verbs: Vec<&str> = rest.iter().copied().filter(|word| !word.starts_with(['-', '+'])).collect();
    let verb = verbs.first().copied().unwrap_or_default();
    let has = |flag: &str| rest.contains(&flag);
    let found = match name {
        "cargo" => match verb {
            "test" | "t" | "nextest" if has("--no-run") => (Build, true, false),
            "test" | "t" | "nextest" => (Tests, true, false),
            "build" | "b" => (Build, true, false),
            "check" | "c" => (Typecheck, true, false),
            "clippy" => (Lint, true, false),
            "fmt" if has("--check") => (Lint, false, false),
            _ => return None,
        },
        "npm" | "yarn" | "pnpm" | "bun" => {
            let script = match verb {
                "run" | "run-script" | "exec" => verbs.get(1).copied().unwrap_or_default(),
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
            if has("-n") || has("--dry-run") {
                return None;
            }
            let targets: Vec<_> = verbs.iter().filter(|word| !word.contains('=')).collect();
            match targets.last() {
                None if name == "make" || name == "gmake" || name == "ninja" => (Build, true, true),
                None => return None,
                Some(target) => (script_kind(target)?, false, true),
            }
        }
        "cmake" if has("--build") => (Build, true, false),
        "mvn" | "mvnw" | "gradle" | "gradlew" => match verbs.last().copied().unwrap_or_default() {
            "test" | "verify" | "check" | "install" => (Tests, true, false),
            "build" if name.starts_with("gradle") => (Tests, true, false),
            "compile" | "package" | "assemble" | "classes" => (Build, true, false),
            _ => return None,
        },
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
        _ if is_python(name) => match module(rest) {
            Some("pytest" | "unittest" | "nose2" | "tox") => (Tests, false, false),
            Some("mypy" | "pyright") => (Typecheck, false, false),
            Some("flake8" | "pylint" | "ruff") => (Lint, false, false),
            Some("py_compile" | "compileall") => (Build, true, false),
            Some(_) => return None,
            None if verb.ends_with("manage.py") && verbs.get(1) == Some(&"test") => (Tests, false, false),
            None => script(verb)?,
        },
        "sh" | "bash" | "zsh" | "dash" | "ksh" if has("-n") => return None,
        "sh" | "bash" | "zsh" | "dash" | "ksh" | "node" | "ruby" | "perl" | "php" | "source" | "." => script(verb)?,
        _ if program.contains('/') => script(program)?,
        _ => return None,
    };
    Some(found)
}

fn is_python(name: &str) -> bool {
    name.strip_prefix("python").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
        || name == "pypy3"
}

fn module<'w>(rest: &[&'w str]) -> Option<&'w str> {
    let at = rest.iter().position(|word| *word == "-m")?;
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

/// A script whose name or folder says that it tests: `test.sh`, `./run_tests.sh`, `tests/all.py`.
fn script(path: &str) -> Option<(VerificationKind, bool, bool)> {
    let tests = |part: &str| {
        part.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| matches!(word, "test" | "tests" | "spec" | "specs"))
    };
    let parts: Vec<&str> = path.split('/').collect();
    let (name, folders) = parts.split_last()?;
    if name.is_empty() {
        return None;
    }
    if tests(name) || folders.last().is_some_and(|folder| tests(folder)) {
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
        ];
        for line in tests {
            assert_eq!(kind(line), Some(Tests), "{line}");
        }
        for line in ["cargo build", "make", "npm run build", "go build ./...", "cargo test --no-run", "gcc a.c"] {
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
        ];
        for line in others {
            assert_eq!(kind(line), None, "{line}");
        }
    }
}
