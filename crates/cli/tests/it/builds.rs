//! Real projects, built by `shell_run` as an ordinary user whose toolchains lie under the home folder, inside the full
//! level and with the network off.
//!
//! The machine that runs the tests is root's and has its toolchains where nobody else can read them. So a home is made
//! for a user that no account has, and the toolchains are linked into it. What is missing on the machine is named; no
//! part is left out.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{Ran, binary};
use serde_json::json;

/// An id that no account has.
const SOMEBODY: u32 = 54_323;

pub(crate) struct Person {
    _scratch: tempfile::TempDir,
    root: PathBuf,
    home: PathBuf,
}

/// Output of a program of the machine, which the person could not run.
fn of_the_machine(argv: &[&str], needs: &str) -> String {
    let out = Command::new(argv[0]).args(&argv[1..]).stdin(Stdio::null()).output();
    let out = out.unwrap_or_else(|error| panic!("this test needs {needs}: `{}`: {error}", argv[0]));
    let said = String::from_utf8_lossy(&out.stdout).trim().to_owned();
    assert!(
        out.status.success(),
        "this test needs {needs}: `{}`: {}",
        argv.join(" "),
        String::from_utf8_lossy(&out.stderr)
    );
    said
}

/// Hard links where it is the same disk, else a copy.
fn link_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().expect("beneath")).expect("made");
    let linked = Command::new("cp").args(["-al", "--"]).args([from, to]).stderr(Stdio::null()).status().expect("cp");
    if !linked.success() {
        let _ = fs::remove_dir_all(to);
        let copied = Command::new("cp").args(["-a", "--reflink=auto", "--"]).args([from, to]).status().expect("cp");
        assert!(copied.success(), "{} cannot be copied", from.display());
    }
}

impl Person {
    pub(crate) fn new() -> Self {
        assert!(rustix::process::geteuid().is_root(), "this test needs root, to become an ordinary user");
        let scratch = tempfile::tempdir().expect("scratch");
        let root = scratch.path().canonicalize().expect("it is there");
        fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).expect("opened");
        let person = Self { _scratch: scratch, home: root.join("home"), root };
        person.own_folder(&person.home);
        person.own_folder(&person.home.join(".ssh"));
        fs::write(person.home.join(".ssh/id"), "SECRET").expect("written");
        link_tree(binary(), &person.root.join("portcullis"));
        person
    }

    fn own_folder(&self, folder: &Path) {
        fs::create_dir_all(folder).expect("made");
        std::os::unix::fs::chown(folder, Some(SOMEBODY), Some(SOMEBODY)).expect("given");
    }

    /// rustup's proxies and one toolchain, as rustup lays them out.
    pub(crate) fn with_rust(&self) {
        let sysroot = PathBuf::from(of_the_machine(&["rustc", "--print", "sysroot"], "a Rust toolchain"));
        let name = sysroot.file_name().expect("a name").to_str().expect("utf-8");
        for part in ["bin", "lib"] {
            link_tree(&sysroot.join(part), &self.home.join(".rustup/toolchains").join(name).join(part));
        }
        let settings = format!("version = \"12\"\ndefault_toolchain = \"{name}\"\nprofile = \"minimal\"\n");
        fs::write(self.home.join(".rustup/settings.toml"), settings).expect("written");
        let proxy = of_the_machine(&["sh", "-c", "readlink -f \"$(command -v rustup)\""], "rustup");
        let bin = self.home.join(".cargo/bin");
        fs::create_dir_all(&bin).expect("made");
        link_tree(Path::new(&proxy), &bin.join("rustup"));
        for name in ["cargo", "rustc", "rustdoc"] {
            symlink("rustup", bin.join(name)).expect("a link");
        }
        fs::write(self.home.join(".cargo/credentials.toml"), "token = \"SECRET\"").expect("written");
        // Theirs to change, as on every machine; the toolchain itself is only linked and stays as it is.
        for folder in [".rustup", ".cargo", ".rustup/settings.toml"] {
            std::os::unix::fs::chown(self.home.join(folder), Some(SOMEBODY), Some(SOMEBODY)).expect("given");
        }
    }

    /// Node as nvm lays it out.
    pub(crate) fn with_node(&self) {
        let node = of_the_machine(&["sh", "-c", "readlink -f \"$(command -v node)\""], "node");
        let npm = PathBuf::from(of_the_machine(&["sh", "-c", "readlink -f \"$(command -v npm)\""], "npm"));
        let npm = npm.ancestors().find(|path| path.ends_with("node_modules/npm")).expect("npm lies in node_modules");
        let here = self.home.join(".nvm/versions/node/v1");
        link_tree(Path::new(&node), &here.join("bin/node"));
        link_tree(npm, &here.join("lib/node_modules/npm"));
        symlink("../lib/node_modules/npm/bin/npm-cli.js", here.join("bin/npm")).expect("a link");
    }

    pub(crate) fn workspace(&self, name: &str, files: &[(&str, &str)]) -> PathBuf {
        let folder = self.root.join(name);
        self.own_folder(&folder);
        for (file, text) in files {
            let path = folder.join(file);
            self.own_folder(path.parent().expect("beneath"));
            fs::write(&path, text).expect("written");
            std::os::unix::fs::chown(&path, Some(SOMEBODY), Some(SOMEBODY)).expect("given");
        }
        folder
    }

    /// As this person, in a folder.
    pub(crate) fn run(&self, folder: &Path, argv: &[&str]) -> Ran {
        let id = SOMEBODY.to_string();
        let folders = [".cargo/bin", ".nvm/versions/node/v1/bin"].map(|bin| self.home.join(bin));
        let system = ["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from);
        let path: OsString = std::env::join_paths(folders.iter().chain(&system)).expect("a PATH");
        let out = Command::new("setpriv")
            .args(["--reuid", &id, "--regid", &id, "--clear-groups"])
            .args(argv)
            .current_dir(folder)
            .env_clear()
            .env("HOME", &self.home)
            .env("PATH", path)
            .stdin(Stdio::null())
            .output()
            .expect("this test needs `setpriv`");
        out.into()
    }

    /// Proposes a command, allows it as a person does, and shows what it printed.
    #[track_caller]
    fn build(&self, folder: &Path, command: &str) -> String {
        let portcullis = self.root.join("portcullis");
        let portcullis = portcullis.to_str().expect("utf-8");
        let input = json!({ "command": command, "timeoutMs": 120_000 }).to_string();
        let asked = self.run(folder, &[portcullis, "--sandbox", "full", "call", "shell_run", &input]).ends(3);
        let ask = asked.id("ask_");
        let ran = self.run(folder, &[portcullis, "--sandbox", "full", "approvals", "allow", &ask]);
        assert_eq!(ran.code, 0, "`{command}` in the hand\n{}\n{}", ran.out, ran.err);
        ran.out
    }

    /// How long a command that was allowed takes, from the word of a person to its end.
    #[track_caller]
    pub(crate) fn timed_build(&self, folder: &Path, command: &str) -> std::time::Duration {
        let portcullis = self.root.join("portcullis");
        let portcullis = portcullis.to_str().expect("utf-8");
        let input = json!({ "command": command, "timeoutMs": 120_000 }).to_string();
        let ask = self.run(folder, &[portcullis, "--sandbox", "full", "call", "shell_run", &input]).ends(3).id("ask_");
        let begun = std::time::Instant::now();
        let ran = self.run(folder, &[portcullis, "--sandbox", "full", "approvals", "allow", &ask]);
        let took = begun.elapsed();
        assert_eq!(ran.code, 0, "`{command}` in the hand\n{}\n{}", ran.out, ran.err);
        took
    }

    /// The network is off in there, although the machine has one.
    #[track_caller]
    fn is_without_network(&self, folder: &Path) {
        let seen =
            self.build(folder, "id -u; grep -c : /proc/net/dev; grep Seccomp: /proc/self/status; find \"$HOME\" -maxdepth 3 -path '*/toolchains/*' -prune -o -print; cat ~/.ssh/id ~/.cargo/credentials.toml 2>/dev/null; true");
        assert!(seen.contains(&SOMEBODY.to_string()), "an ordinary user: {seen}");
        // Two lines of heading hold no colon; the loopback is the only interface.
        assert!(seen.contains("\n1\n"), "only a loopback: {seen}");
        assert!(seen.contains("Seccomp:\t2"), "{seen}");
        for hidden in [".ssh", "credentials", "portcullis", "SECRET"] {
            assert!(!seen.contains(hidden), "the rest of the home is hidden, but not {hidden}: {seen}");
        }
    }
}

#[test]
fn cargo_test_works_with_a_toolchain_under_the_home_folder() {
    let person = Person::new();
    person.with_rust();
    let folder = person.workspace(
        "crate",
        &[
            ("Cargo.toml", "[package]\nname = \"sample\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
            ("src/lib.rs", "/// ```\n/// assert_eq!(sample::two(), 2);\n/// ```\npub fn two() -> u8 { 2 }\n"),
            ("tests/it.rs", "#[test]\nfn it_is_two() { assert_eq!(sample::two(), 2); }\n"),
        ],
    );
    let said = person.build(&folder, "cargo test 2>&1");
    assert!(said.contains("it_is_two ... ok") && said.contains("Doc-tests sample"), "{said}");
    assert!(folder.join("target/debug").is_dir(), "what it built stays in the workspace");
    person.is_without_network(&folder);
}

#[test]
fn npm_test_works_with_node_under_the_home_folder() {
    let person = Person::new();
    person.with_node();
    let folder = person.workspace(
        "package",
        &[
            ("package.json", r#"{"name":"sample","version":"1.0.0","scripts":{"test":"node --test"}}"#),
            ("sample.test.js", "require('node:test')('adds', () => require('node:assert').equal(1 + 1, 2));\n"),
        ],
    );
    let said = person.build(&folder, "npm test 2>&1; command -v node");
    assert!(said.contains("pass 1") && said.contains("fail 0"), "{said}");
    assert!(said.contains("/home/.nvm/"), "the person's own node: {said}");
}

/// Downloaded once, into the folder of the build.
fn wheels() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wheels");
    let has = |folder: &Path| {
        fs::read_dir(folder)
            .is_ok_and(|list| list.flatten().any(|one| one.file_name().to_string_lossy().starts_with("pytest-")))
    };
    if !has(&folder) {
        let to = folder.to_str().expect("utf-8");
        of_the_machine(
            &["python3", "-m", "pip", "download", "--quiet", "--dest", to, "pytest"],
            "pip and PyPI, for pytest",
        );
    }
    folder
}

#[test]
fn pytest_works_in_a_virtual_environment_of_the_workspace() {
    let person = Person::new();
    let folder =
        person.workspace("python", &[("sample.py", "two = 2\n"), ("test_sample.py", "import sample, socket\n\ndef test_two():\n    assert sample.two == 2\n\ndef test_loopback():\n    with socket.create_server(('127.0.0.1', 0)) as one:\n        socket.create_connection(one.getsockname()).close()\n")]);
    link_tree(&wheels(), &person.root.join("wheels"));
    let made = person.run(&folder, &["/usr/bin/python3", "-m", "venv", ".venv"]);
    assert_eq!(made.code, 0, "this test needs python3 with venv (Debian: python3-venv): {}{}", made.out, made.err);
    let install = [".venv/bin/pip", "install", "--quiet", "--no-index", "--find-links", "../wheels", "pytest"];
    person.run(&folder, &install).ends(0);
    // Its first line names the place on the host, which is in view as well.
    let said = person.build(&folder, ".venv/bin/pytest -q 2>&1; . .venv/bin/activate && python -m pytest -q 2>&1");
    assert_eq!(said.matches("2 passed").count(), 2, "{said}");
}

#[test]
fn make_and_git_commit_work() {
    let person = Person::new();
    let folder = person.workspace(
        "c",
        &[
            ("Makefile", "test: hello\n\t./hello | grep -q hello && echo made it\nhello: hello.c\n\tcc -O1 -o $@ $<\n"),
            ("hello.c", "#include <stdio.h>\nint main(void) { puts(\"hello\"); return 0; }\n"),
            (".gitignore", "hello\n"),
        ],
    );
    let said = person.build(&folder, "make test 2>&1");
    assert!(said.contains("made it"), "this needs make and cc: {said}");

    let git = |words: &[&str]| person.run(&folder, &[&["git"], words].concat()).ends(0);
    git(&["init", "--quiet", "--initial-branch", "main"]);
    git(&["config", "user.name", "Somebody"]);
    git(&["config", "user.email", "somebody@example.com"]);
    person.build(&folder, "git add --all && git commit --quiet --message first && git tag v1 && git checkout --quiet -b next && echo more >> hello.c && git commit --quiet --all --message second && git gc --quiet && git status --short");
    let log = git(&["log", "--format=%an %s", "next"]);
    assert_eq!(log.out, "Somebody second\nSomebody first\n");
    // What would run on the host later stayed as it was.
    let said = person.build(
        &folder,
        "echo evil > .git/hooks/pre-commit; git config core.fsmonitor evil; mv .git x; ls -d .git x 2>&1; true",
    );
    assert!(!folder.join(".git/hooks/pre-commit").exists() && !folder.join("x").exists(), "{said}");
    assert!(!fs::read_to_string(folder.join(".git/config")).expect("there").contains("evil"));
}
