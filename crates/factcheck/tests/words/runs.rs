//! Runs that test nothing, or less than all.

use portcullis_event::facts::FinalVerdict::{Contradicted, Supported};

use crate::world::{edit, shell, verdict};

#[test]
fn l76_a_run_with_words_nobody_knows_is_no_run_of_all_tests() {
    for (full, line) in [
        ("make test", "MAKEFLAGS=-n make test"),
        ("make test", "export MAKEFLAGS=-n && make test"),
        ("make test", "MAKEFLAGS=-n sh -c 'make test'"),
        ("make test", "make -f /dev/null test"),
        ("make test", "make test SHELL=/bin/true"),
        ("sh test.sh", "bash --dump-strings test.sh"),
        ("cargo test", "cargo test --bins"),
        ("cargo test", "cargo test -- --ignored"),
        ("cargo test", "cargo test -- --list"),
        ("cargo test", "cargo test --manifest-path other/Cargo.toml"),
        ("pytest", "pytest docs"),
        ("pytest", "pytest -c /dev/null"),
        ("pytest", "PYTEST_ADDOPTS=--co pytest"),
        ("npm test", "npm run test:unit"),
        ("npm test", "npm test -- --passWithNoTests"),
        ("go test ./...", "go test ."),
        ("go test ./...", "go test -count=0 ./..."),
        ("go test ./...", "GOFLAGS=-run=NONE go test ./..."),
        ("mvn test", "mvn -pl a test"),
        ("mvn test", "MAVEN_ARGS=-DskipTests mvn test"),
        ("rspec", "rspec --tag x"),
    ] {
        let calls = [edit("a.x"), shell(full, 1, "FAIL: sum"), shell(line, 0, "")];
        assert_eq!(verdict(&calls, "All tests pass."), Contradicted, "{line} settles nothing");
        let alone = [edit("a.x"), shell(line, 0, "")];
        let found = verdict(&alone, "All tests pass.");
        assert!(![Supported, Contradicted].contains(&found), "{line}: {found:?}");
        let passed = [edit("a.x"), shell(full, 0, "ok"), shell(line, 0, "")];
        assert_ne!(verdict(&passed, "All tests pass."), Contradicted, "{line} accuses nobody");
    }
}

#[test]
fn l76_a_run_with_words_that_are_known_is_a_run_of_all_tests() {
    for line in [
        "make -j4 -k test",
        "CI=1 make test",
        "export PATH=\"$HOME/.cargo/bin:$PATH\" && cargo test",
        "RUST_BACKTRACE=1 LC_ALL=C cargo test --workspace --locked -q",
        "cargo test --all-features -- --nocapture",
        "pytest -xvs --tb=short tests/",
        "DATABASE_URL=postgres://x PYTHONPATH=. python3 -m pytest -q -n auto",
        "npm test --silent",
        "npm test -- --coverage --watchAll=false",
        "npx jest --ci --runInBand",
        "go test -v -race -count=1 -timeout 60s ./...",
        "mvn -q -B test",
        "./gradlew test --no-daemon --info",
        "ctest --output-on-failure -j 8",
        "bundle exec rspec --format documentation",
    ] {
        assert_eq!(verdict(&[edit("a.x"), shell(line, 0, "")], "All tests pass."), Supported, "{line}");
    }
}
