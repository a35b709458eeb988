//! How much longer real builds take in the hand than outside. `cargo xtask soak builds` measures all of them and prints a
//! table; without PORTCULLIS_SOAK only the quickest is built, once.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::builds::Person;

/// A project of one toolchain.
struct Project {
    name: &'static str,
    /// Programs without which it cannot be built.
    needs: &'static [&'static str],
    files: &'static [(&'static str, &'static str)],
    /// Undoes the last build.
    clean: &'static str,
    build: &'static str,
}

const PROJECTS: &[Project] = &[
    Project {
        name: "make",
        needs: &["make", "cc"],
        files: &[
            ("Makefile", "test: hello\n\t./hello | grep -q hello\nhello: hello.c\n\tcc -O1 -o $@ $<\n"),
            ("hello.c", "#include <stdio.h>\nint main(void) { puts(\"hello\"); return 0; }\n"),
        ],
        clean: "rm -f hello",
        build: "make test",
    },
    Project {
        name: "cargo test",
        needs: &["rustc", "rustup"],
        files: &[
            ("Cargo.toml", "[package]\nname = \"sample\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
            ("src/lib.rs", "pub fn two() -> u8 { 2 }\n"),
            ("tests/it.rs", "#[test]\nfn it_is_two() { assert_eq!(sample::two(), 2); }\n"),
        ],
        clean: "rm -rf target",
        build: "cargo test --offline",
    },
    Project {
        name: "npm ci && npm test",
        needs: &["node", "npm"],
        files: &[
            (
                "package.json",
                "{\"name\":\"sample\",\"version\":\"1.0.0\",\"scripts\":{\"test\":\"node --test\"},\"dependencies\":{\"local\":\"file:local\"}}",
            ),
            (
                "package-lock.json",
                "{\"name\":\"sample\",\"version\":\"1.0.0\",\"lockfileVersion\":3,\"packages\":{\"\":{\"name\":\"sample\",\"version\":\"1.0.0\",\"dependencies\":{\"local\":\"file:local\"}},\"local\":{\"version\":\"1.0.0\"},\"node_modules/local\":{\"resolved\":\"local\",\"link\":true}}}",
            ),
            ("local/package.json", "{\"name\":\"local\",\"version\":\"1.0.0\",\"main\":\"index.js\"}"),
            ("local/index.js", "module.exports = 2;\n"),
            (
                "sample.test.js",
                "require('node:test')('adds', () => require('node:assert').equal(require('local'), 2));\n",
            ),
        ],
        clean: "rm -rf node_modules",
        build: "npm ci --offline && npm test",
    },
    Project {
        name: "python -m unittest",
        needs: &["python3"],
        files: &[(
            "test_sample.py",
            "import unittest\nclass T(unittest.TestCase):\n    def test_two(self): self.assertEqual(1 + 1, 2)\n",
        )],
        clean: "rm -rf __pycache__",
        build: "python3 -m unittest -q",
    },
    Project {
        name: "go test",
        needs: &["go"],
        files: &[
            ("go.mod", "module sample\n\ngo 1.20\n"),
            (
                "sample_test.go",
                "package sample\nimport \"testing\"\nfunc TestTwo(t *testing.T) { if 1+1 != 2 { t.Fatal() } }\n",
            ),
        ],
        clean: "true",
        build: "go test -count=1 ./...",
    },
];

fn installed(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", "command -v \"$0\"", program]).stdout(Stdio::null()).status();
    found.is_ok_and(|status| status.success())
}

/// The quickest of several.
fn best(rounds: usize, mut once: impl FnMut() -> Duration) -> Duration {
    (0..rounds).map(|_| once()).min().expect("at least one round")
}

fn measured(person: &Person, project: &Project, folder: &Path, rounds: usize) -> (Duration, Duration) {
    let clean = || person.run(folder, &["sh", "-c", project.clean]).ends(0);
    let outside = best(rounds, || {
        clean();
        let begun = Instant::now();
        person.run(folder, &["sh", "-c", project.build]).ends(0);
        begun.elapsed()
    });
    let inside = best(rounds, || {
        clean();
        // With all that a call costs: the launch, the log, the capture.
        person.timed_build(folder, project.build)
    });
    (outside, inside)
}

#[test]
fn builds_inside_the_hand_and_outside() {
    let soak = std::env::var_os("PORTCULLIS_SOAK").is_some();
    let (projects, rounds) = if soak { (PROJECTS, 3) } else { (&PROJECTS[..1], 1) };
    let person = Person::new();
    println!("{:<22} {:>10} {:>10} {:>8}", "build", "outside", "inside", "ratio");
    for project in projects {
        let missing: Vec<&&str> = project.needs.iter().filter(|program| !installed(program)).collect();
        if !missing.is_empty() {
            println!("{:<22} not measured: {missing:?} is not installed", project.name);
            continue;
        }
        match project.name {
            "cargo test" => person.with_rust(),
            "npm ci && npm test" => person.with_node(),
            _ => {}
        }
        let folder: PathBuf = person.workspace(&project.name.replace([' ', '&'], "-"), project.files);
        let (outside, inside) = measured(&person, project, &folder, rounds);
        let ratio = inside.as_secs_f64() / outside.as_secs_f64().max(0.001);
        println!("{:<22} {:>8} ms {:>8} ms {ratio:>8.2}", project.name, outside.as_millis(), inside.as_millis());
    }
}
