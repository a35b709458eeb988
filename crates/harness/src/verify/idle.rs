//! Words with which a runner runs no test, or ends well whatever its tests do: such a run verifies nothing. Other words that
//! are not known to be harmless leave a run `narrow` (`options`).

/// Options with which no test runs, whoever is called with them.
const IDLE: [&str; 24] = [
    "--help",
    "-h",
    "--version",
    "--fix",
    "--write",
    "--list",
    "--collect-only",
    "--co",
    "--cache-show",
    "--dump",
    "--dry-run",
    "--list-tests",
    "--listTests",
    "--notest",
    "--fixtures",
    "--fixtures-per-test",
    "--markers",
    "--setup-plan",
    "--setup-only",
    "--showConfig",
    "--show-config",
    "--init",
    "--ignore-scripts",
    "--if-present",
];

/// Options with which one program runs no test, or ends well whatever its tests do.
const IDLE_OF: [(&[&str], &[&str]); 15] = [
    (
        &["make", "gmake"],
        &["-n", "-i", "-t", "-q", "-v", "--just-print", "--recon", "--touch", "--question", "--ignore-errors"],
    ),
    (
        &["just", "task", "ninja", "rake"],
        &[
            "-n",
            "-l",
            "-t",
            "-T",
            "-P",
            "-V",
            "--dry",
            "--show",
            "--list-all",
            "--prereqs",
            "--tasks",
            "--summary",
            "--evaluate",
            "--choose",
            "--variables",
        ],
    ),
    (&["cargo", "pytest", "py.test"], &["-V"]),
    (&["npm", "yarn", "pnpm", "bun"], &["-v"]),
    (&["node"], &["-v", "--check"]),
    (&["go"], &["-list", "-c", "-exec", "-n"]),
    (&["ctest"], &["-N", "--show-only", "--print-labels"]),
    (&["tox"], &["-l", "-a", "--listenvs", "--listenvs-all", "--devenv", "list", "config", "devenv"]),
    (&["nox"], &["-l", "--list-sessions", "--install-only"]),
    (&["gradle", "gradlew"], &["-m", "-v", "-V", "--tasks"]),
    (
        &["mvn", "mvnw"],
        &["-v", "-fn", "--fail-never", "-Dmaven.test.failure.ignore", "-Dmaven.test.failure.ignore=true"],
    ),
    (&["dotnet"], &["-t"]),
    (&["deno"], &["--no-run"]),
    (&["jest", "vitest"], &["--clearCache", "list", "init", "bench"]),
    (&["phpunit", "pest", "bats", "busted", "mocha"], &["--list-suites", "--list-groups", "--count", "--list-files"]),
];

/// Whether these words only look at tests, or cannot fail by them.
pub(super) fn is_idle(name: &str, rest: &[&str]) -> bool {
    let plain = |word: &str| word.split('=').next().unwrap_or(word).to_owned();
    // What stands behind `--` is for the tests.
    let own = || rest.iter().take_while(|word| **word != "--");
    let of_it = IDLE_OF.iter().filter(|(names, _)| names.contains(&name)).flat_map(|(_, options)| options.iter());
    own().any(|word| IDLE.contains(&plain(word).as_str()))
        || of_it.into_iter().any(|option| own().any(|word| word == option || plain(word) == *option))
        || (name == "cargo" && rest.iter().skip_while(|word| **word != "--").any(|word| *word == "--list"))
        || (matches!(name, "make" | "gmake")
            && own().any(|word| is_cluster(word) && word.contains(['n', 'i', 't', 'q', 'v'])))
}

/// `-ki`: short options in one word.
fn is_cluster(word: &str) -> bool {
    word.strip_prefix('-').is_some_and(|rest| rest.len() > 1 && rest.bytes().all(|byte| byte.is_ascii_alphabetic()))
}
